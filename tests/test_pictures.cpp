// README's pictures are what is drawn of the protocol's margins, of a run of
// the torture and of the bench's table, and can be seen on a light page and on
// a dark one.
#include <algorithm>
#include <array>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tests/pictures/pictures.hpp"
#include "tests/pictures/xml_check.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"

namespace {

namespace data = boost::unit_test::data;
using namespace pictures;
using namespace std::chrono_literals;
using tests::all_matches;
using tests::has;
using tests::read_file;

const auto kNames = data::make({"lease.svg", "minute.svg", "race.svg"});

std::string kept(const std::string& name) {
  return read_file("tests/pictures/" + name);
}

Minute read(const std::string& text) {
  std::istringstream in(text);
  return read_minute(in);
}

// What a reader sees.
std::string words_of(const std::string& picture) {
  XmlCheck check(picture);
  BOOST_TEST(check.problem() == "");
  return check.texts();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pictures_of_readme)

BOOST_DATA_TEST_CASE(picture_is_well_formed, kNames, name) {
  BOOST_TEST(words_of(kept(name)) != "");
}

BOOST_DATA_TEST_CASE(picture_uses_no_paint_that_it_does_not_have, kNames,
                     name) {
  std::set<std::string> there;
  for (const Paint& paint : paints()) {
    there.insert(paint.name);
    there.insert(std::string(paint.name) + "l");
  }
  const auto used = all_matches(kept(name), "class='([^']*)'");
  BOOST_TEST(used.size() > 10u);
  for (const std::string& one : used) BOOST_TEST(there.count(one) == 1u, one);
  BOOST_TEST(!has(kept(name), "fill='#"));
  BOOST_TEST(!has(kept(name), "stroke='#"));
}

// --- The lease ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(lease_is_the_one_that_the_protocol_counts) {
  BOOST_TEST(kept("lease.svg") == draw(Lease()), "run `make pictures`");
}

BOOST_AUTO_TEST_CASE(lease_ends_before_another_can_take_the_lock) {
  const Lease lease;
  BOOST_TEST((lease.renewed < lease.killed && lease.killed < lease.claim_end));
  BOOST_TEST((lease.renewed <= lease.seen));
  BOOST_TEST((lease.claim_end < lease.renewed + lease.ttl));
  BOOST_TEST((lease.seen + lease.ttl < lease.taken));
  const std::string words = words_of(kept("lease.svg"));
  for (const char* told :
       {"0.98 ttl", "1.01 ttl", "margin 1.25 s", "margin 0.6 s"}) {
    BOOST_TEST(has(words, told), told);
  }
}

// --- The minute --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(minute_is_the_one_that_was_written_down) {
  const std::string text = kept("minute.txt");
  BOOST_TEST(write(read(text)) == text);
  BOOST_TEST(kept("minute.svg") == draw(read(text)), "run `make pictures`");
}

BOOST_AUTO_TEST_CASE(minute_has_no_lock_that_two_held_at_once) {
  const Minute minute = read(kept("minute.txt"));
  BOOST_TEST(minute.claims.size() == 8u);
  std::size_t claims = 0, kills = 0;
  std::set<int> processes;
  for (const auto& [name, all] : minute.claims) {
    milliseconds free = 0ms;
    for (const Minute::Claim& claim : all) {
      BOOST_TEST((claim.held.begin >= free),
                 name << " at " << claim.held.begin.count() << " ms");
      BOOST_TEST((claim.held.end <= claim.promised));
      BOOST_TEST((claim.promised <= 60s));
      free = claim.promised;
      processes.insert(claim.process);
    }
    claims += all.size();
  }
  for (const Minute::Life& life : minute.lives) kills += life.killed;
  BOOST_TEST(processes.size() == 8u);
  BOOST_TEST(claims > 1000u);
  BOOST_TEST(kills > 10u);
  const std::string words = words_of(kept("minute.svg"));
  BOOST_TEST(has(words, std::to_string(claims) + " times a lock was taken"));
  BOOST_TEST(has(words, std::to_string(kills) + " kills"));
}

namespace {

torture::Acquisition held(nanoseconds from, nanoseconds asked,
                          nanoseconds promised,
                          std::optional<nanoseconds> ended) {
  torture::Acquisition one;
  one.acquired = from;
  one.asked = asked;
  one.promised = promised;
  one.ended = ended;
  return one;
}

// Two processes and a lock; it begins at 100 s.
torture::History two_processes() {
  torture::History history;
  history.begin = 100s;
  history.end = 190s;
  torture::MutexLog log;
  log.name = "lock-1";
  log.acquisitions = {held(101s, 102s, 103s, 102s + 500ms),
                      held(159s, 161s, 162s, std::nullopt),
                      held(170s, 171s, 172s, 171s)};
  history.logs.push_back(log);
  log.process = 1;
  log.acquisitions = {held(110s, 111s, 114s, std::nullopt),
                      held(120s, 120s, 119s, std::nullopt)};
  history.logs.push_back(log);
  torture::Lifetime life;
  life.begin = 100s;
  life.stops = {{105s, 106s}, {165s, 166s}};
  history.lives[{0, 1}] = life;
  life = {};
  life.process = 1;
  life.begin = 101s;
  life.killed = 111s + 500ms;
  life.exited = 111s + 600ms;
  history.lives[{1, 1}] = life;
  history.outages = {{"engine", {150s, 170s}}, {"hang", {180s, 181s}}};
  return history;
}

}  // namespace

// What was promised to nobody is not drawn, nor what comes after the minute;
// what goes on then is cut.
BOOST_AUTO_TEST_CASE(minute_is_the_first_of_a_run) {
  const std::string text = write(minute_of(two_processes(), "a test"));
  const std::string after = text.substr(text.find("title"));
  BOOST_TEST(after ==
             "title a test\n"
             "life 0 0 60000\n"
             "stop 5000 6000\n"
             "life 1 1000 11600 killed\n"
             "down engine 50000 60000\n"
             "lock lock-1 0+1000+1500 1+9000+1000~3000 0+49000+1000\n");
  BOOST_TEST(write(read(text)) == text);
  const std::string words = words_of(draw(read(text)));
  for (const char* told :
       {"a test", "lock-1", "1 kills", "1 stops", "engine"}) {
    BOOST_TEST(has(words, told), told);
  }
}

BOOST_DATA_TEST_CASE(line_that_is_none_of_a_minute_is_named,
                     data::make({"life 1 2", "lock x 1+2", "stop 1 2",
                                 "down engine", "other"}),
                     line) {
  BOOST_CHECK_EXCEPTION(
      read(std::string("title x\n") + line), std::runtime_error,
      [&](const auto& error) { return has(error.what(), line); });
}

// --- The race ----------------------------------------------------------------

namespace {

Race race_of(const std::string& page) {
  std::istringstream in(page);
  return read_race(in);
}

}  // namespace

BOOST_AUTO_TEST_CASE(race_is_that_of_the_table) {
  const Race race = race_of(read_file("tests/README.md"));
  BOOST_TEST(kept("race.svg") == draw(race), "run `make pictures`");
  const std::string words = words_of(kept("race.svg"));
  BOOST_TEST(race.lanes.size() == 6u);
  for (const Race::Lane& lane : race.lanes) {
    BOOST_TEST(has(words, lane.name), lane.name);
  }
}

BOOST_AUTO_TEST_CASE(race_without_a_figure_is_refused) {
  const std::string page = read_file("tests/README.md");
  for (const char* figure :
       {"mutex_cpu_ratio_vs_libcurl", "rival_boto3_cpu_ratio", "Measured "}) {
    const std::string cut = tests::replaced(page, figure, "");
    BOOST_CHECK_EXCEPTION(
        race_of(cut), std::runtime_error,
        [&](const auto& error) { return has(error.what(), figure); });
  }
}

// --- The colours -------------------------------------------------------------

namespace {

// As WCAG 2 has it, of "#rrggbb".
double luminance(const std::string& colour) {
  const std::array<double, 3> weights = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double part = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16);
    const double c = part / 255;
    sum += weights[i] *
           (c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(const std::string& a, const std::string& b) {
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

}  // namespace

// WCAG's bounds: 4.5 for texts, 3 for what else one has to tell apart.
BOOST_AUTO_TEST_CASE(colours_can_be_seen_on_light_paper_and_on_dark) {
  BOOST_TEST(contrast("#000000", "#ffffff") == 21.0,
             boost::test_tools::tolerance(1e-9));
  const Paint& paper = paints().front();
  BOOST_TEST_REQUIRE((paper.use == Paint::paper));
  for (const Paint& paint : paints()) {
    if (paint.use == Paint::paper) continue;
    const double least = paint.use == Paint::text ? 4.5 : 3;
    BOOST_TEST(contrast(paint.light, paper.light) >= least, paint.name);
    BOOST_TEST(contrast(paint.dark, paper.dark) >= least, paint.name);
    const std::string style = pictures::style();
    const auto dark = style.find("prefers-color-scheme:dark");
    BOOST_TEST((style.find(paint.light) < dark), paint.name);
    BOOST_TEST((style.find(paint.dark, dark) != style.npos), paint.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
