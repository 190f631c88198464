#include "endpoint.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "../sigv4/http.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Environment;
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

Target failure(const char* option, std::string error) {
  Target target;
  target.error = std::move(error);
  target.option = option;
  return target;
}

std::string region_sources(const Profile& profile) {
  return "neither AWS_REGION nor AWS_DEFAULT_REGION is set, nor region of " +
         profile.described() + " (" + profile.whereabouts() + ")";
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
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
  for (const auto& [name, meant] : {std::pair("preferred", Mode::preferred),
                                    std::pair("disabled", Mode::disabled),
                                    std::pair("required", Mode::required)}) {
    if (mode->value != name) continue;
    settings.account_mode = meant;
    return "";
  }
  return mode->source + " is none of preferred, disabled and required";
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

bool can_be_read(const std::string& path) {
  // A FIFO is not waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat status = {};
  const bool good = fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode);
  close(fd);
  return good;
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
  if (!can_be_read(file->value)) {
    return file->source + ", " + sigv4::in_quotes(file->value) +
           ", cannot be read";
  }
  ca_file = file->value;
  return "";
}

// AWS's rules want the flag for it, not its URL.
bool is_dual_stack_url(const std::string& url, const std::string& region) {
  const auto parts = sigv4::parse_url(url);
  const std::string_view suffix = sigv4::partition_of(region).dual_stack_suffix;
  const bool has_port = url.find(':', sizeof("https")) != url.npos;
  if (!parts || has_port) return false;
  const std::string rest = "dynamodb." + region + "." + std::string(suffix);
  const std::string host = lower(parts->authority);
  return host == rest || host == "search-" + rest;
}

std::string refusal_of(const Profile::Property& url, const Place& place) {
  std::string error = sigv4::refusal_of(url, place.fips, place.dual_stack);
  if (error.empty() && is_dual_stack_url(url.value, place.region)) {
    error = url.source +
            " names a dual-stack endpoint of AWS's, which only "
            "AWS_USE_DUALSTACK_ENDPOINT or use_dualstack_endpoint may choose";
  }
  return error;
}

// Why accounts have no URLs of their own there; empty if they have.
std::string why_no_accounts(const Place& place) {
  if (place.fips.on) return "there is none with FIPS, and " + place.fips.why;
  const bool have =
      sigv4::partition_of(place.region).name == "aws" ||
      std::find(kRegionsOfAccounts.begin(), kRegionsOfAccounts.end(),
                place.region) != kRegionsOfAccounts.end();
  if (have) return "";
  return "there is none in region " + sigv4::in_quotes(place.region);
}

// Sets what the target has to do with accounts, or returns why that cannot be.
std::string set_account(const Place& place, Target& target) {
  const TargetSettings& settings = target.settings;
  if (settings.account_mode == Mode::disabled) return "";
  const bool required = settings.account_mode == Mode::required;
  const std::string why = why_no_accounts(place);
  if (!why.empty()) {
    if (!required) return "";
    return settings.account_mode_source + kRequires + ": " + why;
  }
  const sigv4::Partition& partition = sigv4::partition_of(place.region);
  const std::string_view suffix =
      place.dual_stack.on ? partition.dual_stack_suffix : partition.suffix;
  target.account_endpoint.prefix = "https://";
  target.account_endpoint.suffix =
      ".ddb." + place.region + "." + std::string(suffix);
  target.account_required = required;
  return "";
}

std::string set_local(const Place& place, Target& target) {
  if (place.fips.on || place.dual_stack.on) {
    return (place.fips.on ? place.fips : place.dual_stack).why +
           " but region \"local\" is this host";
  }
  target.endpoint = kLocalUrl;
  target.region = kLocalSigned;
  return "";
}

std::string set_regional(const Place& place, Target& target) {
  auto found = sigv4::regional_endpoint(sigv4::Service::dynamodb, place.region,
                                        place.fips.on, place.dual_stack.on);
  target.endpoint = std::move(found.url);
  target.region = std::move(found.region);
  return set_account(place, target);
}

std::string set_custom(const Place& place, Target& target) {
  target.endpoint = target.settings.endpoint->value;
  target.region = place.region;
  return refusal_of(*target.settings.endpoint, place);
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
  std::array<std::string, 6> parts;
  std::size_t begin = 0;
  for (std::string& part : parts) {
    const std::size_t end = std::min(table.find(':', begin), table.size());
    part = table.substr(begin, end - begin);
    begin = std::min(end + 1, table.size());
  }
  const bool fits = parts[0] == "arn" && parts[2] == "dynamodb" &&
                    parts[3] == region && !parts[5].empty();
  return fits ? parts[4] : "";
}

Target complete(const Target& target, const Profile::Property& region) {
  const Place place = sigv4::place_of(target.settings.services, region);
  if (!place.error.empty()) return failure("region", place.error);
  Target result = target;
  result.region_sources.clear();
  result.region_source = region.source;
  // Other services are to have FIPS too if the region's name asks for it.
  result.settings.services.fips = place.fips;
  const auto set = target.settings.endpoint ? set_custom
                   : place.region == kLocal ? set_local
                                            : set_regional;
  std::string error = set(place, result);
  if (!error.empty()) return failure("endpoint", std::move(error));
  return result;
}

AccountUrl account_url(const Target& target, const std::string& account_id) {
  const AccountEndpoint& own = target.account_endpoint;
  if (own.suffix.empty()) return {target.endpoint, ""};
  if (account_id.empty()) {
    if (!target.account_required) return {target.endpoint, ""};
    return {"", target.settings.account_mode_source + kRequires +
                    ", but the keys' source does not tell the account"};
  }
  if (!sigv4::is_host_label(account_id)) {
    return {"", "the account id that came with the keys is none"};
  }
  return {own.prefix + account_id + own.suffix, ""};
}

Target find_target(const TargetOptions& options,
                   const Environment& environment) {
  const Profile profile = sigv4::load_profile(options.profile, environment);
  if (!profile.error.empty()) return failure("profile", profile.error);
  Target target;
  std::string error =
      find_settings(options, environment, profile, target.settings);
  if (!error.empty()) return failure("endpoint", std::move(error));
  error = find_ca_file(options, environment, profile, target.ca_file);
  if (!error.empty()) return failure("ca_file", std::move(error));
  const Setting region = find_region(options, environment, profile);
  if (region) return complete(target, *region);
  if (!options.region_may_come_later) {
    return failure("region", "no region: " + region_sources(profile));
  }
  if (target.settings.endpoint) {
    error = sigv4::refusal_of(*target.settings.endpoint,
                              target.settings.services.fips,
                              target.settings.services.dual_stack);
  }
  if (!error.empty()) return failure("endpoint", std::move(error));
  target.region_sources = region_sources(profile);
  return target;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
