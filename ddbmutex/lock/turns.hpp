// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Turns between hosts.  Waiters look at a lock now and then.  A host that
// releases it and asks again at once would always win.
//
// A waiter that has missed a turn says so in the row.  The holder learns of it
// with the answer to its release, and leaves the next turn to others: it does
// not ask for the lock for one to two times longest_poll.  If nobody waits,
// that costs no request.
#ifndef DDBMUTEX_TURNS_HPP
#define DDBMUTEX_TURNS_HPP

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/system.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// What one waiter has seen of the lock's holders.
//
// Thread safety: one thread at a time.
class MissedTurns {
 public:
  // `row`: another's, or free.  Counts a turn if the holder has changed since
  // the last call.  Returns whether to tell the new holder that a host waits.
  bool must_tell(const Row& row);
  // The longest pause of the waiter between two looks.  Whoever has missed many
  // turns looks more often, so that nobody waits long by bad luck.
  std::chrono::nanoseconds longest_pause(std::chrono::nanoseconds usual) const;

 private:
  std::string holder_;  // Its uuid.  Empty: none was seen.
  int missed_ = 0;
};

// The locks of a table that this process leaves to other hosts for a while.
//
// Thread safety: any thread may call any member.
class TurnsOfOthers {
 public:
  // Does nothing if memory runs out.
  void leave(const RowTarget& place, BootTime until);
  // A time in the past if the lock is not left to others.
  BootTime left_until(const RowTarget& place) const;

 private:
  using Key = std::pair<std::string, std::string>;

  void forget_past();

  mutable sigv4::Mutex mutex_;
  std::map<Key, BootTime> left_until_;  // GUARDED_BY(mutex_)
  // The size of left_until_ after the last forget_past().  GUARDED_BY(mutex_)
  std::size_t last_size_ = 0;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TURNS_HPP
