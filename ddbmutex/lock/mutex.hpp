// One lock as the threads of a process share it: who may ask DynamoDB for it,
// the waiting, the lease that is held, the giving back.
//
// Thread safety: any thread may call any member of Mutex, but construction and
// destruction.
#ifndef DDBMUTEX_MUTEX_HPP
#define DDBMUTEX_MUTEX_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "attempt.hpp"
#include "protocol.hpp"
#include "queue.hpp"
#include "renewer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// What the mutexes of a table share.
struct Table {
  explicit Table(const dynamodb::ClientOptions& options);
  // Waits two seconds at the most for what is left.
  ~Table() { sigv4::stop(*renewer, BootClock::now() + sigv4::kStopWithin); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const std::shared_ptr<Renewer> renewer;
  dynamodb::Client& client;  // The renewer's.
  dynamodb::RetryBudget& budget;
  Waits waits;
};

// How long a call may wait: for ever, `within`, or as long as `left` says,
// which is asked again after each wait.
struct Patience {
  std::chrono::nanoseconds within = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds (*left)(const void* at) = nullptr;
  const void* at = nullptr;
  // Counted from when the record that stood there first would be stale, if one
  // stood there.
  bool past_lease = false;

  bool forever() const {
    return left == nullptr && within == std::chrono::nanoseconds::max();
  }
  std::chrono::nanoseconds now() const {
    return left != nullptr ? left(at) : within;
  }
};

class Mutex {
 public:
  // The table must outlive it.
  Mutex(Table& table, std::shared_ptr<MutexSettings>&& holder)
      : table_(table), holder_(std::move(holder)) {}
  // Ends waits, unlocks, and calls nobody back any more.  Waits for a callback
  // that is running, unless that calls it.
  ~Mutex() { end(); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // At no patience it tries once, within request_timeout.  `cancel` may be
  // null.
  Result lock(const Patience& patience, Cancel* cancel);
  // Within request_timeout, and without memory; what is undecided by then goes
  // on in the background.  Where another thread waits, the lease may be handed
  // over to it as it is: see Renewer::hand_over().
  Result release();
  // With those changes, which the renewal of a lock that stays locked has with
  // it, too; null: none.
  Result release(const ChangesPtr& changes);
  // Now, on this thread.
  Result renew(const ChangesPtr& changes);

  // What is held, or was until it was lost, and has not been released; null if
  // nothing is.
  Handle held() const;
  // The same, for what may outlive this hold: it is not handed over any more.
  Handle tied() const;
  // What is stored in the row beside the record; empty if nothing is held.
  dynamodb::Item stored() const;
  // The token of what is held; 0 if there is none.
  std::int64_t token() const noexcept {
    return token_.load(std::memory_order_acquire);
  }
  // As Renewer::signal_loss(); null if nothing is held.
  std::shared_ptr<void> signal_loss(std::shared_ptr<void> (*make)(),
                                    void (*tell)(void*));

  // Ends the waits under way.
  void cancel();
  // What the destructor does first: no wait and no callback begins any more.
  void end();

  // Boot clock; BootTime::min() while the lock is not held.
  BootTime claim_end() const noexcept {
    return holder_->claim_end.load(std::memory_order_acquire);
  }
  const MutexSettings& holder() const { return *holder_; }

 private:
  inline bool lock_again(bool forever, Result& result);
  bool release_outer(const ChangesPtr& changes, Result& result);
  void say_released(Attempts& one, Result& result);
  inline bool hand_over(Signal& signal);  // The mutex is held.
  const dynamodb::Item& item() const;

 public:  // For the class of mutex.cpp that is one call of lock().
  using Guard = std::lock_guard<sigv4::Mutex>;
  // Passing errors, and no answer since the first, as whoever had the turn has
  // met them.  Once they have lasted for `patience` that is told to all who
  // wait for ever by then; who comes later begins anew.
  struct Trouble {
    BootTime since = BootTime::max();  // That: there is none.
    BootTime anew{};  // It was told to have ended: what began before is not it.
    // Null before the first: a lock's memory counts, and most have none.
    std::unique_ptr<dynamodb::Answer> last;
  };
  // For these the mutex is held.
  bool out_of_patience() const;
  inline void begin_to_wait(bool alone);

  Table& table_;
  const std::shared_ptr<MutexSettings> holder_;
  Observation observation_;  // Of the thread that has the turn.
  std::atomic<std::int64_t> token_{0};
  mutable sigv4::Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  Queue queue_;
  Handle held_;
  // With what is stored, if a take was told it or it was changed.
  std::unique_ptr<const Row> told_;
  Trouble trouble_;
  int rounds_ = 0;        // How often trouble was told.
  int locked_again_ = 0;  // How often, by the thread that has it.
};

// `now` and so much later, at the most BootTime::max().
BootTime later(BootTime now, std::chrono::nanoseconds by);

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_MUTEX_HPP
