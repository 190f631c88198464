// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keys of profiles for which a person signs on or tells a code.  The AWS CLI
// gets them:
//
//   aws configure export-credentials --profile NAME --format process
//
// It writes what a credential_process writes (from_program.cpp), and reads the
// files that we read.  It caches what the person did, and refreshes that, for
// all programs of a user.  If the profile's own credential_process leads back
// to it, it notices that by a variable and gives up.
#include <string>
#include <string_view>
#include <utility>

#include "../../sigv4/text.hpp"
#include "profile_sources.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

// The AWS CLI exits so if it does not know a subcommand: version 1, and 2.
constexpr int kUnknown1 = 2, kUnknown2 = 252;

// What a person does before the CLI has keys.  The profile's name follows.
constexpr char kSsoLogin[] = "; to sign on, run: aws sso login --profile ";
constexpr char kLogin[] = "; to sign on, run: aws login --profile ";
constexpr char kTellCode[] =
    "; to tell the code, run at a terminal: "
    "aws sts get-caller-identity --profile ";

// The texts, each with a NUL behind it.
std::string with_nuls(Pieces texts) {
  std::string all;
  for (const std::string_view text : texts) (all += text) += '\0';
  return all;
}

// The account that the profile tells, which the CLI does not.
std::string account_in(const Profile& profile) {
  const std::string_view own = profile.value_of("sso_account_id");
  if (!own.empty()) return std::string(own);
  const std::string account = account_of(profile.value_of("login_session"));
  return account.empty() ? account_of(profile.value_of("role_arn")) : account;
}

// `property`: the profile has it, so the CLI is asked.  `advice`: what a person
// may have to do first.
KeyOutcome keys_by_cli(Search& search, const char* property,
                       const char* advice) {
  const Profile& profile = *search.profile;
  const std::string place =
      join({profile.find(property).source, ", by the AWS CLI"});
  if (ignores_environment()) {
    return broken_keys(
        {place, ", which PATH would name: ", kIgnoredEnvironment});
  }
  auto [keys, program] = run_for_keys(
      with_nuls({"aws", "configure", "export-credentials", "--profile",
                 profile.name, "--format", "process"}),
      with_nuls(
          {join({"AWS_CONFIG_FILE=", profile.config.path}),
           join({"AWS_SHARED_CREDENTIALS_FILE=", profile.credentials.path})}),
      place, search.fetch);
  if (keys.state == State::found) {
    keys.keys.account_id = account_in(profile);
  } else if (program.not_found) {
    keys.reason = join({place, ": there is no program \"aws\" on the PATH"});
  } else if (program.status == kUnknown1 || program.status == kUnknown2) {
    keys.state = State::broken;
    keys.reason += "; this AWS CLI is too old, version 2.9 or later is needed";
  } else if (program.status != 0 && !program.is_final) {
    append(keys.reason, {advice, in_quotes(profile.name)});
  }
  return std::move(keys);
}

}  // namespace

KeyOutcome keys_by_sign_on(Search& search) {
  for (const char* property : {"sso_account_id", "sso_role_name"}) {
    if (search.profile->has(property)) {
      return keys_by_cli(search, property, kSsoLogin);
    }
  }
  return {};
}

KeyOutcome check_sign_on(Search& search) {
  for (const char* property : {"sso_session", "sso_start_url", "sso_region"}) {
    const Setting part = search.profile->find(property);
    if (!part) continue;
    return blocked(search, {part.source,
                            " gives no keys without sso_account_id and "
                            "sso_role_name"});
  }
  return {};
}

KeyOutcome keys_by_login(Search& search) {
  if (!search.profile->has("login_session")) return {};
  return keys_by_cli(search, "login_session", kLogin);
}

KeyOutcome keys_by_mfa(Search& search) {
  return keys_by_cli(search, "mfa_serial", kTellCode);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
