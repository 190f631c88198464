// Holds a kept lock that was just taken for a while, and logs it with its
// fencing token (tokens.hpp).
#ifndef DDBMUTEX_TESTS_CLAIMS_WITNESS_HPP
#define DDBMUTEX_TESTS_CLAIMS_WITNESS_HPP

#include <time.h>

#include <chrono>
#include <string>
#include <thread>

#include "ddbmutex.hpp"
#include "tests/claims/shared_count.hpp"
#include "tests/claims/tokens.hpp"
#include "tests/support/true_clock.hpp"

namespace claims {

enum class Held { to_the_end, lost, badly };  // Badly: no log, or a wrong one.

inline nanoseconds boot_time() { return tests::true_time(CLOCK_BOOTTIME); }

// The clock first: what is asked after it was true then too, since a lock that
// is lost does not come back.
inline Held hold(ddbmutex::DdbMutex& mutex, int lock,
                 std::chrono::microseconds time, TokenLog& log,
                 SharedCount& count) {
  const nanoseconds begin = boot_time();
  const nanoseconds until = begin + mutex.remaining();
  const Token token = mutex.fencing_token();
  const bool ours = until > begin;
  const bool written =
      ours ? log.granted(lock, token, begin, until) : log.given(lock, token);
  count.add();  // What is counted is in a log.
  if (!written) return Held::badly;
  if (!ours) return Held::lost;
  std::this_thread::sleep_for(time);
  const nanoseconds end = boot_time();
  const bool still_ours = mutex.owns_lock();
  if (mutex.fencing_token() != token) {
    log.failed("lock " + std::to_string(lock) + " changed its token from " +
               std::to_string(token) + " to " +
               std::to_string(mutex.fencing_token()));
    return Held::badly;
  }
  if (!log.ended(lock, token, still_ours ? end : until)) return Held::badly;
  return still_ours ? Held::to_the_end : Held::lost;
}

}  // namespace claims

#endif  // DDBMUTEX_TESTS_CLAIMS_WITNESS_HPP
