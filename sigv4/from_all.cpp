#include "from_all.hpp"

#include <memory>
#include <utility>

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

void read_services(Services& services, const ChainOptions& options,
                   const Profile& profile, const Environment& environment) {
  for (std::size_t i = 0; i < services.endpoints.size(); ++i) {
    services.endpoints[i] =
        read_endpoint_settings(static_cast<Service>(i), profile, environment);
  }
  services.region = options.region;
  services.http.ca_file = options.ca_file;
  if (!services.region) {
    services.region = find_setting(
        environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
  }
  if (services.http.ca_file.empty()) {
    services.http.ca_file =
        find_setting(environment, {"AWS_CA_BUNDLE"}, profile, "ca_bundle")
            .value;
  }
}

// Later it may be well again, but its settings were not read.
KeySourcePtr unusable(const std::string& error) {
  return source_of([error](const Fetch&) { return broken_keys(error); });
}

KeySourcePtr ignored_environment() {
  return source_of([](const Fetch&) {
    return no_keys(
        "the environment's keys are not looked at (the options name a "
        "profile)");
  });
}

}  // namespace

KeySourcePtr chain_keys(const ChainOptions& options,
                        const Environment& environment) {
  const auto chain = std::make_shared<ProfileChain>();
  chain->place = locate_profile(options.profile, environment);
  const Profile profile(chain->place);
  const InstanceSettings instance = instance_settings(environment, profile);
  if (options.own != nullptr) return with_region(options.own, instance);
  const bool named = !options.profile.name.empty();
  chain->web_identity.ignored = named;
  if (!named) {
    chain->web_identity.token_file = environment("AWS_WEB_IDENTITY_TOKEN_FILE");
    chain->web_identity.role_arn = environment("AWS_ROLE_ARN");
    chain->web_identity.session_name = environment("AWS_ROLE_SESSION_NAME");
  }
  const std::string home = environment("HOME");
  if (!home.empty()) chain->sso_cache = home + "/.aws/sso/cache";
  if (kAsksServers) {
    read_services(chain->services, options, profile, environment);
  }
  chain->environment = environment_keys(environment);
  chain->container = container_keys(environment, chain->services.http.ca_file);
  chain->instance = instance_keys(instance);
  chain->instance_may_come = instance.disabled.empty();
  const KeySourcePtr given = given_keys(options.keys);
  // Whoever mistyped a profile's name is not to sign with other keys.
  KeySourcePtr keys =
      profile.missing
          ? first_of({given, unusable(profile.error)})
          : first_of({given, named ? ignored_environment() : chain->environment,
                      profile.error.empty() ? profile_chain(chain)
                                            : unusable(profile.error),
                      chain->container, chain->instance});
  return options.find_region ? with_region(std::move(keys), instance) : keys;
}

bool instance_may_know_region(const Profile& profile,
                              const Environment& environment) {
  return instance_settings(environment, profile).disabled.empty();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
