// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "process.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

std::atomic<OnePerProcess::Node*> OnePerProcess::abandoned_{nullptr};

OnePerProcess::Node* OnePerProcess::find() const noexcept {
  Node* const node = node_.load(std::memory_order_acquire);
  return node != nullptr && node->process == this_process() ? node : nullptr;
}

OnePerProcess::Node* OnePerProcess::install(Node* fresh) {
  Node* seen = node_.load(std::memory_order_acquire);
  while (seen == nullptr || seen->process != fresh->process) {
    if (!node_.compare_exchange_weak(seen, fresh)) continue;
    let_go(seen);
    return fresh;
  }
  fresh->destroy(fresh);  // Another thread was faster.
  return seen;
}

void OnePerProcess::let_go(Node* node) {
  if (node == nullptr) return;
  if (node->process == this_process()) {
    return node->destroy(node);
  }
  node->next = abandoned_.load();
  while (!abandoned_.compare_exchange_weak(node->next, node)) {
  }
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
