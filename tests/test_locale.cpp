// What the library sends, reads and compares is the same whatever locale the
// program has chosen: a Turkish one, in which 'I' is no upper case of 'i', and
// a C++ one that groups digits.
#include <stdlib.h>
#include <strings.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <clocale>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/endpoint.hpp"
#include "sigv4/http_answer.hpp"
#include "sigv4/keys/from_hosts.hpp"
#include "sigv4/sigv4.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/shell.hpp"

using namespace std::chrono_literals;
using namespace tests;
namespace sigv4 = ddbmutex::sigv4;

namespace {

// The C library's locale, made of the system's own description of it.
class TurkishLocale {
 public:
  TurkishLocale()
      : made_(shell("localedef -i tr_TR -f UTF-8 '" +
                    (home_.root / "tr_TR.UTF-8").string() + "'")),
        place_("LOCPATH", home_.root.c_str()) {
    BOOST_TEST_REQUIRE(setlocale(LC_ALL, "tr_TR.UTF-8") != nullptr, made_.said);
    setlocale(LC_TIME, "C");  // The scripted server writes a Date with it.
    // Else nothing here is tested.
    BOOST_TEST_REQUIRE(strcasecmp("I", "i") != 0);
  }
  ~TurkishLocale() { setlocale(LC_ALL, "C"); }

 private:
  Home home_;
  const Ran made_;
  const ProcessVariable place_;
};

struct Grouped : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

class GroupingLocale {
 public:
  GroupingLocale()
      : before_(std::locale::global(
            std::locale(std::locale::classic(), new Grouped))) {
    std::ostringstream text;
    text << 1234567;
    BOOST_TEST_REQUIRE(text.str() == "1.234.567");
  }
  ~GroupingLocale() { std::locale::global(before_); }

 private:
  const std::locale before_;
};

std::string mode_error(const Home& home) {
  sigv4::Instance instance;
  sigv4::read_instance_settings(home.environment(),
                                sigv4::load_profile({}, home.environment()),
                                instance);
  return instance.error + instance.endpoint;
}

std::string endpoint_of(const Home& home) {
  const auto target = ddbmutex::dynamodb::find_target({}, home.environment());
  return target.error + target.endpoint;
}

std::string authorization() {
  sigv4::Request request;
  request.method = "GET";
  request.path = "/%C4%B0/i";
  request.query = "I=1&i=2&%69=3&ID=%c4%b1";
  request.headers = {{"If-Match", "1"}, {"IA", "2"}, {"ia-x", "3"},
                     {"IB", "4"},       {"i", "5"},  {"Host", "a.example"}};
  const std::string hash = sigv4::sha256_hex("");
  request.payload_hash = hash;
  const auto made = sigv4::sign(request, {"id", "secret", "", ""},
                                {"us-east-1", "dynamodb"}, 1900000000);
  return made.authorization;
}

// What a lock and unlock send, without what is another each time.
std::string sent_for_a_lock() {
  ScriptedServer server;
  const ddbmutex::Options options = on_table(table_at(server), 1234567ms);
  ddbmutex::DdbMutex mutex("x", options);
  mutex.lock();
  mutex.unlock();
  std::string all;
  for (const SeenRequest& request : server.requests()) {
    all += request.path + "\n" + request.body + "\n";
  }
  return replaced(all, R"("[0-9a-f]{32}"|"\d{10}"|"\d{19}")", "DIFFERS");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(locales)

BOOST_AUTO_TEST_CASE(settings_are_read_in_a_turkish_locale_as_in_any) {
  const TurkishLocale turkish;
  Home home;
  home.write(".aws/config",
             "[default]\nREGION = eu-west-1\n"
             "USE_FIPS_ENDPOINT = false\nSERVICES = s\n[services s]\n"
             "dynamodb =\n  ENDPOINT_URL = http://127.0.0.1:1\n");
  BOOST_TEST(endpoint_of(home) == "http://127.0.0.1:1");
  home.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "TRUE";
  BOOST_TEST(endpoint_of(home) == "https://dynamodb.eu-west-1.amazonaws.com");
  for (const char* mode : {"IPV4", "ipv4", "IpV4"}) {
    home.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = mode;
    BOOST_TEST(mode_error(home) == "http://169.254.169.254", mode);
  }
  home.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = "IPV6";
  BOOST_TEST(mode_error(home) == "http://[fd00:ec2::254]");
}

BOOST_AUTO_TEST_CASE(signatures_in_a_turkish_locale_are_those_of_any) {
  const std::string before = authorization();
  const TurkishLocale turkish;
  BOOST_TEST(authorization() == before);
}

BOOST_AUTO_TEST_CASE(headers_are_found_in_a_turkish_locale_in_any_case) {
  const TurkishLocale turkish;
  sigv4::HttpAnswer answer;
  answer.headers = "X-AMZN-REQUESTID: a\nI: b\n";
  BOOST_TEST(answer.header("x-amzn-requestid") == "a");
  BOOST_TEST(answer.header("i") == "b");
  // Through the whole of a call: the error names the request.
  ScriptedServer server([](const SeenRequest&) {
    Reply reply = failure(400, "AccessDeniedException");
    reply.headers = {{"x-amzn-RequestId", ""},
                     {"X-AMZN-REQUESTID", "this-one"}};
    return reply;
  });
  ddbmutex::DdbMutex mutex("x", unhurried(new_table_at(server)));
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(error->request_id() == "this-one");
}

BOOST_AUTO_TEST_CASE(a_lock_in_other_locales_sends_what_it_sends_in_any) {
  const std::string usual = sent_for_a_lock();
  BOOST_TEST(has(usual, "1234567"), usual);
  {
    const TurkishLocale turkish;
    BOOST_TEST(sent_for_a_lock() == usual);
  }
  const GroupingLocale grouping;
  BOOST_TEST(sent_for_a_lock() == usual);
}

BOOST_AUTO_TEST_CASE(numbers_in_messages_and_names_are_not_grouped) {
  const GroupingLocale grouping;
  BOOST_TEST(sigv4::decimal(1234567) == "1234567");
  ScriptedServer server(
      [](const SeenRequest& request) { return held_by_another(request); });
  ddbmutex::TableOptions options = table_options(server);
  ddbmutex::DdbMutex mutex(
      "x", on_table(std::make_shared<ddbmutex::Table>(options)));
  // "HOST:PID"
  BOOST_TEST(has(mutex.owner(), ":" + std::to_string(getpid())), mutex.owner());
}

// A C++ stream or a regular expression would bring in the C++ locale.
BOOST_AUTO_TEST_CASE(the_library_calls_nothing_that_follows_the_locale) {
  const char* build = getenv("DDBMUTEX_BUILD");
  BOOST_TEST_REQUIRE(build != nullptr);
  const Ran ran = shell("nm -C -u '" + std::string(build) + "/libddbmutex.a'");
  BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  // Else this is a list of something else.
  BOOST_TEST_REQUIRE(has(ran.said, " U curl_multi_add_handle"));
  for (const char* names :
       {"(?:__)?strn?case(?:cmp|str)(?:_l)?", "str(?:coll|xfrm)(?:_l)?",
        "tow?(?:lower|upper)(?:_l)?", "__ctype_\\w+",
        "isw?(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|"
        "upper|xdigit)(?:_l)?",
        "(?:__isoc\\d+_)?strto\\w+", "ato(?:f|i|ll?)",
        "(?:__isoc\\d+_)?v?[fs]?scanf", "str[fp]time", "(?:wcs|mb)\\w+",
        "setlocale", "localeconv", "regcomp", "regexec", "fnmatch",
        ".*std::(?:locale|ios_base|.*basic_[io]stream|.*regex).*"}) {
    const auto found =
        all_matches(ran.said, "^ +U (" + std::string(names) + ")(?:@.*)?$");
    for (const std::string& symbol : found) {
      BOOST_TEST(false, "the library calls " << symbol);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
