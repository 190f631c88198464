// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Each call changes a Hold under the mutex, wakes the sender, and waits.
#include "keeper.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using dynamodb::PlainRequest;
using Guard = Holds::Guard;
using Phase = Hold::Phase;

namespace {

// The sender ends a call's last request at the call's deadline.  Its answer
// says why the call fails, so it is awaited a moment longer.
constexpr std::chrono::milliseconds kTimeToSayWhy{50};

// The call leaves before there is an answer.
void set_unanswered(Answer& answer, bool cancelled) {
  answer.set_fault(cancelled ? Fault::cancelled : Fault::timed_out,
                   "no answer yet");
}

// The call ends undecided for a reason of ours.  It is reported as timed_out
// with this text.
void set_undecided(Result& result, const char* why) {
  result.verdict = Verdict::again;
  result.answer.set_fault(Fault::timed_out, why);
}

}  // namespace

Keeper::Keeper(const dynamodb::ClientOptions& options)
    : client_(options),
      holds_(client_, budget_),
      sender_(holds_),
      notifier_(holds_) {
  client_.on_contradiction([this] { holds_.check_clock(); });
}

// --- Starting and stopping ---------------------------------------------------

template <class Work>
bool Keeper::start(Worker& worker, const char* name, Work work) {
  if (worker.started) return true;
  worker.started = sigv4::start_thread(
      worker.thread, name, [self = shared_from_this(), &worker, work] {
        work(*self);
        const Guard guard(self->holds_.mutex);
        worker.ended = true;
        self->holds_.changed.notify_all();
      });
  return worker.started;
}

bool Keeper::start_threads() {
  const Guard guard(holds_.mutex);
  if (holds_.stopping) return false;
  if (sender_thread_.started) return true;
  if (!registered_) sigv4::register_for_exit(shared_from_this());
  registered_ = true;
  return start(notifier_thread_, "ddbmutex-notify",
               [](Keeper& self) { self.notifier_.run(); }) &&
         start(sender_thread_, "ddbmutex-sender",
               [](Keeper& self) { self.sender_.run(); });
}

bool Keeper::is_stopping() const {
  const Guard guard(holds_.mutex);
  return holds_.stopping;
}

void Keeper::tell_to_stop(BootTime by) {
  const Guard guard(holds_.mutex);
  if (std::exchange(holds_.stopping, true)) return;
  holds_.stopping_since = BootClock::now();
  holds_.stop_by = by;
  holds_.sender.waker().wake();
  holds_.notifier.wake_at(BootTime::min());  // At once, unless it is awake.
}

void Keeper::await_stop() {
  Guard guard(holds_.mutex);
  if (std::exchange(awaited_, true)) return;
  const BootTime latest = holds_.stop_by + sigv4::kStopGrace;
  sigv4::await(holds_.changed, guard, latest, [this] {
    return !sender_thread_.is_awaited() && !notifier_thread_.is_awaited();
  });
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

// Without the mutex, which the sender locks first.
void Keeper::wake_sender(Guard& guard) {
  if (!holds_.sender.must_wake_at(BootTime::min())) return;
  guard.unlock();
  holds_.sender.waker().wake();
  guard.lock();
}

// --- Requests that are sent as they are --------------------------------------

Answer Keeper::carry(PlainRequest&& request, sigv4::CallWaker& waker) {
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
  Guard guard(holds_.mutex);
  if (!sender_.has_ended()) sender_.ask(one);
  answer.sent = one.empty();  // It may be.
  if (answer.sent) {
    wake_sender(guard);
    guard.unlock();
    waker.wait_until(add_saturating(deadline, kTimeToSayWhy),
                     [&] { return errand->over.load(); });
    guard.lock();
    errand->bell = nullptr;
    if (errand->over) return std::move(errand->answer);
    holds_.sender.wake_at(BootTime::min());
  }
  set_unanswered(answer, waker.woken() || !answer.sent);
  return answer;
}

// --- Takes -------------------------------------------------------------------

void Keeper::ask(Hold& hold, Wait& wait, BootTime deadline,
                 sigv4::CallWaker& waker) {
  wait.bell = waker.bell();
  Guard guard(holds_.mutex);
  if (sender_.has_ended()) {
    wait.end = Wait::End::unsent;
    return;
  }
  hold.wait = &wait;
  hold.send.move(holds_.to_send, {0, wait.begun});
  wake_sender(guard);
  guard.unlock();
  waker.wait_until(add_saturating(deadline, kTimeToSayWhy),
                   [&] { return wait.over.load(); });
  guard.lock();
  if (wait.over) return;
  holds_.leave(hold);
  wait.end = Wait::End::left;
  set_unanswered(wait.result.answer, waker.woken());
}

bool Keeper::keep(Hold& hold) {
  const Guard guard(holds_.mutex);
  if (!holds_.closed) holds_.keep(hold);
  return !holds_.closed;
}

void Keeper::leave(Hold& hold) {
  const Guard guard(holds_.mutex);
  if (hold.phase == Phase::taking) holds_.leave(hold);
}

BootTime Keeper::stale_at(const MutexSettings& settings) const {
  const Guard guard(holds_.mutex);
  return settings.observation.stale_at();
}

// --- While it is held --------------------------------------------------------

Result Keeper::renew(Hold& hold, const ChangesPtr& changes, BootTime deadline) {
  Result result;
  Guard guard(holds_.mutex);
  sigv4::await(holds_.changed, guard, deadline, [&] {
    return hold.wait == nullptr || hold.phase != Phase::held;
  });
  if (hold.phase != Phase::held) return hold.outcome();
  if (hold.wait != nullptr) {
    set_undecided(result, "another renewal is under way");
    return result;
  }
  Wait wait;
  hold.wait = &wait;
  hold.until = deadline;
  hold.lease.carry(changes);
  hold.send.move(holds_.to_send, {0, wait.begun});
  wake_sender(guard);
  sigv4::await(hold.told, guard, add_saturating(deadline, kTimeToSayWhy),
               [&] { return wait.over || sender_.has_ended(); });
  if (!wait.over) {
    hold.wait = nullptr;
    holds_.changed.notify_all();
    if (sender_.has_ended()) {
      wait.result.verdict = Verdict::closed;
    } else {
      set_undecided(wait.result, "no answer yet");
    }
  }
  if (wait.result.verdict != Verdict::ours) {
    holds_.lose_if_ended(hold, BootClock::now());
  }
  // By now another call may wait for a renewal.
  if (hold.wait == nullptr) holds_.resume_renewals(hold);
  return hold.phase == Phase::held ? std::move(wait.result) : hold.outcome();
}

void Keeper::stop_renewing(Hold& hold) {
  const Guard guard(holds_.mutex);
  hold.stops_renewing = true;
}

Result Keeper::confirm_loss(Hold& hold, BootTime deadline) {
  Result result = renew(hold, nullptr, deadline);
  if (result.verdict == Verdict::ours) return result;
  const Guard guard(holds_.mutex);
  if (hold.phase == Phase::held) holds_.lose(hold, Verdict::taken);
  return hold.outcome();
}

Result Keeper::state_of(Hold& hold) {
  const Guard guard(holds_.mutex);
  holds_.lose_if_ended(hold, BootClock::now());
  Result result = hold.outcome();
  if (hold.phase == Phase::held) result.verdict = Verdict::ours;
  return result;
}

// --- Its end -----------------------------------------------------------------

// Once the sender has ended, nothing is sent, and the item stays until its
// lease is over.
void Keeper::begin_release(Hold& hold, Wait& wait, const ChangesPtr& changes) {
  bool is_sent = false;
  if (hold.phase == Phase::held || hold.phase == Phase::lost) {
    is_sent = holds_.release(hold);
  }
  wait.result = hold.outcome();
  wait.over = !is_sent || sender_.has_ended();
  if (!is_sent) return;
  if (!hold.loss) {
    wait.result.verdict = wait.over ? Verdict::closed : Verdict::again;
  }
  if (wait.over) return holds_.end(hold);
  hold.lease.carry(changes);
  hold.wait = &wait;
  hold.send.move(holds_.to_send, {0, wait.begun});
}

void Keeper::await_release(Hold& hold, Wait& wait, Guard& guard,
                           BootTime deadline) {
  // After its lease a release is of no use, even if it was never sent.
  const BootTime latest = std::min(deadline, hold.until);
  sigv4::await(hold.told, guard, latest,
               [&] { return wait.over || sender_.has_ended(); });
  if (hold.wait == &wait) hold.wait = nullptr;
  const Result& result = wait.result;
  if (result.verdict != Verdict::again || result.answer.fault != Fault::none) {
    return;
  }
  set_undecided(wait.result, sender_.has_ended()
                                 ? "exit() has ended the library's threads"
                                 : "not released in time");
}

Released Keeper::release(const HoldPtr& hold, const ChangesPtr& changes,
                         BootTime deadline) {
  Wait wait;
  wait.goes_first = true;
  Guard guard(holds_.mutex);
  begin_release(*hold, wait, changes);
  wake_sender(guard);
  await_release(*hold, wait, guard, deadline);
  return {hold, std::move(wait.result), wait.host_waits};
}

std::vector<Released> Keeper::release_all(BootTime deadline) {
  Guard guard(holds_.mutex);
  holds_.closed = true;
  std::vector<Released> all;
  std::vector<Wait> waits(holds_.count(Phase::held));
  all.reserve(waits.size());
  for (const auto& [key, hold] : holds_.to_report) {
    if (hold->phase == Phase::held) all.push_back({hold, {}});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    begin_release(*all[i].hold, waits[i], nullptr);
  }
  wake_sender(guard);
  for (std::size_t i = 0; i < all.size(); ++i) {
    await_release(*all[i].hold, waits[i], guard, deadline);
    all[i].result = std::move(waits[i].result);
  }
  return all;
}

// --- Listeners ---------------------------------------------------------------

std::size_t Keeper::held_count() const {
  const Guard guard(holds_.mutex);
  return holds_.count(Phase::held);
}

bool Keeper::is_notifier_thread() const {
  const Guard guard(holds_.mutex);
  return notifier_thread_.is_this_thread();
}

// A loss that is still to be reported then is dropped, because the listener is
// silenced.
void Keeper::silence(MutexSettings& settings) {
  Guard guard(holds_.mutex);
  const bool is_notifier = notifier_thread_.is_this_thread();
  while (notifier_thread_.started && !is_notifier && !notifier_thread_.ended &&
         !settings.silenced && notifier_.reports_to(settings)) {
    holds_.changed.wait(guard);
  }
  settings.silenced = true;
  settings.listener.reset();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
