// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One lock as the threads of a process share it: which thread may ask DynamoDB
// for it, how the others wait, the lease that is held, and its release.
//
// Thread safety: any thread may call any member of Mutex, except the
// constructor and the destructor.
#ifndef DDBMUTEX_MUTEX_HPP
#define DDBMUTEX_MUTEX_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "hold.hpp"
#include "keeper.hpp"
#include "protocol.hpp"
#include "queue.hpp"
#include "turns.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// What the mutexes of a table share.
struct TableState {
  explicit TableState(const dynamodb::ClientOptions& options);
  // Waits at most two seconds for unfinished requests.
  ~TableState() { sigv4::stop(*keeper, BootClock::now() + sigv4::kStopWithin); }
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;

  const std::shared_ptr<Keeper> keeper;
  dynamodb::Client& client;  // The keeper's.
  dynamodb::RetryBudget& budget;
  // By close(), or by exit().
  bool is_closed() const { return waits.closed() || keeper->is_stopping(); }

  Waits waits;
  TurnsOfOthers turns_of_others;
};

class Mutex {
 public:
  // The table must outlive it.
  Mutex(TableState& table, MutexSettingsPtr&& settings)
      : table_(table), settings_(std::move(settings)) {}
  // Ends waits, unlocks, and makes no more callbacks.  Waits for a callback
  // that is running, unless that callback destroys the mutex.
  ~Mutex() { end(); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Waits for that time; max(): for ever.  With zero it tries once, within
  // request_timeout.  `stopped` ends the call once it is set and passed to
  // cancel(); may be null.  The verdict is `ours` if it succeeded.
  Result lock(std::chrono::nanoseconds time, const std::atomic<bool>* stopped);
  // Returns within request_timeout, and needs no memory.  What is undecided
  // then is finished in the background.  The changes may be null.  The verdict
  // is `released` if it succeeded.
  Result release(const ChangesPtr& changes);
  // Renews now.
  Result renew(const ChangesPtr& changes);
  // See Keeper::stop_renewing().  Does nothing if nothing is held.
  void stop_renewing();
  // The verdict is `ours`, `not_held` or a loss.
  Result state() const;

  // What is held, even if it was lost; null once it is released.
  HoldPtr held() const;
  // What the user has stored in the row; empty if nothing is held.
  dynamodb::Item stored() const;
  // The fencing token of the lease that is held; 0 if there is none.
  std::int64_t token() const noexcept {
    return token_.load(std::memory_order_acquire);
  }

  // Ends the waits under way, or those that have just been `stopped`.
  void cancel(const std::atomic<bool>* stopped = nullptr);
  // The destructor calls this first.  After it no wait and no callback begins.
  void end();

  // Boot clock; BootTime::min() while the lock is not held.
  BootTime claim_end() const noexcept {
    return settings_->claim_end.load(std::memory_order_acquire);
  }
  const MutexSettings& settings() const { return *settings_; }

 private:
  class Acquisition;  // One call of lock().
  using Guard = std::lock_guard<sigv4::Mutex>;
  // Transient errors of the thread that is first in the queue, since its last
  // answer.  Once they have lasted for MutexSettings::patience while a call
  // waits without a deadline, it ends with the last of them.
  struct Outage {
    std::optional<BootTime> since;  // Not set: nothing is failing.
    bool warned = false;            // It has been logged.
    // Null before the first error.  By pointer, because most locks have none.
    std::unique_ptr<dynamodb::Answer> last;
  };

  void leave_next_turn();
  const dynamodb::Item& stored_item() const;  // REQUIRES: mutex_ is held.

  TableState& table_;
  const MutexSettingsPtr settings_;
  std::atomic<std::int64_t> token_{0};
  mutable sigv4::Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  Queue queue_;
  HoldPtr held_;
  // What is stored in the row, if a take has read it or a call has changed it.
  std::unique_ptr<const Row> stored_row_;
  Outage outage_;
  // What the last thread that asked DynamoDB and left without the lock saw:
  // another host holds it.  A thread that gets the turn with no time left to
  // ask reports that.
  bool found_held_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_MUTEX_HPP
