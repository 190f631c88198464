// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Lease, in three parts: what to send, what an answer means, and until when the
// lock is ours.
#include "protocol.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/memory.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using std::chrono::nanoseconds;
using Verb = Request::Verb;

namespace {

// A condition lists at most this many of our versions (DynamoDB allows 100).  A
// renewal that is throttled more often needs a look first, which may be
// throttled as often.
constexpr std::size_t kMaxOwnVersions = 64;

// A stamp ends in the attempt's number modulo this, so that no two stamps of a
// lease are equal by chance.
constexpr std::int64_t kAttemptNumbers = 1000;

// A take that was refused although the row seems free is repeated this often
// without a pause: once because the refusal has shown the row, once because
// another may have been faster.
constexpr int kImmediateRetries = 2;

// A stamp is made only if DynamoDB's time is known to within this.  It uses the
// latest possible time, so it is late by the uncertainty.
constexpr std::chrono::seconds kMaxUncertainty{3};
// If answers are so slow that even a look leaves more uncertainty, the look is
// good enough for this long.
constexpr std::chrono::seconds kLookServesFor{30};

// Only a released row, which has 0, ends before this.
constexpr ServiceTime kOnlyReleased{1};

// 1 % of the lease, rounded up: how far a clock within the allowed rate can be
// off at its end.
nanoseconds margin(nanoseconds lease) {
  return (lease + nanoseconds(dynamodb::kRateMargin - 1)) /
         dynamodb::kRateMargin;
}

// Request::earliest of a take: a lease that ended before this time is over.
// `earliest`: what DynamoDB's clock shows at the earliest.  If other programs
// stamp by their wall clocks, those may be behind by the margin.
ServiceTime over_before(nanoseconds margin, ServiceTime earliest) {
  const nanoseconds skew = std::max<nanoseconds>(kFrontEndSkew, margin);
  return std::max(kOnlyReleased, earliest - skew);
}
ServiceTime over_before(const RowPolicy& policy, const ServiceClock& clock,
                        BootTime now) {
  if (!clock.known()) return kOnlyReleased;
  return over_before(policy.margin, clock.earliest(now));
}

bool free_to_take(const RowPolicy& policy, const Observation& observation,
                  const ServiceClock& clock, BootTime now) {
  if (!observation.seen()) return true;
  return observation.stale(now) ||
         observation.seen()->expires < over_before(policy, clock, now);
}

void fill_look(Request& request, bool consistent) {
  request.verb = Verb::look;
  request.consistent = consistent;
}

}  // namespace

bool is_over_for_newcomers(ServiceTime expires, nanoseconds margin,
                           const ServiceClock& clock, BootTime now) {
  if (!clock.known()) return false;
  // The newcomer's clock knows one Date, less kAgreement.
  const auto date = std::chrono::floor<std::chrono::seconds>(
      clock.earliest(now) + dynamodb::kAgreement);
  return expires < over_before(margin, date - dynamodb::kAgreement);
}

bool knows_the_time(const ServiceClock& clock, BootTime now) {
  return clock.known() ? clock.uncertainty(now) <= kMaxUncertainty
                       : clock.answers_lack_date();
}

nanoseconds held_for(nanoseconds lease) {
  const nanoseconds pause = std::min(kUnnoticedPause, lease / kPausePart);
  return lease - std::max(margin(lease), pause);
}
nanoseconds waited_for(nanoseconds lease) { return lease + margin(lease); }

void Observation::see(const Row& row, BootTime received) {
  if (row.kind != Row::Kind::record) return forget();
  const bool same = seen_.known && seen_.uuid == row.uuid &&
                    seen_.expires == row.expires && seen_.lease == row.lease &&
                    seen_.form == row.form;
  if (same) return;
  forget();
  if (!sigv4::try_with_memory([&] { seen_.uuid = row.uuid; })) return;
  seen_.expires = row.expires;
  seen_.lease = row.lease;
  seen_.form = row.form;
  seen_.known = true;
  since_ = received;
}

BootTime Observation::stale_at() const {
  if (seen() == nullptr || !seen_.lease) return BootTime::max();
  return since_ + waited_for(*seen_.lease);
}

Lease::Lease(std::string uuid, std::chrono::milliseconds ttl, RowPolicy policy)
    : uuid_(std::move(uuid)), ttl_(ttl), policy_(policy) {}

// --- What to send ----------------------------------------------------------

Request Lease::next(Call call, BootTime now, const ServiceClock& clock,
                    const Observation& observation) {
  Request request;
  // First, before a stamp is remembered as sent: memory may run out here.
  request.uuid = uuid_;
  // A look that another kind of call wanted is not needed now.
  if (call != call_) look_first_ = false;
  call_ = call;
  fill(request, now, clock, observation);
  // The row may get this stamp, which can be lower than the others.  Then the
  // claim ends sooner.
  if (call == Call::renew) apply(clock);
  verb_ = request.verb;
  if (verb_ == Verb::look) request.uuid.clear();  // A look names no uuid.
  consistent_ = request.consistent;
  answer_has_row_ =
      request.wants_row || (verb_ == Verb::take && policy_.takes_by_update());
  return request;
}

void Lease::fill(Request& request, BootTime now, const ServiceClock& clock,
                 const Observation& observation) {
  if (look_first_) return fill_look(request, true);
  if (call_ == Call::release) {
    request.verb = Verb::release;
    return add_changes(request);
  }
  if (call_ == Call::renew || must_renew_) {
    return fill_renewal(request, now, clock);
  }
  if (!may_take(clock, now)) return fill_look(request, true);
  if (row_is_taken_ && !free_to_take(policy_, observation, clock, now)) {
    return fill_look(request, false);
  }
  fill_take(request, now, clock, observation);
}

// A look comes first if the take must use the form of the stored row, if it
// needs a Date and there was none, or if DynamoDB's time is not known well
// enough.
bool Lease::may_take(const ServiceClock& clock, BootTime now) const {
  const bool lacks_row = policy_.looks_first && !has_seen_row_;
  const bool lacks_date = policy_.needs_date && !clock.known();
  return !lacks_row && !lacks_date && may_stamp(clock, now);
}

bool Lease::may_stamp(const ServiceClock& clock, BootTime now) const {
  return knows_the_time(clock, now) ||
         (clock.known() && now <= looked_at_ + kLookServesFor);
}

// The stamps of sent_[0], and of sent_[from] and all after it.
std::vector<ServiceTime> Lease::own_versions(std::size_t from) const {
  std::vector<ServiceTime> own;
  own.reserve(1 + sent_.size() - from);
  own.push_back(sent_.front().stamp);
  for (std::size_t i = from; i < sent_.size(); ++i) {
    own.push_back(sent_[i].stamp);
  }
  return own;
}

void Lease::fill_take(Request& request, BootTime now, const ServiceClock& clock,
                      const Observation& observation) {
  request.verb = Verb::take;
  request.lease = ttl_;
  request.earliest = over_before(policy_, clock, now);
  if (observation.seen()) request.form = observation.seen()->form;
  if (observation.stale(now)) {
    request.seen = {observation.seen()->uuid, observation.seen()->expires};
  }
  // The first version, because an answer may have shown it in the row, and the
  // latest ones.
  const std::size_t skipped =
      sent_.size() > kMaxOwnVersions ? sent_.size() - kMaxOwnVersions : 0;
  if (!sent_.empty()) request.own = own_versions(skipped + 1);
  request.stamp = stamp(now, clock);
  // A waiter may try for days, so versions that are a thousand tries old are
  // forgotten.  If one is applied after all, the row counts as another
  // holder's, and this waiter waits until its lease is over.
  if (sent_.size() > kAttemptNumbers) drop_before(1);
}

void Lease::fill_renewal(Request& request, BootTime now,
                         const ServiceClock& clock) {
  const bool too_many = 1 + sent_.size() - listed_from_ > kMaxOwnVersions;
  if (too_many || !may_stamp(clock, now)) return fill_look(request, true);
  request.verb = Verb::renew;
  request.own = own_versions(listed_from_);
  request.stamp = stamp(now, clock);
  request.wants_row = policy_.keeps_row && !granted_;  // For the token.
  if (granted_) add_changes(request);
}

void Lease::add_changes(Request& request) const {
  request.changes = changes_;
  if (changes_) request.token = token_;
}

// The stamp of a new attempt, sent at `now`.
ServiceTime Lease::stamp(BootTime now, const ServiceClock& clock) {
  ++attempts_;
  Sent sent{};
  sent.at = now;
  sent.contradictions = clock.contradictions();
  if (clock.known()) sent.earliest = clock.earliest(now);
  if (clock.known() && policy_.stores_end) {
    sent.stamp = unused_stamp(clock.latest(now) + ttl_ + policy_.margin);
  } else {
    sent.stamp = kBeyondAllClocks + nanoseconds(attempts_);
  }
  sent_.push_back(sent);
  return sent.stamp;
}

// No two stamps of a lease may be equal, or a late copy of an old renewal would
// pass for the new one.  `at_least` may be earlier than at the last attempt.
// So the last three digits are the attempt's number.  They repeat after a
// thousand attempts; from then on a stamp is also higher than all that were
// dropped.
ServiceTime Lease::unused_stamp(ServiceTime at_least) const {
  if (attempts_ >= kAttemptNumbers) {
    at_least = std::max(at_least, highest_dropped_ + nanoseconds(1));
  }
  // Not before `at_least`.  Its last three digits are the attempt's number.
  constexpr nanoseconds kStep(kAttemptNumbers);
  ServiceTime stamp =
      at_least / kStep * kStep + nanoseconds(attempts_ % kAttemptNumbers);
  if (stamp < at_least) stamp += kStep;
  const auto used = [&] {
    for (const Sent& sent : sent_) {
      if (sent.stamp == stamp) return true;
    }
    return false;
  };
  while (used()) stamp += kStep;
  return stamp;
}

// --- What an answer means --------------------------------------------------

Verdict Lease::receive(Reply&& reply, const ServiceClock& clock,
                       Observation& observation) {
  // A release does not apply() the clock.  Suppose this machine was stopped
  // before it unlocked, and another host has the row.  That is a loss, but with
  // a shorter claim receive_release() would call it released.
  if (call_ == Call::release) return receive_release(reply);
  apply(clock);
  const bool stamped = verb_ == Verb::take || verb_ == Verb::renew;
  switch (reply.outcome) {
    case Reply::Outcome::unsent:
      if (stamped) sent_.pop_back();
      return Verdict::again;
    case Reply::Outcome::unknown:
      return Verdict::again;
    case Reply::Outcome::done:
      if (stamped) return receive_write(reply, clock);
      break;
    case Reply::Outcome::refused:
      // A look is refused if there is no table, or its key is wrong.  That is
      // not a free lock.
      if (call_ == Call::take && !stamped) return Verdict::again;
      break;
  }
  if (!stamped) looked_at_ = reply.received;
  look_first_ = !reply.row;
  if (look_first_) return Verdict::again;
  return receive_row(reply, clock, observation);
}

// The answer to a take or a renewal that was applied.
Verdict Lease::receive_write(Reply& reply, const ServiceClock& clock) {
  if (answer_has_row_) {
    row_is_ours_ = true;
    row_ = std::move(reply.row);
    if (row_ && row_->kind == Row::Kind::unknown) return Verdict::bad_record;
    // If the answer does not include the row, a look gets it.
    look_first_ = !row_ || row_->uuid != uuid_;
    if (look_first_) return Verdict::again;
  }
  return receive_own(sent_.size() - 1, reply.received, clock);
}

// Learns from the row that a refusal or a look has shown.
Verdict Lease::receive_row(Reply& reply, const ServiceClock& clock,
                           Observation& observation) {
  const std::optional<std::size_t> own = find_own(*reply.row);
  // After the grant, a version of ours does not replace what the take has
  // found.
  if (!own || !granted_) row_ = std::move(reply.row);
  if (!own) return receive_others(reply.received, clock, observation);
  const Verdict verdict = receive_own(*own, reply.received, clock);
  // Versions that were sent before this look, and that the row does not have,
  // are not listed again.  If one is applied late, the next renewal is refused,
  // and the refusal shows our version.
  if (consistent_) listed_from_ = sent_.size();
  return verdict;
}

// The row has, or has had, the version sent_[index].
Verdict Lease::receive_own(std::size_t index, BootTime received,
                           const ServiceClock& clock) {
  if (granted_ && index == 0) return Verdict::again;  // Nothing new.
  const bool renewal = granted_;
  drop_before(index);
  listed_from_ = 1;
  return renewal ? extend(received, clock) : grant(received, clock);
}

Verdict Lease::grant(BootTime received, const ServiceClock& clock) {
  row_is_ours_ = true;
  row_is_taken_ = false;
  // A later take of this call may still be applied and increment the token.
  must_renew_ = policy_.keeps_row && sent_.size() > 1;
  if (must_renew_) return Verdict::again;
  const Sent& sent = sent_.front();
  const BootTime end = claim_end_of(sent, clock);
  if (received >= end) return Verdict::again;
  granted_ = true;
  confirmed_ = sent;
  claim_end_ = end;
  token_ = policy_.keeps_row && row_ ? row_->token : 0;
  return Verdict::ours;
}

// A claim that is over stays over, even if the renewal was applied.
Verdict Lease::extend(BootTime received, const ServiceClock& clock) {
  const Sent& sent = sent_.front();
  const BootTime end = claim_end_of(sent, clock);
  if (received >= claim_end_) return Verdict::expired;
  claim_end_ = end;
  if (received >= end) return Verdict::expired;
  confirmed_ = sent;
  return Verdict::ours;
}

// The row is another holder's, or there is none.
Verdict Lease::receive_others(BootTime received, const ServiceClock& clock,
                              Observation& observation) {
  has_seen_row_ = true;
  const Row& row = *row_;
  const bool absent = row.kind == Row::Kind::absent;
  if (granted_) return absent ? Verdict::deleted : Verdict::taken;
  const bool bare = row.kind == Row::Kind::bare;
  const bool vacant = absent || (bare && policy_.keeps_row);  // No record.
  must_renew_ = false;
  row_is_ours_ = false;
  row_is_taken_ = !vacant;
  if (row.has_token && !policy_.keeps_row) {
    observation.forget();  // It is never taken, even if it stays unchanged.
    return Verdict::kept_row;
  }
  observation.see(row, received);
  if (policy_.needs_date && !clock.known()) return Verdict::no_date;
  if (row.kind == Row::Kind::unknown || (bare && !vacant)) {
    return Verdict::bad_record;
  }
  if (absent && policy_.must_exist) return Verdict::no_row;
  const bool seems_free =
      vacant || free_to_take(policy_, observation, clock, received);
  needs_new_uuid_ =
      row.kind == Row::Kind::record && row.uuid == uuid_ && seems_free;
  // Takes that are refused although the row seems free must not be sent as fast
  // as DynamoDB answers.
  const bool retries =
      seems_free && !needs_new_uuid_ && immediate_retries_ < kImmediateRetries;
  immediate_retries_ = retries ? immediate_retries_ + 1 : 0;
  return retries ? Verdict::again : Verdict::busy;
}

Verdict Lease::receive_release(const Reply& reply) {
  switch (reply.outcome) {
    case Reply::Outcome::unsent:
      return Verdict::again;
    case Reply::Outcome::unknown:
      if (verb_ == Verb::release) may_be_released_ = true;
      return Verdict::again;
    case Reply::Outcome::done:
      if (verb_ != Verb::release) break;
      waited_for_ = reply.row && reply.row->waited_for;
      return Verdict::released;
    case Reply::Outcome::refused:
      // An earlier release was applied, or the lease is over and others may
      // have had the row since, or no lease was granted.
      if (may_be_released_ || reply.received >= claim_end_) {
        return Verdict::released;
      }
      break;
  }
  look_first_ = !reply.row;
  if (look_first_) return Verdict::again;
  const Row& row = *reply.row;
  if (row.kind == Row::Kind::record && row.uuid == uuid_) {
    const bool is_free =
        policy_.keeps_row && row.expires == ServiceTime::zero();
    if (is_free) return Verdict::released;
    // Another token: an old take was applied after others have had the lock.
    if (granted_ && policy_.keeps_row && row.token != token_)
      return Verdict::taken;
    // The row has our uuid and is not free: a take was applied late.  Release
    // it again.
    return Verdict::again;
  }
  return row.kind == Row::Kind::absent ? Verdict::deleted : Verdict::taken;
}

// --- Until when it is ours -------------------------------------------------

void Lease::apply(const ServiceClock& clock) {
  if (!granted_) return;
  claim_end_ = std::min(claim_end_, claim_end_of(confirmed_, clock));
}

// A claim ends at the earliest of these times:
//   - one lease, less the holder's margin, after the request was sent;
//   - when DynamoDB's clock may reach the lowest stamp that the row may have,
//     less the margin for wall clocks that are ahead.  Before that, nobody
//     takes the row by its stamp;
//   - if DynamoDB's clock was contradicted since the request was sent: when
//     that clock may reach one lease, less the holder's margin, after the
//     earliest time that it may have shown then.  This machine may have been
//     stopped while the clocks of waiters went on.
// The last one does not use the stamp, because that is made from the latest
// time; nor later answers, which may follow a stop too short to notice.
BootTime Lease::claim_end_of(const Sent& sent,
                             const ServiceClock& clock) const {
  const BootTime end =
      std::min(sent.at + held_for(ttl_),
               clock.when_latest_is(lowest_stamp() - policy_.margin));
  if (clock.contradictions() == sent.contradictions) return end;
  return std::min(end, clock.when_latest_is(sent.earliest + held_for(ttl_)));
}

// A claim that got shorter is as old after the same part of it.
BootTime Lease::time_at_age(nanoseconds age) const {
  const nanoseconds claimed = claim_end_ - confirmed_.at;
  const nanoseconds whole = held_for(ttl_);
  if (claimed >= whole) return confirmed_.at + age;
  const double part =
      static_cast<double>(claimed.count()) / static_cast<double>(whole.count());
  return confirmed_.at + std::chrono::duration_cast<nanoseconds>(part * age);
}

ServiceTime Lease::lowest_stamp() const {
  return std::min_element(
             sent_.begin(), sent_.end(),
             [](const Sent& a, const Sent& b) { return a.stamp < b.stamp; })
      ->stamp;
}

std::optional<std::size_t> Lease::find_own(const Row& row) const {
  if (row.kind != Row::Kind::record || row.uuid != uuid_) return std::nullopt;
  // Another token: an old take was applied after others have had the lock.
  if (granted_ && policy_.keeps_row && row.token != token_) return std::nullopt;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i].stamp == row.expires) return i;
  }
  return std::nullopt;
}

// Every write replaces the version before it.  So versions that were sent
// before one that the row has had can no longer be applied.
void Lease::drop_before(std::size_t index) {
  const auto kept = sent_.begin() + static_cast<std::ptrdiff_t>(index);
  for (auto dropped = sent_.begin(); dropped != kept; ++dropped) {
    // Stamps beyond all clocks do not raise later ones, which may be real
    // times.
    if (dropped->stamp < kBeyondAllClocks) {
      highest_dropped_ = std::max(highest_dropped_, dropped->stamp);
    }
  }
  sent_.erase(sent_.begin(), kept);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
