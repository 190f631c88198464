// What threads of a table, and the calls of its mutexes, do to each other when
// they meet at a bad moment.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using tests::Aside;
using tests::count_of;
using tests::Event;
using tests::eventually;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

BOOST_AUTO_TEST_SUITE(mutex_races)

BOOST_AUTO_TEST_CASE(wait_that_got_its_turn_and_no_answer_has_timed_out) {
  tests::Gate gate;
  auto options = tests::unhurried(tests::table_at(gate));
  options.handover_limit = 0;
  DdbMutex mutex(tests::fresh_name(), options);
  mutex.lock();
  gate.once("DeleteItem", tests::Gate::answered_late());
  Aside waiter([&] { (void)mutex.try_lock_for(4s); });
  BOOST_REQUIRE(waiter.rests());
  gate.always("PutItem", tests::Gate::held());
  Aside unlocker([&] { mutex.unlock(); });
  BOOST_REQUIRE(
      eventually([&] { return count_of(gate.server(), "DeleteItem") == 1; }));
  gate.server().release();
  BOOST_TEST(unlocker.thrown() == "none");
  // It has the turn, and no answer comes before its time is up: nobody says
  // that another has the lock.
  BOOST_TEST(waiter.thrown() == tests::words(Errc::timed_out));
  BOOST_TEST(!mutex.owns_lock());
  gate.open();
  gate.server().release();
}

BOOST_AUTO_TEST_CASE(what_one_call_hears_of_the_clock_ends_the_claims_of_all) {
  std::atomic<bool> stopped{false};
  ScriptedServer server([&](const SeenRequest& request) {
    const bool first = request.body.find("ddblock-held") != std::string::npos;
    if (first || !stopped) return Reply{};
    // As if this machine had stood still for an hour.
    return tests::with_header(tests::server_failure(), "Date",
                              tests::http_date(1h));
  });
  const auto table = tests::table_at(server);
  tests::Told told;
  // Not renewed before the other call is heard.
  Options options = tests::on_table(table, 10min);
  options.on_lost = [&](ddbmutex::Loss loss) { told.add(name_of(loss)); };
  DdbMutex held("held", options);
  DdbMutex other("other", tests::unhurried(table));
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

// Of a kept row whose second take found the first applied: it is ours, but the
// lock is not granted before a renewal has settled the token.
BOOST_AUTO_TEST_CASE(row_that_was_written_but_not_granted_is_taken_back) {
  tests::Gate gate;
  const std::string name = tests::fresh_name();
  const auto table = tests::table_at(gate);
  Options options = tests::unhurried(table);
  options.keep_row = true;
  DdbMutex mutex(name, options);
  gate.once("UpdateItem", tests::Gate::answer_lost());
  gate.once("UpdateItem", [&](tests::Engine& engine, const SeenRequest&) {
    const std::string found =
        engine.call("GetItem", tests::place_in(engine, "Key", name) + "}}")
            .body;
    return Reply::error(
        400,
        R"({"__type":"x#ConditionalCheckFailedException",)" + found.substr(1));
  });
  gate.once("UpdateItem", [](tests::Engine&, const SeenRequest&) {
    return tests::failure(400, "AccessDeniedException");
  });
  BOOST_TEST(tests::thrown_by([&] { mutex.lock(); }) ==
             tests::words(Errc::access_denied));
  BOOST_TEST(eventually([&] { return table->inspect(name).released; }));
  BOOST_TEST(tests::count_of(gate.server(), "UpdateItem") == 4);
}

// More leases than are renewed at once end while both threads are held up.
BOOST_AUTO_TEST_CASE(leases_that_ended_do_not_keep_others_from_being_renewed) {
  Event teller_goes_on;
  const auto table =
      tests::table_at(tests::Engine::running(tests::any_engine_kind()));
  const auto others = tests::threads_by_id();
  std::vector<std::unique_ptr<DdbMutex>> brief;
  for (int i = 0; i < 40; ++i) {
    Options options = tests::on_table(table, 1500ms);
    options.on_lost = [&](ddbmutex::Loss) { teller_goes_on.wait(); };
    brief.push_back(std::make_unique<DdbMutex>(tests::fresh_name(), options));
    brief.back()->lock();
  }
  Options often = tests::unhurried(table);
  often.renew_after = 2s;
  DdbMutex steady(tests::fresh_name(), often);
  steady.lock();
  tests::HeldThread sender(tests::polling_thread(others));
  BOOST_REQUIRE(eventually([&] {
    for (const auto& mutex : brief) {
      if (mutex->owns_lock()) return false;
    }
    return true;
  }));
  const auto before = steady.remaining();
  sender.let_go();
  BOOST_TEST(eventually([&] { return steady.remaining() > before; }));
  teller_goes_on.set();
}

BOOST_AUTO_TEST_CASE(longest_wait_of_the_holding_thread_ends_when_unlocked) {
  ScriptedServer server;
  DdbMutex mutex("m", tests::unhurried(tests::table_at(server)));
  bool locked_again = false;
  Aside thread([&] {
    mutex.lock();
    locked_again = mutex.try_lock_for(std::chrono::hours::max());
  });
  BOOST_TEST(eventually([&] { return mutex.owns_lock(); }));
  BOOST_TEST(thread.rests());
  mutex.unlock();
  BOOST_TEST(thread.thrown() == "none");
  BOOST_TEST(locked_again);
  mutex.unlock();
}

BOOST_AUTO_TEST_CASE(closing_ends_calls_about_the_table_too) {
  ScriptedServer server(
      [](const SeenRequest&) { return tests::server_failure(); });
  const auto table = tests::table_at(server);
  Aside exists([&] { table->exists(); });
  Aside create([&] { table->create(); });
  Aside inspect([&] { table->inspect("m"); });
  BOOST_REQUIRE(eventually([&] { return server.request_count() > 3; }));
  table->close();
  for (Aside* call : {&exists, &create, &inspect}) {
    BOOST_TEST(call->thrown() == tests::words(Errc::closed));
  }
  BOOST_TEST(tests::thrown_by([&] { table->exists(); }) ==
             tests::words(Errc::closed));
}

BOOST_AUTO_TEST_CASE(source_of_keys_that_throws_has_none) {
  ScriptedServer server;
  TableOptions options = tests::table_options(server);
  options.credentials_source = []() -> std::optional<ddbmutex::Credentials> {
    throw std::runtime_error("the vault is shut");
  };
  Options patient = tests::unhurried(std::make_shared<Table>(options));
  patient.patience = 200ms;
  DdbMutex mutex("m", patient);
  const auto error = tests::error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::no_keys));
  BOOST_TEST(std::string(error->what()).find("the vault is shut") !=
             std::string::npos);
  BOOST_TEST(server.request_count() == 0);
}

BOOST_AUTO_TEST_CASE(callback_objects_end_with_their_mutex) {
  ScriptedServer server([](const SeenRequest& request) {
    if (tests::action_of(request) != "DeleteItem") return Reply{};
    return tests::hanging();
  });
  const auto table = tests::table_at(server);
  auto captured = std::make_shared<int>(7);
  const std::weak_ptr<int> alive = captured;
  Options options = tests::on_table(table, 2s);
  options.on_lost = [captured = std::move(captured)](ddbmutex::Loss) {};
  {
    DdbMutex mutex("m", std::move(options));
    mutex.lock();
  }
  // Though the release goes on behind.
  BOOST_TEST(alive.expired());
  server.release();
}

BOOST_AUTO_TEST_SUITE_END()
