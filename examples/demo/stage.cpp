#include "examples/demo/stage.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "examples/demo/text.hpp"

namespace demo {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFrame{40};
// As late may a process be that has waited, though the machine did not stall.
constexpr milliseconds kUsuallyLate{10};
// Longer than lock() bears with errors, so that they are told instead.
constexpr std::chrono::seconds kLongestWait{60};

std::string stamped(Time time, const std::string& what) {
  return text("%6.2f s  %s", std::chrono::duration<double>(time).count(),
              what.c_str());
}

}  // namespace

Stage::Stage(Screen& screen, Time cell)
    : screen_(screen), cell_(cell), begin_(now()) {}

Actor& Stage::add(const Part& part) {
  Actor& actor = actors_.emplace_back(part, events_.in.get());
  run_until(text("process %c begins", part.name),
            [&] { return actor.ready(); });
  return actor;
}

void Stage::begin() { begin_ = now(); }

void Stage::run_until(const std::string& what,
                      const std::function<bool()>& there) {
  const Time end = now() + kLongestWait;
  while (!there()) {
    if (now() >= end) {
      throw std::runtime_error(text("%s: did not come about within %s",
                                    what.c_str(),
                                    in_words(kLongestWait).c_str()));
    }
    step(kFrame);
  }
}

void Stage::run_for(Time time) {
  const Time end = now() + time;
  while (now() < end) step(std::min<Time>(kFrame, end - now()));
}

void Stage::note(const std::string& what) {
  screen_.note(stamped(now() - begin_, what));
}

void Stage::finish() {
  while (read_events(Time::zero())) continue;
  screen_.finish(lanes());
}

void Stage::step(Time longest) {
  stop_if_interrupted();
  const Time end = now() + longest;
  read_events(longest);
  const Time late = now() - end;
  if (late > kUsuallyLate) stalled_ += late;
  check();
  if (now() - drawn_ < kFrame) return;
  drawn_ = now();
  screen_.draw(lanes());
}

// False if there are none.
bool Stage::read_events(Time longest) {
  const auto wait = std::chrono::ceil<milliseconds>(longest).count();
  pollfd out = {events_.out.get(), POLLIN, 0};
  if (poll(&out, 1, static_cast<int>(wait)) <= 0) return false;
  char bytes[4096];
  const ssize_t size = read(events_.out.get(), bytes, sizeof bytes);
  if (size <= 0) return false;
  unread_.append(bytes, static_cast<std::size_t>(size));
  std::size_t end;
  while ((end = unread_.find('\n')) != unread_.npos) {
    const std::optional<Event> event = read_line(unread_.substr(0, end));
    unread_.erase(0, end + 1);
    if (event) hear(*event);
  }
  return true;
}

void Stage::hear(const Event& event) {
  for (Actor& actor : actors_) {
    if (actor.name() != event.process) continue;
    const std::string said = actor.hear(event);
    if (said.empty()) continue;
    const std::string line = stamped(event.at - begin_, said);
    if (event.kind == Event::Kind::writes || event.kind == Event::Kind::frees) {
      screen_.detail(line);
    } else {
      screen_.note(line);
    }
  }
}

void Stage::check() {
  for (Actor& actor : actors_) {
    if (actor.trouble().empty()) continue;
    while (read_events(Time::zero())) continue;  // What it said at the last.
    const std::string trouble = actor.trouble();
    if (!trouble.empty()) throw std::runtime_error(trouble);
  }
}

// The newest part, if all is too much.
std::vector<Lane> Stage::lanes() const {
  Window window = {begin_, now(), cell_, screen_.cells()};
  const auto past = (window.now - window.begin) / cell_ + 1;
  if (past > window.cells) window.begin += cell_ * (past - window.cells);
  std::vector<Lane> lanes;
  for (const Actor& actor : actors_) lanes.push_back(actor.lane(window));
  return lanes;
}

}  // namespace demo
