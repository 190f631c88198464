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
// be lost, no mutex be stuck, no row be left behind, no memory leak.
//
// Rounds are played by processes of this same program ("allocations play ..."),
// so that what crashes or hangs is told and the next round goes on.  The engine
// and the gateways are processes of their own, in which nothing fails.
//
// The last line is "S scenarios, R rounds, F failures injected, W wrong"; the
// status is 0 if W is.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/allocations/round.hpp"
#include "tests/allocations/scenarios.hpp"
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
using std::chrono::seconds;

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
//   map FROM TO OFFSET FILE   what code is where
//   round N
//   failed SIZE ADDRESS...    the allocation that fails, from the innermost on
//   wrong TEXT
//   leaked SIZE ADDRESS...    one of those of the line before
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
    if (right_ && !scenario_.fresh && growth_ > 0) look_for_leak(n);
    say("end");
    return fired;
  }

  // Caches of the first use are filled.
  void warm_up() {
    for (int i = 0; i < 3; ++i) play_once(0);
  }

 private:
  static constexpr milliseconds kForThreads{300};

  bool play_once(long n) {
    const long before = allocations::live_blocks();
    bool fired = false;
    {
      Round round(site_, n, scenario_.place != Place::losing);
      scenario_.play(round);
      fired = round.fired();
      right_ = round.right();
    }
    const auto grown = [&] { return allocations::live_blocks() - before; };
    if (!scenario_.fresh) {
      tests::eventually([&] { return grown() <= 0; }, kForThreads);
    }
    growth_ = grown();
    return fired;
  }

  // What is made once and kept is no leak: only what is left each time is.
  void look_for_leak(long n) {
    for (int again = 0; again < 3; ++again) {
      play_once(n);
      if (growth_ <= 0) return;
    }
    allocations::begin_watch();
    play_once(n);
    allocations::end_watch();
    if (growth_ <= 0) return;
    say("wrong " + std::to_string(growth_) + " blocks of memory leak");
    allocations::tell_watched(20);
  }

  const Scenario& scenario_;
  Site& site_;
  // Of the last round: how many blocks were left, and whether all else is well.
  long growth_ = 0;
  bool right_ = true;
};

void tell_map() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, file;
    words >> range >> rights >> offset >> device >> inode >> file;
    if (rights.find('x') == rights.npos || file.empty()) continue;
    std::replace(range.begin(), range.end(), '-', ' ');
    say("map " + range + " " + offset + " " + file);
  }
}

// play SCENARIO TABLE FIRST STEP ENGINE, where a STEP of 0 is one round alone.
int play(char** words) {
  const allocations::Counting quiet(false);
  signal(SIGPIPE, SIG_DFL);  // Nobody hears us: it is over.
  allocations::prepare();
  const Scenario& scenario = scenario_of(words[0]);
  tests::Whereabouts where;
  where.table = words[1];
  where.url = std::getenv("AWS_ENDPOINT_URL_DYNAMODB");
  where.region = std::getenv("AWS_REGION");
  where.keys = {std::getenv("AWS_ACCESS_KEY_ID"),
                std::getenv("AWS_SECRET_ACCESS_KEY"), ""};
  long n = std::stol(words[2]);
  const long step = std::stol(words[3]);
  tell_map();
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

// --- Stacks ------------------------------------------------------------------

// Where the code of a playing process lies.
class CodeMap {
 public:
  void add(std::istringstream& words) {
    Piece piece{};
    words >> std::hex >> piece.from >> piece.to >> piece.offset >> piece.file;
    pieces_.push_back(piece);
  }

  // A function a line, from the innermost on, as far as the round itself.
  std::string words_of(const std::string& addresses) const {
    std::istringstream words(addresses);
    std::string text, last;
    for (std::uint64_t address; words >> std::hex >> address;) {
      const std::string name = name_of(address);
      // The allocator's come first, and those of the round last.
      const bool own = name.find("allocations::") != name.npos;
      if (own && !text.empty()) break;
      if (own || name.empty() || name == last) continue;
      text += "      " + name + "\n";
      last = name;
    }
    return text;
  }

 private:
  struct Piece {
    std::uint64_t from, to, offset;
    std::string file;
  };

  std::string name_of(std::uint64_t address) const {
    for (const Piece& piece : pieces_) {
      if (address < piece.from || address >= piece.to) continue;
      // Our own; of libraries nothing but their exported names may be known.
      const std::string base = piece.file.substr(piece.file.rfind('/') + 1);
      if (base != "allocations") return base;
      // Of the call, not of what follows it.
      return function_at(piece.file, address - piece.from + piece.offset - 1);
    }
    return {};
  }

  static std::string function_at(const std::string& file,
                                 std::uint64_t offset) {
    std::ostringstream command;
    command << "addr2line -Cfse '" << file << "' 0x" << std::hex << offset
            << " 2>/dev/null";
    std::string said;
    if (FILE* const pipe = popen(command.str().c_str(), "r")) {
      std::array<char, 4096> line;
      if (std::fgets(line.data(), line.size(), pipe) != nullptr) {
        said = line.data();
      }
      pclose(pipe);
    }
    return without_arguments(said.substr(0, said.find('\n')));
  }

  static std::string without_arguments(const std::string& function) {
    std::size_t at = 0;
    const std::string nameless = "(anonymous namespace)";
    while ((at = function.find('(', at)) != function.npos &&
           function.compare(at, nameless.size(), nameless) == 0) {
      ++at;
    }
    return function.substr(0, at);
  }

  std::vector<Piece> pieces_;
};

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
    CodeMap map;
    long n = 0;              // Of its last round; 0: there was none.
    bool under_way = false;  // That round.
    bool over = false;       // It was the last of the scenario.
    std::string failed;      // The stack of its failure.
    std::vector<std::string> wrong;
    std::vector<std::string> leaked;  // The stacks of what did.
  };

  void set_up(Place place) {
    if (place == Place::engine || gateways_.count(place) != 0) return;
    auto gateway = std::make_unique<tests::Gateway>(engine_.url());
    tests::Fault fault;
    if (place == Place::late) {
      fault.action = "PutItem";
      fault.kind = "delay-answer";
      fault.times = 0;
      fault.from = milliseconds(150);
      gateway->add(fault);
    }
    if (place == Place::losing) {
      fault.kind = "reset-answer";
      fault.probability = 1.0 / 3;
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
      const tests::Stopwatch watch;
      Tally tally;
      try {
        sweep(*scenario, tally);
      } catch (const std::exception& problem) {
        ++tally.wrong;
        std::printf("WRONG: %s: %s\n", scenario->name, problem.what());
      }
      std::fprintf(stderr, "%-30s %5ld rounds %6.1f s, %ld wrong\n",
                   scenario->name, tally.rounds,
                   static_cast<double>(watch.ms()) / 1000, tally.wrong);
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
      for (;;) hear(scenario, playing, tally, process.channel().line(kHung));
    } catch (const std::runtime_error&) {  // It ended, or says nothing.
    }
    const bool hangs =
        !tests::eventually([&] { return process.has_ended(); }, kToEnd);
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
    std::istringstream words(line);
    std::string word;
    words >> word;
    const std::string rest =
        line.substr(std::min(line.size(), word.size() + 1));
    if (word == "map") {
      playing.map.add(words);
    } else if (word == "round") {
      playing = {playing.map, std::stol(rest), true, false, {}, {}, {}};
    } else if (word == "failed") {
      if (playing.failed.empty()) playing.failed = rest;
    } else if (word == "wrong") {
      if (playing.under_way) playing.wrong.push_back(rest);
    } else if (word == "leaked") {
      playing.leaked.push_back(rest);
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
    if (playing.under_way && !playing.failed.empty()) ++tally.failures;
    playing.under_way = false;
    if (playing.wrong.empty()) return;
    ++tally.wrong;
    std::string text =
        std::string(scenario.name) + " n=" + std::to_string(playing.n) + ": ";
    for (const std::string& one : playing.wrong) {
      text += (&one == &playing.wrong.front() ? "" : "; and ") + one;
    }
    text += "\n    again: " + command_of(scenario, playing.n) + "\n" +
            stack("failed", playing, playing.failed);
    std::set<std::string> leaked;  // Of many alike one.
    for (const std::string& one : playing.leaked) {
      leaked.insert(stack("leaked", playing, one));
    }
    for (const std::string& one : leaked) text += one;
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

  // `said`: its size and addresses.
  static std::string stack(const char* word, const Playing& playing,
                           const std::string& said) {
    if (said.empty()) return {};
    const auto at = said.find(' ');
    return std::string("    ") + word + " (" + said.substr(0, at) +
           " bytes):\n" + playing.map.words_of(said.substr(at));
  }

  // What a round waits for is told, or given up, sooner.
  static inline const milliseconds kHung = 3 * allocations::kSoon;
  static constexpr seconds kToEnd{1};
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
