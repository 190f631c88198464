// One lock as the threads of a process share it: who may ask DynamoDB for it,
// the waiting, the lease that is held, the giving back.
//
// Thread safety: any thread may call any member of Mutex, but construction and
// destruction.
#ifndef DDBMUTEX_LOCK_MUTEX_HPP
#define DDBMUTEX_LOCK_MUTEX_HPP

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "dynamodb/answer.hpp"
#include "dynamodb/client.hpp"
#include "dynamodb/retry.hpp"
#include "lock/driver.hpp"
#include "lock/protocol.hpp"
#include "lock/queue.hpp"
#include "lock/renewer.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/http.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// What the mutexes of a table share.
struct Table {
  explicit Table(dynamodb::ClientOptions options)
      : client(std::make_shared<dynamodb::Client>(std::move(options))),
        budget(std::make_shared<dynamodb::RetryBudget>()),
        renewer(client, budget) {}

  const std::shared_ptr<dynamodb::Client> client;
  const std::shared_ptr<dynamodb::RetryBudget> budget;
  Renewer renewer;
  Waits waits;
};

// How long a call may wait: for ever, `within`, or as long as `left` says,
// which is asked again after each wait.
struct Patience {
  std::chrono::nanoseconds within = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds (*left)(const void* at) = nullptr;
  const void* at = nullptr;

  bool forever() const {
    return left == nullptr && within == std::chrono::nanoseconds::max();
  }
  std::chrono::nanoseconds now() const {
    return left != nullptr ? left(at) : within;
  }
};

// Ends one call that waits, from another thread.  Remembered.
class Cancel {
 public:
  void cancel();
  bool cancelled() const;

 private:
  friend class Acquisition;
  void attach(sigv4::Waker* waker);  // Null: none any more.

  mutable std::mutex mutex_;
  bool cancelled_ = false;         // GUARDED_BY(mutex_)
  sigv4::Waker* waker_ = nullptr;  // Likewise.
};

// How a call ended.
struct Result {
  enum class Kind {
    done,
    busy,        // lock: another has it, here or elsewhere.
    deadlock,    // lock: this thread has it.
    cancelled,   // lock
    closed,      // lock: the table is.
    no_thread,   // lock: none could be started to renew the lease.
    bad_record,  // lock: `problem` says why the row is no lock record.
    kept_row,    // lock: the row bears a fencing token.
    failed,      // `answer` says why.
    not_held,    // release
    lost,        // release: it was lost before, `loss` says how.
  };
  Kind kind = Kind::done;
  dynamodb::Answer answer;
  std::string problem;
  Verdict loss = Verdict::expired;
};

class Mutex {
 public:
  struct Waiting {
    std::chrono::nanoseconds first_poll;  // Doubles up to the longest.
    std::chrono::nanoseconds longest_poll;
    // Passing errors are tried again for so long by a call that waits for ever.
    std::chrono::nanoseconds patience;
  };

  // The table must outlive it.
  Mutex(Table& table, Driver::Settings settings, Holder::Terms terms,
        Holder::Callbacks callbacks, Waiting waiting);
  // Ends waits, unlocks, and calls nobody back any more.  Waits for a callback
  // that is running, unless that calls it.
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // At no patience it tries once, within request_timeout.  `cancel` may be
  // null.
  Result lock(const Patience& patience, Cancel* cancel);
  // Within request_timeout; what is undecided by then goes on in the
  // background.
  Result release();

  // Ends the waits under way.
  void cancel() { queue_.cancel(); }
  // What the destructor does first: no wait and no callback begins any more.
  void end();

  // Boot clock; BootTime::min() while the lock is not held.
  BootTime claim_end() const noexcept { return holder_->claim_end(); }
  const Driver::Settings& settings() const {
    return holder_->driver.settings();
  }

 private:
  friend class Acquisition;
  Result say_released(Lease& lease, const Renewer::Handle& handle);

  Table& table_;
  const std::shared_ptr<Holder> holder_;
  const Waiting waiting_;
  Queue queue_;
  Observation observation_;  // Of the thread that has the turn.
  std::mutex mutex_;
  Renewer::Handle held_;  // GUARDED_BY(mutex_)
};

// `now` and so much later, at the most BootTime::max().
BootTime later(BootTime now, std::chrono::nanoseconds by);

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LOCK_MUTEX_HPP
