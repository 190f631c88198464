// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Each held lease has at most one plan, to renew it.  It also has one alarm,
// for whatever the notifier must do next: warn of danger, or report that the
// claim has ended.
#include "leases.hpp"

#include <algorithm>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using std::chrono::nanoseconds;

namespace {

double per_second(nanoseconds every) {
  return 1 / std::chrono::duration<double>(every).count();
}

}  // namespace

// One by one: a thousand nested destructors need a large stack.
Leases::~Leases() {
  while (first_loss != nullptr) take_loss();
}

// Allocates first, so that a failure changes nothing.
void Leases::add(HeldLease& held) {
  for (Agenda* agenda : {&renewals, &due, &alarms}) {
    agenda->make_room(alarms.size() + 1);
  }
  held.release.emplace_back(Call::release, held);
  held.since = BootClock::now();
  const nanoseconds renew_after = held.settings->renew_after;
  if (renew_after > nanoseconds::zero()) {
    renewals_per_s += per_second(renew_after);
    // Locks that were taken together are not renewed together.
    const BootTime when = held.lease.time_at_age(renew_after);
    const nanoseconds early =
        std::max((when - held.since) / 2, nanoseconds::zero());
    plan_renewal(held, when - budget.jitter(early));
  }
  held.lease.apply(client.clock());
  set_alarm(held);
  publish(held, held.lease.claim_end());
}

// --- Plans -------------------------------------------------------------------

void Leases::renew_at(HeldLease& held, BootTime when) {
  unplan(held);
  held.renewal_on = &renewals;
  renewals.set(held, when);
  sender.wake_at(when);
}

void Leases::plan_renewal(HeldLease& held, BootTime when) {
  if (held.is_renewed_at(when)) renew_at(held, when);
}

void Leases::renew_now(HeldLease& held, const ChangesPtr& changes,
                       RenewalWait& wait) {
  held.lease.carry(changes);
  held.renewal_wait = &wait;
  renew_at(held, wait.begun);
}

void Leases::end_wait(HeldLease& held, Result&& result) {
  RenewalWait* const wait = std::exchange(held.renewal_wait, nullptr);
  if (wait == nullptr) return;
  wait->result = std::move(result);
  wait->over = true;
  held.told.notify_all();
  changed.notify_all();
}

void Leases::resume_renewals(HeldLease& held) {
  if (held.over() || held.renewing) return;
  held.lease.carry(nullptr);
  unplan(held);
  plan_renewal(held,
               std::max(held.lease.time_at_age(held.settings->renew_after),
                        BootClock::now()));
}

void Leases::unplan(HeldLease& held) {
  if (held.renewal_on != nullptr) held.renewal_on->set(held, BootTime::max());
  held.retry.clear();
}

// Claims that end first are renewed first.  A renewal that got no answer is
// repeated after the others, so that requests that hang do not hold them up.
BootTime Leases::due_key(const HeldLease& held) {
  if (held.renewal_wait != nullptr) return BootTime::min();
  const BootTime end = held.lease.claim_end();
  return !held.retry.empty() && held.retry.front().unanswered()
             ? end + held.settings->ttl
             : end;
}

BootTime Leases::danger_at(const HeldLease& held) const {
  const MutexSettings& settings = *held.settings;
  const bool wanted =
      !settings.silenced && (settings.hears_dangers || client.log());
  return wanted && !held.in_danger ? held.lease.claim_end() - settings.safe_time
                                   : BootTime::max();
}

void Leases::set_alarm(HeldLease& held) {
  const BootTime when = std::min(held.lease.claim_end(), danger_at(held));
  alarms.set(held, when);
  notifier.wake_at(when);
  // `due` is sorted by the end of the claim, which may have changed.
  if (held.renewal_on == &due && held.renewal.planned()) {
    due.set(held, due_key(held));
  }
}

// --- Renewals ----------------------------------------------------------------

bool Leases::stamp(Attempt& attempt, BootTime now) {
  HeldLease& held = attempt.held();
  if (!attempt.stamp(now)) {
    lose(held, Verdict::expired);
    return false;
  }
  held.renewing = true;
  publish(held, held.lease.claim_end());
  set_alarm(held);
  return true;
}

void Leases::unstamp(Attempt& attempt) {
  HeldLease& held = attempt.held();
  changed.notify_all();
  if (held.over()) return;
  attempt.unstamp();
  publish(held, held.lease.claim_end());
  set_alarm(held);
}

// REQUIRES: not over.
void Leases::receive(Attempt& attempt) {
  HeldLease& held = attempt.held();
  attempt.receive();
  const Verdict verdict = attempt.verdict();
  if (verdict != Verdict::ours && verdict != Verdict::again) {
    return lose(held, verdict);
  }
  publish(held, held.lease.claim_end());
  if (verdict == Verdict::ours) held.in_danger = false;
  set_alarm(held);
}

// --- Ends --------------------------------------------------------------------

// Stores the end of the claim where Mutex::claim_end() reads it.  REQUIRES: the
// lease is the mutex's current one, so its release has not begun.
void Leases::publish(const HeldLease& held, BootTime claim_end) {
  held.settings->claim_end.store(claim_end, std::memory_order_release);
}

// Cancels the plan and the alarm of the lease, and ends its claim.
void Leases::remove(HeldLease& held) {
  if (held.settings->renew_after > nanoseconds::zero()) {
    renewals_per_s -= per_second(held.settings->renew_after);
  }
  unplan(held);
  alarms.set(held, BootTime::max());
  publish(held, BootTime::min());
}

void Leases::lose(HeldLease& held, Verdict why) {
  remove(held);
  report(held, why);
  end_wait(held, end_of(held));
}

// A lease that is over may be in use by its release, without the mutex.
void Leases::lose_if_ended(HeldLease& held, BootTime now) {
  if (held.over() || now < held.lease.claim_end()) return;
  lose(held, Verdict::expired);
}

void Leases::report(HeldLease& held, Verdict why) {
  if (held.loss) return;
  held.loss = why;
  held.lost_at =
      why == Verdict::expired ? held.lease.claim_end() : BootClock::now();
  const MutexSettings& settings = *held.settings;
  const bool wanted =
      !settings.silenced && (settings.hears_losses || client.log());
  if (!wanted || stopping) return;
  // Appends to the list of losses without allocating.
  HeldLeasePtr& end_of_list =
      last_loss != nullptr ? last_loss->next_lost : first_loss;
  end_of_list = held.shared_from_this();
  last_loss = &held;
  notifier.wake_at(BootTime::min());
}

HeldLeasePtr Leases::take_loss() {
  HeldLeasePtr lost = std::move(first_loss);
  first_loss = std::move(lost->next_lost);
  if (first_loss == nullptr) last_loss = nullptr;
  return lost;
}

OneAttempt Leases::begin_release(HeldLease& held) {
  if (held.release_begun) return {};
  lose_if_ended(held, BootClock::now());
  if (!held.loss) remove(held);
  held.release_begun = true;
  end_wait(held, end_of(held));
  // A renewal in flight is abandoned, so its answer will not reach this lease.
  // The lease only learns what the clock knows by now.
  if (held.renewing) held.lease.apply(client.clock());
  held.lease.carry(nullptr);
  changed.notify_all();
  return std::exchange(held.release, {});
}

Result Leases::end_of(const HeldLease& held) {
  Result result;
  result.verdict = held.loss.value_or(Verdict::not_held);
  if (held.loss) result.lost_at = held.lost_at;
  return result;
}

void Leases::check_clock() {
  const Guard guard(mutex);
  const dynamodb::ServiceClock clock = client.clock();
  // Claims only get shorter, so set_alarm() moves a lease only towards the
  // front, past leases that this loop has handled.
  for (std::size_t i = 0; i < alarms.size(); ++i) {
    HeldLease& held = alarms.at(i);
    held.lease.apply(clock);
    publish(held, held.lease.claim_end());
    set_alarm(held);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
