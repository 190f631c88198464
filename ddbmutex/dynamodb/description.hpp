// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The description of a table, which DescribeTable, CreateTable and DeleteTable
// return.
//
// Pure functions.
#ifndef DDBMUTEX_DESCRIPTION_HPP
#define DDBMUTEX_DESCRIPTION_HPP

#include <string>

#include "answer.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

struct TableDescription {
  // "CREATING", "UPDATING", "DELETING", "ACTIVE", and rarer ones.
  std::string status;
  // Whether items can be read and written.
  bool is_usable() const { return status == "ACTIVE" || status == "UPDATING"; }
  // Whether the state ends by itself, and soon.
  bool is_passing() const {
    return status == "CREATING" || status == "DELETING";
  }
  // A later table of the same name has another.  Empty if the engine has none.
  std::string id;
  // The partition key.  Empty only if the table is being deleted.
  std::string key;
  std::string sort_key;  // Empty if there is none.
  // "S", "N" or "B".  Empty if the description does not say.
  std::string key_type, sort_key_type;
  // Replicas in other regions see a write only later, so a condition that holds
  // here may not hold there.  Replicas of the legacy version of global tables
  // (2017.11.29) are noticed only if the description names that version.  Only
  // DescribeGlobalTable is sure to name it.
  bool eventual_replicas = false;
};

// Which key the table has, if it is not these attributes, of strings; else
// empty.  Also empty if the table is being deleted and the description has no
// key.  `sort_key` is empty if there should be none.
std::string wrong_key(const TableDescription& table, const std::string& key,
                      const std::string& sort_key);

// The Reader of DescribeTable, CreateTable and DeleteTable.
void read_table(Value body, const Wanted&, Answer& answer);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_DESCRIPTION_HPP
