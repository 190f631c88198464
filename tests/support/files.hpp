// The project's own files, as texts that a test compares.
#ifndef DDBMUTEX_TESTS_SUPPORT_FILES_HPP
#define DDBMUTEX_TESTS_SUPPORT_FILES_HPP

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace tests {

// Its directory.
std::filesystem::path project();

std::string read_file(const std::filesystem::path& path);

// What stands between two markers, neither included.
std::string between(const std::string& text, const std::string& from,
                    const std::string& to);

// What a group of the expression (ECMAScript's) matches, wherever it does; `^`
// and `$` match at each line.
std::vector<std::string> all_matches(const std::string& text,
                                     const std::string& expression,
                                     std::size_t group = 1);
// The text with each match replaced by `with`, in which $1 is the first group.
std::string replaced(const std::string& text, const std::string& expression,
                     const std::string& with);

std::set<std::string> as_set(const std::vector<std::string>& words);

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_FILES_HPP
