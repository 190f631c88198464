// Makes a plan smaller while the life still goes wrong in the same way.
#ifndef DDBMUTEX_TESTS_WORLD_SHRINK_HPP
#define DDBMUTEX_TESTS_WORLD_SHRINK_HPP

#include <functional>

#include "tests/world/plan.hpp"

namespace world {

// The smallest plan found for which `fails` is still true, after asking it at
// most `lives` times.  REQUIRES: fails(plan).
Plan shrink(const Plan& plan, const std::function<bool(const Plan&)>& fails,
            int lives);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_SHRINK_HPP
