// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reports one event after another, each without holding Leases::mutex.  A
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

using Guard = Leases::Guard;

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
  Guard guard(leases_.mutex);
  Sleeper& sleeper = leases_.notifier;
  while (!leases_.stopping) {
    HeldLeasePtr held;
    const News news = next_news(held);
    if (news != News::none) {
      report(guard, *held, news);
      guard.unlock();
      held = nullptr;  // Without the mutex, because this may be the last one.
      guard.lock();
      continue;
    }
    const BootTime next = leases_.alarms.next();
    sleeper.set_sleeps_until(next);
    guard.unlock();
    sigv4::wait_until(next, &sleeper.waker());
    sleeper.waker().clear();
    guard.lock();
    sleeper.set_sleeps_until(BootTime::min());
  }
}

void Notifier::lose_ended(BootTime now) {
  const auto has_ended = [now](const HeldLease& held) {
    return held.lease.claim_end() <= now;
  };
  while (HeldLease* const held = leases_.alarms.find_due(now, has_ended)) {
    leases_.lose(*held, Verdict::expired);
  }
}

// The next event to report.  Losses come before dangers, no matter which is due
// first: a callback may be slow, and all others wait for it.
News Notifier::next_news(HeldLeasePtr& held) {
  const BootTime now = BootClock::now();
  Agenda& alarms = leases_.alarms;
  lose_ended(now);
  if (leases_.first_loss != nullptr) {
    held = leases_.take_loss();
    return News::loss;
  }
  if (alarms.next() > now) return News::none;
  HeldLease* next = alarms.find_due(
      now, [&](const HeldLease& one) { return leases_.danger_at(one) <= now; });
  const bool danger = next != nullptr;
  // Danger is not reported once the DdbMutex has ended.
  if (!danger) next = &alarms.first();
  if (danger) next->in_danger = true;
  leases_.set_alarm(*next);
  if (!danger) return News::none;
  held = next->shared_from_this();
  return News::danger;
}

bool Notifier::reports_to(const MutexSettings& settings) const {
  if (reporting_ == &settings) return true;
  for (const HeldLease* held = leases_.first_loss.get(); held != nullptr;
       held = held->next_lost.get()) {
    if (held->settings.get() == &settings) return true;
  }
  return false;
}

void Notifier::report(Guard& guard, HeldLease& held, News news) {
  MutexSettings& settings = *held.settings;
  std::shared_ptr<const Listener> listener = settings.listener.lock();
  const bool silenced = settings.silenced;
  const Verdict loss = Leases::end_of(held).verdict;
  reporting_ = &settings;
  guard.unlock();
  // First, because a callback may destroy the table.
  if (!silenced) sigv4::try_with_memory([&] { log(news, held, loss); });
  if (!silenced && listener) call_back(news, held, loss, *listener);
  listener.reset();
  guard.lock();
  reporting_ = nullptr;
  leases_.changed.notify_all();
}

void Notifier::call_back(News news, [[maybe_unused]] const HeldLease& held,
                         Verdict loss, const Listener& listener) const {
#ifdef __cpp_exceptions
  try {
#endif
    listener.notify(news, loss);
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    sigv4::try_with_memory([&] { log_exception(news, held, e.what()); });
  } catch (...) {
    sigv4::try_with_memory([&] { log_exception(news, held, ""); });
  }
#endif
}

// Logs an exception from a callback.  If the callback has destroyed the table,
// the logger may be gone too, and the text goes to stderr.
void Notifier::log_exception(News news, const HeldLease& held,
                             const char* what) const {
  const std::string text =
      sigv4::join({news == News::loss ? "on_lost of " : "on_danger of ",
                   sigv4::in_quotes(held.settings->name()), " threw",
                   sigv4::if_any(": ", what)});
  auto logs = static_cast<bool>(leases_.client.log());
  {
    const Guard guard(leases_.mutex);
    logs = logs && !leases_.stopping;
  }
  if (logs) {
    sigv4::say(leases_.client.log(), sigv4::LogLevel::error, text);
  } else {
    std::fprintf(stderr, "ddbmutex: %s\n", sigv4::one_line(text).c_str());
  }
}

void Notifier::log(News news, const HeldLease& held, Verdict loss) const {
  const sigv4::LogPtr& log = leases_.client.log();
  if (!log) return;
  const bool lost = news == News::loss;
  sigv4::say(
      log, lost ? sigv4::LogLevel::error : sigv4::LogLevel::warning,
      sigv4::join({"lock ", sigv4::in_quotes(held.settings->name()), " is ",
                   lost ? "lost: " : "in danger: not renewed yet",
                   lost ? words_of(loss) : ""}));
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
