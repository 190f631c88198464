#ifndef DDBMUTEX_NO_GUARD
#include "transact.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "../sigv4/text.hpp"
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

// What a part of a transaction was refused for; the weightiest first, since a
// condition that did not hold will not by trying again.  And what each means;
// the last: any other.
constexpr char kReasons[] =
    "ConditionalCheckFailed\0"
    "TransactionConflict\0"
    "ThrottlingError\0"
    "ProvisionedThroughputExceeded\0"
    "RequestLimitExceeded\0";
constexpr Fault kFaultsOfReasons[] = {
    Fault::condition_failed, Fault::conflict,  Fault::throttled,
    Fault::throttled,        Fault::throttled, Fault::bad_request};
constexpr std::size_t kOtherReason = std::size(kFaultsOfReasons) - 1;

// Why a transaction was cancelled, as far as its parts have been looked at.
struct Cancellation {
  void hear(std::string_view reason, std::string_view words);

  int looked_at = 0;
  int part = -1;  // The one to tell of, and why it was refused:
  std::size_t weight = std::size(kFaultsOfReasons);
  std::string_view code, message;
};

void Cancellation::hear(std::string_view reason, std::string_view words) {
  const int here = looked_at++;
  if (reason.empty() || reason == "None"sv) return;
  std::size_t its = 0;
  while (its < kOtherReason && sigv4::word_at(kReasons, its) != reason) ++its;
  if (its >= weight) return;
  weight = its;
  part = here;
  code = reason;
  message = words;
}

// As at the end of the message: "... specific reasons [Code, None]".
void read_worded(std::string_view message, Cancellation& cancellation) {
  const std::size_t begin = message.rfind('[');
  const std::size_t end = message.rfind(']');
  if (begin == message.npos || end == message.npos || end < begin) return;
  std::string_view codes = message.substr(begin + 1, end - begin - 1);
  while (!codes.empty()) {
    cancellation.hear(sigv4::cut(codes, ','), "");
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
    all.hear(each.value.text("Code"), each.value.text("Message"));
  }
  if (!good) {
    return bad_answer(answer, "CancellationReasons is not a list of reasons");
  }
  if (!list) read_worded(answer.message, all);  // Not every engine lists them.
  answer.part = all.part;
  if (all.part < 0) return;
  answer.fault = kFaultsOfReasons[all.weight];
  answer.message =
      sigv4::format("part %s: %s%[: %s%]", all.part, all.code, all.message);
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
#endif
