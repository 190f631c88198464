// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The threads of one process that want the same lock: first come, first served.
// Only the thread that has the turn asks DynamoDB for it.  Once it has the lock
// it is the holder: nobody gets the turn until it has released the lock.
#ifndef DDBMUTEX_QUEUE_HPP
#define DDBMUTEX_QUEUE_HPP

#include <atomic>
#include <cstdint>
#include <vector>

#include "../../sigv4/system.hpp"
#include "../../sigv4/thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// The waiting calls of a table, which close() wakes.
//
// Thread safety: any thread may call any member.
class Waits {
 public:
  // Registers one wait for as long as this object exists.
  class One {
   public:
    explicit One(Waits& waits);
    ~One();
    One(const One&) = delete;
    One& operator=(const One&) = delete;
    // False if the table was closed() before: nobody wakes the waker.
    bool is_registered() const { return registered_; }
    sigv4::CallWaker& waker() const { return waker_; }

   private:
    Waits& waits_;
    mutable sigv4::CallWaker waker_;
    bool registered_ = false;
  };

  // Wakes all calls that wait.  Later ones are not registered.
  void close();
  // Also true once exit() has shut down OpenSSL.
  bool closed() const { return closed_ || sigv4::openssl_is_gone(); }

 private:
  sigv4::Mutex mutex_;
  std::atomic<bool> closed_{false};        // Written with the mutex held.
  std::vector<sigv4::CallWaker*> wakers_;  // GUARDED_BY(mutex_)
};

// A number for the calling thread.  Unlike a std::thread::id, no other thread
// ever gets it.
std::uint64_t this_thread();

// Thread safety: the caller locks a mutex for each call.  So nobody wakes a
// Waiter that has left.
class Queue {
 public:
  // One call that waits.
  class Waiter {
   public:
    // `stopped`: cancels this call alone; may be null.
    Waiter(sigv4::CallWaker& waker, const std::atomic<bool>* stopped)
        : waker_(waker), stopped_(stopped) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    bool cancelled() const {
      return cancelled_ || (stopped_ != nullptr && *stopped_);
    }

   private:
    friend class Queue;

    sigv4::CallWaker& waker_;
    const std::atomic<bool>* const stopped_;
    bool cancelled_ = false;
  };

  enum class Entry {
    turn,
    line,   // Not yet.  The waiter is woken when its turn comes.
    busy,   // Not yet, and the waiter does not `wait`.
    ended,  // After end(), or the waiter is cancelled.
  };
  // After `turn` or `line` the waiter must become_holder() or leave().
  Entry enter(Waiter& waiter, bool wait);
  bool has_turn(const Waiter& waiter) const {
    return !locked_ && !line_.empty() && line_.front() == &waiter;
  }
  void leave(Waiter& waiter);

  // The waiter that has the turn has got the lock, and leaves the line.  The
  // calling thread is the holder until begin_release().
  void become_holder();
  // Whether the calling thread is the holder.
  bool held_by_this_thread() const;
  // The holder begins to release the lock.  Nobody gets the turn before
  // end_release().
  void begin_release() { holder_ = 0; }
  // The lock is released: the first in line has the turn.
  void end_release();

  // Wakes all who wait for their turn.  Each decides anew how long to wait.
  void wake_line();
  // Cancels all waits, or only those that were made with this `stopped`.
  void cancel(const std::atomic<bool>* stopped = nullptr);
  // Cancels all waits, and refuses all later ones.
  void end();
  bool ended() const { return ended_; }

 private:
  void wake_first();

  // While nobody has the lock, the first has the turn.
  std::vector<Waiter*> line_;
  bool locked_ = false;       // From become_holder() to end_release().
  std::uint64_t holder_ = 0;  // The number of its thread; 0: nobody.
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_QUEUE_HPP
