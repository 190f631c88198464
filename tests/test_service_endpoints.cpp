// Where AWS's services are.  endpoint_cases.txt holds what AWS's own resolver
// answers for them; each case is asked of the library by the way of the
// environment, as a program's user would.
#include <array>
#include <boost/test/unit_test.hpp>
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

Found service_endpoint(Service service, const Home& home,
                       const Setting& region) {
  ServiceEndpoint endpoint;
  read_endpoint_settings(service,
                         Profile(locate_profile({}, home.environment())),
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

}  // namespace

BOOST_AUTO_TEST_SUITE(service_endpoints)

BOOST_AUTO_TEST_CASE(urls_and_refusals_are_those_of_awss_resolver) {
  const std::vector<Case> cases = read_cases();
  BOOST_TEST(cases.size() > 2500u);
  Home home;
  for (const Case& one : cases) {
    set_variables(one, home);
    const Found answer = answer_to(one, home);
    BOOST_TEST(is_right(answer, one), described(one, answer));
  }
}

BOOST_AUTO_TEST_SUITE_END()
