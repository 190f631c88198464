// Does every call survive it that any one allocation fails?
//
//   allocations [scenario=NAME] [n=K] [step=K] [seed=S] [jobs=J]
//
//   scenario=   this one alone; else all (tests/allocations/scenarios.hpp), but
//               for the "mistakes", which are wrong, and are to be told so
//   n=          this round alone, in which the n-th allocation fails
//   step=1      each step-th allocation alone, from one on that the seed draws
//   seed=
//   jobs=4      so many scenarios beside one another
//
// A scenario is played in rounds.  In the first the first allocation fails that
// the library, libcurl, OpenSSL or the C library makes, in any thread; in the
// next the second; and so on, until a round ends without having needed so many.
// After each, allocations work again, and it is judged: no process may have
// ended or hung, no call may have thrown anything but std::bad_alloc or Error,
// what did not fail must have done what it promises; nothing that is held may
// be lost, no mutex be stuck, no row be left behind, no memory leak, no
// descriptor be left open.
//
// Rounds are played by processes of this same program ("allocations play ..."),
// so that what crashes or hangs is told and the next round goes on.  The engine
// and the gateways are processes of their own, in which nothing fails.
//
// The last line is "S scenarios, R rounds, F failures injected, W wrong"; the
// status is 0 if W is.
#include <openssl/err.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/allocations/round.hpp"
#include "tests/allocations/scenarios.hpp"
#include "tests/allocations/spared.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/process.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using allocations::Place;
using allocations::Round;
using allocations::say;
using allocations::Scenario;
using allocations::Site;
using std::chrono::milliseconds;

const Scenario& scenario_of(std::string_view name) {
  for (const auto* all :
       {&allocations::scenarios(), &allocations::mistakes()}) {
    for (const Scenario& one : *all) {
      if (one.name == name) return one;
    }
  }
  throw std::runtime_error("there is no scenario " + std::string(name));
}

// --- A process that plays ----------------------------------------------------

// It says on stdout:
//
//   round N
//   failed SIZE               the allocation that fails
//   wrong TEXT
//   end
//   over                      the round before needed no N allocations
class Player {
 public:
  Player(const Scenario& scenario, Site& site)
      : scenario_(scenario), site_(site) {}

  // False if no allocation has failed.
  bool play(long n) {
    say("round " + std::to_string(n));
    const bool fired = play_once(n);
    if (right_ && !scenario_.fresh && growth_.any()) look_for_leak(n);
    say("end");
    return fired;
  }

  // Caches of the first use are filled.
  void warm_up() {
    for (int i = 0; i < 3; ++i) play_once(0);
  }

 private:
  static constexpr milliseconds kForThreads{300};

  // What a round has left that was not there before it.
  struct Growth {
    long blocks = 0;
    long descriptors = 0;
    bool any() const { return blocks > 0 || descriptors > 0; }
  };

  static Growth level() {
    // OpenSSL keeps the last 16 errors of a thread: they are no leak.
    ERR_clear_error();
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return {allocations::live_blocks(), std::distance(begin(open), end(open))};
  }

  bool play_once(long n) {
    const Growth before = level();
    bool fired = false;
    {
      Round round(site_, n);
      scenario_.play(round);
      fired = round.fired();
      right_ = round.right();
    }
    if (scenario_.fresh) return fired;
    const auto measure = [&] {
      const Growth now = level();
      growth_ = {now.blocks - before.blocks,
                 now.descriptors - before.descriptors};
    };
    tests::eventually([&] { return measure(), !growth_.any(); }, kForThreads);
    return fired;
  }

  // What is made once and kept is no leak: only what is left each time is.
  void look_for_leak(long n) {
    for (int again = 0; again < 3; ++again) {
      play_once(n);
      if (!growth_.any()) return;
    }
    if (growth_.blocks > 0) {
      say("wrong " + std::to_string(growth_.blocks) + " blocks of memory leak");
    }
    if (growth_.descriptors > 0) {
      say("wrong descriptors left open: " +
          std::to_string(growth_.descriptors));
    }
  }

  const Scenario& scenario_;
  Site& site_;
  // Of the last round: what it left, and whether all else is well.
  Growth growth_{};
  bool right_ = true;
};

// play SCENARIO TABLE FIRST STEP ENGINE, where a STEP of 0 is one round alone.
int play(char** words) {
  const allocations::Counting quiet(false);
  signal(SIGPIPE, SIG_DFL);  // Nobody hears us: it is over.
  const Scenario& scenario = scenario_of(words[0]);
  tests::Whereabouts where;
  where.table = words[1];
  where.url = std::getenv("AWS_ENDPOINT_URL_DYNAMODB");
  where.region = std::getenv("AWS_REGION");
  where.keys = {std::getenv("AWS_ACCESS_KEY_ID"),
                std::getenv("AWS_SECRET_ACCESS_KEY"), ""};
  long n = std::stol(words[2]);
  const long step = std::stol(words[3]);
  Site site(where, words[4]);
  Player player(scenario, site);
  if (!scenario.fresh) player.warm_up();
  while (player.play(n)) {
    if (step == 0 || scenario.fresh) return 0;
    n += step;
  }
  say("over");
  return 0;
}

// --- The sweep ---------------------------------------------------------------

struct Wanted {
  std::string scenario;  // Empty: all.
  long n = 0;            // 0: all.
  long step = 1;
  unsigned seed = std::random_device()();
  long jobs = 4;
};

class Sweep {
 public:
  explicit Sweep(Wanted wanted) : wanted_(std::move(wanted)) {
    if (wanted_.scenario.empty() || wanted_.scenario == "mistakes") {
      for (const Scenario& one : wanted_.scenario.empty()
                                     ? allocations::scenarios()
                                     : allocations::mistakes()) {
        left_.push_back(&one);
      }
    } else {
      left_.push_back(&scenario_of(wanted_.scenario));
    }
    count_ = left_.size();
    for (const Scenario* one : left_) set_up(one->place);
  }

  bool goes_well() {
    std::vector<std::thread> workers;
    for (long i = 0; i < wanted_.jobs; ++i) {
      workers.emplace_back([this] { work(); });
    }
    for (std::thread& worker : workers) worker.join();
    std::printf("%zu scenarios, %ld rounds, %ld failures injected, %ld wrong\n",
                count_, all_.rounds, all_.failures, all_.wrong);
    return all_.wrong == 0 && all_.failures > 0;
  }

 private:
  struct Tally {
    long rounds = 0;
    long failures = 0;
    long wrong = 0;
  };

  // What is known of one process that plays.
  struct Playing {
    long n = 0;              // Of its last round; 0: there was none.
    bool under_way = false;  // That round.
    bool over = false;       // It was the last of the scenario.
    bool failed = false;     // An allocation of it.
    std::vector<std::string> wrong;
  };

  void set_up(Place place) {
    if (place == Place::engine || gateways_.count(place) != 0) return;
    auto gateway = std::make_unique<tests::Gateway>(engine_.url());
    if (place == Place::late) {
      tests::Fault fault;
      fault.action = "PutItem";
      fault.kind = "delay-answer";
      fault.times = 0;
      fault.from = milliseconds(150);
      gateway->add(fault);
    }
    if (place == Place::failing) {
      tests::Fault fault;
      fault.action = "UpdateItem";
      fault.times = 0;
      gateway->add(fault);
    }
    gateways_[place] = std::move(gateway);
  }

  const Scenario* next() {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (left_.empty()) return nullptr;
    const Scenario* const first = left_.front();
    left_.erase(left_.begin());
    return first;
  }

  void work() {
    while (const Scenario* scenario = next()) {
      Tally tally;
      try {
        sweep(*scenario, tally);
      } catch (const std::exception& problem) {
        ++tally.wrong;
        std::printf("WRONG: %s: %s\n", scenario->name, problem.what());
      }
      const std::lock_guard<std::mutex> guard(mutex_);
      all_.rounds += tally.rounds;
      all_.failures += tally.failures;
      all_.wrong += tally.wrong;
    }
  }

  void sweep(const Scenario& scenario, Tally& tally) {
    std::string table;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      table = engine_.create_table();
    }
    long n = wanted_.n;
    if (n == 0) n = 1 + static_cast<long>(wanted_.seed) % wanted_.step;
    while (n > 0) n = play(scenario, table, n, tally);
  }

  std::vector<std::string> environment(const Scenario& scenario) const {
    const auto found = gateways_.find(scenario.place);
    if (found == gateways_.end()) {
      return tests::environment_of(tests::at(engine_));
    }
    return scenario.place == Place::https
               ? found->second->environment()
               : tests::environment_of(found->second->where({}));
  }

  // Plays from n on, as far as one process comes.  The next n to play; 0: none.
  long play(const Scenario& scenario, const std::string& table, long n,
            Tally& tally) {
    const bool alone = wanted_.n != 0;
    tests::Process process(
        {{tests::program_path("processes/allocations"), "play", scenario.name,
          table, std::to_string(n), std::to_string(alone ? 0 : wanted_.step),
          engine_.url()},
         environment(scenario)});
    Playing playing;
    try {
      while (tally.wrong < kEnoughWrong) {
        hear(scenario, playing, tally, process.channel().line(kHung));
      }
      return 0;
    } catch (const std::runtime_error&) {  // It ended, or says nothing.
    }
    const bool hangs = !tests::eventually([&] { return process.has_ended(); },
                                          allocations::kSoon);
    if (hangs) process.signal(SIGKILL);
    const int status = process.wait();
    if (hangs || status != 0 || playing.under_way || playing.n == 0) {
      // One that has ended after all was silent for too long, too.
      const bool late = status == 0 && playing.under_way;
      playing.wrong.push_back(hangs || late ? "it hangs"
                                            : end_of(status, process));
      conclude(scenario, playing, tally);
      if (playing.n == 0) return 0;
    }
    return playing.over || alone ? 0 : playing.n + wanted_.step;
  }

  static std::string end_of(int status, const tests::Process& process) {
    std::string said = process.complaints();
    while (!said.empty() && said.back() == '\n') said.pop_back();
    std::replace(said.begin(), said.end(), '\n', ' ');
    constexpr std::size_t kMost = 2000;
    if (said.size() > kMost) said.resize(kMost);
    return (status > 128
                ? "terminated by signal " + std::to_string(status - 128)
                : "ended with status " + std::to_string(status)) +
           (said.empty() ? "" : ": " + said);
  }

  void hear(const Scenario& scenario, Playing& playing, Tally& tally,
            const std::string& line) {
    const std::string word = line.substr(0, line.find(' '));
    const std::string rest =
        line.substr(std::min(line.size(), word.size() + 1));
    if (word == "round") {
      playing = {std::stol(rest), true, false, false, {}};
    } else if (word == "failed") {
      playing.failed = true;
    } else if (word == "wrong") {
      if (playing.under_way) playing.wrong.push_back(rest);
    } else if (word == "end") {
      conclude(scenario, playing, tally);
    } else if (word == "over") {
      playing.over = true;
    } else {
      throw std::runtime_error("it says " + line);
    }
  }

  // Counts the round, and tells if it was wrong.
  void conclude(const Scenario& scenario, Playing& playing, Tally& tally) {
    if (playing.under_way) ++tally.rounds;
    if (playing.under_way && playing.failed) ++tally.failures;
    playing.under_way = false;
    if (playing.wrong.empty()) return;
    ++tally.wrong;
    std::string text =
        std::string(scenario.name) + " n=" + std::to_string(playing.n) + ": ";
    for (const std::string& one : playing.wrong) {
      text += (&one == &playing.wrong.front() ? "" : "; and ") + one;
    }
    text += "\n    again: " + command_of(scenario, playing.n) + "\n";
    playing.wrong.clear();
    const std::lock_guard<std::mutex> guard(mutex_);
    std::printf("WRONG: %s", text.c_str());
    std::fflush(stdout);
  }

  static std::string command_of(const Scenario& scenario, long n) {
    const char* build = std::getenv("DDBMUTEX_BUILD");
    return std::string("DDBMUTEX_BUILD=") + (build != nullptr ? build : "") +
           " " + tests::program_path("processes/allocations") +
           " scenario=" + scenario.name + " n=" + std::to_string(n);
  }

  // What a round waits for is told, or given up, sooner.
  static inline const milliseconds kHung = 3 * allocations::kSoon;
  // What goes wrong so often says nothing new, and may take long each time.
  static constexpr long kEnoughWrong = 3;
  const Wanted wanted_;
  tests::Engine engine_{tests::any_engine_kind()};
  std::map<Place, std::unique_ptr<tests::Gateway>> gateways_;
  std::mutex mutex_;
  std::vector<const Scenario*> left_;  // GUARDED_BY(mutex_)
  std::size_t count_ = 0;
  Tally all_;  // GUARDED_BY(mutex_)
};

Wanted wanted_of(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto at = std::min(word.size(), word.find('='));
    const std::string name = word.substr(0, at);
    const std::string value = word.substr(std::min(word.size(), at + 1));
    if (name == "scenario") {
      wanted.scenario = value;
    } else if (name == "n") {
      wanted.n = std::stol(value);
    } else if (name == "step") {
      wanted.step = std::max(1L, std::stol(value));
    } else if (name == "seed") {
      wanted.seed = static_cast<unsigned>(std::stoul(value));
    } else if (name == "jobs") {
      wanted.jobs = std::stol(value);
    } else {
      throw std::runtime_error(word + " is nothing here");
    }
  }
  return wanted;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 7 && argv[1] == std::string("play")) return play(argv + 2);
  const allocations::Counting quiet(false);
  const Wanted wanted = wanted_of(argc, argv);
  std::fprintf(stderr, "seed=%u\n", wanted.seed);
  return Sweep(wanted).goes_well() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
