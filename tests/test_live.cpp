// `make aws` against the gateway, which checks signatures and tokens behind
// TLS, and makes and deletes tables as slowly as AWS does.  No table is left,
// however the run ends.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"

using namespace std::chrono_literals;
using tests::Engine;
using tests::eventually;
using tests::Gateway;
using tests::has;

namespace {

// Longer than anything here takes.
constexpr std::chrono::minutes kLongest{10};

std::string words_of(const std::vector<std::string>& all, const char* between) {
  std::string text;
  for (const std::string& one : all)
    text += (text.empty() ? "" : between) + one;
  return text;
}

// The program with an engine behind the gateway.
class Live {
 public:
  explicit Live(std::chrono::milliseconds slow_tables = 0ms)
      : gateway(engine.url(), settings(slow_tables)) {}

  // The keys that the library will find: a profile with temporary keys.
  void set_keys(const std::string& secret = "live-secret") {
    home.write(".aws/credentials",
               "[tester]\naws_access_key_id = AKIDLIVE\n"
               "aws_secret_access_key = " +
                   secret + "\naws_session_token = live-token\n");
  }

  void start(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {
        "/bin/sh", "-c",  "out=$1; shift; exec \"$@\" >$out 2>&1",
        "sh",      said_, tests::program_path("live/live")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    process = std::make_unique<tests::Process>(
        tests::ProcessSettings{command, environment()});
  }
  // Returns the exit status.
  int run(const std::vector<std::string>& arguments) {
    start(arguments);
    return ends();
  }
  int ends() { return process->wait(kLongest); }
  std::string said() const { return tests::read_file(said_); }

  // The engine's tables whose names begin with this run's.
  std::vector<std::string> tables() {
    const std::string all = engine.must_call("ListTables", "{}");
    const std::regex name('"' + table + "[^\"]*\"");
    std::vector<std::string> names;
    for (std::sregex_iterator it(all.begin(), all.end(), name), end; it != end;
         ++it) {
      names.push_back(it->str());
    }
    return names;
  }

  Engine& engine = Engine::running(tests::any_engine_kind());
  const std::string table = "live-" + tests::fresh_name();
  tests::Home home;
  Gateway gateway;
  std::unique_ptr<tests::Process> process;

 private:
  static tests::GatewaySettings settings(
      std::chrono::milliseconds slow_tables) {
    tests::GatewaySettings settings;
    settings.keys = {"AKIDLIVE", "live-secret", "live-token"};
    settings.slow_tables = slow_tables;
    return settings;
  }
  std::vector<std::string> environment() const {
    std::vector<std::string> all = tests::clean_environment();
    const std::string url = gateway.url();
    all.push_back("AWS_ENDPOINT_URL_DYNAMODB=https://localhost" +
                  url.substr(url.rfind(':')));
    all.push_back("AWS_CA_BUNDLE=" + gateway.ca_file());
    all.push_back("AWS_PROFILE=tester");
    all.push_back("AWS_SHARED_CREDENTIALS_FILE=" +
                  (home.root / ".aws/credentials").string());
    all.push_back("LIVE_OUT=" + (home.root / "logs").string());
    return all;
  }

  const std::string said_ = (home.root / "said").string();
};

// Some cases of each group, and for each of the tables.  `make soak` runs all.
std::vector<std::string> some_cases(const std::string& table) {
  const char* const whole = std::getenv("DDBMUTEX_LIVE_WHOLE");
  if (whole != nullptr) return {table, "us-east-1"};
  return {table,
          "us-east-1",
          "ddb_mutex/lock_and_unlock_are_one_put_and_one_delete",
          "ddb_mutex/poller_takes_what_it_saw_unchanged_for_a_lease",
          "guard/write_under_the_lock_is_carried_out",
          "any_of/item_that_nobody_has_is_got_with_its_attributes",
          "callbacks/row_that_is_gone_is_told_as_deleted_once",
          "handover/each_thread_finds_the_data_of_its_own_acquisition",
          "layouts_on_engines/lease_is_written_in_the_form_that_the_row_has",
          "manage/list_of_a_name_tells_all_its_sort_values",
          "wrong_table/wrong_key_told_to_a_renewal_is_not_the_tables"};
}

constexpr char kOneCase[] =
    "ddb_mutex/lock_and_unlock_are_one_put_and_one_delete";

}  // namespace

BOOST_AUTO_TEST_SUITE(live)

BOOST_AUTO_TEST_CASE(run_is_green_and_leaves_no_table) {
  Live live(1500ms);
  if (live.engine.kind() != tests::EngineKind::dynoxide) return;
  live.set_keys();
  const int status = live.run(some_cases(live.table));
  const std::string said = live.said();
  BOOST_TEST(status == 0, said);
  BOOST_TEST(has(said, "No table is left."), said);
  BOOST_TEST(has(said, "AKIDLIVE, from profile \"tester\""), said);
  BOOST_TEST(live.gateway.counts().requests("CreateTable") >= 10);
  BOOST_TEST(live.gateway.counts().bad_signatures() == 0);
  BOOST_TEST(words_of(live.tables(), " ") == "");
  for (const char* secret : {"live-secret", "live-token", "Signature="}) {
    BOOST_TEST(!has(said, secret), said);
  }
}

// Whichever of its tables it is.
BOOST_AUTO_TEST_CASE(table_that_exists_is_refused_and_left_as_it_is) {
  for (const char* ending : {"", "-LockHashKeyName-1"}) {
    Live live;
    live.set_keys();
    const std::string name = live.table + ending;
    live.engine.create_table_named(name, tests::kUsualKey);
    const std::string about = R"({"TableName":")" + name + '"';
    live.engine.must_call("PutItem", about + R"(,"Item":{"name":{"S":"x"}}})");
    BOOST_TEST(live.run({live.table, "us-east-1", kOneCase}) == 2);
    BOOST_TEST(has(live.said(), "the table " + name + " exists already"),
               live.said());
    BOOST_TEST(live.gateway.counts().requests("DescribeTable") ==
               live.gateway.counts().all_requests());
    BOOST_TEST(has(live.engine.must_call("Scan", about + "}"), "\"x\""));
    BOOST_TEST(live.tables().size() == 1u);
    live.engine.delete_table(name);
  }
}

// Amid the suites, and while the tables are not there yet.
BOOST_AUTO_TEST_CASE(interrupted_run_leaves_no_table) {
  for (const int number : {SIGINT, SIGTERM}) {
    Live live(1500ms);
    live.set_keys();
    live.start({live.table, "us-east-1", kOneCase});
    const char* const action = number == SIGINT ? "PutItem" : "CreateTable";
    BOOST_TEST_REQUIRE(
        eventually([&] { return live.gateway.counts().requests(action) > 0; }));
    live.process->signal(number);
    BOOST_TEST(live.ends() == 130);
    BOOST_TEST(has(live.said(), "interrupted"), live.said());
    BOOST_TEST(has(live.said(), "No table is left."), live.said());
    BOOST_TEST(words_of(live.tables(), " ") == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
