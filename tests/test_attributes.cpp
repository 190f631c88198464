// What users store with a lock: what is taken, what is refused before anything
// is sent, and that it comes back as it was.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>

#include "ddbmutex.hpp"
#include "ddbmutex/attributes.hpp"
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
