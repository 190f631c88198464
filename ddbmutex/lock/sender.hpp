// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sender: the thread of a table that renews its leases and finishes what
// callers abandoned.
//
// Limits:
// - 32 renewals and 32 releases are in flight.  Claims that end first are
//   renewed first.  A renewal that got no answer is repeated after the others.
// - 100 renewals begin per second, or 2.25 times as many as all leases need if
//   that is more.  So a backlog is worked off gradually.  A renewal that fails
//   does not count.
// - In the last eighth of its lease, a renewal ignores that rate, and 128 may
//   be in flight.
// - 16 abandoned takes are awaited.  One more is ended at once, and its outcome
//   is unknown.
// - 1,000 releases wait to be sent.  Beyond that, the least valuable is
//   dropped.
// - Nothing is sent after its deadline.
#ifndef DDBMUTEX_SENDER_HPP
#define DDBMUTEX_SENDER_HPP

#include <cstddef>
#include <vector>

#include "../../sigv4/boot_clock.hpp"
#include "attempt.hpp"
#include "leases.hpp"
#include "pace.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// What became of one lock that Renewer::release_all() tried to release.
struct ReleaseOutcome {
  HeldLeasePtr held;
  Result result;
};

// What Renewer::release_all() waits for.
struct Closing {
  std::vector<ReleaseOutcome> locks;  // Empty once it no longer waits.
  std::size_t open = 0;
};

class Sender final : private Stamper {
 public:
  explicit Sender(Leases& leases) : leases_(leases) {}

  // The thread's main function.  Returns once the table is closing and each
  // abandoned request was tried once more.  libcurl may block it.
  void run();

  // Finishes an abandoned attempt: awaits the take in flight, and then releases
  // the lease unless the take certainly failed.  Gives up when the lease would
  // have expired.  REQUIRES: there is an attempt; the guard holds the mutex.
  void finish(OneAttempt& one, Leases::Guard guard);
  // Sends a release at that time.  REQUIRES: there is an attempt; the mutex is
  // held.
  void release_at(BootTime when, OneAttempt& one);

 private:
  bool stamp(Attempt& attempt) override;
  void unstamp(Attempt& attempt) override;

  bool send_round();
  bool begin_all();
  void begin_later(OneAttempt& one);
  void await_any(BootTime until);
  void conclude(OneAttempt one);

  // For these the mutex is held.
  OneAttempt make_room();
  bool collect(BootTime& next);
  void collect_renewals(BootTime now, std::size_t renewing, BootTime& next);
  bool may_renew(const HeldLease& held, BootTime now, bool full,
                 BootTime& next) const;
  bool collect_releases(BootTime now, std::size_t room, BootTime& next);
  void renewed(OneAttempt& one);
  void released(OneAttempt& one);
  void report_to_closing(const Attempt& attempt, Verdict verdict,
                         bool for_good);

  Leases& leases_;
  Attempts in_flight_;  // Used only by the sender's thread.
  // All below: GUARDED_BY(Leases::mutex)
  Attempts releases_;        // Wait to be sent.
  std::size_t awaited_ = 0;  // Takes in flight that callers abandoned.
  RenewalRate rate_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SENDER_HPP
