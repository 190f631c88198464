// The claims that processes make to one lock, and the renewals of a process
// that holds many: first whether the judges judge well, then short runs (`make
// soak` has the long ones).
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/claims/claims.hpp"
#include "tests/claims/spread.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/process.hpp"

namespace {

using claims::Claim;
using claims::Findings;
using claims::judge;
using claims::Log;
using claims::nanoseconds;
using tests::Process;

Claim claim(int process, int begin, int end) {
  return {process, nanoseconds(begin), nanoseconds(end)};
}

Log read(const std::string& text) {
  std::istringstream in(text);
  return claims::LogReader(1).read(in);
}

std::string claims_of(const Log& log) {
  std::string text;
  for (const Claim& one : log.claims) text += words_of(one) + " ";
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(claims_judge)

BOOST_AUTO_TEST_CASE(claims_that_follow_each_other_do_not_overlap) {
  const Findings found =
      judge({claim(2, 20, 30), claim(1, 10, 20), claim(1, 35, 40)});
  BOOST_TEST(found.overlaps.empty());
  BOOST_TEST(found.claims == 3);
  BOOST_TEST(found.longest_gap.count() == 5);
}

BOOST_AUTO_TEST_CASE(an_overlap_of_a_nanosecond_is_found_and_told) {
  const Findings found = judge({claim(1, 10, 21), claim(2, 20, 30)});
  BOOST_TEST_REQUIRE(found.overlaps.size() == 1u);
  BOOST_TEST(words_of(found.overlaps[0]) ==
             "process 1 [10, 21) and process 2 [20, 30)");
}

BOOST_AUTO_TEST_CASE(an_overlap_with_a_claim_that_is_not_the_last_is_found) {
  const Findings found =
      judge({claim(1, 0, 100), claim(2, 10, 20), claim(3, 90, 95)});
  BOOST_TEST(found.overlaps.size() == 2u);
}

BOOST_AUTO_TEST_CASE(claims_that_begin_together_overlap) {
  BOOST_TEST(judge({claim(1, 5, 6), claim(2, 5, 7)}).overlaps.size() == 1u);
}

BOOST_AUTO_TEST_CASE(claims_of_one_process_may_not_overlap_either) {
  BOOST_TEST(judge({claim(1, 5, 8), claim(1, 7, 9)}).overlaps.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_claim_of_no_time_overlaps_nothing_and_is_no_entry) {
  const Findings found = judge({claim(1, 0, 10), claim(2, 5, 5)});
  BOOST_TEST(found.overlaps.empty());
  BOOST_TEST(found.got_in.count(2) == 0u);
}

BOOST_AUTO_TEST_CASE(a_hand_over_goes_from_one_process_to_another) {
  const Findings found = judge({claim(1, 0, 1), claim(1, 2, 3), claim(2, 4, 5),
                                claim(1, 6, 7), claim(1, 8, 9)});
  BOOST_TEST(found.hand_overs == 2);
  BOOST_TEST(found.got_in.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_log_is_read_as_claims) {
  const Log log = read(
      "clocks -3600000000000 5\n"
      "acquired 10\nheld 15\nended 20\nacquired 30\nended 25\n");
  BOOST_TEST(log.problem == "");
  BOOST_TEST(claims_of(log) == "process 1 [10, 20) process 1 [30, 30) ");
  BOOST_TEST_REQUIRE(log.clocks.has_value());
  BOOST_TEST(log.clocks->calendar.count() == -3600000000000);
  BOOST_TEST(log.clocks->boot.count() == 5);
}

BOOST_AUTO_TEST_CASE(a_claim_cut_short_by_a_kill_reaches_to_when_last_held) {
  const Log log = read("acquired 10\nheld 15\nheld 17\nended 1");
  BOOST_TEST(log.problem == "");
  BOOST_TEST(claims_of(log) == "process 1 [10, 17) ");
}

BOOST_AUTO_TEST_CASE(a_log_that_makes_no_sense_is_a_problem) {
  for (const char* text : {"acquired 1\nacquired 2\n", "ended 1\n", "held 1\n",
                           "acquired\n", "failed cannot lock\n", "acquired x\n",
                           "nonsense 1\n", "clocks 1\n", "\n"}) {
    BOOST_TEST(read(text).problem != "", text);
  }
}

BOOST_AUTO_TEST_CASE(a_log_that_is_written_is_read_alike) {
  char name[] = "/tmp/ddbmutex-log-XXXXXX";
  close(mkstemp(name));
  claims::LogWriter writer(name);
  BOOST_TEST(writer.clocks(nanoseconds(7), nanoseconds(-8)));
  BOOST_TEST(writer.acquired(nanoseconds(1)));
  BOOST_TEST(writer.held(nanoseconds(2)));
  BOOST_TEST(writer.ended(nanoseconds(3)));
  BOOST_TEST(writer.failed("for a reason"));
  std::ifstream in(name);
  const Log log = claims::LogReader(1).read(in);
  BOOST_TEST(claims_of(log) == "process 1 [1, 3) ");
  BOOST_TEST(log.clocks->calendar.count() == 7);
  BOOST_TEST(log.clocks->boot.count() == -8);
  BOOST_TEST(log.problem == "unexpected 'failed for a reason'");
  unlink(name);
}

BOOST_AUTO_TEST_CASE(even_renewals_are_spread) {
  const std::vector<std::uint64_t> even(claims::kWindowsPerPeriod, 20);
  BOOST_TEST(claims::busiest_percent(even) == 6u);
  // Over a quarter of the lease.
  std::vector<std::uint64_t> half(claims::kWindowsPerPeriod, 0);
  std::fill(half.begin(), half.begin() + 25, 4);
  BOOST_TEST(claims::busiest_percent(half) == 12u);
}

BOOST_AUTO_TEST_CASE(a_swarm_of_renewals_in_one_period_is_found) {
  std::vector<std::uint64_t> windows(2 * claims::kWindowsPerPeriod, 1);
  windows[70] = 30;
  windows[71] = 30;
  BOOST_TEST(claims::busiest_percent(windows) > claims::kMostInBusiest);
  BOOST_TEST(claims::busiest_percent({windows.begin(), windows.begin() + 60}) ==
             6u);
  BOOST_TEST(claims::busiest_percent(windows, 108) > claims::kMostInBusiest);
  BOOST_TEST(claims::busiest_percent(windows, 109) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(claims_run)

namespace {

std::unique_ptr<Process> start(const std::vector<std::string>& words) {
  std::vector<std::string> command = words;
  command[0] = tests::program_path("claims/" + words[0]);
  return std::make_unique<Process>(
      tests::ProcessSettings{command, tests::clean_environment()});
}

// All it says goes to whoever reads the tests' output: the seed above all.
void must_end_well(Process& process) {
  std::string said;
  try {
    for (;;) said += "\n  " + process.channel().line(5 * tests::kPlenty);
  } catch (const std::runtime_error&) {  // The end of what it says.
  }
  BOOST_TEST_MESSAGE("claims:" << said);
  BOOST_TEST(process.wait() == 0, said);
  BOOST_TEST(process.complaints() == "");
}

}  // namespace

// At once, since each takes its time and little else.  Renewals have a lease in
// which a second that a machine stands still is no swarm.
BOOST_AUTO_TEST_CASE(no_claims_overlap_and_many_locks_are_held_together) {
  const auto seed = std::to_string(std::random_device()());
  std::vector<std::unique_ptr<Process>> runs;
  runs.push_back(start({"run", "6", "true", seed, "120"}));
  if (tests::FakeCalendar::works()) {
    runs.push_back(start({"run", "6", "false", seed, "120"}));
  } else {
    BOOST_TEST_MESSAGE("not checked: false calendars, not in this build");
  }
  runs.push_back(start({"many", "100", "20", "21"}));
  runs.push_back(start({"many", "1000", "30", "45", "away"}));
  for (const auto& run : runs) must_end_well(*run);
}

BOOST_AUTO_TEST_SUITE_END()
