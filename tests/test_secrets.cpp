// Secrets stay secret.
//
// A process that has taken and released a lock and destroyed its Table has no
// copy left that the library made.  That includes registers, because the
// dynamic linker saves them on the stack when it looks up a function.
//
// A program with rights that its caller does not have (set-uid, set-gid, with
// capabilities) uses nothing of the caller's environment, and neither does
// libcurl in it.  To test this needs root and a file system that lets programs
// be set-uid.
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
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

namespace fs = std::filesystem;
namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace tests;

// --- What copies a secret ----------------------------------------------------

BOOST_AUTO_TEST_SUITE(secret_copies)

namespace {

// Gives `use` a text with a secret in it, and looks for the secret in the
// registers while the result still exists.  Does so for several sizes, because
// memcpy(3) copies each in its own way.
template <class Use>
void check_that_registers_are_wiped(const Use& use) {
  const Home home;
  const std::string path = (home.root / "secret").string();
  Needle needle(6001);
  for (const unsigned around : {0u, 20u, 50u, 100u, 300u, 1000u, 50000u}) {
    needle.write(path, std::string(around, '.'), std::string(around, '.'));
    const sigv4::SecretFile file(path, 1 << 20);
    BOOST_TEST_REQUIRE(needle.is_in(file.text));
    [[maybe_unused]] const auto made = use(file.text);
    const bool left = needle.is_in_registers();
    BOOST_TEST(!left, around);
  }
}

// As a program's own source of keys may, which does not wipe its stack.
void leave_on_the_stack(const std::string& path) {
  char deep[8192];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  BOOST_TEST_REQUIRE(read(fd, deep, 64) == 64);
  close(fd);
}

}  // namespace

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
  const Home home;
  const std::string path = (home.root / "secret").string();
  Needle needle(6003);
  needle.write(path, "", "");
  {
    sigv4::Keys keys(source_of([&path](const sigv4::Fetch&) {
                       leave_on_the_stack(path);
                       return sigv4::no_keys({"it has none"});
                     }),
                     [] { return std::int64_t{1700000000}; });
    keys.await(ddbmutex::BootClock::now() + kPlenty, nullptr);
  }
  BOOST_TEST(!needle.is_in_memory());
}

BOOST_AUTO_TEST_SUITE_END()

// --- What a lock leaves ------------------------------------------------------

// tests/processes/what_is_left.cpp searches all its memory.  It looks for the
// second half of each secret, because malloc(3) overwrites the first bytes of
// what is freed.  A session token that was sent is not looked for: libcurl and
// OpenSSL keep copies in their buffers.  For the same reason, the services that
// give out keys are asked without TLS here.

BOOST_AUTO_TEST_SUITE(secrets)

namespace {

// Hexadecimal and changed, so that telling the program what to look for puts no
// copy into its memory.
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

using Arguments = std::vector<std::string>;

// A process that has used a Table and destroyed it.  It searches its memory.
class Leavings {
 public:
  // `arguments` follow the table's name.  `outcome` is a part of what it must
  // say of its lock.
  Leavings(const Stage& it, const Arguments& arguments,
           const std::string& outcome = "done")
      : process_({command(it, arguments), it.environment()}) {
    const std::string said = process_.channel().line();
    BOOST_TEST_REQUIRE(said.find(outcome) != said.npos, said);
  }
  ~Leavings() { BOOST_TEST(process_.complaints() == ""); }

  int copies_of(const std::string& secret) {
    process_.channel().say(disguised(second_half(secret)));
    return std::stoi(process_.channel().line());
  }

 private:
  static std::vector<std::string> command(const Stage& it,
                                          const Arguments& arguments) {
    std::vector<std::string> all = {program_path("processes/what_is_left"),
                                    it.engine.table()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }

  Process process_;
};

struct Source {
  const char* name;
  std::function<void(Stage&)> set_up;
};

std::ostream& operator<<(std::ostream& out, const Source& source) {
  return out << source.name;
}

// The program's arguments that tell it the keys.
Arguments given(const char* how, const AwsKeys& keys) {
  return {how, keys.access_key_id, disguised(keys.secret_access_key),
          disguised(keys.session_token)};
}

const AwsKeys kUser = {"AKIDSOURCE", "the-secret-of-the-source-user-is-long"};

const std::vector<Source> kSources = {
    {"process", [](Stage& it) { it.credential_process(); }},
    {"role", [](Stage& it) { it.role_of(kUser); }},
    {"sign_on",
     [](Stage& it) { it.single_sign_on("access-token-of-a-sign-on"); }},
    {"instance", [](Stage& it) { it.instance(); }},
    {"container", [](Stage& it) { it.container(); }},
};

// AWS's secret access keys have this length; session tokens are longer.
bool is_secret_key(const std::string& secret) { return secret.size() == 40; }

}  // namespace

BOOST_DATA_TEST_CASE(nothing_is_left_in_memory_of_keys_of, kSources, source) {
  Stage it;
  for (const auto& [variable, service] :
       {std::pair("AWS_ENDPOINT_URL_STS", "sts"),
        std::pair("AWS_ENDPOINT_URL_SSO", "sso"),
        std::pair("AWS_ENDPOINT_URL_SSO_OIDC", "oidc")}) {
    it.set(variable, it.aws.plain_url(service));
  }
  source.set_up(it);
  Leavings left(it, {});
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
    BOOST_TEST(left.copies_of(kUser.secret_access_key) == 0);
  }
}

// The server's certificate is not trusted, so no token is sent.  All copies of
// it are the library's own.
BOOST_AUTO_TEST_CASE(nothing_is_left_in_memory_of_a_token_that_was_not_sent) {
  const ScriptedServer untrusted(nullptr, ScriptedServer::Scheme::https);
  for (const char* how : {"options", "source", "file"}) {
    Stage it;
    it.set("AWS_ENDPOINT_URL_DYNAMODB", untrusted.url());
    const AwsKeys keys = it.aws.issue(1h);
    BOOST_TEST_REQUIRE(keys.session_token.size() > 40u);
    const bool in_file = how == std::string("file");
    if (in_file) it.credentials_file(keys);
    Leavings left(it, in_file ? Arguments() : given(how, keys), "certificate");
    BOOST_TEST(left.copies_of(keys.session_token) == 0, how);
    BOOST_TEST(left.copies_of(keys.secret_access_key) == 0, how);
  }
  BOOST_TEST(untrusted.request_count() == 0);
}

BOOST_AUTO_TEST_CASE(command_resolves_its_functions_when_it_starts) {
  const std::string command = program_path("../examples/ddbmutex/ddbmutex");
  const std::string said = shell("readelf -dW '" + command + "'").said;
  BOOST_TEST(said.find("FLAGS_1") != said.npos, said);
  BOOST_TEST(said.find("NOW", said.find("FLAGS_1")) != said.npos, said);
}

// The search itself works.
BOOST_AUTO_TEST_CASE(what_is_in_memory_is_found) {
  Stage it;
  it.static_keys();
  Leavings left(it, {});
  // The environment of a process is its memory, and not ours to wipe; a
  // sanitizer may keep a copy.
  BOOST_TEST(left.copies_of(it.variables["AWS_SECRET_ACCESS_KEY"]) >= 1);
}

BOOST_AUTO_TEST_SUITE_END()

// --- A program with more rights than its caller ------------------------------

BOOST_AUTO_TEST_SUITE(privileged)

namespace {

constexpr uid_t kCaller = 65533, kOwner = 65532;  // Nobody has these.

enum class Rights { none, set_uid, set_gid, capabilities };

// Whether a user who owns none of the folders on the way may enter this one.
bool can_be_entered(fs::path folder) {
  for (; folder != folder.root_path(); folder = folder.parent_path()) {
    const fs::perms rights = fs::status(folder).permissions();
    if ((rights & fs::perms::others_exec) == fs::perms::none) return false;
  }
  return true;
}

bool can_be_tested(const Home& home) {
  struct statvfs system = {};
  BOOST_TEST_REQUIRE(statvfs(home.root.c_str(), &system) == 0);
  const bool can = geteuid() == 0 && (system.f_flag & ST_NOSUID) == 0 &&
                   can_be_entered(home.root.parent_path());
  if (!can) {
    std::cout << "NOT TESTED: a set-uid program (needs root, and a temporary "
                 "folder that everybody may enter and that is not mounted "
                 "nosuid)\n";
  }
  return can;
}

// CAP_NET_BIND_SERVICE, as many servers have it: see capabilities(7).
void give_capability(const std::string& path) {
  const std::uint32_t data[] = {0x02000001, 1u << 10, 0, 0, 0};
  BOOST_TEST_REQUIRE(
      setxattr(path.c_str(), "security.capability", data, sizeof data, 0) == 0);
}

// A copy of the program, and files that its caller has prepared: a config with
// a credential_process that leaves a proof that it ran.
struct Scene {
  Scene() {
    fs::permissions(home.root, fs::perms(0755));
    fs::permissions(home.root / ".aws", fs::perms(0777));
    fs::create_directory(home.root / "his");
    fs::permissions(home.root / "his", fs::perms(0777));
    const std::string script = (home.root / "script").string();
    home.write("script", "#!/bin/sh\nid -u >>" + proof() + "\nexit 1\n");
    fs::permissions(script, fs::perms(0755));
    home.write(".aws/config", "[default]\ncredential_process = " + script +
                                  "\nregion = us-east-1\n");
    fs::permissions(home.root / ".aws/config", fs::perms(0644));
  }

  std::string program(Rights rights) const {
    const std::string path = (home.root / "program").string();
    fs::remove(path);
    fs::copy_file(program_path("processes/privileged"), path);
    BOOST_TEST_REQUIRE(chown(path.c_str(), kOwner, kOwner) == 0);
    const mode_t more = rights == Rights::set_uid   ? S_ISUID
                        : rights == Rights::set_gid ? S_ISGID
                                                    : 0;
    BOOST_TEST_REQUIRE(chmod(path.c_str(), 0755 | more) == 0);
    if (rights == Rights::capabilities) give_capability(path);
    return path;
  }

  // Runs the program as the caller, with these variables; returns its output.
  std::string run(Rights rights, const std::vector<std::string>& words,
                  const std::vector<std::string>& environment) const {
    const std::string path = program(rights);
    const std::string output = (home.root / "output").string();
    std::vector<char*> arguments = {const_cast<char*>(path.c_str())};
    for (const auto& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    std::vector<char*> variables;
    for (const auto& one : environment) {
      variables.push_back(const_cast<char*>(one.c_str()));
    }
    variables.push_back(nullptr);
    const int to = open(output.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    BOOST_TEST_REQUIRE(to >= 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(to, 1);
      dup2(to, 2);
      if (setgroups(0, nullptr) != 0 || setgid(kCaller) != 0 ||
          setuid(kCaller) != 0) {
        _exit(126);
      }
      execve(path.c_str(), arguments.data(), variables.data());
      _exit(127);
    }
    close(to);
    int status = -1;
    BOOST_TEST_REQUIRE(waitpid(pid, &status, 0) == pid);
    BOOST_TEST(status == 0);
    return text_of(output);
  }

  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string proof() const { return (home.root / "his/proof").string(); }
  std::string key_log() const { return (home.root / "his/keys").string(); }

  Home home;
};

constexpr Rights kMore[] = {Rights::set_uid, Rights::set_gid,
                            Rights::capabilities};

}  // namespace

BOOST_AUTO_TEST_CASE(callers_files_programs_and_keys_are_not_used) {
  const Scene scene;
  if (!can_be_tested(scene.home)) return;
  const std::string root = scene.home.root.string();
  const std::vector<std::string> by_home = {"HOME=" + root,
                                            "AWS_EC2_METADATA_DISABLED=true"};
  const std::vector<std::string> by_file = {
      "AWS_CONFIG_FILE=" + root + "/.aws/config", "HOME=/nonexistent",
      "AWS_EC2_METADATA_DISABLED=true"};
  const std::vector<std::string> by_keys = {
      "AWS_ACCESS_KEY_ID=AKIDCALLER", "AWS_SECRET_ACCESS_KEY=x",
      "HOME=/nonexistent", "AWS_EC2_METADATA_DISABLED=true"};
  for (const auto& environment : {by_home, by_file, by_keys}) {
    // Without the rights, the environment is used.
    const std::string plain = scene.run(Rights::none, {"keys"}, environment);
    BOOST_TEST(has(plain, "plain\n"), plain);
    BOOST_TEST(!has(plain, "no AWS keys: no access_key_id"), plain);
    BOOST_TEST(fs::exists(scene.proof()) == (environment != by_keys));
    fs::remove(scene.proof());
    for (const Rights rights : kMore) {
      const std::string said = scene.run(rights, {"keys"}, environment);
      BOOST_TEST(has(said, "secure\n"), said);
      BOOST_TEST(has(said,
                     "the environment is not used (this program is "
                     "set-uid or set-gid, or has capabilities)"),
                 said);
      BOOST_TEST(!fs::exists(scene.proof()), said);
      BOOST_TEST(!has(said, root), said);
    }
  }
}

BOOST_AUTO_TEST_CASE(callers_proxies_and_tls_key_log_are_not_used) {
  const Scene scene;
  if (!can_be_tested(scene.home)) return;
  const ScriptedServer server(nullptr, ScriptedServer::Scheme::https);
  // Where the caller may read it.
  const std::string ca = (scene.home.root / "ca.pem").string();
  fs::copy_file(server.certificate_file(), ca);
  fs::permissions(ca, fs::perms(0644));
  const std::vector<std::string> words = {"lock", server.url(), ca};
  const std::vector<std::string> logs = {"SSLKEYLOGFILE=" + scene.key_log()};
  const std::vector<std::string> proxies = {"https_proxy=http://127.0.0.1:1",
                                            "HTTPS_PROXY=http://127.0.0.1:1",
                                            "ALL_PROXY=http://127.0.0.1:1"};
  // Without the rights, both are used.
  BOOST_TEST(has(scene.run(Rights::none, words, logs), "\nlocked"));
  BOOST_TEST(fs::exists(scene.key_log()));
  fs::remove(scene.key_log());
  BOOST_TEST(!has(scene.run(Rights::none, words, proxies), "\nlocked"));
  for (const Rights rights : kMore) {
    std::string said = scene.run(rights, words, logs);
    BOOST_TEST(said == "secure\nlocked\n");
    BOOST_TEST(!fs::exists(scene.key_log()));
    said = scene.run(rights, words, proxies);
    BOOST_TEST(said == "secure\nlocked\n");
  }
}

BOOST_AUTO_TEST_SUITE_END()
