// Fencing tokens that eight processes are given while they are killed:
//
//   tokens [GRANTS] [SEED]
//
// The processes (token_worker.cpp) take and release 64 kept locks of an engine
// of our own until there have been so many acquisitions in all; a process that
// chance picks is killed again and again, and another takes its place.  The
// rows are there before, with an attribute that is nobody's business.
//
// The status is 0 if in each name the tokens grew strictly in the order of the
// acquisitions, none was given twice, no two claims overlapped, no row counted
// less than was given, and each still had that attribute.
#include "tests/claims/tokens.hpp"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/claims/crew.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace std::chrono_literals;
using claims::Token;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using std::chrono::milliseconds;

constexpr int kProcesses = 8;
constexpr int kLocks = 64;
constexpr int kThreads = 3;  // Of each process.
// The dead are waited out.  So long that a busy machine gets a request through
// in a quarter of it.
constexpr milliseconds kTtl{1000};
constexpr auto kProgressEach = 10s;

class Run {
 public:
  Run(std::uint64_t goal, unsigned seed)
      : goal_(goal), crew_("token-", seed, [this](int number, unsigned own) {
          return std::vector<std::string>{
              tests::program_path("processes/token_worker"),
              crew_.table(),
              std::to_string(kLocks),
              std::to_string(kThreads),
              std::to_string(kTtl.count()),
              std::to_string(own),
              crew_.log_of(number),
              crew_.directory() + "/count"};
        }) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool succeeds() {
    for (int i = 0; i < kLocks; ++i) crew_.make_row(i);
    start_ = shown_ = BootClock::now();
    crew_.start(kProcesses);
    while (crew_.acquired() < goal_ && crew_.look() && crew_.all_at_work()) {
      if (BootClock::now() - shown_ >= kProgressEach) progress();
      std::this_thread::sleep_for(5ms);
    }
    const bool all = crew_.all_at_work();
    if (!all) std::printf("a process ended by itself\n");
    const bool ended = crew_.end();
    time_ = BootClock::now() - start_;
    return judge() && all && ended && !crew_.complained();
  }

 private:
  void progress() {
    shown_ += kProgressEach;
    const double gone =
        std::chrono::duration<double>(BootClock::now() - start_).count();
    std::printf("%4.0f s: %" PRIu64 " of %" PRIu64
                " acquisitions, %.0f a second, %d kills\n",
                gone, crew_.acquired(), goal_,
                static_cast<double>(crew_.acquired()) / gone, crew_.kills());
    std::fflush(stdout);
  }

  bool judge() {
    std::vector<std::string> wrong;
    const claims::TokenFindings found =
        claims::judge_tokens(crew_.grants(wrong));
    wrong.insert(wrong.end(), found.wrong.begin(), found.wrong.end());
    Token numbers = 0;
    for (int i = 0; i < kLocks; ++i) {
      const Token token = crew_.number_in(i, "token", wrong);
      const std::string problem = claims::row_problem(found, i, token);
      if (!problem.empty()) wrong.push_back(problem);
      numbers += token;
    }
    claims::print_wrong(wrong);
    const double seconds = std::chrono::duration<double>(time_).count();
    std::printf(
        "%zu tokens of %zu names to %d processes in %.1f s (%.0f a "
        "second), %d hand-overs, %d kills, %" PRIu64
        " numbers that nobody got, %zu wrong\n",
        found.all, found.grants.size(), crew_.started(), seconds,
        static_cast<double>(found.all) / seconds, found.hand_overs,
        crew_.kills(), numbers - found.all, wrong.size());
    return wrong.empty() && found.all >= goal_;
  }

  const std::uint64_t goal_;
  claims::Crew crew_;
  BootTime start_{}, shown_{};
  std::chrono::nanoseconds time_{};
};

}  // namespace

int main(int argc, char** argv) try {
  const std::uint64_t goal = argc > 1 ? std::stoull(argv[1]) : 200000;
  if (argc > 3 || goal == 0) {
    std::fprintf(stderr, "usage: tokens [GRANTS] [SEED]\n");
    return 2;
  }
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::stoul(argv[2]))
                                 : std::random_device()();
  tests::catch_signals();
  std::printf("%" PRIu64 " tokens over %d names by %d processes, seed %u\n",
              goal, kLocks, kProcesses, seed);
  std::fflush(stdout);
  return Run(goal, seed).succeeds() ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return tests::interrupted != 0 ? 130 : 1;
}
