// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A page that is too large is asked for again with fewer items.
#include "pages.hpp"

#include <algorithm>
#include <utility>

#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::nanoseconds;

namespace {

// The body of a GetItem that only a table with the selection's key accepts.
// Which item it names does not matter.  Only the key is requested, because the
// item, if there is one, may be large.
sigv4::Text write_key_check(const Selection& selection) {
  sigv4::Text body;
  JsonWriter json(body);
  json.begin_object();
  json.name("TableName").text(selection.table);
  json.name("Key").begin_object();
  for (std::size_t i = 0; i < selection.key_attributes; ++i) {
    json.name(selection.attributes[i]);
    write_text(json, "-");
  }
  json.end_object();
  json.name("ProjectionExpression").text("#0");
  json.name("ExpressionAttributeNames").begin_object();
  json.name("#0").text(selection.attributes[0]);
  json.end_object();
  json.end_object();
  return body;
}

// The body of a Scan or Query.  Expressions call attributes "#0", "#1" and so
// on, because a name may be one of DynamoDB's reserved words.  `count`: how
// many of the selection's attributes to request.  `start`: empty for the first
// page.
sigv4::Text write_page(const Selection& selection, std::size_t count, int limit,
                       const Item& start) {
  const std::vector<std::string>& names = selection.attributes;
  sigv4::Text body, projection;
  JsonWriter json(body);
  json.begin_object();
  json.name("TableName").text(selection.table);
  json.name("ConsistentRead").boolean(true);
  json.name("Limit").number(limit);
  for (std::size_t i = 0; i < count; ++i) {
    projection += i == 0 ? "#" : ", #";
    projection += sigv4::Digits(i);
  }
  json.name("ProjectionExpression").text(projection);
  json.name("ExpressionAttributeNames").begin_object();
  for (std::size_t i = 0; i < count; ++i) {
    json.name(sigv4::join({"#", sigv4::Digits(i)})).text(names[i]);
  }
  json.end_object();
  if (selection.exact_key) {
    json.name("KeyConditionExpression").text("#0 = :key");
  } else if (!selection.prefix.empty()) {
    json.name("FilterExpression").text("begins_with(#0, :key)");
  }
  if (selection.exact_key || !selection.prefix.empty()) {
    json.name("ExpressionAttributeValues").begin_object();
    json.name(":key");
    write_text(json, selection.prefix);
    json.end_object();
  }
  if (!start.empty()) {
    json.name("ExclusiveStartKey");
    write_item(json, start);
  }
  json.end_object();
  return body;
}

// The key of a table and that of an index, with two attributes each.
constexpr std::size_t kMostInKey = 4;

// How many values the item has memory for, members included.
std::size_t room_of(const Item& item) {
  std::size_t count = item.capacity();
  for (const Attribute& one : item) count += room_of(one.members);
  return count;
}

// REQUIRES: both are keys, so their attributes have no members.
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

void read_page(Value body, const Wanted& wanted, Answer& answer) {
  const Value items = body["Items"];
  if (!items.is_list()) return bad_answer(answer, "Items is not a list");
  const auto too_large = [&answer] {
    answer.too_large = true;
    bad_answer(answer, "Items has too many values");
  };
  std::size_t room = kMostValuesInPage;
  if (items.size() > room) return too_large();
  std::vector<Item> read(items.size());
  auto item = read.begin();
  for (Elements each(items); each.next(); ++item) {
    if (!read_item(each.value, *item, wanted)) {
      return bad_answer(answer,
                        "Items contains something that is not a DynamoDB item");
    }
    const std::size_t size = room_of(*item);
    if (size > room) return too_large();
    room -= size;
  }
  if (const Value next = body["LastEvaluatedKey"]) {
    Item& key = answer.item.emplace();
    if (!read_item(next, key) || key.empty() || key.size() > kMostInKey) {
      answer.item.reset();  // There is no next page that could be asked for.
      return bad_answer(answer, "LastEvaluatedKey is not a key");
    }
  }
  answer.items = std::move(read);
}

Item* Items::next() {
  while (index_ == page_.items.size()) {
    if (is_last_) return nullptr;
    read_next_page();
  }
  return &page_.items[index_++];
}

// A page that is too large is requested again with half as many items.  If one
// item alone is too large, only its key is requested, so that the items after
// it can be read.
void Items::ask_for_page() {
  const std::size_t all = selection_.attributes.size();
  for (keys_only_ = false;;) {
    page_ = dynamodb::ask(
        context_, selection_.exact_key ? Action::query : Action::scan,
        write_page(selection_, keys_only_ ? selection_.key_attributes : all,
                   limit_, start_),
        nullptr, read_page, selection_.wanted);
    if (!page_.too_large || keys_only_) break;
    keys_only_ = limit_ == 1;
    limit_ = std::max(limit_ / 2, 1);
  }
  // After a small page, twice as many items will probably fit.
  const bool small = page_.bytes < client().max_answer_bytes() / 4;
  if (small) limit_ = std::min(2 * limit_, kMostItems);
}

// Asks whether the table's key is the selection's.  False if it is not, or if
// the question fails; page_ then says why.  True if the AWS keys do not allow
// the question: the Scan may be allowed nevertheless.
bool Items::has_right_key() {
  if (!selection_.checks_key || client().table_key_is_right()) return true;
  page_ =
      dynamodb::ask(context_, Action::get_item, write_key_check(selection_));
  const bool goes_on =
      page_.fault == Fault::none || page_.fault == Fault::access_denied;
  if (goes_on) page_ = Answer();
  return goes_on;
}

void Items::read_next_page() {
  index_ = 0;
  page_.items.clear();
  is_last_ = true;  // Unless the answer says where another page begins.
  const BootTime now = BootClock::now();
  const nanoseconds time = std::min(page_time_, BootTime::max() - now);
  context_.deadline = std::min(deadline_, now + time);
  cut_short_ = context_.deadline - now < context_.request_timeout;
  if (start_.empty() && !has_right_key()) return;
  ask_for_page();
  if (page_.fault != Fault::none || !page_.item) return;
  if (are_same_key(start_, *page_.item)) {
    page_.items.clear();
    return bad_answer(page_, "the page ends where it began");
  }
  start_ = std::move(*page_.item);
  is_last_ = false;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
