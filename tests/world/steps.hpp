// What a program may do next, and how often it does.
#ifndef DDBMUTEX_TESTS_WORLD_STEPS_HPP
#define DDBMUTEX_TESTS_WORLD_STEPS_HPP

#include <chrono>
#include <string>

#include "tests/world/program.hpp"

namespace world {

struct Steps {
  // One of the steps, of the mutex of that turn.
  static void take(Program& program, Turn& turn);
  // What a callback does.
  static void react(Program& program, Turn& turn);

  static void unlock(Program& program, Turn& turn);

 private:
  using Run = void (*)(Program& program, Turn& turn);
  struct Step {
    int weight;
    Run run;
  };
  template <std::size_t size>
  static void take_one(const Step (&steps)[size], Program& program, Turn& turn);

  // --- Locking ---
  static void hold(Program& program, Turn& turn);
  static bool lock_somehow(Program& program, Turn& turn, bool for_ever);
  static bool got(Program& program, Turn& turn, const Result& result);
  static void lock(Program& program, Turn& turn);
  static void try_lock(Program& program, Turn& turn);
  static void try_lock_for(Program& program, Turn& turn);
  static void try_lock_for_ever(Program& program, Turn& turn);
  static void try_lock_until(Program& program, Turn& turn);
  static void try_lock_until_wall(Program& program, Turn& turn);
  static void try_lock_until_odd(Program& program, Turn& turn);
  static void try_lock_past_lease(Program& program, Turn& turn);
  static void any_of(Program& program, Turn& turn);
  static void take_any_of(Program& program, Turn& turn, const OwnTable& table,
                          std::unique_ptr<ddbmutex::DdbMutex>& any);
  static void work(Program& program, Turn& turn, bool is_choosy);

  // --- While it is held ---
  static void while_held(Program& program, Turn& turn);
  static void act(Program& program, Turn& turn);
  static void stay(Program& program, Turn& turn);
  static void renew(Program& program, Turn& turn);
  static void renew_changes(Program& program, Turn& turn);
  static void check_data(Program& program, Turn& turn,
                         const ddbmutex::Changes& changes, Time began);
  static void ensure(Program& program, Turn& turn);
  static void require(Program& program, Turn& turn);
  static void lock_again(Program& program, Turn& turn);
  static void write(Program& program, Turn& turn);
  static void write_oneself(Program& program, Turn& turn);

  // --- Letting go ---
  static void let_go(Program& program, Turn& turn);
  static void release(Program& program, Turn& turn);
  static void release_changes(Program& program, Turn& turn);
  static void leave_locked(Program& program, Turn& turn);
  static void destroy(Program& program, Turn& turn);
  static void unlock_another(Program& program, Turn& turn);

  // --- Anytime ---
  static void rest(Program& program, Turn& turn);
  static void ask(Program& program, Turn& turn);
  static void cancel(Program& program, Turn& turn);
  static void inspect(Program& program, Turn& turn);
  static void list(Program& program, Turn& turn);
  static void exists(Program& program, Turn& turn);
  static void force_unlock(Program& program, Turn& turn);
  static void close(Program& program, Turn& turn);
  static void fork(Program& program, Turn& turn);

  // --- In callbacks ---
  static void nothing(Program&, Turn&) {}
  static void sleep(Program& program, Turn& turn);
  static void other_mutex(Program& program, Turn& turn);
  static void lock_in_callback(Program& program, Turn& turn);
  static void throw_it(Program& program, Turn& turn);
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_STEPS_HPP
