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

// Whether shutdown waits for its answer.
bool is_worth_waiting(const Flight& flight) {
  if (flight.errand != nullptr) return true;
  return flight.hold != nullptr && flight.call != Call::renew &&
         flight.hold->phase != Phase::releasing_again;
}

// What the answer to a release means to whoever called for it.
Verdict verdict_of_release(const Hold& hold) {
  const Fault fault = hold.answer.fault;
  // It was refused because the row is not ours any more.  So its changes are
  // not stored, unless an earlier release without an answer has stored them.
  const bool stored =
      fault == Fault::none || hold.outcome_unknown || !hold.lease.carries();
  if (hold.verdict == Verdict::released && !stored) return Verdict::expired;
  // The table was made anew with another key.  That is an error, no loss.
  return fault == Fault::wrong_key ? Verdict::again : hold.verdict;
}

}  // namespace

// A round in which memory runs out is repeated.
void Sender::run() {
  bool goes_on = true;
  while (goes_on) {
    const bool had_memory =
        sigv4::try_with_memory([&] { goes_on = send_round(); });
    if (!had_memory) pause_for_memory();
  }
  end_all();
}

// Returns false once the thread is to end.
bool Sender::send_round() {
  begin_round();
  begin_errands();
  while (begin_next()) {  // Until no more is due, or memory runs out.
  }
  const std::optional<BootTime> until = plan_sleep();
  if (!until) return false;
  await_any(*until);
  conclude_all();
  return true;
}

// Sleeps for the whole pause.  Nothing wakes it earlier.
void Sender::pause_for_memory() {
  sigv4::wait_until(BootClock::now() + kMemoryPause, nullptr);
}

// Tells all calls that still wait.
void Sender::end_all() {
  {
    const Guard guard(holds_.mutex);
    errands_.splice(errands_.end(), queued_);
    for (const auto& [key, hold] : holds_.to_report) {
      if (hold->phase == Phase::taking && hold->wait != nullptr) {
        abandon(*hold);
      }
      if (is_releasing(*hold)) tell_of_release(*hold, true);
      hold->told.notify_all();
    }
    for (const Flight& flight : flights_) {
      if (flight.hold != nullptr) flight.hold->flight = nullptr;
    }
  }
  for (const auto& errand : errands_) {
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

// --- What is due -------------------------------------------------------------

// Counts what is in flight, and ends requests that nobody needs any more.
// Takes over the errands of this round.
void Sender::begin_round() {
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
      if (flight.may_be_applied()) ++awaited;
      const bool stays = flight.may_be_applied() && awaited <= kMostAwaited;
      if (!stays) flight.timeout_at = now;
    }
    if (flight.hold == nullptr) continue;
    if (flight.call == Call::renew) ++renewals;
    if (flight.call == Call::release) ++releases;
  }
  holds_.lines.begin_round(renewals, releases);
  queued_.remove_if([](const auto& errand) { return errand->bell == nullptr; });
  for (int i = 0; i < kBegunInARound && !queued_.empty(); ++i) {
    errands_.splice(errands_.end(), queued_, queued_.begin());
  }
}

// The next request that may begin now.  Moves what is due to its line.
Lines::Due Sender::next_due(BootTime now) {
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

// Returns the time of the next round.  No value once the thread is to end: when
// everything that callers left was tried once more, or when the time for that
// is up.
std::optional<BootTime> Sender::plan_sleep() {
  const Guard guard(holds_.mutex);
  const BootTime now = BootClock::now();
  const Lines::Due next = next_due(now);
  const bool any_due = next.hold != nullptr || !queued_.empty();
  BootTime until = std::min(next.ask_at, next_in(holds_.to_send));
  // An earlier time to wake up is kept, even if nothing is due then any more.
  // Calls often plan a request for later than that, and then wake nobody.
  Sleeper& sleeper = holds_.sender;
  if (sleeper.sleeps_until() > now) {
    until = std::min(until, sleeper.sleeps_until());
  }
  if (any_due) until = now;
  sleeper.set_sleeps_until(until);
  if (!holds_.stopping) return until;
  const bool goes_on =
      any_due || holds_.lines.has_release_or_take() ||
      std::any_of(flights_.begin(), flights_.end(), is_worth_waiting);
  ended_ = !goes_on || now >= holds_.stop_by;
  if (ended_) return std::nullopt;
  return std::min(until, holds_.stop_by);
}

// --- Requests begin ----------------------------------------------------------

// An errand for which there is no memory is answered with that.
void Sender::begin_errands() {
  for (const auto& errand : errands_) {
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
  errands_.clear();
}

// Begins the next request that is due.  Returns false if there is none, or if
// memory runs out.
bool Sender::begin_next() {
  {
    // Without this, each round would prepare a request in vain.
    const Guard guard(holds_.mutex);
    if (next_due(BootClock::now()).hold == nullptr) return false;
  }
  dynamodb::Client& client = holds_.client;
  Flights one;
  bool begun = false;
  const bool had_memory = sigv4::try_with_memory([&] {
    Flight& flight = one.emplace_back();
    flight.pending = client.prepare(BootClock::now());
    Request request;
    if (!stamp_next(flight, request)) return;
    const RowTarget& place = flight.hold->settings->place;
    write_request(place, request, flight.pending->body());
    const bool takes = flight.call == Call::take;
    if (takes) client.answer_if_table_key_is_wrong(*flight.pending);
    // A refused renewal or release is answered with the whole row, which may be
    // somebody else's and large.  Only its record is needed.
    client.begin(
        *flight.pending, action_of(flight.verb, place.policy),
        flight.stamped_at, nullptr,
        wanted_of(*place.format, takes && place.policy.takes_by_update()));
    begun = true;
  });
  if (!had_memory) {
    // First the pause: what becomes due meanwhile goes before this one.
    pause_for_memory();
    postpone(one.empty() ? nullptr : &one.front());
  }
  if (begun) {
    Flight& flight = one.front();
    sigv4::Exchange& exchange = flight.pending->exchange();
    exchange.connect_within(flight.hold->settings->request_timeout);
    // A process that stood still meanwhile sends no old stamp.
    exchange.send_by(flight.ends_at());
    flights_.splice(flights_.end(), one);
  }
  return had_memory;
}

// Stamps the next request that is due.  Returns false if it is not to be sent,
// or if none is due any more.  Reads the clock after it has locked the mutex,
// because that may take long.
bool Sender::stamp_next(Flight& flight, Request& request) {
  const Guard guard(holds_.mutex);
  const BootTime now = BootClock::now();
  Hold* const hold = next_due(now).hold;
  if (hold == nullptr) return false;
  holds_.lose_if_ended(*hold, now);
  if (!may_begin(*hold, flight, now)) {
    refuse(*hold);
    return false;
  }
  request = hold->stamp(flight, now);
  holds_.lines.count(*hold, now);
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
  const bool stopping = holds_.stopping;
  switch (hold.phase) {
    case Phase::taking: {
      // Without keys it is begun even after its deadline.  Nothing is sent, and
      // the answer says which keys are missing.
      const bool says_why = !flight.pending->will_be_sent() && !hold.failing();
      return !stopping && (now < hold.until || says_why);
    }
    case Phase::held:
      return !stopping && (hold.wait != nullptr || hold.is_renewed_at(now));
    case Phase::releasing:
      return now < hold.until;
    case Phase::releasing_again:
      // At shutdown that is not worth waiting for.
      return now < hold.until && !stopping;
    case Phase::lost:
    case Phase::over:
      return false;
  }
  return false;
}

// No request is sent for it.
void Sender::refuse(Hold& hold) {
  holds_.park(hold);
  if (hold.phase == Phase::taking) {
    hold.wait->given_up = !hold.failing();  // fail() changes that.
    if (hold.answer.fault == Fault::none) {
      hold.fail(Fault::timed_out, "the deadline has passed");
    } else if (hold.answer.fault == Fault::skewed_time) {
      // Only the time of the signature was wrong.  It is no error of the keys.
      hold.fail(Fault::timed_out, dynamodb::kNoTimeToSignAgain);
    }
    tell_take(hold)->ring();
  } else if (is_releasing(hold)) {
    tell_of_release(hold, true);
    hold.told.notify_all();
    holds_.end(hold);
  }
}

// Memory has run out for this request.  If it is null, or not stamped yet, the
// next one that is due is postponed.
void Sender::postpone(const Flight* flight) {
  const Guard guard(holds_.mutex);
  const HoldPtr stamped = flight != nullptr ? flight->hold : nullptr;
  if (stamped != nullptr) {
    stamped->flight = nullptr;
    // It was lost and unlocked meanwhile.
    if (stamped->phase == Phase::over) return;
    // If its phase has changed, nothing is undone: the condition of a release
    // names the uuid only, and no version.
    if (flight->call == stamped->call()) stamped->unstamp(flight->stamped_at);
    retry_with_memory(*stamped);
    return;
  }
  Hold* const next = next_due(BootClock::now()).hold;
  if (next != nullptr) retry_with_memory(*next);
}

void Sender::retry_with_memory(Hold& hold) {
  const BootTime now = BootClock::now();
  holds_.lose_if_ended(hold, now);
  const bool is_late = hold.phase != Phase::held && now >= hold.until;
  const bool left_unsent =
      is_releasing(hold) && hold.is_doubtful() && !hold.needs_release();
  if (hold.phase == Phase::lost || is_late || left_unsent) {
    refuse(hold);
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
    const bool given_up = flight.under_way() && now >= flight.answer_by;
    const bool ends = !flight.under_way() || now >= flight.timeout_at ||
                      (given_up && !flight.may_be_applied());
    if (ends) {
      conclude(flight, given_up);
      at = flights_.erase(at);
      continue;
    }
    ++at;
    if (!given_up) continue;
    flight.answer_by = kNever;
    const Guard guard(holds_.mutex);
    if (flight.hold->phase == Phase::taking) abandon(*flight.hold);
  }
}

// Needs no memory.
void Sender::conclude(Flight& flight, bool given_up) {
  Answer answer = holds_.client.finish(std::move(flight.pending),
                                       sigv4::Transport::timed_out);
  if (flight.errand != nullptr) {
    answer_errand(*flight.errand, std::move(answer));
  }
  if (flight.hold == nullptr) return;
  Hold& hold = *flight.hold;
  Reply reply = reply_to(flight.verb, answer, *hold.settings->place.format);
  sigv4::BellPtr bell;
  {
    const Guard guard(holds_.mutex);
    holds_.sender.set_awake();
    hold.flight = nullptr;
    if (flight.call == Call::renew) {
      if (!answered(answer.fault)) holds_.lines.uncount_renewal();
      if (hold.phase != Phase::held) return;
    }
    if (given_up && hold.phase == Phase::taking) {
      hold.wait->given_up = !hold.failing();
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

// Ends a take's call, but not its request.
void Sender::abandon(Hold& hold) {
  hold.wait->given_up = !hold.failing();  // fail() changes that.
  hold.fail(Fault::timed_out, "no answer yet");
  const sigv4::BellPtr bell = tell_take(hold);
  holds_.give_up(hold);
  bell->ring();
}

// Ends the wait of a take's call.  Returns its bell, to be rung.  Of the Hold's
// answer only the fault stays valid.
sigv4::BellPtr Sender::tell_take(Hold& hold) {
  Wait& wait = *hold.wait;
  hold.wait = nullptr;
  wait.result.verdict = hold.verdict;
  wait.result.answer = std::move(hold.answer);
  sigv4::BellPtr bell = wait.bell;
  wait.over = true;  // Once the mutex is unlocked, `wait` may be gone.
  return bell;
}

// --- What an answer means ----------------------------------------------------

sigv4::BellPtr Sender::taken(Hold& hold, bool given_up) {
  if (hold.phase != Phase::taking) {
    holds_.release_if_needed(hold);
    return nullptr;
  }
  if (given_up) return tell_take(hold);
  holds_.note_outage(hold);
  return hold.verdict == Verdict::again ? retry_take(hold) : tell_take(hold);
}

// Plans the next request of a take, or ends it.
sigv4::BellPtr Sender::retry_take(Hold& hold) {
  Outage& outage = hold.settings->outage;
  const BootTime retry_until =
      Holds::patience_ends(*hold.settings, hold.wait->patient_since);
  switch (hold.plan_next(retry_until)) {
    case Hold::Next::never:
      return tell_take(hold);
    case Hold::Next::too_late:
      // It waits for the rest of its time.  Then may_begin() refuses it.
      if (hold.failing()) hold.until = std::min(hold.until, retry_until);
      holds_.send_at(hold, hold.until);
      break;
    case Hold::Next::when_due:
      if (hold.wait->logs_outage && outage.since &&
          is_transient(hold.answer.fault)) {
        holds_.client.warn_of_failing(hold.answer, *outage.since, hold.due,
                                      std::min(retry_until, hold.until),
                                      outage.warned);
      }
      holds_.send_at(hold, hold.due);
      break;
  }
  return nullptr;
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
  // The series belonged to a call that has left.
  const bool is_left = hold.wait == nullptr && hold.series->until() != kNever;
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

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
