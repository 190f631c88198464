// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Retry decides whether and when a failed call is retried: after a pause that
// doubles, with full jitter, and paid for from a token bucket, as in the
// standard mode of AWS's SDKs.  A client has one RetryBudget.  Each series of
// attempts has its own Retry.
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

// The token bucket: limits the retries of all calls of a client, so that a
// failing service does not get more and more requests.
class RetryBudget {
 public:
  RetryBudget();

  // Takes so many tokens.  Returns false, and takes none, if there are fewer.
  bool draw(int tokens);
  void give_back(int tokens);
  int tokens() const;
  // How many retried requests were answered.
  std::uint64_t retries() const { return retries_; }
  void count_retry() { ++retries_; }
  // Uniform over [0, 1), without a system call.
  double random_share();
  // Uniform over [0, longest]: full jitter.
  std::chrono::nanoseconds jitter(std::chrono::nanoseconds longest) {
    return sigv4::jittered(longest, 0, random_share());
  }

 private:
  mutable sigv4::Mutex mutex_;
  std::uint64_t random_;  // GUARDED_BY(mutex_)
  int tokens_;            // GUARDED_BY(mutex_)
  std::atomic<std::uint64_t> retries_{0};
};

// Decides when to retry one call.  Used by one thread at a time.
class Retry {
 public:
  // Takes and polls can wait: they are held back when the budget is spent.
  // Renewals and releases are urgent: they use tokens too, but are never held
  // back.  A success gives back what the last retry has cost, and at least one
  // token.
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
  int paid_ = 0;  // For the last retry since the last success.
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RETRY_HPP
