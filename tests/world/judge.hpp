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
//   a lease is claimed for as long as its ttl and
//     margin say, from when it was asked for       check_claim()
//   the stored end is 5 s late at the most         check_stored_end()
//   fencing_token() grows                          acquired()
//   it stays the row's while the lock is held      check_token()
//   a guarded write: only the holder's, and once   see_writes(), write_ends()
//   a free lock is taken within a pause between
//     two looks and some round trips, a dead
//     holder's when its lease and 1 % are over     check_wait()
//   try_lock() of a free lock                      check_free()
//   unlock() within request_timeout, try_lock()
//     within twice that, timed calls, close(),
//     destructors                                  check_time()
//   an item that is no lock is left alone          check_odd(), applied()
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
//   on_danger: once, in time, only in danger       look_at_danger()
//   a row that nobody has is not left held         look_at_orphan()
//   release() tells of a loss if there was one     check_release()
//   lock() ends when patience is over              check_patience_ends()
//   callbacks: one at a time                       callback_begins()
//   a table whose key is another: every call says
//     so, and nobody gets in                       check_key()
//   list() tells all                               check_list()
//   Errc::lease_lost: it is not owned any more     check_lost()
//   rows with tokens, and those of shared tables,
//     are not deleted by force                     check_deleted()
//   a Table leaves no thread, request or memory    program_over()
//   in the end each lock is free, and its row is
//     gone if it is not kept                       check_rows()
//   which errors a call may report                 is_possible()
//
// What cannot be checked here: TLS, files and real sockets (http.cpp has tests
// of its own); how many renewals, releases and abandoned requests are in flight
// at once (a life has too few mutexes); `Errc::no_table` and the like, because
// tables do not come and go; what reaches DynamoDB after the end of a life.
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

// How many times the usual latency a message takes at the most, see
// network.cpp.
constexpr int kSlowestLeg = 12;

// What a process's clocks showed when something began.
struct Stopwatch {
  const Process* process = nullptr;
  Time began{};
  BootTime boot{};
  nanoseconds stalled{}, frozen{}, suspended{};

  static Stopwatch start(const Process& process);
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
  bool wrong_key = false;      // That was told of it.
  bool bad_keys = false;       // Its keys may be wrong at times.
  bool slow_keys = false;      // It may take long to get them.
  bool only = false;           // Its process has no other at a time.
  int callbacks = 0;           // That run now.
  Time callback_ended{};       // The last one.
  nanoseconds in_callbacks{};  // For how long they have run, all in all.
  Time callback_began{};
  pthread_t callback_thread{};  // Of the one that runs.
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
  bool hears_dangers = false;
  nanoseconds safe_time{};
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
  std::uint64_t token = 0;  // Of this acquisition; 0: not known yet.
  nanoseconds paused{};     // Of its host, by then.
  int locked = 0;           // How often its program has locked it.
  Time unlocked{};          // When an unlock of it began last.
  Time unlock_ended = -std::chrono::hours(1);
  bool lets_go = false;     // One began since it was owned.
  bool forced = false;      // Somebody has freed it by force since,
  bool unsure = false;      // or while it was taken: `proof` may be another's.
  Time unfinished_until{};  // A release may go on in the background.
  bool mixed = false;       // One did when it was owned last.
  int told = 0;             // How often on_lost was called since.
  bool lost = false;        // Nobody was told yet.
  Stopwatch lost_since;
  Time cancel_began = -nanoseconds(1);
  Time cancel_ended{};
  Time forgotten = kNever;
  bool was_closed = false;  // It had the lock when its table was closed.
  bool destroyed = false;   // Its destructor has returned.
  int callbacks = 0;        // Of it, that run.
  bool to_be_told = false;  // It was lost before an unlock of it began.
  Time last_owned{};
  Stopwatch idle;  // Since it is owned although no thread has locked it.
  // The lease is in danger: since the boot clock showed that; told already.
  BootTime danger_since = BootTime::max();
  bool danger_told = false;
  // What Options::alive has said last, unless it was renewed by hand since.
  bool said_dead = false;
  Time asked{};
};

// A call of a program that is under way.
struct Call {
  std::string what;
  WatchedMutex* mutex = nullptr;  // May be null.
  WatchedTable* table = nullptr;
  Stopwatch since;
  // The longest time that it may take; max(): not known.
  nanoseconds limit = nanoseconds::max();
  // What it may take instead if its time is over when it looks at a clock.
  nanoseconds of_one_try{};
  bool gets_lock = false;        // One of those that lock.
  bool waits = false;            // And waits for it, for ever or for long.
  bool open_ended = false;       // When its time is up is not known exactly.
  bool ties = false;             // What it got is not handed over.
  bool renews = false;           // By hand.
  nanoseconds ensures{};         // So much remains if it succeeds.
  bool lets_go = false;          // One of those that unlock.
  bool after_callbacks = false;  // It waits for those that run.
  bool for_ever = false;         // lock()
  bool any_of = false;           // Of AnyOf,
  bool is_choosy = false;        // which wants no work that is done.
  nanoseconds request_timeout{}, longest_poll{};  // Of that.
  bool in_callback = false;
  bool again = false;           // The same thread has locked it.
  bool has_condition = false;   // A guarded write with a condition of its own.
  bool bad_option = false;      // It is asked for what is no option.
  bool needs_key = false;       // It fails if the table has another key.
  bool clock_may_fail = false;  // The program's own, which it reads.
  int tries = 0;                // Of AnyOf, that may come on top of its time.
  // What list() has told: how often each name.
  const std::map<std::string, int>* listed = nullptr;
  std::chrono::nanoseconds callbacks{};  // Of the table, when it began.
  Time free_since = kNever;              // The lock's row, when it began.
  bool alone = false;  // No other call of the mutex was under way.
  bool held = false;   // A thread of its program had the lock then.
  bool owned = false;  // And it was not lost, but claimed until
  BootTime claim_end{};
  bool anothers = false;       // The lock's row was another's.
  bool key_is_known = false;   // That was told of the table to be wrong.
  std::uint64_t requests = 0;  // That its process had sent then.
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
  // And does nothing else.
  void is_operator(const std::string& lock);
  void closing(WatchedTable& table);
  void callback_begins(WatchedMutex& mutex);
  void callback_ends(WatchedMutex& mutex);
  void lost(WatchedMutex& mutex, ddbmutex::Loss why);
  void in_danger(WatchedMutex& mutex);
  void asked(WatchedMutex& mutex, bool alive);
  // Its destructor has returned.
  void destroyed(WatchedMutex& mutex);

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
  // No thread stops between two instructions, so what a call does it does when
  // it begins.
  bool prompt() const;

 private:
  // When a request was, by the clock of its host and in truth.
  struct Sent {
    BootTime boot = BootTime::min();
    Time at{};
  };
  // The row of a lock at some time.
  struct Version {
    Time at{};
    bool held = false;
    bool exists = false;
    bool done = false;    // What is stored says so.
    std::string proof{};  // Empty if there is no row.
    nanoseconds lease{};
    bool names_lease = true;
    const Process* by = nullptr;
    Sent sent{};            // The request that wrote it.
    nanoseconds end{};      // As it is stored, since 1970; 0: it is not.
    std::uint64_t token{};  // 0: it has none.
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
    std::set<const Process*> forcers, operators;
    std::vector<Rival> rivals;
    nanoseconds longest_ttl{};
    // When the last answer arrived that each process got to a request for it.
    std::map<const Process*, Time> answered;
    // Since its row is held although no mutex of a living process has it.
    Stopwatch orphaned;
    // The last request of each process that has changed the row.
    std::map<const Process*, Sent> sent;
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
  std::string proof_of(const WatchedMutex& mutex);
  void changed(WatchedMutex& mutex, bool owned);
  void look_at_owners(Lock& lock);
  nanoseconds allowed_overlap(const WatchedMutex& owner) const;
  bool has_noticed(const WatchedMutex& mutex) const;
  void look_at_losses();
  void check_loss_in_time(WatchedMutex& mutex);
  bool may_be_unheard(const WatchedMutex& mutex) const;
  void check_cause(const WatchedMutex& mutex, ddbmutex::Loss why);
  Time taken_away(const WatchedMutex& mutex) const;
  bool copies_deceive() const;
  bool is_loss_expected(const WatchedMutex& mutex) const;
  void look_at_waits();
  void check_wait(const Call& call);
  bool has_turn(const Call& call) const;
  nanoseconds bound_of(const Call& call, const Version& version,
                       Time since) const;
  void check_time(const Call& call);
  void check_cancel(const Call& call, const Result& result);
  void check_code(const Call& call, const Result& result);
  bool is_possible(const Call& call, std::error_code code) const;
  bool is_fast(const WatchedMutex& mutex) const;
  bool may_be_held_up(const WatchedMutex& mutex) const;
  void check_turn(const Call& call);
  void check_shared(WatchedMutex& mutex, int thread);
  void check_hand_over(const WatchedMutex& mutex);
  void check_owned(const WatchedMutex& mutex);
  void check_locked_again(const Call& call, const Result& result);
  void check_idle(WatchedMutex& mutex);
  void look_at_danger(WatchedMutex& mutex, nanoseconds left);
  void check_alive(WatchedMutex& mutex, BootTime claim_end);
  static bool is_in_callback(const WatchedTable& table);
  void check_longest_hold(const WatchedMutex& mutex);
  void check_closed(const Call& call, const Result& result);
  void look_at_orphan(Lock& lock);
  bool may_be_orphaned(const Lock& lock) const;
  bool may_have(const WatchedMutex& mutex, const Lock& lock) const;
  bool surely_answered(const WatchedMutex& mutex) const;
  void check_patience_ends(const Call& call);
  void check_any_of(const Call& call, const Result& result);
  void check_any_of_wait(const Call& call);
  bool could_be_had(const Lock& lock, const Call& call, Time since) const;
  void check_unlocked(const Call& call, const Result& result);
  void check_release(const Call& call, const Result& result);
  void check_patience(const Call& call, const Result& result);
  void check_key(const Call& call, const Result& result);
  void check_list(const Call& call, const Result& result);
  void check_lost(const Call& call, const Result& result);
  void check_deleted(const Lock& lock, const Version& version);
  nanoseconds of_tries(const Call& call) const;
  nanoseconds of_a_page(const Host& host) const;
  nanoseconds of_a_pass(const Call& call) const;
  void check_remaining(const WatchedMutex& mutex, nanoseconds promised);
  nanoseconds scheduling() const;
  void check_free(const Call& call, const Result& result);
  static bool is_odd(const Call& call);
  void check_odd(const Call& call, const Result& result);
  void see_row(Lock& lock, const Request& request);
  Version version_of(const Lock& lock, const Request& request) const;
  void check_stored_end(const Lock& lock, const Version& version);
  void check_claim(const WatchedMutex& mutex, BootTime end);
  void check_claim_after_pause(const WatchedMutex& mutex, BootTime end);
  void check_new_claim(const WatchedMutex& mutex, BootTime end);
  void check_token(const Lock& lock, const WatchedMutex& mutex);
  bool tells_end() const;
  void freed_by_force(Lock& lock);
  Time began_to_lock(const WatchedMutex& mutex) const;
  void see_writes(const Applied& applied);
  std::string row_of(const std::string& lock) const;
  std::string key_of(const std::string& lock) const;
  void check_rows();

  const Plan plan_;
  bool quiet_ = false;
  bool mild_ = false;        // Some requests fail, at once.
  bool peaceful_ = false;    // The same, but for want of memory.
  bool contention_ = false;  // Nothing but TransactionConflicts.
  bool memory_fails_ = false;
  bool pauses_ = false;
  // "If the clocks of DynamoDB's servers differ by more than a quarter of a
  // second, it looks like a stop, and short leases end early."
  bool servers_agree_ = true;
  // Some hosts' calendars are so wrong that DynamoDB refuses their signatures.
  bool wrong_calendars_ = false;
  bool others_ = false;  // Clients of another library take part.
  Time calm_from_{};
  std::deque<Lock> locks_;
  std::deque<WatchedTable> tables_;
  std::deque<WatchedMutex> mutexes_;
  std::vector<WatchedMutex*> watched_;  // Those that are not gone.
  std::vector<WatchedMutex*> losses_;   // Of which nobody was told yet.
  std::list<Call> calls_;
  std::vector<Write> writes_;
  Time next_look_at_waits_{};
  std::set<const Process*> over_;    // Programs that have ended normally.
  std::set<const Process*> rivals_;  // That have had a lock.
  std::uint64_t acquisitions_ = 0, acts_ = 0;
  std::vector<std::string> wrongs_;
  std::set<std::string> kinds_;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_JUDGE_HPP
