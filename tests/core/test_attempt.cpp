// The parts that carry out one call for the lock: an attempt's requests,
// against a scripted server; the queue in which the threads of a process wait;
// whether and when a failed request is retried; and how fast renewals follow
// each other.
#include <rapidjson/document.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/hold.hpp"
#include "ddbmutex/lock/holds.hpp"
#include "ddbmutex/lock/lines.hpp"
#include "ddbmutex/lock/queue.hpp"
#include "sigv4/backoff.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/party.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/words.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace lock = ddbmutex::lock;
namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using dynamodb::Answer;
using dynamodb::Fault;
using dynamodb::is_transient;
using dynamodb::Retry;
using dynamodb::RetryBudget;
using lock::Call;
using lock::Queue;
using lock::RenewalRate;
using lock::Request;
using lock::Waits;
using sigv4::Backoff;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Entry = Queue::Entry;
using Urgency = Retry::Urgency;
using Verb = Request::Verb;

// === An attempt's requests ===================================================

namespace {

PartySettings at(const ScriptedServer& server) {
  PartySettings settings;
  settings.url = server.url();
  return settings;
}

// A party that has not heard from DynamoDB yet.
PartySettings new_at(const ScriptedServer& server) {
  PartySettings settings = at(server);
  settings.knows_the_time = false;
  return settings;
}

rapidjson::Document json(const std::string& body) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
  BOOST_REQUIRE(document.IsObject());
  return document;
}

std::int64_t number(const rapidjson::Value& value) {
  return std::stoll(value["N"].GetString());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt)

BOOST_AUTO_TEST_CASE(fault_after_sending_is_unknown_only_if_it_may_be_applied) {
  std::map<Fault, const char*> outcomes = {
      {Fault::none, "done"}, {Fault::condition_failed, "refused"}};
  for (const Fault fault :
       {Fault::no_keys, Fault::bad_keys, Fault::expired_keys,
        Fault::access_denied, Fault::no_table, Fault::table_in_use,
        Fault::wrong_key, Fault::bad_request, Fault::unknown_action,
        Fault::bad_certificate, Fault::unreachable, Fault::conflict,
        Fault::skewed_time}) {
    outcomes[fault] = "unsent";
  }
  for (const Fault fault :
       {Fault::disconnected, Fault::timed_out, Fault::throttled,
        Fault::server_failure, Fault::bad_answer, Fault::cancelled}) {
    outcomes[fault] = "unknown";
  }
  for (const auto& [fault, outcome] : outcomes) {
    BOOST_TEST_CONTEXT(name_of(fault)) {
      Answer answer;
      answer.fault = fault;
      answer.sent = true;
      BOOST_TEST(word(lock::reply_to(Verb::take, answer).outcome) == outcome);
      answer.sent = false;
      if (fault == Fault::none || fault == Fault::condition_failed) continue;
      BOOST_TEST(word(lock::reply_to(Verb::take, answer).outcome) == "unsent");
    }
  }
}

BOOST_AUTO_TEST_CASE(table_that_is_gone_or_of_another_key_has_no_row_of_ours) {
  Answer answer;
  answer.sent = true;
  for (const Fault fault : {Fault::no_table, Fault::wrong_key}) {
    answer.fault = fault;
    for (const Verb verb : {Verb::renew, Verb::release, Verb::look}) {
      const auto reply = lock::reply_to(verb, answer);
      BOOST_TEST(word(reply.outcome) == "refused");
      BOOST_REQUIRE((reply.row != nullptr));
      BOOST_TEST(word(reply.row->kind) == "absent");
    }
  }
}

// --- Faults ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(empty_budget_holds_back_a_take) {
  ScriptedServer server;
  Party party(at(server));
  BOOST_TEST(party.budget.draw(500));
  server.script(failure(500, "InternalServerError"));
  const Stopwatch watch;
  BOOST_TEST(party.take(2s) == "again");
  BOOST_TEST(watch.ms() >= 2000);  // Not retried before its deadline.
  BOOST_TEST(server.wait_for_requests(2));
  BOOST_TEST(actions(server) == "PutItem DeleteItem");
}

BOOST_AUTO_TEST_CASE(refused_signature_of_another_time_is_signed_anew_once) {
  const auto skewed = [] {
    return with_header(failure(400, "InvalidSignatureException"), "Date",
                       http_date(2h));
  };
  ScriptedServer server;
  server.script(skewed());
  for (int i = 0; i < 2; ++i) {
    server.script(with_header(Reply::ok("{}"), "Date", http_date(2h)));
  }
  Party corrected(new_at(server));
  BOOST_TEST(corrected.take() == "ours");
  const auto requests = server.requests();
  BOOST_TEST_REQUIRE(actions(server) == "GetItem GetItem PutItem");
  const auto day_and_hour = [&requests](std::size_t i) {
    return requests[i].header("X-Amz-Date").value_or("").substr(0, 11);
  };
  BOOST_TEST(day_and_hour(0) != day_and_hour(1));
  const auto take = json(requests[2].body);
  BOOST_TEST(!take["ExpressionAttributeValues"].HasMember(":own0"));
  BOOST_TEST(number(take["Item"]["expires"]) >
             nanoseconds(dynamodb::Client::calendar() + 2h).count());
}

BOOST_AUTO_TEST_CASE(look_that_is_given_up_is_ended) {
  ScriptedServer server([](const SeenRequest&) { return hanging(); });
  Party party(new_at(server));
  const int tokens = party.budget.tokens();
  BOOST_TEST(party.take(2s) == "again");
  BOOST_TEST(actions(server) == "GetItem");
  BOOST_TEST(party.fault() == "timed_out");
  BOOST_TEST(party.answer.message != "no answer yet");  // Of what goes on.
  BOOST_TEST(party.budget.tokens() == tokens);          // Nothing was retried.
}

// --- Waking ----------------------------------------------------------------

namespace {

// Returns what is wrong.
std::string renewal_that_is_told_to_wait() {
  std::atomic<int> updates{0};
  ScriptedServer server([&](const SeenRequest& request) {
    if (action_of(request) != "UpdateItem" || ++updates > 1) {
      return Reply::ok("{}");
    }
    return with_header(failure(503, "ServiceUnavailable"), "x-amz-retry-after",
                       "60000");
  });
  PartySettings settings = at(server);
  settings.ttl = 3s;
  Party party(settings);
  if (party.take() != "ours") return "not taken";
  const std::string verdict = party.renew();
  return updates == 2 && verdict == "ours" ? "" : verdict;
}

}  // namespace

// The server asks for more time than the lease has.
BOOST_AUTO_TEST_CASE(renewal_is_tried_again_although_asked_to_wait_too_long) {
  BOOST_TEST(undisturbed(500ms, renewal_that_is_told_to_wait) == "");
}

// --- DynamoDB's clock ------------------------------------------------------

BOOST_AUTO_TEST_CASE(date_of_a_captive_portal_is_not_believed) {
  ScriptedServer server;
  server.script(with_header(
      with_header(Reply::ok("<html></html>"), "Date", http_date(5h)),
      "Content-Type", "text/html"));
  Party party(new_at(server));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(actions(server) == "GetItem GetItem PutItem");
  BOOST_TEST(party.client.clock().contradictions() == 0);
  BOOST_TEST(party.client.clock().latest(BootClock::now()).count() <
             nanoseconds(dynamodb::Client::calendar() + 1h).count());
}

// Any thread may receive the answer that contradicts the clock.
BOOST_AUTO_TEST_CASE(claims_are_checked_while_no_other_thread_uses_them) {
  ScriptedServer server;
  Party party(at(server));
  lock::Holds holds(party.client, party.budget);
  lock::Holds::Guard guard(holds.mutex);
  Aside checks([&] { holds.check_clock(); });
  BOOST_TEST(checks.rests());
  BOOST_TEST(!checks.done());
  guard.unlock();
  BOOST_TEST(checks.thrown() == "none");
}

namespace {

// A lock that is renewed in the middle of its lease.  `meanwhile` happens
// before the take's answer.
lock::HoldPtr held_in(
    lock::Holds& holds, BootTime taken_at,
    const std::function<void()>& meanwhile = [] {}, milliseconds ttl = 10min) {
  auto settings =
      std::make_shared<lock::MutexSettings>(holds.client, holds.budget);
  settings->ttl = ttl;
  settings->renew_after = ttl / 2;
  const lock::HoldPtr hold = holds.make(settings);
  hold->lease.next(Call::take, taken_at, holds.client.clock(),
                   settings->observation);
  meanwhile();
  lock::Reply reply;
  reply.outcome = lock::Reply::Outcome::done;
  reply.received = BootClock::now();
  BOOST_TEST_REQUIRE(
      word(hold->lease.receive(std::move(reply), holds.client.clock(),
                               settings->observation)) == "ours");
  holds.keep(*hold);
  return hold;
}

}  // namespace

// Two requests were stamped in the same moment.
BOOST_AUTO_TEST_CASE(claims_that_end_together_are_checked_once) {
  ScriptedServer server;
  Party party(at(server));
  lock::Holds holds(party.client, party.budget);
  const BootTime now = BootClock::now();
  held_in(holds, now);
  held_in(holds, now);
  Aside checks([&] { holds.check_clock(); });
  BOOST_TEST(checks.ends());
}

// This machine was stopped for 8 of the 10 minutes.
BOOST_AUTO_TEST_CASE(claim_that_ends_sooner_is_renewed_sooner) {
  ScriptedServer server;
  PartySettings settings = at(server);
  settings.ttl = 10min;
  Party party(settings);
  lock::Holds holds(party.client, party.budget);
  const lock::HoldPtr hold = held_in(holds, BootClock::now());
  const BootTime planned = hold->send.key().when;
  server.script(with_header(Reply::ok("{}"), "Date", http_date(8min)));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.client.clock().contradictions() == 1);
  holds.check_clock();
  BOOST_TEST((hold->lease.claim_end() < planned));
  BOOST_TEST((hold->send.key().when < hold->lease.claim_end()));
}

// It was stopped between the take and its answer.
BOOST_AUTO_TEST_CASE(claim_that_is_short_from_the_start_is_renewed_in_time) {
  ScriptedServer server;
  PartySettings settings = at(server);
  settings.ttl = 10min;
  Party party(settings);
  lock::Holds holds(party.client, party.budget);
  const lock::HoldPtr hold = held_in(holds, BootClock::now(), [&] {
    server.script(with_header(Reply::ok("{}"), "Date", http_date(8min)));
    BOOST_TEST(party.take() == "ours");
  });
  BOOST_TEST((hold->lease.claim_end() < BootClock::now() + 150s));
  BOOST_TEST((hold->send.key().when < hold->lease.claim_end()));
}

// --- Which renewal is next ---------------------------------------------------

namespace {

// Locks whose renewals are due.  Only go_to() moves the time.
class Due {
 public:
  // A lease of an hour has half an hour left, and so on.
  lock::HoldPtr add(milliseconds ttl, bool unanswered = false) {
    lock::HoldPtr hold = held_in(
        holds_, now_, [] {}, ttl);
    if (unanswered) hold->answer.fault = Fault::timed_out;
    holds_.lines.join(*hold, now_);
    return hold;
  }
  // Until so much is left of its claim.
  void go_to(const lock::Hold& hold, milliseconds left) {
    now_ = hold.lease.claim_end() - left;
  }
  // These are in flight, besides those that begin() returns.
  void in_flight(std::size_t renewals) {
    holds_.lines.begin_round(renewals, 0);
  }
  // Null if none may begin.
  const lock::Hold* begin() {
    lock::Hold* const hold = holds_.lines.due(now_).hold;
    if (hold == nullptr) return nullptr;
    holds_.lines.count(*hold, now_);
    holds_.park(*hold);
    return hold;
  }
  int begin_all() {
    int begun = 0;
    while (begin() != nullptr) ++begun;
    return begun;
  }
  nanoseconds asks_again_in() { return holds_.lines.due(now_).ask_at - now_; }

 private:
  ScriptedServer server_;
  Party party_{at(server_)};
  lock::Holds holds_{party_.client, party_.budget};
  BootTime now_ = BootClock::now();
};

}  // namespace

BOOST_AUTO_TEST_CASE(renewal_whose_lease_is_nearly_over_waits_for_no_turn) {
  Due due;
  const lock::HoldPtr one = due.add(8min);
  for (int i = 1; i < 30; ++i) due.add(8min);
  due.go_to(*one, 2min);
  BOOST_TEST(due.begin_all() == 9);
  BOOST_TEST((due.asks_again_in() < 1s));
  due.go_to(*one, 1min);
  BOOST_TEST(due.begin_all() == 21);
}

BOOST_AUTO_TEST_CASE(nearly_over_renewals_are_more_in_flight_but_not_all) {
  Due due;
  const lock::HoldPtr one = due.add(8min);
  for (int i = 1; i < 140; ++i) due.add(8min);
  due.in_flight(32);
  due.go_to(*one, 3min);
  BOOST_TEST(due.begin_all() == 0);
  BOOST_TEST((due.asks_again_in() == 2min));
  due.go_to(*one, 1min);
  BOOST_TEST(due.begin_all() == 128 - 32);
}

BOOST_AUTO_TEST_CASE(unanswered_renewal_is_behind_others_until_it_is_urgent) {
  Due due;
  const lock::HoldPtr unanswered = due.add(8min, true);
  for (int i = 0; i < 30; ++i) due.add(1h);
  due.go_to(*unanswered, 2min);
  for (int i = 0; i < 9; ++i) {
    BOOST_TEST((due.begin() != unanswered.get()));
  }
  BOOST_TEST((due.begin() == nullptr));
  due.go_to(*unanswered, 1min + 1ms);
  while (const lock::Hold* const begun = due.begin()) {
    BOOST_TEST((begun != unanswered.get()));
  }
  BOOST_TEST((due.asks_again_in() == 1ms));
  due.go_to(*unanswered, 1min);
  due.in_flight(96);
  BOOST_TEST((due.begin() == nullptr));
  due.in_flight(95);
  BOOST_TEST((due.begin() == unanswered.get()));
}

// --- One call after another --------------------------------------------------

BOOST_AUTO_TEST_CASE(next_call_forgets_how_the_last_one_ended) {
  ScriptedServer server;
  server.script(failure(400, "AccessDeniedException"));
  Party party(at(server));
  BOOST_TEST(party.take() == "again");
  BOOST_TEST(party.fault() == "access_denied");
  BOOST_TEST(party.take(1ns) == "again");
  BOOST_TEST(party.fault() == "timed_out");
  BOOST_TEST(party.answer.message == "the deadline has passed");
}

BOOST_AUTO_TEST_SUITE_END()

// === The threads of one process, first come, first served ====================

namespace {

struct Caller {
  sigv4::CallWaker waker;
  std::atomic<bool> stopped{false};
  Queue::Waiter waiter{waker, &stopped};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(queue)

BOOST_AUTO_TEST_CASE(first_has_the_turn_and_others_stand_in_line) {
  Queue queue;
  Caller first, second, third;
  BOOST_CHECK(queue.enter(first.waiter, true) == Entry::turn);
  BOOST_CHECK(queue.enter(second.waiter, true) == Entry::line);
  BOOST_CHECK(queue.enter(third.waiter, true) == Entry::line);
  BOOST_TEST(queue.has_turn(first.waiter));

  queue.leave(first.waiter);
  BOOST_TEST(queue.has_turn(second.waiter));
  BOOST_TEST(second.waker.woken());
  BOOST_TEST(!queue.has_turn(third.waiter));
  BOOST_TEST(!third.waker.woken());

  queue.leave(second.waiter);
  BOOST_TEST(queue.has_turn(third.waiter));
  queue.leave(third.waiter);
  BOOST_CHECK(queue.enter(first.waiter, false) == Entry::turn);
}

BOOST_AUTO_TEST_CASE(turn_that_was_kept_passes_only_when_told) {
  Queue queue;
  Caller first, second;
  queue.enter(first.waiter, true);
  BOOST_TEST(!queue.held_by_this_thread());
  queue.become_holder();
  BOOST_TEST(queue.held_by_this_thread());
  std::thread([&] { BOOST_TEST(!queue.held_by_this_thread()); }).join();
  BOOST_CHECK(queue.enter(second.waiter, true) == Entry::line);
  BOOST_TEST(!queue.has_turn(second.waiter));

  std::thread([&] { queue.begin_release(); }).join();
  BOOST_TEST(!queue.held_by_this_thread());
  BOOST_TEST(!queue.has_turn(second.waiter));
  std::thread([&] { queue.end_release(); }).join();
  BOOST_TEST(!queue.held_by_this_thread());
  BOOST_TEST(queue.has_turn(second.waiter));
}

BOOST_AUTO_TEST_CASE(cancel_is_for_those_who_wait_now) {
  Queue queue;
  Caller trying, waiting, later;
  queue.enter(trying.waiter, true);
  queue.enter(waiting.waiter, true);
  queue.cancel();
  BOOST_TEST(trying.waiter.cancelled());
  BOOST_TEST(waiting.waiter.cancelled());
  BOOST_TEST(trying.waker.woken());
  BOOST_TEST(waiting.waker.woken());
  queue.leave(trying.waiter);
  queue.leave(waiting.waiter);
  BOOST_CHECK(queue.enter(later.waiter, true) == Entry::turn);
  BOOST_TEST(!later.waiter.cancelled());
}

BOOST_AUTO_TEST_CASE(stopped_call_alone_is_cancelled) {
  Queue queue;
  Caller trying, waiting;
  queue.enter(trying.waiter, true);
  queue.enter(waiting.waiter, true);
  waiting.stopped = true;
  queue.cancel(&waiting.stopped);
  BOOST_TEST(waiting.waiter.cancelled());
  BOOST_TEST(waiting.waker.woken());
  BOOST_TEST(!trying.waiter.cancelled());
  BOOST_TEST(!trying.waker.woken());
}

BOOST_AUTO_TEST_CASE(call_that_was_stopped_before_it_waits_is_refused) {
  Queue queue;
  Caller late;
  late.stopped = true;
  queue.cancel(&late.stopped);
  BOOST_CHECK(queue.enter(late.waiter, true) == Entry::ended);
  BOOST_TEST(late.waiter.cancelled());
}

BOOST_AUTO_TEST_CASE(closing_wakes_who_waits_and_lets_nobody_begin) {
  Waits waits;
  const Waits::One first(waits), second(waits);
  BOOST_TEST(!waits.closed());
  waits.close();
  BOOST_TEST(waits.closed());
  BOOST_TEST(first.waker().woken());
  BOOST_TEST(second.waker().woken());
  const Waits::One late(waits);
  BOOST_TEST(!late.is_registered());
}

BOOST_AUTO_TEST_SUITE_END()

// === Whether a failed call is tried again, and when ==========================

namespace {

constexpr Fault kTransient[] = {
    Fault::unreachable, Fault::disconnected,   Fault::timed_out,
    Fault::throttled,   Fault::server_failure, Fault::conflict,
    Fault::bad_answer,  Fault::skewed_time,
};
constexpr Fault kFinal[] = {
    Fault::no_keys,        Fault::bad_keys,        Fault::expired_keys,
    Fault::access_denied,  Fault::no_table,        Fault::bad_request,
    Fault::unknown_action, Fault::bad_certificate, Fault::table_in_use,
    Fault::wrong_key,
};

Answer failed(Fault fault, milliseconds retry_after = 0ms) {
  Answer answer;
  answer.fault = fault;
  answer.retry_after = retry_after;
  return answer;
}

void spend(RetryBudget& budget) { BOOST_REQUIRE(budget.draw(500)); }

struct Spread {
  nanoseconds shortest = nanoseconds::max();
  nanoseconds longest = nanoseconds::min();
};

// The delays after failure number `attempt`, counted from 0, in 1000 runs.
Spread delays_at(int attempt, Fault fault) {
  Spread spread;
  for (int run = 0; run < 1000; ++run) {
    RetryBudget budget;
    Retry retry(budget, Urgency::urgent);
    nanoseconds delay(0);
    for (int i = 0; i <= attempt; ++i) delay = *retry.after(failed(fault));
    spread.shortest = std::min(spread.shortest, delay);
    spread.longest = std::max(spread.longest, delay);
  }
  return spread;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(retry_of_a_call)

BOOST_AUTO_TEST_CASE(transient_faults_are_retried_final_ones_never) {
  for (const Fault fault : kTransient) {
    RetryBudget budget;
    BOOST_TEST_CONTEXT(name_of(fault)) {
      BOOST_TEST(is_transient(fault));
      BOOST_TEST(
          Retry(budget, Urgency::can_wait).after(failed(fault)).has_value());
    }
  }
  for (const Fault fault : kFinal) {
    RetryBudget budget;
    BOOST_TEST_CONTEXT(name_of(fault)) {
      BOOST_TEST(!is_transient(fault));
      for (const Urgency urgency : {Urgency::can_wait, Urgency::urgent}) {
        BOOST_TEST(
            !Retry(budget, urgency).after(failed(fault, 1s)).has_value());
      }
      BOOST_TEST(budget.tokens() == 500);  // They cost nothing.
    }
  }
  for (const Fault fault :
       {Fault::none, Fault::condition_failed, Fault::cancelled}) {
    BOOST_TEST(!is_transient(fault));
  }
}

BOOST_AUTO_TEST_CASE(pause_doubles_up_to_the_longest_and_from_the_first_again) {
  const double least_share = 0, greatest_share = 1 - 0x1p-53;
  Backoff backoff;
  const Backoff::Limits limits{nanoseconds(10), nanoseconds(39), 0.5};
  for (const int bound : {10, 20, 39, 39}) {
    BOOST_TEST(backoff.next(limits, greatest_share).count() == bound);
  }
  BOOST_TEST(backoff.next(limits, least_share).count() == 19);
  backoff.reset();
  BOOST_TEST(backoff.next(limits, least_share).count() == 5);
  // The bound counts the failures, whatever the limits were then.
  const Backoff::Limits other{nanoseconds(100), nanoseconds(1000)};
  BOOST_TEST(backoff.next(other, greatest_share).count() == 200);
}

BOOST_AUTO_TEST_CASE(throttled_delay_doubles_from_1_s_to_5_s) {
  const seconds bounds[] = {1s, 2s, 4s, 5s, 5s};
  for (int attempt = 0; attempt < 5; ++attempt) {
    BOOST_TEST_CONTEXT("attempt " << attempt) {
      const Spread spread = delays_at(attempt, Fault::throttled);
      const nanoseconds bound = bounds[attempt];
      BOOST_TEST((spread.longest <= bound));
      BOOST_TEST((spread.longest > bound * 9 / 10));
      BOOST_TEST((spread.shortest < bound / 10));
    }
  }
}

namespace {

// Whether the delay is that of an empty budget.
bool is_held_back(std::optional<nanoseconds> delay) {
  return delay && *delay >= 2500ms && *delay <= 5s;
}

}  // namespace

// The delay is random.  Else all mutexes of a table would retry at once.
BOOST_AUTO_TEST_CASE(empty_budget_delays_calls_that_can_wait_by_up_to_5_s) {
  RetryBudget budget;
  spend(budget);
  Retry retry(budget, Urgency::can_wait);
  nanoseconds shortest = 5s, longest(0);
  for (int i = 0; i < 200; ++i) {
    for (const Fault fault : {Fault::unreachable, Fault::throttled}) {
      const auto delay = retry.after(failed(fault));
      BOOST_TEST_REQUIRE(is_held_back(delay));
      shortest = std::min(shortest, *delay);
      longest = std::max(longest, *delay);
    }
  }
  BOOST_TEST((shortest < 2750ms));
  BOOST_TEST((longest > 4750ms));
}

BOOST_AUTO_TEST_CASE(retry_costs_5_a_timeout_10_and_success_gives_it_back) {
  RetryBudget budget;
  Retry retry(budget, Urgency::can_wait);
  retry.after(failed(Fault::throttled));
  BOOST_TEST(budget.tokens() == 495);
  retry.after(failed(Fault::timed_out));
  BOOST_TEST(budget.tokens() == 485);
  retry.success();  // Gives back what the last retry has cost.
  BOOST_TEST(budget.tokens() == 495);
  retry.success();
  BOOST_TEST(budget.tokens() == 496);
  for (int i = 0; i < 9; ++i) retry.success();
  BOOST_TEST(budget.tokens() == 500);
  // What cannot be paid costs nothing.
  BOOST_TEST(budget.draw(496));
  retry.after(failed(Fault::throttled));
  BOOST_TEST(budget.tokens() == 4);
}

// A renewal that waits for long between two tries would lose its lease.
BOOST_AUTO_TEST_CASE(renewals_and_releases_are_retried_in_the_time_left) {
  for (const auto& [call, fault, part] :
       {std::tuple(Call::renew, Fault::throttled, 8),
        std::tuple(Call::renew, Fault::server_failure, 2),
        std::tuple(Call::release, Fault::throttled, 2)}) {
    RetryBudget budget;
    lock::Series series(budget, call);
    const auto asked = failed(fault, 1h);
    BOOST_TEST((series.next_delay(asked, 8s) == nanoseconds(8s) / part));
    BOOST_TEST((series.next_delay(asked, 1ms) == 5ms));
    BOOST_TEST((series.next_delay(asked, 24h * 366).value_or(0ms) <= 10s));
  }
}

// Contention, as TransactionConflictException: others write the same item.
BOOST_AUTO_TEST_CASE(contention_costs_nothing_and_is_not_held_back) {
  RetryBudget budget;
  for (int run = 0; run < 1000; ++run) {
    Retry retry(budget, Urgency::can_wait);
    const auto delay = retry.after(failed(Fault::conflict));
    BOOST_TEST_REQUIRE((delay && *delay <= 25ms));
  }
  BOOST_TEST(budget.tokens() == 500);
  spend(budget);
  Retry retry(budget, Urgency::can_wait);
  const auto delay = retry.after(failed(Fault::conflict));
  BOOST_TEST((delay && *delay <= 25ms));
  BOOST_TEST(!retry.held_back());
  // If it lasts, the delay still grows.
  const Spread tenth = delays_at(9, Fault::conflict);
  BOOST_TEST((tenth.longest <= 5s));
  BOOST_TEST((tenth.longest > 4500ms));
}

BOOST_AUTO_TEST_CASE(empty_budget_never_delays_urgent_calls) {
  for (int run = 0; run < 50; ++run) {
    RetryBudget budget;
    spend(budget);
    Retry retry(budget, Urgency::urgent);
    const auto delay = retry.after(failed(Fault::unreachable));
    BOOST_TEST((delay && *delay <= 25ms));
    BOOST_TEST(budget.tokens() == 0);
  }
}

BOOST_AUTO_TEST_CASE(retry_after_is_waited_for_but_at_most_5_s_more) {
  for (int run = 0; run < 200; ++run) {
    RetryBudget budget;
    const auto delay = [&](milliseconds asked) {
      return *Retry(budget, Urgency::urgent)
                  .after(failed(Fault::server_failure, asked));
    };
    BOOST_TEST((delay(0ms) <= 25ms));
    // The longer of what is asked for and the usual random delay.
    const nanoseconds tiny = delay(5ms);
    BOOST_TEST((tiny >= 5ms && tiny <= 25ms));
    BOOST_TEST((delay(700ms) == 700ms));
    BOOST_TEST((delay(5s) == 5s));
    const nanoseconds long_one = delay(std::chrono::hours(1));
    BOOST_TEST((long_one >= 5s));
    BOOST_TEST((long_one <= 5s + 25ms));
  }
}

BOOST_AUTO_TEST_CASE(skewed_time_is_corrected_at_once_for_free_and_once) {
  RetryBudget budget;
  Retry retry(budget, Urgency::can_wait);
  BOOST_TEST((retry.after(failed(Fault::skewed_time)) == nanoseconds(0)));
  BOOST_TEST(budget.tokens() == 500);
  BOOST_TEST(!retry.after(failed(Fault::skewed_time)).has_value());
  // Other failures between the two change nothing.
  Retry other(budget, Urgency::can_wait);
  other.after(failed(Fault::skewed_time));
  other.after(failed(Fault::server_failure));
  BOOST_TEST(!other.after(failed(Fault::skewed_time)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

// === How fast renewals follow each other =====================================

namespace {

const BootTime kStart(1h);

// Many renewals that are all due at kStart.
struct Backlog {
  // Begins them all.  Returns how long after kStart the last one begins.
  nanoseconds begin(int renewals) {
    for (int i = 0; i < renewals; ++i) {
      now = std::max(now, rate.next());
      if (now == kStart) ++at_once;
      rate.count(now, needed);
    }
    return now - kStart;
  }

  double needed;  // Renewals per second.
  RenewalRate rate{};
  BootTime now = kStart;
  int at_once = 0;
};

bool is_about(nanoseconds time, milliseconds expected) {
  return time > expected - 1ms && time < expected + 1ms;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(renewal_rate)

BOOST_AUTO_TEST_CASE(renewals_that_have_piled_up_come_little_by_little) {
  Backlog many{100};  // At 225 a second.
  BOOST_TEST(is_about(many.begin(9 + 225), 1s));
  BOOST_TEST(many.at_once == 9);
  Backlog few{1};  // At 100 a second, the least.
  BOOST_TEST(is_about(few.begin(9 + 100), 1s));
  BOOST_TEST(few.at_once == 9);
}

BOOST_AUTO_TEST_CASE(renewal_that_has_failed_does_not_count) {
  Backlog x{100};
  x.begin(100);
  const nanoseconds last = x.begin(1);
  x.rate.uncount(x.needed);
  BOOST_TEST((x.begin(1) == last));
  BOOST_TEST((x.begin(1) > last));
}

BOOST_AUTO_TEST_SUITE_END()
