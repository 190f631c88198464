// Many waiters at a table that is throttled for a while: do they make it worse?
//
//   throttling [NAME=NUMBER ...]
//
//   processes=10 waiters=10   so many threads want a lock each, once
//   same=0      1: all of them the same one
//   rate=20     requests a second that the table lets through,
//   seconds=30  for so long; then all
//   chance=0    instead of the rate: how many of 1,000 requests go through
//   hold=10     milliseconds that each lock is held
//   patience=60 seconds, as Options has it
//   held=0      locks that the first process holds all the time, ttl 10 s
//   most=3      requests that may be sent for one that goes through
//   within=10   seconds from when the table is freed until the last is taken
//   seed=...    of the moments at which threads begin, and of the chance
//
// The table is an engine of our own behind the gateway.  Status 0 if while it
// was throttled no more was sent than may be, each thread took its lock once
// and in time, none was lost, and no row is left.
#include <rapidjson/document.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex/lock/row.hpp"
#include "sigv4/boot_clock.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/process.hpp"

namespace {

using ddbmutex::BootClock;
using ddbmutex::BootTime;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using tests::Engine;
using tests::Gateway;
using tests::Numbers;
using tests::Process;

constexpr seconds kLongest{200};
constexpr seconds kReleasedWithin{30};

struct Outcome {
  int taken = 0;
  BootTime last = BootTime::min();
  std::vector<std::string> failures;
  long held = 0;
};

class Run {
 public:
  explicit Run(Numbers numbers)
      : numbers_(std::move(numbers)),
        engine_(tests::any_engine_kind()),
        gateway_(engine_.url(), settings()) {}

  bool goes_well() {
    start_all();
    gateway_.forget();
    throttle();
    for (const auto& process : processes_) process->channel().say("go");
    const BootTime freed_at = BootClock::now() + seconds(number("seconds"));
    std::this_thread::sleep_until(at_boot(freed_at));
    const Gateway::Counts counts = gateway_.counts();
    gateway_.unlimited();
    gateway_.clear();
    Outcome outcome;
    for (const auto& process : processes_) hear_out(*process, outcome);
    await_releases();
    end_all(outcome);
    return judge(counts, outcome, freed_at);
  }

 private:
  long number(const char* name) const { return numbers_.at(name); }

  Gateway::Settings settings() const {
    Gateway::Settings settings;
    settings.tls = false;
    settings.seed = static_cast<unsigned>(number("seed"));
    if (const auto keys = engine_.credentials()) {
      settings.keys = {keys->access_key_id, keys->secret_access_key,
                       keys->session_token};
    }
    settings.sign = engine_.kind() == tests::EngineKind::given;
    return settings;
  }

  static std::chrono::steady_clock::time_point at_boot(BootTime when) {
    return std::chrono::steady_clock::now() + (when - BootClock::now());
  }

  void start_all() {
    const std::string fresh = "throttled-" + ddbmutex::lock::fresh_uuid();
    std::mt19937 random(static_cast<unsigned>(number("seed")));
    for (long i = 0; i < number("processes"); ++i) {
      const std::string prefix = number("same") != 0
                                     ? fresh + "="
                                     : fresh + "-" + std::to_string(i) + "-";
      const std::vector<std::string> command = {
          tests::program_path("processes/throttled_worker"),
          engine_.table(),
          prefix,
          std::to_string(number("waiters")),
          std::to_string(i == 0 ? number("held") : 0),
          std::to_string(number("hold")),
          std::to_string(1000 * number("patience")),
          std::to_string(random())};
      processes_.push_back(std::make_unique<Process>(
          tests::ProcessSettings{command, gateway_.environment()}));
    }
    for (const auto& process : processes_) expect(*process, "ready");
  }

  static void expect(Process& process, const std::string& word) {
    const std::string line = process.channel().line();
    if (line != word) throw std::runtime_error("a worker says " + line);
  }

  void throttle() {
    if (number("chance") == 0) {
      tests::Rate rate;
      rate.per_second = static_cast<double>(number("rate"));
      return gateway_.rate(rate);
    }
    tests::Fault fault;
    fault.kind = "throttle";
    fault.probability = 1 - static_cast<double>(number("chance")) / 1000;
    gateway_.add(fault);
  }

  static void hear_out(Process& process, Outcome& outcome) {
    for (;;) {
      const std::string line = process.channel().line(kLongest);
      if (line == "done") return;
      if (line.rfind("taken ", 0) == 0) {
        const BootTime when{nanoseconds(std::stoll(line.substr(6)))};
        outcome.last = std::max(outcome.last, when);
        ++outcome.taken;
      } else {
        outcome.failures.push_back(line);
      }
    }
  }

  // What was throttled goes on behind for a while, but not past the end of a
  // process.
  void await_releases() {
    const BootTime end = BootClock::now() + kReleasedWithin;
    const auto kept = static_cast<std::size_t>(number("held"));
    while (rows_left() > kept && BootClock::now() < end) {
      std::this_thread::sleep_for(milliseconds(100));
    }
  }

  void end_all(Outcome& outcome) {
    for (const auto& process : processes_) {
      process->channel().say("end");
      const std::string line = process->channel().line();
      outcome.held += std::stol(line.substr(line.find(' ')));
      const int status = process->wait();
      if (status == 0 && process->complaints().empty()) continue;
      outcome.failures.push_back("ended with status " + std::to_string(status) +
                                 ": " + process->complaints());
    }
    gateway_.wait_until_quiet();
  }

  std::size_t rows_left() {
    const std::string answer =
        engine_.must_call("Scan", R"({"TableName":")" + engine_.table() +
                                      R"(","ConsistentRead":true})");
    rapidjson::Document body;
    body.Parse(answer.data(), answer.size());
    if (body.HasParseError() || !body.IsObject() || !body.HasMember("Items")) {
      throw std::runtime_error("Scan answers " + answer);
    }
    return body["Items"].Size();
  }

  bool judge(const Gateway::Counts& throttled, const Outcome& outcome,
             BootTime freed_at) {
    const long refused = number("chance") == 0 ? throttled.throttled()
                                               : throttled.faults("throttle");
    const long sent = throttled.all_requests();
    const long allowed = sent - refused;
    const long wanted = number("processes") * number("waiters");
    const auto last = (outcome.last - freed_at) / milliseconds(1);
    const Gateway::Counts all = gateway_.counts();
    const std::size_t rows = rows_left();
    for (const std::string& text : outcome.failures) {
      std::printf("%s\n", text.c_str());
    }
    std::printf(
        "throttled for %ld s: %ld sent, %ld let through, ratio %.2f "
        "(at most %ld)\n%d of %ld taken, the last %+.1f s after the table was "
        "freed, %ld of %ld kept, %zu rows left; sent in all %d\n",
        number("seconds"), sent, allowed,
        static_cast<double>(sent) / static_cast<double>(std::max(allowed, 1L)),
        number("most"), outcome.taken, wanted, static_cast<double>(last) / 1000,
        outcome.held, number("held"), rows, all.all_requests());
    return sent <= number("most") * allowed && outcome.taken == wanted &&
           last <= 1000 * number("within") && outcome.failures.empty() &&
           outcome.held == number("held") && rows == 0;
  }

  const Numbers numbers_;
  Engine engine_;
  Gateway gateway_;
  std::vector<std::unique_ptr<Process>> processes_;
};

Numbers defaults() {
  return {{"processes", 10},
          {"waiters", 10},
          {"same", 0},
          {"rate", 20},
          {"seconds", 30},
          {"chance", 0},
          {"most", 3},
          {"hold", 10},
          {"patience", 60},
          {"held", 0},
          {"within", 10},
          {"seed", static_cast<long>(std::random_device()() % 1000000)}};
}

}  // namespace

int main(int argc, char** argv) try {
  const Numbers numbers = tests::numbers_of(argc, argv, defaults());
  std::printf("throttling:");
  for (const auto& [name, value] : numbers) {
    std::printf(" %s=%ld", name.c_str(), value);
  }
  std::printf("\n");
  std::fflush(stdout);
  return Run(numbers).goes_well() ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
