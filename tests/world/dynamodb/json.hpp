// Items and requests as JSON.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_JSON_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_JSON_HPP

#include <rapidjson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/world/dynamodb/expression.hpp"
#include "tests/world/dynamodb/value.hpp"

namespace world {
namespace dynamodb {

using Json = rapidjson::Value;

// A JSON string, with its quotes.
std::string quoted(std::string_view text);
// {"name":{"S":"job"}}
std::string json_of(const Item& item);

std::string json_of(const Json& json);

// Null if there is none, or if it is null.
const Json* member(const Json& object, const char* name);

// What an operation on items asks for, or a part of a transaction.
struct Request {
  std::string table;
  std::optional<Item> key, item, start;  // Key, Item, ExclusiveStartKey
  std::optional<std::string> condition, update, projection, filter,
      key_condition;
  Bindings bindings;
  std::string return_values = "NONE";
  std::string on_failure = "NONE";  // ReturnValuesOnConditionCheckFailure
  std::optional<std::int64_t> limit;
};

// Reads requests.  DynamoDB first refuses JSON of wrong types, wherever it is,
// and only then values that are not valid: so finish() does that, once all was
// read.
class Reader {
 public:
  // `members`: the names that it may have, each with a blank around it.
  Request request(const Json& json, std::string_view members);
  std::string text(const Json& json);
  bool boolean(const Json& json);
  std::int64_t integer(const Json& json);
  const Json& object(const Json& json);
  const Json& array(const Json& json);
  void finish() const;

 private:
  void read(const std::string& name, const Json& json, Request& request);
  Item item(const Json& json, int depth, bool of_request = false);
  Value value(const Json& json, int depth);
  void typed(Type type, const Json& json, int depth, Value& value);
  std::string scalar(Type type, const Json& json);
  void set(Type type, const Json& json, Value& value);
  void names(const Json& json, Request& request);
  void note(const char* problem);

  std::string problem_;  // The first one.
};

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_JSON_HPP
