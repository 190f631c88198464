// Which region, which URL and which CA file are meant, and who says so.  What
// AWS calls DynamoDB in a region is in test_service_endpoints.cpp.
#include <boost/test/unit_test.hpp>
#include <string>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/endpoint.hpp"
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

constexpr char kUsual[] = "https://dynamodb.eu-west-1.amazonaws.com";

}  // namespace

BOOST_AUTO_TEST_SUITE(endpoint)

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

BOOST_AUTO_TEST_SUITE_END()
