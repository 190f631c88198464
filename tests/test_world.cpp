// Lives in the simulated world (tests/world): with fixed seeds, and of the
// seeds that have found a defect.  `make world` lives other seeds.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"

using tests::Ran;
using tests::shell;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kLives = "20";
#else
constexpr const char* kLives = "100";
#endif

Ran run_world(const std::string& words) {
  return shell(tests::program_path("world/world") + " " + words);
}

// Lives that once went wrong.  What a seed draws changes with plan.cpp and the
// programs' steps: then `tests/mutants/run world` says which seed finds it.
struct Found {
  const char* seed;
  const char* mutant;  // It takes the remedy away.
  const char* what;
};
constexpr Found kFound[] = {
    {"1036", "freed-by-force-for-ever",
     "who was freed by force before it heard of its take waited for ever"},
    {"3387", "applied-late-for-ever",
     "so did who had forgotten its take when that was applied"},
    {"6", "written-before-the-key-was-read",
     "a table with another key let two in"},
    {"2", "holder-no-pause-margin",
     "a lease was counted on while the machine stood still"},
    {"69", "stamped-after-a-long-silence",
     "a lease that was stored after a long silence ended minutes late"},
    {"5", "contention-taken-for-trouble",
     "conflicts with others made all wait for seconds"},
    {"30", "any-of-no-deadline", "a large table was read for too long"},
    {"162", "refused-write-waits-for-a-renewal",
     "a lock was owned that a guarded write had found lost"},
    {"2", "callback-waits-for-itself", "a callback waited for its own process"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(simulated_world)

BOOST_AUTO_TEST_CASE(nothing_goes_wrong_in_lives_of_fixed_seeds) {
  const Ran ran = run_world(std::string("lives ") + kLives + " 1");
  BOOST_TEST(ran.status == 0, ran.said);
  BOOST_TEST(ran.said.find("\n" + std::string(kLives) + " lives, ") !=
             ran.said.npos);
  BOOST_TEST(ran.said.find(" faults, 0 wrong\n") != ran.said.npos);
}

BOOST_AUTO_TEST_CASE(nothing_goes_wrong_in_lives_that_found_a_defect) {
  for (const Found& found : kFound) {
    const Ran ran = run_world(std::string("seed ") + found.seed);
    BOOST_TEST(ran.status == 0,
               found.mutant << ": " << found.what << ": " << ran.said);
  }
}

BOOST_AUTO_TEST_CASE(same_seed_tells_the_same_story) {
  const Ran once = run_world("stories 5 1");
  BOOST_TEST(once.status == 0, once.said);
  BOOST_TEST(run_world("stories 5 1").said == once.said);
  BOOST_TEST(std::count(once.said.begin(), once.said.end(), '\n') == 5);
}

BOOST_AUTO_TEST_SUITE_END()
