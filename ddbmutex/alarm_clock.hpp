// A sleep that another thread may shorten or prolong.
#ifndef DDBMUTEX_ALARM_CLOCK_HPP
#define DDBMUTEX_ALARM_CLOCK_HPP

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

#include "../sigv4/boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// Sleeps until a time on the boot clock that another thread may change.  (A
// poll(2) stands still while the machine is suspended, its leases do not.)
class AlarmClock {
 public:
  AlarmClock() = default;
  ~AlarmClock() {
    if (fd_ >= 0) close(fd_);
  }
  AlarmClock(const AlarmClock&) = delete;
  AlarmClock& operator=(const AlarmClock&) = delete;

  // To be called before all else; again, if it failed.
  bool open() {
    if (fd_ < 0) fd_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    return fd_ >= 0;
  }

  // Not as an absolute time: libfaketime would take that for one on the
  // calendar.  A suspend between the two system calls would make it late.
  void set(BootTime when) {
    BootTime now;
    do {
      now = BootClock::now();
      start(when > now ? when - now
                       : std::chrono::nanoseconds(1));  // 0 would be never.
    } while (BootClock::now() - now > std::chrono::milliseconds(10));
  }

  void wait() {
    std::uint64_t expired;
    while (read(fd_, &expired, sizeof expired) == -1 && errno == EINTR) {
    }
  }

 private:
  void start(std::chrono::nanoseconds left) {
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<time_t>(left / std::chrono::seconds(1));
    spec.it_value.tv_nsec =
        static_cast<long>((left % std::chrono::seconds(1)).count());
    timerfd_settime(fd_, 0, &spec, nullptr);
  }

  int fd_ = -1;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ALARM_CLOCK_HPP
