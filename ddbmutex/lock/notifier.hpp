// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The notifier: the thread of a table that reports lost and endangered leases
// to the listeners of all mutexes.  It never calls libcurl, which might delay
// it.
#ifndef DDBMUTEX_NOTIFIER_HPP
#define DDBMUTEX_NOTIFIER_HPP

#include "held_lease.hpp"
#include "leases.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Notifier {
 public:
  explicit Notifier(Leases& leases) : leases_(leases) {}

  // The thread's main function, until the table ends.
  void run();

  // Whether the listener of this mutex is running, or a loss is still queued
  // for it.  REQUIRES: Leases::mutex is held.
  bool reports_to(const MutexSettings& settings) const;

 private:
  // Marks leases as lost once their claims have ended.
  void lose_ended(BootTime now);
  News next_news(HeldLeasePtr& held);
  // Logs the event, then calls the listener.  Unlocks the guard meanwhile.
  void report(Leases::Guard& guard, HeldLease& held, News news);
  // One callback; logs what it throws.
  void call_back(News news, const HeldLease& held, Verdict loss,
                 const Listener& listener) const;
  void log_exception(News news, const HeldLease& held, const char* what) const;
  void log(News news, const HeldLease& held, Verdict loss) const;

  Leases& leases_;
  // The mutex whose listener is being called, or null.
  // GUARDED_BY(Leases::mutex).
  const MutexSettings* reporting_ = nullptr;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_NOTIFIER_HPP
