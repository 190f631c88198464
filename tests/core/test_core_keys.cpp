// What the core does without extras: which keys, regions and endpoints it finds
// by itself, and that it refuses each setting that asks for more.  The error
// names the setting and the extra.  Requests are never signed with other keys
// than with all extras.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "ddbmutex/dynamodb/endpoint.hpp"
#include "sigv4/keys/from_all.hpp"
#include "sigv4/parts.hpp"
#include "sigv4/text.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/home.hpp"

using namespace ddbmutex::sigv4;
using ddbmutex::dynamodb::find_target;
using ddbmutex::dynamodb::Target;
using ddbmutex::dynamodb::TargetOptions;
using tests::asked;
using tests::has;
using tests::said;

BOOST_AUTO_TEST_SUITE(core_keys)

namespace {

constexpr char kPair[] =
    "aws_access_key_id = an-id\naws_secret_access_key = a-secret\n";

// A home in which nothing is configured, and no host is asked.
struct Home : tests::Home {
  Home() { variables["AWS_EC2_METADATA_DISABLED"] = "true"; }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = tests::Home::write(name, text);
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    return path;
  }
  KeyOutcome outcome(const ChainOptions& options = {}) const {
    return asked(*chain_keys(options, core_parts(), environment()));
  }
  std::string keys(const ChainOptions& options = {}) const {
    return said(outcome(options));
  }
  // "REGION URL", or the error and the option that it blames.
  std::string target(const TargetOptions& options = {}) const {
    const Target found = find_target(options, core_parts(), environment());
    if (found.error.empty()) return found.region + " " + found.endpoint;
    BOOST_TEST(found.region + found.endpoint == "");
    return std::string(found.option) + ": " + found.error;
  }
  std::string quoted(const std::string& name) const {
    return in_quotes((root / name).string());
  }
  // As errors name it.
  std::string property(const std::string& name) const {
    return name + " of profile \"default\" in " + quoted(".aws/config");
  }
};

}  // namespace

// --- What it finds -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(keys_are_those_of_options_environment_or_files) {
  Home home;
  ChainOptions options;
  options.keys = {"given-id", "given-secret"};
  BOOST_TEST(home.keys(options) == "found: the options");
  home.write(".aws/config", std::string("[default]\nregion = eu-west-1\n") +
                                "[profile other]\n" + kPair);
  BOOST_TEST(has(home.keys(), "none: "));
  options = {};
  options.profile = "other";
  BOOST_TEST(home.keys(options) ==
             "found: profile \"other\" in " + home.quoted(".aws/config"));
  home.write(".aws/credentials", std::string("[default]\n") + kPair);
  const KeyOutcome outcome = home.outcome();
  BOOST_TEST(said(outcome) == "found: profile \"default\" in " +
                                  home.quoted(".aws/credentials"));
  BOOST_TEST(outcome.keys.access_key_id == "an-id");
  BOOST_TEST(outcome.keys.secret_access_key.str() == "a-secret");
  home.variables["AWS_ACCESS_KEY_ID"] = "env-id";
  home.variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
  BOOST_TEST(home.keys() == "found: the environment");
}

BOOST_AUTO_TEST_CASE(keys_and_region_are_those_of_the_host) {
  tests::Aws aws;
  Home home;
  home.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
      aws.plain_url("container") + "/v2/credentials/task";
  BOOST_TEST(has(home.keys(), "found: the container's agent ("));
  home.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  home.variables.erase("AWS_EC2_METADATA_DISABLED");
  home.write(".aws/config",
             "[default]\nec2_metadata_service_endpoint = " + aws.url("imds") +
                 "\nmetadata_service_timeout = 20\n");
  ChainOptions options;
  options.find_region = true;
  const KeyOutcome outcome = home.outcome(options);
  BOOST_TEST(has(said(outcome), "found: EC2 metadata service ("));
  BOOST_TEST(outcome.region == "eu-west-1");
}

BOOST_AUTO_TEST_CASE(region_and_endpoint_are_those_of_the_profile) {
  Home home;
  home.write(".aws/config", "[default]\nregion = eu-west-1\n");
  BOOST_TEST(home.target() ==
             "eu-west-1 https://dynamodb.eu-west-1.amazonaws.com");
  home.write(".aws/config",
             "[default]\nregion = cn-north-1\nendpoint_url = http://h:1/p\n");
  BOOST_TEST(home.target() == "cn-north-1 http://h:1/p");
  home.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  home.variables["AWS_REGION"] = "local";
  BOOST_TEST(home.target() == "us-east-1 http://localhost:8000");
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "false";
  home.variables["AWS_ACCOUNT_ID_ENDPOINT_MODE"] = "preferred";
  BOOST_TEST(home.target({"us-east-1", "", {}}) ==
             "us-east-1 https://dynamodb.us-east-1.amazonaws.com");
}

// An account's own endpoint is only another name of the region's.
BOOST_AUTO_TEST_CASE(endpoint_is_the_same_with_an_account) {
  const Home home;
  Target target =
      find_target({"eu-west-1", "", {}}, core_parts(), home.environment());
  use_account(target, "locks", "123456789012");
  BOOST_TEST(target.endpoint == "https://dynamodb.eu-west-1.amazonaws.com");
}

// --- What it refuses: keys ---------------------------------------------------

// Its turn is before or after the keys in the credentials file, as with all
// extras.
BOOST_AUTO_TEST_CASE(source_that_is_an_extra_is_refused_in_its_turn) {
  const struct {
    const char* property;
    bool precedes_credentials;
  } cases[] = {
      {"role_arn", true},       {"web_identity_token_file", true},
      {"sso_account_id", true}, {"sso_role_name", true},
      {"login_session", false}, {"credential_process", false},
  };
  for (const auto& [property, precedes_credentials] : cases) {
    const Home home;
    home.write(".aws/config", "[default]\nsource_profile = default\n" +
                                  std::string(property) + " = x\n" + kPair);
    const std::string refused =
        "broken: " + home.property(property) +
        ", which needs extras/keys (compile ddbmutex_all.cpp, or all sources "
        "with -DDDBMUTEX_EXTRAS)";
    BOOST_TEST(home.keys() == refused);
    home.write(".aws/credentials", std::string("[default]\n") + kPair);
    BOOST_TEST(home.keys() == (precedes_credentials
                                   ? refused
                                   : "found: profile \"default\" in " +
                                         home.quoted(".aws/credentials")));
  }
}

// A search that went on would sign as the host.
BOOST_AUTO_TEST_CASE(part_of_a_sign_on_is_refused_without_keys) {
  for (const std::string property :
       {"sso_session", "sso_start_url", "sso_region"}) {
    const Home home;
    home.write(".aws/config", "[default]\n" + property + " = x\n");
    BOOST_TEST(home.keys() ==
               "broken: " + home.property(property) + kNeedsKeys);
    home.write(".aws/config", "[default]\n" + property + " = x\n" + kPair);
    BOOST_TEST(has(home.keys(), "found: "));
  }
}

BOOST_AUTO_TEST_CASE(web_identity_of_the_environment_is_refused) {
  Home home;
  home.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/a/token";
  home.variables["AWS_ROLE_ARN"] = "arn:aws:iam::123456789012:role/locker";
  home.write(".aws/credentials", std::string("[default]\n") + kPair);
  BOOST_TEST(home.keys() ==
             "broken: AWS_WEB_IDENTITY_TOKEN_FILE" + std::string(kNeedsKeys));
  // It is not used if the options name a profile.
  ChainOptions options;
  options.profile = "default";
  BOOST_TEST(has(home.keys(options), "found: profile \"default\""));
  home.variables["AWS_ACCESS_KEY_ID"] = "env-id";
  home.variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
  BOOST_TEST(home.keys() == "found: the environment");
}

// The full grammar would read the whole value, or another profile's.
BOOST_AUTO_TEST_CASE(
    setting_of_several_lines_is_refused_in_the_profile_in_use) {
  Home home;
  home.write(".aws/credentials", std::string("[default]\n") + kPair);
  const std::string other =
      "[profile other]\nregion = eu\n -west-1\n[sso-session s]\njunk\n";
  home.write(".aws/config",
             "[default]\nregion = us-east-1\ns3 =\n  a = b\n" + other);
  BOOST_TEST(has(home.target(), "us-east-1 https://"));
  BOOST_TEST(has(home.keys(), "found: "));
  home.variables["AWS_PROFILE"] = "other";
  const std::string refused = "region of profile \"other\" in " +
                              home.quoted(".aws/config") +
                              " has more than one line" + kNeedsKeys;
  BOOST_TEST(home.target() == "profile: " + refused);
  BOOST_TEST(home.keys() == "broken: " + refused);
}

BOOST_AUTO_TEST_CASE(heading_that_may_be_another_profiles_is_refused) {
  const std::vector<std::string> headings = {
      "[profile \"default\"]", "[profile 'a b']", "[profile a]b]",
      "[profile a b]", "[default]\n[profile default]"};
  for (const std::string& heading : headings) {
    const Home home;
    const std::string path =
        home.write(".aws/config",
                   std::string("[default]\n") + kPair + heading + "\n" + kPair);
    const std::string text = home.keys();
    BOOST_TEST(has(text, "broken: " + in_quotes(path) + ", line "), text);
    BOOST_TEST(has(text, kNeedsKeys), text);
  }
  const Home home;
  for (const char* line : {"region: eu-west-1", ":region = eu-west-1"}) {
    home.write(".aws/config", std::string("[default]\n") + line + "\n");
    BOOST_TEST(has(home.target(),
                   ", line 2: a ':' before the '='" + std::string(kNeedsKeys)));
  }
}

// --- What it refuses: endpoints
// ------------------------------------------------

BOOST_AUTO_TEST_CASE(services_of_a_profile_are_refused_if_they_matter) {
  Home home;
  home.write(".aws/config",
             "[default]\nregion = eu-west-1\nservices = s\n"
             "endpoint_url = http://wrong\n"
             "[services s]\ndynamodb =\n  endpoint_url = http://right\n");
  BOOST_TEST(home.target() ==
             "endpoint: " + home.property("services") + kNeedsKeys);
  home.variables["AWS_ENDPOINT_URL"] = "http://h";
  BOOST_TEST(home.target() == "eu-west-1 http://h");
}

BOOST_AUTO_TEST_CASE(flag_of_a_special_endpoint_is_refused) {
  const struct {
    const char* variable;
    const char* property;
    const char* value;
    const char* said;
  } cases[] = {
      {"AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", "true", " is true"},
      {"AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint", "true",
       " is true"},
      {"AWS_ACCOUNT_ID_ENDPOINT_MODE", "account_id_endpoint_mode", "required",
       " requires an account's own endpoint"},
  };
  for (const auto& one : cases) {
    const std::string rest = one.said + std::string(kNeedsEndpoints);
    Home home;
    home.variables[one.variable] = one.value;
    BOOST_TEST(home.target({"eu-west-1", "", {}}) ==
               "endpoint: " + (one.variable + rest));
    // Also if the region comes later.
    home.variables.erase("AWS_EC2_METADATA_DISABLED");
    BOOST_TEST(home.target() == "endpoint: " + (one.variable + rest));
    home.variables.erase(one.variable);
    home.write(".aws/config", "[default]\nregion = eu-west-1\n" +
                                  std::string(one.property) + " = " +
                                  one.value + "\n");
    BOOST_TEST(home.target() ==
               "endpoint: " + home.property(one.property) + rest);
  }
}

// All extras refuse it too, unless a flag asks for it.
BOOST_AUTO_TEST_CASE(url_of_a_dual_stack_endpoint_is_refused) {
  const Home home;
  for (const char* url : {"https://dynamodb.eu-west-1.api.aws",
                          "https://Search-DynamoDB.EU-west-1.api.aws/"}) {
    BOOST_TEST(home.target({"eu-west-1", url, {}}) ==
               "endpoint: option endpoint names a dual-stack endpoint of AWS" +
                   std::string(kNeedsEndpoints));
  }
  BOOST_TEST(
      has(home.target({"us-east-1", "https://dynamodb.eu-west-1.api.aws", {}}),
          "us-east-1 https://"));
}

BOOST_AUTO_TEST_CASE(region_of_another_partition_or_with_fips_is_refused) {
  const Home home;
  for (const char* region :
       {"cn-north-1", "us-gov-west-1", "eusc-de-east-1", "us-iso-east-1",
        "us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "aws-cn-global",
        "aws-us-gov-global", "aws-iso-b-global"}) {
    BOOST_TEST(home.target({region, "", {}}) ==
               std::string("region: option region is \"") + region +
                   "\", a region of another partition than aws" +
                   kNeedsEndpoints);
  }
  for (const char* region : {"fips-us-east-1", "us-east-1-fips"}) {
    BOOST_TEST(home.target({region, "", {}}) ==
               std::string("region: option region is \"") + region +
                   "\", which asks for FIPS" + kNeedsEndpoints);
  }
  BOOST_TEST(has(home.target({"a b", "", {}}),
                 "region: option region is not the name of a region"));
}

BOOST_AUTO_TEST_SUITE_END()
