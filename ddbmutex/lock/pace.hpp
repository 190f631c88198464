// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// When requests are sent: the delays of the retries of one attempt, and how
// fast a table's renewals follow each other.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_PACE_HPP
#define DDBMUTEX_PACE_HPP

#include <chrono>
#include <optional>

#include "../../sigv4/boot_clock.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/retry.hpp"
#include "protocol.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Pace {
 public:
  Pace(dynamodb::RetryBudget& budget, Call call);

  // Must be called for every answer.
  void receive(const dynamodb::Answer& answer);
  // How long to wait after an answer that decided nothing; no value if its
  // fault is final.  `left` is the time until the attempt becomes useless.  If
  // the result is `left` or more, another request would come too late.
  std::optional<std::chrono::nanoseconds> delay(const dynamodb::Answer& answer,
                                                std::chrono::nanoseconds left);

 private:
  // Adjusts a take's delay so that one more request fits.
  std::chrono::nanoseconds fitted(std::chrono::nanoseconds delay,
                                  std::chrono::nanoseconds left,
                                  const dynamodb::Answer& answer) const;
  // Shortens the delay of a renewal or release to a part of the time left.
  std::chrono::nanoseconds shortened(std::chrono::nanoseconds delay,
                                     std::chrono::nanoseconds left,
                                     bool throttled) const;

  dynamodb::RetryBudget& budget_;
  const Call call_;
  dynamodb::Retry retry_;
  int at_once_ = 0;  // Answers that called for another request.
};

// The rate limit of a table's renewals, a token bucket.  `needed` is how many
// renewals per second all leases need while none fails.  The limit is above
// that, so a backlog soon disappears, however many leases there are.
class RenewalRate {
 public:
  // When the renewal of that claim may begin.
  BootTime begins_at(BootTime claim_end, std::chrono::nanoseconds ttl) const;
  // From then on no limit holds it up: its lease is nearly over.
  static BootTime urgent_at(BootTime claim_end, std::chrono::nanoseconds ttl);

  // A renewal begins.
  void count(BootTime now, double needed);
  // A renewal that was counted has failed.  It must be sent again, so it does
  // not count.
  void uncount(double needed);

 private:
  BootTime next_{};  // When the next one may begin.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_PACE_HPP
