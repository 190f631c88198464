// The failure table on the wire: answers that are lost, services that fail,
// refuse or are somebody else's.  With real engines behind the gateway, which
// checks each signature, and through the public class alone.
//
// What goes wrong, and in which suites it is tested.  `failure_table` is this
// file; test_failures_service.cpp is failure_table_service.
//
//   take, renewal or release applied,    failure_table, driver, protocol,
//     and its answer lost                  simulated_world
//   old renewal after the release, or    protocol, simulated_world
//     after the next holder
//   old take after its release           simulated_world
//   holder stopped past its lease        simulated_world, torture
//   lease lost, a local thread waits     simulated_world
//   holder killed                        simulated_world, torture
//   calendars off or jumping             simulated_world, torture, protocol
//   service out of reach, or hanging     failure_table_service, callbacks,
//                                          simulated_world
//   resolver hangs                       failure_table_service, callbacks,
//                                          protections
//   throttled, 500, 503                  failure_table, retry_of_a_call,
//                                          budget_for_retries
//   502                                  failure_table, mutex_errors
//   504                                  refusal_of_dynamodb
//   machine frozen, snapshot resumed     simulated_world, protocol,
//                                          clock_of_the_service_contradicted
//   200 that is not DynamoDB's           failure_table, mutex_errors,
//                                          answer_that_is_not_dynamodbs
//   no table, no keys, bad signature,    failure_table_service, mutex_errors
//     table of another key
//   access denied, other refusals        mutex_errors, callbacks
//   keys that run out during the hold    client_request, cached_credentials
//   clock too far out for SigV4          failure_table_service,
//                                          retry_of_a_call
//   fork                                 forks
//   thread cancelled                     thread_cancellation
//   exception in a callback, slow one    callbacks
//   process exit, static destruction     exits
//   table or row deleted                 callbacks
//   record of wrong types or sizes       mutex_errors, record
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
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using std::chrono::milliseconds;

namespace {

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

// As BOOST_TEST, for threads: that is for one thread alone.
void must(bool holds) {
  if (!holds) throw ddbmutex::Error(Errc::condition_failed, "a check");
}

// While there are such failures no take gets through.
const std::vector<std::string>& lasting_failures() {
  static const std::vector<std::string> kKinds = {
      "drop", "reset", "close",  "half-close", "throttle",
      "500",  "503",   "portal", "empty"};
  return kKinds;
}

// And those that only delay one.
std::vector<std::string> failures() {
  std::vector<std::string> all = lasting_failures();
  all.insert(all.end(), {"late", "reorder"});
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(failure_table)

// --- Applied, but the answer is lost -----------------------------------------

BOOST_DATA_TEST_CASE(take_applied_and_unanswered_is_one_acquisition,
                     boost::unit_test::data::make(each_lost()), lost) {
  const std::string& loss = lost.answer;
  Front front(lost.kind);
  Watched x(front, 1min);
  x.options.request_timeout = time_for(loss);
  x.make();
  front.gateway.add(losing("PutItem", loss));
  // The lease would be waited out for longer.
  BOOST_TEST(x.mutex->try_lock_for(kPlenty));
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(front.gateway.counts().faults(loss) == 1);
  // What was said amiss has not been believed, though it was so.
  BOOST_TEST(front.gateway.counts().requests("PutItem") >= 2);
  OtherHost rival(front, x.name);
  BOOST_TEST(!rival.mutex.try_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->unlock(); }) == "none");
  front.let_go();
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
      Watched& x = all.emplace_back(front, 1min);
      x.options.renew_after = 500ms;
      // After that a lost one is sent again, and the release is to come
      // through.
      x.options.request_timeout = 5s;
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
    front.let_go();
    for (Watched& x : all) BOOST_TEST(front.is_free(x.name));
  }
}

BOOST_DATA_TEST_CASE(release_applied_and_unanswered_is_a_release,
                     boost::unit_test::data::make(each_lost()), lost) {
  const std::string& loss = lost.answer;
  Front front(lost.kind);
  Watched x(with_clock(front.table()), 1min);
  // In silence all the time there is for it goes by; else there is enough.
  x.options.request_timeout = time_for(loss);
  x.lock();
  front.gateway.add(losing("DeleteItem", loss));
  BOOST_TEST(x.released() ==
             (is_silent(loss) ? words(Errc::timed_out) : "none"));
  BOOST_TEST(!x.mutex->owns_lock());
  // In silence, behind.
  BOOST_TEST(eventually(
      [&] { return front.gateway.counts().requests("DeleteItem") >= 2; }));
  front.let_go();
  BOOST_TEST(front.gateway.counts().faults(loss) == 1);
  BOOST_TEST(front.is_free(x.name));
  OtherHost rival(front, x.name);
  BOOST_TEST(rival.mutex.try_lock());
  x.mutex.reset();
  x.table.reset();
  x.options = {};
  BOOST_TEST(x.told.text() == "");
  BOOST_TEST(rival.mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(take_given_up_unanswered_leaves_no_row) {
  Front front;
  std::list<Watched> all;
  std::list<Aside> takers;
  for (const std::string& loss : lost_answers()) {
    Watched& x = all.emplace_back(with_clock(front.table()), 1min);
    x.options.request_timeout = kHasty;
    x.make();
    Fault fault = losing(of("PutItem", x.name), loss);
    fault.times = 0;
    front.gateway.add(fault);
    takers.emplace_back([&front, &x, &loss] {
      // Again if the machine was too slow for one to be applied in its time.
      must(eventually([&] {
        must(thrown_by([&x] { (void)x.mutex->try_lock(); }) != "none");
        must(!x.mutex->owns_lock());
        return front.gateway.counts().faults(loss) > 0;
      }));
    });
  }
  for (Aside& taker : takers) BOOST_TEST(taker.thrown() == "none");
  for (Watched& x : all) {
    BOOST_TEST(eventually([&] { return front.is_free(x.name); }));
  }
  front.let_go();
  BOOST_TEST(front.gateway.counts().applied("PutItem") >=
             static_cast<int>(all.size()));
  for (Watched& x : all) {
    BOOST_TEST(eventually([&] { return front.is_free(x.name); }));
    BOOST_TEST(x.told.text() == "");
  }
}

// --- A service that fails ----------------------------------------------------

namespace {

// As long as it takes to see that nothing comes; else so long that no request
// is given up.
milliseconds time_for_one_with(const std::string& failure) {
  return failure == "drop" ? 3s : 20s;
}

void must_be_taken_nonetheless(const Front& front, Watched& x,
                               const std::string& failure) {
  const auto was_hit = [&] {
    return front.gateway.counts().faults(failure) >= 1;
  };
  // Another's look at the same row, for what is held until then.
  Aside other([&] {
    if (failure != "reorder") return;
    must(eventually(was_hit));
    front.table()->inspect(x.name);
  });
  must(x.mutex->try_lock_for(kPlenty));
  must(other.thrown() == "none");
  must(was_hit());
}

}  // namespace

BOOST_AUTO_TEST_CASE(take_that_fails_is_tried_again) {
  Front front;
  std::list<Watched> all;
  std::list<Aside> takers;
  for (const std::string& failure : failures()) {
    Watched& x = all.emplace_back(front, 1min);
    x.options.request_timeout = time_for_one_with(failure);
    x.make();
    const bool waits = failure == "reorder" || failure == "late";
    Fault fault = after(of("PutItem", x.name), failure,
                        waits ? milliseconds(kHeld) : 0ms);
    fault.times = failure == "throttle" ? 1 : 2;
    front.gateway.add(fault);
    takers.emplace_back([&front, &x, failure] {
      must_be_taken_nonetheless(front, x, failure);
    });
  }
  for (Aside& taker : takers) BOOST_TEST(taker.thrown() == "none");
  BOOST_TEST(front.gateway.counts().refused_signatures() == 0);
  front.let_go();
  for (Watched& x : all) {
    BOOST_TEST(x.mutex->owns_lock());
    BOOST_TEST(x.released() == "none");
    BOOST_TEST(front.is_free(x.name));
  }
}

BOOST_DATA_TEST_CASE(failure_that_lasts_is_an_error_and_never_a_lock,
                     boost::unit_test::data::make(lasting_failures()),
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
  std::list<Aside> threads;
  for (const std::string& kind : kinds) {
    const std::string name = fresh_name();
    Fault fault = after(of("PutItem", name), kind, 0ms);
    fault.retry_after = 1200ms;  // More than any first delay.
    front.gateway.add(fault);
    threads.emplace_back([&table, name] {
      DdbMutex mutex(name, on_table(table));
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
  Watched x(front, 1min);
  x.lock();
  const BootTime first_end = x.ends_by();
  const int puts_before = front.gateway.counts().requests("PutItem");
  const auto puts = [&] {
    return front.gateway.counts().requests("PutItem") - puts_before;
  };
  front.gateway.add(always("PutItem", "503"));
  std::list<Watched> waiting;
  std::list<Aside> threads;
  const Stopwatch watch;
  for (int i = 0; i < kWaiters; ++i) {
    waiting.emplace_back(x.table, 1min);
    waiting.back().make();
    threads.emplace_back([&mutex = *waiting.back().mutex] { mutex.lock(); });
  }
  // The budget is spent, but for what renewals that got through have added.
  BOOST_TEST(eventually([&] { return puts() >= kWaiters + kRetries - 2; }));
  Fault renewals = after("UpdateItem", "503", 0ms);
  renewals.times = 4;
  front.gateway.add(renewals);
  BOOST_TEST(thrown_by([&] { x.mutex->renew(); }) == "none");
  BOOST_TEST(eventually([&] { return x.ends_from() > first_end + 100ms; }));
  BOOST_TEST(x.told.text() == "");
  const int polls = puts();
  // Once more for every 5 s.
  const auto rounds = static_cast<int>(watch.ms() / 5000);
  BOOST_TEST(polls <= kWaiters + kRetries + 2 + kWaiters * rounds);
  for (Watched& each : waiting) each.mutex->cancel();
  for (Aside& thread : threads) {
    BOOST_TEST(thread.thrown() == words(Errc::cancelled));
  }
  front.gateway.clear();
  BOOST_TEST(x.released() == "none");
}

BOOST_AUTO_TEST_SUITE_END()
