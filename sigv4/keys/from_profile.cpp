// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads a profile's files, and finds keys in them.  Refuses a source that is an
// extra, and one that has no value.
#include <chrono>
#include <initializer_list>
#include <memory>

#include "../text.hpp"
#include "sources.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

// A file is read again after this time, because it may have new keys.
constexpr std::chrono::seconds kFileAge{60};

// Properties that choose a source.
constexpr const char* kSources[] = {
    "role_arn",           "web_identity_token_file",
    "sso_account_id",     "sso_role_name",
    "aws_access_key_id",  "aws_secret_access_key",
    "credential_process", "login_session"};

KeyOutcome refuse_first_of(const Profile& profile,
                           std::initializer_list<const char*> properties) {
  for (const char* property : properties) {
    if (!profile.has(property)) continue;
    return broken_keys({profile.find(property).source, kNeedsKeys});
  }
  return {};
}

}  // namespace

KeyOutcome open_profile(Search& search) {
  if (search.in_source_profile()) return {};  // It is in the same files.
  if (!search.chain.unusable.empty())
    return broken_keys({search.chain.unusable});
  search.profile =
      std::make_unique<Profile>(search.chain.place, search.chain.parts);
  const Profile& profile = *search.profile;
  if (!profile.error.empty()) return broken_keys({profile.error});
  KeyOutcome outcome;
  outcome.warnings = join({if_any("", profile.credentials.warning(), "\n"),
                           if_any("", profile.config.warning(), "\n")});
  return outcome;
}

KeyOutcome refuse_roles_and_sign_on(Search& search) {
  if (!search.chain.token_file.empty()) {
    return broken_keys({"AWS_WEB_IDENTITY_TOKEN_FILE", kNeedsKeys});
  }
  return refuse_first_of(
      *search.profile, {"role_arn", "web_identity_token_file", "sso_account_id",
                        "sso_role_name"});
}

KeyOutcome refuse_login_and_program(Search& search) {
  return refuse_first_of(*search.profile,
                         {"login_session", "credential_process"});
}

KeyOutcome refuse_part_of_sign_on(Search& search) {
  return refuse_first_of(*search.profile,
                         {"sso_session", "sso_start_url", "sso_region"});
}

KeyOutcome keys_in_credentials_file(Search& search) {
  return keys_in_file(*search.profile, search.profile->credentials);
}

KeyOutcome keys_in_config_file(Search& search) {
  return keys_in_file(*search.profile, search.profile->config);
}

// The search must not go on to the container or the instance if a source is
// configured without a value.  (A template writes no value if its variable is
// not set.)
KeyOutcome check_profile(Search& search) {
  const Profile& profile = *search.profile;
  for (const char* property : kSources) {
    if (profile.has_empty(property)) {
      return blocked(search, {property, " of ", profile.place_of(property),
                              " has no value"});
    }
  }
  KeyOutcome none = no_keys(
      {"AWS_WEB_IDENTITY_TOKEN_FILE is not ",
       search.chain.named ? "used (the options name a profile)" : "set",
       "; neither keys nor role_arn, web_identity_token_file, "
       "sso_account_id, login_session or credential_process in profile ",
       in_quotes(profile.name), " (", profile.whereabouts(), ")",
       profile.has("source_profile") || profile.has("credential_source")
           ? "; source_profile and credential_source count with a role_arn only"
           : ""});
  // Wipes what the files held.
  if (!search.in_source_profile()) search.profile = nullptr;
  return none;
}

KeyOutcome keys_in_file(const Profile& profile, const ProfileFile& file) {
  const KeyNames names = {"aws_access_key_id", "aws_secret_access_key",
                          "aws_session_token"};
  const std::string place =
      join({"profile ", in_quotes(profile.name), " in ", in_quotes(file.path)});
  const auto value = [&](const char* name) {
    const auto* found = file.find("profile", profile.name, name);
    return found != nullptr ? *found : std::string_view();
  };
  KeyOutcome outcome = judged({value(names.id), value(names.secret),
                               value(names.token), value("aws_account_id")},
                              place, names);
  if (outcome.state == State::none) return {};
  outcome.ask_again = BootClock::now() + kFileAge;
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
