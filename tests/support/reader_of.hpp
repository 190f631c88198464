// Who reads what the answers of an action hold beside an item, for tests that
// ask for any of them.
#ifndef TESTS_SUPPORT_READER_OF_HPP
#define TESTS_SUPPORT_READER_OF_HPP

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/dynamodb/ask.hpp"
#include "ddbmutex/dynamodb/description.hpp"
#include "extras/pages.hpp"
#include "extras/transact.hpp"

namespace tests {

inline ddbmutex::dynamodb::Reader reader_of(ddbmutex::dynamodb::Action action) {
  using ddbmutex::dynamodb::Action;
  switch (action) {
    case Action::scan:
    case Action::query:
      return ddbmutex::dynamodb::read_page;
    case Action::describe_table:
    case Action::create_table:
    case Action::delete_table:
      return ddbmutex::dynamodb::read_table;
    case Action::transact_write_items:
      return ddbmutex::dynamodb::read_cancellation;
    default:
      return nullptr;
  }
}

}  // namespace tests

#endif  // TESTS_SUPPORT_READER_OF_HPP
