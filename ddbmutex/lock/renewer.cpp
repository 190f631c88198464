// What callers ask of a table's leases and of its two threads.
#include "renewer.hpp"

#include <optional>
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

void fail(Result& result, const char* why) {
  result.verdict = Verdict::again;
  result.answer.fault = Fault::timed_out;
  sigv4::try_with_memory([&] { result.answer.message = why; });
}

}  // namespace

// The user renews a lease that the sender renews, too.
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
    if (held.over()) return attempt.decide(Verdict::expired);
    leases_.receive(attempt);
    // The answer may have shown that an earlier renewal was applied, which did
    // not have these changes.
    const bool earlier = held.lease.granted_at() < made_;
    if (attempt.verdict() == Verdict::ours && earlier) {
      attempt.decide(Verdict::again);
    }
  }

  Leases& leases_;
  const BootTime made_ = BootClock::now();
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
  leases_.notifier.wake_at(BootTime::min());  // No alarm replaces this one.
}

void Renewer::await_stop() {
  Guard guard(leases_.mutex);
  if (std::exchange(awaited_, true)) return;
  const auto is_running = [](const Worker& worker) {
    return worker.started && !worker.ended &&
           !sigv4::is_this_thread(worker.thread);
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
      sigv4::detach_thread(worker->thread);
    }
  }
}

// --- While a lock is held ----------------------------------------------------

bool Renewer::keep(HeldLease& held) {
  const MutexSettings& settings = *held.settings;
  const Guard guard(leases_.mutex);
  if (leases_.closed) return false;
  const bool renews = settings.renew_after > nanoseconds::zero();
  // A listener that is asked whether it is alive has its lease renewed.
  const bool calls = settings.hears_losses || settings.hears_dangers;
  if ((renews || calls) && !start()) return false;
  leases_.add(held);
  return true;
}

Renewer::Usage Renewer::usage() const {
  const Guard guard(leases_.mutex);
  return {leases_.alarms.size(), leases_.held_s()};
}

Result Renewer::renew(HeldLease& held, const ChangesPtr& changes,
                      BootTime deadline, sigv4::Waker& waker) {
  Result result;
  Attempt attempt(Call::renew, held);
  Guard guard(leases_.mutex);
  while (held.renewing && !held.over() &&
         sigv4::await(leases_.changed, guard, deadline)) {
  }
  result.verdict = Leases::end_of(held);
  if (held.over()) return result;
  if (held.renewing) {
    fail(result, "another renewal is under way");
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
  const bool has_ended = BootClock::now() >= held.lease.claim_end();
  if (!held.over() && !renewed && has_ended) {
    leases_.lose(held, Verdict::expired);
  }
  if (held.over()) {
    result.verdict = Leases::end_of(held);
  } else if (!had_memory) {
    result.verdict = Verdict::again;
    result.answer.fault = Fault::no_memory;
  } else if (renewed) {
    result.verdict = Verdict::ours;
    return result;
  } else if (leases_.stopping && !attempt.failing()) {  // Nothing was asked.
    result.verdict = Verdict::not_held;
  } else {
    result.verdict = Verdict::again;
    result.answer = attempt.take_answer();
  }
  guard.unlock();
  go_on(held);
  return result;
}

void Renewer::go_on(HeldLease& held) {
  const Guard guard(leases_.mutex);
  held.renewing = false;
  leases_.changed.notify_all();
  if (held.over()) return;
  held.lease.carry(nullptr);
  leases_.plan_renewal(held,
                       std::max(held.lease.renew_at(held.settings->renew_after),
                                BootClock::now()));
}

void Renewer::confirm_loss(HeldLease& held, BootTime deadline,
                           sigv4::Waker& waker) {
  const Result result = renew(held, nullptr, deadline, waker);
  if (result.verdict == Verdict::ours) return go_on(held);
  const Guard guard(leases_.mutex);
  if (!held.over()) leases_.lose(held, Verdict::taken);
}

std::shared_ptr<void> Renewer::signal_loss(HeldLease& held,
                                           std::shared_ptr<void> (*make)(),
                                           void (*signal)(void*)) {
  const Guard guard(leases_.mutex);
  if (held.over() || BootClock::now() >= held.lease.claim_end()) return nullptr;
  if (held.signal.object == nullptr) {
    if (!start()) return nullptr;
    held.signal = {make(), signal};
    leases_.set_alarm(held);  // The notifier may be new.
  }
  return held.signal.object;
}

// --- The end of a lease ------------------------------------------------------

bool Renewer::hand_over(HeldLease& held, Signal& signal) {
  const Guard guard(leases_.mutex);
  if (held.over() || leases_.stopping || leases_.closed) return false;
  const int limit = held.settings->handover_limit;
  if (!held.lease.hand_over(BootClock::now(), limit)) return false;
  signal = std::exchange(held.signal, {});
  return true;
}

OneAttempt Renewer::give_back(HeldLease& held, std::optional<Verdict>& loss) {
  Signal dropped;  // Destroyed without the mutex.
  const Guard guard(leases_.mutex);
  OneAttempt release = leases_.give_back(held);
  loss = held.loss;
  dropped = std::exchange(held.signal, {});
  return release;
}

void Renewer::lost(HeldLease& held, Verdict why) {
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
  all = std::vector<ReleaseOutcome>(leases_.alarms.size());
  const bool has_threads = !all.empty() && start();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].held = leases_.alarms.at(i).shared_from_this();
    all[i].signal = std::exchange(all[i].held->signal, {});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    close(*all[i].held, closing, i, has_threads);
  }
  guard.unlock();
  for (ReleaseOutcome& one : all) {
    const Signal signal = std::exchange(one.signal, {});
    if (signal.object != nullptr) signal.call(signal.object.get());
  }
  guard.lock();
  while (closing->open > 0 && !sender_thread_.ended &&
         sigv4::await(leases_.changed, guard, deadline)) {
  }
  // The sender no longer writes there, and nothing is destroyed under the
  // mutex.
  return std::exchange(all, {});
}

// Without threads nothing can be sent; at exit the destructor of its mutex may
// still send it.
void Renewer::close(HeldLease& held, const std::shared_ptr<Closing>& closing,
                    std::size_t place, bool has_threads) {
  Result& result = closing->locks[place].result;
  fail(result, has_threads ? "not released in time" : "cannot start a thread");
  if (leases_.stopping) return;
  OneAttempt one = leases_.give_back(held);
  if (held.loss) result.verdict = *held.loss;
  if (!has_threads) return;
  const BootTime now = BootClock::now();
  one.front().give_up_at(now + held.settings->ttl);
  if (!held.loss) {
    held.closing = closing;
    held.closing_place = place;
    ++closing->open;
  }
  sender_.release_at(now, one);
}

// A loss that was found before, and is not reported any more, is dropped by the
// notifier.
void Renewer::settle(MutexSettings& settings) {
  Guard guard(leases_.mutex);
  const bool is_notifier = sigv4::is_this_thread(notifier_thread_.thread);
  while (notifier_thread_.started && !is_notifier && !notifier_thread_.ended &&
         !settings.settled && notifier_.reports_to(settings)) {
    leases_.changed.wait(guard);
  }
  settings.settled = true;
  settings.listener.reset();
}

bool Renewer::calls_back_here() const {
  const Guard guard(leases_.mutex);
  return notifier_thread_.started &&
         sigv4::is_this_thread(notifier_thread_.thread);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
