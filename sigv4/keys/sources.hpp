// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sources of keys: the settings that they share, one search, and the
// sources of the core, which core_parts.cpp puts into a table.
//
// The outcome is `broken` for a profile that has no keys and has a source's
// property without a value.  A search that went on would sign as the container
// or the instance.
//
// Settings that only qualify a source (duration_seconds, external_id,
// mfa_serial, role_session_name, sso_registration_scopes) are ignored if the
// profile does not use that source.  So are source_profile and
// credential_source without role_arn.
//
// The files are read anew each time.
#ifndef DDBMUTEX_SIGV4_SOURCES_HPP
#define DDBMUTEX_SIGV4_SOURCES_HPP

#include <memory>
#include <string>
#include <vector>

#include "../parts.hpp"
#include "../profile.hpp"
#include "credentials.hpp"
#include "from_hosts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct Services;  // What extras/keys/sts.hpp needs to ask STS.

// The settings of the sources, and what they remember.
struct Chain {
  explicit Chain(const Parts& the_parts) : parts(the_parts) {}

  const Parts& parts;
  // The keys of the options and of the environment, read when this is made.
  KeyOutcome given{};
  KeyOutcome environment{};
  ProfilePlace place{};
  bool named = false;  // The options name the profile.
  // Why the profile could not be used when this was made.  Its settings were
  // not read, so it stays unusable.
  std::string unusable{};
  bool missing = false;  // The profile is unusable because it does not exist.
  std::string token_file{};  // AWS_WEB_IDENTITY_TOKEN_FILE, unless `named`.
  ContainerSettings container{};
  Instance instance{};
  std::shared_ptr<Services> services{};  // Null without extras/keys.
};

// One search for keys.
struct Search {
  Chain& chain;
  const Fetch& fetch;
  // The profile whose keys are wanted, with its files as they are now; null
  // until open_profile().
  std::unique_ptr<Profile> profile{};
  // The profiles that name another one as their source, from the first one on.
  std::vector<std::string> path{};
  // The search has ended because the profiles are misconfigured.
  bool blocked = false;

  bool in_source_profile() const { return !path.empty(); }
};

// Ends the search because the profiles are misconfigured.
inline KeyOutcome blocked(Search& search, Pieces reason) {
  search.blocked = true;
  return broken_keys(reason);
}

// --- The sources, in their order ---------------------------------------------

// Those of a profile return `none` without a reason if the profile does not
// configure them.  Those that are "not a source" give no keys, but may end the
// search.

// The keys of the options.
KeyOutcome keys_given(Search& search);
// Not a source: a named profile that does not exist must not be replaced by
// other keys.
KeyOutcome check_profile_name(Search& search);
KeyOutcome keys_of_environment(Search& search);
// Not a source: reads the profile's files.
KeyOutcome open_profile(Search& search);
// Not a source: refuses what extras/keys would use before the keys in the
// credentials file.  A search that went on would sign with other keys.
KeyOutcome refuse_roles_and_sign_on(Search& search);
KeyOutcome keys_in_credentials_file(Search& search);
// Not a source: the same, before the keys in the config file.
KeyOutcome refuse_login_and_program(Search& search);
KeyOutcome keys_in_config_file(Search& search);
// Not a source: the same, of a profile without keys.
KeyOutcome refuse_part_of_sign_on(Search& search);
// Not a source: broken if a source's property has no value.  Else `none`, with
// a reason that covers all sources of the profile.
KeyOutcome check_profile(Search& search);
KeyOutcome keys_of_container(Search& search);
KeyOutcome keys_of_instance(Search& search);

// --- What they are made of ---------------------------------------------------

// Asks only the sources of profiles, for the keys of search.profile, which is
// the source_profile of another one.
KeyOutcome keys_of_source_profile(Search& search);

// The profile's aws_access_key_id, aws_secret_access_key and, if set,
// aws_session_token and aws_account_id in that file.  After a minute they
// should be read again.  `none` without a reason if it has no keys there.
KeyOutcome keys_in_file(const Profile& profile, const ProfileFile& file);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SOURCES_HPP
