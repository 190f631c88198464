// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Pauses between attempts.  Their upper bound doubles with each failure.  Each
// pause is random, so that clients that fail together do not retry together.
//
//   Backoff backoff;
//   while (!attempt()) {
//     sleep(backoff.next({milliseconds(25), seconds(5)}, random_share()));
//   }
//
// Thread safety: a Backoff is like an int; any thread may call the functions.
#ifndef DDBMUTEX_SIGV4_BACKOFF_HPP
#define DDBMUTEX_SIGV4_BACKOFF_HPP

#include <chrono>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Uniform over [0, 1), from the operating system.
double random_share();

// A time from `least` * `longest` to `longest`, both included.  Uniform if
// `share` is uniform over [0, 1).
std::chrono::nanoseconds jittered(std::chrono::nanoseconds longest,
                                  double least, double share);

class Backoff {
 public:
  struct Limits {
    std::chrono::nanoseconds first;  // The upper bound of the first pause.
    std::chrono::nanoseconds longest;
    double least = 0;  // The lower bound, as a share of the upper one.
  };

  // The next pause.  The limits may differ from those of earlier calls: the
  // bound is `first`, doubled once for each earlier call.
  std::chrono::nanoseconds next(const Limits& limits, double share);
  // Starts again with the first pause.
  void reset() { failures_ = 0; }

 private:
  int failures_ = 0;  // In a row.
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_BACKOFF_HPP
