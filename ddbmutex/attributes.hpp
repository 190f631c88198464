// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What users store with a lock: checks it, and converts it to and from a
// DynamoDB item.
//
//   if (ErrorPtr bad = check_stored(options, table)) ...
//   item = to_item(options.data, options.attributes);
//   ...
//   info.attributes = attributes_of(row.others, table);
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_ATTRIBUTES_HPP
#define DDBMUTEX_ATTRIBUTES_HPP

#include "../ddbmutex.hpp"
#include "dynamodb/item.hpp"
#include "errors.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Refuses values that DynamoDB would refuse or change, the record's own
// attributes, and the table's key.  DynamoDB itself checks how large the item
// is, and how many attributes a PutItem names.
ErrorPtr check_stored(const Options& options, const TableOptions& table);
ErrorPtr check_changes(const Changes& changes, const TableOptions& table);

// REQUIRES: both have been checked.
dynamodb::Item to_item(const std::optional<std::string>& data,
                       const Attributes& attributes);

// `others` is lock::Row::others.  Both functions skip binary values that are
// not valid base64.  data_of() returns nothing if `data` is not binary.
std::optional<std::string> data_of(const dynamodb::Item& others);
// Leaves out the table's key and attributes of unknown types.
Attributes attributes_of(const dynamodb::Item& others,
                         const TableOptions& table);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ATTRIBUTES_HPP
