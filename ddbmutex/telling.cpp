// The telling thread of a Keeper.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "../sigv4/text.hpp"
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

}  // namespace

void Keeper::tell_loop() {
  Guard guard(mutex_);
  while (!stopping_) {
    Handle held;
    const News news = next_news(held);
    if (news != News::none) {
      call_back(guard, *held, news);
      guard.unlock();
      held.reset();  // Not under the mutex.
      guard.lock();
      continue;
    }
    BootTime next = BootTime::max();
    for (const Handle& one : held_) {
      next = std::min({next, one->alarm, one->question});
    }
    teller_sleeps_until_ = next;
    teller_clock_.set(next);
    guard.unlock();
    teller_clock_.wait();
    guard.lock();
    teller_sleeps_until_ = BootTime::min();
  }
}

// Losses go before dangers, and those before questions.
Keeper::News Keeper::next_news(Handle& held) {
  const BootTime now = BootClock::now();
  lose_ended(now);
  if (!losses_.empty()) {
    held = std::move(losses_.front());
    losses_.erase(losses_.begin());
    return News::loss;
  }
  held = first_due(&Held::alarm, now);
  if (held != nullptr) {
    held->in_danger = true;
    set_alarm(*held);
    return News::danger;
  }
  held = first_due(&Held::question, now);
  if (held == nullptr) return News::none;
  unplan(*held);
  return News::question;
}

// Those whose claim is over, the first that was is told first.
void Keeper::lose_ended(BootTime now) {
  for (;;) {
    Handle first;  // Never the last to go.
    for (const Handle& one : held_) {
      const BootTime end = one->lease.claim_end();
      if (one->alarm > now || end > now) continue;
      if (first == nullptr || end < first->lease.claim_end()) first = one;
    }
    if (first == nullptr) return;
    lose(first, Verdict::expired);
  }
}

// Null if there is none.
Handle Keeper::first_due(BootTime Held::*when, BootTime now) const {
  Handle first;
  for (const Handle& one : held_) {
    const Held& held = *one;
    const bool due = held.*when <= now;
    if (due && (first == nullptr || held.*when < (*first).*when)) first = one;
  }
  return first;
}

// Without the mutex meanwhile.
void Keeper::call_back(Guard& guard, Held& held, News news) {
  Holder& holder = *held.holder;
  std::shared_ptr<const Listener> listener = holder.listener;
  const bool settled = holder.settled;  // Nothing is told any more.
  const Verdict why = held.lost;
  Signal signal;
  if (news == News::loss) std::swap(signal, held.signal);
  running_ = &holder;
  guard.unlock();
  bool alive = false;
  if (!settled && signal.object != nullptr) {
    call(News::signal, why, held, nullptr, signal);
    // Its mutex may have been destroyed by that.
    guard.lock();
    const bool gone = holder.settled;
    guard.unlock();
    if (gone) listener.reset();
  }
  if (!settled) {
    alive = call(news, why, held, listener.get(), signal);
    log(news, why, held);
  }
  listener.reset();
  signal = {};
  guard.lock();
  running_ = nullptr;
  changed_.notify_all();
  if (news == News::question && !held.over()) answered(held, alive);
}

namespace {

// The answer to a question.
bool call_one(const Listener* listener, const Signal& signal, Verdict why,
              Keeper::News news) {
  using News = Keeper::News;
  if (news == News::signal) {
    signal.tell(signal.object.get());
  } else if (listener == nullptr) {
    return false;
  } else if (news == News::loss) {
    listener->lost(why);
  } else if (news == News::danger) {
    listener->danger();
  }
  return news == News::question && listener->alive();
}

}  // namespace

bool Keeper::call(News news, Verdict why, const Held& held,
                  const Listener* listener, const Signal& signal) {
#ifdef __cpp_exceptions
  try {
    return call_one(listener, signal, why, news);
  } catch (const std::exception& e) {
    complain(news, held, e.what());
  } catch (...) {
    complain(news, held, "");
  }
  return false;
#else
  static_cast<void>(held);
  return call_one(listener, signal, why, news);
#endif
}

// What goes wrong in a callback has nobody else to be told to.
void Keeper::complain(News news, const Held& held, const char* what) const {
  constexpr const char* kCalled[] = {"", "what waits for a loss of",
                                     "on_lost of", "on_danger of", "alive of"};
  const std::string text =
      sigv4::format("%s \"%s\" threw%s%s",
                    {kCalled[static_cast<int>(news)], held.holder->name,
                     *what == '\0' ? "" : ": ", what});
  if (client_.log()) {
    sigv4::say(client_.log(), sigv4::LogLevel::error, text);
  } else {
    std::fprintf(stderr, "ddbmutex: %s\n", text.c_str());
  }
}

void Keeper::log(News news, Verdict why, const Held& held) const {
  if (!client_.log() || news == News::question) return;
  const bool loss = news == News::loss;
  sigv4::say(client_.log(),
             loss ? sigv4::LogLevel::error : sigv4::LogLevel::warning,
             sigv4::format("lock \"%s\" is %s%s",
                           {held.holder->name,
                            loss ? "lost: " : "in danger: not renewed yet",
                            loss ? words_of(why) : ""}));
}

void Keeper::answered(Held& held, bool alive) {
  // A renewal by hand meanwhile has made a plan of its own.
  const bool planned = held.renewing || held.question != BootTime::max() ||
                       held.renewal != BootTime::max();
  if (planned) return;
  const BootTime now = BootClock::now();
  const nanoseconds ttl = held.holder->ttl;
  if (alive) {
    renew_at(held, now);
  } else {
    ask_at(held, now + ttl / kAskedPerLease);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
