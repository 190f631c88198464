// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads and writes DynamoDB's items as JSON.
//
//   JsonWriter json(body);
//   json.begin_object();
//   json.name("TableName").text(table);
//   json.name("Key");
//   write_item(json, key);
//   json.end_object();
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_ITEM_HPP
#define DDBMUTEX_ITEM_HPP

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../sigv4/json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Document;
using sigv4::Elements;
using sigv4::JsonWriter;
using sigv4::Value;

// --- An item: names and typed values ----------------------------------------

struct Attribute {
  enum class Type {
    string,      // "S"
    number,      // "N": `value` holds the decimal text.
    binary,      // "B": `value` holds the base64 text.
    boolean,     // "BOOL": `value` is "true" or "false".
    null,        // "NULL"
    string_set,  // "SS", and so on: `members` without names.
    number_set,
    binary_set,
    list,    // "L": the same.
    map,     // "M"
    other,   // None of those.
    unread,  // Of any type: read_item() has left out its value.
  };
  std::string name;
  Type type = Type::other;
  std::string value{};
  std::vector<Attribute> members{};
};

using Item = std::vector<Attribute>;

// The attribute of that name; null if there is none.
const Attribute* find(const Item& item, std::string_view name);

// --- Writing ---------------------------------------------------------------

// The value without the name: {"S":"text"}, {"BOOL":true} and so on.  Writes {}
// if the type is `other` or `unread`, because then the value is not known.
// DynamoDB refuses that.
void write_value(JsonWriter& json, const Attribute& attribute);
// {"S":"text"} and {"N":"5"}.
void write_text(JsonWriter& json, std::string_view text);
void write_number(JsonWriter& json, std::int64_t number);
// The members of an object: "name":{"S":"text"},...
void write_members(JsonWriter& json, const Item& item);
// {"name":{"S":"text"},...}
void write_item(JsonWriter& json, const Item& item);

// --- Reading ---------------------------------------------------------------

// An attribute's name, and how expressions call it: "#placeholder".
struct AttributeName {
  char placeholder[9];
  char attribute[20];
};
using AttributeNames = std::initializer_list<AttributeName>;

// Which attributes of an item are read.  The JSON of an item may have
// megabytes, and each Attribute takes a hundred bytes, so only what is needed
// is read.
struct Wanted {
  // The attributes of a lock's record.  They are always read.  Of a set, a list
  // or a map only the type is read, because no record has any.
  AttributeNames record{};
  // One more attribute that a record may have.  Its type is always read, its
  // value only with `others`.
  std::string_view data{};
  // All other attributes, up to kMostOthers values in all.
  bool others = true;

  bool is_of_record(std::string_view name) const;
};

// Counts attributes and their members at every level.
constexpr std::size_t kMostOthers = 8000;

// Reads {"name":{"S":"text"},...}.  Returns false if a wanted attribute is
// malformed.  Leaves out attributes that exceed kMostOthers, or are nested
// deeper than DynamoDB allows (32 levels).  The name of the first of them is
// added at the end with type `unread`.  If none of the item's attributes is
// wanted, its first name is added in the same way.  So only an empty item is
// read as empty.  REQUIRES: `item` is empty.
bool read_item(Value value, Item& item, const Wanted& wanted = {});

// Parses a whole number of at most 63 bits.  Nothing if the text has any
// character that is not a digit.
std::optional<std::int64_t> parse_digits(std::string_view text);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ITEM_HPP
