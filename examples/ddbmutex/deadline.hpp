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
  Time term_at{};    // The command and its group get TERM,
  Time kill_at{};    // and KILL.
  Time lease_end{};  // 0: the lease is over, or it is not known when it ends.
};

// How long before the end of the lease KILL is sent: what a busy machine may
// take to send it.  A twentieth of `ttl`, 50 ms at the least, 2 s at the most,
// and never more than an eighth of a very short one.
inline Time margin_of(Time ttl) {
  const Time margin = std::clamp<Time>(ttl / 20, std::chrono::milliseconds(50),
                                       std::chrono::seconds(2));
  return std::min(margin, ttl / 8);
}

// The deadlines of a lease that ends then unless it is renewed.
inline Deadline deadline_of(Time end, Time ttl, Time grace) {
  const Time kill_at = end - margin_of(ttl);
  return {std::min(end - grace, kill_at), kill_at, end};
}

// How old a lease gets before it is renewed: half of it, or less if a long
// grace would leave too little time for the renewal.  The holder counts its
// lease short by an eighth at most, and the renewal has another eighth.
inline Time renewed_after(Time ttl, Time grace) {
  return std::min(ttl / 2, ttl - ttl / 8 - grace - ttl / 8);
}

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_DEADLINE_HPP
