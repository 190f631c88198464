// What goes wrong, and what a caller is told of it: by exception and by code,
// at once or after patience, never as "held by another", and in which words.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/errors.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/keyed_table.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;

namespace {

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
  BOOST_CHECK_NO_THROW(BOOST_TEST(!table->exists(ec)));
  BOOST_TEST((ec == Errc::access_denied));
  BOOST_TEST(has(table->last_error(), "as the test wants"));
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

// --- A write that DynamoDB refuses because a transaction has the item --------

BOOST_AUTO_TEST_CASE(take_refused_for_a_transaction_leaves_nothing_to_release) {
  Gate gate;
  gate.always("PutItem", [](Engine&, const SeenRequest&) {
    return failure(400, "TransactionConflictException");
  });
  {
    Options options = unhurried(table_at(gate));
    options.patience = 0ms;
    DdbMutex mutex(fresh_name(), options);
    BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::unavailable));
  }  // Waits for a release that goes on in the background.
  BOOST_TEST(count_of(gate.server(), "DeleteItem") == 0);
}

BOOST_AUTO_TEST_SUITE_END()

// --- In which words ----------------------------------------------------------

namespace {

// What was done, and what it came to; in the text URL stands for the server's,
// ID for a request's, N for a number that is another each time, and * for words
// of libcurl's and OpenSSL's.
struct Case {
  const char* done;
  std::function<std::string()> tell;
  std::string text;
};

void check(const std::vector<Case>& cases) {
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

// The server and a mutex on it that has no patience.
struct Scene {
  explicit Scene(Handler handler, const Change& change = nullptr)
      : Scene(std::make_unique<ScriptedServer>(std::move(handler)), change) {}
  Scene(std::unique_ptr<ScriptedServer> the_server, const Change& change)
      : server(std::move(the_server)) {
    TableOptions place = table_options(*server);
    Options options = unhurried(nullptr);
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

// What lock() tells where its request is answered so.  What may have been
// applied can be taken back.
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
  check({
      {"https where http is spoken",
       [] {
         const ScriptedServer nobody;
         std::string url = Engine::running(any_engine_kind()).url();
         TableOptions place = table_options("https" + url.substr(4));
         Options options = unhurried(std::make_shared<Table>(place));
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
       kAt + "no such table: Requested resource not found (Table::create() "
             "creates it) (request ID)"},
  });
}

// A server repeats what it was sent.
BOOST_AUTO_TEST_CASE(secrets_are_left_out_word_by_word) {
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
  check({
      {"a short secret", with_secret("aws", "not allowed: aws:PutItem"),
       kAt + "access denied: not allowed: aws:PutItem" + end},
      {"a long one",
       with_secret("0123456789abcdefghij", "got key=0123456789abcdefghij; no"),
       kAt + "access denied: got (hidden) no" + end},
      {"one that is written otherwise",
       with_secret("0123456789ab/defghij", "got 0123456789ab%2Fdefghij; no"),
       kAt + "access denied: got (hidden) no" + end},
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
  BOOST_TEST(mutex.last_error().find("not: AWS4-HMAC-SHA256") !=
             std::string::npos);
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
  // Nothing that a terminal would obey.
  BOOST_TEST(told([](TableOptions& o, Options&) {
               o.region = "a\x1b[2J\n\xc2\x9b";
             }) ==
             "bad option `region`: it is not the name of a region: "
             "\"a\\x1b[2J\\n\\x9b\"");
  BOOST_TEST(told([](TableOptions&, Options& o) { o.owner = "me\xff\x1b"; }) ==
             "bad option `owner`: not UTF-8: \"me\\xff\\x1b\" (mutex \"x\")");
}

BOOST_AUTO_TEST_SUITE_END()
