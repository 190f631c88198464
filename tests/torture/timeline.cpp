#include "tests/torture/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/torture/svg.hpp"
#include "tests/torture/words.hpp"

namespace torture {
namespace {

// --- The look ----------------------------------------------------------------

constexpr double kWidth = 1400;
constexpr double kLeft = 84;  // Of the lanes.
constexpr double kRight = kWidth - 24;

// Of a strip, from above.
constexpr double kWordsHeight = 16;
constexpr double kFaultsHeight = 20;
constexpr double kNameHeight = 14;
constexpr double kProcessHeight = 12;
constexpr double kAxisHeight = 20;
constexpr double kStripGap = 22;

constexpr double kThinnest = 0.7;   // A claim is seen, however short it is.
constexpr double kJoined = 0.3;     // Claims of one process so near are one.
constexpr double kFaultColumn = 8;  // Of the histogram.
constexpr double kLetter = 0.56;    // Width of one, in sizes of the font.

constexpr std::size_t kMarked = 20;  // Violations.
constexpr std::size_t kWords = 190;  // Letters of each that fit.

constexpr const char* kText = "fill='#22303c'";
constexpr const char* kQuietText = "fill='#66747f'";
constexpr const char* kRed = "#d3122a";

std::string colour_of(int process) {
  constexpr const char* kAll[] = {"#3b72b8", "#e8963c", "#3f9d6b", "#8d63bd",
                                  "#cbb22f", "#45b3c6", "#b9648f", "#7d6750"};
  return kAll[static_cast<std::size_t>(process) % std::size(kAll)];
}

std::string band_of(const std::string& what) {
  if (what == "cut-off") return "#f0a830";
  if (what == "hang") return "#9b84d6";
  if (what == "engine") return "#5f7f94";
  return "#9a9a9a";
}

std::string size(double points) {
  return " font-size='" + number(points) + "'";
}

double width_of(const std::string& words, double points) {
  return static_cast<double>(words.size()) * points * kLetter;
}

// "+11.5 h", "-20 min"
std::string offset_words(seconds offset) {
  const double hours = std::abs(static_cast<double>(offset.count())) / 3600;
  const char* const sign = offset.count() < 0 ? "-" : "+";
  if (hours >= 1) return sign + number(hours) + " h";
  if (hours * 60 >= 1) return sign + number(std::round(hours * 60)) + " min";
  return sign + std::to_string(std::llabs(offset.count())) + " s";
}

// "9:05"
std::string clock_words(seconds time) {
  const std::string rest = std::to_string(time.count() % 60);
  return std::to_string(time.count() / 60) + (rest.size() < 2 ? ":0" : ":") +
         rest;
}

// --- The strips --------------------------------------------------------------

// A minute each, or about a fifth of a short run.
seconds strip_length(nanoseconds all) {
  constexpr seconds kMinute{60};
  constexpr int kFewest = 5;
  const auto up = [](nanoseconds time) {
    return std::max(std::chrono::ceil<seconds>(time), seconds(1));
  };
  if (all < kMinute * kFewest) return up(all / kFewest);
  const auto strips = (all + kMinute / 2) / kMinute;  // No stump at the end.
  return up(all / strips);
}

struct Strip {
  Span span;
  double top;

  bool meets(const Span& other) const {
    return other.begin < span.end && other.end > span.begin;
  }
  bool has(nanoseconds time) const {
    return time >= span.begin && time < span.end;
  }
  double x(nanoseconds time) const {
    const std::chrono::duration<double> from = time - span.begin;
    const std::chrono::duration<double> all = span.end - span.begin;
    return kLeft + (kRight - kLeft) * std::clamp(from / all, 0.0, 1.0);
  }
};

// Lines from left to right in one lane, as the data of one path.
class Bars {
 public:
  void add(double from, double to, double y) {
    if (drawn_ && y == y_ && from - to_ < kJoined) {
      to_ = std::max(to_, to);
      return;
    }
    draw();
    drawn_ = true;
    from_ = from;
    to_ = to;
    y_ = y;
  }
  std::string data() {
    draw();
    drawn_ = false;
    return std::move(data_);
  }

 private:
  void draw() {
    if (!drawn_) return;
    data_ += "M" + number(from_) + " " + number(y_) + "h" +
             number(std::max(to_ - from_, kThinnest));
  }

  std::string data_;
  bool drawn_ = false;  // There is one that may go on.
  double from_ = 0, to_ = 0, y_ = 0;
};

// Words in a row that must not lie on each other.
class Row {
 public:
  // Moved to the right where it must be, by so much at most.
  std::optional<double> place(double x, double width, double most = 0) {
    const double at = std::max(x, end_);
    if (at - x > most || at + width > kRight + 4) return std::nullopt;
    end_ = at + width + 4;
    return at;
  }

 private:
  double end_ = 0;
};

class Timeline {
 public:
  Timeline(const History& history, const Findings& found,
           const std::string& title)
      : history_(history),
        found_(found),
        title_(title),
        held_(held_by_name(history)),
        svg_(kWidth, lay_out()) {}

  std::string draw() {
    svg_.rect({0, 0, kWidth, height_}, "fill='#ffffff'");
    draw_title();
    draw_legend();
    draw_violations();
    for (const Strip& strip : strips_) {
      draw_grid(strip);
      draw_outages(strip);
      draw_faults(strip);
      for (const auto& [name, all] : held_) draw_claims(strip, name, all);
      draw_processes(strip);
      draw_ends(strip);
      draw_marks(strip);
    }
    return svg_.finished();
  }

 private:
  // --- Where things are ---

  // Returns the height of it all.
  double lay_out() {
    for (const auto& [key, life] : history_.lives) {
      const int index = static_cast<int>(processes_.size());
      processes_.try_emplace(key.first, index);
    }
    int index = 0;
    for (const auto& [name, all] : held_) names_[name] = index++;
    marked_ = std::min(found_.violations.size(), kMarked);
    const bool more = found_.violations.size() > marked_;
    violations_top_ = 124;
    height_ = violations_top_ + 15.0 * static_cast<double>(marked_ + more) + 14;
    const seconds length = strip_length(history_.end - history_.begin);
    nanoseconds from = history_.begin;
    do {
      strips_.push_back({{from, from + length}, height_});
      height_ += strip_height() + kStripGap;
      from += length;
    } while (from < history_.end);
    return height_;
  }

  double lanes_top(const Strip& strip) const {
    return strip.top + kWordsHeight;
  }
  double name_y(const Strip& strip, int index) const {  // Its middle.
    return lanes_top(strip) + kFaultsHeight + kNameHeight * (index + 0.5);
  }
  double process_y(const Strip& strip, int index) const {
    return name_y(strip, static_cast<int>(names_.size())) + 4 +
           kProcessHeight * (index + 0.25);
  }
  double lanes_bottom(const Strip& strip) const {
    return strip.top + strip_height() - kAxisHeight;
  }
  double strip_height() const {
    return kWordsHeight + kFaultsHeight +
           kNameHeight * static_cast<double>(names_.size()) + 8 +
           kProcessHeight * static_cast<double>(processes_.size()) +
           kAxisHeight;
  }

  // --- Above the strips ---

  void draw_title() {
    const Counts& counts = found_.counts;
    svg_.text(24, 36, title_, kText + size(22) + " font-weight='600'");
    const std::string totals = grouped(counts.acquisitions) +
                               " acquisitions, " + grouped(counts.hand_overs) +
                               " hand-overs, " + grouped(counts.all_faults) +
                               " faults, " + grouped(counts.kills) +
                               " kills, " + grouped(counts.stops) +
                               " stops, longest wait for a free name " +
                               lasting(counts.longest_free_wait);
    svg_.text(24, 58, totals, kQuietText + size(13));
    const std::size_t wrong = found_.violations.size();
    const std::string verdict =
        wrong == 0
            ? "nothing wrong"
            : grouped(wrong) + (wrong == 1 ? " violation" : " violations");
    svg_.text(kRight, 36, verdict,
              std::string("text-anchor='end' font-weight='600' fill='") +
                  (wrong == 0 ? "#2c8a57" : kRed) + "'" + size(18));
  }

  // One sign and its words.
  template <class Sign>
  void explain(double& x, double y, double width, const std::string& words,
               const Sign& sign) {
    sign(x, y);
    svg_.text(x + width + 5, y + 4, words, kText + size(11));
    x += width + 5 + width_of(words, 11) + 18;
  }

  void draw_legend() {
    double x = 24;
    for (const auto& [process, index] : processes_) {
      explain(
          x, 82, 14, "process " + std::to_string(process),
          [&, process = process](double at, double y) {
            svg_.rect({at, y - 5, 14, 10}, "fill='" + colour_of(process) + "'");
          });
    }
    x = 24;
    explain_claims(x);
    explain_lives(x);
    std::set<std::string> kinds;
    for (const Outage& outage : history_.outages) kinds.insert(outage.what);
    for (const std::string& what : kinds) {
      explain(x, 104, 14, what, [&](double at, double y) {
        svg_.rect({at, y - 5, 14, 10},
                  "fill='" + band_of(what) + "' fill-opacity='0.35'");
      });
    }
  }

  void explain_claims(double& x) {
    const std::string fill = "fill='" + colour_of(0) + "'";
    explain(x, 104, 14, "held (the shortest drawn wider)",
            [&](double at, double y) {
              svg_.rect({at, y - 5, 14, 10}, fill);
            });
    explain(x, 104, 14, "promised to one that was killed or stopped",
            [&](double at, double y) {
              svg_.rect({at, y - 5, 14, 10}, fill + " fill-opacity='0.3'");
            });
    explain(x, 104, 6, "taken after all was over", [&](double at, double y) {
      svg_.path(diamond(at + 3, y), "fill='#2c8a57'");
    });
  }

  void explain_lives(double& x) {
    const std::string stroke = "stroke='" + colour_of(0) + "'";
    explain(x, 104, 22, "runs", [&](double at, double y) {
      svg_.path(line(at, y, 22), stroke + " stroke-width='4'");
    });
    explain(x, 104, 22, "stopped", [&](double at, double y) {
      svg_.path(line(at, y, 22), stroke + kStopped);
    });
    explain(x, 104, 8, "killed",
            [&](double at, double y) { svg_.path(cross(at + 4, y), kKilled); });
    explain(x, 104, 24, "its calendar is off", [&](double at, double y) {
      svg_.text(at, y + 3, "+7 h", kQuietText + size(9));
    });
  }

  static std::string line(double x, double y, double width) {
    return "M" + number(x) + " " + number(y) + "h" + number(width);
  }
  static std::string cross(double x, double y) {
    return "M" + number(x - 3) + " " + number(y - 3) + "l6 6m0 -6l-6 6";
  }
  static std::string diamond(double x, double y) {
    return "M" + number(x) + " " + number(y - 5) + "l3.5 5l-3.5 5l-3.5 -5z";
  }

  void draw_violations() {
    double y = violations_top_ + 11;
    for (std::size_t i = 0; i < marked_; ++i, y += 15) {
      const Violation& one = found_.violations[i];
      svg_.text(24, y,
                std::to_string(i + 1) + "  " + name_of(one.rule) + ": " +
                    one.words.substr(0, kWords),
                std::string("fill='") + kRed + "'" + size(12));
    }
    const std::size_t more = found_.violations.size() - marked_;
    if (more == 0) return;
    svg_.text(24, y, "and " + grouped(more) + " more",
              std::string("fill='") + kRed + "'" + size(12));
  }

  // --- One strip ---

  void draw_grid(const Strip& strip) {
    for (const auto& [name, index] : names_) {
      const double y = name_y(strip, index);
      svg_.rect(
          {kLeft, y - kNameHeight / 2 + 1, kRight - kLeft, kNameHeight - 2},
          "fill='#f3f5f7'");
      svg_.text(kLeft - 8, y + 4, name,
                "text-anchor='end' " + (kText + size(11)));
    }
    for (const auto& [process, index] : processes_) {
      const double y = process_y(strip, index);
      svg_.text(
          kLeft - 8, y + 3, "process " + std::to_string(process),
          "text-anchor='end' fill='" + colour_of(process) + "'" + size(9.5));
    }
    draw_axis(strip);
  }

  void draw_axis(const Strip& strip) {
    const double top = lanes_top(strip);
    const double bottom = lanes_bottom(strip);
    const auto length =
        std::chrono::floor<seconds>(strip.span.end - strip.span.begin);
    const seconds step(length > seconds(30) ? 5 : 1);
    const auto from =
        std::chrono::floor<seconds>(strip.span.begin - history_.begin);
    std::string lines;
    for (seconds at = from; at <= from + length; ++at) {
      if (at % step != seconds(0)) continue;
      const double x = strip.x(history_.begin + at);
      lines += "M" + number(x) + " " + number(top) + "V" + number(bottom + 3);
      svg_.text(x, bottom + 14, clock_words(at),
                "text-anchor='middle' " + (kQuietText + size(10)));
    }
    svg_.path(lines, "stroke='#dde2e6' stroke-width='0.7'");
  }

  void draw_outages(const Strip& strip) {
    Row row;
    const double top = lanes_top(strip);
    for (const Outage& outage : history_.outages) {
      if (!strip.meets(outage.span)) continue;
      const double from = strip.x(outage.span.begin);
      const double width = std::max(strip.x(outage.span.end) - from, 1.0);
      const std::string colour = "fill='" + band_of(outage.what) + "'";
      svg_.rect(
          {from, top, width, lanes_bottom(strip) - top},
          colour + " fill-opacity='0.22'",
          outage.what + " for " + lasting(outage.span.end - outage.span.begin));
      const double needs = width_of(outage.what, 10);
      const auto x = row.place(from, needs, 20);
      if (x) svg_.text(*x, top - 3, outage.what, colour + size(10));
    }
  }

  void draw_faults(const Strip& strip) {
    const double bottom = lanes_top(strip) + kFaultsHeight - 2;
    const std::vector<int> columns = fault_columns(strip.span);
    const double unit = (kFaultsHeight - 4) / std::max(most_faults(), 1);
    std::string data = "M" + number(kLeft) + " " + number(bottom);
    double x = kLeft;
    for (const int faults : columns) {
      data += "V" + number(bottom - unit * faults);
      x += kFaultColumn;
      data += "H" + number(std::min(x, kRight));
    }
    svg_.path(
        data + "V" + number(bottom) + "z", "fill='#5b6873' fill-opacity='0.75'",
        "faults, at most " + std::to_string(most_faults()) + " in a column");
    svg_.text(kLeft - 8, bottom - 3, "faults",
              "text-anchor='end' " + (kQuietText + size(10)));
  }

  std::vector<int> fault_columns(const Span& span) const {
    const auto count =
        static_cast<std::size_t>(std::ceil((kRight - kLeft) / kFaultColumn));
    std::vector<int> columns(count);
    auto it = std::partition_point(
        history_.faults.begin(), history_.faults.end(),
        [&span](const Fault& fault) { return fault.at < span.begin; });
    for (; it != history_.faults.end() && it->at < span.end; ++it) {
      const std::chrono::duration<double> from = it->at - span.begin;
      const std::chrono::duration<double> all = span.end - span.begin;
      const double column = (kRight - kLeft) / kFaultColumn * (from / all);
      ++columns[std::min(static_cast<std::size_t>(column), count - 1)];
    }
    return columns;
  }

  // In a column of any strip.
  int most_faults() {
    if (most_faults_) return *most_faults_;
    most_faults_ = 0;
    for (const Strip& strip : strips_) {
      const std::vector<int> columns = fault_columns(strip.span);
      most_faults_ = std::max(
          *most_faults_, *std::max_element(columns.begin(), columns.end()));
    }
    return *most_faults_;
  }

  void draw_claims(const Strip& strip, const std::string& name,
                   const std::vector<Held>& all) {
    std::map<int, Bars> promised;
    std::map<int, Bars> held;
    const double y = name_y(strip, names_.at(name));
    for (const Held& one : all) {
      if (one.span.begin >= strip.span.end) break;
      if (!strip.meets(one.span)) continue;
      const double from = strip.x(one.span.begin);
      const double to = strip.x(one.span.end);
      const double seen = one.got->ended ? to : strip.x(one.got->asked);
      if (seen < to) promised[one.log->process].add(seen, to, y);
      if (seen > kLeft) held[one.log->process].add(from, seen, y);
    }
    const std::string width = " stroke-width='" + number(kNameHeight - 2) + "'";
    for (auto& [process, bars] : promised) {
      svg_.path(
          bars.data(),
          "stroke='" + colour_of(process) + "' stroke-opacity='0.3'" + width,
          name + " is promised to process " + std::to_string(process));
    }
    for (auto& [process, bars] : held) {
      svg_.path(bars.data(), "stroke='" + colour_of(process) + "'" + width,
                name + ", held by process " + std::to_string(process));
    }
  }

  void draw_processes(const Strip& strip) {
    for (const auto& [process, index] : processes_) {
      const double y = process_y(strip, index);
      Bars runs;
      Bars stopped;
      std::string kills;
      Row row;
      const auto first = history_.lives.lower_bound({process, 0});
      for (auto it = first;
           it != history_.lives.end() && it->first.first == process; ++it) {
        const Lifetime& life = it->second;
        draw_life(strip, life, y, runs, stopped);
        draw_calendar(strip, life, y, row);
        if (life.killed && strip.has(*life.killed)) {
          kills += cross(strip.x(*life.killed), y);
        }
      }
      const std::string stroke = "stroke='" + colour_of(process) + "'";
      svg_.path(runs.data(), stroke + " stroke-width='3.5'",
                "process " + std::to_string(process));
      svg_.path(stopped.data(), stroke + kStopped);
      svg_.path(kills, kKilled);
    }
  }

  void draw_life(const Strip& strip, const Lifetime& life, double y, Bars& runs,
                 Bars& stopped) {
    nanoseconds from = life.begin;
    const auto run_to = [&](nanoseconds to) {
      if (from < to && strip.meets({from, to})) {
        runs.add(strip.x(from), strip.x(to), y);
      }
    };
    for (const Span& stop : life.stops) {
      run_to(stop.begin);
      from = stop.end;
      if (!strip.meets(stop)) continue;
      stopped.add(strip.x(stop.begin), strip.x(stop.end), y);
    }
    run_to(life.exited.value_or(history_.end));
  }

  void draw_calendar(const Strip& strip, const Lifetime& life, double y,
                     Row& row) {
    const auto tell = [&](nanoseconds at, seconds offset) {
      if (!strip.has(at) || offset == seconds(0)) return;
      const std::string words = offset_words(offset);
      const auto x = row.place(strip.x(at) + 5, width_of(words, 8), 6);
      if (x) svg_.text(*x, y - 2.5, words, kQuietText + size(8));
    };
    tell(life.begin, life.calendar);
    for (const Jump& jump : life.jumps) tell(jump.at, jump.offset);
  }

  // What comes after the faults.
  void draw_ends(const Strip& strip) {
    const double top = lanes_top(strip);
    if (history_.quiet && strip.has(*history_.quiet)) {
      const double x = strip.x(*history_.quiet);
      svg_.path("M" + number(x) + " " + number(top - 10) + "V" +
                    number(lanes_bottom(strip)),
                "stroke='#2c8a57' stroke-dasharray='3 2'");
      svg_.text(x - 4, top - 3, "quiet",
                "text-anchor='end' fill='#2c8a57'" + size(10));
    }
    for (const Taken& taken : history_.taken) {
      const auto lane = names_.find(taken.name);
      if (lane == names_.end() || !(taken.at <= strip.span.end) ||
          taken.at < strip.span.begin) {
        continue;
      }
      svg_.path(diamond(strip.x(taken.at), name_y(strip, lane->second)),
                "fill='#2c8a57'",
                taken.name + ", taken after " + lasting(taken.waited));
    }
  }

  // Of the violations that are listed and have a place.
  void draw_marks(const Strip& strip) {
    Row row;
    for (std::size_t i = 0; i < marked_; ++i) {
      const Violation& one = found_.violations[i];
      if (!one.at || !is_at(strip, *one.at)) continue;
      const double x = strip.x(*one.at);
      const double top = lanes_top(strip);
      svg_.path("M" + number(x) + " " + number(top) + "V" +
                    number(lanes_bottom(strip)),
                std::string("stroke='") + kRed + "' stroke-width='1.2'",
                one.words);
      const std::string words = std::to_string(i + 1);
      const auto place = row.place(x - 4, width_of(words, 12), 60);
      if (place) {
        svg_.text(
            *place, top - 3, words,
            std::string("font-weight='700' fill='") + kRed + "'" + size(12) +
                " stroke='#ffffff' stroke-width='3' paint-order='stroke'");
      }
      const auto lane = names_.find(one.name);
      if (lane == names_.end()) continue;
      svg_.rect(
          {x - 7, name_y(strip, lane->second) - kNameHeight / 2, 14,
           kNameHeight},
          std::string("fill='none' stroke='") + kRed + "' stroke-width='2'");
    }
  }

  // The last strip has what comes at the very end.
  bool is_at(const Strip& strip, nanoseconds time) const {
    return strip.has(time) ||
           (&strip == &strips_.back() && time >= strip.span.end);
  }

  static constexpr const char* kStopped =
      " stroke-width='1.4' stroke-dasharray='2 2'";
  static constexpr const char* kKilled =
      "stroke='#22303c' stroke-width='1.5' fill='none'";

  const History& history_;
  const Findings& found_;
  const std::string title_;
  const std::map<std::string, std::vector<Held>> held_;
  std::map<int, int> processes_;      // And their lanes.
  std::map<std::string, int> names_;  // Likewise.
  std::vector<Strip> strips_;
  std::size_t marked_ = 0;
  double violations_top_ = 0;
  double height_ = 0;
  std::optional<int> most_faults_;
  Svg svg_;  // Last: its height is that of all the others.
};

}  // namespace

void write_timeline(std::ostream& out, const History& history,
                    const Findings& found, const std::string& title) {
  out << Timeline(history, found, title).draw();
}

}  // namespace torture
