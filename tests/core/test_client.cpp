// Calls of DynamoDB's API over a loopback connection: what goes out, and what
// comes of what comes back.
#include <time.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "tests/support/check_fault.hpp"
#include "tests/support/given.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Client;
using dynamodb::ClientOptions;
using dynamodb::Fault;
using dynamodb::Item;
using dynamodb::ServiceTime;
using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr const char* kRegion = "eu-west-1";

sigv4::Credentials keys() {
  return {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
}

ClientOptions options_for(const std::string& endpoint) {
  ClientOptions options;
  options.target = target_at(endpoint, kRegion);
  options.credentials = given_keys(keys());
  return options;
}

Reply refused(const std::string& code) {
  return Reply::error(400, R"({"__type":"com.amazon.coral.service#)" + code +
                               R"(","message":"no"})");
}

}  // namespace

// === One call ================================================================

namespace {

// Longer than anything here takes unless it hangs.
constexpr seconds kLong(20);

Answer call(Client& client, Action action = Action::put_item,
            std::string body = "{}", nanoseconds time = kLong) {
  const BootTime deadline = BootClock::now() + time;
  sigv4::CallWaker nobody;
  client.await_keys(deadline, nobody);
  auto pending =
      client.start({action, std::move(body), deadline}, BootClock::now());
  if (pending->under_way()) {
    sigv4::drive(pending->exchange(), deadline, nullptr);
  }
  return client.finish(std::move(pending), sigv4::Transport::timed_out);
}

constexpr ServiceTime kThen = seconds(1900000000);

std::string date_of(ServiceTime time) {
  const std::time_t unix_seconds = time / seconds(1);
  std::tm parts = {};
  gmtime_r(&unix_seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

// Seconds since 1970 of X-Amz-Date.
std::int64_t signed_time(const SeenRequest& request) {
  const std::string text = request.header("X-Amz-Date").value_or("");
  std::tm parts = {};
  const char* const end = strptime(text.c_str(), "%Y%m%dT%H%M%SZ", &parts);
  BOOST_REQUIRE((end != nullptr && *end == '\0' && text.size() == 16));
  return timegm(&parts);
}

// What the request's Authorization ought to be, from nothing but what came
// over the wire and the keys.
std::string expected_authorization(const SeenRequest& request,
                                   const sigv4::Credentials& credentials) {
  const std::string hash = sigv4::sha256_hex(request.body);
  const std::string type = request.header("Content-Type").value_or("");
  const std::string host = request.header("Host").value_or("");
  const std::string target = request.header("X-Amz-Target").value_or("");
  return sigv4::sign({request.method,
                      request.path,
                      {{"content-type", type},
                       {"host", host},
                       {"x-amz-target", target}},
                      hash},
                     credentials, {kRegion, "dynamodb"}, signed_time(request))
      .authorization;
}

Reply dated(Reply reply, ServiceTime date) {
  reply.headers.emplace_back("Date", date_of(date));
  return reply;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(client)

// --- What goes out -----------------------------------------------------------

// Some services say what they would have signed, the token in it.
BOOST_AUTO_TEST_CASE(token_in_a_refusal_is_not_told) {
  ScriptedServer server;
  ClientOptions options = options_for(server.url());
  sigv4::Credentials temporary = keys();
  const std::string token = "FwoGZXIvYXdzEXAMPLE//token==";
  temporary.session_token = token;
  options.credentials = given_keys(temporary);
  Client client(std::move(options));
  for (const std::string& words :
       {"The canonical string is\\nx-amz-security-token:" + token,
        "token " + token.substr(3), "it was " + token}) {
    server.script(Reply::error(
        400, R"({"__type":"InvalidSignatureException","message":")" + words +
                 "\"}"));
    const Answer answer = call(client);
    CHECK_FAULT(answer, Fault::bad_keys);
    BOOST_TEST(answer.message != "");
    BOOST_TEST(answer.message.find(token.substr(5)) == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(key_of_one_day_signs_for_no_other) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  for (const int day : {0, 1, 2}) {
    server.script(dated(Reply::ok("{}"), kThen + std::chrono::hours(24 * day)));
    CHECK_FAULT(call(client), Fault::none);
  }
  const std::vector<SeenRequest> requests = server.requests();
  BOOST_TEST_REQUIRE(requests.size() == 3u);
  BOOST_TEST(signed_time(requests[2]) - signed_time(requests[1]) > 23 * 3600);
  for (const SeenRequest& request : requests) {
    BOOST_TEST(request.header("Authorization").value_or("") ==
               expected_authorization(request, keys()));
  }
}

BOOST_AUTO_TEST_CASE(call_that_does_not_begin_leaves_nothing_to_the_next) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  client.prepare(BootClock::now())->body() += "left";
  CHECK_FAULT(call(client, Action::put_item, "{}"), Fault::none);
  BOOST_TEST_REQUIRE(server.request_count() == 1u);
  BOOST_TEST(server.requests().front().body == "{}");
}

// As AWS's SDKs sign it: each segment is encoded once more, and slashes are
// merged in what is signed, but not in what is sent.
BOOST_AUTO_TEST_CASE(endpoint_may_have_a_path_which_is_sent_and_signed) {
  const std::vector<std::pair<std::string, std::string>> paths = {
      {"", "/"},
      {"/", "/"},
      {"/ru-central1/b1g/etn", "/ru-central1/b1g/etn"},
      {"/a/", "/a/"},
      {"/a//b", "/a//b"},
      {"/a/../b/./c", "/b/c"},
      {"/a%20b/c:d@e~f=g", "/a%20b/c:d@e~f=g"},
  };
  for (const auto& [path, sent] : paths) {
    ScriptedServer server;
    const std::string url = server.url();  // It ends in a slash.
    Client client(options_for(url.substr(0, url.size() - 1) + path));
    CHECK_FAULT(call(client, Action::get_item), Fault::none);
    const SeenRequest request = server.requests().at(0);
    BOOST_TEST(request.path == sent);
    BOOST_TEST(request.header("Authorization").value_or("") ==
                   expected_authorization(request, keys()),
               path);
  }
}

// --- Which time it is -------------------------------------------------------

BOOST_AUTO_TEST_CASE(dates_that_contradict_put_the_clock_in_doubt) {
  ScriptedServer server;
  const ServiceTime now = Client::calendar();
  server.script(dated(Reply::ok("{}"), now));
  server.script(dated(Reply::ok("{}"), now + hours(2)));
  server.script(dated(Reply::ok("{}"), now + hours(2)));
  Client client(options_for(server.url()));
  call(client);
  BOOST_TEST(!client.clock().in_doubt());
  call(client);
  BOOST_TEST(client.clock().in_doubt());
  BOOST_TEST((client.clock().latest(BootClock::now()) >= now + hours(2)));
  call(client);  // Signed by the newer one.
  BOOST_TEST(std::abs(signed_time(server.requests().back()) -
                      (now + hours(2)) / seconds(1)) <= 3);
  BOOST_TEST(!client.clock().in_doubt());
  BOOST_TEST((client.clock().earliest(BootClock::now()) >
              now + hours(2) - seconds(3)));
}

// --- Calls that come to nothing ---------------------------------------------

BOOST_AUTO_TEST_CASE(deadline_passed_is_timed_out_with_unknown_outcome) {
  ScriptedServer server;
  Reply hanging;
  hanging.hangs = true;
  server.script(hanging);
  Client client(options_for(server.url()));
  const BootTime begin = BootClock::now();
  Answer answer;
  BOOST_TEST(returns_within(seconds(2), [&] {  // It is sent in them.
    answer = call(client, Action::put_item, "{}", seconds(2));
  }));
  const nanoseconds took = BootClock::now() - begin;
  CHECK_FAULT(answer, Fault::timed_out);
  BOOST_TEST(answer.sent);
  BOOST_TEST(answer.outcome_unknown());
  BOOST_TEST((took >= seconds(2)));
  BOOST_TEST(!client.clock().answers_lack_date());
  server.release();
  // The late answer is not taken for that of the next request.
  server.script(Reply::ok("{\"Item\":{\"a\":{\"S\":\"b\"}}}"));
  const Answer next = call(client, Action::get_item);
  CHECK_FAULT(next, Fault::none);
  BOOST_TEST(next.item.has_value());
}

BOOST_AUTO_TEST_CASE(refused_connection_is_unreachable_and_certainly_not_sent) {
  const ScriptedServer server(nullptr, ScriptedServer::Scheme::http,
                              ScriptedServer::Door::shut);
  Client client(options_for(server.url()));
  const Answer answer = call(client);
  CHECK_FAULT(answer, Fault::unreachable);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(!answer.outcome_unknown());
  BOOST_TEST(!answer.message.empty());
  BOOST_TEST(!client.clock().answers_lack_date());
  for (const std::uint64_t sent : client.counts().sent) BOOST_TEST(sent == 0u);
}

// --- Hostile servers --------------------------------------------------------

namespace {

struct HostileReply {
  const char* what;
  Reply reply;
  Fault expected = Fault::bad_answer;
};

// What is closed after a whole answer may break the next call on it.
Reply raw(std::string text, Ending ending = Ending::close) {
  Reply reply;
  reply.raw = std::move(text);
  reply.ending = ending;
  return reply;
}

Reply changed(Reply reply, bool Reply::*flag) {
  reply.*flag = true;
  return reply;
}

Reply cut(std::size_t at, Ending ending) {
  Reply reply = Reply::ok("{\"Attributes\":{\"a\":{\"S\":\"b\"}}}");
  reply.cut_body_at = at;
  reply.ending = ending;
  return reply;
}

std::vector<HostileReply> hostile_replies() {
  const Fault gone = Fault::disconnected;
  return {
      {"empty", Reply::ok("")},
      {"HTML of HTML",
       with_header(Reply::ok("<html></html>"), "Content-Type", "text/html")},
      {"error as 200", Reply::ok("{\"__type\":\"InternalServerError\"}")},
      {"400 KB of [", Reply::ok(std::string(400 * 1024, '['))},
      {"10 MB chunked",
       changed(Reply::ok(std::string(10 << 20, ' ')), &Reply::chunked)},
      {"endless headers", changed(Reply(), &Reply::endless_headers)},
      {"redirect with an object",
       with_header(Reply::error(302), "Location", "/")},
      {"no content", raw("HTTP/1.1 204 No Content\r\n\r\n", Ending::keep)},
      {"closed without a word", Reply::gone(Ending::close), gone},
      {"reset in its body", cut(9, Ending::reset), gone},
      {"cut before its last byte", cut(29, Ending::close), gone},
      {"cut in its headers", raw("HTTP/1.1 200 OK\r\nDate: Mon"), gone},
      {"not HTTP", raw("SSH-2.0-OpenSSH_9.2\r\n"), gone},
      {"bare text as of HTTP/0.9", raw("{}"), gone},
      {"cut in a chunk",
       raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{}"),
       gone},
      {"502 HTML", Reply::error(502, "<html>"), Fault::server_failure},
      {"throttled", refused("ThrottlingException"), Fault::throttled},
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(hostile_reply_gives_its_fault_outcome_unknown) {
  for (const HostileReply& c : hostile_replies()) {
    ScriptedServer server;
    server.script(c.reply);
    Client client(options_for(server.url()));
    BOOST_TEST_CONTEXT(c.what) {
      const Answer answer = call(client);
      CHECK_FAULT(answer, c.expected);
      BOOST_TEST(answer.sent);
      BOOST_TEST(answer.outcome_unknown());
      BOOST_TEST(!answer.item.has_value());
      BOOST_TEST(server.request_count() == 1);
      const bool believed =
          c.expected == Fault::server_failure || c.expected == Fault::throttled;
      BOOST_TEST(client.clock().known() == believed);
      // Nothing of it sticks to the next call.
      CHECK_FAULT(call(client), Fault::none);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
