// Locks whose lease ran out although nothing kept their holder from renewing
// it.
//
//   for (const Causeless& one : causeless_losses(history)) ...
//
// A busy machine has some now and then, between what is told of it; a lock that
// does not renew has many.
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
// a fault; and for a lease more, for it may be told late, neither the process
// nor the table was late.
std::vector<Causeless> causeless_losses(const History& history);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_CAUSES_HPP
