// How a lease is renewed: by itself or by hand, how often and how long, and
// what tells that it is in danger or lost.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"
#include "tests/support/spread.hpp"

using namespace std::chrono_literals;

namespace {

using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Loss;
using ddbmutex::Options;
using tests::Aside;
using tests::count_of;
using tests::Event;
using tests::eventually;
using tests::Gate;
using tests::in_some_round;
using tests::on_table;
using tests::row_of;
using tests::table_at;
using tests::thrown_by;
using tests::Told;
using tests::words;

// A lock before a gate.
struct Held {
  // It stays held, and each request has all the time that it needs.
  Held() : Held(1min) { options.request_timeout = 20s; }
  explicit Held(std::chrono::milliseconds ttl)
      : options(on_table(table_at(gate), ttl)) {}

  DdbMutex& make() {
    mutex = std::make_unique<DdbMutex>(tests::fresh_name(), options);
    return *mutex;
  }
  int renewals() const { return count_of(gate.server(), "UpdateItem"); }
  std::int64_t expires() {
    return row_of(gate.engine(), mutex->name()).expires.count();
  }

  Gate gate;
  Options options;
  std::unique_ptr<DdbMutex> mutex;
};

// When its lease ends, to a millisecond.
BootTime end_of(const DdbMutex& mutex) {
  for (;;) {
    const BootTime now = BootClock::now();
    const auto remaining = mutex.remaining();
    if (BootClock::now() - now < 1ms) return now + remaining;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(renewing)

// --- By hand -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(without_renewal_by_itself_no_thread_is_started) {
  Held it;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  it.options.table->inspect("x");  // The gate has a thread for a connection.
  const std::set<pid_t> before = tests::threads_by_id();
  mutex.lock();
  mutex.renew();
  BOOST_TEST(mutex.owns_lock());
  mutex.release();
  BOOST_TEST(thrown_by([&] { mutex.renew(); }) == words(Errc::not_held));
  for (const pid_t thread : tests::threads_by_id()) {
    BOOST_TEST(before.count(thread) == 1u);
  }
  BOOST_TEST(tests::is_free(it.gate.engine(), mutex.name()));
}

BOOST_AUTO_TEST_CASE(renewal_by_hand_prolongs_the_lease) {
  Held it;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  const auto stamp = it.expires();
  const BootTime end = end_of(mutex);
  BOOST_TEST(eventually([&] { return mutex.remaining() < 57s; }));
  mutex.renew();
  BOOST_TEST((end_of(mutex) > end + 1s));
  BOOST_TEST(it.expires() != stamp);
}

BOOST_AUTO_TEST_CASE(lease_that_nobody_renews_is_lost_at_its_end) {
  Held it(2s);
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(eventually([&] { return !mutex.owns_lock(); }));
  BOOST_TEST(thrown_by([&] { mutex.renew(); }) == words(Errc::lease_lost));
  BOOST_TEST(it.renewals() == 0);
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::lease_lost));
}

BOOST_AUTO_TEST_CASE(danger_is_told_to_who_hears_of_nothing_else) {
  Held it(5s);
  it.options.auto_renew = false;
  it.options.safe_time = 2400ms;
  tests::Event told;
  it.options.on_danger = [&] { told.set(); };
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(told.wait());
  mutex.unlock();
}

BOOST_AUTO_TEST_CASE(renewal_by_hand_finds_that_the_lock_was_taken) {
  Held it;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  write_row(it.gate.engine(), mutex.name(), tests::live_record());
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(thrown_by([&] { mutex.renew(); }) == words(Errc::lease_lost));
  BOOST_TEST(!mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(renewal_by_hand_bears_with_passing_errors) {
  Held it;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  it.gate.once("UpdateItem", Gate::fails());
  it.gate.once("UpdateItem", Gate::answer_lost());
  BOOST_TEST(thrown_by([&] { mutex.renew(); }) == "none");
  BOOST_TEST(it.renewals() >= 3);
  BOOST_TEST(mutex.owns_lock());
}

// What the renewal throws.
static std::string renewal_that_fails_for_longer_than_patience() {
  Held it;
  it.options.auto_renew = false;
  it.options.patience = 3s;
  it.options.request_timeout = 3s;
  DdbMutex& mutex = it.make();
  mutex.lock();
  it.gate.always("UpdateItem", Gate::fails());
  const std::string thrown = thrown_by([&] { mutex.renew(); });
  BOOST_TEST(mutex.owns_lock());
  it.gate.open();
  mutex.renew();
  return thrown == words(Errc::unavailable) ? "" : thrown;
}

// If the time runs out amid a request, that is what is told.
BOOST_AUTO_TEST_CASE(renewal_by_hand_ends_with_the_error_after_patience) {
  BOOST_TEST(in_some_round(renewal_that_fails_for_longer_than_patience) == "");
}

BOOST_AUTO_TEST_CASE(changes_are_made_once) {
  Held it;
  it.options.renew_after = 50ms;
  DdbMutex& mutex = it.make();
  mutex.lock();
  Changes changes;
  changes.data = "changed";
  mutex.renew(changes);
  const int before = it.renewals();
  BOOST_TEST(eventually([&] { return it.renewals() > before + 2; }));
  const std::string last = it.gate.server().requests().back().body;
  BOOST_TEST(last.find("data") == std::string::npos, last);
  BOOST_TEST((mutex.data() == std::string("changed")));
}

// A deadline that no clock's time goes to holds nobody up.
BOOST_AUTO_TEST_CASE(patience_without_end_is_waited_in_parts) {
  Held it;
  it.options.patience = std::chrono::milliseconds::max();
  it.options.renew_after = 50ms;
  DdbMutex& mutex = it.make();
  it.gate.once("UpdateItem", Gate::answered_late());
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() >= 1; }));
  Aside renewal([&] { mutex.renew(); });
  BOOST_TEST(renewal.rests());
  it.gate.server().release();
  BOOST_TEST(renewal.thrown() == "none");
}

BOOST_AUTO_TEST_CASE(changes_that_dynamodb_refuses_cost_nothing) {
  Held it;
  DdbMutex& mutex = it.make();
  mutex.lock();
  Changes changes;
  changes.data = std::string(410'000, 'x');
  BOOST_TEST(thrown_by([&] { mutex.renew(changes); }) ==
             words(Errc::bad_request));
  BOOST_TEST((mutex.data() == std::nullopt));
  mutex.renew();
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(ensuring_renews_only_if_too_little_remains) {
  Held it;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  mutex.ensure(30s);
  BOOST_TEST(it.renewals() == 0);
  BOOST_TEST(eventually([&] { return mutex.remaining() < 56s; }));
  mutex.ensure(56s);  // Less than it has then.
  BOOST_TEST(it.renewals() == 1);
  const auto error = tests::error_of([&] { mutex.ensure(61s); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::ends_too_soon));
  BOOST_TEST(
      tests::has(error->what(), " ms remain, but 61000 ms are asked for"),
      error->what());
  BOOST_TEST(mutex.owns_lock());
}

// --- By itself ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(lease_is_renewed_at_the_age_that_is_told) {
  Held it;
  it.options.renew_after = 50ms;
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() >= 5; }));
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(renewal_that_is_nearly_due_goes_along_with_one_that_is) {
  const auto round = []() -> std::string {
    Held it;
    it.options.renew_after = 2s;
    DdbMutex first(tests::fresh_name(), it.options);
    DdbMutex& second = it.make();
    first.lock();
    second.lock();
    first.renew();
    tests::pause(8ms);  // The second is so much younger when it is renewed.
    second.renew();
    const BootTime end = end_of(second);
    BOOST_TEST_REQUIRE(eventually([&] { return end_of(second) > end + 1s; }));
    const auto age = end_of(second) - end;
    return age < 2s - 4ms ? "" : "renewed alone";
  };
  BOOST_TEST(in_some_round(round) == "");
}

BOOST_AUTO_TEST_CASE(lock_that_was_held_too_long_is_renewed_no_more) {
  Held it(2500ms);
  it.options.renew_after = 100ms;
  it.options.max_hold = 3s;  // More than a lease: that is renewed until then.
  Told told;
  it.options.on_lost = [&](Loss why) { told.add(name_of(why)); };
  DdbMutex& mutex = it.make();
  const tests::Stopwatch watch;
  mutex.lock();
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
  BOOST_TEST(watch.ms() >= 3000);
  BOOST_TEST(it.renewals() >= 1);
  mutex.unlock();
  mutex.lock();  // It counts from there.
  const int before = it.renewals();
  BOOST_TEST(eventually([&] { return it.renewals() > before; }));
}

BOOST_AUTO_TEST_CASE(holder_that_is_not_alive_loses_its_lock) {
  Held it(5s);
  it.options.renew_after = 200ms;
  it.options.request_timeout = 2400ms;  // No retry, which asks nobody.
  std::atomic<bool> alive{true};
  std::atomic<int> asked{0};
  it.options.alive = [&] {
    ++asked;
    return alive.load();
  };
  Told told;
  it.options.on_lost = [&](Loss why) { told.add(name_of(why)); };
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() >= 2; }));
  const int renewals = it.renewals();
  BOOST_TEST(asked >= renewals);
  alive = false;
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
  BOOST_TEST(!mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(holder_that_comes_to_life_again_keeps_its_lock) {
  Held it(8s);
  it.options.renew_after = 50ms;
  std::atomic<int> asked{0};
  it.options.alive = [&] { return ++asked > 2; };
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() >= 2; }));
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(holder_may_renew_by_hand_while_it_is_asked) {
  for (const bool alive : {true, false}) {
    for (const bool other_thread : {true, false}) {
      std::atomic<int> asked{0};
      std::atomic<DdbMutex*> known{nullptr};
      Held it(8s);  // Who is not alive is asked again after a second.
      it.options.renew_after = 20ms;
      it.options.request_timeout = 3900ms;
      it.options.alive = [&, alive, other_thread] {
        ++asked;
        const auto renew = [&known] {
          std::error_code ec;  // It may be unlocked by now.
          if (DdbMutex* mutex = known) mutex->renew(ec);
        };
        if (other_thread) {
          std::thread(renew).join();
        } else {
          renew();
        }
        return alive;
      };
      DdbMutex& mutex = it.make();
      known = &mutex;
      mutex.lock();
      BOOST_TEST(eventually([&] { return asked > 10; }));
      BOOST_TEST(mutex.owns_lock());
      known = nullptr;
      mutex.release();
      const int after = asked;
      mutex.lock();  // Nothing is left of the plans for the lease before.
      BOOST_TEST(eventually([&] { return asked > after + 2; }));
    }
  }
}

BOOST_AUTO_TEST_CASE(question_that_throws_is_answered_with_no) {
  Held it(2s);
  it.options.alive = []() -> bool { throw std::runtime_error("ask later"); };
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(eventually([&] { return !mutex.owns_lock(); }));
  BOOST_TEST(it.renewals() == 0);
}

BOOST_AUTO_TEST_CASE(destructor_waits_for_the_question_under_way) {
  Held it;
  it.options.renew_after = 50ms;
  Event asked, answer;
  it.options.alive = [&] {
    asked.set();
    return answer.wait();
  };
  it.make().lock();
  BOOST_TEST(asked.wait());
  Aside destruction([&] { it.mutex.reset(); });
  const auto releases = [&] {
    return count_of(it.gate.server(), "DeleteItem");
  };
  BOOST_TEST(eventually([&] { return releases() == 1; }));
  BOOST_TEST(!destruction.done());
  answer.set();
  BOOST_TEST(destruction.thrown() == "none");
}

// --- Danger and loss ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(lock_is_in_danger_unless_enough_of_its_lease_remains) {
  Held it(6s);
  it.options.auto_renew = false;
  it.options.safe_time = 2900ms;
  DdbMutex& mutex = it.make();
  BOOST_TEST(mutex.in_danger());
  mutex.lock();
  BOOST_TEST(!mutex.in_danger());
  BOOST_TEST(eventually([&] { return mutex.in_danger(); }));
  mutex.renew();
  BOOST_TEST(!mutex.in_danger());
  mutex.unlock();
  BOOST_TEST(mutex.in_danger());
}

// --- Waiting -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(wait_past_the_lease_takes_over_from_a_dead_holder) {
  Held it;
  DdbMutex& mutex = it.make();
  write_row(it.gate.engine(), mutex.name(),
            tests::record("dead", tests::calendar() + 1h, 700ms));
  BOOST_TEST(mutex.try_lock_past_lease(0ms));
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(wait_past_the_lease_ends_if_the_holder_lives) {
  Held it(1min);
  DdbMutex& mutex = it.make();
  Options theirs = on_table(table_at(it.gate.engine()), 4s);
  theirs.renew_after = 100ms;
  DdbMutex holder(mutex.name(), theirs);
  holder.lock();
  const tests::Stopwatch watch;
  BOOST_TEST(!mutex.try_lock_past_lease(100ms));
  BOOST_TEST(watch.ms() >= 4100);
  BOOST_TEST(holder.owns_lock());
  holder.unlock();
  BOOST_TEST(mutex.try_lock_past_lease(0ms));
}

// --- Again by the same thread ------------------------------------------------

BOOST_AUTO_TEST_CASE(recursive_lock_is_locked_as_often_as_it_is_unlocked) {
  Held it;
  it.options.recursive = true;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  mutex.lock();
  BOOST_TEST(mutex.try_lock());
  BOOST_TEST(mutex.try_lock_for(1s));
  BOOST_TEST(it.gate.server().request_count() == 1);
  for (int i = 0; i < 3; ++i) {
    mutex.unlock();
    BOOST_TEST(mutex.owns_lock());
  }
  bool others = true;
  Aside other([&] { others = mutex.try_lock(); });
  BOOST_TEST(other.thrown() == "none");
  BOOST_TEST(!others);
  mutex.release();
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::not_held));
}

// Between the thread that has it and any that may unlock it.
BOOST_AUTO_TEST_CASE(
    recursive_lock_that_another_thread_unlocks_is_asked_for_anew) {
  tests::Engine& engine = tests::Engine::running(tests::any_engine_kind());
  Options options = on_table(table_at(engine));
  options.request_timeout = 20s;  // What is unlocked is released by then.
  Options theirs = options;
  theirs.table = table_at(engine);
  options.recursive = true;
  DdbMutex mutex(tests::fresh_name(), options);
  DdbMutex rival(mutex.name(), theirs);
  std::atomic<int> round{0};
  std::atomic<int> unlocked{0};
  std::thread other([&] {
    for (int seen = 0; seen >= 0; seen = round) {
      if (seen == unlocked) continue;
      mutex.unlock();
      unlocked = seen;
    }
  });
  for (int i = 1; i <= 300; ++i) {
    mutex.lock();
    round = i;
    for (volatile int spin = 0; spin < i * 7 % 400;) spin = spin + 1;
    const bool again = mutex.try_lock();
    while (unlocked != i) std::this_thread::yield();
    BOOST_TEST_REQUIRE(rival.try_lock() == !again);
    BOOST_TEST_REQUIRE(mutex.owns_lock() == again);
    if (again) mutex.release();
    if (!again) rival.release();
  }
  round = -1;
  other.join();
}

BOOST_AUTO_TEST_CASE(inner_unlock_with_changes_makes_them) {
  Held it;
  it.options.recursive = true;
  it.options.keep_row = true;
  DdbMutex& mutex = it.make();
  mutex.lock();
  mutex.lock();
  Changes changes;
  changes.data = "half";
  mutex.release(changes);
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST((mutex.data() == std::string("half")));
  mutex.lock();
  it.gate.always("UpdateItem", [](tests::Engine&, const tests::SeenRequest&) {
    return tests::failure(400, "AccessDeniedException");
  });
  BOOST_TEST(thrown_by([&] { mutex.release(changes); }) ==
             words(Errc::access_denied));
  it.gate.open();
  mutex.release();
  BOOST_TEST(mutex.owns_lock());  // That level was kept.
  mutex.release();
  BOOST_TEST(!mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(recursive_lock_that_was_lost_is_not_locked_again) {
  Held it(3s);
  it.options.recursive = true;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  mutex.lock();
  BOOST_TEST(eventually([&] { return !mutex.owns_lock(); }));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::lease_lost));
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::lease_lost));
  mutex.lock();
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(many_locks)

BOOST_AUTO_TEST_CASE(renewals_that_come_in_a_swarm_are_found) {
  using tests::busiest_percent;
  const std::vector<std::uint64_t> even(tests::kWindowsPerPeriod, 20);
  BOOST_TEST(busiest_percent(even) == 6u);
  std::vector<std::uint64_t> windows(2 * tests::kWindowsPerPeriod, 1);
  windows[70] = 30;
  windows[71] = 30;
  BOOST_TEST(busiest_percent(windows) > tests::kMostInBusiest);
  BOOST_TEST(busiest_percent(windows, 108) > tests::kMostInBusiest);
  BOOST_TEST(busiest_percent(windows, 109) == 0u);
}

// With a lease in which a second that a machine stands still is no swarm.
BOOST_AUTO_TEST_CASE(a_thousand_are_held_through_an_outage_and_spread) {
  const tests::Ran ran =
      tests::shell(tests::program_path("processes/many") + " 1000 30 45");
  BOOST_TEST(ran.status == 0, ran.said);
}

BOOST_AUTO_TEST_SUITE_END()
