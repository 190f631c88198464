// What happens in a life, as it is drawn from a seed: who lives where, what
// their programs do, and what goes wrong.  Parts of it can be left out; all
// others stay as they were.
#ifndef DDBMUTEX_TESTS_WORLD_PLAN_HPP
#define DDBMUTEX_TESTS_WORLD_PLAN_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/layouts.hpp"
#include "tests/world/network.hpp"
#include "tests/world/world.hpp"

namespace world {

struct HostPlan {
  double rate = 1;
  nanoseconds wall_offset{};
  nanoseconds latency{};
};

struct ProgramPlan {
  int number = 0;
  int host = 0;
  Time starts{};
  std::uint64_t seed = 0;  // Of its options, and of each of its steps.
  int threads = 1;
  // The numbers of the steps that it takes.
  std::vector<int> steps;
  bool rival = false;  // A client of the library that the layout belongs to.
};

struct FaultPlan {
  enum class Kind {
    kill,       // A program's process is killed.
    restart,    // The same, and it starts again after `time`.
    stop,       // A process stops, as by SIGSTOP.
    suspend,    // A host is suspended.
    pause,      // A host stands still, and its boot clock too.
    cut_off,    // No message leaves a host or arrives there.
    outage,     // The service answers nobody.
    storm,      // The weather is ten times as bad for all.
    set_wall,   // A host's calendar jumps by `time`.
    no_memory,  // Allocations of a process fail now and then for `time`.
    clean_up,   // DynamoDB deletes the items whose ttl is over.
  };
  Kind kind = Kind::kill;
  int target = 0;  // A program or a host, by its number.
  Time at{};
  nanoseconds time{};
};

struct Plan {
  std::uint64_t seed = 0;
  tests::Layout layout = tests::Layout::ddblock;
  bool keep_row = false;
  std::string sort_key{};  // The attribute; empty: the table has none.
  int locks = 1;
  // The attributes of an item that is no lock, under a name of its own.  Empty:
  // there is no item of that name, and none must be made.
  std::optional<std::string> odd_row{};
  // The table's key, if it is not the one that the programs name.
  Service::Key wrong_key{};
  bool has_wrong_key() const { return !wrong_key.partition.empty(); }
  // The locks are rows of work, and programs take any one of them.
  bool jobs = false;
  // Programs lock and unlock the one lock in tight loops, and do nothing else.
  bool loops = false;
  nanoseconds beat{};  // All do so at once, at multiples of this time.
  int other_rows = 0;  // In the same table.
  // An operator frees locks by force whose takers have not heard yet that they
  // have them.
  bool has_operator = false;
  // Options::patience of all programs, if it is the same for all.
  std::optional<std::chrono::milliseconds> patience{};
  std::chrono::milliseconds ttl{};  // The usual one; a mutex may have another.
  // How long programs hold a lock, and how long they do nothing.
  nanoseconds shortest_hold = std::chrono::microseconds(1);
  nanoseconds longest_hold{};
  nanoseconds longest_rest{};
  std::vector<HostPlan> hosts;
  std::vector<ProgramPlan> programs;
  std::vector<FaultPlan> faults;
  Climate climate;
  Weather weather;
  FrontEnds front_ends;
  // From then on there are no faults, and no delayed message is under way.  In
  // the end all locks must be free.
  Time calm{};
};

Plan draw_plan(std::uint64_t seed);

// For people.
std::string seconds_of(nanoseconds time);  // "1.25 s"
std::string description_of(const FaultPlan& fault);

// What came of a life.
struct Outcome {
  std::vector<std::string> wrong;  // What the judge reports.
  std::uint64_t acquisitions = 0;
  std::uint64_t faults = 0;
  Time length{};
  std::vector<std::string> story;  // Empty if nobody wanted to hear it.
};

// Lives the plan, once in a (real) process.  `hear` is told the story, line by
// line; null: nobody wants to hear it.
using Hear = std::function<void(const std::string& line)>;
Outcome live(const Plan& plan, const Hear& hear);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_PLAN_HPP
