// A home directory and an environment of a test's own.
#ifndef DDBMUTEX_TESTS_SUPPORT_HOME_HPP
#define DDBMUTEX_TESTS_SUPPORT_HOME_HPP

#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "sigv4/profile.hpp"

namespace tests {

struct Home {
  Home() {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "ddbmutex-XXXXXX").string();
    BOOST_TEST_REQUIRE(mkdtemp(name.data()) != nullptr);
    root = name;
    fs::create_directory(root / ".aws");
    variables["HOME"] = name;
  }
  ~Home() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  // Returns the file's path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(root / name) << text;
    return (root / name).string();
  }
  // Sees `variables` as they are when asked; not to outlive this.
  ddbmutex::sigv4::Environment environment() const { return *this; }
  std::string operator()(const char* name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  }

  std::filesystem::path root;
  std::map<std::string, std::string> variables;
};

// Set in this process's own environment, and put back.  Null: not set.
class ProcessVariable {
 public:
  ProcessVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    set(value);
  }
  ~ProcessVariable() { set(before_ ? before_->c_str() : nullptr); }
  ProcessVariable(const ProcessVariable&) = delete;
  ProcessVariable& operator=(const ProcessVariable&) = delete;

 private:
  void set(const char* value) const {
    if (value != nullptr) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }

  const char* const name_;
  std::optional<std::string> before_;
};

// Of warnings, each of which has a line end.
inline bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_HOME_HPP
