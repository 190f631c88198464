// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads and writes times as AWS does: in a signature, in the Date of an answer,
// and for the expiry of keys.  Pure functions: no locale, no time zone of the
// host, no clock.
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

// Seconds since 1970 of an HTTP Date (RFC 9110, IMF-fixdate: `Sun, 06 Nov 1994
// 08:49:37 GMT`).  Nothing for any other text, an obsolete form, or an
// impossible day.  The weekday must be that of the date, because our idea of
// the time depends on it.  A leap second (23:59:60) is the second after it.
std::optional<std::int64_t> parse_http_date(std::string_view text);

// Seconds since 1970 of a time in the extended form of ISO 8601, as in RFC
// 3339: `2030-01-01T00:00:00Z`.  'T' may be 't' or a blank.  A fraction of a
// second is cut off.  The zone is 'Z', 'z', "UTC" (from older AWS tools) or an
// offset: "+01:00", "+0100" or "+01".  Nothing for any other text, such as one
// without a zone.  A leap second is the second after it.
std::optional<std::int64_t> parse_iso8601(std::string_view text);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_UTC_HPP
