// What DynamoDB's clock shows, known only as an interval [earliest, latest].
//
// Every answer carries a Date of whole seconds.  A request sent at s and
// answered at r on the boot clock with `Date: D` shows that service time minus
// boot time lay in [D - r, D + 1 s - s].  Such intervals are intersected, each
// kAgreement wider on either side than its answer tells, so that front ends
// which agree to that contradict nothing; each bound is widened by 1/99 of its
// age, since boot clocks run true to 1 % only and one that is so slow shows 99
// s where 100 s have gone by.
//
// It reads no clock itself: the caller passes the time.
//
// Thread safety: as an int.  Copies are cheap and make good snapshots.
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

// No Date outside these is believed: neither from before DynamoDB existed, nor
// near the end of 64 bits of nanoseconds.
constexpr ServiceTime kFirstBelievable = std::chrono::seconds(1325376000);
constexpr ServiceTime kLastBelievable = std::chrono::seconds(3786912000);

// How well the clocks of DynamoDB's front ends agree.  The price: a machine
// that was stopped for so much longer may not learn of it.
constexpr std::chrono::nanoseconds kAgreement = std::chrono::milliseconds(250);

// How far a clock's rate may be off: 1 part in this many.
constexpr int kRateMargin = 100;

// The service time of an HTTP Date; nothing if it is malformed or implausible.
std::optional<ServiceTime> believable_date(std::string_view http_date);

class ServiceClock {
 public:
  // An answer came; `date` is nothing if it had no plausible Date.
  // REQUIRES: sent <= received.
  void hear(BootTime sent, BootTime received, std::optional<ServiceTime> date);

  // A Date was heard.  REQUIRED by earliest(), latest() and middle().
  bool known() const { return current_.has_value(); }
  // Answers came, and none had a plausible Date.
  bool silent() const { return answered_ && !known(); }
  // The last answers contradict each other: a machine that was stopped from
  // outside, or front ends that disagree.  Until an answer decides, earliest()
  // and latest() take in what both say.
  bool in_doubt() const { return newer_.has_value(); }
  // How often answers have contradicted what was known.
  int contradictions() const { return contradictions_; }

  ServiceTime earliest(BootTime now) const;
  ServiceTime latest(BootTime now) const;
  // How far apart these two are.  REQUIRES: known().
  std::chrono::nanoseconds uncertainty(BootTime now) const {
    return latest(now) - earliest(now);
  }
  // The best guess, for signing.  In doubt: the newer answer's.
  ServiceTime middle(BootTime now) const;

  // When latest() reaches `at`; BootTime::max() while nothing is known.
  BootTime when_latest_is(ServiceTime at) const;

 private:
  // Service time minus boot time.  Each bound held at a moment between s and
  // r; counted from the ends named here, its drift is never underestimated.
  struct Interval {
    std::chrono::nanoseconds low, high;
    BootTime low_at, high_at;

    std::chrono::nanoseconds low_now(BootTime now) const;
    std::chrono::nanoseconds high_now(BootTime now) const;
    bool meets(const Interval& other, BootTime now) const;
    Interval within(const Interval& other, BootTime now) const {  // Both hold.
      return with(other, now, 1);
    }
    Interval around(const Interval& other, BootTime now) const {  // One holds.
      return with(other, now, -1);
    }
    Interval with(const Interval& other, BootTime now, int sign) const;
    BootTime when_latest_is(ServiceTime at) const;
  };

  // `known`: as it is remembered, kAgreement wider.
  void hear_in_doubt(const Interval& heard, const Interval& known,
                     BootTime sent, BootTime received);

  bool answered_ = false;
  int contradictions_ = 0;
  std::optional<Interval> current_;
  std::optional<Interval> newer_;  // Contradicts current_.
  BootTime newer_received_{};  // Of the last contradiction, also a settled one.
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_CLOCK_HPP
