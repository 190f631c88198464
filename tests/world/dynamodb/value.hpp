// The typed values of DynamoDB's items.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_VALUE_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_VALUE_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace world {
namespace dynamodb {

enum class Type {
  string,
  number,
  binary,
  string_set,
  number_set,
  binary_set,
  boolean,
  null,
  list,
  map,
};

const char* tag_of(Type type);  // "S"
std::optional<Type> type_of(std::string_view tag);
// S, N or B: their values have an order, and sets are made of them.
bool is_scalar(Type type);
bool is_set(Type type);
Type member_of(Type set);

struct Attribute;
struct Value;

// Attributes by name, in the order of their names.
class Item {
 public:
  using Iterator = std::vector<Attribute>::const_iterator;

  const Value* find(std::string_view name) const;
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
  void erase(std::string_view name);

  bool empty() const;
  std::size_t size() const;
  Iterator begin() const;
  Iterator end() const;

 private:
  std::vector<Attribute>::iterator place_of(std::string_view name);

  std::vector<Attribute> attributes_;
};

struct Value {
  Type type = Type::null;
  bool truth = false;  // Of a boolean.
  // A string; a number as text_of() writes it; the bytes of a binary value.
  std::string text{};
  std::vector<std::string> members{};  // Of a set, sorted; as `text`.
  std::vector<Value> list{};
  Item map{};
};

struct Attribute {
  std::string name;
  Value value;
};

Value string_value(std::string_view text);
Value number_value(std::string text);  // As text_of() writes it.

bool operator==(const Value& one, const Value& other);
bool operator==(const Item& one, const Item& other);

// Below, at or above 0.  REQUIRES: both are of the same scalar type.
int compare(const Value& one, const Value& other);

// In bytes, as the developer guide counts them ("DynamoDB item sizes and
// formats").
std::size_t size_of(const Value& value);
std::size_t size_of(const Item& item);

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_VALUE_HPP
