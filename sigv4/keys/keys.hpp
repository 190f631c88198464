// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The keys that requests are signed with.  A thread that does nothing else
// fetches them when they are first needed, and again before they expire.
// Meanwhile the old keys stay in use.
//
//   Keys keys(chain_keys({}), utc_now, log);
//   keys.await(deadline, waker);             // If the caller may wait.
//   const Keys::Current current = keys.now();
//   if (current.outcome->state == KeyOutcome::State::found) sign(...);
//
// A fetch is due when a third of the keys' lifetime is left, or 15 minutes if
// that is less, and somewhat earlier at random.  The next request begins it.
// If it fails, it is repeated, ever less often; a fetch that hangs is abandoned
// and repeated once.  Meanwhile the old keys stay in use.
//
// Keys are used until they expire.  If there are no new ones then, they are
// used for as long as the service accepts them.  The host's clock may be wrong,
// and AWS lets keys live on while EC2's metadata service fails.  Keys that the
// service refuses are never used again.
//
// Thread safety: any thread may call any member.
#ifndef DDBMUTEX_SIGV4_KEYS_HPP
#define DDBMUTEX_SIGV4_KEYS_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "../boot_clock.hpp"
#include "../log.hpp"
#include "../thread.hpp"
#include "../waiting.hpp"
#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

class Keys {
 public:
  static constexpr std::chrono::minutes kLongestFetch{2};

  // Returns seconds since 1970, for Fetch.  Called in the threads that call
  // this object.
  using UtcNow = std::function<std::int64_t()>;
  Keys(const KeySourcePtr& source, UtcNow utc_now, const LogPtr& log = {},
       std::chrono::nanoseconds longest_fetch = kLongestFetch);
  // Stops a fetch, and waits for its thread until the time of end_by(), or for
  // two seconds.  A thread that takes longer is detached.
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  using OutcomePtr = std::shared_ptr<const KeyOutcome>;
  struct Current {
    OutcomePtr outcome;          // Keys, or why there are none; never null.
    bool being_fetched = false;  // There are none, but a fetch is in progress.
  };
  // Does not wait.  Begins a fetch if one is due.
  Current now(BootTime time = BootClock::now());

  // These lock no mutex.  Whether there certainly are keys that may be used.
  bool certainly_usable(BootTime now) const;
  // Whether now() would return the same keys as before, and begin no fetch.
  bool are_current(const KeyOutcome& keys, BootTime now) const;

  // Waits for keys if there are none.  Begins a fetch if the last one has
  // failed, or if there was none.  Returns at `deadline`, or when the fetch
  // ends or `waker` is woken.  False if there are no keys.
  bool await(BootTime deadline, CallWaker& waker);

  // The service says that these have expired or are unknown.  They are not used
  // again, and others are fetched.  False if there will be no others: the
  // source has only these, or they were fetched only just now.
  bool replace_refused(const OutcomePtr& keys);

  // Until when the destructor may wait.
  void end_by(BootTime time);

 private:
  struct Core;  // Outlives the Keys while a thread is in it.

  const std::shared_ptr<Core> core_;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_KEYS_HPP
