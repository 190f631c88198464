// DynamoDB's clock as known from the Dates of its answers.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <optional>

#include "ddbmutex/dynamodb/clock.hpp"

namespace {

using ddbmutex::BootTime;
using ddbmutex::dynamodb::believable_date;
using ddbmutex::dynamodb::ServiceClock;
using ddbmutex::dynamodb::ServiceTime;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

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
