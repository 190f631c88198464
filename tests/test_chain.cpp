// Where the keys come from if nobody says otherwise: the order of the sources,
// and why each was passed over.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
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
using tests::state_of;
using tests::texts_of;

constexpr char kLocker[] = "arn:aws:iam::123456789012:role/locker";
constexpr char kTokenText[] = "web-identity-token-of-some-length";

Aws& aws() {
  static Aws services;
  static const bool told = [] {
    services.user({"base-id", "base-secret"});
    services.role({kLocker});
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

constexpr char kNoEnvironment[] = "no AWS_ACCESS_KEY_ID in the environment";
constexpr char kNoContainer[] =
    "neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor "
    "AWS_CONTAINER_CREDENTIALS_FULL_URI is set";

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

BOOST_AUTO_TEST_CASE(list_of_the_sources_is_the_table_of_the_page) {
  const std::string table = tests::between(tests::read_file("sigv4/README.md"),
                                           "\n| source | where", "\n\n");
  std::vector<std::string> names;
  for (const std::string_view name : key_source_names()) {
    names.emplace_back(name);
  }
  BOOST_TEST(names == tests::all_matches(table, "\n\\| ([^|(]*\\w)[^|]* \\|"),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_keys_anywhere_names_every_source_with_its_reason) {
  Nest nest;
  nest.write(".aws/config", "[default]\nregion = eu-west-1\n");
  BOOST_TEST(
      said(asked(nest.chain())) ==
      "none: no access_key_id in the options; " + std::string(kNoEnvironment) +
          "; AWS_WEB_IDENTITY_TOKEN_FILE is not set; neither keys nor "
          "role_arn, web_identity_token_file, sso_account_id, "
          "login_session or credential_process in profile \"default\" (" +
          nest.quoted(".aws/credentials") + " does not exist, " +
          nest.quoted(".aws/config") + " has it); " + kNoContainer +
          "; EC2 metadata service: AWS_EC2_METADATA_DISABLED is true");
}

// That is another identity than was meant.
BOOST_AUTO_TEST_CASE(profile_named_by_option_goes_before_the_environment) {
  Full all(aws());
  all.options.keys = {};
  all.options.profile = "base";
  BOOST_TEST(all.source() ==
             "found: profile \"base\" in " + all.quoted(".aws/credentials"));
  all.write(".aws/credentials", "[base]\n");
  all.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  all.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  const std::string answer = all.source();
  BOOST_TEST(has(answer,
                 "; the keys in the environment are not used (the options "
                 "name a profile); AWS_WEB_IDENTITY_TOKEN_FILE is not used "
                 "(the options name a profile); neither keys nor "),
             answer);
}

BOOST_AUTO_TEST_CASE(profile_named_by_a_variable_goes_behind_the_environment) {
  Full all(aws());
  all.options.keys = {};
  all.variables["AWS_PROFILE"] = "base";
  BOOST_TEST(all.source() == "found: the environment");
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  all.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  BOOST_TEST(all.source() ==
             "found: profile \"base\" in " + all.quoted(".aws/credentials"));
}

// Going on would sign as somebody else.
BOOST_AUTO_TEST_CASE(source_that_is_wrong_or_out_of_reach_ends_the_search) {
  Full all(aws());
  all.options.keys = {"", "given-secret"};
  BOOST_TEST(has(all.source(), "broken: secret_access_key without "));
  all.options.keys = {};
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  BOOST_TEST(has(all.source(), "broken: AWS_ACCESS_KEY_ID without "));
  all.variables.erase("AWS_ACCESS_KEY_ID");
  aws().fault({"sts", "AssumeRole", "500", 0});
  BOOST_TEST(has(all.source(), "failed: role "));
  aws().fault({"sts", "*", "500", 0});
  all.lines.erase(all.lines.begin());
  BOOST_TEST(has(all.source(), "failed: role "));
  all.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  aws().fault({"sso", "*", "500", 0});
  BOOST_TEST(has(all.source(), "failed: profile \"default\""));
  all.lines = {"credential_process = /nowhere\n" + pair_of("c")};
  all.write(".aws/credentials", "[default]\naws_access_key_id = k\n");
  BOOST_TEST(has(all.source(), "broken: aws_access_key_id without "));
  all.write(".aws/credentials", "[default]\n");
  BOOST_TEST(has(all.source(), "broken: credential_process of "));
  all.lines = {"aws_access_key_id = c\n"};
  BOOST_TEST(has(all.source(), "broken: aws_access_key_id without "));
  all.lines.clear();
  aws().fault({"container", "*", "500", 0});
  BOOST_TEST(has(all.source(), "failed: "));
  aws().clear();
}

BOOST_AUTO_TEST_CASE(unusable_file_ends_the_search_where_it_is_looked_at) {
  Full all(aws());
  all.write(".aws/credentials", "junk");
  all.options.keys = {};
  BOOST_TEST(all.source() == "found: the environment");
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  BOOST_TEST(all.source() == "broken: " + all.quoted(".aws/credentials") +
                                 ", line 1: a line before the first section");
}

BOOST_AUTO_TEST_CASE(mistyped_profile_is_not_passed_over_for_other_keys) {
  Full all(aws());
  all.variables["AWS_PROFILE"] = "bsae";
  BOOST_TEST(all.source() == "found: the options");
  all.options.keys = {};
  BOOST_TEST(has(all.source(),
                 "broken: profile \"bsae\", named by AWS_PROFILE, does not "));
  all.variables.erase("AWS_PROFILE");
  all.options.profile = "bsae";
  BOOST_TEST(has(all.source(),
                 "broken: profile \"bsae\", named by the options, does not "));
}

// Its settings for services were not read, so what it says is not obeyed.
BOOST_AUTO_TEST_CASE(file_that_was_unusable_at_first_stays_so) {
  Nest nest;
  nest.write(".aws/config", "junk");
  const KeySourcePtr chain = nest.chain();
  nest.write(".aws/config", "[default]\n" + pair_of("c"));
  BOOST_TEST(state_of(asked(chain)) == "broken");
  BOOST_TEST(key_of(asked(nest.chain())) == "c-id");
}

BOOST_AUTO_TEST_CASE(keys_that_need_no_asking_are_at_hand) {
  Full all(aws());
  const auto at_hand = [&]() -> std::optional<KeyOutcome> {
    const KeySourcePtr chain = all.chain(all.options);
    const KeyOutcome* keys = chain->at_hand();
    if (keys == nullptr) return std::nullopt;
    return *keys;
  };
  BOOST_TEST_REQUIRE(at_hand().has_value());
  BOOST_TEST(said(*at_hand()) == "found: the options");
  all.options.keys = {};
  BOOST_TEST_REQUIRE(at_hand().has_value());
  BOOST_TEST(said(*at_hand()) == "found: the environment");
  all.options.profile = "base";
  BOOST_TEST(!at_hand());
  all.options.profile = "";
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  BOOST_TEST(!at_hand());
}

BOOST_AUTO_TEST_CASE(environment_is_read_when_the_chain_is_made) {
  Full all(aws());
  all.options.keys = {};
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  all.lines.clear();
  all.source();  // Writes the config.
  const KeySourcePtr chain = all.chain();
  all.variables.clear();
  BOOST_TEST(has(said(asked(chain)), "by web identity of AWS_WEB_IDENTITY_"));
}

BOOST_AUTO_TEST_CASE(region_is_the_instances_if_it_is_to_be_found) {
  Aws& services = aws();
  Full all(services);
  all.variables.erase("AWS_REGION");
  all.options.find_region = true;
  services.control("POST", "/imds", R"({"region": "eu-south-1"})");
  const KeyOutcome found = asked(all.chain(all.options));
  BOOST_TEST(key_of(found) == "given-id");
  BOOST_TEST(found.region == "eu-south-1");
  all.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  const KeyOutcome outcome = asked(all.chain(all.options));
  BOOST_TEST(state_of(outcome) == "broken");
  BOOST_TEST(outcome.lacks_region);
  all.options.find_region = false;
  BOOST_TEST(asked(all.chain(all.options)).region == "");
}

BOOST_AUTO_TEST_CASE(certificates_are_checked_by_option_then_variable) {
  Aws& services = aws();
  Full all(services);
  all.options.keys = {};
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  BOOST_TEST(has(all.source(), "found: role "));
  const std::string nothing = all.write("empty.pem", "");
  all.options.ca_file = nothing;
  BOOST_TEST(has(all.source(), "broken: role "));
  all.options.ca_file = services.ca_file();
  all.variables["AWS_CA_BUNDLE"] = nothing;
  BOOST_TEST(has(all.source(), "found: role "));
  all.options.ca_file = "";
  all.variables.erase("AWS_CA_BUNDLE");
  all.lines.push_back("ca_bundle = " + services.ca_file() + "\n");
  BOOST_TEST(has(all.source(), "found: role "));
  all.lines.back() = "ca_bundle = " + nothing + "\n";
  BOOST_TEST(has(all.source(), "broken: role "));
}

BOOST_AUTO_TEST_CASE(warnings_of_files_come_with_keys_from_elsewhere) {
  Full all(aws());
  all.options.keys = {};
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  all.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string path = all.write(".aws/credentials", "[default]\n", 0644);
  all.write(".aws/config", "");
  const KeyOutcome outcome = asked(all.chain());
  BOOST_TEST(has(said(outcome), "found: the container's agent ("));
  BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
  BOOST_TEST(has(outcome.warnings, in_quotes(path)));
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

BOOST_AUTO_TEST_SUITE_END()
