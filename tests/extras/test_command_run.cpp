// `ddbmutex run`: in scripts, in a terminal, and when the lock is lost.  Also
// with a credential_process that asks for a password on the terminal.
// test_command.cpp has the other subcommands.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
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
#include "tests/support/waiting.hpp"
#include "tests/support/whereabouts.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace tests;
using std::chrono::nanoseconds;

BOOST_AUTO_TEST_SUITE(command_run)

namespace {

std::string path_of(const std::string& program) {
  return fs::weakly_canonical(fs::absolute(program_path(program))).string();
}

// A folder in which scripts write files, and an environment with which they
// find the command and its table.
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

  // The path of a file in the folder, which scripts call $HERE.
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

// A server before the engine.  Once it is cut, it answers no request.
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

 private:
  std::atomic<bool> is_cut_{false};
  ScriptedServer server_;
};

Engine& engine() { return Cuttable::engine(); }

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

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

// systemd sets these variables for the process that it starts, which is
// ddbmutex; they are meant for the command.
BOOST_AUTO_TEST_CASE(variables_that_name_this_process_name_the_command) {
  const Scene scene;
  const std::string run =
      " exec ddbmutex run $NAME -- sh -c 'for one in WATCHDOG_PID LISTEN_PID "
      "SYSTEMD_EXEC_PID LISTEN_PIDFDID LISTEN_FDS; do eval pid=\\$$one; "
      "[ \"$pid\" = $$ ] && pid=own; echo -n \"${pid:-none} \"; done'";
  const auto said_for = [&](const std::string& variables) {
    BOOST_TEST(scene.status_of("export " + variables + ";" + run) == 0);
    return scene.text_of("out");
  };
  BOOST_TEST(said_for("WATCHDOG_PID=$$ LISTEN_PID=$$ SYSTEMD_EXEC_PID=$$ "
                      "LISTEN_PIDFDID=7 LISTEN_FDS=1") ==
             "own own own none 1 ");
  // Those of another process are left alone, and none is made up.
  BOOST_TEST(said_for("WATCHDOG_PID=1 LISTEN_PID=2 LISTEN_PIDFDID=7") ==
             "1 2 none 7 none ");
  BOOST_TEST(said_for("LISTEN_FDS=1") == "none none none none 1 ");
}

// --- In scripts, as with flock -----------------------------------------------

BOOST_AUTO_TEST_CASE(wait_ends_in_its_time_or_with_the_lock) {
  const Scene scene;
  write_row(engine(), scene.name, live_record());
  const std::string run = "exec ddbmutex run --wait ";
  BOOST_TEST(scene.status_of(run + "3s $NAME -- echo in") == 75);
  BOOST_TEST(scene.text_of("out") == "");
  const auto waiter = scene.start(run + "1h $NAME -- echo in");
  delete_row(engine(), scene.name);
  BOOST_TEST(waiter->wait() == 0);
  BOOST_TEST(scene.text_of("out") == "in\n");
}

// The command's group has the number of its process.  While the watcher watches
// the group, no other process may get that number.
BOOST_AUTO_TEST_CASE(command_is_not_reaped_while_its_group_is_watched) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c 'echo $$ >$HERE/pid; "
      "(until [ -e $HERE/go ]; do sleep 0.05; done) & echo in'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  // It has looked at the group several times, and says what it waits for.
  BOOST_TEST(eventually([&] { return lines_of(scene.text_of("err")) == 1; }));
  BOOST_TEST(Stamps::state_of(std::stoi(scene.text_of("pid"))) == 'Z');
  BOOST_TEST(watcher_of(run->pid()) != 0);
  scene.make("go");
  BOOST_TEST(run->wait() == 0);
}

// Orphans of the group, of other groups (timeout makes its own) and of other
// sessions, from before and after the end of the command, which itself stays a
// zombie.
BOOST_AUTO_TEST_CASE(orphans_are_reaped_while_others_of_the_group_live) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c 'echo $$ >$HERE/pid; "
      "orphan() { (sh -c \"echo \\$\\$ >$HERE/$1\" & ) ; "
      "(timeout 60 sh -c \"echo \\$PPID >$HERE/$1.group\" & ) ; "
      "(setsid sh -c \"echo \\$\\$ >$HERE/$1.away\" & ) ; }; orphan early; "
      "(until [ -e $HERE/orphan ]; do sleep 0.05; done; orphan late; "
      "until [ -e $HERE/go ]; do sleep 0.05; done) & echo in'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  const pid_t command = std::stoi(scene.text_of("pid"));
  BOOST_TEST(eventually([&] { return Stamps::state_of(command) == 'Z'; }));
  scene.make("orphan");
  for (const char* file : {"early", "early.group", "early.away", "late",
                           "late.group", "late.away"}) {
    BOOST_TEST_REQUIRE(
        eventually([&] { return lines_of(scene.text_of(file)) == 1; }));
    const pid_t orphan = std::stoi(scene.text_of(file));
    BOOST_TEST(eventually([&] { return Stamps::state_of(orphan) == 0; }), file);
  }
  BOOST_TEST(!run->has_ended());
  scene.make("go");
  BOOST_TEST(run->wait() == 0);
}

BOOST_AUTO_TEST_CASE(orphans_are_reaped_while_the_command_runs) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run $NAME -- sh -c 'for i in 1 2 3; do "
      "(timeout 60 true & ); (setsid true & ); (true & ); done; echo in; "
      "until [ -e $HERE/go ]; do sleep 0.05; done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  // What is left: the command and its watcher.
  BOOST_TEST(eventually([&] { return children_of(run->pid()).size() == 2; }));
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
                     boost::unit_test::data::make({SIGINT, SIGTERM}), signal) {
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

// What the command has left in other groups may end later, in any order.
BOOST_AUTO_TEST_CASE(orphans_are_reaped_while_the_lock_is_held_on) {
  const Scene scene;
  const auto run = scene.start(
      "exec ddbmutex run --min-hold 1h $NAME -- sh -c 'for i in 3 2 1; do "
      "(timeout 60 sh -c \"until [ -e $HERE/go.$i ]; do sleep 0.05; done\" & "
      "); "
      "done; echo in'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  for (std::size_t left = 3; left > 0; --left) {
    BOOST_TEST(
        eventually([&] { return children_of(run->pid()).size() == left; }));
    scene.make("go." + std::to_string(left));
  }
  BOOST_TEST(comes_to_hold_on(*run));
  run->signal(SIGTERM);
  BOOST_TEST(run->wait() == 0);
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

// It has not run at all, so another host may try.
BOOST_AUTO_TEST_CASE(lock_is_not_held_on_for_a_command_that_cannot_be_run) {
  const Scene scene;
  const std::string run = "ddbmutex run --min-hold 1h $NAME -- ";
  BOOST_TEST(scene.status_of(run + "no-such-command") == 127);
  scene.make("file");
  BOOST_TEST(scene.status_of(run + "$HERE/file") == 126);
  BOOST_TEST(is_free(engine(), scene.name));
}

// --- While it waits ----------------------------------------------------------

BOOST_AUTO_TEST_CASE(who_holds_the_lock_is_told_to_one_who_waits) {
  ScriptedServer server(
      [](const SeenRequest& request) { return engine().forward(request); });
  Whereabouts where = at(engine());
  where.url = server.url();
  const Scene scene(where);
  write_row(engine(), scene.name, live_record());
  const auto silent =
      scene.start("exec ddbmutex run -q $NAME -- echo in 2>$HERE/silent");
  BOOST_TEST_REQUIRE(server.wait_for_requests(3));  // It waits.
  const auto run = scene.start("exec ddbmutex run $NAME -- echo in");
  BOOST_TEST(eventually([&] { return lines_of(scene.text_of("err")) > 0; }));
  // Some seconds later, even the silent one would have spoken.
  BOOST_TEST(server.wait_for_requests(server.request_count() + 30));
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

// To report who holds the lock, `run` looks at it in a thread of its own.
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
  // The waiter's request, and the look's.
  BOOST_TEST_REQUIRE(eventually([&] { return hanging >= 2; }));
  // The look is given up only after 5 s.
  BOOST_TEST(returns_within(1s, [&] {
    run->signal(SIGTERM);
    BOOST_TEST(run->wait() == 128 + SIGTERM);
  }));
  BOOST_TEST(scene.text_of("err") == "");
}

// --- Signals -----------------------------------------------------------------

BOOST_DATA_TEST_CASE(signals_are_handed_on_to_all_of_the_group,
                     boost::unit_test::data::make({SIGINT, SIGTERM, SIGUSR1}),
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

// --- Losses ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(command_is_told_by_term_before_it_is_killed) {
  Cuttable front;
  const Scene scene(front.where());
  const auto run = scene.start(
      "exec ddbmutex run --ttl 12s $NAME -- sh -c "
      "'trap \"echo term; exit 0\" TERM; echo in; while :; do sleep 0.05; "
      "done'");
  BOOST_TEST_REQUIRE(scene.comes_to_say("in\n"));
  front.cut();
  BOOST_TEST(run->wait() == 76);
  BOOST_TEST(scene.text_of("out") == "in\nterm\n");
  // The shell adds that it was terminated.
  BOOST_TEST(has(scene.text_of("err"),
                 "ddbmutex: the lock `" + scene.name +
                     "` is lost: its lease ends without a renewal; the command "
                     "is ended\n"),
             scene.text_of("err"));
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
    stopped.emplace();
  }
  void end_the_command() const {
    scene.make("go");
    BOOST_TEST_REQUIRE(
        eventually([&] { return Stamps::state_of(command) == 'Z'; }));
  }

  const Scene scene;
  const std::unique_ptr<Process> run;
  std::optional<Stopwatch> stopped;  // Begins when the run is stopped.
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

namespace {

// Returns what is wrong.
std::string loss_of_an_outlived_lease(bool run_goes_first) {
  const StoppedRun it("3s");
  const auto watcher_is = [&it](char state) {
    return eventually([&] { return Stamps::state_of(it.watcher) == state; });
  };
  kill(it.watcher, SIGSTOP);
  BOOST_TEST(watcher_is('T'));
  BOOST_TEST(eventually([&] { return it.stopped->time() > 3s; }));
  it.end_the_command();
  if (!run_goes_first) {
    kill(it.watcher, SIGCONT);
    BOOST_TEST(watcher_is('S'));
  }
  it.run->signal(SIGCONT);
  const int status = it.run->wait();
  const std::string said = it.scene.text_of("err");
  const bool well =
      status == 76 &&
      said == "ddbmutex: the lock `" + it.scene.name +
                  "` is lost: its lease ended without a renewal; the command "
                  "has ended, perhaps after that\n";
  return well ? "" : std::to_string(status) + ": " + said;
}

}  // namespace

BOOST_DATA_TEST_CASE(command_that_may_have_outlived_the_lease_is_a_loss,
                     boost::unit_test::data::make({true, false}),
                     run_goes_first) {
  BOOST_TEST(undisturbed(500ms, [&] {
               return loss_of_an_outlived_lease(run_goes_first);
             }) == "");
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

// Cuts off, stops or kills `run`.  Its command ignores TERM, and has moved to
// another group.  Returns what is wrong; "" if the command is ended in time.
std::string ended_by(const std::string& blow) {
  Cuttable front;
  const Scene scene(front.where());
  const Stamps stamps(scene.file("stamps"));
  const auto run = scene.start(
      "exec setsid ddbmutex run --ttl 4s $NAME -- $STAMPER $HERE/stamps 0 "
      "moves ignores");
  if (!eventually([&] { return stamps.is_used(0); })) return "it never begins";
  if (blow == "cut off") front.cut();
  if (blow == "stopped") run->signal(SIGSTOP);
  if (blow == "killed") run->signal(SIGKILL);
  if (!eventually([&] { return !stamps.is_alive(0); })) return "it lives on";
  // Both by the calendar.
  const nanoseconds now(Stamps::now());
  const nanoseconds died = stamps.last(0) + (calendar() - now);
  const auto row = row_of(engine(), scene.name);
  if (!is_free(engine(), scene.name) && died > row.expires) {
    return "it outlives its lease";
  }
  if (blow == "stopped") run->signal(SIGCONT);
  const int wanted = blow == "killed" ? 128 + SIGKILL : 76;
  return run->wait() == wanted ? "" : "another status";
}

}  // namespace

// It is still a child of the run.
BOOST_DATA_TEST_CASE(command_that_moves_to_another_group_is_ended_in_time,
                     boost::unit_test::data::make({"cut off", "stopped",
                                                   "killed"}),
                     blow) {
  // The watcher has a twentieth of the lease to spare.
  BOOST_TEST(undisturbed(100ms, [&] { return ended_by(blow); }) == "");
}

// --- In a terminal -----------------------------------------------------------

namespace {

struct AtTerminal {
  AtTerminal() {
    scene.environment.push_back("TERM=dumb");
    shell.emplace(std::vector<std::string>{"/bin/bash", "--norc", "--noprofile",
                                           "--noediting", "-i"},
                  scene.environment);
    shell->type("PS1=; stty -echo; echo re''ady\n");
    BOOST_TEST_REQUIRE(shell->says("ready\r\n"), shell->text());
  }
  void type(const std::string& keys) { shell->type(keys); }
  void says(const std::string& text) {
    BOOST_TEST_REQUIRE(shell->says(text),
                       "no " << text << " in " << shell->text());
  }

  // A shell that was just interrupted may lose a line, so it is typed again.
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

BOOST_AUTO_TEST_CASE(ctrl_z_stops_the_command_and_fg_goes_on) {
  AtTerminal at_it;
  const Stamps stamps(at_it.scene.file("stamps"));
  at_it.type("ddbmutex run $NAME -- $STAMPER $HERE/stamps 0\n");
  BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_used(0); }));
  for (int round = 0; round < 2; ++round) {
    at_it.type(Pty::kCtrlZ);
    at_it.says("Stopped");
    BOOST_TEST_REQUIRE(eventually([&] { return stamps.is_stopped(0); }));
    const nanoseconds last = stamps.last(0);
    pause(50ms);  // Time for a stamp.  No stall makes one.
    BOOST_TEST((stamps.last(0) == last));
    at_it.type(round == 0 ? "fg\n" : "bg; fg\n");
    BOOST_TEST(eventually([&] { return stamps.last(0) > last; }));
  }
  at_it.type(Pty::kCtrlC);
  at_it.asks("echo status=$?\n", "status=130\r\n");
}

BOOST_AUTO_TEST_CASE(ctrl_c_ends_the_command_and_frees_the_lock) {
  AtTerminal at_it;
  at_it.type(
      "ddbmutex run $NAME -- sh -c 'trap \"exit 7\" INT; echo in; "
      "while :; do sleep 0.05; done'\n");
  at_it.says("in\r\n");
  BOOST_TEST(!is_free(engine(), at_it.scene.name));
  at_it.type(Pty::kCtrlC);
  at_it.asks("echo status=$?\n", "status=7\r\n");
  BOOST_TEST(is_free(engine(), at_it.scene.name));
}

BOOST_AUTO_TEST_SUITE_END()

// --- A credential_process that asks on the terminal --------------------------

BOOST_AUTO_TEST_SUITE(terminal)

namespace {

const std::string kPrints =
    "printf '{\"Version\":1,\"AccessKeyId\":\"AKID%s\",' \"$x\"\n"
    "echo '\"SecretAccessKey\":\"s\"}'\n";

std::string command() { return program_path("../examples/ddbmutex/ddbmutex"); }

// A server that grants every lock, and a home with a profile.  A script gives
// the profile its keys.
struct Desk {
  explicit Desk(const std::string& script) {
    home.write("script", script);
    home.write(".aws/config",
               "[default]\nregion = us-east-1\n"
               "credential_process = /bin/sh '" +
                   (home.root / "script").string() + "'\n");
  }

  std::vector<std::string> environment() const {
    const std::string program = fs::absolute(command());
    return {"HOME=" + home.root.string(),
            "PATH=" + program.substr(0, program.rfind('/')) + ":/usr/bin:/bin",
            "LC_ALL=C.UTF-8",
            "AWS_EC2_METADATA_DISABLED=true",
            "AWS_ENDPOINT_URL_DYNAMODB=" + server.url(),
            "HISTFILE="};
  }
  std::vector<std::string> run() const {
    return {command(), "run", "job", "echo", "do", "ne"};
  }
  // Whether a request was signed with these keys.
  bool was_signed_by(const std::string& id) const {
    for (const SeenRequest& request : server.requests()) {
      if (has(request.header("authorization").value_or(""), id)) return true;
    }
    return false;
  }
  Home home;
  ScriptedServer server;
};

}  // namespace

BOOST_AUTO_TEST_CASE(program_reads_a_password_from_the_terminal) {
  const Desk desk(
      "exec 3<>/dev/tty\nstty -echo <&3\nprintf 'Password: ' >&3\nread x <&3\n"
      "stty echo <&3\n" +
      kPrints);
  Pty pty(desk.run(), desk.environment());
  BOOST_TEST_REQUIRE(pty.says("Password: "), pty.text());
  pty.type("OPENSESAME\n");
  BOOST_TEST(pty.says("do ne"), pty.text());
  BOOST_TEST(pty.end() == 0);
  BOOST_TEST(!has(pty.text(), "OPENSESAME"), pty.text());
  BOOST_TEST(desk.was_signed_by("AKIDOPENSESAME"));
}

BOOST_AUTO_TEST_SUITE_END()
