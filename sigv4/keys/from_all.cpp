#include "from_all.hpp"

#include <memory>
#include <utility>

#include "../shared.hpp"
#include "../text.hpp"
#include "from_hosts.hpp"
#include "from_profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

// --- Parts that are left out -----------------------------------------------

#ifdef DDBMUTEX_NO_HOSTS

ContainerSettings container_settings(const Environment&) { return {}; }

void read_instance_settings(const Environment&, const Profile&,
                            Instance& instance) {
  instance.disabled = true;
}

KeyOutcome container_keys(const ContainerSettings&, const Fetch&) {
  return no_keys(
      "containers and EC2 instances are not asked: this build of the library "
      "is without hosts");
}

KeyOutcome instance_keys(Instance&, const Fetch& fetch) {
  return container_keys({}, fetch);
}

KeyOutcome instance_region(Instance&, const Fetch& fetch) {
  return container_keys({}, fetch);
}

#endif
#ifdef DDBMUTEX_NO_PROFILES

// A web identity is refused: to go on would sign with other keys than those
// that the environment asks for.
KeyOutcome keys_of_profile(ProfileChain& chain, const Fetch&) {
  if (!chain.web_identity.token_file.empty()) {
    return broken_keys(
        "AWS_WEB_IDENTITY_TOKEN_FILE: this build of the library is without "
        "profiles");
  }
  return no_keys("AWS_WEB_IDENTITY_TOKEN_FILE is not set; %s",
                 Profile(chain.place).whereabouts());
}

#endif

namespace {

void read_services(Services& services, const ChainOptions& options,
                   const Profile& profile, const Environment& environment) {
  for (std::size_t i = 0; i < services.endpoints.size(); ++i) {
    read_endpoint_settings(static_cast<Service>(i), profile, environment,
                           services.endpoints[i]);
  }
  services.region = options.region;
  services.ca_file = options.ca_file;
  if (!services.region) {
    services.region = find_setting(
        environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
  }
  // Of services in another region too, such as the sign-on's.
  const bool fips = asks_for_fips(services.region.value);
  for (ServiceEndpoint& endpoint : services.endpoints) {
    if (fips) endpoint.fips = services.region.source + " asks for FIPS";
  }
  if (services.ca_file.empty()) {
    services.ca_file =
        find_setting(environment, {"AWS_CA_BUNDLE"}, profile, "ca_bundle")
            .value;
  }
}

class Chain final : public KeySource {
 public:
  Chain(const ChainOptions& options, const Environment& environment);
  KeyOutcome fetch(const Fetch& fetch) override;
  const KeyOutcome* at_hand() const override;

 private:
  void read_web_identity(const Environment& variables);
  void read_caches(const Environment& variables);

  // In their order.  Without hosts the last but one speaks for both.
  enum Source { given, environment, profile, container, instance };
  static constexpr Source kLast = kRegionMayComeLater ? instance : container;

  KeyOutcome keys_of(int source, const Fetch& fetch);
  KeyOutcome first(const Fetch& fetch);
  void add_region(KeyOutcome& outcome, const Fetch& fetch);

  const KeySourcePtr own_;
  const bool find_region_;
  const bool named_;  // The profile, by the options.
  KeyOutcome given_;
  // Why the profile is not to be used.  Later it may be well again, but its
  // settings were not read.
  std::string unusable_;
  bool missing_ = false;
  ProfileChain chain_;
  Instance of_region_;
  std::string region_;
};

Chain::Chain(const ChainOptions& options, const Environment& variables)
    : own_(options.own),
      find_region_(options.find_region || own_ != nullptr),
      named_(!options.profile.empty()),
      given_(keys_of_options(options.keys)),
      chain_{locate_profile(options.profile, variables),
             environment_keys(variables)} {
  const Profile read(chain_.place);
  unusable_ = read.error;
  missing_ = read.missing;
  read_web_identity(variables);
  read_caches(variables);
  read_services(chain_.services, options, read, variables);
  chain_.container = container_settings(variables);
  chain_.container.ca_file = chain_.services.ca_file;
  for (Instance* one : {&chain_.instance, &of_region_}) {
    read_instance_settings(variables, read, *one);
  }
}

void Chain::read_web_identity(const Environment& variables) {
  WebIdentityVariables& said = chain_.web_identity;
  said.ignored = named_;
  if (named_) return;
  said.token_file = variables("AWS_WEB_IDENTITY_TOKEN_FILE");
  said.role_arn = variables("AWS_ROLE_ARN");
  said.session_name = variables("AWS_ROLE_SESSION_NAME");
}

// Where AWS's tools keep sign-ons.
void Chain::read_caches(const Environment& variables) {
  if (!kReadsProfiles) return;
  const std::string home = variables("HOME");
  if (!home.empty()) chain_.sso_cache = home + "/.aws/sso/cache";
  std::string& cache = chain_.login_cache;
  cache = sigv4::locate("AWS_LOGIN_CACHE_DIRECTORY", "~/.aws/login/cache",
                        variables);
  if (sigv4::begins_with(cache, "~/")) cache.clear();  // HOME is not known.
}

KeyOutcome Chain::keys_of(int source, const Fetch& fetch) {
  // Whoever mistyped a profile's name is not to sign with other keys; nor is
  // who names one where none is read.
  if (!unusable_.empty() && source == (missing_ ? environment : profile)) {
    return broken_keys("%s", unusable_);
  }
  switch (source) {
    case given:
      return given_;
    case environment:
      if (!kReadsProfiles || !named_) return chain_.environment;
      return no_keys(
          "the keys in the environment are not used (the options name a "
          "profile)");
    case profile:
      return keys_of_profile(chain_, fetch);
    case container:
      return container_keys(chain_.container, fetch);
    default:
      return instance_keys(chain_.instance, fetch);
  }
}

// The first that has keys, is broken or has failed; else none, with all their
// reasons.
KeyOutcome Chain::first(const Fetch& fetch) {
  KeyOutcome outcome;
  std::string reasons, warnings;
  for (int source = given; source <= kLast; ++source) {
    outcome = keys_of(source, fetch);
    warnings += outcome.warnings;
    if (outcome.state != State::none) break;
    fetch.say(outcome.reason);
    sigv4::format_to(reasons, "%s%s", reasons.empty() ? "" : "; ",
                     outcome.reason);
    outcome.reason = reasons;
  }
  outcome.warnings.swap(warnings);
  return outcome;
}

KeyOutcome Chain::fetch(const Fetch& fetch) {
  if (!kRegionMayComeLater) return first(fetch);
  KeyOutcome outcome = own_ != nullptr ? own_->fetch(fetch) : first(fetch);
  if (find_region_ && outcome.state == State::found) add_region(outcome, fetch);
  return outcome;
}

void Chain::add_region(KeyOutcome& outcome, const Fetch& fetch) {
  if (region_.empty()) {
    KeyOutcome found = instance_region(of_region_, fetch);
    if (found.state != State::found) {
      outcome = std::move(found);
      return;
    }
    region_ = std::move(found.region);
  }
  outcome.region = region_;
}

const KeyOutcome* Chain::at_hand() const {
  if (kRegionMayComeLater && find_region_) return nullptr;
  const bool look = !missing_ && !named_;
  for (const KeyOutcome* keys :
       {&given_, look ? &chain_.environment : &given_}) {
    if (keys->state != State::none) return keys;
  }
  return nullptr;
}

}  // namespace

KeySourcePtr chain_keys(const ChainOptions& options,
                        const Environment& environment) {
  return share<Chain>(options, environment);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
