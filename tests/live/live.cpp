// Runs the tests of the public API and of other libraries' layouts, and then a
// short torture, against AWS itself or any service that speaks DynamoDB's
// protocol, with the keys that the library finds:
//
//   live TABLE REGION [TORTURE_SECONDS [SUITE/CASE...]]
//
// TABLE and a few tables whose names begin with TABLE are made, used and
// deleted again, also after a failure, Ctrl-C or TERM.  If one of them exists
// already, nothing is done.  Without cases it runs those of cases.txt.
//
// All requests go through a forwarder in this process (forwarder.hpp), which
// counts them; the tests learn from their environment where it is, and which
// tables there are (tests/support/engine.hpp).  The logs of the suites are left
// in the directory $LIVE_OUT (build/live).
//
// The status is 0 if all is well and no table is left, 1 if not, 2 if it cannot
// begin, 130 if it was interrupted.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex/dynamodb/endpoint.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/keys/keys.hpp"
#include "sigv4/url.hpp"
#include "tests/live/forwarder.hpp"
#include "tests/live/interruption.hpp"
#include "tests/live/short_torture.hpp"
#include "tests/live/suites.hpp"
#include "tests/live/tables.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using std::chrono::seconds;

constexpr char kUsage[] =
    "usage: make aws TABLE=name REGION=region   (uses your AWS keys; makes the "
    "table, tests, deletes it)\n";
constexpr seconds kTorture{30};
constexpr std::size_t kLongestName = 200;  // AWS takes 255, with our endings.

struct Order {
  std::string table;
  std::string region;
  seconds torture = kTorture;
  std::vector<live::Group> groups;
};

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Nothing if the arguments are wrong.
std::optional<Order> read_order(int argc, char** argv) {
  if (argc < 3 || *argv[1] == '\0' || *argv[2] == '\0') return std::nullopt;
  Order order;
  order.table = argv[1];
  order.region = argv[2];
  if (argc > 3) order.torture = seconds(std::atoi(argv[3]));
  if (argc > 4) {
    order.groups.push_back({"cases", {argv + 4, argv + argc}});
  } else {
    order.groups = live::all_groups();
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
ddbmutex::dynamodb::Target find_target(const std::string& region) {
  ddbmutex::dynamodb::Target target = ddbmutex::dynamodb::find_target({region});
  if (!target.error.empty()) throw Refused(target.error);
  const std::string endpoint = ddbmutex::sigv4::normal_url(target.endpoint);
  // The tests' own servers are there, whose requests are not to be counted.
  if (ddbmutex::sigv4::parts_of(endpoint).authority.substr(0, 9) ==
      "127.0.0.1") {
    throw Refused(target.endpoint + ": please call this host `localhost`");
  }
  return target;
}

void set(const std::string& name, const std::string& value) {
  setenv(name.c_str(), value.c_str(), 1);
}

// For ourselves and for all that we start.
void set_environment(const Order& order, const live::Forwarder& forwarder) {
  for (const std::string& variable : forwarder.environment()) {
    const std::size_t end = variable.find('=');
    set(variable.substr(0, end), variable.substr(end + 1));
  }
  set("AWS_REGION", order.region);
  set("DDBMUTEX_TEST_ENGINES", "given");
  set("DDBMUTEX_TEST_ENDPOINT", forwarder.url());
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
  const bool are_there =
      keys->await(ddbmutex::BootClock::now() + tests::kPlenty, nullptr);
  const auto found = keys->now().outcome;
  if (!are_there) throw Refused("no AWS keys: " + found->reason);
  const std::string& account = found->keys.account_id;
  return std::string(found->keys.access_key_id) + ", from " + found->source +
         (account.empty() ? " (which does not tell the account)"
                          : ", of account " + account);
}

// The numbers are those of some runs, rounded.
void tell_plan(const Order& order, const std::string& endpoint,
               const std::string& keys,
               const std::vector<std::string>& tables) {
  const bool is_whole = order.groups.size() > 1;
  std::printf(
      "Endpoint: %s\nRegion: %s\nKeys: %s\n"
      "Makes these tables, on demand, and deletes them at the end:\n%s"
      "Sends %s requests, in %s; the farther away the region is, the fewer "
      "and the longer.\nCtrl-C ends it and deletes the tables.\n\n",
      endpoint.c_str(), order.region.c_str(), keys.c_str(),
      joined(tables).c_str(),
      is_whole ? "5,000 to 20,000" : "some hundred or thousand",
      is_whole ? "2 to 6 minutes" : "about a minute");
  std::fflush(stdout);
}

void tell_requests(const live::RequestCounts& counts) {
  std::uint64_t all = 0;
  std::printf("\nRequests that were sent:\n");
  for (const auto& [action, count] : counts) {
    std::printf("  %-20s %7llu\n", action.c_str(),
                static_cast<unsigned long long>(count));
    all += count;
  }
  std::printf("  %-20s %7llu\n", "in all",
              static_cast<unsigned long long>(all));
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

bool run_tests(const Order& order, live::Forwarder& forwarder) {
  std::printf("Suites:\n");
  std::fflush(stdout);
  const char* const out = std::getenv("LIVE_OUT");
  bool well =
      live::run_suites(order.groups, out != nullptr ? out : "build/live");
  if (order.torture.count() > 0) {
    const std::uint32_t seed = std::random_device()();
    well = live::torture_shortly(
               at(tests::Engine::running(tests::EngineKind::given)), forwarder,
               order.torture, seed) &&
           well;
  }
  return well;
}

// Prints what goes wrong.  Then deletes the tables in any case.
bool run_with_tables(const Order& order, live::Forwarder& forwarder,
                     live::Tables& tables) {
  bool well = false;
  try {
    tables.make();
    well = run_tests(order, forwarder);
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
  const ddbmutex::dynamodb::Target target = find_target(order.region);
  live::Forwarder forwarder(target.endpoint, target.ca_file);
  set_environment(order, forwarder);
  const std::string keys = find_keys(order.region);
  live::Tables tables({forwarder.url(), order.region}, order.table);
  tell_plan(order, target.endpoint, keys, tables.names());
  tables.refuse_if_any_exists();
  const bool well = run_with_tables(order, forwarder, tables);
  forwarder.stop();
  tell_requests(forwarder.counts());
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
  live::outlive_readers();
  return run(*order);
} catch (const std::exception& error) {
  std::fprintf(stderr, "live: %s\n", error.what());
  return tests::interrupted != 0 ? 130 : 2;
}
