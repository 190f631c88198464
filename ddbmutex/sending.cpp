// The sending thread of a Renewer, and what it shares with those who renew by
// hand.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "renewer_core.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

// How many renewals are under way at once, and how many releases; more wait.
// A renewal that hangs keeps its place for its request_timeout: where that is a
// quarter of the lease, 256 of them keep no healthy one out.
constexpr std::size_t kRenewalsAtOnce = 128;
constexpr std::size_t kReleasesAtOnce = 32;

// After a final error a renewal is tried again this often in a lease: keys and
// permissions come back.
constexpr int kFinalRetriesPerLease = 8;

}  // namespace

void Renewer::Core::send_loop() {
  std::vector<TaskPtr> under_way;
  std::vector<TaskPtr> ready;
  BootTime next;
  while (collect_due(ready, under_way, next)) {
    bool too_late = false;  // Some, and they have left room for others.
    for (TaskPtr& task : ready) {
      if (task->pending == nullptr) begin(*task);
      too_late = too_late || task->pending == nullptr;
      if (task->pending != nullptr) under_way.push_back(std::move(task));
    }
    ready.clear();
    if (too_late) continue;
    await_any(under_way, next);
    conclude_ended(under_way);
  }
  under_way.clear();
  end_sending();
}

// Until an answer has come, or it is time for something else.
void Renewer::Core::await_any(const std::vector<TaskPtr>& under_way,
                              BootTime until) {
  std::vector<sigv4::Exchange*> exchanges;
  for (const TaskPtr& task : under_way) {
    until = std::min(until, task->until);
    if (!task->pending->under_way()) return;  // Ended before it began.
    exchanges.push_back(task->pending->exchange());
  }
  sigv4::drive(exchanges.data(), exchanges.size(), until, &sender_waker);
  sender_waker.clear();
}

void Renewer::Core::conclude_ended(std::vector<TaskPtr>& under_way) {
  const BootTime now = BootClock::now();
  for (TaskPtr& task : under_way) {
    const bool ended = !task->pending->under_way() || now >= task->until;
    if (ended) conclude(std::move(task));
  }
  under_way.erase(std::remove(under_way.begin(), under_way.end(), nullptr),
                  under_way.end());
}

void Renewer::Core::end_sending() {
  Line dropped, dropped_renewals;
  const std::lock_guard<std::mutex> guard(mutex);
  for (const Tasks* line : {&renewals.waiting, &renewals.due}) {
    for (const auto& task : *line) task.second->held->task.reset();
  }
  std::swap(dropped, releases);
  std::swap(dropped_renewals, renewals);
  send_ended = true;
  changed.notify_all();
}

namespace {

// Of tasks that are due.  Renewals go by the ends of their claims, releases as
// they come, those that may be of nothing last.  Whoever had no answer goes
// behind his like: requests that hang would keep all others waiting.
Rank rank_of(const Task& task, BootTime due) {
  if (task.pending != nullptr) return {0, due};
  const bool renewal = task.call == Call::renew;
  return {1 + task.unanswered + 2 * task.of_take + 4 * task.once_more,
          renewal ? task.held->lease.claim_end() : due};
}

// The first of those that are due.  What has a request under way already is not
// counted as one for which there is to be room.
void collect(Tasks& due, std::size_t room, std::vector<TaskPtr>& ready) {
  while (!due.empty()) {
    TaskPtr& task = due.begin()->second;
    if (task->pending == nullptr && room-- == 0) return;
    if (task->call == Call::renew) task->held->task.reset();
    ready.push_back(std::move(task));
    due.erase(due.begin());
  }
}

}  // namespace

void Renewer::Core::stand_in_line(Line& line, BootTime now) {
  while (!line.waiting.empty() && first_of(line.waiting) <= now) {
    auto node = line.waiting.extract(line.waiting.begin());
    Task& task = *node.mapped();
    node.key() = rank_of(task, node.key().second);
    task.line = &line.due;
    const auto place = line.due.insert(std::move(node));
    if (task.call == Call::renew) task.held->task = place;
  }
}

// Releases that it is too late for, whether or not there is room.
void Renewer::Core::collect_late(BootTime now, std::vector<TaskPtr>& ready) {
  if (now < first_late) return;
  first_late = BootTime::max();
  for (Tasks* line : {&releases.waiting, &releases.due}) {
    for (auto task = line->begin(); task != line->end();) {
      const BootTime end = task->second->give_up_at;
      if (end > now) first_late = std::min(first_late, end);
      const bool late = end <= now && task->second->pending == nullptr;
      if (late) ready.push_back(std::move(task->second));
      task = late ? line->erase(task) : std::next(task);
    }
  }
}

// The tasks whose time has come, no more of each kind than there is room for,
// renewals first, and when to look again.  False once the thread is to end:
// after all that callers left was tried once more, at once, or at the time by
// which it must be.
bool Renewer::Core::collect_due(std::vector<TaskPtr>& ready,
                                const std::vector<TaskPtr>& under_way,
                                BootTime& next) {
  std::size_t renewing = 0, releasing = 0;
  bool worth_awaiting = false;
  for (const TaskPtr& task : under_way) {
    if (task->call == Call::renew) ++renewing;
    if (task->call == Call::release && !task->counted) ++releasing;
    if (task->call == Call::release && !task->once_more) worth_awaiting = true;
  }
  const std::lock_guard<std::mutex> guard(mutex);
  const BootTime now = BootClock::now();
  stand_in_line(renewals, now);
  stand_in_line(releases, stopping ? BootTime::max() : now);
  collect(renewals.due, kRenewalsAtOnce - renewing, ready);
  collect_late(now, ready);
  collect(releases.due, kReleasesAtOnce - releasing, ready);
  next = std::min(
      {first_of(renewals.waiting), first_of(releases.waiting), first_late});
  // Woken for a task that is gone again: kept, or the next would wake it too.
  if (sender_sleeps_until > now) next = std::min(next, sender_sleeps_until);
  sender_sleeps_until = next;
  if (!stopping) return true;
  next = std::min(next, stop_by);
  const bool idle = !worth_awaiting && ready.empty() && releases.due.empty();
  return !idle && now < stop_by;
}

void Renewer::Core::begin(Task& task) {
  if (!prepare(task)) return;
  task.pending = task.holder->driver.begin(task.request);
}

// What the lease says is to be sent.  False if it is too late.
bool Renewer::Core::prepare(Task& task) {
  const std::lock_guard<std::mutex> guard(mutex);
  const BootTime now = BootClock::now();
  BootTime end = task.give_up_at;
  task.last_try = stopping;
  const bool needless = task.once_more && stopping;
  if (task.call == Call::release && (now >= end || needless)) {
    closed(task, std::nullopt, nullptr, true);
    return false;
  }
  if (task.call == Call::renew) {
    Held& held = *task.held;
    if (stopping || held.over()) return false;
    // By hand it is planned anew in the end.
    const bool not_by_itself = held.renewing || held.held_too_long(now);
    if (!task.by_hand && not_by_itself) return false;
    end = held.lease.claim_end();
    if (now >= end) {
      lose(task.held, Verdict::expired);
      return false;
    }
    held.renewing = true;
  }
  Lease& lease = task.lease ? *task.lease : task.held->lease;
  task.request = lease.next(task.call, now, client->clock(), Observation());
  if (task.call == Call::renew) {
    end = lease.claim_end();
    publish(*task.held, end);
    set_alarm(task.held);
  }
  task.until =
      std::min(now + task.holder->driver.settings().request_timeout, end);
  return true;
}

void Renewer::Core::conclude(TaskPtr task) {
  const Answer answer =
      client->finish(std::move(task->pending), sigv4::Transport::timed_out);
  const Handle held = task->held;
  const std::lock_guard<std::mutex> guard(mutex);
  task->unanswered = answer.fault == Fault::timed_out;
  if (std::exchange(task->counted, false)) --answers_awaited;
  if (task->call == Call::renew) {
    held->renewing = false;
    changed.notify_all();
    if (held->over()) return;
  }
  const Verdict verdict = hear(*task, answer);
  if (task->call == Call::renew) {
    renewed(task, verdict, answer);
  } else {
    released(task, verdict, answer);
  }
}

Verdict Renewer::Core::hear(Task& task, const Answer& answer) {
  Lease& lease = task.lease ? *task.lease : task.held->lease;
  Observation nothing;
  const Verdict verdict =
      lease.heard(reply_to(task.request, answer), client->clock(), nothing);
  task.pace.heard(answer);
  return verdict;
}

void Renewer::Core::renewed(TaskPtr& task, Verdict verdict,
                            const Answer& answer) {
  const Handle& held = task->held;
  if (verdict != Verdict::ours && verdict != Verdict::again) {
    return lose(held, verdict);
  }
  const BootTime end = held->lease.claim_end();
  publish(*held, end);
  if (verdict == Verdict::ours) {
    held->in_danger = false;
    plan_renewal(held, held->lease.renew_at(*held->holder->terms.renew_after));
  }
  set_alarm(held);
  if (verdict == Verdict::again) {
    const BootTime next = BootClock::now() + retry_delay(*task, answer);
    schedule(std::min(next, end), std::move(task));
  }
}

nanoseconds Renewer::Core::retry_delay(Task& task, const Answer& answer) {
  const nanoseconds left = task.held->lease.claim_end() - BootClock::now();
  const auto delay = task.pace.delay(answer, left);
  return delay.value_or(nanoseconds(task.holder->terms.ttl) /
                        kFinalRetriesPerLease);
}

void Renewer::Core::released(TaskPtr& task, Verdict verdict,
                             const Answer& answer) {
  const BootTime now = BootClock::now();
  if (std::exchange(task->awaits_take, false)) {
    task->undecided = task->undecided || answer.outcome_unknown();
    const bool maybe = verdict == Verdict::ours || verdict == Verdict::again;
    if (maybe || task->undecided) schedule(now, std::move(task));
    return;
  }
  if (verdict == Verdict::again) {
    const auto delay = task->pace.delay(answer, task->give_up_at - now);
    const bool goes_on =
        delay && !task->last_try && now + *delay < task->give_up_at;
    closed(*task, std::nullopt, &answer, !goes_on);
    if (goes_on) schedule(now + *delay, std::move(task));
    return;
  }
  const bool lost = verdict != Verdict::released;
  if (lost && task->held != nullptr) tell(task->held, verdict);
  closed(*task, lost ? std::optional(verdict) : std::nullopt, &answer, true);
  const bool may_come_yet = task->of_take && task->undecided;
  if (may_come_yet && answer.fault != Fault::none) release_once_more(task);
}

// DynamoDB may yet get a take that nobody has heard of, after a release that
// found nothing.  For that there is another, when a lease is nearly over: it
// waits without an exchange, and no destructor waits for it.
void Renewer::Core::release_once_more(TaskPtr& task) {
  const BootTime when =
      task->give_up_at - task->holder->driver.settings().request_timeout;
  if (std::exchange(task->once_more, true) || when <= BootClock::now()) return;
  schedule(when, std::move(task));
}

// --- A thread that renews by hand --------------------------------------------

// Waits until the lease is not being renewed, and keeps others from it.  If
// there is nothing to renew, what the call came to.
std::optional<Renewer::Renewal> Renewer::Core::enter_by_hand(
    Held& held, BootTime deadline) {
  std::unique_lock<std::mutex> guard(mutex);
  while (held.renewing && !held.over()) {
    const nanoseconds left = deadline - BootClock::now();
    if (left <= nanoseconds::zero()) break;
    changed.wait_for(guard, std::min(left, kLongestWait));
  }
  Renewal renewal;
  if (held.over()) return ended_by_hand(held);
  if (held.renewing) {
    renewal.kind = Renewal::Kind::failed;
    renewal.answer.fault = Fault::timed_out;
    renewal.answer.message = "another renewal is under way";
    return renewal;
  }
  held.renewing = true;
  unschedule(held);
  return std::nullopt;
}

// REQUIRES: the mutex is held.
Renewer::Renewal Renewer::Core::ended_by_hand(const Held& held) {
  Renewal renewal;
  renewal.kind = held.lost ? Renewal::Kind::lost : Renewal::Kind::not_held;
  renewal.loss = held.lost.value_or(Verdict::expired);
  return renewal;
}

Renewer::Renewal Renewer::Core::renew_by_hand(Task& task, BootTime deadline,
                                              sigv4::Waker& waker) {
  const BootTime begun = BootClock::now();
  const nanoseconds request_time =
      task.holder->driver.settings().request_timeout;
  Renewal last;
  last.kind = Renewal::Kind::failed;
  last.answer.fault = Fault::timed_out;
  last.answer.message = "the deadline has passed";
  for (;;) {
    client->await_keys(std::min(deadline, BootClock::now() + request_time),
                       &waker);
    if (waker.woken() || BootClock::now() >= deadline) return last;
    begin(task);
    if (task.pending == nullptr) {
      const std::lock_guard<std::mutex> guard(mutex);
      return ended_by_hand(*task.held);
    }
    sigv4::Exchange* exchange = task.pending->exchange();
    const BootTime until = std::min(task.until, deadline);
    if (task.pending->under_way()) sigv4::drive(&exchange, 1, until, &waker);
    const Answer answer = client->finish(
        std::move(task.pending), waker.woken() ? sigv4::Transport::cancelled
                                               : sigv4::Transport::timed_out);
    nanoseconds delay;
    if (auto end = heard_by_hand(task, answer, begun, deadline, delay)) {
      return std::move(*end);
    }
    last.answer = answer;
    sigv4::drive(nullptr, 0, BootClock::now() + delay, &waker);
  }
}

// What the call came to; else how long to wait before the next request.
std::optional<Renewer::Renewal> Renewer::Core::heard_by_hand(
    Task& task, const Answer& answer, BootTime begun, BootTime deadline,
    nanoseconds& delay) {
  const Handle& handle = task.held;
  const std::lock_guard<std::mutex> guard(mutex);
  if (handle->over()) return ended_by_hand(*handle);
  const Lease& lease = handle->lease;
  const Verdict verdict = hear(task, answer);
  if (verdict != Verdict::ours && verdict != Verdict::again) {
    lose(handle, verdict);
    return ended_by_hand(*handle);
  }
  publish(*handle, lease.claim_end());
  if (verdict == Verdict::ours) handle->in_danger = false;
  set_alarm(handle);
  // An earlier renewal, of which that is the answer at last, had no changes.
  const bool done = verdict == Verdict::ours && lease.granted_at() >= begun;
  if (done) return Renewal{};
  const BootTime now = BootClock::now();
  const BootTime end = std::min(deadline, lease.claim_end());
  const auto pause = verdict == Verdict::ours
                         ? nanoseconds::zero()
                         : task.pace.delay(answer, end - now);
  if (pause && now + *pause < end) {
    delay = *pause;
    return std::nullopt;
  }
  return Renewal{Renewal::Kind::failed, Verdict::expired, answer};
}

void Renewer::Core::leave_by_hand(const Handle& handle) {
  const std::lock_guard<std::mutex> guard(mutex);
  handle->renewing = false;
  changed.notify_all();
  if (handle->over()) return;
  handle->lease.carry(nullptr);
  const auto& age = handle->holder->terms.renew_after;
  if (!age) return;
  plan_renewal(handle,
               std::max(handle->lease.renew_at(*age), BootClock::now()));
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
