// `ddbmutex watch`: the locks of a table as they change.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_WATCH_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_WATCH_HPP

#include "examples/ddbmutex/options.hpp"

namespace command {

// Ends by a signal, or throws what verdict_on() knows.
[[noreturn]] void watch(const Settings& settings);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_WATCH_HPP
