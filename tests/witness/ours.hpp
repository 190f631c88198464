// What ddbmutex makes of a combination: by the parts of which Table is made,
// which can be told an environment.
#ifndef DDBMUTEX_TESTS_WITNESS_OURS_HPP
#define DDBMUTEX_TESTS_WITNESS_OURS_HPP

#include <ctime>

#include "ddbmutex/dynamodb/endpoint.hpp"
#include "extras/parts.hpp"
#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/from_all.hpp"
#include "sigv4/keys/from_hosts.hpp"
#include "tests/support/aws.hpp"
#include "tests/witness/answers.hpp"
#include "tests/witness/combination.hpp"
#include "tests/witness/outcome.hpp"

namespace witness {

inline ddbmutex::dynamodb::Target our_target(const Placed& placed) {
  ddbmutex::dynamodb::TargetOptions options;
  options.region = placed.combination.region;
  options.profile = placed.combination.profile;
  return ddbmutex::dynamodb::find_target(options, ddbmutex::sigv4::all_parts(),
                                         placed);
}

inline ddbmutex::sigv4::KeyOutcome our_keys(
    const Placed& placed, const ddbmutex::dynamodb::Target& target) {
  ddbmutex::sigv4::ChainOptions options;
  options.profile = placed.combination.profile;
  options.region = target.region_said;
  options.find_region = target.error.empty() && target.region.empty();
  const auto source = ddbmutex::sigv4::chain_keys(
      options, ddbmutex::sigv4::all_parts(), placed);
  ddbmutex::sigv4::Waker stop;
  return source->fetch(
      {ddbmutex::BootClock::now() + tests::kPlenty, stop, std::time(nullptr)});
}

inline Outcomes ours(const Placed& placed, const tests::Aws& aws) {
  using State = ddbmutex::sigv4::KeyOutcome::State;
  Outcomes outcomes = {{"keys", {}}, {"region", {}}, {"endpoint", {}}};
  auto target = our_target(placed);
  const auto found = our_keys(placed, target);
  const auto& keys = found.keys;
  if (found.state == State::found) {
    outcomes["keys"] = of_keys(keys.access_key_id, keys.secret_access_key.str(),
                               keys.session_token.str(),
                               way_of(aws.log(), placed.combination));
  }
  if (!target.error.empty()) return outcomes;
  if (target.region.empty()) {
    complete(target, {found.region, found.source});
    if (!target.error.empty()) return outcomes;
  }
  use_account(target, "", keys.account_id);
  if (!target.error.empty()) return outcomes;
  outcomes["region"] = {target.region};
  outcomes["endpoint"] = of_endpoint(target.endpoint);
  return outcomes;
}

}  // namespace witness

#endif  // DDBMUTEX_TESTS_WITNESS_OURS_HPP
