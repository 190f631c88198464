// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The requests of a call that takes a lock.  The call decides on its own thread
// whether and when to send another one.  The sender sends it, and gives the
// attempt back with its answer.
//
// A call that gives up leaves the attempt to the sender, wherever it is.  The
// sender awaits the take in flight, and releases what it may have got.
#ifndef DDBMUTEX_TAKE_HPP
#define DDBMUTEX_TAKE_HPP

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/function_ref.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/answer.hpp"
#include "held_lease.hpp"
#include "protocol.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Renewer;

// How the requests of a call have ended.
struct Outcome {
  Verdict verdict = Verdict::again;
  dynamodb::Answer answer{};  // The last, which says why nothing is decided.
  // The deadline has come or the call was woken, and no request had failed.
  bool given_up = false;
};

class Taking {
 public:
  // Called after each answer.  `begun`: when its request was begun.  Returns
  // until when transient errors are retried.
  using RetryUntil = sigv4::FunctionRef<BootTime(const dynamodb::Answer& answer,
                                                 BootTime begun)>;
  // Called before each pause.  `answer`: the last.  `next`: when a request is
  // begun.
  using BeforePause =
      sigv4::FunctionRef<void(const dynamodb::Answer& answer, BootTime next)>;

  Taking(Renewer& renewer, BootTime deadline, sigv4::CallWaker& waker)
      : renewer_(renewer), deadline_(deadline), waker_(waker) {}

  // Sends what the lease says and retries after transient errors, until there
  // is a verdict other than `again` or a final fault, until the deadline, or
  // until the waker is woken.  A take that fails waits until its deadline even
  // if no time is left for another request; its answer is the last error.
  // Afterwards there is no attempt if it was left to the sender.
  Outcome run(OneAttempt& one, RetryUntil retry_until,
              BeforePause before_pause);

 private:
  bool await_keys(const Attempt& attempt, BootTime begun);
  Outcome end_unsent(Attempt& attempt, dynamodb::Fault why) const;
  Outcome end_undecided(Attempt& attempt, BootTime retry_until);

  Renewer& renewer_;
  const BootTime deadline_;
  sigv4::CallWaker& waker_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TAKE_HPP
