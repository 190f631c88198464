// What a table and a mutex may be made with: each bound, from both sides, and
// that nothing is sent for what can be seen here.
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::Credentials;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLeast = milliseconds::min();
constexpr milliseconds kMost = milliseconds::max();

// The field that the error of a constructor names; "none" if there is none.
template <class Make>
std::string refused_field(const Make& make) {
  const auto error = error_of(make);
  if (!error) return "none";
  BOOST_TEST((error->code() == Errc::bad_option), error->what());
  BOOST_TEST((error->code() == std::errc::invalid_argument));
  BOOST_TEST(has(error->what(), error->field()), error->what());
  return error->field();
}

// Some values of an option, all of which are taken, or none.
template <class Place, class Value>
struct Row {
  const char* field;  // That the error names; "none" if they are taken.
  Value Place::*member;
  std::vector<Value> values;
};

// On a table that sends nothing.
template <class Value>
void check(const std::vector<Row<Options, Value>>& rows) {
  const ScriptedServer server;
  const auto table = new_table_at(server);
  for (const auto& row : rows) {
    for (const Value& value : row.values) {
      Options options = on_table(table, 10s);
      options.*row.member = value;
      BOOST_TEST(
          refused_field([&] { DdbMutex mutex("x", options); }) == row.field,
          "value " << &value - row.values.data() << " of " << row.field);
    }
  }
  BOOST_TEST(server.connection_count() == 0);
}

void check(const std::vector<Row<TableOptions, std::string>>& rows) {
  const ScriptedServer server;
  for (const auto& row : rows) {
    for (const std::string& value : row.values) {
      TableOptions options = table_options(server);
      options.*row.member = value;
      BOOST_TEST(refused_field([&] { Table table(options); }) == row.field,
                 value);
    }
  }
  BOOST_TEST(server.connection_count() == 0);
}

// What a mutex on that server is told.
std::string refused(const ScriptedServer& server,
                    const std::function<void(TableOptions&, Options&)>& change,
                    const std::string& name = "x") {
  TableOptions place = table_options(server);
  Options options = unhurried(nullptr);
  change(place, options);
  return refused_field([&] {
    options.table = std::make_shared<Table>(place);
    DdbMutex mutex(name, options);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(options)

// --- A mutex's options -----------------------------------------------------

// The lease is 10 s where it is not the option.
BOOST_AUTO_TEST_CASE(times_of_a_mutex_have_bounds) {
  using Times = std::vector<Row<Options, milliseconds>>;
  check(Times{
      {"ttl", &Options::ttl, {kLeast, -1ms, 0ms, 99ms, 24h * 366 + 1ms, kMost}},
      {"none", &Options::ttl, {100ms, Options().ttl, 24h * 366}},
      {"first_poll", &Options::first_poll, {kLeast, -1ms, 0ms}},
      {"none", &Options::first_poll, {1ms}},
      {"longest_poll", &Options::longest_poll, {kLeast, 0ms}},
      {"none", &Options::longest_poll, {Options().first_poll, 24h}},
      {"patience", &Options::patience, {kLeast, -1ms}},
      {"none", &Options::patience, {0ms, kMost}},
  });
  using Optional = std::vector<Row<Options, std::optional<milliseconds>>>;
  check(Optional{
      {"request_timeout",
       &Options::request_timeout,
       {kLeast, 0ms, 5000ms, kMost}},
      {"none", &Options::request_timeout, {1ms, 4999ms}},
      {"safe_time", &Options::safe_time, {kLeast, -1ms, 5000ms, kMost}},
      {"none", &Options::safe_time, {0ms, 4999ms}},
      {"renew_after",
       &Options::renew_after,
       {kLeast, -1ms, 0ms, 5001ms, kMost}},
      {"none", &Options::renew_after, {1ms, 5000ms}},
      {"max_hold", &Options::max_hold, {kLeast, -1ms, 0ms}},
      {"none", &Options::max_hold, {1ms, kMost}},
  });
  using Limits = std::numeric_limits<int>;
  check(std::vector<Row<Options, int>>{
      {"handover_limit", &Options::handover_limit, {Limits::min(), -1}},
      {"none", &Options::handover_limit, {0, Limits::max()}},
  });
}

BOOST_AUTO_TEST_CASE(owner_is_utf8_and_host_and_pid_unless_given) {
  const std::string longest(2048, 'o');
  check(std::vector<Row<Options, std::string>>{
      {"owner", &Options::owner, {"\xff", longest + "o"}},
      {"none", &Options::owner, {"b\xc3\xb6t:1", longest}},
  });
  const ScriptedServer server;
  Options options = unhurried(new_table_at(server));
  char host[256] = {};
  BOOST_REQUIRE(gethostname(host, sizeof host - 1) == 0);
  BOOST_TEST(DdbMutex("x", options).owner() ==
             host + (":" + std::to_string(getpid())));
  options.owner = "billing, rack 7";
  BOOST_TEST(DdbMutex("x", options).owner() == "billing, rack 7");
}

BOOST_AUTO_TEST_CASE(options_that_need_another_are_refused_without_it) {
  const ScriptedServer server;
  const auto with = [&server](const std::function<void(Options&)>& change) {
    return refused(server, [&](TableOptions&, Options& o) { change(o); });
  };
  BOOST_TEST(with([](Options& o) { o.auto_renew = false; }) == "none");
  BOOST_TEST(with([](Options& o) {
               o.auto_renew = false;
               o.renew_after = 1s;
             }) == "renew_after");
  BOOST_TEST(with([](Options& o) {
               o.auto_renew = false;
               o.max_hold = 1s;
             }) == "max_hold");
  BOOST_TEST(with([](Options& o) {
               o.auto_renew = false;
               o.alive = [] { return true; };
             }) == "alive");
  BOOST_TEST(with([](Options& o) { o.only_if_exists = true; }) ==
             "only_if_exists");
  BOOST_TEST(with([](Options& o) { o.keep_row = o.only_if_exists = true; }) ==
             "none");
  BOOST_TEST(server.connection_count() == 0);
}

// --- A mutex's name --------------------------------------------------------

BOOST_AUTO_TEST_CASE(name_is_1_to_2048_bytes_of_utf8_with_the_prefix) {
  const ScriptedServer server;
  for (const std::string& prefix :
       {std::string(), TableOptions().prefix, std::string(2000, 'p')}) {
    const auto with = [&](const std::string& name) {
      return refused(
          server, [&](TableOptions& o, Options&) { o.prefix = prefix; }, name);
    };
    BOOST_TEST(with("") == "name");
    BOOST_TEST(with(std::string(2049 - prefix.size(), 'x')) == "name");
    BOOST_TEST(with(std::string(2048 - prefix.size(), 'x')) == "none");
    BOOST_TEST(with("a\xff") == "name");
    BOOST_TEST(with("a/b\"c\\d\n\xe2\x82\xac") == "none");
  }
  BOOST_TEST(server.connection_count() == 0);
}

// --- A table's options -----------------------------------------------------

BOOST_AUTO_TEST_CASE(texts_of_a_table_have_the_form_that_dynamodb_takes) {
  const std::string longest_key(255, 'k');
  check({
      {"table",
       &TableOptions::name,
       {"", "no blanks", "ab/cd", "\xc3\xb6rtchen", "quote\"d"}},
      {"none", &TableOptions::name, {"locks", "My_table-1.2", "abc"}},
      {"prefix", &TableOptions::prefix, {"\xff", "\xed\xa0\x80"}},
      {"none", &TableOptions::prefix, {"", "\xc3\xb6-"}},
      {"key",
       &TableOptions::key,
       {"", "\xff", "uuid", "expires", "lease", "owner", "ttl", "token", "data",
        longest_key + "k"}},
      {"none",
       &TableOptions::key,
       {"name", "pk", "a key", "\xc3\xb6", longest_key}},
      {"sort_key",
       &TableOptions::sort_key,
       {"name", "uuid", "data", "\xff", longest_key + "k"}},
      {"none", &TableOptions::sort_key, {"sk", ""}},
      {"sort_value", &TableOptions::sort_value, {"x"}},
      {"region",
       &TableOptions::region,
       {"eu west 1", "eu-west-1/", "eu_west_1", "-eu-west-1", "eu-west-1-",
        "a.b", "\xff", std::string(64, 'a')}},
      {"none",
       &TableOptions::region,
       {"eu-west-1", "us-gov-east-1", "xx-new-9"}},
      {"endpoint",
       &TableOptions::endpoint,
       {"127.0.0.1:8000", "ftp://x", "http://", "https://x/y z", "http://a b",
        "http://user:secret@x", "http://x?y", "http://x:99999999"}},
      {"none",
       &TableOptions::endpoint,
       {"http://127.0.0.1:8000", "https://x.example", "http://[::1]:8000/",
        "https://x/y"}},
      {"ca_file", &TableOptions::ca_file, {"/nonexistent/ca.pem"}},
      {"profile", &TableOptions::profile, {"no-such-profile-for-the-tests"}},
  });
}

BOOST_AUTO_TEST_CASE(sort_value_is_given_exactly_where_there_is_a_sort_key) {
  const ScriptedServer server;
  const auto with = [&server](const std::string& key, const std::string& usual,
                              const std::string& own) {
    return refused(server, [&](TableOptions& place, Options& options) {
      place.sort_key = key;
      place.sort_value = usual;
      options.sort_value = own;
    });
  };
  BOOST_TEST(with("", "", "own") == "sort_value");
  BOOST_TEST(with("sk", "", "") == "sort_value");
  BOOST_TEST(with("sk", "", "own") == "none");
  BOOST_TEST(with("sk", "usual", "") == "none");
  BOOST_TEST(with("sk", "", std::string(1024, 'x')) == "none");
  BOOST_TEST(with("sk", "", std::string(1025, 'x')) == "sort_value");
  BOOST_TEST(server.connection_count() == 0);
}

// --- Keys ------------------------------------------------------------------

// A line break would end the header that it stands in.
BOOST_AUTO_TEST_CASE(keys_of_a_source_that_fit_no_header_are_not_sent) {
  const ScriptedServer server;
  for (std::string Credentials::*member :
       {&Credentials::access_key_id, &Credentials::secret_access_key,
        &Credentials::session_token}) {
    TableOptions options = table_options(server);
    options.credentials_source = [member] {
      Credentials keys = {"AKIDFROMSOURCE", "s", "tok"};
      keys.*member = "k\r\nX-Evil: 1";
      return keys;
    };
    DdbMutex mutex("x", unhurried(std::make_shared<Table>(options)));
    BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::no_keys));
  }
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(source_of_keys_goes_before_given_ones) {
  ScriptedServer server;
  TableOptions options = table_options(server);
  std::atomic<int> asked{0};
  options.credentials_source = [&asked]() -> std::optional<Credentials> {
    return Credentials{"AKIDFROMSOURCE" + std::to_string(++asked), "s", "tok"};
  };
  DdbMutex mutex("x", unhurried(std::make_shared<Table>(options)));
  mutex.lock();
  mutex.release();
  const auto requests = server.requests();
  BOOST_REQUIRE(requests.size() == 3u);
  for (const auto& request : requests) {
    const std::string signature = request.header("Authorization").value_or("");
    BOOST_TEST(has(signature, "AKIDFROMSOURCE1"), signature);
    BOOST_TEST(request.header("X-Amz-Security-Token").value_or("") == "tok");
  }
  BOOST_TEST(asked == 1);  // What it gave serves for a minute.
}

// --- What options do -------------------------------------------------------

BOOST_AUTO_TEST_SUITE_END()
