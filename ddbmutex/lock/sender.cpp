// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A round of the sender collects what is due, begins its requests, waits until
// an answer has come or something else is due, and acts on the answers.
#include "sender.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/http.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/waiting.hpp"
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

// How many takes that callers abandoned are awaited.
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

// What the answer to a release means to whoever called for it.
Verdict verdict_of_release(const Hold& hold) {
  const Fault fault = hold.answer.fault;
  // If it was refused because the lease was over, its changes are not stored.
  const bool stored =
      fault == Fault::none || hold.outcome_unknown || !hold.lease.carries();
  if (hold.verdict == Verdict::released && !stored) return Verdict::expired;
  return fault == Fault::wrong_key ? Verdict::again : hold.verdict;
}

}  // namespace

// A round in which memory runs out is repeated, with what it had chosen.
void Sender::run() {
  bool goes_on = true;
  while (goes_on) {
    const bool had_memory =
        sigv4::try_with_memory([&] { goes_on = send_round(); });
    if (!had_memory) pause_for_memory();
  }
  end_all();
}

bool Sender::send_round() {
  BootTime next;
  if (!collect(next)) return false;
  begin_errands();
  const Begun begun = begin_all();
  if (begun == Begun::no_memory) pause_for_memory();
  // If some did not begin, others may have room now.
  if (begun != Begun::yes) return true;
  await_any(next);
  conclude_errands();
  conclude_all();
  return true;
}

void Sender::pause_for_memory() {
  sigv4::Waker& waker = holds_.sender.waker();
  sigv4::wait_until(BootClock::now() + kMemoryPause, &waker);
  waker.clear();
}

// Tells all calls that still wait.
void Sender::end_all() {
  {
    const Guard guard(holds_.mutex);
    errands_.splice(errands_.end(), asked_);
    for (const auto& [key, hold] : holds_.to_report) {
      if (hold->phase == Phase::taking && hold->wait != nullptr) {
        abandon(*hold);
      }
      if (is_releasing(*hold)) tell_of_release(*hold, true);
      hold->told.notify_all();
    }
  }
  for (const auto& one : errands_) {
    end_errand(*one, sigv4::Transport::cancelled);
  }
  for (const HoldPtr& hold : in_flight_) hold->flight.reset();
  left_.clear();
  holds_.client.close_connections();
}

// --- What is due -------------------------------------------------------------

// Chooses what is to begin.  Sets `next` to the time of the next round.
// Returns false once the thread is to end: when everything that callers left
// was tried once more, or when the time for that is up.
bool Sender::collect(BootTime& next) {
  const Guard guard(holds_.mutex);
  const BootTime now = BootClock::now();
  const bool worth_waiting = look_at_flights(now);
  line_up(now);
  next = BootTime::max();
  choose(now, next);
  next = std::min(next, next_in(holds_.to_send));
  // The Hold that the thread was woken for may be gone.  Its time is kept even
  // so: the next one is probably due later, and need not wake the thread again.
  Sleeper& sleeper = holds_.sender;
  if (sleeper.sleeps_until() > now) {
    next = std::min(next, sleeper.sleeps_until());
  }
  sleeper.set_sleeps_until(next);
  if (!holds_.stopping) return true;
  next = std::min(next, holds_.stop_by);
  const bool idle = !worth_waiting && chosen_.empty() && errands_.empty() &&
                    asked_.empty() && holds_.lines.idle();
  ended_ = idle || now >= holds_.stop_by;
  return !ended_;
}

// Counts what is in flight, and ends takes that were abandoned, if they are too
// many or cannot have been applied.  Returns whether something is in flight
// that is worth waiting for at shutdown.
bool Sender::look_at_flights(BootTime now) {
  std::size_t renewals = 0, releases = 0;
  int awaited = 0;
  bool worth_waiting = false;
  for (const HoldPtr& hold : in_flight_) {
    Flight& flight = *hold->flight;
    if (flight.call == Call::renew) ++renewals;
    if (flight.call == Call::release) ++releases;
    if (flight.call == Call::take) {
      if (holds_.stopping && hold->phase == Phase::taking) {
        abandon(*hold);
      }
      const bool is_left = hold->phase == Phase::releasing;
      if (is_left) flight.answer_by = BootTime::max();
      if (is_left && (!flight.may_be_applied() || ++awaited > kMostAwaited)) {
        flight.timeout_at = now;
      }
    }
    if (flight.call != Call::renew && hold->phase != Phase::releasing_again) {
      worth_waiting = true;
    }
  }
  holds_.lines.begin_round(renewals, releases);
  return worth_waiting;
}

// At shutdown, all releases are due, and no renewal is.
void Sender::line_up(BootTime now) {
  Order& planned = holds_.to_send;
  const bool any_due = next_in(planned) <= now;
  while (next_in(planned) != BootTime::max()) {
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

void Sender::choose(BootTime now, BootTime& next) {
  for (;;) {
    // First, because without memory the Hold stays in its line.
    chosen_.reserve(chosen_.size() + 1);
    HoldPtr hold = holds_.lines.next(now, holds_.to_send, next);
    if (hold == nullptr) break;
    // The answer to a request in flight plans the next one.
    const bool is_sent = hold->flight && hold->flight->call == hold->call();
    if (!is_sent) chosen_.push_back(std::move(hold));
  }
  asked_.remove_if([](const auto& errand) { return errand->bell == nullptr; });
  for (int i = 0; i < kBegunInARound && !asked_.empty(); ++i) {
    errands_.splice(errands_.end(), asked_, asked_.begin());
  }
  if (!asked_.empty()) next = now;
}

// The caller of a take leaves it in flight.
void Sender::abandon(Hold& hold) {
  Wait& wait = *hold.wait;
  hold.fail(Fault::timed_out, "no answer yet");
  wait.result.answer = std::move(hold.answer);
  wait.end = Wait::End::left;
  holds_.give_up(hold);
  give_back(hold)->ring();
}

// The call goes on.  Whoever calls this rings the bell of that call.
sigv4::BellPtr Sender::give_back(Hold& hold) {
  Wait& wait = *hold.wait;
  hold.wait = nullptr;
  sigv4::BellPtr bell = wait.bell;
  wait.over = true;  // From here on `wait` may be gone.
  return bell;
}

// --- Requests begin ----------------------------------------------------------

// Returns the worst that became of them.
Sender::Begun Sender::begin_all() {
  in_flight_.reserve(in_flight_.size() + chosen_.size());
  left_.reserve(left_.size() + chosen_.size());
  Begun worst = Begun::yes;
  for (const HoldPtr& hold : chosen_) {
    if (hold->flight) leave_renewal(hold);
    const Begun begun = begin(*hold);
    if (begun == Begun::yes) in_flight_.push_back(hold);
    if (begun == Begun::no_memory) retry_with_memory(*hold);
    worst = std::max(worst, begun);
  }
  chosen_.clear();
  return worst;
}

// The lock was unlocked amid a renewal.  The renewal's answer is awaited only
// to keep its connection.
void Sender::leave_renewal(const HoldPtr& hold) {
  left_.push_back(std::move(*hold->flight));
  hold->flight.reset();
  forget_ended();
}

Sender::Begun Sender::begin(Hold& hold) {
  dynamodb::Client& client = holds_.client;
  const RowTarget& place = hold.settings->place;
  Flight flight;
  bool stamped = false;
  const bool had_memory = sigv4::try_with_memory([&] {
    flight.pending = client.prepare(BootClock::now());
    Request request;
    stamped = stamp(hold, flight, request);
    if (!stamped) return;
    write_request(place, request, flight.pending->body());
    const bool takes = flight.call == Call::take;
    if (takes) client.answer_if_table_key_is_wrong(*flight.pending);
    // A refused renewal or release is answered with the whole row, which may be
    // somebody else's and large.  Only its record is needed.
    client.begin(
        *flight.pending, action_of(flight.verb, place.policy),
        flight.stamped_at, nullptr,
        wanted_of(*place.format, takes && place.policy.takes_by_update()));
  });
  if (had_memory && stamped) {
    flight.pending->exchange().connect_within(hold.settings->request_timeout);
    // A process that stood still meanwhile sends no old stamp.
    flight.pending->exchange().send_by(flight.ends_at());
    hold.flight = std::move(flight);
    return Begun::yes;
  }
  flight.pending.reset();
  if (stamped) unstamp(hold, flight);
  return had_memory ? Begun::not_wanted : Begun::no_memory;
}

// Reads the clock after it has locked the mutex, because that may take long.
bool Sender::stamp(Hold& hold, Flight& flight, Request& request) {
  const Guard guard(holds_.mutex);
  const BootTime now = BootClock::now();
  if (!may_begin(hold, flight, now)) {
    refuse(hold);
    return false;
  }
  holds_.park(hold);
  request = hold.stamp(flight, now);
  if (hold.phase == Phase::held) holds_.publish(hold);
  return true;
}

bool Sender::may_begin(Hold& hold, const Flight& flight, BootTime now) {
  const bool stopping = holds_.stopping;
  switch (hold.phase) {
    case Phase::taking:
      // Without keys it is not sent, and its answer says why.
      return !stopping && (now < hold.until || !flight.pending->will_be_sent());
    case Phase::held:
      if (now >= hold.lease.claim_end()) holds_.lose(hold, Verdict::expired);
      return !stopping && hold.phase == Phase::held &&
             (hold.wait != nullptr || hold.is_renewed_at(now));
    case Phase::releasing:
      // The caller of a take may have gone just now.
      return now < hold.until && (!hold.is_doubtful() || hold.needs_release());
    case Phase::releasing_again:
      // At shutdown that is not worth waiting for.
      return now < hold.until && !stopping;
    default:
      return false;
  }
}

void Sender::unstamp(Hold& hold, const Flight& flight) {
  const Guard guard(holds_.mutex);
  const bool is_held = hold.phase == Phase::held;
  if (flight.call == Call::renew && !is_held) return;
  hold.unstamp(flight.stamped_at);
  if (is_held) holds_.publish(hold);
}

// No request is sent for it, or not now.  In the critical section that has
// decided so: a moment later its caller may unlock it or leave.
void Sender::refuse(Hold& hold) {
  if (hold.phase == Phase::taking) {
    hold.wait->end = Wait::End::unsent;
    give_back(hold)->ring();
  } else if (is_releasing(hold)) {
    tell_of_release(hold, true);
    hold.told.notify_all();
    holds_.end(hold);
  }
}

// The request was not sent for lack of memory.  A call that asks for it is
// told; else it is planned anew.
void Sender::retry_with_memory(Hold& hold) {
  const BootTime when = BootClock::now() + kMemoryPause;
  const Guard guard(holds_.mutex);
  if (hold.phase == Phase::taking) {
    hold.fail(Fault::no_memory, "");
    give_back(hold)->ring();
  } else if (is_releasing(hold)) {
    holds_.send_at(hold, when);
  } else if (hold.phase == Phase::held && hold.wait == nullptr) {
    holds_.send_at(hold, std::min(when, hold.lease.claim_end()));
  } else if (hold.phase == Phase::held) {
    Result result;
    result.answer.fault = Fault::no_memory;
    holds_.tell(hold, std::move(result));
    holds_.resume_renewals(hold);
  }
}

// If memory runs out, the call is told.
void Sender::begin_errands() {
  for (const auto& errand : errands_) {
    if (errand->pending != nullptr) continue;
    const bool had_memory = sigv4::try_with_memory([&] {
      errand->pending = holds_.client.start(errand->request, BootClock::now());
    });
    if (!had_memory) errand->answer.fault = Fault::no_memory;
  }
}

// --- Requests end ------------------------------------------------------------

// Waits until an answer has come, or something else is due.
void Sender::await_any(BootTime until) {
  std::vector<sigv4::Exchange*> exchanges;
  exchanges.reserve(in_flight_.size() + errands_.size() + left_.size());
  for (const auto& errand : errands_) {
    if (errand->is_over()) return;
    until = std::min(until, errand->request.deadline);
    exchanges.push_back(&errand->pending->exchange());
  }
  for (const HoldPtr& hold : in_flight_) {
    if (!hold->flight->under_way()) return;  // It ended before it was sent.
    until = std::min(until, hold->flight->ends_at());
    exchanges.push_back(&hold->flight->pending->exchange());
  }
  for (const Flight& flight : left_) {
    until = std::min(until, flight.timeout_at);
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
  for (const HoldPtr& hold : in_flight_) {
    Flight& flight = *hold->flight;
    if (flight.under_way() && now < flight.ends_at()) continue;
    const bool given_up = flight.under_way() && now >= flight.answer_by;
    if (!given_up || !flight.may_be_applied() || now >= flight.timeout_at) {
      conclude(*hold, given_up);
      continue;
    }
    flight.answer_by = BootTime::max();
    const Guard guard(holds_.mutex);
    if (hold->phase == Phase::taking) abandon(*hold);
  }
  forget_ended();
  for (Flight& flight : left_) {
    if (flight.under_way() && now < flight.timeout_at) continue;
    holds_.client.finish(std::move(flight.pending),
                         sigv4::Transport::timed_out);
  }
  left_.erase(std::remove_if(left_.begin(), left_.end(),
                             [](const Flight& flight) {
                               return flight.pending == nullptr;
                             }),
              left_.end());
}

void Sender::forget_ended() {
  const auto ended =
      std::remove_if(in_flight_.begin(), in_flight_.end(),
                     [](const HoldPtr& hold) { return !hold->flight; });
  in_flight_.erase(ended, in_flight_.end());
}

// Needs no memory.
void Sender::conclude(Hold& hold, bool given_up) {
  Flight flight = std::move(*hold.flight);
  hold.flight.reset();
  Answer answer = holds_.client.finish(std::move(flight.pending),
                                       sigv4::Transport::timed_out);
  hold.note_failure(answer);
  Reply reply = reply_to(flight.verb, answer, *hold.settings->place.format);
  sigv4::BellPtr bell;
  {
    const Guard guard(holds_.mutex);
    holds_.sender.set_awake();
    if (flight.call == Call::renew) {
      if (!answered(answer.fault)) holds_.lines.uncount_renewal();
      if (hold.phase != Phase::held) return;
    }
    hold.receive(flight, std::move(answer), std::move(reply));
    switch (flight.call) {
      case Call::take:
        bell = taken(hold, given_up);
        break;
      case Call::renew:
        renewed(hold);
        break;
      case Call::release:
        released(hold, flight.stamped_at);
        break;
    }
  }
  hold.told.notify_all();
  if (bell != nullptr) bell->ring();
}

// --- What an answer means ----------------------------------------------------

sigv4::BellPtr Sender::taken(Hold& hold, bool given_up) {
  if (hold.phase != Phase::taking) {
    holds_.release_if_needed(hold);
    return nullptr;
  }
  if (given_up) hold.wait->end = Wait::End::timed_out;
  return give_back(hold);
}

void Sender::renewed(Hold& hold) {
  if (hold.verdict != Verdict::ours && hold.verdict != Verdict::again) {
    return holds_.lose(hold, hold.verdict);
  }
  if (hold.verdict == Verdict::ours) hold.in_danger = false;
  holds_.publish(hold);
  // The answer may have shown that an earlier renewal was applied, which did
  // not have the caller's changes.
  const bool is_earlier =
      hold.wait != nullptr && hold.lease.counted_from() < hold.wait->begun;
  if (hold.verdict == Verdict::again || is_earlier) return retry_renewal(hold);
  Result done;
  done.verdict = Verdict::ours;
  holds_.tell(hold, std::move(done));
  hold.series.reset();
  holds_.resume_renewals(hold);
}

void Sender::retry_renewal(Hold& hold) {
  const Hold::Next next = hold.plan_next();
  if (next != Hold::Next::when_due && hold.wait != nullptr) {
    Result failed;
    hold.answer.copy_fault_to(failed.answer);
    holds_.tell(hold, std::move(failed));
  }
  // The series was a call's, which waits no more.
  const bool is_left =
      hold.wait == nullptr && hold.series->until() != BootTime::max();
  if (is_left) return holds_.resume_renewals(hold);
  const BootTime due =
      next != Hold::Next::never
          ? hold.due
          : BootClock::now() + hold.settings->ttl / kFinalRetriesPerLease;
  holds_.send_at(hold, std::min(due, hold.lease.claim_end()));
}

void Sender::released(Hold& hold, BootTime stamped_at) {
  if (hold.verdict == Verdict::again) {
    const bool last_try =
        holds_.stopping && stamped_at >= holds_.stopping_since;
    const bool goes_on = hold.plan_next() == Hold::Next::when_due && !last_try;
    tell_of_release(hold, !goes_on);
    return goes_on ? holds_.send_at(hold, hold.due) : holds_.end(hold);
  }
  const bool was_held = !hold.is_doubtful();
  if (was_held && is_loss(hold.verdict)) holds_.report(hold, hold.verdict);
  tell_of_release(hold, true);
  // DynamoDB may still apply a take that it has not answered, even after a
  // release that found nothing.  So a second release is sent near the end of
  // such a lease.
  const bool may_come_yet = !was_held && hold.phase == Phase::releasing &&
                            hold.outcome_unknown &&
                            hold.answer.fault != Fault::none;
  const BootTime when = hold.until - hold.settings->request_timeout;
  if (!may_come_yet || when <= BootClock::now()) return holds_.end(hold);
  holds_.release_again(hold, when);
}

// Tells the call that waits for the release how it stands.  `for_good`: no
// other request is sent.
void Sender::tell_of_release(Hold& hold, bool for_good) {
  Wait* const wait = hold.wait;
  if (wait == nullptr) return;
  Result& result = wait->result;
  const bool lost_before = is_loss(result.verdict);
  if (!lost_before && hold.failing()) hold.answer.copy_fault_to(result.answer);
  if (!for_good) return;
  if (!lost_before) result.verdict = verdict_of_release(hold);
  if (!lost_before && is_loss(result.verdict)) {
    result.lost_at = BootClock::now();
  }
  wait->host_waits = hold.lease.waited_for();
  wait->over = true;
  hold.wait = nullptr;
}

// --- Errands -----------------------------------------------------------------

void Sender::conclude_errands() {
  const BootTime now = BootClock::now();
  for (auto at = errands_.begin(); at != errands_.end();) {
    Errand& errand = **at;
    const bool is_late = now >= errand.request.deadline;
    bool has_left;
    {
      const Guard guard(holds_.mutex);
      has_left = errand.bell == nullptr;
    }
    if (errand.is_over() || is_late || has_left) {
      end_errand(errand, is_late ? sigv4::Transport::timed_out
                                 : sigv4::Transport::cancelled);
      at = errands_.erase(at);
    } else {
      ++at;
    }
  }
}

void Sender::end_errand(Errand& errand, sigv4::Transport why) {
  Answer answer = std::move(errand.answer);
  if (errand.pending != nullptr) {
    answer = holds_.client.finish(std::move(errand.pending), why);
  }
  sigv4::BellPtr bell;
  {
    const Guard guard(holds_.mutex);
    errand.answer = std::move(answer);
    errand.over = true;
    bell = std::move(errand.bell);
  }
  if (bell != nullptr) bell->ring();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
