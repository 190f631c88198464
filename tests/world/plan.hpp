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
  // The numbers of the steps that it takes, of `steps` that were drawn.
  std::vector<int> steps;
  bool rival = false;  // A client of the library that the layout belongs to.
};

struct FaultPlan {
  enum class Kind {
    kill,       // Of a program's process.
    restart,    // The same, and it starts again after `time`.
    stop,       // A process, as by SIGSTOP.
    suspend,    // A host.
    pause,      // A host, unnoticed.
    cut_off,    // A host: no message leaves or arrives.
    outage,     // For all: the service answers nobody.
    storm,      // For all: the weather is ten times as bad.
    set_wall,   // A host's calendar jumps by `time`.
    no_memory,  // Of a process: allocations fail now and then for `time`.
    clean_up,   // DynamoDB deletes what its ttl says, if anything.
  };
  Kind kind = Kind::kill;
  int target = 0;  // A program or a host, by its number.
  Time at{};
  nanoseconds time{};
};

struct Plan {
  std::uint64_t seed = 0;
  ddbmutex::Layout layout = ddbmutex::Layout::ddblock;
  bool keep_row = false;
  std::string sort_key{};  // The attribute; empty: the table has none.
  int locks = 1;
  // There is another name, whose item is no lock: its attributes.  Empty: it
  // has none, and must not be made.
  std::optional<std::string> odd_row{};
  // The table's key, if it is not the one that the programs name.
  Service::Key wrong_key{};
  bool has_wrong_key() const { return !wrong_key.partition.empty(); }
  // The locks are rows of work, and programs take any one of them.
  bool jobs = false;
  nanoseconds beat{};  // They do so at its multiples, all at once.
  int other_rows = 0;  // In the same table.
  // Somebody frees locks by force, most of all those whose takers have not
  // heard yet that they have them.
  bool has_operator = false;
  // Programs bear errors for so long, if it is said.
  std::optional<std::chrono::milliseconds> patience{};
  std::chrono::milliseconds ttl{};  // The usual one; a mutex may have another.
  // How long a program holds a lock, and does nothing at the most.
  nanoseconds shortest_hold = std::chrono::microseconds(1);
  nanoseconds longest_hold{};
  nanoseconds longest_rest{};
  std::vector<HostPlan> hosts;
  std::vector<ProgramPlan> programs;
  std::vector<FaultPlan> faults;
  Climate climate;
  Weather weather;
  FrontEnds front_ends;
  // When the faults are over, and no delayed message is under way any more.
  // What comes then is calm, and in the end all locks must be free.
  Time calm{};
};

Plan draw_plan(std::uint64_t seed);

// For people.
std::string seconds_of(nanoseconds time);  // "1.25 s"
std::string description_of(const FaultPlan& fault);
// Who lives where, and what goes wrong: one line each.
std::vector<std::string> description_of(const Plan& plan);

// What came of it.
struct Outcome {
  std::vector<std::string> wrong;  // What the judge reports.
  std::uint64_t acquisitions = 0;
  std::uint64_t faults = 0;
  Time length{};
  std::vector<std::string> story;  // If it was heard.
};

// Once in a (real) process.  `hear` is told the story, line by line; null:
// nobody wants to hear it.
using Hear = std::function<void(const std::string& line)>;
Outcome live(const Plan& plan, const Hear& hear);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_PLAN_HPP
