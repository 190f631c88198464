// `ddbmutex run` as it is used: in scripts, in a terminal, and when things go
// wrong.  How long what it runs outlives its lease is measured by
// processes/command.cpp.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ddbmutex/lock/protocol.hpp"
#include "examples/ddbmutex/deadline.hpp"
#include "examples/ddbmutex/watcher.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/pty.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stamps.hpp"
#include "tests/support/whereabouts.hpp"

using namespace std::chrono_literals;
using namespace tests;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

namespace fs = std::filesystem;

// --- The command -------------------------------------------------------------

std::string path_of(const std::string& program) {
  return fs::weakly_canonical(fs::absolute(program_path(program))).string();
}

// A folder for what scripts write, and an environment in which they find the
// command and its table.
class Scene {
 public:
  Scene() : Scene(at(Engine::running(any_engine_kind()))) {}
  explicit Scene(const Whereabouts& where)
      : environment(environment_of(where)) {
    const char* path = std::getenv("PATH");
    environment.push_back("PATH=" +
                          fs::path(path_of("../examples/ddbmutex/ddbmutex"))
                              .parent_path()
                              .string() +
                          ":" + (path != nullptr ? path : "/usr/bin:/bin"));
    environment.push_back("DDBMUTEX_TABLE=" + where.table);
    environment.push_back("NAME=" + name);
    environment.push_back("HERE=" + folder_.path());
    environment.push_back("STAMPER=" + path_of("processes/stamper"));
  }

  // In what folder $HERE names.
  std::string file(const std::string& which) const {
    return folder_.path() + "/" + which;
  }
  std::string text_of(const std::string& which) const {
    std::ifstream file_of_it(file(which));
    std::ostringstream text;
    text << file_of_it.rdbuf();
    return text.str();
  }
  void make(const std::string& which) const { std::ofstream(file(which)); }

  // Its output goes to the files "out" and "err" in $HERE.
  std::unique_ptr<Process> start(const std::string& script) const {
    return std::make_unique<Process>(ProcessSettings{
        {"/bin/sh", "-c", "exec >$HERE/out 2>$HERE/err\n" + script},
        environment});
  }
  int status_of(const std::string& script) const {
    return start(script)->wait();
  }
  bool comes_to_say(const std::string& text) const {
    return eventually([&] { return text_of("out") == text; });
  }

  const std::string name = fresh_name();
  std::vector<std::string> environment;

 private:
  const MemoryDirectory folder_;
};

// An engine that can be cut off: then no request is answered any more.
class Cuttable {
 public:
  Cuttable()
      : server_([this](const SeenRequest& request) {
          return is_cut_ ? hanging() : engine().forward(request);
        }) {}
  static Engine& engine() { return Engine::running(any_engine_kind()); }
  Whereabouts where() const {
    Whereabouts where = at(engine());
    where.url = server_.url();
    return where;
  }
  void cut() { is_cut_ = true; }
  void mend() { is_cut_ = false; }
  bool reaches(int requests) { return server_.wait_for_requests(requests); }

 private:
  std::atomic<bool> is_cut_{false};
  ScriptedServer server_;
};

Engine& engine() { return Cuttable::engine(); }

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(command_run)

// --- What it ends with -------------------------------------------------------

BOOST_AUTO_TEST_CASE(status_of_the_command_is_passed_on) {
  const Scene scene;
  const auto status = [&](const std::string& command) {
    return scene.status_of("exec ddbmutex run $NAME -- " + command);
  };
  BOOST_TEST(status("true") == 0);
  BOOST_TEST(status("sh -c 'exit 7'") == 7);
  BOOST_TEST(status("sh -c 'kill -TERM $$'") == 128 + SIGTERM);
  BOOST_TEST(status("sh -c 'kill -KILL $$'") == 128 + SIGKILL);
  BOOST_TEST(scene.text_of("err") == "");
  BOOST_TEST(is_free(engine(), scene.name));
}

BOOST_AUTO_TEST_CASE(command_that_cannot_be_run_is_told_as_by_a_shell) {
  const Scene scene;
  BOOST_TEST(scene.status_of("ddbmutex run $NAME -- no-such-command") == 127);
  BOOST_TEST(scene.text_of("err") ==
             "ddbmutex: no-such-command: No such file or directory\n");
  scene.make("file");
  BOOST_TEST(scene.status_of("ddbmutex run $NAME -- $HERE/file") == 126);
  BOOST_TEST(scene.text_of("err") ==
             "ddbmutex: " + scene.file("file") + ": Permission denied\n");
  BOOST_TEST(is_free(engine(), scene.name));
}

BOOST_AUTO_TEST_CASE(command_finds_the_name_and_the_token_in_its_environment) {
  const Scene scene;
  const std::string show =
      "-- sh -c 'echo \"$DDBMUTEX_NAME ${DDBMUTEX_TOKEN-none}\"'\n";
  BOOST_TEST(scene.status_of("export DDBMUTEX_TOKEN=7 DDBMUTEX_NAME=old\n"
                             "ddbmutex run $NAME " +
                             show + "ddbmutex run --keep-row $NAME-kept " +
                             show + "ddbmutex run --keep-row $NAME-kept " +
                             show) == 0);
  BOOST_TEST(scene.text_of("out") == scene.name + " none\n" + scene.name +
                                         "-kept 1\n" + scene.name +
                                         "-kept 2\n");
}

BOOST_AUTO_TEST_CASE(shell_is_given_the_command_and_its_arguments) {
  const Scene scene;
  BOOST_TEST(scene.status_of(
                 "ddbmutex run --shell $NAME -- 'echo $# \"$2\" | tr a b' 1 "
                 "'a a'") == 0);
  BOOST_TEST(scene.text_of("out") == "2 b b\n");
  // It is no option of the shell's.
  BOOST_TEST(scene.status_of("ddbmutex run --shell $NAME -- -e </dev/null") ==
             127);
}

BOOST_AUTO_TEST_CASE(command_has_the_files_and_signals_of_the_caller) {
  const Scene scene;
  BOOST_TEST(scene.status_of(
                 "exec 7</dev/null\n"
                 "L='ls /proc/self/fd' G='grep SigIgn /proc/self/status' "
                 "I='env --ignore-signal=CHLD'\n"
                 "($L; $I $G) >$HERE/without\n"
                 "ddbmutex run $NAME -- $L; $I ddbmutex run $NAME -- $G") == 0);
  BOOST_TEST(scene.text_of("out") == scene.text_of("without"));
  BOOST_TEST(has(scene.text_of("out"), "7\n"));
}

BOOST_AUTO_TEST_CASE(no_table_is_told_in_one_line_that_says_how_to_make_it) {
  Whereabouts where = at(engine());
  where.table = "no-such-table";
  const Scene scene(where);
  BOOST_TEST(scene.status_of("ddbmutex run job -- sh -c 'echo in'") == 78);
  BOOST_TEST(scene.text_of("out") == "");
  BOOST_TEST(lines_of(scene.text_of("err")) == 1u);
  BOOST_TEST(scene.text_of("err").find("`ddbmutex create-table --table "
                                       "no-such-table`") != std::string::npos,
             scene.text_of("err"));
}

BOOST_AUTO_TEST_CASE(what_keeps_it_from_the_lock_is_told_by_its_status) {
  Whereabouts where = at(engine());
  where.url = "http://127.0.0.1:9/";
  const Scene nowhere(where);
  const std::string run = "ddbmutex run --wait 1s $NAME -- echo in";
  BOOST_TEST(nowhere.status_of(run) == 69);
  ScriptedServer server(
      [](const SeenRequest&) { return failure(400, "AccessDeniedException"); });
  where.url = server.url();
  const Scene refused(where);
  BOOST_TEST(refused.status_of(run) == 77);
  BOOST_TEST(refused.status_of("ddbmutex run --grace 30s $NAME -- true") == 64);
  BOOST_TEST(nowhere.text_of("out") + refused.text_of("out") == "");
}

// --- In scripts, as with flock -----------------------------------------------

BOOST_AUTO_TEST_CASE(lock_is_held_while_the_command_runs_and_no_longer) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c "
      "'echo in; until [ -e $HERE/go ]; do sleep 0.05; done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  BOOST_TEST(!is_free(engine(), scene.name));
  scene.make("go");
  BOOST_TEST(run->wait() == 0);
  BOOST_TEST(is_free(engine(), scene.name));
}

// A line of a crontab on two hosts.
BOOST_AUTO_TEST_CASE(of_two_cron_jobs_one_runs_and_the_other_says_nothing) {
  const Scene one, other;
  const std::string line = "ddbmutex run --try " + one.name +
                           " -- sh -c 'echo in; until [ -e " + one.file("go") +
                           " ]; do sleep 0.05; done' 2>/dev/null || "
                           "[ $? -eq 75 ]";
  const auto first = one.start(line);
  BOOST_TEST_REQUIRE(one.comes_to_say("in\n"));
  BOOST_TEST(other.status_of(line) == 0);
  BOOST_TEST(other.text_of("out") + other.text_of("err") == "");
  one.make("go");
  BOOST_TEST(first->wait() == 0);
}

BOOST_AUTO_TEST_CASE(try_that_fails_has_its_fallback) {
  const Scene scene;
  write_row(engine(), scene.name, live_record());
  BOOST_TEST(scene.status_of("if ddbmutex run --try $NAME -- echo in\n"
                             "then echo done; else echo \"fallback $?\"; fi") ==
             0);
  BOOST_TEST(scene.text_of("out") == "fallback 75\n");
  BOOST_TEST(lines_of(scene.text_of("err")) == 1u);
}

BOOST_AUTO_TEST_CASE(wait_ends_in_its_time_or_with_the_lock) {
  const Scene scene;
  write_row(engine(), scene.name, live_record());
  const std::string run = "exec ddbmutex run --wait ";
  BOOST_TEST(scene.status_of(run + "500ms $NAME -- echo in") == 75);
  BOOST_TEST(scene.text_of("out") == "");
  const auto waiter = scene.start(run + "1h $NAME -- echo in");
  delete_row(engine(), scene.name);
  BOOST_TEST(waiter->wait() == 0);
  BOOST_TEST(scene.text_of("out") == "in\n");
}

// A step that fails ends the script, and the next one never begins.
BOOST_AUTO_TEST_CASE(deploy_that_fails_ends_its_script_and_frees_the_lock) {
  const Scene scene;
  BOOST_TEST(scene.status_of("set -e\n"
                             "ddbmutex run $NAME -- sh -c 'echo one; exit 3'\n"
                             "ddbmutex run $NAME -- echo two") == 3);
  BOOST_TEST(scene.text_of("out") == "one\n");
  BOOST_TEST(is_free(engine(), scene.name));
}

BOOST_AUTO_TEST_CASE(output_goes_through_a_pipe_that_ends_with_the_command) {
  const Scene scene;
  BOOST_TEST(scene.status_of("seq 3 | ddbmutex run $NAME -- cat | tac") == 0);
  BOOST_TEST(scene.text_of("out") == "3\n2\n1\n");
}

BOOST_AUTO_TEST_CASE(standard_files_that_are_closed_stay_closed) {
  const Scene scene;
  BOOST_TEST(scene.status_of("ddbmutex run $NAME -- sh -c 'for file in 0 1 2; "
                             "do [ -e /proc/$$/fd/$file ] || echo $file "
                             ">>$HERE/closed; done' <&- >&- 2>&-") == 0);
  BOOST_TEST(scene.text_of("closed") == "0\n1\n2\n");
}

// flock keeps its lock for as long as anybody has its file open.
BOOST_AUTO_TEST_CASE(what_stays_in_the_background_keeps_the_lock) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c "
      "'(until [ -e $HERE/go ]; do sleep 0.05; done; echo late) & echo in'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  BOOST_TEST(eventually([&] { return lines_of(scene.text_of("err")) == 1; }));
  BOOST_TEST(!run->has_ended());
  BOOST_TEST(!is_free(engine(), scene.name));
  scene.make("go");
  BOOST_TEST(run->wait() == 0);
  BOOST_TEST(scene.text_of("out") == "in\nlate\n");
  BOOST_TEST(is_free(engine(), scene.name));
}

// The command's process id is that of its group, which is watched yet.
BOOST_AUTO_TEST_CASE(command_is_not_reaped_while_its_group_is_watched) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c 'echo $$ >$HERE/pid; "
      "(until [ -e $HERE/go ]; do sleep 0.05; done) & echo in'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  // Much later, by the looks that it takes at the group.
  BOOST_TEST(eventually([&] { return lines_of(scene.text_of("err")) == 1; }));
  BOOST_TEST(Stamps::state_of(std::stoi(scene.text_of("pid"))) == 'Z');
  BOOST_TEST(watcher_of(run->pid()) != 0);
  scene.make("go");
  BOOST_TEST(run->wait() == 0);
}

// Orphans of the group and of other sessions, before and after the end of the
// command, which is a zombie itself.
BOOST_AUTO_TEST_CASE(orphans_are_reaped_while_others_of_the_group_live) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c 'echo $$ >$HERE/pid; "
      "orphan() { (sh -c \"echo \\$\\$ >$HERE/$1\" & ) ; "
      "(setsid sh -c \"echo \\$\\$ >$HERE/$1.away\" & ) ; }; orphan early; "
      "(until [ -e $HERE/orphan ]; do sleep 0.05; done; orphan late; "
      "until [ -e $HERE/go ]; do sleep 0.05; done) & echo in'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  const pid_t command = std::stoi(scene.text_of("pid"));
  BOOST_TEST(eventually([&] { return Stamps::state_of(command) == 'Z'; }));
  scene.make("orphan");
  for (const char* file : {"early", "early.away", "late", "late.away"}) {
    BOOST_TEST_REQUIRE(
        eventually([&] { return lines_of(scene.text_of(file)) == 1; }));
    const pid_t orphan = std::stoi(scene.text_of(file));
    BOOST_TEST(eventually([&] { return Stamps::state_of(orphan) == 0; }), file);
  }
  BOOST_TEST(!run->has_ended());
  scene.make("go");
  BOOST_TEST(run->wait() == 0);
}

// --- The least time that it is held ------------------------------------------

namespace {

// The command has ended and was reaped, and its watcher has gone.
bool comes_to_hold_on(const Process& run) {
  return eventually([&] { return children_of(run.pid()).empty(); });
}

}  // namespace

BOOST_DATA_TEST_CASE(lock_is_held_on_until_a_signal_asks_for_the_end,
                     boost::unit_test::data::make({SIGINT, SIGQUIT, SIGTERM,
                                                   SIGHUP}),
                     signal) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run --min-hold 1h $NAME -- sh -c 'echo in; exit 4'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  BOOST_TEST_REQUIRE(comes_to_hold_on(*run));
  BOOST_TEST(!run->has_ended());
  BOOST_TEST(scene.status_of("ddbmutex run -n $NAME -- echo too") == 75);
  run->signal(signal);
  BOOST_TEST(run->wait() == 4);
  BOOST_TEST(is_free(engine(), scene.name));
}

BOOST_AUTO_TEST_CASE(lock_that_is_held_on_is_renewed) {
  const Scene scene;
  const auto run =
      scene.start("exec ddbmutex run --ttl 20s --min-hold 1h $NAME -- echo in");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  BOOST_TEST_REQUIRE(comes_to_hold_on(*run));
  const auto before = row_of(engine(), scene.name);
  BOOST_TEST(eventually([&] {
    const auto after = row_of(engine(), scene.name);
    return after.uuid == before.uuid && after.expires > before.expires;
  }));
  run->signal(SIGTERM);
  BOOST_TEST(run->wait() == 0);
}

BOOST_AUTO_TEST_CASE(orphans_are_reaped_while_the_lock_is_held_on) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run --min-hold 1h $NAME -- sh -c "
      "'(setsid sh -c \"until [ -e $HERE/go ]; do sleep 0.05; done\" &) ; "
      "echo in'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  // The command and the watcher have gone.
  BOOST_TEST_REQUIRE(
      eventually([&] { return children_of(run->pid()).size() == 1; }));
  scene.make("go");
  BOOST_TEST(comes_to_hold_on(*run));
  run->signal(SIGTERM);
  BOOST_TEST(run->wait() == 0);
}

BOOST_AUTO_TEST_CASE(lock_is_not_held_on_once_it_was_held_long_enough) {
  const Scene scene;
  const Stopwatch watch;
  BOOST_TEST(scene.status_of("ddbmutex run --min-hold 1.5s $NAME -- true") ==
             0);
  BOOST_TEST((watch.time() >= 1500ms));
  BOOST_TEST(scene.status_of(
                 "DDBMUTEX_MIN_HOLD=1ms ddbmutex run $NAME -- sleep 0.01") ==
             0);
  BOOST_TEST(is_free(engine(), scene.name));
}

// Whoever stops a service does not wait for an hour.
BOOST_AUTO_TEST_CASE(signal_to_the_command_ends_the_hold_too) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run --min-hold 1h $NAME -- sh -c 'trap \"exit 5\" TERM; "
      "echo in; while :; do sleep 0.05; done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  run->signal(SIGTERM);
  BOOST_TEST(run->wait() == 5);
  BOOST_TEST(is_free(engine(), scene.name));
}

// It has not run at all: another host may try.
BOOST_AUTO_TEST_CASE(lock_is_not_held_on_for_a_command_that_cannot_be_run) {
  const Scene scene;
  const std::string run = "ddbmutex run --min-hold 1h $NAME -- ";
  BOOST_TEST(scene.status_of(run + "no-such-command") == 127);
  scene.make("file");
  BOOST_TEST(scene.status_of(run + "$HERE/file") == 126);
  BOOST_TEST(is_free(engine(), scene.name));
}

// By a renewal, or by the release.
BOOST_DATA_TEST_CASE(lock_that_is_lost_while_it_is_held_on_is_only_reported,
                     boost::unit_test::data::make({"4s", "60s"}), ttl) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run --min-hold 1h --ttl " + std::string(ttl) +
      " $NAME -- sh -c "
      "'echo in; until [ -e $HERE/go ]; do sleep 0.05; done; exit 3'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  const auto before = row_of(engine(), scene.name);
  scene.make("go");
  BOOST_TEST_REQUIRE(comes_to_hold_on(*run));
  BOOST_TEST_REQUIRE(eventually(
      [&] { return row_of(engine(), scene.name).expires > before.expires; }));
  write_row(engine(), scene.name, live_record());
  if (std::string(ttl) == "60s") run->signal(SIGTERM);
  BOOST_TEST(run->wait() == 3);
  const std::string said = scene.text_of("err");
  BOOST_TEST(lines_of(said) == 1u, said);
  BOOST_TEST(has(said, "ddbmutex: the lock `" + scene.name +
                           "` is lost: another has it"),
             said);
  BOOST_TEST(has(said, "; the command had ended, it was held on for"), said);
  BOOST_TEST(row_of(engine(), scene.name).uuid == "theirs");
}

BOOST_AUTO_TEST_CASE(ctrl_z_stops_a_run_that_holds_on) {
  const Scene scene;
  Pty terminal({"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"},
               scene.environment);
  terminal.type(
      "ddbmutex run --min-hold 1h $NAME -- sh -c 'echo $$ >$HERE/pid; "
      "echo i'\"'n'\"\n");
  BOOST_TEST_REQUIRE(terminal.says("in\r\n"), terminal.text());
  // Ctrl-Z would stop the command, too, before it has ended.
  const pid_t command = std::stoi(scene.text_of("pid"));
  BOOST_TEST_REQUIRE(eventually([&] { return kill(command, 0) != 0; }));
  const auto stops = [&] {
    terminal.type(Pty::kCtrlZ);
    return terminal.says("Stopped", 3s);
  };
  BOOST_TEST_REQUIRE(eventually(stops), terminal.text());
  terminal.type("kill -TERM %1; fg; echo status=$?\n");
  BOOST_TEST(terminal.says("status=0\r\n"), terminal.text());
  BOOST_TEST(is_free(engine(), scene.name));
}

// --- While it waits ----------------------------------------------------------

BOOST_AUTO_TEST_CASE(who_holds_the_lock_is_told_to_one_who_waits) {
  const Scene scene;
  write_row(engine(), scene.name, live_record());
  const auto silent =
      scene.start("exec ddbmutex run -q $NAME -- echo in 2>$HERE/silent");
  const auto run = scene.start("exec ddbmutex run $NAME -- echo in");
  BOOST_TEST(eventually([&] { return lines_of(scene.text_of("err")) > 0; }));
  const std::string said = scene.text_of("err");
  const auto words = all_matches(
      said, "^ddbmutex: waiting for the lock `" + scene.name +
                "` for [\\d.]+s: (held by .*, taken or last renewed .* ago)$");
  BOOST_TEST(words.size() == 1u, said);
  BOOST_TEST(scene.text_of("silent") == "");
  delete_row(engine(), scene.name);
  BOOST_TEST(run->wait() == 0);
  BOOST_TEST(silent->wait() == 0);
  BOOST_TEST(scene.text_of("err") == said);
  BOOST_TEST(scene.text_of("silent") == "");
}

BOOST_AUTO_TEST_CASE(look_that_fails_ends_no_wait) {
  Cuttable front;
  const Scene scene(front.where());
  write_row(engine(), scene.name, live_record());
  const auto run = scene.start("exec ddbmutex run -w 1h $NAME -- echo in");
  BOOST_TEST_REQUIRE(front.reaches(3));
  front.cut();
  BOOST_TEST(eventually([&] {
    return has(scene.text_of("err"), ": who holds it cannot be seen: ");
  }));
  front.mend();
  delete_row(engine(), scene.name);
  BOOST_TEST(run->wait() == 0);
  BOOST_TEST(scene.text_of("out") == "in\n");
  BOOST_TEST(lines_of(scene.text_of("err")) == 1u);
}

// Nor does the end of the program.
BOOST_AUTO_TEST_CASE(look_that_hangs_delays_no_signal) {
  std::atomic<bool> is_cut{false};
  std::atomic<int> hanging{0};
  ScriptedServer server([&](const SeenRequest& request) {
    if (!is_cut) return engine().forward(request);
    ++hanging;
    return tests::hanging();
  });
  Whereabouts where = at(engine());
  where.url = server.url();
  const Scene scene(where);
  write_row(engine(), scene.name, live_record());
  const auto run = scene.start("exec ddbmutex run $NAME -- echo in");
  BOOST_TEST_REQUIRE(server.wait_for_requests(3));
  is_cut = true;
  // That of the waiter, and that of the look.
  BOOST_TEST_REQUIRE(eventually([&] { return hanging >= 2; }));
  // The look by itself would go on for 5 s.
  BOOST_TEST(returns_within(1s, [&] {
    run->signal(SIGTERM);
    BOOST_TEST(run->wait() == 128 + SIGTERM);
  }));
  BOOST_TEST(scene.text_of("err") == "");
}

// Without memory no thread can be started, and no sanitizer goes on.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DDBMUTEX_TESTS_WITH_SANITIZER
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(DDBMUTEX_TESTS_WITH_SANITIZER)
BOOST_AUTO_TEST_CASE(look_that_cannot_begin_ends_no_wait) {
  Cuttable front;
  const Scene scene(front.where());
  write_row(engine(), scene.name, live_record());
  const auto run = scene.start("exec ddbmutex run $NAME -- echo in");
  BOOST_TEST_REQUIRE(front.reaches(2));
  const auto limit_memory = [&](rlim_t bytes) {
    const rlimit limit = {bytes, RLIM_INFINITY};
    return prlimit(run->pid(), RLIMIT_AS, &limit, nullptr);
  };
  BOOST_TEST_REQUIRE(limit_memory(1 << 20) == 0);
  BOOST_TEST_REQUIRE(eventually([&] {
    return has(scene.text_of("err"), ": who holds it cannot be seen: ");
  }));
  BOOST_TEST_REQUIRE(limit_memory(RLIM_INFINITY) == 0);
  delete_row(engine(), scene.name);
  BOOST_TEST(run->wait() == 0);
  BOOST_TEST(scene.text_of("out") == "in\n");
}
#endif

BOOST_AUTO_TEST_CASE(who_holds_the_lock_stands_in_one_line_of_a_terminal) {
  Scene scene;
  scene.environment.push_back("TERM=xterm");
  write_row(engine(), scene.name, live_record());
  Pty terminal({"/bin/sh", "-c", "exec ddbmutex run $NAME -- echo in"},
               scene.environment);
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST_REQUIRE(terminal.says("\rddbmutex: waiting for the lock `"),
                       terminal.text());
    BOOST_TEST(terminal.says("\x1b[K"), terminal.text());
  }
  delete_row(engine(), scene.name);
  BOOST_TEST(terminal.says("\r\x1b[Kin\r\n"), terminal.text());
  BOOST_TEST(terminal.end() == 0);
  BOOST_TEST(!has(terminal.text(), "\n\r"), terminal.text());
  for (const std::string& line :
       all_matches(terminal.text(), "\r([^\r]*)\x1b\\[K")) {
    BOOST_TEST(line.size() < 80u, line);
  }
}

BOOST_AUTO_TEST_CASE(line_on_the_terminal_is_taken_back_when_the_wait_ends) {
  Scene scene;
  scene.environment.push_back("TERM=xterm");
  write_row(engine(), scene.name, live_record());
  for (const bool stops : {false, true}) {
    Pty terminal({"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"},
                 scene.environment);
    terminal.type("PS1=; ddbmutex run $NAME -- echo in\n");
    BOOST_TEST_REQUIRE(terminal.says("\rddbmutex: waiting for the lock `"),
                       terminal.text());
    BOOST_TEST_REQUIRE(terminal.says("\x1b[K"));
    terminal.type(stops ? Pty::kCtrlZ : Pty::kCtrlC);
    BOOST_TEST(terminal.says("\r\x1b[K"), terminal.text());
    if (stops) BOOST_TEST(terminal.says("Stopped"), terminal.text());
  }
}

BOOST_AUTO_TEST_CASE(status_of_a_lock_that_is_not_acquired_is_as_wanted) {
  const Scene scene;
  write_row(engine(), scene.name, live_record());
  BOOST_TEST(scene.status_of("ddbmutex run -n -E 0 $NAME -- echo in") == 0);
  BOOST_TEST(scene.status_of("ddbmutex run --wait 0.25 "
                             "--conflict-exit-code=255 $NAME -- echo in") ==
             255);
  BOOST_TEST(scene.text_of("out") == "");
  delete_row(engine(), scene.name);
  BOOST_TEST(scene.status_of("ddbmutex run -n -E 9 $NAME -- echo in") == 0);
}

// --- Signals -----------------------------------------------------------------

BOOST_DATA_TEST_CASE(signals_are_handed_on_to_all_of_the_group,
                     boost::unit_test::data::make({SIGINT, SIGQUIT, SIGTERM,
                                                   SIGHUP, SIGUSR1, SIGUSR2}),
                     signal) {
  const Scene scene;
  const std::string number = std::to_string(signal);
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c 'trap \"echo one >>$HERE/caught; exit "
      "5\" " +
      number + "; (trap \"echo two >>$HERE/caught; exit 6\" " + number +
      "; echo in; while :; do sleep 0.05; done) | cat'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  run->signal(signal);
  BOOST_TEST(run->wait() == 5);
  BOOST_TEST(scene.text_of("caught") == "two\none\n");
  BOOST_TEST(is_free(engine(), scene.name));
}

BOOST_AUTO_TEST_CASE(signal_that_is_ignored_stays_so_as_by_nohup) {
  Cuttable front;
  const Scene scene(front.where());
  write_row(engine(), scene.name, live_record());
  const auto run = scene.start(
      "trap '' HUP; exec ddbmutex run $NAME -- sh -c "
      "'echo in; until [ -e $HERE/go ]; do sleep 0.05; done; kill -HUP $$; "
      "echo out'");
  BOOST_TEST_REQUIRE(front.reaches(3));  // It waits.
  run->signal(SIGHUP);
  delete_row(engine(), scene.name);
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  run->signal(SIGHUP);
  scene.make("go");
  BOOST_TEST(run->wait() == 0);
  BOOST_TEST(scene.text_of("out") == "in\nout\n");
}

BOOST_DATA_TEST_CASE(signal_ends_the_wait_for_the_lock,
                     boost::unit_test::data::make({SIGINT, SIGTERM}), signal) {
  Cuttable front;
  const Scene scene(front.where());
  write_row(engine(), scene.name, live_record());
  const auto run = scene.start("exec ddbmutex run $NAME -- echo in");
  BOOST_TEST_REQUIRE(front.reaches(3));
  BOOST_TEST(!run->has_ended());
  run->signal(signal);
  BOOST_TEST(run->wait() == 128 + signal);
  BOOST_TEST(scene.text_of("out") == "");
  BOOST_TEST(row_of(engine(), scene.name).uuid == "theirs");
}

BOOST_DATA_TEST_CASE(signal_ends_a_command_that_is_stopped,
                     boost::unit_test::data::make({SIGINT, SIGQUIT, SIGTERM,
                                                   SIGHUP}),
                     signal) {
  const Scene scene;
  const Stamps stamps(scene.file("stamps"));
  // Without a terminal: in one, this program would be stopped too.
  const auto run = scene.start(
      "exec setsid ddbmutex run $NAME -- $STAMPER $HERE/stamps 0 stops");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_stopped(0); }));
  run->signal(signal);
  BOOST_TEST(run->wait() == 128 + signal);
}

// --- Losses ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(command_is_told_by_term_before_it_is_killed) {
  Cuttable front;
  const Scene scene(front.where());
  const auto run = scene.start(
      "exec ddbmutex run --ttl 4s $NAME -- sh -c "
      "'trap \"echo term; exit 0\" TERM; echo in; while :; do sleep 0.05; "
      "done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  front.cut();
  BOOST_TEST(run->wait() == 76);
  BOOST_TEST(scene.text_of("out") == "in\nterm\n");
  // Beside it, the shell says that it was terminated.
  BOOST_TEST(has(scene.text_of("err"),
                 "ddbmutex: the lock `" + scene.name +
                     "` is lost: its lease ends without a renewal; the command "
                     "is ended\n"),
             scene.text_of("err"));
}

// It cannot heed TERM before it goes on.
BOOST_AUTO_TEST_CASE(command_that_was_stopped_is_told_by_term_too) {
  Cuttable front;
  const Scene scene(front.where());
  const auto run = scene.start(
      "exec ddbmutex run --ttl 4s $NAME -- sh -c "
      "'trap \"echo term; exit 0\" TERM; echo in; kill -STOP $$; sleep 600'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  front.cut();
  BOOST_TEST(run->wait() == 76);
  BOOST_TEST(scene.text_of("out") == "in\nterm\n");
}

// It ended by itself, and under its lock.
BOOST_AUTO_TEST_CASE(command_that_ends_in_an_outage_has_its_own_status) {
  Cuttable front;
  const Scene scene(front.where());
  const auto run = scene.start(
      "exec ddbmutex run --ttl 60s $NAME -- sh -c "
      "'echo in; until [ -e $HERE/go ]; do sleep 0.05; done; exit 9'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  front.cut();
  scene.make("go");
  BOOST_TEST(run->wait() == 9);
  BOOST_TEST(lines_of(scene.text_of("err")) == 1u);
}

namespace {

// A run that is stopped once its command has begun.
struct StoppedRun {
  explicit StoppedRun(const std::string& ttl)
      : run(scene.start("exec ddbmutex run --ttl " + ttl +
                        " $NAME -- sh -c 'echo $$ >$HERE/pid; echo in; "
                        "until [ -e $HERE/go ]; do sleep 0.05; done; exit "
                        "7'")) {
    BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
    command = std::stoi(scene.text_of("pid"));
    watcher = watcher_of(run->pid());
    run->signal(SIGSTOP);
    run->wait_until_stopped();
    stopped.emplace();  // Until here a busy machine took its time.
  }
  void end_the_command() const {
    scene.make("go");
    BOOST_TEST_REQUIRE(
        eventually([&] { return Stamps::state_of(command) == 'Z'; }));
  }

  const Scene scene;
  const std::unique_ptr<Process> run;
  std::optional<Stopwatch> stopped;
  pid_t command = 0, watcher = 0;
};

}  // namespace

// Its watcher has seen that the command ended before the lease.
BOOST_AUTO_TEST_CASE(command_that_ended_before_a_stop_outlasts_the_lease) {
  const std::string wrong = undisturbed(1s, [] {
    const StoppedRun it("8s");
    it.end_the_command();
    BOOST_TEST(eventually([&] { return it.stopped->time() > 8s; }));
    it.run->signal(SIGCONT);
    const int status = it.run->wait();
    const std::string said = it.scene.text_of("err");
    const bool well = status == 7 && lines_of(said) == 1 &&
                      has(said,
                          "ended while this program stood still; the "
                          "command had ended before that\n");
    return well ? "" : std::to_string(status) + ": " + said;
  });
  BOOST_TEST(wrong == "");
}

BOOST_DATA_TEST_CASE(command_that_may_have_outlived_the_lease_is_a_loss,
                     boost::unit_test::data::make({true, false}),
                     run_goes_first) {
  const StoppedRun it("3s");
  kill(it.watcher, SIGSTOP);
  BOOST_TEST_REQUIRE(
      eventually([&] { return Stamps::state_of(it.watcher) == 'T'; }));
  BOOST_TEST(eventually([&] { return it.stopped->time() > 3s; }));
  it.end_the_command();
  if (run_goes_first) {
    it.run->signal(SIGCONT);
    BOOST_TEST(it.run->wait() == 76);
  } else {
    kill(it.watcher, SIGCONT);
    BOOST_TEST(eventually([&] { return Stamps::state_of(it.watcher) == 'S'; }));
    it.run->signal(SIGCONT);
    BOOST_TEST(it.run->wait() == 76);
  }
  BOOST_TEST(it.scene.text_of("err") ==
             "ddbmutex: the lock `" + it.scene.name +
                 "` is lost: its lease ended without a renewal; the command "
                 "has ended, perhaps after that\n");
}

BOOST_AUTO_TEST_CASE(lock_that_is_taken_away_ends_the_command) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run --ttl 4s $NAME -- sh -c "
      "'trap \"\" TERM; echo in; while :; do sleep 0.05; done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  write_row(engine(), scene.name, live_record());
  BOOST_TEST(run->wait() == 76);
  BOOST_TEST(scene.text_of("err").find("another has it") != std::string::npos,
             scene.text_of("err"));
  BOOST_TEST(row_of(engine(), scene.name).uuid == "theirs");
}

// Nor is it held on.
BOOST_DATA_TEST_CASE(lock_that_was_taken_before_the_command_ended_is_lost,
                     boost::unit_test::data::make({"", "--min-hold 1h "}),
                     option) {
  const Scene scene;
  const auto run =
      scene.start("exec ddbmutex run " + std::string(option) +
                  "$NAME -- sh -c "
                  "'echo in; until [ -e $HERE/go ]; do sleep 0.05; done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  write_row(engine(), scene.name, live_record());
  scene.make("go");
  BOOST_TEST(run->wait() == 76);
  const std::string said = scene.text_of("err");
  BOOST_TEST(lines_of(said) == 1u, said);
  BOOST_TEST(has(said, "lost"), said);
  BOOST_TEST(!has(said, "the command had ended"), said);
}

// Its standard error is a pipe that is full.
BOOST_AUTO_TEST_CASE(loss_that_cannot_be_told_ends_the_command_in_time) {
  const Scene scene;
  const auto run = scene.start(
      "mkfifo $HERE/pipe; exec 3<>$HERE/pipe; head -c 65536 /dev/zero >&3; "
      "exec ddbmutex run --ttl 12s --grace 1s $NAME -- sh -c "
      "'exec 2>&-; trap \"echo out; exit\" TERM; echo in; while :; do sleep "
      "0.05; done' "
      "2>&3");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  write_row(engine(), scene.name, live_record());
  // Its lease would end later.
  BOOST_TEST(returns_within(
      7500ms, [&] { BOOST_TEST(scene.comes_to_say("in\nout\n")); }));
  BOOST_TEST(scene.status_of("head -c 65536 <$HERE/pipe >/dev/null") == 0);
  BOOST_TEST(run->wait() == 76);
}

// --- The watcher -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(deadline_is_before_the_end_of_the_lease) {
  using command::deadline_of;
  for (const nanoseconds ttl :
       {nanoseconds(100ms), nanoseconds(1s), nanoseconds(30s),
        nanoseconds(10min), nanoseconds(24h * 366)}) {
    for (const nanoseconds grace : {0 * ttl, ttl / 100, ttl / 4, ttl / 3}) {
      const auto deadline = deadline_of(ttl, ttl, grace);
      BOOST_TEST(
          (deadline.kill_at <= ttl - std::min<nanoseconds>(ttl / 8, 50ms)));
      BOOST_TEST((deadline.kill_at > ttl * 4 / 5));
      BOOST_TEST((deadline.term_at <= deadline.kill_at));
      BOOST_TEST((deadline.term_at <= ttl - grace));
      // There is an eighth of the lease between its renewal, at half of it or
      // before, and a TERM, however short it is counted.
      const nanoseconds left = ddbmutex::lock::held_for(ttl);
      const auto renewed = command::renewed_after(ttl, grace);
      BOOST_TEST((renewed > ttl * 2 / 5 && renewed <= ttl / 2));
      BOOST_TEST((deadline_of(left, ttl, grace).term_at >= renewed + ttl / 8));
    }
  }
}

namespace {

// A command that stamps, for as long as it lives.
struct Stamped {
  explicit Stamped(const std::string& options, const std::string& words = "")
      : run(scene.start("exec ddbmutex run " + options +
                        " $NAME -- $STAMPER "
                        "$HERE/stamps 0 " +
                        words)) {
    BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }),
                       scene.text_of("err"));
    watcher = watcher_of(run->pid());
    BOOST_TEST_REQUIRE(watcher != 0);
  }
  ~Stamped() { stamps.kill_all(); }
  Stamped(const Stamped&) = delete;
  Stamped& operator=(const Stamped&) = delete;
  bool comes_to_an_end() const {
    return eventually([&] { return !stamps.is_alive(0); });
  }

  const Scene scene;
  const Stamps stamps{scene.file("stamps")};
  const std::unique_ptr<Process> run;
  pid_t watcher = 0;
};

// One that is none of `others`, as soon as there is one.
pid_t child_of(pid_t parent, const std::set<pid_t>& others) {
  for (const Stopwatch watch; watch.time() < kPlenty;) {
    for (const pid_t child : children_of(parent)) {
      if (others.count(child) == 0) return child;
    }
  }
  throw std::runtime_error("there is no other child");
}

}  // namespace

BOOST_AUTO_TEST_CASE(watcher_that_is_killed_has_a_successor) {
  const Stamped it("--ttl 20s", "ignores");
  const pid_t command = child_of(it.run->pid(), {it.watcher});
  pid_t watcher = it.watcher;
  for (int round = 0; round < 3; ++round) {
    kill(watcher, SIGKILL);
    // The next one is most likely not ready yet.
    const pid_t next = child_of(it.run->pid(), {command, watcher});
    kill(next, SIGKILL);
    const pid_t before = watcher;
    BOOST_TEST_REQUIRE(eventually([&] {
                         watcher = watcher_of(it.run->pid());
                         return watcher != 0 && watcher != before &&
                                watcher != next;
                       }),
                       it.scene.text_of("err"));
  }
  it.run->signal(SIGSTOP);
  BOOST_TEST(it.comes_to_an_end());
  it.run->signal(SIGCONT);
  BOOST_TEST(it.run->wait() == 76);
  BOOST_TEST(!Stamps::is_running(watcher));
}

namespace {

// In a process group of its own.
struct Sleeper {
  Sleeper()
      : process(
            {{"/bin/sh", "-c", "exec setsid sh -c 'echo in; exec sleep 600'"},
             clean_environment()}) {
    BOOST_TEST_REQUIRE(process.channel().line() == "in");
  }
  Process process;
};

void stop(const command::Watcher& watcher) {
  kill(watcher.pid(), SIGSTOP);
  waitpid(watcher.pid(), nullptr, WUNTRACED);
}

constexpr command::Deadline kPast = {nanoseconds(1), nanoseconds::max()};
constexpr command::Deadline kFuture = {nanoseconds::max(), nanoseconds::max()};

}  // namespace

// The lease was renewed all along.
BOOST_AUTO_TEST_CASE(watcher_that_was_stopped_acts_by_its_last_order) {
  Sleeper it;
  {
    const command::Watcher watcher;
    stop(watcher);
    BOOST_TEST(watcher.order(it.process.pid(), kPast));
    BOOST_TEST(watcher.order(it.process.pid(), kFuture));
  }  // It goes on, and ends with KILL.
  BOOST_TEST(it.process.wait() == 128 + SIGKILL);
}

BOOST_AUTO_TEST_CASE(watcher_that_takes_no_order_is_seen_and_dismissed) {
  Sleeper it;
  {
    command::Watcher watcher;
    stop(watcher);
    for (int i = 0; watcher.order(it.process.pid(), kPast); ++i) {
      BOOST_TEST_REQUIRE(i < 100000);
    }
    watcher.dismiss();
  }
  it.process.signal(SIGUSR1);
  BOOST_TEST(it.process.wait() == 128 + SIGUSR1);
}

BOOST_AUTO_TEST_CASE(watcher_is_in_no_directory_of_the_caller) {
  const Stamped it("");
  BOOST_TEST(fs::read_symlink("/proc/" + std::to_string(it.watcher) + "/cwd") ==
             "/");
}

// The program keeps the deadline too.
BOOST_AUTO_TEST_CASE(watcher_that_is_stopped_is_not_needed) {
  Cuttable front;
  const Scene scene(front.where());
  const auto run = scene.start(
      "exec ddbmutex run --ttl 4s $NAME -- sh -c 'trap \"\" TERM; echo in; "
      "while :; do sleep 0.05; done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  kill(watcher_of(run->pid()), SIGSTOP);
  front.cut();
  BOOST_TEST(run->wait() == 76);
}

// As by somebody who kills all that looks like us.
BOOST_AUTO_TEST_CASE(command_goes_with_a_watcher_that_is_killed_too) {
  const Stamped it("--ttl 60s", "ignores");
  it.run->signal(SIGSTOP);  // So that it starts no other.
  it.run->wait_until_stopped();
  kill(it.watcher, SIGKILL);
  it.run->signal(SIGKILL);
  BOOST_TEST(it.comes_to_an_end());
}

// The kernel has it go on when the program is killed.
BOOST_AUTO_TEST_CASE(watcher_that_is_stopped_goes_on_when_it_is_alone) {
  const Scene scene;
  const Stamps stamps(scene.file("stamps"));
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c '$STAMPER $HERE/stamps 0 ignores; :'");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  kill(watcher_of(run->pid()), SIGSTOP);
  run->signal(SIGKILL);
  BOOST_TEST(eventually([&] { return !stamps.is_alive(0); }));
  stamps.kill_all();
}

// It is a child of ours all the same.  Deaf to TERM, so that KILL ends it: once
// it is cut off, or stopped itself.
BOOST_DATA_TEST_CASE(command_that_moves_to_another_group_is_ended_in_time,
                     boost::unit_test::data::make({true, false}), is_cut) {
  Cuttable front;
  const Scene scene(front.where());
  const Stamps stamps(scene.file("stamps"));
  const auto run = scene.start(
      "exec setsid ddbmutex run --ttl 4s $NAME -- $STAMPER $HERE/stamps 0 "
      "moves ignores");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  if (is_cut) {
    front.cut();
  } else {
    run->signal(SIGSTOP);
  }
  BOOST_TEST(eventually([&] { return !stamps.is_alive(0); }));
  if (!is_cut) run->signal(SIGCONT);
  BOOST_TEST(run->wait() == 76);
}

BOOST_AUTO_TEST_CASE(command_that_moves_to_another_group_gets_the_signals) {
  const Scene scene;
  const Stamps stamps(scene.file("stamps"));
  const auto run = scene.start(
      "exec setsid ddbmutex run $NAME -- $STAMPER $HERE/stamps 0 moves");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  run->signal(SIGTERM);
  BOOST_TEST(run->wait() == 128 + SIGTERM);
  BOOST_TEST(is_free(engine(), scene.name));
}

// The limit: what leaves its group is not found again.
BOOST_AUTO_TEST_CASE(daemon_that_leaves_its_group_lives_on) {
  const Scene scene;
  const Stamps stamps(scene.file("stamps"));
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c '$STAMPER $HERE/stamps 0 forks leaves; "
      "echo in; sleep 600'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  const pid_t watcher = watcher_of(run->pid());
  run->signal(SIGKILL);
  BOOST_TEST(run->wait() == 128 + SIGKILL);
  BOOST_TEST(eventually([&] { return !Stamps::is_running(watcher); }));
  BOOST_TEST(stamps.is_alive(0));
  kill(static_cast<pid_t>(stamps.slot(0).pid), SIGKILL);
}

BOOST_AUTO_TEST_CASE(run_in_a_run_goes_with_it) {
  const Scene scene;
  const Stamps stamps(scene.file("stamps"));
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- ddbmutex run $NAME-2 -- "
      "$STAMPER $HERE/stamps 0 ignores");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  run->signal(SIGKILL);
  run->wait();
  BOOST_TEST(eventually([&] { return !stamps.is_alive(0); }));
}

// --- In a terminal, as with flock --------------------------------------------

namespace {

// Both are to do the same.
const auto kLockers =
    boost::unit_test::data::make({"flock $HERE/lock", "ddbmutex run $NAME --"});

struct AtTerminal {
  explicit AtTerminal(const std::string& locker) {
    scene.environment.push_back("TERM=dumb");
    shell.emplace(std::vector<std::string>{"/bin/bash", "--norc", "--noprofile",
                                           "--noediting", "-i"},
                  scene.environment);
    shell->type("PS1=; stty -echo; L='" + locker +
                "'; eval \"L=\\\"$L\\\"\"; "
                "echo re''ady\n");
    BOOST_TEST_REQUIRE(shell->says("ready\r\n"), shell->text());
  }
  void type(const std::string& keys) { shell->type(keys); }
  void says(const std::string& text) {
    BOOST_TEST_REQUIRE(shell->says(text),
                       "no " << text << " in " << shell->text());
  }

  // A shell that is interrupted may lose the line that it has begun to read.
  void asks(const std::string& line, const std::string& answer) {
    const bool answered = eventually([&] {
      type(line);
      return shell->says(answer, 3s);
    });
    BOOST_TEST_REQUIRE(answered, "no " << answer << " in " << shell->text());
  }

  Scene scene;
  std::optional<Pty> shell;
};

}  // namespace

BOOST_DATA_TEST_CASE(ctrl_c_ends_the_command, kLockers, locker) {
  AtTerminal at_it(locker);
  at_it.type("$L sh -c 'echo in; exec sleep 600'; echo status=$?\n");
  at_it.says("in\r\n");
  at_it.type(Pty::kCtrlC);
  at_it.asks("echo status=$?\n", "status=130\r\n");
}

BOOST_DATA_TEST_CASE(ctrl_c_ends_the_script_too, kLockers, locker) {
  AtTerminal at_it(locker);
  at_it.type(
      "bash -c 'for i in 1 2 3; do '\"$L\"' sh -c "
      "\"echo in; exec sleep 600\"; done; echo no'; echo out\n");
  at_it.says("in\r\n");
  at_it.type(Pty::kCtrlC);
  at_it.asks("echo over\n", "over\r\n");
  const std::string text = at_it.shell->text();
  BOOST_TEST(text.find("no\r\n") == text.npos, text);
  BOOST_TEST(text.find("in\r\n") == text.rfind("in\r\n"), text);
}

BOOST_DATA_TEST_CASE(ctrl_z_stops_the_command_and_fg_goes_on, kLockers,
                     locker) {
  AtTerminal at_it(locker);
  const Stamps stamps(at_it.scene.file("stamps"));
  at_it.type("$L $STAMPER $HERE/stamps 0\n");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  for (int round = 0; round < 2; ++round) {
    at_it.type(Pty::kCtrlZ);
    at_it.says("Stopped");
    BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_stopped(0); }));
    const nanoseconds last = stamps.last(0);
    pause(50ms);
    BOOST_TEST((stamps.last(0) == last));
    at_it.type(round == 0 ? "fg\n" : "bg; fg\n");
    BOOST_TEST(eventually([&] { return stamps.last(0) > last; }));
  }
  at_it.type(Pty::kCtrlC);
  at_it.asks("echo status=$?\n", "status=130\r\n");
}

BOOST_DATA_TEST_CASE(command_reads_from_the_terminal, kLockers, locker) {
  AtTerminal at_it(locker);
  at_it.type(
      "$L sh -c 'echo $$ >$HERE/pid; read a; echo a=$a; read b; echo b=$b; "
      "exit 4'; echo status=$?\n");
  at_it.type("one\n");
  at_it.says("a=one\r\n");
  at_it.type(Pty::kCtrlZ);
  at_it.says("Stopped");
  // The shell says so once flock has stopped.  Until its command has too, that
  // may read what is typed for the shell.
  const pid_t command = std::stoi(at_it.scene.text_of("pid"));
  BOOST_TEST_REQUIRE(
      eventually([&] { return Stamps::state_of(command) == 'T'; }));
  at_it.type("fg\n");
  at_it.type("two\n");
  at_it.says("b=two\r\n");
  at_it.type("echo \"after $?\"\n");
  at_it.says("after 4\r\n");
}

// The shell's own pager, beside us in the pipe, reads from it.
BOOST_DATA_TEST_CASE(terminal_stays_with_a_pager_in_the_pipe, kLockers,
                     locker) {
  AtTerminal at_it(locker);
  at_it.type(
      "$L sh -c 'echo text; exec sleep 600' | "
      "sh -c 'read t; echo page; read key </dev/tty; echo $t $key'\n");
  at_it.says("page\r\n");
  at_it.type("q\n");
  at_it.says("text q\r\n");
  // A shell that is about to start `sleep` may miss the first.
  at_it.asks(Pty::kCtrlC + std::string("echo over\n"), "over\r\n");
}

BOOST_DATA_TEST_CASE(job_of_the_background_waits_for_the_terminal, kLockers,
                     locker) {
  AtTerminal at_it(locker);
  at_it.type("$L sh -c 'echo in; read a; echo a=$a' &\n");
  at_it.says("in\r\n");
  at_it.type("wait -n 2>/dev/null; jobs; echo listed\n");
  at_it.says("Stopped");
  at_it.says("listed\r\n");
  at_it.type("fg\n");
  at_it.type("one\n");
  at_it.says("a=one\r\n");
}

// As by `ssh -t`: nobody could continue what Ctrl-Z would stop.
BOOST_DATA_TEST_CASE(ctrl_z_stops_nothing_without_a_shell, kLockers, locker) {
  const Scene scene;
  Pty terminal({"/bin/sh", "-c",
                "exec " + std::string(locker) +
                    " sh -c 'echo in; while ! [ -e $HERE/go ]; do sleep 0.05; "
                    "done; read a; echo a=$a; read b; echo b=$b'"},
               scene.environment);
  BOOST_TEST(terminal.says("in\r\n"));
  terminal.type(Pty::kCtrlZ);
  pause(100ms);  // One that comes later is that of the next line.
  scene.make("go");
  terminal.type("one\n");
  BOOST_TEST(terminal.says("a=one\r\n"), terminal.text());
  terminal.type(Pty::kCtrlZ);
  pause(100ms);
  terminal.type("two\n");
  BOOST_TEST(terminal.says("b=two\r\n"), terminal.text());
}

// Of a job that its shell has left, and that cannot have the terminal.
BOOST_AUTO_TEST_CASE(command_that_asks_in_vain_for_the_terminal_is_slowed) {
  AtTerminal at_it("ddbmutex run $NAME --");
  const Stopwatch watch;
  at_it.type(
      "($L sh -c 'trap \"echo >>$HERE/asked\" HUP; until [ -e $HERE/go ]; do "
      "read key </dev/tty; done' &)\n");
  BOOST_TEST(
      eventually([&] { return lines_of(at_it.scene.text_of("asked")) >= 4; }));
  at_it.scene.make("go");
  BOOST_TEST((watch.time() >= 300ms));
  BOOST_TEST(eventually([&] { return is_free(engine(), at_it.scene.name); }));
}

BOOST_AUTO_TEST_CASE(stop_that_outlasts_the_lease_is_a_loss) {
  AtTerminal at_it("ddbmutex run --ttl 3s $NAME --");
  const Stamps stamps(at_it.scene.file("stamps"));
  at_it.type("$L $STAMPER $HERE/stamps 0\n");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  at_it.type(Pty::kCtrlZ);
  at_it.says("Stopped");
  BOOST_TEST(eventually([&] { return !stamps.is_alive(0); }));
  at_it.type("fg\n");
  at_it.says("is lost: its lease ends without a renewal");
  at_it.type("echo status=$?\n");
  at_it.says("status=76\r\n");
}

BOOST_AUTO_TEST_CASE(ctrl_z_stops_the_wait_for_the_lock) {
  AtTerminal at_it("ddbmutex run $NAME --");
  write_row(engine(), at_it.scene.name, live_record());
  at_it.type("$L echo in\n");
  pause(300ms);
  at_it.type(Pty::kCtrlZ);
  at_it.says("Stopped");
  delete_row(engine(), at_it.scene.name);
  at_it.type("fg\n");
  at_it.says("in\r\n");
}

BOOST_AUTO_TEST_SUITE_END()
