// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "thread.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <memory>
#include <mutex>

#include "process.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// What exit() stops.
struct Registered {
  Mutex mutex;
  std::list<std::weak_ptr<Stoppable>> threads;  // GUARDED_BY(mutex)
};

// Never destroyed, because threads may be started until the very end.
PerProcess<Registered>& registered() {
  static auto* const of_process = new PerProcess<Registered>;
  return *of_process;
}

void stop_all() {
  Registered* own = registered().peek();
  if (own == nullptr) return;
  std::list<std::weak_ptr<Stoppable>> all;
  {
    const std::lock_guard<Mutex> guard(own->mutex);
    all.swap(own->threads);
  }
  const BootTime by = BootClock::now() + kStopWithin;
  for (const auto& one : all) {
    if (const auto threads = one.lock()) threads->tell_to_stop(by);
  }
  // Those that are gone by now were stopped by their owners.
  for (const auto& one : all) {
    if (const auto threads = one.lock()) threads->await_stop();
  }
}

// A condition variable's clock stands still while the machine is suspended, so
// a long wait consists of several short ones.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::seconds(1);

}  // namespace

void stop_all_at_exit() {
  [[maybe_unused]] static const bool once = [] {
    registered();
    return std::atexit(stop_all) == 0;
  }();
}

bool await(Condition& change, std::unique_lock<Mutex>& guard,
           BootTime deadline) {
  const std::chrono::nanoseconds left = deadline - BootClock::now();
  if (left <= std::chrono::nanoseconds::zero()) return false;
  change.wait_for(guard, std::min(left, kLongestWait));
  return true;
}

void register_for_exit(const std::shared_ptr<Stoppable>& threads) {
  Registered& own = registered().get();
  const std::lock_guard<Mutex> guard(own.mutex);
  const auto gone = std::find_if(own.threads.begin(), own.threads.end(),
                                 [](const auto& one) { return one.expired(); });
  if (gone != own.threads.end()) {
    *gone = threads;
  } else {
    own.threads.push_back(threads);
  }
}

// OpenSSL documents that this fails once it has cleaned up.
bool openssl_is_gone() noexcept { return OPENSSL_init_crypto(0, nullptr) == 0; }

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
