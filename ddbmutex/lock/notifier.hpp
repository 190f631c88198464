// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The notifier: the thread of a table that reports lost and endangered locks
// to the listeners of all mutexes.  It never calls libcurl, which might delay
// it.
#ifndef DDBMUTEX_NOTIFIER_HPP
#define DDBMUTEX_NOTIFIER_HPP

#include "hold.hpp"
#include "holds.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Notifier {
 public:
  explicit Notifier(Holds& holds) : holds_(holds) {}

  // The thread's main function, until the table ends.
  void run();

  // Whether the listener of this mutex is running, or a loss is still queued
  // for it.  REQUIRES: Holds::mutex is held.
  bool reports_to(const MutexSettings& settings) const;

 private:
  void lose_overdue(BootTime now);
  // Sets `hold` to the lock that the news is about.
  News next_news(HoldPtr& hold);
  // Unlocks the guard, logs the event, calls the listener, and locks again.
  void report(Holds::Guard& guard, Hold& hold, News news);
  // One callback; logs what it throws.
  void call_back(News news, const Hold& hold, Verdict loss,
                 const Listener& listener) const;
  void log_exception(News news, const Hold& hold, const char* what) const;
  void log(News news, const Hold& hold, Verdict loss) const;

  Holds& holds_;
  // The mutex whose listener is being called, or null.
  // GUARDED_BY(Holds::mutex).
  const MutexSettings* reporting_ = nullptr;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_NOTIFIER_HPP
