// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// ddbmutex.hpp: a std::timed_mutex across hosts, stored as a DynamoDB item.
//
//   #include "ddbmutex.hpp"
//
//   void report() {
//     static ddbmutex::DdbMutex mutex("nightly-report");
//     std::lock_guard guard(mutex);  // One host at a time.
//     for (const auto& page : pages()) {
//       mutex.require(std::chrono::seconds(5));  // Throws unless 5 s remain.
//       print(page);
//     }
//   }
//
// require() throws if the lock was lost, or if its lease may end within 5 s.
// So if no page takes longer than 5 s, none is printed without the lock, unless
// the process is paused.
//
// How it works (ddbmutex/README.md has more).  lock() writes an item with a
// fresh uuid and a lease, unless somebody else's is there.  A thread of the
// Table renews the lease when half of it has passed.  unlock() deletes the
// item.  A dead holder's lock becomes free after its lease: 1 % later for a
// host that has watched the item, and some 5 s later at most for others, unless
// answers are slow.  Hosts' clocks only have to run at the right rate, to 1 %.
//
// Not promised.  A process that is paused (swapped out, suspended) after it
// asked owns_lock() may act after its lease, while another host has the lock.
// Safe from that are guarded_write() (extras/guarded_write.hpp), and a store
// that refuses a lower fencing_token() than it has seen.  Items that somebody
// edits by hand and eventually consistent replicas are not protected.
//
// Thread safety.  Any thread may call any member at any time, except during
// construction and destruction.  (The destructor ends a wait in another thread,
// as cancel() does.)  Threads that share one DdbMutex exclude each other too,
// first come, first served; one may unlock what another has locked.  No call is
// a thread cancellation point.  A forked child does not hold its parent's
// locks, and destroying them there does nothing.
//
// Errors.  A call that fails throws Error, or sets the std::error_code& `ec`
// that it is given.  It is not an error that somebody else holds the lock.
// Transient errors (a network that is down, throttling) are retried first: see
// Options::patience.  If memory runs out, a call throws std::bad_alloc, or sets
// std::errc::not_enough_memory; even then no lock is left behind that nobody
// can unlock, and no held lock is lost.  If the library was compiled without
// exceptions, fail_handler is called instead of throwing, the first operation
// reports the constructor's error, and a failed allocation ends the process.
#ifndef DDBMUTEX_HPP
#define DDBMUTEX_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>  // For your guards.
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

// Before 1.0.0, a minor version may break programs.
#define DDBMUTEX_VERSION_MAJOR 0
#define DDBMUTEX_VERSION_MINOR 1
#define DDBMUTEX_VERSION_PATCH 0
#define DDBMUTEX_VERSION_STRING "0.1.0"

namespace ddbmutex {
inline namespace v0 {

class Table;
enum class Loss;
struct Options;
struct Changes;
struct LockInfo;
struct Stats;
struct Unreleased;
namespace lock {
class RowFormat;
}

// --- What calls take ---------------------------------------------------------

namespace detail {

struct Inside;  // Lets the extras reach what is inside.

// The default `ec`: a call that gets it throws its errors, and never changes
// it.  (A program and a shared library could each have a copy of a variable.)
std::error_code& throws() noexcept;

// For how long lock() waits.  nanoseconds_of() never returns it.
constexpr std::chrono::nanoseconds kForEver = std::chrono::nanoseconds::max();

// From 0 up to less than kForEver; `of_nan` for NaN.
template <class Rep, class Period>
std::chrono::nanoseconds nanoseconds_of(
    const std::chrono::duration<Rep, Period>& duration,
    std::chrono::nanoseconds of_nan = std::chrono::nanoseconds::zero()) {
  using std::chrono::nanoseconds;
  // In floating point, because a count times std::ratio::num may overflow.
  using Nanoseconds = std::chrono::duration<long double, std::nano>;
  const Nanoseconds nano(duration);
  if (nano != nano) return of_nan;
  if (nano <= nanoseconds::zero()) return nanoseconds::zero();
  if (nano.count() >= 9.2e18L) return kForEver - nanoseconds(1);
  return std::chrono::ceil<nanoseconds>(nano);
}

template <class Clock, class Duration>
std::chrono::nanoseconds time_until(
    const std::chrono::time_point<Clock, Duration>& at) {
  // Not `at - now`, which may overflow, or wrap around in an unsigned type.
  using Nanoseconds = std::chrono::duration<long double, std::nano>;
  return nanoseconds_of(Nanoseconds(at.time_since_epoch()) -
                        Nanoseconds(Clock::now().time_since_epoch()));
}

// Any std::chrono::duration, as a timeout.
struct Timeout {
  template <class Rep, class Period>
  Timeout(const std::chrono::duration<Rep, Period>& duration) noexcept
      : time(nanoseconds_of(duration)) {}
  std::chrono::nanoseconds time;
};

// The same, as a time that must remain.  NaN asks for more than any lease has.
struct MinRemaining {
  template <class Rep, class Period>
  MinRemaining(const std::chrono::duration<Rep, Period>& duration) noexcept
      : time(nanoseconds_of(duration, std::chrono::nanoseconds::max())) {}
  std::chrono::nanoseconds time;
};

}  // namespace detail

// --- The mutex ---------------------------------------------------------------

// Meets the standard's BasicLockable, Lockable and TimedLockable.
class DdbMutex {
 public:
  // Sends nothing and starts no thread.  `name` is UTF-8, 1 to 2,048 bytes with
  // the table's prefix.  Throws an Error (bad_option) for a wrong option.
  explicit DdbMutex(std::string name);
  explicit DdbMutex(std::string name, Options options);
  // Unlocks if held.  Waits for this mutex's callbacks that are running or due,
  // unless a callback of the same Table destroys it; none is called afterwards.
  // If a process ends without it, the item stays until its lease is over.
  ~DdbMutex();
  DdbMutex(const DdbMutex&) = delete;
  DdbMutex& operator=(const DdbMutex&) = delete;

  // Waits until the lock is ours.  Fails if this thread has locked the mutex,
  // or in a callback if another thread of this process has:
  // std::errc::resource_deadlock_would_occur.
  void lock(std::error_code& ec = detail::throws());
  // False if somebody else holds the lock, if the turn is left to another host
  // (see Options::longest_poll), or if it is not yet known that a dead holder's
  // lease is over (calls remember what earlier ones saw).  Takes
  // request_timeout at most, or twice that if it reads the item first, as the
  // first lock of a Table does, and the first after a minute or two without
  // requests.  Transient errors are retried while there is time.
  [[nodiscard]] bool try_lock(std::error_code& ec = detail::throws());
  // Like lock(), but returns false on timeout; 0 or less is a try_lock().
  // Transient errors are retried until then.  The last one is reported if the
  // attempt just before the timeout fails too; Errc::timed_out if DynamoDB has
  // not answered at all, so allow the time of two or three requests.  False
  // without an error also if the lock was refused and there was no time left to
  // read why, or if another thread of this mutex had it or asked for it.
  [[nodiscard]] bool try_lock_for(detail::Timeout timeout,
                                  std::error_code& ec = detail::throws()) {
    return lock_within(timeout.time, nullptr, ec);
  }
  // The clock is read once, when the call begins.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& at,
      std::error_code& ec = detail::throws()) {
    return lock_within(detail::time_until(at), nullptr, ec);
  }
#ifdef __cpp_lib_jthread
  // A stop request ends the wait with Errc::cancelled.
  void lock(const std::stop_token& stop,
            std::error_code& ec = detail::throws()) {
    stoppable(detail::kForEver, stop, ec);
  }
  [[nodiscard]] bool try_lock_for(detail::Timeout timeout,
                                  const std::stop_token& stop,
                                  std::error_code& ec = detail::throws()) {
    return stoppable(timeout.time, stop, ec);
  }
#endif
  // Ends current waits for this mutex, but no later ones: Errc::cancelled.
  void cancel() noexcept;

  // Renews the lease now, also without auto_renew.  Errors: not_held;
  // lease_lost; or a transient one that lasted for `patience` or until the
  // lease was over.
  void renew(std::error_code& ec = detail::throws());
  // The same, but only if less than min_remaining remains.  Errors: also
  // ends_too_soon, if less remains even after the renewal, which is always so
  // if min_remaining is more than the ttl less its margin.
  void ensure(detail::MinRemaining min_remaining,
              std::error_code& ec = detail::throws());
  // Ends the automatic renewals of the lock that is held now, if one is.  It
  // stays ours until its lease ends, and is then lost (`expired`), unless
  // renew() is called.  A renewal in flight may still prolong it once.
  void stop_renewing() noexcept;

  // Gives the lock back.  Any thread may call it.  Returns within
  // request_timeout even if nobody answers; a release that is not finished by
  // then goes on in the background until the lease is over.  Needs no memory.
  // Does nothing if the mutex is not locked.
  void unlock() noexcept;
  // The same, but reports errors: not_held; lease_lost; or why the release
  // could not be made in time.  The outcome of an attempt that was throttled,
  // failed in DynamoDB or was not answered is unknown: if a later one finds the
  // row gone or with another holder, that counts as success.  So success does
  // not prove that the lock was ours until now.
  void release();
  void release(std::error_code& ec) noexcept;

  // True while the lease is certainly ours.  Reads a clock, sends nothing and
  // never blocks.  (std::unique_lock::owns_lock() does not notice a loss.)
  bool owns_lock() const noexcept;
  // How long owns_lock() stays true without a renewal; 0 if it is false.
  std::chrono::nanoseconds remaining() const noexcept;
  // Fails unless the lock is ours for at least this long: not_held if it is not
  // locked, lease_lost if it was lost, ends_too_soon if less remains.  More
  // than ttl / 2 may fail before each renewal.
  void require(detail::MinRemaining min_remaining) const;
  void require(detail::MinRemaining min_remaining,
               std::error_code& ec) const noexcept;
  // True if safe_time or less remains, or if the lock is not held.
  bool in_danger() const noexcept;
  // With keep_row: the number of this acquisition, higher than that of every
  // earlier one, whoever made it, for as long as the row exists.  It stays
  // after a loss, so that a store can refuse writes that come too late.  0
  // while the mutex is not locked, without keep_row, and in shared layouts.
  std::uint64_t fencing_token() const noexcept;

  const std::string& name() const noexcept;
  const std::string& owner() const noexcept;
  // The text of the last error of unlock(), or of a call with an `ec`.
  std::string last_error() const;

  // What was stored when the lock was taken, with the changes made since: the
  // bytes of `data`, and all else as in Options::item.  Empty unless the mutex
  // is locked; kept after a loss.  May be incomplete: see LockInfo::problem.
  std::optional<std::string> data() const;
  std::string item() const;
  // Renews the lease and changes what is stored.  If a transient error is
  // reported, the change may have been made: data() does not show it.
  void renew(const Changes& changes, std::error_code& ec = detail::throws());
  // Releases the lock and changes what stays in a kept row, in one request.  If
  // the row is not kept, this fails with bad_option, and the lock stays held.
  void release(const Changes& changes, std::error_code& ec = detail::throws());

 private:
  friend struct detail::Inside;
  struct Impl;

  static void stop(Impl& impl, std::atomic<bool>& stopped) noexcept;
  // `stopped`: ends the call; may be null.
  bool lock_within(std::chrono::nanoseconds time,
                   const std::atomic<bool>* stopped, std::error_code& ec);
#ifdef __cpp_lib_jthread
  bool stoppable(std::chrono::nanoseconds time, const std::stop_token& stop,
                 std::error_code& ec) {
    std::atomic<bool> stopped{false};
    const std::shared_ptr<Impl> impl = impl_;  // May outlive this object.
    const std::stop_callback on_stop(stop,
                                     [&] { DdbMutex::stop(*impl, stopped); });
    return lock_within(time, &stopped, ec);
  }
#endif
  std::shared_ptr<Impl> impl_;  // Changed only by the destructor.
};

// The options of a mutex, in groups; the first group is what most programs set.
// A value that is out of bounds is a bad_option.
struct Options {
  // --- The lock ---
  // The table that the lock lives in.  It has the connections and threads, so
  // give one Table to all your mutexes.  Default: Table::standard().
  std::shared_ptr<Table> table{};
  // How long the lease lasts after it was taken or renewed: 100 ms to 366 days.
  // A shorter one frees a dead holder's lock sooner; a longer one survives a
  // longer outage.  A holder stops a margin before its end: 1.25 s, or 1 % of
  // the ttl if that is more; an eighth of a ttl below 10 s.  With such a short
  // ttl, two hosts can hold the lock at once, for at most 1.25 s, if a whole
  // machine stands still for up to 1.25 s: ddbmutex/README.md has a table.
  std::chrono::milliseconds ttl{60000};
  // Called once for each lock that is lost; owns_lock() is already false.
  // `expired` is reported when remaining() reaches 0, before anybody else may
  // hold the lock, unless another callback is still running then; `taken` and
  // `deleted` as soon as they are known.  The mutex stays locked until
  // unlock(), which never frees another holder's lock.  A loss during or after
  // unlock() is reported only if it is discovered before the lease ends; if the
  // mutex has been locked again by then, owns_lock() is about that new lock.
  //
  // Callbacks run on one thread of the Table, one at a time, with no mutex held
  // and all signals blocked, also in programs started there.  (So
  // std::raise(SIGTERM) does nothing: call kill(getpid(), SIGTERM).)  They may
  // call anything, even unlock() and the mutex's destructor.  A lock() that
  // would wait for another thread of this process is refused there.  An
  // exception is logged, or written to stderr if there is no logger.
  // pthread_exit() in a callback, a logger or a source of keys aborts.
  std::function<void(Loss)> on_lost{};
  // UTF-8, only for people who look at the table.  Default: "host:pid".
  std::string owner{};

  // --- Waiting ---
  // How long lock() retries transient errors; at least 0.  The time starts with
  // the first error since any thread's request for this mutex last succeeded,
  // or with the call if that is later.  At its end, threads that wait behind
  // another fail, too.  renew() and guarded_write() count from their call, and
  // take at least request_timeout.  Calls with a timeout use that instead.
  std::chrono::milliseconds patience{30000};
  // The pauses between a waiter's reads of the item: each is random, from half
  // of a limit up to the limit, which doubles from first_poll to longest_poll;
  // to a quarter of that once the waiter has missed eight turns.  More than 0,
  // and longest_poll at least first_poll.  If another host has missed its turn,
  // lock() waits after unlock() for one to two times longest_poll, and
  // try_lock() returns false meanwhile.
  std::chrono::milliseconds first_poll{30};
  std::chrono::milliseconds longest_poll{225};
  // The timeout of one request, and so the longest time that unlock() takes.
  // More than 0, less than ttl / 2.  Default: the lesser of 2 s and ttl / 4.
  std::optional<std::chrono::milliseconds> request_timeout{};

  // --- Fencing tokens, and what is stored with the lock ---
  // Keeps the item when the lock is released, marked as free, with what you or
  // others store in it.  Then fencing_token() grows with every acquisition. All
  // programs that lock a name must agree: one that does not keep the row is
  // refused with Errc::kept_row.  Default: false; in shared layouts, where
  // there are no tokens and programs need not agree, as the other library does.
  std::optional<bool> keep_row{};
  // Set it if the program relies on fencing_token(): a bad_option if that would
  // always be 0.  (Programs of ddblock in the same table delete kept rows, so
  // that the tokens start again.  That is not detected.)
  bool fencing = false;
  // Bytes to store with the lock, for the next holder and for inspect().
  std::optional<std::string> data{};
  // More attributes to store with the lock, in DynamoDB's JSON (or see
  // extras/stored.hpp): `{"state": {"S": "new"}, "tries": {"N": "3"}}`.  None
  // may have the name of the table's key or of the record's attributes (uuid,
  // expires, lease, owner, ttl, token, data, waiting; other ones in shared
  // layouts).  With keep_row or keep_data, 100 at most.
  std::string item{};
  // Whether the last holder's data and attributes stay where yours do not
  // replace them.  If rows are not kept, only a dead holder leaves any.
  // Default: as keep_row; true in layout dynamolock, false in awslabs.  On kept
  // rows, `false` removes only the data; in awslabs the attributes, too.
  std::optional<bool> keep_data{};
  // With keep_row: takes the lock only if its item exists; else Errc::no_row.
  // It may have only your own attributes, but none with a name of the record's
  // (else Errc::bad_record).  For rows that are both a job and its lock.
  bool only_if_exists = false;

  // --- Renewal ---
  // Whether the Table renews the lease; if not, call renew().
  bool auto_renew = true;
  // With auto_renew: the age at which the lease is renewed: more than 0, at
  // most ttl / 2.  Default: ttl / 2, the first time at random from ttl / 4 on.
  std::optional<std::chrono::milliseconds> renew_after{};
  // With auto_renew: renewals stop this long after the lock was taken, so that
  // a program that hangs does not keep it for ever.  Then all is as after
  // stop_renewing().  More than 0.  Default: no limit.
  std::optional<std::chrono::milliseconds> max_hold{};
  // in_danger() and on_danger warn of a loss when remaining() is this or less.
  // At least 0, less than ttl / 2.  Default: ttl / 4.  From ttl / 2 less the
  // margin on, that is so before each renewal, unless renew_after is shorter.
  std::optional<std::chrono::milliseconds> safe_time{};
  // Called as on_lost is, once each time that the lease comes into danger.
  std::function<void()> on_danger{};

  // --- A table with a sort key ---
  std::string sort_value{};  // Default: that of TableOptions.
};

// Why a lock was lost.
enum class Loss {
  expired,  // The lease ended before a renewal was confirmed.
  taken,    // Another holder has it, or force_unlock() marked it as free; or
            // a guarded_write() was refused, and no answer told why.
  deleted,  // The item, or the table, is gone.
};
const char* name_of(Loss loss) noexcept;  // "expired"

// --- The table ---------------------------------------------------------------

struct Credentials {
  std::string access_key_id{};
  std::string secret_access_key{};
  std::string session_token{};  // Empty for keys that do not expire.
  std::string account_id{};     // Empty if unknown.
  // When the keys expire.  Not set: never.
  std::optional<std::chrono::system_clock::time_point> expires{};
};

enum class LogLevel {
  debug,    // A request that failed and is retried.
  info,     // Keys that were found; a table that is left as it was.
  warning,  // Something that may become an error.
  error,    // A lock that is lost, a callback that threw.
};
const char* name_of(LogLevel level) noexcept;  // "debug"

// The options of a table, in groups; the first group is what most programs set.
struct TableOptions {
  // --- Where the table is ---
  std::string name = "locks";
  // The AWS region.  Default: AWS_REGION, AWS_DEFAULT_REGION, the profile's
  // region; else the EC2 instance's, which is looked up on first use.
  std::string region{};
  // An endpoint other than the region's: "https://host", optionally with a port
  // and a path ("http://host:8000/a/b").  Default: AWS_ENDPOINT_URL_DYNAMODB,
  // AWS_ENDPOINT_URL, the profile's endpoint; else that of the region.
  std::string endpoint{};
  // How long inspect() and the calls of extras/admin.hpp retry transient
  // errors.  At least 0.  (For locks, see Options::patience.)
  std::chrono::milliseconds patience{30000};

  // --- Keys, trust, logging ---
  // Of the AWS CLI's configuration.  Default: AWS_PROFILE, else "default".
  std::string profile{};
  Credentials credentials{};  // Default: found where AWS's tools find them.
  // A function that returns keys; all other sources are then ignored.  It is
  // called by a thread of its own, one call at a time: when keys are first
  // needed; before they expire, or every minute if `expires` is not set; and
  // when DynamoDB says that they have expired.  Old keys are used meanwhile.
  // Nothing: there are no keys.  An exception: there are none now, a transient
  // error.  A call that has not returned two seconds after the Table is gone
  // runs on, and may still use what it refers to.
  std::function<std::optional<Credentials>()> credentials_source{};
  // A readable PEM file with the CAs to trust.  Default: AWS_CA_BUNDLE, the
  // profile's `ca_bundle`, else the system's.
  std::string ca_file{};
  // Called for each line of the log, by a thread of its own, one line at a
  // time.  A line never contains a signature, or a secret or token of 16
  // characters or more; if a server repeats one, it is replaced by "(hidden)".
  // Characters are escaped as in Error::what().  The logger may call anything;
  // if it is slow, lines are left out; an exception is ignored.  It is not
  // called once the Table is gone, but a call under way keeps the Table: before
  // you destroy what the logger uses, join threads that may be in lock().
  std::function<void(LogLevel level, const std::string& text)> logger{};

  // --- The table's key ---
  // The partition key's attribute, a string.  Other libraries' is often "key".
  std::string key = "name";
  // Comes before each mutex's name in the key, so that the table can also hold
  // other items.  Shared layouts have none unless you set another than this.
  std::string prefix = "ddblock-";
  // The attribute that is the sort key, a string too, and its value for mutexes
  // that do not set Options::sort_value.  Default: the table has none.
  std::string sort_key{};
  std::string sort_value{};

  // --- Tables that are shared with programs of other libraries ---
  // How items are written; the same in all programs that share a table.  Null:
  // the layout of paulmach/ddblock, with `uuid` and `expires`; rows are
  // deleted.  Those of extras/layouts.hpp are called the shared layouts.
  const lock::RowFormat* rows = nullptr;
  // How far the clock of a host that uses another library may be off from
  // DynamoDB's: 0 to a day.  It matters in layouts ddblock, lockclient and
  // lease.  A host that is off by more may take held locks, or lose its own:
  // see "Wall clocks" in ddbmutex/README.md.  More than 0 needs the Date of
  // DynamoDB's answers (else Errc::not_supported).  Default: 2 s; in layout
  // ddblock 0, for a table that only this library uses.
  std::optional<std::chrono::milliseconds> calendar_margin{};
};

// The table that locks live in, with the endpoint, keys and connections for it.
// Its mutexes share it, and two threads that its first request starts: one
// sends everything, one calls back.  If they cannot be started, the call fails
// with std::errc::resource_unavailable_try_again.  (Another fetches keys at
// times, and one calls the logger.)  While 1,000 releases wait, another take
// that a call gives up is not released: if it got the lock, the lock becomes
// free when its lease ends.
class Table {
 public:
  // Sends nothing.  Errors: bad_option, for what is wrong or cannot be found.
  explicit Table(TableOptions options = {});
  // When the Table and all its mutexes are destroyed, the last destructor tries
  // releases that calls left unfinished once more, for two seconds at most.
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // The Table of all mutexes that are given none: made on first use, with the
  // defaults above, and never destroyed.
  static std::shared_ptr<Table> standard();

  // Ends waiting calls of the table and its mutexes, and all later calls, with
  // Errc::closed (in this process).  Releases all locks that its mutexes hold.
  // Returns those that could not be released in time; their releases go on in
  // the background until their leases are over.  Afterwards no mutex holds a
  // lock, unless memory ran out all that time; threads unlock theirs as usual.
  std::vector<Unreleased> close(
      detail::Timeout within = std::chrono::seconds(10)) noexcept;

  // The text of the last error of a call with an `ec`.
  std::string last_error() const;
  const std::string& name() const noexcept;
  Stats stats() const;
  // What is stored for the mutex of that name; a consistent read.
  LockInfo inspect(const std::string& name,
                   std::error_code& ec = detail::throws());
  LockInfo inspect(const std::string& name, const std::string& sort_value,
                   std::error_code& ec = detail::throws());

 private:
  friend class DdbMutex;
  friend struct detail::Inside;
  struct Impl;
  std::shared_ptr<Impl> impl_;  // Changed only by the destructor.
};

// --- Errors ------------------------------------------------------------------

// What went wrong.  Each code compares equal to the std::errc beside it.
enum class Errc {
  // Permanent: the same call will fail again.
  bad_option = 1,    // invalid_argument: Error::field() names it.
  not_held,          // operation_not_permitted: the mutex is not locked.
  no_keys,           // permission_denied: no AWS keys were found, or not in
                     // time; then a later call may find them.
  bad_keys,          // permission_denied: unknown keys, or a bad signature.
  expired_keys,      // permission_denied
  access_denied,     // permission_denied: the keys may not do this.
  no_table,          // no_such_file_or_directory
  wrong_table,       // invalid_argument: its key is not as the options say.
                     // table_exists() looks again.
  unready_table,     // device_or_resource_busy: being created or deleted,
                     // archived, without its encryption key, ...
  replicated_table,  // invalid_argument: eventually consistent replicas.
  bad_request,       // invalid_argument: DynamoDB refuses the request.
  not_supported,     // function_not_supported: the engine has no such action.
  bad_certificate,   // permission_denied: the server's certificate is refused.
  bad_record,        // bad_message: the item is not a lock.  It is left alone,
                     // unless only a fraction in a number is wrong with it.
  kept_row,          // bad_message: it has a fencing token; set keep_row.
  no_row,            // no_such_file_or_directory: Options::only_if_exists.
  condition_failed,  // operation_not_permitted: your own in guarded_write().

  // Transient: they were retried, and the last one is reported.
  unreachable,   // host_unreachable
  disconnected,  // connection_reset: before the whole answer had come.
  timed_out,     // timed_out
  throttled,     // resource_unavailable_try_again
  unavailable,   // resource_unavailable_try_again: 5xx, even if it broke off.
  bad_answer,    // protocol_error: the answer is not DynamoDB's.

  lease_lost,     // operation_not_permitted: the lock was lost.
  ends_too_soon,  // operation_not_permitted: by require() or ensure().
  cancelled,      // operation_canceled: by cancel() or a stop request.
  closed,         // operation_canceled: by Table::close(), or by exit().
};

const std::error_category& category() noexcept;
inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), category()};
}

// what() says which call failed, for which name and table, and why, on one line
// of UTF-8; after a loss, how the lock was lost, and how long ago.  Control,
// reordering and invisible characters are escaped ("\n", "\u202e").
class Error : public std::system_error {
 public:
  Error(std::error_code code, const std::string& what,
        const std::string& field = {}, const std::string& request_id = {});
  // Moving copies, so that a moved-from Error keeps its text.
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  const char* what() const noexcept override { return texts_->what.c_str(); }
  // The wrong option ("ttl"); "name" is a mutex's, "table" a table's; or empty.
  const std::string& field() const noexcept { return texts_->field; }
  // DynamoDB's id of the request, for AWS's support; empty if it gave none.
  const std::string& request_id() const noexcept { return texts_->request_id; }

 private:
  struct Texts {
    std::string what, field, request_id;
  };
  std::shared_ptr<const Texts> texts_;  // Shared, so that a copy cannot throw.
};

// Called instead of throwing, if the library was compiled without exceptions.
// The default prints the error and aborts; if a replacement returns, the
// process is aborted.  Set it before the first lock is used.
using FailHandler = void (*)(const std::error_code& code, const char* what);
extern FailHandler fail_handler;

// --- What few programs need --------------------------------------------------

// Changes to what is stored with a lock.  Everything else stays as it is.
// `item` and `remove` may name 100 attributes in all.
struct Changes {
  std::optional<std::string> data{};  // Bytes.
  std::string item{};                 // As in Options.
  std::vector<std::string> remove{};  // Names of attributes, or "data".
};

// What the table has for a mutex's name.  Times are by DynamoDB's clock.
struct LockInfo {
  std::string name;
  std::string sort_value;  // If the table has a sort key.
  bool exists = false;     // A record: of a holder, dead or alive, or kept.
  bool released = false;   // The row was kept when the lock was released.
  // The item has a token, or attributes and no record.  Only mutexes with
  // Options::keep_row can lock it; others get Errc::kept_row or bad_record.
  bool keep_row = false;
  std::string uuid;  // New for every acquisition from the table.
  std::string owner;
  std::chrono::milliseconds lease{0};  // 0 if another client's has none.
  // When the lease ends, calendar_margin included, since 1970.  After the year
  // 2096 if the row does not say; 0 if it was released.
  std::chrono::nanoseconds expires{0};
  // The lease has been over for so long that a host that asks for the lock now
  // gets it, even if it has never seen this record.  Always false if the row
  // does not say when the lease ends.
  bool expired = false;
  // How long the lease still lasts, less than 0 if it is over (without
  // calendar_margin, if the record has a `lease`); and how long ago the lock
  // was last taken or renewed.  (No record says how long it has been held.)
  // Not set if it was released, or if the record or the answer does not say.
  std::optional<std::chrono::milliseconds> left{};
  std::optional<std::chrono::milliseconds> age{};
  std::uint64_t token = 0;  // 0 unless the row is a kept one.
  std::optional<std::string> data{};
  // All other attributes, as in Options; or empty.  Values of types that this
  // library does not know are left out, and are no `problem`.
  std::string item{};
  // Why the item is not a lock, or that it is too large to be read: then
  // everything above but name and sort_value is empty, and inspect() reports
  // bad_record, too.  Otherwise: the first attribute that was left out, if any.
  // Beside the record, up to 8,000 values are read, counting members of lists,
  // maps and sets, and up to 32 levels.
  std::string problem{};
};

// Counted since the Table was made, in this process.
struct Stats {
  // Requests sent, by action; others are for the table, lists, guarded writes.
  std::uint64_t get_item = 0, put_item = 0, update_item = 0, delete_item = 0;
  std::uint64_t other = 0;
  // Of these requests: those that DynamoDB throttled; those that failed
  // otherwise (a lock that somebody else holds is no failure); those that were
  // sent because an earlier one had failed.
  std::uint64_t throttled = 0, failed = 0, retries = 0;
  std::uint64_t held = 0;  // Locks held now.

  std::uint64_t requests() const {
    return get_item + put_item + update_item + delete_item + other;
  }
};

// A lock that Table::close() could not release.
struct Unreleased {
  std::string name;
  std::error_code code;
  std::string text;  // What an Error's what() would say.
};

}  // namespace v0
}  // namespace ddbmutex

template <>
struct std::is_error_code_enum<ddbmutex::Errc> : std::true_type {};

#endif  // DDBMUTEX_HPP
