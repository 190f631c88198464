#if !defined(DDBMUTEX_NO_MANAGE) || !defined(DDBMUTEX_NO_ANY_OF) || \
    !defined(DDBMUTEX_NO_GUARD)
#include "ask.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "../sigv4/text.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::nanoseconds;

void give_up(Answer& last, bool woken) {
  last.fault = woken ? Fault::cancelled : Fault::timed_out;
  last.message = woken ? "cancelled before another request was sent"
                       : "the deadline has passed";
}

Answer ask(const Caller& caller, Action action, std::string_view body,
           bool* maybe_applied, Reader reader) {
  Retry retry(caller.budget, Retry::Urgency::waits);
  bool unknown = false;
  if (maybe_applied == nullptr) maybe_applied = &unknown;
  *maybe_applied = false;
  Answer answer;
  answer.action = action;
  for (bool again = false;; again = true) {
    const BootTime deadline = caller.deadline_now();
    const BootTime now = BootClock::now();
    const bool woken = caller.waker != nullptr && caller.waker->woken();
    if (woken || now >= deadline) {
      // Else it tells the last passing fault.
      if (!again || woken) give_up(answer, woken);
      return answer;
    }
    answer = caller.client.call(action, body,
                                std::min(deadline, now + caller.request_time),
                                *caller.waker, reader);
    if (answered(answer.fault)) {
      retry.success();
      return answer;
    }
    if (answer.fault == Fault::cancelled) return answer;
    const bool of_pages = action == Action::scan || action == Action::query;
    if (answer.too_large && of_pages) return answer;
    const auto delay = retry.after(answer);
    if (!delay || caller.deadline_now() - BootClock::now() <= *delay) {
      return answer;
    }
    *maybe_applied = *maybe_applied || answer.outcome_unknown();
    sigv4::drive(nullptr, 0, BootClock::now() + *delay, caller.waker);
  }
}

#if !defined(DDBMUTEX_NO_MANAGE) || !defined(DDBMUTEX_NO_ANY_OF)

// --- Pages of items --------------------------------------------------------

namespace {

// Names have stand-ins, "#0" and so on: they may be DynamoDB's reserved words.
// `start`: empty at the first page.
sigv4::Text write_page(const Selection& selection, int limit,
                       const Item& start) {
  sigv4::Text body;
  append_form(body,
              R"({"TableName":$,"ConsistentRead":true,"Limit":%,)"
              R"("ProjectionExpression":"#0)",
              {selection.table, sigv4::Digits(limit)});
  const std::vector<std::string>& names = selection.attributes;
  for (std::size_t i = 1; i < names.size(); ++i) {
    append_form(body, ", #%", {sigv4::Digits(i)});
  }
  body += '"';
  if (selection.whole || !selection.prefix.empty()) {
    append_form(
        body, R"(,"%","ExpressionAttributeValues":{":key":{"S":$}})",
        {selection.whole ? R"(KeyConditionExpression":"#0 = :key)"
                         : R"x(FilterExpression":"begins_with(#0, :key))x",
         selection.prefix});
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    append_form(
        body, i == 0 ? R"(,"ExpressionAttributeNames":{"#%":$)" : R"(,"#%":$)",
        {sigv4::Digits(i), names[i]});
  }
  body += '}';
  if (!start.empty()) {
    body += R"(,"ExclusiveStartKey":{)";
    append_members(body, start);
    body += '}';
  }
  body += '}';
  return body;
}

// Keys have no members.
bool are_same_key(const Item& one, const Item& other) {
  bool same = one.size() == other.size();
  for (const Attribute& part : one) {
    const Attribute* twin = dynamodb::find(other, part.name);
    same = same && twin != nullptr && twin->type == part.type &&
           twin->value == part.value;
  }
  return same;
}

}  // namespace

void read_page(Value body, Answer& answer) {
  const Value items = body["Items"];
  if (!items.is_list()) return bad_answer(answer, "Items is not a list");
  std::vector<Item> read(items.size());
  auto item = read.begin();
  for (Elements each(items); each.next(); ++item) {
    if (!read_item(each.value, *item)) {
      return bad_answer(answer,
                        "Items contains something that is not a DynamoDB item");
    }
  }
  if (const Value next = body["LastEvaluatedKey"]) {
    Item& key = answer.item.emplace();
    if (!read_item(next, key) || key.empty()) {
      answer.item.reset();  // Not all there is, and no way to the rest.
      return bad_answer(answer, "LastEvaluatedKey is not a key");
    }
  }
  answer.items.swap(read);
}

const Item* Items::next() {
  while (at_ == page_.items.size()) {
    if (over_) return nullptr;
    turn();
  }
  return &page_.items[at_++];
}

// The page.
void Items::turn() {
  at_ = 0;
  page_.items.clear();
  over_ = true;  // Unless all goes well, and there are more.
  const BootTime now = BootClock::now();
  const nanoseconds time = std::min(page_time_, BootTime::max() - now);
  caller_.deadline = std::min(deadline_, now + time);
  cut_short_ = caller_.deadline_now() - now < caller_.request_time;
  do {
    page_ = dynamodb::ask(
        caller_, selection_.whole ? Action::query : Action::scan,
        write_page(selection_, limit_, start_), nullptr, read_page);
    limit_ = page_.too_large ? limit_ / 2 : limit_;
  } while (page_.too_large && limit_ > 0);
  if (page_.fault != Fault::none || !page_.item) return;
  if (are_same_key(start_, *page_.item)) {
    page_.items.clear();
    return bad_answer(page_, "the page ends where it began");
  }
  start_.swap(*page_.item);
  over_ = false;
}

#endif

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
#endif
