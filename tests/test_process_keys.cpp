// Keys of a credential_process: how its command is taken apart, what the
// program finds, and what becomes of programs of every kind.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sigv4/keys/from_json.hpp"
#include "sigv4/keys/from_profile.hpp"
#include "sigv4/secret.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/given.hpp"
#include "tests/support/home.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/waiting.hpp"

namespace {

using namespace ddbmutex;
using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::Asking;
using tests::has;
using tests::Home;
using tests::said;

constexpr const char* kPlace = "credential_process of profile \"x\"";
constexpr const char* kDocument =
    R"({"Version": 1, "AccessKeyId": "id", "SecretAccessKey": "the-secret"})";

KeySourcePtr process_keys(const std::string& command,
                          const std::string& place) {
  return tests::source_of([=](const Fetch& fetch) {
    return sigv4::process_keys(command, place, fetch);
  });
}

std::string in_time(std::int64_t seconds_from_now) {
  const time_t when = time(nullptr) + seconds_from_now;
  tm parts = {};
  gmtime_r(&when, &parts);
  char text[64];
  return std::string(text,
                     strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

std::string document_that_ends(const std::string& expiration) {
  return R"({"Version":1,"AccessKeyId":"id","SecretAccessKey":"the-secret",)"
         R"("SessionToken":"the-token","Expiration":")" +
         expiration + "\"}";
}

// Scripts of a directory of their own.
struct Scripts : Home {
  // A shell script as a program.
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
  // The number in a file that a script writes, waited for.
  pid_t pid_in(const char* name) const {
    BOOST_TEST_REQUIRE(tests::eventually(
        [&] { return file(name).find('\n') != std::string::npos; }));
    return std::stoi(file(name));
  }
};

// Neither ended nor a zombie, for whose parent need not be ours.
bool runs(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stream, text);
  const auto name_ends = text.rfind(')');
  return name_ends != text.npos && text[name_ends + 2] != 'Z';
}

bool ends(pid_t pid) {
  return tests::eventually([pid] { return !runs(pid); });
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// No child of ours by that number is left, alive or not.
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

std::string hex(const std::string& text) {
  std::string result;
  for (const char c : text) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    result += digits;
  }
  return result;
}

// What Python's shlex makes of each, in the form of joined().
std::vector<std::string> by_python(const Home& home,
                                   const std::vector<std::string>& commands) {
  std::string lines;
  for (const std::string& command : commands) lines += hex(command) + "\n";
  const std::string input = home.write("commands", lines);
  const std::string program = home.write("split.py", R"(
import shlex, sys
for line in open(sys.argv[1]):
    text = bytes.fromhex(line).decode("latin-1")
    try:
        words = "".join("<" + word + ">" for word in shlex.split(text))
    except ValueError:
        words = "error"
    print(words.encode("latin-1").hex())
)");
  FILE* pipe = popen(
      ("/usr/bin/python3 '" + program + "' '" + input + "'").c_str(), "r");
  BOOST_TEST_REQUIRE(pipe != nullptr);
  std::vector<std::string> results;
  std::string line;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    results.push_back(line);
    line.clear();
  }
  BOOST_TEST_REQUIRE(pclose(pipe) == 0);
  return results;
}

// A line of /proc/PID/status.
unsigned long long mask_in(const std::string& status, const char* name) {
  const auto at = status.find(name);
  BOOST_TEST_REQUIRE(at != status.npos);
  return std::stoull(status.substr(at + std::string(name).size()), nullptr, 16);
}

// Puts a signal's disposition back.
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

BOOST_AUTO_TEST_SUITE(credential_process)

// --- The command -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(command_is_taken_apart_as_by_a_shell_without_expansion) {
  const struct {
    const char* command;
    const char* words;
  } cases[] = {
      {"a", "<a>"},
      {"  a \t b\r\nc ", "<a><b><c>"},
      {"a 'b c' \"d e\"", "<a><b c><d e>"},
      {"a'b'\"c\"d", "<abcd>"},
      {"'' \"\"", "<><>"},
      {"a ''", "<a><>"},
      {R"(a\ b \'c \"d \\)", R"(<a b><'c><"d><\>)"},
      {R"('a\b' 'c"d')", R"(<a\b><c"d>)"},
      {R"("a\b" "c\"d" "e\\f" "g'h" "\$i")", R"(<a\b><c"d><e\f><g'h><\$i>)"},
      {"a\\\nb", "<a\nb>"},
      {"$HOME ~ `a` *.c a;b |c &d >e #f {g,h}",
       "<$HOME><~><`a`><*.c><a;b><|c><&d><>e><#f><{g,h}>"},
      {"K=v a", "<K=v><a>"},
      {"\xC3\xA9 '\xC3\xA9'", "<\xC3\xA9><\xC3\xA9>"},
      {"", "error"},
      {" \t\n", "error"},
      {"'a", "error"},
      {"a \"b", "error"},
      {"a 'b\\'", "<a><b\\>"},
      {R"("a\")", "error"},
      {"a\\", "error"},
      {"'a''", "error"},
  };
  for (const auto& c : cases) {
    BOOST_TEST(joined(c.command) == c.words, c.command);
  }
}

BOOST_AUTO_TEST_CASE(command_with_a_nul_is_refused_wherever_it_stands) {
  using namespace std::string_view_literals;
  for (const auto command :
       {"a\0b"sv, "'a\0b'"sv, "\"a\0b\""sv, "a\\\0b"sv, "a \0"sv, "\0"sv}) {
    BOOST_TEST(joined(command) == "error");
  }
}

BOOST_AUTO_TEST_CASE(any_command_is_taken_apart_as_by_python) {
  const std::string letters = "ab $#\t\n\r\\\\\\'''\"\"\";\xE9";
  std::mt19937 chance(20301);
  std::vector<std::string> commands;
  while (commands.size() < 20000) {
    std::string command = "a";  // What is empty, only we refuse.
    const std::size_t size = chance() % 14;
    while (command.size() < size) command += letters[chance() % letters.size()];
    commands.push_back(command);
  }
  const Home home;
  const std::vector<std::string> expected = by_python(home, commands);
  BOOST_TEST_REQUIRE(expected.size() == commands.size());
  std::size_t errors = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string words = joined(commands[i]);
    BOOST_TEST(hex(words) == expected[i], hex(commands[i]));
    if (words == "error") ++errors;
  }
  BOOST_TEST(errors > 1000u);
  BOOST_TEST(errors < commands.size() - 1000);
}

BOOST_AUTO_TEST_CASE(bad_command_is_broken_and_not_shown) {
  Asking asking;
  BOOST_TEST(said(asking.of(*process_keys("tool 'my-secret", kPlace))) ==
             "broken: credential_process of profile \"x\": the command is "
             "malformed: a quote is not closed");
  BOOST_TEST(said(asking.of(*process_keys(" ", kPlace))) ==
             "broken: credential_process of profile \"x\": the command is "
             "malformed: it is empty");
}

// --- What it gives ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(keys_of_a_program_are_found) {
  const Scripts scripts;
  Asking asking;
  const KeyOutcome outcome = asking.of(*scripts.writes(kDocument));
  BOOST_TEST(said(outcome) == std::string("found: ") + kPlace);
  BOOST_TEST(outcome.keys.access_key_id == "id");
  BOOST_TEST(outcome.keys.secret_access_key.str() == "the-secret");
  BOOST_TEST(outcome.keys.session_token.empty());
  BOOST_TEST(outcome.keys.account_id == "");
  BOOST_TEST((outcome.ends == BootTime::max()));
}

BOOST_AUTO_TEST_CASE(temporary_keys_are_found_with_token_end_and_account) {
  const Scripts scripts;
  Asking asking;
  const KeyOutcome outcome = asking.of(*scripts.writes(
      R"({"Version":1.0,"AccessKeyId":"id","SecretAccessKey":"s",)"
      R"("SessionToken":"the-token","Expiration":")" +
      in_time(3600) + R"(","AccountId":"123456789012"})" + "\n"));
  BOOST_TEST(said(outcome) == std::string("found: ") + kPlace);
  BOOST_TEST(outcome.keys.session_token.str() == "the-token");
  BOOST_TEST(outcome.keys.account_id == "123456789012");
  BOOST_TEST(tests::seconds_left(outcome) > 3000);
  BOOST_TEST(tests::seconds_left(outcome) <= 3600);
}

BOOST_AUTO_TEST_CASE(end_of_keys_is_by_the_clock_that_the_fetch_names) {
  const Scripts scripts;
  const KeySourcePtr source = scripts.writes(document_that_ends(in_time(3600)));
  Asking behind(-3600s), ahead(7200s);
  BOOST_TEST(tests::seconds_left(behind.of(*source)) > 6000);
  BOOST_TEST(said(ahead.of(*source)) ==
             "failed: credential_process of profile \"x\": the program gave "
             "keys that have already expired");
}

BOOST_AUTO_TEST_CASE(time_that_the_program_takes_is_not_added_to_its_keys) {
  const Scripts scripts;
  Asking asking;
  const std::string document = document_that_ends(in_time(3600));
  const BootTime began = BootClock::now();
  const KeyOutcome outcome =
      asking.of(*scripts.source("sleep 2.1\necho '" + document + "'\n"));
  BOOST_TEST((outcome.ends < began + 3601s));
}

BOOST_AUTO_TEST_CASE(keys_that_have_ended_are_a_failure) {
  const Scripts scripts;
  Asking asking;
  for (const std::string& text : {in_time(-1), in_time(-100000)}) {
    BOOST_TEST(said(asking.of(*scripts.writes(document_that_ends(text)))) ==
               "failed: credential_process of profile \"x\": the program gave "
               "keys that have already expired");
  }
}

BOOST_AUTO_TEST_CASE(program_is_run_anew_each_time) {
  const Scripts scripts;
  Asking asking;
  const KeySourcePtr source = scripts.writes(kDocument);
  BOOST_TEST(asking.of(*source).keys.access_key_id == "id");
  scripts.write("text",
                R"({"Version":1,"AccessKeyId":"new","SecretAccessKey":"s"})");
  BOOST_TEST(asking.of(*source).keys.access_key_id == "new");
}

BOOST_AUTO_TEST_CASE(what_is_no_document_is_broken_and_not_shown) {
  const struct {
    const char* text;
    const char* reason;
  } cases[] = {
      {"", "the program wrote nothing"},
      {"the-secret", "the program's output is not a JSON object"},
      {"[]", "the program's output is not a JSON object"},
      {"Enter your the-secret: {}",
       "the program's output is not a JSON object"},
      {R"({"Version":1,"AccessKeyId":"i","SecretAccessKey":"the-secret"}})",
       "the program's output is not a JSON object"},
      {R"({"Version":1,"AccessKeyId":"i","SecretAccessKey":"the-sec)",
       "the program's output is not a JSON object"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"the-secret"})",
       "Version in the program's output is not 1"},
      {R"({"Version":2,"AccessKeyId":"i","SecretAccessKey":"the-secret"})",
       "Version in the program's output is not 1"},
      {R"({"Version":"1","AccessKeyId":"i","SecretAccessKey":"the-secret"})",
       "Version in the program's output is not 1"},
      {R"({"Version":1,"SecretAccessKey":"the-secret"})", nullptr},
      {R"({"Version":1,"AccessKeyId":"i"})", nullptr},
      {R"({"Version":1,"AccessKeyId":"i","SecretAccessKey":""})", nullptr},
      {R"({"Version":1,"AccessKeyId":"i","SecretAccessKey":"the-secret\n"})",
       nullptr},
      {R"({"Version":1,"AccessKeyId":"i","SecretAccessKey":"the-secret",)"
       R"("Expiration":"tomorrow"})",
       nullptr},
  };
  const Scripts scripts;
  Asking asking;
  for (const auto& c : cases) {
    const KeyOutcome outcome = asking.of(*scripts.writes(c.text));
    const std::string text = said(outcome);
    if (c.reason != nullptr) {
      BOOST_TEST(text == "broken: " + std::string(kPlace) + ": " + c.reason);
    }
    BOOST_TEST(text.rfind("broken: ", 0) == 0u);
    BOOST_TEST(has(text, kPlace));
    BOOST_TEST(!has(text, "the-sec"));
  }
}

BOOST_AUTO_TEST_CASE(document_may_be_64_kib_and_no_more) {
  const Scripts scripts;
  Asking asking;
  std::string text = kDocument;
  text.resize(kMaxJsonBytes, ' ');
  BOOST_TEST(said(asking.of(*scripts.writes(text))) ==
             std::string("found: ") + kPlace);
  text += ' ';
  const std::string too_long =
      "broken: credential_process of profile \"x\": the program wrote more "
      "than 64 KiB";
  BOOST_TEST(said(asking.of(*scripts.writes(text))) == too_long);
  BOOST_TEST(said(asking.of(*scripts.source("exec cat /dev/zero\n"))) ==
             too_long);
}

// --- How it ends -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(status_other_than_0_is_a_failure_whatever_was_written) {
  const Scripts scripts;
  Asking asking;
  const KeyOutcome outcome = asking.of(
      *scripts.source("echo '" + std::string(kDocument) + "'\nexit 3\n"));
  BOOST_TEST(said(outcome) ==
             "failed: credential_process of profile \"x\": the program ended "
             "with exit status 3");
}

BOOST_AUTO_TEST_CASE(what_a_failing_program_says_on_stderr_is_shown) {
  const Scripts scripts;
  Asking asking;
  const std::string failed =
      "failed: credential_process of profile \"x\": the program ended with "
      "exit status 3: ";
  const auto saying = [&](const std::string& text) {
    scripts.write("text", text);
    return said(asking.of(*scripts.source(
        "cat '" + (scripts.root / "text").string() + "' >&2\nexit 3\n")));
  };
  BOOST_TEST(saying("Error: the session is over\n") ==
             failed + "Error: the session is over");
  BOOST_TEST(saying("\nError: it is over\r\n\n  run corp-login\n\n") ==
             failed + "Error: it is over / run corp-login");
  BOOST_TEST(saying("a\x1b[2J\xe2\x80\xae\x7f\tb") ==
             failed + R"(a\x1b[2J\u202e\x7f\tb)");
  // Of a long text the end is shown, where the reason is.
  std::string much;
  while (much.size() < 100000) much += "  File \"x.py\", line 1\n";
  const std::string end = saying(much + "ValueError: no\n");
  BOOST_TEST(has(end, " / ValueError: no"));
  BOOST_TEST(end.size() < failed.size() + 320);
  BOOST_TEST(saying(std::string(100000, 'x')).size() < failed.size() + 320);
}

BOOST_AUTO_TEST_CASE(secrets_that_a_program_says_on_stderr_are_hidden) {
  const Scripts scripts;
  Asking asking;
  const std::string secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  const std::string plain = "secret-of-small-letters";
  for (const std::string& line : std::vector<std::string>{
           "refused: " + secret, "refused: key=" + secret + ";",
           "refused: '" + secret.substr(0, 30) + "'",
           "refused: eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIi",
           "refused: token-5f4dcc3b5aa765d61d8327deb882cf99",
           "refused: t=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}) {
    const std::string told = said(
        asking.of(*scripts.source("cat >&2 <<'E'\n" + line + "\nE\nexit 1\n")));
    BOOST_TEST(has(told, ": refused: "), told);
    BOOST_TEST(has(told, "(hidden)"), told);
    BOOST_TEST(!has(told, secret.substr(0, 12)), told);
    for (const char* part : {"eyJ", "5f4d", "JBSW"}) {
      BOOST_TEST(!has(told, part), told);
    }
  }
  // A secret that does not look like one, but is in its document.
  const std::string told = said(asking.of(*scripts.source(
      "echo '{\"Version\":1,\"AccessKeyId\":\"i\",\"SecretAccessKey\":\"" +
      plain + "\"}'\necho 'bad " + plain + "' >&2\nexit 1\n")));
  BOOST_TEST(has(told, ": bad (hidden)"), told);
  BOOST_TEST(!has(told, plain), told);
}

// A shell ends with status 127 if a command is not found.  Another attempt
// would not help.
BOOST_AUTO_TEST_CASE(program_whose_command_is_not_there_is_broken_at_once) {
  const Scripts scripts;
  Asking asking;
  const std::string told =
      said(asking.of(*scripts.source("no-such-command-anywhere\n")));
  BOOST_TEST(has(told,
                 "broken: credential_process of profile \"x\": the "
                 "program ended with exit status 127: "),
             told);
  BOOST_TEST(has(told, "no-such-command-anywhere: not found"), told);
  const std::string nothing =
      said(asking.of(*scripts.source("echo 'no keys for you' >&2\n")));
  BOOST_TEST(nothing ==
             "broken: credential_process of profile \"x\": the "
             "program wrote nothing: no keys for you");
}

// A full pipe would block it.
BOOST_AUTO_TEST_CASE(program_that_says_much_on_stderr_is_heard_to_its_end) {
  const Scripts scripts;
  Asking asking;
  BOOST_TEST(
      said(asking.of(*scripts.source("head -c 1000000 /dev/zero >&2\necho '" +
                                     std::string(kDocument) + "'\n"))) ==
      std::string("found: ") + kPlace);
}

BOOST_AUTO_TEST_CASE(death_by_a_signal_is_a_failure) {
  const Scripts scripts;
  Asking asking;
  BOOST_TEST(said(asking.of(*scripts.source("kill -9 $$\n"))) ==
             "failed: credential_process of profile \"x\": the program was "
             "ended by signal 9");
}

BOOST_AUTO_TEST_CASE(program_that_cannot_be_started_is_broken) {
  const Scripts scripts;
  Asking asking;
  const std::string before =
      "broken: credential_process of profile \"x\": the program cannot be "
      "started: ";
  const auto of = [&](const std::string& command) {
    return said(asking.of(*process_keys(command, kPlace)));
  };
  BOOST_TEST(of("'/no such/program' the-secret") ==
             before + "No such file or directory");
  BOOST_TEST(of("no-such-program-anywhere") ==
             before + "No such file or directory");
  BOOST_TEST(of("''") == before + "No such file or directory");
  BOOST_TEST(of("'" + scripts.root.string() + "'") ==
             before + "Permission denied");
  // No shell takes over where the kernel does not know what to do.
  const std::string script = scripts.write("plain", "exit 0\n");
  BOOST_TEST_REQUIRE(chmod(script.c_str(), 0700) == 0);
  BOOST_TEST(of("'" + script + "'") == before + "Exec format error");
}

BOOST_AUTO_TEST_CASE(program_is_searched_for_in_the_path) {
  const Scripts scripts;
  Asking asking;
  scripts.write("text", kDocument);
  BOOST_TEST(said(asking.of(*process_keys(
                 "cat '" + (scripts.root / "text").string() + "'", kPlace))) ==
             std::string("found: ") + kPlace);
}

BOOST_AUTO_TEST_CASE(program_that_takes_too_long_is_ended_with_its_children) {
  const Scripts scripts;
  Asking asking;
  const std::string children = "sleep 1000 &\necho $! >child\nwait\n";
  for (const std::string& trap :
       {std::string(), std::string("trap '' TERM\n")}) {
    const KeyOutcome outcome = asking.of(
        *scripts.source("cd '" + scripts.root.string() + "'\n" + trap +
                        "echo $$ >self\n" + children + children),
        4s);  // In which it has begun.
    BOOST_TEST(has(said(outcome),
                   "failed: credential_process of profile \"x\": the program "
                   "did not end in "));
    BOOST_TEST(was_reaped(scripts.pid_in("self")));
    BOOST_TEST(ends(scripts.pid_in("child")));
  }
}

BOOST_AUTO_TEST_CASE(program_is_ended_when_nobody_waits_any_more) {
  const Scripts scripts;
  Asking asking;
  const KeySourcePtr source = scripts.source(
      "cd '" + scripts.root.string() + "'\necho $$ >self\nexec sleep 1000\n");
  const KeyOutcome outcome =
      asking.stopped(*source, [&] { scripts.pid_in("self"); });
  BOOST_TEST(said(outcome) ==
             "failed: credential_process of profile \"x\": given up, because "
             "nobody waits for it any more");
  BOOST_TEST(was_reaped(scripts.pid_in("self")));
}

BOOST_AUTO_TEST_CASE(program_that_ended_is_not_waited_for_by_its_pipe) {
  const Scripts scripts;
  Asking asking;
  const KeyOutcome outcome = asking.of(*scripts.source(
      "cd '" + scripts.root.string() + "'\nsleep 1000 &\necho $! >child\n" +
      "echo '" + kDocument + "'\n"));
  BOOST_TEST(said(outcome) == std::string("found: ") + kPlace);
  const pid_t child = scripts.pid_in("child");  // A daemon, and lives on.
  BOOST_TEST(runs(child));
  kill(child, SIGKILL);
}

BOOST_AUTO_TEST_CASE(program_that_closed_its_stdout_is_waited_for) {
  const Scripts scripts;
  Asking asking;
  BOOST_TEST(said(asking.of(*scripts.source("echo '" + std::string(kDocument) +
                                            "'\nexec >&-\nsleep 0.2\n"))) ==
             std::string("found: ") + kPlace);
  BOOST_TEST(
      said(asking.of(*scripts.source("echo '" + std::string(kDocument) +
                                     "'\nexec >&-\nsleep 0.2\nexit 1\n"))) ==
      "failed: credential_process of profile \"x\": the program ended "
      "with exit status 1");
}

BOOST_AUTO_TEST_CASE(program_that_writes_slowly_is_heard_to_its_end) {
  const Scripts scripts;
  Asking asking;
  BOOST_TEST(
      said(asking.of(*scripts.source(
          "printf '{\"Version\":1,\"AccessKeyId\":\"i\",'\nsleep 0.2\n"
          "printf '\"SecretAccessKey\":\"s\"'\nsleep 0.2\necho '}'\n"))) ==
      std::string("found: ") + kPlace);
}

BOOST_AUTO_TEST_CASE(ended_program_leaves_no_zombie) {
  const Scripts scripts;
  Asking asking;
  for (const char* end : {"exit 0\n", "exit 1\n", "kill -9 $$\n"}) {
    asking.of(*scripts.source("cd '" + scripts.root.string() +
                              "'\necho $$ >self\n" + end));
    BOOST_TEST(was_reaped(scripts.pid_in("self")));
  }
}

// Then the kernel reaps, and tells nobody the status.
BOOST_AUTO_TEST_CASE(keys_are_found_where_sigchld_is_ignored) {
  const Disposition ignored(SIGCHLD, SIG_IGN);
  const Scripts scripts;
  Asking asking;
  BOOST_TEST(said(asking.of(*scripts.writes(kDocument))) ==
             std::string("found: ") + kPlace);
  BOOST_TEST(has(said(asking.of(*scripts.source("exit 3\n"))),
                 "broken: credential_process of profile \"x\": the program "
                 "wrote nothing"));
  BOOST_TEST(has(said(asking.of(*scripts.source("exec sleep 1000\n"), 300ms)),
                 "did not end in"));
}

// --- What it finds ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(program_inherits_no_files_of_ours) {
  const Scripts scripts;
  Asking asking;
  const int open_file = open("/dev/zero", O_RDONLY);  // Not close-on-exec.
  BOOST_TEST_REQUIRE(open_file > 2);
  const int stdin_before = dup(0);
  BOOST_TEST_REQUIRE(dup2(open_file, 0) == 0);
  asking.of(*scripts.source("cd '" + scripts.root.string() +
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

BOOST_AUTO_TEST_CASE(program_has_default_signals_and_a_group_of_its_own) {
  const Scripts scripts;
  Asking asking;
  const Disposition interrupts(SIGINT, SIG_IGN), pipes(SIGPIPE, SIG_IGN);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  // Programs, for a shell has dispositions of its own.
  const KeyOutcome outcome = asking.of(*process_keys(
      "dd if=/proc/self/status of='" + (scripts.root / "status").string() + "'",
      kPlace));
  asking.of(*process_keys(
      "dd if=/proc/self/stat of='" + (scripts.root / "stat").string() + "'",
      kPlace));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  BOOST_TEST(has(said(outcome), "wrote nothing"));
  const std::string status = scripts.file("status");
  BOOST_TEST(mask_in(status, "SigBlk:") == 0u);
  // But for two that are the C library's own.
  BOOST_TEST((mask_in(status, "SigIgn:") & 0x7fffffff) == 0u);
  // "PID (dd) STATE PARENT GROUP ..."
  int pid = 0, group = 0;
  BOOST_TEST_REQUIRE(sscanf(scripts.file("stat").c_str(), "%d (dd) %*c %*d %d",
                            &pid, &group) == 2);
  BOOST_TEST(group == pid);
}

BOOST_AUTO_TEST_CASE(program_has_our_environment_and_directory) {
  const Scripts scripts;
  Asking asking;
  setenv("DDBMUTEX_TEST_OF_A_PROCESS", "seen", 1);
  asking.of(*scripts.source("cd '" + scripts.root.string() +
                            "'\necho $DDBMUTEX_TEST_OF_A_PROCESS >variable\n"));
  unsetenv("DDBMUTEX_TEST_OF_A_PROCESS");
  BOOST_TEST(scripts.file("variable") == "seen\n");
}

BOOST_AUTO_TEST_CASE(fetch_leaves_no_file_open) {
  const Scripts scripts;
  Asking asking;
  asking.of(*scripts.writes(kDocument));  // What is opened once.
  const auto before = open_files();
  for (int i = 0; i < 3; ++i) {
    asking.of(*scripts.writes(kDocument));
    asking.of(*scripts.source("exit 1\n"));
    asking.of(*process_keys("/no/such/program", kPlace));
  }
  BOOST_TEST(open_files() == before);
}

BOOST_AUTO_TEST_CASE(what_a_program_wrote_is_wiped_from_memory) {
  const Scripts scripts;
  Asking asking;
  const std::string path = (scripts.root / "keys").string();
  const auto asked_for = [&](tests::Needle& needle, const std::string& before,
                             sigv4::Secret sigv4::Credentials::*member) {
    needle.write(path, before, R"("})");
    const KeyOutcome outcome =
        asking.of(*scripts.source("cat '" + path + "'\n"));
    BOOST_TEST(said(outcome) == std::string("found: ") + kPlace);
    BOOST_TEST(needle.is_in((outcome.keys.*member).str()));
  };
  const std::string id = R"({"Version":1,"AccessKeyId":"id",)";
  // In an allocation among others, and in memory of its own.
  for (const unsigned blanks : {0u, 1000u, 20000u}) {
    const std::string begin = std::string(blanks, ' ') + id;
    tests::Needle secret(5001 + blanks), token(5002 + blanks);
    asked_for(secret, begin + R"("SecretAccessKey":")",
              &sigv4::Credentials::secret_access_key);
    BOOST_TEST(!secret.is_in_memory(), blanks);
    asked_for(token, begin + R"("SecretAccessKey":"s","SessionToken":")",
              &sigv4::Credentials::session_token);
    BOOST_TEST(!token.is_in_memory(), blanks);
  }
}

BOOST_AUTO_TEST_SUITE_END()
