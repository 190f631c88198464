// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What the library needs from the system besides files and the network: clocks,
// randomness, mutexes, threads, and a number for this process.
//
// system.cpp defines all of it, and the boot clock (boot_clock.hpp).  A
// simulation links its own definitions instead: see README.md, "The seam to
// the system".
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

#include "boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// The host's time of day.  No lease depends on it.
std::chrono::system_clock::time_point wall_clock() noexcept;

// Fills the memory with random bytes, which nobody can guess: the kernel's,
// OpenSSL's or those of /dev/urandom.  If there are none, says so on stderr and
// ends the process.
// REQUIRES: at most 256 bytes.
void fill_with_randomness(void* begin, std::size_t size) noexcept;

// A number for this process.  A forked child has another one, however it was
// forked.  Needs no system call.  (Before Linux 4.14, or in a sandbox without
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
  // Waits until that time on the boot clock at the latest, but at most for a
  // second: the clock of a condition variable stands still while the machine is
  // suspended.
  void wait_until(std::unique_lock<Mutex>& guard, BootTime deadline);
  void notify_all() noexcept;

 private:
  std::condition_variable condition_;
};

// Starts a thread that handles none of the program's signals and cannot be
// cancelled.  It calls `run` and then destroys it.  top(1) and debuggers show
// `name`, a literal of at most 15 bytes.  Returns false if no thread can be
// started.
bool start_thread(pthread_t& thread, const char* name,
                  std::function<void()> run);
void join_thread(pthread_t thread) noexcept;
void detach_thread(pthread_t thread) noexcept;

// On Linux a pthread_t is a number or a pointer, so == is enough.
inline bool is_this_thread(pthread_t thread) {
  return thread == pthread_self();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SYSTEM_HPP
