// Lives in the simulated world:
//
//   world minutes N [FIRST]  for N minutes, on all cores
//   world lives N [FIRST]    N lives, on all cores
//   world until N [FIRST]    until a life goes wrong, for at most N seconds of
//                            computing
//   world seed N [all]       one life; its story if it is wrong (all: always)
//   world stories N [FIRST]  N lives, and a line for each: its story's hash
//   world names N            locks are held while no host name resolves; N is
//                            the seed
//   world refused N          locks are held while no connection can be made
//
// The seeds begin with FIRST, which is drawn if it is left out.  The story of a
// life that goes wrong is told (except by `until`).  The last line of the first
// three is "L lives, A acquisitions, F faults, W wrong".  The status is 0
// if nothing is wrong.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/world/names.hpp"
#include "tests/world/plan.hpp"
#include "tests/world/runner.hpp"

namespace {

using world::Outcome;
using world::Plan;

// After many lives, at most so many stories are told.
constexpr std::size_t kStories = 3;

int usage() {
  std::fputs(
      "usage: world minutes N [FIRST] | lives N [FIRST] | until N [FIRST] |\n"
      "  seed N [all] | stories N [FIRST] | names N | refused N\n",
      stderr);
  return 2;
}

std::uint64_t number_in(const std::string& text) { return std::stoull(text); }

// Short enough to be typed.
std::uint64_t drawn() {
  std::random_device device;
  return std::uint64_t{device() % 1'000'000} * 1'000'000;
}

void tell(const Outcome& outcome) {
  for (const std::string& line : outcome.story) std::puts(line.c_str());
  for (const std::string& wrong : outcome.wrong) {
    std::printf("WRONG: %s\n", wrong.c_str());
  }
}

void tell_story(std::uint64_t seed) {
  const Plan plan = world::draw_plan(seed);
  std::printf("\nseed %" PRIu64 "\n", seed);
  tell(world::live_apart(plan, true));
}

int live_one(std::uint64_t seed, bool all) {
  const Plan plan = world::draw_plan(seed);
  const Outcome outcome = world::live_apart(plan, all);
  if (all) {
    std::printf("seed %" PRIu64 "\n", seed);
    tell(outcome);
  }
  std::printf("seed %" PRIu64 ": %" PRIu64 " acquisitions, %" PRIu64
              " faults, %s, %zu wrong\n",
              seed, outcome.acquisitions, outcome.faults,
              world::seconds_of(outcome.length).c_str(), outcome.wrong.size());
  if (outcome.wrong.empty()) return 0;
  if (!all) tell_story(seed);
  return 1;
}

int live_all(const world::Many& many) {
  std::printf("seeds from %" PRIu64 " on\n", many.first);
  const world::Totals totals = world::live_many(many);
  const std::size_t stories =
      many.until_wrong ? 0 : std::min(totals.failures.size(), kStories);
  for (std::size_t i = 0; i < stories; ++i) tell_story(totals.failures[i]);
  std::printf("%" PRIu64 " lives, %" PRIu64 " acquisitions, %" PRIu64
              " faults, %" PRIu64 " wrong\n",
              totals.lives, totals.acquisitions, totals.faults, totals.wrong);
  return totals.wrong == 0 ? 0 : 1;
}

// FNV-1a.
std::uint64_t hash_of(const std::vector<std::string>& lines) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::string& line : lines) {
    for (const char c : line + "\n") {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
  }
  return hash;
}

int tell_hashes(std::uint64_t count, std::uint64_t first) {
  int status = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = first + i;
    const Outcome outcome = world::live_apart(world::draw_plan(seed), true);
    std::printf("seed %" PRIu64 ": %zu lines, %016" PRIx64 "\n", seed,
                outcome.story.size(), hash_of(outcome.story));
    if (!outcome.wrong.empty()) status = 1;
  }
  return status;
}

int tell_of_holding(const std::string& wrong) {
  std::printf("%s\n", wrong.empty() ? "all locks were held" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 2 || words.size() > 3) return usage();
  if (words[0] == "seed") {
    const bool all = words.size() == 3 && words[2] == "all";
    if (words.size() == 3 && !all) return usage();
    return live_one(number_in(words[1]), all);
  }
  const std::uint64_t number = number_in(words[1]);
  const std::uint64_t first = words.size() == 3 ? number_in(words[2]) : drawn();
  if (words[0] == "stories") return tell_hashes(number, first);
  if (words[0] == "names") {
    return tell_of_holding(world::hold_without_names(number));
  }
  if (words[0] == "refused") {
    return tell_of_holding(world::hold_without_connections(number));
  }
  world::Many many;
  many.first = first;
  if (words[0] == "minutes") {
    many.time = std::chrono::minutes(number);
  } else if (words[0] == "until") {
    many.time = std::chrono::seconds(number);
    many.until_wrong = true;
  } else if (words[0] == "lives") {
    many.count = number;
  } else {
    return usage();
  }
  return live_all(many);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::logic_error&) {  // What should be a number is none.
    return usage();
  }
}
