// What the judge says about waits: how long a call waits for a lock that it
// could have, and how long it goes on in spite of errors.
#include <algorithm>

#include "tests/world/judge.hpp"
#include "tests/world/odd_rows.hpp"

namespace world {

using ddbmutex::Errc;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// If a row does not say how long its lease is, waiters go by the stored end.
// It contains calendar_margin (2 s); they wait for that once more, and for what
// is uncertain about DynamoDB's clock (3 s).  README, "Wall clocks".
constexpr nanoseconds kUntilStoredEnd = seconds(2) + seconds(2) + seconds(3);

// Retries after conflicts are at most 25, 50, 100 ms ... apart.  Ten
// conflicts in a row come in one life in a million.
constexpr nanoseconds kContention = milliseconds(25 * 512);

// The longest pause between two attempts of a call that meets transient errors,
// and between two passes of an AnyOf.
constexpr nanoseconds kLongestPause = seconds(5);

// Twice the longest time that a program's credentials_source takes.
constexpr nanoseconds kSlowKeys = seconds(2);

}  // namespace

// One leg in 64 takes eight times as long, see network.cpp.
nanoseconds round_trip(const Host& host) {
  return 13 * host.latency + milliseconds(1);
}

// Whether requests are usually answered in time.
bool Judge::is_fast(const WatchedMutex& mutex) const {
  return mutex.request_timeout >= 4 * mutex.process->host->latency;
}

// Whether an answer comes within that time however slow the messages are.
bool is_enough_for_an_answer(const Host& host, nanoseconds request_timeout) {
  return request_timeout > 2 * kSlowestLeg * host.latency + milliseconds(1);
}

// Whether requests are answered in time however slow the messages are.
bool Judge::is_answered_in_time(const WatchedMutex& mutex) const {
  return is_enough_for_an_answer(*mutex.process->host, mutex.request_timeout);
}

// The same even if a request waits for new keys.
bool Judge::surely_answered(const WatchedMutex& mutex) const {
  return is_answered_in_time(mutex) && mutex.table->has_good_keys();
}

void Judge::look_at_waits() {
  for (const Call& call : calls_) {
    if (call.any_of && call.for_ever) check_any_of_wait(call);
    if (!call.waits || !call.since.process->alive) continue;
    check_wait(call);
    check_patience_ends(call);
  }
  for (Lock& lock : locks_) look_at_orphan(lock);
}

// Whether this call asks DynamoDB.  Of the threads that share a mutex only the
// first in line does, and none while a thread has the mutex.
bool Judge::has_turn(const Call& call) const {
  if (call.mutex->locked > 0) return false;
  for (const Call& other : calls_) {
    if (other.mutex == call.mutex && other.since.began < call.since.began) {
      return false;
    }
  }
  return true;
}

// README: "A host that has been waiting gets the lock" when the lease and 1 %
// are over: "Add a pause between two looks and one or two round trips."
nanoseconds Judge::bound_of(const Call& call, const Version& version,
                            Time since) const {
  nanoseconds bound = call.mutex->longest_poll +
                      3 * round_trip(*call.since.process->host) + scheduling();
  if (call.mutex->table->slow_keys) bound += kSlowKeys;
  if (contention_) bound += kContention;
  if (!is_answered_in_time(*call.mutex)) bound += kLongestPause;
  if (version.held) {
    nanoseconds lease = version.lease + version.lease / 100;
    if (!version.names_lease) lease += kUntilStoredEnd;
    // "A host that comes later": it goes by the end that is stored.
    const Time over = version.end - kEpoch + kUntilStoredEnd;
    if (tells_end()) lease = std::min(lease, std::max(over - since, Time{}));
    bound += lease;
  }
  // By a clock that may be 1 % slow.
  return bound + bound / 50;
}

void Judge::check_wait(const Call& call) {
  if (call.mutex == nullptr || call.mutex->gone || !has_turn(call)) return;
  if (is_odd(call)) return;
  if (memory_fails_ || call.mutex->table->bad_keys) return;
  if (!is_fast(*call.mutex)) return;
  const Time now = World::the().now();
  const Lock& lock = lock_of(call.mutex->lock);
  const Version& version = lock.versions.back();
  const Time since = std::max({version.at, call.since.began, calm_from_,
                               call.mutex->unlocked, left_until(lock, call)});
  const nanoseconds bound = bound_of(call, version, since) + call.since.kept();
  if (now < since || now - since <= bound) return;
  wrong(version.held ? "a dead holder's lock is not taken"
                     : "a free lock is not taken",
        text_of(call) + " has waited for " + ms_text(now - since) +
            ", should wait " + ms_text(bound));
}

// try_lock() is "false if another holds it", so it must not be if nobody does.
void Judge::check_free(const Call& call, const Result& result) {
  if (!call.gets_lock || result.got || call.mutex == nullptr) return;
  if (!quiet_ || !prompt() || call.free_since == kNever) return;
  if (result.code || call.since.kept() > nanoseconds::zero()) return;
  const Lock& lock = lock_of(call.mutex->lock);
  const Version& version = lock.versions.back();
  // The rest of its time may not suffice for an answer.
  const nanoseconds rest = 3 * round_trip(*call.since.process->host);
  const Time asks = call.waits ? World::the().now() - rest : call.since.began;
  if (left_until(lock, call) > asks) return;
  const bool was_free = !version.held && version.at == call.free_since;
  // Another thread may have tried meanwhile by this mutex.
  if (!prompt() && call.mutex->calls > 0) return;
  // What was read before exists() returned says nothing of the key.
  if (call.table->asked_for_key >= call.since.began) return;
  // If it was not alone, it may have waited for another thread.
  if (!was_free || !call.alone || call.mutex->gone) return;
  wrong("a free lock is refused", text_of(call));
}

// --- Patience ----------------------------------------------------------------

// Options::patience: "The time starts with the first error since any thread's
// request for this mutex last succeeded, or with the call if that is later."
void Judge::check_patience_ends(const Call& call) {
  if (!call.for_ever || call.mutex == nullptr) return;
  const WatchedMutex& mutex = *call.mutex;
  if (memory_fails_ || mutex.gone || mutex.locked > 0) return;
  if (!mutex.table->has_good_keys()) return;
  Lock& lock = lock_of(mutex.lock);
  const Time since =
      std::max({call.since.began, mutex.unlocked, lock.answered[mutex.process],
                left_until(lock, call)});
  // The first error comes after a pause, and the last request may be late.
  nanoseconds bound = mutex.patience + 2 * mutex.longest_poll +
                      3 * mutex.request_timeout + scheduling();
  // Another thread, which has the turn, may pause before its next attempt, and
  // for longer if the service asks for that.
  if (!call.alone) bound += 2 * kLongestPause;
  const nanoseconds waited = World::the().now() - since;
  if (waited > bound + bound / 50 + call.since.kept()) {
    wrong("a call goes on when its patience is over",
          text_of(call) + " for " + ms_text(waited) + ", should for " +
              ms_text(bound));
  }
}

// Options::patience: "How long lock() goes on in spite of transient errors."
void Judge::check_patience(const Call& call, const Result& result) {
  const auto& code = result.code;
  const bool transient = code == Errc::unreachable ||
                         code == Errc::disconnected ||
                         code == Errc::timed_out || code == Errc::throttled ||
                         code == Errc::unavailable || code == Errc::bad_answer;
  const WatchedMutex& mutex = *call.mutex;
  const bool too_late =
      !code && !result.got && call.waits && call.limit != nanoseconds::max();
  if (!(transient || too_late) || !call.waits || !call.alone || mutex.gone) {
    return;
  }
  const nanoseconds at_least =
      call.limit == nanoseconds::max() ? mutex.patience : call.limit;
  const nanoseconds took =
      World::the().host().boot(World::the().now()) - call.since.boot;
  if (call.open_ended || took + milliseconds(1) >= at_least) return;
  wrong("a call gives up early", text_of(call) + ": " + result.text);
}

// --- AnyOf -------------------------------------------------------------------

// Whether the item has been free and wanted ever since that time.
bool Judge::could_be_had(const Lock& lock, const Call& call, Time since) const {
  const Version& version = lock.versions.back();
  if (lock.name == kOddLock || !version.exists || version.at > since ||
      left_until(lock, call) > since) {
    return false;
  }
  if (call.is_choosy && version.done) return false;
  // "An item is taken once DynamoDB's clock shows that its lease ended at least
  // 3 s ago", and that is known to some seconds.
  if (!version.held) return true;
  return tells_end() && version.end > nanoseconds::zero() &&
         kEpoch + since > version.end + seconds(3) + kUntilStoredEnd;
}

// An item that could be had; null: there is none.
const Judge::Lock* Judge::free_item(const Call& call, Time since) const {
  for (const Lock& lock : locks_) {
    if (could_be_had(lock, call, since)) return &lock;
  }
  return nullptr;
}

nanoseconds Judge::of_a_page(const Host& host) const {
  return plan_.front_ends.page_takes + 4 * host.latency;
}

// "A pass is one request for each 200 items".
nanoseconds Judge::of_a_pass(const Call& call) const {
  return (2 + (plan_.locks + plan_.other_rows) / 200) *
         of_a_page(*call.since.process->host);
}

// AnyOf::try_lock(): "Null if there is no free item".
void Judge::check_any_of(const Call& call, const Result& result) {
  if (result.got || result.code) return;
  if (call.for_ever) wrong("AnyOf::lock() returns nothing", text_of(call));
  const nanoseconds latency = call.since.process->host->latency;
  const bool surely = quiet_ && prompt() && call.table->has_good_keys() &&
                      !call.table->closed &&
                      call.request_timeout > 2 * kSlowestLeg * latency;
  // With less, its time may be up before it has tried all.
  const nanoseconds needed =
      seconds(1) + of_a_pass(call) +
      2 * (plan_.locks + 2) * round_trip(*call.since.process->host);
  const bool in_time =
      call.tries > 0 || call.limit >= needed + 2 * call.request_timeout;
  if (!surely || !in_time) return;
  const Lock* const free = free_item(call, call.since.began);
  if (free != nullptr) {
    wrong("a free item is not got", text_of(call) + ": " + free->name);
  }
}

void Judge::check_any_of_wait(const Call& call) {
  if (!call.since.process->alive || memory_fails_ ||
      !call.table->has_good_keys() || call.table->closed) {
    return;
  }
  const Host& host = *call.since.process->host;
  if (call.request_timeout < of_a_page(host)) return;
  const nanoseconds bound = call.longest_poll + scheduling() +
                            10 * round_trip(host) + 2 * of_a_pass(call) +
                            call.since.kept();
  const Time now = World::the().now();
  const Time since = now - bound - bound / 50;
  if (since < std::max(call.since.began, calm_from_)) return;
  const Lock* const free = free_item(call, since);
  if (free != nullptr) {
    wrong("a free item is not taken", text_of(call) + ": " + free->name);
  }
}

}  // namespace world
