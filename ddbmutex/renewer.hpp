// The two threads of a table.  One sends renewals, and what callers had no time
// to finish; the other keeps the deadlines of what is held, and tells holders
// that a lease is in danger or lost.
//
// The first drives libcurl and may be held up by it; the second never calls
// libcurl itself, so that a loss is told in time whatever the network does.
// Both are started by the first lease that is to be renewed, or whose end is to
// be told, and by the first request to be finished.
//
// Thread safety: any thread may call any member.
#ifndef DDBMUTEX_RENEWER_HPP
#define DDBMUTEX_RENEWER_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client.hpp"
#include "driver.hpp"
#include "protocol.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// One mutex as the threads of its table know it.  May outlive the mutex.
struct Holder {
  struct Terms {
    std::string name;  // For people.
    std::chrono::milliseconds ttl;
    // This long before its end, a lease is in danger.
    std::chrono::nanoseconds safe_time;
    // The age at which a lease is renewed; nothing: only by hand.
    std::optional<std::chrono::nanoseconds> renew_after;
    // A lock that has been held so long is renewed no more but by hand.
    std::chrono::nanoseconds max_hold = std::chrono::nanoseconds::max();
  };
  // Each may be empty.  Called by one thread for all holders of a table, one
  // at a time, with no mutex held.
  struct Callbacks {
    std::function<void(Verdict)> on_lost;  // taken, deleted or expired
    std::function<void()> on_danger;
    // Whether the lease is to be renewed.  If not, it is asked again.
    std::function<bool()> alive;

    bool any() const { return on_lost || on_danger || alive; }
  };

  Holder(Driver the_driver, Terms the_terms, Callbacks the_callbacks)
      : driver(std::move(the_driver)),
        terms(std::move(the_terms)),
        callbacks_(
            std::make_shared<const Callbacks>(std::move(the_callbacks))) {}

  const Driver driver;
  const Terms terms;

  // Until when the lock is held, on the boot clock; BootTime::min() while it is
  // not.  Written by the Renewer alone.
  BootTime claim_end() const noexcept {
    return BootTime(
        std::chrono::nanoseconds(claim_end_.load(std::memory_order_acquire)));
  }

 private:
  friend class Renewer;
  std::atomic<BootTime::rep> claim_end_{
      BootTime::min().time_since_epoch().count()};
  // GUARDED_BY(Core::mutex); null once nothing is to be told any more.
  std::shared_ptr<const Callbacks> callbacks_;
};

class Renewer {
 public:
  // A lease in the Renewer's care.
  class Held;
  using Handle = std::shared_ptr<Held>;

  // Holders' drivers must use this client.
  Renewer(std::shared_ptr<dynamodb::Client> client,
          std::shared_ptr<dynamodb::RetryBudget> budget);
  // Stops both threads, after what callers left was tried once more: within two
  // seconds.  A thread that is held up, or calls this, is left to end by
  // itself.
  ~Renewer();
  Renewer(const Renewer&) = delete;
  Renewer& operator=(const Renewer&) = delete;

  // Renews the lease, and watches over it, until give_back().  Null if no
  // thread can be started, or after release_all(); the lease is untouched then.
  // REQUIRES: granted.
  Handle keep(Lease& lease, const std::shared_ptr<Holder>& holder);

  // How a renewal by hand ended.
  struct Renewal {
    enum class Kind { done, not_held, lost, failed };
    Kind kind = Kind::done;
    Verdict loss = Verdict::expired;
    dynamodb::Answer answer;  // failed: the last; timed_out or cancelled.
  };
  // Renews the lease now, on the calling thread, with those changes (may be
  // null).  Passing faults are tried again until the deadline, the end of the
  // lease, or until `waker` is woken; a fault that is final is told at once.
  // Calls `done` if it is, before anybody else renews.
  Renewal renew(const Handle& handle, std::shared_ptr<const Changes> changes,
                BootTime deadline, sigv4::Waker& waker,
                const std::function<void()>& done);

  // Tells once of a loss, beside and before on_lost, or of release_all():
  // `tell` with the signal, which is kept until the lease is given back.  What
  // an earlier call has set comes back.  Null if the lock is lost already, or
  // no thread can be started.
  struct Signal {
    std::shared_ptr<void> object;
    void (*tell)(void*) = nullptr;
  };
  std::shared_ptr<void> signal_loss(const Handle& handle,
                                    const std::function<Signal()>& make);

  struct Returned {
    std::optional<Lease> lease;   // For the release; nothing: released before.
    std::optional<Verdict> lost;  // If it was lost before.
  };
  // Ends renewals and alarms; a renewal under way counts as one of unknown
  // outcome.  A loss that has not been told yet still will be.
  Returned give_back(const Handle& handle);

  // A lock that could not be released: lost before, or not said in time.
  struct Unreleased {
    std::string name;
    std::optional<Verdict> lost;
    dynamodb::Answer answer;
  };
  // Keeps no more leases and gives back all that are held, many at once.  Waits
  // until that is said, until the deadline at the most; what is not said by
  // then goes on.
  std::vector<Unreleased> release_all(BootTime deadline);

  // The release has shown that the lock was lost before.  Told once.
  void lost(const Handle& handle, Verdict why);

  // Goes on with a call that was given up: awaits what is pending, and unless
  // the take certainly came to nothing, releases the lease; for as long as it
  // could last.  Where too much is left, ends what is pending, or drops a
  // release.  `handle` (may be null) is told of a loss.  False if no thread can
  // be started; `outcome` and `lease` are untouched then.
  bool finish(Call call, Lease& lease, Outcome& outcome,
              const std::shared_ptr<Holder>& holder, Handle handle);

  // How many leases are held, and for how many seconds leases were, added up.
  struct Usage {
    std::uint64_t held = 0;
    double held_s = 0;
  };
  Usage usage() const;

  // Waits until all has been told to the holder that is to be, tells it nothing
  // more and drops its callbacks.  On the thread that tells: does not wait.
  void settle(Holder& holder);

 private:
  struct Core;  // Outlives the Renewer while a thread is in it.
  const std::shared_ptr<Core> core_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RENEWER_HPP
