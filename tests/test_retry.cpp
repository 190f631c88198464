// Whether a failed call is tried again, and when.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "dynamodb/retry.hpp"

namespace {

using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Fault;
using ddbmutex::dynamodb::is_passing;
using ddbmutex::dynamodb::Retry;
using ddbmutex::dynamodb::RetryBudget;
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
    Retry retry(budget, Urgency::presses);
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

BOOST_AUTO_TEST_SUITE(budget_for_retries)

BOOST_AUTO_TEST_CASE(new_budget_has_500_tokens) {
  BOOST_TEST(RetryBudget().tokens() == 500);
}

BOOST_AUTO_TEST_CASE(retry_costs_14_and_of_throttling_5) {
  for (const Fault fault : kPassing) {
    RetryBudget budget;
    BOOST_TEST(budget.draw(fault));
    BOOST_TEST(budget.tokens() == (fault == Fault::throttled ? 495 : 486));
  }
}

BOOST_AUTO_TEST_CASE(budget_short_of_the_cost_gives_what_it_has_and_refuses) {
  RetryBudget budget;
  for (int i = 0; i < 35; ++i) BOOST_TEST(budget.draw(Fault::timed_out));
  BOOST_TEST(budget.tokens() == 10);
  BOOST_TEST(!budget.draw(Fault::timed_out));
  BOOST_TEST(budget.tokens() == 0);
  BOOST_TEST(!budget.draw(Fault::throttled));
  BOOST_TEST(budget.tokens() == 0);
}

BOOST_AUTO_TEST_CASE(exact_cost_is_enough) {
  RetryBudget budget;
  for (int i = 0; i < 100; ++i) BOOST_TEST(budget.draw(Fault::throttled));
  BOOST_TEST(budget.tokens() == 0);
}

BOOST_AUTO_TEST_CASE(success_gives_one_token_back_up_to_500) {
  RetryBudget budget;
  budget.success();
  BOOST_TEST(budget.tokens() == 500);
  budget.draw(Fault::throttled);
  budget.success();
  BOOST_TEST(budget.tokens() == 496);
  for (int i = 0; i < 10; ++i) budget.success();
  BOOST_TEST(budget.tokens() == 500);
}

BOOST_AUTO_TEST_CASE(jitter_is_even_over_all_of_its_range) {
  RetryBudget budget;
  constexpr int kDraws = 100000;
  int tenths[10] = {};
  for (int i = 0; i < kDraws; ++i) {
    const nanoseconds delay = budget.jitter(seconds(5));
    BOOST_REQUIRE((delay >= nanoseconds(0) && delay <= seconds(5)));
    ++tenths[std::min<nanoseconds::rep>(delay / milliseconds(500), 9)];
  }
  for (const int count : tenths) {
    BOOST_TEST(count > kDraws / 10 - 600);  // 6 standard deviations.
    BOOST_TEST(count < kDraws / 10 + 600);
  }
  BOOST_TEST(budget.jitter(nanoseconds(0)).count() == 0);
  bool seen[2] = {};  // Both ends of the range are in it.
  for (int i = 0; i < 100; ++i) seen[budget.jitter(nanoseconds(1)).count()] = 1;
  BOOST_TEST((seen[0] && seen[1]));
}

BOOST_AUTO_TEST_CASE(budgets_of_two_clients_do_not_jitter_in_step) {
  RetryBudget one;
  RetryBudget other;
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    if (one.jitter(seconds(5)) == other.jitter(seconds(5))) ++equal;
  }
  BOOST_TEST(equal < 3);
}

BOOST_AUTO_TEST_CASE(threads_draw_no_token_twice) {
  RetryBudget budget;
  std::vector<int> granted(8, 0);
  std::vector<std::thread> threads;
  for (int& count : granted) {
    threads.emplace_back([&budget, &count] {
      for (int i = 0; i < 100; ++i) {
        if (budget.draw(Fault::throttled)) ++count;
        budget.jitter(seconds(1));
      }
    });
  }
  int sum = 0;
  for (std::thread& thread : threads) thread.join();
  for (const int count : granted) sum += count;
  BOOST_TEST(sum == 100);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(retry_of_a_call)

BOOST_AUTO_TEST_CASE(passing_faults_are_tried_again_final_ones_never) {
  for (const Fault fault : kPassing) {
    RetryBudget budget;
    BOOST_TEST_CONTEXT(ddbmutex::dynamodb::name_of(fault)) {
      BOOST_TEST(is_passing(fault));
      BOOST_TEST(
          Retry(budget, Urgency::waits).after(failed(fault)).has_value());
    }
  }
  for (const Fault fault : kFinal) {
    RetryBudget budget;
    BOOST_TEST_CONTEXT(ddbmutex::dynamodb::name_of(fault)) {
      BOOST_TEST(!is_passing(fault));
      for (const Urgency urgency : {Urgency::waits, Urgency::presses}) {
        BOOST_TEST(!Retry(budget, urgency)
                        .after(failed(fault, seconds(1)))
                        .has_value());
      }
      BOOST_TEST(budget.tokens() == 500);  // And cost nothing.
    }
  }
  for (const Fault fault :
       {Fault::none, Fault::condition_failed, Fault::cancelled}) {
    BOOST_TEST(!is_passing(fault));
  }
}

BOOST_AUTO_TEST_CASE(delay_doubles_from_25_ms_to_5_s_all_of_it_jitter) {
  const milliseconds bounds[] = {milliseconds(25),   milliseconds(50),
                                 milliseconds(100),  milliseconds(200),
                                 milliseconds(400),  milliseconds(800),
                                 milliseconds(1600), milliseconds(3200),
                                 milliseconds(5000), milliseconds(5000)};
  for (int attempt = 0; attempt < 10; ++attempt) {
    BOOST_TEST_CONTEXT("attempt " << attempt) {
      const Spread spread = delays_at(attempt, Fault::server_failure);
      const nanoseconds bound = bounds[attempt];
      BOOST_TEST((spread.longest <= bound));
      BOOST_TEST((spread.longest > bound * 9 / 10));
      BOOST_TEST((spread.shortest < bound / 10));
      BOOST_TEST(spread.below_half > 400);
      BOOST_TEST(spread.below_half < 600);
    }
  }
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

BOOST_AUTO_TEST_CASE(many_failures_never_pass_the_cap) {
  RetryBudget budget;
  Retry retry(budget, Urgency::presses);
  for (int i = 0; i < 1000; ++i) {
    const auto delay = retry.after(
        failed(i % 2 == 0 ? Fault::disconnected : Fault::throttled));
    BOOST_REQUIRE(delay.has_value());
    BOOST_REQUIRE((*delay >= nanoseconds(0) && *delay <= seconds(5)));
  }
}

BOOST_AUTO_TEST_CASE(success_starts_the_delays_anew_and_refunds) {
  RetryBudget budget;
  Retry retry(budget, Urgency::waits);
  for (int run = 0; run < 10; ++run) {
    retry.after(failed(Fault::server_failure));
    const int before = budget.tokens();
    retry.success();
    BOOST_TEST(budget.tokens() == before + 1);
    const auto delay = retry.after(failed(Fault::server_failure));
    BOOST_REQUIRE(delay.has_value());
    BOOST_TEST((*delay <= milliseconds(25)));
    retry.success();
  }
}

BOOST_AUTO_TEST_CASE(empty_budget_holds_back_what_waits_for_5_s) {
  RetryBudget budget;
  spend(budget);
  Retry retry(budget, Urgency::waits);
  for (int i = 0; i < 20; ++i) {
    for (const Fault fault : {Fault::unreachable, Fault::throttled}) {
      const auto delay = retry.after(failed(fault));
      BOOST_REQUIRE(delay.has_value());
      BOOST_TEST((*delay == seconds(5)));
    }
  }
}

BOOST_AUTO_TEST_CASE(empty_budget_never_holds_back_what_presses) {
  int first_below_cap = 0;
  for (int run = 0; run < 50; ++run) {
    RetryBudget budget;
    spend(budget);
    Retry retry(budget, Urgency::presses);
    const auto delay = retry.after(failed(Fault::unreachable));
    BOOST_REQUIRE(delay.has_value());
    if (*delay <= milliseconds(25)) ++first_below_cap;
    BOOST_TEST(budget.tokens() == 0);
  }
  BOOST_TEST(first_below_cap == 50);
}

BOOST_AUTO_TEST_CASE(what_presses_draws_on_the_budget_of_what_waits) {
  RetryBudget budget;
  Retry renewal(budget, Urgency::presses);
  for (int i = 0; i < 36; ++i) renewal.after(failed(Fault::timed_out));
  BOOST_TEST(budget.tokens() == 0);
  Retry poll(budget, Urgency::waits);
  BOOST_TEST((poll.after(failed(Fault::timed_out)) == seconds(5)));
}

BOOST_AUTO_TEST_CASE(budget_refilled_lets_what_waits_go_on) {
  RetryBudget budget;
  spend(budget);
  for (int i = 0; i < 14; ++i) budget.success();
  Retry retry(budget, Urgency::waits);
  BOOST_TEST((*retry.after(failed(Fault::timed_out)) <= milliseconds(25)));
  BOOST_TEST((*retry.after(failed(Fault::timed_out)) == seconds(5)));
}

BOOST_AUTO_TEST_CASE(retry_after_is_waited_for_but_at_most_5_s_more) {
  for (int run = 0; run < 200; ++run) {
    RetryBudget budget;
    const auto delay = [&](milliseconds asked) {
      return *Retry(budget, Urgency::presses)
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
  Retry retry(budget, Urgency::waits);
  BOOST_TEST((retry.after(failed(Fault::skewed_time)) == nanoseconds(0)));
  BOOST_TEST(budget.tokens() == 500);
  BOOST_TEST(!retry.after(failed(Fault::skewed_time)).has_value());
  // Other failures between the two change nothing.
  Retry other(budget, Urgency::waits);
  other.after(failed(Fault::skewed_time));
  other.after(failed(Fault::server_failure));
  BOOST_TEST(!other.after(failed(Fault::skewed_time)).has_value());
}

BOOST_AUTO_TEST_CASE(skewed_time_after_a_success_is_corrected_again) {
  RetryBudget budget;  // A wait of hours, its machine stopped twice.
  Retry retry(budget, Urgency::waits);
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST((retry.after(failed(Fault::skewed_time)) == nanoseconds(0)));
    retry.success();
  }
}

BOOST_AUTO_TEST_SUITE_END()
