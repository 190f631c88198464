// The house is built as it says: each file in its room, each room on those
// below it.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace {

namespace fs = std::filesystem;
using tests::all_matches;
using tests::as_set;
using tests::read_file;

// From the top.  The first is no folder, but the files beside the Makefile; the
// second is on the same floor.
const std::vector<std::string> kFloors = {"", "ddbmutex", "lock", "dynamodb",
                                          "sigv4"};

std::vector<std::string> sources(const std::string& floor) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(tests::project() / floor)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (extension == ".cpp" || extension == ".hpp") {
      files.push_back(floor.empty() ? name : floor + "/" + name);
    }
  }
  return files;
}

std::vector<std::string> all_sources() {
  std::vector<std::string> files;
  for (const std::string& floor : kFloors) {
    for (const std::string& file : sources(floor)) files.push_back(file);
  }
  return files;
}

// What stands between the quotes, or the angle brackets with `system`.
std::vector<std::string> includes(const std::string& file, bool system) {
  return all_matches(read_file(file), system ? "^ *# *include <([^>]+)>"
                                             : "^ *# *include \"([^\"]+)\"");
}

// "lock/record.hpp" is on floor 1, "ddbmutex.hpp" on the topmost, 0.
std::size_t floor_of(const std::string& file) {
  const auto slash = file.find('/');
  const std::string folder =
      slash == file.npos ? std::string() : file.substr(0, slash);
  const auto found = std::find(kFloors.begin(), kFloors.end(), folder);
  BOOST_TEST_REQUIRE((found != kFloors.end()), file << " is on no floor");
  const auto place = static_cast<std::size_t>(found - kFloors.begin());
  return place > 0 ? place - 1 : 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(repository)

BOOST_AUTO_TEST_CASE(floors_include_only_what_is_on_or_below_them) {
  int found = 0;
  for (const std::string& file : all_sources()) {
    for (const std::string& included : includes(file, false)) {
      BOOST_TEST(floor_of(included) >= floor_of(file),
                 file << " includes " << included);
      BOOST_TEST(fs::exists(tests::project() / included),
                 file << " includes " << included);
      ++found;
    }
  }
  BOOST_TEST(found > 30);
}

BOOST_AUTO_TEST_CASE(public_header_includes_the_standard_library_alone) {
  BOOST_TEST(includes("ddbmutex.hpp", false).empty());
  const std::vector<std::string> headers = includes("ddbmutex.hpp", true);
  BOOST_TEST(headers.size() > 5u);
  for (const std::string& header : headers) {
    // No folder and no suffix: neither a library's nor the C library's.
    BOOST_TEST(header.find_first_of("/.") == header.npos, header);
  }
}

BOOST_AUTO_TEST_CASE(public_header_is_needed_by_its_implementation_alone) {
  for (const std::string& file : all_sources()) {
    const bool top = floor_of(file) == 0;
    const auto included = as_set(includes(file, false));
    BOOST_TEST((top || included.count("ddbmutex.hpp") == 0), file);
  }
}

BOOST_AUTO_TEST_CASE(libraries_are_seen_in_their_rooms_alone) {
  const std::map<std::string, std::set<std::string>> rooms = {
      {"curl/", {"sigv4/http.cpp"}},
      {"openssl/", {"sigv4/base64.cpp", "sigv4/sigv4.cpp"}},
      {"rapidjson/",
       {"dynamodb/answer.cpp", "dynamodb/json.hpp", "dynamodb/transact.cpp",
        "lock/record.cpp"}},
      {"boost/", {}},
  };
  for (const auto& [library, allowed] : rooms) {
    std::set<std::string> seen;
    for (const std::string& file : all_sources()) {
      for (const std::string& included : includes(file, true)) {
        if (included.rfind(library, 0) == 0) seen.insert(file);
      }
    }
    BOOST_TEST(seen == allowed, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(makefile_compiles_every_source_of_the_library) {
  const std::string makefile = read_file("Makefile");
  const std::string line =
      tests::between(makefile, "\nLIB_SOURCES :=", "\nTEST_SOURCES");
  for (const std::string& floor : kFloors) {
    const std::string wanted =
        floor.empty() ? "ddbmutex.cpp " : " " + floor + "/*.cpp";
    BOOST_TEST(line.find(wanted) != line.npos, wanted);
  }
}

BOOST_AUTO_TEST_SUITE_END()
