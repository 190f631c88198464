// The keys of a profile, whichever way it has them.  The first of these that
// is there counts, as in botocore:
//
//   role_arn                 with source_profile, another profile (of which
//                            the same is asked), or credential_source; unless
//                            there is a web_identity_token_file
//   web_identity_token_file  with role_arn; AWS_WEB_IDENTITY_TOKEN_FILE,
//                            AWS_ROLE_ARN and AWS_ROLE_SESSION_NAME go before
//                            what the profile says, each by itself
//   sso_account_id, sso_role_name    with an sso_session, or the older way
//   keys in the credentials file
//   credential_process
//   keys in the config file
//
// A source_profile with keys of its own needs no role of its own, and may be
// the profile itself.  The environment is not its source.
//
// Broken: a profile that names none, or both, of source_profile and
// credential_source; one that is not there, or has nothing; profiles that name
// each other in a circle; an mfa_serial, for there is nobody to ask for a code;
// a way that this build of the library was made without.
//
// The files are read anew each time.
#ifndef DDBMUTEX_SIGV4_FROM_PROFILE_HPP
#define DDBMUTEX_SIGV4_FROM_PROFILE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "credentials.hpp"
#include "from_hosts.hpp"
#include "from_services.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// What the environment says of a web identity; what is empty it does not say.
struct WebIdentityVariables {
  std::string token_file;
#ifndef DDBMUTEX_NO_ROLES
  std::string role_arn;
  std::string session_name;
#endif
  bool ignored = false;  // The profile was named by the options.
};

// What a sign-on's cache file holds (from_sso.hpp).
struct SignOnToken {
  Secret text;
  std::int64_t ends = 0;
  Secret refresh_token;
  Secret client_id;
  Secret client_secret;
  std::int64_t registration_ends = 0;
  Secret file;  // All that it says.
};

// What is remembered of such a file, the last one that was looked at.
struct SignOn {
  std::string path;
  BootTime next_refresh{};
  // A token that could not be written there, where it belongs; none: empty.
  SignOnToken unwritten{};
};

// What is looked at, and what it remembers.
struct ProfileChain {
  ProfilePlace place;
  // What a credential_source may be: Environment, EcsContainer and
  // Ec2InstanceMetadata.
  KeyOutcome environment;
  ContainerSettings container{};
  Instance instance{};
  WebIdentityVariables web_identity{};
  Services services{};
#ifndef DDBMUTEX_NO_SSO
  std::string sso_cache{};  // ~/.aws/sso/cache; empty without a HOME.
  SignOn sign_on{};
#endif
};

// One thread at a time asks.
KeyOutcome keys_of_profile(ProfileChain& chain, const Fetch& fetch);

// --- For those that know one of the ways -----------------------------------

// One look for a profile's keys.
struct Search {
  ProfileChain& chain;
  const Fetch& fetch;
  // The profiles that name another, from the first one on.
  std::vector<std::string> path{};
  // What ended it is how the profiles are set up.
  bool blocked = false;
};

// Each of them is `none`, and says nothing, if the profile does not ask for
// that way.  All but roles: web identity, sign-on, files.
KeyOutcome keys_by_itself(Search& search, const Profile& profile,
                          const WebIdentityVariables& variables);

// How the profiles are set up is wrong, whoever wants keys of them.
KeyOutcome blocked(Search& search, const char* pattern, Pieces pieces);

// By keys of another, that is.
bool wants_role(const Profile& profile);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_PROFILE_HPP
