#include "http_pool.hpp"

#include <mutex>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

std::unique_ptr<Exchange> HttpPool::take() {
  std::unique_ptr<Exchange> exchange(warmest_.exchange(nullptr));
  if (exchange != nullptr) return exchange;
  {
    const std::lock_guard<Mutex> guard(mutex_);
    if (idle_ != nullptr) {
      exchange.swap(idle_);
      idle_.swap(exchange->next_);
      --idle_count_;
    }
  }
  return exchange ? std::move(exchange) : std::make_unique<Exchange>(options_);
}

// If there are too many, one is closed without the mutex, because closing may
// write to the network.
void HttpPool::give_back(std::unique_ptr<Exchange> exchange) {
  // It may hold a request that was not begun.
  exchange->headers().wipe();
  exchange->body().wipe();
  if (options_.max_idle == 0 || !exchange->is_usable()) return;
  exchange.reset(warmest_.exchange(exchange.release()));
  if (exchange == nullptr) return;
  const std::lock_guard<Mutex> guard(mutex_);
  if (idle_count_ + 1 >= options_.max_idle) return;
  exchange->next_.swap(idle_);
  idle_.swap(exchange);
  ++idle_count_;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
