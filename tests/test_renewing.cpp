// How a lease is renewed: by itself or by hand, how often and how long, and
// what tells that it is in danger or lost.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "ddbmutex.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"

using namespace std::chrono_literals;

namespace {

using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using tests::count_of;
using tests::Event;
using tests::eventually;
using tests::Gate;
using tests::in_some_round;
using tests::on_table;
using tests::row_of;
using tests::table_at;
using tests::thrown_by;
using tests::words;

// A lock before a gate.
struct Held {
  // It stays held, and each request has all the time that it needs.
  Held() : Held(1min) { options.request_timeout = 20s; }
  explicit Held(std::chrono::milliseconds ttl)
      : options(on_table(table_at(gate), ttl)) {}

  DdbMutex& make() {
    mutex = std::make_unique<DdbMutex>(tests::fresh_name(), options);
    return *mutex;
  }
  int renewals() const { return count_of(gate.server(), "UpdateItem"); }
  std::int64_t expires() {
    return row_of(gate.engine(), mutex->name()).expires.count();
  }

  Gate gate;
  Options options;
  std::unique_ptr<DdbMutex> mutex;
};

// When its lease ends, to a millisecond.
BootTime end_of(const DdbMutex& mutex) {
  for (;;) {
    const BootTime now = BootClock::now();
    const auto remaining = mutex.remaining();
    if (BootClock::now() - now < 1ms) return now + remaining;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(renewing)

// --- By hand -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(danger_is_told_to_who_hears_of_nothing_else) {
  Held it(5s);
  it.options.auto_renew = false;
  it.options.safe_time = 2400ms;
  tests::Event told;
  it.options.on_danger = [&] { told.set(); };
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(told.wait());
  mutex.unlock();
}

BOOST_AUTO_TEST_CASE(changes_are_made_once) {
  Held it;
  it.options.renew_after = 50ms;
  DdbMutex& mutex = it.make();
  mutex.lock();
  Changes changes;
  changes.data = "changed";
  mutex.renew(changes);
  const int before = it.renewals();
  BOOST_TEST(eventually([&] { return it.renewals() > before + 2; }));
  const std::string last = it.gate.server().requests().back().body;
  BOOST_TEST(last.find("data") == std::string::npos, last);
  BOOST_TEST((mutex.data() == std::string("changed")));
}

// --- By itself ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(renewal_that_is_nearly_due_goes_along_with_one_that_is) {
  const auto round = []() -> std::string {
    Held it;
    it.options.renew_after = 2s;
    DdbMutex first(tests::fresh_name(), it.options);
    DdbMutex& second = it.make();
    first.lock();
    second.lock();
    first.renew();
    tests::pause(8ms);  // The second is so much younger when it is renewed.
    second.renew();
    const BootTime end = end_of(second);
    BOOST_TEST_REQUIRE(eventually([&] { return end_of(second) > end + 1s; }));
    const auto age = end_of(second) - end;
    return age < 2s - 4ms ? "" : "renewed alone";
  };
  BOOST_TEST(in_some_round(round) == "");
}

// --- Again by the same thread ------------------------------------------------

BOOST_AUTO_TEST_CASE(recursive_lock_that_was_lost_is_not_locked_again) {
  Held it(3s);
  it.options.recursive = true;
  it.options.auto_renew = false;
  DdbMutex& mutex = it.make();
  mutex.lock();
  mutex.lock();
  BOOST_TEST(eventually([&] { return !mutex.owns_lock(); }));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::lease_lost));
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::lease_lost));
  mutex.lock();
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_SUITE_END()
