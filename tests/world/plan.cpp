#include "tests/world/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "tests/support/rival.hpp"
#include "tests/world/odd_rows.hpp"

namespace world {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using tests::Layout;

constexpr hours kDay{24};
constexpr nanoseconds kLongestTtl = 366 * kDay;
constexpr nanoseconds kLongestIdle = 21 * kDay;
// A hold takes at most so many ttls, so its lease is renewed some 200 times.
constexpr int kTtlsHeld = 100;
// How often each program in a loop has the lock, for some turns in a row.  So
// often that chance alone gives none of them half of an even share.
constexpr int kRounds = 90;
// So many that threads that take them all at once may miss some.
constexpr int kManyJobs = 40;
// Options::patience in lives with long outages.
constexpr hours kPatience{12};
// A pause of up to kLongestPause may never be noticed (ddbmutex/README.md).
// Longer ones, which must be noticed, take at least kNoticedPause.
constexpr milliseconds kLongestPause{1250};
constexpr seconds kNoticedPause{6};

// About how long a waiter pauses between two looks, and how many looks a life
// may have.
constexpr milliseconds kPause{170};
constexpr double kMostLooks = 5000;

enum class Pace {
  busy,
  slow,     // With holds and rests of weeks.
  lapsing,  // With holders that are cut off until their leases are over.
};

enum class Climates { clear, stalls, weather, both, contention, unheard };

// Which faults there may be.
enum class Faults {
  any,
  of_programs,  // They die, or calendars jump; nothing else goes wrong.
  of_memory,
  outages,  // Of hours, which programs have the patience to wait for.
};

// What the table is.
enum class Table {
  ours,
  shared,    // With clients of the library that the layout belongs to.
  own_rows,  // Its rows are kept, and few programs want them.
  jobs,      // Its rows are work.
  turns,     // It has one lock, for which programs take turns in tight loops.
  wrong,     // Its key is not the one that the programs name.
};

// What a life is about.  The fewer kinds of trouble there are in it, the
// stricter the judge can be.
struct Kind {
  const char* name;
  unsigned weight;
  Pace pace;
  Climates climate;
  Faults which;
  std::uint64_t faults;  // At the most.
  Table table;
};
constexpr Kind kKinds[] = {
    {"calm", 3, Pace::busy, Climates::clear, Faults::any, 0, Table::ours},
    {"deaths", 5, Pace::busy, Climates::clear, Faults::of_programs, 6,
     Table::ours},
    {"no memory", 2, Pace::busy, Climates::clear, Faults::of_memory, 6,
     Table::ours},
    {"stalls", 3, Pace::busy, Climates::stalls, Faults::of_programs, 1,
     Table::ours},
    {"weather", 5, Pace::busy, Climates::weather, Faults::any, 0, Table::ours},
    {"busy", 6, Pace::busy, Climates::both, Faults::any, 4, Table::ours},
    {"adverse", 5, Pace::busy, Climates::both, Faults::any, 16, Table::ours},
    {"long", 3, Pace::slow, Climates::clear, Faults::of_programs, 3,
     Table::ours},
    {"long and adverse", 2, Pace::slow, Climates::both, Faults::any, 8,
     Table::ours},
    {"lapsing", 4, Pace::lapsing, Climates::clear, Faults::any, 12,
     Table::ours},
    {"shared", 3, Pace::busy, Climates::both, Faults::any, 6, Table::shared},
    {"outages", 2, Pace::busy, Climates::clear, Faults::outages, 2,
     Table::own_rows},
    {"operator", 2, Pace::busy, Climates::unheard, Faults::any, 0,
     Table::own_rows},
    {"contention", 2, Pace::busy, Climates::contention, Faults::of_programs, 1,
     Table::ours},
    {"jobs", 4, Pace::busy, Climates::clear, Faults::of_programs, 3,
     Table::jobs},
    {"jobs and trouble", 2, Pace::busy, Climates::both, Faults::any, 4,
     Table::jobs},
    {"turns", 3, Pace::busy, Climates::clear, Faults::any, 0, Table::turns},
    {"wrong table", 2, Pace::busy, Climates::weather, Faults::any, 2,
     Table::wrong},
};

const Kind& kind_by(Random& random) {
  unsigned all = 0;
  for (const Kind& kind : kKinds) all += kind.weight;
  auto lot = random.below(all);
  const Kind* kind = kKinds;
  for (; lot >= kind->weight; ++kind) lot -= kind->weight;
  return *kind;
}

double spread(Random& random, double least, double most) {
  return least * std::exp(random.share() * std::log(most / least));
}

// The mean of Random::spread().
nanoseconds mean(nanoseconds least, nanoseconds most) {
  const auto low = static_cast<double>(least.count());
  const auto high = static_cast<double>(most.count());
  if (high <= low) return least;
  return nanoseconds(
      static_cast<std::int64_t>((high - low) / std::log(high / low)));
}

nanoseconds at_least(nanoseconds least, nanoseconds time) {
  return std::max(least, time);
}

bool goes_by_calendars(Layout layout) {
  return layout == Layout::lockclient || layout == Layout::lease ||
         layout == Layout::ddblock;
}

// Layouts with versions, which take a ttl of at least 1 s.
bool sees_versions(Layout layout) {
  return layout == Layout::dynamolock || layout == Layout::awslabs;
}

class Draft {
 public:
  explicit Draft(std::uint64_t seed)
      : random_(seed, 'k'), kind_(kind_by(random_)) {
    plan_.seed = seed;
  }

  Plan draw() {
    draw_table();
    draw_times();
    draw_programs();
    draw_length();
    draw_faults();
    draw_hosts();
    draw_climate();
    draw_front_ends();
    if (has_weather()) draw_weather();
    if (kind_.climate == Climates::contention) {
      plan_.weather.conflict = 0.05 + 0.2 * random_.share();
    }
    if (kind_.climate == Climates::unheard) {
      plan_.weather.answer_lost = 0.02 + 0.1 * random_.share();
      plan_.has_operator = true;
    }
    return plan_;
  }

 private:
  bool has_weather() const {
    return kind_.climate == Climates::weather ||
           kind_.climate == Climates::both;
  }
  bool has_stalls() const {
    return kind_.climate == Climates::stalls || kind_.climate == Climates::both;
  }

  bool is_lapsing() const { return kind_.pace == Pace::lapsing; }
  bool takes_turns() const { return kind_.table == Table::turns; }
  bool is_crowded() const { return plan_.locks == kManyJobs; }
  bool has_rivals() const { return kind_.table == Table::shared; }

  void draw_table() {
    Random random(plan_.seed, 't');
    const bool few = kind_.table == Table::own_rows;
    const double shared = few ? 0.3 : kind_.table == Table::ours ? 0.15 : 0;
    if (has_rivals() || random.chance(shared)) {
      plan_.layout = static_cast<Layout>(random.below(5));
    }
    const bool ours = plan_.layout == Layout::ddblock;
    plan_.keep_row = random.chance(0.4) && !(ours && has_rivals());
    if (plan_.layout == Layout::lease || few) plan_.keep_row = true;
    if (ours && !has_rivals() && random.chance(0.1)) plan_.sort_key = "range";
    plan_.locks = 1 + static_cast<int>(random.below(3));
    if (kind_.table == Table::jobs) draw_jobs(random);
    if (takes_turns()) {
      plan_.loops = true;
      plan_.locks = 1;
    }
    if (kind_.table == Table::wrong) {
      plan_.wrong_key = random.one_of<Service::Key>({{"uuid", ""},
                                                     {"owner", ""},
                                                     {"name", "uuid"},
                                                     {"name", "owner"},
                                                     {"owner", "name"},
                                                     {"id", ""}});
    }
    const bool is_special = kind_.table == Table::jobs ||
                            kind_.table == Table::wrong || takes_turns();
    if (is_special || !random.chance(0.3)) return;
    plan_.odd_row = draw_odd_row(random, plan_.layout, plan_.keep_row);
    const bool makes_none = plan_.layout == Layout::lease ||
                            (plan_.layout == Layout::ddblock && plan_.keep_row);
    if (makes_none && random.chance(0.2)) plan_.odd_row = "";
  }

  // Many jobs, or a large table that takes long to read.
  void draw_jobs(Random& random) {
    plan_.jobs = plan_.keep_row = true;
    plan_.sort_key.clear();
    plan_.locks = 1 + static_cast<int>(random.below(20));
    const bool clear = kind_.climate == Climates::clear;
    if (clear && random.chance(0.2)) {
      plan_.locks = kManyJobs;
    } else if (random.chance(0.4)) {
      plan_.other_rows = 300 + static_cast<int>(random.below(700));
    }
  }

  void draw_times() {
    Random random(plan_.seed, 'm');
    if (kind_.pace == Pace::slow) draw_slow_times(random);
    if (kind_.pace == Pace::busy && !is_crowded() && !takes_turns()) {
      draw_busy_times(random);
    }
    if (takes_turns()) draw_turn_times(random);
    if (is_crowded()) draw_crowded_times(random);
    if (is_lapsing()) draw_lapsing_times(random);
    // The rivals' clients write whole or half seconds.
    if (has_rivals()) plan_.ttl = plan_.ttl / 500 * 500;
    if (has_rivals() || sees_versions(plan_.layout)) {
      plan_.ttl = std::max<milliseconds>(seconds(1), plan_.ttl);
    }
  }

  void draw_busy_times(Random& random) {
    plan_.ttl = std::chrono::duration_cast<milliseconds>(
        random.chance(0.4) ? random.spread(milliseconds(100), seconds(3))
                           : random.spread(seconds(1), seconds(60)));
    // Most holds are short; in some lives they last some leases.
    const double leases = random.one_of({0.02, 0.02, 0.1, 0.1, 1.0, 3.0});
    plan_.longest_hold = at_least(
        milliseconds(2),
        nanoseconds(static_cast<std::int64_t>(
            leases * static_cast<double>(nanoseconds(plan_.ttl).count()))));
    plan_.longest_rest = random.spread(
        milliseconds(2), random.chance(0.3) ? seconds(10) : milliseconds(300));
  }

  void draw_crowded_times(Random& random) {
    plan_.ttl = seconds(10 + random.below(50));
    plan_.shortest_hold = plan_.longest_rest = milliseconds(500);
    plan_.longest_hold = seconds(1);
    plan_.beat = seconds(2);
  }

  void draw_turn_times(Random& random) {
    plan_.ttl = seconds(10 + random.below(50));
    plan_.longest_hold = random.one_of<nanoseconds>(
        {milliseconds(5), milliseconds(50), milliseconds(500)});
  }

  void draw_slow_times(Random& random) {
    plan_.ttl = std::chrono::duration_cast<milliseconds>(
        random.spread(milliseconds(100), kLongestTtl));
    plan_.longest_hold = std::min<nanoseconds>(
        kLongestIdle,
        random.spread(plan_.ttl / 8 + milliseconds(1), plan_.ttl * kTtlsHeld));
    plan_.longest_rest = random.spread(minutes(1), kLongestIdle);
  }

  void draw_lapsing_times(Random& random) {
    plan_.locks = 1 + static_cast<int>(random.below(2));
    plan_.ttl = std::chrono::duration_cast<milliseconds>(
        random.spread(seconds(2), hours(2)));
    plan_.shortest_hold = plan_.ttl / 2;
    plan_.longest_hold = plan_.ttl * 3 / 2;
    plan_.longest_rest = plan_.ttl / 2;
  }

  void draw_programs() {
    Random random(plan_.seed, 'p');
    hosts_ = is_lapsing() ? 2 + random.below(2) : 1 + random.below(4);
    if (kind_.which == Faults::outages) plan_.patience = kPatience;
    if (takes_turns()) hosts_ = random.chance(0.1) ? 1 : 2 + random.below(7);
    const std::uint64_t count = number_of_programs(random);
    for (std::uint64_t i = 0; i < count; ++i) draw_program(i, false);
    if (!has_rivals()) return;
    first_rival_host_ = hosts_;
    hosts_ += 1 + random.below(2);
    const std::uint64_t rivals = 1 + random.below(2);
    for (std::uint64_t i = 0; i < rivals; ++i) draw_program(count + i, true);
  }

  std::uint64_t number_of_programs(Random& random) const {
    if (is_lapsing() || takes_turns()) return hosts_;
    if (is_crowded()) return 6;
    if (kind_.table == Table::own_rows) return 1 + random.below(2);
    return 1 + random.below(kind_.pace == Pace::slow ? 4 : 6);
  }

  void draw_program(std::uint64_t number, bool rival) {
    Random random(plan_.seed, 'P', number);
    ProgramPlan own;
    own.number = static_cast<int>(number);
    own.rival = rival;
    own.host = static_cast<int>(host_of(random, number, rival));
    own.seed = random.next();
    own.threads = threads_of(random, rival);
    const int steps = steps_of(random, own.threads);
    for (int step = 0; step < steps; ++step) own.steps.push_back(step);
    // Most begin soon.
    own.starts =
        random.chance(0.8)
            ? random.between(nanoseconds(0), seconds(1))
            : random.spread(seconds(1), at_least(seconds(2), plan_.ttl));
    if (takes_turns()) own.starts = std::min<Time>(own.starts, seconds(1));
    plan_.programs.push_back(own);
  }

  std::uint64_t host_of(Random& random, std::uint64_t number, bool rival) {
    if (rival) {
      return first_rival_host_ + random.below(hosts_ - first_rival_host_);
    }
    return is_lapsing() || takes_turns() ? number : random.below(hosts_);
  }

  int threads_of(Random& random, bool rival) const {
    if (rival || kind_.table == Table::own_rows || takes_turns()) return 1;
    return is_crowded() ? 4 : 1 + static_cast<int>(random.below(4));
  }

  int steps_of(Random& random, int threads) const {
    if (kind_.pace != Pace::busy)
      return static_cast<int>(spread(random, 5, 40));
    if (is_crowded()) return 60;
    // More than there is time for.
    if (takes_turns()) {
      return static_cast<int>(2 * turns_last() / plan_.longest_hold);
    }
    return static_cast<int>(spread(random, 20, 300) * threads);
  }

  // Until about then the programs have something to do.  A life in which many
  // wait for long holds is made shorter, since each of them looks again and
  // again.
  void draw_length() {
    Time needed = time_needed();
    const auto looks = static_cast<double>((needed / kPause)) *
                       static_cast<double>(plan_.programs.size());
    if (kind_.pace == Pace::busy && looks > kMostLooks && !takes_turns()) {
      for (ProgramPlan& own : plan_.programs) {
        own.steps.resize(static_cast<std::size_t>(
            1 + static_cast<double>(own.steps.size()) * kMostLooks / looks));
      }
      needed = time_needed();
    }
    busy_until_ = needed + seconds(1);
    for (const ProgramPlan& own : plan_.programs) {
      busy_until_ = std::max(busy_until_, needed + own.starts);
    }
    plan_.calm = busy_until_;
  }

  Time time_needed() const {
    double steps = 0, threads = 0;
    for (const ProgramPlan& own : plan_.programs) {
      steps =
          std::max(steps, static_cast<double>(own.steps.size()) / own.threads);
      threads += own.threads;
    }
    const nanoseconds hold = mean(milliseconds(1), plan_.longest_hold);
    const nanoseconds rest = mean(milliseconds(1), plan_.longest_rest);
    const double crowd = std::max(1.0, threads / plan_.locks);
    const double time = steps * (static_cast<double>(hold.count()) * crowd / 2 +
                                 static_cast<double>(rest.count()));
    if (takes_turns()) return turns_last();
    if (plan_.beat > nanoseconds::zero()) {
      return static_cast<std::int64_t>(steps) * plan_.beat;
    }
    return nanoseconds(static_cast<std::int64_t>(std::min(
        time, static_cast<double>((2 * nanoseconds(kLongestTtl)).count()))));
  }

  // After short holds a program has the lock again, until a waiter tells it
  // that it waits.  After long ones it waits as soon as it has unlocked it.
  nanoseconds turns_last() const {
    const nanoseconds turn = plan_.longest_hold + milliseconds(40);
    return kRounds * at_least(milliseconds(600),
                              turn * static_cast<std::int64_t>(hosts_));
  }

  // How long a fault or a delay lasts: mostly about as long as a lease,
  // sometimes much longer.
  nanoseconds lasting(Random& random) const {
    if (is_lapsing()) {
      return random.between(plan_.ttl / 2, plan_.ttl * 3);
    }
    if (random.chance(0.1)) return random.spread(minutes(1), 3 * kDay);
    return random.spread(milliseconds(10),
                         at_least(milliseconds(20), plan_.ttl * 3));
  }

  void draw_faults() {
    Random random(plan_.seed, 'f');
    const std::uint64_t count = random.below(kind_.faults + 1);
    for (std::uint64_t i = 0; i < count; ++i) draw_fault(i);
    if (is_lapsing()) pause_holders();
    std::stable_sort(
        plan_.faults.begin(), plan_.faults.end(),
        [](const FaultPlan& a, const FaultPlan& b) { return a.at < b.at; });
  }

  // Moves pauses to where a lease runs out, and makes many as long as can go
  // unnoticed.
  void pause_holders() {
    for (FaultPlan& pause : plan_.faults) {
      if (pause.kind != FaultPlan::Kind::pause) continue;
      Random random(plan_.seed, 'h', static_cast<std::uint64_t>(pause.target));
      if (random.chance(0.5)) pause.time = kLongestPause;
      const bool in_sight =
          Random(plan_.seed, 'i', static_cast<std::uint64_t>(pause.target))
              .chance(0.4);
      for (const FaultPlan& cut : plan_.faults) {
        if (cut.kind != FaultPlan::Kind::cut_off ||
            cut.target != pause.target) {
          continue;
        }
        // Then other requests show the pause before a renewal does.
        if (in_sight) continue;
        pause.at = cut.at + random.between({}, plan_.ttl);
      }
    }
  }

  void draw_fault(std::uint64_t number) {
    using Is = FaultPlan::Kind;
    Random random(plan_.seed, 'F', number);
    FaultPlan fault;
    fault.kind = fault_of(random);
    fault.at = random.between(nanoseconds(0), busy_until_);
    fault.time = lasting(random);
    if (kind_.which == Faults::outages) {
      fault.time = random.spread(minutes(30), hours(6));
    }
    // No longer, because a waiter tries again every five seconds.
    if (fault.kind == Is::cut_off || fault.kind == Is::outage) {
      fault.time = std::min<nanoseconds>(fault.time, hours(6));
    }
    const ProgramPlan& program = plan_.programs[static_cast<std::size_t>(
        random.below(plan_.programs.size()))];
    fault.target = is_of_a_host(fault.kind) ? program.host : program.number;
    if (fault.kind == Is::pause) {
      if (!may_pause(fault)) return;
      fault.time = draw_pause(random);
      paused_hosts_.push_back(fault.target);
    }
    if (fault.kind == Is::set_wall) {
      if (is_of_rivals(fault.target)) return;
      fault.time = random.spread(milliseconds(100), hours(20));
      if (random.chance(0.5)) fault.time = -fault.time;
    } else {
      plan_.calm = std::max(
          plan_.calm, fault.at + fault.time + (busy_until_ - fault.at) / 4);
    }
    plan_.faults.push_back(fault);
  }

  nanoseconds draw_pause(Random& random) const {
    const nanoseconds time = random.spread(milliseconds(20), kLongestPause);
    // Waiters on other machines count on meanwhile.
    if (!is_lapsing() || !random.chance(0.6)) return time;
    return random.spread(kNoticedPause + plan_.ttl / 20,
                         kNoticedPause + seconds(1) + plan_.ttl * 3);
  }

  FaultPlan::Kind fault_of(Random& random) const {
    using Is = FaultPlan::Kind;
    if (kind_.which == Faults::of_memory) return Is::no_memory;
    if (kind_.which == Faults::outages) return Is::outage;
    if (kind_.which == Faults::of_programs) {
      return random.one_of(
          {Is::kill, Is::restart, Is::restart, Is::set_wall, Is::clean_up});
    }
    if (is_lapsing()) {
      return random.one_of({Is::cut_off, Is::cut_off, Is::cut_off, Is::pause,
                            Is::pause, Is::suspend, Is::stop, Is::set_wall,
                            Is::restart, Is::outage});
    }
    return random.one_of({Is::kill, Is::restart, Is::restart, Is::restart,
                          Is::stop, Is::stop, Is::suspend, Is::suspend,
                          Is::pause, Is::pause, Is::cut_off, Is::cut_off,
                          Is::outage, Is::storm, Is::set_wall, Is::no_memory,
                          Is::clean_up});
  }

  static bool is_of_a_host(FaultPlan::Kind kind) {
    using Is = FaultPlan::Kind;
    return kind == Is::suspend || kind == Is::pause || kind == Is::cut_off ||
           kind == Is::set_wall;
  }
  bool is_of_rivals(int host) const {
    return has_rivals() && host >= static_cast<int>(first_rival_host_);
  }
  // A host has at most one unnoticed pause in a life: two in one lease would
  // add up to more than the margins cover.  Rivals' hosts have none, because
  // their clients have no margin.
  bool may_pause(const FaultPlan& fault) const {
    return !is_of_rivals(fault.target) &&
           std::find(paused_hosts_.begin(), paused_hosts_.end(),
                     fault.target) == paused_hosts_.end();
  }

  void draw_hosts() {
    // The same for all programs in loops: who is nearer has more turns in a
    // row.
    const nanoseconds latency =
        Random(plan_.seed, 'l').spread(microseconds(20), milliseconds(3));
    for (std::uint64_t i = 0; i < hosts_; ++i) {
      Random random(plan_.seed, 'H', i);
      HostPlan host;
      // The margins cover clocks that are off by 1 %, or by 0.5 % and a pause.
      const double worst = paused_hosts_.empty() ? 0.01 : 0.005;
      const double off = (random.share() * 2 - 1) * worst;
      const double extreme = is_lapsing() ? 0.8 : 0.15;
      host.rate = 1 + (random.chance(extreme) ? std::copysign(worst, off)
                       : random.chance(0.3)   ? 0
                                              : off);
      host.latency = random.spread(
          microseconds(50),
          std::clamp<nanoseconds>(plan_.ttl / 128, microseconds(200),
                                  milliseconds(80)));
      if (takes_turns()) host.latency = latency;
      if (random.chance(0.4)) {
        host.wall_offset = random.spread(milliseconds(1), hours(30));
        if (random.chance(0.5)) host.wall_offset = -host.wall_offset;
      }
      // The rivals' clients count on right clocks.
      if (is_of_rivals(static_cast<int>(i))) {
        host.rate = 1;
        host.wall_offset = random.between(-seconds(1), seconds(1));
      }
      plan_.hosts.push_back(host);
    }
  }

  void draw_climate() {
    Random random(plan_.seed, 'c');
    if (!has_stalls() || random.chance(0.3)) return;
    plan_.climate.stalls = spread(random, 0.001, 0.05);
    plan_.climate.longest_stall = random.spread(
        microseconds(100), random.chance(0.1) ? plan_.ttl : milliseconds(200));
  }

  void draw_front_ends() {
    Random random(plan_.seed, 'e');
    // Any two of them differ by a quarter of a second at the most.
    if (plan_.other_rows > 0) {
      plan_.front_ends.page_takes = random.spread(
          plan_.ttl / 100, std::min<nanoseconds>(seconds(1), plan_.ttl / 6));
    }
    plan_.front_ends.ahead.clear();
    const std::uint64_t count = 1 + random.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      plan_.front_ends.ahead.push_back(
          random.between(-milliseconds(125), milliseconds(125)));
    }
    if (has_rivals() ||
        (goes_by_calendars(plan_.layout) && plan_.layout != Layout::ddblock)) {
      return;
    }
    if (random.chance(0.05)) leave_out_dates();
  }

  // Without a Date, nobody learns that a request was signed for a wrong time.
  // So the calendars must be about right.
  void leave_out_dates() {
    plan_.front_ends.date = false;
    for (HostPlan& host : plan_.hosts) {
      host.wall_offset %= nanoseconds(minutes(1));
    }
    auto& faults = plan_.faults;
    faults.erase(std::remove_if(faults.begin(), faults.end(),
                                [](const FaultPlan& fault) {
                                  return fault.kind ==
                                         FaultPlan::Kind::set_wall;
                                }),
                 faults.end());
  }

  void draw_weather() {
    Random random(plan_.seed, 'W');
    const double most = random.chance(0.7) ? 0.01 : 0.08;
    Weather& weather = plan_.weather;
    for (const WeatherKind& kind : kWeatherKinds) {
      const double drawn = spread(random, most / 100, most);
      if (random.chance(0.5)) weather.*kind.chance = drawn;
    }
    weather.longest_delay = lasting(random);
    plan_.has_operator = random.chance(0.3);
    if (kind_.climate == Climates::weather && random.chance(0.5)) {
      Weather mild;
      for (double* chance :
           {&mild.broken, &mild.truncated, &mild.failed, &mild.rejected_keys}) {
        *chance = spread(random, 0.001, 0.013);
      }
      weather = mild;
      plan_.has_operator = false;
    }
    // By then nothing is under way any more.
    plan_.calm = std::max(plan_.calm, busy_until_ + weather.longest_delay);
  }

  Random random_;
  const Kind& kind_;
  Plan plan_;
  std::uint64_t hosts_ = 0;
  std::uint64_t first_rival_host_ = 0;
  std::vector<int> paused_hosts_;
  Time busy_until_{};
};

}  // namespace

Plan draw_plan(std::uint64_t seed) { return Draft(seed).draw(); }

// -- For people ---------------------------------------------------------------

std::string seconds_of(nanoseconds time) {
  char text[48];
  std::snprintf(text, sizeof text, "%.9g s",
                static_cast<double>(time.count()) / 1e9);
  return text;
}

std::string description_of(const FaultPlan& fault) {
  const std::string time = seconds_of(fault.time);
  const std::string program = "program " + std::to_string(fault.target);
  const std::string host = "host " + std::to_string(fault.target + 1);
  switch (fault.kind) {
    case FaultPlan::Kind::kill:
      return program + " is killed";
    case FaultPlan::Kind::restart:
      return program + " is killed, and starts again after " + time;
    case FaultPlan::Kind::stop:
      return program + " is stopped for " + time;
    case FaultPlan::Kind::suspend:
      return host + " is suspended for " + time;
    case FaultPlan::Kind::pause:
      return host + " stands still, boot clock included, for " + time;
    case FaultPlan::Kind::cut_off:
      return host + " is cut off for " + time;
    case FaultPlan::Kind::outage:
      return "the service answers nobody for " + time;
    case FaultPlan::Kind::storm:
      return "the weather is ten times as bad for " + time;
    case FaultPlan::Kind::set_wall:
      return "the calendar of " + host + " jumps by " + time;
    case FaultPlan::Kind::no_memory:
      return program + " is short of memory for " + time;
    case FaultPlan::Kind::clean_up:
      return "DynamoDB deletes what is past its ttl";
  }
  return "";
}

}  // namespace world
