// What the judge says about callbacks: losses and dangers are told once, in
// time, and only if there are any.
#include <algorithm>

#include "tests/support/layouts.hpp"
#include "tests/world/judge.hpp"

namespace world {

using ddbmutex::Loss;
using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Layout;

namespace {

// How late a callback may be if nothing keeps its thread from running.
// Options::on_lost: "called once for each lock that is lost: with `expired`
// when remaining() reaches 0".
constexpr nanoseconds kToldWithin = milliseconds(1);

// Until when no callback of the mutex could run.
Time held_up_until(const WatchedMutex& mutex) {
  return std::max({mutex.table->callback_ended, mutex.process->stopped_until,
                   mutex.process->host->frozen_until});
}

}  // namespace

void Judge::callback_begins(WatchedMutex& mutex) {
  WatchedTable& table = *mutex.table;
  table.callback_began = World::the().now();
  table.callback_thread = pthread_self();
  mutex.callbacks++;
  if (table.callbacks++ > 0) {
    wrong("two callbacks at once", table.process->name);
  }
  if (mutex.destroyed) wrong("a callback of a destroyed mutex", whose(mutex));
}

void Judge::callback_ends(WatchedMutex& mutex) {
  WatchedTable& table = *mutex.table;
  mutex.callbacks--;
  table.callbacks--;
  table.callback_ended = World::the().now();
  table.in_callbacks += table.callback_ended - table.callback_began;
}

bool Judge::is_in_callback(const WatchedTable& table) {
  return table.callbacks > 0 &&
         pthread_equal(table.callback_thread, pthread_self()) != 0;
}

// ~DdbMutex(): "Waits for callbacks of this mutex that run or are due, unless a
// callback of the same Table calls it; none is called afterwards."
void Judge::destroyed(WatchedMutex& mutex) {
  mutex.destroyed = true;
  if (is_in_callback(*mutex.table) || !mutex.process->alive) return;
  if (mutex.callbacks > 0) {
    wrong("a destructor does not wait for a callback", whose(mutex));
  }
  if (prompt() && mutex.lost && mutex.to_be_told) {
    wrong("a destructor does not wait for a loss to be told", whose(mutex));
  }
}

// --- Losses ------------------------------------------------------------------

// Whether the loss need not be reported: "A loss during or after unlock() is
// reported only if it is found out before the end of the lease."
bool Judge::may_be_unheard(const WatchedMutex& mutex) const {
  return (mutex.lets_go && !mutex.to_be_told) || mutex.table->closed ||
         !mutex.process->alive;
}

// Whether the loss that is reported may be one of an earlier lease: one that
// was found out after unlock(), or one whose report another callback held up.
bool Judge::may_be_old_news(const WatchedMutex& mutex) const {
  const Time now = World::the().now();
  return mutex.lets_go || now < mutex.unfinished_until ||
         now < mutex.unlock_ended + kToldWithin + scheduling() ||
         mutex.table->callback_ended > mutex.owned_since;
}

void Judge::lost(WatchedMutex& mutex, Loss why) {
  look();
  if (mutex.gone && World::the().now() > mutex.forgotten) {
    mutex.lost = false;
    return;
  }
  mutex.told++;
  if (!may_be_old_news(mutex)) check_loss(mutex, why);
  const bool of_this = !mutex.owned && !mutex.mixed && !mutex.unsure &&
                       mutex.table->callback_ended <= mutex.owned_since;
  const bool is_taken =
      !mutex.owned &&
      (why == Loss::expired || when_taken_away(mutex, mutex.proof) != kNever);
  if (!is_taken && !is_of_an_earlier(mutex) && of_this && !copies_deceive()) {
    wrong("a loss is told of a lock that nobody took",
          whose(mutex) + ": " + name_of(why));
  }
  forget_loss(mutex);
}

// Called when a new lease begins, before anything of it is noted.
void Judge::note_earlier(WatchedMutex& mutex) {
  auto& earlier = mutex.earlier;
  const Time now = World::the().now();
  const bool is_unlocked = mutex.unlock_ended >= mutex.unlocked;
  if (mutex.owned_since != kNever && mutex.told == 0) {
    earlier.push_back(
        {mutex.proof, mutex.unsure, is_unlocked ? mutex.unlock_ended : now});
  }
  while (!earlier.empty() && is_told_of(earlier.front())) earlier.pop_front();
}

// Whether the loss of an unlocked lease must have been told by now.
bool Judge::is_told_of(const WatchedMutex::Earlier& lease) const {
  return World::the().now() >= lease.unlocked + kToldWithin + scheduling();
}

// Whether the loss is that of an earlier lease, found out by its unlock().
bool Judge::is_of_an_earlier(WatchedMutex& mutex) {
  auto& earlier = mutex.earlier;
  const auto lost =
      std::find_if(earlier.begin(), earlier.end(), [&](const auto& lease) {
        return !is_told_of(lease) &&
               (lease.unsure || when_taken_away(mutex, lease.proof) != kNever);
      });
  if (lost == earlier.end()) return false;
  earlier.erase(lost);  // It is told once, and does not count for this lease.
  mutex.told--;
  return true;
}

void Judge::check_loss(const WatchedMutex& mutex, Loss why) {
  if (mutex.told > 1) wrong("a loss is told twice", whose(mutex));
  if (mutex.owned) {
    wrong("a loss is told although the lock is owned", whose(mutex));
  }
  check_cause(mutex, why);
  if (mutex.lost) {
    check_loss_in_time(mutex, kToldWithin, "a loss is told late");
  }
  if (!is_loss_expected(mutex)) {
    wrong("a lock is lost for no reason", whose(mutex) + ": " + name_of(why));
  }
}

void Judge::forget_loss(WatchedMutex& mutex) {
  mutex.lost = false;
  take_out(losses_, mutex);
}

void Judge::check_loss_in_time(const WatchedMutex& mutex, nanoseconds within,
                               const std::string& kind) {
  const Time since = std::max(mutex.lost_since.began, held_up_until(mutex));
  const nanoseconds allowed = within + scheduling() + mutex.lost_since.kept();
  if (World::the().now() - since > allowed) {
    wrong(kind,
          whose(mutex) + " lost it at " + time_text(mutex.lost_since.began));
  }
}

void Judge::look_at_losses() {
  const auto all = losses_;
  for (WatchedMutex* mutex : all) {
    if (may_be_unheard(*mutex)) {
      forget_loss(*mutex);
    } else if (mutex->table->callbacks == 0) {
      // One that is only late is another wrong, see check_loss().
      check_loss_in_time(*mutex, seconds(10), "a loss is never told");
    }
  }
}

// --- Why it was lost ---------------------------------------------------------

void Judge::check_cause(const WatchedMutex& mutex, Loss why) {
  if (why == Loss::expired) return check_expired(mutex);
  if (mutex.owned_since == kNever) return;
  const Lock& lock = lock_of(mutex.lock);
  // "Another holder has it, or a kept row was freed by force."
  const bool is_marked = plan_.layout != Layout::ddblock || plan_.keep_row;
  // A holder that finds the row changed, but does not learn how, reports
  // `taken`.
  const bool may_be_unclear = !quiet_ || !surely_answered(mutex);
  bool taken = mutex.forced && (is_marked || may_be_unclear || mutex.unsure);
  bool deleted = false;
  for (std::size_t i = 0; i < lock.versions.size(); i++) {
    const Version& version = lock.versions[i];
    const bool is_last = i + 1 == lock.versions.size();
    if (!is_last && lock.versions[i + 1].at < mutex.owned_since) continue;
    // Compares proofs, since a process may have several mutexes of this name.
    taken |= !version.proof.empty() && version.proof != mutex.proof;
    // If the row was freed by force, an earlier take of its own may arrive.
    taken |= mutex.forced && version.held && version.at > lock.forced;
    deleted |= !version.held;
  }
  if (copies_deceive()) return;
  // What is older is forgotten.
  if (lock.versions.size() >= kVersionsKept) return;
  if ((why == Loss::taken && !taken) || (why == Loss::deleted && !deleted)) {
    wrong("a loss is told for a wrong cause",
          whose(mutex) + ": " + name_of(why));
  }
}

void Judge::check_expired(const WatchedMutex& mutex) {
  const BootTime boot = mutex.process->host->boot(World::the().now());
  // A claim ends early if a pause of the machine is noticed.
  if (!pauses_ && servers_agree_ && mutex.lost && boot < mutex.claim_end) {
    wrong("a loss is told for a wrong cause",
          whose(mutex) + ": expired, but its claim goes on");
  }
}

// Whether a copy of a refused request may be carried out later: no client can
// know that.
bool Judge::copies_deceive() const {
  const Weather& weather = plan_.weather;
  return weather.doubled > 0 &&
         weather.throttled + weather.rejected_keys + weather.conflict > 0;
}

// When somebody else has changed the row while it bore the proof of this
// acquisition, or of an earlier one; kNever: nobody has.
Time Judge::when_taken_away(const WatchedMutex& mutex,
                            const std::string& proof) const {
  const auto lock =
      std::find_if(locks_.begin(), locks_.end(),
                   [&](const Lock& one) { return one.name == mutex.lock; });
  const auto& versions = lock->versions;
  // What is older is forgotten.
  if (versions.size() >= kVersionsKept) return Time{};
  for (std::size_t i = 1; i < versions.size(); i++) {
    const Version& before = versions[i - 1];
    const Version& after = versions[i];
    if (!before.held || before.proof != proof) continue;
    const bool renewed = after.held && after.proof == proof;
    // Another mutex of its process takes the lock as any other holder does.
    const bool by_itself = !after.held && after.by == mutex.process &&
                           lock->forcers.count(after.by) == 0;
    if (!renewed && !by_itself) return after.at;
  }
  return kNever;
}

bool Judge::is_loss_expected(const WatchedMutex& mutex) const {
  // A renewal that takes as long as one may is still in time.
  const nanoseconds left = mutex.ttl * 7 / 8 - mutex.renew_after;
  const bool in_time = left > 2 * kSlowestLeg * mutex.process->host->latency &&
                       surely_answered(mutex);
  const bool answered = quiet_ || (mild_ && mutex.ttl >= seconds(1));
  return !answered || plan_.climate.stalls > 0 || memory_fails_ ||
         !servers_agree_ || !in_time || !mutex.is_renewed ||
         mutex.stopped_renewing || mutex.forced || mutex.lets_go ||
         !mutex.table->has_good_keys();
}

// --- Dangers -----------------------------------------------------------------

// Options::on_danger: "once for each time that the lease comes into danger
// without having been renewed."  `left`: of the claim.
void Judge::look_at_danger(WatchedMutex& mutex, nanoseconds left) {
  const Time now = World::the().now();
  const BootTime boot = mutex.process->host->boot(now);
  if (boot + left > mutex.claim_end) mutex.danger_told = false;  // Renewed.
  if (boot + left != mutex.claim_end) mutex.danger_since = BootTime::max();
  if (mutex.mutex->in_danger() != (left <= mutex.safe_time)) {
    wrong("in_danger() is wrong", whose(mutex));
  }
  if (left > mutex.safe_time) return;
  if (mutex.danger_since == BootTime::max()) {
    mutex.danger_since =
        mutex.claim_end == boot + left ? boot + left - mutex.safe_time : boot;
  }
  if (!prompt() || !mutex.hears_dangers || mutex.danger_told ||
      mutex.table->callbacks > 0 || mutex.lets_go) {
    return;
  }
  const Time since =
      std::max(now - (boot - mutex.danger_since), held_up_until(mutex));
  if (now - since > kToldWithin + scheduling()) {
    wrong("a danger is not told", whose(mutex));
  }
}

void Judge::in_danger(WatchedMutex& mutex) {
  look();
  if (!mutex.owned || mutex.lets_go) return;
  if (mutex.danger_told) wrong("a danger is told twice", whose(mutex));
  mutex.danger_told = true;
  if (prompt() && mutex.danger_since == BootTime::max()) {
    wrong("a danger is told where there is none", whose(mutex));
  }
}

}  // namespace world
