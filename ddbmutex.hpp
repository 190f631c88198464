// ddbmutex.hpp: a std::timed_mutex for all hosts, held as one DynamoDB item.
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
// How.  lock() writes an item with a fresh uuid and a lease, on condition that
// nobody else's stands there; a thread of the Table renews the lease at half
// its time; unlock() deletes the item.  A waiter takes a lock whose lease it
// has seen unchanged for as long as the lease says and 1 %, or at once where
// DynamoDB's own clock says that the lease is over by more than what is not
// known of that clock: up to some 5 s.  To learn its time, and that the table
// has the right key, the first lock of a Table looks at the item first: one
// request more.  So does the first lock after one or two minutes in which the
// Table has sent nothing.  A holder counts its lease short by a margin (see
// Options::ttl).  No host's time of day matters; the rates of the hosts' clocks
// may be off by 1 %.
//
// Above, 5 s are the most that it takes to print a page: require() throws if
// the lock was lost, and if its lease could end while the page is printed.
//
// Not promised.  A process that is paused (swapped out, suspended) between
// asking owns_lock() and acting may act after its lease has ended, while
// another holds the lock.  No lease can prevent that; what is written to
// DynamoDB by guarded_write(), or to a store that refuses a lower
// fencing_token() than it has seen, is safe from it.  Rows that somebody
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
// Errors.  What can fail throws Error; given a std::error_code& `ec`, it sets
// that instead.  Where the library was compiled without exceptions, calls
// without an `ec` call fail_handler.  That somebody else holds the lock is no
// error.  Where memory runs out, a call throws std::bad_alloc, or sets `ec` to
// std::errc::not_enough_memory: no lock is left behind that nobody can unlock,
// none that is held is lost, and unlock() needs no memory.  (Compiled without
// exceptions, a failed allocation ends the process.)
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

// Semantic: before 1.0.0 a minor version may break what programs rely on.
#define DDBMUTEX_VERSION_MAJOR 0
#define DDBMUTEX_VERSION_MINOR 1
#define DDBMUTEX_VERSION_PATCH 0
#define DDBMUTEX_VERSION_STRING "0.1.0"

namespace ddbmutex {
inline namespace v0 {

// All of these are below.
class Table;
enum class Loss;
struct Options;
struct Attribute;
struct Changes;
struct Creation;
struct LockInfo;
struct Stats;
struct Unreleased;
using Attributes = std::vector<Attribute>;

namespace detail {
struct Deadline;
class Wait;
template <class Rep, class Period>
std::chrono::nanoseconds nanoseconds_of(
    const std::chrono::duration<Rep, Period>& duration);
template <class Clock, class Duration>
std::chrono::nanoseconds left_until(const void* at);
// Stands for an `ec` that is not given: what fails throws.  Never changed.  A
// function, for a program and a shared library may have a variable each.
std::error_code& throws() noexcept;
}  // namespace detail

// --- The mutex ---------------------------------------------------------------

// Meets the standard's BasicLockable, Lockable and TimedLockable.
class DdbMutex {
 public:
  // Sends nothing and starts nothing.  `name` is UTF-8, 1 to 2,048 bytes with
  // the table's prefix.  Throws Error (bad_option) that names what is wrong;
  // without exceptions the first operation fails with it.
  explicit DdbMutex(std::string name);
  explicit DdbMutex(std::string name, Options options);
  // Unlocks if held.  Waits for this mutex's callbacks, unless a callback calls
  // it: none is called afterwards.  Where a process ends without it (exit()
  // destroys static objects and those of its thread alone), the row stands
  // until the lease is over.
  ~DdbMutex();
  DdbMutex(const DdbMutex&) = delete;
  DdbMutex& operator=(const DdbMutex&) = delete;

  // Waits until the lock is ours.  Passing errors are tried again until they
  // have lasted `patience` without a break.  A thread that has locked this
  // mutex already gets std::errc::resource_deadlock_would_occur.  A callback
  // gets the same error if another thread of this process holds the mutex: that
  // thread may be waiting for a later callback.
  void lock(std::error_code& ec = detail::throws());

  // True if the lock is ours.  False if it is held, or not yet known to be
  // free: that of a killed holder is free once it was seen unchanged for its
  // lease (calls remember what they saw).  Takes request_timeout at the most,
  // twice that for a lock that looks before it takes (see above).
  [[nodiscard]] bool try_lock(std::error_code& ec = detail::throws());

  // As lock(), but false once the time is up, and passing errors are borne with
  // until then: the last attempt is made two round trips before, 50 to 500 ms
  // (where so many have failed that retries are held back, sooner), and what it
  // failed of is told once the time is up.  If nobody has answered by then,
  // that is Errc::timed_out: give it the time of two or three requests.  A
  // timeout of 0 or less makes it try_lock().
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      std::error_code& ec = detail::throws()) {
    return lock_within({detail::nanoseconds_of(timeout)}, nullptr, ec);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& at,
      std::error_code& ec = detail::throws()) {
    return lock_within({{}, detail::left_until<Clock, Duration>, &at}, nullptr,
                       ec);
  }

#ifdef __cpp_lib_jthread
  // A stop request ends the wait with Errc::cancelled.
  void lock(const std::stop_token& stop,
            std::error_code& ec = detail::throws());
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& timeout,
      const std::stop_token& stop, std::error_code& ec = detail::throws()) {
    return stoppable({detail::nanoseconds_of(timeout)}, stop, ec);
  }
#endif

  // As try_lock_for(), for as long as it takes to see whether the holder lives:
  // false `additional` after the lease of the record that stood there first
  // would be over.  Then somebody has renewed or taken the lock meanwhile.  For
  // another thread's lock of this very mutex it waits only as try_lock_for().
  [[nodiscard]] bool try_lock_past_lease(
      std::chrono::milliseconds additional,
      std::error_code& ec = detail::throws());

  // Renews the lease now, whether or not that is done by itself too.  not_held;
  // lease_lost; or, after passing errors that lasted `patience` or until the
  // lease was over, the last of them.
  void renew(std::error_code& ec = detail::throws());
  // The same, if less than this remains.  ends_too_soon if less remains
  // afterwards.  That always happens if min_remaining exceeds the ttl less its
  // margin.
  void ensure(std::chrono::nanoseconds min_remaining,
              std::error_code& ec = detail::throws());

  // Gives the lock back, or hands it over to a thread that waits for this mutex
  // (see Options::handover_limit); any thread may.  Returns within
  // request_timeout, even if nobody answers: what could not be said by then
  // goes on in the background until the lease is over.  Does nothing if there
  // is nothing to unlock.
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
  // Throws Error unless it is ours and at least so much remains: not_held if it
  // is not locked, lease_lost if it was lost, ends_too_soon if less remains.
  void require(std::chrono::nanoseconds min_remaining) const;
  void require(std::chrono::nanoseconds min_remaining,
               std::error_code& ec) const noexcept;

  // No more than safe_time remains, or the lock is not held.
  bool in_danger() const noexcept;

#ifdef __cpp_lib_jthread
  // Asked to stop when the lock that is held now is lost, or released by
  // Table::close(); at once if none is held.  Never once it was unlocked.  Stop
  // callbacks run as on_lost does, or on the thread that closes the table.
  std::stop_token lost() const;
#endif

  // With keep_row: the number of this acquisition, higher than that of every
  // one before it.  0 while there is none.  Kept after a loss, until the mutex
  // is unlocked, for a store that is to refuse whoever comes with it too late.
  std::uint64_t fencing_token() const noexcept;

  const std::string& name() const noexcept;
  const std::string& owner() const noexcept;
  // The last error of a call with a std::error_code&, or of unlock(), in words.
  std::string last_error() const;

  // --- What is stored with the lock (part `attributes`) ---

  // What was there when it was taken, and what was changed since.  Empty unless
  // it is held, or was and is not unlocked.
  std::optional<std::string> data() const;
  Attributes attributes() const;
  // Renews, and changes what is stored; that may have been done or not where a
  // passing error is told.
  void renew(const Changes& changes, std::error_code& ec = detail::throws());
  // Releases, and changes what stays in a kept row, in the same request.
  // bad_option, and the lock stays held, if the row is not kept.  Of a
  // recursive lock that stays locked this is renew(), and the level is kept if
  // that fails.
  void release(const Changes& changes, std::error_code& ec = detail::throws());

  // --- Guarded writes (part `guard`) ---

  // Sends a TransactWriteItems that DynamoDB carries out only if the lock is
  // ours at that moment: who has lost it, and whose clock does not show it yet,
  // is refused with Errc::lease_lost.  Then the lease is renewed at once, so
  // that owns_lock() is false and on_lost is called if that finds it lost, or
  // gets no answer within request_timeout.  `items`: JSON of an array of 1 to
  // 99 elements of TransactItems, `[{"Put": {...}}, {"Update": ...}]`, of
  // tables of one account and region.  condition_failed if a condition of
  // theirs does not hold; Error's text has its place, from 1 on, and DynamoDB's
  // words. no_table and access_denied may be of any of these tables, or of the
  // lock's; an item whose key does not fit its table is bad_request.  Passing
  // errors are tried again for `patience`, 9 minutes at the most; the write is
  // made once at most, by its ClientRequestToken, which DynamoDB knows for 10.
  // Where the rows are not kept, a request of ours that DynamoDB gets only
  // after others had the lock could open the door again.
  void guarded_write(const std::string& items,
                     std::error_code& ec = detail::throws());
  // The condition that it is, for those who send the transaction themselves:
  // the JSON of a ConditionCheck, to be one of TransactItems.  not_held.
  std::string condition_check(std::error_code& ec = detail::throws()) const;

 private:
  bool lock_within(const detail::Deadline& deadline, detail::Wait* wait,
                   std::error_code& ec);
#ifdef __cpp_lib_jthread
  bool stoppable(const detail::Deadline& deadline, const std::stop_token& stop,
                 std::error_code& ec);
#endif
  std::shared_ptr<void> loss_signal(std::shared_ptr<void> (*make)(),
                                    void (*tell)(void*)) const;

  struct Impl;
  std::shared_ptr<Impl> impl_;  // Changed by none but the destructor.
};

// An attribute of an item, of any of DynamoDB's types.
struct Attribute {
  enum class Type {
    string,
    number,
    binary,
    boolean,
    null,
    string_set,
    number_set,
    binary_set,
    list,
    map,
  };
  std::string name{};  // Empty for a member of a set or list.
  Type type = Type::string;
  // string: UTF-8; number: decimal text, up to 38 digits; binary: the bytes;
  // boolean: "true" or "false"; of other types empty.
  std::string value{};
  std::vector<Attribute> members{};  // Of sets, lists and maps.
};
bool operator==(const Attribute& a, const Attribute& b);
inline bool operator!=(const Attribute& a, const Attribute& b) {
  return !(a == b);
}

struct Options {
  std::shared_ptr<Table> table{};  // Null: Table::standard().
  std::string owner{};             // For people; empty: "host:pid".

  // The lease: how long a dead holder keeps others out, and how long a holder
  // that is cut off goes on, less its margin, which is 1.25 s; of less than
  // 10 s an eighth, and of more than 125 s 1 %.  100 ms to 366 days.
  //
  // The margin is for a clock that is off by 1 %, or for a machine that stands
  // still, its boot clock too, for so short a time that no answer shows it.  A
  // pause of up to 1.25 s lets nobody else in where this is 10 s or more;
  // below, it can let two hold the lock for up to 1.25 s - ttl / 8: for 0.625 s
  // where this is 5 s, for 1 s where it is 2 s.  If clocks are also off
  // by 1 %, add 1 % of the ttl; the total is never more than 1.25 s.
  std::chrono::milliseconds ttl{60000};
  // The value of the table's sort key, if it has one; empty: that of
  // TableOptions.
  std::string sort_value{};

  // Keep the row when the lock is released, marked as free, and number its
  // acquisitions: fencing_token() grows with each, whoever takes the lock, for
  // as long as the row is there.  Attributes that others have written stay.
  // All who lock the name must agree: a row with a token is refused by those
  // that do not keep it (Errc::kept_row).  Nothing: as the layout has it (see
  // Layout); layouts that other programs share have no numbers, and there they
  // need not agree.
  std::optional<bool> keep_row{};
  // With keep_row: take the lock only if there is an item by its name, which
  // need hold nothing but others' attributes (none by a name of the record's);
  // else Errc::no_row.
  bool only_if_exists = false;

  // Bytes that are stored with the lock, for the next holder and inspect().
  std::optional<std::string> data{};
  // Attributes that are: any names but the table's key and those of the record
  // (uuid, expires, lease, owner, ttl, token, data; or what the layout has).
  // With keep_row or keep_data 100 at the most.
  Attributes attributes{};
  // Whether what the holder before has left stays where the above do not
  // replace it.  Nothing: as keep_row; in layout awslabs false, in dynamolock
  // true.  Where rows are not kept, only a holder that died leaves anything. On
  // kept rows attributes always stay, but in awslabs: false removes its `data`
  // alone.
  std::optional<bool> keep_data{};

  // Renew the lease by a thread of the Table.  If not, renew() is the
  // program's to call, and no thread is started, unless a callback is set or
  // lost() is asked, or a request that was given up or a release must be
  // finished.
  bool auto_renew = true;
  // This and the two below are for renewal by itself alone.  How old the lease
  // gets before it is renewed: more than 0, at most ttl / 2; nothing: ttl / 2.
  std::optional<std::chrono::milliseconds> renew_after{};
  // How long after the lock was taken renewals by themselves end, so that it is
  // lost a lease later at the most.  More than 0; nothing: never.
  std::optional<std::chrono::milliseconds> max_hold{};
  // Asked before each renewal by itself, but not before its retries, and it is
  // sent only if the answer is true.  If not, it is asked again until the lease
  // is over.  Called as on_lost is: what it waits for delays all callbacks, and
  // its own renewal.
  std::function<bool()> alive{};

  // Let the thread that has the lock lock it again, to unlock it as often: as
  // std::recursive_mutex.  Errc::lease_lost if the lock was lost meanwhile.
  bool recursive = false;

  // Where another thread waits for this very mutex, unlock() hands the lock
  // over to the one that has waited longest, with its lease, and sends nothing.
  // So that other hosts get in, that happens at most so often in a row, only
  // within ttl / 2 of when the lease was taken, and only while more than half
  // of it is left.  At least 0: never.  A mutex that keeps rows or data, one
  // with max_hold and one without auto_renew take a new lease each time, and so
  // does any mutex after a guarded_write(), a condition_check() or a renew()
  // with changes.
  //
  // The uuid stays the same; all else of an acquisition is new.  A loss is told
  // to the thread that has the lock by then, even if its lock() has not
  // returned yet: it then returns as if the lock had been lost right after.  A
  // thread whose wait ends by time or is cancelled at the moment when it is
  // handed the lock has the lock.
  int handover_limit = 16;

  // For one request, and so for unlock().  More than 0, less than ttl / 2;
  // nothing: 2 s or ttl / 4, whichever is less.
  std::optional<std::chrono::milliseconds> request_timeout{};
  // Between looks while waiting: up to the first, doubling up to the longest,
  // each at random from half of that on.  More than 0, the longest no less than
  // the first.
  std::chrono::milliseconds first_poll{30};
  std::chrono::milliseconds longest_poll{225};
  // How long before its end, as remaining() tells it, a lease is in danger.  At
  // least 0, less than ttl / 2; nothing: ttl / 4.  Where it is more than ttl /
  // 2 less the margin of `ttl` (of less than 10 s: more than 3/8 of ttl), that
  // is before the lease is half over, and so it is in danger before each
  // renewal, unless renew_after is less.
  std::optional<std::chrono::milliseconds> safe_time{};
  // How long lock() bears with passing errors without a break, counted from the
  // first that any thread of this mutex has met.  Once they have lasted so
  // long, that is told to all threads that wait in lock() by then; who comes
  // later begins anew.  At least 0: no second try.
  std::chrono::milliseconds patience{30000};

  // Called once for each acquisition that is lost: `expired` at the lease's end
  // and so before another may hold the lock, unless another callback is still
  // running; `taken` and `deleted` as soon as it is known.  owns_lock() is
  // false by then.  Once unlocked, a lock counts as lost only if that is found
  // out before the end of its lease.  Called on the Table's timer thread, one
  // callback at a time, with no mutex held: it may call anything, unlock() and
  // the mutex's destructor too, but delays other callbacks meanwhile.  A lock()
  // that would wait for another thread of this process is refused there.  That
  // thread has all signals blocked, and so has a program that is started from
  // there.  An exception out of it is logged, or written to stderr if nobody
  // logs.
  std::function<void(Loss)> on_lost{};
  // Called in the same way, once for each time that the lease comes within
  // safe_time of its end without having been renewed.
  std::function<void()> on_danger{};
  // To rely on fencing_token(): bad_option where it would be 0, which is where
  // rows are not kept, and in shared layouts, whose other clients would copy
  // the number without counting, or drop it.
  bool fencing = false;
};

// Why a lock was lost.
enum class Loss {
  expired,  // The lease ended before a renewal was confirmed.
  taken,    // Another has it.
  deleted,  // The item, or the table, is gone.
};
const char* name_of(Loss loss) noexcept;  // "expired"

// --- The table ---------------------------------------------------------------

struct Credentials {
  std::string access_key_id{};
  std::string secret_access_key{};
  std::string session_token{};  // Empty for keys that do not run out.
  std::string account_id{};     // Empty if it is not known.
  // When they run out; nothing: they do not.
  std::optional<std::chrono::system_clock::time_point> expires{};
};

// How locks are written (part `layouts`, but for the first).  The others are
// those of other libraries, whose programs can hold the locks of one table in
// turn with ours: nobody has what another has.  What each cannot keep its
// promise in is on the page examples/README.md.
//
// lockclient, lease and ddblock judge a lease by the calendar of whoever wants
// it: see TableOptions::calendar_margin.  Where others share the table, answers
// must have a Date (Errc::not_supported): how long a lease is could not be
// told by them otherwise.
//
// dynamolock and awslabs judge by what they have seen: a lock may be taken once
// its row has been seen unchanged for its lease, and not sooner.  So a program
// that asks once and never again gets no dead holder's lock; and LockInfo's
// `expires` is no time there.
enum class Layout {
  ddblock,     // Ours: `uuid`, `expires`; rows deleted.
  lockclient,  // `identifier`, `expiry`; rows deleted.
               // (samstradling/dynamodb-lock-client-golang)
  lease,       // `ProcessID`, `LeaseUntil`; rows are there before, with a
          // LeaseUntil, which may be 0, and always kept; else Errc::no_row.
          // (intercom/lease)
  dynamolock,  // `ownerName`, `leaseDuration` ("20s"), `recordVersionNumber`,
               // `isReleased`; rows kept.  (cirello-io/dynamolock)
  awslabs,     // The same with "20000"; rows deleted.
               // (awslabs/amazon-dynamodb-lock-client)
};

enum class LogLevel {
  debug,    // A request that failed and is tried again.
  info,     // Keys that were found.
  warning,  // What may become an error.
  error,    // A lock that is lost, a callback that threw.
};
const char* name_of(LogLevel level) noexcept;  // "debug"

struct TableOptions {
  std::string name = "locks";
  // Of each mutex's name, in the key.  In other layouts there is none unless
  // another than this is set.
  std::string prefix = "ddblock-";
  // The attribute that is the table's partition key, a string; those of other
  // libraries have "key", unless they were told otherwise.
  std::string key = "name";
  // The one that is its sort key, a string too; empty: it has none.  Its value
  // for each lock that is given none by Options::sort_value.
  std::string sort_key{};
  std::string sort_value{};

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
  // time.  No line has a signature in it, nor a secret or token of 16
  // characters or more: a server's word that repeats one is "(hidden)".  It may
  // call anything.  Where it is slow, lines are left out; an exception out of
  // it is dropped.  None is told once the Table is gone.
  std::function<void(LogLevel level, const std::string& text)> logger{};

  // How long exists(), inspect(), list() and force_unlock() try to get an
  // answer to a request before a passing error is told.
  std::chrono::milliseconds patience{30000};

  // Let exists() take a table with eventually consistent replicas, of which the
  // caller knows that all locks are taken in one region.
  bool allow_replicas = false;

  // --- Tables that are shared (part `layouts`) ---

  // How its locks are written.  All that share a table must agree.
  Layout layout = Layout::ddblock;
  // How far the calendars of other programs' hosts may be off DynamoDB's clock,
  // in layouts ddblock, lockclient and lease; 0 to a day; nothing: 2 s, in
  // ddblock 0, for a table of ours alone.  Our leases are written as so much
  // longer, so that a calendar that is ahead takes none early; theirs count as
  // over when DynamoDB's clock is past them by so much, and by 2 s at the
  // least, so that a holder whose calendar is behind is not robbed.  A dead
  // holder's lock is free so much later.  Whose calendar is off by more takes
  // locks that are held, or has his taken; and among each other theirs have no
  // margin.
  std::optional<std::chrono::milliseconds> calendar_margin{};
  // In layouts dynamolock and awslabs: write `leaseDuration` in the form that
  // the row has, where there is one, as "20s" or as "20000", and not as the
  // layout says.  Both are read anyway, but by us alone: rows of both kinds for
  // one name lock the other kind's clients out, with an error.  Each lock
  // begins with a look then: one request more.
  bool lease_as_found = false;
};

// The table that locks live in: endpoint, keys, connections, two threads that
// are started by the first lock that needs them, and at times one that fetches
// keys.  Shared by its mutexes.  Any thread may call any member.
//
// Its threads have up to 128 renewals under way at once, those first whose
// leases end first; and of what calls have left unfinished, 32 releases, and 16
// requests that were given up and may yet be answered.  Up to 1,000 releases
// wait for their turn; beyond that the lock that would be free soonest by
// itself is left to its lease.
class Table {
 public:
  // Sends nothing.  Throws Error (bad_option) that names what is wrong or
  // cannot be found; without exceptions the first operation fails with it.  A
  // region that only EC2's metadata service can tell is asked for on first use.
  explicit Table(TableOptions options = {});
  // The last of a Table and its mutexes to go tries once more what calls have
  // left unfinished, and waits for that for two seconds at the most.
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // The one of a mutex that is given none: made on first use, with the defaults
  // above.
  static std::shared_ptr<Table> standard();

  // Ends all calls that wait, of the table and of its mutexes, and those to
  // come, with Errc::closed (in this process), and releases all that its
  // mutexes hold, many at once.  Returns those that could not be released
  // within that time, and goes on with them in the background until their
  // leases are over.  Then the mutexes hold nothing, though a thread that
  // locked one unlocks it as always.
  std::vector<Unreleased> close(
      std::chrono::milliseconds within = std::chrono::seconds(10)) noexcept;

  // The last error of a call with a std::error_code&, in words.
  std::string last_error() const;

  const std::string& name() const noexcept;

  Stats stats() const;

  // --- Administration (part `manage`) ---

  // Creates the table with the key that the options name, and waits until it is
  // there: a minute at the most.  One that exists is looked at as by exists(),
  // and left as it is but for the clean-up.
  void create(std::error_code& ec = detail::throws());
  void create(const Creation& how, std::error_code& ec = detail::throws());

  // False if there is no such table.  wrong_table if its key is not as the
  // options have it; replicated_table unless that is allowed.  Worth a call
  // when a program starts: it finds out before the first lock does.  A wrong
  // key is remembered: until this or create() finds the key right, locks,
  // inspect(), list() and force_unlock() fail with wrong_table and send
  // nothing. Renewals and releases of locks that are held are still sent.
  bool exists(std::error_code& ec = detail::throws());

  // What stands in the table for the mutex of that name; a consistent read.
  LockInfo inspect(const std::string& name,
                   std::error_code& ec = detail::throws());
  LockInfo inspect(const std::string& name, const std::string& sort_value,
                   std::error_code& ec = detail::throws());

  // Calls `each` for every item whose key begins with the prefix, in no order,
  // until it returns false.  A page of items is in memory at a time; data and
  // attributes are not read.  Reads the whole table: a read unit for each 4,096
  // bytes.  What is taken or released meanwhile may be told or not.
  void list(const std::function<bool(const LockInfo&)>& each,
            std::error_code& ec = detail::throws());
  // The same for all sort values of one name, which reads no others.
  void list(const std::string& name,
            const std::function<bool(const LockInfo&)>& each,
            std::error_code& ec = detail::throws());

  // Frees the lock, if exactly the record that was inspected stands there yet.
  // False if another does.  Deletes the row only in layout ddblock, and only
  // one without a token; any other it marks as free, as its holder's release
  // would, and leaves all else in it.  The holder, if it lives, loses the lock
  // and hears of it with its next renewal: until then two may believe to hold
  // it.  One that unlocks in an outage that lasts for longer than its lease
  // does not hear of it.  Nor does a program of another library at once: with
  // its next heartbeat one of lockclient or lease takes the free lock again,
  // and one of dynamolock or awslabs hears of it only once another has the
  // lock. bad_option if nothing was held.
  bool force_unlock(const LockInfo& info,
                    std::error_code& ec = detail::throws());

 private:
  friend class AnyOf;  // ddbmutex/any_of.hpp
  friend class DdbMutex;
  struct Impl;
  std::shared_ptr<Impl> impl_;  // Changed by none but the destructor.
};

// --- Errors ------------------------------------------------------------------

// What went wrong.  Each compares equal to the std::errc beside it.
enum class Errc {
  // Mistakes; the same call will fail again.
  bad_option = 1,    // invalid_argument: Error::field() names it.
  not_held,          // operation_not_permitted: nothing is locked.
  no_keys,           // permission_denied: there are no AWS keys.
  bad_keys,          // permission_denied: unknown keys, or a bad signature.
  expired_keys,      // permission_denied
  access_denied,     // permission_denied: the keys may not do this.
  no_table,          // no_such_file_or_directory
  wrong_table,       // invalid_argument: its key is not the string `name`.
                     // Remembered until exists() or create() finds it right.
  replicated_table,  // invalid_argument: eventually consistent replicas.
  bad_request,       // invalid_argument: DynamoDB refuses what was sent.
  not_supported,     // function_not_supported: the engine has no such action.
  bad_certificate,   // permission_denied: the server is not who it should be.
  bad_record,        // bad_message: the item is no lock record; left alone.
  kept_row,          // bad_message: the item bears a fencing token.
  no_row,            // no_such_file_or_directory: Options::only_if_exists.
  condition_failed,  // operation_not_permitted: one of a guarded write's own.

  // Passing; tried again before they are told.
  unreachable,   // host_unreachable
  disconnected,  // connection_reset
  timed_out,     // timed_out
  throttled,     // resource_unavailable_try_again
  unavailable,   // resource_unavailable_try_again: DynamoDB failed (5xx).
  bad_answer,    // protocol_error: not an answer that DynamoDB gives.

  lease_lost,     // operation_not_permitted: the lock was lost before.
  ends_too_soon,  // operation_not_permitted: it is held, but for less time than
                  // require() or ensure() asks for.
  cancelled,      // operation_canceled: by cancel() or a stop request.
  closed,         // operation_canceled: the Table was closed.
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
  // The option that is wrong ("ttl", "region"); "name" is a mutex's, "table" a
  // table's.  Empty if none is.
  const std::string& field() const noexcept { return texts_->field; }
  // DynamoDB's, to quote to its support; empty if it gave none.
  const std::string& request_id() const noexcept { return texts_->request_id; }

 private:
  struct Texts {
    std::string what, field, request_id;
  };
  std::shared_ptr<const Texts> texts_;  // Shared, so that a copy cannot throw.
};

// Called for what would throw, where the library was compiled without
// exceptions.  Prints and aborts unless replaced; if it returns, the process is
// aborted.  Set it before the first lock is used.
using FailHandler = void (*)(const std::error_code& code, const char* what);
extern FailHandler fail_handler;

// --- What few programs need --------------------------------------------------

// What is to be changed of what is stored with a lock.  All else stays as it
// is.
struct Changes {
  std::optional<std::string> data{};  // Bytes.
  Attributes attributes{};            // As in Options,
  std::vector<std::string> remove{};  // and names of attributes, `data` too:
                                      // 100 in all.
};

// How Table::create() makes the table.
struct Creation {
  struct Throughput {
    std::uint64_t read_units = 1;
    std::uint64_t write_units = 1;
  };
  std::optional<Throughput> throughput{};  // Nothing: paid by request.
  std::vector<std::pair<std::string, std::string>> tags{};
  // Have DynamoDB delete rows whose lease is over by a day, where the engine
  // can do that.
  bool clean_up = true;
};

// What stands in the table for a mutex's name.
struct LockInfo {
  std::string name;
  std::string sort_value;  // Where the table has a sort key.
  // There is a record: the lock is held, or its holder died, or the row was
  // kept when the lock was released.
  bool exists = false;
  bool released = false;  // The last.
  // Who locks it must set Options::keep_row, else Errc::kept_row or bad_record:
  // the item bears a token, or nothing but others' attributes.
  bool keep_row = false;
  std::string uuid;  // Fresh for every acquisition from the table.
  std::string owner;
  // 0 if a client wrote the record that does not say.
  std::chrono::milliseconds lease{0};
  // When the lease ends by DynamoDB's clock, since 1970, calendar_margin and
  // all; beyond the year 2096 where the row does not say; 0 if it was released.
  std::chrono::nanoseconds expires{0};
  // How long ago the lock was last renewed, or taken, by DynamoDB's clock; not
  // for how long it is held, which no record says.  Nothing if it was released,
  // or the record or the answer does not say.
  std::optional<std::chrono::milliseconds> age{};
  std::uint64_t token = 0;  // 0 unless the row is a kept one.
  std::optional<std::string> data{};
  Attributes attributes{};
  // list() alone: why the item is no lock record.  All above but the name is
  // empty then.
  std::string problem{};
};

// Since the Table was made, in this process.
struct Stats {
  // Requests that were sent, by action.
  std::uint64_t get_item = 0;
  std::uint64_t put_item = 0;
  std::uint64_t update_item = 0;
  std::uint64_t delete_item = 0;
  std::uint64_t other = 0;  // The table itself, lists, guarded writes.
  // Of them: those that DynamoDB asked to send later; those that failed in
  // another way (that somebody else holds the lock is no failure); those that
  // were sent because one before had failed.
  std::uint64_t throttled = 0;
  std::uint64_t failed = 0;
  std::uint64_t retries = 0;
  // Heads and bodies, without what TLS and TCP add.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  // Locks that are held, and the hours for which locks were, added up.
  std::uint64_t held = 0;
  double held_hours = 0;

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

// --- Inside ------------------------------------------------------------------

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
  const auto& deadline =
      *static_cast<const std::chrono::time_point<Clock, Duration>*>(at);
  // Not `deadline - now`, which may overflow, and wraps around if the clock
  // counts in an unsigned type.
  using Nanoseconds = std::chrono::duration<long double, std::nano>;
  const auto left = Nanoseconds(deadline.time_since_epoch()) -
                    Nanoseconds(Clock::now().time_since_epoch());
  constexpr auto kForEver = std::chrono::nanoseconds::max();
  return left > std::chrono::hours(1'000'000) ? kForEver : nanoseconds_of(left);
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

#ifdef __cpp_lib_jthread
inline bool DdbMutex::stoppable(const detail::Deadline& deadline,
                                const std::stop_token& stop,
                                std::error_code& ec) {
  detail::Wait wait;
  const std::stop_callback on_stop(stop, [&wait] { wait.cancel(); });
  return lock_within(deadline, &wait, ec);
}

inline void DdbMutex::lock(const std::stop_token& stop, std::error_code& ec) {
  stoppable({}, stop, ec);
}

inline std::stop_token DdbMutex::lost() const {
  const std::shared_ptr<void> signal = loss_signal(
      [] {
        return std::shared_ptr<void>(std::make_shared<std::stop_source>());
      },
      [](void* source) {
        static_cast<std::stop_source*>(source)->request_stop();
      });
  return static_cast<std::stop_source*>(signal.get())->get_token();
}
#endif

}  // namespace v0
}  // namespace ddbmutex

template <>
struct std::is_error_code_enum<ddbmutex::Errc> : std::true_type {};

#endif  // DDBMUTEX_HPP
