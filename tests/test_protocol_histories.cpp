// Random histories of the protocol: every request, verdict and claim must be
// what a reference written apart from it says, and the promises must hold.
//
//   DDBMUTEX_HISTORIES=n  how many (`make soak`: 100,000)
//   DDBMUTEX_SEED=n       other ones
//   DDBMUTEX_HISTORY=n    that one alone, with a trace on standard error
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/support/simulated_hosts.hpp"

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoull(value);
}

// What went wrong in that history; nothing if all is well.
std::string difference_in(std::uint64_t seed, std::uint64_t number,
                          simulation::Theme theme, simulation::Tally& tally,
                          std::ostream* trace) {
  try {
    simulation::run_history(seed, number, theme, tally, trace);
    return {};
  } catch (const simulation::Difference& difference) {
    std::ostringstream text;
    text << difference.what() << "\n  replay: DDBMUTEX_SEED=" << seed
         << " DDBMUTEX_HISTORY=" << number;
    return text.str();
  }
}

// Histories that never come near a decision would prove nothing about it.
void check_reach(const simulation::Tally& tally) {
  for (std::size_t i = 0; i < tally.verdicts.size(); ++i) {
    BOOST_TEST_CONTEXT("verdict " << i) { BOOST_TEST(tally.verdicts[i] > 0); }
  }
  BOOST_TEST(tally.looks_before_takes > 0);
  BOOST_TEST(tally.beyond_all_clocks > 0);
  BOOST_TEST(tally.pinned_takes > 0);
  BOOST_TEST(tally.looks_in_renewals > 0);
  BOOST_TEST(tally.answers_after_claim > 0);
  BOOST_TEST(tally.claims_cut_short > 0);
  BOOST_TEST(tally.lapsed_releases > 0);
  BOOST_TEST(tally.safe_histories > 0);
  BOOST_TEST(tally.kept_grants > 0);
  BOOST_TEST(tally.settlings > 0);
  BOOST_TEST(tally.late_takes > 0);
  BOOST_TEST(tally.changes_applied > 0);
  BOOST_TEST(tally.handed_over > 0);
  BOOST_TEST(tally.not_handed_over > 0);
  BOOST_TEST(tally.shared_grants > 0);
  BOOST_TEST(tally.foreign_takes > 0);
  BOOST_TEST(tally.guards_reopened > 0);
  // Stamps are told apart by the attempt's number modulo 1000.
  BOOST_TEST(tally.longest_acquisition > 1000);
}

// So many of them, or the one that is asked for; false if that.
bool run_histories(std::uint64_t histories, simulation::Theme theme,
                   simulation::Tally& tally) {
  const std::uint64_t seed = from_environment("DDBMUTEX_SEED", 1);
  if (std::getenv("DDBMUTEX_HISTORY") != nullptr) {
    const std::uint64_t number = from_environment("DDBMUTEX_HISTORY", 0);
    const std::string what =
        difference_in(seed, number, theme, tally, &std::cerr);
    BOOST_TEST(what.empty(), what);
    return false;
  }
  // Half of them are always the same, so that what they reach is, too.
  for (std::uint64_t number = 0; number < histories; ++number) {
    const std::uint64_t drawn = number < histories / 2 ? 1 : seed;
    const std::string what =
        difference_in(drawn, number, theme, tally, nullptr);
    if (!what.empty()) BOOST_FAIL(what);
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(protocol_histories)

BOOST_AUTO_TEST_CASE(random_histories_agree_with_reference_and_keep_promises) {
  const std::uint64_t histories =
      from_environment("DDBMUTEX_HISTORIES", 20'000);
  simulation::Tally tally;
  if (!run_histories(histories, simulation::Theme::anything, tally)) return;
  if (histories >= 10'000) check_reach(tally);
}

// Nor, of shorter leases, one that is longer than is said.
BOOST_AUTO_TEST_CASE(pauses_that_nobody_notices_open_no_window_from_10_s_on) {
  const std::uint64_t histories =
      from_environment("DDBMUTEX_HISTORIES", 20'000) / 4;
  simulation::Tally tally;
  if (!run_histories(histories, simulation::Theme::pauses, tally)) return;
  if (histories < 2'500) return;
  BOOST_TEST(tally.paused_claims > 0u);
  BOOST_TEST(tally.paused_short_claims > 0u);
  // Below 10 s there is one.
  BOOST_TEST(tally.longest_overlap.count() > 0);
}

BOOST_AUTO_TEST_SUITE_END()
