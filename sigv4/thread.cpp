#include "thread.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "process.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// Those of this process that have threads.
struct Registered {
  struct Threads {
    std::weak_ptr<void> owner;
    Stopping stopping;
    std::unique_ptr<Threads> next;
  };

  Mutex mutex;
  std::unique_ptr<Threads> first;  // GUARDED_BY(mutex)
};

// Never destroyed, for threads may be started until the very end.
PerProcess<Registered>& registered() {
  static auto* const of_process = new PerProcess<Registered>;
  return *of_process;
}

void stop_all() {
  Registered* own = registered().peek();
  if (own == nullptr) return;
  std::unique_ptr<Registered::Threads> all;
  {
    const std::lock_guard<Mutex> guard(own->mutex);
    all.swap(own->first);
  }
  const BootTime by = BootClock::now() + kStopWithin;
  for (const auto* one = all.get(); one != nullptr; one = one->next.get()) {
    if (const auto owner = one->owner.lock()) {
      one->stopping.tell(owner.get(), by);
    }
  }
  // Who is gone by now was stopped by its owner.
  for (; all != nullptr; all = std::move(all->next)) {
    if (const auto owner = all->owner.lock()) all->stopping.await(owner.get());
  }
}

// At once.  Longer waits are made of such parts: a condition variable's clock
// stands still while the machine is suspended.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::seconds(1);

}  // namespace

void stop_all_at_exit() {
  static const bool once = (registered(), std::atexit(stop_all) == 0);
  static_cast<void>(once);
}

bool await(Condition& change, std::unique_lock<Mutex>& guard,
           BootTime deadline) {
  const std::chrono::nanoseconds left = deadline - BootClock::now();
  if (left <= std::chrono::nanoseconds::zero()) return false;
  change.wait_for(guard, std::min(left, kLongestWait));
  return true;
}

void register_for_exit(const std::shared_ptr<void>& owner, Stopping stopping) {
  Registered& own = registered().get();
  const std::lock_guard<Mutex> guard(own.mutex);
  std::unique_ptr<Registered::Threads>* place = &own.first;
  // In the place of one that is gone.
  while (*place != nullptr && !(*place)->owner.expired()) {
    place = &(*place)->next;
  }
  if (*place == nullptr) place->reset(new Registered::Threads);
  (*place)->owner = owner;
  (*place)->stopping = stopping;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
