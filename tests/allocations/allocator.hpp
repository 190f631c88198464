// An allocator that fails once, at the allocation that it is told, and that
// counts what is live.
//
//   allocations::arm(3);
//   mutex.lock();           // The third allocation fails.
//   allocations::disarm();  // True if there were so many.
//
// This header defines malloc() and its like for the whole program and hands on
// to the C library's, so that what fails is an allocation of whatever library.
// reach.hpp tells where that does not work.  Include this header in one source
// file only.
//
// While armed, the allocations of all threads count, but not those of a thread
// that is exempt.  The one that fails is told on stdout at once, for the
// process may not survive it: "failed SIZE".  A debugger finds its stack by a
// breakpoint at allocations::detail::tell_failure().
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_TESTS_ALLOCATIONS_ALLOCATOR_HPP
#define DDBMUTEX_TESTS_ALLOCATIONS_ALLOCATOR_HPP

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "tests/allocations/reach.hpp"

namespace allocations {

// Nothing here may allocate, or need a constructor or a destructor to run:
// memory is allocated before main() begins and freed after it has ended.

namespace detail {

static std::atomic<long> left{0};  // Until one fails; 0 or less: disarmed.
static std::atomic<bool> failed{false};
static std::atomic<long> live{0};
static thread_local bool exempt = false;

// In one piece, whatever other threads write.
[[gnu::noinline]] inline void tell_failure(std::size_t size) {
  std::array<char, 64> line;
  const int used =
      std::snprintf(line.data(), line.size(), "failed %zu\n", size);
  if (write(STDOUT_FILENO, line.data(), static_cast<std::size_t>(used)) < 0) {
    std::abort();
  }
}

inline bool fails(std::size_t size) {
  if (exempt || left.load(std::memory_order_relaxed) <= 0) return false;
  if (left.fetch_sub(1) != 1) return false;
  tell_failure(size);
  failed = true;
  errno = ENOMEM;
  return true;
}

inline void* made(void* block) {
  if (block == nullptr) return nullptr;
  live.fetch_add(1, std::memory_order_relaxed);
  return block;
}

inline void gone(const void* block) {
  if (block == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace detail

// --- For the rounds ----------------------------------------------------------

// The n-th allocation from now on fails.
inline void arm(long n) {
  detail::failed = false;
  detail::left = n;
}
inline bool has_failed() { return detail::failed; }
inline bool disarm() {
  detail::left = 0;
  return has_failed();
}

// Blocks that are allocated and not freed.
inline long live_blocks() { return detail::live; }

// While one exists, what this thread allocates counts, or does not.
class Counting {
 public:
  explicit Counting(bool counts) { detail::exempt = !counts; }
  ~Counting() { detail::exempt = before_; }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  const bool before_ = detail::exempt;
};

}  // namespace allocations

#ifdef DDBMUTEX_TESTS_FAIL_MALLOC

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);

void* malloc(std::size_t size) {
  using namespace allocations::detail;
  return fails(size) ? nullptr : made(__libc_malloc(size));
}

void* calloc(std::size_t count, std::size_t size) {
  using namespace allocations::detail;
  return fails(count * size) ? nullptr : made(__libc_calloc(count, size));
}

void* realloc(void* block, std::size_t size) {
  using namespace allocations::detail;
  if (fails(size)) return nullptr;
  gone(block);
  void* const moved = __libc_realloc(block, size);
  if (moved == nullptr && size != 0) {
    made(block);
    return nullptr;
  }
  return made(moved);
}

void* memalign(std::size_t alignment, std::size_t size) {
  using namespace allocations::detail;
  return fails(size) ? nullptr : made(__libc_memalign(alignment, size));
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  const int before = errno;
  void* const made = memalign(alignment, size);
  errno = before;
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

void free(void* block) {
  allocations::detail::gone(block);
  __libc_free(block);
}

}  // extern "C"

#else

void* operator new(std::size_t size) {
  using namespace allocations::detail;
  void* const block = fails(size) ? nullptr : made(std::malloc(size));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  using namespace allocations::detail;
  return fails(size) ? nullptr : made(std::malloc(size));
}
void* operator new[](std::size_t size, const std::nothrow_t& how) noexcept {
  return operator new(size, how);
}
void operator delete(void* block) noexcept {
  allocations::detail::gone(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete[](void* block, std::size_t) noexcept {
  operator delete(block);
}

#endif

#endif  // DDBMUTEX_TESTS_ALLOCATIONS_ALLOCATOR_HPP
