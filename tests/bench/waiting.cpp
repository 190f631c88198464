// What it costs to wait: how often hosts look that wait for one lock, and how
// soon one has it after another has let go, for several Options::longest_poll
// and numbers of waiters.
//
//   waiting RESULT
//
// Each host is a Table of its own, and a thread; the engine is a real one.  A
// lock is held for so long that all who wait look as seldom as they ever do,
// and who has let go comes again only once another has it.  Lines are added to
// RESULT.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kTurns = 10;  // Of each lock, those that count.

double ms_of(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// All that is measured of locks that are alike.
struct Findings {
  std::mutex mutex;
  std::vector<double> handovers_ms;
  double waited_s = 0;
  std::uint64_t looks = 0;
};

// A lock, those who have it in turn, and those who wait.
class Crew {
 public:
  Crew(const tests::Engine& engine, const std::string& name, int waiters,
       milliseconds longest_poll, Findings& findings)
      : longest_poll_(longest_poll), findings_(findings) {
    for (int i = 0; i <= waiters; ++i) {
      threads_.emplace_back([this, &engine, name] { host(engine, name); });
    }
  }
  ~Crew() {
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

 private:
  void host(const tests::Engine& engine, const std::string& name) {
    const auto table = tests::table_at(tests::at(engine));
    ddbmutex::Options options;
    options.table = table;
    options.auto_renew = false;
    options.ttl = std::chrono::minutes(10);
    options.longest_poll = longest_poll_;
    ddbmutex::DdbMutex mutex(name, options);
    for (;;) {
      const auto begun = Clock::now();
      mutex.lock();
      const int turn = ++turns_;
      if (turn > 1) told(Clock::now(), begun);
      if (turn <= kTurns) hold();
      let_go_ = Clock::now();
      mutex.unlock();
      while (turns_ == turn && turn <= kTurns) {
        std::this_thread::sleep_for(milliseconds(1));
      }
      if (turns_ > kTurns) break;
    }
    const std::lock_guard<std::mutex> guard(findings_.mutex);
    findings_.looks += table->stats().get_item;
  }

  void told(Clock::time_point now, Clock::time_point begun) {
    const std::lock_guard<std::mutex> guard(findings_.mutex);
    findings_.waited_s += ms_of(now - begun) / 1000;
    if (turns_ <= kTurns + 1) {
      findings_.handovers_ms.push_back(ms_of(now - let_go_));
    }
  }

  void hold() {
    std::uniform_real_distribution<double> part(2, 3);
    std::random_device seed;
    std::this_thread::sleep_for(part(seed) * longest_poll_);
  }

  const milliseconds longest_poll_;
  Findings& findings_;
  std::atomic<int> turns_{0};
  Clock::time_point let_go_;  // Guarded by the lock that is measured.
  std::vector<std::thread> threads_;
};

double quantile(std::vector<double>& values, double part) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(
                           static_cast<double>(values.size() - 1) * part);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

struct Point {
  int waiters;
  int locks;  // At once, each with so many.
};

void measure(const tests::Engine& engine, const Point& point,
             milliseconds longest_poll, std::ostream& result) {
  const std::string name = "waiting_" + std::to_string(point.waiters) + "_" +
                           std::to_string(longest_poll.count()) + "ms";
  Findings found;
  {
    std::vector<std::unique_ptr<Crew>> crews;
    for (int i = 0; i < point.locks; ++i) {
      crews.push_back(
          std::make_unique<Crew>(engine, name + "-" + std::to_string(i),
                                 point.waiters, longest_poll, found));
    }
  }
  const double looks = static_cast<double>(found.looks) / found.waited_s;
  const double p50 = quantile(found.handovers_ms, 0.5);
  const double p99 = quantile(found.handovers_ms, 0.99);
  char line[200];
  std::snprintf(line, sizeof line,
                "%s\t%.0f\tms\tp50 from unlock() to another host's lock(), "
                "p99 %.0f ms, %zu times; %.1f looks a second and waiter",
                name.c_str(), p50, p99, found.handovers_ms.size(), looks);
  std::puts(line);
  result << line << "\n";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: waiting RESULT\n");
    return 2;
  }
  setlinebuf(stdout);
  const tests::Engine engine(tests::any_engine_kind());
  std::ofstream result(argv[1], std::ios::app);
  for (const Point& point : {Point{2, 8}, {8, 4}, {64, 1}}) {
    for (const int ms : {100, 200, 300, 500}) {
      measure(engine, point, milliseconds(ms), result);
    }
  }
  return result.flush() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "waiting: %s\n", error.what());
  return 1;
}
