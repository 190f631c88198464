// Table: creating it, inspecting a lock, listing all locks, freeing one by
// force. Also tables whose key is not the one that the options name: nobody
// gets a lock there, and nothing is written.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "extras/admin.hpp"
#include "extras/any_of.hpp"
#include "extras/stored.hpp"
#include "extras/table_setup.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/given.hpp"
#include "tests/support/keyed_table.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::attributes_of;
using ddbmutex::Creation;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LockInfo;
using ddbmutex::Loss;
using ddbmutex::Options;
using ddbmutex::Replicas;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// === A table and its locks ===================================================

namespace {

const auto kEngines = boost::unit_test::data::make(engine_kinds());

// A table of the test's own, deleted by the destructor.
class OwnTable {
 public:
  explicit OwnTable(Engine& engine, const Creation& how = {},
                    const std::string& key = "name",
                    const std::string& sort_key = {})
      : engine_(engine) {
    options = table_options(engine);
    options.key = key;
    options.sort_key = sort_key;
    if (!sort_key.empty()) options.sort_value = "usual";
    if (engine.has_prepared_tables()) {
      TableKey parts = {{key}};
      if (!sort_key.empty()) parts.push_back({sort_key});
      options.name = engine.create_table(parts);
    } else {
      options.name = "ddbmutex-test-" + fresh_name();
    }
    table = std::make_shared<Table>(options);
    if (!engine.has_prepared_tables()) create_table(*table, how);
  }
  ~OwnTable() { engine_.delete_table(options.name); }
  OwnTable(const OwnTable&) = delete;
  OwnTable& operator=(const OwnTable&) = delete;

  // The answer's body.
  std::string call(const std::string& action, const std::string& more) const {
    return engine_.must_call(
        action, R"({"TableName":")" + options.name + "\"" + more + "}");
  }

  // An item, past the library; `more` is JSON.
  void put(const std::string& key, const std::string& more) const {
    call("PutItem", R"(,"Item":{"name":{"S":")" + key + "\"}" + more + "}");
  }

  TableOptions options;
  std::shared_ptr<Table> table;

 private:
  Engine& engine_;
};

Options kept_on(const std::shared_ptr<Table>& table,
                milliseconds ttl = std::chrono::minutes(1)) {
  Options options = on_table(table, ttl);
  options.keep_row = true;
  return options;
}

// What list_locks() reports, by name and sort value.
template <class... Where>
std::map<std::string, LockInfo> listed(Table& table, const Where&... where) {
  std::map<std::string, LockInfo> all;
  list_locks(table, where..., [&all](const LockInfo& info) {
    const std::string name =
        info.name + (info.sort_value.empty() ? "" : "/" + info.sort_value);
    BOOST_TEST(all.emplace(name, info).second, name << " is told twice");
    return true;
  });
  return all;
}

std::string names(const std::map<std::string, LockInfo>& all) {
  std::string text;
  for (const auto& [name, info] : all) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(manage)

// --- Creation ----------------------------------------------------------------

BOOST_DATA_TEST_CASE(table_of_another_key_and_a_sort_key_serves_locks, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const OwnTable own(engine, {}, "pk", "sk");
  BOOST_TEST(table_exists(*own.table));
  const std::string told = own.call("DescribeTable", "");
  BOOST_TEST(has(told, R"("AttributeName":"pk")"));
  BOOST_TEST(has(told, R"("AttributeName":"sk")"));
  DdbMutex mutex("a", on_table(own.table));
  mutex.lock();
  BOOST_TEST(own.table->inspect("a").owner == mutex.owner());
  // Options that name another key are refused.
  for (const auto& [key, sort_key, words_of_it] :
       {std::tuple("name", "", "\"name\" alone"),
        std::tuple("pk", "", "\"pk\""), std::tuple("pk", "other", "\"other\""),
        std::tuple("sk", "pk", "\"sk\" with")}) {
    TableOptions options = own.options;
    options.key = key;
    options.sort_key = sort_key;
    options.sort_value = *sort_key == '\0' ? "" : "usual";
    Table wrong(options);
    const auto error = error_of([&] { table_exists(wrong); });
    BOOST_TEST_REQUIRE(error.has_value());
    BOOST_TEST((error->code() == Errc::wrong_table));
    BOOST_TEST(has(error->what(), words_of_it), error->what());
    BOOST_TEST(thrown_by([&] { create_table(wrong); }) ==
               words(Errc::wrong_table));
  }
}

namespace {

using CleanUp = Creation::CleanUp;

// A description in that state, with `more` members.
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
Reply table_becomes(const std::string& status, const std::string& more = "") {
  return Reply::ok(R"({"TableDescription":)" + described(status, more) + "}");
}
Reply table_of_key(const std::string& key) {
  return Reply::ok(
      R"({"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":")" +
      key + R"(","KeyType":"HASH"}],"AttributeDefinitions":[{)" +
      R"("AttributeName":")" + key + R"(","AttributeType":"S"}]}})");
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

void play(ScriptedServer& server, std::vector<Reply> replies) {
  for (Reply& reply : replies) server.script(std::move(reply));
}

std::string error_of_creation(const ScriptedServer& server, CleanUp clean_up) {
  Creation how;
  how.clean_up = clean_up;
  const auto error = error_of([&] {
    create_table(*std::make_shared<Table>(table_options(server)), how);
  });
  return error ? error->what() : "none";
}

}  // namespace

// Each action that is about a table and not about items, and when we send it.
// Nothing else of the library changes a table.
BOOST_AUTO_TEST_CASE(actions_on_tables_are_sent_by_one_file_alone) {
  const std::map<std::string, std::string> senders = {
      // By table_exists() and create_table(); and once a GetItem found another
      // key.
      {"describe_table", "ddbmutex/dynamodb/ask.cpp"},
      // By create_table(), if DescribeTable found no table.
      {"create_table", "extras/table_setup.cpp"},
      // By create_table(), if it has made the table, or with CleanUp::always.
      {"update_time_to_live", "extras/table_setup.cpp"},
      {"delete_table", ""},  // By the demo and by tests.
  };
  // These name the actions, and send none.
  const std::set<std::string> neutral = {"ddbmutex/dynamodb/answer.cpp",
                                         "ddbmutex/dynamodb/client.cpp"};
  namespace fs = std::filesystem;
  std::map<std::string, std::string> found = {{"delete_table", ""}};
  std::vector<fs::path> sources = {"ddbmutex.cpp"};
  for (const char* folder : {"ddbmutex", "extras"}) {
    for (const auto& one : fs::recursive_directory_iterator(folder)) {
      if (one.path().extension() == ".cpp") sources.push_back(one.path());
    }
  }
  for (const fs::path& source : sources) {
    if (neutral.count(source.string()) != 0) continue;
    const std::string text = read_file(source);
    const std::string pattern = "Action::(\\w*(?:table|live)\\w*)";
    for (const std::string& action : as_set(all_matches(text, pattern))) {
      found[action] += source.string();
    }
  }
  BOOST_TEST(found == senders);
  // An action that is added must be put into one of these lists.
  const std::set<std::string> of_items = {
      "GetItem", "PutItem", "UpdateItem",        "DeleteItem",
      "Scan",    "Query",   "TransactWriteItems"};
  BOOST_TEST(of_items.size() + senders.size() == ddbmutex::dynamodb::kActions);
}

// The conditions of the last case, played.
BOOST_AUTO_TEST_CASE(create_changes_no_table_that_it_has_not_made) {
  const std::string id_a = R"(,"TableId":"a")", id_b = R"(,"TableId":"b")";
  const std::string replicas = R"(,"Replicas":[{"RegionName":"eu-west-1"}])";
  const std::string look = "DescribeTable";
  const std::string make = "DescribeTable CreateTable";
  const std::string update = " UpdateTimeToLive";
  const CleanUp usual = CleanUp::if_created, never = CleanUp::never;
  const CleanUp always = CleanUp::always;
  const struct {
    std::vector<Reply> replies;
    CleanUp clean_up;
    std::string outcome;  // What is sent; what create_table() returns.
  } rows[] = {
      // It is there, is being changed or made; another was faster.
      {{table_is("ACTIVE")}, usual, look},
      {{table_is("UPDATING")}, usual, look},
      {{table_is("CREATING"), table_is("ACTIVE")}, usual, look + " " + look},
      {{no_table(), in_use(), table_is("ACTIVE")}, usual, make + " " + look},
      // It may be ours, but the answer is lost.
      {{no_table(), Reply::gone(Ending::close), in_use(), table_is("ACTIVE")},
       usual,
       make + " CreateTable " + look},
      // Ours is gone, and another has its name.
      {{no_table(), table_becomes("CREATING", id_a), table_is("ACTIVE", id_b)},
       usual,
       make + " " + look},
      // It is made.
      {{no_table(), table_becomes("CREATING", id_a), table_is("ACTIVE", id_a),
        ttl_is_on()},
       usual,
       make + " " + look + update + ", made, cleans up"},
      {{no_table(), table_becomes("ACTIVE")}, never, make + ", made"},
      {{no_table(), table_becomes("ACTIVE"),
        refused("UnknownOperationException")},
       usual,
       make + update + ", made"},
      // It is there, and is to be changed.
      {{table_is("ACTIVE"), ttl_is_on()},
       always,
       look + update + ", cleans up"},
      {{table_is("UPDATING"), in_use(), ttl_is_on()},
       always,
       look + update + update + ", cleans up"},
      // The same, but it is unfit.
      {{table_of_key("id")}, always, look + ": " + words(Errc::wrong_table)},
      {{table_is("ACTIVE", replicas)},
       always,
       look + ": " + words(Errc::replicated_table)},
      {{table_is("ARCHIVED")},
       always,
       look + ": " + words(Errc::unready_table)},
  };
  for (const auto& row : rows) {
    ScriptedServer server;
    play(server, row.replies);
    Creation how;
    how.clean_up = row.clean_up;
    std::error_code ec;
    const ddbmutex::Created done =
        create_table(*std::make_shared<Table>(table_options(server)), how, ec);
    BOOST_TEST(actions(server) + (done.made ? ", made" : "") +
                   (done.cleans_up ? ", cleans up" : "") +
                   (ec ? ": " + ec.message() : "") ==
               row.outcome);
  }
}

// The rows of an application that shares the table have numbers in `ttl`.
BOOST_AUTO_TEST_CASE(
    table_of_an_application_keeps_its_rows_and_the_log_says_so) {
  ScriptedServer server;
  play(server, {table_is("ACTIVE")});
  Told told;
  {
    TableOptions options = table_options(server);
    options.logger = [&told](ddbmutex::LogLevel, const std::string& text) {
      told.add(text);
    };
    Table table(options);
    create_table(table);
    BOOST_TEST(eventually(
        [&] { return has(told.text(), "its clean-up is not turned on"); }));
  }
  BOOST_TEST(actions(server) == "DescribeTable");
}

BOOST_AUTO_TEST_CASE(layout_without_a_clean_up_is_not_asked_for_one) {
  ScriptedServer server;
  TableOptions options = table_options(server);
  options.rows = tests::rows_of(tests::Layout::lease);
  Creation how;
  how.clean_up = CleanUp::always;
  const auto error =
      error_of([&] { create_table(*std::make_shared<Table>(options), how); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(error->field() == "clean_up");
  BOOST_TEST(server.request_count() == 0);
  play(server, {no_table(), table_becomes("ACTIVE")});
  BOOST_TEST(!create_table(*std::make_shared<Table>(options)).cleans_up);
  BOOST_TEST(actions(server) == "DescribeTable CreateTable");
}

BOOST_AUTO_TEST_CASE(creation_asks_for_all_that_the_schema_says) {
  ScriptedServer server;
  play(server, {no_table(), table_becomes("ACTIVE")});
  TableOptions options = table_options(server);
  options.sort_key = "sort";
  Creation how;
  how.throughput = Creation::Throughput{1, 18446744073709551615u};
  how.tags = {{"a", "1"}, {"b", "2"}};
  // The server answers with a table of another key, which is left alone.
  BOOST_TEST(thrown_by([&] {
               create_table(*std::make_shared<Table>(options), how);
             }) == words(Errc::wrong_table));
  const auto requests = server.requests();
  BOOST_REQUIRE(requests.size() == 2u);
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

BOOST_AUTO_TEST_CASE(table_that_is_being_deleted_is_made_once_it_is_gone) {
  ScriptedServer server;
  play(server, {table_is("DELETING"), table_is("DELETING"), no_table(),
                in_use(), table_is("DELETING"), no_table(),
                table_becomes("CREATING"), table_is("ACTIVE")});
  BOOST_TEST(error_of_creation(server, CleanUp::never) == "none");
  BOOST_TEST(actions(server) ==
             "DescribeTable DescribeTable DescribeTable CreateTable "
             "DescribeTable DescribeTable CreateTable DescribeTable");
}

BOOST_AUTO_TEST_CASE(table_in_a_lasting_state_is_told_at_once) {
  for (const std::string status :
       {"ARCHIVING", "ARCHIVED", "INACCESSIBLE_ENCRYPTION_CREDENTIALS",
        "REPLICATION_NOT_AUTHORIZED", "A_STATE_OF_TOMORROW"}) {
    ScriptedServer server;
    play(server, {table_is(status), table_is(status)});
    Table table(table_options(server));
    const auto of_creation = error_of([&] { create_table(table); });
    const auto of_look = error_of([&] { table_exists(table); });
    for (const auto& error : {of_creation, of_look}) {
      BOOST_TEST_REQUIRE(error.has_value());
      BOOST_TEST((error->code() == Errc::unready_table), error->what());
      BOOST_TEST(has(error->what(), "is not ready: it is " + status),
                 error->what());
    }
    BOOST_TEST(actions(server) == "DescribeTable DescribeTable");
  }
}

BOOST_AUTO_TEST_CASE(table_with_replicas_is_taken_if_they_are_accepted) {
  const std::string replicas = R"(,"Replicas":[{"RegionName":"eu-west-1"}])";
  ScriptedServer server(
      [&](const SeenRequest&) { return table_is("ACTIVE", replicas); });
  Table table(table_options(server));
  Creation how;
  const std::string refused = words(Errc::replicated_table);
  BOOST_TEST(thrown_by([&] { table_exists(table); }) == refused);
  BOOST_TEST(thrown_by([&] { create_table(table, how); }) == refused);
  how.replicas = Replicas::accepted;
  BOOST_TEST(table_exists(table, Replicas::accepted));
  BOOST_TEST(thrown_by([&] { create_table(table, how); }) == "none");
}

BOOST_AUTO_TEST_CASE(endless_state_is_cut_in_the_error) {
  ScriptedServer server;
  play(server, {table_is(std::string(100'000, 'A'))});
  Table table(table_options(server));
  const auto error = error_of([&] { table_exists(table); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::unready_table));
  const std::string what = error->what();
  BOOST_TEST(has(what, "it is AAAA"), what);
  BOOST_TEST(what.size() < 400u);
}

// A table that is being deleted tells no key, and counts as gone.
BOOST_AUTO_TEST_CASE(table_that_is_being_deleted_does_not_exist) {
  ScriptedServer server([](const SeenRequest&) {
    return Reply::ok(R"({"Table":{"TableStatus":"DELETING"}})");
  });
  Table table(table_options(server));
  BOOST_TEST(!table_exists(table));
  BOOST_TEST(table.stats().requests() == 1u);
}

// Until the deadline, which is a minute for create_table().
BOOST_AUTO_TEST_CASE(passing_state_that_lasts_is_told_at_the_deadline) {
  for (const std::string status : {"CREATING", "DELETING"}) {
    ScriptedServer server(
        [&status](const SeenRequest&) { return table_is(status); });
    ddbmutex::lock::TableState state({target_at(server.url(), "us-east-1"),
                                      given_keys({"AKIDEXAMPLE", "secret", ""}),
                                      {}});
    ddbmutex::sigv4::CallWaker waker;
    const TableOptions options = table_options(server);
    const auto outcome = ddbmutex::detail::create_table(
        {*state.keeper, state.client, state.budget,
         ddbmutex::BootClock::now() + 300ms, &waker},
        options, {});
    if (outcome.answer.table == nullptr) continue;  // No answer in that time.
    const auto error = ddbmutex::detail::unfit(*outcome.answer.table, options,
                                               Replicas::refused);
    BOOST_TEST_REQUIRE((error != nullptr));
    BOOST_TEST((error->code() == Errc::unready_table));
    BOOST_TEST(has(error->what(), "it is " + status), error->what());
  }
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
    BOOST_TEST(error_of_creation(server, CleanUp::always) == "none");
    BOOST_TEST(actions(server) == "DescribeTable UpdateTimeToLive");
  }
}

BOOST_AUTO_TEST_CASE(ttl_that_cannot_be_switched_on_is_told_with_the_table) {
  for (const Reply& reply :
       {refused("ValidationException",
                "TimeToLive is active on a different AttributeName: current "
                "AttributeName is other"),
        refused("ValidationException",
                "TimeToLive is already enabled with a different attribute "
                "name"),
        refused("AccessDeniedException", "not you")}) {
    ScriptedServer server;
    play(server, {table_is("ACTIVE"), reply});
    const std::string error = error_of_creation(server, CleanUp::always);
    BOOST_TEST(has(error, "the table is there, "), error);
    BOOST_TEST((has(error, "TimeToLive is ") || has(error, "not you")), error);
    BOOST_TEST(server.request_count() == 2);
  }
}

// --- Inspection --------------------------------------------------------------

BOOST_DATA_TEST_CASE(inspection_tells_all_of_a_held_lock, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  Options options = kept_on(table);
  options.owner = "me";
  options.data = "bytes";
  options.item = R"({"mine":{"N":"5"}})";
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  const LockInfo held = table->inspect(mutex.name());
  BOOST_TEST(held.name == mutex.name());
  BOOST_TEST(held.exists);
  BOOST_TEST(!held.released);
  BOOST_TEST(held.uuid == row_of(engine, mutex.name()).uuid);
  BOOST_TEST(held.owner == "me");
  BOOST_TEST((held.lease == 60s));
  BOOST_TEST((held.expires > calendar()));
  BOOST_TEST(held.token == 1u);
  BOOST_TEST((held.data == "bytes"));
  BOOST_TEST(held.item == options.item);
  BOOST_TEST(held.problem == "");

  mutex.unlock();
  const LockInfo released = table->inspect(mutex.name());
  BOOST_TEST(released.exists);
  BOOST_TEST(released.released);
  BOOST_TEST((released.expires == 0ns));
  BOOST_TEST(!released.age);
  BOOST_TEST(released.token == 1u);
  BOOST_TEST((released.data == "bytes"));
  mutex.lock();
  BOOST_TEST(table->inspect(mutex.name()).token == 2u);
}

BOOST_DATA_TEST_CASE(inspection_of_what_is_no_lock_tells_that, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::string name = fresh_name();
  const LockInfo nothing = table->inspect(name);
  BOOST_TEST(!nothing.exists);
  BOOST_TEST(!nothing.keep_row);
  BOOST_TEST(nothing.name == name);
  BOOST_TEST(nothing.item.empty());

  write_row(engine, name, R"("colour":{"S":"red"},"data":{"B":"eA=="})");
  const LockInfo bare = table->inspect(name);
  BOOST_TEST(!bare.exists);
  BOOST_TEST(bare.keep_row);
  BOOST_TEST((bare.data == "x"));
  const auto stored = attributes_of(bare.item);
  BOOST_TEST_REQUIRE(stored.size() == 1u);
  BOOST_TEST(stored[0].name == "colour");

  write_row(engine, name, R"("uuid":{"S":"u"},"expires":{"S":"soon"})");
  const auto error = error_of([&] { table->inspect(name); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::bad_record));
  BOOST_TEST(has(error->what(), "expires"), error->what());
}

// The age is by DynamoDB's clock, which is known to about a second.
BOOST_DATA_TEST_CASE(age_is_the_time_since_the_holder_wrote, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::string name = fresh_name();
  const nanoseconds wrote = calendar() - 30s;
  write_row(engine, name, record("u", wrote + 60s, 60s));
  const LockInfo info = table->inspect(name);
  BOOST_TEST_REQUIRE(info.age.has_value());
  BOOST_TEST((*info.age >= 28s));
  BOOST_TEST((wrote + *info.age <= calendar() + 2s));
}

BOOST_DATA_TEST_CASE(lease_is_over_when_a_newcomer_gets_the_lock, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::string name = fresh_name();
  for (const bool has_lease : {false, true}) {
    const auto row = [&](nanoseconds expires) {
      return has_lease ? record("u", expires) : record_without_lease(expires);
    };
    write_row(engine, name, row(calendar() + 1h));
    const LockInfo held = table->inspect(name);
    BOOST_TEST(!held.expired);
    BOOST_TEST_REQUIRE(held.left.has_value());
    BOOST_TEST((*held.left > 59min && *held.left < 61min));
    BOOST_TEST(held.age.has_value() == has_lease);

    write_row(engine, name, row(calendar()));
    BOOST_TEST(eventually([&] { return table->inspect(name).expired; }));
    BOOST_TEST((*table->inspect(name).left < 0s));
    BOOST_TEST(listed(*table).at(name).expired);
    // As a host that has just been started.
    BOOST_TEST(DdbMutex(name, on_table(new_table_at(engine))).try_lock());
  }
}

// --- Lists -------------------------------------------------------------------

BOOST_DATA_TEST_CASE(list_tells_all_whose_key_has_the_prefix, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const OwnTable own(engine);
  DdbMutex held("held", on_table(own.table));
  DdbMutex kept("kept", kept_on(own.table));
  DdbMutex released("released", kept_on(own.table));
  held.lock();
  kept.lock();
  released.lock();
  released.unlock();
  own.put("ddblock-bare", R"(,"colour":{"S":"red"})");
  own.put("ddblock-odd", R"(,"uuid":{"N":"5"},"owner":{"S":"x"})");
  own.put("ddblock", "");
  own.put("other-held", "," + live_record());

  const auto all = listed(*own.table);
  BOOST_TEST(names(all) == "bare held kept odd released");
  BOOST_TEST(all.at("held").exists);
  BOOST_TEST(all.at("held").owner == held.owner());
  BOOST_TEST(all.at("held").age.has_value());
  BOOST_TEST(all.at("held").token == 0u);
  BOOST_TEST(!all.at("held").keep_row);
  BOOST_TEST(all.at("kept").token == 1u);
  BOOST_TEST(all.at("kept").keep_row);
  BOOST_TEST(!all.at("kept").released);
  BOOST_TEST(all.at("released").released);
  BOOST_TEST(!all.at("bare").exists);
  BOOST_TEST(!all.at("odd").exists);
  BOOST_TEST(has(all.at("odd").problem, "uuid"));
  BOOST_TEST(all.at("odd").owner == "");
}

BOOST_DATA_TEST_CASE(list_of_a_name_tells_all_its_sort_values, kEngines, kind) {
  const OwnTable own(Engine::running(kind), {}, "pk", "sk");
  Options options = on_table(own.table);
  std::vector<std::unique_ptr<DdbMutex>> held;
  for (const char* name : {"a", "ab"}) {
    for (const char* sort_value : {"1", "2", "3"}) {
      options.sort_value = sort_value;
      held.push_back(std::make_unique<DdbMutex>(name, options));
      held.back()->lock();
    }
  }
  BOOST_TEST(names(listed(*own.table)) == "a/1 a/2 a/3 ab/1 ab/2 ab/3");
  const std::string a = "a";
  BOOST_TEST(names(listed(*own.table, a)) == "a/1 a/2 a/3");
  BOOST_TEST(names(listed(*own.table, std::string("b"))) == "");
}

BOOST_DATA_TEST_CASE(list_ends_when_it_is_told_to, kEngines, kind) {
  const OwnTable own(Engine::running(kind));
  for (const char* name : {"a", "b", "c"}) {
    own.put(std::string("ddblock-") + name, "," + live_record());
  }
  int told = 0;
  list_locks(*own.table, [&told](const LockInfo&) { return ++told < 2; });
  BOOST_TEST(told == 2);
  // An exception ends it, too, and the table still works after that.
  const auto throws = [](const LockInfo&) -> bool {
    throw std::runtime_error("enough");
  };
  BOOST_CHECK_THROW(list_locks(*own.table, throws), std::runtime_error);
  std::error_code ec;
  BOOST_CHECK_THROW(list_locks(*own.table, throws, ec), std::runtime_error);
  // The callback may use the table.
  list_locks(*own.table, [table = own.table](const LockInfo& info) {
    return force_unlock(*table, table->inspect(info.name));
  });
  BOOST_TEST(names(listed(*own.table)) == "");
}

// Each has a caller that waits for it.
BOOST_AUTO_TEST_CASE(locks_are_renewed_and_released_while_many_lists_hang) {
  constexpr int kLists = 64;
  Gate gate;
  gate.always("Scan", Gate::fails_late());
  const auto table = table_at(gate);
  std::vector<std::unique_ptr<Aside>> lists;
  for (int i = 0; i < kLists; ++i) {
    lists.push_back(std::make_unique<Aside>([&] { listed(*table); }));
  }
  BOOST_TEST(
      eventually([&] { return count_of(gate.server(), "Scan") >= kLists; }));
  Told told;
  Options options = on_table(table, 20min);
  options.renew_after = 50ms;
  options.on_lost = [&](Loss why) { told.add(name_of(why)); };
  DdbMutex first(fresh_name(), options), second(fresh_name(), options);
  for (DdbMutex* mutex : {&first, &second}) mutex->lock();
  BOOST_TEST(eventually([&] { return table->stats().update_item >= 6; }));
  for (DdbMutex* mutex : {&first, &second}) {
    BOOST_TEST(mutex->owns_lock());
    BOOST_TEST(thrown_by([&] { mutex->release(); }) == "none");
  }
  BOOST_TEST(told.text() == "");
  table->close(0s);  // Ends the calls.
  gate.server().release();
  for (const auto& list : lists) BOOST_TEST(list->ends());
}

// `patience` is for each request.
BOOST_AUTO_TEST_CASE(list_goes_on_however_long_it_takes_in_all) {
  const std::string wrong = undisturbed(500ms, [] {
    int page = 0;
    ScriptedServer server([&](const SeenRequest& request) {
      if (action_of(request) != "Scan") return Reply();
      const std::string key =
          R"({"name":{"S":"ddblock-)" + std::to_string(++page) + "\"}}";
      const std::string next =
          page < 4 ? R"(,"LastEvaluatedKey":)" + key : std::string();
      Reply reply = Reply::ok(R"({"Items":[)" + key + "]" + next + "}");
      reply.delay = 400ms;
      return reply;
    });
    TableOptions options = table_options(server);
    options.patience = 1s;
    Table table(options);
    std::error_code ec;
    int told = 0;
    list_locks(
        table,
        [&](const LockInfo&) {
          ++told;
          pause(300ms);
          return true;
        },
        ec);
    return ec ? ec.message() : told == 4 ? "" : std::to_string(told);
  });
  BOOST_TEST(wrong == "");
}

// --- Force -------------------------------------------------------------------

BOOST_DATA_TEST_CASE(lock_freed_by_force_is_lost_and_can_be_taken, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  for (const bool keep : {false, true}) {
    const auto table = table_at(engine);
    Told told;
    Options options = on_table(table);
    options.keep_row = keep;
    DdbMutex next(fresh_name(), options);
    options.renew_after = 1s;
    options.on_lost = [&told](Loss loss) { told.add(name_of(loss)); };
    options.table = table_at(engine);
    DdbMutex holder(next.name(), options);
    holder.lock();
    BOOST_TEST(!next.try_lock());
    // A renewal between the two calls makes the inspected record stale.
    BOOST_TEST(eventually(
        [&] { return force_unlock(*table, table->inspect(holder.name())); }));
    next.lock();
    BOOST_TEST(next.owns_lock());
    BOOST_TEST(next.fencing_token() == (keep ? 2u : 0u));
    BOOST_TEST(told.wait_for(1));
    BOOST_TEST(!holder.owns_lock());
    BOOST_TEST(row_of(engine, holder.name()).owner == next.owner());
  }
}

// A row with a token may be somebody's work item.  It is never deleted,
// whatever its token is and whatever the given LockInfo says.
BOOST_DATA_TEST_CASE(force_deletes_no_row_that_bears_a_token, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  Table table(table_options(engine));
  const std::string name = fresh_name();
  const std::string work = record("holder", calendar() + 1h) +
                           R"(,"colour":{"S":"red"},"token":{"N":")";
  for (const char* token : {"0", "1", "77"}) {
    write_row(engine, name, work + token + "\"}");
    LockInfo untold = table.inspect(name);
    BOOST_TEST(untold.keep_row);
    untold.keep_row = false;
    untold.token = 0;
    BOOST_TEST(!force_unlock(table, untold));
    BOOST_TEST(!table.inspect(name).released);
    // A LockInfo from list_locks() works, too.
    BOOST_TEST(force_unlock(table, listed(table).at(name)));
    const LockInfo left = table.inspect(name);
    BOOST_TEST(left.released);
    BOOST_TEST(std::to_string(left.token) == token);
    const auto stays = attributes_of(left.item);
    BOOST_TEST_REQUIRE(stays.size() == 1u);
    BOOST_TEST(stays[0].value == "red");
  }
}

BOOST_DATA_TEST_CASE(force_frees_exactly_the_record_that_was_inspected,
                     kEngines, kind) {
  Engine& engine = Engine::running(kind);
  Table table(table_options(engine));
  const std::string name = fresh_name();
  const nanoseconds expires = calendar() + 1h;
  write_row(engine, name, record("first", expires));
  const LockInfo first = table.inspect(name);
  write_row(engine, name, record("first", expires + 1ns));  // Renewed.
  BOOST_TEST(!force_unlock(table, first));
  write_row(engine, name, record("other", expires));  // Taken.
  BOOST_TEST(!force_unlock(table, first));
  BOOST_TEST(row_of(engine, name).uuid == "other");
  delete_row(engine, name);  // Released.
  std::error_code ec;
  BOOST_TEST(!force_unlock(table, first, ec));
  BOOST_TEST(!ec);
  write_row(engine, name, record("first", expires));
  BOOST_TEST(force_unlock(table, first));
  BOOST_TEST(is_free(engine, name));
  // A record of a client that stores no lease.
  write_row(engine, name,
            R"("uuid":{"S":"u"},"expires":{"N":"1700000000000000000"})");
  BOOST_TEST(force_unlock(table, table.inspect(name)));
  BOOST_TEST(is_free(engine, name));
}

BOOST_DATA_TEST_CASE(force_whose_answer_is_lost_tells_that_it_is_done, kEngines,
                     kind) {
  for (const bool keep : {false, true}) {
    Gate gate(kind);
    const auto table = table_at(gate);
    Options options = on_table(table_at(gate.engine()), 1h);
    options.keep_row = keep;
    DdbMutex holder(fresh_name(), options);
    holder.lock();
    const LockInfo info = table->inspect(holder.name());
    gate.once(keep ? "UpdateItem" : "DeleteItem", Gate::answer_lost());
    BOOST_TEST(force_unlock(*table, info));
    BOOST_TEST(table->inspect(holder.name()).exists == keep);
    BOOST_TEST(table->inspect(holder.name()).released == keep);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// === Tables of another key ===================================================

// Nobody gets a lock, and nothing is written.  A PutItem does not name the key.
// So if the key is another attribute of the record, each take would create an
// item of its own, and each would succeed.

namespace {

const std::vector<KeyPart> kRightKey = {{"name", "S"}};

// The attributes of a record made with all_attributes().
const std::vector<KeyPart> kAttributes = {
    {"uuid", "S"}, {"owner", "S"}, {"expires", "N"}, {"lease", "N"},
    {"ttl", "N"},  {"data", "B"},  {"mine", "S"}};

// Each of them as partition key, and as sort key of the right one.
std::vector<std::vector<KeyPart>> wrong_keys() {
  std::vector<std::vector<KeyPart>> all = {{{"name", "N"}}, {{"id", "S"}}};
  for (const KeyPart& attribute : kAttributes) {
    all.push_back({attribute});
    all.push_back({attribute, {"name", "S"}});
    all.push_back({{"name", "S"}, attribute});
  }
  return all;
}

Options all_attributes(std::shared_ptr<Table> table) {
  Options options = on_table(std::move(table));
  options.data = "bytes";
  options.item = R"({"mine":{"S":"x"}})";
  return options;
}

// A host that makes calls in random order.
class Host {
 public:
  Host(const KeyedTable& keyed, std::mt19937& random)
      : random_(random), table_(keyed.new_table()) {
    Options options = all_attributes(table_);
    if (random_() % 4 == 0) options.keep_row = true;
    mutex_ = std::make_unique<DdbMutex>("x", options);
    if (random_() % 2 == 0) list();
  }

  // Each call that needs the lock fails.
  void call_something() {
    std::error_code ec;
    const auto call = random_() % 8;
    switch (call) {
      case 0:
        BOOST_TEST(!mutex_->try_lock_for(0s, ec));
        break;
      case 1:
        BOOST_TEST(!mutex_->try_lock(ec));
        break;
      case 2:
        BOOST_TEST(!mutex_->try_lock_for(kPlenty, ec));
        break;
      case 3:
        mutex_->renew(ec);
        BOOST_TEST((ec == Errc::not_held), ec.message());
        break;
      case 4:
        mutex_->release(ec);
        BOOST_TEST((ec == Errc::not_held), ec.message());
        break;
      case 5:
        mutex_->unlock();
        break;
      case 6:
        table_->inspect("x", ec);
        BOOST_TEST((ec == Errc::wrong_table), ec.message());
        break;
      case 7:
        list();
        break;
    }
    if (call <= 2) BOOST_TEST((ec == Errc::wrong_table), ec.message());
  }
  const DdbMutex& mutex() const { return *mutex_; }

 private:
  // A Scan does not name the key, and its answer tells DynamoDB's time.
  void list() {
    std::error_code ec;
    list_locks(
        *table_, [](const ddbmutex::LockInfo&) { return true; }, ec);
    BOOST_TEST((!ec || ec == Errc::wrong_table), ec.message());
  }

  std::mt19937& random_;
  std::shared_ptr<Table> table_;
  std::unique_ptr<DdbMutex> mutex_;
};

std::string error_of_lock(DdbMutex& mutex) {
  std::error_code ec;
  mutex.lock(ec);
  return ec ? ec.message() : "none";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wrong_table)

BOOST_DATA_TEST_CASE(nobody_gets_in_in_any_order_of_calls, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const char* given = std::getenv("DDBMUTEX_SEED");
  const auto seed =
      static_cast<unsigned>(given != nullptr ? std::atoll(given) : 1);
  std::mt19937 random(seed);
  for (const std::vector<KeyPart>& key : wrong_keys()) {
    BOOST_TEST_CONTEXT("key " << key[0].name << " " << key.back().name
                              << ", seed " << seed) {
      const KeyedTable keyed(engine, key);
      Host one(keyed, random), other(keyed, random);
      for (int i = 0; i < 20; ++i) {
        (random() % 2 == 0 ? one : other).call_something();
        BOOST_TEST(!one.mutex().owns_lock());
        BOOST_TEST(!other.mutex().owns_lock());
      }
      BOOST_TEST(has(keyed.items(), R"("Count":0)"), keyed.items());
    }
  }
}

BOOST_DATA_TEST_CASE(wrong_key_is_remembered_until_it_is_found_right, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  for (const bool by_creation : {false, true}) {
    KeyedTable keyed(engine, {{"uuid", "S"}});
    const auto table = keyed.new_table();
    DdbMutex mutex("x", on_table(table)), other("y", on_table(table));
    BOOST_TEST(error_of_lock(mutex) == words(Errc::wrong_table));
    const auto sent = table->stats().requests();
    for (DdbMutex* each : {&mutex, &other, &mutex}) {
      BOOST_TEST(error_of_lock(*each) == words(Errc::wrong_table));
      BOOST_TEST(has(each->last_error(), "key"), each->last_error());
    }
    keyed.remove();
    keyed.make(kRightKey);
    BOOST_TEST(error_of_lock(mutex) == words(Errc::wrong_table));
    BOOST_TEST(table->stats().requests() == sent);
    if (by_creation) {
      create_table(*table);
    } else {
      BOOST_TEST(table_exists(*table));
    }
    BOOST_TEST(error_of_lock(mutex) == "none");
    BOOST_TEST(mutex.owns_lock());
  }
}

BOOST_DATA_TEST_CASE(look_at_the_table_that_finds_it_wrong_is_remembered,
                     kEngines, kind) {
  Engine& engine = Engine::running(kind);
  for (const bool by_creation : {false, true}) {
    const KeyedTable keyed(engine, {{"owner", "S"}});
    const auto table = keyed.new_table();
    std::error_code ec;
    if (by_creation) {
      create_table(*table, ec);
    } else {
      table_exists(*table, ec);
    }
    BOOST_TEST((ec == Errc::wrong_table));
    const auto sent = table->stats().requests();
    DdbMutex mutex("x", on_table(table));
    BOOST_TEST(error_of_lock(mutex) == words(Errc::wrong_table));
    BOOST_TEST(has(mutex.last_error(), "\"name\" alone"), mutex.last_error());
    BOOST_TEST(table->stats().requests() == sent);
  }
}

namespace {

// All calls that need the key.  Their errors say which key the table has.
using CallOnTable = std::function<void(const std::shared_ptr<Table>&)>;
const std::map<std::string, CallOnTable>& calls_on_a_table() {
  static const auto ignore = [](const LockInfo&) { return true; };
  static const std::map<std::string, CallOnTable> all = {
      {"lock", [](auto& table) { DdbMutex("x", on_table(table)).lock(); }},
      {"try_lock_for",
       [](auto& table) {
         BOOST_TEST(!DdbMutex("x", on_table(table)).try_lock_for(1h));
       }},
      {"inspect", [](auto& table) { table->inspect("x"); }},
      {"list", [](auto& table) { list_locks(*table, ignore); }},
      {"list a name", [](auto& table) { list_locks(*table, "x", ignore); }},
      {"AnyOf",
       [](auto& table) {
         ddbmutex::AnyOfOptions options;
         options.each = on_table(table);
         BOOST_TEST(!ddbmutex::AnyOf(options).lock());
       }},
  };
  return all;
}

}  // namespace

BOOST_DATA_TEST_CASE(each_call_says_which_key_the_table_has, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const std::map<std::string, TableKey> keys = {
      {R"(the string "id" alone)", {{"id", "S"}}},
      {R"(the number "name" alone)", {{"name", "N"}}},
      {R"(the binary "key" with the string "name")",
       {{"key", "B"}, {"name", "S"}}},
      {R"(the string "name" with the number "at")",
       {{"name", "S"}, {"at", "N"}}},
  };
  for (const auto& [words_of_it, key] : keys) {
    const KeyedTable keyed(engine, key);
    for (const auto& [what, call] : calls_on_a_table()) {
      const auto table = keyed.new_table();
      const auto error = error_of([&, &call = call] { call(table); });
      BOOST_TEST_REQUIRE(error.has_value(), what << " of " << words_of_it);
      BOOST_TEST((error->code() == Errc::wrong_table), error->what());
      BOOST_TEST(has(error->what(), "its key is " + words_of_it +
                                        ", not the string \"name\" alone "
                                        "(options `key` and `sort_key`)"),
                 what << ": " << error->what());
      // From now on it is known, and told without a request.
      const auto sent = table->stats().requests();
      const auto again = error_of([&, &call = call] { call(table); });
      BOOST_TEST_REQUIRE(again.has_value(), what);
      BOOST_TEST(has(again->what(), words_of_it), again->what());
      BOOST_TEST(table->stats().requests() == sent, what);
    }
  }
}

// Then DynamoDB's own words have to do.
BOOST_AUTO_TEST_CASE(key_of_a_table_that_may_not_be_described_is_not_told) {
  Gate gate;
  const KeyedTable keyed(gate.engine(), {{"id", "S"}});
  gate.always("DescribeTable", [](Engine&, const SeenRequest&) {
    return failure(400, "AccessDeniedException");
  });
  for (const auto& [what, call] : calls_on_a_table()) {
    TableOptions options = table_options(gate);
    options.name = keyed.name();
    const auto table = std::make_shared<Table>(options);
    for (const bool first : {true, false}) {
      const auto sent = table->stats().requests();
      const auto error = error_of([&, &call = call] { call(table); });
      BOOST_TEST_REQUIRE(error.has_value(), what);
      BOOST_TEST((error->code() == Errc::wrong_table), error->what());
      BOOST_TEST(has(error->what(), "key"), error->what());
      BOOST_TEST((table->stats().requests() == sent) == !first, what);
    }
  }
}

// Whoever may only read tables can still list them.
BOOST_AUTO_TEST_CASE(list_goes_on_if_it_may_not_ask_for_the_key) {
  Gate gate;
  const std::string name = fresh_name();
  write_row(gate.engine(), name, live_record());
  gate.always("GetItem", [](Engine&, const SeenRequest&) {
    return failure(400, "AccessDeniedException");
  });
  Table table(table_options(gate));
  BOOST_TEST(listed(table).count(name) == 1u);
}

BOOST_AUTO_TEST_CASE(list_asks_for_the_key_once) {
  Gate gate;
  Table table(table_options(gate));
  listed(table);
  listed(table);
  BOOST_TEST(count_of(gate.server(), "GetItem") == 1);
  // The item that it names may be large: only its key is requested.
  const std::string question = gate.server().requests().at(0).body;
  BOOST_TEST(has(question, R"("ProjectionExpression":"#0")"), question);
  BOOST_TEST(has(question, R"("ExpressionAttributeNames":{"#0":"name"})"),
             question);
}

// A table is deleted and created again while its locks are in use.
BOOST_DATA_TEST_CASE(table_that_comes_back_with_another_key_lets_nobody_in,
                     kEngines, kind) {
  Engine& engine = Engine::running(kind);
  KeyedTable keyed(engine, kRightKey);
  const auto ours = keyed.new_table(), theirs = keyed.new_table();
  DdbMutex one("x", on_table(ours)), other("x", on_table(theirs));
  for (DdbMutex* each : {&one, &other}) {
    BOOST_TEST(error_of_lock(*each) == "none");
    each->unlock();
  }
  keyed.remove();
  for (DdbMutex* each : {&one, &other}) {
    BOOST_TEST(error_of_lock(*each) == words(Errc::no_table));
  }
  keyed.make({{"uuid", "S"}});
  for (DdbMutex* each : {&one, &other, &one, &other}) {
    BOOST_TEST(error_of_lock(*each) == words(Errc::wrong_table));
    BOOST_TEST(!each->owns_lock());
  }
  BOOST_TEST(has(keyed.items(), R"("Count":0)"), keyed.items());
}

// One such answer to a renewal loses that lock, but the table counts as right.
BOOST_AUTO_TEST_CASE(wrong_key_told_to_a_renewal_is_not_the_tables) {
  Gate gate;
  const auto table = table_at(gate);
  DdbMutex one(fresh_name(), on_table(table));
  DdbMutex other(fresh_name(), on_table(table));
  DdbMutex third(fresh_name(), on_table(table));
  one.lock();
  other.lock();
  gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
    return Reply::error(
        400,
        R"({"__type":"com.amazon.coral.validate#ValidationException",)"
        R"("message":"The provided key element does not match the schema"})");
  });
  std::error_code ec;
  one.renew(ec);
  BOOST_TEST((ec == Errc::lease_lost), ec.message());
  BOOST_TEST(thrown_by([&] { other.renew(); }) == "none");
  BOOST_TEST(thrown_by([&] { other.release(); }) == "none");
  BOOST_TEST(is_free(gate.engine(), other.name()));
  BOOST_TEST(error_of_lock(third) == "none");
}

BOOST_AUTO_TEST_SUITE_END()
