// What the pages say is what the files are and the library does.  The programs
// and commands of README are run in test_examples.cpp.
#include <rapidjson/document.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ddbmutex;
using tests::all_matches;
using tests::as_set;
using tests::between;
using tests::has;
using tests::read_file;
using Words = std::vector<std::string>;
using Set = std::set<std::string>;

const std::string kReadme = "README.md";
const std::string kLock = "ddbmutex/README.md";
const std::string kKeys = "sigv4/README.md";
const Words kPages = {kReadme,
                      kLock,
                      kKeys,
                      "examples/README.md",
                      "tests/README.md",
                      "packaging/README.md",
                      "packaging/small.md",
                      "CHANGELOG.md"};

// The rows of README's table whose first line is that, as rows of cells.
std::vector<Words> table(const std::string& head) {
  std::vector<Words> rows;
  const std::string text =
      between(read_file(kReadme), "\n" + head + "\n|-", "\n\n");
  for (const std::string& line : all_matches(text + "\n", "^(\\| .*)$")) {
    rows.push_back(all_matches(line, "\\| *(.*?) *(?=\\|)"));
  }
  BOOST_TEST_REQUIRE(!rows.empty(), "nothing under " << head);
  return rows;
}

std::string without_code(const std::string& text) {
  return tests::replaced(text, "```[^`]*```", "");
}

// --- Names of files ----------------------------------------------------------

// Files of a folder, from the top of the project.
Words files_in(const std::string& folder) {
  Words files;
  for (const auto& entry : fs::directory_iterator(tests::project() / folder)) {
    if (!entry.is_regular_file()) continue;
    files.push_back((fs::path(folder) / entry.path().filename()).string());
  }
  return files;
}

// All of the library but its public header.
Words sources() {
  Words all = {"ddbmutex.cpp"};
  for (const char* room : {"ddbmutex", "ddbmutex/lock", "ddbmutex/dynamodb",
                           "sigv4", "sigv4/keys"}) {
    for (const std::string& file : files_in(room)) {
      if (!all_matches(file, "(\\.[ch]pp)$").empty()) all.push_back(file);
    }
  }
  return all;
}

// What links to the headings of a page have behind their "#".
Set headings_of(const std::string& name) {
  Set all;
  for (std::string heading :
       all_matches(without_code(read_file(name)), "^#+ (.+)$")) {
    for (char& c : heading) c = static_cast<char>(std::tolower(c));
    all.insert(
        tests::replaced(tests::replaced(heading, "[^\\w -]", ""), " ", "-"));
  }
  return all;
}

// --- What is sent ------------------------------------------------------------

// A table behind a gate that sees what is sent.
struct Recorder {
  TableOptions options() const {
    TableOptions options = tests::table_options(gate.engine());
    options.endpoint = gate.server().url();
    return options;
  }

  // Since this was last asked, as IAM names them: of a transaction that is what
  // each of its parts needs.
  Set permissions() {
    Set all;
    const auto requests = gate.server().requests();
    for (; told < requests.size(); ++told) {
      const std::string action = tests::action_of(requests[told]);
      if (action != "TransactWriteItems") all.insert("dynamodb:" + action);
      if (action != "TransactWriteItems") continue;
      for (const auto& part :
           all_matches(requests[told].body, "\"(\\w+)\":\\{[^{}]*\"Tab")) {
        all.insert("dynamodb:" + part + "Item");
      }
    }
    return all;
  }

  tests::Gate gate;
  std::size_t told = 0;
};

// By the statements of README's policy.
std::map<std::string, Set> policy() {
  rapidjson::Document json;
  json.Parse(between(read_file(kReadme), "```json\n", "```\n").c_str());
  BOOST_TEST_REQUIRE(json.IsObject());
  std::map<std::string, Set> allowed;
  for (const auto& statement : json["Statement"].GetArray()) {
    BOOST_TEST(statement["Effect"].GetString() == "Allow");
    BOOST_TEST(statement["Resource"].GetString() ==
               "arn:aws:dynamodb:*:*:table/" + TableOptions().name);
    for (const auto& action : statement["Action"].GetArray()) {
      allowed[statement["Sid"].GetString()].insert(action.GetString());
    }
  }
  return allowed;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pages)

BOOST_AUTO_TEST_CASE(links_of_pages_lead_somewhere) {
  Set linked;
  for (const std::string& name : kPages) {
    for (const std::string& link :
         all_matches(without_code(read_file(name)), "\\]\\(([^)]+)\\)")) {
      const std::string path = link.substr(0, link.find('#'));
      const fs::path file =
          path.empty() ? fs::path(name) : fs::path(name).parent_path() / path;
      BOOST_TEST(fs::exists(tests::project() / file), name << ": " << link);
      if (path.size() < link.size()) {
        BOOST_TEST(headings_of(file.lexically_normal().string())
                           .count(link.substr(path.size() + 1)) == 1u,
                   name << ": " << link);
      }
      if (name == kReadme) linked.insert(file.lexically_normal());
    }
  }
  for (const std::string& name : kPages) {
    BOOST_TEST((name == kReadme || linked.count(name) == 1), name);
  }
}

BOOST_AUTO_TEST_CASE(variables_are_read_and_all_that_are_read_are_told) {
  Set read;
  for (const std::string& file : sources()) {
    for (const auto& name :
         all_matches(read_file(file), "\"(AWS_[A-Z0-9_]+)\"")) {
      read.insert(name);
    }
  }
  BOOST_TEST(
      as_set(all_matches(read_file(kKeys), "`(AWS_[A-Z0-9_]+)`")) == read,
      boost::test_tools::per_element());
}

// --- The code ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(usage_is_that_of_the_header_and_of_an_example) {
  const std::string shown = between(read_file(kReadme), "```cpp\n", "```\n");
  const std::string header =
      between(read_file("ddbmutex.hpp"), "item.\n//\n", "//\n// require");
  BOOST_TEST("\n" + shown ==
             tests::replaced("\n" + header, "\n//( {3})?", "\n"));

  // The include stands with the others there.
  const std::string include = "#include \"ddbmutex.hpp\"\n";
  BOOST_TEST_REQUIRE(shown.rfind(include + "\n", 0) == 0u);
  const std::string run = read_file("examples/ten_lines.cpp");
  BOOST_TEST(has(run, "\n" + include));
  BOOST_TEST(has(run, shown.substr(include.size())));
}

namespace {

std::vector<std::string> hosts() { return {"north", "south"}; }
void roll_out(const std::string&) {}

// As README has it.
std::shared_ptr<ddbmutex::Table> team_locks() {
  ddbmutex::TableOptions where;
  where.name = "team-locks";
  where.region = "eu-west-1";
  static const auto table = std::make_shared<ddbmutex::Table>(where);
  return table;
}

void deploy() {
  ddbmutex::Options options;
  options.table = team_locks();
  options.ttl = std::chrono::seconds(20);
  options.on_lost = [](ddbmutex::Loss why) {
    std::fprintf(stderr, "lock lost: %s\n", name_of(why));
  };

  ddbmutex::DdbMutex mutex("deploy", options);
  std::lock_guard guard(mutex);
  for (const auto& host : hosts()) {
    mutex.require(std::chrono::seconds(5));
    roll_out(host);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(options_that_are_shown_are_compiled) {
  const std::string text = read_file(kReadme);
  const std::string second =
      between(text.substr(text.find("```cpp\n") + 1), "```cpp\n", "```\n");
  BOOST_TEST(has(read_file("tests/test_pages.cpp"), "\n" + second));
  static_cast<void>(deploy);  // That it compiles is enough.
}

// --- The policy --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(policy_allows_what_is_sent_and_no_more) {
  auto allowed = policy();
  BOOST_TEST(allowed.size() == 4u);
  Recorder recorder;
  Options options =
      tests::unhurried(std::make_shared<Table>(recorder.options()));
  DdbMutex deleted(tests::fresh_name(), options);
  options.keep_row = true;
  DdbMutex kept(tests::fresh_name(), options);
  for (DdbMutex* mutex : {&deleted, &kept}) {
    mutex->lock();
    mutex->renew();
    mutex->release();
  }
  BOOST_TEST(recorder.permissions() == allowed["Lock"],
             boost::test_tools::per_element());

  options.table->list([](const LockInfo&) { return true; });
  options.table->list("x", [](const LockInfo&) { return true; });
  BOOST_TEST(recorder.permissions() == allowed["Manage"],
             boost::test_tools::per_element());

  kept.lock();
  recorder.permissions();
  kept.guarded_write(R"([{"Put":{"TableName":")" +
                     recorder.gate.engine().table() +
                     R"(","Item":{"name":{"S":"pages"}}}}])");
  Set guarded = recorder.permissions();
  BOOST_TEST(guarded.erase("dynamodb:PutItem") == 1u);  // The user's own.
  BOOST_TEST(guarded == allowed["Guard"], boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(policy_allows_to_make_the_table) {
  Recorder recorder;
  TableOptions options = recorder.options();
  options.name = "ddbmutex-test-pages-" + std::to_string(getpid());
  Table made(options);
  made.create();
  Set sent = recorder.permissions();
  sent.insert("dynamodb:DescribeTable");
  BOOST_TEST(sent == policy()["CreateTable"], boost::test_tools::per_element());
  recorder.gate.engine().delete_table(options.name);
}

// --- Options, and what is promised of them -----------------------------------

BOOST_AUTO_TEST_CASE(parts_that_may_be_left_out_are_known_to_the_sources) {
  Set conditions;
  for (const std::string& file : sources()) {
    for (const auto& macro :
         all_matches(read_file(file), "(DDBMUTEX_NO_[A-Z]+)")) {
      conditions.insert(macro);
    }
  }
  Set told;
  for (const Words& row : table("| part | compile with | what you lose |")) {
    told.insert(between(row.at(1), "-D", "`"));
  }
  BOOST_TEST(told == conditions, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
