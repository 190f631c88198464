#include "from_all.hpp"

#include <utility>
#include <vector>

#include "from_container.hpp"
#include "from_imds.hpp"
#include "from_profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

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
  if (services.region.empty()) {
    const Setting region = find_setting(
        environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
    if (region) {
      services.region = region->value;
      services.region_source = region->source;
    }
  }
  services.http.ca_file = options.ca_file;
  if (services.http.ca_file.empty()) {
    const Setting file =
        find_setting(environment, {"AWS_CA_BUNDLE"}, profile, "ca_bundle");
    if (file) services.http.ca_file = file->value;
  }
  return services;
}

std::string sso_cache(const Environment& environment) {
  const auto home = set_in(environment, "HOME");
  return home ? *home + "/.aws/sso/cache" : "";
}

// Later it may be well again, but its settings were not read.
KeySourcePtr unusable(std::string error) {
  return source_of(
      [error = std::move(error)](const Fetch&) { return broken_keys(error); });
}

KeySourcePtr ignored_environment() {
  return source_of([](const Fetch&) {
    return no_keys(
        "the environment's keys are not looked at (the options name a "
        "profile)");
  });
}

ProfileChain parts_of(const ChainOptions& options, const Profile& place,
                      const Profile& profile, const InstanceSettings& instance,
                      const Environment& environment) {
  ProfileChain chain;
  chain.place = place;
  chain.web_identity = web_identity(options, environment);
  chain.sso_cache = sso_cache(environment);
  chain.services = services_of(options, profile, environment);
  chain.environment = environment_keys(environment);
  chain.container = container_keys(environment, chain.services.http.ca_file);
  chain.instance = instance_keys(instance);
  chain.instance_may_come = instance.disabled.empty();
  return chain;
}

}  // namespace

KeySourcePtr chain_keys(const ChainOptions& options,
                        const Environment& environment) {
  const Profile place = locate_profile(options.profile, environment);
  const Profile profile = load_profile(place);
  const InstanceSettings instance = instance_settings(environment, profile);
  const ProfileChain parts =
      parts_of(options, place, profile, instance, environment);
  std::vector<KeySourcePtr> sources = {given_keys(options.keys)};
  if (profile.missing) sources.push_back(unusable(profile.error));
  sources.push_back(options.profile.name.empty() ? parts.environment
                                                 : ignored_environment());
  sources.push_back(profile.error.empty() ? profile_chain(parts)
                                          : unusable(profile.error));
  sources.push_back(parts.container);
  sources.push_back(parts.instance);
  KeySourcePtr keys = first_of(std::move(sources));
  return options.find_region ? with_region(std::move(keys), instance)
                             : std::move(keys);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
