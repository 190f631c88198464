// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "http_way.hpp"

#include <mutex>

#include "memory.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// Servers and NAT gateways drop idle connections, some without a word.
constexpr std::chrono::minutes kMaxIdle{2};

}  // namespace

void LastAddress::remember(const std::string& url, const std::string& address) {
  const std::lock_guard<Mutex> guard(mutex_);
  if (url == url_ && address == address_) return;
  address_.clear();
  try_with_memory([&] {
    url_ = url;
    address_ = address;
  });
}

std::string LastAddress::of(const std::string& url) const {
  const std::lock_guard<Mutex> guard(mutex_);
  return url == url_ ? address_ : std::string();
}

Way KeptConnection::first_way(BootTime now) const {
  if (!is_open()) return Way::usual;
  const bool is_old = now >= *replace_at_ || now - used_at_ >= kMaxIdle;
  return is_old ? Way::fresh : Way::usual;
}

std::optional<Way> KeptConnection::next_way(Way failed, BootTime now,
                                            bool resolved, bool knows_address) {
  if (failed == Way::fresh) {
    count_as_new(now);
    return Way::usual;
  }
  if (failed == Way::last_address || resolved || !knows_address) {
    return std::nullopt;
  }
  return Way::last_address;
}

void KeptConnection::answered(BootTime now, bool on_new_connection) {
  if (on_new_connection) replace_at_ = now + max_age_;
  used_at_ = now;
}

void KeptConnection::failed(Way way, BootTime now) {
  if (way == Way::fresh) {
    count_as_new(now);
  } else {
    replace_at_.reset();
  }
}

void KeptConnection::count_as_new(BootTime now) {
  replace_at_ = now + max_age_;
  used_at_ = now;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
