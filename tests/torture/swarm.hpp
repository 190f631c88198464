// The processes of a torture (worker.cpp), and what can be done to them.
//
//   Swarm swarm({{where}}, "locks", logs, events);
//   swarm.start(3, {}, seed);
//   swarm.stop(3);
//   swarm.kill(3);
//   swarm.end();  // All that still run.
//
// All that is done, and how each ended, is written among the events.  What
// cannot be done, since the process has ended by itself, is left out.
#ifndef DDBMUTEX_TESTS_TORTURE_SWARM_HPP
#define DDBMUTEX_TESTS_TORTURE_SWARM_HPP

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_calendar.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"
#include "tests/torture/diary.hpp"

namespace torture {

// How processes come to the table.
struct Way {
  tests::Whereabouts where;
  std::string ca_file{};  // Empty: the usual one.
};

// Used by one thread, which outlives it.  None of its processes does.
class Swarm {
 public:
  // One process after the other goes the next of the ways.
  Swarm(std::vector<Way> ways, const std::string& table,
        const std::string& logs, Events& events)
      : ways_(std::move(ways)), table_(table), logs_(logs), events_(events) {}

  // With a calendar that is so far off, and can jump; else the machine's.
  void start(int process, std::optional<std::chrono::seconds> offset,
             std::uint32_t seed);
  void kill(int process);
  void stop(int process);
  void go_on(int process);
  void jump(int process, std::chrono::seconds offset);
  void go_on_all();
  // Half of them are asked to, and have kPlenty for it, half are killed.
  void end();
  // Writes of those that have ended by themselves.
  void look();

 private:
  struct Member {
    Life life;
    std::unique_ptr<tests::FakeCalendar> calendar;
    std::unique_ptr<tests::Process> process;  // Null: it does not run.
    bool stopped = false;
  };

  Member& member(int process) {
    return members_.at(static_cast<std::size_t>(process));
  }
  tests::ProcessSettings settings(const Member& member,
                                  std::uint32_t seed) const;
  bool has_written_its_clocks(const Member& member) const;
  void kill(Member& member);
  void go_on(Member& member);
  void bury(Member& member, int status);
  void await_end(Member& member, nanoseconds until);

  const std::vector<Way> ways_;
  const std::string table_;
  const std::string logs_;
  Events& events_;
  std::array<Member, kProcesses> members_;
};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_SWARM_HPP
