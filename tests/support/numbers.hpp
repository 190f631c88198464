// What a program of the tests is told: numbers by their names.
//
//   throttling rate=20 seconds=30
#ifndef DDBMUTEX_TESTS_SUPPORT_NUMBERS_HPP
#define DDBMUTEX_TESTS_SUPPORT_NUMBERS_HPP

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace tests {

using Numbers = std::map<std::string, long>;

// All there are have a default.  Throws where a word is none of them.
inline Numbers numbers_of(int argc, char** argv, Numbers numbers) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto at = word.find('=');
    const auto found = numbers.find(word.substr(0, at));
    if (at == word.npos || found == numbers.end()) {
      throw std::runtime_error(word + " is nothing here");
    }
    found->second = std::stol(word.substr(at + 1));
  }
  return numbers;
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_NUMBERS_HPP
