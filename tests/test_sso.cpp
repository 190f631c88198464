// Keys by single sign-on: which cache file is read, what goes to the portal,
// when and how a token is exchanged for a new one, and what is said to whom has
// to sign on.
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

#include "sigv4/keys/from_json.hpp"
#include "sigv4/utc.hpp"
#include "tests/support/chain_kit.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/memory.hpp"

namespace {

using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::asked;
using tests::Aws;
using tests::has;
using tests::json_string;
using tests::said;
using tests::Site;
using tests::state_of;
using tests::texts_of;

constexpr char kStartUrl[] = "https://start.example/start";
constexpr char kSecrets[] =
    "access-token-of-sso refresh-token client-secret new-token";

std::string time_of(std::int64_t seconds_from_now) {
  return iso_time(std::time(nullptr) + seconds_from_now);
}

// A cache file's text, by what it has.
struct Cached {
  std::string json() const {
    std::string text = "{";
    for (const auto& [name, value] : members) {
      text += (text.size() > 1 ? ", " : "") + json_string(name) + ": " +
              json_string(value);
    }
    return text + "}";
  }
  std::map<std::string, std::string> members;
};

Cached cached(std::int64_t seconds,
              const std::string& token = "access-token-of-sso") {
  return {{{"accessToken", token},
           {"expiresAt", time_of(seconds)},
           {"startUrl", kStartUrl},
           {"region", "eu-west-1"}}};
}

// That can be exchanged for another.
Cached renewable(std::int64_t seconds) {
  Cached token = cached(seconds);
  token.members["refreshToken"] = "refresh-token";
  token.members["clientId"] = "client";
  token.members["clientSecret"] = "client-secret";
  token.members["registrationExpiresAt"] = time_of(86400);
  return token;
}

// Somebody has signed on at the stand-in, with a session or the older way.
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
  KeySourcePtr source() const {
    ChainOptions options;
    options.profile = "dev";
    return chain(options);
  }
  std::string text() const {
    std::ifstream input(root / file());
    std::ostringstream all;
    all << input.rdbuf();
    return all.str();
  }
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

Aws& aws() {
  static Aws services;
  return services;
}

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

BOOST_AUTO_TEST_SUITE(sso)

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

// However much sooner that one ends.
BOOST_AUTO_TEST_CASE(new_sign_on_counts_and_not_the_token_written_before) {
  SignedOn site(aws());
  site.sign_on(renewable(-10));
  const KeySourcePtr source = site.source();
  BOOST_TEST(state_of(asked(source)) == "found");
  site.sign_on(cached(3600, "wrong-token"));
  BOOST_TEST(state_of(asked(source)) == "broken");
}

// Each refresh token is good for once, and another process may have it first.
BOOST_AUTO_TEST_CASE(token_that_another_process_got_meanwhile_is_taken) {
  SignedOn site(aws());
  Cached token = renewable(-10);
  token.members["refreshToken"] = "used-by-another";
  site.sign_on(token);
  tests::AwsFault slow{"oidc", "CreateToken", "slow"};
  slow.wait = 3s;
  aws().fault(slow);
  aws().sso_token("new-token", 1h);
  // Its thread makes no check: Boost.Test's are for one thread.
  const std::string json = cached(3600, "new-token").json();
  std::thread other([&] {
    const auto patience = ddbmutex::BootClock::now() + 30s;
    while (aws().log().count("oidc") == 0) {
      if (ddbmutex::BootClock::now() > patience) return;
      std::this_thread::yield();
    }
    // As the other does it: at once.
    std::ofstream(site.root / (site.file() + ".new")) << json;
    std::filesystem::rename(site.root / (site.file() + ".new"),
                            site.root / site.file());
  });
  const std::string answer = told(asked(site.source()));
  other.join();
  BOOST_TEST(answer.rfind("found: ", 0) == 0u, answer);
}

// What libcurl has sent is its own; so nobody takes the connection here.
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
