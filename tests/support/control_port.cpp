#include "tests/support/control_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "tests/support/waiting.hpp"

namespace tests {
namespace {

[[noreturn]] void fail_as(const std::string& who, const std::string& what) {
  throw std::runtime_error(who + ": " + what);
}

// A connection to it, for one exchange.
class Caller {
 public:
  Caller(const std::string& who, int port)
      : who_(who), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {kPlenty.count(), 0};
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
        setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) ||
        connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address)) {
      const std::string why = strerror(errno);
      close(fd_);
      fail("no connection to its control port: " + why);
    }
  }
  ~Caller() { close(fd_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void say(const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t size =
          send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) fail("its control port does not listen");
      sent += static_cast<std::size_t>(size);
    }
  }

  // All until it ends.
  std::string hear() {
    std::string text;
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t size = recv(fd_, bytes.data(), bytes.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) fail("its control port does not answer");
      if (size == 0) return text;
      text.append(bytes.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_as(who_, what); }

  const std::string who_;
  const int fd_;
};

}  // namespace

std::string call_control(const std::string& who, int port,
                         const std::string& method, const std::string& path,
                         const std::string& json) {
  Caller caller(who, port);
  caller.say(method + " " + path +
             " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
             "Content-Length: " +
             std::to_string(json.size()) + "\r\n\r\n" + json);
  const std::string answer = caller.hear();
  const std::size_t body = answer.find("\r\n\r\n");
  if (body == std::string::npos) {
    fail_as(who, "its control port says " + answer);
  }
  const std::string said = answer.substr(body + 4);
  if (answer.rfind("HTTP/1.1 200 ", 0) != 0) {
    fail_as(who, method + " " + path + ": " + said);
  }
  return said;
}

std::string first_line(const std::string& who, Process& process) {
  try {
    return process.channel().line(kStarts);
  } catch (const std::runtime_error& problem) {
    fail_as(who, std::string(problem.what()) + ": " + process.complaints());
  }
}

}  // namespace tests
