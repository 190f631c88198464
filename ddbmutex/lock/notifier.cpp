// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reports one event after another, each without holding Leases::mutex.  A
// callback may destroy its DdbMutex and even the table.
#include "notifier.hpp"

#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"
#include "../../sigv4/waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using Guard = Leases::Guard;

namespace {

// A listener that does not want its lease renewed is asked again this often per
// lease.
constexpr int kQuestionsPerLease = 8;

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

const char* callback_of(News news) {
  switch (news) {
    case News::signal:
      return "a stop callback for the loss of";
    case News::loss:
      return "on_lost of";
    case News::danger:
      return "on_danger of";
    case News::question:
      return "alive of";
    case News::none:
      break;
  }
  return "";
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

// The next event to report.  Losses come before dangers, and dangers before
// questions, no matter which is due first: a callback may be slow, and all
// others wait for it.
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
  if (!danger) next = &alarms.first();
  const bool question = !danger && next->question_at <= now;
  if (danger) next->in_danger = true;
  if (question) next->question_at = BootTime::max();
  leases_.set_alarm(*next);
  // Danger is not reported once the DdbMutex has ended.
  if (!danger && !question) return News::none;
  held = next->shared_from_this();
  return danger ? News::danger : News::question;
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
  Signal signal;
  if (news == News::loss) signal = std::exchange(held.signal, {});
  reporting_ = &settings;
  guard.unlock();
  bool alive = false;
  // First, because a callback may destroy the table.
  if (!silenced) sigv4::try_with_memory([&] { log(news, held, loss); });
  if (!silenced && signal.object != nullptr) {
    call_back(News::signal, held, loss, nullptr, signal);
    // The stop callback may have destroyed the DdbMutex.
    guard.lock();
    const bool gone = settings.silenced;
    guard.unlock();
    if (gone) listener.reset();
  }
  if (!silenced) alive = call_back(news, held, loss, listener.get(), signal);
  listener.reset();
  signal.object.reset();
  guard.lock();
  reporting_ = nullptr;
  leases_.changed.notify_all();
  if (news == News::question && !held.over()) plan_by_answer(held, alive);
}

bool Notifier::call_back(News news, [[maybe_unused]] const HeldLease& held,
                         Verdict loss, const Listener* listener,
                         const Signal& signal) const {
#ifdef __cpp_exceptions
  try {
#endif
    if (news == News::signal) signal.call(signal.object.get());
    if (listener != nullptr) return listener->notify(news, loss);
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    sigv4::try_with_memory([&] { log_exception(news, held, e.what()); });
  } catch (...) {
    sigv4::try_with_memory([&] { log_exception(news, held, ""); });
  }
#endif
  return false;
}

// Logs an exception from a callback.  If the callback has destroyed the table,
// the logger may be gone too, and the text goes to stderr.
void Notifier::log_exception(News news, const HeldLease& held,
                             const char* what) const {
  const std::string text = sigv4::join({callback_of(news), " ",
                                        sigv4::in_quotes(held.settings->name()),
                                        " threw", sigv4::if_any(": ", what)});
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
  if (!log || news == News::question) return;
  const bool lost = news == News::loss;
  sigv4::say(
      log, lost ? sigv4::LogLevel::error : sigv4::LogLevel::warning,
      sigv4::join({"lock ", sigv4::in_quotes(held.settings->name()), " is ",
                   lost ? "lost: " : "in danger: not renewed yet",
                   lost ? words_of(loss) : ""}));
}

void Notifier::plan_by_answer(HeldLease& held, bool alive) {
  // The user may have renewed the lease meanwhile.  That has planned the next
  // renewal or question.
  const bool planned =
      held.renewal.planned() || held.question_at != BootTime::max();
  if (held.renewing || planned) return;
  const BootTime now = BootClock::now();
  const std::chrono::nanoseconds ttl = held.settings->ttl;
  if (alive) {
    leases_.renew_at(held, now);
  } else {
    leases_.ask_at(held, now + ttl / kQuestionsPerLease);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
