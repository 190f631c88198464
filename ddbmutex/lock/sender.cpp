// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A round of the sender collects what is due, begins its requests, waits until
// an answer has come or something else is due, and acts on the answers.
#include "sender.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "../../sigv4/http.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/waiting.hpp"
#include "../dynamodb/ask.hpp"
#include "requests.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;
using Guard = Holds::Guard;
using Phase = Hold::Phase;

namespace {

// So many abandoned takes may stay in flight.
constexpr int kMostAwaited = 16;

// After a final error a renewal is retried this often per lease: keys and
// permissions come back.
constexpr int kFinalRetriesPerLease = 8;

// A renewal is sent early, together with one that is due now, if it would be
// due within this part of the time between renewals.  So a thread with many
// leases wakes up less often.  Retries are not sent early.
constexpr int kSoonPart = 128;

// The pause before a retry after memory has run out.
constexpr std::chrono::milliseconds kMemoryPause{50};

bool is_releasing(const Hold& hold) {
  return hold.phase == Phase::releasing || hold.phase == Phase::releasing_again;
}

Answer unsent(const Errand& errand, Fault why) {
  Answer answer;
  answer.action = errand.request.action;
  answer.fault = why;
  return answer;
}

// Of an errand or a take: whether its caller has gone.
bool is_abandoned(const Flight& flight) {
  if (flight.errand != nullptr) return flight.errand->bell == nullptr;
  return flight.hold != nullptr && flight.call == Call::take &&
         flight.hold->phase != Phase::taking;
}

// Whether the end of the thread waits for its answer.
bool delays_the_end(const Flight& flight) {
  if (flight.errand != nullptr) return true;
  return flight.hold != nullptr && flight.call != Call::renew &&
         flight.hold->phase != Phase::releasing_again;
}

// What the answer to a release means to whoever called for it.
Verdict verdict_of_release(const Hold& hold) {
  const Fault fault = hold.answer.fault;
  // A refused release stores none of the changes that it carries.  They are
  // lost, unless an earlier release without an answer has stored them.
  const bool stores_all = fault == Fault::none || !hold.lease.carries() ||
                          hold.lease.may_be_released();
  if (hold.verdict == Verdict::released && !stores_all) return Verdict::expired;
  // The table was made anew with another key.  That is an error, no loss.
  return fault == Fault::wrong_key ? Verdict::again : hold.verdict;
}

}  // namespace

// A round in which memory runs out is repeated.
void Sender::run() {
  while (!ended_) {
    if (!sigv4::try_with_memory([&] { send_round(); })) pause_for_memory();
  }
  end_all();
}

void Sender::send_round() {
  begin_errands(begin_round());
  while (begin_next()) {
  }
  const BootTime until = plan_sleep();
  if (ended_) return;
  await_any(until);
  conclude_all();
}

void Sender::pause_for_memory() {
  sigv4::wait_until(BootClock::now() + kMemoryPause, nullptr);
}

// Tells all calls that still wait, and closes all connections.
void Sender::end_all() {
  Errands left;
  {
    const Guard guard(holds_.mutex);
    left.swap(queued_);
    for (const auto& [key, hold] : holds_.to_report) {
      if (hold->phase == Phase::taking && hold->wait != nullptr) {
        abandon(*hold);
      }
      if (is_releasing(*hold)) end_release(*hold);
      hold->told.notify_all();
    }
    for (const Flight& flight : flights_) {
      if (flight.hold != nullptr) flight.hold->flight = nullptr;
    }
  }
  for (const auto& errand : left) {
    answer_errand(*errand, unsent(*errand, Fault::cancelled));
  }
  for (Flight& flight : flights_) {
    if (flight.errand == nullptr) continue;
    answer_errand(*flight.errand,
                  holds_.client.finish(std::move(flight.pending),
                                       sigv4::Transport::cancelled));
  }
  flights_.clear();
  holds_.client.close_connections();
}

// Counts what is in flight, and ends requests that nobody needs any more.
// Returns the errands that begin in this round.
Errands Sender::begin_round() {
  const Guard guard(holds_.mutex);
  const BootTime now = BootClock::now();
  holds_.sender.set_looking(now);
  std::size_t renewals = 0, releases = 0;
  int awaited = 0;
  for (Flight& flight : flights_) {
    const bool is_taking =
        flight.hold != nullptr && flight.hold->phase == Phase::taking;
    if (holds_.stopping && is_taking) abandon(*flight.hold);
    if (is_abandoned(flight)) {
      flight.answer_by = kNever;
      const bool stays = flight.may_be_applied() && ++awaited <= kMostAwaited;
      if (!stays) flight.timeout_at = now;
    }
    if (flight.call == Call::renew) ++renewals;  // Also one for nobody.
    if (flight.call == Call::release) ++releases;
  }
  holds_.lines.begin_round(renewals, releases);
  queued_.remove_if([](const auto& errand) { return errand->bell == nullptr; });
  Errands begin;
  for (int i = 0; i < kBegunInARound && !queued_.empty(); ++i) {
    begin.splice(begin.end(), queued_, queued_.begin());
  }
  return begin;
}

// --- What is due -------------------------------------------------------------

// Moves what is due to its line, and returns the next request that may begin.
Lines::Due Sender::line_up_next(BootTime now) {
  line_up(now);
  for (;;) {
    const Lines::Due due = holds_.lines.due(now);
    const Hold* const hold = due.hold;
    const bool is_in_flight = hold != nullptr && hold->flight != nullptr &&
                              hold->flight->call == hold->call();
    if (!is_in_flight) return due;
    holds_.park(*due.hold);  // The answer plans the next one.
  }
}

// At shutdown, everything is due but renewals.
void Sender::line_up(BootTime now) {
  Order& planned = holds_.to_send;
  const bool any_due = next_in(planned) <= now;
  while (next_in(planned) != kNever) {
    Hold& hold = *planned.begin()->second;
    const bool renews = hold.phase == Phase::held;
    const bool is_fresh = renews && hold.wait == nullptr && !hold.failing();
    const nanoseconds soon = any_due && is_fresh
                                 ? hold.settings->renew_after / kSoonPart
                                 : nanoseconds::zero();
    if (holds_.stopping && renews) {
      holds_.park(hold);
    } else if (holds_.stopping || next_in(planned) - soon <= now) {
      holds_.lines.join(hold, now);
    } else {
      return;
    }
  }
}

// Returns the time of the next round.  At shutdown it sets ended_ once no
// errand, take or release is due or in flight, or at stop_by.
BootTime Sender::plan_sleep() {
  const Guard guard(holds_.mutex);
  const BootTime now = BootClock::now();
  const Lines::Due next = line_up_next(now);
  const bool any_due = next.hold != nullptr || !queued_.empty();
  BootTime until = std::min(next.ask_at, next_in(holds_.to_send));
  // Keeps an earlier time to wake up, even if nothing is due then any more.
  // Else each call that plans a request before `until` would wake this thread.
  Sleeper& sleeper = holds_.sender;
  if (sleeper.sleeps_until() > now) {
    until = std::min(until, sleeper.sleeps_until());
  }
  if (any_due) until = now;
  sleeper.set_sleeps_until(until);
  if (!holds_.stopping) return until;
  const bool goes_on =
      any_due || holds_.lines.has_release_or_take() ||
      std::any_of(flights_.begin(), flights_.end(), delays_the_end);
  ended_ = !goes_on || now >= holds_.stop_by;
  return std::min(until, holds_.stop_by);
}

// --- Requests begin ----------------------------------------------------------

// If memory runs out for an errand, that is its answer.
void Sender::begin_errands(Errands&& errands) {
  for (const auto& errand : errands) {
    const bool had_memory = sigv4::try_with_memory([&] {
      Flights one(1);
      Flight& flight = one.front();
      flight.pending = holds_.client.start(errand->request, BootClock::now());
      flight.timeout_at = errand->request.deadline;
      flight.errand = errand;
      flights_.splice(flights_.end(), one);
    });
    if (had_memory) continue;
    answer_errand(*errand, unsent(*errand, Fault::no_memory));
  }
}

// Begins the next request that is due, or ends what it was for.  Returns
// whether to call it again: not if nothing is due, or if memory runs out.
bool Sender::begin_next() {
  {
    // Without this, each round would prepare a request in vain.
    const Guard guard(holds_.mutex);
    if (line_up_next(BootClock::now()).hold == nullptr) return false;
  }
  dynamodb::Client& client = holds_.client;
  Flights one;
  const bool had_memory = sigv4::try_with_memory([&] {
    Flight& flight = one.emplace_back();
    flight.pending = client.prepare(BootClock::now());
    Request request;
    if (!stamp_next(flight, request)) return;
    const MutexSettings& settings = *flight.hold->settings;
    const RowTarget& place = settings.place;
    write_request(place, request, flight.pending->body());
    const bool takes = flight.call == Call::take;
    if (takes) client.answer_if_table_key_is_wrong(*flight.pending);
    // A refused renewal or release is answered with the whole row, which may be
    // somebody else's and large.  Only its record is needed.
    client.begin(
        *flight.pending, action_of(flight.verb, place.policy),
        flight.stamped_at, nullptr,
        wanted_of(*place.format, takes && place.policy.takes_by_update()));
    sigv4::Exchange& exchange = flight.pending->exchange();
    exchange.connect_within(settings.request_timeout);
    // A process that stood still meanwhile sends no old stamp.
    exchange.send_by(flight.ends_at());
    flights_.splice(flights_.end(), one);
  });
  if (had_memory) return true;
  // First the pause: what becomes due meanwhile goes before this one.
  pause_for_memory();
  postpone(one.empty() ? nullptr : &one.front());
  return false;
}

// Stamps the next request that is due.  Returns false if it is not to be sent,
// or if none is due any more.  Reads the clock after it has locked the mutex,
// because that may take long.
bool Sender::stamp_next(Flight& flight, Request& request) {
  const Guard guard(holds_.mutex);
  const BootTime now = BootClock::now();
  Hold* const hold = line_up_next(now).hold;
  if (hold == nullptr) return false;
  holds_.lose_if_ended(*hold, now);
  if (!may_begin(*hold, flight, now)) {
    end_unsent(*hold);
    return false;
  }
  request = hold->stamp(flight, now);
  flight.counted = holds_.lines.count(*hold, now);
  holds_.park(*hold);
  // A renewal from before unlock(): its answer is ignored.
  if (hold->flight != nullptr) hold->flight->hold = nullptr;
  hold->flight = &flight;
  flight.hold = hold->shared_from_this();
  if (hold->phase == Phase::held) holds_.publish(*hold);
  return true;
}

bool Sender::may_begin(const Hold& hold, const Flight& flight,
                       BootTime now) const {
  // Nobody waits for the rest at shutdown.
  if (holds_.stopping && hold.phase != Phase::releasing) return false;
  switch (hold.phase) {
    case Phase::taking:
      // Without keys a take is begun even after its deadline.  It is never
      // sent, but its answer says which keys are missing.
      return now < hold.until ||
             (!flight.pending->will_be_sent() && !hold.failing());
    case Phase::held:
      return hold.wait != nullptr || hold.is_renewed_at(now);
    case Phase::releasing:
    case Phase::releasing_again:
      return now < hold.until;
    case Phase::lost:
    case Phase::over:
      return false;
  }
  return false;
}

// No request is sent for it.
void Sender::end_unsent(Hold& hold) {
  holds_.park(hold);
  if (hold.phase == Phase::taking) {
    hold.wait->no_request_failed = !hold.failing();  // Before fail().
    if (hold.answer.fault == Fault::none) {
      hold.fail(Fault::timed_out, "the deadline has passed");
    } else if (hold.answer.fault == Fault::skewed_time) {
      // Only the time of the signature was wrong.  It is no error of the keys.
      hold.fail(Fault::timed_out, dynamodb::kNoTimeToSignAgain);
    }
    tell_take(hold)->ring();
  } else if (is_releasing(hold)) {
    end_release(hold);
    hold.told.notify_all();
    holds_.end(hold);
  }
}

// Memory has run out for this request.  If none was stamped yet, the next that
// is due is postponed.  `flight` may be null.
void Sender::postpone(const Flight* flight) {
  const Guard guard(holds_.mutex);
  const HoldPtr stamped = flight != nullptr ? flight->hold : nullptr;
  if (stamped != nullptr) {
    if (flight->counted) holds_.lines.uncount_renewal();
    stamped->flight = nullptr;
    // It was lost and unlocked meanwhile.
    if (stamped->phase == Phase::over) return;
    // If the lock was unlocked meanwhile, its stamp may stay: a release is
    // conditional on the uuid only, and on no version.
    if (flight->call == stamped->call()) stamped->unstamp(flight->stamped_at);
    retry_with_memory(*stamped);
    return;
  }
  Hold* const next = line_up_next(BootClock::now()).hold;
  if (next != nullptr) retry_with_memory(*next);
}

void Sender::retry_with_memory(Hold& hold) {
  const BootTime now = BootClock::now();
  holds_.lose_if_ended(hold, now);
  const bool is_late = hold.phase != Phase::held && now >= hold.until;
  const bool none_to_release =
      is_releasing(hold) && !hold.was_granted() && !hold.needs_release();
  if (hold.phase == Phase::lost || is_late || none_to_release) {
    end_unsent(hold);
    return;
  }
  if (hold.phase == Phase::taking) {
    holds_.park(hold);
    hold.fail(Fault::no_memory, "");
    holds_.note_outage(hold);
    const sigv4::BellPtr bell = retry_take(hold);
    if (bell != nullptr) bell->ring();
    return;
  }
  holds_.send_at(hold, now + kMemoryPause);
  if (hold.phase == Phase::held) {
    holds_.publish(hold);
    Result result;
    result.answer.fault = Fault::no_memory;
    holds_.tell(hold, std::move(result));
  }
}

// --- Requests end ------------------------------------------------------------

// Waits until an answer has come, or something else is due.
void Sender::await_any(BootTime until) {
  std::vector<sigv4::Exchange*> exchanges;
  exchanges.reserve(flights_.size());
  for (const Flight& flight : flights_) {
    if (!flight.under_way()) return;  // It ended before it was sent.
    until = std::min(until, flight.ends_at());
    exchanges.push_back(&flight.pending->exchange());
  }
  sigv4::Waker& waker = holds_.sender.waker();
  if (exchanges.empty()) {
    sigv4::wait_until(until, &waker);
  } else {
    sigv4::drive(exchanges.data(), exchanges.size(), until, &waker);
  }
  waker.clear();
}

// A take that may be applied stays in flight when its call gives up: only the
// answer says for certain whether there is something to release.
void Sender::conclude_all() {
  const BootTime now = BootClock::now();
  for (auto at = flights_.begin(); at != flights_.end();) {
    Flight& flight = *at;
    const bool call_leaves = flight.under_way() && now >= flight.answer_by;
    const bool ends = !flight.under_way() || now >= flight.timeout_at ||
                      (call_leaves && !flight.may_be_applied());
    if (ends) {
      conclude(flight, call_leaves);
      at = flights_.erase(at);
      continue;
    }
    ++at;
    if (!call_leaves) continue;
    const Guard guard(holds_.mutex);
    if (flight.hold->phase == Phase::taking) abandon(*flight.hold);
  }
}

// Needs no memory.
void Sender::conclude(Flight& flight, bool call_leaves) {
  Answer answer = holds_.client.finish(std::move(flight.pending),
                                       sigv4::Transport::timed_out);
  if (flight.errand != nullptr) {
    answer_errand(*flight.errand, std::move(answer));
  }
  const bool failed = !answered(answer.fault);
  if (flight.counted && failed) {
    const Guard guard(holds_.mutex);
    holds_.lines.uncount_renewal();
  }
  if (flight.hold == nullptr) return;
  Hold& hold = *flight.hold;
  Reply reply = reply_to(flight.verb, answer, *hold.settings->place.format);
  sigv4::BellPtr bell;
  {
    const Guard guard(holds_.mutex);
    holds_.sender.set_awake();
    hold.flight = nullptr;
    if (flight.call == Call::renew && hold.phase != Phase::held) return;
    if (call_leaves && hold.phase == Phase::taking) {
      hold.wait->no_request_failed = !hold.failing();  // Before receive().
    }
    hold.receive(flight, std::move(answer), std::move(reply));
    switch (flight.call) {
      case Call::take:
        bell = on_take(hold, call_leaves);
        break;
      case Call::renew:
        on_renewal(hold, flight.stamped_at);
        break;
      case Call::release:
        on_release(hold, flight.stamped_at);
        break;
    }
  }
  hold.told.notify_all();
  if (bell != nullptr) bell->ring();
}

void Sender::answer_errand(Errand& errand, Answer&& answer) {
  sigv4::BellPtr bell;
  {
    const Guard guard(holds_.mutex);
    errand.answer = std::move(answer);
    errand.over = true;
    bell = std::move(errand.bell);
  }
  if (bell != nullptr) bell->ring();
}

// Tells a take's call that there is no answer yet.  Its request stays in
// flight.
void Sender::abandon(Hold& hold) {
  hold.wait->no_request_failed = !hold.failing();  // Before fail().
  hold.fail(Fault::timed_out, "no answer yet");
  const sigv4::BellPtr bell = tell_take(hold);
  holds_.give_up(hold);
  bell->ring();
}

// Ends the wait of a take's call.  Returns its bell, to be rung: best without
// the mutex, which the call locks next.  Moves the answer out of the Hold:
// after that only its fault is valid.
sigv4::BellPtr Sender::tell_take(Hold& hold) {
  Wait& wait = *hold.wait;
  hold.wait = nullptr;
  wait.result.verdict = hold.verdict;
  wait.result.answer = std::move(hold.answer);
  sigv4::BellPtr bell = wait.bell;
  wait.over = true;  // Once the mutex is unlocked, `wait` may be gone.
  return bell;
}

// --- An answer has come ------------------------------------------------------

sigv4::BellPtr Sender::on_take(Hold& hold, bool call_leaves) {
  if (hold.phase != Phase::taking) {
    holds_.release_if_needed(hold);
    return nullptr;
  }
  if (call_leaves) return tell_take(hold);
  holds_.note_outage(hold);
  return hold.verdict == Verdict::again ? retry_take(hold) : tell_take(hold);
}

// Plans the next request of a take, or ends it.
sigv4::BellPtr Sender::retry_take(Hold& hold) {
  Outage& outage = hold.settings->outage;
  const BootTime retry_until =
      Holds::patience_ends(*hold.settings, hold.wait->patient_since);
  const Hold::Next next = hold.plan_next(retry_until);
  switch (next.is) {
    case Hold::Next::Is::never:
      return tell_take(hold);
    case Hold::Next::Is::too_late:
      // It waits for the rest of its time.  Then may_begin() is false.
      if (hold.failing()) hold.until = std::min(hold.until, retry_until);
      holds_.send_at(hold, hold.until);
      break;
    case Hold::Next::Is::due:
      if (hold.wait->logs_outage && outage.since &&
          is_transient(hold.answer.fault)) {
        holds_.client.warn_of_failing(hold.answer, *outage.since, next.at,
                                      std::min(retry_until, hold.until),
                                      outage.warned);
      }
      holds_.send_at(hold, next.at);
      break;
  }
  return nullptr;
}

void Sender::on_renewal(Hold& hold, BootTime stamped_at) {
  if (hold.verdict != Verdict::ours && hold.verdict != Verdict::again) {
    return holds_.lose(hold, hold.verdict);
  }
  if (hold.verdict == Verdict::ours) hold.danger_reported = false;
  holds_.publish(hold);
  if (hold.wait != nullptr && stamped_at < hold.wait->begun) {
    // The call waits for its own request, which has its changes.
    hold.series.reset();
    return holds_.send_at(hold, BootClock::now());
  }
  // The answer may also show that only an earlier renewal was applied, without
  // the call's changes.
  const bool lacks_changes =
      hold.wait != nullptr && hold.lease.counted_from() < hold.wait->begun;
  if (hold.verdict == Verdict::again || lacks_changes) {
    return retry_renewal(hold);
  }
  Result done;
  done.verdict = Verdict::ours;
  holds_.tell(hold, std::move(done));
  hold.series.reset();
  holds_.resume_renewals(hold);
}

void Sender::retry_renewal(Hold& hold) {
  const Hold::Next next = hold.plan_next();
  const bool tells = hold.wait != nullptr && next.is != Hold::Next::Is::due;
  if (tells) {
    Result failed;
    hold.answer.copy_fault_to(failed.answer);
    holds_.tell(hold, std::move(failed));
  }
  // A call has begun the series, and has left: only calls have a deadline.
  const bool is_left = hold.wait == nullptr && hold.series->until() != kNever;
  if (tells || is_left) return holds_.resume_renewals(hold);
  const BootTime when =
      next.is != Hold::Next::Is::never
          ? next.at
          : BootClock::now() + hold.settings->ttl / kFinalRetriesPerLease;
  holds_.send_at(hold, std::min(when, hold.lease.claim_end()));
}

void Sender::on_release(Hold& hold, BootTime stamped_at) {
  if (hold.verdict == Verdict::again) {
    const bool last_try =
        holds_.stopping && stamped_at >= holds_.stopping_since;
    const Hold::Next next = hold.plan_next();
    if (next.is == Hold::Next::Is::due && !last_try) {
      tell_release_failed(hold);
      return holds_.send_at(hold, next.at);
    }
    end_release(hold);
    return holds_.end(hold);
  }
  if (hold.was_granted() && is_loss(hold.verdict)) {
    holds_.report(hold, hold.verdict);
  }
  end_release(hold);
  // DynamoDB may yet apply a take that it has not answered, even after this
  // release, which found nothing.  So a second release is sent near the end of
  // the lease that the take would get.
  const bool may_come_yet = !hold.was_granted() && hold.take_unknown &&
                            hold.phase == Phase::releasing &&
                            hold.answer.fault != Fault::none;
  const BootTime when = hold.until - hold.settings->request_timeout;
  if (!may_come_yet || when <= BootClock::now()) return holds_.end(hold);
  holds_.release_again(hold, when);
}

// Tells the call that waits for the release why it has failed so far.
void Sender::tell_release_failed(Hold& hold) {
  if (hold.wait == nullptr || !hold.failing()) return;
  Result& result = hold.wait->result;
  if (!is_loss(result.verdict)) hold.answer.copy_fault_to(result.answer);
}

// Ends the wait of the call that waits for the release.
void Sender::end_release(Hold& hold) {
  tell_release_failed(hold);
  Wait* const wait = hold.wait;
  if (wait == nullptr) return;
  Result& result = wait->result;
  if (!is_loss(result.verdict)) {
    result.verdict = verdict_of_release(hold);
    if (is_loss(result.verdict)) result.lost_at = BootClock::now();
  }
  wait->host_waits = hold.lease.waited_for();
  wait->over = true;
  hold.wait = nullptr;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
