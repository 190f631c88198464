// Fencing tokens that eight processes are given while they are killed:
//
//   tokens [GRANTS] [SEED]
//
// The processes (token_worker.cpp) take and release 64 kept locks of an engine
// of our own until there have been so many acquisitions in all; a process that
// chance picks is killed again and again, and another takes its place.  The
// rows are there before, with an attribute that is nobody's business.
//
// The status is 0 if in each name the tokens grew strictly in the order of the
// acquisitions, none was given twice, no two claims overlapped, no row counted
// less than was given, and each still had that attribute.
#include "tests/claims/tokens.hpp"

#include <rapidjson/document.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/claims/shared_count.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using namespace std::chrono_literals;
using claims::Token;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using std::chrono::milliseconds;
using tests::Engine;
using tests::Process;

constexpr int kProcesses = 8;
constexpr int kLocks = 64;
constexpr int kThreads = 3;  // Of each process.
// The dead are waited out.  So long that a busy machine gets a request through
// in a quarter of it.
constexpr milliseconds kTtl{1000};
constexpr milliseconds kShortestPeace{200};  // From one kill to the next.
constexpr milliseconds kLongestPeace{800};
constexpr auto kProgressEach = 10s;
constexpr auto kGivenUpAfter = 120s;  // Without any acquisition.
constexpr std::size_t kTold = 20;
constexpr const char* kNote = "a row has more than its lock";

class Run {
 public:
  Run(std::uint64_t goal, unsigned seed)
      : goal_(goal),
        random_(seed),
        engine_(tests::any_engine_kind()),
        count_(directory_.path() + "/count") {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool succeeds() {
    for (int i = 0; i < kLocks; ++i) make_row(i);
    start_ = shown_ = moved_ = BootClock::now();
    for (int i = 0; i < kProcesses; ++i) processes_.push_back(start());
    while (count_.now() < goal_ && look()) std::this_thread::sleep_for(5ms);
    const bool ended = end_all();
    time_ = BootClock::now() - start_;
    return judge() && ended;
  }

 private:
  struct Worker {
    int number;
    std::unique_ptr<Process> process;
  };

  std::string log_of(int number) const {
    return directory_.path() + "/" + std::to_string(number);
  }

  // --- Rows, past the library ---

  std::string place(const char* item_or_key, int lock) const {
    return R"({"TableName":")" + engine_.table() + R"(",")" + item_or_key +
           R"(":{"name":{"S":"ddblock-token-)" + std::to_string(lock) + R"("})";
  }
  void make_row(int lock) {
    engine_.must_call("PutItem", place("Item", lock) + R"(,"note":{"S":")" +
                                     kNote + R"("}}})");
  }
  // What is wrong with it; empty if nothing.
  std::string row_problem(const claims::TokenFindings& found, int lock,
                          Token& token) {
    const std::string answer = engine_.must_call(
        "GetItem", place("Key", lock) + R"(},"ConsistentRead":true})");
    rapidjson::Document body;
    body.Parse(answer.data(), answer.size());
    const std::string name = "lock " + std::to_string(lock) + ": its row ";
    if (body.HasParseError() || !body.IsObject() || !body.HasMember("Item")) {
      return name + "is gone: " + answer;
    }
    const auto& item = body["Item"];
    if (!item.HasMember("note") || item["note"]["S"] != kNote) {
      return name + "has lost what others wrote: " + answer;
    }
    if (!item.HasMember("token")) return name + "has no token: " + answer;
    token = std::stoull(item["token"]["N"].GetString());
    return claims::row_problem(found, lock, token);
  }

  // --- Processes ---

  Worker start() {
    const int number = static_cast<int>(started_++);
    const tests::ProcessSettings settings = {
        {tests::program_path("processes/token_worker"), engine_.table(),
         std::to_string(kLocks), std::to_string(kThreads),
         std::to_string(kTtl.count()), std::to_string(random_()),
         log_of(number), directory_.path() + "/count"},
        environment_of(at(engine_))};
    return {number, std::make_unique<Process>(settings)};
  }

  // Kills whose turn it is, says how far it is; false if it is of no use.
  bool look() {
    if (tests::interrupted != 0) throw std::runtime_error("interrupted");
    const BootTime now = BootClock::now();
    if (std::exchange(last_, count_.now()) != count_.now()) moved_ = now;
    if (now - moved_ > kGivenUpAfter) {
      std::printf("it hangs\n");
      return false;
    }
    if (now - shown_ >= kProgressEach) {
      shown_ += kProgressEach;
      progress();
    }
    if (now >= next_kill_) kill_one();
    return all_run();
  }

  void kill_one() {
    const auto which =
        std::uniform_int_distribution<std::size_t>(0, kProcesses - 1)(random_);
    Worker& worker = processes_[which];
    worker.process->signal(SIGKILL);
    worker.process->wait();
    heed(worker);
    worker = start();
    ++kills_;
    next_kill_ = BootClock::now() +
                 milliseconds(std::uniform_int_distribution(
                     kShortestPeace.count(), kLongestPeace.count())(random_));
  }

  bool all_run() {
    for (Worker& worker : processes_) {
      if (!worker.process->has_ended()) continue;
      std::printf("process %d ended by itself with status %d\n", worker.number,
                  worker.process->wait());
      heed(worker);
      say_problem(worker.number);
      return false;
    }
    return true;
  }

  void heed(const Worker& worker) {
    const std::string complaints = worker.process->complaints();
    if (complaints.empty()) return;
    std::printf("process %d complained: %s\n", worker.number,
                complaints.c_str());
    complained_ = true;
  }

  bool end_all() {
    for (const Worker& worker : processes_) worker.process->channel().hang_up();
    bool well = true;
    for (const Worker& worker : processes_) {
      const int status = worker.process->wait();
      heed(worker);
      if (status == 0) continue;
      std::printf("process %d ended with status %d\n", worker.number, status);
      well = false;
    }
    return well && !complained_;
  }

  // --- What comes of it ---

  double seconds_gone() const {
    return std::chrono::duration<double>(BootClock::now() - start_).count();
  }

  void progress() const {
    const double gone = seconds_gone();
    std::printf("%4.0f s: %" PRIu64 " of %" PRIu64
                " acquisitions, %.0f a second, %d kills\n",
                gone, count_.now(), goal_,
                static_cast<double>(count_.now()) / gone, kills_);
    std::fflush(stdout);
  }

  bool say_problem(int number) const {
    std::ifstream in(log_of(number));
    const std::string problem = claims::TokenReader(number).read(in).problem;
    if (problem.empty()) return true;
    std::printf("process %d: %s\n", number, problem.c_str());
    return false;
  }

  claims::TokenFindings findings() const {
    std::vector<claims::Grant> all;
    for (int i = 0; i < static_cast<int>(started_); ++i) {
      std::ifstream in(log_of(i));
      const auto grants = claims::TokenReader(i).read(in).grants;
      all.insert(all.end(), grants.begin(), grants.end());
    }
    return claims::judge_tokens(all);
  }

  bool judge() {
    bool well = true;
    for (int i = 0; i < static_cast<int>(started_); ++i) {
      well = say_problem(i) && well;
    }
    claims::TokenFindings found = findings();
    Token numbers = 0;
    for (int i = 0; i < kLocks; ++i) {
      Token token = 0;
      const std::string problem = row_problem(found, i, token);
      if (!problem.empty()) found.wrong.push_back(problem);
      numbers += token;
    }
    for (std::size_t i = 0; i < std::min(kTold, found.wrong.size()); ++i) {
      std::printf("WRONG: %s\n", found.wrong[i].c_str());
    }
    summary(found, numbers);
    return well && found.wrong.empty() && found.all >= goal_;
  }

  void summary(const claims::TokenFindings& found, Token numbers) const {
    const double seconds = std::chrono::duration<double>(time_).count();
    std::printf(
        "%zu tokens of %zu names to %zu processes in %.1f s (%.0f a "
        "second), %d hand-overs, %d kills, %" PRIu64
        " numbers that nobody got, %zu wrong\n",
        found.all, found.grants.size(), started_, seconds,
        static_cast<double>(found.all) / seconds, found.hand_overs, kills_,
        numbers - found.all, found.wrong.size());
  }

  const std::uint64_t goal_;
  std::mt19937 random_;
  Engine engine_;
  const tests::MemoryDirectory directory_;
  claims::SharedCount count_;
  std::vector<Worker> processes_;
  std::size_t started_ = 0;
  int kills_ = 0;
  bool complained_ = false;
  std::uint64_t last_ = 0;
  BootTime start_{}, shown_{}, moved_{}, next_kill_{};
  std::chrono::nanoseconds time_{};
};

}  // namespace

int main(int argc, char** argv) try {
  const std::uint64_t goal = argc > 1 ? std::stoull(argv[1]) : 200000;
  if (argc > 3 || goal == 0) {
    std::fprintf(stderr, "usage: tokens [GRANTS] [SEED]\n");
    return 2;
  }
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::stoul(argv[2]))
                                 : std::random_device()();
  tests::catch_signals();
  std::printf("%" PRIu64 " tokens over %d names by %d processes, seed %u\n",
              goal, kLocks, kProcesses, seed);
  std::fflush(stdout);
  return Run(goal, seed).succeeds() ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return tests::interrupted != 0 ? 130 : 1;
}
