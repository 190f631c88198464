// Measures this library beside what it is made of: a lock taken and released
// beside bare libcurl sending the same bytes, a signature beside OpenSSL's
// hashes alone.
//
//   bench DIRECTORY RESULT [TURNS]
//
// The contestants are programs in DIRECTORY; RESULT is written, a line
// "metric<TAB>value<TAB>unit<TAB>note" each.  All run on one core, and so does
// the server, which never changes its answer.  Exit status 0: what was measured
// is sound, whatever it says.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/constant_server.hpp"
#include "tests/bench/contest.hpp"

namespace {

using bench::Arena;
using bench::ConstantServer;
using bench::Contest;
using bench::Entrant;
using bench::Figure;
using bench::Sample;

[[noreturn]] void unsound(const std::string& why) {
  std::fprintf(stderr, "bench: not sound: %s\n", why.c_str());
  std::exit(1);
}

[[gnu::format(printf, 1, 2)]] std::string format(const char* form, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

double cpu_of(const Sample& sample) { return sample.cpu_ns; }
double p50_of(const Sample& sample) { return sample.p50_ns; }
double rate_of(const Sample& sample) { return 1e9 / sample.cpu_ns; }

// The contestants inherit it.  Of the cores we may use the last: the first
// often serves the interrupts.
int pin_to_one_core() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) {
    bench::give_up("sched_getaffinity");
  }
  int core = CPU_SETSIZE - 1;
  while (core > 0 && !CPU_ISSET(core, &cores)) --core;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
    bench::give_up("sched_setaffinity");
  }
  return core;
}

// Example keys, and no proxy on the way to the loopback.
void set_environment() {
  setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
         1);
  for (const char* name : {"AWS_SESSION_TOKEN", "http_proxy", "all_proxy",
                           "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
    unsetenv(name);
  }
}

class Report {
 public:
  explicit Report(std::string path) : path_(std::move(path)) {}

  void line(const std::string& metric, const Figure& figure, int digits,
            const std::string& unit, const std::string& note) {
    const auto text = [digits](double value) {
      return format("%.*f", digits, value);
    };
    const std::string whole =
        "min " + text(figure.min) + ", max " + text(figure.max) + "; " + note;
    std::printf("  %-26s %10s %-12s %s\n", metric.c_str(),
                text(figure.median).c_str(), unit.c_str(), whole.c_str());
    lines_ +=
        metric + "\t" + text(figure.median) + "\t" + unit + "\t" + whole + "\n";
  }

  // Only now: half a result would pass for a whole one.
  void write() const {
    const std::string draft = path_ + ".new";
    std::ofstream file(draft);
    file << lines_;
    file.close();
    if (!file || std::rename(draft.c_str(), path_.c_str()) != 0) {
      bench::give_up(path_.c_str());
    }
  }

 private:
  const std::string path_;
  std::string lines_;
};

void print_absolute(const Entrant& entrant) {
  const Figure cpu = figure_of(entrant, cpu_of);
  const Figure p50 = figure_of(entrant, p50_of);
  const Sample& last = entrant.samples.back();
  const double requests = static_cast<double>(last.server_requests);
  std::printf("  %-16s CPU %6.2f us [%.2f to %.2f]", entrant.program.c_str(),
              cpu.median / 1e3, cpu.min / 1e3, cpu.max / 1e3);
  if (requests > 0) {
    std::printf(", p50 %6.2f us, %.0f bytes a request", p50.median / 1e3,
                static_cast<double>(last.server_bytes) / requests);
  }
  std::printf(", RSS %.0f KiB\n", bench::figure_of(entrant.rss_kib).median);
}

// --- The cycle: a lock taken and released ----------------------------------

void check_requests(const Entrant& entrant) {
  for (const Sample& sample : entrant.samples) {
    if (sample.own_requests == sample.server_requests) continue;
    unsound(format("%s counts %llu requests, the server %llu",
                   entrant.program.c_str(),
                   static_cast<unsigned long long>(sample.own_requests),
                   static_cast<unsigned long long>(sample.server_requests)));
  }
}

double requests_per_cycle(const Sample& sample) {
  return static_cast<double>(sample.server_requests) /
         static_cast<double>(sample.cycles);
}

double bytes_per_cycle(const Sample& sample) {
  return static_cast<double>(sample.server_bytes) /
         static_cast<double>(sample.cycles);
}

// What one cycle sends.
constexpr const char* kCycle[] = {"PutItem", "DeleteItem"};

std::string record_path(const std::string& directory, const char* action) {
  return directory + "/" + action + ".request";
}

// A file for each request of a cycle: the last that was sent, as it stood on
// the wire.
void write_records(const bench::Tally& tally, const std::string& directory) {
  for (const char* action : kCycle) {
    for (std::size_t i = 0; i < bench::kActionNames.size(); ++i) {
      if (bench::kActionNames[i] != action) continue;
      const bench::Tally::Record& record = tally.records[i];
      if (record.size == 0) unsound(std::string("no ") + action + " was sent");
      const std::string path = record_path(directory, action);
      std::ofstream file(path, std::ios::binary);
      file.write(record.bytes, static_cast<std::streamsize>(record.size));
      if (!file.flush()) bench::give_up(path.c_str());
    }
  }
}

// `prefix` tells the metrics of one way to take a lock from another's.
void report_cycle(const Entrant& ours, const Entrant& bare,
                  const std::string& prefix, Report& report) {
  check_requests(ours);
  check_requests(bare);
  const Figure bytes = ratio_of(ours, bare, bytes_per_cycle);
  if (bytes.min < 0.99 || bytes.max > 1.01) {
    unsound("the contestants do not send the same amount");
  }
  report.line(prefix + "cpu_ratio_vs_libcurl", ratio_of(ours, bare, cpu_of), 3,
              "ratio",
              format("CPU of a lock and unlock, %zu pairs; %.2f us, libcurl "
                     "%.2f us",
                     ours.samples.size(), figure_of(ours, cpu_of).median / 1e3,
                     figure_of(bare, cpu_of).median / 1e3));
  report.line(prefix + "latency_ratio_vs_libcurl", ratio_of(ours, bare, p50_of),
              3, "ratio",
              format("p50 of a lock and unlock, %zu pairs; %.2f us, libcurl "
                     "%.2f us",
                     ours.samples.size(), figure_of(ours, p50_of).median / 1e3,
                     figure_of(bare, p50_of).median / 1e3));
  report.line(prefix + "requests_per_cycle",
              figure_of(ours, requests_per_cycle), 3, "requests",
              "the server's count and the client's, which agree");
  std::vector<double> extra;
  for (std::size_t i = 0; i < ours.rss_kib.size(); ++i) {
    extra.push_back(ours.rss_kib[i] - bare.rss_kib[i]);
  }
  report.line(prefix + "rss_extra_kib", bench::figure_of(extra), 0, "KiB",
              format("peak RSS beyond bare libcurl's %.0f KiB, %zu processes",
                     bench::figure_of(bare.rss_kib).median, extra.size()));
}

std::vector<Entrant> cycle_entrants(const std::string& directory,
                                    const std::string& url) {
  Entrant bare = {"cycle_libcurl", {url}, {}, {}};
  for (const char* action : kCycle) {
    bare.arguments.push_back(record_path(directory, action));
  }
  return {{"cycle_ddbmutex", {url}, {}, {}}, bare};
}

void hold_cycles(const std::string& directory, unsigned turns, Report& report) {
  ConstantServer server;
  bench::Tally& tally = server.tally();
  std::vector<Entrant> entrants = cycle_entrants(directory, server.url());
  Contest contest{4000, 300, 1000, turns, 3, {}};
  contest.when_first_is_warm = [&] {
    write_records(tally, directory);
    tally.recording = false;
  };
  tally.recording = true;
  Arena(directory, &tally).hold(contest, entrants);
  std::printf("A lock taken and released, %u cycles a run:\n", contest.cycles);
  for (const Entrant& entrant : entrants) print_absolute(entrant);
  if (tally.malformed != 0) unsound("the server was sent nonsense");
  const std::uint64_t processes = entrants.size() * contest.processes;
  if (tally.connections != processes) {
    unsound("not one kept-alive connection for each process");
  }
  report_cycle(entrants[0], entrants[1], "", report);
}

// --- The signature ---------------------------------------------------------

void hold_signatures(const std::string& directory, unsigned turns,
                     Report& report) {
  std::vector<Entrant> entrants = {
      {"sign_ddbmutex", {}, {}, {}},
      {"sign_openssl", {}, {}, {}},
  };
  const Contest contest{100'000, 5'000, 20'000, turns, 3, {}};
  Arena(directory, nullptr).hold(contest, entrants);
  std::printf("A signature over 366 bytes, %u a run:\n", contest.cycles);
  for (const Entrant& entrant : entrants) print_absolute(entrant);
  report.line("signatures_per_s", figure_of(entrants[0], rate_of), 0, "1/s",
              "of CPU time on one core; a body of 366 bytes, hashed too");
  report.line("sign_ratio_vs_openssl",
              ratio_of(entrants[0], entrants[1], rate_of), 3, "ratio",
              format("rate beside that of the same hashes alone, %.0f/s, %zu "
                     "pairs",
                     figure_of(entrants[1], rate_of).median,
                     entrants[0].samples.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: bench DIRECTORY RESULT [TURNS]\n");
    return 2;
  }
  const std::string directory = argv[1];
  const int turns = argc > 3 ? std::atoi(argv[3]) : 7;
  if (turns < 1) return 2;
  setlinebuf(stdout);        // In its place among what stderr says.
  signal(SIGPIPE, SIG_IGN);  // A contestant that died is told by its report.
  set_environment();
  std::printf("bench of %s on core %d\n", directory.c_str(), pin_to_one_core());
  Report report(argv[2]);
  hold_cycles(directory, static_cast<unsigned>(turns), report);
  hold_signatures(directory, static_cast<unsigned>(turns), report);
  report.write();
  return 0;
}
