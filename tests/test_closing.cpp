// The end of a table: all that its mutexes hold is released, many at once, and
// what could not be is told.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "sigv4/keys/credentials.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/given.hpp"
#include "tests/support/mutex_kit.hpp"

using namespace std::chrono_literals;

namespace {

using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using tests::eventually;
using tests::Gate;
using tests::is_free;
using tests::kPlenty;
using tests::on_table;
using tests::table_at;

// Of locks that nobody renews before they are released, for DynamoDB's clock is
// known when they are taken.
template <class Where>
Options held_on(const Where& where) {
  Options options = on_table(table_at(where));
  options.request_timeout = std::chrono::seconds(20);
  options.table->inspect("x");
  return options;
}

using Mutexes = std::vector<std::unique_ptr<DdbMutex>>;

Mutexes locked(const Options& options, int count) {
  Mutexes all;
  for (int i = 0; i < count; ++i) {
    all.push_back(std::make_unique<DdbMutex>(tests::fresh_name(), options));
    all.back()->lock();
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(closing)

BOOST_AUTO_TEST_CASE(what_cannot_be_released_is_told_with_the_reason) {
  Gate gate;
  const Options options = held_on(gate);
  const Mutexes all = locked(options, 3);
  gate.always("DeleteItem", Gate::fails());
  const auto bad = options.table->close(3s);  // Each has failed by then.
  BOOST_REQUIRE(bad.size() == 3u);
  for (const auto& one : bad) {
    BOOST_TEST(one.code == Errc::unavailable);
    BOOST_TEST(one.text.find(one.name) != std::string::npos);
    BOOST_TEST(!is_free(gate.engine(), one.name));
  }
  gate.open();  // It goes on.
  for (const auto& mutex : all) {
    BOOST_TEST(
        eventually([&] { return is_free(gate.engine(), mutex->name()); }));
  }
}

BOOST_AUTO_TEST_CASE(lock_that_was_lost_unseen_is_told_as_lost) {
  Gate gate;
  const Options options = held_on(gate);
  const Mutexes all = locked(options, 2);
  write_row(gate.engine(), all[0]->name(), tests::live_record());
  const auto bad = options.table->close(kPlenty);
  BOOST_REQUIRE(bad.size() == 1u);
  BOOST_TEST(bad[0].name == all[0]->name());
  BOOST_TEST(bad[0].code == Errc::lease_lost);
  BOOST_TEST(!is_free(gate.engine(), all[0]->name()));
  BOOST_TEST(is_free(gate.engine(), all[1]->name()));
}

// What is destroyed with it may ask the table, in whatever thread.
BOOST_AUTO_TEST_CASE(what_close_tells_of_is_dropped_without_the_mutex) {
  namespace lock = ddbmutex::lock;
  tests::ScriptedServer server;
  lock::TableState table({tests::target_at(server.url(), "us-east-1"),
                          tests::given_keys({"AKIDEXAMPLE", "secret", ""}),
                          {}});
  auto holder =
      std::make_shared<lock::MutexSettings>(table.client, table.budget);
  holder->place.table = "locks";
  holder->place.key = "x";
  holder->ttl = std::chrono::minutes(1);
  lock::Mutex mutex(table, std::move(holder));
  BOOST_REQUIRE((mutex.lock({}, nullptr).verdict == lock::Verdict::ours));
  bool told = false, answered = false;
  tests::Event done;
  std::thread asking;
  static std::shared_ptr<void> object;  // For a function without a context.
  object = {&told, [&](void*) {
              asking = std::thread([&] {
                table.renewer->usage();
                done.set();
              });
              answered = done.wait();
            }};
  mutex.loss_signal([] { return std::move(object); },
                    [](void* flag) { *static_cast<bool*>(flag) = true; });
  const auto left =
      table.renewer->release_all(ddbmutex::BootClock::now() + kPlenty);
  BOOST_REQUIRE(left.size() == 1u);
  BOOST_TEST((left[0].result.verdict == lock::Verdict::released));
  BOOST_TEST(told);
  BOOST_TEST(answered);
  asking.join();
}

// --- What a callback may do --------------------------------------------------

namespace {

namespace lock = ddbmutex::lock;

lock::TableState table_of(const tests::ScriptedServer& server) {
  return lock::TableState({tests::target_at(server.url(), "us-east-1"),
                           tests::given_keys({"AKIDEXAMPLE", "secret", ""}),
                           {}});
}

// Of a lock that is soon lost, for nobody renews it.
struct Heard final : lock::Listener {
  ~Heard() {
    if (when_gone) when_gone();
  }
  bool notify(lock::News news, lock::Verdict) const override {
    if (news == lock::News::loss && when_lost) when_lost();
    return true;
  }
  std::function<void()> when_lost, when_gone;
};

std::shared_ptr<lock::MutexSettings> holder_of(
    lock::TableState& table, const char* name,
    const std::shared_ptr<Heard>& heard) {
  auto holder =
      std::make_shared<lock::MutexSettings>(table.client, table.budget);
  holder->place.table = "locks";
  holder->place.key = name;
  holder->ttl = std::chrono::seconds(5);
  holder->hears_losses = true;
  holder->listener = heard;
  return holder;
}

bool is_taken(lock::Mutex& mutex) {
  return mutex.lock({}, nullptr).verdict == lock::Verdict::ours;
}

}  // namespace

// A stop callback destroys the mutex, and so what its callbacks have captured,
// which may ask the table.
BOOST_AUTO_TEST_CASE(callbacks_of_a_mutex_that_a_signal_ends_go_without_mutex) {
  tests::ScriptedServer server;
  lock::TableState table = table_of(server);
  bool answered = false;
  tests::Event gone;
  std::optional<tests::Aside> asking;
  auto heard = std::make_shared<Heard>();
  heard->when_gone = [&] {
    asking.emplace([&] { table.renewer->usage(); });
    answered = asking->ends();
    gone.set();
  };
  lock::Mutex mutex(table, holder_of(table, "x", heard));
  static lock::Mutex* ended;  // For a function without a context.
  static std::shared_ptr<Heard>* let_go;
  ended = &mutex;
  let_go = &heard;
  BOOST_TEST_REQUIRE(is_taken(mutex));
  mutex.loss_signal([] { return std::shared_ptr<void>(new int(0)); },
                    [](void*) {
                      ended->end();
                      let_go->reset();
                    });
  BOOST_TEST(gone.wait());
  BOOST_TEST(answered);
}

// A callback destroys a mutex that is lost as well, in whose lock() a thread
// waits that has the last of it; and joins that thread.
BOOST_AUTO_TEST_CASE(mutex_that_a_callback_has_ended_ends_again_at_once) {
  tests::ScriptedServer server;
  lock::TableState table = table_of(server);
  const auto others = std::make_shared<Heard>();
  lock::Mutex other(table, holder_of(table, "other", others));
  bool ended = false;
  tests::Event all;
  std::optional<tests::Aside> last;
  auto heard = std::make_shared<Heard>();
  heard->when_lost = [&] {
    const auto its_end = other.claim_end();
    eventually([&] { return ddbmutex::BootClock::now() >= its_end; });
    other.end();
    last.emplace([&] { other.end(); });
    ended = last->ends();
    all.set();
  };
  lock::Mutex mutex(table, holder_of(table, "x", heard));
  BOOST_TEST_REQUIRE(is_taken(mutex));
  BOOST_TEST_REQUIRE(is_taken(other));
  BOOST_TEST(all.wait());
  BOOST_TEST(ended);
}

BOOST_AUTO_TEST_SUITE_END()
