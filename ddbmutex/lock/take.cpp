// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "take.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/memory.hpp"
#include "../dynamodb/ask.hpp"
#include "attempt.hpp"
#include "renewer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;

namespace {

constexpr char kTimeIsUp[] = "the deadline has passed";

// The signature was refused for its time, which says nothing of the keys.
void hide_skewed_time(Attempt& attempt) {
  if (attempt.answer().fault != Fault::skewed_time) return;
  attempt.fail(Fault::timed_out, dynamodb::kNoTimeToSignAgain);
}

Outcome outcome_of(Attempt& attempt, bool given_up = false) {
  return {attempt.verdict(), attempt.take_answer(), given_up};
}

}  // namespace

Outcome Taking::run(OneAttempt& one, RetryUntil retry_until_after,
                    BeforePause before_pause) {
  Attempt& attempt = one.front();
  attempt.restart(deadline_);
  for (;;) {
    const BootTime begun = BootClock::now();
    const bool has_keys = await_keys(attempt, begun);
    const bool late = BootClock::now() >= deadline_;
    if (waker_.woken()) return end_unsent(attempt, Fault::cancelled);
    // Without keys a request is begun even so: its answer says what is missing.
    if (late && has_keys) return end_unsent(attempt, Fault::timed_out);
    const bool failed = attempt.failing();
    TakeWait wait{waker_};
    renewer_.carry(one, deadline_, waker_, wait);
    if (wait.unsent) {
      return end_unsent(attempt, renewer_.is_stopping() ? Fault::cancelled
                                                        : Fault::timed_out);
    }
    if (wait.given_up) {
      return {Verdict::again,
              one.empty() ? std::move(wait.answer) : attempt.take_answer(),
              !failed};
    }
    const BootTime retry_until = retry_until_after(attempt.answer(), begun);
    if (attempt.verdict() != Verdict::again) return outcome_of(attempt);
    if (!attempt.plan_next(retry_until)) {
      return end_undecided(attempt, retry_until);
    }
    before_pause(attempt.answer(), attempt.due());
    waker_.wait_until(attempt.due());
  }
}

// Keys come before the stamp, because the lease counts from the stamp.
bool Taking::await_keys(const Attempt& attempt, BootTime begun) {
  dynamodb::Client& client = attempt.settings().client;
  bool has_keys = client.has_keys(begun);
  if (has_keys) return true;
  sigv4::try_with_memory([&] {
    has_keys = client.await_keys(
        std::min(deadline_, begun + attempt.settings().request_timeout),
        waker_);
  });
  return has_keys;
}

// If an earlier request failed, that is the reason, and not the time.
Outcome Taking::end_unsent(Attempt& attempt, Fault why) const {
  const bool failed = attempt.failing();
  if (why == Fault::cancelled) {
    attempt.fail(why, "cancelled before another request was sent");
  } else if (!failed) {
    attempt.fail(why, kTimeIsUp);
  } else {
    hide_skewed_time(attempt);
  }
  return outcome_of(attempt, !failed);
}

// The fault is final, or no time is left for another request; a take waits for
// the rest of its time.
Outcome Taking::end_undecided(Attempt& attempt, BootTime retry_until) {
  if (attempt.due() == BootTime::max()) return outcome_of(attempt);
  const bool failed = attempt.failing();
  const BootTime end = attempt.end_at();
  waker_.wait_until(failed ? std::min(end, retry_until) : end);
  const Fault fault = attempt.answer().fault;
  if (fault == Fault::none) {  // A look, and no time to act on it.
    attempt.fail(Fault::timed_out, kTimeIsUp);
  } else {
    hide_skewed_time(attempt);
  }
  return outcome_of(attempt, !failed);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
