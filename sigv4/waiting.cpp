// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "waiting.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "http.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

using std::chrono::milliseconds;

// How often to look at a waker that has no descriptor.
constexpr milliseconds kWakerPoll(5);

// In milliseconds for poll(2).  Rounded up, so that the last moment is not
// spent in a busy loop.
int poll_timeout(BootTime until, BootTime now) {
  if (until == BootTime::max()) return -1;
  if (until <= now) return 0;  // The difference might not fit in 64 bits.
  const auto left = std::chrono::ceil<milliseconds>(until - now);
  return static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30));
}

// The deadline, or an earlier time if the waker has no descriptor.
BootTime poll_until(BootTime deadline, const Waker* waker, BootTime now) {
  const bool no_descriptor = waker != nullptr && waker->fd() < 0;
  return no_descriptor ? std::min(deadline, now + kWakerPoll) : deadline;
}

bool is_woken(const Waker* waker) { return waker != nullptr && waker->woken(); }

// poll(2) ignores a descriptor of -1.
pollfd polled(const Waker* waker) {
  return {waker != nullptr ? waker->fd() : -1, POLLIN, 0};
}

// Becomes readable at the deadline, or before.
pollfd timer_until(BootTime deadline, Waker* waker) {
  if (waker == nullptr) return {-1, POLLIN, 0};
  waker->timer().set(deadline);
  return {waker->timer().fd(), POLLIN, 0};
}

}  // namespace

// EFD_SEMAPHORE: each read takes only one write.  Otherwise clear() might also
// read the write of a wake() that comes at the same time, and the next clear()
// would wait for ever.
Waker::Waker() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}

Waker::~Waker() {
  if (fd_ >= 0) close(fd_);
}

void Waker::wake() noexcept {
  const std::uint64_t one = 1;
  if (woken_.exchange(true) || fd_ < 0) return;
  while (write(fd_, &one, sizeof one) == -1 && errno == EINTR) {
  }
}

void Waker::clear() noexcept {
  std::uint64_t count;
  if (!woken_.exchange(false) || fd_ < 0) return;
  while (read(fd_, &count, sizeof count) == -1 && errno == EINTR) {
  }
}

// In each round all exchanges do what is due.  Then their descriptors are
// polled, without waiting if an exchange has ended.  Then all exchanges act on
// their descriptors, so that exchanges that end do not starve others.
void drive(Exchange* const* exchanges, std::size_t count, BootTime deadline,
           Waker* waker) {
  Exchange* const* const end = exchanges + count;
  const auto under_way = [&] {
    return std::count_if(exchanges, end,
                         [](Exchange* one) { return one->under_way(); });
  };
  const auto before = under_way();
  if (before == 0) return;
  std::vector<pollfd>& fds = exchanges[0]->polled_fds();
  bool woken = false;
  do {
    BootTime now = BootClock::now();
    for (auto at = exchanges; at != end; ++at) (*at)->act_if_due(now);
    now = BootClock::now();
    BootTime until = poll_until(deadline, waker, now);
    fds.clear();
    fds.push_back(polled(waker));
    fds.push_back(timer_until(deadline, waker));
    for (auto at = exchanges; at != end; ++at) {
      (*at)->prepare_poll(now, fds);
      until = std::min(until, (*at)->next_due());
    }
    const bool ended = under_way() < before;
    if (ended && fds.size() == kPolledFirst) return;  // No exchange is left.
    poll(fds.data(), fds.size(), ended ? 0 : poll_timeout(until, now));
    woken = fds[0].revents != 0 || is_woken(waker);
    const pollfd* fd = fds.data() + kPolledFirst;
    for (auto at = exchanges; at != end; ++at) fd = (*at)->act_on(fd);
  } while (!woken && under_way() == before && BootClock::now() < deadline);
}

void wait_until(BootTime deadline, Waker* waker) {
  while (!is_woken(waker)) {
    const BootTime now = BootClock::now();
    if (now >= deadline) return;
    const BootTime until = poll_until(deadline, waker, now);
    pollfd fds[] = {polled(waker), timer_until(deadline, waker)};
    poll(fds, 2, poll_timeout(until, now));
  }
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
