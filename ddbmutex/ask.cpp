#include "ask.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "../sigv4/text.hpp"
#include "json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

namespace {

bool is_of_pages(Action action) {
  return action == Action::scan || action == Action::query;
}

// --- One page of items -----------------------------------------------------

// Fewer where a page of so many is too large for the client.
constexpr int kItemsOfAPage = 200;

// The keys that are asked for, if not all.
void append_condition(sigv4::Text& body, const Selection& selection,
                      std::vector<std::string_view>& names) {
  if (!selection.key && selection.prefix.empty()) return;
  const auto known = std::find(names.begin(), names.end(), selection.key_name);
  const auto place = known - names.begin();
  if (known == names.end()) names.push_back(selection.key_name);
  append_form(body,
              selection.key
                  ? R"(,"KeyConditionExpression":"#% = :key")"
                  : R"x(,"FilterExpression":"begins_with(#%, :key)")x",
              {sigv4::Digits(place)});
  append_form(body, R"(,"ExpressionAttributeValues":{":key":{"S":$}})",
              {selection.key ? *selection.key : selection.prefix});
}

// Names have stand-ins, "#0" and so on: they may be DynamoDB's reserved words.
std::string write_page(const Selection& selection, int limit,
                       const std::optional<Item>& start) {
  sigv4::Text body;
  append_form(body, R"({"TableName":$,"ConsistentRead":true,"Limit":%)",
              {selection.table, sigv4::Digits(limit)});
  std::vector<std::string_view> names(selection.attributes.begin(),
                                      selection.attributes.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    append_form(body, i == 0 ? R"(,"ProjectionExpression":"#%)" : ", #%",
                {sigv4::Digits(i)});
  }
  if (!names.empty()) body += '"';
  append_condition(body, selection, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    append_form(
        body, i == 0 ? R"(,"ExpressionAttributeNames":{"#%":$)" : R"(,"#%":$)",
        {sigv4::Digits(i), names[i]});
  }
  if (!names.empty()) body += '}';
  if (start) {
    body += R"(,"ExclusiveStartKey":{)";
    append_members(body, *start);
    body += '}';
  }
  body += '}';
  return body.take();
}

// Keys have no members.
bool are_same_key(const Item& one, const Item& other) {
  bool same = one.size() == other.size();
  for (const Attribute& part : one) {
    const Attribute* twin = find(other, part.name);
    same = same && twin != nullptr && twin->type == part.type &&
           twin->value == part.value;
  }
  return same;
}

}  // namespace

void read_page(Value body, Answer& answer) {
  const Value items = body["Items"];
  if (!items.is_list()) return bad_answer(answer, "Items is no list");
  std::vector<Item> read;
  read.reserve(items.size());
  for (Elements each(items); each.next();) {
    auto item = read_item(each.value);
    if (!item) {
      return bad_answer(answer, "Items has what is not an item of DynamoDB's");
    }
    read.push_back(std::move(*item));
  }
  if (const Value next = body["LastEvaluatedKey"]) {
    answer.item = read_item(next);
    if (!answer.item || answer.item->empty()) {
      answer.item.reset();  // Not all there is, and no way to the rest.
      return bad_answer(answer, "LastEvaluatedKey is no key");
    }
  }
  answer.items = std::move(read);
}

Answer gave_up(Answer last, bool woken) {
  last.fault = woken ? Fault::cancelled : Fault::timed_out;
  last.message = woken ? "woken before another request was sent"
                       : "the deadline has passed";
  return last;
}

Answer ask(Client& client, RetryBudget& budget, Action action,
           const std::string& body, const Waiting& waiting, bool* maybe_applied,
           Reader reader) {
  sigv4::Waker own_waker;
  sigv4::Waker& waker = waiting.waker != nullptr ? *waiting.waker : own_waker;
  Retry retry(budget, Retry::Urgency::waits);
  bool unknown = false;
  if (maybe_applied == nullptr) maybe_applied = &unknown;
  *maybe_applied = false;
  std::optional<Answer> failure;
  for (;;) {
    const BootTime now = BootClock::now();
    if (failure && !waker.woken() && now >= waiting.deadline) return *failure;
    if (waker.woken() || now >= waiting.deadline) {
      Answer unsent;
      unsent.action = action;
      unsent.sent_at = unsent.received_at = now;
      return gave_up(std::move(unsent), waker.woken());
    }
    Answer answer = client.call(
        action, body, std::min(waiting.deadline, now + waiting.request_time),
        waker, reader);
    if (answer.fault == Fault::none ||
        answer.fault == Fault::condition_failed) {
      retry.success();
      return answer;
    }
    if (answer.fault == Fault::cancelled) return answer;
    if (answer.too_large && is_of_pages(action)) return answer;
    const auto delay = retry.after(answer);
    if (!delay || waiting.deadline - BootClock::now() <= *delay) return answer;
    *maybe_applied = *maybe_applied || answer.outcome_unknown();
    failure = std::move(answer);
    sigv4::drive(nullptr, 0, BootClock::now() + *delay, &waker);
  }
}

Answer read_all(Client& client, RetryBudget& budget, const Selection& selection,
                const Waiting& waiting,
                const std::function<bool(Item&&)>& each) {
  const Action action = selection.key ? Action::query : Action::scan;
  const std::chrono::nanoseconds patience = waiting.deadline - BootClock::now();
  Waiting for_a_page = waiting;
  int limit = kItemsOfAPage;
  std::optional<Item> start;
  for (;;) {
    Answer page =
        ask(client, budget, action, write_page(selection, limit, start),
            for_a_page, nullptr, read_page);
    if (page.too_large && limit > 1) {
      limit /= 2;
      continue;
    }
    if (page.fault != Fault::none) return page;
    if (start && page.item && are_same_key(*start, *page.item)) {
      page.fault = Fault::bad_answer;
      page.message = "the page ends where it was to begin";
      page.items.clear();
      return page;
    }
    std::vector<Item> items = std::exchange(page.items, {});
    start = std::exchange(page.item, std::nullopt);
    for (Item& item : items) {
      if (!each(std::move(item))) return page;
    }
    if (!start) return page;
    for_a_page.deadline = BootClock::now() + patience;
  }
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
