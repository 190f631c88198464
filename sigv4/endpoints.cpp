#include "endpoints.hpp"

#include <strings.h>

#include <algorithm>
#include <utility>

#include "http.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// By line: a partition's name, the beginning of its regions (then come a word,
// '-' and a number), the suffix of its endpoints and of dual-stack ones.  All
// of them have FIPS endpoints, and all but aws-eusc a region that stands for
// all, "aws-cn-global".  The last has all regions that are no other's.
constexpr std::string_view kPartitions =
    "aws-cn cn- amazonaws.com.cn api.amazonwebservices.com.cn\n"
    "aws-us-gov us-gov- amazonaws.com api.aws\n"
    "aws-eusc eusc-de- amazonaws.eu api.amazonwebservices.eu\n"
    "aws-iso us-iso- c2s.ic.gov api.aws.ic.gov\n"
    "aws-iso-b us-isob- sc2s.sgov.gov api.aws.scloud\n"
    "aws-iso-e eu-isoe- cloud.adc-e.uk api.cloud-aws.adc-e.uk\n"
    "aws-iso-f us-isof- csp.hci.ic.gov api.aws.hci.ic.gov\n"
    "aws  amazonaws.com api.aws";

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

constexpr char kFirstGlobal[] = "aws-global";
constexpr char kFirstRegion[] = "us-east-1";
constexpr char kFirstPartition[] = "aws";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "north-1"
bool is_word_and_number(std::string_view text) {
  const auto hyphen = text.find('-');
  if (hyphen == text.npos || hyphen == 0) return false;
  const std::string_view number = text.substr(hyphen + 1);
  return !number.empty() && consists_of(number, is_digit);
}

// "AWS_USE_FIPS_ENDPOINT is true"; empty if it is not.  If it is no flag,
// `error` says so.
std::string why(const Environment& environment, const char* variable,
                const Profile& profile, const char* property,
                std::string& error) {
  const auto [value, source] =
      find_setting(environment, {variable}, profile, property);
  if (strcasecmp(value.c_str(), "true") == 0) return source + " is true";
  if (!value.empty() && strcasecmp(value.c_str(), "false") != 0) {
    error = source + " is neither true nor false";
  }
  return "";
}

// The profile's word for one service alone.
Setting url_in_services(const Profile& profile, const char* service,
                        std::string& error) {
  const Setting name = profile.find("services");
  if (!name) return {};
  const std::string called = "services " + name.value;
  if (!profile.config.has("services", name.value)) {
    error = format("%s names a section %q that is not there",
                   {name.source, called});
    return {};
  }
  const auto* own = profile.config.find("services", name.value, service);
  if (own == nullptr) return {};
  return {std::string(sub_property(*own, "endpoint_url")),
          format("endpoint_url of %s in section %q of %q",
                 {service, called, profile.config.path})};
}

}  // namespace

bool asks_for_fips(std::string_view region) {
  return begins_with(region, "fips-") ||
         (region.size() > 5 && region.substr(region.size() - 5) == "-fips");
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

EndpointSettings read_endpoint_settings(Service service, const Profile& profile,
                                        const Environment& environment,
                                        const Setting& url) {
  const auto& names = kNames[static_cast<std::size_t>(service)];
  EndpointSettings settings;
  std::string& error = settings.error;
  settings.url = url;
  const bool looked_for =
      !url &&
      why(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", profile,
          "ignore_configured_endpoint_urls", error)
          .empty() &&
      error.empty();
  if (looked_for) {
    for (const char* variable : {names.variable, "AWS_ENDPOINT_URL"}) {
      if (!settings.url) settings.url = {environment(variable), variable};
    }
    if (!settings.url) {
      settings.url = url_in_services(profile, names.section, error);
    }
    if (!settings.url) settings.url = profile.find("endpoint_url");
  }
  settings.dual_stack = why(environment, "AWS_USE_DUALSTACK_ENDPOINT", profile,
                            "use_dualstack_endpoint", error);
  settings.fips = why(environment, "AWS_USE_FIPS_ENDPOINT", profile,
                      "use_fips_endpoint", error);
  return settings;
}

Partition partition_of(std::string_view region) {
  for (std::string_view rest = kPartitions;;) {
    std::string_view line = cut(rest, '\n');
    const std::string_view name = cut(line, ' '), prefix = cut(line, ' ');
    const bool of_it = begins_with(region, prefix) &&
                       is_word_and_number(region.substr(prefix.size()));
    const bool all_of_it = name != "aws-eusc" && begins_with(region, name) &&
                           region.substr(name.size()) == "-global";
    if (of_it || all_of_it || rest.empty()) {
      const std::string_view suffix = cut(line, ' ');
      return {name, suffix, line};
    }
  }
}

bool is_host_label(std::string_view text) {
  const auto fits = [](char c) {
    return is_letter(c) || is_digit(c) || c == '-';
  };
  return !text.empty() && text.size() <= 63 && text.front() != '-' &&
         text.back() != '-' && consists_of(text, fits);
}

bool is_base_url(const std::string& text) {
  const auto url = parse_url(text);
  return url && url->path == "/";
}

void set_region(EndpointSettings& settings, const Setting& region) {
  if (!settings.error.empty()) return;
  settings.region = region.value;
  if (asks_for_fips(region.value)) {
    if (kAllEndpoints) settings.region = without_fips(region.value);
    settings.fips = region.source + " asks for FIPS";
  }
  if (!is_host_label(settings.region)) {
    settings.error = region.source + " is not the name of a region";
  } else if (!kAllEndpoints && is_special(settings)) {
    settings.error = why_special(settings) + kEndpointsLeftOut;
  }
}

std::string refusal_of(const EndpointSettings& settings) {
  const auto& [value, source] = settings.url;
  if (value.empty()) return "";
  if (is_special(settings)) {
    return format(
        "%s but %s names an endpoint: whether that is a %s one cannot be known",
        {why_special(settings), source,
         settings.fips.empty() ? "dual-stack" : "FIPS"});
  }
  if (is_base_url(value)) return "";
  const bool secret = value.find('@') != value.npos;
  return format(
      "%s%s%s%s is not http:// or https://, a host and perhaps a port",
      {source, secret ? " (not shown: there may be a password in it)" : " is ",
       secret ? "" : in_quotes(value), secret ? "" : ", which"});
}

ServiceEndpoint endpoint_in_region(Service service,
                                   const EndpointSettings& settings) {
  const std::string& region = settings.region;
  if (settings.url) {
    std::string error = refusal_of(settings);
    if (!error.empty()) return {"", "", std::move(error)};
    std::string url = settings.url.value;
    if (url.back() == '/') url.pop_back();
    return {std::move(url), region, ""};
  }
  if (service == Service::sts && region == kFirstGlobal &&
      !is_special(settings)) {
    return {"https://sts.amazonaws.com", kFirstRegion, ""};
  }
  const Partition partition = partition_of(region);
  if (!kAllEndpoints && partition.name != kFirstPartition) {
    return {"", "",
            format("region %s is in partition %s%s",
                   {region, partition.name, kEndpointsLeftOut})};
  }
  const bool dual_stack = !settings.dual_stack.empty();
  // There, the usual endpoints are FIPS ones.
  const bool usual =
      settings.fips.empty() || (partition.name == "aws-us-gov" && !dual_stack);
  std::string suffix = format(
      "%s.%s",
      {region, dual_stack ? partition.dual_stack_suffix : partition.suffix});
  return {
      format("https://%s%s%s", {kNames[static_cast<std::size_t>(service)].host,
                                usual ? "." : "-fips.", suffix}),
      region, "", std::move(suffix)};
}

ServiceEndpoint service_endpoint(Service service, EndpointSettings settings,
                                 const Setting& region) {
  set_region(settings, region);
  if (!settings.error.empty()) return {"", "", std::move(settings.error)};
  return endpoint_in_region(service, settings);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
