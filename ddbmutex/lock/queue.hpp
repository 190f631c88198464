// The threads of one process that want the same lock: first come, first served.
// Only the one that has the turn talks to DynamoDB; what it has got it may hand
// over to the next one as it is.
#ifndef DDBMUTEX_QUEUE_HPP
#define DDBMUTEX_QUEUE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "../../sigv4/system.hpp"
#include "../../sigv4/waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// The waits under way on all locks of a table: a Waker each, lent and kept for
// the next, so that a lock that nobody waits for needs no descriptor.
//
// Thread safety: any thread may call any member.
class Waits {
 public:
  // One of them, for as long as this is there.
  class One {
   public:
    explicit One(Waits& waits);
    ~One();
    One(const One&) = delete;
    One& operator=(const One&) = delete;
    // Null: closed before.
    sigv4::Waker* waker() const { return waker_.get(); }

   private:
    friend class Waits;
    Waits& waits_;
    std::unique_ptr<sigv4::Waker> waker_;
    One* next_ = nullptr;
  };

  // Wakes all of them; remembered.
  void close();
  bool closed() const { return closed_; }

 private:
  static constexpr std::size_t kMaxIdle = 8;

  sigv4::Mutex mutex_;
  std::atomic<bool> closed_{false};  // Set with the mutex held.
  One* first_ = nullptr;             // GUARDED_BY(mutex_)
  // Both: GUARDED_BY(mutex_)
  std::unique_ptr<sigv4::Waker> idle_[kMaxIdle];
  std::size_t idle_count_ = 0;
};

// Ends one call that waits, from another thread.  Remembered.
class Cancel {
 public:
  void cancel();
  bool cancelled() const { return cancelled_; }
  void attach(sigv4::Waker* waker);  // Null: none any more.

 private:
  sigv4::Mutex mutex_;
  std::atomic<bool> cancelled_{false};  // Set with the mutex held.
  sigv4::Waker* waker_ = nullptr;       // GUARDED_BY(mutex_)
};

// A thread, by a number that is never used again.
std::uint64_t this_thread() noexcept;

// Thread safety: as an int, and so are the Waiters in it.
class Queue {
 public:
  // One call that waits.
  class Waiter {
   public:
    // `cancel` may be null.
    explicit Waiter(sigv4::Waker& waker, Cancel* cancel = nullptr);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    bool has_turn() const { return has_turn_; }
    bool has_lock() const { return has_lock_; }  // It was handed over.
    bool cancelled() const;

   private:
    friend class Queue;
    void cancel();

    sigv4::Waker& waker_;
    Cancel* const cancel_;
    const std::uint64_t thread_ = this_thread();
    Waiter* next_ = nullptr;  // In line.
    bool has_turn_ = false;
    bool has_lock_ = false;
    bool cancelled_ = false;
  };

  // Gives the turn to one who comes when nobody has it.  Others join the line,
  // and are woken when their turn comes, unless they do not `wait`.  Each who
  // has the turn, waits for it or was handed the lock must keep() or leave().
  enum class Entry { turn, line, refused };
  Entry enter(Waiter& waiter, bool wait);

  // The call ends, but the turn stays with its thread until pass().  False once
  // ended: leave() then.
  bool keep(Waiter& waiter);
  void leave(Waiter& waiter);
  // After a keep(): from now on no thread has the turn, but none gets it yet
  // either.
  void let_go();
  // Lets the next one in after a keep().
  void pass();
  // The first in line whose wait has not been ended; null if there is none.
  Waiter* heir() const;
  // After a keep(): that one's thread keeps the turn from now on, and has yet
  // to keep() or leave().  REQUIRES: the heir.
  void hand_over(Waiter& heir);
  // He has not yet, and is to.
  bool handed_over() const {
    return turn_ != nullptr && turn_->has_lock_ && !ended_;
  }
  // The turn was kept by the thread that asks.
  bool kept_by_this_thread() const { return renewer_ == this_thread(); }

  // Wakes all in line, who look around and go on waiting.
  void wake_line();
  // Cancels all waits under way.
  void cancel();
  // The same, and those to come.
  void end();

 private:
  void remove(Waiter& waiter);
  void admit_next();

  Waiter* line_ = nullptr;
  Waiter* turn_ = nullptr;     // Who has it and has not kept it.
  std::uint64_t renewer_ = 0;  // The thread that kept it; 0: it is free.
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_QUEUE_HPP
