// When the requests of one attempt are sent: the delays of its retries, and its
// waits while DynamoDB throttles.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_PACE_HPP
#define DDBMUTEX_PACE_HPP

#include <chrono>
#include <optional>

#include "../dynamodb/answer.hpp"
#include "../dynamodb/retry.hpp"
#include "protocol.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Pace {
 public:
  Pace(dynamodb::RetryBudget& budget, Call call);
  ~Pace() { press(false); }
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  // How long the next request must wait because DynamoDB throttles; zero unless
  // it is a take.  Must be called again after the wait, until it returns zero.
  std::chrono::nanoseconds throttle_wait();
  bool awaits_throttle() const { return turn_.waits(); }

  // Must be called for every answer.
  void receive(const dynamodb::Answer& answer);
  // How long to wait after an answer that decided nothing; no value if its
  // fault is final.  `left`: the time until the attempt becomes useless.  If
  // the result is not less than `left`, no other request is worth sending.
  std::optional<std::chrono::nanoseconds> delay(const dynamodb::Answer& answer,
                                                std::chrono::nanoseconds left);

 private:
  // Sets pressing_, and counts the renewals of the table that have it.
  void press(bool pressing);
  // A delay that leaves time for another request.
  std::chrono::nanoseconds fitted(std::chrono::nanoseconds delay,
                                  std::chrono::nanoseconds left,
                                  const dynamodb::Answer& answer) const;
  // The same for a renewal or a release.
  std::chrono::nanoseconds pressed(std::chrono::nanoseconds delay,
                                   std::chrono::nanoseconds left,
                                   bool throttled) const;

  dynamodb::RetryBudget& budget_;
  const Call call_;
  dynamodb::Throttle::Turn turn_;
  bool pressing_ = false;  // This is a renewal that was throttled.
  dynamodb::Retry retry_;
  int at_once_ = 0;  // How many requests were sent without a delay.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_PACE_HPP
