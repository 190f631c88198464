// What goes wrong, and what a caller is told of it: by exception and by code,
// in words, at once or after patience, and never as "held by another".
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/errors.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/keyed_table.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Error;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

// What each way to ask for the lock throws.
std::map<std::string, std::string> thrown_by_all(DdbMutex& mutex) {
  return {{"lock", thrown_by([&] { mutex.lock(); })},
          {"try_lock", thrown_by([&] { (void)mutex.try_lock(); })},
          {"try_lock_for", thrown_by([&] { (void)mutex.try_lock_for(5s); })}};
}

void check_all_throw(DdbMutex& mutex, Errc code) {
  for (const auto& [call, thrown] : thrown_by_all(mutex)) {
    BOOST_TEST(thrown == words(code), call << ": " << thrown);
  }
  BOOST_TEST(!mutex.owns_lock());
}

Options impatient(const std::shared_ptr<Table>& table,
                  milliseconds patience = 0ms) {
  Options options = unhurried(table);
  options.patience = patience;
  return options;
}

std::string describe_table(const std::string& more) {
  return R"({"Table":{"TableName":"locks","TableStatus":"ACTIVE",)"
         R"("KeySchema":[{"AttributeName":"name","KeyType":"HASH"}],)"
         R"("AttributeDefinitions":[{"AttributeName":"name",)"
         R"("AttributeType":"S"}])" +
         more + "}}";
}

Reply ttl_switched_on() {
  return Reply::ok(
      R"({"TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}})");
}

// What fails is PutItem alone, so that what may have been applied is taken back
// at once, and nothing is left for the table's end to wait for.
Handler puts_get(std::function<Reply()> reply) {
  return [reply](const SeenRequest& request) {
    return action_of(request) == "PutItem" ? reply() : Reply::ok("{}");
  };
}

// The time may be up amid a request as well as between two.
bool is_of_a_failing_server(const std::string& thrown) {
  return thrown == words(Errc::unavailable) || thrown == words(Errc::timed_out);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mutex_errors)

// --- The table -------------------------------------------------------------

BOOST_DATA_TEST_CASE(missing_table_is_an_error_that_names_it, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const std::string none = engine.missing_table();
  const auto table = table_at_name(engine, none);
  DdbMutex mutex("x", unhurried(table));
  check_all_throw(mutex, Errc::no_table);
  Options strict = unhurried(table_at_name(engine, none));
  strict.keep_row = strict.only_if_exists = true;
  DdbMutex existing("x", strict);
  check_all_throw(existing, Errc::no_table);
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == std::errc::no_such_file_or_directory));
  BOOST_TEST(has(error->what(), '"' + none + '"'), error->what());
  BOOST_TEST(has(error->what(), "\"x\""), error->what());
  BOOST_TEST(error->field() == "");
  BOOST_TEST(!table->exists());
  BOOST_TEST(thrown_by([&] { table->inspect("x"); }) == words(Errc::no_table));
}

BOOST_DATA_TEST_CASE(table_of_another_key_is_wrong_and_left_alone, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  for (const std::vector<KeyPart>& key : std::vector<std::vector<KeyPart>>{
           {{"id", "S"}}, {{"name", "N"}}, {{"name", "S"}, {"at", "N"}}}) {
    const KeyedTable keyed(engine, key);
    const auto table = keyed.new_table();
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { table->exists(); }, [&] { table->create(); }}) {
      const auto error = error_of(call);
      BOOST_REQUIRE(error.has_value());
      BOOST_TEST((error->code() == Errc::wrong_table), error->what());
      BOOST_TEST(has(error->what(), keyed.name()), error->what());
    }
    DdbMutex mutex("x", unhurried(table));
    check_all_throw(mutex, Errc::wrong_table);
    BOOST_TEST(thrown_by([&] { table->inspect("x"); }) ==
               words(Errc::wrong_table));
  }
}

BOOST_DATA_TEST_CASE(created_table_locks_and_is_created_once, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = "ddbmutex-test-" + fresh_name();
  const auto table = table_at_name(engine, name);
  BOOST_TEST(!table->exists());
  table->create();
  BOOST_TEST(table->exists());
  DdbMutex mutex("x", unhurried(table));
  mutex.lock();
  table->create();  // Is there already, and stays as it is.
  std::error_code ec = Errc::closed;
  table->create(ec);
  BOOST_TEST(!ec);
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(table->inspect("x").exists);
  BOOST_TEST(table->stats().other >= 4u);
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  engine.delete_table(name);
}

BOOST_AUTO_TEST_CASE(created_table_is_cleaned_up_by_its_ttl) {
  const auto kinds = engine_kinds();
  if (kinds.front() != EngineKind::dynoxide) return;  // The one that has it.
  Engine& engine = Engine::running(EngineKind::dynoxide);
  const std::string name = "ddbmutex-test-" + fresh_name();
  table_at_name(engine, name)->create();
  const std::string told = engine.must_call(
      "DescribeTimeToLive", R"({"TableName":")" + name + R"("})");
  BOOST_TEST(has(told, R"("ttl")"), told);
  BOOST_TEST(has(told, R"("ENABLED")"), told);
  engine.delete_table(name);
}

BOOST_AUTO_TEST_CASE(table_with_late_replicas_is_refused_unless_allowed) {
  ScriptedServer server([](const SeenRequest& request) {
    if (action_of(request) == "UpdateTimeToLive") return ttl_switched_on();
    return Reply::ok(describe_table(
        R"(,"GlobalTableVersion":"2019.11.21","Replicas":)"
        R"([{"RegionName":"eu-west-1","ReplicaStatus":"ACTIVE"}])"));
  });
  TableOptions options = table_options(server);
  Table table(options);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { table.exists(); }, [&] { table.create(); }}) {
    const auto error = error_of(call);
    BOOST_REQUIRE(error.has_value());
    BOOST_TEST((error->code() == Errc::replicated_table), error->what());
    BOOST_TEST((error->code() == std::errc::invalid_argument));
    BOOST_TEST(has(error->what(), "\"locks\""), error->what());
  }
  options.allow_replicas = true;
  Table allowed(options);
  BOOST_TEST(allowed.exists());
  BOOST_TEST(count_of(server, "CreateTable") == 0);
}

BOOST_AUTO_TEST_CASE(table_with_consistent_replicas_is_as_good_as_one) {
  ScriptedServer server([](const SeenRequest&) {
    return Reply::ok(describe_table(
        R"(,"GlobalTableVersion":"2019.11.21","MultiRegionConsistency":)"
        R"("STRONG","Replicas":[{"RegionName":"eu-west-1"}])"));
  });
  BOOST_TEST(table_at(server)->exists());
}

// --- What DynamoDB refuses -------------------------------------------------

BOOST_AUTO_TEST_CASE(refusal_is_told_at_once_with_words_and_request_id) {
  const std::map<std::string, Errc> codes = {
      {"AccessDeniedException", Errc::access_denied},
      {"UnrecognizedClientException", Errc::bad_keys},
      {"InvalidSignatureException", Errc::bad_keys},
      {"ExpiredTokenException", Errc::expired_keys},
      {"ResourceNotFoundException", Errc::no_table},
      {"ValidationException", Errc::bad_request},
      {"UnknownOperationException", Errc::not_supported},
  };
  for (const auto& [code, errc] : codes) {
    ScriptedServer server(
        [code = code](const SeenRequest&) { return failure(400, code); });
    const auto table = table_at(server);
    DdbMutex mutex("nightly", unhurried(table));
    const auto error = error_of([&] { mutex.lock(); });
    BOOST_REQUIRE_MESSAGE(error.has_value(), code);
    BOOST_TEST((error->code() == errc), error->what());
    BOOST_TEST(has(error->what(), "\"nightly\""), error->what());
    BOOST_TEST(has(error->what(), "\"locks\""), error->what());
    BOOST_TEST(has(error->what(), "as the test wants"), error->what());
    BOOST_TEST(has(error->request_id(), "0001"), error->request_id());
    BOOST_TEST(has(error->what(), error->request_id()), error->what());
    BOOST_TEST(server.request_count() == 1);
    check_all_throw(mutex, errc);
    BOOST_TEST(server.request_count() == 4);
    BOOST_TEST(thrown_by([&] { table->inspect("x"); }) == words(errc));
  }
}

BOOST_AUTO_TEST_CASE(error_shows_no_key) {
  ScriptedServer server(
      [](const SeenRequest&) { return failure(400, "AccessDeniedException"); });
  TableOptions options = table_options(server);
  options.credentials = {"AKIDEXAMPLE", "topsecretkey", "topsecrettoken"};
  DdbMutex mutex("x", unhurried(std::make_shared<Table>(options)));
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST(!has(error->what(), "topsecret"), error->what());
}

// --- Forms without exceptions ----------------------------------------------

BOOST_AUTO_TEST_CASE(error_code_forms_tell_the_same_and_do_not_throw) {
  ScriptedServer server(
      [](const SeenRequest&) { return failure(400, "AccessDeniedException"); });
  const auto table = table_at(server);
  DdbMutex mutex("x", unhurried(table));
  const std::vector<std::function<void(std::error_code&)>> calls = {
      [&](std::error_code& ec) { mutex.lock(ec); },
      [&](std::error_code& ec) { BOOST_TEST(!mutex.try_lock(ec)); },
      [&](std::error_code& ec) { BOOST_TEST(!mutex.try_lock_for(5s, ec)); },
      [&](std::error_code& ec) {
        BOOST_TEST(
            !mutex.try_lock_until(std::chrono::steady_clock::now() + 5s, ec));
      },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::error_code ec;
    BOOST_CHECK_NO_THROW(calls[i](ec));
    BOOST_TEST((ec == Errc::access_denied), i << ": " << ec.message());
    const std::string told = mutex.last_error();
    BOOST_TEST(has(told, "as the test wants"), told);
    BOOST_TEST(has(told, "\"x\""), told);
  }
  // As what() of the other form, but for the request's own id.
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  const std::string what = error->what();
  const std::string told = mutex.last_error();
  BOOST_TEST(what.substr(0, what.find("(request")) ==
             told.substr(0, told.find("(request")));

  std::error_code ec;
  BOOST_CHECK_NO_THROW(table->create(ec));
  BOOST_TEST((ec == Errc::access_denied));
  BOOST_TEST(has(table->last_error(), "as the test wants"));
  ec.clear();
  BOOST_CHECK_NO_THROW(BOOST_TEST(!table->exists(ec)));
  BOOST_TEST((ec == Errc::access_denied));
  ec.clear();
  BOOST_CHECK_NO_THROW(BOOST_TEST(!table->inspect("x", ec).exists));
  BOOST_TEST((ec == Errc::access_denied));
}

BOOST_AUTO_TEST_CASE(error_code_is_cleared_by_success) {
  ScriptedServer server;
  DdbMutex mutex("x", unhurried(table_at(server)));
  BOOST_TEST(mutex.last_error() == "");
  const auto cleared = [](const auto& call) {
    std::error_code ec = Errc::closed;
    call(ec);
    return !ec;
  };
  using Ec = std::error_code&;
  BOOST_TEST(cleared([&](Ec ec) { mutex.lock(ec); }));
  BOOST_TEST(cleared([&](Ec ec) { mutex.require(1s, ec); }));
  BOOST_TEST(cleared([&](Ec ec) { mutex.release(ec); }));
  BOOST_TEST(cleared([&](Ec ec) { BOOST_TEST(mutex.try_lock(ec)); }));
}

// Nothing but their words is stored: keys are looked for when they are needed.
BOOST_AUTO_TEST_CASE(calls_on_a_mutex_never_locked_look_for_no_keys) {
  ScriptedServer server;
  const Home home;
  const ProcessVariable at_home("HOME", home.root.c_str());
  const ProcessVariable no_id("AWS_ACCESS_KEY_ID", nullptr);
  const ProcessVariable no_secret("AWS_SECRET_ACCESS_KEY", nullptr);
  TableOptions options = table_options(server);
  options.credentials = {};
  DdbMutex mutex("x", unhurried(std::make_shared<Table>(options)));
  std::error_code ec;
  mutex.require(0s, ec);
  BOOST_TEST((ec == Errc::not_held), ec.message());
  BOOST_TEST(mutex.last_error() ==
             R"(cannot rely on "x" in table "locks": not held)");
  mutex.release(ec);
  BOOST_TEST((ec == Errc::not_held), ec.message());
  BOOST_TEST(mutex.last_error() ==
             R"(cannot release "x" in table "locks": not held)");
  BOOST_TEST(mutex.owner() != "");
  mutex.unlock();
  const ProcessVariable id("AWS_ACCESS_KEY_ID", "AKIDLATER");
  const ProcessVariable secret("AWS_SECRET_ACCESS_KEY", "secret");
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  const auto signature = server.requests().at(0).header("Authorization");
  BOOST_TEST(has(signature.value_or(""), "AKIDLATER"));
}

BOOST_AUTO_TEST_CASE(unlock_leaves_its_error_in_words) {
  ScriptedServer server([](const SeenRequest& request) {
    return action_of(request) == "DeleteItem"
               ? failure(400, "AccessDeniedException")
               : Reply::ok("{}");
  });
  DdbMutex mutex("x", unhurried(table_at(server)));
  mutex.lock();
  mutex.unlock();
  BOOST_TEST(has(mutex.last_error(), "as the test wants"), mutex.last_error());
  BOOST_TEST(!mutex.owns_lock());
}

// --- Passing errors --------------------------------------------------------

BOOST_AUTO_TEST_CASE(passing_errors_are_borne_with) {
  ScriptedServer server;
  server.script(failure(500, "InternalServerError"));
  server.script(Reply::error(503, "<html></html>"));
  server.script(Reply::gone(Ending::reset));
  server.script(Reply::ok("<html>Please log in</html>"));
  DdbMutex mutex("x", unhurried(table_at(server)));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(count_of(server, "PutItem") == 5);
  mutex.release();
  server.script(failure(500, "InternalServerError"));
  BOOST_TEST(mutex.try_lock_for(kPlenty));
  mutex.release();
}

BOOST_AUTO_TEST_CASE(try_lock_bears_with_them_within_its_request_timeout) {
  ScriptedServer server;
  server.script(failure(500, "InternalServerError"));
  Options options = unhurried(table_at(server));
  options.request_timeout = 10s;
  DdbMutex mutex("x", options);
  BOOST_TEST(mutex.try_lock());
  BOOST_TEST(count_of(server, "PutItem") == 2);
}

BOOST_AUTO_TEST_CASE(without_patience_there_is_one_attempt) {
  const std::vector<std::pair<Errc, std::function<Reply()>>> cases = {
      {Errc::unavailable, [] { return server_failure(); }},
      {Errc::unavailable, [] { return Reply::error(502, "<html></html>"); }},
      {Errc::throttled, [] { return failure(400, "ThrottlingException"); }},
      {Errc::disconnected, [] { return Reply::gone(Ending::reset); }},
      {Errc::disconnected, [] { return Reply::gone(Ending::close); }},
      {Errc::bad_answer, [] { return Reply::ok("<html></html>"); }},
  };
  for (const auto& [errc, reply] : cases) {
    ScriptedServer server(puts_get(reply));
    DdbMutex mutex("x", impatient(table_at(server)));
    const auto error = error_of([&] { mutex.lock(); });
    BOOST_REQUIRE(error.has_value());
    BOOST_TEST((error->code() == errc), error->what());
    BOOST_TEST(count_of(server, "PutItem") == 1);
    BOOST_TEST(!mutex.owns_lock());
  }
}

BOOST_AUTO_TEST_CASE(server_that_is_not_there_is_unreachable) {
  ScriptedServer server;
  const auto table = new_table_at(server);
  server.stop();
  DdbMutex mutex("x", impatient(table, 100ms));
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::unreachable), error->what());
  BOOST_TEST((error->code() == std::errc::host_unreachable));
  // Where the time is up between two attempts, that is what is told.
  BOOST_TEST(undisturbed(20ms, [&] {
               const std::string thrown =
                   thrown_by([&] { (void)mutex.try_lock_for(400ms); });
               return thrown == words(Errc::unreachable) ? "" : thrown;
             }) == "");
  BOOST_TEST(table->stats().requests() == 0u);
}

BOOST_AUTO_TEST_CASE(host_without_an_address_is_unreachable) {
  const FakeNames nobody(std::vector<std::string>{});
  DdbMutex mutex("x",
                 impatient(new_table_at(std::string("http://nowhere.test/"))));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::unreachable));
}

BOOST_AUTO_TEST_CASE(patience_is_a_time_without_a_break) {
  ScriptedServer server(puts_get(server_failure));
  DdbMutex mutex("x", impatient(table_at(server), 3s));
  std::string thrown;
  BOOST_TEST(
      returns_within(3s, [&] { thrown = thrown_by([&] { mutex.lock(); }); }));
  BOOST_TEST(thrown == words(Errc::unavailable));
  BOOST_TEST(count_of(server, "PutItem") >= 2);
}

// Patience is of lock() alone: timed forms have their deadline.
BOOST_AUTO_TEST_CASE(timed_wait_goes_on_past_patience) {
  ScriptedServer server;
  DdbMutex mutex("x", impatient(table_at(server), 0ms));
  for (const std::chrono::hours time : {1h, std::chrono::hours::max()}) {
    for (int i = 0; i < 3; ++i) server.script(server_failure());
    BOOST_TEST(thrown_by([&] { BOOST_TEST(mutex.try_lock_for(time)); }) ==
               "none");
    mutex.unlock();
  }
}

BOOST_AUTO_TEST_CASE(timed_wait_that_heard_of_a_holder_and_then_nothing_fails) {
  std::atomic<int> count{0};
  ScriptedServer server([&count](const SeenRequest& request) {
    if (action_of(request) == "DeleteItem") return Reply::ok("{}");
    return ++count <= 1 ? held_by_another(request) : server_failure();
  });
  Options options = unhurried(table_at(server));
  options.first_poll = options.longest_poll = 5ms;
  DdbMutex mutex("x", options);
  const std::string thrown = thrown_by([&] { (void)mutex.try_lock_for(2s); });
  BOOST_TEST(is_of_a_failing_server(thrown), thrown);
}

// Nothing has failed: what was heard of the holder is all that there is.
BOOST_AUTO_TEST_CASE(timed_wait_that_ends_amid_a_look_is_false) {
  ScriptedServer server([](const SeenRequest& request) {
    return action_of(request) == "GetItem" ? hanging()
                                           : held_by_another(request);
  });
  Options options = unhurried(table_at(server));
  options.first_poll = options.longest_poll = 1ms;
  DdbMutex mutex("x", options);
  std::error_code ec = Errc::closed;
  BOOST_TEST(!mutex.try_lock_for(3s, ec));
  BOOST_TEST(!ec, ec.message());
  BOOST_TEST(count_of(server, "GetItem") == 1);
}

// What was heard of the holder is old by then.
BOOST_AUTO_TEST_CASE(timed_wait_whose_looks_hang_one_after_the_other_fails) {
  ScriptedServer server([](const SeenRequest& request) {
    return action_of(request) == "GetItem" ? hanging()
                                           : held_by_another(request);
  });
  Options options = unhurried(table_at(server));
  options.first_poll = options.longest_poll = 1ms;
  options.request_timeout = 1s;
  DdbMutex mutex("x", options);
  std::error_code ec;
  BOOST_TEST(!mutex.try_lock_for(3500ms, ec));
  BOOST_TEST((ec == Errc::timed_out), ec.message());
  BOOST_TEST(count_of(server, "GetItem") >= 2);
}

BOOST_AUTO_TEST_CASE(server_that_hangs_is_timed_out) {
  ScriptedServer server(puts_get(hanging));
  Options options = unhurried(table_at(server));
  options.request_timeout = 150ms;
  options.patience = 0ms;
  DdbMutex mutex("x", options);
  const auto bounded = [](nanoseconds bound, const auto& call) {
    const Stopwatch watch;
    std::string thrown;
    BOOST_TEST(returns_within(bound, [&] { thrown = thrown_by(call); }));
    BOOST_TEST(thrown == words(Errc::timed_out));
    BOOST_TEST(watch.ms() >= 140);
  };
  bounded(150ms, [&] { mutex.lock(); });
  bounded(150ms, [&] { (void)mutex.try_lock(); });
  bounded(200ms, [&] { (void)mutex.try_lock_for(200ms); });
}

BOOST_AUTO_TEST_CASE(hanging_resolver_is_timed_out) {
  const FakeNames slow(FakeNames::hanging);
  Options options = unhurried(new_table_at(std::string("http://slow.test:1/")));
  options.request_timeout = 150ms;
  options.patience = 0ms;
  DdbMutex mutex("x", options);
  std::optional<Error> error;
  BOOST_TEST(
      returns_within(150ms, [&] { error = error_of([&] { mutex.lock(); }); }));
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST(
      (error->code() == Errc::timed_out || error->code() == Errc::unreachable),
      error->what());
  std::string thrown;
  BOOST_TEST(returns_within(
      150ms, [&] { thrown = thrown_by([&] { (void)mutex.try_lock(); }); }));
  BOOST_TEST(thrown != "none");
}

// --- Records that are none -------------------------------------------------

namespace {

struct BadRecord {
  const char* what;
  std::string attributes;
  const char* named;  // By the error.
};

const std::string kGoodUuid = R"("uuid":{"S":"u"},)";
const std::string kGoodExpires = R"("expires":{"N":"3900000000000000000"},)";
const std::string kGoodLease = R"("lease":{"N":"60000"})";

// A list in a list and so on: an engine takes 32 levels.
std::string nested(int levels) {
  std::string text = R"({"S":"x"})";
  for (int i = 0; i < levels; ++i) text = R"({"L":[)" + text + "]}";
  return text;
}

std::vector<BadRecord> bad_records() {
  const std::string big(380'000, 'A');
  return {
      {"nothing but its name", R"("color":{"S":"red"})", "uuid"},
      {"no expires", kGoodUuid + kGoodLease, "expires"},
      {"a uuid that is a number",
       R"("uuid":{"N":"7"},)" + kGoodExpires + kGoodLease, "uuid"},
      {"a uuid that is a list",
       R"("uuid":{"L":[]},)" + kGoodExpires + kGoodLease, "uuid"},
      {"a uuid of 2,000 bytes",
       R"("uuid":{"S":")" + std::string(2000, 'u') + R"("},)" + kGoodExpires +
           kGoodLease,
       "uuid"},
      {"expires as text",
       kGoodUuid + R"("expires":{"S":"3900000000000000000"},)" + kGoodLease,
       "expires"},
      {"expires with a fraction",
       kGoodUuid + R"("expires":{"N":"3900000000000000000.5"},)" + kGoodLease,
       "expires"},
      {"expires before 1970",
       kGoodUuid + R"("expires":{"N":"-1"},)" + kGoodLease, "expires"},
      {"expires of 38 digits",
       kGoodUuid +
           R"("expires":{"N":"99999999999999999999999999999999999999"},)" +
           kGoodLease,
       "expires"},
      {"expires of 10^125",
       kGoodUuid + R"("expires":{"N":"1E+125"},)" + kGoodLease, "expires"},
      {"a lease of 0", kGoodUuid + kGoodExpires + R"("lease":{"N":"0"})",
       "lease"},
      {"a lease of 10^15 ms",
       kGoodUuid + kGoodExpires + R"("lease":{"N":"1000000000000000"})",
       "lease"},
      {"a lease that is true",
       kGoodUuid + kGoodExpires + R"("lease":{"BOOL":true})", "lease"},
      {"380 KB of something else", R"("data":{"S":")" + big + R"("})", "uuid"},
      {"a list 30 deep", R"("uuid":)" + nested(30), "uuid"},
  };
}

}  // namespace

BOOST_DATA_TEST_CASE(row_that_is_no_record_is_an_error_and_left_alone, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  for (const BadRecord& bad : bad_records()) {
    const std::string name = fresh_name();
    write_row(engine, name, bad.attributes);
    const std::string before = raw_row(engine, name);
    DdbMutex mutex(name, unhurried(table));
    const auto error = error_of([&] { mutex.lock(); });
    BOOST_REQUIRE_MESSAGE(error.has_value(), bad.what);
    BOOST_TEST((error->code() == Errc::bad_record),
               bad.what << ": " << error->what());
    BOOST_TEST(has(error->what(), bad.named), error->what());
    BOOST_TEST(has(error->what(), name), error->what());
    BOOST_TEST(thrown_by([&] { (void)mutex.try_lock(); }) ==
               words(Errc::bad_record));
    BOOST_TEST(thrown_by([&] { (void)mutex.try_lock_for(5s); }) ==
               words(Errc::bad_record));
    // What has no uuid may be anything, and is no lock to who only looks.
    const bool says_to_be_one = has(bad.attributes, R"("uuid")");
    std::error_code ec;
    BOOST_TEST(!table->inspect(name, ec).exists, bad.what);
    BOOST_TEST((says_to_be_one ? ec == Errc::bad_record : !ec), bad.what);
    BOOST_TEST(raw_row(engine, name) == before, bad.what);
  }
}

BOOST_DATA_TEST_CASE(record_with_much_beside_it_is_a_lock_like_any_other,
                     kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  write_row(engine, name,
            record("dead", calendar() + 1h, 300ms) + R"(,"data":{"S":")" +
                std::string(380'000, 'x') + R"("},"deep":)" + nested(30));
  DdbMutex mutex(name, unhurried(table_at(engine)));
  BOOST_TEST(!mutex.try_lock());
  BOOST_TEST(mutex.try_lock_for(kPlenty));
}

BOOST_DATA_TEST_CASE(row_with_a_fencing_token_is_kept, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const std::string name = fresh_name();
  // Released, as a kept row is: who did not know would take it and drop it.
  write_row(engine, name,
            R"("uuid":{"S":"u"},"expires":{"N":"0"},"lease":{"N":"60000"},)"
            R"("token":{"N":"7"})");
  const std::string before = raw_row(engine, name);
  DdbMutex mutex(name, unhurried(table_at(engine)));
  check_all_throw(mutex, Errc::kept_row);
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST(has(error->what(), "fencing token"), error->what());
  BOOST_TEST(raw_row(engine, name) == before);
}

BOOST_AUTO_TEST_CASE(every_fault_has_its_code) {
  using ddbmutex::dynamodb::Fault;
  const struct {
    Fault fault;
    std::error_code code;
  } kFaults[] = {
      {Fault::no_keys, Errc::no_keys},
      {Fault::no_target, Errc::bad_option},
      {Fault::bad_keys, Errc::bad_keys},
      {Fault::expired_keys, Errc::expired_keys},
      {Fault::access_denied, Errc::access_denied},
      {Fault::no_table, Errc::no_table},
      {Fault::table_in_use, Errc::bad_request},
      {Fault::wrong_key, Errc::wrong_table},
      {Fault::bad_request, Errc::bad_request},
      {Fault::unknown_action, Errc::not_supported},
      {Fault::bad_certificate, Errc::bad_certificate},
      {Fault::keys_awaited, Errc::no_keys},
      {Fault::no_memory, make_error_code(std::errc::not_enough_memory)},
      {Fault::unreachable, Errc::unreachable},
      {Fault::disconnected, Errc::disconnected},
      {Fault::timed_out, Errc::timed_out},
      {Fault::throttled, Errc::throttled},
      {Fault::server_failure, Errc::unavailable},
      {Fault::conflict, Errc::unavailable},
      {Fault::bad_answer, Errc::bad_answer},
      {Fault::skewed_time, Errc::bad_keys},
      {Fault::cancelled, Errc::cancelled},
  };
  for (const auto& [fault, code] : kFaults) {
    ddbmutex::dynamodb::Answer answer;
    answer.fault = fault;
    const auto failure = ddbmutex::detail::error_of(answer, "cannot lock", "");
    BOOST_TEST((failure->code() == code), name_of(fault));
  }
}

// --- A write that DynamoDB refuses because a transaction has the item --------

// It was not applied.  Another has the lock when it is sent again.
BOOST_DATA_TEST_CASE(release_refused_for_a_transaction_has_released_nothing,
                     boost::unit_test::data::make({false, true}), keep) {
  Gate gate;
  Options options = unhurried(table_at(gate));
  options.keep_row = keep;
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  gate.once(keep ? "UpdateItem" : "DeleteItem",
            [&](Engine& engine, const SeenRequest&) {
              write_row(engine, mutex.name(),
                        live_record() + (keep ? R"(,"token":{"N":"7"})" : ""));
              return failure(400, "TransactionConflictException");
            });
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::lease_lost));
}

BOOST_AUTO_TEST_CASE(force_refused_for_a_transaction_has_freed_nothing) {
  Gate gate;
  const auto table = table_at(gate);
  DdbMutex mutex(fresh_name(), unhurried(table));
  mutex.lock();
  gate.once("DeleteItem", [&](Engine& engine, const SeenRequest&) {
    delete_row(engine, mutex.name());  // As its holder does.
    return failure(400, "TransactionConflictException");
  });
  BOOST_TEST(!table->force_unlock(table->inspect(mutex.name())));
}

BOOST_AUTO_TEST_CASE(take_refused_for_a_transaction_leaves_nothing_to_release) {
  Gate gate;
  gate.always("PutItem", [](Engine&, const SeenRequest&) {
    return failure(400, "TransactionConflictException");
  });
  {
    DdbMutex mutex(fresh_name(), impatient(table_at(gate)));
    BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::unavailable));
  }  // Waits for a release that goes on in the background.
  BOOST_TEST(count_of(gate.server(), "DeleteItem") == 0);
}

BOOST_AUTO_TEST_CASE(answer_of_400_kb_of_brackets_is_a_bad_answer) {
  const std::string brackets(400'000, '[');
  ScriptedServer server(puts_get([&brackets] {
    return Reply::error(
        400,
        R"({"__type":"ConditionalCheckFailedException","Item":)" + brackets);
  }));
  DdbMutex mutex("x", impatient(table_at(server)));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::bad_answer));
}

namespace {

// An answer that is sent a second time when send_stray() is called, as by an
// intermediary with a bug.
Reply answered_twice() {
  Reply reply;
  reply.stray = "HTTP/1.1 200 OK\r\nDate: " + http_date(0s) +
                "\r\nx-amzn-RequestId: ABCDEFGHIJKLMNOPQRSTUVWXYZ\r\n"
                "Content-Type: application/x-amz-json-1.0\r\n"
                "Content-Length: 2\r\n\r\n{}";
  return reply;
}

// A server that refuses one action, and says yes to all others.
ScriptedServer refusing(const std::string& action) {
  return ScriptedServer([action](const SeenRequest& request) {
    return action_of(request) == action ? failure(400, "AccessDeniedException")
                                        : Reply();
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(answer_that_came_before_a_take_takes_nothing) {
  ScriptedServer server = refusing("PutItem");
  const auto table = table_at(server);
  DdbMutex mutex("x", unhurried(table));
  server.script(answered_twice());
  table->inspect("y");
  server.send_stray();
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::access_denied));
  BOOST_TEST(!mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(answer_that_came_before_a_renewal_renews_nothing) {
  ScriptedServer server = refusing("UpdateItem");
  DdbMutex mutex("x", unhurried(table_at(server)));
  server.script(answered_twice());
  mutex.lock();
  server.send_stray();
  BOOST_TEST(thrown_by([&] { mutex.renew(); }) == words(Errc::access_denied));
}

BOOST_AUTO_TEST_SUITE_END()
