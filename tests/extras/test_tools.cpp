// The tools on which other tests' verdicts depend: the gateway, `make aws`, the
// judge of the torture, and how the mutants find the lines to change.
#include <signal.h>
#include <zlib.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/http.hpp"
#include "sigv4/http_answer.hpp"
#include "sigv4/sigv4.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/shell.hpp"
#include "tests/torture/diary.hpp"
#include "tests/torture/history.hpp"
#include "tests/torture/judge.hpp"
#include "tests/torture/mischief.hpp"

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::Transport;
using tests::Engine;
using tests::eventually;
using tests::Fault;
using tests::Gateway;
using tests::has;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;
using torture::History;
using torture::MutexLog;

// --- The gateway -------------------------------------------------------------

// What the client and the engine see of each fault.  Signatures and their times
// are checked as DynamoDB checks them.
BOOST_AUTO_TEST_SUITE(gateway)

namespace {

std::string header(const HttpAnswer& answer, const char* name) {
  return std::string(answer.header(name));
}

std::string crc32_of(const std::string& body) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(body.data());
  return std::to_string(crc32(0, bytes, static_cast<unsigned>(body.size())));
}

// A signed request.
struct Call {
  std::vector<std::string> headers;  // "Name: value"
  std::string body;

  std::string head() const {
    std::string text;
    for (const std::string& line : headers) text += line + "\n";
    return text;
  }
};

// A client that can sign with a wrong time.
class Client {
 public:
  explicit Client(std::string url, ddbmutex::Credentials keys,
                  const std::string& ca_file = {})
      : url_(std::move(url)),
        keys_(std::move(keys)),
        exchange_(with(ca_file)) {}

  // How far its clock is ahead.
  std::chrono::seconds ahead{0};
  // Whether a signed header has the hash of the body.
  bool tells_hash = false;

  Call signed_call(const std::string& action, const std::string& body) {
    const std::string host = url_.substr(url_.find("//") + 2);
    const std::string target = "DynamoDB_20120810." + action;
    const std::string type = "application/x-amz-json-1.0";
    const std::string hash = ddbmutex::sigv4::sha256_hex(body);
    std::vector<ddbmutex::sigv4::Header> headers = {
        {"Content-Type", type}, {"Host", host}, {"X-Amz-Target", target}};
    if (tells_hash) headers.push_back({"X-Amz-Content-Sha256", hash});
    const ddbmutex::sigv4::Signed signature = ddbmutex::sigv4::sign(
        {"POST", "/", headers, hash},
        {keys_.access_key_id, keys_.secret_access_key, keys_.session_token},
        {"eu-west-1", "dynamodb"}, std::time(nullptr) + ahead.count());
    Call call{{}, body};
    for (const auto& [name, value] : headers) {
      call.headers.push_back(std::string(name) + ": " + std::string(value));
    }
    call.headers.push_back("X-Amz-Date: " + signature.amz_date);
    call.headers.push_back("Authorization: " + signature.authorization);
    if (!keys_.session_token.empty()) {
      call.headers.push_back("X-Amz-Security-Token: " + keys_.session_token);
    }
    return call;
  }

  HttpAnswer call(const std::string& action, const std::string& body) {
    return send(signed_call(action, body));
  }
  // On the connection of the last one, if it is still open.
  HttpAnswer send(const Call& call) {
    tests::start(exchange_, url_ + "/", call.head(), call.body);
    if (exchange_.under_way()) {
      drive(exchange_, BootClock::now() + tests::kPlenty, nullptr);
    }
    exchange_.end(Transport::timed_out);
    return std::move(exchange_.answer());
  }

 private:
  static ddbmutex::sigv4::HttpOptions with(const std::string& ca_file) {
    ddbmutex::sigv4::HttpOptions options;
    options.ca_file = ca_file;
    options.connect_timeout = tests::kPlenty;
    return options;
  }

  const std::string url_;
  const ddbmutex::Credentials keys_;
  ddbmutex::sigv4::Exchange exchange_;
};

// A row that counts how often a write to it was applied.
class Row {
 public:
  Row() : engine_(Engine::running(tests::any_engine_kind())) {
    static int rows = 0;
    key_ = "gateway-" + std::to_string(++rows);
  }

  Engine& engine() { return engine_; }
  std::string write() const {
    return start() + R"(,"UpdateExpression":"ADD n :one",)"
                     R"("ExpressionAttributeValues":{":one":{"N":"1"}},)"
                     R"("ReturnValues":"ALL_NEW"})";
  }
  int written() {
    const std::string row =
        engine_.must_call("GetItem", start() + R"(,"ConsistentRead":true})");
    const std::string before = R"("n":{"N":")";
    const auto at = row.find(before);
    return at == row.npos ? 0 : std::stoi(row.substr(at + before.size()));
  }

 private:
  std::string start() const {
    return R"({"TableName":")" + engine_.table() + R"(","Key":{"name":{"S":")" +
           key_ + R"("}})";
  }

  Engine& engine_;
  std::string key_;
};

// A gateway before the suite's engine.
struct BeforeEngine {
  Row row;
  Gateway gateway{row.engine().url()};
  Client client{gateway.url(), gateway.keys(), gateway.ca_file()};

  HttpAnswer write() { return client.call("UpdateItem", row.write()); }
  // How often the row has been written, once no request is in flight.
  int written() {
    gateway.wait_until_quiet();
    return row.written();
  }
};

// A gateway before a server that answers everything with "{}".
struct BeforeServer {
  Client client() { return Client(gateway.plain_url(), gateway.keys()); }
  HttpAnswer put() { return client().call("PutItem", "{}"); }

  ScriptedServer server{[](const SeenRequest&) { return Reply::ok("{}"); }};
  Gateway gateway{server.url(), Gateway::Settings{false}};
};

// A fault of a kind that waits, until it is let go.
Fault waiting(const std::string& kind) {
  Fault fault;
  fault.kind = kind;
  fault.from = 1h;
  return fault;
}

}  // namespace

// --- Faults ------------------------------------------------------------------

// What the client sees of a fault, and how often the write is applied.
struct Spoiled {
  const char* kind;
  int status;  // 0: no answer.
  const char* says;
  int applied;
};
constexpr Spoiled kSpoiled[] = {
    {"reset", 0, "", 0},
    {"close", 0, "", 0},
    {"half-close", 0, "", 0},
    {"reset-answer", 0, "", 1},
    {"half-close-answer", 0, "", 1},
    {"truncate", 0, "", 1},
    {"throttle", 400, "#ProvisionedThroughputExceededException", 0},
    {"500", 500, "#InternalServerError", 0},
    {"503", 503, "#ServiceUnavailable", 0},
    {"throttle-after", 400, "#ProvisionedThroughputExceededException", 1},
    {"500-after", 500, "#InternalServerError", 1},
    {"503-after", 503, "#ServiceUnavailable", 1},
    {"portal", 200, "<html>", 0},
    {"empty", 200, "", 0},
    {"garbage", 200, "<html>", 1},
    {"corrupt", 200, "", 1}};

BOOST_FIXTURE_TEST_CASE(fault_spoils_one_request_before_or_after_the_write,
                        BeforeEngine) {
  int applied = 0;
  for (const Spoiled& fault : kSpoiled) {
    BOOST_TEST_CONTEXT(fault.kind) {
      gateway.fault("UpdateItem", fault.kind);
      const HttpAnswer answer = write();
      BOOST_TEST((answer.transport == Transport::complete) ==
                 (fault.status != 0));
      if (fault.status != 0) {
        BOOST_TEST(answer.status == fault.status);
        BOOST_TEST(has(answer.body, fault.says));
      }
      if (fault.kind == std::string("corrupt")) {
        BOOST_TEST(header(answer, "x-amz-crc32") != crc32_of(answer.body));
      }
      applied += fault.applied;
      BOOST_TEST(written() == applied);
      BOOST_TEST(gateway.counts().faults(fault.kind) == 1);
    }
  }
  BOOST_TEST(write().status == 200);
}

BOOST_AUTO_TEST_CASE(fault_that_waits_goes_on_when_it_is_let_go) {
  BeforeServer before;
  Gateway& gateway = before.gateway;
  for (const std::string kind :
       {"delay", "late", "reorder", "delay-answer", "duplicate"}) {
    BOOST_TEST_CONTEXT(kind) {
      gateway.clear();
      gateway.forget();
      gateway.add(waiting(kind));
      auto answer =
          std::async(std::launch::async, [&] { return before.put().status; });
      BOOST_TEST(
          eventually([&] { return gateway.counts().faults(kind) == 1; }));
      BOOST_TEST(gateway.counts().under_way() == 1);
      BOOST_TEST(eventually([&] {
        gateway.let_go();
        return gateway.counts().under_way() == 0;
      }));
      BOOST_TEST(answer.get() == (kind == "late" ? 0 : 200));
      BOOST_TEST(gateway.counts().applied("PutItem") ==
                 (kind == "duplicate" ? 2 : 1));
    }
  }
}

// --- Signatures ------------------------------------------------------------

// Puts another value in the place of a header's; without one, takes the header
// away.
void replace(Call& call, const std::string& name, const std::string& value) {
  auto& headers = call.headers;
  headers.erase(std::remove_if(headers.begin(), headers.end(),
                               [&](const std::string& header) {
                                 return header.rfind(name + ":", 0) == 0;
                               }),
                headers.end());
  if (!value.empty()) headers.push_back(name + ": " + value);
}

std::string header_of(const Call& call, const std::string& name) {
  for (const std::string& header : call.headers) {
    if (header.rfind(name + ": ", 0) == 0)
      return header.substr(name.size() + 2);
  }
  return {};
}

BOOST_AUTO_TEST_CASE(request_changed_after_it_was_signed_is_refused) {
  BeforeServer before;
  Client client = before.client();
  const Call call = client.signed_call("PutItem", R"({"a":1})");
  std::vector<Call> forged(6, call);
  forged[0].body = R"({"a":2})";
  replace(forged[1], "X-Amz-Target", "DynamoDB_20120810.DeleteItem");
  replace(forged[2], "Host", "127.0.0.2:1");
  // One second on.
  std::string time = header_of(call, "X-Amz-Date");
  time[14] = time[14] == '9' ? '8' : static_cast<char>(time[14] + 1);
  replace(forged[3], "X-Amz-Date", time);
  // With the hash in a signed header, another body must still be refused.
  client.tells_hash = true;
  forged[4] = client.signed_call("PutItem", call.body);
  BOOST_TEST(client.send(forged[4]).status == 200);
  forged[4].body = forged[0].body;
  std::string authorization = header_of(call, "Authorization");
  authorization.replace(authorization.find("eu-west-1"), 9, "eu-west-2");
  replace(forged[5], "Authorization", authorization);
  for (std::size_t i = 0; i < forged.size(); ++i) {
    BOOST_TEST_CONTEXT("forgery " << i) {
      const HttpAnswer answer = client.send(forged[i]);
      BOOST_TEST(answer.status == 400);
      BOOST_TEST(has(answer.body, "#InvalidSignatureException"));
    }
  }
  BOOST_TEST(before.gateway.counts().bad_signatures() == 6);
  BOOST_TEST(before.server.request_count() == 1);
  BOOST_TEST(client.send(call).status == 200);
}

BOOST_AUTO_TEST_CASE(signature_outside_five_minutes_is_refused) {
  BeforeServer before;
  Client client = before.client();
  client.ahead = -6min;
  const HttpAnswer early = client.call("PutItem", "{}");
  BOOST_TEST(early.status == 400);
  BOOST_TEST(has(early.body, "#InvalidSignatureException"));
  BOOST_TEST(has(early.body, "Signature expired: "));
  client.ahead = 6min;
  const HttpAnswer late = client.call("PutItem", "{}");
  BOOST_TEST(late.status == 400);
  BOOST_TEST(has(late.body, "Signature not yet current: "));
  BOOST_TEST(before.gateway.counts().early_signatures() == 1);
  BOOST_TEST(before.gateway.counts().late_signatures() == 1);
  BOOST_TEST(before.gateway.counts().bad_signatures() == 0);
  BOOST_TEST(before.gateway.counts().good_signatures() == 0);
  BOOST_TEST(before.server.request_count() == 0);
  for (const auto within : {-4min, 4min}) {
    client.ahead = within;
    BOOST_TEST(client.call("PutItem", "{}").status == 200);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- `make aws` --------------------------------------------------------------

// Run against the gateway, which speaks TLS, checks signatures and tokens, and
// makes and deletes tables as slowly as AWS does.  However the run ends, no
// table may be left, and no other table may be touched.
BOOST_AUTO_TEST_SUITE(live)

namespace {

// Longer than any run takes.
constexpr std::chrono::minutes kLongest{10};

std::string words_of(const std::vector<std::string>& all, const char* between) {
  std::string text;
  for (const std::string& one : all)
    text += (text.empty() ? "" : between) + one;
  return text;
}

// The program, with a gateway before an engine.
class Live {
 public:
  explicit Live(std::chrono::milliseconds slow_tables = 0ms)
      : gateway(engine.url(), settings(slow_tables)) {}

  // Writes a profile with temporary keys, which the library will find.
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
    return tests::all_matches(all, "(\"" + table + "[^\"]*\")");
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

// The arguments of a run with a case for each group and each table; `make soak`
// runs all cases.
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
          "layouts_on_engines/lease_is_written_in_the_form_that_the_row_has",
          "manage/list_of_a_name_tells_all_its_sort_values",
          "wrong_table/wrong_key_told_to_a_renewal_is_not_the_tables"};
}

constexpr char kOneCase[] =
    "ddb_mutex/lock_and_unlock_are_one_put_and_one_delete";

}  // namespace

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

// For its first table and for another.
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

// During a case, which cannot end, and while the tables are still being made.
BOOST_AUTO_TEST_CASE(interrupted_run_leaves_no_table) {
  for (const int number : {SIGINT, SIGTERM}) {
    Live live(4s);
    live.set_keys();
    tests::Fault held{"PutItem", "delay"};
    held.times = 0;
    held.from = 1h;
    live.gateway.add(held);
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

// --- The judge of the torture ------------------------------------------------

// For each rule, what it just allows and what it just forbids.
BOOST_AUTO_TEST_SUITE(torture_judge)

namespace {

// --- Histories written down --------------------------------------------------

// Replaces "12ms", "12ms+1" and "12ms-1" by that many nanoseconds.
std::string in_nanoseconds(const std::string& word) {
  const auto unit = word.find("ms");
  if (unit == word.npos || word.find_first_not_of("0123456789-") != unit) {
    return word;
  }
  const std::string more = word.substr(unit + 2);
  const long long time =
      std::stoll(word.substr(0, unit)) * 1000000 + std::stoll("0" + more);
  return std::to_string(time + (more.empty() ? 0 : std::stoll(more)));
}

std::string expanded(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string expanded_line;
    for (std::string word; words >> word;) {
      expanded_line +=
          (expanded_line.empty() ? "" : " ") + in_nanoseconds(word);
    }
    all += expanded_line + "\n";
  }
  if (!text.empty() && text.back() != '\n') all.pop_back();
  return all;
}

MutexLog read(const std::string& text) {
  std::istringstream in(expanded(text));
  return torture::read_log(in);
}

// A short run of processes 1 and 2 in which all went well.  A test adds what it
// is about, mostly on the lock `lock`.
class Scene {
 public:
  Scene() {
    log(1, "other", "wants 0 1ms lock\n" + held(1, 2));
    log(2, "other", "wants 0 1ms lock\n" + held(3, 4));
  }

  // An acquisition from one ms to another; of a kept row with its token.
  static std::string held(int from, int to, const std::string& token = {}) {
    const std::string begin = std::to_string(from) + "ms";
    return "acquired 0 " + begin + (token.empty() ? "" : " " + token) +
           "\nheld " + begin + " " + std::to_string(from + 1000) +
           "ms\nended " + std::to_string(to) + "ms\nlet_go " +
           std::to_string(to) + "ms+1\n";
  }

  Scene& log(int process, const std::string& name, const std::string& text) {
    MutexLog log = read("clocks 0 0\n" + text);
    log.process = process;
    log.incarnation = 1;
    log.name = name;
    logs_.push_back(log);
    return *this;
  }
  Scene& lock(int process, const std::string& text) {
    return log(process, "lock", text);
  }
  // A line of the run's own record, about the processes.
  Scene& event(const std::string& line) {
    events_ += line + "\n";
    return *this;
  }
  Scene& ends(int process, const std::string& how) {
    ends_[process] = how;
    return *this;
  }
  Scene& killed(int process, const std::string& time) {
    const std::string who = " " + std::to_string(process) + " 1 ";
    return ends(process, "kill" + who + time + "\nexit" + who + time + " 137");
  }
  // After the run, somebody new takes the lock and gets this token.
  Scene& taken(const std::string& name, int token) {
    taken_[name] = token;
    return *this;
  }
  // The same for a lock whose row is kept.
  Scene& kept(int process, const std::string& text) {
    return lock(process, "kept\n" + text).taken("lock", 99);
  }

  History history() const {
    std::string events = "start 1 1 0 0\nstart 2 1 0 0\n" + events_;
    for (const auto& [process, how] : ends_) events += how + "\n";
    for (const auto& [name, token] : taken_) {
      events += "taken " + name + " " + std::to_string(token) + "\n";
    }
    std::istringstream in(expanded(events));
    History history;
    torture::read_events(in, history);
    history.logs = logs_;
    torture::complete(history);
    return history;
  }

  std::vector<std::string> judged() const { return judge(history()); }
  // The names of the rules that were broken, in order.
  std::string broken() const {
    std::vector<std::string> all;
    for (const std::string& one : judged()) {
      BOOST_TEST_MESSAGE(one);
      all.push_back(one.substr(0, one.find(':')));
    }
    std::sort(all.begin(), all.end());
    std::string names;
    for (const std::string& one : all) {
      names += (names.empty() ? "" : " ") + one;
    }
    return names;
  }

 private:
  std::vector<MutexLog> logs_;
  std::string events_;
  std::map<int, std::string> ends_ = {{1, "exit 1 1 50000ms 0"},
                                      {2, "exit 2 1 50000ms 0"}};
  std::map<std::string, int> taken_ = {{"lock", 0}, {"other", 0}};
};

// A claim that was promised until then, of a process that is killed before it
// says more or loses the lock.
std::string promised(const std::string& from, const std::string& until) {
  return "wants 0 " + from + " lock\nacquired 0 " + from + "\nheld " + from +
         " " + until + "\n";
}

// Its lease ends at 1,010 ms.
const std::string kLost = promised("10ms", "1010ms");

}  // namespace

// --- Reading -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_log_that_makes_no_sense_is_a_problem) {
  for (const char* text :
       {"nonsense 1\n",
        "\n",
        "clocks 1\n",
        "clocks x 1\n",
        "wants 0 1ms\n",
        "wants 0 1ms lick\n",
        "wants 0 1ms lock 5\n",
        "acquired 0 1ms\n",
        "without 0 1ms busy\n",
        "held 1ms 2ms\n",
        "ended 1ms\n",
        "lost_seen 1ms\n",
        "let_go 1ms\n",
        "lost 1ms\n",
        "lost stolen 1ms\n",
        "wants 0 1ms lock\nwants 0 2ms lock\n",
        "wants 0 2ms lock\nacquired 0 1ms\n",
        "wants 0 1ms lock\nacquired 1 2ms\n",
        "wants 0 1ms lock\nwithout 0 2ms bored\n",
        "wants 0 2ms lock\nwithout 0 1ms busy\n",
        "wants 0 1ms lock\nacquired 0 2ms\nheld 1ms 9ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nheld 3ms 3ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nlet_go 3ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nended 3ms\nended 4ms\n",
        "wants 0 1ms lock\nacquired 0 2ms 5\n",
        "kept\nwants 0 1ms lock\nacquired 0 2ms\n"}) {
    BOOST_TEST(read(std::string("clocks 0 0\n") + text).problem != "", text);
  }
  BOOST_TEST(read("wants 0 1ms lock\n").problem != "");
}

// --- Overlaps ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_run_in_which_all_went_well_breaks_no_rule) {
  BOOST_TEST(Scene().broken() == "");
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
                 .lock(2, "wants 0 5ms lock\n" + Scene::held(20, 30))
                 .broken() == "");
}

BOOST_AUTO_TEST_CASE(an_overlap_of_a_nanosecond_is_found_and_told) {
  const auto found =
      Scene()
          .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
          .lock(2,
                "wants 0 5ms lock\nacquired 0 20ms-1\nended 21ms\n"
                "let_go 22ms\n")
          .judged();
  BOOST_TEST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0] ==
             "overlap: lock: process 1.1 held it from 0.010000000 s to "
             "0.020000000 s, and process 2.1 held it from 0.019999999 s to "
             "0.021000000 s");
}

BOOST_AUTO_TEST_CASE(an_overlap_with_a_claim_that_is_not_the_last_is_found) {
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 100))
                 .lock(2, "wants 0 5ms lock\n" + Scene::held(20, 30) +
                              "wants 0 40ms lock\n" + Scene::held(90, 95))
                 .broken() == "overlap overlap");
}

// Whether its holder is killed or loses it.
BOOST_AUTO_TEST_CASE(claim_lasts_to_the_end_that_was_promised) {
  const auto next = [](Scene scene, const std::string& time) {
    return scene
        .lock(2, "wants 0 5ms lock\nacquired 0 " + time +
                     "\nended 2000ms\nlet_go 2001ms\n")
        .broken();
  };
  const Scene killed = Scene().lock(1, kLost).killed(1, "15ms");
  const Scene loser =
      Scene().lock(1, kLost +
                          "lost expired 1010ms\nlost_seen 1011ms\n"
                          "let_go 1012ms\n");
  for (const Scene& scene : {killed, loser}) {
    BOOST_TEST(next(scene, "1010ms") == "");
    BOOST_TEST(next(scene, "1010ms-1") == "overlap");
  }
}

BOOST_AUTO_TEST_CASE(two_threads_of_a_process_that_are_in_at_once_are_found) {
  BOOST_TEST(Scene()
                 .lock(1,
                       "wants 0 5ms lock\nwants 1 6ms lock\n"
                       "acquired 0 7ms\nacquired 1 8ms\nended 9ms\n"
                       "ended 10ms\nlet_go 11ms\nlet_go 12ms\n")
                 .broken() == "overlap overlap");
}

// --- Tokens ------------------------------------------------------------------

namespace {

// Processes 1 and 2 take the lock one after the other.
Scene two_tokens(const std::string& first, const std::string& second) {
  return Scene()
      .kept(1, "wants 0 5ms lock\n" + Scene::held(10, 20, first))
      .kept(2, "wants 0 5ms lock\n" + Scene::held(20, 30, second));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_token_that_does_not_grow_is_found_and_told) {
  BOOST_TEST(two_tokens("5", "4").broken() == "token");
  const auto found = two_tokens("6", "5").judged();
  BOOST_TEST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0] ==
             "token: lock: gave 6 to process 1.1 at 0.010000000 s, then 5 to "
             "process 2.1 at 0.020000000 s");
}

BOOST_AUTO_TEST_CASE(the_token_after_the_run_is_higher_than_all_in_it) {
  const auto taken = [](int token) {
    return two_tokens("5", "7").taken("lock", token).broken();
  };
  BOOST_TEST(taken(8) == "");
  BOOST_TEST(taken(7) == "token");
}

// --- Errors ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(only_the_timed_forms_may_fail_and_only_for_a_time) {
  const auto ends = [](const std::string& kind, const std::string& why) {
    return Scene()
        .lock(1, "wants 0 5ms " + kind + "\nwithout 0 6ms " + why + "\n")
        .broken();
  };
  const auto error = [](ddbmutex::Errc code) {
    return "error " + std::to_string(static_cast<int>(code)) + "-" +
           make_error_code(code).message();
  };
  using ddbmutex::Errc;
  for (const Errc code :
       {Errc::unreachable, Errc::disconnected, Errc::timed_out, Errc::throttled,
        Errc::unavailable, Errc::bad_answer}) {
    BOOST_TEST(ends("try", error(code)) == "", error(code));
    BOOST_TEST(ends("try_for", error(code)) == "", error(code));
    BOOST_TEST(ends("lock", error(code)) == "error", error(code));
  }
  for (const Errc code : {Errc::no_keys, Errc::bad_keys, Errc::bad_record,
                          Errc::no_table, Errc::bad_request}) {
    BOOST_TEST(ends("try_for", error(code)) == "error", error(code));
  }
  BOOST_TEST(ends("try", "busy") == "");
  BOOST_TEST(ends("lock", "busy") == "error");
}

// --- Processes ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_process_ends_well_or_is_killed_by_the_torture) {
  BOOST_TEST(Scene().killed(1, "40000ms").broken() == "");
  BOOST_TEST(Scene().ends(1, "exit 1 1 40000ms 137").broken() == "process");
  BOOST_TEST(Scene().ends(1, "exit 1 1 40000ms 1").broken() == "process");
  BOOST_TEST(Scene().ends(1, "exit 1 1 40000ms 134").broken() == "process");
  BOOST_TEST(
      Scene().ends(1, "kill 1 1 40000ms\nexit 1 1 40000ms 139").broken() ==
      "process");
  BOOST_TEST(Scene().ends(1, "").ends(1, "calendar 1 1 5ms 0").broken() ==
             "process");
}

BOOST_AUTO_TEST_CASE(a_process_that_complains_or_hangs_is_found) {
  BOOST_TEST(Scene().event("complaint 1 1 data race").broken() == "process");
  BOOST_TEST(Scene().killed(1, "40000ms").event("hung 1 1 39999ms").broken() ==
             "process");
}

BOOST_AUTO_TEST_CASE(a_log_is_well_formed_and_complete_unless_killed) {
  const std::string cut = "wants 0 100ms lock\nacq";
  BOOST_TEST(Scene().lock(1, cut).killed(1, "200ms").broken() == "");
  BOOST_TEST(Scene().lock(1, "want").broken() == "process");
  // It ends during a call, while it holds the lock, and before it lets go.
  BOOST_TEST(Scene().lock(1, "wants 0 5ms lock\n").broken() == "process");
  BOOST_TEST(Scene().lock(1, kLost).broken() == "process");
  BOOST_TEST(Scene().lock(1, kLost + "ended 20ms\n").broken() == "process");
  BOOST_TEST(Scene().lock(1, "nonsense\n").killed(1, "200ms").broken() ==
             "process");
  BOOST_TEST(Scene().lock(7, "").broken() == "process");
}

// --- The run and its end -----------------------------------------------------

// Of 150 acquisitions, or of fewer, as on a slow machine.
BOOST_AUTO_TEST_CASE(each_process_gets_in) {
  std::string many;
  for (int i = 0; i < 148; ++i) {
    many += "wants 0 " + std::to_string(10 + i) + "ms lock\n" +
            Scene::held(10 + i, 10 + i);
  }
  Scene scene;
  scene.event("start 3 1 1ms 0\nexit 3 1 50000ms 0");
  BOOST_TEST(scene.broken() == "");
  BOOST_TEST(scene.log(1, "other", many).broken() == "run");
  BOOST_TEST(scene.lock(3, "wants 0 1ms lock\n" + Scene::held(1, 2)).broken() ==
             "");
  BOOST_TEST(judge(History()).size() == 1u);
}

BOOST_AUTO_TEST_CASE(each_lock_is_free_in_the_end) {
  BOOST_TEST(Scene().log(1, "third", "").taken("third", 0).broken() == "");
  BOOST_TEST(Scene().log(1, "third", "").broken() == "end");
}

// --- The plan ----------------------------------------------------------------

// Faults recognise their requests by a part of the text, and that may change.
BOOST_AUTO_TEST_CASE(faults_meet_every_request_about_a_lock) {
  const tests::Engine& engine =
      tests::Engine::running(tests::any_engine_kind());
  tests::Gateway gateway(engine.url());
  std::set<std::string> actions;
  for (const tests::Fault& fault : torture::faults()) {
    actions.insert(fault.action);
  }
  for (const std::string& action : actions) {
    gateway.fault(action, "delay", 0);
  }
  ddbmutex::Options options;
  options.table =
      std::make_shared<ddbmutex::Table>(gateway.table_options(engine.table()));
  options.ttl = 60s;
  for (const bool keep_row : {false, true}) {
    options.keep_row = keep_row;
    ddbmutex::DdbMutex mutex(keep_row ? "mischief-kept" : "mischief", options);
    mutex.lock();
    mutex.renew();
    mutex.release();
  }
  const tests::GatewayCounts counts = gateway.counts();
  BOOST_TEST(counts.all_requests() >= 6);
  BOOST_TEST(counts.all_faults() == counts.all_requests());
}

BOOST_AUTO_TEST_SUITE_END()

// --- How the mutants find the lines to change --------------------------------

BOOST_AUTO_TEST_SUITE(mutant_patches)

// The text after a mutant has replaced `if (locked_) return;` in Door::open by
// `log(locked_);`; the name of the error if it cannot.
std::string without_lock(const std::string& text) {
  return tests::shell(
             "node -e '"
             "const { applyChange } = require(\"./tests/mutants/patch.js\");"
             "try { console.log(applyChange(`" +
             text +
             "`, { file: \"door.cpp\", name: \"Door::open\","
             "  before: [\"if (locked_) return;\"],"
             "  after: [\"log(locked_);\"] })); }"
             "catch (error) { console.log(error.constructor.name); }'")
      .said;
}

BOOST_AUTO_TEST_CASE(lines_are_found_where_they_are_named_or_with_other_names) {
  const std::string other = "void Door::close() {\n  if (locked_) return;\n}\n";
  BOOST_TEST(
      without_lock(other +
                   "void Door::open() {\n  if (locked_)\n    return;  // !\n}\n"
                   "") ==
      other + "void Door::open() {\n  log(locked_);  // !\n}\n\n");
  BOOST_TEST(
      without_lock("void Door::open() {\n  if (is_locked_) return;\n}\n") ==
      "void Door::open() {\n  log(is_locked_);\n}\n\n");
}

BOOST_AUTO_TEST_CASE(lines_that_are_gone_or_in_two_places_are_stale) {
  for (const char* body :
       {"  if (!locked_) return;\n", "  if (other_) return;\n  locked_ = 1;\n",
        "  if (one_) return;\n  if (other_) return;\n"}) {
    BOOST_TEST(without_lock(std::string("void Door::open() {\n") + body +
                            "}\n") == "StaleError\n");
  }
}

BOOST_AUTO_TEST_SUITE_END()
