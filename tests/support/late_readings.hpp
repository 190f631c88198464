// Clocks that show what no test could wait for: stalls and suspends.
//
// Plays a stall: the next readings of the boot clock in this thread show the
// later times that the test gives.
//
//   const LateReadings late(1, [&] { return end; });
//   BOOST_TEST(mutex.owns_lock());
//
// Other threads read the right time, and so does `shows`.  Only one may exist
// in a thread.
#ifndef DDBMUTEX_TESTS_SUPPORT_LATE_READINGS_HPP
#define DDBMUTEX_TESTS_SUPPORT_LATE_READINGS_HPP

#include <chrono>
#include <functional>

#include "sigv4/boot_clock.hpp"

namespace tests {

class LateReadings {
 public:
  LateReadings(int count, std::function<ddbmutex::BootTime()> shows);
  ~LateReadings();
  LateReadings(const LateReadings&) = delete;
  LateReadings& operator=(const LateReadings&) = delete;

  // The next one; false if there is none.
  bool next(ddbmutex::BootTime& time);

 private:
  int left_;
  const std::function<ddbmutex::BootTime()> shows_;
};

// Plays suspends of this machine: while one exists, the boot clock that this
// process reads is ahead by the sum of the jumps.  Waits that have begun take
// no notice.  One at a time; no Table may outlive it.
class Suspends {
 public:
  Suspends() = default;
  ~Suspends();
  Suspends(const Suspends&) = delete;
  Suspends& operator=(const Suspends&) = delete;

  void jump(std::chrono::nanoseconds time);
  // Jumps as the boot clock is read for the n-th time from now on, by any
  // thread: between two lines of a call, wherever a test cannot reach.
  void jump_at_reading(int n, std::chrono::nanoseconds time);
  bool has_jumped() const;  // The clock was read so often.
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_LATE_READINGS_HPP
