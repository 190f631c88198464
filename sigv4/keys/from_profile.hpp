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
//   login_session            after `aws login`
//   credential_process
//   keys in the config file
//
// AWS's JavaScript SDK has another order: role, keys in either file, web
// identity, program, single sign-on, login.  So it may use other keys if a
// profile has several of these.
//
// A source_profile with keys of its own needs no role of its own, and may be
// the profile itself.  The environment is not its source.
//
// The outcome is `broken` for
//   * a role_arn with none, or both, of source_profile and credential_source;
//   * a source_profile that does not exist, or has no keys;
//   * profiles that name each other in a circle, or more than 200 in a row;
//   * an mfa_serial with a role_arn, because nobody can be asked for a code;
//   * a profile that has no keys and configures a source only in part:
//     source_profile or credential_source without role_arn, or sso_session,
//     sso_start_url or sso_region without sso_account_id and sso_role_name.  A
//     search that went on would sign as the container or the instance.
//     (botocore goes on; the JavaScript SDK refuses only a partial sign-on.)
//   * a profile that has no keys and a source's property without a value.
//
// Settings that only qualify a source (duration_seconds, external_id,
// mfa_serial, role_session_name, sso_registration_scopes) are ignored if the
// profile does not use that source.
//
// The files are read anew each time.
#ifndef DDBMUTEX_SIGV4_FROM_PROFILE_HPP
#define DDBMUTEX_SIGV4_FROM_PROFILE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "../profile.hpp"
#include "credentials.hpp"
#include "from_hosts.hpp"
#include "from_services.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// What the environment says of a web identity; what is empty it does not say.
struct WebIdentityVariables {
  std::string token_file;
  std::string role_arn;
  std::string session_name;
  bool ignored = false;  // The profile was named by the options.
};

// What is remembered of the sign-on cache file (sign_on.hpp) that was read
// last.
struct SignOn {
  std::string path;
  BootTime next_refresh{};
  // Content that could not be written to the file; empty if there is none.
  Secret unwritten{};
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
  std::string sso_cache{};    // ~/.aws/sso/cache; empty without a HOME.
  std::string login_cache{};  // ~/.aws/login/cache; the same.
  SignOn sign_on{};
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

// How the profiles are set up is wrong, whoever wants keys of them.
template <class... Piece>
[[gnu::always_inline]] inline KeyOutcome blocked(Search& search,
                                                 const char* pattern,
                                                 const Piece&... pieces) {
  search.blocked = true;
  return broken_keys(pattern, pieces...);
}

// By keys of another, that is.
bool wants_role(const Profile& profile);

// role_arn with a source.  REQUIRES: there is one.  Lends the profile another
// name meanwhile.
KeyOutcome keys_by_role(Search& search, Profile& profile);

// A credential_process.  `place`: where that stands, for people:
// `credential_process of profile "x" in "/home/u/.aws/config"`.
KeyOutcome process_keys(const std::string& command, const std::string& place,
                        const Fetch& fetch);

// Each of these is `none`, and says nothing, if the profile does not ask for
// that way.

// All but roles: web identity, sign-on, files, login, program.
KeyOutcome keys_by_itself(Search& search, const Profile& profile,
                          const WebIdentityVariables& variables);
// role_arn with a web identity.
KeyOutcome keys_by_web_identity(Search& search, const Profile& profile,
                                const WebIdentityVariables& variables);
// sso_account_id or sso_role_name.
KeyOutcome keys_by_sign_on(Search& search, const Profile& profile);
// login_session.
KeyOutcome keys_by_login(Search& search, const Profile& profile);

// aws_access_key_id, aws_secret_access_key and, if there, aws_session_token
// and aws_account_id, as they stand in that file's section of the profile; to
// be looked for again after a minute.
KeyOutcome keys_in_file(const Profile& profile, const ProfileFile& file);

// --- What those are made of -------------------------------------------------

struct Role {
  std::string_view arn;
  // What the session is called in AWS's logs.  Empty: "ddbmutex-" and sixteen
  // random digits.
  std::string_view session_name;
  std::string_view external_id;  // For assume_role() alone; empty: none.
  // Of the keys, in seconds: as many as the role allows.  Empty: not asked for,
  // which is an hour.
  std::string_view duration;
  std::string place;  // For people: who wants it.
  Setting region;     // Whose STS is asked.
};

// AssumeRole, signed with these keys.  With keys of another role, an hour is
// the most.  REQUIRES: they were found, or have failed, or are broken.
KeyOutcome assume_role(const Role& role, KeyOutcome source,
                       const Services& services, const Fetch& fetch);

// AssumeRoleWithWebIdentity, not signed.  What stands before and behind the
// token in its file, blanks and line ends, counts for nothing (AWS's tools send
// it too, and are refused).
KeyOutcome assume_by_web_identity(const Role& role,
                                  const std::string& token_file,
                                  const Services& services, const Fetch& fetch);

// Reads the answer to an action ("AssumeRole"); broken if it is none.  Pure.
KeyOutcome read_sts_keys(std::string_view action, std::string_view body,
                         std::int64_t utc_now);

// The account of "arn:aws:sts::123456789012:assumed-role/..."; empty if there
// is none.  Pure.
std::string account_of(std::string_view arn);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_PROFILE_HPP
