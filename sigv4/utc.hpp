// The ways in which AWS writes a time of day: in a signature, in the Date of an
// answer, and for the end of keys.  Pure functions; no locale, no time zone of
// the host's, no clock.
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

// `2015-08-30T12:36:00Z`, the extended form.  A time after the year 9999 is
// written as the last second of that year.  REQUIRES: the year is 0 or later.
std::string iso_time(std::int64_t unix_seconds);

// Seconds since 1970 of an HTTP Date in its one current form (RFC 9110,
// IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`); nothing for any other text,
// the obsolete forms and impossible days included.  A weekday that is not that
// of the date is refused: clocks are set by this, and a Date that contradicts
// itself was not written by one.  A leap second (23:59:60) reads as the second
// after it.
std::optional<std::int64_t> parse_http_date(std::string_view text);

// Seconds since 1970 of a time of ISO 8601 in its extended form, as in RFC
// 3339: `2030-01-01T00:00:00Z`.  'T' may be 't' or a blank; the second may have
// a fraction, which is cut off; the zone is 'Z', 'z', "UTC" (as older AWS tools
// write) or an offset: "+01:00", "+0100" or "+01".  Nothing for any other text,
// one without a zone included, for nobody knows whose time that is.  A second
// of 60 is taken where UTC has leap seconds, and reads as the second after it.
std::optional<std::int64_t> parse_iso8601(std::string_view text);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_UTC_HPP
