// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The threads of one process that want the same lock: first come, first served.
// Only the thread that has the turn asks DynamoDB for it.  With the lock it
// becomes the holder, and nobody gets the turn until it has released the lock.
#ifndef DDBMUTEX_QUEUE_HPP
#define DDBMUTEX_QUEUE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

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
    sigv4::CallWaker* waker() const { return begun_; }

   private:
    friend class Waits;
    Waits& waits_;
    sigv4::CallWaker waker_;
    sigv4::CallWaker* begun_ = nullptr;  // waker_, unless it was closed.
    One* next_ = nullptr;
  };

  // Wakes all waits.  Those made later have no waker.
  void close();
  // Also true if exit() has gone so far that nothing can be sent.
  bool closed() const { return closed_ || sigv4::openssl_is_gone(); }

 private:
  sigv4::Mutex mutex_;
  std::atomic<bool> closed_{false};  // Set with the mutex held.
  One* first_ = nullptr;             // GUARDED_BY(mutex_)
};

// A number for the calling thread that no other thread ever gets.
std::uint64_t this_thread() noexcept;

// Thread safety: one thread at a time, also for the queue's Waiters.
class Queue {
 public:
  // One call that waits.
  class Waiter {
   public:
    // `stopped`: cancels this call alone; may be null.
    explicit Waiter(sigv4::CallWaker& waker,
                    const std::atomic<bool>* stopped = nullptr)
        : waker_(waker), stopped_(stopped) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    bool has_turn() const { return has_turn_; }
    bool cancelled() const {
      return cancelled_ || (stopped_ != nullptr && *stopped_);
    }

   private:
    friend class Queue;
    void cancel();

    sigv4::CallWaker& waker_;
    const std::atomic<bool>* const stopped_;
    const std::uint64_t thread_ = this_thread();
    Waiter* next_ = nullptr;  // In line.
    bool has_turn_ = false;
    bool cancelled_ = false;
  };

  // Gives the turn to the waiter if nobody has it.  Otherwise the waiter joins
  // the line and is woken when its turn comes; if it does not `wait`, it is
  // refused.  A waiter that has the turn or is in line must become_holder() or
  // leave().
  enum class Entry { turn, line, refused };
  Entry enter(Waiter& waiter, bool wait);

  // The call returns with the lock: its thread is the holder until pass().
  // Returns false after end(); then the waiter must leave().
  bool become_holder(Waiter& waiter);
  void leave(Waiter& waiter);
  // While the lock is being released: no thread counts as the holder any more,
  // but nobody gets the turn before pass().
  void let_go();
  // The lock is released: gives the turn to the first in line.
  void pass();
  // Whether the calling thread is the holder.
  bool held_by_this_thread() const { return holder_ == this_thread(); }

  // Wakes everyone in line.  Each decides anew how long to wait.
  void wake_line();
  // Cancels all waits, or those that have just been `stopped`.
  void cancel(const std::atomic<bool>* stopped = nullptr);
  // Cancels all waits, and refuses all later ones.
  void end();

 private:
  void admit_next();

  Waiter* line_ = nullptr;
  Waiter* turn_ = nullptr;  // Has the turn, but has not called become_holder().
  // The number of the thread that holds the lock; 0 if none does, kNobody after
  // let_go().
  std::uint64_t holder_ = 0;
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_QUEUE_HPP
