// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The list of sources, and the search that walks it.
#include "from_all.hpp"

#include <memory>
#include <utility>

#include "../text.hpp"
#include "from_hosts.hpp"
#include "sources.hpp"

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
      {"containers and EC2 instances are not asked: this build of the library "
       "is without hosts"});
}

KeyOutcome instance_keys(Instance&, const Fetch& fetch) {
  return container_keys({}, fetch);
}

KeyOutcome instance_region(Instance&, const Fetch& fetch) {
  return container_keys({}, fetch);
}

#endif

namespace {

// --- The sources -------------------------------------------------------------

enum class Part { always, profiles, hosts };

struct KeySourceRow {
  Part part;
  KeyOutcome (*keys_of)(Search& search);
};

// A named profile that does not exist, or cannot be read in this build, must
// not be replaced by other keys.
KeyOutcome check_profile_name(Search& search) {
  if (search.chain.missing) return broken_keys({search.chain.unusable});
  return {};
}

KeyOutcome keys_of_environment(Search& search) {
  if (!kReadsProfiles || !search.chain.named) return search.chain.environment;
  return no_keys(
      {"the keys in the environment are not used (the options name a "
       "profile)"});
}

#ifdef DDBMUTEX_NO_PROFILES
// Refuses a web identity.  If the search went on, requests would be signed with
// other keys than the environment asks for.
KeyOutcome refuse_profile(Search& search) {
  if (!search.chain.web_identity.token_file.empty()) {
    return broken_keys(
        {"AWS_WEB_IDENTITY_TOKEN_FILE: this build of the library is without "
         "profiles"});
  }
  return no_keys({"AWS_WEB_IDENTITY_TOKEN_FILE is not set; ",
                  Profile(search.chain.place).whereabouts()});
}
#endif

// In the order of the table in README.md.  check_*, open_* and refuse_* give no
// keys, but may end the search.
constexpr KeySourceRow kRows[] = {
    {Part::always, [](Search& search) { return search.chain.given; }},
    {Part::always, check_profile_name},
    {Part::always, keys_of_environment},
#ifdef DDBMUTEX_NO_PROFILES
    {Part::always, refuse_profile},
#else
    {Part::profiles, open_profile},
    {Part::profiles, keys_by_role},
    {Part::profiles, keys_by_web_identity},
    {Part::profiles, keys_by_sign_on},
    {Part::profiles, keys_in_credentials_file},
    {Part::profiles, keys_by_login},
    {Part::profiles, keys_by_program},
    {Part::profiles, keys_in_config_file},
    {Part::profiles, check_profile},
#endif
    {Part::hosts,
     [](Search& search) {
       return container_keys(search.chain.container, search.fetch);
     }},
#ifndef DDBMUTEX_NO_HOSTS  // Otherwise the row above speaks for both.
    {Part::hosts,
     [](Search& search) {
       return instance_keys(search.chain.instance, search.fetch);
     }},
#endif
};

// Asks the sources of one part, or (Part::always) all sources.  The first one
// that has keys, is misconfigured or does not answer ends the search.  If there
// is none, the outcome has the reasons of all.
KeyOutcome first_of(Part part, Search& search) {
  KeyOutcome outcome;
  std::string reasons, warnings;
  for (const KeySourceRow& row : kRows) {
    if (part != Part::always && row.part != part) continue;
    outcome = row.keys_of(search);
    warnings += outcome.warnings;
    if (outcome.state != State::none) break;
    if (outcome.reason.empty()) continue;
    search.fetch.say(outcome.reason);
    append(reasons, {reasons.empty() ? "" : "; ", outcome.reason});
  }
  if (outcome.state == State::none) outcome.reason = std::move(reasons);
  outcome.warnings = std::move(warnings);
  return outcome;
}

// --- Settings ----------------------------------------------------------------

void read_services(Services& services, const ChainOptions& options,
                   const Profile& profile, const Environment& environment) {
  read_endpoint_settings(Service::sts, profile, environment, services.sts);
  services.last_address = std::make_shared<LastAddress>();
  services.region = options.region;
  services.ca_file = options.ca_file;
  if (!services.region) {
    services.region = find_setting(
        environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
  }
  // This applies also to an STS in another region.
  if (asks_for_fips(services.region.value)) {
    services.sts.fips = services.region.source + " asks for FIPS";
  }
  if (services.ca_file.empty()) {
    services.ca_file =
        find_setting(environment, {"AWS_CA_BUNDLE"}, profile, "ca_bundle")
            .value;
  }
}

WebIdentityVariables web_identity_of(const Environment& environment) {
  return {environment("AWS_WEB_IDENTITY_TOKEN_FILE"),
          environment("AWS_ROLE_ARN"), environment("AWS_ROLE_SESSION_NAME")};
}

// `profile`: the one at chain.place.
void read_settings(const ChainOptions& options, const Environment& environment,
                   const Profile& profile, Chain& chain) {
  chain.given = keys_of_options(options.keys);
  chain.environment = environment_keys(environment);
  chain.named = !options.profile.empty();
  chain.unusable = profile.error;
  chain.missing = profile.missing;
  if (!chain.named) chain.web_identity = web_identity_of(environment);
  read_services(chain.services, options, profile, environment);
  chain.container = container_settings(environment);
  chain.container.ca_file = chain.services.ca_file;
  read_instance_settings(environment, profile, chain.instance);
}

// --- The search --------------------------------------------------------------

class ChainSource final : public KeySource {
 public:
  ChainSource(const ChainOptions& options, const Environment& environment);
  KeyOutcome fetch(const Fetch& fetch) override;
  const KeyOutcome* at_hand() const override;

 private:
  void add_region(KeyOutcome& outcome, const Fetch& fetch);

  const KeySourcePtr own_;
  const bool find_region_;
  Chain chain_;
  Instance of_region_;
  std::string region_;
};

ChainSource::ChainSource(const ChainOptions& options,
                         const Environment& environment)
    : own_(options.own), find_region_(options.find_region || own_ != nullptr) {
  chain_.place = locate_profile(options.profile, environment);
  const Profile profile(chain_.place);
  read_settings(options, environment, profile, chain_);
  read_instance_settings(environment, profile, of_region_);
}

KeyOutcome ChainSource::fetch(const Fetch& fetch) {
  Search search{chain_, fetch};
  if (!kRegionMayComeLater) return first_of(Part::always, search);
  KeyOutcome outcome =
      own_ != nullptr ? own_->fetch(fetch) : first_of(Part::always, search);
  if (find_region_ && outcome.state == State::found) add_region(outcome, fetch);
  return outcome;
}

void ChainSource::add_region(KeyOutcome& outcome, const Fetch& fetch) {
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

const KeyOutcome* ChainSource::at_hand() const {
  if (kRegionMayComeLater && find_region_) return nullptr;
  if (chain_.given.state != State::none) return &chain_.given;
  const bool uses_environment = !chain_.missing && !chain_.named;
  if (uses_environment && chain_.environment.state != State::none) {
    return &chain_.environment;
  }
  return nullptr;
}

}  // namespace

KeyOutcome keys_of_source_profile(Search& search) {
  return first_of(Part::profiles, search);
}

KeySourcePtr chain_keys(const ChainOptions& options,
                        const Environment& environment) {
  return std::make_shared<ChainSource>(options, environment);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
