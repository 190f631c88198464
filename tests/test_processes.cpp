// Locks among processes that are killed, stopped, live in another time, or lose
// their engine.
#include <signal.h>

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/agent.hpp"
#include "tests/support/durable_engine.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/mutex_kit.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

const auto kEngines = boost::unit_test::data::make(engine_kinds());

// As long as a waiter must see a record unchanged.
nanoseconds waited_for(milliseconds lease) {
  return nanoseconds(lease) * 101 / 100;
}

// With as long for each request as may be: it is to come through.
std::string of_lease(milliseconds lease) {
  return "ttl=" + std::to_string(lease.count()) +
         " request_timeout=" + std::to_string(lease.count() / 2 - 1);
}

// Of one who is to wait as long as it takes.
constexpr const char* kPatient = "request_timeout=20000";

std::string never_renewed(milliseconds lease) {
  return of_lease(lease) + " auto_renew=0";
}

// Of the agents' clock, which is ours too.
nanoseconds now() { return BootClock::now().time_since_epoch(); }

// How far DynamoDB's front ends may differ, and what a Date leaves open on
// either side.
constexpr seconds kFrontEndSkew{2};
constexpr milliseconds kDateWidth{1250};

}  // namespace

BOOST_AUTO_TEST_SUITE(processes)

// --- Killed ------------------------------------------------------------------

BOOST_DATA_TEST_CASE(killed_holders_lock_is_had_once_seen_for_its_lease,
                     kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  Agent holder(at(engine));
  holder.make("a", name, never_renewed(600ms));
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  holder.kill();
  const nanoseconds over = row_of(engine, name).expires + kFrontEndSkew;
  Agent waiter(at(engine));
  waiter.make("a", name, kPatient);
  const nanoseconds begun = now();
  BOOST_TEST(waiter.ask("lock a") == "true");
  // Or so late that DynamoDB's clock has shown it.
  BOOST_TEST((now() - begun >= waited_for(600ms) || calendar() > over));
  BOOST_TEST(waiter.ask("owns a") == "true");
  // Looked at, and taken when it was time: no write was in vain.
  BOOST_TEST(waiter.ask("requests").find("put 1 update 0 delete 0 ") == 0u);
}

BOOST_AUTO_TEST_CASE(killed_holders_lock_is_had_by_whoever_tries_now_and_then) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Agent holder(at(engine));
  holder.make("a", name, never_renewed(600ms));
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  holder.kill();
  const nanoseconds over = row_of(engine, name).expires + kFrontEndSkew;
  Agent poller(at(engine));
  poller.make("a", name, kPatient);
  const nanoseconds begun = now();
  BOOST_TEST(eventually([&] { return poller.ask("try a") == "true"; }));
  BOOST_TEST((now() - begun >= waited_for(600ms) || calendar() > over));
}

namespace {

// A process that is killed a moment after its first take.
struct Killed {
  Killed(Engine& where, const std::string& how, seconds ahead)
      : name(fresh_name()), engine(where) {
    if (ahead != 0s) calendar.emplace(ahead);
    holder.emplace(at(engine), calendar ? &*calendar : nullptr);
    holder->make("a", name, of_lease(kLease) + how);
  }

  void take() {
    begun = tests::calendar();
    BOOST_TEST_REQUIRE(holder->ask("lock a") == "true");
    taken = tests::calendar();
  }
  void kill() {
    holder->kill();
    const nanoseconds killed = tests::calendar();
    expires = row_of(engine, name).expires;
    // What was not known of DynamoDB's clock: a Date's width and a round trip.
    BOOST_TEST((expires <= killed + kLease + kDateWidth + (taken - begun)));
  }
  // One who comes, tries once and goes has it, neither before its time nor
  // after: a Date leaves open how late it is by its width and a round trip.
  void poll() {
    const nanoseconds from = tests::calendar();
    const bool had = DdbMutex(name, unhurried(new_table_at(engine))).try_lock();
    const nanoseconds to = tests::calendar();
    if (had) BOOST_TEST((to > expires + kFrontEndSkew));
    const nanoseconds over = expires + kFrontEndSkew + kDateWidth;
    if (!had) BOOST_TEST((from <= over + (to - from)));
    is_had = had || from > over + (to - from);
  }

  static constexpr milliseconds kLease{1000};
  const std::string name;
  Engine& engine;
  std::optional<FakeCalendar> calendar;
  std::optional<Agent> holder;
  nanoseconds begun{}, taken{}, expires{};
  bool is_had = false;
};

}  // namespace

// Also to those who have seen nothing of it: they come, try once and go.
BOOST_AUTO_TEST_CASE(first_lock_of_a_process_is_over_a_lease_after_its_death) {
  std::vector<std::unique_ptr<Killed>> all;
  for (const seconds ahead : {0h, -10h, 10h}) {
    if (ahead != 0s && !FakeCalendar::works()) continue;
    for (const std::string how : {"", " auto_renew=0"}) {
      all.push_back(std::make_unique<Killed>(Engine::running(any_engine_kind()),
                                             how, ahead));
    }
  }
  for (const auto& one : all) one->take();
  pause(100ms);
  for (const auto& one : all) one->kill();
  BOOST_TEST(eventually([&] {
    for (const auto& one : all) {
      if (!one->is_had) one->poll();
    }
    pause(20ms);
    return std::all_of(all.begin(), all.end(),
                       [](const auto& one) { return one->is_had; });
  }));
}

BOOST_AUTO_TEST_CASE(lock_of_one_who_was_killed_long_ago_is_had_at_once) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Agent holder(at(engine));
  holder.make("a", name, of_lease(1s));
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  holder.kill();
  // And time for a busy machine.
  const nanoseconds over =
      row_of(engine, name).expires + kFrontEndSkew + kDateWidth + 500ms;
  BOOST_TEST_REQUIRE(eventually([&] { return calendar() > over; }));
  Agent waiter(at(engine));
  waiter.make("a", name, kPatient);
  BOOST_TEST(waiter.ask("lock a") == "true");
  // One look, so it was not by having seen the record for its lease.
  BOOST_TEST(waiter.ask("requests") == "put 1 update 0 delete 0 get 1");
}

BOOST_AUTO_TEST_CASE(terminated_holder_leaves_its_row) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Agent holder(at(engine));
  holder.make("a", name);
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  const std::string uuid = row_of(engine, name).uuid;
  holder.process().signal(SIGTERM);
  BOOST_TEST(holder.process().wait() == 128 + SIGTERM);
  BOOST_TEST(row_of(engine, name).uuid == uuid);
}

BOOST_AUTO_TEST_CASE(holder_that_returns_from_main_leaves_nothing) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Agent holder(at(engine));
  holder.make("a", name);
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  BOOST_TEST(holder.end() == 0);
  BOOST_TEST(is_free(engine, name));
}

// --- Stopped -----------------------------------------------------------------

namespace {

// Stopped with the lock, until another has it; then asked at once.
struct Stopped {
  explicit Stopped(EngineKind kind)
      : engine(Engine::running(kind)), holder(at(engine)), other(at(engine)) {
    holder.make("a", name, of_lease(3s));
    other.make("a", name, kPatient);
    BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
    holder.stop();
    BOOST_TEST_REQUIRE(other.ask("lock a") == "true");
    uuid = row_of(engine, name).uuid;
    // Its first deed on waking.
    holder.channel().say("owns a");
    holder.go_on();
    owned_on_waking = holder.channel().line();
  }

  void must_be_the_others() {
    BOOST_TEST(row_of(engine, name).uuid == uuid);
    BOOST_TEST(other.ask("owns a") == "true");
    BOOST_TEST(holder.ask("owns a") == "false");
    BOOST_TEST(holder.ask("try a") == "false");
    BOOST_TEST(other.ask("release a") == "true");
    BOOST_TEST(holder.ask("lock a") == "true");
    BOOST_TEST(holder.ask("losses a") == "expired");
  }

  Engine& engine;
  const std::string name = fresh_name();
  Agent holder;
  Agent other;
  std::string uuid;  // Of the other's row.
  std::string owned_on_waking;
};

}  // namespace

BOOST_DATA_TEST_CASE(stopped_holder_finds_its_lock_lost_on_waking, kEngines,
                     kind) {
  Stopped stopped(kind);
  BOOST_TEST(stopped.owned_on_waking == "false");
  BOOST_TEST(stopped.holder.ask("remaining a") == "0");
  stopped.holder.ask("await a expired");
  BOOST_TEST(stopped.holder.ask("unlock a") == "done");
  stopped.must_be_the_others();
}

BOOST_AUTO_TEST_CASE(stopped_holder_is_told_by_its_release) {
  Stopped stopped(any_engine_kind());
  BOOST_TEST(stopped.holder.ask("release a") == refused(Errc::lease_lost));
  stopped.holder.ask("await a expired");
  stopped.must_be_the_others();
}

BOOST_AUTO_TEST_CASE(stopped_waiter_acts_on_nothing_that_it_saw_before) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Agent holder(at(engine));
  Agent waiter(at(engine));
  holder.make("a", name, of_lease(4s));
  waiter.make("a", name, kPatient);
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  BOOST_TEST_REQUIRE(waiter.ask("try a") == "false");
  waiter.ask("begin a try_for 5500");
  waiter.stop();
  // Longer than the lease, which is renewed meanwhile.
  const nanoseconds begun = now();
  BOOST_TEST(eventually([&] { return now() - begun > waited_for(4s); }));
  waiter.go_on();
  BOOST_TEST(waiter.ask("join a") == "false");
  BOOST_TEST(holder.ask("owns a") == "true");
  BOOST_TEST(holder.ask("losses a") == "");
}

// --- Calendars ---------------------------------------------------------------

namespace {

// To stay held, and to be lost.
constexpr milliseconds kHeldLease{4000};
constexpr milliseconds kLostLease{2000};

// A holder and a waiter whose calendars are off, each by its own.
class OutOfTime {
 public:
  OutOfTime(Engine& engine, seconds holder_off, seconds waiter_off)
      : holder_calendar_(holder_off),
        waiter_calendar_(waiter_off),
        holder_(at(engine), &holder_calendar_),
        waiter_(at(engine), &waiter_calendar_) {
    const std::string name = fresh_name();
    holder_.make("a", name, of_lease(kHeldLease));
    waiter_.make("a", name, of_lease(kLostLease));
    must_be_off(holder_, holder_calendar_);
    must_be_off(waiter_, waiter_calendar_);
  }

  Agent& holder() { return holder_; }
  Agent& waiter() { return waiter_; }

  // Whichever was late is early now, by hours.
  void jump() {
    holder_calendar_.jump_to(-holder_calendar_.offset() - 1h);
    waiter_calendar_.jump_to(-waiter_calendar_.offset() + 2h);
    must_be_off(holder_, holder_calendar_);
    must_be_off(waiter_, waiter_calendar_);
  }

 private:
  // Asked again where the agent stood still between one clock and the other.
  static void must_be_off(Agent& agent, const FakeCalendar& calendar) {
    BOOST_TEST_REQUIRE(eventually([&] {
      const std::string offsets = agent.ask("clocks");
      const nanoseconds off(std::stoll(offsets));
      const nanoseconds boot_off(std::stoll(offsets.substr(offsets.find(' '))));
      return std::chrono::abs(off - calendar.offset()) < 1s &&
             std::chrono::abs(boot_off) < 1s;
    }));
  }

  FakeCalendar holder_calendar_;
  FakeCalendar waiter_calendar_;
  Agent holder_;
  Agent waiter_;
};

using Crowd = std::vector<std::unique_ptr<OutOfTime>>;

Crowd crowd_out_of_time() {
  Crowd crowd;
  for (const EngineKind kind : engine_kinds()) {
    for (const auto& [holder, waiter] :
         std::vector<std::pair<seconds, seconds>>{{-11h, 0h},
                                                  {11h, 0h},
                                                  {0h, -11h},
                                                  {0h, 11h},
                                                  {-11h, 11h},
                                                  {11h, -11h}}) {
      crowd.push_back(
          std::make_unique<OutOfTime>(Engine::running(kind), holder, waiter));
    }
  }
  return crowd;
}

// All of them at once, so that it takes no longer than one.
void must_all(Crowd& crowd, Agent& (OutOfTime::*who)(),
              const std::string& command, const std::string& answer) {
  for (const auto& pair : crowd) (pair.get()->*who)().channel().say(command);
  for (const auto& pair : crowd) {
    BOOST_TEST((pair.get()->*who)().channel().line() == answer, command);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(calendars_that_are_off_or_jump_change_nothing) {
  if (!FakeCalendar::works()) {
    BOOST_TEST_MESSAGE("not checked: false calendars, not in this build");
    return;
  }
  const auto holder = &OutOfTime::holder;
  const auto waiter = &OutOfTime::waiter;
  Crowd crowd = crowd_out_of_time();
  // The very first requests of either process.
  must_all(crowd, holder, "lock a", "true");
  must_all(crowd, waiter, "try_for a 4400", "false");
  for (const auto& pair : crowd) pair->jump();
  must_all(crowd, waiter, "try_for a 4400", "false");
  must_all(crowd, holder, "owns a", "true");
  must_all(crowd, holder, "losses a", "");
  must_all(crowd, holder, "release a", "true");
  must_all(crowd, waiter, "lock a", "true");
  // Nor is the lock of one who stands still had too early, or never.
  for (const auto& pair : crowd) pair->waiter().stop();
  const nanoseconds begun = now();
  must_all(crowd, holder, "lock a", "true");
  BOOST_TEST((now() - begun >= waited_for(kLostLease)));
  for (const auto& pair : crowd) pair->waiter().go_on();
  must_all(crowd, waiter, "owns a", "false");
  for (const auto& pair : crowd) pair->waiter().ask("await a expired");
}

// --- Engines that end --------------------------------------------------------

BOOST_AUTO_TEST_CASE(lock_is_lost_in_time_if_the_engine_is_gone) {
  DurableEngine engine;
  Agent holder(engine.where());
  holder.make("a", "x", "ttl=4000 safe_time=1900 request_timeout=1000");
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  engine.kill();
  const Stalls stalls;
  const nanoseconds asked = now();
  const nanoseconds left = holder.time("remaining a");
  const nanoseconds heard = now();
  const nanoseconds danger = holder.time("await a danger");
  const nanoseconds lost = holder.time("await a expired");
  BOOST_TEST((danger < lost));
  BOOST_TEST((lost >= asked + left));
  BOOST_TEST((lost < heard + left + kSlack + stalls.total()));
  BOOST_TEST(holder.ask("owns a") == "false");
  BOOST_TEST(holder.ask("events a") == "danger expired");
  BOOST_TEST(returns_within(
      1s, [&] { BOOST_TEST(holder.ask("unlock a") == "done"); }));
  engine.start();
  Agent other(engine.where());
  other.make("a", "x", kPatient);
  BOOST_TEST(other.ask("lock a") == "true");
  BOOST_TEST(holder.ask("events a") == "danger expired");
}

BOOST_AUTO_TEST_CASE(engine_that_comes_back_within_the_lease_is_not_missed) {
  DurableEngine engine;
  const auto table = table_at(engine.where());
  Agent holder(engine.where());
  // In danger a little after a renewal was to have come, with almost half its
  // lease left for the engine to start in.
  holder.make("a", "x", of_lease(20s) + " safe_time=8650");
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  engine.kill();
  holder.ask("await a danger");
  engine.start();
  const ddbmutex::LockInfo found = table->inspect("x");
  BOOST_TEST_REQUIRE(found.exists);
  BOOST_TEST(eventually([&] {
    const ddbmutex::LockInfo renewed = table->inspect("x");
    return renewed.uuid == found.uuid && renewed.expires != found.expires;
  }));
  BOOST_TEST(holder.ask("owns a") == "true");
  BOOST_TEST(holder.ask("losses a") == "");
  BOOST_TEST(holder.ask("release a") == "true");
  BOOST_TEST(!table->inspect("x").exists);
}

BOOST_AUTO_TEST_CASE(unlock_without_an_engine_is_said_when_it_comes_back) {
  DurableEngine engine;
  const auto table = table_at(engine.where());
  Agent holder(engine.where());
  holder.make("a", "x", "ttl=60000 request_timeout=300");
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  engine.kill();
  BOOST_TEST(returns_within(
      300ms, [&] { BOOST_TEST(holder.ask("unlock a") == "done"); }));
  BOOST_TEST(holder.ask("owns a") == "false");
  engine.start();
  BOOST_TEST(eventually([&] { return !table->inspect("x").exists; }));
}

BOOST_AUTO_TEST_SUITE_END()
