#include "tests/support/suspended.hpp"

#include <dlfcn.h>
#include <poll.h>

#include <atomic>
#include <chrono>

namespace tests {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::atomic<bool> suspended{false};

// How long a wait that stands still takes to see that it is over.
constexpr int kLookAgainMs = 5;

int poll_really(pollfd* fds, nfds_t count, int timeout) {
  static const auto real =
      reinterpret_cast<decltype(&poll)>(dlsym(RTLD_NEXT, "poll"));
  return real(fds, count, timeout);
}

}  // namespace

Suspended::Suspended() { suspended = true; }
Suspended::~Suspended() { suspended = false; }

}  // namespace tests

// Found before the C library's, by libcurl too.
extern "C" int poll(pollfd* fds, nfds_t count, int timeout) {
  using namespace tests;
  // Without descriptors it is a test's own pause.
  const bool stands_still = suspended && timeout > 0 && count > 0;
  if (!stands_still) return poll_really(fds, count, timeout);
  const auto deadline = steady_clock::now() + milliseconds(timeout);
  int ready = 0;
  while (ready == 0 && (suspended || steady_clock::now() < deadline)) {
    ready = poll_really(fds, count, kLookAgainMs);
  }
  return ready;
}
