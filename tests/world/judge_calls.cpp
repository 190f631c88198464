// What the judge says about single calls: how long they take, how long they
// wait for a lock that they could have, and which errors they report.
#include <algorithm>
#include <utility>

#include "tests/world/judge.hpp"

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

Judge::CallPlace Judge::begins(Call call) {
  call.since = Stopwatch::start(World::the().process());
  if (call.table == nullptr && call.mutex != nullptr) {
    call.table = call.mutex->table;
  }
  if (call.table != nullptr) call.callbacks = call.table->in_callbacks;
  if (call.mutex != nullptr) {
    WatchedMutex& mutex = *call.mutex;
    call.held = mutex.locked > 0;
    call.alone = mutex.calls == 0 && mutex.locked == 0;
    mutex.calls++;
    mutex.renewed_by_hand = mutex.renewed_by_hand || call.renews;
    const Version& version = lock_of(mutex.lock).versions.back();
    if (!version.held) call.free_since = version.at;
    if (call.lets_go) {
      look();
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
    // Without memory it has not come that far.
    if (call.ties && call.held &&
        !is(result.code, std::errc::not_enough_memory) &&
        mutex->unlocked < call.since.began) {
      mutex->tied = true;
    }
    if (call.lets_go && (result.code || call.since.kept() > kScheduling ||
                         call.since.run() >= mutex->request_timeout / 2)) {
      mutex->unfinished_until = World::the().now() + 2 * mutex->ttl;
    }
    // What it got, and could not keep, is no loss.
    if (call.gets_lock && !result.got && mutex->lost && mutex->locked == 0) {
      mutex->lets_go = true;
    }
  }
  check_time(call);
  check_cancel(call, result);
  check_code(call, result);
  check_free(call, result);
  if (call.waits) check_wait(call);
  if (call.what == "close()") check_closed(call);
  if (call.mutex == nullptr) return;
  if (call.gets_lock && result.got) check_turn(call);
  if (call.lets_go) check_unlocked(call, result);
  if (!result.code) check_remaining(*call.mutex, call.ensures);
  check_patience(call, result);
}

// --- Time --------------------------------------------------------------------

void Judge::check_time(const Call& call) {
  if (call.limit == nanoseconds::max()) return;
  // Until it has its turn, it has found no record.
  if (call.open_ended && !call.alone) return;
  nanoseconds allowed = call.limit + scheduling();
  // "unlock() has no such timer: after a suspend it may take up to
  // request_timeout more."
  if (call.lets_go && call.since.was_suspended()) allowed += call.limit;
  if (call.after_callbacks && call.table != nullptr) {
    allowed += call.table->in_callbacks - call.callbacks;
    if (call.table->callbacks > 0) {
      allowed += World::the().now() - call.table->callback_began;
    }
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
    if (call.waits && call.since.process->alive) check_wait(call);
  }
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
nanoseconds Judge::bound_of(const Call& call, const Version& version) const {
  nanoseconds bound = call.mutex->longest_poll +
                      3 * round_trip(*call.since.process->host) + scheduling();
  if (call.mutex->table->slow_keys) bound += kSlowKeys;
  if (version.held) {
    bound += version.lease + version.lease / 100;
    if (!version.names_lease) bound += kUntilStoredEnd;
  }
  // By a clock that may be 1 % slow.
  return bound + bound / 50;
}

void Judge::check_wait(const Call& call) {
  if (call.mutex == nullptr || call.mutex->gone || !has_turn(call)) return;
  if (memory_fails_ || call.mutex->table->bad_keys) return;
  if (!is_fast(*call.mutex)) return;
  const Time now = World::the().now();
  const Version& version = lock_of(call.mutex->lock).versions.back();
  const Time since = std::max(
      {version.at, call.since.began, calm_from_, call.mutex->unlocked});
  const nanoseconds bound = bound_of(call, version) + call.since.kept();
  if (now < since || now - since <= bound) return;
  wrong(version.held ? "a dead holder's lock is not taken"
                     : "a free lock is not taken",
        text_of(call) + " has waited for " + ms_text(now - since) +
            ", should wait " + ms_text(bound));
}

// "True if the lock is ours.  False if another holds it": so not if nobody
// does.
void Judge::check_free(const Call& call, const Result& result) {
  if (!call.gets_lock || result.got || call.mutex == nullptr) return;
  if (!quiet_ || memory_fails_ || call.free_since == kNever) return;
  if (result.code || call.since.kept() > nanoseconds::zero()) return;
  const Version& version = lock_of(call.mutex->lock).versions.back();
  const bool was_free = !version.held && version.at == call.free_since;
  // Another thread may have tried meanwhile by this mutex.
  // Else it may have waited for another thread.
  if (!was_free || !call.alone || call.mutex->gone) return;
  wrong("a free lock is refused", text_of(call));
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
    return call.may_be_refused;
  }
  // "cannot start a thread".
  if (is(code, std::errc::resource_unavailable_try_again) &&
      code.category() == std::generic_category()) {
    return memory_fails_;
  }
  if (code.category() != ddbmutex::category()) return false;
  const bool bad_keys = plan_.weather.rejected_keys > 0 ||
                        (call.table != nullptr && call.table->bad_keys);
  const bool others =
      std::any_of(plan_.programs.begin(), plan_.programs.end(),
                  [](const ProgramPlan& program) { return program.rival; });
  switch (static_cast<Errc>(code.value())) {
    case Errc::bad_option:
      return call.bad_option;
    case Errc::no_keys:
      return bad_keys || memory_fails_ ||
             (call.table != nullptr && call.table->slow_keys);
    case Errc::bad_keys:
      return bad_keys || wrong_calendars_;
    case Errc::expired_keys:
      return bad_keys;
    case Errc::condition_failed:
      return call.has_condition;
    case Errc::bad_record:
    case Errc::kept_row:
      return others;
    case Errc::no_row:
      return call.what.compare(0, 5, "AnyOf") == 0;
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
      return true;
    case Errc::closed:
      return call.table != nullptr && call.table->closed;
    case Errc::cancelled:
      return call.mutex != nullptr &&
             (call.mutex->gone || call.mutex->cancel_ended >= call.since.began);
    case Errc::not_held:
    case Errc::lease_lost:
    case Errc::ends_too_soon:
      return !call.gets_lock || call.mutex == nullptr || call.may_be_refused;
    default:
      return false;
  }
}

}  // namespace world
