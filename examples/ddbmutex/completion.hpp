// Scripts that complete command lines, made from the tables of options.hpp.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_COMPLETION_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_COMPLETION_HPP

#include <string>

namespace command {

// Of "bash", "zsh" or "fish".  Throws UsageError.
std::string completion(const std::string& shell);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_COMPLETION_HPP
