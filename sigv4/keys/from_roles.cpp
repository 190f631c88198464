#ifndef DDBMUTEX_NO_PROFILES
// Keys of a role, by AWS's Security Token Service: for who has keys that may
// assume it, or has a token of an identity provider that the role trusts.
//
// A chain of roles is a chain of profiles.  The keys of the source are asked
// for anew each time, and so is the token's file read, for somebody writes a
// new token before the old one runs out.  Of the time to wait, a refusal and a
// clock that is wrong: from_services.hpp.
//
// STS is asked for JSON, as MongoDB's drivers and EKS ask it, which is as XML
// would have it but for times, which are seconds since 1970; a service in its
// place that knows XML alone is of no use.
//
// What STS takes is for STS to say.  Broken: a file that cannot be read, and
// whatever STS refuses for good: no permission, keys or a token that have run
// out, a session that is too long.  Failed: what may pass; also where the
// identity provider could not be asked, and where the source's keys could not
// be had now.

#include <array>
#include <utility>
#include <vector>

#include "../http.hpp"
#include "../http_answer.hpp"
#include "../system.hpp"
#include "../text.hpp"
#include "from_json.hpp"
#include "from_profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr std::size_t kMinToken = 4, kMaxTokenFile = 20 * 1024;

std::string random_session_name() {
  std::array<unsigned char, 16> bits;
  fill_with_randomness(bits.data(), bits.size());
  char digits[2 * bits.size()];
  sigv4::write_hex(bits, digits);
  return sigv4::format("ddbmutex-%s", std::string_view(digits, 16));
}

// --- STS -------------------------------------------------------------------

// `name`: "STS AssumeRole".  `own`: the action's own parameter, unless it is
// empty.
KeyOutcome ask(std::string_view name, const Role& role, const Field& own,
               const Credentials* signer, const Services& services,
               const Fetch& fetch) {
  std::string_view action = name.substr(sizeof "STS");
  const std::string random = random_session_name();
  ServiceCall call;
  call.name = name;
  call.place = role.place;
  call.method = Method::post;
  call.path = '/';  // g++ 12 would warn of "/" (-Wrestrict), wrongly.
  call.headers = "Accept: application/json\n";
  if (signer == nullptr) {
    sigv4::format_to(call.headers, "Content-Type: %s\n", kFormType);
  }
  call.body =
      form_of("", {{"Action", action},
                   {"Version", "2011-06-15"},
                   {"RoleArn", role.arn},
                   {"RoleSessionName",
                    role.session_name.empty() ? random : role.session_name},
                   {"DurationSeconds", role.duration},
                   own});
  call.signer = signer;
  call.secrets = {own.value};
  if (signer != nullptr) {
    call.secrets = {signer->secret_access_key, signer->session_token};
  }
  call.take = [](void* asked, const HttpAnswer& http, std::int64_t utc_now,
                 KeyOutcome& outcome) {
    outcome = read_sts_keys(*static_cast<std::string_view*>(asked), http.body,
                            utc_now);
  };
  call.whose = &action;
  KeyOutcome outcome = services.ask(Service::sts, role.region, call, fetch);
  if (outcome.state == State::found) outcome.source = role.place;
  return outcome;
}

// --- Profiles --------------------------------------------------------------

// If nobody has said which region: one that has all roles of the partition, as
// JavaScript's SDK has it for the first of these.
Setting region_for(const Search& search, const Profile& profile,
                   std::string_view arn) {
  Setting region = search.chain.services.region;
  if (!region) region = profile.find("region");
  for (const auto& [start, usual] :
       {std::pair("arn:aws:", "us-east-1"),
        std::pair("arn:aws-cn:", "cn-north-1"),
        std::pair("arn:aws-us-gov:", "us-gov-west-1")}) {
    if (!region && sigv4::begins_with(arn, start))
      region = {usual, "the role's ARN"};
  }
  return region;
}

// Each source profile with a role costs a request to STS.
constexpr std::size_t kMostSources = 200;

bool has_keys(const Profile& profile) {
  return profile.has("aws_access_key_id") ||
         profile.has("aws_secret_access_key");
}

// For who needs keys: if there are none, that is final, but for those that an
// instance may have a little later.
KeyOutcome by_credential_source(Search& search, const Setting& source) {
  ProfileChain& chain = search.chain;
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
        search,
        "%s is not Environment, EcsContainer or Ec2InstanceMetadata: %q",
        source.source, source.value);
  }
  if (outcome.state != State::none) return outcome;
  outcome.state = without;
  outcome.reason = sigv4::format("%s is %s, which has no keys: %s",
                                 source.source, source.value, outcome.reason);
  return outcome;
}

// Reads the profile's role.  Blocked if it cannot be assumed.
KeyOutcome read_role(Search& search, const Profile& profile, Role& role) {
  const std::string where = profile.place_of("role_arn");
  if (profile.has("mfa_serial")) {
    return blocked(search,
                   "mfa_serial in %s: there is nobody to ask for a code, so "
                   "such a role cannot be assumed",
                   where);
  }
  role.arn = profile.value_of("role_arn");
  role.session_name = profile.value_of("role_session_name");
  role.external_id = profile.value_of("external_id");
  role.duration = profile.value_of("duration_seconds");
  sigv4::format_to(role.place, "role %q by %s", role.arn, where);
  if (!sigv4::all_digits(role.duration)) {
    return blocked(search, "%s is not a number of seconds: %q",
                   profile.find("duration_seconds").source, role.duration);
  }
  role.region = region_for(search, profile, role.arn);
  return {};
}

// Blocked if the profile, which `source` names, does not exist, closes a circle
// or is one too many.  `itself`: the profile names itself as its source.
KeyOutcome check_source(Search& search, const Profile& profile,
                        const Setting& source, bool itself) {
  if (!profile.exists()) {
    return blocked(search, "%s names profile %q, which does not exist (%s)",
                   source.source, profile.name, profile.whereabouts());
  }
  std::string circle;
  bool been_there = false;
  for (const std::string& name : search.path) {
    sigv4::format_to(circle, "%q, ", name);
    been_there = been_there || name == profile.name;
  }
  if (been_there && !(itself && has_keys(profile))) {
    return blocked(search, "profiles that get their keys from each other: %s%q",
                   circle, profile.name);
  }
  if (search.path.size() <= kMostSources) return {};
  return blocked(search,
                 "more than %s profiles in a row get their keys from another "
                 "one, from profile %q on",
                 kMostSources, search.path.front());
}

KeyOutcome keys_of_source(Search& search, const Profile& profile,
                          const Setting& source) {
  KeyOutcome outcome = keys_by_itself(search, profile, {});
  if (outcome.state != State::none) return outcome;
  return blocked(search, "%s names profile %q, which has no keys (%s)",
                 source.source, profile.name, profile.whereabouts());
}

// Follows source_profile from profile to profile and adds their roles.  Returns
// the keys of the first one that needs no role.  Changes the name of `profile`
// on the way, because all of them are in the same files.
KeyOutcome source_of_roles(Search& search, Profile& profile,
                           std::vector<Role>& roles) {
  for (;;) {
    roles.emplace_back();
    KeyOutcome flaw = read_role(search, profile, roles.back());
    if (search.blocked) return flaw;
    const auto other = profile.find("source_profile");
    const auto kind = profile.find("credential_source");
    if (kind && !other) return by_credential_source(search, kind);
    if (kind || !other) {
      return blocked(search, "%s has %s", profile.place_of("role_arn"),
                     kind ? "both source_profile and credential_source"
                          : "a role_arn, but neither source_profile nor "
                            "credential_source nor web_identity_token_file");
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

KeyOutcome keys_by_role(Search& search, Profile& profile) {
  const std::string name = profile.name;
  std::vector<Role> roles;  // They are assumed from the last to the first.
  KeyOutcome keys = source_of_roles(search, profile, roles);
  profile.name = name;
  if (search.blocked) return keys;
  for (; !roles.empty(); roles.pop_back()) {
    keys = assume_role(roles.back(), std::move(keys), search.chain.services,
                       search.fetch);
  }
  return keys;
}

KeyOutcome assume_role(const Role& role, KeyOutcome source,
                       const Services& services, const Fetch& fetch) {
  if (source.state != State::found) {
    source.reason = sigv4::format("%s: no keys to assume the role with: %s",
                                  role.place, source.reason);
    return source;
  }
  KeyOutcome outcome =
      sigv4::ask("STS AssumeRole", role, {"ExternalId", role.external_id},
                 &source.keys, services, fetch);
  outcome.region = std::move(source.region);
  outcome.warnings = std::move(source.warnings);
  if (outcome.state == State::found) {
    sigv4::format_to(outcome.source, ", from %s", source.source);
  }
  return outcome;
}

KeyOutcome keys_by_web_identity(Search& search, const Profile& profile,
                                const WebIdentityVariables& variables) {
  // The variable, else the profile's property.
  const auto first = [&](std::string_view variable, const char* property) {
    return variable.empty() ? profile.value_of(property) : variable;
  };
  const std::string file(
      first(variables.token_file, "web_identity_token_file"));
  if (file.empty()) return {};
  const std::string source =
      variables.token_file.empty()
          ? profile.find("web_identity_token_file").source
          : "AWS_WEB_IDENTITY_TOKEN_FILE";
  Role role;
  role.arn = first(variables.role_arn, "role_arn");
  if (role.arn.empty()) {
    return blocked(search,
                   "%s has no role: neither AWS_ROLE_ARN nor role_arn of "
                   "profile %q is set",
                   source, profile.name);
  }
  role.session_name = first(variables.session_name, "role_session_name");
  sigv4::format_to(role.place, "role %q by web identity of %s", role.arn,
                   source);
  role.region = region_for(search, profile, role.arn);
  return assume_by_web_identity(role, file, search.chain.services,
                                search.fetch);
}

KeyOutcome assume_by_web_identity(const Role& role,
                                  const std::string& token_file,
                                  const Services& services,
                                  const Fetch& fetch) {
  const SecretFile file(token_file, kMaxTokenFile);
  std::string flaw = file.failure;
  const std::string_view token = sigv4::trimmed(file.text);
  const bool empty = flaw.empty() && token.empty();
  if (empty) {
    flaw = "is empty";
  } else if (flaw.empty() &&
             (token.size() < kMinToken || !sigv4::is_visible(token))) {
    flaw = "contains no token";
  }
  if (flaw.empty()) {
    return sigv4::ask("STS AssumeRoleWithWebIdentity", role,
                      {"WebIdentityToken", token}, nullptr, services, fetch);
  }
  KeyOutcome outcome = broken_keys("%s: the web identity token file %q %s",
                                   role.place, token_file, flaw);
  if (empty) outcome.state = State::failed;  // Perhaps somebody is writing it.
  return outcome;
}

KeyOutcome read_sts_keys(std::string_view action, std::string_view body,
                         std::int64_t utc_now) {
  const std::string response = sigv4::join({action, "Response"});
  const std::string result = sigv4::join({action, "Result"});
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
  return account.size() == 12 && sigv4::all_digits(account)
             ? std::string(account)
             : "";
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
