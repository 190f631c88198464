// Measures a lock taken and released beside bare libcurl sending the same
// bytes, locks held beside bare libcurl sending as many renewals, and hosts
// that wait.
//
//   bench DIRECTORY RESULT [TURNS [PART]]
//
// The contestants are programs in DIRECTORY; RESULT is written, a line
// "metric<TAB>value<TAB>unit<TAB>note" each; a limit that the project set
// itself stands in the note.  The same goes as a table to tests/README.md, but
// for a trial with TURNS of its own.  With one PART alone nothing is written.
//
// All run on one core, and so does the server, which never changes its answer.
// Bare libcurl is also measured beside itself: those are the metrics of noise,
// whose ratio would be 1 without noise.  The exit status is 0 if what was
// measured is sound, whatever it says.
#include <curl/curl.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/constant_server.hpp"
#include "tests/bench/contest.hpp"
#include "tests/bench/report.hpp"
#include "tests/bench/turns.hpp"
#include "tests/bench/waiting.hpp"

namespace {

using bench::Arena;
using bench::ConstantServer;
using bench::Contest;
using bench::cpu_of;
using bench::Entrant;
using bench::Figure;
using bench::format;
using bench::p50_of;
using bench::Program;
using bench::record_path;
using bench::Report;
using bench::requests_per_cycle;
using bench::Sample;
using bench::unsound;

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

// --- The cycle: a lock taken and released ----------------------------------

double bytes_per_request(const Sample& sample) {
  return static_cast<double>(sample.server_bytes) /
         static_cast<double>(sample.server_requests);
}

// What one cycle sends.
const std::vector<std::string> kCycle = {"PutItem", "DeleteItem"};

// A file for each action: the last request that was sent, as it stood on the
// wire.
void write_records(const bench::Tally& tally, const std::string& directory,
                   const std::vector<std::string>& actions) {
  std::filesystem::create_directories(directory);
  for (const std::string& action : actions) {
    for (std::size_t i = 0; i < bench::kActionNames.size(); ++i) {
      if (bench::kActionNames[i] != action) continue;
      const bench::Tally::Record& record = tally.records[i];
      if (record.size == 0) unsound("no " + action + " was sent");
      const std::string path = record_path(directory, action);
      std::ofstream file(path, std::ios::binary);
      file.write(record.bytes, static_cast<std::streamsize>(record.size));
      if (!file.flush()) bench::give_up(path.c_str());
    }
  }
}

void report_rss(const std::string& metric, const Entrant& ours,
                const Entrant& bare, Report& report) {
  std::vector<double> extra;
  for (std::size_t i = 0; i < ours.rss_kib.size(); ++i) {
    extra.push_back(ours.rss_kib[i] - bare.rss_kib[i]);
  }
  report.line(metric, bench::figure_of(extra), 0, "KiB",
              format("peak RSS beyond bare libcurl's %.0f KiB, pairs: %zu",
                     bench::figure_of(bare.rss_kib).median, extra.size()));
}

void report_cycle(const Entrant& ours, const Entrant& bare, Report& report) {
  const Figure bytes = ratio_of(ours, bare, bytes_per_request);
  if (bytes.min < 0.99 || bytes.max > 1.01) {
    unsound("the contestants do not send the same amount");
  }
  report.line("mutex_cpu_ratio_vs_libcurl", ratio_of(ours, bare, cpu_of), 3,
              "ratio",
              format("CPU of a lock and unlock, %zu pairs; %.2f us, libcurl "
                     "%.2f us",
                     ours.samples.size(), figure_of(ours, cpu_of).median / 1e3,
                     figure_of(bare, cpu_of).median / 1e3),
              "<= 1.75");
  report.line("mutex_latency_ratio_vs_libcurl", ratio_of(ours, bare, p50_of), 3,
              "ratio",
              format("p50 of a lock and unlock, %zu pairs; %.2f us, libcurl "
                     "%.2f us",
                     ours.samples.size(), figure_of(ours, p50_of).median / 1e3,
                     figure_of(bare, p50_of).median / 1e3),
              "<= 1.6");
  report.line("mutex_requests_per_cycle", figure_of(ours, requests_per_cycle),
              3, "requests", "the server's count and the client's, which agree",
              "2");
  report_rss("mutex_rss_extra_kib", ours, bare, report);
}

// Bare libcurl sends what was recorded of ours.  Its second entrant is not next
// to its first, as ours is to neither.
void hold_cycles(const std::string& directory, unsigned turns, Report& report) {
  ConstantServer server;
  bench::Tally& tally = server.tally();
  const Entrant ours = {"cycle_mutex", {server.url()}};
  tally.recording = true;
  Program(ours.command(directory)).run(1, 1);
  tally.recording = false;
  write_records(tally, directory, kCycle);
  Entrant bare = {"cycle_libcurl", {server.url()}};
  for (const std::string& action : kCycle) {
    bare.arguments.push_back(record_path(directory, action));
  }
  std::vector<Entrant> entrants = {bare, ours, bare};
  const Contest contest{1000, 100, 1000, turns, 3};
  Arena(directory, tally).hold(contest, entrants);
  std::printf("A lock taken and released, %u cycles a run:\n", contest.cycles);
  for (const Entrant& entrant : entrants) {
    print_absolute(entrant);
    check_requests(entrant);
    check_connections(entrant);
  }
  if (tally.malformed != 0) unsound("the server was sent nonsense");
  report_cycle(entrants[1], entrants[2], report);
  report_noise("noise_cpu_ratio", entrants[0], entrants[2], cpu_of,
               "libcurl's CPU", report);
  report_noise("noise_latency_ratio", entrants[0], entrants[2], p50_of,
               "libcurl's p50", report);
}

// --- Many locks held -------------------------------------------------------

constexpr unsigned kHeldRun = 5;  // Seconds; each is renewed in them.
constexpr unsigned kRenewAfterMs = 1000 * kHeldRun;

struct Many {
  unsigned locks;
  unsigned renew_after_ms;
  std::string prefix;  // Of its metrics.

  unsigned renewals_per_second() const { return locks * 1000 / renew_after_ms; }
};

double per_request_of(const Sample& sample) {
  return sample.cpu_ns * static_cast<double>(sample.cycles) /
         static_cast<double>(sample.own_requests);
}

// While requests come: the last one must be whole.
void stop_recording(bench::Tally& tally) {
  tally.recording = false;
  const std::uint64_t requests = tally.requests;
  for (int ms = 0; tally.requests == requests; ++ms) {
    if (ms == bench::kHungAfterMs) unsound("no renewal came any more");
    usleep(1000);
  }
}

void report_held(const Entrant& ours, const Entrant& bare, const Many& many,
                 std::uint64_t connections, Report& report) {
  report.line(
      many.prefix + "cpu_ratio_vs_libcurl",
      ratio_of(ours, bare, per_request_of), 3, "ratio",
      format("CPU of a renewal, %zu pairs at the same time; %.2f us, "
             "libcurl, as many at even intervals, %.2f us",
             ours.samples.size(), figure_of(ours, per_request_of).median / 1e3,
             figure_of(bare, per_request_of).median / 1e3),
      "<= 1.2");
  report.line(many.prefix + "threads",
              figure_of(ours,
                        [](const Sample& sample) {
                          return static_cast<double>(sample.threads - 1);
                        }),
              0, "threads",
              format("beside the caller's; none of %u locks lost, %llu "
                     "connections",
                     many.locks, static_cast<unsigned long long>(connections)),
              "<= 2");
  report_rss(many.prefix + "rss_extra_kib", ours, bare, report);
}

Entrant held_mutex(const Many& many, const ConstantServer& server) {
  return {"held_mutex",
          {server.url(), std::to_string(many.locks),
           std::to_string(many.renew_after_ms)}};
}

Entrant held_libcurl(const std::string& directory, const Many& many,
                     const ConstantServer& server) {
  return {"held_libcurl",
          {server.url(), std::to_string(many.renewals_per_second()),
           record_path(directory, "UpdateItem")}};
}

// Locks are renewed all the time, so all three run at once, each with a server
// of its own.
void hold_many(const std::string& directory, unsigned turns, const Many& many,
               Report& report) {
  std::array<ConstantServer, 3> servers;
  bench::Tally& tally = servers[0].tally();
  std::vector<Entrant> entrants;
  std::vector<std::unique_ptr<Program>> programs;
  const auto enter = [&](const Entrant& entrant) {
    entrants.push_back(entrant);
    programs.push_back(std::make_unique<Program>(entrant.command(directory)));
    programs.back()->run(0, 1);  // Each lock has been renewed.
  };
  tally.recording = true;
  enter(held_mutex(many, servers[0]));
  stop_recording(tally);
  write_records(tally, directory, {"UpdateItem"});
  enter(held_libcurl(directory, many, servers[1]));
  enter(held_libcurl(directory, many, servers[2]));
  for (unsigned turn = 0; turn < turns; ++turn) {
    for (const auto& program : programs) program->start(0, kHeldRun);
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      const Sample sample = programs[i]->finish();
      if (sample.own_requests == 0) unsound("no renewal came any more");
      entrants[i].samples.push_back(sample);
      entrants[i].rss_kib = {static_cast<double>(sample.rss_kib)};
    }
  }
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    check_all_sent([&] { return programs[i]->total(); }, servers[i].tally());
    if (servers[i].tally().malformed != 0) {
      unsound("the server was sent nonsense");
    }
  }
  std::printf("%u locks held, each renewed after %u ms, %u s a run:\n",
              many.locks, many.renew_after_ms, kHeldRun);
  report_held(entrants[0], entrants[1], many, tally.connections, report);
  report_noise("noise_" + many.prefix + "cpu_ratio", entrants[2], entrants[1],
               per_request_of, "libcurl's CPU of a renewal", report);
}

void hold_all_many(const std::string& directory, unsigned turns,
                   Report& report) {
  hold_many(directory, turns, {1000, kRenewAfterMs, "held_"}, report);
  hold_many(directory, turns, {10'000, kRenewAfterMs, "held_10000_"}, report);
}

// --- Where and when --------------------------------------------------------

// What /proc/cpuinfo says first of it; empty if nothing, as on ARM of models.
std::string of_cpu(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) return line.substr(line.find(": ") + 2);
  }
  return {};
}

// Of a build whose folder has two names, as "build/release-g++-c++17".
std::string measured(const std::string& directory) {
  const std::string build = directory.substr(0, directory.find("/tests/"));
  const std::string curl = curl_version();  // "libcurl/7.88.1 OpenSSL/3.0.20 "
  const std::string model = of_cpu("model name");
  const bool has_sha = of_cpu("flags").find("sha_ni") != std::string::npos ||
                       of_cpu("Features").find("sha2") != std::string::npos;
  const time_t now = time(nullptr);
  char date[16];
  tm parts;
  strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &parts));
  double load = 0;
  getloadavg(&load, 1);
  return format(
      "Measured on %s, load %.1f, on one core, %s SHA instructions, of\n%s.\n"
      "Build %s (compiler " __VERSION__ "), %s.",
      date, load, has_sha ? "with" : "without",
      model.empty() ? "a CPU" : model.c_str(),
      build.substr(build.rfind('/') + 1).c_str(),
      curl.substr(0, curl.find(' ', curl.find(' ') + 1)).c_str());
}

struct Part {
  const char* name;
  void (*hold)(const std::string& directory, unsigned turns, Report& report);
};

constexpr Part kParts[] = {{"cycles", hold_cycles},
                           {"many", hold_all_many},
                           {"waits", bench::hold_waits},
                           {"turns", bench::hold_turns}};

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 3 ? std::atoi(argv[3]) : 7;
  if (argc < 3 || argc > 5 || turns < 1) {
    std::fprintf(stderr, "usage: bench DIRECTORY RESULT [TURNS [PART]]\n");
    return 2;
  }
  const std::string directory = argv[1];
  const std::string only = argc > 4 ? argv[4] : "";
  const auto named = [&](const Part& part) {
    return only.empty() || only == part.name;
  };
  if (std::none_of(std::begin(kParts), std::end(kParts), named)) return 2;
  const time_t begun = time(nullptr);
  const std::string where = measured(directory);  // Our own load is none.
  setlinebuf(stdout);        // In its place among what stderr says.
  signal(SIGPIPE, SIG_IGN);  // A contestant that died is told by its report.
  set_environment();
  std::printf("bench of %s on core %d\n", directory.c_str(), pin_to_one_core());
  Report report(argv[2]);
  for (const Part& part : kParts) {
    if (named(part)) part.hold(directory, static_cast<unsigned>(turns), report);
  }
  if (only.empty()) report.write();
  if (argc == 3) report.write_to_page("tests/README.md", where);
  std::printf("%ld s in all\n", static_cast<long>(time(nullptr) - begun));
  return 0;
}
