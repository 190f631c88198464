#include "json.hpp"

#include <string.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

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

bool is_text(Type type) {
  return type == Type::string || type == Type::number || type == Type::binary;
}

// What all members of a set are; `other` if it is no set.
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
  members.reserve(value.size());
  for (Elements each(value); each.next();) {
    Attribute& member = members.emplace_back();
    member.name = each.name;
    member.type = type;
    const auto read = type == Type::other ? read_value : read_typed;
    if (!read(each.value, levels, member)) return false;
  }
  return true;
}

bool read_typed(Value value, int levels, Attribute& attribute) {
  switch (attribute.type) {
    case Type::string:
    case Type::number:
    case Type::binary:
      if (!value.text()) return false;
      attribute.value = *value.text();
      return true;
    case Type::boolean:
      if (!value.truth()) return false;
      attribute.value = *value.truth() ? "true" : "false";
      return true;
    case Type::null:
      return value.truth() == true;
    case Type::list:
    case Type::map:
      if (--levels < 0) return false;
      break;
    case Type::other:
      return true;
    default:
      break;
  }
  if (!kReadsMembers) return true;
  const bool fits =
      attribute.type == Type::map ? value.is_object() : value.is_list();
  return fits && read_members(value, levels, member_of(attribute.type),
                              attribute.members);
}

bool read_value(Value value, int levels, Attribute& attribute) {
  Elements only(value);
  if (!value.is_object() || !only.next()) return false;
  attribute.type = type_of(only.name);
  return read_typed(only.value, levels, attribute) && !only.next();
}

// How many bytes there are of the character of UTF-8 that the text begins with;
// 0 if it is none.  The second byte's bounds say what is overlong, a surrogate
// or beyond U+10FFFF (the Unicode Standard, table 3-7).
std::size_t character_at(std::string_view text) {
  const auto byte = [&text](std::size_t at) -> unsigned {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return size;
}

// What of the text is UTF-8.
std::string_view good_part(std::string_view text) {
  std::size_t good = 0;
  while (good < text.size()) {
    const std::size_t size = character_at(text.substr(good));
    if (size == 0) break;
    good += size;
  }
  return text.substr(0, good);
}

// --- Writing ---------------------------------------------------------------

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}

// How much there is in front of what is to be escaped; eight bytes are looked
// at at once.
std::size_t plain_size(std::string_view text) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  // Of some byte there remains its highest bit, which it had not.
  const auto below = [](std::uint64_t bytes, std::uint64_t bound) {
    return (bytes - bound * kEach) & ~bytes & 0x80 * kEach;
  };
  constexpr std::size_t kEight = sizeof kEach;
  const auto is_plain_at = [&](std::size_t at) {
    std::uint64_t eight;
    memcpy(&eight, text.data() + at, kEight);
    return (below(eight, 0x20) | below(eight ^ '"' * kEach, 1) |
            below(eight ^ '\\' * kEach, 1)) == 0;
  };
  std::size_t size = 0;
  while (text.size() - size >= kEight && is_plain_at(size)) size += kEight;
  // What is left may be looked at with some of what was before it.
  const bool few_left = size > 0 && text.size() - size < kEight;
  if (few_left && is_plain_at(text.size() - kEight)) return text.size();
  while (size < text.size() && is_plain(text[size])) ++size;
  return size;
}

}  // namespace

void append_string(Text& json, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::size_t plain = plain_size(text);
  if (plain == text.size()) return json.quote(text);
  json += '"';
  for (;; plain = plain_size(text)) {
    json += text.substr(0, plain);
    if (plain == text.size()) break;
    const char c = text[plain];
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else {
      json += c < 0x10 ? "\\u000" : "\\u001";
      json += kDigits[c & 0xf];
    }
    text.remove_prefix(plain + 1);
  }
  json += '"';
}

void append_form(Text& json, std::string_view form,
                 std::initializer_list<std::string_view> values) {
  const std::string_view* value = values.begin();
  for (;;) {
    std::size_t slot = 0;
    while (slot < form.size() && form[slot] != '$' && form[slot] != '%') ++slot;
    json += form.substr(0, slot);
    if (slot == form.size()) return;
    if (form[slot] == '$') {
      append_string(json, *value++);
    } else {
      json += *value++;
    }
    form.remove_prefix(slot + 1);
  }
}

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
  return find(item, std::string_view(name));
}

std::optional<Item> read_item(Value value) {
  Item item;
  if (!value.is_object()) return std::nullopt;
  if (!read_members(value, kDeepest, Type::other, item)) return std::nullopt;
  return item;
}

// The document has decoded it behind its quote.
std::optional<std::string_view> Value::text() const {
  if (first() != '"') return std::nullopt;
  return node_->raw().substr(1);
}

std::optional<bool> Value::truth() const {
  if (first() != 't' && first() != 'f') return std::nullopt;
  return first() == 't';
}

std::size_t Value::size() const {
  std::size_t count = 0;
  for (Elements each(*this); each.next();) ++count;
  return count;
}

Value Value::operator[](const char* name) const {
  for (Elements each(*this); is_object() && each.next();) {
    if (each.name == name) return each.value;
  }
  return {};
}

std::string_view Value::text(const char* name) const {
  return (*this)[name].text().value_or("");
}

Elements::Elements(Value of) : named_(of.is_object()) {
  if (!named_ && !of.is_list()) return;
  at_ = of.node_ + 1;
  end_ = of.node_->after();
}

bool Elements::next() {
  if (at_ == end_) return false;
  if (named_) name = at_++->raw().substr(1);
  value = Value(at_);
  at_ = at_->after();
  return true;
}

Document::Document(std::string text) : text_(std::move(text)) {
  const std::string_view good = good_part(text_);
  if (!sigv4::read_json(good, nodes_, &bad_at_) || good.size() < text_.size()) {
    nodes_.clear();
  }
  for (sigv4::JsonNode& node : nodes_) {
    if (node.first() != '"') continue;
    char* const begin =
        &text_[static_cast<std::size_t>(node.text - good.data())];
    const char* const end = sigv4::decode_json(node.raw(), begin + 1);
    node.size = static_cast<std::uint32_t>(end - begin);
  }
}

Value Document::root() const {
  return is_json() ? Value(nodes_.data()) : Value();
}

bool is_utf8(std::string_view text) {
  return good_part(text).size() == text.size();
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
