// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Finds the DynamoDB to use: its URL, and the region to sign for.
//
//   region    the option, AWS_REGION, AWS_DEFAULT_REGION, the profile's
//             `region`; "fips-eu-west-1" is eu-west-1 with FIPS
//   endpoint  the option, else what sigv4/endpoints.hpp finds for `dynamodb`
//             (for region `local` it is http://localhost:8000, where a DynamoDB
//             for tests usually listens)
//   account   AWS_ACCOUNT_ID_ENDPOINT_MODE, the profile's
//             `account_id_endpoint_mode`: `preferred` (the default), `disabled`
//             or `required`
//   CA file   the option, AWS_CA_BUNDLE, the profile's `ca_bundle`
//
// The first source that is set is used.  An empty value counts as unset.  A bad
// value is an error that names its source.  Errors show the URL unless it may
// contain a password.
//
//   Target target = find_target({}, parts);
//   if (!target.error.empty()) return refuse(target.error);
//   ...  // Get the keys, perhaps with the id of their account.
//   use_account(target, table, keys.account_id);
#ifndef DDBMUTEX_ENDPOINT_HPP
#define DDBMUTEX_ENDPOINT_HPP

#include <string>
#include <string_view>

#include "../../sigv4/endpoints.hpp"
#include "../../sigv4/parts.hpp"
#include "../../sigv4/profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// An empty option is looked up in the environment and the profile.
struct TargetOptions {
  std::string_view region{};
  std::string_view endpoint{};
  std::string_view profile{};
  std::string_view ca_file{};
};

// The endpoint is empty as long as there is no region, and if there is an
// `error`.
struct Target : sigv4::ServiceEndpoint {
  // Has the rules of endpoints.
  const sigv4::Parts* parts = &sigv4::core_parts();
  const char* option = "";  // The option that can repair the error: "region".
  // The region as it was set, "fips-eu-west-1", for other services.
  sigv4::Setting region_said;

  std::string ca_file;  // Can be opened.  Empty: the system's.

  // If there is neither a region nor an error: the sources that were tried, for
  // error messages: "neither AWS_REGION nor ...".
  std::string region_sources;
};

// Reads the profile's files.  It is no error if there is no region but EC2's
// metadata service may know it; then complete() is called later.
Target find_target(
    const TargetOptions& options, const sigv4::Parts& parts,
    const sigv4::Environment& environment = sigv4::process_environment);

// Sets the region of a target that has none.  Pure.
void complete(Target& target, const sigv4::Setting& region);

// Sets the endpoint to the account's own if there is one.  `table`: its name or
// its ARN.  The id is empty if it is not known.  Pure.  REQUIRES: `target` has
// an endpoint.
void use_account(Target& target, const std::string& table,
                 const std::string& account_id);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ENDPOINT_HPP
