// Keys of whoever has signed on with `aws login`: which cache file is read, how
// its keys are refreshed, what is written back, and what is said to whom has to
// sign on.
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sigv4/keys/dpop.hpp"
#include "sigv4/keys/from_json.hpp"
#include "sigv4/utc.hpp"
#include "tests/support/chain_kit.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/login_kit.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/waiting.hpp"

namespace {

using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::asked;
using tests::Aws;
using tests::AwsRequest;
using tests::has;
using tests::pem_of;
using tests::said;
using tests::Site;
using tests::state_of;
using tests::texts_of;

constexpr char kAlice[] = "arn:aws:iam::123456789012:user/alice";
constexpr char kClient[] = "arn:aws:signin:::devtools/same-device";
constexpr char kRefreshToken[] = "refresh-token-of-a-login";

Aws& aws() {
  static Aws services;
  return services;
}

const std::string& own_key() {
  static const std::string pem = pem_of("P-256");
  return pem;
}

std::string time_of(std::int64_t seconds_from_now) {
  return iso_time(std::time(nullptr) + seconds_from_now);
}

// A cache file's text, by what it has.
struct Cached {
  explicit Cached(std::int64_t seconds) {
    keys = {{"accessKeyId", "AKIDLOGIN"},
            {"secretAccessKey", "secret-access-key-of-a-login"},
            {"sessionToken", "session-token-of-a-login"},
            {"accountId", "123456789012"},
            {"expiresAt", time_of(seconds)}};
    members = {{"clientId", kClient},
               {"dpopKey", own_key()},
               {"idToken", "id-token-of-a-login"},
               {"refreshToken", kRefreshToken},
               {"tokenType", "aws_sigv4"}};
  }
  static std::string object_of(const std::map<std::string, std::string>& all,
                               std::string more = {}) {
    for (const auto& [name, value] : all) {
      more += (more.empty() ? "" : ", ") + tests::json_string(name) + ": " +
              tests::json_string(value);
    }
    return "{" + more + "}";
  }
  std::string json() const {
    return object_of(members, "\"accessToken\": " + object_of(keys));
  }

  std::map<std::string, std::string> keys;
  std::map<std::string, std::string> members;
};

// Somebody has signed on at the stand-in, for the profile "dev".
struct LoggedIn : Site {
  LoggedIn() : Site(aws()) {
    aws().clear();
    aws().control("POST", "/signin", R"({"once": false})");
    aws().login_token(kRefreshToken, kClient, own_key(), 1h);
    aws().forget();
    config("");
  }

  void config(const std::string& more) const {
    write(".aws/config", "[profile dev]\nlogin_session = " +
                             std::string(kAlice) + "\n" + more);
  }
  std::string name() const { return sha256_hex(kAlice) + ".json"; }
  std::string file() const { return ".aws/login/cache/" + name(); }
  std::string path() const { return (root / file()).string(); }
  void login(const Cached& cached) const { write(file(), cached.json()); }
  KeySourcePtr source(const std::string& profile = "dev") const {
    ChainOptions options;
    options.profile = profile;
    return chain(options);
  }
  std::string text() const {
    std::ifstream input(path());
    std::ostringstream all;
    all << input.rdbuf();
    return all.str();
  }
  // Of the file, or of the keys in it.
  std::string member(const char* name) const {
    const Document parsed = parse_json(text());
    BOOST_TEST_REQUIRE(parsed.root().is_object(), text());
    const auto own = parsed.root()[name].text();
    return std::string(own ? *own : parsed.root()["accessToken"].text(name));
  }
  std::string place() const {
    return "login_session of profile \"dev\" in " + quoted(".aws/config");
  }
  // The end of an error for whoever has to sign on.
  std::string advice() const {
    return " (sign-on cache " + quoted(file()) +
           "); sign on with: aws login --profile \"dev\"";
  }
};

// `said`, of an outcome that tells no secret.
std::string told(const KeyOutcome& outcome) {
  for (const char* secret :
       {kRefreshToken, "secret-access-key-of-a-login",
        "session-token-of-a-login", "id-token-of-a-login", "BEGIN"}) {
    BOOST_TEST(!has(texts_of(outcome), secret), texts_of(outcome));
  }
  return said(outcome);
}

int calls() { return aws().log().count("signin"); }

// Whether each request had a proof that the stand-in took for good.
bool all_proved() {
  for (const AwsRequest& request : aws().log().requests()) {
    if (request.service == "signin" && request.signature != "good") {
      return false;
    }
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(login)

// --- Keys that are there ----------------------------------------------------

BOOST_AUTO_TEST_CASE(cached_keys_of_a_login_are_the_profiles) {
  LoggedIn site;
  site.login(Cached(800));
  const KeyOutcome outcome = asked(site.source());
  BOOST_TEST(told(outcome) == "found: " + site.place());
  BOOST_TEST(outcome.keys.access_key_id == "AKIDLOGIN");
  BOOST_TEST(outcome.keys.secret_access_key.str() ==
             "secret-access-key-of-a-login");
  BOOST_TEST(outcome.keys.session_token.str() == "session-token-of-a-login");
  BOOST_TEST(outcome.keys.account_id == "123456789012");
  BOOST_TEST(tests::seconds_left(outcome) <= 800);
  BOOST_TEST(tests::seconds_left(outcome) > 800 - 120);
  BOOST_TEST(outcome.warnings == "");
  BOOST_TEST(calls() == 0);
}

// The name is what AWS's tools write: by SHA-256, of the value as it stands.
BOOST_AUTO_TEST_CASE(cache_file_is_called_by_the_sha_256_of_the_session) {
  LoggedIn site;
  site.write(".aws/config", "[profile dev]\nlogin_session = abc\n");
  site.write(
      ".aws/login/cache/"
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
      ".json",
      Cached(800).json());
  BOOST_TEST(state_of(asked(site.source())) == "found");
}

BOOST_AUTO_TEST_CASE(variable_names_another_folder_for_the_cache) {
  LoggedIn site;
  site.write("elsewhere/" + site.name(), Cached(800).json());
  BOOST_TEST(state_of(asked(site.source())) == "broken");
  site.variables["AWS_LOGIN_CACHE_DIRECTORY"] =
      (site.root / "elsewhere").string();
  BOOST_TEST(state_of(asked(site.source())) == "found");
  for (const char* path : {"~/elsewhere", "$HOME/elsewhere"}) {
    site.variables["AWS_LOGIN_CACHE_DIRECTORY"] = path;
    BOOST_TEST(state_of(asked(site.source())) == "found", path);
  }
  site.variables["AWS_LOGIN_CACHE_DIRECTORY"] =
      (site.root / "elsewhere").string();
  site.variables.erase("HOME");
  site.variables["AWS_CONFIG_FILE"] = (site.root / ".aws/config").string();
  BOOST_TEST(state_of(asked(site.source())) == "found");
  site.variables["AWS_LOGIN_CACHE_DIRECTORY"] = "";
  BOOST_TEST(has(told(asked(site.source())),
                 "the cache of sign-ons cannot be found (HOME is not set)"));
}

BOOST_AUTO_TEST_CASE(cache_file_is_read_anew_each_time) {
  LoggedIn site;
  const KeySourcePtr source = site.source();
  BOOST_TEST(state_of(asked(source)) == "broken");
  site.login(Cached(800));
  BOOST_TEST(state_of(asked(source)) == "found");
  std::filesystem::remove(site.path());
  BOOST_TEST(state_of(asked(source)) == "broken");
}

BOOST_AUTO_TEST_CASE(keys_of_a_login_assume_the_role_of_another_profile) {
  LoggedIn site;
  const tests::AwsKeys issued = aws().issue(1h);
  aws().role({"arn:aws:iam::123456789012:role/locker"});
  Cached cached(800);
  cached.keys["accessKeyId"] = issued.access_key_id;
  cached.keys["secretAccessKey"] = issued.secret_access_key;
  cached.keys["sessionToken"] = issued.session_token;
  site.login(cached);
  site.config(
      "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/locker\n"
      "source_profile = dev\n");
  const std::string answer = told(asked(site.source("role")));
  BOOST_TEST(has(answer, "found: role "), answer);
  BOOST_TEST(has(answer, ", from " + site.place()), answer);
  BOOST_TEST(aws().log().last("sts").key == issued.access_key_id);
}

// --- Nobody has signed on ---------------------------------------------------

BOOST_AUTO_TEST_CASE(who_has_not_signed_on_is_told_how) {
  LoggedIn site;
  BOOST_TEST(told(asked(site.source())) == "broken: " + site.place() +
                                               ": nobody has signed on yet" +
                                               site.advice());
  site.write(".aws/config",
             "[default]\nlogin_session = " + std::string(kAlice) + "\n");
  const std::string answer = told(asked(site.source("")));
  BOOST_TEST(has(answer, "sign on with: aws login"), answer);
  BOOST_TEST(!has(answer, "--profile"), answer);
}

BOOST_AUTO_TEST_CASE(
    cache_file_that_lacks_anything_is_named_with_what_it_lacks) {
  LoggedIn site;
  const Cached whole(800);
  std::vector<std::pair<std::string, std::string>> broken;
  for (const char* name : {"accessKeyId", "secretAccessKey", "sessionToken",
                           "accountId", "expiresAt"}) {
    Cached without = whole;
    without.keys.erase(name);
    broken.emplace_back(without.json(), name);
    without.keys[name] = "";
    broken.emplace_back(without.json(), name);
  }
  for (const char* name : {"refreshToken", "clientId", "dpopKey"}) {
    Cached without = whole;
    without.members.erase(name);
    broken.emplace_back(without.json(), std::string("no ") + name);
    without.members[name] = "";
    broken.emplace_back(without.json(), std::string("no ") + name);
  }
  Cached late = whole;
  late.keys["expiresAt"] = "soon";
  broken.emplace_back(late.json(), "expiresAt is not an ISO 8601 time");
  Cached unfit = whole;
  unfit.keys["sessionToken"] = "a\r\nX-Evil: 1";
  broken.emplace_back(unfit.json(), "sessionToken");
  broken.emplace_back(Cached::object_of(whole.members), "no accessToken");
  broken.emplace_back(
      Cached::object_of(whole.members, "\"accessToken\": \"text\""),
      "no accessToken");
  for (const char* text : {"", "[]", "{\"accessToken\":"}) {
    broken.emplace_back(text, "is not a JSON object");
  }
  broken.emplace_back(std::string(100000, ' '), "is longer than ");
  for (const auto& [text, reason] : broken) {
    site.write(site.file(), text);
    const std::string answer = told(asked(site.source()));
    BOOST_TEST(has(answer, "broken: " + site.place()), answer);
    BOOST_TEST(has(answer, reason), answer << " should name " << reason);
    BOOST_TEST(has(answer, site.advice()), answer);
  }
  std::filesystem::remove(site.path());
  std::filesystem::create_directory(site.path());
  const std::string answer = told(asked(site.source()));
  BOOST_TEST(has(answer, "the file is not a regular file" + site.advice()));
  BOOST_TEST(calls() == 0);
}

// --- Refreshed --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(keys_are_refreshed_when_they_have_five_minutes_left) {
  for (const int seconds : {-1000, 60, 240}) {
    LoggedIn site;
    site.login(Cached(seconds));
    const KeyOutcome outcome = asked(site.source());
    BOOST_TEST(told(outcome) == "found: " + site.place());
    BOOST_TEST(outcome.keys.access_key_id != "AKIDLOGIN");
    BOOST_TEST(outcome.keys.access_key_id == site.member("accessKeyId"));
    BOOST_TEST(outcome.keys.secret_access_key.str() ==
               site.member("secretAccessKey"));
    BOOST_TEST(outcome.keys.session_token.str() == site.member("sessionToken"));
    BOOST_TEST(outcome.keys.account_id == "123456789012");
    BOOST_TEST(tests::seconds_left(outcome) <= 900);
    BOOST_TEST(tests::seconds_left(outcome) > 900 - 120);
    BOOST_TEST_REQUIRE(calls() == 1);
    const AwsRequest request = aws().log().last("signin");
    BOOST_TEST(request.operation == "CreateOAuth2Token");
    BOOST_TEST(request.method == "POST");
    BOOST_TEST(request.form.at("grantType") == "refresh_token");
    BOOST_TEST(request.form.at("clientId") == kClient);
    BOOST_TEST(request.signature == "good");
    BOOST_TEST(request.status == 200);
  }
  LoggedIn site;
  site.login(Cached(400));
  BOOST_TEST(state_of(asked(site.source())) == "found");
  BOOST_TEST(calls() == 0);
}

BOOST_AUTO_TEST_CASE(refreshed_keys_are_written_with_all_else_there_was) {
  LoggedIn site;
  Cached cached(-10);
  cached.members["more"] = "\"\\\n\xC3\xA4";
  cached.keys["scope"] = "kept";
  std::string text = cached.json();
  text.insert(1, "\"number\": 1.5, \"list\": [1, {\"a\": null}], ");
  site.write(site.file(), text);
  BOOST_TEST(state_of(asked(site.source())) == "found");
  BOOST_TEST(site.member("refreshToken") != kRefreshToken);
  BOOST_TEST(!site.member("refreshToken").empty());
  BOOST_TEST(site.member("accountId") == "123456789012");
  BOOST_TEST(site.member("scope") == "kept");
  BOOST_TEST(site.member("more") == cached.members["more"]);
  for (const char* name : {"clientId", "dpopKey", "idToken", "tokenType"}) {
    BOOST_TEST(site.member(name) == cached.members[name]);
  }
  BOOST_TEST(has(site.text(), "\"number\":1.5"));
  BOOST_TEST(has(site.text(), "\"list\":[1,{\"a\":null}]"));
  const auto ends = parse_iso8601(site.member("expiresAt"));
  BOOST_TEST_REQUIRE(ends.has_value());
  BOOST_TEST(*ends > std::time(nullptr) + 900 - 120);
  BOOST_TEST(*ends <= std::time(nullptr) + 900);
}

BOOST_AUTO_TEST_CASE(written_cache_file_is_its_owners_and_the_only_one) {
  LoggedIn site;
  site.write(site.file(), Cached(-10).json(), 0644);
  const KeyOutcome outcome = asked(site.source());
  BOOST_TEST(state_of(outcome) == "found");
  BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
  BOOST_TEST(has(outcome.warnings, site.quoted(site.file())));
  BOOST_TEST(site.mode_of(site.file()) == "600 of 1");
}

BOOST_AUTO_TEST_CASE(refreshed_keys_serve_the_next_time_from_the_file) {
  LoggedIn site;
  site.login(Cached(-10));
  const std::string first = tests::key_of(asked(site.source()));
  BOOST_TEST(tests::key_of(asked(site.source())) == first);
  BOOST_TEST(calls() == 1);
}

// A service may give keys for less than the five minutes.
BOOST_AUTO_TEST_CASE(
    refresh_that_succeeded_may_be_followed_by_another_at_once) {
  LoggedIn site;
  site.login(Cached(-10));
  aws().lifetime(60s);
  const KeySourcePtr source = site.source();
  for (int i = 1; i < 4; ++i) {
    BOOST_TEST(state_of(asked(source)) == "found");
    BOOST_TEST(calls() == i);
  }
  aws().control("POST", "/lifetime", R"({"seconds": null})");
}

// A server may take each proof once.
BOOST_AUTO_TEST_CASE(request_that_is_sent_again_has_another_proof) {
  LoggedIn site;
  site.login(Cached(-10));
  aws().fault({"signin", "*", "truncate", 2});
  BOOST_TEST(state_of(asked(site.source())) == "found");
  BOOST_TEST(calls() == 3);
  BOOST_TEST(all_proved());
}

BOOST_AUTO_TEST_CASE(key_may_be_written_in_any_way_that_pem_has) {
  for (const bool is_pkcs8 : {true, false}) {
    std::string pem = pem_of("P-256", is_pkcs8);
    BOOST_TEST(has(pem, is_pkcs8 ? "BEGIN PRIVATE" : "BEGIN EC PRIVATE"));
    std::string with_returns;
    for (const char c : pem) {
      if (c == '\n') with_returns += '\r';
      with_returns += c;
    }
    for (const std::string& form :
         {pem, pem.substr(0, pem.size() - 1), with_returns}) {
      LoggedIn site;
      aws().login_token(kRefreshToken, kClient, pem, 1h);
      Cached cached(-10);
      cached.members["dpopKey"] = form;
      site.login(cached);
      BOOST_TEST(told(asked(site.source())) == "found: " + site.place());
    }
  }
}

// The proof's time is judged by the service's clock, and the keys' end is told
// by it.
BOOST_AUTO_TEST_CASE(host_whose_clock_is_hours_off_gets_keys) {
  for (const auto offset : {-3h, 3h}) {
    LoggedIn site;
    aws().clock_offset(offset);
    aws().login_token(kRefreshToken, kClient, own_key(), 1h);
    site.login(Cached(-4 * 3600));
    const KeyOutcome outcome = asked(site.source());
    BOOST_TEST(told(outcome) == "found: " + site.place());
    BOOST_TEST(tests::seconds_left(outcome) <= 900);
    BOOST_TEST(tests::seconds_left(outcome) > 900 - 120);
    BOOST_TEST(calls() == 2);
    BOOST_TEST(aws().log().last("signin").signature == "good");
    aws().clock_offset(0s);
  }
}

// --- Not refreshed ----------------------------------------------------------

BOOST_AUTO_TEST_CASE(ended_keys_whose_refresh_is_refused_want_a_sign_on) {
  LoggedIn site;
  aws().login_token(kRefreshToken, kClient, own_key(), -1s);
  site.login(Cached(-10));
  const std::string answer = told(asked(site.source()));
  BOOST_TEST(has(answer, "broken: " + site.place() +
                             ": the session has expired and could not be "
                             "refreshed: Signin CreateOAuth2Token at "),
             answer);
  BOOST_TEST(has(answer, "AccessDeniedException: TOKEN_EXPIRED"), answer);
  BOOST_TEST(has(answer, site.advice()), answer);
  BOOST_TEST(calls() == 1);
}

BOOST_AUTO_TEST_CASE(key_that_is_not_the_tokens_is_refused) {
  LoggedIn site;
  Cached cached(-10);
  cached.members["dpopKey"] = pem_of("P-256");
  site.login(cached);
  const std::string answer = told(asked(site.source()));
  BOOST_TEST(has(answer, "broken: "), answer);
  BOOST_TEST(has(answer, "DPoP proof of another"), answer);
  BOOST_TEST(has(answer, site.advice()), answer);
}

BOOST_AUTO_TEST_CASE(key_that_cannot_prove_anything_wants_a_sign_on) {
  for (const std::string& pem :
       {std::string("no PEM"), pem_of("P-384"), tests::rsa_pem(),
        tests::public_pem(own_key()), tests::locked_pem(own_key()),
        own_key().substr(0, own_key().size() / 2)}) {
    LoggedIn site;
    Cached cached(-10);
    cached.members["dpopKey"] = pem;
    site.login(cached);
    BOOST_TEST(told(asked(site.source())) ==
               "broken: " + site.place() +
                   ": the session has expired and could not be refreshed: its "
                   "dpopKey is no private key of P-256 in PEM" +
                   site.advice());
    // Keys that are still good serve.
    cached.keys["expiresAt"] = time_of(200);
    site.login(cached);
    const KeyOutcome outcome = asked(site.source());
    BOOST_TEST(told(outcome) == "found: " + site.place());
    BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
    BOOST_TEST(has(outcome.warnings, "dpopKey"));
    BOOST_TEST(calls() == 0);
  }
}

BOOST_AUTO_TEST_CASE(good_keys_serve_on_when_they_cannot_be_refreshed) {
  for (const char* kind : {"500", "throttle", "refuse", "garbage", "reset"}) {
    LoggedIn site;
    site.login(Cached(200));
    aws().fault({"signin", "*", kind, 0});
    const KeySourcePtr source = site.source();
    const KeyOutcome outcome = asked(source);
    BOOST_TEST(told(outcome) == "found: " + site.place(), kind);
    BOOST_TEST(outcome.keys.access_key_id == "AKIDLOGIN");
    BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
    BOOST_TEST(has(outcome.warnings,
                   "the session in sign-on cache " + site.quoted(site.file()) +
                       " could not be refreshed: Signin CreateOAuth2Token at "),
               outcome.warnings);
    // At most once a minute.
    aws().clear();
    aws().forget();
    BOOST_TEST(state_of(asked(source)) == "found");
    BOOST_TEST(calls() == 0);
  }
}

BOOST_AUTO_TEST_CASE(ended_keys_that_may_be_refreshed_later_are_failed) {
  LoggedIn site;
  site.login(Cached(-10));
  aws().fault({"signin", "*", "500", 0});
  const KeySourcePtr source = site.source();
  BOOST_TEST(has(told(asked(source)),
                 "failed: " + site.place() + ": Signin CreateOAuth2Token at "));
  BOOST_TEST(calls() == 3);
  BOOST_TEST(has(told(asked(source)), "failed: " + site.place() +
                                          ": the session in sign-on cache "));
  BOOST_TEST(calls() == 3);
  aws().clear();
  site.login(Cached(800));  // Somebody signs on.
  BOOST_TEST(state_of(asked(source)) == "found");
}

BOOST_AUTO_TEST_CASE(answer_that_lacks_something_is_failed) {
  for (const char* name : {"accessToken", "accessKeyId", "secretAccessKey",
                           "sessionToken", "refreshToken", "expiresIn"}) {
    LoggedIn site;
    site.login(Cached(-10));
    tests::AwsFault fault{"signin", "*", "missing", 0};
    fault.missing = {name};
    aws().fault(fault);
    const std::string before = site.text();
    BOOST_TEST(has(told(asked(site.source())), "failed: "), name);
    BOOST_TEST(calls() == 3);
    BOOST_TEST(site.text() == before);
  }
  aws().clear();
}

// --- Several processes ------------------------------------------------------

// The refresh token is good for one of them.
BOOST_AUTO_TEST_CASE(many_that_need_a_refresh_at_once_make_one) {
  LoggedIn site;
  site.login(Cached(-10));
  aws().control("POST", "/signin", R"({"once": true})");
  aws().mode("signin", "hang");
  // Boost.Test's checks are for one thread.
  std::string answers[8];
  std::vector<std::thread> processes;
  for (std::string& answer : answers) {
    processes.emplace_back([&answer, source = site.source()] {
      tests::Asking asking;
      answer = tests::texts_of(asking.of(*source));
    });
  }
  BOOST_TEST(tests::eventually([] { return calls() >= 1; }));
  aws().mode("signin", "open");
  for (std::thread& process : processes) process.join();
  for (const std::string& answer : answers) {
    BOOST_TEST(answer == site.place() + "\n\n");
  }
  BOOST_TEST(calls() == 1);
  // What is written is whole, and good for a refresh.
  BOOST_TEST(state_of(asked(site.source())) == "found");
  Cached next(-10);
  next.members["refreshToken"] = site.member("refreshToken");
  site.login(next);
  BOOST_TEST(state_of(asked(site.source())) == "found");
}

// Where each refresh token is good for one use.
BOOST_AUTO_TEST_CASE(keys_that_another_process_got_meanwhile_are_taken) {
  LoggedIn site;
  aws().control("POST", "/signin", R"({"once": true})");
  Cached cached(-10);
  cached.members["refreshToken"] = "used-by-another";
  site.login(cached);
  aws().mode("signin", "hang");
  Cached others(800);
  others.keys["accessKeyId"] = "AKIDOTHER";
  std::thread other([&site, json = others.json()] {
    tests::eventually([] { return calls() >= 1; });
    // As the other does it: at once.
    std::ofstream(site.path() + ".new") << json;
    std::filesystem::rename(site.path() + ".new", site.path());
    aws().mode("signin", "open");
  });
  const KeyOutcome outcome = asked(site.source());
  other.join();
  BOOST_TEST(tests::key_of(outcome) == "AKIDOTHER");
}

// Keys that have not ended need not wait for whoever refreshes them.
BOOST_AUTO_TEST_CASE(good_keys_serve_while_another_process_refreshes_them) {
  LoggedIn site;
  site.login(Cached(200));
  const int folder = open((site.root / ".aws/login/cache").c_str(),
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  BOOST_TEST_REQUIRE(flock(folder, LOCK_EX) == 0);
  BOOST_TEST(told(asked(site.source())) == "found: " + site.place());
  BOOST_TEST(calls() == 0);
  site.login(Cached(-10));
  tests::Asking asking;
  BOOST_TEST(told(asking.of(*site.source(), 50ms)) ==
             "failed: " + site.place() +
                 ": another process refreshes the session in sign-on cache " +
                 site.quoted(site.file()));
  BOOST_TEST(calls() == 0);
  close(folder);
  BOOST_TEST(told(asked(site.source())) == "found: " + site.place());
}

// The old refresh token may be dead by then, so the new one must not be lost.
BOOST_AUTO_TEST_CASE(keys_that_cannot_be_written_are_kept_and_warned_about) {
  LoggedIn site;
  site.login(Cached(-10));
  // A path so long that no other can stand beside it, not even for root.
  std::string folder = (site.root / ".aws/login/cache").string();
  while (folder.size() < 4095 - site.name().size() - 4) folder += "/.";
  site.variables["AWS_LOGIN_CACHE_DIRECTORY"] = folder;
  const KeySourcePtr source = site.source();
  const KeyOutcome first = asked(source);
  BOOST_TEST(told(first) == "found: " + site.place());
  BOOST_TEST_REQUIRE(tests::is_one_line(first.warnings));
  BOOST_TEST(has(first.warnings, "could not be written to"));
  BOOST_TEST(site.member("accessKeyId") == "AKIDLOGIN");
  BOOST_TEST(tests::key_of(asked(source)) == tests::key_of(first));
  BOOST_TEST(calls() == 1);
}

// --- Where it is asked ------------------------------------------------------

// The first that is known: a wrong one is named.
BOOST_AUTO_TEST_CASE(region_is_the_sign_ons_then_the_profiles_then_the_usual) {
  LoggedIn site;
  site.variables["AWS_REGION"] = "usual/1";
  site.login(Cached(-10));
  BOOST_TEST(has(told(asked(site.source())),
                 "AWS_REGION is not the name of a region: \"usual/1\""));
  site.config("region = profile/1\n");
  BOOST_TEST(has(told(asked(site.source())),
                 "region of profile \"dev\" in " + site.quoted(".aws/config") +
                     " is not the name of a region: \"profile/1\""));
  Cached cached(-10);
  cached.members["signInRegion"] = "login/1";
  site.login(cached);
  BOOST_TEST(has(told(asked(site.source())),
                 "signInRegion in sign-on cache " + site.quoted(site.file()) +
                     " is not the name of a region: \"login/1\""));
  site.variables.erase("AWS_REGION");
  site.config("");
  site.login(Cached(-10));
  BOOST_TEST(has(told(asked(site.source())), "no region is known"));
  BOOST_TEST(calls() == 0);
}

// What libcurl and OpenSSL were given is theirs; so nobody takes the connection
// here, and there is no key.
BOOST_AUTO_TEST_CASE(what_is_secret_does_not_stay_in_memory) {
  LoggedIn site;
  site.variables["AWS_ENDPOINT_URL_SIGNIN"] = "http://127.0.0.1:1";
  const std::string path = site.write(site.file(), "");
  for (const char* name : {"refreshToken", "secretAccessKey", "sessionToken"}) {
    tests::Needle needle(static_cast<unsigned>(name[0]));
    Cached cached(-10);
    const bool of_keys = cached.keys.erase(name) != 0;
    cached.members.erase(name);
    const std::string start = "{\"" + std::string(name) + "\": \"";
    std::string rest = (of_keys ? Cached::object_of(cached.keys)
                                : Cached::object_of(cached.members));
    rest.front() = ',';
    if (of_keys) {
      needle.write(
          path,
          Cached::object_of(cached.members)
                  .substr(0, Cached::object_of(cached.members).size() - 1) +
              ", \"accessToken\": " + start,
          "\"" + rest + "}");
    } else {
      needle.write(
          path, start,
          "\", \"accessToken\": " + Cached::object_of(cached.keys) + rest);
    }
    BOOST_TEST(has(told(asked(site.source())), "failed: "), name);
    BOOST_TEST(!needle.is_in_memory(), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Proofs -----------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(dpop)

namespace {

std::string decoded(std::string part) {
  for (char& c : part) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (part.size() % 4 != 0) part += '=';
  std::string bytes(part.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(part.data()),
                      static_cast<int>(part.size()));
  BOOST_TEST_REQUIRE(size >= 0);
  return bytes;
}

}  // namespace

// Whether the signature is good, the stand-in judges (above).
BOOST_AUTO_TEST_CASE(proof_says_what_is_sent_where_and_when_and_once) {
  const DpopKey key(own_key());
  BOOST_TEST_REQUIRE(static_cast<bool>(key));
  const std::string proof = key.proof("POST", "https://h/v1/token", 1700000000);
  const std::size_t first = proof.find('.'), second = proof.rfind('.');
  BOOST_TEST_REQUIRE(first < second);
  const std::string header = decoded(proof.substr(0, first));
  const std::string claims =
      decoded(proof.substr(first + 1, second - first - 1));
  BOOST_TEST(has(header, R"("typ":"dpop+jwt")"), header);
  BOOST_TEST(has(header, R"("alg":"ES256")"), header);
  BOOST_TEST(has(header, R"("kty":"EC")"), header);
  BOOST_TEST(has(header, R"("crv":"P-256")"), header);
  BOOST_TEST(!has(header, R"("d":)"), header);
  BOOST_TEST(has(claims, R"("htm":"POST")"), claims);
  BOOST_TEST(has(claims, R"("htu":"https://h/v1/token")"), claims);
  BOOST_TEST(has(claims, R"("iat":1700000000)"), claims);
  BOOST_TEST(proof.find_first_of("+/=") == proof.npos);
  // 64 bytes, as long as the numbers' leading zeros are kept.
  for (int i = 0; i < 600; ++i) {
    const std::string other =
        key.proof("POST", "https://h/v1/token", 1700000000);
    BOOST_TEST_REQUIRE(other.size() == proof.size());
    BOOST_TEST_REQUIRE(other != proof);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_private_key_of_p_256_is_none) {
  BOOST_TEST(!DpopKey(""));
  BOOST_TEST(!DpopKey("-----BEGIN EC PRIVATE KEY-----"));
  BOOST_TEST(!DpopKey(pem_of("secp256k1")));
  BOOST_TEST(!DpopKey(pem_of("P-521")));
  BOOST_TEST(!DpopKey(tests::rsa_pem()));
  BOOST_TEST(!DpopKey(tests::public_pem(own_key())));
  BOOST_TEST(!DpopKey(tests::locked_pem(own_key())));
}

BOOST_AUTO_TEST_SUITE_END()
