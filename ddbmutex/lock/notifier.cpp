// The telling thread of a Renewer.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"
#include "../../sigv4/waiting.hpp"
#include "renewer.hpp"

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

void Renewer::tell_loop() {
  Guard guard(mutex_);
  while (!stopping_) {
    Handle held;
    const News news = next_news(held);
    if (news != News::none) {
      call_back(guard, *held, news);
      guard.unlock();
      held = Handle();  // Not under the mutex.
      guard.lock();
      continue;
    }
    const BootTime next =
        std::min({ends_.next(), dangers_.next(), questions_.next()});
    teller_sleeps_until_ = next;
    guard.unlock();
    sigv4::drive(nullptr, 0, next, &teller_waker_);
    teller_waker_.clear();
    guard.lock();
    teller_sleeps_until_ = BootTime::min();
  }
  teller_.ended = true;
  changed_.notify_all();
}

// Losses go before dangers, and those before questions; each by its time.
News Renewer::next_news(Handle& held) {
  const BootTime now = BootClock::now();
  while (ends_.next() <= now) lose(ends_.first(), Verdict::expired);
  if (first_loss_ != nullptr) {
    held = take_loss();
    return News::loss;
  }
  const bool danger = dangers_.next() <= now;
  if (!danger && questions_.next() > now) return News::none;
  held = Handle(&(danger ? dangers_ : questions_).first());
  if (danger) {
    held->in_danger = true;
    set_alarm(*held);
  } else {
    unplan(*held);
  }
  return danger ? News::danger : News::question;
}

// REQUIRES: there is one.
Handle Renewer::take_loss() {
  Handle loss, next;
  loss.swap(first_loss_);
  next.swap(loss->next_lost);
  first_loss_.swap(next);
  if (first_loss_ == nullptr) last_loss_ = nullptr;
  return loss;
}

// Without the mutex meanwhile.
void Renewer::call_back(Guard& guard, HeldLease& held, News news) {
  MutexSettings& holder = *held.holder;
  std::shared_ptr<const Listener> listener = holder.listener.lock();
  const bool settled = holder.settled;  // Nothing is told any more.
  const Verdict why = held.lost;
  Signal signal;
  if (news == News::loss) signal.swap(held.signal);
  running_ = &holder;
  guard.unlock();
  bool alive = false;
  // Before the table may be destroyed.
  if (!settled) sigv4::has_memory_for([&] { log(news, why, held); });
  if (!settled && signal.object != nullptr) {
    call(News::signal, why, held, nullptr, signal);
    // Its mutex may have been destroyed by that.
    guard.lock();
    const bool gone = holder.settled;
    guard.unlock();
    if (gone) listener.reset();
  }
  if (!settled) alive = call(news, why, held, listener.get(), signal);
  listener.reset();
  signal.object.reset();
  guard.lock();
  running_ = nullptr;
  changed_.notify_all();
  if (news == News::question && !held.over()) answered(held, alive);
}

// The answer to a question.
bool Renewer::call(News news, Verdict why,
                   [[maybe_unused]] const HeldLease& held,
                   const Listener* listener, const Signal& signal) {
#ifdef __cpp_exceptions
  try {
#endif
    if (news == News::signal) signal.tell(signal.object.get());
    if (listener != nullptr) return listener->tell(*listener, news, why);
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    sigv4::has_memory_for([&] { complain(news, held, e.what()); });
  } catch (...) {
    sigv4::has_memory_for([&] { complain(news, held, ""); });
  }
#endif
  return false;
}

// What goes wrong in a callback has nobody else to be told to; the logger may
// have gone with a table that it has destroyed.
void Renewer::complain(News news, const HeldLease& held,
                       const char* what) const {
  constexpr char kCalled[][sizeof "a stop callback for the loss of"] = {
      "", "a stop callback for the loss of", "on_lost of", "on_danger of",
      "alive of"};
  const std::string text =
      sigv4::format("%s %q threw%[: %s%]", kCalled[static_cast<int>(news)],
                    held.holder->name(), what);
  auto logs = static_cast<bool>(client_.log());
  {
    const std::lock_guard guard(mutex_);
    logs = logs && !stopping_;
  }
  if (logs) {
    sigv4::say(client_.log(), sigv4::LogLevel::error, text);
  } else {
    std::fprintf(stderr, "ddbmutex: %s\n", sigv4::one_line(text).c_str());
  }
}

void Renewer::log(News news, Verdict why, const HeldLease& held) const {
  if (!client_.log() || news == News::question) return;
  const bool loss = news == News::loss;
  sigv4::say(client_.log(),
             loss ? sigv4::LogLevel::error : sigv4::LogLevel::warning,
             sigv4::format("lock %q is %s%s", held.holder->name(),
                           loss ? "lost: " : "in danger: not renewed yet",
                           loss ? words_of(why) : ""));
}

void Renewer::answered(HeldLease& held, bool alive) {
  // A renewal by hand meanwhile has made a plan of its own.
  if (held.renewing || held.renewal.planned()) return;
  const BootTime now = BootClock::now();
  const nanoseconds ttl = held.holder->ttl;
  if (alive) {
    plan(held, renewals_, now);
  } else {
    plan(held, questions_, now + ttl / kAskedPerLease);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
