// Attributes with types: DynamoDB's rules for their values, and that they come
// back as they were.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "ddbmutex/stored.hpp"
#include "extras/stored.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/words.hpp"

using namespace tests;
using ddbmutex::Attribute;
using ddbmutex::Attributes;
using ddbmutex::attributes_of;
using ddbmutex::TableOptions;
using ddbmutex::to_item;
using Type = Attribute::Type;

BOOST_AUTO_TEST_SUITE(attributes)

namespace {

const auto kEngines = boost::unit_test::data::make(engine_kinds());

// What is wrong, in words; "" if nothing is.
std::string wrong(const Attributes& attributes) {
  const auto error = error_of([&] { to_item(attributes); });
  if (!error) return "";
  BOOST_TEST((error->code() == ddbmutex::Errc::bad_option));
  BOOST_TEST(error->field() == "attributes");
  return error->what();
}

Attribute text(const std::string& name, const std::string& value) {
  return {name, Type::string, value, {}};
}

Attribute number(const std::string& name, const std::string& value) {
  return {name, Type::number, value, {}};
}

Attribute with(const std::string& name, Type type, Attributes members) {
  return {name, type, "", std::move(members)};
}

// A list within a list and so on, so many.
Attribute nested(int levels, Type type = Type::list) {
  Attribute attribute = text("", "innermost");
  for (int i = 0; i < levels; ++i) {
    if (type == Type::map) attribute.name = "inner";
    Attribute outer{"", type, "", {}};
    outer.members.push_back(std::move(attribute));
    attribute = std::move(outer);
  }
  attribute.name = "deep";
  return attribute;
}

// One of each type, with all that there may be in it.
Attributes one_of_each() {
  const std::string bytes("\0\xff\x80 bytes\n", 10);
  return {text("text", "gr\xc3\xbc\xc3\x9f \"\\\x01"),
          text("nothing", ""),
          number("number", "-12345678901234567890.5"),
          {"bytes", Type::binary, bytes, {}},
          {"yes", Type::boolean, "true", {}},
          {"no", Type::boolean, "false", {}},
          {"null", Type::null, "", {}},
          with("texts", Type::string_set, {text("", "a"), text("", "b")}),
          with("numbers", Type::number_set, {number("", "1"), number("", "2")}),
          with("blobs", Type::binary_set,
               {{"", Type::binary, bytes, {}}, {"", Type::binary, "x", {}}}),
          with("list", Type::list,
               {text("", "a"), number("", "7"), with("", Type::list, {})}),
          with("map", Type::map,
               {text("x", "1"), with("y", Type::map, {text("x", "2")})}),
          text("size", "a reserved word of DynamoDB's")};
}

TableOptions with_usual_rows() {
  TableOptions options;
  options.rows = &ddbmutex::lock::kDdblock;
  return options;
}

}  // namespace

// --- What is refused ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(attributes_of_every_type_are_taken) {
  BOOST_TEST(wrong(one_of_each()) == "");
  BOOST_TEST(wrong(Attributes{}) == "");
  BOOST_TEST(wrong({nested(32)}) == "");
  BOOST_TEST(wrong({nested(32, Type::map)}) == "");
}

BOOST_AUTO_TEST_CASE(number_that_dynamodb_does_not_take_is_refused) {
  const std::string nines(38, '9');
  for (const std::string& taken :
       {std::string("0"), std::string("-0"), std::string("+1"),
        std::string("007"), std::string(".5"), std::string("5."),
        std::string("1e3"), std::string("1E-3"), std::string("-1.5e+3"),
        "0." + nines, nines, "-" + nines + "e87", "1" + std::string(125, '0'),
        std::string("9.9e125"), std::string("1e-130"), std::string("0e200"),
        std::string("0.000000000000000000000000000000000000000000001")}) {
    BOOST_TEST(wrong({number("n", taken)}) == "", taken);
  }
  for (const std::string& refused :
       {std::string(""), std::string(" 1"), std::string("+"), std::string("."),
        std::string("1e"), std::string("1e5x"), std::string("1.2.3"),
        std::string("0x10"), std::string("NaN"), "1" + nines, "1." + nines,
        std::string("-1e126"), std::string("9.9e-131"),
        std::string("1e99999999999999999999"), std::string("1\0", 2)}) {
    BOOST_TEST(has(wrong({number("n", refused)}), "number") !=
                   has(wrong({number("n", refused)}), "38 digits"),
               refused);
  }
}

BOOST_AUTO_TEST_CASE(attribute_that_dynamodb_does_not_take_is_refused) {
  const Attribute bad = with("", Type::list, {number("", "x")});
  const std::pair<Attributes, const char*> cases[] = {
      {{text("", "x")}, "empty"},
      {{text(std::string(256, 'n'), "x")}, "255 bytes"},
      {{text("a\xff", "x")}, "not UTF-8"},
      {{text("a", "x"), text("a", "y")}, "\"a\" is given twice"},
      {{with("m", Type::map, {text("", "x")})}, "empty"},
      {{with("m", Type::map, {text("a", "x"), number("a", "1")})},
       "\"a\" is given twice"},
      {{text("a", "\xc3")}, "not UTF-8"},
      {{{"a", Type::boolean, "TRUE", {}}}, "true"},
      {{{"a", Type::null, "x", {}}}, "a value, which"},
      {{{"a", Type::string_set, "x", {text("", "y")}}}, "value"},
      {{{"a", Type::string, "x", {text("", "b")}}}, "members, which"},
      {{with("s", Type::binary_set, {})}, "empty set"},
      {{with("s", Type::string_set, {number("", "1")})},
       "not of the set's type"},
      {{with("s", Type::string_set, {text("", "a"), text("", "a")})},
       "member is given twice"},
      // The same number.
      {{with("s", Type::number_set, {number("", "10"), number("", "1e1")})},
       "member is given twice"},
      {{with("s", Type::string_set, {text("a", "a")})}, "with a name"},
      {{with("l", Type::list, {text("a", "x")})}, "name"},
      {{with("l", Type::list, {bad})}, "number"},
      {{nested(33)}, "more than 32 deep"},
      {{nested(33, Type::map)}, "more than 32 deep"},
      {{nested(5000)}, "more than 32 deep"},
  };
  for (const auto& [attributes, why] : cases) {
    const std::string told = wrong(attributes);
    BOOST_TEST(has(told, why), told << " and not " << why);
  }
}

// --- There and back ----------------------------------------------------------

BOOST_AUTO_TEST_CASE(attributes_come_back_as_they_were) {
  Attributes all = one_of_each();
  all.push_back(nested(10));
  BOOST_TEST((attributes_of(to_item(all)) == all));
  BOOST_TEST(to_item({}) == "");
  BOOST_TEST(attributes_of("").empty());
  BOOST_TEST(attributes_of("{").empty());
  BOOST_TEST(attributes_of("[]").empty());
  // Bytes that are none are left out.
  BOOST_TEST((attributes_of(R"({"b":{"B":"not base64!"},"a":{"S":"x"}})") ==
              Attributes{text("a", "x")}));
}

BOOST_AUTO_TEST_CASE(error_may_be_asked_for) {
  std::error_code ec;
  BOOST_TEST(to_item({number("n", "x")}, ec) == "");
  BOOST_TEST((ec == ddbmutex::Errc::bad_option));
  BOOST_TEST(to_item({number("n", "1")}, ec) == R"({"n":{"N":"1"}})");
  BOOST_TEST(!ec);
}

// --- Comparing ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(attributes_differ_by_name_type_and_value) {
  BOOST_TEST((text("a", "1") == text("a", "1")));
  BOOST_TEST((text("a", "1") != text("b", "1")));
  BOOST_TEST((text("a", "1") != text("a", "2")));
  BOOST_TEST((text("a", "1") != number("a", "1")));
  BOOST_TEST((text("a", "1.0") != text("a", "1")));
  // The same number, as DynamoDB writes it.
  BOOST_TEST((number("a", "1.50") == number("a", "15e-1")));
  BOOST_TEST((number("a", "-0") == number("a", "0.000")));
  BOOST_TEST((number("a", "-1") != number("a", "1")));
  BOOST_TEST((number("a", "10") != number("a", "1")));
  BOOST_TEST((number("a", "x") == number("a", "x")));
  BOOST_TEST(
      (with("a", Type::number_set, {number("", "2"), number("", "1e1")}) ==
       with("a", Type::number_set, {number("", "10"), number("", "2")})));
  BOOST_TEST((with("a", Type::map, {text("b", "1"), text("b", "1")}) !=
              with("a", Type::map, {text("b", "1"), text("b", "2")})));
}

// Else the time doubles with each level, and this case does not end.
BOOST_AUTO_TEST_CASE(members_are_compared_once_at_each_level) {
  Attribute a = text("a", "1"), b = text("a", "2");
  for (int level = 0; level < 64; ++level) {
    a = with("a", Type::map, {a});
    b = with("a", Type::map, {b});
  }
  BOOST_TEST((a != b));
  BOOST_TEST((a == Attribute(a)));
}

// --- In a table --------------------------------------------------------------

BOOST_DATA_TEST_CASE(attributes_are_stored_with_a_lock, kEngines, kind) {
  auto& engine = Engine::running(kind);
  for (const bool keep : {false, true}) {
    auto options = on_table(table_at(engine));
    Attributes all = one_of_each();
    all.push_back(nested(10));
    options.item = to_item(all);
    options.keep_row = keep;
    ddbmutex::DdbMutex mutex(fresh_name(), options);
    mutex.lock();
    const auto info = options.table->inspect(mutex.name());
    // An engine may change their order.
    BOOST_TEST((Attribute{"", Type::map, "", attributes_of(info.item)} ==
                Attribute{"", Type::map, "", all}));
  }
}

// Nothing that we take is refused.
BOOST_DATA_TEST_CASE(number_that_is_taken_is_taken_by_engines_too, kEngines,
                     kind) {
  auto& engine = Engine::running(kind);
  const std::string name = fresh_name();
  for (const std::string& value :
       {std::string("0"), std::string("-0.0"), std::string("007"),
        std::string("1e3"), std::string("-1.5E+3"), std::string(38, '9'),
        "1" + std::string(125, '0'), std::string("9.9e125"),
        std::string("1e-130")}) {
    BOOST_TEST(wrong({number("n", value)}) == "", value);
    const auto answer =
        engine.call("PutItem", place_in(engine, "Item", name) +
                                   R"(,"n":{"N":")" + value + R"("}}})");
    BOOST_TEST(answer.status == 200, value << ": " << answer.body);
    const auto item = item_of(engine, name);
    BOOST_TEST(
        (attributes_of(ddbmutex::detail::item_text(*item, with_usual_rows())) ==
         Attributes{number("n", value)}),
        value);
  }
}

BOOST_AUTO_TEST_SUITE_END()
