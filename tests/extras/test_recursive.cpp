// A mutex that its thread may lock again.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <mutex>
#include <system_error>

#include "ddbmutex.hpp"
#include "extras/recursive.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::RecursiveMutex;

BOOST_AUTO_TEST_SUITE(recursive)

BOOST_AUTO_TEST_CASE(recursive_lock_is_unlocked_as_often_as_it_was_locked) {
  Gate gate;
  RecursiveMutex mutex(fresh_name(), on_table(table_at(gate)));
  {
    const std::lock_guard outer(mutex);
    const std::lock_guard inner(mutex);
    BOOST_TEST(mutex.try_lock());
    mutex.unlock();
    BOOST_TEST(Aside([&] { BOOST_TEST(!mutex.try_lock()); }).thrown() ==
               "none");
    BOOST_TEST(mutex->owns_lock());
  }
  BOOST_TEST(!mutex->owns_lock());
  mutex.unlock();  // Once too often does nothing.
  BOOST_TEST(count_of(gate.server(), "PutItem") == 1);
  BOOST_TEST(count_of(gate.server(), "DeleteItem") == 1);
  mutex.lock();
  mutex.unlock();
  BOOST_TEST(!mutex->owns_lock());
}

BOOST_AUTO_TEST_CASE(recursive_lock_that_was_lost_is_not_locked_again) {
  Gate gate;
  Options options = on_table(table_at(gate), 6s);
  options.auto_renew = false;
  RecursiveMutex mutex(fresh_name(), options);
  mutex.lock();
  mutex.lock();
  BOOST_TEST(eventually([&] { return !mutex->owns_lock(); }));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::lease_lost));
  std::error_code ec;
  BOOST_TEST(!mutex.try_lock(ec));
  BOOST_TEST((ec == Errc::lease_lost));
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex->require(0s); }) == words(Errc::lease_lost));
  mutex.unlock();
  mutex.lock();
  BOOST_TEST(mutex->owns_lock());
}

BOOST_AUTO_TEST_SUITE_END()
