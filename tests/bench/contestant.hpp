// What a contestant of the bench is: a program that can do one thing over and
// over.  The bench asks for runs on its stdin and reads on its stdout what they
// cost, a line each:
//
//   WARMUP CYCLES  ->  CPU_NS P50_NS REQUESTS PEAK_RSS_KIB THREADS
//
// CPU time and requests are those of the whole run (requests with the
// warm-up's), the median is that of a cycle.  End of input ends the program.
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

class Contestant {
 public:
  virtual ~Contestant() = default;
  // False if it went wrong; says why on stderr.
  virtual bool cycle() = 0;
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

// A number of /proc/self/status; -1 if it is not there.
inline long status_of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) != 0) continue;
    return std::strtol(line.c_str() + name.size() + 1, nullptr, 10);
  }
  return -1;
}

// Not ru_maxrss, which a process inherits from the one that executed it.
inline long peak_rss_kib() { return status_of_process("VmHWM"); }
inline long threads() { return status_of_process("Threads"); }

class Runs {
 public:
  Runs(Contestant& contestant, Timing timing)
      : contestant_(contestant), timing_(timing) {}

  // The program's exit status.
  int serve() {
    unsigned warmup, cycles;
    while (std::scanf("%u %u", &warmup, &cycles) == 2) {
      if (cycles == 0 || !run(warmup, cycles)) return 1;
    }
    return 0;
  }

 private:
  bool run(unsigned warmup, unsigned cycles) {
    const std::uint64_t before = contestant_.requests();
    for (unsigned i = 0; i < warmup; ++i) {
      if (!contestant_.cycle()) return false;
    }
    cycle_ns_.clear();
    cycle_ns_.reserve(cycles);
    const std::int64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (!measured(cycles)) return false;
    const std::int64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    std::printf("%" PRId64 " %" PRId64 " %" PRIu64 " %ld %ld\n", cpu_ns,
                median(), contestant_.requests() - before, peak_rss_kib(),
                threads());
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
  std::vector<std::int64_t> cycle_ns_;
};

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_CONTESTANT_HPP
