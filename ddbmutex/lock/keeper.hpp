// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What mutexes, and the table itself, ask of the table's two threads: to take,
// renew and release locks, and to send other requests.  The calls wait here.
// The work is done by the Sender and the Notifier.
//
// Thread safety: any thread may call any public member.
#ifndef DDBMUTEX_KEEPER_HPP
#define DDBMUTEX_KEEPER_HPP

#include <pthread.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/function_ref.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "hold.hpp"
#include "holds.hpp"
#include "notifier.hpp"
#include "protocol.hpp"
#include "sender.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// How the release of a lock has ended.
struct Released {
  HoldPtr hold;
  Result result;
  bool host_waits = false;  // See Lease::waited_for().  Only from release().
};

class Keeper : public sigv4::Stoppable,
               public dynamodb::Carrier,
               public std::enable_shared_from_this<Keeper> {
 public:
  // REQUIRES: a shared_ptr owns it, because its threads own it, too.
  explicit Keeper(const dynamodb::ClientOptions& options);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Used by all mutexes of the table.
  dynamodb::Client& client() { return client_; }
  dynamodb::RetryBudget& budget() { return budget_; }

  // Starts both threads, unless they run.  Call it before the first request.
  // Returns false if that is impossible, or once exit() ends the threads.
  bool start_threads();
  // Whether tell_to_stop() was called.
  bool is_stopping() const;
  // Abandoned requests are tried once more, until `by`.  Then both threads end.
  // await_stop() waits until shortly after `by`, and then detaches a thread
  // that still runs.  It does not wait for the calling thread.
  void tell_to_stop(BootTime by) override;
  void await_stop() override;

  dynamodb::Answer carry(dynamodb::PlainRequest&& request,
                         sigv4::CallWaker& waker) override;

  // --- Takes.  REQUIRES: the threads are started.  ---------------------------

  HoldPtr make_hold(const MutexSettingsPtr& settings) {
    return holds_.make(settings);
  }
  // Takes the lock, or tries to.  Sends requests until an answer decides, until
  // one fails for good, until the deadline, or until the waker is woken.  Sets
  // the result of the wait.  If a request is still in flight, the sender keeps
  // the Hold, and `hold` becomes null.  Calls `on_outage`, with no mutex held,
  // when the first transient error since the last answer has come.
  void take(HoldPtr& hold, Wait& wait, BootTime deadline,
            sigv4::CallWaker& waker, sigv4::FunctionRef<void()> on_outage);
  // No request counts as failing.  For a call that begins to take the lock
  // while no other does.
  void forget_outage(MutexSettings& settings);
  // See Holds::patience_ends().
  BootTime patience_ends(const MutexSettings& settings,
                         std::optional<BootTime> patient_since) const;
  // The last error of an outage.
  void copy_last_failure(const MutexSettings& settings,
                         dynamodb::Answer& to) const;
  // The lock is the caller's.  Does nothing, and returns false, once
  // release_all() was called.  REQUIRES: it was granted.
  bool keep(Hold& hold);
  // The caller gives up: what the take may have got is released.  Does nothing
  // if the lock is held.
  void leave(Hold& hold);
  // When the record that takes of this mutex have seen becomes stale.
  BootTime stale_at(const MutexSettings& settings) const;

  // --- While it is held.  ----------------------------------------------------

  // Renews the lease now, with these changes (may be null).  The verdict is
  // `ours`, `not_held`, a loss, `again`, or `closed` if exit() ends the
  // threads. Retries after transient errors until the deadline, or until the
  // claim has ended.
  Result renew(Hold& hold, const ChangesPtr& changes, BootTime deadline);
  // From now on only renew() renews the lease.
  void stop_renewing(Hold& hold);
  // DynamoDB has refused a write whose condition is that we hold the lock.
  // Renews now to learn how it was lost.  If no answer comes by the deadline,
  // it counts as taken.  The verdict is a loss, `not_held`, or `ours` if the
  // renewal has succeeded.
  Result confirm_loss(Hold& hold, BootTime deadline);
  // The verdict is `ours`, `not_held` or a loss, which is final.
  Result state_of(Hold& hold);

  // --- Its end.  -------------------------------------------------------------

  // Ends the claim, releases the lock with these changes (may be null), and
  // waits for that until the deadline.  After the deadline the release goes on
  // in the background, until the lease is over.  The verdict is `released`,
  // `not_held` if it was released before, a loss, `again`, or `closed` if
  // exit() had ended the threads before.  Needs no memory.
  Released release(const HoldPtr& hold, const ChangesPtr& changes,
                   BootTime deadline);
  // Accepts no more grants, and releases all locks that are held, many at once.
  // Waits for the answers until the deadline; the rest is released in the
  // background.  Returns all locks that were held.  If memory runs out, no
  // release has begun.
  std::vector<Released> release_all(BootTime deadline);

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
    bool is_joined = false;  // A call of await_stop() joins it just now.

    bool is_this_thread() const {
      return started && sigv4::is_this_thread(thread);
    }
    bool must_be_awaited() const {
      return is_joined || (started && !ended && !is_this_thread());
    }
  };

  template <class Work>
  bool start(Worker& worker, const char* name, Work work);
  void begin_release(Hold& hold, Wait& wait, const ChangesPtr& changes);
  void await_release(Hold& hold, Wait& wait, Holds::Guard& guard,
                     BootTime deadline);
  void wake_sender(Holds::Guard& guard);

  dynamodb::Client client_;
  dynamodb::RetryBudget budget_;
  Holds holds_;
  Sender sender_;
  Notifier notifier_;
  // All below: GUARDED_BY(Holds::mutex)
  bool registered_ = false;  // exit() stops the threads.
  Worker sender_thread_;
  Worker notifier_thread_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_KEEPER_HPP
