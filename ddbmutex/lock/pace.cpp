// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Takes are held back while many requests fail.  Renewals and releases are not:
// they are retried sooner when little time is left.
#include "pace.hpp"

#include <algorithm>
#include <cstdint>

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
// The longest delay of a renewal or release, as a part of the time left.
constexpr int kLongestPart = 2;
// Of a renewal that was throttled: in half a lease of a minute it is retried 40
// times.
constexpr int kLongestPartThrottled = 8;

// The last request of a take needs two round trips: at least this long where
// none was measured, and at most this long where one hung.
constexpr std::chrono::milliseconds kShortestLast{50};
constexpr std::chrono::milliseconds kLongestLast{500};

// The rate limit of renewals is 2.25 times the mean rate that all leases need,
// and at least 100 a second.
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
      retry_(budget, call == Call::take ? Retry::Urgency::can_wait
                                        : Retry::Urgency::urgent) {}

void Pace::receive(const Answer& answer) {
  if (answered(answer.fault)) retry_.success();
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

// Renewals and releases are never held back until it is too late.  While a
// table is throttled only some requests succeed, so a throttled renewal is
// retried often.
nanoseconds Pace::shortened(nanoseconds delay, nanoseconds left,
                            bool throttled) const {
  const bool presses = call_ == Call::renew && throttled;
  const nanoseconds longest =
      left / (presses ? kLongestPartThrottled : kLongestPart);
  return std::min(delay, std::max<nanoseconds>(longest, kShortestDelay));
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
