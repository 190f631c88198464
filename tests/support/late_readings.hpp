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
