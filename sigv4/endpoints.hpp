// AWS's services and where they are: its partitions, what it calls the services
// in a region, and what the environment and the profile say instead.
//
//   ServiceEndpoint sts;
//   read_endpoint_settings(Service::sts, profile, environment, sts);
//   find_endpoint(Service::sts, {"eu-west-1", "AWS_REGION"}, sts);
//   if (!sts.error.empty()) return refuse(sts.error);
//   get(url_at(sts.endpoint, "/?Action=..."));  // Signed for sts.region.
//
// A service's URL is, the first first: AWS_ENDPOINT_URL_<SERVICE>,
// AWS_ENDPOINT_URL, the profile's `services` (of which `<service>` with
// `endpoint_url`), the profile's `endpoint_url`; none of these where
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, or the profile's
// `ignore_configured_endpoint_urls`, is true; else what AWS calls it in the
// region, with FIPS by AWS_USE_FIPS_ENDPOINT or `use_fips_endpoint`, of both
// protocols (IPv4 and IPv6) by AWS_USE_DUALSTACK_ENDPOINT or
// `use_dualstack_endpoint`.  Both with a URL that was configured is an error,
// as in AWS's rules: nobody can say whether that URL is what was asked for.
//
// STS is always that of the region (AWS_STS_REGIONAL_ENDPOINTS=legacy is not
// looked at).  An empty value counts as none.  A bad one is an error that names
// its source, and shows the URL unless it may contain a password.
#ifndef DDBMUTEX_SIGV4_ENDPOINTS_HPP
#define DDBMUTEX_SIGV4_ENDPOINTS_HPP

#include <string>
#include <string_view>

#include "profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Without its part "endpoints" the library knows the usual endpoints of the
// partition aws alone, and URLs that are given: no FIPS and dual-stack ones,
// none of an account's own, no other partition's.  Who asks for these is told.
#ifdef DDBMUTEX_NO_ENDPOINTS
constexpr bool kAllEndpoints = false;
#else
constexpr bool kAllEndpoints = true;
#endif
inline constexpr char kEndpointsLeftOut[] =
    ", but such endpoints are left out of this build of the library (its part "
    "\"endpoints\")";

// Whether an instance may be asked for the region when all else is known.
#ifdef DDBMUTEX_NO_HOSTS
constexpr bool kRegionMayComeLater = false;
#else
constexpr bool kRegionMayComeLater = true;
#endif

// By AWS_EC2_METADATA_DISABLED.
bool instance_is_disabled(const Environment& environment);

// `signin` is AWS Sign-In, which refreshes the keys of `aws login`.
enum class Service { sts, sso, sso_oidc, signin, dynamodb };

// What is said about a service's endpoint, and where that is once the region is
// known.
struct ServiceEndpoint {
  // Why an endpoint is wanted that is validated for FIPS, and one of both
  // protocols, for people: "AWS_USE_FIPS_ENDPOINT is true".  Empty: it is not.
  std::string fips;
  std::string dual_stack;
  Setting url;         // That is configured; not yet checked.
  std::string region;  // To sign for, once it is known: set_region().
  // A URL.  It ends with a '/' only if it has a path.  See url_at().
  std::string endpoint;
  std::string suffix;  // Of AWS's own: the region, and what is behind it.
  std::string error;   // Why there can be no endpoint.
};

// A URL that is there already goes before what is configured.
void read_endpoint_settings(Service service, const Profile& profile,
                            const Environment& environment,
                            ServiceEndpoint& endpoint);

// There is no region either where there is an error.  Pure.
void find_endpoint(Service service, const Setting& region,
                   ServiceEndpoint& endpoint);

// The rest is what find_endpoint() is made of.

struct Partition {
  char name[11];    // "aws-cn"
  char prefix[9];   // Of its regions: then come a word, '-' and a number.
  char suffix[17];  // Behind a region.
  char dual_stack_suffix[29];
  char sign_in_domain[21];  // AWS Sign-In is usually at REGION.signin.DOMAIN.
};

// REQUIRES: is_host_label(region).
const Partition& partition_of(std::string_view region);

// One label of a name in the DNS: 1 to 63 letters, digits and hyphens, none of
// these first or last.  So are all regions.
bool is_host_label(std::string_view text);

// Whether normal_url() takes it, and it is visible ASCII.  It may have a path:
// some engines and gateways serve many databases at one host.
bool is_endpoint_url(const std::string& text);

// The URL of `path` at an endpoint: the endpoint's own path comes first, with
// one '/' between them.  As in botocore, the path "/" adds nothing to an
// endpoint's path.  REQUIRES: `path` begins with "/".
std::string url_at(std::string_view endpoint, std::string_view path);

// AWS's tools take "fips-us-east-1" and "us-east-1-fips" for us-east-1 with
// FIPS.
bool asks_for_fips(std::string_view region);

// The region as it is to be used.
void set_region(ServiceEndpoint& endpoint, const Setting& region);

// Says why the URL that is configured cannot be used, unless it can, or there
// is none.
void check_url(ServiceEndpoint& endpoint);

// REQUIRES: set_region(), and no error.
void find_in_region(Service service, ServiceEndpoint& endpoint);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_ENDPOINTS_HPP
