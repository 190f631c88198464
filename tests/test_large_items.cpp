// The largest items that DynamoDB has, in all layouts: they are used as any
// other, or reported alone, in memory that is bounded by their size.
#include <malloc.h>

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/any_of.hpp"
#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/layout_options.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/rival.hpp"
#include "tests/support/whereabouts.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using dynamodb::Item;
using dynamodb::Wanted;
using tests::Engine;
using tests::EngineKind;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;
using Type = dynamodb::Attribute::Type;

namespace {

constexpr Layout kLayouts[] = {Layout::ddblock, Layout::lockclient,
                               Layout::lease, Layout::dynamolock,
                               Layout::awslabs};

// --- How much of it is run
// ----------------------------------------------------

// All with DDBMUTEX_LARGE_WHOLE; else a part, which DDBMUTEX_SEED chooses.
bool is_whole() { return std::getenv("DDBMUTEX_LARGE_WHOLE") != nullptr; }

template <class Element>
std::vector<Element> part_of(const std::vector<Element>& all) {
  if (is_whole()) return all;
  const char* seed = std::getenv("DDBMUTEX_SEED");
  std::mt19937 random(
      static_cast<unsigned>(seed != nullptr ? std::atoll(seed) : 1));
  return {all[random() % all.size()]};
}

std::vector<EngineKind> engines() { return part_of(tests::engine_kinds()); }
std::vector<Layout> layouts() {
  return part_of(std::vector<Layout>(std::begin(kLayouts), std::end(kLayouts)));
}

// Of numbers that take 14 MB, which engines are slow to store; or 3.5.
std::size_t many() { return is_whole() ? 100000 : 25000; }

// --- Values ------------------------------------------------------------------

std::string list_of(const std::string& member, std::size_t count) {
  std::string json = R"({"L":[)";
  json.reserve(json.size() + count * (member.size() + 1) + 2);
  for (std::size_t i = 0; i < count; ++i) {
    json += i == 0 ? "" : ",";
    json += member;
  }
  return json + "]}";
}

// The longest JSON that strings in 400 KB can need: 9 bytes for one byte.
std::string empty_strings(std::size_t count = 408000) {
  return list_of(R"({"S":""})", count);
}

// DynamoDB answers with plain digits, 141 bytes for each number.
std::string small_numbers(std::size_t count) {
  return list_of(R"({"N":"1E-130"})", count);
}

std::string nested(std::size_t levels) {
  std::string json;
  for (std::size_t i = 0; i < levels; ++i) json += R"({"L":[)";
  json += R"({"S":"x"})";
  for (std::size_t i = 0; i < levels; ++i) json += "]}";
  return json;
}

// --- Rows --------------------------------------------------------------------

// Of a holder that died long ago.
std::string dead_record(Layout layout) {
  switch (layout) {
    case Layout::lockclient:
      return R"("identifier":{"S":"u"},"expiry":{"N":"1000"},)"
             R"("lease":{"N":"1000"})";
    case Layout::lease:
      return R"("ProcessID":{"S":"u"},"LeaseUntil":{"N":"1000"})";
    case Layout::dynamolock:
      return R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x"},)"
             R"("leaseDuration":{"S":"1s"})";
    case Layout::awslabs:
      return R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x"},)"
             R"("leaseDuration":{"S":"1000"})";
    default:
      return R"("uuid":{"S":"u"},"expires":{"N":"1000"},"lease":{"N":"1000"})";
  }
}

// Of one in the layout ddblock that will not die for long.
constexpr char kHeldRecord[] =
    R"("uuid":{"S":"u"},"expires":{"N":"9000000000000000000"},)"
    R"("lease":{"N":"60000"})";

// A table of a layout, gone with this.
class Site {
 public:
  Site(Layout layout, EngineKind kind)
      : layout_(layout),
        engine_(Engine::running(kind)),
        table_(engine_.create_table({{tests::key_of(layout)}})) {}
  ~Site() { engine_.delete_table(table_); }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  void put(const std::string& name, const std::string& attributes) const {
    const std::string prefix = layout_ == Layout::ddblock ? "ddblock-" : "";
    engine_.must_call("PutItem", R"({"TableName":")" + table_ +
                                     R"(","Item":{")" + tests::key_of(layout_) +
                                     R"(":{"S":")" + prefix + name + "\"}," +
                                     attributes + "}}");
  }
  TableOptions table_options() const {
    TableOptions options = tests::table_options(engine_);
    options.name = table_;
    options.layout = layout_;
    options.key = tests::key_of(layout_);
    return options;
  }
  Options options() const {
    Options options =
        tests::unhurried(std::make_shared<Table>(table_options()));
    options.patience = tests::kPlenty > 60s ? 60s : 30s;
    return options;
  }
  tests::Whereabouts where() const {
    tests::Whereabouts where = tests::at(engine_);
    where.table = table_;
    return where;
  }

 private:
  const Layout layout_;
  Engine& engine_;
  const std::string table_;
};

std::map<std::string, LockInfo> listed(Table& table) {
  std::map<std::string, LockInfo> all;
  table.list([&all](const LockInfo& info) {
    all.emplace(info.name, info);
    return true;
  });
  return all;
}

Item read(const std::string& json, const Wanted& wanted) {
  const dynamodb::Document document{std::string(json)};
  Item item;
  BOOST_TEST_REQUIRE(dynamodb::read_item(document.root(), item, wanted));
  return item;
}

// "uuid S, note unread"
std::string shape_of(const Item& item) {
  std::string text;
  for (const dynamodb::Attribute& one : item) {
    text += (text.empty() ? "" : ", ") + one.name +
            (one.type == Type::unread            ? " unread"
             : one.type == Type::list            ? " list"
             : one.value.empty()                 ? " empty"
             : one.value.size() > std::size_t{8} ? " long"
                                                 : " " + one.value) +
            (one.members.empty() ? ""
                                 : " of " + std::to_string(one.members.size()));
  }
  return text;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif
#else
constexpr bool kMemoryIsOurs = true;
#endif

}  // namespace

BOOST_AUTO_TEST_SUITE(large_items)

// --- What is read of an item -------------------------------------------------

// Memory that is reserved but not touched is not counted by the system, but
// counts where memory is limited.
BOOST_AUTO_TEST_CASE(document_reserves_no_more_than_its_nodes) {
  std::string json = empty_strings();
  const std::size_t size = json.size();
  const auto heap_in_use = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before = heap_in_use();
  const dynamodb::Document document(std::move(json));
  BOOST_TEST(document.is_json());
  // Three for nine bytes, of 16 bytes each.
  BOOST_TEST(heap_in_use() - before < size * 6);
}

BOOST_AUTO_TEST_CASE(refused_renewal_reads_the_record_alone) {
  const Wanted wanted = lock::wanted_of(lock::kDdblock, false);
  BOOST_TEST(shape_of(read(R"({"note":{"L":[{"S":"a"}]},"uuid":{"S":"u"},)"
                           R"("owner":{"L":[{"S":"a"}]},"data":{"B":"QUJD"},)"
                           R"("expires":{"N":"7"},"more":{"S":"s"}})",
                           wanted)) ==
             "uuid u, owner list, data empty, expires 7");
  // An item without the record's attributes does not read as missing.
  BOOST_TEST(shape_of(read(R"({"note":{"S":"a"},"more":{"S":"b"}})", wanted)) ==
             "note unread");
  BOOST_TEST(shape_of(read("{}", wanted)) == "");
}

BOOST_AUTO_TEST_CASE(record_is_read_wherever_it_stands) {
  std::string json = "{";
  for (int i = 0; i < 100000; ++i) {
    json += "\"a" + std::to_string(i) + R"(":{"S":""},)";
  }
  json += R"("uuid":{"S":"u"},"expires":{"N":"7"},"data":{"B":"QUJD"}})";
  for (const bool others : {false, true}) {
    const Item item = read(json, lock::wanted_of(lock::kDdblock, others));
    BOOST_TEST(dynamodb::find(item, "uuid")->value == "u");
    BOOST_TEST(dynamodb::find(item, "expires")->value == "7");
    BOOST_TEST((dynamodb::find(item, "data") != nullptr));
    const lock::Row row = lock::read_row(item);
    BOOST_TEST((row.kind == lock::Row::Kind::record));
    BOOST_TEST(row.unread == (others ? "a8000" : ""));
    BOOST_TEST(row.others.size() == (others ? 8001u : 1u));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_leaves_room_for_what_does) {
  // It is too large only in its second half.
  const std::string large =
      R"({"L":[)" + empty_strings(5000) + "," + empty_strings(5000) + "]}";
  const Item item = read(R"({"a":{"S":"1"},"large":)" + large + R"(,"list":)" +
                             empty_strings(7000) + R"(,"deep":)" + nested(33) +
                             R"(,"b":{"S":"2"}})",
                         {});
  BOOST_TEST(shape_of(item) == "a 1, list list of 7000, b 2, large unread");
  BOOST_TEST(shape_of(read("{\"a\":" + empty_strings(7999) + "}", {})) ==
             "a list of 7999");
  BOOST_TEST(shape_of(read("{\"a\":" + empty_strings(8000) + "}", {})) ==
             "a unread");
}

// Only an answer that is not DynamoDB's has one more than once.
BOOST_AUTO_TEST_CASE(members_that_come_again_and_again_take_no_room) {
  std::string json = "{";
  for (int i = 0; i < 100000; ++i) json += R"("uuid":{"S":"u"},)";
  const Item item = read(json + R"("expires":{"N":"7"}})",
                         lock::wanted_of(lock::kDdblock, false));
  BOOST_TEST(item.size() <= 16u);
  BOOST_TEST(dynamodb::find(item, "uuid")->value == "u");
}

// --- On engines --------------------------------------------------------------

// 400 KB can become more than nine bytes of JSON for each of them.
BOOST_DATA_TEST_CASE(row_of_a_large_item_keeps_nobody_from_the_others,
                     engines(), kind) {
  const Site site(Layout::ddblock, kind);
  const std::string large = small_numbers(many());
  site.put("a", dead_record(Layout::ddblock));
  site.put("dead", dead_record(Layout::ddblock) + R"(,"owner":)" + large);
  site.put("z", dead_record(Layout::ddblock));
  Table table(site.table_options());
  const auto all = listed(table);
  BOOST_TEST(all.size() == 3u);
  BOOST_TEST(all.at("dead").exists);
  BOOST_TEST(all.at("dead").problem == "");
  BOOST_TEST(all.at("dead").owner == "");
  BOOST_TEST(table.inspect("dead").uuid == "u");
  DdbMutex mutex("dead", site.options());
  mutex.lock();
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
}

BOOST_DATA_TEST_CASE(any_of_gets_the_others_and_what_can_be_read, engines(),
                     kind) {
  const Site site(Layout::ddblock, kind);
  const std::string large = small_numbers(many());
  site.put("a", dead_record(Layout::ddblock) + R"(,"token":{"N":"1"})");
  site.put("owner", dead_record(Layout::ddblock) +
                        R"(,"token":{"N":"1"},"owner":)" + large);
  site.put("note", R"("note":)" + large);
  AnyOfOptions options;
  options.each = site.options();
  std::vector<std::unique_ptr<DdbMutex>> got;
  std::vector<std::string> names;
  AnyOf any(options);
  while (auto one = any.try_lock()) {
    names.push_back(one->name());
    got.push_back(std::move(one));
  }
  std::sort(names.begin(), names.end());
  const std::vector<std::string> every = {"a", "note", "owner"};
  BOOST_TEST(names == every, boost::test_tools::per_element());
  got.clear();
  // An item is skipped if an attribute that `accept` needs was left out.
  options.read = {"note"};
  AnyOf reads(options);
  names.clear();
  while (auto one = reads.try_lock()) {
    names.push_back(one->name());
    got.push_back(std::move(one));
  }
  std::sort(names.begin(), names.end());
  const std::vector<std::string> readable = {"a", "owner"};
  BOOST_TEST(names == readable, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(large_attribute_is_the_only_one_that_is_not_told,
                     engines(), kind) {
  for (const Layout layout : layouts()) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const Site site(layout, kind);
      site.put("job", dead_record(layout) + R"(,"colour":{"S":"red"},"note":)" +
                          empty_strings(60000) + R"(,"deep":)" + nested(30));
      Table table(site.table_options());
      const LockInfo info = table.inspect("job");
      BOOST_TEST(info.exists);
      BOOST_TEST(info.problem.find("\"note\" was not read") == 0u);
      BOOST_TEST_REQUIRE(info.attributes.size() == 2u);
      DdbMutex mutex("job", site.options());
      mutex.lock();
      BOOST_TEST(mutex.owns_lock());
      mutex.unlock();
    }
  }
}

// By a process of its own, in which nothing else has memory.
void check_memory(const Site& site, Layout layout, const char* way,
                  const std::string& came, std::size_t answer) {
  tests::Process process(
      {{tests::program_path("processes/large_items"), site.where().table,
        std::to_string(static_cast<int>(layout)), tests::key_of(layout), way},
       tests::environment_of(site.where())});
  const std::string said = process.channel().line();
  BOOST_TEST(process.wait() == 0, said << process.complaints());
  const std::size_t colon = said.rfind(": ");
  BOOST_TEST_REQUIRE(colon != said.npos);
  BOOST_TEST(said.find(came) == 0u, way << ": " << said);
  const auto bytes = std::stoul(said.substr(colon + 2));
  BOOST_TEST_MESSAGE(tests::name_of(layout)
                     << " " << way << ": " << bytes * 10 / answer
                     << " tenths of the answer");
  if (kMemoryIsOurs) BOOST_TEST(bytes <= 8 * answer, way << ": " << said);
}

void check_memory(Layout layout, const std::string& note, std::size_t answer) {
  const std::string dead = dead_record(layout);
  const struct {
    const char* name;
    std::string record;  // Of new items; empty: the last ones serve.
    const char* came;
  } ways[] = {
      {"inspect", dead, "exists with 0 attributes, \"note\" was not read"},
      {"list", "", "exists"},
      {"any_of", "", "none"},
      {"take", dead, "locked with 0 attributes"},
      // What refuses it comes with the refusal, what it has taken with the yes.
      {"look", kHeldRecord, "busy"},
      {"take_kept", dead + R"(,"token":{"N":"7"})", "locked with 0 attributes"},
  };
  const Site site(layout, tests::any_engine_kind());
  for (const auto& way : ways) {
    const bool ours = way.record.empty() || way.record == dead;
    if (!ours && layout != Layout::ddblock) continue;
    if (!way.record.empty()) {
      site.put("job-small", way.record);
      site.put("job-large", way.record + R"(,"note":)" + note);
    }
    check_memory(site, layout, way.name, way.came, answer);
  }
}

BOOST_AUTO_TEST_CASE(memory_is_at_most_eight_times_the_answer) {
  const std::size_t count = is_whole() ? 408000 : 150000;
  for (const Layout layout : layouts()) {
    check_memory(layout, empty_strings(count), 9 * count);
  }
  if (!is_whole()) return;
  check_memory(Layout::ddblock, small_numbers(130000), 141 * 130000);
}

// --- What an engine does not store -------------------------------------------

// Engines of other makers may have larger items than the client accepts.
BOOST_AUTO_TEST_CASE(item_too_large_to_be_read_is_listed_with_its_problem) {
  const std::string too_large(dynamodb::kMostAnswerBytes + 1, ' ');
  ScriptedServer server([&](const SeenRequest& request) {
    const bool first =
        request.body.find("ExclusiveStartKey") == std::string::npos;
    const bool keys = request.body.find(R"("ProjectionExpression":"#0",)") !=
                      std::string::npos;
    if (first && !keys) return Reply::ok(too_large);
    return Reply::ok(
        first ? R"({"Items":[{"name":{"S":"ddblock-huge"}}],)"
                R"("LastEvaluatedKey":{"name":{"S":"ddblock-huge"}}})"
              : R"({"Items":[{"name":{"S":"ddblock-b"},)" +
                    dead_record(Layout::ddblock) + "}]}");
  });
  TableOptions options = tests::table_options(server);
  options.patience = 60s;
  Table table(options);
  const auto all = listed(table);
  BOOST_TEST(all.size() == 2u);
  BOOST_TEST(all.at("huge").problem == "it is too large to be read");
  BOOST_TEST(!all.at("huge").exists);
  BOOST_TEST(all.at("b").exists);
}

// A key that is not a string cannot be listed, because it has no name.
BOOST_AUTO_TEST_CASE(keys_of_all_types_leave_the_others_listed) {
  for (const Layout layout : kLayouts) {
    BOOST_TEST_CONTEXT(tests::name_of(layout)) {
      const std::string key =
          std::string("{\"") + tests::key_of(layout) + "\":";
      const std::string record = "," + dead_record(layout);
      const std::string prefix = layout == Layout::ddblock ? "ddblock-" : "";
      const std::string page =
          R"({"Items":[)" + key + R"({"N":"1"})" + record + "}," + key +
          empty_strings(20000) + record + "}," + key + nested(40) + record +
          "}," + key + R"({"NEW":"x"})" + record + "}," + key + R"({"S":")" +
          prefix + R"(twice"},"x":{"S":"1"},"x":{"S":"2"})" + record + "," +
          dead_record(layout) + "}," + key + R"({"S":")" + prefix + R"(job"})" +
          record + "}]}";
      ScriptedServer server(
          [&](const SeenRequest&) { return Reply::ok(page); });
      TableOptions options = tests::table_options(server);
      options.layout = layout;
      options.key = tests::key_of(layout);
      Table table(options);
      const auto all = listed(table);
      BOOST_TEST(all.size() == 2u);
      BOOST_TEST(all.at("job").exists);
      BOOST_TEST(all.at("twice").exists);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
