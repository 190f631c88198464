// A table as DescribeTable and its siblings describe it.
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
  // Not that of a later table of the same name.  Empty if the engine has none.
  std::string id;
  // The names of its key's parts.  Empty where there is no such part; the first
  // only where nothing is told, as may be of a table that is being deleted.
  std::string key;
  std::string sort_key;
  bool of_strings = true;  // All parts of the key are.
  // There are replicas in other regions that see a write only later, so that a
  // condition which holds here may not hold there.  Those of global tables of
  // the legacy version (2017.11.29) are seen only if DynamoDB tells the version
  // here; DescribeGlobalTable alone is sure to.
  bool eventual_replicas = false;
};

// The Reader of DescribeTable, CreateTable and DeleteTable.
void read_table(Value body, const Wanted&, Answer& answer);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_DESCRIPTION_HPP
