// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keeps idle exchanges, with their connections, for the next requests.  Its
// exchanges share the address that answered last.
#ifndef DDBMUTEX_SIGV4_HTTP_POOL_HPP
#define DDBMUTEX_SIGV4_HTTP_POOL_HPP

#include <memory>
#include <vector>

#include "http.hpp"
#include "system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Thread safety: any thread may call any member.
class HttpPool {
 public:
  explicit HttpPool(const HttpOptions& options);

  // The exchange that was given back last, or a new one.
  std::unique_ptr<Exchange> take();
  // REQUIRES: nothing under way.  Needs no memory, because destructors call it.
  void give_back(std::unique_ptr<Exchange> exchange);
  // Closes the connections that are kept.
  void clear();

 private:
  const HttpOptions options_;
  Mutex mutex_;
  // The one given back last is at the end.  Has room for max_idle.
  std::vector<std::unique_ptr<Exchange>> idle_;  // GUARDED_BY(mutex_)
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_HTTP_POOL_HPP
