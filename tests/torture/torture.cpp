// The lock under every fault at once:
//
//   torture SECONDS [SEED]
//
// Eight processes of two threads (worker.cpp) take eight locks of one engine,
// half of them on rows that are kept, through a gateway that spoils one request
// in twenty (mischief.cpp).  The processes are killed, stopped and given
// calendars hours off, and the gateway is cut off.  When all of that is over,
// the waiters get in, and then a new process takes every lock.  The judge reads
// what each saw of its locks (judge.hpp).
//
// If something was wrong, it leaves all logs in $TORTURE_OUT/logs (in
// build/torture), and the status is not 0.  The same seed does the same to the
// processes at the same times.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/waiting.hpp"
#include "tests/torture/diary.hpp"
#include "tests/torture/history.hpp"
#include "tests/torture/judge.hpp"
#include "tests/torture/mischief.hpp"
#include "tests/torture/swarm.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using torture::Deed;
using torture::now;

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// Where it all is.  The logs are in memory while they are written, and are left
// with the rest unless all was well.
class Places {
 public:
  Places() : out_(chosen()) {
    fs::remove_all(left());
    fs::create_directories(out_);
    fs::create_directories(logs());
  }
  ~Places() {
    std::error_code ignored;
    if (!well_) fs::copy(logs(), left(), ignored);
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  std::string logs() const { return memory_.path() + "/logs"; }
  std::string left() const { return out_ / "logs"; }
  void all_was_well() { well_ = true; }

 private:
  static fs::path chosen() {
    const char* out = std::getenv("TORTURE_OUT");
    return out != nullptr && *out != '\0' ? out : "build/torture";
  }

  const fs::path out_;
  const tests::MemoryDirectory memory_;
  bool well_ = false;
};

tests::GatewaySettings gateway_settings(std::uint32_t seed) {
  tests::GatewaySettings settings;
  settings.seed = seed;
  return settings;
}

// --- The run -----------------------------------------------------------------

// Takes a lock when all is over, and writes among the events that it got it.
void take(int lock, const std::shared_ptr<ddbmutex::Table>& table,
          torture::Events& events) {
  ddbmutex::Options options;
  options.table = table;
  options.ttl = 60s;  // However slow the machine is.
  options.request_timeout = 20s;
  options.keep_row = torture::is_kept(lock);
  const std::string name = torture::lock_name(lock);
  ddbmutex::DdbMutex mutex(name, options);
  std::error_code ec;
  if (mutex.try_lock_for(tests::kPlenty, ec)) {
    events.taken(name, mutex.fencing_token());
    mutex.release(ec);
  }
}

void take_all(const std::shared_ptr<ddbmutex::Table>& table,
              torture::Events& events) {
  std::vector<std::thread> threads;
  for (int i = 0; i < torture::kNames; ++i) {
    threads.emplace_back([i, &table, &events] { take(i, table, events); });
  }
  for (std::thread& thread : threads) thread.join();
}

class Run {
 public:
  Run(seconds time, std::uint32_t seed, const Places& places)
      : time_(time),
        seed_(seed),
        events_(places.logs()),
        gateway_(engine_.url(), gateway_settings(seed)),
        swarm_(ways(), engine_.table(), places.logs(), events_) {}

  // Returns how many faults the gateway did.
  int run() {
    for (const auto& fault : torture::faults()) gateway_.add(fault);
    begin_ = now();
    const auto deeds =
        torture::plan(seed_, time_, tests::FakeCalendar::works());
    for (const Deed& deed : deeds) {
      pause_until(begin_ + deed.at);
      carry_out(deed);
    }
    pause_until(begin_ + time_);
    end();
    take_all(std::make_shared<ddbmutex::Table>(
                 gateway_.table_options(engine_.table())),
             events_);
    return gateway_.counts().all_faults();
  }

 private:
  // Half of the processes come by TLS.
  std::vector<torture::Way> ways() const {
    torture::Way plain{gateway_.where(engine_.table())};
    torture::Way tls = plain;
    tls.where.url = gateway_.url();
    tls.ca_file = gateway_.ca_file();
    return {plain, tls};
  }

  // Looks after the processes meanwhile.
  void pause_until(nanoseconds time) {
    constexpr milliseconds kLookEach = 50ms;
    for (;;) {
      if (tests::interrupted != 0) throw Interrupted();
      swarm_.look();
      const nanoseconds left = time - now();
      if (left <= 0ns) return;
      const auto ms = std::chrono::ceil<milliseconds>(left);
      poll(nullptr, 0, static_cast<int>(std::min(ms, kLookEach).count()));
    }
  }

  void carry_out(const Deed& deed) {
    switch (deed.kind) {
      case Deed::Kind::start:
        return swarm_.start(deed.process, deed.offset, deed.seed);
      case Deed::Kind::kill:
        return swarm_.kill(deed.process);
      case Deed::Kind::stop:
        return swarm_.stop(deed.process);
      case Deed::Kind::go_on:
        return swarm_.go_on(deed.process);
      case Deed::Kind::calendar:
        return swarm_.jump(deed.process, deed.offset.value_or(0s));
      case Deed::Kind::refuse:
        return block_gateway("refuse", "cut-off");
      case Deed::Kind::hang:
        return block_gateway("hang", "hang");
      case Deed::Kind::open:
        return open_gateway();
    }
  }

  void block_gateway(const char* mode, const char* what) {
    outage_ = what;
    events_.down(outage_, now());
    gateway_.mode(mode);
  }
  void open_gateway() {
    if (outage_.empty()) return;
    gateway_.mode("open");
    events_.up(outage_, now());
    outage_.clear();
  }
  // All works again, and the processes end.
  void end() {
    gateway_.clear();
    open_gateway();
    swarm_.end();
    gateway_.wait_until_quiet();
  }

  const seconds time_;
  const std::uint32_t seed_;
  torture::Events events_;
  tests::Engine engine_{tests::any_engine_kind()};
  tests::Gateway gateway_;
  torture::Swarm swarm_;
  nanoseconds begin_{};
  std::string outage_;  // Of the gateway; empty: none.
};

// --- What comes of it --------------------------------------------------------

// True if nothing was wrong.
bool report(const Places& places, const std::string& title, int faults) {
  const torture::History history = torture::read_history(places.logs());
  const std::vector<std::string> wrongs = torture::judge(history);
  constexpr std::size_t kMostTold = 50;
  for (std::size_t i = 0; i < std::min(wrongs.size(), kMostTold); ++i) {
    std::printf("WRONG %s\n", wrongs[i].c_str());
  }
  std::printf("%s: %s, %d faults, %zu wrong\n", title.c_str(),
              torture::counts_of(history).c_str(), faults, wrongs.size());
  return wrongs.empty();
}

bool torture_for(seconds time, std::uint32_t seed) {
  const std::string title = "torture of " + std::to_string(time.count()) +
                            " s, seed " + std::to_string(seed);
  std::printf("%s\n", title.c_str());
  std::fflush(stdout);
  Places places;
  const int faults = Run(time, seed, places).run();
  const bool well = report(places, title, faults);
  if (well) {
    places.all_was_well();
  } else {
    std::printf("the logs are in %s\n", places.left().c_str());
  }
  return well;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: torture SECONDS [SEED]\n");
    return 2;
  }
  tests::catch_signals();
  const seconds time(std::stol(argv[1]));
  const std::uint32_t seed =
      argc == 3 ? static_cast<std::uint32_t>(std::stoul(argv[2]))
                : std::random_device()();
  return torture_for(time, seed) ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("\n%s\n", tests::interrupted != 0 ? "interrupted" : error.what());
  return tests::interrupted != 0 ? 130 : 1;
}
