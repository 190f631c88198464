// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// How an HTTP exchange ended, and what the server answered.
#ifndef DDBMUTEX_SIGV4_HTTP_ANSWER_HPP
#define DDBMUTEX_SIGV4_HTTP_ANSWER_HPP

#include <string>
#include <string_view>

#include "boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// How an exchange ended.
enum class Transport {
  under_way,
  complete,  // A whole answer of any HTTP status.
  // Name, connection, proxy or TLS handshake failed; or a certificate is not
  // valid yet, by this host's clock, which may be set soon.
  unreachable,
  bad_certificate,  // Of the server or a proxy; or our CA file is bad.
  broken,           // The connection failed, or did not carry HTTP.
  too_large,        // The answer exceeds HttpOptions::max_answer_bytes.
  timed_out,        // Exchange::end(timed_out) was called.
  cancelled,        // Exchange::end(cancelled) was called.
};

// Reads the header lines of an answer one by one.  Skips lines without a colon.
class HeaderLines {
 public:
  explicit HeaderLines(std::string_view headers) : rest_(headers) {}
  bool next();  // False after the last one.

  std::string_view name;   // In any case.
  std::string_view value;  // Trimmed.

 private:
  std::string_view rest_;
};

struct HttpAnswer {
  Transport transport = Transport::under_way;
  // False only if certainly no byte of the request left this process.
  bool sent = false;
  int status = 0;    // Of the final answer; 0 if its head is incomplete.
  std::string body;  // Empty unless the exchange is complete.
  // The header lines of the final answer as received, each with its line end,
  // without the status line and trailers.  Empty if its head is incomplete.
  std::string headers;
  std::string error;  // What went wrong, for people.
  // Shortly before the first byte was sent; the start of the exchange if none
  // was.
  BootTime sent_at{};
  // Shortly after the last byte was received, or the exchange ended.
  BootTime received_at{};

  // The trimmed value of the first header with that name, in any case.  Its
  // data() is null if there is no such header.
  std::string_view header(std::string_view name) const;
  // Makes it empty again.  Its texts keep their memory.
  void reset();
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_HTTP_ANSWER_HPP
