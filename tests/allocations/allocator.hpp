// An allocator that fails once, at the allocation that it is told, and that
// counts what is live.
//
//   allocations::arm(3);
//   mutex.lock();           // The third allocation fails.
//   allocations::disarm();  // True if there were so many.
//
// This header defines malloc() and its like for the whole program and hands on
// to the C library's, so that what fails is an allocation of whatever library.
// Include it in one source file only.  A sanitizer has an allocator of its own:
// under one, and without glibc, only `operator new` fails.
//
// While armed, the allocations of all threads count, but not those of a thread
// that is exempt.  The stack of the one that fails is written to stdout at
// once, for the process may not survive it:
//
//   failed SIZE ADDRESS ADDRESS ...
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_TESTS_ALLOCATIONS_ALLOCATOR_HPP
#define DDBMUTEX_TESTS_ALLOCATIONS_ALLOCATOR_HPP

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DDBMUTEX_TESTS_WITH_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DDBMUTEX_TESTS_WITH_SANITIZER 1
#endif
#if defined(__GLIBC__) && !defined(DDBMUTEX_TESTS_WITH_SANITIZER)
#define DDBMUTEX_TESTS_FAIL_MALLOC 1
#endif

namespace allocations {

// Nothing here may allocate, or need a constructor or a destructor to run:
// memory is allocated before main() begins and freed after it has ended.

struct Stack {
  std::array<void*, 40> frames;
  int depth = 0;

  void take() {
    depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  }
};

namespace detail {

static std::atomic<long> left{0};  // Until one fails; 0 or less: disarmed.
static std::atomic<bool> failed{false};
static std::atomic<long> live{0};
static thread_local bool exempt = false;
static thread_local bool inside = false;  // The allocator itself.

// One line in one piece, whatever other threads write.
inline void write_line(const char* word, std::size_t size, const Stack& stack) {
  std::array<char, 1024> line;
  int used = std::snprintf(line.data(), line.size(), "%s %zu", word, size);
  for (int i = 0; i < stack.depth; ++i) {
    const auto room = line.size() - static_cast<std::size_t>(used);
    if (room < 24) break;
    used += std::snprintf(line.data() + used, room, " %zx",
                          reinterpret_cast<std::size_t>(
                              stack.frames[static_cast<std::size_t>(i)]));
  }
  line[static_cast<std::size_t>(used)] = '\n';
  if (write(STDOUT_FILENO, line.data(), static_cast<std::size_t>(used) + 1) < 0)
    std::abort();
}

inline bool fails(std::size_t size) {
  if (exempt || left.load(std::memory_order_relaxed) <= 0) return false;
  if (left.fetch_sub(1) != 1) return false;
  inside = true;
  Stack stack;
  stack.take();
  write_line("failed", size, stack);
  inside = false;
  failed = true;
  errno = ENOMEM;
  return true;
}

// --- Which blocks are live ---------------------------------------------------

// Those that were allocated while they are watched, by their address.  Some
// that find no place are not seen.
class Watch {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void begin() {
    const Guard guard(busy_);
    for (Place& place : places_) place.block = nullptr;
    on_ = true;
  }
  void end() { on_ = false; }

  void add(void* block, std::size_t size) {
    if (inside) return;
    inside = true;
    Stack stack;
    stack.take();
    {
      const Guard guard(busy_);
      for (std::size_t i = 0; i < kProbes; ++i) {
        Place& place = at(block, i);
        if (place.block != nullptr) continue;
        place.block = block;
        place.size = size;
        place.stack = stack;
        break;
      }
    }
    inside = false;
  }
  void remove(const void* block) {
    const Guard guard(busy_);
    for (std::size_t i = 0; i < kProbes; ++i) {
      Place& place = at(block, i);
      if (place.block == block) place.block = nullptr;
    }
  }
  // Writes a line for each, up to `most`.
  void tell(int most) {
    const Guard guard(busy_);
    for (const Place& place : places_) {
      if (place.block == nullptr || most-- <= 0) continue;
      write_line("leaked", place.size, place.stack);
    }
  }

 private:
  struct Place {
    const void* block;
    std::size_t size;
    Stack stack;
  };
  struct Guard {
    explicit Guard(std::atomic_flag& flag) : busy(flag) {
      while (busy.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Guard() { busy.clear(std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    std::atomic_flag& busy;
  };
  static constexpr std::size_t kPlaces = 1 << 14, kProbes = 64;

  Place& at(const void* block, std::size_t i) {
    const auto number = reinterpret_cast<std::uintptr_t>(block) / 16;
    return places_[(number * 2654435761u + i) % kPlaces];
  }

  std::atomic<bool> on_{false};
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::array<Place, kPlaces> places_;
};
static Watch watch;

inline void* made(void* block, std::size_t size) {
  if (block == nullptr) return nullptr;
  live.fetch_add(1, std::memory_order_relaxed);
  if (watch.on()) watch.add(block, size);
  return block;
}

inline void gone(const void* block) {
  if (block == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  if (watch.on()) watch.remove(block);
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

// Once, before the first arm(): the unwinder allocates at its first use.
inline void prepare() {
  Stack stack;
  stack.take();
}

// Blocks that are allocated and not freed.
inline long live_blocks() { return detail::live; }
inline void begin_watch() { detail::watch.begin(); }
inline void end_watch() { detail::watch.end(); }
inline void tell_watched(int most) { detail::watch.tell(most); }

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
  return fails(size) ? nullptr : made(__libc_malloc(size), size);
}

void* calloc(std::size_t count, std::size_t size) {
  using namespace allocations::detail;
  return fails(count * size) ? nullptr
                             : made(__libc_calloc(count, size), count * size);
}

void* realloc(void* block, std::size_t size) {
  using namespace allocations::detail;
  if (fails(size)) return nullptr;
  gone(block);
  void* const moved = __libc_realloc(block, size);
  if (moved == nullptr && size != 0) {
    made(block, size);
    return nullptr;
  }
  return made(moved, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  using namespace allocations::detail;
  return fails(size) ? nullptr : made(__libc_memalign(alignment, size), size);
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
  void* const block = fails(size) ? nullptr : made(std::malloc(size), size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  using namespace allocations::detail;
  return fails(size) ? nullptr : made(std::malloc(size), size);
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
