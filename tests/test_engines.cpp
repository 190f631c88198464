// The protocol on real DynamoDB engines, each case on each of them: what the
// conditions of our requests do to real rows, and what is left of them when
// answers are lost on the way.
#include <strings.h>

#include <algorithm>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/body_of.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/party.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/words.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using lock::Call;
using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using tests::Ending;
using tests::Engine;
using tests::EngineKind;
using tests::eventually;
using tests::Party;
using tests::PartySettings;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;
using tests::word;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

nanoseconds calendar() { return dynamodb::Client::calendar(); }

// For a lock nobody else has heard of.
PartySettings fresh_lock_on(Engine& engine) {
  PartySettings settings;
  settings.url = engine.url();
  settings.table = engine.table();
  settings.key = "ddblock-" + lock::fresh_uuid();
  settings.region = engine.region();
  settings.keys = engine.credentials();
  return settings;
}

PartySettings fresh_lock(EngineKind kind) {
  return fresh_lock_on(Engine::running(kind));
}

std::string place_of(const PartySettings& at, const char* item_or_key) {
  return R"({"TableName":")" + at.table + R"(",")" + item_or_key +
         R"(":{"name":{"S":")" + at.key + R"("})";
}

std::optional<dynamodb::Item> item_of(EngineKind kind,
                                      const PartySettings& at) {
  auto http = Engine::running(kind).call(
      "GetItem", place_of(at, "Key") + R"(},"ConsistentRead":true})");
  BOOST_REQUIRE(http.status == 200);
  return dynamodb::read_answer(dynamodb::Action::get_item, std::move(http), {})
      .item;
}

Row row_of(EngineKind kind, const PartySettings& at) {
  const auto item = item_of(kind, at);
  return item ? lock::read_row(*item) : Row{};
}

bool is_free(EngineKind kind, const PartySettings& at) {
  return !item_of(kind, at).has_value();
}

// Writes the row as somebody else would; `attributes` is JSON.
void write_row(EngineKind kind, const PartySettings& at,
               const std::string& attributes) {
  Engine::running(kind).must_call(
      "PutItem", place_of(at, "Item") + "," + attributes + "}}");
}

std::string record(const std::string& uuid, nanoseconds expires,
                   const std::string& more = R"(,"lease":{"N":"60000"})") {
  return R"("uuid":{"S":")" + uuid + R"("},"expires":{"N":")" +
         std::to_string(expires.count()) + R"("})" + more;
}

void delete_row(EngineKind kind, const PartySettings& at) {
  Engine::running(kind).must_call("DeleteItem", place_of(at, "Key") + "}}");
}

// Asks every few milliseconds until it is ours.
bool poll_until_ours(Party& party) {
  return eventually([&party] {
    const std::string verdict = party.take();
    if (verdict == "ours") return true;
    BOOST_REQUIRE(verdict == "busy");
    return false;
  });
}

// As Party::step(), at a time of the test's own.
std::string step_at(Party& party, Call call, BootTime now) {
  const lock::Request request =
      party.lease->next(call, now, party.client.clock(), party.observation);
  dynamodb::Answer answer = party.client.call(
      lock::action_of(request.verb, {}), tests::body_of(party.place, request),
      BootClock::now() + tests::kPlenty, party.waker);
  lock::Reply reply = lock::reply_to(request.verb, answer);
  reply.received = now;
  return word(party.lease->receive(std::move(reply), party.client.clock(),
                                   party.observation));
}

// And again at once while that is undecided.
std::string run_at(Party& party, Call call, BootTime now) {
  std::string verdict = "again";
  for (int i = 0; i < 5 && verdict == "again"; ++i) {
    verdict = step_at(party, call, now);
  }
  return verdict;
}

// A server before the engine that does `fault` to the next request.
class Between {
 public:
  using Fault = std::function<Reply(Engine&, const SeenRequest&)>;

  explicit Between(EngineKind kind)
      : engine_(Engine::running(kind)),
        server_([this](const SeenRequest& request) {
          Fault fault;
          {
            const std::lock_guard<std::mutex> guard(mutex_);
            std::swap(fault, next_);
          }
          return fault ? fault(engine_, request) : engine_.forward(request);
        }) {}

  void next(Fault fault) {
    const std::lock_guard<std::mutex> guard(mutex_);
    next_ = std::move(fault);
  }
  // What the call came to, which is given up once its request has come here.
  std::string given_up(Party& party, Call call) {
    const int before = server_.request_count();
    std::thread giving_up([&] {
      server_.wait_for_requests(before + 1);
      party.waker.wake();
    });
    std::string verdict = party.run(call, tests::kPlenty);
    giving_up.join();
    party.waker.clear();
    return verdict;
  }
  // The next request reaches the engine only when release() is called.
  // `applied` is told the engine's HTTP status then.
  void hold_next(std::atomic<int>* applied) {
    next([applied](Engine& engine, const SeenRequest&) {
      Reply late;
      late.hangs = true;
      late.then = [applied, &engine](const SeenRequest& request) {
        const Reply reply = engine.forward(request);
        *applied = reply.status;
        return reply;
      };
      return late;
    });
  }
  ScriptedServer& server() { return server_; }
  PartySettings fresh_lock() {
    PartySettings settings = fresh_lock_on(engine_);
    settings.url = server_.url();
    return settings;
  }

 private:
  Engine& engine_;
  std::mutex mutex_;
  Fault next_;  // GUARDED_BY(mutex_)
  ScriptedServer server_;
};

Reply server_error(int status) {
  return Reply::error(status, R"({"__type":"InternalServerError"})");
}

// What may become of an answer, once the engine has done what was asked.
std::map<std::string, Between::Fault> faults_after_apply() {
  using Change = std::function<Reply(Reply)>;
  const auto after = [](Change change) -> Between::Fault {
    return [change](Engine& engine, const SeenRequest& request) {
      return change(engine.forward(request));
    };
  };
  std::map<std::string, Between::Fault> faults;
  faults["closed"] = after([](Reply) { return Reply::gone(Ending::close); });
  faults["reset"] = after([](Reply) { return Reply::gone(Ending::reset); });
  faults["500"] = after([](Reply) { return server_error(500); });
  faults["503, HTML"] =
      after([](Reply) { return Reply::error(503, "<html></html>"); });
  faults["cut short"] = after([](Reply reply) {
    reply.cut_body_at = 1;
    reply.ending = Ending::close;
    return reply;
  });
  faults["wrong crc32"] = after([](Reply reply) {
    reply.wrong_crc32 = true;
    return reply;
  });
  return faults;
}

std::map<std::string, Between::Fault> faults_before_apply() {
  std::map<std::string, Between::Fault> faults;
  faults["closed"] = [](Engine&, const SeenRequest&) {
    return Reply::gone(Ending::close);
  };
  faults["500"] = [](Engine&, const SeenRequest&) { return server_error(500); };
  return faults;
}

std::map<std::string, Between::Fault> all_faults() {
  std::map<std::string, Between::Fault> all;
  for (const auto& [name, fault] : faults_after_apply()) {
    all[name + ", applied"] = fault;
  }
  for (const auto& [name, fault] : faults_before_apply()) {
    all[name + ", not applied"] = fault;
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(engines)

// --- Free and held ---------------------------------------------------------

BOOST_DATA_TEST_CASE(free_lock_costs_one_put_and_one_delete, kEngines, kind) {
  const PartySettings at = fresh_lock(kind);
  Party party(at);
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.holds());
  BOOST_TEST(row_of(kind, at).uuid == party.lease->uuid());
  BOOST_TEST(party.release() == "released");
  BOOST_TEST(party.counts() == "Put 1 Update 0 Delete 1 Get 0");
  BOOST_TEST(is_free(kind, at));
}

BOOST_DATA_TEST_CASE(record_on_the_table_says_what_its_layout_promises,
                     kEngines, kind) {
  PartySettings at = fresh_lock(kind);
  at.ttl = 12345ms;
  at.owner = "h\xc3\xb6st:\"1\"";
  Party party(at);
  BOOST_REQUIRE(party.take() == "ours");
  const auto item = item_of(kind, at);
  BOOST_REQUIRE(item.has_value());
  BOOST_TEST(item->size() == 6u);
  const Row row = lock::read_row(*item);
  BOOST_TEST(word(row.kind) == "record");
  BOOST_REQUIRE(row.lease.has_value());
  BOOST_TEST(row.lease->count() == 12345);
  BOOST_TEST(row.owner == at.owner);
  const auto* ttl = dynamodb::find(*item, "ttl");
  BOOST_REQUIRE(ttl != nullptr);
  BOOST_TEST(std::stoll(ttl->value) ==
             (row.expires + 24h) / std::chrono::seconds(1));
}

BOOST_DATA_TEST_CASE(held_lock_is_busy_and_tells_the_holders_row, kEngines,
                     kind) {
  PartySettings at = fresh_lock(kind);
  at.owner = "first:1";
  Party holder(at);
  BOOST_REQUIRE(holder.take() == "ours");
  at.owner = "second:2";
  Party waiter(at);
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(waiter.take() == "busy");
    BOOST_TEST(waiter.lease->row().uuid == holder.lease->uuid());
    BOOST_TEST(waiter.lease->row().owner == "first:1");
    BOOST_TEST(!waiter.holds());
  }
  BOOST_TEST(holder.release() == "released");
  BOOST_TEST(waiter.take() == "ours");
  BOOST_TEST(row_of(kind, at).owner == "second:2");
}

BOOST_DATA_TEST_CASE(lock_with_an_awkward_name_is_like_any_other, kEngines,
                     kind) {
  PartySettings at = fresh_lock(kind);
  at.key += "\" \\ / \t\n \x01 \xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92";
  Party holder(at);
  Party waiter(at);
  BOOST_TEST(holder.take() == "ours");
  BOOST_TEST(waiter.take() == "busy");
  BOOST_TEST(holder.renew() == "ours");
  BOOST_TEST(holder.release() == "released");
  BOOST_TEST(waiter.take() == "ours");
}

BOOST_DATA_TEST_CASE(contenders_never_hold_at_the_same_time, kEngines, kind) {
  constexpr int kRounds = 12;
  const PartySettings at = fresh_lock(kind);
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> held{0};
  const auto contend = [&] {
    Party party(at);
    for (int i = 0; i < kRounds; ++i) {
      party.begin();
      while (party.take() == "busy") tests::pause(1ms);
      if (++inside != 1) ++overlaps;
      if (party.attempt->verdict() == lock::Verdict::ours) ++held;
      if (i % 3 == 0 && party.renew() != "ours") ++overlaps;
      --inside;
      if (party.release() != "released") ++overlaps;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(contend);
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(overlaps == 0);
  BOOST_TEST(held == 3 * kRounds);
  BOOST_TEST(is_free(kind, at));
}

// --- Dead locks ------------------------------------------------------------

BOOST_DATA_TEST_CASE(dead_lock_is_taken_once_seen_unchanged_for_its_lease,
                     kEngines, kind) {
  PartySettings at = fresh_lock(kind);
  at.ttl = 300ms;
  Party holder(at);
  BOOST_REQUIRE(holder.take() == "ours");
  Party waiter(at);
  BOOST_REQUIRE(waiter.take() == "busy");
  const BootTime seen = BootClock::now();
  BOOST_TEST(poll_until_ours(waiter));
  BOOST_CHECK(waiter.answer.sent_at >= waiter.observation.stale_at());
  BOOST_CHECK(waiter.observation.stale_at() <= seen + lock::waited_for(300ms));
  BOOST_CHECK(waiter.answer.sent_at > holder.lease->claim_end());
  BOOST_TEST(row_of(kind, at).uuid == waiter.lease->uuid());
  BOOST_TEST(holder.release() == "released");  // It had lapsed: no loss.
}

BOOST_DATA_TEST_CASE(lock_renewed_in_time_is_never_taken, kEngines, kind) {
  PartySettings at = fresh_lock(kind);
  at.ttl = 400ms;
  Party holder(at);
  Party waiter(at);
  BootTime now = BootClock::now();
  BOOST_REQUIRE(run_at(holder, Call::take, now) == "ours");
  const BootTime end = now + 1200ms;  // Three leases.
  for (; now < end; now += 5ms) {
    BOOST_REQUIRE(run_at(waiter, Call::take, now) == "busy");
    if (now >= holder.lease->renew_at(at.ttl / 2)) {
      BOOST_REQUIRE(run_at(holder, Call::renew, now) == "ours");
    }
  }
  BOOST_TEST((now < holder.lease->claim_end()));
}

BOOST_DATA_TEST_CASE(long_dead_lock_costs_one_put_where_the_clock_is_known,
                     kEngines, kind) {
  const PartySettings at = fresh_lock(kind);
  Party party(at);
  BOOST_REQUIRE(party.take() == "ours");
  BOOST_REQUIRE(party.release() == "released");
  write_row(kind, at, record("dead", calendar() - 1h));
  party.begin();
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.counts() == "Put 2 Update 0 Delete 1 Get 0");
  BOOST_TEST(row_of(kind, at).uuid == party.lease->uuid());
}

BOOST_DATA_TEST_CASE(long_dead_lock_costs_a_look_more_where_no_clock_is_known,
                     kEngines, kind) {
  PartySettings at = fresh_lock(kind);
  at.knows_the_time = false;
  write_row(kind, at, record("dead", calendar() - 1h));
  Party party(at);
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.counts() == "Put 1 Update 0 Delete 0 Get 1");
}

BOOST_DATA_TEST_CASE(lock_dead_for_a_moment_is_not_taken_by_service_time,
                     kEngines, kind) {
  // Within the two seconds by which DynamoDB's own clocks may differ.
  BOOST_TEST(tests::undisturbed(500ms, [kind]() -> std::string {
               const PartySettings at = fresh_lock(kind);
               Party party(at);
               write_row(kind, at, record("just-dead", calendar()));
               const std::string verdict = party.take();
               if (verdict != "busy") return verdict;
               const Row row = row_of(kind, at);
               return row.uuid == "just-dead" ? "" : "of " + row.uuid;
             }) == "");
}

// --- Rows that others write ------------------------------------------------

BOOST_DATA_TEST_CASE(row_of_a_client_without_lease_is_taken_when_it_is_over,
                     kEngines, kind) {
  const PartySettings at = fresh_lock(kind);
  const nanoseconds expires = calendar() + 1s;
  write_row(kind, at, record("foreign", expires, ""));
  Party party(at);
  BOOST_TEST(party.take() == "busy");
  BOOST_TEST(poll_until_ours(party));
  BOOST_TEST(calendar().count() >= (expires + 2s).count());
}

BOOST_DATA_TEST_CASE(row_of_a_client_without_lease_long_over_is_taken_at_once,
                     kEngines, kind) {
  const PartySettings at = fresh_lock(kind);
  write_row(kind, at, record("foreign", calendar() - 1h, ""));
  Party party(at);
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(row_of(kind, at).uuid == party.lease->uuid());
}

BOOST_DATA_TEST_CASE(row_that_is_no_record_is_never_taken, kEngines, kind) {
  const std::vector<std::string> rows = {
      R"("uuid":{"N":"7"},"expires":{"N":"1"})",
      R"("uuid":{"S":"u"},"expires":{"S":"1"})",
      R"("uuid":{"S":"u"})",
      R"("expires":{"N":"1"})",
      R"("uuid":{"S":"u"},"expires":{"N":"-1"})",
      R"("note":{"S":"not a lock"})",
      R"("uuid":{"S":"u"},"expires":{"N":"12345678901234567890123456789"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"S":"60000"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"N":"0"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"N":"31622400001"})",
      R"("uuid":{"S":")" + std::string(2000, '[') + R"("},"expires":{"N":"1"})",
  };
  for (const std::string& attributes : rows) {
    BOOST_TEST_CONTEXT(attributes.substr(0, 60)) {
      const PartySettings at = fresh_lock(kind);
      write_row(kind, at, attributes);
      const auto before = item_of(kind, at);
      Party party(at);
      // Now that it knows DynamoDB's clock, all of them look long over.
      party.client.call(dynamodb::Action::get_item,
                        tests::body_of(party.place, {}),
                        BootClock::now() + tests::kPlenty, party.waker);
      BOOST_REQUIRE(party.client.clock().known());
      BOOST_TEST(party.take() == "bad_record");
      const auto after = item_of(kind, at);
      BOOST_REQUIRE(before.has_value());
      BOOST_REQUIRE(after.has_value());
      BOOST_TEST(after->size() == before->size());
      BOOST_TEST(dynamodb::find(*after, "owner") == nullptr);
    }
  }
}

BOOST_DATA_TEST_CASE(dead_row_with_a_token_is_never_replaced, kEngines, kind) {
  const PartySettings at = fresh_lock(kind);
  Party party(at);
  BOOST_REQUIRE(party.take() == "ours");  // So that it knows the clock.
  BOOST_REQUIRE(party.release() == "released");
  write_row(kind, at, record("kept", nanoseconds(0), R"(,"token":{"N":"41"})"));
  party.begin();
  BOOST_TEST(party.take() == "kept_row");
  BOOST_TEST(row_of(kind, at).kept);
}

// --- Holding ---------------------------------------------------------------

BOOST_DATA_TEST_CASE(renewals_move_the_stamp_and_the_claim, kEngines, kind) {
  const PartySettings at = fresh_lock(kind);
  Party party(at);
  BOOST_REQUIRE(party.take() == "ours");
  nanoseconds stamp = row_of(kind, at).expires;
  BootTime end = party.lease->claim_end();
  nanoseconds before{};
  for (int i = 0; i < 5; ++i) {
    tests::pause(10ms);
    before = calendar();
    BOOST_TEST(party.renew() == "ours");
    BOOST_CHECK(party.lease->claim_end() > end);
    BOOST_TEST(row_of(kind, at).expires.count() != stamp.count());
    end = party.lease->claim_end();
    stamp = row_of(kind, at).expires;
  }
  const Row row = row_of(kind, at);
  BOOST_TEST(row.uuid == party.lease->uuid());
  BOOST_TEST(row.expires.count() > (before + 59s).count());
  BOOST_TEST(row.expires.count() < (calendar() + 63s).count());
  BOOST_TEST(party.counts() == "Put 1 Update 5 Delete 0 Get 0");
}

BOOST_DATA_TEST_CASE(holder_whose_row_was_overwritten_learns_it_was_taken,
                     kEngines, kind) {
  for (const Call call : {Call::renew, Call::release}) {
    const PartySettings at = fresh_lock(kind);
    Party party(at);
    BOOST_REQUIRE(party.take() == "ours");
    write_row(kind, at, record("theirs", calendar() + 1h));
    BOOST_TEST(party.run(call, tests::kPlenty) == "taken");
    BOOST_TEST(row_of(kind, at).uuid == "theirs");
  }
}

BOOST_DATA_TEST_CASE(holder_whose_row_was_deleted_learns_it, kEngines, kind) {
  for (const Call call : {Call::renew, Call::release}) {
    const PartySettings at = fresh_lock(kind);
    Party party(at);
    BOOST_REQUIRE(party.take() == "ours");
    delete_row(kind, at);
    BOOST_TEST(party.run(call, tests::kPlenty) == "deleted");
    BOOST_TEST(is_free(kind, at));
  }
}

BOOST_DATA_TEST_CASE(holder_whose_table_was_deleted_learns_it, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  PartySettings at = fresh_lock(kind);
  at.table = engine.create_table();
  Party renewing(at);
  at.key += "-2";
  Party releasing(at);
  BOOST_REQUIRE(renewing.take() == "ours");
  BOOST_REQUIRE(releasing.take() == "ours");
  engine.delete_table(at.table);
  BOOST_TEST(renewing.renew() == "deleted");
  BOOST_TEST(releasing.release() == "deleted");
  at.key += "-3";
  Party taking(at);
  BOOST_TEST(taking.take() == "again");
  BOOST_TEST(taking.fault() == "no_table");
}

BOOST_DATA_TEST_CASE(row_that_becomes_no_record_is_a_loss, kEngines, kind) {
  const PartySettings at = fresh_lock(kind);
  Party party(at);
  BOOST_REQUIRE(party.take() == "ours");
  write_row(kind, at, R"("uuid":{"N":"7"})");
  BOOST_TEST(party.renew() == "taken");
}

// --- The first lock of a process -------------------------------------------

BOOST_DATA_TEST_CASE(first_lock_of_a_process_is_stamped_by_dynamodbs_clock,
                     kEngines, kind) {
  PartySettings at = fresh_lock(kind);
  at.knows_the_time = false;
  Party party(at);
  const nanoseconds before = calendar();
  BOOST_TEST(party.take() == "ours");
  const nanoseconds stamp = row_of(kind, at).expires;
  BOOST_TEST(stamp.count() > (before + 59s).count());
  BOOST_TEST(stamp.count() < (calendar() + 63s).count());
  BOOST_TEST(party.counts() == "Put 1 Update 0 Delete 0 Get 1");
  BOOST_TEST(party.release() == "released");
}

BOOST_DATA_TEST_CASE(first_lock_of_a_process_that_is_held_costs_a_look_alone,
                     kEngines, kind) {
  PartySettings at = fresh_lock(kind);
  Party holder(at);
  BOOST_REQUIRE(holder.take() == "ours");
  at.knows_the_time = false;
  Party party(at);
  BOOST_TEST(party.take() == "busy");
  BOOST_TEST(party.counts() == "Put 0 Update 0 Delete 0 Get 1");
}

// --- Answers that were lost ------------------------------------------------

BOOST_DATA_TEST_CASE(take_whose_answer_is_lost_is_acquired_once, kEngines,
                     kind) {
  for (const auto& [name, fault] : all_faults()) {
    BOOST_TEST_CONTEXT(name) {
      Between between(kind);
      const PartySettings at = between.fresh_lock();
      Party party(at);
      between.next(fault);
      BOOST_TEST(party.take() == "ours");
      BOOST_TEST(party.holds());
      BOOST_TEST(between.server().request_count() == 2);
      BOOST_TEST(row_of(kind, at).uuid == party.lease->uuid());
      BOOST_TEST(party.renew() == "ours");
      BOOST_TEST(party.release() == "released");
      BOOST_TEST(is_free(kind, at));
    }
  }
}

namespace {

// The engine's answer, which does not tell the time.
Reply undated(Engine& engine, const SeenRequest& request) {
  Reply reply = engine.forward(request);
  const auto is_date = [](const auto& header) {
    return strcasecmp(header.first.c_str(), "Date") == 0;
  };
  reply.headers.erase(
      std::remove_if(reply.headers.begin(), reply.headers.end(), is_date),
      reply.headers.end());
  reply.headers.emplace_back("Date", "");
  return reply;
}

}  // namespace

// Of which one was applied; its lease is over or not when an answer comes, and
// its stamp tells nobody so.
BOOST_DATA_TEST_CASE(take_is_in_at_once_after_a_hundred_lost_answers, kEngines,
                     kind) {
  for (const int applied : {0, 50, 99}) {
    for (const nanoseconds later : {0s, 120s}) {
      Between between(kind);
      PartySettings at = between.fresh_lock();
      at.knows_the_time = false;
      Party party(at);
      const BootTime now = BootClock::now();
      between.next(undated);
      BOOST_REQUIRE(step_at(party, Call::take, now) == "again");  // A look.
      for (int i = 0; i < 100; ++i) {
        between.next(i == applied ? faults_after_apply().at("closed")
                                  : faults_before_apply().at("closed"));
        BOOST_REQUIRE(step_at(party, Call::take, now) == "again");
      }
      const std::uint64_t before = party.count();
      std::string verdict;
      do {
        between.next(undated);
        verdict = step_at(party, Call::take, now + later);
      } while (verdict == "again" && party.count() < before + 10);
      BOOST_TEST(verdict == "ours");
      // The take; a look, where the engine does not tell what refused it; and
      // where the lease that it had is over, another take.
      const int looks = kind == EngineKind::dynoxide ? 0 : 1;
      const int takes = later == 0s || applied == 99 ? 1 : 2;
      BOOST_TEST(
          party.count() - before <= static_cast<std::uint64_t>(takes + looks),
          applied << " " << later / 1s << " s, " << party.counts());
      BOOST_TEST(row_of(kind, at).uuid == party.lease->uuid());
    }
  }
}

BOOST_DATA_TEST_CASE(renewal_whose_answer_is_lost_still_holds, kEngines, kind) {
  for (const auto& [name, fault] : all_faults()) {
    BOOST_TEST_CONTEXT(name) {
      Between between(kind);
      const PartySettings at = between.fresh_lock();
      Party party(at);
      BOOST_REQUIRE(party.take() == "ours");
      between.next(fault);
      BOOST_TEST(party.renew() == "ours");
      BOOST_TEST(party.renew() == "ours");
      BOOST_TEST(party.holds());
      BOOST_TEST(party.counts() == "Put 1 Update 3 Delete 0 Get 0");
      BOOST_TEST(party.release() == "released");
    }
  }
}

BOOST_DATA_TEST_CASE(release_whose_answer_is_lost_is_released, kEngines, kind) {
  for (const auto& [name, fault] : all_faults()) {
    BOOST_TEST_CONTEXT(name) {
      Between between(kind);
      const PartySettings at = between.fresh_lock();
      Party party(at);
      BOOST_REQUIRE(party.take() == "ours");
      between.next(fault);
      BOOST_TEST(party.release() == "released");
      BOOST_TEST(party.counts() == "Put 1 Update 0 Delete 2 Get 0");
      BOOST_TEST(is_free(kind, at));
    }
  }
}

BOOST_DATA_TEST_CASE(release_lost_and_then_taken_by_the_next_is_released,
                     kEngines, kind) {
  Between between(kind);
  const PartySettings at = between.fresh_lock();
  Party party(at);
  Party next(at);
  BOOST_REQUIRE(party.take() == "ours");
  between.next(faults_after_apply().at("closed"));
  BOOST_TEST(party.step(Call::release) == "again");
  BOOST_REQUIRE(next.take() == "ours");
  BOOST_TEST(party.release() == "released");
  BOOST_TEST(row_of(kind, at).uuid == next.lease->uuid());
}

BOOST_AUTO_TEST_CASE(throttled_after_apply_is_acquired_once) {
  const EngineKind kind = tests::any_engine_kind();
  Between between(kind);
  const PartySettings at = between.fresh_lock();
  Party party(at);
  between.next([](Engine& engine, const SeenRequest& request) {
    engine.forward(request);
    return Reply::error(
        400, R"({"__type":"ProvisionedThroughputExceededException"})");
  });
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(row_of(kind, at).uuid == party.lease->uuid());
  BOOST_TEST(party.release() == "released");
}

BOOST_DATA_TEST_CASE(take_given_up_and_released_leaves_no_row, kEngines, kind) {
  Between between(kind);
  const PartySettings at = between.fresh_lock();
  Party party(at);
  between.next([](Engine& engine, const SeenRequest& request) {
    Reply reply = engine.forward(request);
    reply.hangs = true;  // Applied, and no answer.
    return reply;
  });
  BOOST_TEST(between.given_up(party, Call::take) == "again");
  BOOST_TEST(party.fault() == "cancelled");
  BOOST_TEST(party.release() == "released");
  BOOST_TEST(is_free(kind, at));
}

// --- Requests that arrive late ---------------------------------------------

BOOST_DATA_TEST_CASE(take_that_arrives_after_its_release_ends_with_its_lease,
                     kEngines, kind) {
  Between between(kind);
  PartySettings at = between.fresh_lock();
  at.ttl = 200ms;
  Party gone(at);
  std::atomic<int> applied{0};
  between.hold_next(&applied);
  BOOST_REQUIRE(between.given_up(gone, Call::take) == "again");
  BOOST_REQUIRE(gone.release() == "released");
  between.server().release();
  BOOST_REQUIRE(eventually([&] { return applied != 0; }));
  BOOST_TEST(applied == 200);
  BOOST_TEST(row_of(kind, at).uuid == gone.lease->uuid());
  Party waiter(at);
  BOOST_TEST(waiter.take() == "busy");
  BOOST_TEST(poll_until_ours(waiter));
  BOOST_TEST(!gone.holds());
}

BOOST_DATA_TEST_CASE(old_take_that_arrives_at_the_next_holder_changes_nothing,
                     kEngines, kind) {
  Between between(kind);
  const PartySettings at = between.fresh_lock();
  Party gone(at);
  std::atomic<int> applied{0};
  between.hold_next(&applied);
  BOOST_REQUIRE(between.given_up(gone, Call::take) == "again");
  Party next(at);
  BOOST_REQUIRE(next.take() == "ours");
  const Row before = row_of(kind, at);
  between.server().release();
  BOOST_REQUIRE(eventually([&] { return applied != 0; }));
  BOOST_TEST(applied == 400);
  BOOST_TEST(row_of(kind, at).uuid == before.uuid);
  BOOST_TEST(row_of(kind, at).expires.count() == before.expires.count());
  BOOST_TEST(next.renew() == "ours");
}

BOOST_DATA_TEST_CASE(old_renewal_that_arrives_after_the_release_is_refused,
                     kEngines, kind) {
  for (const bool next_holder : {false, true}) {
    Between between(kind);
    const PartySettings at = between.fresh_lock();
    Party party(at);
    BOOST_REQUIRE(party.take() == "ours");
    std::atomic<int> applied{0};
    between.hold_next(&applied);
    BOOST_REQUIRE(between.given_up(party, Call::renew) == "again");
    BOOST_REQUIRE(party.release() == "released");
    Party next(at);
    if (next_holder) BOOST_REQUIRE(next.take() == "ours");
    between.server().release();
    BOOST_REQUIRE(eventually([&] { return applied != 0; }));
    BOOST_TEST(applied == 400);
    BOOST_TEST(row_of(kind, at).uuid ==
               (next_holder ? next.lease->uuid() : ""));
  }
}

BOOST_DATA_TEST_CASE(old_renewal_that_arrives_after_a_newer_one_is_refused,
                     kEngines, kind) {
  Between between(kind);
  const PartySettings at = between.fresh_lock();
  Party party(at);
  BOOST_REQUIRE(party.take() == "ours");
  std::atomic<int> applied{0};
  between.hold_next(&applied);
  BOOST_REQUIRE(between.given_up(party, Call::renew) == "again");
  BOOST_REQUIRE(party.renew() == "ours");
  const Row newer = row_of(kind, at);
  between.server().release();
  BOOST_REQUIRE(eventually([&] { return applied != 0; }));
  BOOST_TEST(applied == 400);
  BOOST_TEST(row_of(kind, at).expires.count() == newer.expires.count());
  BOOST_TEST(party.renew() == "ours");
}

// --- Dead connections ------------------------------------------------------

namespace {

std::string text_after(const std::string& body, const std::string& mark) {
  const std::size_t at = body.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + mark.size();
  return body.substr(begin, body.find('"', begin) - begin);
}

// What no other take or renewal has in common with this one; empty for a
// release, which may be sent twice.
std::string version_of(const SeenRequest& request) {
  const std::string& body = request.body;
  const std::string put = text_after(body, R"("expires":{"N":")");
  if (!put.empty()) return text_after(body, R"("uuid":{"S":")") + put;
  const std::string renewed = text_after(body, R"(":expires":{"N":")");
  if (renewed.empty()) return "";
  return text_after(body, R"(":uuid":{"S":")") + renewed;
}

}  // namespace

// libcurl sends a POST again by itself when a kept connection dies without an
// answer.  The server has applied it then: 1,050 times here, and each request
// reaches it exactly once.
BOOST_AUTO_TEST_CASE(request_on_a_dying_connection_is_delivered_exactly_once) {
  constexpr int kRounds = 350;
  const EngineKind kind = tests::any_engine_kind();
  Between between(kind);
  const PartySettings at = between.fresh_lock();
  const auto lose = faults_after_apply().at("closed");
  Party party(at);
  BOOST_REQUIRE(party.step(Call::take) == "ours");
  BOOST_REQUIRE(party.step(Call::release) == "released");
  for (int i = 0; i < kRounds; ++i) {
    party.begin();
    for (const Call call : {Call::take, Call::renew, Call::release}) {
      between.next(lose);
      BOOST_REQUIRE(party.step(call) == "again");
      BOOST_REQUIRE(party.fault() == "disconnected");
      BOOST_REQUIRE(party.answer.sent);
      const std::string verdict = party.step(call);
      BOOST_REQUIRE(verdict == (call == Call::release ? "released" : "ours"));
    }
  }
  const auto requests = between.server().requests();
  BOOST_TEST(party.count() == 2u + 6u * kRounds);
  BOOST_TEST(requests.size() == party.count());
  std::map<std::string, int> deliveries;
  int on_a_kept_connection = 0;
  for (std::size_t i = 1; i < requests.size(); ++i) {
    const std::string version = version_of(requests[i]);
    if (!version.empty()) ++deliveries[version];
    if (requests[i].connection == requests[i - 1].connection) {
      ++on_a_kept_connection;
    }
  }
  BOOST_TEST(deliveries.size() == 4u * kRounds);
  BOOST_TEST(std::all_of(deliveries.begin(), deliveries.end(),
                         [](const auto& entry) { return entry.second == 1; }));
  // All that were lost, and the one release before.
  BOOST_TEST(on_a_kept_connection == 1 + 3 * kRounds);
  BOOST_TEST(is_free(kind, at));
}

// An engine that closes what is idle (dynalite does after 5 s) loses nobody
// anything.
BOOST_AUTO_TEST_CASE(connection_closed_while_idle_costs_no_lock) {
  const EngineKind kind = tests::any_engine_kind();
  for (const Ending ending : {Ending::close, Ending::reset}) {
    Between between(kind);
    Party party(between.fresh_lock());
    BOOST_REQUIRE(party.take() == "ours");
    between.server().end_idle(ending);
    BOOST_TEST(party.renew() == "ours");
    between.server().end_idle(ending);
    BOOST_TEST(party.release() == "released");
  }
}

BOOST_AUTO_TEST_SUITE_END()
