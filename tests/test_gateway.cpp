// The gateway of the tests does what it says: each fault as its client and the
// engine see it, signatures and time as DynamoDB checks them, its modes, its
// counts; and nothing that clients or engines do brings it down.
#include <signal.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/utc.hpp"
#include "tests/gateway/client.hpp"
#include "tests/support/durable_engine.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

namespace {

using namespace std::chrono_literals;
using gateway_tests::Call;
using gateway_tests::Client;
using gateway_tests::RawClient;
using Ending = RawClient::Ending;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::Transport;
using std::chrono::milliseconds;
using tests::Engine;
using tests::eventually;
using tests::Fault;
using tests::Gateway;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

int port_of(const std::string& url) {
  return std::stoi(url.substr(url.rfind(':') + 1));
}

std::string header(const HttpAnswer& answer, const char* name) {
  return std::string(answer.header(name));
}

std::string crc32_of(const std::string& body) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(body.data());
  return std::to_string(crc32(0, bytes, static_cast<unsigned>(body.size())));
}

// Seconds since 1970; a failure if it has none.
std::int64_t date(const HttpAnswer& answer) {
  const auto seconds = ddbmutex::sigv4::parse_http_date(header(answer, "Date"));
  BOOST_TEST_REQUIRE(seconds.has_value(), "no Date: " << answer.headers);
  return *seconds;
}

// Not std::time(), which may be some milliseconds behind.
std::int64_t unix_now() {
  return std::chrono::system_clock::now().time_since_epoch() / 1s;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

void check_as_dynamodb_answers(const HttpAnswer& answer) {
  BOOST_TEST(header(answer, "x-amzn-RequestId").size() == 52u);
  BOOST_TEST(header(answer, "x-amz-crc32") == crc32_of(answer.body));
  BOOST_TEST(header(answer, "Content-Type") == "application/x-amz-json-1.0");
}

// A row that counts how often a write to it was applied.
class Row {
 public:
  Row() : engine_(Engine::running(tests::any_engine_kind())) {
    static int rows = 0;
    key_ = "gateway-" + std::to_string(++rows);
  }

  Engine& engine() { return engine_; }
  std::string key() const { return key_; }
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

// Before the suite's engine, with and without TLS.
struct BeforeEngine {
  Row row;
  Gateway gateway{row.engine().url()};
  Client client{gateway.url(), gateway.keys(), gateway.ca_file()};
  Client plain{gateway.plain_url(), gateway.keys()};

  HttpAnswer write() { return client.call("UpdateItem", row.write()); }
  // How often the row has been written, once nothing is under way.
  int written() {
    gateway.wait_until_quiet();
    return row.written();
  }
  RawClient::Heard write_raw(RawClient& raw) {
    BOOST_TEST(raw.say(plain.text_of("UpdateItem", row.write())));
    return raw.hear();
  }
};

// Before a stand-in for an engine that notes when it was asked what.
class BeforeServer {
 public:
  explicit BeforeServer(const Gateway::Settings& settings = {false}) {
    gateway = std::make_unique<Gateway>(server.url(), settings);
  }

  // When so many requests came; a failure if they do not.
  std::vector<BootTime> times(std::size_t count) {
    const bool came = eventually([&] { return noted().size() >= count; });
    BOOST_TEST_REQUIRE(came, noted().size() << " requests");
    return noted();
  }
  std::vector<std::string> bodies() {
    std::vector<std::string> all;
    for (const auto& request : server.requests()) all.push_back(request.body);
    return all;
  }
  Client client() { return Client(gateway->plain_url(), gateway->keys()); }
  HttpAnswer call(const std::string& body,
                  const std::string& action = "PutItem") {
    return Client(gateway->plain_url()).call(action, body);
  }
  int status(const std::string& action = "PutItem") {
    return call("{}", action).status;
  }

 private:
  std::vector<BootTime> noted() {
    std::lock_guard<std::mutex> guard(mutex_);
    return times_;
  }

  std::mutex mutex_;
  std::vector<BootTime> times_;  // GUARDED_BY(mutex_)

 public:
  ScriptedServer server{[this](const SeenRequest&) {
    std::lock_guard<std::mutex> guard(mutex_);
    times_.push_back(BootClock::now());
    return Reply::ok("{}");
  }};
  std::unique_ptr<Gateway> gateway;
};

// Node's timers are of whole milliseconds, and may be early by one.
constexpr milliseconds kWait{150};
constexpr milliseconds kAtLeast{148};

Fault waiting(const std::string& kind) {
  Fault fault;
  fault.kind = kind;
  fault.from = kWait;
  return fault;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gateway)

// --- Without faults --------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(open_gateway_hands_on_requests_and_answers,
                        BeforeEngine) {
  for (Client* one : {&client, &plain}) {
    const HttpAnswer answer = one->call("UpdateItem", row.write());
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(has(answer.body, R"("n":{"N":")"));
    check_as_dynamodb_answers(answer);
  }
  BOOST_TEST(written() == 2);
  const auto counts = gateway.counts();
  BOOST_TEST(counts.requests("UpdateItem") == 2);
  BOOST_TEST(counts.applied("UpdateItem") == 2);
  BOOST_TEST(counts.good_signatures() == 2);
  BOOST_TEST(counts.refused_signatures() == 0);
  BOOST_TEST(counts.all_faults() == 0);
}

BOOST_FIXTURE_TEST_CASE(error_of_the_engine_reaches_the_client, BeforeEngine) {
  const HttpAnswer answer = client.call("GetItem", R"({"TableName":"none"})");
  BOOST_TEST(answer.status == 400);
  BOOST_TEST(has(answer.body, "__type"));
  check_as_dynamodb_answers(answer);
}

BOOST_FIXTURE_TEST_CASE(lock_of_the_library_works_through_it_over_tls,
                        BeforeEngine) {
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(
      gateway.table_options(row.engine().table()));
  ddbmutex::DdbMutex mutex(row.key(), options);
  mutex.lock();
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
  const auto counts = gateway.counts();
  BOOST_TEST(counts.applied("PutItem") == 1);
  BOOST_TEST(counts.applied("DeleteItem") == 1);
  BOOST_TEST(counts.refused_signatures() == 0);
}

BOOST_AUTO_TEST_CASE(client_without_the_ca_does_not_trust_it) {
  BeforeServer before({true});
  Client stranger(before.gateway->url());
  BOOST_TEST(
      (stranger.call("PutItem", "{}").transport == Transport::bad_certificate));
  BOOST_TEST(before.gateway->counts().all_requests() == 0);
}

BOOST_AUTO_TEST_CASE(what_is_no_call_of_the_api_is_not_found) {
  BeforeServer before;
  RawClient raw(port_of(before.gateway->plain_url()));
  raw.say("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  BOOST_TEST(raw.hear().text.rfind("HTTP/1.1 404 ", 0) == 0u);
  BOOST_TEST(before.server.request_count() == 0);
}

// --- Faults before the engine ----------------------------------------------

BOOST_FIXTURE_TEST_CASE(drop_answers_nothing_and_applies_nothing,
                        BeforeEngine) {
  gateway.fault("UpdateItem", "drop");
  const HttpAnswer answer = client.call_until(
      "UpdateItem", row.write(),
      [this] { return gateway.counts().faults("drop") == 1; });
  BOOST_TEST((answer.transport == Transport::timed_out));
  BOOST_TEST(written() == 0);
  BOOST_TEST(gateway.counts().faults("drop") == 1);
  BOOST_TEST(gateway.counts().all_applied() == 0);
  BOOST_TEST(write().status == 200);
}

const std::vector<std::pair<std::string, Ending>> kEndings = {
    {"reset", Ending::reset},
    {"close", Ending::closed},
    {"half-close", Ending::closed},
    {"reset-answer", Ending::reset},
    {"half-close-answer", Ending::closed}};

BOOST_DATA_TEST_CASE(connection_ends_as_the_fault_says_without_an_answer,
                     boost::unit_test::data::xrange(kEndings.size())) {
  const auto& [kind, ending] = kEndings[sample];
  const int applied = has(kind, "-answer") ? 1 : 0;
  BOOST_TEST_CONTEXT(kind) {
    BeforeEngine before;
    before.gateway.fault("UpdateItem", kind, 2);
    RawClient raw(port_of(before.gateway.plain_url()));
    const auto heard = before.write_raw(raw);
    BOOST_TEST(heard.text == "");
    BOOST_TEST(heard.ending == ending);
    BOOST_TEST(before.written() == applied);

    // And over TLS.
    BOOST_TEST((before.write().transport == Transport::broken));
    BOOST_TEST(before.written() == 2 * applied);
    BOOST_TEST(before.gateway.counts().faults(kind) == 2);
    BOOST_TEST(before.write().status == 200);
  }
}

BOOST_FIXTURE_TEST_CASE(closed_connection_is_gone_and_a_half_closed_is_not,
                        BeforeEngine) {
  RawClient closed(port_of(gateway.plain_url()));
  gateway.fault("*", "close");
  write_raw(closed);
  BOOST_TEST(closed.is_alone(tests::kPlenty));
  for (const char* kind : {"half-close", "half-close-answer"}) {
    RawClient half(port_of(gateway.plain_url()));
    gateway.fault("*", kind);
    write_raw(half);
    BOOST_TEST(!half.is_alone(100ms), kind);
  }
}

struct Refusal {
  std::string kind;
  int status;
  std::string type;
};
const std::vector<Refusal> kRefusals = {
    {"throttle", 400, "#ProvisionedThroughputExceededException"},
    {"500", 500, "#InternalServerError"},
    {"503", 503, "#ServiceUnavailable"},
    {"throttle-after", 400, "#ProvisionedThroughputExceededException"},
    {"500-after", 500, "#InternalServerError"},
    {"503-after", 503, "#ServiceUnavailable"}};

BOOST_FIXTURE_TEST_CASE(refusal_comes_before_or_after_the_write, BeforeEngine) {
  int applied = 0;
  for (const Refusal& refusal : kRefusals) {
    BOOST_TEST_CONTEXT(refusal.kind) {
      applied += has(refusal.kind, "-after") ? 1 : 0;
      gateway.fault("UpdateItem", refusal.kind);
      const HttpAnswer answer = write();
      BOOST_TEST(answer.status == refusal.status);
      BOOST_TEST(has(answer.body, refusal.type));
      BOOST_TEST(header(answer, "x-amz-retry-after") == "");
      check_as_dynamodb_answers(answer);
      BOOST_TEST(written() == applied);
      BOOST_TEST(gateway.counts().faults(refusal.kind) == 1);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(refusal_tells_when_to_come_again_if_told_to,
                        BeforeEngine) {
  for (const Refusal& refusal : kRefusals) {
    Fault fault;
    fault.kind = refusal.kind;
    fault.retry_after = 1234ms;
    gateway.add(fault);
    BOOST_TEST(header(write(), "x-amz-retry-after") == "1234", refusal.kind);
  }
}

BOOST_FIXTURE_TEST_CASE(strangers_page_comes_with_200_and_a_wrong_date,
                        BeforeEngine) {
  int applied = 0;
  for (const char* kind : {"portal", "empty", "garbage"}) {
    BOOST_TEST_CONTEXT(kind) {
      applied += kind == std::string("garbage") ? 1 : 0;
      gateway.fault("UpdateItem", kind);
      const HttpAnswer answer = write();
      BOOST_TEST(answer.status == 200);
      BOOST_TEST(has(answer.body, "<html>") == (kind != std::string("empty")));
      BOOST_TEST(header(answer, "x-amzn-RequestId") == "");
      BOOST_TEST(date(answer) < unix_now() - 80000);
      BOOST_TEST(written() == applied);
    }
  }
}

BOOST_AUTO_TEST_CASE(delayed_request_reaches_the_engine_so_much_later) {
  BeforeServer before;
  before.gateway->add(waiting("delay"));
  const HttpAnswer answer = before.call("{}");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST((before.times(1)[0] - answer.sent_at >= kAtLeast));
}

BOOST_AUTO_TEST_CASE(delayed_request_is_applied_although_its_client_has_gone) {
  BeforeServer before;
  Fault fault = waiting("delay");
  fault.from = 1h;
  before.gateway->add(fault);
  Client client = before.client();
  const HttpAnswer answer = client.call_until("PutItem", "{}", [&] {
    return before.gateway->counts().faults("delay") == 1;
  });
  BOOST_TEST((answer.transport == Transport::timed_out));
  BOOST_TEST(before.server.request_count() == 0);
  before.gateway->let_go();
  BOOST_TEST(before.server.wait_for_requests(1, tests::kPlenty));
}

// Once each has come so far.
BOOST_AUTO_TEST_CASE(what_waits_for_its_time_goes_on_when_it_is_let_go) {
  for (const std::string kind :
       {"delay", "late", "reorder", "delay-answer", "duplicate"}) {
    BOOST_TEST_CONTEXT(kind) {
      BeforeServer before;
      Gateway& gateway = *before.gateway;
      Fault fault = waiting(kind);
      fault.from = 1h;
      gateway.add(fault);
      auto answer = std::async(std::launch::async,
                               [&] { return before.call("{}").status; });
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

BOOST_AUTO_TEST_CASE(time_to_wait_is_drawn_from_its_range) {
  BeforeServer before;
  Fault fault;
  fault.kind = "delay";
  fault.times = 0;
  fault.from = kWait;
  fault.to = 3 * kWait;
  before.gateway->add(fault);
  BootClock::duration longest{};
  for (int i = 0; i < 8; ++i) {  // Drawn from the seed: always the same.
    const HttpAnswer answer = before.call("{}");
    const auto time = answer.received_at - answer.sent_at;
    BOOST_TEST((time >= kAtLeast));
    longest = std::max(longest, time);
  }
  BOOST_TEST((longest >= 2 * kWait));
}

BOOST_AUTO_TEST_CASE(late_request_is_reset_and_applied_so_much_later) {
  BeforeServer before;
  before.gateway->add(waiting("late"));
  const HttpAnswer answer = before.call("{}");
  BOOST_TEST((answer.transport == Transport::broken));
  BOOST_TEST((before.times(1)[0] - answer.sent_at >= kAtLeast));
  before.gateway->wait_until_quiet();
  BOOST_TEST(before.gateway->counts().applied("PutItem") == 1);
}

BOOST_AUTO_TEST_CASE(reordered_request_goes_after_one_that_came_later) {
  BeforeServer before;
  Fault fault = waiting("reorder");
  fault.from = 1h;
  before.gateway->add(fault);
  auto first = std::async(std::launch::async,
                          [&] { return before.call("first").status; });
  BOOST_TEST(eventually(
      [&] { return before.gateway->counts().faults("reorder") == 1; }));
  BOOST_TEST(before.call("second").status == 200);
  BOOST_TEST(first.get() == 200);
  const std::vector<std::string> order = {"second", "first"};
  BOOST_TEST(before.bodies() == order, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(reordered_request_waits_for_none_about_another_item) {
  const auto about = [](const std::string& name) {
    return R"({"Key":{"name":{"S":")" + name + R"("}}})";
  };
  BeforeServer before;
  Fault fault = waiting("reorder");
  fault.from = 1h;
  before.gateway->add(fault);
  auto first = std::async(std::launch::async,
                          [&] { return before.call(about("a")).status; });
  BOOST_TEST(eventually(
      [&] { return before.gateway->counts().faults("reorder") == 1; }));
  BOOST_TEST(before.call(about("b")).status == 200);
  BOOST_TEST(before.call("{}").status == 200);
  BOOST_TEST(before.bodies().size() == 2u);
  BOOST_TEST(before.call(about("a") + " ").status == 200);
  BOOST_TEST(first.get() == 200);
  const std::vector<std::string> order = {about("b"), "{}", about("a") + " ",
                                          about("a")};
  BOOST_TEST(before.bodies() == order, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(reordered_request_that_no_other_follows_goes_in_time) {
  BeforeServer before;
  before.gateway->add(waiting("reorder"));
  const HttpAnswer answer = before.call("{}");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST((before.times(1)[0] - answer.sent_at >= kAtLeast));
}

// --- Faults after it -------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(dropped_answer_never_comes_but_the_write_is_applied,
                        BeforeEngine) {
  gateway.fault("UpdateItem", "drop-answer");
  const HttpAnswer answer = client.call_until(
      "UpdateItem", row.write(),
      [this] { return gateway.counts().applied("UpdateItem") == 1; });
  BOOST_TEST((answer.transport == Transport::timed_out));
  BOOST_TEST(written() == 1);
}

BOOST_AUTO_TEST_CASE(delayed_answer_comes_so_much_after_it_was_applied) {
  BeforeServer before;
  before.gateway->add(waiting("delay-answer"));
  const HttpAnswer answer = before.call("{}");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST((answer.received_at - before.times(1)[0] >= kAtLeast));
}

BOOST_FIXTURE_TEST_CASE(truncated_answer_ends_in_the_middle_of_its_body,
                        BeforeEngine) {
  gateway.fault("UpdateItem", "truncate", 2);
  RawClient raw(port_of(gateway.plain_url()));
  const auto heard = write_raw(raw);
  BOOST_TEST(heard.ending == Ending::closed);
  const std::string name = "Content-Length: ";
  const auto length = heard.text.find(name);
  BOOST_TEST_REQUIRE(length != heard.text.npos);
  const auto whole = std::stoul(heard.text.substr(length + name.size()));
  const auto came = heard.text.size() - heard.text.find("\r\n\r\n") - 4;
  BOOST_TEST(came == whole / 2);
  BOOST_TEST((write().transport == Transport::broken));  // Over TLS.
  BOOST_TEST(written() == 2);
}

BOOST_FIXTURE_TEST_CASE(corrupt_answer_has_a_wrong_crc32, BeforeEngine) {
  gateway.fault("UpdateItem", "corrupt");
  const HttpAnswer answer = write();
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(header(answer, "x-amz-crc32") != "");
  BOOST_TEST(header(answer, "x-amz-crc32") != crc32_of(answer.body));
  BOOST_TEST(written() == 1);
}

BOOST_AUTO_TEST_CASE(duplicate_is_applied_again_so_much_later) {
  BeforeServer before;
  before.gateway->add(waiting("duplicate"));
  BOOST_TEST(before.status() == 200);
  const auto times = before.times(2);
  BOOST_TEST((times[1] - times[0] >= kAtLeast));
  before.gateway->wait_until_quiet();
  BOOST_TEST(before.gateway->counts().requests("PutItem") == 1);
  BOOST_TEST(before.gateway->counts().applied("PutItem") == 2);
  BOOST_TEST(before.bodies()[0] == before.bodies()[1]);
}

// --- Which requests --------------------------------------------------------

BOOST_AUTO_TEST_CASE(rule_hits_from_the_nth_request_so_many_in_a_row) {
  BeforeServer before;
  Fault fault;
  fault.nth = 3;
  fault.times = 2;
  before.gateway->add(fault);
  std::vector<int> seen;
  for (int i = 0; i < 6; ++i) seen.push_back(before.status());
  const std::vector<int> wanted = {200, 200, 500, 500, 200, 200};
  BOOST_TEST(seen == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rule_without_end_hits_until_the_rules_are_cleared) {
  BeforeServer before;
  before.gateway->fault("*", "500", 0);
  for (int i = 0; i < 5; ++i) BOOST_TEST(before.status() == 500);
  before.gateway->clear();
  BOOST_TEST(before.status() == 200);
}

BOOST_AUTO_TEST_CASE(rule_hits_its_own_action_alone) {
  BeforeServer before;
  before.gateway->fault("PutItem", "500");
  BOOST_TEST(before.status("GetItem") == 200);
  BOOST_TEST(before.status("PutItem") == 500);
}

BOOST_AUTO_TEST_CASE(rule_hits_bodies_with_its_text_alone) {
  BeforeServer before;
  before.gateway->fault("UpdateItem ADD #n", "500");
  before.gateway->fault("* REMOVE", "503");
  BOOST_TEST(before.call(R"({"x":"SET #n"})", "UpdateItem").status == 200);
  BOOST_TEST(before.call(R"({"x":"ADD #n"})", "PutItem").status == 200);
  BOOST_TEST(before.call(R"({"x":"ADD #n"})", "UpdateItem").status == 500);
  BOOST_TEST(before.call(R"({"x":"REMOVE #n"})", "PutItem").status == 503);
}

BOOST_AUTO_TEST_CASE(first_rule_that_hits_acts_and_later_ones_do_not_count_it) {
  BeforeServer before;
  before.gateway->fault("PutItem", "500");
  before.gateway->fault("*", "503", 2);
  BOOST_TEST(before.status() == 500);
  BOOST_TEST(before.status() == 503);
  BOOST_TEST(before.status() == 503);
  BOOST_TEST(before.status() == 200);
}

std::string drawn(BeforeServer& before, int requests) {
  Client client = before.client();
  std::string hits;
  for (int i = 0; i < requests; ++i) {
    hits += client.call("PutItem", "{}").status == 500 ? 'x' : '.';
  }
  return hits;
}

BOOST_AUTO_TEST_CASE(chance_repeats_itself_from_the_same_seed) {
  BeforeServer before({false, false, 7});
  before.gateway->add({"*", "500", 0.5});
  const std::string first = drawn(before, 64);
  BOOST_TEST(std::count(first.begin(), first.end(), 'x') > 10);
  BOOST_TEST(std::count(first.begin(), first.end(), '.') > 10);
  BOOST_TEST(drawn(before, 64) != first);
  before.gateway->seed(7);
  BOOST_TEST(drawn(before, 64) == first);
  before.gateway->seed(8);
  BOOST_TEST(drawn(before, 64) != first);
}

BOOST_AUTO_TEST_CASE(chance_of_one_hits_all_and_of_none_none) {
  BeforeServer before;
  before.gateway->add({"*", "503", 0.0});
  before.gateway->add({"*", "500", 1.0});
  BOOST_TEST(drawn(before, 8) == "xxxxxxxx");
}

BOOST_AUTO_TEST_CASE(forgotten_counts_begin_anew) {
  BeforeServer before;
  before.gateway->fault("*", "500");
  before.status();
  before.status();
  before.gateway->forget();
  const auto counts = before.gateway->counts();
  BOOST_TEST(counts.all_requests() == 0);
  BOOST_TEST(counts.all_faults() == 0);
  BOOST_TEST(counts.all_applied() == 0);
  BOOST_TEST(counts.good_signatures() == 0);
}

// --- Signatures ------------------------------------------------------------

struct Forgery {
  std::string what;
  ddbmutex::Credentials keys;
  std::string type;
};
const std::vector<Forgery> kForgeries = {
    {"another secret",
     {"AKIDEXAMPLE", "Secret", "token"},
     "#InvalidSignatureException"},
    {"another key",
     {"AKIDEXAMPLF", "secret", "token"},
     "#UnrecognizedClientException"},
    {"another token",
     {"AKIDEXAMPLE", "secret", "Token"},
     "#UnrecognizedClientException"},
    {"no token", {"AKIDEXAMPLE", "secret", ""}, "#UnrecognizedClientException"},
};

BOOST_AUTO_TEST_CASE(request_signed_with_other_keys_is_refused) {
  Gateway::Settings settings;
  settings.tls = false;
  settings.keys = {"AKIDEXAMPLE", "secret", "token"};
  BeforeServer before(settings);
  for (const Forgery& forgery : kForgeries) {
    BOOST_TEST_CONTEXT(forgery.what) {
      Client client(before.gateway->plain_url(), forgery.keys);
      const HttpAnswer answer = client.call("PutItem", "{}");
      BOOST_TEST(answer.status == 400);
      BOOST_TEST(has(answer.body, forgery.type));
      check_as_dynamodb_answers(answer);
    }
  }
  BOOST_TEST(before.gateway->counts().bad_signatures() == 4);
  BOOST_TEST(before.gateway->counts().requests("PutItem") == 4);
  BOOST_TEST(before.gateway->counts().all_applied() == 0);
  BOOST_TEST(before.server.request_count() == 0);
  Client right(before.gateway->plain_url(), settings.keys);
  BOOST_TEST(right.call("PutItem", "{}").status == 200);
  BOOST_TEST(before.gateway->counts().good_signatures() == 1);
}

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
  // A hash that was signed is no body that was signed.
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
  BOOST_TEST(before.gateway->counts().bad_signatures() == 6);
  BOOST_TEST(before.server.request_count() == 1);
  BOOST_TEST(client.send(call).status == 200);
}

BOOST_AUTO_TEST_CASE(request_without_a_whole_signature_is_refused) {
  BeforeServer before;
  Client client = before.client();
  const Call call = client.signed_call("PutItem", "{}");
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"", "#MissingAuthenticationTokenException"},
      {"AWS4-HMAC-SHA256 Credential=a/b", "#IncompleteSignatureException"},
      {"AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=00",
       "#IncompleteSignatureException"},
      {"garbage", "#IncompleteSignatureException"}};
  for (const auto& [authorization, type] : kinds) {
    Call wrong = call;
    replace(wrong, "Authorization", authorization);
    const HttpAnswer answer = client.send(wrong);
    BOOST_TEST(answer.status == 400);
    BOOST_TEST(has(answer.body, type), answer.body);
  }
  // Nothing that JavaScript objects have by themselves is a header.
  Call inherited = call;
  std::string names = header_of(call, "Authorization");
  names.replace(names.find("content-type"), 12, "constructor");
  replace(inherited, "Authorization", names);
  BOOST_TEST(has(client.send(inherited).body, "#InvalidSignatureException"));
  Call timeless = call;
  replace(timeless, "X-Amz-Date", "");
  BOOST_TEST(client.send(timeless).status == 400);
  BOOST_TEST(before.gateway->counts().bad_signatures() == 6);
  BOOST_TEST(before.server.request_count() == 0);
}

BOOST_AUTO_TEST_CASE(unsigned_header_that_names_the_action_is_refused) {
  BeforeServer before;
  Client client = before.client();
  Call call = client.signed_call("PutItem", "{}");
  std::string authorization = header_of(call, "Authorization");
  const std::string name = ";x-amz-target";
  authorization.erase(authorization.find(name), name.size());
  replace(call, "Authorization", authorization);
  BOOST_TEST(has(client.send(call).body, "must be a 'SignedHeader'"));
  BOOST_TEST(before.server.request_count() == 0);
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
  BOOST_TEST(before.gateway->counts().early_signatures() == 1);
  BOOST_TEST(before.gateway->counts().late_signatures() == 1);
  BOOST_TEST(before.gateway->counts().bad_signatures() == 0);
  BOOST_TEST(before.gateway->counts().good_signatures() == 0);
  BOOST_TEST(before.server.request_count() == 0);
  for (const auto within : {-4min, 4min}) {
    client.ahead = within;
    BOOST_TEST(client.call("PutItem", "{}").status == 200);
  }
}

BOOST_AUTO_TEST_CASE(time_is_judged_by_the_clock_of_the_gateway) {
  BeforeServer before;
  before.gateway->clock_offset(3h);
  Client client = before.client();
  BOOST_TEST(has(client.call("PutItem", "{}").body, "Signature expired: "));
  client.ahead = 3h;
  BOOST_TEST(client.call("PutItem", "{}").status == 200);
  before.gateway->clock_offset(0h);
  BOOST_TEST(has(client.call("PutItem", "{}").body, "not yet current: "));
}

BOOST_AUTO_TEST_CASE(request_held_beyond_its_window_is_not_applied) {
  BeforeServer before;
  Fault fault = waiting("delay");
  fault.from = 1h;  // It goes on only when the clock is set.
  before.gateway->add(fault);
  auto answer =
      std::async(std::launch::async, [&] { return before.call("{}"); });
  BOOST_TEST(eventually(
      [&] { return before.gateway->counts().faults("delay") == 1; }));
  before.gateway->clock_offset(10min);
  before.gateway->let_go();
  BOOST_TEST(has(answer.get().body, "Signature expired: "));
  BOOST_TEST(before.server.request_count() == 0);
  BOOST_TEST(before.gateway->counts().early_signatures() == 1);
}

BOOST_AUTO_TEST_CASE(engine_that_checks_signatures_gets_its_own) {
  BeforeServer before;
  const std::string checking = before.gateway->plain_url();
  Gateway handing(checking, {false});
  BOOST_TEST(Client(handing.plain_url()).call("PutItem", "{}").status == 400);
  BOOST_TEST(before.gateway->counts().bad_signatures() == 1);
  Gateway signing(checking, {false, true});
  BOOST_TEST(Client(signing.plain_url()).call("PutItem", "{}").status == 200);
  BOOST_TEST(before.gateway->counts().good_signatures() == 1);
}

// --- Dates -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(date_is_that_of_the_clock_of_the_gateway) {
  BeforeServer before;
  Client client = before.client();
  for (const auto offset : {0s, 3600s, -7200s}) {
    before.gateway->clock_offset(offset);
    client.ahead = offset;
    const std::int64_t from = unix_now() + offset.count();
    const HttpAnswer answer = client.call("PutItem", "{}");
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(date(answer) >= from);
    BOOST_TEST(date(answer) <= unix_now() + offset.count());
  }
}

BOOST_AUTO_TEST_CASE(answers_have_no_date_while_dates_are_off) {
  BeforeServer before;
  before.gateway->dates(false);
  for (const char* kind : {"", "500", "portal", "garbage", "corrupt"}) {
    if (*kind != '\0') before.gateway->fault("*", kind);
    const HttpAnswer answer = before.call("{}");
    BOOST_TEST(answer.status != 0);
    BOOST_TEST(header(answer, "Date") == "", kind);
  }
  before.gateway->dates(true);
  date(before.call("{}"));
}

// --- Modes -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(refusing_gateway_resets_and_accepts_nothing) {
  BeforeServer before({true});
  Gateway& gateway = *before.gateway;
  Client tls(gateway.url(), gateway.keys(), gateway.ca_file());
  BOOST_TEST(tls.call("PutItem", "{}").status == 200);
  RawClient idle(port_of(gateway.plain_url()));
  BOOST_TEST(idle.connected());
  // Accepted for certain once a later connection has been served.
  BOOST_TEST(before.status() == 200);
  gateway.mode("refuse");
  BOOST_TEST(idle.hear().ending == Ending::reset);
  BOOST_TEST(!RawClient(port_of(gateway.plain_url())).connected());
  BOOST_TEST(!RawClient(port_of(gateway.url())).connected());
  BOOST_TEST((tls.call("PutItem", "{}").transport != Transport::complete));
  gateway.mode("open");
  BOOST_TEST(tls.call("PutItem", "{}").status == 200);
  BOOST_TEST(before.status() == 200);
}

BOOST_AUTO_TEST_CASE(mode_may_be_set_twice) {
  BeforeServer before;
  for (const char* mode : {"refuse", "refuse", "open", "open", "hang", "hang",
                           "refuse", "hang", "open"}) {
    before.gateway->mode(mode);
  }
  BOOST_TEST(before.status() == 200);
}

BOOST_AUTO_TEST_CASE(hanging_gateway_applies_what_it_held_when_it_opens) {
  BeforeServer before;
  Gateway& gateway = *before.gateway;
  gateway.mode("hang");
  Client gone = before.client();
  const HttpAnswer none = gone.call_until(
      "PutItem", "gone", [&] { return gateway.counts().under_way() == 1; });
  BOOST_TEST((none.transport == Transport::timed_out));
  auto waits = std::async(std::launch::async,
                          [&] { return before.call("waits").status; });
  BOOST_TEST(eventually([&] { return gateway.counts().under_way() == 2; }));
  BOOST_TEST(before.server.request_count() == 0);
  gateway.mode("open");
  BOOST_TEST(waits.get() == 200);
  gateway.wait_until_quiet();
  const auto bodies = before.bodies();
  const std::set<std::string> seen(bodies.begin(), bodies.end());
  BOOST_TEST((seen == std::set<std::string>{"gone", "waits"}));
}

BOOST_AUTO_TEST_CASE(hanging_gateway_does_no_faults_until_it_opens) {
  BeforeServer before;
  before.gateway->fault("*", "reset");
  before.gateway->mode("hang");
  Client client = before.client();
  const HttpAnswer answer = client.call_until("PutItem", "{}", [&] {
    return before.gateway->counts().under_way() == 1;
  });
  BOOST_TEST((answer.transport == Transport::timed_out));
  BOOST_TEST(before.gateway->counts().all_faults() == 0);
  before.gateway->mode("open");
  before.gateway->wait_until_quiet();
  BOOST_TEST(before.gateway->counts().faults("reset") == 1);
  BOOST_TEST(before.server.request_count() == 0);
}

BOOST_AUTO_TEST_CASE(what_hangs_stays_held_while_it_refuses) {
  BeforeServer before;
  Gateway& gateway = *before.gateway;
  gateway.mode("hang");
  auto held = std::async(std::launch::async,
                         [&] { return before.call("{}").transport; });
  BOOST_TEST(eventually([&] { return gateway.counts().under_way() == 1; }));
  gateway.mode("refuse");
  BOOST_TEST((held.get() == Transport::broken));
  BOOST_TEST(gateway.counts().under_way() == 1);
  BOOST_TEST(before.server.request_count() == 0);
  gateway.mode("open");
  BOOST_TEST(before.server.wait_for_requests(1, tests::kPlenty));
}

BOOST_AUTO_TEST_CASE(answer_of_the_engine_hangs_too) {
  std::atomic<Gateway*> told{nullptr};
  ScriptedServer server([&](const SeenRequest&) {
    told.load()->mode("hang");  // Before the answer is on its way.
    return Reply::ok("{}");
  });
  Gateway gateway(server.url(), {false});
  told = &gateway;
  Client client(gateway.plain_url());
  const HttpAnswer answer = client.call_until(
      "PutItem", "{}", [&] { return server.request_count() == 1; });
  BOOST_TEST((answer.transport == Transport::timed_out));
  gateway.mode("open");
  gateway.wait_until_quiet();
}

// --- Engines that go -------------------------------------------------------

BOOST_AUTO_TEST_CASE(engine_that_is_down_gives_resets_and_bad_gateways) {
  auto server = std::make_unique<ScriptedServer>();
  Gateway gateway(server->url(), {false});
  server.reset();
  int resets = 0;
  int bad_gateways = 0;
  for (int i = 0; i < 40; ++i) {
    Client client(gateway.plain_url());
    const HttpAnswer answer = client.call("PutItem", "{}");
    resets += answer.transport == Transport::broken ? 1 : 0;
    bad_gateways += answer.status == 502 ? 1 : 0;
  }
  BOOST_TEST(resets + bad_gateways == 40);
  BOOST_TEST(resets > 5);
  BOOST_TEST(bad_gateways > 5);
  BOOST_TEST(gateway.counts().without_engine() == 40);
  BOOST_TEST(gateway.counts().all_applied() == 0);
  gateway.fault("*", "duplicate");
  Client(gateway.plain_url()).call("PutItem", "{}");
  gateway.wait_until_quiet();
  BOOST_TEST(!gateway.process().has_ended());
}

BOOST_AUTO_TEST_CASE(engine_killed_and_started_again_is_found_again) {
  tests::DurableEngine engine;
  Gateway gateway(engine.where().url, {false});
  const std::string body = R"({"TableName":"locks","Key":{"name":{"S":"x"}}})";
  const auto status = [&] {
    return Client(gateway.plain_url()).call("GetItem", body).status;
  };
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(status() == 200);
    engine.kill();
    const int without = status();
    BOOST_TEST((without == 502 || without == 0));
    engine.start();
  }
  BOOST_TEST(status() == 200);
}

BOOST_AUTO_TEST_CASE(engine_that_stops_within_an_answer_is_one_that_is_gone) {
  BeforeServer before;
  Reply cut = Reply::ok(R"({"Item":{}})");
  cut.cut_body_at = 3;
  cut.ending = tests::Ending::reset;
  before.server.script(cut);
  const int status = before.status();
  BOOST_TEST((status == 502 || status == 0));
  BOOST_TEST(before.gateway->counts().without_engine() == 1);
  BOOST_TEST(before.status() == 200);
}

// --- Clients of all kinds --------------------------------------------------

BOOST_AUTO_TEST_CASE(pipelined_requests_are_answered_in_their_order) {
  BeforeServer before;
  Fault fault = waiting("delay");
  before.gateway->add(fault);  // The first one.
  before.gateway->add({"*", "500", std::nullopt, 2});
  Client client = before.client();
  RawClient raw(port_of(before.gateway->plain_url()));
  std::string text;
  for (int i = 0; i < 3; ++i) text += client.text_of("PutItem", "{}");
  text.insert(text.rfind("\r\n\r\n"), "\r\nConnection: close");
  raw.say(text);
  const std::string heard = raw.hear().text;
  std::vector<std::string> statuses;
  for (std::size_t at = 0; (at = heard.find("HTTP/1.1 ", at)) != heard.npos;) {
    at += 9;
    statuses.push_back(heard.substr(at, 3));
  }
  const std::vector<std::string> wanted = {"200", "200", "500"};
  BOOST_TEST(statuses == wanted, boost::test_tools::per_element());
}

int open_files(pid_t pid) {
  const auto files = std::filesystem::directory_iterator(
      "/proc/" + std::to_string(pid) + "/fd");
  return static_cast<int>(std::distance(begin(files), end(files)));
}

BOOST_AUTO_TEST_CASE(clients_that_behave_badly_neither_end_it_nor_leak) {
  BeforeServer before({true});
  Gateway& gateway = *before.gateway;
  Client client = before.client();
  Client tls(gateway.url(), gateway.keys(), gateway.ca_file());
  BOOST_TEST(client.call("PutItem", "{}").status == 200);
  BOOST_TEST(tls.call("PutItem", "{}").status == 200);
  const int before_it = open_files(gateway.process().pid());
  const std::string whole = client.text_of("PutItem", std::string(9000, 'x'));
  const std::vector<std::string> texts = {
      "",
      "GARBAGE\r\n\r\n",
      whole.substr(0, 30),
      whole.substr(0, whole.size() - 4000),
      whole,
      "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      std::string(100000, 'a'),
      "\x16\x03\x01\x02"};
  for (const char* kind : {"", "delay", "drop", "late", "truncate", "hang"}) {
    if (*kind == 'h') {
      gateway.mode(kind);
    } else if (*kind != '\0') {
      gateway.fault("*", kind, 0);
    }
    for (const std::string& text : texts) {
      RawClient(port_of(gateway.plain_url())).say(text);
      RawClient(port_of(gateway.url())).say(text);
    }
    gateway.clear();
  }
  gateway.mode("open");
  BOOST_TEST(client.call("PutItem", "{}").status == 200);
  BOOST_TEST(tls.call("PutItem", "{}").status == 200);
  // Those to the engine are closed after a while.
  BOOST_TEST(eventually(
      [&] { return open_files(gateway.process().pid()) <= before_it; }));
  BOOST_TEST(gateway.process().complaints() == "");
}

BOOST_AUTO_TEST_CASE(body_beyond_all_bounds_is_reset) {
  BeforeServer before;
  Client client = before.client();
  const HttpAnswer answer =
      client.call("PutItem", std::string((16 << 20) + 1, 'x'));
  BOOST_TEST((answer.transport == Transport::broken));
  BOOST_TEST(before.server.request_count() == 0);
  BOOST_TEST(before.status() == 200);
}

BOOST_AUTO_TEST_CASE(large_request_and_answer_go_through) {
  BeforeServer before;
  before.server.script(Reply::ok(std::string(400000, 'y')));
  const HttpAnswer answer = before.call(std::string(400000, 'x'));
  BOOST_TEST(answer.body.size() == 400000u);
  BOOST_TEST(before.bodies().at(0).size() == 400000u);
}

// --- Control port ----------------------------------------------------------

const std::vector<std::pair<std::string, std::string>> kBadRules = {
    {R"({"fault":"none"})", "fault"},
    {R"({})", "fault"},
    {R"({"fault":"toString"})", "fault"},
    {R"({"fault":"drop","action":5})", "action"},
    {R"({"fault":"drop","probability":1.5})", "probability"},
    {R"({"fault":"drop","probability":"1"})", "probability"},
    {R"({"fault":"drop","nth":0})", "nth"},
    {R"({"fault":"drop","nth":1.5})", "nth"},
    {R"({"fault":"drop","times":-1})", "times"},
    {R"({"fault":"drop","nth":1,"probability":0.1})", "nth"},
    {R"({"fault":"drop","times":1,"probability":0.1})", "times"},
    {R"({"fault":"drop","ms":5})", "ms"},
    {R"({"fault":"delay","ms":-5})", "ms"},
    {R"({"fault":"delay","ms":[5]})", "ms"},
    {R"({"fault":"delay","ms":[5,4]})", "ms"},
    {R"({"fault":"delay","ms":"5"})", "ms"},
    {R"({"fault":"drop","retry_after_ms":5})", "retry_after_ms"},
    {R"({"fault":"500","retry_after_ms":0.5})", "retry_after_ms"},
    {R"({"fault":"drop","when":5})", "when"}};

std::string refusal(const Gateway& gateway, const std::string& method,
                    const std::string& path, const std::string& json) {
  try {
    gateway.control(method, path, json);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

BOOST_AUTO_TEST_CASE(bad_rule_is_refused_by_the_name_of_its_member) {
  BeforeServer before;
  for (const auto& [json, member] : kBadRules) {
    const std::string why = refusal(*before.gateway, "POST", "/rules", json);
    BOOST_TEST(has(why, R"({"error":"\")" + member + R"(\")"), why);
  }
  BOOST_TEST(before.status() == 200);  // None of them holds.
}

BOOST_AUTO_TEST_CASE(other_bad_commands_are_refused_and_change_nothing) {
  BeforeServer before;
  const std::vector<std::array<std::string, 4>> commands = {
      {"POST", "/rules", "{", "not JSON"},
      {"POST", "/rules", "[]", "not a JSON object"},
      {"POST", "/rules", "null", "not a JSON object"},
      {"POST", "/mode", R"({"mode":"shut"})", R"(\"mode\")"},
      {"POST", "/mode", R"({"made":"open"})", R"(\"made\")"},
      {"POST", "/clock", R"({"offset_s":"x"})", R"(\"offset_s\")"},
      {"POST", "/clock", R"({"offset_s":5,"date":0})", R"(\"date\")"},
      {"POST", "/clock", "{}", R"(\"offset_s\")"},
      {"POST", "/seed", R"({"seed":-1})", R"(\"seed\")"},
      {"POST", "/forget", R"({"all":1})", R"(\"all\")"},
      {"GET", "/rules", "", "GET /rules is nothing here"},
      {"POST", "/counts", "", "POST /counts is nothing here"}};
  for (const auto& [method, path, json, reason] : commands) {
    const std::string why = refusal(*before.gateway, method, path, json);
    BOOST_TEST(has(why, reason), why);
  }
  const std::int64_t from = unix_now();
  const HttpAnswer answer = before.call("{}");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(date(answer) >= from);
  BOOST_TEST(date(answer) <= unix_now());
}

// --- Events ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(each_fault_is_a_line_with_its_time_and_key) {
  const std::string file = "/tmp/ddbmutex-events-" + std::to_string(getpid());
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
  };
  const std::int64_t from = now();
  {
    Gateway::Settings settings;
    settings.tls = false;
    settings.events = file;
    BeforeServer before(settings);
    before.gateway->fault("*", "500", 0);
    before.call(R"({"Key":{"name":{"S":"a b"}}})", "UpdateItem");
    before.call(R"({"Item":{"owner":{"S":"x"},"name":{"S":"c"}}})");
    before.call("no JSON", "Scan");
  }
  std::ifstream lines(file);
  std::vector<std::string> rest;
  std::int64_t time = 0;
  for (std::string line; lines >> time && std::getline(lines, line);) {
    BOOST_TEST(time >= from);
    BOOST_TEST(time <= now());
    rest.push_back(line);
  }
  std::filesystem::remove(file);
  const std::vector<std::string> wanted = {" 500 UpdateItem a b",
                                           " 500 PutItem c", " 500 Scan "};
  BOOST_TEST(rest == wanted, boost::test_tools::per_element());
}

// --- Its end ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(gateway_ends_with_its_input_and_leaves_no_file) {
  ScriptedServer server;
  for (const bool by_signal : {false, true}) {
    Gateway gateway(server.url());
    const auto directory =
        std::filesystem::path(gateway.ca_file()).parent_path();
    const std::filesystem::directory_iterator files(directory);
    BOOST_TEST(std::distance(begin(files), end(files)) == 1);
    Client client(gateway.plain_url());
    gateway.mode("hang");  // Something is under way.
    client.call_until("PutItem", "{}",
                      [&] { return gateway.counts().under_way() == 1; });
    if (by_signal) {
      gateway.process().signal(SIGTERM);
    } else {
      gateway.process().channel().hang_up();
    }
    BOOST_TEST(gateway.process().wait() == (by_signal ? 1 : 0));
    BOOST_TEST(!std::filesystem::exists(directory));
    BOOST_TEST(gateway.process().complaints() == "");
  }
}

BOOST_AUTO_TEST_CASE(directory_of_a_killed_gateway_goes_with_its_object) {
  ScriptedServer server;
  std::filesystem::path directory;
  {
    Gateway gateway(server.url());
    directory = std::filesystem::path(gateway.ca_file()).parent_path();
    gateway.process().signal(SIGKILL);
    gateway.process().wait();
    BOOST_TEST(std::filesystem::exists(directory));
    BOOST_CHECK_THROW(gateway.counts(), std::runtime_error);
  }
  BOOST_TEST(!std::filesystem::exists(directory));
}

BOOST_AUTO_TEST_CASE(directory_of_a_killed_gateway_goes_with_the_next_one) {
  ScriptedServer server;
  Gateway killed(server.url());
  const auto directory = std::filesystem::path(killed.ca_file()).parent_path();
  Gateway another(server.url());
  BOOST_TEST(std::filesystem::exists(directory));
  killed.process().signal(SIGKILL);
  killed.process().wait();
  Gateway next(server.url());
  BOOST_TEST(!std::filesystem::exists(directory));
  BOOST_TEST(std::filesystem::exists(another.ca_file()));
}

BOOST_AUTO_TEST_CASE(gateway_that_cannot_start_says_why) {
  const auto is_told = [](const std::runtime_error& error) {
    return has(error.what(), "nowhere");
  };
  Gateway::Settings settings;
  settings.events = "/nowhere/at/all";
  BOOST_CHECK_EXCEPTION(Gateway("http://127.0.0.1:1", settings),
                        std::runtime_error, is_told);
}

// --- As AWS is, and engines are not ----------------------------------------

namespace {

Gateway::Settings slow_tables(milliseconds time) {
  Gateway::Settings settings;
  settings.tls = false;
  settings.slow_tables = time;
  return settings;
}

// A table of the engine's behind a gateway.
struct SlowTable {
  explicit SlowTable(milliseconds time)
      : gateway(engine.url(), slow_tables(time)) {}

  // "200", or the error's name.
  std::string ask(const std::string& action, const std::string& more = {}) {
    return outcome(client.call(action, about + more + "}"));
  }
  std::string create() { return ask("CreateTable", schema); }
  // "CREATING"; empty: there is none.
  std::string status() {
    const HttpAnswer answer = client.call("DescribeTable", about + "}");
    const std::string before = R"("TableStatus":")";
    const auto at = answer.body.find(before);
    if (at == answer.body.npos) return {};
    const auto begin = at + before.size();
    return answer.body.substr(begin, answer.body.find('"', begin) - begin);
  }
  static std::string outcome(const HttpAnswer& answer) {
    if (answer.status == 200) return "200";
    const auto begin = answer.body.find('#') + 1;
    return answer.body.substr(begin, answer.body.find('"', begin) - begin);
  }

  Engine& engine = Engine::running(tests::any_engine_kind());
  Gateway gateway;
  Client client{gateway.plain_url(), gateway.keys()};
  const std::string about =
      R"({"TableName":"slow-)" + ddbmutex::lock::fresh_uuid() + '"';
  const std::string schema = R"(,"BillingMode":"PAY_PER_REQUEST",)" +
                             tests::schema_of(tests::kUsualKey);
};
constexpr char kItem[] = R"(,"Item":{"name":{"S":"x"}})";

}  // namespace

// Nothing of it is there for the first quarter of the time.
BOOST_AUTO_TEST_CASE(table_that_is_being_made_cannot_be_used_nor_deleted) {
  SlowTable slow(1h);
  BOOST_TEST(slow.create() == "200");
  BOOST_TEST(slow.status() == "");
  BOOST_TEST(slow.ask("PutItem", kItem) == "ResourceNotFoundException");
  BOOST_TEST(slow.create() == "ResourceInUseException");
}

BOOST_AUTO_TEST_CASE(table_comes_and_goes_in_its_time) {
  SlowTable slow(1s);
  BOOST_TEST(slow.create() == "200");
  BOOST_TEST(eventually([&] { return slow.status() == "ACTIVE"; }));
  BOOST_TEST(slow.ask("PutItem", kItem) == "200");
  BOOST_TEST(slow.ask("DeleteTable") == "200");
  // Whatever it says of the table until then.
  BOOST_TEST(slow.ask("PutItem", kItem) == "ResourceNotFoundException");
  BOOST_TEST(eventually([&] { return slow.status() == ""; }));
  BOOST_TEST(slow.create() == "200");
}

BOOST_AUTO_TEST_CASE(few_tables_are_made_at_a_time) {
  SlowTable first(1h);
  BOOST_TEST(first.create() == "200");
  int made = 1;
  std::string refused = "200";
  for (; refused == "200" && made < 20; ++made) {
    refused = SlowTable::outcome(first.client.call(
        "CreateTable", R"({"TableName":"slow-)" + ddbmutex::lock::fresh_uuid() +
                           '"' + first.schema + "}"));
  }
  BOOST_TEST(refused == "LimitExceededException");
  BOOST_TEST(made == 7);
}

BOOST_AUTO_TEST_CASE(ttl_of_a_table_is_changed_once_an_hour) {
  SlowTable slow(1ms);
  if (slow.engine.kind() != tests::EngineKind::dynoxide) return;
  BOOST_TEST(slow.create() == "200");
  BOOST_TEST(eventually([&] { return slow.status() == "ACTIVE"; }));
  const std::string off =
      R"(,"TimeToLiveSpecification":{"AttributeName":"t","Enabled":)";
  BOOST_TEST(slow.ask("UpdateTimeToLive", off + "true}") == "200");
  BOOST_TEST(slow.ask("UpdateTimeToLive", off + "false}") ==
             "ValidationException");
}

// Each part of a transaction by its own action.
BOOST_AUTO_TEST_CASE(policy_allows_its_actions_on_its_tables_alone) {
  Gateway::Settings settings;
  settings.tls = false;
  settings.allow = "mine:PutItem";
  BeforeServer before(settings);
  const auto outcome = [&](const std::string& action, const std::string& body) {
    return SlowTable::outcome(before.call(body, action));
  };
  const auto parts = [](const std::string& name, const std::string& table) {
    return R"({"TransactItems":[{"Put":{"TableName":"mine"}},{")" + name +
           R"(":{"TableName":")" + table + R"("}}]})";
  };
  const std::string denied = "AccessDeniedException";
  BOOST_TEST(outcome("PutItem", R"({"TableName":"mine-1"})") == "200");
  BOOST_TEST(outcome("PutItem", R"({"TableName":"theirs"})") == denied);
  BOOST_TEST(outcome("GetItem", R"({"TableName":"mine"})") == denied);
  BOOST_TEST(outcome("TransactWriteItems", parts("Put", "mine")) == "200");
  BOOST_TEST(outcome("TransactWriteItems", parts("Put", "theirs")) == denied);
  BOOST_TEST(outcome("TransactWriteItems", parts("Update", "mine")) == denied);
  BOOST_TEST(before.server.request_count() == 2);
}

BOOST_AUTO_TEST_SUITE_END()
