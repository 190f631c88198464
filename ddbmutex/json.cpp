#include "json.hpp"

#include <rapidjson/document.h>

#include <iterator>
#include <utility>

#include "../sigv4/service.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

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

bool read_set(Value value, Attribute& set) {
  if (!value.is_list()) return false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto text = value[i].text();
    if (!text) return false;
    set.members.push_back({{}, member_of(set.type), std::string(*text)});
  }
  return true;
}

bool read_list(Value value, int levels, Attribute& list) {
  if (!value.is_list() || levels == 0) return false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    list.members.emplace_back();
    if (!read_value(value[i], levels - 1, list.members.back())) return false;
  }
  return true;
}

bool read_map(Value value, int levels, Item& members) {
  if (!value.is_object()) return false;
  members.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    members.emplace_back();
    members.back().name = value.name(i);
    if (!read_value(value[i], levels, members.back())) return false;
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
      return read_list(value, levels, attribute);
    case Type::map:
      return levels > 0 && read_map(value, levels - 1, attribute.members);
    case Type::other:
      return true;
    default:
      return read_set(value, attribute);
  }
}

bool read_value(Value value, int levels, Attribute& attribute) {
  if (!value.is_object() || value.size() != 1) return false;
  attribute.type = type_of(value.name(0));
  return read_typed(value[0], levels, attribute);
}

// RapidJSON's own.
const rapidjson::Value& raw(const void* value) {
  return *static_cast<const rapidjson::Value*>(value);
}

std::string_view text_of(const rapidjson::Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

// The default parser recurses, and 400 KB of '[' overflow its stack.  Numbers
// are left as they are written: DynamoDB says nothing by them that is wanted,
// and to read them takes more code than all the rest.
constexpr unsigned kParseFlags = rapidjson::kParseInsituFlag |
                                 rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseNumbersAsStringsFlag |
                                 rapidjson::kParseValidateEncodingFlag;

// RapidJSON looks up to two bytes behind the NUL at the end when a character of
// UTF-8 is cut short there.
constexpr std::size_t kBehind = 3;

}  // namespace

void append_string(std::string& json, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  json += '"';
  for (;;) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    json.append(text.substr(0, plain));
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

void append_form(std::string& json, std::string_view form,
                 std::initializer_list<std::string_view> values) {
  const std::string_view* value = values.begin();
  for (;;) {
    std::size_t slot = 0;
    while (slot < form.size() && form[slot] != '$' && form[slot] != '%') ++slot;
    json.append(form.substr(0, slot));
    if (slot == form.size()) return;
    if (form[slot] == '$') {
      append_string(json, *value++);
    } else {
      json.append(*value++);
    }
    form.remove_prefix(slot + 1);
  }
}

void append_value(std::string& json, const Attribute& attribute) {
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

void append_members(std::string& json, const Item& item) {
  for (const Attribute& attribute : item) {
    append_form(json,
                &attribute == &item.front() ? "$:" : ",$:", {attribute.name});
    append_value(json, attribute);
  }
}

std::optional<Item> read_item(Value value) {
  Item item;
  if (!read_map(value, kDeepest, item)) return std::nullopt;
  return item;
}

bool Value::is_list() const { return value_ && raw(value_).IsArray(); }

bool Value::is_object() const { return value_ && raw(value_).IsObject(); }

std::optional<std::string_view> Value::text() const {
  if (!value_ || !raw(value_).IsString()) return std::nullopt;
  // A string stands where it stood, behind its quote; a number has none.
  const std::string_view text = text_of(raw(value_));
  if (text.data()[-1] != '"') return std::nullopt;
  return text;
}

std::optional<bool> Value::truth() const {
  if (!value_ || !raw(value_).IsBool()) return std::nullopt;
  return raw(value_).GetBool();
}

std::size_t Value::size() const {
  if (is_list()) return raw(value_).Size();
  return is_object() ? raw(value_).MemberCount() : 0;
}

Value Value::operator[](std::size_t place) const {
  const auto& value =
      is_list() ? raw(value_).Begin()[place]
                : (raw(value_).MemberBegin() + std::ptrdiff_t(place))->value;
  Value found;
  if (!value.IsNull()) found.value_ = &value;
  return found;
}

std::string_view Value::name(std::size_t place) const {
  return text_of((raw(value_).MemberBegin() + std::ptrdiff_t(place))->name);
}

// size() if there is none.
std::size_t Value::find(std::string_view name) const {
  if (!is_object()) return size();
  std::size_t place = 0;
  while (place < size() && this->name(place) != name) ++place;
  return place;
}

Value Value::operator[](std::string_view name) const {
  return has(name) ? (*this)[find(name)] : Value();
}

bool Value::has(std::string_view name) const { return find(name) < size(); }

std::string_view Value::text(std::string_view name) const {
  return (*this)[name].text().value_or("");
}

struct Document::Parsed {
  explicit Parsed(std::string json) : text(std::move(json)) {}

  std::string text;
  char room[4096];
  rapidjson::MemoryPoolAllocator<> allocator{room, sizeof room};
  rapidjson::Document document{&allocator};
};

// RapidJSON takes a NUL for the end and does not look behind it.
Document::Document(std::string text)
    : parsed_(std::make_unique<Parsed>(std::move(text))) {
  std::string& json = parsed_->text;
  const bool good =
      json.find('\0') == json.npos && !sigv4::has_lone_surrogate(json);
  if (!good) json.clear();
  json.append(kBehind, '\0');
  parsed_->document.ParseInsitu<kParseFlags>(json.data());
}

Document::~Document() = default;

Value Document::root() const {
  const rapidjson::Document& document = parsed_->document;
  Value root;
  if (is_json() && !document.IsNull()) root.value_ = &document;
  return root;
}

bool Document::is_json() const { return !parsed_->document.HasParseError(); }

std::size_t Document::bad_at() const {
  return parsed_->document.GetErrorOffset();
}

// The second byte's bounds say what is overlong, a surrogate or beyond U+10FFFF
// (the Unicode Standard, table 3-7).
bool is_utf8(std::string_view text) {
  const auto byte = [&text](std::size_t at) -> unsigned {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  while (!text.empty()) {
    const unsigned first = byte(0);
    const std::size_t more = first < 0x80   ? 0
                             : first < 0xe0 ? 1
                             : first < 0xf0 ? 2
                                            : 3;
    if (more > 0) {
      if (first < 0xc2 || first > 0xf4) return false;
      const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
      const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
      if (byte(1) < low || byte(1) > high) return false;
    }
    for (std::size_t i = 2; i <= more; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xbf) return false;
    }
    text.remove_prefix(more + 1);
  }
  return true;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
