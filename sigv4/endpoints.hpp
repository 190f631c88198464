// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Finds the URL of an AWS service: the usual one in a region, or one that the
// environment or the profile configures.
//
//   ServiceEndpoint sts;
//   read_endpoint_settings(Service::sts, profile, environment, sts);
//   parts.find_endpoint(Service::sts, {"eu-west-1", "AWS_REGION"}, sts);
//   if (!sts.error.empty()) return refuse(sts.error);
//   get(url_at(sts.endpoint, "/?Action=..."));  // Signed for sts.region.
//
// The first of these that is set is the URL of a service:
//   1. AWS_ENDPOINT_URL_<SERVICE>
//   2. AWS_ENDPOINT_URL
//   3. `endpoint_url` of the service in the profile's `services`
//   4. the profile's `endpoint_url`
//   5. AWS's own URL in the region
// 1 to 4 are skipped if AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, or the profile's
// `ignore_configured_endpoint_urls`, is true.
//
// The core knows configured URLs, and the usual URLs of the partition aws.
// extras/endpoints.hpp has the rules of FIPS, dual-stack and account endpoints
// and of other partitions.  The settings that ask for one are read here.
//
// STS is always asked in the region: AWS_STS_REGIONAL_ENDPOINTS=legacy is
// ignored.  An empty value counts as none.  A bad value is an error that names
// its source, and shows the URL unless it may contain a password.
#ifndef DDBMUTEX_SIGV4_ENDPOINTS_HPP
#define DDBMUTEX_SIGV4_ENDPOINTS_HPP

#include <string>
#include <string_view>

#include "profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Whether AWS_EC2_METADATA_DISABLED is true.
bool instance_is_disabled(const Environment& environment);

// In this region, a DynamoDB for tests is on this machine.
inline constexpr char kLocalRegion[] = "local";
inline constexpr char kIsThisHost[] = ", but region \"local\" is this host";

enum class Service { sts, dynamodb };
// As the first part of AWS's own host names, and in a profile's services.
const char* name_of(Service service);

// The settings of a service's endpoint, and its URL once the region is known.
struct ServiceEndpoint {
  // Why a FIPS endpoint is wanted, for people: "AWS_USE_FIPS_ENDPOINT is true".
  // Empty if it is not wanted.
  std::string fips;
  std::string dual_stack;  // The same for a dual-stack endpoint.
  // If only an account's own URL may be used: the setting that requires it.
  std::string account_required;
  bool accounts_disabled = false;
  Setting url;         // As configured; not yet checked.
  std::string region;  // To sign for.
  // A URL.  That of STS ends with a '/' only if it has a path.  See url_at().
  std::string endpoint;
  // If accounts have URLs of their own: the region and the domain,
  // "eu-west-1.api.aws".
  std::string suffix;
  std::string error;  // Why there can be no endpoint.
};

// Reads the settings.  If endpoint.url is set already, it is kept.
void read_endpoint_settings(Service service, const Profile& profile,
                            const Environment& environment,
                            ServiceEndpoint& endpoint);

// Parts::check_endpoint and Parts::find_endpoint of the core.
void refuse_special(ServiceEndpoint& endpoint);
void find_usual_endpoint(Service service, const Setting& region,
                         ServiceEndpoint& endpoint);

// --- What all rules of endpoints share ---------------------------------------

// Whether the text is one label of a DNS name: 1 to 63 letters, digits and
// hyphens, with no hyphen at its ends.  All regions are.
bool is_host_label(std::string_view text);

// Whether normal_url() accepts the text, and it is visible ASCII.  It may have
// a path, because some engines and gateways serve many databases at one host.
bool is_endpoint_url(const std::string& text);

// The URL of `path` at an endpoint: the endpoint's own path comes first, with
// one '/' between them.  As in botocore, the path "/" adds nothing to an
// endpoint's path.  REQUIRES: `path` begins with "/".
std::string url_at(std::string_view endpoint, std::string_view path);

// AWS's tools take "fips-us-east-1" and "us-east-1-fips" for us-east-1 with
// FIPS.
bool asks_for_fips(std::string_view region);

// Sets endpoint.region to `name`, or the error if that is not the name of a
// region.  `said`: the setting that it comes from.
void set_region(ServiceEndpoint& endpoint, const Setting& said,
                std::string_view name);

// Sets the error if there is a configured URL that cannot be used.
void check_url(ServiceEndpoint& endpoint);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_ENDPOINTS_HPP
