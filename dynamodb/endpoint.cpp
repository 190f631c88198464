#include "dynamodb/endpoint.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "dynamodb/client.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Environment;
using sigv4::Profile;
using sigv4::set_in;

namespace {

constexpr std::string_view kLocal = "local";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Partition {
  // A region is one of these, with its '-', then a word, '-' and a number.
  std::string_view prefix;
  std::string_view suffix;
};

// Where nothing else is said, aws: "amazonaws.com".  So us-gov is not here.
constexpr std::array<Partition, 6> kPartitions = {{
    {"cn-", "amazonaws.com.cn"},
    {"eusc-de-", "amazonaws.eu"},
    {"us-iso-", "c2s.ic.gov"},
    {"us-isob-", "sc2s.sgov.gov"},
    {"eu-isoe-", "cloud.adc-e.uk"},
    {"us-isof-", "csp.hci.ic.gov"},
}};

// "north-1"
bool is_word_and_number(std::string_view text) {
  const auto hyphen = text.find('-');
  if (hyphen == text.npos || hyphen == 0) return false;
  const std::string_view number = text.substr(hyphen + 1);
  return !number.empty() && std::all_of(number.begin(), number.end(), is_digit);
}

std::string_view suffix_of(std::string_view region) {
  for (const Partition& partition : kPartitions) {
    const auto length = partition.prefix.size();
    if (region.substr(0, length) == partition.prefix &&
        is_word_and_number(region.substr(length))) {
      return partition.suffix;
    }
  }
  return "amazonaws.com";
}

// A setting with its source for error texts.
using Setting = std::optional<Profile::Property>;

Setting from_variable(const Environment& environment, const char* name) {
  auto value = set_in(environment, name);
  if (!value) return std::nullopt;
  return Profile::Property{std::move(*value), name};
}

Setting from_option(const std::string& value, const char* name) {
  if (value.empty()) return std::nullopt;
  return Profile::Property{value, name};
}

// A flag of the environment, else of the profile; false if it is in neither.
// Nothing if it is no flag: then `error` says so.
std::optional<bool> flag(const Environment& environment, const char* variable,
                         const Profile& profile, const char* property,
                         std::string& error) {
  Setting setting = from_variable(environment, variable);
  if (!setting) setting = profile.find(property);
  if (!setting) return false;
  std::string value = setting->value;
  for (char& c : value) c = static_cast<char>(c | 0x20);  // Lower case.
  if (value == "true") return true;
  if (value == "false") return false;
  error = setting->source + " is neither true nor false";
  return std::nullopt;
}

// The profile's word for DynamoDB alone.
Setting service_endpoint(const Profile& profile, std::string& error) {
  const Setting name = profile.find("services");
  if (!name) return std::nullopt;
  const auto& all = profile.config.sections.services;
  const auto section = all.find(name->value);
  if (section == all.end()) {
    error = name->source + " names a section " +
            sigv4::in_quotes("services " + name->value) + " that is not there";
    return std::nullopt;
  }
  const auto service = section->second.find("dynamodb");
  if (service == section->second.end()) return std::nullopt;
  auto url = sigv4::sub_property(service->second, "endpoint_url");
  if (!url || url->empty()) return std::nullopt;
  return Profile::Property{std::move(*url),
                           "endpoint_url of dynamodb in section " +
                               sigv4::in_quotes("services " + name->value) +
                               " of " + sigv4::in_quotes(profile.config.path)};
}

Setting configured_endpoint(const Environment& environment,
                            const Profile& profile, std::string& error) {
  const auto ignore = flag(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                           profile, "ignore_configured_endpoint_urls", error);
  if (!ignore || *ignore) return std::nullopt;
  for (const char* name : {"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"}) {
    if (Setting url = from_variable(environment, name)) return url;
  }
  Setting url = service_endpoint(profile, error);
  if (!url && error.empty()) url = profile.find("endpoint_url");
  return url;
}

Setting find_region(const TargetOptions& options,
                    const Environment& environment, const Profile& profile) {
  if (auto region = from_option(options.region, "option region")) return region;
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (Setting region = from_variable(environment, name)) return region;
  }
  return profile.find("region");
}

Setting find_endpoint(const TargetOptions& options,
                      const Environment& environment, const Profile& profile,
                      std::string& error) {
  if (auto url = from_option(options.endpoint, "option endpoint")) return url;
  const auto fips = flag(environment, "AWS_USE_FIPS_ENDPOINT", profile,
                         "use_fips_endpoint", error);
  if (!fips) return std::nullopt;
  if (*fips) {
    error = "AWS_USE_FIPS_ENDPOINT, or use_fips_endpoint of " +
            profile.described() +
            ", is true: a FIPS endpoint is only supported as option endpoint";
    return std::nullopt;
  }
  return configured_endpoint(environment, profile, error);
}

Target failure(const char* option, std::string error) {
  return {"", "", std::move(error), option};
}

std::string no_region(const Profile& profile) {
  return "no region: neither AWS_REGION nor AWS_DEFAULT_REGION is set, nor "
         "region of " +
         profile.described() + " (" + profile.whereabouts() + ")";
}

}  // namespace

bool is_region(const std::string& text) {
  const auto fits = [](char c) {
    return is_letter(c) || is_digit(c) || c == '-';
  };
  return !text.empty() && text.size() <= 63 && text.front() != '-' &&
         text.back() != '-' && std::all_of(text.begin(), text.end(), fits);
}

std::string endpoint_of(const std::string& region) {
  if (region == kLocal) return "http://localhost:8000";
  return "https://dynamodb." + region + "." + std::string(suffix_of(region));
}

Target find_target(const TargetOptions& options,
                   const Environment& environment) {
  Profile profile;
  if (options.region.empty() || options.endpoint.empty()) {
    profile = load_profile(options.profile, environment);
    if (!profile.error.empty()) return failure("profile", profile.error);
  }
  const Setting region = find_region(options, environment, profile);
  if (!region) return failure("region", no_region(profile));
  if (!is_region(region->value)) {
    return failure("region", region->source + " is not the name of a region");
  }
  std::string error;
  const Setting url = find_endpoint(options, environment, profile, error);
  if (!error.empty()) return failure("endpoint", std::move(error));
  if (url && !is_endpoint(url->value)) {
    return failure(
        "endpoint",
        url->source + " is not http:// or https://, a host and perhaps a port");
  }
  const bool local = !url && region->value == kLocal;
  return {url ? url->value : endpoint_of(region->value),
          local ? "us-east-1" : region->value, "", ""};
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
