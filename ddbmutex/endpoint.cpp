#include "endpoint.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "../sigv4/http.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Environment;
using sigv4::join;
using sigv4::Place;
using sigv4::Profile;
using sigv4::Setting;
using Mode = TargetSettings::AccountMode;

namespace {

constexpr char kLocal[] = "local";
constexpr char kLocalUrl[] = "http://localhost:8000";
constexpr char kLocalSigned[] = "us-east-1";

// Where accounts have URLs of their own outside of the partition aws.
constexpr std::array<std::string_view, 4> kRegionsOfAccounts = {
    "us-gov-east-1", "us-gov-west-1", "cn-north-1", "cn-northwest-1"};

constexpr char kRequires[] = " requires an account's own endpoint";

Setting from_option(const std::string& value, const char* name) {
  if (value.empty()) return std::nullopt;
  return Profile::Property{value, name};
}

// Nothing of what was found out is to be used.
Target refused(Target target, const char* option, std::string error) {
  target.error = std::move(error);
  target.option = option;
  target.endpoint.clear();
  target.region.clear();
  target.region_sources.clear();
  return target;
}

std::string region_sources(const Profile& profile) {
  return join(
      {"neither AWS_REGION nor AWS_DEFAULT_REGION is set, nor region of ",
       profile.described(), " (", profile.whereabouts(), ")"});
}

// Sets the mode, or returns why not.
std::string find_account_mode(const Environment& environment,
                              const Profile& profile,
                              TargetSettings& settings) {
  const Setting mode =
      sigv4::find_setting(environment, {"AWS_ACCOUNT_ID_ENDPOINT_MODE"},
                          profile, "account_id_endpoint_mode");
  if (!mode) return "";
  settings.account_mode_source = mode->source;
  if (mode->value == "disabled") {
    settings.account_mode = Mode::disabled;
  } else if (mode->value == "required") {
    settings.account_mode = Mode::required;
    if (!sigv4::kAllEndpoints) {
      return join({mode->source, kRequires, sigv4::kEndpointsLeftOut});
    }
  } else if (mode->value != "preferred") {
    return mode->source + " is none of preferred, disabled and required";
  }
  return "";
}

// What can be said about the endpoint before the region is known.
std::string find_settings(const TargetOptions& options,
                          const Environment& environment,
                          const Profile& profile, TargetSettings& settings) {
  settings.services = sigv4::read_endpoint_settings(profile, environment);
  if (!settings.services.error.empty()) return settings.services.error;
  settings.endpoint = from_option(options.endpoint, "option endpoint");
  if (!settings.endpoint) {
    const auto& configured = settings.services.url_of(sigv4::Service::dynamodb);
    if (!configured.error.empty()) return configured.error;
    settings.endpoint = configured.url;
  }
  return find_account_mode(environment, profile, settings);
}

// Sets the file, or returns why not.
std::string find_ca_file(const TargetOptions& options,
                         const Environment& environment, const Profile& profile,
                         std::string& ca_file) {
  Setting file = from_option(options.ca_file, "option ca_file");
  if (!file) {
    file = sigv4::find_setting(environment, {"AWS_CA_BUNDLE"}, profile,
                               "ca_bundle");
  }
  if (!file) return "";
  ca_file = file->value;
  struct stat status = {};
  // A FIFO is not opened, for it would be waited for.
  const bool good = stat(ca_file.c_str(), &status) == 0 &&
                    !S_ISDIR(status.st_mode) &&
                    euidaccess(ca_file.c_str(), R_OK) == 0;
  if (good) return "";
  return join(
      {file->source, ", ", sigv4::in_quotes(ca_file), ", cannot be read"});
}

// AWS's rules want the flag for it, not its URL; a region in capitals is none.
bool is_dual_stack_url(const std::string& url, const std::string& region) {
  const bool has_port = url.find(':', sizeof("https")) != url.npos;
  const auto parts = sigv4::parse_url(url);
  if (!parts || has_port) return false;
  const std::string rest =
      join({"dynamodb.", region, ".",
            sigv4::partition_of(region).dual_stack_suffix});
  std::string host = parts->authority;
  for (char& c : host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return host == rest || host == "search-" + rest;
}

std::string refusal_of(const Profile::Property& url, const Place& place) {
  std::string error = sigv4::refusal_of(url, place.fips, place.dual_stack);
  if (sigv4::kAllEndpoints && error.empty() &&
      is_dual_stack_url(url.value, place.region)) {
    error = url.source +
            " names a dual-stack endpoint of AWS's, which only "
            "AWS_USE_DUALSTACK_ENDPOINT or use_dualstack_endpoint may choose";
  }
  return error;
}

// Sets what the target has to do with accounts, or returns why that cannot be.
std::string set_account(const Place& place, Target& target) {
  const TargetSettings& settings = target.settings;
  if (settings.account_mode == Mode::disabled) return "";
  const sigv4::Partition& partition = sigv4::partition_of(place.region);
  const bool have =
      partition.name == "aws" ||
      std::find(kRegionsOfAccounts.begin(), kRegionsOfAccounts.end(),
                place.region) != kRegionsOfAccounts.end();
  const bool required = settings.account_mode == Mode::required;
  if (place.fips.on || !have) {
    if (!required) return "";
    return join(
        {settings.account_mode_source, kRequires, ": there is none ",
         place.fips.on ? "with FIPS, and " : "in region ",
         place.fips.on ? place.fips.why : sigv4::in_quotes(place.region)});
  }
  target.account_suffix = join(
      {".ddb.", place.region, ".",
       place.dual_stack.on ? partition.dual_stack_suffix : partition.suffix});
  target.account_required = required;
  return "";
}

// Sets endpoint and region, or returns why that cannot be.
std::string set_endpoint(const Place& place, Target& target) {
  if (target.settings.endpoint) {
    target.endpoint = target.settings.endpoint->value;
    target.region = place.region;
    return refusal_of(*target.settings.endpoint, place);
  }
  if (place.region == kLocal) {
    target.endpoint = kLocalUrl;
    target.region = kLocalSigned;
    if (!place.fips.on && !place.dual_stack.on) return "";
    return (place.fips.on ? place.fips : place.dual_stack).why +
           " but region \"local\" is this host";
  }
  auto found = sigv4::regional_endpoint(sigv4::Service::dynamodb, place.region,
                                        place.fips.on, place.dual_stack.on);
  target.endpoint = std::move(found.url);
  target.region = std::move(found.region);
  if (!found.error.empty() || !sigv4::kAllEndpoints) return found.error;
  return set_account(place, target);
}

Setting find_region(const TargetOptions& options,
                    const Environment& environment, const Profile& profile) {
  if (auto region = from_option(options.region, "option region")) return region;
  return sigv4::find_setting(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"},
                             profile, "region");
}

}  // namespace

std::string account_of_table(const std::string& table,
                             const std::string& region) {
  // "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
  const std::size_t partition = sizeof("arn");
  const std::size_t service = table.find(':', partition);
  const std::string middle = join({":dynamodb:", region, ":"});
  if (table.compare(0, partition, "arn:") != 0 || service == table.npos ||
      table.compare(service, middle.size(), middle) != 0) {
    return "";
  }
  const std::size_t account = service + middle.size();
  const std::size_t end = table.find(':', account);
  if (end == table.npos || end + 1 == table.size()) return "";
  return table.substr(account, end - account);
}

Target complete(Target target, const Profile::Property& region) {
  const Place place = sigv4::place_of(target.settings.services, region);
  if (!place.error.empty()) {
    return refused(std::move(target), "region", place.error);
  }
  target.region_sources.clear();
  target.region_source = region.source;
  // Other services are to have FIPS too if the region's name asks for it.
  target.settings.services.fips = place.fips;
  std::string error = set_endpoint(place, target);
  if (error.empty()) return target;
  return refused(std::move(target), "endpoint", std::move(error));
}

AccountUrl account_url(const Target& target, const std::string& account_id) {
  if (target.account_suffix.empty()) return {target.endpoint, ""};
  if (account_id.empty()) {
    if (!target.account_required) return {target.endpoint, ""};
    return {"", join({target.settings.account_mode_source, kRequires,
                      ", but the keys' source does not tell the account"})};
  }
  if (!sigv4::is_host_label(account_id)) {
    return {"", "the account id that came with the keys is none"};
  }
  return {join({"https://", account_id, target.account_suffix}), ""};
}

Target find_target(const TargetOptions& options,
                   const Environment& environment) {
  Target target;
  const Profile profile = sigv4::load_profile(options.profile, environment);
  const char* option = "profile";
  std::string error = profile.error;
  if (error.empty()) {
    option = "endpoint";
    error = find_settings(options, environment, profile, target.settings);
  }
  if (error.empty()) {
    option = "ca_file";
    error = find_ca_file(options, environment, profile, target.ca_file);
  }
  const Setting region = find_region(options, environment, profile);
  if (error.empty() && region) return complete(std::move(target), *region);
  if (error.empty()) {
    target.region_sources = region_sources(profile);
    option = "endpoint";
    if (!options.region_may_come_later) {
      option = "region";
      error = "no region: " + target.region_sources;
    } else if (target.settings.endpoint) {
      error = sigv4::refusal_of(*target.settings.endpoint,
                                target.settings.services.fips,
                                target.settings.services.dual_stack);
    }
  }
  if (error.empty()) return target;
  return refused(std::move(target), option, std::move(error));
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
