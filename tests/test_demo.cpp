// What the demo says of its scenes: on records that are wrong in one point
// each.  The demo itself is run in test_examples.cpp.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "examples/demo/claims.hpp"
#include "examples/demo/event.hpp"

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string wrong(const demo::Claims& claims) {
  std::string texts;
  for (const demo::Claim& claim : claims) {
    if (!claim.right) texts += (texts.empty() ? "" : "; ") + claim.text;
  }
  return texts;
}

demo::Hold hold(char process, int begin_ms, int end_ms) {
  return {process, milliseconds(begin_ms), milliseconds(end_ms)};
}

// What is seen of scenes that go as they should.
demo::Killed killed() {
  demo::Killed seen = {};
  seen.lease = seconds(3);
  seen.dead = hold('A', 100, 4000);
  seen.renewals = 1;
  seen.killed = milliseconds(1500);
  seen.next = hold('B', 4100, 4200);
  seen.before = 30;
  seen.after = 31;
  return seen;
}

demo::Stopped stopped() {
  demo::Stopped seen = {};
  seen.sleeper = hold('A', 100, 3000);
  seen.stopped = milliseconds(500);
  seen.woken = milliseconds(3500);
  seen.next = hold('B', 3100, 4200);
  seen.owned_on_waking = false;
  seen.losses = {"expired"};
  seen.uuid_before_unlock = seen.uuid_after_unlock = "u";
  seen.next_kept_it = true;
  seen.before = 31;
  seen.after = 33;
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(demo_claims)

BOOST_AUTO_TEST_CASE(scenes_of_the_counter_that_are_not_as_claimed_are_wrong) {
  using Holds = std::vector<demo::Hold>;
  BOOST_TEST(wrong(demo::claims_without_lock({30, 29})) == "");
  BOOST_TEST(wrong(demo::claims_without_lock({30, 30})) ==
             "30 updates, and the file says 30: 0 lost");
  const auto wrong_with = [](demo::Count updates, const Holds& holds) {
    return wrong(demo::claims_with_lock(updates, holds));
  };
  const Holds two = {hold('B', 10, 20), hold('A', 0, 10)};
  BOOST_TEST(wrong_with({2, 2}, two) == "");
  BOOST_TEST(wrong_with({2, 1}, two) ==
             "2 updates, and the file says 1: 1 lost");
  BOOST_TEST(wrong_with({2, 2}, {hold('A', 0, 10)}) ==
             "the lock was held 1 times, never by two at once");
  // One that was over before it began is none, and hides none.
  BOOST_TEST(wrong_with({3, 3}, {hold('A', 0, 100), hold('B', 50, 40),
                                 hold('C', 99, 101)}) ==
             "A and C held the lock at the same time");
}

BOOST_AUTO_TEST_CASE(killed_scene_that_is_not_as_claimed_is_wrong) {
  using demo::Killed;
  BOOST_TEST(wrong(claims_of_killed(killed())) == "");
  const std::vector<std::pair<std::function<void(Killed&)>, std::string>>
      changes = {
          {[](Killed& seen) { seen.next.reset(); },
           "a process never got the lock"},
          {[](Killed& seen) { seen.renewals = 0; },
           "A's lease was renewed while it was at work"},
          {[](Killed& seen) { seen.dead->end = seen.killed; },
           "A did not hold the lock when it was killed"},
          {[](Killed& seen) {
             seen.next->begin = seen.dead->end - milliseconds(1);
           },
           "B did not get in before that lease was over"},
          {[](Killed& seen) {
             seen.next->begin = seen.killed + milliseconds(6001);
           },
           "B had the lock before the kill, or too late"},
          {[](Killed& seen) { seen.after = 30; },
           "the file went from 30 to 30: not what the updates come to"},
      };
  for (const auto& [change, text] : changes) {
    Killed seen = killed();
    change(seen);
    BOOST_TEST(wrong(claims_of_killed(seen)) == text);
  }
}

BOOST_AUTO_TEST_CASE(stopped_scene_that_is_not_as_claimed_is_wrong) {
  using demo::Stopped;
  BOOST_TEST(wrong(claims_of_stopped(stopped())) == "");
  const std::string meanwhile =
      "B got in meanwhile, and not before A's lease was over";
  const std::vector<std::pair<std::function<void(Stopped&)>, std::string>>
      changes = {
          {[](Stopped& seen) { seen.next.reset(); },
           "a process never got the lock"},
          {[](Stopped& seen) { seen.stopped = seen.sleeper->end; },
           "A was stopped while it held the lock"},
          {[](Stopped& seen) {
             seen.next->begin = seen.sleeper->end - milliseconds(1);
           },
           meanwhile},
          {[](Stopped& seen) { seen.next->begin = seen.woken; }, meanwhile},
          {[](Stopped& seen) { seen.owned_on_waking = true; },
           "A's first owns_lock() on waking said true"},
          {[](Stopped& seen) { seen.losses.clear(); },
           "on_lost told it: nothing"},
          {[](Stopped& seen) { seen.losses.push_back("expired"); },
           "on_lost told it: expired, expired"},
          {[](Stopped& seen) { seen.uuid_after_unlock.clear(); },
           "A's unlock() harmed B"},
          {[](Stopped& seen) { seen.next_kept_it = false; },
           "A's unlock() harmed B"},
          {[](Stopped& seen) { seen.after = 32; },
           "the file went from 31 to 32: not what the updates come to"},
      };
  for (const auto& [change, text] : changes) {
    Stopped seen = stopped();
    change(seen);
    BOOST_TEST(wrong(claims_of_stopped(seen)) == text);
  }
}

BOOST_AUTO_TEST_CASE(event_line_read_back_is_the_event) {
  using demo::Event;
  const Event event = {'C', Event::Kind::fails, demo::Time(12345678901234), -7,
                       "no such\ntable"};
  const std::string line = demo::to_line(event);
  BOOST_TEST(line.find('\n') == line.size() - 1);
  const auto read = demo::read_line(line.substr(0, line.size() - 1));
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST(read->process == 'C');
  BOOST_TEST((read->kind == Event::Kind::fails));
  BOOST_TEST((read->at == event.at));
  BOOST_TEST(read->number == -7);
  BOOST_TEST(read->text == "no such table");
  BOOST_TEST(!demo::read_line("what?"));
}

BOOST_AUTO_TEST_SUITE_END()
