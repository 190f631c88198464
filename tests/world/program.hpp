// What programs do in a life: they use the whole public API, as their seed
// says.
//
// program.cpp has the frame (threads, tables, mutexes, options), steps.cpp the
// table of what a program may do next.
#ifndef DDBMUTEX_TESTS_WORLD_PROGRAM_HPP
#define DDBMUTEX_TESTS_WORLD_PROGRAM_HPP

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "extras/any_of.hpp"
#include "tests/world/judge.hpp"
#include "tests/world/plan.hpp"
#include "tests/world/random.hpp"
#include "tests/world/world.hpp"

namespace world {

// On the main thread of the program's process, until it ends normally.
void run_program(const Plan& plan, const ProgramPlan& own, Judge& judge);

// What is stored with work that is done.
extern const char kDone[];

// Checks at the end, from a host whose clocks are right, that each lock can be
// taken and released.
void run_final_check(const Plan& plan, Judge& judge);

// Frees the lock by force, as an operator does.
void free_by_force(const Plan& plan, const std::string& lock, Judge& judge);

// How programs reach the table of the locks.
ddbmutex::TableOptions table_options(const Plan& plan);

// A Table that a program has.
struct OwnTable {
  std::shared_ptr<ddbmutex::Table> table;
  WatchedTable* watched = nullptr;
  // A lock on any one of its rows, with these options; made on first use.
  std::shared_ptr<ddbmutex::AnyOf> any{};
  ddbmutex::Options each{};
  bool is_choosy = false;  // Work that is done is not wanted.
};

// A mutex that a program has or had.
struct OwnMutex {
  std::unique_ptr<ddbmutex::DdbMutex> mutex;
  WatchedMutex* watched = nullptr;
  std::shared_ptr<ddbmutex::Table> table;
  WatchedTable* watched_table = nullptr;
  ddbmutex::Options options;  // Without the table.
  // Calls under way, without waits for the lock.  The mutex must not be
  // destroyed before they end.
  int calls = 0;
  int locked = 0;   // As far as the program knows.
  int holder = -1;  // The thread that has locked it.
};
using OwnMutexPtr = std::shared_ptr<OwnMutex>;

// An AnyOf's `accept` takes at most so long.
constexpr std::chrono::milliseconds kSlowAccept{50};

// One step of a thread, or a callback.
struct Turn {
  int thread = 0;
  Random random;
  bool in_callback = false;
  OwnMutexPtr mutex{};
};

class Program {
 public:
  Program(const Plan& plan, const ProgramPlan& own, Judge& judge);
  void run();

 private:
  friend class Steps;

  // --- program.cpp ---
  void run_thread(int thread);
  void unlock_all(int thread);
  void take_step(int thread, int number);
  void finish();
  OwnTable& table(std::size_t number);
  ddbmutex::TableOptions draw_table(Random& random, WatchedTable& watched);
  ddbmutex::Options draw_options(Random& random);
  void draw_times(Random& random, ddbmutex::Options& options);
  void draw_callbacks(Random& random, ddbmutex::Options& options,
                      const OwnMutexPtr& own);
  OwnMutexPtr make_mutex(std::size_t slot);
  OwnMutexPtr adopt(std::unique_ptr<ddbmutex::DdbMutex> mutex,
                    const ddbmutex::Options& options, OwnTable& table,
                    Time asked_for);
  void destroy(const OwnMutexPtr& mutex);
  void destroy_table(std::size_t number);
  void make_any_of(OwnTable& own, const ddbmutex::Options& like);
  bool wants(ddbmutex::AnyOf& any, Random& random,
             const ddbmutex::LockInfo& item);
  bool usable(const OwnMutexPtr& mutex) const {
    return mutex->mutex != nullptr;
  }
  void rest(nanoseconds time);
  void told(ddbmutex::Loss why, OwnMutex* mutex);
  void in_danger(OwnMutex* mutex);
  void react(OwnMutex& mutex, Random random);
  OwnMutexPtr pointer_to(OwnMutex* mutex) const;

  // Calls the library, tells the judge, and catches what the library throws.
  // `make` returns whether the call got the lock, or did what it should.
  using Make = std::function<bool(std::error_code& ec)>;
  Result call(Call call, bool throws, const Make& make);
  // The same for a call of the turn's mutex.
  using MakeOf =
      std::function<bool(ddbmutex::DdbMutex& mutex, std::error_code& ec)>;
  Result call(Turn& turn, Call call, const MakeOf& make);
  void say(const std::string& text) const;
  void check_secrets(const std::string& text) const;

  const Plan& plan_;
  const ProgramPlan& own_;
  Judge& judge_;
  std::vector<OwnTable> tables_;
  std::vector<OwnMutexPtr> slots_;
  // All that ever existed, because callbacks refer to them.
  std::list<OwnMutexPtr> all_;
  std::uint64_t made_ = 0;       // Mutexes and tables so far.
  std::uint64_t callbacks_ = 0;  // Calls of callbacks so far.
  bool makes_anew_ = false;      // In a loop, a mutex for each turn.
  bool forks_ = false;           // It forks now and then.
  bool forked_ = false;          // Its other threads are gone.
  int threads_ = 1;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_PROGRAM_HPP
