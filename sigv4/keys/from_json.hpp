// The JSON documents that hold keys, tokens and refusals of services, and the
// keys in them.
//
//   const Document answer = parse_json(http.body);
//   if (!answer.root().is_object()) return broken_keys("no JSON object");
//   Secret secret = answer.root().text("SecretAccessKey");
//
// Pure functions, but for the boot clock.
#ifndef DDBMUTEX_SIGV4_FROM_JSON_HPP
#define DDBMUTEX_SIGV4_FROM_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "../json.hpp"
#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::size_t kMaxJsonBytes = 64 * 1024;

// A copy of the text, read.  Bytes beyond ASCII are taken as they are.  No JSON
// if it is longer than kMaxJsonBytes.
Document parse_json(std::string_view text);

// How a service writes keys down.
struct KeyForm {
  KeyNames names{};
  const char* end = "Expiration";
  bool must_end = true;  // Without that and a token it is none.
  // An end is a time of ISO 8601, or a number since 1970, of which so many make
  // a second.
  std::int64_t units = 1;
};

// As STS and programs write them.
constexpr KeyForm kSessionForm = {
    {"AccessKeyId", "SecretAccessKey", "SessionToken"}, "Expiration", true, 1};

// The keys in the object that the document is, or that is within it by those
// names.  Found, also if their time is over already; else broken, and the
// reason names what is missing or wrong.  `now`: UTC in seconds since 1970,
// when this is called.  An AccountId that is none is left out, with a warning.
KeyOutcome keys_in(const Document& document,
                   std::initializer_list<const char*> names,
                   const KeyForm& form, std::string_view place,
                   std::int64_t now);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_JSON_HPP
