// The telling thread of a Renewer.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "renewer_core.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using std::chrono::nanoseconds;

namespace {

// As often as that a holder is asked whether it is alive that was not.
constexpr int kAskedPerLease = 8;

const char* words_of(Verdict why) {
  switch (why) {
    case Verdict::taken:
      return "another has it";
    case Verdict::deleted:
      return "its item is gone";
    default:
      return "its lease has ended";
  }
}

#ifdef __cpp_exceptions

// What goes wrong in a callback has nobody else to be told to.
void complain(const sigv4::Log& log, const std::string& text) {
  if (log) {
    sigv4::say(log, sigv4::LogLevel::error, text);
  } else {
    std::fprintf(stderr, "ddbmutex: %s\n", text.c_str());
  }
}

template <class Callback>
void contained(const Callback& callback, const std::string& which,
               const sigv4::Log& log) {
  try {
    callback();
  } catch (const std::exception& e) {
    complain(log, which + " threw: " + e.what());
  } catch (...) {
    complain(log, which + " threw");
  }
}

#else

template <class Callback>
void contained(const Callback& callback, const std::string&,
               const sigv4::Log&) {
  callback();
}

#endif

}  // namespace

void Renewer::Core::tell_loop() {
  std::unique_lock<std::mutex> guard(mutex);
  while (!stopping) {
    if (tell_next(guard)) continue;
    teller_sleeps_until = std::min(first_of(alarms), first_of(questions));
    teller_clock.set(teller_sleeps_until);
    guard.unlock();
    teller_clock.wait();
    guard.lock();
    teller_sleeps_until = BootTime::min();
  }
  Alarms dropped, dropped_questions;
  for (auto& alarm : alarms) alarm.second->alarm.reset();
  for (auto& question : questions) question.second->question.reset();
  dropped.swap(alarms);
  dropped_questions.swap(questions);
  tell_ended = true;
  changed.notify_all();
  guard.unlock();
}

// False if there is nothing to be told now.
bool Renewer::Core::tell_next(std::unique_lock<std::mutex>& guard) {
  const BootTime now = BootClock::now();
  if (!alarms.empty() && alarms.begin()->first <= now) {
    Handle held = alarms.begin()->second;
    if (now >= held->lease.claim_end()) {
      lose(held, Verdict::expired);
    } else {
      held->in_danger = true;
      set_alarm(held);
      call_back(guard, std::move(held), std::nullopt);
    }
    return true;
  }
  if (losses.empty()) return ask_next(guard);
  Handle held = std::move(losses.front());
  losses.pop_front();
  const Verdict why = *held->lost;
  call_back(guard, std::move(held), why);
  return true;
}

// False if nobody is to be asked now.
bool Renewer::Core::ask_next(std::unique_lock<std::mutex>& guard) {
  if (first_of(questions) > BootClock::now()) return false;
  Handle held = questions.begin()->second;
  unschedule(*held);
  auto callbacks = held->holder->callbacks_;
  if (callbacks == nullptr) return true;
  running = held->holder.get();
  guard.unlock();
  bool alive = false;
  contained([&] { alive = callbacks->alive(); },
            "alive of \"" + held->holder->terms.name + "\"", client->log());
  callbacks.reset();
  guard.lock();
  running = nullptr;
  changed.notify_all();
  // A renewal by hand meanwhile has made a plan of its own.
  const bool planned = held->renewing || held->question || held->task;
  if (!held->over() && !planned) {
    const BootTime now = BootClock::now();
    if (alive) {
      schedule_renewal(held, now);
    } else {
      ask_at(held, now + nanoseconds(held->holder->terms.ttl) / kAskedPerLease);
    }
  }
  guard.unlock();
  held.reset();
  guard.lock();
  return true;
}

// on_lost if there is a reason, else on_danger.
void Renewer::Core::call_back(std::unique_lock<std::mutex>& guard, Handle held,
                              std::optional<Verdict> why) {
  auto callbacks = held->holder->callbacks_;
  if (callbacks == nullptr) return;
  running = held->holder.get();
  Signal signal;
  if (why) std::swap(signal, held->signal);
  guard.unlock();
  const std::string lock_name = "\"" + held->holder->terms.name + "\"";
  const sigv4::Log& log = client->log();
  // Its mutex may have been destroyed by what was told before.
  const auto still_wanted = [&] {
    const std::lock_guard<std::mutex> again(mutex);
    return held->holder->callbacks_ != nullptr;
  };
  if (why) {
    if (signal.object != nullptr) {
      contained([&] { signal.tell(signal.object.get()); },
                "what waits for a loss of " + lock_name, log);
    }
    if (still_wanted() && callbacks->on_lost) {
      contained([&] { callbacks->on_lost(*why); }, "on_lost of " + lock_name,
                log);
    }
    sigv4::say(log, sigv4::LogLevel::error,
               "lock " + lock_name + " is lost: " + words_of(*why));
  } else {
    if (callbacks->on_danger) {
      contained([&] { callbacks->on_danger(); }, "on_danger of " + lock_name,
                log);
    }
    sigv4::say(log, sigv4::LogLevel::warning,
               "lock " + lock_name + " is in danger: not renewed yet");
  }
  callbacks.reset();
  held.reset();
  signal = {};
  guard.lock();
  running = nullptr;
  changed.notify_all();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
