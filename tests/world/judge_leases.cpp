// What the judge says about a lease: how long its holder counts on it, which
// end its row tells, and the number that it has.
#include <algorithm>

#include "tests/world/judge.hpp"

namespace world {

using ddbmutex::Layout;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// ddbmutex/README.md: "the stored end of a lease is at most some 5 s late".
constexpr nanoseconds kStoredEndLate = seconds(5);
constexpr nanoseconds kCalendarMargin = seconds(2);

// A machine that stands still, boot clock included, for so short a time lets
// others in only below a ttl of 10 s (Options::ttl).
constexpr nanoseconds kUnnoticedPause = milliseconds(1250);

// For what conversions between two clocks round off.
constexpr nanoseconds kRounding = std::chrono::microseconds(1);

// Options::ttl: "A holder stops a margin before the end of its lease.  The
// margin is 1.25 s; if the ttl is below 10 s, an eighth of it; if it is above
// 125 s, 1 % of it."
nanoseconds usable(nanoseconds ttl) {
  if (ttl < seconds(10)) return ttl - ttl / 8;
  return ttl - (ttl > seconds(125) ? ttl / 100 : milliseconds(1250));
}

std::string text_of(const WatchedMutex& mutex) {
  return mutex.lock + " in " + mutex.process->name + ", ttl " +
         std::to_string(mutex.ttl.count()) + " ms";
}

std::string ms_text(nanoseconds time) {
  return std::to_string(
             std::chrono::duration_cast<milliseconds>(time).count()) +
         " ms";
}

}  // namespace

// "A holder counts its lease from before it sent the request."  No request of
// its process that came to nothing counts.
void Judge::check_claim(const WatchedMutex& mutex, BootTime end) {
  const Lock& lock = lock_of(mutex.lock);
  const auto sent = lock.sent.find(mutex.process);
  if (sent == lock.sent.end()) return;
  const nanoseconds beyond = end - (sent->second.boot + usable(mutex.ttl));
  if (beyond > kRounding) {
    wrong("a lease is claimed for too long",
          text_of(mutex) + ": " + ms_text(beyond) + " more than there is");
  }
  // Else it may have to end early.
  if (mutex.process->host->paused > nanoseconds::zero()) return;
  if (mutex.claim_end == BootTime::min()) return check_new_claim(mutex, end);
  if (end + kRounding < mutex.claim_end) {
    wrong("a claim ends earlier than it did",
          text_of(mutex) + ": by " + ms_text(mutex.claim_end - end));
  }
}

// Of a pause too long to go unnoticed: "It notices with the first answer whose
// Date does not fit.  Until then, a claim from before the stop goes on."
bool Judge::has_noticed(const WatchedMutex& mutex) const {
  const Process& process = *mutex.process;
  return mutex.table->only &&
         process.answered_sent > process.host->paused_until &&
         World::the().now() > process.answered + scheduling();
}

// Options::ttl: "With a shorter ttl, such a pause can let two hosts hold the
// lock for up to 1.25 s - ttl / 8 ... If clocks are also off by 1 %, add 1 % of
// the ttl; the total is never more than 1.25 s."
nanoseconds Judge::allowed_overlap(const WatchedMutex& owner) const {
  // Its claim counts from the request, which may have been sent before.
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

// Nobody can have waited the lease out before: by a clock that is 0.5 % fast,
// as those of a life with pauses are at the most, and with the 1 % that waiters
// add.
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
          text_of(mutex) + ": by " + ms_text(beyond));
  }
}

void Judge::check_new_claim(const WatchedMutex& mutex, BootTime end) {
  const Version& version = lock_of(mutex.lock).versions.back();
  if (version.by != mutex.process || !version.held || mutex.forced) return;
  // By AnyOf it may have been taken and renewed before it is watched.
  if (mutex.asked_for != kNever) return;
  const nanoseconds missing =
      version.sent.boot + usable(mutex.ttl) - end - scheduling();
  if (missing > nanoseconds::zero()) {
    wrong("a lease is claimed for less than there is",
          text_of(mutex) + ": " + ms_text(missing));
  }
}

// Whether rows say when a lease ends, by DynamoDB's clock.
bool Judge::tells_end() const {
  return plan_.front_ends.date && plan_.layout != Layout::dynamolock &&
         plan_.layout != Layout::awslabs;
}

void Judge::check_stored_end(const Lock& lock, const Version& version) {
  // "... unless answers take seconds."  Others go by their calendars.
  const bool is_sure = plan_.weather.late <= 0 && plan_.climate.stalls <= 0 &&
                       (version.names_lease || !others_);
  if (!tells_end() || !version.held || !is_sure) return;
  const nanoseconds due = kEpoch + version.at + version.lease + kCalendarMargin;
  if (version.end > due + kStoredEndLate) {
    wrong("a stored end is too late", lock.name + " of " + version.by->name +
                                          ": by " + ms_text(version.end - due));
  }
}

// What a guarded write asks for.  Another acquisition has another proof.
void Judge::check_token(const Lock& lock, const WatchedMutex& mutex) {
  const Version& version = lock.versions.back();
  if (mutex.token == 0 || mutex.forced || !version.held) return;
  if (version.proof == mutex.proof && version.token != mutex.token) {
    wrong("the row's token changes while the lock is held",
          text_of(mutex) + ": from " + std::to_string(mutex.token) + " to " +
              std::to_string(version.token));
  }
}

}  // namespace world
