// Where the keys come from if nobody says otherwise: the sources that AWS's
// tools look at, in botocore's order, which README.md has as a table.
//
// If the options name a profile, the environment's keys and web identity are
// not looked at.  Where there is nothing, the next is asked; what is there but
// wrong, or cannot be had now, ends the search.  A profile that is named and
// does not exist ends it behind the options: whoever mistyped its name is not
// to sign with the environment's keys.
//
//   ChainOptions options;
//   options.region = "eu-west-1";
//   Keys keys(chain_keys(options), utc_now);
//
// A build may leave out hosts and profiles.  A profile that is named is then
// one that does not exist, and a web identity in the environment is an error.
//
// Where services are, the region, the CA file and how the metadata service is
// asked is read once, when the chain is made; keys, roles, sign-ons and files
// with tokens each time.
#ifndef DDBMUTEX_SIGV4_FROM_ALL_HPP
#define DDBMUTEX_SIGV4_FROM_ALL_HPP

#include <string_view>

#include "../endpoints.hpp"
#include "../profile.hpp"
#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct ChainOptions {
  KeyTexts keys;  // Empty: look elsewhere.
  // Not null: these with the instance's region, no others.  REQUIRES:
  // kRegionMayComeLater.
  KeySourcePtr own{};
  std::string_view profile{};  // As for locate_profile().
  // For STS.  Empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's.
  Setting region{};
  // Empty: AWS_CA_BUNDLE, the profile's `ca_bundle`, libcurl's own.
  std::string_view ca_file{};
  // With the keys, the instance's region, which is asked for until it is known.
  // If it cannot be had, neither are the keys: KeyOutcome::lacks_region.
  bool find_region = false;
};

KeySourcePtr chain_keys(const ChainOptions& options,
                        const Environment& environment = process_environment);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_ALL_HPP
