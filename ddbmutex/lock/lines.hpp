// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Holds whose next request is due.  Renewals, releases and takes each have a
// line.  So many may be in flight:
//
// - 32 renewals and 32 releases.  One that renew(), release() or unlock() waits
//   for goes first, and beyond these limits.
// - Claims that end first are renewed first.  A renewal that got no answer is
//   repeated after the others, so that requests that hang do not hold them up.
// - 100 renewals begin per second, or 2.25 times as many as all leases need if
//   that is more.  So a backlog is worked off gradually, unless its leases are
//   nearly over.  A renewal that fails does not count.
// - In the last eighth of its lease, a renewal ignores that rate, and 128 may
//   be in flight.
// - Releases of locks that were held go before those of takes that perhaps
//   never succeeded; then in order of arrival.
// - 16 takes begin in a round of the sender.  Each may need a new connection,
//   and a handshake takes time.
//
// Thread safety: GUARDED_BY(Holds::mutex).
#ifndef DDBMUTEX_LINES_HPP
#define DDBMUTEX_LINES_HPP

#include <chrono>
#include <cstddef>

#include "../../sigv4/boot_clock.hpp"
#include "hold.hpp"
#include "order.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// How many takes, and how many other calls, begin in a round.
constexpr int kBegunInARound = 16;

// The rate limit of a table's renewals, a token bucket.  `needed` is how many
// renewals per second all leases need while none fails.  The limit is above
// that, so a backlog soon disappears, however many leases there are.
class RenewalRate {
 public:
  // When the renewal of that claim may begin.
  BootTime begins_at(BootTime claim_end, std::chrono::nanoseconds ttl) const;
  // From then on no limit holds it up: its lease is nearly over.
  static BootTime urgent_at(BootTime claim_end, std::chrono::nanoseconds ttl);

  // A renewal begins.
  void count(BootTime now, double needed);
  // A renewal has failed.  It must be sent again, so it does not count.
  void uncount(double needed);

 private:
  BootTime next_{};  // When the next one may begin.
};

class Lines {
 public:
  // Its next request is due.
  void join(Hold& hold, BootTime now);
  // Its claim has become shorter.
  void update(Hold& hold);

  // No release and no take is in line.
  bool idle() const { return releases_.empty() && takes_.empty(); }
  // The sender begins a round, with these in flight.
  void begin_round(std::size_t renewals, std::size_t releases);
  // Moves the next one that may be sent now to `parked`, and returns it; null
  // if there is none.  Then it lowers `look_at` to the time when to ask again.
  HoldPtr next(BootTime now, Order& parked, BootTime& look_at);

  // A renewal has failed, so it does not count.
  void uncount_renewal() { rate_.uncount(renewals_per_s); }

  double renewals_per_s = 0;  // How many all held leases need, on average.

 private:
  bool may_renew(const Hold& hold, BootTime now, BootTime& look_at) const;

  Order renewals_, releases_, takes_;
  RenewalRate rate_;
  std::size_t renewing_ = 0, releasing_ = 0;  // In flight.
  int taken_ = 0;                             // Takes of this round.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LINES_HPP
