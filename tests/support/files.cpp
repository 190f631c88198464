#include "tests/support/files.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tests {

// This file is tests/support/files.cpp.
std::filesystem::path project() {
  return std::filesystem::absolute(__FILE__)
      .parent_path()
      .parent_path()
      .parent_path();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(project() / path);
  if (!file.good()) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string between(const std::string& text, const std::string& from,
                    const std::string& to) {
  const auto begin = text.find(from);
  if (begin == text.npos) throw std::runtime_error("no " + from);
  const auto end = text.find(to, begin + from.size());
  if (end == text.npos) throw std::runtime_error("no " + to);
  return text.substr(begin + from.size(), end - begin - from.size());
}

std::set<std::string> as_set(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

}  // namespace tests
