#include "record.hpp"

#include <rapidjson/memorystream.h>
#include <rapidjson/stringbuffer.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <forward_list>
#include <iterator>
#include <limits>
#include <utility>

#include "json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;
using dynamodb::write_attribute;
using dynamodb::write_members;
using dynamodb::write_pair;
using dynamodb::write_string;
using dynamodb::Writer;
using Type = dynamodb::Attribute::Type;
using Verb = Request::Verb;

namespace {

// How long DynamoDB's own clean-up leaves a row alone after its lease ended.
constexpr std::chrono::hours kCleanUpAfter{24};

// Our uuids have 32 characters.  A foreign one is sent back to DynamoDB when
// its record is taken, so it must not be of any size.
constexpr int kLongestUuid = 1024;

// A token that is told of no acquisition any more.
constexpr std::int64_t kLastToken = 9'000'000'000'000'000'000;

// --- Reading ---------------------------------------------------------------

// A whole number that is not negative.  DynamoDB writes those as plain digits.
std::optional<std::int64_t> parse_number(const Attribute& attribute) {
  if (attribute.type != Attribute::Type::number) return std::nullopt;
  if (attribute.value.empty()) return std::nullopt;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::int64_t number = 0;
  for (const char c : attribute.value) {
    if (c < '0' || c > '9') return std::nullopt;
    const int digit = c - '0';
    if (number > (kMax - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

bool is_uuid(const Attribute& attribute) {
  return attribute.type == Attribute::Type::string &&
         !attribute.value.empty() &&
         attribute.value.size() <= std::size_t{kLongestUuid};
}

void not_understood(Row& row, std::string problem) {
  row.kind = Row::Kind::unknown;
  row.problem = std::move(problem);
}

// --- Writing ---------------------------------------------------------------

void write_number(Writer& writer, std::string_view name, std::int64_t value) {
  write_attribute(writer, name, Type::number, std::to_string(value));
}

void write_text(Writer& writer, std::string_view name, std::string_view value) {
  write_attribute(writer, name, Type::string, value);
}

std::int64_t clean_up_at(ServiceTime expires) {
  return std::chrono::duration_cast<std::chrono::seconds>(expires +
                                                          kCleanUpAfter)
      .count();
}

void write_key_members(Writer& writer, const Place& place) {
  write_text(writer, place.key_name, place.key);
  if (!place.sort_name.empty()) {
    write_text(writer, place.sort_name, place.sort_value);
  }
}

void write_key(Writer& writer, const Place& place) {
  write_string(writer, "Key");
  writer.StartObject();
  write_key_members(writer, place);
  writer.EndObject();
}

// The parts of an expression beside its text: what "#uuid" and ":uuid" stand
// for.  DynamoDB refuses what the text does not use.  Texts must outlive it.
class Terms {
 public:
  Terms() {
    names_.reserve(8);
    values_.reserve(16);
  }
  void name(std::string_view attribute) { name(attribute, attribute); }
  void name(std::string_view term, std::string_view attribute) {
    names_.push_back({term, attribute});
  }
  void number(std::string_view term, std::int64_t value) {
    values_.push_back({term, Type::number, {}, value, nullptr});
  }
  void text(std::string_view term, std::string_view value) {
    values_.push_back({term, Type::string, value, 0, nullptr});
  }
  void value_of(std::string_view term, const Attribute& value) {
    values_.push_back({term, value.type, {}, 0, &value});
  }
  // "own3", for as long as this lives.
  std::string_view numbered(const char* kind, std::size_t number) {
    made_.push_front(kind + std::to_string(number));
    return made_.front();
  }

  void write(Writer& writer) const {
    write_string(writer, "ExpressionAttributeNames");
    writer.StartObject();
    for (const Name& name : names_) {
      write_term(writer, '#', name.term);
      write_string(writer, name.attribute);
    }
    writer.EndObject();
    write_string(writer, "ExpressionAttributeValues");
    writer.StartObject();
    for (const Value& value : values_) write(writer, value);
    writer.EndObject();
  }

 private:
  struct Name {
    std::string_view term, attribute;
  };
  // A text, a number, or the user's.
  struct Value {
    std::string_view term;
    Type type;
    std::string_view text;
    std::int64_t number;
    const Attribute* attribute;
  };

  static void write_term(Writer& writer, char kind, std::string_view term) {
    std::array<char, 32> name{kind};
    term.copy(&name[1], name.size() - 1);
    write_string(writer, {name.data(), 1 + term.size()});
  }

  static void write(Writer& writer, const Value& value) {
    write_term(writer, ':', value.term);
    if (value.attribute != nullptr) {
      return dynamodb::write_value(writer, *value.attribute);
    }
    const bool number = value.type == Type::number;
    writer.StartObject();
    write_string(writer, number ? "N" : "S");
    if (number) {
      write_string(writer, std::to_string(value.number));
    } else {
      write_string(writer, value.text);
    }
    writer.EndObject();
  }

  std::vector<Name> names_;
  std::vector<Value> values_;
  std::forward_list<std::string> made_;
};

// ":own0, :own1"
std::string own_list(const Request& request, Terms& terms) {
  std::string list;
  for (std::size_t i = 0; i < request.own.size(); ++i) {
    const std::string_view term = terms.numbered("own", i);
    list.append(i == 0 ? ":" : ", :").append(term);
    terms.number(term, request.own[i].count());
  }
  return list;
}

// That whoever kept the row has counted in whole numbers cannot be asked.
constexpr std::string_view kCanCount =
    "(attribute_not_exists(#token) OR #token BETWEEN :zero AND :last_token)";

// A row of others' attributes alone, none of which has a name of ours.
constexpr std::string_view kBare =
    "(attribute_not_exists(#uuid) AND attribute_not_exists(#expires)"
    " AND attribute_not_exists(#lease) AND attribute_not_exists(#owner)"
    " AND attribute_not_exists(#ttl)";

// What read_row() would not understand is not over either, so the second clause
// asks for what it can of types and bounds.  A kept row that this very call has
// released is not to be taken by one of its own takes that comes late.
std::string take_condition(const RowUse& use, const Request& request,
                           Terms& terms) {
  std::string condition;
  condition.reserve(512);
  if (use.must_exist) condition += "(attribute_exists(#name) AND ";
  if (use.keep) {
    condition.append(kBare).append(" AND ").append(kCanCount);
    condition += use.must_exist ? "))" : ")";
    terms.number("last_token", kLastToken - 2);  // One is added.
  } else {
    condition += "attribute_not_exists(#name)";
  }
  condition +=
      " OR (#expires >= :zero AND #expires < :earliest"
      " AND attribute_type(#uuid, :string) AND size(#uuid) <= :uuid_size AND ";
  if (use.keep) {
    condition.append(kCanCount).append(" AND #uuid <> :uuid");
  } else {
    condition += "attribute_not_exists(#token)";
  }
  condition +=
      " AND (attribute_not_exists(#lease)"
      " OR #lease BETWEEN :shortest AND :longest))";
  if (request.seen) {
    condition += " OR (#uuid = :seen_uuid AND #expires = :seen_expires";
    condition += use.keep ? ")" : " AND attribute_not_exists(#token))";
    terms.text("seen_uuid", request.seen->uuid);
    terms.number("seen_expires", request.seen->expires.count());
  }
  if (!request.own.empty()) {
    condition += " OR (#uuid = :uuid AND #expires IN (" +
                 own_list(request, terms) + "))";
  }
  for (const char* name : {"uuid", "expires", "lease", "token"}) {
    terms.name(name);
  }
  terms.number("zero", 0);
  terms.number("earliest", request.earliest.count());
  terms.text("string", "S");
  terms.number("uuid_size", kLongestUuid);
  terms.number("shortest", kShortestLease.count());
  terms.number("longest", std::chrono::milliseconds(kLongestLease).count());
  return condition;
}

// ", #set0 = :set0, #set1 = :set1"
std::string assignments(const Item& attributes, Terms& terms) {
  std::string text;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::string_view term = terms.numbered("set", i);
    text.append(", #").append(term).append(" = :").append(term);
    terms.name(term, attributes[i].name);
    terms.value_of(term, attributes[i]);
  }
  return text;
}

// A take that comes late can bring a uuid back after others had the lock, but
// not its token: what the user changes is written by the holder alone.
std::string if_token(const Place& place, const Request& request, Terms& terms) {
  if (!place.use.keep || !request.changes) return "";
  terms.name("token");
  terms.number("token", request.token);
  return " AND #token = :token";
}

std::string changes_of(const Changes& changes, Terms& terms) {
  std::string text = assignments(changes.set, terms);
  for (std::size_t i = 0; i < changes.remove.size(); ++i) {
    const std::string_view term = terms.numbered("gone", i);
    text.append(i == 0 ? " REMOVE #" : ", #").append(term);
    terms.name(term, changes.remove[i]);
  }
  return text;
}

void write_put(Writer& writer, const Place& place, const Request& request) {
  write_string(writer, "Item");
  writer.StartObject();
  write_key_members(writer, place);
  write_text(writer, "uuid", request.uuid);
  write_number(writer, "expires", request.stamp.count());
  write_number(writer, "lease", request.lease.count());
  write_text(writer, "owner", place.owner);
  write_number(writer, kTtlAttribute, clean_up_at(request.stamp));
  write_members(writer, place.attributes);
  writer.EndObject();
  Terms terms;
  write_pair(writer, "ConditionExpression",
             take_condition(place.use, request, terms));
  terms.name("name", place.key_name);
  if (!request.own.empty()) terms.text("uuid", request.uuid);
  terms.write(writer);
}

std::string take_update(const Place& place, const Request& request,
                        Terms& terms) {
  const RowUse& use = place.use;
  std::string update =
      "SET #uuid = :uuid, #expires = :expires, #lease = :lease,"
      " #owner = :owner";
  terms.text("uuid", request.uuid);
  terms.number("expires", request.stamp.count());
  terms.number("lease", request.lease.count());
  terms.text("owner", place.owner);
  terms.name("owner");
  terms.name("ttl");
  if (!use.keep) {
    update += ", #ttl = :ttl";
    terms.number("ttl", clean_up_at(request.stamp));
  }
  update += assignments(place.attributes, terms);
  if (!use.keep) return update;
  update += " ADD #token :one REMOVE #ttl";
  terms.number("one", 1);
  const bool replaced =
      dynamodb::find(place.attributes, kDataAttribute) != nullptr;
  if (!use.keep_data && !replaced) {
    update += ", #data";
    terms.name(kDataAttribute);
  }
  return update;
}

void write_take(Writer& writer, const Place& place, const Request& request) {
  if (!place.use.takes_by_update()) return write_put(writer, place, request);
  write_key(writer, place);
  Terms terms;
  write_pair(writer, "UpdateExpression", take_update(place, request, terms));
  write_pair(writer, "ConditionExpression",
             take_condition(place.use, request, terms));
  if (!place.use.keep || place.use.must_exist) {
    terms.name("name", place.key_name);
  }
  terms.write(writer);
  write_pair(writer, "ReturnValues", "ALL_NEW");
}

void write_renewal(Writer& writer, const Place& place, const Request& request) {
  write_key(writer, place);
  Terms terms;
  std::string update = "SET #expires = :expires";
  terms.number("expires", request.stamp.count());
  if (!place.use.keep) {
    update += ", #ttl = :ttl";
    terms.name(kTtlAttribute);
    terms.number("ttl", clean_up_at(request.stamp));
  }
  if (request.changes) update += changes_of(*request.changes, terms);
  write_pair(writer, "UpdateExpression", update);
  write_pair(writer, "ConditionExpression",
             "#uuid = :uuid AND #expires IN (" + own_list(request, terms) +
                 ")" + if_token(place, request, terms));
  terms.name("uuid");
  terms.name("expires");
  terms.text("uuid", request.uuid);
  terms.write(writer);
  if (request.tell) write_pair(writer, "ReturnValues", "ALL_NEW");
}

// "#expires = :released", as the first of an update's assignments.
std::string marked_free(Terms& terms) {
  terms.name("expires");
  terms.number("released", 0);
  return "SET #expires = :released";
}

void write_release(Writer& writer, const Place& place, const Request& request) {
  write_key(writer, place);
  Terms terms;
  if (place.use.keep) {
    std::string update = marked_free(terms);
    if (request.changes) update += changes_of(*request.changes, terms);
    write_pair(writer, "UpdateExpression", update);
  }
  write_pair(writer, "ConditionExpression",
             "#uuid = :uuid" + if_token(place, request, terms));
  terms.name("uuid");
  terms.text("uuid", request.uuid);
  terms.write(writer);
}

// {"TableName":"locks",...}, the rest by `write`.
template <class Write>
std::string body_of(const Place& place, const Write& write) {
  rapidjson::StringBuffer buffer(nullptr, 2048);
  Writer writer(buffer);
  writer.StartObject();
  write_pair(writer, "TableName", place.table);
  write(writer);
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

void tell_refusals(Writer& writer) {
  write_pair(writer, "ReturnValuesOnConditionCheckFailure", "ALL_OLD");
}

constexpr std::string_view kOfRecord[] = {"uuid",  "expires",     "lease",
                                          "owner", kTtlAttribute, "token"};

// What is no attribute of the record.
Item without_record(Item item) {
  item.erase(std::remove_if(item.begin(), item.end(),
                            [](const Attribute& attribute) {
                              return attribute.name != kDataAttribute &&
                                     is_of_record(attribute.name);
                            }),
             item.end());
  return item;
}

// Of a record, all but its token.  Says in `problem` what it is not.
void read_record(const Item& item, const Attribute& uuid, Row& row) {
  if (!is_uuid(uuid)) {
    return not_understood(row, "uuid is not a string of 1 to 1,024 bytes");
  }
  const Attribute* expires = dynamodb::find(item, "expires");
  if (expires == nullptr) return not_understood(row, "expires is missing");
  const auto expires_ns = parse_number(*expires);
  if (!expires_ns) {
    return not_understood(row, "expires is no whole number of nanoseconds");
  }
  if (const Attribute* lease = dynamodb::find(item, "lease")) {
    const auto lease_ms = parse_number(*lease);
    const std::chrono::milliseconds longest = kLongestLease;
    if (!lease_ms || *lease_ms < kShortestLease.count() ||
        *lease_ms > longest.count()) {
      return not_understood(row,
                            "lease is no number of milliseconds up to a year");
    }
    row.lease = std::chrono::milliseconds(*lease_ms);
  }
  row.uuid = uuid.value;
  row.expires = ServiceTime(*expires_ns);
  const Attribute* owner = dynamodb::find(item, "owner");
  if (owner != nullptr && owner->type == Type::string) {
    row.owner = owner->value;
  }
  row.kind = Row::Kind::record;
}

}  // namespace

namespace {

// Of those that a row without a uuid has no business with.
bool is_ours(const Attribute& attribute) {
  return attribute.name != kDataAttribute && attribute.name != "token" &&
         is_of_record(attribute.name);
}

}  // namespace

bool is_of_record(std::string_view attribute) {
  return attribute == kDataAttribute ||
         std::find(std::begin(kOfRecord), std::end(kOfRecord), attribute) !=
             std::end(kOfRecord);
}

Row read_row(Item item) {
  Row row;
  if (item.empty()) return row;
  if (const Attribute* token = dynamodb::find(item, "token")) {
    row.kept = true;
    const auto number = parse_number(*token);
    row.token = number.value_or(0);
    if (!number || *number >= kLastToken) {
      not_understood(row, "token is no whole number, or none is left");
    }
  }
  const Attribute* uuid = dynamodb::find(item, "uuid");
  if (row.kind == Row::Kind::unknown) {
    // Whatever else it has.
  } else if (uuid == nullptr) {
    const bool bare = std::none_of(item.begin(), item.end(), is_ours);
    row.kind = bare ? Row::Kind::bare : Row::Kind::unknown;
    row.problem = "uuid is missing";
  } else {
    read_record(item, *uuid, row);
  }
  row.others = without_record(std::move(item));
  return row;
}

dynamodb::Action action_of(Verb verb, const RowUse& use) {
  using dynamodb::Action;
  switch (verb) {
    case Verb::take:
      return use.takes_by_update() ? Action::update_item : Action::put_item;
    case Verb::renew:
      return Action::update_item;
    case Verb::release:
      return use.keep ? Action::update_item : Action::delete_item;
    case Verb::look:
      break;
  }
  return Action::get_item;
}

std::string write_request(const Place& place, const Request& request) {
  return body_of(place, [&](Writer& writer) {
    switch (request.verb) {
      case Verb::take:
        write_take(writer, place, request);
        break;
      case Verb::renew:
        write_renewal(writer, place, request);
        break;
      case Verb::release:
        write_release(writer, place, request);
        break;
      case Verb::look:
        write_key(writer, place);
        write_string(writer, "ConsistentRead");
        writer.Bool(request.consistent);
        break;
    }
    if (request.verb != Verb::look) tell_refusals(writer);
  });
}

std::string write_check(const Place& place, const std::string& uuid,
                        std::int64_t token) {
  return body_of(place, [&](Writer& writer) {
    write_key(writer, place);
    Terms terms;
    std::string condition = "#uuid = :uuid AND #expires > :zero";
    terms.name("uuid");
    terms.name("expires");
    terms.text("uuid", uuid);
    terms.number("zero", 0);
    if (place.use.keep) {
      condition += " AND #token = :token";
      terms.name("token");
      terms.number("token", token);
    }
    write_pair(writer, "ConditionExpression", condition);
    terms.write(writer);
  });
}

std::string write_force(const Place& place, const Request::Version& version) {
  return body_of(place, [&](Writer& writer) {
    write_key(writer, place);
    Terms terms;
    if (place.use.keep) {
      write_pair(writer, "UpdateExpression", marked_free(terms));
    } else {
      terms.name("expires");
    }
    write_pair(writer, "ConditionExpression",
               "#uuid = :uuid AND #expires = :expires");
    terms.name("uuid");
    terms.text("uuid", version.uuid);
    terms.number("expires", version.expires.count());
    terms.write(writer);
    tell_refusals(writer);
  });
}

bool is_utf8(std::string_view text) {
  struct Nowhere {
    void Put(char) {}
  } nowhere;
  rapidjson::MemoryStream stream(text.data(), text.size());
  while (stream.Tell() < text.size()) {
    if (!rapidjson::UTF8<>::Validate(stream, nowhere)) return false;
  }
  return stream.Tell() == text.size();
}

std::string fresh_uuid() {
  std::array<unsigned char, 16> bits;
  // Fails only where the kernel has no randomness to give: no lock can be taken
  // safely there.
  if (getentropy(bits.data(), bits.size()) != 0) std::abort();
  constexpr char kDigits[] = "0123456789abcdef";
  std::string uuid;
  uuid.reserve(2 * bits.size());
  for (const unsigned char byte : bits) {
    uuid += kDigits[byte >> 4];
    uuid += kDigits[byte & 15];
  }
  return uuid;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
