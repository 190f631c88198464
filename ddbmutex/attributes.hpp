// What users store with a lock, as DynamoDB's items have it, and back.
//
//   if (ErrorPtr bad = check_stored(options, table)) ...
//   place.attributes = to_item(options.data, options.attributes);
//   ...
//   tell_stored(row.others, table, info);
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

// What DynamoDB would refuse of them, or would not store as it is told, and
// what is the record's own or the table's key.  How large the item may be, and
// how many attributes a PutItem may name, is left to DynamoDB.
ErrorPtr check_stored(const Options& options, const TableOptions& table);
// The same of "changes".
ErrorPtr check(const Changes& changes, const TableOptions& table);

// REQUIRES: they are checked.
dynamodb::Item to_item(const std::optional<std::string>& data,
                       const Attributes& attributes);

// Of lock::Row::others.  Bytes that are no base64, and types that are not
// known, are left out, and so is `data` that is not of bytes.
std::optional<std::string> data_of(const dynamodb::Item& others);
// Without the table's key.
Attributes attributes_of(const dynamodb::Item& others,
                         const TableOptions& table);
void tell_stored(const dynamodb::Item& others, const TableOptions& table,
                 LockInfo& info);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ATTRIBUTES_HPP
