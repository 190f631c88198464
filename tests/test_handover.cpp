// A lock that goes from thread to thread of one process without a request: how
// often and how long, what the next one gets, and what becomes of it if he is
// just giving up.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Error;
using ddbmutex::Loss;
using ddbmutex::Options;
using ddbmutex::Table;

namespace {

using Change = std::function<void(Options&)>;

const std::string kCancelled = words(Errc::cancelled);
const std::string kTurn = "PutItem DeleteItem";

// A lock of a minute, and a service that says yes unless it is told otherwise.
struct Shared {
  explicit Shared(const Change& change = {}, const Handler& handler = nullptr)
      : server(handler), table(table_at(server)) {
    Options options = unhurried(table);
    options.on_lost = [this](Loss loss) { told.add(name_of(loss)); };
    options.on_danger = [this] { told.add("danger"); };
    if (change) change(options);
    mutex = std::make_unique<DdbMutex>("x", options);
  }

  std::string sent() const { return actions(server); }
  int sent(const char* action) const { return count_of(server, action); }

  ScriptedServer server;
  Told told;
  std::shared_ptr<Table> table;
  std::unique_ptr<DdbMutex> mutex;
};

// A thread that waits in line, and is held up there.
struct HeldWaiter {
  explicit HeldWaiter(DdbMutex& mutex) : call([&mutex] { mutex.lock(); }) {}

  // How its call has ended, once it goes on.
  std::string outcome() {
    held.let_go();
    return call.thrown();
  }

  const std::set<pid_t> before = threads_by_id();
  Aside call;
  HeldThread held{polling_thread(before, tests::name_of_own_threads())};
};

// Holds up updates until the server's release(), and answers them so then.
Handler updates_hang(const Reply& answer) {
  return [answer](const SeenRequest& request) {
    if (action_of(request) != "UpdateItem") return Reply::ok("{}");
    Reply reply = answer;
    reply.hangs = true;
    return reply;
  };
}

void renewed_soon(Options& options) { options.renew_after = 50ms; }

}  // namespace

BOOST_AUTO_TEST_SUITE(handover)

// --- What is handed over ---------------------------------------------------

BOOST_AUTO_TEST_CASE(unlock_hands_the_lock_to_who_waits_and_sends_nothing) {
  Shared x;
  x.mutex->lock();
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  x.mutex->unlock();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.sent() == "PutItem");
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(!x.mutex->in_danger());
  BOOST_TEST((x.mutex->remaining() > 30s));
  BOOST_TEST(!x.mutex->try_lock());
  x.mutex->unlock();
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(x.sent() == kTurn);
  BOOST_TEST(x.told.text() == "");
}

BOOST_AUTO_TEST_CASE(release_that_hands_the_lock_over_has_done_it) {
  Shared x;
  x.mutex->lock();
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.sent() == "PutItem");
}

BOOST_AUTO_TEST_CASE(thread_that_locks_again_goes_behind_those_who_wait) {
  Shared x;
  Told order;
  x.mutex->lock();
  Aside next([&] {
    const std::lock_guard guard(*x.mutex);
    order.add("next");
  });
  BOOST_TEST(next.rests());
  x.mutex->unlock();
  x.mutex->lock();  // It has it no more, and waits for itself no more.
  order.add("again");
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(order.text() == "next again");
}

BOOST_AUTO_TEST_CASE(thread_that_was_handed_the_lock_has_locked_it) {
  for (const bool recursive : {false, true}) {
    Shared x([&](Options& options) { options.recursive = recursive; });
    x.mutex->lock();
    std::error_code again;
    Aside next([&] {
      x.mutex->lock();
      x.mutex->lock(again);
    });
    BOOST_TEST(next.rests());
    x.mutex->unlock();
    BOOST_TEST(next.thrown() == "none");
    BOOST_TEST((again == std::errc::resource_deadlock_would_occur) ==
               !recursive);
    x.mutex->unlock();
    BOOST_TEST(x.mutex->owns_lock() == recursive);
  }
}

BOOST_AUTO_TEST_CASE(lock_that_stays_locked_by_its_thread_is_not_handed_over) {
  Shared x([](Options& options) { options.recursive = true; });
  x.mutex->lock();
  x.mutex->lock();
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  x.mutex->unlock();
  BOOST_TEST(next.rests());
  BOOST_TEST(!next.done());
  x.mutex->unlock();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.sent() == "PutItem");
}

// --- How often, how long ---------------------------------------------------

BOOST_AUTO_TEST_CASE(lock_is_released_after_as_many_turns_as_the_limit_says) {
  const struct {
    int limit;
    const char* sent;
  } kCases[] = {{0,
                 "PutItem DeleteItem PutItem DeleteItem PutItem DeleteItem "
                 "PutItem DeleteItem PutItem DeleteItem"},
                {2, "PutItem DeleteItem PutItem DeleteItem"},
                {4, "PutItem DeleteItem"}};
  for (const auto& [limit, sent] : kCases) {
    Shared x([most = limit](Options& o) { o.handover_limit = most; });
    x.mutex->lock();
    std::list<Aside> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { const std::lock_guard guard(*x.mutex); });
      BOOST_TEST(threads.back().rests());
    }
    x.mutex->unlock();
    for (Aside& thread : threads) BOOST_TEST(thread.thrown() == "none");
    BOOST_TEST(x.sent() == sent, limit);
  }
}

// From when it was taken, however lately it was renewed.
BOOST_AUTO_TEST_CASE(lock_is_released_once_it_was_held_for_half_of_its_ttl) {
  Shared x([](Options& options) {
    options.ttl = 4s;
    options.request_timeout = 1900ms;
    options.on_danger = nullptr;
  });
  x.mutex->lock();
  const Stopwatch held;
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  while (held.time() < 2s) pause(10ms);
  BOOST_TEST(thrown_by([&] { x.mutex->renew(); }) == "none");
  x.mutex->unlock();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.sent("PutItem") == 2);
  BOOST_TEST(x.sent("DeleteItem") == 1);
}

// A host that waits is let in, were all threads of another to want the lock.
BOOST_AUTO_TEST_CASE(another_host_gets_in_within_as_many_turns_as_the_limit) {
  constexpr int kLimit = 3;
  Gate gate;
  const std::string name = fresh_name();
  Options options = unhurried(table_at(gate));
  options.handover_limit = kLimit;
  DdbMutex ours(name, options);
  Options polling = unhurried(table_at(gate.engine()));
  polling.longest_poll = polling.first_poll;
  DdbMutex theirs(name, polling);
  ours.lock();
  gate.once("PutItem", Gate::held());  // Their chance, whoever is quicker.
  std::atomic<int> turns{0};
  std::list<Aside> threads;
  for (int i = 0; i < 2 * kLimit; ++i) {
    threads.emplace_back([&] {
      const std::lock_guard guard(ours);
      ++turns;
    });
    BOOST_TEST(threads.back().rests());
  }
  Aside other([&] { theirs.lock(); });
  ours.unlock();
  BOOST_TEST(other.thrown() == "none");
  BOOST_TEST(turns == kLimit);
  theirs.unlock();
  for (Aside& thread : threads) {
    BOOST_TEST(eventually([&] {
      gate.server().release();
      return thread.done();
    }));
    BOOST_TEST(thread.thrown() == "none");
  }
  BOOST_TEST(is_free(gate.engine(), name));
}

// --- Where each acquisition has its own ------------------------------------

BOOST_AUTO_TEST_CASE(lease_that_nobody_prolongs_is_not_handed_over) {
  for (const Change& change : {Change([](Options& o) { o.auto_renew = false; }),
                               Change([](Options& o) { o.max_hold = 1h; })}) {
    Shared x(change);
    x.mutex->lock();
    Aside next([&] { x.mutex->lock(); });
    BOOST_TEST(next.rests());
    x.mutex->unlock();
    BOOST_TEST(next.thrown() == "none");
    BOOST_TEST(x.sent() == "PutItem DeleteItem PutItem");
  }
}

BOOST_AUTO_TEST_CASE(each_thread_has_a_token_of_its_own) {
  Engine& engine = Engine::running(any_engine_kind());
  Options options = unhurried(table_at(engine));
  options.keep_row = true;
  options.fencing = true;
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  const auto token = mutex.fencing_token();
  Aside next([&] { mutex.lock(); });
  BOOST_TEST(next.rests());
  mutex.unlock();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(mutex.fencing_token() == token + 1);
}

// Those who come later find what the options say, not what one has left.
BOOST_AUTO_TEST_CASE(each_thread_finds_the_data_of_its_own_acquisition) {
  Engine& engine = Engine::running(any_engine_kind());
  for (const bool kept : {false, true}) {
    const std::string name = fresh_name();
    Options options = unhurried(table_at(engine));
    options.keep_data = kept;
    if (!kept) options.data = "ours";
    DdbMutex mutex(name, options);
    if (kept) {  // As a holder that died has left it.
      write_row(
          engine, name,
          record("theirs", calendar() - 1h) + R"(,"data":{"B":"dGhlaXJz"})");
    }
    mutex.lock();
    BOOST_TEST(mutex.data().value_or("") == (kept ? "theirs" : "ours"));
    if (!kept) mutex.renew({"changed", {}, {}});
    Aside next([&] { mutex.lock(); });
    BOOST_TEST(next.rests());
    mutex.unlock();
    BOOST_TEST(next.thrown() == "none");
    BOOST_TEST(mutex.data().value_or("") == (kept ? "" : "ours"));
  }
}

BOOST_AUTO_TEST_CASE(guard_of_one_thread_is_none_of_the_next) {
  const std::function<void(DdbMutex&)> kAsks[] = {
      [](DdbMutex& mutex) { mutex.condition_check(); },
      [](DdbMutex& mutex) {
        mutex.guarded_write(R"([{"Put":{"TableName":"t","Item":{}}}])");
      }};
  for (const auto& ask : kAsks) {
    Shared x;
    x.mutex->lock();
    ask(*x.mutex);
    const int before = x.server.request_count();
    Aside next([&] { x.mutex->lock(); });
    BOOST_TEST(next.rests());
    x.mutex->unlock();
    BOOST_TEST(next.thrown() == "none");
    BOOST_TEST(x.server.request_count() == before + 2);
  }
  // One that nobody has asked of yet is handed over, and not any more then.
  Shared x;
  x.mutex->lock();
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  x.mutex->unlock();
  BOOST_TEST(next.thrown() == "none");
  x.mutex->guarded_write(R"([{"Put":{"TableName":"t","Item":{}}}])");
  Aside last([&] { x.mutex->lock(); });
  BOOST_TEST(last.rests());
  x.mutex->unlock();
  BOOST_TEST(last.thrown() == "none");
  BOOST_TEST(x.sent() == "PutItem TransactWriteItems DeleteItem PutItem");
}

// --- Renewals and losses ---------------------------------------------------

BOOST_AUTO_TEST_CASE(renewal_under_way_is_of_the_lease_whoever_has_it) {
  Shared x(renewed_soon, updates_hang(Reply::ok("{}")));
  x.mutex->lock();
  BOOST_TEST(eventually([&] { return x.sent("UpdateItem") == 1; }));
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  x.mutex->unlock();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.sent() == "PutItem UpdateItem");
  BOOST_TEST(eventually([&] {  // Its answer is heard, and others follow.
    x.server.release();
    return x.sent("UpdateItem") >= 3;
  }));
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(x.sent("PutItem") == 1);
  BOOST_TEST(x.told.text() == "");
}

BOOST_AUTO_TEST_CASE(loss_by_a_renewal_under_way_is_of_who_has_the_lock_then) {
  Shared x(renewed_soon, updates_hang(refusal(live_record())));
  x.mutex->lock();
  BOOST_TEST(eventually([&] { return x.sent("UpdateItem") == 1; }));
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.mutex->owns_lock());
  x.server.release();
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == words(Errc::lease_lost));
  BOOST_TEST(x.told.text() == "taken");
  BOOST_TEST(x.sent() == "PutItem UpdateItem");
}

BOOST_AUTO_TEST_CASE(lock_that_was_lost_is_not_handed_over) {
  bool ours = false;  // Guarded by the server: handlers are called in turn.
  Shared x({}, [&](const SeenRequest& request) {
    const std::string action = action_of(request);
    if (action == "UpdateItem") return refusal(live_record());
    if (action == "GetItem" && ours) return found(live_record());
    ours = action == "PutItem";
    return Reply::ok("{}");
  });
  x.mutex->lock();
  Aside next([&] { x.mutex->lock(); });
  BOOST_TEST(next.rests());
  BOOST_TEST(thrown_by([&] { x.mutex->renew(); }) == words(Errc::lease_lost));
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == words(Errc::lease_lost));
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(x.sent() == "PutItem UpdateItem PutItem");
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(x.told.text() == "taken");
}

// It has it from when it was handed over, and finds it lost.
BOOST_AUTO_TEST_CASE(loss_before_the_next_thread_runs_is_its_loss) {
  Shared x({}, [](const SeenRequest& request) {
    return action_of(request) == "UpdateItem" ? refusal(live_record())
                                              : Reply::ok("{}");
  });
  x.mutex->lock();
  HeldWaiter next(*x.mutex);
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->renew(); }) == words(Errc::lease_lost));
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(next.outcome() == "none");
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == words(Errc::lease_lost));
  BOOST_TEST(x.told.text() == "taken");
  BOOST_TEST(x.sent() == "PutItem UpdateItem");
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == "none");
}

// --- Waits that end just then ----------------------------------------------

BOOST_AUTO_TEST_CASE(wait_that_was_cancelled_before_is_passed_over) {
  Shared x;
  x.mutex->lock();
  HeldWaiter next(*x.mutex);
  x.mutex->cancel();
  Aside behind([&] { x.mutex->lock(); });
  BOOST_TEST(behind.rests());
  x.mutex->unlock();
  BOOST_TEST(behind.thrown() == "none");
  BOOST_TEST(next.outcome() == kCancelled);
  BOOST_TEST(x.sent() == "PutItem");
}

BOOST_AUTO_TEST_CASE(wait_that_is_cancelled_after_has_the_lock) {
  Shared x;
  x.mutex->lock();
  HeldWaiter next(*x.mutex);
  x.mutex->unlock();
  x.mutex->cancel();
  BOOST_TEST(next.outcome() == "none");
  BOOST_TEST(x.mutex->owns_lock());
  x.mutex->unlock();
  BOOST_TEST(x.sent() == kTurn);
}

// As that of a guard whose lock was released by hand.
BOOST_AUTO_TEST_CASE(unlock_too_many_does_not_unlock_what_is_being_locked) {
  Shared x;
  x.mutex->lock();
  HeldWaiter next(*x.mutex);
  Aside behind([&] { x.mutex->lock(); });
  BOOST_TEST(behind.rests());
  x.mutex->unlock();
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == words(Errc::not_held));
  BOOST_TEST(next.outcome() == "none");
  BOOST_TEST(behind.rests());
  BOOST_TEST(!behind.done());
  x.mutex->unlock();
  BOOST_TEST(behind.thrown() == "none");
  BOOST_TEST(x.sent() == "PutItem");
}

BOOST_AUTO_TEST_CASE(destructor_takes_back_what_was_handed_over_just_before) {
  Shared x;
  x.mutex->lock();
  HeldWaiter next(*x.mutex);
  x.mutex->unlock();
  BOOST_TEST(x.sent() == "PutItem");
  x.mutex.reset();
  BOOST_TEST(x.sent() == kTurn);
  BOOST_TEST(next.outcome() == kCancelled);
  BOOST_TEST(x.told.text() == "");
}

BOOST_AUTO_TEST_CASE(close_releases_what_was_handed_over_just_before) {
  Shared x;
  x.mutex->lock();
  HeldWaiter next(*x.mutex);
  x.mutex->unlock();
  BOOST_TEST(x.table->close().empty());
  BOOST_TEST(x.sent() == kTurn);
  BOOST_TEST(next.outcome() == "none");
  BOOST_TEST(!x.mutex->owns_lock());
  x.mutex->unlock();
  BOOST_TEST(x.sent() == kTurn);
}

BOOST_AUTO_TEST_CASE(closed_table_hands_nothing_over) {
  Shared x;
  x.mutex->lock();
  HeldWaiter next(*x.mutex);
  x.table->close();
  x.mutex->unlock();
  BOOST_TEST(next.outcome() == words(Errc::closed));
  BOOST_TEST(x.sent() == kTurn);
}

namespace {

// A caller's clock, which stands still until a look at it is held up.
struct StoppingClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<StoppingClock>;
  static constexpr bool is_steady = false;

  struct State {
    std::atomic<bool> stops{false};
    Event asked, told;
    bool throws = false;
  };
  static inline State* state = nullptr;

  static time_point now() {
    if (!state->stops) return time_point();
    state->asked.set();
    state->told.wait();
    if (state->throws) throw Error(Errc::bad_answer, "no clock");
    return time_point(1h);
  }
};

}  // namespace

// It has looked for the lock, not for the time, when it is handed over.
BOOST_AUTO_TEST_CASE(thread_whose_time_is_up_as_it_is_handed_the_lock_has_it) {
  Shared x;
  StoppingClock::State clock;
  StoppingClock::state = &clock;
  x.mutex->lock();
  std::atomic<bool> got{false};
  Aside next(
      [&] { got = x.mutex->try_lock_until(StoppingClock::time_point(50ms)); });
  BOOST_TEST(next.rests());
  clock.stops = true;
  BOOST_TEST(clock.asked.wait());
  x.mutex->unlock();
  clock.told.set();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(got.load());
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(x.sent() == "PutItem");
}

BOOST_AUTO_TEST_CASE(lock_that_is_handed_to_who_throws_is_given_back) {
  Shared x;
  StoppingClock::State clock;
  clock.throws = true;
  StoppingClock::state = &clock;
  x.mutex->lock();
  Aside next(
      [&] { (void)x.mutex->try_lock_until(StoppingClock::time_point(50ms)); });
  BOOST_TEST(next.rests());
  clock.stops = true;
  BOOST_TEST(clock.asked.wait());
  x.mutex->unlock();
  clock.told.set();
  BOOST_TEST(next.thrown() == words(Errc::bad_answer));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(x.sent() == kTurn);
  BOOST_TEST(x.mutex->try_lock());
}

// --- All at once -----------------------------------------------------------

BOOST_AUTO_TEST_SUITE_END()
