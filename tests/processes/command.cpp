// The command `ddbmutex run` when its lease cannot be renewed, when it is
// stopped and when it is killed: what it runs is gone in time.  And when cron
// starts it on several hosts: one of them runs the job.
//
//   command [NAME=NUMBER ...]
//
//   cut=100      rounds in which no request is answered any more
//   stopped=100  in which the program is stopped (SIGSTOP) past its lease
//   killed=100   in which it is killed (SIGKILL)
//   cron=50      in which three hosts run the crontab's line of the man page,
//                one second apart
//   turns=200    that two hosts take in all, one after the other, to add 1 to
//                the number in a file
//   ttl=20000    milliseconds: the watcher has a twentieth of it to spare, and
//                without root's priority a busy machine may let it wait
//   at_once=20   rounds beside one another
//   seed=...     of the moments
//
// What is run in the rounds stamps a file until its end (stamper.cpp): by
// itself, deaf to TERM, in another process group, twice forked, as a pipeline,
// stopped.  Status 0 if every process of every round was gone before its lease
// ended, by the clock of this machine and by the record in the table; if the
// program told the loss; if no watcher was left; if who came after a killed one
// got the lock; if no turn was lost; and if each line of the crontab ran its
// job once.
#include <rapidjson/document.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/row.hpp"
#include "examples/ddbmutex/deadline.hpp"
#include "examples/ddbmutex/report.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/in_memory.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stamps.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using tests::Engine;
using tests::Numbers;
using tests::Process;
using tests::Stamps;
using tests::watcher_of;

nanoseconds now() { return nanoseconds(Stamps::now()); }
nanoseconds calendar() {
  return std::chrono::system_clock::now().time_since_epoch();
}

// --- The engine, and who is cut off from it ----------------------------------

// Notes when the last request for each lock came that was carried out.
class Door {
 public:
  explicit Door(Engine& engine)
      : engine_(engine), server_([this](const tests::SeenRequest& request) {
          return answer(request);
        }) {}

  tests::Whereabouts where() const {
    tests::Whereabouts where = at(engine_);
    where.url = server_.url();
    return where;
  }
  void cut(const std::string& name) {
    const std::lock_guard<std::mutex> guard(mutex_);
    cut_.insert(name);
  }
  nanoseconds last_write(const std::string& name) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return last_.at(name);
  }

 private:
  static std::string name_in(const std::string& body) {
    const std::string before = "\"ddblock-";
    const auto at = body.find(before);
    if (at == body.npos) return "";
    const auto from = at + before.size();
    return body.substr(from, body.find('"', from) - from);
  }

  tests::Reply answer(const tests::SeenRequest& request) {
    const nanoseconds came = now();
    const std::string name = name_in(request.body);
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (cut_.count(name) != 0) {
        tests::Reply reply;
        reply.hangs = true;
        return reply;
      }
    }
    tests::Reply reply = engine_.forward(request);
    const std::string target = request.header("X-Amz-Target").value_or("");
    if (reply.status == 200 && target.find("GetItem") == target.npos) {
      const std::lock_guard<std::mutex> guard(mutex_);
      last_[name] = came;
    }
    return reply;
  }

  Engine& engine_;
  mutable std::mutex mutex_;
  std::set<std::string> cut_;                // GUARDED_BY(mutex_)
  std::map<std::string, nanoseconds> last_;  // GUARDED_BY(mutex_)
  tests::ScriptedServer server_;  // Last: its threads use the others.
};

// --- A round -----------------------------------------------------------------

enum class Blow { cut, stopped, killed };

// A command, and how many of its processes stamp.
struct Workload {
  const char* script;  // $0 is the stamper, $1 its file.
  int stampers;
};
constexpr Workload kWorkloads[] = {
    {R"(exec "$0" "$1" 0)", 1},
    {R"(exec "$0" "$1" 0 ignores)", 1},
    {R"(exec "$0" "$1" 0 moves ignores)", 1},
    {R"("$0" "$1" 0 forks ignores; "$0" "$1" 1 & "$0" "$1" 2)", 3},
    {R"("$0" "$1" 0 | "$0" "$1" 1 ignores | "$0" "$1" 2 | cat)", 3},
    {R"(exec "$0" "$1" 0 stops)", 1},
    {R"(trap '' TERM; "$0" "$1" 0; "$0" "$1" 1)", 1},
};

std::string in_ms(nanoseconds time) {
  return std::to_string(time / milliseconds(1)) + " ms";
}

class Round {
 public:
  Round(Engine& engine, Door& door, const std::string& directory, Blow blow,
        const Workload& workload, milliseconds ttl, milliseconds moment)
      : engine_(engine),
        door_(door),
        blow_(blow),
        workload_(workload),
        ttl_(ttl),
        moment_(moment),
        name_("round-" + ddbmutex::lock::fresh_uuid()),
        stamps_(directory + "/" + name_),
        process_({command(directory), environment_of(door.where())}) {}

  ~Round() { stamps_.kill_all(); }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  // What is wrong; empty if nothing.
  std::string play() {
    if (!tests::eventually([&] { return all_stamp(); })) {
      return "it does not begin: " + process_.complaints();
    }
    const pid_t watcher = watcher_of(process_.pid());
    if (watcher == 0) return "there is no watcher";
    tests::pause(moment_);
    const nanoseconds struck = strike();
    if (!tests::eventually([&] { return none_lives(); })) {
      return "it lives for ever";
    }
    std::string wrong = times(struck);
    const int status = end();
    const int wanted =
        blow_ == Blow::killed ? 128 + SIGKILL : int{command::kLost};
    if (status != wanted) {
      wrong += "status " + std::to_string(status) + "; ";
    }
    if (!tests::eventually([&] { return !Stamps::is_running(watcher); })) {
      wrong += "the watcher is left; ";
    }
    if (blow_ == Blow::killed) wrong += next_holder();
    return wrong;
  }

 private:
  std::vector<std::string> command(const std::string& directory) const {
    return {tests::program_path("../examples/ddbmutex/ddbmutex"),
            "run",
            "--table",
            engine_.table(),
            "--ttl",
            std::to_string(ttl_.count()) + "ms",
            name_,
            "--",
            "sh",
            "-c",
            workload_.script,
            tests::program_path("processes/stamper"),
            directory + "/" + name_};
  }

  bool all_stamp() const {
    for (int i = 0; i < workload_.stampers; ++i) {
      if (!stamps_.is_used(i)) return false;
    }
    return true;
  }
  bool none_lives() const {
    for (int i = 0; i < Stamps::kSlots; ++i) {
      if (stamps_.is_alive(i)) return false;
    }
    return true;
  }

  nanoseconds strike() {
    if (blow_ == Blow::cut) door_.cut(name_);
    if (blow_ == Blow::stopped) process_.signal(SIGSTOP);
    if (blow_ == Blow::killed) process_.signal(SIGKILL);
    return now();
  }

  // The lease counts from before its request was sent, and short by a margin.
  std::string times(nanoseconds struck) const {
    const nanoseconds over =
        door_.last_write(name_) + ddbmutex::lock::held_for(ttl_);
    const nanoseconds recorded = expires() - (calendar() - now());
    std::string wrong;
    for (int i = 0; i < Stamps::kSlots; ++i) {
      const nanoseconds last = stamps_.last(i);
      if (last > over) {
        wrong += "lived " + in_ms(last - over) + " past its lease; ";
      }
      if (last > recorded) {
        wrong += "lived " + in_ms(last - recorded) + " past its record; ";
      }
      if (blow_ == Blow::killed && last > struck + tests::kSlack) {
        wrong += "lived for " + in_ms(last - struck) + " after the program; ";
      }
    }
    return wrong;
  }

  int end() {
    if (blow_ == Blow::stopped) process_.signal(SIGCONT);
    return process_.wait();
  }

  // Of the record, by the calendar.
  nanoseconds expires() const {
    const std::string answer = engine_.must_call(
        "GetItem",
        R"({"TableName":")" + engine_.table() +
            R"(","ConsistentRead":true,"Key":{"name":{"S":"ddblock-)" + name_ +
            R"("}}})");
    rapidjson::Document body;
    body.Parse(answer.data(), answer.size());
    if (body.HasParseError() || !body.IsObject() || !body.HasMember("Item")) {
      return nanoseconds::max();  // It was released.
    }
    return nanoseconds(std::stoll(body["Item"]["expires"]["N"].GetString()));
  }

  std::string next_holder() const {
    ddbmutex::Options options;
    options.table = table_at(at(engine_));
    options.ttl = ttl_;
    ddbmutex::DdbMutex mutex(name_, options);
    const tests::Stopwatch watch;
    if (!mutex.try_lock_for(tests::kPlenty)) return "nobody else gets it; ";
    const bool in_time = watch.time() <= 2 * ttl_ + tests::kSlack;
    return in_time ? "" : "the next got it after " + in_ms(watch.time()) + "; ";
  }

  Engine& engine_;
  Door& door_;
  const Blow blow_;
  const Workload& workload_;
  const milliseconds ttl_, moment_;
  const std::string name_;
  const Stamps stamps_;
  Process process_;
};

// --- A night's cron job ------------------------------------------------------

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The one that the man page shows, without its times.
std::string line_of_crontab() {
  const std::string page = text_of("examples/ddbmutex/ddbmutex.1");
  const std::string times = "\n    0 3 * * *  ";
  const auto at = page.find(times);
  if (at == page.npos) {
    throw std::runtime_error("the man page has no line of a crontab");
  }
  const auto from = at + times.size();
  std::string line;
  for (const char byte : page.substr(from, page.find('\n', from) - from)) {
    if (byte != '\\') line += byte;  // "\-" is how it writes a hyphen.
  }
  return line;
}

// Makes the program `report`, which takes a moment only.  To be called before
// there are threads: a process that another one forks meanwhile would have the
// file open for writing, and then nobody could run it.
void make_report(const std::string& directory) {
  const std::string report = directory + "/report";
  std::ofstream(report) << "#!/bin/sh\necho \"$@\" >>\"$REPORTS\"\n";
  fs::permissions(report, fs::perms::owner_all);
}

class Night {
 public:
  // `directory`: that of make_report().
  Night(Engine& engine, const std::string& directory)
      : reports_(directory + "/reports-" + ddbmutex::lock::fresh_uuid()),
        environment_(environment_of(at(engine))) {
    const char* path = std::getenv("PATH");
    const fs::path program =
        fs::absolute(tests::program_path("../examples/ddbmutex/ddbmutex"));
    environment_.push_back("PATH=" + directory + ":" +
                           program.parent_path().string() + ":" +
                           (path != nullptr ? path : "/usr/bin:/bin"));
    environment_.push_back("REPORTS=" + reports_);
    environment_.push_back("DDBMUTEX_TABLE=" + engine.table());
    environment_.push_back("DDBMUTEX_PREFIX=" + ddbmutex::lock::fresh_uuid());
  }

  // What is wrong; empty if nothing.
  std::string play() {
    for (int i = 0; i < 3; ++i) {
      if (i > 0) tests::pause(1s);
      hosts_.push_back(std::make_unique<Process>(tests::ProcessSettings{
          {"/bin/sh", "-c", "exec " + line_of_crontab()}, environment_}));
    }
    if (!tests::eventually([&] { return running() <= 1; })) {
      return "not refused: " + std::to_string(running() - 1) + " hosts";
    }
    std::string wrong;
    if (!tests::eventually([&] { return reports() != ""; })) {
      wrong = "no report is made; ";
    }
    for (const auto& host : hosts_) {
      const bool holds = !host->has_ended();
      if (holds) host->signal(SIGTERM);
      const int status = host->wait();
      if (status != (holds ? 0 : int{command::kBusy})) {
        wrong += "status " + std::to_string(status) + "; ";
      }
      if (host->complaints() != "") wrong += host->complaints();
    }
    if (reports() != "--all\n") wrong += "reports: " + reports();
    return wrong;
  }

 private:
  std::string reports() const { return text_of(reports_); }
  long running() const {
    return std::count_if(hosts_.begin(), hosts_.end(),
                         [](const auto& host) { return !host->has_ended(); });
  }

  const std::string reports_;
  std::vector<std::string> environment_;
  std::vector<std::unique_ptr<Process>> hosts_;
};

// --- All of them -------------------------------------------------------------

class Run {
 public:
  explicit Run(const Numbers& numbers)
      : numbers_(numbers),
        random_(static_cast<unsigned>(numbers.at("seed"))),
        engine_(tests::any_engine_kind()),
        door_(engine_) {
    make_report(directory_.path());
  }

  bool goes_well() {
    draw(Blow::cut, "cut");
    draw(Blow::stopped, "stopped");
    draw(Blow::killed, "killed");
    for (long i = 0; i < numbers_.at("cron"); ++i) {
      drawn_.push_back({"cron", [this] {
                          return Night(engine_, directory_.path()).play();
                        }});
    }
    const std::size_t rounds = drawn_.size();
    std::vector<std::thread> threads;
    for (long i = 0; i < numbers_.at("at_once"); ++i) {
      threads.emplace_back([this] { play_some(); });
    }
    for (std::thread& thread : threads) thread.join();
    const long turns = take_turns(numbers_.at("turns"));
    std::printf("%zu rounds, %zu wrong; %ld of %ld turns\n", rounds, wrong_,
                turns, numbers_.at("turns"));
    return wrong_ == 0 && turns == numbers_.at("turns");
  }

 private:
  // A round, which says what is wrong.
  struct Drawn {
    std::string told;
    std::function<std::string()> play;
  };

  void draw(Blow blow, const char* name) {
    const milliseconds ttl(numbers_.at("ttl"));
    for (long i = 0; i < numbers_.at(name); ++i) {
      const auto which = static_cast<std::size_t>(i) % std::size(kWorkloads);
      const Workload& workload = kWorkloads[which];
      const milliseconds moment(
          std::uniform_int_distribution<long>(0, ttl.count())(random_));
      drawn_.push_back(
          {std::string(name) + " at " + in_ms(moment) + ": " + workload.script,
           [this, blow, &workload, ttl, moment] {
             // A machine that stalls for longer than the margin shows nothing.
             return tests::undisturbed(command::margin_of(ttl) / 2, [&] {
               return Round(engine_, door_, directory_.path(), blow, workload,
                            ttl, moment)
                   .play();
             });
           }});
    }
  }

  void play_some() {
    while (tests::interrupted == 0) {
      Drawn drawn;
      {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (drawn_.empty()) return;
        drawn = drawn_.back();
        drawn_.pop_back();
      }
      const std::string wrong = play(drawn);
      if (wrong.empty()) continue;
      const std::lock_guard<std::mutex> guard(mutex_);
      std::printf("WRONG: %s: %s\n", drawn.told.c_str(), wrong.c_str());
      ++wrong_;
    }
  }

  static std::string play(const Drawn& drawn) try {
    return drawn.play();
  } catch (const std::exception& error) {
    return error.what();
  }

  long take_turns(long turns) {
    if (turns == 0) return 0;
    const std::string file = directory_.path() + "/number";
    std::ofstream(file) << 0 << '\n';
    const std::string script = R"(
      i=0
      while [ $i -lt "$1" ]; do
        "$0" run --table "$2" turns -- sh -c 'read n <"$0"
          echo $((n + 1)) >"$0"' "$3" || exit
        i=$((i + 1))
      done)";
    std::vector<std::unique_ptr<Process>> hosts;
    for (const long half : {turns / 2, turns - turns / 2}) {
      const std::vector<std::string> words = {
          "/bin/sh",
          "-c",
          script,
          tests::program_path("../examples/ddbmutex/ddbmutex"),
          std::to_string(half),
          engine_.table(),
          file};
      hosts.push_back(std::make_unique<Process>(
          tests::ProcessSettings{words, environment_of(at(engine_))}));
    }
    for (const auto& host : hosts) {
      const int status = host->wait(600s);
      if (status != 0) {
        std::printf("a host ended with %d: %s\n", status,
                    host->complaints().c_str());
      }
    }
    long number = 0;
    std::ifstream(file) >> number;
    return number;
  }

  const Numbers numbers_;
  std::mt19937 random_;
  Engine engine_;
  Door door_;
  const tests::MemoryDirectory directory_;
  std::mutex mutex_;
  std::vector<Drawn> drawn_;  // GUARDED_BY(mutex_)
  std::size_t wrong_ = 0;     // GUARDED_BY(mutex_)
};

Numbers defaults() {
  return {{"cut", 100},
          {"stopped", 100},
          {"killed", 100},
          {"cron", 50},
          {"turns", 200},
          {"ttl", 20000},
          {"at_once", 20},
          {"seed", static_cast<long>(std::random_device()() % 1000000)}};
}

}  // namespace

int main(int argc, char** argv) try {
  const Numbers numbers = tests::numbers_of(argc, argv, defaults());
  tests::catch_signals();
  std::printf("command:");
  for (const auto& [name, value] : numbers) {
    std::printf(" %s=%ld", name.c_str(), value);
  }
  std::printf("\n");
  std::fflush(stdout);
  const bool well = Run(numbers).goes_well();
  return well && tests::interrupted == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
