// Items as DynamoDB's JSON: every type is read and written, and nothing that
// is not of its type is taken for it.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/item.hpp"

namespace {

using namespace ddbmutex;
using dynamodb::Attribute;
using dynamodb::Item;
using Type = Attribute::Type;

std::optional<Item> read(const std::string& json) {
  const dynamodb::Document document{std::string(json)};
  BOOST_TEST_REQUIRE(document.is_json(), json.substr(0, 80));
  Item item;
  if (!dynamodb::read_item(document.root(), item)) return std::nullopt;
  return item;
}

// Of {"x":<json>}.
std::optional<Attribute> read_value(const std::string& json) {
  const auto item = read("{\"x\":" + json + "}");
  if (!item || item->size() != 1) return std::nullopt;
  return item->front();
}

std::string written(const Item& item) {
  sigv4::Text text;
  sigv4::JsonWriter json(text);
  dynamodb::write_item(json, item);
  return text.take();
}

bool same(const Attribute& one, const Attribute& other) {
  return one.name == other.name && one.type == other.type &&
         one.value == other.value &&
         std::equal(one.members.begin(), one.members.end(),
                    other.members.begin(), other.members.end(), same);
}

bool same(const Item& one, const Item& other) {
  return std::equal(
      one.begin(), one.end(), other.begin(), other.end(),
      [](const Attribute& a, const Attribute& b) { return same(a, b); });
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Items of every type but `other`, as deep as DynamoDB lets them be.
class Maker {
 public:
  explicit Maker(std::uint32_t seed) : random_(seed) {}

  Item item(int levels) {
    Item made;
    for (int i = below(5); i > 0; --i) {
      made.push_back(value(levels));
      made.back().name = text();
    }
    return made;
  }

 private:
  int below(int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random_);
  }

  std::string text() {
    static const std::vector<std::string> kParts = {
        "a",  "Z9",      "\"", "\\",       std::string(1, '\0'),
        "\n", "\x7f",    "/",  "\xc3\xa9", "\xf0\x9f\x98\x80",
        " ",  "{\"S\":", "</"};
    std::string made;
    for (int i = below(6); i > 0; --i) {
      made += kParts[static_cast<std::size_t>(
          below(static_cast<int>(kParts.size())))];
    }
    return made;
  }

  Attribute value(int levels) {
    // Lists and maps come last but one.
    constexpr int kTypes = static_cast<int>(Type::other);
    Attribute made;
    made.type = static_cast<Type>(below(levels > 0 ? kTypes : kTypes - 2));
    switch (made.type) {
      case Type::string:
      case Type::number:
      case Type::binary:
        made.value = text();
        break;
      case Type::boolean:
        made.value = below(2) == 0 ? "true" : "false";
        break;
      case Type::string_set:
        fill_set(made, Type::string);
        break;
      case Type::number_set:
        fill_set(made, Type::number);
        break;
      case Type::binary_set:
        fill_set(made, Type::binary);
        break;
      case Type::list:
        for (int i = below(3); i > 0; --i) {
          made.members.push_back(value(levels - 1));
        }
        break;
      case Type::map:
        made.members = item(levels - 1);
        break;
      default:
        break;
    }
    return made;
  }

  void fill_set(Attribute& set, Type type) {
    for (int i = below(4); i > 0; --i) {
      set.members.push_back({"", type, text()});
    }
  }

  std::mt19937 random_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(json_of_items)

BOOST_AUTO_TEST_CASE(value_of_each_type_is_read_as_such) {
  struct Case {
    const char* json;
    Type type;
    const char* value;
  };
  const Case cases[] = {
      {R"({"S":"a"})", Type::string, "a"},
      {R"({"S":""})", Type::string, ""},
      {R"({"N":"-1.5E+3"})", Type::number, "-1.5E+3"},
      {R"({"B":"AAEC"})", Type::binary, "AAEC"},
      {R"({"BOOL":true})", Type::boolean, "true"},
      {R"({"BOOL":false})", Type::boolean, "false"},
      {R"({"NULL":true})", Type::null, ""},
      {R"({"NEW":[1]})", Type::other, ""},
      {R"({"bool":true})", Type::other, ""},
  };
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c.json) {
      const auto read = read_value(c.json);
      BOOST_REQUIRE(read.has_value());
      BOOST_TEST((read->type == c.type));
      BOOST_TEST(read->value == c.value);
      BOOST_TEST(read->name == "x");
      BOOST_TEST(read->members.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(set_has_members_without_names) {
  const std::pair<const char*, std::pair<Type, Type>> sets[] = {
      {"SS", {Type::string_set, Type::string}},
      {"NS", {Type::number_set, Type::number}},
      {"BS", {Type::binary_set, Type::binary}}};
  for (const auto& [tag, types] : sets) {
    const auto set = read_value(std::string("{\"") + tag + R"(":["1","22"]})");
    BOOST_REQUIRE(set.has_value());
    BOOST_TEST((set->type == types.first));
    BOOST_TEST(set->value.empty());
    BOOST_REQUIRE(set->members.size() == 2u);
    BOOST_TEST(same(set->members[0], {"", types.second, "1"}));
    BOOST_TEST(same(set->members[1], {"", types.second, "22"}));
  }
}

BOOST_AUTO_TEST_CASE(lists_and_maps_have_members_of_any_type) {
  const auto list =
      read_value(R"({"L":[{"N":"1"},{"M":{"a":{"NULL":true},"":{"SS":[]}}}]})");
  BOOST_REQUIRE(list.has_value());
  BOOST_TEST((list->type == Type::list));
  BOOST_REQUIRE(list->members.size() == 2u);
  BOOST_TEST(same(list->members[0], {"", Type::number, "1"}));
  const Attribute& map = list->members[1];
  BOOST_TEST((map.type == Type::map));
  BOOST_TEST(map.name == "");
  BOOST_REQUIRE(map.members.size() == 2u);
  BOOST_TEST(same(map.members[0], {"a", Type::null}));
  BOOST_TEST(same(map.members[1], {"", Type::string_set}));
}

BOOST_AUTO_TEST_CASE(value_that_is_not_of_its_type_is_no_item) {
  for (const char* json : {
           R"({"S":7})",
           R"({"S":null})",
           R"({"N":7})",
           R"({"B":["AA=="]})",
           R"({"BOOL":"true"})",
           R"({"BOOL":null})",
           R"({"BOOL":1})",
           R"({"NULL":false})",  // DynamoDB has no such thing.
           R"({"NULL":null})",
           R"({"NULL":"true"})",
           R"({"SS":"a"})",
           R"({"SS":{}})",
           R"({"SS":["a",7]})",
           R"({"NS":[7]})",
           R"({"BS":[null]})",
           R"({"SS":[{"S":"a"}]})",
           R"({"L":{}})",
           R"({"L":17})",
           R"({"L":["a"]})",
           R"({"L":[{"S":"a"},{}]})",
           R"({"L":[[{"S":"a"}]]})",
           R"({"L":[{"S":7}]})",
           R"({"M":[]})",
           R"({"M":null})",
           R"({"M":{"a":"b"}})",
           R"({"M":{"a":{"N":7}}})",
           R"({"M":{"a":{"S":"a","N":"1"}}})",
           R"({})",
           R"({"S":"a","N":"1"})",
           R"([])",
           R"("a")",
           R"(null)",
           R"(7)",
       }) {
    BOOST_TEST(!read("{\"y\":{\"S\":\"s\"},\"x\":" + std::string(json) + "}"),
               json);
  }
  for (const char* json : {"[]", "null", "7", "\"S\"", "true"}) {
    BOOST_TEST(!read(json).has_value(), json);
  }
}

BOOST_AUTO_TEST_CASE(nesting_is_read_down_to_thirty_two_levels) {
  const std::pair<const char*, const char*> ways[] = {{R"({"L":[)", "]}"},
                                                      {R"({"M":{"a":)", "}}"}};
  for (const auto& [open, close] : ways) {
    for (const char* inmost : {R"({"S":"s"})", R"({"SS":["s"]})"}) {
      const auto nested = [&, open = open, close = close](std::size_t levels) {
        return repeated(open, levels) + inmost + repeated(close, levels);
      };
      const auto deepest = read_value(nested(32));
      BOOST_REQUIRE(deepest.has_value());
      BOOST_TEST(written({*deepest}) == "{\"x\":" + nested(32) + "}");
      for (const std::size_t levels : {33u, 34u, 100u, 490u}) {
        const auto deeper = read_value(nested(levels));
        BOOST_TEST_REQUIRE(deeper.has_value());
        BOOST_TEST((deeper->type == Type::unread), levels);
        BOOST_TEST(deeper->members.empty());
      }
    }
  }
  // Beside each other they are as many as you like.
  BOOST_TEST(read_value("{\"L\":[{\"NULL\":true}" +
                        repeated(R"(,{"L":[{"M":{}}]})", 1000) + "]}")
                 .has_value());
}

BOOST_AUTO_TEST_CASE(items_of_all_types_are_read_back_as_they_were_written) {
  Maker maker(20261121);
  std::size_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    const Item item = maker.item(i % 33);
    const std::string json = written(item);
    const auto back = read(json);
    BOOST_TEST_REQUIRE(back.has_value(), json);
    BOOST_TEST_REQUIRE(same(*back, item), json);
    BOOST_TEST_REQUIRE(written(*back) == json);
    most = std::max(most, json.size());
  }
  BOOST_TEST(most > 500u);  // Not all of them were next to nothing.
}

BOOST_AUTO_TEST_CASE(item_read_is_written_to_the_byte) {
  const std::string json =
      R"({"b":{"BOOL":false},"":{"S":"\u0000\"\\\n"},"é":{"N":"1.50"},)"
      R"("n":{"NULL":true},"u":{"S":"1"},"u":{"S":"2"},"B":{"BS":["AA=="]},)"
      R"("m":{"M":{"l":{"L":[]},"s":{"NS":["1","1"]}}},"x":{"B":""}})";
  const auto item = read(json);
  BOOST_REQUIRE(item.has_value());
  BOOST_TEST(written(*item) == json);
}

// It would be stored as something else without a word.
BOOST_AUTO_TEST_CASE(value_of_an_unknown_type_is_written_as_none) {
  const auto item = read(R"({"x":{"NEW":7},"l":{"L":[{"NEW":7}]}})");
  BOOST_REQUIRE(item.has_value());
  BOOST_TEST(written(*item) == R"({"x":{},"l":{"L":[{}]}})");
}

BOOST_AUTO_TEST_CASE(every_byte_is_escaped_where_json_wants_it) {
  const auto escaped = [](int byte) {
    const char c = static_cast<char>(byte);
    constexpr std::string_view kShort = "\b\f\n\r\t\"\\";
    const std::size_t at = kShort.find(c);
    if (at != kShort.npos) return std::string("\\") + "bfnrt\"\\"[at];
    constexpr char kDigits[] = "0123456789ABCDEF";
    if (byte >= 0x20) return std::string(1, c);
    return std::string("\\u00") + kDigits[byte / 16] + kDigits[byte % 16];
  };
  for (int byte = 0; byte < 256; ++byte) {
    sigv4::Text json;
    sigv4::JsonWriter(json).text(std::string("!") + static_cast<char>(byte) +
                                 "~");
    BOOST_TEST(json.take() == "\"!" + escaped(byte) + "~\"");
  }
}

BOOST_AUTO_TEST_CASE(text_that_is_taken_is_empty_then) {
  sigv4::Text text(3);
  text += "abcd";
  BOOST_TEST(text.take() == "abcd");
  text += 'e';
  BOOST_TEST(text.take() == "e");
  BOOST_TEST(text.take() == "");
  text += "fgh";
  sigv4::Text other = std::move(text);
  text += 'i';
  BOOST_TEST(other.take() == "fgh");
  BOOST_TEST(text.take() == "i");
}

BOOST_AUTO_TEST_CASE(values_are_written_in_the_order_of_the_calls) {
  sigv4::Text text;
  text += "before ";
  sigv4::JsonWriter json(text);
  json.begin_object();
  json.name("empty").text({});
  json.name("numbers").begin_list();
  json.number(std::numeric_limits<std::int64_t>::min());
  json.number(std::numeric_limits<std::int64_t>::max());
  json.json("1,[2]");
  json.end_list();
  json.name("yes").boolean(true);
  json.name("none").begin_object();
  json.end_object();
  json.end_object();
  BOOST_TEST(text.take() ==
             R"(before {"empty":"","numbers":[-9223372036854775808,)"
             R"(9223372036854775807,1,[2]],"yes":true,"none":{}})");
}

BOOST_AUTO_TEST_CASE(every_type_has_a_tag_of_its_own) {
  const std::pair<const char*, Type> tags[] = {
      {"S", Type::string},      {"N", Type::number},
      {"B", Type::binary},      {"BOOL", Type::boolean},
      {"NULL", Type::null},     {"SS", Type::string_set},
      {"NS", Type::number_set}, {"BS", Type::binary_set},
      {"L", Type::list},        {"M", Type::map},
      {"", Type::other},        {"s", Type::other},
      {"SSS", Type::other}};
  for (const auto& [tag, type] : tags) {
    const std::string value = type == Type::map ? "{}"
                              : type == Type::null || type == Type::boolean
                                  ? "true"
                              : type >= Type::string_set ? "[]"
                                                         : "\"\"";
    const auto read_as =
        read_value("{\"" + std::string(tag) + "\":" + value + "}");
    BOOST_REQUIRE(read_as.has_value());
    BOOST_TEST((read_as->type == type), tag);
  }
}

BOOST_AUTO_TEST_SUITE_END()
