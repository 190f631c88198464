// Whether the judge of the torture judges well: each of its rules with what it
// just allows and what it just does not; then its table and its picture.  (The
// torture itself is tests/torture/torture.cpp.)
#include <stdlib.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/torture/causes.hpp"
#include "tests/torture/diary.hpp"
#include "tests/torture/history.hpp"
#include "tests/torture/invention.hpp"
#include "tests/torture/judge.hpp"
#include "tests/torture/table.hpp"
#include "tests/torture/timeline.hpp"
#include "tests/torture/words.hpp"
#include "tests/torture/xml_check.hpp"

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using torture::Bounds;
using torture::Findings;
using torture::History;
using torture::Invention;
using torture::MutexLog;
using torture::Violation;
using torture::XmlCheck;

namespace {

// --- Histories written down --------------------------------------------------

// "12ms", "12ms+1" and "12ms-1" are so many nanoseconds.
std::string in_nanoseconds(const std::string& word) {
  const auto unit = word.find("ms");
  if (unit == word.npos || word.find_first_not_of("0123456789-") != unit) {
    return word;
  }
  const std::string more = word.substr(unit + 2);
  const long long time =
      std::stoll(word.substr(0, unit)) * 1000000 + std::stoll("0" + more);
  return std::to_string(time + (more.empty() ? 0 : std::stoll(more)));
}

std::string expanded(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string expanded_line;
    for (std::string word; words >> word;) {
      expanded_line +=
          (expanded_line.empty() ? "" : " ") + in_nanoseconds(word);
    }
    all += expanded_line + "\n";
  }
  if (!text.empty() && text.back() != '\n') all.pop_back();
  return all;
}

MutexLog read(const std::string& text) {
  std::istringstream in(expanded(text));
  return torture::read_log(in);
}

History read_events(const std::string& text) {
  std::istringstream in(expanded(text));
  History history;
  torture::read_events(in, history);
  torture::complete(history);
  return history;
}

// A short run of processes 1 and 2 in which all went well, to which a test adds
// what it is about: on the name `lock`, with leases of a second.
class Scene {
 public:
  Scene() {
    log(1, "other", "wants 0 1ms lock\n" + held(1, 2));
    log(2, "other", "wants 0 1ms lock\n" + held(3, 4));
  }

  // An acquisition from one ms to another; of a kept row with its token and
  // what was stored: "5 0".
  static std::string held(int from, int to, const std::string& token = {}) {
    const std::string begin = std::to_string(from) + "ms";
    return "acquired 0 " + begin + (token.empty() ? "" : " " + token) +
           "\nheld " + begin + " " + std::to_string(from + 1000) +
           "ms\nended " + std::to_string(to) + "ms\nlet_go " +
           std::to_string(to) + "ms+1\n";
  }

  Scene& log(int process, const std::string& name, const std::string& text) {
    MutexLog log = read("clocks 0 0\nttl 1000\n" + text);
    log.process = process;
    log.incarnation = 1;
    log.name = name;
    logs_.push_back(log);
    return *this;
  }
  Scene& lock(int process, const std::string& text) {
    return log(process, "lock", text);
  }
  // Whatever happens to the processes and around them.
  Scene& event(const std::string& line) {
    events_ += line + "\n";
    return *this;
  }
  Scene& ends(int process, const std::string& how) {
    ends_[process] = how;
    return *this;
  }
  Scene& killed(int process, const std::string& time) {
    const std::string who = " " + std::to_string(process) + " 1 ";
    return ends(process, "kill" + who + time + "\nexit" + who + time + " 137");
  }
  Scene& taken(const std::string& name, const std::string& waited,
               int token = 0) {
    taken_[name] = waited + " " + std::to_string(token);
    return *this;
  }
  // The same for a lock whose row is kept, and is as it should be in the end.
  Scene& kept(int process, const std::string& text) {
    return lock(process, "kept\n" + text).taken("lock", "1ms", 99);
  }
  Scene& row(int token, const std::string& state = "intact") {
    return event("row lock " + std::to_string(token) + " " + state);
  }
  Scene& quiet(const std::string& line) {
    quiet_ = line;
    return *this;
  }
  Scene& change(void (*how)(MutexLog&)) {
    how(logs_.back());
    return *this;
  }

  History history() const {
    std::string events = "start 1 1 0 11 0\nstart 2 1 0 12 0\n" + events_;
    for (const auto& [process, how] : ends_) events += how + "\n";
    events += quiet_;
    for (const auto& [name, waited] : taken_) {
      events += "taken " + name + " 50010ms " + waited + "\n";
    }
    std::istringstream in(expanded(events));
    History history;
    torture::read_events(in, history);
    history.logs = logs_;
    torture::complete(history);
    return history;
  }

  Findings judged(const Bounds& bounds = {}) const {
    return judge(history(), bounds);
  }
  // The names of the rules that were broken, in order.
  std::string broken(const Bounds& bounds = {}) const {
    std::vector<std::string> all;
    for (const Violation& one : judged(bounds).violations) {
      BOOST_TEST_MESSAGE(one.words);
      all.push_back(name_of(one.rule));
    }
    std::sort(all.begin(), all.end());
    std::string names;
    for (const std::string& one : all) {
      names += (names.empty() ? "" : " ") + one;
    }
    return names;
  }

 private:
  std::vector<MutexLog> logs_;
  std::string events_;
  std::map<int, std::string> ends_ = {{1, "exit 1 1 50000ms 0"},
                                      {2, "exit 2 1 50000ms 0"}};
  std::string quiet_ = "quiet 49000ms\n";
  std::map<std::string, std::string> taken_ = {{"lock", "1ms 0"},
                                               {"other", "1ms 0"}};
};

// Of a process that is killed or loses it: held and promised until then, on top
// of what Scene::held() says.
std::string promised(const std::string& from, const std::string& until) {
  return "wants 0 " + from + " lock\nacquired 0 " + from + "\nheld " + from +
         " " + until + "\n";
}

// Lost as the lease ends, at 1,010 ms.
const std::string kLost = promised("10ms", "1010ms");

}  // namespace

BOOST_AUTO_TEST_SUITE(torture_judge)

// --- Reading -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_log_is_read_as_waits_and_acquisitions) {
  const MutexLog log = read(
      "clocks -3600000ms 5\nttl 700\nwants 1 10ms try_for\nwants 0 11ms lock\n"
      "acquired 1 12ms\nheld 12ms 712ms\nheld 17ms 717ms\nended 19ms\n"
      "let_go 21ms\nacquired 0 20ms\nlost_seen 22ms\nlost taken 21ms\n"
      "let_go 23ms the lock was lost\nwants 0 30ms try\n"
      "without 0 40ms error 16-no answer in time\ndanger 35ms\n");
  BOOST_TEST(log.problem == "");
  BOOST_TEST(!log.cut_short);
  BOOST_TEST((log.clocks->calendar == -1h));
  BOOST_TEST(log.clocks->boot.count() == 5);
  BOOST_TEST(log.ttl.count() == 700);
  BOOST_TEST_REQUIRE(log.waits.size() == 3u);
  BOOST_TEST((log.waits[0].kind == torture::Wait::Kind::try_for));
  BOOST_TEST(log.waits[2].why == "error 16-no answer in time");
  BOOST_TEST_REQUIRE(log.acquisitions.size() == 2u);
  const auto& [first, second] =
      std::tie(log.acquisitions[0], log.acquisitions[1]);
  BOOST_TEST((first.wanted == 10ms && first.claim().end == 19ms));
  BOOST_TEST((first.asked == 17ms && first.promised == 717ms));
  BOOST_TEST(!first.loss_was_seen());
  BOOST_TEST((second.claim().end == 20ms && second.lost_seen == 22ms));
  BOOST_TEST(second.error == "the lock was lost");
  BOOST_TEST((log.losses.size() == 1u && log.losses[0].at == 21ms));
  BOOST_TEST(log.dangers.size() == 1u);
  BOOST_TEST(log.doubles.empty());
}

BOOST_AUTO_TEST_CASE(the_next_holder_may_speak_before_the_last_has_let_go) {
  const MutexLog log = read(
      "clocks 0 0\nttl 1000\nwants 0 1ms lock\n"
      "wants 1 1ms lock\nacquired 0 2ms\nended 3ms\n"
      "acquired 1 5ms\nheld 5ms 9ms\nended 6ms\n"
      "let_go 4ms\nlet_go 7ms unreachable\n");
  BOOST_TEST(log.problem == "");
  BOOST_TEST((log.acquisitions.at(0).let_go == 4ms));
  BOOST_TEST(log.acquisitions.at(1).error == "unreachable");
  BOOST_TEST(log.doubles.empty());
}

BOOST_AUTO_TEST_CASE(a_last_line_that_is_cut_short_does_not_count) {
  const MutexLog log = read("clocks 0 0\nttl 1000\n" + kLost + "ended 9");
  BOOST_TEST(log.problem == "");
  BOOST_TEST(log.cut_short);
  BOOST_TEST(!log.acquisitions.at(0).ended.has_value());
}

BOOST_AUTO_TEST_CASE(a_log_that_makes_no_sense_is_a_problem) {
  for (const char* text :
       {"nonsense 1\n",
        "\n",
        "clocks 1\n",
        "clocks x 1\n",
        "ttl 0\n",
        "wants 0 1ms\n",
        "wants 0 1ms lick\n",
        "wants 0 1ms lock 5\n",
        "acquired 0 1ms\n",
        "without 0 1ms busy\n",
        "held 1ms 2ms\n",
        "ended 1ms\n",
        "lost_seen 1ms\n",
        "let_go 1ms\n",
        "lost 1ms\n",
        "lost stolen 1ms\n",
        "stalled 1ms\n",
        "stalled 2ms 2ms\n",
        "danger\n",
        "wants 0 1ms lock\nwants 0 2ms lock\n",
        "wants 0 2ms lock\nacquired 0 1ms\n",
        "wants 0 1ms lock\nacquired 1 2ms\n",
        "wants 0 1ms lock\nwithout 0 2ms bored\n",
        "wants 0 1ms lock\nacquired 0 2ms\nheld 1ms 9ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nheld 3ms 3ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nlet_go 3ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nended 3ms\nended 4ms\n",
        "stored\n",
        "wants 0 1ms lock\nacquired 0 2ms 5 0\n",
        "kept\nwants 0 1ms lock\nacquired 0 2ms\n",
        "kept\nwants 0 1ms lock\nacquired 0 2ms 5\n"}) {
    BOOST_TEST(read(std::string("clocks 0 0\nttl 1000\n") + text).problem != "",
               text);
  }
  BOOST_TEST(read("ttl 1000\nwants 0 1ms lock\n").problem != "");
  BOOST_TEST(read("clocks 0 0\nwants 0 1ms lock\n").problem != "");
}

BOOST_AUTO_TEST_CASE(events_are_read) {
  const History history = read_events(
      "start 3 1 5ms 77 -7200\nfault 30ms drop-answer PutItem ddblock-a b\n"
      "fault 20ms delay GetItem\nstop 3 1 40ms\ngo 3 1 45ms\n"
      "calendar 3 1 50ms 60\ndown engine 60ms\ndown cut-off 65ms\n"
      "up engine 70ms\ncomplaint 3 1 it is all wrong\nstop 3 1 75ms\n"
      "kill 3 1 80ms\nexit 3 1 81ms 137\nhung 3 1 79ms\ncalm 85ms\nquiet 90ms\n"
      "left lock-3\ntaken lock-3 95ms 4ms 7\n"
      "row lock-3 9 not as it was\n");
  BOOST_TEST(history.problem == "");
  BOOST_TEST((history.begin == 5ms && history.end == 95ms));
  const torture::Lifetime& life = history.lives.at({3, 1});
  BOOST_TEST(life.pid == 77);
  BOOST_TEST((life.calendar == -2h && life.jumps.at(0).offset == 60s));
  BOOST_TEST_REQUIRE(life.stops.size() == 2u);
  BOOST_TEST((life.stops[0].end == 45ms && life.stops[1].end == 81ms));
  BOOST_TEST((life.killed == 80ms && life.exited == 81ms));
  BOOST_TEST((life.status == 137 && life.hung == 79ms));
  BOOST_TEST(life.complaints.at(0) == "it is all wrong");
  BOOST_TEST_REQUIRE(history.outages.size() == 2u);
  BOOST_TEST((history.outages[0].span.end == 70ms));
  BOOST_TEST((history.outages[1].what == "cut-off"));
  BOOST_TEST((history.outages[1].span.end == 95ms));
  BOOST_TEST(history.faults.at(0).kind == "delay");
  BOOST_TEST(history.faults.at(1).key == "ddblock-a b");
  BOOST_TEST((history.calm == 85ms && history.quiet == 90ms));
  BOOST_TEST(history.left.at(0) == "lock-3");
  BOOST_TEST((history.taken.at(0).waited == 4ms));
  BOOST_TEST(history.taken.at(0).token == 7u);
  BOOST_TEST(history.rows.at(0).name == "lock-3");
  BOOST_TEST(history.rows.at(0).token == 9u);
  BOOST_TEST(history.rows.at(0).state == "not as it was");
}

BOOST_AUTO_TEST_CASE(events_that_make_no_sense_are_a_problem) {
  for (const char* text : {"nonsense\n",
                           "\n",
                           "slow 5ms\n",
                           "slow 5ms 5ms\n",
                           "start 1 1 5ms 7\n",
                           "start 1 x 5ms 7 0\n",
                           "kill 1 1 5ms\n",
                           "up engine 5ms\n",
                           "quiet\n",
                           "left\n",
                           "taken a 5ms\n",
                           "taken a 5ms 6ms\n",
                           "row a 5\n",
                           "row a x intact\n",
                           "fault 5ms\n",
                           "down engine 1ms\ndown engine 2ms\n",
                           "start 1 1 5ms 7 0\nstart 1 1 6ms 8 0\n",
                           "start 1 1 5ms 7 0\ngo 1 1 6ms\n",
                           "start 1 1 5ms 7 0\nstop 1 1 6ms\nstop 1 1 7ms\n",
                           "start 1 1 5ms 7 0\nexit 1 1 6ms\n",
                           "start 1 1 5ms 7 0\nkill 1 1 6ms 7\n"}) {
    BOOST_TEST(read_events(text).problem != "", text);
  }
}

BOOST_AUTO_TEST_CASE(what_the_torture_writes_is_read_alike) {
  char directory[] = "/tmp/ddbmutex-torture-XXXXXX";
  BOOST_TEST_REQUIRE(mkdtemp(directory) != nullptr);
  const torture::Life life{3, 12};
  torture::Events events(directory);
  events.start(life, 1ms, 77, 3600s);
  events.stop(life, 2ms);
  events.go(life, 3ms);
  events.calendar(life, 4ms, -60s);
  events.down("hang", 5ms);
  events.up("hang", 6ms);
  events.fault(7ms, "drop PutItem ddblock-lock-5");
  events.slow(7ms, 9ms);
  events.calm(8ms);
  events.quiet(8ms);
  events.hung(life, 9ms);
  events.kill(life, 10ms);
  events.exit(life, 11ms, 137);
  events.complaint(life, "two\nlines");
  events.left("lock-5");
  events.taken("lock-5", 12ms, 2ms, 0);
  events.row("kept-1", 7, "intact");
  torture::Diary kept(torture::diary_path(directory, life, "kept-1"));
  kept.clocks(1h, 0ns);
  kept.ttl(1000ms);
  kept.kept();
  kept.wants(0, 1ms, "lock");
  kept.acquired(0, 2ms, 6, 4);
  kept.ended(3ms);
  kept.stored(6);
  kept.let_go(4ms, "");
  torture::Diary diary(torture::diary_path(directory, life, "lock-5"));
  diary.clocks(1h, 0ns);
  diary.ttl(1000ms);
  diary.wants(0, 1ms, "lock");
  diary.acquired(0, 2ms);
  diary.held(2ms, 9ms);
  diary.ended(3ms);
  diary.let_go(4ms, "");
  diary.wants(1, 5ms, "try_for");
  diary.wants(0, 5ms, "try");
  diary.without(1, 6ms, "busy");
  diary.acquired(0, 6ms);
  diary.danger(7ms);
  diary.stalled(7ms, 8ms);
  diary.lost("expired", 8ms);
  diary.lost_seen(9ms);
  diary.let_go(10ms, "the lock was lost");
  const History history = torture::read_history(directory);
  BOOST_TEST((history.calm == 8ms && history.quiet == 8ms));
  BOOST_TEST_REQUIRE(history.slow.size() == 1u);
  BOOST_TEST((history.slow[0].begin == 7ms && history.slow[0].end == 9ms));
  BOOST_TEST(history.problem == "");
  BOOST_TEST(history.lives.at({3, 12}).complaints.at(0) == "two lines");
  BOOST_TEST_REQUIRE(history.logs.size() == 2u);
  BOOST_TEST(history.rows.at(0).token == 7u);
  const MutexLog& other = history.logs[0];
  BOOST_TEST(other.problem == "");
  BOOST_TEST(other.kept);
  BOOST_TEST(other.acquisitions.at(0).token == 6u);
  BOOST_TEST(other.acquisitions.at(0).stored == 4u);
  BOOST_TEST(other.stored.at(0) == 6u);
  const MutexLog& log = history.logs[1];
  BOOST_TEST(log.problem == "");
  BOOST_TEST((log.process == 3 && log.incarnation == 12));
  BOOST_TEST(log.name == "lock-5");
  BOOST_TEST_REQUIRE(log.stalls.size() == 1u);
  BOOST_TEST((log.stalls[0].begin == 7ms && log.stalls[0].end == 8ms));
  BOOST_TEST((log.acquisitions.size() == 2u && log.waits.size() == 3u));
  std::filesystem::remove_all(directory);
  BOOST_CHECK_THROW(torture::read_history(directory), std::runtime_error);
}

// --- 1: overlaps -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_run_in_which_all_went_well_breaks_no_rule) {
  BOOST_TEST(Scene().broken() == "");
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
                 .lock(2, "wants 0 5ms lock\n" + Scene::held(20, 30))
                 .broken() == "");
}

BOOST_AUTO_TEST_CASE(an_overlap_of_a_nanosecond_is_found_and_told) {
  const Findings found =
      Scene()
          .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
          .lock(2,
                "wants 0 5ms lock\nacquired 0 20ms-1\nended 21ms\n"
                "let_go 22ms\n")
          .judged();
  BOOST_TEST_REQUIRE(found.violations.size() == 1u);
  const Violation& one = found.violations[0];
  BOOST_TEST((one.rule == Violation::Rule::overlap));
  BOOST_TEST(one.words ==
             "lock: process 1.1 held it from 0.010000000 s to 0.020000000 s, "
             "and process 2.1 held it from 0.019999999 s to 0.021000000 s");
  BOOST_TEST(one.name == "lock");
  BOOST_TEST((one.at == 20ms - 1ns && one.process == 2));
}

BOOST_AUTO_TEST_CASE(an_overlap_with_a_claim_that_is_not_the_last_is_found) {
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 100))
                 .lock(2, "wants 0 5ms lock\n" + Scene::held(20, 30) +
                              "wants 0 40ms lock\n" + Scene::held(90, 95))
                 .broken() == "overlap overlap");
}

BOOST_AUTO_TEST_CASE(what_was_promised_to_the_killed_is_theirs_to_its_end) {
  const auto next = [](const std::string& time) {
    return Scene()
        .lock(1, kLost)
        .killed(1, "15ms")
        .lock(2, "wants 0 5ms lock\nacquired 0 " + time +
                     "\nended 2000ms\n"
                     "let_go 2001ms\n")
        .broken();
  };
  BOOST_TEST(next("1010ms") == "");
  BOOST_TEST(next("1010ms-1") == "overlap");
}

BOOST_AUTO_TEST_CASE(what_was_promised_to_a_loser_is_its_own_to_its_end) {
  const auto next = [](const std::string& time) {
    return Scene()
        .lock(1, kLost +
                     "lost expired 1010ms\nlost_seen 1011ms\n"
                     "let_go 1012ms\n")
        .lock(2, "wants 0 5ms lock\nacquired 0 " + time +
                     "\nended 2000ms\n"
                     "let_go 2001ms\n")
        .broken();
  };
  BOOST_TEST(next("1010ms") == "");
  BOOST_TEST(next("1010ms-1") == "overlap");
}

BOOST_AUTO_TEST_CASE(a_lock_that_was_lost_before_its_first_look_is_no_claim) {
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
                 .lock(2,
                       "wants 0 5ms lock\nacquired 0 15ms\nlost_seen 16ms\n"
                       "lost expired 16ms\nlet_go 17ms\n")
                 .broken() == "");
}

BOOST_AUTO_TEST_CASE(two_threads_of_a_process_that_are_in_at_once_are_found) {
  BOOST_TEST(Scene()
                 .lock(1,
                       "wants 0 5ms lock\nwants 1 6ms lock\n"
                       "acquired 0 7ms\nacquired 1 8ms\nended 9ms\n"
                       "ended 10ms\nlet_go 11ms\nlet_go 12ms\n")
                 .broken() == "overlap overlap");
}

// --- Tokens ------------------------------------------------------------------

namespace {

// Processes 1 and 2 take the lock one after the other.
Scene two_tokens(const std::string& first, const std::string& second) {
  return Scene()
      .kept(1, "wants 0 5ms lock\n" + Scene::held(10, 20, first))
      .kept(2, "wants 0 5ms lock\n" + Scene::held(20, 30, second))
      .row(99);
}

}  // namespace

BOOST_AUTO_TEST_CASE(tokens_that_grow_with_each_acquisition_are_right) {
  BOOST_TEST(two_tokens("5 0", "6 0").broken() == "");
  BOOST_TEST(two_tokens("5 0", "9 0").broken() == "");
}

BOOST_AUTO_TEST_CASE(a_token_that_does_not_grow_is_found_and_told) {
  BOOST_TEST(two_tokens("5 0", "4 0").broken() == "token");
  const Findings found = two_tokens("6 0", "5 0").judged();
  BOOST_TEST_REQUIRE(found.violations.size() == 1u);
  BOOST_TEST(found.violations[0].words ==
             "lock: gave 6 to process 1.1 at 0.010000000 s, then 5 to process "
             "2.1 at 0.020000000 s");
  BOOST_TEST(found.violations[0].name == "lock");
  BOOST_TEST((found.violations[0].at == 20ms));
}

BOOST_AUTO_TEST_CASE(a_token_given_twice_is_found) {
  BOOST_TEST(two_tokens("5 0", "5 0").broken() == "token token");
}

BOOST_AUTO_TEST_CASE(a_token_of_nothing_is_found) {
  BOOST_TEST(Scene()
                 .kept(1, "wants 0 5ms lock\n" + Scene::held(10, 20, "0 0"))
                 .row(99)
                 .broken() == "token token");  // Nor was less stored with it.
}

// It was another's by the time that it was said.
BOOST_AUTO_TEST_CASE(a_token_that_was_lost_at_once_counts_from_its_call) {
  const auto lost = [](const std::string& wanted, const std::string& token) {
    return Scene()
        .kept(1, "wants 0 5ms lock\n" + Scene::held(10, 20, "5 0"))
        .kept(2, "wants 0 " + wanted + " lock\nacquired 0 40ms " + token +
                     " 0\nlost_seen 41ms\nlost expired 40ms\n"
                     "let_go 42ms\n")
        .row(99)
        .broken();
  };
  BOOST_TEST(lost("10ms", "4") == "");
  BOOST_TEST(lost("10ms", "5") == "token");  // Twice, at any time.
  BOOST_TEST(lost("10ms+1", "6") == "");
  BOOST_TEST(lost("10ms+1", "4") == "token");
}

BOOST_AUTO_TEST_CASE(each_finds_what_the_one_before_has_stored) {
  const auto finds = [](const std::string& stored) {
    return Scene()
        .kept(1,
              "wants 0 5ms lock\n" + Scene::held(10, 20, "5 0") + "stored 5\n")
        .kept(2, "wants 0 5ms lock\n" + Scene::held(30, 40, "6 5") +
                     "wants 0 45ms lock\n" + Scene::held(50, 60, stored) +
                     "stored 8\n")
        .row(99)
        .broken();
  };
  BOOST_TEST(finds("8 5") == "");
  // By 6, or 7, that did not hear of it.
  BOOST_TEST(finds("8 6") == "");
  BOOST_TEST(finds("8 7") == "");
  BOOST_TEST(finds("8 4") == "token");
  BOOST_TEST(finds("8 0") == "token");
  BOOST_TEST(finds("8 8") == "token");
}

BOOST_AUTO_TEST_CASE(a_kept_row_is_there_in_the_end_with_all_that_it_had) {
  const auto ends = [](int token, const std::string& state) {
    return Scene()
        .kept(1, "wants 0 5ms lock\n" + Scene::held(10, 20, "5 0"))
        .row(token, state)
        .broken();
  };
  BOOST_TEST(ends(5, "intact") == "");
  BOOST_TEST(ends(4, "intact") == "token");
  BOOST_TEST(ends(5, "gone") == "token");
  BOOST_TEST(ends(5, "without what others stored") == "token");
  BOOST_TEST(Scene()
                 .kept(1, "wants 0 5ms lock\n" + Scene::held(10, 20, "5 0"))
                 .broken() == "token");
}

BOOST_AUTO_TEST_CASE(the_token_after_the_run_is_higher_than_all_in_it) {
  const auto taken = [](int token) {
    return two_tokens("5 0", "7 0").taken("lock", "1ms", token).broken();
  };
  BOOST_TEST(taken(8) == "");
  BOOST_TEST(taken(7) == "token");
}

BOOST_AUTO_TEST_CASE(in_a_run_of_many_faults_some_meet_kept_rows) {
  torture::Bounds bounds;
  bounds.faults_of_both = 2;
  const auto met = [&bounds](const std::string& key) {
    return two_tokens("5 0", "6 0")
        .event("fault 1ms drop PutItem ddblock-other")
        .event("fault 2ms drop UpdateItem " + key)
        .broken(bounds);
  };
  BOOST_TEST(met("ddblock-lock") == "");
  BOOST_TEST(met("ddblock-other") == "run");
  bounds.faults_of_both = 3;
  BOOST_TEST(met("ddblock-other") == "");
}

// --- 2: losses ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_loss_is_told_within_half_a_second_of_being_seen) {
  const auto told = [](const std::string& time) {
    return Scene()
        .lock(1, kLost +
                     "lost_seen 1020ms\nlet_go 1021ms the lock was lost\n"
                     "lost expired " +
                     time + "\n")
        .broken();
  };
  BOOST_TEST(told("1010ms") == "");
  BOOST_TEST(told("1520ms") == "");
  // Neither is it in time, nor does it belong to any other.
  BOOST_TEST(told("1520ms+1") == "loss loss");
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_never_told_is_found) {
  const std::string lost = kLost + "lost_seen 1020ms\nlet_go 1021ms\n";
  BOOST_TEST(Scene().lock(1, lost).broken() == "loss");
  // Where release() alone saw it, too.
  BOOST_TEST(Scene()
                 .lock(1, kLost + "ended 1009ms\n"
                                  "let_go 1021ms the lock was lost\n")
                 .broken() == "loss");
}

BOOST_AUTO_TEST_CASE(a_lease_runs_out_for_a_reason_or_for_none) {
  const auto ran_out_after = [](const std::string& events) {
    const History history = Scene()
                                .lock(1, kLost +
                                             "lost_seen 1020ms\n"
                                             "let_go 1021ms\n"
                                             "lost expired 1010ms\n")
                                .event(events)
                                .history();
    return torture::causeless_losses(history).size();
  };
  const std::string renewal = "fault 500ms 500 UpdateItem ddblock-lock\n";
  BOOST_TEST(ran_out_after("") == 1u);
  // For as long again, since it may be told late.
  // An eighth of the lease, in one or several.
  BOOST_TEST(ran_out_after("slow 500ms 625ms") == 0u);
  BOOST_TEST(ran_out_after("slow 500ms+1 625ms") == 1u);
  BOOST_TEST(ran_out_after("slow 100ms 160ms\nslow 500ms 565ms") == 0u);
  BOOST_TEST(ran_out_after("slow 885ms 2000ms") == 0u);
  BOOST_TEST(ran_out_after("slow 885ms+1 2000ms") == 1u);
  BOOST_TEST(ran_out_after("stop 1 1 500ms\ngo 1 1 501ms") == 0u);
  BOOST_TEST(ran_out_after("stop 1 1 2ms\ngo 1 1 10ms") == 1u);
  BOOST_TEST(ran_out_after("stop 2 1 500ms\ngo 2 1 501ms") == 1u);
  BOOST_TEST(ran_out_after("down engine 900ms\nup engine 901ms") == 0u);
  BOOST_TEST(ran_out_after("down engine 1010ms\nup engine 1011ms") == 1u);
  BOOST_TEST(ran_out_after(renewal) == 1u);
  BOOST_TEST(ran_out_after(renewal + renewal) == 0u);
  BOOST_TEST(ran_out_after(renewal + "fault 1010ms 500 UpdateItem lock") == 1u);
  BOOST_TEST(ran_out_after("fault 1ms 500 UpdateItem lock\n" + renewal) == 1u);
  BOOST_TEST(ran_out_after(renewal + "fault 1ms 500 PutItem lock") == 1u);
  BOOST_TEST(ran_out_after(renewal + "fault 1ms 500 UpdateItem other") == 1u);
}

BOOST_AUTO_TEST_CASE(leases_that_run_out_for_no_reason_are_few) {
  const History history = Scene()
                              .lock(1, kLost +
                                           "lost_seen 1020ms\n"
                                           "let_go 1021ms\n"
                                           "lost expired 1010ms\n")
                              .history();
  torture::Bounds bounds;
  bounds.causeless_per_minute = 1;
  const std::size_t before = judge(history, bounds).violations.size();
  bounds.causeless_per_minute = 0;
  BOOST_TEST(judge(history, bounds).violations.size() == before + 1);
}

BOOST_AUTO_TEST_CASE(time_in_which_a_process_was_stopped_is_no_delay) {
  const auto told = [](const std::string& time) {
    return Scene()
        .lock(1, kLost + "lost_seen 1020ms\nlet_go 1021ms\nlost expired " +
                     time + "\n")
        .event("stop 1 1 1000ms\ngo 1 1 1030ms")
        .event("stop 1 1 1100ms\ngo 1 1 1400ms")
        .event("stop 1 1 1800ms\ngo 1 1 1850ms")
        .event("stop 1 1 1900ms\ngo 1 1 1950ms")
        .broken();
  };
  // 10 + 300 + 50 ms.
  BOOST_TEST(told("1880ms") == "");
  BOOST_TEST(told("1880ms+1") == "loss loss");
}

BOOST_AUTO_TEST_CASE(time_in_which_a_process_did_not_get_to_run_is_no_delay) {
  const auto told = [](const std::string& time, const std::string& stalls) {
    return Scene()
        .lock(1, kLost + stalls +
                     "lost_seen 1020ms\nlet_go 1021ms\nlost expired " + time +
                     "\n")
        .event("stop 1 1 1100ms\ngo 1 1 1400ms")
        .broken();
  };
  // Once, where a stop was what it did not run for.
  const std::string stalls = "stalled 1090ms 1410ms\nstalled 1500ms 1600ms\n";
  BOOST_TEST(told("1940ms", stalls) == "");
  BOOST_TEST(told("1940ms+1", stalls) == "loss loss");
  BOOST_TEST(told("1820ms", "") == "");
  BOOST_TEST(told("1820ms+1", "") == "loss loss");
}

BOOST_AUTO_TEST_CASE(a_lease_may_run_out_while_its_process_cannot_run) {
  const auto causeless = [](const std::string& stalled) {
    const std::string lost = "lost_seen 1020ms\nlet_go 1021ms\n";
    const History history =
        Scene()
            .lock(1, kLost + stalled + lost + "lost expired 1010ms\n")
            .history();
    return torture::causeless_losses(history).size();
  };
  BOOST_TEST(causeless("stalled 500ms 625ms\n") == 0u);
  BOOST_TEST(causeless("stalled 500ms+1 625ms\n") == 1u);
  BOOST_TEST(causeless("stalled 1010ms 2000ms\n") == 1u);
}

BOOST_AUTO_TEST_CASE(one_killed_before_it_had_to_be_told_is_excused) {
  const std::string lost = kLost + "lost_seen 1020ms\n";
  BOOST_TEST(Scene().lock(1, lost).killed(1, "1520ms").broken() == "");
  BOOST_TEST(Scene().lock(1, lost).killed(1, "1520ms+1").broken() == "loss");
}

BOOST_AUTO_TEST_CASE(a_loss_before_the_promise_ended_is_false) {
  const auto told = [](const std::string& time) {
    return Scene()
        .lock(1, kLost + "lost taken " + time +
                     "\nlost_seen 1010ms\n"
                     "let_go 1011ms\n")
        .broken();
  };
  BOOST_TEST(told("1009ms") == "");
  BOOST_TEST(told("1009ms-1") == "loss loss");
  const auto seen = [](const std::string& time) {
    return Scene()
        .lock(1, kLost + "lost taken 1009ms\nlost_seen " + time +
                     "\n"
                     "let_go 1011ms\n")
        .broken();
  };
  BOOST_TEST(seen("1009ms") == "");
  BOOST_TEST(seen("1009ms-1") == "loss");
}

BOOST_AUTO_TEST_CASE(a_loss_may_be_told_after_the_next_acquisition) {
  const std::string lost = kLost +
                           "lost_seen 1020ms\nwants 1 900ms lock\n"
                           "let_go 1030ms\nacquired 1 1100ms\n"
                           "held 1100ms 2100ms\n";
  const std::string ended = "ended 1300ms\nlet_go 1301ms\n";
  BOOST_TEST(Scene().lock(1, lost + "lost expired 1200ms\n" + ended).broken() ==
             "");
  // But is none of the next one's then.
  BOOST_TEST(Scene()
                 .lock(1, lost + "lost expired 1200ms\nlost_seen 2110ms\n"
                                 "let_go 2111ms\n")
                 .broken() == "loss");
  BOOST_TEST(Scene()
                 .lock(1, lost + "lost expired 1200ms\nlost_seen 2110ms\n"
                                 "let_go 2111ms\nlost expired 2100ms\n")
                 .broken() == "");
}

// In a process that was stopped as lock() returned.
BOOST_AUTO_TEST_CASE(a_loss_may_be_told_before_its_acquisition) {
  const auto told = [](const std::string& time) {
    return Scene()
        .lock(1,
              "wants 0 5ms lock\nwants 1 5ms lock\nacquired 0 10ms\n"
              "ended 20ms\nlost expired " +
                  time +
                  "\nacquired 1 2000ms\nlost_seen 2001ms\nlet_go 21ms\n"
                  "let_go 2002ms\n")
        .broken();
  };
  BOOST_TEST(told("1990ms") == "");
  // But not while another had it.
  BOOST_TEST(told("20ms") == "");
  BOOST_TEST(told("20ms-1") == "loss");
}

BOOST_AUTO_TEST_CASE(losses_may_be_written_out_of_order) {
  BOOST_TEST(Scene()
                 .lock(1, kLost + "wants 1 900ms lock\nlost_seen 1020ms\n"
                                  "let_go 1021ms\nacquired 1 1100ms\n"
                                  "lost_seen 1300ms\nlet_go 1301ms\n"
                                  "lost expired 1400ms\nlost expired 1015ms\n")
                 .broken() == "");
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_told_twice_is_found) {
  BOOST_TEST(Scene()
                 .lock(1, kLost + "lost expired 1010ms\nlost taken 1012ms\n"
                                  "lost_seen 1020ms\nlet_go 1021ms\n")
                 .broken() == "loss");
}

BOOST_AUTO_TEST_CASE(a_loss_without_an_acquisition_is_found) {
  BOOST_TEST(Scene()
                 .lock(1,
                       "wants 0 5ms lock\nlost taken 6ms\n"
                       "without 0 7ms cancelled\n")
                 .broken() == "loss");
}

// Between the last look and the unlock, or by it.
BOOST_AUTO_TEST_CASE(a_loss_that_nobody_saw_may_be_told) {
  const auto told = [](const std::string& what) {
    return Scene()
        .lock(1, kLost + "ended 1009ms\nlet_go 1500ms\nlost " + what + "\n")
        .broken();
  };
  BOOST_TEST(told("expired 1010ms") == "");
  BOOST_TEST(told("expired 2000ms") == "");
  BOOST_TEST(told("expired 2000ms+1") == "loss");
  // What unlock() left to do goes on for the lease, and its 1 %.
  BOOST_TEST(told("taken 3010ms") == "");
  BOOST_TEST(told("taken 3010ms+1") == "loss");
}

// --- 3: errors ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(only_the_timed_forms_may_fail_and_only_for_a_time) {
  const auto ends = [](const std::string& kind, const std::string& why) {
    return Scene()
        .lock(1, "wants 0 5ms " + kind + "\nwithout 0 6ms " + why + "\n")
        .broken();
  };
  const auto error = [](ddbmutex::Errc code) {
    return "error " + std::to_string(static_cast<int>(code)) + "-" +
           make_error_code(code).message();
  };
  using ddbmutex::Errc;
  for (const Errc code :
       {Errc::unreachable, Errc::disconnected, Errc::timed_out, Errc::throttled,
        Errc::unavailable, Errc::bad_answer}) {
    BOOST_TEST(ends("try", error(code)) == "", error(code));
    BOOST_TEST(ends("try_for", error(code)) == "", error(code));
    BOOST_TEST(ends("lock", error(code)) == "error", error(code));
  }
  for (const Errc code : {Errc::no_keys, Errc::bad_keys, Errc::bad_record,
                          Errc::no_table, Errc::bad_request}) {
    BOOST_TEST(ends("try_for", error(code)) == "error", error(code));
  }
  BOOST_TEST(ends("try", "busy") == "");
  BOOST_TEST(ends("lock", "busy") == "error");
  BOOST_TEST(ends("lock", "cancelled") == "");
}

BOOST_AUTO_TEST_CASE(release_may_fail_only_for_a_time) {
  const auto ends = [](const std::string& error) {
    return Scene()
        .lock(1, "wants 0 5ms lock\nacquired 0 6ms\nended 7ms\nlet_go 8ms " +
                     error + "\n")
        .broken();
  };
  BOOST_TEST(ends(make_error_code(ddbmutex::Errc::timed_out).message()) == "");
  BOOST_TEST(ends(make_error_code(ddbmutex::Errc::not_held).message()) ==
             "error");
}

// --- 4: waits ----------------------------------------------------------------

// A lease of 1,000 ms and 1 %, and 10 s.
BOOST_AUTO_TEST_CASE(nobody_waits_for_long_for_a_name_that_is_free) {
  const auto waits = [](const std::string& until) {
    return Scene()
        .lock(1, "wants 0 100ms lock\nacquired 0 " + until +
                     "\nended 30000ms\n"
                     "let_go 30001ms\n")
        .broken();
  };
  BOOST_TEST(waits("11110ms") == "");
  BOOST_TEST(waits("11110ms+1") == "wait");
}

BOOST_AUTO_TEST_CASE(free_times_between_claims_are_not_added_up) {
  const auto waits = [](const std::string& until) {
    return Scene()
        .lock(1, "wants 0 100ms lock\n" + Scene::held(10000, 10001))
        .lock(2, "wants 0 100ms lock\nacquired 0 " + until +
                     "\nended 30000ms\n"
                     "let_go 30001ms\n")
        .broken();
  };
  BOOST_TEST(waits("21011ms") == "");
  BOOST_TEST(waits("21011ms+1") == "wait");
}

// But for one that is passed over for 30 s and a lease while others come and
// go: here by one that is in for a millisecond at 5, 10, ... 35 s.
BOOST_AUTO_TEST_CASE(a_waiter_that_others_pass_over_for_long_is_found) {
  std::string others;
  for (int time = 5000; time <= 35000; time += 5000) {
    others += "wants 0 " + std::to_string(time) + "ms lock\n" +
              Scene::held(time, time + 1);
  }
  const auto waits = [&others](const std::string& until) {
    return Scene()
        .lock(1, others)
        .lock(2, "wants 0 4000ms lock\nacquired 0 " + until +
                     "\nended 40000ms\nlet_go 40001ms\n")
        .broken();
  };
  BOOST_TEST(waits("35017ms") == "");
  BOOST_TEST(waits("35017ms+1") == "wait");
}

// Even if nothing can be reached, but not while its process is stopped.
BOOST_AUTO_TEST_CASE(a_timed_call_ends_in_time) {
  const auto waits = [](const std::string& kind, const std::string& until,
                        const std::string& stalled = "") {
    return Scene()
        .lock(1, stalled + "wants 0 100ms " + kind + "\nwithout 0 " + until +
                     " busy\n")
        .event("slow 200ms 40000ms")  // It is to end whoever answers.
        .event("down engine 90ms\nup engine 40000ms")
        .event("stop 1 1 3000ms\ngo 1 1 4000ms")
        .broken();
  };
  for (const char* kind : {"try", "try_for"}) {
    BOOST_TEST(waits(kind, "8100ms") == "");
    BOOST_TEST(waits(kind, "8100ms+1") == "wait");
    BOOST_TEST(waits(kind, "9100ms", "stalled 5000ms 6000ms\n") == "");
    BOOST_TEST(waits(kind, "9100ms+1", "stalled 5000ms 6000ms\n") == "wait");
  }
}

BOOST_AUTO_TEST_CASE(what_is_held_or_promised_is_not_free) {
  const auto waits = [](const std::string& until) {
    return Scene()
        .lock(1, promised("50ms", "9000ms"))
        .killed(1, "60ms")
        .lock(2, "wants 0 100ms lock\nacquired 0 " + until +
                     "\nended 30000ms\n"
                     "let_go 30001ms\n")
        .broken();
  };
  BOOST_TEST(waits("20010ms") == "");
  BOOST_TEST(waits("20010ms+1") == "wait");
}

BOOST_AUTO_TEST_CASE(outages_and_own_stops_are_subtracted_and_only_once) {
  const auto waits = [](int process, const std::string& until,
                        const std::string& more = "slow 50000ms 50001ms") {
    return Scene()
        .lock(process, "wants 0 100ms lock\nacquired 0 " + until +
                           "\nended 40000ms\nlet_go 40001ms\n")
        .event(more)
        .event("down engine 1000ms\nup engine 3000ms")
        .event("down cut-off 2000ms\nup cut-off 4000ms")
        .event("stop 1 1 3500ms\ngo 1 1 5000ms")
        .event("down hang 6000ms\nup hang 6500ms")
        .broken();
  };
  BOOST_TEST(waits(1, "15610ms") == "");
  BOOST_TEST(waits(1, "15610ms+1") == "wait");
  BOOST_TEST(waits(1, "15710ms", "slow 500ms 600ms") == "");
  BOOST_TEST(waits(1, "15710ms+1", "slow 500ms 600ms") == "wait");
  // Somebody else's stop is no excuse.
  BOOST_TEST(waits(2, "14610ms") == "");
  BOOST_TEST(waits(2, "14610ms+1") == "wait");
}

BOOST_AUTO_TEST_CASE(a_waiter_that_is_killed_has_waited_until_then) {
  const std::string wants = "wants 0 100ms lock\n";
  BOOST_TEST(Scene().lock(1, wants).killed(1, "11110ms").broken() == "");
  BOOST_TEST(Scene().lock(1, wants).killed(1, "11110ms+1").broken() == "wait");
}

BOOST_AUTO_TEST_CASE(an_outage_counts_only_where_it_meets_the_wait) {
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 100ms lock\n")
                 .killed(1, "11300ms")
                 .event("down engine 11200ms\nup engine 19000ms")
                 .event("down hang 1ms\nup hang 101ms")
                 .broken() == "wait");
}

BOOST_AUTO_TEST_CASE(a_wait_that_never_ends_is_found) {
  BOOST_TEST(Scene().lock(1, "wants 0 100ms lock\n").broken() ==
             "process wait");
}

// --- 5: after the run --------------------------------------------------------

BOOST_AUTO_TEST_CASE(nobody_waits_on_when_all_is_calm) {
  const auto waits = [](const std::string& from, const std::string& to,
                        const std::string& more = "slow 1ms 2ms") {
    return Scene()
        .event("calm 20000ms")
        .event(more)
        .lock(1, "wants 0 " + from + " lock\nwithout 0 " + to + " cancelled\n")
        .lock(2, "wants 0 5ms lock\n" + Scene::held(10, 48000))
        .broken();
  };
  // A lease of a second, 1 % and 15 s.
  BOOST_TEST(waits("19999ms", "36010ms") == "");
  BOOST_TEST(waits("19999ms", "36010ms+1") == "wait");
  BOOST_TEST(waits("20000ms", "36010ms+1") == "");
  const std::string slow = "slow 19000ms 21000ms";
  BOOST_TEST(waits("19999ms", "37010ms", slow) == "");
  BOOST_TEST(waits("19999ms", "37010ms+1", slow) == "wait");
}

BOOST_AUTO_TEST_CASE(each_name_is_taken_soon_once_all_is_quiet) {
  BOOST_TEST(Scene().taken("other", "6010ms").broken() == "");
  BOOST_TEST(Scene().taken("other", "6010ms+1").broken() == "quiet");
  Scene slow;
  slow.event("slow 49000ms 50000ms");
  BOOST_TEST(slow.taken("other", "7010ms").broken() == "");
  BOOST_TEST(slow.taken("other", "7010ms+1").broken() == "quiet");
  BOOST_TEST(Scene().log(1, "third", "").broken() == "quiet");
  BOOST_TEST(Scene().quiet("").broken() == "quiet");
}

// --- 6: processes ------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_process_ends_well_or_is_killed_by_the_driver) {
  BOOST_TEST(Scene().killed(1, "40000ms").broken() == "");
  BOOST_TEST(Scene().ends(1, "exit 1 1 40000ms 137").broken() == "process");
  BOOST_TEST(Scene().ends(1, "exit 1 1 40000ms 1").broken() == "process");
  BOOST_TEST(Scene().ends(1, "exit 1 1 40000ms 134").broken() == "process");
  BOOST_TEST(
      Scene().ends(1, "kill 1 1 40000ms\nexit 1 1 40000ms 139").broken() ==
      "process");
  BOOST_TEST(Scene().ends(1, "").ends(1, "calendar 1 1 5ms 0").broken() ==
             "process");
}

BOOST_AUTO_TEST_CASE(a_process_that_complains_or_hangs_is_found) {
  BOOST_TEST(Scene().event("complaint 1 1 data race").broken() == "process");
  BOOST_TEST(Scene().killed(1, "40000ms").event("hung 1 1 39999ms").broken() ==
             "process");
}

BOOST_AUTO_TEST_CASE(a_log_is_well_formed_and_complete_unless_killed) {
  const std::string cut = "wants 0 100ms lock\nacq";
  BOOST_TEST(Scene().lock(1, cut).killed(1, "200ms").broken() == "");
  BOOST_TEST(Scene().lock(1, "want").broken() == "process");
  BOOST_TEST(Scene().lock(1, kLost).broken() == "process");
  BOOST_TEST(Scene().lock(1, "nonsense\n").killed(1, "200ms").broken() ==
             "process");
  BOOST_TEST(Scene().lock(7, "").broken() == "process");
}

// --- 7: the run was what it says ---------------------------------------------

BOOST_AUTO_TEST_CASE(clocks_are_as_they_were_set) {
  const auto seen = [](nanoseconds calendar, nanoseconds boot) {
    MutexLog log;
    static torture::Clocks clocks;
    clocks = {calendar, boot};
    return Scene()
        .lock(3, "")
        .change([](MutexLog& one) { one.clocks = clocks; })
        .event("start 3 1 1ms 13 -3600\nexit 3 1 50000ms 0")
        .log(3, "other", "wants 0 5ms lock\n" + Scene::held(6, 7))
        .change([](MutexLog& one) { one.clocks->calendar = -1h; })
        .broken();
  };
  BOOST_TEST(seen(-1h, 0ns) == "");
  BOOST_TEST(seen(-1h + 2s, 1s) == "");
  BOOST_TEST(seen(-1h - 2s - 1ns, 0ns) == "run");
  BOOST_TEST(seen(-1h + 2s + 1ns, 0ns) == "run");
  BOOST_TEST(seen(-1h, 1s + 1ns) == "run");
  BOOST_TEST(seen(-1h, -1s - 1ns) == "run");
}

BOOST_AUTO_TEST_CASE(a_log_without_clocks_is_a_killed_ones) {
  Scene scene;
  scene.lock(1, "").change([](MutexLog& one) { one.clocks.reset(); });
  BOOST_TEST(scene.broken() == "run");
  BOOST_TEST(scene.killed(1, "200ms").broken() == "");
}

BOOST_AUTO_TEST_CASE(each_process_gets_in) {
  BOOST_TEST(Scene().event("start 3 1 1ms 13 0\nexit 3 1 50000ms 0").broken() ==
             "run");
  BOOST_TEST(Scene().event("start 1 2 1ms 13 0\nexit 1 2 50000ms 0").broken() ==
             "");
  BOOST_TEST(judge(History()).violations.size() == 2u);
}

BOOST_AUTO_TEST_CASE(events_that_make_no_sense_are_found) {
  // All that was to come is missing, then.
  BOOST_TEST(Scene().event("nonsense").broken() ==
             "process process quiet quiet run");
}

BOOST_AUTO_TEST_CASE(a_run_of_five_minutes_sees_every_kind_of_fault) {
  const Bounds bounds;
  const auto run = [&](std::size_t kinds, const std::string& quiet) {
    Scene scene;
    scene.quiet("quiet " + quiet + "\n").taken("other", "1ms");
    for (std::size_t i = 0; i < kinds; ++i) {
      scene.event("fault 100ms " + bounds.fault_kinds[i] + " PutItem k");
    }
    return scene.broken();
  };
  const std::size_t all = bounds.fault_kinds.size();
  BOOST_TEST(run(all, "300000ms") == "");
  BOOST_TEST(run(all - 1, "300000ms") == "run");
  BOOST_TEST(run(0, "300000ms-1") == "");
}

BOOST_AUTO_TEST_CASE(what_falls_short_of_the_bars_is_told_apart) {
  Bounds bounds;
  bounds.acquisitions = 25;  // In 600 s: 2.04 in 49 s.
  bounds.faults = 24;
  bounds.kills_and_stops = 25;
  Scene scene;
  scene.event("fault 100ms drop PutItem k").event("stop 1 1 1ms\ngo 1 1 2ms");
  const Findings found = scene.judged(bounds);
  BOOST_TEST(found.violations.empty());
  BOOST_TEST_REQUIRE(found.shortfalls.size() == 1u);
  BOOST_TEST(found.shortfalls[0] == "1 kills and stops of 2");
  bounds.time = 24s;
  BOOST_TEST(scene.judged(bounds).shortfalls.empty());
}

// --- Counts ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(all_is_counted) {
  const Findings found =
      Scene()
          .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20) +
                       "wants 0 23ms try\nwithout 0 24ms busy\n"
                       "wants 0 25ms try_for\nwithout 0 26ms error 15-x\n"
                       "wants 0 30ms lock\n" +
                       Scene::held(60, 70) +
                       "wants 0 75ms lock\nacquired 0 80ms\nheld 80ms 1080ms\n"
                       "danger 1000ms\nlost expired 1081ms\n")
          .killed(1, "1100ms")
          .lock(2, "wants 0 15ms lock\n" + Scene::held(23, 40) +
                       "wants 0 90ms lock\n" + Scene::held(1100, 1110))
          .event("stop 2 1 1ms\ngo 2 1 2ms\ncalendar 2 1 3ms 60")
          .event(
              "fault 1ms drop PutItem k\nfault 2ms drop GetItem k\n"
              "fault 3ms 500 GetItem k\ndown hang 5ms\nup hang 8ms\n"
              "down hang 10ms\nup hang 11ms\nleft lock")
          .judged();
  const torture::Counts& counts = found.counts;
  BOOST_TEST((counts.time == 49s));
  BOOST_TEST((counts.processes == 2u && counts.starts == 2u));
  BOOST_TEST((counts.names == 2u && counts.acquisitions == 7u));
  BOOST_TEST(counts.without.at("busy") == 1u);
  BOOST_TEST(
      (counts.without.at("error") == 1u && counts.errors.at("15-x") == 1u));
  // On `lock` 1 to 2 (3 ms), 2 to 1 (20 ms), 1 to 2 (20 ms after its promise);
  // on `other` 1 to 2 (1 ms).
  BOOST_TEST(counts.hand_overs == 4u);
  const torture::OfPolicy& deleted = counts.deleted;
  BOOST_TEST((deleted.after_unlock.percentile(1) == 1ms));
  BOOST_TEST((deleted.after_unlock.percentile(50) == 3ms));
  BOOST_TEST((deleted.after_unlock.percentile(99) == 20ms));
  BOOST_TEST((deleted.after_death.percentile(50) == 20ms));
  BOOST_TEST((counts.longest_wait == 1010ms));
  BOOST_TEST((counts.longest_free_wait == 20ms));
  BOOST_TEST((counts.faults.at("drop") == 2u && counts.all_faults == 3u));
  BOOST_TEST((counts.kills == 1u && counts.stops == 1u && counts.jumps == 1u));
  BOOST_TEST((counts.outages.at("hang").count == 2u));
  BOOST_TEST((counts.outages.at("hang").time == 4ms));
  BOOST_TEST((counts.losses.at("expired") == 1u && counts.dangers == 1u));
  BOOST_TEST((counts.rows_left == 1u && counts.slowest_taken == 1ms));
}

BOOST_AUTO_TEST_CASE(a_hand_over_that_nobody_waited_for_takes_no_time) {
  const torture::Counts counts =
      Scene()
          .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
          .lock(2, "wants 0 21ms lock\n" + Scene::held(23, 40))
          .judged()
          .counts;
  BOOST_TEST(counts.hand_overs == 2u);
  // On `other`.
  BOOST_TEST(counts.deleted.after_unlock.times.size() == 1u);
}

BOOST_AUTO_TEST_CASE(each_policy_is_counted_for_itself) {
  const torture::Counts counts =
      Scene()
          .kept(1, "wants 0 5ms lock\n" + Scene::held(10, 20, "5 0"))
          .kept(2, "wants 0 5ms lock\n" + Scene::held(26, 30, "6 0") +
                       "wants 0 40ms lock\nacquired 0 41ms 8 0\n"
                       "held 41ms 1041ms\nlost taken 1041ms\n")
          .killed(2, "1100ms")
          .event("fault 1ms drop UpdateItem ddblock-lock")
          .event("fault 2ms drop PutItem ddblock-other")
          .event("fault 3ms drop GetItem ddblock-other")
          .row(10)
          .judged()
          .counts;
  BOOST_TEST((counts.kept.names == 1u && counts.deleted.names == 1u));
  BOOST_TEST(counts.kept.acquisitions == 3u);
  BOOST_TEST(counts.deleted.acquisitions == 2u);
  BOOST_TEST(counts.kept.hand_overs == 1u);
  BOOST_TEST(counts.hand_overs == 2u);
  BOOST_TEST((counts.kept.after_unlock.percentile(50) == 6ms));
  BOOST_TEST((counts.deleted.after_unlock.percentile(50) == 1ms));
  BOOST_TEST((counts.kept.losses == 1u && counts.deleted.losses == 0u));
  BOOST_TEST((counts.kept.faults == 1u && counts.deleted.faults == 2u));
  BOOST_TEST(counts.numbers == 10u);
}

BOOST_AUTO_TEST_CASE(figures_are_written_for_people) {
  using torture::grouped;
  using torture::lasting;
  BOOST_TEST(grouped(0) == "0");
  BOOST_TEST(grouped(999) == "999");
  BOOST_TEST(grouped(1000) == "1,000");
  BOOST_TEST(grouped(1234567) == "1,234,567");
  BOOST_TEST(lasting(999ns) == "999 ns");
  BOOST_TEST(lasting(1000ns) == "1.00 us");
  BOOST_TEST(lasting(-12345us) == "-12.3 ms");
  BOOST_TEST(lasting(999999us) == "999 ms");
  BOOST_TEST(lasting(4567ms) == "4.56 s");
  BOOST_TEST(lasting(600s) == "600 s");
  BOOST_TEST(lasting(12345s) == "12345 s");
  BOOST_TEST(torture::moment(1234567890123ns) == "1234.567890123 s");
  BOOST_TEST(torture::moment(-5ns) == "-0.000000005 s");
}

// --- The table and the picture -----------------------------------------------

namespace {

void must_have(const std::string& text, const std::string& part) {
  BOOST_TEST((text.find(part) != text.npos), "no '" << part << "'");
}

std::string picture_of(const History& history, const Findings& found,
                       const std::string& title = "Torture") {
  std::ostringstream out;
  write_timeline(out, history, found, title);
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_table_tells_of_a_good_run_and_of_a_bad_one) {
  const History good = Invention(60s, 1).history();
  const Findings found = judge(good);
  const std::string table = table_of(good, found);
  BOOST_TEST_MESSAGE(table);
  must_have(table, "8 processes started");
  must_have(table, torture::grouped(found.counts.acquisitions));
  for (const auto& [kind, times] : found.counts.faults) must_have(table, kind);
  for (const char* what : {"cut-off", "hang", "engine", "expired", "lock-5"}) {
    must_have(table, what);
  }
  must_have(table, "nothing wrong");
  for (const char* what : {"kept rows", "deleted rows", "nobody's"}) {
    must_have(table, what);
  }
  Scene scene;
  for (int i = 0; i < 25; ++i) {
    scene.event("complaint 1 1 number " + std::to_string(i));
  }
  const std::string bad = table_of(scene.history(), scene.judged());
  must_have(bad, "WRONG: process, 25");
  must_have(bad, "process 1.1 complained: number 19");
  must_have(bad, "and 5 more");
  BOOST_TEST((bad.find("nothing wrong") == bad.npos));
}

BOOST_AUTO_TEST_CASE(the_picture_shows_who_what_and_what_went_wrong) {
  Scene scene;
  scene.lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
      .lock(2, "wants 0 5ms lock\n" + Scene::held(19, 30))
      .event("complaint 1 1 <b> & \"c\" 'd' \x01\xff")
      .event("down cut-off 1000ms\nup cut-off 5000ms")
      .event("down flood 9000ms\nup flood 9500ms")
      .event("start 1 2 10000ms 13 -41400\nexit 1 2 50000ms 0")
      .event("calendar 1 2 20000ms 90");
  const Findings found = scene.judged();
  BOOST_TEST_REQUIRE(found.violations.size() == 2u);
  const std::string picture =
      picture_of(scene.history(), found, "Torture of <lock> & key");
  XmlCheck check(picture);
  BOOST_TEST(check.problem() == "");
  must_have(check.texts(), "Torture of &lt;lock&gt; &amp; key");
  must_have(check.texts(), "2 violations");
  must_have(check.texts(), found.violations[0].words);
  must_have(check.texts(), "&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos; ??");
  for (const char* what : {"lock", "other", "process 1", "process 2", "cut-off",
                           "flood", "-11.5 h", "+2 min", "quiet"}) {
    must_have(check.texts(), what);
  }
}

BOOST_AUTO_TEST_CASE(the_picture_of_a_run_that_hardly_was_is_well_formed) {
  for (const History& history :
       {History(), read_events("start 1 1 5ms 7 0\n"), Scene().history()}) {
    BOOST_TEST(XmlCheck(picture_of(history, judge(history))).problem() == "");
  }
}

BOOST_AUTO_TEST_CASE(many_claims_are_judged_fast_and_fit_into_a_small_picture) {
  const Invention invention(600s, 2);
  const History& history = invention.history();
  const Findings found = judge(history);
  BOOST_TEST(found.counts.acquisitions > 100000u);
  for (const Violation& one : found.violations) BOOST_TEST_ERROR(one.words);
  const std::string picture = picture_of(history, found);
  BOOST_TEST_MESSAGE(found.counts.acquisitions << " claims, " << picture.size()
                                               << " bytes");
  BOOST_TEST(picture.size() < 3000000u);
  XmlCheck check(picture);
  BOOST_TEST(check.problem() == "");
  for (const std::string& name : history.names()) must_have(picture, name);
}

BOOST_AUTO_TEST_SUITE_END()
