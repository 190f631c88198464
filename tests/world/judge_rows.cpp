// What the judge sees in the table: the rows of the locks, and who wrote them.
#include <algorithm>
#include <utility>

#include "sigv4/base64.hpp"
#include "tests/support/layouts.hpp"
#include "tests/world/judge.hpp"
#include "tests/world/odd_rows.hpp"
#include "tests/world/row_text.hpp"

namespace world {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Layout;

// How long a release may take that fails several times in a row.
constexpr nanoseconds kRetries = seconds(10);

std::string Judge::key_of(const std::string& lock) const {
  return (plan_.layout == Layout::ddblock ? "ddblock-" : "") + lock;
}

std::string Judge::row_of(const std::string& lock) const {
  return Network::the().service().item("locks", key_of(lock),
                                       plan_.sort_key.empty() ? "" : "s");
}

bool Judge::is_about(const Request& request, const Lock& lock) const {
  return request.body.find('"' + key_of(lock.name) + '"') != std::string::npos;
}

void Judge::applied(const Applied& applied) {
  const std::string& operation = applied.request.operation;
  const bool writes = operation == "PutItem" || operation == "UpdateItem" ||
                      operation == "DeleteItem";
  const bool transaction = operation == "TransactWriteItems";
  if (applied.answered != kNever) {
    for (Lock& lock : locks_) {
      if (!is_about(applied.request, lock)) continue;
      lock.answered[applied.request.process] = applied.answered;
    }
  }
  const Outside outside;
  for (Lock& lock : locks_) {
    if (is_about(applied.request, lock)) see_word(lock, applied);
  }
  if (applied.reply.status != 200 || !(writes || transaction)) return;
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
    if (is_word(applied.request) || !is_about(applied.request, lock)) continue;
    look_at_waits();
    see_row(lock, applied);
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
  version.data = value_after(item, R"("data":{"B":")");
  version.done = version.data == "ZG9uZQ==";  // "done"
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
  version.after_slow_answer = request.after_slow_answer;
  version.end = nanoseconds(number_in(item, names_of(plan_.layout).end));
  version.token = static_cast<std::uint64_t>(number_in(item, "token"));
  version.waited_for = item.find(R"("waiting":)") != std::string::npos;
  return version;
}

// DdbMutex::data(): "What was stored when the lock was taken, with the changes
// made since.  Empty unless the mutex is locked."
void Judge::told_data(const WatchedMutex& mutex,
                      const std::optional<std::string>& data) {
  const Outside outside;
  look();
  if (!prompt() || mutex.calls > 1 || mutex.gone) return;
  if (data && mutex.locked == 0) {
    wrong("an unlocked mutex has data", whose(mutex));
  }
  const Version& version = lock_of(mutex.lock).versions.back();
  const bool is_known = quiet_ && mutex.owned && !mutex.unsure &&
                        !mutex.data_unsure && version.held &&
                        version.proof == mutex.proof;
  if (!is_known || mutex.locked == 0) return;
  const std::string told =
      ddbmutex::sigv4::base64_encode(data.value_or(std::string()));
  if (told != version.data) {
    wrong("data() is not what is stored",
          whose(mutex) + ": " + data.value_or("nothing"));
  }
}

void Judge::see_row(Lock& lock, const Applied& applied) {
  Version version = version_of(lock, applied.request);
  if (version.proof.empty()) check_deleted(lock, version);
  const bool freed = lock.versions.back().held && !version.held;
  if (freed && lock.forcers.count(version.by) > 0) freed_by_force(lock);
  if (version.waited_for && version.proof != lock.versions.back().proof) {
    wrong("a host waits for a turn that has just begun", lock.name);
  }
  if (freed) leave_turn(lock, lock.versions.back(), applied);
  check_stored_end(lock, version);
  check_takeover(lock, version);
  Sent& sent = lock.sent[version.by];
  if (version.sent.boot < sent.boot) rival_gone(lock, *version.by);
  if (version.sent.boot > sent.boot) sent = version.sent;
  lock.versions.push_back(std::move(version));
  if (lock.versions.size() > kVersionsKept) lock.versions.pop_front();
  for (const WatchedMutex* owner : lock.owners) check_token(lock, *owner);
}

// --- Rows freed by force -----------------------------------------------------

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

// Mutexes that own the lock then learn of it later.
void Judge::freed_by_force(Lock& lock) {
  lock.forced = World::the().now();
  // "Programs of other libraries do not learn of it at once."
  lock.rivals.clear();
  for (WatchedMutex* mutex : watched_) {
    if (mutex->lock != lock.name) continue;
    mutex->forced |= mutex->owned || mutex->was_closed;
  }
}

// --- Rows that nobody has ----------------------------------------------------

// Whether the row may be held in the name of the mutex.  A call that gets the
// lock cannot have written the row if it began later.
bool Judge::may_have(const WatchedMutex& mutex, const Lock& lock) const {
  const Version& version = lock.versions.back();
  if (mutex.lock != lock.name || mutex.process != version.by) return false;
  if (mutex.owned || mutex.locked > 0) return true;
  return std::any_of(calls_.begin(), calls_.end(), [&](const Call& call) {
    return call.mutex == &mutex &&
           (!call.gets_lock || call.since.began <= version.at);
  });
}

bool Judge::may_be_orphaned(const Lock& lock) const {
  const Version& version = lock.versions.back();
  const Time now = World::the().now();
  if (!version.held || !version.by->alive || version.by->failure_every > 0 ||
      now - version.at > version.lease) {
    return false;
  }
  // Its last release may have failed.
  const bool may_fail = memory_fails_ || !quiet_ || contention_;
  if (may_fail && over_.count(version.by) > 0) return false;
  for (const Call& call : calls_) {  // Calls of AnyOf, and destructors.
    if (call.since.process == version.by && call.mutex == nullptr) return false;
  }
  return std::none_of(
      mutexes_.begin(), mutexes_.end(),
      [&](const WatchedMutex& one) { return may_have(one, lock); });
}

// "No lock is then left behind that nobody can unlock", "a release that is not
// finished by then goes on in the background", "the last destructor waits for
// that".
void Judge::look_at_orphan(Lock& lock) {
  // A release that is refused for its keys is not repeated.
  const bool is_mild = mild_ && plan_.weather.rejected_keys <= 0;
  const bool is_sure = peaceful_ || is_mild || contention_;
  if (!is_sure || others_ || lock.name == kOddLock) return;
  if (!may_be_orphaned(lock)) {
    lock.orphaned.process = nullptr;
    return;
  }
  const Process& by = *lock.versions.back().by;
  if (hasty_.count(&by) > 0) return;
  if (lock.orphaned.process != &by) {
    lock.orphaned = Stopwatch::start(by);
    return;
  }
  bool surely = false;
  nanoseconds bound = seconds(1) + scheduling();
  for (const WatchedMutex& mutex : mutexes_) {
    if (mutex.process != &by || mutex.lock != lock.name) continue;
    surely = true;
    if (!surely_answered(mutex)) return;
    // A thread that stalls before it sends a take may do so after its time is
    // up, and the release overtakes the take.
    const bool may_send_late =
        !prompt() && plan_.climate.longest_stall >= mutex.request_timeout;
    if (may_send_late || (!peaceful_ && mutex.table->closed)) return;
    bound = std::max(bound, seconds(1) + scheduling() +
                                3 * nanoseconds(mutex.request_timeout));
  }
  if (!peaceful_) bound += kRetries;
  if (surely && lock.orphaned.run() > bound) {
    wrong("a row is held that no mutex has", lock.name + " by " + by.name);
  }
}

// --- The end -----------------------------------------------------------------

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
