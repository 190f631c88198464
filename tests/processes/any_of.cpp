// Items that many processes get any one of, while they are killed:
//
//   any_of [ITEMS] [PROCESSES] [ROUNDS] [SEED]
//
// Each item (a row of an engine of our own) is to be done so many times, by
// processes (any_of_worker.cpp) of which one that chance picks is killed again
// and again, with what it holds, and another takes its place.
//
// Status 0 if no two ever held one item at once, no token was given twice, each
// round of each item was done once, all were done in the end, none was given
// out after that, and no item that was free waited while others were got for
// much longer than all are got once.
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
#include "tests/claims/items.hpp"
#include "tests/claims/shared_count.hpp"
#include "tests/claims/tokens.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using std::chrono::milliseconds;
using tests::Engine;
using tests::Process;

// So long that a busy machine gets a request through in a quarter of it.
constexpr milliseconds kTtl{4000};
constexpr milliseconds kLongestHold{40};
constexpr milliseconds kShortestPeace{200};  // From one kill to the next.
constexpr milliseconds kLongestPeace{800};
constexpr auto kGivenUpAfter = 120s;  // Without any acquisition.
// A free item may wait for so many times all the others, and 100 more.
constexpr std::size_t kMostWaits = 8;
constexpr std::size_t kTold = 20;
constexpr const char* kPrefix = "item-";

struct Goal {
  int items, processes, rounds;
};

class Run {
 public:
  Run(const Goal& goal, unsigned seed)
      : goal_(goal),
        random_(seed),
        engine_(tests::any_engine_kind()),
        count_(directory_.path() + "/count"),
        requests_(directory_.path() + "/requests"),
        passes_(directory_.path() + "/passes") {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool succeeds() {
    for (int i = 0; i < goal_.items; ++i) make_row(i);
    start_ = moved_ = BootClock::now();
    for (int i = 0; i < goal_.processes; ++i) workers_.push_back(start());
    bool well = true;
    while (well && !workers_.empty()) {
      well = look();
      std::this_thread::sleep_for(5ms);
    }
    time_ = BootClock::now() - start_;
    workers_.clear();
    return judge() && well && !complained_;
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

  std::string place(const char* item_or_key, int item) const {
    return R"({"TableName":")" + engine_.table() + R"(",")" + item_or_key +
           R"(":{"name":{"S":"ddblock-)" + kPrefix + std::to_string(item) +
           R"("})";
  }
  void make_row(int item) {
    engine_.must_call("PutItem",
                      place("Item", item) + R"(,"note":{"S":"of others"}}})");
  }
  // What is wrong with it; empty if nothing.
  std::string row_problem(int item) {
    const std::string answer = engine_.must_call(
        "GetItem", place("Key", item) + R"(},"ConsistentRead":true})");
    rapidjson::Document body;
    body.Parse(answer.data(), answer.size());
    const bool well =
        !body.HasParseError() && body.IsObject() && body.HasMember("Item") &&
        body["Item"].HasMember("note") && body["Item"].HasMember("rounds") &&
        std::to_string(goal_.rounds) == body["Item"]["rounds"]["N"].GetString();
    return well ? "" : "item " + std::to_string(item) + ": is " + answer;
  }

  // --- Processes ---

  Worker start() {
    const int number = started_++;
    const tests::ProcessSettings settings = {
        {tests::program_path("processes/any_of_worker"), engine_.table(),
         kPrefix, std::to_string(goal_.rounds), std::to_string(kTtl.count()),
         std::to_string(kLongestHold.count()), std::to_string(random_()),
         directory_.path(), std::to_string(number)},
        environment_of(at(engine_))};
    return {number, std::make_unique<Process>(settings)};
  }

  // Kills whose turn it is, and sees who has found nothing left to do; false if
  // it is of no use.
  bool look() {
    if (tests::interrupted != 0) throw std::runtime_error("interrupted");
    const BootTime now = BootClock::now();
    if (std::exchange(last_, count_.now()) != count_.now()) moved_ = now;
    if (now - moved_ > kGivenUpAfter) {
      std::printf("it hangs\n");
      return false;
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].process->has_ended()) continue;
      if (!ended_well(workers_[i])) return false;
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i--));
    }
    // Once the first has found nothing left, there is nothing to kill for.
    const bool all_work =
        workers_.size() == static_cast<std::size_t>(goal_.processes);
    if (all_work && now >= next_kill_) kill_one();
    return true;
  }

  bool ended_well(Worker& worker) {
    const int status = worker.process->wait();
    heed(worker);
    if (status == 0) return true;
    std::printf("process %d ended with status %d\n", worker.number, status);
    return false;
  }

  void kill_one() {
    const auto which = std::uniform_int_distribution<std::size_t>(
        0, workers_.size() - 1)(random_);
    Worker& worker = workers_[which];
    worker.process->signal(SIGKILL);
    worker.process->wait();
    heed(worker);
    worker = start();
    ++kills_;
    next_kill_ = BootClock::now() +
                 milliseconds(std::uniform_int_distribution(
                     kShortestPeace.count(), kLongestPeace.count())(random_));
  }

  void heed(const Worker& worker) {
    const std::string complaints = worker.process->complaints();
    if (complaints.empty()) return;
    std::printf("process %d complained: %s\n", worker.number,
                complaints.c_str());
    complained_ = true;
  }

  // --- What comes of it ---

  bool judge() {
    std::vector<std::string> wrong;
    std::vector<claims::Grant> grants;
    std::vector<claims::Done> done;
    for (int i = 0; i < started_; ++i) {
      std::ifstream log(log_of(i)), done_log(log_of(i) + ".done");
      const claims::TokenRecord record = claims::TokenReader(i).read(log);
      if (!record.problem.empty()) {
        wrong.push_back("process " + std::to_string(i) + ": " + record.problem);
      }
      grants.insert(grants.end(), record.grants.begin(), record.grants.end());
      const auto more = claims::read_done(done_log);
      done.insert(done.end(), more.begin(), more.end());
    }
    const auto add = [&wrong](const std::vector<std::string>& more) {
      wrong.insert(wrong.end(), more.begin(), more.end());
    };
    const claims::TokenFindings tokens = claims::judge_tokens(grants);
    add(tokens.wrong);
    const auto items = claims::judge_items(done, grants, goal_.rounds);
    add(items.wrong);
    for (int i = 0; i < goal_.items; ++i) {
      const std::string problem = row_problem(i);
      if (!problem.empty()) wrong.push_back(problem);
    }
    const std::size_t most =
        kMostWaits * static_cast<std::size_t>(goal_.items) + 100;
    if (items.longest_wait > most) wrong.push_back("an item starved");
    for (std::size_t i = 0; i < std::min(kTold, wrong.size()); ++i) {
      std::printf("WRONG: %s\n", wrong[i].c_str());
    }
    summary(tokens, items, done.size(), wrong.size());
    return wrong.empty();
  }

  void summary(const claims::TokenFindings& tokens,
               const claims::ItemFindings& items, std::size_t done,
               std::size_t wrong) const {
    const double seconds = std::chrono::duration<double>(time_).count();
    const double all = static_cast<double>(goal_.items) * goal_.rounds;
    std::printf(
        "%zu rounds told as done, %zu acquisitions by %d processes in %.1f s, "
        "%d kills, %d hand-overs; %.2f requests for each round that is done, "
        "%.2f of them of passes; a free item waited for %zu others at the "
        "most (%zu is too many); %zu wrong\n",
        done, tokens.all, started_, seconds, kills_, tokens.hand_overs,
        static_cast<double>(requests_.now()) / all,
        static_cast<double>(passes_.now()) / all, items.longest_wait,
        kMostWaits * static_cast<std::size_t>(goal_.items) + 101, wrong);
  }

  const Goal goal_;
  std::mt19937 random_;
  Engine engine_;
  const tests::MemoryDirectory directory_;
  claims::SharedCount count_, requests_, passes_;
  std::vector<Worker> workers_;
  int started_ = 0;
  int kills_ = 0;
  bool complained_ = false;
  std::uint64_t last_ = 0;
  BootTime start_{}, moved_{}, next_kill_{};
  std::chrono::nanoseconds time_{};
};

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int which, int otherwise) {
    return argc > which ? std::stoi(argv[which]) : otherwise;
  };
  const Goal goal = {number(1, 1000), number(2, 16), number(3, 1)};
  if (argc > 5 || goal.items < 1 || goal.processes < 1 || goal.rounds < 1) {
    std::fprintf(stderr, "usage: any_of [ITEMS] [PROCESSES] [ROUNDS] [SEED]\n");
    return 2;
  }
  const unsigned seed = argc > 4 ? static_cast<unsigned>(std::stoul(argv[4]))
                                 : std::random_device()();
  tests::catch_signals();
  std::printf("%d items, each %d times, by %d processes, seed %u\n", goal.items,
              goal.rounds, goal.processes, seed);
  std::fflush(stdout);
  return Run(goal, seed).succeeds() ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return tests::interrupted != 0 ? 130 : 1;
}
