// The largest items.  In each layout they work like any other item, or an error
// names them alone.  The memory that they need is bounded by their size.
#include <malloc.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/row.hpp"
#include "extras/admin.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace lock = ddbmutex::lock;
using namespace tests;
using ddbmutex::LockInfo;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using dynamodb::Item;
using dynamodb::Wanted;
using tests::Layout;
using Type = dynamodb::Attribute::Type;

namespace {

// The first stores when a lease ends, the second a version of the record.
constexpr Layout kLayouts[] = {Layout::ddblock, Layout::awslabs};

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
  return list_of(R"({"N":"0.)" + std::string(129, '0') + R"(1"})", count);
}

std::string nested(std::size_t levels) {
  std::string json;
  for (std::size_t i = 0; i < levels; ++i) json += R"({"L":[)";
  json += R"({"S":"x"})";
  for (std::size_t i = 0; i < levels; ++i) json += "]}";
  return json;
}

// --- Rows --------------------------------------------------------------------

// The record of a holder that died long ago.
std::string dead_record(Layout layout) {
  if (layout == Layout::ddblock) {
    return R"("uuid":{"S":"u"},"expires":{"N":"1000"},"lease":{"N":"1000"})";
  }
  return R"("ownerName":{"S":"h"},"recordVersionNumber":{"S":"x"},)"
         R"("leaseDuration":{"S":"1000"})";
}

// The row of that name as DynamoDB returns it.
std::string row_json(const std::string& name, const std::string& attributes) {
  return R"({"name":{"S":"ddblock-)" + name + "\"}," + attributes + "}";
}

std::map<std::string, LockInfo> listed(Table& table) {
  std::map<std::string, LockInfo> all;
  list_locks(table, [&all](const LockInfo& info) {
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

}  // namespace

BOOST_AUTO_TEST_SUITE(large_items)

// --- What is read of an item -------------------------------------------------

// The heap is asked, because memory that is reserved but not touched may count
// against a limit although the system does not show it as used.
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
  // Nine bytes of JSON become three nodes of 16 bytes.
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

BOOST_AUTO_TEST_CASE(what_does_not_fit_leaves_room_for_what_does) {
  // Only the second half is too much.
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

// --- What a table tells ------------------------------------------------------

// 400 KB can become more than nine bytes of JSON for each of them.
BOOST_AUTO_TEST_CASE(row_of_a_large_item_keeps_nobody_from_the_others) {
  const std::string dead = dead_record(Layout::ddblock);
  const std::string large = row_json(
      "large", dead + R"(,"owner":)" + small_numbers(19000));  // 2.7 MB.
  ScriptedServer server([&](const SeenRequest& request) {
    return Reply::ok(action_of(request) == "GetItem"
                         ? R"({"Item":)" + large + "}"
                         : R"({"Items":[)" + row_json("a", dead) + "," + large +
                               "," + row_json("z", dead) + "]}");
  });
  Table table(table_options(server));
  const auto all = listed(table);
  BOOST_TEST(all.size() == 3u);
  BOOST_TEST(all.at("large").exists);
  BOOST_TEST(all.at("large").problem == "");
  BOOST_TEST(all.at("large").owner == "");
  BOOST_TEST(table.inspect("large").uuid == "u");
}

// A key that is not a string cannot be listed, because it has no name.
BOOST_AUTO_TEST_CASE(keys_of_all_types_leave_the_others_listed) {
  for (const Layout layout : kLayouts) {
    BOOST_TEST_CONTEXT(name_of(layout)) {
      const std::string key = std::string("{\"") + key_of(layout) + "\":";
      const std::string record = "," + dead_record(layout);
      const std::string prefix = layout == Layout::ddblock ? "ddblock-" : "";
      const std::string page =
          R"({"Items":[)" + key + R"({"N":"1"})" + record + "}," + key +
          empty_strings(20000) + record + "}," + key + nested(40) + record +
          "}," + key + R"({"NEW":"x"})" + record + "}," + key + R"({"S":")" +
          prefix + R"(twice"},"x":{"S":"1"},"x":{"S":"2"})" + record + "," +
          dead_record(layout) + "}," + key + R"({"S":")" + prefix + R"(job"})" +
          record + "}]}";
      ScriptedServer server([&](const SeenRequest& request) {
        return action_of(request) == "Scan" ? Reply::ok(page) : Reply{};
      });
      TableOptions options = table_options(server);
      options.rows = tests::rows_of(layout);
      options.key = key_of(layout);
      Table table(options);
      const auto all = listed(table);
      BOOST_TEST(all.size() == 2u);
      BOOST_TEST(all.at("job").exists);
      BOOST_TEST(all.at("twice").exists);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
