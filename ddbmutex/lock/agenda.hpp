// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Leases in the order in which something is due for them: a binary heap in
// which each lease knows its place, so that a change costs a few steps no
// matter how many leases there are.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_AGENDA_HPP
#define DDBMUTEX_AGENDA_HPP

#include <cstddef>
#include <memory>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/function_ref.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

struct HeldLease;

class Agenda {
 public:
  // A lease has one for each agenda that it may be on.
  struct Entry {
    bool planned() const { return when != BootTime::max(); }

    BootTime when = BootTime::max();  // max(): never.
    std::size_t place = 0;            // In the heap, while planned.
  };

  explicit Agenda(Entry HeldLease::*entry) : entry_(entry) {}

  // For this many leases set() needs no memory.
  void make_room(std::size_t leases);
  // Replaces what was set before.  REQUIRES: the lease outlives its entry.
  void set(HeldLease& held, BootTime when);

  // The soonest; max() if there is none.
  BootTime next() const { return size_ == 0 ? BootTime::max() : when(0); }
  // REQUIRES: there is one.
  HeldLease& first() const { return at(0); }

  // One of those that are due by then; null if none is wanted.
  using Wanted = sigv4::FunctionRef<bool(const HeldLease&)>;
  HeldLease* find_due(BootTime by, Wanted wanted) const {
    return find_due(by, wanted, 0);
  }

  // All of them: the soonest first, the others in any order.  Valid until
  // set().
  std::size_t size() const { return size_; }
  HeldLease& at(std::size_t place) const { return *heap_[place]; }

 private:
  BootTime when(std::size_t place) const;
  HeldLease* find_due(BootTime by, Wanted wanted, std::size_t place) const;
  void move(std::size_t to, HeldLease& held);
  void settle(std::size_t place, HeldLease& held);

  Entry HeldLease::*const entry_;
  // None is sooner than the one at (place - 1) / 2.
  std::unique_ptr<HeldLease*[]> heap_;
  std::size_t size_ = 0, room_ = 0;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_AGENDA_HPP
