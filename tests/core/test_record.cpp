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
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/requests.hpp"
#include "ddbmutex/lock/row.hpp"
#include "ddbmutex/stored.hpp"
#include "sigv4/base64.hpp"
#include "tests/support/body_of.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/words.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace lock = ddbmutex::lock;
namespace sigv4 = ddbmutex::sigv4;
using namespace tests;
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

// What is taken, what is refused before anything is sent, and what is told.
BOOST_AUTO_TEST_SUITE(stored)

namespace {

using ddbmutex::detail::check_changes;
using ddbmutex::detail::check_stored;
using ddbmutex::detail::data_of;
using ddbmutex::detail::ErrorPtr;
using ddbmutex::detail::item_text;

TableOptions table_of(const char* key, const char* sort_key = "") {
  TableOptions options;
  options.rows = &lock::kDdblock;
  options.key = key;
  options.sort_key = sort_key;
  return options;
}

// What is wrong, in words; "" if nothing is.
std::string words(const ErrorPtr& failure, const char* field) {
  if (!failure) return "";
  BOOST_TEST((failure->code() == ddbmutex::Errc::bad_option));
  BOOST_TEST(failure->field() == field);
  return failure->what();
}

std::string wrong(const std::string& item,
                  const TableOptions& table = table_of("name"),
                  bool keep_row = false) {
  ddbmutex::Options options;
  options.item = item;
  options.keep_row = keep_row;
  return words(check_stored(options, table), "item");
}

std::string wrong(const Changes& changes) {
  return words(check_changes(changes, table_of("name")), "changes");
}

std::string text(const std::string& name, const std::string& value = "x") {
  return '"' + name + R"(":{"S":")" + value + R"("})";
}

std::string one(const std::string& name) { return "{" + text(name) + "}"; }

std::string nested(int levels) {
  std::string json = R"({"S":"innermost"})";
  for (int i = 0; i < levels; ++i) json = R"({"L":[)" + json + "]}";
  return R"({"deep":)" + json + "}";
}

// So many attributes, called "a0" and so on.
std::string many(int count) {
  std::string json;
  for (int i = 0; i < count; ++i) {
    json += (i == 0 ? "{" : ",") + text("a" + std::to_string(i));
  }
  return json + "}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(item_of_every_type_is_taken) {
  BOOST_TEST(wrong("") == "");
  BOOST_TEST(wrong(" {} ") == "");
  BOOST_TEST(
      wrong(R"({"s":{"S":""},"n":{"N":"-1.5e3"},"b":{"B":"AA=="},)"
            R"("yes":{"BOOL":true},"null":{"NULL":true},"ss":{"SS":["a"]},)"
            R"("ns":{"NS":["1"]},"bs":{"BS":["AA=="]},"l":{"L":[{"S":"x"}]},)"
            R"("m":{"M":{"uuid":{"S":"x"}}}})") == "");
  BOOST_TEST(wrong(nested(32)) == "");
  BOOST_TEST(wrong(many(101)) == "");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_item_is_refused) {
  for (const std::string& item :
       {std::string("x"), std::string("[]"), std::string("null"),
        std::string("{"), std::string(R"({"a":"x"})"),
        std::string(R"({"a":{}})"), std::string(R"({"a":{"S":1}})"),
        std::string(R"({"a":{"N":5}})"), std::string(R"({"a":{"NULL":false}})"),
        std::string(R"({"a":{"S":"x","N":"1"}})"),
        std::string("{\"a\":{\"S\":\"\xff\"}}"), nested(33),
        one("a") + one("b")}) {
    BOOST_TEST(has(wrong(item), "not an item in DynamoDB's JSON"), item);
  }
  BOOST_TEST(has(wrong(R"({"a":{"NEW":"x"}})"), "\"a\" is not of a type"));
  BOOST_TEST(
      has(wrong(R"({"a":{"L":[{"NEW":"x"}]}})"), "\"a\" is not of a type"));
}

BOOST_AUTO_TEST_CASE(name_that_cannot_be_stored_is_refused) {
  for (const char* name : {"uuid", "expires", "lease", "owner", "ttl", "token",
                           "data", "waiting"}) {
    BOOST_TEST(has(wrong(one(name)), "of the record"), name);
  }
  BOOST_TEST(has(wrong(one("name")), "the table's key"));
  const TableOptions sorted = table_of("id", "part");
  for (const char* name : {"id", "part"}) {
    BOOST_TEST(has(wrong(one(name), sorted), "the table's key"), name);
    BOOST_TEST(wrong(one(name)) == "");
  }
  BOOST_TEST(wrong(one("name"), sorted) == "");
  BOOST_TEST(has(wrong(one("")), "empty"));
  BOOST_TEST(has(wrong(one(std::string(256, 'n'))), "longer than 255 bytes"));
  BOOST_TEST(has(wrong("{" + text("a") + "," + text("a") + "}"),
                 "\"a\" is given twice"));
  BOOST_TEST(wrong(many(100), table_of("name"), true) == "");
  BOOST_TEST(has(wrong(many(101), table_of("name"), true), "more than 100"));
}

BOOST_AUTO_TEST_CASE(changes_name_each_attribute_once) {
  Changes changes;
  changes.data = "bytes";
  changes.item = one("text");
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
  changes.remove = {"another"};
  changes.item = many(99);
  BOOST_TEST(wrong(changes) == "");
  changes.item = many(100);
  BOOST_TEST(has(wrong(changes), "more than 100"));
  changes.remove.clear();
  changes.item = one("data");
  BOOST_TEST(has(wrong(changes), "of the record"));
}

BOOST_AUTO_TEST_CASE(what_is_not_the_users_is_not_told) {
  using dynamodb::Attribute;
  const auto of = [](const char* name, Attribute::Type type,
                     const char* value) {
    return Attribute{name, type, value, {}};
  };
  Item item = {of("id", Attribute::Type::string, "k"),
               of("part", Attribute::Type::string, "s"),
               of("uuid", Attribute::Type::string, "u"),
               of("data", Attribute::Type::binary, "not base64!"),
               of("new type", Attribute::Type::other, ""),
               of("mine", Attribute::Type::string, "x")};
  item.push_back({"list",
                  Attribute::Type::list,
                  "",
                  {of("", Attribute::Type::other, ""),
                   of("", Attribute::Type::string, "known")}});
  BOOST_TEST(item_text(item, table_of("id", "part")) ==
             R"({"mine":{"S":"x"},"list":{"L":[{"S":"known"}]}})");
  item.resize(5);
  BOOST_TEST(item_text(item, table_of("id", "part")) == "");
  BOOST_TEST(!data_of(item));
  BOOST_TEST(!data_of({of("data", Attribute::Type::string, "AAAA")}));
  BOOST_TEST(!data_of({}));
}

// As it was given, in DynamoDB's own words.
BOOST_DATA_TEST_CASE(what_is_stored_with_a_lock_is_inspected,
                     boost::unit_test::data::make(engine_kinds()), kind) {
  for (const bool keep : {false, true}) {
    auto options = on_table(table_at(Engine::running(kind)));
    options.data = std::string("\0 and \xff", 7);
    options.item = R"({"state":{"S":"new"}})";
    options.keep_row = keep;
    ddbmutex::DdbMutex mutex(fresh_name(), options);
    BOOST_TEST(mutex.item() == "");
    mutex.lock();
    BOOST_TEST(mutex.item() == options.item);
    const auto info = options.table->inspect(mutex.name());
    BOOST_TEST((info.data == options.data));
    BOOST_TEST(info.item == options.item);
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
