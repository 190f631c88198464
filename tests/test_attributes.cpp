// What users store with a lock: what is taken, what is refused before anything
// is sent, and that it comes back as it was.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/attributes.hpp"
#include "sigv4/base64.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"

namespace {

using ddbmutex::Attribute;
using ddbmutex::Attributes;
using ddbmutex::Changes;
using ddbmutex::TableOptions;
using ddbmutex::detail::attributes_of;
using ddbmutex::detail::check_changes;
using ddbmutex::detail::check_stored;
using ddbmutex::detail::data_of;
using ddbmutex::detail::ErrorPtr;
using ddbmutex::detail::to_item;
using ddbmutex::dynamodb::Item;
using tests::has;
using Type = Attribute::Type;
using Wire = ddbmutex::dynamodb::Attribute;

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

TableOptions sorted_table() {
  TableOptions options;
  options.key = "id";
  options.sort_key = "part";
  return options;
}

// What is wrong, in words; "" if nothing is.
std::string words(const ErrorPtr& failure, const char* field) {
  if (!failure) return "";
  BOOST_TEST((failure->code() == ddbmutex::Errc::bad_option));
  BOOST_TEST(failure->field() == field);
  return failure->what();
}

std::string wrong(const Attributes& attributes,
                  const TableOptions& table = TableOptions()) {
  ddbmutex::Options options;
  options.attributes = attributes;
  return words(check_stored(options, table), "attributes");
}

std::string wrong(const Changes& changes) {
  return words(check_changes(changes, TableOptions()), "changes");
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
    attribute = with("", type, {attribute});
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

}  // namespace

BOOST_AUTO_TEST_SUITE(attributes)

// --- What is refused ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(attributes_of_every_type_are_taken) {
  BOOST_TEST(wrong(one_of_each()) == "");
  BOOST_TEST(wrong(Attributes{}) == "");
  BOOST_TEST(wrong({nested(32)}) == "");
  BOOST_TEST(wrong({nested(32, Type::map)}) == "");
}

BOOST_AUTO_TEST_CASE(name_of_the_record_or_the_key_is_refused) {
  for (const char* name :
       {"uuid", "expires", "lease", "owner", "ttl", "token", "data"}) {
    BOOST_TEST(has(wrong({text(name, "x")}), "of the record"), name);
  }
  BOOST_TEST(has(wrong({text("name", "x")}), "the table's key"));
  for (const char* name : {"id", "part"}) {
    BOOST_TEST(has(wrong({text(name, "x")}, sorted_table()), "key"), name);
    BOOST_TEST(wrong({text(name, "x")}) == "");
  }
  BOOST_TEST(wrong({text("name", "x")}, sorted_table()) == "");
  // Within a map any name may stand.
  BOOST_TEST(wrong({with("m", Type::map, {text("uuid", "x")})}) == "");
}

BOOST_AUTO_TEST_CASE(name_that_dynamodb_does_not_take_is_refused) {
  BOOST_TEST(has(wrong({text("", "x")}), "empty"));
  BOOST_TEST(wrong({text(std::string(255, 'n'), "x")}) == "");
  BOOST_TEST(has(wrong({text(std::string(256, 'n'), "x")}), "255 bytes"));
  BOOST_TEST(has(wrong({text("a\xff", "x")}), "not UTF-8"));
  BOOST_TEST(
      has(wrong({text("a", "x"), text("a", "y")}), "\"a\" is given twice"));
  const auto in_map = [](Attributes members) {
    return wrong({with("m", Type::map, std::move(members))});
  };
  BOOST_TEST(has(in_map({text("", "x")}), "empty"));
  BOOST_TEST(has(in_map({text("a\xff", "x")}), "not UTF-8"));
  BOOST_TEST(
      has(in_map({text("a", "x"), number("a", "1")}), "\"a\" is given twice"));
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
  for (const std::string& refused : {std::string(""),
                                     std::string(" 1"),
                                     std::string("1 "),
                                     std::string("+"),
                                     std::string("--1"),
                                     std::string("."),
                                     std::string("e5"),
                                     std::string("1e"),
                                     std::string("1e+"),
                                     std::string("1e5x"),
                                     std::string("1.2.3"),
                                     std::string("0x10"),
                                     std::string("1,5"),
                                     std::string("NaN"),
                                     std::string("Infinity"),
                                     "1" + nines,
                                     "1." + nines,
                                     std::string("1e126"),
                                     std::string("-1e126"),
                                     std::string("9.9e-131"),
                                     std::string("1e99999999999999999999"),
                                     std::string("1e-99999999999999999999"),
                                     std::string("1\0", 2)}) {
    BOOST_TEST(has(wrong({number("n", refused)}), "number") !=
                   has(wrong({number("n", refused)}), "38 digits"),
               refused);
  }
}

BOOST_AUTO_TEST_CASE(value_that_is_none_of_its_type_is_refused) {
  BOOST_TEST(has(wrong({text("a", "\xc3")}), "not UTF-8"));
  for (const char* value : {"", "TRUE", "1"}) {
    BOOST_TEST(has(wrong({{"a", Type::boolean, value, {}}}), "true"), value);
  }
  for (const Type type : {Type::null, Type::list, Type::map}) {
    BOOST_TEST(has(wrong({{"a", type, "x", {}}}), "a value, which"));
  }
  BOOST_TEST(
      has(wrong({{"a", Type::string_set, "x", {text("", "y")}}}), "value"));
  for (const Attribute& plain :
       {text("a", "x"), number("a", "1"), Attribute{"a", Type::null, "", {}}}) {
    Attribute wrong_one = plain;
    wrong_one.members = {text("", "b")};
    BOOST_TEST(has(wrong({wrong_one}), "members, which"));
  }
}

BOOST_AUTO_TEST_CASE(set_that_is_empty_mixed_or_doubled_is_refused) {
  for (const Type type :
       {Type::string_set, Type::number_set, Type::binary_set}) {
    BOOST_TEST(has(wrong({with("s", type, {})}), "empty set"));
    BOOST_TEST(has(wrong({with("s", type, {{"", Type::null, "", {}}})}),
                   "not of the set's type"));
  }
  const auto set_of = [](Type type, Attributes members) {
    return wrong({with("s", type, std::move(members))});
  };
  BOOST_TEST(has(set_of(Type::string_set, {text("", "a"), number("", "1")}),
                 "not of the set's type"));
  BOOST_TEST(has(set_of(Type::string_set, {text("", "a"), text("", "a")}),
                 "member is given twice"));
  // The same number.
  BOOST_TEST(
      has(set_of(Type::number_set, {number("", "10"), number("", "1e1")}),
          "member is given twice"));
  BOOST_TEST(has(set_of(Type::number_set, {number("", "x")}), "number"));
  BOOST_TEST(has(set_of(Type::string_set, {text("a", "a")}), "with a name"));
}

BOOST_AUTO_TEST_CASE(list_and_map_are_looked_into_to_the_bottom) {
  BOOST_TEST(has(wrong({nested(33)}), "more than 32 deep"));
  BOOST_TEST(has(wrong({nested(33, Type::map)}), "more than 32 deep"));
  BOOST_TEST(has(wrong({nested(5000)}), "more than 32 deep"));
  BOOST_TEST(has(wrong({with("l", Type::list, {text("a", "x")})}), "name"));
  const Attribute bad = with("", Type::list, {number("", "x")});
  BOOST_TEST(has(wrong({with("l", Type::list, {bad})}), "number"));
}

BOOST_AUTO_TEST_CASE(changes_name_each_attribute_once) {
  Changes changes;
  changes.data = "bytes";
  changes.attributes = one_of_each();
  changes.remove = {"another"};
  BOOST_TEST(wrong(changes) == "");
  changes.remove = {"another", "another"};
  BOOST_TEST(has(wrong(changes), "\"another\" is given twice"));
  changes.remove = {"text"};
  BOOST_TEST(has(wrong(changes), "\"text\" is given twice"));
  changes.remove = {"data"};
  BOOST_TEST(has(wrong(changes), "both set and removed"));
  changes.data.reset();
  BOOST_TEST(wrong(changes) == "");
  for (const char* name : {"uuid", "name", "token", ""}) {
    changes.remove = {name};
    BOOST_TEST(wrong(changes) != "", name);
  }
  changes.remove.clear();
  changes.attributes = {text("data", "x")};
  BOOST_TEST(has(wrong(changes), "of the record"));
}

// --- There and back ----------------------------------------------------------

BOOST_AUTO_TEST_CASE(attributes_come_back_as_they_went) {
  const Item item = to_item("\x01\xff", one_of_each());
  BOOST_TEST(item.size() == one_of_each().size() + 1);
  BOOST_TEST((attributes_of(item, TableOptions()) == one_of_each()));
  BOOST_TEST((data_of(item) == std::string("\x01\xff")));
  BOOST_TEST(!data_of(to_item(std::nullopt, one_of_each())));
  BOOST_TEST((data_of(to_item("", {})) == std::string()));
}

BOOST_AUTO_TEST_CASE(what_is_not_the_users_is_not_told) {
  const auto of = [](const char* name, Wire::Type type, const char* value) {
    return Wire{name, type, value, {}};
  };
  Item item = {of("id", Wire::Type::string, "k"),
               of("part", Wire::Type::string, "s"),
               of("uuid", Wire::Type::string, "u"),
               of("data", Wire::Type::binary, "not base64!"),
               of("broken", Wire::Type::binary, "not base64!"),
               of("new type", Wire::Type::other, ""),
               of("mine", Wire::Type::string, "x")};
  item.push_back(
      {"list",
       Wire::Type::list,
       "",
       {of("", Wire::Type::other, ""), of("", Wire::Type::string, "known")}});
  const Attributes told = attributes_of(item, sorted_table());
  BOOST_TEST(
      (told == Attributes{text("mine", "x"),
                          with("list", Type::list, {text("", "known")})}));
  BOOST_TEST(!data_of(item));
  BOOST_TEST(!data_of({of("data", Wire::Type::string, "AAAA")}));
  BOOST_TEST(!data_of({}));
}

namespace {

// Of any type, with names that may be and values that fit.
Attribute random_attribute(std::mt19937& random, const std::string& name,
                           int levels) {
  const auto below = [&random](unsigned n) {
    return static_cast<unsigned>(random()) % n;
  };
  const auto letters = [&] {
    std::string bytes;
    for (unsigned left = below(6); left > 0; --left) {
      bytes += static_cast<char>('a' + below(26));
    }
    return bytes;
  };
  Attribute attribute;
  attribute.name = name;
  attribute.type = static_cast<Type>(below(levels > 0 ? 10 : 5));
  switch (attribute.type) {
    case Type::string:
    case Type::binary:
      attribute.value = letters();
      break;
    case Type::number:
      attribute.value = std::to_string(static_cast<int>(random()));
      break;
    case Type::boolean:
      attribute.value = below(2) == 0 ? "true" : "false";
      break;
    case Type::null:
      break;
    case Type::list:
    case Type::map:
      for (unsigned i = below(4); i > 0; --i) {
        const bool named = attribute.type == Type::map;
        attribute.members.push_back(random_attribute(
            random, named ? "m" + std::to_string(i) : "", levels - 1));
      }
      break;
    default:
      for (unsigned i = 1 + below(4); i > 0; --i) {
        attribute.members.push_back(
            {"",
             attribute.type == Type::string_set   ? Type::string
             : attribute.type == Type::number_set ? Type::number
                                                  : Type::binary,
             std::to_string(i),
             {}});
      }
  }
  return attribute;
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_attributes_are_taken_and_come_back) {
  std::mt19937 random(20261121);
  for (int i = 0; i < 2000; ++i) {
    const Attributes all = {random_attribute(random, "a", 5),
                            random_attribute(random, "b", 5)};
    BOOST_TEST_REQUIRE(wrong(all) == "");
    BOOST_TEST(
        (attributes_of(to_item(std::nullopt, all), TableOptions()) == all));
  }
}

// --- Comparing ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(order_counts_in_lists_alone) {
  const Attributes forth = {text("", "a"), text("", "b")};
  const Attributes back = {text("", "b"), text("", "a")};
  BOOST_TEST((with("s", Type::string_set, forth) ==
              with("s", Type::string_set, back)));
  BOOST_TEST((with("l", Type::list, forth) != with("l", Type::list, back)));
  const Attributes named = {text("x", "1"), number("y", "2")};
  const Attributes turned = {number("y", "2"), text("x", "1")};
  BOOST_TEST((with("m", Type::map, named) == with("m", Type::map, turned)));
  BOOST_TEST((with("m", Type::map, named) !=
              with("m", Type::map, {text("x", "1"), number("y", "3")})));
  BOOST_TEST(
      (with("m", Type::map, named) != with("m", Type::map, {text("x", "1")})));
}

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
}

// --- In a table --------------------------------------------------------------

BOOST_DATA_TEST_CASE(what_is_stored_with_a_lock_is_inspected, kEngines, kind) {
  auto& engine = tests::Engine::running(kind);
  for (const bool keep : {false, true}) {
    auto options = tests::on_table(tests::table_at(engine));
    options.data = std::string("\0 and \xff", 7);
    options.attributes = one_of_each();
    options.attributes.push_back(nested(10));
    options.keep_row = keep;
    ddbmutex::DdbMutex mutex(tests::fresh_name(), options);
    mutex.lock();
    const auto info = options.table->inspect(mutex.name());
    BOOST_TEST((info.data == options.data));
    BOOST_TEST((Attribute{"", Type::map, "", info.attributes} ==
                Attribute{"", Type::map, "", options.attributes}));
  }
}

// Nothing that we take is refused.
BOOST_DATA_TEST_CASE(number_that_is_taken_is_taken_by_engines_too, kEngines,
                     kind) {
  auto& engine = tests::Engine::running(kind);
  const std::string name = tests::fresh_name();
  for (const std::string& value :
       {std::string("0"), std::string("-0.0"), std::string("007"),
        std::string("1e3"), std::string("-1.5E+3"), std::string(38, '9'),
        "1" + std::string(125, '0'), std::string("9.9e125"),
        std::string("1e-130")}) {
    BOOST_TEST(wrong({number("n", value)}) == "", value);
    const auto answer =
        engine.call("PutItem", tests::place_in(engine, "Item", name) +
                                   R"(,"n":{"N":")" + value + R"("}}})");
    BOOST_TEST(answer.status == 200, value << ": " << answer.body);
    const auto item = tests::item_of(engine, name);
    BOOST_TEST((attributes_of(*item, TableOptions()) ==
                Attributes{number("n", value)}),
               value);
  }
}

BOOST_AUTO_TEST_SUITE_END()
