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
// How many renewals are in flight at once if leases are nearly over.  Those
// that got no answer before leave room for others.
constexpr std::size_t kMostRenewals = 128;
constexpr std::size_t kMostUnanswered = 96;

constexpr double kMostTimesMean = 2.25;
constexpr double kLeastRenewalsPerSecond = 100;
// How many more may begin at once if fewer than the limit began before.
constexpr int kMaxBurst = 8;
// A renewal is urgent in this last part of its lease.
constexpr int kUrgentPart = 8;

double per_second(nanoseconds every) {
  return 1 / std::chrono::duration<double>(every).count();
}

nanoseconds between_renewals(double needed) {
  return nanoseconds(static_cast<std::int64_t>(
      1e9 / std::max(kMostTimesMean * needed, kLeastRenewalsPerSecond)));
}

BootTime urgent_at(const Hold& hold) {
  return hold.lease.claim_end() - hold.settings->ttl / kUrgentPart;
}

// In the order in which they are sent.
enum Rank {
  awaited,  // A call waits for it.
  usual,
  usual_unanswered,  // It got no answer before.
  of_take,           // Of a take that perhaps never succeeded.
  of_take_unanswered,
  second_release,  // Of such a take.
  second_release_unanswered,
};

bool is_awaited(const Hold& hold) {
  return hold.wait != nullptr && hold.wait->goes_first;
}

Rank rank_of_renewal(const Hold& hold) {
  if (is_awaited(hold)) return awaited;
  return hold.unanswered() ? usual_unanswered : usual;
}

OrderKey key_of_renewal(const Hold& hold) {
  return {rank_of_renewal(hold), hold.lease.claim_end()};
}

Rank rank_of_release(const Hold& hold) {
  const bool unanswered = hold.unanswered();
  if (is_awaited(hold)) return awaited;
  if (hold.phase == Phase::releasing_again) {
    return unanswered ? second_release_unanswered : second_release;
  }
  if (!hold.was_granted()) return unanswered ? of_take_unanswered : of_take;
  return unanswered ? usual_unanswered : usual;
}

Hold* first_in(const Order& line) {
  return line.empty() ? nullptr : line.begin()->second.get();
}

}  // namespace

// --- The rate of renewals ----------------------------------------------------

bool RenewalRate::count(BootTime now, double needed) {
  if (next_ > now) return false;
  const nanoseconds between = between_renewals(needed);
  next_ = std::max(next_, now - kMaxBurst * between) + between;
  return true;
}

void RenewalRate::uncount(double needed) { next_ -= between_renewals(needed); }

// --- The lines ---------------------------------------------------------------

void Lines::join(Hold& hold, BootTime now) {
  switch (hold.call()) {
    case Call::renew:
      hold.send.move(renewals_, key_of_renewal(hold));
      break;
    case Call::release:
      hold.send.move(releases_, {rank_of_release(hold), now});
      break;
    case Call::take:
      hold.send.move(takes_, {0, now});
      break;
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
  const Due renewal = renewal_due(now);
  if (renewal.hold != nullptr) return renewal;
  if (Hold* const release = first_in(releases_)) {
    const bool has_room = releases_in_flight_ < kReleasesAtOnce;
    // Also if its call has left since it joined the line.
    const bool goes_first = release->send.key().rank == awaited;
    if (has_room || goes_first) return {release, now};
  }
  Hold* const take = first_in(takes_);
  // An answer makes room for a release.
  if (take == nullptr) return {nullptr, renewal.ask_at};
  if (takes_begun_ >= kBegunInARound) return {nullptr, now};
  return {take, now};
}

bool Lines::count(const Hold& hold, BootTime now) {
  switch (hold.call()) {
    case Call::renew:
      ++renewals_in_flight_;
      return rate_.count(now, needed_per_s_);
    case Call::release:
      ++releases_in_flight_;
      break;
    case Call::take:
      ++takes_begun_;
      break;
  }
  return false;
}

void Lines::add_lease(nanoseconds renew_after) {
  needed_per_s_ += per_second(renew_after);
}

void Lines::remove_lease(nanoseconds renew_after) {
  needed_per_s_ -= per_second(renew_after);
}

// The first in line.  If it may not begin: the first of those that got no
// answer before, because that one may be urgent although the first in line is
// not.
Lines::Due Lines::renewal_due(BootTime now) const {
  Hold* const first = first_in(renewals_);
  if (first == nullptr) return {nullptr, kNever};
  BootTime ask_at = renews_at(*first, now);
  if (ask_at <= now) return {first, now};
  // That is the highest rank of a renewal.
  const auto unanswered =
      renewals_.lower_bound({usual_unanswered, BootTime::min()});
  const bool has_room = renewals_in_flight_ < kMostUnanswered;
  if (unanswered == renewals_.end() || !has_room) return {nullptr, ask_at};
  Hold* const other = unanswered->second.get();
  ask_at = std::min(ask_at, urgent_at(*other));
  if (ask_at <= now) return {other, now};
  return {nullptr, ask_at};
}

// When the first in line may begin.  After an outage many renewals are due at
// once, so they are limited.
BootTime Lines::renews_at(const Hold& first, BootTime now) const {
  if (is_awaited(first)) return now;
  // The sender asks again when an answer has made room.
  if (renewals_in_flight_ >= kMostRenewals) return kNever;
  const BootTime urgent = urgent_at(first);
  return renewals_in_flight_ >= kRenewalsAtOnce
             ? urgent
             : std::min(rate_.next(), urgent);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
