#include "tests/torture/mischief.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/torture/diary.hpp"

namespace torture {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Of one process, from when it started or went on to what is done next.
constexpr milliseconds kMeanPeace{10500};
constexpr int kPercentStopped = 55;  // The others are killed.
constexpr int kPercentKilledStopped = 20;
constexpr milliseconds kLongestStop{3000};
constexpr milliseconds kLongestAbsence{500};

constexpr int kPercentFalse = 50;  // Calendars.
constexpr milliseconds kMeanBetweenJumps{5000};
constexpr seconds kFurthest = std::chrono::hours(12);

constexpr milliseconds kBetweenOutages{20000};  // Half to one and a half.
constexpr milliseconds kShortestOutage{300};
constexpr milliseconds kLongestOutage{3000};
class Planner {
 public:
  Planner(std::uint32_t seed, milliseconds time, bool calendars)
      : random_(seed), time_(time), calendars_(calendars) {}

  std::vector<Deed> plan() {
    for (int i = 0; i < kProcesses; ++i) plan_process(i);
    plan_gateway();
    std::stable_sort(deeds_.begin(), deeds_.end(),
                     [](const Deed& a, const Deed& b) { return a.at < b.at; });
    return deeds_;
  }

 private:
  using Kind = Deed::Kind;

  milliseconds between(milliseconds least, milliseconds most) {
    return milliseconds(std::uniform_int_distribution<std::int64_t>(
        least.count(), most.count())(random_));
  }
  bool percent(int chance) {
    return std::uniform_int_distribution<int>(0, 99)(random_) < chance;
  }
  // Short ones more often, so that long ones do not take all the time.
  milliseconds mostly_short(milliseconds least, milliseconds most) {
    const double part = std::uniform_real_distribution<double>(0, 1)(random_);
    return least +
           milliseconds(std::lround(
               part * part * static_cast<double>((most - least).count())));
  }
  // Of what comes again and again, without memory.
  milliseconds some_time(milliseconds mean) {
    const double time = std::exponential_distribution<double>(
        1 / static_cast<double>(mean.count()))(random_);
    return milliseconds(std::lround(time) + 1);
  }
  seconds some_offset() {
    return std::chrono::duration_cast<seconds>(between(-kFurthest, kFurthest));
  }

  Deed& add(milliseconds at, Kind kind, int process = 0) {
    deeds_.push_back({at, kind, process});
    return deeds_.back();
  }

  // One incarnation after the other.
  void plan_process(int process) {
    milliseconds at{0};
    while (at < time_) {
      Deed& start = add(at, Kind::start, process);
      start.seed = static_cast<std::uint32_t>(random_());
      const bool is_false = calendars_ && percent(kPercentFalse);
      if (is_false) start.offset = some_offset();
      const milliseconds death = plan_life(process, at);
      if (is_false) plan_calendar(process, at, death);
      at = death + between(0ms, kLongestAbsence);
    }
  }

  // Returns when it ends: by a kill, unless it outlives the torture.
  milliseconds plan_life(int process, milliseconds at) {
    for (;;) {
      at += some_time(kMeanPeace);
      if (at >= time_) return at;
      bool killed = true;
      if (percent(kPercentStopped)) {
        add(at, Kind::stop, process);
        at += mostly_short(0ms, kLongestStop);
        killed = percent(kPercentKilledStopped);
        if (at >= time_) return at;
      }
      add(at, killed ? Kind::kill : Kind::go_on, process);
      if (killed) return at;
    }
  }

  void plan_calendar(int process, milliseconds birth, milliseconds death) {
    const milliseconds end = std::min(death, time_);
    for (milliseconds at = birth + some_time(kMeanBetweenJumps); at < end;
         at += some_time(kMeanBetweenJumps)) {
      add(at, Kind::calendar, process).offset = some_offset();
    }
  }

  // The first soon, so that a short torture has them too.
  void plan_gateway() {
    milliseconds at = between(kBetweenOutages / 4, kBetweenOutages / 2);
    while (at < time_) {
      add(at, percent(50) ? Kind::refuse : Kind::hang);
      at += mostly_short(kShortestOutage, kLongestOutage);
      if (at < time_) add(at, Kind::open);
      at += between(kBetweenOutages / 2, kBetweenOutages * 3 / 2);
    }
  }

  std::mt19937 random_;
  const milliseconds time_;
  const bool calendars_;
  std::vector<Deed> deeds_;
};

// Of a hundred requests of each action, how many meet this kind of trouble.
// Renewals are few, and so most of them do: late and second copies of them are
// to meet the next holder's row, too.
struct Trouble {
  const char* kind;
  double take;
  double renew;
  double release;
  double look;
  milliseconds from{0};
  milliseconds to{0};
};

// All together leave a client the tokens to try again at once: one that has
// none left waits for seconds.  What costs its client a whole request's time,
// or has it wait, comes less often; so does a take that is applied when nobody
// wants it any more, which keeps all others out for a lease.  Takes that are
// told of late are many: whoever counts its lease from the answer, and dies of
// it, is to be found out.
constexpr Trouble kTroubles[] = {
    {"delay", 0.09, 2, 0.15, 0.2, 1ms, 250ms},
    {"drop", 0.06, 0.8, 0.09, 0.05},
    {"reset", 0.12, 1, 0.15, 0.15},
    {"close", 0.12, 1, 0.15, 0.15},
    {"half-close", 0.12, 1, 0.15, 0.15},
    {"throttle", 0.05, 0.5, 0.1, 0.05},
    {"500", 0.12, 1, 0.15, 0.15},
    {"503", 0.12, 1, 0.15, 0.15},
    {"portal", 0.12, 1, 0.15, 0.15},
    {"empty", 0.12, 1, 0.15, 0.15},
    {"late", 0.06, 6, 0.3, 0.05, 1ms, 3000ms},
    {"reorder", 0.072, 4, 0.3, 0.15, 1ms, 250ms},
    {"delay-answer", 3, 2, 0.15, 0.2, 1ms, 250ms},
    {"drop-answer", 0.06, 1.5, 0.09, 0.05},
    {"reset-answer", 0.12, 3, 0.15, 0.15},
    {"half-close-answer", 0.12, 3, 0.15, 0.15},
    {"truncate", 0.12, 3, 0.15, 0.15},
    {"corrupt", 0.12, 3, 0.15, 0.15},
    {"garbage", 0.12, 3, 0.15, 0.15},
    {"throttle-after", 0.05, 1, 0.1, 0.05},
    {"500-after", 0.12, 3, 0.15, 0.15},
    {"503-after", 0.12, 3, 0.15, 0.15},
    {"duplicate", 0.12, 20, 0.8, 0.05, 1ms, kLatestCopy},
};

constexpr struct {
  const char* action;
  double Trouble::*percent;
} kActions[] = {
    {"PutItem", &Trouble::take},
    {"DeleteItem", &Trouble::release},
    // Of kept rows all are updates, told apart by what they say.
    {"UpdateItem ADD #token", &Trouble::take},
    {"UpdateItem SET #expires = :released", &Trouble::release},
    {"UpdateItem SET #expires = :expires", &Trouble::renew},
    {"GetItem", &Trouble::look},
};

}  // namespace

std::vector<Deed> plan(std::uint32_t seed, milliseconds time, bool calendars) {
  return Planner(seed, time, calendars).plan();
}

std::vector<tests::Fault> faults() {
  std::vector<tests::Fault> faults;
  for (const auto& [action, percent] : kActions) {
    for (const Trouble& trouble : kTroubles) {
      tests::Fault fault;
      fault.action = action;
      fault.kind = trouble.kind;
      fault.probability = trouble.*percent / 100;
      fault.from = trouble.from;
      fault.to = trouble.to;
      faults.push_back(fault);
    }
  }
  return faults;
}

}  // namespace torture
