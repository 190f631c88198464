// Which region and which URL are meant.  The URLs of regions are those that
// the endpoint rules in AWS's JavaScript client for DynamoDB (Apache-2.0) give.
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dynamodb/client.hpp"
#include "dynamodb/endpoint.hpp"
#include "tests/support/home.hpp"

namespace {

using namespace ddbmutex::dynamodb;
using ddbmutex::sigv4::in_quotes;
using tests::has;
using tests::Home;

// "region url", or the error.
std::string found(const Home& home, const TargetOptions& options = {}) {
  const Target target = find_target(options, home.environment());
  if (!target.error.empty()) {
    BOOST_TEST(target.endpoint + target.region == "");
    return target.error;
  }
  BOOST_TEST(is_endpoint(target.endpoint));
  return target.region + " " + target.endpoint;
}

// In a region that is given.
std::string url(const Home& home) {
  const std::string text = found(home, {"eu-west-1", "", {}});
  const std::string region = "eu-west-1 ";
  const bool good = text.substr(0, region.size()) == region;
  return good ? text.substr(region.size()) : text;
}

constexpr char kUsual[] = "https://dynamodb.eu-west-1.amazonaws.com";

// Everything that may name an endpoint, the first first; each has its own.
const std::vector<std::string> kEndpoints = {
    "http://service-variable", "http://variable", "http://services",
    "http://profile"};

void set_endpoints_from(Home& home, std::size_t first) {
  home.variables.erase("AWS_ENDPOINT_URL_DYNAMODB");
  home.variables.erase("AWS_ENDPOINT_URL");
  if (first <= 0) home.variables["AWS_ENDPOINT_URL_DYNAMODB"] = kEndpoints[0];
  if (first <= 1) home.variables["AWS_ENDPOINT_URL"] = kEndpoints[1];
  std::string text = "[default]\n";
  if (first <= 2) text += "services = mine\n";
  if (first <= 3) text += "endpoint_url = " + kEndpoints[3] + "\n";
  text +=
      "[services mine]\ns3 =\n  endpoint_url = http://s3\ndynamodb =\n"
      "  endpoint_url = " +
      kEndpoints[2] + "\n";
  home.write(".aws/config", text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(endpoint)

BOOST_AUTO_TEST_CASE(regions_have_the_urls_of_their_partitions) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"us-east-1", "https://dynamodb.us-east-1.amazonaws.com"},
      {"eu-central-1", "https://dynamodb.eu-central-1.amazonaws.com"},
      {"us-gov-west-1", "https://dynamodb.us-gov-west-1.amazonaws.com"},
      {"us-gov-east-1", "https://dynamodb.us-gov-east-1.amazonaws.com"},
      {"cn-north-1", "https://dynamodb.cn-north-1.amazonaws.com.cn"},
      {"cn-northwest-1", "https://dynamodb.cn-northwest-1.amazonaws.com.cn"},
      {"us-iso-east-1", "https://dynamodb.us-iso-east-1.c2s.ic.gov"},
      {"us-isob-east-1", "https://dynamodb.us-isob-east-1.sc2s.sgov.gov"},
      {"eu-isoe-west-1", "https://dynamodb.eu-isoe-west-1.cloud.adc-e.uk"},
      {"us-isof-south-1", "https://dynamodb.us-isof-south-1.csp.hci.ic.gov"},
      {"eusc-de-east-1", "https://dynamodb.eusc-de-east-1.amazonaws.eu"},
      {"ap-moon-9", "https://dynamodb.ap-moon-9.amazonaws.com"},
      {"xx-new-1", "https://dynamodb.xx-new-1.amazonaws.com"},
  };
  const Home home;
  for (const auto& [region, expected] : cases) {
    BOOST_TEST(endpoint_of(region) == expected);
    BOOST_TEST(found(home, {region, "", {}}) == region + " " + expected);
  }
}

BOOST_AUTO_TEST_CASE(region_of_no_partitions_pattern_is_in_the_first) {
  for (const std::string region :
       {"cn-north", "cn-north-", "cn-north-1a", "cn--1", "cn-1", "cn-a-b-1",
        "us-iso-1", "us-isoc-east-1", "eusc-fr-east-1", "x-cn-north-1", "cn",
        "eusc-de-", "CN-north-1"}) {
    BOOST_TEST(endpoint_of(region) ==
               "https://dynamodb." + region + ".amazonaws.com");
  }
}

BOOST_AUTO_TEST_CASE(local_region_is_this_host_signed_as_another) {
  const Home home;
  BOOST_TEST(found(home, {"local", "", {}}) ==
             "us-east-1 http://localhost:8000");
  BOOST_TEST(found(home, {"local", "http://h:1", {}}) == "local http://h:1");
}

BOOST_AUTO_TEST_CASE(region_is_option_then_variables_then_profile) {
  Home home;
  home.write(".aws/config",
             "[default]\nregion = eu-west-4\n[profile a]\nregion = eu-west-5");
  const auto region = [&](const TargetOptions& options = {}) {
    return find_target(options, home.environment()).region;
  };
  BOOST_TEST(region() == "eu-west-4");
  BOOST_TEST(region({"", "", {"a", "", ""}}) == "eu-west-5");
  home.variables["AWS_DEFAULT_REGION"] = "eu-west-3";
  BOOST_TEST(region() == "eu-west-3");
  home.variables["AWS_REGION"] = "eu-west-2";
  BOOST_TEST(region() == "eu-west-2");
  BOOST_TEST(region({"eu-west-1", "", {}}) == "eu-west-1");
  home.variables["AWS_REGION"] = "";
  BOOST_TEST(region() == "eu-west-3");
  home.variables["AWS_DEFAULT_REGION"] = "";
  BOOST_TEST(region() == "eu-west-4");
}

BOOST_AUTO_TEST_CASE(region_of_one_word_of_letters_digits_and_hyphens_is_good) {
  const std::string longest(63, 'a');
  for (const std::string& text : {longest, std::string("a"), std::string("A-9"),
                                  std::string("1"), std::string("a--b")}) {
    BOOST_TEST(is_region(text));
  }
  for (const std::string& text :
       {longest + "a", std::string(), std::string("-a"), std::string("a-"),
        std::string("a.b"), std::string("a b"), std::string("a\n"),
        std::string("a_b"), std::string("a/b"), std::string("a@b"),
        std::string("\xC3\xA4"), std::string("a\0b", 3)}) {
    BOOST_TEST(!is_region(text));
  }
}

BOOST_AUTO_TEST_CASE(bad_region_is_an_error_that_names_its_source) {
  const std::string wrong = " is not the name of a region";
  Home home;
  home.write(".aws/config", "[default]\nregion = evil.example/\n");
  BOOST_TEST(found(home) ==
             "region of profile \"default\" in " +
                 in_quotes((home.root / ".aws/config").string()) + wrong);
  home.variables["AWS_DEFAULT_REGION"] = "a b";
  BOOST_TEST(found(home) == "AWS_DEFAULT_REGION" + wrong);
  home.variables["AWS_REGION"] = "x@evil";
  BOOST_TEST(found(home) == "AWS_REGION" + wrong);
  BOOST_TEST(found(home, {"eu-west-1.", "", {}}) == "option region" + wrong);
}

BOOST_AUTO_TEST_CASE(no_region_is_an_error_that_names_the_sources) {
  Home home;
  const std::string error = found(home, {"", "http://h", {}});
  BOOST_TEST(has(error,
                 "no region: neither AWS_REGION nor AWS_DEFAULT_REGION "
                 "is set, nor region of profile \"default\" ("));
  BOOST_TEST(has(error, ".aws/config\" does not exist)"));
}

BOOST_AUTO_TEST_CASE(endpoint_is_option_then_variables_then_profile) {
  Home home;
  for (std::size_t first = 0; first < kEndpoints.size(); ++first) {
    set_endpoints_from(home, first);
    BOOST_TEST(url(home) == kEndpoints[first]);
    BOOST_TEST(found(home, {"eu-west-1", "http://option", {}}) ==
               "eu-west-1 http://option");
  }
  set_endpoints_from(home, kEndpoints.size());
  BOOST_TEST(url(home) == kUsual);
}

BOOST_AUTO_TEST_CASE(empty_endpoint_counts_as_none) {
  Home home;
  home.variables["AWS_ENDPOINT_URL_DYNAMODB"] = "";
  home.variables["AWS_ENDPOINT_URL"] = "";
  home.write(".aws/config",
             "[default]\nservices = mine\nendpoint_url =\n[services mine]\n"
             "dynamodb =\n  endpoint_url =\n");
  BOOST_TEST(url(home) == kUsual);
}

BOOST_AUTO_TEST_CASE(services_without_dynamodb_are_passed_over) {
  Home home;
  for (const char* services : {"s3 =\n  endpoint_url = http://s3\n",
                               "dynamodb =\n  other = 1\n", "dynamodb = x\n"}) {
    home.write(".aws/config",
               std::string("[default]\nservices = mine\n"
                           "endpoint_url = http://p\n[services mine]\n") +
                   services);
    BOOST_TEST(url(home) == "http://p");
  }
}

BOOST_AUTO_TEST_CASE(services_that_are_not_there_are_an_error) {
  Home home;
  home.write(".aws/config",
             "[default]\nservices = mine\nendpoint_url = http://p\n"
             "[services other]\n");
  BOOST_TEST(has(url(home), "services of profile \"default\" in "));
  BOOST_TEST(has(url(home), "names a section \"services mine\" that is not"));
}

BOOST_AUTO_TEST_CASE(ignored_endpoints_leave_the_usual_one_and_the_option) {
  Home home;
  for (std::size_t first = 0; first < kEndpoints.size(); ++first) {
    set_endpoints_from(home, first);
    for (const char* yes : {"true", "TRUE", "True"}) {
      home.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = yes;
      BOOST_TEST(url(home) == kUsual);
      BOOST_TEST(found(home, {"eu-west-1", "http://option", {}}) ==
                 "eu-west-1 http://option");
    }
    for (const char* no : {"false", "False", ""}) {
      home.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = no;
      BOOST_TEST(url(home) == kEndpoints[first]);
    }
  }
}

BOOST_AUTO_TEST_CASE(profile_may_ignore_endpoints_unless_the_variable_objects) {
  Home home;
  home.variables["AWS_ENDPOINT_URL"] = "http://h";
  home.write(".aws/config",
             "[default]\nignore_configured_endpoint_urls = true\n");
  BOOST_TEST(url(home) == kUsual);
  home.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "false";
  BOOST_TEST(url(home) == "http://h");
}

BOOST_AUTO_TEST_CASE(flag_of_another_value_is_an_error) {
  Home home;
  for (const char* value : {"1", "yes", "tru", "trueX", " true"}) {
    home.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = value;
    BOOST_TEST(url(home) ==
               "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is neither true nor false");
  }
  home.variables.clear();
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "1";
  BOOST_TEST(url(home) == "AWS_USE_FIPS_ENDPOINT is neither true nor false");
}

BOOST_AUTO_TEST_CASE(bad_endpoint_is_an_error_that_names_its_source) {
  const std::string wrong =
      " is not http:// or https://, a host and perhaps a port";
  for (const char* bad : {"ftp://h", "h:8000", "http://", "http://h/path",
                          "http://h?q=1", "http://h#f", "http://u:sEcReT@h",
                          "http://h\nX: y", "http:// h", "://"}) {
    Home home;
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"}) {
      home.variables[name] = bad;
      BOOST_TEST(url(home) == name + wrong);
    }
    BOOST_TEST(found(home, {"eu-west-1", bad, {}}) ==
               "option endpoint" + wrong);
  }
  Home home;
  home.write(".aws/config",
             "[default]\nservices = mine\n[services mine]\n"
             "dynamodb =\n  endpoint_url = x\n");
  const std::string file = in_quotes((home.root / ".aws/config").string());
  BOOST_TEST(url(home) ==
             "endpoint_url of dynamodb in section "
             "\"services mine\" of " +
                 file + wrong);
  home.write(".aws/config", "[default]\nendpoint_url = x\n");
  BOOST_TEST(url(home) ==
             "endpoint_url of profile \"default\" in " + file + wrong);
}

// Whoever asked for FIPS would not want to find out that it was not.
BOOST_AUTO_TEST_CASE(fips_is_refused_unless_the_option_names_the_endpoint) {
  Home home;
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "true";
  BOOST_TEST(has(url(home),
                 "AWS_USE_FIPS_ENDPOINT, or use_fips_endpoint of "
                 "profile \"default\", is true"));
  BOOST_TEST(found(home, {"eu-west-1", "https://h", {}}) ==
             "eu-west-1 https://h");
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "false";
  BOOST_TEST(url(home) == kUsual);
  home.variables.erase("AWS_USE_FIPS_ENDPOINT");
  home.write(".aws/config", "[default]\nuse_fips_endpoint = true\n");
  BOOST_TEST(has(url(home), "a FIPS endpoint is only supported as option"));
}

BOOST_AUTO_TEST_CASE(unusable_file_or_missing_profile_is_an_error) {
  Home home;
  home.variables["AWS_PROFILE"] = "foo";
  BOOST_TEST(has(url(home), "profile \"foo\", named by AWS_PROFILE, does not"));
  home.write(".aws/config", "junk");
  BOOST_TEST(has(url(home), "config\", line 1: "));
}

BOOST_AUTO_TEST_CASE(files_are_not_read_where_options_say_it_all) {
  Home home;
  home.write(".aws/config", "junk");
  BOOST_TEST(found(home, {"eu-west-1", "http://h:1", {}}) ==
             "eu-west-1 http://h:1");
}

BOOST_AUTO_TEST_SUITE_END()
