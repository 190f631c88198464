#include "from_json.hpp"

#include <rapidjson/document.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "service.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

using Document = rapidjson::GenericDocument<rapidjson::UTF8<>,
                                            rapidjson::MemoryPoolAllocator<>>;
using Value = Document::ValueType;

// In situ a string stays where it was, and nothing else holds a copy of it.
// The default parser recurses, and 64 KiB of '[' may be too much for a stack.
// kParseFullPrecisionFlag is not for text of others' making: 1.1 counts the
// leading zeros of 0 for "0e203".  Whole numbers come out right without it.
constexpr unsigned kParseFlags = rapidjson::kParseInsituFlag |
                                 rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseValidateEncodingFlag;

// All that RapidJSON would let pass: it takes a NUL for the end.
bool may_be_json(std::string_view text) {
  return text.size() <= kMaxJsonBytes && text.find('\0') == text.npos &&
         !has_lone_surrogate(text);
}

std::string_view text_of(const Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

// Null if there is none, or it is null.
const Value* find(const void* object, std::string_view name) {
  const auto& members = *static_cast<const Value*>(object);
  for (auto at = members.MemberEnd(); at != members.MemberBegin();) {
    --at;
    if (text_of(at->name) != name) continue;
    return at->value.IsNull() ? nullptr : &at->value;
  }
  return nullptr;
}

// Where RapidJSON writes to; with room for all of it, so that it leaves no
// copies behind.
struct SecretStream {
  using Ch = char;
  void Put(char c) { text.push_back(c); }
  void Flush() {}

  std::string text;
};
using SecretWriter = rapidjson::Writer<SecretStream>;

// No character takes more than that when it is written: "1e9" is 1000000000.0,
// a number of up to 25 characters.
constexpr std::size_t kMostWritten = 25;

std::size_t room_for(const JsonTexts& texts) {
  std::size_t room = 2;
  for (const auto& [name, text] : texts) {
    room += kMostWritten * (name.size() + text.size() + 1);
  }
  return room;
}

void write_texts(SecretWriter& writer, const JsonTexts& texts) {
  for (const auto& [name, text] : texts) {
    writer.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  }
}

// RapidJSON writes with a stack frame for each level.
bool is_shallow(const Value& value, int levels) {
  if (levels == 0) return false;
  if (value.IsObject()) {
    return std::all_of(value.MemberBegin(), value.MemberEnd(),
                       [levels](const Value::Member& member) {
                         return is_shallow(member.value, levels - 1);
                       });
  }
  if (!value.IsArray()) return true;
  return std::all_of(value.Begin(), value.End(), [levels](const Value& one) {
    return is_shallow(one, levels - 1);
  });
}

}  // namespace

struct JsonObject::Parsed {
  // RapidJSON looks up to two bytes behind the NUL at the end when a character
  // of UTF-8 is cut short there.
  explicit Parsed(std::string_view json) {
    constexpr std::size_t kBehind = 3;
    text.reserve(json.size() + kBehind);  // Leaves no copy by growing.
    text.append(json).append(kBehind, '\0');
  }
  ~Parsed() { wipe(text); }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  std::string text;
  Document document;
};

bool JsonObject::has(std::string_view name) const {
  return find(value_, name) != nullptr;
}

std::optional<std::string_view> JsonObject::text(std::string_view name) const {
  const Value* value = find(value_, name);
  if (value == nullptr || !value->IsString()) return std::nullopt;
  return text_of(*value);
}

std::optional<std::int64_t> JsonObject::number(std::string_view name) const {
  const Value* value = find(value_, name);
  if (value == nullptr) return std::nullopt;
  if (value->IsInt64()) return value->GetInt64();
  if (!value->IsDouble()) return std::nullopt;
  const double number = value->GetDouble();
  constexpr double kExact = 9007199254740992.0;
  if (!(std::fabs(number) <= kExact)) return std::nullopt;
  if (std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::optional<bool> JsonObject::truth(std::string_view name) const {
  const Value* value = find(value_, name);
  if (value == nullptr || !value->IsBool()) return std::nullopt;
  return value->GetBool();
}

std::optional<JsonObject> JsonObject::object(std::string_view name) const {
  const Value* value = find(value_, name);
  if (value == nullptr || !value->IsObject()) return std::nullopt;
  return JsonObject(parsed_, value);
}

std::optional<JsonObject> parse_json(Secret text) {
  if (!may_be_json(text)) return std::nullopt;
  const auto parsed = std::make_shared<JsonObject::Parsed>(text);
  Document& document = parsed->document;
  document.ParseInsitu<kParseFlags>(parsed->text.data());
  if (document.HasParseError() || !document.IsObject()) return std::nullopt;
  const Value* whole = &document;
  return JsonObject(parsed, whole);
}

std::string json_string(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  result.reserve(6 * text.size() + 2);  // Leaves no copy by growing.
  result += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += "\\u00";
      result += c < 0x10 ? '0' : '1';
      result += kHex[c & 0xf];
    } else {
      result += c;
    }
  }
  return result += '"';
}

Secret json_object(const JsonTexts& texts) {
  SecretStream stream;
  stream.text.reserve(room_for(texts));
  SecretWriter writer(stream);
  writer.StartObject();
  write_texts(writer, texts);
  writer.EndObject();
  return std::move(stream.text);
}

Secret with_texts(const JsonObject& object, const JsonTexts& texts) {
  constexpr int kLevels = 8;
  SecretStream stream;
  stream.text.reserve(kMostWritten * object.parsed_->text.size() +
                      room_for(texts));
  SecretWriter writer(stream);
  writer.StartObject();
  for (const auto& member :
       static_cast<const Value*>(object.value_)->GetObject()) {
    const auto is_replaced = [name = text_of(member.name)](const auto& text) {
      return text.first == name;
    };
    if (std::any_of(texts.begin(), texts.end(), is_replaced)) continue;
    if (!is_shallow(member.value, kLevels)) continue;
    member.name.Accept(writer);
    member.value.Accept(writer);
  }
  write_texts(writer, texts);
  writer.EndObject();
  return std::move(stream.text);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
