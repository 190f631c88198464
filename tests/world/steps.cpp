#include "tests/world/steps.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "extras/admin.hpp"
#include "extras/any_of.hpp"
#include "extras/guarded_write.hpp"
#include "sigv4/system.hpp"
#include "tests/support/layouts.hpp"
#include "tests/world/odd_rows.hpp"

namespace world {

using ddbmutex::BootClock;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::LockInfo;
using ddbmutex::Options;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Layout;

namespace {

// A program holds a lock for at most so many of its ttls without doing
// anything.
constexpr int kLongestHoldInTtls = 100;
// Another thread may hold the lock all the time, and renews it.
constexpr int kLongestRestInTtls = 40'000;

// The time of day as the host has it: it may jump.
struct WallClock {
  using duration = nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WallClock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() {
    return time_point(ddbmutex::sigv4::wall_clock().time_since_epoch());
  }
};

// The same clock, which is the program's own: the mutex does not know of the
// call until it was read, and must not be destroyed before that.
template <class Clock>
struct ReadOutside {
  using duration = typename Clock::duration;
  using rep = typename duration::rep;
  using period = typename duration::period;
  using time_point = std::chrono::time_point<ReadOutside>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() {
    const Outside outside;
    return time_point(Clock::now().time_since_epoch());
  }
};

// Whether the call is to throw, for functions without a default for `ec`.
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

// A call that waits for so long, or only tries.
Call locking_within(const std::string& what, nanoseconds time,
                    const Turn& turn) {
  Call call = locking(what);
  call.waits = time > nanoseconds::zero();
  call.limit = call.waits ? time : of_one_try(turn);
  return call;
}

// "renew() and guarded_write() count from their own call, and take
// request_timeout if that is more."
nanoseconds of_patience(const Turn& turn) {
  const WatchedMutex& mutex = *turn.mutex->watched;
  return std::max(mutex.patience, mutex.request_timeout);
}

}  // namespace

template <std::size_t size>
void Steps::take_one(const Step (&steps)[size]) {
  int all = 0;
  for (const Step& step : steps) all += step.weight;
  auto left =
      static_cast<int>(turn_.random.below(static_cast<std::uint64_t>(all)));
  for (const Step& step : steps) {
    left -= step.weight;
    if (left < 0) return (this->*step.run)();
  }
}

void Steps::take() {
  if (program_.plan_.loops) return take_turn();
  // Once the key is known to be wrong, nothing new happens.
  if (program_.plan_.has_wrong_key() && turn_.random.chance(0.3)) {
    return turn_.random.chance(0.5) ? list() : close();
  }
  static constexpr Step kSteps[] = {
      {700, &Steps::hold},
      {100, &Steps::rest},
      {40, &Steps::ask},
      {30, &Steps::cancel},
      {20, &Steps::inspect},
      {15, &Steps::list},
      {5, &Steps::exists},
      {10, &Steps::force_unlock},
      {30, &Steps::destroy},
      {3, &Steps::close},
      {10, &Steps::release},
      {10, &Steps::renew},
      {10, &Steps::unlock_another},
      {40, &Steps::any_of},
      {2, &Steps::fork},
  };
  if (program_.plan_.jobs && turn_.random.chance(0.6)) {
    return any_of();
  }
  take_one(kSteps);
}

void Steps::react() {
  static constexpr Step kReactions[] = {
      {40, &Steps::nothing},     {20, &Steps::unlock},
      {10, &Steps::release},     {10, &Steps::sleep},
      {10, &Steps::renew},       {10, &Steps::ask},
      {10, &Steps::other_mutex}, {5, &Steps::throw_it},
      {5, &Steps::destroy},      {10, &Steps::lock_in_callback},
  };
  take_one(kReactions);
}

// --- Locking -----------------------------------------------------------------

void Steps::hold() {
  // A thread that has left a mutex locked must not wait for ever.
  const bool holds = std::any_of(
      program_.all_.begin(), program_.all_.end(),
      [&](const OwnMutexPtr& one) { return one->holder == turn_.thread; });
  if (holds && turn_.random.chance(0.5)) program_.unlock_all(turn_.thread);
  if (!lock_somehow(!holds)) return;
  while_held();
  let_go();
}

bool Steps::lock_somehow(bool for_ever) {
  static constexpr Step kForms[] = {
      {40, &Steps::lock},          {10, &Steps::try_lock},
      {25, &Steps::try_lock_for},  {5, &Steps::try_lock_for_ever},
      {5, &Steps::try_lock_until}, {5, &Steps::try_lock_until_wall},
  };
  static constexpr Step kBounded[] = {
      {10, &Steps::try_lock},
      {20, &Steps::try_lock_for},
      {5, &Steps::try_lock_until},
      {4, &Steps::try_lock_until_wall},
  };
  if (for_ever) {
    program_.unlock_all(turn_.thread);
    take_one(kForms);
  } else {
    take_one(kBounded);
  }
  return program_.usable(turn_.mutex) && turn_.mutex->locked > 0 &&
         turn_.mutex->holder == turn_.thread;
}

// Notes that this thread has the lock.
bool Steps::got(const Result& result) {
  if (!result.got) return false;
  OwnMutex& own = *turn_.mutex;
  // Its destructor has begun, and unlocks it.
  if (own.mutex == nullptr) return false;
  own.locked++;
  own.holder = turn_.thread;
  std::uint64_t token = 0;
  {
    const Inside inside;
    token = own.mutex->fencing_token();
  }
  program_.judge_.acquired(*own.watched, token, turn_.thread);
  return true;
}

// `call_it` locks the mutex and says whether it did.
template <class CallIt>
void Steps::attempt(const Call& call, const CallIt& call_it) {
  got(program_.call(turn_, call, call_it));
}

template <class TimePoint>
void Steps::attempt_until(const Call& call, TimePoint until) {
  using Clock = ReadOutside<typename TimePoint::clock>;
  const typename Clock::time_point at(until.time_since_epoch());
  attempt(call, [&](DdbMutex& mutex, std::error_code& ec) {
    return mutex.try_lock_until(at, ec);
  });
}

void Steps::lock() {
  Call call = locking("lock()");
  call.waits = call.for_ever = true;
  // A call that is refused in a callback is refused at once.
  if (turn_.in_callback && turn_.mutex->holder >= 0 &&
      program_.judge_.prompt()) {
    call.limit = nanoseconds::zero();
  }
  attempt(call, [](DdbMutex& mutex, std::error_code& ec) {
    mutex.lock(ec);
    return !ec;
  });
}

void Steps::try_lock() {
  Call call = locking("try_lock()");
  call.limit = of_one_try(turn_);
  attempt(call, [](DdbMutex& mutex, std::error_code& ec) {
    return mutex.try_lock(ec);
  });
}

void Steps::try_lock_for() {
  const nanoseconds ttl = turn_.mutex->watched->ttl;
  const nanoseconds time = turn_.random.one_of<nanoseconds>(
      {nanoseconds(0), -seconds(1), nanoseconds(1),
       turn_.random.spread(milliseconds(1), seconds(1)),
       turn_.random.spread(milliseconds(100), seconds(60)),
       turn_.random.spread(ttl / 10, 2 * ttl)});
  const Call call =
      locking_within("try_lock_for(" + ms_text(time) + ")", time, turn_);
  attempt(call, [&](DdbMutex& mutex, std::error_code& ec) {
    return mutex.try_lock_for(time, ec);
  });
}

void Steps::try_lock_for_ever() {
  Call call = locking("try_lock_for(ever)");
  call.waits = true;
  const bool in_hours = turn_.random.chance(0.5);
  attempt(call, [&](DdbMutex& mutex, std::error_code& ec) {
    return in_hours ? mutex.try_lock_for(hours::max(), ec)
                    : mutex.try_lock_for(nanoseconds::max(), ec);
  });
}

void Steps::try_lock_until() {
  const nanoseconds time = turn_.random.one_of<nanoseconds>(
      {-seconds(1), turn_.random.spread(milliseconds(1), seconds(10))});
  Call call =
      locking_within("try_lock_until(in " + ms_text(time) + ")", time, turn_);
  if (call.waits) call.of_one_try = of_one_try(turn_);
  attempt_until(call, BootClock::now() + time);
}

void Steps::try_lock_until_wall() {
  const nanoseconds time = turn_.random.spread(milliseconds(1), seconds(60));
  Call call = locking_within(
      "try_lock_until(wall clock in " + ms_text(time) + ")", time, turn_);
  call.of_one_try = of_one_try(turn_);
  // The clock may be set before the call reads it.
  call.open_ended = !program_.judge_.prompt();
  if (call.open_ended) call.limit = nanoseconds::max();
  attempt_until(call, WallClock::now() + time);
}

void Steps::any_of() {
  if (!program_.plan_.keep_row || program_.plan_.layout != Layout::ddblock ||
      program_.plan_.has_wrong_key()) {
    return hold();
  }
  program_.unlock_all(turn_.thread);
  OwnTable& own = program_.table(turn_.random.below(2));
  if (own.table == nullptr) return;
  if (own.any == nullptr) program_.make_any_of(own, turn_.mutex->options);
  if (own.any == nullptr) return;
  OwnTable table = own;  // Another thread may drop it meanwhile.
  std::unique_ptr<DdbMutex> any;
  if (program_.plan_.beat > nanoseconds::zero()) {
    const nanoseconds beat = program_.plan_.beat;
    program_.rest(beat - World::the().now() % beat);
  }
  const Time asked_for = World::the().now();
  take_any_of(table, any);
  if (any != nullptr) {
    turn_.mutex = program_.adopt(std::move(any), table.each, table, asked_for);
    Result result;
    result.got = true;
    if (got(result)) work(table.is_choosy);
  }
  const Inside inside;
  table = {};
}

namespace {

// How long a call of an AnyOf may take.
void set_limits(Call& call, nanoseconds time, const Plan& plan) {
  const nanoseconds request = call.request_timeout;
  if (call.for_ever) return;
  if (time > nanoseconds::zero()) {
    // Plus a try, and the release of an item that is not wanted any more.
    call.limit = time + 2 * request + milliseconds(200);
    return;
  }
  // "Takes request_timeout at most for the pass, and as long for each try."
  // `accept` may take its time too: once when the row is read, and once when
  // its lock is ours.
  call.limit = request + 2 * kSlowAccept;
  call.of_one_try = 2 * request;
  call.tries = 2 * plan.locks;
}

}  // namespace

void Steps::take_any_of(const OwnTable& table, std::unique_ptr<DdbMutex>& any) {
  const nanoseconds time = turn_.random.one_of<nanoseconds>(
      {nanoseconds(0), turn_.random.spread(milliseconds(10), seconds(20))});
  Call call;
  // lock() gets an item some time, because all others release theirs.
  call.for_ever =
      program_.plan_.jobs && !table.is_choosy && turn_.random.chance(0.3);
  call.what = call.for_ever ? "AnyOf::lock()"
                            : "AnyOf::try_lock_for(" + ms_text(time) + ")";
  call.table = table.watched;
  call.any_of = true;
  call.is_choosy = table.is_choosy;
  call.request_timeout = table.each.request_timeout.value_or(
      std::min(milliseconds(2000), table.each.ttl / 4));
  call.longest_poll = seconds(6);
  set_limits(call, time, program_.plan_);
  program_.call(call, turn_.random.chance(0.3), [&](std::error_code& ec) {
    any =
        call.for_ever ? table.any->lock(ec) : table.any->try_lock_for(time, ec);
    return any != nullptr;
  });
}

void Steps::work(bool is_choosy) {
  if (is_choosy && program_.judge_.prompt()) {
    const Inside inside;
    const bool is_done = turn_.mutex->mutex->data() == std::string(kDone);
    const Outside outside;
    if (is_done) {
      program_.judge_.wrong("AnyOf gives what is not wanted",
                            turn_.mutex->watched->lock);
    }
  }
  while_held();
  const bool beats = program_.plan_.beat > nanoseconds::zero();
  if (beats && program_.usable(turn_.mutex)) stay();
  if (turn_.random.chance(0.5) && turn_.mutex->locked == 1) {
    release_changes();
  }
  if (program_.usable(turn_.mutex)) program_.destroy(turn_.mutex);
}

void Steps::take_turn() {
  lock();
  if (turn_.mutex->locked == 0) return;
  program_.rest(program_.plan_.longest_hold);
  unlock();
  if (program_.makes_anew_) destroy();
}

// --- While it is held --------------------------------------------------------

void Steps::while_held() {
  static constexpr Step kSteps[] = {
      {30, &Steps::act},         {50, &Steps::stay},
      {5, &Steps::renew},        {3, &Steps::renew_changes},
      {5, &Steps::ensure},       {5, &Steps::require},
      {5, &Steps::ask},          {3, &Steps::lock_again},
      {10, &Steps::write},       {3, &Steps::write_oneself},
      {3, &Steps::cancel},       {2, &Steps::inspect},
      {2, &Steps::force_unlock}, {3, &Steps::stop_renewing},
  };
  act();
  for (auto left = turn_.random.below(4); left > 0; left--) {
    if (!program_.usable(turn_.mutex)) return;
    take_one(kSteps);
  }
}

void Steps::act() {
  if (!program_.usable(turn_.mutex)) return;
  DdbMutex& mutex = *turn_.mutex->mutex;
  std::error_code ec;
  bool owns = false;
  const OwnMutexPtr own = turn_.mutex;
  own->calls++;  // So another thread does not destroy it meanwhile.
  {
    const Inside inside;
    if (turn_.random.chance(0.5)) {
      owns = mutex.owns_lock();
    } else {
      mutex.require(nanoseconds(1), ec);
      owns = !ec;
    }
  }
  if (--own->calls == 0) World::the().notify(own.get());
  if (owns) program_.judge_.act();
}

void Steps::stay() {
  const Options& options = turn_.mutex->options;
  const nanoseconds ttl = options.ttl;
  const nanoseconds most =
      std::min(program_.plan_.longest_hold, kLongestHoldInTtls * ttl);
  const nanoseconds time =
      turn_.random.spread(program_.plan_.shortest_hold,
                          std::max(most, 2 * program_.plan_.shortest_hold));
  if (options.auto_renew || turn_.random.chance(0.3)) {
    program_.say("holds for " + ms_text(time));
    return program_.rest(time);
  }
  for (nanoseconds left = std::min(time, 10 * ttl);
       left > nanoseconds::zero() && program_.usable(turn_.mutex);
       left -= ttl / 3) {
    program_.rest(std::min(left, ttl / 3));
    renew();
  }
}

void Steps::renew() {
  Call call;
  call.what = "renew()";
  call.renews = true;
  call.limit = of_patience(turn_);
  program_.call(turn_, call, [](DdbMutex& mutex, std::error_code& ec) {
    mutex.renew(ec);
    return !ec;
  });
}

void Steps::stop_renewing() {
  Call call;
  call.what = "stop_renewing()";
  call.limit = nanoseconds::zero();
  call.stops_renewing = true;
  program_.call(turn_, call, [](DdbMutex& mutex, std::error_code&) {
    mutex.stop_renewing();
    return true;
  });
}

// "What was stored when the lock was taken, with the changes made since."
void Steps::check_data(const Changes& changes, Time began) {
  const OwnMutex& own = *turn_.mutex;
  if (!program_.usable(turn_.mutex) || !program_.judge_.prompt() ||
      own.holder != turn_.thread || own.watched->unlocked >= began) {
    return;
  }
  const Inside inside;
  if (own.mutex->data() != changes.data) {
    const Outside outside;
    program_.judge_.wrong("data() is not what it was changed to",
                          own.watched->lock);
  }
}

void Steps::renew_changes() {
  Changes changes;
  changes.data = "changed " + std::to_string(turn_.random.below(1000));
  if (turn_.random.chance(0.3)) changes.remove.push_back("shoe");
  Call call;
  call.what = "renew(changes)";
  call.renews = call.changes = true;
  call.limit = of_patience(turn_);
  const Time began = World::the().now();
  const Result result =
      program_.call(turn_, call, [&](DdbMutex& mutex, std::error_code& ec) {
        mutex.renew(changes, ec);
        return !ec;
      });
  if (!result.code) check_data(changes, began);
}

void Steps::ensure() {
  const nanoseconds ttl = turn_.mutex->watched->ttl;
  const nanoseconds time = turn_.random.between({}, ttl);
  Call call;
  call.what = "ensure(" + ms_text(time) + ")";
  call.renews = true;
  call.ensures = time;
  call.limit = of_patience(turn_);
  program_.call(turn_, call, [&](DdbMutex& mutex, std::error_code& ec) {
    mutex.ensure(time, ec);
    return !ec;
  });
}

void Steps::require() {
  const nanoseconds ttl = turn_.mutex->watched->ttl;
  const nanoseconds time = turn_.random.between({}, ttl);
  Call call;
  call.what = "require(" + ms_text(time) + ")";
  call.ensures = time;
  call.limit = nanoseconds::zero();
  program_.call(turn_, call, [&](DdbMutex& mutex, std::error_code& ec) {
    throws(ec) ? mutex.require(time) : mutex.require(time, ec);
    return !ec;
  });
}

void Steps::lock_again() {
  Call call = locking("lock() again");
  const bool is_ours = turn_.mutex->holder == turn_.thread;
  // lock() returns at once, unless another thread unlocks it meanwhile.
  call.for_ever =
      program_.judge_.prompt() && is_ours && turn_.random.chance(0.5);
  if (call.for_ever) call.limit = nanoseconds::zero();
  attempt(call, [&](DdbMutex& mutex, std::error_code& ec) {
    if (!call.for_ever) return mutex.try_lock_for(seconds(1), ec);
    mutex.lock(ec);
    return !ec;
  });
}

namespace {

// The items of a guarded write: one counts how often the write was made, the
// other stores the token.
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

void Steps::write() {
  WatchedMutex& watched = *turn_.mutex->watched;
  const std::uint64_t token = token_of(*turn_.mutex->mutex);
  if (!program_.usable(turn_.mutex)) return;
  Call call;
  call.what = "guarded_write()";
  // It renews the lease if the row is not ours.
  call.renews = true;
  call.has_condition = turn_.random.chance(0.1);
  // "Transient errors are retried for `patience`, but for at most 9 minutes."
  // After that it renews a lock that seems to be lost.
  call.limit =
      watched.request_timeout +
      std::max<nanoseconds>(
          watched.request_timeout,
          std::min<nanoseconds>(watched.patience, std::chrono::minutes(9)));
  const int number = program_.judge_.write_begins(watched, token);
  const std::string items =
      "[" + items_of_write(number, watched.lock, token, call.has_condition) +
      "]";
  const Result result =
      program_.call(turn_, call, [&](DdbMutex& mutex, std::error_code& ec) {
        guarded_write(mutex, items, ec);
        return !ec;
      });
  program_.judge_.write_ends(number, result);
}

void Steps::write_oneself() {
  WatchedMutex& watched = *turn_.mutex->watched;
  const std::uint64_t token = token_of(*turn_.mutex->mutex);
  if (!program_.usable(turn_.mutex)) return;
  std::string check;
  Call call;
  call.what = "condition_check()";
  const Result result =
      program_.call(turn_, call, [&](DdbMutex& mutex, std::error_code& ec) {
        check = condition_check(mutex, ec);
        return !ec;
      });
  if (result.code || check.empty()) return;
  const int number = program_.judge_.write_begins(watched, token);
  const std::string body =
      R"({"ClientRequestToken":"own-)" + std::to_string(number) +
      R"(","TransactItems":[{"ConditionCheck":)" + check + "}," +
      items_of_write(number, watched.lock, token, false) + "]}";
  Network::the().ask("TransactWriteItems", body, seconds(5));
}

// --- Letting go --------------------------------------------------------------

void Steps::let_go() {
  static constexpr Step kSteps[] = {
      {60, &Steps::unlock},         {15, &Steps::release},
      {5, &Steps::release_changes}, {5, &Steps::leave_locked},
      {5, &Steps::destroy},
  };
  while (program_.usable(turn_.mutex) && turn_.mutex->holder == turn_.thread) {
    const int locked = turn_.mutex->locked;
    take_one(kSteps);
    if (turn_.mutex->locked >= locked) return;
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

void Steps::unlock() {
  note_unlock(*turn_.mutex);
  program_.call(turn_, letting_go("unlock()", turn_),
                [](DdbMutex& mutex, std::error_code&) {
                  mutex.unlock();
                  return true;
                });
  const bool once_more = turn_.random.chance(0.1) && program_.judge_.prompt() &&
                         program_.usable(turn_.mutex) &&
                         turn_.mutex->locked == 0;
  if (once_more) unlock();
}

void Steps::release() {
  note_unlock(*turn_.mutex);
  program_.call(turn_, letting_go("release()", turn_),
                [&](DdbMutex& mutex, std::error_code& ec) {
                  throws(ec) ? mutex.release() : mutex.release(ec);
                  return !ec;
                });
}

void Steps::release_changes() {
  Changes changes;
  changes.data = turn_.random.chance(0.3)
                     ? kDone
                     : "left by " + std::to_string(program_.own_.number);
  if (!program_.plan_.keep_row || turn_.mutex->locked != 1) {
    return unlock();
  }
  note_unlock(*turn_.mutex);
  const Result result =
      program_.call(turn_, letting_go("release(changes)", turn_),
                    [&](DdbMutex& mutex, std::error_code& ec) {
                      mutex.release(changes, ec);
                      return !ec;
                    });
  // Then it is still locked.
  if (result.code == std::errc::not_enough_memory) unlock();
}

void Steps::leave_locked() { program_.say("leaves it locked"); }

void Steps::destroy() {
  if (!program_.usable(turn_.mutex)) return;
  // A callback must not wait for calls that may wait for it.
  if (turn_.in_callback && turn_.mutex->calls > 0) return;
  turn_.mutex->locked = 0;
  turn_.mutex->holder = -1;
  program_.destroy(turn_.mutex);
}

void Steps::unlock_another() {
  // An unlock() too many does nothing.
  if (turn_.mutex->locked > 0 || program_.judge_.prompt()) unlock();
}

// --- Anytime -----------------------------------------------------------------

void Steps::rest() {
  const nanoseconds most =
      std::max(program_.plan_.longest_rest, nanoseconds(2000));
  const auto at_most = [most](nanoseconds ttl, int times) {
    // A ttl of a year, so often, is more than there are nanoseconds.
    return ttl < most / times ? times * ttl : most;
  };
  nanoseconds longest = at_most(turn_.mutex->options.ttl, kLongestRestInTtls);
  // Others may ask for what is held meanwhile.
  for (const OwnMutexPtr& one : program_.slots_) {
    if (one == nullptr || one->locked == 0) continue;
    longest = std::min(longest, at_most(one->options.ttl, kLongestHoldInTtls));
  }
  const nanoseconds time =
      std::min(turn_.random.spread(nanoseconds(1000), most), longest);
  program_.say("rests for " + ms_text(time));
  program_.rest(time);
}

void Steps::ask() {
  Call call;
  call.what = "asks this and that";
  call.limit = nanoseconds::zero();
  const WatchedMutex& watched = *turn_.mutex->watched;
  program_.call(turn_, call, [&](DdbMutex& mutex, std::error_code&) {
    (void)mutex.owns_lock();
    (void)mutex.remaining();
    (void)mutex.in_danger();
    (void)mutex.fencing_token();
    program_.judge_.told_data(watched, mutex.data());
    (void)mutex.item();
    (void)mutex.last_error();
    (void)mutex.owner();
    return true;
  });
}

void Steps::cancel() {
  if (!program_.usable(turn_.mutex)) return;
  WatchedMutex& watched = *turn_.mutex->watched;
  program_.judge_.cancel_begins(watched);
  Call call;
  call.what = "cancel()";
  call.limit = nanoseconds::zero();
  program_.call(turn_, call, [](DdbMutex& mutex, std::error_code&) {
    mutex.cancel();
    return true;
  });
  program_.judge_.cancel_ends(watched);
}

namespace {

// A call of a table.  The table lives on if its program drops it meanwhile.
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

void Steps::inspect() {
  TableCall one(turn_.mutex, "inspect(" + turn_.mutex->watched->lock + ")");
  if (one.table == nullptr) return;
  one.call.needs_key = true;
  const std::string name = turn_.mutex->watched->lock;
  program_.call(one.call, turn_.random.chance(0.3), [&](std::error_code& ec) {
    return one.table->inspect(name, ec).exists;
  });
}

void Steps::list() {
  TableCall one(turn_.mutex, "list()");
  if (one.table == nullptr) return;
  one.call.needs_key = true;
  std::map<std::string, int> listed;
  one.call.listed = &listed;
  program_.call(one.call, turn_.random.chance(0.3), [&](std::error_code& ec) {
    list_locks(
        *one.table,
        [&](const LockInfo& info) {
          const Outside outside;
          listed[info.name]++;
          return true;
        },
        ec);
    return !ec;
  });
}

void Steps::exists() {
  TableCall one(turn_.mutex, "exists()");
  if (one.table == nullptr) return;
  program_.call(one.call, turn_.random.chance(0.3), [&](std::error_code& ec) {
    return ddbmutex::table_exists(*one.table, ec);
  });
}

void Steps::force_unlock() {
  TableCall one(turn_.mutex,
                "force_unlock(" + turn_.mutex->watched->lock + ")");
  if (one.table == nullptr) return;
  const std::string name = turn_.mutex->watched->lock;
  if (name == kOddLock) return;  // It might be another's lock.
  one.call.bad_option = true;    // So it is if nothing was held.
  program_.judge_.may_force(name);
  program_.call(one.call, turn_.random.chance(0.3), [&](std::error_code& ec) {
    const LockInfo info = one.table->inspect(name, ec);
    if (ec || !info.exists) return false;
    return ddbmutex::force_unlock(*one.table, info, ec);
  });
}

void Steps::close() {
  TableCall one(turn_.mutex, "close()");
  if (one.table == nullptr) return;
  const nanoseconds within = turn_.random.spread(milliseconds(1), seconds(10));
  one.call.limit = within;
  program_.judge_.closing(*turn_.mutex->watched_table);
  program_.call(one.call, false, [&](std::error_code&) {
    return one.table->close(ms(within)).empty();
  });
  // Later mutexes get another table.
  for (std::size_t i = 0; i < program_.tables_.size(); i++) {
    if (program_.tables_[i].table == one.table) program_.destroy_table(i);
  }
  for (OwnMutexPtr& mutex : program_.slots_) {
    if (mutex != nullptr && mutex->table == one.table) mutex = nullptr;
  }
}

// Only the main thread goes on in the child.
void Steps::fork() {
  if (!program_.forks_ || turn_.thread != 0) return;
  World& world = World::the();
  Process& parent = world.process();
  world.become_forked_child();
  program_.forked_ = true;
  for (const OwnMutexPtr& mutex : program_.all_) {
    mutex->calls = mutex->locked = 0;
    mutex->holder = -1;
  }
  program_.judge_.forked(parent, world.process());
}

// --- In callbacks ------------------------------------------------------------

void Steps::sleep() {
  const nanoseconds ttl = turn_.mutex->watched->ttl;
  World::the().sleep(turn_.random.spread(milliseconds(1), ttl));
}

void Steps::other_mutex() {
  const OwnMutexPtr other =
      program_.slots_[turn_.random.below(program_.slots_.size())];
  if (other == nullptr || !program_.usable(other)) return;
  const bool same_table = other->watched_table == turn_.mutex->watched_table;
  turn_.mutex = other;
  static constexpr Step kSteps[] = {
      {10, &Steps::unlock},  {10, &Steps::renew},  {10, &Steps::cancel},
      {10, &Steps::destroy}, {5, &Steps::inspect},
  };
  if (turn_.random.chance(0.5)) return take_one(kSteps);
  // "A lock() that would wait for another thread of this process is refused
  // there."
  if (same_table && program_.judge_.prompt() && other->holder >= 0) {
    return lock();
  }
  if (lock_somehow(false)) unlock();
}

// lock(), while another thread of this process has the mutex.
void Steps::lock_in_callback() {
  if (turn_.mutex->holder >= 0 && program_.judge_.prompt()) lock();
}

void Steps::throw_it() { throw std::runtime_error("a callback throws"); }

}  // namespace world
