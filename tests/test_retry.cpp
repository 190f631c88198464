// Whether a failed call is tried again, and when.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>
#include <vector>

#include "ddbmutex/dynamodb/retry.hpp"
#include "sigv4/backoff.hpp"

namespace {

using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Fault;
using ddbmutex::dynamodb::is_transient;
using ddbmutex::dynamodb::Retry;
using ddbmutex::dynamodb::RetryBudget;
using ddbmutex::sigv4::Backoff;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Urgency = Retry::Urgency;

constexpr Fault kPassing[] = {
    Fault::unreachable, Fault::disconnected,   Fault::timed_out,
    Fault::throttled,   Fault::server_failure, Fault::conflict,
    Fault::bad_answer,  Fault::skewed_time,
};
constexpr Fault kFinal[] = {
    Fault::no_keys,        Fault::bad_keys,        Fault::expired_keys,
    Fault::access_denied,  Fault::no_table,        Fault::bad_request,
    Fault::unknown_action, Fault::bad_certificate, Fault::table_in_use,
    Fault::wrong_key,
};

Answer failed(Fault fault, milliseconds retry_after = milliseconds(0)) {
  Answer answer;
  answer.fault = fault;
  answer.retry_after = retry_after;
  return answer;
}

void spend(RetryBudget& budget) {
  while (budget.tokens() > 0) budget.draw(Fault::unreachable);
}

struct Spread {
  nanoseconds shortest = nanoseconds::max();
  nanoseconds longest = nanoseconds::min();
  int below_half = 0;
};

// Of the delay after the failure number `attempt`, from 0, over 1000 runs.
Spread delays_at(int attempt, Fault fault) {
  Spread spread;
  std::vector<nanoseconds> all;
  for (int run = 0; run < 1000; ++run) {
    RetryBudget budget;
    Retry retry(budget, Urgency::urgent);
    nanoseconds delay(0);
    for (int i = 0; i <= attempt; ++i) delay = *retry.after(failed(fault));
    all.push_back(delay);
    spread.shortest = std::min(spread.shortest, delay);
    spread.longest = std::max(spread.longest, delay);
  }
  for (const nanoseconds delay : all) {
    if (delay < spread.longest / 2) ++spread.below_half;
  }
  return spread;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(retry_of_a_call)

BOOST_AUTO_TEST_CASE(passing_faults_are_tried_again_final_ones_never) {
  for (const Fault fault : kPassing) {
    RetryBudget budget;
    BOOST_TEST_CONTEXT(ddbmutex::dynamodb::name_of(fault)) {
      BOOST_TEST(is_transient(fault));
      BOOST_TEST(
          Retry(budget, Urgency::can_wait).after(failed(fault)).has_value());
    }
  }
  for (const Fault fault : kFinal) {
    RetryBudget budget;
    BOOST_TEST_CONTEXT(ddbmutex::dynamodb::name_of(fault)) {
      BOOST_TEST(!is_transient(fault));
      for (const Urgency urgency : {Urgency::can_wait, Urgency::urgent}) {
        BOOST_TEST(!Retry(budget, urgency)
                        .after(failed(fault, seconds(1)))
                        .has_value());
      }
      BOOST_TEST(budget.tokens() == 500);  // And cost nothing.
    }
  }
  for (const Fault fault :
       {Fault::none, Fault::condition_failed, Fault::cancelled}) {
    BOOST_TEST(!is_transient(fault));
  }
}

BOOST_AUTO_TEST_CASE(pause_doubles_up_to_the_longest_and_from_the_first_again) {
  const double least_share = 0, greatest_share = 1 - 0x1p-53;
  Backoff backoff;
  const Backoff::Limits limits{nanoseconds(10), nanoseconds(39), 0.5};
  for (const int bound : {10, 20, 39, 39}) {
    BOOST_TEST(backoff.next(limits, greatest_share).count() == bound);
  }
  BOOST_TEST(backoff.next(limits, least_share).count() == 19);
  backoff.reset();
  BOOST_TEST(backoff.next(limits, least_share).count() == 5);
  // The bound counts the failures, whatever the limits were then.
  const Backoff::Limits other{nanoseconds(100), nanoseconds(1000)};
  BOOST_TEST(backoff.next(other, greatest_share).count() == 200);
}

BOOST_AUTO_TEST_CASE(throttled_delay_doubles_from_1_s_to_5_s) {
  const seconds bounds[] = {seconds(1), seconds(2), seconds(4), seconds(5),
                            seconds(5)};
  for (int attempt = 0; attempt < 5; ++attempt) {
    BOOST_TEST_CONTEXT("attempt " << attempt) {
      const Spread spread = delays_at(attempt, Fault::throttled);
      const nanoseconds bound = bounds[attempt];
      BOOST_TEST((spread.longest <= bound));
      BOOST_TEST((spread.longest > bound * 9 / 10));
      BOOST_TEST((spread.shortest < bound / 10));
    }
  }
}

namespace {

// Held back because the budget is empty.
bool is_held_back(std::optional<nanoseconds> delay) {
  return delay && *delay >= milliseconds(2500) && *delay <= seconds(5);
}

}  // namespace

// At random, or all mutexes of a table would come back in step.
BOOST_AUTO_TEST_CASE(empty_budget_holds_back_what_waits_for_up_to_5_s) {
  RetryBudget budget;
  spend(budget);
  Retry retry(budget, Urgency::can_wait);
  nanoseconds shortest = seconds(5), longest(0);
  for (int i = 0; i < 200; ++i) {
    for (const Fault fault : {Fault::unreachable, Fault::throttled}) {
      const auto delay = retry.after(failed(fault));
      BOOST_TEST_REQUIRE(is_held_back(delay));
      shortest = std::min(shortest, *delay);
      longest = std::max(longest, *delay);
    }
  }
  BOOST_TEST((shortest < milliseconds(2750)));
  BOOST_TEST((longest > milliseconds(4750)));
}

// TransactionConflictException and its like: others want the same item.
BOOST_AUTO_TEST_CASE(contention_costs_nothing_and_is_not_held_back) {
  RetryBudget budget;
  for (int run = 0; run < 1000; ++run) {
    Retry retry(budget, Urgency::can_wait);
    const auto delay = retry.after(failed(Fault::conflict));
    BOOST_TEST_REQUIRE((delay && *delay <= milliseconds(25)));
  }
  BOOST_TEST(budget.tokens() == 500);
  spend(budget);
  Retry retry(budget, Urgency::can_wait);
  const auto delay = retry.after(failed(Fault::conflict));
  BOOST_TEST((delay && *delay <= milliseconds(25)));
  BOOST_TEST(!retry.held_back());
  // One that lasts is asked less and less often.
  const Spread tenth = delays_at(9, Fault::conflict);
  BOOST_TEST((tenth.longest <= seconds(5)));
  BOOST_TEST((tenth.longest > milliseconds(4500)));
}

BOOST_AUTO_TEST_CASE(empty_budget_never_holds_back_what_presses) {
  int first_below_cap = 0;
  for (int run = 0; run < 50; ++run) {
    RetryBudget budget;
    spend(budget);
    Retry retry(budget, Urgency::urgent);
    const auto delay = retry.after(failed(Fault::unreachable));
    BOOST_REQUIRE(delay.has_value());
    if (*delay <= milliseconds(25)) ++first_below_cap;
    BOOST_TEST(budget.tokens() == 0);
  }
  BOOST_TEST(first_below_cap == 50);
}

BOOST_AUTO_TEST_CASE(retry_after_is_waited_for_but_at_most_5_s_more) {
  for (int run = 0; run < 200; ++run) {
    RetryBudget budget;
    const auto delay = [&](milliseconds asked) {
      return *Retry(budget, Urgency::urgent)
                  .after(failed(Fault::server_failure, asked));
    };
    BOOST_TEST((delay(milliseconds(0)) <= milliseconds(25)));
    const nanoseconds tiny = delay(milliseconds(5));  // Or the jitter.
    BOOST_TEST((tiny >= milliseconds(5) && tiny <= milliseconds(25)));
    BOOST_TEST((delay(milliseconds(700)) == milliseconds(700)));
    BOOST_TEST((delay(seconds(5)) == seconds(5)));
    const nanoseconds long_one = delay(std::chrono::hours(1));
    BOOST_TEST((long_one >= seconds(5)));
    BOOST_TEST((long_one <= seconds(5) + milliseconds(25)));
  }
}

BOOST_AUTO_TEST_CASE(skewed_time_is_corrected_at_once_for_free_and_once) {
  RetryBudget budget;
  Retry retry(budget, Urgency::can_wait);
  BOOST_TEST((retry.after(failed(Fault::skewed_time)) == nanoseconds(0)));
  BOOST_TEST(budget.tokens() == 500);
  BOOST_TEST(!retry.after(failed(Fault::skewed_time)).has_value());
  // Other failures between the two change nothing.
  Retry other(budget, Urgency::can_wait);
  other.after(failed(Fault::skewed_time));
  other.after(failed(Fault::server_failure));
  BOOST_TEST(!other.after(failed(Fault::skewed_time)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
