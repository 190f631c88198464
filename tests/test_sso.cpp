// Keys by single sign-on: which cache file is read, what goes to the portal,
// when and how a token is exchanged for a new one, and what is said to whom has
// to sign on.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sigv4/keys/from_json.hpp"
#include "sigv4/utc.hpp"
#include "tests/support/chain_kit.hpp"
#include "tests/support/given.hpp"
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
  std::string text = amz_date(std::time(nullptr) + seconds_from_now);
  text.insert(13, ":").insert(11, ":").insert(6, "-").insert(4, "-");
  return text;
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

// No word of a secret is in what is said.
void check_secrecy(const KeyOutcome& outcome) {
  std::istringstream words(kSecrets);
  for (std::string word; words >> word;) {
    BOOST_TEST(!has(texts_of(outcome), word), texts_of(outcome));
  }
}

// `said`, of an outcome that tells no secret.
std::string told(const KeyOutcome& outcome) {
  check_secrecy(outcome);
  return said(outcome);
}

int calls(const char* service) { return aws().log().count(service); }

}  // namespace

BOOST_AUTO_TEST_SUITE(sso)

BOOST_AUTO_TEST_CASE(name_of_a_cache_file_is_a_sha_1) {
  BOOST_TEST(sha1_hex("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  BOOST_TEST(sha1_hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
}

// With 16 times as many properties, a comparison of each with each takes 256
// times as long; ours should take about 20 times as long.
BOOST_AUTO_TEST_CASE(session_of_very_many_properties_takes_little_time) {
  SignedOn site(aws());
  const auto time_for = [&](int lines) {
    std::string text = site.config();
    for (const bool profile : {false, true}) {
      text += profile ? "[profile dev]\n" : "";
      for (int i = 0; i < lines; ++i) text += "p" + std::to_string(i) + "=\n";
    }
    BOOST_TEST_REQUIRE(text.size() < kMaxProfileFileBytes);
    site.write(".aws/config", text);
    const std::clock_t begin = std::clock();
    BOOST_TEST(has(told(asked(site.source())), "nobody has signed on yet"));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double few = time_for(3500), many = time_for(56000);
  BOOST_TEST(many < 64 * few + 0.5, few << " s, " << many << " s");
}

BOOST_AUTO_TEST_CASE(token_of_a_sign_on_is_shown_to_the_portal_for_keys) {
  for (const bool session : {true, false}) {
    SignedOn site(aws(), session);
    site.sign_on(cached(3600));
    aws().lifetime(1000s);
    const KeyOutcome outcome = asked(site.source());
    BOOST_TEST(told(outcome) ==
               "found: role \"Role\" of account \"123456789012\" by single "
               "sign-on of " +
                   site.place());
    BOOST_TEST(outcome.keys.account_id == "123456789012");
    BOOST_TEST(!outcome.keys.session_token.empty());
    BOOST_TEST((outcome.ends > ddbmutex::BootClock::now() + 800s));
    BOOST_TEST((outcome.ends < ddbmutex::BootClock::now() + 1001s));
    BOOST_TEST(outcome.warnings.empty());
    const auto request = aws().log().last("sso");
    BOOST_TEST(request.method == "GET");
    BOOST_TEST(request.token == "valid");
    BOOST_TEST(request.form.at("account_id") == "123456789012");
    BOOST_TEST(request.form.at("role_name") == "Role");
    BOOST_TEST(calls("oidc") == 0);
  }
}

BOOST_AUTO_TEST_CASE(what_is_asked_for_is_encoded) {
  SignedOn site(aws());
  site.write(".aws/config",
             "[profile dev]\nsso_account_id = 1&x=2\n"
             "sso_role_name = A+b/%,=@\nsso_session = corp\n"
             "[sso-session corp]\nsso_region = eu-west-1\n"
             "sso_start_url = u\n");
  site.sign_on(cached(3600));
  BOOST_TEST(state_of(asked(site.source())) == "broken");
  const auto request = aws().log().last("sso");
  BOOST_TEST(request.form.at("account_id") == "1&x=2");
  BOOST_TEST(request.form.at("role_name") == "A+b/%,=@");
}

BOOST_AUTO_TEST_CASE(cache_file_is_read_anew_each_time) {
  SignedOn site(aws());
  const KeySourcePtr source = site.source();
  BOOST_TEST(state_of(asked(source)) == "broken");
  site.sign_on(cached(3600));
  BOOST_TEST(state_of(asked(source)) == "found");
  site.sign_on(cached(3600, "wrong-token"));
  BOOST_TEST(state_of(asked(source)) == "broken");
}

BOOST_AUTO_TEST_CASE(who_has_not_signed_on_is_told_how) {
  SignedOn with(aws(), true), without(aws(), false);
  BOOST_TEST(told(asked(with.source())) ==
             "broken: " + with.place() +
                 ": nobody has signed on yet (sign-on cache " +
                 with.quoted(with.file()) +
                 "); sign on with: aws sso login --sso-session \"corp\"");
  BOOST_TEST(told(asked(without.source())) ==
             "broken: " + without.place() +
                 ": nobody has signed on yet (sign-on cache " +
                 without.quoted(without.file()) +
                 "); sign on with: aws sso login --profile \"dev\"");
}

BOOST_AUTO_TEST_CASE(cache_file_that_holds_no_token_is_broken) {
  SignedOn site(aws());
  const std::string ends = "\"expiresAt\": \"2999-01-01T00:00:00Z\"";
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", "is not a JSON object"},
      {"[]", "is not a JSON object"},
      {"{\"accessToken\": \"access-token-of-sso\"", "is not a JSON object"},
      {"{" + ends + "}", "has no accessToken"},
      {"{\"accessToken\": 1, " + ends + "}", "has no accessToken"},
      {"{\"accessToken\": \"\", " + ends + "}", "has no accessToken"},
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
  std::filesystem::remove(site.root / site.file());
  std::filesystem::create_directory(site.root / site.file());
  BOOST_TEST(has(told(asked(site.source())), "is not a regular file"));
  BOOST_TEST(calls("*") == 0);
}

BOOST_AUTO_TEST_CASE(cache_file_of_loose_mode_is_warned_about) {
  SignedOn site(aws());
  const std::string path = site.write(site.file(), cached(3600).json(), 0644);
  const KeyOutcome outcome = asked(site.source());
  BOOST_TEST(state_of(outcome) == "found");
  BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
  BOOST_TEST(has(outcome.warnings, in_quotes(path)));
}

BOOST_AUTO_TEST_CASE(no_home_is_no_cache_and_said_so) {
  SignedOn site(aws());
  site.variables["AWS_CONFIG_FILE"] = (site.root / ".aws/config").string();
  site.variables.erase("HOME");
  BOOST_TEST(has(told(asked(site.source())),
                 "the cache of sign-ons cannot be found (HOME is not set)"));
}

// --- Settings --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(sign_on_that_lacks_a_setting_is_broken_and_names_it) {
  const std::vector<std::pair<std::string, std::string>> lacking = {
      {"sso_account_id = 1", "sso_role_name, sso_region, sso_start_url"},
      {"sso_role_name = r\nsso_region = x", "sso_account_id, sso_start_url"},
      {"sso_role_name = r\nsso_account_id = 1\nsso_session = corp\n"
       "[sso-session corp]\nsso_region = x",
       "sso_start_url"},
      {"sso_role_name = r\nsso_account_id = 1\nsso_session = corp\n"
       "[sso-session corp]\nsso_region =\nsso_start_url = u",
       "sso_region"},
  };
  for (const auto& [lines, missing] : lacking) {
    SignedOn site(aws());
    site.write(".aws/config", "[profile dev]\n" + lines);
    const bool has_account = missing.find("sso_account_id") == missing.npos;
    BOOST_TEST(told(asked(site.source())) ==
               std::string("broken: ") +
                   (has_account ? "sso_account_id" : "sso_role_name") + " of " +
                   site.place() + ": single sign-on also needs " + missing);
  }
}

BOOST_AUTO_TEST_CASE(session_that_is_not_there_is_broken) {
  SignedOn site(aws());
  site.write(".aws/config",
             "[profile dev]\nsso_role_name = r\nsso_account_id = 1\n"
             "sso_session = other\n[sso-session corp]\n");
  BOOST_TEST(told(asked(site.source())) ==
             "broken: sso_session of " + site.place() +
                 " names a section \"sso-session other\" that does not exist");
}

BOOST_AUTO_TEST_CASE(profile_that_contradicts_its_session_is_broken) {
  SignedOn site(aws());
  site.sign_on(cached(3600));
  const std::string end = "\n" + site.config().substr(14);
  site.write(".aws/config", "[profile dev]\nsso_region = eu-west-1" + end);
  BOOST_TEST(state_of(asked(site.source())) == "found");
  site.write(".aws/config", "[profile dev]\nsso_region = us-east-1" + end);
  BOOST_TEST(told(asked(site.source())) ==
             "broken: sso_region of " + site.place() +
                 " differs from that of its sso_session: \"us-east-1\"");
}

// Also where the sign-on is in another region.
BOOST_AUTO_TEST_CASE(fips_by_the_regions_name_is_for_the_sign_on_too) {
  SignedOn site(aws());
  site.sign_on(cached(3600));
  BOOST_TEST(state_of(asked(site.source())) == "found");
  site.variables["AWS_REGION"] = "fips-us-east-1";
  const std::string why = told(asked(site.source()));
  BOOST_TEST(has(why, "AWS_REGION asks for FIPS, but AWS_ENDPOINT_URL_SSO"),
             why);
}

BOOST_AUTO_TEST_CASE(region_that_is_none_is_broken) {
  SignedOn site(aws());
  site.sign_on(cached(3600));
  std::string config = site.config();
  config.replace(config.find("eu-west-1"), 9, "eu/west");
  site.write(".aws/config", config);
  BOOST_TEST(told(asked(site.source())) ==
             "broken: " + site.place() +
                 ": sso_region of section \"sso-session corp\" in " +
                 site.quoted(".aws/config") +
                 " is not the name of a region: \"eu/west\"");
}

// --- Refusals --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(token_that_the_portal_refuses_wants_a_sign_on) {
  SignedOn site(aws());
  site.sign_on(cached(3600, "other-access-token-of-sso"));
  const std::string answer = told(asked(site.source()));
  BOOST_TEST(
      has(answer, "broken: " + site.place() + ": SSO GetRoleCredentials at "));
  BOOST_TEST(has(answer, "UnauthorizedException: Session token not found"));
  BOOST_TEST(has(answer, "(HTTP status 401, request "));
  BOOST_TEST(has(answer, "sign on with: aws sso login"));
  BOOST_TEST(calls("sso") == 1);
}

BOOST_AUTO_TEST_CASE(other_refusals_of_the_portal_are_broken) {
  SignedOn site(aws());
  site.sign_on(cached(3600));
  for (const int status : {400, 403, 404}) {
    aws().forget();
    tests::AwsFault fault{"sso", "GetRoleCredentials", "refuse"};
    fault.status = status;
    fault.code = "ForbiddenException";
    fault.message = "not you, access-token-of-sso";
    aws().fault(fault);
    const std::string answer = told(asked(site.source()));
    BOOST_TEST(has(answer, "broken: " + site.place()));
    BOOST_TEST(has(answer, "ForbiddenException"));
    BOOST_TEST(has(answer, "HTTP status " + std::to_string(status)));
    BOOST_TEST(!has(answer, "sign on with"));
    BOOST_TEST(calls("sso") == 1);
  }
}

BOOST_AUTO_TEST_CASE(what_may_pass_at_the_portal_is_tried_again_then_failed) {
  SignedOn site(aws());
  site.sign_on(cached(3600));
  for (const char* kind :
       {"500", "503", "throttle", "reset", "garbage", "empty", "truncate"}) {
    aws().clear();
    aws().forget();
    aws().fault({"sso", "GetRoleCredentials", kind, 2});
    BOOST_TEST(state_of(asked(site.source())) == "found", kind);
    BOOST_TEST(calls("sso") == 3, kind);
    aws().clear();
    aws().forget();
    aws().fault({"sso", "GetRoleCredentials", kind, 0});
    BOOST_TEST(has(told(asked(site.source())), "failed: " + site.place()));
    BOOST_TEST(calls("sso") == 3, kind);
  }
  aws().clear();
}

BOOST_AUTO_TEST_CASE(answer_that_lacks_something_is_failed_and_names_it) {
  SignedOn site(aws());
  site.sign_on(cached(3600));
  for (const char* name :
       {"accessKeyId", "secretAccessKey", "sessionToken", "expiration"}) {
    aws().clear();
    tests::AwsFault fault{"sso", "GetRoleCredentials", "missing", 0};
    fault.missing = {name};
    aws().fault(fault);
    const std::string answer = told(asked(site.source()));
    BOOST_TEST(has(answer, "failed: " + site.place()), answer);
    BOOST_TEST(has(answer, name), answer);
  }
  aws().clear();
}

BOOST_AUTO_TEST_CASE(redirect_is_not_followed_with_a_token) {
  SignedOn site(aws());
  site.sign_on(cached(3600));
  aws().fault({"sso", "GetRoleCredentials", "redirect", 0});
  BOOST_TEST(has(told(asked(site.source())), "broken: "));
  BOOST_TEST(aws().log().count("*", "Redirected") == 0);
  BOOST_TEST(calls("sso") == 1);
  aws().clear();
}

// --- Tokens that end -------------------------------------------------------

BOOST_AUTO_TEST_CASE(ended_token_that_cannot_be_exchanged_wants_a_sign_on) {
  std::vector<Cached> tokens(4, renewable(-10));
  tokens[0].members.erase("refreshToken");
  tokens[1].members.erase("clientId");
  tokens[2].members.erase("clientSecret");
  tokens[3].members["registrationExpiresAt"] = time_of(-10);
  tokens.push_back(cached(-10));
  for (const Cached& token : tokens) {
    SignedOn site(aws());
    site.sign_on(token);
    BOOST_TEST(told(asked(site.source())) ==
               "broken: " + site.place() +
                   ": the token has expired (sign-on cache " +
                   site.quoted(site.file()) +
                   "); sign on with: aws sso login --sso-session \"corp\"");
    BOOST_TEST(calls("*") == 0);
  }
}

// Without a session there is nothing to exchange.
BOOST_AUTO_TEST_CASE(token_of_the_older_way_is_never_exchanged) {
  SignedOn site(aws(), false);
  site.sign_on(renewable(-10));
  BOOST_TEST(has(told(asked(site.source())), "--profile \"dev\""));
  BOOST_TEST(calls("*") == 0);
  site.sign_on(renewable(100));
  BOOST_TEST(state_of(asked(site.source())) == "found");
  BOOST_TEST(calls("oidc") == 0);
}

BOOST_AUTO_TEST_CASE(token_is_exchanged_when_it_has_five_minutes_left) {
  for (const int seconds : {-1000, 60, 240}) {
    SignedOn site(aws());
    site.sign_on(renewable(seconds));
    BOOST_TEST(told(asked(site.source())).rfind("found: ", 0) == 0u);
    const auto request = aws().log().last("oidc");
    BOOST_TEST(request.operation == "CreateToken");
    BOOST_TEST(request.method == "POST");
    BOOST_TEST(request.form.at("grantType") == "refresh_token");
    BOOST_TEST(request.form.at("clientId") == "client");
    BOOST_TEST(request.status == 200);
    BOOST_TEST(aws().log().last("sso").token == "valid");
  }
  SignedOn site(aws());
  site.sign_on(renewable(400));
  BOOST_TEST(state_of(asked(site.source())) == "found");
  BOOST_TEST(calls("oidc") == 0);
}

BOOST_AUTO_TEST_CASE(exchanged_token_is_written_with_all_else_there_was) {
  SignedOn site(aws());
  Cached token = renewable(-10);
  token.members["more"] = "\"\\\n\xC3\xA4";
  std::string text = token.json();
  text.insert(1, "\"number\": 1.5, \"list\": [1, {\"a\": null}], ");
  site.write(site.file(), text);
  BOOST_TEST(state_of(asked(site.source())) == "found");
  const std::string fresh = site.member("accessToken");
  BOOST_TEST(fresh != "access-token-of-sso");
  BOOST_TEST(fresh.size() > 20u);
  BOOST_TEST(site.member("refreshToken") != "refresh-token");
  BOOST_TEST(site.member("clientId") == "client");
  BOOST_TEST(site.member("clientSecret") == "client-secret");
  BOOST_TEST(site.member("startUrl") == kStartUrl);
  BOOST_TEST(site.member("more") == token.members["more"]);
  BOOST_TEST(site.member("registrationExpiresAt") ==
             token.members["registrationExpiresAt"]);
  BOOST_TEST(has(site.text(), "\"number\":1.5"));
  BOOST_TEST(has(site.text(), "\"list\":[1,{\"a\":null}]"));
  const auto ends = parse_iso8601(site.member("expiresAt"));
  BOOST_TEST_REQUIRE(ends.has_value());
  BOOST_TEST(*ends > std::time(nullptr) + 28000);
  BOOST_TEST(*ends <= std::time(nullptr) + 28800);
}

BOOST_AUTO_TEST_CASE(written_cache_file_is_its_owners_and_the_only_one) {
  SignedOn site(aws());
  site.write(site.file(), renewable(-10).json(), 0644);
  BOOST_TEST(state_of(asked(site.source())) == "found");
  BOOST_TEST(site.mode_of(site.file()) == "600 of 1");
}

BOOST_AUTO_TEST_CASE(exchanged_token_serves_the_next_time_from_the_file) {
  SignedOn site(aws());
  site.sign_on(renewable(-10));
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(state_of(asked(site.source())) == "found");
  }
  BOOST_TEST(calls("oidc") == 1);
  BOOST_TEST(calls("sso") == 2);
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

BOOST_AUTO_TEST_CASE(refresh_token_stays_if_no_other_is_given) {
  SignedOn site(aws());
  aws().control("POST", "/oidc", R"({"rotate": false})");
  site.sign_on(renewable(-10));
  BOOST_TEST(state_of(asked(site.source())) == "found");
  aws().control("POST", "/oidc", R"({"rotate": true})");
  BOOST_TEST(site.member("refreshToken") == "refresh-token");
  BOOST_TEST(site.member("accessToken") != "access-token-of-sso");
}

BOOST_AUTO_TEST_CASE(good_token_serves_on_when_it_cannot_be_exchanged) {
  for (const char* kind : {"500", "refuse", "garbage"}) {
    SignedOn site(aws());
    site.sign_on(renewable(200));
    aws().fault({"oidc", "CreateToken", kind, 0});
    const KeySourcePtr source = site.source();
    const KeyOutcome outcome = asked(source);
    BOOST_TEST(told(outcome).rfind("found: ", 0) == 0u, kind);
    BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
    BOOST_TEST(has(outcome.warnings,
                   "the token in sign-on cache " + site.quoted(site.file()) +
                       " could not be refreshed: SSO OIDC CreateToken at "));
    BOOST_TEST(site.member("accessToken") == "access-token-of-sso");
    // At most once a minute.
    aws().clear();
    aws().forget();
    BOOST_TEST(state_of(asked(source)) == "found");
    BOOST_TEST(calls("oidc") == 0);
  }
}

BOOST_AUTO_TEST_CASE(ended_token_whose_exchange_is_refused_wants_a_sign_on) {
  SignedOn site(aws());
  Cached token = renewable(-10);
  token.members["refreshToken"] = "dead-refresh-token";
  site.sign_on(token);
  const std::string answer = told(asked(site.source()));
  BOOST_TEST(has(answer, "broken: " + site.place() +
                             ": the token has expired and could not be "
                             "refreshed: SSO OIDC CreateToken at "));
  BOOST_TEST(has(answer, "InvalidGrantException"));
  BOOST_TEST(has(answer, "sign on with: aws sso login --sso-session"));
}

BOOST_AUTO_TEST_CASE(ended_token_that_may_be_exchanged_later_is_failed) {
  SignedOn site(aws());
  site.sign_on(renewable(-10));
  aws().fault({"oidc", "CreateToken", "500", 0});
  const KeySourcePtr source = site.source();
  BOOST_TEST(has(told(asked(source)),
                 "failed: " + site.place() + ": SSO OIDC CreateToken at "));
  BOOST_TEST(calls("oidc") == 3);
  BOOST_TEST(has(told(asked(source)),
                 "failed: " + site.place() + ": the token in sign-on cache "));
  BOOST_TEST(calls("oidc") == 3);
  aws().clear();
  // Somebody signs on.
  site.sign_on(cached(3600));
  BOOST_TEST(state_of(asked(source)) == "found");
}

BOOST_AUTO_TEST_CASE(answer_without_a_token_or_its_end_is_failed) {
  for (const char* name : {"accessToken", "expiresIn"}) {
    SignedOn site(aws());
    site.sign_on(renewable(-10));
    tests::AwsFault fault{"oidc", "CreateToken", "missing", 0};
    fault.missing = {name};
    aws().fault(fault);
    // Else the second attempt is refused, for its refresh token was used.
    aws().control("POST", "/oidc", R"({"rotate": false})");
    BOOST_TEST(has(told(asked(site.source())), "failed: "), name);
    BOOST_TEST(site.member("accessToken") == "access-token-of-sso");
  }
  aws().control("POST", "/oidc", R"({"rotate": true})");
  aws().clear();
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

// A refresh token that was used is dead, so the new one must not be lost.
BOOST_AUTO_TEST_CASE(token_that_cannot_be_written_is_kept_and_warned_about) {
  SignedOn site(aws());
  site.sign_on(renewable(-10));
  // A path so long that no other can stand beside it, not even for root.
  std::string& home = site.variables["HOME"];
  while (home.size() < 4095 - sizeof "/.aws/sso/cache/" - 50) home += "/.";
  const KeySourcePtr source = site.source();
  const KeyOutcome first = asked(source);
  BOOST_TEST(told(first).rfind("found: ", 0) == 0u);
  BOOST_TEST_REQUIRE(tests::is_one_line(first.warnings));
  BOOST_TEST(has(first.warnings, "could not be written to"));
  BOOST_TEST(site.member("accessToken") == "access-token-of-sso");
  BOOST_TEST(state_of(asked(source)) == "found");
  BOOST_TEST(calls("oidc") == 1);
  // Who signs off has no more keys.
  std::filesystem::remove(site.root / site.file());
  BOOST_TEST(state_of(asked(source)) == "broken");
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

BOOST_AUTO_TEST_CASE(object_of_texts_is_written_as_json) {
  BOOST_TEST(with_texts("{}", {}) == "{}");
  BOOST_TEST(with_texts("{}", {{"a", "b\"\n"}, {"c", ""}}) ==
             R"({"a":"b\"\n","c":""})");
}

BOOST_AUTO_TEST_CASE(texts_take_the_place_of_members_of_their_names) {
  const char* const object =
      R"({"a": 1, "b": [true, null, -2e3] , "\u0061": "x", "c": {"a": 2}})";
  BOOST_TEST(with_texts(object, {{"a", "new"}, {"d", "more"}}) ==
             R"({"b":[true,null,-2e3],"c":{"a":2},"a":"new","d":"more"})");
}

BOOST_AUTO_TEST_CASE(texts_take_the_place_of_members_of_an_inner_object) {
  const char* const object =
      R"({"in": {"a": 1, "b": {"a": 2}}, "a": "x", "no": {"a": 3}})";
  BOOST_TEST(with_texts(object, {{"a", "new"}}, "in", {{"a", "y"}}) ==
             R"({"in":{"b":{"a":2},"a":"y"},"no":{"a":3},"a":"new"})");
  BOOST_TEST(with_texts(R"({"in": "text"})", {}, "in", {{"a", "y"}}) ==
             R"({"in":"text"})");
}

BOOST_AUTO_TEST_CASE(what_is_nested_deep_is_written_as_it_was) {
  const std::string deep = std::string(999, '[') + std::string(999, ']');
  const std::string text = "{\"a\":" + deep + "}";
  BOOST_TEST(with_texts(text, {}) == text);
}

BOOST_AUTO_TEST_SUITE_END()
