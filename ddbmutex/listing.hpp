// Describes the items of a table to users, as LockInfo.
//
//   const dynamodb::Selection selection = selection_of(options);
//   dynamodb::Items items(caller, selection, page_time);
//   for (;;) {
//     LockInfo info;
//     if (!describe_next(items, options, info)) break;
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

// Sets everything except the name and the sort value; only `problem` if the
// item is not understood.
void describe(dynamodb::Item&& item, const TableOptions& options,
              const dynamodb::Client& client, LockInfo& info);

// Selects the record of each item and the attributes `more`, which may be
// large.  Both arguments must outlive it.
dynamodb::Selection selection_of(const TableOptions& options,
                                 const std::vector<std::string>& more = {});

// Describes the next item whose key begins with the table's prefix.  False if
// there is none.  REQUIRES: `info` is a new one.
bool describe_next(dynamodb::Items& items, const TableOptions& options,
                   LockInfo& info);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LISTING_HPP
