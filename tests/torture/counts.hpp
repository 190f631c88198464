// What is counted in one run of the torture.
//
//   const Counts counts = count(history);
//   print(counts.acquisitions, counts.after_unlock.percentile(99));
#ifndef DDBMUTEX_TESTS_TORTURE_COUNTS_HPP
#define DDBMUTEX_TESTS_TORTURE_COUNTS_HPP

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tests/torture/history.hpp"

namespace torture {

// Of times, in no order.
struct Sample {
  std::vector<nanoseconds> times;
  // The least that is no less than so many percent of them; 0 of none.
  nanoseconds percentile(int percent) const;
};

// Of the names whose rows are deleted, or of those whose rows are kept.
struct OfPolicy {
  std::size_t names = 0;
  std::size_t acquisitions = 0;
  std::size_t hand_overs = 0;
  // Free while the next one waited: after an unlock, and after a death or loss.
  Sample after_unlock;
  Sample after_death;
  std::size_t losses = 0;  // Told.
  std::size_t faults = 0;  // Of requests about them.
};

struct Counts {
  seconds time{};  // Up to the quiet; whole ones.
  std::size_t processes = 0;
  std::size_t starts = 0;
  std::size_t names = 0;

  std::size_t acquisitions = 0;
  std::map<std::string, std::size_t> without;  // "busy", "cancelled", "error"
  std::map<std::string, std::size_t> errors;   // By text.
  std::size_t hand_overs = 0;                  // From one process to another.
  OfPolicy deleted;
  OfPolicy kept;
  Token numbers = 0;           // That the kept rows have come to, given or not.
  nanoseconds longest_wait{};  // Of one that got the lock.
  // Of one name, in one piece, while somebody waited who could have taken it;
  // outages and stops left out.
  nanoseconds longest_free_wait{};

  std::map<std::string, std::size_t> faults;  // By kind.
  std::size_t all_faults = 0;
  std::size_t kills = 0;
  std::size_t stops = 0;
  std::size_t jumps = 0;
  struct Outages {
    std::size_t count = 0;
    nanoseconds time{};
  };
  std::map<std::string, Outages> outages;  // By what is down.
  // How late the table was, and all processes together.
  nanoseconds slow{};
  nanoseconds stalled{};

  std::map<std::string, std::size_t> losses;  // Told, by reason.
  std::size_t losses_seen = 0;
  std::size_t dangers = 0;
  std::size_t rows_left = 0;
  nanoseconds slowest_taken{};
};

// All but longest_free_wait, which the judge knows.
Counts count(const History& history);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_COUNTS_HPP
