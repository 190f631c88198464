// Keys of a role, by AWS's Security Token Service: for who has keys that may
// assume it, or has a token of an identity provider that the role trusts.
//
//   Role role;
//   role.arn = "arn:aws:iam::123456789012:role/locker";
//   role.place = "profile \"x\" in \"/home/u/.aws/config\"";
//   const KeySourcePtr keys = assumed_role_keys(role, source, services);
//
// A chain of roles is a chain of sources.  The keys of the source are asked for
// anew each time, and so is the token's file read, for somebody writes a new
// token before the old one runs out.  Of the time to wait, a refusal and a
// clock that is wrong: chain/services.hpp.
//
// STS is asked for JSON, as MongoDB's drivers and EKS ask it, which is as XML
// would have it but for times, which are seconds since 1970; a service in its
// place that knows XML alone is of no use.
//
// Broken: settings that STS would not take, a file that cannot be read, and
// whatever STS refuses for good: no permission, keys or a token that have run
// out, a session that is too long.  Failed: what may pass; also where the
// identity provider could not be asked, and where the source's keys could not
// be had now.
#ifndef DDBMUTEX_SIGV4_FROM_STS_HPP
#define DDBMUTEX_SIGV4_FROM_STS_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "credentials.hpp"
#include "from_services.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct Role {
  std::string arn;
  // What the session is called in AWS's logs.  Empty: "ddbmutex-" and sixteen
  // random digits.
  std::string session_name;
  std::string external_id;  // For assumed_role_keys() alone.  Empty: none.
  // Of the keys, 900 to 43200 and no more than the role allows.  0: not asked
  // for, which is an hour.
  int duration_seconds = 0;
  std::string place;  // For people: who wants it.
};

// AssumeRole, signed with the keys of `source`.  With keys of another role, an
// hour is the most.
KeySourcePtr assumed_role_keys(Role role, KeySourcePtr source,
                               Services services);

// AssumeRoleWithWebIdentity, not signed.  What stands before and behind the
// token in its file, blanks and line ends, counts for nothing (AWS's tools send
// it too, and are refused).
KeySourcePtr web_identity_keys(Role role, std::string token_file,
                               Services services);

// The rest is what these are made of.  Pure.

// Why STS would not take that; empty if it would.  Names no value.
std::string flaw_of(const Role& role);

// The account of "arn:aws:sts::123456789012:assumed-role/..."; empty if there
// is none.
std::string account_of(std::string_view arn);

// Reads the answer to an action ("AssumeRole"); broken if it is none.
KeyOutcome read_sts_keys(std::string_view action, std::string_view body,
                         std::int64_t utc_now);

// Reads a refusal: all empty if it is none of STS's.
Refusal read_sts_refusal(std::string_view body);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_STS_HPP
