// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Sets up each libcurl handle once: its options, and its callbacks, which only
// call members of Exchange.
#include <curl/curl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "http.hpp"
#include "settings.hpp"
#include "text.hpp"

#if LIBCURL_VERSION_NUM < 0x075000
#error "ddbmutex needs libcurl 7.80 or later (CURLOPT_PREREQFUNCTION)"
#endif

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// How long libcurl remembers the addresses of a name, at most.
constexpr std::chrono::minutes kMaxNameAge{1};

struct Option {
  CURLoption option;
  int value;
};

// All other options keep libcurl's defaults: no credentials for redirects, no
// content coding, no cookies, no User-Agent, and proxies by the usual
// variables.
constexpr Option kOptions[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    {CURLOPT_PROXY_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_PROXY_SSL_VERIFYPEER, 1},
    {CURLOPT_PROXY_SSL_VERIFYHOST, 2},
    // libcurl 7.88 frees a session twice if memory runs out while it stores it.
    // A connection is kept, so sessions would hardly ever be resumed.
    {CURLOPT_SSL_SESSIONID_CACHE, 0},
    {CURLOPT_TCP_KEEPALIVE, 1},
    // libcurl closes no connection because of its age: KeptConnection has it
    // replaced.
    {CURLOPT_MAXAGE_CONN, 1 << 30},
#if LIBCURL_VERSION_NUM >= 0x075700
    // Ending an exchange leaves a hanging getaddrinfo() to its own thread.
    // Older libcurl waits for it.
    {CURLOPT_QUICK_EXIT, 1},
#endif
};

// CURLMOPT_QUICK_EXIT: the same where the multi has such threads, as in libcurl
// 8.20.  By its number, because the program may have been compiled with the
// header of an older libcurl, which ignores the option.
constexpr auto kMultiQuickExit =
    static_cast<CURLMoption>(CURLOPTTYPE_LONG + 21);

Exchange& exchange_of(void* self) { return *static_cast<Exchange*>(self); }

// Makes the next read(2) fail, even amid a call of libcurl.  After shutdown(2)
// it could still read what has arrived.
void disconnect(int fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  connect(fd, &nowhere, sizeof nowhere);
}

}  // namespace

// False if libcurl had no memory to copy an option.
bool Exchange::set_options(const HttpOptions& options) {
  bool good = true;
  const auto set_text = [&](CURLoption option, const char* text) {
    // Any other error: this libcurl was built without the option.
    const CURLcode code = curl_easy_setopt(easy_, option, text);
    good = good && code != CURLE_OUT_OF_MEMORY;
  };
  static_assert(std::tuple_size_v<decltype(error_)> >= CURL_ERROR_SIZE);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1L);
  curl_multi_setopt(multi_, kMultiQuickExit, 1L);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_.data());
  for (const auto& [option, value] : kOptions) {
    curl_easy_setopt(easy_, option, long{value});
  }
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS,
                   static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  // A connection that replaces an old one is to notice a new address.
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(
      std::clamp<std::chrono::milliseconds>(
          options.max_age, std::chrono::seconds(0), kMaxNameAge));
  curl_easy_setopt(easy_, CURLOPT_DNS_CACHE_TIMEOUT,
                   static_cast<long>(age.count()));
  // libcurl would read the variables for proxies even in a set-uid program.
  if (!options.use_proxies || ignores_environment()) {
    set_text(CURLOPT_PROXY, "");
    set_text(CURLOPT_NOPROXY, "*");
  }
  if (!options.ca_file.empty()) {
    // These CAs replace those of the system, for servers and proxies.
    set_text(CURLOPT_CAINFO, options.ca_file.c_str());
    set_text(CURLOPT_PROXY_CAINFO, options.ca_file.c_str());
    set_text(CURLOPT_CAPATH, nullptr);
    set_text(CURLOPT_PROXY_CAPATH, nullptr);
  }
  return good;
}

void Exchange::set_callbacks() {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  for (const CURLoption data :
       {CURLOPT_PREREQDATA, CURLOPT_HEADERDATA, CURLOPT_WRITEDATA,
        CURLOPT_OPENSOCKETDATA, CURLOPT_CLOSESOCKETDATA, CURLOPT_XFERINFODATA,
        CURLOPT_DEBUGDATA}) {
    curl_easy_setopt(easy_, data, this);
  }
  curl_easy_setopt(
      easy_, CURLOPT_PREREQFUNCTION,
      +[](void* self, char*, char*, int, int local_port) -> int {
        return exchange_of(self).may_send(local_port) ? CURL_PREREQFUNC_OK
                                                      : CURL_PREREQFUNC_ABORT;
      });
  curl_easy_setopt(
      easy_, CURLOPT_HEADERFUNCTION,
      +[](char* data, std::size_t, std::size_t size, void* self) {
        return exchange_of(self).take_header_line({data, size}) ? size : 0;
      });
  curl_easy_setopt(
      easy_, CURLOPT_WRITEFUNCTION,
      +[](char* data, std::size_t, std::size_t size, void* self) {
        return exchange_of(self).take_body(data, size) ? size : 0;
      });
  curl_easy_setopt(
      easy_, CURLOPT_OPENSOCKETFUNCTION,
      +[](void* self, curlsocktype, curl_sockaddr* address) -> curl_socket_t {
        return exchange_of(self).open_socket(address->family, address->socktype,
                                             address->protocol);
      });
  curl_easy_setopt(
      easy_, CURLOPT_CLOSESOCKETFUNCTION, +[](void* self, curl_socket_t fd) {
        return exchange_of(self).close_socket(fd);
      });
  curl_multi_setopt(
      multi_, CURLMOPT_SOCKETFUNCTION,
      +[](CURL*, curl_socket_t fd, int what, void* self, void*) {
        return exchange_of(self).watch_socket(fd, what) ? 0 : -1;
      });
  curl_multi_setopt(
      multi_, CURLMOPT_TIMERFUNCTION, +[](CURLM*, long wait_ms, void* self) {
        exchange_of(self).set_timer(wait_ms);
        return 0;
      });
}

// While libcurl connects, one call of it reads for as long as a peer sends: a
// proxy's refusal, or handshake messages that OpenSSL skips (HelloRequest).  So
// the time is also looked at in two callbacks.  libcurl calls the one for
// progress for each byte of a refusal, and the one for debugging, if it is
// verbose, for each message.  Both cost time, so only until it is connected.
void Exchange::watch_connecting(bool watch) {
  const curl_xferinfo_callback on_progress =
      [](void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return exchange_of(self).connects_too_long() ? 1 : 0;
      };
  const curl_debug_callback on_message = [](CURL*, curl_infotype, char*,
                                            std::size_t, void* self) {
    Exchange& own = exchange_of(self);
    if (!own.connects_too_long()) return 0;
    for (const int fd : own.sockets_) {
      // It is open, for libcurl waits for it.
      const auto is_it = [fd](const pollfd& one) { return one.fd == fd; };
      const auto& all = own.watched_;
      if (std::any_of(all.begin(), all.end(), is_it)) disconnect(fd);
    }
    return 0;
  };
  curl_easy_setopt(easy_, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(easy_, CURLOPT_DEBUGFUNCTION, watch ? on_message : nullptr);
  curl_easy_setopt(easy_, CURLOPT_NOPROGRESS, watch ? 0L : 1L);
  curl_easy_setopt(easy_, CURLOPT_VERBOSE, watch ? 1L : 0L);
}

void init_http() {
  [[maybe_unused]] static const bool once = [] {
    // libcurl would write the keys of all TLS sessions to the file that this
    // variable names.
    if (ignores_environment()) unsetenv("SSLKEYLOGFILE");
    // Never cleaned up: others in this process may use libcurl too.
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  }();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
