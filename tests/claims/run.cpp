// Eight processes want one lock of an engine of our own, and their claims are
// compared:
//
//   run SECONDS true|false [SEED [MORE]]
//
// With `false` every process has a calendar of its own, up to 12 hours off.
// Where the lock has not gone from hand to hand as often as it should, or not
// to every process, it may take so many seconds more (0).
// The status is 0 if no two claims overlapped, every process got in, and the
// lock went from hand to hand as often as it should.  At the same seed the
// processes pause alike.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex/record.hpp"
#include "tests/claims/claims.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::seconds;
using tests::Engine;
using tests::FakeCalendar;
using tests::Process;

constexpr int kProcesses = 8;
constexpr int kHandOversPerMinute = 500;
constexpr auto kProgressEach = 10s;
// A machine that stands still while a clock is compared shows this much.
constexpr auto kClocksDiffer = 30s;

struct Plan {
  seconds time{};
  bool true_calendars = true;
  unsigned seed = 0;
  seconds more{};
};

class Run {
 public:
  explicit Run(const Plan& plan)
      : plan_(plan), engine_(tests::any_engine_kind()) {
    std::string name = (fs::temp_directory_path() / "claims-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no logs");
    logs_ = name;
  }
  ~Run() { fs::remove_all(logs_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool succeeds() {
    start_all();
    for (seconds gone = 0s; gone < plan_.time;) {
      const seconds step = std::min<seconds>(kProgressEach, plan_.time - gone);
      std::this_thread::sleep_for(step);
      gone += step;
      if (gone < plan_.time) progress(gone);
    }
    for (seconds more = 0s; more < plan_.more && !enough(findings());) {
      std::this_thread::sleep_for(1s);
      more += 1s;
    }
    const bool ended = end_all();
    return judge() && ended;
  }

 private:
  std::string log_of(int process) const {
    return logs_ / std::to_string(process);
  }

  void start_all() {
    std::mt19937 random(plan_.seed);
    std::uniform_int_distribution<int> offset(-12 * 3600, 12 * 3600);
    const std::string name = "claims-" + ddbmutex::lock::fresh_uuid();
    for (int i = 0; i < kProcesses; ++i) {
      const std::string seed = std::to_string(random());
      calendars_.push_back(
          plan_.true_calendars
              ? nullptr
              : std::make_unique<FakeCalendar>(seconds(offset(random))));
      processes_.push_back(
          start({tests::program_path("claims/worker"), engine_.table(), name,
                 log_of(i), seed, "2000", "20", "100"},
                calendars_.back().get()));
    }
  }

  std::unique_ptr<Process> start(const std::vector<std::string>& command,
                                 const FakeCalendar* calendar) const {
    std::vector<std::string> environment = environment_of(at(engine_));
    if (calendar != nullptr) calendar->add_to(environment);
    return std::make_unique<Process>(
        tests::ProcessSettings{command, environment});
  }

  bool end_all() {
    for (const auto& process : processes_) process->channel().hang_up();
    bool well = true;
    for (int i = 0; i < kProcesses; ++i) {
      Process& process = *processes_[static_cast<std::size_t>(i)];
      const int status = process.wait();
      const std::string complaints = process.complaints();
      if (status == 0 && complaints.empty()) continue;
      std::printf("process %d ended with status %d: %s\n", i, status,
                  complaints.c_str());
      well = false;
    }
    return well;
  }

  claims::Log read(int process) const {
    std::ifstream in(log_of(process));
    return claims::LogReader(process).read(in);
  }

  claims::Findings findings() const {
    std::vector<claims::Claim> all;
    for (int i = 0; i < kProcesses; ++i) {
      const claims::Log log = read(i);
      all.insert(all.end(), log.claims.begin(), log.claims.end());
    }
    return claims::judge(all);
  }

  void progress(seconds gone) const {
    const claims::Findings found = findings();
    std::printf("%3d of %d s: %d hand-overs, %zu of %d got in, %zu overlaps\n",
                static_cast<int>(gone.count()),
                static_cast<int>(plan_.time.count()), found.hand_overs,
                found.got_in.size(), kProcesses, found.overlaps.size());
    std::fflush(stdout);
  }

  int wanted() const {
    return static_cast<int>((plan_.time.count() * kHandOversPerMinute + 59) /
                            60);
  }
  bool enough(const claims::Findings& found) const {
    return found.got_in.size() == kProcesses && found.hand_overs >= wanted();
  }

  bool judge() const {
    bool well = logs_are_good();
    const claims::Findings found = findings();
    for (const claims::Overlap& overlap : found.overlaps) {
      std::printf("OVERLAP: %s\n", words_of(overlap).c_str());
    }
    std::printf(
        "%d claims, %d hand-overs (at least %d), %zu of %d got in, %zu "
        "overlaps, longest gap %d ms\n",
        found.claims, found.hand_overs, wanted(), found.got_in.size(),
        kProcesses, found.overlaps.size(),
        static_cast<int>(found.longest_gap / 1ms));
    well = well && found.overlaps.empty();
    return well && enough(found);
  }

  bool logs_are_good() const {
    bool well = true;
    for (int i = 0; i < kProcesses; ++i) {
      const claims::Log log = read(i);
      if (!log.problem.empty()) {
        std::printf("process %d: %s\n", i, log.problem.c_str());
        well = false;
      }
      well = clocks_are_as_set(i, log) && well;
    }
    return well;
  }

  // That the run shows what it says it does.
  bool clocks_are_as_set(int process, const claims::Log& log) const {
    const auto& calendar = calendars_[static_cast<std::size_t>(process)];
    const seconds wanted = calendar ? calendar->offset() : 0s;
    if (log.clocks &&
        std::chrono::abs(log.clocks->calendar - wanted) < kClocksDiffer &&
        std::chrono::abs(log.clocks->boot) < kClocksDiffer) {
      return true;
    }
    std::printf("process %d: its clocks are not as they were set\n", process);
    return false;
  }

  const Plan plan_;
  Engine engine_;
  fs::path logs_;
  std::vector<std::unique_ptr<FakeCalendar>> calendars_;
  std::vector<std::unique_ptr<Process>> processes_;
};

Plan plan_of(int argc, char** argv) {
  Plan plan;
  plan.time = seconds(std::stol(argv[1]));
  plan.true_calendars = std::string(argv[2]) == "true";
  plan.seed = argc > 3 ? static_cast<unsigned>(std::stoul(argv[3]))
                       : std::random_device()();
  if (argc > 4) plan.more = seconds(std::stol(argv[4]));
  return plan;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 5) {
    std::fprintf(stderr, "usage: run SECONDS true|false [SEED [MORE]]\n");
    return 2;
  }
  const Plan plan = plan_of(argc, argv);
  std::printf("%d processes, %s calendars, seed %u\n", kProcesses,
              plan.true_calendars ? "true" : "false", plan.seed);
  std::fflush(stdout);
  return Run(plan).succeeds() ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
