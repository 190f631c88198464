// Keys and region of an EC2 instance, from its metadata service (IMDS).
//
// By version 2 alone: a token is got first, kept as long as it is good for, and
// got anew when it is refused.
//
// It is asked without proxies, follows no redirects, and has a second to accept
// a connection and another to answer: outside of EC2 there is nobody at that
// address.  Who does not answer, refuses the connection or gives no tokens is
// `none`, unless he has answered before: then it is a failure that may pass.
//
// Keys whose time is over are found all the same, with their end and a warning:
// an instance keeps the old ones when it cannot have new ones, and they may
// work on.
#ifndef DDBMUTEX_SIGV4_FROM_IMDS_HPP
#define DDBMUTEX_SIGV4_FROM_IMDS_HPP

#include <chrono>
#include <string>

#include "credentials.hpp"
#include "profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct InstanceSettings {
  std::string endpoint = "http://169.254.169.254";  // No '/' at the end.
  std::string disabled;  // Why it is not to be asked; empty: it may be.
  std::chrono::seconds timeout{1};  // To connect, and again to answer.
  int attempts = 2;
  std::string error;  // Which setting is bad; empty: none.
};

// The variable first, then the profile, whichever of its files:
//   AWS_EC2_METADATA_DISABLED                "true", any case
//   AWS_EC2_METADATA_SERVICE_ENDPOINT        ec2_metadata_service_endpoint
//   AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE   ..._mode: IPv4 or IPv6, any case
//   AWS_IMDS_USE_IPV6                        imds_use_ipv6 (older, "true")
//   AWS_METADATA_SERVICE_TIMEOUT             metadata_service_timeout
//   AWS_METADATA_SERVICE_NUM_ATTEMPTS        metadata_service_num_attempts
// An endpoint goes before a mode.
InstanceSettings instance_settings(const Environment& environment,
                                   const Profile& profile);

KeySourcePtr instance_keys(InstanceSettings settings);

struct RegionOutcome {
  std::string region;    // Empty if it could not be had.
  std::string reason;    // Why.
  bool passing = false;  // It may be had later.
};
RegionOutcome instance_region(const InstanceSettings& settings,
                              const Fetch& fetch);

// `keys`, and with those that are found the instance's region, which is asked
// for until it is known.  If it cannot be had, neither are the keys:
// KeyOutcome::lacks_region.
KeySourcePtr with_region(KeySourcePtr keys, InstanceSettings settings);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_IMDS_HPP
