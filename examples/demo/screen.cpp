#include "examples/demo/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "examples/demo/text.hpp"

namespace demo {
namespace {

constexpr int kBeside = 34;  // Columns beside a lane's cells.

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr &&
         std::strcmp(term, "dumb") != 0;
}

int columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

// How many lanes are at work in a column.
int at_work(const std::vector<Lane>& lanes, std::size_t column) {
  return static_cast<int>(
      std::count_if(lanes.begin(), lanes.end(), [column](const Lane& lane) {
        return column < lane.cells.size() && lane.cells[column] == '#';
      }));
}

const char* colour(char cell, bool alone) {
  switch (cell) {
    case '#':
      return alone ? "\033[30;42m" : "\033[30;41m";
    case '=':
      return "\033[30;43m";
    default:
      return "\033[2m";
  }
}

}  // namespace

Screen::Screen()
    : live_(is_terminal()),
      cells_(live_ ? std::clamp(columns() - kBeside, 20, 80) : 46) {}

void Screen::print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Screen::say(const std::string& line) { print(line + "\n"); }

void Screen::note(const std::string& line) {
  if (live_) {
    notes_.push_back(line);
  } else {
    say("  " + line);
  }
}

void Screen::detail(const std::string& line) {
  if (!live_) say("  " + line);
}

std::string Screen::drawn(const Lane& lane,
                          const std::vector<Lane>& lanes) const {
  std::string row = text("  %c |", lane.process);
  for (std::size_t i = 0; i < static_cast<std::size_t>(cells_); ++i) {
    const char cell = i < lane.cells.size() ? lane.cells[i] : ' ';
    if (live_ && cell != ' ') {
      row += colour(cell, at_work(lanes, i) == 1);
      row += cell;
      row += "\033[0m";
    } else {
      row += cell;
    }
  }
  return row + "| " + lane.status;
}

void Screen::draw(const std::vector<Lane>& lanes) {
  if (!live_) return;
  // No line may wrap, or the way back up would be longer.
  std::string frame = "\033[?7l";
  if (height_ > 0) frame += text("\033[%dA", height_);
  for (const Lane& lane : lanes)
    frame += "\r" + drawn(lane, lanes) + "\033[K\n";
  for (const std::string& note : notes_) frame += "\r  " + note + "\033[K\n";
  height_ = static_cast<int>(lanes.size() + notes_.size());
  print(frame + "\033[?7h");
}

void Screen::finish(const std::vector<Lane>& lanes) {
  if (live_) {
    draw(lanes);
  } else {
    for (const Lane& lane : lanes) say(drawn(lane, lanes));
  }
  height_ = 0;
  notes_.clear();
}

bool Screen::judge(const Claims& claims) {
  bool right = true;
  for (const Claim& claim : claims) {
    const char* mark = claim.right ? "  right  " : "  WRONG  ";
    say(mark + claim.text);
    right = right && claim.right;
  }
  say("");
  return right;
}

}  // namespace demo
