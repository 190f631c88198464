// Programs of the tests that somebody may interrupt clean up first.
#ifndef DDBMUTEX_TESTS_SUPPORT_INTERRUPTED_HPP
#define DDBMUTEX_TESTS_SUPPORT_INTERRUPTED_HPP

#include <signal.h>

namespace tests {

// Set by a signal that asks for the end, after catch_signals().
inline volatile sig_atomic_t interrupted = 0;

inline void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    sigaction(number, &action, nullptr);
  }
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_INTERRUPTED_HPP
