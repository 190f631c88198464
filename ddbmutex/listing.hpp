// What stands in a table, as it is told to users.
//
//   tell_all(table, options, selection_of(options), waiting,
//            [](const LockInfo& info) { return show(info); });
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_LISTING_HPP
#define DDBMUTEX_LISTING_HPP

#include <functional>
#include <string>
#include <vector>

#include "../ddbmutex.hpp"
#include "answer.hpp"
#include "ask.hpp"
#include "clock.hpp"
#include "mutex.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// REQUIRES: the row is understood.
void tell_row(const lock::Row& row, const TableOptions& options,
              const dynamodb::ServiceClock& clock, LockInfo& info);

// The record of each item, and of what users have stored `more`, which may be
// large.  Good for as long as both arguments are.
dynamodb::Selection selection_of(const TableOptions& options,
                                 const std::vector<std::string>& more = {});

// Calls `each` for those whose key begins with the table's prefix, until it
// returns false.
dynamodb::Answer tell_all(lock::Table& table, const TableOptions& options,
                          const dynamodb::Selection& selection,
                          const dynamodb::Waiting& waiting,
                          const std::function<bool(const LockInfo&)>& each);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LISTING_HPP
