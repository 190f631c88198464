// What the judge says about single calls: how long they take, and what is true
// when they return.
#include <algorithm>
#include <utility>

#include "tests/world/judge.hpp"
#include "tests/world/odd_rows.hpp"

namespace world {

using ddbmutex::Errc;
using std::chrono::milliseconds;

Judge::CallPlace Judge::begins(Call call) {
  call.since = Stopwatch::start(World::the().process());
  if (call.table == nullptr && call.mutex != nullptr) {
    call.table = call.mutex->table;
  }
  if (call.table != nullptr) {
    call.callbacks = call.table->in_callbacks;
    call.key_is_known = call.table->wrong_key;
  }
  const Process& process = *call.since.process;
  for (Call& other : calls_) {
    if (other.since.process != &process) continue;
    other.met_others = call.met_others = true;
  }
  call.requests = process.requests;
  if (call.any_of &&
      !is_enough_for_an_answer(*process.host, call.request_timeout)) {
    hasty_.insert(&process);
  }
  if (call.mutex != nullptr) mutex_call_begins(call, *call.mutex);
  return calls_.insert(calls_.end(), std::move(call));
}

void Judge::mutex_call_begins(Call& call, WatchedMutex& mutex) {
  call.held = mutex.locked > 0;
  call.alone = mutex.calls == 0 && (mutex.locked == 0 || call.lets_go);
  mutex.calls++;
  mutex.renewed_by_hand |= call.renews;
  if (call.renews) mutex.ends_by = BootTime::max();
  const Version& version = lock_of(mutex.lock).versions.back();
  if (!version.held) call.free_since = version.at;
  if (call.gets_lock || call.lets_go) look();
  call.owned = mutex.owned;
  call.claim_end = mutex.claim_end;
  call.anothers = version.held && version.proof != mutex.proof;
  // "Does nothing if the mutex is not locked."
  if (call.lets_go && (call.held || !prompt())) {
    mutex.to_be_told = mutex.lost;
    mutex.lets_go = true;
    mutex.unlocked = World::the().now();
    if (mutex.locked > 0) mutex.locked--;
  }
}

void Judge::ends(CallPlace place, const Result& result) {
  look();
  const Call call = *place;
  calls_.erase(place);
  if (call.what == "exists()") call.table->asked_for_key = World::the().now();
  if (call.mutex != nullptr) mutex_call_ends(call, *call.mutex, result);
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
  if (plan_.loops && call.gets_lock && result.got) take_turn(call);
  check_got(call, result);
  if (call.lets_go) check_unlocked(call, result);
  if (call.what.compare(0, 7, "release") == 0) check_release(call, result);
  if (!result.code) check_remaining(*call.mutex, call.ensures);
  check_patience(call, result);
}

void Judge::mutex_call_ends(const Call& call, WatchedMutex& mutex,
                            const Result& result) {
  const Time now = World::the().now();
  const bool no_memory = result.code == std::errc::not_enough_memory;
  mutex.calls--;
  if (call.changes && result.code) mutex.data_unsure = true;
  if (call.stops_renewing && mutex.owned) {
    mutex.stopped_renewing = true;
    if (mutex.calls == 0) {
      mutex.ends_by = mutex.process->host->boot(now) + mutex.ttl;
    }
  }
  // A call that got the lock and could not keep it reports no loss.
  if (call.gets_lock && !result.got && mutex.lost && mutex.locked == 0) {
    mutex.lets_go = true;
  }
  if (!call.lets_go) return;
  mutex.unlock_ended = now;
  // If its release has not changed the row, an attempt may still be under way.
  const Version& last = lock_of(mutex.lock).versions.back();
  const bool released = last.by == mutex.process && !last.held && !mutex.forced;
  const bool is_finished = (quiet_ || mutex.owned || released) &&
                           !result.code && call.since.kept() <= kScheduling &&
                           call.since.run() < mutex.request_timeout / 2;
  if (!is_finished) mutex.unfinished_until = now + 2 * mutex.ttl;
  // If memory ran out, the mutex is still locked.
  if (call.held && no_memory) mutex.locked++;
}

// --- Time --------------------------------------------------------------------

void Judge::check_time(const Call& call) {
  if (call.limit == nanoseconds::max()) return;
  nanoseconds allowed = call.limit + scheduling();
  if (!prompt()) allowed += call.of_one_try;
  allowed += of_tries(call);
  // "unlock() has no such timer: after a suspend it may take up to
  // request_timeout more."
  if (call.lets_go && call.since.was_frozen()) allowed += call.limit;
  // It gives back what it took of a mutex that is being destroyed.
  if (call.mutex != nullptr && call.mutex->gone) {
    allowed += call.mutex->request_timeout;
  }
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

nanoseconds Judge::of_tries(const Call& call) const {
  if (call.tries == 0) return nanoseconds::zero();
  const bool fast = quiet_ && !memory_fails_ && !call.table->slow_keys;
  const nanoseconds usual = round_trip(*call.since.process->host);
  if (!fast) return call.tries * call.of_one_try;
  // Half a try more, for another thread that shares the AnyOf.
  return call.tries * std::min(call.of_one_try, usual) + call.of_one_try / 2;
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
    wrong("cancel() or close() does not end a wait",
          text_of(call) + " went on for " + ms_text(after) +
              (by_it ? "" : " and ended otherwise"));
  }
}

// --- Tables ------------------------------------------------------------------

// "Until table_exists() or create_table() finds the key right, locks,
// inspect(), list_locks() and force_unlock() fail with wrong_table and send
// nothing."
void Judge::check_key(const Call& call, const Result& result) {
  if (!plan_.has_wrong_key() || call.table == nullptr) return;
  const bool is_told = result.code == Errc::wrong_table;
  if (is_told) call.table->wrong_key = true;
  if (!call.needs_key) return;
  // A thread that waits for another one of its program sends no request.
  const bool asks = call.mutex == nullptr || call.alone;
  if (asks && !result.code) {
    wrong("a wrong key is not reported", text_of(call));
  }
  // While a call awaits its turn, others may ask which key the table has.
  if (call.key_is_known && is_told && asks && !call.met_others &&
      call.table->only && prompt() &&
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

// Table::close(): "Afterwards no mutex holds a lock, unless memory ran out".
void Judge::check_closed(const Call& call, const Result& result) {
  if (memory_fails_) return;
  bool surely = quiet_ && prompt();
  const bool nothing_comes_late =
      prompt() && plan_.weather.late <= 0 && plan_.weather.doubled <= 0;
  for (const WatchedMutex* mutex : watched_) {
    if (mutex->table != call.table || !mutex->process->alive) continue;
    const std::string what = whose(*mutex);
    if (mutex->owned) wrong("a mutex of a closed table owns its lock", what);
    const Version& version = lock_of(mutex->lock).versions.back();
    const bool is_ours = version.held && version.proof == mutex->proof;
    if (result.got && mutex->was_closed && is_ours && nothing_comes_late &&
        !mutex->unsure) {
      wrong("close() leaves a lock and does not say so", what);
    }
    // Such a lock is lost, and close() may be the first to find that out.
    const bool has_ended =
        mutex->not_unlocked &&
        mutex->process->host->boot(World::the().now()) >= mutex->claim_end;
    surely = surely && surely_answered(*mutex) && !mutex->forced &&
             !has_ended && call.limit > 4 * mutex->request_timeout;
  }
  // Not sure either if another thread was destroying one of its mutexes.
  for (const WatchedMutex& mutex : mutexes_) {
    surely = surely && (mutex.table != call.table || !mutex.gone ||
                        mutex.forgotten < call.since.began);
  }
  // "Returns those that could not be released within that time."
  if (!result.got && surely) {
    wrong("close() does not release what it could", call.since.process->name);
  }
}

// --- Locks -------------------------------------------------------------------

// Errc: "bad_record: the item is not a lock; it is left alone", "kept_row: the
// item has a fencing token, so set Options::keep_row", "no_row:
// Options::only_if_exists".
void Judge::check_odd(const Call& call, const Result& result) {
  if (result.got) wrong("an item that is no lock is taken", text_of(call));
  // A refusal alone may not say why, and there may be no time left to read it.
  const bool has_time =
      !call.open_ended && call.since.run() + scheduling() < call.limit;
  const bool alone = call.alone && call.mutex->calls == 0 && prompt();
  if (!result.code && alone && has_time) {
    wrong("an item that is no lock counts as held", text_of(call));
  }
}

bool Judge::is_odd(const Call& call) {
  return call.mutex != nullptr && call.mutex->lock == kOddLock;
}

// guarded_write(): "if that finds the lock lost, or is not answered within
// request_timeout, owns_lock() turns false".  require(): "lease_lost if it was
// lost, ends_too_soon if less remains."
void Judge::check_lost(const Call& call, const Result& result) {
  if (call.mutex == nullptr || result.code != Errc::lease_lost) return;
  const WatchedMutex& mutex = *call.mutex;
  // A copy of its own take may come when the row was freed by force.
  const bool is_back = mutex.forced && plan_.weather.doubled > 0;
  if (mutex.owned && mutex.owned_since < call.since.began && !mutex.gone &&
      !is_back) {
    wrong("a lock is owned that is reported as lost", text_of(call));
  }
}

// "Gives the lock back."
void Judge::check_unlocked(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  if (prompt() && mutex.owned && mutex.locked == 0 && mutex.calls == 0) {
    wrong("a lock is owned after its unlock()", whose(mutex));
  }
  // fencing_token(): "0 while the mutex is not locked".
  if (prompt() && mutex.locked == 0 && mutex.calls == 0 && !mutex.gone) {
    const As as(*mutex.process);
    if (mutex.mutex->fencing_token() != 0) {
      wrong("an unlocked mutex has a token", whose(mutex));
    }
  }
  const bool sure = quiet_ && prompt() && call.held && call.alone &&
                    !result.code && !mutex.table->closed &&
                    call.since.run() < mutex.request_timeout / 2 &&
                    surely_answered(mutex);
  if (!sure || mutex.owned || mutex.calls > 0 || mutex.locked > 0 ||
      mutex.proof.empty() || mutex.forced) {
    return;
  }
  const Version& version = lock_of(mutex.lock).versions.back();
  if (version.held && version.proof == mutex.proof) {
    wrong("unlock() leaves the lock as it was", whose(mutex));
  }
}

// release() "reports errors: not_held; lease_lost".  It may or may not notice
// what happens while it is under way.
void Judge::check_release(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  const Host& host = *mutex.process->host;
  const bool is_sure = call.owned && call.held && call.alone &&
                       mutex.calls == 0 && mutex.locked == 0 && !mutex.gone &&
                       !mutex.table->closed && !mutex.unsure &&
                       host.boot(World::the().now()) < call.claim_end;
  if (!is_sure || copies_deceive()) return;
  const std::string what = whose(mutex);
  if (result.code == Errc::lease_lost &&
      when_taken_away(mutex, mutex.proof) == kNever) {
    wrong("release() reports a loss of a lock that nobody took", what);
  }
  // "If an attempt was throttled, failed in DynamoDB or was not answered", a
  // later one that finds the row another's counts as success.
  if (!result.code && call.anothers && (quiet_ || contention_) &&
      lock_of(mutex.lock).versions.back().at < call.since.began) {
    wrong("release() reports no loss of a lock that is another's", what);
  }
}

// ensure() fails "if less remains even after the renewal".
void Judge::check_remaining(const WatchedMutex& mutex, nanoseconds promised) {
  if (!prompt() || mutex.gone || mutex.lets_go || mutex.forced ||
      mutex.table->closed || !quiet_) {
    return;
  }
  const As as(*mutex.process);
  if (mutex.mutex->remaining() + scheduling() < promised) {
    wrong("less remains than was ensured", whose(mutex));
  }
}

}  // namespace world
