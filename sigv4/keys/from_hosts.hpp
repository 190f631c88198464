// Keys that the host has for what runs on it: of a container's agent, and of an
// EC2 instance's metadata service (IMDS), which knows its region too.  Both are
// asked without proxies, and no redirect is followed.
//
// The agent that Amazon ECS, EKS Pod Identity, Greengrass and others have at a
// container's side:
//
//   AWS_CONTAINER_CREDENTIALS_RELATIVE_URI  a path at 169.254.170.2 (ECS), else
//   AWS_CONTAINER_CREDENTIALS_FULL_URI      https of any host, or http of this
//                                           machine or of an address that AWS
//                                           has set apart for agents
//   AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE  a file, read anew each time, else
//   AWS_CONTAINER_AUTHORIZATION_TOKEN       what is sent as Authorization
//
// The token is sent as it is.  One with a line break in it, also at a file's
// end, is refused, as AWS's SDKs do.  `none` only if neither of the first two
// is set.  Keys whose time is over are a failure.
//
// The metadata service is asked by version 2 alone: a token is got first, kept
// as long as it is good for, and got anew when it is refused.  It has a second
// to accept a connection and another to answer: outside of EC2 there is nobody
// at that address.  Who does not answer, refuses the connection or gives no
// tokens is `none`, unless he has answered before: then it is a failure that
// may pass.  Keys whose time is over are found all the same, with their end and
// a warning: an instance keeps the old ones when it cannot have new ones, and
// they may work on.
#ifndef DDBMUTEX_SIGV4_FROM_HOSTS_HPP
#define DDBMUTEX_SIGV4_FROM_HOSTS_HPP

#include <chrono>
#include <string>
#include <string_view>

#include "../profile.hpp"
#include "../secret.hpp"
#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct ContainerSettings {
  std::string_view variable;  // Of the URI; empty: neither is set.
  std::string place;          // The URL without its query, for people too.
  std::string query;          // And that, with its '?'.
  std::string token_file;     // Empty: none.
  Secret token;               // Unless there is a file; may be empty.
  std::string error;          // Why it cannot be used; empty if it can.
  std::string ca_file;        // For https; empty: libcurl's default.
};
ContainerSettings container_settings(const Environment& environment);

// Who is asked, and what of that is remembered.
struct Instance {
  std::string endpoint = "http://169.254.169.254";  // No '/' at the end.
  bool disabled = false;                            // It is not to be asked.
  std::chrono::seconds timeout{1};  // To connect, and again to answer.
  int attempts = 2;
  std::string error;  // Which setting is bad; empty: none.

  bool answered = false;  // Ever.
  bool had_keys = false;
  Secret token;
  BootTime token_ends = BootTime::min();
};

// The variable first, then the profile, whichever of its files:
//   AWS_EC2_METADATA_DISABLED                "true", any case
//   AWS_EC2_METADATA_SERVICE_ENDPOINT        ec2_metadata_service_endpoint
//   AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE   ..._mode: IPv4 or IPv6, any case
//   AWS_METADATA_SERVICE_TIMEOUT             metadata_service_timeout
//   AWS_METADATA_SERVICE_NUM_ATTEMPTS        metadata_service_num_attempts
// An endpoint goes before a mode.
void read_instance_settings(const Environment& environment,
                            const Profile& profile, Instance& instance);

KeyOutcome container_keys(const ContainerSettings& settings,
                          const Fetch& fetch);

KeyOutcome instance_keys(Instance& instance, const Fetch& fetch);

// Found: a region alone.  Else KeyOutcome::lacks_region.
KeyOutcome instance_region(Instance& instance, const Fetch& fetch);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_HOSTS_HPP
