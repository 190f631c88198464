// What a Client or a search for keys is given by a test: where, and which keys.
#ifndef DDBMUTEX_TESTS_SUPPORT_GIVEN_HPP
#define DDBMUTEX_TESTS_SUPPORT_GIVEN_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ddbmutex/dynamodb/endpoint.hpp"
#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/keys.hpp"
#include "sigv4/log.hpp"

namespace tests {

inline ddbmutex::dynamodb::Target target_at(const std::string& endpoint,
                                            const std::string& region) {
  ddbmutex::dynamodb::Target target;
  target.endpoint = endpoint;
  target.region = region;
  return target;
}

// A function as a source of keys.
template <class Function>
ddbmutex::sigv4::KeySourcePtr source_of(Function function) {
  struct Source final : ddbmutex::sigv4::KeySource {
    explicit Source(Function&& own) : fetch_by(std::move(own)) {}
    ddbmutex::sigv4::KeyOutcome fetch(
        const ddbmutex::sigv4::Fetch& fetch) override {
      return fetch_by(fetch);
    }
    Function fetch_by;
  };
  return std::make_shared<Source>(std::move(function));
}

// Keys that are at hand.
inline ddbmutex::sigv4::KeySourcePtr given_keys(
    const ddbmutex::sigv4::Credentials& keys) {
  struct Given final : ddbmutex::sigv4::KeySource {
    explicit Given(ddbmutex::sigv4::KeyOutcome&& keys)
        : outcome(std::move(keys)) {}
    ddbmutex::sigv4::KeyOutcome fetch(const ddbmutex::sigv4::Fetch&) override {
      return outcome;
    }
    const ddbmutex::sigv4::KeyOutcome* at_hand() const override {
      return &outcome;
    }
    const ddbmutex::sigv4::KeyOutcome outcome;
  };
  return std::make_shared<Given>(ddbmutex::sigv4::keys_of_options(
      {keys.access_key_id, keys.secret_access_key, keys.session_token,
       keys.account_id}));
}

// For a source that looks at no clock.
constexpr auto kNoClock = [] { return std::int64_t{0}; };

// A function of a level and a text as a log.
template <class Function>
ddbmutex::sigv4::LogPtr log_of(Function function) {
  struct Given : ddbmutex::sigv4::Log {
    explicit Given(Function&& given) : call(std::move(given)) {}
    void add(ddbmutex::sigv4::LogLevel level,
             const std::string& line) override {
      call(level, line);
    }
    Function call;
  };
  return std::make_shared<Given>(std::move(function));
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_GIVEN_HPP
