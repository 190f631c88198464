// What a table and a mutex may be made with: each bound, from both sides, and
// that nothing is sent for what can be seen here.
#include <unistd.h>

#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
using ddbmutex::Error;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::hours;
using std::chrono::milliseconds;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

// A table on a server that nothing may reach.
struct Untouched {
  ScriptedServer server;
  std::shared_ptr<Table> table = new_table_at(server);

  ~Untouched() {
    BOOST_TEST(server.connection_count() == 0);
    BOOST_TEST(table->stats().requests() == 0u);
  }
};

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

using Change = std::function<void(Options&)>;

std::string refused(const Untouched& at, const Change& change) {
  Options options = on_table(at.table, 10s);
  change(options);
  return refused_field([&] { DdbMutex mutex("x", options); });
}

std::string name_refused(const Untouched& at, const std::string& name) {
  return refused_field([&] { DdbMutex mutex(name, unhurried(at.table)); });
}

using TableChange = std::function<void(TableOptions&)>;

std::string table_refused(const TableChange& change) {
  const ScriptedServer server;
  TableOptions options = table_options(server);
  change(options);
  const std::string field = refused_field([&] { Table table(options); });
  BOOST_TEST(server.connection_count() == 0);
  return field;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(options)

// --- A mutex's options -----------------------------------------------------

BOOST_AUTO_TEST_CASE(defaults_are_good) {
  const Untouched at;
  BOOST_TEST(refused(at, [](Options&) {}) == "none");
  BOOST_TEST(refused(at, [](Options& o) { o.ttl = Options().ttl; }) == "none");
}

BOOST_AUTO_TEST_CASE(lease_is_100_ms_to_366_days) {
  const Untouched at;
  const auto with = [&at](milliseconds ttl) {
    return refused(at, [ttl](Options& o) { o.ttl = ttl; });
  };
  for (const milliseconds bad : {milliseconds::min(), milliseconds(-1),
                                 milliseconds(0), milliseconds(99)}) {
    BOOST_TEST(with(bad) == "ttl", bad.count());
  }
  BOOST_TEST(with(hours(24 * 366) + 1ms) == "ttl");
  BOOST_TEST(with(milliseconds::max()) == "ttl");
  BOOST_TEST(with(100ms) == "none");
  BOOST_TEST(with(hours(24 * 366)) == "none");
}

BOOST_AUTO_TEST_CASE(request_timeout_is_positive_and_below_half_a_lease) {
  const Untouched at;
  const auto with = [&at](milliseconds time) {
    return refused(at, [time](Options& o) { o.request_timeout = time; });
  };
  for (const milliseconds bad : {milliseconds::min(), milliseconds(0),
                                 milliseconds(5000), milliseconds::max()}) {
    BOOST_TEST(with(bad) == "request_timeout", bad.count());
  }
  BOOST_TEST(with(1ms) == "none");
  BOOST_TEST(with(4999ms) == "none");
  // Half of an odd number is no whole one.
  const auto with_odd = [&at](milliseconds time) {
    return refused(at, [time](Options& o) {
      o.ttl = 101ms;
      o.request_timeout = time;
    });
  };
  BOOST_TEST(with_odd(50ms) == "none");
  BOOST_TEST(with_odd(51ms) == "request_timeout");
}

BOOST_AUTO_TEST_CASE(safe_time_is_not_negative_and_below_half_a_lease) {
  const Untouched at;
  const auto with = [&at](milliseconds time) {
    return refused(at, [time](Options& o) { o.safe_time = time; });
  };
  for (const milliseconds bad : {milliseconds::min(), milliseconds(-1),
                                 milliseconds(5000), milliseconds::max()}) {
    BOOST_TEST(with(bad) == "safe_time", bad.count());
  }
  BOOST_TEST(with(0ms) == "none");
  BOOST_TEST(with(4999ms) == "none");
}

BOOST_AUTO_TEST_CASE(polls_are_positive_and_the_longest_is_no_shorter) {
  const Untouched at;
  const auto with = [&at](milliseconds first, milliseconds longest) {
    return refused(at, [=](Options& o) {
      o.first_poll = first;
      o.longest_poll = longest;
    });
  };
  BOOST_TEST(with(0ms, 500ms) == "first_poll");
  BOOST_TEST(with(-1ms, 500ms) == "first_poll");
  BOOST_TEST(with(milliseconds::min(), 500ms) == "first_poll");
  BOOST_TEST(with(10ms, 9ms) == "longest_poll");
  BOOST_TEST(with(1ms, 0ms) == "longest_poll");
  BOOST_TEST(with(1ms, milliseconds::min()) == "longest_poll");
  BOOST_TEST(with(10ms, 10ms) == "none");
  BOOST_TEST(with(1ms, 24h) == "none");
}

BOOST_AUTO_TEST_CASE(patience_is_not_negative) {
  const Untouched at;
  const auto with = [&at](milliseconds time) {
    return refused(at, [time](Options& o) { o.patience = time; });
  };
  BOOST_TEST(with(-1ms) == "patience");
  BOOST_TEST(with(milliseconds::min()) == "patience");
  BOOST_TEST(with(0ms) == "none");
  BOOST_TEST(with(milliseconds::max()) == "none");
}

BOOST_AUTO_TEST_CASE(owner_is_utf8_and_host_and_pid_unless_given) {
  const Untouched at;
  BOOST_TEST(refused(at, [](Options& o) { o.owner = "\xff"; }) == "owner");
  BOOST_TEST(refused(at, [](Options& o) { o.owner = "b\xc3\xb6t:1"; }) ==
             "none");
  Options options = unhurried(at.table);
  options.owner = "billing, rack 7";
  BOOST_TEST(DdbMutex("x", options).owner() == "billing, rack 7");
  char host[256] = {};
  BOOST_REQUIRE(gethostname(host, sizeof host - 1) == 0);
  BOOST_TEST(DdbMutex("x", unhurried(at.table)).owner() ==
             host + (":" + std::to_string(getpid())));
}

BOOST_AUTO_TEST_CASE(owner_is_no_longer_than_2048_bytes) {
  const Untouched at;
  const auto with = [&at](std::size_t length) {
    return refused(
        at, [length](Options& o) { o.owner = std::string(length, 'o'); });
  };
  BOOST_TEST(with(2048) == "none");
  BOOST_TEST(with(2049) == "owner");
}

BOOST_AUTO_TEST_CASE(renewal_is_after_a_positive_age_up_to_half_a_lease) {
  const Untouched at;
  const auto with = [&at](milliseconds time) {
    return refused(at, [time](Options& o) { o.renew_after = time; });
  };
  for (const milliseconds bad :
       {milliseconds::min(), milliseconds(-1), milliseconds(0),
        milliseconds(5001), milliseconds::max()}) {
    BOOST_TEST(with(bad) == "renew_after", bad.count());
  }
  BOOST_TEST(with(1ms) == "none");
  BOOST_TEST(with(5000ms) == "none");
}

BOOST_AUTO_TEST_CASE(longest_hold_is_positive) {
  const Untouched at;
  const auto with = [&at](milliseconds time) {
    return refused(at, [time](Options& o) { o.max_hold = time; });
  };
  for (const milliseconds bad :
       {milliseconds::min(), milliseconds(-1), milliseconds(0)}) {
    BOOST_TEST(with(bad) == "max_hold", bad.count());
  }
  BOOST_TEST(with(1ms) == "none");
  BOOST_TEST(with(milliseconds::max()) == "none");
}

BOOST_AUTO_TEST_CASE(locks_are_handed_over_no_less_often_than_never) {
  const Untouched at;
  const auto with = [&at](int limit) {
    return refused(at, [limit](Options& o) { o.handover_limit = limit; });
  };
  for (const int bad : {std::numeric_limits<int>::min(), -1}) {
    BOOST_TEST(with(bad) == "handover_limit", bad);
  }
  BOOST_TEST(with(0) == "none");
  BOOST_TEST(with(std::numeric_limits<int>::max()) == "none");
}

BOOST_AUTO_TEST_CASE(what_renews_by_itself_is_refused_where_nothing_does) {
  const Untouched at;
  const auto with = [&at](const Change& change) {
    return refused(at, [&change](Options& o) {
      o.auto_renew = false;
      change(o);
    });
  };
  BOOST_TEST(with([](Options&) {}) == "none");
  BOOST_TEST(with([](Options& o) { o.renew_after = 1s; }) == "renew_after");
  BOOST_TEST(with([](Options& o) { o.max_hold = 1s; }) == "max_hold");
  BOOST_TEST(with([](Options& o) { o.alive = [] { return true; }; }) ==
             "alive");
  BOOST_TEST(with([](Options& o) { o.on_danger = [] {}; }) == "none");
}

BOOST_AUTO_TEST_CASE(item_that_must_exist_is_one_that_is_kept) {
  const Untouched at;
  BOOST_TEST(refused(at, [](Options& o) { o.only_if_exists = true; }) ==
             "only_if_exists");
  BOOST_TEST(refused(at, [](Options& o) {
               o.keep_row = o.only_if_exists = true;
             }) == "none");
}

BOOST_AUTO_TEST_CASE(attributes_of_the_record_and_of_the_key_are_refused) {
  const ScriptedServer server;
  TableOptions place = table_options(server);
  place.key = "pk";
  place.sort_key = "sk";
  place.sort_value = "usual";
  Options options = unhurried(std::make_shared<Table>(place));
  const auto with = [&options](const std::string& name) {
    options.attributes = {{name, ddbmutex::Attribute::Type::string, "x", {}}};
    return refused_field([&] { DdbMutex mutex("x", options); });
  };
  for (const std::string bad : {"pk", "sk", "uuid", "expires", "lease", "owner",
                                "ttl", "token", "data", ""}) {
    BOOST_TEST(with(bad) == "attributes", bad);
  }
  BOOST_TEST(with("colour") == "none");
  BOOST_TEST(server.connection_count() == 0);
}

// --- A mutex's name --------------------------------------------------------

BOOST_AUTO_TEST_CASE(name_is_kept_as_given) {
  const Untouched at;
  for (const std::string name :
       {"x", "nightly report", "\xe2\x82\xac", "a/b\"c\\d\n"}) {
    BOOST_TEST(DdbMutex(name, unhurried(at.table)).name() == name);
  }
}

BOOST_AUTO_TEST_CASE(name_is_1_to_2048_bytes_with_the_prefix) {
  const Untouched at;
  const std::size_t prefix = TableOptions().prefix.size();
  BOOST_TEST(name_refused(at, "") == "name");
  BOOST_TEST(name_refused(at, std::string(2049 - prefix, 'x')) == "name");
  BOOST_TEST(name_refused(at, std::string(1 << 20, 'x')) == "name");
  BOOST_TEST(name_refused(at, std::string(2048 - prefix, 'x')) == "none");
  BOOST_TEST(name_refused(at, "x") == "none");
}

BOOST_AUTO_TEST_CASE(prefix_counts_for_the_length_of_a_name) {
  const ScriptedServer server;
  TableOptions table = table_options(server);
  table.prefix = std::string(2000, 'p');
  const Options options = unhurried(std::make_shared<Table>(table));
  const auto with = [&options](std::size_t length) {
    return refused_field(
        [&] { DdbMutex mutex(std::string(length, 'x'), options); });
  };
  BOOST_TEST(with(48) == "none");
  BOOST_TEST(with(49) == "name");
  table.prefix.clear();
  const Options bare = unhurried(std::make_shared<Table>(table));
  BOOST_TEST(refused_field([&] {
               DdbMutex mutex(std::string(2048, 'x'), bare);
             }) == "none");
  BOOST_TEST(refused_field([&] {
               DdbMutex mutex(std::string(2049, 'x'), bare);
             }) == "name");
  BOOST_TEST(refused_field([&] { DdbMutex mutex("", bare); }) == "name");
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(name_that_is_not_utf8_is_refused) {
  const Untouched at;
  const std::vector<std::pair<const char*, std::string>> bad = {
      {"a byte that none begins with", "a\xff"},
      {"another", "\xfe"},
      {"a continuation alone", "\x80"},
      {"a continuation too many", "\xc3\xb6\x80"},
      {"two bytes, one there", "a\xc3"},
      {"three bytes, two there", "\xe2\x82"},
      {"four bytes, three there", "\xf0\x9f\x92"},
      {"cut off by a letter", "\xe2\x82x"},
      {"'/' in two bytes", "\xc0\xaf"},
      {"DEL in two bytes", "\xc1\xbf"},
      {"U+07FF in three bytes", "\xe0\x9f\xbf"},
      {"U+FFFF in four bytes", "\xf0\x8f\xbf\xbf"},
      {"the first surrogate", "\xed\xa0\x80"},
      {"the last surrogate", "\xed\xbf\xbf"},
      {"a surrogate pair", "\xed\xa0\xbd\xed\xb2\xa9"},
      {"past U+10FFFF", "\xf4\x90\x80\x80"},
      {"far past it", "\xf7\xbf\xbf\xbf"},
      {"five bytes", "\xf8\x88\x80\x80\x80"},
  };
  for (const auto& [what, name] : bad) {
    BOOST_TEST(name_refused(at, name) == "name", what);
  }
  const std::vector<std::pair<const char*, std::string>> good = {
      {"the least of two bytes", "\xc2\x80"},
      {"the most of two bytes", "\xdf\xbf"},
      {"the least of three bytes", "\xe0\xa0\x80"},
      {"before the surrogates", "\xed\x9f\xbf"},
      {"behind the surrogates", "\xee\x80\x80"},
      {"the most of three bytes", "\xef\xbf\xbf"},
      {"the least of four bytes", "\xf0\x90\x80\x80"},
      {"U+10FFFF", "\xf4\x8f\xbf\xbf"},
  };
  for (const auto& [what, name] : good) {
    BOOST_TEST(name_refused(at, name) == "none", what);
  }
}

// What we count as 2,048 bytes, and what we take for UTF-8, an engine does too.
BOOST_DATA_TEST_CASE(longest_and_strangest_names_lock_on_an_engine, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  const auto table = table_at(engine);
  const std::size_t room = 2048 - TableOptions().prefix.size();
  std::string euros = fresh_name();
  while (euros.size() + 3 <= room) euros += "\xe2\x82\xac";
  for (const std::string& name :
       {std::string(room - 32, 'x') + fresh_name(), euros,
        "\"\\\n\t\x01\xf0\x9f\x92\xa9" + fresh_name(),
        std::string("a\0b", 3) + fresh_name()}) {
    DdbMutex mutex(name, unhurried(table));
    BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
    BOOST_TEST(mutex.owns_lock());
    BOOST_TEST(table->inspect(name).exists);
    BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  }
}

// --- A table's options -----------------------------------------------------

BOOST_AUTO_TEST_CASE(table_needs_a_name_that_dynamodb_takes) {
  const auto with = [](const std::string& name) {
    return table_refused([&](TableOptions& o) { o.name = name; });
  };
  for (const std::string bad :
       {"", "no blanks", "ab/cd", "\xc3\xb6rtchen", "quote\"d"}) {
    BOOST_TEST(with(bad) == "table", bad);
  }
  for (const std::string good : {"locks", "My_table-1.2", "abc"}) {
    BOOST_TEST(with(good) == "none", good);
  }
}

BOOST_AUTO_TEST_CASE(prefix_is_utf8_that_leaves_room_for_a_name) {
  const auto with = [](const std::string& prefix) {
    return table_refused([&](TableOptions& o) { o.prefix = prefix; });
  };
  BOOST_TEST(with("\xff") == "prefix");
  BOOST_TEST(with("\xed\xa0\x80") == "prefix");
  BOOST_TEST(with("") == "none");
  BOOST_TEST(with("\xc3\xb6-") == "none");
}

BOOST_AUTO_TEST_CASE(key_has_a_name_that_is_none_of_the_records) {
  const auto with = [](const std::string& key) {
    return table_refused([&](TableOptions& o) { o.key = key; });
  };
  for (const std::string bad : {"", "\xff", "uuid", "expires", "lease", "owner",
                                "ttl", "token", "data"}) {
    BOOST_TEST(with(bad) == "key", bad);
  }
  BOOST_TEST(with(std::string(256, 'k')) == "key");
  for (const std::string good : {"name", "pk", "a key", "\xc3\xb6"}) {
    BOOST_TEST(with(good) == "none", good);
  }
  BOOST_TEST(with(std::string(255, 'k')) == "none");
}

BOOST_AUTO_TEST_CASE(sort_key_is_another_than_the_key) {
  const auto with = [](const std::string& key) {
    return table_refused([&](TableOptions& o) { o.sort_key = key; });
  };
  for (const std::string bad : {"name", "uuid", "data", "\xff"}) {
    BOOST_TEST(with(bad) == "sort_key", bad);
  }
  BOOST_TEST(with(std::string(256, 'k')) == "sort_key");
  BOOST_TEST(with("sk") == "none");
  BOOST_TEST(with("") == "none");
}

BOOST_AUTO_TEST_CASE(sort_value_is_given_exactly_where_there_is_a_sort_key) {
  BOOST_TEST(table_refused([](TableOptions& o) { o.sort_value = "x"; }) ==
             "sort_value");
  const ScriptedServer server;
  const auto with = [&server](const std::string& key, const std::string& usual,
                              const std::string& own) {
    TableOptions place = table_options(server);
    place.sort_key = key;
    place.sort_value = usual;
    Options options = unhurried(std::make_shared<Table>(place));
    options.sort_value = own;
    return refused_field([&] { DdbMutex mutex("x", options); });
  };
  BOOST_TEST(with("", "", "own") == "sort_value");
  BOOST_TEST(with("sk", "", "") == "sort_value");
  BOOST_TEST(with("sk", "", "own") == "none");
  BOOST_TEST(with("sk", "usual", "") == "none");
  BOOST_TEST(with("sk", "usual", "own") == "none");
  BOOST_TEST(with("sk", "usual", "\xff") == "sort_value");
  BOOST_TEST(with("sk", "", std::string(1024, 'x')) == "none");
  BOOST_TEST(with("sk", "", std::string(1025, 'x')) == "sort_value");
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(region_has_the_form_of_one) {
  const auto with = [](const std::string& region) {
    return table_refused([&](TableOptions& o) { o.region = region; });
  };
  for (const std::string bad : {"eu west 1", "eu-west-1/", "eu_west_1",
                                "-eu-west-1", "eu-west-1-", "a.b", "\xff"}) {
    BOOST_TEST(with(bad) == "region", bad);
  }
  BOOST_TEST(with(std::string(64, 'a')) == "region");
  for (const std::string good : {"eu-west-1", "us-gov-east-1", "xx-new-9"}) {
    BOOST_TEST(with(good) == "none", good);
  }
}

BOOST_AUTO_TEST_CASE(endpoint_has_the_form_of_one) {
  const auto with = [](const std::string& endpoint) {
    return table_refused([&](TableOptions& o) { o.endpoint = endpoint; });
  };
  for (const std::string bad :
       {"127.0.0.1:8000", "ftp://x", "http://", "https://x/y z", "http://a b",
        "http://user:secret@x", "http://x?y", "http://x:99999999"}) {
    BOOST_TEST(with(bad) == "endpoint", bad);
  }
  for (const std::string good : {"http://127.0.0.1:8000", "https://x.example",
                                 "http://[::1]:8000/", "https://x/y"}) {
    BOOST_TEST(with(good) == "none", good);
  }
}

BOOST_AUTO_TEST_CASE(malformed_endpoint_is_not_shown_with_its_password) {
  TableOptions options = table_options("http://user:s3cret@x");
  const auto error = error_of([&] { Table table(options); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST(!has(error->what(), "s3cret"), error->what());
}

BOOST_AUTO_TEST_CASE(profile_that_is_not_there_is_refused) {
  BOOST_TEST(table_refused([](TableOptions& o) {
               o.credentials = {};
               o.region.clear();
               o.profile = "no-such-profile-for-the-tests";
             }) == "profile");
}

BOOST_AUTO_TEST_CASE(half_a_pair_of_keys_is_refused) {
  const auto with = [](const Credentials& keys) {
    return table_refused([&](TableOptions& o) { o.credentials = keys; });
  };
  BOOST_TEST(with({"AKIDEXAMPLE", "", ""}) == "credentials");
  BOOST_TEST(with({"", "secret", ""}) == "credentials");
  BOOST_TEST(with({"", "", "token"}) == "credentials");
  BOOST_TEST(with({"AKIDEXAMPLE", "secret", "token"}) == "none");
}

// --- Keys ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(source_without_keys_fails_what_needs_them) {
  const ScriptedServer server;
  TableOptions options = table_options(server);
  options.credentials_source = [] { return std::nullopt; };
  const auto table = std::make_shared<Table>(options);
  DdbMutex mutex("x", unhurried(table));
  const std::string no_keys = words(Errc::no_keys);
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == no_keys);
  BOOST_TEST(thrown_by([&] { (void)mutex.try_lock(); }) == no_keys);
  BOOST_TEST(thrown_by([&] { (void)mutex.try_lock_for(5s); }) == no_keys);
  BOOST_TEST(thrown_by([&] { table->exists(); }) == no_keys);
  BOOST_TEST(thrown_by([&] { table->create(); }) == no_keys);
  BOOST_TEST(thrown_by([&] { table->inspect("x"); }) == no_keys);
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(server.connection_count() == 0);
  BOOST_TEST(table->stats().requests() == 0u);
}

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

BOOST_AUTO_TEST_CASE(prefix_and_table_name_are_what_is_sent) {
  ScriptedServer server;
  TableOptions options = table_options(server);
  options.name = "our.locks";
  options.prefix = "team/";
  const auto table = std::make_shared<Table>(options);
  BOOST_TEST(table->name() == "our.locks");
  DdbMutex mutex("x", unhurried(table));
  mutex.lock();
  const std::string body = server.requests().at(0).body;
  BOOST_TEST(has(body, R"("TableName":"our.locks")"), body);
  BOOST_TEST(has(body, R"("name":{"S":"team/x"})"), body);
}

BOOST_AUTO_TEST_CASE(keys_and_sort_values_are_what_is_sent) {
  ScriptedServer server;
  TableOptions place = table_options(server);
  place.key = "pk";
  place.sort_key = "sk";
  place.sort_value = "usual";
  Options options = unhurried(with_clock(std::make_shared<Table>(place)));
  DdbMutex usual("x", options);
  usual.lock();
  options.sort_value = "own";
  DdbMutex own("x", options);
  own.lock();
  const std::string first = server.requests().at(0).body;
  BOOST_TEST(has(first, R"("pk":{"S":"ddblock-x"},"sk":{"S":"usual"})"), first);
  const std::string second = server.requests().at(1).body;
  BOOST_TEST(has(second, R"("pk":{"S":"ddblock-x"},"sk":{"S":"own"})"), second);
}

BOOST_AUTO_TEST_CASE(ca_file_that_cannot_be_read_is_refused) {
  TableOptions options = table_options("https://127.0.0.1:1");
  options.ca_file = "/nonexistent/ca.pem";
  const auto error = error_of([&] { Table table(options); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::bad_option));
  BOOST_TEST(error->field() == "ca_file");
}

BOOST_AUTO_TEST_CASE(ca_file_is_what_a_server_is_judged_by) {
  ScriptedServer server(nullptr, ScriptedServer::Scheme::https);
  TableOptions options = table_options(server);
  DdbMutex stranger("x", unhurried(std::make_shared<Table>(options)));
  BOOST_TEST(thrown_by([&] { stranger.lock(); }) ==
             words(Errc::bad_certificate));
  options.ca_file = server.certificate_file();
  DdbMutex friendly("x", unhurried(std::make_shared<Table>(options)));
  BOOST_TEST(thrown_by([&] { friendly.lock(); }) == "none");
  BOOST_TEST(friendly.owns_lock());
}

BOOST_AUTO_TEST_CASE(standard_table_is_one_for_all) {
  // It may fail for want of a region, but then always.
  std::string first = "made";
  std::shared_ptr<Table> table;
  try {
    table = Table::standard();
  } catch (const Error& error) {
    first = error.code().message();
  }
  if (table != nullptr) {
    BOOST_TEST(Table::standard() == table);
    BOOST_TEST(table->name() == "locks");
  } else {
    BOOST_TEST(thrown_by([] { Table::standard(); }) == first);
    BOOST_TEST(thrown_by([] { DdbMutex mutex("x"); }) == first);
  }
}

BOOST_AUTO_TEST_SUITE_END()
