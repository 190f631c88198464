#include "thread.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "process.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// All but those that a fault raises in the thread itself.
sigset_t signals_of_others() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool fault = signal == SIGSEGV || signal == SIGBUS ||
                       signal == SIGFPE || signal == SIGILL ||
                       signal == SIGTRAP || signal == SIGABRT;
    if (!fault) sigaddset(&set, signal);  // It refuses what libc keeps.
  }
  return set;
}

struct Work {
  const char* const name;
  const std::shared_ptr<void> what;
  void (*const run)(void* what);
};

void* run_thread(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  pthread_setname_np(pthread_self(), work->name);
  work->run(work->what.get());
  return nullptr;
}

// Those of this process that have threads.
struct Registered {
  struct Threads {
    std::weak_ptr<void> owner;
    Stopping stopping;
    std::unique_ptr<Threads> next;
  };

  std::mutex mutex;
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
    const std::lock_guard<std::mutex> guard(own->mutex);
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

bool start_thread(pthread_t& thread, const char* name,
                  const std::shared_ptr<void>& what, void (*run)(void* what)) {
  std::unique_ptr<Work> work(new Work{name, what, run});
  const sigset_t blocked = signals_of_others();
  sigset_t old;
  pthread_sigmask(SIG_SETMASK, &blocked, &old);
  const bool started =
      pthread_create(&thread, nullptr, run_thread, work.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (started) work.release();  // It is the thread's now.
  return started;
}

void stop_all_at_exit() {
  static const bool once = (registered(), std::atexit(stop_all) == 0);
  static_cast<void>(once);
}

bool await(std::condition_variable& change, std::unique_lock<std::mutex>& guard,
           BootTime deadline) {
  const std::chrono::nanoseconds left = deadline - BootClock::now();
  if (left <= std::chrono::nanoseconds::zero()) return false;
  change.wait_for(guard, std::min(left, kLongestWait));
  return true;
}

void register_for_exit(const std::shared_ptr<void>& owner, Stopping stopping) {
  Registered& own = registered().get();
  const std::lock_guard<std::mutex> guard(own.mutex);
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
