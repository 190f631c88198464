// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads the items of a table as locks.  An item that is not understood is
// described by its name and a problem, so that one odd row hides no others.
#include "listing.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/text.hpp"
#include "attributes.hpp"
#include "dynamodb/clock.hpp"
#include "layout_options.hpp"
#include "lock/layouts.hpp"
#include "lock/protocol.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {

using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// The attribute of that name; empty if there is none that is a string.
std::string_view text_of(const dynamodb::Item& item, std::string_view name) {
  const dynamodb::Attribute* attribute = dynamodb::find(item, name);
  const bool text = attribute != nullptr &&
                    attribute->type == dynamodb::Attribute::Type::string;
  return text ? std::string_view(attribute->value) : std::string_view();
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  for (const std::string& known : names) {
    if (known == name) return;
  }
  names.push_back(name);
}

void describe_record(const Row& row, const TableOptions& options,
                     const dynamodb::Client& client, LockInfo& info) {
  info.exists = true;
  info.released = row.expires == nanoseconds::zero();
  info.uuid = row.uuid;
  info.owner = row.owner;
  info.lease = row.lease.value_or(milliseconds::zero());
  info.expires = row.expires;
  info.token = static_cast<std::uint64_t>(row.token);
  const dynamodb::ServiceClock clock = client.clock();
  if (info.released || !clock.known() ||
      row.expires >= lock::kBeyondAllClocks) {
    return;  // Nothing says when the lease ends.
  }
  const BootTime now = BootClock::now();
  const milliseconds margin =
      options.calendar_margin.value_or(milliseconds::zero());
  info.expired = lock::is_over_for_newcomers(row.expires, margin, clock, now);
  // Programs of other libraries store no lease, and add no margin to the end.
  const nanoseconds end =
      row.expires - (row.lease ? margin : milliseconds::zero());
  const auto left =
      std::chrono::duration_cast<milliseconds>(end - clock.middle(now));
  info.left = left;
  if (row.lease) info.age = std::max(*row.lease - left, milliseconds::zero());
}

}  // namespace

LockInfo detail::describe(dynamodb::Item&& item, const TableOptions& options,
                          const dynamodb::Client& client) {
  const Row row = lock::read_row(std::move(item), *find_layout(options));
  LockInfo info;
  if (row.kind == Row::Kind::unknown) {
    info.problem = row.problem;
    return info;
  }
  info.keep_row = row.has_token || row.kind == Row::Kind::bare;
  info.data = data_of(row.others);
  info.attributes = attributes_of(row.others, options);
  if (!row.unread.empty()) {
    info.problem = sigv4::join(
        {sigv4::in_quotes(row.unread), " was not read: more than ",
         sigv4::Digits(dynamodb::kMostOthers),
         " values are stored, or they are nested more than 32 deep"});
  }
  if (row.kind == Row::Kind::record) {
    describe_record(row, options, client, info);
  }
  return info;
}

dynamodb::Selection detail::selection_of(const TableOptions& options,
                                         const std::vector<std::string>& more) {
  dynamodb::Selection selection;
  selection.table = options.name;
  selection.prefix = options.prefix;
  add_once(selection.attributes, options.key);
  if (!options.sort_key.empty()) {
    add_once(selection.attributes, options.sort_key);
  }
  selection.key_attributes = selection.attributes.size();
  selection.checks_key = true;
  selection.wanted = lock::wanted_of(*find_layout(options), true);
  for (const dynamodb::AttributeName& name : find_layout(options)->names) {
    add_once(selection.attributes, name.attribute);
  }
  for (const std::string& name : more) add_once(selection.attributes, name);
  return selection;
}

std::optional<LockInfo> detail::describe_next(dynamodb::Items& items,
                                              const TableOptions& options) {
  while (dynamodb::Item* item = items.next()) {
    const std::string key(text_of(*item, options.key));
    // An item whose key is not a string, or is empty, is not a lock.
    if (key.empty() || !sigv4::begins_with(key, options.prefix)) continue;
    const std::string sort_value(text_of(*item, options.sort_key));
    LockInfo info;
    if (items.too_large()) {
      info.problem = "it is too large to be read";
    } else {
      info = describe(std::move(*item), options, items.client());
    }
    info.name = key.substr(options.prefix.size());
    info.sort_value = sort_value;
    return info;
  }
  return std::nullopt;
}

}  // namespace v0
}  // namespace ddbmutex
