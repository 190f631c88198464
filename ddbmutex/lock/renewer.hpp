// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keeps the leases of a table: renews them in time, reports danger and losses,
// and finishes what callers abandoned.
//
// This class has the calls.  The work is done by two threads, the Sender and
// the Notifier, which are started when they are first needed.
//
// Thread safety: any thread may call any public member.
#ifndef DDBMUTEX_RENEWER_HPP
#define DDBMUTEX_RENEWER_HPP

#include <pthread.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "attempt.hpp"
#include "leases.hpp"
#include "notifier.hpp"
#include "protocol.hpp"
#include "sender.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Renewer : public sigv4::Stoppable,
                public dynamodb::Carrier,
                public std::enable_shared_from_this<Renewer> {
 public:
  // REQUIRES: a shared_ptr owns it, because its threads own it, too.
  explicit Renewer(const dynamodb::ClientOptions& options);
  Renewer(const Renewer&) = delete;
  Renewer& operator=(const Renewer&) = delete;

  // Used by all mutexes of the table.
  dynamodb::Client& client() { return client_; }
  dynamodb::RetryBudget& budget() { return budget_; }

  // Starts both threads, unless they run.  Call it before the first request.
  // Returns false if that is impossible, or once exit() ends the threads.
  bool start_threads();
  // Whether the threads end, or have ended.
  bool is_stopping() const;
  // Both threads end after abandoned requests were tried once more.  `by` is
  // the deadline for that.  await_stop() waits a moment longer, but not for a
  // thread that a callback or libcurl blocks, nor for the calling thread.
  void tell_to_stop(BootTime by) override;
  void await_stop() override;

  dynamodb::Answer carry(dynamodb::PlainRequest&& request,
                         sigv4::CallWaker& waker) override;
  // Sends the next request of a take and waits for its answer.  Soon after the
  // deadline, or when the waker is woken, the attempt is left to the sender
  // with its request; then the list is empty.  REQUIRES: there is an attempt;
  // the threads are started.
  void carry(OneAttempt& one, BootTime deadline, sigv4::CallWaker& waker,
             TakeWait& wait);

  // Renews the lease and watches its end until release().  Returns false after
  // release_all(); then the lease is unchanged.  REQUIRES: the lease was
  // granted; the threads are started.
  bool add(HeldLease& held);

  // Renews the lease now, with these changes (may be null).  The verdict is
  // `ours`, `not_held`, a loss or `again`.  Retries after transient errors
  // until the deadline, or until the lease is over.
  Result renew(HeldLease& held, const ChangesPtr& changes, BootTime deadline);
  // From now on only renew() renews the lease.
  void stop_renewing(HeldLease& held);

  // DynamoDB has refused a write whose condition is that we hold the lock.
  // Renews now to learn how it was lost.  If no answer comes by the deadline,
  // it counts as taken.  The verdict is a loss, `not_held`, or `ours` if the
  // renewal has succeeded.
  Result confirm_loss(HeldLease& held, BootTime deadline);

  // The verdict is `ours`, `not_held` or a loss, which is final.
  Result state_of(HeldLease& held);

  // Ends the claim, releases the lock with these changes (may be null), and
  // waits for that until the deadline.  After it the release goes on in the
  // background, until the lease is over.  The verdict is `released`, `not_held`
  // if it was released before, a loss, `again`, or `closed` once exit() has
  // ended the threads.  Needs no memory.
  ReleaseWait release(HeldLease& held, const ChangesPtr& changes,
                      BootTime deadline);

  // Accepts no more leases, and releases all that are held, many at once. Waits
  // for the answers until the deadline; the rest is released in the background.
  // Returns all of them, also those that are released.  If memory runs out, no
  // release has begun.
  std::vector<ReleaseWait> release_all(BootTime deadline);

  // Finishes an abandoned attempt: see Sender.  REQUIRES: there is one; the
  // threads are started.
  void finish(OneAttempt& attempt);

  std::size_t held_count() const;

  // Whether this is the notifier's thread, which calls all listeners.
  bool is_notifier_thread() const;

  // Waits until everything due was reported to the listener, and then drops the
  // listener.  Does not wait if the notifier itself calls this.
  void silence(MutexSettings& settings);

 private:
  struct Worker {
    pthread_t thread{};
    bool started = false, ended = false;

    bool is_this_thread() const {
      return started && sigv4::is_this_thread(thread);
    }
  };

  void mark_ended(Worker& worker);
  void begin_release(ReleaseWait& wait, const ChangesPtr& changes);
  void wake_sender(Leases::Guard& guard);
  void await_release(ReleaseWait& wait, Leases::Guard& guard,
                     BootTime deadline);

  dynamodb::Client client_;
  dynamodb::RetryBudget budget_;
  Leases leases_;
  Sender sender_;
  Notifier notifier_;
  // All below: GUARDED_BY(Leases::mutex)
  bool registered_ = false;  // exit() stops the threads.
  bool awaited_ = false;     // await_stop() has been called.
  Worker sender_thread_;
  Worker notifier_thread_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RENEWER_HPP
