#include "examples/demo/actor.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "examples/demo/text.hpp"

namespace demo {
namespace {

using Kind = Event::Kind;

std::vector<std::string> command(const Part& part) {
  std::vector<std::string> words = {"/proc/self/exe", "--play"};
  for (const std::string& word : to_words(part)) words.push_back(word);
  return words;
}

}  // namespace

Actor::Actor(const Part& part, int events)
    : part_(part), process_(command(part), {stdin_.out.get(), events, -1}) {}

void Actor::tell() {
  // If it is gone, trouble() says so.
  [[maybe_unused]] const ssize_t written = write(stdin_.in.get(), "!", 1);
}

void Actor::kill() {
  ended_by_us_ = true;
  process_.send(SIGKILL);
  suspend(Doing::dead, 'x');
}

void Actor::stop() {
  process_.stop();
  suspend(Doing::stopped, '-');
}

void Actor::wake() {
  woken_ = true;
  process_.send(SIGCONT);
}

std::string Actor::trouble() {
  if (!failure_.empty()) return failure_;
  const std::optional<int> status = process_.ended();
  if (!status || ended_by_us_ || (done_ && *status == 0)) return {};
  return text("process %c %s", name(), described(*status).c_str());
}

bool Actor::left() { return done_ && process_.ended().has_value(); }

// --- What is heard ---------------------------------------------------------

std::string Actor::hear(const Event& event) {
  switch (event.kind) {
    case Kind::ready:
      ready_ = true;
      break;
    case Kind::waits:
      change(Doing::waits, event.at, '.');
      break;
    case Kind::holds:
      hear_holds(event);
      break;
    case Kind::reads:
      read_ = event.number;
      read_at_ = event.at;
      if (!in_hold_) change(Doing::works, event.at, '#');
      break;
    case Kind::wakes:
      if (woken_ && !owned_on_waking_) owned_on_waking_ = event.number != 0;
      break;
    case Kind::finds:
      return text("%c finds that it lost the lock, and writes nothing", name());
    case Kind::writes:
      return hear_writes(event);
    case Kind::frees:
      return hear_frees(event);
    case Kind::freed:
      ++unlocks_;
      break;
    case Kind::lost:
      losses_.push_back(event.text);
      return text("%c's on_lost is told: %s", name(), event.text.c_str());
    case Kind::done:
      done_ = true;
      break;
    case Kind::fails:
      failure_ = text("process %c: %s", name(), event.text.c_str());
      break;
  }
  return {};
}

void Actor::hear_holds(const Event& event) {
  const Time end(event.number);
  if (!in_hold_) {
    in_hold_ = true;
    written_ = -1;
    holds_.push_back({name(), event.at, end});
    change(Doing::holds, event.at, '#');
    return;
  }
  if (end > holds_.back().end) ++renewals_;
  holds_.back().end = end;
}

std::string Actor::hear_writes(const Event& event) {
  ++updates_;
  written_ = event.number;
  if (in_hold_) return {};
  change(Doing::nothing, event.at, ' ');
  return text("%c read %lld, and wrote %lld %s later", name(), read_, written_,
              in_words(event.at - read_at_).c_str());
}

std::string Actor::hear_frees(const Event& event) {
  if (!in_hold_) return {};
  in_hold_ = false;
  Hold& hold = holds_.back();
  freed_its_own_ = Time(event.number) > event.at;
  // A lease that is over by now was over when it was last said to be, if not
  // before.
  hold.end = freed_its_own_ ? event.at : std::min(event.at, hold.end);
  change(Doing::nothing, event.at, ' ');
  if (written_ < 0) return {};
  return text("%c held the lock for %s: %lld -> %lld", name(),
              in_words(hold.end - hold.begin).c_str(), read_, written_);
}

// --- What is shown ---------------------------------------------------------

void Actor::change(Doing doing, Time at, char mark) {
  doing_ = doing;
  since_ = at;
  // What was foreseen for later does not come to pass.
  while (!spans_.empty() && spans_.back().begin >= at) spans_.pop_back();
  spans_.push_back({mark, at});
}

// Stopped, or dead: what it holds goes on to be held until the lease is over.
void Actor::suspend(Doing doing, char mark) {
  const Time at = now();
  if (in_hold_ && holds_.back().end > at) {
    change(doing, at, '=');
    spans_.push_back({mark, holds_.back().end});
  } else {
    change(doing, at, mark);
  }
}

char Actor::mark_at(Time at) const {
  char mark = ' ';
  for (const Span& span : spans_) {
    if (span.begin > at) break;
    mark = span.mark;
  }
  return mark;
}

Lane Actor::lane(const Window& window) const {
  Lane lane = {name(), "", status(window.now)};
  for (int i = 0; i < window.cells; ++i) {
    // Its middle, so that two holds are never seen in one column.
    const Time at = window.begin + window.cell * i + window.cell / 2;
    lane.cells += at <= window.now ? mark_at(at) : ' ';
  }
  return lane;
}

std::string Actor::status(Time now) const {
  std::string words;
  if (part_.updates > 1) words = text("%d of %d ", updates_, part_.updates);
  const std::string time = in_words(now - since_);
  switch (doing_) {
    case Doing::waits:
      return words + text("waits: %s", time.c_str());
    case Doing::holds:
      words += text("has the lock: %s", time.c_str());
      if (part_.updates > 1) return words;
      return words + text("; lease %.1f",
                          std::chrono::duration<double>(
                              std::max(holds_.back().end - now, Time::zero()))
                              .count());
    case Doing::works:
      return words + "at work";
    case Doing::stopped:
      return words + text("stopped: %s", time.c_str());
    case Doing::dead:
      return words + "killed";
    case Doing::nothing:
      break;
  }
  return words + (done_ ? "done" : "");
}

}  // namespace demo
