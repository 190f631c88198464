// Deadlines that pass while the machine is suspended: whoever waits for one
// sees it at once.  poll(2)'s own timeout does not pass then.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>

#include "ddbmutex.hpp"
#include "sigv4/http.hpp"
#include "sigv4/waiting.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/suspended.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::DdbMutex;
using ddbmutex::sigv4::Waker;

namespace {

// How a call ends that begins before the machine is suspended.
bool ends_suspended(const std::function<void()>& call) {
  Aside aside(call);
  bool ended = false;
  {
    const Suspended suspended;
    ended = aside.ends();
  }
  return ended && aside.thrown() == "none";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(suspended_machine)

BOOST_AUTO_TEST_CASE(wait_for_a_deadline_ends_with_and_without_exchanges) {
  ScriptedServer server;
  server.script(hanging());
  ddbmutex::sigv4::Exchange exchange({});
  exchange.start(server.url(), BootClock::now());
  Waker waker;
  ddbmutex::sigv4::drive(exchange, BootClock::now() + 1s, &waker);
  BOOST_TEST(ends_suspended([&] {
    pause(50ms);  // It is suspended by then, or the wait is as any.
    ddbmutex::sigv4::drive(exchange, BootClock::now() + 500ms, &waker);
    ddbmutex::sigv4::wait_until(BootClock::now() + 500ms, &waker);
  }));
  BOOST_TEST(!waker.woken());
}

// The notifying thread.
BOOST_AUTO_TEST_CASE(lease_that_ended_is_told) {
  ScriptedServer server;
  ddbmutex::Options options = on_table(table_at(server), 1s);
  options.auto_renew = false;
  Told told;
  options.on_lost = [&](ddbmutex::Loss why) { told.add(name_of(why)); };
  const Suspended suspended;
  DdbMutex mutex("x", options);
  mutex.lock();
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
}

BOOST_AUTO_TEST_CASE(waiter_in_line_gives_up_in_time) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  std::atomic<bool> got{true};
  BOOST_TEST(ends_suspended([&] { got = mutex.try_lock_for(500ms); }));
  BOOST_TEST(!got.load());
}

BOOST_AUTO_TEST_SUITE_END()
