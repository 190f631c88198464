// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Takes wait for their turn while DynamoDB throttles.  Renewals and releases
// do not: they are retried sooner when little time is left.
#include "pace.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using dynamodb::Retry;
using std::chrono::nanoseconds;

namespace {

// Requests that answers called for at once, before a pause.  The protocol needs
// fewer, so only an engine that contradicts itself gets here.
constexpr int kAtOnce = 4;
constexpr std::chrono::milliseconds kPause{500};

constexpr std::chrono::milliseconds kShortestDelay{5};
// Of a release that was throttled, which goes on in the background.
constexpr std::chrono::milliseconds kShortestThrottledDelay{400};
// So many renewals may be retried often although they were throttled.
constexpr int kFew = 8;

// The last request of a take needs two round trips: at least this long where
// none was measured, and at most this long where one hung.
constexpr std::chrono::milliseconds kShortestLast{50};
constexpr std::chrono::milliseconds kLongestLast{500};

// The rate limit of renewals: a multiple of the rate that all leases need on
// average, and its minimum.
constexpr double kMostTimesMean = 2.25;
constexpr double kLeastRenewalsPerSecond = 100;
// How many more may begin at once if fewer than the limit began before.
constexpr int kMaxBurst = 8;
// In the last eighth of its lease a renewal ignores the rate limit.
constexpr int kUrgentPart = 8;

nanoseconds between_renewals(double needed) {
  return nanoseconds(static_cast<std::int64_t>(
      1e9 / std::max(kMostTimesMean * needed, kLeastRenewalsPerSecond)));
}

}  // namespace

Pace::Pace(dynamodb::RetryBudget& budget, Call call)
    : budget_(budget),
      call_(call),
      turn_(budget.throttle()),
      retry_(budget, call == Call::take ? Retry::Urgency::can_wait
                                        : Retry::Urgency::urgent) {}

nanoseconds Pace::throttle_wait() {
  const bool waits =
      call_ == Call::take && (budget_.throttle().limits() || turn_.waits());
  return waits ? turn_.wait(BootClock::now()) : nanoseconds::zero();
}

void Pace::receive(const Answer& answer) {
  dynamodb::Throttle& throttle = budget_.throttle();
  if (answered(answer.fault)) {
    if (throttle.count()) throttle.answered(BootClock::now());
    retry_.success();
    set_throttled_renewal(false);
  } else if (answer.fault == Fault::throttled) {
    throttle.refused(BootClock::now());
    set_throttled_renewal(call_ == Call::renew);
  }
}

void Pace::set_throttled_renewal(bool is_one) {
  if (std::exchange(is_throttled_renewal_, is_one) == is_one) return;
  budget_.throttle().count_throttled_renewals(is_one ? 1 : -1);
}

// A take that waits sends a last request when just enough time is left for its
// answer: a take that is abandoned in flight must be cleaned up.  It sends none
// while the retry budget is spent.
nanoseconds Pace::fitted(nanoseconds delay, nanoseconds left,
                         const Answer& answer) const {
  if (call_ != Call::take) {
    return shortened(delay, left, answer.fault == Fault::throttled);
  }
  const nanoseconds needed = std::clamp<nanoseconds>(
      2 * (answer.received_at - answer.sent_at), kShortestLast, kLongestLast);
  if (delay <= left - needed) return delay;
  if (left <= needed || retry_.held_back()) return std::max(delay, left);
  return std::max<nanoseconds>(left - needed, answer.retry_after);
}

// Renewals and releases are never held back until it is too late: at most half
// of the time left is waited.  While a table is throttled only some requests
// succeed.  A few throttled renewals are retried often (a single one about a
// hundred times), many as seldom as after other faults.  A release is not
// urgent: its lease ends anyway.
nanoseconds Pace::shortened(nanoseconds delay, nanoseconds left,
                            bool throttled) const {
  nanoseconds longest = left / 2;
  nanoseconds shortest = kShortestDelay;
  if (is_throttled_renewal_) {
    // Beyond this number, half of the time left is the smaller limit, and for a
    // lease of a year the product might overflow 64 bits.
    const int others =
        std::min(budget_.throttle().throttled_renewals() - 1, 7 * kFew);
    longest = std::min(longest, left * (kFew + others) / (16 * kFew));
  } else if (throttled) {
    shortest = kShortestThrottledDelay;
  }
  return std::min(delay, std::max(longest, shortest));
}

std::optional<nanoseconds> Pace::delay(const Answer& answer, nanoseconds left) {
  std::optional<nanoseconds> delay = nanoseconds::zero();
  if (!answered(answer.fault)) {
    delay = retry_.after(answer);
  } else if (++at_once_ > kAtOnce) {
    delay = budget_.jitter(kPause);
  }
  // No delay needs no fitting: the cause is gone.
  const bool waits = delay && *delay > nanoseconds::zero();
  return waits ? fitted(*delay, left, answer) : delay;
}

BootTime RenewalRate::begins_at(BootTime claim_end, nanoseconds ttl) const {
  return std::min(next_, urgent_at(claim_end, ttl));
}

BootTime RenewalRate::urgent_at(BootTime claim_end, nanoseconds ttl) {
  return claim_end - ttl / kUrgentPart;
}

void RenewalRate::count(BootTime now, double needed) {
  if (next_ > now) return;
  const nanoseconds between = between_renewals(needed);
  next_ = std::max(next_, now - kMaxBurst * between) + between;
}

void RenewalRate::uncount(double needed) { next_ -= between_renewals(needed); }

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
