// Whether a failed call is tried again, and when.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/retry.hpp"
#include "sigv4/backoff.hpp"
#include "sigv4/boot_clock.hpp"

namespace {

using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Fault;
using ddbmutex::dynamodb::is_passing;
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

BOOST_AUTO_TEST_CASE(longest_pause_may_be_the_longest_time_there_is) {
  Backoff backoff;
  const Backoff::Limits limits{nanoseconds::max() / 3, nanoseconds::max(), 0.5};
  for (int i = 0; i < 9; ++i) {
    BOOST_TEST((backoff.next(limits, 0.5) >= limits.first / 2));
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
  Retry retry(budget, Urgency::waits);
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
    Retry retry(budget, Urgency::waits);
    const auto delay = retry.after(failed(Fault::conflict));
    BOOST_TEST_REQUIRE((delay && *delay <= milliseconds(25)));
  }
  BOOST_TEST(budget.tokens() == 500);
  spend(budget);
  Retry retry(budget, Urgency::waits);
  const auto delay = retry.after(failed(Fault::conflict));
  BOOST_TEST((delay && *delay <= milliseconds(25)));
  BOOST_TEST(!retry.held_back());
  // One that lasts is asked less and less often.
  const Spread tenth = delays_at(9, Fault::conflict);
  BOOST_TEST((tenth.longest <= seconds(5)));
  BOOST_TEST((tenth.longest > milliseconds(4500)));
}

BOOST_AUTO_TEST_CASE(contention_waits_as_long_as_the_service_asks) {
  RetryBudget budget;
  Retry retry(budget, Urgency::waits);
  BOOST_TEST((retry.after(failed(Fault::conflict, seconds(2))) == seconds(2)));
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
  BOOST_TEST(is_held_back(poll.after(failed(Fault::timed_out))));
}

BOOST_AUTO_TEST_CASE(budget_refilled_lets_what_waits_go_on) {
  RetryBudget budget;
  spend(budget);
  for (int i = 0; i < 14; ++i) budget.success();
  Retry retry(budget, Urgency::waits);
  BOOST_TEST((*retry.after(failed(Fault::timed_out)) <= milliseconds(25)));
  BOOST_TEST(is_held_back(retry.after(failed(Fault::timed_out))));
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

// --- Holding back while DynamoDB throttles -----------------------------------

namespace {

using ddbmutex::BootTime;
using ddbmutex::dynamodb::Throttle;
using Turn = Throttle::Turn;

// So long after some moment.
BootTime at(nanoseconds time) { return BootTime(std::chrono::hours(1)) + time; }
BootTime at_ms(std::int64_t ms) { return at(milliseconds(ms)); }

void answer(Throttle& throttle, BootTime now) {
  if (throttle.count()) throttle.answered(now);
}

bool goes(Turn& turn, BootTime now) { return turn.wait(now) == nanoseconds(0); }

double rate_of(const Throttle& throttle) {
  return throttle.rate().value_or(std::numeric_limits<double>::infinity());
}

// A rate that is as low as it gets, from `now` on, with no turn left over.
void lower(Throttle& throttle, BootTime now) {
  for (int i = 40; i >= 0; --i) {
    throttle.refused(now - i * milliseconds(100));
  }
  Turn turn(throttle);
  if (goes(turn, now)) goes(turn, now);
}

// One table that bears so much, and waiters that each send a request that
// waits and then one that presses, which are tried again as Retry says.
struct Simulation {
  int clients = 10;
  int waiters = 10;
  double per_second = 20;
  double seconds = 30;
  bool holds_back = true;

  int sent = 0;  // While it bore so much.
  int allowed = 0;
  int taken = 0;  // In all.
  double last_taken = 0;

  void run(unsigned seed);

 private:
  struct Waiter {
    RetryBudget& budget;
    Turn turn;
    bool taken = false;
    std::optional<Retry> retry;
  };

  std::optional<double> step(Waiter& waiter, double now);
  bool bears_one(double now);

  double tokens_ = 2;
  double filled_ = 0;
};

void Simulation::run(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> start(0, 0.1);
  std::vector<std::unique_ptr<RetryBudget>> budgets;
  std::vector<std::unique_ptr<Waiter>> all;
  using Event = std::pair<double, Waiter*>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  for (int i = 0; i < clients; ++i) {
    budgets.push_back(std::make_unique<RetryBudget>());
    for (int j = 0; j < waiters; ++j) {
      RetryBudget& budget = *budgets.back();
      all.push_back(std::unique_ptr<Waiter>(
          new Waiter{budget, Turn(budget.throttle()), false, {}}));
      all.back()->retry.emplace(budget, Urgency::waits);
      events.emplace(start(random), all.back().get());
    }
  }
  while (!events.empty()) {
    const auto [now, waiter] = events.top();
    events.pop();
    if (const auto after = step(*waiter, now)) {
      events.emplace(now + *after, waiter);
    }
  }
}

bool Simulation::bears_one(double now) {
  if (now >= seconds) return true;
  ++sent;
  tokens_ = std::min(2.0, tokens_ + (now - filled_) * per_second);
  filled_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  ++allowed;
  return true;
}

// When it is to be asked again; nothing if it is done.
std::optional<double> Simulation::step(Waiter& waiter, double now) {
  using Seconds = std::chrono::duration<double>;
  const BootTime time =
      at(std::chrono::duration_cast<nanoseconds>(Seconds(now)));
  if (!waiter.taken && holds_back) {
    const nanoseconds left = waiter.turn.wait(time);
    if (left > nanoseconds(0)) return Seconds(left).count();
  }
  Throttle& throttle = waiter.budget.throttle();
  if (!bears_one(now)) {
    throttle.refused(time);
    return Seconds(*waiter.retry->after(failed(Fault::throttled))).count();
  }
  answer(throttle, time);
  waiter.retry->success();
  if (waiter.taken) return std::nullopt;
  waiter.taken = true;
  waiter.retry.emplace(waiter.budget, Urgency::presses);
  ++taken;
  last_taken = now;
  return 0.01;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(holding_back)

BOOST_AUTO_TEST_CASE(without_a_refusal_nothing_waits) {
  Throttle throttle;
  for (int i = 0; i < 1000; ++i) {
    Turn turn(throttle);
    BOOST_TEST_REQUIRE(goes(turn, at_ms(i)));
    answer(throttle, at_ms(i));
  }
  BOOST_TEST(!throttle.rate().has_value());
}

BOOST_AUTO_TEST_CASE(refusal_limits_to_65_percent_of_what_was_answered) {
  Throttle throttle;
  for (int ms = 0; ms < 3000; ms += 10) {  // 100 a second.
    answer(throttle, at_ms(ms));
  }
  throttle.refused(at_ms(3000));
  BOOST_TEST(rate_of(throttle) > 63);
  BOOST_TEST(rate_of(throttle) < 67);
}

BOOST_AUTO_TEST_CASE(refusal_within_the_first_second_counts_what_came_so_far) {
  Throttle throttle;
  for (int i = 0; i < 40; ++i) answer(throttle, at_ms(i));
  throttle.refused(at_ms(50));
  BOOST_TEST(rate_of(throttle) > 20);
  BOOST_TEST(rate_of(throttle) <= 26);
}

BOOST_AUTO_TEST_CASE(refusal_after_few_answers_is_taken_for_one_of_two) {
  Throttle throttle;
  for (int i = 0; i < 100; ++i) answer(throttle, at_ms(i));
  throttle.refused(at_ms(60000));
  BOOST_TEST(rate_of(throttle) == 0.65 * 2, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(refusals_together_lower_once_and_later_ones_again) {
  Throttle throttle;
  throttle.refused(at_ms(0));
  const double first = rate_of(throttle);
  throttle.refused(at_ms(99));
  BOOST_TEST(rate_of(throttle) == first);
  throttle.refused(at_ms(100));
  BOOST_TEST(rate_of(throttle) == 0.65 * first,
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(rate_never_falls_below_two_in_five_seconds) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  BOOST_TEST(rate_of(throttle) == 0.4);
}

BOOST_AUTO_TEST_CASE(answer_raises_the_rate_once_in_a_tenth_of_a_second) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  answer(throttle, at_ms(99));
  BOOST_TEST(rate_of(throttle) == 0.4);
  answer(throttle, at_ms(100));
  BOOST_TEST(rate_of(throttle) == 0.4 * 1.2 + 0.1,
             boost::test_tools::tolerance(1e-9));
  answer(throttle, at_ms(199));
  BOOST_TEST(rate_of(throttle) == 0.4 * 1.2 + 0.1,
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(answers_in_a_row_for_a_second_double_the_rate) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  for (int ms = 200; ms <= 800; ms += 200) {
    answer(throttle, at_ms(ms));
  }
  const double slowly = rate_of(throttle);
  BOOST_TEST(slowly < 2);
  answer(throttle, at_ms(1000));
  BOOST_TEST(rate_of(throttle) == 2 * slowly,
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(few_answers_in_a_row_do_not_double_the_rate) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  double before = rate_of(throttle);
  for (int i = 1; i <= 3; ++i) {
    answer(throttle, at_ms(2000 * i));
    BOOST_TEST(rate_of(throttle) < 2 * before);
    before = rate_of(throttle);
  }
}

BOOST_AUTO_TEST_CASE(turns_come_in_the_order_of_asking_at_the_rate) {
  Throttle throttle;
  lower(throttle, at_ms(0));  // One in 2.5 s.
  Turn first(throttle);
  Turn second(throttle);
  BOOST_TEST(!goes(first, at_ms(0)));
  BOOST_TEST(!goes(second, at_ms(1)));
  BOOST_TEST(first.waits());
  BOOST_TEST(!goes(second, at_ms(2499)));
  BOOST_TEST(!goes(first, at_ms(2499)));
  BOOST_TEST(!goes(second, at_ms(2501)));
  BOOST_TEST(goes(first, at_ms(2501)));
  BOOST_TEST(!first.waits());
  BOOST_TEST(!goes(first, at_ms(2502)));  // Anew, behind the other.
  BOOST_TEST(!goes(second, at_ms(4990)));
  BOOST_TEST(goes(second, at_ms(5010)));
  BOOST_TEST(!goes(first, at_ms(5020)));
}

BOOST_AUTO_TEST_CASE(wait_is_told_so_that_a_turn_is_not_missed) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  answer(throttle, at_ms(100));  // 0.58 a second.
  Turn turn(throttle);
  BootTime now = at_ms(100);
  int asked = 0;
  for (nanoseconds left; (left = turn.wait(now)) > nanoseconds(0); ++asked) {
    BOOST_TEST_REQUIRE((left <= milliseconds(250)));
    now += left;
  }
  BOOST_TEST((now >= at_ms(1700) && now <= at_ms(1830)));
  BOOST_TEST(asked <= 9);
}

BOOST_AUTO_TEST_CASE(turn_that_is_given_up_leaves_its_place_to_the_next) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  Turn last(throttle);
  {
    std::vector<std::unique_ptr<Turn>> many;
    for (int i = 0; i < 100; ++i) {
      many.push_back(std::make_unique<Turn>(throttle));
      BOOST_TEST_REQUIRE(!goes(*many.back(), at_ms(0)));
    }
    BOOST_TEST_REQUIRE(!goes(last, at_ms(0)));
  }
  BOOST_TEST(!goes(last, at_ms(2400)));
  BOOST_TEST(goes(last, at_ms(2501)));
}

BOOST_AUTO_TEST_CASE(turns_that_nobody_waited_for_are_not_saved_up) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  int gone = 0;
  for (int i = 0; i < 10; ++i) {
    Turn turn(throttle);
    if (goes(turn, at_ms(9000))) ++gone;
  }
  BOOST_TEST(gone == 1);
}

BOOST_AUTO_TEST_CASE(high_rate_is_reached_by_waiters_that_sleep) {
  Throttle throttle;
  for (int ms = 0; ms < 2000; ++ms) {  // 1000 a second.
    answer(throttle, at_ms(ms));
  }
  throttle.refused(at_ms(2000));  // 650.
  std::vector<std::unique_ptr<Turn>> turns;
  for (int i = 0; i < 300; ++i) {
    turns.push_back(std::make_unique<Turn>(throttle));
  }
  std::vector<BootTime> asks(turns.size(), at_ms(2000));
  int gone = 0;
  for (BootTime now = at_ms(2000); now < at_ms(4000); now += milliseconds(1)) {
    for (std::size_t i = 0; i < turns.size(); ++i) {
      if (now < asks[i]) continue;
      const nanoseconds left = turns[i]->wait(now);
      if (left == nanoseconds(0)) ++gone;
      asks[i] = now + left;
    }
  }
  BOOST_TEST(gone > 1100);
  BOOST_TEST(gone <= 1300);
}

BOOST_AUTO_TEST_CASE(limit_is_forgotten_ten_seconds_after_the_last_refusal) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  std::vector<std::unique_ptr<Turn>> turns;
  for (int i = 0; i < 20; ++i) {
    turns.push_back(std::make_unique<Turn>(throttle));
    BOOST_TEST_REQUIRE(!goes(*turns.back(), at_ms(0)));
  }
  BOOST_TEST(!goes(*turns.back(), at_ms(9999)));
  for (auto one = turns.rbegin(); one != turns.rend(); ++one) {
    BOOST_TEST(goes(**one, at_ms(10000)));
    BOOST_TEST(!(*one)->waits());
  }
  BOOST_TEST(!throttle.rate().has_value());
}

BOOST_AUTO_TEST_CASE(refusal_after_the_limit_was_forgotten_begins_anew) {
  Throttle throttle;
  lower(throttle, at_ms(0));
  Turn turn(throttle);
  BOOST_TEST(goes(turn, at_ms(20000)));
  for (int i = 0; i < 40; ++i) answer(throttle, at_ms(30000 + i));
  throttle.refused(at_ms(30050));
  BOOST_TEST(rate_of(throttle) > 20);
  BOOST_TEST(!goes(turn, at_ms(30050)));
}

BOOST_AUTO_TEST_CASE(threads_are_given_no_turn_twice) {
  Throttle throttle;
  for (int ms = 0; ms < 2000; ++ms) answer(throttle, at_ms(ms));
  throttle.refused(at_ms(2000));
  const auto rate = throttle.rate();
  BOOST_TEST_REQUIRE(rate.has_value());
  std::atomic<int> gone{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) {
        Turn turn(throttle);
        if (goes(turn, at_ms(2100))) ++gone;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Those of a tenth of a second; a turn given up may be ahead of another.
  BOOST_TEST(gone > 0);
  BOOST_TEST(gone <= *rate / 10);
}

BOOST_AUTO_TEST_CASE(ten_clients_do_not_make_a_throttled_table_worse) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    for (const double per_second : {5.0, 20.0}) {
      for (const int waiters : {10, 100}) {
        Simulation table;
        table.waiters = waiters;
        table.per_second = per_second;
        table.run(seed);
        BOOST_TEST_CONTEXT(waiters << " waiters each, " << per_second
                                   << " requests a second, seed " << seed) {
          BOOST_TEST(table.sent <= 3 * table.allowed);
          BOOST_TEST(table.taken == 10 * waiters);
          BOOST_TEST(table.last_taken <= table.seconds + 10);
        }
      }
    }
  }
}

// That the simulation can tell.
BOOST_AUTO_TEST_CASE(without_holding_back_they_would) {
  Simulation table;
  table.holds_back = false;
  table.per_second = 5;
  table.run(1);
  BOOST_TEST(table.sent > 6 * table.allowed);
}

BOOST_AUTO_TEST_SUITE_END()
