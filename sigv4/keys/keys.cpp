// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// KeySchedule decides which keys are used and when to fetch others.  It is
// given the time, and uses no threads.  Keys::Core fetches keys in a thread.
// Its mutex is never held while a source fetches keys or a text is logged.
#include "keys.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "../backoff.hpp"
#include "../memory.hpp"
#include "../system.hpp"
#include "../text.hpp"
#include "../thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// No fetch begins while so many hung threads exist.
constexpr int kMostHung = 2;
// Keys are renewed at most this long before they end.
constexpr std::chrono::minutes kLongestLead{15};
// The time that a signed request may take to arrive.  Keys count as expired
// this long before their end, or a tenth of their lifetime if that is less.
constexpr seconds kLongestWay{2};
// The shortest pause after a failed fetch.
constexpr milliseconds kShortestPause{100};
constexpr Backoff::Limits kPauses{kShortestPause, seconds(60), 0.5};
// A source that is asked again within this time gives the same answer.
constexpr seconds kJustNow{1};

// Atomics hold times as integers.
constexpr BootTime::rep count_of(BootTime time) {
  return time.time_since_epoch().count();
}
constexpr BootTime::rep kNotAtAll = count_of(BootTime::min());

std::int64_t seconds_of(nanoseconds time) { return time / seconds(1); }

}  // namespace

// KeySchedule and KeyLog are not in the unnamed namespace, because Keys::Core
// has members of them: g++ warns of that in unity builds.

// --- Which keys serve, and when others are fetched ---------------------------

class KeySchedule {
 public:
  // Whether the keys may be used: until serve_until_, and after that only if
  // the last fetch failed to replace them.
  bool serves(BootTime time) const {
    return use_ == KeyUse::usable &&
           (time < serve_until_ || failure_ != nullptr);
  }
  bool is_due(BootTime time) const { return time >= due_; }
  // Whether a caller that waits may begin a fetch.  After a transient failure,
  // only when the next one is due; otherwise once the source may give another
  // answer.
  bool may_fetch(BootTime time) const;
  // Whether enough time has passed for a fetch to give different keys.
  bool may_bring_others(BootTime time) const {
    return time - begun_ >= kJustNow;
  }
  const Keys::OutcomePtr& keys() const { return keys_; }        // May be null.
  const Keys::OutcomePtr& failure() const { return failure_; }  // May be null.
  BootTime begun() const { return begun_; }

  void begin(BootTime time) { begun_ = time; }
  void install(KeyOutcome&& outcome, BootTime time);
  void refuse();
  void retry_at(BootTime time) { due_ = time; }

  // These need no mutex.
  bool certainly_usable(BootTime now) const {
    return count_of(now) < certainly_usable_;
  }
  bool are_current(const KeyOutcome& keys, BootTime now) const;

 private:
  enum class KeyUse { none, usable, refused };

  void install_failure(KeyOutcome&& outcome, BootTime time);
  void install_expired(KeyOutcome&& outcome, BootTime time);
  void install_keys(KeyOutcome&& outcome, BootTime time);
  void replace_keys(KeyOutcome&& outcome);

  KeyUse use_ = KeyUse::none;  // Whether keys_ may be used.
  Keys::OutcomePtr keys_;      // Those found last; may be null.
  BootTime serve_until_{};     // Until then no newer keys are needed.
  Keys::OutcomePtr failure_;   // Why the last fetch gave none; null if it did.
  Backoff backoff_;            // After failures.
  BootTime begun_{};           // The last fetch.
  BootTime due_ = BootTime::min();

  // Until then the keys may be used, unless the service refuses them or a fetch
  // replaces them by expired ones.  Atomic, so that readers need no mutex.
  std::atomic<BootTime::rep> certainly_usable_{kNotAtAll};
  // Until current_until_, Keys::now() returns current_ and begins no fetch.
  std::atomic<BootTime::rep> current_until_{kNotAtAll};
  std::atomic<const KeyOutcome*> current_{nullptr};
};

bool KeySchedule::are_current(const KeyOutcome& keys, BootTime now) const {
  return count_of(now) < current_until_ && current_ == &keys;
}

bool KeySchedule::may_fetch(BootTime time) const {
  const bool transient =
      failure_ != nullptr && failure_->state == KeyOutcome::State::failed;
  return transient ? is_due(time) : may_bring_others(time);
}

void KeySchedule::install(KeyOutcome&& outcome, BootTime time) {
  if (outcome.state != KeyOutcome::State::found) {
    install_failure(std::move(outcome), time);
  } else if (outcome.ends <= time) {
    install_expired(std::move(outcome), time);
  } else {
    install_keys(std::move(outcome), time);
  }
}

void KeySchedule::install_failure(KeyOutcome&& outcome, BootTime time) {
  failure_ = std::make_shared<KeyOutcome>(std::move(outcome));
  due_ = time + backoff_.next(kPauses, random_share());
}

// Expired keys serve as long as the service takes them: the clock may be wrong.
void KeySchedule::install_expired(KeyOutcome&& outcome, BootTime time) {
  replace_keys(std::move(outcome));
  certainly_usable_ = current_until_ = kNotAtAll;
  install_failure(failed_keys({keys_->source, " gave keys that have expired"}),
                  time);
}

void KeySchedule::install_keys(KeyOutcome&& outcome, BootTime time) {
  // First, because nothing has changed if memory runs out.
  replace_keys(std::move(outcome));
  const KeyOutcome& found = *keys_;
  serve_until_ = found.ends;
  due_ = BootTime::max();
  if (found.ends != BootTime::max()) {
    const nanoseconds left = found.ends - time;
    const nanoseconds lead = std::min<nanoseconds>(left / 3, kLongestLead);
    serve_until_ -= std::min<nanoseconds>(left / 10, kLongestWay);
    due_ = time + sigv4::jittered(left - lead, 0.9, random_share());
  }
  due_ = std::min(due_, found.ask_again);
  backoff_.reset();
  certainly_usable_ = count_of(serve_until_);
  current_until_ = count_of(std::min(serve_until_, due_));
}

void KeySchedule::replace_keys(KeyOutcome&& outcome) {
  keys_ = std::make_shared<KeyOutcome>(std::move(outcome));
  use_ = KeyUse::usable;
  failure_ = nullptr;
  current_ = keys_.get();
}

void KeySchedule::refuse() {
  use_ = KeyUse::refused;
  certainly_usable_ = current_until_ = kNotAtAll;
  due_ = std::min(due_, begun_ + kJustNow);
}

// --- What is logged ----------------------------------------------------------

// Logs each warning once, and keys only when they change.  Otherwise a file
// that is read every minute would flood the log.
class KeyLog {
 public:
  explicit KeyLog(const LogPtr& log) : log_(log) {}
  void report(const KeyOutcome& outcome);

 private:
  const LogPtr log_;
  // An abandoned thread may still log while the next one does.
  Mutex mutex_;
  // Both: GUARDED_BY(mutex_)
  std::set<std::string> warnings_;  // Logged so far.
  std::string id_;                  // Of the keys that were logged last.
};

void KeyLog::report(const KeyOutcome& outcome) {
  const std::lock_guard<Mutex> guard(mutex_);
  for (std::string_view rest = outcome.warnings; !rest.empty();) {
    const std::string_view warning = sigv4::cut(rest, '\n');
    const auto [known, is_new] = warnings_.insert(std::string(warning));
    if (is_new) sigv4::say(log_, LogLevel::warning, *known);
  }
  if (outcome.state != KeyOutcome::State::found) {
    id_.clear();
    sigv4::say(log_, LogLevel::warning, join({"no keys: ", outcome.reason}));
    return;
  }
  if (id_ == outcome.keys.access_key_id) return;
  id_ = outcome.keys.access_key_id;
  std::string text = "keys found: " + outcome.source;
  if (outcome.ends != BootTime::max()) {
    append(text, {", valid for ",
                  Digits(seconds_of(outcome.ends - BootClock::now())), " s"});
  }
  sigv4::say(log_, LogLevel::info, text);
}

// --- Fetching ----------------------------------------------------------------

struct Keys::Core : Stoppable {
  Core(const KeySourcePtr& the_source, UtcNow&& now, const LogPtr& the_log,
       nanoseconds the_longest)
      : source(the_source),
        utc_now(std::move(now)),
        longest_fetch(the_longest),
        log(the_log) {}

  // One run of the source, and who waits for it.
  struct Run {
    Run(const std::shared_ptr<Core>& the_core, std::int64_t time)
        : core(the_core), utc_now(time) {}

    const std::shared_ptr<Core> core;
    const std::int64_t utc_now;
    Waker stop;
    std::atomic<bool> done{false};
    // Both: GUARDED_BY(Core::mutex)
    pthread_t thread{};
    std::string reported;  // What the source has said so far.
  };

  void tell_to_stop(BootTime by) override;
  void await_stop() override;

  // For these the mutex is held.
  OutcomePtr why_none() const;
  void begin(const std::shared_ptr<Core>& self);
  void start_run(const std::shared_ptr<Core>& self);
  void abandon_if_hung(BootTime time);
  void abandon();
  void install(KeyOutcome&& outcome) {
    schedule.install(std::move(outcome), BootClock::now());
  }
  void tell_waiting(Run& own);
  void end_run(Run& own, KeyOutcome&& outcome);

  KeyOutcome ask(const Fetch& fetch);
  void run(Run& own);

  const KeySourcePtr source;
  const UtcNow utc_now;  // Not called after the Keys object is destroyed.
  const nanoseconds longest_fetch;
  KeyLog log;

  Mutex mutex;
  // All below: GUARDED_BY(mutex), except that parts of the schedule need none.
  KeySchedule schedule;
  Condition ended;                  // Notified when a fetch has ended.
  std::vector<CallWaker*> waiting;  // For the fetch in progress.
  bool registered = false;          // register_for_exit() was called.
  bool stopping = false;
  BootTime stop_by = BootTime::max();
  std::shared_ptr<Run> fetch;        // The run in progress, or null.
  std::optional<pthread_t> to_join;  // A thread that has ended, or soon will.
  int hung = 0;                      // Abandoned threads that still run.
};

// REQUIRES: no keys may be used now.
Keys::OutcomePtr Keys::Core::why_none() const {
  if (schedule.failure() != nullptr) return schedule.failure();
  const std::string_view expired =
      schedule.keys() != nullptr ? schedule.keys()->source : std::string_view();
  const std::string_view reported =
      fetch != nullptr ? fetch->reported : std::string_view();
  return std::make_shared<KeyOutcome>(
      failed_keys({if_any("the keys from ", expired, " have expired, and new "),
                   "keys are being fetched", if_any(": ", reported)}));
}

// Begins a fetch, unless one is in progress.
void Keys::Core::begin(const std::shared_ptr<Core>& self) {
  if (fetch != nullptr || stopping) return;
  schedule.begin(BootClock::now());
  if (const KeyOutcome* known = source->at_hand()) {
    install(KeyOutcome(*known));
  } else if (hung >= kMostHung) {
    install(failed_keys({"the source of keys does not return"}));
  } else {
    start_run(self);
  }
}

void Keys::Core::start_run(const std::shared_ptr<Core>& self) {
  if (to_join) join_thread(*std::exchange(to_join, std::nullopt));
  const auto own = std::make_shared<Run>(self, utc_now());
  if (!registered) register_for_exit(self);
  registered = true;  // Unless there was no memory for it.
  if (start_thread(own->thread, "ddbmutex-keys",
                   [own] { own->core->run(*own); })) {
    fetch = own;
  } else {
    install(failed_keys({"cannot start a thread to fetch keys"}));
  }
}

void Keys::Core::abandon_if_hung(BootTime time) {
  // A source that overruns its deadline by a quarter is considered hung.
  const nanoseconds hung_after = longest_fetch + longest_fetch / 4;
  const nanoseconds taken = time - schedule.begun();
  if (fetch == nullptr || taken <= hung_after) return;
  abandon();
  install(failed_keys({"the source of keys has not returned in ",
                       Digits(seconds_of(taken)), " s"}));
}

// REQUIRES: a fetch is in progress.
void Keys::Core::abandon() {
  detach_thread(fetch->thread);
  fetch->stop.wake();
  tell_waiting(*std::exchange(fetch, nullptr));
  ++hung;
}

KeyOutcome Keys::Core::ask(const Fetch& fetch_now) {
#ifdef __cpp_exceptions
  try {
#endif
    return source->fetch(fetch_now);
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    return failed_keys({"a source of keys threw: ", e.what()});
  } catch (...) {
    return failed_keys({"a source of keys threw"});
  }
#endif
}

// The fetching thread.
void Keys::Core::run(Run& own) {
  const auto report = [&](const std::string& what) {
    const std::lock_guard<Mutex> guard(mutex);
    append(own.reported, {own.reported.empty() ? "" : "; ", what});
  };
  KeyOutcome outcome;
  const bool asked = try_with_memory([&] {
    outcome =
        ask({BootClock::now() + longest_fetch, own.stop, own.utc_now, report});
  });
  // Memory ran out: a transient failure.
  if (!asked) outcome.state = KeyOutcome::State::failed;
  if (!own.stop.woken()) try_with_memory([&] { log.report(outcome); });
  {
    const std::lock_guard<Mutex> guard(mutex);
    end_run(own, std::move(outcome));
    tell_waiting(own);
  }
}

// Tells all that wait for this fetch that it is over.
void Keys::Core::tell_waiting(Run& own) {
  own.done = true;
  ended.notify_all();
  for (CallWaker* waker : waiting) waker->bell()->ring();
}

// An outcome that comes too late is dropped.
void Keys::Core::end_run(Run& own, KeyOutcome&& outcome) {
  if (fetch.get() != &own) {
    --hung;  // It was counted by abandon().
    return;
  }
  fetch = nullptr;
  to_join = own.thread;
  if (!try_with_memory([&] { install(std::move(outcome)); })) {
    schedule.retry_at(BootClock::now() + kShortestPause);
  }
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
    while (!own->done && sigv4::await(ended, guard, latest)) {
    }
  }
  if (fetch != nullptr) abandon();
  const auto last = std::exchange(to_join, std::nullopt);
  guard.unlock();
  if (last) join_thread(*last);
}

Keys::Keys(const KeySourcePtr& source, UtcNow utc_now, const LogPtr& log,
           nanoseconds longest_fetch)
    : core_(new Core(source, std::move(utc_now), log, longest_fetch)) {
  if (const auto known = core_->source->at_hand()) core_->log.report(*known);
}

Keys::~Keys() { sigv4::stop(*core_, BootClock::now() + kStopWithin); }

void Keys::end_by(BootTime time) {
  const std::lock_guard<Mutex> guard(core_->mutex);
  core_->stop_by = std::min(core_->stop_by, time);
}

Keys::Current Keys::now(BootTime time) {
  Core& core = *core_;
  const std::lock_guard<Mutex> guard(core.mutex);
  core.abandon_if_hung(time);
  if (core.schedule.is_due(time)) core.begin(core_);
  if (core.schedule.serves(time)) return {core.schedule.keys(), false};
  return {core.why_none(), core.fetch != nullptr};
}

bool Keys::certainly_usable(BootTime now) const {
  return core_->schedule.certainly_usable(now);
}

bool Keys::are_current(const KeyOutcome& keys, BootTime now) const {
  return core_->schedule.are_current(keys, now);
}

bool Keys::await(BootTime deadline, CallWaker& waker) {
  Core& core = *core_;
  if (certainly_usable(BootClock::now())) return true;
  std::shared_ptr<Core::Run> fetch;
  {
    const BootTime time = BootClock::now();
    const std::lock_guard<Mutex> guard(core.mutex);
    if (core.schedule.serves(time)) return true;
    core.abandon_if_hung(time);
    if (core.schedule.may_fetch(time)) core.begin(core_);
    fetch = core.fetch;
    if (fetch != nullptr) core.waiting.push_back(&waker);
  }
  if (fetch != nullptr) {
    waker.wait_until(deadline, [&fetch] { return fetch->done.load(); });
  }
  const std::lock_guard<Mutex> guard(core.mutex);
  const auto own = std::find(core.waiting.begin(), core.waiting.end(), &waker);
  if (own != core.waiting.end()) core.waiting.erase(own);
  return core.schedule.serves(BootClock::now());
}

bool Keys::replace_refused(const OutcomePtr& keys) {
  Core& core = *core_;
  const std::lock_guard<Mutex> guard(core.mutex);
  if (core.source->at_hand()) return false;
  KeySchedule& schedule = core.schedule;
  if (schedule.keys() != keys) return true;  // There are newer ones already.
  schedule.refuse();
  const bool hope = schedule.may_bring_others(BootClock::now());
  if (hope) core.begin(core_);
  return hope || core.fetch != nullptr;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
