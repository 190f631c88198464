#include "tests/support/waiting.hpp"

#include <poll.h>

#include <cstdlib>

namespace tests {
namespace {

// How often a Stalls looks.
constexpr std::chrono::milliseconds kStep{5};

std::chrono::nanoseconds lateness(ddbmutex::BootTime begun) {
  const auto late = ddbmutex::BootClock::now() - begun - kStep;
  return late > kStep ? late : std::chrono::nanoseconds(0);
}

}  // namespace

std::chrono::seconds plenty() {
  const char* given = std::getenv("DDBMUTEX_TEST_PLENTY");
  const int seconds = given != nullptr ? std::atoi(given) : 0;
  return std::chrono::seconds(seconds > 0 ? seconds : 60);
}

void pause(std::chrono::milliseconds time) {
  ::poll(nullptr, 0, static_cast<int>(time.count()));
}

bool eventually(ddbmutex::sigv4::FunctionRef<bool()> condition,
                std::chrono::nanoseconds time) {
  const ddbmutex::BootTime end = ddbmutex::BootClock::now() + time;
  while (!condition()) {
    if (ddbmutex::BootClock::now() >= end) return false;
    pause(std::chrono::milliseconds(5));
  }
  return true;
}

std::chrono::nanoseconds Stopwatch::time() const {
  return ddbmutex::BootClock::now() - start;
}

std::int64_t Stopwatch::ms() const {
  return time() / std::chrono::milliseconds(1);
}

Stalls::Stalls() : thread_([this] { watch(); }) {}

Stalls::~Stalls() {
  ended_ = true;
  thread_.join();
}

std::chrono::nanoseconds Stalls::total() const {
  return total_.load() + lateness(begun_.load());
}

void Stalls::watch() {
  while (!ended_) {
    pause(kStep);
    total_ = total_.load() + lateness(begun_.load());
    begun_ = ddbmutex::BootClock::now();
  }
}

bool returns_within(std::chrono::nanoseconds bound,
                    ddbmutex::sigv4::FunctionRef<void()> call) {
  const Stalls stalls;
  const Stopwatch watch;
  call();
  const std::chrono::nanoseconds time = watch.time();
  return time <= bound + kSlack + stalls.total();
}

std::string undisturbed(std::chrono::nanoseconds stall, const Round& round) {
  std::string wrong;
  for (int rounds = 0; rounds < 10; ++rounds) {
    const Stalls stalls;
    wrong = round();
    if (wrong.empty() || stalls.total() <= stall) return wrong;
  }
  return wrong + " (in each of ten rounds, and each was disturbed)";
}

}  // namespace tests
