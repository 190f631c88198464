// Leases by when something is due for each.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "ddbmutex/lock/agenda.hpp"
#include "ddbmutex/lock/held_lease.hpp"
#include "ddbmutex/lock/leases.hpp"
#include "ddbmutex/table.hpp"
#include "tests/support/given.hpp"
#include "tests/support/mutex_kit.hpp"

using ddbmutex::BootTime;
using ddbmutex::lock::Agenda;
using ddbmutex::lock::HeldLease;
using ddbmutex::lock::MutexSettings;
using std::chrono::nanoseconds;

namespace {

constexpr BootTime kNever = BootTime::max();

// On two agendas, of which only one is looked at.
struct Leases {
  explicit Leases(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(std::make_unique<HeldLease>(holder));
      other.set(*all.back(), BootTime(nanoseconds(i)));
    }
  }
  ~Leases() {  // A lease outlives its plans.
    for (const auto& one : all) {
      agenda.set(*one, kNever);
      other.set(*one, kNever);
    }
  }
  BootTime soonest() const {
    BootTime first = kNever;
    for (const auto& one : all) first = std::min(first, one->alarm.when);
    return first;
  }

  ddbmutex::lock::Table table{
      {tests::target_at("http://localhost:1", "us-east-1"),
       tests::given_keys({"AKIDEXAMPLE", "secret", ""}),
       {}}};
  const std::shared_ptr<MutexSettings> holder =
      std::make_shared<MutexSettings>(table.client, table.budget);
  std::vector<std::unique_ptr<HeldLease>> all;
  Agenda agenda{&HeldLease::alarm}, other{&HeldLease::renewal};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(agenda)

BOOST_AUTO_TEST_CASE(nothing_is_due_of_none) {
  Leases leases(1);
  BOOST_CHECK(leases.agenda.next() == kNever);
  leases.agenda.set(*leases.all[0], kNever);  // Nor was it before.
  BOOST_CHECK(leases.agenda.next() == kNever);
}

// Few times, so that many are the same.
BOOST_AUTO_TEST_CASE(soonest_is_first_whatever_is_changed) {
  Leases leases(100);
  std::mt19937 random(1);
  const auto draw = [&](unsigned below) {
    return std::uniform_int_distribution<unsigned>(0, below - 1)(random);
  };
  for (int i = 0; i < 20000; ++i) {
    HeldLease& held = *leases.all[draw(100)];
    const bool goes = draw(100) < static_cast<unsigned>(i / 200);
    leases.agenda.set(held, goes ? kNever : BootTime(nanoseconds(draw(64))));
    BOOST_REQUIRE(leases.agenda.next() == leases.soonest());
    if (leases.soonest() == kNever) continue;
    BOOST_REQUIRE(leases.agenda.first().alarm.when == leases.soonest());
  }
}

BOOST_AUTO_TEST_CASE(leases_leave_in_the_order_of_their_times) {
  Leases leases(1000);
  std::mt19937 random(1);
  for (const auto& one : leases.all) {
    leases.agenda.set(*one, BootTime(nanoseconds(random())));
  }
  BootTime last{};
  for (std::size_t left = 1000; left > 0; --left) {
    BOOST_REQUIRE(last <= leases.agenda.next());
    last = leases.agenda.next();
    leases.agenda.set(leases.agenda.first(), kNever);
  }
  BOOST_CHECK(leases.agenda.next() == kNever);
}

// The answer that contradicts the clock may come to any thread.
BOOST_AUTO_TEST_CASE(claims_are_checked_while_no_other_thread_uses_them) {
  Leases some(1);
  ddbmutex::lock::Leases leases(some.table.client, some.table.budget);
  ddbmutex::lock::Leases::Guard guard(leases.mutex);
  tests::Aside checks([&] { leases.check_clock(); });
  BOOST_TEST(checks.rests());
  BOOST_TEST(!checks.done());
  guard.unlock();
  BOOST_TEST(checks.thrown() == "none");
}

BOOST_AUTO_TEST_SUITE_END()
