// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One call of lock() is an Acquisition: it waits for its turn among the threads
// of the process, then asks DynamoDB until the lock is ours or its time is up.
#include "mutex.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "../../sigv4/backoff.hpp"
#include "../../sigv4/memory.hpp"
#include "../dynamodb/ask.hpp"
#include "requests.hpp"
#include "row_format.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;

// --- Taking the lock ---------------------------------------------------------

class Mutex::Acquisition {
 public:
  // REQUIRES: no other wait uses the waker.
  Acquisition(Mutex& mutex, nanoseconds time, const std::atomic<bool>* stopped,
              sigv4::CallWaker& waker, Result& result);
  // If memory runs out, take() leaves a Hold behind, which may get the lock.
  ~Acquisition() {
    leave_nothing_behind();
    if (queued_) leave_queue();
  }
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  // Returns false if the call has ended without the turn.
  bool wait_for_turn();
  // The same, if the turn is left to other hosts.
  bool wait_for_others();
  void take();

 private:
  bool time_is_up() const { return BootClock::now() >= end_; }
  // These are true if the call ends.
  bool ended();
  bool out_of_patience();
  void leave_queue();
  // BootTime::max() while nothing fails, or if the call has a deadline.
  // REQUIRES: the mutex is held.
  BootTime patience_ends() const {
    const std::optional<BootTime> since = mutex_.outage_.since;
    if (!forever_ || !since) return BootTime::max();
    return add_saturating(std::max(*since, begun_), settings_.patience);
  }
  // A waiter in line sleeps until its deadline, or until its patience ends;
  // while nothing fails, until receive() wakes it.
  BootTime next_look() const {
    const Guard guard(mutex_.mutex_);
    return std::min(end_, patience_ends());
  }
  void ask();
  void end_unsent(Fault why);
  void end_late(BootTime retry_until);
  void tell();
  BootTime note_outage(BootTime begun);
  void warn_of_outage(BootTime retry_until);
  bool pause();
  void say_that_it_waits();
  void explain_wrong_key();
  void become_holder();
  void leave_nothing_behind();

  Mutex& mutex_;
  const MutexSettings& settings_;
  Result& result_;
  const bool once_;
  const bool forever_;
  const BootTime begun_ = BootClock::now();
  const BootTime end_;
  sigv4::CallWaker& waker_;
  Queue::Waiter waiter_;

  HoldPtr hold_;  // Null once it is the mutex's or the sender's.
  sigv4::Backoff polls_;
  MissedTurns missed_turns_;
  bool queued_ = false;  // In line, or has the turn and is not the holder yet.
  bool asked_ = false;   // It has had the turn, and has asked DynamoDB.
  bool busy_ = false;    // The lock was another's when last seen.
  // The time is up, or the call was woken, and no request has failed.
  bool given_up_ = false;
  bool has_new_uuid_ = false;  // See Lease::needs_new_uuid().
};

namespace {

// How many holders a waiter tells that it waits, at most, before it pauses.
constexpr int kHoldersTold = 3;

// How long a call may take that tries only once.
nanoseconds time_of_one_try(const MutexSettings& settings) {
  const nanoseconds request = settings.request_timeout;
  const bool looks_first =
      !settings.client.table_key_is_right() ||
      !knows_the_time(settings.client.clock(), BootClock::now());
  return looks_first ? 2 * request : request;
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

Mutex::Acquisition::Acquisition(Mutex& mutex, nanoseconds time,
                                const std::atomic<bool>* stopped,
                                sigv4::CallWaker& waker, Result& result)
    : mutex_(mutex),
      settings_(mutex.settings()),
      result_(result),
      once_(time <= nanoseconds::zero()),
      forever_(time == nanoseconds::max()),
      end_(add_saturating(begun_, once_ ? time_of_one_try(settings_) : time)),
      waker_(waker),
      waiter_(waker, stopped) {}

bool Mutex::Acquisition::wait_for_turn() {
  {
    const Guard guard(mutex_.mutex_);
    // Waiting for ever on the thread that runs callbacks may deadlock.
    const bool holds_up_callbacks =
        forever_ && mutex_.table_.keeper->is_notifier_thread();
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
    if (!busy_) {
      mutex_.outage_.since.reset();  // Nobody was waiting.
      return true;
    }
  }
  for (;;) {
    waker_.wait_until(next_look());
    waker_.clear();  // Before looking for what has woken it.
    bool has_turn;
    {
      const Guard guard(mutex_.mutex_);
      has_turn = waiter_.has_turn();
      if (has_turn) busy_ = mutex_.found_held_;
    }
    if (has_turn) waker_.clear();  // The wake for the turn has come by now.
    const bool over = ended() || out_of_patience();
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

bool Mutex::Acquisition::wait_for_others() {
  const BootTime until =
      mutex_.table_.turns_of_others.left_until(settings_.place);
  while (BootClock::now() < until) {
    busy_ = true;
    if (!once_) waker_.wait_until(std::min(until, end_));
    waker_.clear();  // Before looking for what has woken it.
    if (ended()) return false;
    if (!once_ && !time_is_up()) continue;
    result_.verdict = Verdict::busy;
    return false;
  }
  return true;
}

void Mutex::Acquisition::leave_queue() {
  const Guard guard(mutex_.mutex_);
  queued_ = false;
  // After an error it is not known whether another host still holds the lock.
  if (asked_) mutex_.found_held_ = busy_ && result_.verdict != Verdict::again;
  mutex_.queue_.leave(waiter_);
}

// Whether another thread has ended the call.
bool Mutex::Acquisition::ended() {
  const Guard guard(mutex_.mutex_);
  const bool closed = mutex_.table_.is_closed();
  const bool ended = closed || waiter_.cancelled();
  if (ended) result_.verdict = closed ? Verdict::closed : Verdict::cancelled;
  return ended;
}

bool Mutex::Acquisition::out_of_patience() {
  const Guard guard(mutex_.mutex_);
  if (BootClock::now() < patience_ends()) return false;
  mutex_.outage_.last->copy_fault_to(result_.answer);
  result_.verdict = Verdict::again;
  return true;
}

void Mutex::Acquisition::take() {
  asked_ = true;
  for (;;) {
    if (hold_ == nullptr) {
      hold_ = mutex_.table_.keeper->make(mutex_.settings_);
    }
    ask();
    if (result_.verdict == Verdict::ours) return become_holder();
    // A condition that failed means busy, too, even if no time was left for a
    // look.
    busy_ = busy_ || result_.verdict == Verdict::busy ||
            result_.answer.fault == Fault::condition_failed;
    if (hold_ != nullptr && hold_->lease.needs_new_uuid()) {
      leave_nothing_behind();
      // Only once without a pause, whatever an engine says.
      if (std::exchange(has_new_uuid_, true) && !pause()) break;
      continue;
    }
    if (result_.verdict == Verdict::busy && !once_) say_that_it_waits();
    const bool may_be_busy = result_.verdict == Verdict::again && !ended();
    if (may_be_busy && given_up_ && busy_) result_.verdict = Verdict::busy;
    if (once_ || result_.verdict != Verdict::busy || !pause()) break;
  }
  if (result_.verdict == Verdict::bad_record) {
    result_.answer.message = hold_->lease.row().problem;
  } else if (result_.verdict == Verdict::again &&
             result_.answer.fault == Fault::wrong_key) {
    explain_wrong_key();
  }
  leave_nothing_behind();
}

// Sends what the lease says and retries after transient errors, until there is
// a verdict other than `again` or a final fault, until the time is up, or until
// the call is woken.  Sets the result: its answer says why nothing is decided.
void Mutex::Acquisition::ask() {
  Keeper& keeper = *mutex_.table_.keeper;
  given_up_ = false;
  hold_->until = end_;
  hold_->begin_series();
  for (;;) {
    Wait wait;
    // Keys come before the stamp, because the lease counts from the stamp.
    const bool has_keys =
        settings_.client.has_keys(wait.begun) ||
        settings_.client.await_keys(
            std::min(end_, wait.begun + settings_.request_timeout), waker_);
    if (waker_.woken()) return end_unsent(Fault::cancelled);
    // Without keys a request is begun even so: its answer says what is missing.
    if (has_keys && time_is_up()) return end_unsent(Fault::timed_out);
    const bool failed = hold_->failing();
    keeper.ask(*hold_, wait, end_, waker_);
    given_up_ = wait.end != Wait::End::answered && !failed;
    if (wait.end == Wait::End::left) {
      result_ = std::move(wait.result);
      hold_ = nullptr;
      return;
    }
    if (wait.end == Wait::End::unsent) {
      return end_unsent(keeper.is_stopping() ? Fault::cancelled
                                             : Fault::timed_out);
    }
    if (wait.end == Wait::End::timed_out) return tell();
    const BootTime retry_until = note_outage(wait.begun);
    if (hold_->verdict != Verdict::again) return tell();
    const Hold::Next next = hold_->plan_next(retry_until);
    if (next == Hold::Next::never) return tell();
    if (next == Hold::Next::too_late) return end_late(retry_until);
    warn_of_outage(retry_until);
    waker_.wait_until(hold_->due);
  }
}

// No other request is sent.  If an earlier one failed, that is the reason, and
// not the time.
void Mutex::Acquisition::end_unsent(Fault why) {
  given_up_ = !hold_->failing();
  if (why == Fault::cancelled) {
    hold_->fail(why, "cancelled before another request was sent");
  } else if (given_up_) {
    hold_->fail(why, "the deadline has passed");
  } else if (hold_->answer.fault == Fault::skewed_time) {
    // The signature was refused for its time, which says nothing of the keys.
    hold_->fail(Fault::timed_out, dynamodb::kNoTimeToSignAgain);
  }
  tell();
}

// No time is left for another request.  Waits for the rest of it.
void Mutex::Acquisition::end_late(BootTime retry_until) {
  const bool failed = hold_->failing();
  waker_.wait_until(failed ? std::min(end_, retry_until) : end_);
  given_up_ = !failed;
  // A failed condition says that the lock is busy.  An answered look does not
  // say why the call fails.
  if (failed || hold_->answer.fault == Fault::none) {
    return end_unsent(Fault::timed_out);
  }
  tell();
}

void Mutex::Acquisition::tell() {
  result_.verdict = hold_->verdict;
  result_.answer = std::move(hold_->answer);
}

// Makes the answer say which key the table has, if the time suffices.
void Mutex::Acquisition::explain_wrong_key() {
  const nanoseconds time = settings_.request_timeout;
  const BootTime by = std::min(end_, BootClock::now() + time);
  const RowTarget& place = settings_.place;
  dynamodb::explain_wrong_key({*mutex_.table_.keeper, settings_.client,
                               settings_.budget, by, &waker_, time},
                              place.table, place.key_name, place.sort_name,
                              result_.answer);
  ended();  // Sets the verdict if another thread has ended the call meanwhile.
}

// Returns until when transient errors are retried.  `begun`: when the last
// request was begun.
BootTime Mutex::Acquisition::note_outage(BootTime begun) {
  const Answer& answer = hold_->answer;
  const Guard guard(mutex_.mutex_);
  Outage& outage = mutex_.outage_;
  // A request that was signed for a wrong time is signed again at once, so it
  // costs nobody any patience.
  const bool says_nothing =
      answer.fault == Fault::skewed_time || answer.fault == Fault::cancelled;
  if (is_transient(answer.fault) && !says_nothing) {
    if (!outage.last) outage.last = std::make_unique<Answer>();
    answer.copy_fault_to(*outage.last);
    if (!outage.since) {
      outage.since = begun;
      outage.warned = false;
      mutex_.queue_.wake_line();
    }
  } else if (answered(answer.fault)) {
    outage.since.reset();
  }
  return patience_ends();
}

void Mutex::Acquisition::warn_of_outage(BootTime retry_until) {
  const Answer& answer = hold_->answer;
  if (once_ || !is_transient(answer.fault) || !settings_.client.log()) return;
  const Guard guard(mutex_.mutex_);
  Outage& outage = mutex_.outage_;
  if (!outage.since) return;
  settings_.client.warn_of_failing(answer, *outage.since, hold_->due,
                                   std::min(retry_until, end_), outage.warned);
}

// Waits until the next look, or until the record seen becomes stale.  Returns
// false if the call ends: nothing is left of its time, or another ended it.
bool Mutex::Acquisition::pause() {
  const BootTime now = BootClock::now();
  const nanoseconds longest =
      missed_turns_.longest_pause(settings_.longest_poll);
  BootTime until =
      add_saturating(now, polls_.next({settings_.first_poll, longest, 0.5},
                                      settings_.budget.random_share()));
  const BootTime stale_at = mutex_.table_.keeper->stale_at(settings_);
  if (stale_at > now) until = std::min(until, stale_at);
  waker_.wait_until(std::min(until, end_));
  return !ended() && !time_is_up();
}

// Says in the row that a host waits, if the lock has gone from one holder to
// another since the last look.  If it has gone to the next one meanwhile, tells
// that one: a holder may have the lock for less than a round trip.  Errors do
// not matter, because the call goes on in any case.
void Mutex::Acquisition::say_that_it_waits() {
  const RowTarget& place = settings_.place;
  if (*place.format->expressions(place.policy).wait == '\0') return;
  std::unique_ptr<const Row> row = hold_->lease.take_row();
  for (int i = 0; i < kHoldersTold; ++i) {
    if (row == nullptr || !missed_turns_.misses(*row)) return;
    polls_.reset();  // Or hosts that begin to wait would get in first.
    Request request;
    request.verb = Request::Verb::wait;
    request.seen = {row->uuid, row->expires};
    sigv4::Text body;
    write_request(place, request, body);
    const BootTime within =
        add_saturating(BootClock::now(), settings_.request_timeout);
    Answer answer = mutex_.table_.keeper->carry(
        {action_of(request.verb, place.policy), body.take(),
         std::min(within, end_), nullptr, wanted_of(*place.format, false)},
        waker_);
    if (answer.fault != Fault::condition_failed) return;
    row = std::move(reply_to(request.verb, answer, *place.format).row);
  }
}

void Mutex::Acquisition::become_holder() {
  bool kept;
  {
    const Guard guard(mutex_.mutex_);
    std::unique_ptr<const Row> row = hold_->lease.take_row();
    const std::int64_t token = hold_->lease.token();
    kept = mutex_.table_.keeper->keep(*hold_);
    if (kept) {
      mutex_.held_ = std::move(hold_);
      if (settings_.place.policy.takes_by_update()) {
        mutex_.stored_row_ = std::move(row);
      }
      mutex_.found_held_ = false;
      mutex_.token_.store(token, std::memory_order_release);
      queued_ = !mutex_.queue_.become_holder(waiter_);
      result_.verdict = Verdict::ours;
      if (!queued_) return;
    }
  }
  if (kept) {  // The mutex is being destroyed.
    mutex_.release(nullptr);
    result_.verdict = Verdict::cancelled;
    return;
  }
  leave_nothing_behind();
  result_.verdict = Verdict::closed;
}

// A take that may have been applied, or may yet be, is released in the
// background.
void Mutex::Acquisition::leave_nothing_behind() {
  if (hold_ != nullptr) mutex_.table_.keeper->leave(*hold_);
  hold_ = nullptr;
}

// --- Mutex -------------------------------------------------------------------

// No std::make_shared(): the list of what is stopped at exit has a weak_ptr to
// it, which would keep its memory.
TableState::TableState(const dynamodb::ClientOptions& options)
    : keeper(new Keeper(options)),
      client(keeper->client()),
      budget(keeper->budget()) {}

void Mutex::cancel(const std::atomic<bool>* stopped) {
  const Guard guard(mutex_);
  queue_.cancel(stopped);
}

void Mutex::end() {
  {
    const Guard guard(mutex_);
    queue_.end();
  }
  release(nullptr);
  table_.keeper->silence(*settings_);
}

Result Mutex::lock(nanoseconds time, const std::atomic<bool>* stopped) {
  Result result;
  if (time == nanoseconds::max()) {
    const Guard guard(mutex_);
    if (queue_.held_by_this_thread()) {  // It would wait for itself.
      result.verdict = Verdict::deadlock;
      return result;
    }
  }
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) {
    result.verdict = Verdict::closed;
    return result;
  }
  if (!table_.keeper->start_threads()) {
    result.verdict =
        table_.keeper->is_stopping() ? Verdict::closed : Verdict::no_thread;
    return result;
  }
  Acquisition call(*this, time, stopped, *wait.waker(), result);
  if (call.wait_for_turn() && call.wait_for_others()) call.take();
  return result;
}

HoldPtr Mutex::held() const {
  const Guard guard(mutex_);
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

void Mutex::stop_renewing() {
  const HoldPtr held = this->held();
  if (held != nullptr) table_.keeper->stop_renewing(*held);
}

Result Mutex::state() const {
  Result none;
  none.verdict = Verdict::not_held;
  const HoldPtr held = this->held();
  return held == nullptr ? none : table_.keeper->state_of(*held);
}

Result Mutex::renew(const ChangesPtr& changes) {
  Result result;
  const HoldPtr held = this->held();
  if (held == nullptr) {
    result.verdict =
        table_.waits.closed() ? Verdict::closed : Verdict::not_held;
    return result;
  }
  const nanoseconds patience =
      std::max<nanoseconds>(settings_->patience, settings_->request_timeout);
  result = table_.keeper->renew(*held, changes,
                                add_saturating(BootClock::now(), patience));
  if (result.verdict == Verdict::ours && changes) {
    const Guard guard(mutex_);
    if (held == held_) {
      auto row = std::make_unique<Row>();
      row->others = applied(stored_item(), changes);
      stored_row_ = std::move(row);
    }
  }
  const bool undone =
      result.verdict == Verdict::again || result.verdict == Verdict::not_held;
  if (undone && table_.waits.closed()) result.verdict = Verdict::closed;
  return result;
}

// Needs no memory: the sender sends what was made when the lock was taken.
Result Mutex::release(const ChangesPtr& changes) {
  Result none;
  HoldPtr held;
  {
    // In one critical section, because a call of lock() decides by all of it.
    const Guard guard(mutex_);
    held.swap(held_);
    // From now on each thread that locks it waits, even the one that had it.
    if (held != nullptr) queue_.let_go();
    stored_row_.reset();
    token_.store(0, std::memory_order_release);
  }
  none.verdict = Verdict::not_held;
  if (held == nullptr) return none;
  Released released = table_.keeper->release(
      held, changes, BootClock::now() + settings_->request_timeout);
  if (released.host_waits) leave_next_turn();
  const Guard guard(mutex_);
  queue_.pass();
  return std::move(released.result);
}

// Waiters look every longest_poll, if not sooner.  The random part keeps those
// that leave their turns to each other from coming back together.
void Mutex::leave_next_turn() {
  const nanoseconds longest = settings_->longest_poll;
  const BootTime at_least = add_saturating(BootClock::now(), longest);
  table_.turns_of_others.leave(
      settings_->place,
      add_saturating(at_least, table_.budget.jitter(longest)));
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
