// The examples, the demo and README's commands, run as their users run them.
// Then the pages: what they say of files, variables, code and permissions is
// what the library has and does.
#include <rapidjson/document.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "extras/admin.hpp"
#include "extras/guarded_write.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/home.hpp"
#include "tests/support/listening.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/pty.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/shell.hpp"
#include "tests/support/whereabouts.hpp"

namespace fs = std::filesystem;
using namespace tests;
using ddbmutex::Errc;
using Words = std::vector<std::string>;

// --- Programs ----------------------------------------------------------------

namespace {

// The directory of this build, or of the same build with another config.
std::string build(const std::string& config = {}) {
  const std::string top =
      fs::path(program_path("")).parent_path().parent_path();
  return config.empty() ? top : replaced(top, "[^/-]+(-[^/]*)$", config + "$1");
}

// A running program, at a terminal; killed when this is destroyed.
class Program {
 public:
  Program(Words command, Words environment)
      : pty_(command, with_home(std::move(environment))) {}

  bool says(const std::string& text) { return pty_.says(text); }
  void type(const std::string& keys) { pty_.type(keys); }
  void send(int signal) const { kill(pty_.pid(), signal); }
  // Waits for its end.  Returns its exit status, or 128 plus the signal.  The
  // demo shows a scene again if the machine stalls in it.
  int end() { return pty_.end(std::chrono::minutes(10)); }
  // What it has written, to standard error too.
  std::string output() const { return replaced(pty_.text(), "\r", ""); }

 private:
  static Words with_home(Words environment) {
    environment.insert(environment.begin(), "HOME=/nonexistent");
    environment.push_back("TERM=xterm");
    environment.push_back("BUILD=" + build());
    return environment;
  }

  Pty pty_;
};

// A table, and a server before its engine that sees every request.
class Stage {
 public:
  explicit Stage(
      std::string table = Engine::running(any_engine_kind()).create_table())
      : table_(std::move(table)) {}

  const std::string& table() const { return table_; }
  Engine& engine() const { return gate_.engine(); }
  Gate& gate() { return gate_; }
  int requests() const { return gate_.server().request_count(); }
  // What was sent; "" if a lock was taken and released, and nothing is left.
  std::string wrong_turn() const {
    const std::string sent = actions(gate_.server());
    return sent == "GetItem PutItem DeleteItem" && rows() == 0 ? "" : sent;
  }

  Words environment() const {
    Whereabouts where = at(engine());
    where.url = gate_.server().url();
    return environment_of(where);
  }
  // An example of this build, or of the same build with another config.
  std::unique_ptr<Program> start(Words command,
                                 const std::string& config = {}) const {
    command[0] = build(config) + "/examples/" + command[0];
    return std::make_unique<Program>(command, environment());
  }

  int rows() const {
    const std::string answer = engine().must_call(
        "Scan", R"({"ConsistentRead":true,"TableName":")" + table_ + R"("})");
    return std::stoi(all_matches(answer, R"("Count":\s*(\d+))").at(0));
  }
  // Writes the row of a holder with a lease of a minute.
  void hold(const std::string& name) const {
    engine().must_call(
        "PutItem",
        R"({"TableName":")" + table_ + R"(","Item":{"name":{"S":"ddblock-)" +
            name +
            R"("},"uuid":{"S":"u"},"lease":{"N":"60000"},"expires":{"N":)"
            R"("3900000000000000000"},"owner":{"S":"far-away:7"}}})");
  }
  void delete_row(const std::string& name) const {
    engine().must_call("DeleteItem", R"({"TableName":")" + table_ +
                                         R"(","Key":{"name":{"S":"ddblock-)" +
                                         name + R"("}}})");
  }

 private:
  const std::string table_;
  Gate gate_;
};

// The table that a program uses by default.
struct UsualTable : Stage {
  UsualTable() : Stage(made()) {}

  static std::string made() {
    Whereabouts where = at(Engine::running(any_engine_kind()));
    where.table = ddbmutex::TableOptions().name;
    create_table(*table_at(where));
    return where.table;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(examples)

// A program gives up a request after two seconds, and then sends another.
constexpr std::chrono::seconds kStall{1};

BOOST_AUTO_TEST_CASE(ten_lines_print_the_report_for_three_requests) {
  BOOST_TEST(undisturbed(kStall, [] {
               const UsualTable stage;
               const auto program = stage.start({"ten_lines"});
               BOOST_TEST(program->end() == 0);
               BOOST_TEST(program->output() == "page 1\npage 2\npage 3\n");
               return stage.wrong_turn();
             }) == "");
}

BOOST_FIXTURE_TEST_CASE(leader_told_to_end_hands_over_before_its_lease_ends,
                        Stage) {
  const Words command = {"leader", table(), "leader", "3600000"};
  const auto first = start(command);
  BOOST_TEST(first->says("leading\r\n"));
  const auto second = start(command);
  BOOST_TEST(second->says("waiting\r\n"));
  first->send(SIGTERM);
  BOOST_TEST(first->end() == 0);
  BOOST_TEST(first->output() == "waiting\nleading\n");
  BOOST_TEST(second->says("leading\r\n"));
  second->send(SIGINT);
  BOOST_TEST(second->end() == 0);
  BOOST_TEST(rows() == 0);
}

BOOST_AUTO_TEST_CASE(cron_job_runs_its_command_under_the_lock) {
  BOOST_TEST(undisturbed(kStall, [] {
               const UsualTable stage;
               const auto job = stage.start(
                   {"cron_job", "backup", "0", "echo begun; read go; exit 7"});
               BOOST_TEST(job->says("begun\r\n"));
               BOOST_TEST(stage.rows() == 1);
               job->type("go\n");
               const int status = job->end();
               return status == 7 ? stage.wrong_turn() : job->output();
             }) == "");
}

BOOST_FIXTURE_TEST_CASE(cron_job_whose_lock_was_lost_says_so, UsualTable) {
  const auto job = start({"cron_job", "backup", "0", "echo begun; read go"});
  BOOST_TEST(job->says("begun\r\n"));
  hold("backup");  // Overwrites ours.
  job->type("go\n");
  BOOST_TEST(job->end() != 0);
  BOOST_TEST(has(job->output(), words(Errc::lease_lost)), job->output());
  BOOST_TEST(rows() == 1);
  delete_row("backup");
}

BOOST_FIXTURE_TEST_CASE(transfers_of_two_processes_lose_no_money, Stage) {
  const Home home;
  for (int account = 0; account < 10; ++account) {
    home.write(std::to_string(account), "100\n");
  }
  const Words command = {"transfers", table(), home.root.string(), "8"};
  const std::array<std::unique_ptr<Program>, 2> programs = {start(command),
                                                            start(command)};
  int told = 0;
  for (const auto& program : programs) {
    BOOST_TEST(program->end() == 0, program->output());
    const auto sent = all_matches(program->output(), "^sent: .* all (\\d+)$");
    BOOST_TEST_REQUIRE(sent.size() == 1u, program->output());
    told += std::stoi(sent[0]);
  }
  BOOST_TEST(told == requests());
  BOOST_TEST(rows() == 0);

  long sum = 0;
  for (int account = 0; account < 10; ++account) {
    long balance = -1;
    std::ifstream(home.root / std::to_string(account)) >> balance;
    BOOST_TEST(balance >= 0);
    sum += balance;
  }
  BOOST_TEST(sum == 1000);
}

// The recipes that need nothing but the library.
std::string recipe_made(const std::string& name, const Home& home) {
  const std::string program = (home.root / name).string();
  const Ran made =
      shell(compiler() + " -std=c++20 -pthread -I. -Wall -Wextra -Werror" +
            sanitizers() + " examples/recipes/" + name + ".cpp '" + build() +
            "/libddbmutex.a' -lcurl -lcrypto -o '" + program + "'");
  BOOST_TEST_REQUIRE(made.status == 0, made.said);
  return program;
}

BOOST_FIXTURE_TEST_CASE(recipe_of_a_stop_token_ends_when_the_lock_is_lost,
                        UsualTable) {
  const Home home;
  Program program({recipe_made("stop_token", home)}, environment());
  BOOST_TEST(program.says("working\r\n"));
  hold("stop-token");  // Overwrites ours.
  BOOST_TEST(program.end() == 1);
  BOOST_TEST(program.output() == "working\nlost\n");
  delete_row("stop-token");
}

BOOST_FIXTURE_TEST_CASE(recipe_of_a_dead_holder_finds_out_whether_it_lives,
                        UsualTable) {
  const Home home;
  const std::string repair = recipe_made("dead_holder", home);
  const auto outcome = [&] {
    Program program({repair}, environment());
    const int status = program.end();
    return program.output() + std::to_string(status);
  };
  BOOST_TEST(outcome() == "locked\n0");
  BOOST_TEST(rows() == 0);
  ddbmutex::Options options;
  Whereabouts where = at(engine());
  where.table = table();
  options.table = table_at(where);
  options.ttl = std::chrono::seconds(4);
  options.renew_after = std::chrono::milliseconds(500);
  options.owner = "far-away:7";
  ddbmutex::DdbMutex alive("dead-holder", options);
  alive.lock();
  BOOST_TEST(outcome() == "held by far-away:7\n1");
  alive.stop_renewing();
  BOOST_TEST(outcome() == "locked\n0");
}

// With the library of this build, and with one compiled without exceptions.
BOOST_DATA_TEST_CASE(without_exceptions_works_in_a_table_of_its_own_making,
                     boost::unit_test::data::make({"", "noexcept"}), config) {
  const Stage stage("ddbmutex-test-made-by-" + std::to_string(getpid()));
  // The second finds the table, and uses it as it is.
  for (int round = 0; round < 2; ++round) {
    const auto program = stage.start(
        {"without_exceptions", stage.table(), "work", "60000"}, config);
    BOOST_TEST(program->end() == 0, program->output());
    BOOST_TEST(replaced(program->output(), "[^ ]+:[0-9]+\n", "HOST:PID\n") ==
               "working as HOST:PID\n");
    BOOST_TEST(stage.rows() == 0);
  }
  stage.hold("work");
  const auto program = stage.start(
      {"without_exceptions", stage.table(), "work", "60000"}, config);
  BOOST_TEST(program->end() == 1);
  BOOST_TEST(program->output() == "held by far-away:7\n");
  stage.engine().delete_table(stage.table());
}

BOOST_FIXTURE_TEST_CASE(guarded_write_that_is_late_is_refused_and_no_other,
                        Stage) {
  const auto program = start({"guarded_write", table()});
  BOOST_TEST(program->end() == 0);
  BOOST_TEST(program->output() ==
             "first: has the lock\n"
             "second: has the lock, and has written\n"
             "first: late, without the guard: HTTP status 200\n"
             "first: late, with the guard: " +
                 words(Errc::lease_lost) + "\n");
}

BOOST_AUTO_TEST_SUITE_END()

// --- The demo ----------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(demo_program)

namespace {

const Words kDemo = {"/bin/sh", "examples/demo/run"};

// Whether the table that the demo says it has made exists.
bool its_table_exists(const Stage& stage, const std::string& output) {
  const auto named = all_matches(output, "(ddbmutex-demo-[0-9a-f]{16})");
  BOOST_TEST_REQUIRE(!named.empty(), output);
  const std::string body = R"({"TableName":")" + named[0] + R"("})";
  return stage.engine().call("DescribeTable", body).status == 200;
}

// Makes the engine put an item whatever its condition says.  Looks find no
// item, because a program that sees that a lock is held does not even try.
void ignore_conditions(Gate& gate) {
  gate.always("GetItem",
              [](Engine&, const SeenRequest&) { return Reply::ok("{}"); });
  gate.always("PutItem", [](Engine& engine, SeenRequest request) {
    request.body =
        replaced(request.body, "(\"ConditionExpression\":\")",
                 "$1attribute_exists(#key) OR attribute_not_exists(#key) OR ");
    return engine.forward(request);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(demo_shows_what_it_claims_and_leaves_nothing_behind) {
  Program demo(kDemo, clean_environment());
  BOOST_TEST(demo.end() == 0, demo.output());
  const std::string text = demo.output();
  BOOST_TEST(all_matches(text, "(  right  )").size() == 14u, text);
  BOOST_TEST(!has(text, "WRONG"), text);
  const auto port = all_matches(text, "an engine of our own, at .*:(\\d+)");
  BOOST_TEST_REQUIRE(port.size() == 1u, text);
  BOOST_TEST(!anybody_listens(std::stoi(port[0])));
}

BOOST_FIXTURE_TEST_CASE(demo_on_a_dynamodb_that_ignores_conditions_says_wrong,
                        Stage) {
  ignore_conditions(gate());
  Program demo(kDemo, environment());
  BOOST_TEST(demo.end() == 1, demo.output());
  BOOST_TEST(has(demo.output(), "held the lock at the same time"),
             demo.output());
  BOOST_TEST(!its_table_exists(*this, demo.output()));
}

BOOST_FIXTURE_TEST_CASE(demo_interrupted_stops_all_and_deletes_its_table,
                        Stage) {
  Program demo(kDemo, environment());
  // While one of its processes is stopped.
  BOOST_TEST_REQUIRE(demo.says("is stopped (SIGSTOP)"), demo.output());
  BOOST_TEST(its_table_exists(*this, demo.output()));
  demo.send(SIGINT);
  BOOST_TEST(demo.end() == 128 + SIGINT, demo.output());
  BOOST_TEST(!its_table_exists(*this, demo.output()));
}

BOOST_AUTO_TEST_SUITE_END()

// --- README's commands -------------------------------------------------------

BOOST_AUTO_TEST_SUITE(readme_commands)

namespace {

bool is_for_real() { return std::getenv("DDBMUTEX_WAYS") != nullptr; }

// Runs README's commands in a folder with the library's files and a program. In
// `make ways` (DDBMUTEX_WAYS), they compile everything.  Otherwise, to save
// time, a script in place of c++ takes this build's object files of the
// library.
void make_report(const Home& home, bool with_extras) {
  const std::string page = read_file("README.md");
  Words files = all_matches(between(page, "\nOr copy the sources", "Compile"),
                            "`([^`]+)`");
  BOOST_TEST(files.size() == 5u);
  const std::string start = "c++ -std=c++17 -Os ";
  std::string command = start + between(page, "    " + start, "\n\n");
  if (with_extras) {
    files.push_back(between(page, ", copy `", "` too"));
    command =
        replaced(command, " -lcurl",
                 " " + between(page, "to that\ncommand `", "`") + " -lcurl");
  }
  for (const std::string& file : files) {
    fs::copy(project() / file, home.root / file, fs::copy_options::recursive);
  }
  fs::copy(project() / "examples/ten_lines.cpp", home.root / "report.cpp");
  const std::string objects = fs::canonical(build()).string();
  const std::string script =
      home.write("c++",
                 "#!/bin/sh\n"
                 "for word do\n"
                 "  shift\n"
                 "  case $word in\n"
                 "    report.cpp) word='-I. report.cpp' ;;\n"
                 "    ddbmutex.cpp) word='" +
                     objects + "'/ddbmutex" + (with_extras ? "" : ".core") +
                     ".o ;;\n"
                     "    *.cpp) word='" +
                     objects +
                     "'/${word%.cpp}.o ;;\n"
                     "    -Os) word=\"$CXXFLAGS -O0\" ;;\n"
                     "  esac\n"
                     "  set -- \"$@\" $word\n"
                     "done\n"
                     "exec \"$CXX\" \"$@\"\n");
  fs::permissions(script, fs::perms::owner_all);
  const Ran ran = shell("set -e; cd '" + home.root.string() + "'\n" +
                        (is_for_real() ? "" : "PATH=$PWD:$PATH\n") +
                        "export CXX=\"${CXX:-g++}\" CXXFLAGS\n" + command);
  BOOST_TEST(ran.status == 0, ran.said);
  BOOST_TEST(ran.said == "");
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(readme_commands_make_a_program_that_locks, UsualTable) {
  // README's sizes: that with the core, then that with the extras.
  const auto limits =
      all_matches(read_file("README.md"), "less\\s+than\\s+([0-9]+) KiB\\b");
  for (const bool with_extras : {false, true}) {
    const Home home;
    make_report(home, with_extras);
    if (is_for_real()) {
      BOOST_TEST(fs::file_size(home.root / "report") <
                 std::stoul(limits.at(with_extras)) * 1024);
    }
    Program report({home.root / "report"}, environment());
    BOOST_TEST(report.end() == 0);
    BOOST_TEST(report.output() == "page 1\npage 2\npage 3\n");
  }
}

BOOST_FIXTURE_TEST_CASE(readme_command_for_two_files_makes_a_program_that_locks,
                        UsualTable) {
  if (!is_for_real()) return;
  const Home home;
  const Ran ran = shell(
      "set -e; make -s amalgamation\n"
      "cp build/amalgamation/ddbmutex.?pp '" +
      home.root.string() +
      "'\n"
      "cp examples/ten_lines.cpp '" +
      home.root.string() +
      "/report.cpp'\n"
      "cd '" +
      home.root.string() +
      "'\n"
      "c++ " +
      between(read_file("README.md"), "    c++ ", "\n\n"));
  BOOST_TEST(ran.said == "");
  Program report({home.root / "report"}, environment());
  BOOST_TEST(report.end() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

// --- Texts -------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(pages)

namespace {

using namespace ddbmutex;
using Set = std::set<std::string>;

const std::string kReadme = "README.md";
const std::string kLock = "ddbmutex/README.md";
const std::string kKeys = "sigv4/README.md";
const Words kPages = {kReadme,
                      kLock,
                      kKeys,
                      "extras/README.md",
                      "examples/README.md",
                      "tests/README.md",
                      "packaging/README.md",
                      "packaging/small.md",
                      "CHANGELOG.md"};

// The cells of README's table with that first line, row by row.
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
  return replaced(text, "```[^`]*```", "");
}

// --- Names of files ----------------------------------------------------------

// The files of a folder, as paths from the top of the project.
Words files_in(const std::string& folder) {
  Words files;
  for (const auto& entry : fs::directory_iterator(project() / folder)) {
    if (!entry.is_regular_file()) continue;
    files.push_back((fs::path(folder) / entry.path().filename()).string());
  }
  return files;
}

// The library's files, without its public header.
Words sources() {
  Words all = {"ddbmutex.cpp"};
  for (const char* room : {"ddbmutex", "ddbmutex/lock", "ddbmutex/dynamodb",
                           "sigv4", "sigv4/keys", "extras", "extras/keys"}) {
    for (const std::string& file : files_in(room)) {
      if (!all_matches(file, "(\\.[ch]pp)$").empty()) all.push_back(file);
    }
  }
  return all;
}

// The anchors of a page's headings, as links have them after "#".
Set headings_of(const std::string& name) {
  Set all;
  for (std::string heading :
       all_matches(without_code(read_file(name)), "^#+ (.+)$")) {
    for (char& c : heading) c = static_cast<char>(std::tolower(c));
    all.insert(replaced(replaced(heading, "[^\\w -]", ""), " ", "-"));
  }
  return all;
}

// --- What is sent ------------------------------------------------------------

// A table behind a gate that sees what is sent.
struct Recorder {
  TableOptions options() const {
    TableOptions options = table_options(gate.engine());
    options.endpoint = gate.server().url();
    return options;
  }

  // The IAM permissions that the requests since the last call need.  A
  // transaction needs those of its parts.
  Set permissions() {
    Set all;
    const auto requests = gate.server().requests();
    for (; told < requests.size(); ++told) {
      const std::string action = action_of(requests[told]);
      if (action != "TransactWriteItems") all.insert("dynamodb:" + action);
      if (action != "TransactWriteItems") continue;
      for (const auto& part :
           all_matches(requests[told].body, "\"(\\w+)\":\\{[^{}]*\"Tab")) {
        all.insert("dynamodb:" + part + "Item");
      }
    }
    return all;
  }

  Gate gate;
  std::size_t told = 0;
};

// The permissions in README's policy, by statement.
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

BOOST_AUTO_TEST_CASE(links_of_pages_lead_somewhere) {
  Set linked;
  for (const std::string& name : kPages) {
    for (const std::string& link :
         all_matches(without_code(read_file(name)), "\\]\\(([^)]+)\\)")) {
      const std::string path = link.substr(0, link.find('#'));
      const fs::path file =
          path.empty() ? fs::path(name) : fs::path(name).parent_path() / path;
      BOOST_TEST(fs::exists(project() / file), name << ": " << link);
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

BOOST_AUTO_TEST_CASE(variables_on_the_page_are_those_that_are_read) {
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

BOOST_AUTO_TEST_CASE(tables_of_files_name_every_file_and_no_other) {
  const std::map<std::string, Words> folders_of = {
      {kLock, {".", "ddbmutex", "ddbmutex/lock", "ddbmutex/dynamodb"}},
      {kKeys, {"sigv4", "sigv4/keys", "extras/keys"}},
      {"extras/README.md", {"extras"}},
      {"tests/README.md", {"tests/core", "tests/extras"}}};
  for (const auto& [page, folders] : folders_of) {
    std::string files;
    for (const std::string& folder : folders) {
      for (const std::string& file : files_in(folder)) {
        files += fs::path(file).filename().string() + "\n";
      }
    }
    std::string row;  // All rows as one regular expression.
    for (const std::string& cell :
         all_matches(read_file(page), "^\\| (`[^|]+) \\|")) {
      for (const std::string& name :
           all_matches(cell, "([\\w*]+[.](?:[*]|[ch]pp))`")) {
        const std::string expression =
            replaced(replaced(name, "[.]", "[.]"), "[*]", ".*");
        row += "|" + expression;
        BOOST_TEST(!all_matches(files, "^(" + expression + ")$").empty(),
                   page << " names " << name);
      }
    }
    for (const std::string& file : all_matches(files, "^(.*[.][ch]pp)$")) {
      BOOST_TEST(!all_matches(file, "^(" + row.substr(1) + ")$").empty(),
                 page << " lacks " << file);
    }
  }
}

// --- The code ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(picture_of_the_phases_is_that_of_the_code) {
  const std::string page = read_file(kLock);
  const std::string header = read_file("ddbmutex/lock/hold.hpp");
  const std::string code = read_file("ddbmutex/lock/holds.cpp");
  const std::size_t begin = header.find("enum class Phase {");
  BOOST_TEST_REQUIRE(begin != header.npos);
  const std::string phases =
      header.substr(begin, header.find("};", begin) - begin);
  std::set<std::string> drawn, listed, reached, in_code;
  for (const auto& [pattern, found] :
       {std::pair("^  (\\w+) --> ", &drawn), {"--> (\\w+) : ", &reached}}) {
    for (const std::string& phase : all_matches(page, pattern)) {
      found->insert(phase);
    }
  }
  for (const std::string& phase : all_matches(phases, "^ +(\\w+),")) {
    in_code.insert(phase);
  }
  for (const std::string& phase : all_matches(page, "^\\| `(\\w+)` \\|")) {
    if (in_code.count(phase) == 1) listed.insert(phase);
  }
  BOOST_TEST(drawn == in_code, boost::test_tools::per_element());
  BOOST_TEST(listed == in_code, boost::test_tools::per_element());
  BOOST_TEST(reached == in_code, boost::test_tools::per_element());
  // Each arrow is a function.
  for (const std::string& arrow :
       all_matches(page, "^  \\w+ --> \\w+ : (.*)$")) {
    for (const std::string& function : all_matches(arrow, "(\\w+)[(][)]")) {
      BOOST_TEST(code.find(" Holds::" + function + "(") != code.npos, function);
    }
  }
}

BOOST_AUTO_TEST_CASE(usage_is_that_of_the_header_and_of_an_example) {
  const std::string shown = between(read_file(kReadme), "```cpp\n", "```\n");
  const std::string header =
      between(read_file("ddbmutex.hpp"), "item.\n//\n", "//\n// require");
  BOOST_TEST("\n" + shown == replaced("\n" + header, "\n//( {3})?", "\n"));

  // The example has the include among others.
  const std::string include = "#include \"ddbmutex.hpp\"\n";
  BOOST_TEST_REQUIRE(shown.rfind(include + "\n", 0) == 0u);
  const std::string run = read_file("examples/ten_lines.cpp");
  BOOST_TEST(has(run, "\n" + include));
  BOOST_TEST(has(run, shown.substr(include.size())));
}

namespace {

std::vector<std::string> hosts() { return {"north", "south"}; }
void roll_out(const std::string&) {}

// The same text as in README.
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

std::optional<ddbmutex::Credentials> keys_of_a_file() {
  std::ifstream file("/run/secrets/aws");
  ddbmutex::Credentials keys;
  file >> keys.access_key_id >> keys.secret_access_key;
  if (!file) throw std::runtime_error("no keys in /run/secrets/aws");
  return keys;  // Asked again every minute.
}

std::shared_ptr<ddbmutex::Table> table_with_own_keys() {
  ddbmutex::TableOptions where;
  where.credentials_source = keys_of_a_file;
  return std::make_shared<ddbmutex::Table>(where);
}

}  // namespace

BOOST_AUTO_TEST_CASE(code_that_is_shown_is_compiled) {
  const std::string page = read_file(kReadme);
  for (const char* before : {"## Options that matter", "a function:"}) {
    const std::string shown =
        between(page.substr(page.find(before)), "```cpp\n", "```\n");
    BOOST_TEST(has(read_file(__FILE__), "\n" + shown), shown);
  }
  static_cast<void>(deploy);  // That it compiles is enough.
  static_cast<void>(table_with_own_keys);
}

// --- The policy --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(policy_allows_what_is_sent_and_no_more) {
  auto allowed = policy();
  BOOST_TEST(allowed.size() == 4u);
  Recorder recorder;
  Options options = on_table(std::make_shared<Table>(recorder.options()));
  DdbMutex deleted(fresh_name(), options);
  options.keep_row = true;
  DdbMutex kept(fresh_name(), options);
  for (DdbMutex* mutex : {&deleted, &kept}) {
    mutex->lock();
    mutex->renew();
    mutex->release();
  }
  BOOST_TEST(recorder.permissions() == allowed["Lock"],
             boost::test_tools::per_element());

  list_locks(*options.table, [](const LockInfo&) { return true; });
  list_locks(*options.table, "x", [](const LockInfo&) { return true; });
  BOOST_TEST(recorder.permissions() == allowed["Manage"],
             boost::test_tools::per_element());

  kept.lock();
  recorder.permissions();
  guarded_write(kept, R"([{"Put":{"TableName":")" +
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
  create_table(made);
  Set sent = recorder.permissions();
  sent.insert("dynamodb:DescribeTable");
  BOOST_TEST(sent == policy()["CreateTable"], boost::test_tools::per_element());
  recorder.gate.engine().delete_table(options.name);
}

// --- Extras ------------------------------------------------------------------

// A header that includes no other of ours but the public one is public.
BOOST_AUTO_TEST_CASE(extras_on_the_page_are_those_that_there_are) {
  Set there = {"extras/keys/", "extras/endpoints.hpp"};
  for (const std::string& file : files_in("extras")) {
    if (all_matches(read_file(file), "^#include \"(.*)\"") ==
        Words{"../ddbmutex.hpp"}) {
      there.insert(file);
    }
  }
  Set told;
  for (const Words& row : table("| extra | what you get | without it |")) {
    told.insert(between(row.at(0), "`", "`"));
  }
  BOOST_TEST(told == there, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
