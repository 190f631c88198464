// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// guarded_write.hpp: writes to DynamoDB that are made only while a lock is
// held.
//
//   #include "extras/guarded_write.hpp"
//
//   ddbmutex::guarded_write(mutex, R"([{"Put": {"TableName": ...}}])");
//
// Thread safety and errors: as for the calls of DdbMutex.
#ifndef DDBMUTEX_GUARDED_WRITE_HPP
#define DDBMUTEX_GUARDED_WRITE_HPP

#include <string>
#include <system_error>

#include "../ddbmutex.hpp"

namespace ddbmutex {
inline namespace v0 {

// Sends your writes in one TransactWriteItems that DynamoDB carries out only
// if the lock is ours at that moment.  If DynamoDB finds that it is not,
// before our clock shows a loss, the writes are refused with Errc::lease_lost
// and the lease is renewed at once.  If the renewal finds the lock lost, or
// is not answered within request_timeout, owns_lock() turns false and on_lost
// is called.
//
// `items` is a JSON array of 1 to 99 elements of TransactItems, such as
// `[{"Put": {...}}, {"Update": {...}}]`, for tables of one account and
// region.  Errors: condition_failed, if a condition of yours does not hold
// (the Error's text has its position, from 1 on, and DynamoDB's words);
// no_table and access_denied, for any of these tables or the lock's;
// bad_request, also if an item's key does not fit its table.
//
// Transient errors are retried for `patience`, but for at most 9 minutes.
// The writes are made at most once: all attempts have one ClientRequestToken,
// which DynamoDB remembers for 10 minutes.
//
// Use keep_row with guarded writes.  Without it, a request of ours that
// reaches DynamoDB late can bring back a row that was deleted, and so let an
// old guarded write pass, even one that was refused.
void guarded_write(DdbMutex& mutex, const std::string& items,
                   std::error_code& ec = detail::throws());
// The condition that guarded_write() adds, for programs that send the
// transaction themselves: the JSON of a ConditionCheck, to be added to
// TransactItems.  Errors: not_held.
std::string condition_check(const DdbMutex& mutex,
                            std::error_code& ec = detail::throws());

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_GUARDED_WRITE_HPP
