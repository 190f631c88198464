#include "attributes.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "../sigv4/base64.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::Failure;
using Type = Attribute::Type;
using Wire = dynamodb::Attribute;

namespace {

// As DynamoDB's documentation bounds them.
constexpr std::size_t kLongestName = 255;
constexpr int kMostDigits = 38;
constexpr int kHighestExponent = 125;
constexpr int kLowestExponent = -130;
constexpr int kDeepest = 32;

// The enumerations name the same types in the same order, but for the last.
static_assert(static_cast<int>(Wire::Type::string) ==
              static_cast<int>(Type::string));
static_assert(static_cast<int>(Wire::Type::map) == static_cast<int>(Type::map));
static_assert(static_cast<int>(Wire::Type::other) ==
              static_cast<int>(Type::map) + 1);

bool is_set(Type type) {
  return type == Type::string_set || type == Type::number_set ||
         type == Type::binary_set;
}

// REQUIRES: it is a set.
Type member_of(Type set) {
  if (set == Type::string_set) return Type::string;
  return set == Type::number_set ? Type::number : Type::binary;
}

// --- Numbers -----------------------------------------------------------------

// A decimal number: 0.digits times ten to the `exponent`.  Zero has no digits.
struct Decimal {
  bool negative = false;
  std::string digits;  // Neither begins nor ends with a zero.
  long exponent = 0;

  // One text for each number.
  std::string text() const {
    if (digits.empty()) return "0";
    return (negative ? "-0." : "0.") + digits + "e" + std::to_string(exponent);
  }
};

// Takes the digits off the front of the text.
std::string_view take_digits(std::string_view& text) {
  const std::size_t end =
      std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

bool take_sign(std::string_view& text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
  return negative;
}

// "e-12"; 0 for no text, nothing for what is no exponent.  No number whose
// exponent has more digits than four is one of DynamoDB's.
std::optional<long> read_exponent(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative = take_sign(text);
  const std::string_view digits = take_digits(text);
  if (digits.empty() || digits.size() > 4 || !text.empty()) return std::nullopt;
  long exponent = 0;
  for (const char digit : digits) exponent = 10 * exponent + (digit - '0');
  return negative ? -exponent : exponent;
}

// Nothing if it is no decimal number.
std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal number;
  number.negative = take_sign(text);
  const std::string_view whole = take_digits(text);
  std::string_view fraction;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  const auto exponent = read_exponent(text);
  if (!exponent) return std::nullopt;
  number.digits = std::string(whole) + std::string(fraction);
  number.exponent = *exponent + static_cast<long>(whole.size());
  const std::size_t first =
      std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, first);
  number.exponent -= static_cast<long>(first);
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  return number;
}

// Why it is no number of DynamoDB's; empty if it is one.
std::string not_a_number(std::string_view text) {
  const auto number = read_decimal(text);
  if (!number) return "no decimal number";
  if (number->digits.empty()) return "";
  if (number->digits.size() > kMostDigits) return "of more than 38 digits";
  const long exponent = number->exponent - 1;  // As of d.ddd.
  if (exponent > kHighestExponent) return "too large a number";
  return exponent < kLowestExponent ? "too small a number" : "";
}

// Equal for equal values.
std::string value_text(const Attribute& attribute) {
  if (attribute.type != Type::number) return attribute.value;
  const auto number = read_decimal(attribute.value);
  return number ? number->text() : attribute.value;
}

// --- What DynamoDB would refuse ----------------------------------------------

std::string not_a_name(const std::string& name) {
  if (name.empty()) return "empty";
  if (name.size() > kLongestName) return "longer than 255 bytes";
  return lock::is_utf8(name) ? "" : "not UTF-8";
}

// Why the value is none of its type, members aside.
std::string not_a_value(Type type, const std::string& value) {
  switch (type) {
    case Type::string:
      return lock::is_utf8(value) ? "" : "not UTF-8";
    case Type::number:
      return not_a_number(value);
    case Type::binary:
      return "";
    case Type::boolean:
      return value == "true" || value == "false" ? ""
                                                 : "neither true nor false";
    default:
      return value.empty() ? "" : "a value where there can be none";
  }
}

// `levels` is how many more there may be of lists and maps.
std::string not_storable(const Attribute& attribute, int levels);

std::string not_a_set(const Attribute& set) {
  if (set.members.empty()) return "an empty set";
  std::set<std::string> seen;
  for (const Attribute& member : set.members) {
    if (member.type != member_of(set.type)) {
      return "a member that is not of the set's type";
    }
    if (!member.name.empty()) return "a member of a set with a name";
    std::string why = not_storable(member, 0);
    if (!why.empty()) return why;
    if (!seen.insert(value_text(member)).second) return "a member twice";
  }
  return "";
}

std::string not_a_list(const Attribute& list, int levels) {
  for (const Attribute& member : list.members) {
    if (!member.name.empty()) return "a member of a list with a name";
    std::string why = not_storable(member, levels);
    if (!why.empty()) return why;
  }
  return "";
}

std::string not_a_map(const Attribute& map, int levels) {
  std::set<std::string> seen;
  for (const Attribute& member : map.members) {
    std::string why = not_a_name(member.name);
    if (!why.empty()) return "a member's name that is " + why;
    why = not_storable(member, levels);
    if (!why.empty()) return why;
    if (!seen.insert(member.name).second) return "a member's name twice";
  }
  return "";
}

std::string not_storable(const Attribute& attribute, int levels) {
  std::string why = not_a_value(attribute.type, attribute.value);
  if (!why.empty()) return why;
  if (is_set(attribute.type)) return not_a_set(attribute);
  if (attribute.type == Type::list || attribute.type == Type::map) {
    if (levels == 0) return "lists and maps in more than 32 levels";
    return attribute.type == Type::list ? not_a_list(attribute, levels - 1)
                                        : not_a_map(attribute, levels - 1);
  }
  return attribute.members.empty() ? "" : "members where there can be none";
}

// Names of attributes of an item, each of which may come once.
class Names {
 public:
  Names(const TableOptions& table, std::string field)
      : table_(table), field_(std::move(field)) {}

  // `removed`: `data` may go as others do, though it is set otherwise.
  Failure add(const std::string& name, bool removed) {
    const std::string why = not_a_name(name);
    if (!why.empty()) return bad("a name that is " + why);
    const bool data = removed && name == lock::kDataAttribute;
    if (!data && lock::is_of_record(name)) {
      return bad(detail::quoted(name) + " is an attribute of the record");
    }
    if (name == table_.key || name == table_.sort_key) {
      return bad(detail::quoted(name) + " is the table's key");
    }
    if (!seen_.insert(name).second) return bad(detail::quoted(name) + " twice");
    return {};
  }

  Failure bad(const std::string& why) const {
    return detail::bad_option(field_, why);
  }

 private:
  const TableOptions& table_;
  const std::string field_;
  std::set<std::string> seen_;
};

Failure check_all(const Attributes& attributes, Names& names) {
  for (const Attribute& attribute : attributes) {
    if (Failure bad = names.add(attribute.name, false)) return bad;
    const std::string why = not_storable(attribute, kDeepest);
    if (!why.empty()) {
      return names.bad(detail::quoted(attribute.name) + ": " + why);
    }
  }
  return {};
}

// --- There and back ----------------------------------------------------------

Wire to_wire(const Attribute& attribute) {
  Wire wire;
  wire.name = attribute.name;
  wire.type = static_cast<Wire::Type>(attribute.type);
  wire.value = attribute.type == Type::binary
                   ? sigv4::base64_encode(attribute.value)
                   : attribute.value;
  wire.members.reserve(attribute.members.size());
  for (const Attribute& member : attribute.members) {
    wire.members.push_back(to_wire(member));
  }
  return wire;
}

// Those that can be told.
std::optional<Attribute> from_wire(const Wire& wire) {
  if (wire.type == Wire::Type::other) return std::nullopt;
  Attribute attribute;
  attribute.name = wire.name;
  attribute.type = static_cast<Type>(wire.type);
  attribute.value = wire.value;
  if (attribute.type == Type::binary) {
    auto bytes = sigv4::base64_decode(wire.value);
    if (!bytes) return std::nullopt;
    attribute.value = std::move(*bytes);
  }
  for (const Wire& member : wire.members) {
    auto told = from_wire(member);
    if (told) attribute.members.push_back(std::move(*told));
  }
  return attribute;
}

// --- Comparing ---------------------------------------------------------------

std::vector<const Attribute*> sorted(const Attributes& members) {
  std::vector<const Attribute*> all;
  for (const Attribute& member : members) all.push_back(&member);
  std::sort(all.begin(), all.end(), [](const Attribute* a, const Attribute* b) {
    return a->name != b->name ? a->name < b->name
                              : value_text(*a) < value_text(*b);
  });
  return all;
}

bool same_in_any_order(const Attributes& a, const Attributes& b) {
  const auto ours = sorted(a);
  const auto theirs = sorted(b);
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                    [](const Attribute* one, const Attribute* other) {
                      return *one == *other;
                    });
}

}  // namespace

// Lists alone have an order.
bool operator==(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.type != b.type) return false;
  if (value_text(a) != value_text(b)) return false;
  return a.type == Type::list ? a.members == b.members
                              : same_in_any_order(a.members, b.members);
}

namespace detail {

Failure check(const Attributes& attributes, const TableOptions& table,
              const std::string& field) {
  Names names(table, field);
  return check_all(attributes, names);
}

Failure check(const Changes& changes, const TableOptions& table) {
  Names names(table, "changes");
  if (changes.attributes.size() + changes.remove.size() > kMostChanges) {
    return names.bad("more than 100");
  }
  if (Failure bad = check_all(changes.attributes, names)) return bad;
  for (const std::string& name : changes.remove) {
    if (Failure bad = names.add(name, true)) return bad;
    if (changes.data && name == lock::kDataAttribute) {
      return names.bad("`data` is both set and removed");
    }
  }
  return {};
}

dynamodb::Item to_item(const std::optional<std::string>& data,
                       const Attributes& attributes) {
  dynamodb::Item item;
  item.reserve(attributes.size() + 1);
  if (data) {
    item.push_back(to_wire({lock::kDataAttribute, Type::binary, *data, {}}));
  }
  for (const Attribute& attribute : attributes) {
    item.push_back(to_wire(attribute));
  }
  return item;
}

lock::Changes to_changes(const Changes& changes) {
  return {to_item(changes.data, changes.attributes), changes.remove};
}

std::optional<std::string> data_of(const dynamodb::Item& others) {
  const Wire* data = dynamodb::find(others, lock::kDataAttribute);
  if (data == nullptr || data->type != Wire::Type::binary) return std::nullopt;
  return sigv4::base64_decode(data->value);
}

Attributes attributes_of(const dynamodb::Item& others,
                         const TableOptions& table) {
  Attributes attributes;
  for (const Wire& wire : others) {
    if (lock::is_of_record(wire.name)) continue;
    if (wire.name == table.key || wire.name == table.sort_key) continue;
    auto attribute = from_wire(wire);
    if (attribute) attributes.push_back(std::move(*attribute));
  }
  return attributes;
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
