// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Configured endpoints are found first, when the settings are read.  AWS's own
// endpoints follow from the region and its partition, once the region is known.
#include "endpoints.hpp"

#include <algorithm>
#include <iterator>

#include "parts.hpp"
#include "text.hpp"
#include "url.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;

namespace {

// The regions of other partitions begin so.
constexpr std::string_view kOtherPartitions[] = {
    "cn-",      "us-gov-",  "eusc-de-", "us-iso-",     "us-isob-",
    "eu-isoe-", "us-isof-", "aws-cn-",  "aws-us-gov-", "aws-iso-"};

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

// Whether the URL may be AWS's dual-stack endpoint.  In all partitions, its
// domain begins with "api".
bool may_be_dual_stack(const std::string& url, Service service,
                       std::string_view region) {
  std::string host(parts_of(normal_url(url)).authority);
  std::transform(host.begin(), host.end(), host.begin(), lower_case);
  const std::string usual = join({name_of(service), ".", region, ".api."});
  return sigv4::begins_with(host, usual) ||
         sigv4::begins_with(host, "search-" + usual);
}

}  // namespace

bool instance_is_disabled(const Environment& environment) {
  return find_variable(environment, {"AWS_EC2_METADATA_DISABLED"}).says("true");
}

bool asks_for_fips(std::string_view region) {
  return sigv4::begins_with(region, "fips-") ||
         (region.size() > 5 && region.substr(region.size() - 5) == "-fips"sv);
}

const char* name_of(Service service) {
  return service == Service::sts ? "sts" : "dynamodb";
}

void read_endpoint_settings(Service service, const Profile& profile,
                            const Environment& environment,
                            ServiceEndpoint& endpoint) {
  const char* const variable = service == Service::sts
                                   ? "AWS_ENDPOINT_URL_STS"
                                   : "AWS_ENDPOINT_URL_DYNAMODB";
  std::string& error = endpoint.error;
  std::string ignored;
  const bool looked_for = !endpoint.url;
  if (looked_for) {
    read_flag(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", profile,
              "ignore_configured_endpoint_urls", ignored, error);
  }
  if (looked_for && ignored.empty() && error.empty()) {
    endpoint.url = find_variable(environment, {variable, "AWS_ENDPOINT_URL"});
    if (!endpoint.url) endpoint.url = profile.url_of(name_of(service), error);
  }
  read_flag(environment, "AWS_USE_DUALSTACK_ENDPOINT", profile,
            "use_dualstack_endpoint", endpoint.dual_stack, error);
  read_flag(environment, "AWS_USE_FIPS_ENDPOINT", profile, "use_fips_endpoint",
            endpoint.fips, error);
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

void set_region(ServiceEndpoint& endpoint, const Setting& said,
                std::string_view name) {
  if (is_host_label(name)) {
    endpoint.region = name;
    return;
  }
  endpoint.error = sigv4::join({said.source, " is not the name of a region"});
  if (said) append(endpoint.error, {": ", in_quotes(said.value)});
}

void check_url(ServiceEndpoint& endpoint) {
  const auto& [value, source] = endpoint.url;
  if (value.empty() || is_endpoint_url(value)) return;
  const bool secret = value.find('@') != value.npos;
  const std::string subject =
      secret ? " (not shown: it may contain a password)"
             : sigv4::join({" is ", in_quotes(value), ", which"});
  endpoint.error = sigv4::join({source, subject,
                                " is not http:// or https://, a host, and "
                                "optionally a port and a path"});
}

void refuse_special(ServiceEndpoint& endpoint) {
  for (const std::string* special :
       {&endpoint.fips, &endpoint.dual_stack, &endpoint.account_required}) {
    if (special->empty()) continue;
    endpoint.error = *special + kNeedsEndpoints;
    return;
  }
  check_url(endpoint);
}

void find_usual_endpoint(Service service, const Setting& region,
                         ServiceEndpoint& endpoint) {
  const std::string& name = region.value;
  set_region(endpoint, region, name);
  if (!endpoint.error.empty()) return;
  refuse_special(endpoint);
  if (!endpoint.error.empty()) return;
  const bool elsewhere = std::any_of(
      std::begin(kOtherPartitions), std::end(kOtherPartitions),
      [&](std::string_view start) { return sigv4::begins_with(name, start); });
  if (asks_for_fips(name) || (elsewhere && !endpoint.url)) {
    endpoint.error =
        sigv4::join({region.source, " is ", in_quotes(name),
                     elsewhere ? ", a region of another partition than aws"
                               : ", which asks for FIPS",
                     kNeedsEndpoints});
    endpoint.region.clear();
    return;
  }
  if (may_be_dual_stack(endpoint.url.value, service, name)) {
    endpoint.error =
        sigv4::join({endpoint.url.source, " names a dual-stack endpoint of AWS",
                     kNeedsEndpoints});
    return;
  }
  endpoint.endpoint = endpoint.url ? endpoint.url.value
                                   : sigv4::join({"https://", name_of(service),
                                                  ".", name, ".amazonaws.com"});
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
