// Core::mutex is held for memory only, never while a source is asked or a text
// is logged.
#include "keys.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "../backoff.hpp"
#include "../memory.hpp"
#include "../shared.hpp"
#include "../system.hpp"
#include "../text.hpp"
#include "../thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
using State = KeyOutcome::State;

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Threads with such sources that there may be.
constexpr int kMostHung = 2;
constexpr std::chrono::minutes kLongestLead{15};
// Between a signature and its arrival: no longer than this before their end
// keys are taken to have ended.
constexpr seconds kLongestWay{2};
// Between the beginnings of fetches that nobody waits for.
constexpr milliseconds kShortestPause{100};
constexpr Backoff::Limits kPauses{kShortestPause, seconds(60), 0.5};
// A fetch that comes so soon after another brings the same.
constexpr seconds kJustNow{1};

// As atomics have times.
constexpr BootTime::rep count_of(BootTime time) {
  return time.time_since_epoch().count();
}
constexpr BootTime::rep kNotAtAll = count_of(BootTime::min());

std::int64_t seconds_of(nanoseconds time) { return time / seconds(1); }

}  // namespace

struct Keys::Core {
  Core(const KeySourcePtr& the_source, UtcNow now, const LogPtr& the_log,
       nanoseconds the_longest)
      : source(the_source),
        utc_now(now),
        log(the_log),
        longest_fetch(the_longest) {}

  // One run of the source, and who waits for it.
  struct Run {
    Run(const std::shared_ptr<Core>& whose, std::int64_t time)
        : core(whose), utc_now(time) {}

    const std::shared_ptr<Core> core;
    const std::int64_t utc_now;
    Waker done;
    Waker stop;
    // Both: GUARDED_BY(Core::mutex)
    pthread_t thread{};
    std::string told;  // What the source has said so far.
  };

  void tell_to_stop(BootTime by);
  void await_stop();

  // For these the mutex is held.
  bool serves(BootTime time) const;
  OutcomePtr why_none() const;
  bool may_ask(BootTime time) const;
  void begin(const std::shared_ptr<Core>& self);
  void leave_if_hung(BootTime time);
  void leave();
  void install(KeyOutcome&& outcome);
  void install_keys(KeyOutcome&& outcome, BootTime time);

  KeyOutcome ask(const Fetch& fetch);
  void run(Run& own);
  void tell(const KeyOutcome& outcome);

  const KeySourcePtr source;
  const UtcNow utc_now;  // For as long as there are the Keys.
  const LogPtr log;
  const nanoseconds longest_fetch;
  // Of the fetching thread, one at a time.
  std::string told_warnings;  // Each with a line end.
  std::string told_id;

  // The keys serve until then, whatever comes but a refusal: so that those who
  // have them need no mutex to know it.
  std::atomic<BootTime::rep> serve_for_sure{kNotAtAll};
  // The same of these keys, and until then now() begins no fetch.
  std::atomic<BootTime::rep> quiet_until{kNotAtAll};
  std::atomic<const KeyOutcome*> quiet{nullptr};

  Mutex mutex;
  // All below: GUARDED_BY(mutex)
  bool registered = false;  // For exit().
  bool stopping = false;
  BootTime stop_by = BootTime::max();
  std::shared_ptr<Run> fetch;        // Under way.
  std::optional<pthread_t> to_join;  // Has ended, or is about to.
  int hung = 0;                      // Threads that are not waited for.
  OutcomePtr keys;                   // Those found last; may be null.
  BootTime serve_until{};            // Without a look for others.
  bool keys_refused = false;
  OutcomePtr failure;  // Why there are no newer ones; null if there are.
  Backoff backoff;     // After failures.
  BootTime begun{};    // The last fetch.
  BootTime due = BootTime::min();
};

// Until they end; beyond only if it has turned out that there are no others.
bool Keys::Core::serves(BootTime time) const {
  return keys != nullptr && !keys_refused &&
         (time < serve_until || failure != nullptr);
}

// For one who waits.  What has failed in passing is asked again in its own
// time; anything else not before the answer can be another.
bool Keys::Core::may_ask(BootTime time) const {
  if (failure != nullptr && failure->state == State::failed) {
    return time >= due;
  }
  return time - begun >= kJustNow;
}

// REQUIRES: none serve.
Keys::OutcomePtr Keys::Core::why_none() const {
  if (failure != nullptr) return failure;
  return share<KeyOutcome>(
      failed_keys("%[the keys from %s have expired, and new %]keys are being "
                  "fetched%[: %s%]",
                  keys != nullptr ? keys->source.c_str() : "",
                  fetch != nullptr ? fetch->told.c_str() : ""));
}

// Unless one is under way.
void Keys::Core::begin(const std::shared_ptr<Core>& self) {
  if (fetch != nullptr || stopping) return;
  begun = BootClock::now();
  if (const KeyOutcome* known = source->at_hand()) {
    return install(KeyOutcome(*known));
  }
  if (hung >= kMostHung) {
    return install(failed_keys("the source of keys does not return"));
  }
  if (to_join) join_thread(*std::exchange(to_join, std::nullopt));
  const auto own = share<Run>(self, utc_now.ask(utc_now.whom));
  if (!std::exchange(registered, true)) register_for_exit(self, *this);
  if (start_thread(own->thread, "ddbmutex-keys", own, [](void* it) {
        Run& run = *static_cast<Run*>(it);
        run.core->run(run);
      })) {
    fetch = own;
  } else {
    install(failed_keys("cannot start a thread to fetch keys"));
  }
}

void Keys::Core::leave_if_hung(BootTime time) {
  if (fetch == nullptr || time - begun <= longest_fetch * 5 / 4) return;
  leave();
  install(failed_keys("the source of keys has not returned in %s s",
                      seconds_of(time - begun)));
}

// REQUIRES: one is under way.
void Keys::Core::leave() {
  detach_thread(fetch->thread);
  fetch->stop.wake();
  fetch->done.wake();
  fetch = nullptr;
  ++hung;
}

void Keys::Core::install(KeyOutcome&& outcome) {
  const BootTime time = BootClock::now();
  if (outcome.state == State::found) {
    return install_keys(std::move(outcome), time);
  }
  failure = share<KeyOutcome>(std::move(outcome));
  due = time + backoff.next(kPauses, random_share());
}

void Keys::Core::install_keys(KeyOutcome&& outcome, BootTime time) {
  const bool over = outcome.ends <= time;
  if (!over) {
    const nanoseconds left = outcome.ends - time;  // Of the keys' time.
    const nanoseconds lead = std::min<nanoseconds>(left / 3, kLongestLead);
    due = outcome.ends == BootTime::max()
              ? BootTime::max()
              : time + sigv4::jittered(left - lead, 0.9, random_share());
    due = std::min(due, outcome.ask_again);
    backoff.reset();
    serve_until = outcome.ends;
    if (outcome.ends != BootTime::max()) {
      serve_until -= std::min<nanoseconds>(left / 10, kLongestWay);
    }
  }
  keys = share<KeyOutcome>(std::move(outcome));
  keys_refused = false;
  failure = nullptr;
  serve_for_sure = over ? kNotAtAll : count_of(serve_until);
  quiet = keys.get();
  quiet_until = over ? kNotAtAll : count_of(std::min(serve_until, due));
  if (over) {
    install(failed_keys("%s gave keys that have expired", keys->source));
  }
}

KeyOutcome Keys::Core::ask(const Fetch& fetch_now) {
#ifdef __cpp_exceptions
  try {
#endif
    return source->fetch(fetch_now);
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    return failed_keys("a source of keys threw: %s", e.what());
  } catch (...) {
    return failed_keys("a source of keys threw");
  }
#endif
}

// The fetching thread.  What comes too late is nobody's any more.
void Keys::Core::run(Run& own) {
  const auto tell_so_far = [](void* it, const std::string& what) {
    Run& run = *static_cast<Run*>(it);
    const std::lock_guard<Mutex> guard(run.core->mutex);
    sigv4::format_to(run.told, "%s%s", run.told.empty() ? "" : "; ", what);
  };
  KeyOutcome outcome;
  const bool asked = has_memory_for([&] {
    outcome = ask({BootClock::now() + longest_fetch, own.stop, own.utc_now,
                   tell_so_far, &own});
  });
  wipe_stack();  // The thread is about to end, and its stack may stay.
  // Asked again soon, as after other transient errors.
  if (!asked) outcome.state = State::failed;
  if (!own.stop.woken()) has_memory_for([&] { tell(outcome); });
  {
    const std::lock_guard<Mutex> guard(mutex);
    if (fetch.get() == &own) {
      fetch = nullptr;
      to_join = own.thread;
      if (!has_memory_for([&] { install(std::move(outcome)); })) {
        due = BootClock::now() + kShortestPause;
      }
    } else {
      --hung;
    }
  }
  own.done.wake();
}

// The fetching thread, or the one that makes this: not what was told before, so
// that a file that is read again each minute is no news.
void Keys::Core::tell(const KeyOutcome& outcome) {
  std::string text;
  for (std::string_view rest = outcome.warnings; !rest.empty();) {
    text = sigv4::cut(rest, '\n');
    if (sigv4::is_among(told_warnings, text, '\n')) continue;
    sigv4::format_to(told_warnings, "%s\n", text);
    sigv4::say(log, LogLevel::warning, text);
  }
  text.clear();
  if (outcome.state != State::found) {
    told_id.clear();
    sigv4::format_to(text, "no keys: %s", outcome.reason);
    return sigv4::say(log, LogLevel::warning, text);
  }
  if (told_id == outcome.keys.access_key_id) return;
  told_id = outcome.keys.access_key_id;
  sigv4::format_to(text, "keys found: %s", outcome.source);
  if (outcome.ends != BootTime::max()) {
    sigv4::format_to(text, ", valid for %s s",
                     seconds_of(outcome.ends - BootClock::now()));
  }
  sigv4::say(log, LogLevel::info, text);
}

void Keys::Core::tell_to_stop(BootTime by) {
  const std::lock_guard<Mutex> guard(mutex);
  stopping = true;
  stop_by = std::min(stop_by, by);
  if (fetch != nullptr) fetch->stop.wake();
}

void Keys::Core::await_stop() {
  std::unique_lock<Mutex> guard(mutex);
  const std::shared_ptr<Run> own = fetch;
  if (own != nullptr && !is_this_thread(own->thread)) {
    const BootTime latest = std::max(stop_by, BootClock::now()) + kStopGrace;
    guard.unlock();
    sigv4::wait_for(nullptr, &own->done, latest);
    guard.lock();
  }
  if (fetch != nullptr) leave();
  const auto last = std::exchange(to_join, std::nullopt);
  guard.unlock();
  if (last) join_thread(*last);
}

Keys::Keys(const KeySourcePtr& source, UtcNow utc_now, const LogPtr& log,
           nanoseconds longest_fetch)
    : core_(share<Core>(source, utc_now, log, longest_fetch)) {
  if (const auto known = core_->source->at_hand()) core_->tell(*known);
}

Keys::~Keys() { sigv4::stop(*core_, BootClock::now() + kStopWithin); }

void Keys::end_by(BootTime time) {
  const std::lock_guard<Mutex> guard(core_->mutex);
  core_->stop_by = std::min(core_->stop_by, time);
}

Keys::Current Keys::now(BootTime time) {
  Core& core = *core_;
  const std::lock_guard<Mutex> guard(core.mutex);
  core.leave_if_hung(time);
  if (time >= core.due) core.begin(core_);
  if (core.serves(time)) return {core.keys, false};
  return {core.why_none(), core.fetch != nullptr};
}

bool Keys::serve_for_sure(BootTime now) const {
  return count_of(now) < core_->serve_for_sure;
}

bool Keys::still_are(const KeyOutcome& keys, BootTime now) const {
  return count_of(now) < core_->quiet_until && core_->quiet == &keys;
}

bool Keys::await(BootTime deadline, Waker* waker) {
  Core& core = *core_;
  if (serve_for_sure(BootClock::now())) return true;
  std::shared_ptr<Core::Run> fetch;
  {
    const BootTime time = BootClock::now();
    const std::lock_guard<Mutex> guard(core.mutex);
    if (core.serves(time)) return true;
    core.leave_if_hung(time);
    if (core.may_ask(time)) core.begin(core_);
    fetch = core.fetch;
  }
  if (fetch != nullptr) sigv4::wait_for(waker, &fetch->done, deadline);
  const std::lock_guard<Mutex> guard(core.mutex);
  return core.serves(BootClock::now());
}

bool Keys::refused(const OutcomePtr& keys) {
  Core& core = *core_;
  const std::lock_guard<Mutex> guard(core.mutex);
  if (core.source->at_hand()) return false;
  if (core.keys != keys) return true;  // There are newer ones already.
  core.keys_refused = true;
  core.serve_for_sure = core.quiet_until = kNotAtAll;
  const bool hope = BootClock::now() - core.begun >= kJustNow;
  if (hope) core.begin(core_);
  core.due = std::min(core.due, core.begun + kJustNow);
  return hope || core.fetch != nullptr;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
