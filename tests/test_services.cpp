// Calls of services: how often they are made, when they end, what a failure
// means, and what is shown of it.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
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
                          return flaw.empty() ? success() : broken_keys(flaw);
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

BOOST_AUTO_TEST_CASE(good_answer_ends_the_call) {
  call.signer = &keys;
  call.region = "eu-west-1";
  const KeyOutcome outcome = ask();
  BOOST_TEST((outcome.state == CallState::found));
  BOOST_TEST(outcome.reason == "");
  BOOST_TEST_REQUIRE(signed_for().size() == 1u);
  BOOST_TEST(is_about(signed_for()[0], kNow));
  BOOST_TEST(outcome.status == 200);
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(path_of_the_endpoint_comes_before_that_of_the_call) {
  const std::string host = url.substr(0, url.size() - 1);
  const std::vector<std::array<std::string, 3>> cases = {
      {"", "/", "/"},
      {"/", "/token?a=b", "/token?a=b"},
      {"/base", "/", "/base"},
      {"/base/", "/", "/base/"},
      {"/base", "/token?a=b", "/base/token?a=b"},
      {"/base/", "/token", "/base/token"},
      {"/base/", "", "/base/"},
  };
  for (const auto& [base, path, sent] : cases) {
    const std::string endpoint = host + base;
    call.host = endpoint;
    call.path = path;
    BOOST_TEST(is_done());
    BOOST_TEST(server.requests().back().path == sent);
  }
}

// Of a form, as it goes to STS.
BOOST_AUTO_TEST_CASE(path_of_the_endpoint_is_signed) {
  const std::string endpoint = url + "base";
  call.host = endpoint;
  call.path = "/";
  call.method = ddbmutex::sigv4::Method::post;
  call.headers = "Content-Type: application/x-www-form-urlencoded\n";
  call.body = "Action=AssumeRole";
  call.signer = &keys;
  call.region = "eu-west-1";
  BOOST_TEST(is_done());
  const tests::SeenRequest request = server.requests().back();
  const std::string type = request.header("Content-Type").value_or("");
  const std::string server_host = request.header("Host").value_or("");
  const std::string hash = ddbmutex::sigv4::sha256_hex(request.body);
  const auto expected =
      ddbmutex::sigv4::sign({"POST",
                             "/base",
                             "",
                             {{"content-type", type}, {"host", server_host}},
                             hash},
                            keys, {"eu-west-1", "sts"}, signed_for().back());
  BOOST_TEST(request.header("Authorization").value_or("") ==
             expected.authorization);
}

BOOST_AUTO_TEST_CASE(refusal_for_good_is_told_and_not_repeated) {
  server.script(refusal(400, "Nope"));
  const KeyOutcome outcome = ask();
  BOOST_TEST((outcome.state == CallState::broken));
  BOOST_TEST(outcome.status == 400);
  BOOST_TEST(outcome.reason.rfind("TEST Call at " + server.url() +
                                      ": Nope: its message (HTTP status 400, "
                                      "request ",
                                  0) == 0u);
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(refusal_without_a_code_is_told_by_its_status) {
  server.script(refusal(403, ""));
  BOOST_TEST(ask().reason ==
             "TEST Call at " + server.url() + ": HTTP status 403");
}

BOOST_AUTO_TEST_CASE(call_is_made_as_often_as_it_may_be) {
  for (const int attempts : {1, 2, 3}) {
    call.attempts = attempts;
    const int before = server.request_count();
    for (int i = 0; i < attempts; ++i) server.script(refusal(500, "Oops"));
    const KeyOutcome outcome = ask();
    BOOST_TEST((outcome.state == CallState::failed));
    BOOST_TEST(server.request_count() - before == attempts);
    const std::string count = std::to_string(attempts) + " attempts: Oops";
    BOOST_TEST(has(outcome.reason, count) == (attempts > 1));
  }
}

BOOST_AUTO_TEST_CASE(codes_say_what_may_pass) {
  for (const char* code : {"IDPCommunicationError", "SlowDownException"}) {
    for (int i = 0; i < 3; ++i) server.script(refusal(400, code));
    BOOST_TEST((ask().state == CallState::failed), code);
  }
  for (int i = 0; i < 3; ++i) {
    server.script(refusal(400, "InvalidIdentityToken"));
  }
  BOOST_TEST((ask().state == CallState::broken));
  BOOST_TEST(server.request_count() == 9);
  server.script(refusal(400, "InvalidIdentityToken"));
  BOOST_TEST(is_done());
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

BOOST_AUTO_TEST_CASE(status_that_is_no_success_is_none) {
  call.attempts = 1;
  for (const auto& [status, state] :
       {std::pair(201, CallState::failed), std::pair(302, CallState::broken),
        std::pair(307, CallState::broken), std::pair(401, CallState::broken),
        std::pair(404, CallState::broken), std::pair(408, CallState::failed),
        std::pair(429, CallState::failed), std::pair(501, CallState::failed),
        std::pair(599, CallState::failed)}) {
    server.script(refusal(status, "good"));
    BOOST_TEST((ask().state == state), status);
  }
}

BOOST_AUTO_TEST_CASE(redirect_is_told_as_such) {
  server.script(refusal(302, "Nope"));
  BOOST_TEST(has(ask().reason, "302, a redirect, which is not followed"));
}

BOOST_AUTO_TEST_CASE(answer_that_is_not_accepted_may_pass) {
  for (int i = 0; i < 3; ++i) server.script(Reply::ok("bad"));
  const KeyOutcome outcome = ask();
  BOOST_TEST((outcome.state == CallState::failed));
  BOOST_TEST(has(outcome.reason, ", 3 attempts: no good answer"));
}

BOOST_AUTO_TEST_CASE(answer_may_be_of_64_kib_and_no_longer) {
  call.attempts = 1;
  accept = [](const HttpAnswer& answer, std::int64_t) {
    return answer.body.size() == 64 * 1024 ? "" : "of another size";
  };
  server.script(Reply::ok(std::string(64 * 1024, 'x')));
  BOOST_TEST(is_done());
  server.script(Reply::ok(std::string(64 * 1024 + 1, 'x')));
  BOOST_TEST(has(ask().reason, "too large"));
  call.http.max_answer_bytes = 10;
  server.script(Reply::ok(std::string(64 * 1024, 'x')));
  BOOST_TEST(has(ask().reason, "too large"));
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

BOOST_AUTO_TEST_CASE(stop_ends_a_pause) {
  accept = [this](const HttpAnswer&, std::int64_t) {
    stop.wake();
    return "no good answer";
  };
  const KeyOutcome outcome = ask();
  BOOST_TEST((outcome.state == CallState::failed));
  BOOST_TEST(has(outcome.reason, "no good answer"));
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_pause_is_begun_that_would_pass_the_deadline) {
  deadline = BootClock::now() + 1s;
  accept = [this](const HttpAnswer&, std::int64_t) {
    std::this_thread::sleep_until(std::chrono::steady_clock::now() +
                                  (deadline - BootClock::now()));
    return "no good answer";
  };
  const KeyOutcome outcome = ask();
  BOOST_TEST((outcome.state == CallState::failed));
  // Unless a second was too little for one request, under load.
  BOOST_TEST(server.request_count() <= 1);
  if (outcome.status != 0) BOOST_TEST(has(outcome.reason, "no good answer"));
}

BOOST_AUTO_TEST_CASE(nobody_there_is_told_from_nobody_asked_to_the_end) {
  call.attempts = 1;
  Reply never;
  never.hangs = true;
  call.time = 200ms;
  server.script(never);
  BOOST_TEST(ask().absent);
  call.time = 60s;
  deadline = BootClock::now() + 200ms;
  server.script(never);
  BOOST_TEST(!ask().absent);
  server.release();
}

// -- Clocks ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(answer_is_dated_by_its_own_date) {
  server.script(dated(Reply::ok("good"), kNow + 5000));
  BOOST_TEST(is_done());
  BOOST_TEST(accepted_at == kNow + 5000);
}

BOOST_AUTO_TEST_CASE(answer_without_a_date_of_its_own_is_dated_by_the_caller) {
  Reply cached = dated(Reply::ok("good"), kNow + 5000);
  cached.headers.emplace_back("Age", "7");
  Reply undated = Reply::ok("good");
  undated.headers.emplace_back("Date", "");
  Reply nonsense = Reply::ok("good");
  nonsense.headers.emplace_back("Date", "yesterday");
  for (const Reply& reply : {cached, undated, nonsense}) {
    server.script(reply);
    BOOST_TEST(is_done());
    BOOST_TEST(is_about(accepted_at, kNow));
  }
}

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

BOOST_AUTO_TEST_CASE(clock_is_corrected_once_a_call) {
  for (int i = 1; i <= 3; ++i) {
    server.script(dated(refusal(403, "RequestExpired"), kNow + 10000 * i));
  }
  BOOST_TEST((ask().state == CallState::broken));
  BOOST_TEST(server.request_count() == 2);
}

// -- Texts -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(text_is_shown_as_one_short_line) {
  const auto plain = [](const std::string& text) { return shown(text, {}); };
  BOOST_TEST(plain("You may not.") == "You may not.");
  BOOST_TEST(plain("one\ntwo") == "one");
  BOOST_TEST(plain("one\r\ntwo") == "one");
  BOOST_TEST(plain("a\tb\x1b[31m\xc3\xa9\x7f") ==
             "a\\tb\\x1b[31m\xc3\xa9\\x7f");
  BOOST_TEST(plain(std::string(300, 'x')) == std::string(300, 'x'));
  BOOST_TEST(plain(std::string(301, 'x')) == std::string(300, 'x') + "...");
  BOOST_TEST(plain("") == "");
}

BOOST_AUTO_TEST_CASE(word_that_repeats_a_secret_is_not_shown) {
  const Secrets secrets = {"", "a-secret-of-some-length"};
  BOOST_TEST(shown("it is a-secret-of-some-length, you know", secrets) ==
             "it is (hidden) you know");
  BOOST_TEST(shown("<a-secret-of-some-length>", secrets) == "(hidden)");
  BOOST_TEST(shown("a  <secret-of-so>\tb", secrets) == R"(a  (hidden)\tb)");
  // Of one that is written otherwise the rest goes with it.
  BOOST_TEST(shown("got a%2Dsecret-of-some%2Dlength twice", secrets) ==
             "got (hidden) twice");
  BOOST_TEST(shown("some-length", secrets) == "some-length");
  BOOST_TEST(shown("", secrets) == "");
  BOOST_TEST(shown("in two words: secret-of s", {"my secret-of some words"}) ==
             "in two words: (hidden) (hidden)");
}

// Words of every day, as beside an engine that checks no keys.
BOOST_AUTO_TEST_CASE(secret_that_is_short_is_not_looked_for) {
  const std::string text =
      "Failed to connect to localhost port 8000: local-and-local";
  BOOST_TEST(shown(text, {"local", "aws", "local-and-local"}) == text);
  BOOST_TEST(shown("0123456789abcdef", {"0123456789abcdef"}) == "(hidden)");
  BOOST_TEST(shown("0123456789abcde", {"0123456789abcde"}) ==
             "0123456789abcde");
}

// The word is masked before the text is cut.
BOOST_AUTO_TEST_CASE(secret_at_the_end_of_a_long_text_is_not_shown) {
  const Secrets secrets = {"a-secret-of-some-length"};
  for (std::size_t at = 270; at <= 300; ++at) {
    const std::string before = std::string(at - 1, 'x') + " ";
    const std::string text =
        shown(before + "a-secret-of-some-length more", secrets);
    BOOST_TEST(!has(text, "a-s"), text);
    BOOST_TEST(text.size() <= 303u);
  }
}

BOOST_AUTO_TEST_CASE(code_that_repeats_a_secret_is_not_shown) {
  call.secrets = {"a-secret-of-some-length"};
  server.script(refusal(400, "a-secret-of-some-length"));
  BOOST_TEST(!has(ask().reason, "secret-of"));
}

BOOST_AUTO_TEST_CASE(form_encodes_all_but_letters_digits_and_four) {
  BOOST_TEST(form_of("", {}) == "");
  BOOST_TEST(form_of("x?", {{"a", "b"}, {"c", ""}, {"d", "e"}}) == "x?a=b&d=e");
  BOOST_TEST(form_of("", {{"Az09-._~", "a b+c&d=e%f/g\n\xc3\xa9"}}) ==
             "Az09-._~=a%20b%2Bc%26d%3De%25f%2Fg%0A%C3%A9");
}

BOOST_AUTO_TEST_CASE(failure_says_first_what_the_keys_were_wanted_for) {
  call.place = "here";
  server.script(refusal(400, "Nope"));
  BOOST_TEST(ask().reason.rfind("here: TEST Call at ", 0) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
