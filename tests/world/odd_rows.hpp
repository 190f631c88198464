// Items that are no locks, or are none for programs that do not keep rows.
// "The library never takes or changes an item that it does not understand."
#ifndef DDBMUTEX_TESTS_WORLD_ODD_ROWS_HPP
#define DDBMUTEX_TESTS_WORLD_ODD_ROWS_HPP

#include <string>

#include "ddbmutex.hpp"
#include "tests/support/layouts.hpp"
#include "tests/world/random.hpp"

namespace world {

// The name of the mutex that finds one.
constexpr const char* kOddLock = "odd";

// The JSON of its attributes, without the key.
std::string draw_odd_row(Random& random, tests::Layout layout, bool keeps);

// Whether a take may count up the row's token, although it does not get the
// lock: no condition can ask whether a number is whole.
bool may_be_counted(const std::string& row);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_ODD_ROWS_HPP
