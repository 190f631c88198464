// What it costs to wait: how often hosts look that wait for one lock, and how
// soon one has it after another has let go, for several Options::longest_poll
// and numbers of waiters.
//
// Each host is a Table of its own, and a thread; the engine is a real one.  A
// lock is held for so long that all who wait look as seldom as they ever do,
// and who has let go comes again only once another has it.
#ifndef DDBMUTEX_TESTS_BENCH_WAITING_HPP
#define DDBMUTEX_TESTS_BENCH_WAITING_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/bench/report.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/whereabouts.hpp"

namespace bench {
namespace waiting {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

inline double ms_of(Clock::duration time) {
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
       milliseconds longest_poll, int turns, Findings& findings)
      : longest_poll_(longest_poll), last_(turns), findings_(findings) {
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
      if (turn <= last_) hold();
      let_go_ = Clock::now();
      mutex.unlock();
      while (turns_ == turn && turn <= last_) {
        std::this_thread::sleep_for(milliseconds(1));
      }
      if (turns_ > last_) break;
    }
    const std::lock_guard<std::mutex> guard(findings_.mutex);
    findings_.looks += table->stats().get_item;
  }

  void told(Clock::time_point now, Clock::time_point begun) {
    const std::lock_guard<std::mutex> guard(findings_.mutex);
    findings_.waited_s += ms_of(now - begun) / 1000;
    if (turns_ <= last_ + 1) {
      findings_.handovers_ms.push_back(ms_of(now - let_go_));
    }
  }

  void hold() {
    std::uniform_real_distribution<double> part(2, 3);
    std::random_device seed;
    std::this_thread::sleep_for(part(seed) * longest_poll_);
  }

  const milliseconds longest_poll_;
  const int last_;  // Turn that counts.
  Findings& findings_;
  std::atomic<int> turns_{0};
  Clock::time_point let_go_;  // Guarded by the lock that is measured.
  std::vector<std::thread> threads_;
};

struct Point {
  int waiters;
  int locks;  // At once, each with so many.
};

inline void measure(const tests::Engine& engine, const Point& point,
                    milliseconds longest_poll, int turns, Report& report) {
  // What is promised is told of so many that chance has little say in it.
  const bool promised =
      point.waiters == 2 && longest_poll == ddbmutex::Options().longest_poll;
  if (promised) turns *= 2;
  const std::string name = format("waiting_%d_%dms", point.waiters,
                                  static_cast<int>(longest_poll.count()));
  Findings found;
  {
    std::vector<std::unique_ptr<Crew>> crews;
    for (int i = 0; i < point.locks; ++i) {
      crews.push_back(std::make_unique<Crew>(engine, name + std::to_string(i),
                                             point.waiters, longest_poll, turns,
                                             found));
    }
  }
  std::vector<double>& all = found.handovers_ms;
  const Figure figure = figure_of(all);
  const auto late =
      all.begin() + static_cast<std::ptrdiff_t>(all.size() * 99 / 100);
  std::nth_element(all.begin(), late, all.end());
  report.line(name, figure, 0, "ms",
              format("p50 from unlock() to another host's lock(), p99 %.0f ms, "
                     "%zu times; %.1f looks a second and waiter",
                     *late, all.size(),
                     static_cast<double>(found.looks) / found.waited_s),
              promised ? "<= 60" : "");
}

}  // namespace waiting

inline void hold_waits(const std::string&, unsigned turns, Report& report) {
  const tests::Engine engine(tests::any_engine_kind());
  std::printf("Hosts that wait for a lock, by how seldom they look:\n");
  for (const waiting::Point& point : {waiting::Point{2, 24}, {8, 4}}) {
    for (const int ms : {225, 500}) {
      waiting::measure(engine, point, std::chrono::milliseconds(ms),
                       static_cast<int>(turns) + 3, report);
    }
  }
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_WAITING_HPP
