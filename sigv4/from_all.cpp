#include "from_all.hpp"

#include <memory>
#include <utility>

#include "from_hosts.hpp"
#include "from_profile.hpp"
#include "shared.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

// --- Left out --------------------------------------------------------------

#ifdef DDBMUTEX_NO_HOSTS

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
#ifdef DDBMUTEX_NO_ROLES

KeyOutcome keys_by_web_identity(Search&, const Profile& profile,
                                const WebIdentityVariables& variables) {
  Setting asked(variables.token_file, "AWS_WEB_IDENTITY_TOKEN_FILE");
  if (kReadsProfiles && !asked) {
    asked = profile.find("web_identity_token_file");
  }
  return left_out(asked, "roles");
}

#endif
#ifdef DDBMUTEX_NO_PROFILES

KeyOutcome keys_of_profile(ProfileChain& chain, const Fetch& fetch) {
  const Profile none(chain.place);
  Search search{chain, fetch};
  KeyOutcome outcome = keys_by_web_identity(search, none, chain.web_identity);
  if (outcome.state != State::none) return outcome;
  return no_keys("AWS_WEB_IDENTITY_TOKEN_FILE is not set; %s",
                 none.whereabouts());
}

#endif

namespace {

#if !defined(DDBMUTEX_NO_HOSTS) || !defined(DDBMUTEX_NO_ROLES) || \
    !defined(DDBMUTEX_NO_SSO)

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

#endif

class Chain final : public KeySource {
 public:
  Chain(const ChainOptions& options, const Environment& environment);
  KeyOutcome fetch(const Fetch& fetch) override;
  const KeyOutcome* at_hand() const override;

 private:
  // What the parts want to know, and only they.
  void read_for_parts(const ChainOptions& options, const Profile& read,
                      const Environment& variables);

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
  chain_.web_identity.ignored = named_;
  if (!named_) {
    variables("AWS_WEB_IDENTITY_TOKEN_FILE")
        .swap(chain_.web_identity.token_file);
  }
  read_for_parts(options, read, variables);
}

void Chain::read_for_parts([[maybe_unused]] const ChainOptions& options,
                           [[maybe_unused]] const Profile& read,
                           [[maybe_unused]] const Environment& variables) {
#ifndef DDBMUTEX_NO_ROLES
  if (!named_) {
    chain_.web_identity.role_arn = variables("AWS_ROLE_ARN");
    chain_.web_identity.session_name = variables("AWS_ROLE_SESSION_NAME");
  }
#endif
#if !defined(DDBMUTEX_NO_SSO) && !defined(DDBMUTEX_NO_PROFILES)
  const std::string home = variables("HOME");
  if (!home.empty()) chain_.sso_cache = home + "/.aws/sso/cache";
  std::string& cache = chain_.login_cache;
  cache = sigv4::locate("AWS_LOGIN_CACHE_DIRECTORY", "~/.aws/login/cache",
                        variables);
  if (sigv4::begins_with(cache, "~/")) cache.clear();  // HOME is not known.
#endif
#if !defined(DDBMUTEX_NO_HOSTS) || !defined(DDBMUTEX_NO_ROLES) || \
    !defined(DDBMUTEX_NO_SSO)
  read_services(chain_.services, options, read, variables);
#endif
#ifndef DDBMUTEX_NO_HOSTS
  chain_.container = container_settings(variables);
  chain_.container.ca_file = chain_.services.ca_file;
  for (Instance* one : {&chain_.instance, &of_region_}) {
    read_instance_settings(variables, read, *one);
  }
#endif
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
