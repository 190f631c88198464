// Threads of the library's own, and their end with the process.
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_THREAD_HPP
#define DDBMUTEX_SIGV4_THREAD_HPP

#include <pthread.h>

#include <functional>
#include <memory>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Starts a thread that takes none of the program's signals and is no point of
// cancellation.  False if there can be no more threads.
bool start_thread(pthread_t& thread, std::function<void()> body);

// What has threads that must not run while the libraries they use are being
// taken down.
class Stoppable {
 public:
  // Ends the threads, within a few seconds; also when it was called before.
  virtual void stop() = 0;

 protected:
  ~Stoppable() = default;
};

// Stops all that is registered at exit(), when called for the first time:
// after the destructors of static objects made later, and before the exit
// handlers of libraries initialised earlier.
void stop_all_at_exit();

// For as long as somebody owns it.
void register_for_exit(const std::shared_ptr<Stoppable>& threads);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_THREAD_HPP
