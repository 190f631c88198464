// The demo as its user runs it, in good order and in bad, and its judgement on
// records that are wrong in one point each.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "examples/demo/claims.hpp"
#include "examples/demo/event.hpp"
#include "sigv4/boot_clock.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/home.hpp"
#include "tests/support/listening.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace {

using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using std::chrono::milliseconds;
using std::chrono::seconds;

// --- Claims ----------------------------------------------------------------

std::string wrong(const demo::Claims& claims) {
  std::string texts;
  for (const demo::Claim& claim : claims) {
    if (!claim.right) texts += (texts.empty() ? "" : "; ") + claim.text;
  }
  return texts;
}

demo::Hold hold(char process, int begin_ms, int end_ms) {
  return {process, milliseconds(begin_ms), milliseconds(end_ms)};
}

// What is seen of scenes that go as they should.
demo::Killed killed() {
  demo::Killed seen = {};
  seen.lease = seconds(3);
  seen.dead = hold('A', 100, 4000);
  seen.renewals = 1;
  seen.killed = milliseconds(1500);
  seen.next = hold('B', 4100, 4200);
  seen.before = 30;
  seen.after = 31;
  return seen;
}

demo::Stopped stopped() {
  demo::Stopped seen = {};
  seen.sleeper = hold('A', 100, 3000);
  seen.stopped = milliseconds(500);
  seen.woken = milliseconds(3500);
  seen.next = hold('B', 3100, 4200);
  seen.owned_on_waking = false;
  seen.losses = {"expired"};
  seen.uuid_before_unlock = seen.uuid_after_unlock = "u";
  seen.next_kept_it = true;
  seen.before = 31;
  seen.after = 33;
  return seen;
}

std::string wrong_of_killed(const std::function<void(demo::Killed&)>& change) {
  demo::Killed seen = killed();
  change(seen);
  return wrong(claims_of_killed(seen));
}

std::string wrong_of_stopped(
    const std::function<void(demo::Stopped&)>& change) {
  demo::Stopped seen = stopped();
  change(seen);
  return wrong(claims_of_stopped(seen));
}

// --- Running it ------------------------------------------------------------

// The demo as a child.  `out` grows by what it, or a process of its own,
// prints; all of them have ended once there is no more to come.
class Demo {
 public:
  enum class Stdout { pipe, terminal };
  // `words`: its variables and command, as env takes them.
  explicit Demo(std::vector<std::string> words, Stdout to = Stdout::pipe);
  ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  bool wait_for(const std::string& text);  // False if it ends without.
  void read_all();                         // Until nobody prints any more.
  void send(int signal) const { kill(child_, signal); }
  // Waits until all processes have ended.  Its status, or 1000 and the signal.
  int end();

  // Of the engine that it says it started.
  int engine_port() const;
  bool left_files() const;
  std::string out;

 private:
  bool read_more();
  const Home home_;  // For temporary files, too.
  int fd_ = -1;
  pid_t child_ = -1;
  const BootTime end_ = BootClock::now() + 4 * kPlenty;
};

std::pair<int, int> ends_of(Demo::Stdout to) {
  int ends[2] = {-1, -1};
  if (to == Demo::Stdout::pipe) {
    BOOST_TEST_REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  } else {
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    BOOST_TEST_REQUIRE((grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0));
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  BOOST_TEST_REQUIRE((ends[0] >= 0 && ends[1] >= 0));
  return {ends[0], ends[1]};
}

Demo::Demo(std::vector<std::string> words, Stdout to) {
  // Nothing of the tester's own shell and home.
  words.insert(words.begin(), {"env", "-i", "HOME=" + home_.root.string(),
                               "TMPDIR=" + home_.root.string(), "TERM=xterm",
                               "no_proxy=127.0.0.1"});
  for (const char* name : {"PATH", "ASAN_OPTIONS", "TSAN_OPTIONS"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    words.insert(words.begin() + 2, std::string(name) + "=" + value);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto [out_end, in_end] = ends_of(to);
  fd_ = out_end;
  child_ = fork();
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(in_end, STDOUT_FILENO);
    dup2(in_end, STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(in_end);
}

Demo::~Demo() {
  if (child_ > 0) {
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }
  close(fd_);
}

// A terminal that all have closed gives an error instead of an end.
bool Demo::read_more() {
  const auto left =
      std::chrono::ceil<milliseconds>(end_ - BootClock::now()).count();
  pollfd ready = {fd_, POLLIN, 0};
  if (poll(&ready, 1, std::max(static_cast<int>(left), 0)) != 1) {
    out += "\nIt takes too long.\n";
    send(SIGKILL);
    return false;
  }
  char bytes[4096];
  const ssize_t size = read(fd_, bytes, sizeof bytes);
  if (size <= 0) return false;
  out.append(bytes, static_cast<std::size_t>(size));
  return true;
}

bool Demo::wait_for(const std::string& text) {
  while (out.find(text) == out.npos) {
    if (!read_more()) return false;
  }
  return true;
}

void Demo::read_all() {
  while (read_more()) continue;
}

int Demo::end() {
  read_all();
  int status = 0;
  BOOST_TEST_REQUIRE(waitpid(child_, &status, 0) == child_);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int Demo::engine_port() const {
  std::smatch found;
  const std::regex url("an engine of our own, at http://127.0.0.1:(\\d+)");
  BOOST_TEST_REQUIRE(std::regex_search(out, found, url), out);
  return std::stoi(found[1]);
}

bool Demo::left_files() const {
  for (const auto& entry : std::filesystem::directory_iterator(home_.root)) {
    if (has(entry.path().filename().string(), "demo")) return true;
  }
  return false;
}

std::string build() {
  const char* build = std::getenv("DDBMUTEX_BUILD");
  BOOST_TEST_REQUIRE(build != nullptr,
                     "DDBMUTEX_BUILD does not name the build");
  return build;
}

std::vector<std::string> on_its_own_engine() {
  return {"BUILD=" + build(), "examples/demo/run"};
}

std::vector<std::string> on(const std::string& url, const Engine& engine) {
  std::vector<std::string> words = {"BUILD=" + build(),
                                    "AWS_ENDPOINT_URL_DYNAMODB=" + url,
                                    "AWS_REGION=" + engine.region()};
  if (const auto keys = engine.credentials()) {
    words.push_back("AWS_ACCESS_KEY_ID=" + keys->access_key_id);
    words.push_back("AWS_SECRET_ACCESS_KEY=" + keys->secret_access_key);
    words.push_back("AWS_SESSION_TOKEN=" + keys->session_token);
  }
  words.push_back("examples/demo/run");
  return words;
}

// Whether the table that it says is its own is there.
bool its_table_exists(Engine& engine, const std::string& out) {
  std::smatch found;
  BOOST_TEST_REQUIRE(
      std::regex_search(out, found, std::regex("ddbmutex-demo-[0-9a-f]{16}")),
      out);
  const std::string body = R"({"TableName":")" + found.str() + R"("})";
  return engine.call("DescribeTable", body).status == 200;
}

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) {
    ++found;
  }
  return found;
}

// What it printed of scene 1, 2, 3 or 4.
std::string scene_of(const std::string& out, int number) {
  const auto begin = out.find("\n" + std::to_string(number) + ". ");
  BOOST_TEST_REQUIRE(begin != out.npos, out);
  const auto end = out.find("\n" + std::to_string(number + 1) + ". ", begin);
  return out.substr(begin, end == out.npos ? end : end - begin);
}

// "A held the lock for 62 ms: 3 -> 4", of the scene with all processes: every
// number once, in order.
void check_holds_of_scene_2(const std::string& out) {
  const std::regex line(
      "\\n +[0-9.]+ s  [A-E] held the lock for [0-9.]+ m?s: "
      "(\\d+) -> (\\d+)");
  const std::string scene = scene_of(out, 2);
  long long number = 0;
  for (std::sregex_iterator it(scene.begin(), scene.end(), line), end;
       it != end; ++it) {
    BOOST_TEST(std::stoll((*it)[1]) == number);
    BOOST_TEST(std::stoll((*it)[2]) == ++number);
  }
  BOOST_TEST(number == 30, out);
}

// An engine that puts an item whatever its condition says, and whose looks find
// none: who sees that a lock is held does not even try.
Reply put_regardless(Engine& engine, SeenRequest request) {
  const std::string target = request.header("X-Amz-Target").value_or("");
  if (has(target, "GetItem")) return Reply::ok("{}");
  if (has(target, "PutItem")) {
    request.body = std::regex_replace(
        request.body, std::regex("\"ConditionExpression\":\""),
        "$&attribute_exists(#key) OR attribute_not_exists(#key) OR ");
  }
  return engine.forward(request);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(demo_claims)

BOOST_AUTO_TEST_CASE(no_lost_update_without_lock_is_wrong) {
  BOOST_TEST(wrong(demo::claims_without_lock({30, 7})) == "");
  BOOST_TEST(wrong(demo::claims_without_lock({30, 29})) == "");
  BOOST_TEST(wrong(demo::claims_without_lock({30, 30})) ==
             "30 updates, and the file says 30: 0 lost");
}

BOOST_AUTO_TEST_CASE(lost_update_with_lock_is_wrong) {
  const std::vector<demo::Hold> holds = {hold('B', 10, 20), hold('A', 0, 10)};
  BOOST_TEST(wrong(demo::claims_with_lock({2, 2}, holds)) == "");
  BOOST_TEST(wrong(demo::claims_with_lock({2, 1}, holds)) ==
             "2 updates, and the file says 1: 1 lost");
}

BOOST_AUTO_TEST_CASE(update_without_hold_is_wrong) {
  BOOST_TEST(wrong(demo::claims_with_lock({2, 2}, {hold('A', 0, 10)})) ==
             "the lock was held 1 times, never by two at once");
}

BOOST_AUTO_TEST_CASE(holds_that_share_an_instant_are_wrong) {
  const auto wrong_with = [](demo::Hold other) {
    return wrong(demo::claims_with_lock(
        {3, 3}, {hold('A', 0, 100), hold('B', 10, 20), other}));
  };
  BOOST_TEST(wrong_with(hold('C', 100, 120)) ==
             "A and B held the lock at the same time");
  const auto both = demo::overlapping(
      {hold('A', 0, 100), hold('B', 100, 200), hold('C', 199, 201)});
  BOOST_TEST_REQUIRE(both.has_value());
  BOOST_TEST(both->first.process == 'B');
  BOOST_TEST(both->second.process == 'C');
  BOOST_TEST(!demo::overlapping({hold('A', 0, 100), hold('B', 100, 200)}));
  // One that was over before it began is none, and hides none.
  BOOST_TEST(!demo::overlapping({hold('A', 0, 100), hold('B', 50, 40)}));
  BOOST_TEST(demo::overlapping(
                 {hold('A', 0, 100), hold('B', 50, 40), hold('C', 99, 101)})
                 .has_value());
}

BOOST_AUTO_TEST_CASE(killed_scene_that_is_not_as_claimed_is_wrong) {
  using demo::Killed;
  BOOST_TEST(wrong(claims_of_killed(killed())) == "");
  BOOST_TEST(wrong_of_killed([](Killed& seen) { seen.next.reset(); }) ==
             "a process never got the lock");
  BOOST_TEST(wrong_of_killed([](Killed& seen) { seen.dead.reset(); }) ==
             "a process never got the lock");
  const std::string late = "B had the lock before the kill, or too late";
  BOOST_TEST(wrong_of_killed([](Killed& seen) { seen.renewals = 0; }) ==
             "A's lease was renewed while it was at work");
  BOOST_TEST(wrong_of_killed([](Killed& seen) {
               seen.dead->end = seen.killed;
             }) == "A did not hold the lock when it was killed");
  BOOST_TEST(wrong_of_killed([](Killed& seen) {
               seen.dead->begin = seen.killed + milliseconds(1);
             }) == "A did not hold the lock when it was killed");
  BOOST_TEST(wrong_of_killed([](Killed& seen) {
               seen.next->begin = seen.dead->end - milliseconds(1);
             }) == "B did not get in before that lease was over");
  BOOST_TEST(wrong_of_killed([](Killed& seen) {
               seen.next->begin = seen.killed + milliseconds(6001);
             }) == late);
  BOOST_TEST(wrong_of_killed([](Killed& seen) {
               seen.killed = seen.next->begin + milliseconds(1);
             }) == "A did not hold the lock when it was killed; " + late);
  BOOST_TEST(wrong_of_killed([](Killed& seen) { seen.after = 30; }) ==
             "the file went from 30 to 30: not what the updates come to");
}

BOOST_AUTO_TEST_CASE(stopped_scene_that_is_not_as_claimed_is_wrong) {
  using demo::Stopped;
  BOOST_TEST(wrong(claims_of_stopped(stopped())) == "");
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) { seen.next.reset(); }) ==
             "a process never got the lock");
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.stopped = seen.sleeper->end;
             }) == "A was stopped while it held the lock");
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.sleeper->begin = seen.stopped + milliseconds(1);
             }) == "A was stopped while it held the lock");
  const std::string meanwhile =
      "B got in meanwhile, and not before A's lease was over";
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.next->begin = seen.sleeper->end - milliseconds(1);
             }) == meanwhile);
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.next->begin = seen.woken;
             }) == meanwhile);
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.owned_on_waking = true;
             }) == "A's first owns_lock() on waking said true");
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.owned_on_waking.reset();
             }) == "A's first owns_lock() on waking said nothing");
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) { seen.losses.clear(); }) ==
             "on_lost told it: nothing");
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) { seen.losses = {"taken"}; }) ==
             "on_lost told it: taken");
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.losses.push_back("expired");
             }) == "on_lost told it: expired, expired");
  const std::string harm = "A's unlock() harmed B";
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.uuid_after_unlock.clear();
             }) == harm);
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) {
               seen.uuid_before_unlock.clear();
               seen.uuid_after_unlock.clear();
             }) == harm);
  BOOST_TEST(wrong_of_stopped(
                 [](Stopped& seen) { seen.next_kept_it = false; }) == harm);
  BOOST_TEST(wrong_of_stopped([](Stopped& seen) { seen.after = 32; }) ==
             "the file went from 31 to 32: not what the updates come to");
}

BOOST_AUTO_TEST_CASE(event_line_read_back_is_the_event) {
  using demo::Event;
  const Event event = {'C', Event::Kind::fails, demo::Time(12345678901234), -7,
                       "no such\ntable"};
  const std::string line = demo::to_line(event);
  BOOST_TEST(line.find('\n') == line.size() - 1);
  const auto read = demo::read_line(line.substr(0, line.size() - 1));
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST(read->process == 'C');
  BOOST_TEST((read->kind == Event::Kind::fails));
  BOOST_TEST((read->at == event.at));
  BOOST_TEST(read->number == -7);
  BOOST_TEST(read->text == "no such table");
  BOOST_TEST(!demo::read_line("A 99 1 1 "));
  BOOST_TEST(!demo::read_line("what?"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(demo_program)

BOOST_AUTO_TEST_CASE(demo_shows_what_it_claims_and_leaves_nothing_behind) {
  // One that tells no row with a refusal, beside the demo's own.
  Engine& engine = Engine::running(EngineKind::dynalite);
  Demo live(on_its_own_engine(), Demo::Stdout::terminal);
  std::thread reader([&live] { live.read_all(); });
  Demo plain(on(engine.url(), engine));
  BOOST_TEST(plain.end() == 0, plain.out);
  BOOST_TEST(!plain.left_files());
  BOOST_TEST(count(plain.out, "  right  ") == 14, plain.out);
  BOOST_TEST(count(plain.out, "WRONG") == 0, plain.out);
  BOOST_TEST(count(plain.out, "\033") == 0, plain.out);
  check_holds_of_scene_2(plain.out);
  BOOST_TEST(!its_table_exists(engine, plain.out));

  reader.join();
  BOOST_TEST(live.end() == 0, live.out);
  BOOST_TEST(!live.left_files());
  BOOST_TEST(count(live.out, "  right  ") == 14, live.out);
  BOOST_TEST(count(live.out, "WRONG") == 0, live.out);
  BOOST_TEST(!anybody_listens(live.engine_port()));
  // Redrawn while it happened, with what happened in it.
  BOOST_TEST(count(live.out, "\033[5A") > 20);
  BOOST_TEST(count(live.out, "has the lock: ") > 20);
  BOOST_TEST(count(live.out, "\033[?7l") == count(live.out, "\033[?7h"));
}

BOOST_AUTO_TEST_CASE(demo_on_a_dynamodb_that_ignores_conditions_says_wrong) {
  Engine& engine = Engine::running(any_engine_kind());
  ScriptedServer server([&](const SeenRequest& request) {
    return put_regardless(engine, request);
  });
  Demo demo(on("http://127.0.0.1:" + std::to_string(server.port()), engine));
  BOOST_TEST(demo.end() == 1, demo.out);
  BOOST_TEST(has(demo.out, "held the lock at the same time"), demo.out);
  for (const int scene : {2, 3, 4}) {
    BOOST_TEST(count(scene_of(demo.out, scene), "  WRONG  ") >= 1, demo.out);
  }
  BOOST_TEST(!its_table_exists(engine, demo.out));
}

BOOST_AUTO_TEST_CASE(demo_interrupted_stops_all_and_deletes_its_table) {
  Engine& engine = Engine::running(any_engine_kind());
  Demo given(on(engine.url(), engine));
  Demo own(on_its_own_engine());
  BOOST_TEST_REQUIRE(given.wait_for(" held the lock for "), given.out);
  BOOST_TEST(its_table_exists(engine, given.out));
  given.send(SIGINT);
  BOOST_TEST(given.end() == 128 + SIGINT, given.out);
  BOOST_TEST(!given.left_files());
  BOOST_TEST(!its_table_exists(engine, given.out));

  // While one of its processes is stopped.
  BOOST_TEST_REQUIRE(own.wait_for("is stopped (SIGSTOP)"), own.out);
  BOOST_TEST(anybody_listens(own.engine_port()));
  own.send(SIGTERM);
  BOOST_TEST(own.end() == 128 + SIGTERM, own.out);
  BOOST_TEST(!own.left_files());
  BOOST_TEST(!anybody_listens(own.engine_port()));
}

BOOST_AUTO_TEST_CASE(demo_killed_takes_its_processes_along) {
  Demo demo(on_its_own_engine());
  BOOST_TEST_REQUIRE(demo.wait_for(" held the lock for "), demo.out);
  demo.send(SIGKILL);
  BOOST_TEST(demo.end() == 1000 + SIGKILL, demo.out);
  BOOST_TEST(falls_silent(demo.engine_port()));
}

BOOST_AUTO_TEST_CASE(demo_of_an_engine_that_does_not_start_says_why) {
  Demo demo(
      {build() + "/examples/demo/demo", "sh", "-c", "echo no disk; exit"});
  BOOST_TEST(demo.end() == 2, demo.out);
  BOOST_TEST(has(demo.out, "does not start: no disk"), demo.out);
}

BOOST_AUTO_TEST_CASE(demo_without_keys_says_where_it_looked) {
  Demo demo({"BUILD=" + build(), "DDBMUTEX_DEMO_AWS=1", "AWS_REGION=x",
             "AWS_ENDPOINT_URL=http://127.0.0.1:9", "examples/demo/run"});
  BOOST_TEST(demo.end() == 2, demo.out);
  BOOST_TEST(has(demo.out, "AWS_ACCESS_KEY_ID"), demo.out);
}

BOOST_AUTO_TEST_CASE(demo_at_an_endpoint_that_is_dead_says_so_and_ends) {
  Demo demo({"BUILD=" + build(), "AWS_REGION=x", "AWS_ACCESS_KEY_ID=x",
             "AWS_SECRET_ACCESS_KEY=x",
             "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:9",
             "examples/demo/run"});
  BOOST_TEST(demo.end() == 2, demo.out);
  BOOST_TEST(has(demo.out, "at http://127.0.0.1:9: unreachable"), demo.out);
  BOOST_TEST(!has(demo.out, "Please delete"), demo.out);
}

BOOST_AUTO_TEST_SUITE_END()
