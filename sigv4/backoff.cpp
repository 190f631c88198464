// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The only place that doubles a pause or makes one random.
#include "backoff.hpp"

#include <cstdint>

#include "system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::nanoseconds;

double random_share() {
  std::uint32_t bits;
  fill_with_randomness(&bits, sizeof bits);
  return bits * 0x1p-32;
}

nanoseconds jittered(nanoseconds longest, double least, double share) {
  const nanoseconds shortest(static_cast<nanoseconds::rep>(
      least * static_cast<double>(longest.count())));
  const double range = static_cast<double>((longest - shortest).count()) + 1;
  return shortest + nanoseconds(static_cast<nanoseconds::rep>(share * range));
}

nanoseconds Backoff::next(const Limits& limits, double share) {
  nanoseconds bound = limits.first;
  for (int i = 0; i < failures_ && bound < limits.longest; ++i) {
    // `longest` may be near the greatest time there is.
    bound = bound < limits.longest / 2 ? 2 * bound : limits.longest;
  }
  ++failures_;
  return sigv4::jittered(bound, limits.least, share);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
