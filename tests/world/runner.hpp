// Lives in (real) processes of their own, so that crashes, hangs and the
// threads of killed programs end with them; and many lives, one on each core at
// a time.
#ifndef DDBMUTEX_TESTS_WORLD_RUNNER_HPP
#define DDBMUTEX_TESTS_WORLD_RUNNER_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/world/plan.hpp"

namespace world {

// One life in a process of its own.
class Apart {
 public:
  // `cpu`: where it runs; below 0: anywhere.
  Apart(const Plan& plan, bool tells, int cpu);
  ~Apart();
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  // Readable when there is something to do.
  int fd() const { return pipe_; }
  // Receives what the life tells.  False once it has ended or takes too long.
  bool goes_on();
  // What came of it; crashes and hangs count as wrong.  REQUIRES: goes_on() has
  // returned false.
  Outcome outcome();

 private:
  bool is_too_late() const;
  void read_line(const std::string& line, Outcome& outcome) const;

  const std::chrono::steady_clock::time_point began_;
  int pipe_ = -1;
  int complaints_ = -1;
  pid_t pid_ = -1;
  std::string received_;
};

Outcome live_apart(const Plan& plan, bool tells);

struct Totals {
  std::uint64_t lives = 0, acquisitions = 0, faults = 0, wrong = 0;
  std::vector<std::uint64_t> failures;  // The seeds of those that went wrong.
};

struct Many {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> count{};  // None: as many as there is time for.
  // No life begins later; with `until_wrong`, the time of the processors
  // counts.
  std::chrono::seconds time = std::chrono::hours(24 * 365);
  bool until_wrong = false;  // No life begins after one that goes wrong.
};
// Lives the seeds from `first` on, on all cores.  Prints each wrong at once.
Totals live_many(const Many& many);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_RUNNER_HPP
