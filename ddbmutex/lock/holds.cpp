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

// Beyond this many releases, an abandoned take is not released.  If it got the
// lock, the lock is free when its lease ends.
constexpr std::size_t kMostReleases = 1000;

}  // namespace

// --- Phases ------------------------------------------------------------------

HoldPtr Holds::make(const MutexSettingsPtr& settings) {
  const auto hold = std::make_shared<Hold>(settings);
  Order nodes;  // If memory runs out, nothing has changed.
  hold->send.enter(nodes, hold);
  hold->report.enter(nodes, hold);
  const Guard guard(mutex);
  hold->send.move(to_send, kNothingDue);
  hold->report.move(to_report, kNothingDue);
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
  hold.lease.apply(client.clock());
  const nanoseconds renew_after = hold.settings->renew_after;
  if (renew_after > nanoseconds::zero()) {
    lines.add_lease(renew_after);
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
    lines.remove_lease(renew_after);
  }
  park(hold);
  hold.report.move(to_report, kNothingDue);
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

// DynamoDB's clock may show that the claim ends sooner.  Once the release has
// begun, nothing applies that any more, so it is done first.
bool Holds::release(Hold& hold) {
  const BootTime now = BootClock::now();
  if (hold.phase == Phase::held) hold.lease.apply(client.clock());
  lose_if_ended(hold, now);
  if (hold.phase == Phase::held) {
    end_claim(hold);
    tell(hold, hold.outcome());
  }
  hold.lease.carry(nullptr);
  // After `expired` the row may still be ours, but not after other losses.
  if (hold.loss && hold.loss->why != Verdict::expired) {
    end(hold);
    return false;
  }
  enter(hold, Phase::releasing);
  hold.until = now + hold.settings->ttl;
  hold.begin_series();
  return true;
}

void Holds::leave(Hold& hold) {
  hold.wait = nullptr;
  give_up(hold);
  if (hold.flight != nullptr) {
    sender.wake_now();
  } else {
    release_if_needed(hold);
  }
}

void Holds::give_up(Hold& hold) {
  // A later answer may clear lease.row_is_ours().
  hold.take_unknown = hold.needs_release();
  enter(hold, Phase::releasing);
  hold.until = BootClock::now() + hold.settings->ttl;
}

void Holds::release_if_needed(Hold& hold) {
  // This one is counted, too.  Locks that were held are always released.
  const bool too_many = count(Phase::releasing) > kMostReleases;
  if (!hold.needs_release() || too_many) {
    end(hold);
    return;
  }
  hold.series.emplace(budget, Call::release, hold.until);
  BootTime when = BootClock::now();
  if (hold.answer.fault == Fault::throttled) {  // Not at once.
    const Hold::Next next = hold.plan_next();
    if (next.is == Hold::Next::Is::due) when = next.at;
  }
  hold.answer = {};  // It was the take's.
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
  const bool is_due =
      is_heard(settings, settings.hears_dangers) && !hold.danger_reported;
  return is_due ? hold.lease.claim_end() - settings.safe_time : kNever;
}

bool Holds::is_heard(const MutexSettings& settings, bool by_listener) const {
  return !settings.silenced && (by_listener || client.log());
}

void Holds::report(Hold& hold, Verdict why) {
  if (hold.loss) return;
  hold.loss = {
      why, why == Verdict::expired ? hold.lease.claim_end() : BootClock::now()};
  const MutexSettings& settings = *hold.settings;
  if (!is_heard(settings, settings.hears_losses) || stopping) return;
  hold.report.move(to_report, {kLossRank, hold.loss->at});
  notifier.wake_now();
}

void Holds::forget_report(Hold& hold) {
  if (hold.phase == Phase::over) {
    hold.report.leave();
  } else {
    hold.report.move(to_report, kNothingDue);
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
  const BootTime last_answered = hold.wait->answered_at;
  hold.wait->answered_at = BootClock::now();
  if (!hold.failing()) outage.since.reset();
  // After `skewed_time` the request is signed again at once.
  if (!is_transient(answer.fault) || answer.fault == Fault::skewed_time) return;
  if (!outage.last) {
    sigv4::try_with_memory(
        [&] { outage.last = std::make_unique<dynamodb::Answer>(); });
  }
  if (outage.last) answer.copy_fault_to(*outage.last);
  if (outage.since) return;
  outage.since = last_answered;
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
    // publish() may move the Hold to behind `at`.  When the loop meets it
    // again, nothing has changed, so it stays where it is, and the loop ends.
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
