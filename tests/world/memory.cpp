#include "tests/world/memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace world {
namespace {

thread_local ThisThread this_thread;
thread_local Process* seen_as = nullptr;

}  // namespace

void set_this_thread(const ThisThread& thread) { this_thread = thread; }

bool is_inside() { return this_thread.inside; }

Process* process_of_this_thread() {
  if (seen_as != nullptr) return seen_as;
  return this_thread.process != nullptr ? *this_thread.process : nullptr;
}

bool runs_out_of_memory() {
  if (this_thread.process == nullptr) return false;
  Process& process = **this_thread.process;
  return process.failure_every != 0 &&
         process.memory.below(process.failure_every) == 0;
}

Side::Side(bool inside) : before_(this_thread.inside) {
  this_thread.inside = inside && this_thread.process != nullptr;
}

Side::~Side() { this_thread.inside = before_; }

As::As(Process& process) : before_(seen_as) { seen_as = &process; }

As::~As() { seen_as = before_; }

}  // namespace world

// -- What new and delete do ---------------------------------------------------

namespace {

// Before each block.
struct alignas(std::max_align_t) Head {
  world::Process* owner;  // Null: the library does not own it.
  std::size_t size;
};

void* allocate(std::size_t size) noexcept {
  const bool counts = world::is_inside();
  if (counts && world::runs_out_of_memory()) return nullptr;
  auto* const head = static_cast<Head*>(std::malloc(sizeof(Head) + size));
  if (head == nullptr) return nullptr;
  head->owner = counts ? *world::this_thread.process : nullptr;
  head->size = size;
  if (head->owner != nullptr) {
    head->owner->bytes += static_cast<std::int64_t>(size);
  }
  return head + 1;
}

void release(void* block) noexcept {
  if (block == nullptr) return;
  Head* const head = static_cast<Head*>(block) - 1;
  if (head->owner != nullptr) {
    head->owner->bytes -= static_cast<std::int64_t>(head->size);
  }
  std::free(head);
}

}  // namespace

void* operator new(std::size_t size) {
  if (void* const block = allocate(size)) return block;
  throw std::bad_alloc();
}

void* operator new[](std::size_t size) { return operator new(size); }

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}

void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}

void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }
