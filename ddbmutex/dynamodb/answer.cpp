// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads an answer: first the headers, which show whether DynamoDB sent it, then
// the body.  After a success the body depends on the action.  Otherwise it is
// an error code with a message.
#include "answer.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "../../sigv4/error_code.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

using sigv4::HeaderLines;
using sigv4::HttpAnswer;
using sigv4::Transport;
using std::chrono::milliseconds;

namespace {

constexpr struct {
  Action action;
  char name[19];
} kActionNames[] = {
    {Action::get_item, "GetItem"},
    {Action::put_item, "PutItem"},
    {Action::update_item, "UpdateItem"},
    {Action::delete_item, "DeleteItem"},
    {Action::describe_table, "DescribeTable"},
    {Action::create_table, "CreateTable"},
    {Action::update_time_to_live, "UpdateTimeToLive"},
    {Action::delete_table, "DeleteTable"},
    {Action::scan, "Scan"},
    {Action::query, "Query"},
    {Action::transact_write_items, "TransactWriteItems"},
};

constexpr struct {
  Fault fault;
  char name[17];
} kFaultNames[] = {
    {Fault::none, "none"},
    {Fault::condition_failed, "condition_failed"},
    {Fault::no_keys, "no_keys"},
    {Fault::no_target, "no_target"},
    {Fault::bad_keys, "bad_keys"},
    {Fault::expired_keys, "expired_keys"},
    {Fault::access_denied, "access_denied"},
    {Fault::no_table, "no_table"},
    {Fault::table_in_use, "table_in_use"},
    {Fault::wrong_key, "wrong_key"},
    {Fault::bad_request, "bad_request"},
    {Fault::unknown_action, "unknown_action"},
    {Fault::bad_certificate, "bad_certificate"},
    {Fault::no_thread, "no_thread"},
    {Fault::keys_awaited, "keys_awaited"},
    {Fault::no_memory, "no_memory"},
    {Fault::unreachable, "unreachable"},
    {Fault::disconnected, "disconnected"},
    {Fault::timed_out, "timed_out"},
    {Fault::throttled, "throttled"},
    {Fault::server_failure, "server_failure"},
    {Fault::conflict, "conflict"},
    {Fault::bad_answer, "bad_answer"},
    {Fault::skewed_time, "skewed_time"},
    {Fault::cancelled, "cancelled"},
};

struct CodedFault {
  const char* codes;  // All with this meaning, separated by blanks.
  Fault fault;
  // The keys have expired, or were replaced or deleted, so newer ones may work.
  bool other_keys = false;
};

// DynamoDB's own error codes (its developer guide, "Error handling") and those
// of AWS's check of keys.  The codes that all services share are in
// sigv4/error_code.hpp.
constexpr CodedFault kCodedFaults[] = {
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
    // TransactionInProgress: an earlier attempt of the same transaction.
    {"TransactionConflictException TransactionInProgressException "
     "ReplicatedWriteConflictException",
     Fault::conflict},
};

// The messages of a ValidationException if an item has another key than the
// table.  Those before the blank line are DynamoDB's, those after it ScyllaDB
// Alternator's.  The third and fourth come from the downloadable DynamoDB, the
// fifth is about an update that would change a part of the key, the seventh
// about a Query.  A '*' stands for a name or type.
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

// Whether `text` is `pattern` with at least one character for each '*'.
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
  for (const std::string_view pattern : kWrongKeyPatterns) {
    if (dynamodb::matches(message, pattern)) return true;
  }
  return false;
}

// --- Headers, transport and status -------------------------------------------

// The headers that are read, in one pass.  Of several the first counts.
struct Headers {
  explicit Headers(const HttpAnswer& http);

  std::optional<std::string_view> request_id, crc32, type, date, age,
      retry_after;
};

Headers::Headers(const HttpAnswer& http) {
  const struct {
    std::string_view name;
    std::optional<std::string_view>& value;
  } known[] = {
      {"x-amzn-RequestId", request_id},
      {"x-amz-crc32", crc32},
      {"Content-Type", type},
      {"Date", date},
      {"Age", age},
      {"x-amz-retry-after", retry_after},
  };
  for (HeaderLines each(http.headers); each.next();) {
    for (const auto& one : known) {
      if (!one.value && sigv4::same_in_any_case(each.name, one.name)) {
        one.value = each.value;
        break;
      }
    }
  }
}

std::string_view code_of(Value body, const HttpAnswer& http) {
  std::string_view code = body.text("__type");
  if (code.empty()) code = body.text("code");
  if (code.empty()) code = http.header("x-amzn-errortype");
  return sigv4::bare_code(code);
}

// CRC-32 as in ISO 3309.
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

bool crc_matches(const Headers& headers, std::string_view body) {
  if (!headers.crc32) return true;  // Some engines do not send it.
  const auto number = parse_digits(*headers.crc32);
  return number && *number == dynamodb::crc32(body);
}

// DynamoDB sends both headers, other engines at least one.  A captive portal
// that answers every request with `{}` sends neither.
bool is_dynamodbs(const Headers& headers) {
  return headers.request_id ||
         headers.type.value_or("").find("x-amz-json") != std::string_view::npos;
}

std::optional<ServiceTime> date_of(const Headers& headers) {
  if (!headers.request_id) return std::nullopt;
  // An Age shows that the answer comes from a cache.
  if (headers.age) return std::nullopt;
  return believable_date(headers.date.value_or(""));
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
  // These come from a proxy, which may have forwarded the request.
  const bool from_proxy = status == 408 || status == 425 || status == 499;
  if (from_proxy || status >= 500) return Fault::server_failure;
  if (status == 401 || status == 403) return Fault::access_denied;
  return Fault::bad_request;
}

// Whether a fault is clear from the status, without a body.
bool says_enough(Fault by_status) {
  return by_status == Fault::server_failure || by_status == Fault::throttled;
}

CodedFault fault_of_code(std::string_view code, int status) {
  for (const CodedFault& row : kCodedFaults) {
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

// Whether a request was refused because TTL is enabled already.
bool is_on_already(Action action, std::string_view message) {
  return action == Action::update_time_to_live &&
         message == "TimeToLive is already enabled"sv;
}

// --- The body ----------------------------------------------------------------

// Reads the body of one HTTP answer into `answer`.
struct BodyReader {
  void read();
  void read_error(Value body);
  void read_success(Value body);
  void read_item_of(Value body, std::string_view name);
  bool is_skewed(std::string_view code) const;

  HttpAnswer& http;
  const Headers& headers;
  const ServiceTime signed_at;
  const Reader reader;
  const Wanted& wanted;
  Answer& answer;
};

// Whether the request was refused because it was signed for another time.
bool BodyReader::is_skewed(std::string_view code) const {
  return answer.date && sigv4::may_mean_skew(code) &&
         sigv4::is_skewed(*answer.date - signed_at);
}

// Reads the item that is the body's member `name`, if there is one.
void BodyReader::read_item_of(Value body, std::string_view name) {
  for (Elements each(body); each.next();) {
    if (each.name != name) continue;
    if (read_item(each.value, answer.item.emplace(), wanted)) return;
    answer.item.reset();
    return bad_answer(answer, sigv4::join({name, " is not a DynamoDB item"}));
  }
}

void BodyReader::read_error(Value body) {
  const std::string_view code = code_of(body, http);
  std::string_view message = body.text("message");
  if (message.empty()) message = body.text("Message");
  answer.message = message;
  if (code.empty()) {
    sigv4::append(answer.message,
                  {message.empty() ? "" : " ", "(HTTP status ",
                   sigv4::Digits(http.status),
                   " without an error code: is this DynamoDB?)"});
  }
  const CodedFault coded = fault_of_code(code, http.status);
  answer.fault = is_skewed(code) ? Fault::skewed_time : coded.fault;
  // With a status of 5xx it is not certain that the request was refused.
  if (http.status >= 500) {
    if (!answer.outcome_unknown()) answer.fault = Fault::server_failure;
    return;
  }
  answer.other_keys = coded.other_keys;
  if (code == "ValidationException"sv) {
    if (is_on_already(answer.action, message)) answer.fault = Fault::none;
    const bool names_keys =
        is_of_an_item(answer.action) || answer.action == Action::query;
    if (names_keys && names_a_wrong_key(message)) {
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
                      sigv4::join({name_of(answer.action),
                                   " has no condition that could fail"}));
  }
  read_item_of(body, "Item");
}

// The members of the body after a success.
struct Members {
  std::string_view needed;  // The one that is always there, or empty.
  std::string_view others;  // Those that may be there, separated by blanks.
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

// Whether the body has the members of a success and no others.  Otherwise the
// JSON of a captive portal would count as the success of a write.
bool is_success(const Members& members, Value body) {
  bool complete = members.needed.empty();
  for (Elements each(body); each.next();) {
    if (each.name.empty()) return false;
    if (each.name == members.needed) {
      complete = true;
    } else if (!sigv4::is_among(members.others, each.name)) {
      return false;
    }
  }
  return complete;
}

void BodyReader::read_success(Value body) {
  answer.fault = Fault::none;
  const Members members = members_of(answer.action);
  if (!is_success(members, body)) {
    return bad_answer(answer,
                      "HTTP status 200, but not an answer from DynamoDB");
  }
  if (answer.action == Action::get_item) {
    read_item_of(body, "Item");
  } else if (answer.action == Action::update_item ||
             answer.action == Action::delete_item) {
    read_item_of(body, "Attributes");
  } else if (!members.needed.empty() && reader != nullptr) {
    reader(body, wanted, answer);
  }
}

void BodyReader::read() {
  // Without a content type, the body decides.
  const bool says_json =
      headers.type.value_or("json").find("json") != std::string_view::npos;
  // The usual answer to a write is `{}`, which needs no parsing.
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
  if (!body.is_object() && says_enough(by_status)) {
    answer.fault = by_status;  // From a proxy or load balancer.
  } else if (!body.is_object() || !says_json) {
    wrong = ", and the body is not a JSON object";
  } else if (http.status == 200 && !is_dynamodbs(headers)) {
    wrong = ", but neither DynamoDB's content type nor a request id";
  } else if (http.status == 200) {
    return read_success(body);
  } else if (http.status >= 400) {
    return read_error(body);
  }
  answer.message =
      sigv4::join({"HTTP status ", sigv4::Digits(http.status), wrong});
}

}  // namespace

const char* name_of(Action action) {
  for (const auto& known : kActionNames) {
    if (known.action == action) return known.name;
  }
  return "";
}

bool is_of_an_item(Action action) {
  return action == Action::get_item || action == Action::put_item ||
         action == Action::update_item || action == Action::delete_item;
}

const char* name_of(Fault fault) {
  for (const auto& known : kFaultNames) {
    if (known.fault == fault) return known.name;
  }
  return "";
}

void bad_answer(Answer& answer, std::string_view message) {
  answer.fault = Fault::bad_answer;
  answer.message = message;
}

bool Answer::outcome_unknown() const {
  // DynamoDB names a part only if it did not apply the transaction.
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
      // A single write that conflicts with a transaction was refused.  A
      // transaction may conflict with an earlier attempt of its own.
      return action == Action::transact_write_items;
    default:
      return false;
  }
}

void Answer::set_fault(Fault the_fault, const char* the_message) noexcept {
  fault = the_fault;
  message.clear();
  sigv4::try_with_memory([&] { message = the_message; });
}

void Answer::copy_fault_to(Answer& to) const noexcept {
  to.fault = fault;
  to.option = option;
  to.message.clear();
  to.request_id.clear();
  sigv4::try_with_memory([&] {
    to.message = message;
    to.request_id = request_id;
  });
}

Answer unread_answer(Action action, const HttpAnswer& http) {
  Answer answer;
  answer.action = action;
  answer.sent = http.sent;
  answer.sent_at = http.sent_at;
  answer.received_at = http.received_at;
  return answer;
}

Answer read_answer(Action action, HttpAnswer&& http, ServiceTime signed_at,
                   Reader reader, const Wanted& wanted) {
  Answer answer = unread_answer(action, http);
  answer.fault = fault_of(http.transport);
  answer.too_large = http.transport == Transport::too_large;
  answer.message = std::move(http.error);
  const Fault by_status = fault_of_status(http.status);
  // The head was complete, or there would be no status.
  if (http.transport == Transport::broken && says_enough(by_status)) {
    answer.fault = by_status;
    answer.message = sigv4::join({"HTTP status ", sigv4::Digits(http.status),
                                  ", and then: ", answer.message});
  }
  if (http.transport != Transport::complete) return answer;

  answer.bytes = http.body.size();
  const Headers headers(http);
  answer.date = date_of(headers);
  if (!crc_matches(headers, http.body)) {
    bad_answer(answer, "x-amz-crc32 does not match the body");
  } else {
    BodyReader{http, headers, signed_at, reader, wanted, answer}.read();
  }
  if (answer.fault == Fault::none) {
    answer.message.clear();
    return answer;
  }
  answer.request_id = headers.request_id.value_or("");
  const auto retry_after = parse_digits(headers.retry_after.value_or(""));
  // Retry waits a few seconds at most; the bound prevents an overflow.
  answer.retry_after =
      milliseconds(std::min<std::int64_t>(retry_after.value_or(0), 3'600'000));
  return answer;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
