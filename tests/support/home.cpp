#include "tests/support/home.hpp"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>
#include <system_error>

namespace tests {

Home::Home() {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "ddbmutex-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make " + name);
  }
  root = name;
  fs::create_directory(root / ".aws");
  variables["HOME"] = name;
}

Home::~Home() {
  std::error_code ignored;
  std::filesystem::remove_all(root, ignored);
}

std::string Home::write(const std::string& name,
                        const std::string& text) const {
  std::ofstream(root / name) << text;
  return (root / name).string();
}

ddbmutex::sigv4::Environment Home::environment() const { return *this; }

std::string Home::operator()(const char* name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

ProcessVariable::ProcessVariable(const char* name, const char* value)
    : name_(name) {
  if (const char* before = getenv(name)) before_ = before;
  set(value);
}

ProcessVariable::~ProcessVariable() {
  set(before_ ? before_->c_str() : nullptr);
}

void ProcessVariable::set(const char* value) const {
  if (value != nullptr) {
    setenv(name_, value, 1);
  } else {
    unsetenv(name_);
  }
}

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace tests
