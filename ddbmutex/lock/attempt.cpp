// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One request after another: run() waits for keys and for answers; begin() and
// finish() are the parts that do not wait.
#include "attempt.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/http.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"
#include "requests.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using Verb = Request::Verb;

namespace {

// There can be no row: the table is gone, or its key is a different attribute.
// (In such a table PutItem writes an item of its own for each taker, which
// keeps nobody out.)
bool no_row_possible(Fault fault) {
  return fault == Fault::no_table || fault == Fault::wrong_key;
}

// Makes an answer for a request that got none, or was not sent.
void fail(Answer& answer, Fault why, const char* message) {
  answer = Answer();
  answer.fault = why;
  sigv4::try_with_memory([&] { answer.message = message; });
}

constexpr char kTimeIsUp[] = "the deadline has passed";

Attempt::Stage first_stage(Call call) {
  switch (call) {
    case Call::take:
      return Attempt::Stage::taking;
    case Call::renew:
      return Attempt::Stage::renewing;
    case Call::release:
      break;
  }
  return Attempt::Stage::releasing;
}

// Why no other request is sent; Fault::none if one is.
Fault why_stop(BootTime now, BootTime deadline, sigv4::Waker* waker) {
  if (waker != nullptr && waker->woken()) return Fault::cancelled;
  return now >= deadline ? Fault::timed_out : Fault::none;
}

}  // namespace

Reply reply_to(Verb verb, Answer& answer, const RowFormat& layout) {
  Reply reply;
  reply.received = BootClock::now();
  const bool done = answer.fault == Fault::none;
  const bool no_row = no_row_possible(answer.fault) && verb != Verb::take;
  if (done) {
    reply.outcome = Reply::Outcome::done;
  } else if (no_row || answer.fault == Fault::condition_failed) {
    reply.outcome = Reply::Outcome::refused;
  } else if (answer.outcome_unknown()) {
    reply.outcome = Reply::Outcome::unknown;
  }
  const bool has_item = answered(answer.fault) && answer.item;
  if (has_item || no_row || (done && verb == Verb::look)) {
    // If memory runs out, the row is unknown: a look follows.
    sigv4::try_with_memory([&] {
      reply.row.reset(has_item
                          ? new Row(read_row(std::move(*answer.item), layout))
                          : new Row);
    });
  }
  answer.item.reset();  // Nobody else reads it, and it may be large.
  return reply;
}

Attempt::Attempt(Call call, HeldLease& held, Observation* observation)
    : stage_(first_stage(call)),
      held_(held.shared_from_this()),
      settings_(*held.settings),
      observation_(observation != nullptr ? observation : &none_) {
  begin_anew();
}

Attempt::~Attempt() = default;

Call Attempt::call() const {
  switch (stage_) {
    case Stage::taking:
      return Call::take;
    case Stage::renewing:
      return Call::renew;
    default:
      return Call::release;
  }
}

bool Attempt::needs_release() const {
  return has_request() || outcome_unknown_ || held_->lease.row_is_ours();
}

// As if no request had been sent before.
void Attempt::begin_anew() { pace_.emplace(settings_.budget, call()); }

// A renewal is worth nothing once the lease has ended.
BootTime Attempt::end() const {
  return call() == Call::renew ? std::min(deadline_, held_->lease.claim_end())
                               : deadline_;
}

bool Attempt::stamp(BootTime now) {
  if (call() == Call::renew && now >= held_->lease.claim_end()) {
    verdict_ = Verdict::expired;
    return false;
  }
  if (call() == Call::take && !settings_.client.table_key_is_right()) {
    held_->lease.look_first();
  }
  const Request request =
      held_->lease.next(call(), now, pending_->clock(), *observation_);
  verb_ = request.verb;
  stamped_at_ = now;
  const bool written = sigv4::try_with_memory(
      [&] { write_request(settings_.place, request, pending_->body()); });
  if (!written) {
    unstamp();
    sigv4::no_memory();
  }
  end_at_ = end();
  timeout_at_ = std::min(now + settings_.request_timeout, end_at_);
  return true;
}

void Attempt::unstamp() {
  Reply unsent;
  unsent.received = stamped_at_;
  held_->lease.receive(std::move(unsent), settings_.client.clock(),
                       *observation_);
}

Attempt::Begun Attempt::begin(Stamper* stamper, BootTime now) {
  bool stamped = false;
  const bool had_memory = sigv4::try_with_memory([&] {
    pending_ = settings_.client.prepare(now);
    stamped = stamper != nullptr ? stamper->stamp(*this) : stamp(now);
    if (!stamped) return;
    if (call() == Call::take) {
      settings_.client.answer_if_table_key_is_wrong(*pending_);
    }
    // A refused renewal or release is answered with the whole row, which may be
    // somebody else's and large.  Only its record is needed.
    const bool others =
        call() == Call::take && settings_.place.policy.takes_by_update();
    settings_.client.begin(*pending_, action_of(verb_, settings_.place.policy),
                           stamped_at_, nullptr,
                           wanted_of(*settings_.place.format, others));
    pending_->exchange().connect_within(settings_.request_timeout);
  });
  if (had_memory && stamped) return Begun::yes;
  pending_.reset();
  if (!had_memory && stamped && stamper != nullptr) stamper->unstamp(*this);
  if (!had_memory && stamped && stamper == nullptr) unstamp();
  return had_memory ? Begun::too_late_or_unwanted : Begun::no_memory;
}

void Attempt::finish(sigv4::Transport why) {
  answer_ = settings_.client.finish(std::move(pending_), why);
}

void Attempt::conclude(sigv4::Transport why, SharedLease* shared) {
  finish(why);
  if (shared != nullptr) return shared->receive(*this);
  receive();
}

void Attempt::receive() {
  // While a take is released, outcome_unknown_ is about the take.  A release is
  // repeated until its own outcome is known.
  const bool releases_take =
      stage_ == Stage::releasing_take || stage_ == Stage::releasing_take_again;
  if (verb_ != Verb::look && !releases_take && answer_.outcome_unknown()) {
    outcome_unknown_ = true;
  }
  pace_->receive(answer_);
  const ServiceClock clock = settings_.client.clock();
  // The last step that may take time: nothing waits from here until the claim
  // is published.
  Reply reply = reply_to(verb_, answer_, *settings_.place.format);
  verdict_ = held_->lease.receive(std::move(reply), clock, *observation_);
  end_at_ = end();
  if (stage_ == Stage::awaiting_take) stage_ = Stage::releasing_take;
}

bool Attempt::plan_next(BootTime retry_until) {
  const BootTime now = BootClock::now();
  const BootTime end = failing() ? std::min(end_at_, retry_until) : end_at_;
  const auto delay = pace_->delay(answer_, std::max(end, BootTime{}) - now);
  if (!delay) {
    due_ = BootTime::max();
    return false;
  }
  due_ = now + *delay;
  return due_ < (*delay > std::chrono::nanoseconds::zero() ? end : end_at_);
}

void Attempt::release_instead(BootTime give_up_at) {
  if (stage_ == Stage::taking) {
    outcome_unknown_ = outcome_unknown_ || held_->lease.row_is_ours();
    stage_ = has_request() ? Stage::awaiting_take : Stage::releasing_take;
  }
  begin_anew();
  observation_ = &none_;
  deadline_ = give_up_at;
  end_at_ = deadline_;
  timeout_at_ =
      std::min(BootClock::now() + settings_.request_timeout, deadline_);
}

void Attempt::run(BootTime deadline, sigv4::Waker* waker, SharedLease* shared) {
  const auto always = [](const Answer&, BootTime) { return BootTime::max(); };
  const auto nothing = [](const Answer&, BootTime) {};
  run(deadline, waker, always, nothing, shared);
}

void Attempt::run(BootTime deadline, sigv4::Waker* waker,
                  RetryUntil retry_until_after, BeforePause before_pause,
                  SharedLease* shared) {
  begin_anew();
  if (call() == Call::take) {
    outcome_unknown_ = outcome_unknown_ || held_->lease.row_is_ours();
  }
  verdict_ = Verdict::again;
  answer_ = {};
  last_failures_.clear();
  deadline_ = end_at_ = deadline;
  for (;;) {
    const BootTime begun = BootClock::now();
    const bool has_keys = await_keys(begun, waker);
    const BootTime now = BootClock::now();
    const Fault why = why_stop(now, deadline, waker);
    // Without keys a request is begun even so: its answer says what is missing.
    const bool sends = why == Fault::none;
    if (!sends && (has_keys || why == Fault::cancelled)) return end_unsent(why);
    const bool failed = failing();
    if (!send(now, waker, shared)) return;
    sigv4::try_with_memory([this] { note_failure(); });
    if (given_up_) {
      given_up_ = !failed;
      return;
    }
    const BootTime retry_until = retry_until_after(answer_, begun);
    if (verdict_ != Verdict::again) return;
    if (!plan_next(retry_until)) return end_undecided(retry_until, waker);
    before_pause(answer_, due_);
    sigv4::wait_until(due_, waker);
  }
}

// Sends a request and awaits its answer.  Returns false if none is wanted.
bool Attempt::send(BootTime now, sigv4::Waker* waker, SharedLease* shared) {
  switch (begin(shared, now)) {
    case Begun::yes:
      await_answer(waker, shared);
      return true;
    case Begun::too_late_or_unwanted:
      return false;
    case Begun::no_memory:
      break;
  }
  verdict_ = Verdict::again;
  given_up_ = false;
  fail(answer_, Fault::no_memory, "");
  return true;
}

// Keys come before the stamp, because the lease counts from the stamp.
bool Attempt::await_keys(BootTime begun, sigv4::Waker* waker) {
  dynamodb::Client& client = settings_.client;
  bool has_keys = client.has_keys(begun);
  if (has_keys) return true;
  sigv4::try_with_memory([&] {
    has_keys = client.await_keys(
        std::min(deadline_, begun + settings_.request_timeout), waker);
  });
  return has_keys;
}

// If memory runs out while waiting, the outcome is unknown.
void Attempt::await_answer(sigv4::Waker* waker, SharedLease* shared) {
  const bool waited = sigv4::try_with_memory([&] {
    if (in_flight()) sigv4::drive(exchange(), timeout_at_, waker);
  });
  if (waited) return end_request(shared);
  given_up_ = false;
  conclude(sigv4::Transport::broken, shared);
}

// A take that was sent stays in flight when its caller gives up: only the
// answer says for certain whether there is something to release.
void Attempt::end_request(SharedLease* shared) {
  const bool ended = !in_flight();
  const BootTime now = ended ? BootTime::min() : BootClock::now();
  const bool late = now >= timeout_at_;
  given_up_ = !ended && (!late || now >= end_at_);
  const bool takes = stage_ == Stage::taking && verb_ != Verb::look;
  if (given_up_ && takes && exchange().sent()) {
    fail(answer_, late ? Fault::timed_out : Fault::cancelled, "no answer yet");
  } else {
    conclude(late ? sigv4::Transport::timed_out : sigv4::Transport::cancelled,
             shared);
  }
}

// If an earlier request failed, that is the reason, and not the time.
void Attempt::end_unsent(Fault why) {
  given_up_ = !failing();
  verdict_ = Verdict::again;
  if (why == Fault::cancelled) {
    fail(answer_, why, "cancelled before another request was sent");
  } else if (given_up_) {
    fail(answer_, why, kTimeIsUp);
  }
}

// A timeout or missing keys say little about the cause, so what a server or the
// system reported before goes with it.
void Attempt::note_failure() {
  if (!failing()) return last_failures_.clear();
  const bool says_little =
      answer_.fault == Fault::timed_out || answer_.fault == Fault::keys_awaited;
  if (!says_little) {
    last_failures_ = sigv4::join(
        {name_of(answer_.fault), sigv4::if_any(": ", answer_.message)});
  } else if (!last_failures_.empty()) {
    answer_.message = sigv4::join({sigv4::if_any("", answer_.message, "; "),
                                   "before that: ", last_failures_});
  }
}

// The fault is final, or no time is left for another request; a take waits for
// the rest of its time.
void Attempt::end_undecided(BootTime retry_until, sigv4::Waker* waker) {
  if (due_ == BootTime::max()) return;
  given_up_ = !failing();
  const BootTime end = given_up_ ? end_at_ : std::min(end_at_, retry_until);
  if (call() == Call::take) sigv4::wait_until(end, waker);
  if (answer_.fault == Fault::none) {  // A look, and no time to act on it.
    fail(answer_, Fault::timed_out, kTimeIsUp);
  } else if (answer_.fault == Fault::skewed_time) {
    // The signature was refused for its time, which says nothing of the keys.
    fail(answer_, Fault::timed_out,
         "the clock was wrong, and no time was left to sign again");
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
