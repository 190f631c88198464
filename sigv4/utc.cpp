#include "utc.hpp"

#include <algorithm>
#include <array>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::string_view kWeekdays = "ThuFriSatSunMonTueWed";  // From 1970.
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

struct Date {
  int year, month, day;  // Month and day from 1.
};

// Both conversions count in eras of 400 years, after which the calendar
// repeats, and in years that begin on 1 March, so that the leap day is the last
// of its year and the months before it have lengths that a line describes.
constexpr std::int64_t kEraDays = 146097;
constexpr std::int64_t kEpoch = 719468;  // 1 March 0000 to 1 January 1970.

std::int64_t days_from_date(const Date& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0) + 400;
  const int month = (date.month + 9) % 12;  // From March.
  const std::int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
  return year * 365 + year / 4 - year / 100 + year / 400 + day_of_year -
         kEpoch - kEraDays;
}

Date date_from_days(std::int64_t days) {
  const std::int64_t shifted = days + kEpoch + kEraDays;
  const std::int64_t era = shifted / kEraDays;
  const std::int64_t day_of_era = shifted % kEraDays;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
       day_of_era / (kEraDays - 1)) /
      365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month = (5 * day_of_year + 2) / 153;  // From March.
  Date date;
  date.day = static_cast<int>(day_of_year - (153 * month + 2) / 5 + 1);
  date.month = static_cast<int>(month < 10 ? month + 3 : month - 9);
  date.year = static_cast<int>(year_of_era + (era - 1) * 400 +
                               (date.month <= 2 ? 1 : 0));
  return date;
}

int days_in_month(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30,
                                         31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return kDays[static_cast<std::size_t>(month - 1)] +
         (month == 2 && leap ? 1 : 0);
}

void put_digits(char* last, int count, int number) {
  for (; count > 0; --count, number /= 10) {
    *last-- = static_cast<char>('0' + number % 10);
  }
}

// The decimal number there; -1 unless all of it is digits, no sign, no blank.
int number_at(std::string_view text, std::size_t from, std::size_t length) {
  int number = 0;
  for (const char c : text.substr(from, length)) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

// Which of the three-letter names, run together in `names`, stands there; -1
// for none.
int name_at(std::string_view text, std::size_t from, std::string_view names) {
  const std::string_view name = text.substr(from, 3);
  for (std::size_t i = 0; i < names.size(); i += 3) {
    if (names.substr(i, 3) == name) return static_cast<int>(i / 3);
  }
  return -1;
}

// Compares what never changes: blanks, comma, colons, zone.
bool has_form_of_http_date(std::string_view text) {
  constexpr std::string_view kForm = "aaa, 00 aaa 0000 00:00:00 GMT";
  return text.size() == kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(),
                    [](char c, char form) {
                      return form == 'a' || form == '0' || c == form;
                    });
}

bool is_in_calendar(const Date& date) {
  return date.year >= 0 && date.month >= 1 && date.month <= 12 &&
         date.day >= 1 && date.day <= days_in_month(date.year, date.month);
}

// Days since 1970 of "Sun, 06 Nov 1994".
std::optional<std::int64_t> parse_days(std::string_view text) {
  const Date date = {number_at(text, 12, 4), name_at(text, 8, kMonths) + 1,
                     number_at(text, 5, 2)};
  if (!is_in_calendar(date)) return std::nullopt;
  const std::int64_t days = days_from_date(date);
  // Whole weeks, because a remainder of days before 1970 would be negative.
  const std::int64_t weekday = (days + 7 * kEraDays) % 7;
  if (weekday != name_at(text, 0, kWeekdays)) return std::nullopt;
  return days;
}

// Seconds since midnight of what ends in "08:49:37 GMT".
std::optional<int> parse_second_of_day(std::string_view text) {
  const int hour = number_at(text, 17, 2);
  const int minute = number_at(text, 20, 2);
  const int second = number_at(text, 23, 2);
  const int last_second = hour == 23 && minute == 59 ? 60 : 59;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > last_second) {
    return std::nullopt;
  }
  return hour * 3600 + minute * 60 + second;
}

bool has_form(std::string_view text, std::string_view form) {
  return text.size() == form.size() &&
         std::equal(text.begin(), text.end(), form.begin(), [](char c, char f) {
           return f == '0' ? c >= '0' && c <= '9' : c == f;
         });
}

// What is behind the first digits.
std::string_view behind_digits(std::string_view text) {
  return text.substr(
      std::min(text.find_first_not_of("0123456789"), text.size()));
}

// Seconds by which a zone is ahead of UTC.
std::optional<int> parse_zone(std::string_view zone) {
  if (zone == "Z" || zone == "z" || zone == "UTC") return 0;
  if (zone.empty() || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  const std::string_view digits = zone.substr(1);
  const bool colon = has_form(digits, "00:00");
  if (!colon && !has_form(digits, "0000") && !has_form(digits, "00")) {
    return std::nullopt;
  }
  const int hours = number_at(digits, 0, 2);
  const int minutes =
      digits.size() > 2 ? number_at(digits, colon ? 3 : 2, 2) : 0;
  if (hours > 23 || minutes > 59) return std::nullopt;
  const int seconds = hours * 3600 + minutes * 60;
  return zone[0] == '-' ? -seconds : seconds;
}

}  // namespace

std::string amz_date(std::int64_t unix_seconds) {
  std::int64_t days = unix_seconds / kDay;
  std::int64_t rest = unix_seconds % kDay;
  if (rest < 0) {  // Before 1970; division cuts towards zero.
    rest += kDay;
    --days;
  }
  const Date date = date_from_days(days);
  const int second = static_cast<int>(rest);
  std::string text("yyyymmddThhmmssZ");
  put_digits(&text[3], 4, date.year);
  put_digits(&text[5], 2, date.month);
  put_digits(&text[7], 2, date.day);
  put_digits(&text[10], 2, second / 3600);
  put_digits(&text[12], 2, second / 60 % 60);
  put_digits(&text[14], 2, second % 60);
  return text;
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  if (!has_form_of_http_date(text)) return std::nullopt;
  const auto days = parse_days(text);
  const auto second = parse_second_of_day(text);
  if (!days || !second) return std::nullopt;
  return *days * kDay + *second;
}

std::optional<std::int64_t> parse_iso8601(std::string_view text) {
  constexpr std::size_t kDate = 10, kTime = 8;  // "2030-01-01", "00:00:00"
  if (text.size() < kDate + 1 + kTime) return std::nullopt;
  const std::string_view time = text.substr(kDate + 1, kTime);
  if (!has_form(text.substr(0, kDate), "0000-00-00") ||
      !has_form(time, "00:00:00") ||
      (text[kDate] != 'T' && text[kDate] != 't' && text[kDate] != ' ')) {
    return std::nullopt;
  }
  std::string_view rest = text.substr(kDate + 1 + kTime);
  if (!rest.empty() && (rest[0] == '.' || rest[0] == ',')) {
    const std::string_view behind = behind_digits(rest.substr(1));
    if (behind.size() + 1 == rest.size()) return std::nullopt;  // No digit.
    rest = behind;
  }
  const auto zone = parse_zone(rest);
  const Date date = {number_at(text, 0, 4), number_at(text, 5, 2),
                     number_at(text, 8, 2)};
  const int hour = number_at(time, 0, 2);
  const int minute = number_at(time, 3, 2);
  const int second = number_at(time, 6, 2);
  if (!zone || !is_in_calendar(date) || hour > 23 || minute > 59 ||
      second > 60) {
    return std::nullopt;
  }
  const std::int64_t result =
      days_from_date(date) * kDay + hour * 3600 + minute * 60 + second - *zone;
  if (second == 60 && result % kDay != 0) return std::nullopt;
  return result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
