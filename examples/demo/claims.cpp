#include "examples/demo/claims.hpp"

#include <algorithm>

#include "examples/demo/text.hpp"

namespace demo {
namespace {

Claim counted(long long before, long long after, int updates) {
  const bool right = after == before + updates;
  return {right,
          text("the file went from %lld to %lld: %s", before, after,
               right ? "every update counts" : "not what the updates come to")};
}

}  // namespace

std::optional<std::pair<Hold, Hold>> overlapping(std::vector<Hold> holds) {
  std::sort(holds.begin(), holds.end(),
            [](const Hold& a, const Hold& b) { return a.begin < b.begin; });
  const Hold* last = nullptr;
  for (const Hold& hold : holds) {
    if (hold.end <= hold.begin) continue;  // Was over by the time it began.
    if (last != nullptr && hold.begin < last->end) {
      return std::make_pair(*last, hold);
    }
    last = &hold;
  }
  return std::nullopt;
}

Claims claims_without_lock(const Count& count) {
  const long long lost = count.updates - count.sum;
  return {{lost > 0, text("%d updates, and the file says %lld: %lld lost",
                          count.updates, count.sum, lost)}};
}

Claims claims_with_lock(const Count& count, const std::vector<Hold>& holds) {
  const long long lost = count.updates - count.sum;
  Claims claims = {
      {lost == 0,
       text("%d updates, and the file says %lld: %s lost", count.updates,
            count.sum, lost == 0 ? "none" : std::to_string(lost).c_str())}};
  const auto both = overlapping(holds);
  const auto enough = static_cast<std::size_t>(count.updates);
  if (both) {
    claims.push_back({false, text("%c and %c held the lock at the same time",
                                  both->first.process, both->second.process)});
  } else {
    claims.push_back({holds.size() >= enough,
                      text("the lock was held %zu times, never by two at once",
                           holds.size())});
  }
  return claims;
}

Claims claims_of_killed(const Killed& seen) {
  if (!seen.dead || !seen.next) {
    return {{false, "a process never got the lock"}};
  }
  const Hold& dead = *seen.dead;
  const Hold& next = *seen.next;
  const bool held = dead.begin <= seen.killed && seen.killed < dead.end;
  const Time waited = next.begin - seen.killed;
  const bool in_time = Time::zero() <= waited && waited <= 2 * seen.lease;
  return {
      {seen.renewals > 0,
       text("%c's lease was renewed while it was at work", dead.process)},
      {held, held ? text("%c was killed while it held the lock, its lease good "
                         "for another %s",
                         dead.process, in_words(dead.end - seen.killed).c_str())
                  : text("%c did not hold the lock when it was killed",
                         dead.process)},
      {next.begin >= dead.end,
       text("%c did not get in before that lease was over", next.process)},
      {in_time, in_time ? text("%c had the lock %s after the kill",
                               next.process, in_words(waited).c_str())
                        : text("%c had the lock before the kill, or too late",
                               next.process)},
      counted(seen.before, seen.after, 1)};
}

namespace {

Claim looked_on_waking(const Stopped& seen, char sleeper) {
  const auto& owned = seen.owned_on_waking;
  const char* said = owned ? (*owned ? "true" : "false") : "nothing";
  return {owned == false,
          text("%c's first owns_lock() on waking said %s", sleeper, said)};
}

Claim told_of_loss(const Stopped& seen) {
  std::string told;
  for (const std::string& loss : seen.losses) {
    told += (told.empty() ? "" : ", ") + loss;
  }
  return {told == "expired",
          text("on_lost told it: %s", told.empty() ? "nothing" : told.c_str())};
}

Claim unlocked_harmlessly(const Stopped& seen, char sleeper, char next) {
  const bool right = !seen.uuid_before_unlock.empty() &&
                     seen.uuid_before_unlock == seen.uuid_after_unlock &&
                     seen.next_kept_it;
  return {right, text(right ? "%c's unlock() took nothing from %c"
                            : "%c's unlock() harmed %c",
                      sleeper, next)};
}

}  // namespace

Claims claims_of_stopped(const Stopped& seen) {
  if (!seen.sleeper || !seen.next) {
    return {{false, "a process never got the lock"}};
  }
  const Hold& sleeper = *seen.sleeper;
  const Hold& next = *seen.next;
  return {{sleeper.begin <= seen.stopped && seen.stopped < sleeper.end,
           text("%c was stopped while it held the lock", sleeper.process)},
          {sleeper.end <= next.begin && next.begin < seen.woken,
           text("%c got in meanwhile, and not before %c's lease was over",
                next.process, sleeper.process)},
          looked_on_waking(seen, sleeper.process),
          told_of_loss(seen),
          unlocked_harmlessly(seen, sleeper.process, next.process),
          counted(seen.before, seen.after, 2)};
}

}  // namespace demo
