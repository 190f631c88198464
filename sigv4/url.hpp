// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// URLs of servers.
#ifndef DDBMUTEX_SIGV4_URL_HPP
#define DDBMUTEX_SIGV4_URL_HPP

#include <string>
#include <string_view>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// An absolute http or https URL in libcurl's spelling: the scheme in lower
// case, without the scheme's usual port, with a path.  Empty if `text` is not
// such a URL, or has a user, password, query, fragment or IPv6 zone, or a host
// that is not ASCII or has a percent sign.
std::string normal_url(const std::string& text);

// The parts of a URL that normal_url() returned; all empty if the URL is.
struct UrlParts {
  std::string_view scheme;     // "https"
  std::string_view authority;  // Host, and ":port" if there is one.
  std::string_view path;       // From the first '/'.
};
UrlParts parts_of(std::string_view url);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_URL_HPP
