// What the pages say is what the files are and the library does.  The programs
// and commands of README are run in test_examples.cpp, the tables of
// examples/README.md compared with the header in test_features.cpp, the
// pictures with what they show in test_pictures.cpp.
#include <fnmatch.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ddbmutex;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
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
const std::string kExamples = "examples/README.md";
const std::string kTests = "tests/README.md";
const std::string kSmall = "packaging/small.md";
const Words kPages = {kReadme,   kLock,         kKeys,
                      kExamples, kTests,        "packaging/README.md",
                      kSmall,    "CHANGELOG.md"};

// Words that stand beside each other on a page may stand in two lines of it.
std::string in_one_line(const std::string& text) {
  return tests::replaced(text, "\\s+", " ");
}

const std::string& page(const std::string& name) {
  static std::map<std::string, std::string> pages;
  std::string& text = pages[name];
  if (text.empty()) text = read_file(name) + "\n";
  return text;
}

bool says(const std::string& name, const std::string& words) {
  return has(in_one_line(page(name)), words);
}

// The cells of a line "| a | b |".
Words cells(const std::string& line) {
  return all_matches(line, "\\| *(.*?) *(?=\\|)");
}

// The rows of the page's table whose first line is that, as rows of cells.
std::vector<Words> table(const std::string& name, const std::string& head) {
  std::vector<Words> rows;
  const std::string text = between(page(name), "\n" + head + "\n|-", "\n\n");
  for (const std::string& line : all_matches(text + "\n", "^(\\| .*)$")) {
    rows.push_back(cells(line));
  }
  BOOST_TEST_REQUIRE(!rows.empty(), "nothing under " << head);
  return rows;
}

Set first_cells(const std::vector<Words>& rows) {
  Set all;
  for (const Words& row : rows) all.insert(row.at(0));
  return all;
}

// As a page has it: between back quotes.
std::string quoted(const std::string& name) { return "`" + name + "`"; }

std::string without_code(const std::string& text) {
  return tests::replaced(text, "```[^`]*```", "");
}

// What a page has between back quotes, in one line.
Words all_quoted(const std::string& text) {
  return all_matches(without_code(text), "`([^`\n]+)`");
}

// "60 s", "25 ms", "366 days"
std::string words(milliseconds time) {
  if (time % 24h == 0ms && time >= 48h) {
    return std::to_string(time / 24h) + " days";
  }
  if (time % 1s == 0ms) return std::to_string(time / 1s) + " s";
  return std::to_string(time.count()) + " ms";
}

std::string header_between(const std::string& from, const std::string& to) {
  return between(read_file("ddbmutex.hpp"), from, to);
}

// Files of a folder, from the top of the project.
Words files_in(const std::string& folder) {
  Words files;
  for (const auto& entry : fs::directory_iterator(tests::project() / folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string();
    files.push_back(folder.empty() ? name : folder + "/" + name);
  }
  return files;
}

bool is_source(const std::string& file) {
  const auto extension = fs::path(file).extension();
  return extension == ".cpp" || extension == ".hpp";
}

// All of the library but its public header.
Words sources() {
  Words all = {"ddbmutex.cpp"};
  for (const char* room : {"ddbmutex", "ddbmutex/lock", "ddbmutex/dynamodb",
                           "sigv4", "sigv4/keys"}) {
    for (const std::string& file : files_in(room)) {
      if (is_source(file)) all.push_back(file);
    }
  }
  return all;
}

std::string all_text(const Words& files) {
  std::string text;
  for (const std::string& file : files) text += read_file(file);
  return text;
}

// --- Names of files ----------------------------------------------------------

// "mutex.cpp", "from_*.cpp", "../ddbmutex.hpp", "sigv4/"
bool is_file_name(const std::string& text) {
  static const std::string form =
      "^([\\w.*/-]+(\\.(cpp|hpp|txt|md|js|svg|\\*)|/))$";
  return !all_matches(text, form).empty();
}

// What is named so on that page, which may speak of its own folder or of the
// project's; from the top of the project.
Set files_named(const std::string& name, const std::string& file) {
  Set found;
  for (const fs::path& from : {fs::path(name).parent_path(), fs::path()}) {
    const fs::path path = (from / file).lexically_normal();
    if (file.back() == '/') {
      if (fs::is_directory(tests::project() / path)) found.insert(path);
      continue;
    }
    const fs::path folder = path.parent_path();
    if (!fs::is_directory(tests::project() / folder)) continue;
    for (const std::string& one : files_in(folder.string())) {
      if (fnmatch(path.c_str(), one.c_str(), FNM_PATHNAME) == 0) {
        found.insert(one);
      }
    }
  }
  return found;
}

// --- Asking a constructor ----------------------------------------------------

// Without a server: it is closed.
std::shared_ptr<Table> closed_table() {
  TableOptions options = tests::table_options("http://127.0.0.1:9");
  auto table = std::make_shared<Table>(options);
  table->close();
  return table;
}

// Why a mutex of such options cannot be; empty if it can.
std::string refusal(Options options) {
  options.table = closed_table();
  try {
    DdbMutex mutex("x", options);
    std::error_code error;
    mutex.lock(error);
    return error == Errc::closed ? "" : mutex.last_error();
  } catch (const std::system_error& error) {
    BOOST_TEST(error.code() == Errc::bad_option);
    return error.what();
  }
}

std::string refusal_of_ttl(milliseconds ttl) {
  Options options;
  options.ttl = ttl;
  return refusal(options);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pages)

// --- The pages ---------------------------------------------------------------

namespace {

long line_of(const std::string& text, const std::string& words) {
  const auto at = text.find(words);
  BOOST_TEST_REQUIRE(at != text.npos, "no " << words);
  return 1 + std::count(text.begin(),
                        text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

}  // namespace

BOOST_AUTO_TEST_CASE(readme_is_short_and_begins_with_what_one_does_first) {
  const std::string& text = page(kReadme);
  BOOST_TEST(std::count(text.begin(), text.end(), '\n') <= 330);
  const long code = line_of(text, "```cpp\n");
  const long status = line_of(text, "\n**Status.** ");
  const long demo = line_of(text, "\n    make demo ");
  const long test = line_of(text, "\n    make test ");
  const long limits = line_of(text, "\n## What is not promised");
  const long made = line_of(text, "\n## The table");
  const long install = line_of(text, "\n    sudo apt install ");
  const long build = line_of(text, "\n    c++ ");
  const long options = line_of(text, "\n## Options that matter");
  const long parts = line_of(text, "\n| part | ");
  const std::vector<long> order = {code, status,  demo,  test,    limits,
                                   made, install, build, options, parts};
  BOOST_TEST(std::is_sorted(order.begin(), order.end()));
  BOOST_TEST(test < 45);
}

BOOST_AUTO_TEST_CASE(pages_have_lines_that_fit) {
  for (const std::string& name : kPages) {
    for (const std::string& line : all_matches(page(name), "^(.{81,})$")) {
      const bool is_command = line.rfind("    ", 0) == 0;
      BOOST_TEST((is_command || line[0] == '|' || line[0] == '!'),
                 name << ": " << line);
    }
  }
}

namespace {

// What links to the headings of a page have behind their "#".
Set headings_of(const std::string& name) {
  Set all;
  for (std::string heading :
       all_matches(without_code(page(name)), "^#+ (.+)$")) {
    for (char& c : heading) c = static_cast<char>(std::tolower(c));
    all.insert(
        tests::replaced(tests::replaced(heading, "[^\\w -]", ""), " ", "-"));
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(links_of_pages_lead_somewhere) {
  Set linked;
  for (const std::string& name : kPages) {
    for (const std::string& link :
         all_matches(without_code(page(name)), "\\]\\(([^)]+)\\)")) {
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

BOOST_AUTO_TEST_CASE(files_that_pages_name_exist) {
  int found = 0;
  for (const std::string& name : kPages) {
    for (const std::string& file : all_quoted(page(name))) {
      // What a user writes, or a run.
      const bool made = file == "report.cpp" || file == "CMakeLists.txt" ||
                        file.rfind("build/", 0) == 0;
      if (made || !is_file_name(file)) continue;
      BOOST_TEST(!files_named(name, file).empty(),
                 name << " names " << file << ", which does not exist");
      ++found;
    }
  }
  BOOST_TEST(found > 60);
}

BOOST_AUTO_TEST_CASE(house_pages_name_every_source) {
  Set named = {"ddbmutex.hpp"};
  for (const std::string& name : {kLock, kKeys}) {
    const std::string files = page(name).substr(page(name).rfind("\n#"));
    for (const std::string& file : all_quoted(files)) {
      if (!is_file_name(file)) continue;
      // A star stands for .cpp and .hpp alone.
      const auto star = file.find('*');
      BOOST_TEST(
          (star == file.npos || star == file.size() - 1 || file == "from_*"),
          file);
      for (const std::string& one : files_named(name, file)) named.insert(one);
    }
  }
  for (const std::string& file : sources()) {
    BOOST_TEST(named.count(file) == 1u, file << " is on no page");
  }
}

namespace {

std::string public_headers() {
  return read_file("ddbmutex.hpp") + read_file("ddbmutex/any_of.hpp");
}

}  // namespace

BOOST_AUTO_TEST_CASE(words_that_pages_quote_are_in_the_sources) {
  const std::string header = public_headers();
  const std::string lock = all_text(sources());
  std::map<std::string, std::string> texts;
  texts[kReadme] = header + read_file("Makefile");
  texts[kKeys] = header + lock;
  texts[kLock] = header + lock;
  for (const auto& [name, text] : texts) {
    int found = 0;
    for (const std::string& word : all_quoted(page(name))) {
      const Words parts =
          all_matches(word, "^(?:\\w+::)*([A-Za-z_]+)(?:\\(\\))?$");
      if (parts.empty() || word.rfind("std::", 0) == 0) continue;
      BOOST_TEST(has(text, parts[0]), name << ": " << word);
      ++found;
    }
    BOOST_TEST(found > 15, name);
  }
}

BOOST_AUTO_TEST_CASE(calls_that_pages_name_are_in_the_header) {
  const std::string header = public_headers();
  const std::string lock = all_text(sources());
  int found = 0;
  for (const std::string& name : {kReadme, kLock, kKeys, kExamples}) {
    for (const std::string& call :
         all_matches(page(name), "`(?:[\\w:]+::)?(\\w+)\\(\\)`")) {
      const bool here = has(header, " " + call + "(") ||
                        (name == kLock && has(lock, "::" + call + "("));
      BOOST_TEST(here, name << ": " << call);
      ++found;
    }
  }
  BOOST_TEST(found > 40);
}

BOOST_AUTO_TEST_CASE(house_page_sends_to_the_file_that_decides) {
  int found = 0;
  for (const Words& row : table(kLock, "| question | file |")) {
    Words files;
    for (const std::string& name : all_quoted(row.at(1))) {
      if (!is_file_name(name)) continue;
      for (const auto& one : files_named(kLock, name)) files.push_back(one);
    }
    BOOST_TEST_REQUIRE(!files.empty(), row.at(0));
    for (const auto& call : all_matches(row.at(1), "`(\\w+::\\w+)\\(\\)`")) {
      BOOST_TEST(has(all_text(files), " " + call + "("), call);
      ++found;
    }
  }
  BOOST_TEST(found >= 5);
}

BOOST_AUTO_TEST_CASE(helpers_that_the_page_of_tests_names_are_there) {
  const std::string support = all_text(files_in("tests/support"));
  const Words named = all_matches(page(kTests), "`(?:\\w+::)?(\\w+)\\(\\)`");
  BOOST_TEST(named.size() > 5u);
  for (const std::string& name : named) {
    const bool here =
        has(support, " " + name + "(") || has(read_file("ddbmutex.hpp"), name);
    BOOST_TEST(here, name);
  }
}

// --- The code ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(usage_is_that_of_the_header_and_of_an_example) {
  const std::string shown = between(page(kReadme), "```cpp\n", "```\n");
  const std::string in_header =
      tests::replaced("\n" + header_between("item.\n//\n", "//\n// require"),
                      "\n//( {3})?", "\n");
  BOOST_TEST("\n" + shown == in_header);

  // The include stands with the others there.
  const std::string include = "#include \"ddbmutex.hpp\"\n";
  BOOST_TEST_REQUIRE(shown.rfind(include + "\n", 0) == 0u);
  const std::string run = read_file("examples/ten_lines.cpp");
  BOOST_TEST(has(run, "\n" + include));
  BOOST_TEST(has(run, shown.substr(include.size())));
}

namespace {

int rolled_out = 0;
std::vector<std::string> hosts() { return {"north", "south"}; }
void roll_out(const std::string&) { ++rolled_out; }

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

BOOST_AUTO_TEST_CASE(options_that_are_shown_do_what_they_say) {
  const std::string text = page(kReadme);
  const std::string second =
      between(text.substr(text.find("```cpp\n") + 1), "```cpp\n", "```\n");
  BOOST_TEST(has(read_file("tests/test_pages.cpp"), "\n" + second));

  tests::ScriptedServer server;
  const std::string url = server.url();
  const tests::ProcessVariable place("AWS_ENDPOINT_URL_DYNAMODB", url.c_str());
  const tests::ProcessVariable id("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  const tests::ProcessVariable secret("AWS_SECRET_ACCESS_KEY", "secret");
  rolled_out = 0;
  deploy();
  BOOST_TEST(rolled_out == 2);
  const auto requests = server.requests();
  BOOST_TEST_REQUIRE(requests.size() == 3u);  // It looks at the time first.
  for (const auto& request : requests) {
    BOOST_TEST(has(request.body, R"("TableName":"team-locks")"));
    BOOST_TEST(has(request.header("Authorization").value_or(""),
                   "/eu-west-1/dynamodb/"));
  }
  BOOST_TEST(has(requests[1].body, R"("lease":{"N":"20000"})"));
}

BOOST_AUTO_TEST_CASE(examples_on_the_page_are_those_there_are) {
  const auto link = [](const std::string& path) {
    return "[" + fs::path(path).filename().string() + "](" +
           path.substr(path.find('/') + 1) + ")";
  };
  Set there;
  for (const std::string& file : files_in("examples")) {
    if (is_source(file)) there.insert(link(file));
  }
  BOOST_TEST(
      first_cells(table(kExamples, "| example | what it shows |")) == there,
      boost::test_tools::per_element());
  Set recipes;
  for (const std::string& file : files_in("examples/recipes")) {
    recipes.insert(link(file));
  }
  BOOST_TEST(
      first_cells(table(kExamples, "| recipe | what it shows |")) == recipes,
      boost::test_tools::per_element());
}

// --- The table ---------------------------------------------------------------

namespace {

// A server before an engine that sees what is sent.
class Recorder {
 public:
  Recorder()
      : engine_(tests::Engine::running(tests::any_engine_kind())),
        server_([this](const tests::SeenRequest& request) {
          return engine_.forward(request);
        }) {}

  tests::Engine& engine() { return engine_; }
  TableOptions options() const {
    TableOptions options = tests::table_options(engine_);
    options.endpoint = server_.url();
    return options;
  }
  std::shared_ptr<Table> table() const {
    return std::make_shared<Table>(options());
  }

  // Since this was last asked, as IAM names them: of a transaction that is what
  // each of its parts needs.
  Set permissions() {
    Set all;
    const auto requests = server_.requests();
    for (; told_ < requests.size(); ++told_) {
      const std::string action = tests::action_of(requests[told_]);
      if (action == "TransactWriteItems") {
        for (const auto& part :
             all_matches(requests[told_].body, "\"(\\w+)\":\\{[^{}]*\"Tab")) {
          all.insert("dynamodb:" + part + "Item");
        }
      } else {
        all.insert("dynamodb:" + action);
      }
    }
    return all;
  }

 private:
  tests::Engine& engine_;
  tests::ScriptedServer server_;
  std::size_t told_ = 0;
};

// By the statements of README's policy.
std::map<std::string, Set> policy() {
  rapidjson::Document json;
  json.Parse(between(page(kReadme), "```json\n", "```\n").c_str());
  BOOST_TEST_REQUIRE(json.IsObject());
  std::map<std::string, Set> told;
  for (const auto& statement : json["Statement"].GetArray()) {
    BOOST_TEST(statement["Effect"].GetString() == "Allow");
    BOOST_TEST(statement["Resource"].GetString() ==
               "arn:aws:dynamodb:*:*:table/" + TableOptions().name);
    for (const auto& action : statement["Action"].GetArray()) {
      told[statement["Sid"].GetString()].insert(action.GetString());
    }
  }
  return told;
}

void use(DdbMutex& mutex) {
  mutex.lock();
  mutex.renew();
  mutex.release();
}

}  // namespace

BOOST_AUTO_TEST_CASE(policy_allows_what_is_sent_and_no_more) {
  auto told = policy();
  BOOST_TEST(told.size() == 4u);
  Recorder recorder;
  Options options = tests::unhurried(recorder.table());
  DdbMutex deleted(tests::fresh_name(), options);
  use(deleted);
  options.keep_row = true;
  DdbMutex kept(tests::fresh_name(), options);
  use(kept);
  BOOST_TEST(recorder.permissions() == told["Lock"],
             boost::test_tools::per_element());

  deleted.lock();
  options.table->force_unlock(options.table->inspect(deleted.name()));
  deleted.unlock();
  for (const std::string& action : recorder.permissions()) {
    BOOST_TEST(told["Lock"].count(action) == 1u, action);
  }

  options.table->list([](const LockInfo&) { return true; });
  options.table->list("x", [](const LockInfo&) { return true; });
  BOOST_TEST(recorder.permissions() == told["Manage"],
             boost::test_tools::per_element());

  kept.lock();
  recorder.permissions();
  kept.guarded_write(R"([{"Put":{"TableName":")" + recorder.engine().table() +
                     R"(","Item":{"name":{"S":"pages"}}}}])");
  Set guarded = recorder.permissions();
  BOOST_TEST(guarded.erase("dynamodb:PutItem") == 1u);  // The user's own.
  BOOST_TEST(guarded == told["Guard"], boost::test_tools::per_element());
  BOOST_TEST(says(kReadme, "`dynamodb:PutItem` or whatever your writes are"));
}

BOOST_AUTO_TEST_CASE(policy_allows_to_make_the_table) {
  Recorder recorder;
  TableOptions options = recorder.options();
  options.name = "ddbmutex-test-pages-" + std::to_string(getpid());
  Table table(options);
  BOOST_TEST(!table.exists());
  BOOST_TEST(recorder.permissions() == Set{"dynamodb:DescribeTable"},
             boost::test_tools::per_element());
  BOOST_TEST(says(kReadme, "needs only `dynamodb:DescribeTable`"));
  table.create();
  Set sent = recorder.permissions();
  sent.insert("dynamodb:DescribeTable");
  BOOST_TEST(sent == policy()["CreateTable"], boost::test_tools::per_element());
  recorder.engine().delete_table(options.name);
  BOOST_TEST(says(kReadme, "`dynamodb:TagResource` if you give it tags"));
}

BOOST_AUTO_TEST_CASE(commands_make_the_table_that_is_the_default) {
  const TableOptions options;
  BOOST_TEST(says(kReadme, "create-table --table-name " + options.name + " "));
  BOOST_TEST(
      says(kReadme, "update-time-to-live --table-name " + options.name + " "));
  BOOST_TEST(says(kReadme, "AttributeName=" + options.key + ",KeyType=HASH"));
  BOOST_TEST(
      says(kReadme, "AttributeName=" + options.key + ",AttributeType=S"));
  BOOST_TEST(says(kReadme, "Enabled=true,AttributeName=ttl"));
  BOOST_TEST(says(kReadme, "share a table named " + quoted(options.name)));
}

namespace {

rapidjson::Document item_of(const std::string& name) {
  auto& engine = tests::Engine::running(tests::any_engine_kind());
  rapidjson::Document answer;
  answer.Parse(engine
                   .must_call("GetItem", tests::place_in(engine, "Key", name) +
                                             R"(},"ConsistentRead":true})")
                   .c_str());
  BOOST_TEST_REQUIRE(answer.HasMember("Item"));
  return answer;
}

// The attributes with their types.
std::map<std::string, std::string> types_of(const rapidjson::Document& answer) {
  std::map<std::string, std::string> types;
  for (const auto& attribute : answer["Item"].GetObject()) {
    types[quoted(attribute.name.GetString())] =
        attribute.value.MemberBegin()->name.GetString();
  }
  return types;
}

std::int64_t number_of(const rapidjson::Document& answer, const char* name) {
  return std::stoll(answer["Item"][name]["N"].GetString());
}

}  // namespace

BOOST_AUTO_TEST_CASE(attributes_are_those_of_an_item) {
  std::map<std::string, std::string> told, meanings;
  for (const Words& row : table(kLock, "| attribute | type | meaning |")) {
    told[row.at(0)] = row.at(1);
    meanings[row.at(0)] = row.at(2);
  }
  Options options = tests::unhurried(
      tests::table_at(tests::Engine::running(tests::any_engine_kind())));
  options.data = "x";
  {
    DdbMutex mutex(tests::fresh_name(), options);
    mutex.lock();
    const auto item = item_of(mutex.name());
    auto deleted = told;
    deleted.erase("`token`");
    BOOST_TEST((deleted == types_of(item)));
    BOOST_TEST(has(meanings["`token`"], "only on kept rows"));

    BOOST_TEST(number_of(item, "lease") == options.ttl.count());
    const std::string uuid = item["Item"]["uuid"]["S"].GetString();
    BOOST_TEST(has(meanings["`uuid`"],
                   std::to_string(4 * uuid.size()) + " random bits"));
    const std::chrono::seconds ttl(number_of(item, "ttl"));
    const std::chrono::nanoseconds expires(number_of(item, "expires"));
    BOOST_TEST(has(meanings["`ttl`"],
                   std::to_string((ttl - expires + 1s) / 1h) + " hours"));
  }
  options.keep_row = true;
  DdbMutex mutex(tests::fresh_name(), options);
  mutex.lock();
  auto kept = told;
  kept.erase("`ttl`");
  BOOST_TEST((kept == types_of(item_of(mutex.name()))));
  BOOST_TEST(has(meanings["`ttl`"], "not on kept rows"));
  mutex.release();
  BOOST_TEST(number_of(item_of(mutex.name()), "expires") == 0);
  BOOST_TEST(has(meanings["`expires`"], "0 on a kept row that is free"));
}

// --- Options, and what is promised of them -----------------------------------

BOOST_AUTO_TEST_CASE(defaults_are_those_of_the_header) {
  const Options options;
  BOOST_TEST(says(kReadme, "A lease lasts " + words(options.ttl) + " unless"));
  BOOST_TEST(says(kReadme,
                  "retried for " + words(options.patience) + " (`patience`)"));
  BOOST_TEST((!options.table && !options.on_lost && options.auto_renew));
  BOOST_TEST((!options.keep_row));
  const TableOptions place;
  BOOST_TEST(says(kLock, quoted(place.prefix) + " and the lock's name"));
  BOOST_TEST(says(kLock, quoted(place.key) + " | S | the partition key"));
}

BOOST_AUTO_TEST_CASE(bounds_of_the_lease_are_those_that_constructors_keep) {
  const milliseconds least = 100ms, most = 366 * 24h;
  BOOST_TEST(says(kReadme, "from " + words(least) + " to " + words(most)));
  BOOST_TEST(refusal_of_ttl(least) == "");
  BOOST_TEST(refusal_of_ttl(most) == "");
  BOOST_TEST(has(refusal_of_ttl(least - 1ms), "ttl"));
  BOOST_TEST(has(refusal_of_ttl(most + 1ms), "ttl"));
}

BOOST_AUTO_TEST_CASE(losses_are_those_of_the_header) {
  std::string all;
  for (const Loss loss : {Loss::expired, Loss::taken, Loss::deleted}) {
    all += quoted(name_of(loss)) + " ";
  }
  BOOST_TEST(
      all_matches(header_between("\nenum class Loss {", "\n};"), "^  (\\w+),")
          .size() == 3u);
  BOOST_TEST(all == "`expired` `taken` `deleted` ");
  BOOST_TEST(says(kReadme, "as `expired`, `taken` or `deleted`"));
}

BOOST_AUTO_TEST_CASE(margins_are_those_of_the_protocol) {
  BOOST_TEST((lock::waited_for(100s) == 101s));
  BOOST_TEST((lock::held_for(200s) == 198s));
  BOOST_TEST((lock::kUnnoticedPause == 1250ms && lock::kPausePart == 8));
  BOOST_TEST(says(kReadme, "after it received the item, and 1 % longer"));
  BOOST_TEST(says(kLock, "after it received the record, and 1 % longer"));
  BOOST_TEST(says(kReadme,
                  "by 1.25 s (or by an eighth of a `ttl` below 10 s, or by 1 % "
                  "of one above 125 s)"));
  BOOST_TEST(says(kLock,
                  "1.25 s, or 1 % of the `ttl` if that is more; with a `ttl` "
                  "below 10 s an eighth of it"));
  BOOST_TEST(has(in_one_line(tests::replaced(
                     header_between("struct Options {", "ttl{"), "//", "")),
                 "The margin is 1.25 s; if the ttl is below 10 s, an eighth of "
                 "it; if it is above 125 s, 1 % of it. So of 60 s, 58.75 s"));
  BOOST_TEST(says(kLock, words(lock::kFrontEndSkew) + " are subtracted"));
  BOOST_TEST((dynamodb::kAgreement == 250ms));
  BOOST_TEST(says(kLock, "differ by more than a quarter of a second"));
}

namespace {

// "0.625"
std::string number_of_seconds(nanoseconds time) {
  std::ostringstream text;
  text << std::chrono::duration<double>(time).count();
  return text.str();
}
std::string in_seconds(nanoseconds time) {
  return number_of_seconds(time) + " s";
}

// When a take or renewal was sent, others may take the lock by DynamoDB's clock
// alone from so long after to so long after.  All know of that clock what one
// Date tells, of whole seconds.
std::pair<nanoseconds, nanoseconds> over_by_service_time(
    milliseconds ttl, const lock::RowPolicy& use = {}) {
  const BootTime now{100h};
  const lock::Observation nothing;
  const auto ask = [&](nanoseconds service_time) {
    dynamodb::ServiceClock clock;
    clock.receive(now, now,
                  std::chrono::floor<std::chrono::seconds>(
                      dynamodb::kFirstBelievable + service_time));
    lock::Lease lease("uuid", ttl, use);
    return lease.next(lock::Call::take, now, clock, nothing);
  };
  const nanoseconds long_after = 2 * ttl + 20s;
  nanoseconds least = long_after, most{};
  for (nanoseconds taken{}; taken < 1s; taken += 50ms) {
    const dynamodb::ServiceTime end = ask(taken).stamp;
    for (nanoseconds later{}; later < long_after; later += 50ms) {
      const bool over = ask(taken + later).earliest > end;
      if (over) least = std::min(least, later);
      if (!over) most = std::max(most, later);
    }
  }
  return {least, most};
}

}  // namespace

BOOST_AUTO_TEST_CASE(moments_of_a_lease_are_those_of_the_page) {
  const Options options;
  const nanoseconds ttl = options.ttl, half = ttl / 2;
  const auto rows = table(
      kLock, "| event | when | with a `ttl` of " + words(options.ttl) + " |");
  BOOST_TEST_REQUIRE(rows.size() == 4u);
  BOOST_TEST(rows[0].at(2) == in_seconds(half) + "; the first time " +
                                  number_of_seconds(half / 2) + " to " +
                                  in_seconds(half));
  BOOST_TEST(rows[1].at(2) == in_seconds(lock::held_for(ttl)));
  BOOST_TEST(rows[2].at(2) ==
             in_seconds(lock::waited_for(ttl)) + " after it first saw it");
  // With a second of leeway for answers that take time, and for what more
  // answers than one tell.
  const auto [least, most] = over_by_service_time(options.ttl);
  const auto told = all_matches(rows[3].at(2), "(\\d+)");
  BOOST_TEST_REQUIRE(told.size() == 2u);
  BOOST_TEST((least / 1s == std::stoi(told[0]) + 1));
  BOOST_TEST((most / 1s == std::stoi(told[1]) - 2));
  // A holder that died has renewed within the last half of a lease.
  const auto after_death = [](nanoseconds lease) {
    const nanoseconds longest = lock::waited_for(lease);
    return number_of_seconds(longest - lease / 2) + " to " +
           in_seconds(longest);
  };
  BOOST_TEST(
      says(kLock, "gets the lock " + after_death(ttl) + " after the death"));
  BOOST_TEST(
      says(kLock, "with a `ttl` of 20 s, a waiter needs " + after_death(20s)));
  BOOST_TEST(says(
      kLock,
      "gets the lock " +
          number_of_seconds(std::chrono::seconds(std::stoi(told[0])) - half) +
          " to " + told[1] + " s after the death"));
  BOOST_TEST(says(kLock, "(at most " + words(options.longest_poll) + ")"));

  BOOST_TEST(says(kReadme, "With a `ttl` of " + in_seconds(ttl) + ":"));
  Words main_page;
  for (const Words& row :
       table(kReadme,
             "| after the holder sent its last renewal | what happens |")) {
    main_page.push_back(row.at(0));
  }
  const Words moments = {in_seconds(half), in_seconds(lock::held_for(ttl)),
                         in_seconds(lock::waited_for(ttl)),
                         "usually " + told[0] + " to " + told[1] + " s"};
  BOOST_TEST(main_page == moments, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(
    dead_holder_of_ours_in_layout_lease_is_waited_for_as_told) {
  const milliseconds ttl = 1s;
  lock::RowPolicy use;
  use.calendars = true;
  use.margin = 2s;
  const auto [least, most] = over_by_service_time(ttl, use);
  // With the same leeway as above.
  const std::string told = std::to_string((least - ttl) / 1s - 1) + " to " +
                           std::to_string((most - ttl) / 1s + 2) + " s";
  BOOST_TEST(says(kExamples,
                  "ours get its lock " + told + " after the end of its lease"));
}

BOOST_AUTO_TEST_CASE(what_an_unnoticed_stop_leaves_open_is_what_the_page_says) {
  const auto rows = table(
      kLock, "| `ttl` | the holder's margin | left open by a stop of 1.25 s |");
  for (const Words& row : rows) {
    const auto ttl = std::chrono::seconds(std::stoi(row.at(0)));
    const nanoseconds margin = ttl - lock::held_for(ttl);
    const nanoseconds open = lock::kUnnoticedPause - margin;
    BOOST_TEST(row.at(0) == in_seconds(ttl));
    BOOST_TEST(row.at(1) == in_seconds(margin));
    BOOST_TEST(row.at(2) == (open > 0ns ? in_seconds(open) : "nothing"));
  }
}

namespace {

// "3.75 s"
nanoseconds seconds_in(const std::string& text) {
  return std::chrono::round<nanoseconds>(
      std::chrono::duration<double>(std::stod(text)));
}

}  // namespace

// A lease is in danger when it is as old as their safe time.
BOOST_AUTO_TEST_CASE(safe_times_of_others_are_converted_as_the_page_says) {
  BOOST_TEST(says(kExamples, "safe_time = ttl - margin - their safe time"));
  int refused = 0;
  for (const Words& row :
       table(kExamples, "| lease | their safe time | `safe_time` |")) {
    const std::string refused_as = "refused: ";
    const bool is_refused = row.at(2).rfind(refused_as, 0) == 0;
    Options options;
    options.ttl = std::chrono::duration_cast<milliseconds>(seconds_in(row[0]));
    options.safe_time = std::chrono::duration_cast<milliseconds>(
        seconds_in(row[2].substr(is_refused ? refused_as.size() : 0)));
    BOOST_TEST(words(std::chrono::duration_cast<milliseconds>(
                   lock::held_for(options.ttl) - *options.safe_time)) ==
               row.at(1));
    BOOST_TEST(has(refusal(options), "`safe_time`") == is_refused, row[2]);
    refused += is_refused;
  }
  BOOST_TEST(refused == 1);
}

BOOST_AUTO_TEST_CASE(variables_are_read_and_all_that_are_read_are_told) {
  Set read;
  for (const std::string& file : sources()) {
    for (const auto& name :
         all_matches(read_file(file), "\"(AWS_[A-Z0-9_]+)\"")) {
      read.insert(name);
    }
  }
  for (const std::string& name : kPages) {
    const Set told = as_set(all_matches(page(name), "`(AWS_[A-Z0-9_]+)`"));
    if (name == kKeys) {
      BOOST_TEST(told == read, boost::test_tools::per_element());
    }
    for (const std::string& variable : told) {
      BOOST_TEST(read.count(variable) == 1u, name << ": " << variable);
    }
  }
}

// --- What it costs -----------------------------------------------------------

namespace {

// README's cell for what is done at that cost.
std::string cost_of(const std::string& what) {
  for (const Words& row : table(kReadme, "| what you do | requests |")) {
    if (row.at(0).rfind(what, 0) == 0) return row.at(1);
  }
  BOOST_FAIL("no cost of " << what);
  return {};
}

void use_once(const std::shared_ptr<Table>& table) {
  DdbMutex other(tests::fresh_name(), tests::unhurried(table));
  other.lock();
  other.unlock();
}

// Pauses are drawn evenly between half of the longest and all of it.
double reads_in(nanoseconds time, milliseconds longest_poll) {
  return std::chrono::duration<double>(time) /
         std::chrono::duration<double>(nanoseconds(longest_poll) * 3 / 4);
}

}  // namespace

BOOST_AUTO_TEST_CASE(costs_are_what_is_sent) {
  BOOST_TEST(cost_of("lock and unlock") == "2 writes");
  BOOST_TEST(cost_of("the first lock of each `Table`") == "1 read more");
  Recorder recorder;
  const auto holders = recorder.table();
  DdbMutex mutex(tests::fresh_name(), tests::unhurried(holders));
  for (const int round : {1, 2}) {
    mutex.lock();
    mutex.unlock();
    const Stats sent = holders->stats();
    BOOST_TEST(sent.put_item + sent.delete_item == 2u * round);
    BOOST_TEST(sent.get_item == 1u);
    BOOST_TEST(sent.requests() == 1 + 2u * round);
  }
}

BOOST_AUTO_TEST_CASE(waiting_costs_what_the_page_says) {
  const Options options;
  BOOST_TEST(
      cost_of("wait for a lock") ==
      "1 write, and " +
          std::to_string(std::lround(reads_in(1s, options.longest_poll))) +
          " reads a second");
  BOOST_TEST(says(kReadme, "with a `longest_poll` of 5 s, an hour costs " +
                               std::to_string(std::lround(reads_in(1h, 5s))) +
                               " reads instead of 21,333"));
  BOOST_TEST(std::lround(reads_in(1h, options.longest_poll)) == 21333);

  Recorder recorder;
  DdbMutex holder(tests::fresh_name(), tests::unhurried(recorder.table()));
  holder.lock();
  Options waiting = tests::unhurried(recorder.table());
  waiting.first_poll = options.first_poll;
  waiting.longest_poll = options.longest_poll;
  DdbMutex waiter(holder.name(), waiting);
  use_once(waiting.table);  // The first lock looks first.
  const Stats before = waiting.table->stats();
  const auto begin = std::chrono::steady_clock::now();
  BOOST_TEST(!waiter.try_lock_for(2s));
  const auto time = std::chrono::steady_clock::now() - begin;
  const Stats after = waiting.table->stats();
  const std::uint64_t reads = after.get_item - before.get_item;
  BOOST_TEST(after.put_item - before.put_item == 1u);
  BOOST_TEST(after.requests() - before.requests() == 1 + reads);
  // However slow the machine is, there are no more than with the shortest
  // pauses; some come before the longest pause is reached.
  BOOST_TEST(static_cast<double>(reads) <=
             6 + time / std::chrono::duration<double>(options.longest_poll) *
                     2);
}

BOOST_AUTO_TEST_CASE(holding_costs_two_renewals_in_each_lease) {
  const Options options;
  BOOST_TEST(cost_of("hold a lock for an hour, with a `ttl` of " +
                     words(options.ttl)) ==
             std::to_string(1h / (options.ttl / 2)) + " writes");
}

// --- How it is built ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(commands_are_targets_of_the_makefile) {
  const std::string makefile =
      read_file("Makefile") + read_file("packaging/packaging.mk");
  Set targets;
  for (const auto& line : all_matches(makefile, "^\\.PHONY:(.*)$")) {
    for (const auto& target : all_matches(line, "(\\w+)")) {
      targets.insert(target);
    }
  }
  int found = 0;
  for (const std::string& name : kPages) {
    for (const std::string& target :
         all_matches(page(name), "(?:^    |`)make (\\w+)(?= |`|$)")) {
      BOOST_TEST(targets.count(target) == 1u, name << ": make " << target);
      ++found;
    }
  }
  BOOST_TEST(found > 8);
}

BOOST_AUTO_TEST_CASE(demo_is_the_one_there_is) {
  const std::string sources = all_text(files_in("examples/demo"));
  for (const char* name :
       {"AWS_ENDPOINT_URL_DYNAMODB", "DDBMUTEX_DEMO_AWS", "ddbmutex-demo-"}) {
    BOOST_TEST(has(sources, name), name);
    BOOST_TEST(says(kExamples, name), name);
  }
  BOOST_TEST(says(kExamples, "`dynamodb:DeleteTable`"));
}

BOOST_AUTO_TEST_CASE(configurations_are_those_of_the_makefile) {
  const std::string makefile = read_file("Makefile");
  const Words configs =
      all_matches(between(makefile, ": not one of ", ")") + " ", "(\\w+) ");
  BOOST_TEST(configs.size() == 6u);
  for (const std::string& config : configs) {
    BOOST_TEST(has(makefile, "\nCXXFLAGS_" + config + " :="), config);
    BOOST_TEST(says(kTests, quoted(config)), config);
  }
  const std::string libraries = between(makefile, "\nLDLIBS += ", "\n");
  BOOST_TEST(has(page(kReadme), "sigv4/*/*.cpp " + libraries + "\n"));
}

BOOST_AUTO_TEST_CASE(packages_are_those_that_setup_installs) {
  const std::string setup = read_file("tests/setup");
  const std::string line =
      between(page(kReadme), "    sudo apt install ", "\n");
  const Set told = as_set(all_matches(line, "(\\S+)"));
  Set needed = {"g++"};
  for (const char* header : {"curl/", "openssl/", "rapidjson/"}) {
    for (const auto& package : all_matches(
             setup, "need_header " + std::string(header) + "\\S+ (\\S+)")) {
      needed.insert(package);
    }
  }
  BOOST_TEST(told == needed, boost::test_tools::per_element());

  const Words asked = all_matches(all_text(files_in("examples/recipes")),
                                  "\\bNeeds (\\S+), as\\s");
  BOOST_TEST(asked.size() == 4u);
  for (const std::string& package : asked) {
    BOOST_TEST(
        !all_matches(setup, "need_header \\S+ (" + package + ")$").empty(),
        package);
  }
}

namespace {

// What a command says, and whether it ended well.
std::string said_by(const std::string& command) {
  std::string text;
  FILE* pipe = popen(
      ("cd '" + tests::project().string() + "' && { " + command + "; } 2>&1")
          .c_str(),
      "r");
  BOOST_TEST_REQUIRE(pipe != nullptr);
  std::array<char, 4096> bytes;
  while (const std::size_t got =
             std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    text.append(bytes.data(), got);
  }
  BOOST_TEST(pclose(pipe) == 0, text);
  return text;
}

// How make would compile a source of the library with those parts.
std::string plan(const std::string& with) {
  return said_by("make -n " + with +
                 " BUILD=/nonexistent /nonexistent/ddbmutex.o");
}

}  // namespace

BOOST_AUTO_TEST_CASE(make_builds_the_library_the_command_and_the_examples) {
  const std::string commands = said_by("make -n BUILD=/nonexistent");
  for (const char* made : {"rcs /nonexistent/libddbmutex.a ",
                           "-o /nonexistent/examples/ddbmutex/ddbmutex\n",
                           "-o /nonexistent/examples/ten_lines\n"}) {
    BOOST_TEST(has(commands, made), made);
  }
}

BOOST_AUTO_TEST_CASE(parts_that_may_be_left_out_are_left_out_by_make) {
  const Words parts = {"hosts", "profiles", "endpoints", "layouts"};
  const auto rows = table(kReadme, "| part | compile with | what you lose |");
  BOOST_TEST_REQUIRE(rows.size() == parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    BOOST_TEST(rows[i].at(0) == "`" + parts[i] + "`");
    const std::string macro = between(rows[i].at(1), "`", "`");
    std::string others = "WITH='";
    for (const std::string& part : parts) {
      if (part != parts[i]) others += part + " ";
    }
    BOOST_TEST(!has(plan(""), macro));
    BOOST_TEST(has(plan(others + "'"), " " + macro + " "), macro);
    BOOST_TEST(has(all_text(sources()), macro.substr(2)), macro);
  }
}

BOOST_AUTO_TEST_CASE(versions_of_libcurl_are_those_asked_for) {
  const std::string source = read_file("sigv4/http_setup.cpp");
  const auto version = [&source](const std::string& condition) {
    const Words found = all_matches(source, condition);
    BOOST_TEST_REQUIRE(found.size() == 1u);
    const int number = std::stoi(found[0], nullptr, 16);
    return std::to_string(number >> 16) + "." +
           std::to_string(number >> 8 & 0xff);
  };
  const std::string least = version("LIBCURL_VERSION_NUM < 0x(\\w{6})");
  const std::string better = version(
      "LIBCURL_VERSION_NUM >= 0x(\\w{6})\n"
      "(?:.*\n){2}.*CURLOPT_QUICK_EXIT");
  BOOST_TEST(says(kReadme, "libcurl " + least + " or later"));
  BOOST_TEST(says(kReadme, "Before libcurl " + better));
  BOOST_TEST(says(kKeys, "Before libcurl " + least + ", nothing"));
  BOOST_TEST(says(kKeys, "Before libcurl " + better));
  BOOST_TEST(says(kSmall, "older than libcurl " + least));
}

BOOST_AUTO_TEST_SUITE_END()
