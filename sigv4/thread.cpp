// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "thread.hpp"

#include <openssl/crypto.h>

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

}  // namespace

void stop_all_at_exit() {
  [[maybe_unused]] static const bool once = [] {
    registered();
    return std::atexit(stop_all) == 0;
  }();
}

bool await(Condition& change, std::unique_lock<Mutex>& guard,
           BootTime deadline) {
  if (deadline == BootTime::max()) {
    change.wait(guard);
    return true;
  }
  if (BootClock::now() >= deadline) return false;
  change.wait_until(guard, deadline);
  return true;
}

void await(Condition& change, std::unique_lock<Mutex>& guard, BootTime deadline,
           FunctionRef<bool()> done) {
  while (!done() && sigv4::await(change, guard, deadline)) {
  }
}

// A thread that has just asked whether it is done waits by the time that the
// mutex is free.
void Bell::ring() noexcept {
  mutex_.lock();
  mutex_.unlock();
  rung_.notify_all();
}

void CallWaker::wake() noexcept {
  woken_ = true;
  bell_->ring();
}

void CallWaker::wait_until(BootTime deadline, FunctionRef<bool()> done) {
  std::unique_lock<Mutex> guard(bell_->mutex_);
  sigv4::await(bell_->rung_, guard, deadline, [&] { return woken_ || done(); });
}

void register_for_exit(const std::shared_ptr<Stoppable>& threads) {
  Registered& own = registered().get();
  const std::lock_guard<Mutex> guard(own.mutex);
  own.threads.push_back(threads);
}

// Also forgets those that were destroyed since.
void stop(Stoppable& threads, BootTime by) {
  threads.tell_to_stop(by);
  threads.await_stop();
  Registered* const own = registered().peek();
  if (own == nullptr) return;
  const std::lock_guard<Mutex> guard(own->mutex);
  own->threads.remove_if([](const auto& one) { return one.expired(); });
}

// OpenSSL documents that this fails once it has cleaned up.
bool openssl_is_gone() noexcept { return OPENSSL_init_crypto(0, nullptr) == 0; }

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
