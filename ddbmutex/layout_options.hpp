// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What TableOptions::layout means for the other options, and for how a lock
// uses its row.
//
//   set_layout_defaults(table_options);
//   if (ErrorPtr bad = check_layout(table_options)) return bad;
//   target.layout = find_layout(table_options);
//   set_layout_policy(target.policy, options, table_options);
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_LAYOUT_OPTIONS_HPP
#define DDBMUTEX_LAYOUT_OPTIONS_HPP

#include <optional>

#include "../ddbmutex.hpp"
#include "errors.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Null: it is not in this build.
const lock::Layout* find_layout(const TableOptions& table);

// Replaces the defaults that hold for layout ddblock only.
void set_layout_defaults(TableOptions& table);

// What is wrong with the layout, or with options of it.
ErrorPtr check_layout(const TableOptions& table);

// Whether a release keeps the row, by Options::keep_row.
bool keeps_rows(std::optional<bool> keep_row, const TableOptions& table);

// Refuses options that a layout of another library has no room for.
ErrorPtr check_for_layout(const Options& options, const TableOptions& table);

// Sets what depends on the layout.  REQUIRES: the rest of the policy is set.
void set_layout_policy(lock::RowPolicy& policy, const Options& options,
                       const TableOptions& table);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LAYOUT_OPTIONS_HPP
