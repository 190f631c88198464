#include "item.hpp"

#include <cstdint>
#include <iterator>
#include <limits>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Text;
using Type = Attribute::Type;

namespace {

// Lists and maps within each other, as DynamoDB's documentation bounds them.
// So is the recursion here.
constexpr int kDeepest = 32;

// In the order of the enumeration.
constexpr char kTags[][5] = {"S",  "N",  "B",  "BOOL", "NULL",
                             "SS", "NS", "BS", "L",    "M"};
static_assert(std::size(kTags) == static_cast<std::size_t>(Type::other));

// The enumeration begins with these, and has their sets in the same order.
bool is_text(Type type) { return type <= Type::binary; }

// What all members of a set are; `other` if it is no set.
Type member_of(Type set) {
  if (set < Type::string_set || set > Type::binary_set) return Type::other;
  return static_cast<Type>(static_cast<int>(set) -
                           static_cast<int>(Type::string_set));
}

// `other` if it is none of those known.
Type type_of(std::string_view tag) {
  std::size_t type = 0;
  while (type < std::size(kTags) && kTags[type] != tag) ++type;
  return static_cast<Type>(type);
}

// --- Reading ---------------------------------------------------------------

// False if the value is none of that type.  `levels` is how many more there
// may be of lists and maps.
bool read_value(Value value, int levels, Attribute& attribute);
// The same where the attribute has its type already.
bool read_typed(Value value, int levels, Attribute& attribute);

// All of a set, a list, a map or an item.
bool read_members(Value value, int levels, Type type, Item& members) {
  members = Item(value.size());
  auto member = members.begin();
  for (Elements each(value); each.next(); ++member) {
    member->name = each.name;
    member->type = type;
    const auto read = type == Type::other ? read_value : read_typed;
    if (!read(each.value, levels, *member)) return false;
  }
  return true;
}

bool read_typed(Value value, int levels, Attribute& attribute) {
  const Type type = attribute.type;
  if (type == Type::other) return true;
  if (is_text(type)) {
    const auto text = value.text();
    attribute.value = text.value_or("");
    return text.has_value();
  }
  if (type == Type::null) return value.is_true();
  if (type == Type::boolean) {
    attribute.value = value.is_true() ? "true" : "false";
    return value.is_true() || value.is_false();
  }
  if (type >= Type::list && --levels < 0) return false;
  if (!kReadsMembers) return true;
  const bool fits = type == Type::map ? value.is_object() : value.is_list();
  return fits &&
         read_members(value, levels, member_of(type), attribute.members);
}

bool read_value(Value value, int levels, Attribute& attribute) {
  Elements only(value);
  if (!value.is_object() || !only.next()) return false;
  attribute.type = dynamodb::type_of(only.name);
  return read_typed(only.value, levels, attribute) && !only.next();
}

}  // namespace

void append_value(Text& json, const Attribute& attribute) {
  const Type type = attribute.type;
  if (type == Type::other) {
    json += "{}";
    return;
  }
  append_form(json, "{$:", {kTags[static_cast<std::size_t>(type)]});
  if (is_text(type)) {
    append_string(json, attribute.value);
  } else if (type == Type::boolean || type == Type::null) {
    json += type == Type::null || attribute.value == "true" ? "true" : "false";
  } else if (type == Type::map) {
    json += '{';
    append_members(json, attribute.members);
    json += '}';
  } else {
    json += '[';
    for (const Attribute& member : attribute.members) {
      if (&member != &attribute.members.front()) json += ',';
      if (type == Type::list) {
        append_value(json, member);
      } else {
        append_string(json, member.value);
      }
    }
    json += ']';
  }
  json += '}';
}

void append_members(Text& json, const Item& item) {
  for (const Attribute& attribute : item) {
    append_form(json,
                &attribute == &item.front() ? "$:" : ",$:", {attribute.name});
    append_value(json, attribute);
  }
}

const Attribute* find(const Item& item, std::string_view name) {
  for (const Attribute& attribute : item) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

const Attribute* find(const Item& item, const char* name) {
  return dynamodb::find(item, std::string_view(name));
}

bool read_item(Value value, Item& item) {
  return value.is_object() && read_members(value, kDeepest, Type::other, item);
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
