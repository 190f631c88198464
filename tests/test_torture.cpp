// Whether the judge of the torture judges well: each of its rules with what it
// just allows and what it just does not.  (The torture itself is
// tests/torture/torture.cpp.)
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/torture/diary.hpp"
#include "tests/torture/history.hpp"
#include "tests/torture/judge.hpp"
#include "tests/torture/mischief.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using torture::History;
using torture::MutexLog;

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

// A short run of processes 1 and 2 in which all went well, to which a test adds
// what it is about: on the name `lock`.
class Scene {
 public:
  Scene() {
    log(1, "other", "wants 0 1ms lock\n" + held(1, 2));
    log(2, "other", "wants 0 1ms lock\n" + held(3, 4));
  }

  // An acquisition from one ms to another; of a kept row with its token.
  static std::string held(int from, int to, const std::string& token = {}) {
    const std::string begin = std::to_string(from) + "ms";
    return "acquired 0 " + begin + (token.empty() ? "" : " " + token) +
           "\nheld " + begin + " " + std::to_string(from + 1000) +
           "ms\nended " + std::to_string(to) + "ms\nlet_go " +
           std::to_string(to) + "ms+1\n";
  }

  Scene& log(int process, const std::string& name, const std::string& text) {
    MutexLog log = read("clocks 0 0\n" + text);
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
  // After the run, by somebody new.
  Scene& taken(const std::string& name, int token) {
    taken_[name] = token;
    return *this;
  }
  // The same for a lock whose row is kept.
  Scene& kept(int process, const std::string& text) {
    return lock(process, "kept\n" + text).taken("lock", 99);
  }

  History history() const {
    std::string events = "start 1 1 0 0\nstart 2 1 0 0\n" + events_;
    for (const auto& [process, how] : ends_) events += how + "\n";
    for (const auto& [name, token] : taken_) {
      events += "taken " + name + " " + std::to_string(token) + "\n";
    }
    std::istringstream in(expanded(events));
    History history;
    torture::read_events(in, history);
    history.logs = logs_;
    torture::complete(history);
    return history;
  }

  std::vector<std::string> judged() const { return judge(history()); }
  // The names of the rules that were broken, in order.
  std::string broken() const {
    std::vector<std::string> all;
    for (const std::string& one : judged()) {
      BOOST_TEST_MESSAGE(one);
      all.push_back(one.substr(0, one.find(':')));
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
  std::map<std::string, int> taken_ = {{"lock", 0}, {"other", 0}};
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

BOOST_AUTO_TEST_CASE(a_log_that_makes_no_sense_is_a_problem) {
  for (const char* text :
       {"nonsense 1\n",
        "\n",
        "clocks 1\n",
        "clocks x 1\n",
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
        "wants 0 1ms lock\nwants 0 2ms lock\n",
        "wants 0 2ms lock\nacquired 0 1ms\n",
        "wants 0 1ms lock\nacquired 1 2ms\n",
        "wants 0 1ms lock\nwithout 0 2ms bored\n",
        "wants 0 2ms lock\nwithout 0 1ms busy\n",
        "wants 0 1ms lock\nacquired 0 2ms\nheld 1ms 9ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nheld 3ms 3ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nlet_go 3ms\n",
        "wants 0 1ms lock\nacquired 0 2ms\nended 3ms\nended 4ms\n",
        "wants 0 1ms lock\nacquired 0 2ms 5\n",
        "kept\nwants 0 1ms lock\nacquired 0 2ms\n"}) {
    BOOST_TEST(read(std::string("clocks 0 0\n") + text).problem != "", text);
  }
  BOOST_TEST(read("wants 0 1ms lock\n").problem != "");
}

// --- Overlaps ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_run_in_which_all_went_well_breaks_no_rule) {
  BOOST_TEST(Scene().broken() == "");
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
                 .lock(2, "wants 0 5ms lock\n" + Scene::held(20, 30))
                 .broken() == "");
}

BOOST_AUTO_TEST_CASE(an_overlap_of_a_nanosecond_is_found_and_told) {
  const auto found =
      Scene()
          .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 20))
          .lock(2,
                "wants 0 5ms lock\nacquired 0 20ms-1\nended 21ms\n"
                "let_go 22ms\n")
          .judged();
  BOOST_TEST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0] ==
             "overlap: lock: process 1.1 held it from 0.010000000 s to "
             "0.020000000 s, and process 2.1 held it from 0.019999999 s to "
             "0.021000000 s");
}

BOOST_AUTO_TEST_CASE(an_overlap_with_a_claim_that_is_not_the_last_is_found) {
  BOOST_TEST(Scene()
                 .lock(1, "wants 0 5ms lock\n" + Scene::held(10, 100))
                 .lock(2, "wants 0 5ms lock\n" + Scene::held(20, 30) +
                              "wants 0 40ms lock\n" + Scene::held(90, 95))
                 .broken() == "overlap overlap");
}

// Who is killed, and who loses it.
BOOST_AUTO_TEST_CASE(what_was_promised_is_theirs_to_its_end) {
  const auto next = [](Scene scene, const std::string& time) {
    return scene
        .lock(2, "wants 0 5ms lock\nacquired 0 " + time +
                     "\nended 2000ms\nlet_go 2001ms\n")
        .broken();
  };
  const Scene killed = Scene().lock(1, kLost).killed(1, "15ms");
  const Scene loser =
      Scene().lock(1, kLost +
                          "lost expired 1010ms\nlost_seen 1011ms\n"
                          "let_go 1012ms\n");
  for (const Scene& scene : {killed, loser}) {
    BOOST_TEST(next(scene, "1010ms") == "");
    BOOST_TEST(next(scene, "1010ms-1") == "overlap");
  }
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
      .kept(2, "wants 0 5ms lock\n" + Scene::held(20, 30, second));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_token_that_does_not_grow_is_found_and_told) {
  BOOST_TEST(two_tokens("5", "4").broken() == "token");
  const auto found = two_tokens("6", "5").judged();
  BOOST_TEST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0] ==
             "token: lock: gave 6 to process 1.1 at 0.010000000 s, then 5 to "
             "process 2.1 at 0.020000000 s");
}

BOOST_AUTO_TEST_CASE(the_token_after_the_run_is_higher_than_all_in_it) {
  const auto taken = [](int token) {
    return two_tokens("5", "7").taken("lock", token).broken();
  };
  BOOST_TEST(taken(8) == "");
  BOOST_TEST(taken(7) == "token");
}

// --- Errors ------------------------------------------------------------------

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
}

// --- Processes ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_process_ends_well_or_is_killed_by_the_torture) {
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
  // In a call, while it holds the lock, and before it has let it go.
  BOOST_TEST(Scene().lock(1, "wants 0 5ms lock\n").broken() == "process");
  BOOST_TEST(Scene().lock(1, kLost).broken() == "process");
  BOOST_TEST(Scene().lock(1, kLost + "ended 20ms\n").broken() == "process");
  BOOST_TEST(Scene().lock(1, "nonsense\n").killed(1, "200ms").broken() ==
             "process");
  BOOST_TEST(Scene().lock(7, "").broken() == "process");
}

// --- The run and its end -----------------------------------------------------

BOOST_AUTO_TEST_CASE(each_process_gets_in) {
  BOOST_TEST(Scene().event("start 3 1 1ms 0\nexit 3 1 50000ms 0").broken() ==
             "run");
  BOOST_TEST(Scene().event("start 1 2 1ms 0\nexit 1 2 50000ms 0").broken() ==
             "");
  BOOST_TEST(judge(History()).size() == 1u);
}

BOOST_AUTO_TEST_CASE(each_lock_is_free_in_the_end) {
  BOOST_TEST(Scene().log(1, "third", "").taken("third", 0).broken() == "");
  BOOST_TEST(Scene().log(1, "third", "").broken() == "end");
}

// --- The plan ----------------------------------------------------------------

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
