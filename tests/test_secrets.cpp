// What is left of secrets in the memory of a process that has taken and
// released a lock and destroyed its Table: nothing that the library made a copy
// of.  tests/processes/what_is_left.cpp looks at all its memory.
//
// It looks for the second half of each secret access key, for malloc(3) itself
// writes over the first bytes of what is freed, and for session tokens only if
// none was sent: copies of those stay in libcurl's and OpenSSL's buffers.  For
// the same reason the services that give keys out are asked without TLS here.
//
// Registers count, too: the dynamic linker saves them on the stack when it
// looks up a function.  The program is linked so that it does.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sigv4/keys/keys.hpp"
#include "sigv4/secret.hpp"
#include "sigv4/sigv4.hpp"
#include "tests/support/given.hpp"
#include "tests/support/home.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/shell.hpp"
#include "tests/support/stage.hpp"
#include "tests/support/waiting.hpp"

namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::AwsKeys;
using tests::Stage;

namespace {

// As what_is_left takes it.
std::string disguised(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    const unsigned byte = static_cast<unsigned char>(c) ^ 0x5aU;
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  return result;
}

std::string second_half(const std::string& secret) {
  return secret.substr(secret.size() / 2);
}

// What is left once its Table is gone.
class Leavings {
 public:
  // `arguments`: behind the table.
  Leavings(const Stage& it, const std::vector<std::string>& arguments,
           const std::string& came = "done")
      : process_({command(it, arguments), it.environment()}) {
    const std::string said = process_.channel().line();
    BOOST_TEST_REQUIRE(said.find(came) != said.npos, said);
  }
  ~Leavings() { BOOST_TEST(process_.complaints() == ""); }

  int copies_of(const std::string& secret) {
    process_.channel().say(disguised(second_half(secret)));
    return std::stoi(process_.channel().line());
  }

 private:
  static std::vector<std::string> command(
      const Stage& it, const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {
        tests::program_path("processes/what_is_left"), it.engine.table()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }

  tests::Process process_;
};

struct Source {
  const char* name;
  // Returns what the program is told.
  std::function<std::vector<std::string>(Stage&)> set_up;
};

std::ostream& operator<<(std::ostream& out, const Source& source) {
  return out << source.name;
}

std::string in_a_file(const AwsKeys& keys) {
  return "aws_access_key_id = " + keys.access_key_id +
         "\naws_secret_access_key = " + keys.secret_access_key +
         "\naws_session_token = " + keys.session_token + "\n";
}

std::vector<std::string> told(const char* how, const AwsKeys& keys) {
  return {how, keys.access_key_id, disguised(keys.secret_access_key),
          disguised(keys.session_token)};
}

std::vector<std::string> by_process(Stage& it) {
  const AwsKeys keys = it.aws.issue(1h);
  const std::string path = it.write(
      "keys.json", R"({"Version":1,"AccessKeyId":")" + keys.access_key_id +
                       R"(","SecretAccessKey":")" + keys.secret_access_key +
                       R"(","SessionToken":")" + keys.session_token +
                       R"(","Expiration":")" + keys.expiration + R"("})");
  it.write(".aws/config",
           "[default]\ncredential_process = cat '" + path + "'\n");
  return {};
}

std::vector<std::string> by_role(Stage& it) {
  const AwsKeys user = {"AKIDSOURCE", "the-secret-of-the-source-user-is-long"};
  it.aws.user(user);
  it.write(".aws/credentials",
           "[user]\naws_access_key_id = " + user.access_key_id +
               "\naws_secret_access_key = " + user.secret_access_key + "\n");
  it.write(".aws/config", std::string("[default]\nsource_profile = user\n") +
                              "role_arn = " + Stage::kRole + "\n");
  return {};
}

std::vector<std::string> by_sign_on(Stage& it) {
  it.aws.sso_token("access-token-of-a-sign-on", 1h);
  it.write(".aws/config",
           "[default]\nsso_session = work\nsso_account_id = 123456789012\n"
           "sso_role_name = locker\n[sso-session work]\n"
           "sso_region = us-east-1\nsso_start_url = https://work.example\n");
  std::filesystem::create_directories(it.home.root / ".aws/sso/cache");
  it.write(".aws/sso/cache/" + ddbmutex::sigv4::sha1_hex("work") + ".json",
           R"({"accessToken":"access-token-of-a-sign-on",)"
           R"("expiresAt":"2099-01-01T00:00:00Z"})");
  return {};
}

using Told = std::vector<std::string>;

const std::vector<Source> kSources = {
    {"process", by_process},
    {"role", by_role},
    {"sign_on", by_sign_on},
    {"instance",
     [](Stage& it) {
       it.instance();
       return Told();
     }},
    {"container",
     [](Stage& it) {
       it.container();
       return Told();
     }},
};

// AWS's are of this length; session tokens are longer.
bool is_secret_key(const std::string& secret) { return secret.size() == 40; }

}  // namespace

// --- What copies a secret ----------------------------------------------------

namespace {

// Has `use` make something of a text with the needle in it, and looks at the
// registers while that still exists.  memcpy(3) copies texts of other sizes in
// other ways.
template <class Use>
void check_that_registers_are_wiped(const Use& use) {
  const tests::Home home;
  const std::string path = (home.root / "secret").string();
  tests::Needle needle(6001);
  for (const unsigned around : {0u, 20u, 50u, 100u, 300u, 1000u, 50000u}) {
    needle.write(path, std::string(around, '.'), std::string(around, '.'));
    const sigv4::SecretFile file(path, 1 << 20);
    BOOST_TEST_REQUIRE(needle.is_in(file.text));
    [[maybe_unused]] const auto made = use(file.text);
    const bool left = needle.is_in_registers();
    BOOST_TEST(!left, around);
  }
}

// As a program's own source may, for whom nobody wipes its stack.
void leave_on_the_stack(const std::string& path) {
  char deep[8192];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  BOOST_TEST_REQUIRE(read(fd, deep, 64) == 64);
  close(fd);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(secret_copies)

BOOST_AUTO_TEST_CASE(copied_secret_stays_in_no_register) {
  check_that_registers_are_wiped(
      [](const std::string& text) { return sigv4::Secret(text); });
}

BOOST_AUTO_TEST_CASE(appended_secret_stays_in_no_register) {
  check_that_registers_are_wiped([](const std::string& text) {
    std::string all;
    sigv4::append_secret(all, {"before", text});
    return all;
  });
}

BOOST_AUTO_TEST_CASE(compared_secret_stays_in_no_register) {
  check_that_registers_are_wiped([](const std::string& text) {
    auto both = std::make_unique<std::array<sigv4::Secret, 2>>(
        std::array<sigv4::Secret, 2>{text, text});
    BOOST_TEST_REQUIRE(((*both)[0] == (*both)[1]));
    return both;
  });
}

BOOST_AUTO_TEST_CASE(wiped_secret_stays_in_no_register) {
  check_that_registers_are_wiped([](const std::string& text) {
    std::string copy = text;
    sigv4::wipe(copy);
    return true;
  });
}

BOOST_AUTO_TEST_CASE(stack_of_the_fetching_thread_is_wiped) {
  const tests::Home home;
  const std::string path = (home.root / "secret").string();
  tests::Needle needle(6003);
  needle.write(path, "", "");
  {
    sigv4::Keys keys(tests::source_of([&path](const sigv4::Fetch&) {
                       leave_on_the_stack(path);
                       return sigv4::no_keys({"it has none"});
                     }),
                     [] { return std::int64_t{1700000000}; });
    keys.await(ddbmutex::BootClock::now() + tests::kPlenty, nullptr);
  }
  BOOST_TEST(!needle.is_in_memory());
}

BOOST_AUTO_TEST_SUITE_END()

// --- What a lock leaves ------------------------------------------------------

BOOST_AUTO_TEST_SUITE(secrets)

BOOST_DATA_TEST_CASE(nothing_is_left_in_memory_of_keys_of, kSources, source) {
  Stage it;
  for (const auto& [variable, service] :
       {std::pair("AWS_ENDPOINT_URL_STS", "sts"),
        std::pair("AWS_ENDPOINT_URL_SSO", "sso"),
        std::pair("AWS_ENDPOINT_URL_SSO_OIDC", "oidc")}) {
    it.set(variable, it.aws.plain_url(service));
  }
  Leavings left(it, source.set_up(it));
  const std::vector<std::string> given_out = it.aws.secrets();
  BOOST_TEST(std::count_if(given_out.begin(), given_out.end(), is_secret_key) >=
             1);
  for (const std::string& secret : given_out) {
    const int copies = left.copies_of(secret);
    if (is_secret_key(secret)) {
      BOOST_TEST(copies == 0);
    } else {
      BOOST_TEST_MESSAGE("copies of a session token: " << copies);
    }
  }
  if (source.name == std::string("role")) {
    BOOST_TEST(left.copies_of("the-secret-of-the-source-user-is-long") == 0);
  }
}

// What is left of a token that was sent is libcurl's and OpenSSL's.  Of one for
// which there was no connection that is trusted, all copies were ours.
BOOST_AUTO_TEST_CASE(nothing_is_left_in_memory_of_a_token_that_was_not_sent) {
  const tests::ScriptedServer untrusted(nullptr,
                                        tests::ScriptedServer::Scheme::https);
  for (const char* how : {"options", "source", "file"}) {
    Stage it;
    it.set("AWS_ENDPOINT_URL_DYNAMODB", untrusted.url());
    const AwsKeys keys = it.aws.issue(1h);
    BOOST_TEST_REQUIRE(keys.session_token.size() > 40u);
    const bool in_file = how == std::string("file");
    if (in_file) it.write(".aws/credentials", "[default]\n" + in_a_file(keys));
    Leavings left(it, in_file ? Told() : told(how, keys), "certificate");
    BOOST_TEST(left.copies_of(keys.session_token) == 0, how);
    BOOST_TEST(left.copies_of(keys.secret_access_key) == 0, how);
  }
  BOOST_TEST(untrusted.request_count() == 0);
}

BOOST_AUTO_TEST_CASE(command_resolves_its_functions_when_it_starts) {
  const std::string command =
      tests::program_path("../examples/ddbmutex/ddbmutex");
  const std::string said = tests::shell("readelf -dW '" + command + "'").said;
  BOOST_TEST(said.find("FLAGS_1") != said.npos, said);
  BOOST_TEST(said.find("NOW", said.find("FLAGS_1")) != said.npos, said);
}

// So that it does find what is there.
BOOST_AUTO_TEST_CASE(what_is_in_memory_is_found) {
  Stage it;
  it.static_keys();
  Leavings left(it, {});
  // The environment of a process is its memory, and not ours to wipe; a
  // sanitizer may keep a copy.
  BOOST_TEST(left.copies_of(it.variables["AWS_SECRET_ACCESS_KEY"]) >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
