// A lock that goes from thread to thread of one process without a request: how
// often, and what the next one gets.  How long, and what becomes of it if the
// next one is just giving up, is judged in the simulated world.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
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

const std::string kTurn = "PutItem DeleteItem";

// A lock of a minute, and a service that says yes unless it is told otherwise.
struct Shared {
  explicit Shared(const Change& change = {}) : table(table_at(server)) {
    Options options = unhurried(table);
    options.on_lost = [this](Loss loss) { told.add(name_of(loss)); };
    options.on_danger = [this] { told.add("danger"); };
    if (change) change(options);
    mutex = std::make_unique<DdbMutex>("x", options);
  }

  std::string sent() const { return actions(server); }

  ScriptedServer server;
  Told told;
  std::shared_ptr<Table> table;
  std::unique_ptr<DdbMutex> mutex;
};

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

// --- How often, how long ---------------------------------------------------

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

// --- Waits that end just then ----------------------------------------------

namespace {

// A caller's clock, which stands still until a look at it is held up, and then
// throws.
struct StoppingClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<StoppingClock>;
  static constexpr bool is_steady = false;

  struct State {
    std::atomic<bool> stops{false};
    Event asked, told;
  };
  static inline State* state = nullptr;

  static time_point now() {
    if (!state->stops) return time_point();
    state->asked.set();
    state->told.wait();
    throw Error(Errc::bad_answer, "no clock");
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(lock_that_is_handed_to_who_throws_is_given_back) {
  Shared x;
  StoppingClock::State clock;
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

BOOST_AUTO_TEST_SUITE_END()
