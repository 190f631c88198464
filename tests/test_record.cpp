// Items: a lock's row read with distrust, and requests as DynamoDB wants them;
// what users store with a lock, which comes back as it was; and every type of
// attribute as JSON, of which nothing is taken for what it is not.
#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ddbmutex.hpp"
#include "ddbmutex/attributes.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/requests.hpp"
#include "ddbmutex/lock/row.hpp"
#include "sigv4/base64.hpp"
#include "tests/support/body_of.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/words.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace lock = ddbmutex::lock;
namespace sigv4 = ddbmutex::sigv4;
using namespace tests;
using ddbmutex::Attributes;
using ddbmutex::Changes;
using ddbmutex::TableOptions;
using dynamodb::Action;
using dynamodb::Item;
using lock::Request;
using lock::Row;
using lock::RowTarget;
using lock::ServiceTime;
using sigv4::base64_decode;
using sigv4::base64_encode;
using Verb = Request::Verb;

// === A lock's row ============================================================

BOOST_AUTO_TEST_SUITE(record)

namespace {

using dynamodb::Attribute;
using Type = Attribute::Type;

const Attribute kName{"name", Type::string, "ddblock-a"};
const Attribute kUuid{"uuid", Type::string, "0123456789abcdef"};
const Attribute kExpires{"expires", Type::number, "1800000000123456789"};
const Attribute kLease{"lease", Type::number, "60000"};

Attribute string(const char* name, std::string value) {
  return {name, Type::string, std::move(value)};
}
Attribute number(const char* name, std::string value) {
  return {name, Type::number, std::move(value)};
}

Item with_uuid(Attribute uuid) {
  return {kName, std::move(uuid), kExpires, kLease};
}

void check_not_understood(const std::string& what, const Item& item,
                          const std::string& attribute) {
  BOOST_TEST_CONTEXT(what) {
    const Row row = lock::read_row(item);
    BOOST_TEST(word(row.kind) == "unknown");
    BOOST_TEST(std::string(row.problem).rfind(attribute + " ", 0) == 0u);
    BOOST_TEST(!row.lease.has_value());
    BOOST_TEST(row.uuid.empty());
  }
}

// --- What is asked for -------------------------------------------------------

RowTarget deleted() {
  RowTarget place;
  place.table = "locks";
  place.key = "ddblock-nightly";
  place.owner = "host:42";
  return place;
}
RowTarget kept() {
  RowTarget place = deleted();
  place.policy.keeps_row = true;
  place.policy.keep_data = true;
  return place;
}

Request request(Verb verb) {
  Request request;
  request.verb = verb;
  request.uuid = "mine";
  request.stamp = ServiceTime(1'800'000'060'000'000'001);
  request.lease = std::chrono::milliseconds(12345);
  request.earliest = ServiceTime(1'799'999'998'000'000'000);
  request.token = 7;
  if (verb == Verb::renew) request.own = {ServiceTime(5), ServiceTime(6)};
  if (verb == Verb::force || verb == Verb::wait) {
    request.seen = {"theirs", ServiceTime(77)};
  }
  return request;
}

Request with_changes(Verb verb) {
  lock::Changes changes;
  changes.set = {string("state", "half"), {"data", Type::binary, "AAEC"}};
  changes.remove = {"error", "since"};
  Request changing = request(verb);
  changing.changes = std::make_shared<const lock::Changes>(std::move(changes));
  return changing;
}

// --- What is sent ------------------------------------------------------------

const std::string kTable = R"({"TableName":"locks",)";
const std::string kKey = kTable + R"("Key":{"name":{"S":"ddblock-nightly"}},)";
const std::string kTellsRow =
    R"(,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"})";

const std::string kOver =
    "#expires >= :released AND #expires < :earliest"
    " AND attribute_type(#uuid, :string) AND size(#uuid) <= :longest_uuid"
    " AND (attribute_not_exists(#lease)"
    " OR #lease BETWEEN :shortest_lease AND :longest_lease)";
const std::string kOverValues =
    R"(":released":{"N":"0"},":earliest":{"N":"1799999998000000000"},)"
    R"(":string":{"S":"S"},":longest_uuid":{"N":"1024"},)"
    R"(":shortest_lease":{"N":"1"},":longest_lease":{"N":"31622400000"})";
const std::string kFreeOrOver = "attribute_not_exists(#key) OR (" + kOver +
                                " AND attribute_not_exists(#token))";
const std::string kCanCount =
    " AND (attribute_not_exists(#token)"
    " OR #token BETWEEN :no_token AND :last_token)";
const std::string kKeptFreeOrOver =
    "attribute_not_exists(#uuid) AND attribute_not_exists(#expires)"
    " AND attribute_not_exists(#lease) AND attribute_not_exists(#owner)"
    " AND attribute_not_exists(#ttl) AND attribute_not_exists(#waiting)" +
    kCanCount + ") OR (" + kOver + kCanCount + " AND #uuid <> :uuid)";

}  // namespace

// --- Reading ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(row_with_a_token_of_any_type_is_a_kept_one) {
  for (const Attribute& token :
       {number("token", "7"), string("token", "x"), number("token", "-1"),
        Attribute{"token", Type::list, "", {}},
        Attribute{"token", Type::other, ""}}) {
    BOOST_TEST(
        lock::read_row({kName, kUuid, kExpires, kLease, token}).has_token);
    BOOST_TEST(lock::read_row({kName, token}).has_token);
  }
  BOOST_TEST(!lock::read_row({kName, kUuid, kExpires, kLease}).has_token);
}

BOOST_AUTO_TEST_CASE(token_that_is_no_whole_number_is_not_understood) {
  const auto with_token = [](Attribute token) -> Item {
    return {kName, kUuid, kExpires, kLease, std::move(token)};
  };
  check_not_understood("string", with_token(string("token", "7")), "token");
  check_not_understood("map", with_token({"token", Type::map, "", {}}),
                       "token");
  for (const char* value :
       {"-1", "1.5", "1E3", "", "9000000000000000000", "9223372036854775808",
        "99999999999999999999999999999999999999"}) {
    check_not_understood(value, with_token(number("token", value)), "token");
    check_not_understood(value, {kName, number("token", value)}, "token");
  }
}

BOOST_AUTO_TEST_CASE(uuid_that_is_none_is_not_understood) {
  check_not_understood("number", with_uuid(number("uuid", "7")), "uuid");
  check_not_understood("binary", with_uuid({"uuid", Type::binary, "AAAA"}),
                       "uuid");
  check_not_understood("list", with_uuid({"uuid", Type::other, ""}), "uuid");
  check_not_understood("empty", with_uuid(string("uuid", "")), "uuid");
  check_not_understood(
      "1,025 bytes", with_uuid(string("uuid", std::string(1025, 'a'))), "uuid");
  check_not_understood(
      "400 KB", with_uuid(string("uuid", std::string(400 << 10, '['))), "uuid");
  const Row longest =
      lock::read_row(with_uuid(string("uuid", std::string(1024, 'a'))));
  BOOST_TEST(word(longest.kind) == "record");
}

// --- Writing ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(take_puts_the_whole_record) {
  const std::string body = body_of(deleted(), request(Verb::take));
  BOOST_TEST(
      body ==
      kTable +
          R"("Item":{"name":{"S":"ddblock-nightly"},"uuid":{"S":"mine"},)"
          R"("expires":{"N":"1800000060000000001"},"lease":{"N":"12345"},)"
          R"("owner":{"S":"host:42"},"ttl":{"N":"1800086460"}},)"
          R"("ConditionExpression":")" +
          kFreeOrOver +
          R"(","ExpressionAttributeNames":{"#key":"name",)"
          R"("#expires":"expires","#uuid":"uuid","#lease":"lease",)"
          R"("#token":"token"},"ExpressionAttributeValues":{)" +
          kOverValues + "}" + kTellsRow);
}

BOOST_AUTO_TEST_CASE(take_of_a_stale_record_pins_the_version_that_was_seen) {
  Request take = request(Verb::take);
  take.seen = {"theirs", ServiceTime(77)};
  take.own = {ServiceTime(5), ServiceTime(6)};
  const std::string own = " OR (#uuid = :uuid AND #expires IN (:own0, :own1))";
  const std::string body = body_of(deleted(), take);
  BOOST_TEST(has(body, kFreeOrOver +
                           " OR (#uuid = :seen_uuid"
                           " AND #expires = :seen_expires"
                           " AND attribute_not_exists(#token))" +
                           own + "\""),
             body);
  BOOST_TEST(has(body, R"(":seen_uuid":{"S":"theirs"},)"
                       R"(":seen_expires":{"N":"77"},":uuid":{"S":"mine"},)"
                       R"(":own0":{"N":"5"},":own1":{"N":"6"})"),
             body);
  const std::string of_kept = body_of(kept(), take);
  BOOST_TEST(has(of_kept, kKeptFreeOrOver +
                              " OR (#uuid = :seen_uuid"
                              " AND #expires = :seen_expires)" +
                              own + "\""),
             of_kept);
}

BOOST_AUTO_TEST_CASE(renewal_moves_only_expires_and_ttl_of_its_own_version) {
  const std::string condition = R"("ConditionExpression":"#uuid = :uuid AND )"
                                R"x(#expires IN (:own0, :own1)",)x";
  BOOST_TEST(
      body_of(deleted(), request(Verb::renew)) ==
      kKey + R"("UpdateExpression":"SET #expires = :expires, #ttl = :ttl",)" +
          condition +
          R"("ExpressionAttributeNames":{"#expires":"expires","#ttl":"ttl",)"
          R"("#uuid":"uuid"},"ExpressionAttributeValues":{)"
          R"(":expires":{"N":"1800000060000000001"},)"
          R"(":ttl":{"N":"1800086460"},":uuid":{"S":"mine"},)"
          R"(":own0":{"N":"5"},":own1":{"N":"6"}})" +
          kTellsRow);
  Request telling = request(Verb::renew);
  telling.wants_row = true;
  const std::string of_kept = body_of(kept(), telling);
  BOOST_TEST(has(of_kept, R"("SET #expires = :expires",)" + condition),
             of_kept);
  BOOST_TEST(has(of_kept, R"("ReturnValues":"ALL_NEW")"), of_kept);
}

// It also asks whether another host waits.
BOOST_AUTO_TEST_CASE(release_deletes_whatever_version_bears_its_uuid) {
  const std::string condition = R"("ConditionExpression":"#uuid = :uuid",)"
                                R"("ExpressionAttributeNames":{)";
  BOOST_TEST(body_of(deleted(), request(Verb::release)) ==
             kKey + condition +
                 R"("#uuid":"uuid"},)"
                 R"("ExpressionAttributeValues":{":uuid":{"S":"mine"}})" +
                 R"(,"ReturnValues":"ALL_OLD")" + kTellsRow);
  // It marks a row that is kept as free.
  BOOST_TEST(body_of(kept(), request(Verb::release)) ==
             kKey +
                 R"("UpdateExpression":"SET #expires = :released)"
                 R"( REMOVE #waiting",)" +
                 condition +
                 R"("#expires":"expires","#waiting":"waiting","#uuid":"uuid"},)"
                 R"("ExpressionAttributeValues":{":released":{"N":"0"},)"
                 R"(":uuid":{"S":"mine"}})" +
                 R"(,"ReturnValues":"UPDATED_OLD")" + kTellsRow);
}

// No version changes: neither the holder nor any waiter is disturbed.
BOOST_AUTO_TEST_CASE(waiter_writes_nothing_but_that_it_waits) {
  const std::string update =
      kKey + R"("UpdateExpression":"SET #waiting = :owner",)"
             R"("ConditionExpression":"#uuid = :seen_uuid AND )";
  const std::string values = R"("ExpressionAttributeValues":{)"
                             R"(":owner":{"S":"host:42"},)"
                             R"(":seen_uuid":{"S":"theirs"})";
  BOOST_TEST(body_of(deleted(), request(Verb::wait)) ==
             update +
                 R"x(attribute_not_exists(#waiting)",)x"
                 R"("ExpressionAttributeNames":{"#waiting":"waiting",)"
                 R"("#uuid":"uuid"},)" +
                 values + "}" + kTellsRow);
  BOOST_TEST(
      body_of(kept(), request(Verb::wait)) ==
      update +
          R"x(#expires > :released AND attribute_not_exists(#waiting)",)x"
          R"("ExpressionAttributeNames":{"#waiting":"waiting",)"
          R"("#uuid":"uuid","#expires":"expires"},)" +
          values + R"(,":released":{"N":"0"}})" + kTellsRow);
}

// --- Kept rows ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(take_of_a_kept_row_updates_it_and_counts) {
  BOOST_TEST(
      body_of(kept(), request(Verb::take)) ==
      kKey +
          R"("UpdateExpression":"SET #uuid = :uuid, #expires = :expires, )"
          R"(#lease = :lease, #owner = :owner ADD #token :one )"
          R"(REMOVE #ttl, #waiting","ConditionExpression":"()" +
          kKeptFreeOrOver +
          R"(","ExpressionAttributeNames":{"#uuid":"uuid",)"
          R"("#expires":"expires","#lease":"lease","#owner":"owner",)"
          R"("#token":"token","#ttl":"ttl","#waiting":"waiting"},)"
          R"("ExpressionAttributeValues":{)"
          R"(":uuid":{"S":"mine"},":expires":{"N":"1800000060000000001"},)"
          R"(":lease":{"N":"12345"},":owner":{"S":"host:42"},)"
          R"(":one":{"N":"1"},":no_token":{"N":"0"},)"
          R"(":last_token":{"N":"8999999999999999998"},)" +
          kOverValues + R"(},"ReturnValues":"ALL_NEW")" + kTellsRow);
}

BOOST_AUTO_TEST_CASE(take_that_must_find_a_row_makes_none) {
  RowTarget must = kept();
  must.policy.must_exist = true;
  const std::string body = body_of(must, request(Verb::take));
  BOOST_TEST(
      has(body, R"("ConditionExpression":"(attribute_exists(#key) AND )" +
                    kKeptFreeOrOver + "\""),
      body);
  BOOST_TEST(has(body, R"("#key":"name")"), body);
}

BOOST_AUTO_TEST_CASE(changes_of_a_kept_row_ask_for_its_token) {
  const auto changes = [](const char* removed_before) {
    return R"(, #set0 = :set0, #set1 = :set1 REMOVE )" +
           std::string(removed_before) + R"(#removed0, #removed1",)";
  };
  for (const Verb verb : {Verb::release, Verb::renew}) {
    const std::string body = body_of(kept(), with_changes(verb));
    const char* before = verb == Verb::release ? "#waiting, " : "";
    BOOST_TEST(
        has(body, changes(before) + R"("ConditionExpression":"#uuid = :uuid)"),
        body);
    BOOST_TEST(has(body, R"( AND #token = :token")"), body);
    BOOST_TEST(has(body, R"(":token":{"N":"7"})"), body);
    BOOST_TEST(has(body, R"("#set0":"state","#set1":"data",)"
                         R"("#removed0":"error","#removed1":"since"})"),
               body);
    BOOST_TEST(has(body, R"(":set0":{"S":"half"},":set1":{"B":"AAEC"}})"),
               body);
  }
  const std::string body = body_of(deleted(), with_changes(Verb::renew));
  BOOST_TEST(has(body, changes("")), body);
  BOOST_TEST(!has(body, "token"), body);
}

BOOST_AUTO_TEST_CASE(kept_row_is_never_put_and_never_deleted) {
  for (const bool keep_data : {false, true}) {
    const lock::RowPolicy kept{true, keep_data, false};
    BOOST_TEST((action_of(Verb::take, kept) == Action::update_item));
    BOOST_TEST((action_of(Verb::release, kept) == Action::update_item));
    const lock::RowPolicy deleted{false, keep_data, false};
    BOOST_TEST((action_of(Verb::take, deleted) ==
                (keep_data ? Action::update_item : Action::put_item)));
    BOOST_TEST((action_of(Verb::release, deleted) == Action::delete_item));
    for (const lock::RowPolicy& policy : {kept, deleted}) {
      BOOST_TEST((action_of(Verb::renew, policy) == Action::update_item));
      BOOST_TEST((action_of(Verb::look, policy) == Action::get_item));
      BOOST_TEST(
          (action_of(Verb::force, policy) == action_of(Verb::release, policy)));
    }
  }
}

BOOST_AUTO_TEST_CASE(check_asks_for_uuid_time_and_of_a_kept_row_the_token) {
  const std::string condition = kKey +
                                R"("ConditionExpression":"#uuid = :uuid AND )"
                                R"(#expires > :released)";
  BOOST_TEST(body_of(kept(), request(Verb::check)) ==
             condition +
                 R"( AND #token = :token","ExpressionAttributeNames":{)"
                 R"("#uuid":"uuid","#expires":"expires","#token":"token"},)"
                 R"("ExpressionAttributeValues":{":uuid":{"S":"mine"},)"
                 R"(":released":{"N":"0"},":token":{"N":"7"}}})");
  BOOST_TEST(body_of(deleted(), request(Verb::check)) ==
             condition + R"(","ExpressionAttributeNames":{"#uuid":"uuid",)"
                         R"("#expires":"expires"},)"
                         R"("ExpressionAttributeValues":{)"
                         R"(":uuid":{"S":"mine"},":released":{"N":"0"}}})");
}

BOOST_AUTO_TEST_CASE(force_frees_exactly_the_version_that_was_seen) {
  const std::string condition =
      R"("ConditionExpression":"#uuid = :seen_uuid AND )"
      R"(#expires = :seen_expires)";
  const std::string values =
      R"(":seen_uuid":{"S":"theirs"},":seen_expires":{"N":"77"}})" + kTellsRow;
  BOOST_TEST(
      body_of(kept(), request(Verb::force)) ==
      kKey +
          R"("UpdateExpression":"SET #expires = :released)"
          R"( REMOVE #waiting",)" +
          condition +
          R"(","ExpressionAttributeNames":{"#expires":"expires",)"
          R"("#waiting":"waiting","#uuid":"uuid"},"ExpressionAttributeValues":{)"
          R"(":released":{"N":"0"},)" +
          values);
  // A row with a token is never deleted.
  BOOST_TEST(body_of(deleted(), request(Verb::force)) ==
             kKey + condition +
                 R"x( AND attribute_not_exists(#token)",)x"
                 R"("ExpressionAttributeNames":{"#uuid":"uuid",)"
                 R"("#expires":"expires","#token":"token"},)"
                 R"("ExpressionAttributeValues":{)" +
                 values);
}

// --- uuids -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(fresh_uuids_differ_and_every_digit_takes_every_value) {
  std::set<std::string> seen;
  std::array<std::set<char>, 32> digits;
  for (int i = 0; i < 10'000; ++i) {
    const std::string uuid = lock::fresh_uuid();
    BOOST_REQUIRE(uuid.size() == 32u);
    BOOST_REQUIRE(seen.insert(uuid).second);
    for (std::size_t d = 0; d < 32; ++d) digits[d].insert(uuid[d]);
  }
  // Ten thousand even draws miss one of 16 values once in 10^278 runs.
  for (const auto& values : digits) BOOST_TEST(values.size() == 16u);
}

BOOST_AUTO_TEST_SUITE_END()

// === What users store with a lock ============================================

// What is taken, what is refused before anything
// is sent, and that it comes back as it was.
BOOST_AUTO_TEST_SUITE(attributes)

namespace {

using ddbmutex::Attribute;
using ddbmutex::detail::attributes_of;
using ddbmutex::detail::check_changes;
using ddbmutex::detail::check_stored;
using ddbmutex::detail::data_of;
using ddbmutex::detail::ErrorPtr;
using Type = Attribute::Type;
using Wire = dynamodb::Attribute;

const auto kEngines = boost::unit_test::data::make(engine_kinds());

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

// --- What is refused ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(attributes_of_every_type_are_taken) {
  BOOST_TEST(wrong(one_of_each()) == "");
  BOOST_TEST(wrong(Attributes{}) == "");
  BOOST_TEST(wrong({nested(32)}) == "");
  BOOST_TEST(wrong({nested(32, Type::map)}) == "");
}

BOOST_AUTO_TEST_CASE(name_of_the_record_or_the_key_is_refused) {
  for (const char* name : {"uuid", "expires", "lease", "owner", "ttl", "token",
                           "data", "waiting"}) {
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
  auto& engine = Engine::running(kind);
  for (const bool keep : {false, true}) {
    auto options = on_table(table_at(engine));
    options.data = std::string("\0 and \xff", 7);
    options.attributes = one_of_each();
    options.attributes.push_back(nested(10));
    options.keep_row = keep;
    ddbmutex::DdbMutex mutex(fresh_name(), options);
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
    BOOST_TEST((attributes_of(*item, TableOptions()) ==
                Attributes{number("n", value)}),
               value);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// === Items as DynamoDB's JSON ================================================

// Every type is read and written, and nothing that is not of its type is taken
// for it.
BOOST_AUTO_TEST_SUITE(json_of_items)

namespace {

using dynamodb::Attribute;
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

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

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

// === Base64 ==================================================================

// Against RFC 4648.
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
