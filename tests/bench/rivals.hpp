// What else takes a lock in DynamoDB and gives it back, measured beside this
// library.  What `make setup-bench` has not fetched is left out, and told.
#ifndef DDBMUTEX_TESTS_BENCH_RIVALS_HPP
#define DDBMUTEX_TESTS_BENCH_RIVALS_HPP

#include <sys/wait.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/constant_server.hpp"
#include "tests/bench/contest.hpp"
#include "tests/bench/report.hpp"

namespace bench {

struct Rival {
  std::string metric;
  std::string name;  // For who reads of it.
  std::string bar;   // For its CPU beside ours.
  Entrant entrant;
};

inline std::vector<Rival> all_rivals(const std::string& directory,
                                     const std::string& url) {
  const std::string scripts = "tests/bench/rivals/";
  return {
      {"libcurl_sigv4",
       "libcurl that signs, with constant bodies",
       "",
       {"cycle_libcurl",
        {url, "sigv4", record_path(directory, "PutItem"),
         record_path(directory, "DeleteItem")}}},
      {"boto3",
       "boto3, ddblock's requests",
       "> 2.5",
       {scripts + "cycle_boto3.py", {url}}},
      {"go_sdk",
       "AWS's SDK for Go, ddblock's requests",
       "> 2.5",
       {directory + "/rivals/cycle_sdk", {url}}},
      {"lock_client",
       "npm's dynamodb-lock-client",
       "> 2.5",
       {scripts + "cycle_lock_client.js", {url}}},
  };
}

// One that has what it needs says how it is called, and ends with status 2.
inline bool is_there(const Rival& rival, const std::string& directory) {
  const std::string program =
      Entrant{rival.entrant.program}.command(directory)[0];
  const int status = std::system(("'" + program + "' 2>/dev/null").c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 2;
}

inline void report_rival(const Rival& rival, const Entrant& theirs,
                         const Entrant& ours, Report& report) {
  const std::string prefix = "rival_" + rival.metric + "_";
  report.line(prefix + "cpu_ratio", ratio_of(theirs, ours, cpu_of), 2, "ratio",
              format("CPU of a lock and unlock, %s, beside ours, %zu pairs; "
                     "%.0f us in %.0f requests, ours %.0f us in %.0f",
                     rival.name.c_str(), ours.samples.size(),
                     figure_of(theirs, cpu_of).median / 1e3,
                     figure_of(theirs, requests_per_cycle).median,
                     figure_of(ours, cpu_of).median / 1e3,
                     figure_of(ours, requests_per_cycle).median),
              rival.bar);
  report.line(prefix + "latency_ratio", ratio_of(theirs, ours, p50_of), 2,
              "ratio",
              format("p50 of a lock and unlock; %.0f us, ours %.0f us",
                     figure_of(theirs, p50_of).median / 1e3,
                     figure_of(ours, p50_of).median / 1e3));
  report.line(
      prefix + "rss_kib", figure_of(theirs.rss_kib), 0, "KiB",
      format("peak RSS; ours %.0f KiB", figure_of(ours.rss_kib).median));
}

// After the cycles: libcurl signs what was sent there.
inline void hold_rivals(const std::string& directory, unsigned turns,
                        Report& report) {
  ConstantServer server;
  std::vector<Rival> rivals;
  std::vector<Entrant> entrants = {{"cycle_mutex", {server.url()}}};
  for (const Rival& rival : all_rivals(directory, server.url())) {
    if (!is_there(rival, directory)) {
      report.leave_out(rival.name + " (`make setup-bench` fetches it)");
      continue;
    }
    rivals.push_back(rival);
    entrants.push_back(rival.entrant);
  }
  const Contest contest{300, 30, 1000, turns, 3, {}};
  Arena(directory, &server.tally()).hold(contest, entrants);
  std::printf("A lock taken and released, and by others, %u cycles a run:\n",
              contest.cycles);
  for (const Entrant& entrant : entrants) {
    print_absolute(entrant);
    check_requests(entrant);
    check_connections(entrant);
  }
  if (server.tally().malformed != 0) unsound("the server was sent nonsense");
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    report_rival(rivals[i], entrants[i + 1], entrants[0], report);
  }
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_RIVALS_HPP
