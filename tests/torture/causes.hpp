// Locks whose lease ran out although nothing kept their holder from renewing
// it.
//
//   for (const Causeless& one : causeless_losses(history)) ...
//
// A busy machine has one now and then that nothing written down explains; a
// lock that does not renew has many.
#ifndef DDBMUTEX_TESTS_TORTURE_CAUSES_HPP
#define DDBMUTEX_TESTS_TORTURE_CAUSES_HPP

#include <vector>

#include "tests/torture/history.hpp"

namespace torture {

struct Causeless {
  const MutexLog* log;  // Of the history.
  nanoseconds at;       // When it was told.
};

// Of those told to have expired: those before which, for as long as the lease
// was, the process was not stopped, nothing was down, and not two renewals met
// a fault; and for a lease more, for it may be told late, the process and the
// table were not late for an eighth of the lease in all.  (A renewal begins
// when half of it is left.)
std::vector<Causeless> causeless_losses(const History& history);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_CAUSES_HPP
