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

// A condition lists at most this many of our versions (DynamoDB allows 100).
constexpr std::size_t kOwnListed = 16;

// A stamp ends in the attempt's number modulo this, so that no two stamps of a
// lease are equal by chance.
constexpr std::int64_t kNumbers = 1000;

// How many takes are retried at once if they were refused although the row
// looks free: one with what the refusal has shown, one because of a race.
constexpr int kTriesAtOnce = 2;

// A stamp is made only if DynamoDB's time is known to within this.  It uses the
// latest possible time, so it is late by the uncertainty.
constexpr std::chrono::seconds kMostUncertain{3};
// If answers are so slow that even a look leaves more uncertainty, the look is
// good enough for this long.
constexpr std::chrono::seconds kLookServesFor{30};

// Only a released row, which has 0, ends before this.
constexpr ServiceTime kOnlyReleased{1};

// The error of a clock that is off by the allowed 1 %, over a lease.
nanoseconds margin(nanoseconds lease) {
  return (lease + nanoseconds(dynamodb::kRateMargin - 1)) /
         dynamodb::kRateMargin;
}

// The `earliest` of a take: a lease that ended before this is over.  If others
// stamp by their wall clocks, those may be behind by the margin.
ServiceTime over_before(const RowPolicy& use, const ServiceClock& clock,
                        BootTime now) {
  if (!clock.known()) return kOnlyReleased;
  const nanoseconds skew = std::max<nanoseconds>(kFrontEndSkew, use.margin);
  return std::max(kOnlyReleased, clock.earliest(now) - skew);
}

bool free_to_take(const RowPolicy& use, const Observation& observation,
                  const ServiceClock& clock, BootTime now) {
  if (!observation.seen()) return true;
  return observation.stale(now) ||
         observation.seen()->expires < over_before(use, clock, now);
}

void look(Request& request, bool consistent) {
  request.verb = Verb::look;
  request.consistent = consistent;
}

}  // namespace

bool knows_the_time(const ServiceClock& clock, BootTime now) {
  return clock.known() ? clock.uncertainty(now) <= kMostUncertain
                       : clock.silent();
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

Lease::Lease(std::string uuid, std::chrono::milliseconds ttl, RowPolicy use)
    : uuid_(std::move(uuid)), ttl_(ttl), use_(use) {}

// --- What to send ----------------------------------------------------------

Request Lease::next(Call call, BootTime now, const ServiceClock& clock,
                    const Observation& observation) {
  Request request;
  // First, before a stamp is remembered as sent: memory may run out here.
  request.uuid = uuid_;
  if (call != call_) look_first_ = false;
  call_ = call;
  ask(request, now, clock, observation);
  verb_ = request.verb;
  if (verb_ == Verb::look) request.uuid.clear();
  consistent_ = request.consistent;
  tells_ = request.wants_row || (verb_ == Verb::take && use_.takes_by_update());
  return request;
}

void Lease::ask(Request& request, BootTime now, const ServiceClock& clock,
                const Observation& observation) {
  if (look_first_) return look(request, true);
  if (call_ == Call::release) return release(request);
  if (call_ == Call::renew || unsettled_) return renew(request, now, clock);
  if (!may_take(clock, now)) return look(request, true);
  if (refused_ && !free_to_take(use_, observation, clock, now)) {
    return look(request, false);
  }
  take(request, now, clock, observation);
}

// A look comes before a take that must use the form of the stored row, lacks a
// Date that it needs, or does not know the time well enough.
bool Lease::may_take(const ServiceClock& clock, BootTime now) const {
  const bool lacks_row = use_.looks_first && !told_;
  const bool lacks_date = use_.needs_date && !clock.known();
  return !lacks_row && !lacks_date && may_stamp(clock, now);
}

bool Lease::may_stamp(const ServiceClock& clock, BootTime now) const {
  return knows_the_time(clock, now) ||
         (clock.known() && now <= looked_at_ + kLookServesFor);
}

// Lists the stamps of sent_[0], and of sent_[from] and all after it.
void Lease::list(std::size_t from, std::vector<ServiceTime>& own) const {
  own.reserve(1 + sent_.size() - from);
  own.push_back(sent_.front().stamp);
  for (std::size_t i = from; i < sent_.size(); ++i) {
    own.push_back(sent_[i].stamp);
  }
}

void Lease::take(Request& request, BootTime now, const ServiceClock& clock,
                 const Observation& observation) {
  request.verb = Verb::take;
  request.lease = ttl_;
  request.earliest = over_before(use_, clock, now);
  if (observation.seen()) request.form = observation.seen()->form;
  if (observation.stale(now)) {
    request.seen = {observation.seen()->uuid, observation.seen()->expires};
  }
  // The first version, which the row may be known to have, and the latest ones.
  const std::size_t skipped =
      sent_.size() > kOwnListed ? sent_.size() - kOwnListed : 0;
  if (!sent_.empty()) list(skipped + 1, request.own);
  request.stamp = stamp(now, clock);
  // A waiter may try for days, so versions that are a thousand tries old are
  // forgotten.  If one is applied after all, the row counts as that of another
  // holder, and its lease is waited out.
  if (sent_.size() > kNumbers) drop_before(1);
}

void Lease::renew(Request& request, BootTime now, const ServiceClock& clock) {
  const bool too_many = 1 + sent_.size() - listed_from_ > kOwnListed;
  if (too_many || !may_stamp(clock, now)) {
    look(request, true);
    apply(clock);
    return;
  }
  request.verb = Verb::renew;
  list(listed_from_, request.own);
  request.stamp = stamp(now, clock);
  request.wants_row = use_.keep && !ours_;  // For the token.
  if (ours_) change(request);
  apply(clock);
}

void Lease::release(Request& request) const {
  request.verb = Verb::release;
  change(request);
}

void Lease::change(Request& request) const {
  request.changes = changes_;
  if (changes_) request.token = token_;
}

// The stamp of a new attempt, sent at `now`.
ServiceTime Lease::stamp(BootTime now, const ServiceClock& clock) {
  ++attempts_;
  Sent sent{{}, now, {}, clock.contradictions()};
  if (clock.known()) sent.earliest = clock.earliest(now);
  if (clock.known() && use_.stores_end) {
    sent.stamp = unused(clock.latest(now) + ttl_ + use_.margin);
  } else {
    sent.stamp = kBeyondAllClocks + nanoseconds(attempts_);
  }
  sent_.push_back(sent);
  return sent.stamp;
}

// No two stamps of a lease may be equal, or a late copy of an old renewal would
// pass for the new one.  `latest` can move back, so the low digits hold the
// number of the attempt, which is unique for a thousand attempts.  After that,
// a stamp is also higher than all that were dropped.
ServiceTime Lease::unused(ServiceTime at_least) const {
  if (attempts_ >= kNumbers) {
    at_least = std::max(at_least, highest_dropped_ + nanoseconds(1));
  }
  constexpr nanoseconds kStep(kNumbers);
  ServiceTime stamp =
      at_least / kStep * kStep + nanoseconds(attempts_ % kNumbers);
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
  // The Date of a release's answer must not shorten the claim.  If this machine
  // was stopped before it unlocked and another has the row, that is a loss, and
  // a shorter claim would hide it.
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
  if (tells_) {
    stands_ = true;
    row_ = std::move(reply.row);
    if (row_ && row_->kind == Row::Kind::unknown) return Verdict::bad_record;
    // If the answer does not include the row, a look gets it.
    look_first_ = !row_ || row_->uuid != uuid_;
    if (look_first_) return Verdict::again;
  }
  return won(sent_.size() - 1, reply.received, clock);
}

// Learns from the row that a refusal or a look has shown.
Verdict Lease::receive_row(Reply& reply, const ServiceClock& clock,
                           Observation& observation) {
  const std::optional<std::size_t> own = find_own(*reply.row);
  if (!own || !ours_) row_ = std::move(reply.row);
  if (!own) return beaten(reply.received, clock, observation);
  const Verdict verdict = won(*own, reply.received, clock);
  // Versions that were sent before this look, and that the row does not have,
  // are not listed again.  If one is applied late, the next renewal is refused,
  // and the refusal shows our version.
  if (consistent_) listed_from_ = sent_.size();
  return verdict;
}

// The row has, or has had, our version sent_[index].
Verdict Lease::won(std::size_t index, BootTime received,
                   const ServiceClock& clock) {
  if (ours_ && index == 0) return Verdict::again;  // Nothing new.
  const bool renewal = ours_;
  drop_before(index);
  listed_from_ = 1;
  return renewal ? renewed(received, clock) : granted(received, clock);
}

Verdict Lease::granted(BootTime received, const ServiceClock& clock) {
  stands_ = true;
  refused_ = false;
  // A later take of this call may still be applied, and increment the token.
  unsettled_ = use_.keep && sent_.size() > 1;
  if (unsettled_) return Verdict::again;
  const Sent& sent = sent_.front();
  const BootTime end = claim_of(sent, clock);
  if (received >= end) return Verdict::again;
  ours_ = true;
  granted_ = sent;
  taken_at_ = sent.at;
  claim_end_ = end;
  token_ = use_.keep && row_ ? row_->token : 0;
  return Verdict::ours;
}

// A claim that is over stays over, even if the renewal was applied.
Verdict Lease::renewed(BootTime received, const ServiceClock& clock) {
  const Sent& sent = sent_.front();
  const BootTime end = claim_of(sent, clock);
  if (received >= claim_end_) return Verdict::expired;
  claim_end_ = end;
  if (received >= end) return Verdict::expired;
  granted_ = sent;
  return Verdict::ours;
}

// The row is not ours.
Verdict Lease::beaten(BootTime received, const ServiceClock& clock,
                      Observation& observation) {
  told_ = true;
  const Row& row = *row_;
  const bool absent = row.kind == Row::Kind::absent;
  if (ours_) return absent ? Verdict::deleted : Verdict::taken;
  const bool bare = row.kind == Row::Kind::bare;
  const bool free = absent || (bare && use_.keep);
  unsettled_ = stands_ = false;
  refused_ = !free;
  if (row.has_token && !use_.keep) {
    observation.forget();  // It is never taken, even if it stays unchanged.
    return Verdict::kept_row;
  }
  observation.see(row, received);
  if (use_.needs_date && !clock.known()) return Verdict::no_date;
  if (row.kind == Row::Kind::unknown || (bare && !free)) {
    return Verdict::bad_record;
  }
  if (absent && use_.must_exist) return Verdict::no_row;
  barred_ = row.kind == Row::Kind::record && row.uuid == uuid_ &&
            (row.expires == ServiceTime::zero() ||
             free_to_take(use_, observation, clock, received));
  if (barred_) return Verdict::busy;
  if (free || free_to_take(use_, observation, clock, received)) {
    return at_once();
  }
  tries_at_once_ = 0;
  return Verdict::busy;
}

// Limits immediate retries: if takes are refused although the row looks free,
// they must not be sent as fast as DynamoDB answers.
Verdict Lease::at_once() {
  if (tries_at_once_++ < kTriesAtOnce) return Verdict::again;
  tries_at_once_ = 0;
  return Verdict::busy;
}

Verdict Lease::receive_release(const Reply& reply) {
  switch (reply.outcome) {
    case Reply::Outcome::unsent:
      return Verdict::again;
    case Reply::Outcome::unknown:
      if (verb_ == Verb::release) release_lost_ = true;
      return Verdict::again;
    case Reply::Outcome::done:
      if (verb_ == Verb::release) return Verdict::released;
      break;
    case Reply::Outcome::refused:
      // An earlier release was applied, or the lease is over and others may
      // have had the row since, or no lease was granted.
      if (release_lost_ || reply.received >= claim_end_) {
        return Verdict::released;
      }
      break;
  }
  look_first_ = !reply.row;
  if (look_first_) return Verdict::again;
  const Row& row = *reply.row;
  if (row.kind == Row::Kind::record && row.uuid == uuid_) {
    const bool marked = use_.keep && row.expires == ServiceTime::zero();
    if (marked) return Verdict::released;
    // Another token: an old take was applied after others have had the lock.
    if (ours_ && use_.keep && row.token != token_) return Verdict::taken;
    return Verdict::again;  // Still ours, by an old take that was applied late.
  }
  return row.kind == Row::Kind::absent ? Verdict::deleted : Verdict::taken;
}

// --- Until when it is ours -------------------------------------------------

void Lease::apply(const ServiceClock& clock) {
  if (!ours_) return;
  claim_end_ = std::min(claim_end_, claim_of(granted_, clock));
}

// A claim ends by the boot clock, and also when DynamoDB's clock may reach the
// lowest stamp (the row may have any of them), less the margin for wall clocks
// that are ahead.  Nobody may take the row before that.
//
// If an answer since the request was sent has contradicted what was known of
// DynamoDB's clock, this machine may have been stopped while the clocks of
// waiters went on.  Then the claim also ends one lease after the earliest time
// that DynamoDB's clock may have shown when the request was sent.  The stamp
// cannot be used for that, because it is made from the latest time.  Later
// answers cannot either, because they may follow a stop that was too short to
// notice.
BootTime Lease::claim_of(const Sent& sent, const ServiceClock& clock) const {
  const BootTime end =
      std::min(sent.at + held_for(ttl_),
               clock.when_latest_is(lowest_stamp() - use_.margin));
  if (clock.contradictions() == sent.contradictions) return end;
  return std::min(end, clock.when_latest_is(sent.earliest + held_for(ttl_)));
}

bool Lease::hand_over(BootTime now, int limit) {
  const nanoseconds half = nanoseconds(ttl_) / 2;
  const bool needs_no_take = !use_.keep && !use_.takes_by_update();
  const bool early = now < taken_at_ + half && now + half < claim_end();
  if (!needs_no_take || !early || handed_over_ >= limit) return false;
  ++handed_over_;
  return true;
}

BootTime Lease::renew_at(nanoseconds age) const { return granted_.at + age; }

ServiceTime Lease::lowest_stamp() const {
  return std::min_element(
             sent_.begin(), sent_.end(),
             [](const Sent& a, const Sent& b) { return a.stamp < b.stamp; })
      ->stamp;
}

std::optional<std::size_t> Lease::find_own(const Row& row) const {
  if (row.kind != Row::Kind::record || row.uuid != uuid_) return std::nullopt;
  // Another token: an old take was applied after others have had the lock.
  if (ours_ && use_.keep && row.token != token_) return std::nullopt;
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
    if (dropped->stamp < kBeyondAllClocks) {
      highest_dropped_ = std::max(highest_dropped_, dropped->stamp);
    }
  }
  sent_.erase(sent_.begin(), kept);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
