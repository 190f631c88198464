// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// admin.hpp: makes and checks the table, lists its locks, and frees one by
// force.
//
//   #include "extras/admin.hpp"
//
//   ddbmutex::create_table(*table);
//   ddbmutex::list_locks(*table, [](const ddbmutex::LockInfo& info) {
//     std::puts(info.name.c_str());
//     return true;  // Go on.
//   });
//
// Thread safety and errors: as for the calls of Table.  Transient errors are
// retried for TableOptions::patience.
#ifndef DDBMUTEX_ADMIN_HPP
#define DDBMUTEX_ADMIN_HPP

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "../ddbmutex.hpp"

namespace ddbmutex {
inline namespace v0 {

// Whether a table with eventually consistent replicas is fit for locks.  It is
// only if all programs lock in one region.
enum class Replicas { refused, accepted };

// How create_table() makes the table.
struct Creation {
  struct Throughput {
    std::uint64_t read_units = 1;
    std::uint64_t write_units = 1;
  };
  std::optional<Throughput> throughput{};  // Default: pay per request.
  std::vector<std::pair<std::string, std::string>> tags{};
  // Lets DynamoDB delete rows that are not kept, a day or more after their
  // lease ended.  Only in layout ddblock.
  enum class CleanUp {
    never,
    // Only a table that this call makes.  A table that was there may have rows
    // with an attribute `ttl` of another meaning.  DynamoDB would delete those
    // where it looks like a time in the past.
    if_created,
    // Also a table that was there.
    always,
  };
  // If the engine has no such clean-up, create_table() succeeds, and a warning
  // is logged.  If it cannot be turned on for another reason, create_table()
  // fails with an error that says that the table is there.
  CleanUp clean_up = CleanUp::if_created;
  Replicas replicas = Replicas::refused;  // Of a table that was there.
};

// What create_table() has done.
struct Created {
  bool made = false;       // This call has certainly made the table.
  bool cleans_up = false;  // This call has turned the clean-up on.
};

// Creates the table with the key that its options name, and waits until it is
// usable: a minute at most.  A table that is being deleted is awaited, and then
// made anew.  An existing table is checked as by table_exists(), and not
// changed, unless Creation::clean_up asks for it.
Created create_table(Table& table, std::error_code& ec = detail::throws());
Created create_table(Table& table, const Creation& how,
                     std::error_code& ec = detail::throws());

// False if there is no such table, or if it is being deleted.  Errors:
// wrong_table, if its key differs from the options; replicated_table;
// unready_table, if its items cannot be used and it is not being created.  Call
// it when a program starts, to find a wrong table before the first lock does.
//
// A wrong key is remembered.  Until table_exists() or create_table() finds the
// key right, locks, inspect(), list_locks() and force_unlock() fail with
// wrong_table and send nothing.  Renewals and releases of locks that are held
// are still sent.
bool table_exists(Table& table, std::error_code& ec = detail::throws());
bool table_exists(Table& table, Replicas replicas,
                  std::error_code& ec = detail::throws());

// Calls `each` for every lock, in no particular order, until it returns false.
// An item is a lock if its key begins with the prefix.  Reads the whole table,
// one read unit for each 4,096 bytes, and keeps one page of items in memory.
// Does not read data and attributes.  A lock that is taken or released
// meanwhile may or may not be included.  The first call for a Table also sends
// a GetItem, which finds a wrong_table.
void list_locks(Table& table, const std::function<bool(const LockInfo&)>& each,
                std::error_code& ec = detail::throws());
// The same for all sort values of one name; reads no others.
void list_locks(Table& table, const std::string& name,
                const std::function<bool(const LockInfo&)>& each,
                std::error_code& ec = detail::throws());

// Frees the lock by force if its record is still exactly the one that was
// inspected; false if it is not.  Errors: also bad_option, if nothing was held.
//
// The holder, if it is alive, loses the lock and learns of it with its next
// renewal.  Until then, two may believe that they hold the lock.  A holder does
// not learn of it at all if it unlocks in an outage that lasts longer than its
// lease.  Programs of other libraries do not learn of it at once.  Those of
// lockclient and lease take the free lock again with their next heartbeat.
// Those of dynamolock and awslabs go on as if they held the lock, and learn of
// it only once another has taken it.
//
// The row is deleted only in layout ddblock, and only if it has no token.  Any
// other row is marked as free, as by a release, and the rest of it stays.
bool force_unlock(Table& table, const LockInfo& info,
                  std::error_code& ec = detail::throws());

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ADMIN_HPP
