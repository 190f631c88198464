// Tables as a whole: on real engines, and where a service is slow, busy or of
// another mind.
#include <array>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/row.hpp"
#include "ddbmutex/table_setup.hpp"
#include "tests/support/check_fault.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/given.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Caller;
using dynamodb::Client;
using dynamodb::Fault;
using dynamodb::TableDescription;
using tests::Engine;
using tests::EngineKind;
using tests::kPlenty;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

// A table that is asked for.
struct Wanted {
  TableOptions options;
  Creation how{};
};

Wanted wanted(const std::string& name, const std::string& key = "name",
              const std::string& sort_key = "") {
  Wanted table;
  table.options.name = name;
  table.options.key = key;
  table.options.sort_key = sort_key;
  return table;
}

bool is_keyed_by(const TableDescription& table, const std::string& key,
                 const std::string& sort_key) {
  return !detail::unfit(table, wanted("locks", key, sort_key).options);
}

// One that asks.
struct Host {
  explicit Host(const std::string& url, const std::string& region = "us-east-1",
                const Credentials& keys = {"AKIDEXAMPLE", "secret", ""})
      : client({tests::target_at(url, region),
                tests::given_keys(tests::signing_keys(keys)),
                {}}) {}
  explicit Host(Engine& engine)
      : Host(engine.url(), engine.region(), engine.credentials().value()) {}
  // A scripted service that has no more to say would else be asked for long.
  explicit Host(const ScriptedServer& server) : Host(server.url()) {
    time = std::chrono::seconds(20);
  }

  BootTime in(std::chrono::nanoseconds delay) const {
    return BootClock::now() + delay;
  }
  Caller until(BootTime deadline) { return {client, budget, deadline, &waker}; }
  Answer describe(const std::string& table) {
    return describe(table, in(time));
  }
  Answer describe(const std::string& table, BootTime deadline) {
    return detail::describe_table(until(deadline), wanted(table).options);
  }
  Answer create(const Wanted& table) { return create(table, in(time)); }
  Answer create(const Wanted& table, BootTime deadline) {
    return detail::create_table(until(deadline), table.options, table.how);
  }
  Answer call(Action action, const std::string& body) {
    return client.call(action, body, in(time), waker);
  }

  std::chrono::nanoseconds time = kPlenty;
  Client client;
  dynamodb::RetryBudget budget;
  sigv4::Waker waker;
};

// A table nobody else has heard of; deleted in the end.
struct FreshTable {
  explicit FreshTable(EngineKind kind)
      : engine(Engine::running(kind)),
        schema(wanted("ddbmutex-test-" + lock::fresh_uuid())) {}
  ~FreshTable() { engine.delete_table(schema.options.name); }
  FreshTable(const FreshTable&) = delete;
  FreshTable& operator=(const FreshTable&) = delete;

  // With keys as in "id S HASH, n N RANGE"; returns once it can be used.
  void make(const std::vector<std::array<const char*, 3>>& keys) {
    std::string definitions;
    std::string key_schema;
    for (const auto& [name, type, role] : keys) {
      const std::string begin = (definitions.empty() ? "" : ",") +
                                std::string(R"({"AttributeName":")") + name;
      definitions += begin + R"(","AttributeType":")" + type + R"("})";
      key_schema += begin + R"(","KeyType":")" + role + R"("})";
    }
    engine.must_call("CreateTable",
                     R"({"TableName":")" + schema.options.name +
                         R"(","BillingMode":"PAY_PER_REQUEST",)" +
                         R"("AttributeDefinitions":[)" + definitions +
                         R"(],"KeySchema":[)" + key_schema + "]}");
    // Waits for ACTIVE; of a table of another key nothing is changed.
    Host host(engine);
    Wanted only_wait = schema;
    only_wait.how.clean_up = false;
    BOOST_REQUIRE(host.create(only_wait).fault == Fault::none);
  }
  std::string time_to_live() {
    return engine
        .call("DescribeTimeToLive",
              R"({"TableName":")" + schema.options.name + "\"}")
        .body;
  }

  Engine& engine;
  Wanted schema;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// --- What a scripted service says ------------------------------------------

std::string described(const std::string& status, const std::string& more = "") {
  return R"({"TableStatus":")" + status +
         R"(","KeySchema":[{"AttributeName":"name","KeyType":"HASH"}],)"
         R"("AttributeDefinitions":[{"AttributeName":"name",)"
         R"("AttributeType":"S"}])" +
         more + "}";
}

Reply table_is(const std::string& status, const std::string& more = "") {
  return Reply::ok(R"({"Table":)" + described(status, more) + "}");
}

// Of CreateTable and DeleteTable.
Reply table_becomes(const std::string& status, const std::string& more = "") {
  return Reply::ok(R"({"TableDescription":)" + described(status, more) + "}");
}

Reply refused(const std::string& code, const std::string& message = "no") {
  return Reply::error(
      400, R"({"__type":"x#)" + code + R"(","message":")" + message + "\"}");
}

Reply no_table() { return refused("ResourceNotFoundException"); }
Reply in_use() { return refused("ResourceInUseException"); }
Reply ttl_is_on() {
  return Reply::ok(
      R"({"TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}})");
}

// "Describe Create Describe UpdateTimeToLive"
std::string named(const ScriptedServer& server) {
  std::string all;
  for (const SeenRequest& request : server.requests()) {
    std::string name = request.header("X-Amz-Target").value_or("");
    name = name.substr(name.find('.') + 1);
    const std::size_t end = name.rfind("Table");
    if (end != name.npos) name.resize(end);
    all += (all.empty() ? "" : " ") + name;
  }
  return all;
}

void play(ScriptedServer& server, std::vector<Reply> replies) {
  for (Reply& reply : replies) server.script(std::move(reply));
}

const Wanted kLocks = wanted("locks");
const Wanted kWithoutTtl = [] {
  Wanted table = kLocks;
  table.how.clean_up = false;
  return table;
}();

}  // namespace

BOOST_AUTO_TEST_CASE(table_is_keyed_by_its_names_in_their_roles_and_strings) {
  const auto keyed = [](const char* key, const char* sort_key,
                        bool of_strings) {
    TableDescription table;
    table.key = key;
    table.sort_key = sort_key;
    table.keys_are_strings = of_strings;
    return std::make_pair(is_keyed_by(table, "name", ""),
                          is_keyed_by(table, "name", "sort"));
  };
  const auto neither = std::make_pair(false, false);
  BOOST_TEST((keyed("name", "", true) == std::make_pair(true, false)));
  BOOST_TEST((keyed("name", "sort", true) == std::make_pair(false, true)));
  BOOST_TEST((keyed("name", "", false) == neither));
  BOOST_TEST((keyed("name", "sort", false) == neither));
  BOOST_TEST((keyed("", "", true) == neither));
  BOOST_TEST((keyed("id", "", true) == neither));
  BOOST_TEST((keyed("", "name", true) == neither));
  BOOST_TEST((keyed("sort", "name", true) == neither));
  BOOST_TEST((keyed("name", "other", true) == neither));
}

// --- On engines -------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(table_on_an_engine)

BOOST_DATA_TEST_CASE(table_that_is_not_there_is_made_with_its_key, kEngines,
                     kind) {
  FreshTable table(kind);
  Host host(table.engine);
  CHECK_FAULT(host.describe(table.schema.options.name), Fault::no_table);
  const Answer made = host.create(table.schema);
  CHECK_FAULT(made, Fault::none);
  BOOST_REQUIRE(made.table);
  const Answer found = host.describe(table.schema.options.name);
  CHECK_FAULT(found, Fault::none);
  BOOST_REQUIRE(found.table);
  for (const Answer* answer : {&made, &found}) {
    BOOST_TEST(answer->table->status == "ACTIVE");
    BOOST_TEST(is_keyed_by(*answer->table, "name", ""));
    BOOST_TEST(!is_keyed_by(*answer->table, "id", ""));
    BOOST_TEST(!answer->table->eventual_replicas);
    BOOST_TEST(answer->table->id != "");
  }
}

BOOST_DATA_TEST_CASE(table_with_a_sort_key_and_capacity_is_made_so, kEngines,
                     kind) {
  FreshTable table(kind);
  table.schema.options.sort_key = "sort";
  table.schema.how.throughput = Creation::Throughput{3, 4};
  Host host(table.engine);
  const Answer made = host.create(table.schema);
  CHECK_FAULT(made, Fault::none);
  BOOST_REQUIRE(made.table);
  BOOST_TEST(is_keyed_by(*made.table, "name", "sort"));
  BOOST_TEST(!is_keyed_by(*made.table, "name", ""));
  const std::string told = table.engine.must_call(
      "DescribeTable", R"({"TableName":")" + table.schema.options.name + "\"}");
  BOOST_TEST(has(told, R"("ReadCapacityUnits":3)"), told);
  BOOST_TEST(has(told, R"("WriteCapacityUnits":4)"), told);
  if (kind != EngineKind::dynalite) {  // It cannot switch it on.
    BOOST_TEST(has(table.time_to_live(), "\"ENABL"));
  }
  const std::string at =
      R"({"TableName":")" + table.schema.options.name + R"(",)";
  CHECK_FAULT(host.call(Action::put_item,
                        at + R"("Item":{"name":{"S":"a"},"sort":{"S":"b"}}})"),
              Fault::none);
  CHECK_FAULT(host.call(Action::put_item, at + R"("Item":{"name":{"S":"a"}}})"),
              Fault::wrong_key);
}

BOOST_DATA_TEST_CASE(table_made_has_its_tags_where_there_are_any, kEngines,
                     kind) {
  FreshTable table(kind);
  table.schema.how.tags = {{"team", "lo\"cks"}, {"empty", ""}};
  Host host(table.engine);
  CHECK_FAULT(host.create(table.schema), Fault::none);
  const std::string described = table.engine.must_call(
      "DescribeTable", R"({"TableName":")" + table.schema.options.name + "\"}");
  const std::string tags = table.engine.must_call(
      "ListTagsOfResource",
      R"({"ResourceArn":")" +
          tests::between(described, R"("TableArn":")", "\"") + "\"}");
  if (kind == EngineKind::dynalite) {  // It passes over those of a new table.
    BOOST_TEST(tags == R"({"Tags":[]})");
    return;
  }
  BOOST_TEST(has(tags, R"({"Key":"team","Value":"lo\"cks"})"), tags);
  BOOST_TEST(has(tags, R"({"Key":"empty","Value":""})"), tags);
}

BOOST_DATA_TEST_CASE(table_made_takes_items_at_once, kEngines, kind) {
  FreshTable table(kind);
  Host host(table.engine);
  BOOST_REQUIRE(host.create(table.schema).fault == Fault::none);
  const std::string at =
      R"({"TableName":")" + table.schema.options.name + R"(",)";
  CHECK_FAULT(host.call(Action::put_item,
                        at + R"("Item":{"name":{"S":"a"},"n":{"N":"1"}}})"),
              Fault::none);
  const Answer found =
      host.call(Action::get_item,
                at + R"("Key":{"name":{"S":"a"}},"ConsistentRead":true})");
  CHECK_FAULT(found, Fault::none);
  BOOST_TEST(found.item.has_value());
}

BOOST_DATA_TEST_CASE(table_made_has_its_ttl_on_where_there_is_such_a_thing,
                     kEngines, kind) {
  FreshTable table(kind);
  Host host(table.engine);
  const Answer made = host.create(table.schema);
  CHECK_FAULT(made, Fault::none);
  if (kind != EngineKind::dynalite) {  // It cannot switch it on.
    const std::string told = table.time_to_live();
    BOOST_TEST(has(told, "\"ENABL"), told);
    BOOST_TEST(has(told, "\"ttl\""), told);
  }
  CHECK_FAULT(host.create(table.schema), Fault::none);  // It is on already.
}

BOOST_DATA_TEST_CASE(table_that_is_there_stays_as_it_is, kEngines, kind) {
  FreshTable table(kind);
  Host host(table.engine);
  const Answer made = host.create(table.schema);
  BOOST_REQUIRE(made.table);
  const std::string at =
      R"({"TableName":")" + table.schema.options.name + R"(",)";
  const std::string item = R"({"name":{"S":"a"}})";
  CHECK_FAULT(host.call(Action::put_item, at + R"("Item":)" + item + "}"),
              Fault::none);
  const Answer again = host.create(table.schema);
  CHECK_FAULT(again, Fault::none);
  BOOST_REQUIRE(again.table);
  BOOST_TEST(again.table->id == made.table->id);
  BOOST_TEST(host.call(Action::get_item,
                       at + R"("Key":)" + item + R"(,"ConsistentRead":true})")
                 .item.has_value());
  using Counts = std::array<std::uint64_t, dynamodb::kActions>;
  const Counts sent = host.client.counts().sent;
  BOOST_TEST(sent[static_cast<std::size_t>(Action::create_table)] == 1u);
}

BOOST_DATA_TEST_CASE(table_of_another_key_is_told_and_left_alone, kEngines,
                     kind) {
  FreshTable table(kind);
  table.make({{"id", "N", "HASH"}, {"name", "S", "RANGE"}});
  Host host(table.engine);
  const Answer answer = host.create(table.schema);
  CHECK_FAULT(answer, Fault::none);
  BOOST_REQUIRE(answer.table);
  BOOST_TEST(answer.table->key == "id");
  BOOST_TEST(answer.table->sort_key == "name");
  BOOST_TEST(!answer.table->keys_are_strings);
  BOOST_TEST(!is_keyed_by(*answer.table, "name", ""));
  BOOST_TEST(!is_keyed_by(*answer.table, "id", ""));
  BOOST_TEST(!is_keyed_by(*answer.table, "id", "name"));
  BOOST_TEST(!has(table.time_to_live(), "ENABL"));
}

BOOST_DATA_TEST_CASE(hosts_that_make_one_table_at_once_all_have_it, kEngines,
                     kind) {
  FreshTable table(kind);
  std::vector<Answer> answers(4);
  std::vector<std::thread> threads;
  for (Answer& answer : answers) {
    threads.emplace_back(
        [&answer, &engine = table.engine, options = table.schema.options] {
          answer = Host(engine).create({options, {}});
        });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> ids;
  for (const Answer& answer : answers) {
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.table);
    BOOST_TEST(answer.table->status == "ACTIVE");
    ids.insert(answer.table->id);
  }
  BOOST_TEST(ids.size() == 1u);
}

BOOST_DATA_TEST_CASE(item_of_a_table_of_another_key_is_a_wrong_key, kEngines,
                     kind) {
  const std::vector<std::vector<std::array<const char*, 3>>> schemas = {
      {{"id", "S", "HASH"}},
      {{"name", "N", "HASH"}},
      {{"name", "B", "HASH"}},
      {{"name", "S", "HASH"}, {"sort", "S", "RANGE"}},
      {{"id", "S", "HASH"}, {"name", "S", "RANGE"}},
      {{"note", "S", "HASH"}},
  };
  for (const auto& keys : schemas) {
    FreshTable table(kind);
    table.make(keys);
    Host host(table.engine);
    const std::string at =
        R"({"TableName":")" + table.schema.options.name + R"(",)";
    const std::string key = R"("Key":{"name":{"S":"a"}})";
    const std::pair<Action, std::string> calls[] = {
        {Action::put_item,
         R"("Item":{"name":{"S":"a"},"uuid":{"S":"u"}},)"
         R"x("ConditionExpression":"attribute_not_exists(#n)",)x"
         R"("ExpressionAttributeNames":{"#n":"name"})"},
        {Action::get_item, key + R"(,"ConsistentRead":true)"},
        {Action::update_item,
         key + R"(,"UpdateExpression":"SET #u = :u",)"
               R"("ExpressionAttributeNames":{"#u":"note"},)"
               R"("ExpressionAttributeValues":{":u":{"S":"u"}})"},
        {Action::delete_item,
         key + R"(,"ConditionExpression":"#u = :u",)"
               R"("ExpressionAttributeNames":{"#u":"uuid"},)"
               R"("ExpressionAttributeValues":{":u":{"S":"u"}})"},
    };
    for (const auto& [action, body] : calls) {
      BOOST_TEST_CONTEXT(name_of(action)
                         << ", " << keys[0][0] << " " << keys[0][1]) {
        CHECK_FAULT(host.call(action, at + body + "}"), Fault::wrong_key);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- On a service that is told what to say ---------------------------------

BOOST_AUTO_TEST_SUITE(table_on_a_scripted_service)

BOOST_AUTO_TEST_CASE(requests_are_exactly_what_dynamodb_asks_for) {
  ScriptedServer server;
  play(server, {no_table(), table_becomes("ACTIVE"), ttl_is_on()});
  Host host(server);
  CHECK_FAULT(host.create(kLocks), Fault::none);
  const auto requests = server.requests();
  BOOST_REQUIRE(requests.size() == 3u);
  const std::string name = R"({"TableName":"locks")";
  BOOST_TEST(requests[0].body == name + "}");
  BOOST_TEST(requests[1].body ==
             name + R"(,"BillingMode":"PAY_PER_REQUEST",)"
                    R"("AttributeDefinitions":[{"AttributeName":"name",)"
                    R"("AttributeType":"S"}],"KeySchema":[)"
                    R"({"AttributeName":"name","KeyType":"HASH"}]})");
  BOOST_TEST(requests[2].body == name + R"(,"TimeToLiveSpecification":)"
                                        R"({"AttributeName":"ttl",)"
                                        R"("Enabled":true}})");
  BOOST_TEST(named(server) == "Describe Create UpdateTimeToLive");
}

BOOST_AUTO_TEST_CASE(creation_asks_for_all_that_the_schema_says) {
  ScriptedServer server;
  play(server, {no_table(), table_becomes("ACTIVE")});
  Host host(server);
  Wanted schema = wanted("locks", "name", "sort");
  schema.how.throughput = Creation::Throughput{1, 18446744073709551615u};
  schema.how.tags = {{"a", "1"}, {"b", "2"}};
  CHECK_FAULT(host.create(schema), Fault::none);
  const auto requests = server.requests();
  BOOST_REQUIRE(requests.size() == 2u);  // Its key is another: left alone.
  BOOST_TEST(requests[1].body ==
             R"({"TableName":"locks","BillingMode":"PROVISIONED",)"
             R"("ProvisionedThroughput":{"ReadCapacityUnits":1,)"
             R"("WriteCapacityUnits":18446744073709551615},)"
             R"("AttributeDefinitions":[)"
             R"({"AttributeName":"name","AttributeType":"S"},)"
             R"({"AttributeName":"sort","AttributeType":"S"}],"KeySchema":[)"
             R"({"AttributeName":"name","KeyType":"HASH"},)"
             R"({"AttributeName":"sort","KeyType":"RANGE"}],)"
             R"("Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]})");
}

BOOST_AUTO_TEST_CASE(names_of_any_characters_make_good_json) {
  ScriptedServer server;
  play(server, {no_table(), refused("ValidationException")});
  Host host(server);
  Wanted table = wanted("lo\"cks", "na\\me", "s\n\x01k");
  table.how.tags = {{"\"", "\t"}};
  CHECK_FAULT(host.create(table), Fault::bad_request);
  const auto requests = server.requests();
  BOOST_REQUIRE(requests.size() == 2u);
  BOOST_TEST(requests[0].body == R"({"TableName":"lo\"cks"})");
  BOOST_TEST(
      has(requests[1].body, R"("KeySchema":[{"AttributeName":"na\\me",)"));
  BOOST_TEST(has(requests[1].body, R"({"AttributeName":"s\n\u0001k",)"));
  BOOST_TEST(has(requests[1].body, R"({"Key":"\"","Value":"\t"})"));
}

BOOST_AUTO_TEST_CASE(table_with_eventual_replicas_is_told_as_such) {
  const std::string replicas =
      R"(,"Replicas":[{"RegionName":"eu-west-1","ReplicaStatus":"ACTIVE"}])";
  ScriptedServer server;
  play(server,
       {table_is("ACTIVE", replicas),
        table_is("ACTIVE", replicas + R"(,"MultiRegionConsistency":"STRONG")"),
        table_is("ACTIVE", R"(,"GlobalTableVersion":"2017.11.29")")});
  Host host(server);
  for (const bool eventual : {true, false, true}) {
    const Answer answer = host.describe("locks");
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.table);
    BOOST_TEST(answer.table->eventual_replicas == eventual);
  }
}

BOOST_AUTO_TEST_CASE(table_slow_to_come_is_waited_for) {
  ScriptedServer server;
  play(server, {no_table(), table_becomes("CREATING"), table_is("CREATING"),
                table_is("CREATING"), table_is("UPDATING"),
                table_is("ACTIVE", R"(,"TableId":"1")"), ttl_is_on()});
  Host host(server);
  const Answer answer = host.create(kLocks);
  CHECK_FAULT(answer, Fault::none);
  BOOST_REQUIRE(answer.table);
  BOOST_TEST(answer.table->status == "ACTIVE");
  BOOST_TEST(answer.table->id == "1");
  BOOST_TEST(named(server) ==
             "Describe Create Describe Describe Describe Describe "
             "UpdateTimeToLive");
}

BOOST_AUTO_TEST_CASE(description_that_lags_behind_the_creation_is_no_error) {
  ScriptedServer server;
  play(server, {no_table(), table_becomes("CREATING"), no_table(), in_use(),
                table_is("ACTIVE")});
  Host host(server);
  CHECK_FAULT(host.create(kWithoutTtl), Fault::none);
  BOOST_TEST(named(server) == "Describe Create Describe Create Describe");
}

BOOST_AUTO_TEST_CASE(table_that_is_being_deleted_is_made_once_it_is_gone) {
  ScriptedServer server;
  play(server, {table_is("DELETING"), table_is("DELETING"), no_table(),
                in_use(), table_is("DELETING"), no_table(),
                table_becomes("CREATING"), table_is("ACTIVE")});
  Host host(server);
  CHECK_FAULT(host.create(kWithoutTtl), Fault::none);
  BOOST_TEST(named(server) ==
             "Describe Describe Describe Create Describe Describe Create "
             "Describe");
}

BOOST_AUTO_TEST_CASE(creation_of_unknown_outcome_is_tried_and_found_done) {
  ScriptedServer server;
  play(server, {no_table(), Reply::gone(tests::Ending::close), in_use(),
                table_is("ACTIVE")});
  Host host(server);
  CHECK_FAULT(host.create(kWithoutTtl), Fault::none);
  BOOST_TEST(named(server) == "Describe Create Create Describe");
}

BOOST_AUTO_TEST_CASE(passing_faults_are_tried_again) {
  Reply garbled = table_is("ACTIVE");
  garbled.wrong_crc32 = true;
  ScriptedServer server;
  play(server,
       {Reply::error(500), garbled, Reply::ok("{}"), no_table(),
        Reply::error(503, "<html>"), refused("TransactionInProgressException"),
        table_becomes("ACTIVE"), Reply::error(500), ttl_is_on()});
  Host host(server);
  const Answer answer = host.create(kLocks);
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(answer.table);
  BOOST_TEST(named(server) ==
             "Describe Describe Describe Describe Create Create Create "
             "UpdateTimeToLive UpdateTimeToLive");
}

BOOST_AUTO_TEST_CASE(throttled_service_is_asked_again_until_the_deadline) {
  ScriptedServer server([](const SeenRequest&) {
    Reply reply = refused("ThrottlingException", "slower");
    reply.headers.emplace_back("x-amz-retry-after", "20");
    return reply;
  });
  Host host(server);
  const BootTime deadline = host.in(2s);
  const Answer answer = host.describe("locks", deadline);
  CHECK_FAULT(answer, Fault::throttled);
  BOOST_TEST(answer.message == "slower");
  BOOST_TEST(server.request_count() >= 1);
  BOOST_TEST(host.budget.tokens() < 500);
}

BOOST_AUTO_TEST_CASE(final_fault_ends_each_call_at_once) {
  for (const auto& [code, fault] :
       {std::pair("AccessDeniedException", Fault::access_denied),
        std::pair("ValidationException", Fault::bad_request),
        std::pair("UnrecognizedClientException", Fault::bad_keys),
        std::pair("UnknownOperationException", Fault::unknown_action)}) {
    ScriptedServer server;
    play(server, {refused(code), refused(code), no_table(), refused(code),
                  table_is("CREATING"), refused(code)});
    Host host(server);
    CHECK_FAULT(host.describe("locks"), fault);
    CHECK_FAULT(host.create(kLocks), fault);
    CHECK_FAULT(host.create(kLocks), fault);  // Of the creation.
    CHECK_FAULT(host.create(kLocks), fault);  // While it waits.
    BOOST_TEST(named(server) ==
               "Describe Describe Describe Create Describe Describe");
  }
}

BOOST_AUTO_TEST_CASE(no_keys_sends_nothing_at_all) {
  ScriptedServer server;
  Host host(server.url(), "us-east-1", {"", "", ""});
  CHECK_FAULT(host.describe("locks"), Fault::no_keys);
  CHECK_FAULT(host.create(kLocks), Fault::no_keys);
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(ttl_that_is_on_or_unknown_to_the_engine_is_no_fault) {
  const Reply fine[] = {
      ttl_is_on(),
      refused("UnknownOperationException"),
      refused("ValidationException", "TimeToLive is already enabled"),
      refused("ValidationException", "UpdateTimeToLive is not supported"),
      refused("ValidationException", ""),
      refused("ValidationException", "Unsupported operation: UpdateTimeToLive"),
      refused("UnsupportedOperationException", "not here")};
  for (const Reply& reply : fine) {
    ScriptedServer server;
    play(server, {table_is("ACTIVE"), reply});
    Host host(server);
    const Answer answer = host.create(kLocks);
    CHECK_FAULT(answer, Fault::none);
    BOOST_TEST(answer.message == "");
    BOOST_TEST(answer.table);
    BOOST_TEST(named(server) == "Describe UpdateTimeToLive");
  }
}

BOOST_AUTO_TEST_CASE(ttl_that_cannot_be_switched_on_is_told_with_the_table) {
  const std::pair<Reply, Fault> cases[] = {
      {refused("ValidationException",
               "TimeToLive is active on a different AttributeName: current "
               "AttributeName is other"),
       Fault::bad_request},
      {refused("ValidationException",
               "TimeToLive is already enabled with a different attribute name"),
       Fault::bad_request},
      {refused("AccessDeniedException", "not you"), Fault::access_denied}};
  for (const auto& [reply, fault] : cases) {
    ScriptedServer server;
    play(server, {table_is("ACTIVE"), reply});
    Host host(server);
    const Answer answer = host.create(kLocks);
    CHECK_FAULT(answer, fault);
    BOOST_TEST((answer.action == Action::update_time_to_live));
    BOOST_TEST(answer.message.find("the table is there") == 0u);
    BOOST_TEST((answer.message.find(": TimeToLive is ") != std::string::npos ||
                answer.message.find(": not you") != std::string::npos));
    BOOST_REQUIRE(answer.table);
    BOOST_TEST(answer.table->status == "ACTIVE");
    BOOST_TEST(server.request_count() == 2);
  }
}

BOOST_AUTO_TEST_CASE(ttl_of_a_table_being_changed_is_tried_again) {
  ScriptedServer server;
  play(server, {table_is("ACTIVE"), in_use(), in_use(), ttl_is_on()});
  Host host(server);
  CHECK_FAULT(host.create(kLocks), Fault::none);
  BOOST_TEST(named(server) ==
             "Describe UpdateTimeToLive UpdateTimeToLive UpdateTimeToLive");
}

BOOST_AUTO_TEST_CASE(table_without_a_ttl_to_switch_on_is_asked_for_none) {
  ScriptedServer server;
  play(server, {table_is("ACTIVE")});
  Host host(server);
  CHECK_FAULT(host.create(kWithoutTtl), Fault::none);
  BOOST_TEST(named(server) == "Describe");
}

BOOST_AUTO_TEST_CASE(table_that_stays_is_told_at_the_deadline_as_it_is) {
  ScriptedServer server(
      [](const SeenRequest&) { return table_is("CREATING"); });
  Host host(server);
  const BootTime deadline = host.in(2s);
  const Answer answer = host.create(kLocks, deadline);
  BOOST_CHECK(BootClock::now() >= deadline);
  CHECK_FAULT(answer, Fault::timed_out);
  // Had the deadline cut off a request, there would be none.
  if (answer.table) {
    BOOST_TEST(answer.message ==
               "the deadline has passed; the table is CREATING");
  }
  BOOST_TEST(server.request_count() >= 2);
}

BOOST_AUTO_TEST_CASE(deadline_that_has_passed_sends_nothing) {
  ScriptedServer server;
  Host host(server);
  const BootTime past = host.in(0ns);
  for (const Answer& answer :
       {host.describe("locks", past), host.create(kLocks, past)}) {
    CHECK_FAULT(answer, Fault::timed_out);
    BOOST_TEST(!answer.sent);
  }
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(waker_woken_before_sends_nothing) {
  ScriptedServer server;
  Host host(server);
  host.waker.wake();
  for (const Answer& answer : {host.describe("locks"), host.create(kLocks)}) {
    CHECK_FAULT(answer, Fault::cancelled);
    BOOST_TEST(!answer.sent);
  }
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(waker_ends_a_request_that_hangs) {
  ScriptedServer server;
  Reply hanging = table_is("ACTIVE");
  hanging.hangs = true;
  play(server, {hanging});
  Host host(server);
  std::thread other([&] {
    server.wait_for_requests(1);
    host.waker.wake();
  });
  const Answer answer = host.describe("locks");
  CHECK_FAULT(answer, Fault::cancelled);
  BOOST_TEST(answer.sent);
  other.join();
}

BOOST_AUTO_TEST_CASE(waker_ends_a_wait_for_the_table) {
  std::atomic<int> looks{0};
  sigv4::Waker* waker = nullptr;
  ScriptedServer server([&](const SeenRequest&) {
    if (++looks == 3) waker->wake();
    return table_is("CREATING");
  });
  Host host(server);
  waker = &host.waker;
  CHECK_FAULT(host.create(kLocks), Fault::cancelled);
  BOOST_TEST(looks == 3);
  server.stop();  // It may be about to wake it yet.
}

// That wait would be one of seconds, as the service asks.
BOOST_AUTO_TEST_CASE(waker_ends_a_wait_before_another_attempt) {
  ScriptedServer server;
  Reply reply = Reply::error(503);
  reply.headers.emplace_back("x-amz-retry-after", "5000");
  play(server, {reply});
  Host host(server);
  std::thread other([&] {
    server.wait_for_requests(1);
    sigv4::drive(nullptr, 0, BootClock::now() + 20ms, nullptr);
    host.waker.wake();
  });
  BOOST_TEST(tests::returns_within(
      2s, [&] { CHECK_FAULT(host.describe("locks"), Fault::cancelled); }));
  BOOST_TEST(server.request_count() == 1);
  other.join();
}

BOOST_AUTO_TEST_SUITE_END()
