// DdbMutex as its header promises it, used by one thread on both engines: what
// is sent, what is stored, who gets the lock and when.  Also its types, and
// programs with another locale.  A second Table stands for a second process,
// because the two share nothing.
#include <malloc.h>

#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <chrono>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ratio>
#include <set>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "sigv4/http_answer.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/shell.hpp"

namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Error;
using ddbmutex::LockInfo;
using ddbmutex::Options;
using ddbmutex::Stats;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// === In one thread ===========================================================

namespace {

const auto kEngines = boost::unit_test::data::make(engine_kinds());

std::string counts(const Stats& stats) {
  return "Put " + std::to_string(stats.put_item) + " Update " +
         std::to_string(stats.update_item) + " Delete " +
         std::to_string(stats.delete_item) + " Get " +
         std::to_string(stats.get_item) + " other " +
         std::to_string(stats.other);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ddb_mutex)

// --- What is sent ----------------------------------------------------------

BOOST_DATA_TEST_CASE(lock_and_unlock_are_one_put_and_one_delete, kEngines,
                     kind) {
  Gate gate(kind);
  const auto table = new_table_at(gate);
  DdbMutex first(fresh_name(), on_table(table));
  first.lock();
  first.unlock();
  // The first lock of a process begins with a look, to learn DynamoDB's time.
  BOOST_TEST(actions(gate.server()) == "GetItem PutItem DeleteItem");
  BOOST_TEST(counts(table->stats()) == "Put 1 Update 0 Delete 1 Get 1 other 0");
  BOOST_TEST(table->stats().requests() == 3u);
  DdbMutex mutex(fresh_name(), on_table(table));
  BOOST_TEST(mutex.try_lock());
  mutex.release();
  BOOST_TEST(mutex.try_lock_for(10s));
  mutex.release();
  BOOST_TEST(actions(gate.server()) ==
             "GetItem PutItem DeleteItem PutItem DeleteItem PutItem "
             "DeleteItem");
}

// --- What stands in the table ----------------------------------------------

BOOST_DATA_TEST_CASE(held_lock_is_a_row_and_a_free_one_is_none, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::string name = fresh_name();
  Options options = on_table(table);
  options.owner = "rack 7";
  DdbMutex mutex(name, options);

  const LockInfo before = table->inspect(name);
  BOOST_TEST(before.name == name);
  BOOST_TEST(!before.exists);
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(mutex.remaining().count() == 0);

  mutex.lock();
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST((mutex.remaining() <= 58750ms));
  BOOST_TEST((mutex.remaining() > 0s));
  const LockInfo held = table->inspect(name);
  BOOST_TEST(held.exists);
  BOOST_TEST(held.name == name);
  BOOST_TEST(held.owner == "rack 7");
  BOOST_TEST(held.lease.count() == 60000);
  const ddbmutex::lock::Row row = row_of(engine, name);
  BOOST_TEST(held.uuid == row.uuid);
  BOOST_TEST(held.uuid.size() == 32u);
  BOOST_TEST((held.expires == row.expires));
  BOOST_TEST((held.expires > calendar()));

  mutex.unlock();
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(mutex.remaining().count() == 0);
  BOOST_TEST(!table->inspect(name).exists);
  BOOST_TEST(raw_row(engine, name) == "");

  mutex.lock();
  BOOST_TEST(table->inspect(name).uuid != held.uuid);
}

// --- A lock that is held ---------------------------------------------------

BOOST_AUTO_TEST_CASE(destructor_unlocks) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  {
    DdbMutex mutex(name, on_table(table_at(engine)));
    mutex.lock();
    BOOST_TEST(!is_free(engine, name));
  }
  BOOST_TEST(is_free(engine, name));
}

// --- Rows that others write ------------------------------------------------

// DynamoDB's clock is known, and by that clock all of them have expired.
BOOST_DATA_TEST_CASE(row_that_is_no_record_is_never_taken, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::string rows[] = {
      R"("uuid":{"N":"7"},"expires":{"N":"1"})",
      R"("uuid":{"S":"u"},"expires":{"S":"1"})",
      R"("uuid":{"S":"u"})",
      R"("expires":{"N":"1"})",
      R"("uuid":{"S":"u"},"expires":{"N":"-1"})",
      R"("note":{"S":"not a lock"})",
      R"("uuid":{"S":"u"},"expires":{"N":"12345678901234567890123456789"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"S":"60000"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"N":"0"})",
      R"("uuid":{"S":"u"},"expires":{"N":"1"},"lease":{"N":"31622400001"})",
      R"("uuid":{"S":")" + std::string(2000, '[') + R"("},"expires":{"N":"1"})",
  };
  for (const std::string& row : rows) {
    BOOST_TEST_CONTEXT(row.substr(0, 60)) {
      const std::string name = fresh_name();
      write_row(engine, name, row);
      const std::string before = raw_row(engine, name);
      DdbMutex mutex(name, on_table(table));
      BOOST_TEST(thrown_by([&] { (void)mutex.try_lock(); }) ==
                 words(Errc::bad_record));
      BOOST_TEST(raw_row(engine, name) == before);
    }
  }
}

// --- Times to wait ---------------------------------------------------------

// The lock was last held by a thread of this process.  Nobody knows whether
// another process holds it now, so the call reports a timeout.
BOOST_AUTO_TEST_CASE(wait_in_line_and_for_no_answer_is_not_told_as_busy) {
  std::atomic<bool> away{false};
  ScriptedServer server([&](const SeenRequest& request) {
    if (away) return hanging();
    away = action_of(request) == "DeleteItem";
    return Reply::ok("{}");
  });
  Options options = on_table(table_at(server));
  options.request_timeout = 20s;
  DdbMutex mutex("x", options);
  mutex.lock();
  Aside aside([&] { (void)mutex.try_lock_for(4s); });
  BOOST_TEST_REQUIRE(aside.rests());
  mutex.unlock();
  BOOST_TEST(aside.thrown() == words(Errc::timed_out));
  server.stop();  // Ends the take in flight.
}

// --- Locks of holders that died --------------------------------------------

BOOST_DATA_TEST_CASE(poller_takes_what_it_saw_unchanged_for_a_lease, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  write_row(engine, name, record("dead", calendar() + 1h, 300ms));
  DdbMutex mutex(name, on_table(table_at(engine)));
  const Stopwatch watch;
  BOOST_TEST(!mutex.try_lock());
  BOOST_TEST(eventually([&] { return mutex.try_lock(); }));
  BOOST_TEST(watch.ms() >= 303);
}

// The waiter wakes when the lease ends, although its next poll is an hour away.
BOOST_AUTO_TEST_CASE(waiter_wakes_when_the_lease_is_over_not_a_poll_later) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  write_row(engine, name, record("dead", calendar() + 1h, 300ms));
  Options options = on_table(table_at(engine));
  options.first_poll = options.longest_poll = 1h;
  DdbMutex mutex(name, options);
  BOOST_TEST(mutex.try_lock_for(kPlenty));
}

// --- What the holder asks --------------------------------------------------

BOOST_AUTO_TEST_CASE(require_is_content_with_what_remains_and_no_more) {
  ScriptedServer server;
  DdbMutex mutex("x", on_table(table_at(server)));
  const std::string soon = words(Errc::ends_too_soon);
  const std::string none = words(Errc::not_held);
  BOOST_TEST(thrown_by([&] { mutex.require(0s); }) == none);
  mutex.lock();
  BOOST_TEST(thrown_by([&] { mutex.require(0s); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(-1h); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(nanoseconds::min()); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(1s); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.require(59401ms); }) == soon);
  BOOST_TEST(thrown_by([&] { mutex.require(nanoseconds::max()); }) == soon);
  const auto error = error_of([&] { mutex.require(60s); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(has(error->what(), " ms remain, but 60000 ms are asked for"),
             error->what());
  std::error_code ec;
  mutex.require(59401ms, ec);
  BOOST_TEST((ec == Errc::ends_too_soon));
  BOOST_TEST(mutex.owns_lock());
  mutex.require(1s, ec);
  BOOST_TEST(!ec);
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex.require(0s); }) == none);
  BOOST_TEST(thrown_by([&] { mutex.require(-1h); }) == none);
}

// As nanoseconds in 64 bits, each of these would be less than nothing.
BOOST_AUTO_TEST_CASE(time_too_long_for_nanoseconds_is_asked_for_as_it_is) {
  using std::chrono::hours;
  ScriptedServer server;
  DdbMutex mutex("x", on_table(table_at(server)));
  mutex.lock();
  const auto asks = [&](auto time) {
    const std::string soon = words(Errc::ends_too_soon);
    std::error_code ec;
    mutex.require(time, ec);
    BOOST_TEST((ec == Errc::ends_too_soon), ec.message());
    BOOST_TEST(thrown_by([&] { mutex.require(time); }) == soon);
    BOOST_TEST(thrown_by([&] { mutex.ensure(time); }) == soon);
    mutex.ensure(time, ec);
    BOOST_TEST((ec == Errc::ends_too_soon), ec.message());
    BOOST_TEST(mutex.owns_lock());
  };
  asks(hours(3'000'000));
  asks(hours::max());
  asks(std::chrono::minutes::max());
  asks(milliseconds::max());
}

BOOST_AUTO_TEST_CASE(wait_too_long_for_nanoseconds_is_not_cut_short) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  write_row(engine, name, record_without_lease(4'000'000'000s));
  const auto table = table_at(engine);
  DdbMutex mutex(name, on_table(table));
  bool got = false;
  Aside aside([&] { got = mutex.try_lock_for(std::chrono::hours::max()); });
  BOOST_TEST(
      eventually([&] { return aside.done() || table->stats().get_item > 15; }));
  BOOST_TEST(!aside.done());
  delete_row(engine, name);
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(got);
}

// --- Giving back -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(unlock_of_a_free_mutex_does_nothing) {
  ScriptedServer server;
  const auto table = table_at(server);
  DdbMutex mutex("x", on_table(table));
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::not_held));
  std::error_code ec;
  mutex.release(ec);
  BOOST_TEST((ec == Errc::not_held));
  BOOST_TEST((ec == std::errc::operation_not_permitted));
  mutex.lock();
  mutex.unlock();
  mutex.unlock();
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::not_held));
  BOOST_TEST(actions(server) == "PutItem DeleteItem");
}

BOOST_AUTO_TEST_CASE(stats_count_what_was_sent_and_what_became_of_it) {
  Gate gate;
  const auto table = new_table_at(gate);
  DdbMutex mutex(fresh_name(), on_table(table));
  gate.once("PutItem", [](Engine&, const SeenRequest&) {
    return failure(400, "ProvisionedThroughputExceededException");
  });
  gate.once("PutItem", Gate::fails());
  mutex.lock();
  BOOST_TEST(table->stats().held == 1u);
  mutex.renew();
  (void)table->inspect("x");
  mutex.unlock();

  const Stats stats = table->stats();
  // A new table's first lock looks first.
  BOOST_TEST(stats.get_item == 2u);
  BOOST_TEST(stats.put_item == 3u);
  BOOST_TEST(stats.update_item == 1u);
  BOOST_TEST(stats.delete_item == 1u);
  BOOST_TEST(stats.other == 0u);
  BOOST_TEST(stats.requests() == 7u);
  BOOST_TEST(stats.throttled == 1u);
  BOOST_TEST(stats.failed == 1u);
  BOOST_TEST(stats.retries == 2u);
  BOOST_TEST(stats.held == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// === Use by the compiler and the standard library ============================

namespace {

// --- Types -----------------------------------------------------------------

template <class T>
constexpr bool kMoves =
    std::is_copy_constructible_v<T> || std::is_copy_assignable_v<T> ||
    std::is_move_constructible_v<T> || std::is_move_assignable_v<T>;

static_assert(!kMoves<DdbMutex> && !kMoves<Table>);
static_assert(!std::is_convertible_v<std::string, DdbMutex>);
static_assert(!std::is_convertible_v<TableOptions, Table>);
static_assert(!std::is_polymorphic_v<DdbMutex> &&
              !std::is_polymorphic_v<Table>);

using Mutex = DdbMutex&;
using Watched = const DdbMutex&;
using Ec = std::error_code&;

static_assert(noexcept(std::declval<Mutex>().unlock()));
static_assert(noexcept(std::declval<Mutex>().cancel()));
static_assert(noexcept(std::declval<Mutex>().release(std::declval<Ec>())));
static_assert(noexcept(std::declval<Watched>().owns_lock()));
static_assert(noexcept(std::declval<Watched>().remaining()));
static_assert(noexcept(std::declval<Watched>().in_danger()));
static_assert(noexcept(
    std::declval<Table&>().close(std::declval<std::chrono::milliseconds>())));
static_assert(!noexcept(std::declval<Mutex>().lock()));
static_assert(!noexcept(std::declval<Mutex>().release()));

static_assert(std::is_error_code_enum_v<Errc>);
static_assert(static_cast<int>(Errc::bad_option) != 0);  // 0 is success.
static_assert(std::is_base_of_v<std::system_error, Error>);
static_assert(std::is_nothrow_copy_constructible_v<Error>);

// --- The compiler's command line -------------------------------------------

std::string compile(const std::string& standard) {
  return compiler() + " -std=" + standard +
         " -pthread -I. -Wall -Wextra -Wpedantic -Wshadow -Wconversion"
         " -Werror" +
         sanitizers();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(contract)

// --- The header ------------------------------------------------------------

// The library is compiled as C++17.  A program of C++20 has the overloads that
// take a stop token.
BOOST_AUTO_TEST_CASE(stop_tokens_work_in_a_program_of_cpp20) {
  const std::string library = program_path("../libddbmutex.a");
  const Home home;
  const std::string program = (home.root / "stop_token").string();
  const Ran compiled =
      shell(compile("c++20") + " tests/programs/stop_token.cpp '" + library +
            "' -lcurl -lcrypto -o " + program);
  BOOST_REQUIRE_MESSAGE(compiled.status == 0, compiled.said);
  const Engine& engine = Engine::running(any_engine_kind());
  const auto keys = engine.credentials();
  BOOST_REQUIRE(keys.has_value());
  const Ran ended =
      shell("timeout 300 env AWS_ACCESS_KEY_ID='" + keys->access_key_id +
            "' AWS_SECRET_ACCESS_KEY='" + keys->secret_access_key +
            "' AWS_SESSION_TOKEN='" + keys->session_token + "' " + program +
            " " + engine.url() + " " + engine.region() + " " + engine.table());
  BOOST_TEST(ended.said == "stopped before, while waiting, not at all\n");
  BOOST_TEST(ended.status == 0);
}

// --- std::lock and std::scoped_lock ----------------------------------------

namespace {

struct Two {
  Engine& engine = Engine::running(any_engine_kind());
  std::shared_ptr<Table> table = table_at(engine);
  const std::string name_a = fresh_name();
  const std::string name_b = fresh_name();
  DdbMutex a{name_a, on_table(table)};
  DdbMutex b{name_b, on_table(table)};

  bool both() const { return a.owns_lock() && b.owns_lock(); }
  bool none() const { return !a.owns_lock() && !b.owns_lock(); }
  bool free() { return is_free(engine, name_a) && is_free(engine, name_b); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(two_mutexes_are_locked_together_in_any_order) {
  Two two;
  const auto many = [&two](DdbMutex& one, DdbMutex& other) {
    for (int i = 0; i < 5; ++i) {
      const std::scoped_lock guard(one, other);
      if (!two.both()) throw Error(Errc::lease_lost, "only one of two");
    }
  };
  Aside aside([&] { many(two.a, two.b); });
  BOOST_CHECK_NO_THROW(many(two.b, two.a));
  BOOST_TEST(aside.thrown() == "none");
  std::lock(two.a, two.b);
  BOOST_TEST(two.both());
  two.a.unlock();
  BOOST_TEST(std::try_lock(two.a, two.b) == 1);  // b is held: a is given back.
  BOOST_TEST(!two.a.owns_lock());
  two.b.unlock();
  BOOST_TEST(two.free());
}

// --- Times -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(durations_saturate_and_are_rounded_up) {
  using ddbmutex::detail::nanoseconds_of;
  using std::chrono::duration;
  using std::chrono::hours;
  using Days = duration<std::int64_t, std::ratio<86400>>;
  using Pico = duration<std::int64_t, std::pico>;
  const nanoseconds longest = nanoseconds::max() - 1us;
  BOOST_TEST((nanoseconds_of(hours::max()) >= longest));
  BOOST_TEST((nanoseconds_of(Days::max()) >= longest));
  BOOST_TEST((nanoseconds_of(nanoseconds::max()) >= longest));
  BOOST_TEST((nanoseconds_of(duration<float>(HUGE_VALF)) >= longest));
  BOOST_TEST((nanoseconds_of(duration<double>::max()) >= longest));
  BOOST_TEST((nanoseconds_of(hours::min()) == 0ns));
  BOOST_TEST((nanoseconds_of(nanoseconds::min()) == 0ns));
  BOOST_TEST((nanoseconds_of(duration<double>(-HUGE_VAL)) == 0ns));
  BOOST_TEST((nanoseconds_of(duration<float>(std::nanf(""))) == 0ns));
  BOOST_TEST((nanoseconds_of(Pico(1)) == 1ns));
  BOOST_TEST((nanoseconds_of(Pico(1000)) == 1ns));
  BOOST_TEST((nanoseconds_of(Pico(1001)) == 2ns));
  BOOST_TEST((nanoseconds_of(duration<double>(0.25)) == 250ms));
  BOOST_TEST((nanoseconds_of(100 * 365 * 24h) == 100 * 365 * 24h));
  // Its count times 7e9 would overflow.
  using Odd = duration<std::int64_t, std::ratio<7, 11>>;
  BOOST_TEST((nanoseconds_of(Odd(11'000'000'000)) == 7'000'000'000s));
}

namespace {

struct UnsignedClock {
  using rep = std::uint64_t;
  using period = std::milli;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<UnsignedClock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() { return time_point(10s); }
};

}  // namespace

// The difference of two unsigned numbers is never below zero.
BOOST_AUTO_TEST_CASE(deadline_of_an_unsigned_clock_may_be_past) {
  using Time = UnsignedClock::time_point;
  using ddbmutex::detail::time_until;
  BOOST_TEST((time_until(Time(5s)) == 0ns));
  BOOST_TEST((time_until(Time(10s)) == 0ns));
  BOOST_TEST((time_until(Time(12s)) == 2s));
  // A call with a time limit never waits for ever.
  BOOST_TEST((time_until(Time::max()) < nanoseconds::max()));
  BOOST_TEST((time_until(Time::max()) > 100 * 365 * 24h));
}

// --- Errors ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(each_code_has_its_words_and_equals_its_errc) {
  const std::pair<Errc, std::errc> pairs[] = {
      {Errc::bad_option, std::errc::invalid_argument},
      {Errc::not_held, std::errc::operation_not_permitted},
      {Errc::no_keys, std::errc::permission_denied},
      {Errc::bad_keys, std::errc::permission_denied},
      {Errc::expired_keys, std::errc::permission_denied},
      {Errc::access_denied, std::errc::permission_denied},
      {Errc::no_table, std::errc::no_such_file_or_directory},
      {Errc::wrong_table, std::errc::invalid_argument},
      {Errc::unready_table, std::errc::device_or_resource_busy},
      {Errc::replicated_table, std::errc::invalid_argument},
      {Errc::bad_request, std::errc::invalid_argument},
      {Errc::not_supported, std::errc::function_not_supported},
      {Errc::bad_certificate, std::errc::permission_denied},
      {Errc::bad_record, std::errc::bad_message},
      {Errc::kept_row, std::errc::bad_message},
      {Errc::no_row, std::errc::no_such_file_or_directory},
      {Errc::condition_failed, std::errc::operation_not_permitted},
      {Errc::unreachable, std::errc::host_unreachable},
      {Errc::disconnected, std::errc::connection_reset},
      {Errc::timed_out, std::errc::timed_out},
      {Errc::throttled, std::errc::resource_unavailable_try_again},
      {Errc::unavailable, std::errc::resource_unavailable_try_again},
      {Errc::bad_answer, std::errc::protocol_error},
      {Errc::lease_lost, std::errc::operation_not_permitted},
      {Errc::ends_too_soon, std::errc::operation_not_permitted},
      {Errc::cancelled, std::errc::operation_canceled},
      {Errc::closed, std::errc::operation_canceled},
  };
  std::set<std::string> all;
  for (const auto& [code, condition] : pairs) {
    const std::error_code made = code;
    BOOST_TEST((made == condition), made.message());
    BOOST_TEST((made != std::errc::file_exists), made.message());
    BOOST_TEST((made.category() == ddbmutex::category()));
    all.insert(made.message());
  }
  BOOST_TEST(all.size() == std::size(pairs));
  BOOST_TEST(std::size(pairs) == static_cast<std::size_t>(Errc::closed));
  BOOST_TEST(ddbmutex::category().name() == std::string("ddbmutex"));
  // Numbers that are no code of ours have words, too.
  BOOST_TEST(!ddbmutex::category().message(0).empty());
  BOOST_TEST(!ddbmutex::category().message(1000).empty());
}

BOOST_AUTO_TEST_SUITE_END()

// === Locales =================================================================

// What the library sends, reads and compares is the same whatever locale the
// program has chosen: a Turkish one, in which 'I' is no upper case of 'i'.

namespace {

// Sets the C library's locale, compiled from the system's description of it.
class TurkishLocale {
 public:
  TurkishLocale()
      : made_(shell("localedef -i tr_TR -f UTF-8 '" +
                    (home_.root / "tr_TR.UTF-8").string() + "'")),
        place_("LOCPATH", home_.root.c_str()) {
    BOOST_TEST_REQUIRE(setlocale(LC_ALL, "tr_TR.UTF-8") != nullptr, made_.said);
    setlocale(LC_TIME, "C");  // The scripted server writes a Date with it.
    // Without this difference the cases below would test nothing.
    BOOST_TEST_REQUIRE(std::tolower('I') != 'i');
  }
  ~TurkishLocale() { setlocale(LC_ALL, "C"); }

 private:
  Home home_;
  const Ran made_;
  const ProcessVariable place_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(locales)

BOOST_AUTO_TEST_CASE(headers_are_found_in_a_turkish_locale_in_any_case) {
  const TurkishLocale turkish;
  sigv4::HttpAnswer answer;
  answer.headers = "X-AMZN-REQUESTID: a\nI: b\n";
  BOOST_TEST(answer.header("x-amzn-requestid") == "a");
  BOOST_TEST(answer.header("i") == "b");
  // Through the whole of a call: the error names the request.
  ScriptedServer server([](const SeenRequest&) {
    Reply reply = failure(400, "AccessDeniedException");
    reply.headers = {{"x-amzn-RequestId", ""},
                     {"X-AMZN-REQUESTID", "this-one"}};
    return reply;
  });
  DdbMutex mutex("x", on_table(new_table_at(server)));
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(error->request_id() == "this-one");
}

BOOST_AUTO_TEST_SUITE_END()
