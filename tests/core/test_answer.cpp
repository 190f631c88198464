// What answers of DynamoDB's, and of all that may stand in its place, mean.
#include <boost/crc.hpp>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/dynamodb/description.hpp"
#include "tests/support/check_fault.hpp"

namespace {

using ddbmutex::BootTime;
using ddbmutex::dynamodb::Action;
using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Fault;
using ddbmutex::dynamodb::find;
using ddbmutex::dynamodb::ServiceTime;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::Transport;
using std::chrono::seconds;

Answer answer_of(Action action, HttpAnswer http, ServiceTime signed_at) {
  const bool of_table = action == Action::describe_table ||
                        action == Action::create_table ||
                        action == Action::delete_table;
  return ddbmutex::dynamodb::read_answer(
      action, std::move(http), signed_at,
      of_table ? ddbmutex::dynamodb::read_table : nullptr);
}

std::optional<ServiceTime> date_of(const HttpAnswer& http) {
  return answer_of(Action::put_item, http, {}).date;
}

// The Date of these answers, and when their requests were signed.
constexpr const char* kDate = "Tue, 14 Nov 2023 22:13:20 GMT";
constexpr ServiceTime kSigned = seconds(1700000000);

std::string crc32_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::to_string(crc.checksum());
}

HttpAnswer with(HttpAnswer http, std::string_view name,
                std::string_view value) {
  http.headers.append(name).append(": ").append(value).append("\r\n");
  return http;
}

// As DynamoDB answers, but for the checksum.
HttpAnswer http_of(int status, std::string body) {
  HttpAnswer http;
  http.transport = Transport::complete;
  http.sent = true;
  http.status = status;
  http.body = std::move(body);
  http.sent_at = BootTime(seconds(100));
  http.received_at = BootTime(seconds(101));
  http = with(http, "Server", "Server");
  http = with(http, "Date", kDate);
  http = with(http, "Content-Type", "application/x-amz-json-1.0");
  return with(http, "x-amzn-RequestId", "REQUEST1");
}

HttpAnswer without(HttpAnswer http, const std::string& name) {
  const std::size_t begin = http.headers.find(name + ":");
  BOOST_REQUIRE(begin != std::string::npos);
  http.headers.erase(begin, http.headers.find('\n', begin) + 1 - begin);
  return http;
}

Answer put(const HttpAnswer& http) {
  return answer_of(Action::put_item, http, kSigned);
}

Answer get(std::string body) {
  return answer_of(Action::get_item, http_of(200, std::move(body)), kSigned);
}

std::string refusal(std::string_view code) {
  return "{\"__type\":\"" + std::string(code) + "\",\"message\":\"why\"}";
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

constexpr const char* kRecord =
    "{\"name\":{\"S\":\"ddblock-a\"},\"expires\":{\"N\":"
    "\"1700000000123456789\"},"
    "\"data\":{\"B\":\"AAEC\"}}";

}  // namespace

BOOST_AUTO_TEST_SUITE(answer)

BOOST_AUTO_TEST_CASE(json_that_dynamodb_does_not_send_is_no_success) {
  for (const char* body :
       {"{\"error\":\"login required\"}", "{\"message\":\"Forbidden\"}",
        "{\"status\":\"ok\"}", "{\"Attributes\":{},\"ok\":true}",
        "{\"Item\":{\"name\":{\"S\":\"x\"}}}"}) {
    const Answer answer = put(http_of(200, body));
    BOOST_TEST((answer.fault == Fault::bad_answer), body);
    BOOST_TEST(answer.outcome_unknown(), body);
  }
  for (const char* body : {"{\"Attributes\":{}}", "{\"status\":\"ok\"}"}) {
    CHECK_FAULT(get(body), Fault::bad_answer);
  }
}

// --- Refusals ---------------------------------------------------------------

// A gateway's or firewall's, for example.
BOOST_AUTO_TEST_CASE(refusal_without_an_error_code_is_hardly_dynamodbs) {
  for (const int status : {400, 403, 404, 503}) {
    const HttpAnswer http = http_of(status, R"({"message":"Forbidden"})");
    BOOST_TEST(put(http).message ==
               "Forbidden (HTTP status " + std::to_string(status) +
                   " without an error code: is this DynamoDB?)");
  }
  const HttpAnswer own = http_of(400, refusal("AccessDeniedException"));
  BOOST_TEST(put(own).message == "why");
}

namespace {

struct Codes {
  Fault expected;
  bool unknown;  // Of the write's outcome.
  std::vector<const char*> codes;
};

const Codes kCodes[] = {
    {Fault::condition_failed, false, {"ConditionalCheckFailedException"}},
    {Fault::no_table,
     false,
     {"ResourceNotFoundException", "TableNotFoundException"}},
    {Fault::unknown_action, false, {"UnknownOperationException"}},
    {Fault::access_denied, false, {"AccessDeniedException"}},
    {Fault::expired_keys, false, {"ExpiredTokenException", "ExpiredToken"}},
    {Fault::bad_keys,
     false,
     {"UnrecognizedClientException", "InvalidClientTokenId", "InvalidToken",
      "MissingAuthenticationToken", "MissingAuthenticationTokenException",
      "IncompleteSignatureException", "InvalidSignatureException",
      "SignatureDoesNotMatch", "AuthFailure", "RequestExpired",
      "RequestInTheFuture", "RequestTimeTooSkewed"}},
    {Fault::bad_request,
     false,
     {"ValidationException", "SerializationException",
      "ItemCollectionSizeLimitExceededException",
      "IdempotentParameterMismatchException", "TransactionCanceledException",
      "NeverSeenBeforeException"}},
    {Fault::table_in_use, false, {"ResourceInUseException"}},
    {Fault::server_failure,
     true,
     {"InternalServerError", "InternalFailure", "InternalError",
      "InternalServerException", "ServiceUnavailable", "RequestTimeout",
      "RequestTimeoutException"}},
    {Fault::conflict,
     false,
     {"TransactionConflictException", "TransactionInProgressException",
      "ReplicatedWriteConflictException"}},
    {Fault::throttled,
     true,
     {"Throttling", "ThrottlingException", "ThrottledException",
      "RequestThrottled", "RequestThrottledException",
      "TooManyRequestsException", "ProvisionedThroughputExceededException",
      "RequestLimitExceeded", "BandwidthLimitExceeded",
      "LimitExceededException", "PriorRequestNotComplete", "SlowDown",
      "EC2ThrottledException"}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(code_is_found_in_all_forms_of_type) {
  for (const char* form :
       {"ThrottlingException",
        "com.amazonaws.dynamodb.v20120810#ThrottlingException",
        "ThrottlingException:http://internal.amazon.com/coral/x/",
        "ThrottlingException,http://internal.amazon.com/coral/x/",
        "aws.x#ThrottlingException:http://a.b/c#d,e"}) {
    BOOST_TEST_CONTEXT(form) {
      CHECK_FAULT(put(http_of(400, refusal(form))), Fault::throttled);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_code_means_its_fault) {
  for (const auto& [expected, unknown, codes] : kCodes) {
    for (const std::string code : codes) {
      BOOST_TEST_CONTEXT(code) {
        const Answer answer = put(http_of(400, refusal(code)));
        CHECK_FAULT(answer, expected);
        BOOST_TEST(answer.outcome_unknown() == unknown);
        BOOST_TEST(answer.other_keys ==
                   (code.find("ExpiredToken") == 0 ||
                    code == "UnrecognizedClientException" ||
                    code == "InvalidClientTokenId"));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(refusal_with_the_status_of_a_failure_is_not_certain) {
  for (const char* code :
       {"ConditionalCheckFailedException", "AccessDeniedException",
        "ResourceNotFoundException", "ValidationException",
        "TransactionConflictException"}) {
    const Answer answer =
        put(http_of(500, std::string("{\"__type\":\"x#") + code + "\"}"));
    BOOST_TEST((answer.fault == Fault::server_failure), code);
    BOOST_TEST(answer.outcome_unknown(), code);
  }
}

BOOST_AUTO_TEST_CASE(status_without_json_means_only_what_may_be_trusted) {
  const std::pair<int, Fault> cases[] = {
      {400, Fault::bad_answer},     {401, Fault::bad_answer},
      {403, Fault::bad_answer},     {404, Fault::bad_answer},
      {413, Fault::bad_answer},     {429, Fault::throttled},
      {500, Fault::server_failure}, {502, Fault::server_failure},
      {503, Fault::server_failure}, {504, Fault::server_failure},
      {509, Fault::throttled},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.first) {
      for (const char* body : {"", "<html><h1>No</h1></html>", "[]"}) {
        const Answer answer = put(http_of(c.first, body));
        CHECK_FAULT(answer, c.second);
        BOOST_TEST(answer.outcome_unknown());
        BOOST_TEST(!answer.message.empty());
      }
    }
  }
}

// --- Tables -----------------------------------------------------------------

namespace {

// As of a table with one string key, but for its braces.
constexpr const char* kStatus = R"("TableStatus":"ACTIVE")";
constexpr const char* kKeySchema =
    R"("KeySchema":[{"AttributeName":"name","KeyType":"HASH"}])";
constexpr const char* kDefinitions =
    R"("AttributeDefinitions":[{"AttributeName":"name","AttributeType":"S"}])";

std::string usual_table(const std::string& more = "") {
  return std::string("{") + kStatus + "," + kKeySchema + "," + kDefinitions +
         (more.empty() ? "" : "," + more) + "}";
}

Answer describe(const std::string& table) {
  return answer_of(Action::describe_table,
                   http_of(200, "{\"Table\":" + table + "}"), kSigned);
}

}  // namespace

BOOST_AUTO_TEST_CASE(replicas_are_eventual_unless_said_to_be_strong) {
  const std::string one = R"("Replicas":[{"RegionName":"eu-west-1"}])";
  const std::string strong = R"("MultiRegionConsistency":"STRONG")";
  const std::string now = R"("GlobalTableVersion":"2019.11.21")";
  const std::string legacy = R"("GlobalTableVersion":"2017.11.29")";
  const std::pair<std::string, bool> cases[] = {
      {one, true},
      {one + "," + now, true},
      {one + R"(,"MultiRegionConsistency":"EVENTUAL")", true},
      {one + R"(,"MultiRegionConsistency":"strong")", true},
      {one + R"(,"MultiRegionConsistency":7)", true},
      {one + R"(,"MultiRegionConsistency":null)", true},
      {one + "," + strong + "," + now, false},
      {R"("Replicas":[])", false},
      {R"("Replicas":null)", false},
      {now, false},
      {strong, false},
      {legacy, true},
      {legacy + R"(,"Replicas":[])", true},
  };
  for (const auto& [members, eventual] : cases) {
    BOOST_TEST_CONTEXT(members) {
      const Answer answer = describe(usual_table(members));
      CHECK_FAULT(answer, Fault::none);
      BOOST_REQUIRE(answer.table);
      BOOST_TEST(answer.table->eventual_replicas == eventual);
    }
  }
}

// --- Keys of another table --------------------------------------------------

namespace {

constexpr Action kItemActions[] = {Action::get_item, Action::put_item,
                                   Action::update_item, Action::delete_item};

Answer refused_as(Action action, const std::string& code,
                  const std::string& message, int status = 400) {
  return answer_of(action,
                   http_of(status, "{\"__type\":\"" + code +
                                       "\",\"message\":\"" + message + "\"}"),
                   kSigned);
}

const std::string kInvalid = "One or more parameter values were invalid: ";

}  // namespace

BOOST_AUTO_TEST_CASE(key_of_another_schema_is_told_from_the_message) {
  for (const std::string& message :
       {std::string("The provided key element does not match the schema"),
        kInvalid + "Missing the key id in the item",
        kInvalid + "Missing the key in the item in the item",
        kInvalid + "Type mismatch for key name expected: N actual: S",
        kInvalid + "Type mismatch for key a expected: expected: B actual: S",
        kInvalid + "Cannot update attribute uuid. This attribute is part of "
                   "the key",
        std::string("One of the required keys was not given a value"),
        std::string("The number of conditions on the keys is invalid"),
        std::string("Key column id not found"),
        std::string("Given key attribute not in schema"),
        std::string("Type mismatch: expected type N for key column name, got "
                    "type S")}) {
    for (const Action action : kItemActions) {
      const Answer answer = refused_as(
          action, "com.amazon.coral.validate#ValidationException", message);
      BOOST_TEST_CONTEXT(message) {
        CHECK_FAULT(answer, Fault::wrong_key);
        BOOST_TEST(answer.message == message);
        BOOST_TEST(!is_transient(answer.fault));
        BOOST_TEST(!answer.outcome_unknown());
      }
    }
  }
}

// --- What is not DynamoDB's -------------------------------------------------

namespace {

std::string item(const std::string& text) { return "{\"Item\":" + text + "}"; }

// None of them is an answer of DynamoDB's to a GetItem.
std::vector<std::string> hostile_bodies() {
  const std::string nul(1, '\0');
  return {
      "",
      "   \r\n",
      "<!DOCTYPE html><html></html>",
      "[" + item(kRecord) + "]",
      "\"{}\"",
      "null",
      "{",
      item(kRecord).substr(0, 40),
      "{}{}",
      "{}" + nul + "<html>",
      nul + "{}",
      item("{\"a\":{\"S\":\"" + nul + "\"}}"),
      refusal("InternalServerError"),
      item("{\"a\":{\"S\":\"\xff\xfe\"}}"),
      item("{\"a\":{\"S\":\"\xc0\xaf\"}}"),
      item("{\"a\":{\"S\":\"\xed\xa0\x80\"}}"),
      item(R"({"a":{"S":"\ud800"}})"),
      std::string(400 * 1024, '['),
      repeated("{\"a\":", 80 * 1024),
      std::string(200 * 1024, '[') + std::string(200 * 1024, ']'),
      std::string(1 << 20, ' '),
      item("null"),
      item("[]"),
      item("1"),
      item(R"({"a":null})"),
      item(R"({"a":["S","b"]})"),
      item(R"({"a":{}})"),
      item(R"({"a":{"S":"1","N":"1"}})"),
      item(R"({"a":{"S":"1","S":"2"}})"),
      item(R"({"a":{"S":1}})"),
      item(R"({"a":{"S":{"S":"a"}}})"),
      item(R"({"a":{"N":1700000000}})"),
      item(R"({"a":{"B":[1,2]}})"),
      item(R"({"g":{"S":"1"},"b":{}})"),
      R"({"a":1e999999})",
      R"({"a":NaN})",
      "{/* */}",
      R"({"a":1,})",
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(hostile_body_gives_its_fault_and_no_item) {
  for (const std::string& body : hostile_bodies()) {
    BOOST_TEST_CONTEXT(body.substr(0, 60)) {
      const Answer answer = get(body);
      CHECK_FAULT(answer, Fault::bad_answer);
      BOOST_TEST(answer.outcome_unknown());
      BOOST_TEST(!answer.item.has_value());
      BOOST_TEST(!answer.message.empty());
    }
  }
  CHECK_FAULT(put(http_of(400, refusal("SlowDown").substr(0, 30))),
              Fault::bad_answer);
  CHECK_FAULT(put(http_of(500, std::string(400 * 1024, '['))),
              Fault::server_failure);
}

// Engines of other makers say one of the two; who answers {} to everything says
// neither.
BOOST_AUTO_TEST_CASE(success_without_a_type_or_an_id_of_dynamodbs_is_none) {
  const HttpAnswer both = http_of(200, "{}");
  const HttpAnswer no_id = without(both, "x-amzn-RequestId");
  const HttpAnswer neither = without(no_id, "Content-Type");
  CHECK_FAULT(put(no_id), Fault::none);
  CHECK_FAULT(put(without(both, "Content-Type")), Fault::none);
  CHECK_FAULT(put(with(neither, "Content-Type", "application/x-amz-json-1.1")),
              Fault::none);
  for (const HttpAnswer& http :
       {neither, with(neither, "Content-Type", "application/json")}) {
    for (const Action action :
         {Action::put_item, Action::get_item, Action::update_item,
          Action::delete_item, Action::transact_write_items}) {
      const Answer answer = answer_of(action, http, kSigned);
      CHECK_FAULT(answer, Fault::bad_answer);
      BOOST_TEST(answer.outcome_unknown());
    }
  }
}

BOOST_AUTO_TEST_CASE(content_type_must_say_json_if_it_says_anything) {
  const HttpAnswer plain = without(http_of(200, "{}"), "Content-Type");
  CHECK_FAULT(put(plain), Fault::none);
  for (const char* type : {"application/x-amz-json-1.0", "application/json",
                           "application/x-amz-json-1.0; charset=utf-8"}) {
    CHECK_FAULT(put(with(plain, "content-type", type)), Fault::none);
  }
  for (const char* type : {"text/html", "text/html; charset=utf-8", "",
                           "application/octet-stream"}) {
    CHECK_FAULT(put(with(plain, "Content-Type", type)), Fault::bad_answer);
    HttpAnswer refused = with(plain, "Content-Type", type);
    refused.status = 400;
    CHECK_FAULT(put(refused), Fault::bad_answer);
  }
}

BOOST_AUTO_TEST_CASE(checksum_is_verified_if_there_is_one) {
  const HttpAnswer http = http_of(200, "{}");
  CHECK_FAULT(put(http), Fault::none);
  CHECK_FAULT(put(with(http, "x-amz-crc32", "2745614147")), Fault::none);
  CHECK_FAULT(put(with(http, "X-AMZ-CRC32", "2745614147")), Fault::none);
  for (const char* wrong : {"2745614148", "0", "-1549353149", "+2745614147",
                            "2745614147 7", "a3a5d2c3", "", "2745614147.0",
                            "27456141472745614147", "18446744076455165763"}) {
    BOOST_TEST_CONTEXT("crc32 " << wrong) {
      const Answer answer = put(with(http, "x-amz-crc32", wrong));
      CHECK_FAULT(answer, Fault::bad_answer);
      BOOST_TEST(answer.outcome_unknown());
    }
  }
  const std::string body = item(kRecord);
  for (const char* damaged : {"{}", "{\"Item\":{}}"}) {
    CHECK_FAULT(put(with(http_of(200, damaged), "x-amz-crc32", crc32_of(body))),
                Fault::bad_answer);
  }
  CHECK_FAULT(answer_of(Action::get_item,
                        with(http_of(200, body), "x-amz-crc32", crc32_of(body)),
                        kSigned),
              Fault::none);
}

// --- No answer at all -------------------------------------------------------

BOOST_AUTO_TEST_CASE(each_end_has_its_fault_and_is_unknown_only_if_sent) {
  struct Case {
    Transport how;
    Fault expected;
    bool unknown_if_sent;
  };
  const Case cases[] = {
      {Transport::under_way, Fault::disconnected, true},
      {Transport::unreachable, Fault::unreachable, false},
      {Transport::bad_certificate, Fault::bad_certificate, false},
      {Transport::broken, Fault::disconnected, true},
      {Transport::too_large, Fault::bad_answer, true},
      {Transport::timed_out, Fault::timed_out, true},
      {Transport::cancelled, Fault::cancelled, true},
  };
  for (const Case& c : cases) {
    for (const bool sent : {false, true}) {
      HttpAnswer http;
      http.transport = c.how;
      http.sent = sent;
      http.error = "what happened";
      const Answer answer = put(http);
      BOOST_TEST_CONTEXT(name_of(c.expected) << (sent ? ", sent" : "")) {
        CHECK_FAULT(answer, c.expected);
        BOOST_TEST(answer.sent == sent);
        BOOST_TEST(answer.outcome_unknown() == (sent && c.unknown_if_sent));
        BOOST_TEST(answer.message == "what happened");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(
    status_of_an_answer_that_broke_off_counts_if_it_says_enough) {
  const std::pair<int, Fault> cases[] = {{200, Fault::disconnected},
                                         {400, Fault::disconnected},
                                         {429, Fault::throttled},
                                         {500, Fault::server_failure},
                                         {503, Fault::server_failure}};
  for (const auto& [status, expected] : cases) {
    HttpAnswer http = http_of(status, "");
    http.transport = Transport::broken;
    http.sent = true;
    const Answer answer = put(http);
    CHECK_FAULT(answer, expected);
    BOOST_TEST(answer.outcome_unknown());
    http.transport = Transport::timed_out;
    CHECK_FAULT(put(http), Fault::timed_out);
  }
}

// --- Time -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(date_counts_only_beside_a_request_id_without_age) {
  const HttpAnswer http = http_of(200, "{}");
  BOOST_REQUIRE(date_of(http).has_value());
  BOOST_TEST((*date_of(http) == kSigned));
  BOOST_TEST(date_of(http_of(500, "<html>")).has_value());
  BOOST_TEST(!date_of(without(http, "x-amzn-RequestId")).has_value());
  BOOST_TEST(!date_of(without(http, "Date")).has_value());
  BOOST_TEST(!date_of(with(http, "Age", "0")).has_value());
  BOOST_TEST(!date_of(with(http, "age", "")).has_value());
  const HttpAnswer bare = without(http, "Date");
  BOOST_TEST(!date_of(with(bare, "Date", "soon")).has_value());
  BOOST_TEST(!date_of(with(bare, "Date", "Thu, 01 Jan 1970 00:00:00 GMT"))
                  .has_value());
  BOOST_TEST(date_of(with(bare, "DATE", kDate)).has_value());
  for (const Transport how : {Transport::broken, Transport::timed_out,
                              Transport::too_large, Transport::cancelled}) {
    HttpAnswer cut = http;
    cut.transport = how;
    BOOST_TEST(!date_of(cut).has_value());
  }
}

BOOST_AUTO_TEST_SUITE_END()
