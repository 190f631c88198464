// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Asks the sources one after the other.  Sources of a few lines are here too.
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

// --- The sources -------------------------------------------------------------

KeyOutcome keys_given(Search& search) { return search.chain.given; }

KeyOutcome check_profile_name(Search& search) {
  if (search.chain.missing) return broken_keys({search.chain.unusable});
  return {};
}

KeyOutcome keys_of_environment(Search& search) {
  if (!search.chain.named) return search.chain.environment;
  return no_keys(
      {"the keys in the environment are not used (the options name a "
       "profile)"});
}

KeyOutcome keys_of_container(Search& search) {
  return container_keys(search.chain.container, search.fetch);
}

KeyOutcome keys_of_instance(Search& search) {
  return instance_keys(search.chain.instance, search.fetch);
}

namespace {

// Asks all sources, or only those of profiles.  The first one that has keys, is
// misconfigured or does not answer ends the search.  If there is none, the
// outcome has the reasons of all.
KeyOutcome first_of(Search& search, bool profiles_only) {
  const Parts& parts = search.chain.parts;
  KeyOutcome outcome;
  std::string reasons, warnings;
  for (std::size_t i = 0; i < parts.source_count; ++i) {
    const KeySourceRow& row = parts.sources[i];
    if (profiles_only && row.of != SourceOf::profile) continue;
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

// `profile`: the one at chain.place.
void read_settings(const ChainOptions& options, const Environment& environment,
                   const Profile& profile, Chain& chain) {
  chain.given = keys_of_options(options.keys);
  chain.environment = environment_keys(environment);
  chain.named = !options.profile.empty();
  chain.unusable = profile.error;
  chain.missing = profile.missing;
  if (!chain.named) {
    chain.token_file = environment("AWS_WEB_IDENTITY_TOKEN_FILE");
  }
  chain.container = container_settings(environment);
  chain.container.ca_file = options.ca_file;
  if (options.ca_file.empty()) {
    chain.container.ca_file =
        find_setting(environment, {"AWS_CA_BUNDLE"}, profile, "ca_bundle")
            .value;
  }
  read_instance_settings(environment, profile, chain.instance);
  if (chain.parts.read_services != nullptr) {
    chain.parts.read_services(options, environment, profile, chain);
  }
}

// --- The search --------------------------------------------------------------

class ChainSource final : public KeySource {
 public:
  ChainSource(const ChainOptions& options, const Parts& parts,
              const Environment& environment);
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

ChainSource::ChainSource(const ChainOptions& options, const Parts& parts,
                         const Environment& environment)
    : own_(options.own),
      find_region_(options.find_region || own_ != nullptr),
      chain_(parts) {
  chain_.place = locate_profile(options.profile, environment);
  const Profile profile(chain_.place, parts);
  read_settings(options, environment, profile, chain_);
  read_instance_settings(environment, profile, of_region_);
}

KeyOutcome ChainSource::fetch(const Fetch& fetch) {
  Search search{chain_, fetch};
  KeyOutcome outcome =
      own_ != nullptr ? own_->fetch(fetch) : first_of(search, false);
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
  if (find_region_) return nullptr;
  if (chain_.given.state != State::none) return &chain_.given;
  const bool uses_environment = !chain_.missing && !chain_.named;
  if (uses_environment && chain_.environment.state != State::none) {
    return &chain_.environment;
  }
  return nullptr;
}

}  // namespace

KeyOutcome keys_of_source_profile(Search& search) {
  return first_of(search, true);
}

KeySourcePtr chain_keys(const ChainOptions& options, const Parts& parts,
                        const Environment& environment) {
  return std::make_shared<ChainSource>(options, parts, environment);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
