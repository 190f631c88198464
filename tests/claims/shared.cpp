// Processes of ours and of another library (tests/support/rival.hpp) want one
// lock of one table; they are killed and stopped, and their claims compared:
//
//   shared LAYOUT TTL_MS SECONDS [SEED [AHEAD_MS [dynoxide|dynalite]]]
//
// AHEAD_MS: how far the calendars of theirs are ahead of the engine's.  The
// status is 0 if no two claims overlapped and both kinds got in after the
// other.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/ask.hpp"
#include "ddbmutex/client.hpp"
#include "tests/claims/claims.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/given.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/process.hpp"
#include "tests/support/rival.hpp"
#include "tests/support/true_clock.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using tests::Engine;
using tests::Layout;
using tests::Process;
using tests::Rival;

Layout layout_named(const std::string& name) {
  for (int i = 0; i < 5; ++i) {
    const auto layout = static_cast<Layout>(i);
    if (name == tests::name_of(layout)) return layout;
  }
  throw std::runtime_error("no layout " + name);
}

nanoseconds now() { return tests::true_time(CLOCK_BOOTTIME); }

// --- What one process does -------------------------------------------------

struct Part {
  Layout layout;
  milliseconds ttl, ahead;
  std::string table;
  unsigned seed;
};

// Holds for a moment, or for some leases; `holds` is asked after the clock, so
// that what it says was true then too.
template <class Holds, class Beat>
void hold(claims::LogWriter& log, milliseconds time, milliseconds ttl,
          const Holds& holds, const Beat& beat) {
  const nanoseconds begin = now();
  if (!holds()) return;
  log.acquired(begin);
  nanoseconds last = begin, beaten = begin;
  while (now() < begin + time) {
    std::this_thread::sleep_for(2ms);
    const nanoseconds at = now();
    if (!holds()) break;
    last = at;
    log.held(at);
    if (at - beaten >= ttl / 3) {
      beaten = at;
      if (!beat()) break;
    }
  }
  log.ended(last);
}

milliseconds hold_time(std::mt19937& random, milliseconds ttl) {
  return random() % 8 == 0 ? ttl * 5 / 2 : milliseconds(random() % 30);
}

int run_ours(const Part& part, claims::LogWriter& log) {
  ddbmutex::TableOptions table;
  table.name = part.table;
  table.layout = part.layout;
  table.key = tests::key_of(part.layout);
  if (part.layout == Layout::ddblock) table.calendar_margin = 2000ms;
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(table);
  options.ttl = part.ttl;
  ddbmutex::DdbMutex mutex("job", options);
  std::mt19937 random(part.seed);
  for (;;) {
    std::error_code ec;
    if (!mutex.try_lock_for(10s, ec)) {
      if (ec) log.failed(mutex.last_error());
      continue;
    }
    hold(
        log, hold_time(random, part.ttl), part.ttl,
        [&] { return mutex.owns_lock(); }, [] { return true; });
    mutex.unlock();
    std::this_thread::sleep_for(milliseconds(random() % 60));
  }
}

int run_theirs(const Part& part, claims::LogWriter& log) {
  using namespace ddbmutex;
  dynamodb::Client client(
      {tests::target_at(std::getenv("AWS_ENDPOINT_URL_DYNAMODB"), "us-east-1"),
       tests::given_keys({"AKIDEXAMPLE", "secret", "", ""}),
       {}});
  dynamodb::RetryBudget budget;
  sigv4::Waker waker;
  const auto ask = [&](dynamodb::Action action, const std::string& body) {
    return dynamodb::ask({client, budget, BootClock::now() + 10s, &waker},
                         action, body);
  };
  const std::string key =
      part.layout == Layout::ddblock ? "ddblock-job" : "job";
  Rival rival(part.layout, {part.table, key}, part.ttl, ask, part.ahead);
  std::mt19937 random(part.seed);
  // Nobody gives back a lease of that kind, and we leave it alone for up to 5 s
  // more than they do: ours get in where none of theirs wants it for so long.
  const auto rest = [&] {
    if (part.layout != Layout::lease) return;
    std::this_thread::sleep_for(milliseconds(random() % 12000) + part.ttl);
  };
  for (rest();;) {
    if (rival.acquire()) {
      hold(
          log, hold_time(random, part.ttl), part.ttl,
          [&] { return rival.holds(); }, [&] { return rival.heartbeat(); });
      // Those that judge by the calendar ask nobody whether it is theirs yet.
      if (rival.holds()) rival.release();
      rest();
    } else if (!rival.complaint().empty()) {
      log.failed(rival.complaint());
    }
    std::this_thread::sleep_for(milliseconds(20 + random() % 60));
  }
}

// --- All of them -------------------------------------------------------------

class Run {
 public:
  Run(const std::string& layout, milliseconds ttl, unsigned seed,
      const std::string& ahead, tests::EngineKind kind)
      : layout_(layout),
        ttl_(ttl),
        ahead_(ahead),
        random_(seed),
        engine_(kind) {
    make_table();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool succeeds(std::chrono::seconds time) {
    for (std::size_t i = 0; i < 4; ++i) {
      processes_.push_back(nullptr);
      start(i);
    }
    const nanoseconds end = now() + time;
    // Who gets in is chance; that each follows the other is waited for.
    while (now() < end || (!went_both_ways() && now() < end + 10 * time)) {
      std::this_thread::sleep_for(milliseconds(200 + random_() % 800));
      disturb(random_() % processes_.size());
    }
    for (const auto& process : processes_) process->signal(SIGKILL);
    for (const auto& process : processes_) process->wait();
    return judge();
  }

 private:
  void make_table() {
    const std::string key = tests::key_of(layout_named(layout_));
    engine_.must_call(
        "CreateTable",
        R"({"TableName":"shared","BillingMode":"PAY_PER_REQUEST",)"
        R"("AttributeDefinitions":[{"AttributeName":")" +
            key + R"(","AttributeType":"S"}],"KeySchema":[{"AttributeName":")" +
            key + R"(","KeyType":"HASH"}]})");
    while (engine_.must_call("DescribeTable", R"({"TableName":"shared"})")
               .find("\"ACTIVE\"") == std::string::npos) {
      std::this_thread::sleep_for(5ms);
    }
    if (layout_ != "lease") return;  // Nobody makes rows.
    engine_.must_call("PutItem",
                      R"({"TableName":"shared","Item":{"LockHashKeyName":)"
                      R"({"S":"job"},"LeaseUntil":{"N":"0"}}})");
  }

  // The first two are ours.
  void start(std::size_t place) {
    const std::string log = std::to_string(owners_.size());
    owners_.push_back(place < 2);
    processes_[place] = std::make_unique<Process>(tests::ProcessSettings{
        {tests::program_path("claims/shared"), place < 2 ? "ours" : "theirs",
         layout_, std::to_string(ttl_.count()), std::to_string(random_()),
         ahead_, logs_.path() + "/" + log},
        environment_of(at(engine_))});
  }

  void disturb(std::size_t place) {
    Process& process = *processes_[place];
    if (random_() % 2 == 0) {
      process.signal(SIGKILL);
      process.wait();
      ++kills_;
      start(place);
      return;
    }
    process.signal(SIGSTOP);
    std::this_thread::sleep_for(ttl_ * (random_() % 20) / 10);
    process.signal(SIGCONT);
    ++stops_;
  }

  claims::Log log_of(std::size_t process) const {
    std::ifstream in(logs_.path() + "/" + std::to_string(process));
    return claims::LogReader(static_cast<int>(process)).read(in);
  }

  // As far as it is written by now.
  bool went_both_ways() const {
    std::vector<claims::Claim> all;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const claims::Log log = log_of(i);
      all.insert(all.end(), log.claims.begin(), log.claims.end());
    }
    return sides(std::move(all)).second >= 2;
  }

  bool judge() const {
    bool well = true;
    std::vector<claims::Claim> all;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const claims::Log log = log_of(i);
      if (!log.problem.empty()) {
        std::printf("process %zu: %s\n", i, log.problem.c_str());
        well = false;
      }
      all.insert(all.end(), log.claims.begin(), log.claims.end());
    }
    const claims::Findings found = claims::judge(all);
    for (const claims::Overlap& overlap : found.overlaps) {
      std::printf("OVERLAP: %s\n", words_of(overlap).c_str());
    }
    const auto [ours, changes] = sides(all);
    std::printf(
        "%s, ttl %d ms, calendars %s ms: %d claims, %d ours, %d hand-overs "
        "between the kinds, %d kills, %d stops, %zu overlaps, longest gap %d "
        "ms\n",
        layout_.c_str(), static_cast<int>(ttl_.count()), ahead_.c_str(),
        found.claims, ours, changes, kills_, stops_, found.overlaps.size(),
        static_cast<int>(found.longest_gap / 1ms));
    return well && found.overlaps.empty() && changes >= 2;
  }

  // How many claims are ours, and how often the kind changes.
  std::pair<int, int> sides(std::vector<claims::Claim> all) const {
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    int ours = 0, changes = 0;
    bool last = false, first = true;
    for (const claims::Claim& claim : all) {
      const bool our = owners_[static_cast<std::size_t>(claim.process)];
      ours += our;
      changes += !first && our != last;
      last = our;
      first = false;
    }
    return {ours, changes};
  }

  const std::string layout_;
  const milliseconds ttl_;
  const std::string ahead_;
  std::mt19937 random_;
  Engine engine_;
  const tests::MemoryDirectory logs_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<bool> owners_;  // Of each log, whether it is of ours.
  int kills_ = 0, stops_ = 0;
};

int take_part(char** argv) {
  const Part part = {layout_named(argv[2]), milliseconds(std::stol(argv[3])),
                     milliseconds(std::stol(argv[5])), "shared",
                     static_cast<unsigned>(std::stoul(argv[4]))};
  claims::LogWriter log(argv[6]);
  return argv[1] == std::string("ours") ? run_ours(part, log)
                                        : run_theirs(part, log);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "ours" || first == "theirs") return take_part(argv);
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: shared LAYOUT TTL_MS SECONDS [SEED [AHEAD_MS "
                 "[dynoxide|dynalite]]]\n");
    return 2;
  }
  const unsigned seed = argc > 4 ? static_cast<unsigned>(std::stoul(argv[4]))
                                 : std::random_device()();
  const bool dynalite = argc > 6 && argv[6] == std::string("dynalite");
  std::printf("seed %u\n", seed);
  Run run(first, milliseconds(std::stol(argv[2])), seed,
          argc > 5 ? argv[5] : "0",
          dynalite ? tests::EngineKind::dynalite : tests::any_engine_kind());
  return run.succeeds(std::chrono::seconds(std::stol(argv[3]))) ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
