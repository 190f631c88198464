// Scripts that complete command lines, made from the tables of options.hpp.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_COMPLETION_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_COMPLETION_HPP

#include <string>

namespace command {

// The script for "bash", "zsh" or "fish".  Throws UsageError for other shells.
std::string completion(const std::string& shell);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_COMPLETION_HPP
