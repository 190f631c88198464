// One DdbMutex shared by real threads: who gets in, how waits end, and what is
// left of them.  What depends on the order of events is judged in the simulated
// world.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Error;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;

namespace {

const std::string kCancelled = words(Errc::cancelled);
const std::string kClosed = words(Errc::closed);

// A lock on an engine, with a gate before it.
struct Gated {
  Gated() : table(table_at(gate)) {
    Options options = on_table(table, 1min);
    options.first_poll = 5ms;
    options.longest_poll = 20ms;
    // So that nothing is given up for its slowness.
    options.request_timeout = 29s;
    mutex = std::make_unique<DdbMutex>(name, options);
  }

  int puts() const { return count_of(gate.server(), "PutItem"); }
  bool free() { return is_free(gate.engine(), name); }
  // Lets go what hangs, until it is so.
  template <class Condition>
  bool released_until(const Condition& condition) {
    return eventually([&] {
      gate.server().release();
      return condition();
    });
  }

  Gate gate;
  const std::string name = fresh_name();
  const std::shared_ptr<Table> table;
  std::unique_ptr<DdbMutex> mutex;
};

// Gives a request up soon.
Options hasty(const std::shared_ptr<Table>& table) {
  Options options = unhurried(table);
  options.request_timeout = kHasty;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(threads)

// --- Locking twice, unlocking for another ----------------------------------

BOOST_AUTO_TEST_CASE(locking_twice_in_a_thread_is_a_deadlock_that_is_told) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  std::error_code ec;
  mutex.lock(ec);
  BOOST_TEST((ec == std::errc::resource_deadlock_would_occur), ec.message());
  BOOST_CHECK_EXCEPTION(mutex.lock(), Error, [](const Error& error) {
    return error.code() == std::errc::resource_deadlock_would_occur;
  });
  ec = Errc::closed;
  BOOST_TEST(!mutex.try_lock(ec));
  BOOST_TEST(!ec);
  const Stopwatch watch;
  BOOST_TEST(!mutex.try_lock_for(100ms, ec));
  BOOST_TEST(!ec);
  BOOST_TEST(watch.ms() >= 100);
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(actions(server) == "PutItem");
  mutex.unlock();
  mutex.lock(ec);  // A new beginning.
  BOOST_TEST(!ec);
}

// --- Waits that are ended --------------------------------------------------

// --- What given-up waits leave ---------------------------------------------

namespace {

// Each ends a wait whose request is under way.
struct GivingUp {
  const char* what;
  std::function<void(Gated&)> end;
  std::string thrown;
};

std::vector<GivingUp> endings() {
  return {{"cancel", [](Gated& x) { x.mutex->cancel(); }, kCancelled},
          {"close", [](Gated& x) { x.table->close(); }, kClosed},
          {"destructor", [](Gated& x) { x.mutex.reset(); }, kCancelled}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(wait_that_is_ended_takes_back_what_it_is_given_later) {
  for (const auto& rule : {Gate::held(), Gate::answered_late()}) {
    for (const GivingUp& ending : endings()) {
      Gated x;
      x.gate.once("PutItem", rule);
      DdbMutex* mutex = x.mutex.get();
      Aside waiter([mutex] { mutex->lock(); });
      BOOST_TEST(x.gate.server().wait_for_requests(1));
      ending.end(x);
      BOOST_TEST(waiter.ends(), ending.what);
      BOOST_TEST(waiter.thrown() == ending.thrown, ending.what);
      // Nothing is to be done before the answer has come, which no stall
      // brings.
      pause(20ms);
      BOOST_TEST(count_of(x.gate.server(), "DeleteItem") == 0);
      BOOST_TEST(x.released_until([&] {
        return count_of(x.gate.server(), "DeleteItem") >= 1;
      }),
                 ending.what);
      BOOST_TEST(eventually([&] { return x.free(); }), ending.what);
      BOOST_TEST(x.puts() == 1);
    }
  }
}

// --- Releases that do not come through -------------------------------------

BOOST_AUTO_TEST_CASE(release_that_fails_is_told_and_tried_again_behind) {
  Gated x;
  DdbMutex mutex(x.name, hasty(x.table));
  mutex.lock();
  x.gate.always("DeleteItem", Gate::fails());
  std::string thrown;
  BOOST_TEST(returns_within(
      kHasty, [&] { thrown = thrown_by([&] { mutex.release(); }); }));
  // The time may be up amid a request as well as between two.
  BOOST_TEST(
      (thrown == words(Errc::unavailable) || thrown == words(Errc::timed_out)),
      thrown);
  BOOST_TEST(!mutex.owns_lock());
  const int deletes = count_of(x.gate.server(), "DeleteItem");
  BOOST_TEST(eventually(
      [&] { return count_of(x.gate.server(), "DeleteItem") > deletes; }));
  x.gate.open();
  BOOST_TEST(eventually([&] { return x.free(); }));
}

BOOST_AUTO_TEST_CASE(unlock_that_hangs_returns_in_time_and_goes_on) {
  Gated x;
  {
    DdbMutex mutex(x.name, hasty(x.table));
    mutex.lock();
    x.gate.once("DeleteItem", Gate::fails_late());
    BOOST_TEST(returns_within(kHasty, [&] { mutex.unlock(); }));
    BOOST_TEST(!mutex.owns_lock());
    BOOST_TEST(mutex.last_error() != "");
  }
  // Also when the mutex is no more.
  BOOST_TEST(x.released_until([&] { return x.free(); }));
}

// --- What one call hears, and what a user's function throws -----------------

BOOST_AUTO_TEST_CASE(what_one_call_hears_of_the_clock_ends_the_claims_of_all) {
  std::atomic<bool> stopped{false};
  ScriptedServer server([&](const SeenRequest& request) {
    const bool first = request.body.find("ddblock-held") != std::string::npos;
    if (first || !stopped) return Reply{};
    // As if this machine had stood still for an hour.
    return with_header(server_failure(), "Date", http_date(1h));
  });
  const auto table = table_at(server);
  Told told;
  // Not renewed before the other call is heard.
  Options options = on_table(table, 10min);
  options.on_lost = [&](ddbmutex::Loss loss) { told.add(name_of(loss)); };
  DdbMutex held("held", options);
  DdbMutex other("other", unhurried(table));
  held.lock();
  BOOST_REQUIRE(held.owns_lock());

  stopped = true;
  Aside waiter([&] {
    if (other.try_lock_for(1h)) other.unlock();
  });
  // While that call goes on.
  BOOST_TEST(eventually([&] { return !held.owns_lock(); }));
  BOOST_TEST(!waiter.done());
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
  other.cancel();
  BOOST_TEST(waiter.ends());
}

BOOST_AUTO_TEST_CASE(source_of_keys_that_throws_has_none) {
  ScriptedServer server;
  TableOptions options = table_options(server);
  options.credentials_source = []() -> std::optional<ddbmutex::Credentials> {
    throw std::runtime_error("the vault is shut");
  };
  Options patient = unhurried(std::make_shared<Table>(options));
  patient.patience = 200ms;
  DdbMutex mutex("m", patient);
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::no_keys));
  BOOST_TEST(std::string(error->what()).find("the vault is shut") !=
             std::string::npos);
  BOOST_TEST(server.request_count() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
