// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Holds, sorted by when something is due for them.
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

constexpr BootTime kNever = BootTime::max();

// The lower rank comes first, and among equals the earlier time.
struct OrderKey {
  bool operator<(const OrderKey& other) const {
    return std::tie(rank, when) < std::tie(other.rank, other.when);
  }
  // By default nothing is due.
  int rank = 0;
  BootTime when = kNever;
};

using Order = std::multimap<OrderKey, HoldPtr>;

// When the first is due.
inline BootTime next_in(const Order& order) {
  return order.empty() ? kNever : order.begin()->first.when;
}

// The place of a Hold in an order.  Call enter() first, and nothing after
// leave().
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
