// The telling thread of a Keeper.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "keeper.hpp"

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

void Keeper::tell_loop() {
  Guard guard(mutex_);
  while (!stopping_) {
    if (tell_next(guard)) continue;
    BootTime next = BootTime::max();
    for (const Plan& plan : plans_) {
      next = std::min({next, plan.alarm, plan.question});
    }
    teller_sleeps_until_ = next;
    teller_clock_.set(next);
    guard.unlock();
    teller_clock_.wait();
    guard.lock();
    teller_sleeps_until_ = BootTime::min();
  }
  tell_ended_ = true;
  changed_.notify_all();
}

// False if there is nothing to be told now.  Losses go before dangers, and
// those before questions.
bool Keeper::tell_next(Guard& guard) {
  const BootTime now = BootClock::now();
  std::vector<Handle> gone;
  lose_ended(now, gone);
  if (!gone.empty()) {
    guard.unlock();
    gone.clear();  // Not under the mutex.
    guard.lock();
  }
  if (!losses_.empty()) {
    Handle held = std::move(losses_.front());
    losses_.erase(losses_.begin());
    const Verdict why = *held->lost;
    call_back(guard, std::move(held), why);
    return true;
  }
  const auto first = std::min_element(plans_.begin(), plans_.end(),
                                      [](const Plan& one, const Plan& other) {
                                        return one.alarm < other.alarm;
                                      });
  if (first == plans_.end() || first->alarm > now) return ask_next(guard);
  Handle held = first->held;
  held->in_danger = true;
  set_alarm(*held);
  call_back(guard, std::move(held), std::nullopt);
  return true;
}

// Those whose claim is over, the first that was is told first.
void Keeper::lose_ended(BootTime now, std::vector<Handle>& gone) {
  for (const Plan& plan : plans_) {
    const bool rung = plan.alarm <= now;
    if (rung && now >= plan.held->lease.claim_end()) gone.push_back(plan.held);
  }
  std::sort(gone.begin(), gone.end(), [](const Handle& one, const Handle& two) {
    return one->lease.claim_end() < two->lease.claim_end();
  });
  for (const Handle& held : gone) lose(held, Verdict::expired);
}

// False if nobody is to be asked now.
bool Keeper::ask_next(Guard& guard) {
  const auto first = std::min_element(plans_.begin(), plans_.end(),
                                      [](const Plan& one, const Plan& other) {
                                        return one.question < other.question;
                                      });
  if (first == plans_.end() || first->question > BootClock::now()) return false;
  Handle held = first->held;
  unplan(*held);
  auto callbacks = held->holder->callbacks;
  if (callbacks == nullptr) return true;
  running_ = held->holder.get();
  guard.unlock();
  bool alive = false;
  contained([&] { alive = callbacks->alive(); },
            "alive of \"" + held->holder->terms.name + "\"", client_->log());
  callbacks.reset();
  guard.lock();
  running_ = nullptr;
  changed_.notify_all();
  if (!held->over()) {
    const Plan& plan = plan_of(*held);
    // A renewal by hand meanwhile has made a plan of its own.
    const bool planned = held->renewing || plan.question != BootTime::max() ||
                         plan.renewal != BootTime::max();
    const BootTime now = BootClock::now();
    const nanoseconds ttl = held->holder->terms.ttl;
    if (!planned && alive) renew_at(held, now);
    if (!planned && !alive) ask_at(*held, now + ttl / kAskedPerLease);
  }
  guard.unlock();
  held.reset();
  guard.lock();
  return true;
}

// on_lost if there is a reason, else on_danger.
void Keeper::call_back(Guard& guard, Handle held, std::optional<Verdict> why) {
  auto callbacks = held->holder->callbacks;
  running_ = held->holder.get();
  Signal signal;
  if (why) std::swap(signal, held->signal);
  guard.unlock();
  const std::string lock_name = "\"" + held->holder->terms.name + "\"";
  const sigv4::Log& log = client_->log();
  // Its mutex may have been destroyed by what was told before.
  const auto still_wanted = [&] {
    const Guard again(mutex_);
    return held->holder->callbacks != nullptr;
  };
  if (callbacks == nullptr) {
    // Nothing is told any more.
  } else if (why) {
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
  running_ = nullptr;
  changed_.notify_all();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
