// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The usual source of keys: all sources of some Parts, in botocore's order.
// README.md has a table of them.
//
// The sources are asked one after the other.  A source that is misconfigured,
// or has no keys now, ends the search.  If the options name a profile, the
// environment's keys and web identity are skipped.  A named profile that does
// not exist ends the search after the options.  So whoever mistypes its name
// does not sign with the environment's keys.
//
//   ChainOptions options;
//   options.region = "eu-west-1";
//   Keys keys(chain_keys(options, core_parts()), utc_now);
//
// The settings of services, region, CA file and metadata service are read once,
// when the source is made.  Keys, roles and files with tokens are read for each
// fetch.
#ifndef DDBMUTEX_SIGV4_FROM_ALL_HPP
#define DDBMUTEX_SIGV4_FROM_ALL_HPP

#include <string_view>

#include "../parts.hpp"
#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct ChainOptions {
  KeyTexts keys;  // Empty: look elsewhere.
  // If not null, only this source is asked, and its keys get the instance's
  // region.
  KeySourcePtr own{};
  std::string_view profile{};  // As for locate_profile().
  // For STS.  Empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's.
  Setting region{};
  // Empty: AWS_CA_BUNDLE, the profile's `ca_bundle`, libcurl's own.
  std::string_view ca_file{};
  // Whether the outcome must have the instance's region.  Without it, there are
  // no keys: KeyOutcome::lacks_region.
  bool find_region = false;
};

KeySourcePtr chain_keys(const ChainOptions& options, const Parts& parts,
                        const Environment& environment = process_environment);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_ALL_HPP
