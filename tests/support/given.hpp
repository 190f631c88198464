// What a Client or a search for keys is given by a test: where, and which keys.
#ifndef DDBMUTEX_TESTS_SUPPORT_GIVEN_HPP
#define DDBMUTEX_TESTS_SUPPORT_GIVEN_HPP

#include <cstdint>
#include <functional>
#include <string>

#include "ddbmutex/dynamodb/endpoint.hpp"
#include "sigv4/keys/credentials.hpp"

namespace tests {

ddbmutex::dynamodb::Target target_at(const std::string& endpoint,
                                     const std::string& region);

// A function as a source of keys.
ddbmutex::sigv4::KeySourcePtr source_of(
    std::function<ddbmutex::sigv4::KeyOutcome(const ddbmutex::sigv4::Fetch&)>
        fetch);

// Keys that are at hand.
ddbmutex::sigv4::KeySourcePtr given_keys(
    const ddbmutex::sigv4::Credentials& keys);

// For a source that looks at no clock.
constexpr auto kNoClock = [] { return std::int64_t{0}; };

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_GIVEN_HPP
