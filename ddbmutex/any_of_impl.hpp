// What an AnyOf is inside: its options, what all its calls in one process
// share, and one call.
#ifndef DDBMUTEX_ANY_OF_IMPL_HPP
#define DDBMUTEX_ANY_OF_IMPL_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/system.hpp"
#include "any_of.hpp"
#include "any_of_pass.hpp"
#include "dynamodb/ask.hpp"
#include "errors.hpp"
#include "lock/mutex.hpp"
#include "lock/queue.hpp"
#include "table.hpp"

namespace ddbmutex {
inline namespace v0 {

struct AnyOf::Impl : detail::ErrorReporter {
  explicit Impl(AnyOfOptions&& the_options);

  class Call;
  struct Shared;
  Shared& get();
  Table::Impl& table() const { return *options.each.table->impl_; }
  std::chrono::milliseconds request_timeout() const;
  // The options of the mutex for one item.
  Options each(const std::string& sort_value) const;
  // How an error begins.
  std::string cannot_lock() const;

  AnyOfOptions options;  // Changed only by the constructor.
  sigv4::PerProcess<Shared> shared;
};

// What the calls of one process share.
struct AnyOf::Impl::Shared {
  // A mutex that was refused its item, and goes on watching its row: nothing
  // but that tells when the lease is over.
  struct Watched {
    std::unique_ptr<DdbMutex> mutex;
    any_of::Candidate item;
    BootTime due;
  };

  static constexpr std::size_t kMostWatched = 64;

  Shared(lock::Table& the_table, std::chrono::nanoseconds the_pause,
         std::chrono::nanoseconds request_timeout);

  // Ends the calls that have this `stopped`; null: all calls.
  void cancel(const std::atomic<bool>* stopped);

  // For all below, the mutex is held.

  // Wakes the calls that wait.  The others are reading or trying, and would
  // take it for a cancel().
  void wake_waiting_calls();
  // Whether the item can be tried now.  If it is watched, sets `mutex` to the
  // one that watched it.
  bool is_due(const any_of::Candidate& item, std::unique_ptr<DdbMutex>& mutex);
  void watch(any_of::Candidate&& item, std::unique_ptr<DdbMutex> mutex);
  // Draws the pause until the next pass, and doubles it.
  void plan_next_pass(BootTime now, std::chrono::nanoseconds longest_pause);
  // Lets all calls use a pass that has read at least a part of the table. Moves
  // to `unneeded`, which has room for kMostWatched, what is not to be watched
  // any more.
  void publish(const std::shared_ptr<any_of::Pass>& pass,
               std::shared_ptr<const any_of::SeenRows>&& rows,
               std::vector<Watched>& unneeded);

  std::vector<Watched>::iterator find_watched(const any_of::Candidate& item);

  lock::Table& table;
  const std::chrono::nanoseconds first_pause;
  sigv4::Mutex mutex;
  // All below: GUARDED_BY(mutex)
  std::vector<Call*> calls;
  int passes_under_way = 0;
  std::uint64_t passes_begun = 0;
  // The last that has ended, unless it read only a part and found nothing.
  std::shared_ptr<any_of::Pass> last_pass = std::make_shared<any_of::Pass>();
  std::shared_ptr<const any_of::SeenRows> seen =
      std::make_shared<const any_of::SeenRows>();
  std::optional<std::size_t> accepted;  // By the last pass that read all.
  std::vector<Watched> watched;
  // How long a pass takes: a guess at first, then as the last one has shown.
  std::chrono::nanoseconds pass_takes;
  // When a call may begin a pass that is not its first.
  BootTime next_pass_at{};
  std::chrono::nanoseconds pause;
};

// One call under way.  Used by the thread that makes the call, except where
// Shared::mutex is named.
//
// It goes round a loop: try an item of the last pass, or read a new pass, or
// wait for what other threads are reading or trying.
//
// Its deadline.  lock() has none.  try_lock_for() and try_lock_until() end at a
// time, but if a pass of their own has just found something, they still try one
// item of it; otherwise a table that takes long to be read would be of no use.
// try_lock() has request_timeout for all its reading and for waiting for other
// threads' passes; its deadline moves on by the time that its tries take.
class AnyOf::Impl::Call {
 public:
  Call(Impl& impl, const detail::Deadline& deadline,
       const std::atomic<bool>* stopped);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Sets `locked` if an item is ours.
  detail::ErrorPtr run(std::unique_ptr<DdbMutex>& locked);

 private:
  friend struct Shared;

  // What the call does next.
  enum class Step { try_item, read_table, wait, none_is_free, give_up };
  // How a try has ended.  Refused: the item is held by others, is gone, or is
  // not wanted any more.
  enum class Tried { got, refused, unknown };
  // The try that is under way, if there is a pass.
  struct Trial {
    std::shared_ptr<any_of::Pass> pass{};  // That found the item.
    any_of::Candidate item{};
    std::unique_ptr<DdbMutex> mutex{};
  };

  BootTime deadline() const;
  // When a pass must begin at the latest, to be read by the deadline.
  BootTime last_pass_begin(BootTime deadline) const;
  detail::ErrorPtr error_of(std::error_code why) const;
  detail::ErrorPtr ended_by_others() const;
  detail::ErrorPtr why_given_up();

  // Deciding.  For all but the first, Shared::mutex is held.
  Step next_step();
  Step next_step_in_own_pass();
  bool begin_try(const std::shared_ptr<any_of::Pass>& pass);
  Step begin_pass();
  Step begin_wait(BootTime until);

  void wait();

  // Reading the table.
  detail::ErrorPtr read_table();
  bool is_wanted(const LockInfo& item) const;
  detail::ErrorPtr judge_reading(const dynamodb::Items& items, bool time_is_up);
  void end_pass();

  // Trying an item.
  detail::ErrorPtr try_item(std::unique_ptr<DdbMutex>& locked);
  detail::ErrorPtr judge_error(std::error_code ec);
  bool is_still_wanted() const;
  void set_trying(DdbMutex* mutex);
  void end_try(Tried how);

  Impl& impl_;
  Shared& shared_;
  const lock::Patience patience_;
  const bool once_;  // try_lock()
  const std::uint64_t thread_ = lock::this_thread();
  BootTime end_;  // The deadline, unless it follows the caller's own clock.
  const std::atomic<bool>* const stopped_;
  const lock::Waits::One wait_;
  // True for a call that `accept` makes: an outer call of this thread asks it.
  bool nested_ = false;
  BootTime wait_until_{};

  // Passes.  A pass that began after the call is the call's own, whichever call
  // reads it.
  std::uint64_t begun_before_ = 0;
  bool had_own_ = false;  // One of its own has ended.
  bool just_read_ = false;
  std::shared_ptr<any_of::Pass> reading_;  // The one that this call reads.

  // Of try_lock(): the pass that is tried to its end, unless a newer one can
  // say more.
  std::shared_ptr<any_of::Pass> own_;
  int most_refused_;  // In a row, before a newer pass is read.
  // Set once it waits for tries of own_ by other threads.
  std::optional<BootTime> awaits_tries_until_;

  Trial trial_;

  // Errors.
  bool was_answered_ = false;  // With something else than a transient error.
  BootTime failing_since_ = BootTime::max();
  detail::ErrorPtr last_failed_try_;
  detail::ErrorPtr unread_;  // Why the table was not read to its end.

  // GUARDED_BY(Shared::mutex)
  bool waits_ = false;
  bool cancelled_ = false;
  DdbMutex* trying_ = nullptr;
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANY_OF_IMPL_HPP
