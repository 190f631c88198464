// The typed values of DynamoDB's items.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_VALUE_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_VALUE_HPP

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace world::dynamodb {

// DynamoDB's own names stand for the types: "S", "N", "B", "SS", "NS", "BS",
// "BOOL", "NULL", "L" and "M".
bool is_type(std::string_view name);
// S, N or B: their values have an order, and sets are made of them.
bool is_scalar(std::string_view type);
bool is_set(std::string_view type);

struct Value {
  std::string type;
  // The value of S, N and B.  Nothing looks into other types: of them it is the
  // JSON, which is the same if the values are equal.
  std::string text{};
  std::size_t bytes = 0;  // As DynamoDB counts its size.
  // What the function size() of expressions returns; null if it has no size.
  std::optional<std::size_t> size{};
};

Value scalar_value(const std::string& type, std::string text);
bool operator==(const Value& one, const Value& other);
// Below, at or above 0.  REQUIRES: both are of the same scalar type.
int compare(const Value& one, const Value& other);

// Attributes by name.
using Item = std::map<std::string, Value, std::less<>>;

const Value* find(const Item& item, std::string_view name);
std::size_t size_of(const Item& item);  // In bytes.

}  // namespace world::dynamodb

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_VALUE_HPP
