// When a command has to end so that it is gone before its lease is over.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_DEADLINE_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_DEADLINE_HPP

#include <time.h>

#include <algorithm>
#include <chrono>

namespace command {

// Since the machine started, suspend included.
using Time = std::chrono::nanoseconds;

// Safe after a fork and in a signal handler.
inline Time now() {
  timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + Time(time.tv_nsec);
}

struct Deadline {
  Time term_at{};  // The group gets TERM,
  Time kill_at{};  // and KILL.
};

// How long before the end of the lease KILL is sent: what a busy machine may
// take to send it.  A twentieth of `ttl`, 50 ms at the least, 2 s at the most,
// and never more than an eighth of a very short one.
inline Time margin_of(Time ttl) {
  const Time margin = std::clamp<Time>(ttl / 20, std::chrono::milliseconds(50),
                                       std::chrono::seconds(2));
  return std::min(margin, ttl / 8);
}

// Of a lease that ends then, if it is not renewed.
inline Deadline deadline_of(Time end, Time ttl, Time grace) {
  const Time kill_at = end - margin_of(ttl);
  return {std::min(end - grace, kill_at), kill_at};
}

// How old a lease gets before it is renewed: half of it, but sooner by what a
// long grace leaves too little time for the renewal.  Its holder counts it
// short by an eighth at the most, and as much is left for the renewal.
inline Time renewed_after(Time ttl, Time grace) {
  return std::min(ttl / 2, ttl - ttl / 8 - grace - ttl / 8);
}

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_DEADLINE_HPP
