#include "tests/support/shell.hpp"

#include <stdio.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

#include "tests/support/files.hpp"

namespace tests {

Ran shell(const std::string& commands) {
  FILE* pipe = popen(("exec 2>&1; unset MAKEFLAGS MFLAGS MAKELEVEL; cd '" +
                      project().string() + "' || exit; " + commands)
                         .c_str(),
                     "re");
  if (pipe == nullptr) throw std::runtime_error("no shell for " + commands);
  Ran ran;
  std::array<char, 4096> bytes;
  while (const std::size_t got = fread(bytes.data(), 1, bytes.size(), pipe)) {
    ran.said.append(bytes.data(), got);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ran.status = WEXITSTATUS(status);
  return ran;
}

std::string compiler() {
  const char* name = std::getenv("CXX");
  return name == nullptr ? "c++" : name;
}

}  // namespace tests
