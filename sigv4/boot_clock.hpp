// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The boot clock: time since the machine started, suspend included.
//
// std::chrono::steady_clock stands still while a Linux machine is suspended
// (clock_gettime(2), CLOCK_MONOTONIC).  A lease in DynamoDB goes on.  So every
// deadline here is a time on this clock.  None is a time of day.
#ifndef DDBMUTEX_SIGV4_BOOT_CLOCK_HPP
#define DDBMUTEX_SIGV4_BOOT_CLOCK_HPP

#include <chrono>

namespace ddbmutex {
inline namespace v0 {

// Meets the requirements of a standard clock.  Any thread.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;  // system.cpp
};

using BootTime = BootClock::time_point;

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_BOOT_CLOCK_HPP
