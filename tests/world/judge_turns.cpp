// What the judge says about turns between hosts: who tells whom that it waits,
// who leaves its next turn to others, and whether a host starves.
// ddbmutex/README.md, "Turns between hosts".
#include <algorithm>
#include <utility>

#include "tests/world/judge.hpp"
#include "tests/world/row_text.hpp"

namespace world {

namespace {

// "three times at most before its next pause".
constexpr int kMostWords = 3;

// In 2,000 lives of programs in loops chance alone left each of them 0.63 of an
// even share, and made none wait for more than 15 turns of all.  The longest
// waits are those of four hosts with holds of 50 ms: of such lives one in three
// has a wait that is longer by two turns of all.  So these are far off.
constexpr double kLeastShare = 0.5;
constexpr int kMostRounds = 30;

}  // namespace

// A waiter's word to the holder.
bool Judge::is_word(const Request& request) {
  return request.body.find("SET #waiting") != std::string::npos;
}

// "an UpdateItem that sets `waiting`, on condition that the item still has the
// `uuid` that was seen, is not released, and has no `waiting` yet.  This
// changes neither `uuid` nor `expires`".
void Judge::see_word(Lock& lock, const Applied& applied) {
  const Process& process = *applied.request.process;
  if (!is_word(applied.request)) {
    lock.words.erase(&process);
    return;
  }
  const std::string uuid =
      value_after(applied.request.body, R"(":seen_uuid":{"S":")");
  if (plan_.loops) check_word(lock, process, uuid);
  if (applied.reply.status != 200) return;
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

// "A waiter whose lock does not change hands writes nothing."
void Judge::check_word(Lock& lock, const Process& process,
                       const std::string& uuid) {
  const auto seen = std::find_if(
      lock.versions.begin(), lock.versions.end(),
      [&](const Version& version) { return version.proof == uuid; });
  const bool missed =
      std::any_of(calls_.begin(), calls_.end(), [&](const Call& call) {
        return call.since.process == &process && call.waits &&
               seen != lock.versions.end() && seen->at > call.since.began;
      });
  if (!missed) wrong("who has missed no turn says that it waits", process.name);
  if (!lock.told.insert({&process, uuid}).second) {
    wrong("a holder is told twice that the same host waits", process.name);
  }
  if (++lock.words[&process] > kMostWords) {
    wrong("a waiter tells too many holders before it pauses", process.name);
  }
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

// --- Programs in loops -------------------------------------------------------

void Judge::take_turn(const Call& call) {
  const Process& process = *call.since.process;
  const Turn turn{&process, call.since.began, World::the().now(),
                  process.requests};
  if (plan_.programs.size() == 1) check_requests(turn);
  turns_.push_back(turn);
}

// "If nobody waits, this costs neither a request nor a pause."
void Judge::check_requests(const Turn& turn) {
  if (turns_.size() < 2) return;
  const std::uint64_t sent = turn.requests - turns_.back().requests;
  if (sent != 2) {
    wrong("a turn that nobody waits for takes more than two requests",
          turn.process->name + ": " + std::to_string(sent));
  }
}

// When the last program has begun its loop.
Time Judge::all_loop_from() const {
  std::set<const Process*> seen;
  Time from{};
  for (const Turn& turn : turns_) {
    if (seen.insert(turn.process).second) from = std::max(from, turn.asked);
  }
  return from;
}

// "no host starves".
void Judge::check_shares() {
  const Time from = all_loop_from();
  std::map<const Process*, int> counts;
  int all = 0, series = 0;
  const Process* last = nullptr;
  for (const Turn& turn : turns_) {
    int& count = counts[turn.process];
    if (turn.got < from || turn.got > plan_.calm) continue;
    ++all;
    ++count;
    if (turn.process != last) ++series;
    last = turn.process;
  }
  const int programs = static_cast<int>(counts.size());
  for (const auto& [process, count] : counts) {
    if (count * programs >= kLeastShare * all) continue;
    wrong("a host starves", process->name + " had " + std::to_string(count) +
                                " turns of " + std::to_string(all));
  }
  check_longest_wait(from,
                     (plan_.calm - from) / std::max(series, 1) * programs);
}

// `round`: how long a turn of all takes, in which each program has the lock
// once, for as many turns in a row as it gets.
void Judge::check_longest_wait(Time from, nanoseconds round) {
  for (const Turn& turn : turns_) {
    const nanoseconds waited =
        std::min(turn.got, plan_.calm) - std::max(turn.asked, from);
    if (waited <= kMostRounds * round) continue;
    wrong("a wait lasts for too many turns of others",
          turn.process->name + " for " + ms_text(waited) + ", a turn of all " +
              ms_text(round));
  }
}

}  // namespace world
