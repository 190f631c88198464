// Dates as AWS writes them.
#include <time.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "sigv4/utc.hpp"

namespace {

using namespace ddbmutex;

// The same two forms by way of the C library, whose calendar is not ours.
tm utc(std::int64_t unix_seconds) {
  const time_t time = unix_seconds;
  tm parts = {};
  gmtime_r(&time, &parts);
  return parts;
}

std::string formatted(const char* form, std::int64_t unix_seconds) {
  const tm parts = utc(unix_seconds);
  char text[64];
  return std::string(text, strftime(text, sizeof text, form, &parts));
}

// Years below 1000 come from strftime without their zeros.
std::string expected_amz_date(std::int64_t unix_seconds) {
  char year[16];
  std::snprintf(year, sizeof year, "%04d", utc(unix_seconds).tm_year + 1900);
  return year + formatted("%m%dT%H%M%SZ", unix_seconds);
}

std::string http_date(std::int64_t unix_seconds) {
  char year[16];
  std::snprintf(year, sizeof year, "%04d", utc(unix_seconds).tm_year + 1900);
  return formatted("%a, %d %b ", unix_seconds) + year +
         formatted(" %H:%M:%S GMT", unix_seconds);
}

constexpr std::int64_t kYear0 = -62167219200;
constexpr std::int64_t kYear10000 = 253402300800;

}  // namespace

BOOST_AUTO_TEST_SUITE(utc_dates)

BOOST_AUTO_TEST_CASE(iso_time_is_written_with_separators_up_to_the_year_9999) {
  BOOST_TEST(sigv4::iso_time(0) == "1970-01-01T00:00:00Z");
  BOOST_TEST(sigv4::iso_time(1440938160) == "2015-08-30T12:36:00Z");
  BOOST_TEST(sigv4::iso_time(253402300799) == "9999-12-31T23:59:59Z");
  BOOST_TEST(sigv4::iso_time(253402300800) == "9999-12-31T23:59:59Z");
}

BOOST_AUTO_TEST_CASE(amz_date_is_written_without_separators) {
  const struct {
    std::int64_t unix_seconds;
    std::string_view text;
  } cases[] = {
      {0, "19700101T000000Z"},          {-1, "19691231T235959Z"},
      {1440938160, "20150830T123600Z"}, {1709208000, "20240229T120000Z"},
      {1704067199, "20231231T235959Z"}, {1704067200, "20240101T000000Z"},
      {951782400, "20000229T000000Z"},  {4107542399, "21000228T235959Z"},
      {4107542400, "21000301T000000Z"}, {2147483648, "20380119T031408Z"},
      {kYear0, "00000101T000000Z"},     {kYear10000 - 1, "99991231T235959Z"},
  };
  for (const auto& c : cases) {
    BOOST_TEST(sigv4::amz_date(c.unix_seconds) == c.text);
  }
}

BOOST_AUTO_TEST_CASE(http_date_of_rfc_9110_is_read) {
  const struct {
    std::string_view text;
    std::int64_t unix_seconds;
  } cases[] = {
      {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
      {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
      {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
      {"Thu, 29 Feb 2024 12:00:00 GMT", 1709208000},
      {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
      {"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
      {"Sat, 01 Jan 0000 00:00:00 GMT", kYear0},
      {"Fri, 31 Dec 9999 23:59:59 GMT", kYear10000 - 1},
      // The leap seconds of 2016 and 2012.
      {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
      {"Sat, 30 Jun 2012 23:59:60 GMT", 1341100800},
  };
  for (const auto& c : cases) {
    const auto seconds = sigv4::parse_http_date(c.text);
    BOOST_TEST_REQUIRE(seconds.has_value(), c.text);
    BOOST_TEST(*seconds == c.unix_seconds, c.text);
  }
}

BOOST_AUTO_TEST_CASE(http_date_that_no_clock_shows_is_refused) {
  for (const std::string_view text : {
           "Mon, 06 Nov 1994 08:49:37 GMT",  // It was a Sunday.
           "Thu, 29 Feb 2023 12:00:00 GMT",
           "Wed, 29 Feb 2023 12:00:00 GMT",
           "Mon, 29 Feb 2100 00:00:00 GMT",
           "Wed, 30 Feb 2000 00:00:00 GMT",
           "Sun, 31 Nov 1994 08:49:37 GMT",
           "Thu, 01 Dec 1994 24:00:00 GMT",
           "Sun, 00 Nov 1994 08:49:37 GMT",
           "Sun, 32 Nov 1994 08:49:37 GMT",
           "Mon, 31 Oct 1994 23:60:00 GMT",
           "Sun, 06 Nov 1994 08:49:60 GMT",
           "Sun, 06 Nov 1994 23:59:61 GMT",
           "Sun, 06 Nov 1994 23:60:60 GMT",
           "Sun, 06 Nov 1994 99:49:37 GMT",
       }) {
    BOOST_TEST(!sigv4::parse_http_date(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(text_of_another_form_is_refused) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {
           ""sv,
           " "sv,
           "GMT"sv,
           "19941106T084937Z"sv,
           "1994-11-06T08:49:37Z"sv,
           "Sunday, 06-Nov-94 08:49:37 GMT"sv,  // RFC 850.
           "Sun Nov  6 08:49:37 1994"sv,        // asctime().
           "Sun, 6 Nov 1994 08:49:37 GMT"sv,
           "Sun,  6 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06 Nov 1994 08:49:37 UTC"sv,
           "Sun, 06 Nov 1994 08:49:37 gmt"sv,
           "Sun, 06 Nov 1994 08:49:37 GMT "sv,
           " Sun, 06 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06 Nov 1994 08:49:37 GMT\0"sv,
           "Sun, 06 Nov 1994 08:49:37 GM\0"sv,
           "Sun, 06 Nov 1994 08:49:37 GM"sv,
           "sun, 06 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06 NOV 1994 08:49:37 GMT"sv,
           "Son, 06 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06 Nev 1994 08:49:37 GMT"sv,
           // A month or a day across two of the names.
           "unM, 06 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06 anF 1994 08:49:37 GMT"sv,
           // Would be right weekdays if the number were taken for -1.
           "Sat, 06 Nov -994 08:49:37 GMT"sv,
           "Sat, 06 Nov 199x 08:49:37 GMT"sv,
           "Sun, +6 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06 Nov -994 08:49:37 GMT"sv,
           "Sun, 06 Nov +994 08:49:37 GMT"sv,
           "Sun, 06 Nov 1994 -8:49:37 GMT"sv,
           "Sun, 06 Nov 1994 08:+9:37 GMT"sv,
           "Sun, 06 Nov 1994 08:49: 7 GMT"sv,
           "Sun, 06 Nov 1994 08.49.37 GMT"sv,
           "Sun; 06 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06-Nov-1994 08:49:37 GMT"sv,
           "Sun, 0x Nov 1994 08:49:37 GMT"sv,
           "Sun, 06\tNov 1994 08:49:37 GMT"sv,
           "Sun, 06 Nov 1994 08:49:3\xb7 GMT"sv,
           "Sun, 06 Nov \xd9\xa1\xd9\xa9 08:49:37 GMT"sv,  // Arabic digits.
           "\xff\xff\xff, 06 Nov 1994 08:49:37 GMT"sv,
           "Sun, 06 Nov 11994 08:49:37 GMT"sv,
           "Sun, 06 Nov 1994 08:49:37.5 GMT"sv,
       }) {
    BOOST_TEST(!sigv4::parse_http_date(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(changing_any_one_character_never_reads_as_the_same_time) {
  const std::string right = "Sun, 06 Nov 1994 08:49:37 GMT";
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (int c = 0; c < 256; ++c) {
      std::string text = right;
      text[i] = static_cast<char>(c);
      if (text == right) continue;
      const auto seconds = sigv4::parse_http_date(text);
      BOOST_TEST(
          (!seconds || (*seconds != 784111777 && http_date(*seconds) == text)));
    }
  }
}

// All years there are, in steps of seven days and 17 hours, so that weekdays,
// days and hours pass in every order.
BOOST_AUTO_TEST_CASE(dates_agree_with_the_c_library_and_survive_a_round_trip) {
  std::size_t wrong = 0;
  for (std::int64_t t = kYear0; t < kYear10000; t += 5 * 133333) {
    const std::string date = http_date(t);
    const auto parsed = sigv4::parse_http_date(date);
    if (parsed == t && sigv4::amz_date(t) == expected_amz_date(t)) continue;
    if (++wrong <= 3) BOOST_ERROR(t << ": " << date);
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(every_day_of_two_centuries_survives_a_round_trip) {
  std::size_t wrong = 0;
  for (std::int64_t t = -3155673600; t < 4102444800; t += 86399) {  // 1870...
    if (sigv4::parse_http_date(http_date(t)) != t) ++wrong;
    if (sigv4::amz_date(t) != expected_amz_date(t)) ++wrong;
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(iso_8601_time_with_a_zone_is_read) {
  const struct {
    std::string_view text;
    std::int64_t unix_seconds;
  } cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1969-12-31T23:59:59Z", -1},
      {"2024-02-29T12:00:00Z", 1709208000},
      {"2038-01-19T03:14:08z", 2147483648},
      {"2024-02-29t12:00:00Z", 1709208000},
      {"2024-02-29 12:00:00Z", 1709208000},
      {"2024-02-29T12:00:00UTC", 1709208000},
      {"2024-02-29T12:00:00+00:00", 1709208000},
      {"2024-02-29T12:00:00-00:00", 1709208000},
      {"2024-02-29T14:30:00+02:30", 1709208000},
      {"2024-02-29T14:30:00+0230", 1709208000},
      {"2024-02-29T14:00:00+02", 1709208000},
      {"2024-02-29T04:00:00-08:00", 1709208000},
      {"2024-03-01T11:59:00+23:59", 1709208000},
      {"2024-02-28T12:01:00-23:59", 1709208000},
      {"2024-02-29T12:00:00.5Z", 1709208000},
      {"2024-02-29T12:00:00.999999999Z", 1709208000},
      {"2024-02-29T12:00:00,25+00:00", 1709208000},
      {"2024-02-29T12:00:00.000-08:00", 1709236800},
      {"0000-01-01T00:00:00Z", kYear0},
      {"9999-12-31T23:59:59Z", kYear10000 - 1},
      // The leap second of 2016, here and in India.
      {"2016-12-31T23:59:60Z", 1483228800},
      {"2017-01-01T05:29:60.9+05:30", 1483228800},
  };
  for (const auto& c : cases) {
    const auto seconds = sigv4::parse_iso8601(c.text);
    BOOST_TEST_REQUIRE(seconds.has_value(), c.text);
    BOOST_TEST(*seconds == c.unix_seconds, c.text);
  }
}

BOOST_AUTO_TEST_CASE(text_that_is_no_iso_8601_time_with_a_zone_is_refused) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {
           ""sv,
           "Z"sv,
           "2024-02-29"sv,
           "2024-02-29T12:00Z"sv,
           "2024-02-29T12:00:00"sv,  // Whose time?
           "2024-02-29T12:00:00 "sv,
           "2024-02-29T12:00:00 Z"sv,
           "2024-02-29T12:00:00Zx"sv,
           "2024-02-29T12:00:00ZZ"sv,
           "2024-02-29T12:00:00Z\0"sv,
           " 2024-02-29T12:00:00Z"sv,
           "2024-02-29T12:00:00utc"sv,
           "2024-02-29T12:00:00GMT"sv,
           "2024-02-29T12:00:00.Z"sv,
           "2024-02-29T12:00:00."sv,
           "2024-02-29T12:00:00.5"sv,
           "2024-02-29T12:00:00.5.5Z"sv,
           "2024-02-29T12:00:00.-5Z"sv,
           "2024-02-29T12:00:00+"sv,
           "2024-02-29T12:00:00+1"sv,
           "2024-02-29T12:00:00+1:00"sv,
           "2024-02-29T12:00:00+100"sv,
           "2024-02-29T12:00:00+01:0"sv,
           "2024-02-29T12:00:00+01:000"sv,
           "2024-02-29T12:00:00+01:"sv,
           "2024-02-29T12:00:00+24:00"sv,
           "2024-02-29T12:00:00+00:60"sv,
           "2024-02-29T12:00:00*01:00"sv,
           "2023-02-29T12:00:00Z"sv,
           "2100-02-29T12:00:00Z"sv,
           "2024-00-01T12:00:00Z"sv,
           "2024-13-01T12:00:00Z"sv,
           "2024-04-31T12:00:00Z"sv,
           "2024-04-00T12:00:00Z"sv,
           "2024-04-01T24:00:00Z"sv,
           "2024-04-01T12:60:00Z"sv,
           "2024-04-01T12:00:60Z"sv,
           "2016-12-31T23:59:61Z"sv,
           "2016-12-31T23:59:60+01:00"sv,
           "2024-4-01T12:00:00Z"sv,
           "+2024-04-01T12:00:00Z"sv,
           "-024-04-01T12:00:00Z"sv,
           "12024-04-01T12:00:00Z"sv,
           "2024/04/01T12:00:00Z"sv,
           "2024-04-01T12.00.00Z"sv,
           "2024-04-01X12:00:00Z"sv,
           "2024-04-01T 2:00:00Z"sv,
           "2024-04-01T-2:00:00Z"sv,
           "20240401T120000Z"sv,
           "1709208000"sv,
           "Thu, 29 Feb 2024 12:00:00 GMT"sv,
           "\xff\xff\xff\xff-02-29T12:00:00Z"sv,
       }) {
    BOOST_TEST(!sigv4::parse_iso8601(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(iso_8601_times_agree_with_the_c_library_in_any_zone) {
  std::size_t wrong = 0;
  int offset = 0;  // In minutes.
  for (std::int64_t t = kYear0 + 86400; t < kYear10000 - 86400;
       t += 11 * 133333) {
    offset = (offset + 37) % 1440;
    for (const int sign : {1, -1}) {
      char year[16], zone[16];
      std::snprintf(year, sizeof year, "%04d",
                    utc(t + sign * offset * 60).tm_year + 1900);
      std::snprintf(zone, sizeof zone, "%c%02d:%02d", sign > 0 ? '+' : '-',
                    offset / 60, offset % 60);
      const std::string text =
          year + formatted("-%m-%dT%H:%M:%S", t + sign * offset * 60) + zone;
      if (sigv4::parse_iso8601(text) == t) continue;
      if (++wrong <= 3) BOOST_ERROR(t << ": " << text);
    }
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
