// How an HTTP exchange ended, and what the server answered.
#ifndef DDBMUTEX_SIGV4_HTTP_ANSWER_HPP
#define DDBMUTEX_SIGV4_HTTP_ANSWER_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// How an exchange ended.
enum class Transport {
  under_way,
  complete,         // A whole answer of any HTTP status.
  unreachable,      // Name, connection, proxy or TLS handshake failed.
  bad_certificate,  // The server's or proxy's, or our CA file, is no good.
  broken,           // The connection died, or spoke no HTTP.
  too_large,        // The answer is longer than it may be.
  timed_out,        // Exchange::end(timed_out) was called.
  cancelled,        // Exchange::end(cancelled) was called.
};

// Walks the lines of a head, which keep their line ends.  Skips lines without a
// colon.
class HeaderLines {
 public:
  explicit HeaderLines(std::string_view headers) : rest_(headers) {}
  bool next();  // False behind the last.

  std::string_view name;   // In any case.
  std::string_view value;  // Trimmed.

 private:
  std::string_view rest_;
};

struct HttpAnswer {
  Transport transport = Transport::under_way;
  // False only if certainly no byte of the request left this process.
  bool sent = false;
  int status = 0;    // Of the final answer; 0 if its whole head did not come.
  std::string body;  // Empty unless complete: a part of one helps nobody.
  // The final answer's header lines as received, each with its line end; no
  // status line, no trailers.  Empty unless its whole head came.
  std::string headers;
  std::string error;  // What went wrong, for people.
  // Of this exchange, heads and bodies as HTTP has them.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  // On the boot clock: a moment before the first byte left (the start of the
  // exchange if none did), and one after the last byte came or the exchange
  // ended.
  BootTime sent_at{};
  BootTime received_at{};

  // The value of the first header of that name, any case, trimmed; a view of
  // nothing, at null, if there is none.
  std::string_view header(std::string_view name) const;
  // Makes it empty again.  Its texts keep their memory.
  void reset();
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_HTTP_ANSWER_HPP
