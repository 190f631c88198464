// ddbmutex.hpp: a std::timed_mutex for all hosts, held as one DynamoDB item.
//
//   #include "ddbmutex.hpp"
//
//   ddbmutex::DdbMutex mutex("nightly-report");
//
//   void report() {
//     std::lock_guard guard(mutex);  // One host at a time.
//     for (const auto& page : pages()) {
//       mutex.require(std::chrono::seconds(5));  // Throws if the lock is lost.
//       print(page);
//     }
//   }
//
// How.  lock() writes an item with a fresh uuid and a lease, on condition that
// nobody else's stands there; a thread of the Table renews the lease at half
// its time; unlock() deletes the item.  A waiter takes a lock whose lease it
// has seen unchanged for as long as the lease says and 1 %, or at once where
// DynamoDB's own clock says that the lease is long over.  No host's time of day
// matters; the rates of the hosts' clocks may be off by 1 %.
//
// Not promised.  A process that is paused (swapped out, suspended) between
// asking owns_lock() and acting may act after its lease has ended, while
// another holds the lock.  No lease can prevent that.  Rows that somebody
// changes by hand, and tables with eventually consistent replicas in other
// regions, are not protected.
//
// Thread safety.  Any thread may call any member at any time, but construction
// and destruction (a wait in another thread is ended by the destructor, as by
// cancel()).  Threads that share one DdbMutex exclude each other too, first
// come, first served.  The lock belongs to the object: a thread may unlock what
// another locked.  Calls are no points of thread cancellation.  In a forked
// child the parent's locks are not held, and their destructors do nothing.
//
// Errors.  What can fail throws Error, and has a form with a std::error_code&
// that does not throw.  Where the library was compiled without exceptions, the
// throwing forms call fail_handler.  That somebody else holds the lock is no
// error.
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
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

namespace ddbmutex {
inline namespace v0 {

// --- Errors ------------------------------------------------------------------

// What went wrong.  Each compares equal to the std::errc beside it.
enum class Errc {
  // Mistakes; the same call will fail again.
  bad_option = 1,    // invalid_argument: Error::field() names it.
  not_held,          // operation_not_permitted: release() of no lock.
  no_keys,           // permission_denied: there are no AWS keys.
  bad_keys,          // permission_denied: unknown keys, or a bad signature.
  expired_keys,      // permission_denied
  access_denied,     // permission_denied: the keys may not do this.
  no_table,          // no_such_file_or_directory
  wrong_table,       // invalid_argument: its key is not the string `name`.
  replicated_table,  // invalid_argument: eventually consistent replicas.
  bad_request,       // invalid_argument: DynamoDB refuses what was sent.
  not_supported,     // function_not_supported: the engine has no such action.
  bad_certificate,   // permission_denied: the server is not who it should be.
  bad_record,        // bad_message: the item is no lock record; left alone.
  kept_row,          // bad_message: the item bears a fencing token.

  // Passing; tried again before they are told.
  unreachable,   // host_unreachable
  disconnected,  // connection_reset
  timed_out,     // timed_out
  throttled,     // resource_unavailable_try_again
  unavailable,   // resource_unavailable_try_again: DynamoDB failed (5xx).
  bad_answer,    // protocol_error: not an answer that DynamoDB gives.

  lease_lost,  // operation_not_permitted: the lock was lost before.
  cancelled,   // operation_canceled: by cancel() or a stop request.
  closed,      // operation_canceled: the Table was closed.
};

const std::error_category& category() noexcept;
inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), category()};
}

// what() says which call failed for which name and table, and why.
class Error : public std::system_error {
 public:
  Error(std::error_code code, const std::string& what,
        const std::string& field = {}, const std::string& request_id = {});
  // A move copies, so that no Error is ever without its text.
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  const char* what() const noexcept override { return texts_->what.c_str(); }
  // The option that is wrong ("name", "ttl", "region"); empty if none is.
  const std::string& field() const noexcept { return texts_->field; }
  // DynamoDB's, to quote to its support; empty if it gave none.
  const std::string& request_id() const noexcept { return texts_->request_id; }

 private:
  struct Texts {
    std::string what, field, request_id;
  };
  std::shared_ptr<const Texts> texts_;  // Shared, so that a copy cannot throw.
};

// Called by throwing forms where the library was compiled without exceptions.
// Prints and aborts unless replaced; if it returns, the process is aborted.
// Set it before the first lock is used.
using FailHandler = void (*)(const std::error_code& code, const char* what);
extern FailHandler fail_handler;

// --- The table ---------------------------------------------------------------

struct Credentials {
  std::string access_key_id{};
  std::string secret_access_key{};
  std::string session_token{};  // Empty for keys that do not run out.
  std::string account_id{};     // Empty if it is not known.
  // When they run out; nothing: they do not.
  std::optional<std::chrono::system_clock::time_point> expires{};
};

enum class LogLevel {
  debug,    // A request that failed and is tried again.
  info,     // Keys that were found.
  warning,  // What may become an error.
  error,    // A lock that is lost, a callback that threw.
};
const char* name_of(LogLevel level) noexcept;  // "debug"

struct TableOptions {
  std::string name = "locks";       // Its partition key is the string `name`.
  std::string prefix = "ddblock-";  // Of each mutex's name, in the key.

  // Empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's; else, on first use,
  // that of the EC2 instance.
  std::string region{};
  // "https://host:port".  Empty: AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL,
  // the profile's, else the region's own.
  std::string endpoint{};
  // Empty: AWS_PROFILE, else "default".
  std::string profile{};
  // Empty: looked for where AWS's tools do.
  Credentials credentials{};
  // Goes before all other keys.  Asked by a thread of its own, one at a time:
  // when keys are first needed; again before they run out, or a minute after if
  // they do not say when; and when DynamoDB says that they have.  Old keys
  // serve meanwhile.  A call that has not come back two seconds after the Table
  // is gone runs on, with all that it refers to.  Nothing means that there are
  // none; an exception, that there are none now: it is asked again, as after
  // other passing errors.
  std::function<std::optional<Credentials>()> credentials_source{};
  // PEM file of the CAs to trust, readable; empty: AWS_CA_BUNDLE, the profile's
  // `ca_bundle`, else the system's.
  std::string ca_file{};
  // Told what is worth a line in a log, by a thread of its own, one line at a
  // time.  No line has a secret, a token or a signature in it.  It may call
  // anything.  Where it is slow, lines are left out; an exception out of it is
  // dropped.  None is told once the Table is gone.
  std::function<void(LogLevel level, const std::string& text)> logger{};

  // Let exists() take a table with eventually consistent replicas, of which the
  // caller knows that all locks are taken in one region.
  bool allow_replicas = false;
};

// Since the Table was made, in this process.
struct Stats {
  // Requests that were sent, by action.
  std::uint64_t get_item = 0;
  std::uint64_t put_item = 0;
  std::uint64_t update_item = 0;
  std::uint64_t delete_item = 0;
  std::uint64_t other = 0;  // About the table itself.
  // Of them: those that DynamoDB asked to send later; those that failed in
  // another way (that somebody else holds the lock is no failure); those that
  // were sent because one before had failed.
  std::uint64_t throttled = 0;
  std::uint64_t failed = 0;
  std::uint64_t retries = 0;
  // Heads and bodies, without what TLS and TCP add.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  // Capacity units, as DynamoDB's documentation has them counted, from the
  // sizes of what was sent and received.
  double write_units = 0;
  double read_units = 0;
  // Locks that are held, and the hours for which locks were, added up.
  std::uint64_t held = 0;
  double held_hours = 0;

  std::uint64_t requests() const {
    return get_item + put_item + update_item + delete_item + other;
  }
  // What an hour of holding a lock has cost, all requests counted, at so much
  // for a million units; 0 if none was held.  The prices are those of us-east-1
  // on demand, in US dollars, since November 2024.
  double cost_per_held_hour(double a_million_writes = 0.625,
                            double a_million_reads = 0.125) const {
    if (!(held_hours > 0)) return 0;
    return (write_units * a_million_writes + read_units * a_million_reads) /
           1e6 / held_hours;
  }
};

// What stands in the table for a mutex's name.
struct LockInfo {
  std::string name;
  bool exists = false;  // There is a record: held, or its holder died.
  std::string uuid;     // Fresh for every acquisition.
  std::string owner;
  // 0 if a client wrote the record that does not say.
  std::chrono::milliseconds lease{0};
  // When the lease ends by DynamoDB's clock, since 1970.
  std::chrono::nanoseconds expires{0};
};

// The table that locks live in: endpoint, keys, connections, two threads that
// are started by the first lock held, and at times one that fetches keys.
// Shared by its mutexes.  Any thread may call any member.
class Table {
 public:
  // Sends nothing.  Throws Error (bad_option) that names what is wrong or
  // cannot be found; without exceptions the first operation fails with it.  A
  // region that only EC2's metadata service can tell is asked for on first use.
  explicit Table(TableOptions options = {});
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // The one of a mutex that is given none: made on first use, with the defaults
  // above.
  static std::shared_ptr<Table> standard();

  // Creates the table, paid by request and cleaned up by DynamoDB's TTL where
  // the engine has that, and waits until it is there: a minute at the most.
  // One that exists is looked at as by exists().
  void create();
  void create(std::error_code& ec);

  // False if there is no such table.  wrong_table if its key is not the string
  // `name` alone; replicated_table unless that is allowed.  Worth a call before
  // the first lock wherever the table may not be as create() makes it: with a
  // key that is another attribute of the record, such as `uuid`, every taker
  // writes an item of its own, and only a renewal or release finds out.
  bool exists();
  bool exists(std::error_code& ec);

  // What stands in the table for the mutex of that name; a consistent read.
  LockInfo inspect(const std::string& name);
  LockInfo inspect(const std::string& name, std::error_code& ec);

  Stats stats() const;

  // Ends all calls that wait, of the table and of its mutexes, and those to
  // come, with Errc::closed (in this process).  Locks that are held stay held,
  // and are renewed, until they are unlocked.
  void close() noexcept;

  // The last error of a call with a std::error_code&, in words.
  std::string last_error() const;

  const std::string& name() const noexcept;

 private:
  friend class DdbMutex;
  struct Impl;
  std::shared_ptr<Impl> impl_;  // Changed by none but the destructor.
};

// --- The mutex ---------------------------------------------------------------

// Why a lock was lost.
enum class Loss {
  expired,  // The lease ended before a renewal was confirmed.
  taken,    // Another has it.
  deleted,  // The item, or the table, is gone.
};
const char* name_of(Loss loss) noexcept;  // "expired"

struct Options {
  std::shared_ptr<Table> table{};  // Null: Table::standard().
  std::string owner{};             // For people; empty: "host:pid".

  // The lease: how long a dead holder keeps others out, and how long a holder
  // that is cut off goes on.  100 ms to 366 days.
  std::chrono::milliseconds ttl{60000};
  // For one request, and so for unlock().  More than 0, less than ttl / 2;
  // nothing: 2 s or ttl / 4, whichever is less.
  std::optional<std::chrono::milliseconds> request_timeout{};
  // Between looks while waiting: up to the first, doubling up to the longest,
  // each at random from 0 on.  More than 0, the longest no less than the first.
  std::chrono::milliseconds first_poll{25};
  std::chrono::milliseconds longest_poll{500};
  // How long before its end a lease is in danger.  At least 0, less than
  // ttl / 2; nothing: ttl / 4.
  std::optional<std::chrono::milliseconds> safe_time{};
  // How long lock() bears with passing errors without a break.  At least 0: no
  // second try.
  std::chrono::milliseconds patience{30000};

  // Called once for each acquisition that is lost: `expired` at the lease's end
  // and so before another may hold the lock, unless another callback is still
  // running; `taken` and `deleted` as soon as it is known.  owns_lock() is
  // false by then.  Called on the Table's timer thread, one callback at a time,
  // with no mutex held: it may call anything, unlock() and the mutex's
  // destructor too, but delays other callbacks meanwhile.  That thread has all
  // signals blocked, and so has a program that is started from there.  An
  // exception out of it is logged, or written to stderr if nobody logs.
  std::function<void(Loss)> on_lost{};
  // Called in the same way, once for each time that the lease comes within
  // safe_time of its end without having been renewed.
  std::function<void()> on_danger{};
};

class DdbMutex;

namespace detail {

// How long a call may wait: `within`, where max() is for ever, or as long as
// `left` says, which is asked again after each wait, so that a clock that is
// set counts.
struct Deadline {
  std::chrono::nanoseconds within = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds (*left)(const void* at) = nullptr;
  const void* at = nullptr;
};

// Saturates short of for ever; what is no number is 0.
template <class Rep, class Period>
std::chrono::nanoseconds nanoseconds_of(
    const std::chrono::duration<Rep, Period>& duration) {
  using std::chrono::nanoseconds;
  const double nano =
      std::chrono::duration<double, std::nano>(duration).count();
  if (!(nano > 0)) return nanoseconds::zero();
  if (nano >= 9.2e18) return nanoseconds::max() - nanoseconds(1);
  return std::chrono::ceil<nanoseconds>(duration);
}

template <class Clock, class Duration>
std::chrono::nanoseconds left_until(const void* at) {
  using Seconds = std::chrono::duration<double>;
  const auto& deadline =
      *static_cast<const std::chrono::time_point<Clock, Duration>*>(at);
  const auto now = Clock::now();
  const Seconds roughly =
      Seconds(deadline.time_since_epoch()) - Seconds(now.time_since_epoch());
  // Where the exact difference could overflow, seconds are good enough.
  if (!(roughly.count() > -4e9)) return std::chrono::nanoseconds::zero();
  if (roughly.count() > 4e9) return std::chrono::nanoseconds::max();
  return nanoseconds_of(deadline - now);
}

// One wait that another thread may end: what std::stop_token stands on.
class Wait {
 public:
  Wait();
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  void cancel() noexcept;  // Remembered, also from before the wait.

 private:
  friend class v0::DdbMutex;
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace detail

// Meets the standard's BasicLockable, Lockable and TimedLockable.
class DdbMutex {
 public:
  // Sends nothing and starts nothing.  `name` is UTF-8, 1 to 2,048 bytes with
  // the table's prefix.  Throws Error (bad_option) that names what is wrong;
  // without exceptions the first operation fails with it.
  explicit DdbMutex(std::string name, Options options = {});
  // Unlocks if held.  Waits for this mutex's callbacks, unless a callback calls
  // it: none is called afterwards.
  ~DdbMutex();
  DdbMutex(const DdbMutex&) = delete;
  DdbMutex& operator=(const DdbMutex&) = delete;

  // Waits until the lock is ours.  Passing errors are tried again until they
  // have lasted `patience` without a break.  A thread that has locked this
  // mutex already gets std::errc::resource_deadlock_would_occur.
  void lock();
  void lock(std::error_code& ec);

  // True if the lock is ours.  False if it is held, or not yet known to be
  // free: that of a killed holder is free once it was seen unchanged for its
  // lease (calls remember what they saw).  Takes request_timeout at the most.
  [[nodiscard]] bool try_lock();
  [[nodiscard]] bool try_lock(std::error_code& ec);

  // As lock(), but false once the time is up, and passing errors are borne with
  // until then.  If nobody has answered by then, that is Errc::timed_out: give
  // it the time of a request or two.  A timeout of 0 or less makes it
  // try_lock().
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout) {
    return lock_within({detail::nanoseconds_of(timeout)}, nullptr, nullptr);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout, std::error_code& ec) {
    return lock_within({detail::nanoseconds_of(timeout)}, nullptr, &ec);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& at) {
    return lock_within({{}, detail::left_until<Clock, Duration>, &at}, nullptr,
                       nullptr);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& at, std::error_code& ec) {
    return lock_within({{}, detail::left_until<Clock, Duration>, &at}, nullptr,
                       &ec);
  }

#ifdef __cpp_lib_jthread
  // A stop request ends the wait with Errc::cancelled.
  void lock(const std::stop_token& stop) { stoppable({}, stop, nullptr); }
  void lock(const std::stop_token& stop, std::error_code& ec) {
    stoppable({}, stop, &ec);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      const std::stop_token& stop) {
    return stoppable({detail::nanoseconds_of(timeout)}, stop, nullptr);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      const std::stop_token& stop, std::error_code& ec) {
    return stoppable({detail::nanoseconds_of(timeout)}, stop, &ec);
  }
#endif

  // Gives the lock back; any thread may.  Returns within request_timeout, even
  // if nobody answers: what could not be said by then goes on in the background
  // until the lease is over.  Does nothing if there is nothing to unlock.
  void unlock() noexcept;
  // The same, and tells: not_held; lease_lost; or why DynamoDB could not be
  // told in time.
  void release();
  void release(std::error_code& ec) noexcept;

  // Ends the waits under way with Errc::cancelled.  Not remembered.
  void cancel() noexcept;

  // True while the lease is certainly ours.  Looks at a clock, sends nothing
  // and waits for nobody.  (std::unique_lock::owns_lock() does not see that a
  // lease is lost: ask the mutex.)
  bool owns_lock() const noexcept;
  // How long that will be so without a renewal; 0 if it is not.
  std::chrono::nanoseconds remaining() const noexcept;
  // Throws Error (lease_lost) unless it is ours and at least so much remains.
  void require(std::chrono::nanoseconds min_remaining) const;
  void require(std::chrono::nanoseconds min_remaining,
               std::error_code& ec) const noexcept;

  const std::string& name() const noexcept;
  const std::string& owner() const noexcept;
  // The last error of a call with a std::error_code&, or of unlock(), in words.
  std::string last_error() const;

 private:
  bool lock_within(const detail::Deadline& deadline, detail::Wait* wait,
                   std::error_code* ec);

#ifdef __cpp_lib_jthread
  bool stoppable(const detail::Deadline& deadline, const std::stop_token& stop,
                 std::error_code* ec) {
    detail::Wait wait;
    const std::stop_callback on_stop(stop, [&wait] { wait.cancel(); });
    return lock_within(deadline, &wait, ec);
  }
#endif

  struct Impl;
  std::shared_ptr<Impl> impl_;  // Changed by none but the destructor.
};

}  // namespace v0
}  // namespace ddbmutex

template <>
struct std::is_error_code_enum<ddbmutex::Errc> : std::true_type {};

#endif  // DDBMUTEX_HPP
