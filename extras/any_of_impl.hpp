// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The inside of an AnyOf: its options, what a pass over its table has found,
// what all its calls in one process share, and one call.
#ifndef DDBMUTEX_ANY_OF_IMPL_HPP
#define DDBMUTEX_ANY_OF_IMPL_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "../ddbmutex/dynamodb/ask.hpp"
#include "../ddbmutex/dynamodb/retry.hpp"
#include "../ddbmutex/errors.hpp"
#include "../ddbmutex/impl.hpp"
#include "../ddbmutex/lock/mutex.hpp"
#include "../ddbmutex/lock/queue.hpp"
#include "../sigv4/backoff.hpp"
#include "../sigv4/boot_clock.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/system.hpp"
#include "any_of.hpp"
#include "pages.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace any_of {

// An item that may be free.
struct Candidate {
  std::string name{};
  std::string sort_value{};
  BootTime since{};  // Every pass since then has seen its row unchanged.
  std::uint64_t token = 0;
  double chance = 0;  // Random; decides between items that are equal otherwise.
  // More than 0 if the item is held and its row does not say when the lease
  // ends: a DdbMutex may take it after it has seen it unchanged for so long.
  std::chrono::nanoseconds watch_for{};

  bool has_to_be_watched() const {
    return watch_for > std::chrono::nanoseconds::zero();
  }
  bool is_same_item(const Candidate& other) const {
    return name == other.name && sort_value == other.sort_value;
  }
};

struct IsBetter {
  bool operator()(const Candidate& one, const Candidate& other) const;
};

// What one pass over the table has found: how many items there are, which of
// them may be free, and which to try first.
//
// A pass does not decide who gets an item, a DdbMutex does.  A pass that is
// wrong or old costs only a refused write.  So hashes, which may collide, and
// chance are good enough for the order of tries.
//
// Only the call that reads a pass uses it until it has ended.  After that it is
// GUARDED_BY(Shared::mutex), except `rows`, which are constant.
struct Pass {
  enum class Extent { nothing, part, all };  // How much of the table was read.
  struct Row {
    std::size_t version;  // A hash of the record.
    BootTime since;       // As in Candidate.
  };

  // `the_number`: 1, 2, ... in the order in which passes begin; 0 stands for no
  // pass.  `the_rows_before`: an earlier pass.  Rows that have not changed
  // since then keep their times.
  explicit Pass(std::uint64_t the_number = 0,
                std::shared_ptr<const Pass> the_rows_before = nullptr);

  // Called for each item that is wanted, free or held.  `wait`: how long the
  // row must have been unchanged before a try is worth it; nothing if the lease
  // is certainly not over.
  void see(const LockInfo& item, std::optional<std::chrono::nanoseconds> wait,
           dynamodb::RetryBudget& random);
  // Copies the rows that this pass did not reach from the one before.
  void keep_rows_before();

  // Takes out one of the best candidates, at random.  REQUIRES: there is one.
  Candidate take_one(dynamodb::RetryBudget& random);
  // Whether the item is among the candidates and has to be watched.
  bool has_to_watch(const Candidate& item) const;
  // True if nothing is free once all candidates were refused.
  bool is_complete() const { return extent == Extent::all && !left_out; }

  const std::uint64_t number;
  const BootTime begun = BootClock::now();
  BootTime ended{};
  Extent extent = Extent::nothing;
  std::size_t accepted = 0;  // Items that are wanted, free or held.
  std::multiset<Candidate, IsBetter> candidates;  // The best first.
  // A candidate was dropped without a refused try, so nobody knows whether it
  // is free.
  bool left_out = false;
  int being_tried = 0;  // Candidates that were taken out by calls.
  int refused_in_a_row = 0;
  // By a hash of the name and the sort value.
  std::map<std::size_t, Row> rows;
  std::shared_ptr<const Pass> rows_before;  // Null once the pass has ended.
};

}  // namespace any_of

struct AnyOf::Impl : detail::ErrorReporter {
  explicit Impl(const AnyOfOptions& the_options);

  class Call;
  struct Shared;
  Shared& get();
  detail::Inside::TableImpl& table() const {
    return *detail::Inside::of(*options.each.table);
  }
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
  // A mutex that did not get its item.  It is kept because only its observation
  // of the row shows when the lease is over.
  struct Watched {
    any_of::Candidate item;
    std::unique_ptr<DdbMutex> mutex;
    BootTime due;
  };

  Shared(lock::TableState& the_table, std::chrono::nanoseconds the_pause,
         std::chrono::nanoseconds request_timeout);

  // Ends the calls that were made with this `stopped`; null: all calls.
  void cancel(const std::atomic<bool>* stopped);

  // The methods below REQUIRE that the mutex is held.

  // Wakes the calls that wait.  Others are reading or trying: to them a wake-up
  // would mean cancel().
  void wake_waiting_calls();
  // Whether the item can be tried now.  If it is watched, sets `mutex` to the
  // one that watched it.
  bool is_due(const any_of::Candidate& item, std::unique_ptr<DdbMutex>& mutex);
  // Moves a mutex that was refused the item to `watched`, unless that is full.
  void watch(const any_of::Candidate& item, std::unique_ptr<DdbMutex>& mutex);
  // Draws the pause until the next pass.
  void plan_next_pass(BootTime now, std::chrono::nanoseconds longest_pause);
  // Lets all calls use a pass that has read at least a part of the table.
  // Returns what does not have to be watched any more.
  std::list<Watched> publish(const std::shared_ptr<any_of::Pass>& pass);

  std::list<Watched>::iterator find_watched(const any_of::Candidate& item);

  lock::TableState& table;
  const std::chrono::nanoseconds first_pause;
  sigv4::Mutex mutex;
  // All below: GUARDED_BY(mutex)
  std::list<Call*> calls;
  int passes_under_way = 0;
  std::uint64_t passes_begun = 0;
  // The last that ended, not counting those that were cut short and found
  // nothing.
  std::shared_ptr<any_of::Pass> last_pass = std::make_shared<any_of::Pass>();
  // The last that ended, also if it was cut short.
  std::shared_ptr<const any_of::Pass> last_rows = last_pass;
  std::optional<std::size_t> accepted;  // By the last pass that read all.
  std::list<Watched> watched;
  // How long a pass takes: a guess at first, then the time of the last one.
  std::chrono::nanoseconds pass_takes;
  // When a call may begin a pass that is not its first.
  BootTime next_pass_at{};
  sigv4::Backoff backoff;
};

// One call under way.  Used by the thread that makes the call, except where
// Shared::mutex is named.
//
// A call repeats one of three steps: it tries an item of the last pass, reads a
// new pass, or waits for what other threads are reading or trying.
//
// Its deadline:
// - lock() has none.
// - try_lock_for() and try_lock_until() end at a time.  But if a pass of their
//   own has just found something, they still try one item of it.  Otherwise
//   they could never lock an item of a table that takes longer to read.
// - try_lock() has request_timeout for reading and for waiting for other
//   threads' passes.  The time that its tries take is added to its deadline.
class AnyOf::Impl::Call {
 public:
  Call(Impl& impl, std::chrono::nanoseconds time,
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

  // When a pass must begin at the latest, to be read by the deadline.
  BootTime last_pass_begin() const;
  detail::ErrorPtr error_of(std::error_code why) const;
  detail::ErrorPtr ended_by_others() const;
  detail::ErrorPtr why_given_up();

  // Deciding.  next_step() locks Shared::mutex; the others REQUIRE that it is
  // held.
  Step next_step();
  Step next_step_in_own_pass();
  bool begin_try(const std::shared_ptr<any_of::Pass>& pass);
  Step begin_pass();
  Step begin_wait(BootTime until);

  void wait();

  // Reading the table.
  detail::ErrorPtr read_table();
  bool is_wanted(const LockInfo& item) const;
  std::optional<std::chrono::nanoseconds> wait_for_lease(
      const LockInfo& item) const;
  detail::ErrorPtr judge_reading(const dynamodb::Items& items, bool time_is_up);
  detail::ErrorPtr error_of_reading(const dynamodb::Answer& answer) const;
  void end_pass();

  // Trying an item.
  detail::ErrorPtr try_item(std::unique_ptr<DdbMutex>& locked);
  detail::ErrorPtr judge_error(std::error_code ec);
  bool is_still_wanted() const;
  void set_trying(DdbMutex* mutex);
  void end_try(Tried how);

  Impl& impl_;
  Shared& shared_;
  const bool once_;     // try_lock()
  const bool forever_;  // lock()
  const std::uint64_t thread_ = lock::this_thread();
  BootTime end_;  // The deadline.
  const std::atomic<bool>* const stopped_;
  const lock::Waits::One wait_;
  // This call was made by the `accept` of another call on this thread.
  bool nested_ = false;
  BootTime wait_until_{};

  // Passes.  A pass that began after this call counts as its own, whichever
  // call reads it.
  std::uint64_t begun_before_ = 0;  // The number of the last that is not.
  bool had_own_ = false;            // One of its own has ended.
  bool just_read_ = false;          // The last step was to read a pass.
  std::shared_ptr<any_of::Pass> reading_;  // The one that this call reads.

  // try_lock() tries all candidates of this pass.  A newer pass that has read
  // more of the table takes its place.
  std::shared_ptr<any_of::Pass> own_pass_;
  int most_refused_;  // In a row, before a newer pass is read.
  // Set once the call waits for tries of own_pass_ by other threads.
  std::optional<BootTime> awaits_tries_until_;

  // The try that is under way, unless the pass is null.
  std::shared_ptr<any_of::Pass> trying_from_;  // The pass that found the item.
  any_of::Candidate item_;
  std::unique_ptr<DdbMutex> mutex_;

  // Errors.
  // A try was answered, or a pass of its own has read the whole table.
  bool was_answered_ = false;
  BootTime failing_since_ = BootTime::max();
  detail::ErrorPtr last_failed_try_;
  detail::ErrorPtr unread_;  // Why the table was not read to its end.
  // The same, where only the time was up: any answer or other error says more.
  // Not set in try_lock(), which has to read the whole table.
  detail::ErrorPtr cut_short_;

  // GUARDED_BY(Shared::mutex)
  bool waits_ = false;
  bool cancelled_ = false;
  DdbMutex* trying_ = nullptr;
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANY_OF_IMPL_HPP
