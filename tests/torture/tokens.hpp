// Whether the fencing tokens of kept rows kept their promise in one run of the
// torture.  Each acquisition of a name got a higher token than those before it,
// and no token was given twice.
//
//   for (const std::string& one : judge_tokens(history)) print(one);
#ifndef DDBMUTEX_TESTS_TORTURE_TOKENS_HPP
#define DDBMUTEX_TESTS_TORTURE_TOKENS_HPP

#include <string>
#include <vector>

#include "tests/torture/history.hpp"

namespace torture {

// What went wrong: "kept-1: gave 5 to process 1.1 at 0.01 s, then ...".
std::vector<std::string> judge_tokens(const History& history);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_TOKENS_HPP
