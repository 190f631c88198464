#include "utc.hpp"

#include <algorithm>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::string_view kWeekdays = "ThuFriSatSunMonTueWed";  // From 1970.
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

// After so many days, 400 years, the calendar repeats.
constexpr int kEraDays = 146097;
constexpr std::int64_t kEpoch = 719468;  // 1 March 0000 to 1 January 1970.

struct Date {
  int year, month, day;  // Month and day from 1.
};

// Counts in years that begin on 1 March, so that the leap day is the last of
// its year and the months before it have lengths that a line describes.
// (libc's gmtime() and timegm() take a lock that a forked child may find taken
// for ever.)
std::int64_t days_from(const Date& date) {
  const int year = date.year - (date.month <= 2 ? 1 : 0) + 400;
  const int month = (date.month + 9) % 12;  // From March.
  return year * 365 + year / 4 - year / 100 + year / 400 +
         (153 * month + 2) / 5 + date.day - 1 - kEpoch - kEraDays;
}

// `days` from 400 years before 1 March 0000.
Date date_of(unsigned days) {
  const unsigned of_era = days % kEraDays;
  const unsigned years =
      (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const unsigned of_year = of_era - (365 * years + years / 4 - years / 100);
  const unsigned month = (5 * of_year + 2) / 153;  // From March.
  const unsigned year = years + 400 * (days / kEraDays) + month / 10;
  return {static_cast<int>(year) - 400, static_cast<int>((month + 2) % 12 + 1),
          static_cast<int>(of_year - (153 * month + 2) / 5 + 1)};
}

// Whether the text has digits where the form has '0', anything where it has
// 'a', and is the form everywhere else.
bool has_form(std::string_view text, std::string_view form) {
  return text.size() == form.size() &&
         std::equal(text.begin(), text.end(), form.begin(), [](char c, char f) {
           return f == 'a' || (f == '0' ? c >= '0' && c <= '9' : c == f);
         });
}

// Of two digits; more than any time or day has if those are none.
int two_at(std::string_view text, std::size_t from) {
  const auto tens = static_cast<unsigned char>(text[from] - '0');
  const auto ones = static_cast<unsigned char>(text[from + 1] - '0');
  return tens > 9 || ones > 9 ? 100 : 10 * tens + ones;
}

// Of four digits; negative if those are none.
int year_at(std::string_view text, std::size_t from) {
  const int century = two_at(text, from), year = two_at(text, from + 2);
  return century > 99 || year > 99 ? -1 : 100 * century + year;
}

int days_of(int month, int year) {
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (month == 2) return leap ? 29 : 28;
  return 30 + ((month + month / 8) & 1);  // July and August have 31.
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
  const int hour = two_at(time, 0);
  const int minute = two_at(time, 3);
  const int second = two_at(time, 6);
  if (date.year < 0 || date.month < 1 || date.month > 12 || date.day < 1 ||
      date.day > days_of(date.month, date.year) || hour > 23 || minute > 59 ||
      second > 60) {
    return std::nullopt;
  }
  const std::int64_t result =
      days_from(date) * kDay + hour * 3600 + minute * 60 + second - ahead;
  if (second == 60 && result % kDay != 0) return std::nullopt;
  return result;
}

// Seconds by which a zone is ahead of UTC.
std::optional<int> parse_zone(std::string_view zone) {
  if (zone == "Z"sv || zone == "z"sv || zone == "UTC"sv) return 0;
  if (zone.empty() || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  const std::string_view digits = zone.substr(1);
  if (!has_form(digits, "00:00") && !has_form(digits, "0000") &&
      !has_form(digits, "00")) {
    return std::nullopt;
  }
  const int hours = two_at(digits, 0);
  const int minutes = digits.size() > 2 ? two_at(digits, digits.size() - 2) : 0;
  if (hours > 23 || minutes > 59) return std::nullopt;
  const int ahead = hours * 3600 + minutes * 60;
  return zone[0] == '-' ? -ahead : ahead;
}

}  // namespace

std::string amz_date(std::int64_t unix_seconds) {
  std::string text(kAmzDateBytes, '\0');
  write_amz_date(unix_seconds, text.data());
  return text;
}

std::string iso_time(std::int64_t unix_seconds) {
  constexpr std::int64_t kLastSecond = 253402300799;  // Of the year 9999.
  std::string text = amz_date(std::min(unix_seconds, kLastSecond));
  for (const std::size_t at : {13u, 11u}) text.insert(at, 1, ':');
  for (const std::size_t at : {6u, 4u}) text.insert(at, 1, '-');
  return text;
}

void write_amz_date(std::int64_t unix_seconds, char* to) {
  const auto since =
      static_cast<std::uint64_t>(unix_seconds + (kEpoch + kEraDays) * kDay);
  const Date date = date_of(static_cast<unsigned>(since / kDay));
  const auto second = static_cast<unsigned>(since % kDay);
  std::copy_n("yyyymmddThhmmssZ", kAmzDateBytes, to);
  const auto put = [to](int at, unsigned pair) {
    to[at] = static_cast<char>('0' + pair / 10);
    to[at + 1] = static_cast<char>('0' + pair % 10);
  };
  const auto year = static_cast<unsigned>(date.year);
  put(0, year / 100);
  put(2, year % 100);
  put(4, static_cast<unsigned>(date.month));
  put(6, static_cast<unsigned>(date.day));
  put(9, second / 3600);
  put(11, second / 60 % 60);
  put(13, second % 60);
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  // Digits and names are looked at when they are read.
  if (text.size() != 29 || text.substr(3, 2) != ", "sv || text[7] != ' ' ||
      text[11] != ' ' || text[16] != ' ' || text[19] != ':' ||
      text[22] != ':' || text.substr(25) != " GMT"sv) {
    return std::nullopt;
  }
  const Date date = {year_at(text, 12), name_at(text, 8, kMonths) + 1,
                     two_at(text, 5)};
  const auto result = seconds_of(date, text.substr(17), 0);
  if (!result) return result;
  // Not of the next day, as which a leap second reads.  Whole weeks are added,
  // for division cuts towards zero.
  const std::int64_t day =
      (*result - two_at(text, 23) + 7 * kEraDays * kDay) / kDay;
  if (day % 7 != name_at(text, 0, kWeekdays)) return std::nullopt;
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
  const Date date = {year_at(text, 0), two_at(text, 5), two_at(text, 8)};
  return seconds_of(date, text.substr(11), *ahead);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
