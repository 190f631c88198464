// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Attributes that users store with a lock, and the calls of DdbMutex that read
// and change them.  DynamoDB's rules for numbers, sets and nesting are checked
// here, so that an error names the attribute that breaks one.
#include "attributes.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sigv4/base64.hpp"
#include "../sigv4/text.hpp"
#include "layout_options.hpp"
#include "lock/row.hpp"
#include "mutex_impl.hpp"
#include "table.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::ErrorPtr;
using Type = Attribute::Type;
using Wire = dynamodb::Attribute;

namespace {

// The limits in DynamoDB's documentation.
constexpr std::size_t kLongestName = 255;
constexpr int kMostDigits = 38;
constexpr int kHighestExponent = 125;
constexpr int kLowestExponent = -130;
constexpr int kDeepest = 32;

// In one update, because the text of an expression has 4 KB at most.
constexpr std::size_t kMostChanges = 100;

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

// Checks what one call would set and remove.
struct Checker {
  using Names = std::set<std::string>;

  const TableOptions& table;
  const char* const field;  // The option that errors name.
  Names seen{};
  // How errors begin: `"name": ` while the value of an attribute is checked.
  std::string where{};

  ErrorPtr bad(std::string_view why) const {
    std::string text = where;
    text += why;
    return detail::bad_option({field, text.c_str()});
  }

  // Checks a name and adds it to `names`, which must not have it yet.
  ErrorPtr add_name(const std::string& name, Names& names) const {
    const char* why =
        name.empty()
            ? "empty"
            : detail::text_problem(name, kLongestName, "longer than 255 bytes");
    if (*why != '\0') {
      return bad(
          sigv4::join({"a name that is ", why,
                       name.empty() ? "" : ": " + sigv4::in_quotes(name)}));
    }
    return names.insert(name).second
               ? nullptr
               : bad(sigv4::in_quotes(name) + " is given twice");
  }

  // Adds the name of an attribute.  `data` may be removed, but not set, because
  // Changes::data sets it.
  ErrorPtr add(const std::string& name, bool removed) {
    if (ErrorPtr wrong = add_name(name, seen)) return wrong;
    if (lock::is_record_attribute(*detail::find_layout(table), name) &&
        !(removed && name == lock::kDataAttribute)) {
      return bad(sigv4::in_quotes(name) + " is an attribute of the record");
    }
    if (name == table.key || name == table.sort_key) {
      return bad(sigv4::in_quotes(name) + " is the table's key");
    }
    return nullptr;
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

  ErrorPtr add_all(const Attributes& attributes) {
    for (const Attribute& attribute : attributes) {
      if (ErrorPtr wrong = add(attribute.name, false)) return wrong;
      where = sigv4::in_quotes(attribute.name) + ": ";
      if (ErrorPtr wrong = check(attribute, kDeepest)) return wrong;
      where.clear();
    }
    return nullptr;
  }
};

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

// Null if nothing changes.
lock::ChangesPtr to_changes(const Changes& changes) {
  if (!changes.data && changes.attributes.empty() && changes.remove.empty()) {
    return nullptr;
  }
  return std::make_shared<lock::Changes>(lock::Changes{
      detail::to_item(changes.data, changes.attributes), changes.remove});
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

namespace detail {

ErrorPtr check_stored(const Options& options, const TableOptions& table) {
  Checker checker{table, "attributes"};
  const bool updates =
      keeps_rows(options.keep_row, table) || options.keep_data.value_or(false);
  if (updates && options.attributes.size() > kMostChanges) {
    return checker.bad("more than 100, with keep_row or keep_data");
  }
  return checker.add_all(options.attributes);
}

ErrorPtr check_changes(const Changes& changes, const TableOptions& table) {
  Checker checker{table, "changes"};
  if (changes.attributes.size() + changes.remove.size() > kMostChanges) {
    return checker.bad("more than 100");
  }
  if (ErrorPtr bad = checker.add_all(changes.attributes)) return bad;
  for (const std::string& name : changes.remove) {
    if (ErrorPtr bad = checker.add(name, true)) return bad;
    if (changes.data && name == lock::kDataAttribute) {
      return checker.bad("`data` is both set and removed");
    }
  }
  return nullptr;
}

dynamodb::Item to_item(const std::optional<std::string>& data,
                       const Attributes& attributes) {
  dynamodb::Item item;
  if (data) add_wire({lock::kDataAttribute, Type::binary, *data, {}}, item);
  for (const Attribute& attribute : attributes) add_wire(attribute, item);
  return item;
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
    if (lock::is_record_attribute(*find_layout(table), wire.name)) continue;
    if (wire.name == table.key || wire.name == table.sort_key) continue;
    add_from_wire(wire, attributes);
  }
  return attributes;
}

}  // namespace detail

// --- The calls ---------------------------------------------------------------

std::optional<std::string> DdbMutex::data() const {
  const lock::Mutex* own = impl_->state.peek();
  if (own == nullptr) return std::nullopt;
  return detail::data_of(own->stored());
}

Attributes DdbMutex::attributes() const {
  const lock::Mutex* own = impl_->state.peek();
  if (own == nullptr) return {};
  return detail::attributes_of(own->stored(), impl_->table->impl_->options);
}

void DdbMutex::renew(const Changes& changes, std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    const TableOptions& table = impl.table->impl_->options;
    ErrorPtr bad = impl.with_name(detail::check_changes(changes, table));
    return bad ? std::move(bad) : impl.renew(to_changes(changes));
  });
}

void DdbMutex::release(const Changes& changes, std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    const TableOptions& table = impl.table->impl_->options;
    ErrorPtr bad = detail::check_changes(changes, table);
    auto others = bad ? nullptr : to_changes(changes);
    if (others != nullptr &&
        !detail::keeps_rows(impl.options.keep_row, table)) {
      bad = detail::bad_option(
          {"changes", "the row is not kept, so nothing stays in it"});
    }
    bad = impl.with_name(std::move(bad));
    return bad ? std::move(bad) : impl.release(others);
  });
}

}  // namespace v0
}  // namespace ddbmutex
