// What the judge says about threads that share one DdbMutex, and about options
// that limit how long a lock is held.
#include <algorithm>

#include "tests/world/judge.hpp"

namespace world {

using ddbmutex::Errc;
using std::chrono::milliseconds;

// No thread stops between two instructions, so what a call does it does when it
// begins.
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
  const nanoseconds held = World::the().now() - mutex.owned_since;
  if (prompt() && held > mutex.ttl / 2 + mutex.ttl / 50 + scheduling() &&
      !may_be_held_up(mutex)) {
    wrong("a lease is handed over too late", what);
  }
}

bool Judge::may_be_held_up(const WatchedMutex& mutex) const {
  return mutex.owned_clock.process == nullptr ||
         mutex.owned_clock.kept() > nanoseconds::zero();
}

// lock() has returned: "the lock is ours".
void Judge::check_owned(const WatchedMutex& mutex) {
  if (mutex.owned || is_loss_expected(mutex) || mutex.table->closed) return;
  if (mutex.owned_since == kNever || mutex.gone) return;
  wrong("lock() returns, and the lock is not owned",
        mutex.lock + " in " + mutex.process->name);
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
void Judge::check_closed(const Call& call) {
  if (memory_fails_) return;
  for (const WatchedMutex* mutex : watched_) {
    if (mutex->table == call.table && mutex->owned && mutex->process->alive) {
      wrong("a mutex of a closed table owns its lock",
            mutex->lock + " in " + mutex->process->name);
    }
  }
}

// "Gives the lock back, or hands it over to a thread that waits for this
// mutex."
void Judge::check_unlocked(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  const bool sure = quiet_ && prompt() && call.alone && !result.code &&
                    call.since.run() < mutex.request_timeout / 2 &&
                    is_fast(mutex) && !mutex.table->bad_keys;
  if (!sure || mutex.owned || mutex.calls > 0 || mutex.proof.empty()) return;
  const Version& version = lock_of(mutex.lock).versions.back();
  if (version.held && version.proof == mutex.proof) {
    wrong("unlock() leaves the lock as it was",
          mutex.lock + " in " + mutex.process->name);
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
  if (!transient || !call.waits || !call.alone || mutex.gone) return;
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
