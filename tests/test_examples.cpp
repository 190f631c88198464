// Each example, run as its user runs it: as a program of its own, on each
// engine, with a server before the engine that sees every request.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/boot_clock.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/scripted_server.hpp"

namespace {

using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Errc;
using Arguments = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

std::string words(Errc code) { return make_error_code(code).message(); }

// --- Programs ----------------------------------------------------------------

// Where the programs of this very build are, and those of another
// configuration: tests/run says so.
std::string build(const std::string& config = {}) {
  const char* build = std::getenv("DDBMUTEX_BUILD");
  BOOST_TEST_REQUIRE(build != nullptr,
                     "DDBMUTEX_BUILD does not name the build");
  if (config.empty()) return build;
  return std::regex_replace(std::string(build), std::regex("[^/-]+(-[^/]*)$"),
                            config + "$1");
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) {
    all.push_back(const_cast<char*>(word.c_str()));
  }
  all.push_back(nullptr);
  return all;
}

// Ours, without what the tester's own shell and home say of AWS.
std::vector<std::string> environment(const Variables& more) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (text.rfind("AWS_", 0) != 0 && text.rfind("HOME=", 0) != 0) {
      all.push_back(text);
    }
  }
  all.push_back("HOME=/nonexistent");
  all.push_back("AWS_EC2_METADATA_DISABLED=true");
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

// In the child: only calls that are safe after a fork of a threaded program.
[[noreturn]] void become(char* const* arguments, char* const* variables,
                         int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // It died before that.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execve(arguments[0], arguments, variables);
  _exit(127);
}

// One that runs; killed when this ends.
class Program {
 public:
  Program(const std::string& path, Arguments arguments,
          const Variables& variables)
      : name_(path) {
    arguments.insert(arguments.begin(), path);
    const auto words = pointers(arguments);
    const auto environment_words = environment(variables);
    const auto environment_pointers = pointers(environment_words);
    std::array<int, 2> ends;
    BOOST_TEST_REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      become(words.data(), environment_pointers.data(), ends[1], parent);
    }
    close(ends[1]);
    output_ = ends[0];
    BOOST_TEST_REQUIRE(pid_ > 0);
  }
  ~Program() {
    if (pid_ > 0 && !waited_for_) {
      send(SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Both what it has printed and its complaints.
  const std::string& output() const { return text_; }

  int count(const std::string& text) const {
    int found = 0;
    for (auto at = text_.find(text); at != text_.npos;
         at = text_.find(text, at + text.size())) {
      ++found;
    }
    return found;
  }

  // Has it said that so often, or does so in time?
  bool says(const std::string& text, int times = 1) {
    const BootTime end = BootClock::now() + kPlenty;
    while (count(text) < times) {
      if (!read_more(end)) return false;
    }
    return true;
  }

  void send(int signal) const { kill(pid_, signal); }

  // Its exit status, or minus the signal that ended it.
  int wait(std::chrono::seconds time = kPlenty) {
    const BootTime end = BootClock::now() + time;
    while (read_more(end)) {
    }
    BOOST_TEST_REQUIRE(ended_, name_ << " does not end, having said:\n"
                                     << text_);
    int status = 0;
    waitpid(pid_, &status, 0);
    waited_for_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // The most that it ever had in memory so far.  (What wait4() tells counts
  // what was this program's, before the child was another.)
  long resident_kib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    const std::string text{std::istreambuf_iterator<char>(status), {}};
    const auto found = all_matches(text, "^VmHWM:\\s*(\\d+) kB");
    return found.empty() ? -1 : std::stol(found[0]);
  }

 private:
  bool read_more(BootTime end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - BootClock::now());
    pollfd output{output_, POLLIN, 0};
    if (left.count() <= 0 ||
        poll(&output, 1, static_cast<int>(left.count())) <= 0) {
      return false;
    }
    std::array<char, 4096> bytes;
    const ssize_t count = read(output_, bytes.data(), bytes.size());
    ended_ = count <= 0;
    if (!ended_) text_.append(bytes.data(), static_cast<std::size_t>(count));
    return !ended_;
  }

  const std::string name_;
  pid_t pid_ = -1;
  int output_ = -1;
  bool ended_ = false;
  bool waited_for_ = false;
  std::string text_;
};

// --- Engines -----------------------------------------------------------------

const auto kEngines = boost::unit_test::data::make(engine_kinds());

// Those that we start, where we may use any table.
std::vector<EngineKind> own_kinds() {
  std::vector<EngineKind> kinds = engine_kinds();
  if (kinds.back() == EngineKind::given) kinds.pop_back();
  return kinds;
}
const auto kOwnEngines = boost::unit_test::data::make(own_kinds());

// A table of an engine, and a server before the engine.
class Stage {
 public:
  // Is told of each request before the engine is.
  using Spy = std::function<void(const std::string& action)>;

  Stage(Engine& engine, std::string table, Spy spy = nullptr)
      : engine_(engine),
        table_(std::move(table)),
        spy_(std::move(spy)),
        server_([this](const SeenRequest& seen) {
          if (spy_) spy_(action_of(seen));
          return engine_.forward(seen);
        }) {}
  explicit Stage(EngineKind kind)
      : Stage(Engine::running(kind), Engine::running(kind).create_table()) {}

  const std::string& table() const { return table_; }
  Engine& engine() { return engine_; }

  Variables variables() const {
    Variables all = {{"AWS_ENDPOINT_URL_DYNAMODB", server_.url()},
                     {"AWS_REGION", engine_.region()}};
    if (const auto keys = engine_.credentials()) {
      all["AWS_ACCESS_KEY_ID"] = keys->access_key_id;
      all["AWS_SECRET_ACCESS_KEY"] = keys->secret_access_key;
      all["AWS_SESSION_TOKEN"] = keys->session_token;
    }
    return all;
  }

  // An example of this build, on this table.
  std::unique_ptr<Program> start(const std::string& name,
                                 const Arguments& arguments = {}) const {
    return std::make_unique<Program>(build() + "/examples/" + name, arguments,
                                     variables());
  }

  // "PutItem DeleteItem", in the order in which they came.
  std::string requests() const {
    std::string all;
    for (const SeenRequest& request : server_.requests()) {
      all += (all.empty() ? "" : " ") + action_of(request);
    }
    return all;
  }
  int request_count() const { return server_.request_count(); }
  bool reaches(int requests) {
    return server_.wait_for_requests(requests, kPlenty);
  }

  int rows() {
    const std::string answer = engine_.must_call(
        "Scan", R"({"ConsistentRead":true,"TableName":")" + table_ + R"("})");
    std::smatch count;
    BOOST_TEST_REQUIRE(
        std::regex_search(answer, count, std::regex(R"("Count":\s*(\d+))")));
    return std::stoi(count[1]);
  }
  // Writes the row of one who holds the lock for a minute yet.
  void hold(const std::string& name) {
    engine_.must_call(
        "PutItem",
        R"({"TableName":")" + table_ + R"(","Item":{"name":{"S":"ddblock-)" +
            name +
            R"("},"uuid":{"S":"u"},"lease":{"N":"60000"},"expires":{"N":)"
            R"("3900000000000000000"},"owner":{"S":"far-away:7"}}})");
  }
  void delete_row(const std::string& name) {
    engine_.must_call("DeleteItem", R"({"TableName":")" + table_ +
                                        R"(","Key":{"name":{"S":"ddblock-)" +
                                        name + R"("}}})");
  }

 private:
  static std::string action_of(const SeenRequest& request) {
    const std::string target = request.header("X-Amz-Target").value_or(".");
    return target.substr(target.find('.') + 1);
  }

  Engine& engine_;
  const std::string table_;
  const Spy spy_;
  ScriptedServer server_;
};

// An engine of the test's own, with a table of the usual name.
class UsualTable {
 public:
  explicit UsualTable(EngineKind kind, Stage::Spy spy = nullptr)
      : engine_(kind) {
    ddbmutex::TableOptions options;
    options.region = engine_.region();
    options.endpoint = engine_.url();
    const auto keys = engine_.credentials();
    options.credentials = {keys->access_key_id, keys->secret_access_key, ""};
    std::error_code error;
    ddbmutex::Table table(options);
    table.create(error);
    BOOST_TEST_REQUIRE(!error, table.last_error());
    stage_ = std::make_unique<Stage>(engine_, table.name(), std::move(spy));
  }
  Stage* operator->() { return stage_.get(); }

 private:
  Engine engine_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(examples)

// --- ten_lines ---------------------------------------------------------------

BOOST_DATA_TEST_CASE(ten_lines_print_the_report_for_three_requests, kOwnEngines,
                     kind) {
  UsualTable locks(kind);
  const auto program = locks->start("ten_lines");
  BOOST_TEST(program->wait() == 0);
  BOOST_TEST(program->output() == "page 1\npage 2\npage 3\n");
  BOOST_TEST(locks->rows() == 0);
  BOOST_TEST(locks->requests() == "GetItem PutItem DeleteItem");
}

BOOST_DATA_TEST_CASE(ten_lines_print_nothing_while_another_holds_the_lock,
                     kOwnEngines, kind) {
  UsualTable locks(kind);
  locks->hold("nightly-report");
  const auto program = locks->start("ten_lines");
  BOOST_TEST(locks->reaches(5));
  BOOST_TEST(locks->requests().find("DeleteItem") == std::string::npos);
  BOOST_TEST(locks->rows() == 1);
  locks->delete_row("nightly-report");
  BOOST_TEST(program->wait() == 0);
  BOOST_TEST(program->output() == "page 1\npage 2\npage 3\n");
  BOOST_TEST(locks->rows() == 0);
}

BOOST_AUTO_TEST_CASE(ten_lines_without_keys_say_where_they_looked) {
  Program program(build() + "/examples/ten_lines", {},
                  {{"AWS_REGION", "eu-west-1"},
                   {"AWS_ENDPOINT_URL", "http://127.0.0.1:9"}});
  BOOST_TEST(program.wait() != 0);
  BOOST_TEST(has(program.output(), "nightly-report"), program.output());
  BOOST_TEST(has(program.output(), words(Errc::no_keys)), program.output());
  BOOST_TEST(has(program.output(), "AWS_ACCESS_KEY_ID"), program.output());
}

BOOST_AUTO_TEST_CASE(ten_lines_without_a_region_say_where_they_looked) {
  Program program(build() + "/examples/ten_lines", {}, {});
  BOOST_TEST(program.wait() == 1);  // It has caught the error.
  BOOST_TEST(has(program.output(), "ten_lines: bad option `region`: "),
             program.output());
  BOOST_TEST(has(program.output(), "AWS_REGION"), program.output());
}

// --- leader ------------------------------------------------------------------

namespace {

// A leader is told of a loss by a callback, while it goes on.
std::string without_line(std::string output, const std::string& line) {
  const std::size_t at = output.find(line);
  return at == std::string::npos ? "no " + line : output.erase(at, line.size());
}

}  // namespace

BOOST_DATA_TEST_CASE(leader_stopped_past_its_lease_is_followed_and_told,
                     kEngines, kind) {
  Stage stage(kind);
  const Arguments arguments = {stage.table(), "leader", "4000"};
  const auto first = stage.start("leader", arguments);
  BOOST_TEST(first->says("leading\n"));
  const auto second = stage.start("leader", arguments);
  BOOST_TEST(second->says("waiting\n"));
  first->send(SIGSTOP);
  BOOST_TEST(second->says("leading\n"));
  first->send(SIGCONT);
  BOOST_TEST(first->says("waiting\n", 2));
  BOOST_TEST(first->says("lost: expired\n"));
  BOOST_TEST(without_line(first->output(), "lost: expired\n") ==
             "waiting\nleading\nwaiting\n");
  // Now the other way round, by a sudden death.
  second->send(SIGKILL);
  BOOST_TEST(second->wait() == -SIGKILL);
  BOOST_TEST(second->output() == "waiting\nleading\n");
  BOOST_TEST(first->says("leading\n", 2));
  first->send(SIGTERM);
  BOOST_TEST(first->wait() == 0);
  BOOST_TEST(stage.rows() == 0);
}

BOOST_DATA_TEST_CASE(leader_told_to_end_hands_over_before_its_lease_ends,
                     kEngines, kind) {
  Stage stage(kind);
  const Arguments arguments = {stage.table(), "leader", "3600000"};
  const auto first = stage.start("leader", arguments);
  BOOST_TEST(first->says("leading\n"));
  const auto second = stage.start("leader", arguments);
  BOOST_TEST(second->says("waiting\n"));
  first->send(SIGTERM);
  BOOST_TEST(first->wait() == 0);
  BOOST_TEST(first->output() == "waiting\nleading\n");
  BOOST_TEST(second->says("leading\n"));
  second->send(SIGINT);
  BOOST_TEST(second->wait() == 0);
  BOOST_TEST(stage.rows() == 0);
}

BOOST_DATA_TEST_CASE(leader_whose_row_is_deleted_is_told_and_leads_again,
                     kEngines, kind) {
  Stage stage(kind);
  const auto leader = stage.start("leader", {stage.table(), "leader", "8000"});
  BOOST_TEST(leader->says("leading\n"));
  stage.delete_row("leader");
  BOOST_TEST(leader->says("leading\n", 2));
  BOOST_TEST(leader->says("lost: deleted\n"));
  BOOST_TEST(without_line(leader->output(), "lost: deleted\n") ==
             "waiting\nleading\nwaiting\nleading\n");
  leader->send(SIGTERM);
  BOOST_TEST(leader->wait() == 0);
}

BOOST_DATA_TEST_CASE(leader_that_waits_ends_when_told_to, kEngines, kind) {
  Stage stage(kind);
  stage.hold("leader");
  const auto leader = stage.start("leader", {stage.table(), "leader", "2000"});
  BOOST_TEST(stage.reaches(3));
  leader->send(SIGTERM);
  BOOST_TEST(leader->wait() == 0);
  BOOST_TEST(leader->output() == "waiting\n");
  BOOST_TEST(stage.rows() == 1);
}

BOOST_AUTO_TEST_CASE(leader_names_the_table_that_is_not_there) {
  Stage stage(any_engine_kind());
  const auto leader =
      stage.start("leader", {"no-such-table", "leader", "2000"});
  BOOST_TEST(leader->wait() == 1);
  BOOST_TEST(has(leader->output(), words(Errc::no_table)), leader->output());
  BOOST_TEST(has(leader->output(), "no-such-table"), leader->output());
}

// --- cron_job ----------------------------------------------------------------

BOOST_DATA_TEST_CASE(cron_job_runs_its_command_under_the_lock, kOwnEngines,
                     kind) {
  UsualTable locks(kind);
  const Home home;
  const std::string go = (home.root / "go").string();
  const auto job = locks->start(
      "cron_job", {"backup", "0",
                   "echo begun; while ! test -e " + go +
                       "; do sleep 0.01; done; echo done; exit 7"});
  BOOST_TEST(job->says("begun\n"));
  BOOST_TEST(locks->rows() == 1);
  home.write("go", "");
  BOOST_TEST(job->wait() == 7);
  BOOST_TEST(job->output() == "begun\ndone\n");
  BOOST_TEST(locks->rows() == 0);
  BOOST_TEST(locks->requests() == "GetItem PutItem DeleteItem");
}

BOOST_DATA_TEST_CASE(cron_job_of_a_host_that_is_late_does_nothing, kOwnEngines,
                     kind) {
  UsualTable locks(kind);
  const Home home;
  // Done at once, and still held.
  const auto early = locks->start("cron_job", {"backup", "3600", "echo early"});
  BOOST_TEST(early->says("early\n"));
  const auto late = locks->start("cron_job", {"backup", "3600", "echo late"});
  BOOST_TEST(late->wait() == 0);
  BOOST_TEST(late->output() == "backup: another host does it\n");
  BOOST_TEST(locks->rows() == 1);
  BOOST_TEST(locks->requests().find("DeleteItem") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(cron_job_holds_the_lock_for_as_long_as_told) {
  UsualTable locks(any_engine_kind());
  const BootTime begin = BootClock::now();
  const auto job = locks->start("cron_job", {"backup", "1", "true"});
  BOOST_TEST(job->wait() == 0);
  BOOST_TEST((BootClock::now() - begin >= std::chrono::seconds(1)));
  BOOST_TEST(locks->rows() == 0);
}

BOOST_DATA_TEST_CASE(cron_job_whose_lock_was_lost_says_so, kOwnEngines, kind) {
  UsualTable locks(kind);
  const Home home;
  const std::string go = (home.root / "go").string();
  const auto job = locks->start("cron_job", {"backup", "0",
                                             "echo begun; while ! test -e " +
                                                 go + "; do sleep 0.01; done"});
  BOOST_TEST(job->says("begun\n"));
  locks->hold("backup");  // Overwrites ours.
  home.write("go", "");
  BOOST_TEST(job->wait() != 0);
  BOOST_TEST(has(job->output(), words(Errc::lease_lost)), job->output());
  BOOST_TEST(locks->rows() == 1);
}

BOOST_AUTO_TEST_CASE(cron_job_that_cannot_ask_does_not_run) {
  Stage stage(any_engine_kind());  // It has no table of the usual name.
  const auto job = stage.start("cron_job", {"backup", "0", "echo ran"});
  BOOST_TEST(job->wait() != 0);
  BOOST_TEST(has(job->output(), words(Errc::no_table)), job->output());
  BOOST_TEST(!has(job->output(), "ran"), job->output());
}

// --- transfers ---------------------------------------------------------------

BOOST_DATA_TEST_CASE(transfers_of_two_processes_lose_no_money, kEngines, kind) {
  Stage stage(kind);
  const Home home;
  for (int account = 0; account < 10; ++account) {
    home.write(std::to_string(account), "100\n");
  }
  const Arguments arguments = {stage.table(), home.root.string(), "8"};
  std::array<std::unique_ptr<Program>, 2> programs;
  for (auto& program : programs) program = stage.start("transfers", arguments);
  unsigned long told = 0;
  for (const auto& program : programs) {
    BOOST_TEST(program->wait() == 0, program->output());
    const std::regex line(
        "sent: PutItem (\\d+), DeleteItem (\\d+), all (\\d+)\n");
    std::smatch sent;
    BOOST_TEST_REQUIRE(std::regex_match(program->output(), sent, line),
                       program->output());
    // 4 threads of 8 transfers of 2 accounts, and those refused.
    BOOST_TEST(std::stoul(sent[1]) >= 64u);
    BOOST_TEST(std::stoul(sent[2]) >= 64u);
    told += std::stoul(sent[3]);
  }
  BOOST_TEST(told == static_cast<unsigned long>(stage.request_count()));
  BOOST_TEST(stage.rows() == 0);

  long sum = 0;
  for (int account = 0; account < 10; ++account) {
    long balance = -1;
    std::ifstream(home.root / std::to_string(account)) >> balance;
    BOOST_TEST(balance >= 0);
    sum += balance;
  }
  BOOST_TEST(sum == 1000);
}

BOOST_AUTO_TEST_CASE(transfers_tell_what_a_thread_of_theirs_has_met) {
  Stage stage(any_engine_kind());
  const Home home;
  const auto program =
      stage.start("transfers", {stage.table(), home.root.string(), "1"});
  BOOST_TEST(program->wait() == 1);
  BOOST_TEST(has(program->output(), "cannot read " + home.root.string()),
             program->output());
  BOOST_TEST(stage.rows() == 0);
}

// --- without_exceptions ------------------------------------------------------

namespace {

// With the library of this build, and with one that was compiled so too.
const auto kBuilds = boost::unit_test::data::make({"", "noexcept"});

std::unique_ptr<Program> without_exceptions(const Stage& stage,
                                            const std::string& config,
                                            const Arguments& arguments) {
  return std::make_unique<Program>(
      build(config) + "/examples/without_exceptions", arguments,
      stage.variables());
}

}  // namespace

BOOST_DATA_TEST_CASE(without_exceptions_works_in_a_table_of_its_own_making,
                     kEngines* kBuilds, kind, config) {
  Stage stage(Engine::running(kind),
              "ddbmutex-test-made-by-" + std::to_string(getpid()));
  const auto program =
      without_exceptions(stage, config, {stage.table(), "work", "60000"});
  BOOST_TEST(program->wait() == 0, program->output());
  BOOST_TEST(std::regex_match(program->output(),
                              std::regex("working as [^ ]+:[0-9]+\n")),
             program->output());
  BOOST_TEST(stage.rows() == 0);
  // Found, and used as it is.
  const auto again =
      without_exceptions(stage, config, {stage.table(), "work", "60000"});
  BOOST_TEST(again->wait() == 0, again->output());
  stage.engine().delete_table(stage.table());
}

BOOST_DATA_TEST_CASE(without_exceptions_tells_who_holds_the_lock,
                     kEngines* kBuilds, kind, config) {
  Stage stage(kind);
  stage.hold("work");
  const auto program =
      without_exceptions(stage, config, {stage.table(), "work", "60000"});
  BOOST_TEST(program->wait() == 1);
  BOOST_TEST(program->output() == "held by far-away:7\n");
}

BOOST_AUTO_TEST_CASE(without_exceptions_is_told_of_a_wrong_option) {
  Stage stage(any_engine_kind());
  const auto program =
      without_exceptions(stage, "noexcept", {stage.table(), "work", "99"});
  BOOST_TEST(program->wait() == 2);
  BOOST_TEST(has(program->output(), "ttl"), program->output());
}

BOOST_DATA_TEST_CASE(without_exceptions_is_told_of_no_keys, kBuilds, config) {
  Program program(build(config) + "/examples/without_exceptions",
                  {"locks", "work", "60000"},
                  {{"AWS_REGION", "eu-west-1"},
                   {"AWS_ENDPOINT_URL", "http://127.0.0.1:9"}});
  BOOST_TEST(program.wait() == 2);
  BOOST_TEST(has(program.output(), words(Errc::no_keys)), program.output());
}

// What unwinds the stack asks for the personality, what knows types at run time
// for their descriptions: no object that was compiled without them does, unless
// a sanitizer adds that.
BOOST_AUTO_TEST_CASE(without_exceptions_is_compiled_without_them) {
  std::ifstream object(build("noexcept") + "/examples/without_exceptions.o");
  const std::string bytes{std::istreambuf_iterator<char>(object), {}};
  BOOST_TEST(has(bytes, "DdbMutex"));
  for (const char* symbol : {"__gxx_personality_v0", "__cxa_throw", "_ZTI"}) {
    BOOST_TEST(!has(bytes, symbol), symbol);
  }
}

// --- guarded_write -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(guarded_write_that_is_late_is_refused_and_no_other) {
  Stage stage(any_engine_kind());
  const auto program = stage.start("guarded_write", {stage.table()});
  BOOST_TEST(program->wait() == 0);
  BOOST_TEST(program->output() ==
             "first: has the lock\n"
             "second: has the lock, and has written\n"
             "first: late, without the guard: HTTP status 200\n"
             "first: late, with the guard: " +
                 words(Errc::lease_lost) + "\n");
  const auto author = [&stage](const std::string& item) {
    return stage.engine().must_call(
        "GetItem", R"({"TableName":")" + stage.table() +
                       R"(","ConsistentRead":true,"Key":{"name":{"S":")" +
                       item + R"("}}})");
  };
  BOOST_TEST(has(author("unguarded"), R"("first")"));
  BOOST_TEST(has(author("guarded"), R"("second")"));
  BOOST_TEST(stage.rows() == 3);  // The lock's own is kept.
}

BOOST_AUTO_TEST_CASE(guarded_write_names_the_table_that_is_not_there) {
  Stage stage(any_engine_kind());
  const auto program = stage.start("guarded_write", {"no-such-table"});
  BOOST_TEST(program->wait() == 1);
  BOOST_TEST(has(program->output(), words(Errc::no_table)), program->output());
}

BOOST_AUTO_TEST_SUITE_END()

// --- README's commands -------------------------------------------------------

BOOST_AUTO_TEST_SUITE(readme_commands)

namespace {

// How long the commands take on a busy machine.
constexpr std::chrono::minutes kCompilation(10);

// A row of README's table of parts.
std::string row_of(const std::string& part) {
  return between(read_file("README.md"), "\n| `" + part + "` |", "\n");
}

// The folder where somebody takes the library along, with a program of his own.
void take_along(const Home& home) {
  namespace fs = std::filesystem;
  const auto files = all_matches(
      between(read_file("README.md"), "\nCopy ", " next to"), "`([^`]+)`");
  BOOST_TEST(files.size() == 4u);
  for (const std::string& file : files) {
    fs::copy(project() / file, home.root / file, fs::copy_options::recursive);
  }
  fs::copy(project() / "examples/ten_lines.cpp", home.root / "report.cpp");
}

// README's commands, run in that folder.
void make_report(const Home& home, const std::vector<std::string>& without) {
  take_along(home);
  std::string commands =
      "c++ " + between(read_file("README.md"), "    c++ ", "\n\n");
  for (const std::string& part : without) {
    for (const auto& macro : all_matches(row_of(part), "`(-D[^`]+)`")) {
      commands = replaced(commands, " -Os", " -Os " + macro);
    }
  }
  static const Home objects;  // What all of them have is compiled once.
  home.write(
      "commands",
      "set -e\nexport OBJECTS=" + objects.root.string() + " PATH=" +
          std::filesystem::absolute(project() / "tests/programs").string() +
          ":$PATH\ncd " + home.root.string() + "\n" + commands + "\n");
  Program shell("/bin/sh", {home.root / "commands"}, {});
  BOOST_TEST_REQUIRE(shell.wait(kCompilation) == 0, shell.output());
  BOOST_TEST(shell.output() == "");
}

std::vector<long> numbers_in_readme(const std::string& unit) {
  std::vector<long> numbers;
  for (const auto& number :
       all_matches(read_file("README.md"),
                   "less\\s+than\\s+([0-9]+) " + unit + "\\b")) {
    numbers.push_back(std::stol(number));
  }
  return numbers;
}

}  // namespace

BOOST_AUTO_TEST_CASE(readme_commands_make_a_program_as_small_as_it_says) {
  const Home home;
  make_report(home, {});
  const auto size = std::filesystem::file_size(home.root / "report");
  BOOST_TEST_MESSAGE("report: " << size << " bytes");
  BOOST_TEST(static_cast<long>(size) < numbers_in_readme("KiB").at(0) * 1024);

  std::promise<const Program*> started;
  auto program = started.get_future().share();
  std::atomic<long> resident{0};  // When it has done all but the unlocking.
  UsualTable locks(any_engine_kind(), [&](const std::string& action) {
    if (action == "DeleteItem") resident = program.get()->resident_kib();
  });
  Program report(home.root / "report", {}, locks->variables());
  started.set_value(&report);
  BOOST_TEST(report.wait() == 0);
  BOOST_TEST(report.output() == "page 1\npage 2\npage 3\n");
  BOOST_TEST_MESSAGE("report: " << resident << " KiB resident");
  BOOST_TEST(resident > 0);
  BOOST_TEST(resident < numbers_in_readme("MiB").at(0) * 1024);
}

namespace {

// Without hosts and profiles, or without all parts: one of the
// two by lot, and both where every way of building is wanted (DDBMUTEX_WAYS).
std::vector<std::size_t> smaller_builds() {
  if (std::getenv("DDBMUTEX_WAYS") != nullptr) return {1, 2};
  const char* seed = std::getenv("DDBMUTEX_SEED");
  return {1 + (seed == nullptr ? 0 : std::strtoul(seed, nullptr, 10) % 2)};
}

std::vector<std::string> left_out(std::size_t which) {
  if (which == 1) return {"hosts", "profiles"};
  const auto all =
      all_matches(between(read_file("README.md"), "\n| part |", "\n\n"),
                  "^\\| `(\\w+)` \\|");
  BOOST_TEST(all.size() == 4u);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(readme_program_without_parts_is_as_small_as_it_says) {
  for (const std::size_t which : smaller_builds()) {
    const Home home;
    make_report(home, left_out(which));
    const auto size = std::filesystem::file_size(home.root / "report");
    BOOST_TEST_MESSAGE("without parts: " << size << " bytes");
    BOOST_TEST(static_cast<long>(size) <
               numbers_in_readme("KiB").at(which) * 1024);
    UsualTable locks(any_engine_kind());
    Program report(home.root / "report", {}, locks->variables());
    BOOST_TEST(report.wait() == 0);
    if (which != 2) continue;
    // What has gone is not silently something else.
    auto variables = locks->variables();
    variables["AWS_USE_FIPS_ENDPOINT"] = "true";
    Program refused(home.root / "report", {}, variables);
    BOOST_TEST(refused.wait() == 1);
    BOOST_TEST(has(refused.output(),
                   "AWS_USE_FIPS_ENDPOINT is true, but such endpoints are left "
                   "out of this build"),
               refused.output());
  }
}

BOOST_AUTO_TEST_SUITE_END()
