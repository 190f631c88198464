// Core::mutex is held for memory only, never while a source is asked or a text
// is logged.
#include "sigv4/keys.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "sigv4/thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

using State = KeyOutcome::State;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// No source may take longer, whatever it was told about its own limits.
constexpr std::chrono::minutes kLongestFetch{2};
constexpr std::chrono::minutes kLongestLead{15};
// Between the beginnings of fetches that nobody waits for.
constexpr milliseconds kShortestPause{100};
constexpr seconds kLongestPause{60};
// A fetch that comes so soon after another brings the same.
constexpr seconds kJustNow{1};
constexpr seconds kStopWithin{2};

// From `least` to 1, evenly.
double random_share(double least) {
  std::uint32_t bits;
  if (getentropy(&bits, sizeof bits) != 0) std::abort();
  return least + (1 - least) * (bits / 4294967296.0);
}

nanoseconds share_of(nanoseconds time, double share) {
  return nanoseconds(
      static_cast<nanoseconds::rep>(static_cast<double>(time.count()) * share));
}

std::string seconds_of(nanoseconds time) {
  return std::to_string(time / seconds(1)) + " s";
}

}  // namespace

// One run of the source, and who waits for it.
struct KeysFetch {
  Waker done;
  Waker stop;
};

struct Keys::Core final : Stoppable {
  Core(KeySourcePtr the_source, Log the_log)
      : source(std::move(the_source)), log(std::move(the_log)) {}

  void stop() override;

  // For these the mutex is held.
  bool serves(BootTime time) const;
  OutcomePtr why_none() const;
  void begin(const std::shared_ptr<Core>& self, std::int64_t utc_now);
  void install(KeyOutcome outcome);
  void install_keys(KeyOutcome outcome, BootTime time);

  KeyOutcome ask(const Fetch& fetch);
  void run(const std::shared_ptr<KeysFetch>& own, std::int64_t utc_now);
  void tell(const KeyOutcome& outcome);

  const KeySourcePtr source;
  const Log log;
  // Of the fetching thread, one at a time.
  std::set<std::string> told_warnings;
  std::string told_id;

  std::mutex mutex;
  // All below: GUARDED_BY(mutex)
  std::condition_variable ended;  // No fetch any more.
  bool registered = false;        // For exit().
  bool stopping = false;
  std::shared_ptr<KeysFetch> fetch;  // Under way.
  OutcomePtr keys;                   // Those found last; may be null.
  bool keys_refused = false;
  OutcomePtr failure;  // Why there are no newer ones; null if there are.
  int failures = 0;    // In a row.
  BootTime begun{};    // The last fetch.
  BootTime due = BootTime::min();
};

// Until they end; beyond only if it has turned out that there are no others.
bool Keys::Core::serves(BootTime time) const {
  return keys != nullptr && !keys_refused &&
         (time < keys->ends || failure != nullptr);
}

// REQUIRES: none serve.
Keys::OutcomePtr Keys::Core::why_none() const {
  if (failure != nullptr) return failure;
  std::string reason = "keys are being fetched";
  if (keys != nullptr) {
    reason = "the keys of " + keys->source + " have run out, and new " + reason;
  }
  return std::make_shared<const KeyOutcome>(failed_keys(std::move(reason)));
}

// REQUIRES: none is under way.
void Keys::Core::begin(const std::shared_ptr<Core>& self,
                       std::int64_t utc_now) {
  if (stopping) return;
  begun = BootClock::now();
  if (auto known = source->at_hand()) return install(std::move(*known));
  const auto own = std::make_shared<KeysFetch>();
  fetch = own;
  if (!std::exchange(registered, true)) register_for_exit(self);
  pthread_t thread;
  if (start_thread(thread, [self, own, utc_now] { self->run(own, utc_now); })) {
    pthread_detach(thread);
    return;
  }
  fetch = nullptr;
  install(failed_keys("no thread can be started to fetch keys"));
}

void Keys::Core::install(KeyOutcome outcome) {
  const BootTime time = BootClock::now();
  if (outcome.state == State::found) {
    return install_keys(std::move(outcome), time);
  }
  nanoseconds pause = kShortestPause;
  for (int i = 0; i < failures && pause < kLongestPause; ++i) pause *= 2;
  ++failures;
  failure = std::make_shared<const KeyOutcome>(std::move(outcome));
  due = time + share_of(std::min<nanoseconds>(pause, kLongestPause),
                        random_share(0.5));
}

void Keys::Core::install_keys(KeyOutcome outcome, BootTime time) {
  const bool over = outcome.ends <= time;
  if (!over) {
    const nanoseconds left = outcome.ends - time;
    const nanoseconds lead = std::min<nanoseconds>(left / 3, kLongestLead);
    due = outcome.ends == BootTime::max()
              ? BootTime::max()
              : time + share_of(left - lead, random_share(0.9));
    due = std::min(due, outcome.ask_again);
    failures = 0;
  }
  keys = std::make_shared<const KeyOutcome>(std::move(outcome));
  keys_refused = false;
  failure = nullptr;
  if (over) install(failed_keys(keys->source + " gave keys that have run out"));
}

KeyOutcome Keys::Core::ask(const Fetch& fetch_now) {
#ifdef __cpp_exceptions
  try {
#endif
    return source->fetch(fetch_now);
#ifdef __cpp_exceptions
  } catch (const std::exception& e) {
    return failed_keys(std::string("a source of keys threw: ") + e.what());
  } catch (...) {
    return failed_keys("a source of keys threw");
  }
#endif
}

// The fetching thread.
void Keys::Core::run(const std::shared_ptr<KeysFetch>& own,
                     std::int64_t utc_now) {
  KeyOutcome outcome =
      ask({BootClock::now() + kLongestFetch, own->stop, utc_now});
  if (!own->stop.woken()) tell(outcome);
  {
    const std::lock_guard<std::mutex> guard(mutex);
    fetch = nullptr;
    install(std::move(outcome));
    ended.notify_all();
  }
  own->done.wake();
}

// The fetching thread, or the one that makes this: not what was told before, so
// that a file that is read again each minute is no news.
void Keys::Core::tell(const KeyOutcome& outcome) {
  for (const std::string& warning : outcome.warnings) {
    if (told_warnings.insert(warning).second) {
      say(log, LogLevel::warning, warning);
    }
  }
  if (outcome.state != State::found) {
    told_id.clear();
    return say(log, LogLevel::warning, "no keys: " + outcome.reason);
  }
  const std::string& id = outcome.keys.access_key_id;
  if (std::exchange(told_id, id) == id) return;
  std::string text = "keys found: " + outcome.source;
  if (outcome.ends != BootTime::max()) {
    text += ", good for " + seconds_of(outcome.ends - BootClock::now());
  }
  say(log, LogLevel::info, text);
}

void Keys::Core::stop() {
  std::unique_lock<std::mutex> guard(mutex);
  stopping = true;
  if (fetch == nullptr) return;
  fetch->stop.wake();
  ended.wait_for(guard, kStopWithin, [&] { return fetch == nullptr; });
}

Keys::Keys(KeySourcePtr source, std::function<std::int64_t()> utc_now, Log log)
    : core_(std::make_shared<Core>(std::move(source), std::move(log))),
      utc_now_(std::move(utc_now)) {
  if (const auto known = core_->source->at_hand()) core_->tell(*known);
}

Keys::~Keys() { core_->stop(); }

Keys::Current Keys::now() {
  Core& core = *core_;
  const BootTime time = BootClock::now();
  const std::lock_guard<std::mutex> guard(core.mutex);
  if (core.fetch == nullptr && time >= core.due) {
    core.begin(core_, utc_now_());
  }
  if (core.serves(time)) return {core.keys, false};
  return {core.why_none(), core.fetch != nullptr};
}

void Keys::await(BootTime deadline, const Waker* waker) {
  Core& core = *core_;
  std::shared_ptr<KeysFetch> fetch;
  {
    const BootTime time = BootClock::now();
    const std::lock_guard<std::mutex> guard(core.mutex);
    if (core.serves(time)) return;
    // What has failed in passing is asked again in its own time.
    const bool passing =
        core.failure != nullptr && core.failure->state == State::failed;
    if (core.fetch == nullptr && (!passing || time >= core.due)) {
      core.begin(core_, utc_now_());
    }
    fetch = core.fetch;
  }
  if (fetch != nullptr) wait_for(fetch->done, waker, deadline);
}

bool Keys::refused(const OutcomePtr& keys) {
  Core& core = *core_;
  const std::lock_guard<std::mutex> guard(core.mutex);
  if (core.source->at_hand()) return false;
  if (core.keys != keys) return true;  // There are newer ones already.
  core.keys_refused = true;
  const bool hope = BootClock::now() - core.begun >= kJustNow;
  if (core.fetch == nullptr && hope) core.begin(core_, utc_now_());
  core.due = std::min(core.due, core.begun + kJustNow);
  return hope || core.fetch != nullptr;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
