#include "tests/support/late_readings.hpp"

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "tests/support/true_clock.hpp"

namespace tests {

namespace {

thread_local LateReadings* of_this_thread = nullptr;
std::atomic<std::int64_t> suspended_ns{0};
// What jump_at_reading() wants: none left means that it has happened.
std::atomic<int> readings_left{0};
std::atomic<std::int64_t> jump_ns{0};

void note_reading() {
  if (readings_left > 0 && --readings_left == 0) suspended_ns += jump_ns;
}

}  // namespace

LateReadings::LateReadings(int count, std::function<ddbmutex::BootTime()> shows)
    : left_(count), shows_(std::move(shows)) {
  of_this_thread = this;
}

LateReadings::~LateReadings() { of_this_thread = nullptr; }

bool LateReadings::next(ddbmutex::BootTime& time) {
  if (left_ == 0) return false;
  --left_;
  of_this_thread = nullptr;  // While `shows_` runs.
  time = shows_();
  of_this_thread = this;
  return true;
}

Suspends::~Suspends() {
  readings_left = 0;
  suspended_ns = 0;
}

void Suspends::jump(std::chrono::nanoseconds time) {
  suspended_ns += time.count();
}

void Suspends::jump_at_reading(int n, std::chrono::nanoseconds time) {
  jump_ns = time.count();
  readings_left = n;
}

bool Suspends::has_jumped() const { return readings_left <= 0; }

}  // namespace tests

// Found before the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* shown) noexcept {
  using namespace std::chrono;
  ddbmutex::BootTime late;
  const bool is_late = clock == CLOCK_BOOTTIME &&
                       tests::of_this_thread != nullptr &&
                       tests::of_this_thread->next(late);
  nanoseconds time =
      is_late ? late.time_since_epoch() : tests::true_time(clock);
  if (clock == CLOCK_BOOTTIME && !is_late) {
    tests::note_reading();
    time += nanoseconds(tests::suspended_ns);
  }
  shown->tv_sec = static_cast<time_t>(time / seconds(1));
  shown->tv_nsec = static_cast<long>(time % seconds(1) / nanoseconds(1));
  return 0;
}
