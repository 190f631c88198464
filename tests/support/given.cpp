#include "tests/support/given.hpp"

#include <memory>
#include <utility>

namespace tests {

using namespace ddbmutex::sigv4;

ddbmutex::dynamodb::Target target_at(const std::string& endpoint,
                                     const std::string& region) {
  ddbmutex::dynamodb::Target target;
  target.endpoint = endpoint;
  target.region = region;
  return target;
}

KeySourcePtr source_of(std::function<KeyOutcome(const Fetch&)> fetch) {
  struct Source final : KeySource {
    explicit Source(std::function<KeyOutcome(const Fetch&)>&& own)
        : fetch_by(std::move(own)) {}
    KeyOutcome fetch(const Fetch& fetch) override { return fetch_by(fetch); }
    const std::function<KeyOutcome(const Fetch&)> fetch_by;
  };
  return std::make_shared<Source>(std::move(fetch));
}

KeySourcePtr given_keys(const Credentials& keys) {
  struct Given final : KeySource {
    explicit Given(KeyOutcome&& keys) : outcome(std::move(keys)) {}
    KeyOutcome fetch(const Fetch&) override { return outcome; }
    const KeyOutcome* at_hand() const override { return &outcome; }
    const KeyOutcome outcome;
  };
  return std::make_shared<Given>(
      keys_of_options({keys.access_key_id, keys.secret_access_key,
                       keys.session_token, keys.account_id}));
}

}  // namespace tests
