// One run of the torture as a table to read.
//
//   std::fputs(table_of(history, found).c_str(), stdout);
#ifndef DDBMUTEX_TESTS_TORTURE_TABLE_HPP
#define DDBMUTEX_TESTS_TORTURE_TABLE_HPP

#include <string>

#include "tests/torture/judge.hpp"

namespace torture {

// Lines, the last with its end.  It has every rule that was broken, each with
// the words of its first violations.
std::string table_of(const History& history, const Findings& found);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_TABLE_HPP
