#include "tests/world/steps.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ddbmutex/any_of.hpp"
#include "sigv4/system.hpp"
#include "tests/world/odd_rows.hpp"

namespace world {

using ddbmutex::BootClock;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Layout;
using ddbmutex::LockInfo;
using ddbmutex::Options;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// A program idles while it holds a lock for so many of its ttls at the most.
constexpr int kLongestHoldInTtls = 100;

milliseconds ms(nanoseconds time) {
  return std::chrono::duration_cast<milliseconds>(time);
}

std::string text(nanoseconds time) {
  return std::to_string(ms(time).count()) + " ms";
}

// The time of day as the host has it: it may jump.
struct WallClock {
  using duration = nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WallClock>;
  static constexpr bool is_steady = false;
  static time_point now() {
    return time_point(ddbmutex::sigv4::wall_clock().time_since_epoch());
  }
};

// A clock that counts in an unsigned type, and may throw.
struct OddClock {
  using duration = std::chrono::duration<std::uint64_t, std::micro>;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<OddClock>;
  static constexpr bool is_steady = false;
  static inline thread_local ddbmutex::BootTime fails_from{};
  static time_point now() {
    const ddbmutex::BootTime now = BootClock::now();
    if (now >= fails_from) throw ClockFails();
    return time_point(
        std::chrono::duration_cast<duration>(now.time_since_epoch()));
  }
};

// Whether the call is to throw, for those that have no default for `ec`.
bool throws(const std::error_code& ec) {
  return &ec == &ddbmutex::detail::throws();
}

Call locking(const std::string& what) {
  Call call;
  call.what = what;
  call.gets_lock = call.needs_key = true;
  return call;
}

// "Takes request_timeout at most, or twice that if it reads the item first."
nanoseconds of_one_try(const Turn& turn) {
  return 2 * nanoseconds(turn.mutex->watched->request_timeout);
}

// "renew() and guarded_write() count from their own call, and take
// request_timeout if that is more."
nanoseconds of_patience(const Turn& turn) {
  const WatchedMutex& mutex = *turn.mutex->watched;
  return std::max(mutex.patience, mutex.request_timeout);
}

}  // namespace

template <std::size_t size>
void Steps::take_one(const Step (&steps)[size], Program& program, Turn& turn) {
  int all = 0;
  for (const Step& step : steps) all += step.weight;
  auto left =
      static_cast<int>(turn.random.below(static_cast<std::uint64_t>(all)));
  for (const Step& step : steps) {
    left -= step.weight;
    if (left < 0) return step.run(program, turn);
  }
}

void Steps::take(Program& program, Turn& turn) {
  // Once the key is known to be wrong, nothing new happens.
  if (program.plan_.has_wrong_key() && turn.random.chance(0.3)) {
    return turn.random.chance(0.5) ? list(program, turn) : close(program, turn);
  }
  static constexpr Step kSteps[] = {
      {700, hold},          {100, rest},  {40, ask},     {30, cancel},
      {20, inspect},        {15, list},   {5, exists},   {10, force_unlock},
      {30, destroy},        {3, close},   {10, release}, {10, renew},
      {10, unlock_another}, {40, any_of}, {2, fork},
  };
  if (program.plan_.jobs && turn.random.chance(0.6)) {
    return any_of(program, turn);
  }
  take_one(kSteps, program, turn);
}

void Steps::react(Program& program, Turn& turn) {
  static constexpr Step kReactions[] = {
      {40, nothing},     {20, unlock},
      {10, release},     {10, sleep},
      {10, renew},       {10, ask},
      {10, other_mutex}, {5, throw_it},
      {5, destroy},      {10, lock_in_callback},
  };
  take_one(kReactions, program, turn);
}

// --- Locking -----------------------------------------------------------------

void Steps::hold(Program& program, Turn& turn) {
  // Who has left one locked must not wait for ever.
  const bool holds = std::any_of(
      program.all_.begin(), program.all_.end(),
      [&](const OwnMutexPtr& one) { return one->holder == turn.thread; });
  if (holds && turn.random.chance(0.5)) program.unlock_all(turn.thread);
  if (!lock_somehow(program, turn, !holds)) return;
  while_held(program, turn);
  let_go(program, turn);
}

bool Steps::lock_somehow(Program& program, Turn& turn, bool for_ever) {
  static constexpr Step kForms[] = {
      {40, lock},
      {10, try_lock},
      {25, try_lock_for},
      {5, try_lock_for_ever},
      {5, try_lock_until},
      {5, try_lock_until_wall},
      {5, try_lock_until_odd},
      {5, try_lock_past_lease},
  };
  static constexpr Step kBounded[] = {
      {10, try_lock},          {20, try_lock_for},       {5, try_lock_until},
      {2, try_lock_until_odd}, {2, try_lock_past_lease},
  };
  if (for_ever) {
    program.unlock_all(turn.thread);
    take_one(kForms, program, turn);
  } else {
    take_one(kBounded, program, turn);
  }
  return program.usable(turn.mutex) && turn.mutex->locked > 0 &&
         turn.mutex->holder == turn.thread;
}

// Notes that this thread has the lock.
bool Steps::got(Program& program, Turn& turn, const Result& result) {
  if (!result.got) return false;
  OwnMutex& own = *turn.mutex;
  // Its destructor has begun, and unlocks it.
  if (own.mutex == nullptr) return false;
  own.locked++;
  own.holder = turn.thread;
  std::uint64_t token = 0;
  {
    const Inside inside;
    token = own.mutex->fencing_token();
  }
  program.judge_.acquired(*own.watched, token, turn.thread);
  return true;
}

void Steps::lock(Program& program, Turn& turn) {
  Call call = locking("lock()");
  call.waits = call.for_ever = true;
  // There, who is refused is told at once.
  if (turn.in_callback && turn.mutex->holder >= 0 && program.judge_.prompt()) {
    call.limit = nanoseconds::zero();
  }
  got(program, turn,
      program.call(turn, call, [](DdbMutex& mutex, std::error_code& ec) {
        mutex.lock(ec);
        return !ec;
      }));
}

void Steps::try_lock(Program& program, Turn& turn) {
  Call call = locking("try_lock()");
  call.limit = of_one_try(turn);
  got(program, turn,
      program.call(turn, call, [](DdbMutex& mutex, std::error_code& ec) {
        return mutex.try_lock(ec);
      }));
}

void Steps::try_lock_for(Program& program, Turn& turn) {
  const nanoseconds ttl = turn.mutex->watched->ttl;
  const nanoseconds time = turn.random.one_of<nanoseconds>(
      {nanoseconds(0), -seconds(1), nanoseconds(1),
       turn.random.spread(milliseconds(1), seconds(1)),
       turn.random.spread(milliseconds(100), seconds(60)),
       turn.random.spread(ttl / 10, 2 * ttl)});
  Call call = locking("try_lock_for(" + text(time) + ")");
  call.waits = time > nanoseconds::zero();
  call.limit = call.waits ? time : of_one_try(turn);
  got(program, turn,
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        return mutex.try_lock_for(time, ec);
      }));
}

void Steps::try_lock_for_ever(Program& program, Turn& turn) {
  Call call = locking("try_lock_for(ever)");
  call.waits = true;
  const bool in_hours = turn.random.chance(0.5);
  got(program, turn,
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        return in_hours ? mutex.try_lock_for(hours::max(), ec)
                        : mutex.try_lock_for(nanoseconds::max(), ec);
      }));
}

void Steps::try_lock_until(Program& program, Turn& turn) {
  const nanoseconds time = turn.random.one_of<nanoseconds>(
      {-seconds(1), turn.random.spread(milliseconds(1), seconds(10))});
  Call call = locking("try_lock_until(in " + text(time) + ")");
  call.waits = time > nanoseconds::zero();
  call.limit = call.waits ? time : of_one_try(turn);
  if (call.waits) call.of_one_try = of_one_try(turn);
  const auto until = BootClock::now() + time;
  got(program, turn,
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        return mutex.try_lock_until(until, ec);
      }));
}

void Steps::try_lock_until_wall(Program& program, Turn& turn) {
  const nanoseconds time = turn.random.spread(milliseconds(1), seconds(60));
  Call call = locking("try_lock_until(wall clock in " + text(time) + ")");
  call.open_ended = true;
  call.waits = true;
  const auto until = WallClock::now() + time;
  got(program, turn,
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        return mutex.try_lock_until(until, ec);
      }));
}

void Steps::try_lock_until_odd(Program& program, Turn& turn) {
  const nanoseconds time = turn.random.one_of<nanoseconds>(
      {-seconds(5), turn.random.spread(milliseconds(1), seconds(10))});
  Call call = locking("try_lock_until(odd clock in " + text(time) + ")");
  call.waits = time > nanoseconds::zero();
  call.limit = call.waits ? time : of_one_try(turn);
  call.of_one_try = of_one_try(turn);
  call.clock_may_fail = turn.random.chance(0.5);
  OddClock::fails_from = ddbmutex::BootTime::max();
  const auto until =
      OddClock::now() +
      std::chrono::duration_cast<std::chrono::microseconds>(time);
  if (call.clock_may_fail) {
    OddClock::fails_from =
        BootClock::now() + turn.random.spread(nanoseconds(100), seconds(5));
  }
  got(program, turn,
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        return mutex.try_lock_until(until, ec);
      }));
}

void Steps::try_lock_past_lease(Program& program, Turn& turn) {
  const nanoseconds time = turn.random.spread(milliseconds(1), seconds(5));
  Call call = locking("try_lock_past_lease(" + text(time) + ")");
  call.open_ended = true;
  call.waits = true;
  // The lease that it finds may be that of a program with a longer ttl.
  const nanoseconds lease = 4 * nanoseconds(program.plan_.ttl);
  // It may stand in line first.
  call.limit = lease + lease / 20 + 2 * time + of_one_try(turn);
  got(program, turn,
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        return mutex.try_lock_past_lease(ms(time), ec);
      }));
}

void Steps::any_of(Program& program, Turn& turn) {
  if (!program.plan_.keep_row || program.plan_.layout != Layout::ddblock ||
      program.plan_.has_wrong_key()) {
    return hold(program, turn);
  }
  program.unlock_all(turn.thread);
  OwnTable& own = program.table(turn.random.below(2));
  if (own.table == nullptr) return;
  if (own.any == nullptr) program.make_any_of(own, turn.mutex->options);
  if (own.any == nullptr) return;
  OwnTable table = own;  // It may go meanwhile.
  std::unique_ptr<DdbMutex> any;
  if (program.plan_.beat > nanoseconds::zero()) {
    const nanoseconds beat = program.plan_.beat;
    program.rest(beat - World::the().now() % beat);
  }
  const Time asked_for = World::the().now();
  take_any_of(program, turn, table, any);
  if (any != nullptr) {
    turn.mutex = program.adopt(std::move(any), table.each, table, asked_for);
    Result result;
    result.got = true;
    if (got(program, turn, result)) work(program, turn, table.is_choosy);
  }
  const Inside inside;
  table = {};
}

void Steps::take_any_of(Program& program, Turn& turn, const OwnTable& table,
                        std::unique_ptr<DdbMutex>& any) {
  nanoseconds time = turn.random.one_of<nanoseconds>(
      {nanoseconds(0), turn.random.spread(milliseconds(10), seconds(20))});
  // Rows are there, and all others give them back.
  const bool for_ever =
      program.plan_.jobs && !table.is_choosy && turn.random.chance(0.3);
  if (for_ever) time = nanoseconds::max();
  const nanoseconds request = table.each.request_timeout.value_or(
      std::min(milliseconds(2000), table.each.ttl / 4));
  Call call;
  call.what =
      for_ever ? "AnyOf::lock()" : "AnyOf::try_lock_for(" + text(time) + ")";
  call.table = table.watched;
  call.any_of = true;
  call.for_ever = for_ever;
  call.is_choosy = table.is_choosy;
  // A try, and to give back what is not wanted any more.
  if (time > nanoseconds::zero() && !for_ever) {
    call.limit = time + 2 * request + milliseconds(200);
  }
  // "Takes request_timeout at most for the pass, and as long for each try."
  if (time <= nanoseconds::zero()) {
    // And `accept` may take its time, once of a row that is read and once of
    // one that is got.
    call.limit = request + 2 * kSlowAccept;
    call.of_one_try = 2 * request;
    call.tries = 2 * program.plan_.locks;
  }
  call.request_timeout = request;
  call.longest_poll = seconds(6);
  program.call(call, turn.random.chance(0.3), [&](std::error_code& ec) {
    any = for_ever ? table.any->lock(ec) : table.any->try_lock_for(time, ec);
    return any != nullptr;
  });
}

void Steps::work(Program& program, Turn& turn, bool is_choosy) {
  if (is_choosy && program.judge_.prompt()) {
    const Inside inside;
    const bool is_done = turn.mutex->mutex->data() == std::string(kDone);
    const Outside outside;
    if (is_done) {
      program.judge_.wrong("AnyOf gives what is not wanted",
                           turn.mutex->watched->lock);
    }
  }
  while_held(program, turn);
  const bool beats = program.plan_.beat > nanoseconds::zero();
  if (beats && program.usable(turn.mutex)) stay(program, turn);
  if (turn.random.chance(0.5) && turn.mutex->locked == 1) {
    release_changes(program, turn);
  }
  if (program.usable(turn.mutex)) program.destroy(turn.mutex);
}

// --- While it is held --------------------------------------------------------

void Steps::while_held(Program& program, Turn& turn) {
  static constexpr Step kSteps[] = {
      {30, act},         {50, stay},         {5, renew},  {3, renew_changes},
      {5, ensure},       {5, require},       {5, ask},    {3, lock_again},
      {10, write},       {3, write_oneself}, {3, cancel}, {2, inspect},
      {2, force_unlock},
  };
  act(program, turn);
  for (auto left = turn.random.below(4); left > 0; left--) {
    if (!program.usable(turn.mutex)) return;
    take_one(kSteps, program, turn);
  }
}

void Steps::act(Program& program, Turn& turn) {
  if (!program.usable(turn.mutex)) return;
  DdbMutex& mutex = *turn.mutex->mutex;
  std::error_code ec;
  bool owns = false;
  {
    const Inside inside;
    if (turn.random.chance(0.5)) {
      owns = mutex.owns_lock();
    } else {
      mutex.require(nanoseconds(1), ec);
      owns = !ec;
    }
  }
  if (owns && turn.mutex->mutex != nullptr) {
    program.judge_.act(*turn.mutex->watched);
  }
}

void Steps::stay(Program& program, Turn& turn) {
  const Options& options = turn.mutex->options;
  const nanoseconds ttl = options.ttl;
  const nanoseconds most =
      std::min(program.plan_.longest_hold, kLongestHoldInTtls * ttl);
  const nanoseconds time =
      turn.random.spread(program.plan_.shortest_hold,
                         std::max(most, 2 * program.plan_.shortest_hold));
  if (options.auto_renew || turn.random.chance(0.3)) {
    program.say("holds for " + text(time));
    return program.rest(time);
  }
  for (nanoseconds left = std::min(time, 10 * ttl);
       left > nanoseconds::zero() && program.usable(turn.mutex);
       left -= ttl / 3) {
    program.rest(std::min(left, ttl / 3));
    renew(program, turn);
  }
}

void Steps::renew(Program& program, Turn& turn) {
  Call call;
  call.what = "renew()";
  call.renews = true;
  call.limit = of_patience(turn);
  program.call(turn, call, [](DdbMutex& mutex, std::error_code& ec) {
    mutex.renew(ec);
    return !ec;
  });
}

// "What was stored when the lock was taken, with the changes made since."
void Steps::check_data(Program& program, Turn& turn, const Changes& changes,
                       Time began) {
  const OwnMutex& own = *turn.mutex;
  if (!program.usable(turn.mutex) || !program.judge_.prompt() ||
      own.holder != turn.thread || own.watched->unlocked >= began) {
    return;
  }
  const Inside inside;
  if (own.mutex->data() != changes.data) {
    const Outside outside;
    program.judge_.wrong("data() is not what it was changed to",
                         own.watched->lock);
  }
}

void Steps::renew_changes(Program& program, Turn& turn) {
  Changes changes;
  changes.data = "changed " + std::to_string(turn.random.below(1000));
  if (turn.random.chance(0.3)) changes.remove.push_back("shoe");
  Call call;
  call.what = "renew(changes)";
  call.renews = call.ties = true;
  call.limit = of_patience(turn);
  const Time began = World::the().now();
  const Result result =
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        mutex.renew(changes, ec);
        return !ec;
      });
  if (!result.code) check_data(program, turn, changes, began);
}

void Steps::ensure(Program& program, Turn& turn) {
  const nanoseconds ttl = turn.mutex->watched->ttl;
  const nanoseconds time = turn.random.between({}, ttl);
  Call call;
  call.what = "ensure(" + text(time) + ")";
  call.renews = true;
  call.ensures = time;
  call.limit = of_patience(turn);
  program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
    mutex.ensure(time, ec);
    return !ec;
  });
}

void Steps::require(Program& program, Turn& turn) {
  const nanoseconds ttl = turn.mutex->watched->ttl;
  const nanoseconds time = turn.random.between({}, ttl);
  Call call;
  call.what = "require(" + text(time) + ")";
  call.ensures = time;
  call.limit = nanoseconds::zero();
  program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
    throws(ec) ? mutex.require(time) : mutex.require(time, ec);
    return !ec;
  });
}

void Steps::lock_again(Program& program, Turn& turn) {
  Call call = locking("lock() again");
  const bool is_ours = turn.mutex->holder == turn.thread;
  // lock() returns at once, unless another thread unlocks it meanwhile.
  call.for_ever = program.judge_.prompt() && is_ours && turn.random.chance(0.5);
  if (call.for_ever) call.limit = nanoseconds::zero();
  got(program, turn,
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        if (!call.for_ever) return mutex.try_lock_for(seconds(1), ec);
        mutex.lock(ec);
        return !ec;
      }));
}

namespace {

// Counts how often it was made, and leaves the token.
std::string items_of_write(int number, const std::string& lock,
                           std::uint64_t token, bool fails) {
  const std::string condition =
      fails ? R"x("ConditionExpression":"attribute_exists(nothing)",)x" : "";
  return R"x({"Update":{"TableName":"ledger","Key":{"name":{"S":"w-)x" +
         std::to_string(number) +
         R"x("}},"UpdateExpression":"ADD n :one",)x"
         R"x("ExpressionAttributeValues":{":one":{"N":"1"}}}},)x"
         R"x({"Put":{"TableName":"ledger",)x" +
         condition + R"x("Item":{"name":{"S":")x" + lock +
         R"x("},"token":{"N":")x" + std::to_string(token) + R"x("}}}})x";
}

std::uint64_t token_of(const DdbMutex& mutex) {
  const Inside inside;
  return mutex.fencing_token();
}

}  // namespace

void Steps::write(Program& program, Turn& turn) {
  WatchedMutex& watched = *turn.mutex->watched;
  const std::uint64_t token = token_of(*turn.mutex->mutex);
  if (!program.usable(turn.mutex)) return;
  Call call;
  call.what = "guarded_write()";
  // It renews if the row is not ours.
  call.ties = call.renews = true;
  call.has_condition = turn.random.chance(0.1);
  // "Transient errors are retried for `patience`, but for at most 9 minutes."
  // Then comes the renewal of a lock that seems to be lost.
  call.limit =
      watched.request_timeout +
      std::max<nanoseconds>(
          watched.request_timeout,
          std::min<nanoseconds>(watched.patience, std::chrono::minutes(9)));
  const int number = program.judge_.write_begins(watched, token);
  const std::string items =
      "[" + items_of_write(number, watched.lock, token, call.has_condition) +
      "]";
  const Result result =
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        mutex.guarded_write(items, ec);
        return !ec;
      });
  program.judge_.write_ends(number, result);
}

void Steps::write_oneself(Program& program, Turn& turn) {
  WatchedMutex& watched = *turn.mutex->watched;
  const std::uint64_t token = token_of(*turn.mutex->mutex);
  if (!program.usable(turn.mutex)) return;
  std::string check;
  Call call;
  call.what = "condition_check()";
  call.ties = true;
  const Result result =
      program.call(turn, call, [&](DdbMutex& mutex, std::error_code& ec) {
        check = mutex.condition_check(ec);
        return !ec;
      });
  if (result.code || check.empty()) return;
  const int number = program.judge_.write_begins(watched, token);
  const std::string body =
      R"({"ClientRequestToken":"own-)" + std::to_string(number) +
      R"(","TransactItems":[{"ConditionCheck":)" + check + "}," +
      items_of_write(number, watched.lock, token, false) + "]}";
  Network::the().ask("TransactWriteItems", body, seconds(5));
}

// --- Letting go --------------------------------------------------------------

void Steps::let_go(Program& program, Turn& turn) {
  static constexpr Step kSteps[] = {
      {60, unlock},      {15, release}, {5, release_changes},
      {5, leave_locked}, {5, destroy},
  };
  while (program.usable(turn.mutex) && turn.mutex->holder == turn.thread) {
    const int locked = turn.mutex->locked;
    take_one(kSteps, program, turn);
    if (turn.mutex->locked >= locked) return;
  }
}

namespace {

// Before the call, because another thread may have the lock when it returns.
void note_unlock(OwnMutex& own) {
  if (own.locked > 0 && --own.locked == 0) own.holder = -1;
}

Call letting_go(const std::string& what, const Turn& turn) {
  Call call;
  call.what = what;
  call.lets_go = true;
  const WatchedMutex& watched = *turn.mutex->watched;
  call.limit = watched.request_timeout;
  // "Does nothing if the mutex is not locked."
  if (watched.locked == 0 && watched.calls == 0) {
    call.limit = nanoseconds::zero();
  }
  return call;
}

}  // namespace

void Steps::unlock(Program& program, Turn& turn) {
  note_unlock(*turn.mutex);
  program.call(turn, letting_go("unlock()", turn),
               [](DdbMutex& mutex, std::error_code&) {
                 mutex.unlock();
                 return true;
               });
  const bool once_more = turn.random.chance(0.1) && program.judge_.prompt() &&
                         program.usable(turn.mutex) && turn.mutex->locked == 0;
  if (once_more) unlock(program, turn);
}

void Steps::release(Program& program, Turn& turn) {
  note_unlock(*turn.mutex);
  program.call(turn, letting_go("release()", turn),
               [&](DdbMutex& mutex, std::error_code& ec) {
                 throws(ec) ? mutex.release() : mutex.release(ec);
                 return !ec;
               });
}

void Steps::release_changes(Program& program, Turn& turn) {
  Changes changes;
  changes.data = turn.random.chance(0.3)
                     ? kDone
                     : "left by " + std::to_string(program.own_.number);
  if (!program.plan_.keep_row || turn.mutex->locked != 1) {
    return unlock(program, turn);
  }
  note_unlock(*turn.mutex);
  const Result result = program.call(turn, letting_go("release(changes)", turn),
                                     [&](DdbMutex& mutex, std::error_code& ec) {
                                       mutex.release(changes, ec);
                                       return !ec;
                                     });
  // Then it is still locked.
  if (result.code == std::errc::not_enough_memory) unlock(program, turn);
}

void Steps::leave_locked(Program& program, Turn&) {
  program.say("leaves it locked");
}

void Steps::destroy(Program& program, Turn& turn) {
  if (!program.usable(turn.mutex)) return;
  // A callback must not wait for calls that may wait for it.
  if (turn.in_callback && turn.mutex->calls > 0) return;
  turn.mutex->locked = 0;
  turn.mutex->holder = -1;
  program.destroy(turn.mutex);
}

void Steps::unlock_another(Program& program, Turn& turn) {
  // Once too often does nothing.
  if (turn.mutex->locked > 0 || program.judge_.prompt()) unlock(program, turn);
}

// --- Anytime -----------------------------------------------------------------

void Steps::rest(Program& program, Turn& turn) {
  const nanoseconds most =
      std::max(program.plan_.longest_rest, nanoseconds(2000));
  const nanoseconds time = turn.random.spread(nanoseconds(1000), most);
  program.say("rests for " + text(time));
  program.rest(time);
}

void Steps::ask(Program& program, Turn& turn) {
  Call call;
  call.what = "asks this and that";
  call.limit = nanoseconds::zero();
  program.call(turn, call, [](DdbMutex& mutex, std::error_code&) {
    (void)mutex.owns_lock();
    (void)mutex.remaining();
    (void)mutex.in_danger();
    (void)mutex.fencing_token();
    (void)mutex.data();
    (void)mutex.attributes();
    (void)mutex.last_error();
    (void)mutex.owner();
    return true;
  });
}

void Steps::cancel(Program& program, Turn& turn) {
  if (!program.usable(turn.mutex)) return;
  WatchedMutex& watched = *turn.mutex->watched;
  program.judge_.cancel_begins(watched);
  Call call;
  call.what = "cancel()";
  call.limit = nanoseconds::zero();
  program.call(turn, call, [](DdbMutex& mutex, std::error_code&) {
    mutex.cancel();
    return true;
  });
  program.judge_.cancel_ends(watched);
}

namespace {

// A call of a table, which lives on if its program drops it meanwhile.
struct TableCall {
  std::shared_ptr<ddbmutex::Table> table;
  Call call;
  TableCall(const OwnMutexPtr& mutex, const std::string& what)
      : table(mutex->table) {
    call.what = what;
    call.table = mutex->watched_table;
  }
  ~TableCall() {
    const Inside inside;
    table.reset();
  }
  TableCall(const TableCall&) = delete;
  TableCall& operator=(const TableCall&) = delete;
};

}  // namespace

void Steps::inspect(Program& program, Turn& turn) {
  TableCall one(turn.mutex, "inspect(" + turn.mutex->watched->lock + ")");
  if (one.table == nullptr) return;
  one.call.needs_key = true;
  const std::string name = turn.mutex->watched->lock;
  program.call(one.call, turn.random.chance(0.3), [&](std::error_code& ec) {
    return one.table->inspect(name, ec).exists;
  });
}

void Steps::list(Program& program, Turn& turn) {
  TableCall one(turn.mutex, "list()");
  if (one.table == nullptr) return;
  std::map<std::string, int> listed;
  one.call.listed = &listed;
  program.call(one.call, turn.random.chance(0.3), [&](std::error_code& ec) {
    one.table->list(
        [&](const LockInfo& info) {
          const Outside outside;
          listed[info.name]++;
          return true;
        },
        ec);
    return !ec;
  });
}

void Steps::exists(Program& program, Turn& turn) {
  TableCall one(turn.mutex, "exists()");
  if (one.table == nullptr) return;
  program.call(one.call, turn.random.chance(0.3),
               [&](std::error_code& ec) { return one.table->exists(ec); });
}

void Steps::force_unlock(Program& program, Turn& turn) {
  TableCall one(turn.mutex, "force_unlock(" + turn.mutex->watched->lock + ")");
  if (one.table == nullptr) return;
  const std::string name = turn.mutex->watched->lock;
  if (name == kOddLock) return;  // It might be another's lock.
  one.call.bad_option = true;    // If nothing was held.
  program.judge_.may_force(name);
  program.call(one.call, turn.random.chance(0.3), [&](std::error_code& ec) {
    const LockInfo info = one.table->inspect(name, ec);
    if (ec || !info.exists) return false;
    return one.table->force_unlock(info, ec);
  });
}

void Steps::close(Program& program, Turn& turn) {
  TableCall one(turn.mutex, "close()");
  if (one.table == nullptr) return;
  const nanoseconds within = turn.random.spread(milliseconds(1), seconds(10));
  one.call.limit = within;
  program.judge_.closing(*turn.mutex->watched_table);
  program.call(one.call, false, [&](std::error_code&) {
    return one.table->close(ms(within)).empty();
  });
  // Later mutexes get another one.
  for (std::size_t i = 0; i < program.tables_.size(); i++) {
    if (program.tables_[i].table == one.table) program.destroy_table(i);
  }
  for (OwnMutexPtr& mutex : program.slots_) {
    if (mutex != nullptr && mutex->table == one.table) mutex = nullptr;
  }
}

// The main thread alone goes on, in the child.
void Steps::fork(Program& program, Turn& turn) {
  if (!program.forks_ || turn.thread != 0) return;
  World& world = World::the();
  Process& parent = world.process();
  world.become_forked_child();
  program.forked_ = true;
  for (const OwnMutexPtr& mutex : program.all_) {
    mutex->calls = mutex->locked = 0;
    mutex->holder = -1;
  }
  program.judge_.forked(parent, world.process());
}

// --- In callbacks ------------------------------------------------------------

void Steps::sleep(Program&, Turn& turn) {
  const nanoseconds ttl = turn.mutex->watched->ttl;
  World::the().sleep(turn.random.spread(milliseconds(1), ttl));
}

void Steps::other_mutex(Program& program, Turn& turn) {
  const OwnMutexPtr other =
      program.slots_[turn.random.below(program.slots_.size())];
  if (other == nullptr || !program.usable(other)) return;
  const bool same_table = other->watched_table == turn.mutex->watched_table;
  turn.mutex = other;
  static constexpr Step kSteps[] = {
      {10, unlock}, {10, renew}, {10, cancel}, {10, destroy}, {5, inspect},
  };
  if (turn.random.chance(0.5)) return take_one(kSteps, program, turn);
  // "A lock() that would wait for another thread of this process is refused
  // there."
  if (same_table && program.judge_.prompt() && other->holder >= 0) {
    return lock(program, turn);
  }
  if (lock_somehow(program, turn, false)) unlock(program, turn);
}

// lock(), while another thread of this process has the mutex.
void Steps::lock_in_callback(Program& program, Turn& turn) {
  if (turn.mutex->holder >= 0 && program.judge_.prompt()) lock(program, turn);
}

void Steps::throw_it(Program&, Turn&) {
  throw std::runtime_error("a callback throws");
}

}  // namespace world
