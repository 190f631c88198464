// Exchanges that wait for the next request, with their connections.
#ifndef DDBMUTEX_SIGV4_HTTP_POOL_HPP
#define DDBMUTEX_SIGV4_HTTP_POOL_HPP

#include <atomic>
#include <cstddef>
#include <memory>

#include "http.hpp"
#include "system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Exchanges with their kept-alive connections, for use by any thread.
class HttpPool {
 public:
  explicit HttpPool(const HttpOptions& options) : options_(options) {}
  ~HttpPool() { delete warmest_.load(); }
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;

  // The one given back last, whose connection is the warmest, or a new one. Any
  // thread.
  std::unique_ptr<Exchange> take();
  // REQUIRES: nothing under way.  Needs no memory, because destructors call it.
  void give_back(std::unique_ptr<Exchange> exchange);

 private:
  const HttpOptions options_;
  // The one given back last, without the mutex: often it is the only one.
  std::atomic<Exchange*> warmest_{nullptr};
  Mutex mutex_;
  // Both: GUARDED_BY(mutex_)
  std::unique_ptr<Exchange> idle_;  // The others, as a list.
  std::size_t idle_count_ = 0;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_HTTP_POOL_HPP
