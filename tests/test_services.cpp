// Calls of services: how often they are made, when they end, what a failure
// means, and what is shown of it.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "sigv4/keys/service_call.hpp"
#include "sigv4/sigv4.hpp"
#include "sigv4/utc.hpp"
#include "tests/support/home.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/scripted_server.hpp"

namespace {

using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using tests::has;
using tests::Reply;
using tests::ScriptedServer;
using CallState = KeyOutcome::State;

constexpr std::int64_t kNow = 1700000000;  // By the caller's clock.

// A server, and a call of it whose refusals are "code" as their body has it.
struct Counter {
  Counter() {
    call.name = "TEST Call";
    call.host = url;
  }

  KeyOutcome ask() {
    return call_service(call, {deadline, stop, kNow},
                        [this](const HttpAnswer& http, std::int64_t utc_now) {
                          const std::string flaw = accept(http, utc_now);
                          return flaw.empty() ? success() : broken_keys({flaw});
                        });
  }
  bool is_done() { return ask().state == CallState::found; }
  Reply refusal(int status, const std::string& code) const {
    return Reply::error(status, R"({"code": ")" + code +
                                    R"(", "message": "its message", )" +
                                    R"("RequestId": "id-1"})");
  }
  // For which times the requests were signed.
  std::vector<std::int64_t> signed_for() const {
    std::vector<std::int64_t> times;
    for (const tests::SeenRequest& request : server.requests()) {
      std::string date = request.header("X-Amz-Date").value_or("");
      if (date.size() != 16) continue;
      for (const std::size_t at : {13u, 11u}) date.insert(at, 1, ':');
      for (const std::size_t at : {6u, 4u}) date.insert(at, 1, '-');
      times.push_back(parse_iso8601(date).value_or(0));
    }
    return times;
  }

  ScriptedServer server{
      [](const tests::SeenRequest&) { return Reply::ok("good"); }};
  const std::string url = server.url();
  ServiceCall call;
  std::function<std::string(const HttpAnswer&, std::int64_t)> accept =
      [this](const HttpAnswer& answer, std::int64_t utc_now) {
        accepted_at = utc_now;
        return answer.body == "good" ? "" : "no good answer";
      };
  Credentials keys = {"id", "secret", "token", ""};
  Waker stop;
  BootTime deadline = BootClock::now() + 60s;
  std::int64_t accepted_at = 0;
};

Reply dated(Reply reply, std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  reply.headers.emplace_back("Date", text);
  return reply;
}

// A test may be held up for a while.
bool is_about(std::int64_t a, std::int64_t b) { return a >= b && a < b + 120; }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(test_services, Counter)

BOOST_AUTO_TEST_CASE(codes_and_statuses_say_what_may_pass) {
  for (const auto& [status, code] :
       {std::pair(403, "AccessDenied"), std::pair(400, "ExpiredTokenException"),
        std::pair(404, "InvalidAction"), std::pair(418, "WhoKnows")}) {
    const int before = server.request_count();
    server.script(refusal(status, code));
    const KeyOutcome outcome = ask();
    BOOST_TEST((outcome.state == CallState::broken), code);
    BOOST_TEST(has(outcome.reason, code));
    BOOST_TEST(server.request_count() == before + 1);
  }
  for (const auto& [status, code] :
       {std::pair(400, "Throttling"), std::pair(429, "WhoKnows"),
        std::pair(503, "AccessDenied"), std::pair(408, "WhoKnows"),
        std::pair(400, "IDPCommunicationError"),
        std::pair(400, "InvalidIdentityToken")}) {
    const int before = server.request_count();
    for (int i = 0; i < 3; ++i) server.script(refusal(status, code));
    const KeyOutcome outcome = ask();
    const bool passes = std::string_view(code) != "InvalidIdentityToken";
    BOOST_TEST(
        (outcome.state == (passes ? CallState::failed : CallState::broken)),
        code);
    BOOST_TEST(has(outcome.reason, std::string(", 3 attempts: ") + code));
    BOOST_TEST(server.request_count() == before + 3);
  }
}

BOOST_AUTO_TEST_CASE(refusal_is_read_however_a_service_writes_it) {
  const auto read = [](const std::string& body, const std::string& headers) {
    HttpAnswer answer;
    answer.body = body;
    answer.headers = headers;
    const Refusal refusal = read_refusal(answer);
    return refusal.code + "|" + refusal.message + "|" + refusal.request_id;
  };
  BOOST_TEST(read(R"({"Error":{"Type":"Sender","Code":"C","Message":"m"},)"
                  R"("RequestId":"r"})",
                  "") == "C|m|r");
  BOOST_TEST(read(R"({"code":"C","message":"m"})", "") == "C|m|");
  BOOST_TEST(read(R"({"Code":"C","Message":"m"})", "") == "C|m|");
  BOOST_TEST(read(R"({"__type":"a.b#C","message":"m"})",
                  "x-amzn-RequestId: r\r\n") == "C|m|r");
  BOOST_TEST(read(R"({"error":"C","error_description":"m"})", "") == "C|m|");
  BOOST_TEST(read("", "x-amzn-ErrorType: C:http://x/\r\n") == "C||");
  for (const char* body :
       {"", "{}", R"({"Error":{}})", R"({"code":1})", "<html>C</html>",
        "<ErrorResponse><Error><Code>C</Code></Error></ErrorResponse>"}) {
    BOOST_TEST(read(body, "") == "||", body);
  }
}

BOOST_AUTO_TEST_CASE(refusal_that_repeats_a_token_does_not_stay_in_memory) {
  const tests::Home home;
  const std::string path = (home.root / "body").string();
  for (const char* before : {R"({"code":")", R"({"message":")",
                             R"({"RequestId":")", R"({"code":"n#)"}) {
    tests::Needle needle(7001);
    // So long that nothing else takes the place of it.
    needle.write(path, before, std::string(5000, '.') + R"("})");
    {
      SecretFile file(path, 10000);
      HttpAnswer answer;
      answer.body.swap(file.text);
      const Refusal refusal = read_refusal(answer);
      BOOST_TEST((needle.is_in(refusal.code) || needle.is_in(refusal.message) ||
                  needle.is_in(refusal.request_id)),
                 before);
      answer.body.swap(file.text);
    }
    BOOST_TEST(!needle.is_in_memory(), before);
  }
}

// -- Ends --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(attempt_without_an_answer_leaves_time_for_another) {
  Reply never;
  never.hangs = true;
  server.script(never);
  BOOST_TEST(is_done());
  BOOST_TEST(server.request_count() == 2);
  server.release();
}

// -- Clocks ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(refusal_for_the_time_is_followed_by_a_call_of_its_date) {
  call.signer = &keys;
  call.region = "eu-west-1";
  for (const char* code :
       {"SignatureDoesNotMatch", "RequestExpired", "RequestTimeTooSkewed",
        "RequestInTheFuture", "InvalidSignatureException", "AuthFailure"}) {
    const std::size_t before = signed_for().size();
    server.script(dated(refusal(403, code), kNow + 10000));
    BOOST_TEST(is_done());
    BOOST_TEST_REQUIRE(signed_for().size() == before + 2);
    BOOST_TEST(is_about(signed_for()[before], kNow));
    BOOST_TEST(is_about(signed_for()[before + 1], kNow + 10000));
  }
}

BOOST_AUTO_TEST_CASE(refusal_is_not_for_the_time_without_a_far_date) {
  Reply cached = dated(refusal(403, "RequestExpired"), kNow + 10000);
  cached.headers.emplace_back("Age", "7");
  for (const Reply& reply :
       {dated(refusal(403, "RequestExpired"), kNow), cached,
        dated(refusal(403, "AccessDenied"), kNow + 10000)}) {
    const int before = server.request_count();
    server.script(reply);
    BOOST_TEST((ask().state == CallState::broken));
    BOOST_TEST(server.request_count() == before + 1);
  }
}

// -- Texts -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(word_that_repeats_a_secret_is_not_shown) {
  const Secrets secrets = {"", "a-secret-of-some-length"};
  BOOST_TEST(redacted("it is a-secret-of-some-length, you know", secrets) ==
             "it is (hidden) you know");
  BOOST_TEST(redacted("<a-secret-of-some-length>", secrets) == "(hidden)");
  BOOST_TEST(redacted("a  <secret-of-so>\tb", secrets) == R"(a  (hidden)\tb)");
  // Of one that is written otherwise the rest goes with it.
  BOOST_TEST(redacted("got a%2Dsecret-of-some%2Dlength twice", secrets) ==
             "got (hidden) twice");
  BOOST_TEST(redacted("some-length", secrets) == "some-length");
  BOOST_TEST(redacted("", secrets) == "");
  BOOST_TEST(
      redacted("in two words: secret-of s", {"my secret-of some words"}) ==
      "in two words: (hidden) (hidden)");
}

// Words of every day, as beside an engine that checks no keys.
BOOST_AUTO_TEST_CASE(secret_that_is_short_is_not_looked_for) {
  const std::string text =
      "Failed to connect to localhost port 8000: local-and-local";
  BOOST_TEST(redacted(text, {"local", "aws", "local-and-local"}) == text);
  BOOST_TEST(redacted("0123456789abcdef", {"0123456789abcdef"}) == "(hidden)");
  BOOST_TEST(redacted("0123456789abcde", {"0123456789abcde"}) ==
             "0123456789abcde");
}

BOOST_AUTO_TEST_SUITE_END()
