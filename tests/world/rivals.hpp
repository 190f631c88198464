// Programs of the other libraries, in the world: they want the same locks, and
// send what those libraries' clients send (tests/support/rival.hpp).
#ifndef DDBMUTEX_TESTS_WORLD_RIVALS_HPP
#define DDBMUTEX_TESTS_WORLD_RIVALS_HPP

#include "tests/world/judge.hpp"
#include "tests/world/plan.hpp"

namespace world {

// Runs on the main thread of the program's process.
void run_rival(const Plan& plan, const ProgramPlan& own, Judge& judge);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_RIVALS_HPP
