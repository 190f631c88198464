// A program on the core alone, which is the library without any of its parts:
// it locks, and refuses what only a part could do.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>

#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/shell.hpp"

namespace {

using namespace tests;

// Takes a lock.  Its argument names an option that it sets.
constexpr char kProgram[] = R"(
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include "ddbmutex.hpp"
int main(int, char** arguments) try {
  const std::string option = arguments[1];
  ddbmutex::TableOptions where;
  if (option == "profile") where.profile = "x";
  if (option == "layout") where.layout = ddbmutex::Layout::lease;
  if (option == "calendar_margin") {
    where.calendar_margin = std::chrono::seconds(0);
  }
  if (option == "lease_as_found") where.lease_as_found = true;
  const auto table = std::make_shared<ddbmutex::Table>(where);
  if (option == "create") table->create();
  ddbmutex::Options options;
  options.table = table;
  ddbmutex::DdbMutex mutex("job", options);
  std::lock_guard<ddbmutex::DdbMutex> guard(mutex);
  std::puts("locked");
} catch (const std::exception& error) {
  std::puts(error.what());
}
)";

std::string compile() {
  return compiler() +
         " -std=c++17 -pthread -O0 -Wall -Wextra -Wpedantic -Wshadow"
         " -Wconversion -Werror -Ibuild/amalgamation ";
}

// Compiled once.  Its home has keys that it must not read.
class Core {
 public:
  static const Core& program() {
    static const Core program;
    return program;
  }

  // With nothing else in its environment.
  std::string says(const std::string& variables,
                   const std::string& option = "none") const {
    return shell("env -i HOME='" + home_.root.string() +
                 "' AWS_EC2_METADATA_DISABLED=true " + variables + " '" +
                 home_.root.string() + "/program' " + option)
        .said;
  }

 private:
  Core() {
    home_.write(".aws/credentials",
                "[default]\naws_access_key_id = id\n"
                "aws_secret_access_key = secret\n");
    const std::string source = home_.write("program.cpp", kProgram);
    const Ran ran = shell("make -s amalgamation >&2 && " + compile() + source +
                          " build/amalgamation/ddbmutex_core.cpp -o '" +
                          home_.root.string() + "/program' -lcurl -lcrypto");
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  }

  const Home home_;
};

const std::string kPlace =
    "AWS_REGION=eu-west-1 AWS_ENDPOINT_URL=http://127.0.0.1:9 ";
const std::string kWithoutProfiles =
    "this build of the library is without profiles";

}  // namespace

BOOST_AUTO_TEST_SUITE(left_out)

BOOST_AUTO_TEST_CASE(core_locks_with_the_keys_of_the_environment) {
  const Engine& engine = Engine::running(any_engine_kind());
  const auto keys = engine.credentials();
  const std::string variables =
      "AWS_ENDPOINT_URL=" + engine.url() + " AWS_REGION=" + engine.region() +
      " AWS_ACCESS_KEY_ID=" + keys->access_key_id +
      " AWS_SECRET_ACCESS_KEY=" + keys->secret_access_key;
  BOOST_TEST(Core::program().says(variables, "create") == "locked\n");
}

BOOST_AUTO_TEST_CASE(core_says_where_it_does_not_look_for_keys) {
  const std::string said = Core::program().says(
      kPlace + "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/keys");
  BOOST_TEST(has(said, "no file is read: " + kWithoutProfiles), said);
  BOOST_TEST(has(said,
                 "containers and EC2 instances are not asked: this build of "
                 "the library is without hosts"),
             said);
}

// Other keys than those that are meant would be worse than none.
BOOST_AUTO_TEST_CASE(core_refuses_what_only_a_part_can_do) {
  const std::string keys =
      kPlace + "AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret ";
  const struct {
    std::string variables, option, said;
  } kRefused[] = {
      {keys, "profile", kWithoutProfiles},
      {keys + "AWS_PROFILE=x", "none", kWithoutProfiles},
      {kPlace + "AWS_WEB_IDENTITY_TOKEN_FILE=/token", "none", kWithoutProfiles},
      {"", "none",
       "no region: neither AWS_REGION nor AWS_DEFAULT_REGION is set"},
      {keys + "AWS_USE_FIPS_ENDPOINT=true", "none",
       "such endpoints are left out of this build"},
      {keys, "layout", "bad option `layout`: not in this build"},
      {keys, "calendar_margin", "bad option `calendar_margin`: not in this"},
      {keys, "lease_as_found", "bad option `lease_as_found`: not in this"},
  };
  for (const auto& [variables, option, wanted] : kRefused) {
    const std::string said = Core::program().says(variables, option);
    BOOST_TEST(has(said, wanted), said);
  }
}

// It takes long, and so `make ways` alone does it (DDBMUTEX_WAYS).
BOOST_AUTO_TEST_CASE(two_files_compile_without_a_part) {
  if (std::getenv("DDBMUTEX_WAYS") == nullptr) return;
  for (const std::string part : {"HOSTS", "PROFILES", "ENDPOINTS", "LAYOUTS"}) {
    const Ran ran = shell(compile() + "-fsyntax-only -DDDBMUTEX_NO_" + part +
                          " build/amalgamation/ddbmutex.cpp");
    BOOST_TEST(ran.said == "", part << ": " << ran.said);
  }
}

BOOST_AUTO_TEST_SUITE_END()
