// What README and the design of the house say is what the files are.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "dynamodb/answer.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ddbmutex;

const fs::path kRoot = fs::path(__FILE__).parent_path().parent_path();

std::string read_file(const fs::path& path) {
  std::ifstream file(kRoot / path);
  BOOST_TEST_REQUIRE(file.good(), path << " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What stands between two markers, neither included.
std::string between(const std::string& text, const std::string& from,
                    const std::string& to) {
  const auto begin = text.find(from);
  BOOST_TEST_REQUIRE(begin != text.npos, "no " << from);
  const auto end = text.find(to, begin + from.size());
  BOOST_TEST_REQUIRE(end != text.npos, "no " << to);
  return text.substr(begin + from.size(), end - begin - from.size());
}

// Without the indentation that all lines share.
std::string dedent(const std::string& text) {
  return std::regex_replace(text, std::regex("(^|\n)  "), "$1");
}

std::vector<fs::path> sources(const std::string& floor) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kRoot / floor)) {
    files.push_back(floor + "/" + entry.path().filename().string());
  }
  return files;
}

std::vector<std::string> includes(const fs::path& file) {
  const std::string text = read_file(file);
  const std::regex include("#include [<\"]([^>\"]+)[>\"]");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), include), end;
       it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

bool starts_with(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

const std::vector<std::string> kFloors = {"sigv4", "dynamodb", "lock"};

}  // namespace

BOOST_AUTO_TEST_SUITE(repository)

BOOST_AUTO_TEST_CASE(readme_usage_is_part_of_the_example_that_is_run) {
  const std::string readme = read_file("README.md");
  const std::string example = read_file("examples/take_and_release.cpp");
  const std::string shown = between(readme, "```cpp\n", "```\n");
  const std::string run =
      between(example, "  // README: from here\n", "  // README: to here\n");
  BOOST_TEST(shown == dedent(run));
}

BOOST_AUTO_TEST_CASE(readme_permissions_are_the_actions_that_exist) {
  const std::string readme = read_file("README.md");
  const std::regex action("    dynamodb:(\\w+)\n");
  std::set<std::string> told;
  for (std::sregex_iterator it(readme.begin(), readme.end(), action), end;
       it != end; ++it) {
    told.insert((*it)[1]);
  }
  std::set<std::string> used;
  for (std::size_t i = 0; i < dynamodb::kActions; ++i) {
    used.insert(name_of(static_cast<dynamodb::Action>(i)));
  }
  BOOST_TEST(told == used, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(readme_links_and_folders_exist) {
  const std::string readme = read_file("README.md");
  const std::regex link("\\]\\(([^)]+)\\)|^\\| `(\\w+/)` \\|",
                        std::regex::multiline);
  int found = 0;
  for (std::sregex_iterator it(readme.begin(), readme.end(), link), end;
       it != end; ++it) {
    const std::string path = (*it)[1].matched ? (*it)[1] : (*it)[2];
    BOOST_TEST(fs::exists(kRoot / path), path << " does not exist");
    ++found;
  }
  BOOST_TEST(found >= 7);
}

BOOST_AUTO_TEST_CASE(readme_configurations_are_those_of_the_makefile) {
  const std::string makefile = read_file("Makefile");
  const std::string readme = read_file("README.md");
  const std::regex flags("\nCXXFLAGS_(\\w+) :=");
  int found = 0;
  for (std::sregex_iterator it(makefile.begin(), makefile.end(), flags), end;
       it != end; ++it) {
    const std::string config = (*it)[1];
    BOOST_TEST(readme.find("`" + config + "`") != readme.npos, config);
    ++found;
  }
  BOOST_TEST(found == 6);
}

BOOST_AUTO_TEST_CASE(floors_include_only_what_is_below_them) {
  for (std::size_t floor = 0; floor < kFloors.size(); ++floor) {
    for (const fs::path& file : sources(kFloors[floor])) {
      for (const std::string& included : includes(file)) {
        for (std::size_t above = floor + 1; above < kFloors.size(); ++above) {
          BOOST_TEST(!starts_with(included, kFloors[above] + "/"),
                     file << " includes " << included);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(libraries_are_seen_in_their_rooms_alone) {
  const std::vector<std::pair<std::string, std::set<std::string>>> rooms = {
      {"curl/", {"sigv4/http.cpp"}},
      {"openssl/", {"sigv4/sigv4.cpp"}},
      {"rapidjson/", {"dynamodb/answer.cpp", "lock/record.cpp"}},
      {"boost/", {}},
  };
  for (const auto& [library, allowed] : rooms) {
    std::set<std::string> seen;
    for (const std::string& floor : kFloors) {
      for (const fs::path& file : sources(floor)) {
        for (const std::string& included : includes(file)) {
          if (starts_with(included, library)) seen.insert(file.string());
        }
      }
    }
    BOOST_TEST(seen == allowed, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
