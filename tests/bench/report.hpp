// How the bench says what it found: a line a metric on the terminal and in the
// result, and an error where something else was measured than is said.
#ifndef DDBMUTEX_TESTS_BENCH_REPORT_HPP
#define DDBMUTEX_TESTS_BENCH_REPORT_HPP

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "tests/bench/contest.hpp"

namespace bench {

[[gnu::format(printf, 1, 2)]] inline std::string format(const char* form, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

inline double cpu_of(const Sample& sample) { return sample.cpu_ns; }
inline double p50_of(const Sample& sample) { return sample.p50_ns; }

inline double requests_per_cycle(const Sample& sample) {
  return static_cast<double>(sample.own_requests) /
         static_cast<double>(sample.cycles);
}

inline std::string record_path(const std::string& directory,
                               const std::string& action) {
  return directory + "/" + action + ".request";
}

// All that is measured goes to a file, a line a metric; of a whole run, as a
// table, to a page too.
class Report {
 public:
  explicit Report(std::string path) : path_(std::move(path)) {}

  // An empty limit: there is none.
  void line(const std::string& metric, const Figure& figure, int digits,
            const std::string& unit, const std::string& note,
            const std::string& limit = {}) {
    const auto text = [digits](double value) {
      return format("%.*f", digits, value);
    };
    const std::string median = text(figure.median), min = text(figure.min),
                      max = text(figure.max);
    const std::string whole = "min " + min + ", max " + max + "; " + note +
                              (limit.empty() ? "" : "; limit " + limit);
    std::printf("  %-30s %10s %-12s %s\n", metric.c_str(), median.c_str(),
                unit.c_str(), whole.c_str());
    lines_ += metric + "\t" + median + "\t" + unit + "\t" + whole + "\n";
    rows_ += "| `" + metric + "` | " + median + " | " + min + " | " + max +
             " | " + unit + " | " + limit + " | " + note + " |\n";
  }

  // Only now: half a result would pass for a whole one.
  void write() const { replace_file(path_, lines_); }

  // Between the page's two marks.
  void write_to_page(const std::string& page, const std::string& measured) {
    std::ifstream file(page);
    std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string mark = "<!-- make bench -->\n";
    const std::size_t begin = text.find(mark);
    const std::size_t end = text.find("<!-- end -->", begin);
    if (end == text.npos) unsound(page + " has no place for the table");
    text.replace(begin + mark.size(), end - begin - mark.size(),
                 measured +
                     "\n\n| metric | median | min | max | unit | limit | what |"
                     "\n|---|---|---|---|---|---|---|\n" +
                     rows_);
    replace_file(page, text);
  }

 private:
  static void replace_file(const std::string& path, const std::string& text) {
    const std::string draft = path + ".new";
    std::ofstream file(draft);
    file << text;
    file.close();
    if (!file || std::rename(draft.c_str(), path.c_str()) != 0) {
      give_up(path.c_str());
    }
  }

  const std::string path_;
  std::string lines_;
  std::string rows_;
};

inline void print_absolute(const Entrant& entrant) {
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
  std::printf(", RSS %.0f KiB\n", figure_of(entrant.rss_kib).median);
}

// Of one program twice: what a ratio shows where there is no difference.
inline void report_noise(const std::string& metric, const Entrant& again,
                         const Entrant& first, const Measure& measure,
                         const std::string& what, Report& report) {
  report.line(metric, ratio_of(again, first, measure), 3, "ratio",
              format("%s beside itself, %zu pairs: this machine's noise",
                     what.c_str(), first.samples.size()));
}

inline void check_requests(const Entrant& entrant) {
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
inline void check_connections(const Entrant& entrant) {
  for (const Sample& sample : entrant.samples) {
    if (sample.server_connections * 100 <= sample.server_requests) continue;
    unsound(entrant.program + " does not keep its connection alive");
  }
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_REPORT_HPP
