// What the judge says about single calls: how long they take, how long they
// wait for a lock that they could have, and which errors they report.
#include <algorithm>
#include <utility>

#include "tests/world/judge.hpp"
#include "tests/world/odd_rows.hpp"

namespace world {

using ddbmutex::Errc;
using ddbmutex::Layout;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// See Judge::scheduling().
constexpr nanoseconds kScheduling = milliseconds(20);
// Where an allocation failed, what it was for is repeated a little later.
constexpr nanoseconds kWithoutMemory = seconds(1);

// A row that does not say how long its lease is: others go by the end that it
// names, to which calendar_margin was added, and wait for as long again; and
// for what is uncertain about DynamoDB's clock.  README, "Wall clocks".
constexpr nanoseconds kUntilStoredEnd = seconds(2) + seconds(2) + seconds(3);

// Retries after conflicts are 25, 50, 100 ms ... apart at the most.  Of seven
// conflicts in a row there is one in a life in a million.
constexpr nanoseconds kContention = milliseconds(25 * 128);

// Between two attempts of a call that meets transient errors, and two passes of
// an AnyOf.
constexpr nanoseconds kLongestPause = seconds(5);

// What a program's credentials_source takes at the most, twice.
constexpr nanoseconds kSlowKeys = seconds(2);

// One leg in 64 takes eight times as long, see network.cpp.
nanoseconds round_trip(const Host& host) {
  return 13 * host.latency + milliseconds(1);
}

std::string text_of(const Call& call) {
  std::string text = call.what;
  if (call.mutex != nullptr) text += " of " + call.mutex->lock;
  return text + " in " + call.since.process->name;
}

std::string ms_text(nanoseconds time) {
  return std::to_string(
             std::chrono::duration_cast<milliseconds>(time).count()) +
         " ms";
}

bool is(std::error_code code, std::errc what) {
  return code == std::make_error_code(what);
}

}  // namespace

// What a call may take beyond its bound, by the boot clock: threads have to be
// scheduled, and may wait for one that stalls.
nanoseconds Judge::scheduling() const {
  nanoseconds time = kScheduling;
  if (plan_.climate.stalls > 0) time += plan_.climate.longest_stall;
  if (memory_fails_) time += kWithoutMemory;
  return time;
}

// Whether requests are usually answered in time.
bool Judge::is_fast(const WatchedMutex& mutex) const {
  return mutex.request_timeout >= 4 * mutex.process->host->latency;
}

// However slow messages are, and if it is signed anew.
bool Judge::surely_answered(const WatchedMutex& mutex) const {
  const nanoseconds latency = mutex.process->host->latency;
  return mutex.request_timeout > 2 * kSlowestLeg * latency + milliseconds(1) &&
         !mutex.table->slow_keys && !mutex.table->bad_keys;
}

Judge::CallPlace Judge::begins(Call call) {
  call.since = Stopwatch::start(World::the().process());
  if (call.table == nullptr && call.mutex != nullptr) {
    call.table = call.mutex->table;
  }
  if (call.table != nullptr) {
    call.callbacks = call.table->in_callbacks;
    call.key_is_known = call.table->wrong_key;
  }
  call.requests = call.since.process->requests;
  if (call.mutex != nullptr) {
    WatchedMutex& mutex = *call.mutex;
    call.held = mutex.locked > 0;
    call.alone = mutex.calls == 0 && (mutex.locked == 0 || call.lets_go);
    mutex.calls++;
    mutex.renewed_by_hand = mutex.renewed_by_hand || call.renews;
    const Version& version = lock_of(mutex.lock).versions.back();
    if (!version.held) call.free_since = version.at;
    if (call.gets_lock || call.lets_go) look();
    call.owned = mutex.owned;
    call.claim_end = mutex.claim_end;
    call.anothers = version.held && version.proof != mutex.proof;
    if (call.renews) mutex.said_dead = false;
    // "Does nothing if the mutex is not locked."
    if (call.lets_go && (call.held || !prompt())) {
      mutex.to_be_told = mutex.lost;
      mutex.lets_go = true;
      mutex.unlocked = World::the().now();
      if (mutex.locked > 0) mutex.locked--;
    }
  }
  return calls_.insert(calls_.end(), std::move(call));
}

void Judge::ends(CallPlace place, const Result& result) {
  look();
  const Call call = *place;
  calls_.erase(place);
  if (WatchedMutex* mutex = call.mutex) {
    mutex->calls--;
    if (call.renews) mutex->said_dead = false;
    // Without memory it has not come that far.
    if (call.ties && call.held &&
        !is(result.code, std::errc::not_enough_memory) &&
        mutex->unlocked < call.since.began) {
      mutex->tied = true;
    }
    if (call.lets_go) mutex->unlock_ended = World::the().now();
    if (call.lets_go && (result.code || call.since.kept() > kScheduling ||
                         call.since.run() >= mutex->request_timeout / 2)) {
      mutex->unfinished_until = World::the().now() + 2 * mutex->ttl;
    }
    // What it got, and could not keep, is no loss.
    if (call.gets_lock && !result.got && mutex->lost && mutex->locked == 0) {
      mutex->lets_go = true;
    }
    // Then it is still locked.
    if (call.lets_go && call.held &&
        is(result.code, std::errc::not_enough_memory)) {
      mutex->locked++;
    }
  }
  check_time(call);
  check_cancel(call, result);
  check_code(call, result);
  if (call.gets_lock && is_odd(call)) return check_odd(call, result);
  check_free(call, result);
  check_key(call, result);
  check_list(call, result);
  check_lost(call, result);
  if (call.waits) check_wait(call);
  if (call.what == "close()") check_closed(call, result);
  if (call.any_of) check_any_of(call, result);
  if (call.mutex == nullptr) return;
  if (call.gets_lock && result.got) check_turn(call);
  check_locked_again(call, result);
  if (call.lets_go) check_unlocked(call, result);
  if (call.what.compare(0, 7, "release") == 0) check_release(call, result);
  if (!result.code) check_remaining(*call.mutex, call.ensures);
  check_patience(call, result);
}

// --- Time --------------------------------------------------------------------

void Judge::check_time(const Call& call) {
  if (call.limit == nanoseconds::max()) return;
  // Until it has its turn, it has found no record.
  if (call.open_ended && !call.alone) return;
  nanoseconds allowed = call.limit + scheduling();
  if (!prompt()) allowed += call.of_one_try;
  allowed += of_tries(call);
  // "unlock() has no such timer: after a suspend it may take up to
  // request_timeout more."
  if (call.lets_go && call.since.was_suspended()) allowed += call.limit;
  if (call.after_callbacks && call.table != nullptr) {
    nanoseconds waited = call.table->in_callbacks - call.callbacks;
    if (call.table->callbacks > 0) {
      waited += World::the().now() - call.table->callback_began;
    }
    allowed += waited + waited / 50;  // By a clock that may be 1 % fast.
  }
  const nanoseconds took = call.since.run();
  if (took > allowed) {
    wrong(call.what.substr(0, call.what.find('(')) + "() takes too long",
          text_of(call) + ": " + ms_text(took) + ", may take " +
              ms_text(call.limit));
  }
}

void Judge::cancel_begins(WatchedMutex& mutex) {
  mutex.cancel_began = World::the().now();
  mutex.cancel_ended = kNever;
}

void Judge::cancel_ends(WatchedMutex& mutex) {
  mutex.cancel_ended = World::the().now();
}

// "Ends the waits of this mutex that are under way with Errc::cancelled."
void Judge::check_cancel(const Call& call, const Result& result) {
  if (!call.waits || call.mutex == nullptr || result.got) return;
  const Time cancelled = call.mutex->cancel_began;
  // A call that has only just begun may not wait yet.
  nanoseconds until_it_waits = milliseconds(1);
  if (!prompt()) until_it_waits += 3 * plan_.climate.longest_stall;
  if (cancelled < call.since.began + until_it_waits) return;
  const nanoseconds after = World::the().now() - cancelled;
  const bool by_it = result.code == Errc::cancelled;
  const nanoseconds allowed = scheduling() + call.since.kept();
  if (after > allowed && !call.mutex->gone) {
    wrong("cancel() does not end a wait",
          text_of(call) + " went on for " + ms_text(after) +
              (by_it ? "" : " and ended otherwise"));
  }
}

// --- Waits -------------------------------------------------------------------

void Judge::look_at_waits() {
  for (const Call& call : calls_) {
    if (call.any_of && call.for_ever) check_any_of_wait(call);
    if (!call.waits || !call.since.process->alive) continue;
    check_wait(call);
    check_patience_ends(call);
  }
  for (Lock& lock : locks_) look_at_orphan(lock);
}

// Only one of the threads that share a mutex asks DynamoDB, and none while
// another has it.
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
  const Version& version = lock_of(call.mutex->lock).versions.back();
  const Time since = std::max(
      {version.at, call.since.began, calm_from_, call.mutex->unlocked});
  const nanoseconds bound = bound_of(call, version, since) + call.since.kept();
  if (now < since || now - since <= bound) return;
  wrong(version.held ? "a dead holder's lock is not taken"
                     : "a free lock is not taken",
        text_of(call) + " has waited for " + ms_text(now - since) +
            ", should wait " + ms_text(bound));
}

// Options::patience: "It counts from the first error since a request of any
// thread of this mutex last succeeded.  When the time is up, the error is
// reported to all threads that wait in lock()."
void Judge::check_patience_ends(const Call& call) {
  if (!call.for_ever || call.mutex == nullptr) return;
  const WatchedMutex& mutex = *call.mutex;
  if (memory_fails_ || mutex.gone || mutex.locked > 0) return;
  if (mutex.table->slow_keys || mutex.table->bad_keys) return;
  Lock& lock = lock_of(mutex.lock);
  const Time since = std::max(
      {call.since.began, mutex.unlocked, lock.answered[mutex.process]});
  // The first error comes after a pause, and the last request may be late.
  nanoseconds bound = mutex.patience + 2 * mutex.longest_poll +
                      3 * mutex.request_timeout + scheduling();
  // Another thread, which has the turn, may pause before its next attempt.
  if (!call.alone) bound += kLongestPause;
  const nanoseconds waited = World::the().now() - since;
  if (waited > bound + bound / 50 + call.since.kept()) {
    wrong("a call goes on when its patience is over",
          text_of(call) + " for " + ms_text(waited) + ", should for " +
              ms_text(bound));
  }
}

// "True if the lock is ours.  False if another holds it": so not if nobody
// does.
void Judge::check_free(const Call& call, const Result& result) {
  if (!call.gets_lock || result.got || call.mutex == nullptr) return;
  if (!quiet_ || !prompt() || call.free_since == kNever) return;
  if (result.code || call.since.kept() > nanoseconds::zero()) return;
  const Version& version = lock_of(call.mutex->lock).versions.back();
  const bool was_free = !version.held && version.at == call.free_since;
  // Another thread may have tried meanwhile by this mutex.
  if (!prompt() && call.mutex->calls > 0) return;
  // Else it may have waited for another thread.
  if (!was_free || !call.alone || call.mutex->gone) return;
  wrong("a free lock is refused", text_of(call));
}

// Errc: "bad_record: the item is not a lock; it is left alone", "kept_row: the
// item has a fencing token, so set Options::keep_row", "no_row:
// Options::only_if_exists".
void Judge::check_odd(const Call& call, const Result& result) {
  if (result.got) wrong("an item that is no lock is taken", text_of(call));
  // A refusal alone may not tell why, and no time be left to look.
  const bool has_time = call.since.run() + scheduling() < call.limit;
  const bool alone = call.alone && call.mutex->calls == 0 && prompt();
  if (!result.code && alone && has_time) {
    wrong("an item that is no lock counts as held", text_of(call));
  }
}

bool Judge::is_odd(const Call& call) {
  return call.mutex != nullptr && call.mutex->lock == kOddLock;
}

// --- AnyOf ---

// Whether it was free, and wanted, all the time since.
bool Judge::could_be_had(const Lock& lock, const Call& call, Time since) const {
  const Version& version = lock.versions.back();
  if (lock.name == kOddLock || !version.exists || version.at > since) {
    return false;
  }
  if (call.is_choosy && version.done) return false;
  // "An item is taken once DynamoDB's clock shows that its lease ended at least
  // 3 s ago", and that is known to some seconds.
  if (!version.held) return true;
  return tells_end() && version.end > nanoseconds::zero() &&
         kEpoch + since > version.end + seconds(3) + kUntilStoredEnd;
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
  const bool surely = quiet_ && prompt() && !call.table->slow_keys &&
                      !call.table->bad_keys && !call.table->closed &&
                      call.request_timeout > 2 * kSlowestLeg * latency;
  // Else its time may be up before it has tried all.
  const nanoseconds needed =
      seconds(1) + of_a_pass(call) +
      2 * (plan_.locks + 2) * round_trip(*call.since.process->host);
  const bool in_time =
      call.tries > 0 || call.limit >= needed + 2 * call.request_timeout;
  if (!surely || !in_time) return;
  for (const Lock& lock : locks_) {
    if (could_be_had(lock, call, call.since.began)) {
      wrong("a free item is not got", text_of(call) + ": " + lock.name);
    }
  }
}

void Judge::check_any_of_wait(const Call& call) {
  if (!call.since.process->alive || memory_fails_ || call.table->bad_keys ||
      call.table->slow_keys || call.table->closed) {
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
  for (const Lock& lock : locks_) {
    if (could_be_had(lock, call, since)) {
      wrong("a free item is not taken", text_of(call) + ": " + lock.name);
    }
  }
}

// --- Tables ------------------------------------------------------------------

// "Until exists() or create() finds the key right, locks, inspect(), list() and
// force_unlock() fail with wrong_table and send nothing."
void Judge::check_key(const Call& call, const Result& result) {
  if (!plan_.has_wrong_key() || call.table == nullptr) return;
  const bool is_told = result.code == Errc::wrong_table;
  if (is_told) call.table->wrong_key = true;
  if (!call.needs_key) return;
  // A thread that another one of its program keeps waiting asks nobody.
  const bool asks = call.mutex == nullptr || call.alone;
  if (asks && !result.code) {
    wrong("a wrong key is not reported", text_of(call));
  }
  const bool is_only_one =
      std::none_of(calls_.begin(), calls_.end(), [&](const Call& other) {
        return other.since.process == call.since.process;
      });
  if (call.key_is_known && is_told && is_only_one && prompt() &&
      call.since.process->requests != call.requests) {
    wrong("a table is asked whose key is known to be wrong", text_of(call));
  }
}

// "Calls `each` for every item whose key begins with the prefix ... A lock that
// is taken or released meanwhile may or may not be included."
void Judge::check_list(const Call& call, const Result& result) {
  if (call.listed == nullptr || result.code || plan_.has_wrong_key()) return;
  int others = 0;
  for (const auto& [name, times] : *call.listed) {
    if (times > 1) wrong("list() tells a lock twice", name);
    if (name.compare(0, 6, "other-") == 0) others++;
  }
  if (others != plan_.other_rows) {
    wrong("list() leaves out rows", std::to_string(others));
  }
  for (const Lock& lock : locks_) {
    const bool was_there = lock.versions.back().at < call.since.began &&
                           !row_of(lock.name).empty();
    if (was_there && call.listed->count(lock.name) == 0) {
      wrong("list() leaves out a lock", lock.name);
    }
  }
}

nanoseconds Judge::of_tries(const Call& call) const {
  if (call.tries == 0) return nanoseconds::zero();
  const bool fast = quiet_ && !memory_fails_ && !call.table->slow_keys;
  const nanoseconds usual = round_trip(*call.since.process->host);
  if (!fast) return call.tries * call.of_one_try;
  // And a try of another thread that shares the AnyOf.
  return call.tries * std::min(call.of_one_try, usual) + call.of_one_try / 2;
}

// guarded_write(): "if that finds the lock lost, or is not answered within
// request_timeout, owns_lock() turns false".  require(): "lease_lost if it was
// lost, ends_too_soon if less remains."
void Judge::check_lost(const Call& call, const Result& result) {
  if (call.mutex == nullptr || result.code != Errc::lease_lost) return;
  const WatchedMutex& mutex = *call.mutex;
  if (mutex.owned && mutex.owned_since < call.since.began && !mutex.gone) {
    wrong("a lock is owned that is reported as lost", text_of(call));
  }
}

// --- Errors ------------------------------------------------------------------

void Judge::check_code(const Call& call, const Result& result) {
  if (!result.code || is_possible(call, result.code)) return;
  wrong("an error without a reason: " + result.code.message(),
        text_of(call) + ": " + result.text);
}

bool Judge::is_possible(const Call& call, std::error_code code) const {
  if (is(code, std::errc::not_enough_memory)) return memory_fails_;
  if (is(code, std::errc::resource_deadlock_would_occur) &&
      code.category() == std::generic_category()) {
    return call.for_ever && !call.any_of && (call.in_callback || call.again);
  }
  if (is(code, std::errc::io_error)) return call.clock_may_fail;
  // "cannot start a thread".
  if (is(code, std::errc::resource_unavailable_try_again) &&
      code.category() == std::generic_category()) {
    return memory_fails_;
  }
  if (code.category() != ddbmutex::category()) return false;
  const bool bad_keys = plan_.weather.rejected_keys > 0 ||
                        (call.table != nullptr && call.table->bad_keys);
  switch (static_cast<Errc>(code.value())) {
    case Errc::bad_option:
      return call.bad_option;
    case Errc::no_keys:
      return bad_keys || memory_fails_ ||
             (call.table != nullptr && call.table->slow_keys);
    case Errc::bad_keys:
      // "No host's time of day matters", where answers tell DynamoDB's.
      return bad_keys || (wrong_calendars_ && !plan_.front_ends.date);
    case Errc::expired_keys:
      return bad_keys;
    case Errc::condition_failed:
      return call.has_condition;
    case Errc::wrong_table:
      return plan_.has_wrong_key();
    case Errc::bad_record:
    case Errc::kept_row:
      return others_ || is_odd(call) ||
             (call.mutex == nullptr && plan_.odd_row);  // inspect()
    case Errc::no_row:
      return call.what.compare(0, 5, "AnyOf") == 0 || is_odd(call);
    case Errc::not_supported:
      return !plan_.front_ends.date;
    case Errc::unreachable:
    case Errc::disconnected:
    case Errc::throttled:
    case Errc::unavailable:
      return !quiet_ || bad_keys;
    case Errc::bad_answer:
      return plan_.weather.truncated > 0;
    case Errc::timed_out:
      // It may get its turn when there is no time left to ask.
      return call.mutex == nullptr || !quiet_ || !prompt() || call.open_ended ||
             !call.alone || !surely_answered(*call.mutex) ||
             call.limit < 8 * round_trip(*call.since.process->host);
    case Errc::closed:
      return call.table != nullptr && call.table->closed;
    case Errc::cancelled:
      return call.mutex != nullptr &&
             (call.mutex->gone || call.mutex->cancel_ended >= call.since.began);
    case Errc::not_held:
    case Errc::lease_lost:
    case Errc::ends_too_soon:
      return !call.gets_lock || call.mutex == nullptr || call.again;
    default:
      return false;
  }
}

}  // namespace world
