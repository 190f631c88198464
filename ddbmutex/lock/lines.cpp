// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Which Hold is next in each line, and whether its request may be sent now.
#include "lines.hpp"

#include <algorithm>
#include <cstdint>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using std::chrono::nanoseconds;
using Phase = Hold::Phase;

namespace {

// How many are in flight at once; more wait.  As many idle connections are
// kept.
constexpr std::size_t kRenewalsAtOnce = 32;
constexpr std::size_t kReleasesAtOnce = 32;
// How many renewals are in flight at once if leases are nearly over.  A renewal
// that hangs occupies its place for its request_timeout.  If that is a quarter
// of the lease, two sets of 128 fit into the second half of the lease: 256
// renewals that hang still leave room for a healthy one.
constexpr std::size_t kMostRenewals = 128;

// The rate limit of renewals is 2.25 times the mean rate that all leases need,
// and at least 100 a second.
constexpr double kMostTimesMean = 2.25;
constexpr double kLeastRenewalsPerSecond = 100;
// How many more may begin at once if fewer than the limit began before.
constexpr int kMaxBurst = 8;
// In the last eighth of its lease a renewal ignores the rate limit.
constexpr int kUrgentPart = 8;

nanoseconds between_renewals(double needed) {
  return nanoseconds(static_cast<std::int64_t>(
      1e9 / std::max(kMostTimesMean * needed, kLeastRenewalsPerSecond)));
}

bool goes_first(const Hold& hold) {
  const Wait* const wait = hold.wait;
  return wait != nullptr && (hold.phase == Phase::held || wait->goes_first);
}

// In the order of their ranks.
enum Rank {
  awaited,  // By a call that goes first.
  usual,
  unanswered,
  doubtful,
  doubtful_unanswered,
  again,
  again_unanswered,
};

// A renewal that got no answer comes a ttl later.
OrderKey key_of_renewal(const Hold& hold) {
  const BootTime end = hold.lease.claim_end();
  return {goes_first(hold) ? awaited : usual,
          hold.unanswered() ? end + hold.settings->ttl : end};
}

OrderKey key_of_release(const Hold& hold, BootTime now) {
  int rank = hold.unanswered() ? unanswered : usual;
  if (hold.is_doubtful()) rank += doubtful - usual;
  if (hold.phase == Phase::releasing_again) rank += again - doubtful;
  return {goes_first(hold) ? awaited : rank, now};
}

Hold* first(const Order& line) {
  return line.empty() ? nullptr : line.begin()->second.get();
}

}  // namespace

// --- The rate of renewals ----------------------------------------------------

BootTime RenewalRate::begins_at(BootTime claim_end, nanoseconds ttl) const {
  return std::min(next_, urgent_at(claim_end, ttl));
}

BootTime RenewalRate::urgent_at(BootTime claim_end, nanoseconds ttl) {
  return claim_end - ttl / kUrgentPart;
}

void RenewalRate::count(BootTime now, double needed) {
  if (next_ > now) return;
  const nanoseconds between = between_renewals(needed);
  next_ = std::max(next_, now - kMaxBurst * between) + between;
}

void RenewalRate::uncount(double needed) { next_ -= between_renewals(needed); }

// --- The lines ---------------------------------------------------------------

void Lines::join(Hold& hold, BootTime now) {
  switch (hold.call()) {
    case Call::renew:
      return hold.send.move(renewals_, key_of_renewal(hold));
    case Call::release:
      return hold.send.move(releases_, key_of_release(hold, now));
    case Call::take:
      return hold.send.move(takes_, {0, now});
  }
}

void Lines::update(Hold& hold) {
  if (!hold.send.is_in(renewals_)) return;
  hold.send.move(renewals_, key_of_renewal(hold));
}

void Lines::begin_round(std::size_t renewals, std::size_t releases) {
  renewing_ = renewals;
  releasing_ = releases;
  taken_ = 0;
}

HoldPtr Lines::next(BootTime now, Order& parked, BootTime& look_at) {
  Hold* const renewal = first(renewals_);
  Hold* const release = first(releases_);
  Hold* hold = nullptr;
  if (renewal != nullptr && may_renew(*renewal, now, look_at)) {
    hold = renewal;
    rate_.count(now, renewals_per_s);
    ++renewing_;
  } else if (release != nullptr &&
             (goes_first(*release) || releasing_ < kReleasesAtOnce)) {
    hold = release;
    if (!goes_first(*release)) ++releasing_;
  } else if (taken_ < kBegunInARound) {
    hold = first(takes_);
    ++taken_;
  } else if (!takes_.empty()) {
    look_at = now;
  }
  if (hold == nullptr) return nullptr;
  hold->send.move(parked, {});
  return hold->shared_from_this();
}

// When the service is back after an outage, many renewals are due at once.
bool Lines::may_renew(const Hold& hold, BootTime now, BootTime& look_at) const {
  if (goes_first(hold)) return true;
  if (renewing_ >= kMostRenewals) return false;
  const BootTime end = hold.lease.claim_end();
  const nanoseconds ttl = hold.settings->ttl;
  const BootTime when = renewing_ >= kRenewalsAtOnce
                            ? RenewalRate::urgent_at(end, ttl)
                            : rate_.begins_at(end, ttl);
  if (when <= now) return true;
  look_at = std::min(look_at, when);
  return false;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
