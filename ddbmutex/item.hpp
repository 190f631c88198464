// An item as DynamoDB's JSON tells it: names and typed values.
#ifndef DDBMUTEX_ITEM_HPP
#define DDBMUTEX_ITEM_HPP

#include <string>
#include <string_view>
#include <vector>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

struct Attribute {
  enum class Type {
    string,      // "S"
    number,      // "N": `value` holds the decimal text.
    binary,      // "B": `value` holds the base64 text.
    boolean,     // "BOOL": `value` is "true" or "false".
    null,        // "NULL"
    string_set,  // "SS", and so on: `members` without names.
    number_set,
    binary_set,
    list,   // "L": the same.
    map,    // "M"
    other,  // None of those.
  };
  std::string name;
  Type type = Type::other;
  std::string value{};
  std::vector<Attribute> members{};
};

using Item = std::vector<Attribute>;

// The attribute of that name; null if there is none.
inline const Attribute* find(const Item& item, std::string_view name) {
  for (const Attribute& attribute : item) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ITEM_HPP
