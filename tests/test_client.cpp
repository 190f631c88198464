// A call of DynamoDB's API over a loopback connection: what goes out, and what
// comes of what comes back.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/client.hpp"
#include "tests/support/check_fault.hpp"
#include "tests/support/given.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace {

namespace sigv4 = ddbmutex::sigv4;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::dynamodb::Action;
using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Client;
using ddbmutex::dynamodb::ClientOptions;
using ddbmutex::dynamodb::Fault;
using ddbmutex::dynamodb::ServiceClock;
using ddbmutex::dynamodb::ServiceTime;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using tests::Ending;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

constexpr const char* kRegion = "eu-west-1";
// Longer than anything here takes unless it hangs.
constexpr seconds kLong(20);

sigv4::Credentials keys() {
  return {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
}

ClientOptions options_for(const std::string& endpoint) {
  ClientOptions options;
  options.target = tests::target_at(endpoint, kRegion);
  options.credentials = tests::given_keys(keys());
  return options;
}

Answer call(Client& client, Action action = Action::put_item,
            std::string body = "{}", nanoseconds time = kLong) {
  sigv4::Waker waker;
  return client.call(action, std::move(body), BootClock::now() + time, waker);
}

constexpr ServiceTime kThen = seconds(1900000000);

std::string http_date(ServiceTime time) {
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
                      "",
                      {{"content-type", type},
                       {"host", host},
                       {"x-amz-target", target}},
                      hash},
                     credentials, {kRegion, "dynamodb"}, signed_time(request))
      .authorization;
}

std::vector<std::string> header_names(const SeenRequest& request) {
  std::vector<std::string> names;
  for (const auto& header : request.headers) names.push_back(header.first);
  std::sort(names.begin(), names.end());
  return names;
}

Reply dated(Reply reply, ServiceTime date) {
  reply.headers.emplace_back("Date", http_date(date));
  return reply;
}

Reply refused(const std::string& code) {
  return Reply::error(400, "{\"__type\":\"com.amazon.coral.service#" + code +
                               "\",\"message\":\"no\"}");
}

std::unique_ptr<Client::Pending> begun(Client& client, Action action,
                                       std::string_view body) {
  const BootTime now = BootClock::now();
  auto pending = client.prepare(now);
  pending->body() += body;
  client.begin(*pending, action, now);
  return pending;
}

}  // namespace

// --- What goes out ----------------------------------------------------------

BOOST_AUTO_TEST_SUITE(client_request)

BOOST_AUTO_TEST_CASE(request_is_exactly_what_dynamodb_asks_for) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  const std::string body = "{\"TableName\":\"locks\",\"x\":\"\xc3\xa9\"}";
  CHECK_FAULT(call(client, Action::update_item, body), Fault::none);
  BOOST_REQUIRE(server.request_count() == 1);
  const SeenRequest request = server.requests().front();
  BOOST_TEST(request.method == "POST");
  BOOST_TEST(request.path == "/");
  BOOST_TEST(request.body == body);
  BOOST_TEST(request.header("Host").value_or("") ==
             "127.0.0.1:" + std::to_string(server.port()));
  BOOST_TEST(request.header("Content-Type").value_or("") ==
             "application/x-amz-json-1.0");
  BOOST_TEST(request.header("X-Amz-Target").value_or("") ==
             "DynamoDB_20120810.UpdateItem");
  BOOST_TEST(request.header("Content-Length").value_or("") ==
             std::to_string(body.size()));
  // And nothing else: no Accept, Expect, User-Agent or Accept-Encoding.
  // The first two are of libcurl's writing.
  const std::vector<std::string> expected = {"Content-Length", "Host",
                                             "authorization",  "content-type",
                                             "x-amz-date",     "x-amz-target"};
  BOOST_TEST(header_names(request) == expected,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_action_has_its_target) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  const std::pair<Action, const char*> actions[] = {
      {Action::get_item, "DynamoDB_20120810.GetItem"},
      {Action::put_item, "DynamoDB_20120810.PutItem"},
      {Action::update_item, "DynamoDB_20120810.UpdateItem"},
      {Action::delete_item, "DynamoDB_20120810.DeleteItem"},
      {Action::scan, "DynamoDB_20120810.Scan"},
      {Action::query, "DynamoDB_20120810.Query"},
      {Action::transact_write_items, "DynamoDB_20120810.TransactWriteItems"}};
  for (const auto& action : actions) {
    const bool of_pages =
        action.first == Action::scan || action.first == Action::query;
    server.script(Reply::ok(of_pages ? R"({"Items":[]})" : "{}"));
    CHECK_FAULT(call(client, action.first), Fault::none);
    BOOST_TEST(server.requests().back().header("X-Amz-Target").value_or("") ==
               action.second);
  }
}

BOOST_AUTO_TEST_CASE(signature_is_of_what_was_sent) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  const std::int64_t before = Client::calendar() / seconds(1);
  for (const std::string& body :
       {std::string("{}"), std::string(), std::string(300000, 'x'),
        std::string("{\"a\":\"\\u0000\"}")}) {
    call(client, Action::put_item, body);
  }
  const std::vector<SeenRequest> requests = server.requests();
  BOOST_REQUIRE(requests.size() == 4u);
  for (const SeenRequest& request : requests) {
    BOOST_TEST(request.header("Authorization").value_or("") ==
               expected_authorization(request, keys()));
    BOOST_TEST(signed_time(request) >= before - 2);
    BOOST_TEST(signed_time(request) <= Client::calendar() / seconds(1) + 2);
  }
}

BOOST_AUTO_TEST_CASE(session_token_is_sent_and_signed) {
  ScriptedServer server;
  ClientOptions options = options_for(server.url());
  sigv4::Credentials temporary = keys();
  temporary.session_token = "FwoGZXIvYXdzEXAMPLE//token==";
  options.credentials = tests::given_keys(temporary);
  Client client(std::move(options));
  CHECK_FAULT(call(client), Fault::none);
  const SeenRequest request = server.requests().front();
  BOOST_TEST(request.header("X-Amz-Security-Token").value_or("") ==
             temporary.session_token.str());
  const std::string authorization =
      request.header("Authorization").value_or("");
  BOOST_TEST(authorization == expected_authorization(request, temporary));
  BOOST_TEST(
      (authorization.find(";x-amz-security-token;") != std::string::npos));
  BOOST_TEST(request.headers.size() == 7u);
}

// Some services say what they would have signed, the token in it.
BOOST_AUTO_TEST_CASE(token_in_a_refusal_is_not_told) {
  ScriptedServer server;
  ClientOptions options = options_for(server.url());
  sigv4::Credentials temporary = keys();
  const std::string token = "FwoGZXIvYXdzEXAMPLE//token==";
  temporary.session_token = token;
  options.credentials = tests::given_keys(temporary);
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

// Or the signature itself.
BOOST_AUTO_TEST_CASE(signature_in_a_refusal_is_not_told) {
  ScriptedServer server([](const SeenRequest& request) {
    const std::string sent = request.header("Authorization").value_or("");
    return Reply::error(400,
                        R"({"__type":"InvalidSignatureException","message":)"
                        "\"we do not expect " +
                            sent.substr(sent.rfind('=') + 1) + " here\"}");
  });
  Client client(options_for(server.url()));
  const Answer answer = call(client);
  CHECK_FAULT(answer, Fault::bad_keys);
  BOOST_TEST(answer.message ==
             "we do not expect (hidden) here (keys from the options)");
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

BOOST_AUTO_TEST_CASE(no_keys_sends_nothing) {
  ScriptedServer server;
  ClientOptions options = options_for(server.url());
  options.credentials = tests::source_of(
      [](const sigv4::Fetch&) { return sigv4::no_keys("none here"); });
  Client client(std::move(options));
  const BootTime before = BootClock::now();
  const Answer answer = call(client, Action::delete_item);
  CHECK_FAULT(answer, Fault::no_keys);
  BOOST_TEST((answer.action == Action::delete_item));
  BOOST_TEST(!answer.sent);
  BOOST_TEST(!answer.outcome_unknown());
  BOOST_TEST(answer.message == "none here");
  BOOST_TEST((answer.sent_at >= before && answer.received_at >= before));
  BOOST_TEST(server.connection_count() == 0);
  for (const std::uint64_t sent : client.counts().sent) BOOST_TEST(sent == 0u);
  BOOST_TEST(!client.clock().silent());
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

BOOST_AUTO_TEST_CASE(endpoint_is_a_host_and_perhaps_a_port_and_a_path) {
  for (const char* good :
       {"http://127.0.0.1:8000", "http://127.0.0.1:8000/", "https://a.b",
        "http://a.b/path", "http://a.b/ru-central1/b1g/etn", "http://a.b/c/",
        "HTTPS://dynamodb.eu-west-1.amazonaws.com", "http://[::1]:8000"}) {
    BOOST_TEST(ddbmutex::sigv4::is_endpoint_url(good), good);
  }
  for (const char* bad :
       {"", "127.0.0.1:8000", "http://", "http:///", "http://a.b/a b",
        "http://a.b/\xc3\xa9", "http://a.b/?q", "http://a.b/c?q",
        "http://a.b/#f", "http://user@a.b/", "ftp://a.b/", "http://a b/",
        "http://a.b:99999/", "file:///etc/passwd"}) {
    BOOST_TEST(!ddbmutex::sigv4::is_endpoint_url(bad), bad);
  }
}

BOOST_AUTO_TEST_CASE(calls_one_after_another_share_a_connection) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  for (int i = 0; i < 20; ++i) CHECK_FAULT(call(client), Fault::none);
  server.script(refused("ConditionalCheckFailedException"));
  CHECK_FAULT(call(client), Fault::condition_failed);
  server.script(Reply::error(500));
  CHECK_FAULT(call(client), Fault::server_failure);
  CHECK_FAULT(call(client), Fault::none);
  BOOST_TEST(server.request_count() == 23);
  BOOST_TEST(server.connection_count() == 1);
}

BOOST_AUTO_TEST_CASE(counts_are_of_requests_by_action) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  const Action actions[] = {Action::get_item, Action::put_item,
                            Action::update_item, Action::delete_item};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j <= i; ++j) call(client, actions[i]);
  }
  server.script(Reply::gone(Ending::close));
  call(client, Action::get_item);  // Sent, if in vain.
  const auto sent = client.counts().sent;
  const decltype(client.counts().sent) expected = {2, 2, 3, 4};
  BOOST_TEST(sent == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

// --- Which time it is -------------------------------------------------------

BOOST_AUTO_TEST_SUITE(client_clock)

BOOST_AUTO_TEST_CASE(date_of_a_refusal_corrects_the_next_signature) {
  for (const hours off : {hours(-3), hours(7), hours(24 * 365 * 5)}) {
    ScriptedServer server([&](const SeenRequest& request) {
      const ServiceTime now = Client::calendar() + off;
      const nanoseconds wrong = now - seconds(signed_time(request));
      if (wrong < std::chrono::minutes(5) && wrong > -std::chrono::minutes(5)) {
        return dated(Reply::ok("{}"), now);
      }
      return dated(refused("InvalidSignatureException"), now);
    });
    Client client(options_for(server.url()));
    const Answer first = call(client);
    CHECK_FAULT(first, Fault::skewed_time);
    BOOST_TEST(!first.outcome_unknown());
    BOOST_TEST(client.clock().known());
    CHECK_FAULT(call(client), Fault::none);
    const nanoseconds error = seconds(signed_time(server.requests().back())) -
                              (Client::calendar() + off);
    BOOST_TEST((error < seconds(2) && error > seconds(-3)));
  }
}

BOOST_AUTO_TEST_CASE(clock_holds_the_services_time_between_its_bounds) {
  ScriptedServer server;
  server.script(dated(Reply::ok("{}"), kThen));
  Client client(options_for(server.url()));
  const Answer answer = call(client);
  const ServiceClock clock = client.clock();
  BOOST_REQUIRE(clock.known());
  // Of the moment when it was sent, and of the one when it had come.
  BOOST_TEST((answer.sent_at < answer.received_at));
  BOOST_TEST((clock.latest(answer.sent_at) ==
              kThen + milliseconds(1250) + nanoseconds(1)));
  BOOST_TEST((clock.earliest(answer.received_at) ==
              kThen - milliseconds(250) - nanoseconds(1)));
}

BOOST_AUTO_TEST_CASE(answers_without_date_leave_signing_to_the_calendar) {
  ScriptedServer server([](const SeenRequest&) {
    Reply reply = Reply::ok("{}");
    reply.headers = {{"Date", ""}};
    return reply;
  });
  Client client(options_for(server.url()));
  BOOST_TEST(!client.clock().silent());
  for (int i = 0; i < 3; ++i) {
    CHECK_FAULT(call(client), Fault::none);
    BOOST_TEST(client.clock().silent());
    BOOST_TEST(!client.clock().known());
    BOOST_TEST(std::abs(signed_time(server.requests().back()) -
                        Client::calendar() / seconds(1)) <= 2);
  }
}

BOOST_AUTO_TEST_CASE(dates_that_are_not_dynamodbs_are_not_believed) {
  const ServiceTime wrong = Client::calendar() + hours(10);
  Reply anonymous = dated(Reply::ok("{}"), wrong);
  anonymous.headers.emplace_back("x-amzn-RequestId", "");
  Reply cached = dated(Reply::ok("{}"), wrong);
  cached.headers.emplace_back("Age", "4");
  Reply portal = dated(Reply::ok("<html>Log in</html>"), wrong);
  Reply typed = dated(Reply::ok("{}"), wrong);
  typed.headers.emplace_back("Content-Type", "text/html");
  Reply damaged = dated(Reply::ok("{}"), wrong);
  damaged.wrong_crc32 = true;
  Reply cut = dated(Reply::ok("{\"Attributes\":{}}"), wrong);
  cut.cut_body_at = 5;
  cut.ending = Ending::close;
  Reply old = Reply::ok("{}");
  old.headers.emplace_back("Date", "Thu, 01 Jan 1970 00:00:00 GMT");
  Reply unnamed_proxy = dated(Reply::error(502, "<html>"), wrong);
  unnamed_proxy.headers.emplace_back("x-amzn-RequestId", "");
  int number = 0;
  for (const Reply& reply :
       {anonymous, cached, portal, typed, damaged, cut, old, unnamed_proxy}) {
    ScriptedServer server;
    server.script(reply);
    Client client(options_for(server.url()));
    BOOST_TEST_CONTEXT("reply " << ++number) {
      call(client);
      BOOST_TEST(!client.clock().known());
      call(client);
      BOOST_TEST(std::abs(signed_time(server.requests().back()) -
                          Client::calendar() / seconds(1)) <= 2);
      BOOST_TEST(client.clock().known());
    }
  }
}

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

BOOST_AUTO_TEST_CASE(contradictions_are_logged_once_a_minute) {
  ScriptedServer server;
  const ServiceTime now = Client::calendar();
  for (const int ahead : {0, 2, 4, 6}) {
    server.script(dated(Reply::ok("{}"), now + hours(ahead)));
  }
  std::vector<std::string> lines;
  auto options = options_for(server.url());
  options.log = tests::log_of(
      [&lines](ddbmutex::sigv4::LogLevel, const std::string& text) {
        if (text.find("do not agree any more") != std::string::npos) {
          lines.push_back(text);
        }
      });
  Client client(std::move(options));
  for (int i = 0; i < 4; ++i) call(client);
  BOOST_TEST(client.clock().contradictions() == 3);
  BOOST_TEST(lines.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

// --- Calls that come to nothing ---------------------------------------------

BOOST_AUTO_TEST_SUITE(client_call_that_fails)

BOOST_AUTO_TEST_CASE(deadline_passed_is_timed_out_with_unknown_outcome) {
  ScriptedServer server;
  Reply hanging;
  hanging.hangs = true;
  server.script(hanging);
  Client client(options_for(server.url()));
  const BootTime begin = BootClock::now();
  Answer answer;
  BOOST_TEST(tests::returns_within(seconds(2), [&] {  // It is sent in them.
    answer = call(client, Action::put_item, "{}", seconds(2));
  }));
  const nanoseconds took = BootClock::now() - begin;
  CHECK_FAULT(answer, Fault::timed_out);
  BOOST_TEST(answer.sent);
  BOOST_TEST(answer.outcome_unknown());
  BOOST_TEST((took >= seconds(2)));
  BOOST_TEST(!client.clock().silent());
  server.release();
  // The late answer is not taken for that of the next request.
  server.script(Reply::ok("{\"Item\":{\"a\":{\"S\":\"b\"}}}"));
  const Answer next = call(client, Action::get_item);
  CHECK_FAULT(next, Fault::none);
  BOOST_TEST(next.item.has_value());
}

BOOST_AUTO_TEST_CASE(deadline_long_past_ends_at_once) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  sigv4::Waker waker;
  Answer answer;
  BOOST_TEST(tests::returns_within(seconds(0), [&] {
    answer = client.call(Action::put_item, "{}", BootClock::now() - seconds(1),
                         waker);
  }));
  CHECK_FAULT(answer, Fault::timed_out);
  BOOST_TEST(answer.outcome_unknown() == answer.sent);
}

BOOST_AUTO_TEST_CASE(wake_under_way_is_cancelled_with_unknown_outcome) {
  ScriptedServer server;
  Reply hanging;
  hanging.hangs = true;
  server.script(hanging);
  Client client(options_for(server.url()));
  sigv4::Waker waker;
  std::thread canceller([&] {
    server.wait_for_requests(1);
    waker.wake();
  });
  const Answer answer =
      client.call(Action::delete_item, "{}", BootClock::now() + kLong, waker);
  canceller.join();
  CHECK_FAULT(answer, Fault::cancelled);
  BOOST_TEST(answer.sent);
  BOOST_TEST(answer.outcome_unknown());
  server.release();
}

BOOST_AUTO_TEST_CASE(wake_before_the_call_is_cancelled_and_stays_woken) {
  ScriptedServer server;
  Reply hanging;
  hanging.hangs = true;
  server.script(hanging);
  server.script(hanging);
  Client client(options_for(server.url()));
  sigv4::Waker waker;
  waker.wake();
  for (int i = 0; i < 2; ++i) {
    const Answer answer =
        client.call(Action::put_item, "{}", BootClock::now() + kLong, waker);
    CHECK_FAULT(answer, Fault::cancelled);
    BOOST_TEST(answer.outcome_unknown() == answer.sent);
  }
  server.release();
}

BOOST_AUTO_TEST_CASE(refused_connection_is_unreachable_and_certainly_not_sent) {
  // Bound, so nobody else gets the port, but not listening.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  BOOST_REQUIRE(bind(fd, any, size) == 0);
  BOOST_REQUIRE(getsockname(fd, any, &size) == 0);
  Client client(options_for("http://127.0.0.1:" +
                            std::to_string(ntohs(address.sin_port))));
  const Answer answer = call(client);
  CHECK_FAULT(answer, Fault::unreachable);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(!answer.outcome_unknown());
  BOOST_TEST(!answer.message.empty());
  BOOST_TEST(!client.clock().silent());
  for (const std::uint64_t sent : client.counts().sent) BOOST_TEST(sent == 0u);
  close(fd);
}

BOOST_AUTO_TEST_CASE(untrusted_certificate_is_final_and_certainly_not_sent) {
  ScriptedServer server(nullptr, ScriptedServer::Scheme::https);
  Client client(options_for(server.url()));
  const Answer answer = call(client);
  CHECK_FAULT(answer, Fault::bad_certificate);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(!answer.outcome_unknown());
  BOOST_TEST(server.request_count() == 0);

  ClientOptions options = options_for(server.url());
  options.target.ca_file = server.certificate_file();
  Client trusting(std::move(options));
  CHECK_FAULT(call(trusting), Fault::none);
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(kept_connection_that_died_idle_is_replaced) {
  ScriptedServer server;
  Client client(options_for(server.url()));
  CHECK_FAULT(call(client), Fault::none);
  server.end_idle(Ending::close);
  const Answer answer = call(client);
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(server.request_count() == 2);
  BOOST_TEST(server.connection_count() == 2);
}

// libcurl would send it again by itself here.
BOOST_AUTO_TEST_CASE(kept_connection_that_dies_under_a_request_is_not_resent) {
  for (const Ending ending : {Ending::close, Ending::reset}) {
    ScriptedServer server;
    Client client(options_for(server.url()));
    CHECK_FAULT(call(client), Fault::none);
    server.script(Reply::gone(ending));
    const Answer answer = call(client);
    CHECK_FAULT(answer, Fault::disconnected);
    BOOST_TEST(answer.outcome_unknown());
    BOOST_TEST(server.request_count() == 2);
    BOOST_TEST(client.counts().sent[1] == 2u);
  }
}

BOOST_AUTO_TEST_CASE(pending_destroyed_ends_its_request) {
  ScriptedServer server;
  Reply hanging;
  hanging.hangs = true;
  server.script(hanging);
  Client client(options_for(server.url()));
  {
    auto pending = begun(client, Action::put_item, "{}");
    BOOST_TEST(pending->under_way());
    sigv4::Exchange* exchange = &pending->exchange();
    // Drives until it was read there, as nothing else tells.
    const BootTime end = BootClock::now() + kLong;
    while (server.request_count() == 0 && BootClock::now() < end) {
      sigv4::drive(&exchange, 1, BootClock::now() + milliseconds(1), nullptr);
    }
    BOOST_TEST(server.request_count() == 1);
  }
  server.release();
  CHECK_FAULT(call(client), Fault::none);
  BOOST_TEST(server.connection_count() == 2);
}

BOOST_AUTO_TEST_SUITE_END()

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

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<HostileReply> replies_of_no_sense() {
  const std::string deep = repeated("{\"a\":", 80 * 1024);
  return {
      {"empty", Reply::ok("")},
      {"HTML", Reply::ok("<html>Log in to the hotel</html>")},
      {"HTML of HTML",
       with_header(Reply::ok("<html></html>"), "Content-Type", "text/html")},
      {"array", Reply::ok("[{}]")},
      {"error as 200", Reply::ok("{\"__type\":\"InternalServerError\"}")},
      {"wrong crc32", changed(Reply::ok("{}"), &Reply::wrong_crc32)},
      {"garbled crc32", with_header(Reply::ok("{}"), "x-amz-crc32", "yes")},
      {"400 KB of [", Reply::ok(std::string(400 * 1024, '['))},
      {"400 KB of {\"a\":", Reply::ok(deep)},
      {"refusal of 400 KB of [",
       Reply::error(400, std::string(400 * 1024, '['))},
      {"500 of 400 KB of [", Reply::error(500, std::string(400 * 1024, '[')),
       Fault::server_failure},
      {"10 MB", Reply::ok(std::string(10 << 20, ' '))},
      {"10 MB chunked",
       changed(Reply::ok(std::string(10 << 20, ' ')), &Reply::chunked)},
      {"endless body", changed(Reply(), &Reply::endless_body)},
      {"endless headers", changed(Reply(), &Reply::endless_headers)},
      {"redirect",
       with_header(Reply::error(307, ""), "Location", "http://127.0.0.1:1/")},
      {"redirect with an object",
       with_header(Reply::error(302), "Location", "/")},
      {"no content", raw("HTTP/1.1 204 No Content\r\n\r\n", Ending::keep)},
      {"partial content", Reply::error(206)},
  };
}

std::vector<HostileReply> replies_cut_short() {
  const Fault gone = Fault::disconnected;
  return {
      {"closed without a word", Reply::gone(Ending::close), gone},
      {"reset without a word", Reply::gone(Ending::reset), gone},
      {"cut in its body", cut(9, Ending::close), gone},
      {"reset in its body", cut(9, Ending::reset), gone},
      {"cut before its body", cut(0, Ending::close), gone},
      {"cut before its last byte", cut(29, Ending::close), gone},
      {"cut in its status", raw("HTTP/1.1 20"), gone},
      {"cut in its headers", raw("HTTP/1.1 200 OK\r\nDate: Mon"), gone},
      {"no end of headers", raw("HTTP/1.1 200 OK\r\nDate: x\r\n"), gone},
      {"only an interim answer", raw("HTTP/1.1 100 Continue\r\n\r\n"), gone},
      {"not HTTP", raw("SSH-2.0-OpenSSH_9.2\r\n"), gone},
      {"bare text as of HTTP/0.9", raw("{}"), gone},
      {"cut in a chunk",
       raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{}"),
       gone},
      {"chunk of no length",
       raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
       gone},
  };
}

std::vector<HostileReply> replies_of_trouble() {
  return {
      {"500", Reply::error(500, ""), Fault::server_failure},
      {"502 HTML", Reply::error(502, "<html>"), Fault::server_failure},
      {"503", Reply::error(503), Fault::server_failure},
      {"504", Reply::error(504, ""), Fault::server_failure},
      {"429", Reply::error(429, ""), Fault::throttled},
      {"413", Reply::error(413, "")},
      {"403 HTML", Reply::error(403, "<html>Forbidden</html>")},
      {"throttled", refused("ThrottlingException"), Fault::throttled},
  };
}

void check_hostile(const std::vector<HostileReply>& table) {
  for (const HostileReply& c : table) {
    ScriptedServer server;
    server.script(c.reply);
    Client client(options_for(server.url()));
    BOOST_TEST_CONTEXT(c.what) {
      const BootTime begin = BootClock::now();
      const Answer answer = call(client);
      BOOST_TEST((BootClock::now() - begin < kLong / 2));  // No time-out.
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

}  // namespace

BOOST_AUTO_TEST_SUITE(client_before_a_hostile_server)

BOOST_AUTO_TEST_CASE(reply_of_no_sense_gives_its_fault_outcome_unknown) {
  check_hostile(replies_of_no_sense());
}

BOOST_AUTO_TEST_CASE(reply_cut_short_is_disconnected_outcome_unknown) {
  check_hostile(replies_cut_short());
}

BOOST_AUTO_TEST_CASE(reply_of_trouble_gives_its_fault_outcome_unknown) {
  check_hostile(replies_of_trouble());
}

// The second copy stands in the buffer of a connection that is used again.
BOOST_AUTO_TEST_CASE(answer_sent_twice_is_not_taken_for_the_next_one) {
  ScriptedServer server;
  Reply twice = Reply::ok("{\"Item\":{\"a\":{\"S\":\"first\"}}}");
  twice.copies = 2;
  server.script(twice);
  Client client(options_for(server.url()));
  const Answer first = call(client, Action::get_item);
  CHECK_FAULT(first, Fault::none);
  server.script(Reply::ok("{\"Item\":{\"a\":{\"S\":\"second\"}}}"));
  const Answer second = call(client, Action::get_item);
  if (second.fault == Fault::none) {
    BOOST_REQUIRE(second.item.has_value());
    BOOST_TEST(second.item->front().value == "second");
  } else {
    BOOST_TEST(second.outcome_unknown());
  }
}

BOOST_AUTO_TEST_CASE(interim_answers_before_the_final_one_are_passed_over) {
  ScriptedServer server;
  Reply reply = Reply::ok("{}");
  reply.interim = {100, 102, 103};
  server.script(reply);
  Client client(options_for(server.url()));
  const Answer answer = call(client);
  CHECK_FAULT(answer, Fault::none);
}

BOOST_AUTO_TEST_CASE(retry_after_and_request_id_come_through) {
  ScriptedServer server;
  server.script(
      with_header(with_header(Reply::error(503), "x-amz-retry-after", "1250"),
                  "x-amzn-RequestId", "ABC123"));
  Client client(options_for(server.url()));
  const Answer answer = call(client);
  BOOST_TEST(answer.retry_after.count() == 1250);
  BOOST_TEST(answer.request_id == "ABC123");
}

BOOST_AUTO_TEST_SUITE_END()

// --- Many threads -----------------------------------------------------------

namespace {

// Answers a GetItem with the body it was sent, as an item.
Reply echo(const SeenRequest& request) {
  return Reply::ok("{\"Item\":{\"a\":{\"S\":\"" + request.body + "\"}}}");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(client_of_many_threads)

BOOST_AUTO_TEST_CASE(each_thread_gets_its_own_answers) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 50;
  ScriptedServer server(echo);
  Client client(options_for(server.url()));
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < kCalls; ++j) {
        const std::string mark = std::to_string(i) + "-" + std::to_string(j);
        const Answer answer = call(client, Action::get_item, mark);
        const bool good = answer.fault == Fault::none && answer.item &&
                          answer.item->front().value == mark &&
                          client.clock().known();
        if (good) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(right == kThreads * kCalls);
  BOOST_TEST(client.counts().sent[0] == std::uint64_t{kThreads * kCalls});
  BOOST_TEST(server.request_count() == kThreads * kCalls);
  BOOST_TEST(server.connection_count() <= kThreads);
  for (const SeenRequest& request : server.requests()) {
    BOOST_REQUIRE(request.header("Authorization").value_or("") ==
                  expected_authorization(request, keys()));
  }
}

BOOST_AUTO_TEST_CASE(calls_begun_at_once_by_one_thread_each_end) {
  ScriptedServer server(echo);
  Client client(options_for(server.url()));
  std::vector<std::unique_ptr<Client::Pending>> pending;
  std::vector<sigv4::Exchange*> exchanges;
  for (int i = 0; i < 20; ++i) {
    pending.push_back(begun(client, Action::get_item, std::to_string(i)));
    exchanges.push_back(&pending.back()->exchange());
  }
  const BootTime end = BootClock::now() + kLong;
  const auto any_left = [&] {
    return std::any_of(pending.begin(), pending.end(),
                       [](const auto& p) { return p->under_way(); });
  };
  while (any_left() && BootClock::now() < end) {
    sigv4::drive(exchanges.data(), exchanges.size(), end, nullptr);
  }
  for (int i = 0; i < 20; ++i) {
    const Answer answer =
        client.finish(std::move(pending[static_cast<std::size_t>(i)]),
                      sigv4::Transport::cancelled);
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.item.has_value());
    BOOST_TEST(answer.item->front().value == std::to_string(i));
  }
}

BOOST_AUTO_TEST_SUITE_END()
