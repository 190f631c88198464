// A home directory and an environment of a test's own.
#ifndef DDBMUTEX_TESTS_SUPPORT_HOME_HPP
#define DDBMUTEX_TESTS_SUPPORT_HOME_HPP

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "sigv4/settings.hpp"

namespace tests {

struct Home {
  Home();
  ~Home();
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  // Returns the file's path.
  std::string write(const std::string& name, const std::string& text) const;
  // Sees `variables` as they are when asked; not to outlive this.
  ddbmutex::sigv4::Environment environment() const;
  std::string operator()(const char* name) const;

  std::filesystem::path root;
  std::map<std::string, std::string> variables;
};

// Set in this process's own environment, and put back.  Null: not set.
class ProcessVariable {
 public:
  ProcessVariable(const char* name, const char* value);
  ~ProcessVariable();
  ProcessVariable(const ProcessVariable&) = delete;
  ProcessVariable& operator=(const ProcessVariable&) = delete;

 private:
  void set(const char* value) const;

  const char* const name_;
  std::optional<std::string> before_;
};

// Of warnings, each of which has a line end.
bool is_one_line(const std::string& text);
bool has(const std::string& text, const std::string& part);

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_HOME_HPP
