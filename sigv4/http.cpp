#include "http.hpp"

#include <curl/curl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "secret.hpp"

#if LIBCURL_VERSION_NUM < 0x075000
#error "ddbmutex needs libcurl 7.80 or later (CURLOPT_PREREQFUNCTION)"
#endif

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::size_t kMaxHeaderBytes = 64 * 1024;
constexpr long kMaxConnectionAgeSeconds = 10 * 60;
constexpr BootTime kNow = BootTime::min();    // Due at once.
constexpr BootTime kNever = BootTime::max();  // No timer.
// A kept connection idle for longer than this is looked at before it is used.
constexpr std::chrono::milliseconds kIdleToLookAt(20);
// How soon libcurl is called again that waits for no descriptor.
constexpr std::chrono::milliseconds kStallCheck(10);
// How often a waker without a descriptor is looked at.
constexpr std::chrono::milliseconds kWakerPoll(5);

// libcurl's plain sockets use MSG_NOSIGNAL, but a TLS library may write(2),
// and CURLOPT_NOSIGNAL keeps libcurl from ignoring SIGPIPE meanwhile.  So the
// signal is blocked in this thread, and one that came of our writing removed.
class SigpipeGuard {
 public:
  explicit SigpipeGuard(bool needed) : active_(needed) {
    if (!active_) return;
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &old_);
    // Only a thread that had blocked it before can have one pending.
    if (sigismember(&old_, SIGPIPE) == 1) active_ = !pending();
  }
  ~SigpipeGuard() {
    if (!active_) return;
    const int saved = errno;
    const timespec no_wait = {0, 0};
    while (sigtimedwait(&sigpipe_, nullptr, &no_wait) == -1 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
    errno = saved;
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  static bool pending() {
    sigset_t set;
    return sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 1;
  }

  bool active_;
  sigset_t sigpipe_;
  sigset_t old_;
};

// What an error of libcurl means.  Once the request may have left, all that
// can be said is that the connection failed; also of a CURLE_COULDNT_CONNECT,
// which then belongs to libcurl's attempt to send it again.
Transport meaning(CURLcode code, bool sent) {
  switch (code) {
#if LIBCURL_VERSION_NUM >= 0x080600
    case CURLE_TOO_LARGE:  // One header line was, to libcurl's taste.
      return Transport::too_large;
#endif
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return sent ? Transport::broken : Transport::bad_certificate;
    default:
      // Unsent: name, connection (time-out included), proxy, handshake, a bad
      // URL, no memory.  Sent: reset, closed early, truncated, no HTTP.
      return sent ? Transport::broken : Transport::unreachable;
  }
}

// libcurl 7.88 turns to the next address of a name when one has not answered in
// time, but asks for no call to connect to it, and curl_multi_socket_action()
// does not carry on what no timer is due for.  This does.
CURLMcode act_on_all(CURLM* multi, int* running) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return curl_multi_socket_all(multi, running);
#pragma GCC diagnostic pop
}

// libcurl 7.88 takes a kept connection that was reset for a live one (mended
// in 8.0.0, curl #10652), and the request would count as sent.
bool must_look_at_kept() {
  static const bool result =
      curl_version_info(CURLVERSION_NOW)->version_num >> 8 == 0x0758;
  return result;
}

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using ParsedUrl = std::unique_ptr<CURLU, UrlDeleter>;

// libcurl quotes the URL of a proxy that it does not understand, or what it
// takes for its host: there may be a user and password in it.
bool quotes_a_proxy(CURLcode code, std::string_view error) {
  const auto has = [&](std::string_view part) {
    return error.find(part) != error.npos;
  };
  return code == CURLE_COULDNT_RESOLVE_PROXY || has("@") ||
         (has("proxy") && has("'"));
}

bool is_https(const std::string& url) {
  return strncasecmp(url.c_str(), "https:", 6) == 0;
}

// poll(2) takes milliseconds: rounded up, so as not to spin before the time.
int poll_timeout(BootTime until) {
  if (until == kNever) return -1;
  if (until == kNow) return 0;
  const BootTime now = BootClock::now();
  if (until <= now) return 0;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - now + std::chrono::nanoseconds(999999));
  return static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30));
}

int curl_events(int seen) {
  return ((seen & (POLLIN | POLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
         ((seen & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
         ((seen & (POLLERR | POLLNVAL)) != 0 ? CURL_CSELECT_ERR : 0);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

// -- Answer and waker --------------------------------------------------------

std::optional<std::string_view> HttpAnswer::header(
    std::string_view name) const {
  std::string_view rest = headers;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.size() > name.size() && line[name.size()] == ':' &&
        same_name(line.substr(0, name.size()), name)) {
      return trimmed(line.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

Waker::Waker() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Waker::~Waker() {
  if (fd_ >= 0) close(fd_);
}

void Waker::wake() noexcept {
  woken_.store(true);
  if (fd_ < 0) return;
  const std::uint64_t one = 1;
  // Fails only with EAGAIN, when the counter is full: woken all the same.
  while (write(fd_, &one, sizeof one) == -1 && errno == EINTR) {
  }
}

void Waker::clear() noexcept {
  woken_.store(false);
  if (fd_ < 0) return;
  std::uint64_t count;
  while (read(fd_, &count, sizeof count) == -1 && errno == EINTR) {
  }
}

// -- Exchange ----------------------------------------------------------------

struct Exchange::Impl {
  explicit Impl(const HttpOptions& options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void set_multi_options();
  void set_fixed_options(const HttpOptions& options);
  void set_connection_options();
  void set_callbacks();
  void set_connect_timeout(std::chrono::milliseconds time);
  bool set_request(const std::string& new_url);
  void set_method(Method wanted);
  void set_body();
  void link_headers();
  bool kept_connection_is_dead(BootTime now) const;

  BootTime next_time() const { return std::min(due, stall_check); }
  void act_on_time(BootTime now);  // These may end the exchange.
  void act(curl_socket_t fd, int events);
  void after_action(CURLMcode code, int running);
  void finish_if_done();
  void finish(Transport how);
  void on_result(CURLcode code);

  class Driver;

  std::size_t on_header(std::string_view line);
  void make_room(std::size_t size);
  std::size_t on_body(std::string_view bytes);
  curl_socket_t on_open(const curl_sockaddr& address);
  int on_ready_to_send();
  void on_socket(curl_socket_t fd, int what);
  void on_timer(long wait_ms);

  CURLM* multi;
  CURL* easy;
  bool wants_sigpipe_guard = false;  // Has ever had a TLS connection.
  int connection = -1;               // The kept one, if it must be looked at.
  bool opened = false;               // A socket, in this exchange.
  BootTime last_used{};
  bool fresh = false;  // CURLOPT_FRESH_CONNECT.

  // libcurl reads the request from here until the exchange has ended.
  Method method = Method::post;
  std::string url;
  ParsedUrl parsed_url;
  std::string body;
  std::vector<std::string> headers;
  std::vector<curl_slist> nodes;

  const std::size_t max_body;
  const std::chrono::milliseconds longest_connect_timeout;
  std::chrono::milliseconds connect_timeout{0};  // As libcurl was told.
  HttpAnswer answer;
  bool under_way = false;
  bool in_headers = false;     // Between a status line and its blank line.
  bool interim = false;        // That status line's code was 1xx.
  bool headers_ended = false;  // The final answer's.
  bool too_large = false;
  std::size_t header_bytes = 0;  // Of all answers to this request.
  std::size_t usual_header_bytes = 0;
  char error[CURL_ERROR_SIZE];

  // What libcurl waits for.
  std::vector<pollfd> watched;
  BootTime due = kNever;
  BootTime stall_check = kNever;  // If it named no descriptor.
};

namespace {

// Adds these to every request: without a value they keep libcurl from adding
// its own, and are not sent (nor do they hide the caller's).
constexpr std::array<const char*, 3> kWithheld = {
    "Accept:", "Content-Type:", "Expect:"};

}  // namespace

Exchange::Impl::Impl(const HttpOptions& options)
    : multi((init_http(), curl_multi_init())),
      easy(curl_easy_init()),
      max_body(options.max_answer_bytes),
      longest_connect_timeout(options.connect_timeout) {
  error[0] = '\0';
  if (multi == nullptr || easy == nullptr) return;  // start() will say so.
  set_multi_options();
  set_fixed_options(options);
  set_connection_options();
  set_callbacks();
}

Exchange::Impl::~Impl() {
  const SigpipeGuard guard(wants_sigpipe_guard);
  if (under_way) curl_multi_remove_handle(multi, easy);
  curl_easy_cleanup(easy);
  curl_multi_cleanup(multi);
}

void Exchange::Impl::set_multi_options() {
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(
      multi, CURLMOPT_SOCKETFUNCTION,
      +[](CURL*, curl_socket_t fd, int what, void* self, void*) {
        static_cast<Impl*>(self)->on_socket(fd, what);
        return 0;
      });
  curl_multi_setopt(multi, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(
      multi, CURLMOPT_TIMERFUNCTION, +[](CURLM*, long wait_ms, void* self) {
        static_cast<Impl*>(self)->on_timer(wait_ms);
        return 0;
      });
}

// Left as libcurl has them: no redirect's credentials, no content coding, no
// cookies, no User-Agent; unless told otherwise, proxies by the usual
// variables.
void Exchange::Impl::set_fixed_options(const HttpOptions& options) {
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                   static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS,
                   static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                   static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options.use_proxies) {
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  }
  if (!options.ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca_file.c_str());
    // Instead of the system's, not beside them.
    curl_easy_setopt(easy, CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
}

void Exchange::Impl::set_connection_options() {
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  // So that a service that moves behind its name is followed.
  curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, kMaxConnectionAgeSeconds);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Ending an exchange leaves a hanging getaddrinfo() to its own thread.
  // Older libcurl waits for it.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(
      easy, CURLOPT_OPENSOCKETFUNCTION,
      +[](void* self, curlsocktype, curl_sockaddr* address) -> curl_socket_t {
        return static_cast<Impl*>(self)->on_open(*address);
      });
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
  curl_easy_setopt(
      easy, CURLOPT_CLOSESOCKETFUNCTION, +[](void* self, curl_socket_t fd) {
        int& kept = static_cast<Impl*>(self)->connection;
        if (kept == fd) kept = -1;
        return close(fd);
      });
}

// More than 0, which libcurl would take for five minutes.
void Exchange::Impl::set_connect_timeout(std::chrono::milliseconds time) {
  time = std::max(time, std::chrono::milliseconds(1));
  if (time == connect_timeout) return;
  connect_timeout = time;
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(time.count()));
}

void Exchange::Impl::set_callbacks() {
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, this);
  curl_easy_setopt(
      easy, CURLOPT_PREREQFUNCTION, +[](void* self, char*, char*, int, int) {
        return static_cast<Impl*>(self)->on_ready_to_send();
      });
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(
      easy, CURLOPT_HEADERFUNCTION,
      +[](char* data, std::size_t, std::size_t size, void* self) {
        return static_cast<Impl*>(self)->on_header({data, size});
      });
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(
      easy, CURLOPT_WRITEFUNCTION,
      +[](char* data, std::size_t, std::size_t size, void* self) {
        const std::size_t taken =
            static_cast<Impl*>(self)->on_body({data, size});
        explicit_bzero(data, size);  // libcurl frees its buffer as it stands.
        return taken;
      });
}

// The list that libcurl wants, over our own strings.
void Exchange::Impl::link_headers() {
  nodes.resize(headers.size() + kWithheld.size());
  curl_slist* node = nodes.data();
  for (std::string& line : headers) (node++)->data = line.data();
  for (const char* line : kWithheld) (node++)->data = const_cast<char*>(line);
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    nodes[i].next = &nodes[i + 1];
  }
  nodes.back().next = nullptr;
}

bool Exchange::Impl::set_request(const std::string& new_url) {
  if (multi == nullptr || easy == nullptr) return false;
  if (new_url != url) {
    url = new_url;
    wants_sigpipe_guard = wants_sigpipe_guard || is_https(url);
    // As text it would be parsed again for every request.
    parsed_url.reset(curl_url());
    curl_url_set(parsed_url.get(), CURLUPART_URL, url.c_str(), 0);
    curl_easy_setopt(easy, CURLOPT_CURLU, parsed_url.get());
  }
  link_headers();
  set_connect_timeout(longest_connect_timeout);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, nodes.data());
  if (method != Method::get) set_body();
  if (kept_connection_is_dead(answer.sent_at) != fresh) {
    fresh = !fresh;
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
  }
  return curl_multi_add_handle(multi, easy) == CURLM_OK;
}

void Exchange::Impl::set_body() {
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data());
}

void Exchange::Impl::set_method(Method wanted) {
  if (wanted == method) return;
  method = wanted;
  const bool get = method == Method::get;
  curl_easy_setopt(easy, get ? CURLOPT_HTTPGET : CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                   method == Method::put ? "PUT" : nullptr);
}

// A look costs a system call, 3 % of a request: spared on a connection that
// was in use just now.
bool Exchange::Impl::kept_connection_is_dead(BootTime now) const {
  if (connection < 0 || now - last_used < kIdleToLookAt) return false;
  char byte;
  return recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
         errno != EAGAIN;
}

void Exchange::Impl::act(curl_socket_t fd, int events) {
  int running = 0;
  const CURLMcode code = curl_multi_socket_action(multi, fd, events, &running);
  after_action(code, running);
}

// REQUIRES: next_time() has come.
void Exchange::Impl::act_on_time(BootTime now) {
  if (due <= now) {
    due = kNever;  // libcurl sets the next.
    act(CURL_SOCKET_TIMEOUT, 0);
    return;
  }
  int running = 0;
  const CURLMcode code = act_on_all(multi, &running);
  after_action(code, running);
}

void Exchange::Impl::after_action(CURLMcode code, int running) {
  if (code != CURLM_OK) {
    answer.error = curl_multi_strerror(code);
    finish(answer.sent ? Transport::broken : Transport::unreachable);
  } else if (running == 0) {
    finish_if_done();
  }
  const bool stalled = under_way && watched.empty() && due != kNow;
  stall_check = stalled ? BootClock::now() + kStallCheck : kNever;
}

void Exchange::Impl::finish_if_done() {
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(multi, &left);
  if (message == nullptr || message->msg != CURLMSG_DONE) return;
  on_result(message->data.result);
}

void Exchange::Impl::on_result(CURLcode code) {
  // CURLE_OK also comes of a connection that closed amid the headers, and of
  // an answer that never got beyond a 1xx.
  if (too_large) {
    finish(Transport::too_large);
  } else if (code != CURLE_OK) {
    if (quotes_a_proxy(code, error)) error[0] = '\0';
    if (error[0] == '\0') answer.error = curl_easy_strerror(code);
    finish(meaning(code, answer.sent));
  } else if (!headers_ended) {
    answer.error = "the connection closed before the end of an answer's head";
    finish(Transport::broken);
  } else {
    finish(Transport::complete);
  }
}

// Takes the handle out of the multi, which keeps a connection that is still
// good and closes any other.
void Exchange::Impl::finish(Transport how) {
  if (headers_ended) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
  }
  long request_bytes = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request_bytes);
  answer.bytes_sent = static_cast<std::uint64_t>(request_bytes);
  answer.bytes_received = header_bytes + answer.body.size();
  if (opened && must_look_at_kept()) {
    curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &connection);
  }
  curl_multi_remove_handle(multi, easy);
  for (std::string& line : headers) explicit_bzero(line.data(), line.size());
  explicit_bzero(body.data(), body.size());
  under_way = false;
  due = stall_check = kNever;
  answer.transport = how;
  answer.received_at = last_used = BootClock::now();
  usual_header_bytes = answer.headers.size();
  if (how == Transport::complete) return;
  wipe(answer.body);  // A part of a body helps nobody.
  if (!headers_ended) answer.headers.clear();
  if (error[0] != '\0') answer.error = error;
  // OpenSSL's words for what is no TLS at all.
  if (answer.error.find("wrong version number") != std::string::npos) {
    answer.error += " (is it http that is spoken there?)";
  }
  if (too_large) answer.error = "the answer is too large";
}

// The final answer's header lines are kept, without status line and blank
// line; 1xx answers before it and trailers behind its body are not.
std::size_t Exchange::Impl::on_header(std::string_view line) {
  header_bytes += line.size();
  if (header_bytes > kMaxHeaderBytes) {
    too_large = true;
    return 0;
  }
  if (headers_ended) return line.size();
  if (!in_headers) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    interim = line.substr(blank, 2) == " 1";
    in_headers = true;
    answer.headers.clear();
  } else if (line[0] == '\r' || line[0] == '\n') {
    in_headers = false;
    headers_ended = !interim;
  } else {
    answer.headers.append(line);
  }
  return line.size();
}

// Bodies may hold keys: none is left behind where they do not fit any more.
void Exchange::Impl::make_room(std::size_t size) {
  const std::size_t needed = answer.body.size() + size;
  if (needed <= answer.body.capacity()) return;
  std::string larger;
  larger.reserve(std::max(needed, 2 * answer.body.capacity()));
  larger.append(answer.body);
  wipe(answer.body);
  answer.body.swap(larger);
}

std::size_t Exchange::Impl::on_body(std::string_view bytes) {
  if (bytes.size() > max_body - answer.body.size()) {
    too_large = true;
    return 0;
  }
  make_room(bytes.size());
  answer.body.append(bytes);
  return bytes.size();
}

// Not inherited by the program's children, as libcurl's own would be.  Who asks
// for a connection after the request was sent, wants to send it again: refused
// here already, without the time that a connection takes.
curl_socket_t Exchange::Impl::on_open(const curl_sockaddr& address) {
  if (answer.sent) return CURL_SOCKET_BAD;
  opened = true;
  return socket(address.family, address.socktype | SOCK_CLOEXEC,
                address.protocol);
}

// libcurl is about to send the request: once an exchange, see the header.
int Exchange::Impl::on_ready_to_send() {
  if (answer.sent) return CURL_PREREQFUNC_ABORT;
  answer.sent = true;
  answer.sent_at = BootClock::now();
  return CURL_PREREQFUNC_OK;
}

void Exchange::Impl::on_socket(curl_socket_t fd, int what) {
  auto it = std::find_if(watched.begin(), watched.end(),
                         [fd](const pollfd& p) { return p.fd == fd; });
  if (what == CURL_POLL_REMOVE) {
    if (it == watched.end()) return;
    *it = watched.back();
    watched.pop_back();
    return;
  }
  if (it == watched.end()) it = watched.insert(it, pollfd{fd, 0, 0});
  it->events = static_cast<short>(((what & CURL_POLL_IN) != 0 ? POLLIN : 0) |
                                  ((what & CURL_POLL_OUT) != 0 ? POLLOUT : 0));
}

void Exchange::Impl::on_timer(long wait_ms) {
  if (wait_ms < 0) {
    due = kNever;
  } else if (wait_ms == 0) {
    due = kNow;
  } else {
    due = BootClock::now() + std::chrono::milliseconds(wait_ms);
  }
}

Exchange::Exchange(const HttpOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

Exchange::~Exchange() = default;

void Exchange::start(const std::string& url, std::vector<std::string> headers,
                     std::string body) {
  begin(Method::post, url, std::move(headers), std::move(body));
}

void Exchange::start(HttpRequest request) {
  begin(request.method, request.url, std::move(request.headers),
        std::move(request.body));
}

void Exchange::begin(Method method, const std::string& url,
                     std::vector<std::string> headers, std::string body) {
  Impl& impl = *impl_;
  impl.set_method(method);
  impl.headers = std::move(headers);
  impl.body = std::move(body);
  impl.answer.transport = Transport::under_way;
  impl.answer.sent = false;
  impl.answer.status = 0;
  impl.answer.body.clear();
  impl.answer.headers.clear();
  impl.answer.headers.reserve(impl.usual_header_bytes);
  impl.answer.error.clear();
  impl.answer.sent_at = impl.answer.received_at = BootClock::now();
  impl.in_headers = impl.headers_ended = impl.too_large = false;
  impl.opened = false;
  impl.header_bytes = 0;
  impl.error[0] = '\0';
  impl.under_way = impl.set_request(url);
  if (impl.under_way) return;
  impl.answer.transport = Transport::unreachable;
  impl.answer.error = "libcurl cannot begin a request (out of memory?)";
}

void Exchange::connect_within(std::chrono::nanoseconds time) {
  if (!impl_->under_way || time >= impl_->longest_connect_timeout) return;
  impl_->set_connect_timeout(
      std::chrono::duration_cast<std::chrono::milliseconds>(time));
}

bool Exchange::under_way() const noexcept { return impl_->under_way; }

bool Exchange::sent() const noexcept { return impl_->answer.sent; }

void Exchange::end(Transport why) {
  if (!impl_->under_way) return;
  const SigpipeGuard guard(impl_->wants_sigpipe_guard);
  impl_->finish(why);
}

const HttpAnswer& Exchange::answer() const noexcept { return impl_->answer; }

HttpAnswer Exchange::take_answer() { return std::move(impl_->answer); }

// -- Driving -----------------------------------------------------------------

// What one drive() moves, and the descriptors of one poll(2).  A few of them,
// the common case, need no memory beyond the stack.
class Exchange::Impl::Driver {
 public:
  Driver(Exchange* const* exchanges, std::size_t count, Waker* waker)
      : exchanges_(exchanges), count_(count), waker_(waker) {}

  bool ended() const { return ended_; }
  bool woken() const { return woken_; }
  bool any_under_way() const;
  bool wants_sigpipe_guard() const;
  void fire_timers();
  void wait(BootTime deadline);

 private:
  Impl& at(std::size_t i) const { return *exchanges_[i]->impl_; }
  BootTime earliest(BootTime deadline) const;
  void reserve();
  void collect();
  void dispatch();

  Exchange* const* const exchanges_;
  const std::size_t count_;
  Waker* const waker_;
  bool ended_ = false;
  bool woken_ = false;

  std::array<pollfd, 8> few_;
  std::array<Impl*, 8> few_owners_;
  std::vector<pollfd> many_;
  std::vector<Impl*> many_owners_;
  pollfd* polled_ = nullptr;  // Descriptors, and beside each
  Impl** owners_ = nullptr;   // whose it is; the waker's is nullptr.
  std::size_t size_ = 0;
};

bool Exchange::Impl::Driver::any_under_way() const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (at(i).under_way) return true;
  }
  return false;
}

bool Exchange::Impl::Driver::wants_sigpipe_guard() const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (at(i).wants_sigpipe_guard) return true;
  }
  return false;
}

void Exchange::Impl::Driver::fire_timers() {
  BootTime now = kNow;  // Read when it is needed.
  for (std::size_t i = 0; i < count_; ++i) {
    const BootTime when = at(i).next_time();
    if (when == kNever) continue;
    if (when != kNow && now == kNow) now = BootClock::now();
    if (when > now) continue;
    at(i).act_on_time(now);
    ended_ = ended_ || !at(i).under_way;
  }
}

BootTime Exchange::Impl::Driver::earliest(BootTime deadline) const {
  for (std::size_t i = 0; i < count_; ++i) {
    deadline = std::min(deadline, at(i).next_time());
  }
  if (waker_ != nullptr && waker_->fd() < 0) {
    deadline = std::min(deadline, BootClock::now() + kWakerPoll);
  }
  return deadline;
}

// Room for all descriptors of the exchanges and the waker's.
void Exchange::Impl::Driver::reserve() {
  std::size_t needed = 1;
  for (std::size_t i = 0; i < count_; ++i) {
    if (at(i).under_way) needed += at(i).watched.size();
  }
  if (needed <= few_.size()) {
    polled_ = few_.data();
    owners_ = few_owners_.data();
    return;
  }
  if (many_.size() < needed) {
    many_.resize(needed);
    many_owners_.resize(needed);
  }
  polled_ = many_.data();
  owners_ = many_owners_.data();
}

void Exchange::Impl::Driver::collect() {
  reserve();
  size_ = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!at(i).under_way) continue;  // Its connection is nobody's matter now.
    for (const pollfd& fd : at(i).watched) {
      owners_[size_] = &at(i);
      polled_[size_++] = fd;
    }
  }
  if (waker_ == nullptr || waker_->fd() < 0) return;
  owners_[size_] = nullptr;
  polled_[size_++] = {waker_->fd(), POLLIN, 0};
}

// The exchanges' own lists change meanwhile; a descriptor that libcurl has
// given up since is unknown to it, and does no harm.
void Exchange::Impl::Driver::dispatch() {
  for (std::size_t i = 0; i < size_; ++i) {
    if (polled_[i].revents == 0) continue;
    if (owners_[i] == nullptr) {
      woken_ = true;
      continue;
    }
    const int events = curl_events(polled_[i].revents);
    Impl& impl = *owners_[i];
    if (impl.under_way) impl.act(polled_[i].fd, events);
    ended_ = ended_ || !impl.under_way;
  }
}

// Does not wait if something has ended, but looks at all descriptors, so that
// no exchange is starved by others that end.
void Exchange::Impl::Driver::wait(BootTime deadline) {
  collect();
  const int timeout = ended_ ? 0 : poll_timeout(earliest(deadline));
  const int ready = poll(polled_, size_, timeout);
  if (ready > 0) dispatch();
  if (waker_ != nullptr && waker_->fd() < 0) woken_ = waker_->woken_.load();
}

void drive(Exchange* const* exchanges, std::size_t count, BootTime deadline,
           Waker* waker) {
  Exchange::Impl::Driver driver(exchanges, count, waker);
  if (count > 0 && !driver.any_under_way()) return;
  const SigpipeGuard guard(driver.wants_sigpipe_guard());
  do {
    driver.fire_timers();
    if (driver.ended() && !driver.any_under_way()) return;
    driver.wait(deadline);
  } while (!driver.ended() && !driver.woken() && BootClock::now() < deadline);
}

void wait_for(const Waker& one, const Waker* other, BootTime deadline) {
  const auto woken = [&] {
    return one.woken() || (other != nullptr && other->woken());
  };
  // poll(2) passes over what is -1.
  pollfd fds[] = {{one.fd(), POLLIN, 0},
                  {other != nullptr ? other->fd() : -1, POLLIN, 0}};
  const bool blind = one.fd() < 0 || (other != nullptr && other->fd() < 0);
  while (!woken() && BootClock::now() < deadline) {
    const BootTime look = BootClock::now() + kWakerPoll;
    poll(fds, 2, poll_timeout(blind ? std::min(deadline, look) : deadline));
  }
}

HttpAnswer exchange(const HttpOptions& options, HttpRequest request,
                    BootTime deadline, Waker& stop) {
  Exchange one(options);
  Exchange* const all = &one;
  one.start(std::move(request));
  while (one.under_way() && !stop.woken() && BootClock::now() < deadline) {
    drive(&all, 1, deadline, &stop);
  }
  one.end(stop.woken() ? Transport::cancelled : Transport::timed_out);
  return one.take_answer();
}

// -- Pool --------------------------------------------------------------------

HttpPool::HttpPool(HttpOptions options) : options_(std::move(options)) {}

HttpPool::~HttpPool() = default;

std::unique_ptr<Exchange> HttpPool::take() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Exchange> exchange = std::move(idle_.back());
      idle_.pop_back();
      return exchange;
    }
  }
  return std::make_unique<Exchange>(options_);
}

// One too many is closed outside the lock: that may write to the network.
void HttpPool::give_back(std::unique_ptr<Exchange> exchange) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (idle_.size() < options_.max_idle) idle_.push_back(std::move(exchange));
}

// -- URL ---------------------------------------------------------------------

namespace {

std::string part_of(const ParsedUrl& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string result(text);
  curl_free(text);
  return result;
}

bool has_part(const ParsedUrl& url, CURLUPart part) {
  char* text = nullptr;
  const CURLUcode code = curl_url_get(url.get(), part, &text, 0);
  curl_free(text);
  return code == CURLUE_OK;
}

// "scheme://" and a character that no authority lacks: libcurl also takes one
// slash or three, and does not tell an empty query or fragment from none.
// The authority is what it says: libcurl decodes a host, which may then read as
// another (an address, say), and spells one that is not ASCII in its own way.
bool is_plain(const std::string& text) {
  if (text.find_first_of("?#") != std::string::npos) return false;
  const std::size_t colon = text.find(':');
  if (colon == text.npos || text.compare(colon, 3, "://") != 0) return false;
  const std::string rest = text.substr(colon + 3);
  const std::string authority = rest.substr(0, rest.find('/'));
  return !authority.empty() &&
         std::all_of(authority.begin(), authority.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != '%'; });
}

}  // namespace

std::optional<Url> parse_url(const std::string& text) {
  const ParsedUrl url(curl_url());
  if (url == nullptr || !is_plain(text)) return std::nullopt;
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return std::nullopt;
  }
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY,
        CURLUPART_FRAGMENT}) {
    if (has_part(url, part)) return std::nullopt;
  }
  Url result{part_of(url, CURLUPART_SCHEME), part_of(url, CURLUPART_HOST),
             part_of(url, CURLUPART_PATH)};
  if (result.scheme != "http" && result.scheme != "https") return std::nullopt;
  if (result.authority.empty()) return std::nullopt;
  const std::string port = part_of(url, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  if (!port.empty()) result.authority += ":" + port;
  if (result.path.empty()) result.path = "/";
  return result;
}

void init_http() {
  static std::once_flag once;
  // Never cleaned up: others in this process may use libcurl too.
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
