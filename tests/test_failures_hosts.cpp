// The failure table, where hosts are killed, stopped or live in another time.
// As test_failures_wire.cpp, which lists the rows.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tests/support/agent.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Loss;
using ddbmutex::Options;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// As long as a waiter must see the record of a lease of a second.
constexpr nanoseconds kWaited = 1010ms;

Whereabouts at(const Front& front) {
  Whereabouts where = front.gateway.where(front.engine.table());
  where.region = front.engine.region();
  return where;
}

bool was_hit(const Front& front, const std::string& kind) {
  return eventually([&] { return front.gateway.counts().faults(kind) >= 1; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(failure_table)

// --- Killed and stopped ------------------------------------------------------

// Before it has heard that the lock is its own.
BOOST_AUTO_TEST_CASE(
    lock_of_one_killed_amid_taking_it_is_free_after_its_lease) {
  Front front;
  const std::string name = fresh_name();
  Agent holder(at(front));
  holder.make("a", name, "ttl=1000");
  front.gateway.add(after("PutItem", "delay-answer", kHeld));
  holder.ask("begin a lock");
  BOOST_TEST(eventually([&] { return !front.is_free(name); }));
  holder.kill();
  const auto begun = BootClock::now();
  OtherHost rival(front, name);
  BOOST_TEST(rival.takes());
  BOOST_TEST((BootClock::now() - begun >= kWaited));
  const std::string row = rival.row();
  front.let_go();
  BOOST_TEST(rival.row() == row);
}

namespace {

// Long enough to be stopped within it.
const std::string kLease = "ttl=4000 request_timeout=1900";

// Stops the agent until another has the lock; what it was to be told comes
// meanwhile.
struct Overtaken {
  Overtaken(Front& front, Agent& agent, const std::string& name)
      : rival(front, name) {
    agent.stop();
    BOOST_TEST_REQUIRE(rival.takes());
    front.let_go();
    row = rival.row();
    agent.channel().say("owns a");
    agent.go_on();
    BOOST_TEST(agent.channel().line() == "false");
  }
  void must_hold() {
    BOOST_TEST(rival.mutex.owns_lock());
    BOOST_TEST(rival.row() == row);
  }

  OtherHost rival;
  std::string row;
};

}  // namespace

BOOST_AUTO_TEST_CASE(holder_stopped_amid_its_renewal_has_lost_the_lock) {
  Front front;
  const std::string name = fresh_name();
  Agent holder(at(front));
  holder.make("a", name, kLease);
  front.gateway.add(after("UpdateItem", "delay-answer", kHeld));
  BOOST_TEST(holder.ask("lock a") == "true");
  BOOST_TEST(was_hit(front, "delay-answer"));
  Overtaken x(front, holder, name);
  holder.ask("await a expired");
  BOOST_TEST(holder.ask("owns a") == "false");
  BOOST_TEST(holder.ask("unlock a") == "done");
  x.must_hold();
  BOOST_TEST(holder.ask("losses a") == "expired");
}

BOOST_AUTO_TEST_CASE(host_stopped_until_its_grant_is_over_holds_nothing) {
  Front front;
  const std::string name = fresh_name();
  Agent taker(at(front));
  taker.make("a", name, kLease);
  front.gateway.add(after("PutItem", "delay-answer", kHeld));
  taker.ask("begin a try_for 1800");
  BOOST_TEST(was_hit(front, "delay-answer"));
  Overtaken x(front, taker, name);
  // "false", or an error: it has heard nothing in time.
  BOOST_TEST(taker.ask("join a") != "true");
  BOOST_TEST(taker.ask("owns a") == "false");
  front.let_go();
  x.must_hold();
  BOOST_TEST(taker.ask("losses a") == "");
}

// --- Calendars ---------------------------------------------------------------

namespace {

// To stay held, and yet shorter than the least that a calendar is off.
const std::string kHeldLease = "ttl=20000 request_timeout=9000";

// A holder and a waiter, each with a calendar of its own.
class OutOfTime {
 public:
  OutOfTime(const Whereabouts& where, seconds holder_off, seconds waiter_off)
      : holder_calendar_(holder_off),
        waiter_calendar_(waiter_off),
        holder_(where, &holder_calendar_),
        waiter_(where, &waiter_calendar_) {
    const std::string name = fresh_name();
    holder_.make("a", name, kHeldLease);
    waiter_.make("a", name, kHeldLease);
  }

  Agent& holder() { return holder_; }
  Agent& waiter() { return waiter_; }

  // Whichever was late is early now.
  void jump() {
    holder_calendar_.jump_to(-holder_calendar_.offset() - 30s);
    waiter_calendar_.jump_to(-waiter_calendar_.offset() + 30s);
  }

 private:
  FakeCalendar holder_calendar_;
  FakeCalendar waiter_calendar_;
  Agent holder_;
  Agent waiter_;
};

using Crowd = std::vector<std::unique_ptr<OutOfTime>>;

void add_to(Crowd& crowd, const Front& front, seconds off) {
  for (const auto& [holder, waiter] : std::vector<std::pair<seconds, seconds>>{
           {off, 0s}, {-off, 0s}, {0s, off}, {0s, -off}, {off, -off}}) {
    crowd.push_back(std::make_unique<OutOfTime>(at(front), holder, waiter));
  }
}

// All of them at once, so that it takes no longer than one.
void must_all(Crowd& crowd, Agent& (OutOfTime::*who)(),
              const std::string& command, const std::string& answer) {
  for (const auto& pair : crowd) (pair.get()->*who)().channel().say(command);
  for (const auto& pair : crowd) {
    BOOST_TEST((pair.get()->*who)().channel().line() == answer, command);
  }
}

// "false", or an error if nobody has answered in time.
void must_keep_out(Crowd& crowd, const std::string& command) {
  for (const auto& pair : crowd) pair->waiter().channel().say(command);
  for (const auto& pair : crowd) {
    BOOST_TEST(pair->waiter().channel().line() != "true", command);
  }
}

void must_hold_and_hand_over(Crowd& crowd) {
  const auto holder = &OutOfTime::holder;
  const auto waiter = &OutOfTime::waiter;
  // The very first requests of either process.
  must_all(crowd, holder, "lock a", "true");
  must_keep_out(crowd, "try a");
  must_keep_out(crowd, "try_for a 400");
  for (const auto& pair : crowd) pair->jump();
  must_all(crowd, holder, "renew a", "true");
  must_keep_out(crowd, "try_for a 1000");
  must_all(crowd, holder, "owns a", "true");
  must_all(crowd, holder, "losses a", "");
  must_all(crowd, holder, "release a", "true");
  must_all(crowd, waiter, "lock a", "true");
  must_all(crowd, waiter, "owns a", "true");
}

}  // namespace

// Where signatures are good for 5 minutes, and DynamoDB's own clock, by which
// all is judged, may be hours from the true time; half a world for each engine.
BOOST_AUTO_TEST_CASE(calendars_hours_off_or_jumping_change_nothing) {
  if (!FakeCalendar::works()) {
    BOOST_TEST_MESSAGE("not checked: false calendars, not in this build");
    return;
  }
  std::list<Front> fronts;
  Crowd crowd;
  seconds ahead = 5h;
  for (const EngineKind kind : engine_kinds()) {
    Front& front = fronts.emplace_back(kind);
    if (kind != EngineKind::given) front.gateway.clock_offset(ahead);
    ahead = 0s;
    add_to(crowd, front, 11h);
  }
  must_hold_and_hand_over(crowd);
  for (Front& front : fronts) {
    const Gateway::Counts counts = front.gateway.counts();
    BOOST_TEST(counts.bad_signatures() == 0);
    // Each that was off was refused once; its second request was right.
    BOOST_TEST(counts.refused_signatures() >= 6);
    BOOST_TEST(counts.refused_signatures() <= 10);
  }
}

// A machine is stopped from outside amid what the lock protects, and others
// have had it when it unlocks: the first answer that shows it is that to the
// release.
BOOST_AUTO_TEST_CASE(stop_that_only_the_release_shows_is_told) {
  for (const bool by_release : {true, false}) {
    Gate gate(any_engine_kind());
    Options options = on_table(table_at(gate));
    Told told;
    options.on_lost = [&](Loss why) { told.add(name_of(why)); };
    DdbMutex mutex(fresh_name(), options);
    mutex.lock();
    write_row(gate.engine(), mutex.name(),
              record("theirs", calendar() + 11min));
    gate.always("DeleteItem", [](Engine& engine, const SeenRequest& request) {
      Reply reply = engine.forward(request);
      reply.headers.insert(reply.headers.begin(), {"Date", http_date(10min)});
      return reply;
    });
    std::error_code ec;
    if (by_release) {
      mutex.release(ec);
    } else {
      mutex.unlock();
    }
    BOOST_TEST_REQUIRE(told.wait_for(1));
    BOOST_TEST(told.text() == "taken");
    BOOST_TEST((!by_release || ec == Errc::lease_lost), ec.message());
  }
}

// Signed by the calendar all the time, which must not be too far out then.
BOOST_AUTO_TEST_CASE(calendars_off_or_jumping_without_dates_change_nothing) {
  if (!FakeCalendar::works()) {
    BOOST_TEST_MESSAGE("not checked: false calendars, not in this build");
    return;
  }
  Front front;
  front.gateway.dates(false);
  Crowd crowd;
  add_to(crowd, front, 200s);
  must_hold_and_hand_over(crowd);
  BOOST_TEST(front.gateway.counts().refused_signatures() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
