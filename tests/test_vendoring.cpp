// The library in other people's builds: two files, installed, and
// what package managers are told of it.  `make ways` builds by the latter.
#include <rapidjson/document.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/process.hpp"
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

// The project's, wherever a command runs.
std::string build() {
  return fs::path(program_path("")).parent_path().parent_path();
}

}  // namespace

// --- Two files ---------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(two_files)

namespace {

const std::string kTwoFiles = "build/amalgamation/";

}  // namespace

// They need nothing but each other, and have all that there is.
BOOST_AUTO_TEST_CASE(two_files_have_every_source_and_no_other_header) {
  BOOST_TEST_REQUIRE(shell("make -s amalgamation").status == 0);
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

BOOST_AUTO_TEST_SUITE_END()

// --- Installed ---------------------------------------------------------------

namespace {

// `make install` of what this build has already, and of a shared library that
// is made of the two files, where they see nothing else, as C++ to come.  To
// optimize it would take longer and show no more.
class Installation {
 public:
  Installation() { make("install PREFIX='" + prefix() + "'"); }

  static const Installation& only() {
    static const Installation installation;
    return installation;
  }

  std::string prefix() const { return (home_.root / "prefix").string(); }
  std::string shared() const { return (home_.root / "made.so").string(); }

  void make(const std::string& what) const {
    const Ran ran =
        shell("make -s " + what + " BUILD='" + build() + "' CXX='" +
              compiler() + "' cxxstd=c++2b CXXFLAGS_release=-O0 SHARED='" +
              shared() + "' -o '" + build() + "/libddbmutex.a' -o '" + build() +
              "/examples/ddbmutex/ddbmutex'");
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
  }

 private:
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

// A program finds what the public headers declare, and nothing that it could
// come to rely on besides.
BOOST_AUTO_TEST_CASE(shared_library_shows_what_is_public_and_nothing_else) {
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
       {"DdbMutex::lock(std::error_code&)", "Table::create(std::error_code&)",
        "AnyOf::lock(std::error_code&)", "vtable for ddbmutex::v0::Error",
        "name_of(ddbmutex::v0::Loss)"}) {
    BOOST_TEST(has(ran.said, name), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Packages ----------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(packages)

namespace {

using Set = std::set<std::string>;

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

BOOST_AUTO_TEST_CASE(parts_are_those_of_the_makefile) {
  const Set parts = words_of(shell("make -s parts").said);
  BOOST_TEST(parts.size() == 4u);
  Set features;
  const auto json = manifest();
  for (const auto& feature : json["features"].GetObject()) {
    features.insert(feature.name.GetString());
  }
  const std::vector<Set> told = {
      words_of(between(read_file("CMakeLists.txt"), "foreach(part ", ")")),
      words_of(between(read_file(kConan), "\nPARTS = (", ")")),
      as_set(all_matches(read_file(kPort + "portfile.cmake"),
                         "^    ([a-z-]+) DDBMUTEX_WITH_[A-Z]+$")),
      features};
  for (const Set& set : told) {
    BOOST_TEST(set == parts, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
