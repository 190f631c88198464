// ddbmutex/record: items read with distrust, requests as DynamoDB wants them.
#include <rapidjson/document.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/requests.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/body_of.hpp"
#include "tests/support/words.hpp"

using namespace ddbmutex;
using dynamodb::Attribute;
using dynamodb::Item;
using lock::Request;
using lock::Row;
using lock::RowTarget;
using lock::ServiceTime;
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
Item with_expires(Attribute expires) {
  return {kName, kUuid, std::move(expires), kLease};
}
Item with_lease(Attribute lease) {
  return {kName, kUuid, kExpires, std::move(lease)};
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

rapidjson::Document parse(const std::string& body) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(body.data(),
                                                        body.size());
  BOOST_REQUIRE_MESSAGE(!document.HasParseError(), body);
  BOOST_REQUIRE(document.IsObject());
  return document;
}

std::string text(const rapidjson::Value& value) {
  BOOST_REQUIRE(value.IsString());
  return {value.GetString(), value.GetStringLength()};
}

// "S:text" of {"S":"text"}.
std::string typed(const rapidjson::Value& value) {
  BOOST_REQUIRE(value.IsObject());
  BOOST_REQUIRE(value.MemberCount() == 1u);
  const auto member = value.MemberBegin();
  return text(member->name) + ":" + text(member->value);
}

std::set<std::string> members(const rapidjson::Value& object) {
  std::set<std::string> names;
  for (const auto& member : object.GetObject()) {
    BOOST_TEST(names.insert(text(member.name)).second);  // None twice.
  }
  return names;
}

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

// All placeholders with that first character in the request's expressions.
std::set<std::string> used(const rapidjson::Value& body, char first) {
  std::set<std::string> names;
  for (const char* part : {"ConditionExpression", "UpdateExpression"}) {
    if (!body.HasMember(part)) continue;
    const std::string expression = text(body[part]);
    for (std::size_t i = 0; i < expression.size(); ++i) {
      if (expression[i] != first) continue;
      std::size_t end = i + 1;
      while (end < expression.size() && in_name(expression[end])) ++end;
      names.insert(expression.substr(i, end - i));
    }
  }
  return names;
}

std::string write_check(const RowTarget& place, const char* uuid,
                        std::int64_t token) {
  Request request;
  request.verb = Verb::check;
  request.uuid = uuid;
  request.token = token;
  return tests::body_of(place, request);
}

std::string write_force(const RowTarget& place, const Request::Version& seen) {
  Request request;
  request.verb = Verb::force;
  request.seen = seen;
  return tests::body_of(place, request);
}

RowTarget place() {
  RowTarget place;
  place.table = "locks";
  place.key = "ddblock-nightly";
  place.owner = "host:42";
  return place;
}

constexpr ServiceTime kStamp{1'800'000'060'000'000'001};

Request take() {
  Request request;
  request.verb = Verb::take;
  request.uuid = "mine";
  request.stamp = kStamp;
  request.lease = std::chrono::milliseconds(12345);
  request.earliest = ServiceTime(1'799'999'998'000'000'000);
  return request;
}

Request renewal(std::vector<ServiceTime> own) {
  Request request;
  request.verb = Verb::renew;
  request.uuid = "mine";
  request.stamp = kStamp;
  request.own = std::move(own);
  return request;
}

Request release() {
  Request request;
  request.verb = Verb::release;
  request.uuid = "mine";
  return request;
}

std::vector<ServiceTime> stamps(std::size_t count) {
  std::vector<ServiceTime> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(kStamp + ServiceTime(1 + i));
  }
  return all;
}

Request rich_take() {
  Request request = take();
  request.seen = Request::Version{"theirs", ServiceTime(77)};
  request.own = stamps(16);
  return request;
}

rapidjson::Document body_of(const Request& request,
                            const RowTarget& where = place()) {
  return parse(tests::body_of(where, request));
}

RowTarget kept_place() {
  RowTarget kept = place();
  kept.policy.keep = true;
  kept.policy.keep_data = true;
  return kept;
}

std::shared_ptr<const lock::Changes> changes() {
  lock::Changes changes;
  changes.set = {string("state", "half"), {"data", Type::binary, "AAEC"}};
  changes.remove = {"error", "since"};
  return std::make_shared<const lock::Changes>(std::move(changes));
}

Request with_changes(Request request) {
  request.changes = changes();
  return request;
}

// What "#n" stands for.
std::string named(const rapidjson::Value& body, const char* term) {
  const auto& names = body["ExpressionAttributeNames"];
  BOOST_REQUIRE_MESSAGE(names.HasMember(term), term);
  return text(names[term]);
}

std::string valued(const rapidjson::Value& body, const char* term) {
  const auto& values = body["ExpressionAttributeValues"];
  BOOST_REQUIRE_MESSAGE(values.HasMember(term), term);
  return typed(values[term]);
}

// DynamoDB refuses a request that names what no expression uses, or uses what
// it does not name.
void check_terms(const rapidjson::Value& body) {
  BOOST_TEST(members(body["ExpressionAttributeNames"]) == used(body, '#'),
             boost::test_tools::per_element());
  BOOST_TEST(members(body["ExpressionAttributeValues"]) == used(body, ':'),
             boost::test_tools::per_element());
}

// Two terms for one attribute in one update are refused as overlapping.
void check_paths(const rapidjson::Value& body) {
  if (!body.HasMember("UpdateExpression")) return;
  const std::string update = text(body["UpdateExpression"]);
  std::set<std::string> attributes;
  for (const std::string& term : used(body, '#')) {
    if (update.find(term) == update.npos) continue;
    BOOST_TEST(attributes.insert(named(body, term.c_str())).second, term);
  }
}

const std::string kOver =
    "#expires >= :released AND #expires < :earliest"
    " AND attribute_type(#uuid, :string) AND size(#uuid) <= :longest_uuid"
    " AND (attribute_not_exists(#lease)"
    " OR #lease BETWEEN :shortest_lease AND :longest_lease)";

const std::string kFreeOrOver = "attribute_not_exists(#key) OR (" + kOver +
                                " AND attribute_not_exists(#token))";

const std::string kCanCount =
    " AND (attribute_not_exists(#token)"
    " OR #token BETWEEN :no_token AND :last_token)";

const std::string kKeptFreeOrOver =
    "(attribute_not_exists(#uuid) AND attribute_not_exists(#expires)"
    " AND attribute_not_exists(#lease) AND attribute_not_exists(#owner)"
    " AND attribute_not_exists(#ttl)" +
    kCanCount + ") OR (" + kOver + kCanCount + " AND #uuid <> :uuid)";

}  // namespace

BOOST_AUTO_TEST_SUITE(record)

// --- Reading ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(item_without_attributes_is_absent) {
  BOOST_TEST(word(lock::read_row({}).kind) == "absent");
}

BOOST_AUTO_TEST_CASE(whole_record_is_read_whole) {
  const Row row =
      lock::read_row({kName, kUuid, kExpires, kLease, string("owner", "host:1"),
                      number("ttl", "1800086400")});
  BOOST_TEST(word(row.kind) == "record");
  BOOST_TEST(row.uuid == "0123456789abcdef");
  BOOST_TEST(row.expires.count() == 1'800'000'000'123'456'789);
  BOOST_REQUIRE(row.lease.has_value());
  BOOST_TEST(row.lease->count() == 60000);
  BOOST_TEST(row.owner == "host:1");
  BOOST_TEST(std::string(row.problem).empty());
}

BOOST_AUTO_TEST_CASE(record_of_a_client_that_knows_no_lease_has_none) {
  const Row row = lock::read_row({kName, kUuid, kExpires});
  BOOST_TEST(word(row.kind) == "record");
  BOOST_TEST(!row.lease.has_value());
  BOOST_TEST(row.expires.count() == 1'800'000'000'123'456'789);
}

BOOST_AUTO_TEST_CASE(owner_of_another_type_is_left_out) {
  for (const Attribute& owner :
       {number("owner", "7"), Attribute{"owner", Type::other, ""},
        Attribute{"owner", Type::binary, "aG9zdA=="}}) {
    const Row row = lock::read_row({kName, kUuid, kExpires, kLease, owner});
    BOOST_TEST(word(row.kind) == "record");
    BOOST_TEST(row.owner.empty());
  }
}

BOOST_AUTO_TEST_CASE(attributes_of_others_are_no_hindrance) {
  const Row row =
      lock::read_row({string("note", "x"),
                      kName,
                      kUuid,
                      {"set", Type::other, ""},
                      kExpires,
                      kLease,
                      {"data", Type::binary, std::string(400'000, 'A')}});
  BOOST_TEST(word(row.kind) == "record");
}

BOOST_AUTO_TEST_CASE(row_with_a_token_of_any_type_is_a_kept_one) {
  for (const Attribute& token :
       {number("token", "7"), string("token", "x"), number("token", "-1"),
        Attribute{"token", Type::list, "", {}},
        Attribute{"token", Type::other, ""}}) {
    BOOST_TEST(lock::read_row({kName, kUuid, kExpires, kLease, token}).kept);
    BOOST_TEST(lock::read_row({kName, token}).kept);
  }
  BOOST_TEST(!lock::read_row({kName, kUuid, kExpires, kLease}).kept);
}

BOOST_AUTO_TEST_CASE(token_is_read_to_the_last_digit) {
  for (const char* value : {"0", "1", "41", "8999999999999999999"}) {
    const Row row = lock::read_row(
        {kName, kUuid, kExpires, kLease, number("token", value)});
    BOOST_TEST(word(row.kind) == "record");
    BOOST_TEST(std::to_string(row.token) == value);
  }
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

BOOST_AUTO_TEST_CASE(released_row_is_a_record_of_time_zero) {
  const Row row = lock::read_row(
      {kName, kUuid, number("expires", "0"), kLease, number("token", "3")});
  BOOST_TEST(word(row.kind) == "record");
  BOOST_TEST(row.expires.count() == 0);
  BOOST_TEST(row.token == 3);
}

BOOST_AUTO_TEST_CASE(row_without_a_uuid_is_bare) {
  const Row others = lock::read_row({kName, string("job", "7")});
  BOOST_TEST(word(others.kind) == "bare");
  BOOST_TEST(others.problem == "uuid is missing");
  BOOST_TEST(!others.kept);
  const Row counted = lock::read_row({kName, number("token", "5")});
  BOOST_TEST(word(counted.kind) == "bare");
  BOOST_TEST(counted.kept);
  BOOST_TEST(counted.token == 5);
}

BOOST_AUTO_TEST_CASE(what_is_no_attribute_of_the_record_is_told_beside_it) {
  const Attribute data{"data", Type::binary, "AAEC"};
  const Attribute job{"job", Type::list, "", {string("", "a")}};
  const Row row =
      lock::read_row({job, kUuid, kExpires, kLease, data, string("owner", "h"),
                      number("ttl", "1"), number("token", "2")});
  BOOST_REQUIRE(row.others.size() == 2u);
  BOOST_TEST(row.others[0].name == "job");
  BOOST_TEST((row.others[0].type == Type::list));
  BOOST_REQUIRE(row.others[0].members.size() == 1u);
  BOOST_TEST(row.others[0].members[0].value == "a");
  BOOST_TEST(row.others[1].name == "data");
  BOOST_TEST(row.others[1].value == "AAEC");
}

BOOST_AUTO_TEST_CASE(records_attributes_are_known_by_name) {
  for (const char* name :
       {"uuid", "expires", "lease", "owner", "ttl", "token", "data"}) {
    BOOST_TEST(lock::is_record_attribute(lock::kDdblock, name), name);
  }
  for (const char* name : {"name", "Uuid", "uuid ", "", "tok", "job"}) {
    BOOST_TEST(!lock::is_record_attribute(lock::kDdblock, name), name);
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

BOOST_AUTO_TEST_CASE(expires_that_is_no_time_is_not_understood) {
  check_not_understood("missing", {kName, kUuid, kLease}, "expires");
  check_not_understood("string",
                       with_expires(string("expires", "1800000000123456789")),
                       "expires");
  check_not_understood("other", with_expires({"expires", Type::other, ""}),
                       "expires");
  check_not_understood("binary", with_expires({"expires", Type::binary, "1"}),
                       "expires");
  for (const char* value : {"",
                            "-1",
                            "-0",
                            "+1",
                            "1.5",
                            "1.0",
                            "1E18",
                            "1e3",
                            "0x10",
                            " 1",
                            "1 ",
                            "NaN",
                            "Infinity",
                            "1,000",
                            "9223372036854775808",
                            "9223372036854775810",
                            "18446744073709551616",
                            "1234567890123456789012345678901234567890",
                            "99999999999999999999999999999999999999",
                            "1\n",
                            "\xd9\xa1"}) {
    check_not_understood(value, with_expires(number("expires", value)),
                         "expires");
  }
  check_not_understood("a zero byte",
                       with_expires(number("expires", std::string("1\0", 2))),
                       "expires");
}

BOOST_AUTO_TEST_CASE(expires_is_read_to_the_last_digit) {
  const auto read = [](const char* value) {
    return lock::read_row(with_expires(number("expires", value)));
  };
  BOOST_TEST(word(read("0").kind) == "record");
  BOOST_TEST(read("0").expires.count() == 0);
  BOOST_TEST(read("1").expires.count() == 1);
  BOOST_TEST(read("9223372036854775807").expires.count() ==
             9'223'372'036'854'775'807);
  BOOST_TEST(word(read("9223372036854775807").kind) == "record");
  BOOST_TEST(read("000123").expires.count() == 123);
}

BOOST_AUTO_TEST_CASE(lease_that_is_no_lease_is_not_understood) {
  check_not_understood("string", with_lease(string("lease", "20s")), "lease");
  check_not_understood("other", with_lease({"lease", Type::other, ""}),
                       "lease");
  for (const char* value : {"", "0", "-60000", "60000.5", "6E4", "31622400001",
                            "9223372036854775807", "9223372036854775808",
                            "1234567890123456789012345678901234567890"}) {
    check_not_understood(value, with_lease(number("lease", value)), "lease");
  }
  const Row shortest = lock::read_row(with_lease(number("lease", "1")));
  BOOST_TEST(word(shortest.kind) == "record");
  const Row longest =
      lock::read_row(with_lease(number("lease", "31622400000")));
  BOOST_TEST(word(longest.kind) == "record");
  BOOST_REQUIRE(longest.lease.has_value());
  BOOST_TEST(longest.lease->count() == 31'622'400'000);
}

// --- Writing ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(take_puts_the_whole_record) {
  const auto body = body_of(take());
  BOOST_TEST(members(body) ==
                 (std::set<std::string>{
                     "TableName", "Item", "ConditionExpression",
                     "ExpressionAttributeNames", "ExpressionAttributeValues",
                     "ReturnValuesOnConditionCheckFailure"}),
             boost::test_tools::per_element());
  BOOST_TEST(text(body["TableName"]) == "locks");
  BOOST_TEST(text(body["ReturnValuesOnConditionCheckFailure"]) == "ALL_OLD");
  const auto& item = body["Item"];
  BOOST_TEST(item.MemberCount() == 6u);
  BOOST_TEST(typed(item["name"]) == "S:ddblock-nightly");
  BOOST_TEST(typed(item["uuid"]) == "S:mine");
  BOOST_TEST(typed(item["expires"]) == "N:1800000060000000001");
  BOOST_TEST(typed(item["lease"]) == "N:12345");
  BOOST_TEST(typed(item["owner"]) == "S:host:42");
  BOOST_TEST(typed(item["ttl"]) == "N:1800086460");  // A day after the lease.
}

BOOST_AUTO_TEST_CASE(take_of_which_nothing_is_known_asks_for_free_or_over) {
  const auto body = body_of(take());
  BOOST_TEST(text(body["ConditionExpression"]) == kFreeOrOver);
  const auto& values = body["ExpressionAttributeValues"];
  BOOST_TEST(values.MemberCount() == 6u);
  BOOST_TEST(typed(values[":released"]) == "N:0");
  BOOST_TEST(typed(values[":earliest"]) == "N:1799999998000000000");
  BOOST_TEST(typed(values[":string"]) == "S:S");
  BOOST_TEST(typed(values[":longest_uuid"]) == "N:1024");
  BOOST_TEST(typed(values[":shortest_lease"]) == "N:1");
  BOOST_TEST(typed(values[":longest_lease"]) == "N:31622400000");
}

BOOST_AUTO_TEST_CASE(take_of_a_stale_record_pins_the_version_that_was_seen) {
  Request request = take();
  request.seen = Request::Version{"theirs", ServiceTime(77)};
  const auto body = body_of(request);
  BOOST_TEST(text(body["ConditionExpression"]) ==
             kFreeOrOver +
                 " OR (#uuid = :seen_uuid AND #expires = :seen_expires"
                 " AND attribute_not_exists(#token))");
  const auto& values = body["ExpressionAttributeValues"];
  BOOST_TEST(values.MemberCount() == 8u);
  BOOST_TEST(typed(values[":seen_uuid"]) == "S:theirs");
  BOOST_TEST(typed(values[":seen_expires"]) == "N:77");
}

BOOST_AUTO_TEST_CASE(take_tried_before_lists_its_own_versions) {
  Request request = take();
  request.own = {ServiceTime(5), ServiceTime(6)};
  const auto body = body_of(request);
  BOOST_TEST(text(body["ConditionExpression"]) ==
             kFreeOrOver +
                 " OR (#uuid = :uuid AND #expires IN (:own0, :own1))");
  const auto& values = body["ExpressionAttributeValues"];
  BOOST_TEST(values.MemberCount() == 9u);
  BOOST_TEST(typed(values[":uuid"]) == "S:mine");
  BOOST_TEST(typed(values[":own0"]) == "N:5");
  BOOST_TEST(typed(values[":own1"]) == "N:6");
}

BOOST_AUTO_TEST_CASE(renewal_moves_only_expires_and_ttl_of_its_own_version) {
  const auto body = body_of(renewal({ServiceTime(5), ServiceTime(6)}));
  BOOST_TEST(
      members(body) ==
          (std::set<std::string>{
              "TableName", "Key", "UpdateExpression", "ConditionExpression",
              "ExpressionAttributeNames", "ExpressionAttributeValues",
              "ReturnValuesOnConditionCheckFailure"}),
      boost::test_tools::per_element());
  BOOST_TEST(body["Key"].MemberCount() == 1u);
  BOOST_TEST(typed(body["Key"]["name"]) == "S:ddblock-nightly");
  BOOST_TEST(text(body["UpdateExpression"]) ==
             "SET #expires = :expires, #ttl = :ttl");
  BOOST_TEST(text(body["ConditionExpression"]) ==
             "#uuid = :uuid AND #expires IN (:own0, :own1)");
  BOOST_TEST(text(body["ReturnValuesOnConditionCheckFailure"]) == "ALL_OLD");
  const auto& values = body["ExpressionAttributeValues"];
  BOOST_TEST(values.MemberCount() == 5u);
  BOOST_TEST(typed(values[":uuid"]) == "S:mine");
  BOOST_TEST(typed(values[":expires"]) == "N:1800000060000000001");
  BOOST_TEST(typed(values[":ttl"]) == "N:1800086460");
  BOOST_TEST(typed(values[":own0"]) == "N:5");
  BOOST_TEST(typed(values[":own1"]) == "N:6");
}

BOOST_AUTO_TEST_CASE(release_deletes_whatever_version_bears_its_uuid) {
  const auto body = body_of(release());
  BOOST_TEST(members(body) ==
                 (std::set<std::string>{
                     "TableName", "Key", "ConditionExpression",
                     "ExpressionAttributeNames", "ExpressionAttributeValues",
                     "ReturnValuesOnConditionCheckFailure"}),
             boost::test_tools::per_element());
  BOOST_TEST(typed(body["Key"]["name"]) == "S:ddblock-nightly");
  BOOST_TEST(text(body["ConditionExpression"]) == "#uuid = :uuid");
  BOOST_TEST(typed(body["ExpressionAttributeValues"][":uuid"]) == "S:mine");
  BOOST_TEST(text(body["ReturnValuesOnConditionCheckFailure"]) == "ALL_OLD");
}

BOOST_AUTO_TEST_CASE(look_gets_by_the_key_consistently_only_if_asked) {
  for (const bool consistent : {false, true}) {
    Request request;
    request.consistent = consistent;
    const auto body = body_of(request);
    BOOST_TEST(members(body) == (std::set<std::string>{"TableName", "Key",
                                                       "ConsistentRead"}),
               boost::test_tools::per_element());
    BOOST_TEST(text(body["TableName"]) == "locks");
    BOOST_TEST(body["Key"].MemberCount() == 1u);
    BOOST_TEST(typed(body["Key"]["name"]) == "S:ddblock-nightly");
    BOOST_TEST(body["ConsistentRead"].IsBool());
    BOOST_TEST(body["ConsistentRead"].GetBool() == consistent);
  }
}

BOOST_AUTO_TEST_CASE(every_name_and_value_given_is_used_and_every_used_given) {
  std::vector<RowTarget> places;
  for (int bits = 0; bits < 32; ++bits) {
    RowTarget one = place();
    one.policy = {(bits & 1) != 0, (bits & 2) != 0, (bits & 5) == 5};
    if ((bits & 8) != 0) one.attributes = {string("job", "7")};
    if ((bits & 16) != 0) {
      one.attributes.push_back({"data", Type::binary, ""});
      one.key_name = "pk";
      one.sort_name = "sk";
    }
    places.push_back(one);
  }
  Request telling = renewal(stamps(2));
  telling.tell = true;
  for (const RowTarget& one : places) {
    for (const Request& request :
         {take(), rich_take(), renewal(stamps(1)), renewal(stamps(16)), telling,
          with_changes(renewal(stamps(3))), release(),
          with_changes(release())}) {
      const auto body = body_of(request, one);
      check_terms(body);
      check_paths(body);
    }
    check_terms(parse(write_check(one, "mine", 7)));
    const auto force = parse(write_force(one, {"theirs", ServiceTime(77)}));
    check_terms(force);
    check_paths(force);
  }
}

// --- Kept rows ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(take_of_a_kept_row_updates_it_and_counts) {
  const auto body = body_of(take(), kept_place());
  BOOST_TEST(
      members(body) ==
          (std::set<std::string>{
              "TableName", "Key", "UpdateExpression", "ConditionExpression",
              "ExpressionAttributeNames", "ExpressionAttributeValues",
              "ReturnValues", "ReturnValuesOnConditionCheckFailure"}),
      boost::test_tools::per_element());
  BOOST_TEST(body["Key"].MemberCount() == 1u);
  BOOST_TEST(typed(body["Key"]["name"]) == "S:ddblock-nightly");
  BOOST_TEST(text(body["UpdateExpression"]) ==
             "SET #uuid = :uuid, #expires = :expires, #lease = :lease, "
             "#owner = :owner ADD #token :one REMOVE #ttl");
  BOOST_TEST(text(body["ReturnValues"]) == "ALL_NEW");
  BOOST_TEST(valued(body, ":uuid") == "S:mine");
  BOOST_TEST(valued(body, ":expires") == "N:1800000060000000001");
  BOOST_TEST(valued(body, ":lease") == "N:12345");
  BOOST_TEST(valued(body, ":owner") == "S:host:42");
  BOOST_TEST(valued(body, ":one") == "N:1");
}

BOOST_AUTO_TEST_CASE(
    take_of_a_kept_row_asks_for_free_or_anothers_that_is_over) {
  const auto body = body_of(take(), kept_place());
  BOOST_TEST(text(body["ConditionExpression"]) == kKeptFreeOrOver);
  BOOST_TEST(valued(body, ":no_token") == "N:0");
  BOOST_TEST(valued(body, ":last_token") == "N:8999999999999999998");
  BOOST_TEST(valued(body, ":earliest") == "N:1799999998000000000");
}

BOOST_AUTO_TEST_CASE(take_of_a_kept_row_pins_what_was_seen_and_lists_its_own) {
  Request request = take();
  request.seen = Request::Version{"theirs", ServiceTime(77)};
  request.own = {ServiceTime(5), ServiceTime(6)};
  const auto body = body_of(request, kept_place());
  BOOST_TEST(text(body["ConditionExpression"]) ==
             kKeptFreeOrOver +
                 " OR (#uuid = :seen_uuid AND #expires = :seen_expires)"
                 " OR (#uuid = :uuid AND #expires IN (:own0, :own1))");
  BOOST_TEST(valued(body, ":seen_uuid") == "S:theirs");
  BOOST_TEST(valued(body, ":own1") == "N:6");
}

BOOST_AUTO_TEST_CASE(take_that_must_find_a_row_makes_none) {
  RowTarget must = kept_place();
  must.policy.must_exist = true;
  const auto body = body_of(take(), must);
  BOOST_TEST(text(body["ConditionExpression"])
                 .rfind("(attribute_exists(#key) AND attribute_not_exists("
                        "#uuid) AND ",
                        0) == 0u);
  BOOST_TEST(named(body, "#key") == "name");
}

BOOST_AUTO_TEST_CASE(
    take_of_a_kept_row_removes_data_unless_it_keeps_or_sets_it) {
  RowTarget removing = kept_place();
  removing.policy.keep_data = false;
  BOOST_TEST(text(body_of(take(), removing)["UpdateExpression"])
                 .find("REMOVE #ttl, #data") != std::string::npos);
  RowTarget setting = removing;
  setting.attributes = {{"data", Type::binary, "AAEC"}, number("tries", "1")};
  const auto body = body_of(take(), setting);
  BOOST_TEST(text(body["UpdateExpression"]) ==
             "SET #uuid = :uuid, #expires = :expires, #lease = :lease, "
             "#owner = :owner, #set0 = :set0, #set1 = :set1 "
             "ADD #token :one REMOVE #ttl");
  BOOST_TEST(named(body, "#set0") == "data");
  BOOST_TEST(valued(body, ":set0") == "B:AAEC");
  BOOST_TEST(named(body, "#set1") == "tries");
  BOOST_TEST(valued(body, ":set1") == "N:1");
}

BOOST_AUTO_TEST_CASE(
    take_that_keeps_data_of_a_deleted_row_updates_and_counts_not) {
  RowTarget keeping = place();
  keeping.policy.keep_data = true;
  const auto body = body_of(take(), keeping);
  BOOST_TEST(text(body["UpdateExpression"]) ==
             "SET #uuid = :uuid, #expires = :expires, #lease = :lease, "
             "#owner = :owner, #ttl = :ttl");
  BOOST_TEST(text(body["ConditionExpression"]) == kFreeOrOver);
  BOOST_TEST(valued(body, ":ttl") == "N:1800086460");
}

BOOST_AUTO_TEST_CASE(take_of_a_deleted_row_puts_its_attributes) {
  RowTarget with = place();
  with.attributes = {{"data", Type::binary, "AAEC"},
                     {"jobs", Type::number_set, "", {number("", "4")}}};
  const auto body = body_of(take(), with);
  BOOST_TEST(typed(body["Item"]["data"]) == "B:AAEC");
  BOOST_REQUIRE(body["Item"]["jobs"].HasMember("NS"));
  BOOST_TEST(text(body["Item"]["jobs"]["NS"][0]) == "4");
}

BOOST_AUTO_TEST_CASE(renewal_of_a_kept_row_sets_no_clean_up) {
  const auto body = body_of(renewal({ServiceTime(5)}), kept_place());
  BOOST_TEST(text(body["UpdateExpression"]) == "SET #expires = :expires");
  BOOST_TEST(text(body["ConditionExpression"]) ==
             "#uuid = :uuid AND #expires IN (:own0)");
  BOOST_TEST(!body.HasMember("ReturnValues"));
  Request telling = renewal({ServiceTime(5)});
  telling.tell = true;
  BOOST_TEST(text(body_of(telling, kept_place())["ReturnValues"]) == "ALL_NEW");
}

BOOST_AUTO_TEST_CASE(renewal_carries_the_users_changes) {
  const auto body = body_of(with_changes(renewal({ServiceTime(5)})));
  BOOST_TEST(text(body["UpdateExpression"]) ==
             "SET #expires = :expires, #ttl = :ttl, #set0 = :set0, "
             "#set1 = :set1 REMOVE #removed0, #removed1");
  BOOST_TEST(named(body, "#set0") == "state");
  BOOST_TEST(valued(body, ":set0") == "S:half");
  BOOST_TEST(named(body, "#set1") == "data");
  BOOST_TEST(valued(body, ":set1") == "B:AAEC");
  BOOST_TEST(named(body, "#removed0") == "error");
  BOOST_TEST(named(body, "#removed1") == "since");
}

BOOST_AUTO_TEST_CASE(release_of_a_kept_row_marks_it_free) {
  const auto body = body_of(release(), kept_place());
  BOOST_TEST(text(body["UpdateExpression"]) == "SET #expires = :released");
  BOOST_TEST(valued(body, ":released") == "N:0");
  BOOST_TEST(valued(body, ":uuid") == "S:mine");
  BOOST_TEST(text(body["ReturnValuesOnConditionCheckFailure"]) == "ALL_OLD");
  BOOST_TEST(text(body_of(with_changes(release()),
                          kept_place())["UpdateExpression"]) ==
             "SET #expires = :released, #set0 = :set0, #set1 = :set1 "
             "REMOVE #removed0, #removed1");
}

BOOST_AUTO_TEST_CASE(changes_of_a_kept_row_ask_for_its_token) {
  for (Request request :
       {with_changes(release()), with_changes(renewal({ServiceTime(5)}))}) {
    request.token = 7;
    const auto kept = body_of(request, kept_place());
    const std::string condition = text(kept["ConditionExpression"]);
    BOOST_TEST(condition.find("#uuid = :uuid AND ") == 0u);
    BOOST_TEST(condition.find(" AND #token = :token") != std::string::npos);
    BOOST_TEST(valued(kept, ":token") == "N:7");
    const auto deleted = body_of(request);
    BOOST_TEST(text(deleted["ConditionExpression"]).find("token") ==
               std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(kept_row_is_never_put_and_never_deleted) {
  using dynamodb::Action;
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
  const auto kept = parse(write_check(kept_place(), "mine", 7));
  BOOST_TEST(members(kept) ==
                 (std::set<std::string>{
                     "TableName", "Key", "ConditionExpression",
                     "ExpressionAttributeNames", "ExpressionAttributeValues"}),
             boost::test_tools::per_element());
  BOOST_TEST(text(kept["ConditionExpression"]) ==
             "#uuid = :uuid AND #expires > :released AND #token = :token");
  BOOST_TEST(valued(kept, ":uuid") == "S:mine");
  BOOST_TEST(valued(kept, ":released") == "N:0");
  BOOST_TEST(valued(kept, ":token") == "N:7");
  const auto deleted = parse(write_check(place(), "mine", 0));
  BOOST_TEST(text(deleted["ConditionExpression"]) ==
             "#uuid = :uuid AND #expires > :released");
}

BOOST_AUTO_TEST_CASE(force_frees_exactly_the_version_that_was_seen) {
  const Request::Version seen{"theirs", ServiceTime(77)};
  const auto kept = parse(write_force(kept_place(), seen));
  BOOST_TEST(text(kept["UpdateExpression"]) == "SET #expires = :released");
  BOOST_TEST(valued(kept, ":released") == "N:0");
  const auto deleted = parse(write_force(place(), seen));
  BOOST_TEST(!deleted.HasMember("UpdateExpression"));
  BOOST_TEST(text(kept["ConditionExpression"]) ==
             "#uuid = :seen_uuid AND #expires = :seen_expires");
  // A row with a token is never deleted.
  BOOST_TEST(text(deleted["ConditionExpression"]) ==
             "#uuid = :seen_uuid AND #expires = :seen_expires AND "
             "attribute_not_exists(#token)");
  for (const auto* body : {&kept, &deleted}) {
    BOOST_TEST(valued(*body, ":seen_uuid") == "S:theirs");
    BOOST_TEST(valued(*body, ":seen_expires") == "N:77");
    BOOST_TEST(text((*body)["ReturnValuesOnConditionCheckFailure"]) ==
               "ALL_OLD");
  }
}

BOOST_AUTO_TEST_CASE(other_key_and_sort_key_are_in_every_request) {
  for (const bool keep : {false, true}) {
    RowTarget odd = place();
    odd.policy.keep = keep;
    odd.key_name = "pk";
    odd.sort_name = "name";
    odd.sort_value = "lock";
    const auto body = body_of(take(), odd);
    const auto& keyed = body[keep ? "Key" : "Item"];
    BOOST_TEST(typed(keyed["pk"]) == "S:ddblock-nightly");
    BOOST_TEST(typed(keyed["name"]) == "S:lock");
    if (!keep) BOOST_TEST(named(body, "#key") == "pk");
    for (const Request& other : {renewal(stamps(1)), release(), Request{}}) {
      const auto key = body_of(other, odd);
      BOOST_TEST(key["Key"].MemberCount() == 2u);
      BOOST_TEST(typed(key["Key"]["pk"]) == "S:ddblock-nightly");
      BOOST_TEST(typed(key["Key"]["name"]) == "S:lock");
    }
    BOOST_TEST(parse(write_check(odd, "mine", 1))["Key"].MemberCount() == 2u);
    BOOST_TEST(
        parse(write_force(odd, {"a", ServiceTime(1)}))["Key"].MemberCount() ==
        2u);
  }
}

BOOST_AUTO_TEST_CASE(text_of_any_kind_survives_the_writing) {
  const std::string awkward =
      std::string("quote\" back\\slash / \b\f\n\r\t\x01\x1f\x7f zero") + '\0' +
      "tail \xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92 \xe2\x80\xa8 {}[]:,'<&>";
  RowTarget odd = place();
  odd.table = "a.b-c_d";
  odd.key = awkward;
  odd.owner = awkward + awkward;
  Request request = rich_take();
  request.seen->uuid = awkward;
  const auto body = parse(tests::body_of(odd, request));
  BOOST_TEST(text(body["TableName"]) == "a.b-c_d");
  BOOST_TEST((typed(body["Item"]["name"]) == "S:" + awkward));
  BOOST_TEST((typed(body["Item"]["owner"]) == "S:" + awkward + awkward));
  BOOST_TEST((typed(body["ExpressionAttributeValues"][":seen_uuid"]) ==
              "S:" + awkward));
  for (const Request& other : {renewal(stamps(1)), release(), Request{}}) {
    const auto keyed = parse(tests::body_of(odd, other));
    BOOST_TEST((typed(keyed["Key"]["name"]) == "S:" + awkward));
  }
}

BOOST_AUTO_TEST_CASE(farthest_stamp_has_a_clean_up_time) {
  Request request = take();
  request.stamp = ServiceTime(4'000'000'000'000'001'234);
  const auto body = body_of(request);
  BOOST_TEST(typed(body["Item"]["expires"]) == "N:4000000000000001234");
  BOOST_TEST(typed(body["Item"]["ttl"]) == "N:4000086400");
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back_the_same) {
  const auto body = body_of(take());
  Item item;
  for (const auto& member : body["Item"].GetObject()) {
    const auto value = member.value.MemberBegin();
    item.push_back({text(member.name),
                    text(value->name) == "N" ? Type::number : Type::string,
                    text(value->value)});
  }
  const Row row = lock::read_row(item);
  BOOST_TEST(word(row.kind) == "record");
  BOOST_TEST(row.uuid == "mine");
  BOOST_TEST(row.expires.count() == kStamp.count());
  BOOST_REQUIRE(row.lease.has_value());
  BOOST_TEST(row.lease->count() == 12345);
  BOOST_TEST(row.owner == "host:42");
}

// --- uuids -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(fresh_uuid_is_32_hexadecimal_digits) {
  for (int i = 0; i < 100; ++i) {
    const std::string uuid = lock::fresh_uuid();
    BOOST_TEST(uuid.size() == 32u);
    BOOST_TEST(uuid.find_first_not_of("0123456789abcdef") == uuid.npos);
  }
}

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

BOOST_AUTO_TEST_CASE(text_is_utf8_or_not) {
  for (const std::string& good :
       {std::string(), std::string("plain"), std::string("\0", 1),
        std::string("\xc3\xa9"), std::string("\xed\x9f\xbf"),
        std::string("\xef\xbf\xbf"), std::string("\xf4\x8f\xbf\xbf")}) {
    BOOST_TEST(dynamodb::is_utf8(good), good);
  }
  for (const char* bad : {
           "\x80",  // A continuation alone.
           "\xc3",  // Cut off.
           "\xe2\x82",
           "\xf0\x9f\x98",
           "\xc0\xaf",  // Longer than need be.
           "\xe0\x80\xaf",
           "\xf0\x80\x80\xaf",
           "\xed\xa0\x80",      // A surrogate.
           "\xf4\x90\x80\x80",  // Past U+10FFFF.
           "\xff",
           "a\xc3(",
       }) {
    BOOST_TEST(!dynamodb::is_utf8(bad), bad);
  }
}

BOOST_AUTO_TEST_SUITE_END()
