// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Holds in the order in which something is due for them.
//
// A Hold enters two orders when it is made.  To move it later, within an order
// or to another one, allocates nothing.
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

// The lower rank comes first, and among equals the earlier time.
struct OrderKey {
  bool operator<(const OrderKey& other) const {
    return std::tie(rank, when) < std::tie(other.rank, other.when);
  }
  int rank = 0;
  BootTime when = BootTime::max();  // max(): nothing is due for it.
};

using Order = std::multimap<OrderKey, HoldPtr>;

// When the first is due; max() if there is none.
inline BootTime next_in(const Order& order) {
  return order.empty() ? BootTime::max() : order.begin()->first.when;
}

// Where a Hold is, in one of several orders.  enter() comes first, and nothing
// after leave().
class Place {
 public:
  const OrderKey& key() const { return at_->first; }
  bool is_in(const Order& order) const { return in_ == &order; }

  // Allocates the node of the order.
  void enter(Order& order, HoldPtr hold) {
    at_ = order.emplace(OrderKey(), std::move(hold));
    in_ = &order;
  }
  void move(Order& order, OrderKey key) {
    Order::node_type node = in_->extract(at_);
    node.key() = key;
    at_ = order.insert(std::move(node));
    in_ = &order;
  }
  // Whoever drops the last pointer destroys the Hold.
  HoldPtr leave() {
    Order::node_type node = in_->extract(at_);
    in_ = nullptr;
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
