// Secrets stay secret.
//
// A process that has taken and released a lock and destroyed its Table has no
// copy left that the library made, except on stacks.
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

#include "sigv4/secret.hpp"
#include "tests/support/home.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stage.hpp"
#include "tests/support/waiting.hpp"

namespace fs = std::filesystem;
namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace tests;

// --- What wipes a secret -----------------------------------------------------

BOOST_AUTO_TEST_SUITE(secret_copies)

BOOST_AUTO_TEST_CASE(wiped_text_has_no_byte_of_it_in_its_memory) {
  std::string text(1000, 'x');
  text.resize(5);
  sigv4::wipe(text);
  BOOST_TEST(text.empty());
  const char* const begin = text.data();
  const char* const end = begin + text.capacity();
  BOOST_TEST((std::find(begin, end, 'x') == end));
}

// A short text is in the object itself.
BOOST_AUTO_TEST_CASE(secret_is_wiped_when_it_is_destroyed_moved_or_replaced) {
  alignas(sigv4::Secret) char memory[sizeof(sigv4::Secret)] = {};
  const auto is_there = [&memory] {
    std::string bytes;
    const volatile char* byte = memory;
    while (bytes.size() < sizeof memory) bytes += *byte++;
    return has(bytes, "secret");  // Strings overwrite their first byte.
  };
  auto* secret = new (memory) sigv4::Secret("a-secret");
  BOOST_TEST(is_there());
  sigv4::Secret other = std::move(*secret);
  BOOST_TEST(!is_there());
  *secret = other;
  BOOST_TEST(is_there());
  *secret = sigv4::Secret("x");
  BOOST_TEST(!is_there());
  *secret = other;
  secret->~Secret();
  BOOST_TEST(!is_there());
}

BOOST_AUTO_TEST_SUITE_END()

// --- What a lock leaves ------------------------------------------------------

// tests/processes/what_is_left.cpp searches all its memory.  It looks for the
// second half of each secret, because malloc(3) overwrites the first bytes of
// what is freed, and leaves out stacks.  A session token that was sent is not
// looked for: libcurl and OpenSSL keep copies in their buffers.  For the same
// reason, the services that give out keys are asked without TLS here.

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
      : process_({command(it, arguments), variables_of(it)}) {
    const std::string said = process_.channel().line();
    BOOST_TEST_REQUIRE(said.find(outcome) != said.npos, said);
  }
  ~Leavings() { BOOST_TEST(process_.complaints() == ""); }

  int copies_of(const std::string& secret) {
    process_.channel().say(disguised(second_half(secret)));
    return std::stoi(process_.channel().line());
  }

 private:
  // Stacks of threads that have ended are given back to the system.
  static std::vector<std::string> variables_of(const Stage& it) {
    std::vector<std::string> all = it.environment();
    all.push_back("GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0");
    return all;
  }
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
    {"instance", [](Stage& it) { it.instance(); }},
    {"container", [](Stage& it) { it.container(); }},
};

// AWS's secret access keys have this length; session tokens are longer.
bool is_secret_key(const std::string& secret) { return secret.size() == 40; }

}  // namespace

BOOST_DATA_TEST_CASE(nothing_is_left_in_memory_of_keys_of, kSources, source) {
  Stage it;
  it.set("AWS_ENDPOINT_URL_STS", it.aws.plain_url("sts"));
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

// The search itself works.
BOOST_AUTO_TEST_CASE(what_is_in_memory_is_found) {
  Stage it;
  it.static_keys();
  Leavings left(it, {});
  BOOST_TEST(left.copies_of(it.engine.table()) >= 1);
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
