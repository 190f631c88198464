// The project's own files, as texts that a test compares.
#ifndef DDBMUTEX_TESTS_SUPPORT_FILES_HPP
#define DDBMUTEX_TESTS_SUPPORT_FILES_HPP

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tests {

// This file is tests/support/files.hpp.
inline std::filesystem::path project() {
  return std::filesystem::path(__FILE__)
      .parent_path()
      .parent_path()
      .parent_path();
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(project() / path);
  BOOST_TEST_REQUIRE(file.good(), path << " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What stands between two markers, neither included.
inline std::string between(const std::string& text, const std::string& from,
                           const std::string& to) {
  const auto begin = text.find(from);
  BOOST_TEST_REQUIRE(begin != text.npos, "no " << from);
  const auto end = text.find(to, begin + from.size());
  BOOST_TEST_REQUIRE(end != text.npos, "no " << to);
  return text.substr(begin + from.size(), end - begin - from.size());
}

// What a group of the expression (ECMAScript's) matches, wherever it does; `^`
// and `$` match at each line.
std::vector<std::string> all_matches(const std::string& text,
                                     const std::string& expression,
                                     std::size_t group = 1);
// The text with each match replaced by `with`, in which $1 is the first group.
std::string replaced(const std::string& text, const std::string& expression,
                     const std::string& with);

inline std::set<std::string> as_set(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_FILES_HPP
