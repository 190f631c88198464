// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// An attempt: one series of requests for one lease, to take it, to renew it or
// to release it.
//
// It decides what to send next and when, until when to go on, and what an
// answer means.  The sender drives all attempts.  Between two requests of a
// take its caller has it: see take.hpp.
//
// The order matters.  First come the keys.  Then the request is stamped and its
// effect on the claim is published.  Then bytes are sent.  An answer is
// received and its effect published in one critical section.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_ATTEMPT_HPP
#define DDBMUTEX_ATTEMPT_HPP

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/client.hpp"
#include "held_lease.hpp"
#include "pace.hpp"
#include "protocol.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// What an answer means to the protocol.  Moves the item out of the answer.
Reply reply_to(Request::Verb verb, dynamodb::Answer& answer,
               const RowFormat& layout = kDdblock);

struct TakeWait;

class Attempt {
 public:
  // README.md shows which stage follows which.
  enum class Stage {
    taking,
    renewing,
    releasing,
    // The caller has gone, and its take is in flight.
    awaiting_take,
    // An abandoned take is released, for it may have been applied.
    releasing_take,
    // ... and once more near the end of the lease: it may have been applied
    // after the first release.
    releasing_take_again,
  };

  // `observation`: of a take; may be null.
  Attempt(Call call, HeldLease& held, Observation* observation = nullptr);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // As if nothing had been sent before, but what may have been applied is
  // remembered.
  void restart(BootTime deadline);

  // These make and end a request: prepare() finds keys, then come stamp() and
  // send().
  //
  void prepare(BootTime now);
  // Begins to send what was stamped.
  void send();
  // False if there are no keys or no endpoint: the answer says so.
  bool will_be_sent() const { return pending_->will_be_sent(); }
  // The request is not sent.  unstamp() is to follow if it was stamped.
  void drop_request() { pending_.reset(); }
  // Ends the request; if it is still in flight, because of `why`.  receive() is
  // to follow.  REQUIRES: has_request().  Needs no memory.
  void finish(sigv4::Transport why);
  // Makes the answer of a request that got none, or was not sent.
  void fail(dynamodb::Fault why, const char* message);
  // From now on it is a release, which first awaits a take in flight.
  void release_instead(BootTime give_up_at);
  // The last stage of the release of a take.
  void release_again() { stage_ = Stage::releasing_take_again; }
  void give_up_at(BootTime deadline) { deadline_ = deadline; }

  // REQUIRES of the next three: the mutex that guards the lease is held.
  //
  // Stamps the next request.  Returns false if the lease is over.  If memory
  // runs out, nothing was stamped.  REQUIRES: has_request().
  bool stamp(BootTime now);
  // Undoes stamp(): the request cannot be sent.
  void unstamp();
  // Learns from the answer that finish() has set.
  void receive();
  // Of a take: the call that waits for its request; null if it has left.
  TakeWait* wait() const { return wait_; }
  void set_wait(TakeWait* wait) { wait_ = wait; }
  // The call has left, and takes its observation with it.
  void be_left();
  // Replaces the verdict of receive().
  void decide(Verdict verdict) { verdict_ = verdict; }
  // After an answer that decided nothing: sets due().  False if no other
  // request is to be sent.  Then either the fault is final, and due() is
  // BootTime::max(), or the request would come too late.
  bool plan_next(BootTime retry_until = BootTime::max());
  void wait_until(BootTime due) { due_ = due; }

  Stage stage() const { return stage_; }
  Call call() const;
  HeldLease& held() const { return *held_; }
  const MutexSettings& settings() const { return settings_; }
  BootTime deadline() const { return deadline_; }
  BootTime due() const { return due_; }  // The next request is.

  // There is a request, which finish() must end even if it is over.
  bool has_request() const { return pending_ != nullptr; }
  bool in_flight() const { return pending_->under_way(); }
  // In flight, and DynamoDB may apply it.
  bool may_be_applied() const {
    return in_flight() && verb_ != Request::Verb::look &&
           pending_->exchange().sent();
  }
  sigv4::Exchange& exchange() { return pending_->exchange(); }
  BootTime stamped_at() const { return stamped_at_; }  // The last request was.
  BootTime timeout_at() const { return timeout_at_; }  // The request's.
  void end_request_at(BootTime when) { timeout_at_ = when; }
  // Until when transient errors are retried; see plan_next().
  BootTime end_at() const { return end_at_; }

  Verdict verdict() const { return verdict_; }
  // The last one, which says why nothing is decided.
  const dynamodb::Answer& answer() const { return answer_; }
  dynamodb::Answer take_answer() { return std::move(answer_); }
  // The last request had an error, or no answer.
  bool failing() const { return !answered(answer_.fault); }
  bool unanswered() const {
    return answer_.fault == dynamodb::Fault::timed_out;
  }
  // A write of this attempt may have been applied without an answer.  Does not
  // include the request in flight.
  bool outcome_unknown() const { return outcome_unknown_; }
  // Of a take that did not win: the row may be ours, or may yet become it.
  bool needs_release() const;

 private:
  BootTime end() const;
  void begin_anew();
  void note_failure();

  Stage stage_;
  const HeldLeasePtr held_;
  MutexSettings& settings_;
  Observation none_;  // Used if the caller passed none.
  Observation* observation_;
  TakeWait* wait_ = nullptr;
  BootTime deadline_ = BootTime::max();
  BootTime due_{};

  std::unique_ptr<dynamodb::Client::Pending> pending_;
  Request::Verb verb_ = Request::Verb::look;  // Of the last request.
  BootTime stamped_at_{};
  BootTime timeout_at_{};
  BootTime end_at_{};  // Of the attempt.
  std::optional<Pace> pace_;

  Verdict verdict_ = Verdict::again;
  dynamodb::Answer answer_;
  Reply reply_;  // What the answer means, until receive().
  bool outcome_unknown_ = false;
  std::string last_failures_;  // The last that a server or the system reported.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ATTEMPT_HPP
