// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Retry decides whether and when a failed call is retried.  Throttle limits the
// rate of requests that can wait.  A client has one RetryBudget, which contains
// its Throttle.  Each series of attempts has its own Retry.
#ifndef DDBMUTEX_RETRY_HPP
#define DDBMUTEX_RETRY_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "../../sigv4/backoff.hpp"
#include "../../sigv4/system.hpp"
#include "answer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Limits how often a client sends requests that can wait.  Learns the rate from
// DynamoDB's answers.
//
//   Throttle::Turn turn(throttle);  // One for a series of requests.
//   while ((delay = turn.wait(BootClock::now())) > zero) sleep(delay);
//   ... send one ...
//   if (throttle.count()) throttle.answered(BootClock::now());
//
// There is no limit until a request is throttled.  Then each throttled request
// lowers the rate by one factor, and each other answer raises it by another.
// So a constant share of the requests is throttled, however many clients there
// are and whatever the capacity of the table.  Answers to requests that are
// never held back count too.
//
// Thread safety: any thread may call any member of a Throttle; one thread at a
// time may use a Turn.
class Throttle {
 public:
  class Turn;

  Throttle() = default;
  Throttle(const Throttle&) = delete;
  Throttle& operator=(const Throttle&) = delete;

  // Whether requests may have to wait.
  bool limits() const { return limited_.load(std::memory_order_acquire); }
  // Call one of these for every answer of DynamoDB: refused() if the request
  // was throttled; otherwise count(), and answered() if count() returns true.
  // So while there is no limit, the clock is read for few answers.
  bool count();
  void answered(BootTime now);
  void refused(BootTime now);

  // Changes the number of throttled renewals that are being retried.
  void count_throttled_renewals(int change) { throttled_renewals_ += change; }
  int throttled_renewals() const { return throttled_renewals_; }

  // Requests per second; empty while there is no limit.
  std::optional<double> rate() const;

 private:
  void remove(Turn& turn);
  void fill(BootTime now);
  std::chrono::nanoseconds until(const Turn& turn) const;
  void end_window(BootTime now);
  bool end_limit_if_over(BootTime now);

  // Written with the mutex held.  While it is false, Turn::wait() and
  // answered() do not lock the mutex.
  std::atomic<bool> limited_{false};

  // Approximate: two threads at the end of a window may lose some answers.
  std::atomic<BootTime::rep> window_begin_{0};
  std::atomic<int> in_window_{0};    // Answers.
  std::atomic<double> measured_{0};  // Answers a second in the last window.

  std::atomic<int> throttled_renewals_{0};

  mutable sigv4::Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  double rate_ = 0;
  int in_a_row_ = 0;  // Answers since a request was throttled.
  BootTime last_refused_{};
  BootTime last_lowered_{};  // The last time that the rate was lowered.
  BootTime last_changed_{};  // The last time that it was lowered or raised.
  Turn* line_ = nullptr;     // Waiting turns, oldest first.
  double tokens_ = 0;        // Requests that could be sent at filled_.
  BootTime filled_{};
};

// A position in the line of requests that are held back.
class Throttle::Turn {
 public:
  explicit Turn(Throttle& throttle) : throttle_(throttle) {}
  ~Turn() {
    if (!waits_) return;
    const std::lock_guard<sigv4::Mutex> guard(throttle_.mutex_);
    throttle_.remove(*this);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Zero: one request may be sent now.  Otherwise it must be called again after
  // this time at the latest.
  std::chrono::nanoseconds wait(BootTime now);
  // Whether the last wait() was not zero.
  bool waits() const { return waits_; }

 private:
  friend class Throttle;
  Throttle& throttle_;
  bool waits_ = false;
  Turn* next_ = nullptr;  // In line.
};

// Limits the retries of all calls of a client, so that a failing service does
// not get more and more requests.
class RetryBudget {
 public:
  RetryBudget();

  // Pays for a retry after `fault`.  Returns false if there were too few
  // tokens; they are spent all the same.
  bool draw(Fault fault);
  void success();  // Gives one token back.
  int tokens() const { return tokens_; }
  // How many retried requests were answered.
  std::uint64_t retries() const { return retries_; }
  void count_retry() { ++retries_; }
  // Holds back requests that can wait while DynamoDB throttles.
  Throttle& throttle() { return throttle_; }
  // Uniform over [0, 1), without a system call.
  double random_share();
  // Uniform over [0, longest]: full jitter.
  std::chrono::nanoseconds jitter(std::chrono::nanoseconds longest) {
    return sigv4::jittered(longest, 0, random_share());
  }

 private:
  mutable sigv4::Mutex mutex_;
  std::uint64_t random_;  // GUARDED_BY(mutex_)
  std::atomic<int> tokens_;
  Throttle throttle_;
  std::atomic<std::uint64_t> retries_{0};
};

// Decides when to retry one call.  Used by one thread at a time.
class Retry {
 public:
  // Takes and polls can wait: they are held back when the budget is spent.
  // Renewals and releases are urgent: they use tokens too, but are never held
  // back.
  enum class Urgency { can_wait, urgent };

  Retry(RetryBudget& budget, Urgency urgency)
      : budget_(budget), urgency_(urgency) {}

  // How long to wait before the next attempt; empty if the fault is final.
  // REQUIRES: the fault is not none, condition_failed or cancelled.
  std::optional<std::chrono::nanoseconds> after(const Answer& answer);
  // Whether the call is held back, because the budget was spent at its last
  // failure.
  bool held_back() const { return held_back_; }
  // DynamoDB has answered: the next failure counts as the first.
  void success();

 private:
  std::optional<std::chrono::nanoseconds> decide(const Answer& answer);

  RetryBudget& budget_;
  const Urgency urgency_;
  sigv4::Backoff backoff_;
  // Since the last success: retried after a wrong time, or after refused keys.
  bool signed_again_ = false;
  bool tried_other_keys_ = false;
  bool is_retry_ = false;  // The next attempt is one.
  bool held_back_ = false;
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RETRY_HPP
