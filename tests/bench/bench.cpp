// Measures this library beside what it is made of: a lock taken and released
// beside bare libcurl sending the same bytes, locks held beside bare libcurl
// sending as many renewals, a lock handed on between threads beside std::mutex,
// a signature beside OpenSSL's hashes alone; and a lock taken and released
// beside what else does that.
//
//   bench DIRECTORY RESULT [TURNS [PART]]
//
// The contestants are programs in DIRECTORY; RESULT is written, a line
// "metric<TAB>value<TAB>unit<TAB>note" each; a bar that the project set itself
// stands in the note.  The same goes as a table to tests/README.md, but for a
// trial, with TURNS of its own, and if a rival is missing.  With one PART alone
// nothing is written.
//
// All run on one core, and so does the server, which never changes its answer.
// Bare libcurl, and OpenSSL, are measured beside themselves too, in the same
// way: the metrics of noise, of which a ratio without noise would be 1.  Exit
// status 0: what was measured is sound, whatever it says.
#include <curl/curl.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/constant_server.hpp"
#include "tests/bench/contest.hpp"
#include "tests/bench/report.hpp"
#include "tests/bench/rivals.hpp"
#include "tests/bench/tls.hpp"
#include "tests/bench/waiting.hpp"
#include "tests/support/engine.hpp"

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
using bench::rate_of;
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

void report_cost(const Entrant& ours, const Entrant& bare, const Way& way,
                 Report& report) {
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
}

void report_cycle(const Entrant& ours, const Entrant& bare, const Way& way,
                  Report& report) {
  const Figure bytes = ratio_of(ours, bare, bytes_per_request);
  if (bytes.min < 0.99 || bytes.max > 1.01) {
    unsound("the contestants do not send the same amount");
  }
  report_cost(ours, bare, way, report);
  report.line(way.prefix + "requests_per_cycle",
              figure_of(ours, requests_per_cycle), 3, "requests",
              "the server's count and the client's, which agree", "2");
  report_rss(way.prefix + "rss_extra_kib", ours, bare, report);
}

Entrant bare_entrant(const std::string& directory, const std::string& url,
                     const char* program,
                     const std::vector<std::string>& actions) {
  Entrant bare = {program, {url}};
  for (const std::string& action : actions) {
    bare.arguments.push_back(record_path(directory, action));
  }
  return bare;
}

void run_cycles(const std::string& directory, const Contest& contest,
                const char* how, const bench::Tally& tally,
                std::vector<Entrant>& entrants) {
  Arena(directory, &tally).hold(contest, entrants);
  std::printf("A lock taken and released%s, %u cycles a run:\n", how,
              contest.cycles);
  for (const Entrant& entrant : entrants) {
    print_absolute(entrant);
    check_requests(entrant);
    check_connections(entrant);
  }
  if (tally.malformed != 0) unsound("the server was sent nonsense");
}

void report_cycle_noise(const std::string& prefix, const Entrant& again,
                        const Entrant& bare, Report& report) {
  report_noise(prefix + "cpu_ratio", again, bare, cpu_of, "libcurl's CPU",
               report);
  report_noise(prefix + "latency_ratio", again, bare, p50_of, "libcurl's p50",
               report);
}

// The first entrant is the one whose requests bare libcurl sends.  Libcurl's
// second is not next to its first, as ours are not both.
void hold_cycles(const std::string& directory, unsigned turns, Report& report) {
  ConstantServer server;
  bench::Tally& tally = server.tally();
  const Entrant bare =
      bare_entrant(directory, server.url(), "cycle_libcurl", kCycle);
  std::vector<Entrant> entrants = {{"cycle_driver", {server.url()}},
                                   bare,
                                   {"cycle_mutex", {server.url()}},
                                   bare};
  Contest contest{1000, 100, 1000, turns, 3, {}};
  contest.when_first_is_warm = [&] {
    write_records(tally, directory, kCycle);
    tally.recording = false;
  };
  tally.recording = true;
  run_cycles(directory, contest, "", tally, entrants);
  print_apart(entrants[2], "cycle_mutex");
  report_cycle(entrants[0], entrants[3], {"", ""}, report);
  report_cycle(entrants[2], entrants[3], {"mutex_", "<= 1.25"}, report);
  report_cycle_noise("noise_", entrants[1], entrants[3], report);
}

// After the cycles without it: libcurl sends what was sent there.
void hold_tls_cycles(const std::string& directory, unsigned turns,
                     Report& report) {
  ConstantServer server(bench::tls_of(bench::certificate_in(directory)));
  const Entrant bare =
      bare_entrant(directory, server.url(), "cycle_libcurl", kCycle);
  std::vector<Entrant> entrants = {bare, {"cycle_mutex", {server.url()}}, bare};
  const Contest contest{1000, 100, 1000, turns, 3, {}};
  run_cycles(directory, contest, " over TLS", server.tally(), entrants);
  report_cycle(entrants[1], entrants[2], {"tls_mutex_", ""}, report);
  report_cycle_noise("noise_tls_", entrants[0], entrants[2], report);
  unsetenv("AWS_CA_BUNDLE");
}

// With an engine that does what DynamoDB does, and counts nothing.
void hold_engine_cycles(const std::string& directory, unsigned turns,
                        Report& report) {
  tests::Engine engine(tests::any_engine_kind());
  engine.must_call(
      "CreateTable",
      R"({"TableName":"locks","BillingMode":"PAY_PER_REQUEST",)"
      R"("AttributeDefinitions":[{"AttributeName":"name","AttributeType":"S"}],)"
      R"("KeySchema":[{"AttributeName":"name","KeyType":"HASH"}]})");
  const Entrant bare =
      bare_entrant(directory, engine.url(), "cycle_libcurl", kCycle);
  std::vector<Entrant> entrants = {bare, {"cycle_mutex", {engine.url()}}, bare};
  const Contest contest{300, 30, 300, turns, 3, {}};
  Arena(directory, nullptr).hold(contest, entrants);
  std::printf("A lock taken and released in an engine, %u cycles a run:\n",
              contest.cycles);
  report_cost(entrants[1], entrants[2], {"engine_mutex_", ""}, report);
  report_cycle_noise("noise_engine_", entrants[0], entrants[2], report);
}

// --- Many locks held -------------------------------------------------------

constexpr unsigned kHeldRun = 5;  // Seconds; each is renewed in them.
constexpr unsigned kRenewAfterMs = 1000 * kHeldRun;

struct Many {
  unsigned locks;
  unsigned renew_after_ms;
  std::string prefix;  // Of its metrics.

  unsigned renewals_per_second() const { return locks * 1000 / renew_after_ms; }
  // So many that there is an average, and a bar for it.
  bool crowd() const { return locks >= 1000; }
};

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
  Renewer(const std::string& directory, Entrant entrant, const Many& many,
          ConstantServer& server)
      : entrant_(std::move(entrant)),
        program_(entrant_.command(directory)),
        few_(many.renewals_per_second() * kHeldRun / 10),
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
    return sample_.own_requests >= few_ && requests_end_ - requests_ >= few_;
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
  const std::uint64_t few_;
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

void report_held(const Renewer& ours, const Renewer& bare, const Many& many,
                 std::uint64_t connections, Report& report) {
  const Entrant& our = ours.entrant();
  const Figure bytes = ratio_of(our, bare.entrant(), bytes_per_request);
  if (bytes.min < 0.99 || bytes.max > 1.01) {
    unsound("the renewals are not of the same size");
  }
  report.line(
      many.prefix + "cpu_ratio_vs_libcurl",
      ratio_of(our, bare.entrant(), per_request_of), 3, "ratio",
      format("CPU of a renewal, %zu pairs at the same time; %.2f us, "
             "libcurl, as many at even intervals, %.2f us",
             our.samples.size(), figure_of(our, per_request_of).median / 1e3,
             figure_of(bare.entrant(), per_request_of).median / 1e3),
      many.crowd() ? "<= 1.2" : "");
  report.line(many.prefix + "threads",
              figure_of(our,
                        [](const Sample& sample) {
                          return static_cast<double>(sample.threads - 1);
                        }),
              0, "threads",
              format("beside the caller's; none of %u locks lost, %llu "
                     "connections",
                     many.locks, static_cast<unsigned long long>(connections)),
              "<= 2");
  report_rss(many.prefix + "rss_extra_kib", our, bare.entrant(), report);
  if (!many.crowd()) return;
  report.line(many.prefix + "busiest_100ms", ours.busiest(), 2, "ratio",
              format("renewals in the busiest 100 ms beside the mean of 100 ms "
                     "(%.0f would be all at once)",
                     many.renew_after_ms / 100.0),
              "<= 3");
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

// Gives how many times a renewal costs what bare libcurl's request does, turn
// by turn.
std::vector<double> hold_many(const std::string& directory, unsigned turns,
                              const Many& many, Report& report) {
  ConstantServer server, bare_server, again_server;
  server.tally().recording = true;
  Renewer ours(directory, held_mutex(many, server), many, server);
  ours.warm_up();  // Each lock has been renewed.
  stop_recording(server.tally());
  write_records(server.tally(), directory, {"UpdateItem"});
  Renewer bare(directory, held_libcurl(directory, many, bare_server), many,
               bare_server);
  Renewer again(directory, held_libcurl(directory, many, again_server), many,
                again_server);
  bare.warm_up();
  again.warm_up();
  for (unsigned turn = 0; turn < turns; ++turn) {
    take_turn({&ours, &bare, &again});
  }
  for (Renewer* renewer : {&ours, &bare, &again}) renewer->end();
  for (ConstantServer* each : {&server, &bare_server, &again_server}) {
    if (each->tally().malformed != 0) unsound("the server was sent nonsense");
  }
  std::printf("%u locks held, each renewed after %u ms, %u s a run:\n",
              many.locks, many.renew_after_ms, kHeldRun);
  print_apart(ours.entrant(), "held_mutex");
  report_held(ours, bare, many, server.tally().connections, report);
  report_noise("noise_" + many.prefix + "cpu_ratio", again.entrant(),
               bare.entrant(), per_request_of, "libcurl's CPU of a renewal",
               report);
  return bench::ratios_of(ours.entrant(), bare.entrant(), per_request_of);
}

void hold_all_many(const std::string& directory, unsigned turns,
                   Report& report) {
  hold_many(directory, turns, {10, kRenewAfterMs, "held_10_"}, report);
  hold_many(directory, turns, {1000, kRenewAfterMs, "held_"}, report);
  // As many renewals a second as the ten thousand need: a CPU that sleeps less
  // between them is faster, and nothing but the number of locks is to differ.
  const auto few = hold_many(directory, turns,
                             {1000, kRenewAfterMs / 10, "held_often_"}, report);
  auto beside = hold_many(directory, turns,
                          {10'000, kRenewAfterMs, "held_10000_"}, report);
  for (std::size_t i = 0; i < few.size(); ++i) beside[i] /= few[i];
  report.line("held_10000_beside_1000", bench::figure_of(beside), 3, "ratio",
              "the two ratios of a renewal's CPU, where 1,000 are renewed ten "
              "times as often: as many renewals a second",
              "0.85 to 1.15");
}

// --- The first lock of a process -------------------------------------------

const std::vector<std::string> kColdStart = {"GetItem", "PutItem"};

void start_once(Entrant& entrant, const std::string& directory,
                const bench::Tally& tally) {
  const std::uint64_t before = tally.requests;
  Sample sample = Program(entrant.command(directory)).finish();
  sample.server_requests = tally.requests - before;
  if (sample.own_requests != kColdStart.size()) {
    unsound(entrant.program + " does not send two requests");
  }
  entrant.rss_kib.push_back(static_cast<double>(sample.rss_kib));
  entrant.samples.push_back(sample);
}

void report_cold(const std::vector<Entrant>& entrants, Report& report) {
  const Entrant &ours = entrants[0], &bare = entrants[1], &again = entrants[2];
  const auto line = [&](const std::string& metric,
                        const bench::Measure& measure, const char* what) {
    report.line(
        metric, ratio_of(ours, bare, measure), 3, "ratio",
        format("%s from exec to the first lock, two requests, %zu "
               "pairs; %.2f ms, libcurl %.2f ms",
               what, ours.samples.size(), figure_of(ours, measure).median / 1e6,
               figure_of(bare, measure).median / 1e6),
        "<= 1.3");
    report_noise("noise_" + metric, again, bare, measure,
                 std::string("libcurl's ") + what, report);
  };
  line("cold_start_cpu_ratio_vs_libcurl", cpu_of, "CPU");
  line("cold_start_ratio_vs_libcurl", p50_of, "time");
}

void hold_cold_starts(const std::string& directory, unsigned turns,
                      Report& report) {
  ConstantServer server;
  bench::Tally& tally = server.tally();
  const std::string records = directory + "/cold_start";
  const Entrant bare =
      bare_entrant(records, server.url(), "cold_libcurl", kColdStart);
  std::vector<Entrant> entrants = {{"cold_mutex", {server.url()}}, bare, bare};
  tally.recording = true;
  Program(entrants[0].command(directory)).finish();
  tally.recording = false;
  write_records(tally, records, kColdStart);
  for (unsigned turn = 0; turn < 20 * turns; ++turn) {
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      const std::size_t at = turn % 2 == 1 ? entrants.size() - 1 - i : i;
      start_once(entrants[at], directory, tally);
    }
  }
  for (const Entrant& entrant : entrants) check_requests(entrant);
  std::printf("A program started, until it has its first lock:\n");
  report_cold(entrants, report);
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
              ">= 0.9");
  report_noise("noise_sign_ratio", entrants[2], entrants[1], rate_of,
               "the rate of the hashes", report);
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

constexpr Part kParts[] = {
    {"cycles", hold_cycles},
    {"tls_cycles", hold_tls_cycles},
    {"engine_cycles", hold_engine_cycles},
    {"rivals", bench::hold_rivals},
    {"cold_starts", hold_cold_starts},
    {"parts", hold_parts},
    {"handovers", hold_handovers},
    {"signatures", hold_signatures},
    {"many", hold_all_many},
    {"waits", bench::hold_waits},
};

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
