// Real processes that want the same locks of a table at AWS, and are stopped,
// killed and started again, some with a calendar that is hours off, while
// answers get lost.  The programs, the plan and the judge are those of
// tests/torture; leases and pauses are longer.
#ifndef DDBMUTEX_TESTS_LIVE_SHORT_TORTURE_HPP
#define DDBMUTEX_TESTS_LIVE_SHORT_TORTURE_HPP

#include <chrono>
#include <cstdint>
#include <string>

#include "tests/live/forwarder.hpp"
#include "tests/support/whereabouts.hpp"

namespace live {

// True if nothing was wrong; prints what was.
bool torture_shortly(const tests::Whereabouts& where, Forwarder& forwarder,
                     std::chrono::seconds time, std::uint32_t seed);

}  // namespace live

#endif  // DDBMUTEX_TESTS_LIVE_SHORT_TORTURE_HPP
