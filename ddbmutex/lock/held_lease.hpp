// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The settings of a mutex, and one lease of it as the threads of its table
// share it.
//
// A Mutex makes a HeldLease for each take.  While the lock is held, the threads
// of the table keep their notes in it, so that its release needs no memory.
#ifndef DDBMUTEX_HELD_LEASE_HPP
#define DDBMUTEX_HELD_LEASE_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string_view>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/system.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "agenda.hpp"
#include "protocol.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class Attempt;
struct ReleaseWait;
struct RenewalWait;

using Attempts = std::list<Attempt>;
// At most one attempt.  It is a list, too, because only from list to list an
// attempt moves without an allocation (splice()).
using OneAttempt = Attempts;

// What the notifier reports of a lease.
enum class News { none, loss, danger };

// Called by one thread for all mutexes of a table, one call at a time, with no
// mutex held.
class Listener {
 public:
  // Reports a loss and its reason, or danger.
  virtual void notify(News news, Verdict loss) const = 0;

 protected:
  ~Listener() = default;
};

// One mutex as its attempts and the threads of its table know it.  Whoever
// makes it fills it in; from then on it is only read.  It may outlive the
// mutex, but not the client.
struct MutexSettings {
  MutexSettings(dynamodb::Client& its_client, dynamodb::RetryBudget& its_budget)
      : client(its_client), budget(its_budget) {}

  dynamodb::Client& client;
  dynamodb::RetryBudget& budget;
  RowTarget place;
  // For one request.  After that its outcome is unknown.
  std::chrono::nanoseconds request_timeout = dynamodb::kLockRequestTimeout;
  std::chrono::milliseconds ttl{};
  // A lease is in danger this long before its end.
  std::chrono::nanoseconds safe_time{};
  // The age at which a lease is renewed; zero: only by the user's calls.
  std::chrono::nanoseconds renew_after{};
  // A lock that has been held this long is only renewed by the user's calls.
  std::chrono::nanoseconds max_hold = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds first_poll{};  // Doubles up to the longest.
  std::chrono::nanoseconds longest_poll{};
  // Calls without a deadline retry transient errors for this long, counted from
  // the first of them.
  std::chrono::nanoseconds patience{};
  // What the listener is called for.
  bool hears_losses = false, hears_dangers = false;
  // GUARDED_BY(Leases::mutex): its listener is not called any more.
  bool silenced = false;
  unsigned prefix_bytes = 0;  // Of the key, before the mutex's name.

  std::string_view name() const {  // For people.
    return std::string_view(place.key).substr(prefix_bytes);
  }

  // Until when the lock is held, on the boot clock; BootTime::min() while it is
  // not.  Only Leases writes it.
  std::atomic<BootTime> claim_end{BootTime::min()};
  // GUARDED_BY(Leases::mutex).  The mutex owns it until it is silenced.  It
  // also lives while it is called.
  std::weak_ptr<const Listener> listener;
};

// One lease: one acquisition.
struct HeldLease : std::enable_shared_from_this<HeldLease> {
  explicit HeldLease(std::shared_ptr<MutexSettings> its_settings);
  ~HeldLease();
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  bool over() const { return release_begun || loss; }
  // Whether the sender may renew it at that time.
  bool is_renewed_at(BootTime when) const {
    return settings->renew_after > std::chrono::nanoseconds::zero() &&
           !stops_renewing && when - since < settings->max_hold;
  }

  const std::shared_ptr<MutexSettings> settings;
  // The attempt that takes it or releases it uses it alone.  While it is held,
  // it and all below are GUARDED_BY(Leases::mutex).
  Lease lease;
  BootTime since{};  // It is held.
  bool release_begun = false;
  bool renewing = false;        // A renewal is in flight.
  bool stops_renewing = false;  // From now on only the user renews it.
  std::optional<Verdict> loss;  // How it was lost, if it was.
  BootTime lost_at{};           // See Result::lost_at.
  // See Leases.  A lease that is over is on no agenda.
  Agenda::Entry renewal, alarm;
  Agenda* renewal_on = nullptr;  // The agenda of `renewal`, while planned.
  bool in_danger = false;        // Reported since it was renewed.
  OneAttempt retry;              // The renewal, if it is to be retried.
  OneAttempt release;            // Made in advance: unlock() needs no memory.
  // The calls that wait for it; may be null.  Told when they are over.
  sigv4::Condition told;
  RenewalWait* renewal_wait = nullptr;
  ReleaseWait* release_wait = nullptr;
  std::shared_ptr<HeldLease> next_lost;  // The next loss to report.
};

using HeldLeasePtr = std::shared_ptr<HeldLease>;

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_HELD_LEASE_HPP
