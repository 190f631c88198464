// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Clocks, randomness, mutexes, threads and the process's number on Linux.  A
// simulation links its own definitions instead of this file.
#include "system.hpp"

#include <fcntl.h>
#include <openssl/rand.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "boot_clock.hpp"

#ifndef CLOCK_BOOTTIME
#error "ddbmutex needs a clock that counts suspend (CLOCK_BOOTTIME)"
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace ddbmutex {
inline namespace v0 {

// -- Clocks and randomness ----------------------------------------------------

namespace {

// Without this, no lock could be taken safely.
[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "ddbmutex: this system has %s\n", why);
  std::abort();
}

}  // namespace

BootTime BootClock::now() noexcept {
  timespec t;
  if (clock_gettime(CLOCK_BOOTTIME, &t) != 0) {
    give_up("no clock that counts suspend (CLOCK_BOOTTIME)");
  }
  return time_point(std::chrono::seconds(t.tv_sec) +
                    std::chrono::nanoseconds(t.tv_nsec));
}

namespace sigv4 {

std::chrono::system_clock::time_point wall_clock() noexcept {
  return std::chrono::system_clock::now();
}

namespace {

bool read_random_device(void* begin, std::size_t size) noexcept {
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, begin, size);  // All, if at most 256 bytes.
  close(fd);
  return got == static_cast<ssize_t>(size);
}

}  // namespace

// Kernels before 3.17 lack the system call.  There, OpenSSL waits until the
// device is seeded.  On later kernels, OpenSSL relies on the system call, which
// a sandbox may refuse.
void fill_with_randomness(void* begin, std::size_t size) noexcept {
  if (getentropy(begin, size) == 0) return;
  const auto bytes = static_cast<unsigned char*>(begin);
  if (RAND_bytes(bytes, static_cast<int>(size)) == 1) return;
  if (read_random_device(begin, size)) return;
  give_up(
      "no random bytes, neither by getrandom(2) nor by OpenSSL nor in "
      "/dev/urandom");
}

// -- Mutexes ------------------------------------------------------------------

void Mutex::lock() noexcept { mutex_.lock(); }

void Mutex::unlock() noexcept { mutex_.unlock(); }

void Condition::wait(std::unique_lock<Mutex>& guard) {
  std::unique_lock<std::mutex> own(guard.mutex()->mutex_, std::adopt_lock);
  condition_.wait(own);
  own.release();
}

void Condition::wait_until(std::unique_lock<Mutex>& guard, BootTime deadline) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(1);
  const std::chrono::nanoseconds left = deadline - BootClock::now();
  std::unique_lock<std::mutex> own(guard.mutex()->mutex_, std::adopt_lock);
  condition_.wait_for(own, std::min(left, kLongest));
  own.release();
}

void Condition::notify_all() noexcept { condition_.notify_all(); }

// -- Threads ------------------------------------------------------------------

namespace {

// All signals except those that a fault raises in the thread itself.
sigset_t blocked_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool fault = signal == SIGSEGV || signal == SIGBUS ||
                       signal == SIGFPE || signal == SIGILL ||
                       signal == SIGTRAP || signal == SIGABRT ||
                       signal == SIGSYS;
    if (!fault) sigaddset(&set, signal);  // Fails for those that libc reserves.
  }
  return set;
}

struct Work {
  const char* name;
  std::function<void()> run;
};

void* run_thread(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  pthread_setname_np(pthread_self(), work->name);
  work->run();
  return nullptr;
}

}  // namespace

bool start_thread(pthread_t& thread, const char* name,
                  std::function<void()> run) {
  std::unique_ptr<Work> work(new Work{name, std::move(run)});
  const sigset_t blocked = blocked_signals();
  sigset_t old;
  pthread_sigmask(SIG_SETMASK, &blocked, &old);
  const bool started =
      pthread_create(&thread, nullptr, run_thread, work.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (started) work.release();  // The thread owns it now.
  return started;
}

void join_thread(pthread_t thread) noexcept { pthread_join(thread, nullptr); }

void detach_thread(pthread_t thread) noexcept { pthread_detach(thread); }

// -- This process -------------------------------------------------------------

namespace {

using Mark = std::atomic<std::uint64_t>;
static_assert(Mark::is_always_lock_free);

// The mark of this process is a number on a page that the kernel clears in
// every forked child.  These are constant-initialised and never destroyed,
// because a process may fork before main() or during exit().
std::atomic<Mark*> the_mark{nullptr};
Mark no_mark{0};  // the_mark points here if the kernel has no such pages.
std::atomic<std::uint64_t> processes{0};  // Numbers given so far.

Mark* make_mark() noexcept {
  constexpr std::size_t kSize = sizeof(Mark);  // mmap() rounds up to a page.
  void* page = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Mark* mark = &no_mark;
  if (page != MAP_FAILED) {
    if (madvise(page, kSize, MADV_WIPEONFORK) == 0) {
      mark = new (page) Mark(0);
    } else {
      munmap(page, kSize);
    }
  }
  Mark* first = nullptr;
  if (the_mark.compare_exchange_strong(first, mark)) return mark;
  if (mark != &no_mark) munmap(page, kSize);
  return first;  // Another thread was faster.
}

}  // namespace

std::uint64_t this_process() noexcept {
  Mark* mark = the_mark.load(std::memory_order_acquire);
  if (mark == nullptr) mark = make_mark();
  if (mark == &no_mark) return static_cast<std::uint64_t>(getpid());
  const std::uint64_t known = mark->load(std::memory_order_relaxed);
  if (known != 0) return known;
  const std::uint64_t fresh = ++processes;
  std::uint64_t first = 0;
  return mark->compare_exchange_strong(first, fresh) ? fresh : first;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
