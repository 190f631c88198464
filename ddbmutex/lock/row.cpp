// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads an item as a Row, as far as that is the same in all layouts.
#include "row.hpp"

#include <array>
#include <cassert>

#include "../../sigv4/system.hpp"
#include "../../sigv4/text.hpp"
#include "row_format.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;

std::string_view RowFormat::attribute(std::string_view placeholder) const {
  for (const dynamodb::AttributeName& name : names) {
    if (placeholder == name.placeholder) return name.attribute;
  }
  assert(placeholder ==
         "data");  // The same in all layouts, so it is not in `names`.
  return kDataAttribute;
}

dynamodb::Wanted wanted_of(const RowFormat& layout, bool with_others) {
  return {layout.names, kDataAttribute, with_others};
}

bool is_record_attribute(const RowFormat& layout, std::string_view attribute) {
  return attribute == kDataAttribute ||
         wanted_of(layout, false).is_of_record(attribute);
}

Row read_row(Item item, const RowFormat& layout) {
  Row row;
  if (item.empty()) return row;
  row.kind = Row::Kind::unknown;
  row.problem = layout.read(item, row);
  for (Attribute& attribute : item) {
    const std::string_view name = attribute.name;
    if (attribute.type == Attribute::Type::unread) {
      row.unread = name;
    } else if (name == kDataAttribute || !is_record_attribute(layout, name)) {
      row.others.push_back(std::move(attribute));
    }
  }
  return row;
}

std::optional<std::int64_t> parse_number(const Attribute* attribute) {
  if (attribute == nullptr || attribute->type != Attribute::Type::number) {
    return std::nullopt;
  }
  return dynamodb::parse_digits(attribute->value);
}

bool is_id(const Attribute* attribute) {
  return attribute != nullptr && attribute->type == Attribute::Type::string &&
         !attribute->value.empty() &&
         attribute->value.size() <= std::size_t{kLongestId};
}

const char* read_lease_and_owner(const Item& item, Row& row) {
  if (const Attribute* lease = dynamodb::find(item, "lease")) {
    const auto lease_ms = parse_number(lease);
    const std::chrono::milliseconds longest = kLongestLease;
    if (!lease_ms || *lease_ms < kShortestLease.count() ||
        *lease_ms > longest.count()) {
      return "lease is not a number of milliseconds up to a year";
    }
    row.lease = std::chrono::milliseconds(*lease_ms);
  }
  const Attribute* owner = dynamodb::find(item, "owner");
  if (owner != nullptr && owner->type == Attribute::Type::string) {
    row.owner = owner->value;
  }
  return "";
}

std::string fresh_uuid() {
  std::array<unsigned char, 16> bits;
  sigv4::fill_with_randomness(bits.data(), bits.size());
  std::string uuid(2 * bits.size(), '\0');
  sigv4::write_hex(bits, uuid.data());
  return uuid;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
