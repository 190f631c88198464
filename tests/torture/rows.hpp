// The rows of a torture before it begins and after it has ended, by somebody
// who takes no other part in it.
//
//   make_rows(table);        // What kept rows have that no worker knows of.
//   ...
//   take_all(table, events); // Once all is quiet.
#ifndef DDBMUTEX_TESTS_TORTURE_ROWS_HPP
#define DDBMUTEX_TESTS_TORTURE_ROWS_HPP

#include <memory>

#include "ddbmutex.hpp"
#include "tests/torture/diary.hpp"

namespace torture {

void make_rows(const std::shared_ptr<ddbmutex::Table>& table);

// Takes every name, all at once, and writes among the events which it got and
// whether the kept rows are whole.
void take_all(const std::shared_ptr<ddbmutex::Table>& table, Events& events);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_ROWS_HPP
