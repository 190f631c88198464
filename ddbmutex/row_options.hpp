// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What TableOptions::rows means for the other options, and for how a lock uses
// its row.
//
//   set_row_defaults(table_options);
//   if (ErrorPtr bad = check_margin(table_options)) return bad;
//   set_row_policy(target.policy, options, table_options);
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_ROW_OPTIONS_HPP
#define DDBMUTEX_ROW_OPTIONS_HPP

#include <optional>

#include "../ddbmutex.hpp"
#include "errors.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Sets `rows` if it is null, and replaces the defaults that hold for layout
// ddblock only.  The other functions REQUIRE that this was called.
void set_row_defaults(TableOptions& table);

inline bool is_ddblock(const TableOptions& table) {
  return table.rows == &lock::kDdblock;
}

// What is wrong with calendar_margin.
ErrorPtr check_margin(const TableOptions& table);

// Whether a release keeps the row, by Options::keep_row.
bool keeps_rows(std::optional<bool> keep_row, const TableOptions& table);

// Refuses options that a layout of another library has no room for.
ErrorPtr check_for_layout(const Options& options, const TableOptions& table);

// Sets what depends on the layout.  REQUIRES: the rest of the policy is set.
void set_row_policy(lock::RowPolicy& policy, const Options& options,
                    const TableOptions& table);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ROW_OPTIONS_HPP
