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

// What has threads that must not run while the libraries they use are being
// taken down has these two:
//
//   // The threads are to end, and may take until `by`; waits for nobody.
//   void tell_to_stop(BootTime by);
//   // Waits until they have ended, or for a moment longer than they may take;
//   // those that have not are left to end by themselves.  A thread of its own
//   // does not wait for itself.
//   void await_stop();
template <class Threads>
void stop(Threads& threads, BootTime by) {
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

struct Stopping {
  void (*tell)(void* threads, BootTime by);
  void (*await)(void* threads);
};

// What the owner owns, for as long as somebody owns it.
void register_for_exit(const std::shared_ptr<void>& owner, Stopping stopping);

template <class Threads>
void register_for_exit(const std::shared_ptr<void>& owner, const Threads&) {
  register_for_exit(owner, {[](void* threads, BootTime by) {
                              static_cast<Threads*>(threads)->tell_to_stop(by);
                            },
                            [](void* threads) {
                              static_cast<Threads*>(threads)->await_stop();
                            }});
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_THREAD_HPP
