// The failure table on the wire: answers that are lost, requests that arrive
// late or twice, services that fail, refuse or are somebody else's.  With real
// engines behind the gateway, which checks each signature, and through the
// public class alone.
//
// What goes wrong, and in which suites it is tested.  `failure_table` is this
// file and the two beside it.
//
//   take, renewal or release applied,    failure_table, driver, protocol,
//     and its answer lost                  protocol_histories
//   old renewal after the release, or    failure_table, protocol,
//     after the next holder                protocol_histories
//   old take after its release           failure_table, protocol_histories
//   holder stopped past its lease        failure_table, processes
//   lease lost, a local thread waits     failure_table, threads
//   holder killed                        failure_table, processes
//   calendars off or jumping             failure_table, processes, protocol
//   service out of reach, or hanging     failure_table, processes, callbacks
//   resolver hangs                       failure_table, callbacks, threads
//   throttled, 500, 503                  failure_table, retry_of_a_call,
//                                          budget_for_retries
//   502                                  failure_table, mutex_errors
//   504                                  refusal_of_dynamodb
//   machine frozen, snapshot resumed     failure_table, protocol,
//                                          clock_of_the_service_contradicted
//   200 that is not DynamoDB's           failure_table, mutex_errors,
//                                          answer_that_is_not_dynamodbs
//   no table, no keys, bad signature,    failure_table, mutex_errors
//     table of another key
//   access denied, other refusals        mutex_errors, callbacks
//   keys that run out during the hold    client_request, cached_credentials
//   clock too far out for SigV4          failure_table, retry_of_a_call
//   fork                                 forks
//   thread cancelled                     thread_cancellation
//   exception in a callback, slow one    callbacks
//   process exit, static destruction     exits
//   table or row deleted                 failure_table, callbacks
//   record of wrong types or sizes       failure_table, mutex_errors, record
//   400 KB of `[`                        mutex_errors
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/failure_kit.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;

namespace {

const auto kEngines = boost::unit_test::data::make(engine_kinds());
const auto kLostAnswers = boost::unit_test::data::make(lost_answers());

// A way to lose an answer, before an engine of that kind.
struct Lost {
  EngineKind kind;
  std::string answer;
};
std::ostream& operator<<(std::ostream& out, const Lost& lost) {
  return out << lost.answer << " before " << lost.kind;
}

// All of them before one; the others are told apart by what comes after.
std::vector<Lost> each_lost() {
  std::vector<Lost> all;
  for (const EngineKind kind : engine_kinds()) {
    const std::vector<std::string> few = {"drop-answer", "reset-answer"};
    for (const std::string& answer :
         kind == any_engine_kind() ? lost_answers() : few) {
      all.push_back({kind, answer});
    }
  }
  return all;
}

// While there are such failures no take gets through.
const auto kLasting = boost::unit_test::data::make(
    std::vector<std::string>{"drop", "reset", "close", "half-close", "throttle",
                             "500", "503", "portal", "empty"});
// These only delay one.
const auto kFailures =
    kLasting +
    boost::unit_test::data::make(std::vector<std::string>{"late", "reorder"});

}  // namespace

BOOST_AUTO_TEST_SUITE(failure_table)

// --- Applied, but the answer is lost -----------------------------------------

BOOST_DATA_TEST_CASE(take_applied_and_unanswered_is_one_acquisition,
                     boost::unit_test::data::make(each_lost()), lost) {
  const std::string& loss = lost.answer;
  Front front(lost.kind);
  Watched x(front, 1min);
  x.options.request_timeout = kHasty;
  x.make();
  front.gateway.add(losing("PutItem", loss));
  // The lease would be waited out for longer.
  BOOST_TEST(x.mutex->try_lock_for(kPlenty));
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(front.gateway.counts().faults(loss) == 1);
  // What was said amiss has not been believed, though it was so.
  BOOST_TEST(front.gateway.counts().requests("PutItem") >= 2);
  Rival rival(front, x.name);
  BOOST_TEST(!rival.mutex.try_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->unlock(); }) == "none");
  front.gateway.wait_until_quiet();
  BOOST_TEST(eventually([&] { return front.is_free(x.name); }));
  BOOST_TEST(x.told.text() == "");
}

// All at once; which of the locks loses which answer does not matter.
BOOST_AUTO_TEST_CASE(renewals_applied_and_unanswered_lose_nothing) {
  std::list<Front> fronts;
  std::list<Watched> all;
  std::vector<BootTime> first_ends;
  for (const EngineKind kind : engine_kinds()) {
    Front& front = fronts.emplace_back(kind);
    for (const std::string& loss : lost_answers()) {
      front.gateway.add(losing("UpdateItem", loss));
      // Renewed within a second, since it is stamped by the calendar.
      Watched& x = all.emplace_back(front, 20s);
      x.options.request_timeout = kHasty;
      x.lock();
      first_ends.push_back(x.ends_by());
    }
  }
  auto first_end = first_ends.begin();
  for (Watched& x : all) {
    BOOST_TEST(eventually([&] { return x.ends_from() > *first_end + 100ms; }));
    ++first_end;
    BOOST_TEST(x.mutex->owns_lock());
    BOOST_TEST(x.released() == "none");
    BOOST_TEST(x.told.text() == "");
  }
  for (Front& front : fronts) {
    const Gateway::Counts counts = front.gateway.counts();
    for (const std::string& loss : lost_answers()) {
      BOOST_TEST(counts.faults(loss) == 1, loss);
    }
    BOOST_TEST(counts.requests("UpdateItem") >= 20);
    for (Watched& x : all) BOOST_TEST(front.is_free(x.name));
  }
}

BOOST_DATA_TEST_CASE(release_applied_and_unanswered_is_a_release,
                     boost::unit_test::data::make(each_lost()), lost) {
  const std::string& loss = lost.answer;
  Front front(lost.kind);
  Watched x(with_clock(front.table()), 1min);
  // In silence all the time there is for it goes by; else there is enough.
  x.options.request_timeout = is_silent(loss) ? milliseconds(kHasty) : 10s;
  x.lock();
  front.gateway.add(losing("DeleteItem", loss));
  BOOST_TEST(x.released() ==
             (is_silent(loss) ? words(Errc::timed_out) : "none"));
  BOOST_TEST(!x.mutex->owns_lock());
  // In silence, behind.
  BOOST_TEST(eventually(
      [&] { return front.gateway.counts().requests("DeleteItem") >= 2; }));
  front.gateway.wait_until_quiet();
  BOOST_TEST(front.gateway.counts().faults(loss) == 1);
  BOOST_TEST(front.is_free(x.name));
  Rival rival(front, x.name);
  BOOST_TEST(rival.mutex.try_lock());
  x.mutex.reset();
  x.table.reset();
  x.options = {};
  BOOST_TEST(x.told.text() == "");
  BOOST_TEST(rival.mutex.owns_lock());
}

BOOST_DATA_TEST_CASE(take_given_up_unanswered_leaves_no_row, kLostAnswers,
                     loss) {
  Front front;
  Watched x(front, 1min);
  x.options.request_timeout = 100ms;
  x.make();
  Fault fault = losing("PutItem", loss);
  fault.times = 0;
  front.gateway.add(fault);
  const std::string thrown =
      thrown_by([&] { BOOST_TEST(!x.mutex->try_lock()); });
  BOOST_TEST(thrown != "none");
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(eventually(
      [&] { return front.gateway.counts().applied("PutItem") >= 1; }));
  BOOST_TEST(eventually([&] { return front.is_free(x.name); }));
  front.gateway.wait_until_quiet();
  BOOST_TEST(front.is_free(x.name));
  BOOST_TEST(x.told.text() == "");
}

// --- Late, and twice ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(second_copy_of_a_take_puts_no_stamp_back) {
  Front front;
  Watched x(front, 20s);
  front.gateway.add(after("PutItem", "duplicate", 1200ms));
  x.lock();
  const BootTime first_end = x.ends_by();
  BOOST_TEST(eventually([&] { return x.ends_from() > first_end + 100ms; }));
  const std::string row = raw_row(front.engine, x.name);
  front.gateway.wait_until_quiet();
  BOOST_TEST(front.gateway.counts().applied("PutItem") == 2);
  BOOST_TEST(raw_row(front.engine, x.name) == row);
  BOOST_TEST(x.released() == "none");
}

BOOST_AUTO_TEST_CASE(old_renewal_after_the_release_changes_nothing) {
  Front front;
  Watched alone(front, 3s);
  Watched followed(front, 3s);
  Fault copied = after("UpdateItem", "duplicate", 600ms);
  copied.times = 2;
  front.gateway.add(copied);
  alone.lock();
  followed.lock();
  BOOST_TEST(eventually(
      [&] { return front.gateway.counts().applied("UpdateItem") >= 2; }));
  BOOST_TEST(alone.released() == "none");
  BOOST_TEST(followed.released() == "none");
  Rival rival(front, followed.name);
  BOOST_TEST(rival.takes());
  const std::string row = rival.row();
  front.gateway.wait_until_quiet();
  BOOST_TEST(front.gateway.counts().faults("duplicate") == 2);
  BOOST_TEST(front.gateway.counts().applied("UpdateItem") >= 4);
  BOOST_TEST(front.is_free(alone.name));
  BOOST_TEST(rival.row() == row);
  BOOST_TEST(thrown_by([&] { rival.mutex.release(); }) == "none");
  BOOST_TEST(alone.told.text() + followed.told.text() == "");
}

// Renewals and releases that hung until after the lease, and then go on.
BOOST_DATA_TEST_CASE(what_hung_until_another_holds_the_lock_changes_nothing,
                     kEngines, kind) {
  Front front(kind);
  Watched x(front, 600ms);
  x.options.on_danger = nullptr;
  x.options.request_timeout = 150ms;
  x.lock();
  front.gateway.mode("hang");
  BOOST_TEST(
      eventually([&] { return front.gateway.counts().under_way() >= 1; }));
  Rival rival(front, x.name);
  BOOST_TEST(rival.takes());
  x.mutex->unlock();
  const std::string row = rival.row();
  const int applied = front.gateway.counts().all_applied();
  front.gateway.mode("open");
  front.gateway.wait_until_quiet();
  // The renewal, and the release after it.
  BOOST_TEST(front.gateway.counts().all_applied() >= applied + 2);
  BOOST_TEST(rival.row() == row);
  BOOST_TEST(thrown_by([&] { rival.mutex.release(); }) == "none");
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(x.told.text() == "expired");
}

BOOST_AUTO_TEST_CASE(old_renewal_after_a_newer_one_puts_no_stamp_back) {
  Front front;
  Watched x(front, 20s);
  front.gateway.add(after("UpdateItem", "late", 400ms));
  x.lock();
  const BootTime first_end = x.ends_by();
  BOOST_TEST(eventually([&] { return x.ends_from() > first_end + 100ms; }));
  const std::string row = raw_row(front.engine, x.name);
  front.gateway.wait_until_quiet();
  BOOST_TEST(front.gateway.counts().applied("UpdateItem") >= 2);
  BOOST_TEST(raw_row(front.engine, x.name) == row);
  BOOST_TEST(x.released() == "none");
  BOOST_TEST(x.told.text() == "");
}

// The row is nobody's then, and keeps others out for no longer than a lease.
BOOST_AUTO_TEST_CASE(old_take_after_the_release_is_free_within_its_lease) {
  Front front;
  Watched x(with_clock(front.table()), 900ms);
  bool came_late = false;
  // A machine that is busy may release it later than that.
  for (int attempt = 0; attempt < 5 && !came_late; ++attempt) {
    front.gateway.add(after("PutItem", "duplicate", 150ms * (attempt + 1)));
    x.lock();
    BOOST_TEST(x.released() == "none");
    front.gateway.wait_until_quiet();
    came_late = !front.is_free(x.name);
  }
  BOOST_TEST(came_late);
  // Who knows no time but his own.
  front.gateway.dates(false);
  Watched other(front.table(), 1min, x.name);
  other.make();
  BOOST_TEST(!other.mutex->try_lock());
  BOOST_TEST(other.mutex->try_lock_for(kPlenty));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(other.released() == "none");
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "");
}

// --- Lost while another thread waits -----------------------------------------

BOOST_AUTO_TEST_CASE(local_waiter_gets_in_after_the_loser_has_unlocked) {
  Front front;
  Watched x(front, 600ms);
  x.options.on_danger = nullptr;
  front.gateway.add(always("UpdateItem", "503"));
  x.lock();
  Aside waiter([&] { x.mutex->lock(); });
  BOOST_TEST(waiter.rests());
  Rival rival(front, x.name);
  BOOST_TEST(rival.takes());
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(x.told.text() == "expired");
  const std::string row = rival.row();
  // Until then it has not even asked.
  BOOST_TEST(front.gateway.counts().requests("PutItem") == 1);
  BOOST_TEST(front.gateway.counts().requests("GetItem") == 0);
  BOOST_TEST(x.released() == words(Errc::lease_lost));
  BOOST_TEST(eventually(
      [&] { return front.gateway.counts().requests("GetItem") >= 1; }));
  BOOST_TEST(rival.row() == row);
  BOOST_TEST(!waiter.done());
  BOOST_TEST(thrown_by([&] { rival.mutex.release(); }) == "none");
  BOOST_TEST(waiter.thrown() == "none");
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(x.released() == "none");
}

// --- A service that fails ----------------------------------------------------

BOOST_DATA_TEST_CASE(take_that_fails_is_tried_again, kFailures, failure) {
  Front front;
  Watched x(front, 1min);
  x.options.request_timeout = kHasty;
  x.make();
  Fault fault = after("PutItem", failure, failure == "reorder" ? 100ms : 0ms);
  fault.times = failure == "throttle" ? 1 : 2;
  front.gateway.add(fault);
  // Another's look at the same row, for what is held until then.
  Aside other([&] {
    if (failure == "reorder") front.table()->inspect(x.name);
  });
  BOOST_TEST(x.mutex->try_lock_for(kPlenty));
  BOOST_TEST(other.thrown() == "none");
  BOOST_TEST(front.gateway.counts().faults(failure) >= 1);
  BOOST_TEST(front.gateway.counts().refused_signatures() == 0);
  front.gateway.wait_until_quiet();
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(x.released() == "none");
  BOOST_TEST(front.is_free(x.name));
}

BOOST_DATA_TEST_CASE(failure_that_lasts_is_an_error_and_never_a_lock, kLasting,
                     failure) {
  Front front;
  Watched x(front, 1min);
  x.options.request_timeout = 100ms;
  x.make();
  front.gateway.add(always("PutItem", failure));
  const std::string thrown =
      thrown_by([&] { BOOST_TEST(!x.mutex->try_lock()); });
  BOOST_TEST(thrown != "none");
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(front.gateway.counts().applied("PutItem") == 0);
}

BOOST_AUTO_TEST_CASE(service_that_asks_to_wait_is_not_asked_sooner) {
  Front front;
  const auto table = front.table();
  const std::vector<std::string> kinds = {"throttle", "500", "503"};
  for (const std::string& kind : kinds) {
    Fault fault = after("PutItem", kind, 0ms);
    fault.retry_after = 1200ms;  // More than any first delay.
    front.gateway.add(fault);
  }
  std::list<Aside> threads;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    threads.emplace_back([&table] {
      DdbMutex mutex(fresh_name(), on_table(table));
      const Stopwatch watch;
      mutex.lock();
      if (watch.ms() < 1200) throw ddbmutex::Error(Errc::throttled, "too soon");
    });
  }
  for (Aside& thread : threads) BOOST_TEST(thread.thrown() == "none");
  for (const std::string& kind : kinds) {
    BOOST_TEST(front.gateway.counts().faults(kind) == 1, kind);
  }
}

// The budget for retries is spent by those who wait; who holds goes on.
BOOST_AUTO_TEST_CASE(renewals_go_on_while_polls_are_held_back) {
  constexpr int kWaiters = 12;
  constexpr int kRetries = 35;  // All that the budget pays for.
  Front front;
  Watched x(front, 3s);
  x.lock();
  const BootTime first_end = x.ends_by();
  Fault renewals = after("UpdateItem", "503", 0ms);
  renewals.times = 4;
  front.gateway.add(renewals);
  front.gateway.add(always("PutItem", "503"));
  std::list<Watched> waiting;
  std::list<Aside> threads;
  const Stopwatch watch;
  for (int i = 0; i < kWaiters; ++i) {
    waiting.emplace_back(x.table, 1min);
    waiting.back().make();
    threads.emplace_back([&mutex = *waiting.back().mutex] { mutex.lock(); });
  }
  BOOST_TEST(eventually([&] { return x.ends_from() > first_end + 1s; }));
  BOOST_TEST(x.told.text() == "");
  const int puts = front.gateway.counts().requests("PutItem");
  // Once more for every 5 s.
  const auto rounds = static_cast<int>(watch.ms() / 5000);
  BOOST_TEST(puts <= 1 + kWaiters + kRetries + kWaiters * rounds);
  BOOST_TEST(puts >= kWaiters);
  for (Watched& each : waiting) each.mutex->cancel();
  for (Aside& thread : threads) {
    BOOST_TEST(thread.thrown() == words(Errc::cancelled));
  }
  front.gateway.clear();
  BOOST_TEST(x.released() == "none");
}

BOOST_AUTO_TEST_SUITE_END()
