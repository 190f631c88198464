// Whether to try a failed call again, and when.
#ifndef DDBMUTEX_RETRY_HPP
#define DDBMUTEX_RETRY_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>

#include "answer.hpp"
#include "throttle.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Tokens for retries, shared by all calls of a client, so that a service in
// trouble is not asked more the more of its answers fail.
class RetryBudget {
 public:
  RetryBudget();

  // Takes what a retry after `fault` costs, as far as there is.  False if it
  // was not all there.
  bool draw(Fault fault);
  void success();  // Gives one token back.
  int tokens() const;
  // Answers to requests that were sent again.
  std::uint64_t retries() const;
  void count_retry();
  // Holds back what waits, before it is sent, while DynamoDB throttles.
  Throttle& throttle() { return throttle_; }
  // Even over [0, longest]: full jitter.
  std::chrono::nanoseconds jitter(std::chrono::nanoseconds longest);

 private:
  mutable std::mutex mutex_;
  int tokens_;               // GUARDED_BY(mutex_)
  std::minstd_rand random_;  // GUARDED_BY(mutex_)
  Throttle throttle_;
  std::atomic<std::uint64_t> retries_{0};
};

// When to try one call again.  One for each run of attempts; one thread.
class Retry {
 public:
  // What waits (takes, polls) is held back when the budget is spent; what
  // presses (renewals, releases) draws on it but never is.
  enum class Urgency { waits, presses };

  Retry(RetryBudget& budget, Urgency urgency);

  // How long to wait before the next attempt; nothing if the fault is final.
  // REQUIRES: the fault is not none, condition_failed or cancelled.
  std::optional<std::chrono::nanoseconds> after(const Answer& answer);
  // The budget did not have what the last attempt that failed has cost, so what
  // waits is held back.
  bool held_back() const { return held_back_; }
  // An answer of DynamoDB's came: the next failure starts anew.
  void success();

 private:
  std::optional<std::chrono::nanoseconds> decide(const Answer& answer);
  std::chrono::nanoseconds keys_delay();

  RetryBudget& budget_;
  const Urgency urgency_;
  int failures_ = 0;        // In a row.
  bool corrected_ = false;  // For a time that was wrong; since a success.
  bool renewed_ = false;    // With other keys; since a success.
  bool again_ = false;      // The next answer will be a second attempt's.
  bool held_back_ = false;
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RETRY_HPP
