// The sources of keys that ask nobody, in their order, by themselves: the rest
// of the chain is not there.
//
//   const KeySourcePtr keys = usual_keys({}, home.environment());
#ifndef DDBMUTEX_TESTS_SUPPORT_OWN_KEYS_HPP
#define DDBMUTEX_TESTS_SUPPORT_OWN_KEYS_HPP

#include <string>
#include <utility>
#include <vector>

#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/from_profile.hpp"
#include "sigv4/profile.hpp"
#include "sigv4/text.hpp"
#include "tests/support/given.hpp"

namespace tests {

namespace own {

using namespace ddbmutex::sigv4;

// As from_profile.hpp has the order.
inline bool gets_keys_elsewhere(const Profile& profile) {
  for (const char* name : {"role_arn", "web_identity_token_file",
                           "sso_account_id", "sso_role_name"}) {
    if (profile.find(name)) return true;
  }
  return (profile.find("login_session") ||
          profile.find("credential_process")) &&
         keys_in_file(profile, profile.credentials).state ==
             KeyOutcome::State::none;
}

// What stands in the profile's files.
inline KeySourcePtr profile_keys(
    std::string_view name,
    const Environment& environment = process_environment) {
  return tests::source_of([place = locate_profile(name, environment)](
                              const Fetch&) {
    const Profile profile(place);
    if (!profile.error.empty()) return broken_keys(profile.error);
    if (gets_keys_elsewhere(profile)) {
      return broken_keys(
          "profile " + in_quotes(profile.name) +
          " has its keys from elsewhere, which this build of the library does "
          "not know how to do");
    }
    KeyOutcome outcome = keys_in_file(profile, profile.credentials);
    if (outcome.state == KeyOutcome::State::none) {
      outcome = keys_in_file(profile, profile.config);
    }
    if (outcome.state == KeyOutcome::State::none) {
      outcome = no_keys("no keys in profile " + in_quotes(profile.name) + " (" +
                        profile.whereabouts() + ")");
    }
    for (const ProfileFile* file : {&profile.credentials, &profile.config}) {
      if (file->warning().empty()) continue;
      outcome.warnings += file->warning() + "\n";
    }
    return outcome;
  });
}

struct KeyOptions {
  KeyTexts keys;             // Empty: look elsewhere.
  std::string_view profile;  // One that is named here goes before the
                             // environment's keys, as with AWS's tools.
};

// Those given, the environment's, the profile's.
inline KeySourcePtr usual_keys(
    const KeyOptions& options,
    const Environment& environment = process_environment) {
  std::vector<KeyOutcome> known = {keys_of_options(options.keys)};
  if (options.profile.empty()) {
    known.push_back(environment_keys(environment));
  }
  return tests::source_of(
      [known,
       last = profile_keys(options.profile, environment)](const Fetch& fetch) {
        std::string reasons;
        for (const KeyOutcome& keys : known) {
          if (keys.state != KeyOutcome::State::none) return keys;
          append(reasons, {keys.reason, "; "});
        }
        KeyOutcome outcome = last->fetch(fetch);
        if (outcome.state == KeyOutcome::State::none) {
          outcome.reason.insert(0, reasons);
        }
        return outcome;
      });
}

}  // namespace own

using own::KeyOptions;
using own::profile_keys;
using own::usual_keys;

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_OWN_KEYS_HPP
