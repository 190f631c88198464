// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What the sources of keys share: their settings, one search, and the sources
// that a profile may configure.  The first one that is configured is used, as
// in botocore:
//
//   role_arn                 with source_profile (another profile with one of
//                            these sources) or credential_source; unless there
//                            is a web_identity_token_file
//   web_identity_token_file  with role_arn.  The variables
//                            AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN and
//                            AWS_ROLE_SESSION_NAME each replace a property
//   sso_account_id, sso_role_name    by the AWS CLI, after `aws sso login`
//   keys in the credentials file
//   login_session            by the AWS CLI, after `aws login`
//   credential_process
//   keys in the config file
//
// AWS's JavaScript SDK has another order: role, keys in either file, web
// identity, program, single sign-on, login.  So it may use other keys if a
// profile has several of these.
//
// A source_profile with keys of its own needs no role of its own, and may be
// the profile itself.  The environment is not its source.
//
// The outcome is `broken` for
//   * a role_arn with none, or both, of source_profile and credential_source;
//   * a source_profile that does not exist, or has no keys;
//   * profiles that name each other in a circle, or more than 200 in a row;
//   * a profile that has no keys and configures a source only in part:
//     source_profile or credential_source without role_arn, or sso_session,
//     sso_start_url or sso_region without sso_account_id and sso_role_name.  A
//     search that went on would sign as the container or the instance.
//     (botocore goes on; the JavaScript SDK refuses only a partial sign-on.)
//   * a profile that has no keys and a source's property without a value.
//
// The AWS CLI also assumes roles with an mfa_serial: it can ask a person for
// the code.  Other roles are assumed here, also if the AWS CLI gives the keys
// of their source_profile.
//
// Settings that only qualify a source (duration_seconds, external_id,
// mfa_serial, role_session_name, sso_registration_scopes) are ignored if the
// profile does not use that source.
//
// The files are read anew each time.
#ifndef DDBMUTEX_SIGV4_SOURCES_HPP
#define DDBMUTEX_SIGV4_SOURCES_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../../extras/keys/program.hpp"
#include "../profile.hpp"
#include "credentials.hpp"
#include "from_hosts.hpp"
#include "service_call.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// The variables for a web identity; empty if they are not set.
struct WebIdentityVariables {
  std::string token_file;
  std::string role_arn;
  std::string session_name;
};

// The settings of the sources, and what they remember.
struct Chain {
  // The keys of the options and of the environment, read when this is made.
  KeyOutcome given{};
  KeyOutcome environment{};
  ProfilePlace place{};
  bool named = false;  // The options name the profile.
  // Why the profile could not be used when this was made.  Its settings were
  // not read, so it stays unusable.
  std::string unusable{};
  bool missing = false;  // The profile is unusable because it does not exist.
  ContainerSettings container{};
  Instance instance{};
  WebIdentityVariables web_identity{};
  Services services{};
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

// Whether the profile's keys are those of a role that is assumed with other
// keys.
bool wants_role(const Profile& profile);

// --- The sources of a profile ------------------------------------------------
//
// Each returns `none` without a reason if the profile does not configure it.

// Not a source: reads the profile's files.
KeyOutcome open_profile(Search& search);
// role_arn with source_profile or credential_source.
KeyOutcome keys_by_role(Search& search);
// role_arn with a web identity.
KeyOutcome keys_by_web_identity(Search& search);
// sso_account_id or sso_role_name.
KeyOutcome keys_by_sign_on(Search& search);
KeyOutcome keys_in_credentials_file(Search& search);
// login_session.
KeyOutcome keys_by_login(Search& search);
// credential_process.
KeyOutcome keys_by_program(Search& search);
KeyOutcome keys_in_config_file(Search& search);
// Not a source: broken if the profile configures a source only in part.  Else
// `none`, with a reason that covers all sources of the profile.
KeyOutcome check_profile(Search& search);

// Asks all of these for the keys of search.profile, which is the source_profile
// of another one.
KeyOutcome keys_of_source_profile(Search& search);

// --- Parts of these sources --------------------------------------------------

// Asks the AWS CLI for the keys of search.profile.  REQUIRES: its role has an
// mfa_serial.
KeyOutcome keys_by_mfa(Search& search);

// Runs a program that writes keys, as run_program() does.  `place`: where it is
// configured, for people.
struct KeyRun {
  KeyOutcome keys;
  ProgramResult program;
};
KeyRun run_for_keys(std::string words, std::string settings,
                    const std::string& place, const Fetch& fetch);

// Runs a credential_process.  `place`: where it is configured, for people:
// `credential_process of profile "x" in "/home/u/.aws/config"`.
KeyOutcome process_keys(const std::string& command, const std::string& place,
                        const Fetch& fetch);

// The profile's aws_access_key_id, aws_secret_access_key and, if set,
// aws_session_token and aws_account_id in that file.  After a minute they
// should be read again.
KeyOutcome keys_in_file(const Profile& profile, const ProfileFile& file);

struct Role {
  std::string_view arn;
  // The name of the session in AWS's logs.  Empty: "ddbmutex-" and sixteen
  // random digits.
  std::string_view session_name;
  std::string_view external_id;  // Only for assume_role(); empty: none.
  // How long the keys last, in seconds.  Empty: an hour.
  std::string_view duration;
  std::string place;  // For people: where the role is configured.
  Setting region;     // Of the STS that is asked.
};

// AssumeRole, signed with the keys of `source`.  If those are of a role too,
// STS allows at most an hour.  REQUIRES: the state of `source` is not `none`.
KeyOutcome assume_role(const Role& role, KeyOutcome source,
                       const Services& services, const Fetch& fetch);

// AssumeRoleWithWebIdentity, not signed.  Blanks and line ends around the token
// in its file are ignored.  (AWS's tools send them, and are refused.)
KeyOutcome assume_by_web_identity(const Role& role,
                                  const std::string& token_file,
                                  const Services& services, const Fetch& fetch);

// Reads the answer to an action ("AssumeRole").  Broken if it is not one. Pure.
KeyOutcome read_sts_keys(std::string_view action, std::string_view body,
                         std::int64_t utc_now);

// The account of "arn:aws:sts::123456789012:assumed-role/..."; empty if there
// is none.  Pure.
std::string account_of(std::string_view arn);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SOURCES_HPP
