// What the library needs of the system besides files and the network: clocks,
// randomness, mutexes, threads, and which process this is.
//
// All of it is defined in system.cpp, and so is the boot clock
// (boot_clock.hpp). A simulation links definitions of its own instead: see
// README.md, "The seam to the system".
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_SYSTEM_HPP
#define DDBMUTEX_SIGV4_SYSTEM_HPP

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// The host's time of day.  No lease depends on it.
std::chrono::system_clock::time_point wall_clock() noexcept;

// Fills the memory with the operating system's randomness, which nobody can
// guess.  Ends the process if the kernel has none to give: no lock could be
// taken safely then.  REQUIRES: at most 256 bytes.
void fill_with_randomness(void* begin, std::size_t size) noexcept;

// A number that a forked child does not share, however it was forked.  Costs a
// load and no system call.  (Before Linux 4.14, and where a sandbox has no
// MADV_WIPEONFORK, it is the process ID.)
std::uint64_t this_process() noexcept;

// A std::mutex that a simulation can replace.
class Mutex {
 public:
  void lock() noexcept;
  void unlock() noexcept;

 private:
  friend class Condition;
  std::mutex mutex_;
};

// A std::condition_variable for a Mutex.
class Condition {
 public:
  void wait(std::unique_lock<Mutex>& guard);
  // This clock stands still while the machine is suspended.
  void wait_for(std::unique_lock<Mutex>& guard, std::chrono::nanoseconds time);
  void notify_all() noexcept;

 private:
  std::condition_variable condition_;
};

// Starts a thread that takes none of the program's signals and cannot be
// cancelled.  It calls `run` and then destroys it.  `name`, a literal of at
// most 15 bytes, is what top(1) and debuggers show.  False if there can be no
// more threads.
bool start_thread(pthread_t& thread, const char* name,
                  std::function<void()> run);
void join_thread(pthread_t thread) noexcept;
void detach_thread(pthread_t thread) noexcept;

// Linux has numbers or pointers for threads: pthread_equal() would be a call.
inline bool is_this_thread(pthread_t thread) {
  return thread == pthread_self();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SYSTEM_HPP
