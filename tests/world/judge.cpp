// Who owns what: overlaps, losses, tokens, rows and guarded writes.  What the
// judge says about single calls is in judge_calls.cpp.
#include "tests/world/judge.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace world {

using ddbmutex::Layout;
using ddbmutex::Loss;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// A machine that stands still, boot clock included, for so short a time lets
// others in only below a ttl of 10 s (Options::ttl).
constexpr nanoseconds kUnnoticedPause = milliseconds(1250);

// "called once for each lock that is lost: with `expired` when remaining()
// reaches 0": so late, if nothing keeps the thread from running.
constexpr nanoseconds kToldWithin = milliseconds(1);

constexpr nanoseconds kAgreement = milliseconds(250);
constexpr nanoseconds kSignaturesLast = std::chrono::minutes(4);

// How many times the usual latency a message takes at the most, see
// network.cpp.
constexpr int kSlowestLeg = 12;

constexpr std::size_t kVersionsKept = 500;
constexpr std::int64_t kBytesLeftBehind = 16 * 1024;

bool has_weather(const Weather& weather) {
  return weather.unreachable + weather.lost + weather.answer_lost +
             weather.broken + weather.truncated + weather.late +
             weather.answer_late + weather.doubled + weather.failed +
             weather.throttled + weather.conflict + weather.rejected_keys >
         0;
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

Stopwatch Stopwatch::start(Process& process) {
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
  }
  quiet_ = !has_weather(plan.weather);
  for (const FaultPlan& fault : plan.faults) {
    quiet_ = quiet_ && is_harmless(fault);
    memory_fails_ |= fault.kind == FaultPlan::Kind::no_memory;
    pauses_ |= fault.kind == FaultPlan::Kind::pause;
    wrong_calendars_ |= fault.kind == FaultPlan::Kind::set_wall;
  }
  for (const HostPlan& host : plan.hosts) {
    wrong_calendars_ |= host.wall_offset > kSignaturesLast ||
                        host.wall_offset < -kSignaturesLast;
  }
  const auto& ahead = plan.front_ends.ahead;
  if (!ahead.empty()) {
    const auto [least, most] = std::minmax_element(ahead.begin(), ahead.end());
    servers_agree_ = *most - *least <= kAgreement;
  }
  // What had failed before may hold back retries for a while.
  calm_from_ = quiet_ ? Time{} : plan.calm + seconds(60);
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
  watched.is_renewed =
      options.auto_renew && !options.max_hold && !options.alive;
  watched.keep_row = options.keep_row.value_or(false);
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
    mutex->locked = mutex->calls = 0;
    mutex->lets_go = true;
    mutex->lost = false;
    losses_.erase(std::remove(losses_.begin(), losses_.end(), mutex),
                  losses_.end());
  }
  for (WatchedTable& table : tables_) {
    if (table.process != &parent) continue;
    table.process = &child;
    table.callbacks = 0;
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
  if (!owned) return;
  mutex.claim_end = mutex.process->host->boot(World::the().now()) + left;
  check_longest_hold(mutex);
}

void Judge::changed(WatchedMutex& mutex, bool owned) {
  Lock& lock = lock_of(mutex.lock);
  mutex.owned = owned;
  if (owned) {
    lock.owners.push_back(&mutex);
    mutex.owned_since = World::the().now();
    mutex.owned_clock = Stopwatch::start(*mutex.process);
    mutex.tied = mutex.renewed_by_hand = false;
    mutex.proof = lock.versions.back().proof;
    mutex.paused = mutex.process->host->paused;
    mutex.lets_go = false;
    mutex.forced = began_to_lock(mutex) <= lock.forced;
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

// Options::ttl: "With a shorter ttl, such a pause can let two hosts hold the
// lock for up to 1.25 s - ttl / 8 ... If clocks are also off by 1 %, add 1 % of
// the ttl; the total is never more than 1.25 s."
nanoseconds Judge::allowed_overlap(const WatchedMutex& older) const {
  const bool was_paused =
      pauses_ && older.process->host->paused != older.paused;
  if (!was_paused) return nanoseconds::zero();
  const nanoseconds ttl = older.ttl;
  const nanoseconds of_pause =
      std::max(nanoseconds::zero(), kUnnoticedPause - ttl / 8);
  if (of_pause == nanoseconds::zero()) return of_pause;
  return std::min(kUnnoticedPause, of_pause + ttl / 100);
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
  if (forced) return;
  if (!rivals.empty() && lock.owners.size() == 1) {
    wrong("two holders, one of another library",
          lock.name + ": " + whose(older) + " and " +
              rivals.front().process->name);
  } else if (const nanoseconds allowed = allowed_overlap(older);
             lasted > allowed ||
             (allowed == nanoseconds::zero() && lock.owners.size() > 1)) {
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
    if (mutex->table == &table) mutex->lets_go = true;
  }
}

// --- Losses ------------------------------------------------------------------

void Judge::callback_begins(WatchedTable& table) {
  table.callback_began = World::the().now();
  if (table.callbacks++ > 0) {
    wrong("two callbacks at once", table.process->name);
  }
}

void Judge::callback_ends(WatchedTable& table) {
  table.callbacks--;
  table.callback_ended = World::the().now();
  table.in_callbacks += table.callback_ended - table.callback_began;
}

// "A loss during or after unlock() is reported only if it is found out before
// the end of the lease."
bool Judge::may_be_unheard(const WatchedMutex& mutex) const {
  return mutex.lets_go || mutex.table->closed || !mutex.process->alive;
}

void Judge::lost(WatchedMutex& mutex, Loss why) {
  look();
  const Time now = World::the().now();
  if (mutex.gone && now > mutex.forgotten) return;
  // "A loss during or after unlock() is reported only if it is found out before
  // the end of the lease."  Then another acquisition may have begun.
  // So it is while another callback holds up the news.
  const bool of_before = mutex.lets_go || now < mutex.unfinished_until ||
                         mutex.table->callback_ended > mutex.owned_since;
  if (++mutex.told > 1 && !of_before) {
    wrong("a loss is told twice", whose(mutex));
  }
  if (mutex.owned && !of_before) {
    wrong("a loss is told although the lock is owned", whose(mutex));
  }
  if (!of_before) check_cause(mutex, why);
  if (!of_before && mutex.lost) check_loss_in_time(mutex);
  if (!is_loss_expected(mutex)) {
    wrong("a lock is lost for no reason", whose(mutex) + ": " + name_of(why));
  }
  mutex.lost = false;
  losses_.erase(std::remove(losses_.begin(), losses_.end(), &mutex),
                losses_.end());
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
    // What is told late is reported as late; this is for what is never told.
    if (held_up || now - mutex->lost_since.began <
                       seconds(10) + 2 * mutex->lost_since.kept()) {
      continue;
    }
    const Time since =
        std::max(mutex->table->callback_ended, mutex->process->stopped_until);
    if (now - std::max(since, mutex->process->host->frozen_until) >
        seconds(10) + mutex->lost_since.kept()) {
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
  // A row that is kept is marked as free by force, and nobody has it then.
  bool taken = mutex.forced, deleted = false;
  for (std::size_t i = 0; i < lock.versions.size(); i++) {
    const Version& version = lock.versions[i];
    const bool is_last = i + 1 == lock.versions.size();
    if (!is_last && lock.versions[i + 1].at < mutex.owned_since) continue;
    // By proof: of several mutexes of this name in one process, too.
    taken |= !version.proof.empty() && version.proof != mutex.proof;
    deleted |= !version.held;
  }
  // What was refused is carried out later, as its copy arrives: no client can
  // know that.
  const Weather& weather = plan_.weather;
  if (weather.doubled > 0 &&
      weather.throttled + weather.rejected_keys + weather.conflict > 0) {
    return;
  }
  // What is older is forgotten.
  if (lock.versions.size() >= kVersionsKept) return;
  if ((why == Loss::taken && !taken) || (why == Loss::deleted && !deleted)) {
    wrong("a loss is told for a wrong cause",
          whose(mutex) + ": " + name_of(why));
  }
}

bool Judge::is_loss_expected(const WatchedMutex& mutex) const {
  // A renewal that takes as long as one may is still in time.
  const nanoseconds left = mutex.ttl * 7 / 8 - mutex.renew_after;
  const bool in_time = left > 2 * kSlowestLeg * mutex.process->host->latency &&
                       mutex.request_timeout >= left / 2;
  return !quiet_ || plan_.climate.stalls > 0 || memory_fails_ ||
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
  if (applied.reply.status != 200 || !(writes || transaction)) return;
  const Outside outside;
  if (transaction) {
    see_writes(applied);
    return;
  }
  for (Lock& lock : locks_) {
    if (applied.request.body.find('"' + key_of(lock.name) + '"') !=
        std::string::npos) {
      look_at_waits();
      see_row(lock, applied.request.process);
    }
  }
}

void Judge::see_row(Lock& lock, const Process* by) {
  const std::string item = row_of(lock.name);
  Version version;
  version.at = World::the().now();
  version.held = !is_free(item, plan_.layout);
  version.proof = proof_in(item, plan_.layout);
  version.lease = lock.longest_ttl;
  const std::string lease = value_after(item, R"("lease":{"N":")");
  if (!lease.empty() && lease.size() < 15) {
    version.lease = milliseconds(std::stoll(lease));
  } else {
    version.names_lease =
        plan_.layout == Layout::dynamolock || plan_.layout == Layout::awslabs;
    version.lease = std::max<nanoseconds>(version.lease, plan_.ttl);
    version.lease += version.lease / 50;  // Theirs is told 1 % longer.
  }
  version.by = by;
  const bool freed = lock.versions.back().held && !version.held;
  if (freed && lock.forcers.count(by) > 0) freed_by_force(lock);
  lock.versions.push_back(std::move(version));
  if (lock.versions.size() > kVersionsKept) lock.versions.pop_front();
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
  // "Nothing protects their programs from each other": the last one has it.
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
  const bool deletes = plan_.layout == Layout::ddblock ||
                       plan_.layout == Layout::lockclient ||
                       plan_.layout == Layout::awslabs;
  for (const Lock& lock : locks_) {
    const std::string item = row_of(lock.name);
    if (deletes && !plan_.keep_row && !item.empty()) {
      wrong("a row is left", lock.name + ": " + item);
    } else if (!is_free(item, plan_.layout)) {
      wrong("a row is not free in the end", lock.name + ": " + item);
    }
  }
}

}  // namespace world
