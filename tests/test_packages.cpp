// What other builds and package managers are told of the library is what the
// Makefile and the header say.  `make ways` builds by it.
#include <rapidjson/document.h>

#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/files.hpp"
#include "tests/support/shell.hpp"

namespace {

using tests::all_matches;
using tests::as_set;
using tests::between;
using tests::read_file;
using Set = std::set<std::string>;

const std::string kCMake = "CMakeLists.txt";
const std::string kPort = "packaging/vcpkg/ddbmutex/portfile.cmake";
const std::string kConan = "packaging/conan/conanfile.py";
const std::string kControl = "packaging/debian/control";

Set words_of(const std::string& text) {
  return as_set(all_matches(text, "(\\w+)"));
}

Set parts() {
  const tests::Ran ran = tests::shell("make -s parts");
  BOOST_TEST(ran.status == 0, ran.said);
  return words_of(ran.said);
}

std::string option_of(std::string part) {
  std::transform(part.begin(), part.end(), part.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return "DDBMUTEX_WITH_" + part;
}

rapidjson::Document manifest() {
  rapidjson::Document json;
  json.Parse(read_file("packaging/vcpkg/ddbmutex/vcpkg.json").c_str());
  BOOST_TEST_REQUIRE(json.IsObject());
  return json;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(packages)

BOOST_AUTO_TEST_CASE(parts_are_those_of_the_makefile) {
  const Set wanted = parts();
  BOOST_TEST(wanted.size() == 4u);
  BOOST_TEST(
      words_of(between(read_file(kCMake), "foreach(part ", ")")) == wanted,
      boost::test_tools::per_element());
  BOOST_TEST(words_of(between(read_file(kConan), "\nPARTS = (", ")")) == wanted,
             boost::test_tools::per_element());

  Set pairs;
  for (const std::string& part : wanted) {
    pairs.insert(part + " " + option_of(part));
  }
  BOOST_TEST(
      as_set(all_matches(read_file(kPort), "^    ([a-z-]+ \\w+)$")) == pairs,
      boost::test_tools::per_element());
  const auto json = manifest();
  Set usual;
  for (const auto& name : json["default-features"].GetArray()) {
    usual.insert(name.GetString());
  }
  BOOST_TEST(usual == wanted, boost::test_tools::per_element());
  Set described;
  for (const auto& feature : json["features"].GetObject()) {
    BOOST_TEST(feature.value["description"].GetStringLength() > 0u);
    described.insert(feature.name.GetString());
  }
  BOOST_TEST(described == wanted, boost::test_tools::per_element());
}

// Its keys are those that vcpkg knows, and what the port calls is at hand.
BOOST_AUTO_TEST_CASE(vcpkg_manifest_has_what_vcpkg_wants) {
  const auto json = manifest();
  Set keys;
  for (const auto& member : json.GetObject()) {
    keys.insert(member.name.GetString());
  }
  const Set wanted = {"name",     "version",         "description",
                      "license",  "supports",        "dependencies",
                      "features", "default-features"};
  BOOST_TEST(keys == wanted, boost::test_tools::per_element());
  BOOST_TEST(json["name"].GetString() == std::string("ddbmutex"));
  BOOST_TEST(read_file("LICENSE").rfind(json["license"].GetString(), 0) == 0u);
  Set dependencies;
  for (const auto& one : json["dependencies"].GetArray()) {
    const auto& name = one.IsString() ? one : one["name"];
    dependencies.insert(name.GetString());
  }
  Set needed = {"curl", "openssl", "rapidjson"};
  if (!all_matches(read_file(kPort), "(vcpkg_cmake_)").empty()) {
    needed.insert("vcpkg-cmake");
  }
  BOOST_TEST(dependencies == needed, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(options_that_recipes_set_are_there) {
  const std::string cmake = read_file(kCMake);
  Set there = as_set(all_matches(cmake, "^option\\((\\w+) "));
  for (const std::string& part : parts()) there.insert(option_of(part));
  BOOST_TEST(there.size() == 7u);
  Set named;
  for (const std::string& file : {kPort, kConan}) {
    const std::string text = tests::replaced(
        read_file(file), "DDBMUTEX_WITH_\\{part\\.upper\\(\\)\\}", "");
    for (const auto& name :
         all_matches(text, "(DDBMUTEX_[A-Z_]+|BUILD_TESTING)")) {
      BOOST_TEST(there.count(name) == 1u, file << ": " << name);
      named.insert(name);
    }
  }
  BOOST_TEST(named.size() == 6u);
}

BOOST_AUTO_TEST_CASE(versions_are_those_of_the_header) {
  const std::string version = DDBMUTEX_VERSION_STRING;
  BOOST_TEST(manifest()["version"].GetString() == version);
  const std::string changelog = read_file("packaging/debian/changelog");
  BOOST_TEST(changelog.rfind("ddbmutex (" + version + ") ", 0) == 0u);
  // Conan's reads it there.
  const auto expression = all_matches(read_file(kConan), "search\\(r'(.*)', ");
  BOOST_TEST_REQUIRE(expression.size() == 1u);
  BOOST_TEST(all_matches(read_file("ddbmutex.hpp"), expression[0]) ==
                 std::vector<std::string>{version},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(libraries_are_those_that_readme_asks_for) {
  const auto least = [](const std::string& library) {
    const auto found =
        all_matches(tests::replaced(read_file("README.md"), "\\s+", " "),
                    library + " ([0-9.]+) or later");
    BOOST_TEST_REQUIRE(found.size() == 1u);
    return found[0];
  };
  const auto says = [](const std::string& file, const std::string& words) {
    BOOST_TEST(read_file(file).find(words) != std::string::npos,
               file << " does not say " << words);
  };
  const std::string curl = least("libcurl");
  const std::string openssl = least("OpenSSL");
  const std::string rapidjson = least("RapidJSON");
  says(kCMake, "find_package(CURL " + curl + " ");
  says(kCMake, "find_package(OpenSSL " + openssl + " ");
  says(kCMake, "RapidJSON " + rapidjson + " or later");
  says(kConan, "libcurl/[>=" + curl + " ");
  says(kConan, "openssl/[>=" + openssl.substr(0, openssl.find('.')) + " ");
  says(kConan, "rapidjson/" + rapidjson + ".");
  BOOST_TEST(as_set(all_matches(read_file(kControl),
                                "libcurl\\S* \\(>= (\\S+)\\)")) == Set{curl},
             boost::test_tools::per_element());
  BOOST_TEST(as_set(all_matches(read_file(kControl),
                                "libssl\\S* \\(>= (\\S+)\\)")) == Set{openssl},
             boost::test_tools::per_element());
  // To build the packages; those that are installed do without it.
  BOOST_TEST(
      all_matches(read_file(kControl), "(rapidjson.*)$") ==
          std::vector<std::string>{"rapidjson-dev (>= " + rapidjson + ")"},
      boost::test_tools::per_element());
}

// Of a shared library the package has the soname in its name.
BOOST_AUTO_TEST_CASE(debian_packages_are_named_by_the_soname) {
  const std::string abi =
      between(read_file("ddbmutex.hpp"), "\ninline namespace v", " {");
  const Set there =
      as_set(all_matches(read_file(kControl), "^Package: (\\S+)$"));
  const Set wanted = {"ddbmutex", "libddbmutex-dev", "libddbmutex" + abi};
  BOOST_TEST(there == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(recipes_name_files_that_are_there) {
  namespace fs = std::filesystem;
  BOOST_TEST(fs::exists(tests::project() /
                        between(read_file(kPort), "${SOURCE_PATH}/", "\"")));
  // Of `copy(self, "sigv4/*"...)`: as conan finds them.
  const auto patterns = all_matches(
      between(read_file(kConan), "for files in (", ")"), "\"([^\"]+)\"");
  BOOST_TEST(patterns.size() >= 5u);
  for (const std::string& pattern : patterns) {
    const tests::Ran ran = tests::shell("ls -d " + pattern);
    BOOST_TEST(ran.status == 0, ran.said);
  }
}

// What can be seen of a recipe without conan: that it is Python, and that no
// function of it is a stub.
BOOST_DATA_TEST_CASE(
    conan_recipe_is_whole,
    boost::unit_test::data::make({"packaging/conan/conanfile.py",
                                  "packaging/conan/test_package/conanfile.py"}),
    file) {
  const tests::Ran ran = tests::shell(std::string(R"(/usr/bin/python3 -c '
import ast, sys
tree = ast.parse(open(sys.argv[1]).read())
functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
print(len(functions), [f.name for f in functions if all(
    isinstance(n, (ast.Pass, ast.Raise)) or isinstance(n, ast.Expr)
    and isinstance(n.value, ast.Constant) for n in f.body)])' )") +
                                      file);
  BOOST_TEST(ran.status == 0, ran.said);
  std::istringstream said(ran.said);
  int functions = 0;
  std::string stubs;
  said >> functions >> stubs;
  BOOST_TEST(functions >= 4);
  BOOST_TEST(stubs == "[]");
}

BOOST_AUTO_TEST_SUITE_END()
