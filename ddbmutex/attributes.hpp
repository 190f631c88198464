// What users store with a lock, as DynamoDB's items have it, and back.
//
//   if (Failure bad = check_stored(options, table)) ...
//   place.attributes = to_item(options.data, options.attributes);
//   ...
//   tell_stored(row.others, table, info);
//
// A part that may be left out: then nothing can be stored, and nothing is told
// of what others have.
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_ATTRIBUTES_HPP
#define DDBMUTEX_ATTRIBUTES_HPP

#include "../ddbmutex.hpp"
#include "failure.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

#ifdef DDBMUTEX_NO_ATTRIBUTES

inline Failure check_stored(const Options& options, const TableOptions&) {
  constexpr const char* kLeftOut = "compiled without `attributes`";
  return check_all(
      {{"data", options.data ? kLeftOut : ""},
       {"attributes", options.attributes.empty() ? "" : kLeftOut}});
}
inline dynamodb::Item to_item(const std::optional<std::string>&,
                              const Attributes&) {
  return {};
}
inline void tell_stored(const dynamodb::Item&, const TableOptions&, LockInfo&) {
}

#else

// What DynamoDB would refuse of them, or would not store as it is told, and
// what is the record's own or the table's key.  How large the item may be, and
// how many attributes a PutItem may name, is left to DynamoDB.
Failure check_stored(const Options& options, const TableOptions& table);
// The same of "changes".
Failure check(const Changes& changes, const TableOptions& table);

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

#endif

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ATTRIBUTES_HPP
