// What the judge says about turns between hosts: who tells whom that it waits,
// and who leaves its next turn to others.
// ddbmutex/README.md, "Turns between hosts".
#include <algorithm>
#include <utility>

#include "tests/world/judge.hpp"
#include "tests/world/row_text.hpp"

namespace world {

// A waiter's word to the holder.
bool Judge::is_word(const Request& request) {
  return request.body.find("SET #waiting") != std::string::npos;
}

// "an UpdateItem that sets `waiting`, on condition that the item still has the
// `uuid` that was seen, is not released, and has no `waiting` yet.  This
// changes neither `uuid` nor `expires`".
void Judge::see_word(Lock& lock, const Applied& applied) {
  const Process& process = *applied.request.process;
  const std::string uuid =
      value_after(applied.request.body, R"(":seen_uuid":{"S":")");
  if (!is_word(applied.request) || applied.reply.status != 200) return;
  Version& version = lock.versions.back();
  if (!version.held || version.proof != uuid || version.waited_for) {
    wrong("a waiter tells somebody else that it waits",
          process.name + " of " + lock.name);
  }
  const Version after = version_of(lock, applied.request);
  if (after.proof != version.proof || after.end != version.end) {
    wrong("a waiter changes a version", process.name + " of " + lock.name);
  }
  version.waited_for = true;
}

// "The holder finds `waiting` in the answer to its release".  The mutex is the
// one whose take wrote the row.  What a call gives back that has ended without
// the lock may be of any.
void Judge::leave_turn(Lock& lock, const Version& freed,
                       const Applied& applied) {
  const Process* const process = applied.request.process;
  if (!freed.waited_for || applied.answered == kNever) return;
  const bool is_known =
      std::any_of(mutexes_.begin(), mutexes_.end(), [&](const auto& mutex) {
        return mutex.process == process && mutex.proof == freed.proof;
      });
  const Time now = World::the().now();
  for (const WatchedMutex& mutex : mutexes_) {
    if (mutex.process != process) continue;
    if (is_known && mutex.proof != freed.proof) continue;
    const Time heard = std::min(applied.answered, now + mutex.request_timeout);
    // By a clock that may be 1 % slow.
    const nanoseconds time = 2 * nanoseconds(mutex.longest_poll);
    const Time until = heard + time + time / 50;
    Left& left = lock.left[mutex.table];
    if (left.until < until) left = {Stopwatch::start(*process), until};
  }
}

// Until when the call may not ask for the lock, because its Table leaves the
// turn to others.
Time Judge::left_until(const Lock& lock, const Call& call) const {
  const auto found = lock.left.find(call.table);
  if (found == lock.left.end()) return Time{};
  return found->second.until + found->second.since.kept();
}

}  // namespace world
