// Where AWS's services are: its partitions, what it calls the services in a
// region, and what the environment and the profile say instead.
//
//   const EndpointSettings settings =
//       read_endpoint_settings(profile, environment);
//   const ServiceEndpoint sts =
//       service_endpoint(Service::sts, settings, {"eu-west-1", "AWS_REGION"});
//   if (!sts.error.empty()) return refuse(sts.error);
//   get(sts.url + "/?Action=...");  // Signed for sts.region.
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
// its source, and shows the URL unless there may be a password in it.
#ifndef DDBMUTEX_SIGV4_ENDPOINTS_HPP
#define DDBMUTEX_SIGV4_ENDPOINTS_HPP

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
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
constexpr char kEndpointsLeftOut[] =
    ", but such endpoints are left out of this build of the library (its part "
    "\"endpoints\")";

enum class Service { dynamodb, sts, sso, sso_oidc };
constexpr std::size_t kServices = 4;

// A value and its source for people; nothing if nobody has said.
using Setting = std::optional<Profile::Property>;

// The first of the variables that is set, else the profile's property.
Setting find_setting(const Environment& environment,
                     std::initializer_list<const char*> variables,
                     const Profile& profile, const char* property);

// Off if nobody has said.
struct Flag {
  bool on = false;
  std::string why;  // For people: "AWS_USE_FIPS_ENDPOINT is true".
};

struct ConfiguredUrl {
  Setting url;        // Not yet checked.
  std::string error;  // Why it could not be found out.
};

// All that is read, once.
struct EndpointSettings {
  const ConfiguredUrl& url_of(Service service) const;

  Flag fips;
  Flag dual_stack;
  std::array<ConfiguredUrl, kServices> urls;  // By Service.
  std::string error;  // One of the flags is neither true nor false.
};

EndpointSettings read_endpoint_settings(const Profile& profile,
                                        const Environment& environment);

struct ServiceEndpoint {
  std::string url;     // No path, no '/' at the end.
  std::string region;  // To sign for.
  std::string error;   // Why there is neither; empty if there is both.
};

// Pure.
ServiceEndpoint service_endpoint(Service service,
                                 const EndpointSettings& settings,
                                 const Profile::Property& region);

// The rest is what service_endpoint() is made of.

struct Partition {
  std::string_view name;  // "aws-cn"
  // A region is one of these, then a word, '-' and a number.  Empty: all that
  // is no other partition's.
  std::string_view prefix;
  std::string_view global;  // The region that stands for all of them.
  std::string_view suffix;
  std::string_view dual_stack_suffix;
};

// REQUIRES: is_host_label(region).
const Partition& partition_of(std::string_view region);

// One label of a name in the DNS: 1 to 63 letters, digits and hyphens, none of
// these first or last.  So are all regions.
bool is_host_label(std::string_view text);

// An http or https URL of a host, with no path but "/".
bool is_base_url(const std::string& text);

// A region as it is to be used: AWS's tools take "fips-us-east-1" and
// "us-east-1-fips" for us-east-1 with FIPS.
struct Place {
  std::string region;
  Flag fips;
  Flag dual_stack;
  std::string error;  // A setting is bad.
};
Place place_of(const EndpointSettings& settings,
               const Profile::Property& region);

// Why the URL cannot be used there; empty if it can.
std::string refusal_of(const Profile::Property& url, const Flag& fips,
                       const Flag& dual_stack);

// What AWS calls the service.  REQUIRES: is_host_label(region).
ServiceEndpoint regional_endpoint(Service service, const std::string& region,
                                  bool fips, bool dual_stack);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_ENDPOINTS_HPP
