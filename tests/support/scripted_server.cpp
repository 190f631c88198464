#include "tests/support/scripted_server.hpp"

#include <dlfcn.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/support/listening.hpp"

namespace tests {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::string> find_header(const HeaderList& headers,
                                       std::string_view name) {
  for (const auto& header : headers) {
    if (same_name(header.first, name)) return header.second;
  }
  return std::nullopt;
}

std::string http_date() {
  const time_t now = time(nullptr);
  tm utc;
  gmtime_r(&now, &utc);
  char text[40];
  strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

std::string crc32_of(const std::string& body) {
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                         static_cast<uInt>(body.size()));
  return std::to_string(crc);
}

std::string request_id(int number) {
  char text[53];
  std::snprintf(text, sizeof text, "%052d", number);
  return text;
}

// The answer's own headers, then those that the test did not replace.
HeaderList headers_of(const Reply& reply, int number) {
  HeaderList all = reply.headers;
  const auto add = [&all](const char* name, std::string value) {
    if (!find_header(all, name)) all.emplace_back(name, std::move(value));
  };
  add("Date", http_date());
  add("x-amzn-RequestId", request_id(number));
  add("x-amz-crc32", crc32_of(reply.body));
  add("Content-Type", "application/x-amz-json-1.0");
  if (reply.chunked) {
    add("Transfer-Encoding", "chunked");
  } else {
    add("Content-Length", std::to_string(reply.body.size()));
  }
  return all;
}

std::string status_line(int status) {
  return "HTTP/1.1 " + std::to_string(status) +
         (status == 200 ? " OK\r\n" : " As the test wants\r\n");
}

std::string head_of(const Reply& reply, int number) {
  std::string text = status_line(reply.status);
  for (const auto& header : headers_of(reply, number)) {
    if (header.second.empty()) continue;
    text += header.first + ": " + header.second + "\r\n";
  }
  return text;
}

std::string chunk(std::string_view bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

// In two chunks, so that there is something to put together.
std::string chunked(const std::string& body) {
  const std::size_t half = body.size() / 2;
  std::string text;
  if (half > 0) text += chunk(std::string_view(body).substr(0, half));
  if (!body.empty()) text += chunk(std::string_view(body).substr(half));
  return text + chunk({});
}

std::string text_of(const Reply& reply, int number) {
  if (!reply.raw.empty()) return reply.raw;
  std::string text = head_of(reply, number);
  if (reply.endless_headers) return text;
  text += "\r\n";
  const std::string body = reply.chunked ? chunked(reply.body) : reply.body;
  return text + body.substr(0, reply.cut_body_at.value_or(body.size()));
}

// What has no end is sent so often, unless the connection ends before.
constexpr int kEndless = 1 << 20;

std::string endless_of(const Reply& reply) {
  return reply.endless_headers ? "X-Filler: " + std::string(80, 'x') + "\r\n"
                               : reply.endless;
}

void reset_on_close(int fd) {
  const linger at_once = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string("scripted server: ") + what);
}

}  // namespace

SeenRequest::SeenRequest() = default;
SeenRequest::SeenRequest(const SeenRequest&) = default;
SeenRequest::SeenRequest(SeenRequest&&) noexcept = default;
SeenRequest::~SeenRequest() = default;
SeenRequest& SeenRequest::operator=(const SeenRequest&) = default;
SeenRequest& SeenRequest::operator=(SeenRequest&&) noexcept = default;

std::optional<std::string> SeenRequest::header(std::string_view name) const {
  return find_header(headers, name);
}

Reply::Reply() = default;
Reply::Reply(const Reply&) = default;
Reply::Reply(Reply&&) noexcept = default;
Reply::~Reply() = default;
Reply& Reply::operator=(const Reply&) = default;
Reply& Reply::operator=(Reply&&) noexcept = default;

Reply with_header(Reply reply, const std::string& name, std::string value) {
  reply.headers.emplace_back(name, std::move(value));
  return reply;
}

Reply Reply::ok(std::string body) {
  Reply reply;
  reply.body = std::move(body);
  return reply;
}

Reply Reply::error(int status, std::string body) {
  Reply reply = ok(std::move(body));
  reply.status = status;
  return reply;
}

Reply Reply::gone(Ending ending) {
  Reply reply;
  reply.silent = true;
  reply.ending = ending;
  return reply;
}

// -- TLS ---------------------------------------------------------------------

// A key and a self-signed certificate for 127.0.0.1, made on the spot.
struct ScriptedServer::Tls {
  Tls();
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  static X509* self_signed(EVP_PKEY* key);
  void write_file(X509* certificate);

  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  std::string file;
};

X509* ScriptedServer::Tls::self_signed(EVP_PKEY* key) {
  X509* x509 = X509_new();
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509), 24 * 3600);
  X509_set_pubkey(x509, key);
  X509_NAME* name = X509_get_subject_name(x509);
  const char* text = "scripted server";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(text), -1,
                             -1, 0);
  X509_set_issuer_name(x509, name);
  X509_EXTENSION* address = X509V3_EXT_conf_nid(
      nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(x509, address, -1);
  X509_EXTENSION_free(address);
  X509_sign(x509, key, EVP_sha256());
  return x509;
}

void ScriptedServer::Tls::write_file(X509* certificate) {
  const char* directory = std::getenv("TMPDIR");
  file = std::string(directory != nullptr ? directory : "/tmp") +
         "/scripted-server-XXXXXX";
  const int fd = mkstemp(file.data());
  FILE* out = fd >= 0 ? fdopen(fd, "w") : nullptr;
  if (out == nullptr) fail("no temporary file");
  PEM_write_X509(out, certificate);
  std::fclose(out);
}

ScriptedServer::Tls::Tls() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = self_signed(key);
  const bool usable = SSL_CTX_use_certificate(context, certificate) == 1 &&
                      SSL_CTX_use_PrivateKey(context, key) == 1;
  write_file(certificate);
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (!usable) fail("no certificate");
}

ScriptedServer::Tls::~Tls() {
  unlink(file.c_str());
  SSL_CTX_free(context);
}

// -- A connection and its thread ---------------------------------------------

class ScriptedServer::Connection {
 public:
  Connection(ScriptedServer& server, int fd, int number)
      : server_(server), fd_(fd), number_(number) {}

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void join() { thread_.join(); }

  int number() const { return number_; }

  // These REQUIRE the server's mutex.
  bool idle() const { return idle_ && !ended_; }
  bool ended() const { return ended_; }
  void end_when_idle(Ending ending) {
    told_to_end_ = ending;
    if (ending == Ending::reset) reset_on_close(fd_);
    shutdown(fd_, SHUT_RD);  // Wakes our reader; the peer sees nothing yet.
  }
  void cut() {
    if (!ended_) shutdown(fd_, SHUT_RDWR);
  }

 private:
  void run();
  bool handshake();
  bool read_more();
  bool read_request(SeenRequest* request);
  void parse_head(std::string_view head, SeenRequest* request);
  bool send_all(std::string_view text);
  bool greet();
  bool send_stray(const std::string& text);
  bool answer(const Reply& reply, const SeenRequest& request);
  void send_without_end(const std::string& text);
  void send_key_updates_without_end();
  void set_idle(bool idle);
  void close_down(Ending ending);

  ScriptedServer& server_;
  std::thread thread_;
  SSL* ssl_ = nullptr;
  std::string buffer_;  // Read and not used yet.
  const int fd_;
  const int number_;
  bool idle_ = false;                  // GUARDED_BY(server_.mutex_)
  bool ended_ = false;                 // GUARDED_BY(server_.mutex_)
  std::optional<Ending> told_to_end_;  // GUARDED_BY(server_.mutex_)
};

void ScriptedServer::Connection::run() {
  Ending ending = Ending::keep;
  if (greet() && handshake()) {
    set_idle(true);
    SeenRequest request;
    while (ending == Ending::keep && read_request(&request)) {
      SeenRequest seen;
      const Reply reply = server_.reply_to(std::move(request), &seen);
      ending = answer(reply, seen) ? reply.ending : Ending::close;
      request = {};
    }
  }
  close_down(ending);
}

// False if the connection is of no more use.
bool ScriptedServer::Connection::greet() {
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  std::string greeting;
  {
    const std::lock_guard<std::mutex> guard(server_.mutex_);
    greeting = server_.greeting_;
  }
  return send_all(greeting);
}

bool ScriptedServer::Connection::handshake() {
  if (server_.tls_ == nullptr) return true;
  if (!server_.may_handshake()) return false;
  ssl_ = SSL_new(server_.tls_->context);
  SSL_set_fd(ssl_, fd_);
  return SSL_accept(ssl_) == 1;
}

void ScriptedServer::Connection::set_idle(bool idle) {
  const std::lock_guard<std::mutex> guard(server_.mutex_);
  idle_ = idle;
}

bool ScriptedServer::Connection::read_more() {
  char bytes[16384];
  ssize_t got;
  do {
    got = ssl_ != nullptr ? SSL_read(ssl_, bytes, sizeof bytes)
                          : recv(fd_, bytes, sizeof bytes, 0);
  } while (got < 0 && ssl_ == nullptr && errno == EINTR);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

bool ScriptedServer::Connection::read_request(SeenRequest* request) {
  if (buffer_.empty() && !read_more()) return false;
  set_idle(false);
  std::size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more()) return false;
  }
  parse_head(std::string_view(buffer_).substr(0, end), request);
  buffer_.erase(0, end + 4);
  const std::string length = request->header("Content-Length").value_or("0");
  const std::size_t size = std::strtoul(length.c_str(), nullptr, 10);
  while (buffer_.size() < size) {
    if (!read_more()) return false;
  }
  request->body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  request->connection = number_;
  return true;
}

void ScriptedServer::Connection::parse_head(std::string_view head,
                                            SeenRequest* request) {
  const std::string_view first = head.substr(0, head.find("\r\n"));
  const std::size_t blank = std::min(first.find(' '), first.size());
  request->method = first.substr(0, blank);
  request->path = first.substr(std::min(blank + 1, first.size()));
  request->path.resize(std::min(request->path.find(' '), request->path.size()));
  head.remove_prefix(first.size());
  while (head.size() > 2) {
    head.remove_prefix(2);
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(line.size());
    const std::size_t colon = std::min(line.find(':'), line.size());
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    request->headers.emplace_back(line.substr(0, colon), value);
  }
}

bool ScriptedServer::Connection::send_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent =
        ssl_ != nullptr
            ? SSL_write(ssl_, text.data(), static_cast<int>(text.size()))
            : send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && ssl_ == nullptr && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// False if the connection is of no more use.
bool ScriptedServer::Connection::answer(const Reply& reply,
                                        const SeenRequest& request) {
  if (reply.silent) return true;
  const std::string endless = endless_of(reply);
  const bool ends = endless.empty() && !reply.endless_key_updates;
  // Before the answer is out: whoever has it may call end_idle().
  set_idle(reply.ending == Ending::keep && ends);
  if (reply.endless_key_updates) {
    send_key_updates_without_end();
    return false;
  }
  if (!send_all(text_of(reply, request.number))) return false;
  if (!reply.stray.empty()) return send_stray(reply.stray);
  if (!ends) send_without_end(endless);
  return ends;
}

bool ScriptedServer::Connection::send_stray(const std::string& text) {
  if (!server_.wait_for_stray() || !send_all(text)) return false;
  int left = 1;  // Bytes that the client's kernel has not acknowledged.
  while (ioctl(fd_, SIOCOUTQ, &left) == 0 && left > 0) {
    pause(std::chrono::milliseconds(1));
  }
  server_.note_stray();
  return true;
}

void ScriptedServer::Connection::send_without_end(const std::string& text) {
  for (int sent = 0; sent < kEndless && send_all(text); ++sent) continue;
}

void ScriptedServer::Connection::send_key_updates_without_end() {
  for (int sent = 0; sent < kEndless; ++sent) {
    SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
    if (SSL_do_handshake(ssl_) != 1) return;
  }
}

void ScriptedServer::Connection::close_down(Ending ending) {
  const std::lock_guard<std::mutex> guard(server_.mutex_);
  ending = told_to_end_.value_or(ending);
  if (ending == Ending::reset) reset_on_close(fd_);
  if (ssl_ != nullptr) {
    if (ending != Ending::reset) SSL_shutdown(ssl_);
    SSL_free(ssl_);
  }
  close(fd_);
  ended_ = true;
  server_.changed_.notify_all();
}

// -- The server --------------------------------------------------------------

namespace {

// Its threads leave all signals to the test's own, SIGPIPE of TLS included.
std::thread without_signals(std::function<void()> body) {
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return thread;
}

}  // namespace

ScriptedServer::ScriptedServer(Handler handler, Scheme scheme, Door door)
    : handler_(std::move(handler)),
      tls_(scheme == Scheme::https ? std::make_unique<Tls>() : nullptr),
      listener_(socket_on_loopback(port_)) {
  if (listener_ < 0) fail("cannot have a port");
  if (door == Door::open) open();
}

void ScriptedServer::greet(std::string greeting) {
  const std::lock_guard<std::mutex> guard(mutex_);
  greeting_ = std::move(greeting);
}

void ScriptedServer::hold_handshakes() {
  const std::lock_guard<std::mutex> guard(mutex_);
  holds_handshakes_ = true;
}

// False once the server is stopping.
bool ScriptedServer::may_handshake() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !holds_handshakes_; });
  return !stopping_;
}

void ScriptedServer::open() {
  if (listen(listener_, 1024) != 0) fail("cannot listen");
  acceptor_ = without_signals([this] { accept_loop(); });
}

ScriptedServer::~ScriptedServer() { stop(); }

void ScriptedServer::stop() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stopping_) return;
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);  // Wakes accept().
    for (const auto& connection : connections_) connection->cut();
    changed_.notify_all();
  }
  if (acceptor_.joinable()) acceptor_.join();
  close(listener_);
  join_ended(true);
}

void ScriptedServer::accept_loop() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    join_ended(false);
    if (fd >= 0) {
      if (!admit(fd)) return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;  // stop(), or no descriptors left.
    }
  }
}

// False once the server is stopping.
bool ScriptedServer::admit(int fd) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (stopping_) {
    close(fd);
    return false;
  }
  connections_.push_back(std::make_unique<Connection>(*this, fd, ++accepted_));
  connections_.back()->start();
  return true;
}

void ScriptedServer::join_ended(bool all) {
  std::list<std::unique_ptr<Connection>> ended;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto next = std::next(it);
      if (all || (*it)->ended()) ended.splice(ended.end(), connections_, it);
      it = next;
    }
  }
  for (const auto& connection : ended) connection->join();
}

// The handler's mutex first, so that requests are numbered in the order in
// which the handler sees them.
Reply ScriptedServer::reply_to(SeenRequest request, SeenRequest* seen) {
  if (request.body.find(kAsksTheTime) != std::string::npos) {
    *seen = std::move(request);
    return Reply::ok("{}");
  }
  Reply reply;
  int released;
  {
    const std::lock_guard<std::mutex> one_at_a_time(handler_mutex_);
    std::unique_lock<std::mutex> lock(mutex_);
    released = releases_;
    request.number = static_cast<int>(requests_.size()) + 1;
    requests_.push_back(request);
    changed_.notify_all();
    if (!script_.empty()) {
      reply = std::move(script_.front());
      script_.pop_front();
    } else if (handler_) {
      lock.unlock();
      reply = handler_(request);
    }
  }
  for (;;) {
    if (reply.hangs) {
      // A release() since the request was seen, however late this thread is.
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || releases_ != released; });
      released = releases_;
    }
    if (!wait_before(reply) || !reply.then) break;
    reply = ask(reply.then, request);
  }
  *seen = std::move(request);
  return reply;
}

Reply ScriptedServer::ask(const Handler& handler, const SeenRequest& request) {
  const std::lock_guard<std::mutex> one_at_a_time(handler_mutex_);
  return handler(request);
}

// False if the server was stopped meanwhile.
bool ScriptedServer::wait_before(const Reply& reply) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (reply.delay.count() > 0) {
    changed_.wait_for(lock, reply.delay, [&] { return stopping_; });
  }
  return !stopping_;
}

std::string ScriptedServer::url() const {
  return (tls_ != nullptr ? "https://127.0.0.1:" : "http://127.0.0.1:") +
         std::to_string(port_) + "/";
}

std::string ScriptedServer::certificate_file() const {
  return tls_ != nullptr ? tls_->file : std::string();
}

void ScriptedServer::script(Reply reply) {
  const std::lock_guard<std::mutex> guard(mutex_);
  script_.push_back(std::move(reply));
}

void ScriptedServer::release() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++releases_;
  changed_.notify_all();
}

void ScriptedServer::send_stray() {
  std::unique_lock<std::mutex> lock(mutex_);
  const int number = ++strays_let_go_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return stopping_ || strays_sent_ == number; });
}

// False if the server was stopped meanwhile.
bool ScriptedServer::wait_for_stray() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock,
                [&] { return stopping_ || strays_let_go_ > strays_sent_; });
  return !stopping_;
}

void ScriptedServer::note_stray() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++strays_sent_;
  changed_.notify_all();
}

void ScriptedServer::end_idle(Ending ending) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::vector<int> told;
  for (const auto& connection : connections_) {
    if (!connection->idle()) continue;
    connection->end_when_idle(ending);
    told.push_back(connection->number());
  }
  // One that is gone from the list has ended, and was joined.
  const auto is_left = [&told](const std::unique_ptr<Connection>& connection) {
    return !connection->ended() &&
           std::count(told.begin(), told.end(), connection->number()) > 0;
  };
  changed_.wait(lock, [&] {
    return std::none_of(connections_.begin(), connections_.end(), is_left);
  });
}

std::vector<SeenRequest> ScriptedServer::requests() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return requests_;
}

int ScriptedServer::request_count() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return static_cast<int>(requests_.size());
}

int ScriptedServer::connection_count() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return accepted_;
}

bool ScriptedServer::wait_for_requests(int count,
                                       std::chrono::nanoseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(
      lock, time, [&] { return static_cast<int>(requests_.size()) >= count; });
}

// -- Names -------------------------------------------------------------------

namespace {

struct Resolver {
  std::mutex mutex;
  std::condition_variable changed;
  bool faked = false;                  // GUARDED_BY(mutex)
  bool hangs = false;                  // GUARDED_BY(mutex)
  std::vector<std::string> addresses;  // GUARDED_BY(mutex)
  int waiting = 0;                     // GUARDED_BY(mutex)
};

Resolver& resolver() {
  static Resolver* const instance = new Resolver;  // Outlives all threads.
  return *instance;
}

using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*,
                            addrinfo**);

int resolve_really(const char* name, const char* service, const addrinfo* hints,
                   addrinfo** result) {
  static const auto real =
      reinterpret_cast<GetAddrInfo>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, result);
}

// The C library's own nodes, so that its freeaddrinfo() can free the chain.
int resolve_to(const std::vector<std::string>& addresses, const char* service,
               const addrinfo* hints, addrinfo** result) {
  *result = nullptr;
  for (const std::string& address : addresses) {
    addrinfo** end = result;
    while (*end != nullptr) end = &(*end)->ai_next;
    const int error = resolve_really(address.c_str(), service, hints, end);
    if (error != 0) return error;
  }
  return *result != nullptr ? 0 : EAI_NONAME;
}

}  // namespace

FakeNames::FakeNames(std::vector<std::string> addresses) {
  const std::lock_guard<std::mutex> guard(resolver().mutex);
  resolver().faked = true;
  resolver().hangs = false;
  resolver().addresses = std::move(addresses);
}

FakeNames::FakeNames(Hanging) : FakeNames(std::vector<std::string>{}) {
  const std::lock_guard<std::mutex> guard(resolver().mutex);
  resolver().hangs = true;
}

FakeNames::~FakeNames() {
  std::unique_lock<std::mutex> lock(resolver().mutex);
  resolver().hangs = false;
  resolver().changed.notify_all();
  resolver().changed.wait(lock, [] { return resolver().waiting == 0; });
  resolver().faked = false;
}

}  // namespace tests

// Found by libcurl before the C library's.
extern "C" int getaddrinfo(const char* name, const char* service,
                           const addrinfo* hints, addrinfo** result) {
  tests::Resolver& fake = tests::resolver();
  std::unique_lock<std::mutex> lock(fake.mutex);
  if (!fake.faked) {
    lock.unlock();
    return tests::resolve_really(name, service, hints, result);
  }
  ++fake.waiting;
  fake.changed.notify_all();
  fake.changed.wait(lock, [&fake] { return !fake.hangs; });
  --fake.waiting;
  fake.changed.notify_all();
  return tests::resolve_to(fake.addresses, service, hints, result);
}
