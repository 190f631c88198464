// The two ways in which AWS writes a time of day: in a signature, and in the
// Date of an answer.  Pure functions; no locale, no time zone, no clock.
#ifndef DDBMUTEX_SIGV4_UTC_HPP
#define DDBMUTEX_SIGV4_UTC_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// `20150830T123600Z` for a time in whole seconds since 1970.  The first eight
// characters are the day that the scope of a signature names.
// REQUIRES: the year is 0 to 9999.
std::string amz_date(std::int64_t unix_seconds);

// Seconds since 1970 of an HTTP Date in its one current form (RFC 9110,
// IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`); nothing for any other text,
// the obsolete forms and impossible days included.  A weekday that is not that
// of the date is refused: clocks are set by this, and a Date that contradicts
// itself was not written by one.  A leap second (23:59:60) reads as the second
// after it.
std::optional<std::int64_t> parse_http_date(std::string_view text);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_UTC_HPP
