// What is told when something goes wrong: what was done, and the whole text.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
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

  template <class Call>
  std::string tells(const Call& call) const {
    return told_by(*server, call);
  }
  std::string lock() const {
    return tells([this] { mutex->lock(); });
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

std::string options_refused(const Change& change) {
  const ScriptedServer server;
  TableOptions place = table_options(server);
  Options options = on_table(nullptr);
  change(place, options);
  return told_by(server, [&] {
    options.table = std::make_shared<Table>(place);
    DdbMutex mutex("x", options);
  });
}

const std::string kCannotLock = "cannot lock \"x\" in table \"locks\"";
const std::string kAt = kCannotLock + " at URL: ";

Reply without_headers() {
  Reply reply;
  reply.raw =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
      "Content-Length: 2\r\n\r\n{}";
  return reply;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(messages)

BOOST_AUTO_TEST_CASE(service_that_fails_or_is_away_is_told_in_these_words) {
  check({
      {"a 500", lock_before([] { return server_failure(); }),
       kAt + "the service failed: as the test wants (request ID)"},
      {"a 503 of something before it",
       lock_before([] { return Reply::error(503, "<html></html>"); }),
       kAt + "the service failed: HTTP status 503 (request ID)"},
      {"a connection that breaks",
       lock_before([] { return Reply::gone(Ending::reset); }),
       kAt + "disconnected: *"},
      {"a refusal to connect",
       [] {
         return Scene(std::make_unique<ScriptedServer>(
                          nullptr, ScriptedServer::Scheme::http,
                          ScriptedServer::Door::shut),
                      nullptr)
             .lock();
       },
       kAt + "unreachable: * port N *"},
      {"no answer",
       lock_before([] { return hanging(); },
                   [](TableOptions&, Options& options) {
                     options.request_timeout = 100ms;
                   }),
       kAt + "no answer in time"},
      {"a request that fails, and then one without an answer",
       [] {
         int requests = 0;
         Scene it([&requests](const SeenRequest& request) {
           if (action_of(request) == "GetItem") return Reply::ok("{}");
           return ++requests == 1 ? server_failure() : hanging();
         });
         return it.tells([&] { (void)it.mutex->try_lock_for(2s); });
       },
       kAt + "no answer in time: no answer yet; before that: server_failure: "
             "as the test wants"},
      {"throttling",
       lock_refused_by(400, "ThrottlingException", "Rate exceeded"),
       kAt + "throttled: Rate exceeded (request ID)"},
      {"a page of a portal", lock_before([] {
         return with_header(Reply::ok("<html></html>"), "x-amzn-RequestId", "");
       }),
       kAt + "not an answer from DynamoDB: HTTP status 200, and the body is "
             "not a JSON object"},
      {"a portal that answers {} to everything",
       lock_before([] { return without_headers(); }),
       kAt + "not an answer from DynamoDB: HTTP status 200, but neither "
             "DynamoDB's content type nor a request id"},
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
      {"a certificate that nobody knows",
       [] {
         return Scene(std::make_unique<ScriptedServer>(
                          nullptr, ScriptedServer::Scheme::https),
                      nullptr)
             .lock();
       },
       kAt + "a certificate is not trusted: the server's certificate was "
             "refused: *"},
  });
}

BOOST_AUTO_TEST_CASE(refusals_are_told_in_these_words) {
  check({
      {"keys that may not",
       lock_refused_by(400, "AccessDeniedException",
                       "User: u is not authorized to perform: "
                       "dynamodb:PutItem on resource: r"),
       kAt + "access denied: User: u is not authorized to perform: "
             "dynamodb:PutItem on resource: r (keys from the options) "
             "(request ID)"},
      {"keys that are unknown",
       lock_refused_by(400, "UnrecognizedClientException", "No such key"),
       kAt + "keys not accepted: No such key (keys from the options) "
             "(request ID)"},
      {"keys that have run out",
       lock_refused_by(400, "ExpiredTokenException", "The token is expired"),
       kAt + "keys have expired: The token is expired (keys from the options) "
             "(request ID)"},
      {"no table",
       lock_refused_by(400, "ResourceNotFoundException",
                       "Requested resource not found"),
       kAt + "no such table: Requested resource not found (Table::create() "
             "creates it) (request ID)"},
      {"a table of another key",
       lock_refused_by(400, "ValidationException",
                       "The provided key element does not match the schema"),
       kAt + "not a table for locks: The provided key element does not match "
             "the schema (request ID)"},
      {"what DynamoDB does not understand",
       lock_refused_by(400, "ValidationException", "Syntax error"),
       kAt + "the request was refused as invalid: Syntax error (request ID)"},
      {"an engine that cannot do that",
       lock_refused_by(400, "UnknownOperationException", "What?"),
       kAt + "not supported by this engine: What? (request ID)"},
      {"a row that is no lock",
       lock_before([] { return refusal(R"("colour":{"S":"red"})"); }),
       kCannotLock + ": the item is not a lock record: *"},
      {"a row with a token", lock_before([] {
         return refusal(record("u", 0ns) + R"(,"token":{"N":"7"})");
       }),
       kCannotLock + ": the item belongs to a lock that keeps its row: it has "
                     "a fencing token; set keep_row"},
      {"no row where there must be one",
       [] {
         return Scene(
                    [](const SeenRequest& request) {
                      return action_of(request) == "GetItem"
                                 ? Reply::ok("{}")
                                 : failure(400,
                                           "ConditionalCheckFailedException");
                    },
                    [](TableOptions&, Options& options) {
                      options.keep_row = options.only_if_exists = true;
                    })
             .lock();
       },
       kCannotLock + ": there is no such item"},
  });
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_table_is_told_in_these_words) {
  const auto table_of = [](const std::string& key, const std::string& more,
                           const std::function<void(Table&)>& call) {
    return [=] {
      Scene it([=](const SeenRequest&) {
        return Reply::ok(R"({"Table":{"TableStatus":"ACTIVE","KeySchema":[{)"
                         R"("AttributeName":")" +
                         key +
                         R"(","KeyType":"HASH"}],"AttributeDefinitions":[{)" +
                         R"("AttributeName":")" + key +
                         R"(","AttributeType":"S"}])" + more + "}}");
      });
      return it.tells([&] { call(*it.table); });
    };
  };
  check({
      {"exists() of another key",
       table_of("id", "", [](Table& table) { table.exists(); }),
       "cannot use table \"locks\": not a table for locks: its key is not the "
       "string \"name\" alone"},
      {"exists() of one with replicas",
       table_of("name", R"(,"Replicas":[{"RegionName":"eu-west-1"}])",
                [](Table& table) { table.exists(); }),
       "cannot use table \"locks\": the table has eventually consistent "
       "replicas: a lock that is held in one region is free in another"},
      {"inspect() of none",
       [] {
         Scene it([](const SeenRequest&) {
           return failure(400, "ResourceNotFoundException");
         });
         return it.tells([&] { it.table->inspect("x"); });
       },
       "cannot inspect \"x\" in table \"locks\" at URL: no such table: as the "
       "test wants (Table::create() creates it) (request ID)"},
      {"close() while nobody listens any more",
       [] {
         Scene it([](const SeenRequest&) { return Reply::ok("{}"); });
         it.mutex->lock();
         it.server->stop();
         const auto left = it.table->close(100ms);
         return left.empty() ? "nothing"
                             : readable(left.front().text, *it.server);
       },
       "cannot release \"x\" in table \"locks\" at URL: *"},
  });
}

BOOST_AUTO_TEST_CASE(wait_that_is_ended_by_another_thread_says_so) {
  Scene it([](const SeenRequest& request) { return held_by_another(request); });
  std::string told;
  Aside waiter([&] { told = it.lock(); });
  BOOST_TEST(eventually([&] {
    it.mutex->cancel();
    return waiter.done();
  }));
  BOOST_TEST(told == kCannotLock + ": cancelled");
}

// A server repeats what it was sent.
BOOST_AUTO_TEST_CASE(secrets_are_left_out_word_by_word) {
  const auto with_secret = [](const std::string& secret,
                              const std::string& message) {
    return lock_before(
        [message] {
          return Reply::error(400, R"({"__type":"x#AccessDeniedException",)"
                                   R"("message":")" +
                                       message + "\"}");
        },
        [secret](TableOptions& place, Options&) {
          place.credentials.secret_access_key = secret;
        });
  };
  check({
      {"a short secret", with_secret("aws", "not allowed: aws:PutItem"),
       kAt + "access denied: not allowed: aws:PutItem (keys from the options) "
             "(request ID)"},
      {"a long one",
       with_secret("0123456789abcdefghij", "got key=0123456789abcdefghij; no"),
       kAt + "access denied: got (hidden) no (keys from the options) "
             "(request ID)"},
      {"one that is written otherwise",
       with_secret("0123456789ab/defghij", "got 0123456789ab%2Fdefghij; no"),
       kAt + "access denied: got (hidden) no (keys from the options) "
             "(request ID)"},
      {"a refusal to connect beside a short secret",
       [] {
         return Scene(std::make_unique<ScriptedServer>(
                          nullptr, ScriptedServer::Scheme::http,
                          ScriptedServer::Door::shut),
                      [](TableOptions& place, Options&) {
                        place.credentials.secret_access_key = "connect";
                      })
             .lock();
       },
       kAt + "unreachable: *connect* port N *"},
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

BOOST_AUTO_TEST_CASE(lock_that_is_lost_or_not_held_is_told_in_these_words) {
  const auto never = [](const std::function<void(DdbMutex&)>& call) {
    return [call] {
      Scene it([](const SeenRequest&) { return Reply::ok("{}"); });
      return it.tells([&] { call(*it.mutex); });
    };
  };
  // Once locked, every request is refused because of that row.
  const auto locked = [](const std::function<Reply()>& then,
                         const std::function<void(DdbMutex&)>& call) {
    return [=] {
      Scene it([then](const SeenRequest& request) {
        const std::string action = action_of(request);
        const bool taking = action == "GetItem" || action == "PutItem";
        return taking ? Reply::ok("{}") : then();
      });
      it.mutex->lock();
      return it.tells([&] { call(*it.mutex); });
    };
  };
  const auto theirs = [] { return refusal(live_record()); };
  const auto gone = [] { return failure(400, "ResourceNotFoundException"); };
  check({
      {"require() of a mutex that is not locked",
       never([](DdbMutex& x) { x.require(1s); }),
       "cannot rely on \"x\" in table \"locks\": not held"},
      {"release() of it", never([](DdbMutex& x) { x.release(); }),
       "cannot release \"x\" in table \"locks\": not held"},
      {"renew() of it", never([](DdbMutex& x) { x.renew(); }),
       "cannot renew \"x\" in table \"locks\": not held"},
      {"lock() of what this thread has locked",
       locked(theirs, [](DdbMutex& x) { x.lock(); }),
       "cannot lock \"x\" in table \"locks\": Resource deadlock avoided: this "
       "thread has locked it already"},
      {"require() of more than there is",
       locked(theirs, [](DdbMutex& x) { x.require(2min); }),
       "cannot rely on \"x\" in table \"locks\": the lease ends too soon: * ms "
       "remain, but 120000 ms are asked for"},
      {"renew() of what another has",
       locked(theirs, [](DdbMutex& x) { x.renew(); }),
       "cannot renew \"x\" in table \"locks\": the lock was lost: taken"},
      {"release() of what another has",
       locked(theirs, [](DdbMutex& x) { x.release(); }),
       "cannot release \"x\" in table \"locks\": the lock was lost: taken"},
      {"release() of a row that is gone",
       locked(gone, [](DdbMutex& x) { x.release(); }),
       "cannot release \"x\" in table \"locks\": the lock was lost: deleted"},
      {"require() after that",
       locked(theirs,
              [](DdbMutex& x) {
                std::error_code ignored;
                x.renew(ignored);
                x.require(1s);
              }),
       "cannot rely on \"x\" in table \"locks\": the lock was lost"},
      {"lock() on a table that was closed",
       [] {
         Scene it([](const SeenRequest&) { return Reply::ok("{}"); });
         it.table->close();
         return it.lock();
       },
       kCannotLock + ": the table was closed"},
  });
}

BOOST_AUTO_TEST_CASE(keys_that_are_not_there_are_told_in_these_words) {
  check({
      {"a source that has none",
       lock_before([] { return Reply::ok("{}"); },
                   [](TableOptions& place, Options&) {
                     place.credentials_source = [] { return std::nullopt; };
                   }),
       kAt + "no AWS keys: credentials_source has no keys"},
      {"no source that has any, and a metadata service that hangs",
       [] {
         ScriptedServer instance([](const SeenRequest&) { return hanging(); });
         std::string url = instance.url();
         url.pop_back();
         const Home home;
         const ProcessVariable at_home("HOME", home.root.c_str());
         const ProcessVariable id("AWS_ACCESS_KEY_ID", nullptr);
         const ProcessVariable on("AWS_EC2_METADATA_DISABLED", nullptr);
         const ProcessVariable time("AWS_METADATA_SERVICE_TIMEOUT", "600");
         const ProcessVariable at("AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                  url.c_str());
         Scene it([](const SeenRequest&) { return Reply::ok("{}"); },
                  [](TableOptions& place, Options& options) {
                    place.credentials = {};
                    options.request_timeout = 3s;
                  });
         return replaced(it.tells([&] { (void)it.mutex->try_lock(); }),
                         home.root.string(), "HOME");
       },
       kAt +
           "no AWS keys: keys are being fetched: no access_key_id in the "
           "options; no AWS_ACCESS_KEY_ID in the environment; "
           "AWS_WEB_IDENTITY_TOKEN_FILE is not set; neither keys nor role_arn, "
           "web_identity_token_file, sso_account_id, login_session or "
           "credential_process in profile \"default\" (*HOME/.aws/*); neither "
           "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor "
           "AWS_CONTAINER_CREDENTIALS_FULL_URI is set; the EC2 metadata "
           "service at http://127.0.0.1:* is being asked"},
      {"a source that hangs",
       [] {
         const auto go_on = std::make_shared<Event>();
         Scene it([](const SeenRequest&) { return Reply::ok("{}"); },
                  [go_on](TableOptions& place, Options& options) {
                    options.request_timeout = 200ms;
                    place.credentials_source =
                        [go_on]() -> std::optional<ddbmutex::Credentials> {
                      go_on->wait();
                      return std::nullopt;
                    };
                  });
         const std::string told = it.tells([&] { (void)it.mutex->try_lock(); });
         go_on->set();
         return told;
       },
       kAt + "no AWS keys: keys are being fetched: credentials_source is being "
             "asked"},
  });
}

BOOST_AUTO_TEST_CASE(bad_options_are_told_in_these_words) {
  const auto with = [](const Change& change) {
    return [change] { return options_refused(change); };
  };
  const auto mutex_with = [&](const std::function<void(Options&)>& change) {
    return with([change](TableOptions&, Options& o) { change(o); });
  };
  const auto table_with =
      [&](const std::function<void(TableOptions&)>& change) {
        return with([change](TableOptions& o, Options&) { change(o); });
      };
  check({
      {"a lease that is too short",
       mutex_with([](Options& o) { o.ttl = 50ms; }),
       "bad option `ttl`: 50 ms is not between 100 ms and 366 days (mutex "
       "\"x\")"},
      {"a request that may take too long",
       mutex_with([](Options& o) { o.request_timeout = 30s; }),
       "bad option `request_timeout`: 30000 ms is not more than 0 and less "
       "than ttl / 2 (mutex \"x\")"},
      {"a renewal that comes too late",
       mutex_with([](Options& o) { o.renew_after = 31s; }),
       "bad option `renew_after`: 31000 ms is not more than 0 and at most ttl "
       "/ 2 "
       "(mutex \"x\")"},
      {"polls", mutex_with([](Options& o) { o.first_poll = 0ms; }),
       "bad option `first_poll`: 0 ms is not more than 0 (mutex \"x\")"},
      {"polls that become shorter",
       mutex_with([](Options& o) { o.longest_poll = 1ms; }),
       "bad option `longest_poll`: 1 ms is less than first_poll (mutex \"x\")"},
      {"a safe time", mutex_with([](Options& o) { o.safe_time = -1ms; }),
       "bad option `safe_time`: -1 ms is not at least 0 and less than ttl / 2 "
       "(mutex "
       "\"x\")"},
      {"patience", mutex_with([](Options& o) { o.patience = -1ms; }),
       "bad option `patience`: -1 ms is less than 0 (mutex \"x\")"},
      {"a longest hold", mutex_with([](Options& o) { o.max_hold = 0ms; }),
       "bad option `max_hold`: 0 ms is not more than 0 (mutex \"x\")"},
      {"a table's name",
       table_with([](TableOptions& o) { o.name = "no blanks"; }),
       "bad option `table`: \"no blanks\" is not 3 to 255 characters of "
       "a-zA-Z0-9_.-"},
      {"an endpoint",
       table_with([](TableOptions& o) { o.endpoint = "localhost:8000"; }),
       "bad option `endpoint`: it is \"localhost:8000\", which is not http:// "
       "or "
       "https://, a host, and optionally a port and a path"},
      {"an endpoint with a password",
       table_with([](TableOptions& o) { o.endpoint = "http://u:s3cret@h"; }),
       "bad option `endpoint`: it (not shown: it may contain a password) "
       "is "
       "not http:// or https://, a host, and optionally a port and a path"},
      {"an endpoint of the environment",
       [] {
         const ProcessVariable at("AWS_ENDPOINT_URL_DYNAMODB", "h:8000");
         return options_refused(
             [](TableOptions& o, Options&) { o.endpoint.clear(); });
       },
       "bad option `endpoint`: AWS_ENDPOINT_URL_DYNAMODB is \"h:8000\", which "
       "is not http:// or https://, a host, and optionally a port and a path"},
      {"a region", table_with([](TableOptions& o) { o.region = "eu west 1"; }),
       "bad option `region`: it is not the name of a region: \"eu west 1\""},
      {"a region with controls of a terminal in it",
       table_with([](TableOptions& o) { o.region = "a\x1b[2J\n\xc2\x9b"; }),
       "bad option `region`: it is not the name of a region: "
       "\"a\\x1b[2J\\n\\x9b\""},
      {"a region of the environment",
       [] {
         const ProcessVariable at("AWS_REGION", "eu_west_1");
         return options_refused(
             [](TableOptions& o, Options&) { o.region.clear(); });
       },
       "bad option `region`: AWS_REGION is not the name of a region: "
       "\"eu_west_1\""},
      {"a flag of the environment",
       [] {
         const ProcessVariable on("AWS_USE_FIPS_ENDPOINT", "ja");
         return options_refused([](TableOptions&, Options&) {});
       },
       "bad option `endpoint`: AWS_USE_FIPS_ENDPOINT is neither true nor "
       "false: \"ja\""},
      {"a mode of the environment",
       [] {
         const ProcessVariable on("AWS_ACCOUNT_ID_ENDPOINT_MODE", "maybe");
         return options_refused([](TableOptions&, Options&) {});
       },
       "bad option `endpoint`: AWS_ACCOUNT_ID_ENDPOINT_MODE is not preferred, "
       "disabled or required: \"maybe\""},
      {"a prefix", table_with([](TableOptions& o) { o.prefix = "p\xff"; }),
       "bad option `prefix`: not UTF-8: \"p\\xff\""},
      {"a key that is the record's",
       table_with([](TableOptions& o) { o.key = "uuid"; }),
       "bad option `key`: the lock has an attribute of this name: \"uuid\""},
      {"a sort key that is the key",
       table_with([](TableOptions& o) { o.sort_key = "name"; }),
       "bad option `sort_key`: the same as key: \"name\""},
      {"a sort value without a sort key",
       table_with([](TableOptions& o) { o.sort_value = "x"; }),
       "bad option `sort_value`: set, but sort_key is not: \"x\""},
      {"a mutex's sort value without a sort key",
       mutex_with([](Options& o) { o.sort_value = "x"; }),
       "bad option `sort_value`: the table has no sort_key: \"x\" (mutex "
       "\"x\")"},
      {"a margin",
       table_with([](TableOptions& o) { o.calendar_margin = -5ms; }),
       "bad option `calendar_margin`: -5 ms is not from 0 to a day"},
      {"a lease that looks like seconds", with([](TableOptions& o, Options& m) {
         o.layout = ddbmutex::Layout::awslabs;
         m.ttl = 900ms;
       }),
       "bad option `ttl`: 900 ms is less than 1 s, the least in this layout "
       "(mutex \"x\")"},
      {"a limit", mutex_with([](Options& o) { o.handover_limit = -3; }),
       "bad option `handover_limit`: -3 is less than 0 (mutex \"x\")"},
      {"an owner", mutex_with([](Options& o) { o.owner = "me\xff\x1b"; }),
       "bad option `owner`: not UTF-8: \"me\\xff\\x1b\" (mutex \"x\")"},
      {"an attribute that is there twice", mutex_with([](Options& o) {
         const ddbmutex::Attribute text = {
             "a\x1b", ddbmutex::Attribute::Type::string, "secret", {}};
         o.attributes = {text, text};
       }),
       "bad option `attributes`: \"a\\x1b\" is given twice (mutex \"x\")"},
      {"an attribute that is no number", mutex_with([](Options& o) {
         o.attributes = {
             {"a\n", ddbmutex::Attribute::Type::number, "secret", {}}};
       }),
       "bad option `attributes`: \"a\\n\": * (mutex \"x\")"},
      {"access_key_id or secret_access_key is missing",
       table_with([](TableOptions& o) {
         o.credentials = {"id", "", "", "", {}};
       }),
       "bad option `credentials`: access_key_id or secret_access_key is "
       "missing"},
      {"the other half", table_with([](TableOptions& o) {
         o.credentials = {"", "a-secret", "", "", {}};
       }),
       "bad option `credentials`: access_key_id or secret_access_key is "
       "missing"},
  });
}

// Of calls, too.
BOOST_AUTO_TEST_CASE(bad_arguments_are_told_with_their_values) {
  const ScriptedServer server;
  Table table(table_options(server));
  ddbmutex::Creation how;
  how.tags = {{"good", "x"}, {"team\x1b", "\xff"}};
  BOOST_TEST(told_by(server, [&] { table.create(how); }) ==
             "bad option `tags`: not UTF-8: \"team\\x1b\"");
  BOOST_TEST(told_by(server, [&] { table.inspect("a\xff"); }) ==
             "bad option `name`: not UTF-8: \"a\\xff\"");
  BOOST_TEST(told_by(server, [&] { table.inspect("a", "b"); }) ==
             "bad option `sort_value`: the table has no sort_key: \"b\"");
  const std::string longest(3000, 'n');
  const std::string told = told_by(server, [&] { table.inspect(longest); });
  BOOST_TEST(has(told, "longer than 2,048 bytes with the prefix: \"nnn"), told);
  BOOST_TEST(told.size() < 400u);
  BOOST_TEST(server.connection_count() == 0);
}

// By its field alone one can tell whose name it is.
BOOST_AUTO_TEST_CASE(names_of_mutexes_and_tables_are_told_apart) {
  const ScriptedServer server;
  const auto no_name =
      error_of([&] { DdbMutex mutex("", on_table(table_at(server))); });
  BOOST_TEST_REQUIRE(no_name.has_value());
  BOOST_TEST(no_name->field() == "name");
  BOOST_TEST(no_name->what() ==
             std::string("bad option `name`: empty (mutex \"\")"));
  TableOptions options = table_options(server);
  options.name = "";
  const auto no_table = error_of([&] { Table table(options); });
  BOOST_TEST_REQUIRE(no_table.has_value());
  BOOST_TEST(no_table->field() == "table");
}

BOOST_AUTO_TEST_SUITE_END()
