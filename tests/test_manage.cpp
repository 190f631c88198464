// What a Table tells and does about itself and the locks in it: making it,
// looking at a lock, listing them all, freeing one by force.
#include <malloc.h>

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::Attributes;
using ddbmutex::Creation;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LockInfo;
using ddbmutex::Loss;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

std::string body_of(const ScriptedServer& server, const std::string& action) {
  for (const SeenRequest& request : server.requests()) {
    if (action_of(request) == action) return request.body;
  }
  return "";
}

// A table of the test's own, gone with it.
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
      tests::TableKey parts = {{key}};
      if (!sort_key.empty()) parts.push_back({sort_key});
      options.name = engine.create_table(parts);
    } else {
      options.name = "ddbmutex-test-" + fresh_name();
    }
    table = std::make_shared<Table>(options);
    if (!engine.has_prepared_tables()) table->create(how);
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

// Each request has all the time that it needs: one that is sent twice may cost
// a number.
Options kept_on(const std::shared_ptr<Table>& table,
                milliseconds ttl = std::chrono::minutes(1)) {
  Options options = on_table(table, ttl);
  options.keep_row = true;
  options.request_timeout = 20s;
  return options;
}

// Those that list() tells, by name and sort value.
template <class... Where>
std::map<std::string, LockInfo> listed(Table& table, const Where&... where) {
  std::map<std::string, LockInfo> all;
  table.list(where..., [&all](const LockInfo& info) {
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
  BOOST_TEST(own.table->exists());
  const std::string told = own.call("DescribeTable", "");
  BOOST_TEST(has(told, R"("AttributeName":"pk")"));
  BOOST_TEST(has(told, R"("AttributeName":"sk")"));
  DdbMutex mutex("a", on_table(own.table));
  mutex.lock();
  BOOST_TEST(own.table->inspect("a").owner == mutex.owner());
  // Others take it for what it is not.
  for (const auto& [key, sort_key, words_of_it] :
       {std::tuple("name", "", "\"name\" alone"),
        std::tuple("pk", "", "\"pk\""), std::tuple("pk", "other", "\"other\""),
        std::tuple("sk", "pk", "\"sk\" with")}) {
    TableOptions options = own.options;
    options.key = key;
    options.sort_key = sort_key;
    options.sort_value = *sort_key == '\0' ? "" : "usual";
    Table wrong(options);
    const auto error = error_of([&] { wrong.exists(); });
    BOOST_TEST_REQUIRE(error.has_value());
    BOOST_TEST((error->code() == Errc::wrong_table));
    BOOST_TEST(has(error->what(), words_of_it), error->what());
    BOOST_TEST(thrown_by([&] { wrong.create(); }) == words(Errc::wrong_table));
  }
}

BOOST_DATA_TEST_CASE(creation_tells_throughput_and_tags, kEngines, kind) {
  Gate gate(kind);
  TableOptions options = table_options(gate);
  options.name = "ddbmutex-test-" + fresh_name();
  Creation how;
  how.throughput = Creation::Throughput{7, 5};
  how.tags = {{"team", "gr\xc3\xbcn"}, {"empty", ""}};
  how.clean_up = false;
  Table(options).create(how);
  const std::string body = body_of(gate.server(), "CreateTable");
  BOOST_TEST(has(body, R"("ReadCapacityUnits":7,"WriteCapacityUnits":5)"));
  BOOST_TEST(has(body, "{\"Key\":\"team\",\"Value\":\"gr\xc3\xbcn\"}"));
  BOOST_TEST(count_of(gate.server(), "UpdateTimeToLive") == 0);
  const std::string told = gate.engine().must_call(
      "DescribeTable", R"({"TableName":")" + options.name + R"("})");
  BOOST_TEST(has(told, R"("WriteCapacityUnits":5)"), told);
  // There already: left as it is, but for the clean-up.
  Table(options).create();
  BOOST_TEST(count_of(gate.server(), "CreateTable") == 1);
  BOOST_TEST(count_of(gate.server(), "UpdateTimeToLive") == 1);
  gate.engine().delete_table(options.name);
}

BOOST_AUTO_TEST_CASE(creation_that_cannot_be_said_is_refused_unsent) {
  ScriptedServer server;
  Table table(table_options(server));
  const auto field_of = [&table](const Creation& how) {
    const auto error = error_of([&] { table.create(how); });
    return error ? error->field() : "none";
  };
  Creation no_reads, no_writes, bad_key, bad_value;
  no_reads.throughput = Creation::Throughput{0, 1};
  no_writes.throughput = Creation::Throughput{1, 0};
  bad_key.tags = {{"\xff", "x"}};
  bad_value.tags = {{"x", "\xff"}};
  BOOST_TEST(field_of(no_reads) == "throughput");
  BOOST_TEST(field_of(no_writes) == "throughput");
  BOOST_TEST(field_of(bad_key) == "tags");
  BOOST_TEST(field_of(bad_value) == "tags");
  BOOST_TEST(server.request_count() == 0);
}

// --- Inspection --------------------------------------------------------------

BOOST_DATA_TEST_CASE(inspection_tells_all_of_a_held_lock, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  Options options = kept_on(table);
  options.owner = "me";
  options.data = "bytes";
  options.attributes = {{"mine", ddbmutex::Attribute::Type::number, "5", {}}};
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
  BOOST_TEST((held.attributes == options.attributes));
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
  BOOST_TEST(nothing.attributes.empty());

  write_row(engine, name, R"("colour":{"S":"red"},"data":{"B":"eA=="})");
  const LockInfo bare = table->inspect(name);
  BOOST_TEST(!bare.exists);
  BOOST_TEST(bare.keep_row);
  BOOST_TEST((bare.data == "x"));
  BOOST_TEST_REQUIRE(bare.attributes.size() == 1u);
  BOOST_TEST(bare.attributes[0].name == "colour");

  write_row(engine, name, R"("uuid":{"S":"u"},"expires":{"S":"soon"})");
  const auto error = error_of([&] { table->inspect(name); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::bad_record));
  BOOST_TEST(has(error->what(), "expires"), error->what());
}

// By DynamoDB's clock, which is known to a second or so.
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
  // One that was written just now, by a clock a little ahead.
  write_row(engine, name, record("u", calendar() + 90s, 60s));
  BOOST_TEST((table->inspect(name).age == 0ms));
  // A list tells it as well.
  write_row(engine, name, record("u", wrote + 60s, 60s));
  const LockInfo found = listed(*table).at(name);
  BOOST_TEST_REQUIRE(found.age.has_value());
  BOOST_TEST((*found.age >= 28s));
}

BOOST_AUTO_TEST_CASE(age_is_not_told_where_it_is_not_known) {
  std::string attributes;
  bool dated = true;
  ScriptedServer server([&](const SeenRequest&) {
    Reply reply = found(attributes);
    return dated ? reply : with_header(reply, "Date", "");
  });
  const auto age = [&](const std::string& row) {
    attributes = row;
    return Table(table_options(server)).inspect("x").age;
  };
  BOOST_TEST(age(live_record()).has_value());
  BOOST_TEST(!age(record("u", 0ns)));
  BOOST_TEST(!age(record("u", nanoseconds(4'000'000'000'000'000'001))));
  BOOST_TEST(!age(R"("uuid":{"S":"u"},"expires":{"N":"1700000000000000000"})"));
  dated = false;
  BOOST_TEST(!age(live_record()));
}

BOOST_DATA_TEST_CASE(inspection_by_sort_value_finds_the_one_of_it, kEngines,
                     kind) {
  const OwnTable own(Engine::running(kind), {}, "pk", "sk");
  Options options = on_table(own.table);
  DdbMutex usual("a", options);
  options.sort_value = "other";
  DdbMutex other("a", options);
  usual.lock();
  other.lock();  // Another lock.
  BOOST_TEST(own.table->inspect("a").sort_value == "usual");
  const LockInfo found = own.table->inspect("a", "other");
  BOOST_TEST(found.sort_value == "other");
  BOOST_TEST(found.exists);
  BOOST_TEST(found.uuid != own.table->inspect("a").uuid);
  std::error_code ec;
  BOOST_TEST(!own.table->inspect("a", "third", ec).exists);
  BOOST_TEST(!ec);
  // Not of the user's own.
  BOOST_TEST(found.attributes.empty());
  own.table->inspect("a", std::string(1025, 's'), ec);
  BOOST_TEST((ec == Errc::bad_option));
  Table unsorted(table_options(Engine::running(kind)));
  const auto error = error_of([&] { unsorted.inspect("a", "other"); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(error->field() == "sort_value");
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
  BOOST_TEST(all.at("held").uuid == own.table->inspect("held").uuid);
  BOOST_TEST(all.at("held").owner == held.owner());
  BOOST_TEST((all.at("held").lease == 60s));
  BOOST_TEST(all.at("held").age.has_value());
  BOOST_TEST(all.at("held").token == 0u);
  BOOST_TEST(!all.at("held").keep_row);
  BOOST_TEST(all.at("kept").token == 1u);
  BOOST_TEST(all.at("kept").keep_row);
  BOOST_TEST(!all.at("kept").released);
  BOOST_TEST(all.at("released").released);
  BOOST_TEST(!all.at("bare").exists);
  BOOST_TEST(all.at("bare").keep_row);
  BOOST_TEST(all.at("bare").problem == "");
  BOOST_TEST(all.at("bare").attributes.empty());
  BOOST_TEST(!all.at("odd").exists);
  BOOST_TEST(has(all.at("odd").problem, "uuid"));
  BOOST_TEST(all.at("odd").owner == "");

  TableOptions others = own.options;
  others.prefix = "";
  Table whole(others);
  BOOST_TEST(names(listed(whole)) ==
             "ddblock ddblock-bare ddblock-held ddblock-kept ddblock-odd "
             "ddblock-released other-held");
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
  // Also where no sort value is usual.
  TableOptions without = own.options;
  without.sort_value.clear();
  Table table(without);
  BOOST_TEST(names(listed(table, a)) == "a/1 a/2 a/3");
  std::error_code ec;
  table.list(
      "", [](const LockInfo&) { return true; }, ec);
  BOOST_TEST((ec == Errc::bad_option));
}

BOOST_DATA_TEST_CASE(list_of_a_name_without_a_sort_key_tells_its_lock, kEngines,
                     kind) {
  Gate gate(kind);
  const auto table = table_at(gate);
  DdbMutex mutex(fresh_name(), on_table(table));
  BOOST_TEST(names(listed(*table, mutex.name())) == "");
  mutex.lock();
  const auto all = listed(*table, mutex.name());
  BOOST_TEST(names(all) == mutex.name());
  BOOST_TEST(all.at(mutex.name()).owner == mutex.owner());
  BOOST_TEST(count_of(gate.server(), "Scan") == 0);
}

BOOST_DATA_TEST_CASE(list_ends_when_it_is_told_to, kEngines, kind) {
  const OwnTable own(Engine::running(kind));
  for (const char* name : {"a", "b", "c"}) {
    own.put(std::string("ddblock-") + name, "," + live_record());
  }
  int told = 0;
  own.table->list([&told](const LockInfo&) { return ++told < 2; });
  BOOST_TEST(told == 2);
  // By an exception too, and the table is well after it.
  const auto throws = [](const LockInfo&) -> bool {
    throw std::runtime_error("enough");
  };
  BOOST_CHECK_THROW(own.table->list(throws), std::runtime_error);
  std::error_code ec;
  BOOST_CHECK_THROW(own.table->list(throws, ec), std::runtime_error);
  // It may ask the table, too.
  own.table->list([table = own.table](const LockInfo& info) {
    return table->force_unlock(table->inspect(info.name));
  });
  BOOST_TEST(names(listed(*own.table)) == "");
}

namespace {

// Rows of that many bytes or a little more, past the library.
void fill(const OwnTable& own, Engine& engine, int rows, std::size_t bytes) {
  constexpr int kAtOnce = 25;  // DynamoDB's.
  for (int row = 0; row < rows; row += kAtOnce) {
    std::string body = R"({"RequestItems":{")" + own.options.name + R"(":[)";
    for (int i = row; i < std::min(row + kAtOnce, rows); ++i) {
      body +=
          std::string(i == row ? "" : ",") +
          R"({"PutRequest":{"Item":{"name":{"S":"ddblock-)" +
          std::to_string(i) + R"("},"uuid":{"S":"u)" + std::to_string(i) +
          R"("},"expires":{"N":"4000000000000000000"},"lease":{"N":"1000"},)"
          R"("owner":{"S":")" +
          std::string(bytes, 'o') + R"("},"data":{"B":")" +
          std::string(bytes, 'A') + R"("}}}})";
    }
    engine.must_call("BatchWriteItem", body + "]}}");
  }
}

// Of the C library's heap; 0 where a sanitizer has another.
std::size_t heap_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

BOOST_AUTO_TEST_CASE(list_of_ten_thousand_rows_is_right_and_small_in_memory) {
  constexpr int kRows = 10000;
  constexpr std::size_t kBytes = 2000;  // 20 MB of owners in all.
  Engine& engine = Engine::running(any_engine_kind());
  const OwnTable own(engine);
  fill(own, engine, kRows, kBytes);
  const std::size_t before = heap_in_use();
  std::size_t most = before;
  std::vector<bool> seen(kRows);
  int wrong = 0;
  own.table->list([&](const LockInfo& info) {
    const auto row = std::stoul(info.name);
    const bool right = !seen.at(row) && info.uuid == "u" + info.name &&
                       info.owner.size() == kBytes && !info.data;
    wrong += right ? 0 : 1;
    seen.at(row) = true;
    most = std::max(most, heap_in_use());
    return true;
  });
  BOOST_TEST(wrong == 0);
  BOOST_TEST(std::count(seen.begin(), seen.end(), true) == kRows);
  BOOST_TEST_MESSAGE("list: at most " << (most - before) / 1024 << " KiB");
  BOOST_TEST(most - before < 6u << 20);
}

BOOST_DATA_TEST_CASE(list_reads_neither_data_nor_what_has_no_prefix, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const OwnTable own(engine);
  const std::string large(20000, 'A');
  own.put("ddblock-a", R"(,"data":{"B":")" + large + "\"}");
  own.put("other", R"(,"owner":{"S":")" + large + "\"}");
  BOOST_TEST(names(listed(*own.table)) == "a");
  BOOST_TEST(own.table->stats().bytes_received < large.size());
}

BOOST_DATA_TEST_CASE(list_goes_on_after_passing_faults, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const OwnTable own(engine);
  fill(own, engine, 450, 12);
  Gate gate(kind);
  TableOptions options = own.options;
  options.endpoint = gate.server().url();
  Table table(options);
  gate.once("Scan", Gate::fails());
  gate.once("Scan", Gate::answer_lost());
  int told = 0;
  table.list([&](const LockInfo&) {
    if (++told == 200) gate.once("Scan", Gate::fails());
    return true;
  });
  BOOST_TEST(told == 450);
  BOOST_TEST(table.stats().retries == 3u);
}

// `patience` is for each request.
BOOST_AUTO_TEST_CASE(list_goes_on_however_long_it_takes_in_all) {
  const std::string wrong = tests::undisturbed(500ms, [] {
    int page = 0;
    ScriptedServer server([&](const SeenRequest&) {
      const std::string key =
          R"({"name":{"S":"ddblock-)" + std::to_string(++page) + "\"}}";
      const std::string next =
          page < 4 ? R"(,"LastEvaluatedKey":)" + key : std::string();
      Reply reply = Reply::ok(R"({"Items":[)" + key + "]" + next + "}");
      reply.delay = 400ms;
      return reply;
    });
    ddbmutex::TableOptions options = tests::table_options(server);
    options.patience = 1s;
    Table table(options);
    std::error_code ec;
    int told = 0;
    table.list(
        [&](const LockInfo&) {
          ++told;
          tests::pause(300ms);
          return true;
        },
        ec);
    return ec ? ec.message() : told == 4 ? "" : std::to_string(told);
  });
  BOOST_TEST(wrong == "");
}

BOOST_AUTO_TEST_CASE(list_tells_why_it_ends_early) {
  Gate gate;
  Table table(table_options(gate));
  gate.always("Scan", [](Engine&, const SeenRequest&) {
    return failure(400, "AccessDeniedException");
  });
  std::error_code ec;
  table.list([](const LockInfo&) { return true; }, ec);
  BOOST_TEST((ec == Errc::access_denied));
  BOOST_TEST(has(table.last_error(), "cannot list table"), table.last_error());
  TableOptions nowhere = table_options(gate);
  nowhere.name = "no-such-table";
  Table none(nowhere);
  BOOST_TEST(thrown_by([&] {
               none.list("x", [](const LockInfo&) { return true; });
             }) == words(Errc::no_table));
}

BOOST_AUTO_TEST_CASE(calls_try_no_longer_than_the_table_has_patience) {
  ScriptedServer server([](const SeenRequest&) { return Reply::error(500); });
  TableOptions options = table_options(server);
  options.patience = 0ms;
  Table table(options);
  LockInfo held;
  held.name = "job";
  held.exists = true;
  held.uuid = "0123";
  const std::vector<std::function<void(std::error_code&)>> calls = {
      [&](std::error_code& ec) { table.exists(ec); },
      [&](std::error_code& ec) { table.inspect("job", ec); },
      [&](std::error_code& ec) { table.force_unlock(held, ec); },
      [&](std::error_code& ec) {
        table.list([](const LockInfo&) { return true; }, ec);
      },
  };
  for (const auto& call : calls) {
    std::error_code ec;
    call(ec);
    BOOST_TEST((ec == Errc::timed_out));
  }
  BOOST_TEST(server.request_count() == 0);
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
    options.request_timeout = 20s;
    DdbMutex next(fresh_name(), options);
    options.renew_after = 1s;
    options.on_lost = [&told](Loss loss) { told.add(name_of(loss)); };
    options.table = table_at(engine);
    DdbMutex holder(next.name(), options);
    holder.lock();
    BOOST_TEST(!next.try_lock());
    // The holder renews now and then.
    BOOST_TEST(eventually(
        [&] { return table->force_unlock(table->inspect(holder.name())); }));
    next.lock();
    BOOST_TEST(next.owns_lock());
    BOOST_TEST(next.fencing_token() == (keep ? 2u : 0u));
    BOOST_TEST(told.wait_for(1));
    BOOST_TEST(!holder.owns_lock());
    BOOST_TEST(row_of(engine, holder.name()).owner == next.owner());
  }
}

BOOST_DATA_TEST_CASE(kept_row_freed_by_force_keeps_what_it_had, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  Options options = kept_on(table, 1h);
  options.data = "bytes";
  DdbMutex holder(fresh_name(), options);
  holder.lock();
  BOOST_TEST(table->force_unlock(table->inspect(holder.name())));
  const LockInfo left = table->inspect(holder.name());
  BOOST_TEST(left.released);
  BOOST_TEST(left.token == 1u);
  BOOST_TEST((left.data == "bytes"));
  BOOST_TEST(left.owner == holder.owner());
}

// A row may be work that is its own lock: whatever its token is, and whatever
// the operator has been told of it, it is not deleted.
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
    BOOST_TEST(!table.force_unlock(untold));
    BOOST_TEST(!table.inspect(name).released);
    // As a list tells it, too.
    BOOST_TEST(table.force_unlock(listed(table).at(name)));
    const LockInfo left = table.inspect(name);
    BOOST_TEST(left.released);
    BOOST_TEST(std::to_string(left.token) == token);
    BOOST_TEST_REQUIRE(left.attributes.size() == 1u);
    BOOST_TEST(left.attributes[0].value == "red");
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
  BOOST_TEST(!table.force_unlock(first));
  write_row(engine, name, record("other", expires));  // Taken.
  BOOST_TEST(!table.force_unlock(first));
  BOOST_TEST(row_of(engine, name).uuid == "other");
  delete_row(engine, name);  // Released.
  std::error_code ec;
  BOOST_TEST(!table.force_unlock(first, ec));
  BOOST_TEST(!ec);
  write_row(engine, name, record("first", expires));
  BOOST_TEST(table.force_unlock(first));
  BOOST_TEST(is_free(engine, name));
  // One that a client wrote who knows no lease.
  write_row(engine, name,
            R"("uuid":{"S":"u"},"expires":{"N":"1700000000000000000"})");
  BOOST_TEST(table.force_unlock(table.inspect(name)));
  BOOST_TEST(is_free(engine, name));
}

BOOST_DATA_TEST_CASE(force_by_sort_value_leaves_the_others, kEngines, kind) {
  const OwnTable own(Engine::running(kind), {}, "pk", "sk");
  Options options = on_table(own.table, 1h);
  DdbMutex usual("a", options);
  options.sort_value = "other";
  DdbMutex other("a", options);
  usual.lock();
  other.lock();
  BOOST_TEST(own.table->force_unlock(own.table->inspect("a", "other")));
  BOOST_TEST(names(listed(*own.table)) == "a/usual");
  // As a list tells it.
  BOOST_TEST(own.table->force_unlock(listed(*own.table).at("a/usual")));
  BOOST_TEST(names(listed(*own.table)) == "");
}

BOOST_AUTO_TEST_CASE(force_on_what_is_not_held_is_refused_unsent) {
  ScriptedServer server;
  Table table(table_options(server));
  LockInfo held;
  held.name = "x";
  held.exists = true;
  held.uuid = "u";
  const auto field_of = [&table](const LockInfo& info) {
    const auto error = error_of([&] { table.force_unlock(info); });
    return error ? error->field() : "none";
  };
  BOOST_TEST(field_of(held) == "none");
  LockInfo absent = held, released = held, nobody = held, nameless = held;
  absent.exists = false;
  released.released = true;
  nobody.uuid.clear();
  nameless.name.clear();
  BOOST_TEST(field_of(LockInfo{}) == "info");
  BOOST_TEST(field_of(absent) == "info");
  BOOST_TEST(field_of(released) == "info");
  BOOST_TEST(field_of(nobody) == "info");
  BOOST_TEST(field_of(nameless) == "name");
  std::error_code ec;
  BOOST_TEST(!table.force_unlock(absent, ec));
  BOOST_TEST((ec == Errc::bad_option));
  BOOST_TEST(server.request_count() == 1);
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
    BOOST_TEST(table->force_unlock(info));
    BOOST_TEST(table->inspect(holder.name()).exists == keep);
    BOOST_TEST(table->inspect(holder.name()).released == keep);
  }
}

BOOST_DATA_TEST_CASE(force_that_another_has_come_before_tells_so, kEngines,
                     kind) {
  for (const bool keep : {false, true}) {
    Gate gate(kind);
    const auto table = table_at(gate);
    const std::string name = fresh_name();
    const std::string token = keep ? R"(,"token":{"N":"5"})" : "";
    const nanoseconds expires = calendar() + 1h;
    write_row(gate.engine(), name, record("first", expires) + token);
    const LockInfo info = table->inspect(name);
    // Not applied, though that is not known; then the holder renews.
    gate.once(keep ? "UpdateItem" : "DeleteItem",
              [&](Engine& engine, const SeenRequest&) {
                write_row(engine, name, record("first", expires + 1ns) + token);
                return Reply::gone(Ending::reset);
              });
    BOOST_TEST(!table->force_unlock(info));
    BOOST_TEST((row_of(gate.engine(), name).expires == expires + 1ns));
  }
}

BOOST_AUTO_TEST_CASE(force_that_cannot_look_again_tells_why) {
  Gate gate;
  const auto table = table_at(gate);
  const std::string name = fresh_name();
  write_row(gate.engine(), name, record("first", calendar() + 1h));
  const LockInfo info = table->inspect(name);
  gate.once("DeleteItem", Gate::answer_lost());
  gate.always("GetItem", [](Engine&, const SeenRequest&) {
    return failure(400, "AccessDeniedException");
  });
  const auto error = error_of([&] { table->force_unlock(info); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::access_denied));
  BOOST_TEST(has(error->what(), "cannot free"), error->what());
}

BOOST_AUTO_TEST_SUITE_END()
