// What users store with a lock, as DynamoDB's items have it, and back.
//
//   if (Failure bad = check(options.attributes, table, "attributes")) ...
//   place.attributes = to_item(options.data, options.attributes);
//   ...
//   Attributes stored = attributes_of(row.others, table);
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_ATTRIBUTES_HPP
#define DDBMUTEX_ATTRIBUTES_HPP

#include <optional>
#include <string>

#include "../ddbmutex.hpp"
#include "failure.hpp"
#include "item.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// In one update: its text has 4 KB at the most.
constexpr std::size_t kMostChanges = 100;

// What DynamoDB would refuse of them, or would not store as it is told, and
// what is the record's own or the table's key.  How large the item may be, and
// how many attributes a request may name, is left to DynamoDB.  `field`:
// "attributes".
Failure check(const Attributes& attributes, const TableOptions& table,
              const std::string& field);
// The field is "changes".
Failure check(const Changes& changes, const TableOptions& table);

// REQUIRES: they pass check().
dynamodb::Item to_item(const std::optional<std::string>& data,
                       const Attributes& attributes);
lock::Changes to_changes(const Changes& changes);

// Of lock::Row::others.  Bytes that are no base64, and types that are not
// known, are left out, and so is `data` that is not of bytes.
std::optional<std::string> data_of(const dynamodb::Item& others);
// Without the table's key.
Attributes attributes_of(const dynamodb::Item& others,
                         const TableOptions& table);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ATTRIBUTES_HPP
