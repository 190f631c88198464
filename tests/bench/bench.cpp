// Measures this library beside what it is made of: a lock taken and released
// beside bare libcurl sending the same bytes, locks held beside bare libcurl
// sending as many renewals, a lock handed on between threads beside std::mutex,
// a signature beside OpenSSL's hashes alone.
//
//   bench DIRECTORY RESULT [TURNS]
//
// The contestants are programs in DIRECTORY; RESULT is written, a line
// "metric<TAB>value<TAB>unit<TAB>note" each; a bar that the project set itself
// stands in the note.  All run on one core, and so does the server, which never
// changes its answer.  Bare libcurl, and OpenSSL, are measured beside
// themselves too, in the same way: the metrics of noise, of which a ratio
// without noise would be 1.  Exit status 0: what was measured is sound,
// whatever it says.
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/constant_server.hpp"
#include "tests/bench/contest.hpp"

namespace {

using bench::Arena;
using bench::ConstantServer;
using bench::Contest;
using bench::Entrant;
using bench::Figure;
using bench::Program;
using bench::Sample;
using bench::unsound;

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

  // An empty bar is none.
  void line(const std::string& metric, const Figure& figure, int digits,
            const std::string& unit, const std::string& note,
            const std::string& bar = {}) {
    const auto text = [digits](double value) {
      return format("%.*f", digits, value);
    };
    const std::string whole = "min " + text(figure.min) + ", max " +
                              text(figure.max) + "; " + note +
                              (bar.empty() ? "" : "; bar " + bar);
    std::printf("  %-30s %10s %-12s %s\n", metric.c_str(),
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
  std::printf("  %-30s CPU %6.2f us [%.2f to %.2f]", entrant.program.c_str(),
              cpu.median / 1e3, cpu.min / 1e3, cpu.max / 1e3);
  if (requests > 0) {
    std::printf(", p50 %6.2f us, %.0f bytes a request", p50.median / 1e3,
                static_cast<double>(last.server_bytes) / requests);
  }
  std::printf(", RSS %.0f KiB\n", bench::figure_of(entrant.rss_kib).median);
}

// What is no part of a run, and charged to none.
void print_apart(const Entrant& entrant, const std::string& name) {
  unsigned long long between = 0;
  for (const Sample& sample : entrant.samples) between += sample.other_requests;
  std::printf("  %-30s %llu requests before the first run, %llu between runs\n",
              name.c_str(),
              static_cast<unsigned long long>(entrant.early_requests), between);
}

// Of one program twice: what a ratio shows where there is no difference.
void report_noise(const std::string& metric, const Entrant& again,
                  const Entrant& first, const bench::Measure& measure,
                  const std::string& what, Report& report) {
  report.line(metric, ratio_of(again, first, measure), 3, "ratio",
              format("%s beside itself, %zu pairs: this machine's noise",
                     what.c_str(), first.samples.size()));
}

// --- The cycle: a lock taken and released ----------------------------------

void check_requests(const Entrant& entrant) {
  for (const Sample& sample : entrant.samples) {
    const std::uint64_t own =
        sample.other_requests + sample.warmup_requests + sample.own_requests;
    if (own == sample.server_requests) continue;
    unsound(format("%s counts %llu requests, the server %llu",
                   entrant.program.c_str(),
                   static_cast<unsigned long long>(own),
                   static_cast<unsigned long long>(sample.server_requests)));
  }
}

// A connection that was idle for long may be replaced, and one of a request
// that was given up is; one in a hundred requests would show in what they cost.
void check_connections(const Entrant& entrant) {
  for (const Sample& sample : entrant.samples) {
    if (sample.server_connections * 100 <= sample.server_requests) continue;
    unsound(entrant.program + " does not keep its connection alive");
  }
}

double requests_per_cycle(const Sample& sample) {
  return static_cast<double>(sample.own_requests) /
         static_cast<double>(sample.cycles);
}

double bytes_per_request(const Sample& sample) {
  return static_cast<double>(sample.server_bytes) /
         static_cast<double>(sample.server_requests);
}

// What one cycle sends.
const std::vector<std::string> kCycle = {"PutItem", "DeleteItem"};

std::string record_path(const std::string& directory,
                        const std::string& action) {
  return directory + "/" + action + ".request";
}

// A file for each action: the last request that was sent, as it stood on the
// wire.
void write_records(const bench::Tally& tally, const std::string& directory,
                   const std::vector<std::string>& actions) {
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

// A way to take a lock: what its metrics begin with, and the bar for its CPU.
struct Way {
  std::string prefix;
  std::string cpu_bar;
};

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

void report_cycle(const Entrant& ours, const Entrant& bare, const Way& way,
                  Report& report) {
  const Figure bytes = ratio_of(ours, bare, bytes_per_request);
  if (bytes.min < 0.99 || bytes.max > 1.01) {
    unsound("the contestants do not send the same amount");
  }
  report.line(way.prefix + "cpu_ratio_vs_libcurl", ratio_of(ours, bare, cpu_of),
              3, "ratio",
              format("CPU of a lock and unlock, %zu pairs; %.2f us, libcurl "
                     "%.2f us",
                     ours.samples.size(), figure_of(ours, cpu_of).median / 1e3,
                     figure_of(bare, cpu_of).median / 1e3),
              way.cpu_bar);
  report.line(way.prefix + "latency_ratio_vs_libcurl",
              ratio_of(ours, bare, p50_of), 3, "ratio",
              format("p50 of a lock and unlock, %zu pairs; %.2f us, libcurl "
                     "%.2f us",
                     ours.samples.size(), figure_of(ours, p50_of).median / 1e3,
                     figure_of(bare, p50_of).median / 1e3));
  report.line(way.prefix + "requests_per_cycle",
              figure_of(ours, requests_per_cycle), 3, "requests",
              "the server's count and the client's, which agree", "2");
  report_rss(way.prefix + "rss_extra_kib", ours, bare, report);
}

// The first is the one whose requests bare libcurl sends.  Libcurl's second
// entrant is not next to its first, as ours are not both.
std::vector<Entrant> cycle_entrants(const std::string& directory,
                                    const std::string& url) {
  Entrant bare = {"cycle_libcurl", {url}};
  for (const std::string& action : kCycle) {
    bare.arguments.push_back(record_path(directory, action));
  }
  return {{"cycle_driver", {url}}, bare, {"cycle_mutex", {url}}, bare};
}

void hold_cycles(const std::string& directory, unsigned turns, Report& report) {
  ConstantServer server;
  bench::Tally& tally = server.tally();
  std::vector<Entrant> entrants = cycle_entrants(directory, server.url());
  Contest contest{1000, 100, 1000, turns, 3, {}};
  contest.when_first_is_warm = [&] {
    write_records(tally, directory, kCycle);
    tally.recording = false;
  };
  tally.recording = true;
  Arena(directory, &tally).hold(contest, entrants);
  std::printf("A lock taken and released, %u cycles a run:\n", contest.cycles);
  for (const Entrant& entrant : entrants) print_absolute(entrant);
  print_apart(entrants[2], "cycle_mutex");
  if (tally.malformed != 0) unsound("the server was sent nonsense");
  for (const Entrant& entrant : entrants) {
    check_requests(entrant);
    check_connections(entrant);
  }
  const Entrant &again = entrants[1], &bare = entrants[3];
  report_cycle(entrants[0], bare, {"", "<= 1.25"}, report);
  report_cycle(entrants[2], bare, {"mutex_", "<= 1.3"}, report);
  report_noise("noise_cpu_ratio", again, bare, cpu_of, "libcurl's CPU", report);
  report_noise("noise_latency_ratio", again, bare, p50_of, "libcurl's p50",
               report);
}

// --- Many locks held -------------------------------------------------------

constexpr unsigned kHeld = 1000;
constexpr unsigned kRenewAfter = 5;  // Seconds; each once in a run.
constexpr unsigned kHeldRun = kRenewAfter;
constexpr unsigned kRenewalsPerSecond = kHeld / kRenewAfter;

double per_request_of(const Sample& sample) {
  return sample.cpu_ns * static_cast<double>(sample.cycles) /
         static_cast<double>(sample.own_requests);
}

// Of the requests from number `from` on, how many came in the busiest 100 ms
// beside how many did on average.
double busiest_of(const bench::Tally& tally, std::uint64_t from,
                  std::uint64_t to) {
  constexpr std::int64_t kSpan = 100'000'000;
  const auto at = [&](std::uint64_t n) {
    return tally.arrivals[n % bench::Tally::kArrivals].ns.load();
  };
  std::uint64_t most = 0;
  for (std::uint64_t first = from, last = from; last < to; ++last) {
    while (at(last) - at(first) >= kSpan) ++first;
    most = std::max(most, last - first + 1);
  }
  const double spans =
      static_cast<double>(at(to - 1) - at(from)) / static_cast<double>(kSpan);
  return static_cast<double>(most) * spans / static_cast<double>(to - from);
}

// One of those who renew at the same time, each with a server of its own.
class Renewer {
 public:
  Renewer(const std::string& directory, Entrant entrant, ConstantServer& server)
      : entrant_(std::move(entrant)),
        program_(entrant_.command(directory)),
        tally_(server.tally()) {}

  void warm_up() {
    entrant_.early_requests = program_.run(0, 1).other_requests;
  }
  void start() {
    requests_ = tally_.requests;
    program_.start(0, kHeldRun);
  }
  // False if so little came of it that it says nothing.
  bool finish() {
    sample_ = program_.finish();
    requests_end_ = tally_.requests;
    constexpr std::uint64_t kFew = kRenewalsPerSecond * kHeldRun / 10;
    return sample_.own_requests >= kFew && requests_end_ - requests_ >= kFew;
  }
  // That of a run which says something.
  void keep() {
    // The last ones are as good, and remembered for sure.
    const std::uint64_t to = requests_end_;
    const std::uint64_t from =
        std::max(requests_, to - std::min(to, bench::Tally::kArrivals / 2));
    const auto bytes_by = [&](std::uint64_t n) {
      return tally_.arrivals[n % bench::Tally::kArrivals].bytes.load();
    };
    sample_.server_requests = to - 1 - from;
    sample_.server_bytes = bytes_by(to - 1) - bytes_by(from);
    busiest_.push_back(busiest_of(tally_, from, to));
    entrant_.samples.push_back(sample_);
    entrant_.rss_kib = {static_cast<double>(sample_.rss_kib)};
  }
  void end() {
    check_all_sent([this] { return program_.total(); }, tally_);
  }

  const Entrant& entrant() const { return entrant_; }
  Figure busiest() const { return bench::figure_of(busiest_); }

 private:
  Entrant entrant_;
  Program program_;
  const bench::Tally& tally_;
  Sample sample_;
  std::uint64_t requests_ = 0;
  std::uint64_t requests_end_ = 0;
  std::vector<double> busiest_;
};

// Runs at the same time, and again if the machine stalled so long that next to
// no renewals came in one.
void take_turn(const std::vector<Renewer*>& renewers) {
  constexpr int kTries = 10;
  for (int tries = 0; tries < kTries; ++tries) {
    for (Renewer* renewer : renewers) renewer->start();
    bool good = true;
    for (Renewer* renewer : renewers) good = renewer->finish() && good;
    if (!good) continue;
    for (Renewer* renewer : renewers) renewer->keep();
    return;
  }
  unsound("the renewals do not come");
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

void report_held(const Renewer& ours, const Renewer& bare,
                 std::uint64_t connections, Report& report) {
  const Entrant& our = ours.entrant();
  const Figure bytes = ratio_of(our, bare.entrant(), bytes_per_request);
  if (bytes.min < 0.99 || bytes.max > 1.01) {
    unsound("the renewals are not of the same size");
  }
  report.line(
      "held_cpu_ratio_vs_libcurl",
      ratio_of(our, bare.entrant(), per_request_of), 3, "ratio",
      format("CPU of a renewal, %zu pairs at the same time; %.2f us, "
             "libcurl, as many at even intervals, %.2f us",
             our.samples.size(), figure_of(our, per_request_of).median / 1e3,
             figure_of(bare.entrant(), per_request_of).median / 1e3));
  report.line("held_threads",
              figure_of(our,
                        [](const Sample& sample) {
                          return static_cast<double>(sample.threads - 1);
                        }),
              0, "threads",
              format("beside the caller's; none of %u locks lost, %llu "
                     "connections",
                     kHeld, static_cast<unsigned long long>(connections)),
              "<= 2");
  report_rss("held_rss_extra_kib", our, bare.entrant(), report);
  report.line("held_busiest_100ms", ours.busiest(), 2, "ratio",
              format("renewals in the busiest 100 ms beside the mean of 100 ms "
                     "(%.0f would be all at once)",
                     10.0 * kHeld / kRenewalsPerSecond));
}

Entrant held_mutex(const ConstantServer& server) {
  return {"held_mutex",
          {server.url(), std::to_string(kHeld), std::to_string(kRenewAfter)}};
}

Entrant held_libcurl(const std::string& directory,
                     const ConstantServer& server) {
  return {"held_libcurl",
          {server.url(), std::to_string(kRenewalsPerSecond),
           record_path(directory, "UpdateItem")}};
}

void hold_many(const std::string& directory, unsigned turns, Report& report) {
  ConstantServer server, bare_server, again_server;
  server.tally().recording = true;
  Renewer ours(directory, held_mutex(server), server);
  ours.warm_up();  // Each lock has been renewed.
  stop_recording(server.tally());
  write_records(server.tally(), directory, {"UpdateItem"});
  Renewer bare(directory, held_libcurl(directory, bare_server), bare_server);
  Renewer again(directory, held_libcurl(directory, again_server), again_server);
  bare.warm_up();
  again.warm_up();
  for (unsigned turn = 0; turn < turns; ++turn) {
    take_turn({&ours, &bare, &again});
  }
  for (Renewer* renewer : {&ours, &bare, &again}) renewer->end();
  for (ConstantServer* each : {&server, &bare_server, &again_server}) {
    if (each->tally().malformed != 0) unsound("the server was sent nonsense");
  }
  std::printf("%u locks held, each renewed after %u s, %u s a run:\n", kHeld,
              kRenewAfter, kHeldRun);
  print_apart(ours.entrant(), "held_mutex");
  report_held(ours, bare, server.tally().connections, report);
  report_noise("noise_held_cpu_ratio", again.entrant(), bare.entrant(),
               per_request_of, "libcurl's CPU of a renewal", report);
}

// --- What costs no request -------------------------------------------------

void check_part(const Entrant& entrant) {
  check_requests(entrant);
  for (const Sample& sample : entrant.samples) {
    if (sample.own_requests != 0 || sample.warmup_requests != 0) {
      unsound("something was sent to make a mutex or to look at it");
    }
    if (sample.server_connections != 0) {
      unsound("a mutex that was made has a connection");
    }
    if (sample.threads > 3) unsound("a mutex that was made has a thread");
  }
}

void hold_parts(const std::string& directory, unsigned turns, Report& report) {
  ConstantServer server;
  std::vector<Entrant> entrants = {
      {"mutex_parts", {server.url(), "make"}},
      {"mutex_parts", {server.url(), "owns"}},
  };
  const Contest contest{200'000, 5'000, 20'000, turns, 3, {}};
  Arena(directory, &server.tally()).hold(contest, entrants);
  for (const Entrant& entrant : entrants) check_part(entrant);
  std::printf("On a Table that holds 1,000 locks, %u a run:\n", contest.cycles);
  for (const Entrant& entrant : entrants) {
    print_apart(entrant, "mutex_parts " + entrant.arguments.back());
  }
  report.line("make_mutex_ns", figure_of(entrants[0], cpu_of), 0, "ns",
              "CPU of a DdbMutex made and destroyed; no request, thread or "
              "connection",
              "< 1000");
  report.line("owns_lock_ns", figure_of(entrants[1], cpu_of), 1, "ns",
              "CPU of owns_lock() of a held one");
}

// --- From thread to thread -------------------------------------------------

// Who comes for the lock too late for the one that lets go finds it released.
void check_handed_over(const Entrant& entrant) {
  check_requests(entrant);
  for (const Sample& sample : entrant.samples) {
    if (sample.own_requests <= sample.cycles) continue;
    unsound("locks are released that could be handed over");
  }
}

void hold_handovers(const std::string& directory, unsigned turns,
                    Report& report) {
  for (const char* threads : {"2", "8"}) {
    ConstantServer server;
    std::vector<Entrant> entrants = {
        {"handover", {"mutex", threads, server.url()}},
        {"handover", {"std", threads}},
        {"handover", {"std", threads}},
    };
    const Contest contest{100, 20, 20, turns, 3, {}};
    Arena(directory, &server.tally()).hold(contest, entrants);
    check_handed_over(entrants[0]);
    std::printf("A lock handed on among %s threads, %u rounds a run:\n",
                threads, contest.cycles);
    const std::string prefix = format("handover_%s_", threads);
    for (const auto& [name, measure] :
         {std::make_pair("cpu", cpu_of), std::make_pair("latency", p50_of)}) {
      report.line(prefix + name + "_ratio_vs_std",
                  ratio_of(entrants[0], entrants[1], measure), 3, "ratio",
                  format("of a round, %zu pairs; %.1f us, std::mutex %.1f us",
                         entrants[0].samples.size(),
                         figure_of(entrants[0], measure).median / 1e3,
                         figure_of(entrants[1], measure).median / 1e3),
                  "<= 1.5");
      report_noise(prefix + name + "_noise", entrants[2], entrants[1], measure,
                   "std::mutex", report);
    }
  }
}

// --- The signature ---------------------------------------------------------

void hold_signatures(const std::string& directory, unsigned turns,
                     Report& report) {
  std::vector<Entrant> entrants = {
      {"sign_ddbmutex", {}},
      {"sign_openssl", {}},
      {"sign_openssl", {}},
  };
  const Contest contest{20'000, 1'000, 5'000, turns, 3, {}};
  Arena(directory, nullptr).hold(contest, entrants);
  std::printf("A signature over 366 bytes, %u a run:\n", contest.cycles);
  for (const Entrant& entrant : entrants) print_absolute(entrant);
  report.line("signatures_per_s", figure_of(entrants[0], rate_of), 0, "1/s",
              "of CPU time on one core; a body of 366 bytes, hashed too",
              ">= 500000");
  report.line("sign_ratio_vs_openssl",
              ratio_of(entrants[0], entrants[1], rate_of), 3, "ratio",
              format("rate beside that of the same hashes alone, %.0f/s, %zu "
                     "pairs",
                     figure_of(entrants[1], rate_of).median,
                     entrants[0].samples.size()),
              ">= 0.6");
  report_noise("noise_sign_ratio", entrants[2], entrants[1], rate_of,
               "the rate of the hashes", report);
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
  const time_t begun = time(nullptr);
  setlinebuf(stdout);        // In its place among what stderr says.
  signal(SIGPIPE, SIG_IGN);  // A contestant that died is told by its report.
  set_environment();
  std::printf("bench of %s on core %d\n", directory.c_str(), pin_to_one_core());
  Report report(argv[2]);
  hold_cycles(directory, static_cast<unsigned>(turns), report);
  hold_parts(directory, static_cast<unsigned>(turns), report);
  hold_handovers(directory, static_cast<unsigned>(turns), report);
  hold_signatures(directory, static_cast<unsigned>(turns), report);
  hold_many(directory, static_cast<unsigned>(turns), report);
  report.write();
  std::printf("%ld s in all\n", static_cast<long>(time(nullptr) - begun));
  return 0;
}
