#include "answer.hpp"

#include <rapidjson/document.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "../sigv4/service.hpp"
#include "json.hpp"

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
// signature check before it.
constexpr CodeMeaning kCodes[] = {
    {"ConditionalCheckFailedException", Fault::condition_failed},

    {"ResourceNotFoundException", Fault::no_table},
    {"TableNotFoundException", Fault::no_table},
    {"ResourceInUseException", Fault::table_in_use},
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
    // The same transaction, sent before.
    {"TransactionInProgressException", Fault::conflict},
    {"ReplicatedWriteConflictException", Fault::conflict},
};
constexpr CodeMeaning kThrottled = {"", Fault::throttled};

const CodeMeaning* meaning_of(std::string_view code) {
  for (const CodeMeaning& meaning : kCodes) {
    if (meaning.code == code) return &meaning;
  }
  return sigv4::is_throttling_code(code) ? &kThrottled : nullptr;
}

// What a ValidationException says of an item whose key is not the table's: in
// DynamoDB's words (the third and fourth are those of its edition for download,
// the fifth comes where an update would change a part of the key, the seventh
// is of a Query) and in ScyllaDB Alternator's.  A '*' stands for a name or
// type.
constexpr std::string_view kWrongKeyTexts[] = {
    "The provided key element does not match the schema",
    "One or more parameter values were invalid: Missing the key * in the item",
    "One of the required keys was not given a value",
    "The number of conditions on the keys is invalid",
    "One or more parameter values were invalid: Cannot update attribute *."
    " This attribute is part of the key",
    "One or more parameter values were invalid:"
    " Type mismatch for key * expected: * actual: *",
    "Query condition missed key schema element: *",

    "Key column * not found",
    "Given key attribute not in schema",
    "Type mismatch: expected type * for key column *, got type *",
};

// Whether `text` is `pattern` with something in place of each '*'.
bool matches(std::string_view text, std::string_view pattern) {
  std::size_t star = pattern.find('*');
  if (star == pattern.npos) return text == pattern;
  if (text.substr(0, star) != pattern.substr(0, star)) return false;
  text.remove_prefix(star);
  for (;;) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    const std::string_view part = pattern.substr(0, star);
    if (star == pattern.npos) {
      return text.size() > part.size() &&
             text.substr(text.size() - part.size()) == part;
    }
    const std::size_t at = text.find(part, 1);
    if (at == text.npos) return false;
    text.remove_prefix(at + part.size());
  }
}

bool names_a_wrong_key(std::string_view message) {
  return std::any_of(
      std::begin(kWrongKeyTexts), std::end(kWrongKeyTexts),
      [&](std::string_view pattern) { return matches(message, pattern); });
}

// --- Reading JSON ----------------------------------------------------------

using Allocator = rapidjson::MemoryPoolAllocator<>;
using rapidjson::Document;
using rapidjson::Value;

// The default parser recurses, and 400 KB of '[' overflow its stack.
constexpr unsigned kParseFlags =
    rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;

bool is_object(const Document& document, std::string_view json) {
  if (document.HasParseError() || !document.IsObject()) return false;
  // RapidJSON takes a NUL for the end and does not look behind it, and passes
  // over any one byte of a byte order mark.
  if (json.find('\0') != json.npos) return false;
  if (static_cast<unsigned char>(json.front()) >= 0x80) return false;
  return !sigv4::has_lone_surrogate(json);
}

// A member that is a string; empty if it is not there or not a string.
std::string_view string_member(const Value& object, const char* name) {
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd() || !member->value.IsString()) return {};
  return text_of(member->value);
}

// A member's value; null if it is not there, or is null.
const Value* find_member(const Value& object, const char* name) {
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd() || member->value.IsNull()) return nullptr;
  return &member->value;
}

// "AttributeDefinitions" tells the types.  `other` if it does not.
Attribute::Type key_type(const Value& table, std::string_view name) {
  const Value* definitions = find_member(table, "AttributeDefinitions");
  if (definitions == nullptr || !definitions->IsArray()) {
    return Attribute::Type::other;
  }
  for (const auto& definition : definitions->GetArray()) {
    if (!definition.IsObject()) continue;
    if (string_member(definition, "AttributeName") != name) continue;
    return type_of(string_member(definition, "AttributeType"));
  }
  return Attribute::Type::other;
}

// {"AttributeName":"name","KeyType":"HASH"}
std::optional<TableDescription::Key> read_key(const Value& key,
                                              const Value& table) {
  using Role = TableDescription::Key::Role;
  if (!key.IsObject()) return std::nullopt;
  const std::string_view name = string_member(key, "AttributeName");
  const std::string_view role = string_member(key, "KeyType");
  if (name.empty() || (role != "HASH" && role != "RANGE")) return std::nullopt;
  return TableDescription::Key{std::string(name),
                               role == "HASH" ? Role::partition : Role::sort,
                               key_type(table, name)};
}

// As the developer guide tells global tables' versions and consistency modes:
// a mode that is not told is the eventual one.  Nothing if it makes no sense.
std::optional<bool> has_eventual_replicas(const Value& table) {
  if (string_member(table, "GlobalTableVersion") == "2017.11.29") return true;
  const Value* replicas = find_member(table, "Replicas");
  if (replicas == nullptr) return false;
  if (!replicas->IsArray()) return std::nullopt;
  return !replicas->Empty() &&
         string_member(table, "MultiRegionConsistency") != "STRONG";
}

// Nothing if it is no description of a table.
std::optional<TableDescription> read_table(const Value& value) {
  if (!value.IsObject()) return std::nullopt;
  TableDescription table;
  table.status = string_member(value, "TableStatus");
  table.id = string_member(value, "TableId");
  if (table.status.empty()) return std::nullopt;
  if (const Value* schema = find_member(value, "KeySchema")) {
    if (!schema->IsArray()) return std::nullopt;
    for (const auto& element : schema->GetArray()) {
      auto key = read_key(element, value);
      if (!key) return std::nullopt;
      table.keys.push_back(std::move(*key));
    }
  }
  if (table.keys.empty() && table.status != "DELETING") return std::nullopt;
  const auto replicas = has_eventual_replicas(value);
  if (!replicas) return std::nullopt;
  table.eventual_replicas = *replicas;
  return table;
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

// DynamoDB says both, engines of other makers at least one.  A portal that
// answers `{}` to whatever it is asked says neither.
bool is_dynamodbs(const HttpAnswer& http) {
  const auto type = http.header("content-type");
  return http.header("x-amzn-RequestId") ||
         (type && type->find("x-amz-json") != type->npos);
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

bool is_of_an_item(Action action) {
  return action == Action::get_item || action == Action::put_item ||
         action == Action::update_item || action == Action::delete_item;
}

// Whether its request names the keys of items.
bool has_keys(Action action) {
  return is_of_an_item(action) || action == Action::query;
}

// Reads "Item", say, where there may be one.
void read_item_of(const Value& body, const char* name, Answer& answer) {
  const auto member = body.FindMember(name);
  if (member == body.MemberEnd()) return;
  answer.item = read_item(member->value);
  if (!answer.item) {
    bad_answer(answer, std::string(name) + " is not an item of DynamoDB's");
  }
}

// --- Why a transaction was not carried out ---------------------------------

// [{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"why"}]
bool read_listed(const Value& list, std::vector<Answer::Reason>& reasons) {
  if (!list.IsArray()) return false;
  for (const Value& element : list.GetArray()) {
    if (!element.IsObject()) return false;
    reasons.push_back({std::string(string_member(element, "Code")),
                       std::string(string_member(element, "Message"))});
  }
  return true;
}

// As at the end of the message: "... specific reasons [Code, None]".
void read_worded(std::string_view message,
                 std::vector<Answer::Reason>& reasons) {
  const std::size_t begin = message.rfind('[');
  const std::size_t end = message.rfind(']');
  if (begin == message.npos || end == message.npos || end < begin) return;
  std::string_view codes = message.substr(begin + 1, end - begin - 1);
  while (!codes.empty()) {
    const std::size_t comma = std::min(codes.find(','), codes.size());
    reasons.push_back({std::string(codes.substr(0, comma)), ""});
    codes.remove_prefix(std::min(comma + 1, codes.size()));
    codes.remove_prefix(std::min(codes.find_first_not_of(' '), codes.size()));
  }
}

// What the reasons come to, the weightiest first: a condition that did not hold
// will not by trying again.
Fault fault_of(const std::vector<Answer::Reason>& reasons) {
  struct Meaning {
    std::string_view code;
    Fault fault;
  };
  constexpr Meaning kMeanings[] = {
      {"ConditionalCheckFailed", Fault::condition_failed},
      {"TransactionConflict", Fault::conflict},
      {"ThrottlingError", Fault::throttled},
      {"ProvisionedThroughputExceeded", Fault::throttled},
      {"RequestLimitExceeded", Fault::throttled},
  };
  for (const Meaning& meaning : kMeanings) {
    for (const Answer::Reason& reason : reasons) {
      if (reason.code == meaning.code) return meaning.fault;
    }
  }
  return Fault::bad_request;
}

void read_cancellation(const Value& body, Answer& answer) {
  if (const Value* list = find_member(body, "CancellationReasons")) {
    if (!read_listed(*list, answer.reasons)) {
      answer.reasons.clear();
      return bad_answer(answer, "CancellationReasons is no list of reasons");
    }
  } else {  // Not every engine lists them.
    read_worded(answer.message, answer.reasons);
  }
  answer.fault = fault_of(answer.reasons);
}

void read_error(const Value& body, const HttpAnswer& http,
                ServiceTime signed_at, Answer& answer) {
  answer.code = code_of(body, http);
  answer.message = string_member(body, "message");
  if (answer.message.empty()) answer.message = string_member(body, "Message");
  const CodeMeaning* meaning = meaning_of(answer.code);
  answer.fault = meaning ? meaning->fault : fault_of_status(http.status);
  if (answer.code == "ValidationException" && has_keys(answer.action) &&
      names_a_wrong_key(answer.message)) {
    answer.fault = Fault::wrong_key;
  }
  if (meaning && is_skewed(*meaning, http, signed_at)) {
    answer.fault = Fault::skewed_time;
  }
  // A refusal is certain only if it is said to be one.
  if (http.status >= 500) {
    if (!is_passing(answer.fault)) answer.fault = Fault::server_failure;
    return;
  }
  if (answer.code == "TransactionCanceledException" &&
      answer.action == Action::transact_write_items) {
    return read_cancellation(body, answer);
  }
  if (answer.fault != Fault::condition_failed) return;
  if (answer.action == Action::get_item || !is_of_an_item(answer.action)) {
    return bad_answer(answer, std::string(name_of(answer.action)) +
                                  " has no condition to fail");
  }
  read_item_of(body, "Item", answer);
}

// --- Success ---------------------------------------------------------------

// The members of an action's answer when all went well.
struct Members {
  const char* required;  // Null: none.
  std::array<std::string_view, 4> others;

  bool allow(std::string_view name) const {
    return !name.empty() &&  // As others that are not there are.
           (name == std::string_view(required != nullptr ? required : "") ||
            std::find(others.begin(), others.end(), name) != others.end());
  }
};

Members members_of(Action action) {
  switch (action) {
    case Action::get_item:
      return {nullptr, {"Item", "ConsumedCapacity"}};
    case Action::put_item:
    case Action::update_item:
    case Action::delete_item:
      return {nullptr,
              {"Attributes", "ItemCollectionMetrics", "ConsumedCapacity"}};
    case Action::scan:
    case Action::query:
      return {
          "Items",
          {"Count", "ScannedCount", "LastEvaluatedKey", "ConsumedCapacity"}};
    case Action::transact_write_items:
      return {nullptr, {"ItemCollectionMetrics", "ConsumedCapacity"}};
    case Action::describe_table:
      return {"Table", {}};
    case Action::create_table:
    case Action::delete_table:
      return {"TableDescription", {}};
    case Action::update_time_to_live:
      break;
  }
  return {"TimeToLiveSpecification", {}};
}

// Whether an action answers so when all went well.  A captive portal's JSON
// would else pass for a write that was applied.
bool is_success(const Members& members, const Value& body) {
  for (const auto& member : body.GetObject()) {
    if (!members.allow(text_of(member.name))) return false;
  }
  return members.required == nullptr || body.HasMember(members.required);
}

void read_page(const Value& body, Answer& answer) {
  const Value& items = body["Items"];
  if (!items.IsArray()) return bad_answer(answer, "Items is no list");
  answer.items.reserve(items.Size());
  for (const Value& element : items.GetArray()) {
    auto item = read_item(element);
    if (!item) {
      answer.items.clear();
      return bad_answer(answer, "Items has what is not an item of DynamoDB's");
    }
    answer.items.push_back(std::move(*item));
  }
  const Value* next = find_member(body, "LastEvaluatedKey");
  if (next == nullptr) return;
  answer.next = read_item(*next);
  if (answer.next && !answer.next->empty()) return;
  answer.items.clear();  // Not all there is, and no way to the rest.
  answer.next.reset();
  bad_answer(answer, "LastEvaluatedKey is no key");
}

void read_table_of(const Value& table, Answer& answer) {
  answer.table = read_table(table);
  if (!answer.table) bad_answer(answer, "no description of a table");
}

void read_success(const Value& body, Answer& answer) {
  const Members members = members_of(answer.action);
  if (!is_success(members, body)) {
    return bad_answer(answer, "HTTP status 200, but no answer of DynamoDB's");
  }
  switch (answer.action) {
    case Action::get_item:
      return read_item_of(body, "Item", answer);
    case Action::update_item:
      return read_item_of(body, "Attributes", answer);
    case Action::scan:
    case Action::query:
      return read_page(body, answer);
    case Action::describe_table:
    case Action::create_table:
    case Action::delete_table:
      return read_table_of(body[members.required], answer);
    case Action::put_item:
    case Action::delete_item:
    case Action::update_time_to_live:
    case Action::transact_write_items:
      break;
  }
}

void read_body(const HttpAnswer& http, ServiceTime signed_at, Answer& answer) {
  char room[4096];
  Allocator allocator(room, sizeof room);
  Document body(&allocator);
  body.Parse<kParseFlags>(http.body.data(), http.body.size());
  const bool object = is_object(body, http.body);
  const Fault by_status = fault_of_status(http.status);
  if (!object &&
      (by_status == Fault::server_failure || by_status == Fault::throttled)) {
    answer.fault = by_status;  // From whatever stands before it.
    answer.message = "HTTP status " + std::to_string(http.status);
  } else if (!object || !says_json(http)) {
    bad_answer(answer, "HTTP status " + std::to_string(http.status) +
                           ", and the body is no JSON object");
  } else if (http.status == 200 && !is_dynamodbs(http)) {
    bad_answer(answer,
               "HTTP status 200, but neither DynamoDB's content type nor a "
               "request id");
  } else if (http.status == 200) {
    read_success(body, answer);
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
    case Action::describe_table:
      return "DescribeTable";
    case Action::create_table:
      return "CreateTable";
    case Action::update_time_to_live:
      return "UpdateTimeToLive";
    case Action::delete_table:
      return "DeleteTable";
    case Action::scan:
      return "Scan";
    case Action::query:
      return "Query";
    case Action::transact_write_items:
      return "TransactWriteItems";
  }
  return "";
}

const char* name_of(Fault fault) {
  // In the order of the enumeration.
  constexpr const char* kNames[] = {"none",
                                    "condition_failed",
                                    "no_keys",
                                    "no_target",
                                    "bad_keys",
                                    "expired_keys",
                                    "access_denied",
                                    "no_table",
                                    "table_in_use",
                                    "wrong_key",
                                    "bad_request",
                                    "unknown_action",
                                    "bad_certificate",
                                    "keys_awaited",
                                    "unreachable",
                                    "disconnected",
                                    "timed_out",
                                    "throttled",
                                    "server_failure",
                                    "conflict",
                                    "bad_answer",
                                    "skewed_time",
                                    "cancelled"};
  static_assert(std::size(kNames) ==
                static_cast<std::size_t>(Fault::cancelled) + 1);
  return kNames[static_cast<std::size_t>(fault)];
}

bool is_passing(Fault fault) {
  return fault >= Fault::keys_awaited && fault <= Fault::skewed_time;
}

bool Answer::outcome_unknown() const {
  // DynamoDB tells reasons of what it did not do.
  if (!sent || !reasons.empty()) return false;
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
  answer.too_large = http.transport == Transport::too_large;
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
