#include "transact.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "../../sigv4/text.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

namespace {

// Of the parts of a transaction, without ours.
constexpr std::size_t kMostWrites = 99;

// What stands between the outermost brackets.
std::string_view inside(std::string_view array) {
  const std::size_t begin = array.find('[') + 1;
  return array.substr(begin, array.rfind(']') - begin);
}

// --- Why it was not carried out ---------------------------------------------

// Why a part of a transaction was refused.  The weightiest reason comes first,
// since a condition that did not hold will not hold the next time either.
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

// Why a transaction was cancelled, as far as its parts have been looked at.
struct Cancellation {
  void add_part(std::string_view code, std::string_view words);

  int parts = 0;  // So many have been looked at.
  int part = -1;  // The one to report, and why it was refused:
  const Reason* reason = std::end(kReasons);
  std::string_view code, message;
};

void Cancellation::add_part(std::string_view its_code, std::string_view words) {
  const int number = parts++;
  if (its_code.empty() || its_code == "None"sv) return;
  const Reason* const its_reason = reason_of(its_code);
  if (its_reason >= reason) return;
  reason = its_reason;
  part = number;
  code = its_code;
  message = words;
}

// As at the end of the message: "... specific reasons [Code, None]".
void read_worded(std::string_view message, Cancellation& cancellation) {
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
    return sigv4::format("not JSON at byte %s", document.bad_at());
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
  append_form(
      body,
      R"({"TransactItems":[{"ConditionCheck":%},%],"ClientRequestToken":$})",
      {check, dynamodb::inside(writes), token});
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
  if (!list) read_worded(answer.message, all);  // Not every engine lists them.
  answer.part = all.part;
  if (all.part < 0) return;
  answer.fault = all.reason->fault;
  answer.message =
      sigv4::format("part %s: %s%[: %s%]", all.part, all.code, all.message);
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
