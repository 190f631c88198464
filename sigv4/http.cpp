// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// An exchange from start() to finish(): the request for libcurl, what libcurl
// waits for, its result, and the answer as it arrives.  http_setup.cpp sets the
// options and callbacks of a handle.
#include "http.hpp"

#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "memory.hpp"
#include "secret.hpp"
#include "system.hpp"
#include "text.hpp"
#include "thread.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxHeaderBytes = 64 * 1024;
constexpr std::size_t kUsualHeaderBytes = 400;  // Of DynamoDB's answers.
// The descriptors of one exchange, with two addresses and a resolver.
constexpr std::size_t kUsualDescriptors = 8;
// How many sockets libcurl has at a time: a kept connection and two addresses.
constexpr std::size_t kUsualSockets = 3;
// The headers of a request, and three that keep libcurl from adding its own.
constexpr std::size_t kMostHeaderLines = 23;
// Beyond this size libcurl is kept from adding "Expect", which it does for a
// body of a megabyte.
constexpr std::size_t kMostBytesWithoutExpect = 1 << 19;
constexpr char kTlsApplicationData = 23;  // First byte of such a TLS record.
constexpr BootTime kNever = BootTime::max();  // No timer.
// How soon libcurl is called again if it waits for no descriptor.
constexpr milliseconds kStallCheck(10);

// CURLMOPT_NETWORK_CHANGED and CURLMNWC_CLEAR_DNS, by their numbers, because
// the program may have been compiled with the header of an older libcurl, which
// ignores the option.
constexpr auto kNetworkChanged =
    static_cast<CURLMoption>(CURLOPTTYPE_LONG + 17);
constexpr long kForgetNames = 1L << 2;

constexpr char kNoMemory[] = "out of memory";
constexpr char kNotResolved[] =
    "no connection was begun (does the host name resolve?)";

// OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED.
constexpr long kNotYetValid = 9, kExpired = 10;

// What an error of libcurl means.  Once the request may have left, it only
// means that the connection failed (reset, closed early, truncated, no HTTP).
// This includes CURLE_COULDNT_CONNECT, by which libcurl's attempt to send the
// request again ends then.
Transport meaning(CURLcode code, bool sent) {
  switch (code) {
#if LIBCURL_VERSION_NUM >= 0x080600
    case CURLE_TOO_LARGE:  // A header line is longer than libcurl allows.
      return Transport::too_large;
#endif
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return sent ? Transport::broken : Transport::bad_certificate;
    default:  // Name, connection, proxy, handshake, URL or memory.
      return sent ? Transport::broken : Transport::unreachable;
  }
}

// libcurl quotes the URL of a proxy that it does not understand, or a part of
// it.  It may have a user and a password.
bool quotes_a_proxy(CURLcode code, std::string_view error) {
  const auto none = error.npos;
  return code == CURLE_COULDNT_RESOLVE_PROXY || error.find('@') != none ||
         (error.find("proxy") != none && error.find('\'') != none);
}

int curl_events(int seen) {
  return ((seen & (POLLIN | POLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
         ((seen & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
         ((seen & (POLLERR | POLLNVAL)) != 0 ? CURL_CSELECT_ERR : 0);
}

// Reserved memory, so that libcurl's callbacks and drive() seldom allocate any.
template <class Element>
std::vector<Element> room_for(std::size_t count) {
  std::vector<Element> room;
  room.reserve(count);
  return room;
}

void* new_multi() {
  init_http();
  return curl_multi_init();
}

}  // namespace

// -- Beginning and end --------------------------------------------------------

Exchange::Exchange(const HttpOptions& options)
    : lines_(new curl_slist[kMostHeaderLines]),
      watched_(room_for<pollfd>(kUsualDescriptors)),
      polled_fds_(room_for<pollfd>(kPolledFirst + kUsualDescriptors)),
      sockets_(room_for<int>(kUsualSockets)),
      multi_(new_multi()),
      easy_(curl_easy_init()),
      parsed_url_(curl_url()),
      max_body_(options.max_answer_bytes),
      connect_timeout_(std::max(options.connect_timeout, milliseconds(1))),
      kept_(options.max_age),
      last_address_(options.last_address),
      addresses_(nullptr, curl_slist_free_all) {
  if (multi_ == nullptr || easy_ == nullptr) return;  // start() will say so.
  has_options_ = set_options(options);
  set_callbacks();
}

Exchange::~Exchange() {
  if (under_way_) curl_multi_remove_handle(multi_, easy_);
  curl_easy_cleanup(easy_);
  curl_multi_cleanup(multi_);
  curl_url_cleanup(parsed_url_);
  headers_.wipe();
  body_.wipe();
}

void Exchange::start(const std::string& url, BootTime now, Method method) {
  answer_.reset();
  answer_.sent_at = answer_.received_at = now;
  send_by_ = kNever;
  begin_way();
  if (is_made()) {
    link_headers();
    if (url != url_) set_url(url);
    // libcurl copies nothing of what is set here.
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, lines_.get());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(body_.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, body_.data());
    set_method(method);
    set_way(kept_.first_way(now));
    connect_by_ = now + connect_timeout_;
    set_time_to_connect(now);
    under_way_ = curl_multi_add_handle(multi_, easy_) == CURLM_OK;
  }
  if (under_way_) return;
  answer_.transport = Transport::unreachable;
  report(
      {answer_.transport, "libcurl cannot start a request (out of memory?)"});
}

void Exchange::end(Transport why) {
  if (!under_way_) return;
  const bool looks_up = why == Transport::timed_out && !resolved();
  finish({why, looks_up ? kNotResolved : error_.data()});
}

// Takes the handle out of the multi, which keeps a connection that is still
// good and closes any other.
void Exchange::finish(const Ending& ending) {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  curl_multi_remove_handle(multi_, easy_);
  headers_.wipe();
  body_.wipe();
  under_way_ = false;
  due_ = stall_check_ = resolve_by_ = kNever;
  due_in_ = milliseconds::zero();
  answer_.transport = ending.transport;
  answer_.received_at = BootClock::now();
  if (progress_.head == Head::complete) {
    answer_.status = static_cast<int>(status);
  } else {
    answer_.headers.clear();
  }
  if (ending.transport == Transport::complete) {
    kept_.answered(answer_.received_at, progress_.connects);
    if (progress_.connects) {
      kept_socket_ = progress_.socket;
      remember_address();
    }
    return;
  }
  kept_.failed(way_, answer_.received_at);
  // libcurl keeps the trusted certificates, also those that it had no memory
  // to read: whoever could not connect begins with a new handle.
  if (ending.transport == Transport::unreachable ||
      ending.transport == Transport::bad_certificate) {
    spent_ = true;
  }
  sigv4::wipe(answer_.body);
  report(ending);
}

// Without memory, the error text stays empty.
void Exchange::report(const Ending& ending) {
  const std::string_view why = ending.why;
  const char* hint = "";
  // OpenSSL says this if the server does not speak TLS.
  if (why.find("wrong version number") != why.npos) {
    hint = " (does the server speak http?)";
  }
  // libcurl says this if OpenSSL has no random number generator.
  if (why.find("Insufficient randomness") != why.npos) {
    hint =
        " (see OpenSSL's configuration, openssl.cnf; or does a sandbox refuse "
        "random bytes?)";
  }
  try_with_memory([&] {
    answer_.error = sigv4::join({ending.prefix, why, hint});
    if (!ending.is_about_time) return;
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(
        wall_clock().time_since_epoch());
    sigv4::append(answer_.error, {" (is this machine's clock right? It shows ",
                                  iso_time(now.count()), ")"});
  });
}

// -- The request --------------------------------------------------------------

// start() has set a body, which makes libcurl send a post even if it is empty.
void Exchange::set_method(Method method) {
  const bool get = method == Method::get;
  curl_easy_setopt(easy_, get ? CURLOPT_HTTPGET : CURLOPT_POST, 1L);
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST,
                   method == Method::put ? "PUT" : nullptr);
}

// Half of the time is kept for the next way, if there is one.  At least 1 ms,
// because libcurl takes 0 for five minutes.
void Exchange::set_time_to_connect(BootTime now) {
  const auto left = std::chrono::duration_cast<milliseconds>(connect_by_ - now);
  const auto time =
      std::max(way_ == Way::fresh ? left / 2 : left, milliseconds(1));
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(time.count()));
  way_ends_ = now + time;
  const bool may_know_address = last_address_ != nullptr;
  resolve_by_ =
      way_ == Way::usual && may_know_address ? now + left / 2 : kNever;
}

void Exchange::set_way(Way way) {
  way_ = way;
  curl_easy_setopt(easy_, CURLOPT_FRESH_CONNECT, way == Way::fresh ? 1L : 0L);
  // libcurl reads the list once, when it begins.
  const bool last = way == Way::last_address;
  curl_easy_setopt(easy_, CURLOPT_RESOLVE, last ? addresses_.get() : nullptr);
}

// Parses the URL once, because parsing it for each request would take a
// twentieth of the request's time.
void Exchange::set_url(const std::string& url) {
  // libcurl 7.88 would also keep the text of the previous URL.
  curl_easy_setopt(easy_, CURLOPT_URL, nullptr);
  url_.clear();  // Stays empty if the URL is bad.
  const bool good =
      curl_url_set(parsed_url_, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK;
  curl_easy_setopt(easy_, CURLOPT_CURLU, good ? parsed_url_ : nullptr);
  if (good) url_ = url;
}

// Makes libcurl's list of headers.  Its entries point to our own strings.
void Exchange::link_headers() {
  // Not const, because libcurl's list is not.
  static char accept[] = "Accept:", type[] = "Content-Type:",
              expect[] = "Expect:";
  std::size_t count = 0;
  const auto add = [&](char* line) {
    lines_[count] = {line, nullptr};
    if (count > 0) lines_[count - 1].next = &lines_[count];
    ++count;
  };
  // A header without a value is not sent, but keeps libcurl from adding its
  // own.  It does not hide the caller's header of that name.
  add(accept);
  if (!sigv4::begins_with(headers_, "content-type:")) add(type);
  if (body_.size() > kMostBytesWithoutExpect) add(expect);
  if (headers_.size() > 0 && headers_[headers_.size() - 1] != '\n') {
    headers_ += '\n';
  }
  for (std::size_t begin = 0;
       begin < headers_.size() && count < kMostHeaderLines;) {
    const std::size_t line_end = std::string_view(headers_).find('\n', begin);
    headers_[line_end] = '\0';
    add(&headers_[begin]);
    begin = line_end + 1;
  }
}

// -- What libcurl waits for ---------------------------------------------------

// Once the exchange has ended, its connection is not watched.
void Exchange::prepare_poll(BootTime now, std::vector<pollfd>& fds) {
  if (due_in_ > milliseconds::zero()) due_ = now + due_in_;
  due_in_ = milliseconds::zero();
  polled_ = under_way_ ? watched_.size() : 0;
  for (std::size_t i = 0; i < polled_; ++i) fds.push_back(watched_[i]);
}

void Exchange::act_if_due(BootTime now) {
  if (due_ <= now) {
    due_ = kNever;  // libcurl sets the next timer.
    act(CURL_SOCKET_TIMEOUT, 0);
  } else if (resolve_by_ <= now) {
    resolve_by_ = kNever;
    if (!resolved()) try_next_way(false);
  } else if (stall_check_ <= now) {
    // When an address has not answered in time, libcurl 7.88 chooses the next
    // one of the name, but sets no timer to connect to it.  Without a timer,
    // curl_multi_socket_action() does nothing.
    int running = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const CURLMcode code = curl_multi_socket_all(multi_, &running);
#pragma GCC diagnostic pop
    after_action(code, running);
  }
}

void Exchange::act(int fd, int events) {
  int running = 0;
  const CURLMcode code = curl_multi_socket_action(multi_, fd, events, &running);
  after_action(code, running);
}

// libcurl may have closed a descriptor meanwhile.  It ignores those that it
// does not know.
const pollfd* Exchange::act_on(const pollfd* seen) {
  for (const pollfd* const end = seen + polled_; seen != end; ++seen) {
    if (seen->revents == 0 || !under_way_) continue;
    act(seen->fd, curl_events(seen->revents));
  }
  return seen;
}

void Exchange::after_action(int multi_code, int running) {
  const auto code = static_cast<CURLMcode>(multi_code);
  if (code != CURLM_OK) {
    const bool no_memory = progress_.stopped == Stop::no_memory;
    finish({sent() ? Transport::broken : Transport::unreachable,
            no_memory ? kNoMemory : curl_multi_strerror(code)});
  } else if (running == 0) {
    take_result();
  }
  const bool stalled = under_way_ && watched_.empty();
  stall_check_ = stalled ? BootClock::now() + kStallCheck : kNever;
}

bool Exchange::watch_socket(int fd, int what) {
  // Removes the earlier entry of this descriptor.  The order does not matter,
  // so the last entry takes its place.
  for (pollfd& one : watched_) {
    if (one.fd != fd) continue;
    one = watched_.back();
    watched_.pop_back();
    break;
  }
  if (what == CURL_POLL_REMOVE) return true;
  const int events = ((what & CURL_POLL_IN) != 0 ? POLLIN : 0) |
                     ((what & CURL_POLL_OUT) != 0 ? POLLOUT : 0);
  const pollfd one = {fd, static_cast<short>(events), 0};
  if (try_with_memory([&] { watched_.push_back(one); })) return true;
  spent_ = true;  // libcurl's multi handle fails from now on.
  return stop(Stop::no_memory);
}

// The timer is mostly 0, which needs no clock.  prepare_poll() starts others.
void Exchange::set_timer(long wait_ms) {
  due_ = wait_ms == 0 ? BootTime::min() : kNever;
  due_in_ = milliseconds(std::max(wait_ms, 0L));
}

// -- The connection -----------------------------------------------------------

void Exchange::connect_within(std::chrono::nanoseconds time) {
  if (!under_way_ || time >= connect_timeout_) return;
  connect_by_ = answer_.sent_at + time;
  set_time_to_connect(answer_.sent_at);
}

// SOCK_CLOEXEC: the program's children do not inherit the socket.  If libcurl
// asks for a connection after the request was sent, it wants to send it again.
// Refusing that here saves the time of connecting.
int Exchange::open_socket(int family, int type, int protocol) {
  if (sent() || sigv4::openssl_is_gone()) return -1;
  const int fd = socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return -1;
  if (!try_with_memory([&] { sockets_.push_back(fd); })) {
    stop(Stop::no_memory);
    close(fd);
    return -1;
  }
  progress_.connects = true;
  watch_connecting(true);
  return fd;
}

int Exchange::close_socket(int fd) {
  sockets_.erase(std::remove(sockets_.begin(), sockets_.end(), fd),
                 sockets_.end());
  if (fd == kept_socket_) kept_socket_ = -1;
  if (fd == progress_.socket) progress_.socket = -1;
  return close(fd);
}

// Whether libcurl may send the request: only once (see http.hpp).  libcurl
// would take data that has arrived by now for the answer.  And libcurl 7.88
// takes a connection that was reset for a live one (fixed in 8.0.0, curl
// #10652), so the request would count as sent.
bool Exchange::may_send(int local_port) {
  if (sent()) return false;
  progress_.socket = progress_.connects ? new_socket(local_port) : kept_socket_;
  if (has_spoken()) return stop(Stop::spoke_first);
  const BootTime now = BootClock::now();
  if (now >= send_by_) return stop(Stop::too_late);
  // Memory ran out only for another address of the same name.
  if (progress_.stopped == Stop::no_memory) progress_.stopped = Stop::none;
  answer_.sent = true;
  resolve_by_ = kNever;
  if (!progress_.connects) return true;
  answer_.sent_at = now;
  watch_connecting(false);
  return true;
}

// Asked while libcurl connects, even amid a call of it.
bool Exchange::connects_too_long() {
  const bool connects = progress_.connects && !sent();
  if (!connects || BootClock::now() < way_ends_) return false;
  stop(Stop::too_slow);
  return true;
}

// That of the new connection, which has this port.  If an address of the name
// was slow, another one may have been tried beside it.
int Exchange::new_socket(int local_port) const {
  for (auto fd = sockets_.rbegin(); fd != sockets_.rend(); ++fd) {
    sockaddr_in6 own{};  // The port is where sockaddr_in has it.
    socklen_t size = sizeof own;
    const bool is_open =
        getsockname(*fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    if (is_open && ntohs(own.sin6_port) == local_port) return *fd;
  }
  return -1;
}

// Whether data, or the end of the connection, arrived before the request was
// sent.  Only TLS session tickets may arrive then: directly after a handshake,
// in records of application data.
bool Exchange::has_spoken() const {
  char byte = 0;
  const ssize_t got = recv(progress_.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return false;
  return !progress_.connects || got <= 0 || byte != kTlsApplicationData;
}

// libcurl opens a socket once it has an address.
bool Exchange::resolved() const { return sent() || progress_.connects; }

// Tries the next way to the server.  Returns false if there is none.
bool Exchange::try_next_way(bool resolved) {
  const BootTime now = BootClock::now();
  std::string address;
  try_with_memory([&] {
    if (last_address_ != nullptr) address = last_address_->of(url_);
  });
  const auto way = kept_.next_way(way_, now, resolved, !address.empty());
  if (!way) return false;
  if (*way == Way::last_address && !list_address(address)) return false;
  set_way(*way);
  set_time_to_connect(now);
  answer_.sent_at = now;
  begin_again();
  return true;
}

void Exchange::begin_way() {
  progress_ = {};
  sockets_.clear();
  error_[0] = '\0';
}

// Nothing was sent.  libcurl has closed the connection that failed, or does so
// now.
void Exchange::begin_again() {
  begin_way();
  watch_connecting(false);
  curl_multi_remove_handle(multi_, easy_);
  if (curl_multi_add_handle(multi_, easy_) == CURLM_OK) return;
  finish({Transport::unreachable, kNoMemory});
}

// Writes it as an entry of CURLOPT_RESOLVE.  `*`: whatever host this port is
// used of, the server or its proxy, has this address.  `+`: libcurl forgets the
// entry as it forgets names, after a minute (http_setup.cpp).
void Exchange::remember_address() {
  char* address = nullptr;
  long port = 0;
  curl_easy_getinfo(easy_, CURLINFO_PRIMARY_IP, &address);
  curl_easy_getinfo(easy_, CURLINFO_PRIMARY_PORT, &port);
  if (last_address_ == nullptr || address == nullptr || port == 0) return;
  const bool v6 = strchr(address, ':') != nullptr;
  try_with_memory([&] {
    last_address_->remember(
        url_, sigv4::join({"+*:", sigv4::Digits(port), v6 ? ":[" : ":", address,
                           v6 ? "]" : ""}));
  });
}

// Lists the address for libcurl.  libcurl 8.16 and later remember that a name
// did not resolve, the server's or its proxy's, and have to forget that first.
bool Exchange::list_address(const std::string& address) {
  curl_multi_setopt(multi_, kNetworkChanged, kForgetNames);
  addresses_.reset(curl_slist_append(nullptr, address.c_str()));
  return addresses_ != nullptr;
}

// -- The answer ---------------------------------------------------------------

bool Exchange::stop(Stop why) {
  if (progress_.stopped == Stop::none) progress_.stopped = why;
  return false;
}

// Keeps the header lines of the final answer.  Drops its status line and blank
// line, interim answers (1xx) before it, and trailers after its body.
bool Exchange::take_header_line(std::string_view line) {
  Head& head = progress_.head;
  progress_.head_bytes += line.size();
  if (progress_.head_bytes > kMaxHeaderBytes) return stop(Stop::too_much);
  if (head == Head::complete) return true;
  if (head != Head::none && (line[0] == '\r' || line[0] == '\n')) {
    head = head == Head::interim ? Head::none : Head::complete;
    return true;
  }
  std::string& headers = answer_.headers;
  const bool good = try_with_memory([&] {
    if (head != Head::none) {
      headers.append(line);
      return;
    }
    const std::size_t blank = std::min(line.find(' '), line.size());
    head = line.substr(blank, 2) == " 1"sv ? Head::interim : Head::final;
    headers.clear();
    headers.reserve(kUsualHeaderBytes);
  });
  return good || stop(Stop::no_memory);
}

// The Content-Length of the answer, within the limit; `so_far` if there is
// none.  A body that grew by doubling would take twice the memory that it
// needs.
std::size_t Exchange::size_of_body(std::size_t so_far) const {
  curl_off_t length = -1;
  curl_easy_getinfo(easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  const auto announced = length < 0 ? 0 : static_cast<std::uint64_t>(length);
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(announced, so_far, max_body_));
}

// A body may hold keys.  If it needs more memory, the old memory is wiped.
// libcurl's buffer is wiped, too, because libcurl does not do that.
bool Exchange::take_body(char* data, std::size_t size) {
  std::string& body = answer_.body;
  const bool fits = size <= max_body_ - body.size();
  const bool taken = fits && try_with_memory([&] {
                       if (body.empty())
                         reserve_secret(body, size_of_body(size));
                       append_secret(body, {{data, size}});
                     });
  explicit_bzero(data, size);
  return taken || stop(fits ? Stop::no_memory : Stop::too_much);
}

void Exchange::take_result() {
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(multi_, &left);
  if (message == nullptr || message->msg != CURLMSG_DONE) return;
  const CURLcode code = message->data.result;
  const bool failed = code != CURLE_OK || progress_.stopped != Stop::none;
  if (progress_.stopped == Stop::spoke_first && !progress_.connects) {
    begin_again();  // On a new connection: libcurl has closed the kept one.
  } else if (progress_.stopped == Stop::too_late) {
    finish(ending_of_stop());
  } else if (failed && !sent() && try_next_way(resolved())) {
    return;  // The exchange goes on in that way.
  } else if (progress_.stopped != Stop::none) {
    finish(ending_of_stop());
  } else if (code != CURLE_OK) {
    finish(ending_of_error(code));
  } else if (progress_.head != Head::complete) {
    // Perhaps only interim answers (1xx) have come.
    finish({Transport::broken,
            "the connection closed before the end of an answer's head"});
  } else {
    finish({Transport::complete, ""});
  }
}

Exchange::Ending Exchange::ending_of_stop() const {
  switch (progress_.stopped) {
    case Stop::too_much:
      return {Transport::too_large, "the answer is too large"};
    case Stop::too_slow:
      return {Transport::unreachable, "the connection was not ready in time"};
    case Stop::too_late:
      return {Transport::timed_out, "too late to send the request"};
    case Stop::spoke_first:
      return {Transport::unreachable,
              "the server spoke, or hung up, before it was asked"};
    case Stop::no_memory:
    case Stop::none:
      break;
  }
  return {sent() ? Transport::broken : Transport::unreachable, kNoMemory};
}

Exchange::Ending Exchange::ending_of_error(int error) const {
  const auto code = static_cast<CURLcode>(error);
  if (sent() && code == CURLE_COULDNT_CONNECT) {  // See open_socket().
    return {Transport::broken, "the connection closed before an answer came"};
  }
  const bool usable = error_[0] != '\0' && !quotes_a_proxy(code, error_.data());
  Ending ending = {meaning(code, sent()),
                   usable ? error_.data() : curl_easy_strerror(code)};
  if (way_ == Way::last_address) {
    ending.prefix = "the name does not resolve; at its last address: ";
    // The address may be another host's by now, so its certificate is not
    // final.
    if (!sent()) ending.transport = Transport::unreachable;
    return ending;
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    long of_proxy = 0;  // Stays 0 unless the proxy's certificate failed.
    long of_server = 0;
    curl_easy_getinfo(easy_, CURLINFO_PROXY_SSL_VERIFYRESULT, &of_proxy);
    curl_easy_getinfo(easy_, CURLINFO_SSL_VERIFYRESULT, &of_server);
    const long flaw = of_proxy != 0 ? of_proxy : of_server;
    ending.is_about_time = flaw == kNotYetValid || flaw == kExpired;
    // The clock may not have been set since the machine was started.
    if (flaw == kNotYetValid && !sent()) {
      ending.transport = Transport::unreachable;
    }
    ending.prefix = of_proxy != 0 ? "the proxy's certificate was refused: "
                                  : "the server's certificate was refused: ";
  }
  return ending;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
