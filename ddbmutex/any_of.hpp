// any_of.hpp: a lock on any one of many items, such as work that is to be done.
//
//   #include "ddbmutex/any_of.hpp"
//
//   ddbmutex::AnyOfOptions options;
//   options.each.table = jobs;  // Its rows are the jobs.
//   options.read = {"state"};
//   options.accept = [](const ddbmutex::LockInfo& job) {
//     return state_of(job.attributes) != "done";
//   };
//   ddbmutex::AnyOf any(options);
//   while (auto job = any.lock()) {  // Any that nobody has; waits for one.
//     work_on(job->name(), job->attributes());
//     job->release(done);  // Changes that set "state".
//   }
//
// How.  The rows are there before: each may be locked by the name that its key
// has after the table's prefix, and holds whatever attributes it likes.  A pass
// reads all of them, once, and picks those that are free or whose lease is
// over; then one after the other is tried by a DdbMutex of its own, which alone
// decides who gets it.  So what that promises holds here, and no more is
// promised: of two who try one item, one gets it.  What is got is held, and
// renewed, as any DdbMutex.  A pass serves all calls of an AnyOf for a second,
// or until all that it found were tried, or five in a row were refused.  A
// try_lock() that has made a pass of its own tries all that this has found.
//
// Order.  Those that have stood longest as they stand now come first, as far as
// this AnyOf has seen it; of those, the ones with the lowest fencing_token().
// Takers begin at another place each: at random among the first quarter of what
// is left, 16 at the least.  And chance puts one in 8 before all others, so
// that none waits for ever behind others that are handed out again and again.
//
// Costs.  A pass is a read unit for each 4,096 bytes of the whole table and its
// prefix, whatever is read of them, and a request for each 200 items.  An item
// that is got is one write, to release it another; one that somebody else was
// faster to get costs a write too.  Kept in memory are at most the 1,024 best
// items of a pass, and 24 bytes for each of up to 65,536 rows: of more, the
// others count as new in every pass.
//
// The dead.  An item whose lease ended is taken once it is over by 3 s by
// DynamoDB's clock.  Where answers have no `Date`, or a record names no lease,
// it is taken after it was seen unchanged for twice its lease, by an AnyOf that
// goes on looking: up to 64 of those at a time.
//
// Large tables.  A call whose time is up before its pass has read the whole
// table tries what the pass has found by then.  So it may get an item of a
// table that is never read to its end, but not one of the last pages.
//
// Thread safety, errors: as DdbMutex.  `accept` is called by the threads that
// call, at times by several at once.  A call that `accept` makes to lock any of
// the same AnyOf fails at once with std::errc::resource_deadlock_would_occur:
// it would wait for the call that asks `accept`.  It must not wait for another
// thread's call either.  It may call all else, and lock any of another AnyOf.
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
  // Of each lock that is got: its table, ttl, on_lost and all else.  Its row is
  // always kept and never made (keep_row, only_if_exists), and sort_value is
  // the item's own.
  Options each{};
  // Only items whose names begin with this.
  std::string prefix{};
  // Attributes that `accept` is to see in a pass; `data` may be one.  (The
  // part `attributes` has to be there.)
  std::vector<std::string> read{};
  // Which items are wanted; nothing: all.  Asked in a pass, of items that are
  // held too, and again of an item that was got, with all its attributes as
  // they are then: if it is not wanted any more, it is given back, and another
  // is tried.  Its own time counts as that of the pass.
  std::function<bool(const LockInfo& item)> accept{};
  // Between passes while waiting: up to the first, doubling up to the longest,
  // each at random from 0 on.  More than 0, the longest no less than the first.
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{5000};
};

class AnyOf {
 public:
  // Sends nothing.  Throws Error (bad_option) that names what is wrong; without
  // exceptions the first operation fails with it.
  explicit AnyOf(AnyOfOptions options);
  // What was got stays held, and needs this no more.
  ~AnyOf();
  AnyOf(const AnyOf&) = delete;
  AnyOf& operator=(const AnyOf&) = delete;

  // Waits until an item is ours.  Its destructor gives it back; to leave it to
  // its lease, end its renewals (auto_renew, max_hold, alive) and keep it until
  // then.  Passing errors are tried again until they have lasted `patience`.
  // Null only if an error is told.
  [[nodiscard]] std::unique_ptr<DdbMutex> lock(
      std::error_code& ec = detail::throws());

  // Null if all are held, or there is none: a pass that began after the call
  // has read the whole table, and all that it found free were refused, or other
  // threads have got them.  Takes request_timeout at the most, and as long for
  // each try (and to give an item back that is not wanted any more).  timed_out
  // if a table is too large to be read by then, and what was found is refused.
  // Another thread's pass is waited for only while there is time for one of its
  // own.
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock(
      std::error_code& ec = detail::throws());

  // As lock(), but null once the time is up, and passing errors are borne with
  // until then and told; timed_out if nothing was read to its end and no try
  // answered by then.  A try under way then is awaited, up to request_timeout.
  // Where a pass has taken all the time, one item that it has found is tried
  // yet.  A timeout of 0 or less makes it try_lock().
  template <class Rep, class Period>
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      std::error_code& ec = detail::throws()) {
    return lock_within({detail::nanoseconds_of(timeout)}, nullptr, ec);
  }
  template <class Clock, class Duration>
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock_until(
      const std::chrono::time_point<Clock, Duration>& at,
      std::error_code& ec = detail::throws()) {
    return lock_within({{}, detail::left_until<Clock, Duration>, &at}, nullptr,
                       ec);
  }

#ifdef __cpp_lib_jthread
  // A stop request ends the wait with Errc::cancelled.
  [[nodiscard]] std::unique_ptr<DdbMutex> lock(
      const std::stop_token& stop, std::error_code& ec = detail::throws()) {
    return stoppable({}, stop, ec);
  }
  template <class Rep, class Period>
  [[nodiscard]] std::unique_ptr<DdbMutex> try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      const std::stop_token& stop, std::error_code& ec = detail::throws()) {
    return stoppable({detail::nanoseconds_of(timeout)}, stop, ec);
  }
#endif

  // Ends the waits under way with Errc::cancelled.  Not remembered.
  void cancel() noexcept;

  // How many items were accepted in the last pass that read the whole table,
  // free or held; nothing before the first.  0: there is nothing left to do.
  std::optional<std::size_t> accepted() const noexcept;

  // The last error of a call with a std::error_code&, in words.
  std::string last_error() const;

 private:
  struct Impl;
  static void stop(Impl& impl, std::atomic<bool>& stopped) noexcept;
  std::unique_ptr<DdbMutex> lock_within(const detail::Deadline& deadline,
                                        std::atomic<bool>* stopped,
                                        std::error_code& ec);
  // Ends the call that has this, also one that is yet to begin.
#ifdef __cpp_lib_jthread
  std::unique_ptr<DdbMutex> stoppable(const detail::Deadline& deadline,
                                      const std::stop_token& token,
                                      std::error_code& ec) {
    std::atomic<bool> stopped{false};
    const std::shared_ptr<Impl> impl = impl_;  // May outlive this object.
    const std::stop_callback on_stop(token, [&] { stop(*impl, stopped); });
    return lock_within(deadline, &stopped, ec);
  }
#endif

  std::shared_ptr<Impl> impl_;  // Changed by none but the destructor.
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANY_OF_HPP
