// The suites of a run against AWS: cases of tests/test_*.cpp that use nothing
// but the public API and a table, in a few processes beside one another.
#ifndef DDBMUTEX_TESTS_LIVE_SUITES_HPP
#define DDBMUTEX_TESTS_LIVE_SUITES_HPP

#include <string>
#include <vector>

namespace live {

// The cases that one process runs, one after the other.
struct Group {
  std::string name;
  std::vector<std::string> cases;  // "suite/case"
};

// From cases.txt beside this file.
std::vector<Group> all_groups();

// True if all passed.  Prints how each group went.  `logs`: a directory for
// their output.
bool run_suites(const std::vector<Group>& groups, const std::string& logs);

}  // namespace live

#endif  // DDBMUTEX_TESTS_LIVE_SUITES_HPP
