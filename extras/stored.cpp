// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// DynamoDB's rules for numbers, sets and nesting are checked here, so that an
// error names the attribute that breaks one.
#include "stored.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "../ddbmutex/dynamodb/item.hpp"
#include "../ddbmutex/errors.hpp"
#include "../ddbmutex/stored.hpp"
#include "../sigv4/base64.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::ErrorPtr;
using Type = Attribute::Type;
using Wire = dynamodb::Attribute;

namespace {

// The limits in DynamoDB's documentation.
constexpr int kMostDigits = 38;
constexpr int kHighestExponent = 125;
constexpr int kLowestExponent = -130;
constexpr int kDeepest = 32;

// Both enumerations name the same types in the same order, except `other`.
static_assert(static_cast<int>(Wire::Type::string) ==
              static_cast<int>(Type::string));
static_assert(static_cast<int>(Wire::Type::map) == static_cast<int>(Type::map));
static_assert(static_cast<int>(Wire::Type::other) ==
              static_cast<int>(Type::map) + 1);

// --- Numbers -----------------------------------------------------------------

// A decimal number: 0.digits times ten to the `exponent`.  Zero has no digits.
struct Decimal {
  bool negative = false;
  std::string digits;  // Neither begins nor ends with a zero.
  long exponent = 0;
};

// Removes the digits at the front of the text, and returns them.
std::string_view take_digits(std::string_view& text) {
  const std::size_t end =
      std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

// Removes the first character of the text if it is one of `characters`, and
// returns it; else NUL.
char take_one_of(const char* characters, std::string_view& text) {
  if (text.empty() || text.find_first_of(characters) != 0) return '\0';
  const char taken = text.front();
  text.remove_prefix(1);
  return taken;
}

// False if it is not a decimal number, or if its exponent has more than four
// digits, which DynamoDB's numbers never have.
bool read_decimal(std::string_view text, Decimal& number) {
  number.negative = take_one_of("+-", text) == '-';
  number.digits = take_digits(text);
  number.exponent = static_cast<long>(number.digits.size());
  if (take_one_of(".", text) != '\0') number.digits += take_digits(text);
  if (number.digits.empty()) return false;
  if (take_one_of("eE", text) != '\0') {
    const bool negative = take_one_of("+-", text) == '-';
    const std::string_view digits = take_digits(text);
    if (digits.empty() || digits.size() > 4) return false;
    long exponent = 0;
    for (const char digit : digits) exponent = 10 * exponent + (digit - '0');
    number.exponent += negative ? -exponent : exponent;
  }
  if (!text.empty()) return false;
  const std::size_t first =
      std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, first);
  number.exponent -= static_cast<long>(first);
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  return true;
}

// Why DynamoDB would not store it as a number; "" if it would.
const char* not_a_number(std::string_view text) {
  Decimal number;
  if (!read_decimal(text, number)) return "not a decimal number";
  if (number.digits.empty()) return "";
  if (number.digits.size() > kMostDigits) return "more than 38 digits";
  const long exponent = number.exponent - 1;  // DynamoDB's: d.ddd, not 0.dddd.
  if (exponent > kHighestExponent) return "too large a number";
  return exponent < kLowestExponent ? "too small a number" : "";
}

// The value in a form that is the same for equal values: 1 and 1.0 are equal.
std::string value_text(const Attribute& attribute) {
  Decimal number;
  if (attribute.type != Type::number ||
      !read_decimal(attribute.value, number)) {
    return attribute.value;
  }
  if (number.digits.empty()) return "0";
  return sigv4::join({number.negative ? "-0." : "0.", number.digits, "e",
                      sigv4::Digits(number.exponent)});
}

// --- What DynamoDB would refuse ----------------------------------------------

bool is_set(Type type) {
  return type == Type::string_set || type == Type::number_set ||
         type == Type::binary_set;
}

// Why DynamoDB would not store it, apart from its members; "" if it would.
// `levels`: how many more lists and maps may be nested.
const char* not_storable(const Attribute& attribute, int levels) {
  const std::string& value = attribute.value;
  const bool has_members = !attribute.members.empty();
  switch (attribute.type) {
    case Type::string:
      if (!sigv4::is_utf8(value)) return "not UTF-8";
      break;
    case Type::number:
      if (const char* why = not_a_number(value); *why != '\0') return why;
      break;
    case Type::binary:
      break;
    case Type::boolean:
      if (value != "true" && value != "false") return "neither true nor false";
      break;
    default:
      if (!value.empty()) return "a value, which its type does not have";
      break;
  }
  if (is_set(attribute.type)) return has_members ? "" : "an empty set";
  if (attribute.type == Type::list || attribute.type == Type::map) {
    return levels > 0 ? "" : "lists and maps nested more than 32 deep";
  }
  return has_members ? "members, which its type does not have" : "";
}

Type type_of_members(Type set) {
  return set == Type::string_set   ? Type::string
         : set == Type::number_set ? Type::number
                                   : Type::binary;
}

// Checks one attribute and its members.
struct AttributeChecker {
  using Names = std::set<std::string>;

  const std::string where;  // How errors begin: `"name": `.

  ErrorPtr bad(const std::string& why) const {
    return detail::bad_option({"attributes", (where + why).c_str()});
  }

  ErrorPtr add_name(const std::string& name, Names& names) const {
    const std::string why = detail::bad_name(name);
    if (!why.empty()) return bad(why);
    return names.insert(name).second
               ? nullptr
               : bad(sigv4::in_quotes(name) + " is given twice");
  }

  ErrorPtr check(const Attribute& attribute, int levels) const {
    const char* why = not_storable(attribute, levels);
    if (*why != '\0') return bad(why);
    const bool in_set = is_set(attribute.type);
    const bool in_map = attribute.type == Type::map;
    Names names, values;
    for (const Attribute& member : attribute.members) {
      if (in_set && member.type != type_of_members(attribute.type)) {
        return bad("a member that is not of the set's type");
      }
      if (!in_map && !member.name.empty()) return bad("a member with a name");
      ErrorPtr wrong = in_map ? add_name(member.name, names) : nullptr;
      if (!wrong) wrong = check(member, levels - 1);
      if (wrong) return wrong;
      if (in_set && !values.insert(value_text(member)).second) {
        return bad("a member is given twice");
      }
    }
    return nullptr;
  }
};

ErrorPtr check_all(const Attributes& attributes) {
  AttributeChecker::Names names;
  for (const Attribute& attribute : attributes) {
    if (ErrorPtr wrong = AttributeChecker{""}.add_name(attribute.name, names)) {
      return wrong;
    }
    const AttributeChecker checker{sigv4::in_quotes(attribute.name) + ": "};
    if (ErrorPtr wrong = checker.check(attribute, kDeepest)) return wrong;
  }
  return nullptr;
}

// --- To DynamoDB's items and back --------------------------------------------

void add_wire(const Attribute& attribute, dynamodb::Item& item) {
  Wire& wire = item.emplace_back();
  wire.name = attribute.name;
  wire.type = static_cast<Wire::Type>(attribute.type);
  wire.value = attribute.type == Type::binary
                   ? sigv4::base64_encode(attribute.value)
                   : attribute.value;
  for (const Attribute& member : attribute.members) {
    add_wire(member, wire.members);
  }
}

// Adds nothing if the type is not known, or if the bytes are not base64.
void add_from_wire(const Wire& wire, Attributes& all) {
  std::optional<std::string> value = wire.value;
  if (wire.type == Wire::Type::binary) value = sigv4::base64_decode(*value);
  if (wire.type >= Wire::Type::other || !value) return;
  Attribute& attribute = all.emplace_back();
  attribute.name = wire.name;
  attribute.type = static_cast<Type>(wire.type);
  attribute.value = std::move(*value);
  for (const Wire& member : wire.members) {
    add_from_wire(member, attribute.members);
  }
}

}  // namespace

// Only the members of a list have an order.
bool operator==(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.type != b.type) return false;
  if (value_text(a) != value_text(b)) return false;
  if (a.type == Type::list) return a.members == b.members;
  if (a.members.size() != b.members.size()) return false;
  // std::is_permutation() compares a pair of members more than once, which
  // doubles its time with each level of nested maps.
  std::vector<bool> matched(b.members.size());
  for (const Attribute& one : a.members) {
    std::size_t at = 0;
    while (at < matched.size() && (matched[at] || one != b.members[at])) ++at;
    if (at == matched.size()) return false;
    matched[at] = true;
  }
  return true;
}

std::string to_item(const Attributes& attributes, std::error_code& ec) {
  detail::ErrorReporter reporter;
  sigv4::Text text;
  detail::run(reporter, ec, [&]() -> ErrorPtr {
    if (ErrorPtr bad = check_all(attributes)) return bad;
    if (attributes.empty()) return nullptr;
    dynamodb::Item item;
    for (const Attribute& attribute : attributes) add_wire(attribute, item);
    dynamodb::JsonWriter json(text);
    dynamodb::write_item(json, item);
    return nullptr;
  });
  return text.take();
}

Attributes attributes_of(const std::string& item) {
  dynamodb::Item parsed;
  Attributes attributes;
  if (!detail::parse_item(item, parsed)) return attributes;
  for (const Wire& wire : parsed) add_from_wire(wire, attributes);
  return attributes;
}

}  // namespace v0
}  // namespace ddbmutex
