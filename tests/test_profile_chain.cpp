// The keys of a profile, whichever way it has them: which way counts, what
// goes out to whom, and what is said of profiles that are set up wrong.
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/chain_kit.hpp"

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

constexpr char kLocker[] = "arn:aws:iam::123456789012:role/locker";
constexpr char kMiddle[] = "arn:aws:iam::123456789012:role/middle";
constexpr char kTokenText[] = "web-identity-token-of-some-length";

std::string with_role(const std::string& arn, const std::string& rest) {
  return "role_arn = " + arn + "\n" + rest + "\n";
}

// One for all: what it has been told stays, which is no matter.
Aws& aws() {
  static Aws services;
  static const bool told = [] {
    services.user({"base-id", "base-secret"});
    services.user({"env-id", "env-secret"});
    services.role({kLocker});
    services.role({kMiddle});
    services.web_identity(kTokenText, 1h);
    services.sso_token("sso-token", 1h);
    return true;
  }();
  BOOST_TEST_REQUIRE(told);
  services.forget();
  return services;
}

std::string last_role(const tests::AwsLog& log, const char* operation) {
  return log.last("sts", operation).form.at("RoleArn");
}

ChainOptions named(const char* profile) {
  ChainOptions options;
  options.profile = profile;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(profile_chain_roles)

BOOST_AUTO_TEST_CASE(role_is_assumed_with_keys_of_its_source_profile) {
  Site site(aws());
  site.write(".aws/credentials", "[base]\n" + pair_of("base"));
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker,
                                       "source_profile = base\n"
                                       "role_session_name = somebody\n"
                                       "external_id = ext\n"
                                       "duration_seconds = 1800"));
  const KeyOutcome outcome = asked(site.chain());
  BOOST_TEST(said(outcome) == std::string("found: role \"") + kLocker +
                                  "\" by profile \"default\" in " +
                                  site.quoted(".aws/config") +
                                  ", from profile \"base\" in " +
                                  site.quoted(".aws/credentials"));
  BOOST_TEST(outcome.keys.access_key_id != "base-id");
  BOOST_TEST(!outcome.keys.session_token.empty());
  BOOST_TEST((outcome.ends > ddbmutex::BootClock::now() + 10min));
  BOOST_TEST((outcome.ends < ddbmutex::BootClock::now() + 31min));
}

BOOST_AUTO_TEST_CASE(settings_of_the_role_go_to_sts) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/credentials", "[base]\n" + pair_of("base"));
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker,
                                       "source_profile = base\n"
                                       "role_session_name = somebody\n"
                                       "external_id = ext\n"
                                       "duration_seconds = 1800"));
  BOOST_TEST(state_of(asked(site.chain())) == "found");
  const auto request = services.log().last("sts", "AssumeRole");
  BOOST_TEST(request.key == "base-id");
  BOOST_TEST(request.signature == "good");
  BOOST_TEST(request.region == "eu-west-1");
  BOOST_TEST(request.form.at("RoleArn") == kLocker);
  BOOST_TEST(request.form.at("RoleSessionName") == "somebody");
  BOOST_TEST(request.form.at("ExternalId") == "ext");
  BOOST_TEST(request.form.at("DurationSeconds") == "1800");
}

BOOST_AUTO_TEST_CASE(roles_are_assumed_one_after_the_other) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/config",
             "[profile a]\n" + with_role(kLocker, "source_profile = b") +
                 "[profile b]\n" + with_role(kMiddle, "source_profile = c") +
                 "[profile c]\n" + pair_of("base"));
  const KeyOutcome outcome = asked(site.chain(named("a")));
  const std::string in_config = "\" in " + site.quoted(".aws/config");
  BOOST_TEST(said(outcome) ==
             std::string("found: role \"") + kLocker + "\" by profile \"a" +
                 in_config + ", from role \"" + kMiddle + "\" by profile \"b" +
                 in_config + ", from profile \"c" + in_config);
  const auto log = services.log();
  BOOST_TEST(log.count("sts") == 2);
  BOOST_TEST(log.requests().front().form.at("RoleArn") == kMiddle);
  BOOST_TEST(log.requests().front().key == "base-id");
  BOOST_TEST(last_role(log, "AssumeRole") == kLocker);
  BOOST_TEST(log.requests().back().key != "base-id");
}

BOOST_AUTO_TEST_CASE(role_goes_before_all_else_that_a_profile_has) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/credentials",
             "[default]\n" + pair_of("d") + "[base]\n" + pair_of("base"));
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker,
                                       "source_profile = base\n"
                                       "credential_process = /nowhere\n"
                                       "sso_account_id = 123456789012\n"
                                       "sso_role_name = r"));
  BOOST_TEST(state_of(asked(site.chain())) == "found");
  BOOST_TEST(services.log().count("sts", "AssumeRole") == 1);
}

// The role of the credentials file counts as well, as with AWS's tools.
BOOST_AUTO_TEST_CASE(role_may_stand_in_either_file) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/credentials",
             "[default]\n" + with_role(kLocker, "source_profile = base") +
                 "[base]\n" + pair_of("base"));
  const KeyOutcome outcome = asked(site.chain());
  BOOST_TEST(has(said(outcome), "by profile \"default\" in " +
                                    site.quoted(".aws/credentials") +
                                    ", from"));
}

BOOST_AUTO_TEST_CASE(profile_with_keys_may_be_its_own_source) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/config", "[default]\n" +
                                with_role(kLocker, "source_profile = default") +
                                pair_of("base"));
  BOOST_TEST(state_of(asked(site.chain())) == "found");
  BOOST_TEST(services.log().last("sts").key == "base-id");
}

BOOST_AUTO_TEST_CASE(source_with_keys_needs_no_role_of_its_own) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker, "source_profile = b") +
                 "[profile b]\n" + with_role(kMiddle, "source_profile = c") +
                 pair_of("base"));
  BOOST_TEST(state_of(asked(site.chain())) == "found");
  BOOST_TEST(services.log().count("sts") == 1);
  BOOST_TEST(services.log().last("sts").key == "base-id");
}

BOOST_AUTO_TEST_CASE(source_may_have_its_keys_in_any_way) {
  Aws& services = aws();
  const std::string token =
      "{\"accessToken\": \"sso-token\", "
      "\"expiresAt\": \"2999-01-01T00:00:00Z\"}";
  const std::vector<std::pair<std::string, std::string>> sources = {
      {"credential_process = {home}/program", "credential_process of "},
      {with_role(kMiddle, "web_identity_token_file = {home}/token"),
       "by web identity of web_identity_token_file of "},
      {"sso_account_id = 123456789012\nsso_role_name = r\n"
       "sso_region = eu-west-1\nsso_start_url = u\n",
       "by single sign-on of profile \"b\""},
  };
  for (const auto& [lines, from] : sources) {
    Site site(services);
    services.forget();
    site.write("token", kTokenText);
    site.write(".aws/sso/cache/" + sha1_hex("u") + ".json", token);
    site.write("program",
               "#!/bin/sh\necho '{\"Version\": 1, \"AccessKeyId\": \"base-id\","
               " \"SecretAccessKey\": \"base-secret\"}'\n",
               0700);
    std::string text = lines;
    const auto home = text.find("{home}");
    if (home != text.npos) text.replace(home, 6, site.root.string());
    site.write(".aws/config", "[default]\n" +
                                  with_role(kLocker, "source_profile = b") +
                                  "[profile b]\n" + text);
    BOOST_TEST(has(said(asked(site.chain())), ", from "));
    BOOST_TEST(has(said(asked(site.chain())), from));
    BOOST_TEST(last_role(services.log(), "AssumeRole") == kLocker);
  }
}

// Whoever names a source means that one.
BOOST_AUTO_TEST_CASE(environment_is_no_source_of_a_source_profile) {
  Aws& services = aws();
  Site site(services);
  site.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] =
      site.write("token", kTokenText);
  site.variables["AWS_ROLE_ARN"] = kMiddle;
  site.write(".aws/config", "[default]\n" +
                                with_role(kLocker, "source_profile = b") +
                                "[profile b]\n" + pair_of("base"));
  BOOST_TEST(state_of(asked(site.chain())) == "found");
  BOOST_TEST(services.log().count("sts", "AssumeRoleWithWebIdentity") == 0);
  BOOST_TEST(services.log().last("sts").key == "base-id");
}

BOOST_AUTO_TEST_CASE(credential_source_environment_is_the_environment) {
  Aws& services = aws();
  Site site(services);
  site.variables["AWS_ACCESS_KEY_ID"] = "env-id";
  site.variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
  site.write(
      ".aws/config",
      "[profile a]\n" + with_role(kLocker, "credential_source = Environment"));
  BOOST_TEST(
      has(said(asked(site.chain(named("a")))), ", from the environment"));
  BOOST_TEST(services.log().last("sts").key == "env-id");
}

BOOST_AUTO_TEST_CASE(credential_source_container_is_the_agent) {
  Aws& services = aws();
  Site site(services);
  site.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
      services.plain_url("container") + "/v2/credentials/task";
  site.write(
      ".aws/config",
      "[default]\n" + with_role(kLocker, "credential_source = EcsContainer"));
  BOOST_TEST(has(said(asked(site.chain())), ", from the container's agent"));
  BOOST_TEST(services.log().count("container") == 1);
  BOOST_TEST(services.log().count("sts", "AssumeRole") == 1);
}

BOOST_AUTO_TEST_CASE(token_of_the_instance_is_kept_from_fetch_to_fetch) {
  Aws& services = aws();
  Site site(services);
  site.variables.erase("AWS_EC2_METADATA_DISABLED");
  site.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = services.url("imds");
  site.write(".aws/config",
             "[default]\n" +
                 with_role(kLocker, "credential_source = Ec2InstanceMetadata"));
  const KeySourcePtr chain = site.chain();
  for (int i = 0; i < 2; ++i) BOOST_TEST(state_of(asked(chain)) == "found");
  BOOST_TEST(services.log().count("imds", "PutToken") == 1);
  BOOST_TEST(services.log().count("imds", "GetRole") == 2);
  BOOST_TEST(services.log().count("sts", "AssumeRole") == 2);
}

BOOST_AUTO_TEST_CASE(credential_source_without_keys_is_said) {
  Site site(aws());
  const auto outcome = [&](const char* source) {
    site.write(".aws/config",
               "[default]\n" + with_role(kLocker, std::string("credential_"
                                                              "source = ") +
                                                      source));
    return said(asked(site.chain()));
  };
  const std::string begin = std::string("broken: role \"") + kLocker +
                            "\" by profile \"default\" in " +
                            site.quoted(".aws/config") +
                            ": no keys to assume the role with: ";
  const std::string is = "credential_source of profile \"default\" in " +
                         site.quoted(".aws/config") + " ";
  BOOST_TEST(outcome("Environment") ==
             begin + is +
                 "is Environment, which has no keys: no "
                 "AWS_ACCESS_KEY_ID in the environment");
  BOOST_TEST(has(outcome("EcsContainer"),
                 begin + is + "is EcsContainer, which has no keys"));
  const std::string instance = is + "is Ec2InstanceMetadata, which has no keys";
  BOOST_TEST(has(outcome("Ec2InstanceMetadata"), begin + instance));
  // It may only be starting.
  site.variables.erase("AWS_EC2_METADATA_DISABLED");
  site.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:1";
  BOOST_TEST(has(outcome("Ec2InstanceMetadata"),
                 "failed: " + begin.substr(8) + instance));
  for (const char* other : {"environment", "Elsewhere"}) {
    BOOST_TEST(
        outcome(other) ==
        "broken: " + is +
            "is not Environment, EcsContainer or Ec2InstanceMetadata: \"" +
            other + "\"");
  }
}

BOOST_AUTO_TEST_CASE(region_of_sts_is_found_where_it_can_be) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/credentials", "[base]\n" + pair_of("base"));
  const auto region = [&](const std::string& rest,
                          const ChainOptions& options = {}) {
    site.write(".aws/config", "[default]\n" + with_role(kLocker, rest));
    BOOST_TEST(state_of(asked(site.chain(options))) == "found");
    return services.log().last("sts").region;
  };
  const std::string source = "source_profile = base\n";
  const std::string with_region = source + "region = eu-north-1\n";
  ChainOptions options;
  options.region = {"ap-south-1", "the region"};
  BOOST_TEST(region(with_region, options) == "ap-south-1");
  BOOST_TEST(region(with_region) == "eu-west-1");
  site.variables.erase("AWS_REGION");
  BOOST_TEST(region(with_region) == "eu-north-1");
  BOOST_TEST(region(source) == "us-east-1");
  site.variables["AWS_DEFAULT_REGION"] = "eu-central-1";
  BOOST_TEST(region(with_region) == "eu-central-1");
}

BOOST_AUTO_TEST_CASE(profile_on_the_way_may_say_its_own_region) {
  Aws& services = aws();
  Site site(services);
  site.variables.erase("AWS_REGION");
  site.write(".aws/credentials", "[base]\n" + pair_of("base"));
  site.write(
      ".aws/config",
      "[default]\n" + with_role(kLocker, "source_profile = b") +
          "[profile b]\n" +
          with_role(kMiddle, "source_profile = base\nregion = eu-north-1"));
  BOOST_TEST(state_of(asked(site.chain())) == "found");
  const auto log = services.log();
  BOOST_TEST(log.requests().front().region == "eu-north-1");
  BOOST_TEST(log.requests().back().region == "us-east-1");
}

BOOST_AUTO_TEST_CASE(profile_is_read_anew_each_time_and_sts_asked) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/credentials", "[base]\n" + pair_of("base"));
  const KeySourcePtr chain = site.chain();
  BOOST_TEST(state_of(asked(chain)) == "none");
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker, "source_profile = base"));
  BOOST_TEST(state_of(asked(chain)) == "found");
  site.write(".aws/config",
             "[default]\n" + with_role(kMiddle, "source_profile = base"));
  BOOST_TEST(state_of(asked(chain)) == "found");
  BOOST_TEST(last_role(services.log(), "AssumeRole") == kMiddle);
}

BOOST_AUTO_TEST_CASE(what_sts_refuses_is_broken_and_what_may_pass_failed) {
  Aws& services = aws();
  Site site(services);
  site.write(".aws/credentials", "[base]\n" + pair_of("base"));
  site.write(".aws/config",
             "[default]\n" + with_role("arn:aws:iam::123456789012:role/other",
                                       "source_profile = base"));
  BOOST_TEST(has(said(asked(site.chain())), "broken: role "));
  services.fault({"sts", "AssumeRole", "500", 0});
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker, "source_profile = base"));
  BOOST_TEST(has(said(asked(site.chain())), "failed: role "));
  services.clear();
}

BOOST_AUTO_TEST_CASE(warning_about_a_file_comes_with_a_role) {
  Site site(aws());
  const std::string path =
      site.write(".aws/credentials", "[base]\n" + pair_of("base"), 0644);
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker, "source_profile = base"));
  const KeyOutcome outcome = asked(site.chain());
  BOOST_TEST(state_of(outcome) == "found");
  BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
  BOOST_TEST(has(outcome.warnings, in_quotes(path)));
}

BOOST_AUTO_TEST_SUITE_END()

// --- Profiles that are set up wrong ----------------------------------------

BOOST_AUTO_TEST_SUITE(profile_chain_flaws)

BOOST_AUTO_TEST_CASE(role_with_none_or_both_of_the_sources_is_broken) {
  Nest nest;
  nest.write(".aws/credentials", "[default]\n" + pair_of("d"));
  nest.write(".aws/config", "[default]\n" + with_role(kLocker, ""));
  const std::string place =
      "broken: profile \"default\" in " + nest.quoted(".aws/config");
  BOOST_TEST(said(asked(nest.chain())) ==
             place +
                 " has a role_arn, but neither source_profile nor "
                 "credential_source nor web_identity_token_file");
  nest.write(".aws/config",
             "[default]\n" + with_role(kLocker,
                                       "source_profile = b\n"
                                       "credential_source = Environment"));
  BOOST_TEST(said(asked(nest.chain())) ==
             place + " has both source_profile and credential_source");
}

BOOST_AUTO_TEST_CASE(source_that_does_not_exist_is_broken) {
  Nest nest;
  nest.write(".aws/config",
             "[default]\n" + with_role(kLocker, "source_profile = b"));
  BOOST_TEST(said(asked(nest.chain())) ==
             "broken: source_profile of profile \"default\" in " +
                 nest.quoted(".aws/config") +
                 " names profile \"b\", which does not exist (" +
                 nest.quoted(".aws/credentials") + " does not exist, " +
                 nest.quoted(".aws/config") + " has no such profile)");
}

BOOST_AUTO_TEST_CASE(source_without_keys_is_broken) {
  Nest nest;
  nest.write(".aws/config", "[default]\n" +
                                with_role(kLocker, "source_profile = b") +
                                "[profile b]\nregion = eu-west-1");
  BOOST_TEST(has(said(asked(nest.chain())),
                 " names profile \"b\", which has no keys ("));
  nest.write(".aws/config", "[default]\n" +
                                with_role(kLocker, "source_profile = b") +
                                "[profile b]\naws_access_key_id = x");
  BOOST_TEST(has(said(asked(nest.chain())),
                 "aws_access_key_id without aws_secret_access_key in profile "
                 "\"b\" in "));
}

BOOST_AUTO_TEST_CASE(profiles_in_a_circle_are_broken_and_named) {
  const auto circle = [](const std::string& text) {
    Nest nest;
    nest.write(".aws/config", text);
    return said(asked(nest.chain(named("a"))));
  };
  const std::string each =
      "broken: profiles that get their keys from each other: ";
  const auto profile = [](const std::string& name, const std::string& source) {
    return "[profile " + name + "]\n" +
           with_role(kLocker, "source_profile = " + source);
  };
  BOOST_TEST(circle(profile("a", "a")) == each + "\"a\", \"a\"");
  BOOST_TEST(circle(profile("a", "b") + profile("b", "a")) ==
             each + "\"a\", \"b\", \"a\"");
  BOOST_TEST(circle(profile("a", "b") + profile("b", "c") +
                    profile("c", "b")) == each + "\"a\", \"b\", \"c\", \"b\"");
  BOOST_TEST(circle(profile("a", "b") + profile("b", "b")) ==
             each + "\"a\", \"b\", \"b\"");
  // Keys do not help one that was passed through before.
  BOOST_TEST(circle(profile("a", "b") + pair_of("x") + profile("b", "a")) ==
             each + "\"a\", \"b\", \"a\"");
}

BOOST_AUTO_TEST_CASE(chain_of_thousands_of_profiles_is_refused) {
  Nest nest;
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    text += "[profile p" + std::to_string(i) + "]\n" +
            with_role(kLocker, "source_profile = p" + std::to_string(i + 1));
  }
  nest.write(".aws/config", text);
  BOOST_TEST(said(asked(nest.chain(named("p0")))) ==
             "broken: more than 200 profiles in a row get their keys from "
             "another one, from profile \"p0\" on");
}

BOOST_AUTO_TEST_CASE(long_chain_of_profiles_is_followed_to_its_end) {
  Nest nest;
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "[profile p" + std::to_string(i) + "]\n" +
            with_role(kLocker, "source_profile = p" + std::to_string(i + 1));
  }
  nest.write(".aws/config", text);
  BOOST_TEST(has(said(asked(nest.chain(named("p0")))),
                 "names profile \"p200\", which does not exist"));
}

BOOST_AUTO_TEST_CASE(role_that_asks_for_a_code_is_broken) {
  Nest nest;
  nest.write(".aws/config",
             "[default]\n" +
                 with_role(kLocker,
                           "source_profile = default\n"
                           "mfa_serial = arn:aws:iam::1:mfa/u\n") +
                 pair_of("base"));
  BOOST_TEST(said(asked(nest.chain())) ==
             "broken: mfa_serial in profile \"default\" in " +
                 nest.quoted(".aws/config") +
                 ": there is nobody to ask for a code, so such a role cannot "
                 "be assumed");
}

BOOST_AUTO_TEST_CASE(duration_that_is_no_number_is_broken) {
  for (const char* bad : {"1h", "-900", "1800.0", "+900"}) {
    Nest nest;
    nest.write(".aws/config", "[default]\n" +
                                  with_role(kLocker,
                                            "source_profile = default\n"
                                            "duration_seconds = " +
                                                std::string(bad)) +
                                  pair_of("base"));
    BOOST_TEST(said(asked(nest.chain())) ==
               "broken: duration_seconds of profile \"default\" in " +
                   nest.quoted(".aws/config") +
                   " is not a number of seconds: \"" + bad + "\"");
  }
}

BOOST_AUTO_TEST_CASE(profile_that_does_not_exist_or_cannot_be_read_is_broken) {
  Nest nest;
  BOOST_TEST(has(said(asked(nest.chain(named("a")))),
                 "broken: profile \"a\", named by the options, does not "));
  const KeySourcePtr chain = nest.chain();
  nest.write(".aws/config", "junk");
  for (const KeySourcePtr& source : {chain, nest.chain()}) {
    BOOST_TEST(said(asked(source)) == "broken: " + nest.quoted(".aws/config") +
                                          ", line 1: a line before the first "
                                          "section");
  }
}

BOOST_AUTO_TEST_CASE(no_text_shows_a_key) {
  Nest nest;
  for (const char* rest : {"", "source_profile = b", "source_profile = default",
                           "credential_source = x", "duration_seconds = x",
                           "mfa_serial = m\nsource_profile = default"}) {
    nest.write(".aws/config", "[default]\n" + with_role(kLocker, rest) +
                                  "\naws_access_key_id = a\n"
                                  "aws_secret_access_key = sEcReT\n"
                                  "aws_session_token = sEcReT\n");
    nest.variables["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:1";
    BOOST_TEST(!has(tests::texts_of(asked(nest.chain())), "sEcReT"));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Web identity, and what a profile has by itself ------------------------

BOOST_AUTO_TEST_SUITE(profile_chain_own_keys)

BOOST_AUTO_TEST_CASE(web_identity_is_of_the_environment) {
  Aws& services = aws();
  Site site(services);
  site.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] =
      site.write("token", kTokenText);
  site.variables["AWS_ROLE_ARN"] = kLocker;
  site.variables["AWS_ROLE_SESSION_NAME"] = "pod";
  BOOST_TEST(said(asked(site.chain())) ==
             std::string("found: role \"") + kLocker +
                 "\" by web identity of AWS_WEB_IDENTITY_TOKEN_FILE");
  const auto request = services.log().last("sts");
  BOOST_TEST(request.operation == "AssumeRoleWithWebIdentity");
  BOOST_TEST(request.signature == "none");
  BOOST_TEST(request.form.at("RoleSessionName") == "pod");
}

BOOST_AUTO_TEST_CASE(web_identity_is_of_the_profile_with_all_its_settings) {
  Aws& services = aws();
  Site site(services);
  const std::string file = site.write("token", kTokenText);
  site.write(
      ".aws/config",
      "[default]\n" + with_role(kLocker, "web_identity_token_file = " + file +
                                             "\nrole_session_name = me\n"
                                             "source_profile = nobody"));
  BOOST_TEST(said(asked(site.chain())) ==
             std::string("found: role \"") + kLocker +
                 "\" by web identity of web_identity_token_file of profile "
                 "\"default\" in " +
                 site.quoted(".aws/config"));
  BOOST_TEST(services.log().last("sts").form.at("RoleSessionName") == "me");
}

// One may say where the token is, the other for which role.
BOOST_AUTO_TEST_CASE(each_setting_of_a_web_identity_is_looked_up_by_itself) {
  Aws& services = aws();
  Site site(services);
  const std::string file = site.write("token", kTokenText);
  const auto form = [&] {
    services.forget();
    BOOST_TEST(state_of(asked(site.chain())) == "found");
    return services.log().last("sts", "AssumeRoleWithWebIdentity").form;
  };
  site.write(".aws/config",
             "[default]\n" + with_role(kMiddle,
                                       "web_identity_token_file = /nowhere\n"
                                       "role_session_name = mine"));
  site.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = file;
  BOOST_TEST(form().at("RoleArn") == kMiddle);
  site.variables["AWS_ROLE_ARN"] = kLocker;
  BOOST_TEST(form().at("RoleArn") == kLocker);
  BOOST_TEST(form().at("RoleSessionName") == "mine");
  site.variables["AWS_ROLE_SESSION_NAME"] = "theirs";
  BOOST_TEST(form().at("RoleSessionName") == "theirs");
}

BOOST_AUTO_TEST_CASE(web_identity_without_a_role_is_broken) {
  Nest nest;
  nest.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/nowhere";
  BOOST_TEST(said(asked(nest.chain())) ==
             "broken: AWS_WEB_IDENTITY_TOKEN_FILE has no role: neither "
             "AWS_ROLE_ARN nor role_arn of profile \"default\" is set");
  nest.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  nest.write(".aws/config", "[default]\nweb_identity_token_file = /nowhere");
  BOOST_TEST(has(said(asked(nest.chain())), "has no role"));
  nest.variables["AWS_ROLE_ARN"] = kLocker;
  BOOST_TEST(has(said(asked(nest.chain())), "/nowhere"));
}

BOOST_AUTO_TEST_CASE(web_identity_of_the_environment_is_not_a_named_profiles) {
  Aws& services = aws();
  Site site(services);
  site.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] =
      site.write("token", kTokenText);
  site.variables["AWS_ROLE_ARN"] = kLocker;
  site.write(".aws/credentials", "[a]\n" + pair_of("a"));
  BOOST_TEST(key_of(asked(site.chain(named("a")))) == "a-id");
  // One that the environment names has it.
  site.variables["AWS_PROFILE"] = "a";
  BOOST_TEST(has(said(asked(site.chain())), "by web identity of AWS_WEB_"));
  BOOST_TEST(services.log().count("sts") == 1);
}

BOOST_AUTO_TEST_CASE(
    order_is_sign_on_then_credentials_then_process_then_config) {
  Aws& services = aws();
  Site site(services);
  const std::string program =
      site.write("program",
                 "#!/bin/sh\necho '{\"Version\": 1, \"AccessKeyId\": \"p-id\","
                 " \"SecretAccessKey\": \"p-secret\"}'\n",
                 0700);
  site.write(".aws/sso/cache/" + sha1_hex("u") + ".json",
             "{\"accessToken\": \"sso-token\", "
             "\"expiresAt\": \"2999-01-01T00:00:00Z\"}");
  const std::string sso =
      "sso_account_id = 123456789012\nsso_role_name = r\n"
      "sso_region = eu-west-1\nsso_start_url = u\n";
  const std::string process = "credential_process = " + program + "\n";
  site.write(".aws/credentials", "[default]\n" + pair_of("k"));
  site.write(".aws/config", "[default]\n" + sso + process + pair_of("c"));
  BOOST_TEST(has(said(asked(site.chain())), "by single sign-on of "));
  site.write(".aws/config", "[default]\n" + process + pair_of("c"));
  BOOST_TEST(key_of(asked(site.chain())) == "k-id");
  site.write(".aws/credentials", "[default]\n");
  BOOST_TEST(key_of(asked(site.chain())) == "p-id");
  site.write(".aws/config", "[default]\n" + pair_of("c"));
  BOOST_TEST(key_of(asked(site.chain())) == "c-id");
}

BOOST_AUTO_TEST_CASE(process_is_named_with_its_profile) {
  Nest nest;
  const std::string program =
      nest.write("program", "#!/bin/sh\nexit 3\n", 0700);
  nest.write(".aws/config", "[default]\ncredential_process = " + program);
  BOOST_TEST(has(said(asked(nest.chain())),
                 "credential_process of profile \"default\" in " +
                     nest.quoted(".aws/config")));
}

// --- A part of a way --------------------------------------------------------

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

BOOST_AUTO_TEST_CASE(part_of_a_way_in_a_source_profile_is_named) {
  Site site(aws());
  site.write(".aws/config",
             "[default]\n" + with_role(kLocker, "source_profile = b") +
                 "[profile b]\ncredential_source = Environment\n");
  BOOST_TEST(said(asked(site.chain())) ==
             "broken: credential_source of profile \"b\" in " +
                 site.quoted(".aws/config") +
                 " gives no keys without role_arn");
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

// As with AWS's tools.
BOOST_AUTO_TEST_CASE(property_that_only_qualifies_a_way_ends_no_search) {
  for (const char* line :
       {"mfa_serial = m", "external_id = e", "duration_seconds = 900",
        "role_session_name = s", "sso_registration_scopes = s"}) {
    Site site(aws());
    site.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
        aws().plain_url("container") + "/v2/credentials/task";
    site.write(".aws/config", "[default]\n" + std::string(line) + "\n");
    BOOST_TEST(has(said(asked(site.chain())), "found: the container's agent"),
               line);
  }
}

BOOST_AUTO_TEST_SUITE_END()
