#include "http.hpp"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "memory.hpp"
#include "secret.hpp"
#include "settings.hpp"
#include "sigpipe.hpp"
#include "text.hpp"

#if LIBCURL_VERSION_NUM < 0x075000
#error "ddbmutex needs libcurl 7.80 or later (CURLOPT_PREREQFUNCTION)"
#endif

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxHeaderBytes = 64 * 1024;
constexpr std::size_t kUsualHeaderBytes = 400;  // Of DynamoDB's answers.
// How many bytes may arrive before the request, and how many of an answer
// beyond twice its limit.
constexpr std::size_t kMaxOtherBytes = 128 * 1024;
// goes_too_far() looks at every eighth call, so never in a usual exchange.
constexpr unsigned kCallsPerLook = 8;
// Of libcurl's for one exchange, two addresses and a resolver included.
constexpr std::size_t kUsualDescriptors = 8;
// How many sockets libcurl has at a time: a kept connection and two addresses.
constexpr std::size_t kUsualSockets = 3;
constexpr char kTlsApplicationData = 23;  // First byte of such a TLS record.
constexpr BootTime kNever = BootTime::max();  // No timer.
constexpr char kNoMemory[] = "out of memory";
constexpr char kTooLarge[] = "the answer is too large";
// How soon libcurl is called again that waits for no descriptor.
constexpr milliseconds kStallCheck(10);

struct Option {
  CURLoption option;
  int value;
};

// All else is left as libcurl has it: no redirect's credentials, no content
// coding, no cookies, no User-Agent; unless told otherwise, proxies by the
// usual variables.
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
    {CURLOPT_TCP_KEEPALIVE, 1},
    // Ten minutes: a service that moves behind its name is followed.
    {CURLOPT_MAXLIFETIME_CONN, 10 * 60},
#if LIBCURL_VERSION_NUM >= 0x075700
    // Ending an exchange leaves a hanging getaddrinfo() to its own thread.
    // Older libcurl waits for it.
    {CURLOPT_QUICK_EXIT, 1},
#endif
};

// Of a request's headers, with those that libcurl is kept from.
constexpr std::size_t kMostHeaderLines = 23;
// libcurl says "Expect" before a body of a megabyte.
constexpr std::size_t kMaxUnexpected = 1 << 19;

// What an error of libcurl means.  Once the request may have left, all that
// can be said is that the connection failed (reset, closed early, truncated, no
// HTTP); also of a CURLE_COULDNT_CONNECT, which then belongs to libcurl's
// attempt to send it again.
Transport meaning(CURLcode code, bool sent) {
#if LIBCURL_VERSION_NUM >= 0x080600
  // One header line was, to libcurl's taste.
  if (code == CURLE_TOO_LARGE) return Transport::too_large;
#endif
  if (sent) return Transport::broken;
  for (const CURLcode bad :
       {CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
        CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_PINNEDPUBKEYNOTMATCH}) {
    if (code == bad) return Transport::bad_certificate;
  }
  // Name, connection (time-out included), proxy, handshake, a bad URL, no
  // memory.
  return Transport::unreachable;
}

// libcurl quotes the URL of a proxy that it does not understand, or what it
// takes for its host: there may be a user and password in it.
bool quotes_a_proxy(CURLcode code, std::string_view error) {
  const auto none = error.npos;
  return code == CURLE_COULDNT_RESOLVE_PROXY || error.find('@') != none ||
         (error.find("proxy") != none && error.find('\'') != none);
}

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
void cut(int fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  connect(fd, &nowhere, sizeof nowhere);
}

int curl_events(int seen) {
  return ((seen & (POLLIN | POLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
         ((seen & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
         ((seen & (POLLERR | POLLNVAL)) != 0 ? CURL_CSELECT_ERR : 0);
}

}  // namespace

// -- Exchange ----------------------------------------------------------------

namespace {

// So that libcurl's callback and drive() mostly need no memory.
template <class Element>
std::vector<Element> room_for(std::size_t count) {
  std::vector<Element> room;
  room.reserve(count);
  return room;
}

}  // namespace

Exchange::Exchange(const HttpOptions& options)
    : lines_(new curl_slist[kMostHeaderLines]),
      watched_(room_for<pollfd>(kUsualDescriptors)),
      polled_fds_(room_for<pollfd>(kPolledBeside + kUsualDescriptors)),
      sockets_(room_for<int>(kUsualSockets)),
      multi_((init_http(), curl_multi_init())),
      easy_(curl_easy_init()),
      parsed_url_(curl_url()),
      max_body_(options.max_answer_bytes),
      connect_timeout_(std::max(options.connect_timeout, milliseconds(1))) {
  if (multi_ == nullptr || easy_ == nullptr) return;  // start() will say so.
  has_options_ = set_options(options);
  set_callbacks();
}

Exchange::~Exchange() {
  const SigpipeGuard guard;
  if (under_way_) curl_multi_remove_handle(multi_, easy_);
  curl_easy_cleanup(easy_);
  curl_multi_cleanup(multi_);
  curl_url_cleanup(static_cast<CURLU*>(parsed_url_));
  headers_.wipe();
  body_.wipe();
}

// False if libcurl had no memory for one of those that it copies.
bool Exchange::set_options(const HttpOptions& options) {
  bool good = true;
  const auto set_text = [&](CURLoption option, const char* text) {
    // Any other error: this libcurl was built without the option.
    const CURLcode code = curl_easy_setopt(easy_, option, text);
    good = good && code != CURLE_OUT_OF_MEMORY;
  };
  static_assert(std::tuple_size_v<decltype(error_)> >= CURL_ERROR_SIZE);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1L);
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
  // libcurl itself would read the variables of proxies in any program.
  if (!options.use_proxies || ignores_environment()) {
    set_text(CURLOPT_PROXY, "");
    set_text(CURLOPT_NOPROXY, "*");
  }
  if (!options.ca_file.empty()) {
    // For proxies too.  They replace the system's CAs.
    set_text(CURLOPT_CAINFO, options.ca_file.c_str());
    set_text(CURLOPT_PROXY_CAINFO, options.ca_file.c_str());
    set_text(CURLOPT_CAPATH, nullptr);
    set_text(CURLOPT_PROXY_CAPATH, nullptr);
  }
  return good;
}

void Exchange::set_callbacks() {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &on_socket);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &on_timer);
  for (const CURLoption data :
       {CURLOPT_PREREQDATA, CURLOPT_HEADERDATA, CURLOPT_WRITEDATA,
        CURLOPT_OPENSOCKETDATA, CURLOPT_CLOSESOCKETDATA, CURLOPT_XFERINFODATA,
        CURLOPT_DEBUGDATA}) {
    curl_easy_setopt(easy_, data, this);
  }
  curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, &on_ready_to_send);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETFUNCTION, &on_close);
  // Not inherited by the program's children, as libcurl's own would be.  Who
  // asks for a connection after the request was sent, wants to send it again:
  // refused here already, without the time that a connection takes.
  curl_easy_setopt(
      easy_, CURLOPT_OPENSOCKETFUNCTION,
      +[](void* self, curlsocktype, curl_sockaddr* address) -> curl_socket_t {
        if (static_cast<Exchange*>(self)->sent()) return CURL_SOCKET_BAD;
        const int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                              address->protocol);
        return static_cast<Exchange*>(self)->opened(fd);
      });
  set_limits();
}

// While libcurl connects, a single call of it may read for as long as a peer
// sends data.  So these callbacks, which libcurl calls meanwhile, check the
// limits.  libcurl calls the progress function for every byte of a proxy's
// refusal.  OpenSSL skips messages of a handshake that mean nothing
// (HelloRequest); libcurl calls the debug function for each, but only if it is
// verbose.  Both cost time.  Once it is connected, a call reads no more than
// some buffers, and after_action() checks the limits.
void Exchange::set_limits() {
  curl_easy_setopt(
      easy_, CURLOPT_XFERINFOFUNCTION,
      +[](void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) -> int {
        return static_cast<Exchange*>(self)->goes_too_far() ? 1 : 0;
      });
  curl_easy_setopt(
      easy_, CURLOPT_DEBUGFUNCTION,
      +[](CURL*, curl_infotype, char*, std::size_t, void* self) -> int {
        Exchange& own = *static_cast<Exchange*>(self);
        if (own.goes_too_far() && !own.sockets_.empty()) {
          cut(own.sockets_.back());
        }
        return 0;
      });
}

void Exchange::start(const std::string& url, BootTime now, Method method) {
  answer_.reset();
  answer_.sent_at = answer_.received_at = now;
  connects_ = in_head_ = head_ended_ = too_large_ = no_memory_ = false;
  connects_too_long_ = spoke_first_ = false;
  head_bytes_ = 0;
  looks_ = 0;
  received_before_.reset();
  error_[0] = '\0';
  if (is_made()) {
    link_headers();
    if (url != url_) set_url(url);
    // libcurl copies nothing of what is set here.
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, lines_.get());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(body_.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, body_.data());
    set_method(method);
    set_time_to_connect(connect_timeout_);
    under_way_ = curl_multi_add_handle(multi_, easy_) == CURLM_OK;
  }
  if (under_way_) return;
  answer_.transport = Transport::unreachable;
  tell("libcurl cannot start a request (out of memory?)");
}

// Best effort: without memory there are no words for people.
void Exchange::tell(const char* error) {
  has_memory_for([&] {
    answer_.error = error;
    // OpenSSL's words for what is no TLS at all.
    if (answer_.error.find("wrong version number") != std::string::npos) {
      answer_.error += " (does the server speak http?)";
    }
  });
}

// CURLINFO_PROXY_SSL_VERIFYRESULT is 0 unless the proxy's certificate failed.
void Exchange::tell_whose_certificate() {
  long of_proxy = 0;
  curl_easy_getinfo(easy_, CURLINFO_PROXY_SSL_VERIFYRESULT, &of_proxy);
  has_memory_for([&] {
    answer_.error.insert(0, of_proxy != 0
                                ? "the proxy's certificate was refused: "
                                : "the server's certificate was refused: ");
  });
}

// Options that mostly stay are set when they change: libcurl takes its time.

// That there is a body makes it a post for libcurl, empty as it may be.
void Exchange::set_method(Method method) {
  const bool is_post = method == Method::post;
  if (std::exchange(method_, method) == method && is_post) return;
  const bool get = method == Method::get;
  curl_easy_setopt(easy_, get ? CURLOPT_HTTPGET : CURLOPT_POST, 1L);
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST,
                   method == Method::put ? "PUT" : nullptr);
}

void Exchange::set_time_to_connect(milliseconds time) {
  if (std::exchange(time_to_connect_, time) == time) return;
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(time.count()));
}

// Parsed once: for each request, it would be a twentieth of what that takes.
void Exchange::set_url(const std::string& url) {
  CURLU* const parsed = static_cast<CURLU*>(parsed_url_);
  // libcurl 7.88 would keep the text of the one before beside it.
  curl_easy_setopt(easy_, CURLOPT_URL, nullptr);
  url_.clear();  // Until all has gone well.
  const bool good =
      curl_url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK;
  curl_easy_setopt(easy_, CURLOPT_CURLU, good ? parsed : nullptr);
  if (good) url_ = url;
}

// The list that libcurl wants, over our own strings.
void Exchange::link_headers() {
  curl_slist* last = nullptr;
  const auto add = [&](const char* line) {
    curl_slist* const next = last != nullptr ? last + 1 : lines_.get();
    if (last != nullptr) last->next = next;
    last = next;
    *last = {const_cast<char*>(line), nullptr};
  };
  // Without a value they keep libcurl from adding its own, and are not sent
  // (nor do they hide the caller's).  One that the headers begin with needs
  // none.
  add("Accept:");
  if (!sigv4::begins_with(headers_, "content-type:")) add("Content-Type:");
  if (body_.size() > kMaxUnexpected) add("Expect:");
  if (headers_.size() > 0 && headers_[headers_.size() - 1] != '\n') {
    headers_ += '\n';
  }
  const curl_slist* const end = lines_.get() + kMostHeaderLines;
  for (std::size_t begin = 0; begin < headers_.size() && last + 1 != end;) {
    const std::size_t line_end = std::string_view(headers_).find('\n', begin);
    headers_[line_end] = '\0';
    add(&headers_[begin]);
    begin = line_end + 1;
  }
}

// Whether data, or the end of the connection, arrived before the request was
// sent.  Only TLS session tickets may arrive then: directly after a handshake,
// in records of application data.
bool Exchange::has_spoken() const {
  char byte = 0;
  const ssize_t got = recv(sockets_.back(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return false;
  return !connects_ || got <= 0 || byte != kTlsApplicationData;
}

// Takes note of a new socket.  Returns what libcurl gets: the socket, or -1.
int Exchange::opened(int fd) {
  if (fd < 0) return -1;
  if (!has_memory_for([&] { sockets_.push_back(fd); })) {
    no_memory_ = true;
    close(fd);
    return -1;
  }
  connects_ = true;
  received_before_ = 0;
  watch_libcurl(true);
  return fd;
}

// Has libcurl call the callbacks of set_limits(), or not.
void Exchange::watch_libcurl(bool watch) {
  curl_easy_setopt(easy_, CURLOPT_NOPROGRESS, watch ? 0L : 1L);
  curl_easy_setopt(easy_, CURLOPT_VERBOSE, watch ? 1L : 0L);
}

bool Exchange::goes_too_far() {
  if (++looks_ % kCallsPerLook != 0) return false;
  connects_too_long_ =
      !sent() && BootClock::now() - answer_.sent_at >= time_to_connect_;
  too_large_ = too_large_ || is_flooded();
  return connects_too_long_ || too_large_;
}

// Whether more bytes have arrived than an honest peer would send.
bool Exchange::is_flooded() {
  if (sockets_.empty()) return false;
  const std::uint64_t received = received_on(sockets_.back());
  if (!received_before_) received_before_ = received;
  const std::uint64_t come = received - *received_before_;
  if (come <= kMaxOtherBytes) return false;
  return !sent() || (come - kMaxOtherBytes) / 2 > max_body_;
}

// Never 0, which libcurl would take for five minutes.
void Exchange::connect_within(std::chrono::nanoseconds time) {
  if (!under_way_ || time >= connect_timeout_) return;
  const auto whole = std::chrono::duration_cast<milliseconds>(time);
  set_time_to_connect(std::max(whole, milliseconds(1)));
}

// If it has ended, its connection is nobody's matter now.
void Exchange::prepare_poll(BootTime now, std::vector<pollfd>& fds) {
  if (due_in_ > milliseconds::zero()) due_ = now + due_in_;
  due_in_ = milliseconds::zero();
  polled_ = under_way_ ? watched_.size() : 0;
  for (std::size_t i = 0; i < polled_; ++i) fds.push_back(watched_[i]);
}

void Exchange::act_if_due(BootTime now) {
  if (due_ <= now) {
    due_ = kNever;  // libcurl sets the next.
    act(CURL_SOCKET_TIMEOUT, 0);
  } else if (stall_check_ <= now) {
    // libcurl 7.88 turns to the next address of a name when one has not
    // answered in time, but asks for no call to connect to it, and
    // curl_multi_socket_action() does not carry on what no timer is due for.
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

// libcurl may have given up a descriptor since: then it is unknown to it, and
// does no harm.
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
    finish(sent() ? Transport::broken : Transport::unreachable,
           no_memory_ ? kNoMemory : curl_multi_strerror(code));
  } else if (running == 0) {
    take_result();
  } else if (sent() && goes_too_far()) {
    finish(Transport::too_large, kTooLarge);
  }
  const bool stalled = under_way_ && watched_.empty();
  stall_check_ = stalled ? BootClock::now() + kStallCheck : kNever;
}

void Exchange::take_result() {
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(multi_, &left);
  if (message == nullptr || message->msg != CURLMSG_DONE) return;
  const CURLcode code = message->data.result;
  if (spoke_first_ && !connects_) return connect_anew();
  if (too_large_ && sent()) {
    error_[0] = '\0';
    finish(Transport::too_large, kTooLarge);
  } else if (too_large_ || connects_too_long_) {
    error_[0] = '\0';
    finish(Transport::unreachable,
           too_large_ ? "too much came before the request was sent"
                      : "the connection was not ready in time");
  } else if (spoke_first_) {
    error_[0] = '\0';
    finish(Transport::unreachable,
           "the server spoke, or hung up, before it was asked");
  } else if (no_memory_) {
    error_[0] = '\0';
    finish(sent() ? Transport::broken : Transport::unreachable, kNoMemory);
  } else if (code != CURLE_OK) {
    if (quotes_a_proxy(code, error_.data())) error_[0] = '\0';
    finish(meaning(code, sent()), curl_easy_strerror(code));
    if (code == CURLE_PEER_FAILED_VERIFICATION) tell_whose_certificate();
  } else if (!head_ended_) {
    // Also of an answer that never got beyond a 1xx.
    finish(Transport::broken,
           "the connection closed before the end of an answer's head");
  } else {
    finish(Transport::complete, "");
  }
}

// Sends the request on a new connection.  libcurl has closed the kept one,
// because on_ready_to_send() refused it.
void Exchange::connect_anew() {
  spoke_first_ = false;
  error_[0] = '\0';
  curl_multi_remove_handle(multi_, easy_);
  if (curl_multi_add_handle(multi_, easy_) == CURLM_OK) return;
  finish(Transport::unreachable, kNoMemory);
}

void Exchange::end(Transport why) {
  if (!under_way_) return;
  const SigpipeGuard guard;
  finish(why, "");
}

// Takes the handle out of the multi, which keeps a connection that is still
// good and closes any other.  `why` is told if libcurl has no words.
void Exchange::finish(Transport how, const char* why) {
  long status = 0, request_bytes = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy_, CURLINFO_REQUEST_SIZE, &request_bytes);
  curl_multi_remove_handle(multi_, easy_);
  headers_.wipe();
  body_.wipe();
  under_way_ = false;
  due_ = stall_check_ = kNever;
  due_in_ = milliseconds::zero();
  answer_.transport = how;
  answer_.bytes_sent = static_cast<std::uint64_t>(request_bytes);
  answer_.bytes_received = head_bytes_ + answer_.body.size();
  answer_.received_at = BootClock::now();
  if (head_ended_) {
    answer_.status = static_cast<int>(status);
  } else {
    answer_.headers.clear();
  }
  if (how == Transport::complete) return;
  // libcurl keeps the trusted certificates, also those that it had no memory
  // to read: whoever could not connect begins with a new handle.
  if (how == Transport::unreachable || how == Transport::bad_certificate) {
    spent_ = true;
  }
  sigv4::wipe(answer_.body);
  tell(error_[0] != '\0' ? error_.data() : why);
}

// -- What libcurl calls ------------------------------------------------------

// The final answer's header lines are kept, without status line and blank
// line; 1xx answers before it and trailers behind its body are not.
std::size_t Exchange::on_header(char* data, std::size_t, std::size_t size,
                                void* self) {
  Exchange& own = *static_cast<Exchange*>(self);
  const std::string_view line(data, size);
  own.head_bytes_ += size;
  if (own.head_bytes_ > kMaxHeaderBytes) {
    own.too_large_ = true;
    return 0;
  }
  if (own.head_ended_) return size;
  if (!own.in_head_) {
    const std::size_t blank = std::min(line.find(' '), size);
    own.interim_ = line.substr(blank, 2) == " 1"sv;
    own.in_head_ = true;
    own.answer_.headers.clear();
    own.no_memory_ = !has_memory_for(
        [&] { own.answer_.headers.reserve(kUsualHeaderBytes); });
  } else if (line[0] == '\r' || line[0] == '\n') {
    own.in_head_ = false;
    own.head_ended_ = !own.interim_;
  } else {
    own.no_memory_ = !has_memory_for([&] { own.answer_.headers.append(line); });
  }
  return own.no_memory_ ? 0 : size;
}

// As the answer's Content-Length says, within the limit; `so_far` without one.
// A body that grew by doubling would take twice the memory that it needs.
std::size_t Exchange::size_of_body(std::size_t so_far) const {
  curl_off_t length = -1;
  curl_easy_getinfo(easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  const auto told = length < 0 ? 0 : static_cast<std::uint64_t>(length);
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(told, so_far, max_body_));
}

// Bodies may hold keys: none is left behind where they do not fit any more, nor
// in libcurl's buffer, which it frees as it stands.
std::size_t Exchange::on_body(char* data, std::size_t, std::size_t size,
                              void* self) {
  Exchange& own = *static_cast<Exchange*>(self);
  std::string& body = own.answer_.body;
  own.too_large_ = size > own.max_body_ - body.size();
  if (!own.too_large_) {
    own.no_memory_ = !has_memory_for([&] {
      if (body.empty()) reserve_secret(body, own.size_of_body(size));
      append_secret(body, {{data, size}});
    });
  }
  explicit_bzero(data, size);
  return own.too_large_ || own.no_memory_ ? 0 : size;
}

// libcurl is about to send the request: once an exchange, see the header.  On
// a kept connection that is when it was begun.  Whatever has arrived by now is
// not the answer, but libcurl would take it for that.  And libcurl 7.88 takes a
// connection that was reset for a live one (fixed in 8.0.0, curl #10652), so
// the request would count as sent.
int Exchange::on_ready_to_send(void* self, char*, char*, int, int) {
  Exchange& own = *static_cast<Exchange*>(self);
  if (own.sent()) return CURL_PREREQFUNC_ABORT;
  own.spoke_first_ = own.has_spoken();
  if (own.spoke_first_) return CURL_PREREQFUNC_ABORT;
  own.answer_.sent = true;
  if (own.connects_) {
    own.answer_.sent_at = BootClock::now();
    own.watch_libcurl(false);
  }
  return CURL_PREREQFUNC_OK;
}

int Exchange::on_close(void* self, int fd) {
  std::vector<int>& sockets = static_cast<Exchange*>(self)->sockets_;
  sockets.erase(std::remove(sockets.begin(), sockets.end(), fd), sockets.end());
  return close(fd);
}

int Exchange::on_socket(void*, int fd, int what, void* self, void*) {
  std::vector<pollfd>& watched = static_cast<Exchange*>(self)->watched_;
  // In no order: the last takes the place of what was said of it before.
  for (pollfd& one : watched) {
    if (one.fd != fd) continue;
    one = watched.back();
    watched.pop_back();
    break;
  }
  if (what == CURL_POLL_REMOVE) return 0;
  const int events = ((what & CURL_POLL_IN) != 0 ? POLLIN : 0) |
                     ((what & CURL_POLL_OUT) != 0 ? POLLOUT : 0);
  const pollfd one = {fd, static_cast<short>(events), 0};
  if (has_memory_for([&] { watched.push_back(one); })) return 0;
  static_cast<Exchange*>(self)->no_memory_ = true;
  static_cast<Exchange*>(self)->spent_ = true;  // -1 is for good.
  return -1;
}

// Mostly at once, for which no clock is needed; else drive() says when.
int Exchange::on_timer(void*, long wait_ms, void* self) {
  Exchange& own = *static_cast<Exchange*>(self);
  own.due_ = wait_ms == 0 ? BootTime::min() : kNever;
  own.due_in_ = milliseconds(std::max(wait_ms, 0L));
  return 0;
}

// libcurl sends with MSG_NOSIGNAL on plain sockets, and since 7.88 also what
// OpenSSL has for it; others, or OpenSSL by itself, may write(2).
bool init_http() {
  static const bool may_raise_sigpipe = [] {
    // libcurl would write the keys of all TLS sessions to the file that this
    // variable names.
    if (ignores_environment()) unsetenv("SSLKEYLOGFILE");
    // Never cleaned up: others in this process may use libcurl too.
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const curl_version_info_data& own = *curl_version_info(CURLVERSION_NOW);
    return own.version_num < 0x075800 || own.ssl_version == nullptr ||
           !sigv4::begins_with(own.ssl_version, "OpenSSL/");
  }();
  return may_raise_sigpipe;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
