// `make aws` against the gateway, which checks signatures and tokens behind
// TLS, and makes and deletes tables as slowly as AWS does.  Every request is
// counted, and no table is left, however the run ends.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"

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

// The actions that tests/README.md says are needed: "GetItem,PutItem".
std::string actions_on_the_page() {
  const std::string page = tests::read_file("tests/README.md");
  const std::size_t begin = page.find("## Against AWS");
  BOOST_TEST_REQUIRE(begin != page.npos);
  const std::string part =
      page.substr(begin, page.find("\n## ", begin + 1) - begin);
  const std::regex action("\"dynamodb:([A-Za-z]+)\"");
  std::vector<std::string> all;
  for (std::sregex_iterator it(part.begin(), part.end(), action), end;
       it != end; ++it) {
    all.push_back((*it)[1]);
  }
  BOOST_TEST_REQUIRE(all.size() > 5u);
  return words_of(all, ",");
}

// The program with an engine behind the gateway.
class Live {
 public:
  explicit Live(std::chrono::milliseconds slow_tables = 0ms,
                const std::string& actions = actions_on_the_page())
      : gateway(engine.url(), settings(slow_tables, table + ":" + actions)) {}

  // The keys that the library will find: a profile with temporary keys.
  void set_keys(const std::string& secret = "live-secret") {
    home.write(".aws/credentials",
               "[tester]\naws_access_key_id = AKIDLIVE\n"
               "aws_secret_access_key = " +
                   secret + "\naws_session_token = live-token\n");
  }

  void start(
      const std::vector<std::string>& arguments,
      const std::string& script = "out=$1; shift; exec \"$@\" >$out 2>&1") {
    std::vector<std::string> command = {
        "/bin/sh", "-c", script, "sh", said_, tests::program_path("live/live")};
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
  static tests::GatewaySettings settings(std::chrono::milliseconds slow_tables,
                                         const std::string& allow) {
    tests::GatewaySettings settings;
    settings.keys = {"AKIDLIVE", "live-secret", "live-token"};
    settings.slow_tables = slow_tables;
    settings.allow = allow;
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

// "GetItem 12" and so on: what the program prints, and what the gateway
// counted.
std::string requests_in(const std::string& said) {
  std::istringstream lines(said.substr(said.find("Requests that were sent:")));
  std::string line, text;
  std::getline(lines, line);
  while (std::getline(lines, line) && !has(line, "in all")) {
    std::istringstream words(line);
    std::string action;
    int count = 0;
    words >> action >> count;
    text += action + " " + std::to_string(count) + "\n";
  }
  return text;
}
std::string requests_at(const Gateway& gateway, const std::string& said) {
  std::istringstream lines(requests_in(said));
  std::string action, count, text;
  int all = 0;
  while (lines >> action >> count) {
    const int seen = gateway.counts().requests(action);
    text += action + " " + std::to_string(seen) + "\n";
    all += seen;
  }
  BOOST_TEST(all == gateway.counts().all_requests());
  return text;
}

// Some cases of each group, and for each of the tables.  `make soak` runs all.
std::vector<std::string> some_cases(const std::string& table) {
  const char* const whole = std::getenv("DDBMUTEX_LIVE_WHOLE");
  if (whole != nullptr) return {table, "us-east-1"};
  return {
      table,
      "us-east-1",
      "4",
      "ddb_mutex/lock_and_unlock_are_one_put_and_one_delete",
      "ddb_mutex/acquire_whose_answer_is_lost_has_acquired",
      "engines/held_lock_is_busy_and_tells_the_holders_row",
      "guard/write_under_the_lock_is_carried_out",
      "any_of/two_processes_get_two_items_at_once",
      "callbacks/row_that_is_gone_is_told_as_deleted_once",
      "tokens_processes/released_row_hands_token_and_data_to_the_next_process",
      "layouts_on_engines/lease_is_written_in_the_form_that_the_row_has",
      "layouts_on_engines/sort_keys_tell_locks_of_one_name_apart",
      "manage/list_of_a_name_tells_all_its_sort_values",
      "mutex_errors/table_of_another_key_is_wrong_and_left_alone",
      "wrong_table/wrong_key_in_a_guarded_write_is_not_the_tables"};
}
tests::Fault tenth_creation(const char* kind) {
  tests::Fault fault;
  fault.action = "CreateTable";
  fault.kind = kind;
  fault.nth = 10;
  if (kind == std::string("delay")) fault.from = kLongest;
  return fault;
}

constexpr char kOneCase[] =
    "ddb_mutex/lock_and_unlock_are_one_put_and_one_delete";

}  // namespace

BOOST_AUTO_TEST_SUITE(live)

BOOST_AUTO_TEST_CASE(run_is_green_counts_every_request_and_leaves_no_table) {
  Live live(1500ms);
  if (live.engine.kind() != tests::EngineKind::dynoxide) return;
  live.set_keys();
  const int status = live.run(some_cases(live.table));
  const std::string said = live.said();
  BOOST_TEST(status == 0, said);
  BOOST_TEST(has(said, "No table is left."), said);
  BOOST_TEST(has(said, "nothing wrong"), said);
  BOOST_TEST(has(said, "AKIDLIVE, from profile \"tester\""), said);
  BOOST_TEST(requests_in(said) == requests_at(live.gateway, said));
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
    BOOST_TEST(live.run({live.table, "us-east-1", "0", kOneCase}) == 2);
    BOOST_TEST(has(live.said(), "the table " + name + " exists already"),
               live.said());
    BOOST_TEST(live.gateway.counts().requests("DescribeTable") ==
               live.gateway.counts().all_requests());
    BOOST_TEST(has(live.engine.must_call("Scan", about + "}"), "\"x\""));
    BOOST_TEST(live.tables().size() == 1u);
    live.engine.delete_table(name);
  }
}

// The run has found no such table, and somebody else makes it before the run
// does.
BOOST_AUTO_TEST_CASE(table_that_another_makes_meanwhile_is_not_deleted) {
  Live live;
  live.set_keys();
  live.gateway.add(tenth_creation("delay"));
  live.start({live.table, "us-east-1", "0", kOneCase});
  BOOST_TEST_REQUIRE(eventually(
      [&] { return live.gateway.counts().requests("CreateTable") == 10; }));
  const std::string theirs = live.table + "-name-at-N-1";
  live.engine.create_table_named(theirs, tests::kUsualKey);
  live.gateway.let_go();
  BOOST_TEST(live.ends() == 1);
  BOOST_TEST(has(live.said(), "cannot make the table " + theirs), live.said());
  BOOST_TEST(has(live.said(), "No table is left."), live.said());
  BOOST_TEST(words_of(live.tables(), " ") == '"' + theirs + '"');
  live.engine.delete_table(theirs);
}

// Nobody can say whose it is then.
BOOST_AUTO_TEST_CASE(table_whose_creation_is_not_answered_is_left_and_told) {
  Live live;
  live.set_keys();
  live.gateway.add(tenth_creation("reset-answer"));
  BOOST_TEST(live.run({live.table, "us-east-1", "0", kOneCase}) == 1);
  const std::string doubtful = live.table + "-name-at-N-1";
  BOOST_TEST(has(live.said(), "--table-name " + doubtful + "\n"), live.said());
  BOOST_TEST(words_of(live.tables(), " ") == '"' + doubtful + '"');
  live.engine.delete_table(doubtful);
}

// Amid the suites and the torture, and while the tables are not there yet.
BOOST_AUTO_TEST_CASE(interrupted_run_leaves_no_table) {
  for (const int number : {SIGINT, SIGTERM}) {
    Live live(1500ms);
    live.set_keys();
    live.start({live.table, "us-east-1", "60", kOneCase});
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

BOOST_AUTO_TEST_CASE(run_whose_reader_goes_leaves_no_table) {
  Live live;
  live.set_keys();
  live.start({live.table, "us-east-1", "0", kOneCase},
             "out=$1; shift; { \"$@\"; echo $? >$out; } | head -n 1");
  live.ends();
  BOOST_TEST(live.said() == "0\n");
  BOOST_TEST(words_of(live.tables(), " ") == "");
}

BOOST_AUTO_TEST_CASE(table_that_another_deletes_ends_the_run_in_order) {
  Live live;
  live.set_keys();
  live.start({live.table, "us-east-1", "20", kOneCase});
  BOOST_TEST_REQUIRE(eventually(
      [&] { return live.gateway.counts().requests("PutItem") > 10; }));
  live.engine.delete_table(live.table);
  BOOST_TEST(live.ends() == 1, live.said());
  BOOST_TEST(has(live.said(), "No table is left."), live.said());
  BOOST_TEST(words_of(live.tables(), " ") == "");
}

// Asked for once each.
BOOST_AUTO_TEST_CASE(tables_that_must_not_be_deleted_are_told) {
  Live live(0ms,
            "CreateTable,DescribeTable,UpdateTimeToLive,PutItem,GetItem,"
            "UpdateItem,DeleteItem");
  live.set_keys();
  BOOST_TEST(live.run({live.table, "us-east-1", "0", kOneCase}) == 1);
  BOOST_TEST(has(live.said(), "--table-name " + live.table + "\n"),
             live.said());
  BOOST_TEST(live.gateway.counts().requests("DeleteTable") == 10);
  BOOST_TEST(live.tables().size() == 10u);
  for (const std::string& name : live.tables()) {
    live.engine.delete_table(name.substr(1, name.size() - 2));
  }
}

BOOST_AUTO_TEST_CASE(
    keys_that_are_wrong_or_missing_are_told_and_nothing_is_made) {
  Live live;
  live.set_keys("another-secret");
  BOOST_TEST(live.run({live.table, "us-east-1", "0", kOneCase}) == 2);
  BOOST_TEST(has(live.said(), "The request signature we calculated"),
             live.said());
  BOOST_TEST(live.gateway.counts().requests("CreateTable") == 0);
  live.home.write(".aws/credentials", "[tester]\n");
  BOOST_TEST(live.run({live.table, "us-east-1", "0", kOneCase}) == 2);
  BOOST_TEST(has(live.said(), "AWS_ACCESS_KEY_ID"), live.said());
  BOOST_TEST(live.gateway.counts().requests("CreateTable") == 0);
  BOOST_TEST(words_of(live.tables(), " ") == "");
}

// A case that fails, and one that is not there.
BOOST_AUTO_TEST_CASE(suite_that_fails_is_told_and_leaves_no_table) {
  for (const std::string& one :
       {std::string("manage/inspection_of_what_is_no_lock_tells_that"),
        std::string("manage/no_such_case")}) {
    Live live;
    live.set_keys();
    tests::Fault fault;
    fault.action = "PutItem";
    fault.times = 0;
    live.gateway.add(fault);
    BOOST_TEST(live.run({live.table, "us-east-1", "0", one}) == 1);
    BOOST_TEST(has(live.said(),
                   one == "manage/no_such_case" ? "ENDED with" : "1 FAILED"),
               live.said());
    BOOST_TEST(has(live.said(), "No table is left."), live.said());
    BOOST_TEST(words_of(live.tables(), " ") == "");
  }
}

BOOST_AUTO_TEST_CASE(usage_is_told_to_who_names_no_table_or_region) {
  for (const char* arguments :
       {"", "TABLE=x", "REGION=us-east-1", R"("TABLE=x'; echo broken; '")"}) {
    const tests::Ran ran =
        tests::shell(std::string("make --no-print-directory aws ") + arguments);
    BOOST_TEST(ran.status == 2, ran.said);
    BOOST_TEST(has(ran.said, "usage: make aws TABLE=name REGION=region"),
               ran.said);
    BOOST_TEST(!has(ran.said, "broken"), ran.said);
  }
}

BOOST_AUTO_TEST_SUITE_END()
