// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One call of lock() is an Acquisition: it waits for its turn among the threads
// of the process, then asks DynamoDB until the lock is ours or its time is up.
#include "mutex.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
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
              sigv4::CallWaker& waker);
  ~Acquisition();
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  Result run();

 private:
  // These return false, and set the result, if the call ends.
  bool wait_for_turn();
  bool wait_in_line();
  bool wait_for_others();

  Queue::Entry enter_queue();
  void take();
  void ask();
  bool await_next_ask();
  bool time_is_up() const { return BootClock::now() >= end_; }
  // These return true, and set the result, if the call ends.
  bool end_if_stopped();
  bool end_if_out_of_patience();

  BootTime patience_ends() const {
    return mutex_.table_.keeper->patience_ends(settings_, patient_since_);
  }
  bool pause();
  void say_that_it_waits();
  void explain();
  void explain_wrong_key();
  void note_if_held();
  bool become_holder();
  void drop_hold();

  Mutex& mutex_;
  const MutexSettings& settings_;
  Result result_;
  const bool tries_once_;
  const BootTime begun_ = BootClock::now();
  const BootTime end_;  // The constructor computes it from the two before.
  // Of a call without a deadline: begun_.
  const std::optional<BootTime> patient_since_;
  sigv4::CallWaker& waker_;
  Queue::Waiter waiter_;

  HoldPtr hold_;  // Null once it is the mutex's or the sender's.
  sigv4::Backoff polls_;
  MissedTurns missed_turns_;
  bool queued_ = false;  // In line, or has the turn and is not the holder yet.
  // The lock was another host's when it was last seen, or was left to others.
  bool busy_ = false;
  bool no_request_failed_ = false;  // See Wait.
  bool has_new_uuid_ = false;       // See Lease::needs_new_uuid().
};

namespace {

// Between two pauses, a waiter tells at most this many holders.
constexpr int kHoldersTold = 3;

// How long a call may take that tries only once.
nanoseconds time_of_one_try(const MutexSettings& settings) {
  const nanoseconds request = settings.request_timeout;
  const bool looks_first =
      settings.place.policy.looks_first ||
      !settings.client.table_key_is_right() ||
      !knows_the_time(settings.client.clock(), BootClock::now());
  return looks_first ? 2 * request : request;
}

// What is stored once these changes are made.
dynamodb::Item applied(const dynamodb::Item& to, const ChangesPtr& changes) {
  dynamodb::Item item;
  for (const dynamodb::Attribute& old : to) {
    const bool is_set = dynamodb::find(changes->set, old.name) != nullptr;
    const auto& removed = changes->remove;
    const bool is_removed =
        std::count(removed.begin(), removed.end(), old.name);
    if (!is_set && !is_removed) item.push_back(old);
  }
  for (const dynamodb::Attribute& one : changes->set) item.push_back(one);
  return item;
}

}  // namespace

Mutex::Acquisition::Acquisition(Mutex& mutex, nanoseconds time,
                                const std::atomic<bool>* stopped,
                                sigv4::CallWaker& waker)
    : mutex_(mutex),
      settings_(mutex.settings()),
      tries_once_(time <= nanoseconds::zero()),
      end_(add_saturating(begun_,
                          tries_once_ ? time_of_one_try(settings_) : time)),
      patient_since_(time == nanoseconds::max() ? std::optional(begun_)
                                                : std::nullopt),
      waker_(waker),
      waiter_(waker, stopped) {}

Mutex::Acquisition::~Acquisition() {
  drop_hold();
  if (!queued_) return;
  const Guard guard(mutex_.mutex_);
  mutex_.queue_.leave(waiter_);
}

Result Mutex::Acquisition::run() {
  if (wait_for_turn() && wait_for_others()) take();
  return std::move(result_);
}

bool Mutex::Acquisition::wait_for_turn() {
  const Queue::Entry entry = enter_queue();
  return entry == Queue::Entry::turn ||
         (entry == Queue::Entry::line && wait_in_line());
}

Queue::Entry Mutex::Acquisition::enter_queue() {
  const Guard guard(mutex_.mutex_);
  // The thread that runs callbacks must not wait for ever: the holder may need
  // a callback to release the lock.
  const bool holds_up_callbacks =
      patient_since_ && mutex_.table_.keeper->is_notifier_thread();
  const Queue::Entry entry =
      mutex_.queue_.enter(waiter_, !tries_once_ && !holds_up_callbacks);
  switch (entry) {
    case Queue::Entry::turn:
      queued_ = true;
      mutex_.table_.keeper->forget_outage(*mutex_.settings_);
      break;
    case Queue::Entry::line:
      queued_ = true;
      break;
    case Queue::Entry::busy:
      result_.verdict =
          tries_once_ ? Verdict::busy : Verdict::deadlock_of_callback;
      break;
    case Queue::Entry::ended:
      result_.verdict = Verdict::cancelled;
      break;
  }
  return entry;
}

bool Mutex::Acquisition::wait_in_line() {
  for (;;) {
    // The patience of a call ends only in an outage.  When one begins, the
    // thread that has the turn wakes the others.
    waker_.wait_until(std::min(end_, patience_ends()));
    bool has_turn;
    {
      const Guard guard(mutex_.mutex_);
      waker_.clear();  // Before looking for what has woken it.
      has_turn = mutex_.queue_.has_turn(waiter_);
      if (has_turn) busy_ = mutex_.found_held_;
    }
    if (end_if_stopped() || end_if_out_of_patience()) return false;
    if (time_is_up()) {
      result_.verdict = Verdict::busy;
      return false;
    }
    if (has_turn) return true;
  }
}

// Waits while this process leaves the lock to other hosts.
bool Mutex::Acquisition::wait_for_others() {
  const BootTime until =
      mutex_.table_.turns_of_others.left_until(settings_.place);
  if (BootClock::now() >= until) return true;
  busy_ = true;  // Also if no time is left to ask: another host wants the lock.
  if (!tries_once_) waker_.wait_until(std::min(until, end_));
  if (end_if_stopped()) return false;
  if (BootClock::now() >= until) return true;
  result_.verdict = Verdict::busy;
  return false;
}

bool Mutex::Acquisition::end_if_stopped() {
  const Guard guard(mutex_.mutex_);
  const bool closed = mutex_.table_.is_closed();
  const bool ends = closed || waiter_.cancelled();
  if (ends) result_.verdict = closed ? Verdict::closed : Verdict::cancelled;
  return ends;
}

bool Mutex::Acquisition::end_if_out_of_patience() {
  if (BootClock::now() < patience_ends()) return false;
  mutex_.table_.keeper->copy_last_failure(settings_, result_.answer);
  result_.verdict = Verdict::again;
  return true;
}

void Mutex::Acquisition::take() {
  do {
    ask();
  } while (await_next_ask());
  if (result_.verdict == Verdict::ours && become_holder()) return;
  explain();
  note_if_held();
}

// Asks for the lock until DynamoDB has answered, or until the call ends.
void Mutex::Acquisition::ask() {
  Keeper& keeper = *mutex_.table_.keeper;
  if (hold_ == nullptr) hold_ = keeper.make_hold(mutex_.settings_);
  Wait wait;
  wait.patient_since = patient_since_;
  wait.logs_outage = !tries_once_;
  keeper.take(hold_, wait, end_, waker_, [this] {
    const Guard guard(mutex_.mutex_);
    mutex_.queue_.wake_line();
  });
  result_ = std::move(wait.result);
  // A refused take shows that another has the lock, even if its answer has no
  // row.
  busy_ = busy_ || result_.verdict == Verdict::busy ||
          result_.answer.fault == Fault::condition_failed;
  no_request_failed_ = wait.no_request_failed;
}

// Returns false if the call ends.  Otherwise waits until it may ask again.
bool Mutex::Acquisition::await_next_ask() {
  if (result_.verdict == Verdict::ours) return false;
  if (hold_ != nullptr && hold_->lease.needs_new_uuid()) {
    drop_hold();
    // The first new uuid is used at once.  Others come after a pause, because a
    // server may show our uuid again and again.
    const bool is_first = !has_new_uuid_;
    has_new_uuid_ = true;
    return is_first || pause();
  }
  if (result_.verdict == Verdict::busy && !tries_once_) {
    say_that_it_waits();
    return pause();
  }
  return false;
}

// Why the call does not get the lock.
void Mutex::Acquisition::explain() {
  if (result_.verdict == Verdict::bad_record) {
    result_.answer.message = hold_->lease.row().problem;
  }
  if (result_.verdict != Verdict::again || end_if_stopped()) return;
  if (no_request_failed_ && busy_) {
    result_.verdict = Verdict::busy;  // The call's time was too short.
  } else if (result_.answer.fault == Fault::wrong_key) {
    explain_wrong_key();
  }
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
  end_if_stopped();  // That may have cut it short.
}

void Mutex::Acquisition::note_if_held() {
  const Guard guard(mutex_.mutex_);
  // Not after an error or a row that is no lock's: nobody may hold it any more.
  mutex_.found_held_ = busy_ && (result_.verdict == Verdict::busy ||
                                 result_.verdict == Verdict::cancelled);
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
  return !end_if_stopped() && !time_is_up();
}

// Writes into the row that a host waits, if the holder has changed since the
// last look.  If it changes again before that is written, tells the new holder:
// a holder may have the lock for less than a round trip.  Errors do not matter,
// because the call goes on in any case.
void Mutex::Acquisition::say_that_it_waits() {
  const RowTarget& place = settings_.place;
  const std::string_view expression =
      place.format->expressions(place.policy).wait;
  if (expression.empty()) return;  // Its rows do not say that a host waits.
  std::unique_ptr<const Row> row = hold_->lease.take_row();
  for (int i = 0; i < kHoldersTold; ++i) {
    if (row == nullptr || !missed_turns_.must_tell(*row)) return;
    // The pauses are short again.  Otherwise newcomers, which look more often,
    // would get in first.
    polls_.reset();
    Request request;
    request.verb = Request::Verb::wait;
    request.seen = {row->uuid, row->expires};
    sigv4::Text body;
    write_request(place, request, body);
    const BootTime by =
        add_saturating(BootClock::now(), settings_.request_timeout);
    Answer answer = mutex_.table_.keeper->carry(
        {action_of(request.verb, place.policy), body.take(), std::min(by, end_),
         nullptr, wanted_of(*place.format, false)},
        waker_);
    if (answer.fault != Fault::condition_failed) return;
    row = reply_to(request.verb, answer, *place.format).row;
  }
}

// Returns false, and sets the result, if the mutex or the table has ended.
bool Mutex::Acquisition::become_holder() {
  const Guard guard(mutex_.mutex_);
  if (mutex_.queue_.ended()) {
    result_.verdict = Verdict::cancelled;
    return false;
  }
  // After keep() the sender uses the lease.
  std::unique_ptr<const Row> row = hold_->lease.take_row();
  // Before keep(): a thread that sees the lock owned may ask for its token.
  mutex_.token_.store(hold_->lease.token(), std::memory_order_release);
  if (!mutex_.table_.keeper->keep(*hold_)) {
    mutex_.token_.store(0, std::memory_order_release);
    result_.verdict = Verdict::closed;
    return false;
  }
  mutex_.held_ = std::move(hold_);
  if (settings_.place.policy.takes_by_update()) {
    mutex_.stored_row_ = std::move(row);
  }
  mutex_.found_held_ = false;
  mutex_.queue_.become_holder();
  queued_ = false;
  return true;
}

// If a take may have been applied, or may yet be, the sender releases it.
void Mutex::Acquisition::drop_hold() {
  if (hold_ != nullptr) mutex_.table_.keeper->leave(*hold_);
  hold_ = nullptr;
}

// --- Mutex -------------------------------------------------------------------

// No std::make_shared(): see sigv4::register_for_exit().
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
  const Waits::One wait(table_.waits);
  if (!wait.is_registered()) return {Verdict::closed};
  if (time == nanoseconds::max()) {
    const Guard guard(mutex_);
    // It would wait for itself.
    if (queue_.held_by_this_thread()) return {Verdict::deadlock};
  }
  if (!table_.keeper->start_threads()) {
    const bool stopping = table_.keeper->is_stopping();
    return {stopping ? Verdict::closed : Verdict::no_thread};
  }
  return Acquisition(*this, time, stopped, wait.waker()).run();
}

HoldPtr Mutex::held() const {
  const Guard guard(mutex_);
  return held_;
}

dynamodb::Item Mutex::stored() const {
  const Guard guard(mutex_);
  return held_ != nullptr ? stored_item() : dynamodb::Item();
}

// After a take by PutItem the row has exactly the attributes that it wrote.
const dynamodb::Item& Mutex::stored_item() const {
  return stored_row_ != nullptr ? stored_row_->others
                                : settings_->place.attributes;
}

void Mutex::stop_renewing() {
  const HoldPtr held = this->held();
  if (held != nullptr) table_.keeper->stop_renewing(*held);
}

Result Mutex::state() const {
  const HoldPtr held = this->held();
  if (held == nullptr) return {Verdict::not_held};
  return table_.keeper->state_of(*held);
}

Result Mutex::renew(const ChangesPtr& changes) {
  const HoldPtr held = this->held();
  if (held == nullptr) {
    return {table_.waits.closed() ? Verdict::closed : Verdict::not_held};
  }
  const nanoseconds patience =
      std::max<nanoseconds>(settings_->patience, settings_->request_timeout);
  const BootTime deadline = add_saturating(BootClock::now(), patience);
  // One change at a time, so that stored_row_ changes in the same order as the
  // row.  The call before ends by its own deadline, which is about the same.
  std::unique_lock<sigv4::Mutex> one_at_a_time(changing_, std::defer_lock);
  std::unique_ptr<Row> changed_row;
  if (changes) {
    one_at_a_time.lock();
    changed_row = std::make_unique<Row>();
    const Guard guard(mutex_);
    changed_row->others = applied(stored_item(), changes);
  }
  Result result = table_.keeper->renew(*held, changes, deadline);
  if (result.verdict == Verdict::ours && changes) {
    const Guard guard(mutex_);
    if (held == held_) stored_row_ = std::move(changed_row);
  }
  const bool failed =
      result.verdict == Verdict::again || result.verdict == Verdict::not_held;
  if (failed && table_.waits.closed()) result.verdict = Verdict::closed;
  return result;
}

// Needs no memory: the sender sends what was made when the lock was taken.
Result Mutex::release(const ChangesPtr& changes) {
  HoldPtr held;
  {
    const Guard guard(mutex_);
    held.swap(held_);
    // If the thread that had it calls lock() now, that is no deadlock.
    queue_.begin_release();
    stored_row_.reset();
  }
  if (held == nullptr) return {Verdict::not_held};
  Released released = table_.keeper->release(
      held, changes, BootClock::now() + settings_->request_timeout);
  if (released.host_waits) leave_next_turn();
  const Guard guard(mutex_);
  token_.store(0, std::memory_order_release);
  queue_.end_release();
  return std::move(released.result);
}

// For one to two times longest_poll.  The random part keeps hosts that leave
// their turns to each other from coming back together.
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
