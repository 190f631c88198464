// Dates as AWS writes them.
#include <time.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdio>
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

BOOST_AUTO_TEST_CASE(text_of_another_form_is_refused) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, "Sunday, 06-Nov-94 08:49:37 GMT"sv, "Sun Nov  6 08:49:37 1994"sv,
        "Sun, 6 Nov 1994 08:49:37 GMT"sv, "Sun, 06 Nov 1994 08:49:37 gmt"sv,
        "Sun, 06 Nov 1994 08:49:37 GMT "sv, "Sun, 06 Nov 1994 08:49:37 GMT\0"sv,
        "Sun, 06 Nov 1994 08:49:37 GM"sv, "unM, 06 Nov 1994 08:49:37 GMT"sv,
        "Sat, 06 Nov -994 08:49:37 GMT"sv, "Sun, +6 Nov 1994 08:49:37 GMT"sv,
        "Sun, 06 Nov 1994 -8:49:37 GMT"sv, "Sun, 06-Nov-1994 08:49:37 GMT"sv,
        "Sun, 06 Nov \xd9\xa1\xd9\xa9 08:49:37 GMT"sv,
        "\xff\xff\xff, 06 Nov 1994 08:49:37 GMT"sv,
        "Sun, 06 Nov 1994 08:49:37.5 GMT"sv}) {
    BOOST_TEST(!sigv4::parse_http_date(text).has_value(), text);
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

BOOST_AUTO_TEST_CASE(iso_8601_time_with_a_zone_is_read) {
  const struct {
    std::string_view text;
    std::int64_t unix_seconds;
  } cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1969-12-31T23:59:59Z", -1},
      {"2024-02-29T12:00:00Z", 1709208000},
      {"2038-01-19T03:14:08z", 2147483648},
      {"2024-02-29 12:00:00Z", 1709208000},
      {"2024-02-29T12:00:00UTC", 1709208000},
      {"2024-02-29T12:00:00+00:00", 1709208000},
      {"2024-02-29T14:30:00+02:30", 1709208000},
      {"2024-02-29T14:30:00+0230", 1709208000},
      {"2024-02-29T04:00:00-08:00", 1709208000},
      {"2024-03-01T11:59:00+23:59", 1709208000},
      {"2024-02-29T12:00:00.999999999Z", 1709208000},
      {"2024-02-29T12:00:00,25+00:00", 1709208000},
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
  constexpr const char* kTexts[] = {"",
                                    "2024-02-29",
                                    "2024-02-29T12:00Z",
                                    "2024-02-29T12:00:00",
                                    "2024-02-29T12:00:00 Z",
                                    "2024-02-29T12:00:00ZZ",
                                    " 2024-02-29T12:00:00Z",
                                    "2024-02-29T12:00:00utc",
                                    "2024-02-29T12:00:00.Z",
                                    "2024-02-29T12:00:00.5",
                                    "2024-02-29T12:00:00.-5Z",
                                    "2024-02-29T12:00:00+1",
                                    "2024-02-29T12:00:00+100",
                                    "2024-02-29T12:00:00+01:000",
                                    "2024-02-29T12:00:00+24:00",
                                    "2024-02-29T12:00:00+00:60",
                                    "2023-02-29T12:00:00Z",
                                    "2024-13-01T12:00:00Z",
                                    "2024-04-31T12:00:00Z",
                                    "2024-04-01T24:00:00Z",
                                    "2024-04-01T12:00:60Z",
                                    "2016-12-31T23:59:60+01:00",
                                    "2024-4-01T12:00:00Z",
                                    "+2024-04-01T12:00:00Z",
                                    "2024/04/01T12:00:00Z",
                                    "2024-04-01X12:00:00Z",
                                    "2024-04-01T 2:00:00Z",
                                    "20240401T120000Z",
                                    "\xff\xff\xff\xff-02-29T12:00:00Z"};
  for (const char* text : kTexts) {
    BOOST_TEST(!sigv4::parse_iso8601(text).has_value(), text);
  }
  BOOST_TEST(!sigv4::parse_iso8601("2024-02-29T12:00:00Z\0"sv).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
