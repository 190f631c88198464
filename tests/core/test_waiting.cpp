// How waits for a lock end: with an error, after `patience` or at a deadline;
// with the lock, after another thread of the process; or with the end of the
// table.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/hold.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "sigv4/keys/credentials.hpp"
#include "sigv4/thread.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/given.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// === How long a call retries after transient errors ==========================

// lock() retries for `patience`, whichever thread has met the errors; a timed
// call retries until its deadline.

namespace {

constexpr milliseconds kPatience = 2s;

}  // namespace

BOOST_AUTO_TEST_SUITE(patience)

// --- lock() ------------------------------------------------------------------

namespace {

// Returns what is wrong.
std::string final_error_of_another_thread() {
  std::atomic<bool> failing{false};
  std::atomic<int> asked{0};
  BootTime first_asked;
  const auto after = [&](milliseconds time, Reply reply) {
    const auto left = first_asked + time - BootClock::now();
    reply.delay = std::max(0ms, std::chrono::ceil<milliseconds>(left));
    return reply;
  };
  const Reply unavailable = failure(500, "InternalServerError");
  ScriptedServer server([&](const SeenRequest& request) {
    if (!failing) return held_by_another(request);
    if (action_of(request) == "DeleteItem") return Reply::ok("{}");
    const int number = ++asked;
    if (number == 1) first_asked = BootClock::now();
    if (number == 2) {
      return after(kPatience - 100ms, failure(400, "AccessDeniedException"));
    }
    return number == 3 ? after(kPatience, unavailable) : unavailable;
  });
  Options options = on_table(table_at(server));
  options.patience = kPatience;
  options.request_timeout = 20s;
  DdbMutex mutex("x", options);
  Aside timed([&] { (void)mutex.try_lock_for(1h); });
  if (!server.wait_for_requests(2)) return "nobody asks";
  Aside waiter([&] { mutex.lock(); });
  if (!waiter.rests()) return "the other thread does not wait";
  failing = true;
  const std::string said = waiter.thrown() + ", " + timed.thrown();
  if (said != words(Errc::unavailable) + ", " + words(Errc::access_denied)) {
    return said;
  }
  return asked <= 3 ? "" : "asked too often";
}

}  // namespace

// The thread that sends the requests is denied access shortly before the
// patience of the other ends.  The other's own request is answered when it
// ends.
BOOST_AUTO_TEST_CASE(final_error_of_one_thread_is_no_success_for_the_others) {
  BOOST_TEST(undisturbed(50ms, final_error_of_another_thread) == "");
}

// A request signed with a wrong time is signed again at once.
BOOST_AUTO_TEST_CASE(wrong_time_is_no_error_for_a_waiter) {
  std::atomic<bool> late{false};
  std::atomic<int> asked_late{0};
  ScriptedServer server([&](const SeenRequest& request) {
    if (!late) return held_by_another(request);
    const bool first = asked_late++ == 0;
    Reply reply = first ? failure(400, "InvalidSignatureException") : hanging();
    return with_header(std::move(reply), "Date", http_date(1h));
  });
  Options options = on_table(table_at(server));
  options.patience = 0ms;
  DdbMutex mutex("x", options);
  Aside timed([&] { (void)mutex.try_lock_for(1h); });
  BOOST_TEST_REQUIRE(server.wait_for_requests(2));
  Aside waiter([&] { mutex.lock(); });
  BOOST_TEST_REQUIRE(waiter.rests());
  late = true;
  BOOST_TEST(eventually([&] { return asked_late == 2; }));
  // The second request hangs, so no answer has ended the error yet.
  BOOST_TEST(waiter.rests());
  mutex.cancel();
  BOOST_TEST(waiter.thrown() == words(Errc::cancelled));
  BOOST_TEST(timed.thrown() == words(Errc::cancelled));
}

// The timed call has failed for longer than `patience` when lock() is called.
BOOST_AUTO_TEST_CASE(patience_is_counted_anew_for_each_call) {
  ScriptedServer server([](const SeenRequest&) { return hanging(); });
  Options options = on_table(new_table_at(server));
  options.patience = kPatience;
  options.request_timeout = 500ms;
  DdbMutex mutex("x", options);
  Aside timed([&] { (void)mutex.try_lock_for(1h); });
  BOOST_TEST(server.wait_for_requests(2));
  pause(kPatience);
  const Stopwatch watch;
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::timed_out));
  BOOST_TEST(watch.ms() >= kPatience.count());
  mutex.cancel();
  BOOST_TEST(timed.thrown() == words(Errc::cancelled));
  server.stop();  // Ends the request in flight.
}

// --- Until the deadline ----------------------------------------------------

namespace {

ddbmutex::dynamodb::Answer failed_in(nanoseconds time) {
  ddbmutex::dynamodb::Answer answer;
  answer.fault = ddbmutex::dynamodb::Fault::unreachable;
  answer.received_at = answer.sent_at + time;
  return answer;
}

// The longest of 400 random delays before a take is retried.  The takes have
// failed so often that a delay is anything up to 5 s.
std::int64_t longest_delay_ms(nanoseconds left,
                              const ddbmutex::dynamodb::Answer& answer) {
  nanoseconds longest{0};
  for (int i = 0; i < 20; ++i) {
    ddbmutex::dynamodb::RetryBudget budget;
    ddbmutex::lock::Series series(budget, ddbmutex::lock::Call::take);
    for (int failed = 0; failed < 8; ++failed) {
      series.next_delay(failed_in(1ms), 1h);
    }
    for (int more = 0; more < 20; ++more) {
      longest = std::max(longest, series.next_delay(answer, left).value_or(1h));
    }
  }
  return longest / 1ms;
}

}  // namespace

// The first look of a new Table and the take have one request timeout each.
BOOST_AUTO_TEST_CASE(first_lock_has_the_time_of_two_slow_requests) {
  const std::string wrong = undisturbed(1s, []() -> std::string {
    ScriptedServer server([](const SeenRequest&) {
      Reply reply = Reply::ok("{}");
      reply.delay = 2400ms;
      return reply;
    });
    Options options = on_table(new_table_at(server));
    options.request_timeout = 4s;
    DdbMutex mutex("x", options);
    std::error_code ec;
    if (!mutex.try_lock(ec)) return ec ? ec.message() : "held by another";
    mutex.unlock();
    return "";
  });
  BOOST_TEST(wrong == "");
}

BOOST_AUTO_TEST_CASE(last_delay_leaves_two_round_trips_for_another_attempt) {
  BOOST_TEST(longest_delay_ms(1min, failed_in(1ms)) <= 5000);
  BOOST_TEST(longest_delay_ms(3s, failed_in(40ms)) == 2920);
  // A round trip counts as 25 ms at least: the next one may be slower,
  BOOST_TEST(longest_delay_ms(3s, failed_in(1ms)) == 2950);
  // and as 250 ms at most: a server that hangs must not use up the time.
  BOOST_TEST(longest_delay_ms(3s, failed_in(2s)) == 2500);
  BOOST_TEST(longest_delay_ms(51ms, failed_in(1ms)) == 1);
  // Without time for another attempt the delay is not shortened.
  BOOST_TEST(longest_delay_ms(50ms, failed_in(1ms)) >= 50);
  BOOST_TEST(longest_delay_ms(-1s, failed_in(1ms)) >= 0);
}

// --- What a timeout reports --------------------------------------------------

// Threads of one mutex wait for another host's lock.  The first of them asks
// until its time is up.  The others then get the turn, and no answer.
BOOST_AUTO_TEST_CASE(held_lock_is_no_error_for_who_gets_the_turn_too_late) {
  std::atomic<bool> hangs{false};
  ScriptedServer server([&](const SeenRequest& request) {
    return hangs ? hanging() : held_by_another(request);
  });
  Options options = on_table(table_at(server));
  options.request_timeout = 20s;
  DdbMutex mutex("x", options);
  std::atomic<int> refused{0};
  const auto wait = [&](milliseconds time) {
    if (!mutex.try_lock_for(time)) ++refused;
  };
  Aside first([&] { wait(3s); });
  BOOST_TEST_REQUIRE(server.wait_for_requests(2));
  Aside second([&] { wait(4s); });
  BOOST_TEST_REQUIRE(second.rests());
  Aside third([&] { wait(4s); });
  BOOST_TEST_REQUIRE(third.rests());
  hangs = true;
  for (Aside* one : {&first, &second, &third}) {
    BOOST_TEST(one->thrown() == "none");
  }
  BOOST_TEST(refused == 3);
  server.stop();
}

// The first has seen the lock held, but an error came after that.
BOOST_AUTO_TEST_CASE(silence_after_an_error_is_an_error_for_who_gets_the_turn) {
  const std::string wrong = undisturbed(1s, []() -> std::string {
    ScriptedServer server([](const SeenRequest& request) {
      if (request.number <= 2) return held_by_another(request);
      Reply reply = hanging();
      reply.then = [](const SeenRequest&) {
        return failure(400, "AccessDeniedException");
      };
      return reply;
    });
    DdbMutex mutex("x", on_table(table_at(server)));
    Aside first([&] { (void)mutex.try_lock_for(1h); });
    BOOST_TEST_REQUIRE(server.wait_for_requests(3));
    Aside second([&] { (void)mutex.try_lock_for(3s); });
    BOOST_TEST_REQUIRE(second.rests());
    server.release();
    const std::string thrown = first.thrown() + ", " + second.thrown();
    server.stop();
    return thrown == words(Errc::access_denied) + ", " + words(Errc::timed_out)
               ? ""
               : thrown;
  });
  BOOST_TEST(wrong == "");
}

BOOST_AUTO_TEST_CASE(timeout_during_a_request_reports_the_failure_before) {
  int requests = 0;
  ScriptedServer server([&requests](const SeenRequest& request) {
    if (action_of(request) == "DeleteItem") return Reply::ok("{}");
    return ++requests == 1 ? server_failure() : hanging();
  });
  Options options = on_table(table_at(server));
  options.request_timeout = 20s;
  DdbMutex mutex("x", options);
  const auto error = error_of([&] { (void)mutex.try_lock_for(3s); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::timed_out), error->what());
  BOOST_TEST(has(error->what(),
                 ": no answer in time: no answer yet; before that: "
                 "server_failure: as the test wants"),
             error->what());
  server.stop();
}

// The error names the sources without keys and the one that does not answer.
BOOST_AUTO_TEST_CASE(keys_that_are_being_fetched_tell_who_was_asked) {
  ScriptedServer instance([](const SeenRequest&) { return hanging(); });
  ScriptedServer server;
  const Home home;
  const std::string url = "http://127.0.0.1:" + std::to_string(instance.port());
  const ProcessVariable at_home("HOME", home.root.c_str());
  const ProcessVariable id("AWS_ACCESS_KEY_ID", nullptr);
  const ProcessVariable on("AWS_EC2_METADATA_DISABLED", nullptr);
  const ProcessVariable time("AWS_METADATA_SERVICE_TIMEOUT", "600");
  const ProcessVariable at("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.c_str());
  ddbmutex::TableOptions place = table_options(server);
  place.credentials = {};
  Options options = on_table(std::make_shared<Table>(place));
  options.request_timeout = 3s;
  DdbMutex mutex("x", options);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { (void)mutex.try_lock(); },
           [&] { (void)mutex.try_lock_for(1s); }}) {
    const auto error = error_of(call);
    BOOST_TEST_REQUIRE(error.has_value());
    BOOST_TEST((error->code() == Errc::no_keys), error->what());
    for (const std::string& part :
         {std::string("keys are being fetched: "),
          std::string("no access_key_id in the options; "),
          std::string("no AWS_ACCESS_KEY_ID in the environment; "),
          std::string("credential_process in profile \"default\" ("),
          std::string("neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor "),
          "; the EC2 metadata service at " + url + " is being asked"}) {
      BOOST_TEST(has(error->what(), part), part << " in: " << error->what());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// === From thread to thread of one process ====================================

BOOST_AUTO_TEST_SUITE(threads_of_a_process)

BOOST_AUTO_TEST_CASE(next_thread_takes_a_lease_of_its_own) {
  ScriptedServer server;
  DdbMutex mutex("x", on_table(table_at(server)));
  mutex.lock();
  Aside next([&] { mutex.lock(); });
  BOOST_TEST(next.rests());
  mutex.unlock();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(actions(server) == "PutItem DeleteItem PutItem");
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
  BOOST_TEST(!mutex.owns_lock());
}

// The next thread finds the data of the options, not what the last one left.
BOOST_AUTO_TEST_CASE(each_thread_finds_the_data_of_its_own_acquisition) {
  Engine& engine = Engine::running(any_engine_kind());
  Options options = on_table(table_at(engine));
  options.data = "ours";
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  mutex.renew({"changed", {}, {}});
  Aside next([&] { mutex.lock(); });
  BOOST_TEST(next.rests());
  mutex.unlock();
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(mutex.data().value_or("") == "ours");
}

BOOST_AUTO_TEST_SUITE_END()

// === The end of a table ======================================================

// close() releases every held lock, many at once, and reports each failure.

namespace {

namespace lock = ddbmutex::lock;

// For locks that are not renewed before they are released: DynamoDB's clock is
// known when they are taken.
template <class Where>
Options held_on(const Where& where) {
  Options options = on_table(table_at(where));
  options.table->inspect("x");
  return options;
}

using Mutexes = std::vector<std::unique_ptr<DdbMutex>>;

Mutexes locked(const Options& options, int count) {
  Mutexes all;
  for (int i = 0; i < count; ++i) {
    all.push_back(std::make_unique<DdbMutex>(fresh_name(), options));
    all.back()->lock();
  }
  return all;
}

lock::TableState table_of(const ScriptedServer& server) {
  return lock::TableState({target_at(server.url(), "us-east-1"),
                           given_keys({"AKIDEXAMPLE", "secret", ""}),
                           {}});
}

std::shared_ptr<lock::MutexSettings> settings_of(lock::TableState& table,
                                                 const char* name,
                                                 milliseconds ttl) {
  auto settings =
      std::make_shared<lock::MutexSettings>(table.client, table.budget);
  settings->place.table = "locks";
  settings->place.key = name;
  settings->ttl = ttl;
  settings->patience = kPlenty;
  return settings;
}

bool is_taken(lock::Mutex& mutex) {
  return mutex.lock(nanoseconds::max(), nullptr).verdict == lock::Verdict::ours;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(closing)

BOOST_AUTO_TEST_CASE(close_reports_each_failed_release_with_its_reason) {
  Gate gate;
  const Options options = held_on(gate);
  const Mutexes all = locked(options, 3);
  gate.always("DeleteItem", Gate::fails());
  const auto bad = options.table->close(3s);  // Each has failed by then.
  BOOST_REQUIRE(bad.size() == 3u);
  for (const auto& one : bad) {
    BOOST_TEST(one.code == Errc::unavailable);
    BOOST_TEST(one.text.find(one.name) != std::string::npos);
    BOOST_TEST(!is_free(gate.engine(), one.name));
  }
  gate.open();  // The releases are still retried.
  for (const auto& mutex : all) {
    BOOST_TEST(
        eventually([&] { return is_free(gate.engine(), mutex->name()); }));
  }
}

// As nanoseconds in 64 bits, that time would be less than nothing.
BOOST_AUTO_TEST_CASE(close_with_all_the_time_there_is_waits_for_releases) {
  Gate gate;
  const Options options = held_on(gate);
  const Mutexes all = locked(options, 1);
  gate.once("DeleteItem", Gate::held());
  bool all_released = false;
  Aside aside([&] {
    all_released = options.table->close(std::chrono::hours::max()).empty();
  });
  BOOST_TEST(eventually([&] {
    return aside.done() || count_of(gate.server(), "DeleteItem") > 0;
  }));
  gate.server().release();
  BOOST_TEST(aside.ends());
  BOOST_TEST(all_released);
}

BOOST_AUTO_TEST_CASE(close_reports_a_loss_that_was_not_noticed) {
  Gate gate;
  const Options options = held_on(gate);
  const Mutexes all = locked(options, 2);
  write_row(gate.engine(), all[0]->name(), live_record());
  const auto bad = options.table->close(kPlenty);
  BOOST_REQUIRE(bad.size() == 1u);
  BOOST_TEST(bad[0].name == all[0]->name());
  BOOST_TEST(bad[0].code == Errc::lease_lost);
  BOOST_TEST(!is_free(gate.engine(), all[0]->name()));
  BOOST_TEST(is_free(gate.engine(), all[1]->name()));
}

// There are more than may be in flight, and the table ends before the last one
// has room.
BOOST_AUTO_TEST_CASE(release_that_was_never_sent_has_released_nothing) {
  constexpr int kReleasing = 32;
  ScriptedServer server([](const SeenRequest& request) {
    return action_of(request) == "DeleteItem" ? hanging() : Reply{};
  });
  lock::TableState table = table_of(server);
  std::vector<std::unique_ptr<lock::Mutex>> all;
  for (int i = 0; i <= kReleasing; ++i) {
    const std::string name = "x" + std::to_string(i);
    all.push_back(std::make_unique<lock::Mutex>(
        table, settings_of(table, name.c_str(), 10min)));
    BOOST_TEST_REQUIRE(is_taken(*all.back()));
  }
  std::vector<lock::Released> left;
  Aside closing([&] { left = table.keeper->release_all(BootTime::max()); });
  BOOST_TEST_REQUIRE(
      eventually([&] { return count_of(server, "DeleteItem") == kReleasing; }));
  table.keeper->tell_to_stop(BootTime{});
  BOOST_TEST_REQUIRE(closing.ends());
  for (const lock::Released& one : left) {
    BOOST_TEST((one.result.verdict == lock::Verdict::again));
  }
  server.release();
}

// --- What a callback may do --------------------------------------------------

namespace {

// Receives the news of a lock that soon expires, because nobody renews it.
struct Heard final : lock::Listener {
  ~Heard() {
    if (when_gone) when_gone();
  }
  void on_lost(lock::Verdict) const override {
    if (when_lost) when_lost();
  }
  void on_danger() const override {}
  std::function<void()> when_lost, when_gone;
};

// Its callback sets `lost`, and then waits for `go_on`.
std::shared_ptr<Heard> held_up(Event& lost, Event& go_on) {
  const auto heard = std::make_shared<Heard>();
  heard->when_lost = [&lost, &go_on] {
    lost.set();
    while (!go_on.wait()) {
    }
  };
  return heard;
}

std::shared_ptr<lock::MutexSettings> short_lease(
    lock::TableState& table, const char* name,
    const std::shared_ptr<Heard>& heard) {
  auto settings = settings_of(table, name, 5s);
  settings->hears_losses = true;
  settings->listener = heard;
  return settings;
}

}  // namespace

// A callback ends the mutex, and with it what the callbacks have captured.
// Their destructors may use the table.
BOOST_AUTO_TEST_CASE(callbacks_that_a_callback_destroys_may_use_the_table) {
  ScriptedServer server;
  lock::TableState table = table_of(server);
  bool answered = false;
  Event gone;
  std::optional<Aside> asking;
  auto heard = std::make_shared<Heard>();
  heard->when_gone = [&] {
    asking.emplace([&] { table.keeper->held_count(); });
    answered = asking->ends();
    gone.set();
  };
  lock::Mutex mutex(table, short_lease(table, "x", heard));
  heard->when_lost = [&] {
    mutex.end();
    heard.reset();
  };
  BOOST_TEST_REQUIRE(is_taken(mutex));
  BOOST_TEST(gone.wait());
  BOOST_TEST(answered);
}

// The thread that would report that the lease is over is in a callback.
BOOST_AUTO_TEST_CASE(renewal_by_a_call_ends_with_its_lease_amid_a_callback) {
  ScriptedServer server([](const SeenRequest& request) {
    return action_of(request) == "UpdateItem" ? hanging() : Reply{};
  });
  lock::TableState table = table_of(server);
  Event lost, go_on;
  const auto heard = held_up(lost, go_on);
  lock::Mutex other(table, short_lease(table, "other", heard));
  BOOST_TEST_REQUIRE(is_taken(other));
  BOOST_TEST(lost.wait());
  auto settings = settings_of(table, "x", 5s);
  settings->request_timeout = kPlenty;
  lock::Mutex mutex(table, std::move(settings));
  BOOST_TEST(is_taken(mutex));
  const Stopwatch watch;
  const auto result = mutex.renew(nullptr);
  BOOST_TEST((result.verdict == lock::Verdict::expired));
  BOOST_TEST((watch.time() < kPlenty));
  go_on.set();
  server.release();
}

// exit() may stop a table that another thread destroys.
BOOST_AUTO_TEST_CASE(whoever_stops_a_table_waits_for_its_threads) {
  ScriptedServer server;
  lock::TableState table = table_of(server);
  Event lost, go_on;
  const auto heard = held_up(lost, go_on);
  lock::Mutex mutex(table, short_lease(table, "x", heard));
  BOOST_TEST_REQUIRE(is_taken(mutex));
  BOOST_TEST_REQUIRE(lost.wait());
  Aside destroys(
      [&] { ddbmutex::sigv4::stop(*table.keeper, BootClock::now() + 1h); });
  BOOST_TEST(destroys.rests());
  Aside exits([&] { table.keeper->await_stop(); });
  BOOST_TEST(exits.rests());
  BOOST_TEST(!exits.done());
  go_on.set();
  BOOST_TEST(exits.ends());
  BOOST_TEST(destroys.ends());
}

// A callback ends another mutex that is lost as well, and then joins a thread
// that ends that mutex, too.
BOOST_AUTO_TEST_CASE(mutex_that_a_callback_has_ended_ends_again_at_once) {
  ScriptedServer server;
  lock::TableState table = table_of(server);
  const auto others = std::make_shared<Heard>();
  lock::Mutex other(table, short_lease(table, "other", others));
  bool ended = false;
  Event all;
  std::optional<Aside> last;
  auto heard = std::make_shared<Heard>();
  heard->when_lost = [&] {
    const auto its_end = other.claim_end();
    eventually([&] { return BootClock::now() >= its_end; });
    other.end();
    last.emplace([&] { other.end(); });
    ended = last->ends();
    all.set();
  };
  lock::Mutex mutex(table, short_lease(table, "x", heard));
  BOOST_TEST_REQUIRE(is_taken(mutex));
  BOOST_TEST_REQUIRE(is_taken(other));
  BOOST_TEST(all.wait());
  BOOST_TEST(ended);
}

BOOST_AUTO_TEST_SUITE_END()
