// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The Holds of a table.  Callers and the two threads of the table share them.
// This file says how a Hold goes from one phase to the next, when its next
// request is due, and when something is to be reported of it.
//
// Thread safety: one mutex guards everything here.  It is only held for work in
// memory, never while a request is sent, a callback runs or a thread is joined.
#ifndef DDBMUTEX_HOLDS_HPP
#define DDBMUTEX_HOLDS_HPP

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/waiting.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "hold.hpp"
#include "lines.hpp"
#include "order.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// A thread of the table, which sleeps until something is due for it.
class Sleeper {
 public:
  // Makes the thread look again at that time or earlier.
  void wake_at(BootTime when) {
    if (note_wake_at(when)) waker_.wake();
  }
  void wake_now() { wake_at(BootTime::min()); }
  // Like wake_at(), but does not wake the thread.  If it returns true, the
  // caller must call waker().wake(): best without the mutex, which the thread
  // locks as soon as it is awake.
  [[nodiscard]] bool note_wake_at(BootTime when) {
    if (looks_again_ || when >= sleeps_until_) return false;
    sleeps_until_ = when;
    return true;
  }
  // Nobody needs to wake the thread: it looks at everything before it sleeps.
  void set_awake() { looks_again_ = true; }
  // The thread begins to look.  What comes from now on wakes it.
  void set_looking(BootTime now) {
    if (sleeps_until_ <= now) sleeps_until_ = kNever;  // That time has come.
    looks_again_ = false;
  }
  // Records until when the thread will sleep.
  void set_sleeps_until(BootTime when) {
    sleeps_until_ = when;
    looks_again_ = false;
  }
  BootTime sleeps_until() const { return sleeps_until_; }
  sigv4::Waker& waker() { return waker_; }  // Needs no mutex.

 private:
  sigv4::Waker waker_;
  BootTime sleeps_until_ = BootTime::min();
  bool looks_again_ = true;
};

struct Holds {
  using Guard = std::unique_lock<sigv4::Mutex>;
  using Phase = Hold::Phase;

  Holds(dynamodb::Client& the_client, dynamodb::RetryBudget& the_budget)
      : client(the_client), budget(the_budget) {}
  Holds(const Holds&) = delete;
  Holds& operator=(const Holds&) = delete;

  // A new one, which is taking.  Later it moves between phases and orders
  // without memory.
  HoldPtr make(const MutexSettingsPtr& settings);
  // It was granted.
  void keep(Hold& hold);
  // Its claim has ended.  REQUIRES: it is held.
  void lose(Hold& hold, Verdict why);
  // Loses it as expired if it is held and its claim has ended.
  void lose_if_ended(Hold& hold, BootTime now);
  // Its caller unlocks it, or the table is closed.  Returns whether a release
  // must be sent.  REQUIRES: it is held or lost.
  bool release(Hold& hold);
  // The caller of a take has gone.  REQUIRES: it is taking.
  void leave(Hold& hold);
  // Changes the phase, and plans nothing: the answer to the request in flight
  // decides what follows.  REQUIRES: it is taking.
  void give_up(Hold& hold);
  // Plans the release of a take that has been given up, if there may be
  // something to release.  REQUIRES: no request is in flight.
  void release_if_needed(Hold& hold);
  // Plans a second release, because the take may be applied after the first.
  void release_again(Hold& hold, BootTime when);
  // Nothing else will be sent for it.
  void end(Hold& hold);

  // Plans its next request instead of what was planned.
  void send_at(Hold& hold, BootTime when);
  // Plans its next request for this moment.  The caller wakes the sender.
  void send_now(Hold& hold) { hold.send.move(to_send, {0, BootClock::now()}); }
  // Plans the next renewal, or none if the sender may not renew it then by
  // itself.
  void plan_renewal(Hold& hold, BootTime when);
  // After a call has waited for a renewal: the sender renews as usual again.
  void resume_renewals(Hold& hold);
  // No request is planned.
  void park(Hold& hold) { hold.send.move(to_send, kNothingDue); }

  // Publishes the end of its claim, and sets when the notifier next has
  // something to report.
  void publish(Hold& hold);
  // When the danger is to be reported; kNever if nobody wants to hear of it, or
  // it was reported since the last renewal.
  BootTime danger_at(const Hold& hold) const;
  // Reports a loss, unless one was reported before: the first reason counts.
  void report(Hold& hold, Verdict why);
  // Nothing is to be reported any more.
  void forget_report(Hold& hold);
  // Tells the call that waits for it, if there is one.
  void tell(Hold& hold, Result&& result);
  // Notes how the last request of a take has ended.  If an outage begins, tells
  // the call.
  void note_outage(const Hold& hold);
  // When a call without a deadline gives up.  kNever while nothing fails.
  // `patient_since`: when the call began; no value: it has a deadline.
  static BootTime patience_ends(const MutexSettings& settings,
                                std::optional<BootTime> patient_since);

  // DynamoDB's clock was contradicted: claims may end sooner.  REQUIRES: the
  // mutex is not held.
  void check_clock();

  std::size_t count(Phase phase) const {
    return in_phase[static_cast<std::size_t>(phase)];
  }

  dynamodb::Client& client;
  dynamodb::RetryBudget& budget;
  mutable sigv4::Mutex mutex;

  // All below: GUARDED_BY(mutex)
  // Notified when a call no longer waits for a Hold, when a listener has
  // returned, or when a thread has ended.
  sigv4::Condition changed;
  Sleeper sender, notifier;
  bool stopping = false;      // Keeper::tell_to_stop() was called.
  BootTime stopping_since{};  // When that was.
  BootTime stop_by{};         // Its `by`.
  bool closed = false;        // No more grants are accepted.

  // Every Hold that is not over is in `to_report`, and in `to_send` or a line.
  // One that is over is in `to_report` while its loss is not reported.
  Order to_send;  // By the time when its next request is due.
  Lines lines;    // Those that are due.
  // By the time when something must be reported of it: at the latest when its
  // claim ends.  Losses come first.
  Order to_report;
  std::array<std::size_t, Hold::kPhases>
      in_phase{};  // How many are in each phase.

 private:
  void enter(Hold& hold, Phase phase);
  void end_claim(Hold& hold);
  // Whether anybody wants to hear of an event.  `by_listener`: the listener
  // does.
  bool is_heard(const MutexSettings& settings, bool by_listener) const;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_HOLDS_HPP
