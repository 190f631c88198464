// A library that was built without some of its parts: what it says to whoever
// wants one of them.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "tests/support/chain_kit.hpp"
#include "tests/support/files.hpp"

namespace {

using tests::has;
using tests::Nest;

// Says what the keys of its environment are, or why there are none; with an
// argument, what is wrong with the options or the environment of a table with
// that option `profile`: "region: ...".
constexpr char kProgram[] = R"(
#include <cstdio>
#include <ctime>
#include "ddbmutex/dynamodb/endpoint.hpp"
#include "sigv4/keys/from_all.hpp"
int main(int count, char** arguments) {
  namespace sigv4 = ddbmutex::sigv4;
  if (count > 1) {
    ddbmutex::dynamodb::TargetOptions options;
    options.profile = arguments[1];
    const auto target = ddbmutex::dynamodb::find_target(options);
    std::puts((std::string(target.option) + ": " + target.error).c_str());
    return 0;
  }
  sigv4::Waker stop;
  const auto outcome = sigv4::chain_keys({})->fetch(
      {ddbmutex::BootClock::now() + std::chrono::seconds(60), stop,
       std::time(nullptr)});
  std::puts((outcome.source + outcome.reason).c_str());
  return static_cast<int>(outcome.state);
}
)";

// What the command says.
std::string run(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  BOOST_TEST_REQUIRE(pipe != nullptr);
  std::array<char, 4096> bytes;
  while (const std::size_t got =
             std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    text.append(bytes.data(), got);
  }
  pclose(pipe);
  return text;
}

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// As this build compiles, but as fast as can be.
std::string compile() {
  return variable("CXX", "c++") + " " +
         variable("CXXFLAGS", "-std=c++17 -pthread") + " -O0 -include " +
         variable("DDBMUTEX_BUILD", "build/release-g++-c++17") +
         "/tests/standard.hpp -I. ";
}

// The program, with the files that know what there is compiled anew.
struct Program : Nest {
  Program(const std::string& macros, const std::string& files) {
    const std::string source = write("program.cpp", kProgram);
    const std::string said =
        run("cd " + tests::project().string() + " && " + compile() + macros +
            " -o " + (root / "program").string() + " " + source + " " + files +
            " " + variable("DDBMUTEX_BUILD", "build/release-g++-c++17") +
            "/libddbmutex.a -lcurl -lcrypto");
    BOOST_TEST_REQUIRE(said == "");
  }

  // With this environment and default profile.
  std::string says(const std::string& profile,
                   const std::string& environment = "",
                   const std::string& argument = "") const {
    write(".aws/config", "[default]\n" + profile + "\n");
    return run("env -i HOME=" + root.string() + " " + environment + " " +
               (root / "program").string() + " " + argument);
  }
};

constexpr char kKnowParts[] =
    " ddbmutex/dynamodb/endpoint.cpp sigv4/endpoints.cpp sigv4/profile.cpp"
    " sigv4/keys/from_all.cpp sigv4/settings.cpp";

struct WithoutHosts : Program {
  WithoutHosts() : Program("-DDDBMUTEX_NO_HOSTS", kKnowParts) {}
};

struct WithoutProfiles : Program {
  WithoutProfiles() : Program("-DDDBMUTEX_NO_PROFILES", kKnowParts) {}
};

struct WithoutAnyKeysOfOthers : Program {
  WithoutAnyKeysOfOthers()
      : Program("-DDDBMUTEX_NO_PROFILES -DDDBMUTEX_NO_HOSTS", kKnowParts) {}
};

constexpr char kNoFileIsRead[] =
    "no file is read: this build of the library is without profiles";

}  // namespace

BOOST_AUTO_TEST_SUITE(left_out)

BOOST_FIXTURE_TEST_CASE(hosts_that_are_left_out_are_not_asked, WithoutHosts) {
  const std::string text =
      says("", "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/keys");
  BOOST_TEST(has(text,
                 "; containers and EC2 instances are not asked: this "
                 "build of the library is without hosts"),
             text);
  for (const char* source : {"EcsContainer", "Ec2InstanceMetadata"}) {
    const std::string profile =
        "role_arn = arn:aws:iam::123456789012:role/locker\n"
        "credential_source = ";
    const std::string refused = says(profile + source);
    BOOST_TEST(has(refused, std::string(source) + ", which has no keys"),
               refused);
    BOOST_TEST(has(refused, "this build of the library is without hosts"),
               refused);
  }
}

BOOST_FIXTURE_TEST_CASE(what_is_left_gives_keys_in_its_order, WithoutHosts) {
  const std::string environment =
      "AWS_ACCESS_KEY_ID=env-id AWS_SECRET_ACCESS_KEY=env-secret";
  BOOST_TEST(says(tests::pair_of("c"), environment) == "the environment\n");
  BOOST_TEST(says(tests::pair_of("c")) ==
             "profile \"default\" in " + quoted(".aws/config") + "\n");
}

BOOST_FIXTURE_TEST_CASE(profile_is_refused_where_it_is_left_out,
                        WithoutProfiles) {
  write(".aws/credentials", "[x]\n" + tests::pair_of("x"));
  const std::string refusal = std::string(": ") + kNoFileIsRead + "\n";
  const std::string keys =
      "AWS_REGION=eu-west-1 AWS_ACCESS_KEY_ID=env-id "
      "AWS_SECRET_ACCESS_KEY=env-secret ";
  BOOST_TEST(says("", keys, "x") ==
             "profile: profile \"x\", named by the options" + refusal);
  for (const std::string name : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    const std::string named = "profile \"x\", named by " + name + refusal;
    // Nor are it other keys that one signs with then.
    BOOST_TEST(says("", keys + name + "=x") == named);
    BOOST_TEST(says("", name + "=x") == named);
    BOOST_TEST(says("", keys + name + "=x", "''") == "profile: " + named);
    BOOST_TEST(says("", keys + name + "=") == "the environment\n");
  }
  BOOST_TEST(says("", keys) == "the environment\n");
  BOOST_TEST(says("", keys, "''") == ": \n");
}

BOOST_FIXTURE_TEST_CASE(profiles_that_are_left_out_are_not_read,
                        WithoutProfiles) {
  write(".aws/credentials", "[default]\n" + tests::pair_of("d"));
  const std::string profile =
      "region = eu-west-1\nendpoint_url = nonsense\n"
      "use_fips_endpoint = nonsense\ncredential_process = /bin/true\n"
      "ec2_metadata_service_endpoint = nonsense\n" +
      tests::pair_of("d");
  const std::string alone = "AWS_EC2_METADATA_DISABLED=true ";
  const std::string text = says(profile, alone);
  BOOST_TEST(
      has(text, std::string("; AWS_WEB_IDENTITY_TOKEN_FILE is not set; ") +
                    kNoFileIsRead + "; neither AWS_CONTAINER_"),
      text);
  BOOST_TEST(!has(text, ".aws"), text);
  BOOST_TEST(says(profile, alone, "''") ==
             "region: no region: neither AWS_REGION nor AWS_DEFAULT_REGION is "
             "set, nor region of profile \"default\" (" +
                 std::string(kNoFileIsRead) + ")\n");
  BOOST_TEST(says(profile, "AWS_REGION=eu-west-1", "''") == ": \n");
}

// The pod's role is meant, so no other keys may be used instead.
BOOST_FIXTURE_TEST_CASE(web_identity_is_refused_where_profiles_are_left_out,
                        WithoutProfiles) {
  BOOST_TEST(says("",
                  "AWS_WEB_IDENTITY_TOKEN_FILE=/token "
                  "AWS_ROLE_ARN=arn:aws:iam::1:role/r "
                  "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/k") ==
             "AWS_WEB_IDENTITY_TOKEN_FILE: this build of the library is "
             "without profiles\n");
}

BOOST_FIXTURE_TEST_CASE(environment_alone_gives_keys_where_all_else_is_left_out,
                        WithoutAnyKeysOfOthers) {
  BOOST_TEST(says(tests::pair_of("c"),
                  "AWS_ACCESS_KEY_ID=env-id "
                  "AWS_SECRET_ACCESS_KEY=env-secret") == "the environment\n");
  BOOST_TEST(says(tests::pair_of("c")) ==
             "no access_key_id in the options; no AWS_ACCESS_KEY_ID in the "
             "environment; AWS_WEB_IDENTITY_TOKEN_FILE is not set; " +
                 std::string(kNoFileIsRead) +
                 "; containers and EC2 instances are not asked: this build of "
                 "the library is without hosts\n");
  BOOST_TEST(says("", "AWS_WEB_IDENTITY_TOKEN_FILE=/token") ==
             "AWS_WEB_IDENTITY_TOKEN_FILE: this build of the library is "
             "without profiles\n");
  BOOST_TEST(says("region = eu-west-1", "", "''") ==
             "region: no region: neither AWS_REGION nor AWS_DEFAULT_REGION is "
             "set, nor region of profile \"default\" (" +
                 std::string(kNoFileIsRead) + ")\n");
}

// --- Parts of the lock -----------------------------------------------------

namespace {

// Says why no lock can be with these options, or "none".
constexpr char kLocker[] = R"(
#include <cstdio>
#include <exception>
#include <functional>
#include "ddbmutex.hpp"
using namespace ddbmutex;
std::string refusal_of(const std::function<void(TableOptions&)>& change) try {
  TableOptions table;
  table.region = "us-east-1";
  table.credentials = {"id", "secret", ""};
  change(table);
  Options options;
  options.table = std::make_shared<Table>(table);
  DdbMutex mutex("job", options);
  std::error_code ec;
  mutex.renew(ec);
  return ec == Errc::not_held ? "none" : mutex.last_error();
} catch (const std::exception& error) {
  return error.what();
}
int main() {
  const auto say = [](const std::function<void(TableOptions&)>& change) {
    std::puts(refusal_of(change).c_str());
  };
  say([](TableOptions& it) { it.layout = Layout::ddblock; });
  say([](TableOptions& it) { it.layout = Layout::lease; });
  say([](TableOptions& it) { it.calendar_margin = std::chrono::seconds(0); });
  say([](TableOptions& it) { it.lease_as_found = true; });
}
)";

}  // namespace

// Types do not depend on the parts, so only what knows the part is compiled
// anew.
BOOST_FIXTURE_TEST_CASE(options_of_layouts_are_refused_without_them, Nest) {
  const std::string source = write("locker.cpp", kLocker);
  const std::string program = (root / "locker").string();
  BOOST_TEST_REQUIRE(
      run("cd " + tests::project().string() + " && " + compile() +
          "-DDDBMUTEX_NO_LAYOUTS ddbmutex/layout_options.cpp " + source + " " +
          variable("DDBMUTEX_BUILD", "build/release-g++-c++17") +
          "/libddbmutex.a -lcurl -lcrypto -o " + program) == "");
  std::istringstream said(run(program));
  std::string line;
  std::getline(said, line);
  BOOST_TEST(line == "none");
  for (const char* option : {"layout", "calendar_margin", "lease_as_found"}) {
    std::getline(said, line);
    BOOST_TEST(line ==
               "bad option `" + std::string(option) + "`: not in this build");
  }
}

// There all headers stand in one file, and are read whatever is left out.
BOOST_AUTO_TEST_CASE(two_files_compile_without_any_part) {
  for (const char* part : {"HOSTS", "PROFILES", "ENDPOINTS", "LAYOUTS"}) {
    const std::string said = run("cd " + tests::project().string() + " && " +
                                 compile() + "-fsyntax-only -DDDBMUTEX_NO_" +
                                 part + " build/amalgamation/ddbmutex.cpp");
    BOOST_TEST(said == "", part << ": " << said);
  }
}

BOOST_AUTO_TEST_SUITE_END()
