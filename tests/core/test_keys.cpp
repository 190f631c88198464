// Keys: when they are fetched, by which thread, and which keys are used
// meanwhile.  Then the calls to services that give out keys: how often they are
// made, when they end, what a failure means, and what is shown of it.
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "sigv4/keys/keys.hpp"
#include "sigv4/keys/service_call.hpp"
#include "sigv4/sigv4.hpp"
#include "sigv4/utc.hpp"
#include "tests/support/given.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace ddbmutex;
using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::eventually;
using tests::has;
using tests::Reply;
using tests::ScriptedServer;
using State = KeyOutcome::State;

BOOST_AUTO_TEST_SUITE(keys)

namespace {

KeyOutcome found(const std::string& id, BootTime ends = BootTime::max()) {
  KeyOutcome outcome;
  outcome.state = State::found;
  outcome.keys = {id, "secret-of-" + id, "", ""};
  outcome.source = "the test";
  outcome.ends = ends;
  return outcome;
}

// A source that answers what a test tells it, and waits while it is closed.
class Scripted final : public KeySource {
 public:
  using Answer = std::function<KeyOutcome()>;

  KeyOutcome fetch(const Fetch& fetch) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++asked_;
    at_once_ = std::max(at_once_, ++running_);
    threads_.insert(gettid());
    utc_now_ = fetch.utc_now;
    while (closed_ && !fetch.stop.woken()) changed_.wait_for(lock, 5ms);
    const Answer answer = answer_;
    lock.unlock();
    KeyOutcome outcome = answer();
    lock.lock();
    --running_;
    return outcome;
  }

  void answer(Answer with) {
    const std::lock_guard<std::mutex> guard(mutex_);
    answer_ = std::move(with);
  }
  void close(bool closed = true) {
    const std::lock_guard<std::mutex> guard(mutex_);
    closed_ = closed;
    changed_.notify_all();
  }
  int asked() const { return read(asked_); }
  int at_once() const { return read(at_once_); }
  std::int64_t utc_now() const { return read(utc_now_); }
  std::set<pid_t> threads() const { return read(threads_); }

 private:
  template <class T>
  T read(const T& value) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return value;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Answer answer_ = [] { return found("first"); };
  bool closed_ = false;
  int asked_ = 0;
  int running_ = 0;
  int at_once_ = 0;
  std::int64_t utc_now_ = 0;
  std::set<pid_t> threads_;
};

struct Fixture {
  std::shared_ptr<Scripted> source = std::make_shared<Scripted>();
  // No fetch takes too long, although a test asks with times of its own.
  Keys keys{source, [] { return std::int64_t{1700000000}; }, {}, 24h};

  std::mutex mutex;
  Keys::OutcomePtr last;  // The keys used last.  GUARDED_BY(mutex)

  // The ID of the keys to use, or why there are none; found as a client does.
  std::string now() { return at(BootClock::now()); }
  std::string at(BootTime time) {
    const std::lock_guard<std::mutex> guard(mutex);
    if (last == nullptr || !keys.are_current(*last, time)) {
      const Keys::Current current = keys.now(time);
      if (current.being_fetched) return "on their way";
      const KeyOutcome& outcome = *current.outcome;
      if (outcome.state != State::found) return outcome.reason;
      last = current.outcome;
    }
    return last->keys.access_key_id;
  }
  std::string awaited() {
    sigv4::CallWaker nobody;
    keys.await(BootClock::now() + tests::kPlenty, nobody);
    return now();
  }
};

BootTime in(std::chrono::nanoseconds time) { return BootClock::now() + time; }

}  // namespace

BOOST_AUTO_TEST_CASE(source_is_asked_by_a_thread_of_its_own_and_told_the_time) {
  Fixture it;
  BOOST_TEST(it.awaited() == "first");
  BOOST_TEST(it.source->threads().count(gettid()) == 0u);
  BOOST_TEST(it.source->utc_now() == 1700000000);
}

BOOST_AUTO_TEST_CASE(keys_that_stay_are_known_without_the_mutex) {
  Fixture it;
  it.source->answer([] { return found("old", in(1h)); });
  BOOST_REQUIRE(it.awaited() == "old");
  const KeyOutcome other;
  BOOST_TEST(it.keys.are_current(*it.last, BootClock::now()));
  BOOST_TEST(!it.keys.are_current(other, BootClock::now()));
  BOOST_TEST(!it.keys.are_current(*it.last, in(59min)));  // New ones are due.
  it.keys.replace_refused(it.last);
  BOOST_TEST(!it.keys.are_current(*it.last, BootClock::now()));
}

BOOST_AUTO_TEST_CASE(new_keys_are_fetched_ahead_while_the_old_ones_serve) {
  Fixture it;
  const BootTime end = in(1h);  // New ones are due a quarter of an hour before.
  it.source->answer([&] { return found("old", end); });
  BOOST_REQUIRE(it.awaited() == "old");
  it.source->answer([&] { return found("new"); });
  it.source->close();
  BOOST_TEST(it.at(end - 21min) == "old");
  BOOST_TEST(it.source->asked() == 1);
  BOOST_TEST(it.at(end - 14min) == "old");
  BOOST_TEST(eventually([&] { return it.source->asked() == 2; }));
  BOOST_TEST(it.at(end - 3s) == "old");
  BOOST_TEST(it.at(end) == "on their way");
  it.source->close(false);
  BOOST_TEST(eventually([&] { return it.now() == "new"; }));
  BOOST_TEST(it.source->at_once() == 1);
}

BOOST_AUTO_TEST_CASE(
    refresh_that_fails_leaves_the_old_keys_until_and_past_their_end) {
  Fixture it;
  it.source->answer([] { return found("old", in(600ms)); });
  // A stall may let the keys end before they are seen; then they come again.
  BOOST_REQUIRE(eventually([&] { return it.awaited() == "old"; }));
  it.source->answer([] { return failed_keys({"no answer"}); });
  const int asked = it.source->asked();
  const BootTime end = in(900ms);
  while (BootClock::now() < end) {
    const std::string now = it.now();
    // At the very end, the first failure may still be to come.
    BOOST_TEST_REQUIRE((now == "old" || now == "on their way"), now);
    tests::pause(5ms);
  }
  BOOST_TEST(eventually([&] {  // It is tried again meanwhile, ...
    it.now();
    return it.source->asked() > asked + 1;
  }));
  BOOST_TEST(it.source->asked() < asked + 11);  // ... ever less often.
  BOOST_TEST(it.now() == "old");
  it.source->answer([] { return found("new"); });
  BOOST_TEST(eventually([&] { return it.now() == "new"; }));
}

BOOST_AUTO_TEST_CASE(
    ended_keys_do_not_serve_while_the_first_refresh_is_under_way) {
  Fixture it;
  const BootTime end = in(3s);
  it.source->answer([&] {
    it.source->close();  // The refresh hangs.
    return found("old", end);
  });
  const std::string first = it.awaited();
  BOOST_TEST((first == "old" || BootClock::now() > end), first);
  it.source->answer([] { return found("new"); });
  BOOST_TEST(eventually([&] { return BootClock::now() > end; }));
  BOOST_TEST(it.now() == "on their way");
  BOOST_TEST(it.keys.now().outcome->reason ==
             "the keys from the test have expired, and new keys are being "
             "fetched");
  it.source->close(false);
  BOOST_TEST(it.awaited() == "new");
}

BOOST_AUTO_TEST_CASE(refused_keys_do_not_serve_again_and_others_are_fetched) {
  Fixture it;
  it.source->answer([] { return found("old", in(1h)); });
  BOOST_REQUIRE(it.awaited() == "old");
  const Keys::OutcomePtr old = it.keys.now().outcome;
  // Keys fetched less than a second ago are not replaced.
  tests::pause(1100ms);
  it.source->answer([] { return found("new", in(1h)); });
  it.source->close();
  BOOST_TEST(it.keys.replace_refused(old));
  BOOST_TEST(it.now() == "on their way");
  it.source->close(false);
  BOOST_TEST(it.awaited() == "new");
  // There are other keys already.
  BOOST_TEST(it.keys.replace_refused(old));
  BOOST_TEST(it.now() == "new");
  BOOST_TEST(it.source->asked() == 2);
}

BOOST_AUTO_TEST_CASE(keys_to_be_asked_for_again_are_though_they_have_no_end) {
  Fixture it;
  it.source->answer([] {
    KeyOutcome outcome = found("old");
    outcome.ask_again = in(50ms);
    return outcome;
  });
  BOOST_REQUIRE(it.awaited() == "old");
  it.source->answer([] { return found("new"); });
  BOOST_TEST(eventually([&] { return it.now() == "new"; }));
}

BOOST_AUTO_TEST_CASE(exception_out_of_a_source_is_a_transient_failure) {
  Fixture it;
  it.source->answer([]() -> KeyOutcome { throw std::runtime_error("oh no"); });
  BOOST_TEST(has(it.awaited(), "threw: oh no"));
  BOOST_TEST((it.keys.now().outcome->state == State::failed));
  it.source->answer([] { return found("after"); });
  BOOST_TEST(eventually([&] { return it.awaited() == "after"; }));
}

// It waits for two seconds, as the header says, and then detaches the thread.
BOOST_AUTO_TEST_CASE(destructor_leaves_a_fetch_that_does_not_stop) {
  const auto gate = std::make_shared<std::atomic<bool>>(false);
  const auto over = std::make_shared<tests::Event>();
  auto keys =
      std::make_unique<Keys>(tests::source_of([gate, over](const Fetch&) {
                               while (!*gate) tests::pause(5ms);
                               over->set();
                               return found("nobody");
                             }),
                             tests::kNoClock);
  keys->now();
  const tests::Stopwatch watch;
  BOOST_TEST(tests::returns_within(2s, [&] { keys.reset(); }));
  const auto took = watch.ms();
  *gate = true;
  BOOST_TEST(took >= 1900);
  BOOST_TEST(over->wait());
}

BOOST_AUTO_TEST_CASE(source_that_does_not_come_back_is_left_and_asked_again) {
  const auto gate = std::make_shared<std::atomic<bool>>(false);
  const auto asked = std::make_shared<std::atomic<int>>(0);
  Keys keys(tests::source_of([gate, asked](const Fetch&) {
              if (++*asked == 1) {
                while (!*gate) tests::pause(5ms);
                return found("too late");
              }
              return found("second");
            }),
            tests::kNoClock, {}, 2s);
  sigv4::CallWaker nobody;
  BOOST_TEST(eventually([&] {
    keys.await(in(20ms), nobody);
    return keys.now().outcome->keys.access_key_id == "second";
  }));
  const int before = *asked;
  *gate = true;  // The first fetch ends, and its keys are not used.
  const BootTime end = in(300ms);
  while (BootClock::now() < end) {
    BOOST_TEST_REQUIRE(keys.now().outcome->keys.access_key_id == "second");
    tests::pause(5ms);
  }
  BOOST_TEST(*asked == before);
}

BOOST_AUTO_TEST_CASE(source_may_destroy_the_keys_that_ask_it) {
  std::unique_ptr<Keys> keys;
  tests::Event made, gone;
  bool prompt = false;
  keys = std::make_unique<Keys>(tests::source_of([&](const Fetch&) {
                                  made.wait();
                                  prompt = tests::returns_within(
                                      0s, [&] { keys.reset(); });
                                  gone.set();
                                  return found("nobody's");
                                }),
                                tests::kNoClock);
  keys->now();
  made.set();
  BOOST_TEST(gone.wait());
  BOOST_TEST(prompt);  // The thread has not waited for itself.
}

BOOST_AUTO_TEST_SUITE_END()

// --- Calls of services -------------------------------------------------------

namespace {

constexpr std::int64_t kNow = 1700000000;  // By the caller's clock.

// A server, and a call to it.  It counts requests, and refuses with errors that
// a test writes.
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
  bool is_done() { return ask().state == State::found; }
  Reply refusal(int status, const std::string& code) const {
    return Reply::error(status, R"({"code": ")" + code +
                                    R"(", "message": "its message", )" +
                                    R"("RequestId": "id-1"})");
  }
  // The times in the requests' signatures.
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

BOOST_AUTO_TEST_CASE(codes_and_statuses_say_what_is_transient) {
  for (const auto& [status, code] :
       {std::pair(403, "AccessDenied"), std::pair(400, "ExpiredTokenException"),
        std::pair(404, "InvalidAction"), std::pair(418, "WhoKnows")}) {
    const int before = server.request_count();
    server.script(refusal(status, code));
    const KeyOutcome outcome = ask();
    BOOST_TEST((outcome.state == State::broken), code);
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
    BOOST_TEST((outcome.state == (passes ? State::failed : State::broken)),
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
    return join({refusal.code, "|", refusal.message, "|", refusal.request_id});
  };
  BOOST_TEST(read(R"({"Error":{"Type":"Sender","Code":"C","Message":"m"},)"
                  R"("RequestId":"r"})",
                  "") == "C|m|r");
  BOOST_TEST(read(R"({"code":"C","message":"m"})", "") == "C|m|");
  BOOST_TEST(read(R"({"Code":"C","Message":"m"})", "") == "C|m|");
  BOOST_TEST(read(R"({"__type":"a.b#C","message":"m"})",
                  "x-amzn-RequestId: r\r\n") == "C|m|r");
  BOOST_TEST(read("", "x-amzn-ErrorType: C:http://x/\r\n") == "C||");
  for (const char* body :
       {"", "{}", R"({"Error":{}})", R"({"code":1})", "<html>C</html>",
        "<ErrorResponse><Error><Code>C</Code></Error></ErrorResponse>"}) {
    BOOST_TEST(read(body, "") == "||", body);
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

BOOST_AUTO_TEST_CASE(refusal_for_the_time_is_retried_with_the_answers_date) {
  call.sign = [](const std::string&, std::int64_t utc, Text& headers) {
    headers += "X-Amz-Date: ";
    headers += amz_date(utc);
    headers += '\n';
  };
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
    BOOST_TEST((ask().state == State::broken));
    BOOST_TEST(server.request_count() == before + 1);
  }
}

// -- Texts -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(text_that_repeats_a_secret_is_not_shown) {
  const Secrets secrets = {"", "a-secret-of-some-length"};
  for (const std::string text :
       {"it is a-secret-of-some-length, you know", "<a-secret-of-some-length>",
        "a  <secret-of-so>\tb", "got a%2Dsecret-of-some%2Dlength twice"}) {
    BOOST_TEST(redacted(text, secrets) == "(hidden)");
    // Also if it repeats the secret behind what is shown.
    BOOST_TEST(redacted(std::string(295, 'x') + text, secrets) == "(hidden)");
    BOOST_TEST(redacted(std::string(2000, 'x') + text, secrets) == "(hidden)");
  }
  BOOST_TEST(redacted("some-length", secrets) == "some-length");
  BOOST_TEST(redacted("", secrets) == "");
  BOOST_TEST(redacted("a\tb\na-secret-of-some-length", secrets) == R"(a\tb)");
  BOOST_TEST(redacted(std::string(400, 'x'), secrets) ==
             std::string(300, 'x') + "...");
}

// Keys of a local engine are often ordinary words.
BOOST_AUTO_TEST_CASE(secret_that_is_short_is_not_looked_for) {
  const std::string text =
      "Failed to connect to localhost port 8000: local-and-local";
  BOOST_TEST(redacted(text, {"local", "aws", "local-and-local"}) == text);
  BOOST_TEST(redacted("0123456789abcdef", {"0123456789abcdef"}) == "(hidden)");
  BOOST_TEST(redacted("0123456789abcde", {"0123456789abcde"}) ==
             "0123456789abcde");
}

BOOST_AUTO_TEST_SUITE_END()
