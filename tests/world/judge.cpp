// The life as a whole: what the judge watches, when it looks, and who owns
// which lock.
#include "tests/world/judge.hpp"

#include <algorithm>
#include <iterator>

#include "tests/support/layouts.hpp"

namespace world {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Layout;

namespace {

constexpr nanoseconds kAgreement = milliseconds(250);

constexpr nanoseconds kSignaturesLast = std::chrono::minutes(4);

constexpr std::int64_t kBytesLeftBehind = 2 * 1024;
// The list of what exit() stops is made anew, and the old one forgotten,
// whenever another program of this process comes between two tables.
constexpr std::int64_t kBytesOfATable = 150;

// "The last destructor waits for that, for two seconds at most."
constexpr nanoseconds kDestructorsWait = seconds(2);

// When an allocation has failed, the library tries again a little later.
constexpr nanoseconds kWithoutMemory = seconds(1);

bool has_weather(const Weather& weather) {
  return std::any_of(
      std::begin(kWeatherKinds), std::end(kWeatherKinds),
      [&](const WeatherKind& kind) { return weather.*kind.chance > 0; });
}

// How likely a request is to fail at once in mild weather.  A lease leaves time
// for so many attempts that all of them will never fail.
constexpr double kMostMild = 0.052;

bool is_mild(const Weather& weather) {
  Weather others = weather;
  others.broken = others.truncated = others.failed = others.rejected_keys = 0;
  return !has_weather(others) && weather.broken + weather.truncated +
                                         weather.failed +
                                         weather.rejected_keys <=
                                     kMostMild;
}

bool do_agree(const std::vector<nanoseconds>& ahead) {
  if (ahead.empty()) return true;
  const auto [least, most] = std::minmax_element(ahead.begin(), ahead.end());
  return *most - *least <= kAgreement;
}

bool is_harmless(const FaultPlan& fault) {
  switch (fault.kind) {
    case FaultPlan::Kind::kill:
    case FaultPlan::Kind::restart:
    case FaultPlan::Kind::set_wall:
    case FaultPlan::Kind::clean_up:
    case FaultPlan::Kind::storm:  // Ten times nothing.
      return true;
    default:
      return false;
  }
}

}  // namespace

void take_out(std::vector<WatchedMutex*>& list, const WatchedMutex& mutex) {
  list.erase(std::remove(list.begin(), list.end(), &mutex), list.end());
}

// --- The life ----------------------------------------------------------------

Judge::Judge(const Plan& plan) : plan_(plan) {
  for (int i = 0; i < plan.locks; i++) {
    lock_of("lock-" + std::to_string(i)).versions.back().exists = plan.jobs;
  }
  expect(plan);
}

// Notes what goes wrong in this life, which excuses what follows from it.
void Judge::expect(const Plan& plan) {
  quiet_ = peaceful_ = !has_weather(plan.weather);
  mild_ = is_mild(plan.weather) && plan.faults.empty();
  Weather other = plan.weather;
  other.conflict = 0;
  contention_ = plan.weather.conflict > 0 && !has_weather(other);
  for (const FaultPlan& fault : plan.faults) {
    contention_ = contention_ && is_harmless(fault);
    quiet_ = quiet_ && is_harmless(fault);
    peaceful_ = peaceful_ && (is_harmless(fault) ||
                              fault.kind == FaultPlan::Kind::no_memory);
    memory_fails_ |= fault.kind == FaultPlan::Kind::no_memory;
    pauses_ |= fault.kind == FaultPlan::Kind::pause;
    wrong_calendars_ |= fault.kind == FaultPlan::Kind::set_wall;
  }
  for (const HostPlan& host : plan.hosts) {
    wrong_calendars_ |= host.wall_offset > kSignaturesLast ||
                        host.wall_offset < -kSignaturesLast;
  }
  for (const ProgramPlan& program : plan.programs) others_ |= program.rival;
  servers_agree_ = do_agree(plan.front_ends.ahead);
  // Failures from before may hold back retries for a while.
  calm_from_ = quiet_ || contention_ ? Time{} : plan.calm + seconds(60);
}

bool Judge::prompt() const {
  return plan_.climate.stalls <= 0 && !memory_fails_;
}

// How much longer than its bound a call may take by the boot clock: threads
// have to be scheduled, and may wait for one that stalls.
nanoseconds Judge::scheduling() const {
  nanoseconds time = kScheduling;
  if (plan_.climate.stalls > 0) time += plan_.climate.longest_stall;
  if (memory_fails_) time += kWithoutMemory;
  return time;
}

void Judge::wrong(const std::string& kind, const std::string& text) {
  World& world = World::the();
  if (!kinds_.insert(kind).second) return;
  const std::string line =
      kind + ": at " + time_text(world.now()) + ": " + text;
  wrongs_.push_back(line);
  if (world.tells()) world.tell("WRONG: " + line);
}

Judge::Lock& Judge::lock_of(const std::string& name) {
  for (Lock& lock : locks_) {
    if (lock.name == name) return lock;
  }
  locks_.push_back({});
  locks_.back().name = name;
  locks_.back().versions.push_back({});
  return locks_.back();
}

WatchedTable& Judge::watch_table() {
  tables_.push_back({});
  tables_.back().process = &World::the().process();
  return tables_.back();
}

WatchedMutex& Judge::watch(const ddbmutex::DdbMutex& mutex,
                           const ddbmutex::Options& options,
                           WatchedTable& table, Time asked_for) {
  WatchedMutex watched;
  watched.asked_for = asked_for;
  watched.process = &World::the().process();
  watched.table = &table;
  watched.mutex = &mutex;
  watched.lock = mutex.name();
  watched.ttl = options.ttl;
  watched.request_timeout = options.request_timeout.value_or(
      std::min(milliseconds(2000), options.ttl / 4));
  watched.patience = options.patience;
  watched.longest_poll = options.longest_poll;
  watched.renew_after = options.renew_after.value_or(options.ttl / 2);
  watched.hears_losses = options.on_lost != nullptr;
  watched.hears_dangers = options.on_danger != nullptr;
  watched.is_renewed = options.auto_renew && !options.max_hold;
  if (!watched.is_renewed) {
    watched.longest_hold =
        options.ttl + options.max_hold.value_or(milliseconds(0));
  }
  watched.keep_row = options.keep_row.value_or(false);
  watched.safe_time = options.safe_time.value_or(options.ttl / 4);
  mutexes_.push_back(watched);
  watched_.push_back(&mutexes_.back());
  Lock& lock = lock_of(watched.lock);
  lock.longest_ttl = std::max<nanoseconds>(lock.longest_ttl, options.ttl);
  return mutexes_.back();
}

void Judge::forget(WatchedMutex& mutex) {
  mutex.gone = true;
  mutex.forgotten = World::the().now();
  mutex.locked = 0;
  take_out(lock_of(mutex.lock).owners, mutex);
  take_out(losses_, mutex);
  take_out(watched_, mutex);
}

void Judge::forked(Process& parent, Process& child) {
  const auto was = watched_;
  for (WatchedMutex* mutex : was) {
    if (mutex->process != &parent) continue;
    if (mutex->owned) changed(*mutex, false);
    mutex->process = &child;
    mutex->locked = mutex->calls = mutex->callbacks = 0;
    mutex->lets_go = true;
    forget_loss(*mutex);
  }
  for (WatchedTable& table : tables_) {
    if (table.process != &parent) continue;
    table.process = &child;
    table.callbacks = 0;
    table.wrong_key = false;
  }
  calls_.remove_if(
      [&](const Call& call) { return call.since.process == &parent; });
}

void Judge::closing(WatchedTable& table) {
  table.closed = true;
  for (WatchedMutex* mutex : watched_) {
    if (mutex->table != &table) continue;
    mutex->not_unlocked = !mutex->lets_go && mutex->owned_since != kNever;
    mutex->lets_go = true;
    mutex->was_closed = mutex->owned;
    mutex->cancel_began = World::the().now();
  }
}

void Judge::program_over(Process& process, std::int64_t bytes_before,
                         std::uint64_t requests_then) {
  // A callback may still destroy a mutex, or a thread may stall for longer than
  // destructors wait.
  const bool busy =
      plan_.climate.longest_stall >= kDestructorsWait ||
      std::any_of(calls_.begin(), calls_.end(), [&](const Call& call) {
        return call.since.process == &process;
      });
  if (process.library_threads > 0 && !busy) {
    wrong("a thread of the library is left",
          process.name + ": " + std::to_string(process.library_threads));
  }
  if (process.requests != requests_then) {
    wrong("a request is sent when all is destroyed", process.name);
  }
  const std::int64_t left = process.bytes - bytes_before;
  const auto tables = std::count_if(
      tables_.begin(), tables_.end(),
      [&](const WatchedTable& table) { return table.process == &process; });
  if (left > kBytesLeftBehind + tables * kBytesOfATable && !busy) {
    wrong("memory is left behind", process.name + ": " + std::to_string(left) +
                                       " bytes after " +
                                       std::to_string(tables) + " tables");
  }
}

void Judge::end_of_life() {
  look();
  look_at_waits();
  check_rows();
  if (plan_.loops) check_shares();
}

// --- Who owns it -------------------------------------------------------------

void Judge::look() {
  const Outside outside;
  for (std::size_t i = 0; i < watched_.size(); i++) {
    WatchedMutex& mutex = *watched_[i];
    if (mutex.process->alive &&
        (mutex.owned || mutex.calls > 0 || mutex.locked > 0)) {
      look_at(mutex);
    } else if (mutex.owned && !mutex.process->alive) {
      forget(mutex);
      i--;
    }
  }
  for (Lock& lock : locks_) {
    if (lock.owners.size() + lock.rivals.size() > 0) look_at_owners(lock);
  }
  if (!losses_.empty()) look_at_losses();
  const Time now = World::the().now();
  if (now >= next_look_at_waits_) {
    next_look_at_waits_ = now + seconds(1);
    look_at_waits();
  }
}

void Judge::look_at(WatchedMutex& mutex) {
  const As as(*mutex.process);
  const nanoseconds left = mutex.mutex->remaining();
  const bool owned = left > nanoseconds::zero();
  if (owned != mutex.owned) changed(mutex, owned);
  check_idle(mutex);
  if (!owned) return;
  const Time now = World::the().now();
  const BootTime claim_end = mutex.process->host->boot(now) + left;
  if (claim_end != mutex.claim_end) check_claim(mutex, claim_end);
  check_claim_after_pause(mutex, claim_end);
  look_at_danger(mutex, left);
  mutex.claim_end = claim_end;
  check_longest_hold(mutex);
  if (mutex.forced) check_forced(mutex);
}

// The proof of the held version that its process has written last.  The row may
// have been freed by force and taken by another before the process heard that
// it has the lock.
std::string Judge::proof_of(const WatchedMutex& mutex) {
  const auto& versions = lock_of(mutex.lock).versions;
  for (auto version = versions.rbegin(); version != versions.rend();
       ++version) {
    if (version->by == mutex.process && version->held) return version->proof;
  }
  return versions.back().proof;
}

void Judge::changed(WatchedMutex& mutex, bool owned) {
  Lock& lock = lock_of(mutex.lock);
  mutex.owned = owned;
  if (owned) {
    lock.owners.push_back(&mutex);
    return begins_to_own(lock, mutex);
  }
  take_out(lock.owners, mutex);
  if (mutex.lets_go || mutex.table->closed || !mutex.hears_losses) return;
  if (!mutex.lost) losses_.push_back(&mutex);
  mutex.lost = true;
  mutex.lost_since = Stopwatch::start(*mutex.process);
}

void Judge::begins_to_own(const Lock& lock, WatchedMutex& mutex) {
  if (plan_.has_wrong_key()) {
    wrong("a lock is owned in a table with another key", whose(mutex));
  }
  if (prompt() && mutex.locked > 0 && mutex.owned_since != kNever) {
    wrong("a lock that was lost is owned again", whose(mutex));
  }
  note_earlier(mutex);
  mutex.owned_since = World::the().now();
  mutex.owned_clock = Stopwatch::start(*mutex.process);
  mutex.renewed_by_hand = mutex.stopped_renewing = mutex.data_unsure = false;
  mutex.ends_by = BootTime::max();
  mutex.proof = proof_of(mutex);
  mutex.token = 0;
  mutex.claim_end = BootTime::min();
  mutex.paused = mutex.process->host->paused;
  mutex.lets_go = false;
  mutex.mixed = mutex.owned_since < mutex.unfinished_until;
  mutex.forced = mutex.unsure = began_to_lock(mutex) <= lock.forced;
  mutex.told = 0;
}

void Judge::look_at_owners(Lock& lock) {
  const Time now = World::the().now();
  auto& rivals = lock.rivals;
  const auto is_over = [&](const Rival& rival) {
    return !rival.process->alive ||
           rival.process->host->boot(now) >= rival.until;
  };
  rivals.erase(std::remove_if(rivals.begin(), rivals.end(), is_over),
               rivals.end());
  if (lock.owners.empty() || lock.owners.size() + rivals.size() < 2) {
    lock.overlap_since = kNever;
    return;
  }
  if (lock.overlap_since == kNever) lock.overlap_since = now;
  nanoseconds allowed{};
  for (const WatchedMutex* owner : lock.owners) {
    if (owner->forced) return;
    allowed = std::max(allowed, allowed_overlap(*owner));
  }
  const nanoseconds lasted = now - lock.overlap_since;
  if (allowed > nanoseconds::zero() && lasted <= allowed) return;
  const std::string older = whose(*lock.owners.front()) + " and ";
  if (lock.owners.size() == 1) {
    wrong("two holders, one of another library",
          older + rivals.front().process->name);
  } else {
    wrong("two holders", older + whose(*lock.owners.back()) + " since " +
                             time_text(lock.overlap_since));
  }
}

// When the oldest call of the mutex began that is to get the lock.
Time Judge::began_to_lock(const WatchedMutex& mutex) const {
  for (const Call& call : calls_) {
    if (call.mutex == &mutex && call.gets_lock) return call.since.began;
  }
  return mutex.asked_for;
}

// The program may have lost the lock since it asked, and another may have it
// now: nobody promises more.  look() sees whether what is promised is kept.
void Judge::act() { look(); }

void Judge::acquired(WatchedMutex& mutex, std::uint64_t token, int thread) {
  acquisitions_++;
  look();
  check_shared(mutex, thread);
  mutex.locked++;
  mutex.holder = thread;
  look();
  check_owned(mutex);
  const bool kept = mutex.keep_row && plan_.layout == Layout::ddblock;
  if (!kept || !mutex.owned) return;
  if (token == 0) {
    wrong("no token", "acquired by " + whose(mutex));
    return;
  }
  mutex.token = token;
  Lock& lock = lock_of(mutex.lock);
  check_token(lock, mutex);
  check_growth(lock, mutex);
}

// Options::keep_row: "fencing_token() grows with every acquisition".
void Judge::check_growth(Lock& lock, const WatchedMutex& mutex) {
  if (World::the().now() - lock.forced < 2 * lock.longest_ttl) return;
  // It may have got the lock while its machine stood still, and learn of that
  // when another has had it meanwhile.
  if (allowed_overlap(mutex) > nanoseconds::zero()) return;
  const auto [place, is_new] =
      lock.tokens.emplace(mutex.owned_since, mutex.token);
  if (!is_new) return;  // Locked again by the same thread.
  const auto next = std::next(place);
  const bool falls =
      place != lock.tokens.begin() && std::prev(place)->second >= mutex.token;
  if (falls || (next != lock.tokens.end() && next->second <= mutex.token)) {
    const auto other = falls ? std::prev(place) : next;
    wrong("tokens do not grow", whose(mutex) + " got " +
                                    std::to_string(mutex.token) + ", not " +
                                    std::to_string(other->second));
  }
}

// --- Rivals ------------------------------------------------------------------

void Judge::rival_acquired(const std::string& name, Process& process,
                           BootTime until, Time sent) {
  Lock& lock = lock_of(name);
  if (lock.forced >= sent) return;
  // "Nothing protects their programs from each other": the last writer has it.
  rivals_.insert(&process);
  const Version& last = lock.versions.back();
  if (last.by != &process && rivals_.count(last.by) > 0) return;
  // It has renewed a row that was marked as free by force, and has not noticed;
  // or a late copy of an older request of its own has replaced the row.
  if (last.by == &process && (!last.held || last.sent.at < sent)) return;
  lock.rivals = {{&process, until}};
  look();
}

void Judge::rival_released(const std::string& name, Process& process) {
  rival_gone(lock_of(name), process);
}

// From now on others may take the lock although its lease goes on: it has
// released the lock, or a late copy of an older request of its own has replaced
// the row.  Its library does not guard against that.
void Judge::rival_gone(Lock& lock, const Process& process) {
  auto& rivals = lock.rivals;
  rivals.erase(
      std::remove_if(rivals.begin(), rivals.end(),
                     [&](const auto& one) { return one.process == &process; }),
      rivals.end());
}

}  // namespace world
