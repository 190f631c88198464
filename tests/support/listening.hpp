// Ports of 127.0.0.1: a free one, and whether anybody listens there.
#ifndef DDBMUTEX_TESTS_SUPPORT_LISTENING_HPP
#define DDBMUTEX_TESTS_SUPPORT_LISTENING_HPP

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/waiting.hpp"

namespace tests {

// A socket that is bound to a free port and listens to nobody yet; -1 if there
// is none.
inline int socket_on_loopback(int& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, any, size) != 0 || getsockname(fd, any, &size) != 0) {
    return -1;
  }
  port = ntohs(address.sin_port);
  return fd;
}

inline bool anybody_listens(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return connected;
}

// For one that was just killed by the kernel, which takes its time.
inline bool falls_silent(int port) {
  return eventually([port] { return !anybody_listens(port); });
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_LISTENING_HPP
