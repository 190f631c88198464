// Keys as they stand in the JSON document of a metadata service, a container's
// agent or a credential_process:
//
//   {"AccessKeyId": "...", "SecretAccessKey": "...", "Token": "...",
//    "Expiration": "2030-01-01T00:00:00Z", "AccountId": "123456789012"}
//
// Pure functions, but for the boot clock.
#ifndef DDBMUTEX_SIGV4_FROM_DOCUMENT_HPP
#define DDBMUTEX_SIGV4_FROM_DOCUMENT_HPP

#include <cstdint>
#include <string>

#include "credentials.hpp"
#include "from_json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct KeyForm {
  const char* token = "Token";  // What it calls the session token.
  bool must_end = true;  // Without that and Expiration it is no document.
};

// Found, also if their time is over already; else broken, and the reason names
// the member.  `now`: UTC in seconds since 1970, when this is called.  An
// AccountId that is none is left out, with a warning.
KeyOutcome keys_in_document(const JsonObject& document, const KeyForm& form,
                            const std::string& place, std::int64_t now);

// What fetch.utc_now has become since `began`, when fetch() was called.
std::int64_t utc_now(const Fetch& fetch, BootTime began);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_DOCUMENT_HPP
