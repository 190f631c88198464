// What a program may do next, and how often it does.
#ifndef DDBMUTEX_TESTS_WORLD_STEPS_HPP
#define DDBMUTEX_TESTS_WORLD_STEPS_HPP

#include <memory>

#include "tests/world/program.hpp"

namespace world {

class Steps {
 public:
  Steps(Program& program, Turn& turn) : program_(program), turn_(turn) {}

  // Takes one step with the mutex of the turn.
  void take();
  // Does what a callback does.
  void react();

  void unlock();

 private:
  using Run = void (Steps::*)();
  struct Step {
    int weight;
    Run run;
  };
  template <std::size_t size>
  void take_one(const Step (&steps)[size]);

  // --- Locking ---
  void hold();
  bool lock_somehow(bool for_ever);
  bool got(const Result& result);
  template <class CallIt>
  void attempt(const Call& call, const CallIt& call_it);
  template <class TimePoint>
  void attempt_until(const Call& call, TimePoint until);
  void lock();
  void try_lock();
  void try_lock_for();
  void try_lock_for_ever();
  void try_lock_until();
  void try_lock_until_wall();
  void any_of();
  void take_any_of(const OwnTable& table,
                   std::unique_ptr<ddbmutex::DdbMutex>& any);
  void work(bool is_choosy);

  void take_turn();

  // --- While it is held ---
  void while_held();
  void act();
  void stay();
  void renew();
  void stop_renewing();
  void renew_changes();
  void check_data(const ddbmutex::Changes& changes, Time began);
  void ensure();
  void require();
  void lock_again();
  void write();
  void write_oneself();

  // --- Letting go ---
  void let_go();
  void release();
  void release_changes();
  void leave_locked();
  void destroy();
  void unlock_another();

  // --- Anytime ---
  void rest();
  void ask();
  void cancel();
  void inspect();
  void list();
  void exists();
  void force_unlock();
  void close();
  void fork();

  // --- In callbacks ---
  void nothing() {}
  void sleep();
  void other_mutex();
  void lock_in_callback();
  void throw_it();

  Program& program_;
  Turn& turn_;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_STEPS_HPP
