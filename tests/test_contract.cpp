// The contract of the public types, as the compiler sees it, and what the
// standard library makes of them.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <ratio>
#include <set>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"

using namespace std::chrono_literals;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Error;
using ddbmutex::Table;
using std::chrono::nanoseconds;
using tests::Engine;

namespace {

// --- What the compiler is asked --------------------------------------------

template <class T>
constexpr bool kMoves =
    std::is_copy_constructible_v<T> || std::is_copy_assignable_v<T> ||
    std::is_move_constructible_v<T> || std::is_move_assignable_v<T>;

static_assert(!kMoves<DdbMutex> && !kMoves<Table>);
static_assert(!std::is_convertible_v<std::string, DdbMutex>);
static_assert(!std::is_convertible_v<ddbmutex::TableOptions, Table>);
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

// --- What the compiler at hand is given ------------------------------------

std::string sanitizers() {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return " -fsanitize=thread";
#elif __has_feature(address_sanitizer)
  return " -fsanitize=address,undefined";
#endif
#endif
#if defined(__SANITIZE_THREAD__)
  return " -fsanitize=thread";
#elif defined(__SANITIZE_ADDRESS__)
  return " -fsanitize=address,undefined";
#else
  return "";
#endif
}

std::string compile(const std::string& standard) {
  return tests::compiler() + " -std=" + standard +
         " -pthread -I. -Wall -Wextra -Wpedantic -Wshadow -Wconversion"
         " -Werror" +
         sanitizers();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(contract)

// --- The header ------------------------------------------------------------

// The library is of C++17; whoever compiles as C++20 has the overloads.
BOOST_AUTO_TEST_CASE(stop_tokens_work_in_a_program_of_cpp20) {
  const std::string library = tests::program_path("../libddbmutex.a");
  const tests::Home home;
  const std::string program = (home.root / "stop_token").string();
  const tests::Ran compiled =
      tests::shell(compile("c++20") + " tests/programs/stop_token.cpp '" +
                   library + "' -lcurl -lcrypto -o " + program);
  BOOST_REQUIRE_MESSAGE(compiled.status == 0, compiled.said);
  const Engine& engine = Engine::running(tests::any_engine_kind());
  const auto keys = engine.credentials();
  BOOST_REQUIRE(keys.has_value());
  const tests::Ran ended = tests::shell(
      "timeout 300 env AWS_ACCESS_KEY_ID='" + keys->access_key_id +
      "' AWS_SECRET_ACCESS_KEY='" + keys->secret_access_key +
      "' AWS_SESSION_TOKEN='" + keys->session_token + "' " + program + " " +
      engine.url() + " " + engine.region() + " " + engine.table());
  BOOST_TEST(ended.said ==
             "stopped before, while waiting, not at all; told of a loss\n");
  BOOST_TEST(ended.status == 0);
}

// --- What the standard library makes of it ---------------------------------

namespace {

struct Two {
  Engine& engine = Engine::running(tests::any_engine_kind());
  std::shared_ptr<Table> table = tests::table_at(engine);
  const std::string name_a = tests::fresh_name();
  const std::string name_b = tests::fresh_name();
  DdbMutex a{name_a, tests::unhurried(table)};
  DdbMutex b{name_b, tests::unhurried(table)};

  bool both() const { return a.owns_lock() && b.owns_lock(); }
  bool none() const { return !a.owns_lock() && !b.owns_lock(); }
  bool free() {
    return tests::is_free(engine, name_a) && tests::is_free(engine, name_b);
  }
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
  tests::Aside aside([&] { many(two.a, two.b); });
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
  // What no code of ours is has words too.
  BOOST_TEST(!ddbmutex::category().message(0).empty());
  BOOST_TEST(!ddbmutex::category().message(1000).empty());
}

BOOST_AUTO_TEST_SUITE_END()
