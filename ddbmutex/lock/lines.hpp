// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Holds whose next request is due.  Renewals, releases and takes each have a
// line.
//
// The order:
// - A renewal or release that renew(), release() or unlock() waits for goes
//   first, and beyond all limits.
// - Claims that end first are renewed first.  A renewal that got no answer is
//   repeated after the others, so that requests that hang do not hold them up.
//   In the last eighth of its lease it goes before those that are not in
//   theirs, but only while fewer than 96 renewals are in flight.
// - Releases of locks that were held go first, then those of takes that perhaps
//   never succeeded, then second releases of such takes.  Of each kind, those
//   that got no answer come last.  Among equals, the first come is the first.
//
// The limits:
// - 32 renewals and 32 releases are in flight.
// - 100 renewals begin per second, or 2.25 times as many as all leases need if
//   that is more.  So a backlog soon disappears, but not all at once.  A
//   renewal that fails does not count.
// - In the last eighth of its lease, a renewal ignores that rate, and 128 may
//   be in flight.
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

// How many takes begin in a round, and how many errands (see sender.hpp).
constexpr int kBegunInARound = 16;

// The rate limit of a table's renewals, a token bucket.  `needed` is how many
// renewals per second all leases need while none fails.
class RenewalRate {
 public:
  // When the next renewal may begin.
  BootTime next() const { return next_; }
  // A renewal begins.  Returns false if that is beyond the limit: it does not
  // count.
  bool count(BootTime now, double needed);
  // A renewal that has counted has failed.  It must be sent again, so it does
  // not count.
  void uncount(double needed);

 private:
  BootTime next_{};
};

class Lines {
 public:
  struct Due {
    Hold* hold;       // Its request may begin now.  Null: none may.
    BootTime ask_at;  // When to ask again.  If `hold` is set: now.
  };

  // Its next request is due.
  void join(Hold& hold, BootTime now);
  // Its claim has become shorter.
  void update(Hold& hold);

  bool has_release_or_take() const {
    return !releases_.empty() || !takes_.empty();
  }
  // The sender begins a round, with these in flight.
  void begin_round(std::size_t renewals, std::size_t releases);
  Due due(BootTime now) const;
  // Its request begins.  Returns whether it is a renewal that the rate counts.
  bool count(const Hold& hold, BootTime now);
  // A renewal that was counted has failed.
  void uncount_renewal() { rate_.uncount(needed_per_s_); }
  // A lock is held now.  Its lease is renewed at this age.
  void add_lease(std::chrono::nanoseconds renew_after);
  // It is not held any more.
  void remove_lease(std::chrono::nanoseconds renew_after);

 private:
  Due renewal_due(BootTime now) const;
  BootTime renews_at(const Hold& first, BootTime now) const;

  Order renewals_, releases_, takes_;
  RenewalRate rate_;
  double needed_per_s_ = 0;  // Renewals that all leases need, on average.
  std::size_t renewals_in_flight_ = 0, releases_in_flight_ = 0;
  int takes_begun_ = 0;  // In this round.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LINES_HPP
