// Where AWS's services are.  endpoint_cases.txt holds what AWS's own resolver
// answers for them; each case is asked of the library by the way of the
// environment, as a program's user would.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/endpoint.hpp"
#include "sigv4/endpoints.hpp"
#include "tests/support/home.hpp"

namespace {

using namespace ddbmutex::sigv4;
using ddbmutex::dynamodb::Target;
using ddbmutex::dynamodb::TargetOptions;
using tests::has;
using tests::Home;
using Words = std::vector<std::string>;

struct Case {
  std::string region;
  std::string service;
  std::string flags;
  std::string mode;
  std::string account;
  std::string configured;
  std::string url;  // Or "refused:...".
  std::string signed_for;
};

Words split(const std::string& text, char at) {
  Words words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, at);) words.push_back(word);
  return words;
}

std::string in_place_of_star(std::string text, const std::string& region) {
  const auto star = text.find('*');
  return star == text.npos ? text : text.replace(star, 1, region);
}

void add_cases(const Words& words, const Words& regions,
               std::vector<Case>& cases) {
  BOOST_TEST_REQUIRE((words.size() == 6 || words.size() == 7));
  for (const std::string& region : regions) {
    const std::string configured = in_place_of_star(words[4], region);
    const std::string url =
        words[5] == "=" ? configured : in_place_of_star(words[5], region);
    const std::string signed_for =
        words.size() == 7 ? in_place_of_star(words[6], region) : "";
    for (const std::string& mode : split(words[2], ',')) {
      for (const std::string& account : split(words[3], ',')) {
        cases.push_back({region, words[0], words[1], mode, account, configured,
                         url, signed_for});
      }
    }
  }
}

std::vector<Case> read_cases() {
  std::ifstream in(std::filesystem::path(__FILE__).parent_path() /
                   "endpoint_cases.txt");
  std::vector<Case> cases;
  Words regions;
  bool in_heading = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    Words words = split(line, ' ');
    const bool heading = words.front() == "regions";
    if (heading && !in_heading) regions.clear();
    in_heading = heading;
    if (heading) {
      regions.insert(regions.end(), words.begin() + 1, words.end());
    } else {
      add_cases(words, regions, cases);
    }
  }
  return cases;
}

// What the library's error says where AWS's resolver has one.
const std::map<std::string, std::string> kRefusals = {
    {"fips-custom", "_FIPS_ENDPOINT is true, but AWS_ENDPOINT_URL"},
    {"dual-custom", "_DUALSTACK_ENDPOINT is true, but AWS_ENDPOINT_URL"},
    {"dual-override", "names a dual-stack endpoint of AWS, which"},
    {"fips-local", "_FIPS_ENDPOINT is true, but region \"local\" is this host"},
    {"dual-local",
     "_DUALSTACK_ENDPOINT is true, but region \"local\" is this host"},
    {"fips-required",
     "AWS_ACCOUNT_ID_ENDPOINT_MODE requires an account's own endpoint: there "
     "is none with FIPS, and AWS_USE_FIPS_ENDPOINT is true"},
    {"region-required", "own endpoint: there is none in region"},
    {"account-bad", "account id that came with the keys is not valid"},
    {"account-missing",
     "AWS_ACCOUNT_ID_ENDPOINT_MODE requires an account's own endpoint, but the "
     "source of the keys does not name the account"},
};

void set_variables(const Case& one, Home& home) {
  const auto set = [&](const char* name, const std::string& value) {
    home.variables[name] = value == "-" ? "" : value;
  };
  const bool both = one.flags == "both";
  set("AWS_USE_FIPS_ENDPOINT", both || one.flags == "fips" ? "true" : "false");
  set("AWS_USE_DUALSTACK_ENDPOINT",
      both || one.flags == "dual" ? "true" : "false");
  set("AWS_ACCOUNT_ID_ENDPOINT_MODE", one.mode);
  set("AWS_ENDPOINT_URL", one.configured);
}

struct Found {
  std::string url;
  std::string region;
  std::string error;
};

Found at(Target target, const Case& one) {
  if (!target.error.empty()) return {"", "", target.error};
  use_account(target, one.account == "-" ? "" : one.account);
  return {target.endpoint, target.region, target.error};
}

Found dynamodb_of(const Case& one, const Home& home) {
  TargetOptions options;
  options.region = one.region;
  return at(find_target(options, home.environment()), one);
}

// The same, but for a region that is told at last.
Found late_dynamodb_of(const Case& one, const Home& home) {
  Target target = find_target(TargetOptions(), home.environment());
  if (target.error.empty()) complete(target, {one.region, "option region"});
  return at(target, one);
}

Found service_endpoint(Service service, const Home& home,
                       const Setting& region) {
  ServiceEndpoint endpoint;
  read_endpoint_settings(service, load_profile({}, home.environment()),
                         home.environment(), endpoint);
  find_endpoint(service, region, endpoint);
  return {endpoint.endpoint, endpoint.region, endpoint.error};
}

const std::array<std::pair<Service, std::string>, 5> kNamed = {
    {{Service::dynamodb, "dynamodb"},
     {Service::sts, "sts"},
     {Service::sso, "sso"},
     {Service::sso_oidc, "sso_oidc"},
     {Service::signin, "signin"}}};

Service service_of(const std::string& name) {
  for (const auto& [service, called] : kNamed) {
    if (called == name) return service;
  }
  BOOST_FAIL("no such service: " + name);
  return Service::dynamodb;
}

Found answer_to(const Case& one, const Home& home) {
  if (one.service == "dynamodb") return dynamodb_of(one, home);
  const Service service = service_of(one.service);
  return service_endpoint(service, home, {one.region, "region"});
}

bool is_right(const Found& answer, const Case& one) {
  const std::string refused = "refused:";
  if (one.url.rfind(refused, 0) != 0) {
    return answer.error.empty() && answer.url == one.url &&
           answer.region == one.signed_for;
  }
  return answer.url.empty() && answer.region.empty() &&
         has(answer.error, kRefusals.at(one.url.substr(refused.size())));
}

std::string described(const Case& one, const Found& answer) {
  return one.service + " in " + one.region + ", " + one.flags + " " + one.mode +
         " " + one.account + " " + one.configured + ": " + one.url + " " +
         one.signed_for + ", but not " + answer.url + " " + answer.region +
         " " + answer.error;
}

std::string url_of(Service service, const Home& home) {
  const auto found = service_endpoint(service, home, {"eu-west-1", "region"});
  return found.error.empty() ? found.url : found.error;
}

ServiceEndpoint in_region(const std::string& named) {
  ServiceEndpoint endpoint;
  set_region(endpoint, {named, "AWS_REGION"});
  return endpoint;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(service_endpoints)

BOOST_AUTO_TEST_CASE(urls_and_refusals_are_those_of_awss_resolver) {
  const std::vector<Case> cases = read_cases();
  BOOST_TEST(cases.size() > 5000u);
  Home home;
  for (const Case& one : cases) {
    set_variables(one, home);
    const Found answer = answer_to(one, home);
    BOOST_TEST(is_right(answer, one), described(one, answer));
  }
}

BOOST_AUTO_TEST_CASE(region_that_comes_late_leads_to_the_same_url) {
  Home home;
  for (const Case& one : read_cases()) {
    if (one.service != "dynamodb") continue;
    set_variables(one, home);
    const Found answer = late_dynamodb_of(one, home);
    BOOST_TEST(is_right(answer, one), described(one, answer));
  }
}

// As the configuration resolver of AWS's JavaScript clients has it.
BOOST_AUTO_TEST_CASE(region_that_asks_for_fips_is_the_one_behind_the_word) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"fips-us-east-1", "us-east-1"},
      {"us-east-1-fips", "us-east-1"},
      {"fips-aws-global", "us-east-1"},
      {"aws-fips", "us-east-1"},
      {"aws-global-fips", "aws-global"},
      {"fips-aws-us-gov-global", "aws-us-gov-global"},
      {"fips-us-gov-west-1", "us-gov-west-1"},
      {"fips-dkr-us-west-2", "us-west-2"},
      {"fips-prod-us-west-2", "us-west-2"},
      {"fips-dkr-prod-x", "prod-x"},
      {"fips-prod-dkr-a", "dkr-a"},
      {"a-prod-fips", "a-prod"},
      {"a-fips-dkr-b-fips", "a-dkr-b-fips"},
      {"afips-dkr-b-fips", "ab-fips"},
      {"us-fips-east-1-fips", "us-east-1-fips"},
      {"xfips-east-fips", "xeast-fips"},
      {"x-fips-fips", "x-fips"},
      {"fips-fips", "fips"},
      {"fips-dkr", "dkr"},
      {"fips-local", "local"},
  };
  for (const auto& [named, region] : cases) {
    const ServiceEndpoint place = in_region(named);
    BOOST_TEST(place.region == region);
    BOOST_TEST(place.error == "");
    BOOST_TEST(place.fips == "AWS_REGION asks for FIPS");
  }
}

BOOST_AUTO_TEST_CASE(region_that_only_looks_like_fips_is_itself) {
  for (const char* named : {"us-east-1", "aws-global", "fips", "us-fips-east-1",
                            "FIPS-us-east-1", "us-east-1-FIPS", "fipsy"}) {
    const ServiceEndpoint place = in_region(named);
    BOOST_TEST(place.region == named);
    BOOST_TEST(place.fips == "");
  }
}

BOOST_AUTO_TEST_CASE(region_that_is_none_behind_fips_is_refused) {
  for (const char* named : {"fips-", "-fips", "fips--fips", "fips-dkr-",
                            "us-east-1.fips", "fips-us.east", "a_b-fips"}) {
    BOOST_TEST(in_region(named).error ==
               "AWS_REGION is not the name of a region: \"" +
                   std::string(named) + "\"");
  }
}

BOOST_AUTO_TEST_CASE(service_is_where_its_own_variable_says_then_any) {
  for (const auto& [service, name] : kNamed) {
    Home home;
    home.write(".aws/config",
               "[default]\nservices = mine\nendpoint_url = http://profile/\n"
               "[services mine]\n" +
                   name + " =\n  endpoint_url = http://services/\n");
    home.variables["AWS_ENDPOINT_URL"] = "http://any/";
    home.variables["AWS_ENDPOINT_URL_" + upper(name)] = "http://own/";
    BOOST_TEST(url_of(service, home) == "http://own");
    home.variables.erase("AWS_ENDPOINT_URL_" + upper(name));
    BOOST_TEST(url_of(service, home) == "http://any");
    home.variables.erase("AWS_ENDPOINT_URL");
    BOOST_TEST(url_of(service, home) == "http://services");
    home.write(".aws/config", "[default]\nendpoint_url = http://profile/\n");
    BOOST_TEST(url_of(service, home) == "http://profile");
    home.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
    const std::string aws = service == Service::signin
                                ? "https://eu-west-1.signin.aws.amazon.com"
                                : ".eu-west-1.amazonaws.com";
    BOOST_TEST(has(url_of(service, home), aws));
  }
}

BOOST_AUTO_TEST_CASE(url_of_one_service_is_nothing_to_the_others) {
  for (const auto& [own, name] : kNamed) {
    Home home;
    home.variables["AWS_ENDPOINT_URL_" + upper(name)] = "ftp://not/good";
    for (const auto& [service, called] : kNamed) {
      BOOST_TEST(has(url_of(service, home), "is not http:// or https://") ==
                 (service == own));
    }
  }
}

BOOST_AUTO_TEST_CASE(services_section_that_is_missing_is_every_services_error) {
  Home home;
  home.write(".aws/config", "[default]\nservices = mine\n");
  for (const auto& [service, name] : kNamed) {
    BOOST_TEST(has(url_of(service, home), "names a section \"services mine\""));
    home.variables["AWS_ENDPOINT_URL_" + upper(name)] = "http://own";
    BOOST_TEST(url_of(service, home) == "http://own");
  }
}

BOOST_AUTO_TEST_CASE(region_that_is_none_is_refused_for_every_service) {
  const Home home;
  for (const auto& [service, name] : kNamed) {
    for (const char* region : {"", "evil.example/", "a b", "-a", "x@y"}) {
      const auto found =
          service_endpoint(service, home, {region, "sso_region of x"});
      BOOST_TEST(found.url == "");
      const std::string quoted =
          *region == '\0' ? "" : ": \"" + std::string(region) + "\"";
      BOOST_TEST(found.error ==
                 "sso_region of x is not the name of a region" + quoted);
    }
  }
}

BOOST_AUTO_TEST_CASE(flag_that_is_none_is_refused_for_every_service) {
  for (const char* flag :
       {"AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"}) {
    Home home;
    home.variables[flag] = "1";
    for (const auto& [service, name] : kNamed) {
      BOOST_TEST(url_of(service, home) ==
                 flag + std::string(" is neither true nor false: \"1\""));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
