#include "endpoints.hpp"

#include <algorithm>
#include <utility>

#include "http.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// All of them have FIPS and dual-stack endpoints.
constexpr std::array<Partition, 8> kPartitions = {{
    {"aws", "", "aws-global", "amazonaws.com", "api.aws"},
    {"aws-cn", "cn-", "aws-cn-global", "amazonaws.com.cn",
     "api.amazonwebservices.com.cn"},
    {"aws-us-gov", "us-gov-", "aws-us-gov-global", "amazonaws.com", "api.aws"},
    {"aws-eusc", "eusc-de-", "", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"aws-iso", "us-iso-", "aws-iso-global", "c2s.ic.gov", "api.aws.ic.gov"},
    {"aws-iso-b", "us-isob-", "aws-iso-b-global", "sc2s.sgov.gov",
     "api.aws.scloud"},
    {"aws-iso-e", "eu-isoe-", "aws-iso-e-global", "cloud.adc-e.uk",
     "api.cloud-aws.adc-e.uk"},
    {"aws-iso-f", "us-isof-", "aws-iso-f-global", "csp.hci.ic.gov",
     "api.aws.hci.ic.gov"},
}};

struct Names {
  const char* variable;
  const char* section;  // In a profile's services, and for people.
  const char* host;
};

constexpr std::array<Names, kServices> kNames = {{
    {"AWS_ENDPOINT_URL_DYNAMODB", "dynamodb", "dynamodb"},
    {"AWS_ENDPOINT_URL_STS", "sts", "sts"},
    {"AWS_ENDPOINT_URL_SSO", "sso", "portal.sso"},
    {"AWS_ENDPOINT_URL_SSO_OIDC", "sso_oidc", "oidc"},
}};

constexpr char kFirstGlobal[] = "aws-global";
constexpr char kFirstRegion[] = "us-east-1";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "north-1"
bool is_word_and_number(std::string_view text) {
  const auto hyphen = text.find('-');
  if (hyphen == text.npos || hyphen == 0) return false;
  const std::string_view number = text.substr(hyphen + 1);
  return !number.empty() && std::all_of(number.begin(), number.end(), is_digit);
}

bool has(const Partition& partition, std::string_view region) {
  return region == partition.global ||
         (!partition.prefix.empty() && begins_with(region, partition.prefix) &&
          is_word_and_number(region.substr(partition.prefix.size())));
}

// Off if nobody has said.  If it is no flag, `error` says so.
Flag find_flag(const Environment& environment, const char* variable,
               const Profile& profile, const char* property,
               std::string& error) {
  const Setting setting =
      find_setting(environment, {variable}, profile, property);
  if (!setting) return {};
  std::string value = setting->value;
  for (char& c : value) c = static_cast<char>(c | 0x20);  // Lower case.
  if (value != "true" && value != "false" && error.empty()) {
    error = setting->source + " is neither true nor false";
  }
  return {value == "true", join({setting->source, " is ", value})};
}

// The profile's word for one service alone.
Setting url_in_services(const Profile& profile, const char* service,
                        std::string& error) {
  const Setting name = profile.find("services");
  if (!name) return std::nullopt;
  const std::string called = in_quotes("services " + name->value);
  if (!profile.config.has("services", name->value)) {
    error =
        join({name->source, " names a section ", called, " that is not there"});
    return std::nullopt;
  }
  const Secret* own = profile.config.find("services", name->value, service);
  if (own == nullptr) return std::nullopt;
  auto url = sub_property(*own, "endpoint_url");
  if (!url || url->empty()) return std::nullopt;
  return Profile::Property{
      std::move(*url), join({"endpoint_url of ", service, " in section ",
                             called, " of ", in_quotes(profile.config.path)})};
}

ConfiguredUrl find_url(const Names& names, const Profile& profile,
                       const Environment& environment) {
  ConfiguredUrl found;
  for (const char* variable : {names.variable, "AWS_ENDPOINT_URL"}) {
    if (auto url = set_in(environment, variable)) {
      found.url = Profile::Property{std::move(*url), variable};
      return found;
    }
  }
  found.url = url_in_services(profile, names.section, found.error);
  if (!found.url && found.error.empty()) {
    found.url = profile.find("endpoint_url");
  }
  return found;
}

bool asks_for_fips(std::string_view region) {
  return begins_with(region, "fips-") ||
         (region.size() > 5 && region.substr(region.size() - 5) == "-fips");
}

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

}  // namespace

Setting find_setting(const Environment& environment,
                     std::initializer_list<const char*> variables,
                     const Profile& profile, const char* property) {
  for (const char* variable : variables) {
    if (auto value = set_in(environment, variable)) {
      return Profile::Property{std::move(*value), variable};
    }
  }
  return profile.find(property);
}

const ConfiguredUrl& EndpointSettings::url_of(Service service) const {
  return urls[static_cast<std::size_t>(service)];
}

EndpointSettings read_endpoint_settings(const Profile& profile,
                                        const Environment& environment) {
  EndpointSettings settings;
  settings.fips = find_flag(environment, "AWS_USE_FIPS_ENDPOINT", profile,
                            "use_fips_endpoint", settings.error);
  settings.dual_stack =
      find_flag(environment, "AWS_USE_DUALSTACK_ENDPOINT", profile,
                "use_dualstack_endpoint", settings.error);
  std::string error;
  const Flag ignored =
      find_flag(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", profile,
                "ignore_configured_endpoint_urls", error);
  for (std::size_t i = 0; i < kServices && !ignored.on; ++i) {
    settings.urls[i] = error.empty() ? find_url(kNames[i], profile, environment)
                                     : ConfiguredUrl{std::nullopt, error};
  }
  return settings;
}

const Partition& partition_of(std::string_view region) {
  for (const Partition& partition : kPartitions) {
    if (has(partition, region)) return partition;
  }
  return kPartitions.front();
}

bool is_host_label(std::string_view text) {
  const auto fits = [](char c) {
    return is_letter(c) || is_digit(c) || c == '-';
  };
  return !text.empty() && text.size() <= 63 && text.front() != '-' &&
         text.back() != '-' && std::all_of(text.begin(), text.end(), fits);
}

bool is_base_url(const std::string& text) {
  const auto url = parse_url(text);
  return url && url->path == "/";
}

Place place_of(const EndpointSettings& settings,
               const Profile::Property& region) {
  Place place{region.value, settings.fips, settings.dual_stack, settings.error};
  if (!place.error.empty()) return place;
  if (asks_for_fips(region.value)) {
    if (kAllEndpoints) place.region = without_fips(region.value);
    place.fips = {true, region.source + " asks for FIPS"};
  }
  if (!is_host_label(place.region)) {
    place.error = region.source + " is not the name of a region";
  } else if (!kAllEndpoints && (place.fips.on || place.dual_stack.on)) {
    place.error =
        (place.fips.on ? place.fips : place.dual_stack).why + kEndpointsLeftOut;
  }
  return place;
}

std::string refusal_of(const Profile::Property& url, const Flag& fips,
                       const Flag& dual_stack) {
  if (fips.on || dual_stack.on) {
    return join({(fips.on ? fips : dual_stack).why, " but ", url.source,
                 " names an endpoint: whether that is a ",
                 fips.on ? "FIPS" : "dual-stack", " one cannot be known"});
  }
  if (is_base_url(url.value)) return "";
  const bool secret = url.value.find('@') != url.value.npos;
  return join({url.source,
               secret ? " (not shown: there may be a password in it)" : " is ",
               secret ? "" : in_quotes(url.value), secret ? "" : ", which",
               " is not http:// or https://, a host and perhaps a port"});
}

ServiceEndpoint regional_endpoint(Service service, const std::string& region,
                                  bool fips, bool dual_stack) {
  if (service == Service::sts && region == kFirstGlobal && !fips &&
      !dual_stack) {
    return {"https://sts.amazonaws.com", kFirstRegion, ""};
  }
  const Partition& partition = partition_of(region);
  if (!kAllEndpoints && &partition != &kPartitions.front()) {
    return {"", "",
            join({"region ", region, " is in partition ", partition.name,
                  kEndpointsLeftOut})};
  }
  fips = fips && kAllEndpoints;
  dual_stack = dual_stack && kAllEndpoints;
  // There, the usual endpoints are FIPS ones.
  const bool usual = partition.name == "aws-us-gov" && !dual_stack;
  return {join({"https://", kNames[static_cast<std::size_t>(service)].host,
                fips && !usual ? "-fips." : ".", region, ".",
                dual_stack ? partition.dual_stack_suffix : partition.suffix}),
          region, ""};
}

ServiceEndpoint service_endpoint(Service service,
                                 const EndpointSettings& settings,
                                 const Profile::Property& region) {
  const Place place = place_of(settings, region);
  const ConfiguredUrl& configured = settings.url_of(service);
  std::string error = place.error.empty() ? configured.error : place.error;
  if (error.empty() && configured.url) {
    error = refusal_of(*configured.url, place.fips, place.dual_stack);
  }
  if (!error.empty()) return {"", "", std::move(error)};
  if (!configured.url) {
    return regional_endpoint(service, place.region, place.fips.on,
                             place.dual_stack.on);
  }
  std::string url = configured.url->value;
  if (url.back() == '/') url.pop_back();
  return {std::move(url), place.region, ""};
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
