// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reports one event after another, each without holding Holds::mutex.  A
// callback may destroy its DdbMutex and even the table.
#include "notifier.hpp"

#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"
#include "../../sigv4/waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using Guard = Holds::Guard;

namespace {

const char* words_of(Verdict loss) {
  switch (loss) {
    case Verdict::taken:
      return "another has it";
    case Verdict::deleted:
      return "its item is gone";
    default:
      return "its lease has ended";
  }
}

}  // namespace

void Notifier::run() {
  Guard guard(holds_.mutex);
  Sleeper& sleeper = holds_.notifier;
  while (!holds_.stopping) {
    if (const std::optional<Event> event = take_event()) {
      report(guard, *event);
      continue;
    }
    const BootTime next = next_in(holds_.to_report);
    sleeper.set_sleeps_until(next);
    guard.unlock();
    sigv4::wait_until(next, &sleeper.waker());
    sleeper.waker().clear();
    guard.lock();
    sleeper.set_awake();
  }
}

// The next event that is due, if any: it counts as reported.  Losses come
// before all dangers, because a slow callback delays everything behind it.
std::optional<Notifier::Event> Notifier::take_event() {
  const BootTime now = BootClock::now();
  lose_overdue(now);
  while (next_in(holds_.to_report) <= now) {
    const HoldPtr hold = holds_.to_report.begin()->second;
    if (hold->has_loss_to_tell()) {
      holds_.forget_report(*hold);
      return Event{hold, hold->loss->why};
    }
    const bool in_danger = holds_.danger_at(*hold) <= now;
    if (in_danger) hold->danger_reported = true;
    // Plans its next report.  Reads danger_reported, so that comes first.
    holds_.publish(*hold);
    if (in_danger) return Event{hold, std::nullopt};
  }
  return std::nullopt;
}

// Marks each lock as lost whose claim has ended, so that its loss is reported
// first.
void Notifier::lose_overdue(BootTime now) {
  const Order& to_report = holds_.to_report;
  for (auto at = to_report.begin();
       at != to_report.end() && at->first.when <= now;) {
    Hold& hold = *at->second;
    ++at;  // Before the Hold moves.
    holds_.lose_if_ended(hold, now);
  }
}

bool Notifier::reports_to(const MutexSettings& settings) const {
  if (reporting_ == &settings) return true;
  for (const auto& [key, hold] : holds_.to_report) {
    if (!hold->has_loss_to_tell()) break;
    if (hold->settings.get() == &settings) return true;
  }
  return false;
}

void Notifier::report(Guard& guard, const Event& event) {
  MutexSettings& settings = *event.hold->settings;
  std::shared_ptr<const Listener> listener = settings.listener.lock();
  const bool silenced = settings.silenced;
  reporting_ = &settings;
  guard.unlock();
  // First, because a callback may destroy the table.
  if (!silenced) log(event);
  if (listener) call_back(event, *listener);
  listener.reset();  // May destroy it, so not under the mutex.
  guard.lock();
  reporting_ = nullptr;
  holds_.changed.notify_all();
}

void Notifier::call_back(const Event& event, const Listener& listener) const {
#ifdef __cpp_exceptions
  try {
#endif
    if (event.loss) {
      listener.on_lost(*event.loss);
    } else {
      listener.on_danger();
    }
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    log_exception(event, e.what());
  } catch (...) {
    log_exception(event, "");
  }
#endif
}

// If the callback has destroyed the table, the logger may be gone too, and the
// text goes to stderr.
void Notifier::log_exception(const Event& event, const char* what) const {
  bool logs;
  {
    const Guard guard(holds_.mutex);
    logs = holds_.client.log() && !holds_.stopping;
  }
  sigv4::try_with_memory([&] {
    const std::string text =
        sigv4::join({event.loss ? "on_lost of " : "on_danger of ",
                     sigv4::in_quotes(event.hold->settings->name()), " threw",
                     sigv4::if_any(": ", what)});
    if (logs) {
      sigv4::say(holds_.client.log(), sigv4::LogLevel::error, text);
    } else {
      std::fprintf(stderr, "ddbmutex: %s\n", sigv4::one_line(text).c_str());
    }
  });
}

void Notifier::log(const Event& event) const {
  const sigv4::LogPtr& log = holds_.client.log();
  if (!log) return;
  sigv4::try_with_memory([&] {
    const std::string lock = sigv4::join(
        {"lock ", sigv4::in_quotes(event.hold->settings->name()), " is "});
    if (event.loss) {
      sigv4::say(log, sigv4::LogLevel::error,
                 sigv4::join({lock, "lost: ", words_of(*event.loss)}));
    } else {
      sigv4::say(log, sigv4::LogLevel::warning,
                 sigv4::join({lock, "in danger: not renewed yet"}));
    }
  });
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
