// A credential_process that asks a person something on the terminal, run by the
// command `ddbmutex` in a pseudo-terminal: in the foreground and elsewhere.
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/home.hpp"
#include "tests/support/process.hpp"
#include "tests/support/pty.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

using namespace tests;

namespace {

const std::string kPrints =
    "printf '{\"Version\":1,\"AccessKeyId\":\"AKID%s\",' \"$x\"\n"
    "echo '\"SecretAccessKey\":\"s\"}'\n";

std::string command() { return program_path("../examples/ddbmutex/ddbmutex"); }

// A home whose profile names a script as its credential_process, and a service
// that grants every lock.
struct Desk {
  explicit Desk(const std::string& script, const char* shell = "/bin/sh") {
    home.write("script", script);
    home.write(".aws/config",
               "[default]\nregion = us-east-1\n"
               "credential_process = " +
                   std::string(shell) + " '" + (home.root / "script").string() +
                   "'\n");
  }

  std::vector<std::string> environment() const {
    const std::string program = std::filesystem::absolute(command());
    return {"HOME=" + home.root.string(),
            "PATH=" + program.substr(0, program.rfind('/')) + ":/usr/bin:/bin",
            "LC_ALL=C.UTF-8",
            "AWS_EC2_METADATA_DISABLED=true",
            "AWS_ENDPOINT_URL_DYNAMODB=" + server.url(),
            "HISTFILE="};
  }
  std::vector<std::string> run() const {
    return {command(), "run", "job", "echo", "do", "ne"};
  }
  // Whose keys signed the requests.
  bool was_signed_by(const std::string& id) const {
    for (const SeenRequest& request : server.requests()) {
      if (has(request.header("authorization").value_or(""), id)) return true;
    }
    return false;
  }
  // The number in a file that the script writes.
  pid_t pid_in(const char* name) const {
    std::string line;
    BOOST_TEST_REQUIRE(eventually([&] {
      std::ifstream file(home.root / name);
      return static_cast<bool>(std::getline(file, line)) && !file.eof();
    }));
    return std::stoi(line);
  }

  Home home;
  ScriptedServer server;
};

// Whoever has become its parent may not reap it.
bool has_ended(pid_t pid) {
  return eventually([pid] {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const auto name_ends = text.rfind(')');
    return name_ends == text.npos || text[name_ends + 2] == 'Z';
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(terminal)

BOOST_AUTO_TEST_CASE(program_reads_a_password_from_the_terminal) {
  const Desk desk(
      "exec 3<>/dev/tty\nstty -echo <&3\nprintf 'Password: ' >&3\nread x <&3\n"
      "stty echo <&3\n" +
      kPrints);
  Pty pty(desk.run(), desk.environment());
  BOOST_TEST_REQUIRE(pty.says("Password: "), pty.text());
  pty.type("OPENSESAME\n");
  BOOST_TEST(pty.says("do ne"), pty.text());
  BOOST_TEST(pty.end() == 0);
  BOOST_TEST(!has(pty.text(), "OPENSESAME"), pty.text());
  BOOST_TEST(desk.was_signed_by("AKIDOPENSESAME"));
}

// It ignores what Ctrl-C sends, so only we can end it.
BOOST_AUTO_TEST_CASE(program_that_is_given_up_is_ended_and_the_echo_is_back) {
  const Desk desk(
      "trap '' INT TERM HUP\ncd ~\nexec 3<>/dev/tty\n"
      "sleep 1000 <&- >&- 2>&- 3>&- &\necho $! >child\necho $$ >self\n"
      "stty -echo <&3\necho asks >&3\nread x <&3\nread x <&3\n");
  const std::string words = "ddbmutex run job true; stty -a; echo the end";
  Pty pty({"/bin/bash", "-c", "trap : INT; " + words}, desk.environment());
  BOOST_TEST_REQUIRE(pty.says("asks"), pty.text());
  const pid_t self = desk.pid_in("self"), child = desk.pid_in("child");
  pty.type(Pty::kCtrlC);
  BOOST_TEST(pty.says(" echo "), pty.text());
  BOOST_TEST(pty.says("the end"), pty.text());
  BOOST_TEST(has_ended(self));
  BOOST_TEST(has_ended(child));
}

// The kernel would stop it, and us in its group: it is ended, and we go on.
BOOST_AUTO_TEST_CASE(program_that_asks_in_the_background_is_an_error_at_once) {
  const Desk desk("cd ~\necho $$ >self\nread x </dev/tty\n" + kPrints);
  Pty bash({"/bin/bash", "--norc", "--noprofile", "-i"}, desk.environment(), 24,
           200);
  bash.type("PS1=; set -b; ddbmutex run job echo do ne &\n");
  BOOST_TEST_REQUIRE(bash.says("but this process is in the background"),
                     bash.text());
  bash.type("wait %1; echo status $?\n");
  BOOST_TEST(bash.says("status 77"), bash.text());
  BOOST_TEST(!has(bash.text(), "Stopped"), bash.text());
  BOOST_TEST(has_ended(desk.pid_in("self")));
}

// The second one found the echo off already.
BOOST_AUTO_TEST_CASE(echo_is_back_when_two_programs_at_once_are_given_up) {
  const Home home;
  std::string words = program_path("processes/two_askers");
  for (const std::string one : {"one", "two"}) {
    home.write(one, "stty -echo </dev/tty\n>\"$0.asks\"\nread x </dev/tty\n");
    const std::string path = (home.root / one).string();
    words += " \"/bin/sh '" + path + "'\" " + path + ".asks";
  }
  Pty pty({"/bin/bash", "-c", words + "; stty -a; echo the end"},
          {"PATH=/usr/bin:/bin"});
  BOOST_TEST(pty.says("the end"), pty.text());
  BOOST_TEST(has(pty.text(), " echo "), pty.text());
}

BOOST_AUTO_TEST_SUITE_END()
