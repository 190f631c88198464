// A life from its beginning to its end: makes the tables, hosts and programs of
// a plan, lets its faults happen, and checks at the end that all is well.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/support/rival.hpp"
#include "tests/world/judge.hpp"
#include "tests/world/network.hpp"
#include "tests/world/odd_rows.hpp"
#include "tests/world/plan.hpp"
#include "tests/world/program.hpp"
#include "tests/world/rivals.hpp"
#include "tests/world/world.hpp"

namespace world {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Fault = FaultPlan::Kind;

constexpr const char* kFinal = "final";
constexpr const char* kOperator = "operator";
constexpr std::uint64_t kMostOperations = 100;
// One in so many allocations fails while memory is short.
constexpr std::uint64_t kFailures[] = {20, 100, 1000};

// The weather in a storm.
Weather ten_times(Weather weather) {
  for (const WeatherKind& kind : kWeatherKinds) {
    weather.*kind.chance = std::min(weather.*kind.chance * 10, 0.5);
  }
  return weather;
}

class Life {
 public:
  Life(const Plan& plan, const Hear& hear)
      : plan_(plan),
        world_(plan.seed, plan.climate),
        network_(plan.seed, service_, plan.front_ends),
        judge_(plan) {
    if (hear) world_.tell_story_to(hear);
    create_tables();
    for (const HostPlan& host : plan.hosts) {
      world_.add_host(host.rate, host.wall_offset, host.latency);
    }
    // The host of the last check.
    world_.add_host(1, {}, std::chrono::microseconds(100));
    world_.on_step([this] { judge_.look(); });
    network_.on_applied([this](const Applied& applied) {
      judge_.applied(applied);
      if (plan_.has_operator && applied.answered == kNever) operate(applied);
    });
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  Outcome live() {
    plan_weather();
    for (const ProgramPlan& own : plan_.programs) start_at(own.starts, own);
    for (const FaultPlan& fault : plan_.faults) {
      world_.at(fault.at, [this, &fault] { happen(fault); });
    }
    world_.start_process(world_.hosts().back(), kFinal, [this] { end(); });
    const std::vector<std::string> waiting =
        world_.run(patience_ends() + last_check());
    complain_of(waiting);
    judge_.end_of_life();
    return outcome();
  }

 private:
  // -- Tables ----------------------------------------------------------------

  void create_tables() {
    const char* const key = tests::key_of(plan_.layout);
    service_.create_table("locks", plan_.has_wrong_key()
                                       ? plan_.wrong_key
                                       : Service::Key{key, plan_.sort_key});
    service_.create_table("ledger", {"name", ""});
    if (plan_.odd_row && !plan_.odd_row->empty()) put_odd_row();
    const bool lease = plan_.layout == tests::Layout::lease;
    for (int i = 0; i < plan_.locks && (lease || plan_.jobs); ++i) {
      put_row(
          (lease ? "lock-" : "ddblock-lock-") + std::to_string(i),
          lease ? R"x("LeaseUntil":{"N":"0"})x" : R"x("state":{"S":"new"})x");
    }
    for (int i = 0; i < plan_.other_rows; ++i) {
      put_row("ddblock-other-" + std::to_string(i),
              R"x("state":{"S":"other"})x");
    }
  }

  void put_row(const std::string& name, const std::string& rest) {
    const std::string sort = plan_.sort_key.empty()
                                 ? ""
                                 : '"' + plan_.sort_key + R"x(":{"S":"s"},)x";
    service_.call("PutItem", R"x({"TableName":"locks","Item":{")x" +
                                 std::string(tests::key_of(plan_.layout)) +
                                 R"x(":{"S":")x" + name + R"x("},)x" + sort +
                                 rest + "}}");
  }

  void put_odd_row() {
    const bool ours = plan_.layout == tests::Layout::ddblock;
    const std::string sort = plan_.sort_key.empty()
                                 ? ""
                                 : '"' + plan_.sort_key + R"x(":{"S":"s"},)x";
    service_.call("PutItem", R"x({"TableName":"locks","Item":{")x" +
                                 std::string(tests::key_of(plan_.layout)) +
                                 R"x(":{"S":")x" + (ours ? "ddblock-" : "") +
                                 kOddLock + R"x("},)x" + sort + *plan_.odd_row +
                                 "}}");
  }

  // -- Programs --------------------------------------------------------------

  void start_at(Time when, const ProgramPlan& own) {
    ++running_;  // From now on, although it starts later.
    world_.at(when, [this, own] { start(own); });
  }

  void start(const ProgramPlan& own) {
    Host& host = world_.hosts()[static_cast<std::size_t>(own.host)];
    const int begun = ++starts_[own.number];
    const std::string again =
        begun == 1 ? "" : " (start " + std::to_string(begun) + ")";
    Process& process = world_.start_process(
        host, "program " + std::to_string(own.number) + again, [this, own] {
          if (own.rival) {
            run_rival(plan_, own, judge_);
          } else {
            run_program(plan_, own, judge_);
          }
          over(world_.process());
        });
    processes_[own.number] = &process;
  }

  // Its process may be a forked child of the one that was started.
  void over(Process& process) {
    if (!ended_.insert(&process).second) return;
    world_.tell(process, "has ended");
    --running_;
    world_.notify(&running_);
  }

  // The living process of a program: the one that was started, or a forked
  // child of that one.
  Process* alive(int program) {
    const auto found = processes_.find(program);
    if (found == processes_.end()) return nullptr;
    const std::string& name = found->second->name;
    for (Process& process : world_.processes()) {
      if (process.alive && process.name.compare(0, name.size(), name) == 0 &&
          (process.name.size() == name.size() ||
           process.name[name.size()] == '\'')) {
        return &process;
      }
    }
    return nullptr;
  }

  void kill(int program) {
    Process* const process = alive(program);
    if (process == nullptr) return;
    world_.kill(*process);
    over(*process);
  }

  void restart(const FaultPlan& fault) {
    kill(fault.target);
    for (ProgramPlan own : plan_.programs) {
      if (own.number != fault.target) continue;
      // With another seed it does other things than before.
      own.seed =
          Random(own.seed, 'a', static_cast<std::uint64_t>(fault.at.count()))
              .next();
      start_at(world_.now() + fault.time, own);
    }
  }

  // An operator frees a lock by force before its taker hears that it has it.
  void operate(const Applied& applied) {
    const std::string& body = applied.request.body;
    const auto key = body.find("lock-");
    if (key == body.npos || applied.request.process->name == kOperator) return;
    const auto end = body.find('"', key);
    const auto at = body.rfind("lock-", end);  // Not that of "ddblock-lock-0".
    const std::string lock = body.substr(at, end - at);
    Random random(plan_.seed, 'o', ++operations_);
    if (operations_ > kMostOperations) return;
    world_.at(world_.now() +
                  random.spread(std::chrono::milliseconds(1), plan_.ttl / 2),
              [this, lock] {
                world_.start_process(
                    world_.hosts().back(), kOperator,
                    [this, lock] { free_by_force(plan_, lock, judge_); });
              });
  }

  // -- Faults ----------------------------------------------------------------

  void happen(const FaultPlan& fault) {
    ++faults_;
    world_.tell(description_of(fault));
    if (happen_to_program(fault)) return;
    if (happen_to_host(fault)) return;
    if (fault.kind == Fault::clean_up) return clean_up();
    Time& until = fault.kind == Fault::outage ? outage_until_ : storm_until_;
    until = std::max(until, world_.now() + fault.time);
    set_weather();
    world_.at(until, [this] { set_weather(); });
  }

  bool happen_to_program(const FaultPlan& fault) {
    if (fault.kind == Fault::kill) {
      kill(fault.target);
      return true;
    }
    if (fault.kind == Fault::restart) {
      restart(fault);
      return true;
    }
    if (fault.kind != Fault::stop && fault.kind != Fault::no_memory) {
      return false;
    }
    Process* const process = alive(fault.target);
    if (process == nullptr) return true;
    if (fault.kind == Fault::stop) {
      world_.stop(*process, fault.time);
    } else {
      let_memory_fail(*process, fault);
    }
    return true;
  }

  void let_memory_fail(Process& process, const FaultPlan& fault) {
    Random random(plan_.seed, 'M',
                  static_cast<std::uint64_t>(fault.at.count()));
    process.failure_every = kFailures[random.below(3)];
    world_.at(world_.now() + fault.time,
              [&process] { process.failure_every = 0; });
  }

  bool happen_to_host(const FaultPlan& fault) {
    if (fault.kind == Fault::outage || fault.kind == Fault::storm ||
        fault.kind == Fault::clean_up) {
      return false;
    }
    Host& host = world_.hosts()[static_cast<std::size_t>(fault.target)];
    if (fault.kind == Fault::suspend) world_.suspend(host, fault.time);
    if (fault.kind == Fault::pause) world_.pause(host, fault.time);
    if (fault.kind == Fault::set_wall) host.wall_offset += fault.time;
    if (fault.kind == Fault::cut_off) {
      host.cut_off_until =
          std::max(host.cut_off_until, world_.now() + fault.time);
    }
    return true;
  }

  // DynamoDB deletes items some time after what their attribute `ttl` says, in
  // seconds since 1970.
  void clean_up() {
    if (plan_.layout != tests::Layout::ddblock) return;
    const std::string mark = R"x("ttl":{"N":")x";
    for (int i = 0; i < plan_.locks; ++i) {
      const std::string key = "ddblock-lock-" + std::to_string(i);
      const std::string sort = plan_.sort_key.empty() ? "" : "s";
      const std::string item = service_.item("locks", key, sort);
      const auto found = item.find(mark);
      if (found == item.npos) continue;
      const std::chrono::seconds ttl(
          std::stoll(item.substr(found + mark.size())));
      if (ttl < kEpoch + world_.now()) service_.remove("locks", key, sort);
    }
  }

  // -- Weather ---------------------------------------------------------------

  void plan_weather() {
    set_weather();
    world_.at(weather_ends(), [this] { set_weather(); });
  }
  // Early enough for delayed messages to arrive before plan_.calm.
  Time weather_ends() const {
    const Weather& weather = plan_.weather;
    const bool delays =
        weather.late > 0 || weather.answer_late > 0 || weather.doubled > 0;
    return plan_.calm - (delays ? weather.longest_delay : nanoseconds(0));
  }

  void set_weather() {
    const Time now = world_.now();
    Weather weather = now < weather_ends() ? plan_.weather : Weather{};
    if (now < storm_until_) weather = ten_times(weather);
    if (now < outage_until_) {
      weather = {};
      weather.unreachable = 0.5;
      weather.lost = 0.5;
      weather.failed = 1;
    }
    network_.set_weather(weather);
  }

  // -- The end ---------------------------------------------------------------

  // By then all programs should have ended.  The last thing that each may do is
  // to wait for all others that hold the lock or have died with it.
  Time patience_ends() const {
    nanoseconds one = plan_.longest_hold + plan_.longest_rest;
    one += plan_.ttl * 5;
    one += minutes(2);
    return plan_.calm +
           one * static_cast<std::int64_t>(2 + 2 * plan_.programs.size());
  }
  nanoseconds last_check() const {
    return plan_.weather.longest_delay * 2 + plan_.ttl * 40 + hours(1);
  }

  // On the main thread of the last process.
  void end() {
    const auto left = [this](Time until) { return until - world_.now(); };
    world_.sleep(left(plan_.calm));
    const Time patience = patience_ends();
    while (running_ > 0 && world_.now() < patience) {
      world_.wait({&running_},
                  world_.host().boot(world_.now()) + left(patience));
    }
    if (running_ > 0) return world_.finish();
    run_final_check(plan_, judge_);
    is_checked_ = true;
    world_.finish();
  }

  void complain_of(const std::vector<std::string>& waiting) {
    if (is_checked_) return;
    std::string who;
    for (const std::string& name : waiting) {
      if (running_ > 0 && name.compare(0, 5, kFinal) == 0) continue;
      who += (who.empty() ? "" : "; ") + name;
    }
    judge_.wrong(world_.takes_too_long() ? "too much happens in a life"
                                         : "a wait that never ends",
                 who);
  }

  Outcome outcome() {
    Outcome outcome;
    outcome.wrong = judge_.wrongs();
    outcome.acquisitions = judge_.acquisitions();
    outcome.faults = faults_ + network_.faults();
    outcome.length = world_.now();
    return outcome;
  }

  const Plan& plan_;
  World world_;
  Service service_;
  Network network_;
  Judge judge_;
  std::map<int, Process*> processes_;  // The latest of each program.
  std::map<int, int> starts_;
  std::set<const Process*> ended_;
  int running_ = 0;
  std::uint64_t faults_ = 0, operations_ = 0;
  Time outage_until_{}, storm_until_{};
  bool is_checked_ = false;
};

}  // namespace

Outcome live(const Plan& plan, const Hear& hear) {
  // Never destroyed: threads of killed processes may refer to it.
  Life& life = *new Life(plan, hear);
  return life.live();
}

}  // namespace world
