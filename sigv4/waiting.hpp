// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Waits until a time on the boot clock, until another thread wakes this one, or
// until an HTTP exchange has ended.
#ifndef DDBMUTEX_SIGV4_WAITING_HPP
#define DDBMUTEX_SIGV4_WAITING_HPP

#include <atomic>
#include <cstddef>

#include "boot_clock.hpp"
#include "boot_timer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Ends drive() and wait_until() in another thread.  Any thread may call wake(),
// even before the other one waits: it is remembered until clear().  If no
// descriptor was left, fd() is -1, and drive() and wait_until() look every few
// milliseconds whether wake() was called.
//
// A flag and a descriptor say whether it is woken.  The call that sets the flag
// writes once to the descriptor.  The call that clears the flag reads once, and
// waits for that write if need be.  So the two agree in the end.
class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  void wake() noexcept;
  void clear() noexcept;
  bool woken() const noexcept { return woken_.load(); }
  int fd() const noexcept { return fd_; }  // Readable while woken; -1: none.

  // Ends a poll(2) at a time on the boot clock.  Only drive() and wait_until()
  // use it.
  BootTimer& timer() noexcept { return timer_; }

 private:
  const int fd_;
  BootTimer timer_;
  std::atomic<bool> woken_{false};
};

class Exchange;  // http.hpp

// drive() polls the waker and its timer, and then its exchanges.
constexpr std::size_t kPolledFirst = 2;

// Makes progress with `count` exchanges until one of them has ended, `deadline`
// has come, or `waker` (may be null) was woken.  Does not end an exchange that
// is still under way then.  Returns at once if none is under way.  After the
// deadline, it still does what needs no waiting.
//
// A deadline that passes while the machine is suspended is noticed when the
// machine wakes up.  Without a waker, or without a descriptor for its timer, it
// is noticed later, by the time that was left when the suspend began.
void drive(Exchange* const* exchanges, std::size_t count, BootTime deadline,
           Waker* waker);
inline void drive(Exchange& exchange, BootTime deadline, Waker* waker) {
  Exchange* const one = &exchange;
  sigv4::drive(&one, 1, deadline, waker);
}

// Waits until `deadline`, or until the waker (may be null) is woken.  Does not
// clear it.  Only this thread may wait for it, because its timer is used.
void wait_until(BootTime deadline, Waker* waker);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_WAITING_HPP
