// How `run` gets its lock.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_ACQUISITION_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_ACQUISITION_HPP

#include "ddbmutex.hpp"
#include "examples/ddbmutex/options.hpp"
#include "examples/ddbmutex/signals.hpp"
#include "examples/ddbmutex/wait_report.hpp"

namespace command {

struct Acquired {
  bool held = false;
  int signal = 0;  // The one that ended the wait; 0: none did.
};

// Waits for as long as the settings say, or until a signal ends the wait.
Acquired acquire(ddbmutex::DdbMutex& mutex, const Settings& settings,
                 const Signals& signals, WaitReport& report);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_ACQUISITION_HPP
