// What `make size` writes has the form that it says, also where it can measure
// little: nothing is compiled here.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/shell.hpp"

namespace {

using namespace tests;

struct Row {
  std::string value, unit, note;
};
using Rows = std::map<std::string, Row>;

// Each line has its four fields, and no metric comes twice.
Rows rows_in(const std::filesystem::path& path) {
  Rows rows;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const auto fields = all_matches(line + "\t", "([^\t]*)\t");
    BOOST_TEST_REQUIRE(fields.size() == 4u, line);
    const Row row{fields[1], fields[2], fields[3]};
    BOOST_TEST(rows.emplace(fields[0], row).second, fields[0]);
    BOOST_TEST(!row.value.empty(), line);
    BOOST_TEST(!row.note.empty(), line);
  }
  return rows;
}

double number(const Rows& rows, const std::string& metric) {
  const auto row = rows.find(metric);
  BOOST_TEST_REQUIRE((row != rows.end()), "no " << metric);
  char* end = nullptr;
  const double value = std::strtod(row->second.value.c_str(), &end);
  BOOST_TEST(*end == '\0', metric << " is " << row->second.value);
  return value;
}

// The parts that the Makefile says may be left out.
std::vector<std::string> parts() {
  return all_matches(shell("make -s parts").said, "(\\w+)");
}

struct Report {
  Ran ran;
  Rows rows;
};

// With what the Makefile gives it, but for what `setting` says otherwise.
Report size_of(const std::string& arguments, const std::string& setting = {}) {
  const Home home;
  const std::string file = (home.root / "size.tsv").string();
  Report report;
  report.ran = shell("export BUILD=/nonexistent O2_BUILD= " + setting +
                     "; tests/size/run " + arguments + " " + file);
  report.rows = rows_in(file);
  return report;
}

// Everything but the lines.
void expect_unmeasured(const Rows& rows) {
  for (const auto& [metric, row] : rows) {
    const bool counted = has(metric, "lines_") || has(metric, "comments_");
    BOOST_TEST((row.value == "-") == !counted, metric << " is " << row.value);
    BOOST_TEST(has(row.note, "not measured: ") == !counted, row.note);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(size_of_the_library)

BOOST_AUTO_TEST_CASE(every_metric_has_its_row) {
  const Report report = size_of("-n");
  BOOST_TEST(report.ran.status == 0, report.ran.said);
  for (const char* metric : {"core_added_bytes",
                             "core_added_apart_bytes",
                             "core_added_lto_bytes",
                             "core_added_lto_noexcept_bytes",
                             "all_added_bytes",
                             "all_added_apart_bytes",
                             "all_added_lto_bytes",
                             "text_o2_bytes",
                             "lines_library",
                             "comments_library",
                             "lines_core",
                             "comments_core",
                             "rss_extra_kib",
                             "rss_extra_1000_kib",
                             "held_lock_bytes",
                             "hashed_blocks",
                             "instructions_own",
                             "instructions_ratio",
                             "frames",
                             "frames_files"}) {
    BOOST_TEST(report.rows.count(metric) == 1u, metric);
    BOOST_TEST(has(report.ran.said, metric), metric);
  }
  BOOST_TEST(parts().size() >= 3u);
  for (const std::string& part : parts()) {
    BOOST_TEST(report.rows.count("part_" + part + "_bytes") == 1u, part);
  }
  expect_unmeasured(report.rows);
}

BOOST_AUTO_TEST_CASE(lines_are_those_of_the_library) {
  double all = 0;
  for (const char* room : {"ddbmutex.?pp", "ddbmutex/*.?pp", "ddbmutex/*/*.?pp",
                           "sigv4/*.?pp", "sigv4/*/*.?pp"}) {
    const Ran ran =
        shell("cat " + std::string(room) + " | grep -vcE '^\\s*(//|$)'");
    BOOST_TEST(ran.status == 0, ran.said);
    all += std::atof(ran.said.c_str());
  }
  const Rows rows = size_of("-n").rows;
  BOOST_TEST(number(rows, "lines_library") == all);
  BOOST_TEST(number(rows, "lines_core") < all);
  BOOST_TEST(number(rows, "lines_core") > all / 4);
  for (const char* share : {"comments_library", "comments_core"}) {
    BOOST_TEST(number(rows, share) > 0);
    BOOST_TEST(number(rows, share) < 100);
  }
}

BOOST_AUTO_TEST_CASE(tool_that_is_missing_is_told) {
  const Home home;
  const Ran made = shell(
      "for tool in env node make sh nproc find; do ln -s \"$(command -v "
      "$tool)\" "
      "'" +
      home.root.string() + "'; done");
  BOOST_TEST(made.status == 0, made.said);
  const Report report = size_of("-n", "PATH='" + home.root.string() + "'");
  BOOST_TEST(report.ran.status == 0, report.ran.said);
  for (const char* tool : {"valgrind", "gdb"}) {
    BOOST_TEST(has(report.ran.said, std::string(tool) + " is not there: left"),
               report.ran.said);
    BOOST_TEST(has(report.ran.said, std::string("apt-get install ") + tool),
               report.ran.said);
  }
  BOOST_TEST(report.rows.at("instructions_own").note.find("no valgrind") !=
             std::string::npos);
  BOOST_TEST(report.rows.at("frames").note.find("no gdb") != std::string::npos);
  BOOST_TEST(number(report.rows, "lines_library") > 0);
}

// A build that is not there, and a compiler that is not.
BOOST_AUTO_TEST_CASE(what_cannot_be_measured_says_why) {
  const Report report = size_of("", "CXX=no-such-compiler");
  BOOST_TEST(report.ran.status == 1, report.ran.said);
  expect_unmeasured(report.rows);
  BOOST_TEST(has(report.rows.at("core_added_bytes").note, "no-such-compiler"));
}

BOOST_AUTO_TEST_SUITE_END()
