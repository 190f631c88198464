// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Base64 (RFC 4648, section 4), the encoding of binary values in DynamoDB's
// JSON.
//
//   base64_encode("\x01\x02")  // "AQI="
//   base64_decode("AQI=")      // the two bytes
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_SIGV4_BASE64_HPP
#define DDBMUTEX_SIGV4_BASE64_HPP

#include <optional>
#include <string>
#include <string_view>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// REQUIRES: no more than 1 GiB.
std::string base64_encode(std::string_view bytes);

// Nothing unless base64_encode() could have made the text: it has no blanks and
// no line breaks, its padding is complete, and the unused bits before it are
// zero.  Nothing for more than 1 GiB.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_BASE64_HPP
