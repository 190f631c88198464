// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One call of lock() is an Acquisition: it waits for its turn among the threads
// of the process, then asks DynamoDB until the lock is ours or its time is up.
#include "mutex.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "../../sigv4/backoff.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/waiting.hpp"
#include "../dynamodb/ask.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;

BootTime add_saturating(BootTime now, nanoseconds by) {
  return by < BootTime::max() - now ? now + by : BootTime::max();
}

// --- Taking the lock ---------------------------------------------------------

class Mutex::Acquisition {
 public:
  // REQUIRES: no other wait uses the waker.
  Acquisition(Mutex& mutex, const WaitLimit& limit, Cancel* cancel,
              sigv4::Waker& waker, Result& result);
  // The caller's clock, or an allocation, may throw.  Nobody would unlock what
  // was taken or handed over by then.
  ~Acquisition() {
    if (!attempt_.empty()) leave_nothing_behind();
    if (queued_ && leave_queue()) mutex_.release();
  }
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  // Returns false if the call has ended without the turn.
  bool wait_for_turn();
  void begin();
  void take();

 private:
  BootTime end() const {
    if (once_ || limit_.left == nullptr) return end_;
    return add_saturating(BootClock::now(), limit_.time_left());
  }
  bool time_is_up() const {
    const BootTime at = end();  // First, because it may read the clock itself.
    return BootClock::now() >= at;
  }
  // These are true if the call ends.
  bool ended();
  bool out_of_patience();
  bool leave_queue();
  // In the past once the outage has been reported; BootTime::max() while
  // nothing fails.  REQUIRES: the mutex is held.
  BootTime patience_ends() const {
    return mutex_.outages_reported_ != outages_at_start_
               ? BootTime()
               : add_saturating(mutex_.outage_.since, settings_.patience);
  }
  // A waiter in line sleeps until its deadline, or until its patience ends;
  // while nothing fails, until receive() wakes it.
  BootTime next_look() const {
    if (!limit_.forever()) return end();
    const Guard guard(mutex_.mutex_);
    return patience_ends();
  }
  void add_first_lease();
  BootTime receive(const Answer& answer, BootTime begun);
  void warn_of_outage(const Answer& answer, BootTime next,
                      BootTime retry_until);
  bool pause(bool failing);
  void judge();
  void explain_wrong_key();
  void become_holder();
  void leave_nothing_behind();

  Mutex& mutex_;
  const MutexSettings& settings_;
  const WaitLimit& limit_;
  Result& result_;
  const bool once_;
  bool first_lease_pending_;  // See WaitLimit::past_lease.
  BootTime end_;              // Unless the caller's clock decides.
  sigv4::Waker& waker_;
  Queue::Waiter waiter_;
  int outages_at_start_ = 0;  // Mutex::outages_reported_ when the call began.

  OneAttempt attempt_;  // None once it is clear what became of it.
  sigv4::Backoff polls_;
  bool queued_ = false;  // In line, or has the turn and is not the holder yet.
  bool asked_ = false;   // It has had the turn, and has asked DynamoDB.
  bool busy_ = false;    // The lock was another's when last seen.
};

namespace {

// How long a call may wait.  The caller's clock, or a lease that must end
// first, may prolong it.
nanoseconds longest_wait(const MutexSettings& settings, const WaitLimit& limit,
                         bool once) {
  const nanoseconds request = settings.request_timeout;
  if (once) {
    const bool looks_first =
        !settings.client.table_key_is_right() ||
        !knows_the_time(settings.client.clock(), BootClock::now());
    return looks_first ? 2 * request : request;
  }
  return limit.past_lease ? std::max(request, limit.within) : limit.within;
}

// What is stored once these changes are made.
dynamodb::Item applied(const dynamodb::Item& to, const ChangesPtr& changes) {
  dynamodb::Item item;
  for (const dynamodb::Attribute& old : to) {
    bool stays = dynamodb::find(changes->set, old.name) == nullptr;
    for (const std::string& name : changes->remove) {
      stays = stays && name != old.name;
    }
    if (stays) item.push_back(old);
  }
  for (const dynamodb::Attribute& one : changes->set) item.push_back(one);
  return item;
}

}  // namespace

Mutex::Acquisition::Acquisition(Mutex& mutex, const WaitLimit& limit,
                                Cancel* cancel, sigv4::Waker& waker,
                                Result& result)
    : mutex_(mutex),
      settings_(mutex.settings()),
      limit_(limit),
      result_(result),
      once_(!limit.past_lease && limit.time_left() <= nanoseconds::zero()),
      first_lease_pending_(limit.past_lease),
      end_(add_saturating(BootClock::now(),
                          longest_wait(settings_, limit, once_))),
      waker_(waker),
      waiter_(waker, cancel) {}

bool Mutex::Acquisition::wait_for_turn() {
  {
    const Guard guard(mutex_.mutex_);
    // Whoever is to unlock may wait for a callback that comes after this one.
    const bool holds_up_callbacks =
        limit_.forever() && mutex_.table_.renewer->is_notifier_thread();
    const bool waits = !once_ && !holds_up_callbacks;
    const Queue::Entry entry = mutex_.queue_.enter(waiter_, waits);
    if (entry == Queue::Entry::refused) {
      result_.verdict = once_                ? Verdict::busy
                        : holds_up_callbacks ? Verdict::deadlock_of_callback
                                             : Verdict::cancelled;
      return false;
    }
    queued_ = true;
    busy_ = entry == Queue::Entry::line;
    mutex_.begin_to_wait(!busy_);
    outages_at_start_ = mutex_.outages_reported_;
    if (!busy_) return true;
  }
  for (;;) {
    sigv4::wait_until(next_look(), &waker_);
    waker_.clear();  // Before looking for what has woken it.
    bool has_turn, has_lock;
    {
      const Guard guard(mutex_.mutex_);
      has_turn = waiter_.has_turn();
      has_lock = waiter_.has_lock();
      if (has_turn) busy_ = mutex_.found_held_;
    }
    if (has_turn) waker_.clear();  // The wake for the turn has come by now.
    const bool over = has_lock || ended() || out_of_patience();
    const bool late = !over && time_is_up();
    if (!over && !late) {
      if (has_turn) return true;
      continue;
    }
    if (late) result_.verdict = Verdict::busy;
    leave_queue();
    return false;
  }
}

// True if the lock was handed over to this call.  Then it has succeeded,
// whatever else may have ended it, unless the mutex is being destroyed, which
// gives the lock back.
bool Mutex::Acquisition::leave_queue() {
  const Guard guard(mutex_.mutex_);
  queued_ = false;
  // After an error it is not known whether another host still holds the lock.
  if (asked_) mutex_.found_held_ = busy_ && result_.verdict != Verdict::again;
  const bool has_lock = waiter_.has_lock();
  const bool holds = has_lock && mutex_.queue_.become_holder(waiter_);
  if (!holds) mutex_.queue_.leave(waiter_);
  if (has_lock) result_.verdict = holds ? Verdict::ours : Verdict::cancelled;
  return holds;
}

// Whether another thread has ended the call.
bool Mutex::Acquisition::ended() {
  const Guard guard(mutex_.mutex_);
  const bool closed = mutex_.table_.waits.closed();
  const bool ended = closed || waiter_.cancelled();
  if (ended) result_.verdict = closed ? Verdict::closed : Verdict::cancelled;
  return ended;
}

// Errors that have lasted this long end every call that waits by now.
bool Mutex::Acquisition::out_of_patience() {
  if (!limit_.forever()) return false;
  const Guard guard(mutex_.mutex_);
  Outage& outage = mutex_.outage_;
  if (mutex_.outages_reported_ == outages_at_start_) {
    if (!mutex_.out_of_patience()) return false;
    outage.since = BootTime::max();
    outage.reported_until = BootClock::now();
    ++mutex_.outages_reported_;
  }
  outage.last->copy_fault_to(result_.answer);
  result_.verdict = Verdict::again;
  return true;
}

// Begins an attempt with a new lease.
void Mutex::Acquisition::begin() {
  const auto held = std::make_shared<HeldLease>(mutex_.settings_);
  attempt_.emplace_back(Call::take, *held, &mutex_.observation_);
}

void Mutex::Acquisition::take() {
  asked_ = true;
  begin();
  for (;;) {
    Attempt& attempt = attempt_.front();
    BootTime retry_until = BootTime::max();
    attempt.run(
        end(), &waker_,
        [&](const Answer& answer, BootTime begun) {
          return retry_until = receive(answer, begun);
        },
        [&](const Answer& answer, BootTime next) {
          warn_of_outage(answer, next, retry_until);
        });
    if (attempt.verdict() == Verdict::ours) return become_holder();
    // A condition that failed means busy, too, even if no time was left for a
    // look.
    busy_ = busy_ || attempt.verdict() == Verdict::busy ||
            attempt.answer().fault == Fault::condition_failed;
    if (attempt.held().lease.needs_new_uuid()) {
      leave_nothing_behind();
      begin();
      continue;
    }
    if (first_lease_pending_) add_first_lease();
    judge();
    const bool failing = limit_.left != nullptr &&
                         result_.verdict == Verdict::again &&
                         is_transient(attempt.answer().fault);
    const bool waits = !once_ && (result_.verdict == Verdict::busy || failing);
    if (!waits || !pause(failing)) break;
    // By the caller's clock there is time left: it is slow, or was set back.
    if (attempt.has_request()) {
      leave_nothing_behind();
      begin();
    }
  }
  if (result_.verdict == Verdict::again) {
    out_of_patience();  // Then all calls that wait have the same error.
    attempt_.front().answer().copy_fault_to(result_.answer);
    if (result_.answer.fault == Fault::wrong_key) explain_wrong_key();
  }
  leave_nothing_behind();
}

// Makes the answer say which key the table has, if the time suffices.
void Mutex::Acquisition::explain_wrong_key() {
  const nanoseconds time = settings_.request_timeout;
  const BootTime by = std::min(end(), BootClock::now() + time);
  const RowTarget& place = settings_.place;
  dynamodb::explain_wrong_key(
      {settings_.client, settings_.budget, by, &waker_, time}, place.table,
      place.key_name, place.sort_name, result_.answer);
  ended();  // Sets the verdict if another thread has ended the call meanwhile.
}

// The time to wait begins when the first record that was seen is stale.
void Mutex::Acquisition::add_first_lease() {
  if (!mutex_.observation_.seen()) return;
  first_lease_pending_ = false;
  const BootTime stale_at = mutex_.observation_.stale_at();
  if (stale_at == BootTime::max()) return;
  end_ = std::max(end_, add_saturating(stale_at, limit_.within));
}

// Returns until when transient errors are retried.
BootTime Mutex::Acquisition::receive(const Answer& answer, BootTime begun) {
  const Guard guard(mutex_.mutex_);
  Outage& outage = mutex_.outage_;
  // A request that was signed for a wrong time is signed again at once, so it
  // costs nobody any patience.
  const bool says_nothing =
      answer.fault == Fault::skewed_time || answer.fault == Fault::cancelled;
  if (is_transient(answer.fault) && !says_nothing) {
    // An error that there is no memory to remember could not be reported.
    const bool remembered = sigv4::try_with_memory([&] {
      if (!outage.last) outage.last = std::make_unique<Answer>();
      answer.copy_fault_to(*outage.last);
    });
    if (!remembered) return BootTime::max();
    if (outage.since == BootTime::max()) {
      outage.warned = false;
      mutex_.queue_.wake_line();
    }
    outage.since =
        std::min(outage.since, std::max(begun, outage.reported_until));
  } else if (answered(answer.fault)) {
    outage.since = BootTime::max();
  }
  return limit_.forever() ? patience_ends() : BootTime::max();
}

void Mutex::Acquisition::warn_of_outage(const Answer& answer, BootTime next,
                                        BootTime retry_until) {
  if (once_ || !is_transient(answer.fault) || !settings_.client.log()) return;
  const BootTime until = std::min(retry_until, end());
  const Guard guard(mutex_.mutex_);
  Outage& outage = mutex_.outage_;
  settings_.client.warn_of_failing(answer, outage.since, next, until,
                                   outage.warned);
}

// Waits until the next look, or until the record seen becomes stale.  Returns
// false if the call ends: nothing is left of its time, or another ended it.
bool Mutex::Acquisition::pause(bool failing) {
  const BootTime now = BootClock::now();
  BootTime until = add_saturating(
      now, polls_.next({settings_.first_poll, settings_.longest_poll, 0.5},
                       settings_.budget.random_share()));
  const BootTime stale_at = mutex_.observation_.stale_at();
  if (stale_at > now) until = std::min(until, stale_at);
  sigv4::wait_until(std::min(until, end()), &waker_);
  if (ended()) return false;
  const bool late = time_is_up();
  if (late && !failing) result_.verdict = Verdict::busy;
  return !late;
}

// What a run that did not win says of the lock.
void Mutex::Acquisition::judge() {
  const Attempt& attempt = attempt_.front();
  result_.verdict = attempt.verdict();
  if (result_.verdict == Verdict::bad_record) {
    result_.answer.message = attempt.held().lease.row().problem;
  }
  if (result_.verdict != Verdict::again || ended()) return;
  // Only the time was up, so an earlier answer counts.  In a call without a
  // deadline its patience has ended instead.
  const bool impatient =
      limit_.forever() && attempt.answer().fault == Fault::throttled;
  if (attempt.given_up() && busy_ && !impatient) {
    result_.verdict = Verdict::busy;
  }
}

void Mutex::Acquisition::become_holder() {
  const HeldLeasePtr held = attempt_.front().held().shared_from_this();
  bool kept;
  {
    const Guard guard(mutex_.mutex_);
    std::unique_ptr<const Row> row = held->lease.take_row();
    const std::int64_t token = held->lease.token();
    kept = mutex_.table_.renewer->add(*held);
    if (kept) {
      attempt_.clear();
      mutex_.held_ = held;
      if (settings_.place.policy.takes_by_update()) {
        mutex_.stored_row_ = std::move(row);
      }
      mutex_.locked_again_ = 0;
      mutex_.found_held_ = false;
      mutex_.token_.store(token, std::memory_order_release);
      queued_ = !mutex_.queue_.become_holder(waiter_);
      result_.verdict = Verdict::ours;
      if (!queued_) return;
    }
  }
  if (kept) {  // The mutex is being destroyed.
    mutex_.release();
    result_.verdict = Verdict::cancelled;
    return;
  }
  leave_nothing_behind();
  result_.verdict =
      mutex_.table_.waits.closed() ? Verdict::closed : Verdict::no_thread;
}

// A take that may have been applied, or may yet be, is released in the
// background; if no thread can be started, here.
void Mutex::Acquisition::leave_nothing_behind() {
  Attempt& attempt = attempt_.front();
  if (attempt.needs_release() && !mutex_.table_.renewer->finish(attempt_)) {
    if (attempt.has_request()) {
      attempt.finish(sigv4::Transport::timed_out);
      attempt.receive();
    }
    const BootTime give_up_at = BootClock::now() + settings_.request_timeout;
    attempt.release_instead(give_up_at);
    sigv4::try_with_memory([&] { attempt.run(give_up_at, nullptr); });
  }
  attempt_.clear();
}

// --- Mutex -------------------------------------------------------------------

// No std::make_shared(): the list of what is stopped at exit has a weak_ptr to
// it, which would keep its memory.
TableState::TableState(const dynamodb::ClientOptions& options)
    : renewer(new Renewer(options)),
      client(renewer->client()),
      budget(renewer->budget()) {}

void Mutex::cancel() {
  const Guard guard(mutex_);
  queue_.cancel();
}

void Mutex::end() {
  {
    const Guard guard(mutex_);
    queue_.end();
    locked_again_ = 0;
  }
  release();
  table_.renewer->silence(*settings_);
}

Result Mutex::lock(const WaitLimit& limit, Cancel* cancel) {
  Result result;
  if (try_lock_again(limit.forever(), result)) return result;
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) {
    result.verdict = Verdict::closed;
    return result;
  }
  Acquisition call(*this, limit, cancel, *wait.waker(), result);
  if (call.wait_for_turn()) call.take();
  return result;
}

// Returns true if this thread has the lock.  Then it locks it once more, or
// would wait for itself.
bool Mutex::try_lock_again(bool forever, Result& result) {
  const Guard guard(mutex_);
  if (!queue_.held_by_this_thread()) return false;
  if (!settings_->recursive) {
    result.verdict = Verdict::deadlock;
    return forever;
  }
  result.verdict = Verdict::ours;
  // The claim seems to be over if this thread stalls between the two readings
  // and the lease is renewed meanwhile.  The lease itself decides.
  if (BootClock::now() >= claim_end()) {
    result = table_.renewer->state_of(*held_);
  }
  if (result.verdict == Verdict::ours) ++locked_again_;
  return true;
}

bool Mutex::out_of_patience() const {
  return BootClock::now() >= add_saturating(outage_.since, settings_->patience);
}

// Errors from before anyone waited do not count.
void Mutex::begin_to_wait(bool has_turn) {
  const bool over = out_of_patience();
  if (over) {
    ++outages_reported_;  // Earlier waiters learn of it when they look.
    outage_.reported_until = BootClock::now();
  }
  if (has_turn || over) outage_.since = BootTime::max();
}

HeldLeasePtr Mutex::held() const {
  const Guard guard(mutex_);
  return held_;
}

HeldLeasePtr Mutex::held_for_writes() const {
  const Guard guard(mutex_);
  if (held_ != nullptr) held_->bound_to_holder = true;
  return held_;
}

dynamodb::Item Mutex::stored() const {
  const Guard guard(mutex_);
  return held_ != nullptr ? stored_item() : dynamodb::Item();
}

// The answer to a PutItem does not include the row.
const dynamodb::Item& Mutex::stored_item() const {
  return stored_row_ != nullptr ? stored_row_->others
                                : settings_->place.attributes;
}

std::shared_ptr<void> Mutex::loss_signal(std::shared_ptr<void> (*make)(),
                                         void (*signal)(void*)) {
  const HeldLeasePtr held = this->held();
  return held == nullptr ? nullptr
                         : table_.renewer->loss_signal(*held, make, signal);
}

Result Mutex::state() const {
  Result none;
  none.verdict = Verdict::not_held;
  const HeldLeasePtr held = this->held();
  return held == nullptr ? none : table_.renewer->state_of(*held);
}

Result Mutex::renew(const ChangesPtr& changes) {
  Result result;
  const Waits::One wait(table_.waits);
  const HeldLeasePtr held =
      changes != nullptr ? held_for_writes() : this->held();
  if (wait.waker() == nullptr || held == nullptr) {
    result.verdict =
        wait.waker() == nullptr ? Verdict::closed : Verdict::not_held;
    return result;
  }
  const nanoseconds patience =
      std::max<nanoseconds>(settings_->patience, settings_->request_timeout);
  result = table_.renewer->renew(*held, changes,
                                 add_saturating(BootClock::now(), patience),
                                 *wait.waker());
  if (result.verdict == Verdict::ours) {
    const bool remembered = sigv4::try_with_memory([&] {
      const Guard guard(mutex_);
      if (!changes || held != held_) return;
      auto row = std::make_unique<Row>();
      row->others = applied(stored_item(), changes);
      stored_row_ = std::move(row);
    });
    table_.renewer->resume_renewals(*held);
    if (!remembered) sigv4::no_memory();
  }
  const bool undone =
      result.verdict == Verdict::again || result.verdict == Verdict::not_held;
  if (undone && table_.waits.closed()) result.verdict = Verdict::closed;
  return result;
}

// In one critical section, so that no other call can get the lock in between,
// and one of the two threads learns of a loss.
bool Mutex::hand_over(Signal& signal) {
  Queue::Waiter* const heir = queue_.heir();
  if (heir == nullptr || held_ == nullptr || held_->bound_to_holder)
    return false;
  if (!table_.renewer->hand_over(*held_, signal)) return false;
  queue_.hand_over(*heir);
  return true;
}

Result Mutex::release() {
  Result result;
  release_unless_inner(nullptr, result);
  return result;
}

Result Mutex::release(const ChangesPtr& changes) {
  Result result;
  if (release_unless_inner(changes, result)) return result;
  // An inner level is given up once its changes are stored.  If another thread
  // unlocks meanwhile, it is the last level by then.
  result = renew(changes);
  return result.verdict == Verdict::ours ? release() : result;
}

// Does nothing and returns false if an inner level is to store changes.  Needs
// no memory: the request is repeated, and in the end left to the sender.
bool Mutex::release_unless_inner(const ChangesPtr& changes, Result& result) {
  Signal dropped;  // Destroyed without the mutex.
  HeldLeasePtr held;
  {
    // In one critical section, because a call of lock() decides by all of it.
    const Guard guard(mutex_);
    if (queue_.handed_over()) {  // That thread has not left lock() yet.
      result.verdict = Verdict::not_held;
      return true;
    }
    result.verdict = Verdict::released;
    if (locked_again_ > 0) {
      if (changes != nullptr) return false;
      --locked_again_;
      return true;
    }
    if (hand_over(dropped)) return true;
    held.swap(held_);
    // From now on each thread that locks it waits, even the one that had it.
    if (held != nullptr) queue_.let_go();
    stored_row_.reset();
    token_.store(0, std::memory_order_release);
  }
  result.verdict = Verdict::not_held;
  if (held == nullptr) return true;
  Result end;
  OneAttempt attempt = table_.renewer->begin_release(*held, end);
  const bool lost = is_loss(end.verdict);
  // After other losses the row is known not to be ours.
  const bool may_be_ours = !lost || end.verdict == Verdict::expired;
  if (!attempt.empty() && may_be_ours) {
    held->lease.carry(changes);
    send_release(attempt, result);
  }
  if (lost) result = std::move(end);
  const Guard guard(mutex_);
  queue_.pass();
  return true;
}

void Mutex::send_release(OneAttempt& one, Result& result) {
  Attempt& attempt = one.front();
  const BootTime deadline = BootClock::now() + settings_->request_timeout;
  const bool had_memory =
      sigv4::try_with_memory([&] { attempt.run(deadline, nullptr); });
  const Verdict verdict = attempt.verdict();
  const Fault fault = had_memory ? attempt.answer().fault : Fault::no_memory;
  result.verdict = verdict;
  if (verdict == Verdict::released) {
    // If it was refused because the lease was over, its changes are not stored.
    const bool stored = fault == Fault::none || attempt.outcome_unknown() ||
                        !attempt.held().lease.carries();
    if (!stored) result.verdict = Verdict::expired;
    return;
  }
  sigv4::try_with_memory(
      [&] { attempt.answer().copy_fault_to(result.answer); });
  result.answer.fault = fault;
  if (verdict != Verdict::again) {
    result.lost_at = BootClock::now();
    table_.renewer->report_loss(attempt.held(), verdict);
    if (fault == Fault::wrong_key) result.verdict = Verdict::again;
  } else if (attempt.outcome_unknown() || attempt.given_up() ||
             is_transient(fault)) {
    table_.renewer->finish(one);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
