// Whoever comes from one of the libraries that examples/README.md names finds
// its calls here: what is said to be theirs is in the public header, and
// features.txt names tests that show it.
#include <algorithm>
#include <boost/test/tree/traverse.hpp>
#include <boost/test/tree/visitor.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif

#include "tests/support/files.hpp"

namespace {

namespace ut = boost::unit_test;
using tests::all_matches;
using tests::as_set;
using tests::between;
using tests::read_file;
using Words = std::vector<std::string>;

// --- What there is -----------------------------------------------------------

// "renewing/lease_is_renewed_at_the_age_that_is_told", of this program.  A case
// of data is a suite to Boost.
std::set<std::string> tests_there_are() {
  struct Collector : ut::test_tree_visitor {
    void visit(const ut::test_case& test) override {
      names.insert(test.full_name());
    }
    bool test_suite_start(const ut::test_suite& suite) override {
      const auto master = ut::framework::master_test_suite().p_id;
      const bool is_inner = suite.p_id != master && suite.p_parent_id != master;
      if (is_inner) names.insert(suite.full_name());
      return true;
    }
    std::set<std::string> names;
  } collector;
  ut::traverse_test_tree(ut::framework::master_test_suite(), collector, true);
  return collector.names;
}

// Of a class or a struct or an enumeration of the public headers, without its
// comments and its private part; empty if there is no such.
std::string body_of(const std::string& type) {
  static const std::string header = tests::replaced(
      read_file("ddbmutex.hpp") + read_file("ddbmutex/any_of.hpp"), "//[^\n]*",
      "");
  for (const char* kind : {"class ", "struct ", "enum class "}) {
    const std::string head = "\n" + (kind + type) + " {";
    const auto begin = header.find(head);
    if (begin == std::string::npos) continue;
    const std::string rest = header.substr(begin + head.size());
    const std::string body = rest.substr(0, rest.find("\n};"));
    return body.substr(0, body.find("\n private:"));
  }
  return {};
}

Words calls_of(const std::string& type) {
  return all_matches(body_of(type),
                     "^  (?!explicit)(?:\\[\\[nodiscard\\]\\] )?(?:static )?"
                     "(?:const )?[\\w:]+(?:<[\\w:<>]+>)?&? (\\w+)\\(");
}

Words members_of(const std::string& type) {
  return all_matches(body_of(type),
                     "^  (?! )[\\w:<>(), &]+ (\\w+)(?:\\{.*\\}| = .*)?; *$");
}

// "Options::ttl", "try_lock()", "Table::list()", "Errc::no_row", "Table"
bool is_in_header(const std::string& name) {
  const bool is_call = name.find("()") != name.npos;
  const std::string bare = name.substr(0, name.find('('));
  const auto colons = bare.find("::");
  if (colons == bare.npos && !is_call) return !body_of(bare).empty();
  const std::string type =
      colons == bare.npos ? "DdbMutex" : bare.substr(0, colons);
  const std::string last = colons == bare.npos ? bare : bare.substr(colons + 2);
  if (is_call) return as_set(calls_of(type)).count(last) == 1;
  if (type == "Errc") {
    return as_set(all_matches(body_of(type), "^  (\\w+)(?: = 1)?,"))
        .count(last);
  }
  return as_set(members_of(type)).count(last) == 1;
}

// --- What the page and features.txt say --------------------------------------

// The page's tables of calls, by whose they are: the cells of their rows.
std::map<std::string, std::vector<Words>> moving_over() {
  std::map<std::string, std::vector<Words>> tables;
  std::istringstream lines(read_file("examples/README.md"));
  std::string whose;
  bool in_rows = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("## From ", 0) == 0) whose = line.substr(8);
    if (line == "| theirs | here |") {
      BOOST_TEST(tables.count(whose) == 0u, "two tables of " << whose);
      tables[whose];
    }
    in_rows = !whose.empty() &&
              (line == "|---|---|" || (in_rows && line.rfind("| ", 0) == 0));
    if (in_rows && line[1] == ' ') {
      tables[whose].push_back(all_matches(line, "\\| *(.*?) *(?=\\|)"));
    }
  }
  return tables;
}

// What is ours: what stands between back quotes, but for the standard's.
Words names_in(const std::string& cell) {
  Words ours;
  for (const std::string& name : all_matches(cell, "`([^`]+)`")) {
    if (name.rfind("std::", 0) != 0) ours.push_back(name);
  }
  return ours;
}

std::map<std::string, Words> features() {
  std::map<std::string, Words> all;
  std::istringstream lines(read_file("tests/features.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto colon = line.find(" : ");
    BOOST_TEST_REQUIRE(colon != line.npos, line);
    const std::string name = line.substr(0, colon);
    BOOST_TEST(all.count(name) == 0u, name << " stands there twice");
    all[name] = all_matches(line.substr(colon + 3), " ?([^,]+)");
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(feature_list)

BOOST_AUTO_TEST_CASE(page_has_a_table_for_each_library_we_come_from) {
  const std::set<std::string> forebears = {
      "paulmach/ddblock", "samstradling/dynamodb-lock-client-golang",
      "cirello-io/dynamolock", "intercom/lease",
      "awslabs/amazon-dynamodb-lock-client"};
  std::set<std::string> there;
  for (const auto& [whose, rows] : moving_over()) {
    there.insert(whose);
    BOOST_TEST(rows.size() >= 8u, whose);
    for (const Words& row : rows) {
      BOOST_TEST_REQUIRE(row.size() == 2u, whose << ": " << row.at(0));
      BOOST_TEST(row[0] != "", whose);
      BOOST_TEST(!names_in(row[1]).empty(), whose << ": " << row[0]);
    }
  }
  BOOST_TEST(there == forebears, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_said_to_be_here_is_in_the_header_and_shown) {
  const auto shown = features();
  for (const auto& [whose, rows] : moving_over()) {
    for (const Words& row : rows) {
      for (const std::string& name : names_in(row.at(1))) {
        BOOST_TEST(is_in_header(name), name << ", for " << row[0]);
        BOOST_TEST(shown.count(name) == 1u, name << " is not in features.txt");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(list_names_what_is_in_the_header) {
  BOOST_TEST(!is_in_header("Options::no_such"));
  BOOST_TEST(!is_in_header("no_such()"));
  BOOST_TEST(!is_in_header("NoSuch"));
  for (const auto& [name, tests] : features()) {
    BOOST_TEST(is_in_header(name), name);
    BOOST_TEST(!tests.empty(), name);
  }
}

BOOST_AUTO_TEST_CASE(list_has_every_call_and_every_option) {
  const auto shown = features();
  Words wanted;
  for (const std::string& call : calls_of("DdbMutex")) {
    wanted.push_back(call + "()");
  }
  for (const std::string& call : calls_of("Table")) {
    wanted.push_back("Table::" + call + "()");
  }
  for (const char* type : {"Options", "TableOptions", "Creation", "Changes"}) {
    for (const std::string& member : members_of(type)) {
      wanted.push_back(std::string(type) + "::" + member);
    }
  }
  BOOST_TEST(as_set(wanted).size() > 60u);
  for (const std::string& name : wanted) {
    BOOST_TEST(shown.count(name) == 1u, name << " is not in features.txt");
  }
}

BOOST_AUTO_TEST_CASE(tests_that_are_named_are_there) {
  const std::set<std::string> there = tests_there_are();
  for (const auto& [name, tests] : features()) {
    for (const std::string& test : tests) {
      BOOST_TEST(there.count(test) == 1, name << ": there is no " << test);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
