// The lock under every fault at once:
//
//   torture SECONDS [SEED]
//
// Eight processes of two threads (worker.cpp) take eight locks of one engine,
// half of them on rows that are kept, through a gateway that spoils one request
// in twenty (mischief.cpp).  The processes are killed, stopped and given
// calendars hours off, the gateway is cut off, and the engine is killed and
// started again.  When all of that is over, the waiters get in, and then a new
// process takes every lock.  The judge reads what each saw of its locks
// (judge.hpp).
//
// Writes minute.txt to $TORTURE_OUT (build/torture), from which tests/pictures
// draws one of README's pictures.  If something was wrong, it leaves all logs
// there, in logs, and the status is not 0.  The same seed does the same to the
// processes at the same times.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/pictures/pictures.hpp"
#include "tests/support/durable_engine.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/torture/diary.hpp"
#include "tests/torture/history.hpp"
#include "tests/torture/judge.hpp"
#include "tests/torture/mischief.hpp"
#include "tests/torture/rows.hpp"
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

  const fs::path& out() const { return out_; }
  std::string logs() const { return memory_.path() + "/logs"; }
  std::string left() const { return out_ / "logs"; }
  // The gateway's faults by its own clock (CLOCK_MONOTONIC), for whoever looks
  // for the cause of what went wrong.
  std::string faults() const { return logs() + "/faults"; }
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

tests::GatewaySettings gateway_settings(std::uint32_t seed,
                                        const Places& places) {
  tests::GatewaySettings settings;
  settings.seed = seed;
  settings.events = places.faults();
  return settings;
}

// --- The run -----------------------------------------------------------------

class Run {
 public:
  Run(seconds time, std::uint32_t seed, const Places& places)
      : time_(time),
        seed_(seed),
        events_(places.logs()),
        gateway_(engine_.where().url, gateway_settings(seed, places)),
        swarm_(ways(), engine_.where().table, places.logs(), events_) {}

  // Returns how many faults the gateway did.
  int run() {
    for (const auto& fault : torture::faults()) gateway_.add(fault);
    torture::make_rows(table_at(engine_.where()));  // Past the gateway.
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
                 gateway_.table_options(engine_.where().table)),
             events_);
    return gateway_.counts().all_faults();
  }

 private:
  // Half of the processes come by TLS.
  std::vector<torture::Way> ways() const {
    torture::Way plain{gateway_.where(engine_.where().table)};
    torture::Way tls = plain;
    tls.where.url = gateway_.url();
    tls.ca_file = gateway_.ca_file();
    return {plain, tls};
  }

  // Looks after the processes meanwhile, and says how far it is.
  void pause_until(nanoseconds time) {
    constexpr milliseconds kLookEach = 50ms;
    for (;;) {
      if (tests::interrupted != 0) throw Interrupted();
      swarm_.look();
      show_progress();
      const nanoseconds left = time - now();
      if (left <= 0ns) return;
      const auto ms = std::chrono::ceil<milliseconds>(left);
      poll(nullptr, 0, static_cast<int>(std::min(ms, kLookEach).count()));
    }
  }

  void show_progress() {
    constexpr seconds kEach{10};
    const auto gone = std::chrono::duration_cast<seconds>(now() - begin_);
    if (gone < shown_ + kEach || gone > time_) return;
    shown_ = gone;
    std::printf("%lld of %lld s: %d faults, %d kills and stops\n",
                static_cast<long long>(gone.count()),
                static_cast<long long>(time_.count()),
                gateway_.counts().all_faults(), swarm_.blows());
    std::fflush(stdout);
  }

  void carry_out(const Deed& deed) {
    switch (deed.kind) {
      case Deed::Kind::start:
        return swarm_.start(deed.process, deed.offset, deed.seed);
      case Deed::Kind::kill:
        return swarm_.kill(deed.process, deed.aimed);
      case Deed::Kind::stop:
        return swarm_.stop(deed.process, deed.aimed);
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
      case Deed::Kind::engine_down:
        return kill_engine();
      case Deed::Kind::engine_up:
        return start_engine();
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
  void kill_engine() {
    events_.down("engine", now());
    engine_.kill();
    engine_is_down_ = true;
  }
  void start_engine() {
    if (!engine_is_down_) return;
    engine_.start();
    events_.up("engine", now());
    engine_is_down_ = false;
  }

  // All works again, and the processes end.
  void end() {
    gateway_.clear();
    open_gateway();
    start_engine();
    swarm_.end();
    gateway_.wait_until_quiet();
  }

  const seconds time_;
  const std::uint32_t seed_;
  torture::Events events_;
  tests::DurableEngine engine_;
  tests::Gateway gateway_;
  torture::Swarm swarm_;
  nanoseconds begin_{};
  seconds shown_{};
  std::string outage_;  // Of the gateway; empty: none.
  bool engine_is_down_ = false;
};

// --- What comes of it --------------------------------------------------------

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

// True if nothing was wrong.
bool report(const Places& places, const std::string& title, int faults) {
  const torture::History history = torture::read_history(places.logs());
  write_file(places.out() / "minute.txt",
             pictures::write(pictures::minute_of(history, title)));
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
