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
// the process is paused (see below).
//
// How it works.  lock() writes an item with a fresh uuid and a lease, on the
// condition that nobody else's item is there.  A thread of the Table renews the
// lease when half of it has passed.  unlock() deletes the item.  A waiter takes
// the lock of another holder only if it has seen the item unchanged for the
// whole lease and 1 % more, or if DynamoDB's own clock shows that the lease has
// been over for 2 s.  (The waiter also allows for its uncertainty about that
// clock: some 5 s in all, or more if answers are slow.)  A holder counts its
// lease from before it sent the request, and stops a margin early (see
// Options::ttl).  The hosts' times of day do not matter.  Their clocks only
// have to run at the right rate, to 1 %.
//
// The first lock of a Table reads the item before it writes, to learn
// DynamoDB's time and to check the table's key.  So does the first lock after
// the Table has sent nothing for one or two minutes.  That is one more request.
//
// Not promised.  A process can be paused (swapped out, suspended) after it
// asked owns_lock() and before it acts.  It may then act after its lease has
// ended, while another host holds the lock.  No lease can prevent that.  Two
// kinds of writes are safe from it: those of guarded_write(), and writes to a
// store that refuses a lower fencing_token() than it has seen.  Items that
// somebody edits by hand are not protected, and neither are tables with
// eventually consistent replicas in other regions.
//
// Thread safety.  Any thread may call any member at any time, except during
// construction and destruction.  (The destructor ends a wait in another thread,
// as cancel() does.)  Threads that share one DdbMutex exclude each other too,
// first come, first served.  The lock belongs to the object: one thread may
// unlock what another has locked.  No call is a thread cancellation point.  A
// forked child does not hold its parent's locks, and destroying them there does
// nothing.
//
// Errors.  A call that fails throws Error; if it is given a std::error_code&
// `ec`, it sets that instead.  If the library was compiled without exceptions,
// calls without an `ec` call fail_handler.  It is not an error that somebody
// else holds the lock.  If memory runs out, a call throws std::bad_alloc, or
// sets `ec` to std::errc::not_enough_memory.  Even then, no lock is left behind
// that nobody can unlock, and no held lock is lost.  unlock() needs no memory.
// (If the library was compiled without exceptions, a failed allocation ends the
// process.)
//
// Transient errors (a network that is down, throttling) are retried before a
// call reports them; see Options::patience.
#ifndef DDBMUTEX_HPP
#define DDBMUTEX_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

// Semantic versioning: before 1.0.0, a minor version may break programs.
#define DDBMUTEX_VERSION_MAJOR 0
#define DDBMUTEX_VERSION_MINOR 1
#define DDBMUTEX_VERSION_PATCH 0
#define DDBMUTEX_VERSION_STRING "0.1.0"

namespace ddbmutex {
inline namespace v0 {

// Defined below.
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

namespace detail {
struct Inside;  // Gives the extras what is inside.
// For how long lock() waits.  nanoseconds_of() never returns it.
constexpr std::chrono::nanoseconds kForEver = std::chrono::nanoseconds::max();
class Wait;
template <class Rep, class Period>
std::chrono::nanoseconds nanoseconds_of(
    const std::chrono::duration<Rep, Period>& duration,
    std::chrono::nanoseconds of_nan = std::chrono::nanoseconds::zero());
template <class Clock, class Duration>
std::chrono::nanoseconds time_until(
    const std::chrono::time_point<Clock, Duration>& at);
// The default `ec`: a call that gets it throws its errors, and never changes
// it.  A function, because a program and a shared library could each have their
// own copy of a variable.
std::error_code& throws() noexcept;
}  // namespace detail

// --- The mutex ---------------------------------------------------------------

// Meets the standard's BasicLockable, Lockable and TimedLockable.  A
// std::condition_variable_any may wait with it, but each wait ends with a
// lock().  If that throws, the standard library calls std::terminate.
class DdbMutex {
 public:
  // Sends nothing and starts no thread.  `name` is UTF-8, 1 to 2,048 bytes
  // including the table's prefix.  Throws an Error (bad_option) that names the
  // wrong option.  Without exceptions, the first operation fails with it.
  explicit DdbMutex(std::string name);
  explicit DdbMutex(std::string name, Options options);
  // Unlocks if held.  Waits for this mutex's callbacks that are running or due,
  // unless a callback of the same Table destroys it; none is called afterwards.
  // If a process ends without calling the destructor, the item stays until its
  // lease is over.  (exit() destroys only static objects and the thread_local
  // ones of its own thread.)
  ~DdbMutex();
  DdbMutex(const DdbMutex&) = delete;
  DdbMutex& operator=(const DdbMutex&) = delete;

  // Waits until the lock is ours.  Transient errors are retried until they have
  // lasted for `patience` without a break.  A thread that has already locked
  // this mutex gets std::errc::resource_deadlock_would_occur.  So does a
  // callback if another thread of this process holds the mutex, because that
  // thread may be waiting for a later callback.
  void lock(std::error_code& ec = detail::throws());

  // True if the lock is ours.  False if somebody else holds it, if the turn is
  // left to another host (see Options::longest_poll), or if it is not yet known
  // that a dead holder's lease is over (see above; calls remember what earlier
  // ones saw).  Transient errors are retried while there is time.  Takes
  // request_timeout at most, or twice that if it reads the item first (see
  // above).
  [[nodiscard]] bool try_lock(std::error_code& ec = detail::throws());

  // Like lock(), but returns false on timeout.  Transient errors are retried
  // until then.  After such an error, the last attempt starts two round trips
  // before the timeout, but at least 50 ms and at most 500 ms before it (or
  // earlier, if so many requests failed that retries are held back).  If it
  // fails, its error is reported at the timeout.  If DynamoDB has not answered
  // at all by then, the error is Errc::timed_out, so allow the time of two or
  // three requests.  Returns false without an error if the lock was refused and
  // there was no time left to read why, or if another thread of this mutex had
  // it or was still asking for it.  A timeout of 0 or less is a try_lock().
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      std::error_code& ec = detail::throws()) {
    return lock_within(detail::nanoseconds_of(timeout), nullptr, ec);
  }
  // The clock is read once, when the call begins: setting it later changes
  // nothing.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& at,
      std::error_code& ec = detail::throws()) {
    return lock_within(detail::time_until(at), nullptr, ec);
  }

#ifdef __cpp_lib_jthread
  // A stop request ends the wait with Errc::cancelled.
  void lock(const std::stop_token& stop,
            std::error_code& ec = detail::throws());
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      const std::stop_token& stop, std::error_code& ec = detail::throws()) {
    return stoppable(detail::nanoseconds_of(timeout), stop, ec);
  }
#endif

  // Renews the lease now, whether or not auto_renew is set.  Errors: not_held;
  // lease_lost; or a transient error that lasted for `patience` or until the
  // lease was over.
  void renew(std::error_code& ec = detail::throws());
  // The same, but only if less than min_remaining remains.  Errors: also
  // ends_too_soon, if less remains even after the renewal.  That is always so
  // if min_remaining is more than the ttl less its margin.
  void ensure(std::chrono::nanoseconds min_remaining,
              std::error_code& ec = detail::throws());
  template <class Rep, class Period>
  void ensure(const std::chrono::duration<Rep, Period>& min_remaining,
              std::error_code& ec = detail::throws()) {
    ensure(detail::nanoseconds_of(min_remaining, kMoreThanAny), ec);
  }
  // Ends the automatic renewals of the lock that is held now.  It stays ours
  // until its lease ends, and is then lost (`expired`), unless renew() is
  // called.  A renewal that is in flight may still prolong it once.  Does
  // nothing if the mutex is not locked.
  void stop_renewing() noexcept;

  // Gives the lock back.  Any thread may call it.  Returns within
  // request_timeout even if nobody answers; a release that is not finished by
  // then goes on in the background until the lease is over.  Does nothing if
  // the mutex is not locked.
  void unlock() noexcept;
  // The same, but reports errors: not_held; lease_lost; or why the release
  // could not be made in time.  The outcome of an attempt that was throttled,
  // failed in DynamoDB or was not answered is unknown.  If a later attempt
  // finds that the row is gone or has another holder, that counts as success.
  // So success does not prove that the lock was ours until now.
  void release();
  void release(std::error_code& ec) noexcept;

  // Ends the current waits for this mutex with Errc::cancelled.  Later waits
  // are not affected.
  void cancel() noexcept;

  // True while the lease is certainly ours.  Reads a clock, sends nothing and
  // never blocks.  (std::unique_lock::owns_lock() does not notice a lost lease:
  // ask the mutex.)
  bool owns_lock() const noexcept;
  // How long owns_lock() stays true without a renewal; 0 if it is false.
  std::chrono::nanoseconds remaining() const noexcept;
  // Throws Error unless the lock is ours for at least this long: not_held if it
  // is not locked, lease_lost if it was lost, ends_too_soon if less remains.  A
  // min_remaining of more than ttl / 2 may fail before each renewal.
  void require(std::chrono::nanoseconds min_remaining) const;
  void require(std::chrono::nanoseconds min_remaining,
               std::error_code& ec) const noexcept;
  template <class Rep, class Period>
  void require(const std::chrono::duration<Rep, Period>& min_remaining) const {
    require(detail::nanoseconds_of(min_remaining, kMoreThanAny));
  }
  template <class Rep, class Period>
  void require(const std::chrono::duration<Rep, Period>& min_remaining,
               std::error_code& ec) const noexcept {
    require(detail::nanoseconds_of(min_remaining, kMoreThanAny), ec);
  }

  // True if safe_time or less remains, or if the lock is not held.
  bool in_danger() const noexcept;

  // With keep_row: the number of this acquisition, higher than that of every
  // earlier one for as long as the row exists.  It stays after a loss, until
  // the mutex is unlocked, so that a store can refuse writes that come too
  // late.  0 while the mutex is not locked, without keep_row, and in shared
  // layouts.
  std::uint64_t fencing_token() const noexcept;

  const std::string& name() const noexcept;
  const std::string& owner() const noexcept;
  // The text of the last error of unlock(), or of a call with an `ec`.
  std::string last_error() const;

  // --- What is stored with the lock ---

  // What was stored when the lock was taken, with the changes made since: the
  // bytes of `data`, and all else as in Options::item.  Empty unless the mutex
  // is locked.  Kept after a loss until it is unlocked.  Attributes that did
  // not fit are left out: see LockInfo::problem.
  std::optional<std::string> data() const;
  std::string item() const;
  // Renews the lease and changes what is stored.  If a transient error is
  // reported, the change may or may not have been made.
  void renew(const Changes& changes, std::error_code& ec = detail::throws());
  // Releases the lock and changes what stays in a kept row, in one request.  If
  // the row is not kept, this fails with bad_option, and the lock stays held.
  void release(const Changes& changes, std::error_code& ec = detail::throws());

 private:
  // NaN asks for more time than any lease has.
  static constexpr std::chrono::nanoseconds kMoreThanAny =
      std::chrono::nanoseconds::max();

  bool lock_within(std::chrono::nanoseconds time, detail::Wait* wait,
                   std::error_code& ec);
#ifdef __cpp_lib_jthread
  bool stoppable(std::chrono::nanoseconds time, const std::stop_token& stop,
                 std::error_code& ec);
#endif

  friend struct detail::Inside;
  struct Impl;
  std::shared_ptr<Impl> impl_;  // Changed only by the destructor.
};

// The options of a mutex, in groups; the first group is what most programs set.
// The mutex's constructor reports a value that is out of bounds (bad_option).
struct Options {
  // --- The lock ---

  // The table that the lock lives in.  It has the connections and threads, so
  // give one Table to all your mutexes.  Default: Table::standard().
  std::shared_ptr<Table> table{};

  // How long the lease lasts after it was taken or renewed: 100 ms to 366 days.
  // Default: 60 s.  A shorter lease frees the lock of a dead holder sooner; a
  // longer one lets a holder survive a longer outage.  It also decides how many
  // renewals are sent: two per ttl.
  //
  // A holder stops before its lease ends, by a margin:
  //
  //   ttl             margin
  //   below 10 s      an eighth of the ttl
  //   10 s to 125 s   1.25 s
  //   above 125 s     1 % of the ttl
  //
  // So with a ttl of 60 s, it can use 58.75 s after each renewal.  The margin
  // covers clocks whose rate is wrong by up to 1 %.
  //
  // The whole machine may also stand still, boot clock included, for too short
  // a time for any answer to show it.  If the ttl is 10 s or more, such a pause
  // of up to 1.25 s lets nobody else in.  If it is shorter, two hosts can then
  // hold the lock at once, for up to 1.25 s - ttl / 8: for 0.625 s with a ttl
  // of 5 s, for 1 s with one of 2 s.  If clocks are also off by 1 %, add 1 % of
  // the ttl; the total is never more than 1.25 s.
  std::chrono::milliseconds ttl{60000};

  // Called once for each lock that is lost; owns_lock() is already false.
  // `expired` is reported when remaining() reaches 0, before anybody else may
  // hold the lock, unless another callback is still running then; `taken` and
  // `deleted` as soon as they are known.  The mutex stays locked until unlock()
  // is called, as a guard does; that never frees another holder's lock.  A loss
  // during or after unlock() is reported only if it is discovered before the
  // lease ends.  If another callback delays that report, the mutex may have
  // been locked again meanwhile, and owns_lock() is about that new lock.
  //
  // Callbacks run on the Table's timer thread, one at a time, with no mutex
  // held and all signals blocked; programs started there inherit the blocked
  // signals.  std::raise(SIGTERM) does nothing there, because it signals that
  // thread alone: call kill(getpid(), SIGTERM).  A callback may call anything,
  // even unlock() and the mutex's destructor, but no other callback is called
  // while it runs.  A lock() that would wait for another thread of this process
  // is refused there.  An exception is logged, or written to stderr if there is
  // no logger.  Do not call pthread_exit() in a callback, a logger or a source
  // of keys: it aborts the process.
  std::function<void(Loss)> on_lost{};

  // Who holds the lock, in UTF-8, for people who look at the table; it decides
  // nothing.  Default: "host:pid".
  std::string owner{};

  // --- Waiting ---

  // How long lock() retries transient errors.  The time starts with the first
  // error since any thread's request for this mutex last succeeded, or with the
  // call if that is later.  When it is up, the error is reported, also to a
  // thread that waits behind another.  At least 0, which means no retry.
  // Default: 30 s.  For renew() and guarded_write() the time starts with the
  // call, and is at least request_timeout.  Calls with a timeout use that
  // instead.
  std::chrono::milliseconds patience{30000};

  // The pauses between a waiter's reads of the item.  Each pause is random,
  // from half of a limit up to the limit.  The limit is first_poll at first and
  // doubles up to longest_poll.  More than 0, and longest_poll at least
  // first_poll.  Defaults: 30 ms and 225 ms, which is 6 reads a second for each
  // waiter, and four times as many for one that has seen eight others get the
  // lock.  Raise longest_poll if locks are long held and reads cost too much: a
  // lock that is given back is noticed that much later.  If another host has
  // missed its turn, lock() leaves the next one to it: after unlock() it waits
  // for one to two times longest_poll, and try_lock() returns false meanwhile.
  std::chrono::milliseconds first_poll{30};
  std::chrono::milliseconds longest_poll{225};

  // The timeout of one request, and so the longest time that unlock() takes.
  // More than 0, less than ttl / 2.  Default: 2 s or ttl / 4, whichever is
  // less.  Raise it for a slow network; lower it if unlock() must return
  // sooner.
  std::optional<std::chrono::milliseconds> request_timeout{};

  // --- Fencing tokens, and what is stored with the lock ---

  // Keeps the item when the lock is released, and marks it as free.  Then
  // fencing_token() grows with every acquisition, whoever makes it, for as long
  // as the row exists; and what you or others store in the item stays.  All
  // programs that lock a name must agree: one that does not keep the row is
  // refused with Errc::kept_row.  Default: false; in shared layouts as the
  // other library does (see Layout).  There the programs need not agree, and
  // there are no tokens.
  std::optional<bool> keep_row{};

  // Set it if the program relies on fencing_token().  The constructor then
  // fails (bad_option) if the token would always be 0: without keep_row, and in
  // shared layouts (their clients copy the number without counting, or drop
  // it).  It cannot detect programs of ddblock in the same table: they delete
  // kept rows, so that the tokens start again.  Default: false.
  bool fencing = false;

  // Bytes to store with the lock, for the next holder and for inspect().
  // Default: nothing.
  std::optional<std::string> data{};

  // More attributes to store with the lock, in DynamoDB's JSON:
  // `{"state": {"S": "new"}, "tries": {"N": "3"}}`.  (extras/stored.hpp has
  // typed ones.)  They may not have the name of the table's key or of the
  // record's attributes (uuid, expires, lease, owner, ttl, token, data,
  // waiting; in shared layouts other ones).  With keep_row or keep_data, 100 at
  // most.
  std::string item{};

  // Whether the last holder's data and attributes stay where yours do not
  // replace them.  If rows are not kept, only a dead holder leaves any.
  // Default: as keep_row; true in layout dynamolock, false in awslabs.  On kept
  // rows, `false` removes only the data; in layout awslabs it removes the
  // attributes, too.
  std::optional<bool> keep_data{};

  // With keep_row: takes the lock only if its item exists; else Errc::no_row.
  // The item need not be a lock yet: it may have only your own attributes, but
  // none with a name of the record's (else Errc::bad_record).  For rows that
  // are both a job and its lock.  Default: false.
  bool only_if_exists = false;

  // --- Renewal ---

  // Whether a thread of the Table renews the lease.  If false, call renew()
  // yourself; then no thread is started unless a callback is set, or a request
  // or release must be finished in the background.  Default: true.
  bool auto_renew = true;

  // renew_after and max_hold concern automatic renewals only.

  // The age at which the lease is renewed: more than 0, at most ttl / 2.
  // Default: ttl / 2, and the first time at random between ttl / 4 and ttl / 2.
  // Renew more often to survive longer outages, at the price of more requests.
  std::optional<std::chrono::milliseconds> renew_after{};

  // Automatic renewal stops this long after the lock was taken.  The lock is
  // then lost at the end of its lease, unless renew() is called.  So a program
  // that hangs does not keep it for ever.  More than 0.  Default: no limit.
  std::optional<std::chrono::milliseconds> max_hold{};

  // in_danger() and on_danger warn of a loss when remaining() is this or less.
  // At least 0, less than ttl / 2.  Default: ttl / 4.  If it is ttl / 2 less
  // the margin or more (for a ttl below 10 s: 3/8 of the ttl), the lease is in
  // danger before each renewal, unless renew_after is shorter.
  std::optional<std::chrono::milliseconds> safe_time{};

  // Called as on_lost is, once each time that the lease comes into danger
  // before it is renewed.
  std::function<void()> on_danger{};

  // --- A table with a sort key ---

  // The value of the table's sort key.  Default: that of TableOptions.
  std::string sort_value{};
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

  // The table's name.
  std::string name = "locks";

  // The AWS region.  Default: AWS_REGION, AWS_DEFAULT_REGION, the profile's
  // region; else the EC2 instance's, which is looked up on first use.
  std::string region{};

  // An endpoint other than the region's: "https://host", optionally with a port
  // and a path ("http://host:8000/a/b").  Default: AWS_ENDPOINT_URL_DYNAMODB,
  // AWS_ENDPOINT_URL, the profile's endpoint; else that of the region.
  std::string endpoint{};

  // How long exists(), inspect(), list() and force_unlock() retry transient
  // errors.  At least 0.  Default: 30 s.  (For locks, see Options::patience.)
  std::chrono::milliseconds patience{30000};

  // --- Keys, trust, logging ---

  // The profile of the AWS CLI's configuration.  Default: AWS_PROFILE, else
  // "default".
  std::string profile{};

  // Your AWS keys.  Default: found where AWS's tools find them.
  Credentials credentials{};

  // A function that returns keys; all other sources are then ignored.  It is
  // called by a thread of its own, one call at a time: when keys are first
  // needed; before they expire, or every minute if `expires` is not set; and
  // when DynamoDB says that they have expired.  Old keys are used meanwhile.
  // Returning nothing means that there are no keys.  An exception means that
  // there are none now, which is retried as a transient error.  A call that has
  // not returned two seconds after the Table is gone runs on, and may still use
  // what it refers to.
  std::function<std::optional<Credentials>()> credentials_source{};

  // A readable PEM file with the CAs to trust.  Default: AWS_CA_BUNDLE, the
  // profile's `ca_bundle`, else the system's.
  std::string ca_file{};

  // Called for each line of the log, by a thread of its own, one line at a
  // time.  A line never contains a signature, or a secret or token of 16
  // characters or more; if a server repeats one, it is replaced by "(hidden)".
  // Characters are escaped as in Error::what().  The logger may call anything.
  // If it is slow, lines are left out; an exception is ignored.  It is not
  // called once the Table is gone.  A call that is under way keeps the Table:
  // before you destroy what the logger uses, join threads that may still be in
  // lock().  Default: nothing is logged.
  std::function<void(LogLevel level, const std::string& text)> logger{};

  // --- The table's key ---

  // The attribute that is the partition key, a string.  Tables of other
  // libraries usually have "key".
  std::string key = "name";

  // Comes before each mutex's name in the key, so that the table can also hold
  // other items.  The default is what the Go program ddblock writes.  In other
  // layouts there is no prefix unless you set one other than this.
  std::string prefix = "ddblock-";

  // The attribute that is the sort key, a string too, and its value for mutexes
  // that do not set Options::sort_value.  Default: the table has none.
  std::string sort_key{};
  std::string sort_value{};

  // Lets exists() and create() accept a table with eventually consistent
  // replicas.  Only safe if all programs lock in one region.
  bool allow_replicas = false;

  // --- Tables that are shared with programs of other libraries ---

  // How items are written.  All programs that share a table must agree.  Null:
  // the layout of paulmach/ddblock, with `uuid` and `expires`; rows are
  // deleted.  extras/layouts.hpp has those of other libraries, called the
  // shared layouts.
  const lock::RowFormat* rows = nullptr;

  // In layout ddblock, and in those of extras/layouts.hpp that say so: the
  // largest clock skew, against DynamoDB's clock, of hosts whose programs use
  // the other library; 0 to a day.  Default: 0 in layout ddblock, for a table
  // that only this library uses; 2 s in others.  We store the end of our leases
  // later by this, so that a host whose clock is ahead does not take our locks
  // early.  Their leases count as over once DynamoDB's clock is past their end
  // by this, and by at least 2 s, so that a holder whose clock is behind keeps
  // its lock.  A dead holder's lock becomes free that much later.  A host whose
  // clock is off by more may take locks that are held, or lose its own.
  // Between two programs of the other library there is no margin.  If there is
  // a margin, DynamoDB's answers must have a Date (else Errc::not_supported).
  std::optional<std::chrono::milliseconds> calendar_margin{};
};

// The table that locks live in, with the endpoint, keys and connections for it.
// Its mutexes share it.  Any thread may call any member.
//
// The first lock that needs them starts two threads.  At times another one
// fetches keys, and one calls the logger if there is one.  At most 128 renewals
// are in flight; leases that end first are renewed first.  At most 32
// releases that calls left unfinished are in flight, and at most 16 takes that
// calls gave up.  At most 1,000 releases are queued.  Of more, the release of
// the lease that ends first is dropped.  That lock becomes free when its lease
// ends.
class Table {
 public:
  // Sends nothing.  Throws an Error (bad_option) that names what is wrong or
  // cannot be found.  Without exceptions, the first operation fails with it.
  explicit Table(TableOptions options = {});
  // When the Table and all its mutexes are destroyed, the last destructor tries
  // releases that calls left unfinished once more, for two seconds at most.
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // The Table of all mutexes that are given none: made on first use, with the
  // defaults above.  It is never destroyed.
  //
  // A static object that is made before the first Table is destroyed after
  // exit() has shut down OpenSSL.  Its destructor can still release a lock that
  // is held, if the connection is still there.  Calls that take, renew or ask
  // fail in it with Errc::closed.
  static std::shared_ptr<Table> standard();

  // Ends waiting calls of the table and its mutexes, and all later calls, with
  // Errc::closed (in this process).  Releases all locks that its mutexes hold,
  // many at once.  Returns those that could not be released in time; their
  // releases go on in the background until their leases are over.
  // Afterwards no mutex holds a lock, unless memory ran out all that time; a
  // thread that had locked one still unlocks it as usual.
  std::vector<Unreleased> close(
      std::chrono::nanoseconds within = std::chrono::seconds(10)) noexcept;
  template <class Rep, class Period>
  std::vector<Unreleased> close(
      const std::chrono::duration<Rep, Period>& within) noexcept;

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
  // Permanent errors: the same call will fail again.
  bad_option = 1,    // invalid_argument: Error::field() names it.
  not_held,          // operation_not_permitted: the mutex is not locked.
  no_keys,           // permission_denied: no AWS keys were found, or not in
                     // time; then a later call may find them.
  bad_keys,          // permission_denied: unknown keys, or a bad signature.
  expired_keys,      // permission_denied
  access_denied,     // permission_denied: the keys may not do this.
  no_table,          // no_such_file_or_directory
  wrong_table,       // invalid_argument: its key is not as the options say.
                     // Remembered until exists() or create() finds it right.
  unready_table,     // device_or_resource_busy: it is still being created or
                     // deleted, archived, without its encryption key, ...
  replicated_table,  // invalid_argument: eventually consistent replicas.
  bad_request,       // invalid_argument: DynamoDB refuses the request.
  not_supported,     // function_not_supported: the engine has no such action.
  bad_certificate,   // permission_denied: the server's certificate is refused.
  bad_record,        // bad_message: the item is not a lock.  It is left alone,
                     // unless only a fraction in a number is wrong with it.
  kept_row,          // bad_message: the item has a fencing token, so set
                     // Options::keep_row.
  no_row,            // no_such_file_or_directory: Options::only_if_exists.
  condition_failed,  // operation_not_permitted: one of your own conditions in
                     // guarded_write().

  // Transient errors: they were retried, and the last one is reported.
  unreachable,   // host_unreachable
  disconnected,  // connection_reset: before the whole answer had come.
  timed_out,     // timed_out
  throttled,     // resource_unavailable_try_again
  unavailable,   // resource_unavailable_try_again: DynamoDB failed (5xx), even
                 // if its answer broke off.
  bad_answer,    // protocol_error: the answer is not DynamoDB's.

  lease_lost,     // operation_not_permitted: the lock was lost.
  ends_too_soon,  // operation_not_permitted: the lock is held, but for less
                  // time than require() or ensure() asks for.
  cancelled,      // operation_canceled: by cancel() or a stop request.
  closed,         // operation_canceled: the Table was closed, or exit() has
                  // shut down OpenSSL.
};

const std::error_category& category() noexcept;
inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), category()};
}

// what() says which call failed, for which name and table, and why, on one line
// of UTF-8.  After a loss, that is how the lock was lost, and how long ago.
// Control characters, and characters that reorder text or are invisible, are
// escaped ("\n", "\u202e").
class Error : public std::system_error {
 public:
  Error(std::error_code code, const std::string& what,
        const std::string& field = {}, const std::string& request_id = {});
  // Moving copies, so that a moved-from Error keeps its text.
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  const char* what() const noexcept override { return texts_->what.c_str(); }
  // The wrong option ("ttl", "region"); "name" is a mutex's name and "table" a
  // table's.  Empty for other errors.
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
struct Changes {
  std::optional<std::string> data{};  // Bytes.
  std::string item{};                 // As in Options.
  std::vector<std::string> remove{};  // Names of attributes, or "data".  With
                                      // those of `item` 100 at most.
};

// What the table has for a mutex's name.
struct LockInfo {
  std::string name;
  std::string sort_value;  // If the table has a sort key.
  // There is a record: the lock is held, or its holder died, or the row was
  // kept when the lock was released.
  bool exists = false;
  bool released = false;  // The row was kept when the lock was released.
  // True if a mutex for it must set Options::keep_row (else Errc::kept_row or
  // bad_record): the item has a token, or attributes but no record.
  bool keep_row = false;
  std::string uuid;  // New for every acquisition from the table.
  std::string owner;
  // 0 if the record is another client's and does not say.
  std::chrono::milliseconds lease{0};
  // When the lease ends by DynamoDB's clock, calendar_margin included, since
  // 1970.  After the year 2096 if the row does not say; 0 if it was released.
  std::chrono::nanoseconds expires{0};
  // The lease has been over for so long that a host that asks for the lock now
  // gets it, even if it has never seen this record ("How it works", above, says
  // how long).  Always false if the row does not say when the lease ends.
  bool expired = false;
  // How long the lease still lasts by DynamoDB's clock; less than 0 if it is
  // over.  If the record has a `lease`, calendar_margin does not count.  Not
  // set if it was released, or if the record or the answer does not say.
  std::optional<std::chrono::milliseconds> left{};
  // How long ago the lock was last taken or renewed, by DynamoDB's clock.  (No
  // record says how long it has been held.)  Not set if it was released, or if
  // the record or the answer does not say.
  std::optional<std::chrono::milliseconds> age{};
  std::uint64_t token = 0;  // 0 unless the row is a kept one.
  std::optional<std::string> data{};
  std::string item{};  // All other attributes, as in Options; or empty.
  // Why the item is not a lock, or that it is too large to be read.  Everything
  // above but the name and the sort value is then empty.  (inspect() reports
  // bad_record, too.)
  // Otherwise: the first attribute that was left out, if any.  Of the
  // attributes beside the record, up to 8,000 values are read, counting members
  // of lists, maps and sets, and up to 32 levels.
  std::string problem{};
};

// Counted since the Table was made, in this process.
struct Stats {
  // Requests sent, by action.
  std::uint64_t get_item = 0;
  std::uint64_t put_item = 0;
  std::uint64_t update_item = 0;
  std::uint64_t delete_item = 0;
  std::uint64_t other = 0;  // For the table, lists, guarded writes.
  // Of these requests: those that DynamoDB throttled; those that failed
  // otherwise (a lock that somebody else holds is no failure); those that were
  // sent because an earlier one had failed.
  std::uint64_t throttled = 0;
  std::uint64_t failed = 0;
  std::uint64_t retries = 0;
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

template <class Rep, class Period>
std::vector<Unreleased> Table::close(
    const std::chrono::duration<Rep, Period>& within) noexcept {
  return close(detail::nanoseconds_of(within));
}

// --- Inside ------------------------------------------------------------------

namespace detail {

// From 0 up to less than max(), which means for ever; `of_nan` for NaN.
template <class Rep, class Period>
std::chrono::nanoseconds nanoseconds_of(
    const std::chrono::duration<Rep, Period>& duration,
    std::chrono::nanoseconds of_nan) {
  using std::chrono::nanoseconds;
  const double nano =
      std::chrono::duration<double, std::nano>(duration).count();
  if (nano != nano) return of_nan;
  if (nano <= 0) return nanoseconds::zero();
  if (nano >= 9.2e18) return nanoseconds::max() - nanoseconds(1);
  return std::chrono::ceil<nanoseconds>(duration);
}

template <class Clock, class Duration>
std::chrono::nanoseconds time_until(
    const std::chrono::time_point<Clock, Duration>& at) {
  // Not `at - now`, which may overflow, and wraps around if the clock counts in
  // an unsigned type.
  using Nanoseconds = std::chrono::duration<long double, std::nano>;
  return nanoseconds_of(Nanoseconds(at.time_since_epoch()) -
                        Nanoseconds(Clock::now().time_since_epoch()));
}

// One wait that another thread may end, for std::stop_token.
class Wait {
 public:
  Wait();
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  void cancel() noexcept;  // Also ends a wait that begins later.

 private:
  friend class v0::DdbMutex;
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace detail

#ifdef __cpp_lib_jthread
inline bool DdbMutex::stoppable(std::chrono::nanoseconds time,
                                const std::stop_token& stop,
                                std::error_code& ec) {
  detail::Wait wait;
  const std::stop_callback on_stop(stop, [&wait] { wait.cancel(); });
  return lock_within(time, &wait, ec);
}

inline void DdbMutex::lock(const std::stop_token& stop, std::error_code& ec) {
  stoppable(detail::kForEver, stop, ec);
}
#endif

}  // namespace v0
}  // namespace ddbmutex

template <>
struct std::is_error_code_enum<ddbmutex::Errc> : std::true_type {};

#endif  // DDBMUTEX_HPP
