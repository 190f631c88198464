// What answers of DynamoDB's, and of all that may stand in its place, mean.
#include <algorithm>
#include <boost/crc.hpp>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/dynamodb/description.hpp"
#include "tests/support/check_fault.hpp"
#include "tests/support/reader_of.hpp"

namespace {

using ddbmutex::BootTime;
using ddbmutex::dynamodb::Action;
using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Attribute;
using ddbmutex::dynamodb::Fault;
using ddbmutex::dynamodb::find;
using ddbmutex::dynamodb::ServiceTime;
using ddbmutex::dynamodb::TableDescription;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::Transport;
using std::chrono::minutes;
using std::chrono::seconds;

Answer answer_of(Action action, HttpAnswer http, ServiceTime signed_at) {
  return ddbmutex::dynamodb::read_answer(action, std::move(http), signed_at,
                                         tests::reader_of(action));
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

Answer put(const HttpAnswer& http, ServiceTime signed_at = kSigned) {
  return answer_of(Action::put_item, http, signed_at);
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

BOOST_AUTO_TEST_SUITE(answer_of_dynamodb)

BOOST_AUTO_TEST_CASE(success_without_body_members_is_no_fault) {
  for (const Action action :
       {Action::put_item, Action::update_item, Action::delete_item}) {
    const Answer answer = answer_of(action, http_of(200, "{}"), kSigned);
    CHECK_FAULT(answer, Fault::none);
    BOOST_TEST((answer.action == action));
    BOOST_TEST(!answer.item.has_value());
    BOOST_TEST(!answer.outcome_unknown());
  }
}

BOOST_AUTO_TEST_CASE(answer_keeps_what_http_told) {
  const Answer answer = put(http_of(400, refusal("ValidationException")));
  BOOST_TEST(answer.sent);
  BOOST_TEST(answer.request_id == "REQUEST1");
  BOOST_TEST(answer.message == "why");
  BOOST_TEST((answer.sent_at == BootTime(seconds(100))));
  BOOST_TEST((answer.received_at == BootTime(seconds(101))));
}

BOOST_AUTO_TEST_CASE(get_item_found_gives_typed_attributes) {
  const Answer answer = get("{\"Item\":" + std::string(kRecord) + "}");
  CHECK_FAULT(answer, Fault::none);
  BOOST_REQUIRE(answer.item.has_value());
  BOOST_TEST(answer.item->size() == 3u);
  const Attribute* const expires = find(*answer.item, "expires");
  BOOST_REQUIRE(expires != nullptr);
  BOOST_TEST((expires->type == Attribute::Type::number));
  BOOST_TEST(expires->value == "1700000000123456789");
  BOOST_TEST((find(*answer.item, "name")->type == Attribute::Type::string));
  BOOST_TEST((find(*answer.item, "data")->type == Attribute::Type::binary));
  BOOST_TEST(find(*answer.item, "data")->value == "AAEC");
  BOOST_TEST(find(*answer.item, "absent") == nullptr);
}

BOOST_AUTO_TEST_CASE(get_item_not_found_has_no_item) {
  const Answer answer = get("{}");
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(!answer.item.has_value());
}

BOOST_AUTO_TEST_CASE(get_item_of_empty_item_has_an_empty_item) {
  const Answer answer = get("{\"Item\":{}}");
  CHECK_FAULT(answer, Fault::none);
  BOOST_REQUIRE(answer.item.has_value());
  BOOST_TEST(answer.item->empty());
}

BOOST_AUTO_TEST_CASE(update_that_tells_the_item_gives_it) {
  const auto update = [](const std::string& attributes) {
    return answer_of(
        Action::update_item,
        http_of(200, "{\"Attributes\":" + attributes +
                         ",\"ConsumedCapacity\":{\"TableName\":\"locks\"}}"),
        kSigned);
  };
  const Answer answer = update(kRecord);
  CHECK_FAULT(answer, Fault::none);
  BOOST_REQUIRE(answer.item.has_value());
  BOOST_TEST(find(*answer.item, "name")->value == "ddblock-a");
  BOOST_REQUIRE(update("{}").item.has_value());
  BOOST_TEST(update("{}").item->empty());
  for (const char* wrong : {"null", "[]", "{\"n\":{\"N\":7}}", "\"x\""}) {
    CHECK_FAULT(update(wrong), Fault::bad_answer);
    BOOST_TEST(update(wrong).outcome_unknown(), wrong);
    BOOST_TEST(!update(wrong).item.has_value(), wrong);
  }
}

BOOST_AUTO_TEST_CASE(write_may_be_answered_with_what_was_not_asked_for) {
  const Answer answer =
      put(http_of(200,
                  "{\"Attributes\":{},\"ItemCollectionMetrics\":{},"
                  "\"ConsumedCapacity\":{\"TableName\":\"locks\"}}"));
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(!answer.item.has_value());
}

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

BOOST_AUTO_TEST_CASE(status_of_a_proxy_that_may_have_handed_on_is_unknown) {
  for (const int status : {408, 425, 499}) {
    const Answer answer = put(http_of(status, "{\"error\":\"timeout\"}"));
    BOOST_TEST((answer.fault == Fault::server_failure), status);
    BOOST_TEST(answer.outcome_unknown(), status);
  }
}

BOOST_AUTO_TEST_CASE(text_keeps_nuls_escapes_and_other_alphabets) {
  const Answer answer = get(
      "{\"Item\":{\"a\\u0000b\":{\"S\":\"\\u0000\\ud83d\\ude00\xc3\xa9\"}}}");
  BOOST_REQUIRE(answer.item.has_value());
  BOOST_TEST((answer.item->front().name == std::string("a\0b", 3)));
  BOOST_TEST((answer.item->front().value ==
              std::string("\0\xf0\x9f\x98\x80\xc3\xa9", 7)));
}

BOOST_AUTO_TEST_CASE(types_nobody_knows_are_told_as_other_unread) {
  const std::string deep =
      repeated("{\"NEW\":[", 490) + "7" + repeated("]}", 490);
  for (const std::string& value :
       {std::string("{\"\":null}"), std::string("{\"NEW\":{\"S\":\"a\"}}"),
        std::string("{\"s\":\"a\"}"), std::string("{\"other\":\"a\"}"), deep}) {
    const Answer answer =
        get("{\"Item\":{\"x\":" + value + ",\"y\":{\"S\":\"s\"}}}");
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.item.has_value());
    BOOST_TEST((find(*answer.item, "x")->type == Attribute::Type::other));
    BOOST_TEST(find(*answer.item, "x")->value.empty());
    BOOST_TEST(find(*answer.item, "y")->value == "s");
  }
}

std::string with_nested_value(const char* open, const char* close,
                              std::size_t levels) {
  return "{\"Item\":{\"x\":" + repeated(open, levels) + "{\"NULL\":true}" +
         repeated(close, levels) + ",\"y\":{\"S\":\"s\"}}}";
}

// DynamoDB nests no deeper than 32 levels.  JSON is read down to 1,000.
BOOST_AUTO_TEST_CASE(value_nested_beyond_all_bounds_is_left_out) {
  const std::pair<const char*, const char*> ways[] = {{"{\"L\":[", "]}"},
                                                      {"{\"M\":{\"a\":", "}}"}};
  for (const auto& [open, close] : ways) {
    const Answer answer = get(with_nested_value(open, close, 490));
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.item.has_value());
    BOOST_TEST((find(*answer.item, "x")->type == Attribute::Type::unread));
    BOOST_TEST(find(*answer.item, "y")->value == "s");
    CHECK_FAULT(get(with_nested_value(open, close, 20000)), Fault::bad_answer);
  }
}

BOOST_AUTO_TEST_CASE(largest_item_is_read_whole) {
  const std::string data(400 * 1024, 'A');
  const Answer answer = get("{\"Item\":{\"data\":{\"B\":\"" + data + "\"}}}");
  BOOST_REQUIRE(answer.item.has_value());
  BOOST_TEST((find(*answer.item, "data")->value == data));
}

BOOST_AUTO_TEST_CASE(duplicate_attributes_are_both_told_the_first_is_found) {
  const Answer answer =
      get("{\"Item\":{\"u\":{\"S\":\"1\"},\"u\":{\"S\":\"2\"}}}");
  BOOST_REQUIRE(answer.item.has_value());
  BOOST_TEST(answer.item->size() == 2u);
  BOOST_TEST(find(*answer.item, "u")->value == "1");
}

BOOST_AUTO_TEST_CASE(condition_failed_gives_the_item_if_there_is_one) {
  const std::string code =
      "\"__type\":\"com.amazonaws.dynamodb.v20120810#"
      "ConditionalCheckFailedException\"";
  const Answer with_item =
      put(http_of(400, "{" + code +
                           ",\"message\":\"The conditional request failed\","
                           "\"Item\":" +
                           kRecord + "}"));
  CHECK_FAULT(with_item, Fault::condition_failed);
  BOOST_REQUIRE(with_item.item.has_value());
  BOOST_TEST(find(*with_item.item, "name")->value == "ddblock-a");
  BOOST_TEST(with_item.message == "The conditional request failed");
  BOOST_TEST(!with_item.outcome_unknown());

  const Answer none = put(http_of(400, "{" + code + "}"));
  CHECK_FAULT(none, Fault::condition_failed);
  BOOST_TEST(!none.item.has_value());

  const Answer wrong = put(http_of(400, "{" + code + ",\"Item\":[]}"));
  CHECK_FAULT(wrong, Fault::bad_answer);
  BOOST_TEST(!wrong.item.has_value());
}

BOOST_AUTO_TEST_CASE(condition_failed_where_there_is_none_is_a_bad_answer) {
  for (const Action action :
       {Action::get_item, Action::describe_table, Action::create_table,
        Action::update_time_to_live, Action::delete_table, Action::scan,
        Action::query, Action::transact_write_items}) {
    const Answer answer = answer_of(
        action,
        http_of(400,
                "{\"__type\":\"ConditionalCheckFailedException\",\"Item\":" +
                    std::string(kRecord) + "}"),
        kSigned);
    CHECK_FAULT(answer, Fault::bad_answer);
    BOOST_TEST(!answer.item.has_value());
  }
}

BOOST_AUTO_TEST_CASE(other_refusals_with_an_item_do_not_give_it) {
  const Answer answer =
      put(http_of(400, "{\"__type\":\"ThrottlingException\",\"Item\":" +
                           std::string(kRecord) + "}"));
  CHECK_FAULT(answer, Fault::throttled);
  BOOST_TEST(!answer.item.has_value());
}

BOOST_AUTO_TEST_SUITE_END()

// --- Refusals ---------------------------------------------------------------

namespace {

struct CodeCase {
  const char* code;
  Fault expected;
  bool unknown;  // Of the write's outcome.
};

const CodeCase kCodes[] = {
    {"ConditionalCheckFailedException", Fault::condition_failed, false},
    {"ResourceNotFoundException", Fault::no_table, false},
    {"TableNotFoundException", Fault::no_table, false},
    {"UnknownOperationException", Fault::unknown_action, false},
    {"AccessDeniedException", Fault::access_denied, false},
    {"ExpiredTokenException", Fault::expired_keys, false},
    {"ExpiredToken", Fault::expired_keys, false},
    {"UnrecognizedClientException", Fault::bad_keys, false},
    {"InvalidClientTokenId", Fault::bad_keys, false},
    {"InvalidToken", Fault::bad_keys, false},
    {"MissingAuthenticationToken", Fault::bad_keys, false},
    {"MissingAuthenticationTokenException", Fault::bad_keys, false},
    {"IncompleteSignatureException", Fault::bad_keys, false},
    {"InvalidSignatureException", Fault::bad_keys, false},
    {"SignatureDoesNotMatch", Fault::bad_keys, false},
    {"AuthFailure", Fault::bad_keys, false},
    {"RequestExpired", Fault::bad_keys, false},
    {"RequestInTheFuture", Fault::bad_keys, false},
    {"RequestTimeTooSkewed", Fault::bad_keys, false},
    {"ValidationException", Fault::bad_request, false},
    {"SerializationException", Fault::bad_request, false},
    {"ItemCollectionSizeLimitExceededException", Fault::bad_request, false},
    {"IdempotentParameterMismatchException", Fault::bad_request, false},
    {"TransactionCanceledException", Fault::bad_request, false},  // Of a Put.
    {"ResourceInUseException", Fault::table_in_use, false},
    {"NeverSeenBeforeException", Fault::bad_request, false},
    {"InternalServerError", Fault::server_failure, true},
    {"InternalFailure", Fault::server_failure, true},
    {"InternalError", Fault::server_failure, true},
    {"InternalServerException", Fault::server_failure, true},
    {"ServiceUnavailable", Fault::server_failure, true},
    {"RequestTimeout", Fault::server_failure, true},
    {"RequestTimeoutException", Fault::server_failure, true},
    {"TransactionConflictException", Fault::conflict, false},
    {"TransactionInProgressException", Fault::conflict, false},  // Of a Put.
    {"ReplicatedWriteConflictException", Fault::conflict, false},
    {"Throttling", Fault::throttled, true},
    {"ThrottlingException", Fault::throttled, true},
    {"ThrottledException", Fault::throttled, true},
    {"RequestThrottled", Fault::throttled, true},
    {"RequestThrottledException", Fault::throttled, true},
    {"TooManyRequestsException", Fault::throttled, true},
    {"ProvisionedThroughputExceededException", Fault::throttled, true},
    {"RequestLimitExceeded", Fault::throttled, true},
    {"BandwidthLimitExceeded", Fault::throttled, true},
    {"LimitExceededException", Fault::throttled, true},
    {"PriorRequestNotComplete", Fault::throttled, true},
    {"SlowDown", Fault::throttled, true},
    {"EC2ThrottledException", Fault::throttled, true},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(refusal_of_dynamodb)

BOOST_AUTO_TEST_CASE(code_is_found_in_all_forms_of_type) {
  const std::pair<const char*, const char*> forms[] = {
      {"ThrottlingException", "ThrottlingException"},
      {"com.amazonaws.dynamodb.v20120810#ThrottlingException",
       "ThrottlingException"},
      {"com.amazon.coral.service#ThrottlingException", "ThrottlingException"},
      {"ThrottlingException:http://internal.amazon.com/coral/x/",
       "ThrottlingException"},
      {"ThrottlingException,http://internal.amazon.com/coral/x/",
       "ThrottlingException"},
      {"aws.x#ThrottlingException:http://a.b/c#d,e", "ThrottlingException"},
      {"#ThrottlingException", "ThrottlingException"},
      {"a#", ""},
      {":", ""},
  };
  for (const auto& form : forms) {
    BOOST_TEST_CONTEXT(form.first) {
      const Answer answer = put(http_of(400, refusal(form.first)));
      CHECK_FAULT(answer,
                  *form.second == '\0' ? Fault::bad_request : Fault::throttled);
    }
  }
}

BOOST_AUTO_TEST_CASE(code_and_message_come_from_wherever_they_stand) {
  const Answer code =
      put(http_of(400, "{\"code\":\"x#SlowDown\",\"Message\":\"M\"}"));
  CHECK_FAULT(code, Fault::throttled);
  BOOST_TEST(code.message == "M");

  const Answer header =
      put(with(http_of(400, "{}"), "X-Amzn-ErrorType",
               "ExpiredTokenException:http://internal.amazon.com/"));
  CHECK_FAULT(header, Fault::expired_keys);

  const Answer first =
      put(with(http_of(400,
                       "{\"code\":\"SlowDown\",\"__type\":"
                       "\"ValidationException\",\"Message\":\"M\","
                       "\"message\":\"m\"}"),
               "x-amzn-errortype", "ExpiredToken"));
  CHECK_FAULT(first, Fault::bad_request);
  BOOST_TEST(first.message == "m");
}

BOOST_AUTO_TEST_CASE(members_of_wrong_types_are_as_if_absent) {
  for (const char* body :
       {"{\"__type\":17,\"message\":{}}", "{\"__type\":null,\"Message\":[]}",
        "{\"__type\":[\"SlowDown\"],\"code\":{\"a\":1}}",
        "{\"__type\":\"\"}"}) {
    const Answer answer = put(http_of(400, body));
    CHECK_FAULT(answer, Fault::bad_request);
    BOOST_TEST(answer.message.empty());
  }
}

BOOST_AUTO_TEST_CASE(each_code_means_its_fault) {
  for (const CodeCase& c : kCodes) {
    BOOST_TEST_CONTEXT(c.code) {
      const Answer answer = put(http_of(400, refusal(c.code)));
      CHECK_FAULT(answer, c.expected);
      BOOST_TEST(answer.outcome_unknown() == c.unknown);
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_that_may_have_been_changed_are_told) {
  for (const CodeCase& c : kCodes) {
    const std::string code = c.code;
    const bool changed =
        code == "ExpiredTokenException" || code == "ExpiredToken" ||
        code == "UnrecognizedClientException" || code == "InvalidClientTokenId";
    BOOST_TEST(put(http_of(400, refusal(code))).other_keys == changed, code);
    BOOST_TEST(!put(http_of(500, refusal(code))).other_keys, code);
  }
}

BOOST_AUTO_TEST_CASE(unknown_code_means_what_its_status_says) {
  const std::pair<int, Fault> cases[] = {
      {400, Fault::bad_request},    {401, Fault::access_denied},
      {403, Fault::access_denied},  {404, Fault::bad_request},
      {413, Fault::bad_request},    {429, Fault::throttled},
      {500, Fault::server_failure}, {502, Fault::server_failure},
      {503, Fault::server_failure}, {504, Fault::server_failure},
      {509, Fault::throttled},      {599, Fault::server_failure},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.first) {
      for (const std::string& body : {std::string("{}"), refusal("Odd")}) {
        CHECK_FAULT(put(http_of(c.first, body)), c.second);
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

BOOST_AUTO_TEST_CASE(status_neither_success_nor_error_is_a_bad_answer) {
  for (const int status : {0, 100, 201, 202, 204, 206, 301, 302, 304, 307}) {
    for (const char* body : {"{}", ""}) {
      CHECK_FAULT(put(http_of(status, body)), Fault::bad_answer);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Pages ------------------------------------------------------------------

namespace {

Answer page(const std::string& body, Action action = Action::scan) {
  return answer_of(action, http_of(200, body), kSigned);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(page_of_items)

BOOST_AUTO_TEST_CASE(page_gives_its_items_in_order_and_where_the_next_begins) {
  for (const Action action : {Action::scan, Action::query}) {
    const Answer answer =
        page(R"({"Items":[{"name":{"S":"a"}},{"name":{"S":"b"},"n":{"N":"1"}}])"
             R"(,"Count":2,"ScannedCount":7,"LastEvaluatedKey":)"
             R"({"name":{"S":"b"},"sort":{"B":"AA=="}},)"
             R"("ConsumedCapacity":{"TableName":"locks"}})",
             action);
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.items.size() == 2u);
    BOOST_TEST(find(answer.items[0], "name")->value == "a");
    BOOST_TEST(find(answer.items[1], "name")->value == "b");
    BOOST_TEST(find(answer.items[1], "n")->value == "1");
    BOOST_REQUIRE(answer.item.has_value());
    BOOST_TEST(answer.item->size() == 2u);
    BOOST_TEST(find(*answer.item, "name")->value == "b");
    BOOST_TEST(find(*answer.item, "sort")->value == "AA==");
  }
}

BOOST_AUTO_TEST_CASE(last_page_has_no_next) {
  for (const char* body : {R"({"Items":[]})", R"({"Items":[],"Count":0})",
                           R"({"Items":[],"LastEvaluatedKey":null})"}) {
    const Answer answer = page(body);
    CHECK_FAULT(answer, Fault::none);
    BOOST_TEST(answer.items.empty());
    BOOST_TEST(!answer.item.has_value());
  }
}

BOOST_AUTO_TEST_CASE(page_that_is_not_one_gives_nothing) {
  for (const char* body :
       {"{}", R"({"Count":0})", R"({"Items":null})", R"({"Items":{}})",
        R"({"Items":[7]})", R"({"Items":[{"name":{"S":"a"}},null]})",
        R"({"Items":[{"name":{"S":7}}]})", R"({"Items":[],"Item":{}})",
        R"({"Items":[],"LastEvaluatedKey":{}})",
        R"({"Items":[],"LastEvaluatedKey":{"a":{"S":"a"},"b":{"S":"b"},)"
        R"("c":{"S":"c"},"d":{"S":"d"},"e":{"S":"e"}}})",
        R"({"Items":[{"name":{"S":"a"}}],"LastEvaluatedKey":"a"})",
        R"({"Items":[{"name":{"S":"a"}}],"LastEvaluatedKey":{"name":"a"}})"}) {
    for (const Action action : {Action::scan, Action::query}) {
      const Answer answer = page(body, action);
      BOOST_TEST((answer.fault == Fault::bad_answer), body);
      BOOST_TEST(answer.items.empty(), body);
      BOOST_TEST(!answer.item.has_value(), body);
    }
  }
}

BOOST_AUTO_TEST_CASE(page_too_large_for_the_client_is_told_as_such) {
  HttpAnswer http = http_of(200, "");
  http.transport = Transport::too_large;
  const Answer answer = answer_of(Action::scan, http, kSigned);
  CHECK_FAULT(answer, Fault::bad_answer);
  BOOST_TEST(answer.too_large);
  BOOST_TEST(!page("{}").too_large);
}

// Of six items with 7,000 values each; or of items that have none.  They take
// many times their JSON in memory.
BOOST_AUTO_TEST_CASE(page_of_too_many_values_is_told_as_too_large) {
  std::string list = R"({"name":{"S":"a"},"note":{"L":[{"S":""})";
  for (int i = 1; i < 7000; ++i) list += R"(,{"S":""})";
  list += "]}}";
  std::string lists = list, none = "{}";
  for (int i = 1; i < 6; ++i) lists += "," + list;
  for (int i = 1; i < 50000; ++i) none += ",{}";
  for (const std::string& items : {lists, none}) {
    const Answer answer = page(R"({"Items":[)" + items + "]}");
    CHECK_FAULT(answer, Fault::bad_answer);
    BOOST_TEST(answer.too_large);
    BOOST_TEST(answer.items.empty());
  }
  lists.resize(5 * list.size() + 4);
  BOOST_TEST(page(R"({"Items":[)" + lists + "]}").items.size() == 5u);
}

BOOST_AUTO_TEST_CASE(query_that_misses_the_key_names_a_wrong_key) {
  const HttpAnswer http =
      http_of(400, R"({"__type":"x#ValidationException","message":)"
                   R"("Query condition missed key schema element: name"})");
  CHECK_FAULT(answer_of(Action::query, http, kSigned), Fault::wrong_key);
  CHECK_FAULT(answer_of(Action::scan, http, kSigned), Fault::bad_request);
}

BOOST_AUTO_TEST_SUITE_END()

// --- Transactions -----------------------------------------------------------

namespace {

Answer transact(int status, const std::string& body) {
  return answer_of(Action::transact_write_items, http_of(status, body),
                   kSigned);
}

// With CancellationReasons, unless that is empty, and with words.
std::string cancelled(const std::string& reasons,
                      const std::string& message = "Transaction cancelled") {
  return R"({"__type":"com.amazonaws.dynamodb.v20120810#)"
         R"(TransactionCanceledException","Message":")" +
         message + "\"" +
         (reasons.empty() ? "" : ",\"CancellationReasons\":" + reasons) + "}";
}

// As DynamoDB words it.
std::string worded(const std::string& codes) {
  return cancelled("",
                   "Transaction cancelled, please refer cancellation reasons "
                   "for specific reasons [" +
                       codes + "]");
}

// [{"Code":"a"},{"Code":"b"}]
std::string listed(const std::vector<std::string>& codes) {
  std::string list;
  for (const std::string& code : codes) {
    list += (list.empty() ? "[" : ",") + ("{\"Code\":\"" + code + "\"}");
  }
  return list + "]";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_to_a_transaction)

BOOST_AUTO_TEST_CASE(transaction_that_was_carried_out_is_no_fault) {
  for (const char* body :
       {"{}", R"({"ConsumedCapacity":[{"TableName":"locks"}]})",
        R"({"ItemCollectionMetrics":{"locks":[]}})"}) {
    const Answer answer = transact(200, body);
    CHECK_FAULT(answer, Fault::none);
    BOOST_TEST(answer.part == -1);
  }
  for (const char* body : {R"({"Attributes":{}})", R"({"Items":[]})",
                           R"({"CancellationReasons":[]})"}) {
    CHECK_FAULT(transact(200, body), Fault::bad_answer);
  }
}

BOOST_AUTO_TEST_CASE(condition_that_failed_is_told_by_its_place) {
  const Answer answer = transact(
      400, cancelled(R"([{"Code":"None"},{"Code":"ConditionalCheckFailed",)"
                     R"("Message":"The conditional request failed","Item":)" +
                     std::string(kRecord) + "}]"));
  CHECK_FAULT(answer, Fault::condition_failed);
  BOOST_TEST(answer.part == 1);
  BOOST_TEST(answer.message ==
             "part 1: ConditionalCheckFailed: The conditional request failed");
  BOOST_TEST(!answer.item.has_value());
  BOOST_TEST(!answer.outcome_unknown());
}

BOOST_AUTO_TEST_CASE(weightiest_reason_is_the_fault) {
  struct Case {
    std::vector<std::string> codes;
    Fault fault;
    int part;
  };
  const Case cases[] = {
      {{"ConditionalCheckFailed", "None"}, Fault::condition_failed, 0},
      {{"None", "ConditionalCheckFailed"}, Fault::condition_failed, 1},
      {{"TransactionConflict", "ConditionalCheckFailed"},
       Fault::condition_failed,
       1},
      {{"ConditionalCheckFailed", "ThrottlingError"},
       Fault::condition_failed,
       0},
      {{"None", "TransactionConflict"}, Fault::conflict, 1},
      {{"ThrottlingError", "TransactionConflict"}, Fault::conflict, 1},
      {{"None", "ThrottlingError"}, Fault::throttled, 1},
      {{"ProvisionedThroughputExceeded", "None"}, Fault::throttled, 0},
      {{"RequestLimitExceeded", "None"}, Fault::throttled, 0},
      {{"None", "ValidationError"}, Fault::bad_request, 1},
      {{"ItemCollectionSizeLimitExceeded", "None"}, Fault::bad_request, 0},
      {{"None", "None"}, Fault::bad_request, -1},
      {{"Conditional", "conditionalcheckfailed"}, Fault::bad_request, 0},
      {{"ConditionalCheckFailed", "ConditionalCheckFailed"},
       Fault::condition_failed,
       0},
  };
  for (const auto& [codes, fault, part] : cases) {
    const std::string joined = codes[0] + ", " + codes[1];
    for (const std::string& body : {cancelled(listed(codes)), worded(joined)}) {
      BOOST_TEST_CONTEXT(body) {
        const Answer answer = transact(400, body);
        CHECK_FAULT(answer, fault);
        BOOST_TEST(answer.part == part);
        if (part >= 0) {
          BOOST_TEST(answer.message ==
                     "part " + std::to_string(part) + ": " +
                         codes[static_cast<std::size_t>(part)]);
        }
        BOOST_TEST(!answer.outcome_unknown());  // Not even of a conflict.
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(reasons_are_read_from_words_only_where_none_are_listed) {
  const std::string message = "reasons [ConditionalCheckFailed, None]";
  const Answer both =
      transact(400, cancelled(listed({"None", "ValidationError"}), message));
  CHECK_FAULT(both, Fault::bad_request);
  BOOST_TEST(both.part == 1);
  CHECK_FAULT(transact(400, cancelled("null", message)),
              Fault::condition_failed);
  const std::pair<const char*, const char*> texts[] = {
      {"[A]", "part 0: A"},
      {"[A,B]", "part 0: A"},
      {"[None,B]", "part 1: B"},
      {"x [old] [None,  B] y", "part 1: B"},
      {"", ""},
      {"no list", "no list"},
      {"[]", "[]"},
      {"] backwards [", "] backwards ["},
      {"[unended", "[unended"},
      {"unbegun]", "unbegun]"},
      {"[A, ]", "part 0: A"},
      {"[None, ]", "[None, ]"},
  };
  for (const auto& [text, told] : texts) {
    const Answer answer = transact(400, cancelled("", text));
    CHECK_FAULT(answer, Fault::bad_request);
    BOOST_TEST(answer.message == told, text);
    BOOST_TEST(!answer.outcome_unknown(), text);
  }
}

BOOST_AUTO_TEST_CASE(reasons_that_are_no_list_of_reasons_are_a_bad_answer) {
  for (const char* reasons :
       {"7", "{}", "\"ConditionalCheckFailed\"", "[\"ConditionalCheckFailed\"]",
        R"([{"Code":"ConditionalCheckFailed"},null])"}) {
    const Answer answer = transact(
        400, cancelled(reasons, "reasons [ConditionalCheckFailed, None]"));
    BOOST_TEST((answer.fault == Fault::bad_answer), reasons);
    BOOST_TEST(answer.part == -1, reasons);
    BOOST_TEST(answer.outcome_unknown(), reasons);
  }
  // One that is, though it does not say which.
  const Answer silent = transact(400, cancelled(R"([{"Code":7},{}])"));
  CHECK_FAULT(silent, Fault::bad_request);
  BOOST_TEST(silent.part == -1);
}

BOOST_AUTO_TEST_CASE(cancellation_with_the_status_of_a_failure_is_not_certain) {
  for (const int status : {500, 503}) {
    const Answer answer =
        transact(status, cancelled(listed({"ConditionalCheckFailed", "None"})));
    CHECK_FAULT(answer, Fault::server_failure);
    BOOST_TEST(answer.part == -1);
    BOOST_TEST(answer.outcome_unknown());
  }
}

BOOST_AUTO_TEST_CASE(cancellation_of_no_transaction_has_no_reasons) {
  for (const Action action : {Action::put_item, Action::get_item, Action::scan,
                              Action::describe_table}) {
    const Answer answer = answer_of(
        action,
        http_of(400, cancelled(listed({"ConditionalCheckFailed", "None"}))),
        kSigned);
    CHECK_FAULT(answer, Fault::bad_request);
    BOOST_TEST(answer.part == -1);
  }
}

BOOST_AUTO_TEST_CASE(transaction_still_under_way_is_worth_another_attempt) {
  const Answer answer =
      transact(400, refusal("TransactionInProgressException"));
  CHECK_FAULT(answer, Fault::conflict);
  BOOST_TEST(answer.outcome_unknown());
  CHECK_FAULT(transact(400, refusal("IdempotentParameterMismatchException")),
              Fault::bad_request);
}

BOOST_AUTO_TEST_SUITE_END()

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

// "name, sort", and whether they are strings.
std::string keys_of(const TableDescription& table) {
  return table.key + (table.sort_key.empty() ? "" : ", " + table.sort_key) +
         (table.keys_are_strings ? "" : ", not strings");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_about_a_table)

BOOST_AUTO_TEST_CASE(each_action_tells_the_table_in_its_own_member) {
  const std::string table = usual_table(
      R"("TableName":"locks","TableId":"7","ItemCount":3,"Replicas":null)");
  const std::pair<Action, const char*> members[] = {
      {Action::describe_table, "Table"},
      {Action::create_table, "TableDescription"},
      {Action::delete_table, "TableDescription"}};
  for (const auto& [action, member] : members) {
    const auto answered = [action = action, &table](const char* name) {
      return answer_of(
          action, http_of(200, std::string("{\"") + name + "\":" + table + "}"),
          kSigned);
    };
    BOOST_TEST_CONTEXT(ddbmutex::dynamodb::name_of(action)) {
      const Answer answer = answered(member);
      CHECK_FAULT(answer, Fault::none);
      BOOST_REQUIRE(answer.table);
      BOOST_TEST(answer.table->status == "ACTIVE");
      BOOST_TEST(answer.table->id == "7");
      BOOST_TEST(keys_of(*answer.table) == "name");
      BOOST_TEST(!answer.table->eventual_replicas);
      for (const char* other :
           {"Table", "TableDescription", "Item", "Attributes",
            "ConsumedCapacity", "TimeToLiveSpecification", ""}) {
        if (std::string(other) == member) continue;
        CHECK_FAULT(answered(other), Fault::bad_answer);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_are_told_with_their_roles_and_types) {
  const Answer answer =
      describe(R"({"TableStatus":"CREATING","AttributeDefinitions":[)"
               R"({"AttributeName":"z","AttributeType":"S"},)"
               R"({"AttributeName":"b","AttributeType":"B"},)"
               R"({"AttributeName":"a","AttributeType":"N"}],"KeySchema":[)"
               R"({"AttributeName":"a","KeyType":"HASH"},)"
               R"({"AttributeName":"b","KeyType":"RANGE"}]})");
  BOOST_REQUIRE(answer.table);
  BOOST_TEST(answer.table->status == "CREATING");
  BOOST_TEST(answer.table->id == "");
  BOOST_TEST(keys_of(*answer.table) == "a, b, not strings");
}

BOOST_AUTO_TEST_CASE(both_parts_of_a_key_are_to_be_strings) {
  const auto keys = [](const std::string& first, const std::string& second) {
    const Answer answer = describe(
        R"({"TableStatus":"ACTIVE","AttributeDefinitions":[)"
        R"({"AttributeName":"b","AttributeType":")" +
        second + R"("},{"AttributeName":"a","AttributeType":")" + first +
        R"("}],"KeySchema":[{"AttributeName":"b","KeyType":"RANGE"},)"
        R"({"AttributeName":"a","KeyType":"HASH"}]})");
    return answer.table ? keys_of(*answer.table) : "none";
  };
  BOOST_TEST(keys("S", "S") == "a, b");
  BOOST_TEST(keys("N", "S") == "a, b, not strings");
  BOOST_TEST(keys("S", "B") == "a, b, not strings");
}

BOOST_AUTO_TEST_CASE(key_whose_type_is_not_told_is_of_another_type) {
  for (
      const char* definitions :
      {"", R"(,"AttributeDefinitions":null)", R"(,"AttributeDefinitions":7)",
       R"(,"AttributeDefinitions":[7,{},{"AttributeName":"name"}])",
       R"(,"AttributeDefinitions":[{"AttributeName":"n","AttributeType":"S"}])",
       R"(,"AttributeDefinitions":[)"
       R"({"AttributeName":"name","AttributeType":"SS"}])"}) {
    const Answer answer = describe(std::string("{") + kStatus + "," +
                                   kKeySchema + definitions + "}");
    BOOST_TEST_CONTEXT(definitions) {
      BOOST_REQUIRE(answer.table);
      BOOST_TEST(keys_of(*answer.table) == "name, not strings");
    }
  }
}

BOOST_AUTO_TEST_CASE(table_being_deleted_needs_no_keys) {
  for (const char* keys : {"", R"(,"KeySchema":[])", R"(,"KeySchema":null)"}) {
    const std::string rest = std::string(keys) + "}";
    const Answer answer = describe(R"({"TableStatus":"DELETING")" + rest);
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.table);
    BOOST_TEST(keys_of(*answer.table) == "");
    CHECK_FAULT(describe(R"({"TableStatus":"ACTIVE")" + rest),
                Fault::bad_answer);
  }
}

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

BOOST_AUTO_TEST_CASE(description_that_makes_no_sense_is_a_bad_answer) {
  const auto keyed = [](const char* schema) {
    return std::string("{") + kStatus + ",\"KeySchema\":" + schema + "," +
           kDefinitions + "}";
  };
  for (const std::string& table :
       {std::string("null"),
        std::string("[]"),
        std::string("\"ACTIVE\""),
        std::string("{}"),
        std::string("{") + kStatus + "}",
        std::string("{") + kKeySchema + "," + kDefinitions + "}",
        std::string(R"({"TableStatus":7,)") + kKeySchema + "}",
        std::string(R"({"TableStatus":"",)") + kKeySchema + "}",
        keyed("[]"),
        keyed("{}"),
        keyed("\"name\""),
        keyed("[\"name\"]"),
        keyed("[[]]"),
        keyed("[null]"),
        keyed("[{}]"),
        keyed(R"([{"AttributeName":"name"}])"),
        keyed(R"([{"KeyType":"HASH"}])"),
        keyed(R"([{"AttributeName":"","KeyType":"HASH"}])"),
        keyed(R"([{"AttributeName":7,"KeyType":"HASH"}])"),
        keyed(R"([{"AttributeName":"name","KeyType":"hash"}])"),
        keyed(R"([{"AttributeName":"name","KeyType":"HASH"},7])"),
        keyed(R"([{"AttributeName":"name","KeyType":"HASH"},)"
              R"({"AttributeName":"other","KeyType":"HASH"}])"),
        keyed(R"([{"AttributeName":"name","KeyType":"RANGE"}])"),
        usual_table(R"("Replicas":{})"),
        usual_table(R"("Replicas":"x")"),
        usual_table(R"("Replicas":true)")}) {
    BOOST_TEST_CONTEXT(table) {
      const Answer answer = describe(table);
      CHECK_FAULT(answer, Fault::bad_answer);
      BOOST_TEST(!answer.table);
      BOOST_TEST(!answer.message.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(table_action_answered_without_its_member_is_no_success) {
  for (const Action action :
       {Action::describe_table, Action::create_table,
        Action::update_time_to_live, Action::delete_table}) {
    for (const char* body :
         {"{}", "{\"status\":\"ok\"}", "{\"\":{}}", "{\"Item\":{}}"}) {
      const Answer answer = answer_of(action, http_of(200, body), kSigned);
      CHECK_FAULT(answer, Fault::bad_answer);
      BOOST_TEST(!answer.table);
    }
  }
}

BOOST_AUTO_TEST_CASE(time_to_live_is_answered_with_its_specification) {
  const auto answered = [](const char* body) {
    return answer_of(Action::update_time_to_live, http_of(200, body), kSigned);
  };
  const Answer answer = answered(
      R"({"TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}})");
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(!answer.table);
  CHECK_FAULT(answered(R"({"TimeToLiveSpecification":{},"Table":{}})"),
              Fault::bad_answer);
}

BOOST_AUTO_TEST_CASE(time_to_live_that_is_on_already_is_well) {
  const auto refused = [](Action action, const std::string& message,
                          int status) {
    return answer_of(
        action,
        http_of(status, R"({"__type":"x#ValidationException","message":")" +
                            message + "\"}"),
        kSigned);
  };
  const std::string on = "TimeToLive is already enabled";
  const Action update = Action::update_time_to_live;
  const Answer answer = refused(update, on, 400);
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(answer.message == "");
  BOOST_TEST(answer.request_id == "");
  CHECK_FAULT(refused(update, on, 500), Fault::server_failure);
  CHECK_FAULT(refused(update, "TimeToLive is disabled", 400),
              Fault::bad_request);
  CHECK_FAULT(refused(Action::create_table, on, 400), Fault::bad_request);
}

BOOST_AUTO_TEST_CASE(refusal_with_a_table_does_not_give_it) {
  const std::string table = ",\"Table\":" + usual_table() + "}";
  for (const char* code : {"ResourceNotFoundException", "SlowDown"}) {
    const Answer answer = answer_of(
        Action::describe_table,
        http_of(400, std::string("{\"__type\":\"") + code + "\"" + table),
        kSigned);
    BOOST_TEST((answer.fault != Fault::none && !answer.table));
  }
}

BOOST_AUTO_TEST_SUITE_END()

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

BOOST_AUTO_TEST_SUITE(refusal_of_a_key)

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
        BOOST_TEST(!is_passing(answer.fault));
        BOOST_TEST(!answer.outcome_unknown());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(other_validation_errors_stay_bad_requests) {
  for (const std::string& message :
       {std::string(),
        std::string("why"),
        kInvalid,
        std::string("The provided key element does not match the schema."),
        std::string("the provided key element does not match the schema"),
        std::string("The provided starting key is invalid: The provided key "
                    "element does not match the schema"),
        kInvalid + "Missing the key ",
        kInvalid + "Missing the key in the item",
        kInvalid + "Missing the key  in the item ",
        std::string("Missing the key id in the item"),
        kInvalid + "Type mismatch for Index Key a Expected: S Actual: N "
                   "IndexName: i",
        kInvalid + "Type mismatch for key name expected: N",
        kInvalid + "Type mismatch for key  expected: N actual: S",
        kInvalid + "Type mismatch for key name expected: N actual: ",
        kInvalid + "Size of hashkey has exceeded the maximum size limit of2048 "
                   "bytes",
        kInvalid + "The AttributeValue for a key attribute cannot contain an "
                   "empty string value. Key: name",
        std::string("Key column  not foun"),
        std::string("Key column "),
        std::string("Invalid ConditionExpression: Syntax error"),
        std::string("TimeToLive is already enabled")}) {
    for (const Action action : kItemActions) {
      BOOST_TEST_CONTEXT(message) {
        CHECK_FAULT(refused_as(action, "ValidationException", message),
                    Fault::bad_request);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(wrong_key_is_believed_of_validation_of_items_alone) {
  const std::string message =
      "The provided key element does not match the schema";
  CHECK_FAULT(refused_as(Action::put_item, "SerializationException", message),
              Fault::bad_request);
  CHECK_FAULT(refused_as(Action::put_item, "AccessDeniedException", message),
              Fault::access_denied);
  for (const Action action :
       {Action::describe_table, Action::create_table,
        Action::update_time_to_live, Action::delete_table}) {
    CHECK_FAULT(refused_as(action, "ValidationException", message),
                Fault::bad_request);
  }
  const Answer failed =
      refused_as(Action::put_item, "ValidationException", message, 500);
  CHECK_FAULT(failed, Fault::server_failure);
  BOOST_TEST(failed.outcome_unknown());
}

BOOST_AUTO_TEST_SUITE_END()

// --- What is not DynamoDB's -------------------------------------------------

namespace {

struct HostileCase {
  const char* what;
  int status;
  std::string body;
  Fault expected = Fault::bad_answer;
};

std::string item(const char* text) {
  return std::string("{\"Item\":") + text + "}";
}

std::vector<HostileCase> hostile_cases() {
  const std::string nul(1, '\0');
  return {
      {"empty", 200, ""},
      {"blank", 200, "   \r\n"},
      {"HTML", 200, "<!DOCTYPE html><html></html>"},
      {"array", 200, "[]"},
      {"array of an item", 200, "[" + item(kRecord) + "]"},
      {"string", 200, "\"{}\""},
      {"number", 200, "17"},
      {"null", 200, "null"},
      {"cut at once", 200, "{"},
      {"cut in the item", 200, item(kRecord).substr(0, 40)},
      {"cut before its end", 200,
       item(kRecord).substr(0, item(kRecord).size() - 1)},
      {"something behind it", 200, "{}{}"},
      {"HTML behind it", 200, "{}<html>"},
      {"HTML behind a NUL", 200, "{}" + nul + "<html>"},
      {"NUL behind it", 200, "{}" + nul},
      {"NUL before it", 200, nul + "{}"},
      {"NUL in it", 200, "{\"Item\":" + nul + "{}}"},
      {"NUL in a string", 200, "{\"Item\":{\"a\":{\"S\":\"" + nul + "\"}}}"},
      {"error as 200", 200, refusal("InternalServerError")},
      {"odd error as 200", 200, "{\"__type\":17}"},
      {"invalid UTF-8", 200, item("{\"a\":{\"S\":\"\xff\xfe\"}}")},
      {"cut UTF-8", 200, item("{\"a\":{\"S\":\"\xc3\"}}")},
      {"overlong UTF-8", 200, item("{\"a\":{\"S\":\"\xc0\xaf\"}}")},
      {"surrogate in UTF-8", 200, item("{\"a\":{\"S\":\"\xed\xa0\x80\"}}")},
      {"half a surrogate pair", 200, item("{\"a\":{\"S\":\"\\ud800\"}}")},
      {"UTF-16", 200, "{" + nul + "}" + nul},
      {"400 KB of [", 200, std::string(400 * 1024, '[')},
      {"400 KB of {\"a\":", 200, repeated("{\"a\":", 80 * 1024)},
      {"400 KB of [ closed", 200,
       std::string(200 * 1024, '[') + std::string(200 * 1024, ']')},
      {"1 MB of blanks", 200, std::string(1 << 20, ' ')},
      {"Item null", 200, item("null")},
      {"Item array", 200, item("[]")},
      {"Item text", 200, item("\"a\"")},
      {"Item number", 200, item("1")},
      {"Item true", 200, item("true")},
      {"attribute null", 200, item("{\"a\":null}")},
      {"attribute text", 200, item("{\"a\":\"S\"}")},
      {"attribute array", 200, item("{\"a\":[\"S\",\"b\"]}")},
      {"attribute number", 200, item("{\"a\":1}")},
      {"attribute empty", 200, item("{\"a\":{}}")},
      {"attribute of two types", 200,
       item("{\"a\":{\"S\":\"1\",\"N\":\"1\"}}")},
      {"attribute twice", 200, item("{\"a\":{\"S\":\"1\",\"S\":\"2\"}}")},
      {"S a number", 200, item("{\"a\":{\"S\":1}}")},
      {"S null", 200, item("{\"a\":{\"S\":null}}")},
      {"S an object", 200, item("{\"a\":{\"S\":{\"S\":\"a\"}}}")},
      {"S an array", 200, item("{\"a\":{\"S\":[\"a\"]}}")},
      {"N a number", 200, item("{\"a\":{\"N\":1700000000}}")},
      {"N true", 200, item("{\"a\":{\"N\":true}}")},
      {"B a number", 200, item("{\"a\":{\"B\":0}}")},
      {"B an array", 200, item("{\"a\":{\"B\":[1,2]}}")},
      {"good and bad attribute", 200, item("{\"g\":{\"S\":\"1\"},\"b\":{}}")},
      {"1e999999", 200, "{\"a\":1e999999}"},
      {"1e999999 in L", 200, item("{\"a\":{\"L\":[1e999999]}}")},
      {"-1e999999", 200, "{\"a\":-1e999999}"},
      {"NaN", 200, "{\"a\":NaN}"},
      {"comment", 200, "{/* */}"},
      {"comma too many", 200, "{\"a\":1,}"},
      {"refusal, cut", 400, refusal("SlowDown").substr(0, 30)},
      {"refusal, HTML", 400, "<html>"},
      {"refusal, NUL behind", 400, refusal("SlowDown") + nul},
      {"500, array", 500, "[]", Fault::server_failure},
      {"500, deep", 500, std::string(400 * 1024, '['), Fault::server_failure},
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_that_is_not_dynamodbs)

BOOST_AUTO_TEST_CASE(hostile_body_gives_its_fault_and_no_item) {
  for (const HostileCase& c : hostile_cases()) {
    BOOST_TEST_CONTEXT(c.what) {
      const Answer answer =
          answer_of(Action::get_item, http_of(c.status, c.body), kSigned);
      CHECK_FAULT(answer, c.expected);
      BOOST_TEST(answer.outcome_unknown());
      BOOST_TEST(!answer.item.has_value());
      BOOST_TEST(!answer.message.empty());
      // The checksum of a hostile server is right.
      const Answer checked = answer_of(
          Action::get_item,
          with(http_of(c.status, c.body), "x-amz-crc32", crc32_of(c.body)),
          kSigned);
      CHECK_FAULT(checked, c.expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(absurd_numbers_as_text_are_for_the_records_reader) {
  for (const char* number : {"1e999999", "-0", "", "NaN", "0x10", " 1",
                             "99999999999999999999999999999999999999999"}) {
    const Answer answer =
        get(item((std::string("{\"a\":{\"N\":\"") + number + "\"}}").c_str()));
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.item.has_value());
    BOOST_TEST(answer.item->front().value == number);
  }
}

BOOST_AUTO_TEST_CASE(two_items_the_first_counts) {
  const Answer answer =
      get("{\"Item\":{\"a\":{\"S\":\"1\"}},\"Item\":{\"a\":{\"S\":\"2\"}}}");
  BOOST_REQUIRE(answer.item.has_value());
  BOOST_TEST(answer.item->front().value == "1");
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

BOOST_AUTO_TEST_CASE(retry_after_is_milliseconds_or_nothing) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"1500", 1500},
      {"0", 0},
      {"-5", 0},
      {"soon", 0},
      {"1.5", 0},
      {"", 0},
      {"3600000", 3600000},
      {"3600001", 3600000},
      {"9223372036854775807", 3600000},
      {"9223372036854775808", 0},
      {"99999999999999999999", 0},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT("x-amz-retry-after: " << c.first) {
      const Answer answer =
          put(with(http_of(503, ""), "x-amz-retry-after", c.first));
      BOOST_TEST(answer.retry_after.count() == c.second);
    }
  }
  BOOST_TEST(put(http_of(503, "")).retry_after.count() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

// --- No answer at all -------------------------------------------------------

BOOST_AUTO_TEST_SUITE(exchange_without_an_answer)

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

// Ten megabytes, of which http.cpp keeps nothing.
BOOST_AUTO_TEST_CASE(too_large_with_a_success_inside_is_no_success) {
  HttpAnswer http = http_of(200, "{}");
  http.transport = Transport::too_large;
  CHECK_FAULT(put(http), Fault::bad_answer);
  BOOST_TEST(!date_of(http).has_value());
}

BOOST_AUTO_TEST_CASE(faults_and_actions_have_names_of_their_own) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Fault::cancelled); ++i) {
    names.emplace_back(name_of(static_cast<Fault>(i)));
  }
  for (std::size_t i = 0; i < ddbmutex::dynamodb::kActions; ++i) {
    names.emplace_back(ddbmutex::dynamodb::name_of(static_cast<Action>(i)));
  }
  BOOST_TEST((std::count(names.begin(), names.end(), "") == 0));
  std::sort(names.begin(), names.end());
  BOOST_TEST((std::adjacent_find(names.begin(), names.end()) == names.end()));
}

BOOST_AUTO_TEST_SUITE_END()

// --- Time -------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(date_beside_an_answer)

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

BOOST_AUTO_TEST_CASE(refused_four_minutes_off_was_signed_for_another_time) {
  for (const char* code :
       {"AccessDeniedException", "AuthFailure", "InvalidSignatureException",
        "SignatureDoesNotMatch", "RequestExpired", "RequestInTheFuture",
        "RequestTimeTooSkewed"}) {
    const HttpAnswer http = http_of(400, refusal(code));
    const Fault plain = put(http).fault;
    BOOST_TEST_CONTEXT(code) {
      BOOST_TEST((plain == Fault::bad_keys || plain == Fault::access_denied));
      const ServiceTime just = minutes(4);
      const ServiceTime below = just - std::chrono::nanoseconds(1);
      CHECK_FAULT(put(http, kSigned + just), Fault::skewed_time);
      CHECK_FAULT(put(http, kSigned - just), Fault::skewed_time);
      CHECK_FAULT(put(http, kSigned + below), plain);
      CHECK_FAULT(put(http, kSigned - below), plain);
      CHECK_FAULT(put(http, ServiceTime(0)), Fault::skewed_time);
      CHECK_FAULT(put(http, ServiceTime::max()), Fault::skewed_time);
      CHECK_FAULT(put(without(http, "Date"), kSigned + just), plain);
      CHECK_FAULT(put(with(http, "Age", "3"), kSigned + just), plain);
      CHECK_FAULT(put(without(http, "x-amzn-RequestId"), kSigned + just),
                  plain);
      BOOST_TEST(!put(http, kSigned + just).outcome_unknown());
    }
  }
}

BOOST_AUTO_TEST_CASE(other_answers_hours_off_keep_their_meaning) {
  const ServiceTime hours_off = kSigned + std::chrono::hours(5);
  for (const CodeCase& c :
       {CodeCase{"UnrecognizedClientException", Fault::bad_keys, false},
        CodeCase{"ExpiredTokenException", Fault::expired_keys, false},
        CodeCase{"ConditionalCheckFailedException", Fault::condition_failed,
                 false},
        CodeCase{"ThrottlingException", Fault::throttled, true},
        CodeCase{"ValidationException", Fault::bad_request, false}}) {
    CHECK_FAULT(put(http_of(400, refusal(c.code)), hours_off), c.expected);
  }
  CHECK_FAULT(put(http_of(200, "{}"), hours_off), Fault::none);
}

BOOST_AUTO_TEST_SUITE_END()

// --- Mutations --------------------------------------------------------------

namespace {

// A second opinion: RFC 8259, less UTF-8's rules, by plain recursion.
class JsonJudge {
 public:
  explicit JsonJudge(std::string_view text) : rest_(text) {}

  bool is_object() {
    // RFC 8259 lets a parser ignore a byte order mark.
    if (rest_.substr(0, 3) == "\xef\xbb\xbf") rest_.remove_prefix(3);
    blanks();
    if (next() != '{' || !value(0)) return false;
    blanks();
    return rest_.empty();
  }

 private:
  char next() const { return rest_.empty() ? '\0' : rest_.front(); }
  void blanks() {
    rest_.remove_prefix(
        std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  bool take(std::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool value(int depth) {
    if (depth > 100) return false;  // None of what it is shown is so deep.
    blanks();
    switch (next()) {
      case '{':
        return many('{', '}', depth);
      case '[':
        return many('[', ']', depth);
      case '"':
        return string();
      default:
        return take("true") || take("false") || take("null") || number();
    }
  }

  bool many(char open, char close, int depth) {
    take({&open, 1});
    blanks();
    if (take({&close, 1})) return true;
    do {
      blanks();
      if (open == '{') {
        if (!string()) return false;
        blanks();
        if (!take(":")) return false;
      }
      if (!value(depth + 1)) return false;
      blanks();
    } while (take(","));
    return take({&close, 1});
  }

  bool string() {
    if (!take("\"")) return false;
    while (!rest_.empty() && next() != '"') {
      if (static_cast<unsigned char>(next()) < 0x20) return false;
      if (next() == '\\') {
        rest_.remove_prefix(1);
        if (rest_.empty()) return false;
        if (std::string_view("\"\\/bfnrtu").find(next()) ==
            std::string_view::npos) {
          return false;
        }
        if (next() == 'u' && !hex_follows()) return false;
      }
      rest_.remove_prefix(1);
    }
    return take("\"");
  }
  bool hex_follows() const {
    if (rest_.size() < 5) return false;
    return std::all_of(rest_.begin() + 1, rest_.begin() + 5, [](char c) {
      return std::isxdigit(static_cast<unsigned char>(c)) != 0;
    });
  }

  bool digits() {
    const std::size_t count =
        std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    rest_.remove_prefix(count);
    return count > 0;
  }
  bool number() {
    take("-");
    if (!take("0") && !digits()) return false;
    if (take(".") && !digits()) return false;
    if (next() != 'e' && next() != 'E') return true;
    rest_.remove_prefix(1);
    if (!take("+")) take("-");
    return digits();
  }

  std::string_view rest_;
};

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::string mutated(std::string text, const std::string& other) {
    for (std::size_t i = at_most(4) + 1; i > 0; --i) mutate(text, other);
    return text;
  }

  std::size_t at_most(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit)(random_);
  }

 private:
  void mutate(std::string& text, const std::string& other) {
    static const std::vector<std::string> kSpice = {"{",
                                                    "}",
                                                    "[",
                                                    "]",
                                                    "\"",
                                                    ",",
                                                    ":",
                                                    "null",
                                                    "{}",
                                                    "\\",
                                                    "\\u0000",
                                                    "\\ud800",
                                                    "\xff",
                                                    "1e999",
                                                    "-",
                                                    "{\"S\":",
                                                    "\"S\"",
                                                    "\"Item\"",
                                                    "\xc3",
                                                    " ",
                                                    "true",
                                                    std::string(1, '\0'),
                                                    "\"__type\":\"x\","};
    const std::size_t at = at_most(text.size());
    const std::size_t length = at_most(std::min<std::size_t>(
        text.size() - at, at_most(3) == 0 ? text.size() : 4));
    switch (at_most(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kSpice[at_most(kSpice.size() - 1)]);
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(at_most(255));
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.replace(at, length, kSpice[at_most(kSpice.size() - 1)]);
        break;
      default:
        text = text.substr(0, at) + other.substr(std::min(at, other.size()));
    }
  }

  std::mt19937 random_;
};

bool is_a_fault(Fault fault) {
  return fault >= Fault::none && fault <= Fault::cancelled &&
         *name_of(fault) != '\0';
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_mutated)

BOOST_AUTO_TEST_CASE(judge_of_json_knows_an_object) {
  for (const char* good :
       {"{}", " {\"a\" : [1, -0.5e+3, true, null, {}, [] ] }\n",
        "{\"\\u0000\\n\":\"\xc3\xa9\"}"}) {
    BOOST_TEST(JsonJudge(good).is_object(), good);
  }
  for (const char* bad :
       {"", "[]", "{", "{}{}", "{\"a\"}", "{\"a\":01}", "{\"a\":1,}", "{a:1}",
        "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":+1}", "{\"a\":1.}"}) {
    BOOST_TEST(!JsonJudge(bad).is_object(), bad);
  }
}

BOOST_AUTO_TEST_CASE(mutated_bodies_are_never_success_unless_json_objects) {
  const std::vector<std::string> seeds = {
      "{}",
      item(kRecord),
      "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
      "ConditionalCheckFailedException\",\"message\":\"no\",\"Item\":" +
          std::string(kRecord) + "}",
      refusal("x#ThrottlingException"),
      item("{\"a\":{\"M\":{\"b\":{\"L\":[{\"NULL\":true},{\"N\":\"1\"}]}}}}"),
      "{\"Table\":" +
          usual_table(R"("Replicas":[{}],"MultiRegionConsistency":"STRONG")") +
          "}",
      "{\"Items\":[" + std::string(kRecord) +
          ",{}],\"LastEvaluatedKey\":{\"name\":{\"S\":\"a\"}}}",
      cancelled(listed({"None", "ConditionalCheckFailed"})),
      worded("ConditionalCheckFailed, None")};
  Mutator mutator(20261121);
  int successes = 0;
  int refusals = 0;
  int tables = 0;
  int pages = 0;
  int cancellations = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string& base = seeds[mutator.at_most(seeds.size() - 1)];
    const std::string body =
        mutator.mutated(base, seeds[mutator.at_most(seeds.size() - 1)]);
    const bool object = JsonJudge(body).is_object();
    for (const int status : {200, 400, 500}) {
      for (const Action action :
           {Action::get_item, Action::put_item, Action::describe_table,
            Action::scan, Action::transact_write_items}) {
        const Answer answer = answer_of(action, http_of(status, body), kSigned);
        BOOST_REQUIRE(is_a_fault(answer.fault));
        const bool from_body = answer.fault == Fault::none ||
                               answer.fault == Fault::condition_failed;
        if (from_body && !object) BOOST_ERROR("believed: " << body);
        if (answer.fault == Fault::none) BOOST_REQUIRE(status == 200);
        if (answer.item) BOOST_REQUIRE(from_body);
        BOOST_REQUIRE(
            (answer.table != nullptr) ==
            (answer.fault == Fault::none && action == Action::describe_table));
        if (!answer.items.empty()) {
          BOOST_REQUIRE(answer.fault == Fault::none);
          BOOST_REQUIRE((action == Action::scan));
          ++pages;
        }
        if (answer.part >= 0) {
          BOOST_REQUIRE(status == 400);
          BOOST_REQUIRE((action == Action::transact_write_items));
          ++cancellations;
        }
        tables += answer.table ? 1 : 0;
        successes += answer.fault == Fault::none ? 1 : 0;
        refusals += answer.fault == Fault::condition_failed ? 1 : 0;
      }
    }
  }
  BOOST_TEST(successes > 1000);  // Not all of them were rubbish.
  BOOST_TEST(refusals > 400);
  BOOST_TEST(tables > 200);
  BOOST_TEST(pages > 200);
  BOOST_TEST(cancellations > 200);
}

BOOST_AUTO_TEST_CASE(mutated_headers_never_make_a_time_that_is_not_believed) {
  const HttpAnswer good =
      with(with(http_of(200, "{}"), "x-amz-crc32", "2745614147"),
           "x-amz-retry-after", "25");
  Mutator mutator(7);
  for (int i = 0; i < 20000; ++i) {
    HttpAnswer http = good;
    http.headers = mutator.mutated(good.headers, good.headers);
    const Answer answer = put(http);
    BOOST_REQUIRE(is_a_fault(answer.fault));
    BOOST_REQUIRE(
        (answer.fault == Fault::none || answer.fault == Fault::bad_answer));
    BOOST_REQUIRE((answer.retry_after <= std::chrono::hours(1)));
    const auto date = date_of(http);
    BOOST_REQUIRE((!date || (*date >= ddbmutex::dynamodb::kFirstBelievable &&
                             *date < ddbmutex::dynamodb::kLastBelievable)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
