// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Renewer: what mutexes and the Table call to renew and release leases.  It
// starts and stops the table's two threads, Sender and Notifier, which share
// Leases with it.
#include "renewer.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/memory.hpp"
#include "../../sigv4/thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using dynamodb::PlainRequest;
using Guard = Leases::Guard;

namespace {

constexpr std::chrono::milliseconds kTimeToSayWhy{50};

// The sender ends a call's last request at the call's deadline.  Its answer
// says why the call fails, so it is awaited a moment longer.
BootTime moment_after(BootTime deadline) {
  return deadline + std::min<std::chrono::nanoseconds>(
                        kTimeToSayWhy, BootTime::max() - deadline);
}

// The call leaves before there is an answer.
void set_unanswered(Answer& answer, bool cancelled) {
  answer.fault = cancelled ? Fault::cancelled : Fault::timed_out;
  sigv4::try_with_memory([&] { answer.message = "no answer yet"; });
}

// The call ends undecided for a reason of ours.  It is reported as timed_out
// with this text.
void set_undecided(Result& result, const char* why) {
  result.verdict = Verdict::again;
  result.answer.fault = Fault::timed_out;
  sigv4::try_with_memory([&] { result.answer.message = why; });
}

}  // namespace

Renewer::Renewer(const dynamodb::ClientOptions& options)
    : client_(options),
      leases_(client_, budget_),
      sender_(leases_),
      notifier_(leases_) {
  client_.on_contradiction([this] { leases_.check_clock(); });
}

// --- Starting and stopping ---------------------------------------------------

bool Renewer::start_threads() {
  const Guard guard(leases_.mutex);
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

// --- Requests that calls wait for --------------------------------------------

Answer Renewer::carry(PlainRequest&& request, sigv4::CallWaker& waker) {
  Answer answer;
  answer.action = request.action;
  const BootTime deadline = request.deadline;
  if (!start_threads()) {
    answer.fault = is_stopping() ? Fault::cancelled : Fault::no_thread;
    return answer;
  }
  client_.await_keys(deadline, waker);
  Errands one;
  one.push_back(std::make_shared<Errand>(std::move(request), waker));
  const std::shared_ptr<Errand> errand = one.front();
  bool sleeps = false;
  {
    const Guard guard(leases_.mutex);
    if (!sender_.has_ended()) sleeps = sender_.ask(one);
  }
  if (sleeps) leases_.sender.waker().wake();
  if (one.empty()) {
    waker.wait_until(moment_after(deadline),
                     [&] { return errand->over.load(); });
  }
  {
    const Guard guard(leases_.mutex);
    errand->bell = nullptr;
    if (errand->over) return std::move(errand->answer);
    sender_.look_again();
  }
  answer.sent = one.empty();  // It may have been.
  set_unanswered(answer, waker.woken() || !one.empty());
  return answer;
}

void Renewer::carry(OneAttempt& one, BootTime deadline, sigv4::CallWaker& waker,
                    TakeWait& wait) {
  Attempt& attempt = one.front();
  bool sleeps = false;
  {
    const Guard guard(leases_.mutex);
    wait.unsent = sender_.has_ended();
    if (wait.unsent) return;
    attempt.set_wait(&wait);
    sleeps = sender_.ask(one);
  }
  if (sleeps) leases_.sender.waker().wake();
  waker.wait_until(moment_after(deadline), [&] { return wait.over.load(); });
  {
    const Guard guard(leases_.mutex);
    one.splice(one.end(), wait.attempt);
    if (wait.over) return;
    attempt.be_left();
    sender_.look_again();
  }
  wait.given_up = true;
  set_unanswered(wait.answer, waker.woken());
}

// --- While a lock is held ----------------------------------------------------

bool Renewer::add(HeldLease& held) {
  const Guard guard(leases_.mutex);
  if (leases_.closed) return false;
  leases_.add(held);
  return true;
}

bool Renewer::is_stopping() const {
  const Guard guard(leases_.mutex);
  return leases_.stopping;
}

std::size_t Renewer::held_count() const {
  const Guard guard(leases_.mutex);
  return leases_.held_count();
}

Result Renewer::renew(HeldLease& held, const ChangesPtr& changes,
                      BootTime deadline) {
  Result result;
  Guard guard(leases_.mutex);
  const auto may_begin = [&] {
    return !held.renewing && held.renewal_wait == nullptr;
  };
  while (!may_begin() && !held.over() &&
         sigv4::await(leases_.changed, guard, deadline)) {
  }
  if (held.over()) return Leases::end_of(held);
  if (!may_begin()) {
    set_undecided(result, "another renewal is under way");
    return result;
  }
  RenewalWait wait{BootClock::now(), deadline};
  leases_.renew_now(held, changes, wait);
  while (!wait.over && !sender_.has_ended() &&
         sigv4::await(held.told, guard, moment_after(deadline))) {
  }
  if (wait.over) {
    result = std::move(wait.result);
  } else if (sender_.has_ended()) {
    result.verdict = Verdict::closed;
  } else {
    set_undecided(result, "no answer yet");
  }
  // Another call may renew by now.
  if (held.renewal_wait == &wait) leases_.end_wait(held, {});
  if (result.verdict != Verdict::ours) {
    leases_.lose_if_ended(held, BootClock::now());
  }
  if (held.renewal_wait == nullptr) leases_.resume_renewals(held);
  return held.over() ? Leases::end_of(held) : result;
}

void Renewer::stop_renewing(HeldLease& held) {
  const Guard guard(leases_.mutex);
  held.stops_renewing = true;
}

Result Renewer::confirm_loss(HeldLease& held, BootTime deadline) {
  Result result = renew(held, nullptr, deadline);
  if (result.verdict == Verdict::ours) return result;
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

// Without threads nothing is sent.  Then the item stays until its lease is
// over.
void Renewer::begin_release(ReleaseWait& wait, const ChangesPtr& changes) {
  HeldLease& held = *wait.held;
  OneAttempt one = leases_.begin_release(held);
  wait.result = Leases::end_of(held);
  // After other losses the row is known not to be ours.
  const bool may_be_ours = !held.loss || *held.loss == Verdict::expired;
  wait.over = one.empty() || !may_be_ours || sender_.has_ended();
  if (one.empty() || !may_be_ours) return;
  if (!held.loss) wait.result.verdict = Verdict::again;
  if (sender_.has_ended()) {
    if (!held.loss) wait.result.verdict = Verdict::closed;
    return;
  }
  held.lease.carry(changes);
  held.release_wait = &wait;
  const BootTime now = BootClock::now();
  one.front().give_up_at(now + held.settings->ttl);
  sender_.release_at(now, one);
}

// Without the mutex, which the sender locks first.
void Renewer::wake_sender(Guard& guard) {
  if (!leases_.sender.must_wake_at(BootTime::min())) return;
  guard.unlock();
  leases_.sender.waker().wake();
  guard.lock();
}

void Renewer::await_release(ReleaseWait& wait, Guard& guard,
                            BootTime deadline) {
  while (!wait.over && !sender_.has_ended() &&
         sigv4::await(wait.held->told, guard, deadline)) {
  }
  // Of an unlock() amid close(), it is that of close().
  if (wait.held->release_wait == &wait) wait.held->release_wait = nullptr;
  const Result& result = wait.result;
  if (result.verdict != Verdict::again || result.answer.fault != Fault::none) {
    return;
  }
  set_undecided(wait.result, sender_.has_ended()
                                 ? "exit() has ended the library's threads"
                                 : "not released in time");
}

ReleaseWait Renewer::release(HeldLease& held, const ChangesPtr& changes,
                             BootTime deadline) {
  ReleaseWait wait;
  wait.held = held.shared_from_this();
  wait.goes_first = true;
  Guard guard(leases_.mutex);
  begin_release(wait, changes);
  wake_sender(guard);
  await_release(wait, guard, deadline);
  return wait;
}

std::vector<ReleaseWait> Renewer::release_all(BootTime deadline) {
  Guard guard(leases_.mutex);
  leases_.closed = true;
  std::vector<ReleaseWait> waits(leases_.held_count());
  for (std::size_t i = 0; i < waits.size(); ++i) {
    waits[i].held = leases_.alarms.at(i).shared_from_this();
  }
  for (ReleaseWait& wait : waits) begin_release(wait, nullptr);
  wake_sender(guard);
  for (ReleaseWait& wait : waits) await_release(wait, guard, deadline);
  return waits;
}

void Renewer::finish(OneAttempt& one) {
  const Guard guard(leases_.mutex);
  sender_.finish(one);
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
