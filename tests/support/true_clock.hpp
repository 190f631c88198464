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

// How far off a clock is that somebody sees: of some looks the one in which the
// machine was quickest, so that a stall amid one counts for nothing.
template <class Seen>
std::chrono::nanoseconds offset_of(clockid_t clock, const Seen& seen) {
  constexpr int kLooks = 20;
  auto best = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds offset{};
  for (int i = 0; i < kLooks; ++i) {
    const std::chrono::nanoseconds before = true_time(clock);
    const std::chrono::nanoseconds its = seen();
    const std::chrono::nanoseconds took = true_time(clock) - before;
    if (took >= best) continue;
    best = took;
    offset = its - before;
  }
  return offset;
}

// How far off the clocks are that the library sees.
inline std::chrono::nanoseconds calendar_offset() {
  return offset_of(CLOCK_REALTIME, [] {
    return std::chrono::nanoseconds(
        std::chrono::system_clock::now().time_since_epoch());
  });
}

inline std::chrono::nanoseconds boot_clock_offset() {
  return offset_of(CLOCK_BOOTTIME, [] {
    return std::chrono::nanoseconds(
        ddbmutex::BootClock::now().time_since_epoch());
  });
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_TRUE_CLOCK_HPP
