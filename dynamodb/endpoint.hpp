// Which DynamoDB is meant: its URL, and the region to sign for.
//
//   region    the option, AWS_REGION, AWS_DEFAULT_REGION, the profile's
//             `region`
//   endpoint  the option, AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, the
//             profile's `services` (of which `dynamodb` with `endpoint_url`),
//             the profile's `endpoint_url`, else what the region's partition
//             calls DynamoDB.  Only the option counts where
//             AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, or the profile's
//             `ignore_configured_endpoint_urls`, is true.
//
// An empty value counts as none.  A bad one is an error that names its source,
// and never passed over for the next.  The URL itself is not shown: it may
// hold a password.
#ifndef DDBMUTEX_DYNAMODB_ENDPOINT_HPP
#define DDBMUTEX_DYNAMODB_ENDPOINT_HPP

#include <string>

#include "sigv4/profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

struct TargetOptions {
  std::string region;    // Empty: look elsewhere.
  std::string endpoint;  // Likewise.
  sigv4::ProfileOptions profile;
};

struct Target {
  std::string endpoint;  // Fit for ClientOptions.
  std::string region;    // To sign for.
  std::string error;     // Why there is neither; empty if there is both.
  std::string option;    // Which option would mend that: "region".
};

// Reads the profile's files, unless both are given as options.  FIPS
// endpoints are not known here: where AWS_USE_FIPS_ENDPOINT or the profile's
// `use_fips_endpoint` asks for one and the option does not say which, that is
// an error.
Target find_target(
    const TargetOptions& options,
    const sigv4::Environment& environment = sigv4::process_environment);

// Letters, digits and hyphens, as in a label of the DNS.
bool is_region(const std::string& text);

// The URL that AWS's partitions give DynamoDB in a region.  That of `local` is
// where a DynamoDB for tests listens by custom.  REQUIRES: is_region(region).
std::string endpoint_of(const std::string& region);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_DYNAMODB_ENDPOINT_HPP
