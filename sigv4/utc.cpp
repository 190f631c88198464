// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Times are read and written by the formats below, digit by digit.  libc's
// functions are not used: strftime() and strptime() depend on the locale, and
// gmtime() and timegm() take a lock that a forked child may find taken for
// ever.
#include "utc.hpp"

#include <algorithm>
#include <iterator>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// The formats of AWS and HTTP.  A letter behind '%' means what it means to
// strftime(3).
constexpr std::string_view kAmzFormat = "%Y%m%dT%H%M%SZ";
constexpr std::string_view kHttpFormat = "%a, %d %b %Y %H:%M:%S GMT";
// ISO 8601 has 'T' between the two, and a zone at the end.
constexpr std::string_view kIsoDate = "%Y-%m-%d", kIsoTime = "%H:%M:%S";

struct Fields {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int weekday = 0;  // 0 is Sunday.
};

struct FieldFormat {
  char letter;
  int Fields::*field;
  std::size_t width;
  std::string_view names{};  // Of `width` letters each; empty: digits.
  int first = 0;             // The value of the first name.
};

constexpr FieldFormat kFields[] = {
    {'Y', &Fields::year, 4},
    {'m', &Fields::month, 2},
    {'b', &Fields::month, 3, "JanFebMarAprMayJunJulAugSepOctNovDec", 1},
    {'d', &Fields::day, 2},
    {'a', &Fields::weekday, 3, "SunMonTueWedThuFriSat"},
    {'H', &Fields::hour, 2},
    {'M', &Fields::minute, 2},
    {'S', &Fields::second, 2},
};

const FieldFormat& field_of(char letter) {
  return *std::find_if(
      std::begin(kFields), std::end(kFields),
      [letter](const FieldFormat& field) { return field.letter == letter; });
}

std::optional<int> value_of(std::string_view text, const FieldFormat& format) {
  if (!format.names.empty()) {
    const std::size_t at = format.names.find(text);
    if (at == format.names.npos || at % format.width != 0) return std::nullopt;
    return format.first + static_cast<int>(at / format.width);
  }
  int value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return value;
}

// Removes fields in this format from the front of the text.  Returns whether
// they have the format.
bool read_fields(std::string_view& text, std::string_view format,
                 Fields& fields) {
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      if (text.empty() || text[0] != format[i]) return false;
      text.remove_prefix(1);
      continue;
    }
    const FieldFormat& field = field_of(format[++i]);
    if (text.size() < field.width) return false;
    const auto value = value_of(text.substr(0, field.width), field);
    if (!value) return false;
    fields.*field.field = *value;
    text.remove_prefix(field.width);
  }
  return true;
}

// REQUIRES: the format has no names.
std::string written(const Fields& fields, std::string_view format) {
  char text[sizeof "2027-01-15T08:00:00Z"];  // The longest.
  char* to = text;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      *to++ = format[i];
      continue;
    }
    const FieldFormat& field = field_of(format[++i]);
    int value = fields.*field.field;
    for (std::size_t digit = field.width; digit-- > 0; value /= 10) {
      to[digit] = static_cast<char>('0' + value % 10);
    }
    to += field.width;
  }
  return {text, to};
}

// --- The calendar ------------------------------------------------------------

constexpr std::int64_t kDay = 86400;
// After so many days, 400 years, the calendar repeats.  Days are counted from
// 400 years before 1 March of the year 0, so that no number is negative.
constexpr int kEraDays = 146097;
constexpr std::int64_t kEpoch = 719468 + kEraDays;  // 1 January 1970.

// Counts in years that begin on 1 March, so that the leap day is the last of
// its year (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
std::int64_t days_from(const Fields& date) {
  const int year = date.year - (date.month <= 2 ? 1 : 0) + 400;
  const int month = (date.month + 9) % 12;  // From March.
  return year * 365 + year / 4 - year / 100 + year / 400 +
         (153 * month + 2) / 5 + date.day - 1;
}

void set_date(Fields& fields, unsigned days) {
  const unsigned of_era = days % kEraDays;
  const unsigned years =
      (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const unsigned of_year = of_era - (365 * years + years / 4 - years / 100);
  const unsigned month = (5 * of_year + 2) / 153;  // From March.
  const unsigned year = years + 400 * (days / kEraDays) + month / 10;
  fields.year = static_cast<int>(year) - 400;
  fields.month = static_cast<int>((month + 2) % 12 + 1);
  fields.day = static_cast<int>(of_year - (153 * month + 2) / 5 + 1);
}

Fields fields_of(std::int64_t unix_seconds) {
  const auto since = static_cast<std::uint64_t>(unix_seconds + kEpoch * kDay);
  const auto second = static_cast<int>(since % kDay);
  Fields fields;
  set_date(fields, static_cast<unsigned>(since / kDay));
  fields.hour = second / 3600;
  fields.minute = second / 60 % 60;
  fields.second = second % 60;
  return fields;
}

int days_of(int month, int year) {
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (month == 2) return leap ? 29 : 28;
  const bool short_month =
      month == 4 || month == 6 || month == 9 || month == 11;
  return short_month ? 30 : 31;
}

// Nothing if there is no such day or time.  A second of 60 exists only before
// midnight UTC.  `ahead`: the seconds by which the time is ahead of UTC.
std::optional<std::int64_t> seconds_of(const Fields& time, int ahead) {
  if (time.month < 1 || time.month > 12 || time.day < 1 ||
      time.day > days_of(time.month, time.year) || time.hour > 23 ||
      time.minute > 59 || time.second > 60) {
    return std::nullopt;
  }
  const std::int64_t result = (days_from(time) - kEpoch) * kDay +
                              time.hour * 3600 + time.minute * 60 +
                              time.second - ahead;
  if (time.second == 60 && result % kDay != 0) return std::nullopt;
  return result;
}

// Seconds by which a zone is ahead of UTC.
std::optional<int> parse_zone(std::string_view zone) {
  if (zone == "Z" || zone == "z" || zone == "UTC") return 0;
  if (zone.empty() || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  for (const char* format : {"%H:%M", "%H%M", "%H"}) {
    std::string_view rest = zone.substr(1);
    Fields time;
    if (!read_fields(rest, format, time) || !rest.empty()) continue;
    if (time.hour > 23 || time.minute > 59) return std::nullopt;
    const int ahead = time.hour * 3600 + time.minute * 60;
    return zone[0] == '-' ? -ahead : ahead;
  }
  return std::nullopt;
}

// Cuts off a fraction of a second, if there is one.  Returns whether it has
// digits.
bool skip_fraction(std::string_view& text) {
  if (text.empty() || (text[0] != '.' && text[0] != ',')) return true;
  const std::size_t end =
      std::min(text.find_first_not_of("0123456789", 1), text.size());
  text.remove_prefix(end);
  return end > 1;
}

}  // namespace

std::string amz_date(std::int64_t unix_seconds) {
  return written(fields_of(unix_seconds), kAmzFormat);
}

std::string iso_time(std::int64_t unix_seconds) {
  constexpr std::int64_t kLastSecond = 253402300799;  // Of the year 9999.
  const Fields time = fields_of(std::min(unix_seconds, kLastSecond));
  return sigv4::join(
      {written(time, kIsoDate), "T", written(time, kIsoTime), "Z"});
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  Fields time;
  if (!read_fields(text, kHttpFormat, time) || !text.empty())
    return std::nullopt;
  constexpr int kFirstWeekday = 3;  // Of the days counted.
  if ((days_from(time) + kFirstWeekday) % 7 != time.weekday) {
    return std::nullopt;
  }
  return seconds_of(time, 0);
}

std::optional<std::int64_t> parse_iso8601(std::string_view text) {
  Fields time;
  if (!read_fields(text, kIsoDate, time) || text.empty()) return std::nullopt;
  if (text[0] != 'T' && text[0] != 't' && text[0] != ' ') return std::nullopt;
  text.remove_prefix(1);
  if (!read_fields(text, kIsoTime, time) || !skip_fraction(text))
    return std::nullopt;
  const auto ahead = parse_zone(text);
  return ahead ? seconds_of(time, *ahead) : std::nullopt;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
