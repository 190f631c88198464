// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// layouts.hpp: the row formats of other libraries, for TableOptions::rows.
// Their programs and yours can then lock the same names in the same table.
//
//   #include "extras/layouts.hpp"
//
//   ddbmutex::TableOptions table;
//   table.rows = &ddbmutex::layouts::dynamolock;
//   table.key = "key";  // As those libraries usually have it.
//
// examples/README.md says, under "Side by side", what is not safe in each of
// them.  There is no prefix unless you set one other than "ddblock-".  There
// are no fencing tokens: their clients copy the number without counting, or
// drop it.
//
// Clients of lockclient and lease (and of ddblock, our own layout) judge a
// lease by their own host's calendar: see TableOptions::calendar_margin.
//
// Clients of dynamolock and awslabs take a lock once they have seen its row
// unchanged for its lease.  There, a program that tries only once does not get
// a dead holder's lock, LockInfo::expires has no meaning, calendar_margin is
// refused, and a ttl is at least 1 s.  They write `leaseDuration` in a form of
// their own ("20s" or "20000"), and fail on the other form; we read both.  The
// layouts `..._as_found` write it in the form that the row already has.  Then
// each lock() reads the item first: one request more.
#ifndef DDBMUTEX_LAYOUTS_HPP
#define DDBMUTEX_LAYOUTS_HPP

#include "../ddbmutex.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace layouts {

// samstradling/dynamodb-lock-client-golang: `identifier`, `expiry`.  Rows are
// deleted.
extern const lock::RowFormat& lockclient;
// intercom/lease: `ProcessID`, `LeaseUntil`.  Rows must exist, with a
// LeaseUntil, which may be 0 (else Errc::no_row or bad_record), and are always
// kept.
extern const lock::RowFormat& lease;
// cirello-io/dynamolock: `ownerName`, `leaseDuration` ("20s"),
// `recordVersionNumber`, `isReleased`.  Rows are kept.
extern const lock::RowFormat& dynamolock;
extern const lock::RowFormat& dynamolock_as_found;
// awslabs/amazon-dynamodb-lock-client: the same with "20000".  Rows are
// deleted.
extern const lock::RowFormat& awslabs;
extern const lock::RowFormat& awslabs_as_found;

}  // namespace layouts
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LAYOUTS_HPP
