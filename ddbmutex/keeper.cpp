#include "keeper.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "../sigv4/memory.hpp"
#include "../sigv4/shared.hpp"
#include "../sigv4/thread.hpp"

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

std::shared_ptr<Keeper> Keeper::create(const dynamodb::ClientOptions& options,
                                       dynamodb::TheseParts) {
  auto made = sigv4::share<Keeper>(options);
  made->self_ = made;
  return made;
}

Keeper::Keeper(const dynamodb::ClientOptions& options) : client_(options) {
  client_.on_contradiction(
      [](void* it) { static_cast<Keeper*>(it)->check_clock(); }, this);
}

// One by one: a thousand destructors within each other want a large stack.
Keeper::~Keeper() {
  while (first_loss_ != nullptr) take_loss();
}

// --- Starting and stopping ---------------------------------------------------

bool Keeper::start() {
  if (stopping_) return false;
  if (sender_.started && teller_.started) return true;
  const std::shared_ptr<void> self = self_.lock();
  if (!registered_) sigv4::register_for_exit(self, *this);
  registered_ = true;
  if (!teller_.started) {
    teller_.started = sigv4::start_thread(
        teller_.thread, "ddbmutex-notify", self,
        [](void* it) { static_cast<Keeper*>(it)->tell_loop(); });
    if (!teller_.started) return false;
  }
  sender_.started = sigv4::start_thread(
      sender_.thread, "ddbmutex-sender", self, [](void* it) {
        auto* const keeper = static_cast<Keeper*>(it);
        keeper->send_loop();
        const Guard guard(keeper->mutex_);  // What that had left is dropped.
        keeper->sender_.ended = true;
        keeper->changed_.notify_all();
      });
  return sender_.started;
}

void Keeper::tell_to_stop(BootTime by) {
  const Guard guard(mutex_);
  if (std::exchange(stopping_, true)) return;
  stop_by_ = by;
  sender_waker_.wake();
  wake_teller_at(BootTime::min());  // No alarm replaces this one.
}

void Keeper::await_stop() {
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

bool Keeper::keep(Held& held) {
  const Holder& holder = *held.holder;
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
  held.release.push_back(std::make_unique<Errand>(Call::release, held));
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

Keeper::Usage Keeper::usage() const {
  const Guard guard(mutex_);
  const double now_s = seconds_between(made_, BootClock::now());
  const double held_s =
      static_cast<double>(ends_.size()) * now_s - held_since_s_;
  return {ends_.size(), held_before_s_ + held_s};
}

void Keeper::renew(Held& held, const ChangesPtr& changes, BootTime deadline,
                   sigv4::Waker& waker, Result& result) {
  Errand errand(Call::renew, held);
  errand.by_hand = this;
  errand.deadline = deadline;
  Guard guard(mutex_);
  while (held.renewing && !held.over() &&
         sigv4::await(changed_, guard, deadline)) {
  }
  if (held.over()) return end(held, result);
  if (held.renewing) return fail(result, "another renewal is under way");
  held.renewing = true;
  unplan(held);
  held.lease.carry(changes);
  errand.made = BootClock::now();
  guard.unlock();
  const bool had_memory = sigv4::has_memory_for([&] { errand.run(&waker); });
  guard.lock();
  if (held.over()) {
    end(held, result);
  } else if (!had_memory) {
    result.kind = Result::Kind::failed;
    result.answer.fault = Fault::no_memory;
  } else if (errand.verdict == Verdict::ours) {
    return;
  } else if (BootClock::now() >= held.lease.claim_end()) {
    lose(held, Verdict::expired);
    end(held, result);
  } else if (stopping_ && !errand.failing()) {  // Nothing was asked.
    result.kind = Result::Kind::not_held;
  } else {
    result.kind = Result::Kind::failed;
    result.answer = std::move(errand.answer);
  }
  guard.unlock();
  go_on(held);
}

void Keeper::go_on(Held& held) {
  const Guard guard(mutex_);
  held.renewing = false;
  changed_.notify_all();
  if (held.over()) return;
  held.lease.carry(nullptr);
  plan_renewal(held, std::max(held.lease.renew_at(held.holder->renew_after),
                              BootClock::now()));
}

void Keeper::confirm_loss(Held& held, BootTime deadline, sigv4::Waker& waker) {
  Result result;
  renew(held, nullptr, deadline, waker, result);
  if (result.kind == Result::Kind::done) return go_on(held);
  const Guard guard(mutex_);
  if (!held.over()) lose(held, Verdict::taken);
}

std::shared_ptr<void> Keeper::signal_loss(Held& held,
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

bool Keeper::hand_over(Held& held, Signal& signal) {
  const Guard guard(mutex_);
  if (held.over() || stopping_ || shut_) return false;
  const int limit = held.holder->handover_limit;
  if (!held.lease.hand_over(BootClock::now(), limit)) return false;
  signal.swap(held.signal);
  return true;
}

Errands Keeper::give_back(Held& held, Verdict& lost) {
  Signal signal;  // Dropped only without the mutex.
  const Guard guard(mutex_);
  Errands errand = take_back(held);
  lost = held.lost;
  signal.swap(held.signal);
  return errand;
}

std::vector<Unreleased> Keeper::release_all(BootTime deadline) {
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

void Keeper::lost(Held& held, Verdict why) {
  const Guard guard(mutex_);
  tell(held, why);
}

bool Keeper::finish(Errands& one) {
  Errands gone;  // Dropped only without the mutex.
  Guard guard(mutex_);
  bool started = false;
  if (!sigv4::has_memory_for([&] { started = start(); }) || !started) {
    return false;
  }
  Errand& errand = *one.front();
  gone = make_room();
  const BootTime now = BootClock::now();
  errand.release_instead(now + errand.holder.ttl);
  if (errand.pending != nullptr) {
    if (answers_awaited_ == kMostAwaited) {
      guard.unlock();
      conclude(std::move(one));
      return true;
    }
    ++answers_awaited_;
    errand.counted = true;
  }
  errand.due = now;
  const bool sent = errand.pending != nullptr;
  if (!sent && errand.answer.fault == Fault::throttled) errand.goes_on();
  put(errand.due, one);
  return true;
}

// What was lost before, and is not told any more, is dropped by the thread that
// would have told it.
void Keeper::settle(Holder& holder) {
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

bool Keeper::calls_back_here() const {
  const Guard guard(mutex_);
  return teller_.started && sigv4::is_this_thread(teller_.thread);
}

bool Keeper::is_told(const Holder& holder) const {
  if (running_ == &holder) return true;
  for (const Held* held = first_loss_; held != nullptr;
       held = held->next_lost) {
    if (held->holder.get() == &holder) return true;
  }
  return false;
}

void Keeper::check_clock() {
  const Guard guard(mutex_);
  const dynamodb::ServiceClock clock = client_.clock();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    Held& held = ends_.at(i);
    held.lease.apply(clock);
    publish(held, held.lease.claim_end());
  }
  // An alarm that is set moves a lease: to the front, for no claim has become
  // longer, and so past none that has yet to have its own.
  for (std::size_t i = 0; i < ends_.size(); ++i) set_alarm(ends_.at(i));
}

// --- Under the mutex ---------------------------------------------------------

Errands Keeper::take_back(Held& held) {
  Errands errand;
  if (held.given_back) return errand;
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
  errand.swap(held.release);
  return errand;
}

// Without threads nothing can be said; at exit its mutex's destructor may say
// it yet.
void Keeper::close(Held& held, const std::shared_ptr<Closing>& closing,
                   std::size_t place, bool threads) {
  Result& result = closing->locks[place].result;
  fail(result, threads ? "not released in time" : kNoThread);
  if (stopping_) return;
  Errands one = take_back(held);
  const bool lost = held.lost != Verdict::again;
  if (lost) end(held, result);
  if (!threads) return;
  Errand& errand = *one.front();
  const BootTime now = BootClock::now();
  errand.deadline = now + held.holder->ttl;
  if (!lost) {
    errand.closing = closing;
    errand.closing_place = place;
    ++closing->open;
  }
  put(now, one);
}

// What is known of a lock that release_all() waits for.  `told`: by the last
// answer.
void Keeper::closed(const Errand& errand, Verdict lost, bool told,
                    bool for_good) {
  Closing* const closing = errand.closing.get();
  if (closing == nullptr || closing->locks.empty()) return;
  Result& result = closing->locks[errand.closing_place].result;
  if (told && errand.failing()) {
    sigv4::has_memory_for([&] { errand.answer.tell(result.answer); });
  }
  if (!for_good) return;
  if (lost != Verdict::again) {
    result.kind = Result::Kind::lost;
    result.loss = lost;
  } else if (told && !errand.failing()) {
    result.kind = Result::Kind::done;
  }
  --closing->open;
  changed_.notify_all();
}

// For one more release that a caller leaves.  If there are too many, the one
// that goes is of a lock that will be free soonest by itself, and sooner of one
// that may never have been had, or was released before.
Errands Keeper::make_room() {
  const auto worth = [](const Errand& errand) {
    return std::make_tuple(!errand.once_more, !errand.of_take, errand.deadline);
  };
  std::size_t kept = 0;
  Errands::iterator least;
  for (auto one = releases_.begin(); one != releases_.end(); ++one) {
    if ((*one)->closing || (*one)->pending) continue;
    if (kept++ == 0 || worth(**one) < worth(**least)) least = one;
  }
  Errands gone;
  if (kept >= kMostKept) gone.splice(gone.begin(), releases_, least);
  return gone;
}

void Keeper::put(BootTime when, Errands& errand) {
  errand.front()->due = when;
  releases_.splice(releases_.end(), errand);
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
  teller_waker_.wake();
}

// There is one plan for a lease.
void Keeper::plan(Held& held, Agenda& agenda, BootTime when) {
  unplan(held);
  held.renewal_on = &agenda;
  agenda.set(held, when);
  return &agenda == &questions_ ? wake_teller_at(when) : wake_sender_at(when);
}

// By itself, which is not for ever, and only if its holder is alive.
void Keeper::plan_renewal(Held& held, BootTime when) {
  const Holder& holder = *held.holder;
  const bool by_hand = holder.renew_after <= nanoseconds::zero();
  if (by_hand || held.held_too_long(when)) return;
  plan(held, holder.is_asked ? questions_ : renewals_, when);
}

void Keeper::unplan(Held& held) {
  if (held.renewal_on != nullptr) held.renewal_on->set(held, BootTime::max());
  held.errand.reset();
}

// For what is to be told of this lease.
void Keeper::set_alarm(Held& held) {
  const Holder& holder = *held.holder;
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
void Keeper::publish(const Held& held, BootTime claim_end) {
  held.holder->claim_end.store(claim_end, std::memory_order_release);
}

// Nothing is planned for it any more.
void Keeper::no_longer_held(Held& held, BootTime now) {
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
void Keeper::lose(Held& held, Verdict why) {
  no_longer_held(held, BootClock::now());
  publish(held, BootTime::min());
  tell(held, why);
}

// A loss is reported once, for the reason that was found first.
void Keeper::tell(Held& held, Verdict why) {
  if (held.lost != Verdict::again) return;
  held.lost = why;
  const Holder& holder = *held.holder;
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
void Keeper::end(const Held& held, Result& result) const {
  const bool lost = held.lost != Verdict::again;
  result.kind = lost ? Result::Kind::lost : Result::Kind::not_held;
  if (lost) result.loss = held.lost;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
