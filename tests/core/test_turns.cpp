// Turns between hosts: a waiter that misses one says so in the row, and the
// holder leaves its next turn to others.
#include <malloc.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "ddbmutex/lock/turns.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using std::chrono::milliseconds;

namespace {

// What somebody else's row says.  With a lease of an hour nobody takes it.
std::string row_of_holder(const std::string& uuid, bool waited_for = false) {
  return record(uuid, calendar() + 1h, 1h) +
         (waited_for ? R"(,"waiting":{"S":"another"})" : "");
}

// A lock that goes from one holder to the next each time it is looked at; after
// the last it is free.
class Holders {
 public:
  explicit Holders(std::vector<std::string> rows)
      : rows_(std::move(rows)),
        server([this](const SeenRequest& request) { return answer(request); }) {
  }

  // The waiters' words, by the uuid that they name; "a b".
  std::string words() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return words_;
  }
  // The answer to a waiter's word.
  std::function<Reply()> answer_to_word = [] { return Reply::ok("{}"); };

 private:
  Reply answer(const SeenRequest& request) {
    const std::string action = action_of(request);
    if (action == "DeleteItem") return Reply::ok("{}");
    const std::lock_guard<std::mutex> guard(mutex_);
    if (action == "UpdateItem") {
      const std::string uuid = text_of(request, ":seen_uuid");
      words_ += (words_.empty() ? "" : " ") + uuid;
      return answer_to_word();
    }
    if (next_ == rows_.size()) return Reply::ok("{}");
    const std::string& row = rows_[next_++];
    return action == "GetItem" ? found(row) : refusal(row);
  }
  // The string that a word of the request's expressions stands for.
  static std::string text_of(const SeenRequest& request,
                             const std::string& word) {
    const std::string before = "\"" + word + R"(":{"S":")";
    const std::size_t at = request.body.find(before);
    if (at == std::string::npos) return "?";
    const std::size_t from = at + before.size();
    return request.body.substr(from, request.body.find('"', from) - from);
  }

  const std::vector<std::string> rows_;
  mutable std::mutex mutex_;
  std::size_t next_ = 0;  // GUARDED_BY(mutex_)
  std::string words_;     // GUARDED_BY(mutex_)

 public:
  ScriptedServer server;  // The last member, because its thread uses the rest.
};

Options often_looking(const ScriptedServer& server) {
  Options options = on_table(table_at(server));
  options.auto_renew = false;
  options.first_poll = options.longest_poll = 1ms;
  return options;
}

// What a waiter of these holders says until it has the lock.
std::string said_to(const std::vector<std::string>& rows) {
  Holders holders(rows);
  DdbMutex mutex("x", often_looking(holders.server));
  mutex.lock();
  return holders.words();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(turns)

// --- Whoever waits -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(waiter_says_so_once_for_each_turn_that_it_has_missed) {
  const auto row = row_of_holder;
  BOOST_TEST(said_to({row("a", false), row("b", false), row("b", true),
                      row("c", false), row("c", true)}) == "b c");
}

BOOST_AUTO_TEST_CASE(waiter_that_has_missed_no_turn_says_nothing) {
  const auto row = row_of_holder;
  BOOST_TEST(said_to({row("a", false), row("a", false), row("a", false)}) ==
             "");
  // A renewal is no change of hands.
  BOOST_TEST(said_to({record("a", calendar() + 1h, 1h),
                      record("a", calendar() + 2h, 1h)}) == "");
  // Another waiter was faster.
  BOOST_TEST(said_to({row("a", false), row("b", true), row("b", true)}) == "");
  // A program of ddblock, which writes no lease, would not read it.
  BOOST_TEST(
      said_to({row("a", false),
               R"("uuid":{"S":"b"},"expires":{"N":"9000000000000000000"})",
               row("a", false)}) == "a");
}

BOOST_AUTO_TEST_CASE(try_lock_is_no_waiter) {
  Holders holders({row_of_holder("a"), row_of_holder("b"), row_of_holder("c")});
  DdbMutex mutex("x", often_looking(holders.server));
  for (int i = 0; i < 3; ++i) BOOST_TEST(!mutex.try_lock());
  BOOST_TEST(holders.words() == "");
}

// The lock has gone on while the word was under way: the waiter tells the new
// holder, but not for ever.
BOOST_AUTO_TEST_CASE(waiter_tells_the_next_holder_if_the_last_is_gone) {
  Holders holders({row_of_holder("a"), row_of_holder("b")});
  int number = 0;
  holders.answer_to_word = [&number] {
    return refusal(row_of_holder(std::to_string(++number)));
  };
  DdbMutex mutex("x", often_looking(holders.server));
  mutex.lock();
  BOOST_TEST(holders.words() == "b 1 2");
}

// It may do without, for instance if its keys do not allow UpdateItem.
BOOST_AUTO_TEST_CASE(word_that_fails_costs_the_waiter_nothing) {
  for (const auto& [status, code] :
       {std::pair<int, const char*>(400, "AccessDeniedException"),
        {400, "ProvisionedThroughputExceededException"},
        {500, "InternalServerError"}}) {
    Holders holders(
        {row_of_holder("a"), row_of_holder("b"), row_of_holder("b")});
    holders.answer_to_word = [status = status, code = code] {
      return failure(status, code);
    };
    DdbMutex mutex("x", often_looking(holders.server));
    BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none", code);
    BOOST_TEST(holders.words() == "b", code);
  }
}

BOOST_AUTO_TEST_CASE(waiter_looks_more_often_once_it_has_missed_eight_turns) {
  ddbmutex::lock::MissedTurns turns;
  ddbmutex::lock::Row row;
  row.kind = ddbmutex::lock::Row::Kind::record;
  row.lease = 1h;
  row.expires = calendar() + 1h;
  for (int seen = 0; seen < 20; ++seen) {
    row.uuid = std::to_string(seen);
    turns.must_tell(row);
    turns.must_tell(row);  // It is still that holder's turn.
    BOOST_TEST((turns.longest_pause(400ms) == (seen < 8 ? 400ms : 100ms)),
               seen);
  }
}

// --- Whoever has had the lock ------------------------------------------------

namespace {

// A table of free locks, where another host waits for each that is released.
struct WaitedFor {
  explicit WaitedFor(milliseconds longest_poll, bool keeps_row = false)
      : options(on_table(table_at(server))) {
    options.auto_renew = false;
    options.keep_row = keeps_row;
    options.first_poll = options.longest_poll = longest_poll;
  }

  static Reply answer(const SeenRequest& request) {
    const std::string action = action_of(request);
    if (action == "GetItem") return Reply::ok("{}");
    const std::string& body = request.body;
    const bool frees_kept_row = body.find("UPDATED_OLD") != body.npos;
    if (action == "DeleteItem" || frees_kept_row) {
      return Reply::ok(R"({"Attributes":{"waiting":{"S":"host:1"}}})");
    }
    if (action == "PutItem") return Reply::ok("{}");
    return Reply::ok(R"({"Attributes":{)" + given_record(body) + "}}");
  }
  // The record that an UpdateItem makes of a kept row.
  static std::string given_record(const std::string& body) {
    const auto value = [&](const std::string& word) {
      const std::size_t from = body.find("\"" + word + "\":") + word.size() + 3;
      return body.substr(from, body.find('}', from) + 1 - from);
    };
    return R"("uuid":)" + value(":uuid") + R"(,"expires":)" +
           value(":expires") + R"(,"lease":)" + value(":lease") +
           R"(,"token":{"N":"1"})";
  }

  ScriptedServer server{&answer};
  Options options;
};

constexpr milliseconds kForLong = 1h;
const auto kEngines = boost::unit_test::data::make(engine_kinds());

}  // namespace

BOOST_DATA_TEST_CASE(holder_leaves_the_next_turn_to_others,
                     boost::unit_test::data::make({false, true}), keeps_row) {
  WaitedFor it(kForLong, keeps_row);
  DdbMutex mutex("x", it.options);
  mutex.lock();
  mutex.unlock();
  const int asked = it.server.request_count();
  BOOST_TEST(!mutex.try_lock());
  BOOST_TEST(!mutex.try_lock_for(1ms));
  // Also with an object of its own, which a program may make for each turn.
  BOOST_TEST(!DdbMutex("x", it.options).try_lock());
  BOOST_TEST(it.server.request_count() == asked);
  BOOST_TEST(DdbMutex("y", it.options).try_lock());
  // To others this process is a host that waits, too.
  Options elsewhere = it.options;
  elsewhere.table = table_at(it.server);
  BOOST_TEST(DdbMutex("x", elsewhere).try_lock());
}

BOOST_AUTO_TEST_CASE(call_that_leaves_its_turn_can_be_cancelled) {
  WaitedFor it(kForLong);
  DdbMutex mutex("x", it.options);
  mutex.lock();
  mutex.unlock();
  Aside waiter([&] { mutex.lock(); });
  BOOST_TEST(waiter.rests());
  mutex.cancel();
  BOOST_TEST(waiter.thrown() == words(Errc::cancelled));
  Aside another([&] { mutex.lock(); });
  BOOST_TEST(another.rests());
  it.options.table->close();
  BOOST_TEST(another.thrown() == words(Errc::closed));
}

BOOST_AUTO_TEST_CASE(holder_asks_again_after_the_waiters_have_looked) {
  WaitedFor it(30ms);
  DdbMutex mutex("x", it.options);
  mutex.lock();
  for (int i = 0; i < 3; ++i) {
    mutex.unlock();
    const auto released = BootClock::now();
    mutex.lock();
    BOOST_TEST((BootClock::now() - released >= 30ms));
  }
}

BOOST_AUTO_TEST_CASE(holder_that_nobody_waits_for_sends_two_requests_a_turn) {
  ScriptedServer server([](const SeenRequest& request) {
    if (action_of(request) != "DeleteItem") return Reply::ok("{}");
    return Reply::ok(R"({"Attributes":{"uuid":{"S":"x"}}})");
  });
  Options options = on_table(table_at(server));
  options.first_poll = options.longest_poll = kForLong;
  DdbMutex mutex("x", options);
  mutex.lock();
  mutex.unlock();
  const int asked = server.request_count();
  for (int i = 0; i < 5; ++i) {
    mutex.lock();
    mutex.unlock();
  }
  BOOST_TEST(server.request_count() == asked + 10);
}

// The heap is asked: what is remembered cannot be seen otherwise.
BOOST_AUTO_TEST_CASE(turns_that_are_over_are_forgotten) {
  const auto heap_in_use = [] { return mallinfo2().uordblks; };
  ddbmutex::lock::TurnsOfOthers turns;
  const std::size_t before = heap_in_use();
  for (int i = 0; i < 10'000; ++i) {
    turns.leave({"locks", "lock-" + std::to_string(i)}, BootClock::now());
  }
  BOOST_TEST(heap_in_use() < before + 10'000);
}

// --- On an engine ------------------------------------------------------------

// The word goes through the row, and comes back with the release.
BOOST_DATA_TEST_CASE(hosts_tell_each_other_by_the_row, kEngines, kind) {
  for (const bool keeps_row : {false, true}) {
    Gate gate(kind);
    const auto options_at = [&](const auto& where, milliseconds poll) {
      Options options = on_table(table_at(where));
      options.keep_row = keeps_row;
      options.first_poll = options.longest_poll = poll;
      return options;
    };
    const std::string name = fresh_name();
    const Options patient = options_at(gate.engine(), kForLong);
    DdbMutex holder(name, patient);
    DdbMutex waiter(name, options_at(gate, 1ms));
    write_row(gate.engine(), name, live_record());
    const int looks = count_of(gate.server(), "GetItem");
    Aside wait([&] { waiter.lock(); });
    // It has seen a holder.  Until it looks again, there is another.
    BOOST_TEST(gate.server().wait_for_requests(looks + 3));
    Event held;
    gate.always("GetItem", [&](Engine& engine, const SeenRequest& request) {
      held.set();
      return Gate::held()(engine, request);
    });
    BOOST_TEST(held.wait());
    delete_row(gate.engine(), name);
    holder.lock();
    gate.open();
    gate.server().release();
    BOOST_TEST_REQUIRE(
        eventually([&] { return row_of(gate.engine(), name).waited_for; }));
    const auto asked = [&] {
      const ddbmutex::Stats stats = patient.table->stats();
      return stats.put_item + stats.update_item + stats.get_item;
    };
    holder.unlock();
    const auto before = asked();
    BOOST_TEST(!holder.try_lock());
    BOOST_TEST(asked() == before);
    BOOST_TEST(wait.thrown() == "none");
  }
}

BOOST_AUTO_TEST_SUITE_END()
