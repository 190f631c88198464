// lock/record: items read with distrust, requests as DynamoDB wants them.
#include <rapidjson/document.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dynamodb/item.hpp"
#include "lock/record.hpp"
#include "tests/support/words.hpp"

using namespace ddbmutex;
using dynamodb::Attribute;
using dynamodb::Item;
using lock::Place;
using lock::Request;
using lock::Row;
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
    BOOST_TEST(row.problem.rfind(attribute + " ", 0) == 0u);
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

Place place() {
  Place place;
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

rapidjson::Document body_of(const Request& request) {
  return parse(lock::write_request(place(), request));
}

const std::string kFreeOrOver =
    "attribute_not_exists(#name) OR (#expires >= :zero AND #expires < "
    ":earliest AND attribute_type(#uuid, :string) AND "
    "size(#uuid) <= :uuid_size AND attribute_not_exists(#token) AND "
    "(attribute_not_exists(#lease) OR "
    "#lease BETWEEN :shortest AND :longest))";

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
  BOOST_TEST(row.problem.empty());
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

BOOST_AUTO_TEST_CASE(record_with_a_token_of_any_type_is_a_kept_row) {
  for (const Attribute& token :
       {number("token", "7"), string("token", "x"), number("token", "-1"),
        Attribute{"token", Type::other, ""}}) {
    BOOST_TEST(
        word(lock::read_row({kName, kUuid, kExpires, kLease, token}).kind) ==
        "kept");
    BOOST_TEST(word(lock::read_row({kName, token}).kind) == "kept");
  }
}

BOOST_AUTO_TEST_CASE(uuid_that_is_none_is_not_understood) {
  check_not_understood("missing", {kName, kExpires, kLease}, "uuid");
  check_not_understood("the key alone", {kName}, "uuid");
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
  BOOST_TEST(typed(values[":zero"]) == "N:0");
  BOOST_TEST(typed(values[":earliest"]) == "N:1799999998000000000");
  BOOST_TEST(typed(values[":string"]) == "S:S");
  BOOST_TEST(typed(values[":uuid_size"]) == "N:1024");
  BOOST_TEST(typed(values[":shortest"]) == "N:1");
  BOOST_TEST(typed(values[":longest"]) == "N:31622400000");
}

BOOST_AUTO_TEST_CASE(take_of_a_stale_record_pins_the_version_that_was_seen) {
  Request request = take();
  request.seen = Request::Version{"theirs", ServiceTime(77)};
  const auto body = body_of(request);
  BOOST_TEST(text(body["ConditionExpression"]) ==
             kFreeOrOver +
                 " OR (#uuid = :seen_uuid AND #expires = :seen_expires)");
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

// DynamoDB refuses a request that names what no expression uses, or uses what
// it does not name.
BOOST_AUTO_TEST_CASE(every_name_and_value_given_is_used_and_every_used_given) {
  for (const Request& request : {take(), rich_take(), renewal(stamps(1)),
                                 renewal(stamps(16)), release()}) {
    const auto body = body_of(request);
    const auto& names = body["ExpressionAttributeNames"];
    BOOST_TEST(members(names) == used(body, '#'),
               boost::test_tools::per_element());
    for (const auto& name : names.GetObject()) {
      BOOST_TEST("#" + text(name.value) == text(name.name));
    }
    BOOST_TEST(members(body["ExpressionAttributeValues"]) == used(body, ':'),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(text_of_any_kind_survives_the_writing) {
  const std::string awkward =
      std::string("quote\" back\\slash / \b\f\n\r\t\x01\x1f\x7f zero") + '\0' +
      "tail \xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92 \xe2\x80\xa8 {}[]:,'<&>";
  Place odd = place();
  odd.table = "a.b-c_d";
  odd.key = awkward;
  odd.owner = awkward + awkward;
  Request request = rich_take();
  request.seen->uuid = awkward;
  const auto body = parse(lock::write_request(odd, request));
  BOOST_TEST(text(body["TableName"]) == "a.b-c_d");
  BOOST_TEST((typed(body["Item"]["name"]) == "S:" + awkward));
  BOOST_TEST((typed(body["Item"]["owner"]) == "S:" + awkward + awkward));
  BOOST_TEST((typed(body["ExpressionAttributeValues"][":seen_uuid"]) ==
              "S:" + awkward));
  for (const Request& other : {renewal(stamps(1)), release(), Request{}}) {
    const auto keyed = parse(lock::write_request(odd, other));
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
    BOOST_TEST(lock::is_utf8(good), good);
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
    BOOST_TEST(!lock::is_utf8(bad), bad);
  }
}

BOOST_AUTO_TEST_SUITE_END()
