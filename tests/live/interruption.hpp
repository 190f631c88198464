// Ctrl-C and TERM end a run in order: what it has made is deleted first.
#ifndef DDBMUTEX_TESTS_LIVE_INTERRUPTION_HPP
#define DDBMUTEX_TESTS_LIVE_INTERRUPTION_HPP

#include <signal.h>

#include <stdexcept>

#include "tests/support/interrupted.hpp"

namespace live {

inline void stop_if_interrupted() {
  if (tests::interrupted != 0) throw std::runtime_error("interrupted");
}

// Whoever reads what we say may go before us, as `tee` does at Ctrl-C.  By a
// handler: programs that we start would go on ignoring what we ignore.
inline void outlive_readers() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace live

#endif  // DDBMUTEX_TESTS_LIVE_INTERRUPTION_HPP
