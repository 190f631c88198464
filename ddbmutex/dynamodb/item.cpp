// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Items as JSON, in both directions.  ItemReader decides which attributes of an
// item are read; ValueReader reads one of them.
#include "item.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using Type = Attribute::Type;

namespace {

// DynamoDB nests lists and maps no deeper, according to its documentation.
// This also limits the recursion here.
constexpr int kDeepest = 32;

struct TypeRow {
  Type type;
  char tag[5];
  Type member = Type::other;  // What the members of a set are.
};

constexpr TypeRow kTypes[] = {
    {Type::string, "S"},
    {Type::number, "N"},
    {Type::binary, "B"},
    {Type::boolean, "BOOL"},
    {Type::null, "NULL"},
    {Type::string_set, "SS", Type::string},
    {Type::number_set, "NS", Type::number},
    {Type::binary_set, "BS", Type::binary},
    {Type::list, "L"},
    {Type::map, "M"},
};
constexpr TypeRow kOtherType{Type::other, ""};

const TypeRow& row_of(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  return kOtherType;
}

Type type_of(std::string_view tag) {
  for (const TypeRow& row : kTypes) {
    if (row.tag == tag) return row.type;
  }
  return Type::other;
}

bool is_text(Type type) {
  return type == Type::string || type == Type::number || type == Type::binary;
}

// --- Reading ---------------------------------------------------------------

enum class Outcome {
  done,
  malformed,  // Not of DynamoDB's form.
  too_much,   // There are too many values or levels.
};

// Reads a value into an attribute.  `levels`: how many levels of lists and maps
// the value may have.
class ValueReader {
 public:
  // `room`: how many values may be read, at all levels together.
  explicit ValueReader(std::size_t room) : room_(room) {}
  std::size_t room() const { return room_; }  // What is left of it.

  // {"S":"text"}
  Outcome value(Value value, int levels, Attribute& attribute);
  // Reads only the type of sets, lists and maps.  `with_text`: reads also the
  // text of other values.
  Outcome scalar(Value value, bool with_text, Attribute& attribute);

 private:
  // Reads the inner value ("text" above).  REQUIRES: attribute.type was read.
  Outcome typed(Value value, int levels, Attribute& attribute);
  // The members of a set, a list or a map.
  Outcome members(Value value, int levels, Type type, Item& members);

  std::size_t room_;
};

Outcome ValueReader::members(Value value, int levels, Type type,
                             Item& members) {
  const std::size_t count = value.size();
  if (count > room_) return Outcome::too_much;
  room_ -= count;
  members = Item(count);
  auto member = members.begin();
  for (Elements each(value); each.next(); ++member) {
    member->name = each.name;
    member->type = type;
    const Outcome outcome = type == Type::other
                                ? this->value(each.value, levels, *member)
                                : typed(each.value, levels, *member);
    if (outcome != Outcome::done) return outcome;
  }
  return Outcome::done;
}

Outcome done_if(bool well) { return well ? Outcome::done : Outcome::malformed; }

Outcome ValueReader::typed(Value value, int levels, Attribute& attribute) {
  const Type type = attribute.type;
  if (type == Type::other) return Outcome::done;
  if (is_text(type)) {
    const auto text = value.text();
    attribute.value = text.value_or("");
    return done_if(text.has_value());
  }
  if (type == Type::null) return done_if(value.is_true());
  if (type == Type::boolean) {
    attribute.value = value.is_true() ? "true" : "false";
    return done_if(value.is_true() || value.is_false());
  }
  const bool nests = type == Type::list || type == Type::map;
  if (nests && levels == 0) return Outcome::too_much;
  const bool fits = type == Type::map ? value.is_object() : value.is_list();
  if (!fits) return Outcome::malformed;
  return members(value, nests ? levels - 1 : levels, row_of(type).member,
                 attribute.members);
}

Outcome ValueReader::value(Value value, int levels, Attribute& attribute) {
  Elements only(value);
  if (!value.is_object() || !only.next()) return Outcome::malformed;
  attribute.type = dynamodb::type_of(only.name);
  const Outcome outcome = typed(only.value, levels, attribute);
  return outcome == Outcome::done ? done_if(!only.next()) : outcome;
}

Outcome ValueReader::scalar(Value value, bool with_text, Attribute& attribute) {
  Elements only(value);
  if (!value.is_object() || !only.next()) return Outcome::malformed;
  attribute.type = dynamodb::type_of(only.name);
  const Type type = attribute.type;
  const bool has_text =
      is_text(type) || type == Type::boolean || type == Type::null;
  const Outcome outcome =
      has_text && with_text ? typed(only.value, 0, attribute) : Outcome::done;
  return outcome == Outcome::done ? done_if(!only.next()) : outcome;
}

// A record has fewer attributes.  The limit is for malicious answers, which may
// repeat one of them.
constexpr std::size_t kMostOfRecord = 16;

// Reads the wanted attributes into an item.
class ItemReader {
 public:
  ItemReader(Item& item, const Wanted& wanted) : item_(item), wanted_(wanted) {}

  // Returns false if the value is malformed.
  bool add(std::string_view name, Value value);
  // Adds an attribute of type `unread`, if one was left out.
  void end();

 private:
  bool is_data(std::string_view name) const {
    return !wanted_.data.empty() && name == wanted_.data;
  }
  Outcome read(std::string_view name, Value value, Attribute& attribute);
  void leave_out(std::string_view name) {
    if (left_out_.data() == nullptr) left_out_ = name;
  }

  Item& item_;
  const Wanted wanted_;
  std::size_t room_ = kMostOthers;
  std::size_t of_record_ = 0;
  // Names; null as long as there is none.
  std::string_view left_out_{};  // The first that did not fit.
  std::string_view unwanted_{};  // The first that is not wanted.
};

Outcome ItemReader::read(std::string_view name, Value value,
                         Attribute& attribute) {
  if (wanted_.is_of_record(name)) {
    return ValueReader(room_).scalar(value, true, attribute);
  }
  if (is_data(name)) {
    return ValueReader(room_).scalar(value, wanted_.others, attribute);
  }
  if (room_ == 0) return Outcome::too_much;
  ValueReader reader(room_ - 1);
  const Outcome outcome = reader.value(value, kDeepest, attribute);
  if (outcome == Outcome::done) room_ = reader.room();
  return outcome;
}

bool ItemReader::add(std::string_view name, Value value) {
  const bool always = wanted_.is_of_record(name) || is_data(name);
  if (always && ++of_record_ > kMostOfRecord) return true;
  if (!always && !wanted_.others) {
    if (unwanted_.data() == nullptr) unwanted_ = name;
    return true;
  }
  Attribute& attribute = item_.emplace_back();
  const Outcome outcome = read(name, value, attribute);
  attribute.name = name;
  if (outcome == Outcome::too_much) {
    leave_out(name);
    item_.pop_back();
  }
  return outcome != Outcome::malformed;
}

void ItemReader::end() {
  if (left_out_.data() == nullptr && item_.empty()) left_out_ = unwanted_;
  if (left_out_.data() == nullptr) return;
  Attribute& attribute = item_.emplace_back();
  attribute.name = left_out_;
  attribute.type = Type::unread;
}

void write_list(JsonWriter& json, const Attribute& list) {
  json.begin_list();
  for (const Attribute& member : list.members) {
    if (list.type == Type::list) {
      write_value(json, member);
    } else {
      json.text(member.value);
    }
  }
  json.end_list();
}

}  // namespace

void write_value(JsonWriter& json, const Attribute& attribute) {
  const Type type = attribute.type;
  const std::string_view tag = row_of(type).tag;
  json.begin_object();
  if (!tag.empty()) json.name(tag);
  if (is_text(type)) {
    json.text(attribute.value);
  } else if (type == Type::boolean) {
    json.boolean(attribute.value == "true");
  } else if (type == Type::null) {
    json.boolean(true);
  } else if (type == Type::map) {
    write_item(json, attribute.members);
  } else if (!tag.empty()) {
    write_list(json, attribute);
  }
  json.end_object();
}

void write_text(JsonWriter& json, std::string_view text) {
  json.begin_object();
  json.name("S").text(text);
  json.end_object();
}

void write_number(JsonWriter& json, std::int64_t number) {
  json.json({R"({"N":")", sigv4::Digits(number), R"("})"});
}

void write_members(JsonWriter& json, const Item& item) {
  for (const Attribute& attribute : item) {
    json.name(attribute.name);
    write_value(json, attribute);
  }
}

void write_item(JsonWriter& json, const Item& item) {
  json.begin_object();
  write_members(json, item);
  json.end_object();
}

const Attribute* find(const Item& item, std::string_view name) {
  for (const Attribute& attribute : item) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

bool Wanted::is_of_record(std::string_view name) const {
  for (const AttributeName& one : record) {
    if (name == one.attribute) return true;
  }
  return false;
}

bool read_item(Value value, Item& item, const Wanted& wanted) {
  if (!value.is_object()) return false;
  const std::size_t most = kMostOfRecord + (wanted.others ? kMostOthers : 0);
  item.reserve(std::min(value.size() + 1, most + 1));
  ItemReader reader(item, wanted);
  for (Elements each(value); each.next();) {
    if (!reader.add(each.name, each.value)) return false;
  }
  reader.end();
  return true;
}

std::optional<std::int64_t> parse_digits(std::string_view text) {
  if (text.empty()) return std::nullopt;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::int64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const int digit = c - '0';
    if (number > (kMax - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
