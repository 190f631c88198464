#include "json.hpp"

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using rapidjson::Value;
using Type = Attribute::Type;

namespace {

// Lists and maps within each other, as DynamoDB's documentation bounds them.
// So is the recursion here.
constexpr int kDeepest = 32;

// In the order of the enumeration.
constexpr std::string_view kTags[] = {"S",  "N",  "B",  "BOOL", "NULL",
                                      "SS", "NS", "BS", "L",    "M"};
static_assert(std::size(kTags) == static_cast<std::size_t>(Type::other));

bool is_text(Type type) {
  return type == Type::string || type == Type::number || type == Type::binary;
}

// What the members of a set are; `other` if it is no set.
Type member_of(Type set) {
  switch (set) {
    case Type::string_set:
      return Type::string;
    case Type::number_set:
      return Type::number;
    case Type::binary_set:
      return Type::binary;
    default:
      return Type::other;
  }
}

// --- Writing ---------------------------------------------------------------

// Of a type without members, in its braces.
void write_plain(Writer& writer, Type type, std::string_view value) {
  writer.StartObject();
  if (type != Type::other) {
    write_string(writer, kTags[static_cast<std::size_t>(type)]);
    if (is_text(type)) {
      write_string(writer, value);
    } else {
      writer.Bool(type == Type::null || value == "true");
    }
  }
  writer.EndObject();
}

// What stands behind the tag of a type that has members.
void write_inside(Writer& writer, const Attribute& attribute) {
  if (attribute.type == Type::map) {
    writer.StartObject();
    write_members(writer, attribute.members);
    writer.EndObject();
    return;
  }
  writer.StartArray();
  for (const Attribute& member : attribute.members) {
    if (attribute.type == Type::list) {
      write_value(writer, member);
    } else {
      write_string(writer, member.value);
    }
  }
  writer.EndArray();
}

// --- Reading ---------------------------------------------------------------

// False if the value is none of that type.  `levels` is how many more there
// may be of lists and maps.
bool read_value(const Value& value, int levels, Attribute& attribute);

bool read_set(const Value& value, Attribute& set) {
  if (!value.IsArray()) return false;
  for (const Value& text : value.GetArray()) {
    if (!text.IsString()) return false;
    Attribute member;
    member.type = member_of(set.type);
    member.value = text_of(text);
    set.members.push_back(std::move(member));
  }
  return true;
}

bool read_list(const Value& value, int levels, Attribute& list) {
  if (!value.IsArray() || levels == 0) return false;
  for (const Value& element : value.GetArray()) {
    Attribute member;
    if (!read_value(element, levels - 1, member)) return false;
    list.members.push_back(std::move(member));
  }
  return true;
}

bool read_map(const Value& value, int levels, Item& members) {
  if (!value.IsObject()) return false;
  for (const auto& element : value.GetObject()) {
    Attribute member;
    member.name = text_of(element.name);
    if (!read_value(element.value, levels, member)) return false;
    members.push_back(std::move(member));
  }
  return true;
}

bool read_typed(const Value& value, int levels, Attribute& attribute) {
  switch (attribute.type) {
    case Type::string:
    case Type::number:
    case Type::binary:
      if (!value.IsString()) return false;
      attribute.value = text_of(value);
      return true;
    case Type::boolean:
      if (!value.IsBool()) return false;
      attribute.value = value.GetBool() ? "true" : "false";
      return true;
    case Type::null:
      return value.IsTrue();
    case Type::list:
      return read_list(value, levels, attribute);
    case Type::map:
      return levels > 0 && read_map(value, levels - 1, attribute.members);
    case Type::other:
      return true;
    default:
      return read_set(value, attribute);
  }
}

bool read_value(const Value& value, int levels, Attribute& attribute) {
  if (!value.IsObject() || value.MemberCount() != 1) return false;
  const auto typed = value.MemberBegin();
  attribute.type = type_of(text_of(typed->name));
  return read_typed(typed->value, levels, attribute);
}

}  // namespace

void write_string(Writer& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void write_pair(Writer& writer, std::string_view name, std::string_view value) {
  write_string(writer, name);
  write_string(writer, value);
}

void write_attribute(Writer& writer, std::string_view name, Type type,
                     std::string_view value) {
  write_string(writer, name);
  write_plain(writer, type, value);
}

void write_value(Writer& writer, const Attribute& attribute) {
  if (attribute.type != Type::list && attribute.type != Type::map &&
      member_of(attribute.type) == Type::other) {
    return write_plain(writer, attribute.type, attribute.value);
  }
  writer.StartObject();
  write_string(writer, kTags[static_cast<std::size_t>(attribute.type)]);
  write_inside(writer, attribute);
  writer.EndObject();
}

void write_members(Writer& writer, const Item& item) {
  for (const Attribute& attribute : item) {
    write_string(writer, attribute.name);
    write_value(writer, attribute);
  }
}

Type type_of(std::string_view tag) {
  std::size_t type = 0;
  while (type < std::size(kTags) && kTags[type] != tag) ++type;
  return static_cast<Type>(type);
}

std::optional<Item> read_item(const Value& value) {
  Item item;
  if (!read_map(value, kDeepest, item)) return std::nullopt;
  return item;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
