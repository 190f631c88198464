// Which region, which URL and which CA file are meant, and who says so.  What
// AWS calls DynamoDB in a region is in test_service_endpoints.cpp.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/endpoint.hpp"
#include "tests/support/home.hpp"

namespace {

using namespace ddbmutex::dynamodb;
using ddbmutex::sigv4::find_endpoint;
using ddbmutex::sigv4::in_quotes;
using ddbmutex::sigv4::Service;
using ddbmutex::sigv4::ServiceEndpoint;
using tests::has;
using tests::Home;

// "region url", or the error.
std::string found(const Home& home, const TargetOptions& options = {}) {
  const Target target = find_target(options, home.environment());
  if (!target.error.empty()) {
    BOOST_TEST(target.endpoint + target.region == "");
    return target.error;
  }
  BOOST_TEST(ddbmutex::sigv4::is_endpoint_url(target.endpoint));
  return target.region + " " + target.endpoint;
}

// In a region that is given.
std::string url(const Home& home) {
  const std::string text = found(home, {"eu-west-1", "", {}});
  const std::string region = "eu-west-1 ";
  const bool good = text.substr(0, region.size()) == region;
  return good ? text.substr(region.size()) : text;
}

// The URL for keys of that account, or the error.
std::string of_account(Target target, const std::string& id) {
  use_account(target, id);
  BOOST_TEST(target.endpoint.empty() != target.error.empty());
  return target.endpoint + target.error;
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
  BOOST_TEST(region({"", "", "a"}) == "eu-west-5");
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
    BOOST_TEST(ddbmutex::sigv4::is_host_label(text));
  }
  for (const std::string& text :
       {longest + "a", std::string(), std::string("-a"), std::string("a-"),
        std::string("a.b"), std::string("a b"), std::string("a\n"),
        std::string("a_b"), std::string("a/b"), std::string("a@b"),
        std::string("\xC3\xA4"), std::string("a\0b", 3)}) {
    BOOST_TEST(!ddbmutex::sigv4::is_host_label(text));
  }
}

BOOST_AUTO_TEST_CASE(bad_region_is_an_error_that_names_its_source) {
  const std::string wrong = " is not the name of a region: ";
  Home home;
  home.write(".aws/config", "[default]\nregion = evil.example/\n");
  BOOST_TEST(found(home) ==
             "region of profile \"default\" in " +
                 in_quotes((home.root / ".aws/config").string()) + wrong +
                 "\"evil.example/\"");
  home.variables["AWS_DEFAULT_REGION"] = "a b";
  BOOST_TEST(found(home) == "AWS_DEFAULT_REGION" + wrong + "\"a b\"");
  home.variables["AWS_REGION"] = "x@evil\x1b";
  BOOST_TEST(found(home) == "AWS_REGION" + wrong + "\"x@evil\\x1b\"");
  BOOST_TEST(found(home, {"eu-west-1.", "", {}}) ==
             "option region" + wrong + "\"eu-west-1.\"");
}

BOOST_AUTO_TEST_CASE(no_region_is_an_error_that_names_the_sources) {
  Home home;
  home.variables["AWS_EC2_METADATA_DISABLED"] = "true";
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
  BOOST_TEST(has(url(home), "names a section \"services mine\" that does not"));
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
    BOOST_TEST(
        url(home) ==
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is neither true nor false: " +
            in_quotes(value));
  }
  home.variables.clear();
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "1";
  BOOST_TEST(url(home) ==
             "AWS_USE_FIPS_ENDPOINT is neither true nor false: \"1\"");
}

BOOST_AUTO_TEST_CASE(bad_endpoint_is_an_error_that_names_its_source) {
  const std::string wrong =
      " is not http:// or https://, a host, and optionally a port and a path";
  for (const char* bad : {"ftp://h", "h:8000", "http://", "http://h/a b",
                          "http://h?q=1", "http://h#f", "http://u:sEcReT@h",
                          "http://h\nX: y", "http:// h", "://"}) {
    Home home;
    const std::string value =
        has(bad, "@") ? " (not shown: it may contain a password)"
                      : " is " + ddbmutex::sigv4::in_quotes(bad) + ", which";
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"}) {
      home.variables[name] = bad;
      BOOST_TEST(url(home) == name + value + wrong);
    }
    BOOST_TEST(found(home, {"eu-west-1", bad, {}}) ==
               "option endpoint" + value + wrong);
  }
  Home home;
  home.write(".aws/config",
             "[default]\nservices = mine\n[services mine]\n"
             "dynamodb =\n  endpoint_url = x\n");
  const std::string file = in_quotes((home.root / ".aws/config").string());
  BOOST_TEST(url(home) ==
             "endpoint_url of dynamodb in section "
             "\"services mine\" of " +
                 file + " is \"x\", which" + wrong);
  home.write(".aws/config", "[default]\nendpoint_url = x\n");
  BOOST_TEST(url(home) == "endpoint_url of profile \"default\" in " + file +
                              " is \"x\", which" + wrong);
}

// Whoever asked for FIPS would not want to find out that it was not.
BOOST_AUTO_TEST_CASE(
    fips_or_dual_stack_with_a_url_is_an_error_that_names_both) {
  Home home;
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"AWS_USE_FIPS_ENDPOINT", "FIPS"},
      {"AWS_USE_DUALSTACK_ENDPOINT", "dual-stack"}};
  for (const auto& [variable, kind] : kinds) {
    home.variables[variable] = "True";
    const auto refused = [&, &name = variable, &word = kind](const char* url) {
      return name + " is true, but " + url +
             " names an endpoint, and it cannot be known whether that is a " +
             word + " one";
    };
    BOOST_TEST(found(home, {"eu-west-1", "https://h", {}}) ==
               refused("option endpoint"));
    home.variables["AWS_ENDPOINT_URL"] = "https://h";
    BOOST_TEST(url(home) == refused("AWS_ENDPOINT_URL"));
    home.variables[variable] = "false";
    BOOST_TEST(url(home) == "https://h");
    home.variables.erase("AWS_ENDPOINT_URL");
    home.variables.erase(variable);
  }
}

BOOST_AUTO_TEST_CASE(flags_of_the_profile_count_unless_the_variable_objects) {
  Home home;
  home.write(".aws/config",
             "[default]\nuse_fips_endpoint = true\n"
             "use_dualstack_endpoint = true\n");
  BOOST_TEST(url(home) == "https://dynamodb-fips.eu-west-1.api.aws");
  BOOST_TEST(has(found(home, {"eu-west-1", "https://h", {}}),
                 "use_fips_endpoint of profile \"default\" in "));
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "false";
  BOOST_TEST(url(home) == "https://dynamodb.eu-west-1.api.aws");
  home.variables["AWS_USE_DUALSTACK_ENDPOINT"] = "false";
  BOOST_TEST(url(home) == kUsual);
}

BOOST_AUTO_TEST_CASE(region_that_asks_for_fips_gets_it_for_all_services) {
  Home home;
  home.variables["AWS_REGION"] = "fips-us-east-1";
  BOOST_TEST(found(home) ==
             "us-east-1 https://dynamodb-fips.us-east-1.amazonaws.com");
  const Target target = find_target({}, home.environment());
  BOOST_TEST(target.region_said.source == "AWS_REGION");
  ServiceEndpoint sts;
  find_endpoint(Service::sts, target.region_said, sts);
  BOOST_TEST(sts.endpoint == "https://sts-fips.us-east-1.amazonaws.com");
  BOOST_TEST(has(found(home, {"", "https://h", {}}),
                 "AWS_REGION asks for FIPS, but option endpoint names"));
}

BOOST_AUTO_TEST_CASE(unusable_file_or_missing_profile_is_an_error) {
  Home home;
  home.variables["AWS_PROFILE"] = "foo";
  BOOST_TEST(has(url(home), "profile \"foo\", named by AWS_PROFILE, does not"));
  home.write(".aws/config", "junk");
  BOOST_TEST(has(url(home), "config\", line 1: "));
}

// A flag or a CA file in them counts for an endpoint of the options too.
BOOST_AUTO_TEST_CASE(files_are_read_even_if_options_name_region_and_endpoint) {
  Home home;
  home.write(".aws/config", "junk");
  BOOST_TEST(has(found(home, {"eu-west-1", "http://h:1", {}}), "line 1: "));
}

BOOST_AUTO_TEST_CASE(region_that_may_come_later_is_no_error_and_is_asked_for) {
  Home home;
  const Target later = find_target({}, home.environment());
  BOOST_TEST(later.error + later.region + later.endpoint == "");
  BOOST_TEST(has(later.region_sources,
                 "neither AWS_REGION nor AWS_DEFAULT_REGION is set, nor region "
                 "of profile \"default\" ("));
  Target bad = later;
  complete(bad, {"a b", "EC2's metadata service"});
  BOOST_TEST(bad.error ==
             "EC2's metadata service is not the name of a region: \"a b\"");
  BOOST_TEST(bad.option == "region");
  Target good = later;
  complete(good, {"eu-west-1", "EC2's metadata service"});
  BOOST_TEST(good.error + good.region_sources == "");
  BOOST_TEST(good.region_said.source == "EC2's metadata service");
  BOOST_TEST(good.region + " " + good.endpoint ==
             "eu-west-1 " + std::string(kUsual));
  home.variables["AWS_REGION"] = "eu-west-1";
  BOOST_TEST(find_target({}, home.environment()).endpoint == kUsual);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_without_a_region_is_said_before_it_comes) {
  Home home;
  const auto error = [&] { return find_target({}, home.environment()).error; };
  home.variables["AWS_ENDPOINT_URL"] = "ftp://h";
  BOOST_TEST(
      has(error(), "AWS_ENDPOINT_URL is \"ftp://h\", which is not http://"));
  home.variables["AWS_ENDPOINT_URL"] = "https://h";
  BOOST_TEST(error() == "");
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "true";
  BOOST_TEST(
      has(error(), "AWS_USE_FIPS_ENDPOINT is true, but AWS_ENDPOINT_URL"));
  home.variables["AWS_USE_FIPS_ENDPOINT"] = "x";
  BOOST_TEST(has(error(), "is neither true nor false"));
}

BOOST_AUTO_TEST_CASE(account_has_a_url_of_its_own_once_it_is_known) {
  const Home home;
  const Target target = find_target({"eu-west-1", "", {}}, home.environment());
  BOOST_TEST(target.endpoint == kUsual);
  BOOST_TEST(target.suffix == "eu-west-1.amazonaws.com");
  BOOST_TEST(target.account_required == "");
  BOOST_TEST(of_account(target, "") == kUsual);
  BOOST_TEST(of_account(target, "123456789012") ==
             "https://123456789012.ddb.eu-west-1.amazonaws.com");
}

BOOST_AUTO_TEST_CASE(account_id_that_is_no_label_is_refused_and_not_shown) {
  const Home home;
  const Target target = find_target({"eu-west-1", "", {}}, home.environment());
  for (const char* id : {"a.b", "evil.example/", "-1", "1-", "1 2", "1\n",
                         "1@2", "\xC3\xA4", "1:2"}) {
    BOOST_TEST(of_account(target, id) ==
               "the account id that came with the keys is not valid");
  }
}

BOOST_AUTO_TEST_CASE(account_mode_is_that_of_the_variable_then_the_profile) {
  Home home;
  const auto target = [&](const std::string& region = "eu-west-1") {
    return find_target({region, "", {}}, home.environment());
  };
  home.write(".aws/config", "[default]\naccount_id_endpoint_mode = required\n");
  const std::string source = "account_id_endpoint_mode of profile \"default\"";
  BOOST_TEST(target().account_required != "");
  const std::string missing = of_account(target(), "");
  BOOST_TEST(has(missing, source));
  BOOST_TEST(has(missing, "the source of the keys does not name the account"));
  BOOST_TEST(has(target("us-iso-east-1").error, source));
  home.variables["AWS_ACCOUNT_ID_ENDPOINT_MODE"] = "disabled";
  BOOST_TEST(target().account_required == "");
  BOOST_TEST(of_account(target(), "123456789012") == kUsual);
  home.variables["AWS_ACCOUNT_ID_ENDPOINT_MODE"] = "preferred";
  BOOST_TEST(of_account(target(), "1") ==
             "https://1.ddb.eu-west-1.amazonaws.com");
  for (const char* bad : {"Preferred", "true", "prefer", " required"}) {
    home.variables["AWS_ACCOUNT_ID_ENDPOINT_MODE"] = bad;
    BOOST_TEST(target().error ==
               "AWS_ACCOUNT_ID_ENDPOINT_MODE is not preferred, disabled or "
               "required: " +
                   in_quotes(bad));
  }
}

BOOST_AUTO_TEST_CASE(url_that_was_configured_is_that_of_every_account) {
  Home home;
  home.variables["AWS_ACCOUNT_ID_ENDPOINT_MODE"] = "required";
  const Target target =
      find_target({"eu-west-1", "http://h:1", {}}, home.environment());
  BOOST_TEST(target.account_required == "");
  BOOST_TEST(of_account(target, "") == "http://h:1");
  BOOST_TEST(of_account(target, "123456789012") == "http://h:1");
}

BOOST_AUTO_TEST_CASE(ca_file_is_option_then_variable_then_profile) {
  Home home;
  std::vector<std::string> files;
  for (const char* name : {"option", "variable", "profile"}) {
    files.push_back(home.write(name, ""));
  }
  TargetOptions options;
  options.region = "eu-west-1";
  const auto ca_file = [&] {
    return find_target(options, home.environment()).ca_file;
  };
  BOOST_TEST(ca_file() == "");
  home.write(".aws/config", "[default]\nca_bundle = " + files[2] + "\n");
  BOOST_TEST(ca_file() == files[2]);
  home.variables["AWS_CA_BUNDLE"] = files[1];
  BOOST_TEST(ca_file() == files[1]);
  options.ca_file = files[0];
  BOOST_TEST(ca_file() == files[0]);
  options.region = {};
  Target later = find_target(options, home.environment());
  BOOST_TEST(later.ca_file == files[0]);
  complete(later, {"eu-west-1", ""});
  BOOST_TEST(later.ca_file == files[0]);
}

BOOST_AUTO_TEST_CASE(ca_file_that_cannot_be_read_is_an_error_of_its_source) {
  Home home;
  TargetOptions options;
  options.region = "eu-west-1";
  const auto target = [&] { return find_target(options, home.environment()); };
  const std::string missing = (home.root / "missing").string();
  const std::string wrong = ", " + in_quotes(missing) + ", cannot be read";
  home.write(".aws/config", "[default]\nca_bundle = " + missing + "\n");
  BOOST_TEST(target().error ==
             "ca_bundle of profile \"default\" in " +
                 in_quotes((home.root / ".aws/config").string()) + wrong);
  home.variables["AWS_CA_BUNDLE"] = missing;
  BOOST_TEST(target().error == "AWS_CA_BUNDLE" + wrong);
  options.ca_file = missing;
  BOOST_TEST(target().error == "option ca_file" + wrong);
  BOOST_TEST(target().option == "ca_file");
}

// A FIFO would be waited for without a limit, a device read without an end.
BOOST_AUTO_TEST_CASE(
    ca_file_that_is_no_regular_file_is_an_error_of_its_source) {
  Home home;
  TargetOptions options;
  options.region = "eu-west-1";
  const auto error = [&] {
    return find_target(options, home.environment()).error;
  };
  const std::string fifo = (home.root / "fifo").string();
  BOOST_TEST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string& path :
       {fifo, home.root.string(), std::string("/dev/zero")}) {
    const std::string wrong =
        ", " + in_quotes(path) + ", is not a regular file";
    options.ca_file = path;
    BOOST_TEST(error() == "option ca_file" + wrong);
    options.ca_file = "";
    home.variables["AWS_CA_BUNDLE"] = path;
    BOOST_TEST(error() == "AWS_CA_BUNDLE" + wrong);
    home.variables.erase("AWS_CA_BUNDLE");
    home.write(".aws/config", "[default]\nca_bundle = " + path + "\n");
    BOOST_TEST(error() == "ca_bundle of profile \"default\" in " +
                              in_quotes((home.root / ".aws/config").string()) +
                              wrong);
    home.write(".aws/config", "");
  }
}

BOOST_AUTO_TEST_CASE(account_of_a_table_is_told_by_an_arn_of_the_region) {
  const auto account = [](const std::string& table) {
    return account_of_table(table, "eu-west-1");
  };
  const std::string arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks";
  BOOST_TEST(account(arn) == "123456789012");
  for (const char* other :
       {"locks", "", "arn:", "arn:aws:dynamodb:eu-west-1:123456789012:",
        "arn:aws:dynamodb:us-east-1:123456789012:table/locks",
        "arn:aws:s3:eu-west-1:123456789012:table/locks",
        "urn:aws:dynamodb:eu-west-1:123456789012:table/locks",
        "arn:aws:dynamodb:eu-west-1::table/locks"}) {
    BOOST_TEST(account(other) == "", other);
  }
}

BOOST_AUTO_TEST_SUITE_END()
