#include "process.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

using Mark = std::atomic<std::uint64_t>;
static_assert(Mark::is_always_lock_free);

// All initialised before any code runs, and never destroyed: a fork may come at
// any time.
Mark no_mark{0};  // Stands for: there is no such page, ask for the pid.
std::atomic<Mark*> the_mark{nullptr};
std::atomic<std::uint64_t> processes{0};  // Inherited by a child.

// A word that is 0 in every new process.
Mark* make_mark() noexcept {
  constexpr std::size_t kSize = sizeof(Mark);  // Whole pages are given.
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

std::atomic<OnePerProcess::Node*> OnePerProcess::abandoned_{nullptr};

OnePerProcess::Node* OnePerProcess::find() const noexcept {
  Node* const node = node_.load(std::memory_order_acquire);
  return node != nullptr && node->process == this_process() ? node : nullptr;
}

OnePerProcess::Node* OnePerProcess::install(Node* fresh) {
  Node* seen = node_.load(std::memory_order_acquire);
  while (seen == nullptr || seen->process != fresh->process) {
    if (!node_.compare_exchange_weak(seen, fresh)) continue;
    let_go(seen);
    return fresh;
  }
  fresh->destroy(fresh);  // Another thread was faster.
  return seen;
}

void OnePerProcess::let_go(Node* node) {
  if (node == nullptr) return;
  if (node->process == this_process()) {
    return node->destroy(node);
  }
  node->next = abandoned_.load();
  while (!abandoned_.compare_exchange_weak(node->next, node)) {
  }
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
