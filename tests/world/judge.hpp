// The judge of a life: it alone knows the world's true time.  Programs tell it
// what they do, the network tells it what reached the tables, and at each step
// of the world it asks every mutex whether it owns its lock.
//
// What it checks, and which sentence of ddbmutex.hpp (or of ddbmutex/README.md)
// promises it:
//
//   no two claims overlap                          look_at_owners()
//   a loss is told once, in time, when it is one   lost(), look_at_losses()
//   the cause that is told is true                 check_cause()
//   nothing is lost where nothing goes wrong       is_loss_expected()
//   fencing_token() grows                          acquired()
//   a guarded write: only the holder's, and once   see_writes(), write_ends()
//   a free lock is taken within a pause between
//     two looks and some round trips, a dead
//     holder's when its lease and 1 % are over     check_wait()
//   try_lock() of a free lock                      check_free()
//   unlock() within request_timeout, try_lock()
//     within twice that, timed calls, close(),
//     destructors                                  check_time()
//   cancel() ends waits                            check_cancel()
//   lock() returns: the lock is owned              check_owned()
//   unlock(): the row is free then                 check_unlocked()
//   threads that share a mutex exclude each other,
//     first come, first served                     check_shared(), check_turn()
//   Options::handover_limit                        check_hand_over()
//   Options::max_hold, auto_renew                  check_longest_hold()
//   Options::patience: nothing is given up early   check_patience()
//   ensure(), require(): so much remains           check_remaining()
//   close(): no mutex holds a lock                 check_closed()
//   callbacks: one at a time                       callback_begins()
//   a Table leaves no thread, request or memory    program_over()
//   in the end each lock is free, and its row is
//     gone if it is not kept                       check_rows()
//   which errors a call may report                 is_possible()
//
// What cannot be checked here: TLS, files and real sockets (http.cpp has tests
// of its own); how many renewals, releases and abandoned requests are in flight
// at once (a life has too few mutexes); `Errc::no_table` and the like, because
// the tables of a life are as they should be; create() and exists() on tables
// of other kinds; what reaches DynamoDB after the end of a life.
#ifndef DDBMUTEX_TESTS_WORLD_JUDGE_HPP
#define DDBMUTEX_TESTS_WORLD_JUDGE_HPP

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/world/network.hpp"
#include "tests/world/plan.hpp"
#include "tests/world/world.hpp"

namespace world {

// What a process's clocks showed when something began.
struct Stopwatch {
  Process* process = nullptr;
  Time began{};
  BootTime boot{};
  nanoseconds stalled{}, frozen{}, suspended{};

  static Stopwatch start(Process& process);
  // By the boot clock, less what the process was kept from running.
  nanoseconds run() const;
  // How long it was kept from running.
  nanoseconds kept() const;
  bool was_suspended() const;
};

// A Table of a program, as the judge knows it.
struct WatchedTable {
  Process* process = nullptr;
  bool closed = false;         // close() was called.
  bool bad_keys = false;       // Its keys may be wrong at times.
  bool slow_keys = false;      // It may take long to get them.
  int callbacks = 0;           // That run now.
  Time callback_ended{};       // The last one.
  nanoseconds in_callbacks{};  // For how long they have run, all in all.
  Time callback_began{};
};

// A DdbMutex of a program.
struct WatchedMutex {
  // --- What the program says of it ---
  Process* process = nullptr;
  WatchedTable* table = nullptr;
  const ddbmutex::DdbMutex* mutex = nullptr;
  std::string lock;  // "lock-0"
  std::chrono::milliseconds ttl{}, request_timeout{}, patience{};
  std::chrono::milliseconds longest_poll{}, renew_after{};
  bool hears_losses = false;
  int handover_limit = 0;
  // Without a renew() of the program's; max(): for ever.
  nanoseconds longest_hold = nanoseconds::max();
  // It is renewed for as long as it is held.
  bool is_renewed = false;
  bool keep_row = false;

  // --- What the judge knows ---
  Time asked_for = kNever;  // When AnyOf was asked for it, if it was.
  bool gone = false;   // Its destructor was called, or its process is dead.
  int calls = 0;       // Under way.
  bool owned = false;  // When looked at last.
  Time owned_since = kNever;
  Time acquired_since = kNever;  // That, when a thread had it last.
  Stopwatch owned_clock;         // Since then.
  int holder = -1;               // The thread that has locked it.
  int handed_over = 0;           // How often that lease was.
  bool tied = false;             // It may not be.
  bool renewed_by_hand = false;
  BootTime claim_end{};     // As it was when it was owned last.
  std::string proof;        // What the row had then.
  nanoseconds paused{};     // Of its host, by then.
  int locked = 0;           // How often its program has locked it.
  Time unlocked{};          // When an unlock of it began last.
  bool lets_go = false;     // One began since it was owned.
  bool forced = false;      // Somebody has freed it by force since.
  Time unfinished_until{};  // A release may go on in the background.
  int told = 0;             // How often on_lost was called since.
  bool lost = false;        // Nobody was told yet.
  Stopwatch lost_since;
  Time cancel_began = -nanoseconds(1);
  Time cancel_ended{};
  Time forgotten = kNever;
};

// A call of a program that is under way.
struct Call {
  std::string what;
  WatchedMutex* mutex = nullptr;  // May be null.
  WatchedTable* table = nullptr;
  Stopwatch since;
  // The longest time that it may take; max(): not known.
  nanoseconds limit = nanoseconds::max();
  bool gets_lock = false;        // One of those that lock.
  bool waits = false;            // And waits for it, for ever or for long.
  bool open_ended = false;       // When its time is up is not known exactly.
  bool ties = false;             // What it got is not handed over.
  bool renews = false;           // By hand.
  nanoseconds ensures{};         // So much remains if it succeeds.
  bool lets_go = false;          // One of those that unlock.
  bool after_callbacks = false;  // It waits for those that run.
  bool may_be_refused = false;   // In a callback, or locked by the same thread.
  bool has_condition = false;    // A guarded write with a condition of its own.
  bool bad_option = false;       // It is asked for what is no option.
  std::chrono::nanoseconds callbacks{};  // Of the table, when it began.
  Time free_since = kNever;              // The lock's row, when it began.
  bool alone = false;  // No other call of the mutex was under way.
  bool held = false;   // A thread of its program had the lock then.
};

// What came of it.
struct Result {
  std::error_code code;
  std::string text;
  bool got = false;  // The lock.
};

class Judge {
 public:
  explicit Judge(const Plan& plan);

  // --- What the world tells ---
  void look();
  void applied(const Applied& applied);
  void end_of_life();
  std::uint64_t acquisitions() const { return acquisitions_; }

  // One of each kind in a life.
  void wrong(const std::string& kind, const std::string& text);
  const std::vector<std::string>& wrongs() const { return wrongs_; }

  // --- What clients of other libraries tell ---
  // `sent`: when the request for it was.
  void rival_acquired(const std::string& lock, Process& process, BootTime until,
                      Time sent = kNever);
  void rival_released(const std::string& lock, Process& process);

  // --- What programs tell ---
  WatchedTable& watch_table();
  // Stays where it is until the end of the life.  `asked_for`: when the call
  // began that made it and locked it, if one did.
  WatchedMutex& watch(const ddbmutex::DdbMutex& mutex,
                      const ddbmutex::Options& options, WatchedTable& table,
                      Time asked_for = kNever);
  // Before its destructor.
  void forget(WatchedMutex& mutex);

  // Around each call of the library.
  using CallPlace = std::list<Call>::iterator;
  CallPlace begins(Call call);
  void ends(CallPlace call, const Result& result);

  // That thread of the program has the lock, and its token.
  void acquired(WatchedMutex& mutex, std::uint64_t token, int thread);
  // The program has asked owns_lock(), and does what only the holder may do.
  void act(const WatchedMutex& mutex);
  void cancel_begins(WatchedMutex& mutex);
  void cancel_ends(WatchedMutex& mutex);
  // This process may free the lock by force from now on.
  void may_force(const std::string& lock);
  void closing(WatchedTable& table);
  void callback_begins(WatchedTable& table);
  void callback_ends(WatchedTable& table);
  void lost(WatchedMutex& mutex, ddbmutex::Loss why);

  // A guarded write; its number.
  int write_begins(const WatchedMutex& mutex, std::uint64_t token);
  void write_ends(int number, const Result& result);

  // This process has become a forked child.
  void forked(Process& parent, Process& child);
  // All tables and mutexes of this process are gone, for so long as a Table may
  // leave something behind.
  void program_over(Process& process, std::int64_t bytes_before,
                    std::uint64_t requests_then);

  // --- What is known of the life ---
  // Nothing goes wrong in it: no weather, and no faults but such as only
  // concern their own process.
  bool quiet() const { return quiet_; }
  // From then on.
  Time calm_from() const { return calm_from_; }
  bool memory_fails() const { return memory_fails_; }

 private:
  // The row of a lock at some time.
  struct Version {
    Time at{};
    bool held = false;
    std::string proof{};  // Empty if there is no row.
    nanoseconds lease{};
    bool names_lease = true;
    const Process* by = nullptr;
  };
  struct Rival {
    Process* process = nullptr;
    BootTime until{};
  };
  struct Lock {
    std::string name;
    std::deque<Version> versions;
    std::vector<WatchedMutex*> owners;
    Time overlap_since = kNever;
    std::map<Time, std::uint64_t> tokens;
    Time forced = -std::chrono::hours(1'000'000);
    std::set<const Process*> forcers;
    std::vector<Rival> rivals;
    nanoseconds longest_ttl{};
  };
  struct Write {
    const WatchedMutex* mutex = nullptr;
    std::uint64_t token = 0;
    Time began{};
    int applied = 0;
    bool failed = false;
  };

  Lock& lock_of(const std::string& name);
  void look_at(WatchedMutex& mutex);
  void changed(WatchedMutex& mutex, bool owned);
  void look_at_owners(Lock& lock);
  nanoseconds allowed_overlap(const WatchedMutex& older) const;
  void look_at_losses();
  void check_loss_in_time(WatchedMutex& mutex);
  bool may_be_unheard(const WatchedMutex& mutex) const;
  void check_cause(const WatchedMutex& mutex, ddbmutex::Loss why);
  bool is_loss_expected(const WatchedMutex& mutex) const;
  void look_at_waits();
  void check_wait(const Call& call);
  bool has_turn(const Call& call) const;
  nanoseconds bound_of(const Call& call, const Version& version) const;
  void check_time(const Call& call);
  void check_cancel(const Call& call, const Result& result);
  void check_code(const Call& call, const Result& result);
  bool is_possible(const Call& call, std::error_code code) const;
  bool is_fast(const WatchedMutex& mutex) const;
  bool prompt() const;
  bool may_be_held_up(const WatchedMutex& mutex) const;
  void check_turn(const Call& call);
  void check_shared(WatchedMutex& mutex, int thread);
  void check_hand_over(const WatchedMutex& mutex);
  void check_owned(const WatchedMutex& mutex);
  void check_longest_hold(const WatchedMutex& mutex);
  void check_closed(const Call& call);
  void check_unlocked(const Call& call, const Result& result);
  void check_patience(const Call& call, const Result& result);
  void check_remaining(const WatchedMutex& mutex, nanoseconds promised);
  nanoseconds scheduling() const;
  void check_free(const Call& call, const Result& result);
  void see_row(Lock& lock, const Process* by);
  void freed_by_force(Lock& lock);
  Time began_to_lock(const WatchedMutex& mutex) const;
  void see_writes(const Applied& applied);
  std::string row_of(const std::string& lock) const;
  std::string key_of(const std::string& lock) const;
  void check_rows();

  const Plan plan_;
  bool quiet_ = false;
  bool memory_fails_ = false;
  bool pauses_ = false;
  // "If the clocks of DynamoDB's servers differ by more than a quarter of a
  // second, it looks like a stop, and short leases end early."
  bool servers_agree_ = true;
  // Some hosts' calendars are so wrong that DynamoDB refuses their signatures.
  bool wrong_calendars_ = false;
  Time calm_from_{};
  std::deque<Lock> locks_;
  std::deque<WatchedTable> tables_;
  std::deque<WatchedMutex> mutexes_;
  std::vector<WatchedMutex*> watched_;  // Those that are not gone.
  std::vector<WatchedMutex*> losses_;   // Of which nobody was told yet.
  std::list<Call> calls_;
  std::vector<Write> writes_;
  Time next_look_at_waits_{};
  std::uint64_t acquisitions_ = 0, acts_ = 0;
  std::vector<std::string> wrongs_;
  std::set<std::string> kinds_;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_JUDGE_HPP
