// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sender: the thread of a table that sends all requests.  It renews leases,
// sends what callers wait for, and finishes what they abandoned.
//
// Limits:
// - 32 renewals and 32 releases are in flight.  One that a caller waits for
//   goes first, beyond these limits.  Claims that end first are renewed first.
//    A renewal that got no answer is repeated after the others.
// - 100 renewals begin per second, or 2.25 times as many as all leases need if
//   that is more.  So a backlog is worked off gradually.  A renewal that fails
//   does not count.
// - In the last eighth of its lease, a renewal ignores that rate, and 128 may
//   be in flight.
// - 16 abandoned takes are awaited.  One more is ended at once, and its outcome
//   is unknown.
// - 1,000 releases wait to be sent.  Beyond that, the least valuable is
//   dropped.
// - 16 takes and 16 other calls begin in a round, after the renewals.  Each may
//   need a new connection, and a handshake takes time.
// - Nothing is sent after its deadline.
#ifndef DDBMUTEX_SENDER_HPP
#define DDBMUTEX_SENDER_HPP

#include <cstddef>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/thread.hpp"
#include "attempt.hpp"
#include "leases.hpp"
#include "pace.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Sender {
 public:
  explicit Sender(Leases& leases) : leases_(leases) {}

  // The thread's main function.  Returns once the table is closing and each
  // abandoned request was tried once more.  libcurl may block it.
  void run();

  // For these the mutex is held.
  //
  // Releases what an abandoned attempt may have got.  Gives up when the lease
  // would have expired.  REQUIRES: there is an attempt, and no request of it is
  // in flight.
  void finish(OneAttempt& one);
  // Sends a release at that time, if the sender is awake by then.  REQUIRES:
  // there is an attempt.
  void release_at(BootTime when, OneAttempt& one);
  // Sends the next request of a take.  REQUIRES: there is an attempt, for which
  // a call waits; has_ended() is false.  If true, the caller wakes the sender,
  // without the mutex.
  [[nodiscard]] bool ask(OneAttempt& one);
  // Sends the one request of the list.  The same is true of it.
  [[nodiscard]] bool ask(Errands& one);
  // Looks at once for what calls have left.
  void look_again() { leases_.sender.wake_at(BootTime::min()); }
  // run() returns and sends nothing any more.
  bool has_ended() const { return ended_; }

 private:
  enum class Begun { yes, too_late_or_unwanted, no_memory };

  bool send_round();
  void end_all();
  bool begin_all();
  Begun begin(Attempt& attempt);
  bool stamp(Attempt& attempt);
  void unstamp(Attempt& attempt);
  void end_unsent(OneAttempt& one, Begun begun);
  void begin_errands();
  void await_any(BootTime until);
  void conclude_all();
  void conclude(OneAttempt one, bool given_up);
  void conclude_errands();
  void end_errand(Errand& errand, sigv4::Transport why);

  // For these the mutex is held.
  bool collect(BootTime& next);
  void collect_renewals(BootTime now, std::size_t renewing, BootTime& next);
  bool may_renew(const HeldLease& held, BootTime now, bool full,
                 BootTime& next) const;
  bool collect_releases(BootTime now, std::size_t room, BootTime& next);
  void look_for_abandoned(BootTime now);
  void drop_surplus(Attempts& dropped);
  bool collect_asked();
  void abandon(Attempt& attempt, BootTime now);
  static sigv4::BellPtr give_back(OneAttempt& one);
  static sigv4::BellPtr give_up(Attempt& attempt);
  void release_if_needed(OneAttempt& one);
  sigv4::BellPtr taken(OneAttempt& one, bool given_up);
  void renewed(OneAttempt& one);
  void released(OneAttempt& one);
  void retry_renewal(OneAttempt& one);
  void tell_of_release(const Attempt& attempt, bool for_good);

  Leases& leases_;
  // Both are used only by the sender's thread.
  Attempts in_flight_;
  Errands errands_;
  // All below: GUARDED_BY(Leases::mutex)
  Attempts asked_;  // Takes that calls wait for.
  Errands asked_errands_;
  Attempts releases_;        // Wait to be sent.
  std::size_t awaited_ = 0;  // Takes in flight that callers abandoned.
  RenewalRate rate_;
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SENDER_HPP
