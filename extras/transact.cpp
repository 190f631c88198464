// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Writes a transaction, and reads why DynamoDB cancelled one.
#include "transact.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "../ddbmutex/dynamodb/item.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

namespace {

// A transaction has up to 100 parts, and one is the condition.
constexpr std::size_t kMostWrites = 99;

// The text between the outermost brackets.
std::string_view inside(std::string_view array) {
  const std::size_t begin = array.find('[') + 1;
  return array.substr(begin, array.rfind(']') - begin);
}

// --- Why a transaction was cancelled -----------------------------------------

// Why a part was refused.  A reason that comes earlier in the list is reported
// rather than a later one: a condition that failed would fail again.
struct Reason {
  std::string_view code;
  Fault fault;
};
constexpr Reason kReasons[] = {
    {"ConditionalCheckFailed", Fault::condition_failed},
    {"TransactionConflict", Fault::conflict},
    {"ThrottlingError", Fault::throttled},
    {"ProvisionedThroughputExceeded", Fault::throttled},
    {"RequestLimitExceeded", Fault::throttled},
    {"", Fault::bad_request},  // Any other.
};

const Reason* reason_of(std::string_view code) {
  const Reason* reason = kReasons;
  while (!reason->code.empty() && reason->code != code) ++reason;
  return reason;
}

// The part to report, out of those that were added.
struct Cancellation {
  void add_part(std::string_view part_code, std::string_view part_message);

  int parts = 0;  // How many were added.
  int part = -1;  // The one to report; -1 if no part was refused.
  const Reason* reason = std::end(kReasons);
  std::string_view code, message;
};

void Cancellation::add_part(std::string_view part_code,
                            std::string_view part_message) {
  const int number = parts++;
  if (part_code.empty() || part_code == "None"sv) return;
  const Reason* const part_reason = reason_of(part_code);
  if (part_reason >= reason) return;
  reason = part_reason;
  part = number;
  code = part_code;
  message = part_message;
}

// Reads the codes at the end of the answer's message: "... specific reasons
// [Code, None]".
void read_codes(std::string_view message, Cancellation& cancellation) {
  const std::size_t begin = message.rfind('[');
  const std::size_t end = message.rfind(']');
  if (begin == message.npos || end == message.npos || end < begin) return;
  std::string_view codes = message.substr(begin + 1, end - begin - 1);
  while (!codes.empty()) {
    cancellation.add_part(sigv4::cut(codes, ','), "");
    codes.remove_prefix(std::min(codes.find_first_not_of(' '), codes.size()));
  }
}

}  // namespace

std::string problem_of_writes(std::string_view writes) {
  const Document document{std::string(writes)};
  const Value list = document.root();
  if (!document.is_json()) {
    return sigv4::join(
        {"not JSON at byte ", sigv4::Digits(document.error_offset())});
  }
  if (!list.is_list()) return "not an array";
  std::size_t count = 0;
  for (Elements each(list); each.next(); ++count) {
    if (!each.value.is_object()) return "an element is not an object";
  }
  if (count == 0) return "no elements";
  return count > kMostWrites ? "more than 99 elements" : "";
}

sigv4::Text write_transaction(std::string_view check, std::string_view writes,
                              std::string_view token) {
  sigv4::Text body;
  JsonWriter json(body);
  json.begin_object();
  json.name("TransactItems").begin_list();
  json.begin_object();
  json.name("ConditionCheck").json({check});
  json.end_object();
  json.json({dynamodb::inside(writes)});
  json.end_list();
  json.name("ClientRequestToken").text(token);
  json.end_object();
  return body;
}

void read_cancellation(Value body, const Wanted&, Answer& answer) {
  Cancellation all;
  const Value list = body["CancellationReasons"];
  // [{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"why"}]
  bool good = !list || list.is_list();
  for (Elements each(list); good && each.next();) {
    good = each.value.is_object();
    all.add_part(each.value.text("Code"), each.value.text("Message"));
  }
  if (!good) {
    return bad_answer(answer, "CancellationReasons is not a list of reasons");
  }
  if (!list) read_codes(answer.message, all);  // Some engines have no list.
  answer.part = all.part;
  if (all.part < 0) return;
  answer.fault = all.reason->fault;
  answer.message = sigv4::join({"part ", sigv4::Digits(all.part), ": ",
                                all.code, sigv4::if_any(": ", all.message)});
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
