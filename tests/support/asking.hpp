// Asking a source of keys, as a test does.
//
//   const KeyOutcome outcome = asked(*source);
//   BOOST_TEST(said(outcome) == "failed: ...");
//   KeyOutcome late = asked(*source, 300ms);
#ifndef DDBMUTEX_TESTS_SUPPORT_ASKING_HPP
#define DDBMUTEX_TESTS_SUPPORT_ASKING_HPP

#include <chrono>
#include <string>

#include "sigv4/keys/credentials.hpp"

namespace tests {

// "found: the place", "none: the reason", "failed: ...", "broken: ...".
std::string said(const ddbmutex::sigv4::KeyOutcome& outcome);

// All that people are told.
std::string texts_of(const ddbmutex::sigv4::KeyOutcome& outcome);

// On the boot clock, from now.
double seconds_left(const ddbmutex::sigv4::KeyOutcome& outcome);

// With much time, unless it is told otherwise.
ddbmutex::sigv4::KeyOutcome asked(
    ddbmutex::sigv4::KeySource& source,
    std::chrono::milliseconds within = std::chrono::minutes(1));

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_ASKING_HPP
