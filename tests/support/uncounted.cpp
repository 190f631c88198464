#include "tests/support/uncounted.hpp"

#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>

namespace tests {
namespace {

std::atomic<bool> uncounted{false};

using GetSockOpt = int (*)(int, int, int, void*, socklen_t*);

}  // namespace

Uncounted::Uncounted() { uncounted = true; }
Uncounted::~Uncounted() { uncounted = false; }

}  // namespace tests

extern "C" int getsockopt(int fd, int level, int name, void* value,
                          socklen_t* size) noexcept {
  static const auto real =
      reinterpret_cast<tests::GetSockOpt>(dlsym(RTLD_NEXT, "getsockopt"));
  if (tests::uncounted && level == IPPROTO_TCP && name == TCP_INFO) {
    errno = ENOPROTOOPT;
    return -1;
  }
  return real(fd, level, name, value, size);
}
