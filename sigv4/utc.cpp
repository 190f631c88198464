#include "utc.hpp"

#include <algorithm>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::string_view kWeekdays = "ThuFriSatSunMonTueWed";  // From 1970.
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

// After so many days, 400 years, the calendar repeats.
constexpr std::int64_t kEraDays = 146097;
constexpr std::int64_t kEpoch = 719468;  // 1 March 0000 to 1 January 1970.

struct Date {
  int year, month, day;  // Month and day from 1.
};

// Counts in years that begin on 1 March, so that the leap day is the last of
// its year and the months before it have lengths that a line describes.
// (libc's gmtime() and timegm() take a lock that a forked child may find taken
// for ever.)
std::int64_t days_from(const Date& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0) + 400;
  const int month = (date.month + 9) % 12;  // From March.
  return year * 365 + year / 4 - year / 100 + year / 400 +
         (153 * month + 2) / 5 + date.day - 1 - kEpoch - kEraDays;
}

Date date_of(std::int64_t days) {
  days += kEpoch + kEraDays;  // The last is taken back in the year.
  const auto of_era = static_cast<int>(days % kEraDays);
  const int years =
      (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int of_year = of_era - (365 * years + years / 4 - years / 100);
  const int month = (5 * of_year + 2) / 153;  // From March.
  const int year = years + 400 * static_cast<int>(days / kEraDays - 1);
  return {year + month / 10, (month + 2) % 12 + 1,
          of_year - (153 * month + 2) / 5 + 1};
}

// Whether the text has digits where the form has '0', anything where it has
// 'a', and is the form everywhere else.
bool has_form(std::string_view text, std::string_view form) {
  return text.size() == form.size() &&
         std::equal(text.begin(), text.end(), form.begin(), [](char c, char f) {
           return f == 'a' || (f == '0' ? c >= '0' && c <= '9' : c == f);
         });
}

// Of digits.
int number_at(std::string_view text, std::size_t from, std::size_t length) {
  int number = 0;
  for (const char c : text.substr(from, length))
    number = number * 10 + (c - '0');
  return number;
}

// Which of the three-letter names, run together in `names`, stands there; -1
// for none.
int name_at(std::string_view text, std::size_t from, std::string_view names) {
  for (std::size_t i = 0; i < names.size(); i += 3) {
    if (names[i] == text[from] && names[i + 1] == text[from + 1] &&
        names[i + 2] == text[from + 2]) {
      return static_cast<int>(i / 3);
    }
  }
  return -1;
}

// Of a date and a "00:00:00" that is `ahead` seconds ahead of UTC; nothing if
// there is no such day or time.  A second of 60 is there where UTC has leap
// seconds.
std::optional<std::int64_t> seconds_of(const Date& date, std::string_view time,
                                       int ahead) {
  const int hour = number_at(time, 0, 2);
  const int minute = number_at(time, 3, 2);
  const int second = number_at(time, 6, 2);
  if (date.month < 1 || date.month > 12 || date.day < 1 || hour > 23 ||
      minute > 59 || second > 60) {
    return std::nullopt;
  }
  const std::int64_t day = days_from(date);
  const Date next = {date.year + date.month / 12, date.month % 12 + 1, 1};
  const std::int64_t result =
      day * kDay + hour * 3600 + minute * 60 + second - ahead;
  if (day >= days_from(next) || (second == 60 && result % kDay != 0)) {
    return std::nullopt;
  }
  return result;
}

// Seconds by which a zone is ahead of UTC.
std::optional<int> parse_zone(std::string_view zone) {
  if (zone == "Z" || zone == "z" || zone == "UTC") return 0;
  if (zone.empty() || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  const std::string_view digits = zone.substr(1);
  if (!has_form(digits, "00:00") && !has_form(digits, "0000") &&
      !has_form(digits, "00")) {
    return std::nullopt;
  }
  const int hours = number_at(digits, 0, 2);
  const int minutes =
      digits.size() > 2 ? number_at(digits, digits.size() - 2, 2) : 0;
  if (hours > 23 || minutes > 59) return std::nullopt;
  const int ahead = hours * 3600 + minutes * 60;
  return zone[0] == '-' ? -ahead : ahead;
}

}  // namespace

std::string amz_date(std::int64_t unix_seconds) {
  // Before 1970 too, where division cuts towards zero.
  const std::int64_t rest = (unix_seconds % kDay + kDay) % kDay;
  const Date date = date_of((unix_seconds - rest) / kDay);
  const int second = static_cast<int>(rest);
  std::string text("yyyymmddThhmmssZ");
  const auto put = [&](std::size_t last, int count, int number) {
    for (; count > 0; --count, number /= 10) {
      text[last--] = static_cast<char>('0' + number % 10);
    }
  };
  put(3, 4, date.year);
  put(5, 2, date.month);
  put(7, 2, date.day);
  put(10, 2, second / 3600);
  put(12, 2, second / 60 % 60);
  put(14, 2, second % 60);
  return text;
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  if (!has_form(text, "aaa, 00 aaa 0000 00:00:00 GMT")) return std::nullopt;
  const Date date = {number_at(text, 12, 4), name_at(text, 8, kMonths) + 1,
                     number_at(text, 5, 2)};
  const auto result = seconds_of(date, text.substr(17), 0);
  if (!result) return result;
  // Whole weeks, because a remainder of days before 1970 would be negative.
  const std::int64_t weekday = (days_from(date) + 7 * kEraDays) % 7;
  if (weekday != name_at(text, 0, kWeekdays)) return std::nullopt;
  return result;
}

std::optional<std::int64_t> parse_iso8601(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00a00:00:00";
  if (!has_form(text.substr(0, kForm.size()), kForm)) return std::nullopt;
  if (text[10] != 'T' && text[10] != 't' && text[10] != ' ') {
    return std::nullopt;
  }
  std::string_view zone = text.substr(kForm.size());
  if (!zone.empty() && (zone[0] == '.' || zone[0] == ',')) {
    const std::size_t end = zone.find_first_not_of("0123456789", 1);
    if (end == 1 || end == zone.npos) return std::nullopt;
    zone.remove_prefix(end);
  }
  const auto ahead = parse_zone(zone);
  if (!ahead) return std::nullopt;
  const Date date = {number_at(text, 0, 4), number_at(text, 5, 2),
                     number_at(text, 8, 2)};
  return seconds_of(date, text.substr(11), *ahead);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
