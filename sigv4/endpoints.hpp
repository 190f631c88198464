// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Finds the URL of an AWS service: the usual one in a region, or one that the
// environment or the profile configures.
//
//   ServiceEndpoint sts;
//   read_endpoint_settings(Service::sts, profile, environment, sts);
//   find_endpoint(Service::sts, {"eu-west-1", "AWS_REGION"}, sts);
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
// `ignore_configured_endpoint_urls`, is true.  5 is a FIPS endpoint if
// AWS_USE_FIPS_ENDPOINT or `use_fips_endpoint` is true.  It serves IPv4 and
// IPv6 (dual stack) if AWS_USE_DUALSTACK_ENDPOINT or `use_dualstack_endpoint`
// is true.  Either of these with a configured URL is an error, as in AWS's
// rules: nobody knows whether that URL is such an endpoint.
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

// Without its part "endpoints" the library knows only configured URLs and the
// usual endpoints of the partition aws.  FIPS, dual-stack and account endpoints
// and other partitions are then errors.
#ifdef DDBMUTEX_NO_ENDPOINTS
constexpr bool kAllEndpoints = false;
#else
constexpr bool kAllEndpoints = true;
#endif
inline constexpr char kEndpointsLeftOut[] =
    ", but such endpoints are left out of this build of the library (its part "
    "\"endpoints\")";

// Whether the region may be found later, by asking the EC2 instance.
#ifdef DDBMUTEX_NO_HOSTS
constexpr bool kRegionMayComeLater = false;
#else
constexpr bool kRegionMayComeLater = true;
#endif

// Whether AWS_EC2_METADATA_DISABLED is true.
bool instance_is_disabled(const Environment& environment);

enum class Service { sts, dynamodb };

// The settings of a service's endpoint, and its URL once the region is known.
struct ServiceEndpoint {
  // Why a FIPS endpoint is wanted, for people: "AWS_USE_FIPS_ENDPOINT is true".
  // Empty if it is not wanted.
  std::string fips;
  std::string dual_stack;  // The same for a dual-stack endpoint.
  Setting url;             // As configured; not yet checked.
  std::string region;      // To sign for.  Set by set_region().
  // A URL.  It ends with a '/' only if it has a path.  See url_at().
  std::string endpoint;
  // If the URL is AWS's own: the region and the domain, "eu-west-1.api.aws".
  std::string suffix;
  std::string error;  // Why there can be no endpoint.
};

// Reads the settings.  If endpoint.url is set already, it is kept.
void read_endpoint_settings(Service service, const Profile& profile,
                            const Environment& environment,
                            ServiceEndpoint& endpoint);

// Sets the endpoint and its region, or the error.  Pure.
void find_endpoint(Service service, const Setting& region,
                   ServiceEndpoint& endpoint);

// --- The parts of find_endpoint() ------------------------------------------

// Arrays, because pointers would need relocations when a program starts.
struct Partition {
  char name[11];    // "aws-cn"
  char prefix[9];   // Of its regions: then come a word, '-' and a number.
  char suffix[17];  // The domain that follows a region.
  char dual_stack_suffix[29];
};

// REQUIRES: is_host_label(region).
const Partition& partition_of(std::string_view region);

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

// Sets endpoint.region, and endpoint.fips if the region asks for FIPS; or the
// error.
void set_region(ServiceEndpoint& endpoint, const Setting& region);

// Sets the error if there is a configured URL that cannot be used.
void check_url(ServiceEndpoint& endpoint);

// Sets the endpoint, or the error.  REQUIRES: set_region(), and no error.
void find_in_region(Service service, ServiceEndpoint& endpoint);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_ENDPOINTS_HPP
