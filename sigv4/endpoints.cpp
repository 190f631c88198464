#include "endpoints.hpp"

#include <algorithm>
#include <utility>

#include "http.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;

namespace {

// Of each partition its name and the beginning of its regions (then come a
// word, '-' and a number).  All of them have FIPS endpoints, and all but
// aws-eusc a region that stands for all, "aws-cn-global".  The last has all
// regions that are no other's.
constexpr std::string_view kPartitions =
    "aws-cn cn- aws-us-gov us-gov- aws-eusc eusc-de- aws-iso us-iso- "
    "aws-iso-b us-isob- aws-iso-e eu-isoe- aws-iso-f us-isof- aws ";
// In their order, the suffixes of their endpoints and of dual-stack ones.
constexpr std::string_view kSuffixes =
    "amazonaws.com.cn api.amazonwebservices.com.cn amazonaws.com api.aws "
    "amazonaws.eu api.amazonwebservices.eu c2s.ic.gov api.aws.ic.gov "
    "sc2s.sgov.gov api.aws.scloud cloud.adc-e.uk api.cloud-aws.adc-e.uk "
    "csp.hci.ic.gov api.aws.hci.ic.gov amazonaws.com api.aws";

// By Service.
constexpr struct {
  char variable[26];
  char section[9];  // In a profile's services, and for people.
  char host[11];
} kNames[] = {
    {"AWS_ENDPOINT_URL_STS", "sts", "sts"},
    {"AWS_ENDPOINT_URL_SSO", "sso", "portal.sso"},
    {"AWS_ENDPOINT_URL_SSO_OIDC", "sso_oidc", "oidc"},
    {"AWS_ENDPOINT_URL_DYNAMODB", "dynamodb", "dynamodb"},
};

constexpr char kThrottling[] =
    "Throttling ThrottlingException ThrottledException RequestThrottled "
    "RequestThrottledException TooManyRequestsException "
    "ProvisionedThroughputExceededException RequestLimitExceeded "
    "BandwidthLimitExceeded LimitExceededException "
    "TransactionInProgressException PriorRequestNotComplete SlowDown "
    "EC2ThrottledException";

constexpr char kFirstGlobal[] = "aws-global";
constexpr char kFirstRegion[] = "us-east-1";
constexpr char kFirstPartition[] = "aws";
constexpr std::string_view kSuffix = "amazonaws.com";  // Of that.

// "north-1"
bool is_word_and_number(std::string_view text) {
  const auto hyphen = text.find('-');
  if (hyphen == text.npos || hyphen == 0) return false;
  const std::string_view number = text.substr(hyphen + 1);
  return !number.empty() && all_digits(number);
}

// Sets `why`, "AWS_USE_FIPS_ENDPOINT is true", if it is.  If it is no flag,
// `error` says so.
void read_flag(const Environment& environment, const char* variable,
               const Profile& profile, const char* property, std::string& why,
               std::string& error) {
  const Setting flag = find_setting(environment, {variable}, profile, property);
  if (flag.says("true")) {
    format_to(why, "%s is true", flag.source);
  } else if (flag && !flag.says("false")) {
    error = format("%s is neither true nor false", flag.source);
  }
}

}  // namespace

bool is_throttling_code(std::string_view code) {
  return is_among(kThrottling, code);
}

bool instance_is_disabled(const Environment& environment) {
  return find_variable(environment, {"AWS_EC2_METADATA_DISABLED"}).says("true");
}

bool asks_for_fips(std::string_view region) {
  return begins_with(region, "fips-") ||
         (region.size() > 5 && region.substr(region.size() - 5) == "-fips"sv);
}

namespace {

// Of a region that asks for FIPS, as AWS's SDKs take these words apart: the
// first "-fips", "fips-", "fips-dkr-" or "fips-prod-" is cut out.
std::string without_fips(const std::string& region) {
  if (region == "fips-aws-global" || region == "aws-fips") return kFirstRegion;
  const auto begin = std::min(region.find("fips-"), region.find("-fips"));
  std::size_t length = 5;
  if (region[begin] != '-') {
    for (const std::string_view word : {"dkr-", "prod-"}) {
      if (region.compare(begin + length, word.size(), word) != 0) continue;
      length += word.size();
      break;
    }
  }
  return std::string(region).erase(begin, length);
}

bool is_special(const EndpointSettings& settings) {
  return !settings.fips.empty() || !settings.dual_stack.empty();
}

const std::string& why_special(const EndpointSettings& settings) {
  return settings.fips.empty() ? settings.dual_stack : settings.fips;
}

}  // namespace

void read_endpoint_settings(Service service, const Profile& profile,
                            const Environment& environment,
                            EndpointSettings& settings) {
  const auto& names = kNames[static_cast<std::size_t>(service)];
  std::string& error = settings.error;
  std::string ignored;
  const bool looked_for = !settings.url;
  if (looked_for) {
    read_flag(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", profile,
              "ignore_configured_endpoint_urls", ignored, error);
  }
  if (looked_for && ignored.empty() && error.empty()) {
    settings.url =
        find_variable(environment, {names.variable, "AWS_ENDPOINT_URL"});
    if (!settings.url) settings.url = profile.url_of(names.section, error);
  }
  read_flag(environment, "AWS_USE_DUALSTACK_ENDPOINT", profile,
            "use_dualstack_endpoint", settings.dual_stack, error);
  read_flag(environment, "AWS_USE_FIPS_ENDPOINT", profile, "use_fips_endpoint",
            settings.fips, error);
}

Partition partition_of(std::string_view region) {
  std::string_view suffixes = kSuffixes;
  for (std::string_view rest = kPartitions;;) {
    const std::string_view name = cut(rest, ' '), prefix = cut(rest, ' ');
    const bool of_it = begins_with(region, prefix) &&
                       is_word_and_number(region.substr(prefix.size()));
    const bool all_of_it = name != "aws-eusc"sv && begins_with(region, name) &&
                           region.substr(name.size()) == "-global"sv;
    Partition partition{name, kSuffix, {}};
    if (kAllEndpoints) {
      partition.suffix = cut(suffixes, ' ');
      partition.dual_stack_suffix = cut(suffixes, ' ');
    }
    if (of_it || all_of_it || rest.empty()) return partition;
  }
}

bool is_host_label(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' &&
         text.back() != '-' && is_alphanumeric(text, "-");
}

bool is_base_url(const std::string& text) {
  const auto url = parse_url(text);
  return url && std::string_view(url->path) == "/"sv;
}

void set_region(EndpointSettings& settings, const Setting& region) {
  if (!settings.error.empty()) return;
  settings.region = region.value;
  if (asks_for_fips(region.value)) {
    if (kAllEndpoints) settings.region = without_fips(region.value);
    settings.fips.clear();
    format_to(settings.fips, "%s asks for FIPS", region.source);
  }
  if (!is_host_label(settings.region)) {
    format_to(settings.error, "%s is not the name of a region", region.source);
  } else if (!kAllEndpoints && is_special(settings)) {
    format_to(settings.error, "%s%s", why_special(settings), kEndpointsLeftOut);
  }
}

void check_url(const EndpointSettings& settings, std::string& error) {
  const std::string_view value = settings.url.value;
  const std::string_view source = settings.url.source;
  if (value.empty()) return;
  // A region would have been refused for it where they are left out.
  if ((kAllEndpoints || kRegionMayComeLater) && is_special(settings)) {
    return format_to(
        error,
        "%s but %s names an endpoint: whether that is a %s one cannot be known",
        why_special(settings), source,
        settings.fips.empty() ? "dual-stack" : "FIPS");
  }
  if (is_base_url(settings.url.value)) return;
  const bool secret = value.find('@') != value.npos;
  format_to(error,
            secret ? "%s (not shown: there may be a password in it)"
                   : "%s is %q, which",
            source, value);
  error += " is not http:// or https://, a host and perhaps a port";
}

ServiceEndpoint endpoint_in_region(Service service,
                                   const EndpointSettings& settings) {
  const std::string_view region = settings.region;
  ServiceEndpoint found;
  if (settings.url) {
    check_url(settings, found.error);
    if (!found.error.empty()) return found;
    found.url = settings.url.value;
    if (found.url.back() == '/') found.url.resize(found.url.size() - 1);
    found.region = region;
    return found;
  }
  if (service == Service::sts && region == kFirstGlobal &&
      !is_special(settings)) {
    found.url = "https://sts.amazonaws.com";
    found.region = kFirstRegion;
    return found;
  }
  const Partition partition = partition_of(region);
  if (!kAllEndpoints && partition.name != kFirstPartition) {
    format_to(found.error, "region %s is in partition %s%s", region,
              partition.name, kEndpointsLeftOut);
    return found;
  }
  const bool dual_stack = !settings.dual_stack.empty();
  // There, the usual endpoints are FIPS ones.
  const bool usual = !kAllEndpoints || settings.fips.empty() ||
                     (partition.name == "aws-us-gov"sv && !dual_stack);
  format_to(found.suffix, "%s.%s", region,
            dual_stack ? partition.dual_stack_suffix : partition.suffix);
  format_to(found.url, "https://%s%s%s",
            kNames[static_cast<std::size_t>(service)].host,
            usual ? "." : "-fips.", found.suffix);
  found.region = region;
  return found;
}

ServiceEndpoint service_endpoint(Service service, EndpointSettings settings,
                                 const Setting& region) {
  set_region(settings, region);
  if (settings.error.empty()) return endpoint_in_region(service, settings);
  ServiceEndpoint none;
  none.error = settings.error;
  return none;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
