// Picture 3: what the lock costs beside others.
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "tests/pictures/pictures.hpp"
#include "tests/pictures/svg.hpp"

namespace pictures {

namespace {

const std::string kMeasured = "Measured ";

// The median of a row "| `metric` | median | ...", or 0.
double median_in(const std::string& line, const std::string& metric) {
  const std::string begin = "| `" + metric + "` | ";
  if (line.rfind(begin, 0) != 0) return 0;
  return std::strtod(line.c_str() + begin.size(), nullptr);
}

}  // namespace

Race read_race(std::istream& page) {
  const std::string bare = "mutex_cpu_ratio_vs_libcurl";
  Race race;
  race.lanes = {
      {"libcurl, nothing else", bare},
      {"ddbmutex", "", 1},
      {"libcurl that signs", "rival_libcurl_sigv4_cpu_ratio"},
      {"AWS SDK for Go", "rival_go_sdk_cpu_ratio"},
      {"boto3", "rival_boto3_cpu_ratio"},
      {"dynamodb-lock-client", "rival_lock_client_cpu_ratio"},
  };
  for (std::string line; std::getline(page, line);) {
    if (line.rfind(kMeasured, 0) == 0) {
      race.measured = line;
      if (std::getline(page, line)) race.measured += " " + line;
    }
    for (Race::Lane& lane : race.lanes) {
      const double median = median_in(line, lane.metric);
      if (median > 0) lane.times = lane.metric == bare ? 1 / median : median;
    }
  }
  for (const Race::Lane& lane : race.lanes) {
    if (lane.times > 0) continue;
    throw std::runtime_error("no figure of " + lane.metric);
  }
  if (race.measured.empty()) throw std::runtime_error("no line " + kMeasured);
  return race;
}

std::string draw(const Race& race) {
  constexpr double kWidth = 840, kTop = 58, kLane = 30, kBar = 20;
  constexpr double kLeft = 182, kRight = 770;
  const double bottom = kTop + kLane * static_cast<double>(race.lanes.size());
  double most = 0;
  for (const Race::Lane& lane : race.lanes) most = std::max(most, lane.times);
  Svg svg(kWidth, bottom + 36);
  svg.style(style());
  svg.rect({0, 0, kWidth, bottom + 36}, "class='paper' rx='6'");
  svg.text(20, 32, "CPU time of a lock taken and given back; ddbmutex is 1",
           "class='ink' font-size='15'");
  double y = kTop;
  for (const Race::Lane& lane : race.lanes) {
    const bool ours = lane.metric.empty();
    const double width = (kRight - kLeft) * lane.times / most;
    const std::string size = " font-size='12.5'";
    svg.text(kLeft - 10, y + 15, lane.name,
             "class='ink' text-anchor='end'" + size);
    svg.rect({kLeft, y, width, kBar},
             ours ? "class='p2' rx='2'" : "class='p0' rx='2'");
    svg.text(kLeft + width + 8, y + 15, number(lane.times),
             (ours ? "class='good'" : "class='ink'") + size);
    y += kLane;
  }
  svg.text(20, bottom + 20, race.measured, "class='quiet' font-size='11'");
  return svg.finished();
}

}  // namespace pictures
