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

// At a call's deadline the sender ends its last request, and says why it fails.
// The call waits this much longer to hear that.
constexpr std::chrono::milliseconds kGraceAfterDeadline{50};

// The call leaves before there is an answer.
void set_unanswered(Answer& answer, bool cancelled) {
  answer.set_fault(cancelled ? Fault::cancelled : Fault::timed_out,
                   "no answer yet");
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
  holds_.sender.wake_now();
  holds_.notifier.wake_now();
}

void Keeper::await_stop() {
  Guard guard(holds_.mutex);
  const BootTime latest = holds_.stop_by + sigv4::kStopGrace;
  sigv4::await(holds_.changed, guard, latest, [this] {
    return !sender_thread_.must_be_awaited() &&
           !notifier_thread_.must_be_awaited();
  });
  for (Worker* worker : {&sender_thread_, &notifier_thread_}) {
    if (!worker->started) continue;
    worker->started = false;
    if (worker->ended) {
      worker->is_joined = true;
      guard.unlock();
      sigv4::join_thread(worker->thread);
      guard.lock();
      worker->is_joined = false;
    } else {
      // Still running, or this is that thread: it ends by itself.
      sigv4::detach_thread(worker->thread);
    }
  }
  holds_.changed.notify_all();  // silence() need not wait for the notifier.
}

// Unlocks the mutex while it wakes the sender, which locks the mutex as soon as
// it is awake.
void Keeper::wake_sender(Guard& guard) {
  if (!holds_.sender.note_wake_at(BootTime::min())) return;
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
  if (sender_.has_ended() || waker.woken()) {
    set_unanswered(answer, true);
    return answer;
  }
  sender_.enqueue(std::move(one));
  wake_sender(guard);
  guard.unlock();
  waker.wait_until(add_saturating(deadline, kGraceAfterDeadline),
                   [&] { return errand->over.load(); });
  guard.lock();
  errand->bell = nullptr;  // If it is not over, the sender ends it.
  if (errand->over) return std::move(errand->answer);
  holds_.sender.wake_now();
  answer.sent = true;  // Perhaps.
  set_unanswered(answer, waker.woken());
  return answer;
}

// --- Takes -------------------------------------------------------------------

void Keeper::take(HoldPtr& hold, Wait& wait, BootTime deadline,
                  sigv4::CallWaker& waker,
                  sigv4::FunctionRef<void()> on_outage) {
  // The lease counts from the stamp, so keys come first.  If no keys come, a
  // request is begun even so.  It is never sent, but its answer says why.
  const BootTime keys_by =
      std::min(deadline, wait.begun + hold->settings->request_timeout);
  if (!client_.has_keys(wait.begun)) client_.await_keys(keys_by, waker);
  wait.bell = waker.bell();
  Guard guard(holds_.mutex);
  hold->until = deadline;
  hold->begin_series();
  if (!waker.woken() && !sender_.has_ended()) {
    hold->wait = &wait;
    holds_.send_now(*hold);
    wake_sender(guard);
    guard.unlock();
    const BootTime latest = add_saturating(deadline, kGraceAfterDeadline);
    while (!wait.over && !waker.woken() && BootClock::now() < latest) {
      waker.wait_until(latest, [&] { return wait.over || wait.outage_began; });
      if (wait.outage_began.exchange(false)) on_outage();
    }
    guard.lock();
  }
  if (!wait.over) {
    const bool is_between_requests = hold->flight == nullptr;
    if (hold->failing() && is_between_requests) {  // The last answer says why.
      hold->answer.copy_fault_to(wait.result.answer);
    } else {
      set_unanswered(wait.result.answer, waker.woken() || sender_.has_ended());
    }
    wait.no_request_failed = !hold->failing();
    holds_.leave(*hold);
  }
  if (hold->phase != Phase::taking) hold = nullptr;  // It is the sender's.
  guard.unlock();
  if (wait.outage_began) on_outage();  // It began after the loop looked.
}

void Keeper::forget_outage(MutexSettings& settings) {
  const Guard guard(holds_.mutex);
  settings.outage.since.reset();
}

BootTime Keeper::patience_ends(const MutexSettings& settings,
                               std::optional<BootTime> patient_since) const {
  const Guard guard(holds_.mutex);
  return Holds::patience_ends(settings, patient_since);
}

void Keeper::copy_last_failure(const MutexSettings& settings,
                               Answer& to) const {
  const Guard guard(holds_.mutex);
  if (settings.outage.last) {
    settings.outage.last->copy_fault_to(to);
  } else {
    to.fault = Fault::no_memory;
  }
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
    result.answer.set_fault(Fault::timed_out, "another renewal is under way");
    return result;
  }
  // Made here: a renewal that was stamped before wait.begun does not have these
  // changes.
  Wait wait;
  wait.goes_first = true;
  hold.wait = &wait;
  hold.until = deadline;
  hold.lease.carry(changes);
  holds_.send_now(hold);
  wake_sender(guard);
  sigv4::await(hold.told, guard, add_saturating(deadline, kGraceAfterDeadline),
               [&] { return wait.over || sender_.has_ended(); });
  if (!wait.over) {
    hold.wait = nullptr;
    holds_.changed.notify_all();
    if (sender_.has_ended()) {
      wait.result.verdict = Verdict::closed;
    } else {
      set_unanswered(wait.result.answer, false);
    }
  }
  if (wait.result.verdict != Verdict::ours) {
    holds_.lose_if_ended(hold, BootClock::now());
  }
  // If another call waits by now, it has planned its own request.
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

void Keeper::begin_release(Hold& hold, Wait& wait, const ChangesPtr& changes) {
  const bool had_lock = hold.phase == Phase::held || hold.phase == Phase::lost;
  const bool must_send = had_lock && holds_.release(hold);
  const bool can_send = !sender_.has_ended();
  wait.result = hold.outcome();
  if (must_send && !hold.loss) {
    wait.result.verdict = can_send ? Verdict::again : Verdict::closed;
  }
  wait.over = !must_send || !can_send;
  if (!must_send) return;
  // If it cannot be sent, the item stays until its lease is over.
  if (!can_send) return holds_.end(hold);
  hold.lease.carry(changes);
  hold.wait = &wait;
  holds_.send_now(hold);
}

void Keeper::await_release(Hold& hold, Wait& wait, Guard& guard,
                           BootTime deadline) {
  // After the lease nobody needs the release.
  const BootTime latest = std::min(deadline, hold.until);
  sigv4::await(hold.told, guard, latest,
               [&] { return wait.over || sender_.has_ended(); });
  if (hold.wait == &wait) hold.wait = nullptr;
  Result& result = wait.result;
  if (result.verdict != Verdict::again || result.answer.fault != Fault::none) {
    return;
  }
  result.answer.set_fault(Fault::timed_out,
                          sender_.has_ended()
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

// If the notifier has ended, losses that were not reported are dropped.
void Keeper::silence(MutexSettings& settings) {
  Guard guard(holds_.mutex);
  sigv4::await(holds_.changed, guard, kNever, [&] {
    return !notifier_thread_.must_be_awaited() || settings.silenced ||
           !notifier_.reports_to(settings);
  });
  settings.silenced = true;
  settings.listener.reset();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
