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
// How many renewals are in flight at once if leases are nearly over.  With a
// request_timeout of a quarter of the lease, one that hangs is in flight half
// of the time.  So 256 can hang, and a healthy one still finds room.
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

// From then on no rate holds the renewal up: its lease is nearly over.
BootTime urgent_at(BootTime claim_end, nanoseconds ttl) {
  return claim_end - ttl / kUrgentPart;
}

// In the order in which they are sent.
enum Rank {
  awaited,  // A call waits for it.
  usual,
  usual_unanswered,  // It got no answer before.
  doubtful,          // Of a take that perhaps never succeeded.
  doubtful_unanswered,
  second,  // The second release of such a take.
  second_unanswered,
};

bool is_awaited(const Hold& hold) {
  return hold.wait != nullptr && hold.wait->goes_first;
}

// A renewal without an answer is sorted as if its claim ended a ttl later.
OrderKey key_of_renewal(const Hold& hold) {
  const BootTime end = hold.lease.claim_end();
  return {is_awaited(hold) ? awaited : usual,
          hold.unanswered() ? end + hold.settings->ttl : end};
}

Rank rank_of_release(const Hold& hold) {
  const bool unanswered = hold.unanswered();
  if (is_awaited(hold)) return awaited;
  if (hold.phase == Phase::releasing_again) {
    return unanswered ? second_unanswered : second;
  }
  if (hold.is_doubtful()) return unanswered ? doubtful_unanswered : doubtful;
  return unanswered ? usual_unanswered : usual;
}

Hold* first_in(const Order& line) {
  return line.empty() ? nullptr : line.begin()->second.get();
}

}  // namespace

// --- The rate of renewals ----------------------------------------------------

BootTime RenewalRate::begins_at(BootTime claim_end, nanoseconds ttl) const {
  return std::min(next_, urgent_at(claim_end, ttl));
}

void RenewalRate::count(BootTime now, double needed) {
  if (next_ > now) return;  // Beyond the limit.
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
      return hold.send.move(releases_, {rank_of_release(hold), now});
    case Call::take:
      return hold.send.move(takes_, {0, now});
  }
}

void Lines::update(Hold& hold) {
  if (!hold.send.is_in(renewals_)) return;
  hold.send.move(renewals_, key_of_renewal(hold));
}

void Lines::begin_round(std::size_t renewals, std::size_t releases) {
  renewals_in_flight_ = renewals;
  releases_in_flight_ = releases;
  takes_begun_ = 0;
}

Lines::Due Lines::due(BootTime now) const {
  BootTime ask_at = kNever;
  if (Hold* const renewal = first_in(renewals_)) {
    ask_at = renews_at(*renewal, now);
    if (ask_at <= now) return {renewal, now};
  }
  if (Hold* const release = first_in(releases_)) {
    const bool has_room = releases_in_flight_ < kReleasesAtOnce;
    // It keeps its rank when its call leaves.
    if (has_room || release->send.key().rank == awaited) return {release, now};
  }
  Hold* const take = first_in(takes_);
  if (take == nullptr) return {nullptr, ask_at};
  if (takes_begun_ >= kBegunInARound) return {nullptr, now};
  return {take, now};
}

void Lines::count(const Hold& hold, BootTime now) {
  switch (hold.call()) {
    case Call::renew:
      rate_.count(now, renewals_per_s);
      ++renewals_in_flight_;
      break;
    case Call::release:
      ++releases_in_flight_;
      break;
    case Call::take:
      ++takes_begun_;
      break;
  }
}

// After an outage many renewals are due at once, so they are limited.
BootTime Lines::renews_at(const Hold& hold, BootTime now) const {
  if (is_awaited(hold)) return now;
  // An answer makes room.
  if (renewals_in_flight_ >= kMostRenewals) return kNever;
  const BootTime end = hold.lease.claim_end();
  const nanoseconds ttl = hold.settings->ttl;
  return renewals_in_flight_ >= kRenewalsAtOnce ? urgent_at(end, ttl)
                                                : rate_.begins_at(end, ttl);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
