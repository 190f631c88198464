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

// So many requests of a series may follow answers without a pause.  The
// protocol needs fewer, unless an engine contradicts itself.
constexpr int kWithoutPause = 4;
constexpr std::chrono::milliseconds kPause{500};

constexpr std::chrono::milliseconds kShortestDelay{5};
// A renewal or release pauses for at most 1/kLongestPart of the time left.  In
// 30 s of a lease of a minute, a throttled renewal is retried 40 times.
constexpr int kLongestPart = 2;
constexpr int kLongestPartThrottled = 8;

// The last request of a take gets two round trips, within these bounds.
constexpr std::chrono::milliseconds kLeastForLast{50};
constexpr std::chrono::milliseconds kMostForLast{500};

}  // namespace

Series::Series(dynamodb::RetryBudget& budget, Call call, BootTime until)
    : budget_(budget),
      call_(call),
      until_(until),
      retry_(budget, call == Call::take ? Retry::Urgency::can_wait
                                        : Retry::Urgency::urgent) {}

void Series::receive(const Answer& answer) {
  if (answered(answer.fault)) retry_.success();
}

std::optional<nanoseconds> Series::next_delay(const Answer& answer,
                                              nanoseconds left) {
  nanoseconds delay{};
  if (answered(answer.fault)) {
    if (++without_pause_ > kWithoutPause) delay = budget_.jitter(kPause);
  } else {
    const std::optional<nanoseconds> retry = retry_.after(answer);
    if (!retry) return std::nullopt;
    delay = *retry;
  }
  if (delay == nanoseconds::zero()) return delay;
  return call_ == Call::take ? delay_of_take(delay, left, answer)
                             : urgent_delay(delay, left, answer);
}

// The last request of a take leaves time for its answer, because a take that is
// abandoned in flight must be released.  So a pause that would end later is
// shortened.  While the retry budget is spent, no last request is sent.
nanoseconds Series::delay_of_take(nanoseconds delay, nanoseconds left,
                                  const Answer& answer) const {
  const nanoseconds needed = std::clamp<nanoseconds>(
      2 * (answer.received_at - answer.sent_at), kLeastForLast, kMostForLast);
  if (delay <= left - needed) return delay;
  const bool is_too_late = left <= needed || retry_.held_back();
  if (is_too_late) return std::max(delay, left);  // Not shorter than `left`.
  return std::max<nanoseconds>(left - needed, answer.retry_after);
}

// Renewals and releases are not held back while many requests fail.  While a
// table is throttled only some requests succeed, so a throttled renewal is
// retried often.
nanoseconds Series::urgent_delay(nanoseconds delay, nanoseconds left,
                                 const Answer& answer) const {
  const bool is_throttled =
      call_ == Call::renew && answer.fault == Fault::throttled;
  const nanoseconds longest =
      left / (is_throttled ? kLongestPartThrottled : kLongestPart);
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

BootTime Hold::useful_until() const {
  return phase == Phase::held ? std::min(until, lease.claim_end()) : until;
}

// --- One request -------------------------------------------------------------

void Hold::begin_series() {
  series.emplace(settings->budget, call(), until);
  if (call() == Call::take) take_unknown = needs_release();
  verdict = Verdict::again;
  answer = {};
  last_failure.clear();
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
  // When its caller leaves, a take stays in flight until its timeout.
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

void Hold::receive(const Flight& its_flight, Answer&& its_answer,
                   Reply&& reply) {
  answer = std::move(its_answer);
  note_failure();
  const bool takes = its_flight.call == Call::take;
  if (takes && its_flight.verb == Verb::take && answer.outcome_unknown()) {
    take_unknown = true;
  }
  series->receive(answer);
  // From here to publish() nothing may block: else a claim that has ended could
  // be published.
  reply.received = BootClock::now();
  verdict = lease.receive(std::move(reply), settings->client.clock(),
                          settings->observation);
}

void Hold::fail(Fault why, const char* message) {
  answer = Answer();
  answer.set_fault(why, message);
  note_failure();
  verdict = Verdict::again;
}

// A timeout or missing keys say little about the cause.  So the last failure
// that said more is added.
void Hold::note_failure() {
  if (!failing()) {
    last_failure.clear();
    return;
  }
  const bool says_little = unanswered() || answer.fault == Fault::keys_awaited;
  sigv4::try_with_memory([&] {
    if (!says_little) {
      last_failure = sigv4::join(
          {name_of(answer.fault), sigv4::if_any(": ", answer.message)});
    } else if (!last_failure.empty()) {
      answer.message = sigv4::join({sigv4::if_any("", answer.message, "; "),
                                    "before that: ", last_failure});
    }
  });
}

Hold::Next Hold::plan_next(BootTime retry_until) {
  const BootTime now = BootClock::now();
  BootTime end = useful_until();
  if (failing()) end = std::min(end, retry_until);
  // `end` is BootTime::min() if the claim has ended; less `now`, it overflows.
  const auto delay =
      series->next_delay(answer, std::max(end, BootTime{}) - now);
  if (!delay) return {Next::Is::never, kNever};
  // A request without a pause is sent even if patience has ended.
  if (*delay == nanoseconds::zero()) end = useful_until();
  const BootTime at = now + *delay;
  return {at < end ? Next::Is::due : Next::Is::too_late, at};
}

// --- What an answer means ----------------------------------------------------

Reply reply_to(Verb verb, Answer& answer, const RowFormat& layout) {
  Reply reply;
  const bool done = answer.fault == Fault::none;
  // There can be no row: the table is gone, or its key is a different
  // attribute.  (In such a table PutItem writes an item of its own for each
  // taker, which keeps nobody out.)
  const bool no_row = verb != Verb::take && (answer.fault == Fault::no_table ||
                                             answer.fault == Fault::wrong_key);
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
      reply.row = std::make_unique<Row>(
          has_item ? read_row(std::move(*answer.item), layout) : Row());
    });
  }
  answer.item.reset();  // Nobody else reads it, and it may be large.
  return reply;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
