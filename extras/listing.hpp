// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The items of a table, one after the other, each described as a LockInfo.
//
//   const dynamodb::Selection selection = selection_of(options);
//   dynamodb::Items items(context, selection, page_time);
//   while (const auto info = describe_next(items, options)) show(*info);
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_LISTING_HPP
#define DDBMUTEX_LISTING_HPP

#include <optional>
#include <string>
#include <vector>

#include "../ddbmutex.hpp"
#include "pages.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Selects the items whose key begins with the table's prefix.  It reads their
// keys, the attributes of their lock records, and those that `more` names,
// which may be large.  Both arguments must outlive the result.
dynamodb::Selection selection_of(const TableOptions& options,
                                 const std::vector<std::string>& more = {});

// Describes the next item whose key begins with the table's prefix.  Returns
// nullopt after the last one.
std::optional<LockInfo> describe_next(dynamodb::Items& items,
                                      const TableOptions& options);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LISTING_HPP
