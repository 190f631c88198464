#include "attributes.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "../sigv4/base64.hpp"
#include "../sigv4/shared.hpp"
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

// As DynamoDB's documentation bounds them.
constexpr std::size_t kLongestName = 255;
constexpr int kMostDigits = 38;
constexpr int kHighestExponent = 125;
constexpr int kLowestExponent = -130;
constexpr int kDeepest = 32;

// In one update: its text has 4 KB at the most.
constexpr std::size_t kMostChanges = 100;

// The enumerations name the same types in the same order, but for the last.
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

// Takes the digits off the front of the text.
std::string_view take_digits(std::string_view& text) {
  const std::size_t end =
      std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

// Takes one of those off the front.  0 if none is there.
char take_one_of(const char* those, std::string_view& text) {
  if (text.empty() || text.find_first_of(those) != 0) return '\0';
  const char taken = text.front();
  text.remove_prefix(1);
  return taken;
}

// False if it is not a decimal number, or if its exponent has more than four
// digits: no number of DynamoDB's has.
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

// Why it is no number of DynamoDB's; empty if it is one.
const char* not_a_number(std::string_view text) {
  Decimal number;
  if (!read_decimal(text, number)) return "not a decimal number";
  if (number.digits.empty()) return "";
  if (number.digits.size() > kMostDigits) return "more than 38 digits";
  const long exponent = number.exponent - 1;  // As of d.ddd.
  if (exponent > kHighestExponent) return "too large a number";
  return exponent < kLowestExponent ? "too small a number" : "";
}

// Equal for equal values.
std::string value_text(const Attribute& attribute) {
  Decimal number;
  if (attribute.type != Type::number ||
      !read_decimal(attribute.value, number)) {
    return attribute.value;
  }
  if (number.digits.empty()) return "0";
  return sigv4::format("%s%se%s", number.negative ? "-0." : "0.", number.digits,
                       number.exponent);
}

// --- What DynamoDB would refuse ----------------------------------------------

// Why it cannot be stored, its members aside; empty if it can.  `levels` is how
// many more there may be of lists and maps.
const char* not_storable(const Attribute& attribute, int levels) {
  const std::string& value = attribute.value;
  const bool none = attribute.members.empty();
  switch (attribute.type) {
    case Type::string:
      if (!lock::is_utf8(value)) return "not UTF-8";
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
  if (attribute.type <= Type::null) {
    return none ? "" : "members, which its type does not have";
  }
  if (attribute.type < Type::list) return none ? "an empty set" : "";
  return levels > 0 ? "" : "lists and maps nested more than 32 deep";
}

// What the members of a set are; those of nothing else.
Type member_of(Type set) {
  return set == Type::string_set   ? Type::string
         : set == Type::number_set ? Type::number
                                   : Type::binary;
}

// What is to be set or removed of an item.
struct Checker {
  const TableOptions& table;
  const char* const field;
  using Names = std::set<std::string>;
  Names seen{};
  std::string whose{};  // "\"name\": " of the attribute whose value is checked.

  ErrorPtr bad(const std::string& why) const {
    return detail::bad_option({field, (whose + why).c_str()});
  }

  // Each name may come once.
  ErrorPtr add_name(const std::string& name, Names& names) const {
    const char* why =
        name.empty()
            ? "empty"
            : detail::text_problem(name, kLongestName, "longer than 255 bytes");
    if (*why != '\0') {
      return bad(sigv4::format("a name that is %s%[: %q%]", why, name));
    }
    return names.insert(name).second
               ? nullptr
               : bad(sigv4::format("%q is given twice", name));
  }

  // `removed`: `data` may go as others do, though it is set otherwise.
  ErrorPtr add(const std::string& name, bool removed) {
    if (ErrorPtr wrong = add_name(name, seen)) return wrong;
    if (lock::is_of_record(*detail::find_layout(table), name) &&
        !(removed && name == lock::kDataAttribute)) {
      return bad(sigv4::format("%q is an attribute of the record", name));
    }
    if (name == table.key || name == table.sort_key) {
      return bad(sigv4::format("%q is the table's key", name));
    }
    return nullptr;
  }

  ErrorPtr check(const Attribute& attribute, int levels) const {
    const char* why = not_storable(attribute, levels);
    if (*why != '\0') return bad(why);
    const bool set = attribute.type < Type::list;
    Names names_or_values;
    for (const Attribute& member : attribute.members) {
      const bool map = attribute.type == Type::map;
      if (set && member.type != member_of(attribute.type)) {
        why = "a member that is not of the set's type";
      } else if (!map && !member.name.empty()) {
        why = "a member with a name";
      }
      if (*why != '\0') return bad(why);
      ErrorPtr wrong = map ? add_name(member.name, names_or_values) : nullptr;
      if (!wrong) wrong = check(member, levels - 1);
      if (wrong) return wrong;
      if (set && !names_or_values.insert(value_text(member)).second) {
        return bad("a member is given twice");
      }
    }
    return nullptr;
  }

  ErrorPtr add_all(const Attributes& attributes) {
    for (const Attribute& attribute : attributes) {
      if (ErrorPtr wrong = add(attribute.name, false)) return wrong;
      whose = sigv4::format("%q: ", attribute.name);
      if (ErrorPtr wrong = check(attribute, kDeepest)) return wrong;
      whose.clear();
    }
    return nullptr;
  }
};

// --- There and back ----------------------------------------------------------

// Adds it.
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

// Adds it, if it can be told.
void add_from_wire(const Wire& wire, Attributes& all) {
  std::optional<std::string> value = wire.value;
  if (wire.type == Wire::Type::binary) value = sigv4::base64_decode(*value);
  if (wire.type >= Wire::Type::other || !value) return;
  Attribute& attribute = all.emplace_back();
  attribute.name = wire.name;
  attribute.type = static_cast<Type>(wire.type);
  attribute.value.swap(*value);
  for (const Wire& member : wire.members) {
    add_from_wire(member, attribute.members);
  }
}

// Null if there are none.
lock::ChangesPtr to_changes(const Changes& changes) {
  if (!changes.data && changes.attributes.empty() && changes.remove.empty()) {
    return nullptr;
  }
  return sigv4::share<lock::Changes>(
      detail::to_item(changes.data, changes.attributes), changes.remove);
}

}  // namespace

// Lists alone have an order.
bool operator==(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.type != b.type) return false;
  if (value_text(a) != value_text(b)) return false;
  if (a.type == Type::list) return a.members == b.members;
  // What equals one equals all of its equals, so that any of them will do.
  std::string taken(b.members.size(), '\0');
  for (const Attribute& one : a.members) {
    std::size_t at = 0;
    while (at < taken.size() && (taken[at] != 0 || !(one == b.members[at]))) {
      ++at;
    }
    if (at == taken.size()) return false;
    taken[at] = 1;
  }
  return a.members.size() == taken.size();
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

ErrorPtr check(const Changes& changes, const TableOptions& table) {
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
    if (lock::is_of_record(*find_layout(table), wire.name)) continue;
    if (wire.name == table.key || wire.name == table.sort_key) continue;
    add_from_wire(wire, attributes);
  }
  return attributes;
}

void tell_stored(const dynamodb::Item& others, const TableOptions& table,
                 LockInfo& info) {
  info.data = data_of(others);
  info.attributes = attributes_of(others, table);
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
    ErrorPtr bad = impl.with_name(detail::check(changes, table));
    return bad ? std::move(bad) : impl.renew(to_changes(changes));
  });
}

void DdbMutex::release(const Changes& changes, std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    const TableOptions& table = impl.table->impl_->options;
    ErrorPtr bad = detail::check(changes, table);
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
