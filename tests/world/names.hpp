// Lives that are about one thing: no connection can be made as usual.
#ifndef DDBMUTEX_TESTS_WORLD_NAMES_HPP
#define DDBMUTEX_TESTS_WORLD_NAMES_HPP

#include <cstdint>
#include <string>

namespace world {

// Holds locks for an hour.  For half of it no name resolves at their host, and
// now and then a connection breaks.  Returns what is wrong; empty if no lock
// was lost, and each was renewed all the time.  Once in a (real) process.
std::string hold_without_names(std::uint64_t seed);
// The same, but no connection breaks, and none can be made for half of the
// hour: a proxy refuses them, or the CA file is bad.
std::string hold_without_connections(std::uint64_t seed);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_NAMES_HPP
