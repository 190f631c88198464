// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A binary heap of pointers.
#include "agenda.hpp"

#include <algorithm>

#include "held_lease.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

void Agenda::set(HeldLease& held, BootTime when) {
  Entry& entry = held.*entry_;
  if (entry.when == when) return;
  const bool was_planned = entry.planned();
  if (!was_planned) {
    make_room(size_ + 1);
    entry.place = size_++;
  }
  entry.when = when;
  if (entry.planned()) {
    settle(entry.place, held);
  } else if (was_planned) {
    HeldLease& last = *heap_[--size_];
    if (&last != &held) settle(entry.place, last);
  }
}

void Agenda::make_room(std::size_t leases) {
  if (room_ >= leases) return;
  std::unique_ptr<HeldLease*[]> more(new HeldLease*[2 * leases]);
  std::copy(heap_.get(), heap_.get() + size_, more.get());
  heap_.swap(more);
  room_ = 2 * leases;
}

BootTime Agenda::when(std::size_t place) const {
  return (heap_[place]->*entry_).when;
}

// Looks there and below.  Whatever is below one that is not due is not due.
HeldLease* Agenda::find_due(BootTime by, Wanted wanted,
                            std::size_t place) const {
  if (place >= size_ || when(place) > by) return nullptr;
  if (wanted(at(place))) return &at(place);
  HeldLease* const found = find_due(by, wanted, 2 * place + 1);
  return found != nullptr ? found : find_due(by, wanted, 2 * place + 2);
}

void Agenda::move(std::size_t to, HeldLease& held) {
  heap_[to] = &held;
  (held.*entry_).place = to;
}

// Moves it from that place up or down to where it belongs.
void Agenda::settle(std::size_t place, HeldLease& held) {
  const BootTime own = (held.*entry_).when;
  while (place > 0 && own < when((place - 1) / 2)) {
    move(place, *heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  for (std::size_t next; (next = 2 * place + 1) < size_; place = next) {
    if (next + 1 < size_ && when(next + 1) < when(next)) ++next;
    if (own <= when(next)) break;
    move(place, *heap_[next]);
  }
  move(place, held);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
