// Picture 2: a minute of the torture.
#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "tests/pictures/pictures.hpp"
#include "tests/pictures/svg.hpp"

namespace pictures {

using namespace std::chrono_literals;
using Stretch = Minute::Stretch;

namespace {

constexpr milliseconds kMinute = 60s;

// --- From a run, and to a file -----------------------------------------------

struct Cut {
  nanoseconds begin;

  milliseconds at(nanoseconds time) const {
    return std::clamp(std::chrono::floor<milliseconds>(time - begin),
                      milliseconds(0), kMinute);
  }
  Stretch of(nanoseconds from, nanoseconds to) const {
    return {at(from), at(to)};
  }
};

Minute::Claim claim_of(const torture::Held& held, const Cut& cut) {
  const nanoseconds end = held.span.end;
  const nanoseconds seen =
      held.got->ended ? end : std::clamp(held.got->asked, held.span.begin, end);
  return {held.log->process, cut.of(held.span.begin, seen), cut.at(end)};
}

Minute::Life life_of(const torture::Lifetime& life, nanoseconds end,
                     const Cut& cut) {
  Minute::Life drawn{life.process,
                     cut.of(life.begin, life.exited.value_or(end)),
                     life.killed && *life.killed < cut.begin + kMinute,
                     {}};
  for (const torture::Span& stop : life.stops) {
    const Stretch one = cut.of(stop.begin, stop.end);
    if (one.begin < one.end) drawn.stops.push_back(one);
  }
  return drawn;
}

std::string words(const Stretch& stretch) {
  return " " + std::to_string(stretch.begin.count()) + " " +
         std::to_string(stretch.end.count());
}

// Each since the one before has begun, which keeps the file small.
std::string line_of(const std::vector<Minute::Claim>& claims) {
  std::string line;
  milliseconds before{};
  for (const Minute::Claim& claim : claims) {
    const Stretch& held = claim.held;
    line += " " + std::to_string(claim.process) + "+" +
            std::to_string((held.begin - before).count()) + "+" +
            std::to_string((held.end - held.begin).count());
    if (claim.promised > held.end) {
      line += "~" + std::to_string((claim.promised - held.end).count());
    }
    before = held.begin;
  }
  return line;
}

}  // namespace

Minute minute_of(const torture::History& history, const std::string& title) {
  const Cut cut{history.begin};
  Minute minute;
  minute.title = title;
  for (const auto& [name, all] : held_by_name(history)) {
    for (const torture::Held& held : all) {
      if (held.span.begin >= held.span.end ||
          held.span.begin >= cut.begin + kMinute) {
        continue;
      }
      minute.claims[name].push_back(claim_of(held, cut));
    }
  }
  for (const auto& [key, life] : history.lives) {
    if (life.begin >= cut.begin + kMinute) continue;
    minute.lives.push_back(life_of(life, history.end, cut));
  }
  for (const torture::Outage& outage : history.outages) {
    const Stretch span = cut.of(outage.span.begin, outage.span.end);
    if (span.begin < span.end) minute.outages.push_back({outage.what, span});
  }
  return minute;
}

std::string write(const Minute& minute) {
  std::string text =
      "# The first minute of a run, in milliseconds; tests/torture wrote it.\n"
      "# life PROCESS FROM TO [killed]; stop FROM TO of that process;\n"
      "# down WHAT FROM TO; lock NAME and its claims: PROCESS+SINCE+FOR, "
      "SINCE\n"
      "# the one before began, and ~MORE if it was promised for longer than "
      "its\n"
      "# holder lived or ran to see.\n"
      "title " +
      minute.title + "\n";
  for (const Minute::Life& life : minute.lives) {
    text += "life " + std::to_string(life.process) + words(life.span) +
            (life.killed ? " killed\n" : "\n");
    for (const Stretch& stop : life.stops) text += "stop" + words(stop) + "\n";
  }
  for (const Minute::Outage& outage : minute.outages) {
    text += "down " + outage.what + words(outage.span) + "\n";
  }
  for (const auto& [name, claims] : minute.claims) {
    text += "lock " + name + line_of(claims) + "\n";
  }
  return text;
}

// --- And back ----------------------------------------------------------------

namespace {

class Line {
 public:
  explicit Line(const std::string& text) : text_(text), words_(text) {}

  std::string word() {
    std::string word;
    if (!(words_ >> word)) fail();
    return word;
  }
  int number() {
    int number = 0;
    if (!(words_ >> number)) fail();
    return number;
  }
  Stretch stretch() {
    const milliseconds begin(number());
    return {begin, milliseconds(number())};
  }
  bool next_is(char sign) {
    if (words_.peek() != sign) return false;
    words_.get();
    return true;
  }
  bool at_end() { return (words_ >> std::ws).eof(); }
  std::string rest() {
    std::string rest;
    std::getline(words_ >> std::ws, rest);
    return rest;
  }
  [[noreturn]] void fail() const {
    throw std::runtime_error("no line of a minute: " + text_.substr(0, 60));
  }

 private:
  const std::string text_;
  std::istringstream words_;
};

std::vector<Minute::Claim> read_claims(Line& line) {
  std::vector<Minute::Claim> claims;
  milliseconds begin{};
  while (!line.at_end()) {
    Minute::Claim claim;
    claim.process = line.number();
    begin += milliseconds(line.number());
    claim.held = {begin, begin + milliseconds(line.number())};
    claim.promised = claim.held.end;
    if (line.next_is('~')) claim.promised += milliseconds(line.number());
    claims.push_back(claim);
  }
  return claims;
}

void read_line(const std::string& text, Minute& minute) {
  Line line(text);
  const std::string kind = line.word();
  if (kind == "title") {
    minute.title = line.rest();
  } else if (kind == "life") {
    const int process = line.number();
    const Stretch span = line.stretch();
    const bool killed = !line.at_end() && line.word() == "killed";
    minute.lives.push_back({process, span, killed, {}});
  } else if (kind == "stop" && !minute.lives.empty()) {
    minute.lives.back().stops.push_back(line.stretch());
  } else if (kind == "down") {
    const std::string what = line.word();
    minute.outages.push_back({what, line.stretch()});
  } else if (kind == "lock") {
    const std::string name = line.word();
    minute.claims[name] = read_claims(line);
  } else {
    line.fail();
  }
}

}  // namespace

Minute read_minute(std::istream& in) {
  Minute minute;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') read_line(line, minute);
  }
  return minute;
}

// --- The picture -------------------------------------------------------------

namespace {

// Lines from left to right in one lane, as the data of one path.  Those that
// one could not see apart are drawn as one.  In tenths and from where the last
// one ends, for there are thousands.
class Bars {
 public:
  explicit Bars(double y) : y_(y) {}

  void add(double from, double to) {
    const long begin = tenths(from), end = tenths(to);
    if (drawn_ && begin - to_ < kJoined) {
      to_ = std::max(to_, end);
      return;
    }
    finish();
    drawn_ = true;
    from_ = begin;
    to_ = std::max(end, begin + kThinnest);
  }
  std::string data() {
    finish();
    drawn_ = false;
    return data_;
  }

 private:
  static constexpr long kThinnest = 7, kJoined = 3;

  static long tenths(double x) { return std::lround(10 * x); }
  static std::string words(long tenths) {
    return number(static_cast<double>(tenths) / 10);
  }
  void finish() {
    if (!drawn_) return;
    data_ += data_.empty() ? "M" + words(from_) + " " + number(y_)
                           : "m" + words(from_ - last_) + " 0";
    data_ += "h" + words(to_ - from_);
    last_ = to_;
  }

  const double y_;
  std::string data_;
  bool drawn_ = false;
  long from_ = 0, to_ = 0, last_ = 0;
};

class MinutePicture {
 public:
  explicit MinutePicture(const Minute& minute)
      : minute_(minute), svg_(kWidth, height()) {}

  std::string draw() {
    svg_.style(style());
    svg_.rect({0, 0, kWidth, height()}, "class='paper' rx='6'");
    draw_title();
    draw_outages();
    draw_axis();
    double y = kTop + kLock / 2;
    for (const auto& [name, claims] : minute_.claims) {
      draw_lock(name, claims, y);
      y += kLock;
    }
    for (int process = 0; process < kProcesses; ++process) {
      draw_process(process, y + kGap);
      y += kProcess;
    }
    return svg_.finished();
  }

 private:
  static constexpr double kWidth = 840, kLeft = 78, kRight = 820;
  static constexpr double kTop = 92, kLock = 17, kProcess = 13, kGap = 6;
  static constexpr int kProcesses = 8;

  double bottom() const {
    return kTop + kLock * static_cast<double>(minute_.claims.size()) + kGap +
           kProcess * kProcesses;
  }
  double height() const { return bottom() + 30; }
  static double x(milliseconds time) {
    return kLeft + (kRight - kLeft) * static_cast<double>(time.count()) /
                       static_cast<double>(kMinute.count());
  }
  static std::string colour(int process) {
    return "class='p" + std::to_string(process % kProcesses) + "l'";
  }
  void say(double at, double y, const std::string& words,
           const std::string& attributes) {
    svg_.text(at, y, words, attributes + " font-size='12'");
  }

  void draw_title() {
    std::size_t claims = 0, kills = 0, stops = 0;
    for (const auto& [name, all] : minute_.claims) claims += all.size();
    for (const Minute::Life& life : minute_.lives) {
      kills += life.killed;
      stops += life.stops.size();
    }
    svg_.text(12, 22, "One minute: " + minute_.title,
              "class='ink' font-weight='600' font-size='14'");
    say(12, 41,
        std::to_string(claims) + " times a lock was taken by one of eight " +
            "processes, each with its colour; " + std::to_string(kills) +
            " kills (crosses), " + std::to_string(stops) + " stops (dots).",
        "class='quiet'");
    say(12, 57,
        "Pale: still promised to one that was killed or stopped. Grey: the "
        "network or the engine was away.",
        "class='quiet'");
  }

  void draw_outages() {
    for (const Minute::Outage& outage : minute_.outages) {
      const double from = x(outage.span.begin), to = x(outage.span.end);
      svg_.rect({from, kTop - 4, to - from, bottom() - kTop + 8},
                "class='quiet' fill-opacity='0.22'");
      say((from + to) / 2, kTop - 9,
          outage.what == "engine" ? "engine" : "network",
          "class='quiet' text-anchor='middle'");
    }
  }

  void draw_axis() {
    for (seconds at = 0s; at <= kMinute; at += 10s) {
      say(x(at), bottom() + 20, std::to_string(at.count()) + " s",
          "class='quiet' text-anchor='middle'");
    }
  }

  void draw_lock(const std::string& name,
                 const std::vector<Minute::Claim>& claims, double y) {
    std::map<int, Bars> held, promised;
    for (const Minute::Claim& claim : claims) {
      Bars& bars = held.try_emplace(claim.process, y).first->second;
      bars.add(x(claim.held.begin), x(claim.held.end));
      if (claim.promised <= claim.held.end) continue;
      Bars& more = promised.try_emplace(claim.process, y).first->second;
      more.add(x(claim.held.end), x(claim.promised));
    }
    const std::string width = " stroke-width='" + number(kLock - 4) + "'";
    for (auto& [process, bars] : promised) {
      svg_.path(bars.data(),
                colour(process) + width + " stroke-opacity='0.35'");
    }
    for (auto& [process, bars] : held) {
      svg_.path(bars.data(), colour(process) + width);
    }
    say(12, y + 4, name, "class='ink'");
  }

  void draw_process(int process, double y) {
    Bars runs(y), stopped(y);
    std::string kills;
    for (const Minute::Life& life : minute_.lives) {
      if (life.process != process) continue;
      milliseconds from = life.span.begin;
      for (const Stretch& stop : life.stops) {
        runs.add(x(from), x(stop.begin));
        stopped.add(x(stop.begin), x(stop.end));
        from = stop.end;
      }
      if (from < life.span.end) runs.add(x(from), x(life.span.end));
      if (!life.killed) continue;
      kills += "M" + number(x(life.span.end) - 3) + " " + number(y - 3) +
               "l6 6m0 -6l-6 6";
    }
    svg_.path(runs.data(), colour(process) + " stroke-width='4'");
    svg_.path(stopped.data(),
              colour(process) + " stroke-width='1.5' stroke-dasharray='2 2'");
    svg_.path(kills, "class='badl' stroke-width='2'");
    say(12, y + 4, "process " + std::to_string(process), "class='ink'");
  }

  const Minute& minute_;
  Svg svg_;
};

}  // namespace

std::string draw(const Minute& minute) { return MinutePicture(minute).draw(); }

}  // namespace pictures
