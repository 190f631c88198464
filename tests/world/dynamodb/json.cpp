#include "tests/world/dynamodb/json.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>

#include "sigv4/base64.hpp"
#include "tests/world/dynamodb/number.hpp"
#include "tests/world/dynamodb/refusal.hpp"

namespace world::dynamodb {
namespace {

// How deep lists and maps may be nested.
constexpr int kDeepest = 32;

std::string_view view(const Json& json) {
  return {json.GetString(), json.GetStringLength()};
}

// --- Writing -----------------------------------------------------------------

std::string json_of_scalar(const Value& value) {
  return quoted(value.type == "B" ? ddbmutex::sigv4::base64_encode(value.text)
                                  : value.text);
}

std::string json_of(const Value& value) {
  return "{\"" + value.type +
         "\":" + (is_scalar(value.type) ? json_of_scalar(value) : value.text) +
         "}";
}

// --- Reading -----------------------------------------------------------------

const Json& of_type(bool fits, const Json& json) {
  if (!fits) throw Refusal{"SerializationException", "JSON of a wrong type"};
  return json;
}

Value value_in(const Json& json, int depth);

Item item_in(const Json& json, int depth) {
  Item item;
  for (const auto& [name, value] : of_type(json.IsObject(), json).GetObject()) {
    item[std::string(view(name))] = value_in(value, depth);
  }
  return item;
}

Value scalar_in(const std::string& type, const Json& json) {
  std::string text(view(of_type(json.IsString(), json)));
  if (type == "N") text = read_number(text);
  if (type == "B") {
    auto bytes = ddbmutex::sigv4::base64_decode(text);
    of_type(bytes.has_value(), json);
    text = std::move(*bytes);
  }
  return scalar_value(type, std::move(text));
}

Value set_in(const std::string& type, const Json& json) {
  std::map<std::string, Value> members;  // Sorted by their texts.
  Value set{type, "["};
  for (const Json& one : of_type(json.IsArray(), json).GetArray()) {
    const Value member = scalar_in(type.substr(0, 1), one);
    if (!members.emplace(member.text, member).second) {
      invalid("Input collection contains duplicates.");
    }
    set.bytes += member.bytes;
  }
  if (members.empty()) invalid("A set may not be empty");
  for (const auto& [text, member] : members) {
    set.text += (set.text.size() > 1 ? "," : "") + json_of_scalar(member);
  }
  set.text += ']';
  set.size = members.size();
  return set;
}

Value list_in(const Json& json, int depth) {
  Value list{"L", "[", 3, json.Size()};
  for (const Json& one : json.GetArray()) {
    const Value member = value_in(one, depth);
    list.text += (list.text.size() > 1 ? "," : "") + json_of(member);
    list.bytes += 1 + member.bytes;
  }
  list.text += ']';
  return list;
}

Value value_of(const std::string& type, const Json& json, int depth) {
  if (is_scalar(type)) return scalar_in(type, json);
  if (is_set(type)) return set_in(type, json);
  if (type == "BOOL" || type == "NULL") {
    const bool truth = of_type(json.IsBool(), json).GetBool();
    if (type == "NULL" && !truth) invalid("NULL must be true");
    return {type, truth ? "true" : "false", 1};
  }
  if (depth == kDeepest) invalid("Nesting Levels have exceeded the limit");
  if (type == "L") return list_in(of_type(json.IsArray(), json), depth + 1);
  const Item members = item_in(json, depth + 1);
  return {type, json_of(members), 3 + members.size() + size_of(members),
          members.size()};
}

// Members that are no types are not looked at.
Value value_in(const Json& json, int depth) {
  Value value;
  for (const auto& [type, content] :
       of_type(json.IsObject(), json).GetObject()) {
    if (!is_type(view(type)) || content.IsNull()) continue;
    if (!value.type.empty()) invalid("AttributeValue has more than one type");
    value = value_of(type.GetString(), content, depth);
  }
  if (value.type.empty()) invalid("Supplied AttributeValue is empty");
  return value;
}

}  // namespace

std::string quoted(std::string_view text) {
  return json_of(Json(rapidjson::StringRef(text.data(), text.size())));
}

std::string json_of(const Item& item) {
  std::string text = "{";
  for (const auto& [name, value] : item) {
    if (text.size() > 1) text += ',';
    text += quoted(name) + ":" + json_of(value);
  }
  return text + "}";
}

std::string json_of(const Json& json) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  json.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

// --- Members -----------------------------------------------------------------

Members::Members(const Json& object)
    : object_(of_type(object.IsObject(), object)) {}

const Json* Members::find(const char* name) {
  asked_.push_back(name);
  const auto found = object_.FindMember(name);
  const bool there = found != object_.MemberEnd() && !found->value.IsNull();
  return there ? &found->value : nullptr;
}

const Json* Members::array(const char* name) {
  const Json* const json = find(name);
  if (json != nullptr) of_type(json->IsArray(), *json);
  return json;
}

std::optional<std::string> Members::text(const char* name) {
  const Json* const json = find(name);
  if (json == nullptr) return std::nullopt;
  return std::string(view(of_type(json->IsString(), *json)));
}

std::optional<std::int64_t> Members::integer(const char* name) {
  const Json* const json = find(name);
  if (json == nullptr) return std::nullopt;
  return of_type(json->IsInt64(), *json).GetInt64();
}

std::optional<Item> Members::item(const char* name) {
  const Json* const json = find(name);
  if (json == nullptr) return std::nullopt;
  return item_in(*json, 0);
}

void Members::boolean(const char* name) {
  const Json* const json = find(name);
  if (json != nullptr) of_type(json->IsBool(), *json);
}

void Members::finish() const {
  for (const auto& [name, value] : object_.GetObject()) {
    if (std::find(asked_.begin(), asked_.end(), view(name)) == asked_.end()) {
      not_simulated(std::string(view(name)) + " here");
    }
  }
}

}  // namespace world::dynamodb
