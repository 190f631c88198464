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

// Says what the keys of its environment are, or why there are none.
constexpr char kProgram[] = R"(
#include <cstdio>
#include <ctime>
#include "sigv4/from_all.hpp"
int main() {
  namespace sigv4 = ddbmutex::sigv4;
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

// The program, with the two files that know what there is compiled anew.
struct Without : Nest {
  Without() {
    const std::string source = write("program.cpp", kProgram);
    const std::string said =
        run("cd " + tests::project().string() + " && " + compile() +
            "-DDDBMUTEX_NO_HOSTS -DDDBMUTEX_NO_ROLES -DDDBMUTEX_NO_SSO"
            " -DDDBMUTEX_NO_PROGRAMS -o " +
            (root / "program").string() + " " + source +
            " sigv4/from_all.cpp sigv4/from_profile.cpp " +
            variable("DDBMUTEX_BUILD", "build/release-g++-c++17") +
            "/libddbmutex.a -lcurl -lcrypto");
    BOOST_TEST_REQUIRE(said == "");
  }

  // With this environment and default profile.
  std::string says(const std::string& profile,
                   const std::string& environment = "") const {
    write(".aws/config", "[default]\n" + profile + "\n");
    return run("env -i HOME=" + root.string() + " " + environment + " " +
               (root / "program").string());
  }
};

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

// Those that know whether there are layouts are compiled anew; the rest is this
// build's, but for the two parts.
struct WithoutLayouts : Nest {
  WithoutLayouts() {
    const std::string here = "cd " + tests::project().string() + " && ";
    const std::string library = (root / "library.a").string();
    write("locker.cpp", kLocker);
    std::string made = run(
        here + "cp " + variable("DDBMUTEX_BUILD", "build/release-g++-c++17") +
        "/libddbmutex.a " + library + " && ar d " + library +
        " any_of.o layouts.o ddbmutex.o table.o attributes.o");
    for (const char* file :
         {"ddbmutex.cpp", "ddbmutex/table.cpp", "ddbmutex/attributes.cpp"}) {
      const std::string object = path("anew.o");
      made += run(here + compile() + "-DDDBMUTEX_NO_LAYOUTS -c " + file +
                  " -o " + object + " && ar q " + library + " " + object);
    }
    BOOST_TEST_REQUIRE(made == "");
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

BOOST_AUTO_TEST_SUITE_END()
