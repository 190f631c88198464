// The contract of the public types, as the compiler sees it, and what the
// standard library makes of them.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <ratio>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"

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

static_assert(!kMoves<DdbMutex>);
static_assert(!kMoves<Table>);
static_assert(!kMoves<ddbmutex::detail::Wait>);
static_assert(!std::is_default_constructible_v<DdbMutex>);
static_assert(std::is_constructible_v<DdbMutex, const char*>);
static_assert(std::is_constructible_v<DdbMutex, std::string>);
static_assert(
    std::is_constructible_v<DdbMutex, std::string, ddbmutex::Options>);
static_assert(!std::is_convertible_v<std::string, DdbMutex>);
static_assert(!std::is_convertible_v<const char*, DdbMutex>);
static_assert(std::is_default_constructible_v<Table>);
static_assert(!std::is_convertible_v<ddbmutex::TableOptions, Table>);
static_assert(std::is_nothrow_destructible_v<DdbMutex>);
static_assert(std::is_nothrow_destructible_v<Table>);
static_assert(!std::is_polymorphic_v<DdbMutex> &&
              !std::is_polymorphic_v<Table>);

using Mutex = DdbMutex&;
using Watched = const DdbMutex&;
using Ec = std::error_code&;
using Time = nanoseconds;
using Milliseconds = std::chrono::milliseconds;

// BasicLockable, Lockable, TimedLockable, by the standard's own words.
static_assert(std::is_void_v<decltype(std::declval<Mutex>().lock())>);
static_assert(std::is_void_v<decltype(std::declval<Mutex>().unlock())>);
static_assert(std::is_same_v<bool, decltype(std::declval<Mutex>().try_lock())>);
static_assert(
    std::is_same_v<bool, decltype(std::declval<Mutex>().try_lock_for(1ms))>);
static_assert(
    std::is_same_v<bool, decltype(std::declval<Mutex>().try_lock_until(
                             std::chrono::system_clock::now()))>);

static_assert(noexcept(std::declval<Mutex>().unlock()));
static_assert(noexcept(std::declval<Mutex>().cancel()));
static_assert(noexcept(std::declval<Mutex>().release(std::declval<Ec>())));
static_assert(noexcept(std::declval<Watched>().owns_lock()));
static_assert(noexcept(std::declval<Watched>().remaining()));
static_assert(noexcept(std::declval<Watched>().require(std::declval<Time>(),
                                                       std::declval<Ec>())));
static_assert(noexcept(std::declval<Watched>().in_danger()));
static_assert(noexcept(std::declval<Watched>().fencing_token()));
static_assert(noexcept(std::declval<Watched>().name()));
static_assert(noexcept(std::declval<Watched>().owner()));
static_assert(
    noexcept(std::declval<Table&>().close(std::declval<Milliseconds>())));
static_assert(noexcept(std::declval<const Table&>().name()));
static_assert(noexcept(ddbmutex::name_of(ddbmutex::Loss::taken)));
static_assert(noexcept(ddbmutex::category()));
// These throw.
static_assert(!noexcept(std::declval<Mutex>().lock()));
static_assert(!noexcept(std::declval<Mutex>().try_lock()));
static_assert(!noexcept(std::declval<Mutex>().release()));
static_assert(!noexcept(std::declval<Mutex>().renew()));
static_assert(!noexcept(std::declval<Mutex>().ensure(std::declval<Time>())));
static_assert(!noexcept(std::declval<Mutex>().guarded_write("[]")));
static_assert(!noexcept(std::declval<Watched>().require(std::declval<Time>())));

static_assert(
    std::is_same_v<bool, decltype(std::declval<Watched>().owns_lock())>);
static_assert(
    std::is_same_v<nanoseconds, decltype(std::declval<Watched>().remaining())>);
static_assert(std::is_same_v<const std::string&,
                             decltype(std::declval<Watched>().name())>);

// A lock is neither asked of nor taken through a const reference.
template <class T, class = void>
constexpr bool kLocks = false;
template <class T>
constexpr bool kLocks<T, std::void_t<decltype(std::declval<T>().lock())>> =
    true;
template <class T, class = void>
constexpr bool kUnlocks = false;
template <class T>
constexpr bool kUnlocks<T, std::void_t<decltype(std::declval<T>().unlock())>> =
    true;
static_assert(kLocks<DdbMutex&> && !kLocks<const DdbMutex&>);
static_assert(kUnlocks<DdbMutex&> && !kUnlocks<const DdbMutex&>);

static_assert(std::is_error_code_enum_v<Errc>);
static_assert(!std::is_error_condition_enum_v<Errc>);
static_assert(std::is_convertible_v<Errc, std::error_code>);
static_assert(noexcept(make_error_code(Errc::closed)));
static_assert(static_cast<int>(Errc::bad_option) != 0);  // 0 is success.

static_assert(std::is_base_of_v<std::system_error, Error>);
static_assert(std::is_convertible_v<Error*, std::system_error*>);
static_assert(std::is_nothrow_copy_constructible_v<Error>);
static_assert(std::is_nothrow_copy_assignable_v<Error>);

// --- What the compiler at hand is given ------------------------------------

struct Ended {
  int status = -1;
  std::string out;
};

Ended run(const std::string& command) {
  Ended ended;
  FILE* output = popen((command + " 2>&1").c_str(), "r");
  BOOST_REQUIRE(output != nullptr);
  char bytes[4096];
  std::size_t count;
  while ((count = fread(bytes, 1, sizeof bytes, output)) > 0) {
    ended.out.append(bytes, count);
  }
  ended.status = pclose(output);
  return ended;
}

// Of the project: this file is tests/test_contract.cpp.
std::string root() {
  return std::filesystem::absolute(__FILE__).parent_path().parent_path();
}

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// What this program was compiled by, and checked with.
std::string compiler() {
#if defined(__clang__)
  return variable("CXX", "clang++");
#else
  return variable("CXX", "g++");
#endif
}

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
  return "cd '" + root() + "' && " + compiler() + " -std=" + standard +
         " -pthread -I. -Wall -Wextra -Wpedantic -Wshadow -Wconversion"
         " -Werror" +
         sanitizers();
}

// Compiles a source of these lines.
Ended check(const std::string& standard, const std::string& lines) {
  const tests::Home home;
  const std::string file = home.write("source.cpp", lines);
  return run(compile(standard) + " -fsyntax-only " + file);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(contract)

// --- The header ------------------------------------------------------------

BOOST_AUTO_TEST_CASE(header_compiles_alone_and_twice) {
  const std::string lines =
      "#include \"ddbmutex.hpp\"\n"
      "#include \"ddbmutex.hpp\"\n"
      "int main() { ddbmutex::DdbMutex(\"x\").cancel(); }\n";
  for (const char* standard : {"c++17", "c++20"}) {
    const Ended ended = check(standard, lines);
    BOOST_TEST(ended.status == 0, standard << ": " << ended.out);
  }
}

// It comes with a compiler, not with curl, OpenSSL or RapidJSON.
BOOST_AUTO_TEST_CASE(header_includes_the_standard_library_only) {
  std::ifstream header(root() + "/ddbmutex.hpp");
  BOOST_REQUIRE(header.good());
  int includes = 0;
  for (std::string line; std::getline(header, line);) {
    if (line.rfind("#include", 0) != 0) continue;
    ++includes;
    BOOST_TEST(line.find('"') == line.npos, line);
    BOOST_TEST(line.find(".h>") == line.npos, line);
    BOOST_TEST(line.find('/') == line.npos, line);
  }
  BOOST_TEST(includes >= 5);
}

BOOST_AUTO_TEST_CASE(unused_try_lock_is_warned_of) {
  const std::string before =
      "#include \"ddbmutex.hpp\"\n"
      "#include <chrono>\n"
      "const auto now = std::chrono::steady_clock::now();\n"
      "const auto no = std::chrono::milliseconds(1);\n"
      "void f(ddbmutex::DdbMutex& m, std::error_code& e) {\n";
  const std::vector<std::string> calls = {"m.try_lock()",
                                          "m.try_lock(e)",
                                          "m.try_lock_for(no)",
                                          "m.try_lock_for(no, e)",
                                          "m.try_lock_until(now)",
                                          "m.try_lock_until(now, e)",
                                          "m.try_lock_past_lease(no)",
                                          "m.try_lock_past_lease(no, e)"};
  std::string used = before;
  std::string unused = before;
  for (const std::string& call : calls) {
    used += "  if (" + call + ") return;\n";
    unused += "  " + call + ";\n";
  }
  const Ended good = check("c++17", used + "}\n");
  BOOST_TEST(good.status == 0, good.out);
  const Ended bad = check("c++17", unused + "}\n");
  BOOST_TEST(bad.status != 0);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    // The first call is in line 6.
    const std::string at = "source.cpp:" + std::to_string(6 + i) + ":";
    const std::size_t told = bad.out.find(at);
    BOOST_TEST_REQUIRE(told != bad.out.npos, calls[i] << ": " << bad.out);
    const std::string line =
        bad.out.substr(told, bad.out.find('\n', told) - told);
    BOOST_TEST(line.find("nodiscard") != line.npos, line);
  }
}

// The library is of C++17; whoever compiles as C++20 has the overloads.
BOOST_AUTO_TEST_CASE(stop_tokens_work_in_a_program_of_cpp20) {
  const std::string build = variable("DDBMUTEX_BUILD", "");
  BOOST_REQUIRE_MESSAGE(!build.empty(), "DDBMUTEX_BUILD names no build");
  const std::string library =
      std::filesystem::absolute(build).string() + "/libddbmutex.a";
  const tests::Home home;
  const std::string program = (home.root / "stop_token").string();
  const Ended compiled =
      run(compile("c++20") + " tests/programs/stop_token.cpp '" + library +
          "' -lcurl -lcrypto -o " + program);
  BOOST_REQUIRE_MESSAGE(compiled.status == 0, compiled.out);
  const Engine& engine = Engine::running(tests::any_engine_kind());
  const auto keys = engine.credentials();
  BOOST_REQUIRE(keys.has_value());
  const Ended ended =
      run("timeout 300 env AWS_ACCESS_KEY_ID='" + keys->access_key_id +
          "' AWS_SECRET_ACCESS_KEY='" + keys->secret_access_key +
          "' AWS_SESSION_TOKEN='" + keys->session_token + "' " + program + " " +
          engine.url() + " " + engine.region() + " " + engine.table());
  BOOST_TEST(ended.out ==
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

BOOST_AUTO_TEST_CASE(lock_guard_and_unique_lock_hold_and_give_back) {
  Two two;
  {
    const std::lock_guard guard(two.a);
    std::unique_lock lock(two.b, std::defer_lock);
    BOOST_TEST(!two.b.owns_lock());
    BOOST_TEST(lock.try_lock());
    lock.unlock();
    BOOST_TEST(lock.try_lock_for(20s));
    lock.unlock();
    BOOST_TEST(lock.try_lock_until(std::chrono::system_clock::now() + 20s));
    BOOST_TEST(two.both());
  }
  BOOST_TEST(two.none());
  BOOST_TEST(two.free());
}

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

BOOST_AUTO_TEST_CASE(condition_variable_any_waits_without_the_lock) {
  Two two;
  std::condition_variable_any changed;
  bool waiting = false;  // Both guarded by two.a.
  bool ready = false;
  tests::Aside aside([&] {
    std::unique_lock lock(two.a);
    waiting = true;
    changed.wait(lock, [&ready] { return ready; });
    if (!two.a.owns_lock()) throw Error(Errc::lease_lost, "not locked again");
  });
  BOOST_TEST(tests::eventually([&] {
    const std::lock_guard guard(two.a);
    return waiting;
  }));
  {
    const std::lock_guard guard(two.a);
    ready = true;
  }
  changed.notify_all();
  BOOST_TEST(aside.thrown() == "none");
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

BOOST_AUTO_TEST_CASE(error_keeps_field_and_request_id_through_copies) {
  Error error(Errc::bad_option, "it is wrong", "ttl", "id-7");
  const Error copy = error;
  const Error moved = std::move(error);
  // Also what is moved from can be asked.
  for (const Error& each : {copy, moved, error}) {  // NOLINT
    BOOST_TEST(each.field() == "ttl");
    BOOST_TEST(each.request_id() == "id-7");
  }
  BOOST_TEST((copy.code() == Errc::bad_option));
  BOOST_TEST(tests::has(copy.what(), "it is wrong"));
  const Error plain(Errc::closed, "x");
  BOOST_TEST(plain.field().empty());
  BOOST_TEST(plain.request_id().empty());
}

BOOST_AUTO_TEST_CASE(losses_have_names) {
  using ddbmutex::Loss;
  BOOST_TEST(name_of(Loss::expired) == std::string("expired"));
  BOOST_TEST(name_of(Loss::taken) == std::string("taken"));
  BOOST_TEST(name_of(Loss::deleted) == std::string("deleted"));
}

BOOST_AUTO_TEST_SUITE_END()
