#include "tests/world/dynamodb/value.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/world/dynamodb/number.hpp"

namespace world {
namespace dynamodb {
namespace {

// In the order of the enumeration.
constexpr const char* kTags[] = {"S",  "N",    "B",    "SS", "NS",
                                 "BS", "BOOL", "NULL", "L",  "M"};

// Two digits to a byte, and one byte more; another one for the sign.
std::size_t size_of_number(const std::string& text) {
  std::size_t digits = read_number(text).digits.size();
  return (digits + 1) / 2 + 1 + (text[0] == '-' ? 1 : 0);
}

std::size_t size_of_scalar(Type type, const std::string& text) {
  return type == Type::number ? size_of_number(text) : text.size();
}

bool comes_before(const Attribute& attribute, std::string_view name) {
  return attribute.name < name;
}

}  // namespace

const char* tag_of(Type type) { return kTags[static_cast<std::size_t>(type)]; }

std::optional<Type> type_of(std::string_view tag) {
  const auto* found = std::find(std::begin(kTags), std::end(kTags), tag);
  if (found == std::end(kTags)) return std::nullopt;
  return static_cast<Type>(found - std::begin(kTags));
}

bool is_scalar(Type type) { return type <= Type::binary; }

bool is_set(Type type) {
  return type >= Type::string_set && type <= Type::binary_set;
}

Type member_of(Type set) {
  return static_cast<Type>(static_cast<int>(set) -
                           static_cast<int>(Type::string_set));
}

// --- Items -------------------------------------------------------------------

std::vector<Attribute>::iterator Item::place_of(std::string_view name) {
  return std::lower_bound(attributes_.begin(), attributes_.end(), name,
                          comes_before);
}

const Value* Item::find(std::string_view name) const {
  return const_cast<Item*>(this)->find(name);  // Changes nothing.
}

Value* Item::find(std::string_view name) {
  const auto place = place_of(name);
  const bool found = place != attributes_.end() && place->name == name;
  return found ? &place->value : nullptr;
}

void Item::set(std::string_view name, Value value) {
  const auto place = place_of(name);
  if (place != attributes_.end() && place->name == name) {
    place->value = std::move(value);
  } else {
    attributes_.insert(place, {std::string(name), std::move(value)});
  }
}

void Item::erase(std::string_view name) {
  const auto place = place_of(name);
  if (place != attributes_.end() && place->name == name) {
    attributes_.erase(place);
  }
}

bool Item::empty() const { return attributes_.empty(); }
std::size_t Item::size() const { return attributes_.size(); }
Item::Iterator Item::begin() const { return attributes_.begin(); }
Item::Iterator Item::end() const { return attributes_.end(); }

bool operator==(const Item& one, const Item& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const Attribute& a, const Attribute& b) {
                      return a.name == b.name && a.value == b.value;
                    });
}

// --- Values ------------------------------------------------------------------

Value string_value(std::string_view text) {
  Value value;
  value.type = Type::string;
  value.text = text;
  return value;
}

Value number_value(std::string text) {
  Value value;
  value.type = Type::number;
  value.text = std::move(text);
  return value;
}

bool operator==(const Value& one, const Value& other) {
  return one.type == other.type && one.truth == other.truth &&
         one.text == other.text && one.members == other.members &&
         one.list == other.list && one.map == other.map;
}

int compare(const Value& one, const Value& other) {
  if (one.type == Type::number) {
    return compare(read_number(one.text), read_number(other.text));
  }
  return one.text.compare(other.text);
}

std::size_t size_of(const Value& value) {
  if (is_scalar(value.type)) return size_of_scalar(value.type, value.text);
  if (is_set(value.type)) {
    std::size_t size = 0;
    for (const std::string& member : value.members) {
      size += size_of_scalar(member_of(value.type), member);
    }
    return size;
  }
  if (value.type == Type::list) {
    std::size_t size = 3;
    for (const Value& member : value.list) size += 1 + size_of(member);
    return size;
  }
  if (value.type == Type::map) {
    return 3 + value.map.size() + size_of(value.map);
  }
  return 1;
}

std::size_t size_of(const Item& item) {
  std::size_t size = 0;
  for (const Attribute& attribute : item) {
    size += attribute.name.size() + size_of(attribute.value);
  }
  return size;
}

}  // namespace dynamodb
}  // namespace world
