// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Creates the table, and checks whether locks can live in it.
//
// A call that sends a request blocks.  It retries transient faults, and waits
// for slow changes, until the caller's deadline or until its waker is woken.
// Then its answer is cancelled if it was woken; at the deadline it has the last
// transient fault, or timed_out if there was none.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_TABLE_SETUP_HPP
#define DDBMUTEX_TABLE_SETUP_HPP

#include <string>

#include "../ddbmutex.hpp"
#include "dynamodb/answer.hpp"
#include "dynamodb/ask.hpp"
#include "dynamodb/description.hpp"
#include "errors.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// How the table's key differs from the options; empty if it does not.
std::string wrong_key(const dynamodb::TableDescription& table,
                      const TableOptions& options);
// Why locks cannot live in the table: another key than the options name, or
// replicas.  Null if they can.
ErrorPtr unfit(const dynamodb::TableDescription& table,
               const TableOptions& options);

// The answer has the table, or the fault no_table.
dynamodb::Answer describe_table(const dynamodb::CallContext& context,
                                const TableOptions& options);

// Creates the table unless one of that name exists, waits until it is ACTIVE,
// and then turns its TTL on if `how` asks for it and the engine has one.  If
// there is no fault, the answer has the table.  The caller must check it: a
// table that existed may be unfit, and is then not changed.
//
// If the answer has a fault and its `action` is update_time_to_live, the table
// can be used, but DynamoDB will not delete rows of dead holders.
dynamodb::Answer create_table(const dynamodb::CallContext& context,
                              const TableOptions& options, const Creation& how);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TABLE_SETUP_HPP
