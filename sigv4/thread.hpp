// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// How the library's own threads wait, and how they end with the process.
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_THREAD_HPP
#define DDBMUTEX_SIGV4_THREAD_HPP

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "boot_clock.hpp"
#include "function_ref.hpp"
#include "system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Waits to be notified, or for a while, so call it in a loop.  Returns false,
// at once, if the deadline has passed.
bool await(Condition& change, std::unique_lock<Mutex>& guard,
           BootTime deadline);
// Waits until it is `done`, which is asked after each change, or until the
// deadline.
void await(Condition& change, std::unique_lock<Mutex>& guard, BootTime deadline,
           FunctionRef<bool()> done);

// Where a CallWaker waits.  Whoever is about to ring owns it, too.
class Bell {
 public:
  // Makes the waiting thread look again.  Best called without a mutex that the
  // thread locks next.
  void ring() noexcept;

 private:
  friend class CallWaker;
  Mutex mutex_;
  Condition rung_;
};
using BellPtr = std::shared_ptr<Bell>;

// Ends the waits of one call.  Any thread may call wake(), even before the call
// waits: it is remembered until clear().
class CallWaker {
 public:
  CallWaker() : bell_(std::make_shared<Bell>()) {}
  CallWaker(const CallWaker&) = delete;
  CallWaker& operator=(const CallWaker&) = delete;

  void wake() noexcept;
  void clear() noexcept { woken_ = false; }
  bool woken() const noexcept { return woken_; }
  // Waits until the deadline, until it is woken, or until it is `done`, which
  // is asked whenever the bell has rung.  Only one thread may wait.
  void wait_until(BootTime deadline, FunctionRef<bool()> done);
  void wait_until(BootTime deadline) {
    wait_until(deadline, [] { return false; });
  }
  const BellPtr& bell() const { return bell_; }

 private:
  const BellPtr bell_;
  std::atomic<bool> woken_{false};
};

// Owns threads that must end before the libraries that they use are shut down.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  // Asks the threads to end by then.  Does not wait.
  virtual void tell_to_stop(BootTime by) = 0;
  // Waits until the threads have ended, until kStopGrace after that time at
  // most.  Detaches those that have not ended.  If one of the threads calls
  // this, it does not wait for itself.
  virtual void await_stop() = 0;
};

void stop(Stoppable& threads, BootTime by);

// How long threads may take to end.
constexpr std::chrono::seconds kStopWithin{2};
// How much longer await_stop() waits for them.
constexpr std::chrono::milliseconds kStopGrace{100};

// Makes exit() stop everything that is registered by then, all at once.  That
// happens after the destructors of static objects that are made after the first
// call, and before the exit handlers of libraries that were initialised before
// it.
void stop_all_at_exit();

// Makes exit() stop the threads, unless their owner is destroyed earlier.  Do
// not make the object with std::make_shared(): a weak pointer is kept until
// exit, and would keep the object's memory.
void register_for_exit(const std::shared_ptr<Stoppable>& threads);

// Whether exit() has shut down OpenSSL.  Destructors of static objects that
// were made before OpenSSL run after that.  A new connection over TLS would
// crash.
bool openssl_is_gone() noexcept;

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_THREAD_HPP
