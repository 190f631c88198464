// What the rounds are about: every public call, what the library's threads do,
// and ends of objects.  Each scenario sets up with allocations that work, arms
// the failure, does what it is named after, and judges.
#ifndef DDBMUTEX_TESTS_ALLOCATIONS_SCENARIOS_HPP
#define DDBMUTEX_TESTS_ALLOCATIONS_SCENARIOS_HPP

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/any_of.hpp"
#include "tests/allocations/round.hpp"

namespace allocations {

using ddbmutex::AnyOf;
using ddbmutex::AnyOfOptions;
using ddbmutex::Attribute;
using ddbmutex::Changes;
using ddbmutex::Layout;
using ddbmutex::Loss;
using std::chrono::hours;
using std::chrono::seconds;

// Where the locks of a scenario are.
enum class Place {
  engine,
  late,    // Answers to a PutItem come 150 ms after it was done.
  losing,  // Of three answers one is lost with its connection.
  https,
};

struct Scenario {
  const char* name;
  void (*play)(Round& round);
  Place place = Place::engine;
  // Each round in a process of its own: what is made once is met, too.
  bool fresh = false;
};

namespace scenario {

// A thread of the test's own, which ends before its round does.
class Beside {
 public:
  template <class Body>
  explicit Beside(Body body)
      : thread_([body = std::move(body)] {
          const Counting quiet(false);
          body();
        }) {}
  ~Beside() { join(); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

// Long enough for another thread to come to rest in a call; no verdict depends
// on it.
constexpr milliseconds kAMoment{4};
// In which the library's threads renew a lease several times.
constexpr milliseconds kAWhile{150};

inline Changes some_changes() {
  Changes changes;
  changes.data = "data that is longer than a short string";
  changes.attributes = {{"colour", Attribute::Type::string, "ultramarine", {}}};
  return changes;
}

// --- Objects -----------------------------------------------------------------

inline void make_table(Round& round) {
  TableOptions options = round.table_options();
  options.logger = [](ddbmutex::LogLevel, const std::string&) {};
  std::shared_ptr<Table> table;
  round.arm();
  const Ended ended = round.attempt(
      "Table()", [&] { table = std::make_shared<Table>(options); });
  round.disarm();
  if (!ended.well()) table = std::make_shared<Table>(options);
  DdbMutex mutex(round.name(), round.options(table));
  round.expect_usable(mutex);
}

inline void make_mutex(Round& round) {
  const std::shared_ptr<Table> table = round.warm_table();
  Options options = round.options(table);
  options.on_lost = [](Loss) {};
  options.owner = "an owner that is longer than a short string";
  std::unique_ptr<DdbMutex> mutex;
  round.arm();
  const Ended ended = round.attempt("DdbMutex()", [&] {
    mutex = std::make_unique<DdbMutex>(round.name(), options);
  });
  round.disarm();
  if (!ended.well()) mutex = std::make_unique<DdbMutex>(round.name(), options);
  round.expect_usable(*mutex);
}

// Told what is wrong with it.
inline void make_bad_mutex(Round& round) {
  Options options = round.options(round.warm_table());
  options.ttl = milliseconds(1);
  round.arm();
  const Ended ended = round.attempt(
      "DdbMutex()", [&] { const DdbMutex mutex(round.name(), options); },
      Errc::bad_option);
  round.disarm();
  round.expect(!ended.well(), "a bad option was taken");
}

inline void destroy_held_mutex(Round& round) {
  const std::shared_ptr<Table> table = round.warm_table();
  auto mutex = std::make_unique<DdbMutex>(round.name(), round.options(table));
  mutex->lock();
  round.arm();
  round.attempt("~DdbMutex()", [&] { mutex.reset(); });
  round.disarm();
  round.expect_free();
  DdbMutex again(round.name(), round.options(table));
  round.expect_usable(again);
}

inline void destroy_table_and_held_mutex(Round& round) {
  auto mutex = std::make_unique<DdbMutex>(round.name(),
                                          round.options(round.warm_table()));
  mutex->lock();
  round.arm();
  round.attempt("~DdbMutex() and ~Table()", [&] { mutex.reset(); });
  round.disarm();
  round.expect_free();
}

// --- lock() ------------------------------------------------------------------

// `locked`: what the call has returned.
inline void judge_lock(Round& round, DdbMutex& mutex, const Ended& ended,
                       bool locked) {
  round.disarm();
  if (ended.well() && !locked) {
    round.wrong("a lock that was free was not taken, and no error was told");
  } else if (ended.well()) {
    round.expect_held(mutex);
    std::error_code ec;
    mutex.release(ec);
    if (ec && round.reliable()) {
      round.wrong("it cannot be unlocked: " + mutex.last_error());
    }
  } else if (mutex.owns_lock()) {
    round.wrong("the call failed, and the lock is held: " + ended.text);
    mutex.unlock();
  }
  round.expect_free();
  round.expect_usable(mutex);
}

inline void lock_at(Round& round, std::shared_ptr<Table> table) {
  DdbMutex mutex(round.name(), round.options(std::move(table)));
  round.arm();
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  judge_lock(round, mutex, ended, true);
}

inline void lock_warm(Round& round) { lock_at(round, round.warm_table()); }
inline void lock_cold(Round& round) { lock_at(round, round.cold_table()); }

inline void lock_with_code(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  round.arm();
  const Ended ended = round.attempt("lock(ec)", [&] {
    std::error_code ec;
    mutex.lock(ec);
    return ec;
  });
  judge_lock(round, mutex, ended, true);
}

// The second of a mutex: all it needs is there.
inline void lock_again(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  mutex.lock();
  mutex.unlock();
  round.arm();
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  judge_lock(round, mutex, ended, true);
}

inline void lock_with_all_options(Round& round) {
  Options options = round.options(round.warm_table());
  options.keep_row = true;
  options.fencing = true;
  options.data = "data that is longer than a short string";
  options.attributes = some_changes().attributes;
  options.on_lost = [](Loss) {};
  options.on_danger = [] {};
  options.alive = [] { return true; };
  DdbMutex mutex(round.name(), options);
  round.arm();
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  round.disarm();
  if (ended.well()) {
    round.expect(mutex.fencing_token() >= 1, "there is no fencing token");
    round.expect(mutex.data() == options.data, "the data is not there");
  }
  judge_lock(round, mutex, ended, true);
}

inline void try_lock_free(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  bool locked = false;
  round.arm();
  const Ended ended =
      round.attempt("try_lock()", [&] { locked = mutex.try_lock(); });
  judge_lock(round, mutex, ended, locked);
}

template <class Call>
void try_held(Round& round, const char* what, const Call& call) {
  DdbMutex other(round.name(), round.others_options());
  other.lock();
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  bool locked = false;
  round.arm();
  const Ended ended = round.attempt(what, [&] { locked = call(mutex); });
  round.disarm();
  round.expect(!(ended.well() && locked), "a lock was taken that is held");
  round.expect_held(other);
  other.unlock();
  round.expect_usable(mutex);
}

inline void try_lock_held(Round& round) {
  try_held(round, "try_lock()", [](DdbMutex& one) { return one.try_lock(); });
}
inline void try_lock_for_held(Round& round) {
  try_held(round, "try_lock_for()",
           [](DdbMutex& one) { return one.try_lock_for(milliseconds(80)); });
}

// A holder that has died: its lease is waited out.
inline void lock_of_the_dead(Round& round) {
  Options dead = round.others_options();
  dead.ttl = milliseconds(100);
  dead.request_timeout = milliseconds(40);
  dead.renew_after.reset();
  dead.auto_renew = false;
  DdbMutex other(round.name(), dead);
  std::error_code ec;
  other.lock(ec);
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  bool locked = false;
  round.arm();
  const Ended ended = round.attempt("try_lock_past_lease()", [&] {
    locked = mutex.try_lock_past_lease(kSoon);
  });
  other.unlock();  // If it is not taken, the row is the dead holder's.
  judge_lock(round, mutex, ended, locked);
}

// Another host lets go while we look.
inline void wait_for_another_host(Round& round) {
  DdbMutex other(round.name(), round.others_options());
  other.lock();
  Options options = round.options(round.warm_table());
  options.first_poll = options.longest_poll = milliseconds(5);
  DdbMutex mutex(round.name(), options);
  round.arm();
  Beside release([&] {
    round.leave_alone(milliseconds(20));
    other.unlock();
  });
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  release.join();
  judge_lock(round, mutex, ended, true);
}

// Two threads of one mutex: it is handed over, or taken anew.
inline void lock_in_line(Round& round, int handover_limit) {
  Options options = round.options(round.warm_table());
  options.handover_limit = handover_limit;
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  Beside second([&] {
    const Ended ended = round.attempt("lock() in line", [&] { mutex.lock(); });
    if (!ended.well()) return;
    round.expect(mutex.owns_lock(), "what lock() has got in line is not held");
    round.attempt("unlock()", [&] { mutex.unlock(); });
  });
  tests::pause(kAMoment);
  round.attempt("unlock()", [&] { mutex.unlock(); });
  second.join();
  round.disarm();
  round.expect(!mutex.owns_lock(), "the lock is held by nobody");
  round.expect_free();
  round.expect_usable(mutex);
}

inline void lock_handed_over(Round& round) { lock_in_line(round, 16); }
inline void lock_passed_on(Round& round) { lock_in_line(round, 0); }

inline void cancel(Round& round) {
  DdbMutex other(round.name(), round.others_options());
  other.lock();
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  std::atomic<bool> ended{false};
  round.arm();
  Beside waiter([&] {
    const Ended how = round.attempt(
        "lock()", [&] { mutex.lock(); }, Errc::cancelled);
    ended = true;
    round.expect(!how.well(), "a lock was taken that is held");
  });
  tests::pause(kAMoment);
  // It ends the waits that are under way by then.
  while (!ended) {
    round.attempt("cancel()", [&] { mutex.cancel(); });
    tests::pause(milliseconds(1));
  }
  waiter.join();
  round.disarm();
  other.unlock();
  round.expect_usable(mutex);
}

inline void recursive(Round& round) {
  Options options = round.options(round.warm_table());
  options.recursive = true;
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  const Ended ended = round.attempt("lock() again", [&] { mutex.lock(); });
  if (ended.well()) {
    round.attempt("inner unlock()", [&] { mutex.unlock(); });
  }
  round.expect(mutex.owns_lock(), "the outer level is lost");
  round.attempt("unlock()", [&] { mutex.unlock(); });
  round.disarm();
  round.expect_free();
  round.expect_usable(mutex);
}

// --- Giving back -------------------------------------------------------------

// Once a call that was to give it back has returned.
inline void judge_release(Round& round, DdbMutex& mutex, const Ended& ended) {
  round.disarm();
  if (ended.well()) {
    round.expect(!mutex.owns_lock(), "what was given back is still held");
  } else if (mutex.owns_lock()) {
    std::error_code ec;
    mutex.release(ec);
    if (ec) round.wrong("it cannot be unlocked: " + mutex.last_error());
  }
  round.expect_free();
  round.expect_usable(mutex);
}

inline void unlock(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  mutex.lock();
  round.arm();
  round.attempt("unlock()", [&] { mutex.unlock(); });
  judge_release(round, mutex, {});
}

inline void release(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  mutex.lock();
  round.arm();
  const Ended ended = round.attempt("release()", [&] { mutex.release(); });
  judge_release(round, mutex, ended);
}

inline void release_with_code(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  mutex.lock();
  round.arm();
  const Ended ended = round.attempt("release(ec)", [&] {
    std::error_code ec;
    mutex.release(ec);
    return ec;
  });
  judge_release(round, mutex, ended);
}

// It has an error to tell.
inline void release_without_lock(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  mutex.lock();
  mutex.unlock();
  round.arm();
  const Ended ended = round.attempt(
      "release(ec)",
      [&] {
        std::error_code ec;
        mutex.release(ec);
        return ec;
      },
      Errc::not_held);
  round.disarm();
  round.expect(!ended.well(), "what is not held was released");
  round.expect_usable(mutex);
}

inline void release_with_changes(Round& round) {
  Options options = round.options(round.warm_table());
  options.keep_row = true;
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  const Changes changes = some_changes();
  round.arm();
  const Ended ended =
      round.attempt("release(changes)", [&] { mutex.release(changes); });
  round.disarm();
  if (ended.well()) {
    round.expect(round.row().data == changes.data, "the change is not stored");
  }
  judge_release(round, mutex, ended);
}

inline void close_table(Round& round) {
  const std::shared_ptr<Table> table = round.warm_table();
  std::vector<std::unique_ptr<DdbMutex>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::make_unique<DdbMutex>(
        round.name() + "-" + std::to_string(i), round.options(table)));
    all.back()->lock();
  }
  round.arm();
  round.attempt("close()", [&] { table->close(); });
  round.disarm();
  for (const auto& mutex : all) {
    round.expect(!mutex->owns_lock(), "a lock of a closed table is held");
    round.expect_free(mutex->name());
  }
  for (const auto& mutex : all) mutex->unlock();
  std::error_code ec;
  all.front()->lock(ec);
  if (ec != Errc::closed) {
    round.wrong("lock() at a closed table says: " + ec.message());
  }
}

// --- While it is held --------------------------------------------------------

template <class Call>
void while_held(Round& round, const char* what, const Call& call,
                std::error_code wanted = {}, bool keep_row = false) {
  Options options = round.options(round.warm_table());
  options.keep_row = keep_row;
  options.owner = "an owner that is longer than a short string";
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  const Ended ended = round.attempt(
      what, [&] { return call(mutex); }, wanted);
  round.disarm();
  if (ended.well() && wanted) round.wrong(std::string(what) + " did not fail");
  round.expect_held(mutex);
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

inline void renew(Round& round) {
  while_held(round, "renew()", [](DdbMutex& mutex) { mutex.renew(); });
}

inline void renew_with_code(Round& round) {
  while_held(round, "renew(ec)", [](DdbMutex& mutex) {
    std::error_code ec;
    mutex.renew(ec);
    return ec;
  });
}

// Nobody else renews it.
inline void renew_by_hand(Round& round) {
  Options options = round.options(round.warm_table());
  options.renew_after.reset();
  options.auto_renew = false;
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  round.attempt("renew()", [&] { mutex.renew(); });
  round.disarm();
  std::error_code ec;
  mutex.renew(ec);
  if (ec) round.wrong("it cannot be renewed again: " + mutex.last_error());
  round.expect(mutex.owns_lock(), "the lock is not held any more");
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

inline void renew_with_changes(Round& round) {
  const Changes changes = some_changes();
  while_held(
      round, "renew(changes)",
      [&](DdbMutex& mutex) {
        mutex.renew(changes);
        const Counting quiet(false);
        round.expect(mutex.data() == changes.data, "the change is not told");
        round.expect(round.row().data == changes.data,
                     "the change is not stored");
      },
      {}, true);
}

// What is asked for is about what a renewal brings: it may be a little less.
inline void ensure(Round& round) {
  while_held(round, "ensure()", [](DdbMutex& mutex) {
    std::error_code ec;
    mutex.ensure(mutex.remaining(), ec);
    return ec == Errc::ends_too_soon ? std::error_code() : ec;
  });
}

inline void require(Round& round) {
  while_held(
      round, "require()", [](DdbMutex& mutex) { mutex.require(hours(1)); },
      Errc::ends_too_soon);
}

inline void require_with_code(Round& round) {
  while_held(
      round, "require(ec)",
      [](DdbMutex& mutex) {
        std::error_code ec;
        mutex.require(hours(1), ec);
        return ec;
      },
      Errc::ends_too_soon);
}

inline void questions(Round& round) {
  while_held(
      round, "data() and its like",
      [](DdbMutex& mutex) {
        static_cast<void>(mutex.owns_lock());
        static_cast<void>(mutex.remaining());
        static_cast<void>(mutex.in_danger());
        static_cast<void>(mutex.fencing_token());
        static_cast<void>(mutex.name());
        static_cast<void>(mutex.owner());
        static_cast<void>(mutex.last_error());
        static_cast<void>(mutex.data());
        static_cast<void>(mutex.attributes());
      },
      {}, true);
}

inline void condition_check(Round& round) {
  while_held(
      round, "condition_check()",
      [](DdbMutex& mutex) { static_cast<void>(mutex.condition_check()); }, {},
      true);
}

inline void guarded_write(Round& round) {
  const std::string other = round.name() + "-other";
  const std::string items = R"([{"Put":{"TableName":")" +
                            round.site().where().table +
                            R"(","Item":{"name":{"S":"ddblock-)" + other +
                            R"("},"value":{"S":"written"}}}}])";
  while_held(
      round, "guarded_write()",
      [&](DdbMutex& mutex) {
        mutex.guarded_write(items);
        const Counting quiet(false);
        round.expect(!round.row_of(other).attributes.empty(),
                     "what was to be written is not there");
      },
      {}, true);
}

// By the library's threads.
inline void renewals(Round& round) {
  Options options = round.options(round.warm_table());
  options.renew_after = milliseconds(20);
  options.alive = [] { return true; };
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  round.leave_alone(kAWhile);
  round.disarm();
  round.expect_held(mutex);
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

inline void renewals_of_many(Round& round) {
  Options options = round.options(round.warm_table());
  options.renew_after = milliseconds(20);
  std::vector<std::unique_ptr<DdbMutex>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::make_unique<DdbMutex>(
        round.name() + "-" + std::to_string(i), options));
    all.back()->lock();
  }
  round.arm();
  round.leave_alone(kAWhile / 3);
  round.disarm();
  for (const auto& mutex : all) {
    round.expect_held(*mutex);
    mutex->unlock();
    round.expect_free(mutex->name());
  }
}

// --- Losses and callbacks ----------------------------------------------------

struct Heard {
  std::atomic<int> losses{0};
  std::atomic<int> dangers{0};
  std::atomic<Loss> loss{Loss::expired};
};

// A callback that needs no memory once it is there.
inline void listen(Options& options, Heard& heard) {
  options.on_lost = [&heard](Loss loss) {
    heard.loss = loss;
    ++heard.losses;
  };
  options.on_danger = [&heard] { ++heard.dangers; };
}

inline void judge_loss(Round& round, DdbMutex& mutex, const Heard& heard,
                       Loss wanted) {
  round.expect(tests::eventually([&] { return heard.losses > 0; }, kSoon),
               "a loss is not told");
  round.disarm();
  round.expect(heard.losses <= 1, "a loss is told twice");
  round.expect(heard.losses == 0 || heard.loss == wanted,
               "a loss is told as another");
  round.expect(!mutex.owns_lock(), "a lock is held that was lost");
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

inline void lost_by_deletion(Round& round, const TableOptions& where) {
  Heard heard;
  Options options = round.options(round.warm(where));
  options.renew_after = milliseconds(20);
  listen(options, heard);
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  const LockInfo held = round.row();
  round.arm();
  round.site().observer()->force_unlock(held);
  round.leave_alone(kAMoment);
  std::error_code ec;  // It may have been renewed in between.
  for (int i = 0; i < 100 && !round.is_free(round.name()); ++i) {
    round.site().observer()->force_unlock(round.row(), ec);
  }
  judge_loss(round, mutex, heard, Loss::deleted);
}

inline void loss(Round& round) {
  lost_by_deletion(round, round.table_options());
}

// An item with more values than are read, in an answer of 81 KB.  (An engine
// takes its time for more.)
inline Options with_a_large_item(Options options) {
  Attribute list{"note", Attribute::Type::list, "", {}};
  list.members.resize(9000);
  options.attributes = {std::move(list)};
  options.renew_after.reset();
  options.auto_renew = false;
  return options;
}

// Somebody has replaced the holder's item: each refused renewal is answered
// with the whole new item.
inline void loss_to_a_large_item(Round& round) {
  Heard heard;
  Options options = round.options(round.warm_table());
  options.renew_after = milliseconds(600);  // Once the other's item is there.
  listen(options, heard);
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  DdbMutex other(round.name(), with_a_large_item(round.others_options()));
  // A renewal in between changes the row that was looked at.
  round.expect(
      tests::eventually(
          [&] { return round.site().observer()->force_unlock(round.row()); },
          kSoon),
      "it cannot be freed by force");
  other.lock();
  round.arm();
  round.expect(tests::eventually([&] { return heard.losses > 0; }, kSoon),
               "a loss is not told");
  round.disarm();
  round.expect(heard.losses == 1, "a loss is told twice");
  round.expect(!mutex.owns_lock(), "a lock is held that was lost");
  mutex.unlock();
  round.expect(other.owns_lock(), "a lock that is held was given back");
  other.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

// One that another has locked.
template <class Call>
void with_large_item(Round& round, const char* what, const Call& call) {
  DdbMutex other(round.name(), with_a_large_item(round.others_options()));
  other.lock();
  const std::shared_ptr<Table> table = round.warm_table();
  round.arm();
  round.attempt(what, [&] { call(table); });
  round.disarm();
  round.expect(other.owns_lock(), "a lock that is held was given back");
  other.unlock();
  round.expect_free();
  DdbMutex mutex(round.name(), round.options(table));
  round.expect_usable(mutex);
}

inline void try_lock_of_a_large_item(Round& round) {
  with_large_item(round, "try_lock()", [&](const auto& table) {
    DdbMutex mutex(round.name(), round.options(table));
    round.expect(!mutex.try_lock(), "a lock was taken that is held");
  });
}

inline void inspect_a_large_item(Round& round) {
  with_large_item(round, "inspect()", [&](const auto& table) {
    const LockInfo info = table->inspect(round.name());
    round.expect(info.exists, "a lock that is held is not seen");
    round.expect(!info.problem.empty(), "nothing is said of what is not told");
  });
}

inline void any_of_a_large_item(Round& round) {
  with_large_item(round, "AnyOf::try_lock()", [&](const auto& table) {
    AnyOfOptions options;
    options.each = round.options(table);
    options.prefix = round.name();
    options.read = {"note"};
    AnyOf any(options);
    round.expect(any.try_lock() == nullptr, "a lock was taken that is held");
  });
}

inline void loss_with_logger(Round& round) {
  std::atomic<int> lines{0};
  TableOptions options = round.table_options();
  options.logger = [&lines](ddbmutex::LogLevel, const std::string&) {
    ++lines;
  };
  lost_by_deletion(round, options);
}

// A lease that nobody renews: danger, and then its end.
inline void expiry(Round& round) {
  Heard heard;
  Options options = round.options(round.warm_table());
  options.ttl = milliseconds(100);
  options.safe_time = milliseconds(40);
  options.renew_after = milliseconds(10);
  options.request_timeout = milliseconds(45);
  options.alive = [] { return false; };
  listen(options, heard);
  DdbMutex mutex(round.name(), options);
  std::error_code ec;
  mutex.lock(ec);
  if (ec) return;  // A machine that is busy: the round says nothing.
  round.arm();
  judge_loss(round, mutex, heard, Loss::expired);
  round.expect(heard.dangers <= 1, "a danger is told twice");
}

// --- Keys --------------------------------------------------------------------

inline void keys_of_a_source(Round& round) {
  TableOptions options = round.table_options();
  const ddbmutex::Credentials keys = std::exchange(options.credentials, {});
  options.credentials_source = [keys] {
    ddbmutex::Credentials some = keys;
    some.expires = std::chrono::system_clock::now() + hours(1);
    return std::optional(some);
  };
  lock_at(round, std::make_shared<Table>(options));
}

// A file, and the chain of places where keys are looked for.
inline void keys_of_a_profile(Round& round) {
  for (const char* name :
       {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION"}) {
    unsetenv((std::string("AWS_") + name).c_str());
  }
  // One name for all rounds: what setenv() has replaced it never frees.
  const std::string file = std::filesystem::temp_directory_path() /
                           ("ddbmutex-profile-" + std::to_string(getpid()));
  setenv("AWS_CONFIG_FILE", file.c_str(), 1);
  TableOptions options = round.table_options();
  std::ofstream(file) << "[profile other]\nregion = nowhere\n"
                      << "[default]\nregion = "
                      << std::exchange(options.region, {})
                      << "\naws_access_key_id = "
                      << options.credentials.access_key_id
                      << "\naws_secret_access_key = "
                      << options.credentials.secret_access_key << "\n";
  options.credentials = {};
  std::shared_ptr<Table> table;
  round.arm();
  const Ended made = round.attempt(
      "Table()", [&] { table = std::make_shared<Table>(options); });
  if (!made.well()) table = std::make_shared<Table>(options);
  DdbMutex mutex(round.name(), round.options(table));
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  judge_lock(round, mutex, ended, true);
  unlink(file.c_str());
}

// --- Looking, and making tables ----------------------------------------------

template <class Call>
void with_table(Round& round, const char* what, const Call& call) {
  DdbMutex other(round.name(), round.others_options());
  other.lock();
  const std::shared_ptr<Table> table = round.warm_table();
  round.arm();
  round.attempt(what, [&] { call(*table); });
  round.disarm();
  round.expect_held(other);
  other.unlock();
  round.expect_free();
  DdbMutex mutex(round.name(), round.options(table));
  round.expect_usable(mutex);
}

inline void inspect(Round& round) {
  with_table(round, "inspect()", [&](Table& table) {
    const LockInfo info = table.inspect(round.name());
    round.expect(info.exists, "a lock that is held is not seen");
  });
}

inline void list(Round& round) {
  with_table(round, "list()", [&](Table& table) {
    bool seen = false;
    table.list([&](const LockInfo& info) {
      seen = seen || info.name == round.name();
      return true;
    });
    round.expect(seen, "a lock that is held is not listed");
  });
}

inline void exists(Round& round) {
  with_table(round, "exists()", [&](Table& table) {
    round.expect(table.exists(), "the table is not seen");
  });
}

inline void create_existing(Round& round) {
  with_table(round, "create()", [](Table& table) { table.create(); });
}

inline void stats(Round& round) {
  with_table(round, "stats() and last_error()", [](Table& table) {
    static_cast<void>(table.stats());
    static_cast<void>(table.last_error());
    static_cast<void>(table.name());
  });
}

inline void create(Round& round) {
  TableOptions options = round.table_options();
  options.name += "-" + round.name();
  ddbmutex::Creation how;
  how.tags = {{"purpose", "tests"}};
  Table table(options);
  round.arm();
  round.attempt("create()", [&] { table.create(how); });
  round.disarm();
  std::error_code ec;
  table.create(ec);
  if (ec) round.wrong("it cannot be created again: " + table.last_error());
}

inline void force_unlock(Round& round) {
  Options options = round.others_options();
  DdbMutex other(round.name(), options);
  other.lock();
  const std::shared_ptr<Table> table = round.warm_table();
  const LockInfo info = round.row();
  bool freed = false;
  round.arm();
  const Ended ended = round.attempt("force_unlock()",
                                    [&] { freed = table->force_unlock(info); });
  round.disarm();
  // Unless it was renewed meanwhile.
  if (ended.well() && freed) round.expect_free();
  other.unlock();
  round.expect_free();
  DdbMutex mutex(round.name(), round.options(table));
  round.expect_usable(mutex);
}

// --- Any one of many ---------------------------------------------------------

template <class Call>
void any_of(Round& round, const char* what, const Call& call) {
  const std::shared_ptr<Table> table = round.warm_table();
  Options kept = round.others_options();
  kept.keep_row = true;
  // The same in each round of this process, for rows stay; others after a round
  // that was wrong, which may have left one locked.
  static int wrong_rounds = 0;
  const std::string prefix = "item-" + std::to_string(getpid()) + "-" +
                             std::to_string(wrong_rounds) + "-";
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    names.push_back(prefix + std::to_string(i));
    if (round.row_of(names.back()).exists) continue;
    DdbMutex item(names.back(), kept);
    item.lock();
    item.unlock();
  }
  AnyOfOptions options;
  options.each = round.options(table);
  options.prefix = prefix;
  options.read = {"data"};
  options.accept = [](const LockInfo&) { return true; };
  std::unique_ptr<AnyOf> any;
  std::unique_ptr<DdbMutex> got;
  round.arm();
  const Ended made =
      round.attempt("AnyOf()", [&] { any = std::make_unique<AnyOf>(options); });
  if (!made.well()) any = std::make_unique<AnyOf>(options);
  const Ended ended = round.attempt(what, [&] { got = call(*any); });
  round.disarm();
  if (ended.well() && got == nullptr) {
    round.wrong("nothing was got of what is free, and no error was told");
  }
  if (ended.well() && got != nullptr) round.expect_held(*got);
  got.reset();
  for (const std::string& name : names) round.expect_free(name);
  std::error_code ec;
  // Also by one that waits for the passes of others.
  got = any->try_lock_for(std::chrono::seconds(5), ec);
  round.expect(got != nullptr, "no item can be got any more");
  got.reset();
  for (const std::string& name : names) round.expect_free(name);
  if (!round.right()) ++wrong_rounds;
}

inline void any_of_lock(Round& round) {
  any_of(round, "AnyOf::lock()", [](AnyOf& any) { return any.lock(); });
}
inline void any_of_try_lock(Round& round) {
  any_of(round, "AnyOf::try_lock()", [](AnyOf& any) { return any.try_lock(); });
}

// --- Other layouts -----------------------------------------------------------

inline void cycle_at(Round& round, const TableOptions& where) {
  DdbMutex mutex(round.name(), round.options(round.warm(where)));
  round.arm();
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  if (ended.well()) {
    round.attempt("renew()", [&] { mutex.renew(); });
    round.expect(mutex.owns_lock() || !round.reliable(),
                 "the lock is not held any more");
    round.attempt("unlock()", [&] { mutex.unlock(); });
  } else {
    round.expect(!mutex.owns_lock(), "lock() failed, and the lock is held");
  }
  round.disarm();
  if (where.layout != Layout::ddblock) {
    // The observer's layout is another: a mutex of the same looks.
    DdbMutex other(round.name(), round.options(round.warm(where)));
    std::error_code ec;
    if (!other.try_lock_for(kSoon, ec)) {
      round.wrong("the row is not free long before its lease is over");
    }
    return other.unlock();
  }
  round.expect_free();
  round.expect_usable(mutex);
}

inline void shared_layout(Round& round, Layout layout) {
  TableOptions options = round.table_options();
  options.layout = layout;
  options.key = "name";
  cycle_at(round, options);
}

inline void layout_dynamolock(Round& round) {
  shared_layout(round, Layout::dynamolock);
}
inline void layout_lockclient(Round& round) {
  shared_layout(round, Layout::lockclient);
}

// --- Answers that are late or lost -------------------------------------------

// The call gives up before the answer comes; the rest is done in the
// background.
inline void take_given_up(Round& round) {
  Options options = round.options(round.warm_table());
  options.request_timeout = milliseconds(50);
  DdbMutex mutex(round.name(), options);
  round.arm();
  round.attempt(
      "try_lock()",
      [&] {
        std::error_code ec;
        static_cast<void>(mutex.try_lock(ec));
        return ec;
      },
      Errc::timed_out);
  round.leave_alone(milliseconds(200));
  round.disarm();
  mutex.unlock();
  round.expect_free();
}

inline void lost_answers(Round& round) {
  cycle_at(round, round.table_options());
}

// --- The first of a process --------------------------------------------------

inline void first_lock(Round& round) {
  round.arm();
  std::unique_ptr<DdbMutex> mutex;
  const Ended made = round.attempt("DdbMutex()", [&] {
    mutex = std::make_unique<DdbMutex>(round.name(),
                                       round.options(round.cold_table()));
  });
  if (!made.well()) {
    mutex = std::make_unique<DdbMutex>(round.name(),
                                       round.options(round.cold_table()));
  }
  const Ended ended = round.attempt("lock()", [&] { mutex->lock(); });
  judge_lock(round, *mutex, ended, true);
}

// Without a table of its own.
inline void standard_table(Round& round) {
  Options options = round.options(nullptr);
  round.arm();
  std::unique_ptr<DdbMutex> mutex;
  const Ended made = round.attempt("DdbMutex()", [&] {
    mutex = std::make_unique<DdbMutex>(round.name(), options);
  });
  round.disarm();
  if (!made.well()) mutex = std::make_unique<DdbMutex>(round.name(), options);
  static_cast<void>(mutex->owner());
}

// --- Mistakes ----------------------------------------------------------------

// What a library could do wrong when memory is short.  Each is to be noticed.

inline void take_memory() { ::operator delete(::operator new(100)); }

inline bool gets_memory() {
  void* const block = ::operator new(100, std::nothrow);
  ::operator delete(block);
  return block != nullptr;
}

inline void mistake_ends_the_process(Round& round) {
  round.arm();
  round.attempt("a call", []() noexcept { take_memory(); });
}

inline void mistake_hangs(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    if (!gets_memory()) tests::pause(hours(1));
  });
}

inline void mistake_throws_another_type(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    if (!gets_memory()) throw std::runtime_error("short of memory");
  });
}

inline void mistake_fails_for_no_reason(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    static_cast<void>(gets_memory());
    return make_error_code(Errc::no_keys);
  });
}

inline void mistake_leaks(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    void* const block = ::operator new(200);
    if (gets_memory()) ::operator delete(block);
  });
}

inline void mistake_leaves_it_locked(Round& round) {
  DdbMutex mutex(round.name(), round.others_options());
  DdbMutex waiter(round.name(), round.options(round.warm_table()));
  mutex.lock();
  round.arm();
  round.attempt("a call", [&] {
    if (gets_memory()) mutex.unlock();
  });
  round.disarm();
  round.expect_free();
  round.expect_usable(waiter);
}

inline void mistake_loses_it(Round& round) {
  while_held(round, "a call", [](DdbMutex& mutex) {
    if (!gets_memory()) mutex.unlock();
  });
}

inline void mistake_forgets_to_renew(Round& round) {
  Options options = round.options(round.warm_table());
  std::atomic<bool> alive{true};
  options.alive = [&alive] { return alive.load(); };
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  round.attempt("a call", [&] { alive = gets_memory(); });
  round.disarm();
  round.expect_held(mutex);
}

}  // namespace scenario

inline const std::vector<Scenario>& scenarios() {
  using namespace scenario;
  static const std::vector<Scenario> all = {
      {"make_table", make_table},
      {"make_mutex", make_mutex},
      {"make_bad_mutex", make_bad_mutex},
      {"destroy_held_mutex", destroy_held_mutex},
      {"destroy_table_and_held_mutex", destroy_table_and_held_mutex},
      {"lock_warm", lock_warm},
      {"lock_cold", lock_cold},
      {"lock_with_code", lock_with_code},
      {"lock_again", lock_again},
      {"lock_with_all_options", lock_with_all_options},
      {"try_lock_free", try_lock_free},
      {"try_lock_held", try_lock_held},
      {"try_lock_for_held", try_lock_for_held},
      {"lock_of_the_dead", lock_of_the_dead},
      {"wait_for_another_host", wait_for_another_host},
      {"lock_handed_over", lock_handed_over},
      {"lock_passed_on", lock_passed_on},
      {"cancel", cancel},
      {"recursive", recursive},
      {"unlock", unlock},
      {"release", release},
      {"release_with_code", release_with_code},
      {"release_without_lock", release_without_lock},
      {"release_with_changes", release_with_changes},
      {"close_table", close_table},
      {"renew", renew},
      {"renew_with_code", renew_with_code},
      {"renew_by_hand", renew_by_hand},
      {"renew_with_changes", renew_with_changes},
      {"ensure", ensure},
      {"require", require},
      {"require_with_code", require_with_code},
      {"questions", questions},
      {"condition_check", condition_check},
      {"guarded_write", guarded_write},
      {"renewals", renewals},
      {"renewals_of_many", renewals_of_many},
      {"loss", loss},
      {"loss_with_logger", loss_with_logger},
      {"loss_to_a_large_item", loss_to_a_large_item},
      {"try_lock_of_a_large_item", try_lock_of_a_large_item},
      {"inspect_a_large_item", inspect_a_large_item},
      {"any_of_a_large_item", any_of_a_large_item},
      {"expiry", expiry},
      {"keys_of_a_source", keys_of_a_source},
      {"keys_of_a_profile", keys_of_a_profile},
      {"inspect", inspect},
      {"list", list},
      {"exists", exists},
      {"create_existing", create_existing},
      {"create", create},
      {"stats", stats},
      {"force_unlock", force_unlock},
      {"any_of_lock", any_of_lock},
      {"any_of_try_lock", any_of_try_lock},
      {"layout_dynamolock", layout_dynamolock},
      {"layout_lockclient", layout_lockclient},
      {"take_given_up", take_given_up, Place::late},
      {"lost_answers", lost_answers, Place::losing},
      {"lock_by_https", lock_cold, Place::https},
      {"first_lock", first_lock, Place::engine, true},
      {"standard_table", standard_table, Place::engine, true},
  };
  return all;
}

// Those that are wrong, so that it can be seen that this is noticed.
inline const std::vector<Scenario>& mistakes() {
  using namespace scenario;
  static const std::vector<Scenario> all = {
      {"mistake_ends_the_process", mistake_ends_the_process},
      {"mistake_hangs", mistake_hangs},
      {"mistake_throws_another_type", mistake_throws_another_type},
      {"mistake_fails_for_no_reason", mistake_fails_for_no_reason},
      {"mistake_leaks", mistake_leaks},
      {"mistake_leaves_it_locked", mistake_leaves_it_locked},
      {"mistake_loses_it", mistake_loses_it},
      {"mistake_forgets_to_renew", mistake_forgets_to_renew},
  };
  return all;
}

}  // namespace allocations

#endif  // DDBMUTEX_TESTS_ALLOCATIONS_SCENARIOS_HPP
