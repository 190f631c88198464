// Requests and items written as DynamoDB's JSON, items read from it.
//
//   rapidjson::StringBuffer body;
//   Writer writer(body);
//   writer.StartObject();
//   write_pair(writer, "TableName", table);
//   write_string(writer, "Key");
//   writer.StartObject();
//   write_attribute(writer, "name", Attribute::Type::string, "a");
//   writer.EndObject();
//   writer.EndObject();
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_JSON_HPP
#define DDBMUTEX_JSON_HPP

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <optional>
#include <string_view>

#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

// --- Writing ---------------------------------------------------------------

void write_string(Writer& writer, std::string_view text);
// "name":"value"
void write_pair(Writer& writer, std::string_view name, std::string_view value);
// "name":{"S":"value"}, of a type that has no members.
void write_attribute(Writer& writer, std::string_view name,
                     Attribute::Type type, std::string_view value);
// {"S":"value"}, of any type; without the name.  Of type `other` it is {},
// which DynamoDB refuses: what it was is not known.
void write_value(Writer& writer, const Attribute& attribute);
// "name":{"S":"value"} for each, as within an object.
void write_members(Writer& writer, const Item& item);

// --- Reading ---------------------------------------------------------------

// REQUIRES: it is a string.
inline std::string_view text_of(const rapidjson::Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

// "S" is string; `other` if it is none of those known.
Attribute::Type type_of(std::string_view tag);

// {"name":{"S":"text"},...}; nothing if it is not of that form, or nested
// deeper than DynamoDB has it (32 levels).
std::optional<Item> read_item(const rapidjson::Value& value);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_JSON_HPP
