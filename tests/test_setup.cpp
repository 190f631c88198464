// What tests/setup installs before `make` builds, tried on a machine that has
// nothing; and the engine of `make engine`.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/listening.hpp"
#include "tests/support/process.hpp"
#include "tests/support/pty.hpp"
#include "tests/support/shell.hpp"

namespace {

namespace fs = std::filesystem;
using namespace tests;

// A machine with nothing but a few tools and an apt-get that installs a command
// with each package's name.  It has a copy of what tests/setup reads.
class BareMachine {
 public:
  explicit BareMachine(const std::string& processor) {
    for (const char* folder : {"", "engines/dynoxide", "engines/dynalite"}) {
      const fs::path from = project() / "tests" / folder;
      const fs::path to = home_.root / "tree/tests" / folder;
      fs::create_directories(to);
      fs::copy_file(from / "package-lock.json", to / "package-lock.json");
    }
    fs::copy_file(project() / "tests/setup", home_.root / "tree/tests/setup");
    fs::create_directory(home_.root / "bin");
    for (const char* tool :
         {"cat", "chmod", "cmp", "cp", "dirname", "grep", "mkdir"}) {
      const Ran found =
          shell(std::string("printf %s \"$(command -v ") + tool + ")\"");
      fs::create_symlink(found.said, home_.root / "bin" / tool);
    }
    command("id", "echo 0");
    command("uname", "echo " + processor);
    command(
        "apt-get",
        "echo \"apt-get $*\"\n"
        "case \" $* \" in\n"
        "  *' -s '*) echo 'Inst one'; echo 'Inst another' ;;\n"
        "  *' install '*)\n"
        "    for package; do cp \"$HOME/any\" \"$HOME/bin/$package\"; done\n"
        "    cp \"$HOME/any\" \"$HOME/bin/node\" ;;\n"
        "esac\n");
    // A compiler that finds every header, or npm.
    make("any",
         "[ \"$1\" != ci ] || { echo \"npm ci $3\"; mkdir $3/node_modules; }");
  }

  void command(const std::string& name, const std::string& script) const {
    make("bin/" + name, script);
  }

  // Runs tests/setup as make would, with these variables of the user's.
  Ran setup(const std::string& target,
            const std::string& variables = "") const {
    const std::string root = home_.root.string();
    return shell("env -i HOME='" + root + "' PATH='" + root + "/bin' " +
                 variables + " '" + root + "/tree/tests/setup' " + target);
  }

 private:
  void make(const std::string& name, const std::string& script) const {
    fs::permissions(home_.write(name, "#!/bin/sh\n" + script + "\n"),
                    fs::perms::owner_all);
  }

  const Home home_;
};

const std::string kLibrary =
    "g++ libcurl4-openssl-dev libssl-dev rapidjson-dev";

// All that it prints if it installs these packages and fetches these folders.
std::string installing(const std::string& packages, const std::string& note,
                       const std::vector<std::string>& folders) {
  std::string said = "Installing: " + packages + "\n" + note +
                     "apt-get update -qq\n"
                     "Packages with all that these need: 2\n"
                     "apt-get install -qq -y --no-install-recommends " +
                     packages + "\n";
  for (const std::string& folder : folders) {
    said += "Fetching: the packages of " + folder +
            "/package.json\n"
            "npm ci " +
            folder + "\n";
  }
  return said;
}

const std::string kAboutNpm =
    "(npm fetches the DynamoDB engine of the demo.  If you have one, name it "
    "in AWS_ENDPOINT_URL_DYNAMODB: then npm is not needed.)\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(setup_of_a_machine)

BOOST_AUTO_TEST_CASE(demo_installs_what_it_needs_and_says_so_first) {
  const BareMachine machine("x86_64");
  BOOST_TEST(machine.setup("demo").said ==
             installing(kLibrary + " npm ca-certificates", kAboutNpm,
                        {"tests/engines/dynoxide"}));
  // All is there now.
  const Ran again = machine.setup("demo");
  BOOST_TEST(again.said == "");
  BOOST_TEST(again.status == 0);
}

BOOST_AUTO_TEST_CASE(without_apt_or_root_it_says_what_to_install) {
  const BareMachine machine("x86_64");
  machine.command("id", "echo 1000");
  const Ran ran = machine.setup("demo");
  BOOST_TEST(ran.status == 1);
  BOOST_TEST(ran.said == "Please install (Debian's names): " + kLibrary +
                             " npm ca-certificates\n");
  // With sudo, it is as root would have it.
  machine.command("sudo", "shift; exec \"$@\"");
  BOOST_TEST(machine.setup("demo").status == 0);
  BOOST_TEST(machine.setup("demo").said == "");
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

// As from a shell, whatever make runs this test.
std::vector<std::string> environment_of_a_shell() {
  std::vector<std::string> variables = clean_environment();
  const auto is_of_make = [](const std::string& variable) {
    return std::regex_match(variable, std::regex("(MAKE|MFLAGS)[^]*"));
  };
  variables.erase(
      std::remove_if(variables.begin(), variables.end(), is_of_make),
      variables.end());
  return variables;
}

// `make engine`, and what it tells a reader to paste into a shell.
struct OwnEngine {
  OwnEngine() {
    BOOST_TEST_REQUIRE(make.says("Ctrl-C stops the engine."), make.text());
    lines = std::regex_replace(between(make.text(), "\r\n\r\n", "\r\n\r\n"),
                               std::regex("\r"), "");
    port = std::stoi(between(lines, "127.0.0.1:", "\n"));
  }

  // In a shell with these lines and nothing else.
  Ran run(const std::string& command) const {
    return shell("env -i PATH=\"$PATH\" HOME=/nonexistent sh -ec '" + lines +
                 "\n" + command + "'");
  }

  Pty make{{"/usr/bin/env", "make", "--no-print-directory", "-C",
            project().string(), "engine"},
           environment_of_a_shell()};
  std::string lines;
  int port = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_of_ones_own)

BOOST_AUTO_TEST_CASE(engine_is_there_for_who_pastes_what_it_says) {
  OwnEngine engine;
  const Ran ran = engine.run(program_path("../examples/ddbmutex/ddbmutex") +
                             " run job -- echo locked");
  BOOST_TEST(ran.said == "locked\n");
  BOOST_TEST(ran.status == 0);
  engine.make.type(Pty::kCtrlC);
  BOOST_TEST(engine.make.end() != -1, engine.make.text());
  BOOST_TEST(falls_silent(engine.port));
}

BOOST_AUTO_TEST_SUITE_END()
