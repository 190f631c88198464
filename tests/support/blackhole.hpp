// An address that does not answer.
//
//   ScriptedServer server;
//   const Blackhole blackhole(server.port());  // 127.0.0.2, the same port.
//   const FakeNames names({"127.0.0.2", "127.0.0.1"});  // The dead one first.
#ifndef DDBMUTEX_TESTS_SUPPORT_BLACKHOLE_HPP
#define DDBMUTEX_TESTS_SUPPORT_BLACKHOLE_HPP

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <vector>

namespace tests {

// A listener on 127.0.0.2 whose queue is full: the kernel drops what would
// connect to it.
class Blackhole {
 public:
  explicit Blackhole(int port) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<in_port_t>(port));
    inet_pton(AF_INET, "127.0.0.2", &address_.sin_addr);
    sockets_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    BOOST_REQUIRE(bind(sockets_[0], address(), sizeof address_) == 0);
    BOOST_REQUIRE(listen(sockets_[0], 0) == 0);
    while (connects()) {
    }
  }
  ~Blackhole() {
    for (const int fd : sockets_) close(fd);
  }
  Blackhole(const Blackhole&) = delete;
  Blackhole& operator=(const Blackhole&) = delete;

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }

  bool connects() {
    sockets_.push_back(
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    connect(sockets_.back(), address(), sizeof address_);
    pollfd writable = {sockets_.back(), POLLOUT, 0};
    return poll(&writable, 1, 100) > 0;
  }

  sockaddr_in address_ = {};
  std::vector<int> sockets_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_BLACKHOLE_HPP
