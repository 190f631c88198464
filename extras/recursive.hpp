// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// recursive.hpp: a DdbMutex that the thread which has it may lock again.  Only
// that thread may unlock it, as often.  Locking again fails with lease_lost if
// the lock was lost meanwhile.  A forked child needs one of its own.
//
//   #include "extras/recursive.hpp"
//
//   ddbmutex::RecursiveMutex mutex("nightly-report");
//   std::lock_guard guard(mutex);
//   mutex->require(std::chrono::seconds(5));
#ifndef DDBMUTEX_RECURSIVE_HPP
#define DDBMUTEX_RECURSIVE_HPP

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "../ddbmutex.hpp"

namespace ddbmutex {
inline namespace v0 {

class RecursiveMutex {
 public:
  explicit RecursiveMutex(std::string name, Options options = {})
      : mutex_(std::move(name), std::move(options)) {}
  DdbMutex* operator->() { return &mutex_; }

  void lock(std::error_code& ec = detail::throws()) {
    enter(ec, [&] {
      mutex_.lock(ec);
      return !ec;
    });
  }
  [[nodiscard]] bool try_lock(std::error_code& ec = detail::throws()) {
    return enter(ec, [&] { return mutex_.try_lock(ec); });
  }
  void unlock() noexcept {
    if (levels_ == 0 || --levels_ > 0) return;
    owner_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  template <class Lock>
  bool enter(std::error_code& ec, Lock lock_first) {
    if (owner_ == std::this_thread::get_id()) {
      mutex_.ensure(std::chrono::nanoseconds::zero(), ec);
      if (ec) return false;
    } else if (!lock_first()) {
      return false;
    }
    owner_ = std::this_thread::get_id();
    ++levels_;
    return true;
  }

  DdbMutex mutex_;
  std::atomic<std::thread::id> owner_{};
  int levels_ = 0;  // Only the owner uses it.
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RECURSIVE_HPP
