// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Renewer: what mutexes and the Table call to renew and release leases.  It
// starts and stops the table's two threads, Sender and Notifier, which share
// Leases with it.
#include "renewer.hpp"

#include <utility>

#include "../../sigv4/memory.hpp"
#include "../../sigv4/thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Fault;
using std::chrono::nanoseconds;
using Guard = Leases::Guard;

namespace {

// The call ends undecided for a reason of ours.  It is reported as timed_out
// with this text.
void set_undecided(Result& result, const char* why) {
  result.verdict = Verdict::again;
  result.answer.fault = Fault::timed_out;
  sigv4::try_with_memory([&] { result.answer.message = why; });
}

}  // namespace

// A renewal on the caller's thread, as by DdbMutex::renew().
// HeldLease::renewing keeps the sender from renewing the same lease meanwhile.
class Renewer::RenewalByHand final : public SharedLease {
 public:
  explicit RenewalByHand(Leases& leases) : leases_(leases) {}

 private:
  bool stamp(Attempt& attempt) override {
    const Guard guard(leases_.mutex);
    if (leases_.stopping || attempt.held().over()) return false;
    return leases_.stamp(attempt, BootClock::now());
  }
  void unstamp(Attempt& attempt) override {
    const Guard guard(leases_.mutex);
    leases_.unstamp(attempt);
  }
  void receive(Attempt& attempt) override {
    const Guard guard(leases_.mutex);
    HeldLease& held = attempt.held();
    // Any verdict but `again` ends run().  renew() reports how the lease ended.
    if (held.over()) return attempt.decide(Verdict::expired);
    leases_.receive(attempt);
    // The answer may have shown that an earlier renewal was applied, which did
    // not have these changes.
    const bool earlier = held.lease.counted_from() < begun_;
    if (attempt.verdict() == Verdict::ours && earlier) {
      attempt.decide(Verdict::again);
    }
  }

  Leases& leases_;
  const BootTime begun_ = BootClock::now();
};

Renewer::Renewer(const dynamodb::ClientOptions& options)
    : client_(options),
      leases_(client_, budget_),
      sender_(leases_),
      notifier_(leases_) {
  client_.on_contradiction([this] { leases_.check_clock(); });
}

// --- Starting and stopping ---------------------------------------------------

bool Renewer::start() {
  if (leases_.stopping) return false;
  if (sender_thread_.started && notifier_thread_.started) return true;
  const std::shared_ptr<Renewer> self = shared_from_this();
  if (!registered_) sigv4::register_for_exit(self);
  registered_ = true;
  if (!notifier_thread_.started) {
    notifier_thread_.started =
        sigv4::start_thread(notifier_thread_.thread, "ddbmutex-notify", [self] {
          self->notifier_.run();
          self->mark_ended(self->notifier_thread_);
        });
    if (!notifier_thread_.started) return false;
    leases_.has_notifier = true;
  }
  sender_thread_.started =
      sigv4::start_thread(sender_thread_.thread, "ddbmutex-sender", [self] {
        self->sender_.run();
        self->mark_ended(self->sender_thread_);
      });
  return sender_thread_.started;
}

void Renewer::mark_ended(Worker& worker) {
  const Guard guard(leases_.mutex);
  worker.ended = true;
  leases_.changed.notify_all();
}

void Renewer::tell_to_stop(BootTime by) {
  const Guard guard(leases_.mutex);
  if (std::exchange(leases_.stopping, true)) return;
  leases_.stopping_since = BootClock::now();
  leases_.stop_by = by;
  leases_.sender.waker().wake();
  leases_.notifier.wake_at(BootTime::min());  // At once, unless it is awake.
}

void Renewer::await_stop() {
  Guard guard(leases_.mutex);
  if (std::exchange(awaited_, true)) return;
  const auto is_running = [](const Worker& worker) {
    return worker.started && !worker.ended && !worker.is_this_thread();
  };
  const BootTime latest = leases_.stop_by + sigv4::kStopGrace;
  while ((is_running(sender_thread_) || is_running(notifier_thread_)) &&
         sigv4::await(leases_.changed, guard, latest)) {
  }
  for (Worker* worker : {&sender_thread_, &notifier_thread_}) {
    if (!std::exchange(worker->started, false)) continue;
    if (worker->ended) {
      guard.unlock();
      sigv4::join_thread(worker->thread);
      guard.lock();
    } else {
      // Still running, or this is that thread: it ends by itself.
      sigv4::detach_thread(worker->thread);
    }
  }
}

// --- While a lock is held ----------------------------------------------------

bool Renewer::add(HeldLease& held) {
  const MutexSettings& settings = *held.settings;
  const Guard guard(leases_.mutex);
  if (leases_.closed) return false;
  const bool renews = settings.renew_after > nanoseconds::zero();
  const bool calls = settings.hears_losses || settings.hears_dangers;
  if ((renews || calls) && !start()) return false;
  leases_.add(held);
  return true;
}

std::size_t Renewer::held_count() const {
  const Guard guard(leases_.mutex);
  return leases_.held_count();
}

Result Renewer::renew(HeldLease& held, const ChangesPtr& changes,
                      BootTime deadline, sigv4::Waker& waker) {
  Result result;
  Attempt attempt(Call::renew, held);
  Guard guard(leases_.mutex);
  while (held.renewing && !held.over() &&
         sigv4::await(leases_.changed, guard, deadline)) {
  }
  if (held.over()) return Leases::end_of(held);
  if (held.renewing) {
    set_undecided(result, "another renewal is under way");
    return result;
  }
  held.renewing = true;
  leases_.unplan(held);
  held.lease.carry(changes);
  RenewalByHand by_hand(leases_);
  guard.unlock();
  const bool had_memory =
      sigv4::try_with_memory([&] { attempt.run(deadline, &waker, &by_hand); });
  guard.lock();
  const bool renewed = had_memory && attempt.verdict() == Verdict::ours;
  if (!renewed) leases_.lose_if_ended(held, BootClock::now());
  if (held.over()) {
    result = Leases::end_of(held);
  } else if (!had_memory) {
    result.verdict = Verdict::again;
    result.answer.fault = Fault::no_memory;
  } else if (renewed) {
    // HeldLease::renewing stays set, so the sender waits for the caller's
    // resume_renewals().
    result.verdict = Verdict::ours;
    return result;
  } else if (leases_.stopping && !attempt.failing()) {
    // Shut down before the next request was sent.
    result.verdict = Verdict::not_held;
  } else {
    result.verdict = Verdict::again;
    result.answer = attempt.take_answer();
  }
  guard.unlock();
  resume_renewals(held);
  return result;
}

void Renewer::resume_renewals(HeldLease& held) {
  const Guard guard(leases_.mutex);
  held.renewing = false;
  leases_.changed.notify_all();
  if (held.over()) return;
  held.lease.carry(nullptr);
  leases_.plan_renewal(
      held, std::max(held.lease.time_at_age(held.settings->renew_after),
                     BootClock::now()));
}

void Renewer::stop_renewing(HeldLease& held) {
  const Guard guard(leases_.mutex);
  held.stops_renewing = true;
}

Result Renewer::confirm_loss(HeldLease& held, BootTime deadline,
                             sigv4::Waker& waker) {
  Result result = renew(held, nullptr, deadline, waker);
  if (result.verdict == Verdict::ours) {
    resume_renewals(held);
    return result;
  }
  const Guard guard(leases_.mutex);
  if (!held.over()) leases_.lose(held, Verdict::taken);
  return Leases::end_of(held);
}

Result Renewer::state_of(HeldLease& held) {
  const Guard guard(leases_.mutex);
  leases_.lose_if_ended(held, BootClock::now());
  if (held.over()) return Leases::end_of(held);
  Result result;
  result.verdict = Verdict::ours;
  return result;
}

// --- The end of a lease ------------------------------------------------------

OneAttempt Renewer::begin_release(HeldLease& held, Result& end) {
  const Guard guard(leases_.mutex);
  OneAttempt release = leases_.begin_release(held);
  end = Leases::end_of(held);
  return release;
}

void Renewer::report_loss(HeldLease& held, Verdict why) {
  const Guard guard(leases_.mutex);
  leases_.report(held, why);
}

bool Renewer::finish(OneAttempt& one) {
  Guard guard(leases_.mutex);
  bool started = false;
  const bool had_memory = sigv4::try_with_memory([&] { started = start(); });
  if (!had_memory || !started) return false;
  sender_.finish(one, std::move(guard));
  return true;
}

std::vector<ReleaseOutcome> Renewer::release_all(BootTime deadline) {
  const auto closing = std::make_shared<Closing>();
  Guard guard(leases_.mutex);
  leases_.closed = true;
  std::vector<ReleaseOutcome>& all = closing->locks;
  all = std::vector<ReleaseOutcome>(leases_.held_count());
  const bool has_threads = !all.empty() && start();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].held = leases_.alarms.at(i).shared_from_this();
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    close(*all[i].held, closing, i, has_threads);
  }
  while (closing->open > 0 && !sender_thread_.ended &&
         sigv4::await(leases_.changed, guard, deadline)) {
  }
  // An empty list tells the sender that nobody waits any more
  // (report_to_closing()).  The caller destroys what was in it, without the
  // mutex.
  return std::exchange(all, {});
}

// Without threads nothing is sent here.  At exit, the destructor of the mutex
// may still send the release.
void Renewer::close(HeldLease& held, const std::shared_ptr<Closing>& closing,
                    std::size_t index, bool has_threads) {
  Result& result = closing->locks[index].result;
  const char* why = "not released in time";
  if (!has_threads) why = "cannot start a thread";
  if (leases_.stopping) why = "exit() has ended the library's threads";
  set_undecided(result, why);
  if (leases_.stopping) return;
  // A list of one: see OneAttempt.
  OneAttempt one = leases_.begin_release(held);
  if (held.loss) result = Leases::end_of(held);
  if (!has_threads) return;
  const BootTime now = BootClock::now();
  one.front().give_up_at(now + held.settings->ttl);
  if (!held.loss) {
    held.closing = closing;
    held.closing_index = index;
    ++closing->open;
  }
  sender_.release_at(now, one);
}

// Does not wait on the notifier's own thread.  A loss that is still queued then
// is dropped, because the listener is silenced.
void Renewer::silence(MutexSettings& settings) {
  Guard guard(leases_.mutex);
  const bool is_notifier = notifier_thread_.is_this_thread();
  while (notifier_thread_.started && !is_notifier && !notifier_thread_.ended &&
         !settings.silenced && notifier_.reports_to(settings)) {
    leases_.changed.wait(guard);
  }
  settings.silenced = true;
  settings.listener.reset();
}

bool Renewer::is_notifier_thread() const {
  const Guard guard(leases_.mutex);
  return notifier_thread_.is_this_thread();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
