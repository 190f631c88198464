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
#include "tests/support/shell.hpp"

namespace {

namespace fs = std::filesystem;
using tests::all_matches;
using tests::as_set;
using tests::read_file;

// The first is no folder, but the files beside the Makefile.
const std::vector<std::string> kRooms = {
    "",      "ddbmutex",  "ddbmutex/lock", "ddbmutex/dynamodb",
    "sigv4", "sigv4/keys"};

// Layers from the top; the first two are one.
const std::vector<std::string> kFloors = {
    "",           "ddbmutex", "ddbmutex/lock", "ddbmutex/dynamodb",
    "sigv4/keys", "sigv4"};

std::vector<std::string> sources(const std::string& room) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(tests::project() / room)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (extension == ".cpp" || extension == ".hpp") {
      files.push_back(room.empty() ? name : room + "/" + name);
    }
  }
  return files;
}

std::vector<std::string> all_sources() {
  std::vector<std::string> files;
  for (const std::string& room : kRooms) {
    for (const std::string& file : sources(room)) files.push_back(file);
  }
  return files;
}

// Headers of others, as they stand between the angle brackets.
std::vector<std::string> libraries(const std::string& file) {
  return all_matches(read_file(file), "^ *# *include <([^>]+)>");
}

// Our own, from the top of the project: each names another by where that lies
// beside it, so that nothing on an application's path can be taken for ours.
std::vector<std::string> includes(const std::string& file) {
  std::vector<std::string> found;
  const fs::path room = fs::path(file).parent_path();
  for (const std::string& name :
       all_matches(read_file(file), "^ *# *include \"([^\"]+)\"")) {
    found.push_back((room / name).lexically_normal().string());
  }
  return found;
}

std::size_t floor_of(const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  const auto floor = std::find(kFloors.begin(), kFloors.end(), folder);
  return folder.empty() ? 1 : static_cast<std::size_t>(floor - kFloors.begin());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(repository)

BOOST_AUTO_TEST_CASE(floors_include_only_what_is_on_or_below_them) {
  int found = 0;
  for (const std::string& file : all_sources()) {
    for (const std::string& included : includes(file)) {
      BOOST_TEST_REQUIRE(fs::exists(tests::project() / included),
                         file << " includes " << included);
      BOOST_TEST(floor_of(included) >= floor_of(file),
                 file << " includes " << included);
      ++found;
    }
  }
  BOOST_TEST(found > 30);
}

BOOST_AUTO_TEST_CASE(public_header_includes_the_standard_library_alone) {
  BOOST_TEST(includes("ddbmutex.hpp").empty());
  const std::vector<std::string> headers = libraries("ddbmutex.hpp");
  BOOST_TEST(headers.size() > 5u);
  for (const std::string& header : headers) {
    // No folder and no suffix: neither a library's nor the C library's.
    BOOST_TEST(header.find_first_of("/.") == header.npos, header);
  }
}

BOOST_AUTO_TEST_CASE(libraries_are_seen_in_their_rooms_alone) {
  const std::map<std::string, std::set<std::string>> rooms = {
      {"curl/",
       {"sigv4/http.cpp", "sigv4/http_limits.cpp", "sigv4/http_setup.cpp",
        "sigv4/url.cpp"}},
      {"openssl/",
       {"sigv4/base64.cpp", "sigv4/keys/dpop.cpp", "sigv4/sigv4.cpp",
        "sigv4/sigv4.hpp"}},
      {"rapidjson/", {"sigv4/json.cpp"}},
      {"boost/", {}},
  };
  for (const auto& [library, allowed] : rooms) {
    std::set<std::string> seen;
    for (const std::string& file : all_sources()) {
      for (const std::string& included : libraries(file)) {
        if (included.rfind(library, 0) == 0) seen.insert(file);
      }
    }
    BOOST_TEST(seen == allowed, boost::test_tools::per_element());
  }
}

// What a simulation replaces is all defined in a few files: nothing else asks
// the system for the time, for randomness or for threads, or waits for others.
BOOST_AUTO_TEST_CASE(system_is_asked_behind_its_seam_alone) {
  const std::map<std::string, std::set<std::string>> seams = {
      {"clock_gettime\\(|_clock::now\\(|\\btime\\(nullptr\\)|gettimeofday",
       {"sigv4/system.cpp"}},
      {"getentropy|getrandom|random_device|RAND_bytes|/urandom",
       {"sigv4/system.cpp"}},
      {"std::(?:recursive_|shared_|timed_)?mutex\\b|std::condition_variable|"
       "pthread_(?:mutex|cond|rwlock|once)|call_once|\\bsem_\\w+\\(|\\bfutex",
       {"sigv4/system.cpp", "sigv4/system.hpp"}},
      {"pthread_(?:create|join|detach)|std::(?:j?thread|async|this_thread)\\b",
       {"sigv4/system.cpp"}},
      {"\\b(?:eventfd|epoll_\\w+|p?select|usleep|nanosleep)\\(",
       {"sigv4/waiting.cpp"}},
      {"\\btimerfd_\\w+\\(", {"sigv4/boot_timer.hpp"}},
      // A program that gives keys is waited for by itself.
      {"\\bpoll\\(", {"sigv4/keys/program.cpp", "sigv4/waiting.cpp"}},
  };
  std::string files;
  for (const std::string& file : all_sources()) files += " " + file;
  for (const auto& [asks, allowed] : seams) {
    // Not in a comment.
    const tests::Ran ran =
        tests::shell("cd '" + tests::project().string() +
                     "' && grep -lP '^(?:(?!//).)*(?:" + asks + ")'" + files);
    BOOST_TEST(tests::as_set(all_matches(ran.said, "^(.+)$")) == allowed,
               boost::test_tools::per_element());
  }
}

// So that all sources can be compiled whatever is left out.  The part
// "endpoints" has no source of its own.
BOOST_AUTO_TEST_CASE(source_of_a_part_is_nothing_without_it) {
  std::set<std::string> parts;
  for (const std::string& file : all_sources()) {
    const std::string text = read_file(file);
    const auto part = all_matches(text.substr(0, text.find('\n') + 1),
                                  "^#ifndef DDBMUTEX_NO_(\\w+)\n");
    if (part.empty()) continue;
    const std::string end = "}  // namespace ddbmutex\n#endif\n";
    BOOST_TEST((text.size() > end.size() &&
                text.compare(text.size() - end.size(), end.size(), end) == 0),
               file);
    parts.insert(part[0]);
  }
  const std::set<std::string> wanted = {"HOSTS", "LAYOUTS", "PROFILES"};
  BOOST_TEST(parts == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
