#include "ask.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

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

// Stand-ins for names, which may be DynamoDB's reserved words: "#0" and so on.
class Names {
 public:
  std::string stand_in(const std::string& name) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    const auto index = at - names_.begin();
    if (at == names_.end()) names_.push_back(name);
    return "#" + std::to_string(index);
  }

  void write(Writer& writer) const {
    if (names_.empty()) return;
    write_string(writer, "ExpressionAttributeNames");
    writer.StartObject();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      write_pair(writer, "#" + std::to_string(i), names_[i]);
    }
    writer.EndObject();
  }

 private:
  std::vector<std::string> names_;
};

// The keys that are asked for, if not all.
void write_condition(Writer& writer, const Selection& selection, Names& names) {
  if (!selection.key && selection.prefix.empty()) return;
  const std::string name = names.stand_in(selection.key_name);
  if (selection.key) {
    write_pair(writer, "KeyConditionExpression", name + " = :key");
  } else {
    write_pair(writer, "FilterExpression", "begins_with(" + name + ", :key)");
  }
  write_string(writer, "ExpressionAttributeValues");
  writer.StartObject();
  write_attribute(writer, ":key", Attribute::Type::string,
                  selection.key ? *selection.key : selection.prefix);
  writer.EndObject();
}

std::string write_page(const Selection& selection, int limit,
                       const std::optional<Item>& start) {
  rapidjson::StringBuffer body;
  Writer writer(body);
  Names names;
  writer.StartObject();
  write_pair(writer, "TableName", selection.table);
  write_string(writer, "ConsistentRead");
  writer.Bool(true);
  write_string(writer, "Limit");
  writer.Int(limit);
  if (!selection.attributes.empty()) {
    std::string list;
    for (const std::string& name : selection.attributes) {
      list += (list.empty() ? "" : ", ") + names.stand_in(name);
    }
    write_pair(writer, "ProjectionExpression", list);
  }
  write_condition(writer, selection, names);
  names.write(writer);
  if (start) {
    write_string(writer, "ExclusiveStartKey");
    writer.StartObject();
    write_members(writer, *start);
    writer.EndObject();
  }
  writer.EndObject();
  return {body.GetString(), body.GetSize()};
}

// Keys have no members.
bool are_same_key(const Item& one, const Item& other) {
  return one.size() == other.size() &&
         std::all_of(one.begin(), one.end(), [&](const Attribute& part) {
           const Attribute* twin = find(other, part.name);
           return twin != nullptr && twin->type == part.type &&
                  twin->value == part.value;
         });
}

}  // namespace

Answer gave_up(Answer last, bool woken) {
  last.fault = woken ? Fault::cancelled : Fault::timed_out;
  last.message = woken ? "woken before another request was sent"
                       : "the deadline has passed";
  return last;
}

Answer ask(Client& client, RetryBudget& budget, Action action,
           const std::string& body, const Waiting& waiting,
           bool* maybe_applied) {
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
        waker);
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
    Answer page = ask(client, budget, action,
                      write_page(selection, limit, start), for_a_page);
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
    start = page.item;
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
