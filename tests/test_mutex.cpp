// DdbMutex in one thread: what is sent, what stands in the table, who gets in
// and when.  Another Table is to it as another process.
#include <algorithm>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LockInfo;
using ddbmutex::Options;
using ddbmutex::Stats;
using ddbmutex::Table;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::system_clock;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

// The lease is long, and renewals come soon all the same.
Options renewed_soon(const std::shared_ptr<Table>& table, milliseconds age) {
  Options options = unhurried(table);
  options.renew_after = age;
  return options;
}

std::string counts(const Stats& stats) {
  return "Put " + std::to_string(stats.put_item) + " Update " +
         std::to_string(stats.update_item) + " Delete " +
         std::to_string(stats.delete_item) + " Get " +
         std::to_string(stats.get_item) + " other " +
         std::to_string(stats.other);
}

// A clock that a test sets.
struct SetClock {
  using duration = milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SetClock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() {
    ++readings;
    return time_point(milliseconds(ms.load()));
  }
  static std::atomic<std::int64_t> ms;
  static std::atomic<int> readings;
};
std::atomic<std::int64_t> SetClock::ms{0};
std::atomic<int> SetClock::readings{0};

}  // namespace

BOOST_AUTO_TEST_SUITE(ddb_mutex)

// --- What is sent ----------------------------------------------------------

BOOST_DATA_TEST_CASE(lock_and_unlock_are_one_put_and_one_delete, kEngines,
                     kind) {
  Gate gate(kind);
  const auto table = new_table_at(gate);
  DdbMutex first(fresh_name(), unhurried(table));
  first.lock();
  first.unlock();
  // To learn DynamoDB's time, the first lock of a process looks first.
  BOOST_TEST(actions(gate.server()) == "GetItem PutItem DeleteItem");
  BOOST_TEST(counts(table->stats()) == "Put 1 Update 0 Delete 1 Get 1 other 0");
  BOOST_TEST(table->stats().requests() == 3u);
  DdbMutex mutex(fresh_name(), unhurried(table));
  BOOST_TEST(mutex.try_lock());
  mutex.release();
  BOOST_TEST(mutex.try_lock_for(10s));
  mutex.release();
  BOOST_TEST(actions(gate.server()) ==
             "GetItem PutItem DeleteItem PutItem DeleteItem PutItem "
             "DeleteItem");
}

BOOST_AUTO_TEST_CASE(unlocked_mutex_costs_no_request_thread_or_connection) {
  ScriptedServer server;
  const auto table = table_at(server);
  const std::set<pid_t> others = threads_by_id();
  DdbMutex held("held", on_table(table, 10min));
  held.lock();  // So the table is in use.
  // Each opens a descriptor once it rests.
  polling_thread(others, "ddbmutex-sender");
  polling_thread(others, "ddbmutex-notify");
  const auto requests = server.request_count();
  const auto threads = threads_now();
  const auto descriptors = descriptors_now();
  const auto connections = server.connection_count();
  {
    std::vector<std::unique_ptr<DdbMutex>> many;
    for (int i = 0; i < 500; ++i) {
      many.push_back(std::make_unique<DdbMutex>("order " + std::to_string(i),
                                                unhurried(table)));
      BOOST_REQUIRE(!many.back()->owns_lock());
      many.back()->unlock();  // Nothing.
      many.back()->cancel();
    }
    BOOST_TEST(threads_now() == threads);
    BOOST_TEST(descriptors_now() == descriptors);
  }
  BOOST_TEST(server.request_count() == requests);
  BOOST_TEST(server.connection_count() == connections);
  BOOST_TEST(threads_now() == threads);
  BOOST_TEST(descriptors_now() == descriptors);
}

BOOST_AUTO_TEST_CASE(table_and_mutex_start_nothing_before_a_lock) {
  const ScriptedServer server;
  const auto threads = threads_now();
  const auto table = new_table_at(server);
  DdbMutex mutex("x", unhurried(table));
  mutex.unlock();
  BOOST_TEST(threads_now() == threads);
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(waiter_reads_instead_of_writing) {
  Rivals hosts;
  const auto table = table_at(hosts.engine);
  Options options = unhurried(table);
  options.first_poll = 1ms;
  options.longest_poll = 2ms;
  DdbMutex waiter(hosts.name, options);
  hosts.ours.lock();
  Aside aside([&] { waiter.lock(); });
  BOOST_TEST(eventually([&] { return table->stats().get_item >= 20; }));
  BOOST_TEST(table->stats().put_item == 1u);
  hosts.ours.release();
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(waiter.owns_lock());
  BOOST_TEST(table->stats().put_item <= 3u);
}

// --- What stands in the table ----------------------------------------------

BOOST_DATA_TEST_CASE(held_lock_is_a_row_and_a_free_one_is_none, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::string name = fresh_name();
  Options options = unhurried(table);
  options.owner = "rack 7";
  DdbMutex mutex(name, options);

  const LockInfo before = table->inspect(name);
  BOOST_TEST(before.name == name);
  BOOST_TEST(!before.exists);
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(mutex.remaining().count() == 0);

  mutex.lock();
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST((mutex.remaining() <= 58750ms));
  BOOST_TEST((mutex.remaining() > 0s));
  const LockInfo held = table->inspect(name);
  BOOST_TEST(held.exists);
  BOOST_TEST(held.name == name);
  BOOST_TEST(held.owner == "rack 7");
  BOOST_TEST(held.lease.count() == 60000);
  const ddbmutex::lock::Row row = row_of(engine, name);
  BOOST_TEST(held.uuid == row.uuid);
  BOOST_TEST(held.uuid.size() == 32u);
  BOOST_TEST((held.expires == row.expires));
  BOOST_TEST((held.expires > calendar()));

  mutex.unlock();
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(mutex.remaining().count() == 0);
  BOOST_TEST(!table->inspect(name).exists);
  BOOST_TEST(raw_row(engine, name) == "");

  mutex.lock();
  BOOST_TEST(table->inspect(name).uuid != held.uuid);
}

BOOST_AUTO_TEST_CASE(inspected_row_of_an_older_client_has_no_lease) {
  Engine& engine = Engine::running(any_engine_kind());
  const auto table = table_at(engine);
  const std::string name = fresh_name();
  write_row(engine, name,
            R"("uuid":{"S":"u"},"expires":{"N":"3900000000000000000"})");
  const LockInfo info = table->inspect(name);
  BOOST_TEST(info.exists);
  BOOST_TEST(info.uuid == "u");
  BOOST_TEST(info.owner == "");
  BOOST_TEST(info.lease.count() == 0);
  BOOST_TEST(info.expires.count() == 3'900'000'000'000'000'000);
}

BOOST_AUTO_TEST_CASE(inspection_is_a_consistent_read) {
  ScriptedServer server;
  table_at(server)->inspect("m");
  BOOST_REQUIRE(server.request_count() == 1);
  BOOST_TEST(server.requests()[0].body.find(R"("ConsistentRead":true)") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(looks_of_a_waiter_come_ever_more_seldom) {
  ScriptedServer server(held_by_another);
  Options options = unhurried(table_at(server));
  options.first_poll = 2ms;
  options.longest_poll = 400ms;
  DdbMutex mutex("m", options);
  BOOST_TEST(!mutex.try_lock_for(2s));
  // Without a doubling some two thousand; a machine that is late makes it less.
  const int looks = server.request_count();
  BOOST_TEST(looks < 200);
  Aside waiter([&] { mutex.lock(); });
  BOOST_TEST(server.wait_for_requests(looks + 6));
  mutex.cancel();
  BOOST_TEST(waiter.thrown() == words(Errc::cancelled));
}

BOOST_AUTO_TEST_CASE(unlock_of_nothing_is_no_error_to_remember) {
  ScriptedServer server;
  DdbMutex mutex("m", unhurried(table_at(server)));
  mutex.unlock();
  BOOST_TEST(mutex.last_error() == "");
}

BOOST_AUTO_TEST_CASE(stats_count_each_action) {
  Engine& engine = Engine::running(any_engine_kind());
  const auto table = new_table_at(engine);
  BOOST_TEST(counts(table->stats()) == "Put 0 Update 0 Delete 0 Get 0 other 0");
  BOOST_TEST(table->exists());
  table->inspect("x");
  BOOST_TEST(counts(table->stats()) == "Put 0 Update 0 Delete 0 Get 1 other 1");
  DdbMutex mutex(fresh_name(), renewed_soon(table, 50ms));
  mutex.lock();
  BOOST_TEST(eventually([&] { return table->stats().update_item >= 2; }));
  mutex.release();
  const Stats stats = table->stats();
  BOOST_TEST(stats.put_item == 1u);
  BOOST_TEST(stats.delete_item == 1u);
  BOOST_TEST(stats.requests() == stats.update_item + 4);
}

// --- A lock that is held ---------------------------------------------------

BOOST_DATA_TEST_CASE(try_lock_of_a_held_lock_is_false_and_no_error, kEngines,
                     kind) {
  Rivals hosts(kind);
  hosts.ours.lock();
  BOOST_TEST(!hosts.theirs.try_lock());
  std::error_code ec = Errc::closed;
  BOOST_TEST(!hosts.theirs.try_lock(ec));
  BOOST_TEST(!ec);
  BOOST_TEST(!hosts.theirs.owns_lock());
  BOOST_TEST(hosts.ours.owns_lock());
  hosts.ours.unlock();
  BOOST_TEST(hosts.theirs.try_lock(ec));
  BOOST_TEST(!ec);
  BOOST_TEST(!hosts.ours.try_lock());
}

BOOST_AUTO_TEST_CASE(two_mutexes_of_one_table_and_name_are_rivals) {
  Engine& engine = Engine::running(any_engine_kind());
  const auto table = table_at(engine);
  const std::string name = fresh_name();
  DdbMutex one(name, unhurried(table));
  DdbMutex other(name, unhurried(table));
  one.lock();
  BOOST_TEST(!other.try_lock());
  one.unlock();
  BOOST_TEST(other.try_lock());
}

BOOST_DATA_TEST_CASE(waiter_gets_in_when_the_holder_lets_go, kEngines, kind) {
  Rivals hosts(kind);
  hosts.ours.lock();
  Aside aside([&] { hosts.theirs.lock(); });
  BOOST_TEST(!hosts.theirs.owns_lock());
  hosts.ours.unlock();
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(hosts.theirs.owns_lock());
  BOOST_TEST(!hosts.ours.owns_lock());
}

BOOST_AUTO_TEST_CASE(destructor_unlocks) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  {
    DdbMutex mutex(name, unhurried(table_at(engine)));
    mutex.lock();
    BOOST_TEST(!is_free(engine, name));
  }
  BOOST_TEST(is_free(engine, name));
}

BOOST_AUTO_TEST_CASE(table_outlives_its_last_owner_outside_of_the_mutex) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  auto table = table_at(engine);
  DdbMutex mutex(name, renewed_soon(table, 50ms));
  mutex.lock();
  table.reset();
  const auto first = row_of(engine, name).expires;
  BOOST_TEST(eventually([&] { return row_of(engine, name).expires != first; }));
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
  BOOST_TEST(is_free(engine, name));
}

// --- Times to wait ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(timeout_of_nothing_is_one_try) {
  Rivals hosts;
  hosts.ours.lock();
  using Float = std::chrono::duration<float>;
  using Double = std::chrono::duration<double>;
  const auto table = table_at(hosts.engine);
  DdbMutex mutex(hosts.name, unhurried(table));
  BOOST_TEST(!mutex.try_lock_for(0s));
  BOOST_TEST(!mutex.try_lock_for(-1s));
  BOOST_TEST(!mutex.try_lock_for(nanoseconds::min()));
  BOOST_TEST(!mutex.try_lock_for(std::chrono::hours::min()));
  BOOST_TEST(!mutex.try_lock_for(Float(std::nanf(""))));
  BOOST_TEST(!mutex.try_lock_for(Double(-HUGE_VAL)));
  BOOST_TEST(!mutex.try_lock_until(system_clock::now()));
  BOOST_TEST(!mutex.try_lock_until(system_clock::now() - 1h));
  BOOST_TEST(!mutex.try_lock_until(system_clock::time_point::min()));
  BOOST_TEST(
      !mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
  BOOST_TEST(table->stats().put_item == 10u);
  // One for the clock; the others of engines that tell no row.
  BOOST_TEST(table->stats().get_item <= 11u);
  hosts.ours.unlock();
  BOOST_TEST(mutex.try_lock_for(0s));
  mutex.unlock();
  BOOST_TEST(mutex.try_lock_for(-1s));
  mutex.unlock();
  BOOST_TEST(mutex.try_lock_until(system_clock::now() - 1h));
}

namespace {

using TimedWait =
    std::function<bool(DdbMutex&, milliseconds, std::error_code&)>;

// Each returns whether it was in vain and took its time.
const std::vector<TimedWait> kTimedWaits = {
    [](DdbMutex& mutex, milliseconds time, std::error_code& ec) {
      const Stopwatch watch;
      return !mutex.try_lock_for(time, ec) && watch.time() >= time;
    },
    [](DdbMutex& mutex, milliseconds time, std::error_code& ec) {
      const Stopwatch watch;
      const auto until = std::chrono::steady_clock::now() + time;
      return !mutex.try_lock_until(until, ec) && watch.time() >= time;
    },
    [](DdbMutex& mutex, milliseconds time, std::error_code& ec) {
      const auto until = system_clock::now() + time;
      return !mutex.try_lock_until(until, ec) && system_clock::now() >= until;
    },
};

// That nobody answers in time is an error: then it gets more.
std::string came_to(const TimedWait& wait, DdbMutex& mutex) {
  std::error_code ec = Errc::timed_out;
  bool in_time = true;
  for (milliseconds time = 1s; time < kPlenty && ec == Errc::timed_out;
       time *= 2) {
    in_time = wait(mutex, time, ec) && in_time;
  }
  return ec ? ec.message() : in_time ? "in time" : "too early";
}

}  // namespace

BOOST_DATA_TEST_CASE(timed_wait_ends_in_its_time_and_not_before, kEngines,
                     kind) {
  Rivals hosts(kind);
  hosts.ours.lock();
  std::vector<std::future<std::string>> waits;
  for (const TimedWait& wait : kTimedWaits) {
    waits.push_back(std::async(std::launch::async, [&] {
      DdbMutex mutex(hosts.name, unhurried(table_at(hosts.engine)));
      return came_to(wait, mutex);
    }));
  }
  for (auto& wait : waits) BOOST_TEST(wait.get() == "in time");
}

namespace {

// Counts in a type that has no negative numbers.
struct UnsignedClock {
  using duration = std::chrono::duration<std::uint64_t, std::nano>;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<UnsignedClock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() {
    return time_point(duration(static_cast<rep>(calendar().count())));
  }
};

}  // namespace

// The difference of two such times wraps around.
BOOST_AUTO_TEST_CASE(deadline_of_an_unsigned_clock_may_be_past) {
  using Unsigned = std::chrono::duration<std::uint64_t, std::milli>;
  using Small = std::chrono::duration<std::uint32_t>;
  Rivals hosts;
  hosts.ours.lock();
  const std::vector<std::function<bool()>> waits = {
      [&] { return hosts.theirs.try_lock_until(UnsignedClock::now() - 5s); },
      [&] { return hosts.theirs.try_lock_until(UnsignedClock::now()); },
      [&] { return hosts.theirs.try_lock_until(UnsignedClock::time_point()); },
      [&] {
        return hosts.theirs.try_lock_until(
            std::chrono::time_point_cast<Unsigned>(system_clock::now() - 5s));
      },
      [&] {
        return hosts.theirs.try_lock_until(
            std::chrono::time_point_cast<Small>(system_clock::now() - 5s));
      },
      // One to come is waited for, and no longer.
      [&] { return hosts.theirs.try_lock_until(UnsignedClock::now() + 50ms); },
  };
  for (const auto& wait : waits) {
    std::atomic<bool> got{true};
    Aside aside([&] { got = wait(); });
    BOOST_TEST_REQUIRE(aside.ends());
    BOOST_TEST(aside.thrown() == "none");
    BOOST_TEST(!got.load());
  }
}

namespace {

// Throws at one of its readings.
struct ThrowingClock {
  using duration = milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<ThrowingClock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() {
    if (--readings_left == 0) throw std::runtime_error("no clock");
    return time_point(milliseconds(calendar() / 1ms));
  }
  static std::atomic<int> readings_left;
};
std::atomic<int> ThrowingClock::readings_left{0};

// With an exception at that reading of the caller's clock.  False: it was not
// read so often.
bool throws_at(int reading, DdbMutex& mutex) {
  ThrowingClock::readings_left = 0;
  const auto until = ThrowingClock::now() + 200ms;
  ThrowingClock::readings_left = reading;
  try {
    if (mutex.try_lock_until(until)) mutex.unlock();
  } catch (const ddbmutex::Error&) {  // It got no answer in time.
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

}  // namespace

// The take that is under way may be applied: then nobody has the lock.
BOOST_AUTO_TEST_CASE(clock_that_throws_amid_a_take_leaves_nothing_behind) {
  for (const bool answered : {true, false}) {
    Gate gate;
    const auto table = table_at(gate);
    bool throws = true;
    for (int reading = 1; throws; ++reading) {
      const std::string name = fresh_name();
      DdbMutex mutex(name, unhurried(table));
      if (!answered) gate.once("PutItem", Gate::answered_late());
      throws = throws_at(reading, mutex);
      BOOST_TEST((throws || reading > 2));
      BOOST_TEST(!mutex.owns_lock());
      gate.server().release();
      BOOST_TEST(eventually([&] { return is_free(gate.engine(), name); }),
                 "reading " << reading);
      gate.open();
    }
  }
}

BOOST_AUTO_TEST_CASE(longest_times_wait_until_the_lock_is_free) {
  using std::chrono::hours;
  using std::chrono::steady_clock;
  using Float = std::chrono::duration<float>;
  using Long = std::chrono::duration<std::int64_t, std::ratio<86400>>;
  const std::vector<std::function<bool(DdbMutex&)>> waits = {
      [](DdbMutex& m) { return m.try_lock_for(hours::max()); },
      [](DdbMutex& m) { return m.try_lock_for(nanoseconds::max()); },
      [](DdbMutex& m) { return m.try_lock_for(Long::max()); },
      [](DdbMutex& m) { return m.try_lock_for(Float(HUGE_VALF)); },
      [](DdbMutex& m) { return m.try_lock_for(Float::max()); },
      [](DdbMutex& m) {
        return m.try_lock_until(steady_clock::time_point::max());
      },
      [](DdbMutex& m) {
        return m.try_lock_until(system_clock::time_point::max());
      },
      [](DdbMutex& m) {
        using Days = std::chrono::time_point<system_clock, Long>;
        return m.try_lock_until(Days::max());
      },
  };
  for (std::size_t i = 0; i < waits.size(); ++i) {
    Rivals hosts;
    const auto table = table_at(hosts.engine);
    DdbMutex waiter(hosts.name, unhurried(table));
    hosts.ours.lock();
    std::atomic<bool> got{false};
    Aside aside([&] { got = waits[i](waiter); });
    // So that it does wait.
    BOOST_TEST(eventually([&] { return table->stats().get_item >= 2; }));
    BOOST_TEST(!aside.done(), "wait " << i);
    hosts.ours.release();
    BOOST_TEST(aside.thrown() == "none", "wait " << i);
    BOOST_TEST(got.load(), "wait " << i);
    waiter.release();
    BOOST_TEST(is_free(hosts.engine, hosts.name));
  }
}

BOOST_AUTO_TEST_CASE(clock_that_is_set_ahead_ends_the_wait) {
  Rivals hosts;
  hosts.ours.lock();
  SetClock::ms = 0;
  SetClock::readings = 0;
  std::atomic<bool> got{true};
  Aside aside([&] { got = hosts.theirs.try_lock_until(SetClock::now() + 1h); });
  BOOST_TEST(eventually([] { return SetClock::readings >= 10; }));
  BOOST_TEST(!aside.done());
  SetClock::ms = 2 * 3600 * 1000;
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(!got.load());
}

BOOST_AUTO_TEST_CASE(clock_that_is_set_back_prolongs_the_wait) {
  Rivals hosts;
  hosts.ours.lock();
  SetClock::ms = 3600 * 1000;
  SetClock::readings = 0;
  const SetClock::time_point until = SetClock::now() + 2s;
  SetClock::ms = 0;
  std::atomic<bool> got{false};
  Aside aside([&] { got = hosts.theirs.try_lock_until(until); });
  BOOST_TEST(eventually([] { return SetClock::readings >= 10; }));
  BOOST_TEST(!aside.done());
  hosts.ours.release();
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(got.load());
}

// The take that was under way when its time was up may be applied when the call
// has long returned.
BOOST_AUTO_TEST_CASE(clock_set_back_amid_a_take_leaves_nothing_behind) {
  Gate gate;
  const std::string name = fresh_name();
  DdbMutex mutex(name, unhurried(table_at(gate)));
  write_row(gate.engine(), name, live_record());
  SetClock::ms = 0;
  std::atomic<bool> got{true};
  // By a clock that stands still, its time is never up.
  Aside aside([&] {
    got = mutex.try_lock_until(SetClock::time_point(milliseconds(2000)));
  });
  const auto puts = [&] { return count_of(gate.server(), "PutItem"); };
  // Refused, for it looks again.
  const auto looks_after = [&](int count) {
    return eventually([&] {
      return puts() == count &&
             action_of(gate.server().requests().back()) == "GetItem";
    });
  };
  BOOST_TEST_REQUIRE(looks_after(1));
  gate.once("PutItem", Gate::held());
  delete_row(gate.engine(), name);
  BOOST_TEST_REQUIRE(eventually([&] { return puts() == 2; }));
  // From now on it is to find the lock held by another.
  write_row(gate.engine(), name, live_record());
  gate.always("GetItem",
              [](Engine&, const SeenRequest&) { return found(live_record()); });
  BOOST_TEST_REQUIRE(looks_after(3));
  BOOST_TEST(!aside.done());
  SetClock::ms = 10'000;
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(!got.load());
  // A release that did not wait for the take would be sent by now.
  DdbMutex other(fresh_name(), unhurried(table_at(gate)));
  for (int i = 0; i < 3; i++) std::lock_guard<DdbMutex> guard(other);
  const auto deletes = [&] { return count_of(gate.server(), "DeleteItem"); };
  BOOST_TEST(deletes() == 3);
  delete_row(gate.engine(), name);
  gate.server().release();  // The second take is applied.
  BOOST_TEST(eventually([&] { return deletes() == 4; }));
  BOOST_TEST(eventually([&] { return is_free(gate.engine(), name); }));
}

// --- Locks of the dead -----------------------------------------------------

BOOST_DATA_TEST_CASE(lock_of_a_dead_holder_is_taken_after_its_lease, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  write_row(engine, name, record("dead", calendar() + 1h, 400ms));
  DdbMutex mutex(name, unhurried(table_at(engine)));
  const Stopwatch watch;
  mutex.lock();
  BOOST_TEST(watch.ms() >= 404);
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(row_of(engine, name).uuid != "dead");
}

BOOST_DATA_TEST_CASE(poller_takes_what_it_saw_unchanged_for_a_lease, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  write_row(engine, name, record("dead", calendar() + 1h, 300ms));
  DdbMutex mutex(name, unhurried(table_at(engine)));
  const Stopwatch watch;
  BOOST_TEST(!mutex.try_lock());
  BOOST_TEST(eventually([&] { return mutex.try_lock(); }));
  BOOST_TEST(watch.ms() >= 303);
}

BOOST_DATA_TEST_CASE(lock_that_is_long_over_is_taken_at_once, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  write_row(engine, name, record("dead", calendar() - 1min, 1h));
  const auto table = table_at(engine);
  DdbMutex mutex(name, unhurried(table));
  BOOST_TEST(mutex.try_lock());
  BOOST_TEST(table->stats().requests() <= 3u);
}

// The poll before the lease's end must not put the end off.
BOOST_AUTO_TEST_CASE(waiter_wakes_when_the_lease_is_over_not_a_poll_later) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  write_row(engine, name, record("dead", calendar() + 1h, 300ms));
  Options options = unhurried(table_at(engine));
  options.first_poll = options.longest_poll = 1h;
  DdbMutex mutex(name, options);
  BOOST_TEST(mutex.try_lock_for(kPlenty));
}

// --- Renewal ---------------------------------------------------------------

namespace {

// Holds a lock over three leases, through renewals by itself, while another
// host tries to take it all the time.  What is wrong.
std::string held_over_three_leases(EngineKind kind) {
  constexpr milliseconds kTtl = 2s;
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  Options options = on_table(table_at(engine), kTtl);
  options.renew_after = kTtl / 10;
  options.request_timeout = 9 * kTtl / 20;
  DdbMutex ours(name, options);
  DdbMutex theirs(name, unhurried(table_at(engine)));
  ours.lock();
  const Stopwatch watch;
  const auto first = row_of(engine, name);
  std::set<nanoseconds> stamps;
  while (watch.time() < 3 * kTtl) {
    if (theirs.try_lock()) return "another has taken it";
    if (!ours.owns_lock()) return "it is not owned";
    const auto row = row_of(engine, name);
    if (row.uuid != first.uuid) return "its row is another's: " + row.uuid;
    stamps.insert(row.expires);
    pause(20ms);
  }
  if (stamps.size() < 5) return std::to_string(stamps.size()) + " stamps";
  // By 6 s, but what is known of DynamoDB's clock is off by up to one.
  if (*stamps.rbegin() < first.expires + 4s) return "the stamp has not moved";
  const std::string thrown = thrown_by([&] { ours.release(); });
  return thrown == "none" ? "" : "its release throws: " + thrown;
}

}  // namespace

BOOST_DATA_TEST_CASE(lock_is_held_over_many_leases, kEngines, kind) {
  BOOST_TEST(undisturbed(1s, [kind] { return held_over_three_leases(kind); }) ==
             "");
}

namespace {

// How a renewal that is held, then answered, changes what remains: what is
// wrong.
std::string remaining_about_a_renewal() {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  const auto end = [&mutex] { return BootClock::now() + mutex.remaining(); };
  mutex.lock();
  const BootTime first = end();
  pause(200ms);
  server.script(hanging());
  Aside renewal([&] { mutex.renew(); });
  if (!server.wait_for_requests(2)) return "nothing was sent";
  if (end() > first + 100ms) return "it grew with the sending";
  server.release();
  if (renewal.thrown() != "none") return "the renewal failed";
  if (end() < first + 100ms) return "it did not grow with the answer";
  if (mutex.remaining() > 58750ms) return "it is longer than the lease";
  return actions(server) == "PutItem UpdateItem" ? "" : actions(server);
}

}  // namespace

BOOST_AUTO_TEST_CASE(remaining_grows_with_the_answer_to_a_renewal) {
  BOOST_TEST(undisturbed(50ms, remaining_about_a_renewal) == "");
}

BOOST_AUTO_TEST_CASE(many_locks_need_two_threads_and_are_all_renewed) {
  constexpr std::size_t kLocks = 200;
  Engine& engine = Engine::running(any_engine_kind());
  const auto threads = threads_now();
  const auto table = table_at(engine);
  std::vector<std::unique_ptr<DdbMutex>> locks;
  std::vector<BootTime> ends;
  const auto end_of = [](const DdbMutex& mutex) {
    const nanoseconds left = mutex.remaining();
    return BootClock::now() + left;
  };
  for (std::size_t i = 0; i < kLocks; ++i) {
    locks.push_back(
        std::make_unique<DdbMutex>(fresh_name(), renewed_soon(table, 2s)));
    locks.back()->lock();
    ends.push_back(end_of(*locks.back()));
  }
  BOOST_TEST(threads_now() <= threads + 2);
  std::ptrdiff_t most = 0;
  for (std::size_t i = 0; i < kLocks; ++i) {
    BOOST_TEST(eventually([&] {
      most = std::max(most, threads_now());
      return end_of(*locks[i]) > ends[i] + 100ms;
    }));
  }
  BOOST_TEST(most <= threads + 2);
  BOOST_TEST(table->stats().update_item >= kLocks);
  BOOST_TEST(std::all_of(locks.begin(), locks.end(),
                         [](const auto& lock) { return lock->owns_lock(); }));
  for (const auto& lock : locks) {
    BOOST_TEST(thrown_by([&] { lock->release(); }) == "none");
  }
}

// Locks that are taken together are not renewed together.
BOOST_AUTO_TEST_CASE(renewals_of_many_locks_are_spread) {
  constexpr std::size_t kLocks = 100;
  constexpr milliseconds kTtl = 20s;
  std::mutex guard;
  std::map<std::string, BootTime> taken;      // By key; guarded.
  std::map<std::string, nanoseconds> waited;  // Till the first renewal.
  ScriptedServer server([&](const SeenRequest& request) {
    const std::lock_guard hold(guard);
    const std::string before = R"("name":{"S":")";
    const std::size_t at = request.body.find(before) + before.size();
    const std::string key =
        request.body.substr(at, request.body.find('"', at) - at);
    if (action_of(request) == "PutItem") taken[key] = BootClock::now();
    if (action_of(request) == "UpdateItem") {
      waited.emplace(key, BootClock::now() - taken.at(key));
    }
    return Reply::ok("{}");
  });
  const auto table = table_at(server);
  std::vector<std::unique_ptr<DdbMutex>> locks;
  for (std::size_t i = 0; i < kLocks; ++i) {
    locks.push_back(
        std::make_unique<DdbMutex>(std::to_string(i), on_table(table, kTtl)));
    locks.back()->lock();
  }
  BOOST_TEST(eventually([&] {
    const std::lock_guard hold(guard);
    return waited.size() == kLocks;
  }));
  const std::lock_guard hold(guard);
  const auto by_time = [](const auto& a, const auto& b) {
    return a.second < b.second;
  };
  const auto [first, last] =
      std::minmax_element(waited.begin(), waited.end(), by_time);
  // Between a quarter and a half of the lease, so a quarter apart at the most:
  // 5 s, of which a machine that stands still may take two.
  BOOST_TEST((last->second - first->second > kTtl / 8));
  BOOST_TEST((first->second > kTtl / 8));
}

// --- What the holder asks --------------------------------------------------

BOOST_AUTO_TEST_CASE(require_is_content_with_what_remains_and_no_more) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  const std::string soon = words(Errc::ends_too_soon);
  const std::string none = words(Errc::not_held);
  BOOST_TEST(thrown_by([&] { mutex.require(0s); }) == none);
  mutex.lock();
  BOOST_TEST(thrown_by([&] { mutex.require(0s); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(-1h); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(nanoseconds::min()); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(1s); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(59401ms); }) == soon);
  BOOST_TEST(thrown_by([&] { mutex.require(nanoseconds::max()); }) == soon);
  const auto error = error_of([&] { mutex.require(60s); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(has(error->what(), " ms remain, but 60000 ms are asked for"),
             error->what());
  std::error_code ec;
  mutex.require(59401ms, ec);
  BOOST_TEST((ec == Errc::ends_too_soon));
  BOOST_TEST(mutex.owns_lock());
  mutex.require(1s, ec);
  BOOST_TEST(!ec);
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex.require(0s); }) == none);
  BOOST_TEST(thrown_by([&] { mutex.require(-1h); }) == none);
}

// --- Giving back -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(nothing_to_unlock_is_nothing_done) {
  ScriptedServer server;
  const auto table = table_at(server);
  DdbMutex mutex("x", unhurried(table));
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::not_held));
  std::error_code ec;
  mutex.release(ec);
  BOOST_TEST((ec == Errc::not_held));
  BOOST_TEST((ec == std::errc::operation_not_permitted));
  mutex.lock();
  mutex.unlock();
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::not_held));
  BOOST_TEST(actions(server) == "PutItem DeleteItem");
}

BOOST_AUTO_TEST_CASE(release_whose_answer_is_lost_has_released) {
  Gate gate;
  const std::string name = fresh_name();
  DdbMutex mutex(name, unhurried(table_at(gate)));
  mutex.lock();
  gate.once("DeleteItem", Gate::answer_lost());
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  BOOST_TEST(is_free(gate.engine(), name));
}

BOOST_AUTO_TEST_CASE(acquire_whose_answer_is_lost_has_acquired) {
  Gate gate;
  const std::string name = fresh_name();
  DdbMutex mutex(name, unhurried(table_at(gate)));
  gate.once("PutItem", Gate::answer_lost());
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
  BOOST_TEST(is_free(gate.engine(), name));
}

// Late, but it has been applied; and what came of it is known again by its row.
BOOST_AUTO_TEST_CASE(acquire_whose_answer_is_late_has_acquired_once) {
  Gate gate;
  const std::string name = fresh_name();
  Options options = unhurried(table_at(gate));
  options.request_timeout = 3s;
  DdbMutex mutex(name, options);
  gate.once("PutItem", Gate::answered_late());
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  BOOST_TEST(count_of(gate.server(), "PutItem") == 2);
  const std::string uuid = row_of(gate.engine(), name).uuid;
  gate.server().release();
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(row_of(gate.engine(), name).uuid == uuid);
  mutex.unlock();
  BOOST_TEST(is_free(gate.engine(), name));
}

BOOST_AUTO_TEST_SUITE_END()
