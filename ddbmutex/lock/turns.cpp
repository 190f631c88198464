// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Counts the turns that a waiter misses, and remembers which locks are left to
// other hosts.
#include "turns.hpp"

#include <iterator>
#include <mutex>

#include "../../sigv4/memory.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

namespace {

constexpr int kManyTurns = 8;
constexpr int kTimesAsOften = 4;  // A waiter looks after that many turns.

}  // namespace

// Only this library's holders read that a host waits, and only they store a
// lease.  A row that was released has no holder.
bool MissedTurns::must_tell(const Row& row) {
  if (row.kind != Row::Kind::record) return false;
  const bool changed = !holder_.empty() && holder_ != row.uuid;
  // If memory runs out, the holder counts as not seen.
  if (!sigv4::try_with_memory([&] { holder_ = row.uuid; })) holder_.clear();
  if (changed) ++missed_;
  const bool listens = row.lease && row.expires > ServiceTime::zero();
  return changed && listens && !row.waited_for;
}

std::chrono::nanoseconds MissedTurns::longest_pause(
    std::chrono::nanoseconds usual) const {
  return missed_ < kManyTurns ? usual : usual / kTimesAsOften;
}

void TurnsOfOthers::leave(const RowTarget& place, BootTime until) {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  forget_past();
  sigv4::try_with_memory([&] {
    left_until_[{place.key, place.sort_value}] = until;
  });
}

BootTime TurnsOfOthers::left_until(const RowTarget& place) const {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  if (left_until_.empty()) return BootTime::min();  // The usual case.
  const auto found = left_until_.find({place.key, place.sort_value});
  return found == left_until_.end() ? BootTime::min() : found->second;
}

// Does nothing until there are twice as many as after the last time, so that
// leave() stays fast.
void TurnsOfOthers::forget_past() {
  if (left_until_.size() < 2 * last_size_) return;
  const BootTime now = BootClock::now();
  for (auto one = left_until_.begin(); one != left_until_.end();) {
    one = one->second <= now ? left_until_.erase(one) : std::next(one);
  }
  last_size_ = left_until_.size();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
