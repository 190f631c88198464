// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// First the retries of one call, then the throttle, which finds the rate that
// the table bears by raising and lowering it.
#include "retry.hpp"

#include <algorithm>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Seconds = std::chrono::duration<double>;

namespace {

constexpr int kTokens = 500;
constexpr int kTransientCost = 14;
constexpr int kThrottledCost = 5;
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

bool RetryBudget::draw(Fault fault) {
  const int cost = fault == Fault::throttled ? kThrottledCost : kTransientCost;
  int had = tokens_;
  while (!tokens_.compare_exchange_weak(had, std::max(0, had - cost))) {
  }
  return had >= cost;
}

void RetryBudget::success() {
  int had = tokens_;
  while (had < kTokens && !tokens_.compare_exchange_weak(had, had + 1)) {
  }
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
  const bool costs = answer.fault != Fault::conflict;
  const bool short_of_tokens = costs && !budget_.draw(answer.fault);
  held_back_ = short_of_tokens && urgency_ == Urgency::can_wait;
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
  budget_.success();
}

// --- While DynamoDB throttles ------------------------------------------------

namespace {

// The rate changes at most once in each step, because requests that are in
// flight together are throttled together: by one factor when a request was
// throttled, by the other after an answer.  The addend makes the rates of
// several clients equal in time.  Simulated and measured with 10 to 100
// clients, a third to two thirds of all requests are throttled; without a limit
// it is up to nine tenths.
constexpr milliseconds kStep{100};
constexpr double kLowered = 0.65;
constexpr double kRaised = 1.2;
constexpr double kAdded = 0.1;  // Requests per second.
// After more answers in a row than this, over this time, the table probably has
// capacity again, and the rate rises quickly.
constexpr int kManyInARow = 3;
constexpr seconds kLongInARow{1};
constexpr double kRaisedQuickly = 2;

// Requests per second.  With a lower one, a client would notice late that the
// table has capacity again.
constexpr double kSlowestRate = 0.4;
constexpr double kFastest = 1e6;
// The lowest rate that is taken to have been too high: few answers are a poor
// measure.
constexpr double kLeastMeasured = 2;

// The limit ends when no request was throttled for this long.
constexpr seconds kLimitLasts{10};
constexpr milliseconds kLookAgain{250};
constexpr milliseconds kShortestWait{1};
constexpr seconds kWindow{1};
// Without a limit, the clock is read for one in so many answers of a window.
constexpr int kTimedEach = 8;

}  // namespace

nanoseconds Throttle::Turn::wait(BootTime now) {
  Throttle& all = throttle_;
  if (!all.limits() && !waits_) return nanoseconds::zero();
  const std::lock_guard<sigv4::Mutex> guard(all.mutex_);
  if (!std::exchange(waits_, true)) {
    Turn** end = &all.line_;
    while (*end != nullptr) end = &(*end)->next_;
    *end = this;
  }
  if (all.limited_.load(std::memory_order_relaxed) &&
      !all.end_limit_if_over(now)) {
    all.fill(now);
    const nanoseconds left = all.until(*this);
    if (left > nanoseconds::zero()) return left;
    all.tokens_ -= 1;
  }
  all.remove(*this);
  return nanoseconds::zero();
}

void Throttle::remove(Turn& turn) {
  Turn** place = &line_;
  while (*place != &turn) place = &(*place)->next_;
  *place = std::exchange(turn.next_, nullptr);
  turn.waits_ = false;
}

// The time until there are tokens for this turn and all before it.
nanoseconds Throttle::until(const Turn& turn) const {
  const double soon = tokens_ + rate_ * Seconds(kLookAgain).count();
  double needed = 1;
  for (const Turn* one = line_; one != &turn; one = one->next_) {
    if (++needed > soon) return kLookAgain;  // The rate may rise meanwhile.
  }
  if (needed <= tokens_) return nanoseconds::zero();
  const Seconds left((needed - tokens_) / rate_);
  return std::clamp<nanoseconds>(std::chrono::ceil<nanoseconds>(left),
                                 kShortestWait, kLookAgain);
}

// Saves up no more tokens than are needed while a turn sleeps for kLookAgain.
void Throttle::fill(BootTime now) {
  const double most = std::max(1.0, rate_ * Seconds(kLookAgain).count());
  tokens_ = std::min(most, tokens_ + rate_ * Seconds(now - filled_).count());
  filled_ = now;
}

bool Throttle::count() {
  const int counted = in_window_.fetch_add(1, std::memory_order_relaxed) + 1;
  return limits() || counted % kTimedEach == 0;
}

std::optional<double> Throttle::rate() const {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  if (!limited_.load(std::memory_order_relaxed)) return std::nullopt;
  return rate_;
}

void Throttle::refused(BootTime now) {
  count();
  end_window(now);
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  in_a_row_ = 0;
  last_refused_ = now;
  const bool limited = limited_.load(std::memory_order_relaxed);
  if (limited && now - last_lowered_ < kStep) return;
  const double was = std::max(
      {measured_.load(std::memory_order_relaxed),
       in_window_.load(std::memory_order_relaxed) / Seconds(kWindow).count(),
       kLeastMeasured});
  if (!limited) {
    rate_ = was;
    tokens_ = 0;
    filled_ = now;
    limited_.store(true, std::memory_order_release);
  }
  rate_ = std::max(kSlowestRate, kLowered * std::min(rate_, was));
  last_lowered_ = last_changed_ = now;
}

void Throttle::answered(BootTime now) {
  end_window(now);
  if (!limits()) return;
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  if (end_limit_if_over(now)) return;
  ++in_a_row_;
  if (now - last_changed_ < kStep) return;
  const bool freed =
      in_a_row_ > kManyInARow && now - last_refused_ >= kLongInARow;
  rate_ = std::min(kFastest,
                   freed ? kRaisedQuickly * rate_ : kRaised * rate_ + kAdded);
  last_changed_ = now;
}

// REQUIRES: the mutex is held.
bool Throttle::end_limit_if_over(BootTime now) {
  if (now - last_refused_ < kLimitLasts) return false;
  limited_.store(false, std::memory_order_release);
  return true;
}

// Does nothing until the window is over.
void Throttle::end_window(BootTime now) {
  const auto at = now.time_since_epoch().count();
  auto begin = window_begin_.load(std::memory_order_relaxed);
  const Seconds gone{nanoseconds(at - begin)};
  if (gone < kWindow) return;
  if (!window_begin_.compare_exchange_strong(begin, at,
                                             std::memory_order_relaxed)) {
    return;
  }
  const int counted = in_window_.exchange(0, std::memory_order_relaxed);
  measured_.store(counted / gone.count(), std::memory_order_relaxed);
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
