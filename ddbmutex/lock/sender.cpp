// The sending thread of a Renewer, and what it shares with those who renew by
// hand.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "../../sigv4/http.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/waiting.hpp"
#include "renewer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using std::chrono::nanoseconds;

namespace {

// How many renewals are under way at once, and how many releases; more wait.
// So many connections are kept when they are idle.
constexpr std::size_t kRenewalsAtOnce = 32;
constexpr std::size_t kReleasesAtOnce = 32;
// ... with renewals of leases that are nearly over.  One that hangs keeps its
// place for its request_timeout: where that is a quarter of the lease, 256 of
// them keep no healthy one out.
constexpr std::size_t kMostRenewals = 128;

// After a final error a renewal is tried again this often in a lease: keys and
// permissions come back.
constexpr int kFinalRetriesPerLease = 8;

// Of renewals that may begin in a second: times those that all leases need on
// average; and at the least.
constexpr double kMostTimesMean = 2.25;
constexpr double kLeastRenewalsPerSecond = 100;
// So many that were not begun in time may begin together with one that is.
constexpr int kTurnsSaved = 8;
// In the last eighth of its lease a renewal waits for no turn.
constexpr int kUrgentPart = 8;
// A renewal that is due within this part of its age goes along with one that
// is due now, unless it is tried again: so a thread with many leases wakes up
// less often.
constexpr int kSoonPart = 128;

bool unanswered(const Attempt& attempt) {
  return attempt.answer.fault == dynamodb::Fault::timed_out;
}

// Where memory runs out, all is tried again after this.
constexpr std::chrono::milliseconds kMemoryPause{50};

}  // namespace

// A round that memory runs out in is begun anew: what it has collected by then
// is still there.
void Renewer::send_loop() {
  Attempts under_way;
  for (bool goes_on = true; goes_on;) {
    const bool had_memory =
        sigv4::has_memory_for([&] { goes_on = send_round(under_way); });
    if (had_memory) continue;
    sigv4::drive(nullptr, 0, BootClock::now() + kMemoryPause, &sender_waker_);
    sender_waker_.clear();
  }
  Attempts dropped;  // Only without the mutex.
  const Guard guard(mutex_);
  dropped.swap(releases_);
}

bool Renewer::send_round(Attempts& under_way) {
  BootTime next;
  if (!collect(under_way, next)) return false;
  if (!begin_all(under_way)) return true;
  await_any(under_way, next);
  const BootTime now = BootClock::now();
  for (auto at = under_way.begin(); at != under_way.end();) {
    const auto here = at++;
    const Attempt& attempt = **here;
    const bool ended = !attempt.pending->under_way() || now >= attempt.until;
    if (!ended) continue;
    Attempts one;
    one.splice(one.begin(), under_way, here);
    conclude(std::move(one));
  }
  return true;
}

// False if some were not begun, and have left room for others.  Throws
// std::bad_alloc if that was for want of memory.
bool Renewer::begin_all(Attempts& under_way) {
  bool all = true, had_memory = true;
  for (auto at = under_way.begin(); at != under_way.end();) {
    const auto here = at++;
    Attempt& attempt = **here;
    if (attempt.pending != nullptr) continue;
    const auto begun = attempt.begin(this, BootClock::now());
    if (begun == Attempt::Begun::yes) continue;
    all = false;
    Attempts one;
    one.splice(one.begin(), under_way, here);
    if (begun != Attempt::Begun::no_memory) continue;
    begin_later(one);
    had_memory = false;
  }
  if (!had_memory) sigv4::no_memory();
  return all;
}

void Renewer::begin_later(Attempts& one) {
  const BootTime when = BootClock::now() + kMemoryPause;
  const Guard guard(mutex_);
  if (one.front()->call == Call::release) return put(when, one);
  HeldLease& held = *one.front()->held;
  if (held.over() || held.renewing) return;
  plan(held, renewals_, std::min(when, held.lease.claim_end()));
  held.attempt = std::move(one.front());
}

// Until an answer has come, or it is time for something else.
void Renewer::await_any(const Attempts& under_way, BootTime until) {
  std::vector<sigv4::Exchange*> exchanges;
  exchanges.reserve(under_way.size());
  for (const AttemptPtr& attempt : under_way) {
    until = std::min(until, attempt->until);
    exchanges.push_back(&attempt->pending->exchange());
    // Ended before it began.
    if (!attempt->pending->under_way()) return;
  }
  sigv4::drive(exchanges.data(), exchanges.size(), until, &sender_waker_);
  sender_waker_.clear();
}

// Adds what is due, no more of each kind than there is room for, renewals
// first, and tells when to look again.  False once the thread is to end: after
// all that callers left was tried once more, at once, or at the time by which
// it must be.
bool Renewer::collect(Attempts& under_way, BootTime& next) {
  std::size_t renewing = 0, releasing = 0;
  bool idle = true;
  for (const AttemptPtr& attempt : under_way) {
    const bool release = attempt->call == Call::release;
    if (!release) ++renewing;
    if (release && !attempt->counted) ++releasing;
    if (release && !attempt->once_more) idle = false;
  }
  const std::size_t before = under_way.size();
  const Guard guard(mutex_);
  const BootTime now = BootClock::now();
  next = BootTime::max();
  collect_renewals(now, renewing, under_way, next);
  const bool more =
      collect_releases(now, kReleasesAtOnce - releasing, under_way, next);
  // Woken for an attempt that is gone again: kept, or the next would wake it
  // too.
  if (sender_sleeps_until_ > now) next = std::min(next, sender_sleeps_until_);
  sender_sleeps_until_ = next;
  if (!stopping_) return true;
  next = std::min(next, stop_by_);
  idle = idle && under_way.size() == before && !more;
  return !idle && now < stop_by_;
}

// By the ends of their claims.
void Renewer::collect_renewals(BootTime now, std::size_t renewing,
                               Attempts& ready, BootTime& next) {
  const bool awake = renewals_.next() <= now;
  while (awake && renewals_.next() != BootTime::max()) {
    HeldLease& held = renewals_.first();
    const nanoseconds soon = held.attempt != nullptr
                                 ? nanoseconds::zero()
                                 : held.holder->renew_after / kSoonPart;
    if (renewals_.next() - soon > now) break;
    renewals_.set(held, BootTime::max());
    const bool again = held.attempt != nullptr && unanswered(*held.attempt);
    Agenda& due = again ? renewals_behind_ : renewals_due_;
    held.renewal_on = &due;
    due.set(held, held.lease.claim_end());
  }
  next = std::min(next, renewals_.next());
  for (; renewing < kMostRenewals; ++renewing) {
    const bool full = renewing >= kRenewalsAtOnce;
    Agenda* const agenda = next_to_renew(now, full, next);
    if (agenda == nullptr) return;
    HeldLease& held = agenda->first();
    // It stays on the agenda until there is memory for this.
    Attempts one(1);
    AttemptPtr& attempt = one.front();
    attempt = held.attempt != nullptr
                  ? std::move(held.attempt)
                  : std::make_unique<Attempt>(Call::renew, held);
    agenda->set(held, BootTime::max());
    take_turn(now);
    ready.splice(ready.end(), one);
  }
}

// Whoever had no answer goes behind: requests that hang would keep all others
// waiting.  Those that have piled up do not come all at once when the service
// is back, unless their leases are nearly over.  The agenda whose first lease
// is to be renewed; null: none is before `next`.
Agenda* Renewer::next_to_renew(BootTime now, bool full, BootTime& next) {
  for (Agenda* agenda : {&renewals_due_, &renewals_behind_}) {
    if (agenda->next() == BootTime::max()) continue;
    const HeldLease& held = agenda->first();
    const nanoseconds ttl = held.holder->ttl;
    BootTime turn = held.lease.claim_end() - ttl / kUrgentPart;
    if (!full) turn = std::min(turn, renewal_turn_);
    if (turn <= now) return agenda;
    next = std::min(next, turn);
  }
  return nullptr;
}

void Renewer::take_turn(BootTime now) {
  if (renewal_turn_ > now) return;
  const nanoseconds between = between_renewals();
  renewal_turn_ =
      std::max(renewal_turn_, now - kTurnsSaved * between) + between;
}

// However many they are, some more than are needed if none fails: what has
// piled up is gone soon.
nanoseconds Renewer::between_renewals() const {
  const double most_per_s = kMostTimesMean * renewals_per_s_;
  return nanoseconds(static_cast<std::int64_t>(
      1e9 / std::max(most_per_s, kLeastRenewalsPerSecond)));
}

// As they come, those that may be of nothing last.  Room is needed by what has
// no request under way already and is not too late.  True if some are due for
// which there was none.
bool Renewer::collect_releases(BootTime now, std::size_t room, Attempts& ready,
                               BootTime& next) {
  const auto is_due = [&](const Attempt& one) {
    return stopping_ || one.due <= now || one.deadline <= now;
  };
  const auto rank = [](const Attempt& one) {
    return std::make_pair(unanswered(one) + 2 * one.of_take + 4 * one.once_more,
                          one.due);
  };
  for (auto at = releases_.begin(); at != releases_.end();) {
    const auto here = at++;
    const Attempt& one = **here;
    const bool late = one.deadline <= now;
    const bool free = late || (one.pending != nullptr && is_due(one));
    if (free) ready.splice(ready.end(), releases_, here);
  }
  bool more = false;
  for (;;) {
    auto first = releases_.end();
    for (auto at = releases_.begin(); at != releases_.end(); ++at) {
      const bool before =
          first == releases_.end() || rank(**at) < rank(**first);
      if (is_due(**at) && before) first = at;
    }
    more = first != releases_.end();
    if (!more || room-- == 0) break;
    ready.splice(ready.end(), releases_, first);
  }
  for (const AttemptPtr& one : releases_) {
    next = std::min(
        next, is_due(*one) ? one->deadline : std::min(one->due, one->deadline));
  }
  return more;
}

// --- Each attempt
// -------------------------------------------------------------

// By the time that it is once the mutex is ours.
bool Renewer::stamp(Attempt& attempt) {
  const Guard guard(mutex_);
  const BootTime now = BootClock::now();
  attempt.last_try = stopping_;
  if (attempt.call == Call::release) {
    const bool needless = attempt.once_more && stopping_;
    if (now < attempt.deadline && !needless) return attempt.stamp(now);
    closed(attempt, Verdict::again, false, true);
    return false;
  }
  HeldLease& held = *attempt.held;
  if (stopping_ || held.over()) return false;
  // By hand it is planned anew in the end.
  const bool not_by_itself = held.renewing || held.held_too_long(now);
  if (attempt.by_hand == nullptr && not_by_itself) return false;
  if (!attempt.stamp(now)) {
    lose(held, Verdict::expired);
    return false;
  }
  held.renewing = true;
  publish(held, held.lease.claim_end());
  set_alarm(held);
  return true;
}

void Renewer::unstamp(Attempt& attempt) {
  const Guard guard(mutex_);
  if (attempt.call == Call::release) return attempt.unstamp();
  HeldLease& held = *attempt.held;
  if (attempt.by_hand == nullptr) held.renewing = false;
  changed_.notify_all();
  if (held.over()) return;
  attempt.unstamp();
  publish(held, held.lease.claim_end());
  set_alarm(held);
}

void Renewer::hear(Attempt& attempt) {
  const Guard guard(mutex_);
  if (attempt.held->over()) {
    attempt.verdict = Verdict::expired;
    return;
  }
  hear_renewal(attempt);
  // An earlier renewal, of which that is the answer at last, had no changes.
  const bool earlier = attempt.held->lease.granted_at() < attempt.made;
  if (attempt.verdict == Verdict::ours && earlier) {
    attempt.verdict = Verdict::again;
  }
}

// REQUIRES: the mutex is held; not over.
void Renewer::hear_renewal(Attempt& attempt) {
  HeldLease& held = *attempt.held;
  attempt.hear();
  if (attempt.verdict != Verdict::ours && attempt.verdict != Verdict::again) {
    return lose(held, attempt.verdict);
  }
  publish(held, held.lease.claim_end());
  if (attempt.verdict == Verdict::ours) held.in_danger = false;
  set_alarm(held);
}

// Needs no memory.
void Renewer::conclude(Attempts one) {
  AttemptPtr& attempt = one.front();
  attempt->answer =
      client_.finish(std::move(attempt->pending), sigv4::Transport::timed_out);
  const Guard guard(mutex_);
  if (std::exchange(attempt->counted, false)) --answers_awaited_;
  if (attempt->call == Call::renew) {
    renewed(attempt);
  } else {
    released(one);
  }
}

// REQUIRES: the mutex is held.
void Renewer::renewed(AttemptPtr& attempt) {
  HeldLease& held = *attempt->held;
  held.renewing = false;
  changed_.notify_all();
  // A turn that came to nothing is another's: where many fail, more are needed.
  if (attempt->failing()) renewal_turn_ -= between_renewals();
  if (held.over()) return;
  hear_renewal(*attempt);
  const MutexSettings& holder = *held.holder;
  if (attempt->verdict == Verdict::ours) {
    plan_renewal(held, held.lease.renew_at(holder.renew_after));
  } else if (attempt->verdict == Verdict::again) {
    attempt->goes_on();
    BootTime due = attempt->due;
    if (due == BootTime::max()) {  // The fault is final.
      const nanoseconds ttl = holder.ttl;
      due = BootClock::now() + ttl / kFinalRetriesPerLease;
    }
    plan(held, renewals_, std::min(due, held.lease.claim_end()));
    held.attempt = std::move(attempt);
  }
}

// REQUIRES: the mutex is held.
void Renewer::released(Attempts& one) {
  Attempt* const attempt = one.front().get();
  attempt->hear();
  const BootTime now = BootClock::now();
  const Verdict verdict = attempt->verdict;
  if (std::exchange(attempt->awaits_take, false)) {
    attempt->take_unknown |= attempt->answer.outcome_unknown();
    const bool maybe = verdict == Verdict::ours || verdict == Verdict::again;
    if (maybe || attempt->take_unknown) put(now, one);
    return;
  }
  if (verdict == Verdict::again) {
    const bool goes_on = attempt->goes_on() && !attempt->last_try;
    closed(*attempt, Verdict::again, true, !goes_on);
    if (goes_on) put(attempt->due, one);
    return;
  }
  const bool lost = verdict != Verdict::released;
  if (lost && !attempt->of_take) tell(*attempt->held, verdict);
  closed(*attempt, lost ? verdict : Verdict::again, true, true);
  // DynamoDB may yet get a take that nobody has heard of, after a release that
  // found nothing.  For that there is another, when a lease is nearly over: it
  // waits without an exchange, and no destructor waits for it.
  const bool may_come_yet = attempt->of_take && attempt->take_unknown;
  if (!may_come_yet || attempt->answer.fault == dynamodb::Fault::none) return;
  const BootTime when = attempt->deadline - attempt->holder.request_timeout;
  if (std::exchange(attempt->once_more, true) || when <= now) return;
  put(when, one);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
