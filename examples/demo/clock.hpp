// One clock for all processes of the demo: time since the machine started,
// which goes on while any of them is stopped.
#ifndef DDBMUTEX_EXAMPLES_DEMO_CLOCK_HPP
#define DDBMUTEX_EXAMPLES_DEMO_CLOCK_HPP

#include <time.h>

#include <chrono>

namespace demo {

using Time = std::chrono::nanoseconds;

inline Time now() {
  timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_CLOCK_HPP
