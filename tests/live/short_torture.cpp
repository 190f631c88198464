#include "tests/live/short_torture.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/live/interruption.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/waiting.hpp"
#include "tests/torture/history.hpp"
#include "tests/torture/judge.hpp"
#include "tests/torture/mischief.hpp"
#include "tests/torture/rows.hpp"
#include "tests/torture/swarm.hpp"

namespace live {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using torture::Deed;
using torture::now;

// Leases of 0.9 to 6 s: a request may take a tenth of a second.
constexpr int kPace = 3;
constexpr int kLostAnswers = 25;  // One answer in 25 is lost.

class Run {
 public:
  Run(const tests::Whereabouts& where, Forwarder& forwarder)
      : forwarder_(forwarder),
        table_(table_at(where)),
        events_(memory_.path()),
        swarm_({{where, "", kPace}}, where.table, memory_.path(), events_) {}
  ~Run() { forwarder_.lose_one_answer_in(0); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  torture::History run(seconds time, std::uint32_t seed) {
    torture::make_rows(table_);
    const nanoseconds begin = now();
    forwarder_.lose_one_answer_in(kLostAnswers);
    for (const Deed& deed :
         torture::plan(seed, time, tests::FakeCalendar::works())) {
      pause_until(begin + deed.at);
      carry_out(deed);
    }
    pause_until(begin + time);
    forwarder_.lose_one_answer_in(0);
    swarm_.end();
    torture::take_all(table_, events_);
    return torture::read_history(memory_.path());
  }

 private:
  void pause_until(nanoseconds time) {
    while (now() < time) {
      stop_if_interrupted();
      swarm_.look();
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(time - now());
      tests::pause(std::clamp(left, 0ms, 50ms));
    }
  }

  // The deeds of the long torture to its gateway and engine are left out.
  void carry_out(const Deed& deed) {
    switch (deed.kind) {
      case Deed::Kind::start:
        return swarm_.start(deed.process, deed.offset, deed.seed);
      case Deed::Kind::kill:
        return swarm_.kill(deed.process, deed.aimed);
      case Deed::Kind::stop:
        return swarm_.stop(deed.process, deed.aimed);
      case Deed::Kind::go_on:
        return swarm_.go_on(deed.process);
      case Deed::Kind::calendar:
        return swarm_.jump(deed.process, deed.offset.value_or(0s));
      default:
        return;
    }
  }

  Forwarder& forwarder_;
  const tests::MemoryDirectory memory_;
  const std::shared_ptr<ddbmutex::Table> table_;
  torture::Events events_;
  torture::Swarm swarm_;
};

}  // namespace

bool torture_shortly(const tests::Whereabouts& where, Forwarder& forwarder,
                     seconds time, std::uint32_t seed) {
  const torture::History history = Run(where, forwarder).run(time, seed);
  const std::vector<std::string> wrongs = torture::judge(history);
  const bool well = wrongs.empty();
  std::printf("  torture, seed %u: %s, %d answers lost; %s\n", seed,
              torture::counts_of(history).c_str(), forwarder.lost(),
              well ? "nothing wrong" : "WRONG:");
  for (const std::string& one : wrongs) std::printf("    %s\n", one.c_str());
  std::fflush(stdout);
  return well;
}

}  // namespace live
