// Keys of a role, by AWS's Security Token Service: for who has keys that may
// assume it, or has a token of an identity provider that the role trusts.
//
// A chain of roles is a chain of profiles.  The keys of the source are asked
// for anew each time, and so is the token's file read, for somebody writes a
// new token before the old one runs out.  Of the time to wait, a refusal and a
// clock that is wrong: from_services.hpp.
//
// STS is asked for JSON, as MongoDB's drivers and EKS ask it, which is as XML
// would have it but for times, which are seconds since 1970; a service in its
// place that knows XML alone is of no use.
//
// What STS takes is for STS to say.  Broken: a file that cannot be read, and
// whatever STS refuses for good: no permission, keys or a token that have run
// out, a session that is too long.  Failed: what may pass; also where the
// identity provider could not be asked, and where the source's keys could not
// be had now.
#ifndef DDBMUTEX_SIGV4_FROM_ROLES_HPP
#define DDBMUTEX_SIGV4_FROM_ROLES_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "credentials.hpp"
#include "from_profile.hpp"
#include "from_services.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// As a profile has them: role_arn with a source, or with a web identity.
// REQUIRES: by role: there is a role_arn.
// Lends the profile another name meanwhile.
KeyOutcome keys_by_role(Search& search, Profile& profile);
KeyOutcome keys_by_web_identity(Search& search, const Profile& profile,
                                const WebIdentityVariables& variables);

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

#endif  // DDBMUTEX_SIGV4_FROM_ROLES_HPP
