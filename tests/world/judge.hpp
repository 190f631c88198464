// The judge of a life: it alone knows the world's true time.  Programs tell it
// what they do, the network tells it what reached the tables, and at each step
// of the world it asks every mutex whether it owns its lock.
//
// The table names each check, by file.  The comment at a check quotes the
// sentence of ddbmutex.hpp, README.md or ddbmutex/README.md that promises it.
//
// judge.cpp: who owns a lock
//   no two claims overlap                        look_at_owners()
//   a lost lock is not owned again, and none is  begins_to_own()
//     in a table with another key
//   fencing_token() is not 0, and grows          acquired(), check_growth()
//   a Table leaves no thread, request or memory  program_over()
//     behind
//
// judge_leases.cpp: how long a holder counts on its lease
//   a claim is as long as ttl and margin say,    check_claim(),
//     counted from when the request was sent     check_new_claim(),
//                                                check_claim_after_pause()
//   the stored end is at most 5 s late           check_stored_end()
//   a dead holder's lease is waited out          check_takeover()
//   a holder learns with its next renewal that   check_forced()
//     its lock was freed by force
//   the row's token stays while the lock is      check_token()
//     held
//
// judge_losses.cpp: callbacks
//   one at a time, none of a destroyed mutex; a  callback_begins(),
//     destructor waits for them                  destroyed()
//   a loss is told once, in time, and only if    lost(), check_loss(),
//     the lock is lost                           check_loss_in_time()
//   the cause that is told is true               check_cause(),
//                                                check_expired()
//   nothing is lost where nothing goes wrong     check_loss()
//   in_danger() is true from safe_time on        look_at_danger()
//   on_danger: once, in time, only in danger     look_at_danger(), in_danger()
//
// judge_rows.cpp: what is stored
//   an item that is no lock is left alone        applied()
//   rows with tokens, and those of shared        check_deleted()
//     tables, are not deleted by force
//   data() is what is stored, and empty while    told_data()
//     the mutex is not locked
//   a row that nobody has is not left held       look_at_orphan()
//   in the end each lock is free, its row is     check_rows()
//     gone if it is not kept, and a table with
//     another key is empty
//
// judge_writes.cpp: guarded writes
//   only the holder's are made, once, and        see_writes(), write_ends()
//     reported as what they were
//
// judge_sharing.cpp: threads that share a mutex, limits of a hold
//   they exclude each other, first come, first   check_shared(), check_turn()
//     served
//   when lock() returns, the lock is owned       check_owned()
//   no call gets the lock of a mutex that is     check_got()
//     gone
//   no lock is owned that nobody has locked      check_idle()
//   max_hold, auto_renew, stop_renewing()        check_longest_hold()
//
// judge_calls.cpp: calls
//   unlock() within request_timeout, try_lock()  check_time()
//     within twice that, timed calls, close(),
//     destructors
//   cancel(), close() and destructors end waits  check_cancel()
//   every call reports a table with another      check_key()
//     key, and asks it no more
//   list_locks() tells each lock, once           check_list()
//   after close() no mutex holds a lock, and it  check_closed()
//     says which rows it could not release
//   an item that is no lock is never taken, and  check_odd()
//     is reported
//   after Errc::lease_lost it is not owned       check_lost()
//   after unlock() the row is free, nothing is   check_unlocked()
//     owned, and there is no token
//   release() reports a loss, and only a loss    check_release()
//   ensure(), require(): so much remains         check_remaining()
//
// judge_waits.cpp: waits
//   a free lock is taken within a pause between  check_wait(), check_free()
//     two looks and some round trips, a dead
//     holder's when its lease and 1 % are over
//   patience: no call gives up early, or goes    check_patience(),
//     on when it is over                         check_patience_ends()
//   AnyOf gets an item that could be had         check_any_of(),
//                                                check_any_of_wait()
//
// judge_turns.cpp: turns between hosts
//   no host starves: each has at least half of   check_shares(),
//     an even share of the turns, and no wait    check_longest_wait()
//     lasts for too many turns of others
//   a waiter tells the holder that it saw, and   see_word()
//     no other, and changes no version
//   once for each turn that it has missed        check_word()
//   the next holder's row does not say so        see_row()
//   who has a lock alone sends two requests a    check_requests()
//     turn
//   a turn is left to others after a word only,  left_until()
//     and for two times longest_poll at most
//
// judge_errors.cpp
//   which errors a call may report               check_code()
//
// program.cpp, steps.cpp, life.cpp: what programs see
//   no exception of another type                 Program::call()
//   no secret in a text                          Program::check_secrets()
//   data() is what it was changed to             Steps::check_data()
//   AnyOf gives only what is wanted              Steps::work()
//   calls from `accept` are refused              Program::wants()
//   in the end each lock can be taken and        run_final_check()
//     released, or a wrong key is reported
//   every wait ends, and no life does too much   Life::complain_of()
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
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/world/network.hpp"
#include "tests/world/plan.hpp"
#include "tests/world/watched.hpp"
#include "tests/world/world.hpp"

namespace world {

// The slowest message takes so many times the usual latency (network.cpp).
constexpr int kSlowestLeg = 12;

// The longest that a request and its answer usually take.
nanoseconds round_trip(const Host& host);
bool is_enough_for_an_answer(const Host& host, nanoseconds request_timeout);

// Removes it, if it is there.
void take_out(std::vector<WatchedMutex*>& list, const WatchedMutex& mutex);

class Judge {
 public:
  explicit Judge(const Plan& plan);

  // --- What the world tells ---
  void look();
  void applied(const Applied& applied);
  void end_of_life();
  std::uint64_t acquisitions() const { return acquisitions_; }

  // Reports it.  Only the first of each kind in a life counts.
  void wrong(const std::string& kind, const std::string& text);
  const std::vector<std::string>& wrongs() const { return wrongs_; }

  // --- What clients of other libraries tell ---
  // `sent`: when the request for the lock was sent.
  void rival_acquired(const std::string& lock, Process& process, BootTime until,
                      Time sent = kNever);
  void rival_released(const std::string& lock, Process& process);

  // --- What programs tell ---
  WatchedTable& watch_table();
  // The result stays where it is until the end of the life.  `asked_for`: when
  // the call of AnyOf began that made and locked the mutex, if one did.
  WatchedMutex& watch(const ddbmutex::DdbMutex& mutex,
                      const ddbmutex::Options& options, WatchedTable& table,
                      Time asked_for = kNever);
  // Called before its destructor.
  void forget(WatchedMutex& mutex);

  // Around each call of the library.
  using CallPlace = std::list<Call>::iterator;
  CallPlace begins(Call call);
  void ends(CallPlace call, const Result& result);

  // That thread of the program has the lock, and its token.
  void acquired(WatchedMutex& mutex, std::uint64_t token, int thread);
  // The program has asked owns_lock(), and does what only the holder may do.
  void act();
  void cancel_begins(WatchedMutex& mutex);
  void cancel_ends(WatchedMutex& mutex);
  // This process may free the lock by force from now on.
  void may_force(const std::string& lock);
  // The same, and it does nothing else with the lock.
  void is_operator(const std::string& lock);
  void closing(WatchedTable& table);
  void callback_begins(WatchedMutex& mutex);
  void callback_ends(WatchedMutex& mutex);
  void lost(WatchedMutex& mutex, ddbmutex::Loss why);
  void in_danger(WatchedMutex& mutex);
  void told_data(const WatchedMutex& mutex,
                 const std::optional<std::string>& data);
  // Called when its destructor has returned.
  void destroyed(WatchedMutex& mutex);

  // Returns the number of the guarded write.
  int write_begins(const WatchedMutex& mutex, std::uint64_t token);
  void write_ends(int number, const Result& result);

  // This process has become a forked child.
  void forked(Process& parent, Process& child);
  // The program has ended, and the time is over in which its tables finish what
  // they have begun.
  void process_over(const Process& process) { over_.insert(&process); }
  // Then, but not of a forked child: nothing may be left of it.
  void program_over(Process& process, std::int64_t bytes_before,
                    std::uint64_t requests_then);

  // No thread stops between two instructions, so what a call does, it does when
  // it begins.
  bool prompt() const;

 private:
  // How many of a row's newest versions are remembered.
  static constexpr std::size_t kVersionsKept = 500;
  // See scheduling().
  static constexpr nanoseconds kScheduling = std::chrono::milliseconds(20);

  // When a request was sent, by its host's boot clock and in true time.
  struct Sent {
    BootTime boot = BootTime::min();
    Time at{};
  };
  // The row of a lock at some time.
  struct Version {
    Time at{};
    bool after_slow_answer = false;  // See Request.
    bool held = false;
    bool exists = false;
    std::string data{};   // As base64; empty if there is none.
    bool done = false;    // The data says that the work is done.
    std::string proof{};  // Empty if there is no row.
    nanoseconds lease{};
    bool names_lease = true;
    const Process* by = nullptr;
    Sent sent{};              // The request that wrote it.
    nanoseconds end{};        // The stored end, since 1970; 0: none is stored.
    std::uint64_t token{};    // 0: it has none.
    bool waited_for = false;  // It says that a host waits.
  };
  // A Table leaves the next turn to others.
  struct Left {
    Stopwatch since;
    Time until{};  // If it is not kept from running.
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
    // When each process last got an answer to a request for this lock.
    std::map<const Process*, Time> answered;
    // Runs while the row is held although no mutex of a living process has it.
    Stopwatch orphaned;
    // The last request of each process that has changed the row.
    std::map<const Process*, Sent> sent;
    std::map<const WatchedTable*, Left> left;
    // The waiters' words: who has told which holder.
    std::set<std::pair<const Process*, std::string>> told;
    // How many each process has sent since its last other request.
    std::map<const Process*, int> words;
  };
  // A call of a program in a loop that has got the lock.
  struct Turn {
    const Process* process = nullptr;
    Time asked{}, got{};
    std::uint64_t requests = 0;  // That the process had sent by then.
  };
  struct Write {
    const WatchedMutex* mutex = nullptr;
    std::uint64_t token = 0;
    Time began{};
    int applied = 0;
    bool failed = false;
  };

  // --- judge.cpp ---
  void expect(const Plan& plan);
  nanoseconds scheduling() const;
  Lock& lock_of(const std::string& name);
  void look_at(WatchedMutex& mutex);
  std::string proof_of(const WatchedMutex& mutex);
  void changed(WatchedMutex& mutex, bool owned);
  void begins_to_own(const Lock& lock, WatchedMutex& mutex);
  void look_at_owners(Lock& lock);
  Time began_to_lock(const WatchedMutex& mutex) const;
  void check_growth(Lock& lock, const WatchedMutex& mutex);
  static void rival_gone(Lock& lock, const Process& process);

  // --- judge_leases.cpp ---
  void check_claim(const WatchedMutex& mutex, BootTime end);
  bool has_noticed(const WatchedMutex& mutex) const;
  nanoseconds allowed_overlap(const WatchedMutex& owner) const;
  void check_claim_after_pause(const WatchedMutex& mutex, BootTime end);
  void check_new_claim(const WatchedMutex& mutex, BootTime end);
  bool tells_end() const;
  void check_stored_end(const Lock& lock, const Version& version);
  void check_takeover(const Lock& lock, const Version& version);
  void check_forced(const WatchedMutex& mutex);
  void check_token(const Lock& lock, const WatchedMutex& mutex);

  // --- judge_losses.cpp ---
  static bool is_in_callback(const WatchedTable& table);
  bool may_be_unheard(const WatchedMutex& mutex) const;
  bool may_be_old_news(const WatchedMutex& mutex) const;
  void note_earlier(WatchedMutex& mutex);
  bool is_told_of(const WatchedMutex::Earlier& lease) const;
  bool is_of_an_earlier(WatchedMutex& mutex);
  void check_loss(const WatchedMutex& mutex, ddbmutex::Loss why);
  void forget_loss(WatchedMutex& mutex);
  void check_loss_in_time(const WatchedMutex& mutex, nanoseconds within,
                          const std::string& kind);
  void look_at_losses();
  void check_cause(const WatchedMutex& mutex, ddbmutex::Loss why);
  void check_expired(const WatchedMutex& mutex);
  bool copies_deceive() const;
  Time when_taken_away(const WatchedMutex& mutex,
                       const std::string& proof) const;
  bool is_loss_expected(const WatchedMutex& mutex) const;
  void look_at_danger(WatchedMutex& mutex, nanoseconds left);

  // --- judge_rows.cpp ---
  std::string key_of(const std::string& lock) const;
  std::string row_of(const std::string& lock) const;
  bool is_about(const Request& request, const Lock& lock) const;
  Version version_of(const Lock& lock, const Request& request) const;
  void see_row(Lock& lock, const Applied& applied);
  void check_deleted(const Lock& lock, const Version& version);
  void freed_by_force(Lock& lock);
  bool may_have(const WatchedMutex& mutex, const Lock& lock) const;
  bool may_be_orphaned(const Lock& lock) const;
  void look_at_orphan(Lock& lock);
  void check_rows();

  // --- judge_writes.cpp ---
  bool row_came_back(const Write& write);
  bool is_of_a_later(const Write& write);
  void see_writes(const Applied& applied);

  // --- judge_sharing.cpp ---
  void check_turn(const Call& call);
  void check_shared(WatchedMutex& mutex, int thread);
  void check_owned(const WatchedMutex& mutex);
  void check_got(const Call& call, const Result& result);
  void check_idle(WatchedMutex& mutex);
  void check_longest_hold(const WatchedMutex& mutex);

  // --- judge_calls.cpp ---
  void mutex_call_begins(Call& call, WatchedMutex& mutex);
  void mutex_call_ends(const Call& call, WatchedMutex& mutex,
                       const Result& result);
  void check_time(const Call& call);
  nanoseconds of_tries(const Call& call) const;
  void check_cancel(const Call& call, const Result& result);
  void check_key(const Call& call, const Result& result);
  void check_list(const Call& call, const Result& result);
  void check_closed(const Call& call, const Result& result);
  void check_odd(const Call& call, const Result& result);
  static bool is_odd(const Call& call);
  void check_lost(const Call& call, const Result& result);
  void check_unlocked(const Call& call, const Result& result);
  void check_release(const Call& call, const Result& result);
  void check_remaining(const WatchedMutex& mutex, nanoseconds promised);

  // --- judge_waits.cpp ---
  bool is_fast(const WatchedMutex& mutex) const;
  bool is_answered_in_time(const WatchedMutex& mutex) const;
  bool surely_answered(const WatchedMutex& mutex) const;
  void look_at_waits();
  bool has_turn(const Call& call) const;
  nanoseconds bound_of(const Call& call, const Version& version,
                       Time since) const;
  void check_wait(const Call& call);
  void check_free(const Call& call, const Result& result);
  void check_patience_ends(const Call& call);
  void check_patience(const Call& call, const Result& result);
  bool could_be_had(const Lock& lock, const Call& call, Time since) const;
  const Lock* free_item(const Call& call, Time since) const;
  nanoseconds of_a_page(const Host& host) const;
  nanoseconds of_a_pass(const Call& call) const;
  void check_any_of(const Call& call, const Result& result);
  void check_any_of_wait(const Call& call);

  // --- judge_turns.cpp ---
  static bool is_word(const Request& request);
  void see_word(Lock& lock, const Applied& applied);
  void check_word(Lock& lock, const Process& process, const std::string& uuid);
  void leave_turn(Lock& lock, const Version& freed, const Applied& applied);
  Time left_until(const Lock& lock, const Call& call) const;
  void take_turn(const Call& call);
  void check_requests(const Turn& turn);
  Time all_loop_from() const;
  void check_shares();
  void check_longest_wait(Time from, nanoseconds round);

  // --- judge_errors.cpp ---
  void check_code(const Call& call, const Result& result);
  bool is_possible(const Call& call, std::error_code code) const;
  bool is_being_unlocked(const WatchedMutex* mutex) const;
  bool is_possible_of_system(const Call& call, std::error_code code) const;
  bool is_possible_of_keys(const Call& call, ddbmutex::Errc error) const;
  bool is_possible_of_row(const Call& call, ddbmutex::Errc error) const;
  bool is_possible_of_request(const Call& call, ddbmutex::Errc error) const;
  static bool is_possible_of_mutex(const Call& call, ddbmutex::Errc error);
  bool may_have_bad_keys(const Call& call) const;

  const Plan plan_;
  // Nothing goes wrong: no weather, and only faults that concern nobody but
  // their own process.
  bool quiet_ = false;
  bool mild_ = false;        // All that goes wrong: some requests fail at once.
  bool peaceful_ = false;    // Nothing goes wrong, but memory may run out.
  bool contention_ = false;  // Nothing but TransactionConflicts.
  bool memory_fails_ = false;
  bool pauses_ = false;
  // "If the clocks of DynamoDB's servers differ by more than a quarter of a
  // second, it looks like a stop, and short leases end early."
  bool servers_agree_ = true;
  // Some hosts' calendars are so wrong that DynamoDB refuses their signatures.
  bool wrong_calendars_ = false;
  bool others_ = false;  // Clients of another library take part.
  Time calm_from_{};     // From then on nothing goes wrong.
  std::deque<Lock> locks_;
  std::deque<WatchedTable> tables_;
  std::deque<WatchedMutex> mutexes_;
  std::vector<WatchedMutex*> watched_;  // Those that are not gone.
  std::vector<WatchedMutex*> losses_;   // Lost, and nobody was told yet.
  std::list<Call> calls_;
  std::vector<Write> writes_;
  std::vector<Turn> turns_;  // Of programs in loops.
  Time next_look_at_waits_{};
  std::set<const Process*> over_;    // Programs that have ended normally.
  std::set<const Process*> rivals_;  // Those that have had a lock.
  // Programs whose AnyOf may give up a take so soon that its release overtakes
  // it.
  std::set<const Process*> hasty_;
  std::uint64_t acquisitions_ = 0;
  std::vector<std::string> wrongs_;
  std::set<std::string> kinds_;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_JUDGE_HPP
