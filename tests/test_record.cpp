// Items read with distrust, and requests as DynamoDB wants them.
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/requests.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/body_of.hpp"
#include "tests/support/words.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace lock = ddbmutex::lock;
using dynamodb::Action;
using dynamodb::Attribute;
using dynamodb::Item;
using lock::Request;
using lock::Row;
using lock::RowTarget;
using lock::ServiceTime;
using tests::body_of;
using tests::word;
using Type = Attribute::Type;
using Verb = Request::Verb;

namespace {

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

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
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
  if (verb == Verb::force) request.seen = {"theirs", ServiceTime(77)};
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
    " AND attribute_not_exists(#ttl)" +
    kCanCount + ") OR (" + kOver + kCanCount + " AND #uuid <> :uuid)";

}  // namespace

BOOST_AUTO_TEST_SUITE(record)

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

BOOST_AUTO_TEST_CASE(release_deletes_whatever_version_bears_its_uuid) {
  const std::string condition = R"("ConditionExpression":"#uuid = :uuid",)"
                                R"("ExpressionAttributeNames":{)";
  BOOST_TEST(body_of(deleted(), request(Verb::release)) ==
             kKey + condition +
                 R"("#uuid":"uuid"},)"
                 R"("ExpressionAttributeValues":{":uuid":{"S":"mine"}})" +
                 kTellsRow);
  // It marks a row that is kept as free.
  BOOST_TEST(body_of(kept(), request(Verb::release)) ==
             kKey + R"("UpdateExpression":"SET #expires = :released",)" +
                 condition +
                 R"("#expires":"expires","#uuid":"uuid"},)"
                 R"("ExpressionAttributeValues":{":released":{"N":"0"},)"
                 R"(":uuid":{"S":"mine"}})" +
                 kTellsRow);
}

// --- Kept rows ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(take_of_a_kept_row_updates_it_and_counts) {
  BOOST_TEST(
      body_of(kept(), request(Verb::take)) ==
      kKey +
          R"("UpdateExpression":"SET #uuid = :uuid, #expires = :expires, )"
          R"(#lease = :lease, #owner = :owner ADD #token :one REMOVE #ttl",)"
          R"("ConditionExpression":"()" +
          kKeptFreeOrOver +
          R"(","ExpressionAttributeNames":{"#uuid":"uuid",)"
          R"("#expires":"expires","#lease":"lease","#owner":"owner",)"
          R"("#token":"token","#ttl":"ttl"},"ExpressionAttributeValues":{)"
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
  const std::string changes =
      R"(, #set0 = :set0, #set1 = :set1 REMOVE #removed0, #removed1",)";
  for (const Verb verb : {Verb::release, Verb::renew}) {
    const std::string body = body_of(kept(), with_changes(verb));
    BOOST_TEST(has(body, changes + R"("ConditionExpression":"#uuid = :uuid)"),
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
  BOOST_TEST(has(body, changes), body);
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
  BOOST_TEST(body_of(kept(), request(Verb::force)) ==
             kKey + R"("UpdateExpression":"SET #expires = :released",)" +
                 condition +
                 R"(","ExpressionAttributeNames":{"#expires":"expires",)"
                 R"("#uuid":"uuid"},"ExpressionAttributeValues":{)"
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
