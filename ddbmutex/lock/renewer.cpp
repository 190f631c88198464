#include "renewer.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "../../sigv4/memory.hpp"
#include "../../sigv4/shared.hpp"
#include "../../sigv4/thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kMostAwaited = 16;
constexpr std::size_t kMostKept = 1000;

double seconds_between(BootTime from, BootTime to) {
  return std::chrono::duration<double>(to - from).count();
}

double per_second(nanoseconds every) {
  return 1 / std::chrono::duration<double>(every).count();
}

void fail(Result& result, const char* why) {
  result.kind = Result::Kind::failed;
  result.answer.fault = Fault::timed_out;
  sigv4::has_memory_for([&] { result.answer.message = why; });
}

constexpr char kNoThread[] = "cannot start a thread";

}  // namespace

std::shared_ptr<Renewer> Renewer::create(
    const dynamodb::ClientOptions& options) {
  auto made = sigv4::share<Renewer>(options);
  made->self_ = made;
  return made;
}

Renewer::Renewer(const dynamodb::ClientOptions& options) : client_(options) {
  client_.on_contradiction(
      [](void* it) { static_cast<Renewer*>(it)->check_clock(); }, this);
}

// One by one: a thousand destructors within each other want a large stack.
Renewer::~Renewer() {
  while (first_loss_ != nullptr) take_loss();
}

// --- Starting and stopping ---------------------------------------------------

bool Renewer::start() {
  if (stopping_) return false;
  if (sender_.started && teller_.started) return true;
  const std::shared_ptr<void> self = self_.lock();
  if (!registered_) sigv4::register_for_exit(self, *this);
  registered_ = true;
  if (!teller_.started) {
    teller_.started = sigv4::start_thread(
        teller_.thread, "ddbmutex-notify", self,
        [](void* it) { static_cast<Renewer*>(it)->tell_loop(); });
    if (!teller_.started) return false;
  }
  sender_.started = sigv4::start_thread(
      sender_.thread, "ddbmutex-sender", self, [](void* it) {
        auto* const renewer = static_cast<Renewer*>(it);
        renewer->send_loop();
        const Guard guard(renewer->mutex_);  // What that had left is dropped.
        renewer->sender_.ended = true;
        renewer->changed_.notify_all();
      });
  return sender_.started;
}

void Renewer::tell_to_stop(BootTime by) {
  const Guard guard(mutex_);
  if (std::exchange(stopping_, true)) return;
  stop_by_ = by;
  sender_waker_.wake();
  wake_teller_at(BootTime::min());  // No alarm replaces this one.
}

void Renewer::await_stop() {
  Guard guard(mutex_);
  if (std::exchange(awaited_, true)) return;
  const auto is_running = [](const Worker& worker) {
    return worker.started && !worker.ended &&
           !sigv4::is_this_thread(worker.thread);
  };
  const BootTime latest = stop_by_ + sigv4::kStopGrace;
  while ((is_running(sender_) || is_running(teller_)) &&
         sigv4::await(changed_, guard, latest)) {
  }
  for (Worker* worker : {&sender_, &teller_}) {
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

// --- Calls -------------------------------------------------------------------

bool Renewer::keep(HeldLease& held) {
  const MutexSettings& holder = *held.holder;
  const Guard guard(mutex_);
  if (shut_) return false;
  const bool renews = holder.renew_after > nanoseconds::zero();
  // Who is asked whether it is alive has its lease renewed.
  const bool calls = holder.hears_losses || holder.hears_dangers;
  if ((renews || calls) && !start()) return false;
  for (Agenda* agenda : {&renewals_, &renewals_due_, &renewals_behind_,
                         &questions_, &dangers_, &ends_}) {
    agenda->make_room(ends_.size() + 1);
  }
  held.release.push_back(std::make_unique<Attempt>(Call::release, held));
  held.since = BootClock::now();
  if (renews) {
    renewals_per_s_ += per_second(holder.renew_after);
    // Locks that were taken together are not renewed together.
    const BootTime when = held.lease.renew_at(holder.renew_after);
    const nanoseconds early =
        std::max((when - held.since) / 2, nanoseconds::zero());
    plan_renewal(held, when - budget_.jitter(early));
  }
  held.lease.apply(client_.clock());
  set_alarm(held);
  publish(held, held.lease.claim_end());
  held_since_s_ += seconds_between(made_, held.since);
  return true;
}

Renewer::Usage Renewer::usage() const {
  const Guard guard(mutex_);
  const double now_s = seconds_between(made_, BootClock::now());
  const double held_s =
      static_cast<double>(ends_.size()) * now_s - held_since_s_;
  return {ends_.size(), held_before_s_ + held_s};
}

void Renewer::renew(HeldLease& held, const ChangesPtr& changes,
                    BootTime deadline, sigv4::Waker& waker, Result& result) {
  Attempt attempt(Call::renew, held);
  attempt.by_hand = this;
  attempt.deadline = deadline;
  Guard guard(mutex_);
  while (held.renewing && !held.over() &&
         sigv4::await(changed_, guard, deadline)) {
  }
  if (held.over()) return end(held, result);
  if (held.renewing) return fail(result, "another renewal is under way");
  held.renewing = true;
  unplan(held);
  held.lease.carry(changes);
  attempt.made = BootClock::now();
  guard.unlock();
  const bool had_memory = sigv4::has_memory_for([&] { attempt.run(&waker); });
  guard.lock();
  if (held.over()) {
    end(held, result);
  } else if (!had_memory) {
    result.kind = Result::Kind::failed;
    result.answer.fault = Fault::no_memory;
  } else if (attempt.verdict == Verdict::ours) {
    return;
  } else if (BootClock::now() >= held.lease.claim_end()) {
    lose(held, Verdict::expired);
    end(held, result);
  } else if (stopping_ && !attempt.failing()) {  // Nothing was asked.
    result.kind = Result::Kind::not_held;
  } else {
    result.kind = Result::Kind::failed;
    result.answer = std::move(attempt.answer);
  }
  guard.unlock();
  go_on(held);
}

void Renewer::go_on(HeldLease& held) {
  const Guard guard(mutex_);
  held.renewing = false;
  changed_.notify_all();
  if (held.over()) return;
  held.lease.carry(nullptr);
  plan_renewal(held, std::max(held.lease.renew_at(held.holder->renew_after),
                              BootClock::now()));
}

void Renewer::confirm_loss(HeldLease& held, BootTime deadline,
                           sigv4::Waker& waker) {
  Result result;
  renew(held, nullptr, deadline, waker, result);
  if (result.kind == Result::Kind::done) return go_on(held);
  const Guard guard(mutex_);
  if (!held.over()) lose(held, Verdict::taken);
}

std::shared_ptr<void> Renewer::signal_loss(HeldLease& held,
                                           std::shared_ptr<void> (*make)(),
                                           void (*signal)(void*)) {
  const Guard guard(mutex_);
  if (held.over() || BootClock::now() >= held.lease.claim_end()) return nullptr;
  if (held.signal.object == nullptr) {
    if (!start()) return nullptr;
    held.signal = {make(), signal};
    set_alarm(held);  // The thread that is to tell may be new.
  }
  return held.signal.object;
}

bool Renewer::hand_over(HeldLease& held, Signal& signal) {
  const Guard guard(mutex_);
  if (held.over() || stopping_ || shut_) return false;
  const int limit = held.holder->handover_limit;
  if (!held.lease.hand_over(BootClock::now(), limit)) return false;
  signal.swap(held.signal);
  return true;
}

Attempts Renewer::give_back(HeldLease& held, Verdict& lost) {
  Signal signal;  // Dropped only without the mutex.
  const Guard guard(mutex_);
  Attempts attempt = take_back(held);
  lost = held.lost;
  signal.swap(held.signal);
  return attempt;
}

std::vector<Unreleased> Renewer::release_all(BootTime deadline) {
  const auto closing = sigv4::share<Closing>();
  Guard guard(mutex_);
  shut_ = true;
  std::vector<Unreleased>& all = closing->locks;
  all = std::vector<Unreleased>(ends_.size());
  const bool threads = !all.empty() && start();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].held = Handle(&ends_.at(i));
    all[i].signal.swap(all[i].held->signal);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    close(*all[i].held, closing, i, threads);
  }
  guard.unlock();
  for (Unreleased& one : all) {
    Signal signal;
    signal.swap(one.signal);
    if (signal.object != nullptr) signal.tell(signal.object.get());
  }
  guard.lock();
  while (closing->open > 0 && !sender_.ended &&
         sigv4::await(changed_, guard, deadline)) {
  }
  std::vector<Unreleased> locks;  // Dropped only without the mutex.
  locks.swap(all);
  return locks;
}

void Renewer::lost(HeldLease& held, Verdict why) {
  const Guard guard(mutex_);
  tell(held, why);
}

bool Renewer::finish(Attempts& one) {
  Attempts gone;  // Dropped only without the mutex.
  Guard guard(mutex_);
  bool started = false;
  if (!sigv4::has_memory_for([&] { started = start(); }) || !started) {
    return false;
  }
  Attempt& attempt = *one.front();
  gone = make_room();
  const BootTime now = BootClock::now();
  attempt.release_instead(now + attempt.holder.ttl);
  if (attempt.pending != nullptr) {
    if (answers_awaited_ == kMostAwaited) {
      guard.unlock();
      conclude(std::move(one));
      return true;
    }
    ++answers_awaited_;
    attempt.counted = true;
  }
  attempt.due = now;
  const bool sent = attempt.pending != nullptr;
  if (!sent && attempt.answer.fault == Fault::throttled) attempt.goes_on();
  put(attempt.due, one);
  return true;
}

// What was lost before, and is not told any more, is dropped by the thread that
// would have told it.
void Renewer::settle(MutexSettings& holder) {
  Guard guard(mutex_);
  const bool tells = sigv4::is_this_thread(teller_.thread);
  // Settled before, nothing is told any more, though losses wait.
  while (teller_.started && !tells && !teller_.ended && !holder.settled &&
         is_told(holder)) {
    changed_.wait(guard);
  }
  holder.settled = true;
  holder.listener.reset();
}

bool Renewer::calls_back_here() const {
  const Guard guard(mutex_);
  return teller_.started && sigv4::is_this_thread(teller_.thread);
}

bool Renewer::is_told(const MutexSettings& holder) const {
  if (running_ == &holder) return true;
  for (const HeldLease* held = first_loss_; held != nullptr;
       held = held->next_lost) {
    if (held->holder.get() == &holder) return true;
  }
  return false;
}

void Renewer::check_clock() {
  const Guard guard(mutex_);
  const dynamodb::ServiceClock clock = client_.clock();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    HeldLease& held = ends_.at(i);
    held.lease.apply(clock);
    publish(held, held.lease.claim_end());
  }
  // An alarm that is set moves a lease: to the front, for no claim has become
  // longer, and so past none that has yet to have its own.
  for (std::size_t i = 0; i < ends_.size(); ++i) set_alarm(ends_.at(i));
}

// --- Under the mutex ---------------------------------------------------------

Attempts Renewer::take_back(HeldLease& held) {
  Attempts attempt;
  if (held.given_back) return attempt;
  const BootTime now = BootClock::now();
  const bool was_lost = held.lost != Verdict::again;
  if (!was_lost && now >= held.lease.claim_end()) {
    lose(held, Verdict::expired);
  } else if (!was_lost) {
    no_longer_held(held, now);
  }
  held.given_back = true;
  publish(held, BootTime::min());
  // All that a renewal under way of unknown outcome tells the lease.
  if (held.renewing) held.lease.apply(client_.clock());
  held.lease.carry(nullptr);
  changed_.notify_all();
  attempt.swap(held.release);
  return attempt;
}

// Without threads nothing can be said; at exit its mutex's destructor may say
// it yet.
void Renewer::close(HeldLease& held, const std::shared_ptr<Closing>& closing,
                    std::size_t place, bool threads) {
  Result& result = closing->locks[place].result;
  fail(result, threads ? "not released in time" : kNoThread);
  if (stopping_) return;
  Attempts one = take_back(held);
  const bool lost = held.lost != Verdict::again;
  if (lost) end(held, result);
  if (!threads) return;
  Attempt& attempt = *one.front();
  const BootTime now = BootClock::now();
  attempt.deadline = now + held.holder->ttl;
  if (!lost) {
    attempt.closing = closing;
    attempt.closing_place = place;
    ++closing->open;
  }
  put(now, one);
}

// What is known of a lock that release_all() waits for.  `told`: by the last
// answer.
void Renewer::closed(const Attempt& attempt, Verdict lost, bool told,
                     bool for_good) {
  Closing* const closing = attempt.closing.get();
  if (closing == nullptr || closing->locks.empty()) return;
  Result& result = closing->locks[attempt.closing_place].result;
  if (told && attempt.failing()) {
    sigv4::has_memory_for([&] { attempt.answer.tell(result.answer); });
  }
  if (!for_good) return;
  if (lost != Verdict::again) {
    result.kind = Result::Kind::lost;
    result.loss = lost;
  } else if (told && !attempt.failing()) {
    result.kind = Result::Kind::done;
  }
  --closing->open;
  changed_.notify_all();
}

// For one more release that a caller leaves.  If there are too many, the one
// that goes is of a lock that will be free soonest by itself, and sooner of one
// that may never have been had, or was released before.
Attempts Renewer::make_room() {
  const auto worth = [](const Attempt& attempt) {
    return std::make_tuple(!attempt.once_more, !attempt.of_take,
                           attempt.deadline);
  };
  std::size_t kept = 0;
  Attempts::iterator least;
  for (auto one = releases_.begin(); one != releases_.end(); ++one) {
    if ((*one)->closing || (*one)->pending) continue;
    if (kept++ == 0 || worth(**one) < worth(**least)) least = one;
  }
  Attempts gone;
  if (kept >= kMostKept) gone.splice(gone.begin(), releases_, least);
  return gone;
}

void Renewer::put(BootTime when, Attempts& attempt) {
  attempt.front()->due = when;
  releases_.splice(releases_.end(), attempt);
  wake_sender_at(when);
}

void Renewer::wake_sender_at(BootTime when) {
  if (when >= sender_sleeps_until_) return;
  sender_sleeps_until_ = when;
  sender_waker_.wake();
}

void Renewer::wake_teller_at(BootTime when) {
  if (when >= teller_sleeps_until_) return;
  teller_sleeps_until_ = when;
  teller_waker_.wake();
}

// There is one plan for a lease.
void Renewer::plan(HeldLease& held, Agenda& agenda, BootTime when) {
  unplan(held);
  held.renewal_on = &agenda;
  agenda.set(held, when);
  return &agenda == &questions_ ? wake_teller_at(when) : wake_sender_at(when);
}

// By itself, which is not for ever, and only if its holder is alive.
void Renewer::plan_renewal(HeldLease& held, BootTime when) {
  const MutexSettings& holder = *held.holder;
  const bool by_hand = holder.renew_after <= nanoseconds::zero();
  if (by_hand || held.held_too_long(when)) return;
  plan(held, holder.is_asked ? questions_ : renewals_, when);
}

void Renewer::unplan(HeldLease& held) {
  if (held.renewal_on != nullptr) held.renewal_on->set(held, BootTime::max());
  held.attempt.reset();
}

// For what is to be told of this lease.
void Renewer::set_alarm(HeldLease& held) {
  const MutexSettings& holder = *held.holder;
  const BootTime end = held.lease.claim_end();
  const bool wanted =
      !holder.settled && (holder.hears_dangers || client_.log());
  const bool may_be_told = !held.in_danger && wanted;
  const BootTime danger =
      may_be_told ? end - holder.safe_time : BootTime::max();
  ends_.set(held, end);
  const bool due =
      held.renewal_on == &renewals_due_ || held.renewal_on == &renewals_behind_;
  if (held.renewal.planned() && due) held.renewal_on->set(held, end);
  dangers_.set(held, danger);
  wake_teller_at(std::min(danger, end));
}

// A Holder has one lease at a time, and what was given back is not its any
// more.
void Renewer::publish(const HeldLease& held, BootTime claim_end) {
  held.holder->claim_end.store(claim_end, std::memory_order_release);
}

// Nothing is planned for it any more.
void Renewer::no_longer_held(HeldLease& held, BootTime now) {
  held_since_s_ -= seconds_between(made_, held.since);
  held_before_s_ += seconds_between(held.since, now);
  if (held.holder->renew_after > nanoseconds::zero()) {
    renewals_per_s_ -= per_second(held.holder->renew_after);
  }
  unplan(held);
  dangers_.set(held, BootTime::max());
  ends_.set(held, BootTime::max());
}

// REQUIRES: not over.
void Renewer::lose(HeldLease& held, Verdict why) {
  no_longer_held(held, BootClock::now());
  publish(held, BootTime::min());
  tell(held, why);
}

// A loss is reported once, for the reason that was found first.
void Renewer::tell(HeldLease& held, Verdict why) {
  if (held.lost != Verdict::again) return;
  held.lost = why;
  const MutexSettings& holder = *held.holder;
  const bool hears =
      holder.hears_losses || client_.log() || held.signal.object != nullptr;
  const bool wanted = !holder.settled && hears;
  if (!wanted || stopping_ || !teller_.started) return;
  if (last_loss_ != nullptr) {
    last_loss_->next_lost = Handle(&held);
  } else {
    first_loss_ = Handle(&held);
  }
  last_loss_ = &held;
  wake_teller_at(BootTime::min());
}

// What is over was lost, or given back.
void Renewer::end(const HeldLease& held, Result& result) const {
  const bool lost = held.lost != Verdict::again;
  result.kind = lost ? Result::Kind::lost : Result::Kind::not_held;
  if (lost) result.loss = held.lost;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
