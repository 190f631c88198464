// How errors are reported: by exception and by error code, at once or after
// `patience`, never as "held by another", and in which words.  Also which
// options are refused: each bound from both sides.  Nothing is sent for what
// can be checked locally.
#include <unistd.h>

#include <atomic>
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
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
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

// === By exception and by code ================================================

namespace {

void check_all_throw(DdbMutex& mutex, Errc code) {
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(code));
  BOOST_TEST(thrown_by([&] { (void)mutex.try_lock(); }) == words(code));
  BOOST_TEST(thrown_by([&] { (void)mutex.try_lock_for(kPlenty); }) ==
             words(code));
  BOOST_TEST(!mutex.owns_lock());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mutex_errors)

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
    DdbMutex mutex("nightly", on_table(table));
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

// --- Forms without exceptions ----------------------------------------------

BOOST_AUTO_TEST_CASE(error_code_forms_tell_the_same_and_do_not_throw) {
  ScriptedServer server(
      [](const SeenRequest&) { return failure(400, "AccessDeniedException"); });
  const auto table = table_at(server);
  DdbMutex mutex("x", on_table(table));
  const std::vector<std::function<void(std::error_code&)>> calls = {
      [&](std::error_code& ec) { mutex.lock(ec); },
      [&](std::error_code& ec) { BOOST_TEST(!mutex.try_lock(ec)); },
      [&](std::error_code& ec) {
        BOOST_TEST(!mutex.try_lock_for(kPlenty, ec));
      },
      [&](std::error_code& ec) {
        BOOST_TEST(!mutex.try_lock_until(
            std::chrono::steady_clock::now() + kPlenty, ec));
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
  // The same text as what() of the other form, except for the request's id.
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  const std::string what = error->what();
  const std::string told = mutex.last_error();
  BOOST_TEST(what.substr(0, what.find("(request")) ==
             told.substr(0, told.find("(request")));

  std::error_code ec;
  BOOST_CHECK_NO_THROW(BOOST_TEST(!table->inspect("x", ec).exists));
  BOOST_TEST((ec == Errc::access_denied));
  BOOST_TEST(has(table->last_error(), "as the test wants"));
}

// Keys are looked for only when a request needs them.
BOOST_AUTO_TEST_CASE(calls_on_a_mutex_never_locked_look_for_no_keys) {
  ScriptedServer server;
  const Home home;
  const ProcessVariable at_home("HOME", home.root.c_str());
  const ProcessVariable no_id("AWS_ACCESS_KEY_ID", nullptr);
  const ProcessVariable no_secret("AWS_SECRET_ACCESS_KEY", nullptr);
  TableOptions options = table_options(server);
  options.credentials = {};
  DdbMutex mutex("x", on_table(std::make_shared<Table>(options)));
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

// --- A write that DynamoDB refuses because a transaction has the item --------

BOOST_AUTO_TEST_CASE(take_refused_for_a_transaction_leaves_nothing_to_release) {
  Gate gate;
  gate.always("PutItem", [](Engine&, const SeenRequest&) {
    return failure(400, "TransactionConflictException");
  });
  {
    Options options = on_table(table_at(gate));
    options.patience = 0ms;
    DdbMutex mutex(fresh_name(), options);
    BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::unavailable));
  }  // Waits for a release that goes on in the background.
  BOOST_TEST(count_of(gate.server(), "DeleteItem") == 0);
}

BOOST_AUTO_TEST_SUITE_END()

// === In which words ==========================================================

namespace {

// A call that fails, and the expected text of its error.  In the text, URL
// stands for the server's URL, ID for a request's id, N for a number that
// varies, and * for words of libcurl and OpenSSL.
struct Case {
  const char* done;
  std::function<std::string()> tell;
  std::string text;
};

void check_words(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    const std::string told = one.tell();
    std::string pattern = replaced(one.text, R"([.()\[\]{}+?^$|\\])", "\\$&");
    pattern = replaced(pattern, R"(\*)", ".*");
    BOOST_TEST(
        all_matches(told, "^(" + pattern + ")$") ==
            std::vector<std::string>{told},
        one.done << " tells:\n  " << told << "\nand not:\n  " << one.text);
  }
}

std::string readable(std::string text, const ScriptedServer& server) {
  std::string url = server.url();
  url.pop_back();
  text = replaced(text, url + "/?", "URL");
  text = replaced(text, "\\(request [^)]*\\)", "(request ID)");
  return replaced(text, "(after|in|port) [0-9]+", "$1 N");
}

template <class Call>
std::string told_by(const ScriptedServer& server, const Call& call) {
  const auto error = error_of(call);
  return error ? readable(error->what(), server) : "nothing";
}

using Change = std::function<void(TableOptions&, Options&)>;

// A server, and a mutex on it that reports every error at once.
struct Scene {
  explicit Scene(Handler handler, const Change& change = nullptr)
      : Scene(std::make_unique<ScriptedServer>(std::move(handler)), change) {}
  Scene(std::unique_ptr<ScriptedServer> the_server, const Change& change)
      : server(std::move(the_server)) {
    TableOptions place = table_options(*server);
    Options options = on_table(nullptr);
    options.patience = 0ms;
    options.auto_renew = false;
    if (change) change(place, options);
    table = std::make_shared<Table>(place);
    options.table = table;
    mutex = std::make_unique<DdbMutex>("x", options);
  }

  std::string lock() const {
    return told_by(*server, [this] { mutex->lock(); });
  }

  std::unique_ptr<ScriptedServer> server;
  std::shared_ptr<Table> table;
  std::unique_ptr<DdbMutex> mutex;
};

// The error of a lock() whose PutItem is answered with `reply`.  Its release
// succeeds.
std::function<std::string()> lock_before(const std::function<Reply()>& reply,
                                         const Change& change = nullptr) {
  return [=] {
    return Scene(
               [reply](const SeenRequest& request) {
                 return action_of(request) == "PutItem" ? reply()
                                                        : Reply::ok("{}");
               },
               change)
        .lock();
  };
}

std::function<std::string()> lock_refused_by(int status, const char* code,
                                             const char* message) {
  return lock_before([=] {
    return Reply::error(status, std::string(R"({"__type":"x#)") + code +
                                    R"(","message":")" + message + "\"}");
  });
}

const std::string kCannotLock = "cannot lock \"x\" in table \"locks\"";
const std::string kAt = kCannotLock + " at URL: ";

}  // namespace

BOOST_AUTO_TEST_SUITE(messages)

BOOST_AUTO_TEST_CASE(failures_are_told_in_these_words) {
  check_words({
      {"https where http is spoken",
       [] {
         const ScriptedServer nobody;
         std::string url = Engine::running(any_engine_kind()).url();
         TableOptions place = table_options("https" + url.substr(4));
         Options options = on_table(std::make_shared<Table>(place));
         options.patience = 0ms;
         return told_by(nobody, [&] { DdbMutex("x", options).lock(); });
       },
       kCannotLock + " at https://127.0.0.1:*: unreachable: *wrong version "
                     "number (does the server speak http?)"},
      {"keys that have run out",
       lock_refused_by(400, "ExpiredTokenException", "The token is expired"),
       kAt + "keys have expired: The token is expired (keys from the options) "
             "(request ID)"},
      {"no table",
       lock_refused_by(400, "ResourceNotFoundException",
                       "Requested resource not found"),
       kAt + "no such table: Requested resource not found (create_table() "
             "creates it) (request ID)"},
      {"failure of the service in an answer that breaks off", lock_before([] {
         Reply cut = Reply::error(500, "{}");
         cut.cut_body_at = 1;
         cut.ending = Ending::close;
         return cut;
       }),
       kAt + "the service failed: HTTP status 500, and then: *"},
  });
}

// A server may repeat what it was sent.
BOOST_AUTO_TEST_CASE(text_that_repeats_a_secret_is_left_out) {
  const auto with_secret = [](const std::string& secret, const char* message) {
    const auto reply = [message] {
      return Reply::error(
          400,
          std::string(R"({"__type":"x#AccessDeniedException","message":")") +
              message + "\"}");
    };
    return lock_before(reply, [secret](TableOptions& place, Options&) {
      place.credentials.secret_access_key = secret;
    });
  };
  const std::string end = " (keys from the options) (request ID)";
  check_words({
      {"a short secret", with_secret("aws", "not allowed: aws:PutItem"),
       kAt + "access denied: not allowed: aws:PutItem" + end},
      {"a long one",
       with_secret("0123456789abcdefghij", "got key=0123456789abcdefghij; no"),
       kAt + "access denied: (hidden)" + end},
  });
}

BOOST_AUTO_TEST_CASE(server_that_repeats_a_signature_is_not_quoted) {
  ScriptedServer server([](const SeenRequest& request) {
    return Reply::error(
        400, R"({"__type":"x#IncompleteSignatureException","message":"not: )" +
                 request.header("authorization").value_or("") + "\"}");
  });
  DdbMutex mutex("x", on_table(new_table_at(server)));
  std::error_code ec;
  mutex.lock(ec);
  BOOST_TEST(ec != std::error_code());
  BOOST_TEST(mutex.last_error().find(": (hidden)") != std::string::npos);
  BOOST_TEST(mutex.last_error().find("Signature=") == std::string::npos,
             mutex.last_error());
}

BOOST_AUTO_TEST_CASE(bad_options_are_told_in_these_words) {
  const auto told = [](const Change& change) {
    const ScriptedServer server;
    TableOptions place = table_options(server);
    Options options = on_table(nullptr);
    change(place, options);
    return told_by(server, [&] {
      options.table = std::make_shared<Table>(place);
      DdbMutex mutex("x", options);
    });
  };
  BOOST_TEST(told([](TableOptions&, Options& o) { o.ttl = 50ms; }) ==
             "bad option `ttl`: 50 ms is not between 100 ms and 366 days "
             "(mutex \"x\")");
  BOOST_TEST(told([](TableOptions& o, Options&) {
               o.endpoint = "http://u:s3cret@h";
             }) ==
             "bad option `endpoint`: it (not shown: it may contain a password) "
             "is not http:// or https://, a host, and optionally a port and a "
             "path");
  // Control characters are escaped, so that no terminal obeys them.
  BOOST_TEST(told([](TableOptions& o, Options&) {
               o.region = "a\x1b[2J\n\xc2\x9b";
             }) ==
             "bad option `region`: it is not the name of a region: "
             "\"a\\x1b[2J\\n\\x9b\"");
  BOOST_TEST(told([](TableOptions&, Options& o) { o.owner = "me\xff\x1b"; }) ==
             "bad option `owner`: not UTF-8: \"me\\xff\\x1b\" (mutex \"x\")");
}

BOOST_AUTO_TEST_SUITE_END()

// === Options that are refused ================================================

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

// Values of an option that are all accepted, or all refused.
template <class Place, class Value>
struct Row {
  const char* field;  // Named by the error; "none" if they are accepted.
  Value Place::*member;
  std::vector<Value> values;
};

// Checks that nothing is sent, either.
template <class Value>
void check_bounds(const std::vector<Row<Options, Value>>& rows) {
  const ScriptedServer server;
  const auto table = new_table_at(server);
  for (const auto& row : rows) {
    for (const Value& value : row.values) {
      Options options = on_table(table, 10s);
      options.request_timeout.reset();
      options.*row.member = value;
      BOOST_TEST(
          refused_field([&] { DdbMutex mutex("x", options); }) == row.field,
          "value " << &value - row.values.data() << " of " << row.field);
    }
  }
  BOOST_TEST(server.connection_count() == 0);
}

void check_bounds(const std::vector<Row<TableOptions, std::string>>& rows) {
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

// The field that a mutex on that server is refused for.
std::string refused(const ScriptedServer& server, const Change& change,
                    const std::string& name = "x") {
  TableOptions place = table_options(server);
  Options options = on_table(nullptr);
  change(place, options);
  return refused_field([&] {
    options.table = std::make_shared<Table>(place);
    DdbMutex mutex(name, options);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(options)

// --- A mutex's options -----------------------------------------------------

// Where the option is not `ttl`, the lease is 10 s.
BOOST_AUTO_TEST_CASE(times_of_a_mutex_have_bounds) {
  using Times = std::vector<Row<Options, milliseconds>>;
  check_bounds(Times{
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
  check_bounds(Optional{
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
}

BOOST_AUTO_TEST_CASE(owner_is_utf8_and_host_and_pid_unless_given) {
  const std::string longest(2048, 'o');
  check_bounds(std::vector<Row<Options, std::string>>{
      {"owner", &Options::owner, {"\xff", longest + "o"}},
      {"none", &Options::owner, {"b\xc3\xb6t:1", longest}},
  });
  const ScriptedServer server;
  Options options = on_table(new_table_at(server));
  char host[256] = {};
  BOOST_REQUIRE(gethostname(host, sizeof host - 1) == 0);
  BOOST_TEST(DdbMutex("x", options).owner() ==
             host + (":" + std::to_string(getpid())));
  options.owner = "billing, rack 7";
  BOOST_TEST(DdbMutex("x", options).owner() == "billing, rack 7");
}

BOOST_AUTO_TEST_CASE(options_that_need_another_are_refused_without_it) {
  const ScriptedServer server;
  const auto with = [&server](void (*change)(Options&)) {
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

BOOST_AUTO_TEST_CASE(patience_of_a_table_is_at_least_0) {
  const ScriptedServer server;
  const auto with = [&server](milliseconds time) {
    return refused(server,
                   [&](TableOptions& o, Options&) { o.patience = time; });
  };
  for (const milliseconds bad : {kLeast, -1ms}) {
    BOOST_TEST(with(bad) == "patience");
  }
  for (const milliseconds good : {0ms, kMost}) BOOST_TEST(with(good) == "none");
}

BOOST_AUTO_TEST_CASE(texts_of_a_table_have_the_form_that_dynamodb_takes) {
  const std::string longest_key(255, 'k');
  check_bounds({
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
      {"ca_file", &TableOptions::ca_file, {"/nonexistent/ca.pem", "/dev/null"}},
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
    DdbMutex mutex("x", on_table(std::make_shared<Table>(options)));
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
  DdbMutex mutex("x", on_table(std::make_shared<Table>(options)));
  mutex.lock();
  mutex.release();
  const auto requests = server.requests();
  BOOST_REQUIRE(requests.size() == 3u);
  for (const auto& request : requests) {
    const std::string signature = request.header("Authorization").value_or("");
    BOOST_TEST(has(signature, "AKIDFROMSOURCE1"), signature);
    BOOST_TEST(request.header("X-Amz-Security-Token").value_or("") == "tok");
  }
  BOOST_TEST(asked == 1);  // Its keys are used for a minute.
}

BOOST_AUTO_TEST_SUITE_END()
