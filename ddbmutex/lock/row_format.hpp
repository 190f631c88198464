// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Layouts: how a lock's row looks as an item, and how a request that changes it
// looks as JSON.
//
//   row.problem = layout.read(item, row);
//   body.add(layout.expressions(policy).is_ours);
//
// requests.cpp writes the requests of all layouts; a layout says what differs.
// ddblock is ours (ddblock.cpp).  The others are those of other libraries
// (extras/layouts.cpp), so that a table can be shared with their programs: they
// see our locks, and we see theirs.
//
// Thread safety: layouts are constants.
#ifndef DDBMUTEX_ROW_FORMAT_HPP
#define DDBMUTEX_ROW_FORMAT_HPP

#include <string_view>

#include "../dynamodb/item.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class RequestBody;

// Expressions as DynamoDB reads them.  "#uuid" stands for the attribute that
// the layout calls so, "#key" for the partition key, "#data" for the user's
// `data`, ":uuid" for the value that RowFormat::write_value() gives it, and
// ":own" for the list of Request::own.
struct Expressions {
  // Updates:
  const char* record;       // The SET of a take.  A PutItem stores the same.
  const char* renew;        // A renewal's.
  const char* release;      // Frees a row that is kept.
  const char* take_end;     // What a take does after its SET.
  const char* release_end;  // The same of a release.
  // Tells the holder that a host waits.  "" in layouts of other libraries:
  // their programs do not know the attribute.
  const char* wait;
  // Conditions:
  const char* has_own_version;  // The row has one of Request::own.
  const char* is_ours;          // The row has any version of ours.
  const char* and_held;         // After is_ours: and it is not released.
  const char* and_change;       // After both, if the user's attributes change.
  const char* or_stale;         // After a take's other conditions.
  const char* is_seen;   // The row has the version that the operator saw.
  const char* may_wait;  // It has the uuid that a waiter saw, and no waiter.
};

class RowFormat {
 public:
  // What a lock does unless its options say otherwise.
  struct Defaults {
    bool stores_end = true;  // A row says when its lease ends.
    bool keeps_rows = false;
    bool must_exist = false;  // Nobody makes rows, and nobody deletes them.
    RowPolicy::Take take = RowPolicy::Take::usual;
    bool lease_as_found = false;  // A take writes the lease in the row's form.
  };

  // Reads an item, which is not empty, and sets the kind of the row.  Returns
  // what is not understood; "" if nothing.
  virtual const char* read(const dynamodb::Item& item, Row& row) const = 0;

  // Adds the condition that nobody holds the lock.
  virtual void add_is_free(const RowPolicy& policy,
                           RequestBody& body) const = 0;
  const Expressions& expressions(const RowPolicy& policy) const {
    return policy.keeps_row ? kept_ : deleted_;
  }

  // Writes the version, which differs in every write of a record.
  virtual void write_version(std::string_view uuid, ServiceTime expires,
                             dynamodb::JsonWriter& json) const;
  // Writes what ":word" stands for.
  virtual void write_value(std::string_view word, const RowTarget& target,
                           const Request& request,
                           dynamodb::JsonWriter& json) const;

  // The attribute that is called "#word" in expressions.
  std::string_view attribute(std::string_view word) const;

  // All attributes of a record except the key and `data`.
  const dynamodb::AttributeNames names;
  const Defaults defaults;

 protected:
  constexpr RowFormat(dynamodb::AttributeNames the_names, Defaults the_defaults,
                      const Expressions& deleted, const Expressions& kept)
      : names(the_names),
        defaults(the_defaults),
        deleted_(deleted),
        kept_(kept) {}
  ~RowFormat() = default;

 private:
  const Expressions& deleted_;  // Where a release deletes the row.
  const Expressions& kept_;     // Where it keeps the row.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ROW_FORMAT_HPP
