// Each example, run as its user runs it: as a program of its own.
#include <sys/wait.h>

#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/engine.hpp"

namespace {

using namespace tests;

struct Ended {
  int status = -1;
  std::string out;  // Both what it printed and its complaints.
};

Ended run(const std::string& command) {
  Ended ended;
  FILE* output = popen((command + " 2>&1").c_str(), "r");
  BOOST_TEST_REQUIRE(output != nullptr);
  std::array<char, 4096> bytes;
  std::size_t count;
  while ((count = fread(bytes.data(), 1, bytes.size(), output)) > 0) {
    ended.out.append(bytes.data(), count);
  }
  const int status = pclose(output);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  return ended;
}

// Where the examples of this very build are: tests/run says so.
std::string program(const std::string& name) {
  const char* build = std::getenv("DDBMUTEX_BUILD");
  BOOST_TEST_REQUIRE(build != nullptr,
                     "DDBMUTEX_BUILD does not name the build");
  return std::string(build) + "/examples/" + name;
}

// Without what the tester's own shell and home say of AWS.
const std::string kClean =
    "env -u AWS_PROFILE -u AWS_DEFAULT_PROFILE -u AWS_DEFAULT_REGION"
    " -u AWS_ENDPOINT_URL -u AWS_USE_FIPS_ENDPOINT"
    " -u AWS_IGNORE_CONFIGURED_ENDPOINT_URLS AWS_CONFIG_FILE=/dev/null"
    " AWS_SHARED_CREDENTIALS_FILE=/dev/null ";

std::string environment(const Engine& engine) {
  const auto keys = engine.credentials();
  std::string set = kClean + "AWS_ENDPOINT_URL_DYNAMODB=" + engine.url() +
                    " AWS_REGION=" + engine.region();
  if (keys) {
    set += " AWS_ACCESS_KEY_ID='" + keys->access_key_id +
           "' AWS_SECRET_ACCESS_KEY='" + keys->secret_access_key +
           "' AWS_SESSION_TOKEN='" + keys->session_token + "'";
  }
  return set + " ";
}

Ended take_and_release(const Engine& engine, const std::string& arguments) {
  return run(environment(engine) + program("take_and_release") + " " +
             arguments);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(examples)

BOOST_DATA_TEST_CASE(take_and_release_sends_one_put_and_one_delete,
                     boost::unit_test::data::make(engine_kinds()), kind) {
  const Engine& engine = Engine::running(kind);
  const Ended ended =
      take_and_release(engine, engine.table() + " example-once");
  BOOST_TEST(ended.out ==
             "taken and released\n"
             "PutItem 1\nDeleteItem 1\nUpdateItem 0\nGetItem 0\n");
  BOOST_TEST(ended.status == 0);
}

BOOST_DATA_TEST_CASE(take_and_release_tells_who_holds_the_lock,
                     boost::unit_test::data::make(engine_kinds()), kind) {
  Engine& engine = Engine::running(kind);
  engine.must_call("PutItem",
                   "{\"TableName\":\"" + engine.table() +
                       "\",\"Item\":{\"name\":{\"S\":\"ddblock-example-held\"},"
                       "\"uuid\":{\"S\":\"u\"},\"lease\":{\"N\":\"60000\"},"
                       "\"expires\":{\"N\":\"3900000000000000000\"},"
                       "\"owner\":{\"S\":\"far-away:7\"}}}");
  const Ended ended =
      take_and_release(engine, engine.table() + " example-held");
  BOOST_TEST(ended.out == "held by far-away:7\n");
  BOOST_TEST(ended.status == 1);
}

BOOST_AUTO_TEST_CASE(take_and_release_names_the_table_that_is_not_there) {
  const Engine& engine = Engine::running(any_engine_kind());
  const Ended ended = take_and_release(engine, "no-such-table x");
  BOOST_TEST(ended.out.find("take: no_table: ") == 0u, ended.out);
  BOOST_TEST(ended.status == 2);
}

BOOST_AUTO_TEST_CASE(take_and_release_without_keys_says_where_it_looked) {
  const Engine& engine = Engine::running(any_engine_kind());
  const Ended ended = run(
      "env -i HOME=/nonexistent AWS_REGION=x AWS_ENDPOINT_URL=" + engine.url() +
      " " + program("take_and_release") + " locks x");
  BOOST_TEST(ended.out.find("take: no_keys: ") == 0u, ended.out);
  BOOST_TEST(ended.out.find("AWS_ACCESS_KEY_ID") != ended.out.npos, ended.out);
  BOOST_TEST(ended.status == 2);
}

BOOST_AUTO_TEST_CASE(take_and_release_refuses_what_is_no_endpoint) {
  const Ended ended =
      run("env -i HOME=/nonexistent AWS_REGION=x "
          "AWS_ENDPOINT_URL_DYNAMODB=ftp://x " +
          program("take_and_release") + " locks x");
  BOOST_TEST(ended.out.find("AWS_ENDPOINT_URL_DYNAMODB") != ended.out.npos,
             ended.out);
  BOOST_TEST(ended.status == 2);
}

BOOST_AUTO_TEST_SUITE_END()
