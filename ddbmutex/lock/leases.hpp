// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The leases that the mutexes of a table hold.  Callers and the two threads of
// the table share them.  Decides when each lease is renewed, when something is
// reported about it, and how it ends.
//
// Thread safety: one mutex guards everything here, the held leases included.
// It is only held for work in memory, never while a request is sent, a callback
// runs or a thread is joined.  The last HeldLeasePtr of a lease must not be
// dropped while it is held.  That destroys what the user's callback has
// captured, and such a destructor may do anything.
#ifndef DDBMUTEX_LEASES_HPP
#define DDBMUTEX_LEASES_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/thread.hpp"
#include "../../sigv4/waiting.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/client.hpp"
#include "agenda.hpp"
#include "attempt.hpp"
#include "held_lease.hpp"
#include "protocol.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// How a call of a mutex ended.
struct Result {
  Verdict verdict = Verdict::again;
  // Says why the verdict is `again` or `bad_record`.
  dynamodb::Answer answer{};
  // After a loss: when the claim ended (`expired`), or when the loss was found.
  std::optional<BootTime> lost_at{};
};

// A call that waits for one request of its take.
// GUARDED_BY(Leases::mutex), but `over` may be read without it.
struct TakeWait {
  explicit TakeWait(const sigv4::CallWaker& waker) : bell(waker.bell()) {}

  sigv4::BellPtr bell;  // Rings when it is over.
  std::atomic<bool> over{false};
  OneAttempt attempt{};  // Comes back, unless it is left to the sender.
  bool unsent = false;   // It was too late for the request.
  // The request is left in flight.  Its answer says why.
  bool given_up = false;
  dynamodb::Answer answer{};
};

// A call that waits for the answer to a request that is sent as it is.  It is
// shared, because the call may leave while the request is in flight.
struct Errand {
  Errand(dynamodb::PlainRequest&& its_request, const sigv4::CallWaker& waker)
      : request(std::move(its_request)), bell(waker.bell()) {}

  const dynamodb::PlainRequest request;
  // GUARDED_BY(Leases::mutex).  Null: the call has left.
  sigv4::BellPtr bell;
  std::atomic<bool> over{false};
  dynamodb::Answer answer{};  // Set before it is over.
  // Used only by the sender.
  std::unique_ptr<dynamodb::Client::Pending> pending{};
};
using Errands = std::list<std::shared_ptr<Errand>>;

// A call that waits until a renewal has succeeded which began after the call.
// It is on its caller's stack, and GUARDED_BY(Leases::mutex).
struct RenewalWait {
  const BootTime begun;
  const BootTime deadline;
  bool over = false;  // Told by HeldLease::told.
  Result result{};
};

// A call that waits for the release of a lock.  GUARDED_BY(Leases::mutex).
struct ReleaseWait {
  HeldLeasePtr held{};
  // Its release is sent before those that nobody waits for.
  bool goes_first = false;
  bool over = false;        // Told by HeldLease::told.
  bool host_waits = false;  // See Lease::waited_for().
  // Until it is over: why the lock is not released yet.
  Result result{};
};

// A thread of the table, which sleeps until something is due for it.
class Sleeper {
 public:
  // Makes the thread look again at that time or earlier.
  void wake_at(BootTime when) {
    if (must_wake_at(when)) waker_.wake();
  }
  // The same in two steps.  If true, the caller wakes it, best without the
  // mutex, which the thread locks first.
  bool must_wake_at(BootTime when) {
    if (when >= sleeps_until_) return false;
    sleeps_until_ = when;
    return true;
  }
  // Records until when the thread will sleep.  min(): it is awake, and looks at
  // everything before it sleeps.
  void set_sleeps_until(BootTime when) { sleeps_until_ = when; }
  BootTime sleeps_until() const { return sleeps_until_; }
  sigv4::Waker& waker() { return waker_; }  // Needs no mutex.

 private:
  sigv4::Waker waker_;
  BootTime sleeps_until_ = BootTime::min();
};

struct Leases {
  using Guard = std::unique_lock<sigv4::Mutex>;

  Leases(dynamodb::Client& the_client, dynamodb::RetryBudget& the_budget)
      : client(the_client), budget(the_budget) {}
  ~Leases();
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // Adds a lease that was just granted.
  void add(HeldLease& held);

  // Plans a renewal by the sender.  Replaces the plan.
  void renew_at(HeldLease& held, BootTime when);
  // The same, unless the sender may not renew it then by itself.
  void plan_renewal(HeldLease& held, BootTime when);
  void unplan(HeldLease& held);
  // Renews at once, with these changes (may be null), and retries until the
  // wait is over.  REQUIRES: no renewal is in flight or awaited; not over.
  void renew_now(HeldLease& held, const ChangesPtr& changes, RenewalWait& wait);
  // Tells the call that waits for the renewal, if there is one.
  void end_wait(HeldLease& held, Result&& result);
  // After a wait: the sender renews as usual again.
  void resume_renewals(HeldLease& held);
  // What sorts `due`: the end of the claim.  One ttl is added if the last
  // renewal got no answer.  A renewal that is awaited comes first.
  static BootTime due_key(const HeldLease& held);
  // Sets when the notifier next has something to report.
  void set_alarm(HeldLease& held);
  // When the danger is to be reported; max() if nobody wants to hear of it, or
  // it was reported since the last renewal.
  BootTime danger_at(const HeldLease& held) const;

  // What an attempt to renew does to its lease, before and after its request.
  // stamp() returns false if the lease is lost.
  bool stamp(Attempt& attempt, BootTime now);
  // Undoes stamp(): the request could not be sent.
  void unstamp(Attempt& attempt);
  void receive(Attempt& attempt);

  // Marks the lease as lost.  REQUIRES: not over.
  void lose(HeldLease& held, Verdict why);
  // Does so if its claim has ended.  An answer that was received before the end
  // might otherwise still renew it.
  void lose_if_ended(HeldLease& held, BootTime now);
  // Reports a loss, unless one was reported before: the first reason counts.
  void report(HeldLease& held, Verdict why);
  // REQUIRES: a loss is to be reported.
  HeldLeasePtr take_loss();
  // Ends renewals and alarms; a renewal in flight has an unknown outcome.
  // Returns the attempt that releases the lease, or none if its release has
  // begun before.  A loss that was not reported yet is still reported.  Needs
  // no memory.
  OneAttempt begin_release(HeldLease& held);
  // How a lease that is over ended: `not_held` or a loss.
  static Result end_of(const HeldLease& held);

  // DynamoDB's clock was contradicted: claims may end sooner.  REQUIRES: the
  // mutex is not held.
  void check_clock();

  // How many leases are held: each has an alarm.
  std::size_t held_count() const { return alarms.size(); }

  dynamodb::Client& client;
  dynamodb::RetryBudget& budget;
  mutable sigv4::Mutex mutex;

  // All below: GUARDED_BY(mutex)
  // Notified when HeldLease::renewing, HeldLease::renewal_wait, first_loss,
  // Notifier::reporting_ or the state of a thread has changed.
  sigv4::Condition changed;
  Sleeper sender, notifier;
  // The threads must end: since when, and by when.
  bool stopping = false;
  BootTime stopping_since{}, stop_by{};
  bool closed = false;  // No more leases are accepted.

  // Each held lease is in at most one of `renewals` and `due`.
  Agenda renewals{&HeldLease::renewal};  // By the time of the next renewal.
  // Leases whose renewal is due, but was not sent yet; sorted by due_key().
  Agenda due{&HeldLease::renewal};
  // Every held lease, by the time when something must be reported about it.
  // That is no later than the end of its claim.
  Agenda alarms{&HeldLease::alarm};
  double renewals_per_s = 0;  // How many all held leases need, on average.
  // Losses that must be reported, or dropped if their listener is gone.  A list
  // linked by HeldLease::next_lost.
  HeldLeasePtr first_loss;
  HeldLease* last_loss = nullptr;

 private:
  void publish(const HeldLease& held, BootTime claim_end);
  void remove(HeldLease& held);
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LEASES_HPP
