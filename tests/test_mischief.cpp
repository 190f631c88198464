// Whether the torture (tests/torture/torture.cpp) does what it says it does to
// its processes, its gateway and its engine.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/torture/diary.hpp"
#include "tests/torture/mischief.hpp"

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using torture::Deed;
using torture::plan;
using Kind = torture::Deed::Kind;

namespace {

constexpr std::uint32_t kSeeds = 200;

std::vector<std::tuple<milliseconds, Kind, int, std::uint32_t>> figures(
    const std::vector<Deed>& deeds) {
  std::vector<std::tuple<milliseconds, Kind, int, std::uint32_t>> all;
  for (const Deed& deed : deeds) {
    all.emplace_back(deed.at, deed.kind, deed.process, deed.seed);
  }
  return all;
}

int count(const std::vector<Deed>& deeds, std::set<Kind> kinds) {
  return static_cast<int>(
      std::count_if(deeds.begin(), deeds.end(),
                    [&](const Deed& deed) { return kinds.count(deed.kind); }));
}

// What there is while a plan is carried out.
struct Field {
  struct Member {
    bool runs = false;
    bool stopped = false;
    bool jumps = false;
  };
  std::array<Member, torture::kProcesses> members;
  bool open = true;
  bool engine = true;

  // Empty if it made sense.
  std::string does(const Deed& deed) {
    Member& it = members.at(static_cast<std::size_t>(deed.process));
    switch (deed.kind) {
      case Kind::start:
        if (it.runs) return "starts what runs";
        it = {true, false, deed.offset.has_value()};
        return "";
      case Kind::kill:
        if (!it.runs) return "kills what does not run";
        it = {};
        return "";
      case Kind::stop:
        if (!it.runs) return "stops what does not run";
        return set(it.stopped, true, "stops what is stopped");
      case Kind::go_on:
        return set(it.stopped, false, "goes on with what is not stopped");
      case Kind::calendar:
        return it.jumps && deed.offset ? "" : "a calendar that cannot jump";
      case Kind::refuse:
      case Kind::hang:
        return set(open, false, "blocks what is not open");
      case Kind::open:
        return set(open, true, "opens what is open");
      case Kind::engine_down:
        return set(engine, false, "an engine that is down");
      case Kind::engine_up:
        return set(engine, true, "an engine that is up");
    }
    return "no such deed";
  }

  static std::string set(bool& what, bool to, const std::string& otherwise) {
    if (what == to) return otherwise;
    what = to;
    return "";
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(torture_mischief)

BOOST_AUTO_TEST_CASE(a_seed_repeats_its_plan_and_another_has_another) {
  BOOST_TEST((figures(plan(7, 60s, true)) == figures(plan(7, 60s, true))));
  BOOST_TEST((figures(plan(7, 60s, true)) != figures(plan(8, 60s, true))));
}

BOOST_AUTO_TEST_CASE(each_deed_makes_sense_after_those_before_it) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Field field;
    milliseconds last = 0ms;
    for (const Deed& deed : plan(seed, 120s, true)) {
      const std::string problem = field.does(deed);
      BOOST_TEST_REQUIRE(problem == "", "seed " << seed << ": " << problem);
      BOOST_TEST_REQUIRE((last <= deed.at && deed.at < 120s));
      last = deed.at;
    }
  }
}

BOOST_AUTO_TEST_CASE(a_plan_begins_with_all_processes) {
  const auto deeds = plan(3, 60s, true);
  for (int i = 0; i < torture::kProcesses; ++i) {
    const Deed& deed = deeds[static_cast<std::size_t>(i)];
    BOOST_TEST((deed.kind == Kind::start && deed.at == 0ms));
    BOOST_TEST(deed.process == i);
  }
}

BOOST_AUTO_TEST_CASE(ten_minutes_have_more_kills_and_stops_than_their_bar) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const auto deeds = plan(seed, 600s, true);
    BOOST_TEST_REQUIRE(count(deeds, {Kind::kill, Kind::stop}) > 350);
    BOOST_TEST_REQUIRE(count(deeds, {Kind::kill}) > 150);
    BOOST_TEST_REQUIRE(count(deeds, {Kind::stop}) > 150);
    BOOST_TEST_REQUIRE(count(deeds, {Kind::calendar}) > 100);
    const auto aimed = std::count_if(deeds.begin(), deeds.end(),
                                     [](const Deed& one) { return one.aimed; });
    BOOST_TEST_REQUIRE(aimed > 200);
  }
}

BOOST_AUTO_TEST_CASE(a_minute_has_outages_of_the_gateway_and_of_the_engine) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const auto deeds = plan(seed, 60s, true);
    BOOST_TEST_REQUIRE(count(deeds, {Kind::refuse, Kind::hang}) >= 2);
    BOOST_TEST_REQUIRE(count(deeds, {Kind::engine_down}) >= 1);
  }
}

BOOST_AUTO_TEST_CASE(
    some_of_the_stopped_outlast_any_lease_and_some_are_killed) {
  std::map<int, milliseconds> stopped;
  int longer = 0;
  int killed = 0;
  for (const Deed& deed : plan(1, 600s, true)) {
    const auto it = stopped.find(deed.process);
    if (it != stopped.end()) {
      if (deed.kind == Kind::calendar) continue;
      longer += deed.at - it->second > 2020ms;
      killed += deed.kind == Kind::kill;
      stopped.erase(it);
    }
    if (deed.kind == Kind::stop) stopped[deed.process] = deed.at;
  }
  BOOST_TEST(longer > 10);
  BOOST_TEST(killed > 10);
}

BOOST_AUTO_TEST_CASE(calendars_are_hours_off_both_ways_unless_there_are_none) {
  int true_ones = 0;
  std::set<bool> ahead;
  for (const Deed& deed : plan(1, 120s, true)) {
    if (deed.kind == Kind::start && !deed.offset) ++true_ones;
    if (!deed.offset) continue;
    BOOST_TEST((std::chrono::abs(*deed.offset) <= 12h));
    if (std::chrono::abs(*deed.offset) > 1h) ahead.insert(*deed.offset > 0s);
  }
  BOOST_TEST(true_ones > 0);
  BOOST_TEST(ahead.size() == 2u);
  for (const Deed& deed : plan(1, 120s, false)) {
    BOOST_TEST_REQUIRE(!deed.offset.has_value());
    BOOST_TEST_REQUIRE((deed.kind != Kind::calendar));
  }
}

BOOST_AUTO_TEST_CASE(each_fault_has_a_chance_and_few_requests_meet_one) {
  std::map<std::string, double> chances;
  for (const tests::Fault& fault : torture::faults()) {
    BOOST_TEST_REQUIRE(fault.probability.has_value());
    BOOST_TEST(*fault.probability > 0);
    BOOST_TEST((fault.from <= fault.to && fault.to <= torture::kLatestCopy));
    chances[fault.action] += *fault.probability;
  }
  for (const auto& [action, chance] : chances) {
    const bool renews = action == "UpdateItem SET #expires = :expires";
    BOOST_TEST(chance < (renews ? 0.75 : 0.1), action);
  }
}

// Faults know their requests by a part of the text, which may change.
BOOST_AUTO_TEST_CASE(faults_meet_every_request_about_a_lock) {
  const tests::Engine& engine =
      tests::Engine::running(tests::any_engine_kind());
  tests::Gateway gateway(engine.url());
  std::set<std::string> actions;
  for (const tests::Fault& fault : torture::faults()) {
    actions.insert(fault.action);
  }
  for (const std::string& action : actions) {
    gateway.fault(action, "delay", 0);
  }
  ddbmutex::Options options;
  options.table =
      std::make_shared<ddbmutex::Table>(gateway.table_options(engine.table()));
  options.ttl = 60s;
  for (const bool keep_row : {false, true}) {
    options.keep_row = keep_row;
    ddbmutex::DdbMutex mutex(keep_row ? "mischief-kept" : "mischief", options);
    mutex.lock();
    mutex.renew();
    mutex.release();
  }
  const tests::GatewayCounts counts = gateway.counts();
  BOOST_TEST(counts.all_requests() >= 6);
  BOOST_TEST(counts.all_faults() == counts.all_requests());
}

BOOST_AUTO_TEST_SUITE_END()
