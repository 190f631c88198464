// How a test waits, and how it tells a late library from a late machine; the
// rules are in tests/README.md.
#ifndef DDBMUTEX_TESTS_SUPPORT_WAITING_HPP
#define DDBMUTEX_TESTS_SUPPORT_WAITING_HPP

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "sigv4/boot_clock.hpp"

namespace tests {

// How long to wait for what will happen: only a library that is broken makes a
// test wait so long, however busy the machine is.  In seconds in
// DDBMUTEX_TEST_PLENTY, where a broken library is what is expected.
inline const std::chrono::seconds kPlenty = [] {
  const char* given = std::getenv("DDBMUTEX_TEST_PLENTY");
  const int seconds = given != nullptr ? std::atoi(given) : 0;
  return std::chrono::seconds(seconds > 0 ? seconds : 60);
}();

// By which a promised bound may be passed although the machine did not stall.
constexpr std::chrono::milliseconds kSlack{1500};

inline void pause(std::chrono::milliseconds time) {
  ::poll(nullptr, 0, static_cast<int>(time.count()));
}

// Asks every few milliseconds until it is so; false if that takes too long.
template <class Condition>
bool eventually(const Condition& condition,
                std::chrono::nanoseconds time = kPlenty) {
  const ddbmutex::BootTime end = ddbmutex::BootClock::now() + time;
  while (!condition()) {
    if (ddbmutex::BootClock::now() >= end) return false;
    pause(std::chrono::milliseconds(5));
  }
  return true;
}

struct Stopwatch {
  const ddbmutex::BootTime start = ddbmutex::BootClock::now();
  std::chrono::nanoseconds time() const {
    return ddbmutex::BootClock::now() - start;
  }
  std::int64_t ms() const { return time() / std::chrono::milliseconds(1); }
};

// While one exists, a thread of its own asks to run every few milliseconds and
// adds up by how much it is late, where that is more than a timer's own.
class Stalls {
 public:
  Stalls() : thread_([this] { watch(); }) {}
  ~Stalls() {
    ended_ = true;
    thread_.join();
  }
  Stalls(const Stalls&) = delete;
  Stalls& operator=(const Stalls&) = delete;

  // The one that the machine is just over is among them, although its thread
  // may not have run again yet.
  std::chrono::nanoseconds total() const {
    return total_.load() + lateness(begun_.load());
  }

 private:
  static constexpr std::chrono::milliseconds kStep{5};

  static std::chrono::nanoseconds lateness(ddbmutex::BootTime begun) {
    const auto late = ddbmutex::BootClock::now() - begun - kStep;
    return late > kStep ? late : std::chrono::nanoseconds(0);
  }
  void watch() {
    while (!ended_) {
      pause(kStep);
      total_ = total_.load() + lateness(begun_.load());
      begun_ = ddbmutex::BootClock::now();
    }
  }

  std::atomic<bool> ended_{false};
  std::atomic<ddbmutex::BootTime> begun_{ddbmutex::BootClock::now()};
  std::atomic<std::chrono::nanoseconds> total_{std::chrono::nanoseconds(0)};
  std::thread thread_;  // Last: it uses the others.
};

// Whether the call returns within a promised bound, the machine's stalls and
// kSlack apart.
template <class Call>
bool returns_within(std::chrono::nanoseconds bound, const Call& call) {
  const Stalls stalls;
  const Stopwatch watch;
  call();
  const std::chrono::nanoseconds time = watch.time();
  return time <= bound + kSlack + stalls.total();
}

// For what no lease is long enough: a round says what is wrong, "" if nothing
// is.  One in which the machine stalled for longer than that says nothing about
// the library and is done again, up to ten times.  A round begins from nothing:
// a fresh name, a fresh table.
template <class Round>
std::string undisturbed(std::chrono::nanoseconds stall, const Round& round) {
  std::string wrong;
  for (int rounds = 0; rounds < 10; ++rounds) {
    const Stalls stalls;
    wrong = round();
    if (wrong.empty() || stalls.total() <= stall) return wrong;
  }
  return wrong + " (in each of ten rounds, and each was disturbed)";
}

// For what no stall decides but the moment does, as whether a time is up amid a
// request: a round that says what is wrong is done again, up to ten times.
template <class Round>
std::string in_some_round(const Round& round) {
  std::string wrong = round();
  for (int again = 0; again < 9 && !wrong.empty(); ++again) wrong = round();
  return wrong;
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_WAITING_HPP
