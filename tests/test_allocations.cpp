// Allocations that fail: a part of what tests/processes/allocations.cpp plays,
// drawn by the seed, and whether it notices what is wrong.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace {

struct Played {
  int status;
  std::string said;
};

// What is never to come is not waited for so long.
constexpr const char* kImpatient = "DDBMUTEX_TEST_PLENTY=1";

Played play(const std::vector<std::string>& words,
            const std::vector<std::string>& variables = {}) {
  std::vector<std::string> command = {
      tests::program_path("processes/allocations")};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<std::string> environment = tests::clean_environment();
  environment.insert(environment.end(), variables.begin(), variables.end());
  tests::Process run({command, environment});
  Played played{};
  try {
    for (;;) {
      played.said += "\n  " + run.channel().line(std::chrono::minutes(10));
    }
  } catch (const std::runtime_error&) {  // The end of what it says.
  }
  played.status = run.wait();
  played.said += "\n" + run.complaints();
  return played;
}

std::string seed() {
  const char* given = std::getenv("DDBMUTEX_SEED");
  return given != nullptr ? given : "1";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(allocations)

BOOST_AUTO_TEST_CASE(calls_survive_that_an_allocation_fails) {
  const Played played = play({"step=100", "seed=" + seed()});
  BOOST_TEST_MESSAGE("allocations:" << played.said);
  BOOST_TEST(played.status == 0, played.said);
}

// The calls that everybody makes, without gaps.
BOOST_AUTO_TEST_CASE(common_calls_survive_every_failed_allocation) {
  for (const char* scenario : {"lock_warm", "unlock", "renew", "renewals"}) {
    const Played played = play({std::string("scenario=") + scenario});
    BOOST_TEST(played.status == 0, played.said);
  }
}

// A call of each kind that is wrong, and what is to be said of it.
const std::map<std::string, std::string> kMistakes = {
    {"mistake_ends_the_process", "terminated by signal 6"},
    {"mistake_hangs", "it hangs"},
    {"mistake_leaks", "memory leak"},
    {"mistake_leaves_it_locked", "the mutex is stuck"},
};

BOOST_AUTO_TEST_CASE(what_is_wrong_is_noticed) {
  const Played played = play({"scenario=mistakes"}, {kImpatient});
  BOOST_TEST(played.status == 1, played.said);
  for (const auto& [mistake, wanted] : kMistakes) {
    const auto begin = played.said.find("WRONG: " + mistake + " n=");
    BOOST_TEST_REQUIRE((begin != std::string::npos), mistake << played.said);
    const auto end = played.said.find('\n', begin);
    const std::string line = played.said.substr(begin, end - begin);
    BOOST_TEST((line.find(wanted) != std::string::npos), line);
  }
}

BOOST_AUTO_TEST_SUITE_END()
