// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// How a request gets to its server.  These decisions need no libcurl, so that
// the simulated world makes the same ones.
//
// A connection that works is worth more than a new one, which may be impossible
// to make: the host name may not resolve, a proxy may refuse, or the CA file
// may have changed.  So a kept connection is only closed once a newer one has
// carried a request.  If a name does not resolve, the address that answered
// last is tried; TLS still verifies the host name.
#ifndef DDBMUTEX_SIGV4_HTTP_WAY_HPP
#define DDBMUTEX_SIGV4_HTTP_WAY_HPP

#include <chrono>
#include <optional>
#include <string>

#include "boot_clock.hpp"
#include "system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

enum class Way {
  usual,         // On the kept connection; on a new one if there is none.
  fresh,         // On a new connection.  The kept one is old, and stays.
  last_address,  // On a new connection to the address that answered last.
};

// The address that answered last.  Thread safety: any thread may call any
// member.
class LastAddress {
 public:
  // Does nothing if memory runs out.
  void remember(const std::string& url, const std::string& address);
  // Empty if no server of that URL has answered.
  std::string of(const std::string& url) const;

 private:
  mutable Mutex mutex_;
  std::string url_;      // GUARDED_BY(mutex_)
  std::string address_;  // GUARDED_BY(mutex_)
};

// What is known of the connection that an exchange keeps.
class KeptConnection {
 public:
  explicit KeptConnection(std::chrono::nanoseconds max_age)
      : max_age_(max_age) {}

  // The server may have closed it, nevertheless.
  bool is_open() const { return replace_at_.has_value(); }

  // How a request begins.
  Way first_way(BootTime now) const;
  // How it goes on when a way has failed before the request was sent; empty if
  // it does not.  A connection that could not be replaced counts as new.
  std::optional<Way> next_way(Way failed, BootTime now, bool resolved,
                              bool knows_address);
  // A request was answered.
  void answered(BootTime now, bool on_new_connection);
  // A request has failed on that way, and its connection is closed.  After
  // `fresh`, the kept one is still there, and serves the next request.
  void failed(Way way, BootTime now);

 private:
  void count_as_new(BootTime now);

  const std::chrono::nanoseconds max_age_;
  std::optional<BootTime> replace_at_{};
  BootTime used_at_{};
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_HTTP_WAY_HPP
