// Keys of a user who has signed on, with `aws login` or by single sign-on:
// which cache file is read, what is sent to the service, when and how keys or a
// token are refreshed, what is written back, and what the error tells a user
// who must sign on again.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <ctime>
#include <filesystem>
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

namespace {

Aws& aws() {
  static Aws services;
  return services;
}

std::string time_of(std::int64_t seconds_from_now) {
  return iso_time(std::time(nullptr) + seconds_from_now);
}

using Members = std::map<std::string, std::string>;

// A JSON object: first `more`, then these members.
std::string object_of(const Members& all, std::string more = {}) {
  for (const auto& [name, value] : all) {
    more += (more.empty() ? "" : ", ") + tests::json_string(name) + ": " +
            tests::json_string(value);
  }
  return "{" + more + "}";
}

KeySourcePtr source_of_dev(const Site& site) {
  ChainOptions options;
  options.profile = "dev";
  return site.chain(options);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream input(path);
  std::ostringstream all;
  all << input.rdbuf();
  return all.str();
}

const std::string& own_key() {
  static const std::string pem = pem_of("P-256");
  return pem;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(login)

namespace {

constexpr char kAlice[] = "arn:aws:iam::123456789012:user/alice";
constexpr char kClient[] = "arn:aws:signin:::devtools/same-device";
constexpr char kRefreshToken[] = "refresh-token-of-a-login";

// A cache file.  Its keys expire in so many seconds.
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
  std::string json() const {
    return object_of(members, "\"accessToken\": " + object_of(keys));
  }

  Members keys;
  Members members;
};

// A user has signed on at the stand-in, for the profile "dev".
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
  void login(const Cached& cached) const { write(file(), cached.json()); }
  KeySourcePtr source() const { return source_of_dev(*this); }
  std::string text() const { return text_of(root / file()); }
  // A member of the file, or of the keys in it.
  std::string member(const char* name) const {
    const Document parsed = parse_json(text());
    BOOST_TEST_REQUIRE(parsed.root().is_object(), text());
    const auto own = parsed.root()[name].text();
    return std::string(own ? *own : parsed.root()["accessToken"].text(name));
  }
  std::string place() const {
    return "login_session of profile \"dev\" in " + quoted(".aws/config");
  }
  // The end of an error that tells the user to sign on.
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

// Whether the stand-in accepted the proof of each request.
bool all_proved() {
  for (const AwsRequest& request : aws().log().requests()) {
    if (request.service == "signin" && request.signature != "good") {
      return false;
    }
  }
  return true;
}

}  // namespace

// --- Nobody has signed on ---------------------------------------------------

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
  }
  for (const char* name : {"refreshToken", "clientId", "dpopKey"}) {
    Cached without = whole;
    without.members.erase(name);
    broken.emplace_back(without.json(), std::string("no ") + name);
  }
  Cached late = whole;
  late.keys["expiresAt"] = "soon";
  broken.emplace_back(late.json(), "expiresAt is not an ISO 8601 time");
  Cached unfit = whole;
  unfit.keys["sessionToken"] = "a\r\nX-Evil: 1";
  broken.emplace_back(unfit.json(), "sessionToken");
  broken.emplace_back(object_of(whole.members), "no accessToken");
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
  BOOST_TEST(calls() == 0);
}

// --- Refreshed --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(refreshed_keys_serve_the_next_time_from_the_file) {
  LoggedIn site;
  site.login(Cached(-10));
  const std::string first = tests::key_of(asked(site.source()));
  BOOST_TEST(tests::key_of(asked(site.source())) == first);
  BOOST_TEST(calls() == 1);
}

// A server may take each proof once.
BOOST_AUTO_TEST_CASE(request_that_is_sent_again_has_another_proof) {
  // The library has only some seconds for all three.
  BOOST_TEST(tests::undisturbed(1s, [] {
               LoggedIn site;
               site.login(Cached(-10));
               aws().fault({"signin", "*", "truncate", 2});
               const KeyOutcome outcome = asked(site.source());
               if (state_of(outcome) != "found") return said(outcome);
               return std::string(calls() == 3 && all_proved() ? ""
                                                               : "unproved");
             }) == "");
}

// The service judges the proof's time by its own clock, and so it states the
// keys' end.
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

// --- Several processes ------------------------------------------------------

// The service accepts the refresh token once.
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
      answer = tests::texts_of(tests::asked(*source));
    });
  }
  BOOST_TEST(tests::eventually([] { return calls() >= 1; }));
  aws().mode("signin", "open");
  for (std::thread& process : processes) process.join();
  for (const std::string& answer : answers) {
    BOOST_TEST(answer == site.place() + "\n\n");
  }
  BOOST_TEST(calls() == 1);
  // The file that was written is complete and can be refreshed again.
  BOOST_TEST(state_of(asked(site.source())) == "found");
  Cached next(-10);
  next.members["refreshToken"] = site.member("refreshToken");
  site.login(next);
  BOOST_TEST(state_of(asked(site.source())) == "found");
}

// --- Where it is asked ------------------------------------------------------

// Each is given a bad region, and the error names where that is from.
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

BOOST_AUTO_TEST_SUITE_END()

// --- Proofs -----------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(dpop)

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

// --- Single sign-on ----------------------------------------------------------

BOOST_AUTO_TEST_SUITE(sso)

namespace {

constexpr char kStartUrl[] = "https://start.example/start";
constexpr char kSecrets[] =
    "access-token-of-sso refresh-token client-secret new-token";

// A cache file.
struct Cached {
  std::string json() const { return object_of(members); }
  Members members;
};

Cached cached(std::int64_t seconds,
              const std::string& token = "access-token-of-sso") {
  return {{{"accessToken", token},
           {"expiresAt", time_of(seconds)},
           {"startUrl", kStartUrl},
           {"region", "eu-west-1"}}};
}

// A token that can be exchanged for another.
Cached renewable(std::int64_t seconds) {
  Cached token = cached(seconds);
  token.members["refreshToken"] = "refresh-token";
  token.members["clientId"] = "client";
  token.members["clientSecret"] = "client-secret";
  token.members["registrationExpiresAt"] = time_of(86400);
  return token;
}

// A user has signed on at the stand-in, with an sso-session or the older way.
struct SignedOn : Site {
  explicit SignedOn(Aws& services, bool with_session = true)
      : Site(services), session(with_session) {
    services.clear();
    services.control("POST", "/sso", R"({"tokens": [], "roles": null})");
    services.sso_token("access-token-of-sso", 1h);
    services.sso_client("client", "client-secret", 1h);
    services.refresh_token("refresh-token", "client", 1h);
    services.forget();
    write(".aws/config", config());
  }

  std::string config() const {
    const std::string own =
        "[profile dev]\nsso_account_id = 123456789012\nsso_role_name = Role\n";
    const std::string where = std::string("sso_region = eu-west-1\n") +
                              "sso_start_url = " + kStartUrl + "\n";
    return session ? own + "sso_session = corp\n[sso-session corp]\n" + where
                   : own + where;
  }
  std::string file() const {
    return ".aws/sso/cache/" + sha1_hex(session ? "corp" : kStartUrl) + ".json";
  }
  void sign_on(const Cached& token) const { write(file(), token.json()); }
  KeySourcePtr source() const { return source_of_dev(*this); }
  std::string text() const { return text_of(root / file()); }
  std::string member(const char* name) const {
    const std::string all = text();
    const Document parsed = parse_json(all);
    BOOST_TEST_REQUIRE(parsed.root().is_object(), all);
    return std::string(parsed.root()[name].text().value_or("-"));
  }
  std::string place() const {
    return "profile \"dev\" in " + quoted(".aws/config");
  }

  const bool session;
};

// `said`, of an outcome that tells no secret.
std::string told(const KeyOutcome& outcome) {
  std::istringstream words(kSecrets);
  for (std::string word; words >> word;) {
    BOOST_TEST(!has(texts_of(outcome), word), texts_of(outcome));
  }
  return said(outcome);
}

int calls(const char* service) { return aws().log().count(service); }

}  // namespace

BOOST_AUTO_TEST_CASE(cache_file_that_holds_no_token_is_broken) {
  SignedOn site(aws());
  const std::string ends = "\"expiresAt\": \"2999-01-01T00:00:00Z\"";
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", "is not a JSON object"},
      {"{" + ends + "}", "has no accessToken"},
      {"{\"accessToken\": \"access-token-of-sso\"}", "has no valid expiresAt"},
      {"{\"accessToken\": \"access-token-of-sso\", \"expiresAt\": \"soon\"}",
       "has no valid expiresAt"},
      {"{\"accessToken\": \"access-token-of-sso\\r\\nX-Evil: 1\", " + ends +
           "}",
       "a character that is not visible ASCII"},
      {std::string(100000, ' '), "is longer than "},
  };
  for (const auto& [text, reason] : texts) {
    site.write(site.file(), text);
    const std::string answer = told(asked(site.source()));
    BOOST_TEST(has(answer, "broken: " + site.place()), answer);
    BOOST_TEST(has(answer, reason), answer);
  }
  BOOST_TEST(calls("*") == 0);
}

// --- Tokens that end -------------------------------------------------------

BOOST_AUTO_TEST_CASE(exchanged_token_is_written_with_all_else_there_was) {
  SignedOn site(aws());
  Cached token = renewable(-10);
  token.members["more"] = "\"\\\n\xC3\xA4";
  std::string text = token.json();
  text.insert(1, "\"number\": 1.5, \"list\": [1, {\"a\": null}], ");
  site.write(site.file(), text, 0644);
  BOOST_TEST(state_of(asked(site.source())) == "found");
  BOOST_TEST(site.mode_of(site.file()) == "600 of 1");
  const std::string fresh = site.member("accessToken");
  BOOST_TEST(fresh != "access-token-of-sso");
  BOOST_TEST(fresh.size() > 20u);
  BOOST_TEST(site.member("refreshToken") != "refresh-token");
  BOOST_TEST(site.member("startUrl") == kStartUrl);
  BOOST_TEST(site.member("more") == token.members["more"]);
  BOOST_TEST(site.member("registrationExpiresAt") ==
             token.members["registrationExpiresAt"]);
  BOOST_TEST(has(site.text(), "\"number\":1.5"));
  BOOST_TEST(has(site.text(), "\"list\":[1,{\"a\":null}]"));
}

// Even if the new one expires earlier.
BOOST_AUTO_TEST_CASE(new_sign_on_counts_and_not_the_token_written_before) {
  SignedOn site(aws());
  site.sign_on(renewable(-10));
  const KeySourcePtr source = site.source();
  BOOST_TEST(state_of(asked(source)) == "found");
  site.sign_on(cached(3600, "wrong-token"));
  BOOST_TEST(state_of(asked(source)) == "broken");
}

// Each refresh token can be used once, and another process may use it first.
BOOST_AUTO_TEST_CASE(token_that_another_process_got_meanwhile_is_taken) {
  SignedOn site(aws());
  Cached token = renewable(-10);
  token.members["refreshToken"] = "used-by-another";
  site.sign_on(token);
  aws().mode("oidc", "hang");
  aws().sso_token("new-token", 1h);
  // Boost.Test's checks are for one thread, so this one makes none.
  const std::string json = cached(3600, "new-token").json();
  std::thread other([&] {
    tests::eventually([] { return calls("oidc") > 0; });
    // The other process replaces the file in one step.
    std::ofstream(site.root / (site.file() + ".new")) << json;
    std::filesystem::rename(site.root / (site.file() + ".new"),
                            site.root / site.file());
    aws().mode("oidc", "open");  // Answers: the refresh token is unknown.
  });
  const std::string answer = told(asked(site.source()));
  other.join();
  BOOST_TEST(answer.rfind("found: ", 0) == 0u, answer);
}

// libcurl keeps copies of what it has sent, so no connection is accepted here.
BOOST_AUTO_TEST_CASE(what_is_secret_does_not_stay_in_memory) {
  SignedOn site(aws());
  site.variables["AWS_ENDPOINT_URL_SSO"] = "http://127.0.0.1:1";
  site.variables["AWS_ENDPOINT_URL_SSO_OIDC"] = "http://127.0.0.1:1";
  const std::string path = site.write(site.file(), "");
  const std::vector<std::pair<std::string, std::int64_t>> secrets = {
      {"accessToken", 3600}, {"refreshToken", -10}, {"clientSecret", -10}};
  for (const auto& [name, seconds] : secrets) {
    tests::Needle needle(static_cast<unsigned>(name.size()));
    Cached token = renewable(seconds);
    token.members.erase(name);
    std::string rest = token.json();
    rest.front() = ',';
    needle.write(path, "{\"" + name + "\": \"", "\"" + rest);
    BOOST_TEST(has(told(asked(site.source())), "failed: "), name);
    BOOST_TEST(!needle.is_in_memory(), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- JSON that is written --------------------------------------------------

BOOST_AUTO_TEST_SUITE(sso_json)

BOOST_AUTO_TEST_CASE(texts_take_the_place_of_members_of_an_inner_object) {
  const char* const object =
      R"({"in": {"a": 1, "b": {"a": 2}}, "a": "x", "no": {"a": 3}})";
  BOOST_TEST(with_texts(object, {{"a", "new"}}, "in", {{"a", "y"}}) ==
             R"({"in":{"b":{"a":2},"a":"y"},"no":{"a":3},"a":"new"})");
  BOOST_TEST(with_texts(R"({"in": "text"})", {}, "in", {{"a", "y"}}) ==
             R"({"in":"text"})");
}

BOOST_AUTO_TEST_SUITE_END()
