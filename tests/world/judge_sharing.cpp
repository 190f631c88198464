// What the judge says about threads that share one DdbMutex, and about options
// that limit how long a lock is held.
#include "tests/world/judge.hpp"

namespace world {

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
            call.what + " of " + whose(mutex) + ", before " + other.what);
    }
  }
}

// Called when a thread has the lock, before it counts as locked.
void Judge::check_shared(WatchedMutex& mutex, int thread) {
  if (prompt() && mutex.locked > 0 && mutex.holder != thread) {
    wrong("two threads have locked one mutex", whose(mutex));
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
  const std::string what = whose(mutex);
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
  // The thread before had lost it when it unlocked it.
  if (prompt() && !mutex.owned && mutex.locked == 1 && !mutex.gone &&
      !mutex.table->closed && mutex.last_owned < mutex.unlocked) {
    wrong("a lock that is lost is handed over", whose(mutex));
  }
  if (mutex.owned || is_loss_expected(mutex) || mutex.table->closed) return;
  if (mutex.owned_since == kNever || mutex.gone) return;
  wrong("lock() returns, and the lock is not owned", whose(mutex));
}

// Options::recursive: "Locking again fails with Errc::lease_lost if the lock
// was lost meanwhile."  And: "The destructor ends a wait in another thread".
void Judge::check_locked_again(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  if (!call.gets_lock || !result.got || !prompt()) return;
  const std::string what = whose(mutex);
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
    wrong("a lock is owned that no thread has locked", whose(mutex));
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
    wrong("a lock is held for longer than its options say", whose(mutex));
  }
}

}  // namespace world
