// The threads of one process that want the same lock: first come, first served.
// Only the one that has the turn talks to DynamoDB.
//
// Thread safety: any thread may call any member.
#ifndef DDBMUTEX_QUEUE_HPP
#define DDBMUTEX_QUEUE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "../sigv4/http.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// The waits under way on all locks of a table: a Waker each, lent and kept for
// the next, so that a lock that nobody waits for needs no descriptor.
class Waits {
 public:
  // Null once closed.
  sigv4::Waker* begin();
  void end(sigv4::Waker* waker);

  // One of them, for as long as this is there.
  class One {
   public:
    explicit One(Waits& waits) : waits_(waits), waker_(waits.begin()) {}
    ~One() {
      if (waker_ != nullptr) waits_.end(waker_);
    }
    One(const One&) = delete;
    One& operator=(const One&) = delete;
    sigv4::Waker* waker() const { return waker_; }  // Null: closed before.

   private:
    Waits& waits_;
    sigv4::Waker* const waker_;
  };

  // Wakes all of them; remembered.
  void close();
  bool closed() const;

 private:
  static constexpr std::size_t kMaxIdle = 8;

  mutable std::mutex mutex_;
  bool closed_ = false;                              // GUARDED_BY(mutex_)
  std::vector<std::unique_ptr<sigv4::Waker>> lent_;  // GUARDED_BY(mutex_)
  std::vector<std::unique_ptr<sigv4::Waker>> idle_;  // GUARDED_BY(mutex_)
};

// A thread, by a number that is never used again.
std::uint64_t this_thread() noexcept;

class Queue {
 public:
  // One call that waits.
  class Waiter {
   public:
    explicit Waiter(sigv4::Waker& waker) : waker_(waker) {}

   private:
    friend class Queue;
    sigv4::Waker& waker_;
    const std::uint64_t thread_ = this_thread();
    bool has_turn_ = false;   // GUARDED_BY(Queue::mutex_)
    bool cancelled_ = false;  // Likewise.
  };

  // Gives the turn to one who comes when nobody has it.  Others join the line,
  // and are woken when their turn comes, unless they do not `wait`.  Each who
  // has the turn or waits for it must keep() or leave().
  enum class Entry { turn, line, refused };
  Entry enter(Waiter& waiter, bool wait);

  bool has_turn(const Waiter& waiter) const;
  bool cancelled(const Waiter& waiter) const;

  // The call ends, but the turn stays with its thread until pass().  False once
  // ended: leave() then.
  bool keep(Waiter& waiter);
  void leave(Waiter& waiter);
  // After a keep(): from now on no thread has the turn, but none gets it yet
  // either.
  void let_go();
  // Lets the next one in after a keep().
  void pass();
  // The turn was kept by the thread that asks.
  bool kept_by_this_thread() const;

  // Cancels all waits under way.
  void cancel();
  // The same, and those to come.
  void end();

 private:
  void admit_next();  // REQUIRES: mutex_ is held.
  void cancel_all();  // Likewise.

  mutable std::mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  std::vector<Waiter*> line_;
  Waiter* turn_ = nullptr;    // Who has it and has not kept it.
  std::uint64_t keeper_ = 0;  // The thread that kept it; 0: it is free.
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_QUEUE_HPP
