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

  // How long a take must wait because DynamoDB throttles.  It must be called
  // again after each wait until it returns zero.  Always zero for renewals and
  // releases.
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
  // Sets pressing_, and updates the client's count of throttled renewals.
  void press(bool pressing);
  // Adjusts a take's delay so that one more request fits.
  std::chrono::nanoseconds fitted(std::chrono::nanoseconds delay,
                                  std::chrono::nanoseconds left,
                                  const dynamodb::Answer& answer) const;
  // Shortens the delay of a renewal or release to a part of the time left.
  std::chrono::nanoseconds pressed(std::chrono::nanoseconds delay,
                                   std::chrono::nanoseconds left,
                                   bool throttled) const;

  dynamodb::RetryBudget& budget_;
  const Call call_;
  dynamodb::Throttle::Turn turn_;
  bool pressing_ = false;  // This is a renewal that was throttled.
  dynamodb::Retry retry_;
  int at_once_ = 0;  // Answers that called for another request.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_PACE_HPP
