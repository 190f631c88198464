// `ddbmutex show`, `list`, `unlock` and `create-table`.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_LOCKS_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_LOCKS_HPP

#include <vector>

#include "ddbmutex.hpp"
#include "examples/ddbmutex/options.hpp"

namespace command {

// They return the exit status and throw what verdict_on() knows.
int show(const Settings& settings);
int list(const Settings& settings);
int unlock(const Settings& settings);
int create_table(const Settings& settings);

// By name.
std::vector<ddbmutex::LockInfo> all_locks(ddbmutex::Table& table);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_LOCKS_HPP
