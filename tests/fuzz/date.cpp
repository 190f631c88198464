// sigv4/utc and believable_date: the Date of an answer, by which clocks are
// set.  Checked against the C library's calendar, both ways.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "ddbmutex/dynamodb/clock.hpp"
#include "sigv4/utc.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;

constexpr std::int64_t kYear0 = -62167219200;
constexpr std::int64_t kYear10000 = 253402300800;

tm calendar(std::int64_t unix_seconds) {
  const time_t seconds = unix_seconds;
  tm broken_down = {};
  gmtime_r(&seconds, &broken_down);
  return broken_down;
}

// As RFC 9110 has it; strftime() would ask the locale.
std::string http_date(const tm& t) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed",
                                   "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[t.tm_wday], t.tm_mday, kMonths[t.tm_mon],
                t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
  return text;
}

std::string amz_date(const tm& t) {
  char text[64];
  std::snprintf(text, sizeof text, "%04d%02d%02dT%02d%02d%02dZ",
                t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min,
                t.tm_sec);
  return text;
}

void check_believable(Bytes text, std::int64_t unix_seconds) {
  const auto believed = dynamodb::believable_date(text);
  const bool in_bounds = unix_seconds >= 1325376000 &&  // 2012
                         unix_seconds < 3786912000;     // 2090
  claim(believed.has_value() == in_bounds,
        "a Date is believed exactly within its bounds");
  claim(!believed || *believed == std::chrono::seconds(unix_seconds),
        "a Date that is believed is the time it names");
}

void check_text(Bytes text) {
  const auto time = sigv4::parse_http_date(text);
  if (!time) {
    claim(!dynamodb::believable_date(text), "what is no Date is not believed");
    return;
  }
  claim(*time >= kYear0 && *time <= kYear10000, "a year has four digits");
  // The one text that is not what its time reads as again.
  if (text.substr(17, 8) == "23:59:60") {
    claim(*time % 86400 == 0, "a leap second is the second after it");
  } else {
    claim(http_date(calendar(*time)) == text,
          "a Date that is accepted reads the same when written again");
  }
  check_believable(text, *time);
}

// Any time there is can be written and read.
void check_time(Bytes text) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, text.data(), std::min(sizeof bits, text.size()));
  constexpr auto kRange = static_cast<std::uint64_t>(kYear10000 - kYear0);
  const std::int64_t time = kYear0 + static_cast<std::int64_t>(bits % kRange);
  const tm expected = calendar(time);
  claim(sigv4::amz_date(time) == amz_date(expected),
        "a signature's date is that of the C library");
  const std::string written = http_date(expected);
  claim(sigv4::parse_http_date(written) == time, "any Date can be read");
  check_believable(written, time);
}

}  // namespace

void date(Bytes bytes) {
  check_text(bytes);
  check_time(bytes);
}

}  // namespace fuzz
}  // namespace tests
