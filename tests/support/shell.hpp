// Commands of a shell that a test runs at the top of the project.
#ifndef DDBMUTEX_TESTS_SUPPORT_SHELL_HPP
#define DDBMUTEX_TESTS_SUPPORT_SHELL_HPP

#include <stdio.h>
#include <sys/wait.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>

#include "tests/support/files.hpp"

namespace tests {

struct Ran {
  int status = -1;   // Of the last command; -1 if a signal ended it.
  std::string said;  // What they all wrote, complaints too.
};

// Whatever `make` runs this test, these are no commands of its.
inline Ran shell(const std::string& commands) {
  FILE* pipe = popen(("exec 2>&1; unset MAKEFLAGS MFLAGS MAKELEVEL; cd '" +
                      project().string() + "' || exit; " + commands)
                         .c_str(),
                     "re");
  BOOST_TEST_REQUIRE(pipe != nullptr);
  Ran ran;
  std::array<char, 4096> bytes;
  while (const std::size_t got = fread(bytes.data(), 1, bytes.size(), pipe)) {
    ran.said.append(bytes.data(), got);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ran.status = WEXITSTATUS(status);
  return ran;
}

// The compiler of this build.
inline std::string compiler() {
  const char* name = std::getenv("CXX");
  return name == nullptr ? "c++" : name;
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_SHELL_HPP
