// Which DynamoDB is meant: its URL, and the region to sign for.
//
//   region    the option, AWS_REGION, AWS_DEFAULT_REGION, the profile's
//             `region`; "fips-eu-west-1" is eu-west-1 with FIPS
//   endpoint  the option, else as sigv4/endpoints.hpp has it for `dynamodb`
//             (region `local` alone is http://localhost:8000, where a
//             DynamoDB for tests listens by custom)
//   account   AWS_ACCOUNT_ID_ENDPOINT_MODE, the profile's
//             `account_id_endpoint_mode`: `preferred`, which it is if nobody
//             has said, `disabled` or `required`
//   CA file   the option, AWS_CA_BUNDLE, the profile's `ca_bundle`
//
// An empty value counts as unset.  A bad value is an error that names its
// source; the next source is not tried.  Errors show the URL unless it may
// contain a password.
//
//   Target target = find_target({});
//   if (!target.error.empty()) return refuse(target.error);
//   ...  // Keys come, and perhaps with them the account they are of.
//   use_account(target, keys.account_id);
#ifndef DDBMUTEX_ENDPOINT_HPP
#define DDBMUTEX_ENDPOINT_HPP

#include <string>
#include <string_view>

#include "../../sigv4/endpoints.hpp"
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

// Its endpoint is fit for ClientOptions, and empty without a region.  Where
// `error` says why there is none, there is no endpoint either.  It has a suffix
// where accounts have URLs of their own.
struct Target : sigv4::ServiceEndpoint {
  // Out of line, and nowhere moved: it is large.
  Target();
  Target(const Target&);
  Target& operator=(const Target&);
  ~Target();

  const char* option = "";  // Which option would mend an error: "region".
  // As it was said, "fips-eu-west-1", for other services.
  sigv4::Setting region_said;

  // Only an account's own URL will do: who says so, and what.
  std::string account_required;
  bool accounts_disabled = false;

  std::string ca_file;  // Can be opened; empty: the usual one.

  // If there is neither a region nor an error: where one was looked for, for
  // people: "neither AWS_REGION nor ...".
  std::string region_sources;
};

// Reads the profile's files.  No region is no error yet, if EC2's metadata
// service may be asked for it: complete() will be told one.
Target find_target(
    const TargetOptions& options,
    const sigv4::Environment& environment = sigv4::process_environment);

// Puts a target that has no region yet in one.  Pure.
void complete(Target& target, const sigv4::Setting& region);

// Makes its endpoint the one for requests that are signed with an account's
// keys; the id is empty if the keys' source does not tell.  Pure.  REQUIRES:
// `target` has an endpoint.
void use_account(Target& target, const std::string& account_id);

// Whose the table is, if it is named by an ARN of that region; empty otherwise.
// Its account's URL goes before that of the keys' account, as with AWS's SDKs.
std::string account_of_table(const std::string& table,
                             const std::string& region);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ENDPOINT_HPP
