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

#include "../ddbmutex/dynamodb/answer.hpp"
#include "../ddbmutex/dynamodb/ask.hpp"
#include "../ddbmutex/dynamodb/description.hpp"
#include "../ddbmutex/errors.hpp"
#include "admin.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Why locks cannot live in the table: another key than the options name, its
// state, or replicas.  Null if they can.
ErrorPtr unfit(const dynamodb::TableDescription& table,
               const TableOptions& options, Replicas replicas);

struct CreationOutcome {
  // Has the table, or a fault.
  dynamodb::Answer answer;
  Created done;
};

// Creates the table unless one of that name exists.  Waits while it is being
// created or deleted; at the deadline the table may still be in that state.
// Then turns its TTL on, if the engine has one.  Changes no table that this
// call has not made, unless `how` asks for it, and none that is unfit.  The
// caller must check the table.
//
// If the answer has a fault and its `action` is update_time_to_live, the table
// can be used, but DynamoDB will not delete rows of dead holders.
CreationOutcome create_table(const dynamodb::CallContext& context,
                             const TableOptions& options, const Creation& how);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TABLE_SETUP_HPP
