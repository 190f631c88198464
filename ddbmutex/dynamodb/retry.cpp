// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The figures are those of botocore (retries/standard.py), but for the longest
// delay, which is 20 s there.
#include "retry.hpp"

#include <algorithm>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr int kTokens = 500;
constexpr int kRetryCost = 5;
constexpr int kTimeoutCost = 10;
constexpr int kLeastGivenBack = 1;
constexpr milliseconds kLongestDelay{5000};
constexpr sigv4::Backoff::Limits kDelays{milliseconds(25), kLongestDelay};
constexpr sigv4::Backoff::Limits kThrottledDelays{milliseconds(1000),
                                                  kLongestDelay};
// After trouble on this host.
constexpr sigv4::Backoff::Limits kLocalDelays{milliseconds(25),
                                              milliseconds(500)};

std::uint64_t random_seed() {
  std::uint64_t seed;
  sigv4::fill_with_randomness(&seed, sizeof seed);
  return seed;
}

}  // namespace

RetryBudget::RetryBudget() : random_(random_seed()), tokens_(kTokens) {}

bool RetryBudget::draw(int tokens) {
  const std::lock_guard guard(mutex_);
  if (tokens_ < tokens) return false;
  tokens_ -= tokens;
  return true;
}

void RetryBudget::give_back(int tokens) {
  const std::lock_guard guard(mutex_);
  tokens_ = std::min(kTokens, tokens_ + tokens);
}

int RetryBudget::tokens() const {
  const std::lock_guard guard(mutex_);
  return tokens_;
}

double RetryBudget::random_share() {
  const std::lock_guard guard(mutex_);
  // Knuth's linear congruential generator, whose high bits are good.
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;
  return static_cast<double>(random_ >> 11) * 0x1p-53;
}

std::optional<nanoseconds> Retry::after(const Answer& answer) {
  if (is_retry_ && answer.sent) budget_.count_retry();
  const std::optional<nanoseconds> delay = decide(answer);
  is_retry_ = delay.has_value();
  return delay;
}

std::optional<nanoseconds> Retry::decide(const Answer& answer) {
  if (answer.other_keys) {
    if (std::exchange(tried_other_keys_, true)) return std::nullopt;
    return nanoseconds::zero();
  }
  if (!is_transient(answer.fault)) return std::nullopt;
  if (answer.fault == Fault::skewed_time) {
    if (std::exchange(signed_again_, true)) return std::nullopt;
    return nanoseconds::zero();
  }
  // Trouble on this host costs no tokens.
  if (answer.fault == Fault::keys_awaited || answer.fault == Fault::no_memory) {
    return backoff_.next(kLocalDelays, budget_.random_share());
  }
  // Contention for an item does not mean that the service fails.
  int cost = answer.fault == Fault::timed_out ? kTimeoutCost : kRetryCost;
  if (answer.fault == Fault::conflict) cost = 0;
  const bool paid = budget_.draw(cost);
  paid_ = paid ? cost : 0;
  held_back_ = !paid && urgency_ == Urgency::can_wait;
  // Random, so that the calls that are held back do not come back together.
  if (held_back_) {
    return kLongestDelay / 2 + budget_.jitter(kLongestDelay / 2);
  }
  const nanoseconds delay = backoff_.next(
      answer.fault == Fault::throttled ? kThrottledDelays : kDelays,
      budget_.random_share());
  return std::clamp<nanoseconds>(answer.retry_after, delay,
                                 delay + kLongestDelay);
}

void Retry::success() {
  if (std::exchange(is_retry_, false)) budget_.count_retry();
  backoff_.reset();
  signed_again_ = false;
  tried_other_keys_ = false;
  budget_.give_back(std::max(kLeastGivenBack, std::exchange(paid_, 0)));
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
