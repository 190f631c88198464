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

// The calls of a table that wait.
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
    // Null if the table was closed() before.
    sigv4::CallWaker* waker() const { return registered_ ? &waker_ : nullptr; }

   private:
    Waits& waits_;
    mutable sigv4::CallWaker waker_;
    bool registered_ = false;
  };

  // Wakes all calls that wait.  Later ones get no waker.
  void close();
  // Also true once exit() has shut down OpenSSL.
  bool closed() const { return closed_ || sigv4::openssl_is_gone(); }

 private:
  sigv4::Mutex mutex_;
  std::atomic<bool> closed_{false};        // Set with the mutex held.
  std::vector<sigv4::CallWaker*> wakers_;  // GUARDED_BY(mutex_)
};

// A number for the calling thread that no other thread ever gets.
std::uint64_t this_thread();

// Thread safety: one thread at a time, also for the queue's Waiters.  So no
// Waiter is destroyed while another thread wakes it.
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
    busy,   // Not now, and the waiter does not `wait`.
    ended,  // After end(), or the waiter is cancelled.
  };
  // After `turn` or `line` the waiter must become_holder() or leave().
  Entry enter(Waiter& waiter, bool wait);
  bool has_turn(const Waiter& waiter) const { return turn_ == &waiter; }
  void leave(Waiter& waiter);

  // The call that has the turn returns with the lock.  The calling thread is
  // the holder until let_go().
  void become_holder();
  // Whether the calling thread is the holder.
  bool held_by_this_thread() const;
  // The holder begins to release the lock.  Nobody gets the turn before pass().
  void let_go() { holder_ = 0; }
  // The lock is released: gives the turn to the first in line.
  void pass();

  // Wakes everyone in line.  Each decides anew how long to wait.
  void wake_line();
  // Cancels all waits, or only those that were made with this `stopped`.
  void cancel(const std::atomic<bool>* stopped = nullptr);
  // Cancels all waits, and refuses all later ones.
  void end();
  bool ended() const { return ended_; }

 private:
  void give_turn_to_next();

  std::vector<Waiter*> line_;
  Waiter* turn_ = nullptr;    // Has the turn, and not the lock.
  bool locked_ = false;       // From become_holder() to pass().
  std::uint64_t holder_ = 0;  // The number of its thread; 0: nobody.
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_QUEUE_HPP
