// Core::mutex guards all that both threads and callers touch, the leases
// included.  It is held for memory only, never while a request is made, a
// callback runs or a thread is waited for; and no Handle is dropped under it
// that may be the last, for what a callback captured may destroy anything.
#include "lock/renewer.hpp"

#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "sigv4/thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Client;
using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

// How many requests are under way at once; more wait, the oldest first.
constexpr std::size_t kAtOnce = 32;

// After a final error a renewal is tried again this often in a lease: keys and
// permissions come back.
constexpr int kFinalRetriesPerLease = 8;

// Sleeps until a time on the boot clock that another thread may change.  (A
// poll(2) stands still while the machine is suspended, its leases do not.)
class AlarmClock {
 public:
  AlarmClock() = default;
  ~AlarmClock() {
    if (fd_ >= 0) close(fd_);
  }
  AlarmClock(const AlarmClock&) = delete;
  AlarmClock& operator=(const AlarmClock&) = delete;

  // To be called before all else; again, if it failed.
  bool open() {
    if (fd_ < 0) fd_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    return fd_ >= 0;
  }

  // Not as an absolute time: libfaketime would take that for one on the
  // calendar.  A suspend between the two system calls would make it late.
  void set(BootTime when) {
    BootTime now;
    do {
      now = BootClock::now();
      start(when > now ? when - now : nanoseconds(1));  // 0 would be never.
    } while (BootClock::now() - now > std::chrono::milliseconds(10));
  }

  void wait() {
    std::uint64_t expired;
    while (read(fd_, &expired, sizeof expired) == -1 && errno == EINTR) {
    }
  }

 private:
  void start(nanoseconds left) {
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<time_t>(left / std::chrono::seconds(1));
    spec.it_value.tv_nsec =
        static_cast<long>((left % std::chrono::seconds(1)).count());
    timerfd_settime(fd_, 0, &spec, nullptr);
  }

  int fd_ = -1;
};

const char* words_of(Verdict why) {
  switch (why) {
    case Verdict::taken:
      return "another has it";
    case Verdict::deleted:
      return "its item is gone";
    default:
      return "its lease has ended";
  }
}

double seconds_between(BootTime from, BootTime to) {
  return std::chrono::duration<double>(to - from).count();
}

#ifdef __cpp_exceptions

// What goes wrong in a callback has nobody else to be told to.
void complain(const sigv4::Log& log, const std::string& text) {
  if (log) {
    sigv4::say(log, sigv4::LogLevel::error, text);
  } else {
    std::fprintf(stderr, "ddbmutex: %s\n", text.c_str());
  }
}

template <class Callback>
void contained(const Callback& callback, const std::string& which,
               const sigv4::Log& log) {
  try {
    callback();
  } catch (const std::exception& e) {
    complain(log, which + " threw: " + e.what());
  } catch (...) {
    complain(log, which + " threw");
  }
}

#else

template <class Callback>
void contained(const Callback& callback, const std::string&,
               const sigv4::Log&) {
  callback();
}

#endif

// A run of requests for one lease, in the hands of the sending thread.
struct Task {
  Task(Call what, std::shared_ptr<Holder> whose)
      : call(what),
        pace(whose->driver.budget(), what),
        holder(std::move(whose)) {}

  const Call call;
  Pace pace;
  const std::shared_ptr<Holder> holder;
  Renewer::Handle held;  // Of a renewal; of a release to tell of a loss.

  // Of a release.
  std::optional<Lease> lease;
  BootTime give_up_at{};
  bool awaits_take = false;  // What is pending is yet of the take,
  bool undecided = false;    // and so was a request before.

  // The request under way; the sending thread's alone.
  Request request;
  std::unique_ptr<Client::Pending> pending;
  BootTime until{};
};
using TaskPtr = std::unique_ptr<Task>;
using Tasks = std::multimap<BootTime, TaskPtr>;
using Alarms = std::multimap<BootTime, Renewer::Handle>;

}  // namespace

class Renewer::Held {
 public:
  Held(Lease held_lease, std::shared_ptr<Holder> whose)
      : holder(std::move(whose)), lease(std::move(held_lease)) {}

  const std::shared_ptr<Holder> holder;
  // All below: GUARDED_BY(Core::mutex)
  Lease lease;
  bool given_back = false;
  bool renewing = false;  // A request is under way.
  bool in_danger = false;
  bool counts = true;  // In Usage.
  const BootTime since = BootClock::now();
  std::optional<Verdict> lost;
  std::optional<Tasks::iterator> task;    // Where it waits.
  std::optional<Alarms::iterator> alarm;  // Likewise.
};

struct Renewer::Core final : sigv4::Stoppable {
  Core(std::shared_ptr<Client> the_client,
       std::shared_ptr<dynamodb::RetryBudget> the_budget)
      : client(std::move(the_client)), budget(std::move(the_budget)) {}

  void tell_to_stop(BootTime by) override;
  void await_stop() override;

  // For these the mutex is held.
  bool start(const std::shared_ptr<Core>& self);
  void schedule(BootTime when, TaskPtr task);
  void schedule_renewal(const Handle& held, BootTime when);
  void unschedule(Held& held);
  void set_alarm(const Handle& held);
  void clear_alarm(Held& held);
  void publish(const Held& held, BootTime claim_end);
  void lose(const Handle& held, Verdict why);
  void tell(const Handle& held, Verdict why);
  void no_longer_held(Held& held);
  Usage usage() const;
  void check_clock();

  // The sending thread's.
  void send_loop();
  void await_any(const std::vector<TaskPtr>& under_way, BootTime until);
  void conclude_ended(std::vector<TaskPtr>& under_way);
  void end_sending();
  bool collect_due(std::vector<TaskPtr>& ready, std::size_t room,
                   BootTime& next);
  void begin(Task& task);
  bool prepare(Task& task);
  void conclude(TaskPtr task);
  void renewed(TaskPtr& task, Verdict verdict, const Answer& answer);
  void released(TaskPtr& task, Verdict verdict, const Answer& answer);
  nanoseconds retry_delay(Task& task, const Answer& answer);

  // The telling thread's.
  void tell_loop();
  bool tell_next(std::unique_lock<std::mutex>& guard);
  void call_back(std::unique_lock<std::mutex>& guard, Handle held,
                 std::optional<Verdict> why);

  const std::shared_ptr<Client> client;
  const std::shared_ptr<dynamodb::RetryBudget> budget;
  sigv4::Waker sender_waker;
  AlarmClock teller_clock;

  std::mutex mutex;
  // All below: GUARDED_BY(mutex)
  std::condition_variable changed;  // running, losses, *_ended
  bool stopping = false;
  bool awaited = false;  // The end of the threads.
  BootTime stop_by{};
  pthread_t sender{};
  pthread_t teller{};
  bool sending = false;  // The threads were started,
  bool telling = false;
  bool send_ended = false;  // and have ended.
  bool tell_ended = false;
  Tasks tasks;
  Alarms alarms;
  std::deque<Handle> losses;  // To be told.
  const BootTime made = BootClock::now();
  std::uint64_t held_now = 0;
  double held_before_s = 0;  // By those that are not held any more.
  double held_since_s = 0;   // Of those that are, since `made`, added up.
  const Holder* running = nullptr;  // Whose callback is being called.
  // While awake they look at everything before they sleep again.
  BootTime sender_sleeps_until = BootTime::min();
  BootTime teller_sleeps_until = BootTime::min();
};

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
  if (!core_->start(core_)) return nullptr;
  const auto held = std::make_shared<Held>(std::move(lease), holder);
  // Locks that were taken together are not renewed together.
  const BootTime now = BootClock::now();
  const nanoseconds until_renewal = held->lease.renew_at() - now;
  const nanoseconds early = std::max(until_renewal / 2, nanoseconds::zero());
  core_->schedule_renewal(
      held, held->lease.renew_at() - core_->budget->jitter(early));
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

Renewer::Returned Renewer::give_back(const Handle& handle) {
  Held& held = *handle;
  const std::lock_guard<std::mutex> guard(core_->mutex);
  if (!held.lost && BootClock::now() >= held.lease.claim_end()) {
    core_->lose(handle, Verdict::expired);
  }
  held.given_back = true;
  core_->no_longer_held(held);
  core_->publish(held, BootTime::min());
  core_->unschedule(held);
  core_->clear_alarm(held);
  if (held.renewing) {  // The lease is to hear of it before it goes on.
    Observation nothing;
    Reply reply;
    reply.outcome = Reply::Outcome::unknown;
    held.lease.heard(reply, core_->client->clock(), nothing);
  }
  return {std::move(held.lease), held.lost};
}

void Renewer::lost(const Handle& handle, Verdict why) {
  const std::lock_guard<std::mutex> guard(core_->mutex);
  core_->tell(handle, why);
}

bool Renewer::finish(Call call, Lease& lease, Outcome& outcome,
                     const std::shared_ptr<Holder>& holder, Handle handle) {
  const std::lock_guard<std::mutex> guard(core_->mutex);
  if (!core_->start(core_)) return false;
  const BootTime now = BootClock::now();
  auto task = std::make_unique<Task>(Call::release, holder);
  task->held = std::move(handle);
  task->lease.emplace(std::move(lease));
  task->give_up_at = now + holder->terms.ttl;
  task->awaits_take = call == Call::take && outcome.pending != nullptr;
  task->undecided = outcome.unknown;
  task->request = std::move(outcome.request);
  task->pending = std::move(outcome.pending);
  task->until = std::min(now + holder->driver.settings().request_timeout,
                         task->give_up_at);
  const bool throttled =
      task->pending == nullptr && outcome.answer.fault == Fault::throttled;
  const auto delay =
      throttled ? task->pace.delay(outcome.answer, task->give_up_at - now)
                : std::nullopt;
  core_->schedule(now + delay.value_or(nanoseconds::zero()), std::move(task));
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

void Renewer::Core::schedule(BootTime when, TaskPtr task) {
  const Handle held = task->call == Call::renew ? task->held : nullptr;
  const auto place = tasks.emplace(when, std::move(task));
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

void Renewer::Core::unschedule(Held& held) {
  if (held.task) tasks.erase(*std::exchange(held.task, std::nullopt));
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
  if (when < teller_sleeps_until) {
    teller_sleeps_until = when;
    teller_clock.set(when);
  }
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
  if (held->lost) return;
  held->lost = why;
  const auto& callbacks = held->holder->callbacks_;
  const bool wanted =
      callbacks != nullptr && (callbacks->on_lost || client->log());
  if (!wanted || stopping) return;
  losses.push_back(held);
  teller_sleeps_until = BootTime::min();
  teller_clock.set(BootTime::min());
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

// --- The sending thread ------------------------------------------------------

void Renewer::Core::send_loop() {
  std::vector<TaskPtr> under_way;
  std::vector<TaskPtr> ready;
  BootTime next;
  while (collect_due(ready, kAtOnce - under_way.size(), next)) {
    const bool collected = !ready.empty();
    for (TaskPtr& task : ready) {
      if (task->pending == nullptr) begin(*task);
      if (task->pending != nullptr) under_way.push_back(std::move(task));
    }
    ready.clear();
    if (collected && under_way.empty()) continue;  // All came too late.
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
  Tasks dropped;
  const std::lock_guard<std::mutex> guard(mutex);
  for (auto& task : tasks) {
    if (task.second->call == Call::renew) task.second->held->task.reset();
  }
  dropped.swap(tasks);
  send_ended = true;
  changed.notify_all();
}

// The tasks whose time has come, the oldest first, no more than there is room
// for, and when to look again.  False once the thread is to end: after what
// callers left is finished, or at the time by which it must be.
bool Renewer::Core::collect_due(std::vector<TaskPtr>& ready, std::size_t room,
                                BootTime& next) {
  const std::lock_guard<std::mutex> guard(mutex);
  const BootTime now = BootClock::now();
  for (auto task = tasks.begin();
       task != tasks.end() && ready.size() < room && task->first <= now;) {
    ready.push_back(std::move(task->second));
    if (ready.back()->call == Call::renew) ready.back()->held->task.reset();
    task = tasks.erase(task);
  }
  next = tasks.empty() || room == 0 ? BootTime::max() : tasks.begin()->first;
  // Woken for a task that is gone again: kept, or the next would wake it too.
  if (sender_sleeps_until > now) next = std::min(next, sender_sleeps_until);
  sender_sleeps_until = next;
  if (!stopping) return true;
  next = std::min(next, stop_by);
  const auto left_by_a_caller = [](const auto& task) {
    return task.second->call == Call::release;
  };
  const bool idle = room == kAtOnce && ready.empty() &&
                    std::none_of(tasks.begin(), tasks.end(), left_by_a_caller);
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
  if (task.call == Call::renew) {
    Held& held = *task.held;
    if (stopping || held.given_back || held.lost) return false;
    end = held.lease.claim_end();
    if (now >= end) {
      lose(task.held, Verdict::expired);
      return false;
    }
    held.renewing = true;
  }
  Lease& lease = task.lease ? *task.lease : task.held->lease;
  task.request = lease.next(task.call, now, client->clock(), Client::calendar(),
                            Observation());
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
  if (task->call == Call::renew) {
    held->renewing = false;
    if (held->given_back || held->lost) return;
  }
  Lease& lease = task->lease ? *task->lease : held->lease;
  Observation nothing;
  const Verdict verdict =
      lease.heard(reply_to(task->request, answer), client->clock(), nothing);
  task->pace.heard(answer);
  if (task->call == Call::renew) {
    renewed(task, verdict, answer);
  } else {
    released(task, verdict, answer);
  }
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
    schedule_renewal(held, held->lease.renew_at());
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
    const bool maybe = verdict == Verdict::ours || verdict == Verdict::again;
    if (maybe || task->undecided) schedule(now, std::move(task));
    return;
  }
  if (verdict == Verdict::again) {
    const auto delay = task->pace.delay(answer, task->give_up_at - now);
    const bool goes_on = delay && now + *delay < task->give_up_at;
    if (goes_on) schedule(now + *delay, std::move(task));
  } else if (verdict != Verdict::released && task->held != nullptr) {
    tell(task->held, verdict);
  }
}

// --- The telling thread ------------------------------------------------------

void Renewer::Core::tell_loop() {
  std::unique_lock<std::mutex> guard(mutex);
  while (!stopping) {
    if (tell_next(guard)) continue;
    teller_sleeps_until =
        alarms.empty() ? BootTime::max() : alarms.begin()->first;
    teller_clock.set(teller_sleeps_until);
    guard.unlock();
    teller_clock.wait();
    guard.lock();
    teller_sleeps_until = BootTime::min();
  }
  Alarms dropped;
  for (auto& alarm : alarms) alarm.second->alarm.reset();
  dropped.swap(alarms);
  tell_ended = true;
  changed.notify_all();
  guard.unlock();
}

// False if there is nothing to be told now.
bool Renewer::Core::tell_next(std::unique_lock<std::mutex>& guard) {
  const BootTime now = BootClock::now();
  if (!alarms.empty() && alarms.begin()->first <= now) {
    Handle held = alarms.begin()->second;
    if (now >= held->lease.claim_end()) {
      lose(held, Verdict::expired);
    } else {
      held->in_danger = true;
      set_alarm(held);
      call_back(guard, std::move(held), std::nullopt);
    }
    return true;
  }
  if (losses.empty()) return false;
  Handle held = std::move(losses.front());
  losses.pop_front();
  const Verdict why = *held->lost;
  call_back(guard, std::move(held), why);
  return true;
}

// on_lost if there is a reason, else on_danger.
void Renewer::Core::call_back(std::unique_lock<std::mutex>& guard, Handle held,
                              std::optional<Verdict> why) {
  auto callbacks = held->holder->callbacks_;
  if (callbacks == nullptr) return;
  running = held->holder.get();
  guard.unlock();
  const std::string lock_name = "\"" + held->holder->terms.name + "\"";
  const sigv4::Log& log = client->log();
  if (why) {
    if (callbacks->on_lost) {
      contained([&] { callbacks->on_lost(*why); }, "on_lost of " + lock_name,
                log);
    }
    sigv4::say(log, sigv4::LogLevel::error,
               "lock " + lock_name + " is lost: " + words_of(*why));
  } else {
    if (callbacks->on_danger) {
      contained([&] { callbacks->on_danger(); }, "on_danger of " + lock_name,
                log);
    }
    sigv4::say(log, sigv4::LogLevel::warning,
               "lock " + lock_name + " is in danger: not renewed yet");
  }
  callbacks.reset();
  held.reset();
  guard.lock();
  running = nullptr;
  changed.notify_all();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
