#include "keeper.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kMostAwaited = 16;
constexpr std::size_t kMostKept = 1000;

// At once; longer ones are waited in parts, for not every clock's time goes so
// far.
constexpr nanoseconds kLongestWait = std::chrono::hours(1);

double seconds_between(BootTime from, BootTime to) {
  return std::chrono::duration<double>(to - from).count();
}

Result failed(Fault why, const char* message) {
  Result result(Result::Kind::failed);
  result.answer.fault = why;
  result.answer.message = message;
  return result;
}

Result no_thread() {
  return failed(Fault::timed_out, "no thread can be started");
}

Result lost_as(Verdict why) {
  Result result(Result::Kind::lost);
  result.loss = why;
  return result;
}

}  // namespace

// --- Starting and stopping ---------------------------------------------------

bool Keeper::start() {
  if (stopping_) return false;
  if (sending_ && telling_) return true;
  if (!teller_clock_.open()) return false;
  const std::shared_ptr<Keeper> self = shared_from_this();
  if (!telling_) {
    telling_ = sigv4::start_thread(teller_, [self] { self->tell_loop(); });
    if (!telling_) return false;
    sigv4::register_for_exit(self);
  }
  sending_ = sigv4::start_thread(sender_, [self] { self->send_loop(); });
  return sending_;
}

void Keeper::tell_to_stop(BootTime by) {
  const Guard guard(mutex_);
  if (std::exchange(stopping_, true)) return;
  stop_by_ = by;
  sender_waker_.wake();
  teller_sleeps_until_ = BootTime::min();  // No alarm replaces this one.
  teller_clock_.set(BootTime::min());
}

void Keeper::await_stop() {
  Guard guard(mutex_);
  if (std::exchange(awaited_, true)) return;
  const pthread_t self = pthread_self();
  const bool in_sender = sending_ && pthread_equal(self, sender_) != 0;
  const bool in_teller = telling_ && pthread_equal(self, teller_) != 0;
  const nanoseconds left = stop_by_ + sigv4::kStopGrace - BootClock::now();
  changed_.wait_for(guard, std::max(left, nanoseconds::zero()), [&] {
    return (!sending_ || in_sender || send_ended_) &&
           (!telling_ || in_teller || tell_ended_);
  });
  const bool join_sender = sending_ && send_ended_;
  const bool join_teller = telling_ && tell_ended_;
  if (sending_ && !join_sender) pthread_detach(sender_);
  if (telling_ && !join_teller) pthread_detach(teller_);
  sending_ = telling_ = false;
  guard.unlock();
  if (join_sender) pthread_join(sender_, nullptr);
  if (join_teller) pthread_join(teller_, nullptr);
}

// --- Calls -------------------------------------------------------------------

Handle Keeper::keep(Lease& lease, const std::shared_ptr<Holder>& holder) {
  const Guard guard(mutex_);
  if (shut_) return nullptr;
  const auto& age = holder->terms.renew_after;
  const bool threads =
      age || (holder->callbacks != nullptr && holder->callbacks->any());
  if (threads && !start()) return nullptr;
  const auto held = std::make_shared<Held>(std::move(lease), holder);
  held->place = plans_.size();
  plans_.emplace_back().held = held;
  if (age) {
    // Locks that were taken together are not renewed together.
    const BootTime when = held->lease.renew_at(*age);
    const nanoseconds left = when - BootClock::now();
    const nanoseconds early = std::max(left / 2, nanoseconds::zero());
    plan_renewal(held, when - budget_->jitter(early));
  }
  held->lease.apply(client_->clock());
  set_alarm(*held);
  publish(*held, held->lease.claim_end());
  held_since_s_ += seconds_between(made_, held->since);
  return held;
}

Keeper::Usage Keeper::usage() const {
  const Guard guard(mutex_);
  const double now_s = seconds_between(made_, BootClock::now());
  const double held_s =
      static_cast<double>(plans_.size()) * now_s - held_since_s_;
  return {plans_.size(), held_before_s_ + held_s};
}

Result Keeper::renew(const Handle& handle,
                     std::shared_ptr<const Changes> changes, BootTime deadline,
                     sigv4::Waker& waker) {
  Held& held = *handle;
  Errand errand(Call::renew, handle);
  errand.by_hand = true;
  errand.deadline = deadline;
  Guard guard(mutex_);
  while (held.renewing && !held.over()) {
    const nanoseconds left = deadline - BootClock::now();
    if (left <= nanoseconds::zero()) break;
    changed_.wait_for(guard, std::min(left, kLongestWait));
  }
  if (held.over()) return ended(held);
  if (held.renewing) {
    return failed(Fault::timed_out, "another renewal is under way");
  }
  held.renewing = true;
  unplan(held);
  held.lease.carry(std::move(changes));
  errand.made = BootClock::now();
  guard.unlock();
  errand.run(*this, &waker);
  guard.lock();
  Result result;
  if (held.over()) {
    result = ended(held);
  } else if (errand.verdict == Verdict::ours) {
    return result;
  } else if (BootClock::now() >= held.lease.claim_end()) {
    lose(handle, Verdict::expired);
    result = ended(held);
  } else if (stopping_ && !errand.failing()) {  // Nothing was asked.
    result.kind = Result::Kind::not_held;
  } else {
    result.kind = Result::Kind::failed;
    result.answer = std::move(errand.answer);
  }
  guard.unlock();
  go_on(handle);
  return result;
}

void Keeper::go_on(const Handle& handle) {
  const Guard guard(mutex_);
  handle->renewing = false;
  changed_.notify_all();
  if (handle->over()) return;
  handle->lease.carry(nullptr);
  const auto& age = handle->holder->terms.renew_after;
  if (!age) return;
  plan_renewal(handle,
               std::max(handle->lease.renew_at(*age), BootClock::now()));
}

std::shared_ptr<void> Keeper::signal_loss(const Handle& handle,
                                          const std::function<Signal()>& make) {
  Held& held = *handle;
  const Guard guard(mutex_);
  if (held.over() || BootClock::now() >= held.lease.claim_end()) return nullptr;
  if (held.signal.object == nullptr) {
    if (!start()) return nullptr;
    held.signal = make();
    set_alarm(held);  // The thread that is to tell may be new.
  }
  return held.signal.object;
}

ErrandPtr Keeper::give_back(const Handle& handle,
                            std::optional<Verdict>& lost) {
  const Guard guard(mutex_);
  ErrandPtr errand = take_back(handle);
  lost = handle->lost;
  return errand;
}

std::vector<Unreleased> Keeper::release_all(BootTime deadline) {
  std::vector<Handle> all;      // Dropped only without the mutex.
  std::vector<Signal> signals;  // Told, and dropped, without it too.
  const auto closing = std::make_shared<Closing>();
  Guard guard(mutex_);
  shut_ = true;
  for (const Plan& plan : plans_) all.push_back(plan.held);
  const bool threads = !all.empty() && start();
  for (const Handle& held : all) {
    signals.push_back(std::exchange(held->signal, Signal{}));
    if (stopping_) {  // At exit; its mutex's destructor may say it yet.
      closing->locks.push_back({held->holder->terms.name, no_thread()});
    } else {
      close(held, closing, threads);
    }
  }
  guard.unlock();
  for (const Signal& signal : signals) {
    if (signal.object != nullptr) signal.tell(signal.object.get());
  }
  guard.lock();
  while (closing->open > 0 && !send_ended_) {
    const nanoseconds left = deadline - BootClock::now();
    if (left <= nanoseconds::zero()) break;
    changed_.wait_for(guard, std::min(left, kLongestWait));
  }
  std::vector<Unreleased> locks = std::move(closing->locks);
  closing->locks.clear();
  const auto is_done = [](const Unreleased& one) {
    return one.result.kind == Result::Kind::done;
  };
  locks.erase(std::remove_if(locks.begin(), locks.end(), is_done), locks.end());
  return locks;
}

void Keeper::lost(const Handle& handle, Verdict why) {
  const Guard guard(mutex_);
  tell(handle, why);
}

bool Keeper::finish(ErrandPtr& errand) {
  ErrandPtr gone;  // Dropped only without the mutex.
  Guard guard(mutex_);
  if (!start()) return false;
  gone = make_room();
  const BootTime now = BootClock::now();
  errand->release_instead(now + errand->holder->terms.ttl);
  if (errand->pending != nullptr) {
    if (answers_awaited_ == kMostAwaited) {
      guard.unlock();
      conclude(std::move(errand));
      return true;
    }
    ++answers_awaited_;
    errand->counted = true;
  }
  errand->due = now;
  const bool sent = errand->pending != nullptr;
  if (!sent && errand->answer.fault == Fault::throttled) errand->goes_on();
  put(errand->due, std::move(errand));
  return true;
}

void Keeper::settle(Holder& holder) {
  // Both are dropped only without the mutex.
  std::vector<Handle> untold;
  std::shared_ptr<const Holder::Callbacks> callbacks;
  Guard guard(mutex_);
  const auto is_its = [&](const Handle& held) {
    return held->holder.get() == &holder;
  };
  const auto busy = [&] {
    return running_ == &holder ||
           std::any_of(losses_.begin(), losses_.end(), is_its);
  };
  if (!telling_ || pthread_equal(pthread_self(), teller_) == 0) {
    while (telling_ && !tell_ended_ && busy()) changed_.wait(guard);
  }
  for (Handle& held : losses_) {
    if (is_its(held)) untold.push_back(std::move(held));
  }
  losses_.erase(std::remove(losses_.begin(), losses_.end(), nullptr),
                losses_.end());
  callbacks.swap(holder.callbacks);
}

void Keeper::check_clock() {
  const Guard guard(mutex_);
  const dynamodb::ServiceClock clock = client_->clock();
  for (const Plan& plan : plans_) {
    plan.held->lease.apply(clock);
    publish(*plan.held, plan.held->lease.claim_end());
    set_alarm(*plan.held);
  }
}

// --- Under the mutex ---------------------------------------------------------

ErrandPtr Keeper::take_back(const Handle& handle) {
  Held& held = *handle;
  if (held.given_back) return nullptr;
  if (!held.lost && BootClock::now() >= held.lease.claim_end()) {
    lose(handle, Verdict::expired);
  }
  if (!held.lost) no_longer_held(held);
  held.given_back = true;
  publish(held, BootTime::min());
  if (held.renewing) {  // The lease is to hear of it before it goes on.
    Observation nothing;
    Reply reply;
    reply.outcome = Reply::Outcome::unknown;
    held.lease.heard(reply, client_->clock(), nothing);
  }
  held.lease.carry(nullptr);
  held.signal = {};
  changed_.notify_all();
  auto errand = std::make_unique<Errand>(Call::release, held.holder,
                                         std::move(held.lease));
  errand->held = handle;
  return errand;
}

// Without threads nothing can be said.
void Keeper::close(const Handle& handle,
                   const std::shared_ptr<Closing>& closing, bool threads) {
  ErrandPtr errand = take_back(handle);
  const bool lost = handle->lost.has_value();
  closing->locks.push_back({handle->holder->terms.name,
                            lost ? lost_as(*handle->lost)
                            : threads
                                ? failed(Fault::timed_out, "not said in time")
                                : no_thread()});
  if (!threads) return;
  const BootTime now = BootClock::now();
  errand->deadline = now + handle->holder->terms.ttl;
  if (!lost) {
    errand->closing = closing;
    errand->closing_place = closing->locks.size() - 1;
    ++closing->open;
  }
  put(now, std::move(errand));
}

// What is known of a lock that release_all() waits for.  `told`: by the last
// answer.
void Keeper::closed(const Errand& errand, std::optional<Verdict> lost,
                    bool told, bool for_good) {
  Closing* const closing = errand.closing.get();
  if (closing == nullptr || closing->locks.empty()) return;
  Result& result = closing->locks[errand.closing_place].result;
  if (told && errand.failing()) result.answer = errand.answer;
  if (!for_good) return;
  if (lost) {
    result.kind = Result::Kind::lost;
    result.loss = *lost;
  } else if (told && !errand.failing()) {
    result.kind = Result::Kind::done;
  }
  --closing->open;
  changed_.notify_all();
}

// For one more release that a caller leaves.  If there are too many, the one
// that goes is of a lock that will be free soonest by itself, and sooner of one
// that may never have been had, or was released before.
ErrandPtr Keeper::make_room() {
  const auto worth = [](const Errand& errand) {
    return std::make_tuple(!errand.once_more, !errand.of_take, errand.deadline);
  };
  std::size_t kept = 0;
  std::vector<ErrandPtr>::iterator least;
  for (auto one = releases_.begin(); one != releases_.end(); ++one) {
    if ((*one)->closing || (*one)->pending) continue;
    if (kept++ == 0 || worth(**one) < worth(**least)) least = one;
  }
  if (kept < kMostKept) return nullptr;
  ErrandPtr gone = std::move(*least);
  releases_.erase(least);
  return gone;
}

void Keeper::put(BootTime when, ErrandPtr&& errand) {
  errand->due = when;
  releases_.push_back(std::move(errand));
  wake_sender_at(when);
}

void Keeper::wake_sender_at(BootTime when) {
  if (when >= sender_sleeps_until_) return;
  sender_sleeps_until_ = when;
  sender_waker_.wake();
}

void Keeper::wake_teller_at(BootTime when) {
  if (when >= teller_sleeps_until_) return;
  teller_sleeps_until_ = when;
  teller_clock_.set(when);
}

void Keeper::renew_at(const Handle& held, BootTime when) {
  unplan(*held);  // There is one plan for a lease.
  plan_of(*held).renewal = when;
  wake_sender_at(when);
}

// By itself, which is not for ever, and only if its holder is alive.
void Keeper::plan_renewal(const Handle& held, BootTime when) {
  const Holder& holder = *held->holder;
  if (!holder.terms.renew_after || held->held_too_long(when)) return;
  if (holder.callbacks != nullptr && holder.callbacks->alive) {
    ask_at(*held, when);
  } else {
    renew_at(held, when);
  }
}

void Keeper::ask_at(Held& held, BootTime when) {
  unplan(held);
  plan_of(held).question = when;
  wake_teller_at(when);
}

void Keeper::unplan(Held& held) {
  Plan& plan = plan_of(held);
  plan.renewal = plan.question = BootTime::max();
  plan.errand.reset();
}

// For the next that is to be told of this lease.
void Keeper::set_alarm(Held& held) {
  BootTime when = held.lease.claim_end();
  const auto& callbacks = held.holder->callbacks;
  const bool wanted =
      callbacks != nullptr && (callbacks->on_danger || client_->log());
  if (!held.in_danger && wanted) when -= held.holder->terms.safe_time;
  plan_of(held).alarm = when;
  wake_teller_at(when);
}

// A Holder has one lease at a time, and what was given back is not its any
// more.
void Keeper::publish(const Held& held, BootTime claim_end) {
  held.holder->claim_end.store(claim_end, std::memory_order_release);
}

// Its plan goes, and with that a Handle that is not the last.
void Keeper::no_longer_held(const Held& held) {
  held_since_s_ -= seconds_between(made_, held.since);
  held_before_s_ += seconds_between(held.since, BootClock::now());
  const std::size_t place = held.place;
  if (place + 1 < plans_.size()) {
    plans_[place] = std::move(plans_.back());
    plans_[place].held->place = place;
  }
  plans_.pop_back();
}

// REQUIRES: not over.
void Keeper::lose(const Handle& held, Verdict why) {
  no_longer_held(*held);
  publish(*held, BootTime::min());
  tell(held, why);
}

void Keeper::tell(const Handle& held, Verdict why) {
  held->lost = why;
  const auto& callbacks = held->holder->callbacks;
  const bool wanted =
      callbacks != nullptr &&
      (callbacks->on_lost || client_->log() || held->signal.object != nullptr);
  if (!wanted || stopping_ || !telling_) return;
  losses_.push_back(held);
  teller_sleeps_until_ = BootTime::min();
  teller_clock_.set(BootTime::min());
}

// What is over was lost, or given back.
Result Keeper::ended(const Held& held) const {
  return held.lost ? lost_as(*held.lost) : Result(Result::Kind::not_held);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
