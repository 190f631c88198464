// What README says is what the files are and the library does.  Its programs
// and commands are run in test_examples.cpp.
#include <rapidjson/document.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/answer.hpp"
#include "ddbmutex/driver.hpp"
#include "ddbmutex/protocol.hpp"
#include "ddbmutex/record.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ddbmutex;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using tests::all_matches;
using tests::as_set;
using tests::between;
using tests::has;
using tests::read_file;
using Words = std::vector<std::string>;

const std::string& readme() {
  static const std::string text = read_file("README.md");
  return text;
}

// The cells of a line "| a | b |".
Words cells(const std::string& line) {
  return all_matches(line, "\\| *(.*?) *(?=\\|)");
}

// The rows of the table whose first line is that, as rows of cells.
std::vector<Words> table(const std::string& head) {
  std::vector<Words> rows;
  const std::string text = between(readme(), "\n" + head + "\n|-", "\n\n");
  for (const std::string& line : all_matches(text, "^(\\| .*)$")) {
    rows.push_back(cells(line));
  }
  BOOST_TEST_REQUIRE(!rows.empty(), "nothing under " << head);
  return rows;
}

std::vector<Words> options_table() {
  return table("| option | default | bounds | meaning |");
}

Words first_cells(const std::vector<Words>& rows) {
  Words all;
  for (const Words& row : rows) all.push_back(row.at(0));
  return all;
}

// As README has it: between back quotes.
std::string quoted(const std::string& name) { return "`" + name + "`"; }

Words quoted(const Words& names) {
  Words all;
  for (const std::string& name : names) all.push_back(quoted(name));
  return all;
}

// The cell of the row that begins with that option's name.
std::string cell(const std::vector<Words>& rows, const std::string& name,
                 std::size_t column) {
  for (const Words& row : rows) {
    if (row.at(0) == quoted(name)) return row.at(column);
  }
  BOOST_FAIL("README has no row " << name);
  return {};
}

// "60 s", "25 ms", "366 days"
std::string words(milliseconds time) {
  if (time % 24h == 0ms && time >= 48h) {
    return std::to_string(time / 24h) + " days";
  }
  if (time % 1s == 0ms) return std::to_string(time / 1s) + " s";
  return std::to_string(time.count()) + " ms";
}

// As README has it.
std::string truth(bool value) { return value ? "`true`" : "`false`"; }

// The comments of a part of the public header, without what makes them such.
std::string comments(const std::string& text) {
  return tests::replaced(text, "\n *// ?", "\n");
}

std::string header_between(const std::string& from, const std::string& to) {
  return between(read_file("ddbmutex.hpp"), from, to);
}

// The members of a struct of the public header, functions apart.
Words members(const std::string& name) {
  std::string body = header_between("\nstruct " + name + " {\n", "\n};\n");
  body = tests::replaced(body, "//[^\n]*", "");
  return all_matches(body, "^  [\\w:<>(), &]+ (\\w+)(\\{.*\\}| = .*)?; *$");
}

// --- Asking a constructor ----------------------------------------------------

// Without a server: it is closed.
std::shared_ptr<Table> closed_table(const std::string& prefix = "ddblock-",
                                    const std::string& sort_key = "") {
  TableOptions options;
  options.region = "eu-west-1";
  options.endpoint = "http://127.0.0.1:9";
  options.credentials = {"AKIDEXAMPLE", "secret", ""};
  options.prefix = prefix;
  options.sort_key = sort_key;
  auto table = std::make_shared<Table>(options);
  table->close();
  return table;
}

// Why a mutex of such options cannot be; empty if it can.  Where the library
// has no exceptions, its first operation tells.
std::string refusal(Options options, const std::string& name = "x") {
  if (!options.table) options.table = closed_table();
  try {
    DdbMutex mutex(name, options);
    std::error_code error;
    mutex.lock(error);
    return error == Errc::closed ? "" : mutex.last_error();
  } catch (const std::system_error& error) {
    BOOST_TEST(error.code() == Errc::bad_option);
    return error.what();
  }
}

// Options with one member set.
template <class Member, class Value>
Options with(Member Options::*member, Value value) {
  Options options;
  options.*member = value;
  return options;
}

template <class Member>
void check_bound(const std::string& name, const std::string& text,
                 Member Options::*member, const std::vector<milliseconds>& good,
                 const std::vector<milliseconds>& bad) {
  BOOST_TEST(cell(options_table(), name, 2) == text);
  for (const milliseconds value : good) {
    BOOST_TEST(refusal(with(member, value)) == "",
               name << " of " << value.count() << " ms");
  }
  for (const milliseconds value : bad) {
    BOOST_TEST(has(refusal(with(member, value)), name),
               name << " of " << value.count() << " ms is not refused");
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(readme_page)

// --- The code ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(readme_usage_is_that_of_the_header_and_of_an_example) {
  const std::string shown = between(readme(), "```cpp\n", "```\n");
  const std::string in_header = tests::replaced(
      "\n" + header_between("item.\n//\n", "//\n// How."), "\n//( {3})?", "\n");
  BOOST_TEST("\n" + shown == in_header);

  // The include stands with the others there.
  const std::string include = "#include \"ddbmutex.hpp\"\n";
  BOOST_TEST_REQUIRE(shown.rfind(include + "\n", 0) == 0u);
  const std::string run = read_file("examples/ten_lines.cpp");
  BOOST_TEST(has(run, "\n" + include));
  BOOST_TEST(has(run, shown.substr(include.size())));
}

BOOST_AUTO_TEST_CASE(readme_examples_are_those_there_are) {
  std::set<std::string> there;
  for (const auto& entry :
       fs::directory_iterator(tests::project() / "examples")) {
    const fs::path file = entry.path().filename();
    if (file.extension() == ".cpp" && file.stem() != "demo") {
      there.insert("[" + file.string() + "](examples/" + file.string() + ")");
    }
  }
  BOOST_TEST(as_set(first_cells(table("| example | what it shows |"))) == there,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(readme_names_of_the_library_are_in_its_header) {
  const std::string header = read_file("ddbmutex.hpp");
  const Words named = all_matches(readme(), "`(?:[\\w:]+::)?(\\w+)\\(\\)`");
  BOOST_TEST(named.size() > 10u);
  for (const std::string& name : named) {
    BOOST_TEST(has(header, " " + name + "("), name);
  }
}

// --- The table ---------------------------------------------------------------

namespace {

std::string permission(dynamodb::Action action) {
  return "dynamodb:" + std::string(name_of(action));
}

// The attributes that a take of a row of such use writes, each with its type.
std::map<std::string, std::string> written_by_take(const lock::RowUse& use) {
  lock::Place place{"locks", "ddblock-x", "host:1"};
  place.use = use;
  place.attributes = {{"data", dynamodb::Attribute::Type::binary, "eA==", {}}};
  lock::Request take;
  take.verb = lock::Request::Verb::take;
  take.uuid = "u";
  take.stamp = lock::ServiceTime(1'700'000'000s);
  take.lease = 60s;
  rapidjson::Document request;
  request.Parse(lock::write_request(place, take).c_str());
  BOOST_TEST_REQUIRE(request.IsObject());
  std::map<std::string, std::string> written;
  const auto add = [&written](const std::string& name, const auto& value) {
    written[quoted(name)] = value.MemberBegin()->name.GetString();
  };
  for (const char* member : {"Item", "Key"}) {
    if (!request.HasMember(member)) continue;
    const rapidjson::Value& attributes = request[member];
    for (const auto& attribute : attributes.GetObject()) {
      add(attribute.name.GetString(), attribute.value);
    }
  }
  if (!request.HasMember("UpdateExpression")) return written;
  const auto& names = request["ExpressionAttributeNames"];
  const auto& values = request["ExpressionAttributeValues"];
  const std::string update = request["UpdateExpression"].GetString();
  const std::string assignment = "(#\\w+)(?: =)? (:\\w+)";
  const Words left = all_matches(update, assignment, 1);
  const Words right = all_matches(update, assignment, 2);
  for (std::size_t i = 0; i < left.size(); ++i) {
    add(names[left[i].c_str()].GetString(), values[right[i].c_str()]);
  }
  return written;
}

}  // namespace

BOOST_AUTO_TEST_CASE(readme_policy_allows_the_actions_that_are_used) {
  rapidjson::Document policy;
  policy.Parse(between(readme(), "```json\n", "```\n").c_str());
  BOOST_TEST_REQUIRE(policy.IsObject());
  std::map<std::string, std::set<std::string>> told;
  for (const auto& statement : policy["Statement"].GetArray()) {
    BOOST_TEST(statement["Effect"].GetString() == "Allow");
    BOOST_TEST(statement["Resource"].GetString() ==
               "arn:aws:dynamodb:*:*:table/" + TableOptions().name);
    for (const auto& action : statement["Action"].GetArray()) {
      told[statement["Sid"].GetString()].insert(action.GetString());
    }
  }

  std::map<std::string, std::set<std::string>> used;
  using dynamodb::Action;
  using Verb = lock::Request::Verb;
  lock::RowUse kept;
  kept.keep = true;
  for (const Verb verb : {Verb::take, Verb::renew, Verb::release, Verb::look}) {
    used["Lock"].insert(permission(lock::action_of(verb, {})));
    used["Lock"].insert(permission(lock::action_of(verb, kept)));
  }
  used["Manage"] = {permission(Action::scan), permission(Action::query)};
  // The transaction itself needs none: each of its parts does.
  used["Guard"] = {"dynamodb:ConditionCheckItem"};
  const std::string for_the_demo = permission(Action::delete_table);
  const std::set<std::string> others = {
      for_the_demo, permission(Action::scan), permission(Action::query),
      permission(Action::transact_write_items)};
  for (std::size_t i = 0; i < dynamodb::kActions; ++i) {
    const std::string action = permission(static_cast<Action>(i));
    if (used["Lock"].count(action) == 0 && others.count(action) == 0) {
      used["CreateTable"].insert(action);
    }
  }
  BOOST_TEST((told == used));
  BOOST_TEST(has(readme(), quoted(for_the_demo)));
  BOOST_TEST(has(readme(), "with tags also\n`dynamodb:TagResource`"));
}

BOOST_AUTO_TEST_CASE(readme_attributes_are_those_of_an_item) {
  const auto rows = table("| attribute | type | meaning |");
  std::map<std::string, std::string> told;
  for (const Words& row : rows) told[row.at(0)] = row.at(1);
  auto deleted = told;
  deleted.erase("`token`");
  BOOST_TEST((deleted == written_by_take({})));
  BOOST_TEST(has(cell(rows, "token", 2), "on kept rows alone"));
  lock::RowUse use;
  use.keep = true;
  auto kept = told;
  kept.erase("`ttl`");
  BOOST_TEST((kept == written_by_take(use)));
  BOOST_TEST(has(cell(rows, "ttl", 2), "not on kept rows"));
  for (const auto& [name, type] : told) {
    const std::string bare = name.substr(1, name.size() - 2);
    BOOST_TEST((bare == "name" || lock::is_of_record(bare)), bare);
  }

  lock::Request take;
  take.stamp = lock::ServiceTime(1'700'000'000s);
  take.verb = lock::Request::Verb::take;
  rapidjson::Document request;
  request.Parse(
      lock::write_request({"locks", "ddblock-x", "host:1"}, take).c_str());
  BOOST_TEST_REQUIRE(request.IsObject());
  const std::int64_t clean_up =
      std::stoll(request["Item"]["ttl"]["N"].GetString());
  const auto after = std::chrono::seconds(clean_up) - take.stamp;
  BOOST_TEST(has(cell(rows, "ttl", 2), std::to_string(after / 1h) + " hours"));
}

BOOST_AUTO_TEST_CASE(readme_commands_make_the_table_that_is_the_default) {
  const TableOptions options;
  BOOST_TEST(has(readme(), "create-table --table-name " + options.name + " "));
  BOOST_TEST(
      has(readme(), "update-time-to-live --table-name " + options.name + " "));
  const auto rows = table("| attribute | type | meaning |");
  BOOST_TEST(has(readme(),
                 "AttributeName=name,AttributeType=" + cell(rows, "name", 1)));
  BOOST_TEST(has(readme(), "AttributeName=ttl"));
  BOOST_TEST(cell(rows, "ttl", 1) == "N");
}

// --- Options -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(readme_options_are_those_of_the_header) {
  BOOST_TEST(first_cells(options_table()) == quoted(members("Options")),
             boost::test_tools::per_element());
  BOOST_TEST(first_cells(table("| option | default | meaning |")) ==
                 quoted(members("TableOptions")),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(readme_defaults_are_those_of_the_header) {
  const Options options;
  const auto rows = options_table();
  BOOST_TEST(cell(rows, "ttl", 1) == words(options.ttl));
  BOOST_TEST(cell(rows, "first_poll", 1) == words(options.first_poll));
  BOOST_TEST(cell(rows, "longest_poll", 1) == words(options.longest_poll));
  BOOST_TEST(cell(rows, "patience", 1) == words(options.patience));
  BOOST_TEST(!options.table);
  BOOST_TEST(cell(rows, "table", 1) == "`Table::standard()`");
  for (const char* name :
       {"data", "attributes", "alive", "on_lost", "on_danger"}) {
    BOOST_TEST(cell(rows, name, 1) == "none", name);
  }
  BOOST_TEST((!options.data && options.attributes.empty() && !options.alive));
  BOOST_TEST((!options.on_lost && !options.on_danger));
  for (const auto& [name, value] :
       {std::pair("keep_row", options.keep_row),
        std::pair("only_if_exists", options.only_if_exists),
        std::pair("auto_renew", options.auto_renew),
        std::pair("recursive", options.recursive)}) {
    BOOST_TEST(cell(rows, name, 1) == truth(value), name);
  }
  BOOST_TEST(options.sort_value == "");

  // Those that hang on others: as the header says them.
  const std::string header =
      comments(header_between("struct Options {", "\n};"));
  BOOST_TEST((!options.request_timeout && !options.safe_time));
  BOOST_TEST((!options.renew_after && !options.max_hold && !options.keep_data));
  for (const char* name : {"request_timeout", "safe_time", "renew_after",
                           "max_hold", "keep_data"}) {
    const std::string told = tests::replaced(cell(rows, name, 1), "`", "");
    BOOST_TEST(
        has(tests::replaced(header, "\\s+", " "), "othing: " + told + "."),
        told);
  }

  const TableOptions place;
  const auto places = table("| option | default | meaning |");
  BOOST_TEST(cell(places, "name", 1) == quoted(place.name));
  BOOST_TEST(cell(places, "prefix", 1) == quoted(place.prefix));
  BOOST_TEST(cell(places, "key", 1) == quoted(place.key));
  BOOST_TEST(cell(places, "allow_replicas", 1) == truth(place.allow_replicas));
  for (const char* name :
       {"sort_key", "sort_value", "credentials_source", "logger"}) {
    BOOST_TEST(cell(places, name, 1) == "none", name);
  }
  BOOST_TEST((place.sort_key + place.sort_value == ""));
  BOOST_TEST((!place.credentials_source && !place.logger));
}

BOOST_AUTO_TEST_CASE(readme_bounds_are_those_that_constructors_keep) {
  const milliseconds half = Options().ttl / 2;
  const milliseconds first = Options().first_poll;
  const milliseconds least = 100ms, most = 366 * 24h;
  check_bound("ttl", words(least) + " to " + words(most), &Options::ttl,
              {least, most}, {least - 1ms, most + 1ms, 0ms, -1ms});
  check_bound("request_timeout", "above 0, below `ttl` / 2",
              &Options::request_timeout, {1ms, half - 1ms}, {0ms, half});
  check_bound("first_poll", "above 0", &Options::first_poll, {1ms},
              {0ms, -1ms});
  check_bound("longest_poll", "from `first_poll`", &Options::longest_poll,
              {first}, {first - 1ms});
  check_bound("safe_time", "from 0, below `ttl` / 2", &Options::safe_time,
              {0ms, half - 1ms}, {-1ms, half});
  check_bound("patience", "from 0", &Options::patience, {0ms}, {-1ms});
  check_bound("renew_after", "above 0, up to `ttl` / 2; with `auto_renew`",
              &Options::renew_after, {1ms, half}, {0ms, half + 1ms});
  check_bound("max_hold", "above 0; with `auto_renew`", &Options::max_hold,
              {1ms, milliseconds::max()}, {0ms, -1ms});
}

BOOST_AUTO_TEST_CASE(readme_options_that_need_others_are_refused_without_them) {
  const auto rows = options_table();
  for (const char* name : {"renew_after", "max_hold", "alive"}) {
    BOOST_TEST(has(cell(rows, name, 2), "with `auto_renew`"), name);
  }
  BOOST_TEST(cell(rows, "only_if_exists", 2) == "with `keep_row`");
  Options by_hand = with(&Options::auto_renew, false);
  BOOST_TEST(refusal(by_hand) == "");
  by_hand.renew_after = 1s;
  BOOST_TEST(has(refusal(by_hand), "renew_after"));
  by_hand.renew_after.reset();
  by_hand.max_hold = 1h;
  BOOST_TEST(has(refusal(by_hand), "max_hold"));
  by_hand.max_hold.reset();
  by_hand.alive = [] { return true; };
  BOOST_TEST(has(refusal(by_hand), "alive"));
  Options existing = with(&Options::only_if_exists, true);
  BOOST_TEST(has(refusal(existing), "only_if_exists"));
  existing.keep_row = true;
  BOOST_TEST(refusal(existing) == "");
}

BOOST_AUTO_TEST_CASE(readme_sort_values_are_as_long_as_they_may_be) {
  const auto rows = options_table();
  BOOST_TEST(has(cell(rows, "sort_value", 2), "up to 1,024 bytes of UTF-8"));
  Options options;
  options.table = closed_table("ddblock-", "sk");
  BOOST_TEST(has(refusal(options), "sort_value"));
  options.sort_value = std::string(1024, 'x');
  BOOST_TEST(refusal(options) == "");
  options.sort_value += 'x';
  BOOST_TEST(has(refusal(options), "sort_value"));
  options.table = closed_table();
  options.sort_value = "x";
  BOOST_TEST(has(refusal(options), "sort_value"));
}

BOOST_AUTO_TEST_CASE(readme_names_are_as_long_as_they_may_be) {
  const std::size_t longest = 2048;
  BOOST_TEST(has(cell(table("| option | default | meaning |"), "prefix", 2),
                 "at most 2,048 bytes of UTF-8, the name not empty"));
  Options options;
  options.table = closed_table("prefix-");
  const std::string name(longest - std::string("prefix-").size(), 'x');
  BOOST_TEST(refusal(options, name) == "");
  BOOST_TEST(has(refusal(options, name + "x"), "name"));
  BOOST_TEST(has(refusal(options, ""), "name"));
  BOOST_TEST(has(refusal(options, "\xff"), "name"));
}

BOOST_AUTO_TEST_CASE(readme_variables_are_read_and_all_that_are_read_are_told) {
  std::set<std::string> read;
  for (const char* room : {"sigv4", "ddbmutex"}) {
    for (const auto& entry : fs::directory_iterator(tests::project() / room)) {
      if (!entry.is_regular_file()) continue;
      const std::string text = read_file(entry.path());
      for (const auto& name : all_matches(text, "\"(AWS_[A-Z0-9_]+)\"")) {
        read.insert(name);
      }
    }
  }
  BOOST_TEST(as_set(all_matches(readme(), "`(AWS_[A-Z0-9_]+)`")) == read,
             boost::test_tools::per_element());
}

// --- Errors ------------------------------------------------------------------

namespace {

// The enumerators of a part of the header, and the std::errc beside each.
std::vector<Words> enumerators(const std::string& part) {
  std::vector<Words> found;
  const std::string expression = "^  (\\w+)(?: = 1)?, *// (\\w+)";
  const Words names = all_matches(part, expression, 1);
  const Words conditions = all_matches(part, expression, 2);
  for (std::size_t i = 0; i < names.size(); ++i) {
    found.push_back({quoted(names[i]), quoted(conditions[i])});
  }
  return found;
}

const std::map<std::string, std::errc> kConditions = {
    {"`invalid_argument`", std::errc::invalid_argument},
    {"`operation_not_permitted`", std::errc::operation_not_permitted},
    {"`permission_denied`", std::errc::permission_denied},
    {"`no_such_file_or_directory`", std::errc::no_such_file_or_directory},
    {"`function_not_supported`", std::errc::function_not_supported},
    {"`bad_message`", std::errc::bad_message},
    {"`host_unreachable`", std::errc::host_unreachable},
    {"`connection_reset`", std::errc::connection_reset},
    {"`timed_out`", std::errc::timed_out},
    {"`resource_unavailable_try_again`",
     std::errc::resource_unavailable_try_again},
    {"`protocol_error`", std::errc::protocol_error},
    {"`operation_canceled`", std::errc::operation_canceled},
};

}  // namespace

BOOST_AUTO_TEST_CASE(readme_errors_are_those_of_the_header_and_compare_so) {
  const auto rows = table("| `Errc` | equals `std::errc` | what to do |");
  const auto there = enumerators(header_between("\nenum class Errc {", "\n};"));
  BOOST_TEST_REQUIRE(rows.size() == there.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    BOOST_TEST(rows[i].at(0) == there[i].at(0));
    BOOST_TEST(rows[i].at(1) == there[i].at(1));
    BOOST_TEST(rows[i].at(2) != "");
    const std::error_code code = static_cast<Errc>(i + 1);
    BOOST_TEST((code == kConditions.at(rows[i].at(1))), rows[i].at(0));
  }
  // The last one.
  BOOST_TEST((static_cast<std::size_t>(Errc::closed) == rows.size()));
}

BOOST_AUTO_TEST_CASE(readme_passing_errors_are_those_of_the_header) {
  const auto passing = enumerators(header_between("// Passing;", "\n\n"));
  BOOST_TEST_REQUIRE(passing.size() == 6u);
  BOOST_TEST(has(readme(), passing[0].at(0) + " and the five after it"));
}

BOOST_AUTO_TEST_CASE(readme_losses_are_those_of_the_header) {
  Words losses;
  for (const Loss loss : {Loss::expired, Loss::taken, Loss::deleted}) {
    losses.push_back(quoted(name_of(loss)));
  }
  BOOST_TEST(losses == quoted(all_matches(
                           header_between("\nenum class Loss {", "\n};"),
                           "^  (\\w+),")),
             boost::test_tools::per_element());
  BOOST_TEST(first_cells(table("| `Loss` | meaning |")) == losses,
             boost::test_tools::per_element());
}

// --- How it works, and how it is built ---------------------------------------

BOOST_AUTO_TEST_CASE(readme_margins_are_those_of_the_protocol) {
  BOOST_TEST(has(readme(), "less " + words(lock::kFrontEndSkew)));
  BOOST_TEST((lock::waited_for(100s) == 101s));
  BOOST_TEST((lock::held_for(100s) == 99s));
  BOOST_TEST(has(readme(), "and 1 % short"));
  BOOST_TEST(has(readme(), "and 1 % long"));
}

BOOST_AUTO_TEST_CASE(readme_links_and_files_exist) {
  const Words links = all_matches(readme(), "\\]\\(([^)]+)\\)");
  BOOST_TEST(links.size() >= 7u);
  for (const std::string& link : links) {
    BOOST_TEST(fs::exists(tests::project() / link), link << " does not exist");
  }
  const Words files = {"ddbmutex.hpp", "ddbmutex.cpp", "ddbmutex/",
                       "lock/",        "dynamodb/",    "sigv4/"};
  BOOST_TEST(first_cells(table("| files | what they know |")) == quoted(files),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(readme_commands_are_targets_of_the_makefile) {
  const std::string makefile = read_file("Makefile");
  const auto targets = as_set(
      all_matches(between(makefile, "\n.PHONY:", "\n") + " ", "(\\w+) "));
  const Words told = all_matches(readme(), "^    make (\\w+)");
  BOOST_TEST(told.size() >= 4u);
  for (const std::string& target : told) {
    BOOST_TEST(targets.count(target) == 1u, target);
  }
}

BOOST_AUTO_TEST_CASE(readme_demo_is_the_one_there_is) {
  std::string sources;
  for (const auto& entry :
       fs::directory_iterator(tests::project() / "examples/demo")) {
    sources += read_file(entry.path());
  }
  for (const char* name :
       {"AWS_ENDPOINT_URL_DYNAMODB", "DDBMUTEX_DEMO_AWS", "ddbmutex-demo-"}) {
    BOOST_TEST(has(sources, name), name);
    BOOST_TEST(has(readme(), name), name);
  }
}

BOOST_AUTO_TEST_CASE(readme_configurations_are_those_of_the_makefile) {
  const std::string makefile = read_file("Makefile");
  const Words configs =
      all_matches(between(makefile, ": not one of ", ")") + " ", "(\\w+) ");
  BOOST_TEST(configs.size() == 6u);
  for (const std::string& config : configs) {
    BOOST_TEST(has(makefile, "\nCXXFLAGS_" + config + " :="), config);
    BOOST_TEST(has(readme(), quoted(config)), config);
  }
  const std::string libraries = between(makefile, "\nLDLIBS += ", "\n");
  BOOST_TEST(has(readme(), "sigv4/*.cpp \\\n      " + libraries + "\n"));
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

// What make would do to build the library with those parts.
std::string plan(const std::string& with) {
  return said_by("make -n " + with + " BUILD=/nonexistent all");
}

std::set<std::string> compiled_by(const std::string& with) {
  return as_set(all_matches(plan(with), " -c (\\S+\\.cpp)"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(readme_parts_that_may_be_left_out_are_left_out_by_make) {
  BOOST_TEST(has(readme(), "`make WITH=`"));
  BOOST_TEST(!has(plan(""), "DDBMUTEX_NO_CHAIN"));
  BOOST_TEST(has(plan("WITH="), "-DDDBMUTEX_NO_CHAIN"));
  const Words parts = {"chain", "manage", "guard"};
  const auto rows = table("| part | files | without it |");
  BOOST_TEST(first_cells(rows) == quoted(parts),
             boost::test_tools::per_element());
  // Examples are not built without all parts, so two plans without one differ
  // by what each of them leaves out.
  const auto least = compiled_by("WITH=");
  BOOST_TEST(least.count("sigv4/credentials.cpp") == 1u);
  for (const std::string& part : parts) {
    std::set<std::string> files;
    for (const std::string& file : compiled_by("WITH=" + part)) {
      if (least.count(file) == 0) files.insert(file);
    }
    std::set<std::string> told;
    for (const std::string& file :
         all_matches(cell(rows, part, 1), "`([^`]+\\.cpp)`")) {
      const fs::path path = tests::project() / file;
      if (path.stem() != "*") told.insert(file);
      for (const auto& entry : fs::directory_iterator(path.parent_path())) {
        const std::string name = entry.path().filename().string();
        if (path.stem() == "*" && entry.path().extension() == ".cpp") {
          told.insert(fs::path(file).parent_path().string() + "/" + name);
        }
      }
    }
    BOOST_TEST(told == files, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(readme_versions_of_libcurl_are_those_asked_for) {
  const std::string source = read_file("sigv4/http.cpp");
  const auto version = [&source](const std::string& condition) {
    const Words found = all_matches(source, condition);
    BOOST_TEST_REQUIRE(found.size() == 1u);
    const int number = std::stoi(found[0], nullptr, 16);
    return "libcurl " + std::to_string(number >> 16) + "." +
           std::to_string(number >> 8 & 0xff);
  };
  BOOST_TEST(
      has(readme(), version("LIBCURL_VERSION_NUM < 0x(\\w{6})") + " or later"));
  BOOST_TEST(
      has(readme(), "Before " + version("LIBCURL_VERSION_NUM >= 0x(\\w{6})\n"
                                        "(?:.*\n){2}.*CURLOPT_QUICK_EXIT")));
}

BOOST_AUTO_TEST_SUITE_END()
