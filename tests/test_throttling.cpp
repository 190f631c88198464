// A table that is throttled: that the gateway can make it so, that waiters do
// not make it worse, and that what is held is not lost to it.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/pace.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/gateway/client.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::RetryBudget;
using ddbmutex::lock::Call;
using ddbmutex::lock::Pace;
using ddbmutex::sigv4::HttpAnswer;
using gateway_tests::Client;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using tests::Engine;
using tests::eventually;
using tests::Gateway;
using tests::kSlack;
using tests::Rate;
using tests::returns_within;
using tests::Stopwatch;
using tests::undisturbed;

bool has(const std::string& text, const std::string& what) {
  return text.find(what) != text.npos;
}

tests::GatewaySettings settings_for(const Engine& engine) {
  tests::GatewaySettings settings;
  settings.tls = false;
  settings.sign = engine.kind() == tests::EngineKind::given;
  if (const auto keys = engine.credentials()) {
    settings.keys = {keys->access_key_id, keys->secret_access_key,
                     keys->session_token};
  }
  return settings;
}

// A table whose capacity a test decides, and mutexes in it.
struct Throttled {
  Engine& engine = Engine::running(tests::any_engine_kind());
  Gateway gateway{engine.url(), settings_for(engine)};
  Client client{gateway.plain_url(), gateway.keys()};
  std::shared_ptr<ddbmutex::Table> table = new_table();
  const std::string prefix = ddbmutex::lock::fresh_uuid() + "-";

  // Of the next mutexes.
  ddbmutex::Options options = [this] {
    ddbmutex::Options made;
    made.table = table;
    return made;
  }();

  // That has not heard of any throttling.
  std::shared_ptr<ddbmutex::Table> new_table() const {
    auto where = gateway.table_options(engine.table());
    where.region = engine.region();
    return std::make_shared<ddbmutex::Table>(where);
  }

  std::unique_ptr<DdbMutex> mutex(const std::string& name) const {
    return std::make_unique<DdbMutex>(prefix + name, options);
  }

  // Nothing of these, or of any action, goes through.
  void shut(std::vector<std::string> actions = {}) {
    Rate rate;
    rate.per_second = 0;
    rate.burst = 1;
    rate.actions = std::move(actions);
    gateway.rate(rate);
    // Begins with its burst.
    client.call(rate.actions.empty() ? "GetItem" : rate.actions[0], look());
    gateway.forget();
  }

  HttpAnswer get() { return client.call("GetItem", look()); }
  std::string look() const {
    return R"({"TableName":")" + engine.table() + R"(","Key":{"name":{"S":")" +
           prefix + R"("}}})";
  }
};

Answer throttled() {
  Answer answer;
  answer.fault = ddbmutex::dynamodb::Fault::throttled;
  return answer;
}

// How often a call is made that is refused each time, `left` before its end.
int attempts(Pace& pace, nanoseconds left) {
  int made = 0;
  while (left > 10ms) {
    ++made;
    pace.receive(throttled());
    left -= pace.delay(throttled(), left).value();
  }
  return made;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(throttling)

// --- The gateway's limit -----------------------------------------------------

BOOST_FIXTURE_TEST_CASE(rate_lets_its_burst_through_and_refuses_the_rest,
                        Throttled) {
  Rate rate;
  rate.per_second = 0;
  rate.burst = 3;
  gateway.rate(rate);
  for (const int status : {200, 200, 200, 400, 400}) {
    BOOST_TEST(get().status == status);
  }
  const auto counts = gateway.counts();
  BOOST_TEST(counts.allowed() == 3);
  BOOST_TEST(counts.throttled() == 2);
  BOOST_TEST(counts.applied("GetItem") == 3);
  BOOST_TEST(counts.requests("GetItem") == 5);
  BOOST_TEST(counts.all_faults() == 0);
}

BOOST_FIXTURE_TEST_CASE(refusal_names_the_error_that_was_asked_for, Throttled) {
  const std::pair<const char*, const char*> errors[] = {
      {"ProvisionedThroughputExceededException", "dynamodb.v20120810#"},
      {"ThrottlingException", "coral.availability#"}};
  for (const auto& [error, space] : errors) {
    Rate rate;
    rate.per_second = 0;
    rate.burst = 1;
    rate.error = error;
    gateway.rate(rate);
    get();
    const HttpAnswer answer = get();
    BOOST_TEST(answer.status == 400);
    BOOST_TEST(has(answer.body, std::string(space) + error));
    options.table = new_table();
    options.patience = 0ms;  // One attempt.
    const auto one = mutex(error);
    std::error_code ec;
    one->lock(ec);
    BOOST_TEST(ec == Errc::throttled, one->last_error());
  }
}

BOOST_FIXTURE_TEST_CASE(rate_of_some_actions_lets_others_through_uncounted,
                        Throttled) {
  shut({"PutItem", "DeleteItem"});
  for (int i = 0; i < 10; ++i) BOOST_TEST(get().status == 200);
  BOOST_TEST(client.call("PutItem", "{}").status == 400);
  BOOST_TEST(gateway.counts().allowed() == 0);
  BOOST_TEST(gateway.counts().throttled() == 1);
}

BOOST_FIXTURE_TEST_CASE(rate_gives_more_with_time_and_none_at_all_once_off,
                        Throttled) {
  Rate rate;
  rate.per_second = 2;
  rate.burst = 1;
  gateway.rate(rate);
  const Stopwatch watch;
  while (gateway.counts().allowed() < 4) get();
  BOOST_TEST(watch.ms() >= 1490);  // The first is the burst.
  shut();
  BOOST_TEST(get().status == 400);
  BOOST_TEST(gateway.counts().throttled() > 0);
  gateway.unlimited();
  gateway.forget();
  for (int i = 0; i < 10; ++i) BOOST_TEST(get().status == 200);
  BOOST_TEST(gateway.counts().allowed() == 0);
  BOOST_TEST(gateway.counts().throttled() == 0);
}

BOOST_FIXTURE_TEST_CASE(bad_rate_is_refused_by_the_name_of_its_member,
                        Throttled) {
  const std::pair<const char*, const char*> bad[] = {
      {R"({})", "per_second"},
      {R"({"per_second":-1})", "per_second"},
      {R"({"per_second":"1"})", "per_second"},
      {R"({"per_second":1,"burst":0.5})", "burst"},
      {R"({"per_second":1,"error":"SlowDown"})", "error"},
      {R"({"per_second":1,"actions":[]})", "actions"},
      {R"({"per_second":1,"actions":"PutItem"})", "actions"},
      {R"({"per_second":1,"seconds":1})", "seconds"}};
  for (const auto& [json, member] : bad) {
    BOOST_CHECK_EXCEPTION(
        gateway.control("POST", "/rate", json), std::runtime_error,
        [name = member](const std::runtime_error& error) {
          return has(error.what(),
                     R"({"error":"\")" + std::string(name) + R"(\")");
        });
  }
  BOOST_TEST(get().status == 200);
}

// --- When renewals and releases are tried again ------------------------------

BOOST_AUTO_TEST_CASE(renewal_alone_has_attempts_enough_for_one_in_ten) {
  for (int run = 0; run < 50; ++run) {
    RetryBudget budget;
    Pace pace(budget, Call::renew);
    const int made = attempts(pace, 4900ms);
    BOOST_TEST(made > 70);  // All fail at 0.9^70: one in 1,600.
    BOOST_TEST(made < 300);
  }
}

BOOST_AUTO_TEST_CASE(many_renewals_at_once_have_few_attempts_each) {
  RetryBudget budget;
  std::vector<std::unique_ptr<Pace>> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(std::make_unique<Pace>(budget, Call::renew));
    others.back()->receive(throttled());
  }
  Pace pace(budget, Call::renew);
  BOOST_TEST(attempts(pace, 4900ms) < 30);
  others.clear();  // They have ended.
  Pace alone(budget, Call::renew);
  BOOST_TEST(attempts(alone, 4900ms) > 70);
}

BOOST_AUTO_TEST_CASE(renewals_that_came_through_are_not_many_any_more) {
  RetryBudget budget;
  std::vector<std::unique_ptr<Pace>> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(std::make_unique<Pace>(budget, Call::renew));
    others.back()->receive(throttled());
    others.back()->receive(throttled());
    others.back()->receive(Answer{});
  }
  Pace pace(budget, Call::renew);
  BOOST_TEST(attempts(pace, 4900ms) > 70);
}

BOOST_AUTO_TEST_CASE(release_that_is_throttled_is_not_tried_often) {
  constexpr int kRuns = 200;
  int made = 0;
  for (int run = 0; run < kRuns; ++run) {
    RetryBudget budget;
    Pace pace(budget, Call::release);
    for (nanoseconds left = 2s; left > 0ms; ++made) {
      pace.receive(throttled());
      const nanoseconds delay = pace.delay(throttled(), left).value();
      BOOST_TEST((delay <= std::max<nanoseconds>(left / 2, 400ms)));
      left -= delay;
    }
  }
  BOOST_TEST(made < 7 * kRuns);
}

BOOST_AUTO_TEST_CASE(only_what_waits_is_held_back) {
  RetryBudget budget;
  Pace take(budget, Call::take);
  Pace renewal(budget, Call::renew);
  Pace release(budget, Call::release);
  BOOST_TEST((take.throttle_wait() == 0ns));
  release.receive(throttled());  // Counts all the same.
  BOOST_TEST((take.throttle_wait() > 0ns));
  BOOST_TEST(take.awaits_throttle());
  for (Pace* one : {&renewal, &release}) {
    BOOST_TEST((one->throttle_wait() == 0ns));
    BOOST_TEST(!one->awaits_throttle());
  }
}

// --- Waiters -----------------------------------------------------------------

namespace {

// How a wait of three seconds in a shut table ended.
struct Wait {
  bool well = false;
  bool refused = false;  // It knows why, in DynamoDB's words.
  std::string why;
};

Wait waits_in_vain(DdbMutex& mutex) {
  Wait wait;
  std::error_code ec;
  const Stopwatch watch;
  const bool locked = mutex.try_lock_for(3s, ec);
  wait.why = mutex.last_error();
  wait.refused = has(wait.why, "provisioned throughput");
  wait.well = !locked && ec == Errc::throttled &&
              (wait.refused || has(wait.why, "DynamoDB is throttling")) &&
              watch.time() <= 3s + kSlack;
  return wait;
}

// What is wrong with what many of a table send.
std::string wrong_with_waiters(Throttled& it) {
  constexpr int kWaiters = 20;
  constexpr int kMore = 15;  // One each at first; then a few for all of them.
  it.options.table = it.new_table();
  it.shut();
  std::vector<std::future<Wait>> waits;
  for (int i = 0; i < kWaiters; ++i) {
    waits.push_back(std::async(std::launch::async, [&it, i] {
      return waits_in_vain(*it.mutex(std::to_string(i)));
    }));
  }
  int told = 0;
  std::string wrong;
  for (auto& each : waits) {
    const Wait wait = each.get();
    told += wait.refused ? 1 : 0;
    if (!wait.well) wrong += "a wait ended: " + wait.why + "\n";
  }
  const int refusals = it.gateway.counts().throttled();
  const bool few = refusals >= 1 && refusals <= kWaiters + kMore;
  if (!few) wrong += std::to_string(refusals) + " refusals\n";
  // Who was refused, knows it.
  if (told + kMore < refusals) wrong += std::to_string(told) + " were told\n";
  return wrong;
}

}  // namespace

// A wait whose time is up before it could even ask is told otherwise.
BOOST_FIXTURE_TEST_CASE(many_waiters_of_a_table_send_little_while_it_is_shut,
                        Throttled) {
  BOOST_TEST(undisturbed(500ms, [this] { return wrong_with_waiters(*this); }) ==
             "");
}

BOOST_FIXTURE_TEST_CASE(lock_in_a_shut_table_fails_as_throttled_after_patience,
                        Throttled) {
  shut();
  options.patience = 2s;
  const auto one = mutex("a");
  const auto other = mutex("b");
  const auto lock = [](DdbMutex& mutex) {
    std::error_code ec;
    const bool in_time = returns_within(2s, [&] { mutex.lock(ec); });
    return in_time && ec == Errc::throttled;
  };
  auto wait = std::async(std::launch::async, [&] { return lock(*other); });
  BOOST_TEST(lock(*one));
  BOOST_TEST(wait.get());
}

BOOST_FIXTURE_TEST_CASE(wait_for_a_turn_ends_when_cancelled_or_closed,
                        Throttled) {
  shut();
  std::vector<std::unique_ptr<DdbMutex>> mutexes;
  std::vector<std::future<std::error_code>> waits;
  for (int i = 0; i < 10; ++i) {
    mutexes.push_back(mutex(std::to_string(i)));
    waits.push_back(std::async(std::launch::async, [&one = *mutexes.back()] {
      std::error_code ec;
      one.lock(ec);
      return ec;
    }));
  }
  BOOST_TEST(eventually([&] { return gateway.counts().throttled() >= 3; }));
  for (std::size_t i = 0; i < 5; ++i) {
    // It may not have begun to wait.
    while (waits[i].wait_for(10ms) != std::future_status::ready) {
      mutexes[i]->cancel();
    }
    BOOST_TEST(waits[i].get() == Errc::cancelled);
  }
  table->close();
  for (std::size_t i = 5; i < 10; ++i) {
    BOOST_TEST(waits[i].get() == Errc::closed);
  }
}

BOOST_FIXTURE_TEST_CASE(waiters_get_in_once_the_table_is_freed, Throttled) {
  shut();
  std::vector<std::future<bool>> waits;
  for (int i = 0; i < 10; ++i) {
    waits.push_back(std::async(std::launch::async, [this, i] {
      const auto one = mutex(std::to_string(i));
      return one->try_lock_for(5min);
    }));
  }
  BOOST_TEST(eventually([&] { return gateway.counts().throttled() >= 5; }));
  gateway.unlimited();
  for (auto& wait : waits) BOOST_TEST(wait.get());
}

// --- What is held ------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(renewals_go_on_while_waiters_are_held_back, Throttled) {
  std::atomic<int> losses{0};
  options.on_lost = [&](ddbmutex::Loss) { ++losses; };
  options.renew_after = 500ms;
  const auto held = mutex("held");
  held->lock();
  shut({"PutItem", "GetItem"});
  options.on_lost = nullptr;
  std::vector<std::unique_ptr<DdbMutex>> mutexes;
  std::vector<std::thread> waits;
  for (int i = 0; i < 10; ++i) {
    mutexes.push_back(mutex(std::to_string(i)));
    waits.emplace_back([&one = *mutexes.back()] {
      std::error_code ec;
      static_cast<void>(one.try_lock_for(5min, ec));
    });
  }
  // In line with those that wait this would take minutes.
  BOOST_TEST(
      eventually([&] { return gateway.counts().applied("UpdateItem") >= 10; }));
  BOOST_TEST(held->owns_lock());
  table->close();
  for (std::thread& wait : waits) wait.join();
  BOOST_TEST(losses == 0);
}

BOOST_FIXTURE_TEST_CASE(unlock_in_a_throttled_table_is_made_good_when_freed,
                        Throttled) {
  // Where its time is up between two attempts, that is what is told.
  BOOST_TEST(undisturbed(500ms, [this]() -> std::string {
               const std::string name = ddbmutex::lock::fresh_uuid();
               const auto one = mutex(name);
               one->lock();
               shut({"DeleteItem"});
               std::error_code ec;
               if (!returns_within(2s, [&] { one->release(ec); })) {
                 return "late";
               }
               // What goes on behind does not begin at once, nor often.
               const int sent = gateway.counts().requests("DeleteItem");
               gateway.unlimited();
               BOOST_TEST(eventually(
                   [&] { return !table->inspect(prefix + name).exists; }));
               if (ec != Errc::throttled) return ec.message();
               return sent <= 10 ? "" : std::to_string(sent) + " sent";
             }) == "");
}

// --- In several processes ----------------------------------------------------

// Less than a tenth of the bar: `make soak` runs all of it.
BOOST_AUTO_TEST_CASE(processes_do_not_make_a_throttled_table_worse) {
  const auto seed = std::to_string(std::random_device()() % 1000000);
  tests::Process run({{tests::program_path("processes/throttling"),
                       "processes=2", "waiters=10", "rate=4", "seconds=6",
                       "held=1", "within=45", "seed=" + seed},
                      tests::clean_environment()});
  std::string said;
  try {
    for (;;) said += "\n  " + run.channel().line(5 * tests::kPlenty);
  } catch (const std::runtime_error&) {  // The end of what it says.
  }
  BOOST_TEST_MESSAGE(said);
  BOOST_TEST(run.wait() == 0, said);
  BOOST_TEST(run.complaints() == "");
}

BOOST_AUTO_TEST_SUITE_END()
