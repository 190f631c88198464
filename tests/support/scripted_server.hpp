// An HTTP/1.1 server on 127.0.0.1, in threads of the test program, that does
// as a test tells it: answers by a script or by a handler, late, cut short,
// twice, wrongly or never.  It remembers every request that reached it whole,
// so that a test can say "delivered exactly once".
//
//   ScriptedServer server;
//   server.script(Reply::error(500));       // The first request; all others
//   exchange.start(server.url(), {}, "x");  // get 200 and "{}".
//
// A handler is the place for a service's semantics (a table of items, say):
//
//   ScriptedServer server([&](const SeenRequest& request) {
//     return Reply::ok(table.apply(request.body));
//   });
#ifndef DDBMUTEX_TESTS_SUPPORT_SCRIPTED_SERVER_HPP
#define DDBMUTEX_TESTS_SUPPORT_SCRIPTED_SERVER_HPP

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/waiting.hpp"

namespace tests {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct SeenRequest {
  SeenRequest();
  SeenRequest(const SeenRequest&);
  SeenRequest(SeenRequest&&) noexcept;
  ~SeenRequest();
  SeenRequest& operator=(const SeenRequest&);
  SeenRequest& operator=(SeenRequest&&) noexcept;

  std::string method;
  std::string path;
  HeaderList headers;
  std::string body;
  int connection = 0;  // The number of its connection, from 1, as accepted.
  int number = 0;      // Its own, from 1, over all connections.

  // The value of the first header of that name, any case.
  std::optional<std::string> header(std::string_view name) const;
};

// A look at the lock of this name every server answers beside its script and
// its handler, and does not remember: so that a Table may know DynamoDB's clock
// before a test begins.
constexpr const char* kAsksTheTime = "what-time-is-it";

struct Reply;
using Handler = std::function<Reply(const SeenRequest&)>;

// What becomes of the connection.
enum class Ending { keep, close, reset };

// An answer, and what shall be wrong with it.
struct Reply {
  Reply();
  Reply(const Reply&);
  Reply(Reply&&) noexcept;
  ~Reply();
  Reply& operator=(const Reply&);
  Reply& operator=(Reply&&) noexcept;

  int status = 200;
  std::string body = "{}";
  // Beside Date, x-amzn-RequestId, x-amz-crc32, Content-Type and
  // Content-Length, or in place of the one of that name; one without a value
  // takes that one away.
  HeaderList headers;

  std::chrono::milliseconds delay{0};  // Before anything is sent.
  bool hangs = false;                  // Waits for release() first.
  // Asked after delay and hanging for the reply to give; this one's other
  // members do not count.  So a request is applied late, perhaps long after
  // the client has gone.
  Handler then;

  bool silent = false;  // No byte of an answer.
  std::string raw;      // Sent as it stands, instead of an answer.
  bool chunked = false;
  bool endless_headers = false;  // Practically.
  std::string endless;  // Sent behind it again and again, also practically.
  bool endless_key_updates = false;  // Of TLS 1.3, instead of an answer.
  std::string stray;  // Sent behind it once send_stray() is called.
  std::optional<std::size_t> cut_body_at;  // Only so many bytes of the body.

  Ending ending = Ending::keep;  // After all that.

  static Reply ok(std::string body);
  static Reply error(int status, std::string body = "{}");
  // Reads the request and closes without a word.
  static Reply gone(Ending ending);
};

Reply with_header(Reply reply, const std::string& name, std::string value);

// Any thread may call any member.
class ScriptedServer {
 public:
  enum class Scheme { http, https };

  enum class Door { open, shut };

  // Without a handler a request gets 200 and "{}".  Handlers are called one
  // at a time, in the order in which requests have come.  While the door is
  // shut nobody listens at the port: a connection is refused.
  explicit ScriptedServer(Handler handler = nullptr,
                          Scheme scheme = Scheme::http, Door door = Door::open);
  ~ScriptedServer();  // Ends all connections, joins all threads.
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const;  // "http://127.0.0.1:PORT/"
  int port() const { return port_; }
  // A PEM file with the certificate (self-signed, for 127.0.0.1) of https.
  std::string certificate_file() const;

  // For the next request that no earlier script waits for; goes before the
  // handler.
  void script(Reply reply);
  // Each connection accepted from now on is sent this text before anything is
  // read from it.
  void greet(std::string greeting);
  // No TLS handshake that begins from now on is answered.
  void hold_handshakes();
  // Listens from now on.  REQUIRES: the door is shut.
  void open();
  // Lets go what hangs now.
  void release();
  // Sends the stray of the one reply that has one.  Returns when the client's
  // kernel has received it.
  void send_stray();
  // Ends the connections that wait for a request; returns when it is done.
  void end_idle(Ending ending);
  // No connection is accepted any more, all are ended.
  void stop();

  std::vector<SeenRequest> requests() const;
  int request_count() const;
  int connection_count() const;  // Accepted so far.
  // False if there were not so many requests in time.
  bool wait_for_requests(int count, std::chrono::nanoseconds time = kPlenty);

 private:
  struct Tls;
  class Connection;

  void accept_loop();
  bool admit(int fd);
  void join_ended(bool all);
  Reply reply_to(SeenRequest request, SeenRequest* seen);
  bool wait_before(const Reply& reply);
  bool may_handshake();
  bool wait_for_stray();
  void note_stray();
  Reply ask(const Handler& handler, const SeenRequest& request);

  const Handler handler_;
  std::unique_ptr<Tls> tls_;
  int port_ = 0;  // Before listener_, which sets it.
  int listener_;
  std::thread acceptor_;

  std::mutex handler_mutex_;  // Taken before mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Reply> script_;                            // GUARDED_BY(mutex_)
  std::vector<SeenRequest> requests_;                   // GUARDED_BY(mutex_)
  std::list<std::unique_ptr<Connection>> connections_;  // GUARDED_BY(mutex_)
  int accepted_ = 0;                                    // GUARDED_BY(mutex_)
  int releases_ = 0;                                    // GUARDED_BY(mutex_)
  int strays_let_go_ = 0;                               // GUARDED_BY(mutex_)
  int strays_sent_ = 0;                                 // GUARDED_BY(mutex_)
  std::string greeting_;                                // GUARDED_BY(mutex_)
  bool holds_handshakes_ = false;                       // GUARDED_BY(mutex_)
  bool stopping_ = false;                               // GUARDED_BY(mutex_)
};

// While one exists, every host name of this process (the test program's own
// getaddrinfo() stands before the C library's) has these addresses, in this
// order, is unknown if there are none, or is looked up until the end of this
// object, and then unknown.  Numeric addresses and "localhost" libcurl resolves
// itself.  One at a time.
class FakeNames {
 public:
  enum Hanging { hanging };

  explicit FakeNames(std::vector<std::string> addresses);
  explicit FakeNames(Hanging);
  ~FakeNames();
  FakeNames(const FakeNames&) = delete;
  FakeNames& operator=(const FakeNames&) = delete;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_SCRIPTED_SERVER_HPP
