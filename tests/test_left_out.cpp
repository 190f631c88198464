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
#include "ddbmutex/endpoint.hpp"
#include "sigv4/from_all.hpp"
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

struct Without : Program {
  Without()
      : Program(
            "-DDDBMUTEX_NO_HOSTS -DDDBMUTEX_NO_ROLES -DDDBMUTEX_NO_SSO"
            " -DDDBMUTEX_NO_PROGRAMS",
            "sigv4/from_all.cpp sigv4/from_profile.cpp") {}
};

constexpr char kKnowProfiles[] =
    " ddbmutex/endpoint.cpp sigv4/endpoints.cpp sigv4/from_all.cpp"
    " sigv4/from_hosts.cpp sigv4/from_roles.cpp sigv4/settings.cpp";

// With roles and hosts; what asks only for profiles goes with them.
struct WithoutProfiles : Program {
  WithoutProfiles() : Program("-DDDBMUTEX_NO_PROFILES", kKnowProfiles) {}
};

struct WithoutAnyKeysOfOthers : Program {
  WithoutAnyKeysOfOthers()
      : Program(
            "-DDDBMUTEX_NO_PROFILES -DDDBMUTEX_NO_HOSTS -DDDBMUTEX_NO_ROLES"
            " -DDDBMUTEX_NO_SSO -DDDBMUTEX_NO_PROGRAMS",
            kKnowProfiles) {}
};

constexpr char kNoFileIsRead[] =
    "no file is read: this build of the library is without profiles";

}  // namespace

BOOST_AUTO_TEST_SUITE(left_out)

BOOST_FIXTURE_TEST_CASE(way_that_was_left_out_is_refused_by_its_name, Without) {
  const std::pair<const char*, const char*> ways[] = {
      {"role_arn = arn:aws:iam::123456789012:role/locker\n"
       "source_profile = default",
       "is without roles"},
      {"web_identity_token_file = /token\nrole_arn = a", "is without roles"},
      {"sso_account_id = 1", "is without sso"},
      {"sso_role_name = r", "is without sso"},
      {"login_session = arn:aws:iam::123456789012:user/alice",
       "is without sso"},
      {"credential_process = /bin/true", "is without programs"},
  };
  // With keys of its own: which would be another identity.
  for (const auto& [profile, why] : ways) {
    const std::string text = says(profile + ("\n" + tests::pair_of("own")));
    BOOST_TEST(has(text, why), text);
    BOOST_TEST(has(text, "profile \"default\" in " + quoted(".aws/config")),
               text);
  }
  BOOST_TEST(has(says("", "AWS_WEB_IDENTITY_TOKEN_FILE=/token"),
                 "AWS_WEB_IDENTITY_TOKEN_FILE: this build of the library is "
                 "without roles"));
  BOOST_TEST(has(says(""),
                 "; containers and EC2 instances are not asked: this "
                 "build of the library is without hosts"));
}

BOOST_FIXTURE_TEST_CASE(what_is_left_gives_keys_in_its_order, Without) {
  const std::string environment =
      "AWS_ACCESS_KEY_ID=env-id AWS_SECRET_ACCESS_KEY=env-secret";
  BOOST_TEST(says(tests::pair_of("c"), environment) == "the environment\n");
  BOOST_TEST(says(tests::pair_of("c")) ==
             "profile \"default\" in " + quoted(".aws/config") + "\n");
  // As in botocore, these go before a program.
  write(".aws/credentials", "[default]\n" + tests::pair_of("k"));
  BOOST_TEST(says("credential_process = /bin/true") ==
             "profile \"default\" in " + quoted(".aws/credentials") + "\n");
}

BOOST_FIXTURE_TEST_CASE(profile_is_refused_where_it_is_left_out,
                        WithoutProfiles) {
  write(".aws/credentials", "[x]\n" + tests::pair_of("x"));
  const std::string refusal =
      ": this build of the library is without profiles\n";
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

BOOST_FIXTURE_TEST_CASE(web_identity_of_the_environment_needs_no_profiles,
                        WithoutProfiles) {
  const std::string file = "AWS_WEB_IDENTITY_TOKEN_FILE=/nonexistent/token ";
  BOOST_TEST(
      says("role_arn = a", file) ==
      "AWS_WEB_IDENTITY_TOKEN_FILE has no role: AWS_ROLE_ARN is not set\n");
  BOOST_TEST(says("", file + "AWS_ROLE_ARN=arn:aws:iam::1:role/r") ==
             "role \"arn:aws:iam::1:role/r\" by web identity of "
             "AWS_WEB_IDENTITY_TOKEN_FILE: the web identity token file "
             "\"/nonexistent/token\" does not exist\n");
  tests::Aws aws;
  aws.role({"arn:aws:iam::123456789012:role/locker"});
  aws.web_identity("a-token-of-the-pod", std::chrono::hours(1));
  const std::string text = says(
      "",
      "AWS_WEB_IDENTITY_TOKEN_FILE=" + write("token", "a-token-of-the-pod\n") +
          " AWS_ROLE_ARN=arn:aws:iam::123456789012:role/locker"
          " AWS_REGION=eu-west-1 no_proxy=127.0.0.1,localhost"
          " AWS_ENDPOINT_URL_STS=" +
          aws.url("sts") + " AWS_CA_BUNDLE=" + aws.ca_file());
  BOOST_TEST(text ==
             "role \"arn:aws:iam::123456789012:role/locker\" by web identity "
             "of AWS_WEB_IDENTITY_TOKEN_FILE\n");
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
             "without roles\n");
  BOOST_TEST(says("region = eu-west-1", "", "''") ==
             "region: no region: neither AWS_REGION nor AWS_DEFAULT_REGION is "
             "set, nor region of profile \"default\" (" +
                 std::string(kNoFileIsRead) + ")\n");
}

// --- Parts of the lock
// ---------------------------------------------------------

namespace {

// Says why no lock can be with these options, or "none"; with USES_ANY_OF, it
// names a class that is not there.
constexpr char kLocker[] = R"(
#include <cstdio>
#include <exception>
#include <functional>
#include "ddbmutex.hpp"
#ifdef USES_ANY_OF
#include "ddbmutex/any_of.hpp"
#endif
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
#ifdef USES_ANY_OF
  AnyOf any({});
#endif
}
)";

// All is compiled anew: types differ with the parts.
struct WithoutLayouts : Nest {
  WithoutLayouts() {
    const std::string here = "cd " + tests::project().string() + " && ";
    const std::string library = path("library.o");
    write("locker.cpp", kLocker);
    BOOST_TEST_REQUIRE(run(here + compile() +
                           "-DDDBMUTEX_NO_LAYOUTS -DDDBMUTEX_NO_ANY_OF -c "
                           "build/amalgamation/ddbmutex.cpp -o " +
                           library) == "");
    link_ = here + compile() + path("locker.cpp") + " " + library +
            " -lcurl -lcrypto -o " + path("locker");
  }
  std::string path(const char* name) const { return (root / name).string(); }
  std::string link(const std::string& macro = "") const {
    return run(link_ + macro);
  }

 private:
  std::string link_;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(parts_of_the_lock_are_refused_or_not_there,
                        WithoutLayouts) {
  const std::string unknown = link(" -DUSES_ANY_OF");
  BOOST_TEST(has(unknown, "AnyOf::AnyOf("), unknown);
  BOOST_TEST_REQUIRE(link() == "");
  std::istringstream said(run(path("locker")));
  std::string line;
  std::getline(said, line);
  BOOST_TEST(line == "none");
  for (const char* option : {"layout", "calendar_margin", "lease_as_found"}) {
    std::getline(said, line);
    BOOST_TEST(line ==
               "bad option `" + std::string(option) + "`: not in this build");
  }
}

BOOST_FIXTURE_TEST_CASE(files_of_other_parts_are_not_linked, Nest) {
  write("locker.cpp", kLocker);
  const std::string said = run(
      "cd " + tests::project().string() + " && " + compile() +
      "-DDDBMUTEX_NO_LAYOUTS ddbmutex.cpp " + (root / "locker.cpp").string() +
      " " + variable("DDBMUTEX_BUILD", "build/release-g++-c++17") +
      "/libddbmutex.a -lcurl -lcrypto -o " + (root / "locker").string());
  BOOST_TEST(has(said, "Mutex::lock("), said);
}

// There all headers stand in one file, and are read whatever is left out.
BOOST_AUTO_TEST_CASE(two_files_compile_without_any_part_of_keys) {
  for (const char* part : {"HOSTS", "ROLES", "PROFILES", "SSO", "PROGRAMS"}) {
    const std::string said = run("cd " + tests::project().string() + " && " +
                                 compile() + "-fsyntax-only -DDDBMUTEX_NO_" +
                                 part + " build/amalgamation/ddbmutex.cpp");
    BOOST_TEST(said == "", part << ": " << said);
  }
}

BOOST_AUTO_TEST_SUITE_END()
