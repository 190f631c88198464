// Lives in the simulated world (tests/world) with fixed seeds, lives of the
// seeds that have found a defect, and the tools that make a failure's story
// short. `make world` lives other seeds.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"
#include "tests/world/plan.hpp"
#include "tests/world/shrink.hpp"

using tests::Ran;
using tests::shell;
using world::draw_plan;
using world::FaultPlan;
using world::Plan;
using world::ProgramPlan;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kLives = "30";
#else
constexpr const char* kLives = "200";
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

bool kills(const Plan& plan, int program) {
  return std::any_of(plan.faults.begin(), plan.faults.end(),
                     [program](const FaultPlan& fault) {
                       return fault.kind == FaultPlan::Kind::kill &&
                              fault.target == program;
                     });
}

bool takes_step(const Plan& plan, int program, int step) {
  for (const ProgramPlan& own : plan.programs) {
    if (own.number != program) continue;
    const auto& steps = own.steps;
    return std::find(steps.begin(), steps.end(), step) != steps.end();
  }
  return false;
}

// A plan with everything that a failure may need, and much more.
Plan large_plan() {
  Plan plan = draw_plan(1);
  plan.programs.clear();
  for (int number = 0; number < 5; ++number) {
    ProgramPlan own;
    own.number = number;
    own.threads = 3;
    for (int step = 0; step < 100; ++step) own.steps.push_back(step);
    plan.programs.push_back(own);
    FaultPlan kill;
    kill.target = number;
    plan.faults.push_back(kill);
  }
  plan.weather.lost = plan.weather.doubled = 0.1;
  return plan;
}

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
  const Ran once = run_world("stories 10 1");
  BOOST_TEST(once.status == 0, once.said);
  BOOST_TEST(run_world("stories 10 1").said == once.said);
  BOOST_TEST(std::count(once.said.begin(), once.said.end(), '\n') == 10);
}

BOOST_AUTO_TEST_CASE(same_seed_draws_the_same_plan_and_others_do_not) {
  BOOST_TEST(world::description_of(draw_plan(7)) ==
                 world::description_of(draw_plan(7)),
             boost::test_tools::per_element());
  BOOST_TEST((world::description_of(draw_plan(7)) !=
              world::description_of(draw_plan(8))));
}

BOOST_AUTO_TEST_CASE(failure_is_made_as_small_as_it_can_be) {
  const auto fails = [](const Plan& plan) {
    return kills(plan, 3) && takes_step(plan, 3, 57) &&
           takes_step(plan, 1, 8) && plan.weather.doubled > 0;
  };
  const Plan small = world::shrink(large_plan(), fails, 400);
  BOOST_TEST(fails(small));
  BOOST_TEST(small.faults.size() == 1u);
  BOOST_TEST_REQUIRE(small.programs.size() == 2u);
  for (const ProgramPlan& own : small.programs) {
    BOOST_TEST(own.steps.size() == 1u);
    BOOST_TEST(own.threads == 1);
  }
  BOOST_TEST(small.weather.lost == 0);
}

BOOST_AUTO_TEST_CASE(making_it_smaller_stops_after_so_many_lives) {
  int asked = 0;
  world::shrink(
      large_plan(),
      [&asked](const Plan&) {
        ++asked;
        return false;
      },
      20);
  BOOST_TEST(asked == 20);
}

BOOST_AUTO_TEST_CASE(wrong_call_says_how_it_is_called) {
  for (const char* words : {"", "seed", "seed 1 2 3", "years 1"}) {
    const Ran ran = run_world(words);
    BOOST_TEST(ran.status == 2, words);
    BOOST_TEST(ran.said.find("usage: world") == 0u, ran.said);
  }
}

BOOST_AUTO_TEST_CASE(wrong_number_is_named) {
  const std::pair<const char*, const char*> all[] = {
      {"seed x", "\"x\" is no number"},
      {"lives -1 1", "\"-1\" is no number"},
      {"minutes 0.5", "\"0.5\" is no number"},
      {"seed ''", "\"\" is no number"},
      {"seed 99999999999999999999", "99999999999999999999 is too large"},
      {"minutes 0", "0 is not from 1 to 1000000000"}};
  for (const auto& [words, said] : all) {
    const Ran ran = run_world(words);
    BOOST_TEST(ran.status == 2, words);
    BOOST_TEST(ran.said.find(std::string("world: ") + said + "\nusage: ") == 0u,
               ran.said);
  }
}

BOOST_AUTO_TEST_SUITE_END()
