// How the library is built and used by others: as two files, installed, in
// packages, the core alone.  Then what tests/setup installs, and `make engine`.
// Last, rules for the sources: which may include which, and which may ask the
// system for what.
//
// `make ways` runs what packaging/README.md says for each build system and
// package manager.
#include <rapidjson/document.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/listening.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/pty.hpp"
#include "tests/support/shell.hpp"

namespace fs = std::filesystem;
using namespace tests;

namespace {

using Set = std::set<std::string>;

// The extras' public headers, by name.  All others are internal.
const Set kPublicExtras = {"admin",   "any_of",    "guarded_write",
                           "layouts", "recursive", "stored"};

bool is_public(const fs::path& file) {
  return file == "ddbmutex.hpp" ||
         (file.parent_path() == "extras" && file.extension() == ".hpp" &&
          kPublicExtras.count(file.stem()) == 1);
}

// The sources and headers in these folders and those below them, as paths from
// the top of the project.
Set sources_below(const Set& folders) {
  Set files;
  for (const std::string& folder : folders) {
    for (const auto& entry :
         fs::recursive_directory_iterator(project() / folder)) {
      const fs::path kind = entry.path().extension();
      if (kind != ".cpp" && kind != ".hpp") continue;
      files.insert(fs::relative(entry.path(), project()));
    }
  }
  return files;
}

Set core_sources() {
  Set files = sources_below({"ddbmutex", "sigv4"});
  files.insert({"ddbmutex.cpp", "ddbmutex.hpp"});
  return files;
}

Set all_sources() {
  Set files = core_sources();
  files.merge(sources_below({"extras"}));
  return files;
}

// The first line of each file that people copy.
const std::string kLicence =
    "// Copyright (c) 2026 The ddbmutex authors.  "
    "SPDX-License-Identifier: MIT\n";

// The directory of this build.
std::string build() {
  return fs::path(program_path("")).parent_path().parent_path();
}

}  // namespace

// --- Two files ---------------------------------------------------------------

namespace {

const std::string kTwoFiles = "build/amalgamation/";

std::string compile(const std::string& standard) {
  return compiler() + " -std=" + standard +
         " -pthread -O0 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
         " -I" +
         kTwoFiles + " ";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(two_files)

// They include nothing but each other, and contain every other file.
void check_two_files(const std::string& name, const Set& files) {
  const std::string whole = read_file(kTwoFiles + name + ".cpp");
  const std::string header = read_file(kTwoFiles + name + ".hpp");
  BOOST_TEST((all_matches(whole + header, "^ *# *include \"(.*)\"") ==
              std::vector<std::string>{name + ".hpp"}));
  BOOST_TEST(all_matches(whole, "^(# *if.*DDBMUTEX.*)$").empty());
  Set contained;
  for (const std::string& file : files) {
    if (!is_public(file)) contained.insert(file);
  }
  BOOST_TEST(as_set(all_matches(whole, "^// ---- (.*)$")) == contained,
             boost::test_tools::per_element());
  for (const std::string& text : {whole, header}) {
    BOOST_TEST(text.rfind(kLicence, 0) == 0u);
    BOOST_TEST(all_matches(text, "(SPDX)").size() == 1u);
    BOOST_TEST(has(text, "// " + read_file("LICENSE").substr(0, 11)));
  }
}

BOOST_AUTO_TEST_CASE(two_files_have_every_source_and_no_other_header) {
  BOOST_TEST_REQUIRE(shell("make -s amalgamation").status == 0);
  check_two_files("ddbmutex", core_sources());
  check_two_files("ddbmutex_all", all_sources());
  const std::string core = read_file(kTwoFiles + "ddbmutex.hpp");
  const std::string all = read_file(kTwoFiles + "ddbmutex_all.hpp");
  for (const std::string& extra : kPublicExtras) {
    // Its include guard.
    const std::string guard =
        between(read_file("extras/" + extra + ".hpp"), "#ifndef ", "\n");
    BOOST_TEST(has(all, "#define " + guard + "\n"));
    BOOST_TEST(!has(core, guard));
  }
  BOOST_TEST(has(core, "\nclass DdbMutex {\n"));
}

// Only in `make ways` (DDBMUTEX_WAYS), because it takes long.
BOOST_AUTO_TEST_CASE(two_files_compile_by_every_standard_without_a_warning) {
  if (std::getenv("DDBMUTEX_WAYS") == nullptr) return;
  BOOST_TEST_REQUIRE(shell("make -s amalgamation").status == 0);
  for (const std::string name : {"ddbmutex", "ddbmutex_all"}) {
    for (const std::string how : {"c++17", "c++2b", "c++17 -fno-exceptions"}) {
      const Ran ran =
          shell(compile(how) + "-c -o /dev/null " + kTwoFiles + name + ".cpp");
      BOOST_TEST(ran.said == "", name << ", " << how << ": " << ran.said);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Installed ---------------------------------------------------------------

namespace {

// `make install` of this build, without building anything.  The shared library
// is the one of `make noexcept`.
class Installation {
 public:
  Installation() { make("install PREFIX='" + prefix() + "'"); }

  static const Installation& only() {
    static const Installation installation;
    return installation;
  }

  std::string prefix() const { return (home_.root / "prefix").string(); }
  static std::string shared() {
    return replaced(build(), "[^/-]+(-[^/]*)$", "noexcept$1") +
           "/libddbmutex.so";
  }

  void make(const std::string& what) const {
    const Ran ran =
        shell("make -s " + what + " BUILD='" + build() + "' CXX='" +
              compiler() + "' SHARED='" + shared() + "' -o '" + build() +
              "/libddbmutex.a' -o '" + build() + "/libddbmutex-core.a' -o '" +
              build() + "/examples/ddbmutex/ddbmutex'");
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  }

 private:
  const Home home_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(installed)

BOOST_AUTO_TEST_CASE(files_are_installed_and_uninstalled) {
  const Home home;
  const std::string there = home.root.string();
  const std::string where =
      " PREFIX=/usr LIBDIR=/usr/lib/here DESTDIR='" + there + "'";
  fs::create_directories(home.root / "usr/include/another");
  Installation::only().make("install" + where);
  const std::string find = "cd '" + there + "' && find usr ! -type d";
  BOOST_TEST(shell(find + " | LC_ALL=C sort").said ==
             "usr/bin/ddbmutex\n"
             "usr/include/ddbmutex.hpp\n"
             "usr/include/ddbmutex/admin.hpp\n"
             "usr/include/ddbmutex/any_of.hpp\n"
             "usr/include/ddbmutex/guarded_write.hpp\n"
             "usr/include/ddbmutex/layouts.hpp\n"
             "usr/include/ddbmutex/recursive.hpp\n"
             "usr/include/ddbmutex/stored.hpp\n"
             "usr/lib/here/cmake/ddbmutex/ddbmutex-config-version.cmake\n"
             "usr/lib/here/cmake/ddbmutex/ddbmutex-config.cmake\n"
             "usr/lib/here/libddbmutex-core.a\n"
             "usr/lib/here/libddbmutex.a\n"
             "usr/lib/here/libddbmutex.so\n"
             "usr/lib/here/libddbmutex.so.0\n"
             "usr/lib/here/libddbmutex.so." DDBMUTEX_VERSION_STRING
             "\n"
             "usr/lib/here/pkgconfig/ddbmutex.pc\n"
             "usr/share/bash-completion/completions/ddbmutex\n"
             "usr/share/fish/vendor_completions.d/ddbmutex.fish\n"
             "usr/share/man/man1/ddbmutex.1\n"
             "usr/share/zsh/site-functions/_ddbmutex\n");
  BOOST_TEST(
      shell("diff '" + there +
            "/usr/share/zsh/site-functions/_ddbmutex' - <<'.'\n" +
            shell(build() + "/examples/ddbmutex/ddbmutex completion zsh").said +
            ".\n")
          .said == "");
  // The path without DESTDIR, where it will be used.
  const std::string pc =
      read_file(home.root / "usr/lib/here/pkgconfig/ddbmutex.pc");
  BOOST_TEST(has(pc, "\nlibdir=/usr/lib/here\n"));
  BOOST_TEST(!has(pc, there));
  Installation::only().make("uninstall" + where);
  BOOST_TEST(shell(find).said == "");
  BOOST_TEST(!fs::exists(home.root / "usr/include/ddbmutex"));
  BOOST_TEST(fs::exists(home.root / "usr/include/another"));
}

BOOST_AUTO_TEST_CASE(installed_headers_include_no_other_file_of_ours) {
  const std::string include = Installation::only().prefix() + "/include";
  const Ran ran = shell(compiler() + " -std=c++17 -fsyntax-only -include '" +
                        include + "'/ddbmutex/*.hpp -x c++ /dev/null");
  BOOST_TEST(ran.said == "");
}

BOOST_AUTO_TEST_CASE(version_is_that_of_the_header_everywhere) {
  const fs::path lib = fs::path(Installation::only().prefix()) / "lib";
  const std::string version = DDBMUTEX_VERSION_STRING;
  BOOST_TEST(has(read_file(lib / "pkgconfig/ddbmutex.pc"),
                 "\nVersion: " + version + "\n"));
  BOOST_TEST(
      has(read_file(lib / "cmake/ddbmutex/ddbmutex-config-version.cmake"),
          "\nset(PACKAGE_VERSION " + version + ")\n"));
  BOOST_TEST(all_matches(read_file("CHANGELOG.md"), "^## (\\S+)$").at(0) ==
             version);
  const auto spaces =
      all_matches(read_file("ddbmutex.hpp"), "^inline namespace v(\\d+) \\{$");
  BOOST_TEST_REQUIRE(spaces.size() == 1u);
  const std::string name =
      shell("readelf -d '" + lib.string() + "/libddbmutex.so' | grep SONAME")
          .said;
  BOOST_TEST(has(name, "[libddbmutex.so." + spaces[0] + "]"), name);
  BOOST_TEST(fs::exists(project() / "packaging/abi" /
                        ("libddbmutex.so." + spaces[0] + ".abi.xz")));
}

// A program must not be able to rely on what the public headers do not declare.
BOOST_AUTO_TEST_CASE(shared_library_exports_the_public_interface_alone) {
  const Ran ran =
      shell("nm -DC --defined-only '" + Installation::only().shared() + "'");
  const auto shown = all_matches(ran.said, "^\\w+ \\w (.*)$");
  BOOST_TEST(shown.size() > 50u);
  for (const std::string& symbol : shown) {
    const std::string name = symbol.substr(0, symbol.find('('));
    BOOST_TEST(
        all_matches(name, "((?:sigv4|lock|dynamodb)::|Impl|rapidjson)").empty(),
        symbol);
  }
  for (const char* name :
       {"DdbMutex::lock(std::error_code&)", "AnyOf::lock(std::error_code&)",
        "::create_table(", "::table_exists(", "::list_locks(",
        "::force_unlock(", "::guarded_write(", "::condition_check", "::to_item",
        "::attributes_of(", "::layouts::lease\n",
        "vtable for ddbmutex::v0::Error", "name_of(ddbmutex::v0::Loss)"}) {
    BOOST_TEST(has(ran.said, name), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Packages ----------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(packages)

namespace {

const std::string kPort = "packaging/vcpkg/ddbmutex/";
const std::string kConan = "packaging/conan/conanfile.py";

Set words_of(const std::string& text) {
  return as_set(all_matches(text, "(\\w+)"));
}

rapidjson::Document manifest() {
  rapidjson::Document json;
  json.Parse(read_file(kPort + "vcpkg.json").c_str());
  BOOST_TEST_REQUIRE(json.IsObject());
  return json;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_package_has_the_extras_as_an_option) {
  const auto json = manifest();
  BOOST_TEST(json["features"].HasMember("extras"));
  BOOST_TEST(json["default-features"][0].GetString() == "extras");
  BOOST_TEST(has(read_file(kPort + "portfile.cmake"),
                 "\n    extras DDBMUTEX_EXTRAS\n"));
  BOOST_TEST(has(read_file(kConan), "\"extras\": [True, False]"));
  BOOST_TEST(has(read_file(kConan), "variables[\"DDBMUTEX_EXTRAS\"]"));
  const std::string cmake = read_file("CMakeLists.txt");
  BOOST_TEST(has(cmake, "\noption(DDBMUTEX_EXTRAS "));
  BOOST_TEST(words_of(between(cmake, "foreach(name ", ")")) == kPublicExtras,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

// --- The core alone ----------------------------------------------------------

// A program with the core locks, and is told which extra it lacks for more.
BOOST_AUTO_TEST_SUITE(core_alone)

namespace {

// Takes the lock "job" in the table that its argument names.  It includes the
// library's source, so that the compiler reads the headers only once.
constexpr char kProgram[] = R"(
#include "ddbmutex.cpp"
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
int main(int, char** arguments) try {
  ddbmutex::TableOptions where;
  where.name = arguments[1];
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(where);
  ddbmutex::DdbMutex mutex("job", options);
  std::lock_guard<ddbmutex::DdbMutex> guard(mutex);
  std::puts("locked");
} catch (const std::exception& error) {
  std::puts(error.what());
}
)";

// The program, compiled once.
class Core {
 public:
  static const Core& program() {
    static const Core program;
    return program;
  }

  // With these variables, this text in its config file, and nothing else.
  std::string says(const std::string& variables,
                   const std::string& table = "locks",
                   const std::string& config = "") const {
    home_.write(".aws/config", config);
    return shell("env -i HOME='" + home_.root.string() +
                 "' AWS_EC2_METADATA_DISABLED=true " + variables + " '" +
                 home_.root.string() + "/program' " + table)
        .said;
  }

 private:
  Core() {
    const std::string source = home_.write("program.cpp", kProgram);
    const Ran ran =
        shell("make -s amalgamation >&2 && " + compile("c++17") + source +
              " -o '" + home_.root.string() + "/program' -lcurl -lcrypto");
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  }

  const Home home_;
};

// The symbols of ours, as the linker knows them, that the core library wants or
// has.
Set symbols(const std::string& which, const std::string& line) {
  const Ran ran =
      shell("nm --" + which + " '" + build() + "/libddbmutex-core.a'");
  BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  return as_set(all_matches(ran.said, line + " (\\S*8ddbmutex\\S*)$"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(core_library_wants_nothing_of_the_extras) {
  const Set has = symbols("defined-only", "^\\w+ \\w");
  BOOST_TEST(has.size() > 500u);
  for (const std::string& wanted : symbols("undefined-only", "^ +U")) {
    BOOST_TEST(has.count(wanted) == 1u, wanted);
  }
}

BOOST_AUTO_TEST_CASE(core_locks_with_the_keys_of_the_environment) {
  Engine& engine = Engine::running(any_engine_kind());
  const auto keys = engine.credentials();
  const std::string variables =
      "AWS_ENDPOINT_URL=" + engine.url() + " AWS_REGION=" + engine.region() +
      " AWS_ACCESS_KEY_ID=" + keys->access_key_id +
      " AWS_SECRET_ACCESS_KEY=" + keys->secret_access_key;
  BOOST_TEST(Core::program().says(variables, engine.create_table()) ==
             "locked\n");
}

// To use other keys than the user meant would be worse than to refuse.
BOOST_AUTO_TEST_CASE(core_names_the_extra_that_is_missing) {
  const std::string place = "AWS_REGION=eu-west-1 ";
  const std::string needs_keys =
      ", which needs extras/keys (compile ddbmutex_all.cpp, or all sources "
      "with -DDDBMUTEX_EXTRAS)";
  const std::string needs_endpoints =
      ", which needs extras/endpoints (compile ddbmutex_all.cpp, or all "
      "sources with -DDDBMUTEX_EXTRAS)";
  const struct {
    std::string variables, config, said;
  } kRefused[] = {
      {place, "[default]\nrole_arn = x\nsource_profile = y\n", needs_keys},
      {place, "[default]\ncredential_process = x\n", needs_keys},
      {place, "[default]\nsso_session = x\n", needs_keys},
      {place + "AWS_WEB_IDENTITY_TOKEN_FILE=/token", "", needs_keys},
      {place + "AWS_USE_FIPS_ENDPOINT=true", "", needs_endpoints},
      {place + "AWS_USE_DUALSTACK_ENDPOINT=true", "", needs_endpoints},
  };
  for (const auto& [variables, config, wanted] : kRefused) {
    const std::string said = Core::program().says(variables, "locks", config);
    BOOST_TEST(has(said, wanted), said);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Before the build --------------------------------------------------------

// What tests/setup installs on a machine that has nothing.
BOOST_AUTO_TEST_SUITE(setup_of_a_machine)

namespace {

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

// What tests/setup prints if it installs these packages and fetches the npm
// packages of these folders.
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
  // With sudo, it installs them.
  machine.command("sudo", "shift; exec \"$@\"");
  BOOST_TEST(machine.setup("demo").status == 0);
  BOOST_TEST(machine.setup("demo").said == "");
}

BOOST_AUTO_TEST_SUITE_END()

// --- An engine ---------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(engine_of_ones_own)

namespace {

// Without the variables of a `make` that may run this test.
std::vector<std::string> environment_of_a_shell() {
  std::vector<std::string> variables = clean_environment();
  const auto is_of_make = [](const std::string& variable) {
    return variable.rfind("MAKE", 0) == 0 || variable.rfind("MFLAGS", 0) == 0;
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
    lines = replaced(between(make.text(), "\r\n\r\n", "\r\n\r\n"), "\r", "");
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

BOOST_AUTO_TEST_CASE(lines_that_it_prints_lead_to_the_engine_until_ctrl_c) {
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

// --- The sources -------------------------------------------------------------

// Each folder is a layer.  A file includes only files of its own layer and of
// those below it.
BOOST_AUTO_TEST_SUITE(repository)

namespace {

const std::vector<std::string> kLayers = {"extras",        "ddbmutex",
                                          "ddbmutex/lock", "ddbmutex/dynamodb",
                                          "sigv4/keys",    "sigv4"};

// The headers that a file includes with angle brackets.
std::vector<std::string> libraries(const std::string& file) {
  return all_matches(read_file(file), "^ *# *include <([^>]+)>");
}

// The library's own headers that a file includes, as paths from the top of the
// project.  The sources name them relative to themselves, so that no file on an
// application's include path is taken instead.
std::vector<std::string> includes(const std::string& file) {
  std::vector<std::string> found;
  const fs::path folder = fs::path(file).parent_path();
  for (const std::string& name :
       all_matches(read_file(file), "^ *# *include \"([^\"]+)\"")) {
    found.push_back((folder / name).lexically_normal().string());
  }
  return found;
}

std::size_t layer_of(const std::string& file) {
  std::string folder = fs::path(file).parent_path().string();
  if (folder.empty()) folder = "ddbmutex";
  if (folder == "extras/keys") folder = "extras";
  const auto layer = std::find(kLayers.begin(), kLayers.end(), folder);
  BOOST_TEST_REQUIRE((layer != kLayers.end()), file);
  return static_cast<std::size_t>(layer - kLayers.begin());
}

}  // namespace

BOOST_AUTO_TEST_CASE(layers_include_only_themselves_and_those_below) {
  std::vector<std::string> upwards;
  int found = 0;
  for (const std::string& file : all_sources()) {
    for (const std::string& included : includes(file)) {
      BOOST_TEST_REQUIRE(fs::exists(project() / included),
                         file << " includes " << included);
      if (layer_of(included) < layer_of(file)) {
        upwards.push_back(file + " includes " + included);
      }
      ++found;
    }
  }
  BOOST_TEST(found > 300);
  const std::vector<std::string> wanted = {
      "ddbmutex.cpp includes extras/parts.hpp"};
  BOOST_TEST(upwards == wanted, boost::test_tools::per_element());
}

// Everything else is left out by leaving out its file.
BOOST_AUTO_TEST_CASE(one_condition_alone_asks_whether_there_are_extras) {
  std::vector<std::string> conditions;
  for (const std::string& file : all_sources()) {
    for (const std::string& line :
         all_matches(read_file(file), "^( *# *(?:if|el).*DDBMUTEX_.*)$")) {
      if (all_matches(line, "(#ifndef DDBMUTEX_(?:\\w+_)?HPP$)").empty()) {
        conditions.push_back(file + ": " + line);
      }
    }
  }
  const std::vector<std::string> wanted = {
      "ddbmutex.cpp: #ifdef DDBMUTEX_EXTRAS"};
  BOOST_TEST(conditions == wanted, boost::test_tools::per_element());
  // The macros that once left out parts are gone from the pages and tools, too.
  BOOST_TEST(shell("cd '" + project().string() +
                   "' && grep -rIl --exclude-dir=build --exclude-dir=.git"
                   " --exclude-dir=node_modules DDBMUTEX_[N]O_ .")
                 .said == "");
}

// MIT wants the notice in every copy.
BOOST_AUTO_TEST_CASE(file_that_is_copied_names_its_licence_first) {
  Set files = all_sources();
  for (const char* folder : {"examples", "examples/recipes"}) {
    for (const auto& entry : fs::directory_iterator(project() / folder)) {
      if (entry.path().extension() != ".cpp") continue;
      files.insert(fs::relative(entry.path(), project()));
    }
  }
  for (const std::string& file : files) {
    BOOST_TEST(read_file(file).rfind(kLicence, 0) == 0u, file);
  }
  BOOST_TEST(
      has(read_file("LICENSE"), "\nCopyright (c) 2026 The ddbmutex authors\n"));
}

BOOST_AUTO_TEST_CASE(public_headers_include_the_standard_library_alone) {
  for (const std::string& file : all_sources()) {
    if (!is_public(file)) continue;
    const Set wanted = file == "ddbmutex.hpp" ? Set{} : Set{"ddbmutex.hpp"};
    BOOST_TEST(as_set(includes(file)) == wanted,
               boost::test_tools::per_element());
    for (const std::string& header : libraries(file)) {
      // Other libraries' headers have a folder, those of C a suffix.
      BOOST_TEST(header.find_first_of("/.") == header.npos, header);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_library_is_included_in_a_few_sources_alone) {
  const std::map<std::string, std::set<std::string>> users = {
      {"curl/", {"sigv4/http.cpp", "sigv4/http_setup.cpp", "sigv4/url.cpp"}},
      {"openssl/",
       {"sigv4/base64.cpp", "sigv4/sigv4.hpp", "sigv4/system.cpp",
        "sigv4/thread.cpp"}},
      {"rapidjson/", {"sigv4/json.cpp"}},
      {"boost/", {}},
  };
  for (const auto& [library, allowed] : users) {
    std::set<std::string> seen;
    for (const std::string& file : all_sources()) {
      for (const std::string& included : libraries(file)) {
        if (included.rfind(library, 0) == 0) seen.insert(file);
      }
    }
    BOOST_TEST(seen == allowed, boost::test_tools::per_element());
  }
}

// Only a few files ask the system for the time, for randomness or for threads,
// or wait.  The simulated world replaces these files.
BOOST_AUTO_TEST_CASE(only_a_few_sources_ask_the_system) {
  const std::map<std::string, std::set<std::string>> seams = {
      {"clock_gettime\\(|_clock::now\\(|\\btime\\(nullptr\\)|gettimeofday",
       {"sigv4/system.cpp"}},
      {"getentropy|getrandom|random_device|RAND_bytes|/urandom",
       {"sigv4/system.cpp"}},
      {"std::(?:recursive_|shared_|timed_)?mutex\\b|std::condition_variable|"
       "pthread_(?:mutex|cond|rwlock|once)|call_once|\\bsem_\\w+\\(|\\bfutex",
       {"sigv4/system.cpp", "sigv4/system.hpp"}},
      // recursive.hpp only compares threads' ids.
      {"pthread_(?:create|join|detach)|std::(?:j?thread|async|this_thread)\\b",
       {"extras/recursive.hpp", "sigv4/system.cpp"}},
      {"\\b(?:eventfd|epoll_\\w+|p?select|usleep|nanosleep)\\(",
       {"sigv4/waiting.cpp"}},
      {"\\btimerfd_\\w+\\(", {"sigv4/boot_timer.hpp"}},
      // Waits for a program that gives out keys.
      {"\\bpoll\\(", {"extras/keys/program.cpp", "sigv4/waiting.cpp"}},
  };
  std::string files;
  for (const std::string& file : all_sources()) files += " " + file;
  for (const auto& [asks, allowed] : seams) {
    // Comments do not count.
    const Ran ran =
        shell("cd '" + project().string() +
              "' && grep -lP '^(?:(?!//).)*(?:" + asks + ")'" + files);
    BOOST_TEST(as_set(all_matches(ran.said, "^(.+)$")) == allowed,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
