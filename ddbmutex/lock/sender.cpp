// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A round of the sender collects what is due, begins its requests, waits until
// an answer has come or something else is due, and acts on the answers.
#include "sender.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "../../sigv4/http.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using std::chrono::nanoseconds;
using Guard = Leases::Guard;
using Stage = Attempt::Stage;

namespace {

// How many are in flight at once; more wait.  As many idle connections are
// kept.
constexpr std::size_t kRenewalsAtOnce = 32;
constexpr std::size_t kReleasesAtOnce = 32;
// How many renewals are in flight at once if leases are nearly over.  A renewal
// that hangs occupies its place for its request_timeout.  If that is a quarter
// of the lease, two sets of 128 fit into the second half of the lease: 256
// renewals that hang still leave room for a healthy one.
constexpr std::size_t kMostRenewals = 128;

// How many takes that callers abandoned are awaited.
constexpr std::size_t kMostAwaited = 16;
// How many releases wait to be sent.
constexpr std::size_t kMostKept = 1000;

// After a final error a renewal is retried this often per lease: keys and
// permissions come back.
constexpr int kFinalRetriesPerLease = 8;

// A renewal is sent early, together with one that is due now, if it would be
// due within this part of the time between renewals.  So a thread with many
// leases wakes up less often.  Retries are not sent early.
constexpr int kSoonPart = 128;

// The pause before a retry after memory has run out.
constexpr std::chrono::milliseconds kMemoryPause{50};

// 0: releases a lock that was held.  1, 2: releases a take that may never have
// succeeded.
int doubt(const Attempt& attempt) {
  switch (attempt.stage()) {
    case Stage::awaiting_take:
    case Stage::releasing_take:
      return 1;
    case Stage::releasing_take_again:
      return 2;
    default:
      return 0;
  }
}

OneAttempt take_out(Attempts& from, Attempts::iterator one) {
  OneAttempt taken;
  taken.splice(taken.begin(), from, one);
  return taken;
}

}  // namespace

// A round in which memory runs out is repeated.  What it has collected by then
// is still in in_flight_.
void Sender::run() {
  for (bool goes_on = true; goes_on;) {
    const bool had_memory =
        sigv4::try_with_memory([&] { goes_on = send_round(); });
    if (had_memory) continue;
    sigv4::Waker& waker = leases_.sender.waker();
    sigv4::wait_until(BootClock::now() + kMemoryPause, &waker);
    waker.clear();
  }
  Attempts dropped = std::move(in_flight_);  // Destroyed without the mutex.
  const Guard guard(leases_.mutex);
  dropped.splice(dropped.end(), releases_);
}

bool Sender::send_round() {
  BootTime next;
  if (!collect(next)) return false;
  if (!begin_all()) return true;
  await_any(next);
  const BootTime now = BootClock::now();
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    const auto one = at++;
    const bool ended = !one->in_flight() || now >= one->timeout_at();
    if (ended) conclude(take_out(in_flight_, one));
  }
  return true;
}

// Returns false if some attempts could not begin, so that there is room for
// others.  Throws std::bad_alloc if memory has run out.
bool Sender::begin_all() {
  bool all = true, had_memory = true;
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    const auto one = at++;
    if (one->has_request()) continue;
    const auto begun = one->begin(this, BootClock::now());
    if (begun == Attempt::Begun::yes) continue;
    all = false;
    OneAttempt unsent = take_out(in_flight_, one);
    if (begun != Attempt::Begun::no_memory) continue;
    begin_later(unsent);
    had_memory = false;
  }
  if (!had_memory) sigv4::no_memory();
  return all;
}

void Sender::begin_later(OneAttempt& one) {
  const BootTime when = BootClock::now() + kMemoryPause;
  const Guard guard(leases_.mutex);
  Attempt& attempt = one.front();
  if (attempt.call() == Call::release) return release_at(when, one);
  HeldLease& held = attempt.held();
  if (held.over() || held.renewing) return;
  leases_.renew_at(held, std::min(when, held.lease.claim_end()));
  held.retry.swap(one);
}

// Waits until an answer has come, or something else is due.
void Sender::await_any(BootTime until) {
  std::vector<sigv4::Exchange*> exchanges;
  exchanges.reserve(in_flight_.size());
  for (Attempt& attempt : in_flight_) {
    until = std::min(until, attempt.timeout_at());
    exchanges.push_back(&attempt.exchange());
    if (!attempt.in_flight()) return;  // It ended before it was sent.
  }
  sigv4::Waker& waker = leases_.sender.waker();
  if (exchanges.empty()) {
    sigv4::wait_until(until, &waker);
  } else {
    sigv4::drive(exchanges.data(), exchanges.size(), until, &waker);
  }
  waker.clear();
}

// --- What is due -------------------------------------------------------------

// Moves what is due to in_flight_.  Sets `next` to the time of the next round.
// Returns false once the thread is to end: when everything that callers left
// was tried once more, or when the time for that is up.
bool Sender::collect(BootTime& next) {
  std::size_t renewing = 0, releasing = 0;
  bool idle = true;
  for (const Attempt& attempt : in_flight_) {
    const Stage stage = attempt.stage();
    const bool renews = stage == Stage::renewing;
    if (renews) ++renewing;
    if (!renews && stage != Stage::awaiting_take) ++releasing;
    if (!renews && stage != Stage::releasing_take_again) idle = false;
  }
  const std::size_t before = in_flight_.size();
  const Guard guard(leases_.mutex);
  const BootTime now = BootClock::now();
  next = BootTime::max();
  collect_renewals(now, renewing, next);
  const bool more = collect_releases(now, kReleasesAtOnce - releasing, next);
  // The attempt that the thread was woken for may be gone.  Its time is kept
  // even so: the next attempt is probably due later, and need not wake the
  // thread again.
  Sleeper& sleeper = leases_.sender;
  if (sleeper.sleeps_until() > now)
    next = std::min(next, sleeper.sleeps_until());
  sleeper.set_sleeps_until(next);
  if (!leases_.stopping) return true;
  next = std::min(next, leases_.stop_by);
  idle = idle && in_flight_.size() == before && !more;
  return !idle && now < leases_.stop_by;
}

void Sender::collect_renewals(BootTime now, std::size_t renewing,
                              BootTime& next) {
  Agenda& planned = leases_.renewals;
  Agenda& due = leases_.due;
  const bool any_due = planned.next() <= now;
  while (any_due && planned.next() != BootTime::max()) {
    HeldLease& held = planned.first();
    const nanoseconds soon = held.retry.empty()
                                 ? held.settings->renew_after / kSoonPart
                                 : nanoseconds::zero();
    if (planned.next() - soon > now) break;
    planned.set(held, BootTime::max());
    held.renewal_on = &due;
    due.set(held, Leases::due_key(held));
  }
  next = std::min(next, planned.next());
  for (; renewing < kMostRenewals && due.next() != BootTime::max();
       ++renewing) {
    HeldLease& held = due.first();
    if (!may_renew(held, now, renewing >= kRenewalsAtOnce, next)) return;
    // The lease stays on the agenda until there is memory for its renewal.
    if (held.retry.empty()) held.retry.emplace_back(Call::renew, held);
    due.set(held, BootTime::max());
    rate_.count(now, leases_.renewals_per_s);
    in_flight_.splice(in_flight_.end(), held.retry);
  }
}

// Renewals that have piled up do not come all at once when the service is back,
// unless their leases are nearly over.
bool Sender::may_renew(const HeldLease& held, BootTime now, bool full,
                       BootTime& next) const {
  const BootTime end = held.lease.claim_end();
  const nanoseconds ttl = held.settings->ttl;
  const BootTime when =
      full ? RenewalRate::urgent_at(end, ttl) : rate_.begins_at(end, ttl);
  if (when <= now) return true;
  next = std::min(next, when);
  return false;
}

// In order of arrival, doubtful releases last.  A request that is in flight
// already, or a release that is too late, needs no room.  Returns true if there
// was no room for some that are due.
bool Sender::collect_releases(BootTime now, std::size_t room, BootTime& next) {
  const auto is_due = [&](const Attempt& one) {
    return leases_.stopping || one.due() <= now || one.deadline() <= now;
  };
  const auto rank = [](const Attempt& one) {
    return std::make_tuple(doubt(one), one.unanswered(), one.due());
  };
  for (auto at = releases_.begin(); at != releases_.end();) {
    const auto one = at++;
    const bool late = one->deadline() <= now;
    const bool needs_none = late || (one->has_request() && is_due(*one));
    if (needs_none) in_flight_.splice(in_flight_.end(), releases_, one);
  }
  bool more = false;
  for (std::size_t added = 0;; ++added) {
    auto first = releases_.end();
    for (auto at = releases_.begin(); at != releases_.end(); ++at) {
      const bool before = first == releases_.end() || rank(*at) < rank(*first);
      if (is_due(*at) && before) first = at;
    }
    more = first != releases_.end();
    if (!more || added == room) break;
    in_flight_.splice(in_flight_.end(), releases_, first);
  }
  for (const Attempt& one : releases_) {
    next = std::min(next, is_due(one) ? one.deadline()
                                      : std::min(one.due(), one.deadline()));
  }
  return more;
}

// --- Releases that callers leave ---------------------------------------------

void Sender::release_at(BootTime when, OneAttempt& one) {
  one.front().wait_until(when);
  releases_.splice(releases_.end(), one);
  leases_.sender.wake_at(when);
}

void Sender::finish(OneAttempt& one, Guard guard) {
  const OneAttempt dropped = make_room();
  Attempt& attempt = one.front();
  const BootTime now = BootClock::now();
  attempt.release_instead(now + attempt.settings().ttl);
  const bool awaits = attempt.stage() == Stage::awaiting_take;
  if (awaits && awaited_++ >= kMostAwaited) {
    guard.unlock();
    return conclude(std::move(one));
  }
  attempt.wait_until(now);
  const bool throttled = attempt.answer().fault == dynamodb::Fault::throttled;
  if (!awaits && throttled) attempt.plan_next();
  release_at(attempt.due(), one);
  guard.unlock();  // Before `dropped` is destroyed.
}

// Makes room for one more release.  If there are too many, it takes out the one
// that is worth least: a doubtful one, or the one whose lease ends first.
OneAttempt Sender::make_room() {
  const auto worth = [](const Attempt& attempt) {
    return std::make_tuple(-doubt(attempt), attempt.deadline());
  };
  std::size_t kept = 0;
  Attempts::iterator least;
  for (auto one = releases_.begin(); one != releases_.end(); ++one) {
    if (one->held().closing || one->has_request()) continue;
    if (kept++ == 0 || worth(*one) < worth(*least)) least = one;
  }
  return kept >= kMostKept ? take_out(releases_, least) : OneAttempt();
}

// Reports the state of a lock to a release_all() that waits for it. `released`:
// the lock is free.  `again`: not yet; the answer may say why.  `for_good`: the
// verdict is final.
void Sender::report_to_closing(const Attempt& attempt, Verdict verdict,
                               bool for_good) {
  HeldLease& held = attempt.held();
  Closing* const closing = held.closing.get();
  if (closing == nullptr || closing->locks.empty()) return;
  Result& result = closing->locks[held.closing_index].result;
  if (attempt.failing()) {
    sigv4::try_with_memory(
        [&] { attempt.answer().copy_fault_to(result.answer); });
  }
  if (!for_good) return;
  // If the table is gone, the lock is free, but that is no success.
  if (is_loss(verdict) || !attempt.failing()) result.verdict = verdict;
  if (is_loss(verdict)) result.lost_at = BootClock::now();
  --closing->open;
  leases_.changed.notify_all();
}

// --- Each attempt ------------------------------------------------------------

// Reads the clock after it has locked the mutex, because that may take long.
bool Sender::stamp(Attempt& attempt) {
  const Guard guard(leases_.mutex);
  const BootTime now = BootClock::now();
  const bool stopping = leases_.stopping;
  if (attempt.call() == Call::release) {
    // DynamoDB may still apply the abandoned take, so it is released a second
    // time near the end of its lease.  At shutdown that is not worth waiting
    // for.
    const bool needless =
        stopping && attempt.stage() == Stage::releasing_take_again;
    if (now < attempt.deadline() && !needless) return attempt.stamp(now);
    report_to_closing(attempt, Verdict::again, true);
    return false;
  }
  HeldLease& held = attempt.held();
  // If the user is renewing, that call plans the next renewal.
  if (stopping || held.over() || held.renewing || !held.is_renewed_at(now)) {
    return false;
  }
  return leases_.stamp(attempt, now);
}

void Sender::unstamp(Attempt& attempt) {
  const Guard guard(leases_.mutex);
  if (attempt.call() == Call::release) return attempt.unstamp();
  attempt.held().renewing = false;
  leases_.unstamp(attempt);
}

// Needs no memory.
void Sender::conclude(OneAttempt one) {
  Attempt& attempt = one.front();
  attempt.finish(sigv4::Transport::timed_out);
  const Guard guard(leases_.mutex);
  if (attempt.call() == Call::renew) return renewed(one);
  released(one);
}

void Sender::renewed(OneAttempt& one) {
  Attempt& attempt = one.front();
  HeldLease& held = attempt.held();
  held.renewing = false;
  leases_.changed.notify_all();
  if (attempt.failing()) rate_.uncount(leases_.renewals_per_s);
  if (held.over()) return;
  leases_.receive(attempt);
  const MutexSettings& settings = *held.settings;
  if (attempt.verdict() == Verdict::ours) {
    leases_.plan_renewal(held, held.lease.time_at_age(settings.renew_after));
  } else if (attempt.verdict() == Verdict::again) {
    attempt.plan_next();
    BootTime due = attempt.due();
    if (due == BootTime::max()) {  // The fault is final.
      const nanoseconds ttl = settings.ttl;
      due = BootClock::now() + ttl / kFinalRetriesPerLease;
    }
    leases_.renew_at(held, std::min(due, held.lease.claim_end()));
    held.retry.swap(one);
  }
}

void Sender::released(OneAttempt& one) {
  Attempt& attempt = one.front();
  const bool was_take = attempt.stage() == Stage::awaiting_take;
  attempt.receive();
  const BootTime now = BootClock::now();
  const Verdict verdict = attempt.verdict();
  if (was_take) {
    --awaited_;
    const bool may_be_ours =
        verdict == Verdict::ours || verdict == Verdict::again;
    if (may_be_ours || attempt.outcome_unknown()) release_at(now, one);
    return;
  }
  if (verdict == Verdict::again) {
    const bool last_try =
        leases_.stopping && attempt.stamped_at() >= leases_.stopping_since;
    const bool goes_on = attempt.plan_next() && !last_try;
    report_to_closing(attempt, verdict, !goes_on);
    if (goes_on) release_at(attempt.due(), one);
    return;
  }
  const bool was_held = attempt.stage() == Stage::releasing;
  if (was_held && is_loss(verdict)) leases_.report(attempt.held(), verdict);
  report_to_closing(attempt, verdict, true);
  // DynamoDB may still apply a take that it has not answered, even after a
  // release that found nothing.  So a second release is sent near the end of
  // such a lease.  Until then it has no request, and no destructor waits for
  // it.
  const bool may_come_yet = attempt.stage() == Stage::releasing_take &&
                            attempt.outcome_unknown() &&
                            attempt.answer().fault != dynamodb::Fault::none;
  const BootTime when = attempt.deadline() - attempt.settings().request_timeout;
  if (!may_come_yet || when <= now) return;
  attempt.release_again();
  release_at(when, one);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
