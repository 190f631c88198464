// The machine's clocks as they are, whatever a library stands in front of the
// C library's clock functions.
#ifndef DDBMUTEX_TESTS_SUPPORT_TRUE_CLOCK_HPP
#define DDBMUTEX_TESTS_SUPPORT_TRUE_CLOCK_HPP

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "sigv4/boot_clock.hpp"

namespace tests {

inline std::chrono::nanoseconds true_time(clockid_t clock) {
  // As the kernel writes it, on machines of 32 bits too.
  struct {
    long seconds;
    long nanoseconds;
  } time = {};
  syscall(SYS_clock_gettime, clock, &time);
  return std::chrono::seconds(time.seconds) +
         std::chrono::nanoseconds(time.nanoseconds);
}

// How far off the clocks are that the library sees.
inline std::chrono::nanoseconds calendar_offset() {
  const auto seen = std::chrono::system_clock::now().time_since_epoch();
  return seen - true_time(CLOCK_REALTIME);
}

inline std::chrono::nanoseconds boot_clock_offset() {
  const auto seen = ddbmutex::BootClock::now().time_since_epoch();
  return seen - true_time(CLOCK_BOOTTIME);
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_TRUE_CLOCK_HPP
