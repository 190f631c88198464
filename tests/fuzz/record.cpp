// ddbmutex/record: any item read as a lock's record.
//
// The bytes: how they come to be an item; then JSON, or, without JSON, for each
// attribute its name, its type, its value and a record separator.
#include <algorithm>
#include <set>
#include <string>

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;
using dynamodb::Attribute;
using dynamodb::Item;
using lock::Row;

constexpr Bytes kNames[8] = {"uuid",  "expires", "lease", "owner",
                             "token", "name",    "ttl",   "data"};
constexpr Attribute::Type kTypes[4] = {
    Attribute::Type::string, Attribute::Type::number, Attribute::Type::binary,
    Attribute::Type::other};

Item direct_item(Input input) {
  Item item;
  while (!input.empty()) {
    Attribute attribute;
    attribute.name = kNames[input.choice(8)];
    attribute.type = kTypes[input.choice(4)];
    attribute.value = input.part();
    item.push_back(std::move(attribute));
  }
  return item;
}

std::optional<Item> answered_item(std::string body) {
  sigv4::HttpAnswer http;
  http.transport = sigv4::Transport::complete;
  http.sent = true;
  http.status = 200;
  http.headers = "Content-Type: application/x-amz-json-1.0\r\n";
  http.body = std::move(body);
  return dynamodb::read_answer(dynamodb::Action::get_item, std::move(http), {})
      .item;
}

std::optional<Item> item_of(Input input) {
  const std::string rest;
  switch (input.choice(4)) {
    case 0:
      return answered_item("{\"Item\":" + std::string(input.rest()) + "}");
    case 1:
      return answered_item(std::string(input.rest()));
    default:
      return direct_item(input);
  }
}

// The digits of a whole number that 63 bits hold, without zeros before it;
// empty for any other text.
std::string whole(const Attribute* attribute) {
  constexpr Bytes kMax = "9223372036854775807";
  if (attribute == nullptr || attribute->type != Attribute::Type::number) {
    return "";
  }
  const std::string& text = attribute->value;
  if (text.find_first_not_of("0123456789") != text.npos) return "";
  const std::size_t begin = text.find_first_not_of('0');
  if (begin == text.npos) return text.empty() ? "" : "0";
  const std::string digits = text.substr(begin);
  const bool fits = digits.size() < kMax.size() ||
                    (digits.size() == kMax.size() && digits <= kMax);
  return fits ? digits : "";
}

// Of a record, and of what holds others' attributes alone.
void check_token(const Item& item, const Row& row) {
  const Attribute* token = find(item, "token");
  if (token == nullptr) return claim(row.token == 0, "no token is none");
  claim(std::to_string(row.token) == whole(token),
        "a row's token is the item's number");
}

void check_record(const Item& item, const Row& row) {
  claim(Bytes(row.problem).empty(), "a record has no problem");
  check_token(item, row);
  claim(!row.uuid.empty() && row.uuid.size() <= 1024,
        "a record's uuid has 1 to 1,024 bytes");
  const Attribute* uuid = find(item, "uuid");
  claim(uuid != nullptr && uuid->value == row.uuid &&
            uuid->type == Attribute::Type::string,
        "a record's uuid is the item's");
  claim(std::to_string(row.expires.count()) == whole(find(item, "expires")),
        "a record's expires is the item's number");
  const Attribute* lease = find(item, "lease");
  claim(row.lease.has_value() == (lease != nullptr),
        "a record has a lease if the item has");
  if (!row.lease) return;
  claim(std::to_string(row.lease->count()) == whole(lease),
        "a record's lease is the item's number");
  claim(*row.lease >= lock::kShortestLease && *row.lease <= lock::kLongestLease,
        "a record's lease is a sane one");
}

void check_unknown(const Item& item, const Row& row) {
  claim(row.uuid.empty() && !row.lease && row.owner.empty() &&
            row.expires.count() == 0,
        "what is not understood has no values");
  const Bytes problem = row.problem;
  const Bytes name = problem.substr(0, problem.find(' '));
  claim(
      name == "uuid" || name == "expires" || name == "lease" || name == "token",
      "a problem names its attribute");
  claim(is_one_line(row.problem), "a problem is a text for people");
  const bool missing = row.problem == std::string(name) + " is missing";
  claim(missing == (find(item, name) == nullptr),
        "an attribute is missing or it is wrong");
}

// What the row holds besides: all of it, in its order.
void check_others(const Item& item, const Row& row) {
  auto other = row.others.begin();
  for (const Attribute& attribute : item) {
    const Bytes name = attribute.name;
    const bool of_record = std::find(std::begin(kNames), std::end(kNames),
                                     name) != std::end(kNames);
    if (of_record && name != "data" && name != "name") continue;
    claim(other != row.others.end() && other->name == attribute.name &&
              other->type == attribute.type && other->value == attribute.value,
          "others' attributes are told as they are");
    ++other;
  }
  claim(other == row.others.end(), "nothing else is told");
}

void check_kind(const Item& item, const Row& row) {
  claim((row.kind == Row::Kind::absent) == item.empty(),
        "an item with nothing in it is none");
  claim(row.has_token == (find(item, "token") != nullptr),
        "a token makes a kept row");
  check_others(item, row);
  if (row.kind == Row::Kind::bare) {
    check_token(item, row);
    claim(find(item, "uuid") == nullptr, "what has a uuid is not bare");
  }
  if (row.kind == Row::Kind::record) check_record(item, row);
  if (row.kind == Row::Kind::unknown) check_unknown(item, row);
}

bool same(const Row& a, const Row& b) {
  return a.kind == b.kind && a.uuid == b.uuid && a.expires == b.expires &&
         a.lease == b.lease && a.owner == b.owner &&
         a.has_token == b.has_token && a.token == b.token &&
         std::string(a.problem) == b.problem;
}

// What other clients add, and in which order they write, is nothing to us.
void check_form(const Item& item, const Row& row) {
  std::set<Bytes> names;
  for (const Attribute& attribute : item) {
    if (!names.insert(attribute.name).second) return;  // No item of DynamoDB's.
  }
  const Item backwards(item.rbegin(), item.rend());
  claim(same(lock::read_row(backwards), row),
        "the order of attributes is free");
  if (item.empty()) return;
  Item more = item;
  more.push_back({"Uuid", Attribute::Type::number, "1"});
  claim(same(lock::read_row(more), row), "foreign attributes are nothing");
}

}  // namespace

void record(Bytes bytes) {
  const auto item = item_of(Input(bytes));
  if (!item) return;
  const Row row = lock::read_row(*item);
  check_kind(*item, row);
  check_form(*item, row);
}

}  // namespace fuzz
}  // namespace tests
