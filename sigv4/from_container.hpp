// Keys of a container: of the agent that Amazon ECS, EKS Pod Identity,
// Greengrass and others have at its side.
//
//   AWS_CONTAINER_CREDENTIALS_RELATIVE_URI  a path at 169.254.170.2 (ECS), else
//   AWS_CONTAINER_CREDENTIALS_FULL_URI      https of any host, or http of this
//                                           machine or of an address that AWS
//                                           has set apart for agents
//   AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE  a file, read anew each time, else
//   AWS_CONTAINER_AUTHORIZATION_TOKEN       what is sent as Authorization
//
// The token is sent as it is.  One with a line break in it, also at a file's
// end, is refused, as AWS's SDKs do.  No proxy is used, no redirect followed.
//
// `none` only if neither of the first two is set.  Keys whose time is over are
// a failure.
#ifndef DDBMUTEX_SIGV4_FROM_CONTAINER_HPP
#define DDBMUTEX_SIGV4_FROM_CONTAINER_HPP

#include <string>

#include "credentials.hpp"
#include "profile.hpp"
#include "secret.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct ContainerSettings {
  std::string variable;    // Of the URI; empty: neither is set.
  std::string url;         // As it is asked, with its query.
  std::string place;       // The same for people, without.
  std::string token_file;  // Empty: none.
  Secret token;            // Unless there is a file; may be empty.
  std::string error;       // Why it cannot be used; empty if it can.
};
ContainerSettings container_settings(const Environment& environment);

// `ca_file`: for https; empty: libcurl's default.
KeySourcePtr container_keys(ContainerSettings settings,
                            std::string ca_file = {});
KeySourcePtr container_keys(const Environment& environment,
                            std::string ca_file = {});

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_CONTAINER_HPP
