// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Configured endpoints are found first, when the settings are read.  AWS's own
// endpoints follow from the region and its partition, once the region is known.
#include "endpoints.hpp"

#include <algorithm>
#include <iterator>

#include "text.hpp"
#include "url.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;

namespace {

// The last one has all regions that belong to no other.  All have FIPS
// endpoints.  All except aws-eusc have a region for the whole partition, such
// as "aws-cn-global".
constexpr Partition kPartitions[] = {
    {"aws-cn", "cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"aws-us-gov", "us-gov-", "amazonaws.com", "api.aws"},
    {"aws-eusc", "eusc-de-", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"aws-iso", "us-iso-", "c2s.ic.gov", "api.aws.ic.gov"},
    {"aws-iso-b", "us-isob-", "sc2s.sgov.gov", "api.aws.scloud"},
    {"aws-iso-e", "eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"aws-iso-f", "us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"aws", "", "amazonaws.com", "api.aws"},
};

struct ServiceNames {
  const char* variable;
  // In a profile's services, for people, and as the first part of AWS's own
  // host names.
  const char* name;
};

ServiceNames names_of(Service service) {
  return service == Service::sts
             ? ServiceNames{"AWS_ENDPOINT_URL_STS", "sts"}
             : ServiceNames{"AWS_ENDPOINT_URL_DYNAMODB", "dynamodb"};
}

constexpr char kGlobalRegion[] = "aws-global";
constexpr char kUsEast1[] = "us-east-1";
constexpr char kAwsPartition[] = "aws";

// "north-1"
bool is_word_and_number(std::string_view text) {
  const std::string_view word = sigv4::cut(text, '-');
  return !word.empty() && !text.empty() && sigv4::all_digits(text);
}

// If the flag is true, sets `why` to "AWS_USE_FIPS_ENDPOINT is true".  If it is
// neither true nor false, sets `error`.
void read_flag(const Environment& environment, const char* variable,
               const Profile& profile, const char* property, std::string& why,
               std::string& error) {
  const Setting flag = find_setting(environment, {variable}, profile, property);
  if (flag.says("true")) {
    why = sigv4::join({flag.source, " is true"});
  } else if (flag && !flag.says("false")) {
    error = sigv4::join(
        {flag.source, " is neither true nor false: ", in_quotes(flag.value)});
  }
}

}  // namespace

bool instance_is_disabled(const Environment& environment) {
  return find_variable(environment, {"AWS_EC2_METADATA_DISABLED"}).says("true");
}

bool asks_for_fips(std::string_view region) {
  return sigv4::begins_with(region, "fips-") ||
         (region.size() > 5 && region.substr(region.size() - 5) == "-fips"sv);
}

namespace {

// AWS's SDKs cut the first "-fips", "fips-", "fips-dkr-" or "fips-prod-" out of
// a region that asks for FIPS.
std::string without_fips(std::string region) {
  if (region == "fips-aws-global" || region == "aws-fips") return kUsEast1;
  const auto begin = std::min(region.find("fips-"), region.find("-fips"));
  const bool leads = region[begin] == 'f';
  region.erase(begin, 5);
  const std::string_view rest = std::string_view(region).substr(begin);
  for (const std::string_view word : {"dkr-"sv, "prod-"sv}) {
    if (!leads || !sigv4::begins_with(rest, word)) continue;
    region.erase(begin, word.size());
    break;
  }
  return region;
}

// Why a FIPS or dual-stack endpoint is wanted; empty if neither is.
const std::string& why_special(const ServiceEndpoint& endpoint) {
  return endpoint.fips.empty() ? endpoint.dual_stack : endpoint.fips;
}

}  // namespace

void read_endpoint_settings(Service service, const Profile& profile,
                            const Environment& environment,
                            ServiceEndpoint& endpoint) {
  const ServiceNames names = names_of(service);
  std::string& error = endpoint.error;
  std::string ignored;
  const bool looked_for = !endpoint.url;
  if (looked_for) {
    read_flag(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", profile,
              "ignore_configured_endpoint_urls", ignored, error);
  }
  if (looked_for && ignored.empty() && error.empty()) {
    endpoint.url =
        find_variable(environment, {names.variable, "AWS_ENDPOINT_URL"});
    if (kReadsProfiles && !endpoint.url) {
      endpoint.url = profile.url_of(names.name, error);
    }
  }
  read_flag(environment, "AWS_USE_DUALSTACK_ENDPOINT", profile,
            "use_dualstack_endpoint", endpoint.dual_stack, error);
  read_flag(environment, "AWS_USE_FIPS_ENDPOINT", profile, "use_fips_endpoint",
            endpoint.fips, error);
}

const Partition& partition_of(std::string_view region) {
  const auto has_region = [&](const Partition& partition) {
    const std::string_view name = partition.name, prefix = partition.prefix;
    const bool is_one = sigv4::begins_with(region, prefix) &&
                        is_word_and_number(region.substr(prefix.size()));
    const bool is_all = name != "aws-eusc"sv &&
                        sigv4::begins_with(region, name) &&
                        region.substr(name.size()) == "-global"sv;
    return is_one || is_all;
  };
  return *std::find_if(std::begin(kPartitions), std::end(kPartitions) - 1,
                       has_region);
}

bool is_host_label(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' &&
         text.back() != '-' && sigv4::is_alphanumeric(text, "-");
}

bool is_endpoint_url(const std::string& text) {
  const std::string url = normal_url(text);
  return !url.empty() && sigv4::is_visible(url);
}

std::string url_at(std::string_view endpoint, std::string_view path) {
  const std::string_view own_path = parts_of(endpoint).path;
  if (path == "/"sv && !own_path.empty()) return std::string(endpoint);
  const bool two_slashes = !own_path.empty() && own_path.back() == '/' &&
                           sigv4::begins_with(path, "/");
  if (two_slashes) endpoint.remove_suffix(1);
  return sigv4::join({endpoint, path});
}

void set_region(ServiceEndpoint& endpoint, const Setting& region) {
  if (!endpoint.error.empty()) return;
  endpoint.region = region.value;
  if (asks_for_fips(region.value)) {
    if (kAllEndpoints) endpoint.region = without_fips(region.value);
    endpoint.fips = sigv4::join({region.source, " asks for FIPS"});
  }
  const std::string& why = why_special(endpoint);
  if (!is_host_label(endpoint.region)) {
    endpoint.error =
        sigv4::join({region.source, " is not the name of a region"});
    if (region) append(endpoint.error, {": ", in_quotes(region.value)});
  } else if (!kAllEndpoints && !why.empty()) {
    endpoint.error = sigv4::join({why, kEndpointsLeftOut});
  }
}

void check_url(ServiceEndpoint& endpoint) {
  const auto& [value, source] = endpoint.url;
  if (value.empty()) return;
  // Without the part "endpoints", set_region() has refused them already.
  const std::string& why = why_special(endpoint);
  if ((kAllEndpoints || kRegionMayComeLater) && !why.empty()) {
    endpoint.error = sigv4::join(
        {why, ", but ", source,
         " names an endpoint, and it cannot be known whether that is a ",
         endpoint.fips.empty() ? "dual-stack" : "FIPS", " one"});
    return;
  }
  if (is_endpoint_url(value)) return;
  const bool secret = value.find('@') != value.npos;
  const std::string subject =
      secret ? " (not shown: it may contain a password)"
             : sigv4::join({" is ", in_quotes(value), ", which"});
  endpoint.error = sigv4::join({source, subject,
                                " is not http:// or https://, a host, and "
                                "optionally a port and a path"});
}

namespace {

void use_configured_url(ServiceEndpoint& endpoint) {
  check_url(endpoint);
  if (!endpoint.error.empty()) return;
  endpoint.endpoint = endpoint.url.value;
  const bool no_path = parts_of(endpoint.endpoint).path == "/"sv;
  if (no_path) endpoint.endpoint.pop_back();
}

}  // namespace

void find_in_region(Service service, ServiceEndpoint& endpoint) {
  if (endpoint.url) return use_configured_url(endpoint);
  std::string& region = endpoint.region;
  if (service == Service::sts && region == kGlobalRegion &&
      why_special(endpoint).empty()) {
    endpoint.endpoint = "https://sts.amazonaws.com";
    region = kUsEast1;
    return;
  }
  const Partition& partition = partition_of(region);
  if (!kAllEndpoints && partition.name != std::string_view(kAwsPartition)) {
    endpoint.error = sigv4::join({"region ", region, " is in partition ",
                                  partition.name, kEndpointsLeftOut});
    return;
  }
  const bool dual_stack = !endpoint.dual_stack.empty();
  const bool gov = partition.name == "aws-us-gov"sv;
  // In GovCloud, the usual endpoints are FIPS ones.
  const bool usual =
      !kAllEndpoints || endpoint.fips.empty() || (gov && !dual_stack);
  endpoint.suffix = sigv4::join(
      {region, ".",
       dual_stack ? partition.dual_stack_suffix : partition.suffix});
  endpoint.endpoint = sigv4::join({"https://", names_of(service).name,
                                   usual ? "." : "-fips.", endpoint.suffix});
}

void find_endpoint(Service service, const Setting& region,
                   ServiceEndpoint& endpoint) {
  set_region(endpoint, region);
  if (endpoint.error.empty()) find_in_region(service, endpoint);
  if (!endpoint.error.empty()) endpoint.region.clear();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
