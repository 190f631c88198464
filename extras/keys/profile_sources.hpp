// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sources that a profile may configure.  The first one that is configured
// is used, as in botocore:
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
//   * a profile that has no keys and configures sign-on only in part:
//     sso_session, sso_start_url or sso_region without sso_account_id and
//     sso_role_name.  A search that went on would sign as the container or the
//     instance.  (botocore goes on; the JavaScript SDK refuses it.)
//
// The AWS CLI also assumes roles with an mfa_serial: it can ask a person for
// the code.  Other roles are assumed here, also if the AWS CLI gives the keys
// of their source_profile.
#ifndef DDBMUTEX_EXTRAS_PROFILE_SOURCES_HPP
#define DDBMUTEX_EXTRAS_PROFILE_SOURCES_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "../../sigv4/keys/sources.hpp"
#include "program.hpp"
#include "sts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Each returns `none` without a reason if the profile does not configure it.

// role_arn with source_profile or credential_source.
KeyOutcome keys_by_role(Search& search);
// role_arn with a web identity.
KeyOutcome keys_by_web_identity(Search& search);
// sso_account_id or sso_role_name.
KeyOutcome keys_by_sign_on(Search& search);
// login_session.
KeyOutcome keys_by_login(Search& search);
// credential_process.
KeyOutcome keys_by_program(Search& search);
// Not a source: broken if sign-on is configured only in part.
KeyOutcome check_sign_on(Search& search);

// --- Parts of these sources --------------------------------------------------

// Whether the profile's keys are those of a role that is assumed with other
// keys.
bool wants_role(const Profile& profile);

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

#endif  // DDBMUTEX_EXTRAS_PROFILE_SOURCES_HPP
