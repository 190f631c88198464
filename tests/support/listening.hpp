// Whether anybody listens on a port of 127.0.0.1.
#ifndef DDBMUTEX_TESTS_SUPPORT_LISTENING_HPP
#define DDBMUTEX_TESTS_SUPPORT_LISTENING_HPP

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/waiting.hpp"

namespace tests {

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
