#include "tests/world/dynamodb/json.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <utility>

#include "sigv4/base64.hpp"
#include "tests/world/dynamodb/number.hpp"
#include "tests/world/dynamodb/refusal.hpp"

namespace world {
namespace dynamodb {
namespace {

// How deep lists and maps may be nested.
constexpr int kDeepest = 32;

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

[[noreturn]] void wrong_json(const std::string& message) {
  refuse("SerializationException", message);
}

std::string_view view(const Json& json) {
  return {json.GetString(), json.GetStringLength()};
}

// --- Writing -----------------------------------------------------------------

void write(Writer& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void write(Writer& writer, const Value& value);

void write(Writer& writer, const Item& item) {
  writer.StartObject();
  for (const Attribute& attribute : item) {
    write(writer, attribute.name);
    write(writer, attribute.value);
  }
  writer.EndObject();
}

void write_scalar(Writer& writer, Type type, const std::string& text) {
  if (type == Type::binary) {
    write(writer, ddbmutex::sigv4::base64_encode(text));
  } else {
    write(writer, text);
  }
}

void write(Writer& writer, const Value& value) {
  writer.StartObject();
  writer.Key(tag_of(value.type));
  if (is_scalar(value.type)) {
    write_scalar(writer, value.type, value.text);
  } else if (value.type == Type::boolean) {
    writer.Bool(value.truth);
  } else if (value.type == Type::null) {
    writer.Bool(true);
  } else if (value.type == Type::map) {
    write(writer, value.map);
  } else {
    writer.StartArray();
    for (const std::string& member : value.members) {
      write_scalar(writer, member_of(value.type), member);
    }
    for (const Value& member : value.list) write(writer, member);
    writer.EndArray();
  }
  writer.EndObject();
}

template <typename What>
std::string written(const What& what) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  write(writer, what);
  return {buffer.GetString(), buffer.GetSize()};
}

// --- Reading -----------------------------------------------------------------

// "#name", ":value"
bool is_placeholder(std::string_view text, char mark) {
  return text.size() > 1 && text[0] == mark &&
         std::all_of(text.begin() + 1, text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') || c == '_';
         });
}

}  // namespace

std::string quoted(std::string_view text) { return written(text); }
std::string json_of(const Item& item) { return written(item); }

std::string json_of(const Json& json) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  json.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

const Json* member(const Json& object, const char* name) {
  const auto found = object.FindMember(name);
  const bool there = found != object.MemberEnd() && !found->value.IsNull();
  return there ? &found->value : nullptr;
}

// Validation comes behind all that makes no sense as JSON.
void Reader::note(const char* problem) {
  if (problem_.empty()) problem_ = problem;
}

void Reader::finish() const {
  if (!problem_.empty()) invalid(problem_);
}

std::string Reader::text(const Json& json) {
  if (!json.IsString()) wrong_json("The value cannot be converted to String");
  return std::string(view(json));
}

bool Reader::boolean(const Json& json) {
  if (!json.IsBool()) wrong_json("The value cannot be converted to Boolean");
  return json.GetBool();
}

std::int64_t Reader::integer(const Json& json) {
  if (!json.IsInt64()) wrong_json("The value cannot be converted to Integer");
  return json.GetInt64();
}

const Json& Reader::object(const Json& json) {
  if (!json.IsObject()) wrong_json("Unexpected value type in payload");
  return json;
}

const Json& Reader::array(const Json& json) {
  if (!json.IsArray()) wrong_json("Unexpected value type in payload");
  return json;
}

std::string Reader::scalar(Type type, const Json& json) {
  std::string text = this->text(json);
  if (type == Type::binary) {
    auto bytes = ddbmutex::sigv4::base64_decode(text);
    if (!bytes) wrong_json("The value is not base64");
    return std::move(*bytes);
  }
  if (type != Type::number) return text;
  try {
    return text_of(read_number(text));
  } catch (const Refusal& refusal) {
    note(refusal.message.c_str());
    return "0";
  }
}

void Reader::set(Type type, const Json& json, Value& value) {
  for (const Json& member : array(json).GetArray()) {
    value.members.push_back(scalar(member_of(type), member));
  }
  auto& members = value.members;
  std::sort(members.begin(), members.end());
  if (members.empty()) {
    note("One or more parameter values were invalid: A set may not be empty");
  }
  if (std::adjacent_find(members.begin(), members.end()) != members.end()) {
    note(
        "One or more parameter values were invalid: Input collection contains "
        "duplicates.");
  }
}

void Reader::typed(Type type, const Json& json, int depth, Value& value) {
  value.type = type;
  if (is_scalar(type)) {
    value.text = scalar(type, json);
  } else if (is_set(type)) {
    set(type, json, value);
  } else if (type == Type::boolean) {
    value.truth = boolean(json);
  } else if (type == Type::null) {
    if (!boolean(json)) {
      note(
          "One or more parameter values were invalid: Null attribute value "
          "types must have the value of true");
    }
  } else if (depth == kDeepest) {
    note(
        "Nesting Levels have exceeded supported limits: Attributes in the item "
        "have nested levels beyond supported limit");
  } else if (type == Type::map) {
    value.map = item(json, depth + 1);
  } else {
    for (const Json& member : array(json).GetArray()) {
      value.list.push_back(this->value(member, depth + 1));
    }
  }
}

// Members that are no types are not looked at.
Value Reader::value(const Json& json, int depth) {
  Value value;
  int types = 0;
  for (const auto& [tag, content] : object(json).GetObject()) {
    const auto type = type_of(view(tag));
    if (!type || content.IsNull()) continue;
    ++types;
    value = {};
    typed(*type, content, depth, value);
  }
  if (types == 0) {
    note(
        "Supplied AttributeValue is empty, must contain exactly one of the "
        "supported datatypes");
  }
  if (types > 1) {
    note(
        "Supplied AttributeValue has more than one datatypes set, must contain "
        "exactly one of the supported datatypes");
  }
  return value;
}

Item Reader::item(const Json& json, int depth, bool of_request) {
  Item item;
  for (const auto& [name, content] : object(json).GetObject()) {
    if (of_request && view(name).empty()) {
      note("One or more parameter values were invalid: Empty attribute name");
    }
    item.set(view(name), value(content, depth));
  }
  return item;
}

void Reader::names(const Json& json, Request& request) {
  for (const auto& [mark, name] : object(json).GetObject()) {
    request.bindings.names.emplace_back(view(mark), text(name));
    if (!is_placeholder(view(mark), '#')) {
      note("ExpressionAttributeNames contains invalid key: Syntax error");
    }
  }
  if (request.bindings.names.empty()) {
    note("ExpressionAttributeNames must not be empty");
  }
}

void Reader::read(const std::string& name, const Json& json, Request& request) {
  if (name == "TableName") {
    request.table = text(json);
  } else if (name == "Key") {
    request.key = item(json, 0);
  } else if (name == "Item") {
    request.item = item(json, 0, true);
  } else if (name == "ExclusiveStartKey") {
    request.start = item(json, 0);
  } else if (name == "ConditionExpression") {
    request.condition = text(json);
  } else if (name == "UpdateExpression") {
    request.update = text(json);
  } else if (name == "ProjectionExpression") {
    request.projection = text(json);
  } else if (name == "FilterExpression") {
    request.filter = text(json);
  } else if (name == "KeyConditionExpression") {
    request.key_condition = text(json);
  } else if (name == "ExpressionAttributeNames") {
    names(json, request);
  } else if (name == "ExpressionAttributeValues") {
    request.bindings.values = item(json, 0);
    if (request.bindings.values.empty()) {
      note("ExpressionAttributeValues must not be empty");
    }
    for (const Attribute& one : request.bindings.values) {
      if (!is_placeholder(one.name, ':')) {
        note("ExpressionAttributeValues contains invalid key: Syntax error");
      }
    }
  } else if (name == "ReturnValues") {
    request.return_values = text(json);
  } else if (name == "ReturnValuesOnConditionCheckFailure") {
    request.on_failure = text(json);
  } else if (name == "Limit") {
    request.limit = integer(json);
  } else if (name == "ConsistentRead") {
    boolean(json);  // Every read is.
  }
}

Request Reader::request(const Json& json, std::string_view members) {
  Request request;
  for (const auto& [name, content] : object(json).GetObject()) {
    const std::string known = " " + std::string(view(name)) + " ";
    if (members.find(known) == members.npos) {
      refuse("NotSimulated", "the simulated DynamoDB has no" + known + "here");
    }
    if (!content.IsNull()) read(std::string(view(name)), content, request);
  }
  return request;
}

}  // namespace dynamodb
}  // namespace world
