// The keys of a role in IAM Identity Center, for whoever has signed on there.
//
// A person signs on with `aws sso login`, which leaves a token in a cache file:
// CACHE/<SHA-1 of the session's name, or of the start URL>.json.  The file is
// read anew each time, and its token shown to the portal.  A session's token
// that has five minutes left, or has ended, is exchanged for a new one if the
// file says how, at most once a minute; the new one is written to the file, as
// AWS's tools do, for they share it.
//
// A token that has ended and cannot be had anew, or that the portal refuses, is
// final, and the reason says which command signs on.
#ifndef DDBMUTEX_SIGV4_FROM_SSO_HPP
#define DDBMUTEX_SIGV4_FROM_SSO_HPP

#include <string>
#include <string_view>

#include "credentials.hpp"
#include "from_profile.hpp"
#include "from_services.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// As a profile has them: sso_account_id or sso_role_name.
KeyOutcome keys_by_sign_on(Search& search, const Profile& profile);

struct Sso {
  std::string_view session_name;  // Empty: the older way, without sessions.
  std::string_view start_url;
  std::string_view account_id;
  std::string_view role_name;
  std::string_view cache;    // The directory; empty: nobody knows where it is.
  std::string_view profile;  // By its name.
  std::string place;         // For people: `profile "x" in "..."`.
  Setting region;            // The session's.
};

KeyOutcome sso_keys(const Sso& sso, const Services& services, SignOn& sign_on,
                    const Fetch& fetch);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_SSO_HPP
