#include "retry.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr int kTokens = 500;
constexpr int kPassingCost = 14;
constexpr int kThrottledCost = 5;
constexpr milliseconds kFirstDelay{25};
constexpr milliseconds kFirstThrottledDelay{1000};
constexpr milliseconds kLongestDelay{5000};
constexpr milliseconds kLongestKeysDelay{500};

std::minstd_rand::result_type random_seed() {
  std::minstd_rand::result_type seed;
  if (getentropy(&seed, sizeof seed) != 0) std::abort();
  return seed;
}

}  // namespace

RetryBudget::RetryBudget() : tokens_(kTokens), random_(random_seed()) {}

bool RetryBudget::draw(Fault fault) {
  const int cost = fault == Fault::throttled ? kThrottledCost : kPassingCost;
  const std::lock_guard guard(mutex_);
  const bool enough = tokens_ >= cost;
  tokens_ = std::max(0, tokens_ - cost);
  return enough;
}

void RetryBudget::success() {
  const std::lock_guard guard(mutex_);
  tokens_ = std::min(kTokens, tokens_ + 1);
}

int RetryBudget::tokens() const {
  const std::lock_guard guard(mutex_);
  return tokens_;
}

std::uint64_t RetryBudget::retries() const { return retries_; }

void RetryBudget::count_retry() { ++retries_; }

nanoseconds RetryBudget::jitter(nanoseconds longest) {
  const std::lock_guard guard(mutex_);
  std::uniform_int_distribution<nanoseconds::rep> even(0, longest.count());
  return nanoseconds(even(random_));
}

Retry::Retry(RetryBudget& budget, Urgency urgency)
    : budget_(budget), urgency_(urgency) {}

std::optional<nanoseconds> Retry::after(const Answer& answer) {
  if (again_ && answer.sent) budget_.count_retry();
  const std::optional<nanoseconds> delay = decide(answer);
  again_ = delay.has_value();
  return delay;
}

std::optional<nanoseconds> Retry::decide(const Answer& answer) {
  if (answer.other_keys) {
    if (std::exchange(renewed_, true)) return std::nullopt;
    return nanoseconds::zero();
  }
  if (!is_passing(answer.fault)) return std::nullopt;
  if (answer.fault == Fault::skewed_time) {
    if (std::exchange(corrected_, true)) return std::nullopt;
    return nanoseconds::zero();
  }
  if (answer.fault == Fault::keys_awaited) return keys_delay();
  held_back_ = !budget_.draw(answer.fault) && urgency_ == Urgency::waits;
  if (held_back_) return kLongestDelay;
  nanoseconds longest =
      answer.fault == Fault::throttled ? kFirstThrottledDelay : kFirstDelay;
  for (int i = 0; i < failures_ && longest < kLongestDelay; ++i) longest *= 2;
  ++failures_;
  const nanoseconds delay =
      budget_.jitter(std::min<nanoseconds>(longest, kLongestDelay));
  return std::clamp<nanoseconds>(answer.retry_after, delay,
                                 delay + kLongestDelay);
}

// No request was sent: that costs nothing.
nanoseconds Retry::keys_delay() {
  nanoseconds longest = kFirstDelay;
  for (int i = 0; i < failures_ && longest < kLongestKeysDelay; ++i) {
    longest *= 2;
  }
  ++failures_;
  return budget_.jitter(std::min<nanoseconds>(longest, kLongestKeysDelay));
}

void Retry::success() {
  if (std::exchange(again_, false)) budget_.count_retry();
  failures_ = 0;
  corrected_ = false;
  renewed_ = false;
  budget_.success();
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
