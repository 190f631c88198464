// Whether the losses of one mutex in one process were told: each that was seen,
// in time, once, and none that was not.
#ifndef DDBMUTEX_TESTS_TORTURE_LOSSES_HPP
#define DDBMUTEX_TESTS_TORTURE_LOSSES_HPP

#include <string>
#include <vector>

#include "tests/torture/history.hpp"

namespace torture {

struct LossBounds {
  // A loss is told no later than this after it was seen, not counting the time
  // in which its process stood still.
  milliseconds tell{500};
  // One that comes so much before the end of the promise is not yet false.
  milliseconds early{1};
};

struct LossProblem {
  nanoseconds at{};
  std::string words;  // "found its lock lost at ..., though ..."
};

// `life` is its process's, which stood still at times; `begin` is when the run
// began.
std::vector<LossProblem> judge_losses(const MutexLog& log, const Lifetime& life,
                                      const std::vector<Span>& still,
                                      const LossBounds& bounds,
                                      nanoseconds begin);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_LOSSES_HPP
