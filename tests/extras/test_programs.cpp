// Keys from a credential_process: how the command is split and run, which
// answers are accepted, and what is shown of them.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "extras/keys/profile_grammar.hpp"
#include "extras/keys/profile_sources.hpp"
#include "sigv4/keys/from_all.hpp"
#include "sigv4/keys/from_hosts.hpp"
#include "sigv4/parts.hpp"
#include "sigv4/secret.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/given.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stamps.hpp"
#include "tests/support/waiting.hpp"

using namespace ddbmutex;
using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::has;
using tests::Home;
using tests::said;

BOOST_AUTO_TEST_SUITE(credential_process)

namespace {

constexpr const char* kPlace = "credential_process of profile \"x\"";
constexpr const char* kDocument =
    R"({"Version": 1, "AccessKeyId": "id", "SecretAccessKey": "the-secret"})";

KeySourcePtr process_keys(const std::string& command,
                          const std::string& place) {
  return tests::source_of([=](const Fetch& fetch) {
    return sigv4::process_keys(command, place, fetch);
  });
}

// A directory with a script that serves as the program.
struct Scripts : Home {
  // A source that runs this shell script.
  KeySourcePtr source(const std::string& script) const {
    return process_keys("/bin/sh '" + write("script", script) + "'", kPlace);
  }
  KeySourcePtr writes(const std::string& text) const {
    write("text", text);
    return source("cat '" + (root / "text").string() + "'\n");
  }
  std::string file(const char* name) const {
    std::string text;
    std::ifstream stream(root / name);
    std::getline(stream, text, '\0');
    return text;
  }
  // Waits for a file with a number that the script writes.
  pid_t pid_in(const char* name) const {
    BOOST_TEST_REQUIRE(tests::eventually(
        [&] { return file(name).find('\n') != std::string::npos; }));
    return std::stoi(file(name));
  }
};

// Whether this process has no child of that number, alive or zombie.
bool was_reaped(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid), &info,
                WEXITED | WNOHANG | WNOWAIT) != 0 &&
         errno == ECHILD;
}

std::string joined(std::string_view command) {
  std::string words;
  if (*split_words(command, words) != '\0') return "error";
  std::string text;
  for (std::string_view rest = words; !rest.empty();) {
    text += "<" + std::string(cut(rest, '\0')) + ">";
  }
  return text;
}

// The signals in a line of /proc/PID/status.
unsigned long long mask_in(const std::string& status, const char* name) {
  const auto at = status.find(name);
  BOOST_TEST_REQUIRE(at != status.npos);
  return std::stoull(status.substr(at + std::string(name).size()), nullptr, 16);
}

// Sets a signal's disposition while this exists.
class Disposition {
 public:
  Disposition(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(signal_, &action, &before_);
  }
  ~Disposition() { sigaction(signal_, &before_, nullptr); }
  Disposition(const Disposition&) = delete;
  Disposition& operator=(const Disposition&) = delete;

 private:
  const int signal_;
  struct sigaction before_;
};

}  // namespace

// --- The command -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(command_is_taken_apart_as_by_a_shell_without_expansion) {
  const struct {
    const char* command;
    const char* words;
  } cases[] = {
      {"  a \t b\r\nc ", "<a><b><c>"},
      {"a 'b c' \"d e\"", "<a><b c><d e>"},
      {"a'b'\"c\"d", "<abcd>"},
      {"'' \"\"", "<><>"},
      {"a ''", "<a><>"},
      {R"(a\ b \'c \"d \\)", R"(<a b><'c><"d><\>)"},
      {R"('a\b' 'c"d')", R"(<a\b><c"d>)"},
      {R"("a\b" "c\"d" "e\\f" "g'h" "\$i")", R"(<a\b><c"d><e\f><g'h><\$i>)"},
      {"$HOME ~ `a` *.c a;b |c &d >e #f {g,h}",
       "<$HOME><~><`a`><*.c><a;b><|c><&d><>e><#f><{g,h}>"},
      {"\xC3\xA9 '\xC3\xA9'", "<\xC3\xA9><\xC3\xA9>"},
      {"", "error"},
      {"'a", "error"},
      {R"("a\")", "error"},
      {"a\\", "error"},
  };
  for (const auto& c : cases) {
    BOOST_TEST(joined(c.command) == c.words, c.command);
  }
}

// --- What it gives ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_is_no_document_is_broken_and_not_shown) {
  const struct {
    const char* text;
    const char* reason;
  } cases[] = {
      {"", "the program wrote nothing"},
      {"the-secret", "the program's output is not a JSON object"},
      {R"({"Version":1,"AccessKeyId":"i","SecretAccessKey":"the-sec)",
       "the program's output is not a JSON object"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"the-secret"})",
       "Version in the program's output is not 1"},
      {R"({"Version":2,"AccessKeyId":"i","SecretAccessKey":"the-secret"})",
       "Version in the program's output is not 1"},
  };
  const Scripts scripts;
  for (const auto& c : cases) {
    BOOST_TEST(said(tests::asked(*scripts.writes(c.text))) ==
               "broken: " + std::string(kPlace) + ": " + c.reason);
  }
}

// --- How it ends -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_a_failing_program_says_on_stderr_is_shown) {
  const Scripts scripts;
  const std::string failed =
      "failed: credential_process of profile \"x\": the program ended with "
      "exit status 3: ";
  const auto saying = [&](const std::string& text) {
    scripts.write("text", text);
    return said(tests::asked(*scripts.source(
        "cat '" + (scripts.root / "text").string() + "' >&2\nexit 3\n")));
  };
  BOOST_TEST(saying("Error: the session is over\n") ==
             failed + "Error: the session is over");
  BOOST_TEST(saying("\nError: it is over\r\n\n  run corp-login\n\n") ==
             failed + "Error: it is over / run corp-login");
  BOOST_TEST(saying("a\x1b[2J\xe2\x80\xae\x7f\tb") ==
             failed + R"(a\x1b[2J\u202e\x7f\tb)");
  // Of a long text, only the end is shown: it has the reason.
  std::string much;
  while (much.size() < 100000) much += "  File \"x.py\", line 1\n";
  const std::string end = saying(much + "ValueError: no\n");
  BOOST_TEST(has(end, " / ValueError: no"));
  BOOST_TEST(end.size() < failed.size() + 320);
  BOOST_TEST(saying(std::string(100000, 'x')).size() < failed.size() + 320);
}

BOOST_AUTO_TEST_CASE(secrets_that_a_program_says_on_stderr_are_hidden) {
  const Scripts scripts;
  const std::string secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  const std::string plain = "secret-of-small-letters";
  for (const std::string& line : std::vector<std::string>{
           "refused: " + secret, "refused: key=" + secret + ";",
           "refused: '" + secret.substr(0, 30) + "'",
           "refused: eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIi",
           "refused: token-5f4dcc3b5aa765d61d8327deb882cf99",
           "refused: t=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}) {
    const std::string told = said(tests::asked(
        *scripts.source("cat >&2 <<'E'\n" + line + "\nE\nexit 1\n")));
    BOOST_TEST(has(told, ": refused: "), told);
    BOOST_TEST(has(told, "(hidden)"), told);
    BOOST_TEST(!has(told, secret.substr(0, 12)), told);
    for (const char* part : {"eyJ", "5f4d", "JBSW"}) {
      BOOST_TEST(!has(told, part), told);
    }
  }
  // This secret does not look like one, but the program's document has it.
  const std::string told = said(tests::asked(*scripts.source(
      "echo '{\"Version\":1,\"AccessKeyId\":\"i\",\"SecretAccessKey\":\"" +
      plain + "\"}'\necho 'bad " + plain + "' >&2\nexit 1\n")));
  BOOST_TEST(has(told, "exit status 1: (hidden)"), told);
}

// Its child is not ended, and holds nothing up.
BOOST_AUTO_TEST_CASE(program_that_takes_too_long_is_ended_alone) {
  for (const std::string trap : {"", "trap '' TERM\n"}) {
    // It must begin within its four seconds.
    const std::string wrong = tests::undisturbed(1s, [&]() -> std::string {
      const Scripts scripts;
      const std::string text = said(tests::asked(
          *scripts.source(
              "cd '" + scripts.root.string() + "'\n" + trap +
              "echo $$ >self\nsleep 1000 &\necho $! >child\nwait\n"),
          4s));
      if (!has(text,
               "failed: credential_process of profile \"x\": the program did "
               "not end in ")) {
        return text;
      }
      if (scripts.file("child").empty()) return "it did not begin in time";
      if (!was_reaped(scripts.pid_in("self"))) return "it was not reaped";
      const pid_t child = scripts.pid_in("child");
      const bool lives = tests::Stamps::is_running(child);
      kill(child, SIGKILL);
      return lives ? "" : "its child was ended, too";
    });
    BOOST_TEST(wrong == "", trap << wrong);
  }
}

BOOST_AUTO_TEST_CASE(program_that_ended_is_not_waited_for_by_its_pipe) {
  const Scripts scripts;
  const KeyOutcome outcome = tests::asked(*scripts.source(
      "cd '" + scripts.root.string() + "'\nsleep 1000 &\necho $! >child\n" +
      "echo '" + kDocument + "'\n"));
  BOOST_TEST(said(outcome) == std::string("found: ") + kPlace);
  const pid_t child = scripts.pid_in("child");  // A daemon that lives on.
  BOOST_TEST(tests::Stamps::is_running(child));
  kill(child, SIGKILL);
}

// Then the kernel reaps the program itself, and its exit status is lost.
BOOST_AUTO_TEST_CASE(keys_are_found_where_sigchld_is_ignored) {
  const Disposition ignored(SIGCHLD, SIG_IGN);
  const Scripts scripts;
  BOOST_TEST(said(tests::asked(*scripts.writes(kDocument))) ==
             std::string("found: ") + kPlace);
  BOOST_TEST(has(said(tests::asked(*scripts.source("exit 3\n"))),
                 "broken: credential_process of profile \"x\": the program "
                 "wrote nothing"));
  BOOST_TEST(
      has(said(tests::asked(*scripts.source("exec sleep 1000\n"), 300ms)),
          "did not end in"));
}

// --- What it finds ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(program_inherits_no_files_of_ours) {
  const Scripts scripts;
  const int open_file = open("/dev/zero", O_RDONLY);  // Not close-on-exec.
  BOOST_TEST_REQUIRE(open_file > 2);
  const int stdin_before = dup(0);
  BOOST_TEST_REQUIRE(dup2(open_file, 0) == 0);
  tests::asked(*scripts.source("cd '" + scripts.root.string() +
                               "'\nls -l /proc/$$/fd | cat >fds\n" +
                               "cat >input\necho the end >>input\n"));
  dup2(stdin_before, 0);
  close(stdin_before);
  close(open_file);
  const std::string fds = scripts.file("fds");
  BOOST_TEST(has(fds, " 0 -> /dev/null\n"));
  BOOST_TEST(has(fds, " 1 -> pipe:"));
  BOOST_TEST(has(fds, " 2 -> pipe:"));
  BOOST_TEST(!has(fds, "/dev/zero"));
  BOOST_TEST(!has(fds, "socket:"));
  BOOST_TEST(!has(fds, "eventfd"));
  BOOST_TEST(scripts.file("input") == "the end\n");
}

BOOST_AUTO_TEST_CASE(program_has_default_signals_and_is_in_our_group) {
  const Scripts scripts;
  const Disposition interrupts(SIGINT, SIG_IGN), pipes(SIGPIPE, SIG_IGN);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  // Not by a shell, which changes dispositions.
  const KeyOutcome outcome = tests::asked(*process_keys(
      "dd if=/proc/self/status of='" + (scripts.root / "status").string() + "'",
      kPlace));
  tests::asked(*process_keys(
      "dd if=/proc/self/stat of='" + (scripts.root / "stat").string() + "'",
      kPlace));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  BOOST_TEST(has(said(outcome), "wrote nothing"));
  const std::string status = scripts.file("status");
  BOOST_TEST(mask_in(status, "SigBlk:") == 0u);
  // Without the two signals that the C library uses itself.
  BOOST_TEST((mask_in(status, "SigIgn:") & 0x7fffffff) == 0u);
  // "PID (dd) STATE PARENT GROUP ..."
  int group = 0;
  BOOST_TEST_REQUIRE(
      sscanf(scripts.file("stat").c_str(), "%*d (dd) %*c %*d %d", &group) == 1);
  BOOST_TEST(group == getpgrp());
}

BOOST_AUTO_TEST_SUITE_END()
