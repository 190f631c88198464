#include "dynamodb/answer.hpp"

#include <rapidjson/document.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::HttpAnswer;
using sigv4::Transport;
using std::chrono::milliseconds;

namespace {

// A refusal whose Date is this far from the time of the signature was refused
// for that (aws-sdk-cpp and the JavaScript SDK draw the line here too).
constexpr std::chrono::minutes kSkewed{4};

struct CodeMeaning {
  std::string_view code;
  Fault fault;
  bool may_be_skew = false;
};

// DynamoDB's error codes (its developer guide, "Error handling"), those of the
// signature check before it, and what AWS SDKs take for throttling.
constexpr CodeMeaning kCodes[] = {
    {"ConditionalCheckFailedException", Fault::condition_failed},

    {"ResourceNotFoundException", Fault::no_table},
    {"TableNotFoundException", Fault::no_table},
    {"UnknownOperationException", Fault::unknown_action},
    {"AccessDeniedException", Fault::access_denied, true},
    {"AccessDenied", Fault::access_denied},
    {"ExpiredTokenException", Fault::expired_keys},
    {"ExpiredToken", Fault::expired_keys},
    {"UnrecognizedClientException", Fault::bad_keys},
    {"InvalidClientTokenId", Fault::bad_keys},
    {"InvalidToken", Fault::bad_keys},
    {"MissingAuthenticationToken", Fault::bad_keys},
    {"MissingAuthenticationTokenException", Fault::bad_keys},
    {"IncompleteSignature", Fault::bad_keys},
    {"IncompleteSignatureException", Fault::bad_keys},
    {"AuthFailure", Fault::bad_keys, true},
    {"InvalidSignatureException", Fault::bad_keys, true},
    {"SignatureDoesNotMatch", Fault::bad_keys, true},
    {"RequestExpired", Fault::bad_keys, true},
    {"RequestInTheFuture", Fault::bad_keys, true},
    {"RequestTimeTooSkewed", Fault::bad_keys, true},

    {"InternalServerError", Fault::server_failure},
    {"InternalFailure", Fault::server_failure},
    {"ServiceUnavailable", Fault::server_failure},
    {"ServiceUnavailableException", Fault::server_failure},
    {"RequestTimeout", Fault::server_failure},
    {"RequestTimeoutException", Fault::server_failure},
    {"TransactionConflictException", Fault::conflict},
    {"ReplicatedWriteConflictException", Fault::conflict},

    {"Throttling", Fault::throttled},
    {"ThrottlingException", Fault::throttled},
    {"ThrottledException", Fault::throttled},
    {"RequestThrottled", Fault::throttled},
    {"RequestThrottledException", Fault::throttled},
    {"TooManyRequestsException", Fault::throttled},
    {"ProvisionedThroughputExceededException", Fault::throttled},
    {"RequestLimitExceeded", Fault::throttled},
    {"BandwidthLimitExceeded", Fault::throttled},
    {"LimitExceededException", Fault::throttled},
    {"TransactionInProgressException", Fault::throttled},
    {"PriorRequestNotComplete", Fault::throttled},
    {"SlowDown", Fault::throttled},
    {"EC2ThrottledException", Fault::throttled},
};

const CodeMeaning* meaning_of(std::string_view code) {
  for (const CodeMeaning& meaning : kCodes) {
    if (meaning.code == code) return &meaning;
  }
  return nullptr;
}

// --- Reading JSON ----------------------------------------------------------

using Allocator = rapidjson::MemoryPoolAllocator<>;
using Document = rapidjson::GenericDocument<rapidjson::UTF8<>, Allocator>;
using Value = Document::ValueType;

// The default parser recurses, and 400 KB of '[' overflow its stack.
constexpr unsigned kParseFlags =
    rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;

std::string_view text_of(const Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

// A member that is a string; empty if it is not there or not a string.
std::string_view string_member(const Value& object, const char* name) {
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd() || !member->value.IsString()) return {};
  return text_of(member->value);
}

Attribute::Type type_of(std::string_view tag) {
  if (tag == "S") return Attribute::Type::string;
  if (tag == "N") return Attribute::Type::number;
  if (tag == "B") return Attribute::Type::binary;
  return Attribute::Type::other;
}

// {"name":{"S":"text"},...}; nothing if it is not of that form.
std::optional<Item> read_item(const Value& value) {
  if (!value.IsObject()) return std::nullopt;
  Item item;
  for (const auto& member : value.GetObject()) {
    if (!member.value.IsObject() || member.value.MemberCount() != 1) {
      return std::nullopt;
    }
    const auto typed = member.value.MemberBegin();
    Attribute attribute;
    attribute.name = text_of(member.name);
    attribute.type = type_of(text_of(typed->name));
    if (attribute.type != Attribute::Type::other) {
      if (!typed->value.IsString()) return std::nullopt;
      attribute.value = text_of(typed->value);
    }
    item.push_back(std::move(attribute));
  }
  return item;
}

// Where an error's code stands: "com.amazonaws.dynamodb.v20120810#Code",
// "Code:http://...", "Code".
std::string_view bare_code(std::string_view code) {
  code = code.substr(0, code.find(','));
  code = code.substr(0, code.find(':'));
  const std::size_t hash = code.find('#');
  return hash == code.npos ? code : code.substr(hash + 1);
}

std::string_view code_of(const Value& body, const HttpAnswer& http) {
  std::string_view code = string_member(body, "__type");
  if (code.empty()) code = string_member(body, "code");
  if (code.empty()) code = http.header("x-amzn-errortype").value_or("");
  return bare_code(code);
}

// --- What an answer is worth -----------------------------------------------

// CRC-32 as in ISO 3309, a byte at a time: answers are short.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xedb88320u : 0u);
    }
  }
  return ~crc;
}

// Digits only, as many as 64 bits take; nothing for any other text.
std::optional<std::uint64_t> parse_digits(std::string_view text) {
  if (text.empty() || text.size() > 19) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

bool crc_matches(const HttpAnswer& http) {
  const auto header = http.header("x-amz-crc32");
  if (!header) return true;  // Not every engine sends it.
  const auto number = parse_digits(*header);
  return number && *number == crc32(http.body);
}

bool says_json(const HttpAnswer& http) {
  const auto type = http.header("content-type");
  return !type || type->find("json") != type->npos;
}

Fault fault_of(Transport transport) {
  switch (transport) {
    case Transport::complete:
      return Fault::none;
    case Transport::unreachable:
      return Fault::unreachable;
    case Transport::bad_certificate:
      return Fault::bad_certificate;
    case Transport::too_large:
      return Fault::bad_answer;
    case Transport::timed_out:
      return Fault::timed_out;
    case Transport::cancelled:
      return Fault::cancelled;
    case Transport::under_way:
    case Transport::broken:
      break;
  }
  return Fault::disconnected;
}

Fault fault_of_status(int status) {
  if (status == 429 || status == 509) return Fault::throttled;
  // A proxy's, which may have handed the request on.
  if (status == 408 || status == 425 || status == 499) {
    return Fault::server_failure;
  }
  if (status >= 500) return Fault::server_failure;
  if (status == 401 || status == 403) return Fault::access_denied;
  return Fault::bad_request;
}

bool is_skewed(const CodeMeaning& meaning, const HttpAnswer& http,
               ServiceTime signed_at) {
  if (!meaning.may_be_skew) return false;
  const auto date = date_of(http);
  if (!date) return false;
  return *date - signed_at >= kSkewed || signed_at - *date >= kSkewed;
}

void bad_answer(Answer& answer, std::string why) {
  answer.fault = Fault::bad_answer;
  answer.message = std::move(why);
}

// Reads "Item", where there may be one.
void read_item_of(const Value& body, Answer& answer) {
  const auto member = body.FindMember("Item");
  if (member == body.MemberEnd()) return;
  answer.item = read_item(member->value);
  if (!answer.item) bad_answer(answer, "Item is not an item of DynamoDB's");
}

void read_error(const Value& body, const HttpAnswer& http,
                ServiceTime signed_at, Answer& answer) {
  answer.code = code_of(body, http);
  answer.message = string_member(body, "message");
  if (answer.message.empty()) answer.message = string_member(body, "Message");
  const CodeMeaning* meaning = meaning_of(answer.code);
  answer.fault = meaning ? meaning->fault : fault_of_status(http.status);
  if (meaning && is_skewed(*meaning, http, signed_at)) {
    answer.fault = Fault::skewed_time;
  }
  // A refusal is certain only if it is said to be one.
  if (http.status >= 500 && !is_passing(answer.fault)) {
    answer.fault = Fault::server_failure;
  }
  if (answer.fault != Fault::condition_failed) return;
  if (answer.action == Action::get_item) {
    return bad_answer(answer, "GetItem has no condition to fail");
  }
  read_item_of(body, answer);
}

// Whether an action answers so when all went well.  A captive portal's JSON
// would else pass for a write that was applied.
bool is_success(Action action, const Value& body) {
  for (const auto& member : body.GetObject()) {
    const std::string_view name = text_of(member.name);
    const bool expected =
        name == "ConsumedCapacity" ||
        (action == Action::get_item
             ? name == "Item"
             : name == "Attributes" || name == "ItemCollectionMetrics");
    if (!expected) return false;
  }
  return true;
}

void read_body(const HttpAnswer& http, ServiceTime signed_at, Answer& answer) {
  char room[4096];
  Allocator allocator(room, sizeof room);
  Document body(&allocator);
  body.Parse<kParseFlags>(http.body.data(), http.body.size());
  // RapidJSON takes a NUL for the end and does not look behind it.
  const bool object = !body.HasParseError() && body.IsObject() &&
                      http.body.find('\0') == std::string::npos;
  const Fault by_status = fault_of_status(http.status);
  if (!object &&
      (by_status == Fault::server_failure || by_status == Fault::throttled)) {
    answer.fault = by_status;  // From whatever stands before it.
    answer.message = "HTTP status " + std::to_string(http.status);
  } else if (!object || !says_json(http)) {
    bad_answer(answer, "the body is no JSON object");
  } else if (http.status == 200) {
    if (!is_success(answer.action, body)) {
      return bad_answer(answer, "HTTP status 200, but no answer of DynamoDB's");
    }
    if (answer.action == Action::get_item) read_item_of(body, answer);
  } else if (http.status >= 400) {
    read_error(body, http, signed_at, answer);
  } else {
    bad_answer(answer, "HTTP status " + std::to_string(http.status));
  }
}

}  // namespace

const char* name_of(Action action) {
  switch (action) {
    case Action::get_item:
      return "GetItem";
    case Action::put_item:
      return "PutItem";
    case Action::update_item:
      return "UpdateItem";
    case Action::delete_item:
      return "DeleteItem";
  }
  return "";
}

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::condition_failed:
      return "condition_failed";
    case Fault::no_keys:
      return "no_keys";
    case Fault::bad_keys:
      return "bad_keys";
    case Fault::expired_keys:
      return "expired_keys";
    case Fault::access_denied:
      return "access_denied";
    case Fault::no_table:
      return "no_table";
    case Fault::bad_request:
      return "bad_request";
    case Fault::unknown_action:
      return "unknown_action";
    case Fault::bad_certificate:
      return "bad_certificate";
    case Fault::unreachable:
      return "unreachable";
    case Fault::disconnected:
      return "disconnected";
    case Fault::timed_out:
      return "timed_out";
    case Fault::throttled:
      return "throttled";
    case Fault::server_failure:
      return "server_failure";
    case Fault::conflict:
      return "conflict";
    case Fault::bad_answer:
      return "bad_answer";
    case Fault::skewed_time:
      return "skewed_time";
    case Fault::cancelled:
      return "cancelled";
  }
  return "";
}

bool is_passing(Fault fault) {
  return fault >= Fault::unreachable && fault <= Fault::skewed_time;
}

bool Answer::outcome_unknown() const {
  if (!sent) return false;
  switch (fault) {
    case Fault::disconnected:
    case Fault::timed_out:
    case Fault::throttled:
    case Fault::server_failure:
    case Fault::conflict:
    case Fault::bad_answer:
    case Fault::cancelled:
      return true;
    default:
      return false;
  }
}

std::optional<ServiceTime> date_of(const HttpAnswer& http) {
  if (http.transport != Transport::complete) return std::nullopt;
  if (!http.header("x-amzn-RequestId")) return std::nullopt;
  if (http.header("Age")) return std::nullopt;  // Some cache's answer.
  const auto date = http.header("Date");
  return date ? believable_date(*date) : std::nullopt;
}

Answer read_answer(Action action, const HttpAnswer& http,
                   ServiceTime signed_at) {
  Answer answer;
  answer.action = action;
  answer.sent = http.sent;
  answer.sent_at = http.sent_at;
  answer.received_at = http.received_at;
  answer.http_status = http.status;
  answer.fault = fault_of(http.transport);
  answer.message = http.error;
  if (http.transport != Transport::complete) return answer;

  answer.request_id = http.header("x-amzn-RequestId").value_or("");
  const auto retry_after =
      parse_digits(http.header("x-amz-retry-after").value_or(""));
  // Retry does not wait longer than some seconds; an hour is past all doubt.
  answer.retry_after =
      milliseconds(std::min<std::uint64_t>(retry_after.value_or(0), 3'600'000));
  if (!crc_matches(http)) {
    bad_answer(answer, "x-amz-crc32 does not match the body");
  } else {
    read_body(http, signed_at, answer);
  }
  return answer;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
