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
}

// lock() has returned: "the lock is ours".
void Judge::check_owned(const WatchedMutex& mutex) {
  if (mutex.owned || is_loss_expected(mutex) || mutex.table->closed) return;
  if (mutex.owned_since == kNever || mutex.gone) return;
  wrong("lock() returns, and the lock is not owned", whose(mutex));
}

// "The destructor ends a wait in another thread".
void Judge::check_got(const Call& call, const Result& result) {
  const WatchedMutex& mutex = *call.mutex;
  if (!call.gets_lock || !result.got || !prompt() || !mutex.gone) return;
  wrong("a call gets the lock of a mutex that is gone", whose(mutex));
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
  // stop_renewing(): "It stays ours until its lease ends, and is then lost,
  // unless renew() is called."
  if (mutex.claim_end > mutex.ends_by) {
    wrong("a lease is renewed after stop_renewing()", whose(mutex));
  }
  if (mutex.longest_hold == nanoseconds::max() || mutex.renewed_by_hand) return;
  const nanoseconds held = World::the().now() - mutex.owned_since;
  const nanoseconds allowed = mutex.longest_hold + mutex.longest_hold / 50 +
                              mutex.process->host->paused - mutex.paused;
  if (held > allowed) {
    wrong("a lock is held for longer than its options say", whose(mutex));
  }
}

}  // namespace world
