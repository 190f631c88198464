// One HTTP exchange at a time on a kept-alive connection, with one deadline,
// an end that another thread can bring about, and a clear answer to the
// question "may the server have got it?".  Nothing else sends with libcurl.
//
// Each Exchange is an easy handle in a small multi handle of its own, so the
// connection stays with it, and a thread may carry on what another began.
// drive() in waiting.hpp moves any number of them forward with one poll(2).
//
// libcurl sends a POST again, silently, when a reused connection dies before
// the first byte of an answer (Curl_retry_request in lib/transfer.c).  For a
// conditional write that is a second application nobody knows of, so the
// second sending is refused here and the exchange ends as `broken`.
//
// An answer that arrived before its request was sent is ignored, for example if
// a server answers twice: the connection is closed, and the request is sent on
// a new one.  We cannot recognise a stray answer that arrives after the request
// was begun, in the last TLS record of the previous answer, or directly after a
// TLS handshake.
//
// Requests are of HTTP/1.1.  No redirect is followed, no content coding is
// asked for, and TLS is 1.2 or later and always verified.  When an exchange has
// ended, our copies of the request are wiped, because it may contain a token,
// and so is the part of libcurl's buffer in which a body arrived.  The buffers
// that libcurl sends from, and those of OpenSSL, are freed without being wiped.
#ifndef DDBMUTEX_SIGV4_HTTP_HPP
#define DDBMUTEX_SIGV4_HTTP_HPP

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "boot_clock.hpp"
#include "http_answer.hpp"
#include "text.hpp"
#include "waiting.hpp"

struct Curl_URL;
struct curl_slist;

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct HttpOptions {
  // PEM file of the CAs that vouch for servers and proxies; empty: libcurl's
  // default.
  std::string ca_file;
  // Whether HTTPS_PROXY, http_proxy, ALL_PROXY and NO_PROXY count.
  bool use_proxies = true;
  // The size limit of an answer's body; that of its headers is 64 KiB.  A
  // longer answer ends the exchange as `too_large`.  So does one that takes
  // more than twice max_answer_bytes plus 128 KiB on the wire (chunk
  // extensions).  More than 128 KiB before the request (TLS handshakes, a
  // proxy's answer) end it as `unreachable`.  The kernel counts the bytes on
  // the wire, since Linux 4.1.
  std::size_t max_answer_bytes = 1 << 20;
  // Idle exchanges beyond this number are closed instead of kept.
  std::size_t max_idle = 32;
  // For name, connection, proxy and TLS handshakes, however much is sent to us
  // meanwhile; passing it is `unreachable`.  An address that does not answer is
  // given up after half of what is left (if that is more than 600 ms), so the
  // next one of that name gets its chance.  Who has less time for an exchange
  // says so: connect_within().
  std::chrono::milliseconds connect_timeout{2000};
};

enum class Method { post, get, put };

// Used by one thread at a time; that may be another one from call to call.
class Exchange {
 public:
  explicit Exchange(const HttpOptions& options);
  // Ends what is under way.  Neither this nor end() waits for a resolver that
  // hangs (with libcurl before 7.87 both do).
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // What is to be sent, written before start(): whole headers, each with a '\n'
  // behind, all there are but Host, Content-Length and what libcurl must add
  // (none of Accept, Expect, User-Agent); and the body, none with get.  Their
  // memory serves for the next exchange too.  REQUIRES: nothing under way, and
  // at most 20 headers.
  Text& headers() noexcept { return headers_; }
  Text& body() noexcept { return body_; }

  // Begins to send, `now`; replaces the answer of the exchange before.
  // REQUIRES: nothing under way.
  void start(const std::string& url, BootTime now,
             Method method = Method::post);
  // For this exchange, if that is less than connect_timeout.  REQUIRES: called
  // after start(), before drive().
  void connect_within(std::chrono::nanoseconds time);

  bool under_way() const noexcept { return under_way_; }
  // True once the request may have begun to leave this process.
  bool sent() const noexcept { return answer_.sent; }

  // Ends what is under way as `timed_out` or `cancelled`; the connection is
  // closed.  Nothing happens if nothing is under way.
  void end(Transport why);

  // False if it must not serve another request: one that memory ran out for
  // might fail for ever.
  bool is_usable() const { return is_made() && !spent_; }

  // REQUIRES: start() was called.  Complete once under_way() is false.
  const HttpAnswer& answer() const noexcept { return answer_; }
  HttpAnswer& answer() noexcept { return answer_; }

  // -- For drive() alone --
  // When act_if_due() has something to do.
  BootTime next_due() const { return std::min(due_, stall_check_); }
  // Does what is due.  May end the exchange.
  void act_if_due(BootTime now);
  // Adds the descriptors that libcurl waits for.
  void prepare_poll(BootTime now, std::vector<pollfd>& fds);
  // Acts on what poll(2) has seen of them, and returns the first of the next
  // exchange's.  May end the exchange.
  const pollfd* act_on(const pollfd* seen);
  // Memory for the descriptors of all exchanges that are driven with this one.
  std::vector<pollfd>& polled_fds() { return polled_fds_; }

 private:
  // Why one of our callbacks has made libcurl give up.
  enum class Stop { none, too_much, too_slow, spoke_first, no_memory };
  // What has come of the answer's head: nothing, or nothing since a whole
  // interim one (1xx); a part of an interim or of the final one; all of it.
  enum class Head { none, interim, final, complete };

  struct Progress {
    bool connects = false;  // A connection was, or is being, made.
    Stop stopped = Stop::none;
    Head head = Head::none;
    std::size_t head_bytes = 0;  // Of all heads.
    unsigned looks = 0;          // How often goes_too_far() was called.
    // Bytes that the connection had received when this exchange began, or soon
    // after.
    std::optional<std::uint64_t> received_before{};
  };

  struct Ending {
    Transport transport;
    const char* why;
    const char* what = "";  // Before `why`.
  };

  bool is_made() const {
    return multi_ != nullptr && easy_ != nullptr && parsed_url_ != nullptr &&
           has_options_;
  }
  // In http_setup.cpp.
  bool set_options(const HttpOptions& options);
  void set_callbacks();

  void set_url(const std::string& url);
  void set_method(Method method);
  void set_time_to_connect(std::chrono::milliseconds time);
  void link_headers();

  void act(int fd, int events);
  void after_action(int multi_code, int running);
  void take_result();
  Ending ending_of_stop() const;
  Ending ending_of_error(int code) const;
  void connect_anew();
  void finish(const Ending& ending);
  void report(const Ending& ending);

  // What libcurl calls.  False, or -1: it is to give up.
  bool stop(Stop why);
  bool take_header_line(std::string_view line);
  bool take_body(char* data, std::size_t size);
  bool may_send();
  int open_socket(int family, int type, int protocol);
  int close_socket(int fd);
  bool watch_socket(int fd, int what);
  void set_timer(long wait_ms);

  std::size_t size_of_body(std::size_t so_far) const;
  bool has_spoken() const;

  // In http_limits.cpp.
  void set_limits();
  void check_limits(bool check);
  bool goes_too_far();
  bool is_flooded();

  // These come before the handles, which only the destructor frees, because
  // allocating them may throw.
  const std::unique_ptr<curl_slist[]> lines_;  // The headers, for libcurl.
  std::vector<pollfd> watched_;                // What libcurl waits for.
  std::vector<pollfd> polled_fds_;
  std::vector<int> sockets_;  // libcurl's, the newest last.
  // libcurl's header declares CURLM and CURL as void.
  void* const multi_;           // CURLM
  void* const easy_;            // CURL
  Curl_URL* const parsed_url_;  // CURLU
  const std::size_t max_body_;
  const std::chrono::milliseconds connect_timeout_;
  bool has_options_ = false;
  bool spent_ = false;  // Should serve no other request.

  std::chrono::milliseconds time_to_connect_{};  // Of this exchange.

  // libcurl reads the request from here until the exchange has ended.
  std::string url_;
  Text body_;
  Text headers_;  // Each line with a NUL behind.

  bool under_way_ = false;
  Progress progress_;
  HttpAnswer answer_;
  std::array<char, 256> error_{};  // libcurl's words.

  std::size_t polled_ = 0;  // So many of watched_ are in drive()'s poll(2).
  BootTime due_ = BootTime::max();
  std::chrono::milliseconds due_in_{};      // It is, once drive() looks; or 0.
  BootTime stall_check_ = BootTime::max();  // If it named no descriptor.
};

// Initialises libcurl once a process (curl_global_init).  Called by the first
// Exchange; a caller who needs libcurl's exit handlers to run after its own
// static objects' destructors calls it before.  Any thread, if libcurl was
// built thread-safe (7.84 on).  Returns whether it may raise SIGPIPE.
bool init_http();

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_HTTP_HPP
