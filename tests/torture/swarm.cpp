#include "tests/torture/swarm.hpp"

#include <poll.h>
#include <signal.h>

#include <filesystem>
#include <system_error>

#include "tests/support/waiting.hpp"

namespace torture {

using std::chrono::seconds;
using tests::FakeCalendar;
using tests::Process;

void Swarm::start(int process, std::optional<seconds> offset,
                  std::uint32_t seed) {
  Member& it = member(process);
  if (it.process) kill(it);
  it.life = {process, it.life.incarnation + 1};
  it.calendar = offset ? std::make_unique<FakeCalendar>(*offset) : nullptr;
  it.stopped = false;
  const nanoseconds time = now();
  it.process = std::make_unique<Process>(settings(it, seed));
  events_.start(it.life, time, offset.value_or(seconds(0)));
}

tests::ProcessSettings Swarm::settings(const Member& member,
                                       std::uint32_t seed) const {
  const auto number = static_cast<std::size_t>(member.life.process);
  const Way& way = ways_[number % ways_.size()];
  tests::ProcessSettings settings = {
      {tests::program_path("torture/worker"), table_, logs_,
       std::to_string(member.life.process),
       std::to_string(member.life.incarnation), std::to_string(seed),
       way.ca_file.empty() ? "-" : way.ca_file},
      environment_of(way.where)};
  if (member.calendar) member.calendar->add_to(settings.environment);
  return settings;
}

void Swarm::kill(int process) {
  if (member(process).process) kill(member(process));
}

void Swarm::kill(Member& member) {
  const nanoseconds time = now();
  member.process->signal(SIGKILL);
  events_.kill(member.life, time);
  bury(member, member.process->wait());
}

void Swarm::stop(int process) {
  Member& it = member(process);
  if (!it.process || it.stopped) return;
  const nanoseconds time = now();
  it.process->signal(SIGSTOP);
  events_.stop(it.life, time);
  it.stopped = true;
}

void Swarm::go_on(int process) { go_on(member(process)); }

void Swarm::go_on(Member& member) {
  if (!member.process || !member.stopped) return;
  member.process->signal(SIGCONT);
  events_.go(member.life, now());
  member.stopped = false;
}

void Swarm::go_on_all() {
  for (Member& one : members_) go_on(one);
}

// Not before it has written how its clocks were when it started.
void Swarm::jump(int process, seconds offset) {
  Member& it = member(process);
  if (!it.process || !it.calendar || !has_written_its_clocks(it)) return;
  const nanoseconds time = now();
  it.calendar->jump_to(offset);
  events_.calendar(it.life, time, offset);
}

// It does so for one name after the other.
bool Swarm::has_written_its_clocks(const Member& member) const {
  std::error_code ec;
  const auto size = std::filesystem::file_size(
      diary_path(logs_, member.life, lock_name(kNames - 1)), ec);
  return !ec && size > 0;
}

void Swarm::look() {
  for (Member& one : members_) {
    if (one.process && one.process->has_ended()) {
      // Whatever its status is.
      events_.complaint(one.life, "it ended, though nobody had asked it to");
      bury(one, one.process->wait());
    }
  }
}

void Swarm::bury(Member& member, int status) {
  events_.exit(member.life, now(), status);
  const std::string complaints = member.process->complaints();
  if (!complaints.empty()) events_.complaint(member.life, complaints);
  member.process.reset();
  member.calendar.reset();
}

// The killed last, so that what they leave behind is fresh.
void Swarm::end() {
  go_on_all();
  const auto is_asked = [](const Member& one) {
    return one.process && one.life.process < kProcesses / 2;
  };
  for (Member& one : members_) {
    if (is_asked(one)) one.process->channel().hang_up();
  }
  const nanoseconds end = now() + tests::kPlenty;
  for (Member& one : members_) {
    if (is_asked(one)) await_end(one, end);
  }
  for (Member& one : members_) {
    if (one.process) kill(one);
  }
}

void Swarm::await_end(Member& member, nanoseconds until) {
  while (!member.process->has_ended() && now() < until) poll(nullptr, 0, 5);
  if (member.process->has_ended()) {
    bury(member, member.process->wait());
  } else {
    events_.hung(member.life, now());
    kill(member);
  }
}

}  // namespace torture
