// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One request: it is prepared, stamped, sent, finished and received.
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

}  // namespace

Reply reply_to(Verb verb, Answer& answer, const RowFormat& layout) {
  Reply reply;
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

void Attempt::prepare(BootTime now) {
  pending_ = settings_.client.prepare(now);
}

void Attempt::send() {
  dynamodb::Client& client = settings_.client;
  const RowPolicy& policy = settings_.place.policy;
  const bool takes = call() == Call::take;
  if (takes) client.answer_if_table_key_is_wrong(*pending_);
  // A refused renewal or release is answered with the whole row, which may be
  // somebody else's and large.  Only its record is needed.
  client.begin(
      *pending_, action_of(verb_, policy), stamped_at_, nullptr,
      wanted_of(*settings_.place.format, takes && policy.takes_by_update()));
  pending_->exchange().connect_within(settings_.request_timeout);
  // A process that stood still meanwhile sends no old stamp.
  pending_->exchange().send_by(timeout_at_);
}

void Attempt::finish(sigv4::Transport why) {
  answer_ = settings_.client.finish(std::move(pending_), why);
  sigv4::try_with_memory([this] { note_failure(); });
  reply_ = reply_to(verb_, answer_, *settings_.place.format);
}

void Attempt::fail(Fault why, const char* message) {
  answer_ = Answer();
  answer_.fault = why;
  sigv4::try_with_memory([&] {
    answer_.message = message;
    note_failure();
  });
  verdict_ = Verdict::again;
}

void Attempt::be_left() {
  wait_ = nullptr;
  observation_ = &none_;
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
  // Nothing waits from here until the claim is published.
  reply_.received = BootClock::now();
  verdict_ = held_->lease.receive(std::move(reply_), settings_.client.clock(),
                                  *observation_);
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
  be_left();
  deadline_ = give_up_at;
  end_at_ = deadline_;
  timeout_at_ =
      std::min(BootClock::now() + settings_.request_timeout, deadline_);
}

void Attempt::restart(BootTime deadline) {
  begin_anew();
  outcome_unknown_ = outcome_unknown_ || held_->lease.row_is_ours();
  verdict_ = Verdict::again;
  answer_ = {};
  last_failures_.clear();
  deadline_ = end_at_ = deadline;
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

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
