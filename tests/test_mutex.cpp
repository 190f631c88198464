// DdbMutex in one thread: what is sent, what stands in the table, who gets in
// and when.  Another Table is to it as another process.
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <mutex>
#include <string>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
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
  static time_point now() { return time_point(milliseconds(ms.load())); }
  static std::atomic<std::int64_t> ms;
};
std::atomic<std::int64_t> SetClock::ms{0};

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

// --- A lock that is held ---------------------------------------------------

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

// --- Rows that others write ------------------------------------------------

// DynamoDB's clock is known, and by it all of them look long over.
BOOST_DATA_TEST_CASE(row_that_is_no_record_is_never_taken, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::string rows[] = {
      R"("uuid":{"N":"7"},"expires":{"N":"1"})",
      R"("uuid":{"S":"u"},"expires":{"S":"1"})",
      R"("uuid":{"S":"u"})",
      R"("expires":{"N":"1"})",
      R"("uuid":{"S":"u"},"expires":{"N":"-1"})",
      R"("note":{"S":"not a lock"})",
      R"("uuid":{"S":"u"},"expires":{"N":"12345678901234567890123456789"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"S":"60000"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"N":"0"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"N":"31622400001"})",
      R"("uuid":{"S":")" + std::string(2000, '[') + R"("},"expires":{"N":"1"})",
  };
  for (const std::string& row : rows) {
    BOOST_TEST_CONTEXT(row.substr(0, 60)) {
      const std::string name = fresh_name();
      write_row(engine, name, row);
      const std::string before = raw_row(engine, name);
      DdbMutex mutex(name, unhurried(table));
      BOOST_TEST(thrown_by([&] { (void)mutex.try_lock(); }) ==
                 words(Errc::bad_record));
      BOOST_TEST(raw_row(engine, name) == before);
    }
  }
}

// --- Times to wait ---------------------------------------------------------

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

BOOST_AUTO_TEST_SUITE_END()
