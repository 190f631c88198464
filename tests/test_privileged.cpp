// A program with rights that its caller does not have (set-uid, set-gid, with
// capabilities) uses nothing of its caller's environment, and neither does
// libcurl in it.  Needs root, and a file system that lets programs be set-uid.
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/home.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"

using namespace tests;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kCaller = 65533, kOwner = 65532;  // Nobody has these.

enum class Rights { none, set_uid, set_gid, capabilities };

bool can_be_tested(const Home& home) {
  struct statvfs system = {};
  BOOST_TEST_REQUIRE(statvfs(home.root.c_str(), &system) == 0);
  const bool can = geteuid() == 0 && (system.f_flag & ST_NOSUID) == 0;
  if (!can) {
    std::cout << "NOT TESTED: a set-uid program (needs root, and a temporary "
                 "folder that is not mounted nosuid)\n";
  }
  return can;
}

// CAP_NET_BIND_SERVICE, as many servers have it: see capabilities(7).
void give_capability(const std::string& path) {
  const std::uint32_t data[] = {0x02000001, 1u << 10, 0, 0, 0};
  BOOST_TEST_REQUIRE(
      setxattr(path.c_str(), "security.capability", data, sizeof data, 0) == 0);
}

// A copy of the program, and what its caller prepares.
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

  // What it says, run by the caller with these variables.
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

BOOST_AUTO_TEST_SUITE(privileged)

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
    // The environment would count.
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
  // Both would count.
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
