// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One odd row hides no others: an item that is not understood is described by
// its name and a problem.
#include "listing.hpp"

#include <string_view>
#include <utility>

#include "../ddbmutex/inspect.hpp"
#include "../ddbmutex/lock/row_format.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
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

}  // namespace

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
  selection.wanted = lock::wanted_of(*options.rows, true);
  for (const dynamodb::AttributeName& name : options.rows->names) {
    add_once(selection.attributes, name.attribute);
  }
  for (const std::string& name : more) add_once(selection.attributes, name);
  return selection;
}

std::optional<LockInfo> detail::describe_next(dynamodb::Items& items,
                                              const TableOptions& options) {
  while (dynamodb::Item* item = items.next()) {
    const std::string key(text_of(*item, options.key));
    // A lock has a name.  So a key of another type is no lock's.
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
