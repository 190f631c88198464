// A thread whose next readings of the boot clock come late, as after a stall:
// each shows what the test says.
//
//   const LateReadings late(1, [&] { return end; });
//   BOOST_TEST(mutex.owns_lock());
//
// They concern the thread that makes it.  While `shows` runs, the clock is
// right.  One at a time.
#ifndef DDBMUTEX_TESTS_SUPPORT_LATE_READINGS_HPP
#define DDBMUTEX_TESTS_SUPPORT_LATE_READINGS_HPP

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

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_LATE_READINGS_HPP
