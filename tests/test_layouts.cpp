// Tables that are shared with other libraries' programs: their rows, as real
// clients were seen to write them, are read as they mean them; our requests
// leave rows that they understand; and what is not understood is left alone.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex/any_of.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/layout_options.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/rival.hpp"
#include "tests/support/waiting.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using tests::Engine;
using tests::EngineKind;
using tests::error_of;
using tests::eventually;
using tests::Gate;
using tests::Rival;
using tests::thrown_by;
using tests::words;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());
constexpr Layout kShared[] = {Layout::lockclient, Layout::lease,
                              Layout::dynamolock, Layout::awslabs};

TableOptions with_layout(Layout layout) {
  TableOptions options;
  options.layout = layout;
  return options;
}

// --- Rows as text ----------------------------------------------------------

dynamodb::Item item_in(const std::string& json) {
  const dynamodb::Document document("{" + json + "}");
  dynamodb::Item item;
  BOOST_TEST_REQUIRE(dynamodb::read_item(document.root(), item), json);
  return item;
}

Row read(Layout layout, const std::string& json) {
  return lock::read_row(item_in(json),
                        *detail::find_layout(with_layout(layout)));
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

BOOST_AUTO_TEST_CASE(rows_are_read_as_their_clients_write_them) {
  Row row =
      read(Layout::lockclient,
           R"("expiry":{"N":"1795312232393728748"},"key":{"S":"job"},)"
           R"("identifier":{"S":"667665c3-7add-42ef-8a04-d2de49399847"})");
  BOOST_TEST((row.kind == Row::Kind::record));
  BOOST_TEST(row.uuid == "667665c3-7add-42ef-8a04-d2de49399847");
  BOOST_TEST(row.expires.count() == 1795312232393728748);
  BOOST_TEST(!row.lease.has_value());  // By the calendar alone.

  row = read(Layout::lease,
             R"("LeaseUntil":{"N":"1795312244970848767"},"work":{"S":"w"},)"
             R"("LockHashKeyName":{"S":"job"},"ProcessID":{"S":"A"})");
  BOOST_TEST((row.kind == Row::Kind::record));
  BOOST_TEST(row.uuid == "A");
  BOOST_TEST(row.expires.count() == 1795312244970848767);
  BOOST_TEST(!row.lease.has_value());
  BOOST_TEST(row.others.size() == 2u);

  row = read(Layout::dynamolock, versioned(s("2s")));
  BOOST_TEST((row.kind == Row::Kind::record));
  BOOST_TEST(row.uuid == "1795312195981415835:WZ5A4XSX");
  BOOST_TEST((row.expires == lock::kBeyondAllClocks));
  BOOST_TEST((row.lease == 2000ms));
  BOOST_TEST(row.owner == "owner-a");

  row = read(Layout::awslabs,
             versioned(s("2000"), s("1c75952b-8210-49ee-a5ad-9bfdc132b13c")) +
                 R"(,"isReleased":{"S":"1"},"data":{"B":"ZDM="})");
  BOOST_TEST((row.kind == Row::Kind::record));
  BOOST_TEST(row.uuid == "1c75952b-8210-49ee-a5ad-9bfdc132b13c");
  BOOST_TEST((row.expires == lock::ServiceTime::zero()));
  BOOST_TEST((row.lease == 2000ms));
}

// Work that is there for whoever comes first.
BOOST_AUTO_TEST_CASE(work_that_nobody_has_leased_yet_is_free) {
  const Row row =
      read(Layout::lease, R"("work":{"S":"w"},"LeaseUntil":{"N":"0"})");
  BOOST_TEST((row.kind == Row::Kind::record));
  BOOST_TEST(row.uuid == "");
  BOOST_TEST((row.expires == lock::ServiceTime::zero()));
}

// Each of these makes some client take a lock that is held.
BOOST_AUTO_TEST_CASE(what_makes_others_steal_is_not_understood) {
  const std::string no_lease = R"("key":{"S":"job"},"ownerName":{"S":"h"},)"
                               R"("recordVersionNumber":{"S":"x:y"})";
  for (const Layout layout : {Layout::dynamolock, Layout::awslabs}) {
    expect_unknown(layout, no_lease, "leaseDuration is missing");
    expect_unknown(layout, versioned(R"({"N":"2000"})"),
                   "leaseDuration is not a string");
    expect_unknown(layout, versioned(R"({"N":"1795312244"})"),
                   "leaseDuration is not a string");
    expect_unknown(layout, versioned(s("20")), "too short for milliseconds");
    expect_unknown(layout, versioned(s("999")), "too short for milliseconds");
    for (const char* text : {"",
                             "0",
                             "0s",
                             "-2s",
                             "s",
                             ".s",
                             "2",
                             "1.2.3s",
                             "2 s",
                             "2S",
                             "2000ms ",
                             "2sx",
                             "1e3s",
                             "0x10",
                             "9999999999999",
                             "99999h",
                             "2s-1s",
                             "+",
                             "0.0ms",
                             "99999999999999999999999999999999999999999999"}) {
      const Row row = read(layout, versioned(s(text)));
      BOOST_TEST((row.kind == Row::Kind::unknown), text);
      BOOST_TEST(tests::has(row.problem, "leaseDuration"), text);
      BOOST_TEST(!row.lease.has_value(), text);
    }
    expect_unknown(layout, versioned(s("2s"), R"({"N":"7"})"),
                   "recordVersionNumber");
    expect_unknown(layout, versioned(s("2s"), s("")), "recordVersionNumber");
    expect_unknown(layout, versioned(s("2s"), s(std::string(1025, 'x'))),
                   "recordVersionNumber");
    expect_unknown(layout,
                   R"("leaseDuration":{"S":"2s"},)"
                   R"("recordVersionNumber":{"S":"x"})",
                   "ownerName");
    expect_unknown(layout, versioned(s("2s")) + R"(,"isReleased":{"S":"0"})",
                   "isReleased");
    expect_unknown(layout, versioned(s("2s")) + R"(,"isReleased":{"N":"1"})",
                   "isReleased");
    expect_unknown(layout, versioned(s("2000")) + R"(,"data":{"S":"text"})",
                   "data");
    expect_unknown(layout,
                   versioned(s("2000")) + R"(,"isNonAcquirable":{"S":"1"})",
                   "isNonAcquirable");
    expect_unknown(layout, R"("key":{"S":"job"},"note":{"S":"x"})",
                   "recordVersionNumber");
  }
  const char* ids[] = {R"("identifier":{"S":"a"})", R"("ProcessID":{"S":"a"})"};
  const char* ends[] = {"expiry", "LeaseUntil"};
  for (int i = 0; i < 2; ++i) {
    const Layout layout = kShared[i];
    const std::string end = std::string(R"(,")") + ends[i] + R"(":)";
    expect_unknown(layout, ids[i], ends[i]);
    for (const char* bad : {R"({"S":"1795312244970848767"})", R"({"N":"-1"})",
                            R"({"N":"1.5"})", R"({"N":"9223372036854775808"})",
                            R"({"N":"99999999999999999999"})"}) {
      expect_unknown(layout, ids[i] + end + bad, ends[i]);
    }
  }
  expect_unknown(Layout::lockclient, R"("expiry":{"N":"5"})", "identifier");
  expect_unknown(Layout::lockclient,
                 R"("expiry":{"N":"5"},"identifier":{"N":"5"})", "identifier");
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

// A `lease` would stay where another takes the lock, and tell of ours.
BOOST_AUTO_TEST_CASE(no_lease_is_believed_where_it_may_be_of_another) {
  const Row row =
      read(Layout::lease, R"("LeaseUntil":{"N":"1795312244970848767"},)"
                          R"("ProcessID":{"S":"A"},"lease":{"N":"100"})");
  BOOST_TEST((row.kind == Row::Kind::record));
  BOOST_TEST(!row.lease.has_value());
}

BOOST_AUTO_TEST_CASE(versions_of_ours_are_a_uuid_and_a_number) {
  const std::string uuid = lock::fresh_uuid();
  const auto version_of = [](const std::string& text) {
    return read(Layout::awslabs, versioned(s("2000"), s(text)));
  };
  BOOST_TEST(version_of(uuid + ":12").uuid == uuid);
  BOOST_TEST((version_of(uuid + ":12").expires ==
              lock::kBeyondAllClocks + nanoseconds(12)));
  for (const std::string& other :
       {uuid, uuid + ":", uuid + ":0", uuid + ":07", uuid + ":1x", uuid + ":-1",
        uuid + ":1234567890123456", "g" + uuid.substr(1) + ":1",
        uuid.substr(1) + ":1", uuid + "a:1"}) {
    BOOST_TEST(version_of(other).uuid == other);
    BOOST_TEST((version_of(other).expires == lock::kBeyondAllClocks));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- What stands in a table ------------------------------------------------

namespace {

// A lock of such a table; with a sort key, the part of it.
struct Lock {
  std::string name = "job", part{};
};

// A table as theirs, with one lock of theirs.
struct Site {
  Site(Layout the_layout, EngineKind kind, const std::string& the_sort_key = {})
      : layout(the_layout),
        engine(Engine::running(kind)),
        sort_key(the_sort_key),
        table(made()) {
    if (layout == Layout::lease && sort_key.empty()) make_work({});
  }
  ~Site() { engine.delete_table(table); }

  TableOptions table_options(const std::string& url = {}) const {
    TableOptions options = tests::table_options(engine);
    if (!url.empty()) options.endpoint = url;
    options.name = table;
    options.layout = layout;
    options.prefix.clear();
    if (layout == Layout::ddblock) options.calendar_margin = 2s;
    options.key = tests::key_of(layout);
    options.sort_key = sort_key;
    return options;
  }
  Options options(milliseconds ttl = 60s, const std::string& url = {}) const {
    return tests::on_table(std::make_shared<Table>(table_options(url)), ttl);
  }
  Rival rival(milliseconds ttl = 60s, const Lock& lock = {},
              milliseconds calendar_ahead = {}) const {
    return Rival(
        layout, {table, lock.name}, ttl,
        [this](dynamodb::Action action, const std::string& body) {
          return ask(action, body);
        },
        calendar_ahead);
  }
  dynamodb::Answer ask(dynamodb::Action action, const std::string& body) const {
    using dynamodb::Action;
    const char* name = action == Action::get_item      ? "GetItem"
                       : action == Action::put_item    ? "PutItem"
                       : action == Action::update_item ? "UpdateItem"
                                                       : "DeleteItem";
    return dynamodb::read_answer(action, engine.call(name, body), {});
  }

  std::string about(const char* item_or_key, const Lock& lock = {}) const {
    const std::string part = R"(,")" + sort_key + R"(":)" + s(lock.part);
    return R"({"TableName":")" + table + R"(",")" + item_or_key + R"(":{")" +
           tests::key_of(layout) + R"(":)" + s(lock.name) +
           (sort_key.empty() ? "" : part);
  }
  void write(const std::string& attributes, const Lock& lock = {}) const {
    engine.must_call("PutItem", about("Item", lock) + "," + attributes + "}}");
  }
  // That somebody may lease.
  void make_work(const Lock& lock) const {
    write(R"("LeaseUntil":{"N":"0"},"work":{"S":"w"})", lock);
  }
  void remove(const Lock& lock = {}) const {
    engine.must_call("DeleteItem", about("Key", lock) + "}}");
  }
  dynamodb::Item item(const Lock& lock = {}) const {
    return ask(dynamodb::Action::get_item,
               about("Key", lock) + R"(},"ConsistentRead":true})")
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
  const std::string sort_key;
  const std::string table;

 private:
  std::string made() const {
    tests::TableKey key = {{tests::key_of(layout)}};
    if (!sort_key.empty()) key.push_back({sort_key});
    return engine.create_table(key);
  }
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
    Table table(site.table_options());
    const LockInfo info = table.inspect("job");
    BOOST_TEST(info.exists);
    BOOST_TEST(info.uuid == version.substr(0, 32));
    BOOST_TEST(info.owner == "Ada");
    BOOST_TEST(!info.age.has_value());
    mutex.release();
    if (!is_go) continue;
    // As they do: who released it can be told by the version.
    BOOST_TEST(site.text("recordVersionNumber") == renewed);
    BOOST_TEST(site.text("isReleased") == "1");
    BOOST_TEST(table.inspect("job").released);
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

BOOST_DATA_TEST_CASE(dead_holders_are_followed_by_either_side, kEngines, kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      Options options = site.options(1s);
      options.request_timeout = 450ms;
      DdbMutex ours("job", options);
      Rival dead = site.rival(1s);
      BOOST_TEST_REQUIRE(dead.acquire());
      const BootTime since = BootClock::now();
      ours.lock();
      const auto waited = BootClock::now() - since;
      BOOST_TEST((waited > 990ms));
      BOOST_TEST((waited < 30s));
      BOOST_TEST_MESSAGE(tests::name_of(layout)
                         << ": in after " << waited / 1ms << " ms");
      // Now ours stops renewing; nobody gets in while it claims.
      ours.release();
      options.auto_renew = false;
      DdbMutex lapsing("job", options);
      lapsing.lock();
      Rival theirs = site.rival(1s);
      BOOST_TEST(eventually([&] { return theirs.acquire(); }));
      BOOST_TEST(!lapsing.owns_lock());
    }
  }
}

BOOST_DATA_TEST_CASE(row_that_is_not_understood_is_told_and_left_alone,
                     kEngines, kind) {
  const std::pair<Layout, std::string> rows[] = {
      {Layout::dynamolock,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x:y"})"},
      {Layout::dynamolock,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x:y"},)"
       R"("leaseDuration":{"N":"2000"})"},
      {Layout::awslabs,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x:y"},)"
       R"("leaseDuration":{"S":"20"})"},
      {Layout::awslabs,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x:y"},)"
       R"("leaseDuration":{"S":"2000"},"isReleased":{"S":"yes"})"},
      {Layout::dynamolock,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"N":"7"},)"
       R"("leaseDuration":{"S":"2s"},"isReleased":{"S":"1"})"},
      {Layout::dynamolock,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x"},)"
       R"("leaseDuration":{"S":"2s"},"isReleased":{"S":"1"},"data":{"S":"d"})"},
      {Layout::awslabs,
       R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x"},)"
       R"("leaseDuration":{"S":"2000"},"isReleased":{"S":"1"},)"
       R"("isNonAcquirable":{"S":"1"})"},
      {Layout::awslabs, R"("note":{"S":"x"})"},
      {Layout::lockclient, R"("identifier":{"S":"a"})"},
      {Layout::lockclient, R"("identifier":{"N":"1"},"expiry":{"N":"1"})"},
      {Layout::lockclient,
       R"("identifier":{"S":"a"},"expiry":{"N":"1"},"lease":{"S":"1"})"},
      {Layout::lease, R"("work":{"S":"w"})"},
      {Layout::lease, R"("LeaseUntil":{"S":"0"})"},
      {Layout::lease, R"("LeaseUntil":{"N":"1"},"ProcessID":{"N":"1"})"},
  };
  for (const auto& [layout, row] : rows) {
    BOOST_TEST_CONTEXT(tests::name_of(layout) << " " << row) {
      const Site site(layout, kind);
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

BOOST_DATA_TEST_CASE(lost_answers_are_recognised, kEngines, kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      Gate gate(kind);
      Options options = site.options(60s, gate.server().url());
      options.request_timeout = 20s;
      int lost = 0;
      options.on_lost = [&](Loss) { ++lost; };
      DdbMutex ours("job", options);
      const bool updates =
          layout == Layout::lease || layout == Layout::dynamolock;
      const char* take = updates ? "UpdateItem" : "PutItem";
      const char* give = updates ? "UpdateItem" : "DeleteItem";
      gate.once(take, Gate::answer_lost());
      ours.lock();
      BOOST_TEST(ours.owns_lock());
      Rival theirs = site.rival();
      BOOST_TEST(!theirs.acquire());
      gate.once("UpdateItem", Gate::answer_lost());
      ours.renew();
      BOOST_TEST(!theirs.acquire());
      gate.once(give, Gate::answer_lost());
      ours.release();
      BOOST_TEST(theirs.acquire());
      BOOST_TEST(lost == 0);
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
      options.request_timeout = 500ms;
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

BOOST_AUTO_TEST_CASE(attributes_of_before_are_merged_or_replaced_as_theirs) {
  for (const Layout layout : {Layout::dynamolock, Layout::awslabs}) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, tests::any_engine_kind());
      site.write(R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x"},)"
                 R"("leaseDuration":{"S":"2s"},"isReleased":{"S":"1"},)"
                 R"("data":{"B":"ZDM="},"color":{"S":"v"})");
      Options options = site.options();
      options.keep_row = true;
      options.attributes = {{"size", Attribute::Type::string, "v", {}}};
      DdbMutex mutex("job", options);
      mutex.lock();
      const bool merges = layout == Layout::dynamolock;
      BOOST_TEST(site.text("color") == (merges ? "v" : "none"));
      BOOST_TEST(site.text("data") == (merges ? "ZDM=" : "none"));
      BOOST_TEST(site.text("size") == "v");
      BOOST_TEST(site.text("isReleased") == "none");
      BOOST_TEST(mutex.data().value_or("none") == (merges ? "d3" : "none"));
      mutex.release(Changes{"d4", {}, {"size"}});
      BOOST_TEST(site.text("data") == "ZDQ=");
      BOOST_TEST(site.text("size") == "none");
      BOOST_TEST(site.text("isReleased") == "1");
      options.keep_row = false;
      options.keep_data = false;
      DdbMutex next("job", options);
      next.lock();
      BOOST_TEST(next.data().value_or("none") == "none");
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

// What stands with a kept row of ours, once one of theirs takes the lock.
BOOST_AUTO_TEST_CASE(take_of_theirs_erases_or_leaves_what_the_page_says) {
  const std::pair<Layout, bool> layouts[] = {{Layout::ddblock, false},
                                             {Layout::lockclient, false},
                                             {Layout::lease, true},
                                             {Layout::dynamolock, true},
                                             {Layout::awslabs, false}};
  for (const auto& [layout, stays] : layouts) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, tests::any_engine_kind());
      Options options = site.options();
      options.keep_row = true;
      options.data = "d3";
      options.attributes = {{"size", Attribute::Type::number, "5", {}}};
      DdbMutex ours("job", options);
      ours.lock();
      ours.release();
      BOOST_TEST(site.text("size") == "5");
      BOOST_TEST(site.text("data") == "ZDM=");
      Rival theirs = site.rival();
      BOOST_TEST_REQUIRE(theirs.acquire());
      BOOST_TEST(site.text("size") == (stays ? "5" : "none"));
      BOOST_TEST(site.text("data") == (stays ? "ZDM=" : "none"));
    }
  }
}

// Of theirs that judge by their own clocks: one that is ahead takes the lock
// of another once the two differ by more than remains of the lease when it is
// renewed.  Once the thief has given it back, it is free to ours too, though
// the victim still counts on its lease.  (The thief's clock here is what it
// will be when the victim is about to renew.)
BOOST_AUTO_TEST_CASE(clocks_of_theirs_may_differ_by_what_remains_at_a_renewal) {
  constexpr milliseconds kLease = 10min, kPeriod = 5min;
  constexpr milliseconds kRemaining = kLease - kPeriod;
  for (const Layout layout :
       {Layout::ddblock, Layout::lockclient, Layout::lease}) {
    for (const milliseconds apart : {kRemaining - 100s, kRemaining + 100s}) {
      BOOST_TEST_CONTEXT(tests::name_of(layout) << " " << apart.count()) {
        const Site site(layout, tests::any_engine_kind());
        Rival victim = site.rival(kLease);
        Rival thief = site.rival(kLease, {}, apart + kPeriod);
        BOOST_TEST_REQUIRE(victim.acquire());
        BOOST_TEST(thief.acquire() == (apart > kRemaining));
        DdbMutex ours("job", site.options());
        BOOST_TEST(!ours.try_lock());
        if (apart < kRemaining || layout == Layout::lease) continue;
        BOOST_TEST(thief.release());
        BOOST_TEST(ours.try_lock());
        BOOST_TEST(victim.holds());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(lease_is_written_in_the_form_that_the_row_has) {
  const Site site(Layout::dynamolock, tests::any_engine_kind());
  TableOptions table = site.table_options();
  table.lease_as_found = true;
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

BOOST_AUTO_TEST_CASE(lock_is_freed_by_force_as_it_was_inspected) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, tests::any_engine_kind());
      DdbMutex mutex("job", site.options());
      Table table(site.table_options());
      mutex.lock();
      const LockInfo before = table.inspect("job");
      mutex.renew();
      BOOST_TEST(!table.force_unlock(before));
      int listed = 0;
      table.list([&](const LockInfo& info) {
        listed += info.name == "job" && info.problem.empty() &&
                  info.uuid == before.uuid;
        return true;
      });
      BOOST_TEST(listed == 1);
      BOOST_TEST(table.force_unlock(table.inspect("job")));
      BOOST_TEST(site.rival().acquire());
      BOOST_TEST(thrown_by([&] { mutex.renew(); }) == words(Errc::lease_lost));
    }
  }
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
std::map<std::string, std::string> attributes_of(const Site& site,
                                                 const Lock& lock) {
  std::map<std::string, std::string> all;
  for (const auto& attribute : site.item(lock)) {
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
BOOST_DATA_TEST_CASE(forced_release_marks_the_row_free_and_deletes_nothing,
                     kEngines, kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      site.write(held_row(layout));
      auto expected = attributes_of(site, {});
      const auto [mark, free] = mark_of_free(layout);
      BOOST_TEST(site.text(mark) != free);
      Table table(site.table_options());
      BOOST_TEST(table.force_unlock(table.inspect("job")));
      BOOST_TEST(site.text(mark) == free);
      auto left = attributes_of(site, {});
      expected.erase(mark);
      left.erase(mark);
      BOOST_TEST((left == expected));
      BOOST_TEST(table.inspect("job").released);
      // To them, and to us.
      BOOST_TEST(site.rival().acquire());
      site.write(held_row(layout));
      BOOST_TEST(table.force_unlock(table.inspect("job")));
      BOOST_TEST(DdbMutex("job", site.options()).try_lock());
    }
  }
}

BOOST_DATA_TEST_CASE(forced_release_leaves_what_a_holder_that_keeps_it_leaves,
                     kEngines, kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      if (layout == Layout::lease) site.make_work({"other"});
      Options options = site.options();
      options.keep_row = true;
      options.data = "state";
      options.attributes = {{"size", Attribute::Type::number, "5", {}}};
      DdbMutex released("job", options);
      DdbMutex forced("other", options);
      released.lock();
      forced.lock();
      Table table(site.table_options());
      released.release();
      BOOST_TEST(table.force_unlock(table.inspect("other")));
      auto expected = attributes_of(site, {});
      auto left = attributes_of(site, {"other"});
      // What proves who had it is of each lock alone.
      for (const char* proof :
           {"identifier", "ProcessID", "recordVersionNumber"}) {
        expected.erase(proof);
        left.erase(proof);
      }
      BOOST_TEST(expected.count("size") == 1u);
      BOOST_TEST((left == expected));
      // The loser is told, and changes nothing any more.
      BOOST_TEST(thrown_by([&] { forced.renew(); }) == words(Errc::lease_lost));
      const auto before = attributes_of(site, {"other"});
      forced.unlock();
      BOOST_TEST((attributes_of(site, {"other"}) == before));
    }
  }
}

BOOST_DATA_TEST_CASE(forced_release_frees_exactly_the_version_that_was_seen,
                     kEngines, kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      Table table(site.table_options());
      Rival theirs = site.rival();
      BOOST_TEST_REQUIRE(theirs.acquire());
      const LockInfo seen = table.inspect("job");
      BOOST_TEST(theirs.heartbeat());
      const auto held = attributes_of(site, {});
      BOOST_TEST(!table.force_unlock(seen));
      BOOST_TEST((attributes_of(site, {}) == held));
      // Nor is a row made where there is none any more.
      site.remove();
      BOOST_TEST(!table.force_unlock(seen));
      BOOST_TEST(attributes_of(site, {}).empty());
    }
  }
}

// What the header says of programs of other libraries.
BOOST_AUTO_TEST_CASE(client_of_another_library_hears_late_of_a_forced_release) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, tests::any_engine_kind());
      Table table(site.table_options());
      Rival theirs = site.rival();
      BOOST_TEST_REQUIRE(theirs.acquire());
      BOOST_TEST(table.force_unlock(table.inspect("job")));
      DdbMutex ours("job", site.options());
      BOOST_TEST(theirs.heartbeat());
      const bool retaken =
          layout == Layout::lockclient || layout == Layout::lease;
      BOOST_TEST(table.inspect("job").released == !retaken);
      if (retaken) {
        BOOST_TEST(!ours.try_lock());
        BOOST_TEST(table.force_unlock(table.inspect("job")));
      }
      BOOST_TEST(ours.try_lock());
      BOOST_TEST(!theirs.heartbeat());
      BOOST_TEST(ours.owns_lock());
      ours.renew();
    }
  }
}

// Whose answer is lost: applied, or not, and the holder has renewed since.
BOOST_DATA_TEST_CASE(forced_release_of_unknown_outcome_is_looked_for, kEngines,
                     kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      Gate gate(kind);
      Table table(site.table_options(gate.server().url()));
      site.write(held_row(layout));
      gate.once("UpdateItem", Gate::answer_lost());
      BOOST_TEST(table.force_unlock(table.inspect("job")));
      BOOST_TEST(table.inspect("job").released);
      BOOST_TEST(site.text("colour") == "red");
      BOOST_TEST(tests::count_of(gate.server(), "DeleteItem") == 0);

      site.remove();
      if (layout == Layout::lease) site.make_work({});
      Rival theirs = site.rival();
      BOOST_TEST_REQUIRE(theirs.acquire());
      const LockInfo seen = table.inspect("job");
      gate.once("UpdateItem", [&theirs](Engine&, const tests::SeenRequest&) {
        theirs.heartbeat();
        return tests::Reply::gone(tests::Ending::reset);
      });
      BOOST_TEST(!table.force_unlock(seen));
      BOOST_TEST(!table.inspect("job").released);
    }
  }
}

namespace {

std::unique_ptr<DdbMutex> part_of(const Site& site, const char* part) {
  Options options = site.options();
  options.sort_value = part;
  return std::make_unique<DdbMutex>("job", options);
}

}  // namespace

BOOST_DATA_TEST_CASE(sort_keys_tell_locks_of_one_name_apart, kEngines, kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind, "part");
      if (layout == Layout::lease) {
        site.make_work({"job", "a"});
        site.make_work({"job", "b"});
      }
      const auto a = part_of(site, "a"), b = part_of(site, "b");
      a->lock();
      b->lock();
      a->renew();
      BOOST_TEST(!part_of(site, "a")->try_lock());
      Table table(site.table_options());
      std::map<std::string, std::string> held;
      table.list([&](const LockInfo& info) {
        BOOST_TEST(info.name == "job");
        BOOST_TEST(info.problem == "");
        held[info.sort_value] = info.uuid;
        return true;
      });
      BOOST_TEST(held.size() == 2u);
      BOOST_TEST(table.inspect("job", "a").uuid == held["a"]);
      BOOST_TEST(held["a"] != held["b"]);
      a->release();
      const LockInfo left = table.inspect("job", "a");
      BOOST_TEST((!left.exists || left.released));
      BOOST_TEST(table.inspect("job", "b").uuid == held["b"]);
      BOOST_TEST(part_of(site, "a")->try_lock());
      BOOST_TEST(table.force_unlock(table.inspect("job", "b")));
      BOOST_TEST(thrown_by([&] { b->renew(); }) == words(Errc::lease_lost));
      BOOST_TEST(part_of(site, "b")->try_lock());
    }
  }
}

BOOST_AUTO_TEST_CASE(guarded_write_asks_whether_the_row_is_ours) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, EngineKind::dynoxide);
      DdbMutex mutex("job", site.options());
      const std::string write = R"([{"Put":{"TableName":")" + site.table +
                                R"(","Item":{")" + tests::key_of(layout) +
                                R"(":{"S":"other"}}}}])";
      mutex.lock();
      mutex.renew();
      mutex.guarded_write(write);
      Table table(site.table_options());
      table.force_unlock(table.inspect("job"));
      BOOST_TEST(thrown_by([&] { mutex.guarded_write(write); }) ==
                 words(Errc::lease_lost));
    }
  }
}

BOOST_AUTO_TEST_CASE(row_of_work_must_be_there) {
  const Site site(Layout::lease, tests::any_engine_kind());
  DdbMutex mutex("nothing", site.options());
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::no_row));
}

BOOST_AUTO_TEST_SUITE_END()

// --- Any one of many, of rows that others share
// -------------------------------

namespace {

AnyOfOptions any_of(const Site& site) {
  AnyOfOptions options;
  options.each = site.options();
  options.each.request_timeout = 20s;
  options.prefix = "row-";
  options.first_pause = 10ms;
  options.longest_pause = 100ms;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layouts_any_of)

BOOST_DATA_TEST_CASE(rows_that_are_free_are_got_and_are_locks_to_them, kEngines,
                     kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      for (const char* name : {"row-a", "row-b", "row-held"}) {
        site.write(free_row(layout), {name});
      }
      site.write(R"("colour":{"S":"red"})", {"row-odd"});
      BOOST_TEST_REQUIRE(site.rival(60s, {"row-held"}).acquire());
      AnyOf any(any_of(site));
      const auto one = any.try_lock(), other = any.try_lock();
      BOOST_TEST_REQUIRE((one != nullptr && other != nullptr));
      BOOST_TEST((any.try_lock() == nullptr));
      BOOST_TEST(any.accepted().value() == 3u);  // The odd one is no lock.
      BOOST_TEST(one->name() != other->name());
      for (const auto* mutex : {&one, &other}) {
        const std::string name = (*mutex)->name();
        BOOST_TEST((name == "row-a" || name == "row-b"), name);
        (*mutex)->renew();
        Rival theirs = site.rival(60s, {name});
        BOOST_TEST(!theirs.acquire());
        (*mutex)->release();
        BOOST_TEST(theirs.acquire());
      }
      BOOST_TEST((any.try_lock() == nullptr));
    }
  }
}

// The rows are the work: freed by force, each is there for the next to do.
BOOST_DATA_TEST_CASE(row_that_is_freed_by_force_is_there_to_be_got_again,
                     kEngines, kind) {
  for (const Layout layout : kShared) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      const Lock row = {"row-a"};
      site.write(free_row(layout) + R"(,"colour":{"S":"red"})", row);
      AnyOfOptions options = any_of(site);
      options.each.keep_data = true;  // Of awslabs.
      AnyOf any(options), others(options);
      auto stuck = any.try_lock();
      BOOST_TEST_REQUIRE((stuck != nullptr));
      BOOST_TEST((others.try_lock() == nullptr));
      Table table(site.table_options());
      BOOST_TEST(table.force_unlock(table.inspect("row-a")));
      const auto next = others.try_lock();
      BOOST_TEST_REQUIRE((next != nullptr));
      BOOST_TEST(next->name() == "row-a");
      const dynamodb::Item item = site.item(row);
      const auto* colour = dynamodb::find(item, "colour");
      BOOST_TEST_REQUIRE(colour != nullptr);
      BOOST_TEST(colour->value == "red");
      stuck->unlock();
      BOOST_TEST(next->owns_lock());
      next->renew();
    }
  }
}

// At once, since they wait more than they work.
BOOST_AUTO_TEST_CASE(row_of_a_dead_client_is_got_after_its_lease) {
  std::vector<std::unique_ptr<Site>> sites;
  for (const Layout layout : kShared) {
    sites.push_back(std::make_unique<Site>(layout, tests::any_engine_kind()));
    sites.back()->write(free_row(layout), {"row-dead"});
    Rival dead = sites.back()->rival(1s, {"row-dead"});
    BOOST_TEST_REQUIRE(dead.acquire());
  }
  const BootTime since = BootClock::now();
  for (const auto& site : sites) {
    BOOST_TEST_CONTEXT(tests::name_of(site->layout)) {
      const auto got = AnyOf(any_of(*site)).lock();
      BOOST_TEST((BootClock::now() - since > 900ms));
      BOOST_TEST(got->name() == "row-dead");
      BOOST_TEST(!site->rival(60s, {"row-dead"}).acquire());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_options)

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
  table.layout = layout;
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
      table = somewhere(layout);
      table.lease_as_found = true;
      BOOST_TEST(refused(table) == (versions ? "none" : "lease_as_found"));
    }
  }
  TableOptions table = somewhere(Layout::ddblock);
  table.calendar_margin = -1ms;
  BOOST_TEST(refused(table) == "calendar_margin");
  table.calendar_margin = 24h + 1ms;
  BOOST_TEST(refused(table) == "calendar_margin");
  table.calendar_margin = 24h;
  BOOST_TEST(refused(table) == "none");
  table.lease_as_found = true;
  BOOST_TEST(refused(table) == "lease_as_found");
  table = somewhere(static_cast<Layout>(5));
  BOOST_TEST(refused(table) == "layout");
  Options options;
  options.fencing = true;
  BOOST_TEST(refused(somewhere(Layout::ddblock), options) == "fencing");
  options.keep_row = true;
  BOOST_TEST(refused(somewhere(Layout::ddblock), options) == "none");
}

BOOST_AUTO_TEST_CASE(attributes_of_a_layout_are_none_of_the_users) {
  const std::pair<Layout, const char*> names[] = {
      {Layout::lockclient, "identifier"}, {Layout::lockclient, "lease"},
      {Layout::lease, "LeaseUntil"},      {Layout::dynamolock, "ownerName"},
      {Layout::awslabs, "isReleased"},    {Layout::awslabs, "key"},
      {Layout::awslabs, "leaseDuration"}};
  for (const auto& [layout, name] : names) {
    Options options;
    options.attributes = {{name, Attribute::Type::string, "x", {}}};
    TableOptions table = somewhere(layout);
    table.key = tests::key_of(layout);
    BOOST_TEST(refused(table, options) == "attributes", name);
  }
  Options options;
  options.attributes = {{"uuid", Attribute::Type::string, "x", {}}};
  BOOST_TEST(refused(somewhere(Layout::awslabs), options) == "none");
}

// Others would find a lease that is over for none of their clocks.
BOOST_AUTO_TEST_CASE(engine_without_a_date_is_refused_where_calendars_count) {
  tests::ScriptedServer server([](const tests::SeenRequest&) {
    return tests::with_header(tests::Reply::ok("{}"), "Date", "");
  });
  const auto error_with = [&](Layout layout, std::optional<milliseconds> m) {
    TableOptions table = tests::table_options(server);
    table.layout = layout;
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
