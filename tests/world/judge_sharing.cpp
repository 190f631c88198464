// What the judge says about threads that share one DdbMutex, and about options
// that limit how long a lock is held.
#include <algorithm>

#include "tests/world/judge.hpp"

namespace world {

using ddbmutex::Errc;
using std::chrono::milliseconds;
using std::chrono::seconds;

bool Judge::prompt() const {
  return plan_.climate.stalls <= 0 && !memory_fails_;
}

// "Threads that share one DdbMutex exclude each other too, first come, first
// served."
void Judge::check_turn(const Call& call) {
  const WatchedMutex& mutex = *call.mutex;
  if (!prompt() || mutex.locked > 0 || mutex.gone || mutex.table->closed) {
    return;
  }
  for (const Call& other : calls_) {
    const bool was_first = other.mutex == &mutex && other.waits &&
                           other.since.began < call.since.began;
    const bool cancelled = mutex.cancel_ended >= other.since.began;
    // Its time is up, or nearly so.
    const bool over = other.limit != nanoseconds::max() &&
                      other.since.run() + scheduling() >= other.limit;
    if (was_first && !cancelled && !over && !other.open_ended) {
      wrong("a thread gets the lock out of turn",
            call.what + " of " + mutex.lock + " in " + mutex.process->name +
                ", before " + other.what);
    }
  }
}

// Called when a thread has the lock, before it counts as locked.
void Judge::check_shared(WatchedMutex& mutex, int thread) {
  if (prompt() && mutex.locked > 0 && mutex.holder != thread) {
    wrong("two threads have locked one mutex",
          mutex.lock + " in " + mutex.process->name);
  }
  if (mutex.locked > 0 || !mutex.owned) return;
  const bool taken = mutex.owned_since != mutex.acquired_since;
  mutex.acquired_since = mutex.owned_since;
  mutex.handed_over = taken ? 0 : mutex.handed_over + 1;
  if (!taken) check_hand_over(mutex);
}

// Options::handover_limit: "that is only done within ttl / 2 of when the lease
// was taken ... A mutex with keep_row, kept data, max_hold or without
// auto_renew takes a new lease each time.  So does any mutex after
// guarded_write(), condition_check() or a renew() with changes."
void Judge::check_hand_over(const WatchedMutex& mutex) {
  const std::string what = mutex.lock + " in " + mutex.process->name;
  if (mutex.handed_over > mutex.handover_limit) {
    wrong("a lease is handed over too often", what);
  }
  if (mutex.tied) wrong("a lease that may not be is handed over", what);
  if (!prompt() || may_be_held_up(mutex)) return;
  const Time now = World::the().now();
  const nanoseconds held = now - mutex.owned_since;
  const nanoseconds left = mutex.claim_end - mutex.process->host->boot(now);
  const nanoseconds half = mutex.ttl / 2;
  if (held > half + mutex.ttl / 50 + scheduling() ||
      left + scheduling() < half) {
    wrong("a lease is handed over too late", what);
  }
}

bool Judge::may_be_held_up(const WatchedMutex& mutex) const {
  return mutex.owned_clock.process == nullptr ||
         mutex.owned_clock.kept() > nanoseconds::zero();
}

// lock() has returned: "the lock is ours".
void Judge::check_owned(const WatchedMutex& mutex) {
  // It was lost before the one who had it unlocked it.
  if (prompt() && !mutex.owned && mutex.locked == 1 && !mutex.gone &&
      !mutex.table->closed && mutex.last_owned < mutex.unlocked) {
    wrong("a lock that is lost is handed over",
          mutex.lock + " in " + mutex.process->name);
  }
  if (mutex.owned || is_loss_expected(mutex) || mutex.table->closed) return;
  if (mutex.owned_since == kNever || mutex.gone) return;
  wrong("lock() returns, and the lock is not owned",
        mutex.lock + " in " + mutex.process->name);
}

// Options::recursive: "Locking again fails with Errc::lease_lost if the lock
// was lost meanwhile."  And: "The destructor ends a wait in another thread".
void Judge::check_locked_again(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  if (!call.gets_lock || !result.got || !prompt()) return;
  const std::string what = mutex.lock + " in " + mutex.process->name;
  if (call.again && !call.owned && mutex.unlocked < call.since.began) {
    wrong("a lock that is lost is locked again", what);
  }
  if (mutex.gone) wrong("a call gets the lock of a mutex that is gone", what);
}

// "True while the lease is certainly ours": so not before it is locked, nor
// after it was unlocked.
void Judge::check_idle(WatchedMutex& mutex) {
  const bool idle = mutex.owned && mutex.locked == 0 && mutex.calls == 0;
  if (!idle) {
    mutex.idle.process = nullptr;
  } else if (mutex.idle.process == nullptr) {
    mutex.idle = Stopwatch::start(*mutex.process);
  } else if (mutex.idle.run() > scheduling()) {
    wrong("a lock is owned that no thread has locked",
          mutex.lock + " in " + mutex.process->name);
  }
}

// Options::max_hold: "How long after the lock was taken it is renewed
// automatically.  After that it is lost at the end of its lease, unless renew()
// is called."
void Judge::check_longest_hold(const WatchedMutex& mutex) {
  if (mutex.longest_hold == nanoseconds::max() || mutex.renewed_by_hand) return;
  const nanoseconds held = World::the().now() - mutex.owned_since;
  const nanoseconds allowed = mutex.longest_hold + mutex.longest_hold / 50 +
                              mutex.process->host->paused - mutex.paused;
  if (held > allowed) {
    wrong("a lock is held for longer than its options say",
          mutex.lock + " in " + mutex.process->name);
  }
}

// Table::close(): "Afterwards no mutex holds a lock, unless memory ran out".
void Judge::check_closed(const Call& call, const Result& result) {
  if (memory_fails_) return;
  bool surely = quiet_ && prompt();
  for (const WatchedMutex* mutex : watched_) {
    if (mutex->table != call.table || !mutex->process->alive) continue;
    const std::string what = mutex->lock + " in " + mutex->process->name;
    if (mutex->owned) wrong("a mutex of a closed table owns its lock", what);
    const Version& version = lock_of(mutex->lock).versions.back();
    const bool is_ours = version.held && version.proof == mutex->proof;
    if (result.got && mutex->was_closed && is_ours && surely) {
      wrong("close() leaves a lock and does not say so", what);
    }
    surely = surely && surely_answered(*mutex) && !mutex->forced &&
             call.limit > 4 * mutex->request_timeout;
  }
  // Those that another thread was destroying are not looked at.
  for (const WatchedMutex& mutex : mutexes_) {
    surely = surely && (mutex.table != call.table || !mutex.gone ||
                        mutex.forgotten < call.since.began);
  }
  // "Returns those that could not be released within that time."
  if (!result.got && surely) {
    wrong("close() does not release what it could", call.since.process->name);
  }
}

// --- Rows that nobody has
// -----------------------------------------------------

// Whether its row may be held in its name.
bool Judge::may_have(const WatchedMutex& mutex, const Lock& lock) const {
  return mutex.lock == lock.name && mutex.process == lock.versions.back().by &&
         (mutex.owned || mutex.locked > 0 || mutex.calls > 0);
}

bool Judge::may_be_orphaned(const Lock& lock) const {
  const Version& version = lock.versions.back();
  const Time now = World::the().now();
  if (!version.held || !version.by->alive || version.by->failure_every > 0 ||
      now - version.at > version.lease) {
    return false;
  }
  if (memory_fails_ && over_.count(version.by) > 0) return false;
  for (const Call& call : calls_) {  // Such as those of AnyOf, and destructors.
    if (call.since.process == version.by && call.mutex == nullptr) return false;
  }
  return std::none_of(
      mutexes_.begin(), mutexes_.end(),
      [&](const WatchedMutex& one) { return may_have(one, lock); });
}

// "No lock is then left behind that nobody can unlock", "a release that is not
// finished by then goes on in the background", "the last destructor waits for
// that".
void Judge::look_at_orphan(Lock& lock) {
  if (!peaceful_ || others_) return;
  if (!may_be_orphaned(lock)) {
    lock.orphaned.process = nullptr;
    return;
  }
  const Process& by = *lock.versions.back().by;
  if (lock.orphaned.process != &by) {
    lock.orphaned = Stopwatch::start(by);
    return;
  }
  bool surely = false;
  nanoseconds bound = seconds(1) + scheduling();
  for (const WatchedMutex& mutex : mutexes_) {
    if (mutex.process != &by || mutex.lock != lock.name) continue;
    surely = true;
    if (!surely_answered(mutex)) return;
    bound = std::max(bound, seconds(1) + scheduling() +
                                3 * nanoseconds(mutex.request_timeout));
  }
  if (surely && lock.orphaned.run() > bound) {
    wrong("a row is held that no mutex has", lock.name + " by " + by.name);
  }
}

// "Gives the lock back, or hands it over to a thread that waits for this
// mutex."
void Judge::check_unlocked(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  if (prompt() && mutex.owned && mutex.locked == 0 && mutex.calls == 0) {
    wrong("a lock is owned after its unlock()",
          mutex.lock + " in " + mutex.process->name);
  }
  const bool sure = quiet_ && prompt() && call.held && call.alone &&
                    !result.code && !mutex.table->closed &&
                    call.since.run() < mutex.request_timeout / 2 &&
                    is_fast(mutex) && !mutex.table->bad_keys;
  if (!sure || mutex.owned || mutex.calls > 0 || mutex.locked > 0 ||
      mutex.proof.empty() || mutex.forced) {
    return;
  }
  const Version& version = lock_of(mutex.lock).versions.back();
  if (version.held && version.proof == mutex.proof) {
    wrong("unlock() leaves the lock as it was",
          mutex.lock + " in " + mutex.process->name);
  }
}

// release() "reports errors: not_held; lease_lost".  What happens while it is
// under way it may find or not.
void Judge::check_release(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  const Host& host = *mutex.process->host;
  const bool is_sure = call.owned && call.held && call.alone &&
                       mutex.calls == 0 && mutex.locked == 0 && !mutex.gone &&
                       !mutex.table->closed && !mutex.unsure &&
                       host.boot(World::the().now()) < call.claim_end;
  if (!is_sure || copies_deceive()) return;
  const std::string what = mutex.lock + " in " + mutex.process->name;
  if (result.code == Errc::lease_lost && taken_away(mutex) == kNever) {
    wrong("release() reports a loss of a lock that nobody took", what);
  }
  // It may have been released meanwhile.  And behind an attempt that was not
  // answered, a row that is another's looks as if that had released it.
  if (!result.code && call.anothers && quiet_ &&
      lock_of(mutex.lock).versions.back().at < call.since.began) {
    wrong("release() reports no loss of a lock that is another's", what);
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
  wrong("a call gives up early", call.what + " of " + mutex.lock + " in " +
                                     mutex.process->name + ": " + result.text);
}

// "If less remains even after the renewal", that is an error of ensure().
void Judge::check_remaining(const WatchedMutex& mutex, nanoseconds promised) {
  if (!prompt() || mutex.gone || mutex.lets_go || mutex.forced ||
      mutex.table->closed || !quiet_) {
    return;
  }
  const As as(*mutex.process);
  if (mutex.mutex->remaining() + scheduling() < promised) {
    wrong("less remains than was ensured",
          mutex.lock + " in " + mutex.process->name);
  }
}

}  // namespace world
