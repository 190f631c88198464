// Where the keys come from if nobody says otherwise: the order of the sources,
// why each was passed over, and what is said of profiles that are set up wrong.
// tests/witness compares what is found with AWS's own tools.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/chain_kit.hpp"
#include "tests/support/files.hpp"

namespace {

using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::asked;
using tests::Aws;
using tests::has;
using tests::key_of;
using tests::Nest;
using tests::pair_of;
using tests::said;
using tests::Site;
using tests::texts_of;

constexpr char kLocker[] = "arn:aws:iam::123456789012:role/locker";
constexpr char kMiddle[] = "arn:aws:iam::123456789012:role/middle";
constexpr char kTokenText[] = "web-identity-token-of-some-length";

std::string with_role(const std::string& arn, const std::string& rest) {
  return "role_arn = " + arn + "\n" + rest + "\n";
}

Aws& aws() {
  static Aws services;
  static const bool told = [] {
    services.user({"base-id", "base-secret"});
    services.role({kLocker});
    services.role({kMiddle});
    services.web_identity(kTokenText, 1h);
    services.sso_token("sso-token", 1h);
    return true;
  }();
  BOOST_TEST_REQUIRE(told);
  services.clear();
  services.forget();
  return services;
}

// Every source has keys there.
struct Full : Site {
  explicit Full(Aws& services) : Site(services) {
    options.keys = {"given-id", "given-secret"};
    variables["AWS_ACCESS_KEY_ID"] = "env-id";
    variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
    variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = write("token", kTokenText);
    variables["AWS_ROLE_ARN"] = kLocker;
    variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
        services.plain_url("container") + "/v2/credentials/task";
    variables.erase("AWS_EC2_METADATA_DISABLED");
    variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = services.url("imds");
    write(".aws/credentials",
          "[base]\n" + pair_of("base") + "[default]\n" + pair_of("k"));
    write(".aws/sso/cache/" + sha1_hex("u") + ".json",
          "{\"accessToken\": \"sso-token\", "
          "\"expiresAt\": \"2999-01-01T00:00:00Z\"}");
    write(".aws/login/cache/" + sha256_hex("alice") + ".json",
          "{\"accessToken\": {\"accessKeyId\": \"l-id\", "
          "\"secretAccessKey\": \"l-secret\", \"sessionToken\": \"l-token\", "
          "\"accountId\": \"123456789012\", "
          "\"expiresAt\": \"2999-01-01T00:00:00Z\"}, \"clientId\": \"c\", "
          "\"refreshToken\": \"l-refresh\", \"dpopKey\": \"l-key\"}");
    const std::string program =
        write("program",
              "#!/bin/sh\necho '{\"Version\": 1, \"AccessKeyId\": \"p-id\","
              " \"SecretAccessKey\": \"p-secret\"}'\n",
              0700);
    lines = {"role_arn = " + std::string(kLocker) + "\nsource_profile = base\n",
             "sso_account_id = 123456789012\nsso_role_name = r\n"
             "sso_region = eu-west-1\nsso_start_url = u\n",
             "login_session = alice\n",
             "credential_process = " + program + "\n", pair_of("c")};
  }

  std::string source() const {
    std::string config = "[default]\n";
    for (const std::string& some : lines) config += some;
    write(".aws/config", config);
    return said(asked(chain(options)));
  }

  ChainOptions options;
  std::vector<std::string> lines;  // Of the default profile's config.
};

}  // namespace

BOOST_AUTO_TEST_SUITE(chain)

// Each step takes away what was found before.
BOOST_AUTO_TEST_CASE(order_of_the_sources_is_botocores) {
  Full all(aws());
  BOOST_TEST(all.source() == "found: the options");
  all.options.keys = {};
  BOOST_TEST(all.source() == "found: the environment");
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  BOOST_TEST(has(all.source(), ", from profile \"base\" in "));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(has(all.source(), "by web identity of AWS_WEB_IDENTITY_TOKEN_"));
  all.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  BOOST_TEST(
      has(all.source(), " by single sign-on of profile \"default\" in "));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(all.source() ==
             "found: profile \"default\" in " + all.quoted(".aws/credentials"));
  all.write(".aws/credentials", "[base]\n" + pair_of("base"));
  BOOST_TEST(has(all.source(), "found: login_session of profile "));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(has(all.source(), "found: credential_process of profile "));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(all.source() ==
             "found: profile \"default\" in " + all.quoted(".aws/config"));
  all.lines.clear();
  BOOST_TEST(has(all.source(), "found: the container's agent ("));
  all.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  BOOST_TEST(has(all.source(), "found: EC2"));
  all.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  BOOST_TEST(has(all.source(), "none: "));
}

BOOST_AUTO_TEST_CASE(no_text_of_any_source_shows_a_secret) {
  Full all(aws());
  for (const char* service : {"sts", "sso", "container", "imds"}) {
    tests::AwsFault fault{service, "*", "refuse", 0};
    fault.message = "base-secret sso-token " + std::string(kTokenText);
    aws().fault(fault);
  }
  const auto check = [&] {
    const std::string config = all.source();
    const std::string texts = texts_of(asked(all.chain(all.options)));
    for (const char* secret :
         {"given-secret", "env-secret", "base-secret", "k-secret", "p-secret",
          "c-secret", "sso-token", "l-secret", "l-token", "l-refresh", "l-key",
          kTokenText}) {
      BOOST_TEST(!has(texts + config, secret), texts);
    }
  };
  check();
  all.options.keys = {};
  check();
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  check();
  all.variables.erase("AWS_ACCESS_KEY_ID");
  check();
  all.lines.erase(all.lines.begin());
  check();
  all.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  for (; !all.lines.empty(); all.lines.erase(all.lines.begin())) check();
  all.write(".aws/credentials", "");
  check();
  all.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  check();
  aws().clear();
}

// --- Keys ------------------------------------------------------------------

// A line break in one would begin a header of its own.
BOOST_AUTO_TEST_CASE(key_of_other_than_visible_ascii_is_broken) {
  Nest nest;
  const auto given = [&](const KeyTexts& keys) {
    ChainOptions options;
    options.keys = keys;
    return said(asked(nest.chain(options)));
  };
  for (const char* bad :
       {"a\nX-Evil: 1", "a\r", " a", "a\t", "\x7F", "\xC3\xA4"}) {
    const bool breaks = has(bad, "\n") || has(bad, "\r");
    const std::string wrong =
        std::string(" in the options has ") +
        (breaks ? "a line break" : "a character that is not visible ASCII");
    BOOST_TEST(given({bad, "b", "c"}) == "broken: access_key_id" + wrong);
    BOOST_TEST(given({"a", bad, "c"}) == "broken: secret_access_key" + wrong);
    BOOST_TEST(given({"a", "b", bad}) == "broken: session_token" + wrong);
  }
  BOOST_TEST(given({"!", "~", ""}) == "found: the options");
  nest.write(".aws/credentials", "[default]\n" + pair_of("a") +
                                     "aws_session_token = t\n X-Evil: 1");
  BOOST_TEST(
      has(said(asked(nest.chain())), "broken: aws_session_token in profile "));
}

// --- Profiles --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(chain_of_thousands_of_profiles_is_refused) {
  Nest nest;
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    text += "[profile p" + std::to_string(i) + "]\n" +
            with_role(kLocker, "source_profile = p" + std::to_string(i + 1));
  }
  nest.write(".aws/config", text);
  ChainOptions options;
  options.profile = "p0";
  BOOST_TEST(said(asked(nest.chain(options))) ==
             "broken: more than 200 profiles in a row get their keys from "
             "another one, from profile \"p0\" on");
}

// Going on would sign as the container.
BOOST_AUTO_TEST_CASE(property_that_names_a_part_of_a_way_ends_the_search) {
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"source_profile = base", "role_arn"},
      {"credential_source = Environment", "role_arn"},
      {"sso_session = corp", "sso_account_id and sso_role_name"},
      {"sso_start_url = u", "sso_account_id and sso_role_name"},
      {"sso_region = eu-west-1", "sso_account_id and sso_role_name"},
  };
  for (const auto& [line, needed] : parts) {
    Site site(aws());
    site.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
        aws().plain_url("container") + "/v2/credentials/task";
    site.write(".aws/config", "[default]\nregion = eu-west-1\n" + line + "\n");
    const std::string property = line.substr(0, line.find(' '));
    BOOST_TEST(said(asked(site.chain())) ==
               "broken: " + property + " of profile \"default\" in " +
                   site.quoted(".aws/config") + " gives no keys without " +
                   needed);
    BOOST_TEST(aws().log().count("container") == 0);
    // Another way counts.
    site.write(".aws/config", "[default]\n" + line + "\n" + pair_of("c"));
    BOOST_TEST(key_of(asked(site.chain())) == "c-id");
  }
}

// As a template leaves it whose variable is not set.
BOOST_AUTO_TEST_CASE(way_without_a_value_ends_the_search) {
  for (const std::string way :
       {"role_arn", "web_identity_token_file", "sso_account_id",
        "sso_role_name", "aws_access_key_id", "aws_secret_access_key",
        "credential_process", "login_session"}) {
    for (const char* file : {".aws/config", ".aws/credentials"}) {
      Site site(aws());
      site.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
          aws().plain_url("container") + "/v2/credentials/task";
      site.write(file, "[default]\n" + way + " = # ${UNSET}\n");
      BOOST_TEST(said(asked(site.chain())) ==
                 "broken: " + way + " of profile \"default\" in " +
                     site.quoted(file) + " has no value");
      BOOST_TEST(aws().log().count("container") == 0);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
