// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What users store with a lock: their bytes, and other attributes as JSON.
// Checks it, and converts it to and from a DynamoDB item.
//
//   if (ErrorPtr bad = check_stored(options, table)) ...
//   item = to_item(options.data, options.item);
//   ...
//   info.item = item_text(row.others, table);
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_STORED_HPP
#define DDBMUTEX_STORED_HPP

#include <optional>
#include <string>

#include "../ddbmutex.hpp"
#include "dynamodb/item.hpp"
#include "errors.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Refuses what is no item, the record's own attributes, and the table's key.
// DynamoDB itself checks values, how large the item is, and how many attributes
// a PutItem names.
ErrorPtr check_stored(const Options& options, const TableOptions& table);
ErrorPtr check_changes(const Changes& changes, const TableOptions& table);

// Why DynamoDB would refuse the name of an attribute; "" if it would not.
const char* name_problem(const std::string& name);
// The same as a whole, with the name: `a name that is not UTF-8: "x"`.
std::string bad_name(const std::string& name);

// Reads a text as an item.  False if it is none, or if it has more than is read
// (see read_item()).  An empty text is an empty item.
bool parse_item(const std::string& text, dynamodb::Item& item);

// REQUIRES: both have been checked.
dynamodb::Item to_item(const std::optional<std::string>& data,
                       const std::string& item);

// `others` is lock::Row::others.  data_of() returns nothing if `data` is not
// binary, or not valid base64.
std::optional<std::string> data_of(const dynamodb::Item& others);
// Leaves out `data`, the table's key and attributes of unknown types.  Empty if
// nothing is left.
std::string item_text(const dynamodb::Item& others, const TableOptions& table);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_STORED_HPP
