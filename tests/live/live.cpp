// Runs the tests of the public API and of other libraries' layouts against AWS
// itself or any service that speaks DynamoDB's protocol, with the keys that the
// library finds:
//
//   live TABLE REGION [SUITE/CASE...]
//
// TABLE and a few tables whose names begin with TABLE are made, used and
// deleted again, also after a failure, Ctrl-C or TERM.  If one of them exists
// already, nothing is done.  Without cases it runs those of cases.txt.
//
// The tests learn from their environment where the service is, and which tables
// there are (tests/support/engine.hpp).  The logs of the suites are left in the
// directory $LIVE_OUT (build/live).
//
// The status is 0 if all is well and no table is left, 1 if not, 2 if it cannot
// begin, 130 if it was interrupted.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex/dynamodb/endpoint.hpp"
#include "extras/parts.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/keys/keys.hpp"
#include "tests/live/tables.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/process.hpp"
#include "tests/support/waiting.hpp"

namespace {

constexpr char kUsage[] =
    "usage: make aws TABLE=name REGION=region   (uses your AWS keys; makes the "
    "table, tests, deletes it)\n";
constexpr std::size_t kLongestName = 200;  // AWS takes 255, with our endings.

// The cases that one process runs, one after the other.
struct Group {
  std::string name;
  std::vector<std::string> cases;  // "suite/case"
};

struct Order {
  std::string table;
  std::string region;
  std::vector<Group> groups;
};

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// From cases.txt beside this file, tests/live/live.cpp.
std::vector<Group> all_groups() {
  const std::string source = __FILE__;
  const std::string list = source.substr(0, source.rfind('/')) + "/cases.txt";
  std::vector<Group> groups;
  std::ifstream file(list);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.back() == ':') {
      groups.push_back({line.substr(0, line.size() - 1), {}});
    } else if (!groups.empty()) {
      groups.back().cases.push_back(line);
    }
  }
  if (groups.empty()) throw std::runtime_error("cannot read " + list);
  return groups;
}

// Nothing if the arguments are wrong.
std::optional<Order> read_order(int argc, char** argv) {
  if (argc < 3 || *argv[1] == '\0' || *argv[2] == '\0') return std::nullopt;
  Order order;
  order.table = argv[1];
  order.region = argv[2];
  if (argc > 3) {
    order.groups.push_back({"cases", {argv + 3, argv + argc}});
  } else {
    order.groups = all_groups();
  }
  return order;
}

void check_name(const std::string& table) {
  const char* const allowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  if (table.size() < 3 || table.size() > kLongestName ||
      table.find_first_not_of(allowed) != table.npos) {
    throw Refused("TABLE=" + table +
                  ": a table's name has 3 to 200 of A-Z, a-z, 0-9, '_', '.' "
                  "and '-' here");
  }
}

// Where requests go, as the library finds it.
std::string find_endpoint(const std::string& region) {
  const auto target =
      ddbmutex::dynamodb::find_target({region}, ddbmutex::sigv4::all_parts());
  if (!target.error.empty()) throw Refused(target.error);
  return target.endpoint;
}

void set(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);
}

// For all that we start.
void set_environment(const Order& order, const std::string& endpoint) {
  set("AWS_REGION", order.region);
  set("DDBMUTEX_TEST_ENGINES", "given");
  set("DDBMUTEX_TEST_ENDPOINT", endpoint);
  set("DDBMUTEX_TEST_TABLE", order.table);
  // These have chosen the endpoint, which is given from now on.
  unsetenv("AWS_USE_FIPS_ENDPOINT");
  unsetenv("AWS_USE_DUALSTACK_ENDPOINT");
}

// --- What is told ------------------------------------------------------------

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += "  " + name + "\n";
  return text;
}

// The access key, where it was found and, if that is known, its account.
std::string find_keys(const std::string& region) {
  const auto keys = tests::found_keys(region);
  ddbmutex::sigv4::CallWaker nobody;
  const bool are_there =
      keys->await(ddbmutex::BootClock::now() + tests::kPlenty, nobody);
  const auto found = keys->now().outcome;
  if (!are_there) throw Refused("no AWS keys: " + found->reason);
  const std::string& account = found->keys.account_id;
  return std::string(found->keys.access_key_id) + ", from " + found->source +
         (account.empty() ? " (which does not tell the account)"
                          : ", of account " + account);
}

void tell_plan(const Order& order, const std::string& endpoint,
               const std::string& keys,
               const std::vector<std::string>& tables) {
  std::printf(
      "Endpoint: %s\nRegion: %s\nKeys: %s\n"
      "Makes these tables, on demand, and deletes them at the end:\n%s"
      "Ctrl-C ends it and deletes the tables.\n\n",
      endpoint.c_str(), order.region.c_str(), keys.c_str(),
      joined(tables).c_str());
  std::fflush(stdout);
}

void tell_left(const std::vector<std::string>& left,
               const std::string& region) {
  if (left.empty()) {
    std::printf("No table is left.\n");
    return;
  }
  std::printf("These tables are left, or may be; delete them by:\n");
  for (const std::string& table : left) {
    std::printf("  aws dynamodb delete-table --region %s --table-name %s\n",
                region.c_str(), table.c_str());
  }
}

// --- The run -----------------------------------------------------------------

class RunningGroup {
 public:
  RunningGroup(const Group& group, const std::filesystem::path& logs)
      : name_(group.name),
        least_(group.cases.size()),
        log_(logs / (group.name + ".log")),
        counts_(logs / (group.name + ".counts")),
        process_(settings(group)) {}

  bool has_ended() { return process_.has_ended(); }

  // True if all of its cases have passed.
  bool judge() {
    const int status = process_.wait();
    std::size_t passed = 0, failed = 0;
    std::ifstream(counts_) >> passed >> failed;
    const bool well = status == 0 && failed == 0 && passed >= least_;
    std::printf("  %-12s %3zu of %3zu passed, status %d%s\n", name_.c_str(),
                passed, least_, status,
                well ? "" : (": FAILED, see " + log_.string()).c_str());
    std::fflush(stdout);
    return well;
  }

 private:
  tests::ProcessSettings settings(const Group& group) const {
    tests::ProcessSettings settings;
    settings.command = {"/bin/sh",
                        "-c",
                        "log=$1; shift; exec \"$@\" >$log 2>&1",
                        "sh",
                        log_.string(),
                        tests::program_path("tests"),
                        "--log_level=message",
                        "--report_level=no",
                        "--color_output=no"};
    for (const std::string& one : group.cases) {
      settings.command.push_back("--run_test=" + one);
    }
    std::filesystem::remove(counts_);  // Of an earlier run.
    settings.environment = tests::whole_environment();
    settings.environment.push_back("DDBMUTEX_TEST_COUNTS=" + counts_.string());
    return settings;
  }

  const std::string name_;
  const std::size_t least_;
  const std::filesystem::path log_;
  const std::filesystem::path counts_;
  tests::Process process_;
};

// All groups at once.
bool run_tests(const Order& order) {
  const char* const out = std::getenv("LIVE_OUT");
  const std::string logs = out != nullptr ? out : "build/live";
  std::filesystem::create_directories(logs);
  std::printf("Suites:\n");
  std::fflush(stdout);
  std::vector<std::unique_ptr<RunningGroup>> running;
  for (const Group& group : order.groups) {
    running.push_back(std::make_unique<RunningGroup>(group, logs));
  }
  bool well = true;
  for (const auto& group : running) {
    while (!group->has_ended()) {
      live::stop_if_interrupted();
      tests::pause(std::chrono::milliseconds(50));
    }
    well = group->judge() && well;
  }
  return well;
}

// Prints what goes wrong.  Then deletes the tables in any case.
bool run_with_tables(const Order& order, live::Tables& tables) {
  bool well = false;
  try {
    tables.make();
    well = run_tests(order);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  std::printf("Deleting the tables ...\n");
  std::fflush(stdout);
  tables.remove();
  return well;
}

int run(const Order& order) {
  check_name(order.table);
  const std::string endpoint = find_endpoint(order.region);
  const std::string keys = find_keys(order.region);
  live::Tables tables({endpoint, order.region}, order.table);
  tell_plan(order, endpoint, keys, tables.names());
  tables.refuse_if_any_exists();
  set_environment(order, endpoint);
  const bool well = run_with_tables(order, tables);
  tell_left(tables.left(), order.region);
  if (tests::interrupted != 0) return 130;
  return well && tables.left().empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::optional<Order> order = read_order(argc, argv);
  if (!order) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  tests::catch_signals();
  // Whoever reads what we say may go before us, as `tee` does at Ctrl-C.  A
  // program that we start would go on ignoring what we ignore.
  signal(SIGPIPE, [](int) {});
  return run(*order);
} catch (const std::exception& error) {
  std::fprintf(stderr, "live: %s\n", error.what());
  return tests::interrupted != 0 ? 130 : 2;
}
