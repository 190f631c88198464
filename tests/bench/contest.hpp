// Lets contestants run in turn, many times, and keeps what each run cost.
#ifndef DDBMUTEX_TESTS_BENCH_CONTEST_HPP
#define DDBMUTEX_TESTS_BENCH_CONTEST_HPP

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/constant_server.hpp"
#include "tests/bench/contestant.hpp"

namespace bench {

// How long to wait for a contestant.  Not a matter of how fast the machine is:
// only one that hangs takes so long.
constexpr int kHungAfterMs = 10 * 60 * 1000;

// What was measured would be something else than what is said.  No matter of
// how fast the machine is either, nor of how long it stalls.
[[noreturn]] inline void unsound(const std::string& why) {
  std::fprintf(stderr, "bench: not sound: %s\n", why.c_str());
  std::exit(1);
}

// What one run cost; per cycle but for the counts.
struct Sample {
  double cpu_ns = 0;
  double p50_ns = 0;
  std::uint64_t cycles = 0;  // Without those of the warm-up.
  // By the contestant's count: of the cycles,
  std::uint64_t own_requests = 0;
  std::uint64_t warmup_requests = 0;
  std::uint64_t other_requests = 0;   // and before, since the last run.
  std::uint64_t server_requests = 0;  // By the server's count: of all these.
  std::uint64_t server_bytes = 0;
  std::uint64_t server_connections = 0;  // New ones.
  long rss_kib = 0;
  long threads = 0;  // The caller's too.
};

// A contestant's process.
class Program {
 public:
  explicit Program(const std::vector<std::string>& command)
      : name_(command[0]) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
      give_up("pipe2");
    }
    const pid_t starter = getpid();
    pid_ = fork();
    if (pid_ == -1) give_up("fork");
    if (pid_ == 0) {
      // What holds locks might try long to give them back.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != starter) _exit(1);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execute(command);
    }
    close(to[0]);
    close(from[1]);
    orders_ = to[1];
    reports_ = from[0];
  }
  // The end of its input ends it.
  ~Program() {
    close(orders_);
    close(reports_);
    int status = 0;
    if (waitpid(pid_, &status, 0) == pid_ && status == 0) return;
    std::fprintf(stderr, "bench: %s did not end well\n", name_.c_str());
    std::exit(1);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Sample run(unsigned warmup, unsigned cycles) {
    start(warmup, cycles);
    return finish();
  }

  // After the last run; may be asked again: all the requests it has sent.
  std::uint64_t total() {
    dprintf(orders_, "0 0\n");
    std::uint64_t requests = 0;
    if (std::sscanf(line().c_str(), "%" SCNu64, &requests) != 1) no_report();
    return requests;
  }

  // The halves of run(), for several that are to run at the same time.
  void start(unsigned warmup, unsigned cycles) {
    dprintf(orders_, "%u %u\n", warmup, cycles);
    cycles_ = cycles;
  }
  Sample finish() {
    std::int64_t cpu_ns = 0, p50_ns = 0;
    Sample sample;
    if (std::sscanf(line().c_str(),
                    "%" SCNd64 " %" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                    " %ld %ld",
                    &cpu_ns, &p50_ns, &sample.own_requests,
                    &sample.warmup_requests, &sample.other_requests,
                    &sample.rss_kib, &sample.threads) != 7) {
      no_report();
    }
    sample.cpu_ns = static_cast<double>(cpu_ns) / cycles_;
    sample.p50_ns = static_cast<double>(p50_ns);
    sample.cycles = cycles_;
    return sample;
  }

 private:
  [[noreturn]] static void execute(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    signal(SIGPIPE, SIG_DFL);
    execv(arguments[0], arguments.data());
    std::perror(arguments[0]);
    _exit(1);
  }

  [[noreturn]] void no_report() const {
    std::fprintf(stderr, "bench: %s did not report\n", name_.c_str());
    std::exit(1);
  }

  // Empty if none comes.
  std::string line() {
    std::string text;
    for (char c; text.empty() || text.back() != '\n'; text += c) {
      pollfd report = {reports_, POLLIN, 0};
      if (poll(&report, 1, kHungAfterMs) != 1 || read(reports_, &c, 1) != 1) {
        kill(pid_, SIGKILL);
        return {};
      }
    }
    return text;
  }

  const std::string name_;
  pid_t pid_;
  int orders_;
  int reports_;
  unsigned cycles_ = 1;
};

struct Entrant {
  std::string program;
  std::vector<std::string> arguments{};
  std::vector<Sample> samples{};  // One a turn.
  std::vector<double> rss_kib{};  // At the end of each of its processes.

  // `directory` is that of the bench's own programs.
  std::vector<std::string> command(const std::string& directory) const {
    std::vector<std::string> words = {directory + "/" + program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
};

struct Contest {
  unsigned cycles;        // A run has as many,
  unsigned warmup;        // and before them these;
  unsigned first_warmup;  // so many when its process is new.
  unsigned turns;         // Runs of each by one process.
  unsigned processes;     // One after the other: memory lies differently.
};

// After the last run the contestants and the server come to the same count of
// all requests.  At once, unless one is under way: the server counts it before
// it answers.
inline void check_all_sent(const std::function<std::uint64_t()>& own_count,
                           const Tally& tally) {
  constexpr int kTries = 6000;
  std::uint64_t own = 0;
  for (int tries = 0; tries < kTries; ++tries) {
    own = own_count();
    if (own == tally.requests) return;
    usleep(10'000);
  }
  unsound("the contestants count " + std::to_string(own) +
          " requests in all, the server " + std::to_string(tally.requests));
}

class Arena {
 public:
  // `tally` is of the server that the entrants talk to.
  Arena(std::string directory, const Tally& tally)
      : directory_(std::move(directory)), tally_(tally) {}

  // In turn, the order turned round each time, so that none has the better
  // place.
  void hold(const Contest& contest, std::vector<Entrant>& entrants) {
    for (unsigned i = 0; i < contest.processes; ++i) {
      const std::uint64_t before = tally_.requests;
      std::vector<std::unique_ptr<Program>> programs;
      for (Entrant& entrant : entrants) {
        programs.push_back(
            std::make_unique<Program>(entrant.command(directory_)));
        programs.back()->run(contest.first_warmup, 1);
      }
      for (unsigned turn = 0; turn < contest.turns; ++turn) {
        take_turn(contest, turn % 2 == 1, programs, entrants);
      }
      for (Entrant& entrant : entrants) {
        entrant.rss_kib.push_back(
            static_cast<double>(entrant.samples.back().rss_kib));
      }
      check_all_sent(
          [&] {
            std::uint64_t sent = before;
            for (const auto& program : programs) sent += program->total();
            return sent;
          },
          tally_);
    }
  }

 private:
  void take_turn(const Contest& contest, bool backwards,
                 std::vector<std::unique_ptr<Program>>& programs,
                 std::vector<Entrant>& entrants) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const std::size_t at = backwards ? programs.size() - 1 - i : i;
      const std::uint64_t requests = tally_.requests;
      const std::uint64_t bytes = tally_.bytes;
      const std::uint64_t connections = tally_.connections;
      Sample sample = programs[at]->run(contest.warmup, contest.cycles);
      sample.server_requests = tally_.requests - requests;
      sample.server_bytes = tally_.bytes - bytes;
      sample.server_connections = tally_.connections - connections;
      entrants[at].samples.push_back(sample);
    }
  }

  const std::string directory_;
  const Tally& tally_;
};

// --- Figures ---------------------------------------------------------------

struct Figure {
  double median, min, max;
};

inline Figure figure_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1
                            ? values[half]
                            : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

using Measure = std::function<double(const Sample&)>;

inline Figure figure_of(const Entrant& entrant, const Measure& measure) {
  std::vector<double> values;
  for (const Sample& sample : entrant.samples) {
    values.push_back(measure(sample));
  }
  return figure_of(std::move(values));
}

// Turn by turn: what disturbed both runs of a turn cancels out.
inline std::vector<double> ratios_of(const Entrant& a, const Entrant& b,
                                     const Measure& measure) {
  std::vector<double> values;
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    values.push_back(measure(a.samples[i]) / measure(b.samples[i]));
  }
  return values;
}

inline Figure ratio_of(const Entrant& a, const Entrant& b,
                       const Measure& measure) {
  return figure_of(ratios_of(a, b, measure));
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_CONTEST_HPP
