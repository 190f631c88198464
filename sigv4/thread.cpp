#include "thread.hpp"

#include <signal.h>

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "process.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// All but those that a fault raises in the thread itself.
sigset_t signals_of_others() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    sigdelset(&set, fault);
  }
  return set;
}

// Those of this process that have threads.
struct Registered {
  std::mutex mutex;
  std::vector<std::weak_ptr<Stoppable>> all;  // GUARDED_BY(mutex)
};

// Never destroyed, for threads may be started until the very end.
PerProcess<Registered>& registered() {
  static auto* const of_process = new PerProcess<Registered>;
  return *of_process;
}

}  // namespace

bool start_thread(pthread_t& thread, void* (*run)(void*), void* argument) {
  const sigset_t blocked = signals_of_others();
  sigset_t old;
  pthread_sigmask(SIG_SETMASK, &blocked, &old);
  const bool started = pthread_create(&thread, nullptr, run, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return started;
}

void stop_all_at_exit() {
  static std::once_flag once;
  std::call_once(once, [] {
    registered();
    std::atexit([] {
      Registered* own = registered().peek();
      if (own == nullptr) return;
      std::vector<std::weak_ptr<Stoppable>> all;
      {
        const std::lock_guard<std::mutex> guard(own->mutex);
        all.swap(own->all);
      }
      const BootTime by = BootClock::now() + kStopWithin;
      for (const auto& weak : all) {
        if (const auto threads = weak.lock()) threads->tell_to_stop(by);
      }
      // Who is gone by now was stopped by its owner.
      for (const auto& weak : all) {
        if (const auto threads = weak.lock()) threads->await_stop();
      }
    });
  });
}

void register_for_exit(const std::shared_ptr<Stoppable>& threads) {
  Registered& own = registered().get();
  const std::lock_guard<std::mutex> guard(own.mutex);
  for (auto& weak : own.all) {
    if (!weak.expired()) continue;
    weak = threads;  // In the place of one that is gone.
    return;
  }
  own.all.push_back(threads);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
