// Processes that lock rows of an engine of our own and log their fencing tokens
// (tokens.hpp), while one that chance picks is killed again and again and
// another takes its place.
//
//   Crew crew("item-", seed, [&](int number, unsigned seed_of_its_own) {
//     return std::vector<std::string>{"worker", crew.log_of(number)};
//   });
//   for (int i = 0; i < 10; ++i) crew.make_row(i);
//   crew.start(8);
//   while (crew.look()) std::this_thread::sleep_for(5ms);
//
// The processes count their acquisitions in the file `count` of directory().
#ifndef DDBMUTEX_TESTS_CLAIMS_CREW_HPP
#define DDBMUTEX_TESTS_CLAIMS_CREW_HPP

#include <rapidjson/document.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/claims/shared_count.hpp"
#include "tests/claims/tokens.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace claims {

// The first of them.
inline void print_wrong(const std::vector<std::string>& wrong) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(kMost, wrong.size()); ++i) {
    std::printf("WRONG: %s\n", wrong[i].c_str());
  }
}

class Crew {
 public:
  using Command =
      std::function<std::vector<std::string>(int number, unsigned seed)>;

  Crew(std::string prefix, unsigned seed, Command command)
      : prefix_(std::move(prefix)),
        random_(seed),
        command_(std::move(command)),
        engine_(tests::any_engine_kind()),
        count_(directory() + "/count") {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::string table() const { return engine_.table(); }
  std::string directory() const { return directory_.path(); }
  std::string log_of(int number) const {
    return directory() + "/" + std::to_string(number);
  }

  // --- Rows, past the library ---

  // With an attribute that is nobody's business.
  void make_row(int row) {
    engine_.must_call("PutItem", place("Item", row) + R"(,"note":{"S":")" +
                                     kNote + R"("}}})");
  }
  // An attribute that is a number; 0 if that is not so, which is added to what
  // is wrong.
  std::uint64_t number_in(int row, const char* attribute,
                          std::vector<std::string>& wrong) {
    const std::string answer = engine_.must_call(
        "GetItem", place("Key", row) + R"(},"ConsistentRead":true})");
    rapidjson::Document body;
    body.Parse(answer.data(), answer.size());
    const bool there =
        !body.HasParseError() && body.IsObject() && body.HasMember("Item");
    const bool well = there && body["Item"].HasMember("note") &&
                      body["Item"]["note"]["S"] == kNote &&
                      body["Item"].HasMember(attribute);
    if (well) return std::stoull(body["Item"][attribute]["N"].GetString());
    wrong.push_back(prefix_ + std::to_string(row) + ": its row is " + answer);
    return 0;
  }

  // --- Processes ---

  void start(int processes) {
    moved_ = ddbmutex::BootClock::now();
    for (int i = 0; i < processes; ++i) workers_.push_back(another());
    all_ = workers_.size();
  }

  // Kills whose turn it is, unless some have ended well by themselves.  False
  // if it is of no use: one has failed, or none gets any further.
  bool look() {
    if (tests::interrupted != 0) throw std::runtime_error("interrupted");
    const ddbmutex::BootTime now = ddbmutex::BootClock::now();
    if (std::exchange(last_, acquired()) != acquired()) moved_ = now;
    if (now - moved_ > kGivenUpAfter) {
      std::printf("it hangs\n");
      return false;
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].process->has_ended()) continue;
      if (!ended_well(workers_[i])) return false;
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i--));
    }
    if (all_at_work() && now >= next_kill_) kill_one();
    return true;
  }

  // Asks those that are left to end.
  bool end() {
    for (const Worker& worker : workers_) worker.process->channel().hang_up();
    bool well = true;
    for (Worker& worker : workers_) well = ended_well(worker) && well;
    workers_.clear();
    return well;
  }

  bool all_at_work() const { return workers_.size() == all_; }
  bool none_at_work() const { return workers_.empty(); }
  std::uint64_t acquired() const { return count_.now(); }
  int started() const { return started_; }
  int kills() const { return kills_; }
  bool complained() const { return complained_; }

  // What all have logged.
  std::vector<Grant> grants(std::vector<std::string>& wrong) const {
    std::vector<Grant> all;
    for (int i = 0; i < started_; ++i) {
      std::ifstream in(log_of(i));
      const TokenRecord record = TokenReader(i).read(in);
      all.insert(all.end(), record.grants.begin(), record.grants.end());
      if (record.problem.empty()) continue;
      wrong.push_back("process " + std::to_string(i) + ": " + record.problem);
    }
    return all;
  }

 private:
  struct Worker {
    int number;
    std::unique_ptr<tests::Process> process;
  };

  static constexpr const char* kNote = "a row has more than its lock";
  // Without any acquisition.
  static constexpr std::chrono::seconds kGivenUpAfter{120};
  // From one kill to the next, in ms.
  static constexpr int kShortestPeace = 200, kLongestPeace = 800;

  std::string place(const char* item_or_key, int row) const {
    return R"({"TableName":")" + table() + R"(",")" + item_or_key +
           R"(":{"name":{"S":"ddblock-)" + prefix_ + std::to_string(row) +
           R"("})";
  }

  Worker another() {
    const int number = started_++;
    const auto seed = static_cast<unsigned>(random_());
    return {number, std::make_unique<tests::Process>(tests::ProcessSettings{
                        command_(number, seed), environment_of(at(engine_))})};
  }

  void kill_one() {
    const auto which = std::uniform_int_distribution<std::size_t>(
        0, workers_.size() - 1)(random_);
    Worker& worker = workers_[which];
    worker.process->signal(SIGKILL);
    worker.process->wait();
    heed(worker);
    worker = another();
    ++kills_;
    next_kill_ = ddbmutex::BootClock::now() +
                 std::chrono::milliseconds(std::uniform_int_distribution(
                     kShortestPeace, kLongestPeace)(random_));
  }

  bool ended_well(Worker& worker) {
    const int status = worker.process->wait();
    heed(worker);
    if (status == 0) return true;
    std::printf("process %d ended with status %d\n", worker.number, status);
    return false;
  }

  void heed(const Worker& worker) {
    const std::string complaints = worker.process->complaints();
    if (complaints.empty()) return;
    std::printf("process %d complained: %s\n", worker.number,
                complaints.c_str());
    complained_ = true;
  }

  const std::string prefix_;
  std::mt19937 random_;
  const Command command_;
  tests::Engine engine_;
  const tests::MemoryDirectory directory_;
  SharedCount count_;
  std::vector<Worker> workers_;
  std::size_t all_ = 0;
  int started_ = 0, kills_ = 0;
  bool complained_ = false;
  std::uint64_t last_ = 0;
  ddbmutex::BootTime moved_{}, next_kill_{};
};

}  // namespace claims

#endif  // DDBMUTEX_TESTS_CLAIMS_CREW_HPP
