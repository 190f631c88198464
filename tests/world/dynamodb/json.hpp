// Items and requests as JSON.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_JSON_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_JSON_HPP

#include <rapidjson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/world/dynamodb/value.hpp"

namespace world::dynamodb {

using Json = rapidjson::Value;

// A JSON string, with its quotes.
std::string quoted(std::string_view text);
// {"name":{"S":"job"}}
std::string json_of(const Item& item);
std::string json_of(const Json& json);

// The members of an object in a request.  Null counts as left out.  A member of
// a wrong type or with an invalid value is refused.
class Members {
 public:
  explicit Members(const Json& object);

  const Json* find(const char* name);   // Null if it is left out.
  const Json* array(const char* name);  // Null if it is left out.
  std::optional<std::string> text(const char* name);
  std::optional<std::int64_t> integer(const char* name);
  std::optional<Item> item(const char* name);
  void boolean(const char* name);  // Checks its type; it changes nothing.
  // Called after all others: members that nobody asked for are not simulated.
  void finish() const;

 private:
  const Json& object_;
  std::vector<std::string_view> asked_;
};

}  // namespace world::dynamodb

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_JSON_HPP
