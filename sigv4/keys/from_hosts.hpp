// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keys that a host gives to what runs on it: from a container's agent
// (from_container.cpp), and from an EC2 instance's metadata service
// (from_instance.cpp), which also knows the region.  Neither is asked through a
// proxy, and no redirect is followed.
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

// --- A container's agent ----------------------------------------------------

// Settings from these variables:
//   AWS_CONTAINER_CREDENTIALS_RELATIVE_URI  a path at 169.254.170.2 (ECS), else
//   AWS_CONTAINER_CREDENTIALS_FULL_URI      https of any host, or http of this
//                                           machine or of an address that AWS
//                                           reserves for agents
//   AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE  a file, read for each request, else
//   AWS_CONTAINER_AUTHORIZATION_TOKEN       what is sent as Authorization
struct ContainerSettings {
  std::string_view variable;  // The one with the URI; empty if none is set.
  std::string place;          // The URL without its query.
  std::string query;          // The query with its '?'.
  std::string token_file;     // Empty: none.
  Secret token;               // Unless there is a file; may be empty.
  std::string error;          // Why it cannot be used; empty if it can.
  std::string ca_file;        // For https; empty: libcurl's default.
};
ContainerSettings container_settings(const Environment& environment);

// `none` only if there is no URI.  Keys that have expired are a failure.
KeyOutcome container_keys(const ContainerSettings& settings,
                          const Fetch& fetch);

// --- An instance's metadata service -----------------------------------------

// Its settings, and what is remembered about it.
struct Instance {
  std::string endpoint = "http://169.254.169.254";  // No '/' at the end.
  bool disabled = false;                            // Must not be asked.
  std::chrono::seconds timeout{1};  // To connect, and again to answer.
  int attempts = 2;
  std::string error;  // Which setting is bad; empty: none.

  bool answered = false;  // It has answered at least once.
  bool had_keys = false;  // It has given keys at least once.
  Secret token;
  BootTime token_ends = BootTime::min();
};

// Settings from these variables, else from the profile:
//   AWS_EC2_METADATA_DISABLED                "true", any case
//   AWS_EC2_METADATA_SERVICE_ENDPOINT        ec2_metadata_service_endpoint
//   AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE   ..._mode: IPv4 or IPv6, any case
//   AWS_METADATA_SERVICE_TIMEOUT             metadata_service_timeout
//   AWS_METADATA_SERVICE_NUM_ATTEMPTS        metadata_service_num_attempts
// If an endpoint is set, the mode does not matter.
void read_instance_settings(const Environment& environment,
                            const Profile& profile, Instance& instance);

// Keys that have expired are `found`, with a warning.  An instance that cannot
// get new keys keeps the old ones, and AWS may still accept them.
KeyOutcome instance_keys(Instance& instance, const Fetch& fetch);

// If `found`, the outcome has a region and no keys.  Else
// KeyOutcome::lacks_region is set.
KeyOutcome instance_region(Instance& instance, const Fetch& fetch);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_HOSTS_HPP
