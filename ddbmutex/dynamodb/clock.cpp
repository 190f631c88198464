// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The clock learns in receive() and answers with bounds.  While it knows two
// intervals that contradict each other, all bounds allow for both.
#include "clock.hpp"

#include <algorithm>

#include "../../sigv4/utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::nanoseconds;

namespace {

// A boot clock that is slow by 1 part in kRateMargin counts kSlowest parts
// while kSlowest + 1 parts pass.
constexpr int kSlowest = kRateMargin - 1;

// How far a bound that was learned at `then` may be off at `now`, which may
// also be earlier.
nanoseconds drift(BootTime then, BootTime now) {
  const nanoseconds age = now > then ? now - then : then - now;
  return age / kSlowest + nanoseconds(1);
}

}  // namespace

std::optional<ServiceTime> believable_date(std::string_view http_date) {
  const auto unix_seconds = sigv4::parse_http_date(http_date);
  if (!unix_seconds) return std::nullopt;
  if (*unix_seconds < kFirstBelievable.count() ||
      *unix_seconds >= kLastBelievable.count()) {
    return std::nullopt;
  }
  return std::chrono::seconds(*unix_seconds);
}

nanoseconds ServiceClock::Interval::low_now(BootTime now) const {
  return low - drift(low_at, now);
}

nanoseconds ServiceClock::Interval::high_now(BootTime now) const {
  return high + drift(high_at, now);
}

bool ServiceClock::Interval::meets(const Interval& other, BootTime now) const {
  return low_now(now) <= other.high_now(now) &&
         other.low_now(now) <= high_now(now);
}

ServiceClock::Interval ServiceClock::Interval::within(const Interval& other,
                                                      BootTime now) const {
  const Interval& low_of = other.low_now(now) > low_now(now) ? other : *this;
  const Interval& high_of = other.high_now(now) < high_now(now) ? other : *this;
  return {low_of.low, high_of.high, low_of.low_at, high_of.high_at};
}

ServiceClock::Interval ServiceClock::Interval::around(const Interval& other,
                                                      BootTime now) const {
  const Interval& low_of = other.low_now(now) < low_now(now) ? other : *this;
  const Interval& high_of = other.high_now(now) > high_now(now) ? other : *this;
  return {low_of.low, high_of.high, low_of.low_at, high_of.high_at};
}

void ServiceClock::receive(BootTime sent, BootTime received,
                           std::optional<ServiceTime> date) {
  answered_ = true;
  if (!date) return;
  const Interval heard = {
      *date - received.time_since_epoch(),
      *date + std::chrono::seconds(1) - sent.time_since_epoch(), received,
      sent};
  const Interval widened = {heard.low - kAgreement, heard.high + kAgreement,
                            heard.low_at, heard.high_at};
  if (!current_) {
    current_ = widened;
  } else if (newer_) {
    receive_in_doubt(heard, widened, sent, received);
  } else if (!heard.meets(*current_, received)) {
    newer_ = widened;
    newer_received_ = received;
    ++contradictions_;
  } else if (sent >= newer_received_) {
    current_ = current_->within(widened, received);
  }
}

// An answer that fits only one of the two intervals decides between them, but
// only if its request was sent after the newer interval had been learned: an
// answer from before a stop of the machine may arrive after a later one.  For
// the same reason, answers to earlier requests never narrow a bound.
void ServiceClock::receive_in_doubt(const Interval& heard,
                                    const Interval& widened, BootTime sent,
                                    BootTime received) {
  const bool fits_older = heard.meets(*current_, received);
  const bool fits_newer = heard.meets(*newer_, received);
  if (!fits_older && !fits_newer) {  // It contradicts both.
    current_ = current_->around(*newer_, received);
    newer_ = widened;
    newer_received_ = received;
    ++contradictions_;
    return;
  }
  if (sent < newer_received_) return;
  if (fits_older) current_ = current_->within(widened, received);
  if (fits_newer) newer_ = newer_->within(widened, received);
  if (fits_older && fits_newer) {
    if (!current_->meets(*newer_, received)) return;
    current_ = current_->around(*newer_, received);
  } else if (fits_newer) {
    current_ = newer_;
  }
  newer_.reset();
}

ServiceTime ServiceClock::earliest(BootTime now) const {
  nanoseconds low = current_->low_now(now);
  if (newer_) low = std::min(low, newer_->low_now(now));
  return now.time_since_epoch() + low;
}

ServiceTime ServiceClock::latest(BootTime now) const {
  nanoseconds high = current_->high_now(now);
  if (newer_) high = std::max(high, newer_->high_now(now));
  return now.time_since_epoch() + high;
}

ServiceTime ServiceClock::middle(BootTime now) const {
  const Interval& believed = newer_ ? *newer_ : *current_;
  const nanoseconds low = believed.low_now(now);
  return now.time_since_epoch() + low + (believed.high_now(now) - low) / 2;
}

// The inverse of latest(t) = t + high + |t - high_at| / kSlowest + 1 ns, which
// rises with t on either side of high_at.  For example, with kSlowest = 99 it
// rises by 100 ns in 99 ns after high_at, and by 98 ns in 99 ns before it.
// Rounded down: a claim may end early, never late.
BootTime ServiceClock::Interval::when_latest_is(ServiceTime at) const {
  const nanoseconds from_high_at =
      at - high - high_at.time_since_epoch() - nanoseconds(1);
  const int rate =
      from_high_at >= nanoseconds::zero() ? kSlowest + 1 : kSlowest - 1;
  // Divided first: the product of a far time would overflow.
  const nanoseconds step = from_high_at / rate;
  const nanoseconds rest = from_high_at % rate;
  return high_at + step * kSlowest + rest * kSlowest / rate - nanoseconds(1);
}

BootTime ServiceClock::when_latest_is(ServiceTime at) const {
  if (!current_) return BootTime::max();
  BootTime when = current_->when_latest_is(at);
  if (newer_) when = std::min(when, newer_->when_latest_is(at));
  return when;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
