// Whether the lock kept its promises in one run of the torture.
//
//   for (const std::string& one : judge(history)) print(one);
//
// It judges by the history alone, and never by how long something took: a slow
// or busy machine breaks no rule.  The judge of the simulated world, who knows
// the true time, judges that (tests/world/judge.hpp).
//
//   overlap   two processes, or two threads of one, never held a lock at once
//   token     see tokens.hpp
//   error     lock() returns with the lock; try_lock() and release() fail only
//             with transient errors, or since the lock was lost
//   process   every process ended well or was killed by the torture, none hung,
//             and what it wrote makes sense
//   run       every process got a lock, if there were many acquisitions, and
//             saw the clocks that it was given
//   end       every lock could be taken after the run
#ifndef DDBMUTEX_TESTS_TORTURE_JUDGE_HPP
#define DDBMUTEX_TESTS_TORTURE_JUDGE_HPP

#include <string>
#include <vector>

#include "tests/torture/history.hpp"

namespace torture {

// What went wrong, each with its rule in front: "overlap: lock-1: ...".
std::vector<std::string> judge(const History& history);

// "61234 acquisitions, 300 losses, 120 kills, 20 outages"
std::string counts_of(const History& history);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_JUDGE_HPP
