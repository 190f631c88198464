// Who owns what: overlaps, losses, tokens, rows and guarded writes.  What the
// judge says about single calls is in judge_calls.cpp.
#include "tests/world/judge.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tests/world/odd_rows.hpp"

namespace world {

using ddbmutex::Layout;
using ddbmutex::Loss;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// "called once for each lock that is lost: with `expired` when remaining()
// reaches 0": so late, if nothing keeps the thread from running.
constexpr nanoseconds kToldWithin = milliseconds(1);

constexpr nanoseconds kAgreement = milliseconds(250);
constexpr nanoseconds kSignaturesLast = std::chrono::minutes(4);

constexpr std::size_t kVersionsKept = 500;
constexpr std::int64_t kBytesLeftBehind = 16 * 1024;

bool has_weather(const Weather& weather) {
  return weather.unreachable + weather.lost + weather.answer_lost +
             weather.broken + weather.truncated + weather.late +
             weather.answer_late + weather.doubled + weather.failed +
             weather.throttled + weather.conflict + weather.rejected_keys >
         0;
}

// Now and then a request fails at once.  That so many in a row do as there is
// time for in a lease will not happen.
constexpr double kMostMild = 0.04;
bool is_mild(const Weather& weather) {
  Weather others = weather;
  others.broken = others.truncated = others.failed = 0;
  return !has_weather(others) &&
         weather.broken + weather.truncated + weather.failed <= kMostMild;
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

// What stands behind `before` in the text, up to a quotation mark.
std::string value_after(std::string_view text, const std::string& before) {
  const auto at = text.find(before);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + before.size());
  return std::string(rest.substr(0, rest.find('"')));
}

// 0 if there is none, or one that no program of a life writes.
std::int64_t number_in(const std::string& item, const std::string& name) {
  const std::string digits = value_after(item, '"' + name + R"(":{"N":")");
  const bool is_whole = !digits.empty() && digits.size() < 20 &&
                        digits.find_first_not_of("0123456789") == digits.npos;
  return is_whole ? std::stoll(digits) : 0;
}

// The attributes that say who holds the lock, and until when.
struct Names {
  const char* proof;
  const char* end;
};
Names names_of(Layout layout) {
  switch (layout) {
    case Layout::lockclient:
      return {"identifier", "expiry"};
    case Layout::lease:
      return {"ProcessID", "LeaseUntil"};
    case Layout::dynamolock:
    case Layout::awslabs:
      return {"recordVersionNumber", "isReleased"};
    default:
      return {"uuid", "expires"};
  }
}

std::string proof_in(const std::string& item, Layout layout) {
  const std::string name = names_of(layout).proof;
  const std::string proof = value_after(item, '"' + name + R"(":{"S":")");
  return proof.substr(0, proof.find(':'));
}

bool is_free(const std::string& item, Layout layout) {
  if (proof_in(item, layout).empty()) return true;
  const std::string end = '"' + std::string(names_of(layout).end) + '"';
  if (layout == Layout::dynamolock || layout == Layout::awslabs) {
    return item.find(end) != std::string::npos;
  }
  return item.find(end + R"(:{"N":"0"})") != std::string::npos;
}

std::string time_text(Time time) {
  const auto ms = std::chrono::duration_cast<milliseconds>(time).count();
  const std::string rest = std::to_string(1000 + ms % 1000).substr(1);
  return std::to_string(ms / 1000) + '.' + rest + " s";
}

std::string whose(const WatchedMutex& mutex) {
  return mutex.process->name + " on host " +
         std::to_string(mutex.process->host->number) + " (" + mutex.lock +
         ", ttl " + std::to_string(mutex.ttl.count()) + " ms)";
}

}  // namespace

// --- Clocks ------------------------------------------------------------------

Stopwatch Stopwatch::start(const Process& process) {
  const Time now = World::the().now();
  const Host& host = *process.host;
  return {&process,        now,         host.boot(now),
          process.stalled, host.frozen, host.suspended};
}

nanoseconds Stopwatch::kept() const {
  return (process->stalled - stalled) + (process->host->frozen - frozen);
}

nanoseconds Stopwatch::run() const {
  // By a clock that may be 1 % fast.
  return process->host->boot(World::the().now()) - boot - kept() - kept() / 50;
}

bool Stopwatch::was_suspended() const {
  return process->host->frozen != frozen;
}

// --- The life ----------------------------------------------------------------

Judge::Judge(const Plan& plan) : plan_(plan) {
  for (int i = 0; i < plan.locks; i++) {
    locks_.push_back({});
    locks_.back().name = "lock-" + std::to_string(i);
    locks_.back().versions.push_back({});
    locks_.back().versions.back().exists = plan.jobs;
  }
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
  const auto& ahead = plan.front_ends.ahead;
  if (!ahead.empty()) {
    const auto [least, most] = std::minmax_element(ahead.begin(), ahead.end());
    servers_agree_ = *most - *least <= kAgreement;
  }
  // What had failed before may hold back retries for a while.
  calm_from_ = quiet_ || contention_ ? Time{} : plan.calm + seconds(60);
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
  watched.is_renewed =
      options.auto_renew && !options.max_hold && !options.alive;
  watched.keep_row = options.keep_row.value_or(false);
  watched.safe_time = options.safe_time.value_or(options.ttl / 4);
  if (options.auto_renew && !options.max_hold) {
    watched.handover_limit = options.handover_limit;
    if (options.keep_row.value_or(false) || options.keep_data.value_or(false)) {
      watched.handover_limit = 0;
    }
  } else {
    watched.longest_hold = options.ttl;
    if (options.max_hold) watched.longest_hold += *options.max_hold;
  }
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
  auto& owners = lock_of(mutex.lock).owners;
  owners.erase(std::remove(owners.begin(), owners.end(), &mutex), owners.end());
  losses_.erase(std::remove(losses_.begin(), losses_.end(), &mutex),
                losses_.end());
  watched_.erase(std::remove(watched_.begin(), watched_.end(), &mutex),
                 watched_.end());
}

void Judge::forked(Process& parent, Process& child) {
  const auto was = watched_;
  for (WatchedMutex* mutex : was) {
    if (mutex->process != &parent) continue;
    if (mutex->owned) changed(*mutex, false);
    mutex->process = &child;
    mutex->locked = mutex->calls = mutex->callbacks = 0;
    mutex->lets_go = true;
    mutex->lost = false;
    losses_.erase(std::remove(losses_.begin(), losses_.end(), mutex),
                  losses_.end());
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
  if (claim_end != mutex.claim_end) {
    check_claim(mutex, claim_end);
    check_alive(mutex, claim_end);
  }
  check_claim_after_pause(mutex, claim_end);
  mutex.last_owned = now;
  look_at_danger(mutex, left);
  mutex.claim_end = claim_end;
  check_longest_hold(mutex);
}

// Of the version that its process has written last: the row may have been freed
// by force, and taken by another, before it heard that it has the lock.
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
  if (owned && plan_.has_wrong_key()) {
    wrong("a lock is owned in a table with another key", whose(mutex));
  }
  if (owned) {
    lock.owners.push_back(&mutex);
    mutex.owned_since = World::the().now();
    mutex.owned_clock = Stopwatch::start(*mutex.process);
    mutex.tied = mutex.renewed_by_hand = false;
    mutex.proof = proof_of(mutex);
    mutex.token = 0;
    mutex.claim_end = BootTime::min();
    mutex.paused = mutex.process->host->paused;
    mutex.lets_go = mutex.said_dead = false;
    mutex.mixed = mutex.owned_since < mutex.unfinished_until;
    mutex.forced = mutex.unsure = began_to_lock(mutex) <= lock.forced;
    mutex.told = 0;
    return;
  }
  lock.owners.erase(std::remove(lock.owners.begin(), lock.owners.end(), &mutex),
                    lock.owners.end());
  if (mutex.lets_go || mutex.table->closed || !mutex.hears_losses) return;
  mutex.lost = true;
  mutex.lost_since = Stopwatch::start(*mutex.process);
  if (std::find(losses_.begin(), losses_.end(), &mutex) == losses_.end()) {
    losses_.push_back(&mutex);
  }
}

void Judge::look_at_owners(Lock& lock) {
  const Time now = World::the().now();
  auto& rivals = lock.rivals;
  rivals.erase(std::remove_if(rivals.begin(), rivals.end(),
                              [&](const Rival& rival) {
                                return !rival.process->alive ||
                                       rival.process->host->boot(now) >=
                                           rival.until;
                              }),
               rivals.end());
  if (lock.owners.empty() || lock.owners.size() + rivals.size() < 2) {
    lock.overlap_since = kNever;
    return;
  }
  if (lock.overlap_since == kNever) lock.overlap_since = now;
  const WatchedMutex& older = *lock.owners.front();
  const nanoseconds lasted = now - lock.overlap_since;
  const bool forced = std::any_of(lock.owners.begin(), lock.owners.end(),
                                  [](const auto* one) { return one->forced; });
  nanoseconds allowed{};
  for (const WatchedMutex* owner : lock.owners) {
    allowed = std::max(allowed, allowed_overlap(*owner));
  }
  if (forced || (allowed > nanoseconds::zero() && lasted <= allowed)) return;
  if (lock.owners.size() == 1) {
    wrong("two holders, one of another library",
          lock.name + ": " + whose(older) + " and " +
              rivals.front().process->name);
  } else {
    wrong("two holders", lock.name + ": " + whose(older) + " and " +
                             whose(*lock.owners.back()) + " since " +
                             time_text(lock.overlap_since));
  }
}

// It may have lost the lock since it asked, and another may have it: that is
// what nobody promises.  What is promised, look() sees.
void Judge::act(const WatchedMutex&) {
  acts_++;
  look();
}

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
  Lock& lock = lock_of(mutex.lock);
  mutex.token = token;
  check_token(lock, mutex);
  if (World::the().now() - lock.forced < 2 * lock.longest_ttl) return;
  const auto [place, is_new] = lock.tokens.emplace(mutex.owned_since, token);
  if (!is_new) return;  // Locked again by the same thread.
  const auto next = std::next(place);
  const bool falls =
      place != lock.tokens.begin() && std::prev(place)->second >= token;
  if (falls || (next != lock.tokens.end() && next->second <= token)) {
    wrong("tokens do not grow",
          whose(mutex) + " got " + std::to_string(token) + " behind " +
              (falls ? std::to_string(std::prev(place)->second)
                     : std::to_string(next->second)));
  }
}

void Judge::may_force(const std::string& name) {
  lock_of(name).forcers.insert(&World::the().process());
}

void Judge::is_operator(const std::string& name) {
  may_force(name);
  lock_of(name).operators.insert(&World::the().process());
}

// "The row is deleted only in layout ddblock, and only if it has no token.
// Any other row is marked as free".
void Judge::check_deleted(const Lock& lock, const Version& version) {
  const bool ours = plan_.layout == Layout::ddblock;
  const bool forced = lock.operators.count(version.by) > 0;
  if ((ours && lock.versions.back().token > 0) || (!ours && forced)) {
    wrong("a row is deleted that should stay", lock.name);
  }
}

// Who holds it, or is about to hear that it does, learns of it later.
void Judge::freed_by_force(Lock& lock) {
  lock.forced = World::the().now();
  // "Programs of other libraries do not learn of it at once."
  lock.rivals.clear();
  for (WatchedMutex* mutex : watched_) {
    if (mutex->lock == lock.name && mutex->owned) mutex->forced = true;
  }
}

// When the oldest of its calls began that get the lock and are under way.
Time Judge::began_to_lock(const WatchedMutex& mutex) const {
  for (const Call& call : calls_) {
    if (call.mutex == &mutex && call.gets_lock) return call.since.began;
  }
  return mutex.asked_for;
}

void Judge::closing(WatchedTable& table) {
  table.closed = true;
  for (WatchedMutex* mutex : watched_) {
    if (mutex->table != &table) continue;
    mutex->lets_go = true;
    mutex->was_closed = mutex->owned;
  }
}

// --- Losses ------------------------------------------------------------------

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
  if (mutex.lost && mutex.to_be_told) {
    wrong("a destructor does not wait for a loss to be told", whose(mutex));
  }
}

// "A loss during or after unlock() is reported only if it is found out before
// the end of the lease."
bool Judge::may_be_unheard(const WatchedMutex& mutex) const {
  return (mutex.lets_go && !mutex.to_be_told) || mutex.table->closed ||
         !mutex.process->alive;
}

void Judge::lost(WatchedMutex& mutex, Loss why) {
  look();
  const Time now = World::the().now();
  if (mutex.gone && now > mutex.forgotten) {
    mutex.lost = false;
    return;
  }
  // "A loss during or after unlock() is reported only if it is found out before
  // the end of the lease."  Then another acquisition may have begun.
  // So it is while another callback holds up the news.
  const bool of_before =
      mutex.lets_go || now < mutex.unfinished_until ||
      now < mutex.unlock_ended + kToldWithin + scheduling() ||
      mutex.table->callback_ended > mutex.owned_since;
  if (++mutex.told > 1 && !of_before) {
    wrong("a loss is told twice", whose(mutex));
  }
  if (mutex.owned && !of_before) {
    wrong("a loss is told although the lock is owned", whose(mutex));
  }
  if (!of_before) check_cause(mutex, why);
  const bool of_this = !mutex.owned && !mutex.mixed && !mutex.unsure &&
                       mutex.table->callback_ended <= mutex.owned_since;
  if (of_this && why != Loss::expired && !copies_deceive() &&
      taken_away(mutex) == kNever) {
    wrong("a loss is told of a lock that nobody took",
          whose(mutex) + ": " + name_of(why));
  }
  if (!of_before && mutex.lost) check_loss_in_time(mutex);
  const Time held_up = std::max({mutex.asked, mutex.table->callback_ended,
                                 mutex.process->stopped_until,
                                 mutex.process->host->frozen_until});
  if (mutex.said_dead && !mutex.lets_go && prompt() && why == Loss::expired &&
      now - held_up > mutex.ttl / 4 + scheduling()) {
    wrong("a holder is not asked again whether it is alive", whose(mutex));
  }
  if (!is_loss_expected(mutex)) {
    wrong("a lock is lost for no reason", whose(mutex) + ": " + name_of(why));
  }
  mutex.lost = false;
  losses_.erase(std::remove(losses_.begin(), losses_.end(), &mutex),
                losses_.end());
}

// Options::on_danger: "once for each time that the lease comes into danger
// without having been renewed."  `left`: of the claim.
void Judge::look_at_danger(WatchedMutex& mutex, nanoseconds left) {
  const Time now = World::the().now();
  const Host& host = *mutex.process->host;
  const BootTime boot = host.boot(now);
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
      std::max({now - (boot - mutex.danger_since), mutex.table->callback_ended,
                mutex.process->stopped_until, host.frozen_until});
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

// Options::alive: "the renewal is sent only if it returns true.  If it does
// not, it is asked again until the lease is over."
void Judge::asked(WatchedMutex& mutex, bool alive) {
  mutex.said_dead = !alive;
  mutex.asked = World::the().now();
}

void Judge::check_alive(WatchedMutex& mutex, BootTime claim_end) {
  if (mutex.said_dead && claim_end > mutex.claim_end) {
    wrong("a lease is renewed although its holder is not alive", whose(mutex));
  }
}

void Judge::check_loss_in_time(WatchedMutex& mutex) {
  const Time now = World::the().now();
  // Since when nothing stands in the way.
  const Time since = std::max(
      {mutex.lost_since.began, mutex.table->callback_ended,
       mutex.process->stopped_until, mutex.process->host->frozen_until});
  const nanoseconds allowed =
      kToldWithin + scheduling() + mutex.lost_since.kept();
  if (now - since > allowed) {
    wrong("a loss is told late",
          whose(mutex) + " lost it at " + time_text(mutex.lost_since.began));
  }
}

void Judge::look_at_losses() {
  const Time now = World::the().now();
  const auto all = losses_;
  for (WatchedMutex* mutex : all) {
    if (may_be_unheard(*mutex)) {
      mutex->lost = false;
      losses_.erase(std::remove(losses_.begin(), losses_.end(), mutex),
                    losses_.end());
      continue;
    }
    const bool held_up = mutex->table->callbacks > 0 ||
                         mutex->process->stopped_until > now ||
                         mutex->process->host->frozen_until > now;
    // A loss that is told late is another wrong; see check_loss_in_time().
    const nanoseconds allowed =
        seconds(10) + scheduling() + mutex->lost_since.kept();
    const Time since = std::max(
        {mutex->lost_since.began, mutex->table->callback_ended,
         mutex->process->stopped_until, mutex->process->host->frozen_until});
    if (!held_up && now - since > allowed) {
      wrong("a loss is never told", whose(*mutex) + " lost it at " +
                                        time_text(mutex->lost_since.began));
    }
  }
}

void Judge::check_cause(const WatchedMutex& mutex, Loss why) {
  if (why == Loss::expired || mutex.owned_since == kNever) {
    const BootTime boot = mutex.process->host->boot(World::the().now());
    // A claim may also end early, when a stop of the machine is noticed.
    if (why == Loss::expired && !pauses_ && servers_agree_ && mutex.lost &&
        boot < mutex.claim_end) {
      wrong("a loss is told for a wrong cause",
            whose(mutex) + ": expired, but its claim goes on");
    }
    return;
  }
  const Lock& lock = lock_of(mutex.lock);
  // "Another holder has it, or a kept row was freed by force."
  const bool is_marked = plan_.layout != Layout::ddblock || plan_.keep_row;
  bool taken = mutex.forced && is_marked, deleted = false;
  for (std::size_t i = 0; i < lock.versions.size(); i++) {
    const Version& version = lock.versions[i];
    const bool is_last = i + 1 == lock.versions.size();
    if (!is_last && lock.versions[i + 1].at < mutex.owned_since) continue;
    // By proof: of several mutexes of this name in one process, too.
    taken |= !version.proof.empty() && version.proof != mutex.proof;
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

// What was refused is carried out later, as its copy arrives: no client can
// know that.
bool Judge::copies_deceive() const {
  const Weather& weather = plan_.weather;
  return weather.doubled > 0 &&
         weather.throttled + weather.rejected_keys + weather.conflict > 0;
}

// When somebody else has changed the row while it bore the proof of this
// acquisition; kNever: nobody has.
Time Judge::taken_away(const WatchedMutex& mutex) const {
  const auto lock =
      std::find_if(locks_.begin(), locks_.end(),
                   [&](const Lock& one) { return one.name == mutex.lock; });
  const auto& versions = lock->versions;
  // What is older is forgotten.
  if (versions.size() >= kVersionsKept) return Time{};
  for (std::size_t i = 1; i < versions.size(); i++) {
    const Version& before = versions[i - 1];
    const Version& after = versions[i];
    if (!before.held || before.proof != mutex.proof) continue;
    const bool renewed = after.held && after.proof == mutex.proof;
    const bool by_itself =
        after.by == mutex.process && lock->forcers.count(after.by) == 0;
    if (!renewed && !by_itself) return after.at;
  }
  return kNever;
}

bool Judge::is_loss_expected(const WatchedMutex& mutex) const {
  // A renewal that takes as long as one may is still in time.
  const nanoseconds left = mutex.ttl * 7 / 8 - mutex.renew_after;
  const bool in_time = left > 2 * kSlowestLeg * mutex.process->host->latency &&
                       mutex.request_timeout >= left / 2;
  const bool answered = quiet_ || (mild_ && mutex.ttl >= seconds(1));
  return !answered || plan_.climate.stalls > 0 || memory_fails_ ||
         !servers_agree_ || !in_time || !mutex.is_renewed || mutex.forced ||
         mutex.lets_go || mutex.table->bad_keys || mutex.table->slow_keys;
}

// --- What reached the tables -------------------------------------------------

std::string Judge::key_of(const std::string& lock) const {
  return (plan_.layout == Layout::ddblock ? "ddblock-" : "") + lock;
}

std::string Judge::row_of(const std::string& lock) const {
  return Network::the().service().item("locks", key_of(lock),
                                       plan_.sort_key.empty() ? "" : "s");
}

void Judge::applied(const Applied& applied) {
  const std::string& operation = applied.request.operation;
  const bool writes = operation == "PutItem" || operation == "UpdateItem" ||
                      operation == "DeleteItem";
  const bool transaction = operation == "TransactWriteItems";
  if (applied.answered != kNever) {
    for (Lock& lock : locks_) {
      const std::string key = '"' + key_of(lock.name) + '"';
      if (applied.request.body.find(key) == std::string::npos) continue;
      lock.answered[applied.request.process] = applied.answered;
    }
  }
  if (applied.reply.status != 200 || !(writes || transaction)) return;
  const Outside outside;
  if (transaction) {
    see_writes(applied);
    return;
  }
  if (applied.request.body.find('"' + key_of(kOddLock) + '"') !=
          std::string::npos &&
      !may_be_counted(*plan_.odd_row)) {
    wrong("an item that is no lock is changed", applied.request.body);
  }
  for (Lock& lock : locks_) {
    if (applied.request.body.find('"' + key_of(lock.name) + '"') !=
        std::string::npos) {
      look_at_waits();
      see_row(lock, applied.request);
    }
  }
}

Judge::Version Judge::version_of(const Lock& lock,
                                 const Request& request) const {
  const std::string item = row_of(lock.name);
  Version version;
  version.at = World::the().now();
  version.held = !is_free(item, plan_.layout);
  version.proof = proof_in(item, plan_.layout);
  version.exists = !item.empty();
  // "done"
  version.done = item.find(R"("data":{"B":"ZG9uZQ=="})") != item.npos;
  version.lease = lock.longest_ttl;
  const std::int64_t lease = number_in(item, "lease");
  if (lease > 0) {
    version.lease = milliseconds(lease);
  } else {
    version.names_lease =
        plan_.layout == Layout::dynamolock || plan_.layout == Layout::awslabs;
    version.lease = std::max<nanoseconds>(version.lease, plan_.ttl);
    version.lease += version.lease / 50;  // We write their leases 1 % longer.
  }
  version.by = request.process;
  version.sent = {request.sent, request.sent_at};
  version.end = nanoseconds(number_in(item, names_of(plan_.layout).end));
  version.token = static_cast<std::uint64_t>(number_in(item, "token"));
  return version;
}

void Judge::see_row(Lock& lock, const Request& request) {
  Version version = version_of(lock, request);
  if (version.proof.empty()) check_deleted(lock, version);
  const bool freed = lock.versions.back().held && !version.held;
  if (freed && lock.forcers.count(version.by) > 0) freed_by_force(lock);
  check_stored_end(lock, version);
  Sent& sent = lock.sent[version.by];
  if (version.sent.boot > sent.boot) sent = version.sent;
  lock.versions.push_back(std::move(version));
  if (lock.versions.size() > kVersionsKept) lock.versions.pop_front();
  for (const WatchedMutex* owner : lock.owners) check_token(lock, *owner);
}

void Judge::see_writes(const Applied& applied) {
  const std::string text =
      value_after(applied.request.body, R"("name":{"S":"w-)");
  if (text.empty()) return;
  const auto number = static_cast<std::size_t>(std::stoul(text));
  if (number >= writes_.size()) return;
  Write& write = writes_[number];
  const std::string row = Network::the().service().item("ledger", "w-" + text);
  const std::string count = value_after(row, R"("n":{"N":")");
  const int times = count.empty() ? 0 : std::stoi(count);
  if (times == write.applied) return;  // The same request again.
  write.applied = times;
  const std::string whom = "w-" + text + " of " + whose(*write.mutex);
  if (times > 1) wrong("a guarded write is made twice", whom);
  if (write.failed) wrong("a guarded write is made after it was refused", whom);
  const bool kept = write.mutex->keep_row && plan_.layout == Layout::ddblock;
  const std::string token =
      value_after(row_of(write.mutex->lock), R"("token":{"N":")");
  // If another thread has unlocked it meanwhile, it may be of the next one.
  const bool same = !write.mutex->gone && write.mutex->unlocked < write.began;
  if (kept && same && token != std::to_string(write.token)) {
    wrong("a stale guarded write is made", whom + ": its token is " +
                                               std::to_string(write.token) +
                                               ", the row's is " + token);
  }
}

int Judge::write_begins(const WatchedMutex& mutex, std::uint64_t token) {
  writes_.push_back({});
  writes_.back().mutex = &mutex;
  writes_.back().token = token;
  writes_.back().began = World::the().now();
  return static_cast<int>(writes_.size()) - 1;
}

void Judge::write_ends(int number, const Result& result) {
  using ddbmutex::Errc;
  Write& write = writes_[static_cast<std::size_t>(number)];
  const std::string whom =
      "w-" + std::to_string(number) + " of " + whose(*write.mutex);
  if (!result.code && write.applied == 0) {
    wrong("a guarded write is reported and not made", whom);
  }
  if (result.code == Errc::lease_lost || result.code == Errc::not_held ||
      result.code == Errc::condition_failed) {
    write.failed = true;
    if (write.applied > 0) {
      wrong("a guarded write is made and reported as refused",
            whom + ": " + result.text);
    }
  }
}

// --- Rivals ------------------------------------------------------------------

void Judge::rival_acquired(const std::string& name, Process& process,
                           BootTime until, Time sent) {
  Lock& lock = lock_of(name);
  if (lock.forced >= sent) return;
  // "Nothing protects their programs from each other": who wrote last has it.
  rivals_.insert(&process);
  const Process* by = lock.versions.back().by;
  if (by != &process && rivals_.count(by) > 0) return;
  lock.rivals = {{&process, until}};
  look();
}

void Judge::rival_released(const std::string& name, Process& process) {
  auto& rivals = lock_of(name).rivals;
  rivals.erase(
      std::remove_if(rivals.begin(), rivals.end(),
                     [&](const auto& one) { return one.process == &process; }),
      rivals.end());
}

// --- The end -----------------------------------------------------------------

void Judge::program_over(Process& process, std::int64_t bytes_before,
                         std::uint64_t requests_then) {
  over_.insert(&process);
  if (process.library_threads > 0) {
    wrong("a thread of the library is left",
          process.name + ": " + std::to_string(process.library_threads));
  }
  if (process.requests != requests_then) {
    wrong("a request is sent when all is destroyed", process.name);
  }
  const std::int64_t left = process.bytes - bytes_before;
  if (left > kBytesLeftBehind) {
    wrong("memory is left behind",
          process.name + ": " + std::to_string(left) + " bytes");
  }
}

void Judge::end_of_life() {
  look();
  look_at_waits();
  check_rows();
}

// "The item is deleted when the lock is released, unless the option `keep_row`
// is set."
void Judge::check_rows() {
  if (plan_.has_wrong_key() && Network::the().service().size("locks") > 0) {
    wrong("an item is written to a table with another key",
          plan_.wrong_key.partition);
  }
  const bool deletes = plan_.layout == Layout::ddblock ||
                       plan_.layout == Layout::lockclient ||
                       plan_.layout == Layout::awslabs;
  for (const Lock& lock : locks_) {
    if (lock.name == kOddLock) continue;
    const std::string item = row_of(lock.name);
    if (deletes && !plan_.keep_row && !item.empty()) {
      wrong("a row is left", lock.name + ": " + item);
    } else if (!is_free(item, plan_.layout)) {
      wrong("a row is not free in the end", lock.name + ": " + item);
    }
  }
}

}  // namespace world
