// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The time by DynamoDB's clock, which is known as an interval [earliest,
// latest].
//
// Every answer has a Date in whole seconds.  If a request was sent at s and
// answered at r on the boot clock, `Date: D` shows that service time minus boot
// time was at least D - r and less than D + 1 second - s.  These intervals are
// intersected.  First each is made wider by kAgreement at both ends, because
// the clocks of DynamoDB's front ends differ.  And each bound moves outwards by
// 1/99 of its age, because the rate of a boot clock may be wrong by 1 %: a slow
// one shows 99 s when 100 s have passed.
//
// This file reads no clock: the caller passes the time.
//
// Thread safety: one thread at a time.  A copy is cheap, and is a snapshot.
#ifndef DDBMUTEX_CLOCK_HPP
#define DDBMUTEX_CLOCK_HPP

#include <chrono>
#include <optional>
#include <string_view>

#include "../../sigv4/boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Time by DynamoDB's clock since 1970-01-01 UTC.
using ServiceTime = std::chrono::nanoseconds;

// A Date is only believed between these: after DynamoDB was introduced, and
// well before the end of 64 bits of nanoseconds.
constexpr std::chrono::seconds kFirstBelievable{1325376000};
constexpr std::chrono::seconds kLastBelievable{3786912000};

// How far the clocks of DynamoDB's front ends may differ.  The price: a machine
// that was stopped for that long may not notice it.
constexpr std::chrono::nanoseconds kAgreement = std::chrono::milliseconds(250);

// How far a clock's rate may be off: 1 part in this many.
constexpr int kRateMargin = 100;

// The service time of an HTTP Date; nothing if it is malformed or implausible.
std::optional<ServiceTime> believable_date(std::string_view http_date);

class ServiceClock {
 public:
  // Learns from an answer.  `date` is empty if it had no plausible Date.
  // REQUIRES: sent <= received.
  void receive(BootTime sent, BootTime received,
               std::optional<ServiceTime> date);

  // Whether there was a Date.  REQUIRED by earliest(), latest() and middle().
  bool known() const { return current_.has_value(); }
  // Whether there were answers, but none with a plausible Date.
  bool answers_lack_date() const { return answered_ && !known(); }
  // Whether the last answers contradict each other, because this machine was
  // stopped from outside, or front ends disagree.  Until another answer
  // decides, earliest() and latest() allow for both.
  bool in_doubt() const { return newer_.has_value(); }
  // How often answers have contradicted what was known.
  int contradictions() const { return contradictions_; }

  ServiceTime earliest(BootTime now) const;
  ServiceTime latest(BootTime now) const;
  // REQUIRES: known().
  std::chrono::nanoseconds uncertainty(BootTime now) const {
    return latest(now) - earliest(now);
  }
  // The best guess, for signing.  In doubt it is that of the newer answer.
  ServiceTime middle(BootTime now) const;

  // The boot time at which latest() reaches `at`; max() unless known().
  BootTime when_latest_is(ServiceTime at) const;

 private:
  // Service time minus boot time.  The answer was made at some time from s to
  // r.  The worst case is r for the low bound and s for the high one, so that
  // is where their drift is counted from.
  struct Interval {
    std::chrono::nanoseconds low, high;
    BootTime low_at, high_at;

    std::chrono::nanoseconds low_now(BootTime now) const;
    std::chrono::nanoseconds high_now(BootTime now) const;
    bool meets(const Interval& other, BootTime now) const;
    // The intersection.
    Interval within(const Interval& other, BootTime now) const;
    // The smallest interval that contains both.
    Interval around(const Interval& other, BootTime now) const;
    BootTime when_latest_is(ServiceTime at) const;
  };

  // `widened` is `heard` made wider by kAgreement.
  void receive_in_doubt(const Interval& heard, const Interval& widened,
                        BootTime sent, BootTime received);

  bool answered_ = false;
  int contradictions_ = 0;
  std::optional<Interval> current_;
  std::optional<Interval> newer_;  // Contradicts current_.
  BootTime newer_received_{};      // Kept after the contradiction is settled.
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_CLOCK_HPP
