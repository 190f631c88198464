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
    HoldPtr hold;
    const News news = next_news(hold);
    if (news != News::none) {
      report(guard, *hold, news);
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

// The next event to report.  Losses come before all dangers, because a slow
// callback delays everything behind it.
News Notifier::next_news(HoldPtr& hold) {
  const BootTime now = BootClock::now();
  lose_overdue(now);
  Order& to_report = holds_.to_report;
  if (next_in(to_report) > now) return News::none;
  hold = to_report.begin()->second;
  if (hold->has_loss_to_tell()) {
    holds_.forget_report(*hold);
    return News::loss;
  }
  const bool danger = holds_.danger_at(*hold) <= now;
  if (danger) hold->in_danger = true;
  holds_.publish(*hold);  // Plans its next report.
  return danger ? News::danger : News::none;
}

// Puts the reports of these in front.
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

void Notifier::report(Guard& guard, Hold& hold, News news) {
  MutexSettings& settings = *hold.settings;
  std::shared_ptr<const Listener> listener = settings.listener.lock();
  const bool silenced = settings.silenced;
  const Verdict loss = hold.outcome().verdict;
  reporting_ = &settings;
  guard.unlock();
  // First, because a callback may destroy the table.
  if (!silenced) log(news, hold, loss);
  if (listener) call_back(news, hold, loss, *listener);
  listener.reset();  // May destroy it, so not under the mutex.
  guard.lock();
  reporting_ = nullptr;
  holds_.changed.notify_all();
}

void Notifier::call_back(News news, [[maybe_unused]] const Hold& hold,
                         Verdict loss, const Listener& listener) const {
#ifdef __cpp_exceptions
  try {
#endif
    listener.notify(news, loss);
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    log_exception(news, hold, e.what());
  } catch (...) {
    log_exception(news, hold, "");
  }
#endif
}

// Logs an exception from a callback.  If the callback has destroyed the table,
// the logger may be gone too, and the text goes to stderr.
void Notifier::log_exception(News news, const Hold& hold,
                             const char* what) const {
  bool logs;
  {
    const Guard guard(holds_.mutex);
    logs = holds_.client.log() && !holds_.stopping;
  }
  sigv4::try_with_memory([&] {
    const std::string text =
        sigv4::join({news == News::loss ? "on_lost of " : "on_danger of ",
                     sigv4::in_quotes(hold.settings->name()), " threw",
                     sigv4::if_any(": ", what)});
    if (logs) {
      sigv4::say(holds_.client.log(), sigv4::LogLevel::error, text);
    } else {
      std::fprintf(stderr, "ddbmutex: %s\n", sigv4::one_line(text).c_str());
    }
  });
}

void Notifier::log(News news, const Hold& hold, Verdict loss) const {
  const sigv4::LogPtr& log = holds_.client.log();
  if (!log) return;
  const bool lost = news == News::loss;
  sigv4::try_with_memory([&] {
    sigv4::say(
        log, lost ? sigv4::LogLevel::error : sigv4::LogLevel::warning,
        sigv4::join({"lock ", sigv4::in_quotes(hold.settings->name()), " is ",
                     lost ? "lost: " : "in danger: not renewed yet",
                     lost ? words_of(loss) : ""}));
  });
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
