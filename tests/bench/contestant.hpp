// What a contestant of the bench is: a program that can do one thing over and
// over.  The bench asks for runs on its stdin and reads on its stdout what they
// cost, a line each:
//
//   WARMUP CYCLES  ->  CPU_NS P50_NS REQUESTS WARMUP_REQUESTS OTHER_REQUESTS
//                      PEAK_RSS_KIB THREADS
//
// CPU time and requests are those of the CYCLES, the median is that of one.
// The other requests are those since the run before that belong to no run: what
// the contestant did to be ready, and still owed.  After the last run it gives
// back what it holds, as often as it is asked:
//
//   0 0  ->  ALL_REQUESTS
//
// End of input ends the program.
//
// Being a process of its own, a contestant is charged with its own memory and
// CPU only, and each run is fit to stand beside any other contestant's.
#ifndef DDBMUTEX_TESTS_BENCH_CONTESTANT_HPP
#define DDBMUTEX_TESTS_BENCH_CONTESTANT_HPP

#include <time.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace bench {

// A number of /proc/self/status; -1 if it is not there.
inline long status_of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) != 0) continue;
    return std::strtol(line.c_str() + name.size() + 1, nullptr, 10);
  }
  return -1;
}

class Contestant {
 public:
  virtual ~Contestant() = default;
  // False if it went wrong; says why on stderr.
  virtual bool cycle() = 0;
  // Waits until nothing is owed any more that is no part of a run; before each.
  virtual bool settle() { return true; }
  // Gives back what is held, if anything is; after the last run.
  virtual bool finish() { return true; }
  // Requests sent so far by the contestant's own count.
  virtual std::uint64_t requests() const { return 0; }
};

enum class Timing {
  whole_run,   // Cycles too short to look at a clock for each.
  each_cycle,  // For their median.
};

inline std::int64_t now_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Not ru_maxrss, which a process inherits from the one that executed it.
inline long peak_rss_kib() { return status_of_process("VmHWM"); }

class Runs {
 public:
  Runs(Contestant& contestant, Timing timing)
      : contestant_(contestant), timing_(timing) {}

  // The program's exit status.
  int serve() {
    unsigned warmup, cycles;
    while (std::scanf("%u %u", &warmup, &cycles) == 2) {
      if (!(cycles == 0 ? tell_total() : run(warmup, cycles))) return 1;
    }
    return 0;
  }

 private:
  struct Spent {
    std::int64_t cpu_ns;
    std::uint64_t requests;
  };

  // Both of one moment, though other threads send meanwhile and this one may
  // be held up between two lines.
  Spent spent() const {
    Spent spent{};
    for (int tries = 0; tries < 1000; ++tries) {
      spent.requests = contestant_.requests();
      spent.cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
      if (contestant_.requests() == spent.requests) break;
    }
    return spent;
  }

  bool tell_total() {
    if (!contestant_.finish()) return false;
    std::printf("%" PRIu64 "\n", contestant_.requests());
    return std::fflush(stdout) == 0;
  }

  bool run(unsigned warmup, unsigned cycles) {
    if (!contestant_.settle()) return false;
    const std::uint64_t settled = contestant_.requests();
    for (unsigned i = 0; i < warmup; ++i) {
      if (!contestant_.cycle()) return false;
    }
    cycle_ns_.clear();
    cycle_ns_.reserve(cycles);
    const Spent begin = spent();
    if (!measured(cycles)) return false;
    const Spent end = spent();
    std::printf(
        "%" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %ld %ld\n",
        end.cpu_ns - begin.cpu_ns, median(), end.requests - begin.requests,
        begin.requests - settled, settled - reported_, peak_rss_kib(),
        status_of_process("Threads"));
    reported_ = end.requests;
    return std::fflush(stdout) == 0;
  }

  bool measured(unsigned cycles) {
    if (timing_ == Timing::whole_run) {
      for (unsigned i = 0; i < cycles; ++i) {
        if (!contestant_.cycle()) return false;
      }
      return true;
    }
    std::int64_t begin = now_ns(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < cycles; ++i) {
      if (!contestant_.cycle()) return false;
      const std::int64_t end = now_ns(CLOCK_MONOTONIC);
      cycle_ns_.push_back(end - begin);
      begin = end;
    }
    return true;
  }

  std::int64_t median() {
    if (cycle_ns_.empty()) return 0;
    const auto middle =
        cycle_ns_.begin() + static_cast<std::ptrdiff_t>(cycle_ns_.size() / 2);
    std::nth_element(cycle_ns_.begin(), middle, cycle_ns_.end());
    return *middle;
  }

  Contestant& contestant_;
  const Timing timing_;
  std::uint64_t reported_ = 0;
  std::vector<std::int64_t> cycle_ns_;
};

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_CONTESTANT_HPP
