// Waiting until a time on the boot clock, or until another thread wakes this
// one, or until an HTTP exchange has ended.
#ifndef DDBMUTEX_SIGV4_WAITING_HPP
#define DDBMUTEX_SIGV4_WAITING_HPP

#include <atomic>
#include <cstddef>

#include "boot_clock.hpp"
#include "boot_timer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Wakes a thread out of drive() and wait_for().  Any thread may call wake(),
// also before the other waits: it is remembered until clear().  If there was no
// descriptor left, fd() is -1, and drive() and wait_for() look every few
// milliseconds whether it was woken.
//
// The flag decides and the descriptor follows: the call that sets the flag
// writes once, the call that clears it reads once, and waits for that write if
// need be.  So the two always agree in the end.
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

  // Ends the poll(2) of whoever waits with this at a time on the boot clock.
  // Set by drive() and wait_for() alone.
  BootTimer& timer() noexcept { return timer_; }

 private:
  const int fd_;
  BootTimer timer_;
  std::atomic<bool> woken_{false};
};

class Exchange;  // http.hpp

// How many descriptors drive() polls beside those of its exchanges: the waker's
// and its timer's, which come first.
constexpr std::size_t kPolledBeside = 2;

// Drives `count` exchanges until at least one that was under way has ended,
// `deadline` has come, or `waker` (may be null) was woken.  Does not end what
// is still under way then: the caller does, or drives on.  Returns at once if
// there are exchanges, but none under way; with none at all it waits for
// deadline and waker.  A deadline that has passed still lets it do what can be
// done without waiting.
//
// A deadline that passes while the machine is suspended is seen when it wakes
// up.  Without a waker, or without a descriptor for its timer, it is seen later
// than that, by the time that was left when the machine fell asleep.
void drive(Exchange* const* exchanges, std::size_t count, BootTime deadline,
           Waker* waker);

// Waits until either (both may be null) is woken, or until `deadline`.  Clears
// neither.  Only this thread may wait for `own`, since its timer is used; other
// threads may wait for `other` too.
void wait_for(Waker* own, const Waker* other, BootTime deadline);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_WAITING_HPP
