// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The notifier: the thread of a table that reports lost and endangered locks
// to the listeners of all mutexes.  It never calls libcurl, which might delay
// it.
#ifndef DDBMUTEX_NOTIFIER_HPP
#define DDBMUTEX_NOTIFIER_HPP

#include <optional>

#include "../../sigv4/boot_clock.hpp"
#include "hold.hpp"
#include "holds.hpp"
#include "protocol.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Notifier {
 public:
  explicit Notifier(Holds& holds) : holds_(holds) {}

  // The thread's main function.  Returns once Keeper::tell_to_stop() was
  // called. What it has not reported by then is dropped.
  void run();

  // Whether a callback of this mutex is running, or a loss is still to be
  // reported to it.  REQUIRES: Holds::mutex is held.
  bool reports_to(const MutexSettings& settings) const;

 private:
  struct Event {
    HoldPtr hold;
    std::optional<Verdict> loss;  // No value: the lock is in danger.
  };

  std::optional<Event> take_event();
  void lose_overdue(BootTime now);
  // Unlocks the guard, logs the event, calls the listener, and locks again.
  void report(Holds::Guard& guard, const Event& event);
  // Calls the listener, and logs what it throws.
  void call_back(const Event& event, const Listener& listener) const;
  void log_exception(const Event& event, const char* what) const;
  void log(const Event& event) const;

  Holds& holds_;
  // The mutex whose listener is being called, or null.
  // GUARDED_BY(Holds::mutex).
  const MutexSettings* reporting_ = nullptr;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_NOTIFIER_HPP
