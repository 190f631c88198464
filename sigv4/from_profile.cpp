#include "from_profile.hpp"

#include <utility>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

KeyOutcome keys_in_files(Search& search, const Profile& profile) {
  KeyOutcome outcome = keys_in_file(profile, profile.credentials);
  if (outcome.state != State::none) return outcome;
  if (const auto process = profile.find("credential_process")) {
    return process_keys(process.value, process.source, search.fetch);
  }
  return keys_in_file(profile, profile.config);
}

KeyOutcome nothing_in(const Profile& profile, bool variables_ignored) {
  return no_keys(
      "AWS_WEB_IDENTITY_TOKEN_FILE is not %s; neither keys nor role_arn, "
      "web_identity_token_file, sso_account_id or credential_process in "
      "profile %q (%s)",
      {variables_ignored ? "looked at (the options name a profile)" : "set",
       profile.name, profile.whereabouts()});
}

// Going on would sign as somebody else than was meant.  `what` asks
// for it.
[[maybe_unused]] KeyOutcome left_out(std::string_view what,
                                     std::string_view part) {
  return broken_keys("%s: this build of the library is without %s",
                     {what, part});
}

// If the profile asks for it by that property.
[[maybe_unused]] KeyOutcome left_out(const Profile& profile,
                                     const char* property,
                                     std::string_view part) {
  const Setting found = profile.find(property);
  return found ? left_out(found.source, part) : KeyOutcome();
}

}  // namespace

KeyOutcome keys_of_profile(ProfileChain& chain, const Fetch& fetch) {
  Profile profile(chain.place);
  Search search{chain, fetch};
  const bool usable = profile.error.empty();
  KeyOutcome outcome =
      !usable ? broken_keys("%s", {profile.error})
      : wants_role(profile)
          ? keys_by_role(search, profile)
          : keys_by_itself(search, profile, chain.web_identity);
  if (outcome.state == State::none) {
    outcome = nothing_in(profile, chain.web_identity.ignored);
  }
  std::string warnings;
  for (const ProfileFile* file : {&profile.credentials, &profile.config}) {
    if (!usable || file->warning.empty()) continue;
    append(warnings, {file->warning, "\n"});
  }
  append(warnings, {outcome.warnings});
  outcome.warnings.swap(warnings);
  return outcome;
}

KeyOutcome keys_by_itself(Search& search, const Profile& profile,
                          const WebIdentityVariables& variables) {
  KeyOutcome outcome = keys_by_web_identity(search, profile, variables);
  if (outcome.state == State::none) outcome = keys_by_sign_on(search, profile);
  if (outcome.state == State::none) outcome = keys_in_files(search, profile);
  return outcome;
}

KeyOutcome blocked(Search& search, const char* pattern, Pieces pieces) {
  search.blocked = true;
  return broken_keys(pattern, pieces);
}

bool wants_role(const Profile& profile) {
  return profile.has("role_arn") && !profile.has("web_identity_token_file");
}

// --- Left out --------------------------------------------------------------

#ifdef DDBMUTEX_NO_ROLES

KeyOutcome keys_by_role(Search&, Profile& profile) {
  return left_out(profile.place_of("role_arn"), "roles");
}

KeyOutcome keys_by_web_identity(Search&, const Profile& profile,
                                const WebIdentityVariables& variables) {
  if (!variables.token_file.empty()) {
    return left_out("AWS_WEB_IDENTITY_TOKEN_FILE", "roles");
  }
  return left_out(profile, "web_identity_token_file", "roles");
}

#endif
#ifdef DDBMUTEX_NO_SSO

KeyOutcome keys_by_sign_on(Search&, const Profile& profile) {
  KeyOutcome outcome = left_out(profile, "sso_account_id", "sso");
  if (outcome.state != State::none) return outcome;
  return left_out(profile, "sso_role_name", "sso");
}

#endif
#ifdef DDBMUTEX_NO_PROGRAMS

KeyOutcome process_keys(const std::string&, const std::string& place,
                        const Fetch&) {
  return left_out(place, "programs");
}

#endif

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
