// How a test waits, and how it tells a late library from a late machine; the
// rules are in tests/README.md.
#ifndef DDBMUTEX_TESTS_SUPPORT_WAITING_HPP
#define DDBMUTEX_TESTS_SUPPORT_WAITING_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "sigv4/boot_clock.hpp"
#include "sigv4/function_ref.hpp"

namespace tests {

// How long to wait for what will happen: only a library that is broken makes a
// test wait so long, however busy the machine is.  In seconds in
// DDBMUTEX_TEST_PLENTY, where a broken library is what is expected.
std::chrono::seconds plenty();
// Inline, so that constants of other files may be made of it.
inline const std::chrono::seconds kPlenty = plenty();

// How long an engine or another program of ours may take to start: a slow disk
// may take half a minute to load it for the first time.
constexpr std::chrono::minutes kStarts{2};

// By which a promised bound may be passed although the machine did not stall.
constexpr std::chrono::milliseconds kSlack{1500};

void pause(std::chrono::milliseconds time);

// Asks every few milliseconds until it is so; false if that takes too long.
bool eventually(ddbmutex::sigv4::FunctionRef<bool()> condition,
                std::chrono::nanoseconds time = kPlenty);

struct Stopwatch {
  const ddbmutex::BootTime start = ddbmutex::BootClock::now();
  std::chrono::nanoseconds time() const;
  std::int64_t ms() const;
};

// While one exists, a thread of its own asks to run every few milliseconds and
// adds up by how much it is late, where that is more than a timer's own.
class Stalls {
 public:
  Stalls();
  ~Stalls();
  Stalls(const Stalls&) = delete;
  Stalls& operator=(const Stalls&) = delete;

  // The one that the machine is just over is among them, although its thread
  // may not have run again yet.
  std::chrono::nanoseconds total() const;

 private:
  void watch();

  std::atomic<bool> ended_{false};
  std::atomic<ddbmutex::BootTime> begun_{ddbmutex::BootClock::now()};
  std::atomic<std::chrono::nanoseconds> total_{std::chrono::nanoseconds(0)};
  std::thread thread_;  // Last: it uses the others.
};

// Whether the call returns within a promised bound, the machine's stalls and
// kSlack apart.
bool returns_within(std::chrono::nanoseconds bound,
                    ddbmutex::sigv4::FunctionRef<void()> call);

// What is wrong in a round of a test; "" if nothing is.
using Round = std::function<std::string()>;

// For what no lease is long enough: a round in which the machine stalled
// for longer than that says nothing about the library and is done again, up to
// ten times.  A round begins from nothing: a fresh name, a fresh table.
std::string undisturbed(std::chrono::nanoseconds stall, const Round& round);

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_WAITING_HPP
