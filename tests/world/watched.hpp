// What the judge watches: the tables, mutexes and calls of programs.
#ifndef DDBMUTEX_TESTS_WORLD_WATCHED_HPP
#define DDBMUTEX_TESTS_WORLD_WATCHED_HPP

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <system_error>

#include "ddbmutex.hpp"
#include "tests/world/world.hpp"

namespace world {

// What a process's clocks showed when something began.
struct Stopwatch {
  const Process* process = nullptr;
  Time began{};
  BootTime boot{};
  nanoseconds stalled{}, frozen{};

  static Stopwatch start(const Process& process);
  // By the boot clock, less what the process was kept from running.
  nanoseconds run() const;
  // How long it was kept from running.
  nanoseconds kept() const;
  bool was_frozen() const;
};

// A Table of a program, as the judge knows it.
struct WatchedTable {
  Process* process = nullptr;
  bool closed = false;     // close() was called.
  bool wrong_key = false;  // A call has reported that its key is wrong.
  bool bad_keys = false;   // Its credentials may be wrong at times.
  bool slow_keys = false;  // It may take long to get them.
  bool only = false;       // Its process has one table at a time.
  nanoseconds patience{};  // TableOptions::patience.
  Time asked_for_key{};    // When exists() last returned.
  bool has_good_keys() const { return !bad_keys && !slow_keys; }

  // Its callbacks: how many run now, how long they have run in all, and the
  // begin, end and thread of the last one.
  int callbacks = 0;
  nanoseconds in_callbacks{};
  Time callback_began{};
  Time callback_ended{};
  pthread_t callback_thread{};
};

// A DdbMutex of a program.
struct WatchedMutex {
  // --- What its program says when it makes it ---
  Process* process = nullptr;
  WatchedTable* table = nullptr;
  const ddbmutex::DdbMutex* mutex = nullptr;
  std::string lock;  // "lock-0"
  std::chrono::milliseconds ttl{}, request_timeout{}, patience{};
  std::chrono::milliseconds longest_poll{}, renew_after{};
  bool hears_losses = false;
  bool hears_dangers = false;
  nanoseconds safe_time{};
  // How long it is held if nobody calls renew(); max(): for ever.
  nanoseconds longest_hold = nanoseconds::max();
  bool is_renewed = false;  // For as long as it is held.
  bool keep_row = false;
  Time asked_for = kNever;  // When AnyOf was asked for it, if it was.

  // --- Its life ---
  bool gone = false;  // Its destructor was called, or its process is dead.
  Time forgotten = kNever;  // When that happened.
  bool destroyed = false;   // Its destructor has returned.
  bool was_closed = false;  // It owned the lock when its table was closed.
  // When its table was closed, it had had the lock, and had not unlocked it.
  bool not_unlocked = false;
  int calls = 0;            // How many calls of it are under way.
  int callbacks = 0;        // How many callbacks of it run.
  Time cancel_began = -nanoseconds(1);
  Time cancel_ended{};

  // --- The lease ---
  bool owned = false;  // When the judge looked last.
  Time owned_since = kNever;
  Stopwatch owned_clock;    // Started then.
  nanoseconds paused{};     // How long its host had been paused at owned_since.
  BootTime claim_end{};     // When the judge saw it owned last.
  std::string proof;        // The row's proof at owned_since.
  std::uint64_t token = 0;  // Of this acquisition; 0: not known yet.
  bool forced = false;  // The row was freed by force since it was asked for.
  bool unsure = false;  // So it was before owned_since: `proof` may be of
                        // another mutex.
  // Its leases before this one whose losses may not have been told yet.
  struct Earlier {
    std::string proof;
    bool unsure = false;
    Time unlocked{};  // When the unlock() ended.
  };
  std::deque<Earlier> earlier;
  bool renewed_by_hand = false;
  bool stopped_renewing = false;
  // The lease ends then at the latest, as it is not renewed.
  BootTime ends_by = BootTime::max();
  bool data_unsure = false;  // Changes of it may have been stored or not.
  Stopwatch idle;  // Runs while it is owned although no thread has locked it.

  // --- Threads that share it ---
  int locked = 0;   // How often its program has locked it.
  int holder = -1;  // The thread that locked it last.

  // --- Letting go ---
  Time unlocked{};  // When an unlock of it began last.
  Time unlock_ended = -std::chrono::hours(1);
  bool lets_go = false;     // An unlock began after owned_since.
  Time unfinished_until{};  // A release may go on in the background until then.
  bool mixed = false;       // One might at owned_since.

  // --- What it was told ---
  bool lost = false;  // It was lost, and nobody was told yet.
  Stopwatch lost_since;
  int told = 0;             // How often on_lost was called in this lease.
  bool to_be_told = false;  // It was lost before an unlock of it began.
  // The boot time from which the lease is in danger; max(): it is in none.
  BootTime danger_since = BootTime::max();
  bool danger_told = false;
};

// A call of a program that is under way.
struct Call {
  // --- What the program says of it ---
  std::string what;
  WatchedMutex* mutex = nullptr;  // May be null.
  WatchedTable* table = nullptr;
  // How long it may take; max(): not known.
  nanoseconds limit = nanoseconds::max();
  // How much longer, if its time is over when it looks at a clock.
  nanoseconds of_one_try{};
  int tries = 0;                 // How many such tries AnyOf may add.
  bool open_ended = false;       // The end of its time is not known exactly.
  bool after_callbacks = false;  // It waits for callbacks that run.
  bool gets_lock = false;        // It locks the mutex.
  bool waits = false;            // It waits for the lock.
  bool for_ever = false;         // It waits for ever, as lock() does.
  bool lets_go = false;          // It unlocks the mutex.
  bool renews = false;           // It renews the lease.
  bool changes = false;          // It changes what is stored.
  bool stops_renewing = false;   // It is stop_renewing().
  nanoseconds ensures{};         // So much remains if it succeeds.
  bool any_of = false;           // It is a call of AnyOf,
  bool is_choosy = false;        // which wants no work that is done.
  nanoseconds request_timeout{}, longest_poll{};  // Of that AnyOf.
  bool in_callback = false;
  bool again = false;          // Its thread has locked the mutex already.
  bool has_condition = false;  // A guarded write with a condition of its own.
  bool bad_option = false;     // Errc::bad_option is a right answer.
  bool needs_key = false;      // It fails if the table has another key.
  // What list() has told: how often each name.
  const std::map<std::string, int>* listed = nullptr;

  // --- What the judge noted when it began ---
  Stopwatch since;
  nanoseconds callbacks{};     // How long its table's callbacks had run.
  std::uint64_t requests = 0;  // How many its process had sent.
  bool key_is_known = false;   // The table's key was known to be wrong.
  bool met_others = false;     // Another call of its process was under way.
  Time free_since = kNever;    // When the lock's row was freed, if it was free.
  bool anothers = false;       // The lock's row was another's.
  bool alone = false;          // No other call of the mutex was under way.
  bool held = false;           // A thread of its program had locked the mutex.
  bool owned = false;          // The mutex owned the lock, and claimed it until
  BootTime claim_end{};        // then.
};

// What came of a call.
struct Result {
  std::error_code code;
  std::string text;
  bool got = false;  // The lock.
};

// --- For people ---

std::chrono::milliseconds ms(nanoseconds time);
std::string time_text(Time time);       // "12.345 s"
std::string ms_text(nanoseconds time);  // "12345 ms"
std::string whose(const WatchedMutex& mutex);
std::string text_of(const Call& call);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_WATCHED_HPP
