// Items that many processes get any one of, while they are killed:
//
//   any_of [ITEMS] [PROCESSES] [ROUNDS] [SEED]
//
// Each item (a row of an engine of our own) is to be done so many times, by
// processes (any_of_worker.cpp) of which one that chance picks is killed again
// and again, with what it holds, and another takes its place.
//
// Status 0 if no two ever held one item at once, no token was given twice, each
// round of each item was done once, all were done in the end, none was given
// out after that, and no item that was free waited while others were got for
// much longer than all are got once.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/claims/crew.hpp"
#include "tests/claims/items.hpp"
#include "tests/claims/shared_count.hpp"
#include "tests/claims/tokens.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using std::chrono::milliseconds;

// So long that a busy machine gets a request through in a quarter of it.
constexpr milliseconds kTtl{4000};
constexpr milliseconds kLongestHold{40};
// A free item may wait for so many times all the others, and 100 more.
constexpr std::size_t kMostWaits = 8;
constexpr const char* kPrefix = "item-";

struct Goal {
  int items, processes, rounds;
};

class Run {
 public:
  Run(const Goal& goal, unsigned seed)
      : goal_(goal),
        crew_(kPrefix, seed,
              [this](int number, unsigned own) {
                return std::vector<std::string>{
                    tests::program_path("processes/any_of_worker"),
                    crew_.table(),
                    kPrefix,
                    std::to_string(goal_.rounds),
                    std::to_string(kTtl.count()),
                    std::to_string(kLongestHold.count()),
                    std::to_string(own),
                    crew_.directory(),
                    std::to_string(number)};
              }),
        requests_(crew_.directory() + "/requests"),
        passes_(crew_.directory() + "/passes") {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Who finds nothing left to do ends by itself.
  bool succeeds() {
    for (int i = 0; i < goal_.items; ++i) crew_.make_row(i);
    const ddbmutex::BootTime start = BootClock::now();
    crew_.start(goal_.processes);
    bool well = true;
    while (well && !crew_.none_at_work()) {
      well = crew_.look();
      std::this_thread::sleep_for(5ms);
    }
    time_ = BootClock::now() - start;
    well = crew_.end() && well;
    return judge() && well && !crew_.complained();
  }

 private:
  std::vector<claims::Done> all_done() const {
    std::vector<claims::Done> all;
    for (int i = 0; i < crew_.started(); ++i) {
      std::ifstream log(crew_.log_of(i) + ".done");
      const auto more = claims::read_done(log);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  bool judge() {
    std::vector<std::string> wrong;
    const auto add = [&wrong](const std::vector<std::string>& more) {
      wrong.insert(wrong.end(), more.begin(), more.end());
    };
    const std::vector<claims::Grant> grants = crew_.grants(wrong);
    const claims::TokenFindings tokens = claims::judge_tokens(grants);
    add(tokens.wrong);
    const std::vector<claims::Done> done = all_done();
    const auto items = claims::judge_items(done, grants, goal_.rounds);
    add(items.wrong);
    for (int i = 0; i < goal_.items; ++i) {
      const auto rounds = crew_.number_in(i, "rounds", wrong);
      if (rounds == static_cast<unsigned>(goal_.rounds)) continue;
      wrong.push_back("item " + std::to_string(i) + ": " +
                      std::to_string(rounds) + " rounds");
    }
    const std::size_t most =
        kMostWaits * static_cast<std::size_t>(goal_.items) + 100;
    if (items.longest_wait > most) wrong.push_back("an item starved");
    claims::print_wrong(wrong);
    summary(tokens, items, done.size(), wrong.size());
    return wrong.empty();
  }

  void summary(const claims::TokenFindings& tokens,
               const claims::ItemFindings& items, std::size_t done,
               std::size_t wrong) const {
    const double seconds = std::chrono::duration<double>(time_).count();
    const double all = static_cast<double>(goal_.items) * goal_.rounds;
    std::printf(
        "%zu rounds told as done, %zu acquisitions by %d processes in %.1f s, "
        "%d kills, %d hand-overs; %.2f requests for each round that is done, "
        "%.2f of them of passes; a free item waited for %zu others at the "
        "most (%zu is too many); %zu wrong\n",
        done, tokens.all, crew_.started(), seconds, crew_.kills(),
        tokens.hand_overs, static_cast<double>(requests_.now()) / all,
        static_cast<double>(passes_.now()) / all, items.longest_wait,
        kMostWaits * static_cast<std::size_t>(goal_.items) + 101, wrong);
  }

  const Goal goal_;
  claims::Crew crew_;
  claims::SharedCount requests_, passes_;
  std::chrono::nanoseconds time_{};
};

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int which, int otherwise) {
    return argc > which ? std::stoi(argv[which]) : otherwise;
  };
  const Goal goal = {number(1, 1000), number(2, 16), number(3, 1)};
  if (argc > 5 || goal.items < 1 || goal.processes < 1 || goal.rounds < 1) {
    std::fprintf(stderr, "usage: any_of [ITEMS] [PROCESSES] [ROUNDS] [SEED]\n");
    return 2;
  }
  const unsigned seed = argc > 4 ? static_cast<unsigned>(std::stoul(argv[4]))
                                 : std::random_device()();
  tests::catch_signals();
  std::printf("%d items, each %d times, by %d processes, seed %u\n", goal.items,
              goal.rounds, goal.processes, seed);
  std::fflush(stdout);
  return Run(goal, seed).succeeds() ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return tests::interrupted != 0 ? 130 : 1;
}
