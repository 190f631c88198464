// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keys of a role, from AWS's Security Token Service (STS).  A caller needs keys
// that may assume the role, or a token of an identity provider that the role
// trusts.
//
// A chain of roles is a chain of profiles.  The source's keys and the token's
// file are read anew each time, because somebody writes a new token before the
// old one expires.  Retries, refusals and wrong clocks: service_call.hpp.
//
// STS is asked for JSON, as by MongoDB's drivers and EKS.  The JSON has the
// same members as the XML, except that times are seconds since 1970.  A
// replacement for STS that knows only XML cannot be used.
//
// STS alone decides what it accepts.  Errors are final (`broken`) if a file
// cannot be read, or if STS refuses for good: no permission, keys or a token
// that have expired, too long a session.  They are transient (`failed`) if the
// request may succeed later; also if the identity provider could not be asked,
// or the source has no keys at the moment.
#include <array>
#include <list>
#include <utility>

#include "../../sigv4/keys/from_json.hpp"
#include "../../sigv4/secret.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/text.hpp"
#include "profile_sources.hpp"
#include "sts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr std::size_t kMinToken = 4, kMaxTokenFile = 20 * 1024;

// --- STS -------------------------------------------------------------------

std::string random_session_name() {
  std::array<unsigned char, 8> bits;
  fill_with_randomness(bits.data(), bits.size());
  char digits[2 * bits.size()];
  write_hex(bits, digits);
  return join({"ddbmutex-", {digits, sizeof digits}});
}

// `own`: the action's own parameter; left out if it has no value.  `signer`:
// null if the request is not signed.
KeyOutcome ask_sts(std::string_view action, const Role& role, const Field& own,
                   const Credentials* signer, const Services& services,
                   const Fetch& fetch) {
  const std::string name = join({"STS ", action});
  const std::string random_name = random_session_name();
  ServiceCall call;
  call.name = name;
  call.place = role.place;
  call.method = Method::post;
  call.path = '/';  // g++ 12 would warn of "/" (-Wrestrict), wrongly.
  call.headers = "Accept: application/json\n";
  call.body =
      form_of({{"Action", action},
               {"Version", "2011-06-15"},
               {"RoleArn", role.arn},
               {"RoleSessionName",
                role.session_name.empty() ? random_name : role.session_name},
               {"DurationSeconds", role.duration},
               own});
  if (signer != nullptr) {
    call.secrets = {signer->secret_access_key, signer->session_token};
  } else {
    append(call.headers, {"Content-Type: ", kFormType, "\n"});
    call.secrets = {own.value};
  }
  KeyOutcome outcome =
      services.ask_sts(role.region, signer, call, fetch,
                       [&](const HttpAnswer& http, std::int64_t utc_now) {
                         return read_sts_keys(action, http.body, utc_now);
                       });
  if (outcome.state == State::found) outcome.source = role.place;
  return outcome;
}

// --- Profiles --------------------------------------------------------------

// The configured region, else the main region of the role's partition.  (The
// JavaScript SDK also uses us-east-1 for "arn:aws:".)
Setting region_for(const Search& search, const Profile& profile,
                   std::string_view arn) {
  Setting region = search.chain.services->region;
  if (!region) region = profile.find("region");
  for (const auto& [start, usual] :
       {std::pair("arn:aws:", "us-east-1"),
        std::pair("arn:aws-cn:", "cn-north-1"),
        std::pair("arn:aws-us-gov:", "us-gov-west-1")}) {
    if (!region && begins_with(arn, start)) {
      region = {usual, "the role's ARN"};
    }
  }
  return region;
}

// A limit, because each source profile with a role costs a request to STS.
constexpr std::size_t kMostSources = 200;

bool has_keys(const Profile& profile) {
  return profile.has("aws_access_key_id") ||
         profile.has("aws_secret_access_key");
}

// No keys from this source is a final error, except on EC2, where they may
// appear later.
KeyOutcome by_credential_source(Search& search, const Setting& source) {
  Chain& chain = search.chain;
  KeyOutcome outcome;
  State without = State::broken;
  if (source.value == "Environment") {
    outcome = chain.environment;
  } else if (source.value == "EcsContainer") {
    outcome = container_keys(chain.container, search.fetch);
  } else if (source.value == "Ec2InstanceMetadata") {
    outcome = instance_keys(chain.instance, search.fetch);
    if (!chain.instance.disabled) without = State::failed;
  } else {
    return blocked(
        search, {source.source,
                 " is not Environment, EcsContainer or Ec2InstanceMetadata: ",
                 in_quotes(source.value)});
  }
  if (outcome.state != State::none) return outcome;
  outcome.state = without;
  outcome.reason = join({source.source, " is ", source.value,
                         ", which has no keys: ", outcome.reason});
  return outcome;
}

// Reads the profile's role.  Blocked if it cannot be assumed.
KeyOutcome read_role(Search& search, const Profile& profile, Role& role) {
  const std::string where = profile.place_of("role_arn");
  role.arn = profile.value_of("role_arn");
  role.session_name = profile.value_of("role_session_name");
  role.external_id = profile.value_of("external_id");
  role.duration = profile.value_of("duration_seconds");
  role.place = join({"role ", in_quotes(role.arn), " by ", where});
  if (!all_digits(role.duration)) {
    return blocked(search,
                   {profile.find("duration_seconds").source,
                    " is not a number of seconds: ", in_quotes(role.duration)});
  }
  role.region = region_for(search, profile, role.arn);
  return {};
}

// The beginning of an error text: `... names profile "x", which `.
std::string naming(const Setting& source, const Profile& profile) {
  return join(
      {source.source, " names profile ", in_quotes(profile.name), ", which "});
}

// Blocked if the profile, which `source` names, does not exist, was visited
// before, or is one too many.  `itself`: the profile names itself as its
// source.
KeyOutcome check_source(Search& search, const Profile& profile,
                        const Setting& source, bool itself) {
  if (!profile.exists()) {
    return blocked(search, {naming(source, profile), "does not exist (",
                            profile.whereabouts(), ")"});
  }
  std::string circle;
  bool been_there = false;
  for (const std::string& name : search.path) {
    append(circle, {in_quotes(name), ", "});
    been_there = been_there || name == profile.name;
  }
  if (been_there && !(itself && has_keys(profile))) {
    return blocked(search, {"profiles that get their keys from each other: ",
                            circle, in_quotes(profile.name)});
  }
  if (search.path.size() <= kMostSources) return {};
  return blocked(search,
                 {"more than ", Digits(kMostSources),
                  " profiles in a row get their keys from another one, from "
                  "profile ",
                  in_quotes(search.path.front()), " on"});
}

KeyOutcome keys_of_source(Search& search, const Profile& profile,
                          const Setting& source) {
  KeyOutcome outcome = keys_of_source_profile(search);
  if (outcome.state != State::none) return outcome;
  return blocked(search, {naming(source, profile), "has no keys (",
                          profile.whereabouts(), ")"});
}

// Follows source_profile from profile to profile and adds their roles.  Ends at
// the first profile that has keys without a role, and returns them.  Also ends
// at a role with an mfa_serial, whose keys the AWS CLI gets.  Changes the name
// of `profile` on the way, because all of them are in the same files.
KeyOutcome source_of_roles(Search& search, Profile& profile,
                           std::list<Role>& roles) {
  for (;;) {
    if (profile.has("mfa_serial")) return keys_by_mfa(search);
    roles.emplace_back();
    KeyOutcome flaw = read_role(search, profile, roles.back());
    if (search.blocked) return flaw;
    const auto other = profile.find("source_profile");
    const auto kind = profile.find("credential_source");
    if (kind && !other) return by_credential_source(search, kind);
    if (kind || !other) {
      return blocked(search,
                     {profile.place_of("role_arn"),
                      kind ? " has both source_profile and credential_source"
                           : " has a role_arn, but neither source_profile nor "
                             "credential_source nor "
                             "web_identity_token_file"});
    }
    const bool itself = profile.name == other.value;
    search.path.push_back(std::exchange(profile.name, other.value));
    flaw = check_source(search, profile, other, itself);
    if (search.blocked) return flaw;
    if (has_keys(profile) || !wants_role(profile)) {
      return keys_of_source(search, profile, other);
    }
  }
}

}  // namespace

bool wants_role(const Profile& profile) {
  return profile.has("role_arn") && !profile.has("web_identity_token_file");
}

KeyOutcome keys_by_role(Search& search) {
  Profile& profile = *search.profile;
  if (search.in_source_profile() || !wants_role(profile)) return {};
  const std::string name = profile.name;
  std::list<Role> roles;  // They are assumed from the last to the first.
  KeyOutcome keys = source_of_roles(search, profile, roles);
  profile.name = name;
  if (search.blocked) return keys;
  for (; !roles.empty(); roles.pop_back()) {
    keys = assume_role(roles.back(), std::move(keys), *search.chain.services,
                       search.fetch);
  }
  return keys;
}

KeyOutcome assume_role(const Role& role, KeyOutcome source,
                       const Services& services, const Fetch& fetch) {
  if (source.state != State::found) {
    source.reason = join(
        {role.place, ": no keys to assume the role with: ", source.reason});
    return source;
  }
  KeyOutcome outcome =
      ask_sts("AssumeRole", role, {"ExternalId", role.external_id},
              &source.keys, services, fetch);
  outcome.region = std::move(source.region);
  outcome.warnings = std::move(source.warnings);
  if (outcome.state == State::found) {
    append(outcome.source, {", from ", source.source});
  }
  return outcome;
}

KeyOutcome keys_by_web_identity(Search& search) {
  const Profile& profile = *search.profile;
  const Services& services = *search.chain.services;
  // The variable, else the profile's property.  The environment is not the
  // source of a source_profile.
  const auto first = [&](std::string_view variable, const char* property) {
    const bool set = !variable.empty() && !search.in_source_profile();
    return set ? variable : profile.value_of(property);
  };
  const char* const property = "web_identity_token_file";
  const std::string& variable = search.chain.token_file;
  const std::string file(first(variable, property));
  if (file.empty()) return {};
  const std::string source = variable.empty() || search.in_source_profile()
                                 ? profile.find(property).source
                                 : "AWS_WEB_IDENTITY_TOKEN_FILE";
  Role role;
  role.arn = first(services.role_arn, "role_arn");
  if (role.arn.empty()) {
    return blocked(search, {source,
                            " has no role: neither AWS_ROLE_ARN nor role_arn "
                            "of profile ",
                            in_quotes(profile.name), " is set"});
  }
  role.session_name = first(services.session_name, "role_session_name");
  role.place =
      join({"role ", in_quotes(role.arn), " by web identity of ", source});
  role.region = region_for(search, profile, role.arn);
  return assume_by_web_identity(role, file, services, search.fetch);
}

KeyOutcome assume_by_web_identity(const Role& role,
                                  const std::string& token_file,
                                  const Services& services,
                                  const Fetch& fetch) {
  const SecretFile file(token_file, kMaxTokenFile);
  const std::string_view token = sigv4::trimmed(file.text);
  std::string flaw = file.failure;
  State state = State::broken;
  if (flaw.empty() && token.empty()) {
    flaw = "is empty";
    state = State::failed;  // Somebody may be about to write it.
  } else if (flaw.empty() && (token.size() < kMinToken || !is_visible(token))) {
    flaw = "contains no token";
  }
  if (!flaw.empty()) {
    return not_found(state, {role.place, ": the web identity token file ",
                             in_quotes(token_file), " ", flaw});
  }
  return ask_sts("AssumeRoleWithWebIdentity", role, {"WebIdentityToken", token},
                 nullptr, services, fetch);
}

KeyOutcome read_sts_keys(std::string_view action, std::string_view body,
                         std::int64_t utc_now) {
  const std::string response = join({action, "Response"});
  const std::string result = join({action, "Result"});
  const Document document = parse_json(body);
  KeyOutcome outcome =
      keys_in(document, {response.c_str(), result.c_str(), "Credentials"},
              kSessionForm, "the answer", utc_now);
  if (outcome.state != State::found) return outcome;
  const Value answer = document.root()[response.c_str()][result.c_str()];
  const auto arn = answer["AssumedRoleUser"]["Arn"].text();
  if (arn) outcome.keys.account_id = account_of(*arn);
  return outcome;
}

std::string account_of(std::string_view arn) {
  for (int field = 0; field < 4; ++field) sigv4::cut(arn, ':');
  const std::string_view account = sigv4::cut(arn, ':');
  return account.size() == 12 && all_digits(account) ? std::string(account)
                                                     : "";
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
