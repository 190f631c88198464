#include "answer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "../sigv4/endpoints.hpp"
#include "../sigv4/text.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

using sigv4::HttpAnswer;
using sigv4::Transport;
using std::chrono::milliseconds;

namespace {

// A refusal whose Date is this far from the time of the signature was refused
// for that (aws-sdk-cpp and the JavaScript SDK draw the line here too).
constexpr std::chrono::minutes kSkewed{4};

struct CodeMeaning {
  Fault fault;
  enum { none, may_be_skew, other_keys } more = none;
};

// DynamoDB's error codes (its developer guide, "Error handling"), those of the
// signature check before it: by what they mean, a NUL behind all that mean the
// same, a space between two.
constexpr char kCodes[] =
    "ConditionalCheckFailedException\0"
    "ResourceNotFoundException TableNotFoundException\0"
    "ResourceInUseException\0"
    "UnknownOperationException\0"
    "AccessDeniedException\0"
    "AccessDenied\0"
    "ExpiredTokenException ExpiredToken\0"
    "UnrecognizedClientException InvalidClientTokenId\0"
    "InvalidToken MissingAuthenticationToken"
    " MissingAuthenticationTokenException IncompleteSignature"
    " IncompleteSignatureException\0"
    "AuthFailure InvalidSignatureException SignatureDoesNotMatch"
    " RequestExpired RequestInTheFuture RequestTimeTooSkewed\0"
    "InternalServerError InternalFailure ServiceUnavailable"
    " ServiceUnavailableException RequestTimeout RequestTimeoutException\0"
    "TransactionConflictException TransactionInProgressException"
    " ReplicatedWriteConflictException";

// In the order of the codes.
constexpr CodeMeaning kMeanings[] = {
    {Fault::condition_failed},
    {Fault::no_table},
    {Fault::table_in_use},
    {Fault::unknown_action},
    {Fault::access_denied, CodeMeaning::may_be_skew},
    {Fault::access_denied},
    // Of keys that have run out, were changed or deleted: there may be others.
    {Fault::expired_keys, CodeMeaning::other_keys},
    {Fault::bad_keys, CodeMeaning::other_keys},
    {Fault::bad_keys},
    {Fault::bad_keys, CodeMeaning::may_be_skew},
    {Fault::server_failure},
    {Fault::conflict},  // In progress: the same transaction, sent before.
};
constexpr CodeMeaning kThrottled = {Fault::throttled};

const CodeMeaning* meaning_of(std::string_view code) {
  for (std::size_t i = 0; i < std::size(kMeanings); ++i) {
    if (sigv4::is_among(sigv4::word_at(kCodes, i), code)) return &kMeanings[i];
  }
  return sigv4::is_throttling_code(code) ? &kThrottled : nullptr;
}

// What a ValidationException says of an item whose key is not the table's: in
// DynamoDB's words (the third and fourth are those of its edition for download,
// the fifth comes where an update would change a part of the key, the seventh
// is of a Query) and in ScyllaDB Alternator's.  A '*' stands for a name or
// type.
constexpr char kWrongKeyTexts[] =
    "The provided key element does not match the schema\n"
    "One or more parameter values were invalid: Missing the key * in the item\n"
    "One of the required keys was not given a value\n"
    "The number of conditions on the keys is invalid\n"
    "One or more parameter values were invalid: Cannot update attribute *."
    " This attribute is part of the key\n"
    "One or more parameter values were invalid:"
    " Type mismatch for key * expected: * actual: *\n"
    "Query condition missed key schema element: *\n"

    "Key column * not found\n"
    "Given key attribute not in schema\n"
    "Type mismatch: expected type * for key column *, got type *";

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
  std::string_view patterns = kWrongKeyTexts;
  while (!patterns.empty()) {
    if (dynamodb::matches(message, sigv4::cut(patterns, '\n'))) return true;
  }
  return false;
}

// --- What an answer is worth -----------------------------------------------

// The headers that tell.
enum Told { kRequestId, kCrc32, kType, kDate, kAge, kRetryAfter };
constexpr char kTold[][18] = {
    "x-amzn-RequestId", "x-amz-crc32", "Content-Type", "Date", "Age",
    "x-amz-retry-after"};
using Headers = std::array<std::string_view, 6>;

// Where an error's code stands: "com.amazonaws.dynamodb.v20120810#Code",
// "Code:http://...", "Code".
std::string_view bare_code(std::string_view code) {
  code = sigv4::cut(code, ',');
  code = sigv4::cut(code, ':');
  const std::size_t hash = code.find('#');
  return hash == code.npos ? code : code.substr(hash + 1);
}

std::string_view code_of(Value body, const HttpAnswer& http) {
  std::string_view code = body.text("__type");
  if (code.empty()) code = body.text("code");
  if (code.empty()) code = http.header("x-amzn-errortype");
  return bare_code(code);
}

// What four bits that leave a CRC-32 do to what is left.
constexpr auto kCrcOfBits = [] {
  std::array<std::uint32_t, 16> all{};
  for (std::uint32_t bits = 0; bits < all.size(); ++bits) {
    std::uint32_t crc = bits;
    for (int i = 0; i < 4; ++i) {
      crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xedb88320u : 0u);
    }
    all[bits] = crc;
  }
  return all;
}();

// CRC-32 as in ISO 3309, half a byte at a time: answers are short.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    crc = (crc >> 4) ^ kCrcOfBits[crc & 15];
    crc = (crc >> 4) ^ kCrcOfBits[crc & 15];
  }
  return ~crc;
}

bool crc_matches(const Headers& headers, std::string_view body) {
  const std::string_view crc = headers[kCrc32];
  if (crc.data() == nullptr) return true;  // Not every engine has it.
  const auto number = parse_digits(crc);
  return number && *number == dynamodb::crc32(body);
}

// DynamoDB says both, engines of other makers at least one.  A portal that
// answers `{}` to whatever it is asked says neither.
bool is_dynamodbs(const Headers& headers) {
  return headers[kRequestId].data() != nullptr ||
         headers[kType].find("x-amz-json") != std::string_view::npos;
}

std::optional<ServiceTime> date_of(const Headers& headers) {
  if (headers[kRequestId].data() == nullptr) return std::nullopt;
  // What has an Age is a cache's answer.
  if (headers[kAge].data() != nullptr) return std::nullopt;
  return believable_date(headers[kDate]);
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

bool is_skewed(const CodeMeaning& meaning, const Answer& answer,
               ServiceTime signed_at) {
  if (meaning.more != CodeMeaning::may_be_skew) return false;
  if (!answer.date) return false;
  const ServiceTime date = *answer.date;
  return date - signed_at >= kSkewed || signed_at - date >= kSkewed;
}

// Whether its request names the keys of items.
bool has_keys(Action action) {
  return is_of_an_item(action) || action == Action::query;
}

// Reads "Item", say, where there may be one.
void read_item_of(Value body, std::string_view name, const Wanted& wanted,
                  Answer& answer) {
  for (Elements each(body); each.next();) {
    if (each.name != name) continue;
    if (read_item(each.value, answer.item.emplace(), wanted)) return;
    answer.item.reset();
    return bad_answer(answer,
                      sigv4::format("%s is not a DynamoDB item", name).c_str());
  }
}

// That is how things are to be.
bool is_on_already(Action action, std::string_view message) {
  return kManages && action == Action::update_time_to_live &&
         message == "TimeToLive is already enabled"sv;
}

void read_error(Value body, const HttpAnswer& http, ServiceTime signed_at,
                Reader reader, const Wanted& wanted, Answer& answer) {
  const std::string_view code = code_of(body, http);
  std::string_view message = body.text("message");
  if (message.empty()) message = body.text("Message");
  answer.message = message;
  const CodeMeaning* meaning = meaning_of(code);
  answer.fault = meaning ? meaning->fault : fault_of_status(http.status);
  if (meaning && is_skewed(*meaning, answer, signed_at)) {
    answer.fault = Fault::skewed_time;
  }
  // A refusal is certain only if it is said to be one.
  if (http.status >= 500) {
    if (!answer.outcome_unknown()) answer.fault = Fault::server_failure;
    return;
  }
  answer.other_keys = meaning && meaning->more == CodeMeaning::other_keys;
  if (code == "ValidationException"sv) {
    if (is_on_already(answer.action, message)) answer.fault = Fault::none;
    if (has_keys(answer.action) && names_a_wrong_key(message)) {
      answer.fault = Fault::wrong_key;
    }
  }
  if (kTransacts && code == "TransactionCanceledException"sv &&
      answer.action == Action::transact_write_items && reader != nullptr) {
    return reader(body, wanted, answer);
  }
  if (answer.fault != Fault::condition_failed) return;
  if (answer.action == Action::get_item || !is_of_an_item(answer.action)) {
    return bad_answer(answer,
                      sigv4::format("%s has no condition that could fail",
                                    name_of(answer.action))
                          .c_str());
  }
  read_item_of(body, "Item", wanted, answer);
}

// --- Success ---------------------------------------------------------------

// In the order of the enumeration: the members of the actions' answers when all
// went well.  What stands before the first space is always there.
constexpr char kMembers[] =
    " Item ConsumedCapacity\0"
    " Attributes ItemCollectionMetrics ConsumedCapacity\0"
    " Attributes ItemCollectionMetrics ConsumedCapacity\0"
    " Attributes ItemCollectionMetrics ConsumedCapacity\0"
    "Table\0"
    "TableDescription\0"
    "TimeToLiveSpecification\0"
    "TableDescription\0"
    "Items Count ScannedCount LastEvaluatedKey ConsumedCapacity\0"
    "Items Count ScannedCount LastEvaluatedKey ConsumedCapacity\0"
    " ItemCollectionMetrics ConsumedCapacity";

const char* members_of(Action action) {
  return sigv4::word_at(kMembers, static_cast<std::size_t>(action));
}

// Whether an action answers so when all went well.  A captive portal's JSON
// would else pass for a write that was applied.
bool is_success(std::string_view needed, std::string_view others, Value body) {
  bool whole = needed.empty();
  for (Elements each(body); each.next();) {
    if (each.name.empty()) return false;
    if (each.name == needed) {
      whole = true;
    } else if (!sigv4::is_among(others, each.name)) {
      return false;
    }
  }
  return whole;
}

void read_success(Value body, Reader reader, const Wanted& wanted,
                  Answer& answer) {
  answer.fault = Fault::none;
  std::string_view others = members_of(answer.action);
  const std::string_view needed = sigv4::cut(others, ' ');
  if (!is_success(needed, others, body)) {
    return bad_answer(answer,
                      "HTTP status 200, but not an answer from DynamoDB");
  }
  if (answer.action == Action::get_item) {
    read_item_of(body, "Item", wanted, answer);
  } else if (answer.action == Action::update_item) {
    read_item_of(body, "Attributes", wanted, answer);
  } else if (!needed.empty() && reader != nullptr) {
    reader(body, wanted, answer);
  }
}

void read_body(HttpAnswer& http, const Headers& headers, ServiceTime signed_at,
               Reader reader, const Wanted& wanted, Answer& answer) {
  const std::string_view type = headers[kType];
  const bool says_json =
      type.data() == nullptr || type.find("json") != type.npos;
  // As a write is mostly answered.
  const bool empty = std::string_view(http.body) == "{}"sv &&
                     *members_of(answer.action) == ' ';
  if (http.status == 200 && empty && says_json && is_dynamodbs(headers)) {
    answer.fault = Fault::none;
    return;
  }
  const Document document(std::move(http.body));
  const Value body = document.root();
  const Fault by_status = fault_of_status(http.status);
  const char* wrong = "";
  answer.fault = Fault::bad_answer;
  if (!body.is_object() &&
      (by_status == Fault::server_failure || by_status == Fault::throttled)) {
    answer.fault = by_status;  // From whatever stands before it.
  } else if (!body.is_object() || !says_json) {
    wrong = ", and the body is not a JSON object";
  } else if (http.status == 200 && !is_dynamodbs(headers)) {
    wrong = ", but neither DynamoDB's content type nor a request id";
  } else if (http.status == 200) {
    return read_success(body, reader, wanted, answer);
  } else if (http.status >= 400) {
    return read_error(body, http, signed_at, reader, wanted, answer);
  }
  answer.message.clear();
  sigv4::format_to(answer.message, "HTTP status %s%s", http.status, wrong);
}

}  // namespace

const char* name_of(Action action) {
  // In the order of the enumeration.
  static constexpr char kNames[] =
      "GetItem\0PutItem\0UpdateItem\0DeleteItem\0"
      "DescribeTable\0CreateTable\0UpdateTimeToLive\0DeleteTable\0"
      "Scan\0Query\0TransactWriteItems";
  return sigv4::word_at(kNames, static_cast<std::size_t>(action));
}

bool is_of_an_item(Action action) {
  return action == Action::get_item || action == Action::put_item ||
         action == Action::update_item || action == Action::delete_item;
}

const char* name_of(Fault fault) {
  // In the order of the enumeration.
  static constexpr char kNames[] =
      "none\0condition_failed\0"

      "no_keys\0no_target\0bad_keys\0expired_keys\0access_denied\0no_table\0"
      "table_in_use\0wrong_key\0bad_request\0unknown_action\0"
      "bad_certificate\0"

      "keys_awaited\0no_memory\0unreachable\0disconnected\0timed_"
      "out\0throttled\0"
      "server_failure\0conflict\0bad_answer\0skewed_time\0"

      "cancelled";
  return sigv4::word_at(kNames, static_cast<std::size_t>(fault));
}

void bad_answer(Answer& answer, const char* why) {
  answer.fault = Fault::bad_answer;
  answer.message = why;
}

Answer::Answer() = default;
Answer::Answer(Answer&&) noexcept = default;
Answer& Answer::operator=(Answer&&) noexcept = default;
Answer::~Answer() = default;

bool Answer::outcome_unknown() const {
  // DynamoDB tells parts of what it did not do.
  if (!sent || part >= 0) return false;
  switch (fault) {
    case Fault::no_memory:
    case Fault::disconnected:
    case Fault::timed_out:
    case Fault::throttled:
    case Fault::server_failure:
    case Fault::bad_answer:
    case Fault::cancelled:
      return true;
    case Fault::conflict:
      // A single write is refused because some transaction has the item.  A
      // transaction may conflict with an earlier attempt of its own.
      return action == Action::transact_write_items;
    default:
      return false;
  }
}

void Answer::tell(Answer& to) const {
  to.fault = fault;
  to.message = message;
  to.request_id = request_id;
  to.option = option;
}

Answer read_answer(Action action, HttpAnswer&& http, ServiceTime signed_at,
                   Reader reader, const Wanted& wanted, TheseParts) {
  Answer answer;
  answer.action = action;
  answer.sent = http.sent;
  answer.sent_at = http.sent_at;
  answer.received_at = http.received_at;
  answer.fault = fault_of(http.transport);
  answer.too_large = http.transport == Transport::too_large;
  answer.message.swap(http.error);
  if (http.transport != Transport::complete) return answer;

  answer.bytes = http.body.size();
  const Headers headers = http.headers_of(kTold);
  answer.date = date_of(headers);
  if (!crc_matches(headers, http.body)) {
    bad_answer(answer, "x-amz-crc32 does not match the body");
  } else {
    read_body(http, headers, signed_at, reader, wanted, answer);
  }
  if (answer.fault == Fault::none) {
    answer.message.clear();
    return answer;
  }
  answer.request_id = headers[kRequestId];
  const auto retry_after = parse_digits(headers[kRetryAfter]);
  // Retry does not wait longer than some seconds; an hour is past all doubt.
  answer.retry_after =
      milliseconds(std::min<std::int64_t>(retry_after.value_or(0), 3'600'000));
  return answer;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
