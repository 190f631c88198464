// Whether the lock kept its promises in one run of the torture.
//
//   const Findings found = judge(history, Bounds{});
//   for (const Violation& one : found.violations) print(one.words);
//   return found.violations.empty() ? 0 : 1;
//
// Pure: what it says follows from the history alone.
#ifndef DDBMUTEX_TESTS_TORTURE_JUDGE_HPP
#define DDBMUTEX_TESTS_TORTURE_JUDGE_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tests/torture/counts.hpp"
#include "tests/torture/history.hpp"
#include "tests/torture/losses.hpp"

namespace torture {

// What the run is measured by.  No time counts in which the process stood still
// or, for whoever waits for an answer, the table was slow or down.
struct Bounds {
  LossBounds loss;
  // Beyond the longest lease and 1 %: how long a name may be free while it is
  // waited for, and how long it may take once all is quiet.
  seconds wait{10};
  seconds quiet{5};
  // The same for the sum of all times in which it was free, while others came
  // and went: who waits longer has been forgotten, for chance and pauses for
  // want of retries do not add up to that.
  seconds passed_over{30};
  // Once all troubles are over: who waits for longer waits for ever.
  seconds calm{15};
  // For a timed call, of those that are asked for 2 s at most.
  seconds timed{7};
  // Leases that run out for no reason to be seen; a busy machine has some.
  int causeless_per_minute = 3;
  milliseconds calendar{2000};
  milliseconds boot{1000};

  // In a run of so many faults some meet kept rows.
  std::size_t faults_of_both = 200;
  // All of these are to be seen in a run that is no shorter than that.
  std::vector<std::string> fault_kinds = {
      "delay",        "drop",        "reset",        "half-close",
      "close",        "throttle",    "500",          "503",
      "portal",       "empty",       "late",         "reorder",
      "delay-answer", "drop-answer", "reset-answer", "half-close-answer",
      "truncate",     "corrupt",     "garbage",      "throttle-after",
      "500-after",    "503-after",   "duplicate"};
  seconds all_kinds_within{300};

  // The bars for 600 s; scaled to the time that was asked for, or to the run's
  // whole seconds where that is not told.
  std::optional<seconds> time;
  std::size_t acquisitions = 50000;
  std::size_t faults = 5000;
  std::size_t kills_and_stops = 300;
};

struct Violation {
  enum class Rule { overlap, token, loss, error, wait, quiet, process, run };
  Rule rule = Rule::run;
  std::string words;
  // Where it belongs, for the timeline; empty, nothing: nowhere in particular.
  std::string name;
  std::optional<int> process;
  std::optional<nanoseconds> at;
};
const char* name_of(Violation::Rule rule);  // "overlap"

struct Findings {
  std::vector<Violation> violations;
  std::vector<std::string> shortfalls;  // Of the bars; no fault of the lock.
  Counts counts;
};

Findings judge(const History& history, const Bounds& bounds = {});

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_JUDGE_HPP
