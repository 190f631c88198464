// What the judge says about a lease: how long its holder counts on it, which
// end is stored in its row, and which token it has.
#include <algorithm>

#include "tests/support/layouts.hpp"
#include "tests/world/judge.hpp"

namespace world {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Layout;

namespace {

// ddbmutex/README.md: "the stored end of a lease is at most some 5 s late".
constexpr nanoseconds kStoredEndLate = seconds(5);

constexpr nanoseconds kCalendarMargin = seconds(2);
constexpr nanoseconds kFrontEndsAhead = milliseconds(125);  // See plan.cpp.

// If a machine stands still, boot clock included, for no longer than this,
// another holder gets in only if the ttl is below 10 s (Options::ttl).
constexpr nanoseconds kUnnoticedPause = milliseconds(1250);

// Conversions between two clocks round.
constexpr nanoseconds kRounding = std::chrono::microseconds(1);

// Options::ttl: "A holder stops a margin before the end of its lease.  The
// margin is 1.25 s; if the ttl is below 10 s, an eighth of it; if it is above
// 125 s, 1 % of it."
nanoseconds usable(nanoseconds ttl) {
  if (ttl < seconds(10)) return ttl - ttl / 8;
  return ttl - (ttl > seconds(125) ? ttl / 100 : milliseconds(1250));
}

}  // namespace

// "A holder counts its lease from before it sent the request."  That is the
// last request of its process that has changed the row.
void Judge::check_claim(const WatchedMutex& mutex, BootTime end) {
  const Lock& lock = lock_of(mutex.lock);
  const auto sent = lock.sent.find(mutex.process);
  if (sent == lock.sent.end()) return;
  const nanoseconds beyond = end - (sent->second.boot + usable(mutex.ttl));
  if (beyond > nanoseconds::zero()) {
    wrong("a lease is claimed for too long",
          whose(mutex) + ": " + ms_text(beyond) + " more than there is");
  }
  // After a pause, the claim may have to end early.
  if (mutex.process->host->paused > nanoseconds::zero()) return;
  if (mutex.claim_end == BootTime::min()) return check_new_claim(mutex, end);
  if (end + kRounding < mutex.claim_end) {
    wrong("a claim ends earlier than it did",
          whose(mutex) + ": by " + ms_text(mutex.claim_end - end));
  }
}

// Whether a pause that is long enough has been noticed: "It notices with the
// first answer whose Date does not fit.  Until then, a claim from before the
// stop goes on."
bool Judge::has_noticed(const WatchedMutex& mutex) const {
  const Process& process = *mutex.process;
  return mutex.table->only && plan_.front_ends.date &&
         process.answered_sent > process.host->paused_until &&
         World::the().now() > process.answered + scheduling();
}

// How long two hosts may hold the lock at once: "1.25 s less an eighth of the
// `ttl` ... If both happen at their worst, up to 1 % of the `ttl` more is open,
// but never more than 1.25 s in all."
nanoseconds Judge::allowed_overlap(const WatchedMutex& owner) const {
  // Its claim counts from the request, which may be older than owned_since.
  const Host& host = *owner.process->host;
  const bool was_paused =
      host.paused > nanoseconds::zero() &&
      host.paused_until > owner.owned_since - 2 * owner.request_timeout;
  if (!was_paused) return nanoseconds::zero();
  if (host.paused > kUnnoticedPause) {
    return has_noticed(owner) ? nanoseconds::zero() : nanoseconds::max();
  }
  const nanoseconds ttl = owner.ttl;
  const nanoseconds of_pause =
      std::max(nanoseconds::zero(), kUnnoticedPause - ttl / 8);
  if (of_pause == nanoseconds::zero()) return of_pause;
  return std::min(kUnnoticedPause, of_pause + ttl / 100);
}

// A claim ends before any waiter can have waited the lease out.  Waiters wait
// for 1 % more than the lease, and in a life with pauses their clocks are at
// most 0.5 % fast.
void Judge::check_claim_after_pause(const WatchedMutex& mutex, BootTime end) {
  const Host& host = *mutex.process->host;
  const Lock& lock = lock_of(mutex.lock);
  const auto sent = lock.sent.find(mutex.process);
  if (host.paused == nanoseconds::zero() || sent == lock.sent.end()) return;
  const nanoseconds more = allowed_overlap(mutex);
  if (more == nanoseconds::max() || mutex.forced) return;
  const nanoseconds lease = mutex.ttl + mutex.ttl / 200;
  const nanoseconds beyond = host.when(end) - (sent->second.at + lease + more);
  if (beyond > kRounding) {
    wrong("a claim outlasts its lease",
          whose(mutex) + ": by " + ms_text(beyond));
  }
}

void Judge::check_new_claim(const WatchedMutex& mutex, BootTime end) {
  const Version& version = lock_of(mutex.lock).versions.back();
  if (version.by != mutex.process || !version.held || mutex.forced) return;
  // AnyOf may have taken and renewed it before it is watched.
  if (mutex.asked_for != kNever) return;
  // The claim counts from the stamp.  The machine may have been suspended
  // between that and the sending.
  const nanoseconds missing = version.sent.boot + usable(mutex.ttl) - end -
                              scheduling() - mutex.process->host->frozen;
  if (missing > nanoseconds::zero()) {
    wrong("a lease is claimed for less than there is",
          whose(mutex) + ": " + ms_text(missing));
  }
}

// Whether rows say when a lease ends, by DynamoDB's clock.
bool Judge::tells_end() const {
  return plan_.front_ends.date && plan_.layout != Layout::dynamolock &&
         plan_.layout != Layout::awslabs;
}

void Judge::check_stored_end(const Lock& lock, const Version& version) {
  // "... unless answers take seconds."  Other libraries go by their calendars.
  const bool is_sure = plan_.weather.late <= 0 && plan_.climate.stalls <= 0 &&
                       !version.after_slow_answer &&
                       (version.names_lease || !others_);
  if (!tells_end() || !version.held || !is_sure) return;
  const nanoseconds due = kEpoch + version.at + version.lease + kCalendarMargin;
  if (version.end > due + kStoredEndLate) {
    wrong("a stored end is too late", lock.name + " of " + version.by->name +
                                          ": by " + ms_text(version.end - due));
  }
}

// Table::force_unlock(): "The holder, if it is alive, loses the lock and learns
// of it with its next renewal."
void Judge::check_forced(const WatchedMutex& mutex) {
  const bool is_sure = quiet_ && prompt() && mutex.is_renewed &&
                       !mutex.stopped_renewing && !mutex.unsure &&
                       surely_answered(mutex);
  if (!is_sure) return;
  const nanoseconds bound = mutex.renew_after + mutex.renew_after / 50 +
                            mutex.request_timeout + scheduling();
  const Time freed = when_taken_away(mutex, mutex.proof);
  const bool is_known = freed != kNever && freed > mutex.owned_since;
  if (is_known && World::the().now() - freed > bound) {
    wrong("a lock that was freed by force is still owned", whose(mutex));
  }
}

// "If answers have no `Date`, a lease can only be waited out", with 1 % more.
// Otherwise a lease may also be taken once it has been over for 2 s by
// DynamoDB's clock.  The front ends' clocks may differ from it a little.
void Judge::check_takeover(const Lock& lock, const Version& version) {
  const Version& before = lock.versions.back();
  const bool takes = before.held && version.held && version.by != before.by;
  if (!takes || others_ || plan_.layout != Layout::ddblock) return;
  if (version.by->host->paused > nanoseconds::zero()) return;
  // A copy of a request may have brought back what others have seen before.
  const auto first = std::find_if(
      lock.versions.begin(), lock.versions.end(), [&](const Version& one) {
        return one.proof == before.proof && one.end == before.end;
      });
  const nanoseconds waited =
      version.sent.boot - version.by->host->boot(first->at);
  const bool is_over =
      tells_end() && kEpoch + version.sent.at + kFrontEndsAhead >=
                         before.end + kCalendarMargin;
  if (!is_over && waited < before.lease + before.lease / 100) {
    wrong("a lease is taken before it is over",
          lock.name + " by " + version.by->name + ": after " + ms_text(waited) +
              " of " + ms_text(before.lease));
  }
}

// A guarded write checks the row's token.  Another acquisition has another
// proof.
void Judge::check_token(const Lock& lock, const WatchedMutex& mutex) {
  const Version& version = lock.versions.back();
  if (mutex.token == 0 || mutex.forced || !version.held) return;
  if (version.proof == mutex.proof && version.token != mutex.token) {
    wrong("the row's token changes while the lock is held",
          whose(mutex) + ": from " + std::to_string(mutex.token) + " to " +
              std::to_string(version.token));
  }
}

}  // namespace world
