// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// any_of.hpp: a lock on any one of many items, such as work that is to be done.
//
//   #include "extras/any_of.hpp"
//
//   ddbmutex::AnyOfOptions options;
//   options.each.table = jobs;  // Its rows are the jobs.
//   options.read = {"state"};
//   options.accept = [](const ddbmutex::LockInfo& job) {
//     return state_of(job.item) != "done";
//   };
//   ddbmutex::AnyOf any(options);
//   while (auto job = any.lock()) {  // Any that nobody has; waits for one.
//     work_on(job->name(), job->item());
//     job->release(done);  // Changes that set "state".
//   }
//
// How it works.  The rows exist already.  Each may be locked by the name that
// its key has after the table's prefix, and may hold any attributes.  A pass
// reads all rows once and picks those that are free or whose lease is over.
// These are tried one after the other, each with a DdbMutex of its own, which
// alone decides who gets the item.  So the promises are those of DdbMutex: of
// two that try one item, one gets it, and the lock is held and renewed as any
// other.  One pass serves all calls of an AnyOf for a second, or until all rows
// that it found were tried, or five in a row were refused.  A try_lock() that
// has made a pass of its own tries all rows that the pass found.
//
// Order.  Rows that have been unchanged for longest come first, as far as this
// AnyOf has seen; among those, rows with the lowest fencing_token().  Each try
// picks one at random among the first quarter of the free rows that are left,
// but among at least 16 of them.  And chance puts one free row in 8 before all
// others, so that none waits for ever behind rows that come back again and
// again.
//
// Costs.  A pass is one request for each 200 items, and one read unit for each
// 4,096 bytes of the whole table, whatever `prefix` and `read` are.  To get an
// item is one write, and to release it another.  If somebody else was faster,
// the refused write costs as much.  In memory are at most the 1,024 best items
// of a pass, and 64 bytes for each of up to 65,536 rows.  If there are more
// rows, the others count as new in every pass.
//
// Dead holders.  An item is taken once DynamoDB's clock shows that its lease
// ended at least 3 s ago (or calendar_margin and 1 s, if that is more).  If
// answers have no `Date`, or the row does not say when the lease ends (layouts
// dynamolock and awslabs), an AnyOf that goes on looking watches the item.  It
// takes the item after it has seen it unchanged for twice its lease, or twice
// each.ttl if it has no lease.  It watches at most 64 items at a time.
//
// Large tables.  If the time of a call is up before its pass has read the whole
// table, it tries what the pass has found.  So it may get an item of a table
// that is never read to its end, but not one from the last pages.
//
// Thread safety and errors: as for DdbMutex.  `accept` is called on the threads
// that call, sometimes on several at once.  If `accept` itself tries to lock an
// item of the same AnyOf, that call fails at once with
// std::errc::resource_deadlock_would_occur, because it would wait for the call
// that it is part of.  For the same reason it must not wait for another
// thread's call.  It may call anything else, and lock items of another AnyOf.
#ifndef DDBMUTEX_ANY_OF_HPP
#define DDBMUTEX_ANY_OF_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "../ddbmutex.hpp"

namespace ddbmutex {
inline namespace v0 {

struct AnyOfOptions {
  // The options of each lock: its table, ttl, on_lost and so on.  Rows are
  // always kept and never made (as with keep_row and only_if_exists), and
  // sort_value is the item's own.
  Options each{};

  // Only items whose names begin with this.  Default: all.
  std::string prefix{};

  // Attributes that `accept` needs to see in a pass; `data` may be one.  An
  // item with a LockInfo::problem is skipped, because some of them may be
  // missing.
  std::vector<std::string> read{};

  // Which items are wanted.  Asked in a pass, also of items that are held; and
  // again of an item that was just locked, with all its attributes as they are
  // then.  If it is not wanted any more, it is given back, and another is
  // tried.  The time that this takes counts as time of the pass.  Default: all.
  std::function<bool(const LockInfo& item)> accept{};

  // The pause between passes while waiting: at random from 0 up to first_pause,
  // then up to twice as much each time, up to longest_pause.  More than 0, and
  // longest_pause at least first_pause.
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{5000};
};

class AnyOf {
 public:
  // Sends nothing.  Throws an Error (bad_option) for a wrong option.
  explicit AnyOf(const AnyOfOptions& options);
  // Locks that it gave out stay held, and do not need it any more.
  ~AnyOf();
  AnyOf(const AnyOf&) = delete;
  AnyOf& operator=(const AnyOf&) = delete;

  // Waits until an item is ours.  The mutex's destructor gives it back.  (To
  // leave it to its lease instead, call stop_renewing(), and keep the mutex
  // until then.)  Transient errors are retried until they have lasted for
  // `patience`.  Null only if an error is reported.
  [[nodiscard]] std::unique_ptr<DdbMutex> lock(
      std::error_code& ec = detail::throws());

  // Null if there is no free item: a pass that began after the call has read
  // the whole table, and every free item that it found was refused or went to
  // another thread.  Takes at most request_timeout for each of these: the pass,
  // each try, waiting for another thread's try that may fail, and giving back
  // an item that is not wanted any more.  timed_out if the table is too large
  // to be read in that time and the items that were found are refused.  Waits
  // for another thread's pass only while there is time for one of its own.
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock(
      std::error_code& ec = detail::throws());

  // Like lock(), but null on timeout.  Transient errors are retried until then
  // and reported; timed_out if by then no try was answered, and no pass that
  // began after the call has read the whole table.  A try that is in flight
  // then is awaited, for up to request_timeout.  If a pass took all the time,
  // one item that it found is still tried.  A timeout of 0 or less is a
  // try_lock().
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock_for(
      detail::Timeout timeout, std::error_code& ec = detail::throws()) {
    return lock_within(timeout.time, nullptr, ec);
  }
  template <class Clock, class Duration>
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock_until(
      const std::chrono::time_point<Clock, Duration>& at,
      std::error_code& ec = detail::throws()) {
    return lock_within(detail::time_until(at), nullptr, ec);
  }

#ifdef __cpp_lib_jthread
  // A stop request ends the wait with Errc::cancelled.
  [[nodiscard]] std::unique_ptr<DdbMutex> lock(
      const std::stop_token& stop, std::error_code& ec = detail::throws()) {
    return stoppable(detail::kForEver, stop, ec);
  }
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock_for(
      detail::Timeout timeout, const std::stop_token& stop,
      std::error_code& ec = detail::throws()) {
    return stoppable(timeout.time, stop, ec);
  }
#endif

  // Ends current waits, but no later ones: Errc::cancelled.
  void cancel() noexcept;

  // How many items were accepted in the last pass that read the whole table,
  // free or held.  0 means that there is nothing left to do.  Nothing before
  // the first such pass.
  std::optional<std::size_t> accepted() const noexcept;

  // The text of the last error of a call with an `ec`.
  std::string last_error() const;

 private:
  struct Impl;
  // Ends the call that has this `stopped`, also one that is yet to begin.
  static void stop(Impl& impl, std::atomic<bool>& stopped) noexcept;
  std::unique_ptr<DdbMutex> lock_within(std::chrono::nanoseconds time,
                                        std::atomic<bool>* stopped,
                                        std::error_code& ec);
#ifdef __cpp_lib_jthread
  std::unique_ptr<DdbMutex> stoppable(std::chrono::nanoseconds time,
                                      const std::stop_token& token,
                                      std::error_code& ec) {
    std::atomic<bool> stopped{false};
    const std::shared_ptr<Impl> impl = impl_;  // May outlive this object.
    const std::stop_callback on_stop(token, [&] { stop(*impl, stopped); });
    return lock_within(time, &stopped, ec);
  }
#endif

  std::shared_ptr<Impl> impl_;  // Changed only by the destructor.
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANY_OF_HPP
