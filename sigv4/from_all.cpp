#include "from_all.hpp"

#include <utility>
#include <vector>

#include "from_hosts.hpp"
#include "from_profile.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

#ifdef DDBMUTEX_NO_HOSTS

namespace {

constexpr char kNoHosts[] =
    "containers and EC2 instances are not asked: this build of the library is "
    "without hosts";

}  // namespace

InstanceSettings instance_settings(const Environment&, const Profile&) {
  InstanceSettings settings;
  settings.disabled = kNoHosts;
  return settings;
}

KeySourcePtr container_keys(const Environment&, std::string) {
  return source_of([](const Fetch&) { return no_keys(kNoHosts); });
}

KeySourcePtr instance_keys(InstanceSettings) {
  return source_of([](const Fetch&) { return no_keys(kNoHosts); });
}

KeySourcePtr with_region(KeySourcePtr keys, InstanceSettings) { return keys; }

#endif

namespace {

WebIdentityVariables web_identity(const ChainOptions& options,
                                  const Environment& environment) {
  WebIdentityVariables variables;
  variables.ignored = !options.profile.name.empty();
  if (variables.ignored) return variables;
  const auto value = [&](const char* name) {
    return set_in(environment, name).value_or("");
  };
  variables.token_file = value("AWS_WEB_IDENTITY_TOKEN_FILE");
  variables.role_arn = value("AWS_ROLE_ARN");
  variables.session_name = value("AWS_ROLE_SESSION_NAME");
  return variables;
}

Services services_of(const ChainOptions& options, const Profile& profile,
                     const Environment& environment) {
  Services services;
  services.endpoints = options.endpoints
                           ? *options.endpoints
                           : read_endpoint_settings(profile, environment);
  services.region = options.region;
  services.region_source = "the region";
  services.http.ca_file = options.ca_file;
  if (services.region.empty()) {
    Setting region = find_setting(
        environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
    if (region) {
      services.region = std::move(region->value);
      services.region_source = std::move(region->source);
    }
  }
  if (services.http.ca_file.empty()) {
    Setting file =
        find_setting(environment, {"AWS_CA_BUNDLE"}, profile, "ca_bundle");
    if (file) services.http.ca_file = std::move(file->value);
  }
  return services;
}

// Known from the beginning: later it may be well again, but its settings were
// not read.
KeySourcePtr always(KeyOutcome outcome) {
  return source_of(
      [outcome = std::move(outcome)](const Fetch&) { return outcome; });
}

}  // namespace

KeySourcePtr chain_keys(const ChainOptions& options,
                        const Environment& environment) {
  const Profile place = locate_profile(options.profile, environment);
  const Profile profile = load_profile(place);
  const InstanceSettings instance = instance_settings(environment, profile);
  if (options.own != nullptr) return with_region(options.own, instance);
  ProfileChain chain;
  chain.place = place;
  chain.web_identity = web_identity(options, environment);
  if (const auto home = set_in(environment, "HOME")) {
    chain.sso_cache = *home + "/.aws/sso/cache";
  }
  chain.services = services_of(options, profile, environment);
  chain.environment = environment_keys(environment);
  chain.container = container_keys(environment, chain.services.http.ca_file);
  chain.instance = instance_keys(instance);
  chain.instance_may_come = instance.disabled.empty();
  std::vector<KeySourcePtr> sources = {given_keys(options.keys)};
  if (profile.missing) sources.push_back(always(broken_keys(profile.error)));
  sources.push_back(
      options.profile.name.empty()
          ? chain.environment
          : always(no_keys("the environment's keys are not looked at (the "
                           "options name a profile)")));
  sources.push_back(profile.error.empty() ? profile_chain(chain)
                                          : always(broken_keys(profile.error)));
  sources.push_back(chain.container);
  sources.push_back(chain.instance);
  KeySourcePtr keys = first_of(std::move(sources));
  return options.find_region ? with_region(std::move(keys), instance) : keys;
}

bool instance_may_know_region(const ProfileOptions& profile,
                              const Environment& environment) {
  return instance_settings(environment, load_profile(profile, environment))
      .disabled.empty();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
