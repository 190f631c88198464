// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// An attempt: one series of requests for one lease, to take it, to renew it or
// to release it.
//
// It decides what to send next and when, until when to go on, and what an
// answer means; all retries are decided here.  Whoever has the time drives it:
// a calling thread drives one by run(), the sender many at once by begin() and
// finish().
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
#include "../../sigv4/function_ref.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/waiting.hpp"
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

// How an attempt stamps a request for a lease that other threads use, too: each
// function runs under the mutex that guards the lease.
class Stamper {
 public:
  // A request is about to be sent.  False: it is too late, or unwanted.
  virtual bool stamp(Attempt& attempt) = 0;
  // The request was stamped, but cannot be sent.
  virtual void unstamp(Attempt& attempt) = 0;

 protected:
  ~Stamper() = default;
};

// The same for run(), which also receives the answers.
class SharedLease : public Stamper {
 public:
  virtual void receive(Attempt& attempt) = 0;

 protected:
  ~SharedLease() = default;
};

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

  // Called by run() with no mutex held, after each answer.  `begun`: when its
  // request was begun.  Returns until when transient errors are retried.
  using RetryUntil = sigv4::FunctionRef<BootTime(const dynamodb::Answer& answer,
                                                 BootTime begun)>;
  // Called by run() with no mutex held, before each pause.  `answer`: the last.
  // `next`: when a request is begun.
  using BeforePause =
      sigv4::FunctionRef<void(const dynamodb::Answer& answer, BootTime next)>;

  // `observation`: of a take; may be null.
  Attempt(Call call, HeldLease& held, Observation* observation = nullptr);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Sends what the lease says and retries after transient errors, until there
  // is a verdict other than `again` or a final fault, until the deadline, or
  // until `waker` (may be null) is woken.  Nothing is sent after that.  A take
  // that fails waits until its deadline even if no time is left for another
  // request; its answer is the last error.  A take that ends undecided leaves
  // its request in flight, and must be released if needs_release().
  // `shared` is null if no other thread uses the lease.
  void run(BootTime deadline, sigv4::Waker* waker,
           SharedLease* shared = nullptr);
  void run(BootTime deadline, sigv4::Waker* waker, RetryUntil retry_until,
           BeforePause before_pause, SharedLease* shared = nullptr);

  // Stamps the next request and begins to send it.
  enum class Begun { yes, too_late_or_unwanted, no_memory };
  Begun begin(Stamper* stamper, BootTime now);
  // Ends the request; if it is still in flight, because of `why`.  receive() is
  // to follow.  REQUIRES: begun.  Needs no memory.
  void finish(sigv4::Transport why);
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
  sigv4::Exchange& exchange() { return pending_->exchange(); }
  BootTime stamped_at() const { return stamped_at_; }  // The last request was.
  BootTime timeout_at() const { return timeout_at_; }  // The request's.

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
  // The last run() ended at its deadline or because it was woken, and no
  // request of it had failed.
  bool given_up() const { return given_up_; }

 private:
  BootTime end() const;
  void begin_anew();
  bool await_keys(BootTime begun, sigv4::Waker* waker);
  bool send(BootTime now, sigv4::Waker* waker, SharedLease* shared);
  void await_answer(sigv4::Waker* waker, SharedLease* shared);
  void end_request(SharedLease* shared);
  void conclude(sigv4::Transport why, SharedLease* shared);
  void note_failure();
  void end_unsent(dynamodb::Fault why);
  void end_undecided(BootTime retry_until, sigv4::Waker* waker);

  Stage stage_;
  const HeldLeasePtr held_;
  MutexSettings& settings_;
  Observation none_;  // Used if the caller passed none.
  Observation* observation_;
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
  bool outcome_unknown_ = false;
  bool given_up_ = false;
  std::string last_failures_;  // The last that a server or the system reported.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ATTEMPT_HPP
