#include "examples/demo/event.hpp"

#include <cstdio>

#include "examples/demo/text.hpp"

namespace demo {
namespace {

// A line is written whole to a pipe that several processes share, which POSIX
// promises for 512 bytes.
constexpr std::size_t kLongestText = 400;

}  // namespace

std::string to_line(const Event& event) {
  std::string line =
      text("%c %d %lld %lld ", event.process, static_cast<int>(event.kind),
           static_cast<long long>(event.at.count()),
           static_cast<long long>(event.number));
  for (const char c : event.text.substr(0, kLongestText)) {
    line += c == '\n' ? ' ' : c;
  }
  return line + "\n";
}

std::optional<Event> read_line(const std::string& line) {
  Event event;
  int kind = 0;
  long long at = 0;
  long long number = 0;
  int read = 0;
  if (std::sscanf(line.c_str(), "%c %d %lld %lld%n", &event.process, &kind, &at,
                  &number, &read) != 4 ||
      kind < 0 || kind > static_cast<int>(Event::Kind::fails)) {
    return std::nullopt;
  }
  event.kind = static_cast<Event::Kind>(kind);
  event.at = Time(at);
  event.number = number;
  const auto rest = static_cast<std::size_t>(read) + 1;
  if (rest < line.size()) event.text = line.substr(rest);
  return event;
}

}  // namespace demo
