// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The options that depend on the layout: their defaults, their checks, and how
// they fill a RowPolicy.
#include "row_options.hpp"

#include <chrono>
#include <string>

#include "../sigv4/text.hpp"
#include "lock/row_format.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

using lock::RowPolicy;
using std::chrono::milliseconds;

namespace {

constexpr char kUsualPrefix[] = "ddblock-";  // In TableOptions.

// How far apart the wall clocks of other programs' hosts may be.
constexpr milliseconds kUsualMargin{2000};

const lock::RowFormat::Defaults& defaults_of(const TableOptions& table) {
  return table.rows->defaults;
}

}  // namespace

void set_row_defaults(TableOptions& table) {
  if (table.rows == nullptr) table.rows = &lock::kDdblock;
  if (is_ddblock(table)) return;
  if (table.prefix == kUsualPrefix) table.prefix.clear();
  if (defaults_of(table).stores_end && !table.calendar_margin) {
    table.calendar_margin = kUsualMargin;
  }
}

ErrorPtr check_margin(const TableOptions& table) {
  const milliseconds margin = table.calendar_margin.value_or(milliseconds(0));
  if (margin < milliseconds(0) || margin > std::chrono::hours(24)) {
    const std::string problem = sigv4::join(
        {sigv4::Digits(margin.count()), " ms is not from 0 to a day"});
    return bad_option({"calendar_margin", problem.c_str()});
  }
  if (!defaults_of(table).stores_end && table.calendar_margin) {
    return bad_option(
        {"calendar_margin", "no wall clock matters in this layout"});
  }
  return nullptr;
}

bool keeps_rows(std::optional<bool> keep_row, const TableOptions& table) {
  return keep_row.value_or(defaults_of(table).keeps_rows);
}

ErrorPtr check_for_layout(const Options& options, const TableOptions& table) {
  if (is_ddblock(table)) return nullptr;
  const lock::RowFormat::Defaults& defaults = defaults_of(table);
  if (options.fencing) {
    return bad_option(
        {"fencing", "a layout that is shared has no fencing tokens"});
  }
  if (defaults.must_exist && !keeps_rows(options.keep_row, table)) {
    return bad_option({"keep_row", "rows are always kept in this layout"});
  }
  // Old clients wrote the lease in seconds, so readers of these layouts take a
  // smaller number for seconds (extras/layouts.cpp).
  if (!defaults.stores_end && options.ttl < milliseconds(1000)) {
    const std::string problem =
        sigv4::join({sigv4::Digits(options.ttl.count()),
                     " ms is less than 1 s, the least in this layout"});
    return bad_option({"ttl", problem.c_str()});
  }
  return nullptr;
}

void set_row_policy(RowPolicy& policy, const Options& options,
                    const TableOptions& table) {
  policy.margin = table.calendar_margin.value_or(policy.margin);
  policy.needs_date = policy.margin > milliseconds(0);
  if (is_ddblock(table)) return;
  using Take = RowPolicy::Take;
  const lock::RowFormat::Defaults& defaults = defaults_of(table);
  policy.stores_end = defaults.stores_end;
  policy.needs_date = defaults.stores_end;
  policy.must_exist = policy.must_exist || defaults.must_exist;
  policy.looks_first = defaults.lease_as_found;
  policy.take = defaults.take;
  if (policy.take == Take::updates) {
    policy.keep_data = options.keep_data.value_or(true);
  } else if (policy.take == Take::puts) {
    // PutItem would remove all that it does not set.
    policy.keep_data = options.keep_data.value_or(false);
    if (policy.keep_data) policy.take = Take::updates;
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
