// Tables that are shared with other libraries' programs: their rows, as real
// clients were seen to write them, are read as they mean them; our requests
// leave rows that they understand; and what is not understood is left alone.
#include <algorithm>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/row.hpp"
#include "extras/admin.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/rival.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using tests::Engine;
using tests::EngineKind;
using tests::error_of;
using tests::Gate;
using tests::Layout;
using tests::Rival;
using tests::thrown_by;
using tests::words;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());
constexpr Layout kShared[] = {Layout::lockclient, Layout::lease,
                              Layout::dynamolock, Layout::awslabs};

// --- Rows as text ----------------------------------------------------------

dynamodb::Item item_in(const std::string& json) {
  const dynamodb::Document document("{" + json + "}");
  dynamodb::Item item;
  BOOST_TEST_REQUIRE(dynamodb::read_item(document.root(), item), json);
  return item;
}

Row read(Layout layout, const std::string& json) {
  return lock::read_row(item_in(json), *tests::rows_of(layout));
}

// What they have, without the key: as recorded, but for what is random.
std::string versioned(
    const std::string& lease,
    const std::string& version = R"({"S":"1795312195981415835:WZ5A4XSX"})") {
  return R"("key":{"S":"job"},"ownerName":{"S":"owner-a"},"leaseDuration":)" +
         lease + R"(,"recordVersionNumber":)" + version;
}
std::string s(const std::string& text) { return R"({"S":")" + text + "\"}"; }

void expect_unknown(Layout layout, const std::string& json,
                    const std::string& problem) {
  const Row row = read(layout, json);
  BOOST_TEST((row.kind == Row::Kind::unknown), json);
  BOOST_TEST(tests::has(row.problem, problem), json << ": " << row.problem);
}

std::optional<milliseconds> lease_of(const std::string& text) {
  return read(Layout::dynamolock, versioned(s(text))).lease;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layouts)

// Each of these makes some client take a lock that is held.
BOOST_AUTO_TEST_CASE(what_makes_others_steal_is_not_understood) {
  const std::string no_lease = R"("key":{"S":"job"},"ownerName":{"S":"h"},)"
                               R"("recordVersionNumber":{"S":"x:y"})";
  for (const Layout layout : {Layout::dynamolock, Layout::awslabs}) {
    expect_unknown(layout, no_lease, "leaseDuration is missing");
    expect_unknown(layout, versioned(R"({"N":"2000"})"),
                   "leaseDuration is not a string");
    for (const char* text : {"20", "999"}) {
      expect_unknown(layout, versioned(s(text)), "too short for milliseconds");
    }
    for (const char* text :
         {"", "0", "0s", "-2s", "s", ".s", "2", "1.2.3s", "2 s", "2S", "2sx",
          "1e3s", "9999999999999", "99999h", "2s-1s", "+", "0.0ms"}) {
      const Row row = read(layout, versioned(s(text)));
      BOOST_TEST((row.kind == Row::Kind::unknown), text);
      BOOST_TEST(tests::has(row.problem, "leaseDuration"), text);
      BOOST_TEST(!row.lease.has_value(), text);
    }
    const std::pair<std::string, const char*> rows[] = {
        {versioned(s("2s"), R"({"N":"7"})"), "recordVersionNumber"},
        {versioned(s("2s"), s("")), "recordVersionNumber"},
        {versioned(s("2s"), s(std::string(1025, 'x'))), "recordVersionNumber"},
        {R"("note":{"S":"x"})", "recordVersionNumber"},
        {R"("leaseDuration":{"S":"2s"},"recordVersionNumber":{"S":"x"})",
         "ownerName"},
        {versioned(s("2s")) + R"(,"isReleased":{"S":"0"})", "isReleased"},
        {versioned(s("2s")) + R"(,"isReleased":{"N":"1"})", "isReleased"},
        {versioned(s("2000")) + R"(,"data":{"S":"text"})", "data"},
        {versioned(s("2000")) + R"(,"isNonAcquirable":{"S":"1"})",
         "isNonAcquirable"},
    };
    for (const auto& [row, what] : rows) expect_unknown(layout, row, what);
  }
  const std::string id = R"("identifier":{"S":"a"})";
  expect_unknown(Layout::lockclient, id, "expiry");
  for (const char* end : {R"({"S":"1"})", R"({"N":"-1"})", R"({"N":"1.5"})",
                          R"({"N":"9223372036854775808"})"}) {
    expect_unknown(Layout::lockclient, id + R"(,"expiry":)" + end, "expiry");
    expect_unknown(Layout::lease,
                   R"("ProcessID":{"S":"a"},"LeaseUntil":)" + std::string(end),
                   "LeaseUntil");
  }
  expect_unknown(Layout::lockclient, R"("expiry":{"N":"5"})", "identifier");
  expect_unknown(Layout::lease,
                 R"("LeaseUntil":{"N":"5"},"ProcessID":{"N":"5"})",
                 "ProcessID");
}

BOOST_AUTO_TEST_CASE(leases_are_read_in_both_forms) {
  const std::pair<const char*, milliseconds> leases[] = {
      {"20s", 20s},
      {"1m30s", 90s},
      {"1.5s", 1500ms},
      {"500ms", 500ms},
      {"1h", 1h},
      {"1h2m3.5s", 3723500ms},
      {"2000000us", 2s},
      {"2000000\u00b5s", 2s},
      {"2000000\u03bcs", 2s},
      {"1500000000ns", 1500ms},
      {"+2s", 2s},
      {".5s", 500ms},
      {"2.s", 2s},
      {"1000", 1s},
      {"20000", 20s},
      {"1ns", 1ms},
      {"1000.0001ms", 1001ms}};
  for (const auto& [text, lease] : leases) {
    const auto read = lease_of(text);
    BOOST_TEST_REQUIRE(read.has_value(), text);
    BOOST_TEST(read->count() == lease.count(), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- What stands in a table ------------------------------------------------

namespace {

// A table as theirs, with one lock of theirs.
struct Site {
  Site(Layout the_layout, EngineKind kind)
      : layout(the_layout),
        engine(Engine::running(kind)),
        table(engine.create_table({{tests::key_of(layout)}})) {
    // Work that somebody may lease.
    if (layout == Layout::lease) {
      write(R"("LeaseUntil":{"N":"0"},"work":{"S":"w"})");
    }
  }
  ~Site() { engine.delete_table(table); }

  TableOptions table_options(const std::string& url = {}) const {
    TableOptions options = tests::table_options(engine);
    if (!url.empty()) options.endpoint = url;
    options.name = table;
    options.rows = tests::rows_of(layout);
    options.prefix.clear();
    if (layout == Layout::ddblock) options.calendar_margin = 2s;
    options.key = tests::key_of(layout);
    return options;
  }
  Options options(milliseconds ttl = 60s, const std::string& url = {}) const {
    return tests::on_table(std::make_shared<Table>(table_options(url)), ttl);
  }
  Rival rival() const {
    return Rival(layout, {table, "job"}, 60s,
                 [this](dynamodb::Action action, const std::string& body) {
                   return ask(action, body);
                 });
  }
  dynamodb::Answer ask(dynamodb::Action action, const std::string& body) const {
    using dynamodb::Action;
    const char* name = action == Action::get_item      ? "GetItem"
                       : action == Action::put_item    ? "PutItem"
                       : action == Action::update_item ? "UpdateItem"
                                                       : "DeleteItem";
    return dynamodb::read_answer(action, engine.call(name, body), {});
  }

  std::string about(const char* item_or_key) const {
    return R"({"TableName":")" + table + R"(",")" + item_or_key + R"(":{")" +
           tests::key_of(layout) + R"(":{"S":"job"})";
  }
  void write(const std::string& attributes) const {
    engine.must_call("PutItem", about("Item") + "," + attributes + "}}");
  }
  dynamodb::Item item() const {
    return ask(dynamodb::Action::get_item,
               about("Key") + R"(},"ConsistentRead":true})")
        .item.value_or(dynamodb::Item{});
  }
  std::string text(const char* name) const {
    const dynamodb::Item all = item();
    const auto* attribute = dynamodb::find(all, name);
    return attribute == nullptr ? "none" : attribute->value;
  }
  // "expiry:N identifier:S ", but for the key.
  std::string shape() const {
    std::map<std::string, char> types;
    for (const auto& attribute : item()) {
      types[attribute.name] =
          "SNB"[std::min(static_cast<int>(attribute.type), 2)];
    }
    types.erase(tests::key_of(layout));
    std::string text;
    for (const auto& [name, type] : types) text += name + ":" + type + " ";
    return text;
  }

  const Layout layout;
  Engine& engine;
  const std::string table;
};

// As their client leaves it.
std::string free_row(Layout layout) {
  switch (layout) {
    case Layout::lockclient:
      return R"("identifier":{"S":"gone"},"expiry":{"N":"0"})";
    case Layout::lease:
      return R"("LeaseUntil":{"N":"0"},"work":{"S":"w"})";
    default:
      return R"("ownerName":{"S":"gone"},"recordVersionNumber":{"S":"x"},)"
             R"("isReleased":{"S":"1"},"leaseDuration":)" +
             s(layout == Layout::awslabs ? "2000" : "2s");
  }
}

std::string shape_while_held(Layout layout) {
  switch (layout) {
    case Layout::lockclient:
      return "expiry:N identifier:S lease:N owner:S ";
    case Layout::lease:
      return "LeaseUntil:N ProcessID:S work:S ";
    default:
      return "leaseDuration:S ownerName:S recordVersionNumber:S ";
  }
}

std::string shape_once_released(Layout layout) {
  switch (layout) {
    case Layout::lease:
      return "LeaseUntil:N ProcessID:S work:S ";
    case Layout::dynamolock:
      return "isReleased:S leaseDuration:S ownerName:S recordVersionNumber:S ";
    default:
      return "";
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layouts_on_engines)

// Programs of ddblock read such a row, and replace it when its lease is over.
BOOST_DATA_TEST_CASE(row_that_says_that_a_host_waits_is_a_lock_to_ddblock,
                     kEngines, kind) {
  const Site site(Layout::ddblock, kind);
  Rival theirs = site.rival();
  const char* waiting = R"(,"waiting":{"S":"host:1"})";
  site.write(tests::live_record() + waiting);
  BOOST_TEST(!theirs.acquire());
  BOOST_TEST(theirs.complaint() == "");
  site.write(tests::record("x", tests::calendar() - 1h) + waiting);
  BOOST_TEST(theirs.acquire());
  BOOST_TEST(dynamodb::find(site.item(), "waiting") == nullptr);
  theirs.release();
}

BOOST_DATA_TEST_CASE(locks_of_ours_are_locks_to_them_and_theirs_to_us, kEngines,
                     kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      DdbMutex ours("job", site.options());
      Rival theirs = site.rival();
      for (int i = 0; i < 2; ++i) {
        ours.lock();
        BOOST_TEST(site.shape() == shape_while_held(layout));
        BOOST_TEST(!theirs.acquire());
        BOOST_TEST(theirs.complaint() == "");
        ours.renew();
        BOOST_TEST(!theirs.acquire());
        BOOST_TEST(site.shape() == shape_while_held(layout));
        ours.release();
        BOOST_TEST(site.shape() == shape_once_released(layout));
        BOOST_TEST_REQUIRE(theirs.acquire());
        BOOST_TEST(!ours.try_lock());
        BOOST_TEST(theirs.heartbeat());
        BOOST_TEST(!ours.try_lock());
        if (layout == Layout::lease) break;  // They give nothing back.
        BOOST_TEST(theirs.release());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_written_is_what_they_have) {
  for (const Layout layout : {Layout::dynamolock, Layout::awslabs}) {
    const bool is_go = layout == Layout::dynamolock;
    const Site site(layout, tests::any_engine_kind());
    Options options = site.options(20s);
    options.owner = "Ada";
    DdbMutex mutex("job", options);
    mutex.lock();
    // They wait for it and no 1 % longer, which is ours to allow for.
    BOOST_TEST(site.text("leaseDuration") == (is_go ? "20.203s" : "20203"));
    BOOST_TEST(site.text("ownerName") == "Ada");
    const std::string version = site.text("recordVersionNumber");
    BOOST_TEST(version.size() == 34u);
    BOOST_TEST(version.substr(32) == ":1");
    mutex.renew();
    const std::string renewed = site.text("recordVersionNumber");
    BOOST_TEST(renewed == version.substr(0, 33) + "2");
    mutex.release();
    if (!is_go) continue;
    // As they do: who released it can be told by the version.
    BOOST_TEST(site.text("recordVersionNumber") == renewed);
    BOOST_TEST(site.text("isReleased") == "1");
  }
}

// Our end and two seconds; what is told of it is without them.
BOOST_AUTO_TEST_CASE(stored_ends_have_the_margin_and_claims_have_not) {
  for (const Layout layout : {Layout::lockclient, Layout::ddblock}) {
    const Site site(layout, tests::any_engine_kind());
    TableOptions table = site.table_options();
    table.calendar_margin = 5000ms;
    DdbMutex mutex("job", tests::on_table(std::make_shared<Table>(table), 20s));
    const nanoseconds before = tests::calendar();
    mutex.lock();
    BOOST_TEST((mutex.remaining() <= 18750ms));
    BOOST_TEST((mutex.remaining() > 15s));
    const LockInfo info = Table(table).inspect("job");
    const nanoseconds end = info.expires - before;
    BOOST_TEST((end >= 24s));
    BOOST_TEST((end < 30s));
    if (layout == Layout::lockclient) {
      BOOST_TEST_REQUIRE(info.age.has_value());
      BOOST_TEST((*info.age < 5s));
    }
  }
}

BOOST_AUTO_TEST_CASE(row_that_is_not_understood_is_told_and_left_alone) {
  const std::pair<Layout, std::string> rows[] = {
      {Layout::dynamolock,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x:y"})"},
      {Layout::awslabs,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x:y"},)"
       R"("leaseDuration":{"S":"20"})"},
      {Layout::dynamolock,
       free_row(Layout::dynamolock) + R"(,"data":{"S":"d"})"},
      {Layout::awslabs,
       free_row(Layout::awslabs) + R"(,"isNonAcquirable":{"S":"1"})"},
      {Layout::awslabs, R"("note":{"S":"x"})"},
      {Layout::lockclient, R"("identifier":{"N":"1"},"expiry":{"N":"1"})"},
      {Layout::lease, R"("LeaseUntil":{"N":"1"},"ProcessID":{"N":"1"})"},
  };
  for (const auto& [layout, row] : rows) {
    BOOST_TEST_CONTEXT(tests::name_of(layout) << " " << row) {
      const Site site(layout, tests::any_engine_kind());
      site.write(row);
      const std::string before = site.shape();
      DdbMutex mutex("job", site.options());
      BOOST_TEST(thrown_by([&] { (void)mutex.try_lock(); }) ==
                 words(Errc::bad_record));
      BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::bad_record));
      BOOST_TEST(site.shape() == before);
      BOOST_TEST(site.text("recordVersionNumber").size() < 5u);
    }
  }
}

// A take that comes when its lock was long released does not take it again.
BOOST_AUTO_TEST_CASE(late_take_takes_no_row_that_its_call_has_released) {
  for (const Layout layout : {Layout::lease, Layout::dynamolock}) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, tests::any_engine_kind());
      Gate gate;
      Options options = site.options(60s, gate.server().url());
      options.request_timeout = 3s;
      DdbMutex ours("job", options);
      (void)site.options();
      gate.once("UpdateItem", Gate::held());
      ours.lock();
      ours.release();
      BOOST_TEST(site.shape() == shape_once_released(layout));
      gate.server().release();
      std::this_thread::sleep_for(300ms);
      BOOST_TEST(site.shape() == shape_once_released(layout));
      BOOST_TEST(site.rival().acquire());
    }
  }
}

// A take of awslabs replaces the row, unless data is to stay; one of dynamolock
// removes data alone.
BOOST_AUTO_TEST_CASE(take_of_ours_keeps_attributes_of_others_as_the_page_says) {
  struct Case {
    Layout layout;
    std::optional<bool> keep_data;
    bool attributes_stay, data_stays;
  };
  const Case cases[] = {{Layout::awslabs, {}, false, false},
                        {Layout::awslabs, false, false, false},
                        {Layout::awslabs, true, true, true},
                        {Layout::dynamolock, {}, true, true},
                        {Layout::dynamolock, false, true, false},
                        {Layout::dynamolock, true, true, true}};
  for (const Case& one : cases) {
    BOOST_TEST_CONTEXT(tests::name_of(one.layout)
                       << (!one.keep_data   ? ""
                           : *one.keep_data ? " keep_data"
                                            : " !keep_data")) {
      const Site site(one.layout, tests::any_engine_kind());
      site.write(free_row(one.layout) +
                 R"(,"data":{"B":"ZDM="},"color":{"S":"red"})");
      Options options = site.options();
      options.keep_row = true;
      options.keep_data = one.keep_data;
      DdbMutex mutex("job", options);
      const std::string color = one.attributes_stay ? "red" : "none";
      const std::string data = one.data_stays ? "ZDM=" : "none";
      const auto check = [&] {
        BOOST_TEST(site.text("color") == color);
        BOOST_TEST(site.text("data") == data);
      };
      mutex.lock();
      check();
      mutex.renew();
      check();
      mutex.release();
      check();
      BOOST_TEST(site.text("isReleased") == "1");
    }
  }
}

BOOST_AUTO_TEST_CASE(lease_is_written_in_the_form_that_the_row_has) {
  const Site site(Layout::dynamolock, tests::any_engine_kind());
  TableOptions table = site.table_options();
  table.rows = &ddbmutex::layouts::dynamolock_as_found;
  DdbMutex mutex("job", tests::on_table(std::make_shared<Table>(table), 20s));
  mutex.lock();  // There is no row.
  BOOST_TEST(site.text("leaseDuration") == "20.203s");
  mutex.release();
  for (const char* found : {"2000", "2s"}) {
    site.write(R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x"},)"
               R"("isReleased":{"S":"1"},"leaseDuration":)" +
               s(found));
    mutex.lock();
    BOOST_TEST(site.text("leaseDuration") ==
               (found[1] == 's' ? "20.203s" : "20203"));
    mutex.release();
  }
}

// Each request takes more than half of request_timeout.  The Table knows its
// key and the time.
BOOST_AUTO_TEST_CASE(try_lock_that_looks_first_has_the_time_of_two_requests) {
  const std::string wrong = tests::undisturbed(1s, []() -> std::string {
    std::atomic<bool> slow{false};
    tests::ScriptedServer server([&slow](const tests::SeenRequest&) {
      tests::Reply reply = tests::Reply::ok("{}");
      if (slow) reply.delay = 2400ms;
      return reply;
    });
    TableOptions table = tests::table_options(server);
    table.rows = &ddbmutex::layouts::awslabs_as_found;
    Options options =
        tests::on_table(tests::with_clock(tests::new_table(table)));
    options.request_timeout = 4s;
    DdbMutex mutex("x", options);
    mutex.lock();
    mutex.unlock();
    slow = true;
    std::error_code ec;
    const bool locked = mutex.try_lock(ec);
    slow = false;
    if (!locked) return ec ? ec.message() : "held by another";
    return "";
  });
  BOOST_TEST(wrong == "");
}

// Their programs do not know the attribute `waiting`.
BOOST_AUTO_TEST_CASE(waiter_that_misses_turns_says_nothing_to_others) {
  int looks = 0;
  tests::ScriptedServer server([&looks](const tests::SeenRequest& request) {
    if (tests::action_of(request) == "DeleteItem")
      return tests::Reply::ok("{}");
    if (++looks > 6) return tests::Reply::ok("{}");
    const std::string row = R"("identifier":{"S":")" + std::to_string(looks) +
                            R"("},"lease":{"N":"3600000"},"expiry":{"N":")" +
                            std::to_string((tests::calendar() + 1h).count()) +
                            "\"}";
    return tests::action_of(request) == "GetItem" ? tests::found(row)
                                                  : tests::refusal(row);
  });
  TableOptions table = tests::table_options(server);
  table.rows = &ddbmutex::layouts::lockclient;
  Options options = tests::on_table(tests::with_clock(tests::new_table(table)));
  options.auto_renew = false;
  options.first_poll = options.longest_poll = 1ms;
  DdbMutex mutex("x", options);
  mutex.lock();
  mutex.unlock();
  BOOST_TEST(looks > 6);
  BOOST_TEST(tests::count_of(server, "UpdateItem") == 0);
  BOOST_TEST(!tests::has(server.requests().back().body, "UPDATED_OLD"));
}

namespace {

// A lock that is held, as their client writes it, on a row that is work.
std::string held_row(Layout layout) {
  const std::string end =
      R"({"N":")" + std::to_string((tests::calendar() + 1h).count()) + "\"}";
  const std::string work =
      R"(,"colour":{"S":"red"},"steps":{"L":[{"N":"1"},{"M":{}}]})";
  switch (layout) {
    case Layout::lockclient:
      return R"("identifier":{"S":"them"},"expiry":)" + end + work;
    case Layout::lease:
      return R"("ProcessID":{"S":"them"},"LeaseUntil":)" + end + work;
    default:
      return versioned(s(layout == Layout::awslabs ? "60000" : "60s")) +
             R"(,"data":{"B":"ZDM="})" + work;
  }
}

// All that stands there but the key, by name, as JSON.
std::map<std::string, std::string> attributes_of(const Site& site) {
  std::map<std::string, std::string> all;
  for (const auto& attribute : site.item()) {
    sigv4::Text text;
    sigv4::JsonWriter json(text);
    dynamodb::write_value(json, attribute);
    all[attribute.name] = text.take();
  }
  all.erase(tests::key_of(site.layout));
  return all;
}

// "expiry", and what it is once the lock is free.
std::pair<const char*, const char*> mark_of_free(Layout layout) {
  switch (layout) {
    case Layout::lockclient:
      return {"expiry", "0"};
    case Layout::lease:
      return {"LeaseUntil", "0"};
    default:
      return {"isReleased", "1"};
  }
}

}  // namespace

// Whoever holds it, and whether or not he would have kept the row: it may be
// work, and nothing in it says so.
BOOST_AUTO_TEST_CASE(forced_release_marks_the_row_free_and_deletes_nothing) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, tests::any_engine_kind());
      site.write(held_row(layout));
      auto expected = attributes_of(site);
      const auto [mark, free] = mark_of_free(layout);
      BOOST_TEST(site.text(mark) != free);
      Table table(site.table_options());
      BOOST_TEST(force_unlock(table, table.inspect("job")));
      BOOST_TEST(site.text(mark) == free);
      auto left = attributes_of(site);
      expected.erase(mark);
      left.erase(mark);
      BOOST_TEST((left == expected));
      BOOST_TEST(table.inspect("job").released);
      // To them, and to us.
      BOOST_TEST(site.rival().acquire());
      site.write(held_row(layout));
      BOOST_TEST(force_unlock(table, table.inspect("job")));
      BOOST_TEST(DdbMutex("job", site.options()).try_lock());
    }
  }
}

BOOST_AUTO_TEST_CASE(row_of_work_must_be_there) {
  const Site site(Layout::lease, tests::any_engine_kind());
  DdbMutex mutex("nothing", site.options());
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::no_row));
}

BOOST_AUTO_TEST_SUITE_END()

// --- Options ---------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(row_options)

namespace {

std::string refused(const TableOptions& table) {
  const auto error = error_of([&] { Table made(table); });
  return error ? error->field() : "none";
}

std::string refused(const TableOptions& table, Options options) {
  options.table = std::make_shared<Table>(table);
  const auto error = error_of([&] { DdbMutex made("job", options); });
  return error ? error->field() : "none";
}

TableOptions somewhere(Layout layout) {
  TableOptions table = tests::table_options("http://127.0.0.1:1");
  table.rows = tests::rows_of(layout);
  return table;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_layout_cannot_have_is_refused_by_name) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const bool versions =
          layout == Layout::dynamolock || layout == Layout::awslabs;
      TableOptions table = somewhere(layout);
      BOOST_TEST(refused(table) == "none");
      BOOST_TEST(refused(table, {}) == "none");
      Options options;
      options.keep_row = true;
      BOOST_TEST(refused(table, options) == "none");
      options.fencing = true;
      BOOST_TEST(refused(table, options) == "fencing");
      options = {};
      options.keep_row = false;
      BOOST_TEST(refused(table, options) ==
                 (layout == Layout::lease ? "keep_row" : "none"));
      options = {};
      options.ttl = 999ms;
      BOOST_TEST(refused(table, options) == (versions ? "ttl" : "none"));
      table.calendar_margin = 1s;
      BOOST_TEST(refused(table) == (versions ? "calendar_margin" : "none"));
    }
  }
  TableOptions table = somewhere(Layout::ddblock);
  for (const milliseconds margin : {-1ms, milliseconds(24h) + 1ms}) {
    table.calendar_margin = margin;
    BOOST_TEST(refused(table) == "calendar_margin");
  }
}

// Others would find a lease that is over for none of their clocks.
BOOST_AUTO_TEST_CASE(engine_without_a_date_is_refused_where_calendars_count) {
  tests::ScriptedServer server([](const tests::SeenRequest&) {
    return tests::with_header(tests::Reply::ok("{}"), "Date", "");
  });
  const auto error_with = [&](Layout layout, std::optional<milliseconds> m) {
    TableOptions table = tests::table_options(server);
    table.rows = tests::rows_of(layout);
    table.calendar_margin = m;
    DdbMutex mutex("job", tests::on_table(std::make_shared<Table>(table)));
    return thrown_by([&] { mutex.lock(); });
  };
  const std::string no = words(Errc::not_supported);
  BOOST_TEST(error_with(Layout::lockclient, {}) == no);
  BOOST_TEST(error_with(Layout::lockclient, 0ms) == no);
  BOOST_TEST(error_with(Layout::lease, {}) == no);
  BOOST_TEST(error_with(Layout::ddblock, 2s) == no);
  BOOST_TEST(tests::count_of(server, "PutItem") == 0);
  BOOST_TEST(tests::count_of(server, "UpdateItem") == 0);
  BOOST_TEST(error_with(Layout::ddblock, {}) == "none");
  BOOST_TEST(error_with(Layout::awslabs, {}) == "none");
}

BOOST_AUTO_TEST_SUITE_END()
