// How threads of the library's own wait, and end with the process.
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_THREAD_HPP
#define DDBMUTEX_SIGV4_THREAD_HPP

#include <chrono>
#include <memory>
#include <mutex>

#include "boot_clock.hpp"
#include "system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Waits to be notified, or for a while.  False: the time was over before.
bool await(Condition& change, std::unique_lock<Mutex>& guard,
           BootTime deadline);

// Has threads that must not run while the libraries they use are being taken
// down.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  // Asks the threads to end by then.  Does not wait.
  virtual void tell_to_stop(BootTime by) = 0;
  // Waits until they have ended, or for a moment longer than they may take;
  // those that have not are left to end by themselves.  A thread of its own
  // does not wait for itself.
  virtual void await_stop() = 0;
};

inline void stop(Stoppable& threads, BootTime by) {
  threads.tell_to_stop(by);
  threads.await_stop();
}

// How long threads may take to end.
constexpr std::chrono::seconds kStopWithin{2};
// And how much longer they are waited for.
constexpr std::chrono::milliseconds kStopGrace{100};

// Stops all that is registered at exit(), all at once, when called for the
// first time: after the destructors of static objects made later, and before
// the exit handlers of libraries initialised earlier.
void stop_all_at_exit();

// exit() then stops the threads, unless their owners have gone before.  Keeps a
// weak pointer until exit: an object of std::make_shared() would keep its
// memory so long.
void register_for_exit(const std::shared_ptr<Stoppable>& threads);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_THREAD_HPP
