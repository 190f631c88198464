// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Limits for peers that send without end, or that make connecting take for
// ever.  These limits hold even while libcurl is busy.  Waiting has its own
// deadline.
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "http.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// How many bytes may arrive before the request, and how many of an answer
// beyond twice its limit.
constexpr std::size_t kMaxOtherBytes = 128 * 1024;
// goes_too_far() looks at every eighth call, so never in a usual exchange.
constexpr unsigned kCallsPerLook = 8;

// How many bytes a connection has received; 0 if the kernel does not count
// them. This is tcpi_bytes_received, the 17th 64-bit word of the kernel's
// tcp_info. The structure in glibc's <netinet/tcp.h> ends before it.
std::uint64_t received_on(int fd) {
  std::array<std::uint64_t, 17> info{};
  socklen_t size = sizeof info;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, info.data(), &size);
  return info.back();
}

// Makes the next read(2) fail, even if libcurl is reading in a loop.  After
// shutdown(2) it could still read what has arrived.
void disconnect(int fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  connect(fd, &nowhere, sizeof nowhere);
}

}  // namespace

// While libcurl connects, a single call of it may read for as long as a peer
// sends data.  So these callbacks, which libcurl calls meanwhile, check the
// limits.  libcurl calls the progress function for every byte of a proxy's
// refusal.  OpenSSL skips messages of a handshake that mean nothing
// (HelloRequest); libcurl calls the debug function for each, but only if it is
// verbose.  Both cost time.  Once it is connected, a call reads no more than
// some buffers, and after_action() checks the limits.
void Exchange::set_limits() {
  curl_easy_setopt(easy_, CURLOPT_XFERINFODATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_XFERINFOFUNCTION,
      +[](void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return static_cast<Exchange*>(self)->goes_too_far() ? 1 : 0;
      });
  curl_easy_setopt(easy_, CURLOPT_DEBUGDATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_DEBUGFUNCTION,
      +[](CURL*, curl_infotype, char*, std::size_t, void* self) {
        Exchange& own = *static_cast<Exchange*>(self);
        if (own.goes_too_far() && !own.sockets_.empty()) {
          disconnect(own.sockets_.back());
        }
        return 0;
      });
}

// Turns these callbacks on or off.
void Exchange::check_limits(bool check) {
  curl_easy_setopt(easy_, CURLOPT_NOPROGRESS, check ? 0L : 1L);
  curl_easy_setopt(easy_, CURLOPT_VERBOSE, check ? 1L : 0L);
}

bool Exchange::goes_too_far() {
  if (++progress_.looks % kCallsPerLook != 0) return false;
  const bool too_much = is_flooded();
  const bool too_slow =
      !sent() && BootClock::now() - answer_.sent_at >= time_to_connect_;
  if (!too_much && !too_slow) return false;
  stop(too_much ? Stop::too_much : Stop::too_slow);
  return true;
}

// Whether more bytes have arrived than an honest peer would send.
bool Exchange::is_flooded() {
  if (sockets_.empty()) return false;
  const std::uint64_t received = received_on(sockets_.back());
  if (!progress_.received_before) progress_.received_before = received;
  const std::uint64_t come = received - *progress_.received_before;
  if (come <= kMaxOtherBytes) return false;
  return !sent() || (come - kMaxOtherBytes) / 2 > max_body_;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
