#include "renewer.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <tuple>
#include <utility>

#include "renewer_core.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Client;
using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

// How many exchanges that callers have left are awaited at once, and how many
// releases are kept that callers have left.
constexpr std::size_t kMostAwaited = 16;
constexpr std::size_t kMostKept = 1000;

bool is_answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}

double seconds_between(BootTime from, BootTime to) {
  return std::chrono::duration<double>(to - from).count();
}

// What goes on with a call that was given up now.
TaskPtr left_over(Call call, Lease& lease, Outcome& outcome,
                  const std::shared_ptr<Holder>& holder, BootTime now) {
  auto task = std::make_unique<Task>(Call::release, holder);
  task->lease.emplace(std::move(lease));
  task->give_up_at = now + holder->terms.ttl;
  task->of_take = call == Call::take;
  task->awaits_take = task->of_take && outcome.pending != nullptr;
  task->undecided = outcome.unknown;
  task->request = std::move(outcome.request);
  task->pending = std::move(outcome.pending);
  task->until = std::min(now + holder->driver.settings().request_timeout,
                         task->give_up_at);
  return task;
}

}  // namespace

// --- Starting and stopping ---------------------------------------------------

bool Renewer::Core::start(const std::shared_ptr<Core>& self) {
  if (stopping) return false;
  if (sending && telling) return true;
  if (!teller_clock.open()) return false;
  if (!telling) {
    telling = sigv4::start_thread(teller, [self] { self->tell_loop(); });
    if (!telling) return false;
    sigv4::register_for_exit(self);
  }
  sending = sigv4::start_thread(sender, [self] { self->send_loop(); });
  return sending;
}

void Renewer::Core::tell_to_stop(BootTime by) {
  const std::lock_guard<std::mutex> guard(mutex);
  if (std::exchange(stopping, true)) return;
  stop_by = by;
  sender_waker.wake();
  teller_sleeps_until = BootTime::min();  // No alarm replaces this one.
  teller_clock.set(BootTime::min());
}

void Renewer::Core::await_stop() {
  std::unique_lock<std::mutex> guard(mutex);
  if (std::exchange(awaited, true)) return;
  const pthread_t self = pthread_self();
  const bool in_sender = sending && pthread_equal(self, sender) != 0;
  const bool in_teller = telling && pthread_equal(self, teller) != 0;
  const nanoseconds left = stop_by + sigv4::kStopGrace - BootClock::now();
  changed.wait_for(guard, std::max(left, nanoseconds::zero()), [&] {
    return (!sending || in_sender || send_ended) &&
           (!telling || in_teller || tell_ended);
  });
  const bool join_sender = sending && send_ended;
  const bool join_teller = telling && tell_ended;
  if (sending && !join_sender) pthread_detach(sender);
  if (telling && !join_teller) pthread_detach(teller);
  sending = telling = false;
  guard.unlock();
  if (join_sender) pthread_join(sender, nullptr);
  if (join_teller) pthread_join(teller, nullptr);
}

Renewer::Renewer(std::shared_ptr<Client> client,
                 std::shared_ptr<dynamodb::RetryBudget> budget)
    : core_(std::make_shared<Core>(client, std::move(budget))) {
  client->on_contradiction([weak = std::weak_ptr<Core>(core_)] {
    const std::shared_ptr<Core> core = weak.lock();
    if (core == nullptr) return;
    const std::lock_guard<std::mutex> guard(core->mutex);
    core->check_clock();
  });
}

Renewer::~Renewer() { core_->stop(BootClock::now() + sigv4::kStopWithin); }

// --- Calls -------------------------------------------------------------------

Renewer::Handle Renewer::keep(Lease& lease,
                              const std::shared_ptr<Holder>& holder) {
  const std::lock_guard<std::mutex> guard(core_->mutex);
  if (core_->shut) return nullptr;
  const auto& callbacks = holder->callbacks_;
  const auto& age = holder->terms.renew_after;
  const bool threads = age || (callbacks != nullptr && callbacks->any());
  if (threads && !core_->start(core_)) return nullptr;
  const auto held = std::make_shared<Held>(std::move(lease), holder);
  if (age) {
    // Locks that were taken together are not renewed together.
    const BootTime when = held->lease.renew_at(*age);
    const nanoseconds left = when - BootClock::now();
    const nanoseconds early = std::max(left / 2, nanoseconds::zero());
    core_->plan_renewal(held, when - core_->budget->jitter(early));
  }
  held->lease.apply(core_->client->clock());
  core_->set_alarm(held);
  core_->publish(*held, held->lease.claim_end());
  ++core_->held_now;
  core_->held_since_s += seconds_between(core_->made, held->since);
  return held;
}

Renewer::Usage Renewer::usage() const {
  const std::lock_guard<std::mutex> guard(core_->mutex);
  return core_->usage();
}

Renewer::Renewal Renewer::renew(const Handle& handle,
                                std::shared_ptr<const Changes> changes,
                                BootTime deadline, sigv4::Waker& waker,
                                const std::function<void()>& done) {
  Core& core = *core_;
  if (const auto refused = core.enter_by_hand(*handle, deadline)) {
    return *refused;
  }
  {
    const std::lock_guard<std::mutex> guard(core.mutex);
    if (!handle->over()) handle->lease.carry(std::move(changes));
  }
  Task task(Call::renew, handle->holder);
  task.held = handle;
  task.by_hand = true;
  Renewal renewal = core.renew_by_hand(task, deadline, waker);
  if (renewal.kind == Renewal::Kind::done) done();
  core.leave_by_hand(handle);
  return renewal;
}

std::shared_ptr<void> Renewer::signal_loss(
    const Handle& handle, const std::function<Signal()>& make) {
  Held& held = *handle;
  const std::lock_guard<std::mutex> guard(core_->mutex);
  if (held.over() || BootClock::now() >= held.lease.claim_end()) return nullptr;
  if (held.signal.object == nullptr) {
    if (!core_->start(core_)) return nullptr;
    held.signal = make();
    core_->set_alarm(handle);  // The thread that is to tell may be new.
  }
  return held.signal.object;
}

Renewer::Returned Renewer::give_back(const Handle& handle) {
  const std::lock_guard<std::mutex> guard(core_->mutex);
  return core_->give_back(handle);
}

std::vector<Renewer::Unreleased> Renewer::release_all(BootTime deadline) {
  Core& core = *core_;
  std::vector<Handle> all;      // Dropped only without the mutex.
  std::vector<Signal> signals;  // Told, and dropped, without it too.
  const auto closing = std::make_shared<Closing>();
  std::unique_lock<std::mutex> guard(core.mutex);
  core.shut = true;
  for (const auto& alarm : core.alarms) all.push_back(alarm.second);
  const bool threads = !all.empty() && core.start(core_);
  for (const Handle& held : all) {
    signals.push_back(std::exchange(held->signal, Signal{}));
    core.close(held, closing, threads);
  }
  guard.unlock();
  for (const Signal& signal : signals) {
    if (signal.object != nullptr) signal.tell(signal.object.get());
  }
  guard.lock();
  while (!closing->open.empty() && !core.send_ended) {
    const nanoseconds left = deadline - BootClock::now();
    if (left <= nanoseconds::zero()) break;
    core.changed.wait_for(guard, std::min(left, kLongestWait));
  }
  for (auto& still : closing->open) {
    closing->bad.push_back(std::move(still.second));
  }
  closing->open.clear();
  return std::move(closing->bad);
}

void Renewer::lost(const Handle& handle, Verdict why) {
  const std::lock_guard<std::mutex> guard(core_->mutex);
  core_->tell(handle, why);
}

bool Renewer::finish(Call call, Lease& lease, Outcome& outcome,
                     const std::shared_ptr<Holder>& holder, Handle handle) {
  Core& core = *core_;
  TaskPtr task, other;  // Dropped only without the mutex.
  std::unique_lock<std::mutex> guard(core.mutex);
  if (!core.start(core_)) return false;
  other = core.make_room();
  const BootTime now = BootClock::now();
  task = left_over(call, lease, outcome, holder, now);
  task->held = std::move(handle);
  if (task->pending != nullptr) {
    if (core.answers_awaited == kMostAwaited) {
      guard.unlock();
      core.conclude(std::move(task));
      return true;
    }
    ++core.answers_awaited;
    task->counted = true;
  }
  const bool throttled =
      task->pending == nullptr && outcome.answer.fault == Fault::throttled;
  const auto delay =
      throttled ? task->pace.delay(outcome.answer, task->give_up_at - now)
                : std::nullopt;
  core.schedule(now + delay.value_or(nanoseconds::zero()), std::move(task));
  return true;
}

void Renewer::settle(Holder& holder) {
  // Dropped only without the mutex.
  std::deque<Handle> untold;
  std::shared_ptr<const Holder::Callbacks> callbacks;
  Core& core = *core_;
  std::unique_lock<std::mutex> guard(core.mutex);
  const auto queued = [&](const Handle& held) {
    return held->holder.get() == &holder;
  };
  if (!core.telling || pthread_equal(pthread_self(), core.teller) == 0) {
    core.changed.wait(guard, [&] {
      return !core.telling || core.tell_ended ||
             (core.running != &holder &&
              std::none_of(core.losses.begin(), core.losses.end(), queued));
    });
  }
  const auto kept =
      std::stable_partition(core.losses.begin(), core.losses.end(),
                            [&](const Handle& held) { return !queued(held); });
  untold.assign(kept, core.losses.end());
  core.losses.erase(kept, core.losses.end());
  callbacks.swap(holder.callbacks_);
}

// --- Under the mutex ---------------------------------------------------------

Renewer::Returned Renewer::Core::give_back(const Handle& handle) {
  Held& held = *handle;
  if (held.given_back) return {std::nullopt, held.lost};
  if (!held.lost && BootClock::now() >= held.lease.claim_end()) {
    lose(handle, Verdict::expired);
  }
  held.given_back = true;
  no_longer_held(held);
  publish(held, BootTime::min());
  unschedule(held);
  clear_alarm(held);
  if (held.renewing) {  // The lease is to hear of it before it goes on.
    Observation nothing;
    Reply reply;
    reply.outcome = Reply::Outcome::unknown;
    held.lease.heard(reply, client->clock(), nothing);
  }
  held.lease.carry(nullptr);
  held.signal = {};
  changed.notify_all();
  return {std::move(held.lease), held.lost};
}

// Without threads nothing can be said.
void Renewer::Core::close(const Handle& handle,
                          const std::shared_ptr<Closing>& closing,
                          bool threads) {
  const std::shared_ptr<Holder>& holder = handle->holder;
  Returned back = give_back(handle);
  Unreleased still;
  still.name = holder->terms.name;
  still.lost = back.lost;
  still.answer.fault = Fault::timed_out;
  still.answer.message = "not said in time";
  if (still.lost) closing->bad.push_back(still);
  if (!threads) {
    still.answer.message = "no thread can be started";
    if (!still.lost) closing->bad.push_back(std::move(still));
    return;
  }
  const BootTime now = BootClock::now();
  auto task = std::make_unique<Task>(Call::release, holder);
  task->held = handle;
  task->lease = std::move(back.lease);
  task->give_up_at = now + holder->terms.ttl;
  if (!still.lost) {
    task->closing = closing;
    closing->open.emplace(handle.get(), std::move(still));
  }
  schedule(now, std::move(task));
}

// What is known of a lock that release_all() waits for; `answer` is null if
// nothing more was asked.
void Renewer::Core::closed(const Task& task, std::optional<Verdict> lost,
                           const Answer* answer, bool for_good) {
  if (task.closing == nullptr) return;
  auto& open = task.closing->open;
  const auto place = open.find(task.held.get());
  if (place == open.end()) return;  // It waits no more.
  const bool bad = lost || answer == nullptr || !is_answered(answer->fault);
  if (bad && answer != nullptr) place->second.answer = *answer;
  if (!for_good) return;
  place->second.lost = lost;
  if (bad) task.closing->bad.push_back(std::move(place->second));
  open.erase(place);
  changed.notify_all();
}

// For one more release that a caller leaves.  If there are too many, the one
// that goes is of a lock that will be free soonest by itself, and sooner of one
// that may never have been had, or was released before.
TaskPtr Renewer::Core::make_room() {
  const auto worth = [](const Task& task) {
    return std::make_tuple(!task.once_more, !task.of_take, task.give_up_at);
  };
  std::size_t kept = 0;
  Tasks::iterator least;
  for (Tasks* line : {&releases.waiting, &releases.due}) {
    for (auto task = line->begin(); task != line->end(); ++task) {
      if (task->second->closing || task->second->pending) continue;
      const bool first = kept++ == 0;
      if (first || worth(*task->second) < worth(*least->second)) least = task;
    }
  }
  if (kept < kMostKept) return nullptr;
  TaskPtr gone = std::move(least->second);
  gone->line->erase(least);
  return gone;
}

void Renewer::Core::schedule(BootTime when, TaskPtr task) {
  const Handle held = task->call == Call::renew ? task->held : nullptr;
  if (held) unschedule(*held);  // There is one plan for a lease.
  if (!held) first_late = std::min(first_late, task->give_up_at);
  Tasks& line = held ? renewals.waiting : releases.waiting;
  task->line = &line;
  const auto place = line.emplace(Rank(0, when), std::move(task));
  if (held) held->task = place;
  if (when < sender_sleeps_until) {
    sender_sleeps_until = when;
    sender_waker.wake();
  }
}

void Renewer::Core::schedule_renewal(const Handle& held, BootTime when) {
  auto task = std::make_unique<Task>(Call::renew, held->holder);
  task->held = held;
  schedule(when, std::move(task));
}

// By itself, which is not for ever, and only if its holder is alive.
void Renewer::Core::plan_renewal(const Handle& held, BootTime when) {
  const Holder& holder = *held->holder;
  if (!holder.terms.renew_after || held->held_too_long(when)) return;
  if (holder.callbacks_ != nullptr && holder.callbacks_->alive) {
    ask_at(held, when);
  } else {
    schedule_renewal(held, when);
  }
}

void Renewer::Core::ask_at(const Handle& held, BootTime when) {
  unschedule(*held);
  held->question = questions.emplace(when, held);
  wake_teller_at(when);
}

void Renewer::Core::unschedule(Held& held) {
  if (held.task) {
    const auto place = *std::exchange(held.task, std::nullopt);
    place->second->line->erase(place);
  }
  if (held.question) {
    questions.erase(*std::exchange(held.question, std::nullopt));
  }
}

// For the next that is to be told of this lease.
void Renewer::Core::set_alarm(const Handle& held) {
  clear_alarm(*held);
  BootTime when = held->lease.claim_end();
  const auto& callbacks = held->holder->callbacks_;
  const bool wanted =
      callbacks != nullptr && (callbacks->on_danger || client->log());
  if (!held->in_danger && wanted) {
    when -= held->holder->terms.safe_time;
  }
  held->alarm = alarms.emplace(when, held);
  wake_teller_at(when);
}

void Renewer::Core::wake_teller_at(BootTime when) {
  if (when >= teller_sleeps_until) return;
  teller_sleeps_until = when;
  teller_clock.set(when);
}

void Renewer::Core::clear_alarm(Held& held) {
  if (held.alarm) alarms.erase(*std::exchange(held.alarm, std::nullopt));
}

// A Holder has one lease at a time, and what was given back is not its any
// more.
void Renewer::Core::publish(const Held& held, BootTime claim_end) {
  held.holder->claim_end_.store(claim_end.time_since_epoch().count(),
                                std::memory_order_release);
}

// REQUIRES: not given back.
void Renewer::Core::lose(const Handle& held, Verdict why) {
  no_longer_held(*held);
  publish(*held, BootTime::min());
  clear_alarm(*held);
  unschedule(*held);
  tell(held, why);
}

void Renewer::Core::tell(const Handle& held, Verdict why) {
  held->lost = why;
  if (!is_to_be_told(*held) || stopping || !telling) return;
  losses.push_back(held);
  teller_sleeps_until = BootTime::min();
  teller_clock.set(BootTime::min());
}

bool Renewer::Core::is_to_be_told(const Held& held) const {
  const auto& callbacks = held.holder->callbacks_;
  return callbacks != nullptr &&
         (callbacks->on_lost || client->log() || held.signal.object);
}

void Renewer::Core::no_longer_held(Held& held) {
  if (!std::exchange(held.counts, false)) return;
  --held_now;
  held_since_s -= seconds_between(made, held.since);
  held_before_s += seconds_between(held.since, BootClock::now());
}

Renewer::Usage Renewer::Core::usage() const {
  const double now_s = seconds_between(made, BootClock::now());
  const double held_s = static_cast<double>(held_now) * now_s - held_since_s;
  return {held_now, held_before_s + held_s};
}

// An answer has contradicted what was known of DynamoDB's clock: claims may end
// sooner than was thought.
void Renewer::Core::check_clock() {
  const dynamodb::ServiceClock clock = client->clock();
  std::vector<Handle> all;
  for (const auto& alarm : alarms) all.push_back(alarm.second);
  for (const Handle& held : all) {
    held->lease.apply(clock);
    publish(*held, held->lease.claim_end());
    set_alarm(held);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
