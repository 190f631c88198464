#include "tests/world/dynamodb/value.hpp"

#include <algorithm>
#include <utility>

#include "tests/world/dynamodb/number.hpp"

namespace world::dynamodb {

bool is_type(std::string_view name) {
  return is_scalar(name) || is_set(name) || name == "BOOL" || name == "NULL" ||
         name == "L" || name == "M";
}

bool is_scalar(std::string_view type) {
  return type == "S" || type == "N" || type == "B";
}

bool is_set(std::string_view type) {
  return type == "SS" || type == "NS" || type == "BS";
}

Value scalar_value(const std::string& type, std::string text) {
  Value value{type, std::move(text)};
  if (type == "N") {
    value.bytes = size_of_number(value.text);
    return value;
  }
  value.bytes = value.text.size();
  const auto begins_character = [](char c) { return (c & 0xC0) != 0x80; };
  value.size =
      type == "B"
          ? value.bytes
          : static_cast<std::size_t>(std::count_if(
                value.text.begin(), value.text.end(), begins_character));
  return value;
}

bool operator==(const Value& one, const Value& other) {
  return one.type == other.type && one.text == other.text;
}

int compare(const Value& one, const Value& other) {
  return one.type == "N" ? compare_numbers(one.text, other.text)
                         : one.text.compare(other.text);
}

const Value* find(const Item& item, std::string_view name) {
  const auto found = item.find(name);
  return found != item.end() ? &found->second : nullptr;
}

std::size_t size_of(const Item& item) {
  std::size_t size = 0;
  for (const auto& [name, value] : item) size += name.size() + value.bytes;
  return size;
}

}  // namespace world::dynamodb
