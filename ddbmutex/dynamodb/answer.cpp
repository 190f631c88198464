// Reads an answer: its headers first, which say whether it is DynamoDB's, then
// its body, which depends on the action if all went well, and is an error code
// with a message otherwise.
#include "answer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "../../sigv4/error_code.hpp"
#include "../../sigv4/text.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

using sigv4::HttpAnswer;
using sigv4::Transport;
using std::chrono::milliseconds;

namespace {

struct CodeMeaning {
  const char* codes;  // All that mean the same, separated by blanks.
  Fault fault;
  // The keys have expired, or were changed or deleted: there may be others.
  bool other_keys = false;
};

// DynamoDB's own error codes (its developer guide, "Error handling"), and those
// of the check of keys before it.  For other services' codes that it shares see
// sigv4::meaning_of_code().
constexpr CodeMeaning kMeanings[] = {
    {"ConditionalCheckFailedException", Fault::condition_failed},
    {"ResourceNotFoundException TableNotFoundException", Fault::no_table},
    {"ResourceInUseException", Fault::table_in_use},
    {"UnknownOperationException", Fault::unknown_action},
    {"AccessDeniedException AccessDenied", Fault::access_denied},
    {"ExpiredTokenException ExpiredToken", Fault::expired_keys, true},
    {"UnrecognizedClientException InvalidClientTokenId", Fault::bad_keys, true},
    {"InvalidToken MissingAuthenticationToken "
     "MissingAuthenticationTokenException IncompleteSignature "
     "IncompleteSignatureException",
     Fault::bad_keys},
    // In progress: the same transaction, sent before.
    {"TransactionConflictException TransactionInProgressException "
     "ReplicatedWriteConflictException",
     Fault::conflict},
};

// The message of a ValidationException about an item whose key is not the
// table's, in DynamoDB's words and after the blank line in ScyllaDB
// Alternator's.  The third and fourth are those of DynamoDB's edition for
// download, the fifth comes where an update would change a part of the key, the
// seventh is of a Query.  A '*' stands for a name or type.
constexpr std::string_view kWrongKeyPatterns[] = {
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
  return std::any_of(std::begin(kWrongKeyPatterns), std::end(kWrongKeyPatterns),
                     [&](std::string_view pattern) {
                       return dynamodb::matches(message, pattern);
                     });
}

// --- What an answer is worth -----------------------------------------------

// The headers that matter.  One that is missing has no data().
struct Headers {
  explicit Headers(const HttpAnswer& http)
      : request_id(http.header("x-amzn-RequestId")),
        crc32(http.header("x-amz-crc32")),
        type(http.header("Content-Type")),
        date(http.header("Date")),
        age(http.header("Age")),
        retry_after(http.header("x-amz-retry-after")) {}

  const std::string_view request_id, crc32, type, date, age, retry_after;
};

std::string_view code_of(Value body, const HttpAnswer& http) {
  std::string_view code = body.text("__type");
  if (code.empty()) code = body.text("code");
  if (code.empty()) code = http.header("x-amzn-errortype");
  return sigv4::bare_code(code);
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
  const std::string_view crc = headers.crc32;
  if (crc.data() == nullptr) return true;  // Not every engine has it.
  const auto number = parse_digits(crc);
  return number && *number == dynamodb::crc32(body);
}

// DynamoDB sends both, other engines at least one.  A captive portal that
// answers every request with `{}` sends neither.
bool is_dynamodbs(const Headers& headers) {
  return headers.request_id.data() != nullptr ||
         headers.type.find("x-amz-json") != std::string_view::npos;
}

std::optional<ServiceTime> date_of(const Headers& headers) {
  if (headers.request_id.data() == nullptr) return std::nullopt;
  // An Age shows that the answer comes from a cache.
  if (headers.age.data() != nullptr) return std::nullopt;
  return believable_date(headers.date);
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
  // From a proxy, which may have forwarded the request.
  if (status == 408 || status == 425 || status == 499) {
    return Fault::server_failure;
  }
  if (status >= 500) return Fault::server_failure;
  if (status == 401 || status == 403) return Fault::access_denied;
  return Fault::bad_request;
}

CodeMeaning meaning_of(std::string_view code, int status) {
  for (const CodeMeaning& row : kMeanings) {
    if (sigv4::is_among(row.codes, code)) return row;
  }
  switch (sigv4::meaning_of_code(code)) {
    case sigv4::CodeMeaning::throttled:
      return {"", Fault::throttled};
    case sigv4::CodeMeaning::transient:
      return {"", Fault::server_failure};
    case sigv4::CodeMeaning::bad_signature:
      return {"", Fault::bad_keys};
    case sigv4::CodeMeaning::unknown:
      break;
  }
  return {"", fault_of_status(status)};
}

// Whether it was refused because it was signed for another time.
bool is_skewed(std::string_view code, const Answer& answer,
               ServiceTime signed_at) {
  return answer.date && sigv4::may_mean_skew(code) &&
         sigv4::is_skewed(*answer.date - signed_at);
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

// The request asked for what is already so.
bool is_on_already(Action action, std::string_view message) {
  return action == Action::update_time_to_live &&
         message == "TimeToLive is already enabled"sv;
}

void read_error(Value body, const HttpAnswer& http, ServiceTime signed_at,
                Reader reader, const Wanted& wanted, Answer& answer) {
  const std::string_view code = code_of(body, http);
  std::string_view message = body.text("message");
  if (message.empty()) message = body.text("Message");
  answer.message = message;
  const CodeMeaning meaning = meaning_of(code, http.status);
  answer.fault = meaning.fault;
  if (dynamodb::is_skewed(code, answer, signed_at)) {
    answer.fault = Fault::skewed_time;
  }
  // With a status of 5xx it is not certain that the request was refused.
  if (http.status >= 500) {
    if (!answer.outcome_unknown()) answer.fault = Fault::server_failure;
    return;
  }
  answer.other_keys = meaning.other_keys;
  if (code == "ValidationException"sv) {
    if (is_on_already(answer.action, message)) answer.fault = Fault::none;
    if (has_keys(answer.action) && names_a_wrong_key(message)) {
      answer.fault = Fault::wrong_key;
    }
  }
  if (code == "TransactionCanceledException"sv &&
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

// The members of an answer when all went well.
struct Members {
  std::string_view needed;  // Always there; empty if none is.
  std::string_view others;  // May be there; separated by blanks.
};

Members members_of(Action action) {
  switch (action) {
    case Action::get_item:
      return {"", "Item ConsumedCapacity"};
    case Action::put_item:
    case Action::update_item:
    case Action::delete_item:
      return {"", "Attributes ItemCollectionMetrics ConsumedCapacity"};
    case Action::describe_table:
      return {"Table", ""};
    case Action::create_table:
    case Action::delete_table:
      return {"TableDescription", ""};
    case Action::update_time_to_live:
      return {"TimeToLiveSpecification", ""};
    case Action::scan:
    case Action::query:
      return {"Items", "Count ScannedCount LastEvaluatedKey ConsumedCapacity"};
    case Action::transact_write_items:
      return {"", "ItemCollectionMetrics ConsumedCapacity"};
  }
  return {"", ""};
}

// Without this check a captive portal's JSON would pass for the answer to a
// write that was applied.
bool is_success(const Members& members, Value body) {
  bool whole = members.needed.empty();
  for (Elements each(body); each.next();) {
    if (each.name.empty()) return false;
    if (each.name == members.needed) {
      whole = true;
    } else if (!sigv4::is_among(members.others, each.name)) {
      return false;
    }
  }
  return whole;
}

void read_success(Value body, Reader reader, const Wanted& wanted,
                  Answer& answer) {
  answer.fault = Fault::none;
  const Members members = members_of(answer.action);
  if (!is_success(members, body)) {
    return bad_answer(answer,
                      "HTTP status 200, but not an answer from DynamoDB");
  }
  if (answer.action == Action::get_item) {
    read_item_of(body, "Item", wanted, answer);
  } else if (answer.action == Action::update_item) {
    read_item_of(body, "Attributes", wanted, answer);
  } else if (!members.needed.empty() && reader != nullptr) {
    reader(body, wanted, answer);
  }
}

void read_body(HttpAnswer& http, const Headers& headers, ServiceTime signed_at,
               Reader reader, const Wanted& wanted, Answer& answer) {
  const std::string_view type = headers.type;
  const bool says_json =
      type.data() == nullptr || type.find("json") != type.npos;
  // The usual answer to a write.
  const bool empty = std::string_view(http.body) == "{}"sv &&
                     members_of(answer.action).needed.empty();
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
    answer.fault = by_status;  // From a proxy or load balancer.
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

bool is_of_an_item(Action action) {
  return action == Action::get_item || action == Action::put_item ||
         action == Action::update_item || action == Action::delete_item;
}

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::condition_failed:
      return "condition_failed";
    case Fault::no_keys:
      return "no_keys";
    case Fault::no_target:
      return "no_target";
    case Fault::bad_keys:
      return "bad_keys";
    case Fault::expired_keys:
      return "expired_keys";
    case Fault::access_denied:
      return "access_denied";
    case Fault::no_table:
      return "no_table";
    case Fault::table_in_use:
      return "table_in_use";
    case Fault::wrong_key:
      return "wrong_key";
    case Fault::bad_request:
      return "bad_request";
    case Fault::unknown_action:
      return "unknown_action";
    case Fault::bad_certificate:
      return "bad_certificate";
    case Fault::keys_awaited:
      return "keys_awaited";
    case Fault::no_memory:
      return "no_memory";
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

void bad_answer(Answer& answer, const char* why) {
  answer.fault = Fault::bad_answer;
  answer.message = why;
}

Answer::Answer() = default;
Answer::Answer(Answer&&) noexcept = default;
Answer& Answer::operator=(Answer&&) noexcept = default;
Answer::~Answer() = default;

bool Answer::outcome_unknown() const {
  // DynamoDB names a part only of a transaction that it did not apply.
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
                   Reader reader, const Wanted& wanted) {
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
  const Headers headers(http);
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
  answer.request_id = headers.request_id;
  const auto retry_after = parse_digits(headers.retry_after);
  // Retry waits a few seconds at most; the bound prevents an overflow.
  answer.retry_after =
      milliseconds(std::min<std::int64_t>(retry_after.value_or(0), 3'600'000));
  return answer;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
