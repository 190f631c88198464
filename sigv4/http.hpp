// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// An Exchange sends one HTTP request at a time on a connection that is kept
// alive.  It has one deadline, another thread can end it, and it knows whether
// the server may have received the request.  Nothing else sends with libcurl.
//
// Each Exchange is a libcurl easy handle in a multi handle of its own, so the
// connection stays with it, and any thread may go on with it.  drive() in
// waiting.hpp makes progress with any number of them by one poll(2).
//
// libcurl sends a POST again, silently, when a reused connection dies before
// the first byte of an answer (Curl_retry_request in lib/transfer.c).  A
// conditional write could be applied twice without anybody knowing.  So the
// second sending is refused here, and the exchange ends as `broken`.
//
// A kept connection is replaced after ten minutes, so that a new address of the
// service is noticed, but only by one that works (http_way.hpp).
//
// An answer that arrived before its request was sent is ignored, for example if
// a server answers twice: the connection is closed, and the request is sent on
// a new one.  We cannot recognise a stray answer that arrives after the request
// was begun, in the last TLS record of the previous answer, or directly after a
// TLS handshake.
//
// Requests use HTTP/1.1.  No redirect is followed, and no content coding is
// accepted.  TLS is 1.2 or later, and always verified.  When an exchange has
// ended, our copies of the request are wiped, because it may contain a token.
// So is the part of libcurl's buffer in which a body arrived.  The buffers that
// libcurl sends from, and those of OpenSSL, are freed without being wiped.
#ifndef DDBMUTEX_SIGV4_HTTP_HPP
#define DDBMUTEX_SIGV4_HTTP_HPP

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "boot_clock.hpp"
#include "http_answer.hpp"
#include "http_way.hpp"
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
  // longer answer ends the exchange as `too_large`.
  std::size_t max_answer_bytes = 1 << 20;
  // Idle exchanges beyond this number are closed instead of kept.
  std::size_t max_idle = 32;
  // The time for resolving a name, connecting, and the handshakes of proxy and
  // TLS.  An exchange that takes longer ends as `unreachable`.  An address that
  // does not answer is given up after half of the time that is left (if that is
  // more than 600 ms), and the next address of the name is tried.
  // connect_within() sets a shorter time for one exchange.
  std::chrono::milliseconds connect_timeout{2000};
  // A kept connection of this age is replaced by a new one, if that can be made
  // in half of the time above.  If it is less than a second, libcurl forgets
  // last addresses at once.
  std::chrono::milliseconds max_age{std::chrono::minutes(10)};
  // Shared by exchanges with the same servers.  If a name is not resolved in
  // half of the time above, its last address is tried.  Null: none is known.
  std::shared_ptr<LastAddress> last_address{};
};

enum class Method { post, get, put };

// Used by one thread at a time.  Each call may come from another thread.
class Exchange {
 public:
  explicit Exchange(const HttpOptions& options);
  // Ends what is under way.  Neither this nor end() waits for a resolver that
  // hangs.  (With libcurl before 7.87 both do.)
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // The request, written before start().  Headers are whole lines, each with a
  // '\n' at its end.  libcurl adds Host and Content-Length, but none of Accept,
  // Expect and User-Agent.  A get has no body.  Both texts keep their memory
  // for the next exchange.  REQUIRES: nothing under way, and at most 20
  // headers.
  Text& headers() noexcept { return headers_; }
  Text& body() noexcept { return body_; }

  // Begins to send.  `now`: the present time.  Clears the previous answer.
  // REQUIRES: nothing under way.
  void start(const std::string& url, BootTime now,
             Method method = Method::post);
  // Limits the time to connect of this exchange, if `time` is less than
  // connect_timeout.  REQUIRES: called after start(), before drive().
  void connect_within(std::chrono::nanoseconds time);
  // From that time on the request is not sent any more: looked at just before
  // its first byte would leave.  The exchange ends as `timed_out`.  REQUIRES:
  // called after start(), before drive().
  void send_by(BootTime time) { send_by_ = time; }

  bool under_way() const noexcept { return under_way_; }
  // True once the request may have begun to leave this process.
  bool sent() const noexcept { return answer_.sent; }

  // Ends what is under way as `timed_out` or `cancelled`; the connection is
  // closed.  Nothing happens if nothing is under way.
  void end(Transport why);

  // False if it must not send another request: after memory ran out, every
  // later request might fail.
  bool is_usable() const { return is_made() && !spent_; }

  // REQUIRES: start() was called.  Complete once under_way() is false.
  const HttpAnswer& answer() const noexcept { return answer_; }
  HttpAnswer& answer() noexcept { return answer_; }

  // -- For drive() alone --
  // When act_if_due() has something to do.
  BootTime next_due() const {
    return std::min({due_, stall_check_, resolve_by_});
  }
  // Does what is due.  May end the exchange.
  void act_if_due(BootTime now);
  // Appends the descriptors that libcurl waits for to `fds`.
  void prepare_poll(BootTime now, std::vector<pollfd>& fds);
  // Acts on what poll(2) has seen of these descriptors.  `seen`: the first of
  // them.  Returns the first descriptor of the next exchange.  May end the
  // exchange.
  const pollfd* act_on(const pollfd* seen);
  // Memory for the descriptors of all exchanges that are driven with this one.
  std::vector<pollfd>& polled_fds() { return polled_fds_; }

 private:
  // Why one of our callbacks has made libcurl give up.
  enum class Stop {
    none,
    too_much,
    too_slow,
    too_late,
    spoke_first,
    no_memory
  };
  // How much of the answer's head has arrived.
  enum class Head {
    none,      // Nothing, or nothing since the end of an interim one (1xx).
    interim,   // A part of an interim one.
    final,     // A part of the final one.
    complete,  // All of the final one.
  };

  struct Progress {
    bool connects = false;  // This exchange has begun to make a connection.
    int socket = -1;        // That the request is sent on.
    Stop stopped = Stop::none;
    Head head = Head::none;
    std::size_t head_bytes = 0;  // Of all heads.
  };

  struct Ending {
    Transport transport;
    const char* why;
    const char* prefix = "";     // For people, before `why`.
    bool is_about_time = false;  // So the host's clock may be wrong.
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
  void set_time_to_connect(BootTime now);
  void set_way(Way way);
  void link_headers();

  void act(int fd, int events);
  void after_action(int multi_code, int running);
  void take_result();
  Ending ending_of_stop() const;
  Ending ending_of_error(int code) const;
  bool resolved() const;
  bool try_next_way(bool resolved);
  void begin_way();
  void begin_again();
  void remember_address();
  bool list_address(const std::string& address);
  void finish(const Ending& ending);
  void report(const Ending& ending);

  // Remembers why libcurl has to give up.  Returns false, so that a callback
  // can return that.  The first reason counts.
  bool stop(Stop why);

  // libcurl's callbacks.  They return false or -1 to make it give up.
  bool take_header_line(std::string_view line);
  bool take_body(char* data, std::size_t size);
  bool may_send(int local_port);
  int open_socket(int family, int type, int protocol);
  int close_socket(int fd);
  bool watch_socket(int fd, int what);
  void set_timer(long wait_ms);

  std::size_t size_of_body(std::size_t so_far) const;
  int new_socket(int local_port) const;
  bool has_spoken() const;
  void watch_connecting(bool watch);
  bool connects_too_long();

  // These come before the handles, which only the destructor frees, because
  // allocating them may throw.
  const std::unique_ptr<curl_slist[]> lines_;  // The headers, for libcurl.
  std::vector<pollfd> watched_;                // What libcurl waits for.
  std::vector<pollfd> polled_fds_;
  // What libcurl has opened since this way began, the newest last.  Some may be
  // closed: libcurl 7.88 does not tell that of sockets that never connected.
  std::vector<int> sockets_;
  int kept_socket_ = -1;  // Of the connection that was kept.
  // libcurl's header declares CURLM and CURL as void.
  void* const multi_;           // CURLM
  void* const easy_;            // CURL
  Curl_URL* const parsed_url_;  // CURLU
  const std::size_t max_body_;
  const std::chrono::milliseconds connect_timeout_;
  bool has_options_ = false;
  bool spent_ = false;  // Should serve no other request.

  KeptConnection kept_;
  const std::shared_ptr<LastAddress> last_address_;
  // Addresses for libcurl, which reads them when an exchange begins.
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> addresses_;

  Way way_ = Way::usual;
  BootTime connect_by_{};  // Of this exchange.
  BootTime send_by_ = BootTime::max();
  BootTime way_ends_{};  // When connecting in this way is given up.
  // When to give up resolving the name; never if there is no other way.
  BootTime resolve_by_ = BootTime::max();

  // libcurl reads the request from here until the exchange has ended.
  std::string url_;
  Text body_;
  Text headers_;  // link_headers() ends each line with a NUL.

  bool under_way_ = false;
  Progress progress_;
  HttpAnswer answer_;
  std::array<char, 256> error_{};  // libcurl's error text.

  std::size_t polled_ = 0;  // How many descriptors prepare_poll() appended.
  BootTime due_ = BootTime::max();  // When libcurl wants to be called.
  // libcurl has set a timer.  prepare_poll() adds the present time to it, and
  // makes it 0.
  std::chrono::milliseconds due_in_{};
  // When to look again, if libcurl waits for no descriptor.
  BootTime stall_check_ = BootTime::max();
};

// Initialises libcurl (curl_global_init) if this is the first call in this
// process.  Each Exchange calls it.
//
// If destructors of static objects use libcurl, call this before those objects
// are made.  Then libcurl's exit handlers run after the destructors.
//
// Any thread may call it if libcurl was built thread-safe, as 7.84 and later
// can be.  With another libcurl, no other thread may use libcurl meanwhile.
void init_http();

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_HTTP_HPP
