// Commands of a shell that a test runs at the top of the project.
#ifndef DDBMUTEX_TESTS_SUPPORT_SHELL_HPP
#define DDBMUTEX_TESTS_SUPPORT_SHELL_HPP

#include <string>

namespace tests {

struct Ran {
  int status = -1;   // Of the last command; -1 if a signal ended it.
  std::string said;  // What they all wrote, complaints too.
};

// Whatever `make` runs this test, these are no commands of its.
Ran shell(const std::string& commands);

// The compiler of this build.
std::string compiler();
// The options of this build's sanitizers, with a blank before them; "" if there
// are none.
std::string sanitizers();

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_SHELL_HPP
