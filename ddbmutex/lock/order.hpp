// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Holds, sorted by when something is due for them.
//
// Each Hold has a node in each of two orders.  The nodes are allocated when the
// Hold is made.  To move them, also to other orders, needs no memory.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_ORDER_HPP
#define DDBMUTEX_ORDER_HPP

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "../../sigv4/boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

struct Hold;
using HoldPtr = std::shared_ptr<Hold>;

constexpr BootTime kNever = BootTime::max();

// The lower rank comes first, and among equals the earlier time.
struct OrderKey {
  bool operator<(const OrderKey& other) const {
    return std::tie(rank, when) < std::tie(other.rank, other.when);
  }
  int rank = 0;
  BootTime when = kNever;
};
constexpr OrderKey kNothingDue{};

using Order = std::multimap<OrderKey, HoldPtr>;

// When the first is due; kNever if nothing is.  That is the earliest time if
// all have one rank, or if those of lower ranks are due already.
inline BootTime next_in(const Order& order) {
  return order.empty() ? kNever : order.begin()->first.when;
}

// Where a Hold stands in an order.  Call enter() first, and nothing after
// leave().
class Place {
 public:
  const OrderKey& key() const { return at_->first; }
  bool is_in(const Order& order) const { return in_ == &order; }

  // Allocates the node of the order.
  void enter(Order& order, HoldPtr hold) {
    at_ = order.emplace(kNothingDue, std::move(hold));
    in_ = &order;
  }
  void move(Order& order, OrderKey key) {
    Order::node_type node = in_->extract(at_);
    node.key() = key;
    at_ = order.insert(std::move(node));
    in_ = &order;
  }
  // Returns the order's pointer, which may be the last one to the Hold.
  HoldPtr leave() {
    Order::node_type node = in_->extract(at_);
    return std::move(node.mapped());
  }

 private:
  Order* in_ = nullptr;
  Order::iterator at_{};
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ORDER_HPP
