// The library in other people's builds: each compiles without a warning, and
// the program it makes runs.  What takes minutes is left to `make ways`
// (DDBMUTEX_WAYS=all).
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/shell.hpp"

namespace {

namespace fs = std::filesystem;
using namespace tests;

// The library's files of one kind, from the top of the project, by their names.
std::vector<std::string> library_files(const std::string& extension) {
  std::vector<std::string> files = {"ddbmutex" + extension};
  for (const char* room : {"ddbmutex", "sigv4"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(project() / room)) {
      if (entry.path().extension() != extension) continue;
      files.push_back(fs::relative(entry.path(), project()));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::string compiler() { return variable("CXX", "g++"); }

// The project's, wherever a command runs.
std::string top() { return fs::canonical(project()).string(); }

std::string build() {
  const std::string build = variable("DDBMUTEX_BUILD", "");
  BOOST_TEST_REQUIRE(build != "", "which build is to be tested?");
  return build;
}

bool is_all_wanted() { return variable("DDBMUTEX_WAYS", "") == "all"; }

// What a report needs to find an engine and its table, in the form of env(1).
const std::string& surroundings() {
  static Engine engine(any_engine_kind());
  static const std::string words = [] {
    const auto keys = engine.credentials();
    ddbmutex::TableOptions options;
    options.endpoint = engine.url();
    options.region = engine.region();
    options.credentials = {keys->access_key_id, keys->secret_access_key, ""};
    std::error_code error;
    ddbmutex::Table table(options);
    table.create(error);
    BOOST_TEST_REQUIRE(!error, table.last_error());
    return "AWS_EC2_METADATA_DISABLED=true AWS_ENDPOINT_URL_DYNAMODB=" +
           engine.url() + " AWS_REGION=" + engine.region() +
           " AWS_ACCESS_KEY_ID=" + keys->access_key_id +
           " AWS_SECRET_ACCESS_KEY=" + keys->secret_access_key;
  }();
  return words;
}

constexpr char kPages[] = "page 1\npage 2\npage 3\n";

// The program does what the example does, on an engine.
void run_report(const fs::path& program, const std::string& more = {}) {
  const Ran ran = shell("env -i HOME=/nonexistent " + surroundings() + " " +
                        more + " '" + program.string() + "'");
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == kPages);
}

// --- An application ----------------------------------------------------------

// Its folder: a program, and headers of its own by all names that the library
// has for some, which are not for the library.
class Application {
 public:
  Application() {
    std::string program;
    for (const std::string& header : library_files(".hpp")) {
      if (header == "ddbmutex.hpp") continue;
      const std::string name = fs::path(header).filename().string();
      for (const std::string& own : {name, "lock/" + name, header}) {
        fs::create_directories((home_.root / own).parent_path());
        home_.write(own,
                    "#ifndef APPLICATION\n"
                    "#error \"taken for the library's own\"\n"
                    "#endif\n");
        program += "#include \"" + own + "\"\n";
      }
    }
    home_.write("report.cpp", program + read_file("examples/ten_lines.cpp"));
  }

  std::string folder() const { return home_.root.string(); }
  std::string path(const std::string& name) const {
    return (home_.root / name).string();
  }

  // Runs commands that make its program of the name `report`, without a word
  // but `said`.
  void make(const std::string& commands) const {
    const Ran ran =
        shell("set -e; app='" + folder() + "' cxx='" + compiler() +
              " -std=c++17 -pthread -O0 -Wall -Wextra -Werror'\n" + commands);
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
    BOOST_TEST(ran.said == "");
  }

 private:
  const Home home_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(vendoring)

// The objects are those of this build, which were compiled one by one, and with
// more warnings than here.
BOOST_AUTO_TEST_CASE(all_objects_fit_into_one_folder) {
  const Application application;
  std::string objects;
  for (std::string file : library_files(".cpp")) {
    file.replace(file.size() - 4, 4, ".o");
    objects += " '" + build() + "/" + file + "'";
  }
  application.make(
      "mkdir \"$app/flat\"\n"
      "for object in" +
      objects +
      "; do\n"
      "  ! [ -e \"$app/flat/${object##*/}\" ]\n"
      "  cp \"$object\" \"$app/flat\"\n"
      "done\n"
      "$cxx -DAPPLICATION -I \"$app\" -I . -c \"$app/report.cpp\""
      "  -o \"$app/flat/report.o\"\n"
      "$cxx ${CXXFLAGS-} \"$app\"/flat/*.o -lcurl -lcrypto -o \"$app/report\"");
  run_report(application.path("report"));
}

BOOST_AUTO_TEST_CASE(cmake_builds_it_by_unity_build) {
  if (!is_all_wanted()) return;
  const Application application;
  application.make(
      "{ cmake -S tests/vendoring -B \"$app\" -DCMAKE_CXX_COMPILER='" +
      compiler() +
      "' -DLIBRARY=\"$PWD\" -DAPPLICATION=\"$app\" &&\n"
      "  cmake --build \"$app\" --parallel \"$(nproc)\"; } >\"$app/log\" 2>&1 "
      "||\n"
      "  { cat \"$app/log\"; exit 1; }");
  run_report(application.path("report"));
}

BOOST_AUTO_TEST_SUITE_END()

// --- Two files ---------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(two_files)

namespace {

const std::string kTwoFiles = "build/amalgamation/";

}  // namespace

BOOST_AUTO_TEST_CASE(two_files_are_the_same_bytes_wherever_they_are_made) {
  const Home home;
  const std::string there = home.root.string();
  const Ran ran =
      shell("make -s amalgamation >/dev/null && cd / && LC_ALL=C.UTF-8 '" +
            top() + "/packaging/amalgamate' '" + there + "'");
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "");
  for (const char* name :
       {"ddbmutex.hpp", "ddbmutex.cpp", "ddbmutex_core.cpp"}) {
    BOOST_TEST((read_file(home.root / name) == read_file(kTwoFiles + name)),
               name);
  }
}

// They need nothing but each other, and have all that there is.
BOOST_AUTO_TEST_CASE(two_files_have_every_source_and_no_other_header) {
  const std::string whole = read_file(kTwoFiles + "ddbmutex.cpp");
  const std::string header = read_file(kTwoFiles + "ddbmutex.hpp");
  BOOST_TEST(all_matches(whole + header, "^ *# *include \"(.*)\"").size() ==
             1u);
  for (const char* kind : {".cpp", ".hpp"}) {
    for (const std::string& file : library_files(kind)) {
      const bool is_public =
          file == "ddbmutex.hpp" || file == "ddbmutex/any_of.hpp";
      BOOST_TEST(has(whole, "\n// ---- " + file + "\n") != is_public, file);
    }
  }
  BOOST_TEST(has(header, "\nclass DdbMutex {\n"));
  BOOST_TEST(has(header, "\nclass AnyOf {\n"));
  BOOST_TEST(has(header, "// " + read_file("LICENSE").substr(0, 11)));
  BOOST_TEST(has(whole, "// " + read_file("LICENSE").substr(0, 11)));
}

// As the preprocessor sees their sources, the core is the whole with every
// macro.  (The headers of parts are in the whole even so.)
BOOST_AUTO_TEST_CASE(core_is_the_whole_without_any_part) {
  const Home home;
  const auto tokens = [&home](const std::string& file,
                              const std::string& macros) {
    const std::string text = read_file(kTwoFiles + file);
    const auto at = text.find("\n// ---- ddbmutex.cpp\n");
    BOOST_TEST_REQUIRE(at != text.npos);
    const std::string sources = home.write("sources.cpp", text.substr(at));
    const Ran ran =
        shell(compiler() +
              " -E -P -DLIBCURL_VERSION_NUM=0x080000 -DCLOCK_BOOTTIME=7 " +
              macros + " '" + sources + "'");
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
    return ran.said;
  };
  std::string macros;
  for (const std::string& part :
       all_matches(shell("make -s parts").said, "(\\w+)")) {
    macros += " -DDDBMUTEX_NO_";
    for (const char c : part) macros += static_cast<char>(std::toupper(c));
  }
  const std::string core = tokens("ddbmutex_core.cpp", "");
  BOOST_TEST((core == tokens("ddbmutex.cpp", macros)));
  BOOST_TEST((core == tokens("ddbmutex_core.cpp", macros)));
  BOOST_TEST((core != tokens("ddbmutex.cpp", "")));
  const std::string whole = read_file(kTwoFiles + "ddbmutex.cpp");
  for (const std::string& macro : all_matches(macros, "-D(\\w+)")) {
    BOOST_TEST(has(whole, macro), macro);
  }
  BOOST_TEST(!has(read_file(kTwoFiles + "ddbmutex_core.cpp"), "DDBMUTEX_NO_"));
}

BOOST_AUTO_TEST_CASE(core_makes_a_program_that_locks) {
  const Home home;
  const std::string there = home.root.string();
  const Ran ran =
      shell("set -e; cp " + kTwoFiles + "ddbmutex.hpp " + kTwoFiles +
            "ddbmutex_core.cpp '" + there +
            "'\n"
            "cp examples/ten_lines.cpp '" +
            there + "/report.cpp'; cd '" + there + "'\n" + compiler() +
            " -std=c++17 -pthread -O0 -Wall -Wextra -Wpedantic"
            " -Wshadow -Wconversion -Werror report.cpp ddbmutex_core.cpp"
            " -o report -lcurl -lcrypto");
  BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  BOOST_TEST(ran.said == "");
  run_report(home.root / "report");
}

// A later standard may give any of these names to a function of its own, as
// C++20 gave it "format".  Where an argument is of one of its types, a call
// finds that function too, unless it says whose it means.
BOOST_AUTO_TEST_CASE(later_standard_may_have_functions_of_the_same_names) {
  constexpr char kNames[] =
      "all_digits append ask await base64_encode begins_with consists_of "
      "crc32 cut decimal drive first_line inside "
      "is_alphanumeric is_among is_one_of is_string is_utf8 is_visible join "
      "locate matches normalized not_found run say sha256 show shown "
      "spawn stop trimmed type_of unquoted update wait_for wipe write_all "
      "write_hex";
  std::string header =
      "#include <chrono>\n#include <memory>\n#include <string>\n"
      "namespace std {\n";
  for (const std::string& name : all_matches(kNames, "(\\w+)")) {
    header += "template <class... T> void " + name + "(T&&...) = delete;\n";
  }
  const Home home;
  const Ran ran = shell(compiler() + " -std=c++17 -pthread -fsyntax-only " +
                        "-include '" + home.write("later.hpp", header + "}\n") +
                        "' " + kTwoFiles + "ddbmutex.cpp");
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "");
}

BOOST_AUTO_TEST_CASE(each_part_can_be_left_out_of_the_one_file) {
  if (!is_all_wanted()) return;
  const Ran ran = shell(
      "for part in $(make -s parts | tr a-z A-Z); do\n" + compiler() +
      " -std=c++17 -pthread -Wall -Wextra -Wpedantic -Wshadow -Wconversion"
      " -Werror -fsyntax-only -DDDBMUTEX_NO_$part " +
      kTwoFiles + "ddbmutex.cpp || exit; done");
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "");
}

BOOST_AUTO_TEST_SUITE_END()

// --- Installed ---------------------------------------------------------------

namespace {

// `make install` of what this build has already, and of a shared library that
// is made of the two files, where they see nothing else, as C++ to come.  To
// optimize it would take longer and show no more.  `c++` knows that the second
// of the two files is compiled already.
class Installation {
 public:
  Installation() {
    write_program("make", "PATH=${PATH#*:} exec make -s \"$@\" BUILD='" +
                              build() + "' CXX='" + compiler() +
                              "' cxxstd=c++2b CXXFLAGS_release=-O0 SHARED='" +
                              shared() + "' -o '" + build() +
                              "/libddbmutex.a' -o '" + build() +
                              "/examples/ddbmutex/ddbmutex'");
    write_program("c++",
                  "for word do\n"
                  "  shift\n"
                  "  [ \"$word\" != ddbmutex.cpp ] || word='" +
                      shared() +
                      ".o'\n"
                      "  set -- \"$@\" \"$word\"\n"
                      "done\n"
                      "exec " +
                      compiler() + " ${CXXFLAGS-} \"$@\"");
    make("install PREFIX='" + prefix() + "'");
  }

  static const Installation& only() {
    static const Installation installation;
    return installation;
  }

  // Before what a shell finds otherwise.
  std::string programs() const { return (home_.root / "bin").string(); }
  std::string prefix() const { return (home_.root / "prefix").string(); }
  std::string shared() const { return (home_.root / "made.so").string(); }

  void make(const std::string& what) const {
    const Ran ran = shell("PATH='" + programs() + ":'\"$PATH\" make " + what);
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  }

 private:
  void write_program(const std::string& name, const std::string& text) const {
    fs::create_directories(programs());
    fs::permissions(home_.write("bin/" + name, "#!/bin/sh\n" + text + "\n"),
                    fs::perms::owner_all);
  }

  const Home home_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(installed)

BOOST_AUTO_TEST_CASE(all_is_installed_and_taken_away_again) {
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
             "usr/include/ddbmutex/any_of.hpp\n"
             "usr/lib/here/cmake/ddbmutex/ddbmutex-config-version.cmake\n"
             "usr/lib/here/cmake/ddbmutex/ddbmutex-config.cmake\n"
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
  // Where it will be, not where it is meanwhile.
  const std::string pc =
      read_file(home.root / "usr/lib/here/pkgconfig/ddbmutex.pc");
  BOOST_TEST(has(pc, "\nlibdir=/usr/lib/here\n"));
  BOOST_TEST(!has(pc, there));
  Installation::only().make("uninstall" + where);
  BOOST_TEST(shell(find).said == "");
  BOOST_TEST(!fs::exists(home.root / "usr/include/ddbmutex"));
  BOOST_TEST(fs::exists(home.root / "usr/include/another"));
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

namespace {

// Of the public headers: what is in `detail`, or the rest, without comments.
struct Declarations {
  explicit Declarations(bool in_detail) {
    std::istringstream lines(read_file("ddbmutex.hpp") +
                             read_file("ddbmutex/any_of.hpp"));
    bool is_inside = false;
    for (std::string line; std::getline(lines, line);) {
      if (line == "namespace detail {") is_inside = true;
      if (is_inside == in_detail) {
        text += " " + line.substr(0, line.find("//")) + "\n";
      }
      if (line == "}  // namespace detail") is_inside = false;
    }
    types = as_set(
        all_matches(text, "^ *(?:class|struct|enum class) (\\w+)[^;{]*\\{"));
  }
  bool has_any(const std::string& name) const {
    return types.count(name) == 1 || has(text, name + "(") ||
           has(text, " " + name + ";");
  }

  std::string text;
  std::set<std::string> types;
};

// Of "vtable for ddbmutex::v0::Error", "ddbmutex::v0::detail::Wait::cancel()"
// and the like: is it declared in a public header?
bool is_public(const std::string& symbol) {
  static const Declarations inside(true), outside(false);
  static const std::string form =
      "ddbmutex::v\\d+::(detail::)?((?:\\w+::)*)~?(\\w+)";
  const auto last = all_matches(symbol, form, 3);
  if (last.empty()) return false;
  const bool in_detail = !all_matches(symbol, form, 1)[0].empty();
  const Declarations& there = in_detail ? inside : outside;
  for (const std::string& scope :
       all_matches(all_matches(symbol, form, 2)[0], "(\\w+)::")) {
    if (there.types.count(scope) == 0) return false;
  }
  return there.has_any(last[0] == "operator" ? "operator==" : last[0]);
}

// What a library defines of those kinds, as nm(1) tells it.
std::set<std::string> symbols(const std::string& arguments,
                              const std::string& kinds) {
  const Ran ran = shell("nm -C --defined-only " + arguments);
  BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  return as_set(all_matches(ran.said, "^\\w+ [" + kinds + "] (.*)$"));
}

}  // namespace

// Whoever includes a public header finds in the library what it declares, and
// nothing else is there that a program could come to rely on.
BOOST_AUTO_TEST_CASE(shared_library_shows_what_is_public_and_nothing_else) {
  const auto shown =
      symbols("-D '" + Installation::only().shared() + "'", "A-Za-z");
  for (const std::string& symbol : shown) {
    BOOST_TEST(is_public(symbol), symbol);
  }
  int found = 0;
  for (const std::string& symbol :
       symbols("-g '" + build() + "/libddbmutex.a'", "TDBR")) {
    if (!is_public(symbol)) continue;
    BOOST_TEST(shown.count(symbol) == 1u, symbol << " is not shown");
    ++found;
  }
  BOOST_TEST(found > 50);
}

// --- The ways of packaging/README.md -----------------------------------------

namespace {

// A section of the page, and its commands.
struct Way {
  std::string title, commands;
};

std::vector<Way> ways() {
  std::vector<Way> all;
  std::istringstream lines(read_file("packaging/README.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("## ", 0) == 0) all.push_back({line.substr(3), ""});
    if (line.rfind("    ", 0) != 0) continue;
    all.at(all.size() - 1).commands += line.substr(4) + "\n";
  }
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const Way& way) { return way.commands.empty(); }),
            all.end());
  return all;
}

// By the tools that every test needs; `make ways` takes them all.
bool is_cheap(const Way& way) {
  return has(way.commands, "\nc++ ") &&
         all_matches(way.commands, "^(sudo|vcpkg|conan) ").empty();
}

void take(const Way& way) {
  const Home home;
  const std::string folder = home.root.string();
  fs::remove(home.root / ".aws");
  const Ran ran =
      shell("cd '" + folder + "'; env -i PATH='" +
            Installation::only().programs() + ":'\"$PATH\" HOME='" + folder +
            "' DDBMUTEX='" + top() + "' CXXFLAGS=\"${CXXFLAGS-}\" " +
            surroundings() + " sh -e <<'.'\n" + way.commands + ".\n");
  BOOST_TEST(ran.status == 0, way.title);
  const std::string said = "\n" + ran.said, end = std::string("\n") + kPages;
  BOOST_TEST((said.size() >= end.size() &&
              said.compare(said.size() - end.size(), end.size(), end) == 0),
             way.title << ": " << ran.said);
}

}  // namespace

BOOST_AUTO_TEST_CASE(ways_are_short_and_end_with_a_lock) {
  BOOST_TEST(ways().size() == 10u);
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  for (const Way& way : ways()) {
    BOOST_TEST(lines(way.commands) <= 5, way.title);
    BOOST_TEST(!all_matches(way.commands, "(\\S*/report)\n$").empty(),
               way.title);
  }
}

BOOST_AUTO_TEST_CASE(ways_lead_from_an_empty_folder_to_a_lock) {
  int taken = 0;
  for (const Way& way : ways()) {
    if (!is_cheap(way)) continue;
    take(way);
    ++taken;
  }
  BOOST_TEST(taken == 3);
}

BOOST_AUTO_TEST_SUITE_END()
