// One DdbMutex shared by threads: who gets in and when, how waits end, and what
// is left of them.
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Error;
using ddbmutex::Loss;
using ddbmutex::Options;
using ddbmutex::Table;
using std::chrono::milliseconds;

namespace {

const std::string kCancelled = words(Errc::cancelled);
const std::string kClosed = words(Errc::closed);

// A lock on an engine, with a gate before it.
struct Gated {
  explicit Gated(milliseconds ttl = 1min, Told* told = nullptr,
                 std::optional<milliseconds> renew_after = {})
      : table(table_at(gate)), mutex([&] {
          Options options = on_table(table, ttl);
          options.renew_after = renew_after;
          options.first_poll = 5ms;
          options.longest_poll = 20ms;
          // So that nothing is given up for its slowness.
          options.request_timeout = (ttl - 1ms) / 2;
          if (told != nullptr) {
            options.on_lost = [told](Loss loss) { told->add(name_of(loss)); };
          }
          return std::make_unique<DdbMutex>(name, options);
        }()) {}

  int puts() const { return count_of(gate.server(), "PutItem"); }
  bool free() { return is_free(gate.engine(), name); }
  // Lets go what hangs, until it is so.
  template <class Condition>
  bool released_until(const Condition& condition) {
    return eventually([&] {
      gate.server().release();
      return condition();
    });
  }

  Gate gate;
  const std::string name = fresh_name();
  const std::shared_ptr<Table> table;
  std::unique_ptr<DdbMutex> mutex;
};

// Gives a request up soon.
Options hasty(const std::shared_ptr<Table>& table, milliseconds time = kHasty) {
  Options options = unhurried(table);
  options.request_timeout = time;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(threads)

// --- Order and exclusion ---------------------------------------------------

BOOST_DATA_TEST_CASE(threads_get_in_in_the_order_in_which_they_came,
                     boost::unit_test::data::make({0, 16}), limit) {
  ScriptedServer server;
  Options options = unhurried(table_at(server));
  options.handover_limit = limit;
  DdbMutex mutex("x", options);
  mutex.lock();
  Told order;
  std::list<Aside> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&order, &mutex, i] {
      const std::lock_guard guard(mutex);
      order.add(std::to_string(i));
    });
    BOOST_TEST(threads.back().rests());
  }
  // Those who wait here are silent.
  BOOST_TEST(actions(server) == "PutItem");
  mutex.unlock();
  for (Aside& thread : threads) BOOST_TEST(thread.thrown() == "none");
  BOOST_TEST(order.text() == "0 1 2 3 4");
  BOOST_TEST(count_of(server, "PutItem") == (limit == 0 ? 6 : 1));
  BOOST_TEST(count_of(server, "DeleteItem") == (limit == 0 ? 6 : 1));
}

BOOST_AUTO_TEST_CASE(thread_whose_time_is_up_leaves_the_queue_to_the_others) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  Told order;
  const auto enter = [&](const char* name) {
    const std::lock_guard guard(mutex);
    order.add(name);
  };
  Aside first([&] { enter("first"); });
  BOOST_TEST(first.rests());
  Aside timed([&] {
    if (!mutex.try_lock_for(100ms)) order.add("late");
  });
  BOOST_TEST(order.wait_for(1));
  Aside second([&] { enter("second"); });
  BOOST_TEST(second.rests());
  mutex.unlock();
  for (Aside* each : {&first, &timed, &second}) {
    BOOST_TEST(each->thrown() == "none");
  }
  BOOST_TEST(order.text() == "late first second");
  BOOST_TEST(count_of(server, "PutItem") == 1);
}

BOOST_AUTO_TEST_CASE(threads_and_hosts_exclude_each_other) {
  Rivals hosts;
  int count = 0;  // Guarded by the lock: two hosts, two threads each.
  std::atomic<bool> inside{false};
  const auto work = [&](DdbMutex& mutex) {
    for (int i = 0; i < 10; ++i) {
      const std::lock_guard guard(mutex);
      if (inside.exchange(true)) throw Error(Errc::lease_lost, "two are in");
      ++count;
      inside = false;
    }
  };
  std::list<Aside> threads;
  for (DdbMutex* mutex : {&hosts.ours, &hosts.theirs}) {
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&, mutex] { work(*mutex); });
  }
  for (Aside& thread : threads) BOOST_TEST(thread.thrown() == "none");
  BOOST_TEST(count == 40);
  BOOST_TEST(is_free(hosts.engine, hosts.name));
}

BOOST_AUTO_TEST_CASE(try_lock_while_another_thread_holds_sends_nothing) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  Aside aside([&] {
    if (mutex.try_lock()) throw Error(Errc::bad_answer, "it is held");
    if (mutex.try_lock_for(-1s)) throw Error(Errc::bad_answer, "it is held");
  });
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(actions(server) == "PutItem");
}

BOOST_AUTO_TEST_CASE(try_lock_while_another_thread_tries_sends_nothing) {
  ScriptedServer server;
  server.script(hanging());
  DdbMutex mutex("x", unhurried(table_at(server)));
  Aside aside([&] { mutex.lock(); });
  BOOST_TEST(server.wait_for_requests(1));
  BOOST_TEST(!mutex.try_lock());
  BOOST_TEST(server.request_count() == 1);
  BOOST_TEST(eventually([&] {
    server.release();
    return aside.done();
  }));
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(timed_wait_for_another_thread_ends_in_its_time) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  Aside aside([&] {
    const Stopwatch watch;
    if (mutex.try_lock_for(150ms)) throw Error(Errc::bad_answer, "it is held");
    if (watch.ms() < 150) throw Error(Errc::timed_out, "too early");
  });
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(actions(server) == "PutItem");
}

// --- Locking twice, unlocking for another ----------------------------------

BOOST_AUTO_TEST_CASE(locking_twice_in_a_thread_is_a_deadlock_that_is_told) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  std::error_code ec;
  mutex.lock(ec);
  BOOST_TEST((ec == std::errc::resource_deadlock_would_occur), ec.message());
  BOOST_CHECK_EXCEPTION(mutex.lock(), Error, [](const Error& error) {
    return error.code() == std::errc::resource_deadlock_would_occur;
  });
  ec = Errc::closed;
  BOOST_TEST(!mutex.try_lock(ec));
  BOOST_TEST(!ec);
  const Stopwatch watch;
  BOOST_TEST(!mutex.try_lock_for(100ms, ec));
  BOOST_TEST(!ec);
  BOOST_TEST(watch.ms() >= 100);
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(actions(server) == "PutItem");
  mutex.unlock();
  mutex.lock(ec);  // A new beginning.
  BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE(timed_second_lock_gets_in_when_another_thread_unlocks) {
  for (const std::chrono::hours time : {1h, std::chrono::hours::max()}) {
    ScriptedServer server;
    DdbMutex mutex("x", unhurried(table_at(server)));
    std::atomic<bool> got{false};
    Aside twice([&] {
      mutex.lock();
      got = mutex.try_lock_for(time);
    });
    BOOST_TEST(eventually([&] { return mutex.owns_lock(); }));
    BOOST_TEST(twice.rests());
    BOOST_TEST(!twice.done());
    mutex.unlock();
    BOOST_TEST(twice.thrown() == "none");
    BOOST_TEST(got.load());
    BOOST_TEST(mutex.owns_lock());
  }
}

BOOST_AUTO_TEST_CASE(lock_may_be_unlocked_by_another_thread) {
  Gated x;
  x.mutex->lock();
  Aside aside([&] { x.mutex->release(); });
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(x.free());
  // The thread that locked it knows of nothing that would be locked twice.
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == "none");
}

// It has the lock no more, though the release is not over yet.
BOOST_AUTO_TEST_CASE(thread_that_locked_waits_while_another_unlocks) {
  ScriptedServer server([](const SeenRequest& request) {
    Reply reply = Reply::ok("{}");
    reply.hangs = action_of(request) == "DeleteItem";
    return reply;
  });
  DdbMutex mutex("x", unhurried(table_at(server)));
  Event locked;
  Event unlocking;
  Aside locker([&] {
    mutex.lock();
    locked.set();
    unlocking.wait();
    mutex.lock();
  });
  BOOST_TEST_REQUIRE(locked.wait());
  Aside unlocker([&] { mutex.unlock(); });
  BOOST_TEST(eventually([&] { return count_of(server, "DeleteItem") == 1; }));
  unlocking.set();
  BOOST_TEST(locker.rests());
  server.release();
  BOOST_TEST(locker.thrown() == "none");
  BOOST_TEST(mutex.owns_lock());
  Aside last([&] { mutex.unlock(); });
  BOOST_TEST(eventually([&] {
    server.release();
    return last.done();
  }));
}

BOOST_AUTO_TEST_CASE(lock_by_a_thread_that_has_ended_can_be_locked_by_others) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  std::thread([&] { mutex.lock(); }).join();
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(!mutex.try_lock());
  mutex.unlock();
  BOOST_TEST(mutex.try_lock());
}

// --- Loss while others wait ------------------------------------------------

BOOST_AUTO_TEST_CASE(taken_lock_stays_locked_here_until_its_loser_unlocks) {
  Told told;
  Gated x(1min, &told, 100ms);
  x.mutex->lock();
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  write_row(x.gate.engine(), x.name, live_record());
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "taken");
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(next.rests());
  BOOST_TEST(!next.done());
  BOOST_TEST(x.puts() == 1);

  x.mutex->unlock();
  BOOST_TEST(eventually([&] { return x.puts() == 2; }));
  BOOST_TEST(!next.done());
  BOOST_TEST(count_of(x.gate.server(), "DeleteItem") == 0);
  BOOST_TEST(row_of(x.gate.engine(), x.name).uuid == "theirs");
  delete_row(x.gate.engine(), x.name);
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.mutex->owns_lock());
  x.mutex->unlock();
  BOOST_TEST(x.free());
  BOOST_TEST(told.text() == "taken");
}

BOOST_AUTO_TEST_CASE(unlock_of_an_expired_lock_spares_its_new_holder) {
  Told told;
  Gated x(3s, &told);
  DdbMutex theirs(x.name, on_table(table_at(x.gate.engine()), 10min));
  x.mutex->lock();
  x.gate.always("UpdateItem", Gate::fails());
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  BOOST_TEST(thrown_by([&] { theirs.lock(); }) == "none");
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
  BOOST_TEST(!next.done());
  x.gate.open();

  const std::string row = raw_row(x.gate.engine(), x.name);
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == words(Errc::lease_lost));
  BOOST_TEST(eventually([&] { return x.puts() == 2; }));
  BOOST_TEST(raw_row(x.gate.engine(), x.name) == row);
  BOOST_TEST(theirs.owns_lock());
  BOOST_TEST(!next.done());
  BOOST_TEST(thrown_by([&] { theirs.release(); }) == "none");
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.mutex->owns_lock());
}

// --- Waits that are ended --------------------------------------------------

BOOST_AUTO_TEST_CASE(cancel_ends_waits_here_and_not_the_lock) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  Aside one([&] { mutex.lock(); });
  Aside other([&] { (void)mutex.try_lock_for(1h); });
  BOOST_TEST(one.rests());
  BOOST_TEST(other.rests());
  mutex.cancel();
  BOOST_TEST(one.thrown() == kCancelled);
  BOOST_TEST(other.thrown() == kCancelled);
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
}

BOOST_AUTO_TEST_CASE(cancel_ends_a_wait_between_looks) {
  Gated x;
  write_row(x.gate.engine(), x.name, live_record());
  Aside waiter([&] { x.mutex->lock(); });
  BOOST_TEST(eventually([&] { return x.table->stats().get_item >= 2; }));
  x.mutex->cancel();
  BOOST_TEST(waiter.thrown() == kCancelled);
  delete_row(x.gate.engine(), x.name);
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == "none");
}

BOOST_AUTO_TEST_CASE(cancel_ends_a_wait_for_an_answer_at_once) {
  ScriptedServer server;
  server.script(hanging());
  Options options = on_table(table_at(server), 10min);
  options.request_timeout = 2min;
  DdbMutex mutex("x", options);
  Aside waiter([&] { mutex.lock(); });
  BOOST_TEST(server.wait_for_requests(1));
  mutex.cancel();
  BOOST_TEST(waiter.ends());
  BOOST_TEST(waiter.thrown() == kCancelled);
  server.release();  // Nothing is left for the table's end to wait for.
}

BOOST_AUTO_TEST_CASE(cancel_before_a_wait_is_not_remembered) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.cancel();
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  mutex.cancel();
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
  mutex.cancel();
  BOOST_TEST(mutex.try_lock());
}

BOOST_AUTO_TEST_CASE(close_ends_all_waits_of_a_table_now_and_later) {
  Gated x;
  DdbMutex elsewhere(fresh_name(), unhurried(x.table));
  x.mutex->lock();
  Aside here([&] { x.mutex->lock(); });
  BOOST_TEST(here.rests());
  write_row(x.gate.engine(), elsewhere.name(), live_record());
  Aside there([&] { elsewhere.lock(); });
  BOOST_TEST(eventually([&] { return x.table->stats().get_item >= 1; }));
  x.table->close();
  BOOST_TEST(here.thrown() == kClosed);
  BOOST_TEST(there.thrown() == kClosed);
  BOOST_TEST(thrown_by([&] { elsewhere.lock(); }) == kClosed);
  BOOST_TEST(thrown_by([&] { (void)elsewhere.try_lock_for(1s); }) == kClosed);
  BOOST_TEST(thrown_by([&] { (void)elsewhere.try_lock(); }) == kClosed);
  DdbMutex later(fresh_name(), unhurried(x.table));
  BOOST_TEST(thrown_by([&] { later.lock(); }) == kClosed);
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(x.free());
}

// --- Destruction -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(destruction_ends_waits_here_and_unlocks) {
  Gated x;
  x.mutex->lock();
  DdbMutex* mutex = x.mutex.get();
  Aside one([mutex] { mutex->lock(); });
  Aside other([mutex] { (void)mutex->try_lock_for(1h); });
  BOOST_TEST(one.rests());
  BOOST_TEST(other.rests());
  x.mutex.reset();
  BOOST_TEST(one.thrown() == kCancelled);
  BOOST_TEST(other.thrown() == kCancelled);
  BOOST_TEST(x.free());
}

BOOST_AUTO_TEST_CASE(destruction_ends_a_wait_between_looks) {
  Gated x;
  write_row(x.gate.engine(), x.name, live_record());
  DdbMutex* mutex = x.mutex.get();
  Aside waiter([mutex] { mutex->lock(); });
  BOOST_TEST(eventually([&] { return x.table->stats().get_item >= 2; }));
  x.mutex.reset();
  BOOST_TEST(waiter.thrown() == kCancelled);
  BOOST_TEST(row_of(x.gate.engine(), x.name).uuid == "theirs");
}

BOOST_AUTO_TEST_CASE(destruction_while_a_renewal_is_under_way_unlocks) {
  for (const auto& rule : {Gate::held(), Gate::answered_late()}) {
    Gated x(10min, nullptr, 100ms);
    x.gate.always("UpdateItem", rule);
    x.mutex->lock();
    BOOST_TEST(eventually(
        [&] { return count_of(x.gate.server(), "UpdateItem") == 1; }));
    // Does not wait for the renewal, which may last for minutes.
    const Stopwatch watch;
    x.mutex.reset();
    BOOST_TEST((watch.time() < kPlenty));
    BOOST_TEST(x.released_until([&] { return x.free(); }));
    x.gate.open();
    // What came late has found no row, and has made none.
    BOOST_TEST(x.released_until([&] { return x.free(); }));
  }
}

BOOST_AUTO_TEST_CASE(unlock_while_a_renewal_is_under_way_releases) {
  for (const auto& rule : {Gate::held(), Gate::answered_late()}) {
    Told told;
    Gated x(1min, &told, 200ms);
    x.gate.once("UpdateItem", rule);
    x.mutex->lock();
    BOOST_TEST(eventually(
        [&] { return count_of(x.gate.server(), "UpdateItem") == 1; }));
    BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
    BOOST_TEST(x.free());
    // The renewal comes after the release, and may come after the next lock.
    BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == "none");
    const std::string uuid = row_of(x.gate.engine(), x.name).uuid;
    const auto renewed = x.table->stats().update_item;
    x.gate.server().release();
    // By then what was released has been heard of.
    BOOST_TEST(eventually(
        [&] { return x.table->stats().update_item >= renewed + 4; }));
    BOOST_TEST(x.mutex->owns_lock());
    BOOST_TEST(row_of(x.gate.engine(), x.name).uuid == uuid);
    BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
    BOOST_TEST(told.text() == "");
  }
}

// --- What given-up waits leave ---------------------------------------------

namespace {

// Each ends a wait whose request is under way.
struct GivingUp {
  const char* what;
  std::function<void(Gated&)> end;
  std::string thrown;
};

std::vector<GivingUp> endings() {
  return {{"cancel", [](Gated& x) { x.mutex->cancel(); }, kCancelled},
          {"close", [](Gated& x) { x.table->close(); }, kClosed},
          {"destructor", [](Gated& x) { x.mutex.reset(); }, kCancelled}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(wait_that_is_ended_takes_back_what_it_is_given_later) {
  for (const auto& rule : {Gate::held(), Gate::answered_late()}) {
    for (const GivingUp& ending : endings()) {
      Gated x;
      x.gate.once("PutItem", rule);
      DdbMutex* mutex = x.mutex.get();
      Aside waiter([mutex] { mutex->lock(); });
      BOOST_TEST(x.gate.server().wait_for_requests(1));
      ending.end(x);
      BOOST_TEST(waiter.ends(), ending.what);
      BOOST_TEST(waiter.thrown() == ending.thrown, ending.what);
      // Nothing is to be done before the answer has come, which no stall
      // brings.
      pause(20ms);
      BOOST_TEST(count_of(x.gate.server(), "DeleteItem") == 0);
      BOOST_TEST(x.released_until([&] {
        return count_of(x.gate.server(), "DeleteItem") >= 1;
      }),
                 ending.what);
      BOOST_TEST(eventually([&] { return x.free(); }), ending.what);
      BOOST_TEST(x.puts() == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(timed_wait_takes_back_what_it_is_given_too_late) {
  for (const auto& rule : {Gate::held(), Gate::answered_late()}) {
    for (const bool once : {false, true}) {
      Gated x;
      // For so long what is under way is waited for behind, too.
      DdbMutex mutex(x.name, hasty(x.table, once ? 3s : 25s));
      x.gate.once("PutItem", rule);
      std::string thrown;
      BOOST_TEST(returns_within(once ? 3s : 150ms, [&] {
        thrown = thrown_by([&] {
          (void)(once ? mutex.try_lock() : mutex.try_lock_for(150ms));
        });
      }));
      // Nobody has said that it is held.
      BOOST_TEST(thrown == words(Errc::timed_out));
      BOOST_TEST(!mutex.owns_lock());
      BOOST_TEST(x.released_until(
          [&] { return count_of(x.gate.server(), "DeleteItem") >= 1; }));
      BOOST_TEST(eventually([&] { return x.free(); }));
      // In time for the next.
      BOOST_TEST(mutex.try_lock_for(kPlenty));
    }
  }
}

// The answers are lost for good: nobody can tell what was applied.
BOOST_AUTO_TEST_CASE(wait_that_fails_takes_back_what_it_may_have_been_given) {
  Gated x;
  x.gate.once("PutItem", Gate::answer_lost());
  x.gate.always("PutItem", Gate::fails());
  x.gate.once("DeleteItem", Gate::fails());
  BOOST_TEST(thrown_by([&] { (void)x.mutex->try_lock_for(1s); }) != "none");
  BOOST_TEST(eventually([&] { return x.free(); }));
}

BOOST_AUTO_TEST_CASE(wait_that_was_refused_leaves_nothing_to_take_back) {
  Gated x;
  write_row(x.gate.engine(), x.name, live_record());
  BOOST_TEST(!x.mutex->try_lock_for(4s));
  Aside waiter([&] { x.mutex->lock(); });
  BOOST_TEST(eventually([&] { return x.puts() >= 2; }));
  BOOST_TEST(eventually([&] { return x.table->stats().get_item >= 2; }));
  x.mutex->cancel();
  BOOST_TEST(waiter.thrown() == kCancelled);
  x.mutex.reset();
  BOOST_TEST(row_of(x.gate.engine(), x.name).uuid == "theirs");
}

// --- Releases that do not come through -------------------------------------

BOOST_AUTO_TEST_CASE(release_that_hangs_is_told_in_time_and_goes_on) {
  Gated x;
  DdbMutex mutex(x.name, hasty(x.table));
  mutex.lock();
  x.gate.always("DeleteItem", Gate::fails_late());
  std::string thrown;
  BOOST_TEST(returns_within(
      kHasty, [&] { thrown = thrown_by([&] { mutex.release(); }); }));
  BOOST_TEST(thrown == words(Errc::timed_out));
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::not_held));
  BOOST_TEST(!x.free());
  x.gate.open();
  BOOST_TEST(x.released_until([&] { return x.free(); }));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
}

BOOST_AUTO_TEST_CASE(release_that_fails_is_told_and_tried_again_behind) {
  Gated x;
  DdbMutex mutex(x.name, hasty(x.table));
  mutex.lock();
  x.gate.always("DeleteItem", Gate::fails());
  std::string thrown;
  BOOST_TEST(returns_within(
      kHasty, [&] { thrown = thrown_by([&] { mutex.release(); }); }));
  // The time may be up amid a request as well as between two.
  BOOST_TEST(
      (thrown == words(Errc::unavailable) || thrown == words(Errc::timed_out)),
      thrown);
  BOOST_TEST(!mutex.owns_lock());
  const int deletes = count_of(x.gate.server(), "DeleteItem");
  BOOST_TEST(eventually(
      [&] { return count_of(x.gate.server(), "DeleteItem") > deletes; }));
  x.gate.open();
  BOOST_TEST(eventually([&] { return x.free(); }));
}

BOOST_AUTO_TEST_CASE(unlock_that_hangs_returns_in_time_and_goes_on) {
  Gated x;
  {
    DdbMutex mutex(x.name, hasty(x.table));
    mutex.lock();
    x.gate.once("DeleteItem", Gate::fails_late());
    BOOST_TEST(returns_within(kHasty, [&] { mutex.unlock(); }));
    BOOST_TEST(!mutex.owns_lock());
    BOOST_TEST(mutex.last_error() != "");
  }
  // Also when the mutex is no more.
  BOOST_TEST(x.released_until([&] { return x.free(); }));
}

BOOST_AUTO_TEST_CASE(release_that_is_refused_is_told) {
  ScriptedServer server([](const SeenRequest& request) {
    return action_of(request) == "DeleteItem"
               ? failure(400, "AccessDeniedException")
               : Reply::ok("{}");
  });
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  const auto error = error_of([&] { mutex.release(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::access_denied), error->what());
  BOOST_TEST(has(error->what(), "\"x\""), error->what());
  BOOST_TEST(has(error->what(), "release"), error->what());
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
}

// The DNS has gone; the connection that is there is taken by another wait.
BOOST_AUTO_TEST_CASE(unlock_returns_in_time_while_the_resolver_hangs) {
  ScriptedServer server;
  const std::vector<std::string> here = {"127.0.0.1"};
  std::optional<FakeNames> names(here);
  const auto table =
      table_at("http://somewhere.test:" + std::to_string(server.port()) + "/");
  Options brief = hasty(table, 2s);
  brief.auto_renew = false;  // Else that may be what takes the connection.
  DdbMutex mutex("x", brief);
  DdbMutex other("y", unhurried(table));
  mutex.lock();
  names.reset();
  names.emplace(FakeNames::hanging);
  server.script(hanging());
  Aside waiter([&] { other.lock(); });
  BOOST_TEST(server.wait_for_requests(2));
  BOOST_TEST(returns_within(2s, [&] { mutex.unlock(); }));
  BOOST_TEST(server.connection_count() == 1);
  other.cancel();
  BOOST_TEST(waiter.thrown() == kCancelled);
  // All goes on where it was.
  names.reset();
  names.emplace(here);
  server.release();
  BOOST_TEST(eventually([&] { return count_of(server, "DeleteItem") == 2; }));
}

BOOST_AUTO_TEST_SUITE_END()
