#include "from_profile.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "from_program.hpp"
#include "from_sso.hpp"
#include "from_sts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

using State = KeyOutcome::State;
using Property = Profile::Property;

// A source of keys, or why there is none; neither if nothing asks for one.
struct Way {
  bool leads_nowhere() const { return source == nullptr && error.empty(); }

  KeySourcePtr source;
  std::string error;
};

Way blocked(std::string why) { return {nullptr, std::move(why)}; }

// Where the profile says that: `profile "x" in "..."`.
std::string place_of(const Profile& profile, const char* property) {
  for (const ProfileFile* file : {&profile.credentials, &profile.config}) {
    if (!file->find("profile", profile.name, property)) continue;
    return profile.described() + " in " + in_quotes(file->path);
  }
  return profile.described();
}

Profile another(const Profile& profile, const std::string& name) {
  Profile other = profile;
  other.name = name;
  return other;
}

bool has_keys(const Profile& profile) {
  return profile.find("aws_access_key_id") ||
         profile.find("aws_secret_access_key");
}

bool wants_role(const Profile& profile) {
  return profile.find("role_arn") && !profile.find("web_identity_token_file");
}

std::string value_of(const Profile& profile, const char* property) {
  const auto found = profile.find(property);
  return found ? found->value : "";
}

// Remembers whose keys it gave.
class Witness final : public KeySource {
 public:
  explicit Witness(KeySourcePtr source) : source_(std::move(source)) {}

  KeyOutcome fetch(const Fetch& fetch) override {
    KeyOutcome outcome = source_->fetch(fetch);
    seen_ = outcome.source;
    return outcome;
  }
  std::optional<KeyOutcome> at_hand() const override {
    return source_->at_hand();
  }
  const std::string& seen() const { return seen_; }

 private:
  const KeySourcePtr source_;
  std::string seen_;
};

// For who needs keys: if there are none, that is final, but for those that an
// instance may have a little later.
KeySourcePtr required(KeySourcePtr source, std::string why, bool may_come) {
  return source_of([source = std::move(source), why = std::move(why),
                    may_come](const Fetch& fetch) {
    KeyOutcome outcome = source->fetch(fetch);
    if (outcome.state != State::none) return outcome;
    outcome.state = may_come ? State::failed : State::broken;
    outcome.reason = why + " has none: " + outcome.reason;
    return outcome;
  });
}

// Sets the time, or returns why not.
std::string read_duration(const Profile& profile, Role& role) {
  const auto found = profile.find("duration_seconds");
  if (!found) return "";
  constexpr std::size_t kMostDigits = 6;
  const bool number = found->value.size() <= kMostDigits &&
                      std::all_of(found->value.begin(), found->value.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (!number) return found->source + " is no number of seconds";
  for (const char digit : found->value) {
    role.duration_seconds = 10 * role.duration_seconds + (digit - '0');
  }
  return "";
}

// If nobody has said which region: one that has all roles of the partition, as
// JavaScript's SDK has it for the first of these.
void default_region(const Profile& profile, const std::string& arn,
                    Services& services) {
  if (!services.region.empty()) return;
  if (const auto region = profile.find("region")) {
    services.region = region->value;
    services.region_source = region->source;
    return;
  }
  for (const auto& [start, region] :
       {std::pair("arn:aws:", "us-east-1"),
        std::pair("arn:aws-cn:", "cn-north-1"),
        std::pair("arn:aws-us-gov:", "us-gov-west-1")}) {
    if (arn.rfind(start, 0) != 0) continue;
    services.region = region;
    services.region_source = "the role's ARN";
  }
}

class Chain final : public KeySource {
 public:
  explicit Chain(ProfileChain chain) : chain_(std::move(chain)) {}
  KeyOutcome fetch(const Fetch& fetch) override;

 private:
  KeyOutcome keys_of(const Profile& profile, const Fetch& fetch);
  KeyOutcome nothing(const Profile& profile) const;

  // `path`: the profiles from the first one on, this one included.
  using Path = std::vector<std::string>;
  Way by_role(const Profile& profile, Path path);
  Way source_of_role(const Profile& profile, const Path& path);
  Way by_source_profile(const Profile& profile, const Property& source,
                        Path path);
  Way by_credential_source(const Property& source) const;
  // All but roles.
  Way by_itself(const Profile& profile, const WebIdentityVariables& variables);
  Way by_web_identity(const Profile& profile,
                      const WebIdentityVariables& variables) const;
  Way by_sign_on(const Profile& profile);
  Way by_files(const Profile& profile) const;

  Services services_for(const Profile& profile, const std::string& arn) const;
  KeySourcePtr kept(const Sso& sso);

  const ProfileChain chain_;
  // Those of this fetch, and of the one before: they remember what they did.
  std::map<std::string, KeySourcePtr> sign_ons_, old_sign_ons_;
};

KeyOutcome Chain::fetch(const Fetch& fetch) {
  const Profile profile = load_profile(chain_.place);
  if (!profile.error.empty()) return broken_keys(profile.error);
  old_sign_ons_.swap(sign_ons_);
  sign_ons_.clear();
  KeyOutcome outcome = keys_of(profile, fetch);
  const auto warnings = profile.warnings();
  outcome.warnings.insert(outcome.warnings.begin(), warnings.begin(),
                          warnings.end());
  return outcome;
}

KeyOutcome Chain::keys_of(const Profile& profile, const Fetch& fetch) {
  const Way way = wants_role(profile) ? by_role(profile, {profile.name})
                                      : by_itself(profile, chain_.web_identity);
  if (!way.error.empty()) return broken_keys(way.error);
  if (way.leads_nowhere()) return nothing(profile);
  return way.source->fetch(fetch);
}

KeyOutcome Chain::nothing(const Profile& profile) const {
  return no_keys(
      std::string("AWS_WEB_IDENTITY_TOKEN_FILE is not ") +
      (chain_.web_identity.ignored ? "looked at (the options name a profile)"
                                   : "set") +
      "; neither keys nor role_arn, web_identity_token_file, sso_account_id "
      "or credential_process in " +
      profile.described() + " (" + profile.whereabouts() + ")");
}

Way Chain::by_role(const Profile& profile, Path path) {
  const std::string where = place_of(profile, "role_arn");
  if (profile.find("mfa_serial")) {
    return blocked("mfa_serial in " + where +
                   ": there is nobody to ask for a code, so such a role "
                   "cannot be assumed");
  }
  Role role;
  role.arn = value_of(profile, "role_arn");
  role.session_name = value_of(profile, "role_session_name");
  role.external_id = value_of(profile, "external_id");
  role.place = "role " + in_quotes(role.arn) + " by " + where;
  const std::string wrong = read_duration(profile, role);
  if (!wrong.empty()) return blocked(wrong);
  Way from = source_of_role(profile, path);
  if (!from.error.empty()) return from;
  const auto witness = std::make_shared<Witness>(std::move(from.source));
  Services services = services_for(profile, role.arn);
  const KeySourcePtr keys =
      assumed_role_keys(std::move(role), witness, std::move(services));
  return {source_of([witness, keys](const Fetch& fetch) {
            KeyOutcome outcome = keys->fetch(fetch);
            if (outcome.state == State::found) {
              outcome.source += ", from " + witness->seen();
            }
            return outcome;
          }),
          ""};
}

Way Chain::source_of_role(const Profile& profile, const Path& path) {
  const auto other = profile.find("source_profile");
  const auto kind = profile.find("credential_source");
  if (other && kind) {
    return blocked(place_of(profile, "role_arn") +
                   " has both source_profile and credential_source");
  }
  if (other) return by_source_profile(profile, *other, path);
  if (kind) return by_credential_source(*kind);
  return blocked(place_of(profile, "role_arn") +
                 " has a role_arn, but neither source_profile nor "
                 "credential_source nor web_identity_token_file");
}

Way Chain::by_source_profile(const Profile& profile, const Property& source,
                             Path path) {
  const Profile other = another(profile, source.value);
  if (!other.is_in(other.credentials) && !other.is_in(other.config)) {
    return blocked(source.source + " names " + other.described() +
                   ", which does not exist (" + other.whereabouts() + ")");
  }
  const bool been_there =
      std::find(path.begin(), path.end(), other.name) != path.end();
  const bool itself = other.name == profile.name;
  if (been_there && !(itself && has_keys(other))) {
    std::string circle;
    for (const std::string& name : path) circle += in_quotes(name) + ", ";
    return blocked("profiles that have their keys from each other: " + circle +
                   in_quotes(other.name));
  }
  path.push_back(other.name);
  if (!has_keys(other) && wants_role(other)) {
    return by_role(other, std::move(path));
  }
  Way way = by_itself(other, {});
  const std::string why =
      source.source + " names " + other.described() + " for its keys, which";
  if (way.leads_nowhere()) {
    return blocked(why + " has none (" + other.whereabouts() + ")");
  }
  if (way.source) way.source = required(std::move(way.source), why, false);
  return way;
}

Way Chain::by_credential_source(const Property& source) const {
  for (const auto& [name, keys, may_come] :
       {std::tuple("Environment", &chain_.environment, false),
        std::tuple("EcsContainer", &chain_.container, false),
        std::tuple("Ec2InstanceMetadata", &chain_.instance,
                   chain_.instance_may_come)}) {
    if (source.value != name) continue;
    return {
        required(*keys, source.source + " is " + name + " for its keys, which",
                 may_come),
        ""};
  }
  return blocked(source.source +
                 " is none of Environment, EcsContainer and "
                 "Ec2InstanceMetadata");
}

Way Chain::by_itself(const Profile& profile,
                     const WebIdentityVariables& variables) {
  Way way = by_web_identity(profile, variables);
  if (way.leads_nowhere()) way = by_sign_on(profile);
  if (way.leads_nowhere()) way = by_files(profile);
  return way;
}

// The variable, else the profile's property.
Property first_set(const std::string& variable, const char* name,
                   const Profile& profile, const char* property) {
  if (!variable.empty()) return {variable, name};
  const auto found = profile.find(property);
  return found ? *found : Property();
}

Way Chain::by_web_identity(const Profile& profile,
                           const WebIdentityVariables& variables) const {
  const Property file =
      first_set(variables.token_file, "AWS_WEB_IDENTITY_TOKEN_FILE", profile,
                "web_identity_token_file");
  if (file.value.empty()) return {};
  Role role;
  role.arn =
      first_set(variables.role_arn, "AWS_ROLE_ARN", profile, "role_arn").value;
  if (role.arn.empty()) {
    return blocked(file.source +
                   " is without a role: neither AWS_ROLE_ARN nor role_arn of " +
                   profile.described() + " says which");
  }
  role.session_name = first_set(variables.session_name, "AWS_ROLE_SESSION_NAME",
                                profile, "role_session_name")
                          .value;
  role.place =
      "role " + in_quotes(role.arn) + " by web identity of " + file.source;
  Services services = services_for(profile, role.arn);
  return {web_identity_keys(std::move(role), file.value, std::move(services)),
          ""};
}

// The section of the config file that the profile names as its session.
struct Session {
  std::string name;   // Empty if it names none.
  std::string error;  // It is not there, or says other things.
};

Session session_of(const Profile& profile) {
  const auto name = profile.find("sso_session");
  if (!name) return {};
  if (!profile.config.has("sso-session", name->value)) {
    return {"", name->source + " names a section " +
                    in_quotes("sso-session " + name->value) +
                    " that is not there"};
  }
  Session session{name->value, ""};
  for (const Section& section : profile.config.sections) {
    if (section.kind != "sso-session" || section.name != name->value) continue;
    for (const auto& [property, value] : section.properties) {
      const Secret* last =
          profile.config.find("sso-session", name->value, property);
      const auto own = profile.find(property);
      if (last == nullptr || !own || own->value == last->str()) continue;
      session.error = own->source + " is another than in its sso_session";
    }
  }
  return session;
}

// The profile's own, or its session's.  If it is neither's, its name joins
// `missing`.
Property sign_on_setting(const Profile& profile, const Session& session,
                         const std::string& name, std::string& missing) {
  if (auto own = profile.find(name)) return *own;
  const Secret* value = profile.config.find("sso-session", session.name, name);
  if (value != nullptr && !value->empty()) {
    return {value->str(), name + " of section " +
                              in_quotes("sso-session " + session.name) +
                              " in " + in_quotes(profile.config.path)};
  }
  missing += (missing.empty() ? "" : ", ") + name;
  return {};
}

Way Chain::by_sign_on(const Profile& profile) {
  const char* const sign =
      profile.find("sso_account_id") ? "sso_account_id" : "sso_role_name";
  if (!profile.find(sign)) return {};
  const Session session = session_of(profile);
  if (!session.error.empty()) return blocked(session.error);
  std::string missing;
  const auto setting = [&](const char* name) {
    return sign_on_setting(profile, session, name, missing);
  };
  Sso sso;
  sso.place = place_of(profile, sign);
  sso.session_name = session.name;
  sso.account_id = setting("sso_account_id").value;
  sso.role_name = setting("sso_role_name").value;
  sso.region = setting("sso_region");
  sso.start_url = setting("sso_start_url").value;
  if (!missing.empty()) {
    return blocked("single sign-on of " + sso.place + " is without " + missing);
  }
  sso.cache = chain_.sso_cache;
  sso.profile = profile.name;
  return {kept(sso), ""};
}

KeySourcePtr Chain::kept(const Sso& sso) {
  std::string key;
  for (const std::string& part :
       {sso.session_name, sso.start_url, sso.region.value, sso.region.source,
        sso.account_id, sso.role_name, sso.profile, sso.place}) {
    key += part + '\n';
  }
  KeySourcePtr& source = sign_ons_[key];
  if (source == nullptr) source = old_sign_ons_[key];
  if (source == nullptr) source = sso_keys(sso, chain_.services);
  return source;
}

Way Chain::by_files(const Profile& profile) const {
  for (const ProfileFile* file : {&profile.credentials, &profile.config}) {
    const auto process = profile.find("credential_process");
    if (file == &profile.config && process) {
      return {process_keys(process->value, process->source), ""};
    }
    KeyOutcome outcome = keys_in_file(profile, *file);
    if (outcome.state == State::none) continue;
    return {source_of([outcome = std::move(outcome)](const Fetch&) {
              return outcome;
            }),
            ""};
  }
  return {};
}

Services Chain::services_for(const Profile& profile,
                             const std::string& arn) const {
  Services services = chain_.services;
  default_region(profile, arn, services);
  return services;
}

}  // namespace

KeySourcePtr profile_chain(ProfileChain chain) {
  return std::make_shared<Chain>(std::move(chain));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
