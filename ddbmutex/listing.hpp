// What stands in a table, as it is told to users.
//
//   const dynamodb::Selection selection = selection_of(options);
//   dynamodb::Items items(caller, selection, page_time);
//   for (;;) {
//     LockInfo info;
//     if (!tell_next(items, options, info)) break;
//     show(info);
//   }
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_LISTING_HPP
#define DDBMUTEX_LISTING_HPP

#include <string>
#include <vector>

#include "../ddbmutex.hpp"
#include "dynamodb/answer.hpp"
#include "dynamodb/ask.hpp"
#include "dynamodb/client.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// All but the name; `problem` alone if the item is not understood.
void tell_item(dynamodb::Item&& item, const TableOptions& options,
               const dynamodb::Client& client, LockInfo& info);

// The record of each item, and of what users have stored `more`, which may be
// large.  Good for as long as both arguments are.
dynamodb::Selection selection_of(const TableOptions& options,
                                 const std::vector<std::string>& more = {});

// The next whose key begins with the table's prefix; false if there is none.
// REQUIRES: `info` is as a new one.
bool tell_next(dynamodb::Items& items, const TableOptions& options,
               LockInfo& info);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LISTING_HPP
