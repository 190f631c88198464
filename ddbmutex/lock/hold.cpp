// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What a Hold sends next and when, and what an answer means.
#include "hold.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/http.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using dynamodb::Retry;
using std::chrono::nanoseconds;
using Verb = Request::Verb;

// --- Pauses between requests -------------------------------------------------

namespace {

// Requests that answers called for at once, before a pause.  The protocol needs
// fewer, so only an engine that contradicts itself gets here.
constexpr int kAtOnce = 4;
constexpr std::chrono::milliseconds kPause{500};

constexpr std::chrono::milliseconds kShortestDelay{5};
// The longest delay of a renewal or release, as a part of the time left.
constexpr int kLongestPart = 2;
// Of a renewal that was throttled: in half a lease of a minute it is retried 40
// times.
constexpr int kLongestPartThrottled = 8;

// The last request of a take needs two round trips: at least this long where
// none was measured, and at most this long where one hung.
constexpr std::chrono::milliseconds kShortestLast{50};
constexpr std::chrono::milliseconds kLongestLast{500};

}  // namespace

// Takes are held back while many requests fail.  Renewals and releases are not.
Series::Series(dynamodb::RetryBudget& budget, Call call, BootTime until)
    : budget_(budget),
      call_(call),
      until_(until),
      retry_(budget, call == Call::take ? Retry::Urgency::can_wait
                                        : Retry::Urgency::urgent) {}

void Series::receive(const Answer& answer) {
  if (answered(answer.fault)) retry_.success();
}

std::optional<nanoseconds> Series::delay(const Answer& answer,
                                         nanoseconds left) {
  std::optional<nanoseconds> delay = nanoseconds::zero();
  if (!answered(answer.fault)) {
    delay = retry_.after(answer);
  } else if (++at_once_ > kAtOnce) {
    delay = budget_.jitter(kPause);
  }
  // No delay needs no fitting: the cause is gone.
  const bool waits = delay && *delay > nanoseconds::zero();
  return waits ? fitted(*delay, left, answer) : delay;
}

// A take that waits sends a last request when just enough time is left for its
// answer: a take that is abandoned in flight must be cleaned up.  It sends none
// while the retry budget is spent.
nanoseconds Series::fitted(nanoseconds delay, nanoseconds left,
                           const Answer& answer) const {
  if (call_ != Call::take) {
    return shortened(delay, left, answer.fault == Fault::throttled);
  }
  const nanoseconds needed = std::clamp<nanoseconds>(
      2 * (answer.received_at - answer.sent_at), kShortestLast, kLongestLast);
  if (delay <= left - needed) return delay;
  if (left <= needed || retry_.held_back()) return std::max(delay, left);
  return std::max<nanoseconds>(left - needed, answer.retry_after);
}

// Renewals and releases are never held back until it is too late.  While a
// table is throttled only some requests succeed, so a throttled renewal is
// retried often.
nanoseconds Series::shortened(nanoseconds delay, nanoseconds left,
                              bool throttled) const {
  const bool presses = call_ == Call::renew && throttled;
  const nanoseconds longest =
      left / (presses ? kLongestPartThrottled : kLongestPart);
  return std::min(delay, std::max<nanoseconds>(longest, kShortestDelay));
}

// --- A Hold ------------------------------------------------------------------

Hold::Hold(MutexSettingsPtr its_settings)
    : settings(std::move(its_settings)),
      lease(fresh_uuid(), settings->ttl, settings->place.policy) {}

Call Hold::call() const {
  if (phase == Phase::taking) return Call::take;
  return phase == Phase::held ? Call::renew : Call::release;
}

bool Hold::is_renewed_at(BootTime when) const {
  return settings->renew_after > nanoseconds::zero() && !stops_renewing &&
         when - *held_since < settings->max_hold;
}

Result Hold::outcome() const {
  Result result;
  result.verdict = Verdict::not_held;
  if (loss) {
    result.verdict = loss->why;
    result.lost_at = loss->at;
  }
  return result;
}

// A renewal is worth nothing once the lease has ended.
BootTime Hold::useful_until() const {
  return phase == Phase::held ? std::min(until, lease.claim_end()) : until;
}

// --- One request -------------------------------------------------------------

void Hold::begin_series() {
  series.emplace(settings->budget, call(), until);
  if (call() == Call::take) outcome_unknown = needs_release();
  verdict = Verdict::again;
  answer = {};
  last_failures.clear();
}

Request Hold::stamp(Flight& its_flight, BootTime now) {
  if (!series || series->call() != call() || series->until() != until) {
    begin_series();
  }
  const bool takes = call() == Call::take;
  if (takes && !settings->client.table_key_is_right()) lease.look_first();
  Request request = lease.next(call(), now, its_flight.pending->clock(),
                               settings->observation);
  its_flight.call = call();
  its_flight.verb = request.verb;
  its_flight.stamped_at = now;
  its_flight.timeout_at = now + settings->request_timeout;
  // A take stays in flight when its caller goes.
  if (takes) {
    its_flight.answer_by = until;
  } else {
    its_flight.timeout_at = std::min(its_flight.timeout_at, useful_until());
  }
  return request;
}

void Hold::unstamp(BootTime now) {
  Reply unsent;
  unsent.received = now;
  lease.receive(std::move(unsent), settings->client.clock(),
                settings->observation);
}

// A timeout or missing keys say little about the cause, so what a server or the
// system reported before goes with it.
void Hold::note_failure(Answer& its_answer) {
  if (answered(its_answer.fault)) return last_failures.clear();
  const bool says_little = its_answer.fault == Fault::timed_out ||
                           its_answer.fault == Fault::keys_awaited;
  sigv4::try_with_memory([&] {
    if (!says_little) {
      last_failures = sigv4::join(
          {name_of(its_answer.fault), sigv4::if_any(": ", its_answer.message)});
    } else if (!last_failures.empty()) {
      its_answer.message =
          sigv4::join({sigv4::if_any("", its_answer.message, "; "),
                       "before that: ", last_failures});
    }
  });
}

void Hold::receive(const Flight& its_flight, Answer&& its_answer,
                   Reply&& reply) {
  // While a take is released, outcome_unknown is about the take.
  const bool releases_take = its_flight.call == Call::release && is_doubtful();
  answer = std::move(its_answer);
  if (its_flight.verb != Verb::look && !releases_take &&
      answer.outcome_unknown()) {
    outcome_unknown = true;
  }
  series->receive(answer);
  // Nothing waits from here until the claim is published.
  reply.received = BootClock::now();
  verdict = lease.receive(std::move(reply), settings->client.clock(),
                          settings->observation);
}

void Hold::fail(Fault why, const char* message) {
  answer = Answer();
  answer.set_fault(why, message);
  note_failure(answer);
  verdict = Verdict::again;
}

Hold::Next Hold::plan_next(BootTime retry_until) {
  const BootTime now = BootClock::now();
  const BootTime last = useful_until();
  const BootTime end = failing() ? std::min(last, retry_until) : last;
  const auto delay = series->delay(answer, std::max(end, BootTime{}) - now);
  if (!delay) return Next::never;
  due = now + *delay;
  const bool pauses = *delay > nanoseconds::zero();
  return due < (pauses ? end : last) ? Next::when_due : Next::too_late;
}

// --- What an answer means ----------------------------------------------------

namespace {

// There can be no row: the table is gone, or its key is a different attribute.
// (In such a table PutItem writes an item of its own for each taker, which
// keeps nobody out.)
bool no_row_possible(Fault fault) {
  return fault == Fault::no_table || fault == Fault::wrong_key;
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

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
