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
// An empty value counts as none.  A bad one is an error that names its source,
// and never passed over for the next.  The URL is shown unless there may be a
// password in it.
//
//   const Target target = find_target({});
//   if (!target.error.empty()) return refuse(target.error);
//   ...  // Keys come, and perhaps with them the account they are of.
//   const AccountUrl url = account_url(target, keys.account_id);
#ifndef DDBMUTEX_ENDPOINT_HPP
#define DDBMUTEX_ENDPOINT_HPP

#include <string>

#include "../sigv4/endpoints.hpp"
#include "../sigv4/profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

struct TargetOptions {
  std::string region;    // Empty: look elsewhere.
  std::string endpoint;  // Likewise.
  sigv4::ProfileOptions profile;
  std::string ca_file{};  // Likewise.
  // No region is no error yet, if EC2's metadata service may be asked for it:
  // complete() will be told one.
  bool region_may_come_later = false;
};

struct Target {
  // Out of line, and nowhere moved: it is large, and made once.
  Target();
  Target(const Target&);
  Target& operator=(const Target&);
  ~Target();

  std::string endpoint;     // Fit for ClientOptions; empty without a region.
  std::string region;       // To sign for.
  std::string error;        // Why there is neither; empty if there is both.
  const char* option = "";  // Which option would mend that: "region".
  // As it was said, "fips-eu-west-1", for other services.
  sigv4::Setting region_said;

  // Of an account's own URL, behind the account's id:
  // ".ddb.eu-west-1.amazonaws.com"; empty where accounts have none.
  std::string account_suffix;
  // Only an account's own URL will do: who says so, and what.
  std::string account_required;
  bool accounts_disabled = false;

  std::string ca_file;  // Can be opened; empty: the usual one.

  // If there is neither a region nor an error: where one was looked for, for
  // people: "neither AWS_REGION nor ...".
  std::string region_sources;
  sigv4::EndpointSettings settings;  // For complete().
};

// Reads the profile's files.
Target find_target(
    const TargetOptions& options,
    const sigv4::Environment& environment = sigv4::process_environment);

// A target that has no region yet, in one.  Pure.
Target complete(const Target& target, const sigv4::Setting& region);

// The URL for requests that are signed with an account's keys; the id is empty
// if the keys' source does not tell.
struct AccountUrl {
  std::string url;
  std::string error;  // Why there is none.
};

// Pure.  REQUIRES: `target` has an endpoint.
AccountUrl account_url(const Target& target, const std::string& account_id);

// Whose the table is, if it is named by an ARN of that region; empty otherwise.
// Its account's URL goes before that of the keys' account, as with AWS's SDKs.
std::string account_of_table(const std::string& table,
                             const std::string& region);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ENDPOINT_HPP
