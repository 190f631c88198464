// Clocks: DynamoDB's, as known from the Dates of its answers; the one that all
// leases are counted by; deadlines that pass while the machine is suspended;
// and dates as AWS writes them.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/clock.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/http.hpp"
#include "sigv4/utc.hpp"
#include "sigv4/waiting.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/suspended.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using dynamodb::believable_date;
using dynamodb::ServiceClock;
using dynamodb::ServiceTime;
using sigv4::Waker;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// === DynamoDB's clock ========================================================

namespace {

constexpr nanoseconds kNano(1);
// By which front ends may differ, as ddbmutex/README.md says.
constexpr nanoseconds kAgreement = milliseconds(250);
// A Date of these tests, and a time on the boot clock when it might come.
constexpr ServiceTime kDate = seconds(1700000000);
constexpr BootTime kBoot{seconds(1000)};

// What 1 % of a boot clock's rate may come to in `age`: 1 part in 99, and 1 ns.
nanoseconds drift(nanoseconds age) { return age / 99 + kNano; }

// `date` after kDate, sent and received after kBoot.
void hear(ServiceClock& clock, nanoseconds sent, nanoseconds received,
          nanoseconds date) {
  clock.receive(kBoot + sent, kBoot + received, kDate + date);
}

// What the answers tell: what is taken for known is wider.
nanoseconds earliest(const ServiceClock& clock, nanoseconds after_boot) {
  return clock.earliest(kBoot + after_boot) + kAgreement - kDate;
}

nanoseconds latest(const ServiceClock& clock, nanoseconds after_boot) {
  return clock.latest(kBoot + after_boot) - kAgreement - kDate;
}

// Boost.Test prints counts, not durations.
#define CHECK_NS(a, b) BOOST_TEST((a).count() == (b).count())

}  // namespace

BOOST_AUTO_TEST_SUITE(service_clock)

BOOST_AUTO_TEST_CASE(answers_without_date_make_it_silent_until_a_date_comes) {
  ServiceClock clock;
  clock.receive(kBoot, kBoot + seconds(1), std::nullopt);
  BOOST_TEST(clock.answers_lack_date());
  BOOST_TEST(!clock.known());
  BOOST_TEST((clock.when_latest_is(kDate) == BootTime::max()));
  hear(clock, seconds(2), seconds(3), seconds(3));
  BOOST_TEST(!clock.answers_lack_date());
  BOOST_TEST(clock.known());
  const nanoseconds before = latest(clock, seconds(4));
  clock.receive(kBoot + seconds(3), kBoot + seconds(4), std::nullopt);
  BOOST_TEST(clock.known());
  BOOST_TEST(!clock.answers_lack_date());
  CHECK_NS(latest(clock, seconds(4)), before);
}

BOOST_AUTO_TEST_CASE(one_date_bounds_are_exact_when_learnt_and_by_their_age) {
  ServiceClock clock;
  hear(clock, milliseconds(0), milliseconds(250), seconds(0));
  CHECK_NS(earliest(clock, milliseconds(250)), -kNano);
  CHECK_NS(latest(clock, milliseconds(0)), seconds(1) + kNano);
  for (const nanoseconds age :
       {nanoseconds(98), nanoseconds(99), nanoseconds(1000000007),
        nanoseconds(seconds(99)), nanoseconds(std::chrono::hours(1000))}) {
    CHECK_NS(earliest(clock, milliseconds(250) + age), age - drift(age));
    CHECK_NS(latest(clock, age), seconds(1) + age + drift(age));
  }
}

BOOST_AUTO_TEST_CASE(bounds_are_a_quarter_of_a_second_wider_than_answers_tell) {
  ServiceClock clock;
  clock.receive(kBoot, kBoot, kDate);
  CHECK_NS(clock.earliest(kBoot) - kDate, -milliseconds(250) - kNano);
  CHECK_NS(clock.latest(kBoot) - kDate, milliseconds(1250) + kNano);
}

// --- Contradictions ---------------------------------------------------------

namespace {

// Heard at 0 s: [0, 1) and 100 ms of round trip.  Stopped for 100 s; heard at
// 10 s: [100, 101).  In doubt from there.
ServiceClock stopped_for_100_s() {
  ServiceClock clock;
  hear(clock, milliseconds(0), milliseconds(100), seconds(0));
  hear(clock, milliseconds(10000), milliseconds(10100), seconds(110));
  return clock;
}

// The bounds, at 30 s, of the story told first and of the one told next.
const nanoseconds kAt = seconds(30);
nanoseconds first_low() {
  return kAt - milliseconds(100) - drift(kAt - milliseconds(100));
}
nanoseconds first_high() { return kAt + seconds(1) + drift(kAt); }
nanoseconds next_high() {
  return kAt + seconds(101) + drift(milliseconds(20000));
}

}  // namespace

BOOST_AUTO_TEST_CASE(contradiction_by_an_earlier_date_takes_in_both_too) {
  ServiceClock clock;
  hear(clock, milliseconds(0), milliseconds(100), seconds(0));
  hear(clock, milliseconds(10000), milliseconds(10100), seconds(-3600));
  BOOST_TEST(clock.in_doubt());
  CHECK_NS(latest(clock, kAt), first_high());
  CHECK_NS(earliest(clock, kAt), kAt - seconds(3610) - milliseconds(100) -
                                     drift(milliseconds(19900)));
}

BOOST_AUTO_TEST_CASE(intervals_that_just_touch_do_not_contradict) {
  for (const int gap : {0, 1}) {
    ServiceClock clock;
    hear(clock, seconds(0), seconds(0), seconds(0));  // Up to 1 s.
    // 99 s later that is 2 s and 1 ns; the low of this one lies 1 ns lower.
    clock.receive(kBoot + seconds(99), kBoot + seconds(99),
                  kDate + seconds(101) + kAgreement + 2 * kNano + gap * kNano);
    BOOST_TEST(clock.in_doubt() == (gap == 1));

    ServiceClock back;  // And the same with the second one below.
    hear(back, seconds(0), seconds(0), seconds(0));  // From 0 s.
    back.receive(kBoot + seconds(99), kBoot + seconds(99),
                 kDate + seconds(97) - kAgreement - 2 * kNano - gap * kNano);
    BOOST_TEST(back.in_doubt() == (gap == 1));
  }
}

BOOST_AUTO_TEST_CASE(
    doubt_earlier_question_fits_the_older_and_settles_nothing) {
  ServiceClock clock = stopped_for_100_s();
  // Under way when the machine was stopped, heard after the newer story.
  hear(clock, milliseconds(9000), milliseconds(10200), seconds(9));
  BOOST_TEST(clock.in_doubt());
  CHECK_NS(earliest(clock, kAt), first_low());
  CHECK_NS(latest(clock, kAt), next_high());
}

BOOST_AUTO_TEST_CASE(doubt_settled_earlier_question_still_narrows_nothing) {
  ServiceClock clock = stopped_for_100_s();
  hear(clock, kAt, kAt, seconds(130));
  const nanoseconds before = latest(clock, seconds(40));
  // Its high is 100.4 s, from when the boot clock still ran.
  hear(clock, milliseconds(9900), milliseconds(40000), milliseconds(109300));
  BOOST_TEST(!clock.in_doubt());
  CHECK_NS(latest(clock, seconds(40)), before);
}

BOOST_AUTO_TEST_CASE(doubt_third_story_takes_in_all_three) {
  ServiceClock clock = stopped_for_100_s();
  hear(clock, seconds(20), seconds(20), seconds(5020));  // [5000, 5001)
  BOOST_TEST(clock.in_doubt());
  CHECK_NS(earliest(clock, kAt), first_low());
  CHECK_NS(latest(clock, kAt), kAt + seconds(5001) + drift(seconds(10)));

  ServiceClock third = clock;  // The next answer fits the third.
  hear(third, kAt, kAt, seconds(5030));
  BOOST_TEST(!third.in_doubt());
  CHECK_NS(earliest(third, kAt), seconds(5030) - kNano);

  hear(clock, kAt, kAt, seconds(130));  // It fits the second.
  BOOST_TEST(!clock.in_doubt());
  CHECK_NS(earliest(clock, kAt), seconds(130) - kNano);
  CHECK_NS(latest(clock, kAt), seconds(131) + kNano);
}

// --- Dates ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(only_a_whole_date_of_2012_to_2089_is_believed) {
  struct Case {
    const char* text;
    std::int64_t expected;  // -1: not to be believed.
  };
  const Case cases[] = {
      {"Tue, 14 Nov 2023 22:13:20 GMT", 1700000000},
      {"Sun, 01 Jan 2012 00:00:00 GMT", 1325376000},
      {"Sat, 31 Dec 2011 23:59:59 GMT", -1},
      {"Sat, 31 Dec 2089 23:59:59 GMT", 3786911999},
      {"Sun, 01 Jan 2090 00:00:00 GMT", -1},
      {"Sat, 31 Dec 2089 23:59:60 GMT", -1},  // The second after it.
      {"Thu, 01 Jan 1970 00:00:00 GMT", -1},
      {"Fri, 31 Dec 9999 23:59:59 GMT", -1},
      {"Wed, 14 Nov 2023 22:13:20 GMT", -1},  // It was a Tuesday.
      {"Tue, 14 Nov 2023 22:13:20", -1},
      {"Tue, 14 Nov 2023 22:13:20 CET", -1},
      {"Tue, 14 Nov 2023 24:00:00 GMT", -1},
      {"Tuesday, 14-Nov-23 22:13:20 GMT", -1},
      {"Tue Nov 14 22:13:20 2023", -1},
      {"Tue, 30 Feb 2023 22:13:20 GMT", -1},
      {"2023-11-14T22:13:20Z", -1},
      {"1700000000", -1},
      {"", -1},
      {"garbage", -1},
  };
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT("Date: " << c.text) {
      const auto date = believable_date(c.text);
      const seconds expected(c.expected);
      BOOST_TEST((date.has_value() == (c.expected >= 0)));
      if (date) BOOST_TEST((*date == expected));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// === The clock that all leases are counted by ================================

namespace {

constexpr int kNotAllowed = 77;
constexpr int kNewTime = 0x80;  // CLONE_NEWTIME, which glibc 2.36 has not.

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

seconds ahead_of_monotonic() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::chrono::duration_cast<seconds>(
      BootClock::now().time_since_epoch() - seconds(t.tv_sec));
}

// In a child: one more, in a time namespace as after an hour of suspend.
int after_an_hour_of_suspend(seconds before) {
  if (unshare(kNewTime) != 0 && unshare(CLONE_NEWUSER | kNewTime) != 0) {
    return kNotAllowed;
  }
  constexpr char kOffset[] = "boottime 3600 0";
  const int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  if (write(fd, kOffset, sizeof kOffset - 1) < 0) return kNotAllowed;
  const pid_t child = fork();
  if (child > 0) return status_of(child);
  const seconds gone = ahead_of_monotonic() - before;
  _exit(gone >= seconds(3590) && gone <= seconds(3610) ? 0 : 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(boot_clock)

BOOST_AUTO_TEST_CASE(an_hour_of_suspend_is_counted) {
  const seconds before = ahead_of_monotonic();
  const pid_t child = fork();
  if (child == 0) _exit(after_an_hour_of_suspend(before));
  const int status = status_of(child);
  if (status == kNotAllowed) {
    BOOST_TEST_MESSAGE("not checked: no time namespace to be had here");
  } else {
    BOOST_TEST(status == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// === While the machine is suspended ==========================================

// Whoever waits for a deadline that passes meanwhile sees it at once. poll(2)'s
// own timeout does not pass then.

namespace {

// How a call ends that begins before the machine is suspended.
bool ends_suspended(const std::function<void()>& call) {
  Aside aside(call);
  bool ended = false;
  {
    const Suspended suspended;
    ended = aside.ends();
  }
  return ended && aside.thrown() == "none";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(suspended_machine)

BOOST_AUTO_TEST_CASE(wait_for_a_deadline_ends_with_and_without_exchanges) {
  ScriptedServer server;
  server.script(hanging());
  sigv4::Exchange exchange({});
  exchange.start(server.url(), BootClock::now());
  Waker waker;
  sigv4::drive(exchange, BootClock::now() + 1s, &waker);
  BOOST_TEST(ends_suspended([&] {
    pause(50ms);  // It is suspended by then, or the wait is as any.
    sigv4::drive(exchange, BootClock::now() + 500ms, &waker);
    sigv4::wait_until(BootClock::now() + 500ms, &waker);
  }));
  BOOST_TEST(!waker.woken());
}

// The notifying thread.
BOOST_AUTO_TEST_CASE(lease_that_ended_is_told) {
  ScriptedServer server;
  ddbmutex::Options options = on_table(table_at(server), 1s);
  options.auto_renew = false;
  Told told;
  options.on_lost = [&](ddbmutex::Loss why) { told.add(name_of(why)); };
  const Suspended suspended;
  DdbMutex mutex("x", options);
  mutex.lock();
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
}

BOOST_AUTO_TEST_CASE(waiter_in_line_gives_up_in_time) {
  ScriptedServer server;
  DdbMutex mutex("x", on_table(table_at(server)));
  mutex.lock();
  std::atomic<bool> got{true};
  BOOST_TEST(ends_suspended([&] { got = mutex.try_lock_for(500ms); }));
  BOOST_TEST(!got.load());
}

BOOST_AUTO_TEST_SUITE_END()

// === Dates as AWS writes them ================================================

namespace {

// The same two forms, made by the C library, which has a calendar of its own.
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

std::string expected_http_date(std::int64_t unix_seconds) {
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
    const std::string date = expected_http_date(t);
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
