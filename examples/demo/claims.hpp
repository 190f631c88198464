// What the demo claims of each scene, judged by what was seen of it.  Pure.
#ifndef DDBMUTEX_EXAMPLES_DEMO_CLAIMS_HPP
#define DDBMUTEX_EXAMPLES_DEMO_CLAIMS_HPP

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/demo/clock.hpp"

namespace demo {

struct Claim {
  bool right;
  std::string text;
};
using Claims = std::vector<Claim>;

// That a process had the lock, [begin, end): from the return of lock() until it
// began to unlock or its lease was over, whichever came first.
struct Hold {
  char process;
  Time begin;
  Time end;
};

// Two holds that have an instant in common.
std::optional<std::pair<Hold, Hold>> overlapping(std::vector<Hold> holds);

// Scenes 1 and 2.
struct Count {
  int updates;    // Made by all processes together.
  long long sum;  // What the file says, having begun with 0.
};
Claims claims_without_lock(const Count& count);
Claims claims_with_lock(const Count& count, const std::vector<Hold>& holds);

// Scene 3.  The holds end with the leases, as their holders last knew them.
struct Killed {
  Time lease;
  std::optional<Hold> dead;  // As of the kill.
  int renewals;              // Of its lease, until then.
  Time killed;
  std::optional<Hold> next;
  long long before, after;  // What the file says.
};
Claims claims_of_killed(const Killed& seen);

// Scene 4.
struct Stopped {
  std::optional<Hold> sleeper;  // As of the stop.
  Time stopped, woken;
  std::optional<Hold> next;
  std::optional<bool> owned_on_waking;  // Its first owns_lock() after that.
  std::vector<std::string> losses;      // That on_lost told, in words.
  // The row's uuid while the sleeper was stopped, and after its unlock().
  std::string uuid_before_unlock, uuid_after_unlock;
  bool next_kept_it;  // Until it unlocked by itself.
  long long before, after;
};
Claims claims_of_stopped(const Stopped& seen);

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_CLAIMS_HPP
