// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// First the phases of a Hold, one function for each step; then its plans, and
// what is reported of it.
#include "holds.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/memory.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Fault;
using std::chrono::nanoseconds;
using Phase = Hold::Phase;

namespace {

// Beyond this many, an abandoned take is not released.  If it got the lock, the
// lock is free when its lease ends.
constexpr std::size_t kMostReleases = 1000;

double per_second(nanoseconds every) {
  return 1 / std::chrono::duration<double>(every).count();
}

}  // namespace

// --- Phases ------------------------------------------------------------------

HoldPtr Holds::make(const MutexSettingsPtr& settings) {
  const auto hold = std::make_shared<Hold>(settings);
  Order nodes;  // If memory runs out, nothing has changed.
  hold->send.enter(nodes, hold);
  hold->report.enter(nodes, hold);
  const Guard guard(mutex);
  hold->send.move(to_send, {});
  hold->report.move(to_report, {});
  ++in_phase[static_cast<std::size_t>(Phase::taking)];
  return hold;
}

void Holds::enter(Hold& hold, Phase phase) {
  --in_phase[static_cast<std::size_t>(hold.phase)];
  ++in_phase[static_cast<std::size_t>(phase)];
  hold.phase = phase;
}

void Holds::keep(Hold& hold) {
  enter(hold, Phase::held);
  const BootTime now = BootClock::now();
  hold.held_since = now;
  hold.until = kNever;
  hold.series.reset();
  hold.lease.apply(client.clock());
  const nanoseconds renew_after = hold.settings->renew_after;
  if (renew_after > nanoseconds::zero()) {
    lines.renewals_per_s += per_second(renew_after);
    // Locks that were taken together are not renewed together.
    const BootTime when = hold.lease.time_at_age(renew_after);
    const nanoseconds early = std::max((when - now) / 2, nanoseconds::zero());
    plan_renewal(hold, when - budget.jitter(early));
  }
  publish(hold);
}

// Nothing is planned, reported or claimed any more.
void Holds::end_claim(Hold& hold) {
  const nanoseconds renew_after = hold.settings->renew_after;
  if (renew_after > nanoseconds::zero()) {
    lines.renewals_per_s -= per_second(renew_after);
  }
  park(hold);
  hold.report.move(to_report, {});
  hold.settings->claim_end.store(BootTime::min(), std::memory_order_release);
}

void Holds::lose(Hold& hold, Verdict why) {
  end_claim(hold);
  enter(hold, Phase::lost);
  report(hold, why);
  tell(hold, hold.outcome());
}

void Holds::lose_if_ended(Hold& hold, BootTime now) {
  if (hold.phase != Phase::held || now < hold.lease.claim_end()) return;
  lose(hold, Verdict::expired);
}

// Later answers do not apply the clock to the lease, so it is done now.
bool Holds::release(Hold& hold) {
  const BootTime now = BootClock::now();
  if (hold.phase == Phase::held) hold.lease.apply(client.clock());
  lose_if_ended(hold, now);
  if (hold.phase == Phase::held) end_claim(hold);
  tell(hold, hold.outcome());
  hold.lease.carry(nullptr);
  // After other losses the row is known not to be ours.
  if (hold.loss && hold.loss->why != Verdict::expired) {
    end(hold);
    return false;
  }
  enter(hold, Phase::releasing);
  hold.outcome_unknown = false;
  hold.verdict = Verdict::again;  // Its last answer was to a take or a renewal.
  hold.answer = {};
  hold.until = now + hold.settings->ttl;
  return true;
}

void Holds::leave(Hold& hold) {
  hold.wait = nullptr;
  give_up(hold);
  if (hold.flight != nullptr) {
    sender.wake_at(BootTime::min());
  } else {
    release_if_needed(hold);
  }
}

void Holds::give_up(Hold& hold) {
  hold.outcome_unknown = hold.needs_release();  // Later answers may hide it.
  enter(hold, Phase::releasing);
  hold.until = BootClock::now() + hold.settings->ttl;
}

void Holds::release_if_needed(Hold& hold) {
  // Counts this one, too.  Locks that were held are always released.
  const bool too_many = count(Phase::releasing) > kMostReleases;
  if (!hold.needs_release() || too_many) {
    end(hold);
    return;
  }
  BootTime when = BootClock::now();
  if (hold.answer.fault == Fault::throttled) {  // Not at once.
    hold.series.emplace(budget, Call::release, hold.until);
    if (hold.plan_next() == Hold::Next::when_due) when = hold.due;
  }
  send_at(hold, when);
}

void Holds::release_again(Hold& hold, BootTime when) {
  if (count(Phase::releasing_again) >= kMostReleases) {
    end(hold);
    return;
  }
  enter(hold, Phase::releasing_again);
  send_at(hold, when);
}

// A loss that was not reported yet is still reported.
void Holds::end(Hold& hold) {
  const HoldPtr kept_alive = hold.send.leave();
  enter(hold, Phase::over);
  if (!hold.has_loss_to_tell()) hold.report.leave();
}

// --- Plans -------------------------------------------------------------------

void Holds::send_at(Hold& hold, BootTime when) {
  hold.send.move(to_send, {0, when});
  sender.wake_at(when);
}

void Holds::plan_renewal(Hold& hold, BootTime when) {
  if (hold.is_renewed_at(when)) {
    send_at(hold, when);
  } else {
    park(hold);
  }
}

void Holds::resume_renewals(Hold& hold) {
  if (hold.phase != Phase::held) return;
  hold.lease.carry(nullptr);
  hold.until = kNever;
  plan_renewal(hold,
               std::max(hold.lease.time_at_age(hold.settings->renew_after),
                        BootClock::now()));
}

// --- Reports and answers to calls --------------------------------------------

// DdbMutex::owns_lock() reads the end of the claim without locking anything.
void Holds::publish(Hold& hold) {
  const BootTime end = hold.lease.claim_end();
  hold.settings->claim_end.store(end, std::memory_order_release);
  const BootTime when = std::min(end, danger_at(hold));
  hold.report.move(to_report, {0, when});
  notifier.wake_at(when);
}

BootTime Holds::danger_at(const Hold& hold) const {
  const MutexSettings& settings = *hold.settings;
  const bool wanted =
      !settings.silenced && (settings.hears_dangers || client.log());
  return wanted && !hold.in_danger ? hold.lease.claim_end() - settings.safe_time
                                   : kNever;
}

void Holds::report(Hold& hold, Verdict why) {
  if (hold.loss) return;
  hold.loss = {
      why, why == Verdict::expired ? hold.lease.claim_end() : BootClock::now()};
  const MutexSettings& settings = *hold.settings;
  const bool wanted =
      !settings.silenced && (settings.hears_losses || client.log());
  if (!wanted || stopping) return;
  hold.report.move(to_report, {kLossRank, hold.loss->at});
  notifier.wake_at(BootTime::min());
}

void Holds::forget_report(Hold& hold) {
  if (hold.phase == Phase::over) {
    hold.report.leave();
  } else {
    hold.report.move(to_report, {});
  }
}

void Holds::tell(Hold& hold, Result&& result) {
  Wait* const wait = hold.wait;
  if (wait == nullptr) return;
  hold.wait = nullptr;
  wait->result = std::move(result);
  wait->over = true;
  hold.told.notify_all();
  changed.notify_all();
}

void Holds::note_outage(const Hold& hold) {
  const dynamodb::Answer& answer = hold.answer;
  Outage& outage = hold.settings->outage;
  const BootTime begun = hold.wait->begun;
  hold.wait->begun = BootClock::now();
  if (!hold.failing()) outage.since.reset();
  // After `skewed_time` the request is signed again at once.
  if (!is_transient(answer.fault) || answer.fault == Fault::skewed_time) return;
  if (!outage.last) {
    sigv4::try_with_memory(
        [&] { outage.last = std::make_unique<dynamodb::Answer>(); });
  }
  if (outage.last) answer.copy_fault_to(*outage.last);
  if (outage.since) return;
  outage.since = begun;
  outage.warned = false;
  hold.wait->outage_began = true;
  hold.wait->bell->ring();
}

BootTime Holds::patience_ends(const MutexSettings& settings,
                              std::optional<BootTime> patient_since) {
  const std::optional<BootTime>& since = settings.outage.since;
  if (!patient_since || !since) return kNever;
  return add_saturating(std::max(*since, *patient_since), settings.patience);
}

void Holds::check_clock() {
  const Guard guard(mutex);
  const dynamodb::ServiceClock clock = client.clock();
  for (auto at = to_report.begin(); at != to_report.end();) {
    Hold& hold = *at->second;
    ++at;  // Before the Hold moves.
    if (hold.phase != Phase::held) continue;
    const BootTime end = hold.lease.claim_end();
    hold.lease.apply(clock);
    // An unchanged one must not move, or it would come again and again.  A
    // changed one comes again at most once.
    if (hold.lease.claim_end() == end) continue;
    publish(hold);
    lines.update(hold);
    // A shorter claim is renewed sooner.
    const BootTime when = hold.lease.time_at_age(hold.settings->renew_after);
    const BootTime planned = hold.send.key().when;
    const bool is_planned = hold.send.is_in(to_send) && planned != kNever;
    if (is_planned && when < planned && hold.is_renewed_at(when)) {
      send_at(hold, when);
    }
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
