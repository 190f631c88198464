// `ddbmutex run`: holds the lock while a command runs.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_RUN_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_RUN_HPP

#include "examples/ddbmutex/options.hpp"

namespace command {

// Returns the exit status.  Throws ddbmutex::Error and std::system_error, which
// verdict_on() explains.
int run(const Settings& settings);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_RUN_HPP
