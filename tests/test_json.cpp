// Items as DynamoDB's JSON: every type is read and written, and nothing that
// is not of its type is taken for it; and Base64 against RFC 4648.
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ddbmutex/dynamodb/item.hpp"
#include "sigv4/base64.hpp"

namespace {

using namespace ddbmutex;
using dynamodb::Attribute;
using dynamodb::Item;
using Type = Attribute::Type;
using sigv4::base64_decode;
using sigv4::base64_encode;

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

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(json_of_items)

BOOST_AUTO_TEST_CASE(value_that_is_not_of_its_type_is_no_item) {
  for (const char* json : {
           R"({"S":7})",
           R"({"N":7})",
           R"({"B":["AA=="]})",
           R"({"BOOL":"true"})",
           R"({"BOOL":1})",
           R"({"NULL":false})",  // DynamoDB has no such thing.
           R"({"SS":"a"})",
           R"({"SS":["a",7]})",
           R"({"NS":[7]})",
           R"({"BS":[null]})",
           R"({"SS":[{"S":"a"}]})",
           R"({"L":{}})",
           R"({"L":["a"]})",
           R"({"L":[{"S":"a"},{}]})",
           R"({"M":[]})",
           R"({"M":{"a":"b"}})",
           R"({"M":{"a":{"S":"a","N":"1"}}})",
           R"({})",
           R"({"S":"a","N":"1"})",
           R"("a")",
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

BOOST_AUTO_TEST_CASE(item_read_is_written_to_the_byte) {
  const std::string json =
      R"({"b":{"BOOL":false},"":{"S":"\u0000\"\\\n"},"é":{"N":"1.50"},)"
      R"("n":{"NULL":true},"u":{"S":"1"},"u":{"S":"2"},"B":{"BS":["AA=="]},)"
      R"("m":{"M":{"l":{"L":[]},"s":{"NS":["1","1"]}}},"x":{"B":""}})";
  const auto item = read(json);
  BOOST_REQUIRE(item.has_value());
  BOOST_TEST(written(*item) == json);
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

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(base64)

BOOST_AUTO_TEST_CASE(examples_of_the_rfc_come_out) {
  const std::pair<const char*, const char*> examples[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    BOOST_TEST(base64_encode(bytes) == text);
    BOOST_TEST(base64_decode(text).value_or("?") == bytes);
  }
}

BOOST_AUTO_TEST_CASE(what_is_almost_base64_is_refused) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"Z"sv, "Zg"sv, "Zg="sv, "Zg==="sv, "Zg==Zg=="sv, "===="sv, "Z==="sv,
        "="sv, "Zg==\n"sv, "\nZg=="sv, " Zg=="sv, "Zg== "sv, "Zm9v\n"sv,
        "Zm 9v"sv, "Zm9v    "sv, "    Zm9v"sv, "    "sv, "\n\n\n\n"sv, "Zm9-"sv,
        "Zm9_"sv, "Z===Zm9v"sv, "Zg=Z"sv, "Zm8=Zm9v"sv, "Zm9v----"sv, "----"sv,
        "\0\0\0\0"sv, "Zm9\0"sv, "Zm9\xff"sv, "\xc3\xa9oo"sv,
        // Bits that belong to no byte.
        "Zh=="sv, "Zm9="sv, "A/=="sv}) {
    BOOST_TEST(!base64_decode(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
