// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "http_pool.hpp"

#include <mutex>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

HttpOptions with_address(HttpOptions options) {
  options.last_address = std::make_shared<LastAddress>();
  return options;
}

}  // namespace

HttpPool::HttpPool(const HttpOptions& options)
    : options_(with_address(options)) {
  idle_.reserve(options.max_idle);
}

std::unique_ptr<Exchange> HttpPool::take() {
  {
    const std::lock_guard<Mutex> guard(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Exchange> exchange = std::move(idle_.back());
      idle_.pop_back();
      return exchange;
    }
  }
  return std::make_unique<Exchange>(options_);
}

void HttpPool::clear() {
  for (;;) {
    std::unique_ptr<Exchange> last;  // Destroyed without the mutex.
    const std::lock_guard<Mutex> guard(mutex_);
    if (idle_.empty()) return;
    last = std::move(idle_.back());
    idle_.pop_back();
  }
}

// An exchange that is not kept is destroyed after the mutex is unlocked,
// because closing a connection may write to the network.
void HttpPool::give_back(std::unique_ptr<Exchange> exchange) {
  // It may hold a request that was never started.
  exchange->headers().wipe();
  exchange->body().wipe();
  if (options_.max_idle == 0 || !exchange->is_usable()) return;
  const std::lock_guard<Mutex> guard(mutex_);
  if (idle_.size() < options_.max_idle) {
    idle_.push_back(std::move(exchange));
  } else {
    exchange.swap(idle_.back());  // The newer connection is kept.
  }
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
