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

  // Whether close() or exit() has ended it.
  bool is_closed() const { return waits.closed() || keeper->is_stopping(); }

  const std::shared_ptr<Keeper> keeper;
  dynamodb::Client& client;  // The keeper's.
  dynamodb::RetryBudget& budget;
  Waits waits;
  TurnsOfOthers turns_of_others;
};

class Mutex {
 public:
  // The table must outlive it.
  Mutex(TableState& table, MutexSettingsPtr&& settings)
      : table_(table), settings_(std::move(settings)) {}
  // Ends waits, unlocks, and makes no more callbacks.  Waits for a callback
  // that is running, and until a loss is reported, unless a callback destroys
  // the mutex.
  ~Mutex() { end(); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Waits for that time; max(): for ever.  With zero it tries once, within
  // request_timeout, or twice that if it has to look first.  `stopped` may be
  // null.  To end this call alone, set it and pass it to cancel().  The verdict
  // is `ours` if the call has succeeded.
  Result lock(std::chrono::nanoseconds time, const std::atomic<bool>* stopped);
  // Returns within request_timeout, and needs no memory.  If there is no answer
  // by then, the release goes on in the background.  The changes may be null.
  // The verdict is `released` if the call has succeeded.
  Result release(const ChangesPtr& changes);
  // Renews now.
  Result renew(const ChangesPtr& changes);
  // See Keeper::stop_renewing().  Does nothing if nothing is held.
  void stop_renewing();
  // The verdict is `ours`, `not_held` or a loss.
  Result state() const;

  // The current Hold, even if it was lost; null once release() begins.
  HoldPtr held() const;
  // What the user has stored in the row; empty if nothing is held.
  dynamodb::Item stored() const;
  // The fencing token of the lease that is held, until its release has ended; 0
  // if there is none.
  std::int64_t token() const noexcept {
    return token_.load(std::memory_order_acquire);
  }

  // Ends all waits under way, or only those with this `stopped`.
  void cancel(const std::atomic<bool>* stopped = nullptr);
  // What the destructor does.  After it no wait and no callback begins.
  void end();

  // Boot clock; BootTime::min() while the lock is not held.
  BootTime claim_end() const noexcept {
    return settings_->claim_end.load(std::memory_order_acquire);
  }
  const MutexSettings& settings() const { return *settings_; }

 private:
  class Acquisition;
  using Guard = std::lock_guard<sigv4::Mutex>;
  void leave_next_turn();
  const dynamodb::Item& stored_item() const;  // REQUIRES: mutex_ is held.

  TableState& table_;
  const MutexSettingsPtr settings_;
  std::atomic<std::int64_t> token_{0};
  // A renew() with changes holds it.  Locked before mutex_.
  sigv4::Mutex changing_;
  mutable sigv4::Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  Queue queue_;
  HoldPtr held_;
  // Its `others` are what the user has stored.  Null: the user has stored what
  // the take wrote, settings().place.attributes.
  std::unique_ptr<const Row> stored_row_;
  // The last thread that did not get the lock saw that another host holds it.
  // If the next thread gets no answer in time, it reports `busy` instead of a
  // timeout.
  bool found_held_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_MUTEX_HPP
