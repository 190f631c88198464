// Whether and when to retry a failed call, and how often to send what can wait
// while DynamoDB throttles: one Throttle and one RetryBudget for each client,
// one Retry for each run of attempts.
#ifndef DDBMUTEX_RETRY_HPP
#define DDBMUTEX_RETRY_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "../../sigv4/system.hpp"
#include "answer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Limits how often a client sends what can wait, as learned from DynamoDB's
// refusals for throttling.
//
//   Throttle::Turn turn(throttle);  // One for a run of requests.
//   while ((delay = turn.wait(BootClock::now())) > zero) sleep(delay);
//   ... send one ...
//   if (throttle.count()) throttle.answered(BootClock::now());
//
// There is no limit until a request is refused.  Then each refusal lowers the
// rate and each other answer raises it by a share of what it is: so however
// many clients there are and whatever the table bears, refusals stay a share of
// the answers.  Answers to requests that are never held back count alike.
//
// Thread safety: any thread may call any member; those of a Turn, one at a
// time.
class Throttle {
 public:
  class Turn;

  Throttle() = default;
  Throttle(const Throttle&) = delete;
  Throttle& operator=(const Throttle&) = delete;

  // Whether turns have to be waited for.
  bool limits() const { return limited_.load(std::memory_order_acquire); }
  // Call one of these for every answer of DynamoDB's: refused() if it refuses
  // for throttling, otherwise count(), and answered() if count() returns true.
  // (While there is no limit, the clock is read for few of them.)
  bool count();
  void answered(BootTime now);
  void refused(BootTime now);

  // How many requests that are never held back are being retried after a
  // refusal, so that each of them knows of the others.
  void press(int change) { pressing_ += change; }
  int pressing() const { return pressing_; }

  // Requests per second; nothing while there is no limit.
  std::optional<double> rate() const;

 private:
  void remove(Turn& turn);
  void fill(BootTime now);
  std::chrono::nanoseconds until(const Turn& turn) const;
  void end_window(BootTime now);
  bool forgets(BootTime now);

  // Written under the mutex.  While it is false no call takes that.
  std::atomic<bool> limited_{false};

  // Answers a second, in the last whole window.  Approximate: two threads at a
  // window's end may lose some.
  std::atomic<BootTime::rep> window_begin_{0};
  std::atomic<int> in_window_{0};
  std::atomic<double> measured_{0};

  std::atomic<int> pressing_{0};

  mutable sigv4::Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  double rate_ = 0;
  int in_a_row_ = 0;  // Answers since a refusal.
  BootTime last_refused_{};
  BootTime last_lowered_{};  // The rate,
  BootTime last_changed_{};  // down or up.
  Turn* line_ = nullptr;     // Of those that wait, the oldest first.
  double tokens_ = 0;        // So many of them may go, as of
  BootTime filled_{};
};

// A place in the line of requests that are held back.
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

  // Zero: one request may be sent now.  Otherwise call it again after this
  // time at the latest.
  std::chrono::nanoseconds wait(BootTime now);
  // Whether the last wait() was not zero.
  bool waits() const { return waits_; }

 private:
  friend class Throttle;
  Throttle& throttle_;
  bool waits_ = false;
  Turn* next_ = nullptr;  // In line.
};

// Tokens for retries, shared by all calls of a client, so that a failing
// service does not get more requests the more it fails.
class RetryBudget {
 public:
  RetryBudget();

  // Takes the tokens of a retry after `fault`, or all that are left.  False if
  // they were too few.
  bool draw(Fault fault);
  void success();  // Gives one token back.
  int tokens() const { return tokens_; }
  // Answers to requests that were sent again.
  std::uint64_t retries() const { return retries_; }
  void count_retry() { ++retries_; }
  // Holds back what waits, before it is sent, while DynamoDB throttles.
  Throttle& throttle() { return throttle_; }
  // Uniform over [0, longest]: full jitter.
  std::chrono::nanoseconds jitter(std::chrono::nanoseconds longest);

 private:
  mutable sigv4::Mutex mutex_;
  std::uint64_t random_;  // GUARDED_BY(mutex_)
  std::atomic<int> tokens_;
  Throttle throttle_;
  std::atomic<std::uint64_t> retries_{0};
};

// Decides when to retry one call.  Used by one thread.
class Retry {
 public:
  // What waits (takes, polls) is held back when the budget is spent; what
  // presses (renewals, releases) draws on it but never is.
  enum class Urgency { waits, presses };

  Retry(RetryBudget& budget, Urgency urgency)
      : budget_(budget), urgency_(urgency) {}

  // How long to wait before the next attempt; nothing if the fault is final.
  // REQUIRES: the fault is not none, condition_failed or cancelled.
  std::optional<std::chrono::nanoseconds> after(const Answer& answer);
  // The budget was short at the last failure, so what waits is held back.
  bool held_back() const { return held_back_; }
  // An answer of DynamoDB's came: the next failure starts anew.
  void success();

 private:
  std::optional<std::chrono::nanoseconds> decide(const Answer& answer);
  std::chrono::nanoseconds doubled(std::chrono::nanoseconds delay,
                                   std::chrono::nanoseconds longest);

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
