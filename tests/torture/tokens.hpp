// Whether the fencing tokens of kept rows kept their promise in one run of the
// torture: each acquisition of a name got a higher one than those before it,
// none was given twice, and the row of each name was never deleted nor lost
// what others had stored with it.
//
//   for (const TokenProblem& one : judge_tokens(history)) print(one.words);
#ifndef DDBMUTEX_TESTS_TORTURE_TOKENS_HPP
#define DDBMUTEX_TESTS_TORTURE_TOKENS_HPP

#include <optional>
#include <string>
#include <vector>

#include "tests/torture/history.hpp"

namespace torture {

struct TokenProblem {
  std::string name;
  std::string words;
  // Whose and when; nothing: of a row.
  std::optional<int> process;
  std::optional<nanoseconds> at;
};

std::vector<TokenProblem> judge_tokens(const History& history);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_TOKENS_HPP
