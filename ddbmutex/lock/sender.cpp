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

using dynamodb::Fault;
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

// How many takes, and how many other calls, begin before the next look at what
// is due.
constexpr int kBegunInARound = 16;

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

// What the answer to a release means to whoever called for it.
Verdict verdict_of_release(const Attempt& attempt) {
  const Verdict verdict = attempt.verdict();
  const Fault fault = attempt.answer().fault;
  // If it was refused because the lease was over, its changes are not stored.
  const bool stored = fault == Fault::none || attempt.outcome_unknown() ||
                      !attempt.held().lease.carries();
  if (verdict == Verdict::released && !stored) return Verdict::expired;
  return fault == Fault::wrong_key ? Verdict::again : verdict;
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
  end_all();
}

// Tells all calls that still wait.
void Sender::end_all() {
  {
    const Guard guard(leases_.mutex);
    errands_.splice(errands_.end(), asked_errands_);
    in_flight_.splice(in_flight_.end(), asked_);
  }
  for (const auto& one : errands_) {
    end_errand(*one, sigv4::Transport::cancelled);
  }
  leases_.client.close_connections();
  Attempts dropped = std::move(in_flight_);  // Destroyed without the mutex.
  const Guard guard(leases_.mutex);
  dropped.splice(dropped.end(), releases_);
  for (Attempt& one : dropped) {
    if (one.wait() != nullptr) give_up(one)->ring();
    tell_of_release(one, true);
    one.held().told.notify_all();
  }
}

bool Sender::send_round() {
  BootTime next;
  if (!collect(next)) return false;
  begin_errands();
  if (!begin_all()) return true;
  await_any(next);
  conclude_errands();
  conclude_all();
  return true;
}

// Returns false if some attempts could not begin, so that there is room for
// others.  Throws std::bad_alloc if memory has run out.
bool Sender::begin_all() {
  bool all = true, had_memory = true;
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    const auto one = at++;
    if (one->has_request()) continue;
    const Begun begun = begin(*one);
    if (begun == Begun::yes) continue;
    all = false;
    OneAttempt unsent = take_out(in_flight_, one);
    end_unsent(unsent, begun);
    if (begun == Begun::no_memory && !unsent.empty()) had_memory = false;
  }
  if (!had_memory) sigv4::no_memory();
  return all;
}

Sender::Begun Sender::begin(Attempt& attempt) {
  bool stamped = false;
  const bool had_memory = sigv4::try_with_memory([&] {
    attempt.prepare(BootClock::now());
    stamped = stamp(attempt);
    if (stamped) attempt.send();
  });
  if (had_memory && stamped) return Begun::yes;
  attempt.drop_request();
  if (stamped) unstamp(attempt);
  return had_memory ? Begun::too_late_or_unwanted : Begun::no_memory;
}

// Ends an attempt whose request was not sent: gives it back, or plans it anew.
void Sender::end_unsent(OneAttempt& one, Begun begun) {
  const BootTime when = BootClock::now() + kMemoryPause;
  Guard guard(leases_.mutex);
  Attempt& attempt = one.front();
  HeldLease& held = attempt.held();
  const bool lacks_memory = begun == Begun::no_memory;
  if (attempt.wait() != nullptr) {
    attempt.wait()->unsent = !lacks_memory;
    if (lacks_memory) attempt.fail(Fault::no_memory, "");
    const sigv4::BellPtr bell = give_back(one);
    guard.unlock();
    return bell->ring();
  }
  if (attempt.call() == Call::take) return release_if_needed(one);
  if (!lacks_memory) return;
  if (attempt.call() == Call::release) return release_at(when, one);
  if (held.over() || held.renewing) return;
  if (held.renewal_wait != nullptr) {
    Result result;
    result.answer.fault = Fault::no_memory;
    leases_.end_wait(held, std::move(result));
    return leases_.resume_renewals(held);
  }
  leases_.renew_at(held, std::min(when, held.lease.claim_end()));
  held.retry.swap(one);
}

// If memory runs out, the call is told.
void Sender::begin_errands() {
  for (const auto& errand : errands_) {
    if (errand->pending != nullptr) continue;
    const bool had_memory = sigv4::try_with_memory([&] {
      errand->pending = leases_.client.start(errand->request, BootClock::now());
    });
    if (!had_memory) errand->answer.fault = Fault::no_memory;
  }
}

// Waits until an answer has come, or something else is due.
void Sender::await_any(BootTime until) {
  std::vector<sigv4::Exchange*> exchanges;
  exchanges.reserve(in_flight_.size() + errands_.size());
  for (const auto& errand : errands_) {
    until = std::min(until, errand->request.deadline);
    const bool is_over =
        errand->pending == nullptr || !errand->pending->under_way();
    if (is_over) return;
    exchanges.push_back(&errand->pending->exchange());
  }
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

// A take that may be applied stays in flight when its call gives up: only the
// answer says for certain whether there is something to release.
void Sender::conclude_all() {
  const BootTime now = BootClock::now();
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    const auto one = at++;
    if (one->in_flight() && now < one->timeout_at()) continue;
    const bool given_up = one->in_flight() && now >= one->end_at();
    if (!given_up || one->call() != Call::take || !one->may_be_applied()) {
      conclude(take_out(in_flight_, one), given_up);
      continue;
    }
    sigv4::BellPtr bell;
    {
      const Guard guard(leases_.mutex);
      if (one->wait() != nullptr) bell = give_up(*one);
      abandon(*one, now);
    }
    if (bell != nullptr) bell->ring();
  }
}

void Sender::conclude_errands() {
  const BootTime now = BootClock::now();
  for (auto at = errands_.begin(); at != errands_.end();) {
    Errand& errand = **at;
    const bool is_over =
        errand.pending == nullptr || !errand.pending->under_way();
    const bool is_late = now >= errand.request.deadline;
    bool has_left;
    {
      const Guard guard(leases_.mutex);
      has_left = errand.bell == nullptr;
    }
    if (is_over || is_late || has_left) {
      end_errand(errand, is_late ? sigv4::Transport::timed_out
                                 : sigv4::Transport::cancelled);
      at = errands_.erase(at);
    } else {
      ++at;
    }
  }
}

void Sender::end_errand(Errand& errand, sigv4::Transport why) {
  dynamodb::Answer answer = std::move(errand.answer);
  if (errand.pending != nullptr) {
    answer = leases_.client.finish(std::move(errand.pending), why);
  }
  sigv4::BellPtr bell;
  {
    const Guard guard(leases_.mutex);
    errand.answer = std::move(answer);
    errand.over = true;
    bell = std::move(errand.bell);
  }
  if (bell != nullptr) bell->ring();
}

// --- Takes and errands -------------------------------------------------------

bool Sender::ask(OneAttempt& one) {
  asked_.splice(asked_.end(), one);
  return leases_.sender.must_wake_at(BootTime::min());
}

bool Sender::ask(Errands& one) {
  asked_errands_.splice(asked_errands_.end(), one);
  return leases_.sender.must_wake_at(BootTime::min());
}

// Returns whether some have to wait for the next round.
bool Sender::collect_asked() {
  asked_errands_.remove_if(
      [](const auto& errand) { return errand->bell == nullptr; });
  for (int i = 0; i < kBegunInARound; ++i) {
    if (!asked_errands_.empty()) {
      errands_.splice(errands_.end(), asked_errands_, asked_errands_.begin());
    }
    if (!asked_.empty()) {
      in_flight_.splice(in_flight_.end(), asked_, asked_.begin());
    }
  }
  return !asked_.empty() || !asked_errands_.empty();
}

void Sender::look_for_abandoned(BootTime now) {
  for (Attempt& one : in_flight_) {
    if (one.call() != Call::take || !one.has_request()) continue;
    if (leases_.stopping && one.wait() != nullptr) give_up(one)->ring();
    if (one.wait() == nullptr) abandon(one, now);
  }
}

// The call has left.  Its take in flight is awaited, and then released unless
// it has certainly failed.
void Sender::abandon(Attempt& attempt, BootTime now) {
  const bool is_awaited = attempt.may_be_applied() && awaited_ < kMostAwaited;
  attempt.release_instead(now + attempt.settings().ttl);
  ++awaited_;
  if (!is_awaited) attempt.end_request_at(now);
}

// Gives the attempt back to the call that waits for it.  The caller rings the
// bell of that call.
sigv4::BellPtr Sender::give_back(OneAttempt& one) {
  TakeWait& wait = *one.front().wait();
  one.front().set_wait(nullptr);
  wait.attempt.splice(wait.attempt.end(), one);
  wait.over = true;
  return wait.bell;
}

// Tells the call that its request is left in flight.  The caller rings the bell
// of that call.
sigv4::BellPtr Sender::give_up(Attempt& attempt) {
  TakeWait& wait = *attempt.wait();
  attempt.fail(Fault::timed_out, "no answer yet");
  wait.answer = attempt.take_answer();
  attempt.be_left();
  wait.given_up = true;
  wait.over = true;
  return wait.bell;
}

// REQUIRES: no call waits for the take, and no request is in flight.
void Sender::release_if_needed(OneAttempt& one) {
  Attempt& attempt = one.front();
  if (!attempt.needs_release()) return;
  const BootTime now = BootClock::now();
  attempt.release_instead(now + attempt.settings().ttl);
  release_at(now, one);
}

sigv4::BellPtr Sender::taken(OneAttempt& one, bool given_up) {
  Attempt& attempt = one.front();
  attempt.receive();
  if (attempt.wait() == nullptr) {
    release_if_needed(one);
    return nullptr;
  }
  attempt.wait()->given_up = given_up;
  return give_back(one);
}

// --- What is due -------------------------------------------------------------

// Moves what is due to in_flight_.  Sets `next` to the time of the next round.
// Returns false once the thread is to end: when everything that callers left
// was tried once more, or when the time for that is up.
bool Sender::collect(BootTime& next) {
  std::size_t renewing = 0, releasing = 0;
  Attempts dropped;  // Destroyed without the mutex.
  const Guard guard(leases_.mutex);
  const BootTime now = BootClock::now();
  look_for_abandoned(now);
  drop_surplus(dropped);
  bool idle = errands_.empty();
  for (const Attempt& attempt : in_flight_) {
    const Stage stage = attempt.stage();
    const bool renews = stage == Stage::renewing;
    if (renews) ++renewing;
    if (attempt.call() == Call::release && stage != Stage::awaiting_take) {
      ++releasing;
    }
    if (!renews && stage != Stage::releasing_take_again) idle = false;
  }
  const std::size_t before = in_flight_.size();
  next = BootTime::max();
  collect_renewals(now, renewing, next);
  const bool more = collect_releases(
      now, kReleasesAtOnce - std::min(releasing, kReleasesAtOnce), next);
  const bool others_wait = collect_asked();
  if (others_wait) next = now;
  // The attempt that the thread was woken for may be gone.  Its time is kept
  // even so: the next attempt is probably due later, and need not wake the
  // thread again.
  Sleeper& sleeper = leases_.sender;
  if (sleeper.sleeps_until() > now)
    next = std::min(next, sleeper.sleeps_until());
  sleeper.set_sleeps_until(next);
  if (!leases_.stopping) return true;
  next = std::min(next, leases_.stop_by);
  idle = idle && in_flight_.size() == before && errands_.empty() && !more &&
         !others_wait;
  ended_ = idle || now >= leases_.stop_by;
  return !ended_;
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
  for (; due.next() != BootTime::max(); ++renewing) {
    HeldLease& held = due.first();
    if (held.renewal_wait == nullptr && renewing >= kMostRenewals) return;
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
  if (held.renewal_wait != nullptr) return true;
  const BootTime end = held.lease.claim_end();
  const nanoseconds ttl = held.settings->ttl;
  const BootTime when =
      full ? RenewalRate::urgent_at(end, ttl) : rate_.begins_at(end, ttl);
  if (when <= now) return true;
  next = std::min(next, when);
  return false;
}

// In order of arrival, doubtful releases last.  A request that is in flight
// already, or a release that is too late or that unlock() waits for, needs no
// room.  Returns true if there was no room for some that are due.
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
    const ReleaseWait* const wait = one->held().release_wait;
    const bool goes_first =
        one->has_request() || (wait != nullptr && wait->goes_first);
    const bool needs_none = late || (goes_first && is_due(*one));
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
}

void Sender::finish(OneAttempt& one) {
  Attempt& attempt = one.front();
  const BootTime now = BootClock::now();
  attempt.release_instead(now + attempt.settings().ttl);
  attempt.wait_until(now);
  const bool throttled = attempt.answer().fault == Fault::throttled;
  if (throttled) attempt.plan_next();
  const BootTime due = attempt.due();
  release_at(due, one);
  leases_.sender.wake_at(due);
}

// If too many releases wait, takes out those that are worth least.  Doubtful
// ones come first, then those whose leases end first.
void Sender::drop_surplus(Attempts& dropped) {
  const auto worth = [](const Attempt& attempt) {
    return std::make_tuple(-doubt(attempt), attempt.deadline());
  };
  const auto counts = [](const Attempt& one) {
    return one.held().release_wait == nullptr && !one.has_request();
  };
  auto kept = static_cast<std::size_t>(
      std::count_if(releases_.begin(), releases_.end(), counts));
  for (; kept > kMostKept; --kept) {
    auto least = releases_.end();
    for (auto one = releases_.begin(); one != releases_.end(); ++one) {
      if (!counts(*one)) continue;
      if (least == releases_.end() || worth(*one) < worth(*least)) least = one;
    }
    dropped.splice(dropped.end(), releases_, least);
  }
}

// Tells the call that waits for the release how it stands.  `for_good`: no
// other request is sent.
void Sender::tell_of_release(const Attempt& attempt, bool for_good) {
  ReleaseWait* const wait = attempt.held().release_wait;
  if (wait == nullptr) return;
  Result& result = wait->result;
  const bool lost_before = is_loss(result.verdict);
  if (!lost_before && attempt.failing()) {
    sigv4::try_with_memory(
        [&] { attempt.answer().copy_fault_to(result.answer); });
  }
  if (!for_good) return;
  if (!lost_before) result.verdict = verdict_of_release(attempt);
  if (!lost_before && is_loss(result.verdict)) {
    result.lost_at = BootClock::now();
  }
  wait->host_waits = attempt.held().lease.waited_for();
  wait->over = true;
  attempt.held().release_wait = nullptr;
}

// --- Each attempt ------------------------------------------------------------

// Reads the clock after it has locked the mutex, because that may take long.
bool Sender::stamp(Attempt& attempt) {
  const Guard guard(leases_.mutex);
  const BootTime now = BootClock::now();
  const bool stopping = leases_.stopping;
  if (attempt.call() == Call::take) {
    const bool wanted = attempt.wait() != nullptr && !stopping;
    const bool late = attempt.will_be_sent() && now >= attempt.deadline();
    return wanted && !late && attempt.stamp(now);
  }
  if (attempt.call() == Call::release) {
    // DynamoDB may still apply the abandoned take, so it is released a second
    // time near the end of its lease.  At shutdown that is not worth waiting
    // for.
    const bool needless =
        stopping && attempt.stage() == Stage::releasing_take_again;
    if (now < attempt.deadline() && !needless) return attempt.stamp(now);
    tell_of_release(attempt, true);
    attempt.held().told.notify_all();
    return false;
  }
  const HeldLease& held = attempt.held();
  if (stopping || held.over() || held.renewing) return false;
  const RenewalWait* const wait = held.renewal_wait;
  if (wait != nullptr) attempt.give_up_at(wait->deadline);
  const bool wanted = wait != nullptr || held.is_renewed_at(now);
  return wanted && leases_.stamp(attempt, now);
}

void Sender::unstamp(Attempt& attempt) {
  const Guard guard(leases_.mutex);
  if (attempt.call() != Call::renew) return attempt.unstamp();
  attempt.held().renewing = false;
  leases_.unstamp(attempt);
}

// Needs no memory.
void Sender::conclude(OneAttempt one, bool given_up) {
  Attempt& attempt = one.front();
  attempt.finish(sigv4::Transport::timed_out);
  const HeldLeasePtr held = attempt.held().shared_from_this();
  sigv4::BellPtr bell;
  {
    const Guard guard(leases_.mutex);
    switch (attempt.call()) {
      case Call::renew:
        renewed(one);
        break;
      case Call::take:
        bell = taken(one, given_up);
        break;
      case Call::release:
        released(one);
        break;
    }
  }
  held->told.notify_all();
  if (bell != nullptr) bell->ring();
}

void Sender::renewed(OneAttempt& one) {
  Attempt& attempt = one.front();
  HeldLease& held = attempt.held();
  held.renewing = false;
  leases_.changed.notify_all();
  if (attempt.failing()) rate_.uncount(leases_.renewals_per_s);
  if (held.over()) return;
  leases_.receive(attempt);
  if (held.over()) return;
  const RenewalWait* const wait = held.renewal_wait;
  // The answer may have shown that an earlier renewal was applied, which did
  // not have the caller's changes.
  if (wait != nullptr && held.lease.counted_from() < wait->begun) {
    attempt.decide(Verdict::again);
  }
  if (attempt.verdict() == Verdict::again) return retry_renewal(one);
  Result done;
  done.verdict = Verdict::ours;
  leases_.end_wait(held, std::move(done));
  held.lease.carry(nullptr);
  leases_.plan_renewal(held,
                       held.lease.time_at_age(held.settings->renew_after));
}

void Sender::retry_renewal(OneAttempt& one) {
  Attempt& attempt = one.front();
  HeldLease& held = attempt.held();
  const bool goes_on = attempt.plan_next();
  if (!goes_on && held.renewal_wait != nullptr) {
    Result failed;
    sigv4::try_with_memory(
        [&] { attempt.answer().copy_fault_to(failed.answer); });
    leases_.end_wait(held, std::move(failed));
  }
  // It was made for a call that waits no more.
  const bool is_left =
      held.renewal_wait == nullptr && attempt.deadline() != BootTime::max();
  if (is_left) return leases_.resume_renewals(held);
  BootTime due = attempt.due();
  if (due == BootTime::max()) {  // The fault is final.
    const nanoseconds ttl = held.settings->ttl;
    due = BootClock::now() + ttl / kFinalRetriesPerLease;
  }
  leases_.renew_at(held, std::min(due, held.lease.claim_end()));
  held.retry.swap(one);
}

void Sender::released(OneAttempt& one) {
  Attempt& attempt = one.front();
  const bool was_take = attempt.stage() == Stage::awaiting_take;
  attempt.receive();
  const BootTime now = BootClock::now();
  const Verdict verdict = attempt.verdict();
  if (was_take) {
    --awaited_;
    if (attempt.needs_release()) release_at(now, one);
    return;
  }
  if (verdict == Verdict::again) {
    const bool last_try =
        leases_.stopping && attempt.stamped_at() >= leases_.stopping_since;
    const bool goes_on = attempt.plan_next() && !last_try;
    tell_of_release(attempt, !goes_on);
    if (goes_on) release_at(attempt.due(), one);
    return;
  }
  const bool was_held = attempt.stage() == Stage::releasing;
  if (was_held && is_loss(verdict)) leases_.report(attempt.held(), verdict);
  tell_of_release(attempt, true);
  // DynamoDB may still apply a take that it has not answered, even after a
  // release that found nothing.  So a second release is sent near the end of
  // such a lease.  Until then it has no request, and no destructor waits for
  // it.
  const bool may_come_yet = attempt.stage() == Stage::releasing_take &&
                            attempt.outcome_unknown() &&
                            attempt.answer().fault != Fault::none;
  const BootTime when = attempt.deadline() - attempt.settings().request_timeout;
  if (!may_come_yet || when <= now) return;
  attempt.release_again();
  release_at(when, one);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
