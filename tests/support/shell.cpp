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

std::string sanitizers() {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return " -fsanitize=thread";
#elif __has_feature(address_sanitizer)
  return " -fsanitize=address,undefined";
#endif
#endif
#if defined(__SANITIZE_THREAD__)
  return " -fsanitize=thread";
#elif defined(__SANITIZE_ADDRESS__)
  return " -fsanitize=address,undefined";
#else
  return "";
#endif
}

}  // namespace tests
