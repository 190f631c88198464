// sigv4/keys: when keys are fetched, by whom, and which ones serve meanwhile.
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "sigv4/keys/keys.hpp"
#include "tests/support/given.hpp"
#include "tests/support/mutex_kit.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using sigv4::Fetch;
using sigv4::KeyOutcome;
using sigv4::Keys;
using tests::eventually;
using tests::has;
using State = KeyOutcome::State;

namespace {

KeyOutcome found(const std::string& id, BootTime ends = BootTime::max()) {
  KeyOutcome outcome;
  outcome.state = State::found;
  outcome.keys = {id, "secret-of-" + id, "", ""};
  outcome.source = "the test";
  outcome.ends = ends;
  return outcome;
}

// A source that answers as it is told, when it is told.
class Scripted final : public sigv4::KeySource {
 public:
  using Answer = std::function<KeyOutcome()>;

  KeyOutcome fetch(const Fetch& fetch) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++asked_;
    at_once_ = std::max(at_once_, ++running_);
    threads_.insert(gettid());
    utc_now_ = fetch.utc_now;
    while (closed_ && !fetch.stop.woken()) changed_.wait_for(lock, 5ms);
    stopped_ = stopped_ || fetch.stop.woken();
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
  // While it is closed, it is asked and does not answer.
  void close(bool closed = true) {
    const std::lock_guard<std::mutex> guard(mutex_);
    closed_ = closed;
    changed_.notify_all();
  }
  int asked() const { return read(asked_); }
  int at_once() const { return read(at_once_); }
  bool stopped() const { return read(stopped_); }
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
  bool stopped_ = false;
  int asked_ = 0;
  int running_ = 0;
  int at_once_ = 0;
  std::int64_t utc_now_ = 0;
  std::set<pid_t> threads_;
};

struct Fixture {
  std::shared_ptr<Scripted> source = std::make_shared<Scripted>();
  Keys keys{source, [] { return std::int64_t{1700000000}; }};

  std::mutex mutex;
  Keys::OutcomePtr last;  // That served.  GUARDED_BY(mutex)

  // The ID of the keys that serve, or why none do; asked as a client does.
  std::string now() {
    const BootTime time = BootClock::now();
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
    keys.await(BootClock::now() + tests::kPlenty, nullptr);
    return now();
  }
};

BootTime in(std::chrono::nanoseconds time) { return BootClock::now() + time; }

}  // namespace

BOOST_AUTO_TEST_SUITE(keys)

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
  BOOST_TEST(!it.keys.are_current(*it.last, in(59min)));  // Others are due.
  it.keys.replace_refused(it.last);
  BOOST_TEST(!it.keys.are_current(*it.last, BootClock::now()));
}

BOOST_AUTO_TEST_CASE(new_keys_are_fetched_ahead_while_the_old_ones_serve) {
  Fixture it;
  const BootTime end = in(9s);  // From 6 s on.
  it.source->answer([&] { return found("old", end); });
  BOOST_REQUIRE(it.awaited() == "old");
  it.source->answer([&] { return found("new"); });
  it.source->close();
  BOOST_TEST(eventually([&] {
    it.now();
    return it.source->asked() == 2;
  }));
  const bool ahead = BootClock::now() < end;
  BOOST_TEST(ahead);
  if (ahead) BOOST_TEST(it.now() == "old");
  it.source->close(false);
  BOOST_TEST(eventually([&] { return it.now() == "new"; }));
  BOOST_TEST(it.source->at_once() == 1);
}

BOOST_AUTO_TEST_CASE(
    refresh_that_fails_leaves_the_old_keys_until_and_past_their_end) {
  Fixture it;
  const BootTime end = in(600ms);
  it.source->answer([&] { return found("old", end); });
  BOOST_REQUIRE(it.awaited() == "old");
  it.source->answer([] { return sigv4::failed_keys({"no answer"}); });
  while (BootClock::now() < end + 300ms) {
    const std::string now = it.now();
    // At the very end the first failure may still be to come.
    BOOST_TEST_REQUIRE((now == "old" || now == "on their way"), now);
    tests::pause(5ms);
  }
  BOOST_TEST(eventually([&] {  // And is tried again meanwhile,
    it.now();
    return it.source->asked() > 2;
  }));
  BOOST_TEST(it.source->asked() < 12);  // ever less often.
  BOOST_TEST(it.now() == "old");
  it.source->answer([] { return found("new"); });
  BOOST_TEST(eventually([&] { return it.now() == "new"; }));
}

BOOST_AUTO_TEST_CASE(
    ended_keys_do_not_serve_while_the_first_refresh_is_under_way) {
  Fixture it;
  const BootTime end = in(3s);  // No refresh is due before 2 s.
  it.source->answer([&] { return found("old", end); });
  BOOST_REQUIRE(it.awaited() == "old");
  it.source->answer([] { return found("new"); });
  it.source->close();
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
  tests::pause(1100ms);  // Else the same would come again.
  it.source->answer([] { return found("new", in(1h)); });
  it.source->close();
  BOOST_TEST(it.keys.replace_refused(old));
  BOOST_TEST(it.now() == "on their way");
  it.source->close(false);
  BOOST_TEST(it.awaited() == "new");
  BOOST_TEST(
      it.keys.replace_refused(old));  // There are others: worth another try.
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

BOOST_AUTO_TEST_CASE(exception_out_of_a_source_is_a_failure_that_may_pass) {
  Fixture it;
  it.source->answer([]() -> KeyOutcome { throw std::runtime_error("oh no"); });
  BOOST_TEST(has(it.awaited(), "threw: oh no"));
  BOOST_TEST((it.keys.now().outcome->state == State::failed));
  it.source->answer([] { return found("after"); });
  BOOST_TEST(eventually([&] { return it.awaited() == "after"; }));
}

// The bound that the header names; then the thread is left to itself.
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
  BOOST_TEST(eventually([&] {
    keys.await(in(20ms), nullptr);
    return keys.now().outcome->keys.access_key_id == "second";
  }));
  *gate = true;  // What the first brings now is nobody's any more.
  const BootTime end = in(300ms);
  while (BootClock::now() < end) {
    BOOST_TEST_REQUIRE(keys.now().outcome->keys.access_key_id == "second");
    tests::pause(5ms);
  }
  BOOST_TEST(*asked == 2);
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
  BOOST_TEST(prompt);  // It has not waited for itself.
}

BOOST_AUTO_TEST_SUITE_END()
