// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A descriptor that becomes readable at a time on the boot clock, so that
// poll(2) can wait for it.  The timeout of poll(2) itself stands still while
// the machine is suspended.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_SIGV4_BOOT_TIMER_HPP
#define DDBMUTEX_SIGV4_BOOT_TIMER_HPP

#include <sys/timerfd.h>
#include <unistd.h>

#include <chrono>

#include "boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

class BootTimer {
 public:
  BootTimer() = default;
  ~BootTimer() {
    if (fd_ >= 0) close(fd_);
  }
  BootTimer(const BootTimer&) = delete;
  BootTimer& operator=(const BootTimer&) = delete;

  // -1 if set() was not called yet, or if there was no free descriptor.
  int fd() const noexcept { return fd_; }

  // Makes it readable at `when`, or earlier: then set it again.
  // BootTime::max() is never.  One that rings earlier stays as it is, because
  // most are set anew long before they ring.
  void set(BootTime when) noexcept {
    if (rings_ <= when && BootClock::now() < rings_) return;
    if (fd_ < 0) fd_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (fd_ < 0) return;
    rings_ = when;
    // The time is relative, because libfaketime takes an absolute one for a
    // time of day.  A suspend between the two system calls would make it late.
    BootTime now;
    do {
      now = BootClock::now();
      start(when, now);
    } while (BootClock::now() - now > std::chrono::milliseconds(10));
  }

 private:
  void start(BootTime when, BootTime now) noexcept {
    using std::chrono::nanoseconds;
    using std::chrono::seconds;
    itimerspec spec{};  // All zero: never.
    if (when != BootTime::max()) {
      const nanoseconds left = when > now ? when - now : nanoseconds(1);
      spec.it_value.tv_sec = static_cast<time_t>(left / seconds(1));
      spec.it_value.tv_nsec = static_cast<long>((left % seconds(1)).count());
    }
    timerfd_settime(fd_, 0, &spec, nullptr);
  }

  int fd_ = -1;
  BootTime rings_ = BootTime::max();
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_BOOT_TIMER_HPP
