#ifndef DDBMUTEX_NO_PROFILES
#include "from_profile.hpp"

#include "../text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

// How long keys of a file serve before it is read again: somebody may have
// written new ones.
constexpr std::chrono::seconds kFileAge{60};

// Properties that configure only a part of a source, and what they also need.
constexpr struct {
  const char* property;
  const char* needed;
} kPartialSources[] = {
    {"source_profile", "role_arn"},
    {"credential_source", "role_arn"},
    {"sso_session", "sso_account_id and sso_role_name"},
    {"sso_start_url", "sso_account_id and sso_role_name"},
    {"sso_region", "sso_account_id and sso_role_name"},
};

// Properties that choose a source.
constexpr const char* kSources[] = {
    "role_arn",           "web_identity_token_file",
    "sso_account_id",     "sso_role_name",
    "aws_access_key_id",  "aws_secret_access_key",
    "credential_process", "login_session"};

// Blocked if the profile configures only a part of a source, or a source
// without a value, as a template does whose variable is not set: the search
// must not go on to the container or the instance.  REQUIRES: it has no keys.
KeyOutcome check_partial_sources(Search& search, const Profile& profile) {
  for (const auto& [property, needed] : kPartialSources) {
    const Setting part = profile.find(property);
    if (part) {
      return blocked(search, "%s gives no keys without %s", part.source,
                     needed);
    }
  }
  for (const char* property : kSources) {
    if (profile.has_empty(property)) {
      return blocked(search, "%s of %s has no value", property,
                     profile.place_of(property));
    }
  }
  return {};
}

// Those of the credential_process, else of the config file.
KeyOutcome keys_by_config(Search& search, const Profile& profile) {
  if (const auto process = profile.find("credential_process")) {
    return process_keys(process.value, process.source, search.fetch);
  }
  return keys_in_file(profile, profile.config);
}

}  // namespace

KeyOutcome keys_of_profile(ProfileChain& chain, const Fetch& fetch) {
  Profile profile(chain.place);
  if (!profile.error.empty()) return broken_keys("%s", profile.error);
  Search search{chain, fetch};
  KeyOutcome outcome =
      wants_role(profile) ? keys_by_role(search, profile)
                          : keys_by_itself(search, profile, chain.web_identity);
  if (outcome.state == State::none) {
    outcome = no_keys(
        "AWS_WEB_IDENTITY_TOKEN_FILE is not %s; neither keys nor role_arn, "
        "web_identity_token_file, sso_account_id, login_session or "
        "credential_process in profile %q (%s)",
        chain.web_identity.ignored ? "used (the options name a profile)"
                                   : "set",
        profile.name, profile.whereabouts());
  }
  outcome.warnings =
      sigv4::format("%[%s\n%]%[%s\n%]%s", profile.credentials.warning(),
                    profile.config.warning(), outcome.warnings);
  return outcome;
}

KeyOutcome keys_by_itself(Search& search, const Profile& profile,
                          const WebIdentityVariables& variables) {
  KeyOutcome outcome = keys_by_web_identity(search, profile, variables);
  if (outcome.state == State::none) outcome = keys_by_sign_on(search, profile);
  if (outcome.state == State::none) {
    outcome = keys_in_file(profile, profile.credentials);
  }
  if (outcome.state == State::none) outcome = keys_by_login(search, profile);
  if (outcome.state == State::none) outcome = keys_by_config(search, profile);
  if (outcome.state != State::none) return outcome;
  return check_partial_sources(search, profile);
}

KeyOutcome keys_in_file(const Profile& profile, const ProfileFile& file) {
  const KeyNames names = {"aws_access_key_id", "aws_secret_access_key",
                          "aws_session_token"};
  const std::string place =
      sigv4::format("profile %q in %q", profile.name, file.path);
  const auto value = [&](const char* name) {
    const auto* found = file.find("profile", profile.name, name);
    return found != nullptr ? *found : std::string_view();
  };
  KeyOutcome outcome =
      file.has("profile", profile.name)
          ? judged({value(names.id), value(names.secret), value(names.token),
                    value("aws_account_id")},
                   place, names)
          : no_keys("no %s", place);
  outcome.ask_again = BootClock::now() + kFileAge;
  return outcome;
}

bool wants_role(const Profile& profile) {
  return profile.has("role_arn") && !profile.has("web_identity_token_file");
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
