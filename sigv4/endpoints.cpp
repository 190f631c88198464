#include "endpoints.hpp"

#include <algorithm>
#include <utility>

#include "text.hpp"
#include "url.hpp"

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
    {"AWS_ENDPOINT_URL_SIGNIN", "signin", "signin"},
    {"AWS_ENDPOINT_URL_DYNAMODB", "dynamodb", "dynamodb"},
};

// AWS Sign-In has its own domain in each partition: it is usually found at
// REGION.signin.DOMAIN.
constexpr struct {
  std::string_view partition, domain;
} kSignInDomains[] = {
    {"aws", "aws.amazon.com"},
    {"aws-cn", "amazonaws.cn"},
    {"aws-us-gov", "amazonaws-us-gov.com"},
    {"aws-eusc", "amazonaws-eusc.eu"},
    {"aws-iso", "c2shome.ic.gov"},
    {"aws-iso-b", "sc2shome.sgov.gov"},
    {"aws-iso-e", "csphome.adc-e.uk"},
    {"aws-iso-f", "csphome.hci.ic.gov"},
};

constexpr char kFirstGlobal[] = "aws-global";
constexpr char kFirstRegion[] = "us-east-1";
constexpr char kFirstPartition[] = "aws";
constexpr std::string_view kSuffix = "amazonaws.com";  // Of that.

// "north-1"
bool is_word_and_number(std::string_view text) {
  const std::string_view word = sigv4::cut(text, '-');
  return !word.empty() && !text.empty() && sigv4::all_digits(text);
}

// Sets `why`, "AWS_USE_FIPS_ENDPOINT is true", if it is.  If it is no flag,
// `error` says so.
void read_flag(const Environment& environment, const char* variable,
               const Profile& profile, const char* property, std::string& why,
               std::string& error) {
  const Setting flag = find_setting(environment, {variable}, profile, property);
  if (flag.says("true")) {
    sigv4::format_to(why, "%s is true", flag.source);
  } else if (flag && !flag.says("false")) {
    error = sigv4::format("%s is neither true nor false: %q", flag.source,
                          flag.value);
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

// Who wants one of the special ones; empty: nobody.
const std::string& why_special(const ServiceEndpoint& endpoint) {
  return endpoint.fips.empty() ? endpoint.dual_stack : endpoint.fips;
}

}  // namespace

void read_endpoint_settings(Service service, const Profile& profile,
                            const Environment& environment,
                            ServiceEndpoint& endpoint) {
  const auto& names = kNames[static_cast<std::size_t>(service)];
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
      endpoint.url = profile.url_of(names.section, error);
    }
  }
  read_flag(environment, "AWS_USE_DUALSTACK_ENDPOINT", profile,
            "use_dualstack_endpoint", endpoint.dual_stack, error);
  read_flag(environment, "AWS_USE_FIPS_ENDPOINT", profile, "use_fips_endpoint",
            endpoint.fips, error);
}

Partition partition_of(std::string_view region) {
  std::string_view suffixes = kSuffixes;
  for (std::string_view rest = kPartitions;;) {
    const std::string_view name = sigv4::cut(rest, ' '),
                           prefix = sigv4::cut(rest, ' ');
    const bool of_it = sigv4::begins_with(region, prefix) &&
                       is_word_and_number(region.substr(prefix.size()));
    const bool all_of_it = name != "aws-eusc"sv &&
                           sigv4::begins_with(region, name) &&
                           region.substr(name.size()) == "-global"sv;
    Partition partition{name, kSuffix, {}};
    if (kAllEndpoints) {
      partition.suffix = sigv4::cut(suffixes, ' ');
      partition.dual_stack_suffix = sigv4::cut(suffixes, ' ');
    }
    if (of_it || all_of_it || rest.empty()) return partition;
  }
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
  const bool two = !own_path.empty() && own_path.back() == '/' &&
                   sigv4::begins_with(path, "/");
  if (two) endpoint.remove_suffix(1);
  return sigv4::join({endpoint, path});
}

void set_region(ServiceEndpoint& endpoint, const Setting& region) {
  if (!endpoint.error.empty()) return;
  endpoint.region = region.value;
  if (asks_for_fips(region.value)) {
    if (kAllEndpoints) endpoint.region = without_fips(region.value);
    endpoint.fips.clear();
    sigv4::format_to(endpoint.fips, "%s asks for FIPS", region.source);
  }
  const std::string& why = why_special(endpoint);
  if (!is_host_label(endpoint.region)) {
    sigv4::format_to(endpoint.error, "%s is not the name of a region%[: %q%]",
                     region.source, region.value);
  } else if (!kAllEndpoints && !why.empty()) {
    sigv4::format_to(endpoint.error, "%s%s", why, kEndpointsLeftOut);
  }
}

void check_url(ServiceEndpoint& endpoint) {
  const std::string_view value = endpoint.url.value;
  const std::string_view source = endpoint.url.source;
  if (value.empty()) return;
  // A region would have been refused for it where they are left out.
  const std::string& why = why_special(endpoint);
  if ((kAllEndpoints || kRegionMayComeLater) && !why.empty()) {
    return sigv4::format_to(endpoint.error,
                            "%s, but %s names an endpoint, and it cannot be "
                            "known whether that is a %s one",
                            why, source,
                            endpoint.fips.empty() ? "dual-stack" : "FIPS");
  }
  if (is_endpoint_url(endpoint.url.value)) return;
  const bool secret = value.find('@') != value.npos;
  sigv4::format_to(
      endpoint.error,
      secret ? "%s (not shown: it may contain a password)" : "%s is %q, which",
      source, value);
  endpoint.error +=
      " is not http:// or https://, a host, and optionally a port and a path";
}

namespace {

// Sets the usual endpoint of AWS Sign-In, or in GovCloud a FIPS one.  All its
// other endpoints have names like those of other services.
void find_sign_in(std::string_view partition, ServiceEndpoint& endpoint) {
  const bool fips = !endpoint.fips.empty();
  const bool named_alone = fips && endpoint.region == "us-gov-west-1"sv;
  for (const auto& [name, domain] : kSignInDomains) {
    if (name != partition) continue;
    sigv4::format_to(endpoint.endpoint, "https://%[%s.%]%s.%s",
                     named_alone ? std::string_view() : endpoint.region,
                     fips ? "signin-fips" : "signin", domain);
  }
}

}  // namespace

void find_in_region(Service service, ServiceEndpoint& endpoint) {
  std::string& region = endpoint.region;
  if (endpoint.url) {
    check_url(endpoint);
    if (!endpoint.error.empty()) return;
    endpoint.endpoint = endpoint.url.value;
    const bool no_path = parts_of(endpoint.endpoint).path == "/"sv;
    if (no_path) endpoint.endpoint.pop_back();
    return;
  }
  if (service == Service::sts && region == kFirstGlobal &&
      why_special(endpoint).empty()) {
    endpoint.endpoint = "https://sts.amazonaws.com";
    region = kFirstRegion;
    return;
  }
  const Partition partition = partition_of(region);
  if (!kAllEndpoints && partition.name != kFirstPartition) {
    return sigv4::format_to(endpoint.error, "region %s is in partition %s%s",
                            region, partition.name, kEndpointsLeftOut);
  }
  const bool dual_stack = !endpoint.dual_stack.empty();
  if (service == Service::signin && !dual_stack &&
      (endpoint.fips.empty() || partition.name == "aws-us-gov"sv)) {
    return find_sign_in(partition.name, endpoint);
  }
  // There, the usual endpoints are FIPS ones.
  const bool usual = !kAllEndpoints || endpoint.fips.empty() ||
                     (partition.name == "aws-us-gov"sv && !dual_stack);
  sigv4::format_to(endpoint.suffix, "%s.%s", region,
                   dual_stack ? partition.dual_stack_suffix : partition.suffix);
  sigv4::format_to(endpoint.endpoint, "https://%s%s%s",
                   kNames[static_cast<std::size_t>(service)].host,
                   usual ? "." : "-fips.", endpoint.suffix);
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
